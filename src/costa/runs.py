"""A RUN folder: what ``costa train`` writes, what ``costa probe`` and ``costa embed`` read.

model.safetensors    the weights, feature scaling included
config.json          method, graph, seed, every setting and where it came from
embeddings.npy       the nodes' vectors (a user's own graph: embeddings.parquet too, with the ids)
metrics.json         what was measured; its fields are a contract (see ``METRICS``)
log.csv              the loss of every epoch
checkpoint.safetensors   while it trains, and after an interruption
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from costa import __version__, settings, training
from costa.errors import InputError
from costa.experiments import presets
from costa.floors import floor_scores
from costa.graphs import load_graph
from costa.methods import get_method
from costa.methods.base import Method
from costa.nn import choose_scaling
from costa.probe import ProbeResult, cluster, linear_probe

SCHEMA = 1
CONFIG, METRICS, MODEL, EMBEDDINGS = "config.json", "metrics.json", "model.safetensors", "embeddings.npy"
DEFAULT_PROTOCOLS = ("random-10-10-80", "random-2-2-96")
"""What a training is judged by; the floors are given for the first."""
REPEATS = 20
"""Splits of each."""


@dataclass(frozen=True)
class Resolved:
    """Merged settings, where each came from, and what the user should hear about it."""

    values: Any
    origins: dict[str, str]
    note: str | None = None


def resolve(
    method: type[Method],
    graph: Data,
    *,
    preset: str = "tuned",
    config: Path | None = None,
    given: Mapping[str, Any] | None = None,
    epochs: int | None = None,
) -> Resolved:
    """Defaults < chosen from the graph < preset < ``--config`` < ``--set`` (``given``) and ``--epochs``."""
    layers: list[settings.Layer] = [("graph", method.choose(graph))]
    note = None
    name = graph.get("name", "this graph")
    values = presets.load_preset(preset, method.name, name)
    if values is not None:
        layers.append((f"preset {preset}", values))
    elif preset == "paper":
        there = ", ".join(presets.published("paper", method.name))
        raise InputError(
            f"no settings are published for {method.name} on {name}"
            + (f" (there are for: {there})" if there else "")
            + "; use --preset tuned or none."
        )
    elif preset == "tuned" and hasattr(method.Settings(), "train"):
        note = f"no tuned settings for {method.name} on {name}: defaults, and what the graph suggests"
    if config is not None:
        layers.append((str(config), presets.load_config(config)))
    layers.append(("--set", given or {}))
    if epochs is not None:
        if not hasattr(method.Settings(), "train"):
            raise InputError(f"--epochs does not apply to {method.name}, which is not trained; leave it out.")
        layers.append(("--epochs", {"train.epochs": epochs}))
    merged: Any
    merged, origins = settings.merge(method.Settings, layers)
    if merged.features.scaling == "auto":
        layers.append(("graph", {"features.scaling": choose_scaling(graph.x)}))
        merged, origins = settings.merge(method.Settings, layers)
    return Resolved(merged, origins, note)


def claim(folder: Path, method: str, graph: str, seed: int, *, resume: bool) -> None:
    """Make the folder, or refuse one that holds something else: nothing already on disk is lost."""
    if (folder / CONFIG).exists():
        found = read_config(folder)
        same = (found["method"], found["graph"], found["seed"]) == (method, graph, seed)
        what = f"{found['method']} on {found['graph']}, seed {found['seed']}"
        if not same:
            raise InputError(f"{folder} already holds another run ({what}); choose another --out.")
        if not resume:
            raise InputError(f"{folder} already holds this run ({what}); choose another --out, or --resume it.")
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and is not a run of costa; choose another --out.")
    elif resume:
        raise InputError(f"there is no run to resume in {folder}; train without --resume first.")
    folder.mkdir(parents=True, exist_ok=True)


def execute(
    folder: Path,
    graph: Data,
    graph_spec: str,
    method_name: str,
    resolved: Resolved,
    *,
    seed: int,
    device: torch.device,
    probe: bool = True,
    resume: bool = False,
    report: training.Report | None = None,
    announce: Callable[[str], None] = lambda text: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Train, embed, probe; write the RUN folder; return its metrics.

    Args:
        folder: Claimed by :func:`claim`.
        graph: Loaded and checked.
        graph_spec: What the user called it, so that ``costa probe`` finds it again.
        method_name: One of :data:`costa.methods.METHODS`.
        resolved: From :func:`resolve`.
        seed: Of the weights and of everything random in training.
        device: Where to train.
        probe: Whether to judge the vectors, where the graph has labels.
        resume: Go on from the folder's checkpoint; a run that had ended is returned as it is.
        report: Hears of every epoch.
        announce: Told of work that takes a while and is no epoch.
        should_stop: Asked after every epoch.
    """
    if resume and (folder / METRICS).exists():
        ended: dict[str, Any] = json.loads((folder / METRICS).read_text())
        if ended["status"] != "interrupted":
            return ended
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    flat = settings.flatten(resolved.values)
    _write_json(
        folder / CONFIG,
        {
            "schema": SCHEMA,
            "method": method_name,
            "graph": graph_spec,
            "dataset": graph.name,
            "seed": seed,
            "in_features": graph.num_features,
            "settings": flat,
            "origins": resolved.origins,
        },
    )
    method = training.build(get_method(method_name), resolved.values, graph, seed, device)
    outcome = training.train(
        method,
        graph,
        getattr(resolved.values, "train", None),
        folder=folder,
        resume=resume,
        report=report,
        should_stop=should_stop,
    )
    save_model(folder, method)
    z = method.embed(graph).float().cpu()
    np.save(folder / EMBEDDINGS, z.numpy())
    if graph.get("node_ids") is not None:
        write_vectors(folder / _table_name(), z.numpy(), graph.node_ids)
    metrics: dict[str, Any] = {
        "schema": SCHEMA,
        "method": method_name,
        "dataset": graph.name,
        "seed": seed,
        "status": outcome.status,
        "epochs": outcome.epochs,
        "seconds": outcome.seconds,
        "peak_memory_bytes": _peak_memory(device),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "commit": _commit(),
        "versions": _versions(),
        "probes": [],
        "clustering": None,
        "floor": None,
    }
    if probe and outcome.status == "ok" and is_labelled(graph):
        metrics |= judge(z, graph, device, announce)
    _write_json(folder / METRICS, metrics)
    return metrics


