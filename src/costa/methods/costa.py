"""COSTA: contrast the sketched features of a graph, in one view or two.

Zhang, Zhu, Song, Koniusz, King: COSTA: Covariance-Preserving Feature Augmentation for Graph Contrastive Learning,
KDD 2022.

    H = f(X, A)           the encoder, on the graph or on two augmented views of it
    H̃ = P H + E           the sketch, k rows; the same P for both views
    Z = θ(H̃)              the projection head
    L = contrast(Z₁, Z₂)  row i of one view against all rows of the other; with one view, against its own rows

With ``train.parts`` and a GCN, H has the rows of a group of parts, and so k is a share of them: rows of different
groups are never mixed or contrasted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from costa import settings
from costa.augment.other_sketches import NoiseInjection, SVDSketch
from costa.augment.sketches import Draw, Sketch
from costa.errors import InputError
from costa.methods.building import (
    Encoder,
    build_encoder,
    build_features,
    build_head,
    build_sketch,  # exported for costa.report.facts
)
from costa.methods.encoding import Augmenting
from costa.nn import Preparation, both_views_loss, cross_view_loss, self_contrast_loss
from costa.settings.groups import MOST_RATIO

MOST_ROWS = 4096
"""The largest k chosen automatically: P has k·n entries, and there are k² similarities. A user may set more."""
ROW_VISITS = 30_000
"""Rows that training with hops visits in all, or once each: a larger graph needs fewer epochs, not more steps."""


HOPS = partial(settings.Encoder, kind="hops", width=128, activation="prelu", powers=(4,), steps=10, columns=256)
"""The encoder of both variants: 256 columns of codes and 256 of the hops, which the graph chooses (``methods/reach``).

