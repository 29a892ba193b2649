import pytest
import torch

from reproduction.bias import study, toy


def test_all_augmentations_are_equally_strong(monkeypatch):
    seen = []
    train = toy.train

    def watched(x, b, std, settings, generator):
        seen.append(b.square().sum(-1).mean() + 2 * std**2)
        return train(x, b, std, settings, generator)

    monkeypatch.setattr(toy, "train", watched)
    settings = {**toy.SETTINGS, "points": 30, "steps": 1, "seeds": 2}
    lines = list(toy.run(settings))
    assert [float(strength) for strength in seen] == pytest.approx([toy.SETTINGS["strength"] ** 2] * len(seen))
    assert len(lines) == len(toy.KINDS) * len(toy.SHARES) * 2
    assert all(0 <= line["accuracy"] <= 1 and -1 <= line["cosine"] <= 1.001 for line in lines)


def test_without_bias_the_kind_makes_no_difference(small):
    lines = study.read(small, "counterexample", toy.NAME, toy.SETTINGS)
    own, across = (
        [line["accuracy"] for line in lines if (line["kind"], line["share"]) == (kind, 0.0)] for kind in toy.KINDS
    )
    assert own == across


def test_contrast_learns_the_classes():
    settings = {**toy.SETTINGS, "points": 60, "steps": 60, "seeds": 2}
    x, y, _ = toy.points(settings)
    generator = torch.Generator().manual_seed(0)
    z = toy.embed(x, toy.train(x, torch.zeros_like(x), 1.0, settings, generator))
    same = y[:, None] == y
    cosine = z @ z.transpose(-1, -2)
    assert bool((cosine[:, same].mean(-1) > cosine[:, ~same].mean(-1) + 0.3).all())
