"""A RUN folder: what ``costa train`` writes, what ``costa probe`` and ``costa embed`` read.

- ``model.safetensors``: the weights, feature scaling included
- ``config.json``: method, graph, seed, every setting and where it came from
- ``embeddings.npy``: the nodes' vectors; of a user's own graph with its ids too, ``embeddings.parquet`` (or ``.csv``)
- ``metrics.json``: what was measured; its fields are a contract
- ``log.csv``: the loss of every epoch
- ``checkpoint.safetensors``: while it trains, and after an interruption
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from costa import __version__, health, settings, training
from costa.errors import InputError
from costa.experiments.presets import Resolved
from costa.floors import floor_scores
from costa.graphs import load_graph, named_files
from costa.methods import get_method
from costa.methods.base import Method
from costa.probe import ProbeResult, classes_of, cluster, linear_probe, linear_probes
from costa.wording import counted
from costa.writing import locked, replacing

SCHEMA = 1
CONFIG, METRICS, MODEL, EMBEDDINGS = "config.json", "metrics.json", "model.safetensors", "embeddings.npy"
DEFAULT_PROTOCOLS = ("random-10-10-80", "random-2-2-96")
"""What a training is judged by unless asked otherwise; the floors are given for the first of all."""
REPEATS = 20
"""Splits of each."""


def describe(graph: Data) -> str:
    """What was read, in a line.

    >>> describe(load_graph("digits"))
    'digits: 1,797 nodes, 7,522 edges, 64 features, 10 classes'
    """
    loops = int((graph.edge_index[0] == graph.edge_index[1]).sum())
    edges = counted((graph.num_edges - loops) // 2 + loops, "edge")
    weighted = " (weighted)" if graph.get("edge_weight") is not None else ""
    y = graph.get("y")
    classes = 0 if y is None else len(classes_of(y))
    labels = "1 class" if classes == 1 else f"{classes} classes" if classes else "no labels"
    nodes, features = counted(graph.num_nodes, "node"), counted(graph.num_features, "feature")
    return f"{graph.name}: {nodes}, {edges}{weighted}, {features}, {labels}"


def claim(folder: Path, method: str, graph: Data, seed: int, *, resume: bool, fresh_is_fine: bool = False) -> None:
    """Refuse a folder that holds something else; nothing is written yet, and nothing already on disk is lost.

    Args:
        folder: Where the run shall be.
        method: Its method.
        graph: Its graph.
        seed: Its seed.
        resume: Whether to go on with what is there.
        fresh_is_fine: With ``resume``, whether a run that never started may start now.
    """
    if (folder / CONFIG).exists():
        found = read_config(folder)
        what = f"{found['method']} on {found['dataset']}, seed {found['seed']}"
        if (found["method"], found["dataset"], found["seed"]) != (method, graph.name, seed):
            raise InputError(f"{folder} already holds another run ({what}); choose another --out.")
        if not resume:
            remedy = "choose another --out, or --resume it"
            if has_ended(folder):
                remedy = f"it has ended, and `costa report {folder}` shows it; to train anew choose another --out"
            raise InputError(f"{folder} already holds this run ({what}); {remedy}.")
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and is not a run of costa; choose another --out.")
    elif resume and not fresh_is_fine:
        raise InputError(f"there is no run to resume in {folder}; train without --resume first.")


def has_ended(folder: Path) -> bool:
    """Whether the folder holds a run that needs no more training."""
    return (folder / METRICS).exists() and read_metrics(folder)["status"] != "interrupted"


@dataclass(frozen=True)
class Job:
    """What is trained, on what, and how: all that the seeds of a protocol have in common.

    Attributes:
        graph: Loaded and checked.
        spec: What the user called it, so that ``costa probe`` finds it again.
        method: One of :data:`costa.methods.METHODS`.
        resolved: From :func:`costa.experiments.presets.resolve`.
        device: Where to train.
        probe: Whether to judge the vectors, where the graph has labels.
        resume: Go on from the folder's checkpoint; of a run that had ended, only a judgement that is missing is made.
        protocols: What the vectors are judged by; the first must be that of the floors.
        paired: Whether the run of seed s is judged on split s alone, and by nothing but the linear probe: all that a
            table needs, and a twentieth of the work.
        announce: Told of work that takes a while, or is left out.
    """

    graph: Data
    spec: str
    method: str
    resolved: Resolved
    device: torch.device
    probe: bool = True
    resume: bool = False
    protocols: Sequence[str] = DEFAULT_PROTOCOLS
    paired: bool = False
    announce: Callable[[str], None] = lambda text: None

    @property
    def train(self) -> settings.Train | None:
        """The settings of the loop; None for a method that is not trained."""
        train: settings.Train | None = getattr(self.resolved.values, "train", None)
        return train


def is_complete(folder: Path, *, probe: bool) -> bool:
    """Whether nothing is left to do for the run: it has ended, and was judged where that is asked for."""
    if not has_ended(folder):
        return False
    metrics = read_metrics(folder)
    # vectors that came to nothing are never judged
    return not probe or metrics["status"] != "ok" or bool(metrics["probes"])


def execute(
    job: Job,
    folder: Path,
    seed: int,
    *,
    interruptible: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
    report: training.Report | None = None,
) -> dict[str, Any]:
    """Train, embed, probe; write the RUN folder; return its metrics.

    What training made is on disk before anything is judged, and the checkpoint goes last: whatever happens in between,
    ``resume`` finds it.

    Args:
        job: What to do.
        folder: Accepted by :func:`claim`.
        seed: Of the weights and of everything random in training.
        interruptible: Whether the first Ctrl-C ends the training after the epoch it is in, keeping what there is.
        should_stop: Whatever else may end it so.
        report: Hears of the epochs.
    """
    ended = begin(job, folder, seed)
    if ended is not None:
        return judge_all(job, [folder], [ended])[0]
    reset_peak_memory(job.device)
    with leaving_nothing(job, [folder]):
        method = training.build(get_method(job.method), job.resolved.values, job.graph, seed, job.device)
        # without epochs there is none to end after
        waits = interruptible and job.train is not None
        with training.stop_on_interrupt() if waits else contextlib.nullcontext(lambda: False) as asked:
            outcome = training.train(
                method,
                job.graph,
                job.train,
                folder=folder,
                resume=job.resume,
                report=report,
                should_stop=lambda: asked() or should_stop(),
            )
    z, took = embedded(method, job.graph)
    metrics = finish(job, folder, seed, outcome, z, method.state_dict(), embed_seconds=took)
    return judge_all(job, [folder], [metrics])[0]


def begin(job: Job, folder: Path, seed: int) -> dict[str, Any] | None:
    """Write ``config.json``; or return the metrics of a run that has ended already, to be resumed."""
    flat = settings.flatten(job.resolved.values)
    if job.resume and (folder / CONFIG).exists():
        _same_nodes(folder, job.graph)
        _same_settings(folder, flat)
        if has_ended(folder):
            return read_metrics(folder)
    folder.mkdir(parents=True, exist_ok=True)
    where = job.spec if job.graph.get("node_ids") is None else str(Path(job.spec).resolve())
    config = {
        "schema": SCHEMA,
        "method": job.method,
        "graph": where,
        "dataset": job.graph.name,
        "seed": seed,
        "in_features": job.graph.num_features,
        "nodes": _digest(job.graph),
        "settings": flat,
        "origins": job.resolved.origins,
    }
    _write_json(folder / CONFIG, config)
    return None


@contextlib.contextmanager
def leaving_nothing(job: Job, folders: Sequence[Path]) -> Iterator[None]:
    """What turns out wrong only with the graph in hand must not leave folders taken by runs that never were."""
    try:
        yield
    except Exception:
        for folder in folders if not job.resume else []:
            if not {file.name for file in folder.iterdir()} - {CONFIG, training.LOG}:
                for name in (CONFIG, training.LOG):
                    (folder / name).unlink(missing_ok=True)
                folder.rmdir()
        raise


def embedded(method: Method, graph: Data) -> tuple[torch.Tensor, float]:
    """Z on the CPU, and the seconds it took."""
    began = time.perf_counter()
    return method.embed(graph).float().cpu(), time.perf_counter() - began


def finish(
    job: Job,
    folder: Path,
    seed: int,
    outcome: training.Outcome,
    z: torch.Tensor,
    state: dict[str, torch.Tensor],
    *,
    embed_seconds: float,
    together: int = 1,
) -> dict[str, Any]:
    """Write what training made, and return the metrics, not judged yet.

    Args:
        job: What was done.
        folder: Begun.
        seed: Of this run.
        outcome: How its training ended.
        z: Its vectors, on the CPU.
        state: Its weights.
        embed_seconds: What its vectors took to make.
        together: How many runs its seconds and its memory were shared by.
    """
    save_state(folder, state)
    np.save(folder / EMBEDDINGS, z.numpy())
    if job.graph.get("node_ids") is not None:
        write_vectors(folder / _table_name(), z.numpy(), job.graph.node_ids)
    alive = health.status(z)
    metrics = {
        "schema": SCHEMA,
        "method": job.method,
        "dataset": job.graph.name,
        "seed": seed,
        "status": alive if alive == "diverged" or outcome.status == "ok" else outcome.status,
        "epochs": outcome.epochs,
        "seconds": outcome.seconds,
        "embed_seconds": embed_seconds,
        "trained_together": together,
        "peak_memory_bytes": _peak_memory(job.device),
        "device": torch.cuda.get_device_name(job.device) if job.device.type == "cuda" else "cpu",
        "commit": commit(),
        "versions": versions(),
        "health": health.measure(z, job.device),
        "probes": [],
        "clustering": None,
        "floor": None,
    }
    _write_json(folder / METRICS, metrics)
    if outcome.status != "interrupted":
        (folder / training.CHECKPOINT).unlink(missing_ok=True)
    return metrics


def _same_settings(folder: Path, flat: dict[str, Any]) -> None:
    """A run goes on with the settings it began with.

    Only the number of epochs may change, while it has not ended and no epoch depends on it.
    """
    config = read_config(folder)
    free = set() if has_ended(folder) or get_method(config["method"]).scheduled else {"train.epochs"}
    unknown = [key for key in flat if key not in config["settings"]]
    if unknown and not has_ended(folder):
        raise InputError(
            f"the run in {folder} was begun by an earlier version, which did not know {unknown[0]} and drew its random"
            " numbers otherwise; train anew into another --out."
        )
    # what an ended run did not know of, it had by default
    began = json.loads(json.dumps(settings.flatten(get_method(config["method"]).Settings()))) | config["settings"]
    for key, value in json.loads(json.dumps(flat)).items():
        if key not in free and began.get(key) != value:
            raise InputError(
                f"the run in {folder} began with {key} = {began.get(key)}, not {value}; resume it with the settings it"
                " began with, or train anew into another --out."
            )


def judge_all(job: Job, folders: Sequence[Path], collected: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Judge the runs that ended well and were not judged yet, all of them at once, and write that down.

    Where the job asks for no judgement, or the graph has no labels, they stay as they are.
    """
    judged = list(collected)
    if not job.probe or not is_labelled(job.graph):
        return judged
    waiting = [i for i, metrics in enumerate(judged) if metrics["status"] == "ok" and not metrics["probes"]]
    if not waiting:
        return judged
    vectors = [load_embeddings(folders[index]) for index in waiting]
    if job.paired:
        found = judge_pairs(vectors, [judged[index]["seed"] for index in waiting], job)
    else:
        found = judge(vectors, job.graph, job.device, job.protocols, job.announce)
    for index, fields in zip(waiting, found, strict=True):
        judged[index] = collected[index] | fields
        _write_json(folders[index] / METRICS, judged[index])
    return judged