Variants were compared by validation accuracy with tuning seeds on forty development graphs (``docs/defaults.md`` has
what was tried). ``encoder.kind = "gcn"`` is the paper's GCN, with the defaults that were made for it.
"""


@dataclass(frozen=True)
class OneViewSettings:
    """Defaults of ``costa-sv``: the view that is contrasted with itself has columns masked and hops left out, too."""

    features: settings.Features = field(default_factory=partial(settings.Features, rank=512))
    encoder: settings.Encoder = field(default_factory=HOPS)
    head: settings.Head = field(default_factory=partial(settings.Head, width=128))
    sketch: settings.Sketch = field(default_factory=partial(settings.Sketch, kind="countsketch", ratio=0.25))
    augment: settings.Augment = field(default_factory=partial(settings.Augment, mask_rate=(0.5,), hop_rate=(0.3,)))
    loss: settings.Loss = field(default_factory=partial(settings.Loss, kind="self", tau=2.0))
    train: settings.Train = field(
        default_factory=partial(settings.Train, epochs=30, lr=1.5e-2, weight_decay=1e-3, batch=512)
    )


@dataclass(frozen=True)
class TwoViewSettings(OneViewSettings):
    """Defaults of ``costa-mv``: two views, each with its own columns masked and hops left out; no edge in training."""

    loss: settings.Loss = field(default_factory=partial(settings.Loss, kind="cross", tau=0.5))


class Costa(Augmenting):
    """COSTA with any encoder, head and sketch.

    Args:
        encoder: f, see :class:`costa.nn.GCN` and :class:`costa.nn.Hops`.
        head: θ, see :class:`costa.nn.ProjectionHead`; ``nn.Identity()`` for none.
        sketch: P and E, see :mod:`costa.augment.sketches`.
        preparation: Feature scaling and reduction.
        augment: Rates of the graph augmentation of each view.
        loss: The contrast and τ.
        plain: Write out all similarities: with a ``stored`` sketch, the reference for the fast form.
    """

    paper = "Zhang et al., COSTA: Covariance-Preserving Feature Augmentation for Graph Contrastive Learning, KDD"
    year = 2022

    def __init__(
        self,
        encoder: Encoder,
        head: nn.Module,
        sketch: Sketch,
        preparation: Preparation,
        augment: settings.Augment,
        loss: settings.Loss,
        *,
        plain: bool = False,
    ) -> None:
        super().__init__(encoder, preparation, augment)
        if self.views == 2 and loss.kind == "self":
            raise InputError("loss.kind = self contrasts one view with itself; with two views choose cross or both.")
        if self.views == 1 and max(map(len, (augment.edge_rate, augment.mask_rate, augment.hop_rate))) > 1:
            raise InputError(f"{self.name} has one view; give each rate of augment one number.")
        self.head, self.sketch = head, sketch
        self.contrast, self.plain = loss, plain

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> Costa:
        """COSTA from its settings."""
        preparation = build_features(settings.features, in_features)
        encoder = build_encoder(settings.encoder, preparation.out_features, generator)
        head = build_head(settings.head, encoder.out_features, generator)
        plain = settings.train.kernels == "plain"
        sketch = build_sketch(settings.sketch, stored=plain)
        return cls(encoder, head, sketch, preparation, settings.augment, settings.loss, plain=plain)

    @classmethod
    def choose(cls, graph: Data, settings: Any = None, given: Collection[str] = ()) -> dict[str, Any]:
        """At most :data:`MOST_ROWS` rows for the sketch, in addition to what every method chooses.

        With hops, at most as many epochs as make about :data:`ROW_VISITS` visits to rows, but at least one.
        """
        settings, chosen = settings or cls.Settings(), super().choose(graph, settings, given)
        hops = settings.encoder.kind == "hops"
        if hops:
            enough = max(1, round(ROW_VISITS / graph.num_nodes))
            chosen |= {"train.epochs": enough} if enough < settings.train.epochs else {}
        rows = settings.train.rows(graph.num_nodes, by_rows=hops)
        if settings.sketch.k > MOST_RATIO * rows:
            k = settings.sketch.k
            raise InputError(f"sketch.k = {k:,} is more than {MOST_RATIO} for each of {rows:,} nodes; lower it.")
        largest = MOST_ROWS / rows
        return chosen | ({"sketch.ratio": largest} if largest < settings.sketch.ratio else {})

    @classmethod
    def unused(cls, settings: Any) -> dict[str, str]:
        """The chosen kind of sketch does not use all options."""
        sketch, unused = settings.sketch, super().unused(settings)
        if sketch.kind in ("noise", "none"):
            unused |= dict.fromkeys(("sketch.ratio", "sketch.k"), f"sketch.kind = {sketch.kind} keeps all rows")
        elif sketch.k:
            unused["sketch.ratio"] = "sketch.k says how many rows there are"
        if sketch.kind == "noise":
            unused["sketch.fixed"] = "sketch.kind = noise has no P to keep"
        if sketch.kind == "none":
            unused |= dict.fromkeys(("sketch.noise_std", "sketch.fixed"), "sketch.kind = none draws nothing")
        if sketch.kind != "sparse":
            unused["sketch.density"] = f"it belongs to sketch.kind = sparse, not {sketch.kind}"
        if sketch.kind != "selection":
            unused["sketch.scaling"] = f"it belongs to sketch.kind = selection, not {sketch.kind}"
        return unused

    def prepare(self, graph: Data) -> None:
        """Draw a fixed P from a generator restarted at its initial seed, so that a resumed training has the same P."""
        super().prepare(graph)
        if self.sketch.fixed and not self.sketch.depends_on_h:
            device = next(self.encoder.parameters()).device
            restarted = torch.Generator(self.generator.device).manual_seed(self.generator.initial_seed())
            self.sketch.draw(torch.zeros(graph.num_nodes, 1, device=device), restarted)

    def loss(self, graph: Data, rows: Tensor | None = None) -> Tensor:
        """contrast(θ(P·H₁ + E₁), θ(P·H₂ + E₂)), or that of one view with itself.

        Of all rows of H, or of a batch of them, or of the subgraph of these nodes.
        """
        if rows is not None and self.sketch.fixed:
            step, key = ("batch", "batch") if self.by_rows else ("group of parts", "parts")
            raise InputError(
                f"sketch.fixed keeps one P for all rows, but each {step} needs its own; set train.{key}=0."
            )
        inputs = self.inputs(graph, rows)
        hidden = [self.encode_view(inputs, view) for view in range(self.views)]
        draw = self._draw(graph, rows, hidden[0].detach())
        draw = draw if self.plain else draw.packed()
        z = [self.head(h_tilde) for h_tilde in draw.apply_all(hidden)]
        u, v, tau, rows = z[0], z[-1], self.contrast.tau, draw.occupied
        if self.contrast.kind == "self":
            return self_contrast_loss(u, tau, rows, plain=self.plain)
        if self.contrast.kind == "cross":
            return cross_view_loss(u, v, tau, rows, plain=self.plain)
        return both_views_loss(u, v, tau, rows, include_self=self.contrast.include_self, plain=self.plain)

    def _draw(self, graph: Data, rows: Tensor | None, h: Tensor) -> Draw:
        """P for all rows of the batch, of which this process may hold a part."""
        if self.ranks.size == 1:
            return self.sketch.draw(h, self.generator)
        n = graph.num_nodes if rows is None else len(rows)
        whole = self.sketch.draw(h.new_zeros(1, 1).expand(n, 1), self.generator)
        return whole.split(self.inputs(graph).held(rows), self.ranks)

    @property
    def unsplittable(self) -> str | None:
        """The encoder must look at each row alone, and P be drawn without H and have fewer rows."""
        if not self.by_rows:
            return "only encoder.kind = hops can be split"
        if self.sketch.depends_on_h or isinstance(self.sketch, NoiseInjection):
            return "only sketch.kind = countsketch, gaussian, rademacher or sparse can be split"
        return None

    @property
    def capturable(self) -> bool:
        """Rewiring and the SVD read the GPU's results (the number of edges; whether H is finite) on the CPU."""
        return super().capturable and not self.plain and not isinstance(self.sketch, SVDSketch)

    @property
    def unresumable(self) -> str | None:
        """A fixed P must be a function of its seed alone."""
        if self.sketch.fixed and self.sketch.depends_on_h:
            return "a fixed sketch made from H cannot be made again once H has changed"
        return None


class CostaSV(Costa):
    """COSTA in one view: U = V = θ(H̃)."""

    name = "costa-sv"
    title = "COSTA, one view"
    views = 1
    Settings = OneViewSettings


class CostaMV(Costa):
    """COSTA in two views, sketched by the same P."""

    name = "costa-mv"
    title = "COSTA, two views"
    views = 2
    Settings = TwoViewSettings
