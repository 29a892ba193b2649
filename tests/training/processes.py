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
from costa.nn.ranks import Ranks
from costa.training.batches import Batches
from costa.training.distributed import bytes_of_step
from costa.training.watch import Watch

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
    **{(name, kind): {"sketch.kind": kind, "train.batch": 16} for name in NAMES for kind in KINDS},
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
            mean, gradients, _ = ranks.mean(loss.detach(), gradients)
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


def watched(graph, ranks):
    """What the watch goes by after a few steps: the spread of H, and whether the loss is below the untrained one."""
    values = {"encoder.norm": "batch", "sketch.kind": "gaussian", "train.batch": 16}
    method, train = build("costa-mv", values, graph, ranks)
    steps = training.Steps([method], graph, train)
    watch = Watch(method, method.hidden, steps.optimizers[0], graph)
    steps.run(8)
    return watch._measure(torch.inf), watch._beats_untrained(lambda: steps.loss(0))


def diverged(graph, ranks):
    """How a training ends whose loss is not finite on any rank, as the features of one row are not."""
    method, train = build("costa-sv", {"train.batch": 16, "train.epochs": 3}, graph, ranks)
    held = method.inputs(graph).blocks[0]
    if ranks.first:
        held[1] = torch.inf
    losses = training.Steps([method], graph, train).run(8)
    return losses.isfinite().flatten().tolist()


def bytes_given(graph, ranks):
    """For some cases, what a step is said to send and what it gives to the sums."""
    found = []
    for values in ({}, {"sketch.center": False}, {"encoder.norm": "batch"}, {"sketch.kind": "gaussian"}):
        for name in NAMES:
            method, train = build(name, values | {"sketch.k": 40, "train.batch": 30}, graph, ranks)
            steps, sums, all_reduce = training.Steps([method], graph, train), [], dist.all_reduce

            def counted(x, sums=sums, all_reduce=all_reduce):
                sums.append(x.numel() * x.itemsize)
                all_reduce(x)

            dist.all_reduce = counted
            steps.run(1)
            dist.all_reduce = all_reduce
            rows = len(Batches(graph.num_nodes, steps.per_epoch, method.generator.initial_seed()).rows(0))
            found.append((bytes_of_step(method, rows), sum(sums)))
    return found


def everything(ranks):
    """All of the above, in both precisions if that matters."""
    graph = small_graph()
    precise = {
        (what.__name__, dtype): what(graph, ranks, dtype)
        for what in (losses_and_gradients, trained)
        for dtype in (torch.float32, torch.float64)
    }
    return precise | {"watched": watched(graph, ranks), "diverged": diverged(graph, ranks)}


def threads(ranks):
    """How many threads make what the first rank makes while the others wait, and how many there are afterwards."""
    return ranks.told(torch.get_num_threads), torch.get_num_threads()


def together(size: int, folder: Path) -> list:
    """What each of so many processes computes, and what it sends."""
    mp.spawn(_process, (size, folder), nprocs=size)
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(size)]


def _process(rank, size, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
    ranks = Ranks(rank, size)
    torch.save(
        everything(ranks) | {"bytes": bytes_given(small_graph(), ranks), "threads": threads(ranks)},
        folder / f"{rank}.pt",
    )
    dist.barrier()
    dist.destroy_process_group()
