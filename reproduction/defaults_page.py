"""The tables of ``docs/defaults.md``, from the store."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from costa.evaluate.baselines import BASELINES
from reproduction import choice
from reproduction.defaults import (
    BENCHMARKS,
    CONTESTANTS,
    FEW,
    MADE,
    OURS,
    PROTOCOLS,
    REAL,
    STORE,
    difference,
    graph_names,
    lines_of,
    read,
    verdict,
)
from reproduction.tables import markdown, write_page


def table(label: str, measure: str, store: Path = STORE) -> str:
    """A row per graph: the baselines, the default, and how it compares with the best baseline of that graph."""
    rows = []
    for name in graph_names(store):
        scores = read(name, label, measure, store)
        baselines = {each: scores[each] for each in BASELINES if each in scores}
        if OURS not in scores or not baselines:
            continue
        best = max(baselines, key=lambda each: float(baselines[each].mean()))
        mean, error = difference(scores[OURS], baselines[best])
        shown = [f"{scores[each].mean():.1f}" if each in scores else "–" for each in CONTESTANTS]
        rows.append([name, *shown, f"{mean:+.1f} ± {error:.1f}", verdict(mean, error)])
    return markdown(["graph", *CONTESTANTS, "less the best baseline", ""], rows)


def summary(store: Path = STORE) -> str:
    """How often the default is above, level and below, for each kind of graph and share of labels."""
    rows = []
    for kind, names in {"benchmarks": BENCHMARKS, "real": REAL, "made": tuple(MADE)}.items():
        for label in PROTOCOLS:
            counts = {"above": 0, "level": 0, "below": 0}
            over = 0
            for name in names:
                scores = read(name, label, store=store)
                baselines = [scores[each] for each in BASELINES if each in scores]
                if OURS in scores and baselines:
                    best = max(baselines, key=lambda each: float(each.mean()))
                    counts[verdict(*difference(scores[OURS], best))] += 1
                    over += "diffused" in scores and verdict(*difference(scores[OURS], scores["diffused"])) == "above"
            rows.append([kind, label, *map(str, counts.values()), f"{over} of {sum(counts.values())}"])
    header = ["graphs", "labels", "above the best baseline", "level", "below", "above diffused features"]
    return markdown(header, rows)


def endings(store: Path = STORE) -> str:
    """How the trainings of the default ended, each graph and seed once, the last time."""
    latest = {
        (name, line["seed"]): line["status"]
        for name in graph_names(store)
        for line in lines_of(name, store)
        if line["contestant"] == OURS
    }
    graphs, counts = len({name for name, _ in latest}), Counter(latest.values())
    shown = ("ok", "collapsed", "diverged")
    return markdown(
        ["graphs", "trainings", *shown], [[str(graphs), str(len(latest)), *(str(counts[key]) for key in shown)]]
    )


TRIED = Path("results/experiments/tried")
VARIANTS = {
    "prototype-1": {
        "A5x64:codes": "five hops (X, ÂX, Â²X, Â⁴X, PageRank), 64 columns each, X reduced to 256 columns; codes alone",
        "A5x64:uc+.5hops": "the same, with the hops themselves at half weight",
        "P256m3:codes": "PageRank alone, 256 columns, 30% masked; codes alone",
        "P4_128:codes": "Â⁴X and PageRank, 128 columns each, 50% masked; codes alone",
        "P4_128:uc+.5hops": "the same, with the hops at half weight",
        "XP:codes": "X and PageRank, 128 columns each; codes alone",
    },
    "prototype-2": {
        "hops": "no training: five hops, each centred, rows of length one",
        "hops_u": "no training: the same, not centred",
        "c2:codes": "Â⁴X and PageRank of all columns of X, 128 each; codes alone",
        "c2:+0.7h": "the same, with 256 columns of the hops at weight 0.7",
        "c2:+1.2h": "the same at weight 1.2",
        "c4:+0.7h": "all five hops, 64 columns each, one in three left out; hops at weight 0.7",
        "c8:+1.2h": "ÂX, Â⁴X and PageRank, 85 each, one in three left out; hops at weight 1.2",
        "c9:+0.7h": "Â⁴X and PageRank, a sketch of half the rows, τ = 0.3; hops at weight 0.7",
        "c10:+0.7h": "Â⁴X and PageRank of rows of length one; hops at weight 0.7",
    },
    "package": {
        "base": "ÂX, Â⁴X and PageRank, 80 each, hops at weight 1.2, X reduced to 512 columns",
        "w.7": "hops at weight 0.7",
        "w2": "hops at weight 2",
        "visits2": "twice the epochs on graphs of more than 4,000 nodes",
        "rank2048": "X reduced to 2,048 columns instead of 512",
        "mask.3": "30% of the columns masked instead of 50%",
        "hop0": "no hop left out",
        "124w64": "Â²X too, 64 columns each",
        "0124": "X and Â²X too, 51 columns each",
        "tau.3": "τ = 0.3",
        "wd4": "weight decay 10⁻⁴",
        "sv.5": "one view, τ = 0.5",
        "sv2": "one view, τ = 2",
    },
    "held-out": {
        "columns-own": "no training: 256 columns of X alone, on every graph",
        "columns-ends": "no training: 256 columns of X at half weight, Â⁴X and PageRank, on every graph",
        "columns-far": "no training: 256 columns of Â⁴X and PageRank, on every graph",
        "own": "no BatchNorm, learning rate 0.003, codes uncentred; X alone on every graph",
        "ends": "X at half weight, Â⁴X and PageRank on every graph",
        "far": "Â⁴X and PageRank on every graph",
        "pagerank": "PageRank alone on every graph",
        "ends-centred": "X, Â⁴X and PageRank, codes less their mean",
        "far-centred": "Â⁴X and PageRank, codes less their mean",
        "far-codes": "the same without the columns of the hops",
        "far-centred-lr": "the same with the columns, half the epochs at learning rate 0.01",
        "base": "held-out features choose among four; 50 epochs at learning rate 0.01, X at weight 0.3",
        "half": "at most 500,000 visits to rows, not a million",
        "e100": "100 epochs at learning rate 0.003",
        "w2": "hops at weight 2",
        "mask.3": "30% of the columns masked instead of 50%",
        "hop0": "no hop left out",
        "sv.5": "one view, τ = 0.5",
        "sv2": "one view, τ = 2",
    },
    "batches": {
        "0": "batches of 512 rows, learning rate 0.015, at most 30,000 visits to rows; X alone on every graph",
        "2": "Â²X alone on every graph",
        "24": "Â²X and Â⁴X on every graph",
        "2P": "Â²X and PageRank on every graph",
        "4P": "Â⁴X and PageRank on every graph",
        "24P": "Â²X, Â⁴X and PageRank on every graph",
        "02P": "X, Â²X and PageRank on every graph",
        "024P": "X, Â²X, Â⁴X and PageRank on every graph",
        "014P": "X, ÂX, Â⁴X and PageRank on every graph",
        "124P": "ÂX, Â²X, Â⁴X and PageRank on every graph",
        "new": "held-out features choose among four",
        "PP": "the same, but PageRank without its share of X",
        "rules": "held-out features choose among six (now the default)",
        "visits60": "at most 60,000 visits to rows, among six",
        "batch256": "batches of 256 rows, among six",
        "w.7": "hops at weight 0.7, among six",
        "w1.4": "hops at weight 1.4, among six",
        "mask.3": "30% of the columns masked instead of 50%, among six",
        "tau.3": "τ = 0.3, among six",
    },
}
"""What was tried, by file: the variant's name there, and what it is."""


