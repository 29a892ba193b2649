"""Check whether a run may use a folder, and what the folder holds."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from costa import settings
from costa.errors import InputError
from costa.graphs import load_graph, named_files
from costa.graphs.again import read_again
from costa.graphs.held_edges import HeldOut
from costa.graphs.identity import digest
from costa.graphs.storage import StoredGraph
from costa.methods import get_method
from costa.runs.columns import load_columns
from costa.runs.files import CONFIG, METRICS, read_config
from costa.runs.jobs import Job
from costa.runs.metrics import read_metrics

TRAINED_ON = ("x", "edge_index", "edge_weight")
IDS = 2**18
"""Ids that are hashed at a time."""


def claim(folder: Path, method: str, graph: Data, seed: int, *, resume: bool, fresh_is_fine: bool = False) -> None:
    """Refuse a folder that holds something else; nothing is written yet.

    Args:
        folder: The RUN folder.
        method: The run's method.
        graph: The run's graph.
        seed: The run's random seed.
        resume: Whether to continue the run in the folder.
        fresh_is_fine: With ``resume``, whether a run that never started may start now.
    """
    if (folder / CONFIG).exists():
        config = read_config(folder)
        what = f"{config['method']} on {config['dataset']}, seed {config['seed']}"
        if (config["method"], config["dataset"], config["seed"]) != (method, graph.name, seed):
            raise InputError(f"{folder} already holds another run ({what}); choose another --out.")
        if not resume:
            remedy = "choose another --out, or continue it with --resume"
            if has_ended(folder):
                remedy = f"it has ended and `costa report {folder}` shows it; to train again choose another --out"
            raise InputError(f"{folder} already holds this run ({what}); {remedy}.")
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and is not a run of costa; choose another --out.")
    elif resume and not fresh_is_fine:
        raise InputError(f"there is no run to resume in {folder}; train without --resume first.")


def has_ended(folder: Path) -> bool:
    """Whether the folder holds a run that needs no more training."""
    return (folder / METRICS).exists() and read_metrics(folder).status != "interrupted"


def check_same_settings(folder: Path, flat: dict[str, Any]) -> None:
    """Refuse to resume a run with other settings than it started with.

    Only the number of epochs may change, if the run has not ended and its epochs do not depend on that number.
    """
    config = read_config(folder)
    free = set() if has_ended(folder) or get_method(config["method"]).scheduled else {"train.epochs"}
    unknown = [key for key in flat if key not in config["settings"]]
    if unknown and not has_ended(folder):
        raise InputError(
            f"the run in {folder} was started by an earlier version, which did not have {unknown[0]} and drew other"
            " random numbers; train again into another --out."
        )
    epochs = flat.get("train.epochs", 0)
    if has_ended(folder) and epochs > config["settings"].get("train.epochs", epochs):
        raise InputError(
            f"the run in {folder} has ended after its {config['settings']['train.epochs']} epochs, and what its"
            f" optimizer remembered was not kept, so it cannot go on to {epochs}; train again with --epochs {epochs}"
            " into another --out."
        )
    # an ended run used the default of a setting that did not exist yet
    original = json.loads(json.dumps(settings.flatten(get_method(config["method"]).Settings()))) | config["settings"]
    for key, value in json.loads(json.dumps(flat)).items():
        if key not in free and original.get(key) != value:
            raise InputError(
                f"the run in {folder} started with {key} = {original.get(key)}, not {value}; resume it with its own"
                " settings, or train again into another --out."
            )


def load_run_graph(folder: Path, data_dir: Path | None, memory: str | None = None, moved_to: str | None = None) -> Data:
    """The graph that a run was trained on, without the edges that it held out, kept on disk if the run's was.

    Args:
        folder: A RUN folder.
        data_dir: Folder that is searched first for benchmark graphs.
        memory: As for :func:`costa.graphs.load_graph`; by default what the run was given.
        moved_to: Where the graph is now, if not where it was; its ids, features and edges must be the same.
    """
    return load_run_edges(folder, data_dir, memory, moved_to).training


@dataclass(frozen=True)
class RunEdges:
    """The graph of a run with all its edges, the graph it was trained on, and the edges held out (None if none)."""

    whole: Data
    training: Data
    held: Tensor | None = None


def load_run_edges(
    folder: Path, data_dir: Path | None, memory: str | None = None, moved_to: str | None = None
) -> RunEdges:
    """As :func:`load_run_graph`, with the edges that the run held out."""
    config = read_config(folder)
    where = moved_to or config["graph"]
    files = named_files(where) if os.path.isabs(where) else ()
    missing = [file for file in files if file and not Path(file).exists()]
    if missing and moved_to is None:
        raise InputError(
            f"the run in {folder} was trained on {missing[0]}, which no longer exists; put it back, or say with --graph"
            " where it is now."
        )
    columns, limit = load_columns(folder), memory or config.get("memory")
    with read_again():
        graph = load_graph(where, columns=columns, data_dir=data_dir, memory=limit)
    if moved_to is not None:
        graph.name = config["dataset"]  # a folder may have another name now
    check_same_nodes(folder, graph)
    held_out = recorded_held_out(folder)
    edges = RunEdges(graph, graph) if held_out is None else RunEdges(graph, *held_out.again(graph))
    check_same_content(folder, edges.training)
    return edges


def recorded_held_out(folder: Path) -> HeldOut | None:
    """How a run held edges out; None if it did not."""
    entry = read_config(folder).get("held_out_edges")
    try:
        return None if entry is None else HeldOut(**entry)
    except TypeError:
        raise InputError(f"{folder / CONFIG} is damaged: its 'held_out_edges' is wrong; train the run again.") from None


def check_same_held_out(folder: Path, held_out: HeldOut | None) -> None:
    """Refuse to resume a run with other edges held out than it started with."""
    started = recorded_held_out(folder)
    if started == held_out:
        return
    if started is None:
        raise InputError(
            f"the run in {folder} has seen all edges; resume it without --hold-out-edges, or train again into another"
            " --out."
        )
    if held_out is None or (held_out.share, held_out.seed) != (started.share, started.seed):
        raise InputError(
            f"the run in {folder} started with --hold-out-edges {started.share:g}, drawn with the seed {started.seed};"
            " resume it with the command that started it."
        )
    raise InputError(
        f"the graph has other edges than when the run in {folder} started, so others would be held out; restore them,"
        " or train again into another --out."
    )


def nodes_digest(graph: Data) -> str | None:
    """A digest of the node ids in their order, as a list in JSON; None if the nodes have no ids."""
    ids = graph.get("node_ids")
    if ids is None:
        return None
    whole = hashlib.sha256(b"[")
    for start in range(0, len(ids), IDS):
        part = json.dumps([str(node) for node in ids[start : start + IDS]])[1:-1]
        whole.update((", " * (start > 0) + part).encode())
    whole.update(b"]")
    return whole.hexdigest()


def check_same_nodes(folder: Path, graph: Data) -> None:
    """Refuse other nodes than the run's, or another order: labels and ids would belong to other vectors."""
    started = read_config(folder).get("nodes")
    if started is not None and started != nodes_digest(graph):
        raise InputError(
            f"{graph.name} has other nodes, or the same in another order, than when {folder} was trained; restore them,"
            " or train again into another --out."
        )