def judge(
    z: torch.Tensor, graph: Data, device: torch.device, announce: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """The fields ``probes``, ``clustering`` and ``floor`` of ``metrics.json``."""
    probes = [probe_graph(z, graph, protocol, REPEATS, device).to_dict() for protocol in DEFAULT_PROTOCOLS]
    clusters = cluster(z, graph.y)
    return {
        "probes": probes,
        "clustering": {"nmi": clusters.nmi, "ari": clusters.ari},
        "floor": floor_scores(graph, DEFAULT_PROTOCOLS[0], REPEATS, device, announce),
    }


def probe_graph(
    z: torch.Tensor, graph: Data, protocol: str, repeats: int = REPEATS, device: torch.device | None = None
) -> ProbeResult:
    """The linear probe with the labels, and where the protocol needs them the splits, that the graph came with."""
    return linear_probe(z, graph.y, protocol, repeats=repeats, masks=graph, device=device)


def is_labelled(graph: Data) -> bool:
    """Whether there are at least two classes among the labels (-1 is no label)."""
    y = graph.get("y")
    return y is not None and int(y[y >= 0].unique().numel()) > 1


def add_probe(folder: Path, result: ProbeResult) -> None:
    """Put a probe into the run's ``metrics.json``, in the place of an earlier one by the same protocol."""
    metrics = json.loads((folder / METRICS).read_text())
    others = [probe for probe in metrics["probes"] if probe["protocol"] != result.protocol]
    metrics["probes"] = [*others, result.to_dict()]
    _write_json(folder / METRICS, metrics)


def save_model(folder: Path, method: Method) -> None:
    """The weights, and the buffers of the feature scaling."""
    from safetensors.torch import save_file

    save_file({key: value.cpu().contiguous() for key, value in method.state_dict().items()}, folder / MODEL)


def load_model(folder: Path, device: torch.device) -> Method:
    """The trained method of a RUN folder, ready to embed."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    config = read_config(folder)
    method = get_method(config["method"])
    merged: Any = settings.merge(method.Settings, [(CONFIG, config["settings"])])[0]
    built = method.build(merged, config["in_features"])
    try:
        built.load_state_dict(load_file(folder / MODEL))
    except (OSError, SafetensorError, RuntimeError):
        raise InputError(
            f"{folder / MODEL} is missing or is not the model of {folder / CONFIG}; train it again."
        ) from None
    return built.to(device)


def embed(model: Method, folder: Path, graph: Data) -> np.ndarray:
    """Vectors of ``graph`` from the model of a run, n × d, float32."""
    trained_on = read_config(folder)["in_features"]
    if graph.num_features != trained_on:
        raise InputError(
            f"{graph.name} has {graph.num_features} features, and the model of {folder} was trained on {trained_on};"
            " embed a graph with the same features."
        )
    z: np.ndarray = model.embed(graph).float().cpu().numpy()
    return z


def load_run_graph(folder: Path, data_dir: Path | None) -> Data:
    """The graph that a run was trained on."""
    return load_graph(read_config(folder)["graph"], data_dir=data_dir)


def load_embeddings(folder: Path) -> torch.Tensor:
    """The vectors of a run."""
    try:
        return torch.from_numpy(np.load(folder / EMBEDDINGS, allow_pickle=False))
    except (OSError, ValueError):
        raise InputError(f"{folder / EMBEDDINGS} is missing or damaged; train the run again.") from None


def read_config(folder: Path) -> dict[str, Any]:
    """``config.json`` of a run."""
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text())
    except FileNotFoundError:
        raise InputError(f"{folder} is not a run: it has no {CONFIG}; `costa train` makes one.") from None
    except (OSError, json.JSONDecodeError):
        raise InputError(f"{folder / CONFIG} cannot be read; train the run again.") from None
    if config.get("schema") != SCHEMA:
        raise InputError(f"{folder / CONFIG} has schema {config.get('schema')!r}, and this costa reads {SCHEMA}.")
    return config


def write_vectors(path: Path, z: np.ndarray, ids: Sequence[Any] | None = None) -> None:
    """Vectors as ``.npy``, or as ``.csv`` or ``.parquet`` with a column of ids (row numbers where there are none)."""
    if path.suffix == ".npy":
        np.save(path, z)
        return
    names = [f"z{column}" for column in range(z.shape[1])]
    ids = list(range(len(z))) if ids is None else list(ids)
    if path.suffix == ".csv":
        import csv

        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", *names])
            writer.writerows([node, *row] for node, row in zip(ids, z.tolist(), strict=True))
    elif path.suffix == ".parquet":
        if not _has_pyarrow():
            raise InputError("writing Parquet needs pyarrow; pip install 'costa-gcl[tables]', or write .csv or .npy.")
        import pyarrow
        import pyarrow.parquet

        columns = {"id": ids} | {name: z[:, column] for column, name in enumerate(names)}
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    else:
        raise InputError(f"{path} has no format costa can write; end its name in .npy, .csv or .parquet.")


def _has_pyarrow() -> bool:
    import importlib.util

    return importlib.util.find_spec("pyarrow") is not None


def _table_name() -> str:
    return "embeddings.parquet" if _has_pyarrow() else "embeddings.csv"


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _peak_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    # Linux counts kilobytes here, macOS bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _commit() -> str | None:
    """The commit of the source tree that is running, ``-dirty`` where it was changed; None for an installed package.

    Where the tree was copied without its history, to a machine with a GPU say, ``COSTA_COMMIT`` can name the commit.
    """
    if "COSTA_COMMIT" in os.environ:
        return os.environ["COSTA_COMMIT"]
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        tracked = subprocess.run(
            [*command[:3], "ls-files", "--error-unmatch", __file__], capture_output=True, check=False
        )
        if tracked.returncode != 0:
            return None
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _versions() -> dict[str, str]:
    packages = ("torch", "torch-geometric", "numpy", "scikit-learn")
    return {"costa": __version__, "python": platform.python_version()} | {
        name: metadata.version(name) for name in packages
    }
