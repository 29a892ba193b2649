"""``costa estimate``, and the first line of ``costa train``: what a run will take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import typer

from costa.cli import options
from costa.cli.console import print_table, said_of, say, say_stage, tell
from costa.errors import InputError
from costa.memory import parse_size, size
from costa.wording import duration

if TYPE_CHECKING:
    from costa.nn.ranks import Ranks
    from costa.runs import Job
    from costa.runs.estimate import Estimate, Room

T = TypeVar("T")


def estimate(
    context: typer.Context,
    graph: options.OptionalGraph = None,
    edges: options.Edges = None,
    features: options.Features = None,
    nodes: options.Nodes = None,
    columns: options.Columns = None,
    method: options.Method = "costa-mv",
    out: options.Out = None,
    seeds: options.Seeds = None,
    epochs: options.Epochs = None,
    device: options.Device = "auto",
    preset: options.Preset = "none",
    config: options.Config = None,
    set_: options.Set = None,
    data_dir: options.DataDir = None,
    memory: options.Memory = None,
) -> None:
    """Say how long `costa train` with the same options will take, and how much memory and disk, before it is run.

    The exit code is 1 if there is not enough memory or disk.
    """
    from costa import settings, training
    from costa.graphs import load_graph, name_files
    from costa.graphs.sizes import sizes_of
    from costa.methods import get_method
    from costa.runs.estimate import Room, lacking
    from costa.runs.estimate import estimate as estimated
    from costa.settings import presets

    ranks = context.with_resource(training.joined(training.resolve_device(device)))
    if not ranks.first:
        return
    spec = name_files(graph, edges, features, nodes)
    given = settings.parse_assignments(set_ or [])
    layers: dict[str, Any] = {"preset": preset, "config": config, "given": given, "given_by": "--set"}
    layers |= {"epochs": epochs, "epochs_by": "--epochs"}
    runs, room, limit = seeds or 1, Room.now(out), None if memory is None else parse_size(memory)
    found, _ = _from_headers(spec, method, layers, memory, ranks, runs, room)
    sentence = None if found is None else lacking(found, room)
    if found is None or (sentence is None and not found.seconds):
        # only the graph itself can tell
        data = load_graph(spec, columns=said_of(columns), data_dir=data_dir, memory=memory, report=say_stage)
        resolved = presets.resolve(get_method(method), data, **layers)
        found = estimated(
            method, resolved, sizes_of(data), graph=data, memory=limit, ranks=ranks, seeds=runs, room=room
        )
        sentence = lacking(found, room)
    if sentence is None:
        print_stages(found)
    say(f"memory  {size(found.memory)}{found.together}, of {size(room.memory)} that are available")
    if found.cache:
        say(f"disk    {size(found.cache)} in {room.cache}, where {size(room.cache_free)} are free")
    say(f"disk    {size(found.vectors)} in {room.out} for the vectors, where {size(room.out_free)} are free")
    if sentence is not None:
        say(f"\n{sentence[0].upper()}{sentence[1:]}")
        raise typer.Exit(1)


def sentence_of(found: Estimate, *, resumed: bool = False, evaluated: bool = False) -> str:
    """What a run takes, in a line.

    >>> from costa.runs.estimate import Estimate
    >>> print(sentence_of(Estimate({"train": 40.0, "embed": 12.0}, True, 3 * 2**29, 2**30, 2**31), evaluated=True))
    About 52 s, 1.5 GiB of memory and 3.0 GiB of disk, then the evaluation.
    """
    amounts = f"{size(found.memory)} of memory{found.together} and {size(found.cache + found.vectors)} of disk"
    time = (f"about {duration(found.total)}" if found.measured else "a few seconds") + ", " if found.seconds else ""
    sentence = f"{'at most ' * resumed}{time}{amounts}{', then the evaluation' * evaluated}."
    return sentence[0].upper() + sentence[1:]


def print_stages(found: Estimate) -> None:
    """Print the seconds of each stage, if they were measured, and of all."""
    if not found.seconds:
        say("Nobody knows how long this method takes before it is run.\n")
        return
    rows = [[stage, duration(each)] for stage, each in found.seconds.items()]
    print_table(("stage", "time"), [*rows, ["in all", duration(found.total)]], right=("time",))
    say("Evaluation on labels is not included.\n")


def before_reading(
    spec: str,
    method: str,
    layers: Mapping[str, Any],
    memory: str | None,
    ranks: Ranks,
    out: Path | None,
    seeds: int,
    *,
    resumed: bool,
    probe: bool,
) -> bool:
    """Refuse a run that does not fit before its graph is read; whether a line has said what it takes.

    Args:
        spec: The graph.
        method: The name of the method.
        layers: The arguments of :func:`costa.settings.presets.resolve`.
        memory: The user's --memory.
        ranks: The processes; the first one measures.
        out: The user's --out.
        seeds: Runs.
        resumed: Whether a run may go on that has begun.
        probe: Whether the vectors are evaluated, if there are labels.
    """
    from costa.runs.estimate import Room, check

    def told() -> bool:
        room = Room.now(out)
        found, labels = _from_headers(spec, method, layers, memory, ranks, seeds, room)
        if found is None:
            return False
        check(found, room)
        if found.seconds:
            tell(sentence_of(found, resumed=resumed, evaluated=probe and labels))
        return bool(found.seconds)

    return _told(ranks, told)


def _told(ranks: Ranks, make: Callable[[], T]) -> T:
    """What the first process has made, on all; if it refuses, all end, and it says why."""

    def attempt() -> tuple[T | None, str | None]:
        try:
            return make(), None
        except InputError as problem:
            return None, str(problem)

    made, refusal = ranks.told(attempt)
    if refusal is None:
        return cast("T", made)
    if ranks.first:
        raise InputError(refusal)
    raise typer.Exit(2)


def of_job(job: Job, memory: str | None, out: Path | None, seeds: int) -> None:
    """Say what a run takes whose graph was read; refuse it if that is more than there is."""
    from costa.graphs.describe import is_labelled
    from costa.graphs.sizes import sizes_of
    from costa.runs.estimate import Room, check
    from costa.runs.estimate import estimate as estimated

    def told() -> None:
        limit, room = None if memory is None else parse_size(memory), Room.now(out)
        found = estimated(
            job.method, job.resolved, sizes_of(job.graph), graph=job.graph, memory=limit, ranks=job.ranks, seeds=seeds
        )
        check(found, room)
        tell(sentence_of(found, resumed=job.resume, evaluated=job.probe and is_labelled(job.graph)))

    _told(job.ranks, told)


def _from_headers(
    spec: str, method: str, layers: Mapping[str, Any], memory: str | None, ranks: Ranks, seeds: int, room: Room
) -> tuple[Estimate | None, bool]:
    """What the headers of a graph's files tell, None if not how large it is; and whether it seems to have labels."""
    from costa.graphs import graph_sizes
    from costa.methods import get_method
    from costa.runs.estimate import estimate as estimated
    from costa.runs.estimate import settings_before_reading

    sizes = graph_sizes(spec, memory=memory)
    if sizes is None:
        return None, False
    resolved = settings_before_reading(get_method(method), sizes, Path(spec).name, **layers)
    limit = None if memory is None else parse_size(memory)
    return estimated(method, resolved, sizes, memory=limit, ranks=ranks, seeds=seeds, room=room), sizes.labels > 0