def content_digest(graph: Data) -> str:
    """A digest of what a model is trained on: the features and their names, and the edges with their weights.

    That of a graph on disk, which is one of its files, begins with another word.
    """
    names = json.dumps(graph.get("feature_names"))
    if isinstance(graph, StoredGraph):
        return f"disk {hashlib.sha256((names + graph.content).encode()).hexdigest()}"
    return f"memory {digest(graph, names, TRAINED_ON)}"


def check_same_content(folder: Path, graph: Data) -> None:
    """Refuse other features or edges than the run's, as far as they can be compared."""
    started, now = read_config(folder).get("content"), content_digest(graph)
    if started is not None and started.split()[0] == now.split()[0] and started != now:
        raise InputError(
            f"{graph.name} has other features or edges than when the run in {folder} started; restore them, make"
            " vectors of the new ones with `costa embed`, or train again into another --out."
        )


def claim_folders(
    job: Job,
    seeds: Sequence[int],
    out: Path | None,
    *,
    several: bool,
    called: str | None = None,
    fresh_is_fine: bool = False,
) -> dict[int, Path]:
    """The RUN folder of each seed, each accepted by :func:`claim`.

    Args:
        job: What to train.
        seeds: Random seeds.
        out: The user's --out; ``runs/GRAPH-METHOD-SEED`` by default.
        several: Whether ``out`` is the folder that holds the runs, not a run itself.
        called: What stands for METHOD in a folder's name, if not the method.
        fresh_is_fine: As for :func:`claim`; always so for several runs.
    """
    folders = run_folders(job.graph, called or job.method, seeds, out, several=several)
    for seed, folder in folders.items():
        claim(folder, job.method, job.graph, seed, resume=job.resume, fresh_is_fine=several or fresh_is_fine)
    return folders


def run_folders(graph: Data, called: str, seeds: Sequence[int], out: Path | None, *, several: bool) -> dict[int, Path]:
    """The RUN folder of each seed, whatever it holds; the arguments are those of :func:`claim_folders`."""
    names = {seed: f"{graph.name}-{called}-{seed}" for seed in seeds}
    return {
        seed: Path("runs") / name if out is None else out / name if several else out for seed, name in names.items()
    }
