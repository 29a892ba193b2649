"""The figures of bias, drawn from the lines that :mod:`reproduction.bias.study` keeps.

Each is an SVG, a PNG and a CSV of what it shows, as in :mod:`reproduction.figures`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costa.insight.drawing import COLOURS, MARKERS
from costa.insight.variants import VARIANTS
from costa.wording import counted
from reproduction import paper
from reproduction.bias import study, toy
from reproduction.figures import Table, floats, make_panels, publish, where
from reproduction.requests import Request

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PINK = COLOURS[:4]
GREY = "0.45"
SHOWN = {"nn_a": (PINK, "D"), "gnn_a": (ORANGE, "s"), "gnn_e": (BLUE, "o"), "gnn_ea": (GREEN, "^")}
"""The paper's variants, in the order of its figure: colour and marker."""
NOISE = "Gaussian noise of equal strength, node by node"
CLASSES = (BLUE, ORANGE, GREEN)


def fig_plane(request: Request) -> list[Path]:
    """One node in two dimensions: its own vector, those of 500 augmentations, and their mean."""
    (dataset, *_) = request.datasets or ["cora"]
    line = study.need(request.results, "plane", dataset, f"bias of a node of {dataset}", "fig-bias-2d")[-1]
    table = [
        {"augmentation": name, "first": first, "second": second}
        for name in ("noise", "graph")
        for first, second in line[name]["points"]
    ]
    return publish(table, lambda _: _draw_plane(line), request.out / "fig-bias-2d")


def fig_distribution(request: Request) -> list[Path]:
    """The distribution of the bias over nodes, for each variant and encoder, against noise of equal strength."""
    (dataset, *_) = request.datasets or ["cora"]
    edges = np.geomspace(study.LEAST, study.MOST, study.BARS + 1)
    table = [
        {
            "encoder": encoder,
            "variant": variant,
            "of": of,
            "from": float(f"{low:.4g}"),
            "to": float(f"{high:.4g}"),
            "nodes": sum(counts),
        }
        for (encoder, variant), lines in nodes(request.results, dataset, "fig-bias-distribution").items()
        for of in ("augmented", "noise")
        for low, high, *counts in zip(edges, edges[1:], *(line[of]["histogram"] for line in lines), strict=False)
    ]
    return publish(table, lambda rows: _draw_distribution(rows, dataset), request.out / "fig-bias-distribution")


def fig_degree(request: Request) -> list[Path]:
    """Bias against degree: the median and the quartiles of each bin, averaged over the encoder's seeds."""
    (dataset, *_) = request.datasets or ["cora"]
    table = []
    for (encoder, variant), lines in nodes(request.results, dataset, "fig-bias-degree").items():
        for of in ("augmented", "noise"):
            rho = [line[of]["correlation"]["relative_bias"] for line in lines]
            for rows in zip(*(line[of]["by_degree"] for line in lines), strict=True):
                low, median, high = (mean(row["quartiles"][place] for row in rows) for place in range(3))
                table.append(
                    {"encoder": encoder, "variant": variant, "of": of, "degree": rows[0]["degree"]}
                    | {"mean_degree": rows[0]["mean"], "nodes": rows[0]["nodes"]}
                    | {"lower_quartile": low, "median": median, "upper_quartile": high, "spearman": mean(rho)}
                )
    return publish(table, lambda rows: _draw_degree(rows, dataset), request.out / "fig-bias-degree")


def fig_degrees(request: Request) -> list[Path]:
    """The share of nodes with degree at least k, and the power law fitted to the tail."""
    lines = degree_lines(request.results, request.graphs(paper.MEASURED))
    table = [
        {"dataset": line["dataset"], "degree": degree, "nodes": count, "share_at_least": round(share, 6)}
        for line in lines
        for degree, count, share in zip(line["degrees"], line["counts"], _at_least(line), strict=True)
    ]
    return publish(table, lambda _: _draw_degrees(lines), request.out / "fig-degrees")


def fig_counterexample(request: Request) -> list[Path]:
    """Contrast under augmentations of equal strength: what is learnt as the share of bias grows."""
    lines = study.counterexample(request.results)
    table = [{key: line[key] for key in ("kind", "share", "seed", "accuracy", "cosine")} for line in lines]
    return publish(table, lambda _: _draw_counterexample(lines), request.out / "fig-counterexample")


