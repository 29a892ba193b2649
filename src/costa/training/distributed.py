"""Several processes train one model, started by ``torchrun --nproc-per-node N -m costa train …``.

Each rank holds the hops of a range of rows, of about n/N nodes. The batches, and everything that is drawn, are those of
one process, the same on all ranks; of a batch's rows a rank encodes those that it holds, perhaps none. A step sends
sums over the ranks, whose mathematics is in :mod:`costa.nn.ranks`; with v views of d columns these are

    [P_r; 1ᵀ]·[H_r, 1]      (k + 1)·(v·d + 1) numbers in one sum, k·v·d without centring
    the loss and gradients  2 + |θ| numbers in one sum; one says whether to stop, for a Ctrl-C may reach one rank only
    BatchNorm's moments     2·width + 1 numbers in float64, forward and backward, of each hop and view

That does not depend on n. It is summed by torch.distributed: gloo on a CPU, NCCL on GPUs.

The hops of a graph on disk are propagated by all ranks (:mod:`costa.graphs.propagation`). K products with Â of d
columns, of max p steps for the powers and the steps of PageRank, send once

    D̂^-½ H before each      K·n·d numbers, of which a rank sends the n/N rows that it holds and receives the others
    what the encoder fits   at most 4,096 rows of the hops, and a few sums
"""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Iterator

import torch
import torch.distributed as dist

from costa.errors import InputError
from costa.graphs.propagation import products
from costa.methods.costa import Costa
from costa.nn import Hops
from costa.nn.norm import BatchNorm
from costa.nn.ranks import Ranks


@contextlib.contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """Inside this block, the processes that torchrun has started; this one alone if there is no other."""
    size = started()
    if size == 1:
        yield Ranks(device=device)
        return
    if device.type == "cuda":
        local, there = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
        if local >= there:
            raise InputError(f"process {local} of this machine has no GPU: there are {there}; start as many processes.")
        device = torch.device("cuda", local)
        torch.cuda.set_device(device)
    # torchrun's store outlives a restart, and still has the addresses of the processes before it
    store, rank, _ = next(dist.rendezvous("env://"))  # type: ignore[attr-defined]
    store = dist.PrefixStore(f"attempt {_restarts()}", store)  # type: ignore[attr-defined]
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    try:
        yield Ranks(rank, size, device, local=_local(rank, size))
    finally:
        dist.destroy_process_group()


def _local(rank: int, size: int) -> tuple[int, int]:
    return int(os.environ.get("LOCAL_RANK", rank)), int(os.environ.get("LOCAL_WORLD_SIZE", size))


def started() -> int:
    """How many processes torchrun has started, this one included."""
    return int(os.environ["WORLD_SIZE"]) if "RANK" in os.environ else 1


def restarted() -> bool:
    """Whether torchrun has started this process again, after another one of the training was lost."""
    return _restarts() > 0


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def bytes_of_step(method: Costa, rows: int) -> int:
    """Bytes that a rank gives to the sums of a step on a batch of so many rows; each is sent about twice.

    The checks of the watch come on top, a few times in a training.
    """
    encoder, views = method.encoder, method.views
    assert isinstance(encoder, Hops)
    draw = copy.copy(method.sketch).draw(torch.zeros(1, 1).expand(rows, 1), torch.Generator())
    k, more = (draw if method.plain else draw.packed()).shape[0], int(method.sketch.center)
    norms = [module for module in encoder.modules() if isinstance(module, BatchNorm)]
    weights = sum(weight.numel() for weight in method.parameters())
    numbers = (k + more) * (views * encoder.out_features + more) + 2 + weights
    return 4 * numbers + 8 * 2 * views * sum(2 * norm.num_features + 1 for norm in norms)


def bytes_of_propagation(encoder: Hops, n: int, ranks: Ranks) -> int:
    """Bytes that a rank receives while the hops of n nodes are propagated: the others' rows of every product.

    Files of float16 add the largest number of each column of each hop, which is four bytes.
    """
    columns = len(encoder.basis) // len(encoder.layers)
    return 4 * products(encoder.powers, encoder.steps) * columns * (n - len(ranks.range(n)))
