"""The measurements behind the figures of bias: made once, kept as lines in ``results/experiments/bias/``.

``nodes`` is the bias of every node under each variant, on an encoder before and after training, and that of noise of
equal strength; ``lengths`` what it does to the vectors' length and direction; ``sketches`` the bias of the covariance;
``plane`` one node in two dimensions; ``degrees`` the degrees of graphs; ``counterexample`` the toy of
:mod:`reproduction.bias.toy`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from costa import runs, training
from costa.augment.registry import make_sketch
from costa.errors import InputError
from costa.graphs import load_graph
from costa.insight import degrees
from costa.insight.bias import Bias, add_up, bias_of, covariance_bias, measure, noise_of_equal_strength, unit_noise
from costa.insight.variants import VARIANTS, stream, subject
from costa.methods import get_method
from costa.methods.encoding import EncoderMethod
from costa.nn import GCN
from costa.runs.jobs import cores
from costa.settings.presets import resolve
from reproduction import paper, store
from reproduction.bias import power_law, toy
from reproduction.requests import Request, Setup

CPU = torch.device("cpu")

DRAWS, EDGE_RATE, MASK_RATE = 500, 0.3, 0.3

SETTINGS: dict[str, Any] = {"draws": DRAWS, "edge_rate": EDGE_RATE, "mask_rate": MASK_RATE}

SEEDS = (0, 1, 2)
"""Random seeds of the encoder."""

ENCODERS = ("untrained", "trained")
"""costa-sv with its default settings, before its first epoch and after its last."""

HIDDEN = 256
"""Hidden width of the encoder with two outputs."""

SKETCH_ROWS = 128

STUDIED_SKETCHES: dict[str, dict[str, Any]] = {
    "gaussian": {"k": SKETCH_ROWS},
    "rademacher": {"k": SKETCH_ROWS},
    "sparse": {"k": SKETCH_ROWS, "density": 0.01},
    "countsketch": {"k": SKETCH_ROWS},
    "selection": {"k": SKETCH_ROWS},
    "selection, as printed": {"k": SKETCH_ROWS, "scaling": "printed"},
    "svd": {"k": SKETCH_ROWS},
    "noise": {"noise_std": 1.0},
}
"""Options by name; the part before a comma is the kind for :func:`costa.augment.registry.make_sketch`."""

SVD_DRAWS = 2
"""Two are enough, since all draws of an SVD are equal."""

LENGTHS = ("gnn_e", "gnn_a", "gnn_ea")
"""Variants whose effect on length and direction is measured."""

LEAST, MOST, BARS = 1e-3, 10.0, 80
"""Histograms of ‖m̄ − x‖/‖x‖: first and last edge, and the number of bars, equally wide on a log scale."""

SAMPLES = 100
"""Samples of a power law, to test whether the degrees follow it."""


def summary(bias: Bias, degree: Tensor) -> dict[str, Any]:
    """A summary of a bias: quartiles over the nodes, its dependence on the degree, and a histogram."""
    edges = torch.logspace(math.log10(LEAST), math.log10(MOST), BARS + 1, dtype=torch.float64)
    finite = bias.relative_distance[~bias.relative_distance.isnan()].clamp(LEAST, MOST * (1 - 1e-9))
    squared = bias.squared.clamp(min=0)
    both = {"distance": bias.distance, "relative_bias": bias.relative, "ratio": bias.ratio}
    spread = both | {"relative_distance": bias.relative_distance, "bias": squared.sqrt()}
    ranked = both | {"bias": squared, "strength": bias.strength}
    return {
        **{name: degrees.quartiles(values) for name, values in spread.items()},
        "exceeding": float(bias.exceeds().double().mean()),
        "histogram": torch.histogram(finite, edges).hist.int().tolist(),
        "by_degree": degrees.by_degree(degree, bias.relative),
        "correlation": {name: degrees.rank_correlation(degree, values) for name, values in ranked.items()},
    }


def read(results: Path, kind: str, dataset: str, settings: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The lines of a kind with these settings; of several about the same thing, the last."""
    path = results / "experiments" / "bias" / kind / f"{dataset}.jsonl"
    settings = SETTINGS if settings is None else settings
    last = {
        tuple(line.get(key) for key in ("encoder", "variant", "kind", "share", "seed")): line
        for line in store.read(path)
        if line["settings"] == settings
    }
    return list(last.values())


def _lacking(results: Path, dataset: str) -> list[tuple[str, int]]:
    """Encoder and seed of each piece that has to be measured, the slowest first."""
    stored = {(line["encoder"], line["seed"]) for line in read(results, "nodes", dataset)}
    return [(encoder, seed) for encoder in reversed(ENCODERS) for seed in SEEDS if (encoder, seed) not in stored]


