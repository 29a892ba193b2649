"""The result of a probe: scores over the splits of a protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costa.wording import counted, html_table


@dataclass(frozen=True)
class Score:
    """A measure over the splits of a protocol, as fractions; ``std`` divides by n − 1 and is 0 for one split."""

    mean: float
    std: float
    per_split: tuple[float, ...]
    protocol: str

    @classmethod
    def of(cls, values: Sequence[float], protocol: str) -> Score:
        """The score of the given values, one per split.

        Example:
            >>> print(Score.of([0.80, 0.82, 0.81], "random-10-10-80"))
            81.0 ± 1.0 % (random-10-10-80, 3 splits)
        """
        per_split = tuple(float(value) for value in values)
        std = float(np.std(per_split, ddof=1)) if len(per_split) > 1 else 0.0
        return cls(float(np.mean(per_split)), std, per_split, protocol)

    @property
    def percent(self) -> str:
        """The mean and, for more than one split, ± the standard deviation, in percent."""
        spread = f" ± {100 * self.std:.1f}" if len(self.per_split) > 1 else ""
        return f"{100 * self.mean:.1f}{spread} %"

    def __str__(self) -> str:
        return f"{self.percent} ({self.protocol}, {counted(len(self.per_split), 'split')})"

    def _repr_html_(self) -> str:
        return html_table(f"{self.protocol}, {counted(len(self.per_split), 'split')}", [("score", self.percent)])

    def to_dict(self) -> dict[str, Any]:
        """``mean``, ``std`` and ``per_split`` as plain numbers."""
        return {"mean": self.mean, "std": self.std, "per_split": list(self.per_split)}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any], protocol: str) -> Score:
        """The inverse of :meth:`to_dict`."""
        return cls(entry["mean"], entry["std"], tuple(entry["per_split"]), protocol)


@dataclass(frozen=True)
class ProbeResult:
    """The result of :func:`costa.evaluate.probe.linear_probe`.

    Attributes:
        protocol: The protocol's name.
        label_fraction: Fraction of the labelled nodes that the tested classifiers were trained on.
        trained_on: Number of those nodes in the smallest split.
        classes: Number of classes of the labelled nodes.
        accuracy: Test accuracy over the splits.
        macro_f1: Macro-F1 over the splits.
        split: The split that was evaluated; None if all were.
        validation: Accuracy of the chosen strength on the validation nodes, for choosing settings; like
            ``chosen_c``, it is not written to ``metrics.json``.
        chosen_c: The strength chosen in each split.
    """

    protocol: str
    label_fraction: float
    accuracy: Score
    macro_f1: Score
    trained_on: int | None = None
    classes: int | None = None
    split: int | None = None
    validation: Score | None = None
    chosen_c: tuple[float, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.protocol}, {counted(len(self.accuracy.per_split), 'split')}: "
            f"accuracy {self.accuracy.percent}, macro-F1 {self.macro_f1.percent}"
        )

    def _repr_html_(self) -> str:
        heading = f"{self.protocol}, {counted(len(self.accuracy.per_split), 'split')}"
        return html_table(heading, [("accuracy", self.accuracy.percent), ("macro-F1", self.macro_f1.percent)])

    def by_split(self) -> dict[int, float]:
        """The accuracy on each split."""
        return dict(enumerate(self.accuracy.per_split, self.split or 0))

    def too_few(self) -> str | None:
        """A warning if the classifier learned from fewer than two nodes per class; else None."""
        # an earlier version did not write these two
        if self.trained_on is None or self.classes is None:
            return None
        return too_few(self.protocol, self.trained_on, self.classes)

    def to_dict(self) -> dict[str, Any]:
        """The entry of ``probes`` in ``metrics.json``; accuracies are fractions."""
        known = {"trained_on": self.trained_on, "classes": self.classes, "split": self.split}
        return {
            "protocol": self.protocol,
            "label_fraction": self.label_fraction,
            **{name: value for name, value in known.items() if value is not None},
            "accuracy": self.accuracy.to_dict(),
            "macro_f1": self.macro_f1.to_dict(),
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> ProbeResult:
        """The inverse of :meth:`to_dict`."""
        protocol = entry["protocol"]
        return cls(
            protocol,
            entry["label_fraction"],
            Score.from_dict(entry["accuracy"], protocol),
            Score.from_dict(entry["macro_f1"], protocol),
            trained_on=entry.get("trained_on"),
            classes=entry.get("classes"),
            split=entry.get("split"),
        )


def too_few(protocol: str, trained_on: int, classes: int) -> str | None:
    """A warning if a classifier learns from fewer than two nodes per class; else None.

    >>> too_few("random-10-10-80", trained_on=3, classes=4)
    'random-10-10-80 learns 4 classes from only 3 nodes, so its score says little'
    """
    if trained_on >= 2 * classes:
        return None
    return f"{protocol} learns {classes} classes from only {counted(trained_on, 'node')}, so its score says little"
