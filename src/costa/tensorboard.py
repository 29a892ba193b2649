"""A run for TensorBoard: its loss, its vectors' health and scores, and the vectors themselves for the projector.

TensorBoard is an extra (``pip install 'costa-gcl[tensorboard]'``) and imported only when a run is to be shown there.
Everything is read from the RUN folder, so the loop knows nothing of it, and the events come when the run has ended.
"""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from costa import runs, training
from costa.errors import InputError

MOST_POINTS = 2000
"""Nodes in the projector, evenly spaced; a browser draws no more of them smoothly."""


def check() -> None:
    """Refuse, before anything is trained, where TensorBoard is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        raise InputError("--tensorboard needs TensorBoard; pip install 'costa-gcl[tensorboard]', or leave it out.")


def write(run: Path, folder: Path, graph: Data) -> None:
    """Write the events of a run.

    Args:
        run: A RUN folder that has ended.
        folder: Where TensorBoard looks; the run goes into a folder of its name there.
        graph: What it was trained on: its labels colour the projector.
    """
    check()
    from torch.utils.tensorboard import SummaryWriter

    metrics = runs.read_metrics(run)
    open_writer: Any = SummaryWriter  # it has no types
    with open_writer(str(folder / run.name)) as writer:
        log = run / training.LOG
        if log.is_file():  # a method without a loss has none
            with log.open(newline="") as file:
                for row in csv.DictReader(file):
                    writer.add_scalar("loss", float(row["loss"]), int(row["epoch"]))
        for name, value in (metrics.get("health") or {}).items():
            writer.add_scalar(f"health/{name}", value, metrics["epochs"])
        for probe in metrics["probes"]:
            writer.add_scalar(f"accuracy/{probe['protocol']}", probe["accuracy"]["mean"], metrics["epochs"])
        z = runs.load_embeddings(run)
        if z.isfinite().all():
            shown = torch.arange(0, len(z), -(-len(z) // MOST_POINTS))
            writer.add_embedding(z[shown], metadata=[_name(graph, node) for node in shown.tolist()])


def _name(graph: Data, node: int) -> str:
    """A node's label, where it has one, and its id."""
    ids, y, names = graph.get("node_ids"), graph.get("y"), graph.get("label_names")
    own = str(node if ids is None else ids[node])
    code = -1 if y is None else int(y[node])
    if code < 0:
        return own
    return f"{names[code] if names else code} · {own}"
