"""Each group refuses a value out of range in one sentence that names the key."""

import math

import pytest

from costa.errors import InputError
from costa.settings import groups

OUT_OF_RANGE = [
    (groups.Encoder, {"width": 0}, "encoder.width = 0 is out of range: at least 1."),
    (groups.Encoder, {"hidden": -1}, "encoder.hidden = -1 is out of range: at least 1, or 0 for the same as"),
    (groups.Encoder, {"layers": 0}, "encoder.layers = 0 is out of range: at least 1."),
    (groups.Encoder, {"steps": -1}, "encoder.steps = -1 is out of range: at least 0."),
    (groups.Encoder, {"teleport": 1.0}, "encoder.teleport = 1.0 is out of range: above 0 and below 1."),
    (groups.Encoder, {"kind": "appnp"}, "encoder.steps = 0 is out of range: at least 1 if encoder.kind = 'appnp'"),
    (
        groups.Encoder,
        {"powers": ()},
        "encoder.powers = () is out of range: different powers of the adjacency from 0 to",
    ),
    (groups.Encoder, {"powers": ()}, "such as 1,4; none (encoder.powers=) only with steps."),
    (groups.Encoder, {"powers": (1, 1), "steps": 2}, "encoder.powers = (1, 1) is out of range: different powers"),
    (groups.Encoder, {"powers": (0, 65)}, "encoder.powers = (0, 65) is out of range: different powers"),
    (groups.Encoder, {"powers": (-1,)}, "encoder.powers = (-1,) is out of range: different powers"),
    (groups.HopsAlone, {"powers": (), "steps": 0}, "encoder.powers = () is out of range: different powers"),
    (groups.StepsAlone, {"teleport": 0.0}, "encoder.teleport = 0.0 is out of range"),
    (groups.OneLayer, {"width": 0}, "encoder.width = 0 is out of range: at least 1."),
    (groups.EqualLayers, {"width": 0}, "encoder.width = 0 is out of range: at least 1."),
    (groups.EqualLayers, {"layers": 0}, "encoder.layers = 0 is out of range: at least 1."),
    (groups.Head, {"width": -1}, "head.width = -1 is out of range: at least 1, or 0 for no head."),
    (groups.Sketch, {"ratio": 0.0}, "sketch.ratio = 0.0 is out of range: above 0 and at most 100 (above 1 upsamples)."),
    (groups.Sketch, {"ratio": 101.0}, "sketch.ratio = 101.0 is out of range"),
    (groups.Sketch, {"k": -1}, "sketch.k = -1 is out of range: at least 1 row, or 0 to use sketch.ratio."),
    (groups.Sketch, {"density": 1.5}, "sketch.density = 1.5 is out of range: above 0 and at most 1."),
    (groups.Sketch, {"noise_std": -0.1}, "sketch.noise_std = -0.1 is out of range: 0 or more."),
    (groups.Augment, {"edge_rate": (0.2, 1.0)}, "augment.edge_rate = 1.0 is out of range: at least 0 and below 1."),
    (groups.Augment, {"edge_rate": (0.1, 0.2, 0.3)}, "augment.edge_rate = (0.1, 0.2, 0.3) is out of range: one rate"),
    (groups.AdaptiveAugment, {"mask_rate": (-0.1,)}, "augment.mask_rate = -0.1 is out of range"),
    (groups.Loss, {"tau": 0.001}, "loss.tau = 0.001 is out of range: at least 0.01."),
    (groups.Contrast, {"tau": 0.0}, "loss.tau = 0.0 is out of range: at least 0.01."),
    (groups.Decorrelation, {"weight": -1.0}, "loss.weight = -1.0 is out of range: 0 or more."),
    (groups.Information, {"beta": -1.0}, "loss.beta = -1.0 is out of range: 0 or more."),
    (groups.Information, {"alpha": 0.0, "beta": 0.0, "gamma": 0.0}, "one of alpha, beta and gamma must be above 0."),
    (groups.Information, {"negatives": 0}, "loss.negatives = 0 is out of range: at least 1."),
    (groups.Predictor, {"width": 0}, "predictor.width = 0 is out of range: at least 1."),
    (groups.Target, {"decay": 1.1}, "target.decay = 1.1 is out of range: from 0 to 1."),
    (groups.Diffusion, {"alpha": 1.0}, "diffusion.alpha = 1.0 is out of range: above 0 and below 1."),
    (groups.Diffusion, {"k": 0}, "diffusion.k = 0 is out of range: at least 1."),
    (groups.Walks, {"window": 0}, "walks.window = 0 is out of range: at least 1."),
    (groups.Walks, {"length": 1}, "walks.length = 1 is out of range: from 2 to 10000."),
    (groups.BiasedWalks, {"number": 0}, "walks.number = 0 is out of range: at least 1."),
    (groups.BiasedWalks, {"p": 0.001}, "walks.p = 0.001 is out of range: from 0.01 to 100."),
    (groups.Train, {"epochs": 0}, "train.epochs = 0 is out of range: at least 1."),
    (groups.Train, {"parts": -1}, "train.parts = -1 is out of range: at least 1, or 0 for the whole graph."),
    (groups.Train, {"group": 0}, "train.group = 0 is out of range: at least 1 part a step."),
    (groups.Train, {"lr": math.nan}, "train.lr = nan is out of range: above 0, at most 100."),
    (groups.Train, {"weight_decay": -1e-5}, "train.weight_decay = -1e-05 is out of range: 0 or more."),
]


@pytest.mark.parametrize(("group", "values", "says"), OUT_OF_RANGE)
def test_a_value_out_of_range_is_refused_with_its_key(group, values, says):
    with pytest.raises(InputError) as raised:
        group(**values)
    message = str(raised.value)
    assert says in message
    assert "\n" not in message
    assert message.endswith(".")


def test_the_ends_of_the_ranges_are_allowed():
    groups.Encoder(kind="appnp", width=1, layers=1, steps=1)
    groups.Encoder(kind="hops", powers=(0, 64))
    groups.Encoder(kind="hops", powers=(), steps=1)
    groups.HopsAlone(powers=(), steps=1)
    groups.Sketch(ratio=100, density=1, noise_std=0)
    groups.Target(decay=0)
    groups.Target(decay=1)
    groups.Walks(length=10_000)
    groups.BiasedWalks(p=0.01, q=100)


@pytest.mark.parametrize(
    ("values", "widths"),
    [
        ({"width": 64}, (64, 64)),
        ({"width": 64, "hidden": 128}, (128, 64)),
        ({"width": 64, "hidden": 128, "layers": 1}, (64,)),
        ({"width": 64, "hidden": 128, "layers": 3}, (128, 128, 64)),
    ],
)
def test_only_the_last_layer_has_the_width_of_the_vectors(values, widths):
    assert groups.Encoder(**values).widths == widths


def test_settings_that_exclude_each_other():
    with pytest.raises(InputError, match=r"^augment\.centrality does not apply to augment\.edges = permute; leave"):
        groups.Augment(edges="permute", centrality="degree")
    with pytest.raises(InputError, match=r"^loss\.include_self belongs to loss\.kind = both; leave it out or choose"):
        groups.Loss(kind="cross", include_self=True)
    assert groups.Loss(kind="both", include_self=True).include_self


def test_only_permuted_edges_are_rewired():
    assert groups.Augment(edges="permute", edge_rate=(0.0, 0.1)).rewires
    assert not groups.Augment(edges="permute").rewires
    assert not groups.Augment(edge_rate=(0.5,)).rewires
