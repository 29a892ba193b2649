"""What was measured about a run: the fields of ``metrics.json``, which others rely on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from costa.errors import InputError
from costa.evaluate.baselines import BASELINES, Baseline
from costa.evaluate.clustering import Clustering
from costa.evaluate.health import Health
from costa.evaluate.links import LinkProbe
from costa.evaluate.samples import Sample
from costa.evaluate.scores import ProbeResult
from costa.runs.files import METRICS, SCHEMA, read_json, write_json
from costa.training import Watched
from costa.wording import duration, html_table

PLAIN = (
    *("method", "dataset", "seed", "status", "epochs", "seconds", "embed_seconds", "trained_together", "processes"),
    *("peak_memory_bytes", "device", "commit", "versions", "loss_fell"),
)
"""The fields that are written to JSON unchanged."""


@dataclass(frozen=True)
class Metrics:
    """What was measured about a run.

    Attributes:
        method, dataset, seed: What was trained, on what, with which random seed.
        status: ``ok``, ``interrupted``, ``diverged`` or ``collapsed``.
        epochs: Number of trained epochs; 0 for a method without a loss.
        seconds: Seconds of training, for all seeds that were trained together.
        embed_seconds: Seconds of embedding.
        trained_together: Number of seeds that share the seconds and the memory.
        processes: Number of processes that trained the run together.
        peak_memory_bytes: See :func:`costa.runs.provenance.peak_memory`.
        device: The GPU's name, or ``cpu``.
        commit, versions: The source tree's commit, and the versions of the packages that affect results.
        health: How the vectors spread; None if they are not finite.
        loss_fell: Whether the loss fell by more than its own noise (:mod:`costa.training.falling`); None without a
            loss, or after few epochs.
        watch: What the watch over the training changed; None for nothing.
        probes: One entry per protocol; empty without labels.
        clustering: k-means against the classes; None without labels.
        sample: How many labelled nodes all scores are of; None if of all.
        baselines: What the baselines reach under the first default protocol (``floor`` in the file); None without
            labels.
        links: Scores on held-out edges; None if ``costa probe --task links`` was not run.
    """

    method: str
    dataset: str
    seed: int
    status: str
    epochs: int = 0
    seconds: float = 0.0
    embed_seconds: float | None = None
    trained_together: int = 1
    processes: int = 1
    peak_memory_bytes: int | None = None
    device: str = "cpu"
    commit: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    loss_fell: bool | None = None
    health: Health | None = None
    watch: Watched | None = None
    probes: Sequence[ProbeResult] = ()
    clustering: Clustering | None = None
    sample: Sample | None = None
    baselines: Mapping[str, Baseline] | None = None
    links: LinkProbe | None = None

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Metrics:
        """The inverse of :meth:`to_dict`; a field that an earlier version did not write gets its default."""

        def read(kind: type, value: Mapping[str, Any] | None) -> Any:
            return None if value is None else kind(**value)

        baselines, links = entry.get("floor"), entry.get("links")
        return cls(
            **{name: entry[name] for name in PLAIN if name in entry},
            health=read(Health, entry.get("health")),
            watch=read(Watched, entry.get("watch")),
            probes=[ProbeResult.from_dict(probe) for probe in entry["probes"]],
            clustering=read(Clustering, entry.get("clustering")),
            sample=read(Sample, entry.get("sample")),
            baselines=None if baselines is None else {name: Baseline(**score) for name, score in baselines.items()},
            links=None if links is None else LinkProbe.from_dict(links),
        )

    def to_dict(self) -> dict[str, Any]:
        """The content of ``metrics.json``; accuracies are fractions."""

        def plain(value: Any) -> dict[str, Any] | None:
            return None if value is None else {each.name: getattr(value, each.name) for each in fields(value)}

        baselines = None if self.baselines is None else {name: plain(score) for name, score in self.baselines.items()}
        return {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in PLAIN},
            "health": plain(self.health),
            "watch": plain(self.watch),
            "probes": [probe.to_dict() for probe in self.probes],
            "clustering": plain(self.clustering),
            "sample": plain(self.sample),
            "floor": baselines,
            "links": None if self.links is None else self.links.to_dict(),
        }

    def _repr_html_(self) -> str:
        """How the run ended and what it scored, for a notebook."""
        rows = [("status", self.status), ("epochs", f"{self.epochs:,}"), ("training", duration(self.seconds))]
        for probe in self.probes:
            rows += [(f"accuracy, {probe.protocol}", probe.accuracy.percent)]
            rows += [(f"macro-F1, {probe.protocol}", probe.macro_f1.percent)]
        if self.clustering is not None:
            rows.append(("NMI of k-means", f"{self.clustering.nmi:.3f}"))
        for name, score in (self.baselines or {}).items():
            rows.append((f"baseline: {BASELINES[name]}", f"{100 * score.accuracy:.1f} %"))
        return html_table(f"{self.method} on {self.dataset}, seed {self.seed}", rows)

    def best_baseline(self, measure: str = "accuracy") -> tuple[str, float] | None:
        """The name and the score of the best baseline by a measure; None without baselines."""
        if not self.baselines:
            return None
        name = max(self.baselines, key=lambda name: getattr(self.baselines[name], measure))  # type: ignore[index]
        return BASELINES[name], getattr(self.baselines[name], measure)

    def not_above(self) -> tuple[str, float, float] | None:
        """The best baseline, its accuracy and the run's, if the run is not above it and not a baseline itself."""
        best = self.best_baseline()
        if best is None or not self.probes or self.method in BASELINES:
            return None
        ours = self.probes[0].accuracy.mean
        return (*best, ours) if ours <= best[1] else None


def read_metrics(folder: Path) -> Metrics:
    """``metrics.json`` of a run."""
    entry = read_json(folder / METRICS, ("method", "dataset", "seed", "status", "probes"))
    try:
        return Metrics.from_dict(entry)
    except (TypeError, KeyError, AttributeError, ValueError):
        raise InputError(f"{folder / METRICS} is damaged; train the run again into another folder.") from None


def write_metrics(folder: Path, metrics: Metrics) -> None:
    """Write ``metrics.json`` into a RUN folder."""
    write_json(folder / METRICS, metrics.to_dict())


def pair_scores(collected: Sequence[Metrics]) -> dict[str, tuple[float, list[float]]]:
    """For each protocol: the mean over all seeds and splits, and the scores of seed s on split s, as in the paper."""
    scores = {}
    for protocol in [probe.protocol for probe in collected[0].probes]:
        probes = [(run.seed, probe) for run in collected for probe in run.probes if probe.protocol == protocol]
        pairs = [score for seed, probe in probes for split, score in probe.by_split().items() if split == seed]
        scores[protocol] = (sum(probe.accuracy.mean for _, probe in probes) / len(probes), pairs)
    return scores
