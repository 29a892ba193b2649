"""The tables of ``results.md``: the paper's numbers, ours, and the settings behind ours.

± is the standard deviation over the pairs of the protocol, seed s on split s. Cells that were not run say so.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from costa.evaluate.baselines import BASELINES
from costa.methods import get_method
from costa.settings import presets
from costa.wording import counted, signed
from reproduction import grid, paper
from reproduction.grid import Cell
from reproduction.tables import NOT_MEASURED, markdown, write_page

DEFAULT, STRICT = "random-10-10-80", "strict-10-10-80"
SPREAD = r" ± [\d.]+"
OURS = (
    ("ours", "tuned", DEFAULT),
    ("ours, strict", "strict", STRICT),
    ("ours, 10/80/10", "tuned", "random-10-80-10"),
    ("ours, 2% labels", "tuned", "random-2-2-96"),
    ("published settings", "paper", DEFAULT),
)
"""The rows of a method: label, preset and protocol."""
DEFAULTS = (("defaults (hops)", "none", DEFAULT), ("defaults, 2% labels", "none", "random-2-2-96"))
"""Those of COSTA with its defaults, which no one tuned."""
SIDE_BY_SIDE = {
    "sketches": (
        ["feature augmentation"],
        {
            "noise": ["Gaussian noise"],
            "svd": ["SVD"],
            "selection": ["random selection"],
            "gaussian": ["random projection"],
        },
    ),
    "ablation": (
        ["graph", "features"],
        {"neither": ["×", "×"], "graph": ["✓", "×"], "features": ["×", "✓"], "both": ["✓", "✓"]},
    ),
}
"""First columns of two tables of variations: their header, and those of each variation."""


def score(cell: Cell, results: Path, seeds: int, protocol: str = DEFAULT) -> str:
    """Mean ± standard deviation over the pairs, in percent, with the number of seeds if some are missing."""
    by_seed = grid.find(cell, results, seeds)
    accuracies = [100 * accuracy for accuracy in grid.pairs(cell, by_seed, protocol, seeds).values()]
    lost = [run["status"] for run in by_seed.values() if run["status"] != "ok"]
    notes = [f"{lost.count(status)} {status}" for status in dict.fromkeys(lost)]
    if not accuracies:
        return ", ".join(notes) or NOT_MEASURED
    spread = f" ± {statistics.stdev(accuracies):.2f}" if len(accuracies) > 1 else ""
    if len(accuracies) + len(lost) < seeds:
        notes.insert(0, counted(len(accuracies), "seed"))
    return f"{statistics.mean(accuracies):.2f}{spread}" + (f" ({', '.join(notes)})" if notes else "")


def main_table(datasets: Sequence[str], results: Path, seeds: int) -> str:
    """A main table of the paper: for each method the paper's number, ours, and the file of its settings."""
    rows = []
    for name in paper.TABLE_METHODS:
        title = get_method(name).title
        lines = {"paper": [paper.reported_for(name, dataset) for dataset in datasets]}
        for label, preset, protocol in _rows(name):
            lines[label] = [_ours(Cell(name, dataset, preset), results, seeds, protocol) for dataset in datasets]
        untrained = [paper.untrained_cell(name, dataset) for dataset in datasets]
        lines["its encoder, untrained"] = ["" if cell is None else score(cell, results, seeds) for cell in untrained]
        lines["settings"] = [_settings_file(name, dataset) for dataset in datasets]
        rows += [[title, *share_note(label, cells, seeds)] for label, cells in lines.items() if any(cells)]
    return markdown(["method", "", *map(paper.title_of, datasets)], rows)


def share_note(label: str, cells: Sequence[str], seeds: int) -> list[str]:
    """The label of a row and its cells; a note that most of the numbers have moves to the label.

    >>> share_note("DGI", ["84.1 (5 seeds)", "not measured", "73.0 (5 seeds)"], 20)
    ['DGI (5 seeds)', '84.1', 'not measured', '73.0']
    >>> share_note("GAE", ["84.8", "72.8 (5 seeds)", "87.2 (5 seeds)"], 20)
    ['GAE (5 seeds)', '84.8 (20 seeds)', '72.8', '87.2']
    """
    notes = Counter(cell.partition(" (")[2] for cell in cells if cell not in ("", NOT_MEASURED))
    common = next((f" ({note}" for note, count in notes.items() if note and 2 * count > notes.total()), "")
    if not common:
        return [label, *cells]
    without_note = {cell for cell in cells if "(" not in cell} - {"", NOT_MEASURED}
    return [
        label + common,
        *(
            f"{cell} ({counted(seeds, 'seed')})" if cell in without_note else cell.removesuffix(common)
            for cell in cells
        ),
    ]


def _rows(method: str) -> Sequence[tuple[str, str, str]]:
    """The rows of :data:`OURS` that a method has; a baseline, never tuned, is one model under every protocol."""
    *chosen, published = OURS
    if method in BASELINES:
        return [(label, "tuned", protocol) for label, _, protocol in chosen]
    if method in paper.FAMILIES["COSTA"]:
        return OURS + DEFAULTS
    tuned = any(presets.published(name, method) for name in ("tuned", "strict"))
    return OURS if tuned else (chosen[0], published)


def _ours(cell: Cell, results: Path, seeds: int, protocol: str) -> str:
    """The score; empty if the settings do not exist."""
    if cell.preset not in ("tuned", "none") and cell.dataset not in presets.published(cell.preset, cell.method):
        return ""
    return score(cell, results, seeds, protocol)