def nodes(results: Path, dataset: str, command: str) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The lines of each encoder and variant, one for each seed."""
    lines = study.read(results, "nodes", dataset)
    grouped = {
        (encoder, variant): where(lines, encoder=encoder, variant=variant)
        for encoder in study.ENCODERS
        for variant in VARIANTS
    }
    if not all(grouped.values()):
        raise study.missing(f"bias of the nodes of {dataset}", results, command)
    return grouped


def degree_lines(results: Path, datasets: Sequence[str]) -> list[dict[str, Any]]:
    """The last line of each dataset that was counted."""
    lines = [
        line for name in datasets for line in study.read(results, "degrees", name, {"samples": study.SAMPLES})[-1:]
    ]
    if not lines:
        raise study.missing("count of degrees", results, "fig-degrees")
    return lines


def mean(values: Any) -> float | None:
    """The mean of the values that are not None, to four digits; None if there are none."""
    real = [value for value in values if value is not None]
    return float(f"{statistics.mean(real):.4g}") if real else None


def _draw_plane(line: dict[str, Any]) -> Figure:
    figure, panels = make_panels(1, 2, (8, 4.3), sharex=True, sharey=True)
    titles = {"noise": "feature augmentation: Gaussian noise", "graph": "graph augmentation: edges and attributes"}
    for axes, (name, title) in zip(panels[0], titles.items(), strict=True):
        points = np.array(line[name]["points"])
        axes.scatter(*points.T, s=9, color=BLUE, alpha=0.35, linewidths=0, label="augmented")
        axes.scatter(*points.mean(0), s=150, color=ORANGE, marker="*", edgecolor="black", zorder=4, label="their mean")
        axes.scatter(*line["original"], s=70, color=GREEN, marker="^", edgecolor="black", zorder=3, label="original")
        distance, floor = line[name]["distance"], line[name]["floor"]
        axes.set_title(f"{title}\nmean to original {distance:.3f}, floor {floor:.3f}", fontsize="medium")
        axes.set_aspect("equal")
        axes.set_xlabel("first dimension")
    panels[0][0].set_ylabel("second dimension")
    degree = counted(line["degree"], "neighbour")
    figure.suptitle(
        f"{paper.title_of(line['dataset'])}, a node of {degree}, {study.DRAWS} augmentations of equal strength",
        fontsize="medium",
    )
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_distribution(table: Table, dataset: str) -> Figure:
    figure, panels = make_panels(len(study.ENCODERS), len(SHOWN), (11.5, 5.4), sharex=True, sharey="row")
    used = [row["to"] for row in table if row["nodes"]], [row["from"] for row in table if row["nodes"]]
    handles: dict[str, Any] = {}
    for encoder, row_of_axes in zip(study.ENCODERS, panels, strict=True):
        for (variant, (colour, _)), axes in zip(SHOWN.items(), row_of_axes, strict=True):
            for name, of, style in (
                (variant, "augmented", {"color": colour, "fill": True, "alpha": 0.75}),
                (f"{variant} ÷", "augmented", {"color": "black", "linewidth": 1.2, "linestyle": "--"}),
                (variant, "noise", {"color": GREY, "fill": True, "alpha": 0.55, "hatch": "////"}),
            ):
                if rows := where(table, encoder=encoder, variant=name, of=of):
                    edges = [*(r["from"] for r in rows), rows[-1]["to"]]
                    shares = np.array([r["nodes"] for r in rows]) / sum(r["nodes"] for r in rows)
                    drawn = axes.stairs(100 * shares, edges, **style)
                    if (name, of) != (variant, "augmented"):  # that one is named by the panel's title
                        handles.setdefault(NOISE if of == "noise" else "masking that keeps the mean, ÷ (1 − p)", drawn)
            axes.set_xscale("log")
            axes.set_xlim(min(used[1]) / 1.2, max(used[0]) * 1.2)
            if encoder == study.ENCODERS[0]:
                axes.set_title(f"{variant}\n{VARIANTS[variant].title}", fontsize="small")
        row_of_axes[0].set_ylabel(f"{encoder}\n% of nodes")
    for axes in panels[-1]:
        axes.set_xlabel("‖mean − x‖ / ‖x‖")
    figure.suptitle(
        f"Bias of every node of {paper.title_of(dataset)}, {study.DRAWS} draws, floor included", fontsize="medium"
    )
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw_degree(table: Table, dataset: str) -> Figure:
    figure, panels = make_panels(1, len(study.ENCODERS), (10.5, 4.6), sharey=True)
    for encoder, axes in zip(study.ENCODERS, panels[0], strict=True):
        for place, (variant, (colour, marker)) in enumerate(SHOWN.items()):
            rows = where(table, encoder=encoder, variant=variant, of="augmented")
            # side by side, so that the bars of one degree do not overlap
            x = [max(r["mean_degree"], 0.5) * 1.05 ** (place - 1.5) for r in rows]
            columns = ("lower_quartile", "median", "upper_quartile")
            low, median, high = (np.array(floats(rows, column)) for column in columns)
            rho = rows[0]["spearman"]
            label = variant if rho is None else f"{variant}, ρ = {rho:+.2f}"
            style: dict[str, Any] = {
                "marker": marker,
                "markersize": 5,
                "linewidth": 1.5,
                "elinewidth": 0.9,
                "capsize": 2,
            }
            axes.errorbar(x, median, [median - low, high - median], color=colour, **style, label=label)
        noise = where(table, encoder=encoder, variant="gnn_ea", of="noise")
        x, label = [max(r["mean_degree"], 0.5) for r in noise], "noise as strong as gnn_ea,\nupper quartile"
        axes.plot(x, floats(noise, "upper_quartile"), color=GREY, linestyle=":", linewidth=1.8, label=label)
        axes.set(xscale="log", xlabel="degree", title=f"{encoder} encoder")
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter("{x:g}")
        # below the axes, since the curves of some graphs leave no corner free
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize="small", frameon=False)
    panels[0][0].set_ylabel("bias / ‖x‖, floor taken off")
    figure.suptitle(
        f"{paper.title_of(dataset)}, {study.DRAWS} draws: medians and quartiles; ρ is Spearman's with the degree",
        fontsize="medium",
    )
    return figure


def _draw_degrees(lines: Sequence[dict[str, Any]]) -> Figure:
    columns = min(4, len(lines))
    rows = -(-len(lines) // columns)
    figure, panels = make_panels(rows, columns, (2.9 * columns, 0.8 + 2.6 * rows), sharex=True, sharey=True)
    for axes in panels.flat[len(lines) :]:
        axes.set_visible(False)
    for axes, line in zip(panels.flat, lines, strict=False):
        share = _at_least(line)
        there = [(degree, part) for degree, part in zip(line["degrees"], share, strict=True) if degree]
        axes.plot(*zip(*there, strict=True), color=BLUE, marker="o", markersize=2.5, linestyle="none")
        title = paper.title_of(line["dataset"])
        if "fit" in line:
            axes.plot(*_law(line), color=ORANGE, linewidth=1.8)
            title += f"\nα = {line['fit']['exponent']:.2f} from {line['fit']['start']} on"
        axes.set(xscale="log", yscale="log")
        axes.set_title(title, fontsize="medium")
    figure.supxlabel("degree k", fontsize="medium")
    figure.supylabel("share of nodes with degree ≥ k", fontsize="medium")
    return figure


def _at_least(line: dict[str, Any]) -> list[float]:
    """The share of nodes with at least the degree, for each that occurs."""
    counts = np.array(line["counts"])
    shares: list[float] = (counts[::-1].cumsum()[::-1] / counts.sum()).tolist()
    return shares


def _law(line: dict[str, Any]) -> tuple[list[float], list[float]]:
    """The fitted tail over the range of the data."""
    from scipy.special import zeta

    fit = line["fit"]
    k = np.unique(np.geomspace(fit["start"], max(line["degrees"]), 60).round())
    tail = zeta(fit["exponent"], k) / zeta(fit["exponent"], fit["start"]) * fit["tail"] / line["nodes"]
    return k.tolist(), tail.tolist()


def _draw_counterexample(lines: Table) -> Figure:
    figure, panels = make_panels(1, 4, (12, 3.6))
    first = {(line["kind"], line["share"]): line for line in lines if line["seed"] == 0}
    points, *circles, curve = panels[0]
    line = first["own", 0.75]
    x, b, y = (np.array(line[key]) for key in ("x", "b", "y"))
    for colour, label in zip(CLASSES, range(3), strict=True):
        points.scatter(*x[y == label].T, s=14, color=colour, linewidths=0)
    points.quiver(*x.T, *b.T, angles="xy", scale_units="xy", scale=1, width=0.003, color=GREY, alpha=0.5)
    points.set_title("points and, 75% bias,\nwhere each is drawn to", fontsize="medium")
    points.set_aspect("equal", adjustable="datalim")
    for axes, share in zip(circles, (0.0, 1.0), strict=True):
        _draw_circle(axes, first["own", share])
    for (kind, title), colour, marker, shift in zip(
        toy.KINDS.items(), (BLUE, ORANGE), MARKERS[:2], (-0.008, 0.008), strict=True
    ):
        spread = [[100 * row["accuracy"] for row in where(lines, kind=kind, share=share)] for share in toy.SHARES]
        averages, deviations = [statistics.mean(s) for s in spread], [statistics.stdev(s) for s in spread]
        at = [share + shift for share in toy.SHARES]
        curve.errorbar(at, averages, deviations, color=colour, marker=marker, capsize=3, label=title)
    curve.set(xlabel="share of the strength that is bias", ylabel="accuracy, %")
    curve.set_title(f"evaluated on the points themselves,\n{toy.SETTINGS['seeds']} seeds", fontsize="medium")
    curve.legend(title="drawn", loc="lower left", frameon=False, fontsize="small", alignment="left")
    return figure


def _draw_circle(axes: Axes, line: dict[str, Any]) -> None:
    """f(x) on the circle; each class is moved outwards a little, so that equal points stay visible."""
    z, y = np.array(line["z"]), np.array(line["y"])
    for colour, label in zip(CLASSES, range(3), strict=True):
        first, second = (z[y == label] * (1 + 0.09 * label)).T
        axes.scatter(first, second, s=14, color=colour, linewidths=0)
    bias = "no bias" if line["share"] == 0 else f"{100 * line['share']:.0f}% bias"
    axes.set_title(f"learnt, {bias}:\naccuracy {100 * line['accuracy']:.0f}%", fontsize="medium")
    axes.set(xticks=[], yticks=[], aspect="equal", xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), axisbelow="line")
    axes.spines[:].set_visible(False)