def measure_nodes(request: Request, setup: Setup) -> None:
    """Measure ``nodes``, ``lengths`` and ``sketches`` of each requested dataset, or of Cora."""
    import joblib

    for dataset in request.datasets or ["cora"]:
        work = _lacking(request.results, dataset)
        if not work:
            continue
        graph = load_graph(dataset, data_dir=setup.data_dir)
        setup.announce(f"{dataset}: {len(work)} encoders, {len(VARIANTS)} augmentations of each, {DRAWS} draws of each")
        jobs = 1 if setup.device.type == "cuda" else setup.jobs or cores()
        tasks = [joblib.delayed(_piece)(graph, encoder, seed, setup.device) for encoder, seed in work]
        for lines in joblib.Parallel(n_jobs=min(jobs, len(tasks)), return_as="generator_unordered")(tasks):
            _keep(request.results, lines, SETTINGS, setup.device)
            setup.announce(f"{dataset}: {lines[0]['encoder']} encoder of seed {lines[0]['seed']} measured")


def _piece(graph: Data, encoder: str, seed: int, device: torch.device) -> list[dict[str, Any]]:
    """The lines of one encoder."""
    method = get_method("costa-sv")
    resolved = resolve(method, graph, given={"encoder.kind": "gcn"})
    built = training.build(method, resolved.values, graph, seed, device)
    assert isinstance(built, EncoderMethod)
    if encoder == "trained":
        training.train(built, graph, resolved.values.train)
    built.prepare(graph)
    both = {mlp: subject(built, graph, mlp=mlp) for mlp in (False, True)}
    degree = degrees.degrees(graph)
    unit = unit_noise(graph.num_nodes, built.encoder.out_features, DRAWS, stream(seed, device))
    about = {"dataset": graph.name, "encoder": encoder, "seed": seed}
    lines, shifts = [], {}
    for name, variant in VARIANTS.items():
        encoded = both[variant.mlp]
        draw = encoded.draw(**variant.rates(EDGE_RATE, MASK_RATE))
        total, squares = add_up(draw, encoded.h, DRAWS, stream(seed, device))
        bias = bias_of(total, squares, encoded.h, DRAWS)
        shifts[name] = total / DRAWS
        noise = summary(noise_of_equal_strength(bias, unit), degree)
        lines.append(about | {"method": "nodes", "variant": name, "augmented": summary(bias, degree), "noise": noise})
    lines.append(about | {"method": "lengths", "by_degree": lengths(both[False].h, shifts, degree)})
    if (encoder, seed) == (ENCODERS[-1], SEEDS[0]):
        lines += [about | line for line in _sketches(both[False].h, seed)]
    return lines


def lengths(h: Tensor, shifts: Mapping[str, Tensor], degree: Tensor) -> list[dict[str, Any]]:
    """What a bias does to a vector: medians, by degree, of its length and its direction.

    ``length`` is ‖m̄‖/‖x‖ and ``cosine`` that of m̄ and x, for each variant of the GCN; ``between`` is the cosine of what
    dropped edges and what masked attributes do, m̄ − x: below 0 the two cancel.

    Args:
        h: The vectors x.
        shifts: m̄ − x of each variant.
        degree: Degrees of the nodes.
    """
    x = h.double()
    measures = {"between": F.cosine_similarity(shifts["gnn_e"], shifts["gnn_a"])}
    for name in LENGTHS:
        mean = x + shifts[name]
        measures[f"length {name}"] = mean.norm(dim=1) / x.norm(dim=1)
        measures[f"cosine {name}"] = F.cosine_similarity(mean, x)
    binned = {name: degrees.by_degree(degree, values.cpu()) for name, values in measures.items()}
    return [
        {"degree": rows[0]["degree"], "nodes": rows[0]["nodes"]}
        | {name: row["quartiles"][1] for name, row in zip(binned, rows, strict=True)}
        for rows in zip(*binned.values(), strict=True)
    ]


def _sketches(h: Tensor, seed: int) -> Iterable[dict[str, Any]]:
    for name, options in STUDIED_SKETCHES.items():
        sketch = make_sketch(name.partition(",")[0], **options)
        draws = SVD_DRAWS if sketch.name == "svd" else DRAWS
        bias = covariance_bias(sketch, h, draws, stream(seed, h.device))
        yield {
            "method": "sketches",
            "variant": name,
            "distance": float(bias.relative_distance),
            "floor": float(bias.floor / bias.norm),
            "bias": float(bias.relative),
            "errors": float(bias.squared / bias.variance * math.sqrt(draws * (draws - 1) / 2)),
        }