def judge(
    vectors: Sequence[torch.Tensor],
    graph: Data,
    device: torch.device,
    protocols: Sequence[str] = DEFAULT_PROTOCOLS,
    announce: Callable[[str], None] = lambda text: None,
) -> list[dict[str, Any]]:
    """The fields ``probes``, ``clustering`` and ``floor``; a protocol that needs more labels is left out, and said."""
    probes: list[list[dict[str, Any]]] = [[] for _ in vectors]
    floor = None
    for protocol in protocols:
        try:
            found = _probes(vectors, graph, device, protocol)
        except InputError as problem:
            announce(f"Not judged: {problem}")
            continue
        for own, result in zip(probes, found, strict=True):
            own.append(result)
        if protocol == DEFAULT_PROTOCOLS[0]:
            floor = floor_scores(graph, protocol, REPEATS, device, announce)
    clusters = [cluster(z, graph.y, device=device) for z in vectors]
    return [
        {"probes": own, "clustering": {"nmi": clustered.nmi, "ari": clustered.ari}, "floor": floor}
        for own, clustered in zip(probes, clusters, strict=True)
    ]


def judge_pairs(vectors: Sequence[torch.Tensor], seeds: Sequence[int], job: Job) -> list[dict[str, Any]]:
    """The field ``probes``, each with the ``split`` it is of: seed s on split s.

    Without randomness all seeds are one run, which is judged on every split.
    """
    if not get_method(job.method).random:
        every = (_probes(vectors, job.graph, job.device, protocol) for protocol in job.protocols)
        return [{"probes": list(own)} for own in zip(*every, strict=True)]
    every = (_probes(vectors, job.graph, job.device, protocol, seeds) for protocol in job.protocols)
    return [
        {"probes": [probe | {"split": seed} for probe in own]}
        for seed, own in zip(seeds, zip(*every, strict=True), strict=True)
    ]


