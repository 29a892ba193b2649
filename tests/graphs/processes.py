"""Real processes that propagate a graph on disk together, for the tests: what each finds, and how to start several."""

import multiprocessing
import os
import signal
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from costa import settings, training
from costa.graphs import propagation
from costa.graphs.propagation import DiskAdjacency, stored_hops
from costa.graphs.streaming import keep_on_disk
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.nn import FeatureReduction, FeatureScaling, Hops, Preparation
from costa.nn.ranks import Ranks
from costa.training.distributed import bytes_of_propagation
from tests.training.processes import SMALL

MEMORY = 2**26
POWERS, STEPS = (1, 3, 0), 2
GRAPHS = {"plain": {}, "weighted": {"weighted": True, "isolated": True}, "sparse": {"sparse": True}}
TRAININGS = {
    "float32": {"train.batch": 40},
    "float16": {"train.batch": 40, "encoder.stored": "float16"},
    "batch norm": {"train.batch": 0, "encoder.norm": "batch", "encoder.stored": "float16"},
}
LOCAL = ((0, 2), (1, 2), (0, 1))
"""The third process is on another machine."""


def made(n=200, *, weighted=False, sparse=False, isolated=False):
    """A small graph in memory."""
    graph = planted_partition(n, 4, 12, degree=6, homophily=0.8, seed=0)
    graph.name = "made"
    if isolated:  # the last nodes have no edge
        graph.edge_index = graph.edge_index[:, (graph.edge_index < 190).all(0)]
    if weighted:
        lower = torch.rand(n, n, generator=torch.Generator().manual_seed(2))
        graph.edge_weight = (lower + lower.T)[tuple(graph.edge_index)]
    if sparse:
        graph.x = (graph.x * (graph.x > 1.5)).to_sparse_csr()
    return graph


def prepared(graph, kind="standard", rank=0):
    """Scaling and reduction, fitted to the graph."""
    preparation = Preparation(FeatureScaling(kind, graph.num_features), FeatureReduction(rank, graph.num_features))
    preparation.fit(graph.x)
    return preparation


def on_disk(graph, ranks):
    """The graph in the user's cache."""
    with ranks.first_before_others():
        return keep_on_disk(graph, MEMORY)


def hops(ranks):
    """The rows of the hops that a rank gets, for every graph and type of file."""
    found = {}
    for name, values in GRAPHS.items():
        for kind in ("float32", "float16"):
            graph = made(**values)
            stored = stored_hops(on_disk(graph, ranks), prepared(graph), POWERS, STEPS, 0.1, kind, ranks)
            found[name, kind] = [hop.block[:] for hop in stored]
    return found


def trained(ranks):
    """What the encoder fits, and the vectors after a few steps, of a graph on disk."""
    found = {}
    for name, values in TRAININGS.items():
        graph, method = on_disk(made(), ranks), get_method("costa-mv")
        given = SMALL | values | {"sketch.kind": "countsketch", "train.epochs": 2}
        merged, _ = settings.merge(method.Settings, [("test", given)])
        built = training.build(method, merged, graph, 3, torch.device("cpu"))
        built.join(ranks)
        training.train(built, graph, merged.train)
        found[name] = built.encoder.scale, built.encoder.basis, built.embed(graph)
    return found


def bytes_received(ranks):
    """What a rank receives while it propagates, and what is said."""
    graph, received, broadcast = made(61), [], dist.broadcast

    def counted(x, source, **more):
        if source != ranks.rank:
            received.append(x.numel() * x.itemsize)
        return broadcast(x, source, **more)

    dist.broadcast = counted
    stored_hops(on_disk(graph, ranks), prepared(graph), POWERS, STEPS, 0.1, ranks=ranks)
    dist.broadcast = broadcast
    encoder = Hops(12, 2, powers=POWERS, steps=STEPS, columns=3)
    return sum(received), bytes_of_propagation(encoder, 61, ranks)


def everything(ranks, folder):
    """All of the above, the order in which the ranks come to a block, and hops of ranks that share no disk."""
    propagation.EDGES, propagation.ENTRIES, propagation.columns_at_once = 100, 500, lambda *_: 7
    found = {"hops": hops(ranks), "trained": trained(ranks), "bytes": bytes_received(ranks)}
    with ranks.first_before_others(), (folder / "order").open("a") as file:
        file.write(f"{ranks.rank}")
    os.environ["XDG_CACHE_HOME"] = str(folder / f"cache of {ranks.rank}")
    graph = keep_on_disk(made(), MEMORY)
    stored = stored_hops(graph, prepared(made()), POWERS, STEPS, 0.1, ranks=ranks)
    found["apart"] = [hop.block[:] for hop in stored]
    tiny = planted_partition(2, 2, 12, degree=1, homophily=0, seed=0)
    tiny.name = "tiny"
    stored = stored_hops(on_disk(tiny, ranks), prepared(tiny), (1, 0), 0, 0.1, "float16", ranks)
    return found | {"tiny": [hop.block[:] for hop in stored]}


def killed(ranks, folder):
    """Begin to propagate; the second rank dies in the second block of columns."""
    _products(ranks, 5)


def resumed(ranks, folder):
    """Propagate what is left: the columns of each product, and the hops."""
    return _products(ranks)


def _products(ranks, last=None):
    products = []

    class Counting(DiskAdjacency):
        def multiply(self, g, *others):
            products.append(g.shape[1])
            if ranks.rank == 1 and len(products) == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().multiply(g, *others)

    propagation.DiskAdjacency, propagation.columns_at_once = Counting, lambda *_: 7
    graph = made()
    stored = stored_hops(on_disk(graph, ranks), prepared(graph), POWERS, STEPS, 0.1, ranks=ranks)
    return products, [hop.block[:] for hop in stored]


def together(what, size, folder: Path):
    """What each of so many processes finds, with the user's cache of now."""
    # one process imports everything, and the others are its copies
    multiprocessing.set_forkserver_preload([__name__, "costa.training", "costa.graphs.streaming"])
    arguments = (what, size, folder, os.environ["XDG_CACHE_HOME"])
    mp.start_processes(_process, arguments, nprocs=size, start_method="forkserver")
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(size)]


def _process(rank, what, size, folder, cache):
    os.environ["XDG_CACHE_HOME"] = cache
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/{what.__name__}", rank=rank, world_size=size)
    ranks = Ranks(rank, size, local=LOCAL[rank] if size == 3 else None)
    torch.save(what(ranks, folder), folder / f"{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()