def measure_plane(request: Request, setup: Setup) -> None:
    """Measure ``plane``: a random node, its vectors in all draws, and noise of equal strength."""
    for dataset in request.datasets or ["cora"]:
        if read(request.results, "plane", dataset):
            continue
        graph = load_graph(dataset, data_dir=setup.data_dir)
        method = get_method("untrained")
        resolved = resolve(method, graph, preset="none")
        built = training.build(method, resolved.values, graph, SEEDS[0], CPU)
        assert isinstance(built, EncoderMethod)
        generator = torch.Generator().manual_seed(SEEDS[0])
        built.encoder = GCN(graph.num_features, (HIDDEN, 2), linear=True, generator=generator)
        built.prepare(graph)
        encoded = subject(built, graph)
        source = stream(SEEDS[0], encoded.h.device)
        node = int(torch.randint(graph.num_nodes, (), generator=source))
        original = encoded.h[node]
        draw = encoded.draw(edge_rate=EDGE_RATE, mask_rate=MASK_RATE)
        with torch.no_grad():
            points = {"graph": torch.stack([draw(source)[node] for _ in range(DRAWS)])}
        std = (points["graph"] - original).square().sum(1).mean().div(2).sqrt()
        points["noise"] = original + std * torch.randn(DRAWS, 2, generator=source)
        line = {
            "method": "plane",
            "dataset": dataset,
            "node": node,
            "degree": int(degrees.degrees(graph)[node]),
            "original": original.tolist(),
        }
        for name, cloud in points.items():
            replay = iter(cloud[:, None])
            bias = measure(lambda _, replay=replay: next(replay), original[None], DRAWS, source)  # type: ignore[misc]
            numbers = {"distance": float(bias.distance), "floor": float(bias.floor), "ratio": float(bias.ratio)}
            line[name] = {"points": cloud.tolist(), **numbers}
        _keep(request.results, [line], SETTINGS, CPU)


def measure_degrees(request: Request, setup: Setup) -> None:
    """Measure ``degrees`` of each graph: their counts, the shares that the paper prints, and a power law."""
    for dataset in request.graphs(paper.MEASURED):
        if read(request.results, "degrees", dataset, {"samples": SAMPLES}):
            continue
        graph = load_graph(dataset, data_dir=setup.data_dir)
        degree = degrees.degrees(graph)
        values, counts = degree.unique(return_counts=True)
        line: dict[str, Any] = {"method": "degrees", "dataset": dataset, "nodes": graph.num_nodes}
        line |= {"degrees": values.tolist(), "counts": counts.tolist()}
        line["below_3"], line["at_most_3"] = degrees.share_below(degree, (3, 4))
        fit = power_law.fit_power_law(degree)
        if fit is not None:
            line["fit"] = asdict(fit)
            line["plausibility"] = power_law.plausibility(degree, fit, samples=SAMPLES, seed=0)
        _keep(request.results, [line], {"samples": SAMPLES}, CPU)
        setup.announce(f"{dataset}: degrees of {graph.num_nodes:,} nodes counted")


def measure_counterexample(request: Request, setup: Setup) -> None:
    """Measure ``counterexample``: one line for each seed, kind and share of bias."""
    if not read(request.results, "counterexample", toy.NAME, toy.SETTINGS):
        setup.announce("the counterexample: training")
        about = {"method": "counterexample", "dataset": toy.NAME}
        _keep(request.results, [about | line for line in toy.run()], toy.SETTINGS, CPU)


def counterexample(results: Path) -> list[dict[str, Any]]:
    """The lines of the counterexample; refused if there are none."""
    return need(results, "counterexample", toy.NAME, "counterexample", "fig-counterexample", toy.SETTINGS)


def need(
    results: Path, kind: str, dataset: str, what: str, command: str, settings: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The lines that :func:`read` finds; refused if there are none."""
    if not (lines := read(results, kind, dataset, settings)):
        raise missing(what, results, command)
    return lines


def missing(what: str, results: Path, command: str) -> InputError:
    """The error of a store without these measurements."""
    return InputError(f"there is no {what} in {results}; measure it with `python -m reproduction {command}`.")


def _keep(results: Path, lines: Iterable[dict[str, Any]], settings: dict[str, Any], device: torch.device) -> None:
    provenance = {"device": str(device), "commit": runs.commit(), "versions": runs.versions()}
    for line in lines:
        store.append(results / "experiments" / "bias", {**_rounded(line), **provenance}, settings)


def _rounded(value: Any) -> Any:
    """Every number to six digits; None for NaN and infinity, which are not valid JSON."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
