"""Encoders, heads and sketches from their settings."""

import pytest
import torch
from torch import nn

from costa import settings
from costa.errors import InputError
from costa.methods.building import build_encoder, build_head, build_sketch
from costa.nn import ProjectionHead


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_an_encoder_has_the_widths_and_parts_of_its_settings():
    encoder = build_encoder(settings.Encoder(width=8, hidden=12, layers=3, activation="elu", norm="batch"), 5, None)
    assert [tuple(layer.weight.shape) for layer in encoder.layers] == [(5, 12), (12, 12), (12, 8)]
    assert [type(layer.activation).__name__ for layer in encoder.layers] == ["ELU"] * 3
    assert [type(layer.norm).__name__ for layer in encoder.layers] == ["BatchNorm"] * 3
    assert not encoder.alone
    assert build_encoder(settings.Encoder(kind="appnp", steps=2), 5, None).alone


def test_a_linear_encoder_ends_without_activation_and_norm():
    encoder = build_encoder(settings.Encoder(width=8, activation="elu", norm="batch"), 5, None, linear=True)
    assert [type(layer.activation).__name__ for layer in encoder.layers] == ["ELU", "Identity"]
    assert [layer.norm is not None for layer in encoder.layers] == [True, False]


def test_the_first_weights_are_the_generators():
    one, again, other = (build_encoder(settings.Encoder(width=8), 5, generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(one.layers[0].weight, again.layers[0].weight)
    assert not torch.equal(one.layers[0].weight, other.layers[0].weight)


def test_a_head_of_width_zero_is_the_identity():
    head = build_head(settings.Head(width=0), 8, generator())
    assert isinstance(head, nn.Identity)
    head = build_head(settings.Head(width=12, activation="relu"), 8, generator())
    assert isinstance(head, ProjectionHead)
    assert (head.first.in_features, head.first.out_features, head.second.out_features) == (8, 12, 8)
    assert type(head.activation).__name__ == "ReLU"


@pytest.mark.parametrize(
    ("values", "sketch"),
    [
        ({"kind": "gaussian", "ratio": 0.3}, "RandomProjection(ratio=0.3)"),
        ({"kind": "gaussian", "ratio": 0.3, "k": 7}, "RandomProjection(k=7)"),
        (
            {"kind": "rademacher", "k": 7, "fixed": True, "center": False},
            "RademacherProjection(k=7, fixed=True, center=False)",
        ),
        ({"kind": "sparse", "k": 7, "density": 0.2}, "SparseProjection(density=0.2, k=7)"),
        ({"kind": "selection", "k": 7, "scaling": "printed"}, "RowSelection(scaling='printed', k=7)"),
        ({"kind": "noise", "noise_std": 0.5, "ratio": 0.3}, "NoiseInjection(noise_std=0.5)"),
        ({"kind": "none", "noise_std": 0.5, "k": 7}, "NoiseInjection(noise_std=0.0)"),
    ],
)
def test_a_sketch_takes_the_settings_of_its_kind(values, sketch):
    assert repr(build_sketch(settings.Sketch(**values))) == sketch


def test_a_p_is_stored_where_it_is_asked_for():
    assert build_sketch(settings.Sketch(kind="gaussian"), stored=True).stored
    assert not build_sketch(settings.Sketch(kind="gaussian")).stored


def test_noise_without_noise_is_refused():
    with pytest.raises(InputError, match=r"sketch\.kind = noise needs sketch\.noise_std above 0"):
        build_sketch(settings.Sketch(kind="noise", noise_std=0.0))