def _probes(
    vectors: Sequence[torch.Tensor],
    graph: Data,
    device: torch.device,
    protocol: str,
    own_splits: Sequence[int] | None = None,
) -> list[dict[str, Any]]:
    """An entry of ``probes`` for each of the vectors."""
    # a CPU gains nothing from many at once, and would hold them all in float64
    at_once = len(vectors) if device.type == "cuda" else 1
    found = []
    for start in range(0, len(vectors), at_once):
        part = slice(start, start + at_once)
        found += linear_probes(
            vectors[part],
            graph.y,
            protocol,
            repeats=REPEATS,
            own_splits=None if own_splits is None else own_splits[part],
            masks=graph,
            device=device,
        )
    return [result.to_dict() for result in found]


def probe_graph(
    z: torch.Tensor, graph: Data, protocol: str, repeats: int = REPEATS, device: torch.device | None = None
) -> ProbeResult:
    """The linear probe with the labels, and where the protocol needs them the splits, that the graph came with."""
    return linear_probe(z, graph.y, protocol, repeats=repeats, masks=graph, device=device)


def is_labelled(graph: Data) -> bool:
    """Whether there are at least two classes among the labels (-1 is no label)."""
    y = graph.get("y")
    return y is not None and len(classes_of(y)) > 1


def add_probe(folder: Path, result: ProbeResult) -> None:
    """Put a probe into the run's ``metrics.json``, in the place of an earlier one by the same protocol."""
    with locked(folder):
        metrics = read_metrics(folder)
        probes = {probe["protocol"]: probe for probe in metrics["probes"]}
        metrics["probes"] = list((probes | {result.protocol: result.to_dict()}).values())
        _write_json(folder / METRICS, metrics)


