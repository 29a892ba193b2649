"""A model on the Hugging Face Hub: what of it goes there, its card, and the way back.

What goes there is ``model.safetensors``, ``columns.safetensors``, a shortened ``config.json`` and the card,
``README.md``. No vectors, ids, labels or edges do, nor the place of the graph's files. But how a table's columns became
features is part of the model: the values of its categories and the words of its texts are in ``config.json``, and
:func:`disclosed` names these columns.

``huggingface_hub`` is an extra (``pip install 'costa-gcl[hub]'``), imported only when it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costa.errors import InputError
from costa.graphs.columns import Columns
from costa.runs.files import COLUMNS, CONFIG, MODEL
from costa.runs.metrics import Metrics
from costa.runs.saving import FIELDS, OPTIONAL, About

if TYPE_CHECKING:
    from huggingface_hub import HfApi

CARD = "README.md"
FILES = (MODEL, CONFIG, COLUMNS)
KEPT = {"schema", "versions", *FIELDS, *OPTIONAL} - {"origins"}
"""Fields of ``config.json``; origins may name files of the user's."""
TEXTUAL = {"category": "the values", "text": "the words"}
"""What of a column is in ``config.json``, by its kind."""


def published(about: About) -> About:
    """The ``config.json`` that goes to the Hub: nothing of where the graph is, nor digests of its nodes and content."""
    return {name: value for name, value in about.items() if name in KEPT} | {"graph": about["dataset"]}


def disclosed(columns: Columns | None) -> list[str]:
    """What of the user's table is part of the model, in words."""
    known = [] if columns is None else columns.columns
    return [f"{TEXTUAL[column.kind]} of {column.name!r}" for column in known if column.kind in TEXTUAL]


def card(repo_id: str, about: About, columns: Columns | None, metrics: Metrics | None, width: int) -> str:
    """The model's card.

    Args:
        repo_id: The repository.
        about: From :func:`published`.
        columns: How a table becomes features.
        metrics: What was measured, if it was.
        width: The number of columns of the vectors.
    """
    lines = ["---", "library_name: costa-gcl", "tags: [graph, node-embeddings, self-supervised]", "---"]
    lines += [f"# {repo_id.rpartition('/')[2]}", ""]
    lines += [f"A model of `{about['method']}` that gives each node of a graph a vector, trained without labels.", ""]
    lines += ["```python", "from costa import COSTA", "", f'model = COSTA.from_pretrained("{repo_id}")']
    lines += ["z = model.transform(graph)  # a graph with the same features", "```", ""]
    lines += ["## Trained on", f"`{about['dataset']}`, with the random seed {about['seed']}:"]
    lines += [f"{about['in_features']:,} features in, vectors of {width:,} numbers out."]
    if columns is not None:
        lines += ["The features are made from a table with the columns", ""]
        lines += [f"- `{column.name}` ({column.kind})" for column in columns.columns if column.names]
    if said := disclosed(columns):
        lines += ["", f"`{CONFIG}` has {' and '.join(said)}, as they were in that table."]
    lines += ["", "No vectors, ids, labels or edges of the graph are here.", "", "## Scores", *_scores(metrics), ""]
    lines += ["## Settings", "```json", json.dumps(about["settings"], indent=1), "```", ""]
    return "\n".join(lines)


def _scores(metrics: Metrics | None) -> Iterator[str]:
    if metrics is None or not metrics.probes:
        yield "It was not evaluated."
        return
    yield "| | accuracy |"
    yield "|---|---|"
    for probe in metrics.probes:
        yield f"| {probe.protocol} | {100 * probe.accuracy.mean:.1f} ± {100 * probe.accuracy.std:.1f} % |"
    for name, baseline in (metrics.baselines or {}).items():
        yield f"| {metrics.probes[0].protocol}, baseline `{name}` | {100 * baseline.accuracy:.1f} % |"


def push(folder: Path, repo_id: str, *, private: bool, token: str | None) -> str:
    """Upload a model's folder; the address of the repository, which is made if there is none."""
    with _hub(repo_id, "written") as api:
        made = api.create_repo(repo_id, private=private, token=token, exist_ok=True)
        api.upload_folder(
            repo_id=made.repo_id,
            folder_path=folder,
            allow_patterns=[*FILES, CARD],
            commit_message="A model of costa",
            token=token,
        )
        return str(made)


def fetch(repo_id: str, *, revision: str | None, token: str | None) -> Path:
    """The folder with a model of the Hub, downloaded once."""
    with _hub(repo_id, "read") as api:
        return Path(api.snapshot_download(repo_id, revision=revision, allow_patterns=list(FILES), token=token))


@contextmanager
def _hub(repo_id: str, done: str) -> Iterator[HfApi]:
    """The Hub; what it refuses becomes one sentence."""
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError:
        raise InputError("a model on the Hub needs huggingface_hub; pip install 'costa-gcl[hub]'.") from None
    # the bases are what its HTTP library raises without a connection, which differs by version
    refused: tuple[Any, ...] = (OSError, HFValidationError, *HfHubHTTPError.__bases__)
    try:
        yield HfApi(library_name="costa-gcl")
    except refused as problem:
        why = str(problem).strip().partition("\n")[0].rstrip(".")
        raise InputError(
            f"{repo_id} cannot be {done} ({why or type(problem).__name__}); check the name, the connection, and that"
            " `hf auth login` or the token gives access."
        ) from problem
