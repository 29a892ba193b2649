"""The measurements behind the figures of bias: made once, kept as lines in ``results/experiments/bias/``.

``nodes`` is the bias of every node under each variant, on an encoder before and after training, beside noise of equal
strength; ``lengths`` what it does to the vectors' length and direction; ``sketches`` the bias of the covariance;
``plane`` one node in two dimensions; ``degrees`` the degrees of graphs; ``counterexample`` the toy of
:mod:`costa.analysis.toy`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from costa import many, runs, training
from costa.analysis import degrees, toy
from costa.analysis.bias import (
    Bias,
    Encoder,
    Subject,
    add_up,
    bias_of,
    covariance_bias,
    measure,
    noise_of_equal_strength,
    unit_noise,
)
from costa.augment.features import make_sketch
from costa.errors import InputError
from costa.experiments import paper, store
from costa.experiments.presets import resolve
from costa.experiments.reproduce import Request, Setup
from costa.graphs import load_graph
from costa.methods import get_method
from costa.methods.base import EncoderMethod
from costa.nn import GCN, MLP

CPU = torch.device("cpu")
DRAWS, EDGE_RATE, MASK_RATE = 500, 0.3, 0.3
SETTINGS: dict[str, Any] = {"draws": DRAWS, "edge_rate": EDGE_RATE, "mask_rate": MASK_RATE}
SEEDS = (0, 1, 2)
"""Initialisations of the encoder."""
ENCODERS = ("untrained", "trained")
"""costa-sv with its default settings, before its first epoch and after its last."""
HIDDEN = 256
"""Of the encoder with two outputs."""
SKETCH_ROWS = 128
SKETCHES: dict[str, dict[str, Any]] = {
    "gaussian": {"k": SKETCH_ROWS},
    "rademacher": {"k": SKETCH_ROWS},
    "sparse": {"k": SKETCH_ROWS, "density": 0.01},
    "countsketch": {"k": SKETCH_ROWS},
    "selection": {"k": SKETCH_ROWS},
    "selection, as printed": {"k": SKETCH_ROWS, "scaling": "printed"},
    "svd": {"k": SKETCH_ROWS},
    "noise": {"noise_std": 1.0},
}
"""By name; up to a comma it is that of :func:`costa.augment.features.make_sketch`."""
SVD_DRAWS = 2
"""One is like the other."""
LENGTHS = ("gnn_e", "gnn_a", "gnn_ea")
"""Variants whose effect on length and direction is told apart."""
LEAST, MOST, BARS = 1e-3, 10.0, 80
"""Of the histograms of ‖m̄ − x‖/‖x‖: the first and the last edge, and the bars between, equally wide on a log scale."""
SAMPLES = 100
"""Of a power law, to see whether the degrees could be one."""


@dataclass(frozen=True)
class Variant:
    """What encodes, and what is augmented. ``title`` is for a person; the names are the paper's."""

    title: str
    edges: bool = False
    attributes: bool = False
    mlp: bool = False
    rescale: bool = False

    def rates(self, edge_rate: float, mask_rate: float) -> dict[str, Any]:
        """The arguments of :meth:`costa.analysis.bias.Subject.draw`."""
        return {
            "edge_rate": edge_rate * self.edges,
            "mask_rate": mask_rate * self.attributes,
            "rescale": self.rescale,
        }


VARIANTS = {
    "nn_a": Variant("MLP, attributes masked", attributes=True, mlp=True),
    "nn_a ÷": Variant("MLP, attributes masked, ÷ (1 − p)", attributes=True, mlp=True, rescale=True),
    "gnn_a": Variant("GCN, attributes masked", attributes=True),
    "gnn_a ÷": Variant("GCN, attributes masked, ÷ (1 − p)", attributes=True, rescale=True),
    "gnn_e": Variant("GCN, edges dropped", edges=True),
    "gnn_ea": Variant("GCN, edges dropped, attributes masked", edges=True, attributes=True),
}


def subjects(method: EncoderMethod, graph: Data) -> dict[bool, Subject]:
    """A method's encoder on a graph, and (True) the MLP that shares its weights."""
    inputs = method.inputs(graph)
    method.eval()
    mlp = MLP(method.encoder)
    without: Encoder = lambda x, adjacency, mask: mlp(x, mask)  # noqa: E731
    edges = (inputs.edge_index, inputs.edge_weight)
    return {False: Subject(method.encoder, inputs.x, *edges), True: Subject(without, inputs.x, *edges)}


