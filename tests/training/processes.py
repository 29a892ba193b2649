"""Real processes that train together, for the tests: what one computes, and how to start several."""

import dataclasses
import itertools
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from costa import settings, training
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.nn.ranks import ALONE, Ranks

CPU = torch.device("cpu")
NAMES = ("costa-sv", "costa-mv")
KINDS = ("countsketch", "gaussian", "rademacher", "sparse")
SMALL = {
    "encoder.kind": "hops", "encoder.width": 6, "encoder.powers": (0, 2), "encoder.steps": 2, "encoder.columns": 5,
    "encoder.activation": "prelu", "head.width": 8, "features.rank": 8, "features.scaling": "standard",
    "augment.mask_rate": 0.3, "augment.hop_rate": 0.3, "sketch.k": 9, "sketch.density": 0.3, "train.batch": 0,
}  # fmt: skip
CASES = {
    (name, kind, center, norm): {"sketch.kind": kind, "sketch.center": center, "encoder.norm": norm}
    for name, kind, center, norm in itertools.product(NAMES, KINDS, (True, False), ("none", "batch"))
}
MORE = {
    ("costa-mv", "noise"): {"sketch.kind": "countsketch", "sketch.noise_std": 0.2},
    ("costa-mv", "fixed"): {"sketch.kind": "gaussian", "sketch.fixed": True},
    ("costa-mv", "written out"): {"sketch.kind": "rademacher", "train.kernels": "plain"},
    ("costa-sv", "no head"): {"sketch.kind": "countsketch", "head.width": 0},
}
TRAININGS = {
    ("costa-sv", "small batches"): {"sketch.kind": "countsketch", "sketch.center": False, "train.batch": 4},
    ("costa-mv", "batches"): {"sketch.kind": "countsketch", "train.batch": 16},
    ("costa-mv", "batch norm"): {"sketch.kind": "gaussian", "encoder.norm": "batch", "train.batch": 16},
    ("costa-mv", "all rows"): {"sketch.kind": "sparse"},
}
"""With four rows in a batch, some rank often has none of them."""


def small_graph():
    return planted_partition(61, 3, 12, seed=0)


def build(name, values, graph, ranks, dtype=torch.float32):
    """A small method that has joined the ranks, prepared for the graph, and its training settings."""
    method = get_method(name)
    merged, _ = settings.merge(method.Settings, [("test", SMALL | values)])
    built = training.build(method, merged, graph, 3, CPU)
    built.join(ranks)
    built.prepare(graph)
    built.to(dtype)
    held = built.inputs(graph)
    built._prepared = graph, dataclasses.replace(held, blocks=tuple(block.to(dtype) for block in held.blocks))
    return built, merged.train


def batches(graph):
    """All rows, some of them, and some that one rank alone holds."""
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(5))
    return {"all": None, "some": order[:30], "few": order[order < 20]}


def losses_and_gradients(graph, ranks, dtype):
    """The loss, its mean, the mean of the gradients, the state and what is drawn next, of each case and batch."""
    found = {}
    for case, values in (CASES | MORE).items():
        method, _ = build(case[0], values, graph, ranks, dtype)
        for batch, rows in batches(graph).items():
            if "fixed" in case and rows is not None:
                continue
            loss = method.loss(graph, rows)
            gradients = torch.autograd.grad(loss, list(method.parameters()), allow_unused=True)
            mean, gradients = ranks.mean(loss.detach(), gradients)
            state = {key: tensor.clone() for key, tensor in method.state_dict().items()}
            found[*case, batch] = loss.detach(), mean, gradients, state, method.generator.get_state()
    return found


def trained(graph, ranks, dtype):
    """Losses, weights, vectors and H of some rows after 20 steps."""
    found = {}
    for case, values in TRAININGS.items():
        method, train = build(case[0], values, graph, ranks, dtype)
        losses = training.Steps([method], graph, train).run(20)
        method.settle(graph)
        hidden = method.hidden(graph, torch.arange(0, graph.num_nodes, 4)).detach()
        found[case] = losses, method.state_dict(), method.embed(graph), hidden
    return found


def everything(ranks):
    """All of the above, in both precisions."""
    graph = small_graph()
    return {
        (what.__name__, dtype): what(graph, ranks, dtype)
        for what in (losses_and_gradients, trained)
        for dtype in (torch.float32, torch.float64)
    }


def alone():
    """What one process computes."""
    return everything(ALONE)


def together(size: int, folder: Path, work=everything) -> list:
    """What ``work(ranks)`` returns in each of so many processes."""
    mp.spawn(_process, (size, folder, work), nprocs=size)
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(size)]


def _process(rank, size, folder, work):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
    torch.save(work(Ranks(rank, size)), folder / f"{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()
