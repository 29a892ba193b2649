"""Do labels choose the best candidate? The portfolio of ``costa train --choose``, on the graphs of the defaults.

    python -m reproduction.choice [--graphs NAME …]
    python -m reproduction defaults        # the page

Each candidate is trained once. Its line in ``results/experiments/choice/GRAPH.jsonl`` has the validation accuracy that
chooses and the accuracy on 20 test parts: with a thousand labels or more on the four fifths that had no part in the
choice, otherwise on ``random-10-10-80``, whose labels all had (:mod:`costa.tuning.portfolio`). The table compares the
candidate that validation chooses with the one that tests best.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from costa import training
from costa.evaluate.probe import linear_probe
from costa.methods import get_method
from costa.runs.provenance import commit, versions
from costa.tuning.portfolio import PORTFOLIO, STRICT, Candidate, chosen_by, validate
from reproduction.defaults import BENCHMARKS, MADE, REAL, SPLITS, difference, ending, graph_called, verdict
from reproduction.tables import markdown

STORE = Path("results/experiments/choice")
CPU = torch.device("cpu")


def measure(name: str, candidates: Sequence[Candidate] = PORTFOLIO, store: Path = STORE) -> None:
    """Train, validate and test the candidates that the store lacks."""
    store.mkdir(parents=True, exist_ok=True)
    path = store / f"{name}.jsonl"
    known = {line["candidate"] for line in read(name, store)}
    graph = graph_called(name)
    by = chosen_by(graph.y)
    protocol = by if by == STRICT else "random-10-10-80"
    for candidate in candidates:
        if candidate.name in known:
            continue
        began = time.perf_counter()
        values = candidate.resolve(graph).values
        method, outcome, z = training.train_and_embed(get_method(candidate.method), values, graph, device=CPU)
        status = ending(method, outcome, z, graph)
        line: dict[str, Any] = {"graph": name, "candidate": candidate.name, "status": status, "by": by}
        if status == "ok":
            line["validation"] = validate(z, graph.y, by).mean
            line["seconds"] = round(time.perf_counter() - began, 2)
            line["test"] = linear_probe(z, graph.y, protocol, repeats=SPLITS).accuracy.per_split
        line |= {"device": "cpu", "commit": commit(), "versions": versions()}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def read(name: str, store: Path = STORE) -> list[dict[str, Any]]:
    """The lines of a graph."""
    path = store / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(store: Path = STORE) -> str:
    """A row per graph: the chosen candidate, the best one, and the first less the second, split by split."""
    titles = {candidate.name: candidate.title for candidate in PORTFOLIO}
    rows = []
    for name in (*BENCHMARKS, *REAL, *MADE):
        lines = [line for line in read(name, store) if line["status"] == "ok"]
        if not lines:
            continue
        chosen = max(lines, key=lambda line: line["validation"])
        best = max(lines, key=lambda line: float(np.mean(line["test"])))
        mean, error = difference(100 * np.array(chosen["test"]), 100 * np.array(best["test"]))
        shown = [f"{titles[line['candidate']]}: {100 * np.mean(line['test']):.1f}" for line in (chosen, best)]
        by = "a fifth" if chosen["by"] == STRICT else "all"
        rows.append([name, by, *shown, f"{mean:+.1f} ± {error:.1f}", verdict(mean, error)])
    return markdown(["graph", "labels that choose", "chosen", "best of all", "chosen less best", ""], rows)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="*", default=[*BENCHMARKS, *REAL, *MADE])
    options = parser.parse_args()
    for name in options.graphs:
        measure(name)


if __name__ == "__main__":
    main()
