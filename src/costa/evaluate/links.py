"""How well vectors predict links that were held out before training.

**Pairs.** The held-out edges are divided at random: a third validates, two thirds test. Each part is compared with
non-edges, drawn from all pairs that are no edge of the whole graph, held-out edges included, each with the same
probability and none twice. A part has as many as edges but at least :data:`NON_EDGES`, if the graph has so many.

**Measures**, of test pairs:

- AUC, the probability that an edge has a higher score than a non-edge; ties count half. Chance is ½.
- Average precision: the mean, over the edges, of the precision at the score of each. Chance is the share of edges.
- Hits@k: the share of edges with a higher score than the k-th best non-edge, as OGB has it. Chance is about k over the
  number of non-edges.

**Choice.** Three scores come from the vectors (:mod:`costa.evaluate.pair_scores`), one of them in several strengths.
That with the best validation AUC is the run's. Baselines see the training graph alone, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from costa.errors import InputError
from costa.evaluate.baselines import baseline_vectors
from costa.evaluate.pair_scores import (
    STRENGTHS,
    VECTOR_SCORES,
    PairScore,
    adamic_adar,
    common_neighbours,
    cosine,
    dot_product,
    logistic,
    preferential_attachment,
)
from costa.graphs.pairs import count_pairs, edge_numbers, pairs_of, sample_non_edges
from costa.wording import counted

HITS = (10, 50, 100)
"""The k of hits@k."""
NON_EDGES = 10_000
"""The fewest non-edges of a part, if the graph has so many."""
VALIDATION = 3
"""One of so many held-out edges validates."""
FEW = 100
"""With fewer edges to test on, the standard error of an AUC may be above 3 points."""

LINK_BASELINES = {
    "common-neighbours": "common neighbours",
    "adamic-adar": "Adamic–Adar",
    "preferential-attachment": "preferential attachment",
    "raw": "raw features",
    "diffused": "diffused features",
}
"""The baselines, and what each is called; features are compared by their cosine."""


@dataclass(frozen=True)
class LinkScore:
    """AUC, average precision and hits@k (None if there are fewer than k non-edges), as fractions."""

    auc: float
    ap: float
    hits: Mapping[int, float | None]

    @classmethod
    def of(cls, edges: np.ndarray, non_edges: np.ndarray) -> LinkScore:
        """The measures of the scores of edges and of non-edges.

        >>> LinkScore.of(np.array([3.0, 1.0]), np.array([2.0, 0.0])).auc
        0.75
        """
        from sklearn.metrics import average_precision_score, roc_auc_score

        truth, scores = np.repeat([1, 0], [len(edges), len(non_edges)]), np.concatenate([edges, non_edges])
        best = np.sort(non_edges)[::-1]
        hits = {k: float((edges > best[k - 1]).mean()) if k <= len(best) else None for k in HITS}
        return cls(float(roc_auc_score(truth, scores)), float(average_precision_score(truth, scores)), hits)

    @classmethod
    def of_chance(cls, edges: int, non_edges: int) -> LinkScore:
        """What scores drawn at random are expected to reach; of average precision the limit for many pairs."""
        hits = {k: k / (non_edges + 1) if k <= non_edges else None for k in HITS}
        return cls(0.5, edges / (edges + non_edges), hits)

    def measures(self) -> dict[str, float]:
        """All that could be measured, by name."""
        hits = {f"hits@{k}": share for k, share in self.hits.items() if share is not None}
        return {"AUC": self.auc, "AP": self.ap, **hits}

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"auc": self.auc, "ap": self.ap, "hits": {str(k): share for k, share in self.hits.items()}}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> LinkScore:
        """The inverse of :meth:`to_dict`."""
        return cls(entry["auc"], entry["ap"], {int(k): share for k, share in entry["hits"].items()})


@dataclass(frozen=True)
class LinkProbe:
    """The result of :func:`link_probe`.

    Attributes:
        edges: The number of held-out edges that validate, and that test.
        non_edges: The number of non-edges of each part.
        validation: The validation AUC of each of :data:`~costa.evaluate.pair_scores.VECTOR_SCORES`.
        chosen: The best of them, which the run is judged by.
        strength: The best strength of the logistic regression, by the same measure.
        scores: The test scores of all of them.
        baselines: Those of :data:`LINK_BASELINES`.
    """

    edges: tuple[int, int]
    non_edges: tuple[int, int]
    validation: Mapping[str, float]
    chosen: str
    strength: float
    scores: Mapping[str, LinkScore]
    baselines: Mapping[str, LinkScore]

    @property
    def chance(self) -> LinkScore:
        """What scores drawn at random would reach."""
        return LinkScore.of_chance(self.edges[1], self.non_edges[1])

    def not_above(self) -> list[tuple[str, str, float, float]]:
        """Each measure by which the run is not above the best baseline: its name, the baseline's, its score, ours."""
        below = []
        for measure in self.scores[self.chosen].measures():
            by_name = {name: score.measures()[measure] for name, score in self.baselines.items()}
            best, ours = max(by_name, key=by_name.__getitem__), self.scores[self.chosen].measures()[measure]
            if ours <= by_name[best]:
                below.append((measure, LINK_BASELINES[best], by_name[best], ours))
        return below

    def too_few(self) -> str | None:
        """A warning if there are few edges to test on; else None."""
        if self.edges[1] >= FEW:
            return None
        return f"with only {counted(self.edges[1], 'edge')} to test on, these scores are uncertain by several points"

    def to_dict(self) -> dict[str, Any]:
        """The field ``links`` of ``metrics.json``; all are fractions."""
        return {
            "edges": list(self.edges),
            "non_edges": list(self.non_edges),
            "validation": dict(self.validation),
            "chosen": self.chosen,
            "strength": self.strength,
            "scores": {name: score.to_dict() for name, score in self.scores.items()},
            "baselines": {name: score.to_dict() for name, score in self.baselines.items()},
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> LinkProbe:
        """The inverse of :meth:`to_dict`."""
        edges, non_edges = ((int(part[0]), int(part[1])) for part in (entry["edges"], entry["non_edges"]))
        if entry["chosen"] not in VECTOR_SCORES:
            raise ValueError(f"there is no score {entry['chosen']!r}")
        scores, baselines = (
            {name: LinkScore.from_dict(score) for name, score in entry[field].items()}
            for field in ("scores", "baselines")
        )
        return cls(edges, non_edges, dict(entry["validation"]), entry["chosen"], entry["strength"], scores, baselines)


def link_probe(z: Tensor, whole: Data, training: Data, held: Tensor) -> LinkProbe:
    """Score the vectors, and the baselines, on held-out edges; always on the same non-edges of a graph.

    Args:
        z: Vectors, n × d, of a model that was trained on ``training`` and embedded it.
        whole: The graph with all its edges, which tells non-edges.
        training: The graph without the held-out edges.
        held: The held-out edges, 2 × h, from :func:`costa.graphs.hold_out_edges`.
    """
    validation, test = _parts(whole, held)
    regressions = dict(zip(STRENGTHS, logistic(z, training, STRENGTHS), strict=True))
    by_strength = {strength: _measured(score, *validation).auc for strength, score in regressions.items()}
    strength = max(by_strength, key=by_strength.__getitem__)
    fitted = {"cosine": cosine(z), "dot": dot_product(z), "logistic": regressions[strength]}
    by_validation = {name: _measured(score, *validation).auc for name, score in fitted.items()}
    return LinkProbe(
        edges=(validation[0].shape[1], test[0].shape[1]),
        non_edges=(validation[1].shape[1], test[1].shape[1]),
        validation=by_validation,
        chosen=max(by_validation, key=by_validation.__getitem__),
        strength=strength,
        scores={name: _measured(score, *test) for name, score in fitted.items()},
        baselines={name: _measured(score, *test) for name, score in _baselines(training)},
    )


def _parts(whole: Data, held: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Edges and non-edges to validate with, and to test with."""
    count, random = held.shape[1], np.random.default_rng(0)
    if count < VALIDATION:
        raise InputError(
            f"only {counted(count, 'edge')} held out, too few to choose a score and to test it; train again with a"
            " larger --hold-out-edges."
        )
    held = held[:, random.permutation(count)]
    numbers, n = edge_numbers(whole), int(whole.num_nodes)
    there = count_pairs(n) - len(numbers)
    if there < VALIDATION:
        raise InputError("nearly all pairs of nodes are edges, so there are no non-edges to compare them with.")
    first = count // VALIDATION
    wanted = [max(NON_EDGES, part) for part in (first, count - first)]
    if sum(wanted) > there:
        wanted = [there // VALIDATION, there - there // VALIDATION]
    others = pairs_of(sample_non_edges(numbers, n, sum(wanted), random))
    return (held[:, :first], others[:, : wanted[0]]), (held[:, first:], others[:, wanted[0] :])


def _measured(score: PairScore, edges: Tensor, non_edges: Tensor) -> LinkScore:
    return LinkScore.of(score(edges).numpy(), score(non_edges).numpy())


def _baselines(training: Data) -> Iterator[tuple[str, PairScore]]:
    """Those that take vectors one after the other: features may be wide."""
    yield "common-neighbours", common_neighbours(training)
    yield "adamic-adar", adamic_adar(training)
    yield "preferential-attachment", preferential_attachment(training)
    for name in ("raw", "diffused"):
        yield name, cosine(baseline_vectors(name, training))