def summary(bias: Bias, degree: Tensor) -> dict[str, Any]:
    """What is kept of a bias: quartiles over the nodes, how it goes with the degree, and a histogram."""
    edges = torch.logspace(math.log10(LEAST), math.log10(MOST), BARS + 1, dtype=torch.float64)
    seen = bias.relative_distance[~bias.relative_distance.isnan()].clamp(LEAST, MOST * (1 - 1e-9))
    squared = bias.squared.clamp(min=0)
    return {
        "distance": degrees.quartiles(bias.distance),
        "relative_distance": degrees.quartiles(bias.relative_distance),
        "bias": degrees.quartiles(squared.sqrt()),
        "relative_bias": degrees.quartiles(bias.relative),
        "ratio": degrees.quartiles(bias.ratio),
        "exceeding": float(bias.exceeds().double().mean()),
        "histogram": torch.histogram(seen, edges).hist.int().tolist(),
        "by_degree": degrees.by_degree(degree, bias.relative),
        "correlation": {
            "distance": degrees.rank_correlation(degree, bias.distance),
            "bias": degrees.rank_correlation(degree, squared),
            "relative_bias": degrees.rank_correlation(degree, bias.relative),
            "ratio": degrees.rank_correlation(degree, bias.ratio),
            "strength": degrees.rank_correlation(degree, bias.strength),
        },
    }


