"""How many sketch rows a graph needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import runs, training
from costa.augment.bounds import Guarantee, Statistics, draw_errors, gaussian_rows, selection_rows
from costa.augment.registry import make_sketch
from costa.errors import InputError
from costa.methods import get_method
from costa.methods.encoding import EncoderMethod
from costa.nn import Hops
from costa.nn.spectrum import effective_rank
from costa.settings import presets

DELTA = 0.05
"""Failure probability of every stated or proved ε."""

COST = 10**8
"""Entries of P that :func:`survey` draws for one k, which takes a second or two."""


@dataclass(frozen=True)
class Row:
    """One sketch with one k on H; each ε holds with a probability of 95%."""

    sketch: str
    k: int
    draws: int
    median: float
    q95: float
    stated_eps: float | None
    proved_eps: float


@dataclass(frozen=True)
class Survey:
    """How well sketches of k rows keep the covariance of a centred H.

    Attributes:
        nodes, columns: The shape of H.
        effective_rank: See :func:`costa.nn.spectrum.effective_rank`.
        largest: ‖HᵀH‖₂/Tr(HᵀH), the error of H̃ = 0.
        eps: The relative error that the advice aims at.
        rows: One row per sketch and k.
        advice: One sentence per sketch.
    """

    nodes: int
    columns: int
    effective_rank: float
    largest: float
    eps: float
    rows: list[Row]
    advice: list[str]


def features_of(graph: Data, device: torch.device, *, raw: bool = False, run: Path | None = None) -> Tensor:
    """H of an untrained encoder; or X, scaled as a method scales it; or the vectors of a run's model.

    Of a model with hops it is H, the codes that training sketches: the vectors have other columns beside them.
    """
    if run is not None:
        model = runs.load_model(run, device)
        vectors = torch.from_numpy(runs.embed(model, run, graph))
        if isinstance(model, EncoderMethod) and isinstance(model.encoder, Hops):
            return model.trained_hidden(graph).float().cpu()
        return vectors
    name = "raw" if raw else "untrained"
    method = get_method(name)
    values = presets.resolve(method, graph).values
    return training.train_and_embed(method, values, graph, device=device)[2].float().to_dense().cpu()


def survey(h: Tensor, kinds: Sequence[str], rows: Sequence[int], eps: float | None = None) -> Survey:
    """Measure each sketch at each k on H − mean, compute its guarantees, and advise which k to take.

    Args:
        h: Features H, n × d.
        kinds: Names in :data:`costa.augment.SKETCHES`, except ``noise``, which has no k.
        rows: Values of k.
        eps: The relative error to stay below; by default a quarter of the largest eigenvalue.
    """
    if "noise" in kinds:
        raise InputError("the noise sketch keeps all n rows, so it has no k to choose; leave it out.")
    if eps is not None and not 0 < eps < 1:
        raise InputError(f"--eps is a share of the trace, above 0 and below 1, not {eps}.")
    statistics = Statistics(h - h.mean(0))
    goal = eps or statistics.largest / 4
    surveyed = {kind: [_survey_one(statistics, kind, k) for k in sorted(set(rows))] for kind in dict.fromkeys(kinds)}
    return Survey(
        nodes=h.shape[0],
        columns=h.shape[1],
        effective_rank=effective_rank(h),
        largest=statistics.largest,
        eps=goal,
        rows=[row for rows_of_kind in surveyed.values() for row in rows_of_kind],
        advice=[_advice(statistics, rows_of_kind, goal) for rows_of_kind in surveyed.values()],
    )


def _survey_one(statistics: Statistics, kind: str, k: int) -> Row:
    n, d = statistics.h.shape
    sketch = make_sketch(kind, k=k, center=False)
    # drawing an entry of P costs about as much as 400 operations of the eigenvalues
    cost = k * n + d**2 * (k + d) // 400
    draws = 1 if kind == "svd" else min(400, max(20, COST // cost))
    errors, _ = draw_errors(statistics, sketch, draws, torch.Generator().manual_seed(0))
    guarantee = Guarantee(statistics, sketch)
    median, q95 = errors.quantile(torch.tensor([0.5, 0.95], dtype=torch.float64)).tolist()
    return Row(kind, k, draws, median, q95, guarantee.stated_eps(DELTA), guarantee.proved_eps(DELTA))


def _advice(statistics: Statistics, rows: Sequence[Row], eps: float) -> str:
    """Which measured k keeps the error below ε in 95 of 100 draws or, if none does, about how many rows it takes."""
    kind = rows[0].sketch
    aim = f"the covariance within {eps:.2g} of its trace"
    if kind == "svd":
        k = int((statistics.spectrum > eps).sum())
        return f"Take k = {max(1, k):,} for svd: it is the smallest k that keeps {aim}, in every draw."
    proved = proved_rows(statistics, kind, eps)
    lemma = {"gaussian": gaussian_rows, "selection": selection_rows}.get(kind)
    known = f"proved for k ≥ {proved:,}" + (f", stated by the lemma for k ≥ {lemma(eps, DELTA):,}" if lemma else "")
    if enough := [row.k for row in rows if row.q95 <= eps]:
        unsketched = _beyond(len(statistics.h), enough[0])
        return f"Take k = {enough[0]:,} for {kind}: 95 of 100 draws keep {aim} ({known}).{unsketched}"
    last = rows[-1]
    # the error falls as 1/√k
    k = math.ceil(last.k * (last.q95 / eps) ** 2)
    about = f"about k = {_rounded(k):,} would keep {aim} in 95 of 100 draws"
    return f"None of these k is large enough for {kind}: {about} ({known}).{_beyond(len(statistics.h), k)}"


def _beyond(n: int, k: int) -> str:
    return f" That is more than the {n:,} nodes: sketch.kind = none has fewer rows and is exact." if k > n else ""


def proved_rows(statistics: Statistics, kind: str, eps: float) -> int:
    """The fewest rows that provably keep the error below ε on this H in 95% of the draws.

    The bounds fall with k, so bisection finds it.
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
    """Round up to two digits, because k is only an estimate.

    >>> _rounded(1234), _rounded(7)
    (1300, 7)
    """
    unit = 10 ** max(0, len(str(k)) - 2)
    return -(-k // unit) * unit
