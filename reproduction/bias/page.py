"""The tables of ``bias.md``, from the lines that :mod:`reproduction.bias.study` keeps.

A number is the median over the nodes, with the quartiles in brackets, each averaged over the encoder's seeds; ± is the
standard deviation of the median over those seeds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from costa.insight.variants import VARIANTS
from costa.wording import signed
from reproduction import paper
from reproduction.bias import figures, study, toy
from reproduction.figures import where
from reproduction.tables import markdown

PRINTED = {
    "cora": "54",
    "citeseer": "68",
    "pubmed": "71",
    "dblp": "53",
    "amazon-photo": "≈ 10",
    "coauthor-physics": "≈ 10",
}
"""The paper's share of nodes with fewer than 3 edges, in percent."""


def bias_table(results: Path) -> str:
    """Bias of each variant, against noise of equal strength."""
    header = ["encoder", "augmentation", "‖m̄ − x‖", "noise", "bias/‖x‖", "bias²/tr Var", "noise"]
    rows = []
    for (encoder, variant), lines in figures.nodes(results, "cora", "fig-bias-distribution").items():
        row = [encoder, _name(variant)]
        row += [_quartiles([line[of]["distance"] for line in lines], 4) for of in ("augmented", "noise")]
        row += [_quartiles([line["augmented"][key] for line in lines], 3) for key in ("relative_bias", "ratio")]
        low, _, high = (statistics.mean(line["noise"]["ratio"][place] for line in lines) for place in range(3))
        row.append(f"{low:.4f} to {high:.4f}")
        for of in ("augmented", "noise"):
            row.append(f"{100 * statistics.mean(line[of]['exceeding'] for line in lines):.0f}%")
        rows.append(row)
    return markdown([*header, "nodes with bias", "noise"], rows)


def degree_table(results: Path) -> str:
    """Spearman's ρ with the degree: of the bias, and of noise of equal strength."""
    keys = ("bias", "relative_bias", "ratio", "strength")
    rows = [
        [
            encoder,
            _name(variant),
            *(_spread(line["augmented"]["correlation"][key] for line in lines) for key in keys),
            *(_spread(line["noise"]["correlation"][key] for line in lines) for key in ("distance", "bias")),
        ]
        for (encoder, variant), lines in figures.nodes(results, "cora", "fig-bias-degree").items()
    ]
    measured = ["bias", "bias/‖x‖", "bias²/tr Var", "strength", "noise: ‖m̄ − x‖", "noise: bias"]
    return markdown(["encoder", "augmentation", *measured], rows)


def length_table(results: Path) -> str:
    """What the bias does to length and direction."""
    lines = study.need(results, "lengths", "cora", "length of the biased vectors", "fig-bias-degree")
    columns = [f"{what} {name}" for what in ("length", "cosine") for name in study.LENGTHS]
    rows = []
    for encoder in study.ENCODERS:
        for same in zip(*(line["by_degree"] for line in lines if line["encoder"] == encoder), strict=True):
            first = [encoder, same[0]["degree"], f"{same[0]['nodes']:,}"]
            rows.append([*first, *(f"{figures.mean(row[name] for row in same):.3f}" for name in columns)])
            rows[-1].append(signed(statistics.mean(row["between"] for row in same)))
    header = ["encoder", "degree", "nodes", *(f"‖m̄‖/‖x‖, {name}" for name in study.LENGTHS)]
    return markdown([*header, *(f"cos(m̄, x), {name}" for name in study.LENGTHS), "cos(edges, attributes)"], rows)


def sketch_table(results: Path) -> str:
    """Bias of the covariance of each sketch."""
    lines = {line["variant"]: line for line in study.read(results, "sketches", "cora")}
    if not all(name in lines for name in study.STUDIED_SKETCHES):
        raise study.missing("bias of the sketches", results, "fig-bias-distribution")
    rows = []
    for name in study.STUDIED_SKETCHES:
        line = lines[name]
        errors = "nothing is random" if name == "svd" else f"{line['errors']:+,.1f}"
        rows.append([name, *(f"{line[key]:.3g}" for key in ("distance", "floor", "bias")), errors])
    return markdown(["sketch", "‖mean − HᵀH‖/‖HᵀH‖", "floor", "bias/‖HᵀH‖", "bias², in standard errors at most"], rows)


def degrees_table(results: Path) -> str:
    """Shares of low degrees, ours and the paper's, and the power law."""
    rows = []
    for line in figures.degree_lines(results, paper.MEASURED):
        fit = line.get("fit")
        law = ["none"] * 5
        if fit:
            law = [f"{fit['exponent']:.2f}", str(fit["start"]), f"{100 * fit['tail'] / line['nodes']:.1f}%"]
            law += [f"{fit['distance']:.3f}", f"{line['plausibility']:.2f}"]
        shares = [f"{100 * line[key]:.1f}%" for key in ("below_3", "at_most_3")]
        printed = PRINTED.get(line["dataset"])
        rows.append([paper.title_of(line["dataset"]), f"{printed}%" if printed else "", *shares, *law])
    header = ["graph", "paper: fewer than 3", "fewer than 3", "at most 3", "α", "from degree", "nodes there", "D", "p"]
    return markdown(header, rows)


def counterexample_table(results: Path) -> str:
    """Accuracy and cosine of the counterexample, by share of bias."""
    lines = study.counterexample(results)
    rows = []
    for kind, title in toy.KINDS.items():
        for key, what, scale, digits in (("accuracy", "accuracy, %", 100, 1), ("cosine", "cosine", 1, 2)):
            cells = []
            for share in toy.SHARES:
                values = [scale * line[key] for line in where(lines, kind=kind, share=share)]
                cells.append(f"{statistics.mean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}")
            rows.append([title, what, *cells])
    return markdown(["drawn", "", *(f"{100 * share:.0f}% bias" for share in toy.SHARES)], rows)


TABLES: dict[str, Callable[[Path], str]] = {
    "table-bias": bias_table,
    "table-bias-degree": degree_table,
    "table-bias-length": length_table,
    "table-bias-sketches": sketch_table,
    "table-degrees": degrees_table,
    "table-counterexample": counterexample_table,
}
"""The tables by the name of their place on the page."""
OF_FIGURE: dict[str, Sequence[str]] = {
    "fig-bias-2d": (),
    "fig-bias-distribution": ("table-bias", "table-bias-sketches"),
    "fig-bias-degree": ("table-bias-degree", "table-bias-length"),
    "fig-degrees": ("table-degrees",),
    "fig-counterexample": ("table-counterexample",),
}
"""The tables that are written with a figure."""


def _name(variant: str) -> str:
    return f"{variant}: {VARIANTS[variant].title}"


def _quartiles(triples: Iterable[Any], digits: int) -> str:
    columns = list(zip(*triples, strict=True))
    # z: a mean that rounds to 0 has no sign
    low, median, high = (f"{statistics.mean(column):z.{digits}f}" for column in columns)
    return f"{median}{_deviation(columns[1], digits)} ({low} to {high})"


def _spread(values: Iterable[float | None]) -> str:
    real = [value for value in values if value is not None]
    return f"{signed(statistics.mean(real))}{_deviation(real, 2)}" if real else "–"


def _deviation(values: Iterable[float], digits: int) -> str:
    values = list(values)
    return f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