def _settings_file(method: str, dataset: str) -> str:
    """Paths under ``src/costa/settings``; not links, which would lead nowhere on the site."""
    places = [name for name in ("tuned", "strict") if dataset in presets.published(name, method)]
    return ", ".join(f"`{name}/{method}/{dataset}.toml`" for name in places)


def side_by_side(experiment: str, results: Path, seeds: int) -> str:
    """One view with each of an experiment's variations: the paper's number and ours, two columns for each dataset."""
    header, rows = SIDE_BY_SIDE[experiment]
    columns = [column for dataset in paper.ABLATED for column in (f"{paper.title_of(dataset)}, paper", "ours")]
    body = []
    for key, first in rows.items():
        body.append([*first])
        for dataset in paper.ABLATED:
            ours = score(paper.varied_cell(experiment, key, dataset), results, seeds)
            body[-1] += [paper.reported(experiment, key, dataset), ours]
    return markdown([*header, *columns], body)


def overview(results: Path, seeds: int) -> str:
    """Every method on every graph that was measured: our mean, and the paper's in brackets."""
    rows = []
    for name in paper.TABLE_METHODS:
        scores = [re.sub(SPREAD, "", score(Cell(name, dataset), results, seeds)) for dataset in paper.MEASURED]
        label, *ours = share_note(get_method(name).title, scores, seeds)
        theirs = [re.sub(SPREAD, "", paper.reported_for(name, dataset)) for dataset in paper.MEASURED]
        rows.append([label, *(_with_paper(a, b) for a, b in zip(ours, theirs, strict=True))])
    return markdown(["method", *map(paper.title_of, paper.MEASURED)], rows)


def _with_paper(ours: str, theirs: str) -> str:
    """Our number with the paper's in brackets, in front of any note.

    >>> _with_paper("84.8", "76.9"), _with_paper("84.8 (20 seeds)", "76.9"), _with_paper("84.8", "")
    ('84.8 (76.9)', '84.8 (76.9; 20 seeds)', '84.8')
    """
    number, _, note = ours.partition(" (")
    return f"{number} ({theirs}; {note}" if theirs and note else f"{number} ({theirs})" if theirs else ours


def rivals(results: Path, seeds: int) -> str:
    """Every method minus COSTA with two views, split by split."""
    *others, two_views = paper.TABLE_METHODS
    rows = [
        share_note(
            get_method(name).title,
            [difference(Cell(name, data), Cell(two_views, data), results, seeds) for data in paper.MEASURED],
            seeds,
        )
        for name in others
    ]
    return markdown([f"minus {get_method(two_views).title}", *map(paper.title_of, paper.MEASURED)], rows)


def difference(first: Cell, second: Cell, results: Path, seeds: int, protocol: str = DEFAULT) -> str:
    """Mean of first − second over the splits that both were tested on, in points, ± its standard error.

    An easy or hard split affects both, and cancels.
    """
    ours, others = (grid.pairs(cell, grid.find(cell, results, seeds), protocol, seeds) for cell in (first, second))
    points = [100 * (accuracy - others[split]) for split, accuracy in ours.items() if split in others]
    if not points:
        return NOT_MEASURED
    error = f" ± {statistics.stdev(points) / math.sqrt(len(points)):.2f}" if len(points) > 1 else ""
    note = f" ({counted(len(points), 'seed')})" if len(points) < seeds else ""
    return signed(statistics.mean(points)) + error + note


def differences(results: Path, seeds: int) -> str:
    """The differences that the ablations are about, pair by pair."""
    compared = {dataset: paper.comparisons(dataset) for dataset in paper.CITATION}
    rows = [
        [title, *(difference(*pairs[title], results, seeds) if title in pairs else "" for pairs in compared.values())]
        for title in compared[paper.CITATION[0]]
    ]
    return markdown(["one view, everything else equal", *map(paper.title_of, paper.CITATION)], rows)


def again(results: Path, seeds: int) -> str:
    """The rows of COSTA in the main tables: the second run minus the first."""
    repeated = set(paper.repeated_cells(paper.MEASURED))
    by_preset: dict[str, tuple[str, str]] = {}
    for label, preset, protocol in OURS:
        # the first row of a preset has the protocol that its settings were chosen for
        by_preset.setdefault(preset, (label, protocol))
    rows = []
    for name in paper.FAMILIES["COSTA"]:
        for preset, (label, protocol) in by_preset.items():
            firsts = [Cell(name, dataset, preset) for dataset in paper.MEASURED]
            cells = [
                difference(paper.again(cell), cell, results, seeds, protocol) if cell in repeated else ""
                for cell in firsts
            ]
            if any(cells):
                rows.append([get_method(name).title, *share_note(label, cells, seeds)])
    return markdown(["method", "", *map(paper.title_of, paper.MEASURED)], rows)


TABLES: dict[str, Callable[[Path, int], str]] = {
    "table-overview": overview,
    "table-rivals": rivals,
    "table-main": partial(main_table, paper.MAIN),
    "table-citation": partial(main_table, paper.CITATION),
    "table-again": again,
    "table-sketches": partial(side_by_side, "sketches"),
    "table-ablation": partial(side_by_side, "ablation"),
    "table-differences": differences,
}
"""The tables by the name of their place on the page."""


def write(name: str, results: Path, out: Path, seeds: int) -> list[Path]:
    """Put a table in its place in ``results.md``, next to the folder of figures."""
    return [write_page(out.parent / "results.md", TABLES, results, seeds, only=[name])]