def tried(store: Path = TRIED) -> str:
    """Mean validation accuracy less that of the best baseline of each graph, and the worst case; WordNet left out."""
    rows = []
    for file, variants in VARIANTS.items():
        lines = [json.loads(line) for line in (store / f"{file}.jsonl").read_text().splitlines()]
        scores = {(line["graph"], line["variant"]): line for line in lines}
        graphs = sorted({line["graph"] for line in lines} - {"wordnet"})
        large = [name for name in graphs if _nodes(name) >= FEW]
        for variant, meaning in variants.items():
            cells = []
            for label, names in (("10%", graphs), ("2%", large)):
                apart = [
                    scores[name, variant][label]
                    - max(scores[name, each][label] for each in BASELINES if (name, each) in scores)
                    for name in names
                    if (name, variant) in scores
                ]
                cells += [f"{statistics.mean(apart):+.1f}", f"{min(apart):+.1f}"]
            rows.append([file, meaning, *cells])
    return markdown(["tried in", "what", "10%", "worst", "2%", "worst"], rows)


def _nodes(name: str) -> int:
    return int(json.loads((STORE / f"{name}.jsonl").read_text().splitlines()[0])["nodes"])


TIMES = Path("results/bench/defaults-cpu.json")
"""What ``benchmarks/defaults.py`` has measured."""


def ratios() -> str:
    """Seconds to trained vectors, and how many times as long the defaults before hops take."""
    measured = json.loads(TIMES.read_text())["ratios"]
    former = [key for key in measured[0] if key not in ("graph", "default")]
    rows = [
        [
            row["graph"],
            f"{row['default']:.1f}",
            *(f"{row[key]:.0f} ({row[key] / row['default']:.1f} ×)" for key in former),
        ]
        for row in measured
    ]
    return markdown(["graph", "the default, seconds", *former], rows)


def commands() -> str:
    """Seconds and memory of whole commands."""
    rows: dict[str, list[str]] = {}
    for row in json.loads(TIMES.read_text())["commands"]:
        seconds = f"{row['seconds']:.0f}"
        if row["probe"]:
            rows[row["graph"]][-1] = seconds
        else:
            rows[row["graph"]] = [seconds, f"{row['peak_memory_bytes'] / 2**30:.2f} GiB", "not measured"]
    header = ["graph", "seconds to vectors on disk", "peak memory", "seconds with probe and baselines"]
    return markdown(header, [[name, *cells] for name, cells in rows.items()])


TABLES: Mapping[str, Callable[[], str]] = {
    "defaults-summary": summary,
    "defaults-tried": tried,
    "defaults-10": lambda: table("10%", "accuracy"),
    "defaults-2": lambda: table("2%", "accuracy"),
    "defaults-f1": lambda: table("10%", "macro_f1"),
    "defaults-f1-2": lambda: table("2%", "macro_f1"),
    "defaults-endings": endings,
    "defaults-ratios": ratios,
    "defaults-commands": commands,
    "defaults-choice": choice.table,
    "defaults-rules": choice.rules,
}


def write(out: Path) -> list[Path]:
    """Fill ``defaults.md``, next to the folder of figures."""
    return [write_page(out.parent / "defaults.md", TABLES)]