def pair_scores(collected: Sequence[dict[str, Any]]) -> dict[str, tuple[float, list[float]]]:
    """For each protocol: the mean over all seeds and splits, and the scores of seed s on split s, the paper's pairs."""
    scores = {}
    for protocol in [probe["protocol"] for probe in collected[0]["probes"]]:
        found = [
            (metrics["seed"], probe)
            for metrics in collected
            for probe in metrics["probes"]
            if probe["protocol"] == protocol
        ]
        pairs = [accuracy for seed, probe in found for split, accuracy in by_split(probe).items() if split == seed]
        scores[protocol] = (float(np.mean([probe["accuracy"]["mean"] for _, probe in found])), pairs)
    return scores


def by_split(probe: Mapping[str, Any]) -> dict[int, float]:
    """The accuracies of an entry of ``probes``: of one split where it names that, else of all from 0 on.

    >>> by_split({"accuracy": {"per_split": [0.8, 0.9]}}), by_split({"accuracy": {"per_split": [0.7]}, "split": 5})
    ({0: 0.8, 1: 0.9}, {5: 0.7})
    """
    return dict(enumerate(probe["accuracy"]["per_split"], probe.get("split", 0)))


def save_state(folder: Path, state: dict[str, torch.Tensor]) -> None:
    """The weights, and the buffers of the feature scaling."""
    from safetensors.torch import save_file

    save_file({key: value.cpu().contiguous() for key, value in state.items()}, folder / MODEL)
    # It comes out readable by its owner alone, unlike its neighbours; a run may be shared.
    (folder / MODEL).chmod((folder / CONFIG).stat().st_mode)


