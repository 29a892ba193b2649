"""A run for TensorBoard: its loss, its vectors' health and scores, and the vectors themselves for the projector.

TensorBoard is an extra (``pip install 'costa-gcl[tensorboard]'``), imported only when it is used. Everything is read
from the RUN folder after the run has ended, so the training loop does not know about it.
"""

from __future__ import annotations

import csv
import importlib.util
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from costa import runs, training
from costa.errors import InputError

MOST_POINTS = 2000
"""Largest number of nodes in the projector, evenly spaced, so that a browser draws them smoothly."""


def check() -> None:
    """Raise an error, before anything is trained, if TensorBoard is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        raise InputError("--tensorboard needs TensorBoard; pip install 'costa-gcl[tensorboard]', or leave it out.")


def write(run: Path, folder: Path, graph: Data) -> None:
    """Write the events of a run.

    Args:
        run: The RUN folder of a finished run.
        folder: TensorBoard's log folder; the run goes into a subfolder of its name.
        graph: The graph it was trained on, whose labels colour the projector.
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
        for name, value in (asdict(metrics.health) if metrics.health else {}).items():
            writer.add_scalar(f"health/{name}", value, metrics.epochs)
        for probe in metrics.probes:
            writer.add_scalar(f"accuracy/{probe.protocol}", probe.accuracy.mean, metrics.epochs)
        z = runs.load_embeddings(run)
        if z.isfinite().all():
            shown = torch.arange(0, len(z), -(-len(z) // MOST_POINTS))
            writer.add_embedding(z[shown], metadata=[_name(graph, node) for node in shown.tolist()])


def _name(graph: Data, node: int) -> str:
    """A node's label, if it has one, and its id."""
    ids, y, names = graph.get("node_ids"), graph.get("y"), graph.get("label_names")
    node_id = str(node if ids is None else ids[node])
    code = -1 if y is None else int(y[node])
    if code < 0:
        return node_id
    return f"{names[code] if names else code} · {node_id}"
