"""Feature scaling and reduction, encoders, heads and sketches from their settings."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from costa import settings
from costa.augment.registry import make_sketch
from costa.augment.sketches import Sketch
from costa.errors import InputError
from costa.nn import GCN, FeatureReduction, FeatureScaling, Hops, Preparation, ProjectionHead

Encoder = GCN | Hops


def build_features(features: settings.Features, in_features: int) -> Preparation:
    """What is done to X before the encoder, which reads ``out_features`` columns."""
    return Preparation(FeatureScaling(features.scaling, in_features), FeatureReduction(features.rank, in_features))


def build_encoder(
    encoder: settings.Encoder, in_features: int, generator: torch.Generator | None, *, linear: bool = False
) -> Encoder:
    """The encoder from its settings; ``linear`` leaves σ and normalisation out of the last layer."""
    if encoder.kind == "hops":
        return Hops(
            in_features,
            encoder.width,
            powers=encoder.powers,
            steps=encoder.steps,
            teleport=encoder.teleport,
            activation=encoder.activation,
            norm=encoder.norm,
            linear=linear,
            columns=encoder.columns,
            weight=encoder.weight,
            stored=encoder.stored,
            generator=generator,
        )
    return GCN(
        in_features,
        encoder.widths,
        activation=encoder.activation,
        norm=encoder.norm,
        linear=linear,
        alone=encoder.kind == "appnp",
        steps=encoder.steps,
        teleport=encoder.teleport,
        generator=generator,
    )


def build_head(head: settings.Head, width: int, generator: torch.Generator | None) -> nn.Module:
    """The projection head for vectors of that width from its settings; the identity if ``head.width`` is 0."""
    return ProjectionHead(width, head.width, head.activation, generator) if head.width else nn.Identity()


def build_sketch(sketch: settings.Sketch, *, stored: bool = False) -> Sketch:
    """The sketch from its settings, with the options that its kind takes."""
    if sketch.kind == "none":
        return make_sketch("noise", noise_std=0.0, center=sketch.center)
    if sketch.kind == "noise" and sketch.noise_std == 0:
        raise InputError("sketch.kind = noise needs sketch.noise_std above 0 (1 in the paper's table).")
    options: dict[str, Any] = {"noise_std": sketch.noise_std, "fixed": sketch.fixed, "center": sketch.center}
    if sketch.kind != "noise":
        options |= {"k": sketch.k} if sketch.k else {"ratio": sketch.ratio}
    if sketch.kind == "sparse":
        options["density"] = sketch.density
    if sketch.kind == "selection":
        options["scaling"] = sketch.scaling
    return make_sketch(sketch.kind, stored=stored, **options)