def read(results: Path, kind: str, dataset: str, settings: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The lines of a kind, those with other settings left out; of lines about the same thing the last."""
    path = results / "experiments" / "bias" / kind / f"{dataset}.jsonl"
    lines = store.read(path)
    wanted = SETTINGS if settings is None else settings
    found = {
        tuple(line.get(key) for key in ("encoder", "variant", "kind", "share", "seed")): line
        for line in lines
        if line["settings"] == wanted
    }
    return list(found.values())


def _lacking(results: Path, dataset: str) -> list[tuple[str, int]]:
    """Encoder and seed of each piece that has to be measured; what takes longest comes first."""
    there = {(line["encoder"], line["seed"]) for line in read(results, "nodes", dataset)}
    return [(encoder, seed) for encoder in reversed(ENCODERS) for seed in SEEDS if (encoder, seed) not in there]


def measure_nodes(request: Request, setup: Setup) -> None:
    """``nodes`` and ``sketches`` of each dataset that is asked for; of Cora where none is."""
    import joblib

    for dataset in request.datasets or ["cora"]:
        work = _lacking(request.results, dataset)
        if not work:
            continue
        graph = load_graph(dataset, data_dir=setup.data_dir)
        setup.announce(f"{dataset}: {len(work)} encoders, {len(VARIANTS)} augmentations of each, {DRAWS} draws of each")
        jobs = 1 if setup.device.type == "cuda" else setup.jobs or many.cores()
        tasks = [joblib.delayed(_piece)(graph, encoder, seed, setup.device) for encoder, seed in work]
        for lines in joblib.Parallel(n_jobs=min(jobs, len(tasks)), return_as="generator_unordered")(tasks):
            _keep(request.results, lines, SETTINGS, setup.device)
            setup.announce(f"{dataset}: {lines[0]['encoder']} encoder of seed {lines[0]['seed']} measured")


def _piece(graph: Data, encoder: str, seed: int, device: torch.device) -> list[dict[str, Any]]:
    """The lines of one encoder."""
    method = get_method("costa-sv")
    resolved = resolve(method, graph, preset="none")
    built = training.build(method, resolved.values, graph, seed, device)
    assert isinstance(built, EncoderMethod)
    if encoder == "trained":
        training.train(built, graph, resolved.values.train)
    built.prepare(graph)
    both, degree = subjects(built, graph), degrees.degrees(graph.edge_index, graph.num_nodes)
    unit = unit_noise(graph.num_nodes, built.encoder.out_features, DRAWS, stream(seed, device))
    about = {"dataset": graph.name, "encoder": encoder, "seed": seed}
    lines, shifts = [], {}
    for name, variant in VARIANTS.items():
        subject = both[variant.mlp]
        draw = subject.draw(**variant.rates(EDGE_RATE, MASK_RATE))
        total, squares = add_up(draw, subject.h, DRAWS, stream(seed, device))
        bias = bias_of(total, squares, subject.h, DRAWS)
        shifts[name] = total / DRAWS
        beside = summary(noise_of_equal_strength(bias, unit), degree)
        lines.append(about | {"method": "nodes", "variant": name, "augmented": summary(bias, degree), "noise": beside})
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
        degree: Of the nodes.
    """
    x = h.double()
    found = {"between": F.cosine_similarity(shifts["gnn_e"], shifts["gnn_a"])}
    for name in LENGTHS:
        mean = x + shifts[name]
        found[f"length {name}"] = mean.norm(dim=1) / x.norm(dim=1)
        found[f"cosine {name}"] = F.cosine_similarity(mean, x)
    binned = {name: degrees.by_degree(degree, values.cpu()) for name, values in found.items()}
    return [
        {"degree": rows[0]["degree"], "nodes": rows[0]["nodes"]}
        | {name: row["quartiles"][1] for name, row in zip(binned, rows, strict=True)}
        for rows in zip(*binned.values(), strict=True)
    ]


def _sketches(h: Tensor, seed: int) -> Iterable[dict[str, Any]]:
    for name, options in SKETCHES.items():
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
    """``plane``: a node that is chosen at random, the vectors of all its draws, and noise of equal strength."""
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
        subject = subjects(built, graph)[False]
        source = stream(SEEDS[0], subject.h.device)
        node = int(torch.randint(graph.num_nodes, (), generator=source))
        own = subject.h[node]
        draw = subject.draw(edge_rate=EDGE_RATE, mask_rate=MASK_RATE)
        with torch.no_grad():
            points = {"graph": torch.stack([draw(source)[node] for _ in range(DRAWS)])}
        std = (points["graph"] - own).square().sum(1).mean().div(2).sqrt()
        points["noise"] = own + std * torch.randn(DRAWS, 2, generator=source)
        line = {
            "method": "plane",
            "dataset": dataset,
            "node": node,
            "degree": int(degrees.degrees(graph.edge_index, graph.num_nodes)[node]),
            "original": own.tolist(),
        }
        for name, cloud in points.items():
            replay = iter(cloud[:, None])
            bias = measure(lambda _, replay=replay: next(replay), own[None], DRAWS, source)  # type: ignore[misc]
            found = {"distance": float(bias.distance), "floor": float(bias.floor), "ratio": float(bias.ratio)}
            line[name] = {"points": cloud.tolist(), **found}
        _keep(request.results, [line], SETTINGS, CPU)


def measure_degrees(request: Request, setup: Setup) -> None:
    """``degrees`` of each graph: their counts, the shares that the paper prints, and a power law."""
    for dataset in degree_datasets(request.datasets):
        if read(request.results, "degrees", dataset, {"samples": SAMPLES}):
            continue
        graph = load_graph(dataset, data_dir=setup.data_dir)
        degree = degrees.degrees(graph.edge_index, graph.num_nodes)
        values, counts = degree.unique(return_counts=True)
        line: dict[str, Any] = {"method": "degrees", "dataset": dataset, "nodes": graph.num_nodes}
        line |= {"degrees": values.tolist(), "counts": counts.tolist()}
        line["below_3"], line["at_most_3"] = degrees.share_below(degree, (3, 4))
        fit = degrees.fit_power_law(degree)
        if fit is not None:
            line["fit"] = asdict(fit)
            line["plausibility"] = degrees.plausibility(degree, fit, samples=SAMPLES, seed=0)
        _keep(request.results, [line], {"samples": SAMPLES}, CPU)
        setup.announce(f"{dataset}: degrees of {graph.num_nodes:,} nodes counted")


def degree_datasets(asked: Sequence[str]) -> list[str]:
    """Those that are asked for; the paper's, but for those whose file was never at hand."""
    return list(asked) or list(paper.MEASURED)


def measure_counterexample(request: Request, setup: Setup) -> None:
    """``counterexample``: one line a seed, kind and share of bias."""
    if not read(request.results, "counterexample", toy.NAME, toy.SETTINGS):
        setup.announce("the counterexample: training")
        about = {"method": "counterexample", "dataset": toy.NAME}
        _keep(request.results, [about | line for line in toy.run()], toy.SETTINGS, CPU)


def stream(seed: int, device: torch.device) -> torch.Generator:
    """What is drawn from it owes nothing to the weights, whose generator has the seed itself."""
    return torch.Generator(device).manual_seed(2**32 + seed)


def missing(what: str, results: Path, command: str) -> InputError:
    """Nothing to draw."""
    return InputError(f"there is no {what} in {results}; measure it with `costa reproduce {command}`.")


def _keep(results: Path, lines: Iterable[dict[str, Any]], settings: dict[str, Any], device: torch.device) -> None:
    where = {"device": str(device), "commit": runs.commit(), "versions": runs.versions()}
    for line in lines:
        store.append(results / "experiments" / "bias", {**_rounded(line), **where}, settings)


def _rounded(value: Any) -> Any:
    """Six digits of every number, None for what is none: more says nothing, and NaN is no JSON."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
