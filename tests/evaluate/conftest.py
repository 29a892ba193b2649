"""Vectors with known classes, and masks, for the tests of the evaluation."""

import pytest
import torch


@pytest.fixture
def blobs():
    """A function that makes Gaussian blobs: vectors n × d and their classes."""

    def make(n=400, classes=3, d=8, *, noise=0.6, seed=0):
        generator = torch.Generator().manual_seed(seed)
        y = torch.randint(classes, (n,), generator=generator)
        return torch.eye(classes, d)[y] + noise * torch.randn(n, d, generator=generator), y

    return make


@pytest.fixture
def own_masks():
    """A function that makes masks: 60% train, 20% validation, 20% test; each column keeps 80% of the first two."""

    def make(n, columns=None):
        part = torch.arange(n) * 5 // n
        masks = {"train_mask": part < 3, "val_mask": part == 3, "test_mask": part == 4}
        if columns:
            for name in ("train_mask", "val_mask"):
                kept = torch.stack(
                    [torch.rand(n, generator=torch.Generator().manual_seed(i)) < 0.8 for i in range(columns)], 1
                )
                masks[name] = masks[name][:, None] & kept
        return masks

    return make
