"""What a run will take, told before it is spent: seconds, memory and disk, beside what there is.

Seconds are measured for a moment on the spot (:mod:`costa.runs.pace`), unless typical ones (:data:`TYPICAL`) say that
all takes a few; bytes are counted (:mod:`costa.runs.costs`). A method that reads the edges in every step is timed for a
step on the graph itself, once that is in memory. What lies in the cache costs nothing more. The hops that a graph will
choose are not known before they are chosen: the estimate has the default's.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import platformdirs
import torch
from torch_geometric.data import Data

from costa import training
from costa.errors import InputError
from costa.evaluate.baselines import BASELINES
from costa.graphs.hop_files import HopFiles
from costa.graphs.sizes import Sizes
from costa.memory import IMPORTS, size, whole, workspace
from costa.methods import get_method
from costa.methods.base import GradientMethod, Method
from costa.methods.encoding import EncoderMethod
from costa.nn.held_out import PAGERANK
from costa.nn.ranks import ALONE, Ranks
from costa.runs import costs
from costa.runs.costs import TYPICAL, TYPICAL_LAYERS, WORK, Shape
from costa.runs.jobs import cores
from costa.runs.pace import sample_graph, seconds_of_stages
from costa.settings import Train
from costa.settings.presets import Resolved, resolve

FEW = 5.0
"""Seconds that are not worth measuring."""
HALF_GIB = 2**29
SPARE = 0.95
"""The share of the memory and the disk there are that a run may take."""


@dataclass(frozen=True)
class Estimate:
    """What a run will take.

    Attributes:
        seconds: Those of each stage, for all seeds; empty if nobody can tell before the graph is read.
        measured: Whether they were measured, or are typical and few.
        memory: Anonymous memory, in bytes, of all processes.
        cache: Disk that the graph and its hops take in the cache, in bytes; 0 if they are there.
        vectors: Disk that the vectors take, in bytes.
        advice: What to do if memory does not suffice, without a full stop.
        processes: How many of this machine train one run together.
        limit: The memory that the user allows them, in bytes; None if that was not said or cannot be kept to.
        least: The smallest limit that would do, in bytes.
    """

    seconds: Mapping[str, float]
    measured: bool
    memory: int
    cache: int
    vectors: int
    advice: str = ""
    processes: int = 1
    limit: int | None = None
    least: int = 0

    @property
    def total(self) -> float:
        """Seconds of all stages."""
        return sum(self.seconds.values())

    @property
    def together(self) -> str:
        """For how many processes memory is, in words; nothing for one."""
        return f" for {self.processes} processes" if self.processes > 1 else ""


@dataclass(frozen=True)
class Room:
    """What there is, in bytes: memory, and disk in the cache and where the vectors go.

    Attributes:
        memory: Memory that this process can have.
        cache: Where the cache is.
        cache_free: Disk that is free there.
        out: Where the vectors go.
        out_free: Disk that is free there.
        shared: Whether both are on the same disk.
    """

    memory: int
    cache: Path
    cache_free: int
    out: Path
    out_free: int
    shared: bool

    @classmethod
    def now(cls, out: Path | None = None) -> Room:
        """As it is now."""
        cache, out = _there(Path(platformdirs.user_cache_dir("costa"))), _there((out or Path("runs")).absolute())
        shared = cache.stat().st_dev == out.stat().st_dev
        return cls(whole(), cache, free_disk(cache), out, free_disk(out), shared)


def free_disk(folder: Path) -> int:
    """Bytes that are free on the disk of a folder."""
    return shutil.disk_usage(folder).free


def _there(path: Path) -> Path:
    """A path, or the nearest folder above it that exists."""
    return next(each for each in (path, *path.parents) if each.is_dir())


def lacking(needed: Estimate, room: Room) -> str | None:
    """The sentence about what a run lacks and what would fit; None if it fits."""
    if needed.limit is not None and needed.least > needed.limit:
        enough = -(-needed.least // HALF_GIB) * HALF_GIB
        return (
            f"this needs at least {size(needed.least)} of memory{needed.together}, and --memory allows"
            f" {size(needed.limit)}; give --memory {_as_option(enough)}."
        )
    if needed.memory > SPARE * room.memory:
        return (
            f"this needs about {size(needed.memory)} of memory, and {size(room.memory)} are available; {needed.advice}."
        )
    in_cache = needed.cache + (needed.vectors if room.shared else 0)
    if needed.cache and in_cache > SPARE * room.cache_free:
        return (
            f"this needs about {size(in_cache)} of disk in {room.cache}, where {size(room.cache_free)} are free; free"
            " some, or name a folder on a larger disk in XDG_CACHE_HOME."
        )
    if needed.vectors > SPARE * room.out_free:
        return (
            f"the vectors need about {size(needed.vectors)} of disk in {room.out}, where {size(room.out_free)} are"
            " free; free some, or choose another --out."
        )
    return None


def check(needed: Estimate, room: Room) -> None:
    """Refuse a run that does not fit."""
    sentence = lacking(needed, room)
    if sentence is not None:
        raise InputError(sentence)


def settings_before_reading(method: type[Method], sizes: Sizes, name: str, **given: Any) -> Resolved:
    """The settings of a run as far as sizes tell them; a graph's own choice of hops is taken to be the default.

    Args:
        method: The method.
        sizes: Those of the graph.
        name: That of the graph.
        given: The other arguments of :func:`costa.settings.presets.resolve`.
    """
    # as many nodes as the graph, but rows of features for a few of them
    stand_in = Data(x=sample_graph(sizes).x, num_nodes=sizes.nodes, name=name)
    return resolve(_BySize(method), stand_in, **given)


class _BySize:
    """A method whose choice from a graph does without the edges."""

    def __init__(self, method: type[Method]) -> None:
        self._method, self.name, self.Settings = method, method.name, method.Settings

    def choose(self, graph: Data, settings: Any = None, given: Collection[str] = ()) -> dict[str, Any]:
        """As if the hops were given."""
        return self._method.choose(graph, settings, {*given, "encoder.powers"})

    def unused(self, settings: Any) -> dict[str, str]:
        """Those of the method."""
        return self._method.unused(settings)


def estimate(
    method: str,
    resolved: Resolved,
    sizes: Sizes,
    *,
    graph: Data | None = None,
    memory: int | None = None,
    ranks: Ranks = ALONE,
    seeds: int = 1,
    room: Room | None = None,
) -> Estimate:
    """What a run will take.

    Args:
        method: The name of the method.
        resolved: Its settings.
        sizes: Those of the graph.
        graph: The graph, if it was read; without it a method that reads the edges in every step has no seconds.
        memory: The limit of all processes on this machine, in bytes; by default half of what is available.
        ranks: The processes that train each run together, and their device.
        seeds: Runs.
        room: What there is, as it is now by default; what does not fit is not timed.
    """
    kind, values, device = get_method(method), resolved.values, ranks.device
    plan = _Plan(kind, values, sizes, workspace(memory), ranks)
    at_once = seeds_at_once(method, resolved, sizes, plan.room if sizes.on_disk else None, device, seeds)
    room = room or Room.now()
    counted = Estimate(
        seconds={},
        measured=False,
        memory=_memory_of_seeds(plan, at_once),
        cache=_new_in_cache(plan) if sizes.on_disk else 0,
        vectors=seeds * costs.disk_of_vectors(sizes.nodes, plan.width, table=sizes.named),
        advice=_advice(plan, SPARE * room.memory),
        processes=ranks.sharing,
        limit=memory if sizes.on_disk else None,
        least=_Plan(kind, values, sizes, 0, ranks).memory,
    )
    if lacking(counted, room) is not None:
        return counted
    seconds, measured = _seconds(plan, resolved, graph, device)
    # seeds that train at the same time take as long as one
    rounds = math.ceil(seeds / at_once)
    once = {"read", "choose", "propagate"} if sizes.on_disk else {"choose"}
    # the loss is computed by each of several processes, and what is left to the first one keeps the others waiting
    shared = {"propagate", "embed"} if sizes.on_disk else {"embed"}
    return replace(
        counted,
        seconds={
            stage: each * (1 if stage in once else rounds) / (ranks.size if stage in shared else 1)
            for stage, each in seconds.items()
        },
        measured=measured,
    )


def seeds_at_once(
    method: str, resolved: Resolved, sizes: Sizes, memory: int | None, device: torch.device, seeds: int
) -> int:
    """How many seeds are trained at the same time, each in a process of its own: as cores and memory allow.

    1 means in this process. A baseline takes less time than starting a process. A GPU is shared otherwise.

    Args:
        method: The name of the method.
        resolved: Its settings.
        sizes: Those of the graph.
        memory: The bytes that arrays may take, in all processes together, of a graph on disk; None for one in memory.
        device: Device of training.
        seeds: Runs.
    """
    if device.type != "cpu" or method in BASELINES:
        return 1
    most = min(seeds, cores())
    if memory is None:
        return most
    # this process waits, but keeps what it has imported
    return max(1, min(most, memory // _Plan(get_method(method), resolved.values, sizes, 0).memory))


def _memory_of_seeds(plan: _Plan, at_once: int) -> int:
    """Bytes of all processes; those of a graph on disk are started when the first one has written the hops."""
    if at_once == 1 or not plan.sizes.on_disk:
        return plan.memory * at_once
    return max(plan.memory, IMPORTS + at_once * _Plan(plan.method, plan.values, plan.sizes, 0).memory)


class _Plan:
    """A method with its settings, and the sizes of its arrays for a graph."""

    def __init__(self, method: type[Method], values: Any, sizes: Sizes, room: int, ranks: Ranks = ALONE) -> None:
        self.method, self.values, self.sizes, self.room, self.ranks = method, values, sizes, room, ranks
        self.train: Train | None = getattr(values, "train", None)
        encoder = getattr(values, "encoder", None)
        rank = getattr(getattr(values, "features", None), "rank", 0)
        columns = min(rank, sizes.columns) if rank else sizes.columns
        self.by_rows = getattr(encoder, "kind", None) == "hops"
        self.stored: str = getattr(encoder, "stored", "float32")
        powers = tuple(getattr(encoder, "powers", ())) if self.by_rows or self.train is None else ()
        steps = getattr(encoder, "steps", 0)
        epochs = 1 if self.train is None else self.train.epochs
        self.shape = Shape(sizes.nodes, sizes.edges, columns, powers, steps, epochs, sizes.on_disk)
        self.widths = getattr(encoder, "widths", None) or [getattr(encoder, "width", 0)] * getattr(encoder, "layers", 1)
        self.groups = self.train.groups if self.train is not None else 1

    @property
    def width(self) -> int:
        """Columns of a vector."""
        if self.by_rows:
            encoder = self.values.encoder
            return int(self.shape.hops * encoder.width + min(encoder.columns, self.shape.hops * self.shape.columns))
        return int(max([*self.widths[-1:], 0]) or self.shape.columns * max(1, self.shape.hops))

    @property
    def memory(self) -> int:
        """Bytes of all processes of this machine that train one run together."""
        return self.memory_with(self.groups)

    def memory_with(self, groups: int) -> int:
        """The same, if a step reads one of so many groups of parts."""
        sizes, shape = self.sizes, self.shape
        if self.by_rows or self.train is None:
            if sizes.on_disk and self.method.name != "untrained":
                return costs.memory_on_disk(sizes, shape.columns, self.room, self.ranks)
            return self.ranks.sharing * costs.memory_of_hops(sizes, shape.columns, shape.hops, self.width)
        return costs.memory_of_layers(sizes, self.widths, self.method.views, sizes.nodes // groups)


def _seconds(
    plan: _Plan, resolved: Resolved, graph: Data | None, device: torch.device
) -> tuple[dict[str, float], bool]:
    sizes, shape = plan.sizes, plan.shape
    if not (issubclass(plan.method, EncoderMethod) and issubclass(plan.method, GradientMethod)):
        return {}, False  # what it fits takes as long as it takes
    if not plan.by_rows:
        few = TYPICAL_LAYERS * costs.work_of_layers(shape, plan.widths, plan.method.views)
        if few < FEW:
            return {"train": few}, False
        if graph is None:
            return {}, False
        return {"train": training.expected_seconds(plan.method, plan.values, graph, device)}, True
    propagated = sizes.on_disk and _propagated(sizes.folder, plan)
    chosen = graph is None and resolved.origins["encoder.powers"] in ("default", "graph")
    typical = {stage: TYPICAL[stage] * work(shape) for stage, work in WORK.items()}
    skipped = {"read": sizes.read, "choose": not chosen, "propagate": propagated, "parquet": not sizes.named}
    typical = {stage: each for stage, each in typical.items() if not skipped.get(stage)}
    if sum(typical.values()) < FEW:
        return typical, False
    place = sizes.folder.parent if sizes.folder is not None else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        room = plan.room if sizes.on_disk else None
        seconds = seconds_of_stages(
            plan.method, plan.values, shape, sizes, room, device, Path(folder), propagated=propagated, chosen=chosen
        )
    return {stage: each for stage, each in seconds.items() if not skipped.get(stage)}, True


def _propagated(folder: Path | None, plan: _Plan) -> bool:
    """Whether the hops are in the cache, however X was prepared."""
    shape = plan.shape
    keys = [*shape.powers, *([PAGERANK] if shape.steps else [])]
    teleport = getattr(plan.values.encoder, "teleport", 0.1) if hasattr(plan.values, "encoder") else 0.1
    prepared = [] if folder is None else sorted(folder.glob("hops/*"))
    return any(not any(map(HopFiles(each, shape.steps, teleport, plan.stored).lacks, keys)) for each in prepared)


def _new_in_cache(plan: _Plan) -> int:
    """Bytes that the run adds to the cache, at its fullest."""
    graph, meanwhile = costs.disk_of_graph(plan.sizes)
    hops = 0 if _propagated(plan.sizes.folder, plan) else costs.disk_of_hops(plan.shape, plan.stored)
    return graph + max(meanwhile, hops)


def _advice(plan: _Plan, room: float) -> str:
    """What would fit into so many bytes of memory, if this does not."""
    sizes = plan.sizes
    tables = sizes.edge_file is not None and sizes.feature_file is not None
    if (plan.by_rows or plan.train is None) and not sizes.on_disk and tables:
        limit = max(2 * HALF_GIB, int(room / 2) // HALF_GIB * HALF_GIB)
        on_disk = _Plan(plan.method, plan.values, replace(sizes, on_disk=True), workspace(limit), plan.ranks)
        if on_disk.memory <= room:
            return f"--memory {_as_option(limit)} keeps the graph on disk"
    if not plan.by_rows and plan.train is not None and plan.method.takes_parts:
        for groups in (2**power for power in range(1, 17)):
            if groups > plan.groups and plan.memory_with(groups) <= room:
                return f"--set train.parts={plan.train.group * groups} trains on a part of the graph at a time"
    if not plan.by_rows and getattr(plan.method, "takes_hops", False):
        return "encoder.kind = hops, costa-mv's default, trains on rows without edges, and the graph may stay on disk"
    return f"a graph of about {_fewer(plan, room):,} nodes would fit"


def _as_option(limit: int) -> str:
    return size(limit).replace(" ", "").replace(".0", "")


def _fewer(plan: _Plan, room: float) -> int:
    """Nodes of a graph of this shape that fit, rounded down to two digits."""
    fixed = _Plan(plan.method, plan.values, _of_nodes(plan.sizes, 2), plan.room, plan.ranks).memory
    nodes = max(2, int(plan.sizes.nodes * max(0.0, room - fixed) / max(1, plan.memory - fixed)))
    unit = 10 ** max(0, len(str(nodes)) - 2)
    return nodes // unit * unit


def _of_nodes(sizes: Sizes, nodes: int) -> Sizes:
    share = nodes / sizes.nodes
    entries = None if sizes.entries is None else round(share * sizes.entries)
    return replace(sizes, nodes=nodes, edges=round(share * sizes.edges), entries=entries)
