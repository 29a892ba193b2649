"""The two-view loss without stored similarities: ours against other implementations, in one run.

    python benchmarks/losses.py [ROWS | ROWSxCOLUMNS …]

Forward and backward of ½·CE(UVᵀ/τ, i) + ½·CE(VUᵀ/τ, i) for U and V of ROWS × COLUMNS (default 128). The others compute
one direction per call, so they are called twice; those that are not installed are skipped. On CUDA ours has two forms
and chooses by the number of columns; both are measured. Milliseconds are medians; memory is the peak above the inputs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from costa.nn import contrast
from costa.nn.losses import cross_view_loss

TAU = 0.5
CHOSEN = contrast.WIDEST
FORMS = {"costa, registers": 10**6, "costa, memory": 0}
"""The value of ``contrast.WIDEST`` that selects each form."""
Loss = Callable[[Tensor, Tensor], Tensor]


def both_ways(one_way: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Loss:
    """Make the two-view loss from a cross-entropy that takes (rows/τ, others, targets)."""

    def loss(u: Tensor, v: Tensor) -> Tensor:
        u, v = F.normalize(u), F.normalize(v)
        targets = torch.arange(len(u), device=u.device)
        return (one_way(u / TAU, v, targets) + one_way(v / TAU, u, targets)) / 2

    return loss


def contestants() -> dict[str, Loss]:
    """Return the installed implementations by name."""
    losses: dict[str, Loss] = {
        "written out": lambda u, v: cross_view_loss(u, v, TAU, plain=True),
        "costa": lambda u, v: cross_view_loss(u, v, TAU),
    }
    if torch.cuda.is_available():
        losses |= dict.fromkeys(FORMS, losses["costa"])
    if hasattr(F, "linear_cross_entropy"):
        options = torch.nn.LinearCrossEntropyOptions()
        losses["torch linear_cross_entropy"] = both_ways(
            lambda rows, others, targets: F.linear_cross_entropy(rows, others, targets, options=options)
        )
    if torch.cuda.is_available():
        try:
            from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction as Liger

            losses["liger"] = both_ways(lambda rows, others, targets: Liger.apply(rows, others, targets)[0])
        except ImportError:
            pass
        try:
            from cut_cross_entropy import linear_cross_entropy

            # It takes only half precision, and by default skips small gradients; filter_eps=None keeps them.
            losses["cut-cross-entropy"] = both_ways(
                lambda rows, others, targets: linear_cross_entropy(
                    rows.bfloat16(), others.bfloat16(), targets, filter_eps=None
                )
            )
        except ImportError:
            pass
    return losses


def measure(loss: Loss, rows: int, columns: int, device: str, repeats: int = 7) -> tuple[float, float, float, Tensor]:
    """Return milliseconds, peak GiB, the loss and the gradient of U."""
    generator = torch.Generator().manual_seed(0)
    u, v = (torch.randn(rows, columns, generator=generator).to(device).requires_grad_() for _ in range(2))

    def once() -> tuple[Tensor, Tensor]:
        value = loss(u, v)
        return value, torch.autograd.grad(value, [u, v])[0]

    value, gradient = once()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        once()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    peak = torch.cuda.max_memory_allocated() - before if device == "cuda" else float("nan")
    return 1e3 * sorted(times)[repeats // 2], peak / 2**30, float(value.detach()), gradient.detach()


def main() -> None:
    """Print a table for each size."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for text in sys.argv[1:] or ["1354", "4096"]:
        rows, columns = (int(part) for part in f"{text}x128".split("x")[:2])
        print(f"\n{rows} × {columns}, {device}")
        results = {}
        for name, loss in contestants().items():
            try:
                contrast.WIDEST = FORMS.get(name, CHOSEN)
                results[name] = measure(loss, rows, columns, device)
            except Exception as problem:
                print(f"  {name:<28} {type(problem).__name__}: {str(problem)[:80]}")
        ours, truth = results["costa"][0], results["written out"][3]
        for name, (milliseconds, peak, value, gradient) in results.items():
            error = float((gradient - truth).norm() / truth.norm())
            print(
                f"  {name:<28} {milliseconds:9.2f} ms  {milliseconds / ours:5.1f} × ours  {peak:7.3f} GiB"
                f"  loss {value:.5f}  gradient's error {error:.0e}"
            )


if __name__ == "__main__":
    main()
