"""How well each sketch keeps the covariance, measured beside what is stated and what is proved of it.

The measurements go into ``results/experiments/bounds/SOURCE.jsonl``, one line for each sketch and k. The sources are
the hidden features of a trained COSTA, centred and as they are, and three small H whose spectra are extreme.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import health, many, runs, settings, training
from costa.augment.bounds import Guarantee, Statistics, draw_errors, gaussian_rows, selection_rows
from costa.augment.features import Sketch, make_sketch
from costa.errors import InputError
from costa.experiments import presets, store
from costa.graphs import load_graph
from costa.methods import get_method

if TYPE_CHECKING:
    from costa.experiments.reproduce import Request, Setup

EXPERIMENT = "bounds"
SKETCHES: dict[str, tuple[str, dict[str, Any]]] = {
    "gaussian": ("gaussian", {}),
    "rademacher": ("rademacher", {}),
    "sparse, density 0.1": ("sparse", {"density": 0.1}),
    "sparse, density 0.01": ("sparse", {"density": 0.01}),
    "countsketch": ("countsketch", {}),
    "selection": ("selection", {}),
    "selection as printed": ("selection", {"scaling": "printed"}),
    "svd": ("svd", {}),
    "noise": ("noise", {}),
}
"""What is measured: the kind of the sketch and its settings, by its name in figures and tables."""
DATASETS = ("cora",)
"""Whose hidden features are measured."""
ROWS, DRAWS = (16, 64, 256, 1024), 200
"""k, and draws, of hidden features; all d eigenvalues of each draw are computed."""
SMALL_ROWS, SMALL_DRAWS = (4, 16, 64, 256), 1000
"""Of the small spectra."""
SVD_ROWS = (4, 16)
"""Of an SVD, which has at most d."""
EPS = (0.05, 0.1, 0.2, 0.3, 0.5)
"""Where failures are counted."""
DELTA = 0.05
"""The failure probability of every ε that is stated or proved."""
COST = 10**8
"""What :func:`survey` spends on one k, in entries of P: a second or two."""


SPECTRA_SHAPE = (200, 16)
SPECTRA_SEED = 1
"""Not that of the draws: E would begin with the numbers that H was made of."""


def rank_one() -> Tensor:
    """σ₁ alone: on it, the relative error of a Gaussian P is |χ²_k/k − 1|."""
    generator = torch.Generator().manual_seed(SPECTRA_SEED)
    return torch.outer(*(torch.randn(size, generator=generator) for size in SPECTRA_SHAPE))


def flat() -> Tensor:
    """d equal singular values: even H̃ = 0 has an error of no more than 1/d."""
    return torch.linalg.qr(torch.randn(SPECTRA_SHAPE, generator=torch.Generator().manual_seed(SPECTRA_SEED))).Q


def dominant_row() -> Tensor:
    """99% of the trace in one row, the bad case of a sparse P: what misses the row misses nearly everything."""
    h = flat()
    h[0] *= math.sqrt(99 * float(h[1:].square().sum())) / float(h[0].norm())
    return h


SPECTRA: dict[str, Callable[[], Tensor]] = {"rank-one": rank_one, "flat": flat, "dominant-row": dominant_row}


def sources(datasets: Sequence[str]) -> list[str]:
    """The names of all H."""
    return [f"{dataset}-{form}" for dataset in datasets for form in ("centred", "uncentred")] + list(SPECTRA)


def load(datasets: Sequence[str], results: Path) -> list[dict[str, Any]]:
    """The store's lines, of each source, sketch and k the last."""
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    for source in sources(datasets):
        path = results / "experiments" / EXPERIMENT / f"{source}.jsonl"
        lines = store.read(path)
        found |= {(source, line["sketch"], line["k"]): line for line in lines}
    return [found[key] for key in _plan(datasets) if key in found]