def load_model(folder: Path, device: torch.device) -> Method:
    """The trained method of a RUN folder, ready to embed."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    built = rebuild(read_config(folder))
    try:
        built.load_state_dict(load_file(folder / MODEL))
    except (OSError, SafetensorError, RuntimeError):
        raise InputError(
            f"{folder / MODEL} is missing or is not the model of {folder / CONFIG}; train it again."
        ) from None
    return built.to(device)


def rebuild(config: Mapping[str, Any]) -> Method:
    """The method that a ``config.json`` describes, before its weights are loaded."""
    method = get_method(config["method"])
    return method.build(read_settings(method, config), config["in_features"], torch.Generator())


def read_settings(method: type[Method], config: Mapping[str, Any]) -> Any:
    """The settings that a model was trained with."""
    merged: Any = settings.merge(method.Settings, [(CONFIG, config["settings"])])[0]
    return merged


def embed(model: Method, folder: Path, graph: Data) -> np.ndarray:
    """Vectors of ``graph`` from the model of a run, n × d, float32."""
    trained_on = read_config(folder)["in_features"]
    if graph.num_features != trained_on:
        raise InputError(
            f"{graph.name} has {graph.num_features} features, and the model of {folder} was trained on {trained_on};"
            " embed a graph with the same features."
        )
    if not model.inductive:
        if graph.name != read_config(folder)["dataset"]:
            raise InputError(
                f"{model.name} gives vectors only for the graph it was trained on; train it on {graph.name}."
            )
        _same_nodes(folder, graph)
    z: np.ndarray = model.embed(graph).float().cpu().numpy()
    return z


def load_run_graph(folder: Path, data_dir: Path | None) -> Data:
    """The graph that a run was trained on."""
    where = read_config(folder)["graph"]
    gone = [file for file in (named_files(where) if os.path.isabs(where) else ()) if file and not Path(file).exists()]
    if gone:
        raise InputError(f"the run in {folder} was trained on {gone[0]}, which is not there any more; put it back.")
    graph = load_graph(where, data_dir=data_dir)
    _same_nodes(folder, graph)
    return graph


def _digest(graph: Data) -> str | None:
    """What tells the nodes and their order apart; None where they have no ids."""
    ids = graph.get("node_ids")
    return None if ids is None else hashlib.sha256(json.dumps([str(node) for node in ids]).encode()).hexdigest()


def _same_nodes(folder: Path, graph: Data) -> None:
    """Refuse nodes in another order than the run's: labels and ids would be read beside the vectors of other nodes."""
    began = read_config(folder).get("nodes")
    if began is not None and began != _digest(graph):
        raise InputError(
            f"{graph.name} has other nodes, or the same in another order, than when {folder} was trained; list them as"
            " they were, or train anew into another --out."
        )


