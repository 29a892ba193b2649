"""Do labels choose the best candidate? The portfolio of ``costa train --choose``, on the graphs of the defaults.

    python -m reproduction.choice [--graphs NAME …]
    python -m reproduction defaults        # the page

Somebody has labelled a fifth of the nodes, drawn at random within the classes; each candidate is trained once and
validated on these labels. Its line in ``results/experiments/choice/GRAPH.jsonl`` has the validation accuracies that
choose and, on the same 20 splits for all, the accuracy on the other four fifths, which had no part in the choice
(``strict-10-10-80``). The table compares the candidate that is chosen with the one that tests best.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from costa import training
from costa.evaluate import health
from costa.evaluate.probe import CROSS_VALIDATION, linear_probe
from costa.evaluate.protocols import splits
from costa.evaluate.scores import Score
from costa.methods import get_method
from costa.runs.provenance import commit, versions
from costa.tuning import portfolio
from costa.tuning.portfolio import DEFAULT, PORTFOLIO, STRICT, Candidate, chosen_by, validate
from reproduction.defaults import BENCHMARKS, MADE, REAL, SPLITS, difference, graph_called, verdict
from reproduction.tables import markdown

STORE = Path("results/experiments/choice")
CPU = torch.device("cpu")


def measure(
    name: str, candidates: Sequence[Candidate] = PORTFOLIO, store: Path = STORE, device: torch.device = CPU
) -> None:
    """Train, validate and test the candidates that the store lacks."""
    store.mkdir(parents=True, exist_ok=True)
    path = store / f"{name}.jsonl"
    known = {line["candidate"] for line in read(name, store)}
    graph = graph_called(name)
    by, y = chosen_by(graph.y), graph.y
    if by == CROSS_VALIDATION:  # of all labels there are: those of the fifth
        (split,) = splits(STRICT, y, repeats=1)
        y = torch.full_like(y, -1).index_copy(0, labelled := torch.cat([split.train, split.validation]), y[labelled])
    for candidate in candidates:
        if candidate.name in known:
            continue
        began = time.perf_counter()
        values = candidate.resolve(graph).values
        method, outcome, z = training.train_and_embed(get_method(candidate.method), values, graph, device=device)
        status = health.ending(method, outcome, z, graph.x)
        line: dict[str, Any] = {"graph": name, "candidate": candidate.name, "status": status, "by": by}
        if status == "ok":
            line["validation"] = validate(z, y, by, device).per_split
            line["seconds"] = round(time.perf_counter() - began, 2)
            line["test"] = linear_probe(z, graph.y, STRICT, repeats=SPLITS, device=device).accuracy.per_split
        line |= {"device": device.type, "commit": commit(), "versions": versions()}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def read(name: str, store: Path = STORE) -> list[dict[str, Any]]:
    """The lines of a graph."""
    path = store / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


RULES = {
    0.0: "the highest mean",
    0.5: "the default, unless another is above it by half a standard error",
    1.0: "the default, unless another is above it by a standard error (what `--choose` does)",
    2.0: "the default, unless another is above it by two standard errors",
    math.inf: "always the default",
}
"""The margins by which another candidate must be above the default, and what the rule is then called."""


@dataclass(frozen=True)
class Chosen:
    """What a rule chooses on a graph, the candidate that tests best, and the first less the second, in points."""

    graph: str
    kept: str
    best: str
    mean: float
    error: float
    scores: Mapping[str, float]


def chosen(margin: float, store: Path = STORE) -> Iterator[Chosen]:
    """What is chosen on each graph if another candidate must be above the default by so many standard errors."""
    for name in (*BENCHMARKS, *REAL, *MADE):
        lines = {line["candidate"]: line for line in read(name, store) if line["status"] == "ok"}
        if not lines:
            continue
        scores = {key: Score.of(line["validation"], line["by"]) for key, line in lines.items()}
        kept = max(scores, key=lambda key: scores[key].mean)
        if DEFAULT in scores:
            apart, error = portfolio.difference(scores[kept], scores[DEFAULT], lines[kept]["by"])
            kept = kept if apart > margin * error else DEFAULT
        tests = {key: 100 * np.array(line["test"]) for key, line in lines.items()}
        best = max(tests, key=lambda key: float(tests[key].mean()))
        means = {key: float(test.mean()) for key, test in tests.items()}
        yield Chosen(name, kept, best, *difference(tests[kept], tests[best]), means)


def table(store: Path = STORE) -> str:
    """A row per graph: the chosen candidate, the best one, and the first less the second, split by split."""
    titles = {candidate.name: candidate.title for candidate in PORTFOLIO}
    rows = []
    for row in chosen(1, store):
        shown = [f"{titles[key]}: {row.scores[key]:.1f}" for key in (row.kept, row.best)]
        rows.append([row.graph, *shown, f"{row.mean:+.1f} ± {row.error:.1f}", verdict(row.mean, row.error)])
    return markdown(["graph", "chosen", "best of all", "chosen less best", ""], rows)


def rules(store: Path = STORE) -> str:
    """A row per rule: how far what it chooses is from the best, on average and at worst, and how often it is below."""
    rows = []
    for margin, rule in RULES.items():
        found = list(chosen(margin, store))
        below = sum(verdict(row.mean, row.error) == "below" for row in found)
        means = [row.mean for row in found]
        rows.append([rule, f"{fmean(means):+.2f}", f"{min(means):+.1f}", f"{below} of {len(found)}"])
    return markdown(["what is kept", "less the best, on average", "at worst", "below the best on"], rows)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="*", default=[*BENCHMARKS, *REAL, *MADE])
    options = parser.parse_args()
    device = training.resolve_device("auto")
    for name in options.graphs:
        measure(name, device=device)


if __name__ == "__main__":
    main()