def _plan(datasets: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """(source, sketch, k) of every line; `noise`, which keeps all rows, has the one k = 0."""
    for source in sources(datasets):
        rows = SMALL_ROWS if source in SPECTRA else ROWS
        for name, (kind, _) in SKETCHES.items():
            own = {"noise": (0,), "svd": SVD_ROWS}.get(kind, rows)
            yield from ((source, name, k) for k in own)


def measure(request: Request, setup: Setup) -> None:
    """Measure what the store lacks."""
    import joblib

    datasets = request.datasets or DATASETS
    there = {(line["dataset"], line["sketch"], line["k"]) for line in load(datasets, request.results)}
    lacking = [key for key in _plan(datasets) if key not in there]
    features: dict[str, tuple[Tensor, dict[str, Any]]] = {}
    for source in dict.fromkeys(source for source, _, _ in lacking):
        if source not in features:
            features |= _features(source, setup)
    # the slowest first: the cores are busy to the end
    lacking.sort(key=lambda key: -key[2])
    tasks = [joblib.delayed(measure_one)(*key, features[key[0]][0]) for key in lacking]
    parallel = joblib.Parallel(n_jobs=setup.jobs or many.cores(), return_as="generator")
    for done, line in enumerate(parallel(tasks), 1):
        made_of = features[line["dataset"]][1]
        metrics = line | {"method": EXPERIMENT, "commit": runs.commit(), "versions": runs.versions()}
        store.append(request.results / "experiments", metrics, made_of)
        setup.announce(f"{done}/{len(tasks)}  {line['dataset']}, {line['sketch']}, k = {line['rows']:,}")


def _features(source: str, setup: Setup) -> dict[str, tuple[Tensor, dict[str, Any]]]:
    """The H of a source, and the settings it was made with; those of one training come together."""
    if source in SPECTRA:
        return {source: (SPECTRA[source](), {})}
    dataset = source.rpartition("-")[0]
    graph = load_graph(dataset, data_dir=setup.data_dir)
    method = get_method("costa-sv")
    resolved = presets.resolve(method, graph, preset="none")
    setup.announce(f"training {method.name} on {dataset}, whose hidden features are sketched")
    h = _embed("costa-sv", resolved.values, graph, setup.device)
    made_of = settings.flatten(resolved.values)
    return {f"{dataset}-centred": (h - h.mean(0), made_of), f"{dataset}-uncentred": (h, made_of)}


def _embed(name: str, values: Any, graph: Data, device: torch.device) -> Tensor:
    built = training.build(get_method(name), values, graph, seed=0, device=device)
    training.train(built, graph, getattr(values, "train", None))
    return built.embed(graph).float().cpu()


def measure_one(source: str, name: str, k: int, h: Tensor, draws: int | None = None) -> dict[str, Any]:
    """The line of one sketch of one H at one k; without ``draws``, as many as the source's are."""
    statistics = Statistics(h)
    sketch = _sketch(name, k, statistics)
    guarantee = Guarantee(statistics, sketch)
    draws = draws or (SMALL_DRAWS if source in SPECTRA else DRAWS)
    draws = 1 if sketch.name == "svd" else draws
    errors, squares = draw_errors(statistics, sketch, draws, torch.Generator().manual_seed(0))
    return {
        "dataset": source,
        "sketch": name,
        "k": k,
        "rows": guarantee.rows,
        "nodes": h.shape[0],
        "columns": h.shape[1],
        "draws": draws,
        "seed": 0,
        "largest": statistics.largest,
        "concentration": statistics.concentration,
        "dominance": statistics.dominance,
        "median": float(errors.quantile(0.5)),
        "q95": float(errors.quantile(0.95)),
        "second_moment": guarantee.moment,
        "measured_moment": float(squares.mean()),
        "measured_moment_error": float(squares.std() / math.sqrt(draws)) if draws > 1 else 0.0,
        "stated_eps": guarantee.stated_eps(DELTA),
        "proved_eps": guarantee.proved_eps(DELTA),
        "failures": [
            {
                "eps": eps,
                "count": int((errors > eps).sum()),
                "stated": guarantee.stated(eps),
                "proved": guarantee.proved(eps),
            }
            for eps in EPS
        ],
    }


def _sketch(name: str, k: int, statistics: Statistics) -> Sketch:
    """`noise` is as strong as H: E‖E‖²_F = ‖H‖²_F, so that it, too, does not depend on the scale of H."""
    kind, own = SKETCHES[name]
    if kind == "noise":
        return make_sketch(kind, noise_std=math.sqrt(statistics.trace / statistics.h.numel()), center=False)
    return make_sketch(kind, k=k, center=False, **own)


@dataclass(frozen=True)
class Row:
    """One sketch with one k on a user's H; the ε hold with a probability of 95%."""

    sketch: str
    k: int
    draws: int
    median: float
    q95: float
    stated_eps: float | None
    proved_eps: float


@dataclass(frozen=True)
class Survey:
    """What k buys on a user's H, without its mean.

    Attributes:
        nodes, columns: Of H.
        effective_rank: See :func:`costa.health.effective_rank`.
        largest: ‖HᵀH‖₂/Tr(HᵀH), the error of H̃ = 0.
        eps: What the advice is for.
        rows: A row for each sketch and k.
        advice: A sentence for each sketch.
    """

    nodes: int
    columns: int
    effective_rank: float
    largest: float
    eps: float
    rows: list[Row]
    advice: list[str]


def features_of(graph: Data, device: torch.device, *, raw: bool = False, run: Path | None = None) -> Tensor:
    """H of an untrained encoder; or X, scaled as a method would scale it; or the vectors of a run's model."""
    if run is not None:
        return torch.from_numpy(runs.embed(runs.load_model(run, device), run, graph))
    name = "raw" if raw else "untrained"
    return _embed(name, presets.resolve(get_method(name), graph).values, graph, device)


def survey(h: Tensor, kinds: Sequence[str], rows: Sequence[int], eps: float | None = None) -> Survey:
    """Measure each sketch at each k on H − mean, beside its guarantees, and say which k to take.

    Args:
        h: n × d.
        kinds: Of :data:`costa.augment.SKETCHES`, but for ``noise``, which has no k.
        rows: The k.
        eps: The relative error to stay below; a quarter of the largest eigenvalue where it is not given.
    """
    if "noise" in kinds:
        raise InputError("the noise sketch keeps all n rows, so there is no k to choose: leave it out.")
    if eps is not None and not 0 < eps < 1:
        raise InputError(f"ε is a share of the trace, above 0 and below 1, not {eps}.")
    statistics = Statistics(h - h.mean(0))
    goal = eps or statistics.largest / 4
    surveyed = {kind: [_survey_one(statistics, kind, k) for k in sorted(set(rows))] for kind in dict.fromkeys(kinds)}
    return Survey(
        nodes=h.shape[0],
        columns=h.shape[1],
        effective_rank=health.effective_rank(h),
        largest=statistics.largest,
        eps=goal,
        rows=[row for own in surveyed.values() for row in own],
        advice=[_advice(statistics, own, goal) for own in surveyed.values()],
    )


def _survey_one(statistics: Statistics, kind: str, k: int) -> Row:
    n, d = statistics.h.shape
    sketch = make_sketch(kind, k=k, center=False)
    # an entry of P costs about as much as 400 of the arithmetic of the eigenvalues
    cost = k * n + d**2 * (k + d) // 400
    draws = 1 if kind == "svd" else min(400, max(20, COST // cost))
    errors, _ = draw_errors(statistics, sketch, draws, torch.Generator().manual_seed(0))
    guarantee = Guarantee(statistics, sketch)
    median, q95 = errors.quantile(torch.tensor([0.5, 0.95], dtype=torch.float64)).tolist()
    return Row(kind, k, draws, median, q95, guarantee.stated_eps(DELTA), guarantee.proved_eps(DELTA))


def _advice(statistics: Statistics, rows: Sequence[Row], eps: float) -> str:
    """Which k keeps the error below ε in 95 of 100 draws: of those measured, or else about how many rows it takes."""
    kind = rows[0].sketch
    aim = f"the covariance within {eps:.2g} of its trace"
    if kind == "svd":
        k = int((statistics.spectrum > eps).sum())
        return f"Take k = {max(1, k):,} for svd: it is the least that keeps {aim}, and it always does."
    proved = proved_rows(statistics, kind, eps)
    lemma = {"gaussian": gaussian_rows, "selection": selection_rows}.get(kind)
    known = f"proved from k = {proved:,} on" + (f", stated from k = {lemma(eps, DELTA):,} on" if lemma else "")
    if enough := [row.k for row in rows if row.q95 <= eps]:
        unsketched = _beyond(len(statistics.h), enough[0])
        return f"Take k = {enough[0]:,} for {kind}: 95 of 100 draws keep {aim} ({known}).{unsketched}"
    last = rows[-1]
    # the error falls as 1/√k
    k = math.ceil(last.k * (last.q95 / eps) ** 2)
    about = f"about k = {_rounded(k):,} would keep {aim} in 95 of 100 draws"
    return f"None of these k is enough for {kind}: {about} ({known}).{_beyond(len(statistics.h), k)}"


def _beyond(n: int, k: int) -> str:
    return f" With {n:,} nodes sketch.kind = none has fewer rows, and loses nothing." if k > n else ""


def proved_rows(statistics: Statistics, kind: str, eps: float) -> int:
    """The fewest rows for which 95% of the draws are proved to keep the error below ε on this H.

    The bounds fall with k, so doubling and halving find it.
    """

    def enough(k: int) -> bool:
        return Guarantee(statistics, make_sketch(kind, k=k, center=False)).proved(eps) <= DELTA

    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _rounded(k: int) -> int:
    """Two digits, upwards: more would be a promise.

    >>> _rounded(1234), _rounded(7)
    (1300, 7)
    """
    unit = 10 ** max(0, len(str(k)) - 2)
    return -(-k // unit) * unit