def load_embeddings(folder: Path) -> torch.Tensor:
    """The vectors of a run."""
    try:
        return torch.from_numpy(np.load(folder / EMBEDDINGS, allow_pickle=False))
    except (OSError, ValueError):
        raise InputError(f"{folder / EMBEDDINGS} is missing or damaged; train the run again.") from None


def read_config(folder: Path) -> dict[str, Any]:
    """``config.json`` of a run."""
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder} is not a run: it has no {CONFIG}; `costa train` makes one.")
    return _read_json(folder / CONFIG, ("method", "graph", "dataset", "seed", "in_features", "settings"))


def read_metrics(folder: Path) -> dict[str, Any]:
    """``metrics.json`` of a run."""
    return _read_json(folder / METRICS, ("method", "dataset", "seed", "status", "probes"))


def _read_json(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        value = None
    refuse_newer(path, value)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA or any(key not in value for key in keys):
        raise InputError(f"{path} is missing, damaged or of another version; train the run again into another folder.")
    return value


def refuse_newer(path: Path, found: Any) -> None:
    """Refuse what a newer version wrote before anything else is said of it: what looks damaged may only be new."""
    schema = found.get("schema") if isinstance(found, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise InputError(
            f"{path} was written by a newer version of costa (schema {schema}, and this one reads {SCHEMA}); update"
            " costa."
        )


def check_vector_path(path: Path) -> None:
    """Refuse a place or a format that :func:`write_vectors` could not write, before the work is done."""
    if path.suffix not in (".npy", ".csv", ".parquet"):
        raise InputError(f"{path} has no format costa can write; end its name in .npy, .csv or .parquet.")
    if path.suffix == ".parquet" and not _has_pyarrow():
        raise InputError("writing Parquet needs pyarrow; pip install 'costa-gcl[tables]', or write .csv or .npy.")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder, or its folder does not exist.")


def write_vectors(path: Path, z: np.ndarray, ids: Sequence[Any] | None = None) -> None:
    """Vectors as ``.npy``, or as ``.csv`` or ``.parquet`` with a column of ids (row numbers where there are none)."""
    check_vector_path(path)
    if path.suffix == ".npy":
        np.save(path, z)
        return
    names = [f"z{column}" for column in range(z.shape[1])]
    ids = list(range(len(z))) if ids is None else list(ids)
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", *names])
            writer.writerows([node, *row] for node, row in zip(ids, z.tolist(), strict=True))
    else:
        import pyarrow
        import pyarrow.parquet

        columns = {"id": ids} | {name: z[:, column] for column, name in enumerate(names)}
        pyarrow.parquet.write_table(pyarrow.table(columns), path)


def _has_pyarrow() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def _table_name() -> str:
    return "embeddings.parquet" if _has_pyarrow() else "embeddings.csv"


def _write_json(path: Path, value: Any) -> None:
    with replacing(path) as beside:
        beside.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def reset_peak_memory(device: torch.device) -> None:
    """Begin to count anew; a process's own peak, which is what a CPU has, cannot be."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def _peak_memory(device: torch.device) -> int | None:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        import resource
    except ImportError:  # Windows has none
        return None

    # Linux counts kilobytes here, macOS bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def commit() -> str | None:
    """The commit of the source tree that is running, ``-dirty`` where it was changed; None for an installed package.

    Where the tree was copied without its history, to a machine with a GPU say, ``COSTA_COMMIT`` names the commit.
    """
    named = os.environ.get("COSTA_COMMIT")
    if named:
        return named
    here = str(Path(__file__).parent)
    try:
        tracked = ["git", "-C", here, "ls-files", "--error-unmatch", __file__]
        subprocess.run(tracked, capture_output=True, check=True)
        describe = ["git", "-C", here, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        return subprocess.run(describe, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def versions() -> dict[str, str]:
    """The versions of what decides a number: the package, Python, PyTorch and its company."""
    packages = ("torch", "torch-geometric", "numpy", "scikit-learn")
    return {"costa": __version__, "python": platform.python_version()} | {
        name: metadata.version(name) for name in packages
    }
