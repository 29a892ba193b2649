"""Which nodes train, choose C and test."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from costa.errors import InputError
from costa.evaluate.protocols import PROTOCOLS, cross_validation_folds, held_out_fold, splits

RANDOM = [name for name in PROTOCOLS if name != "public"]
PERCENT = {
    "random-10-10-80": (10, 10),
    "random-10-90-cv": (10, 0),
    "random-20-80": (10, 10),
    "random-10-80-10": (10, 80),
    "random-2-2-96": (2, 2),
    "strict-10-10-80": (10, 10),
}


class TestSplits:
    def test_the_names_are_the_contract(self):
        assert list(PROTOCOLS) == [*PERCENT, "public"]
        assert all(protocol.name == name for name, protocol in PROTOCOLS.items())
        fractions = {name: protocol.label_fraction for name, protocol in PROTOCOLS.items()}
        assert fractions == dict(zip(PROTOCOLS, (0.1, 0.1, 0.2, 0.1, 0.02, 0.1, None), strict=True))
        for name in RANDOM:
            rule = PROTOCOLS[name]
            assert rule.train + rule.validation + rule.test == pytest.approx(1)

    @settings(max_examples=60, deadline=None)
    @given(
        name=st.sampled_from(RANDOM),
        labelled=st.integers(50, 3000),
        unlabelled=st.integers(0, 100),
        seed=st.integers(0, 2**31),
    )
    def test_sizes_are_exact_and_parts_disjoint(self, name, labelled, unlabelled, seed):
        n = labelled + unlabelled
        y = torch.arange(n) % 7
        hidden = torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:unlabelled]
        y[hidden] = -1
        train, validation = (percent * labelled // 100 for percent in PERCENT[name])
        for split in splits(name, y, repeats=2):
            assert [len(split.train), len(split.validation)] == [train, validation]
            assert len(split.test) == labelled - train - validation
            together = torch.cat([split.train, split.validation, split.test])
            assert torch.equal(together.sort().values, (y >= 0).nonzero().squeeze(1))

    @pytest.mark.parametrize("name", RANDOM)
    def test_split_r_is_the_same_whatever_repeats_is(self, name):
        y = torch.arange(500) % 3
        few, many = splits(name, y, repeats=2), splits(name, y, repeats=5)
        for r in range(2):
            for part in ("train", "validation", "test"):
                assert torch.equal(getattr(few[r], part), getattr(many[r], part))
        assert not torch.equal(many[0].train, many[1].train)

    @pytest.mark.parametrize("name", [name for name in RANDOM if not PROTOCOLS[name].strict])
    def test_split_r_is_drawn_by_its_own_seed(self, name):
        split = splits(name, torch.arange(500) % 3, repeats=2)[1]
        order = torch.randperm(500, generator=torch.Generator().manual_seed(1))
        assert torch.equal(split.train, order[: len(split.train)])

    @pytest.mark.parametrize("name", RANDOM)
    def test_the_first_seed_shifts_the_splits(self, name):
        y = torch.arange(500) % 3
        early, late = splits(name, y, repeats=5), splits(name, y, repeats=2, first=3)
        for r in range(2):
            for part in ("train", "validation", "test"):
                assert torch.equal(getattr(late[r], part), getattr(early[3 + r], part))

    def test_a_strict_protocol_tests_the_same_nodes_whatever_the_seed(self):
        y = torch.arange(1000) % 3
        y[::7] = -1
        found = splits("strict-10-10-80", y, repeats=3) + splits("strict-10-10-80", y, repeats=3, first=1000)
        inside = torch.cat([found[0].train, found[0].validation]).sort().values
        for split in found:
            assert torch.equal(split.test, found[0].test)
            assert torch.equal(torch.cat([split.train, split.validation]).sort().values, inside)
        dealt = {tuple(split.train.sort().values.tolist()) for split in found}
        assert len(dealt) == 6
        assert 0.35 < float((inside < 500).double().mean()) < 0.65

    def test_masks_have_no_first_seed(self, own_masks):
        y, masks = torch.arange(200) % 3, own_masks(200, columns=4)
        early, late = splits("public", y, repeats=2, masks=masks), splits("public", y, repeats=2, first=7, masks=masks)
        assert len(early) == len(late) == 2
        assert all(torch.equal(one.train, other.train) for one, other in zip(early, late, strict=True))

    def test_splits_are_not_stratified(self):
        counts = {int((split.train % 2).sum()) for split in splits("random-10-10-80", torch.arange(500) % 2)}
        assert len(counts) > 3

    def test_planetoid_masks_give_one_split(self, own_masks):
        masks = own_masks(100)
        (split,) = splits("public", torch.arange(100) % 3, masks=Data(num_nodes=100, **masks))
        assert torch.equal(split.train, torch.arange(60))
        assert torch.equal(split.validation, torch.arange(60, 80))
        assert torch.equal(split.test, torch.arange(80, 100))

    def test_wikics_masks_give_twenty(self, own_masks):
        masks = own_masks(200, columns=20)
        masks["stopping_mask"] = masks["val_mask"]
        y = torch.arange(200) % 3
        y[::10] = -1
        found = splits("public", y, masks=masks)
        assert len(found) == 20
        assert torch.equal(found[7].train, (masks["train_mask"][:, 7] & (y >= 0)).nonzero().squeeze(1))
        assert torch.equal(found[7].validation, (masks["val_mask"][:, 7] & (y >= 0)).nonzero().squeeze(1))
        assert torch.equal(found[7].test, (masks["test_mask"] & (y >= 0)).nonzero().squeeze(1))
        assert len(splits("public", y, repeats=3, masks=masks)) == 3

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"protocol": "random-10-10"}, "no protocol 'random-10-10'.*random-10-10-80"),
            ({"repeats": 0}, "repeats, must be at least 1, not 0"),
            ({"y": torch.arange(9) % 2}, "'random-10-10-80' needs at least 10 labelled nodes and the graph has 9"),
            ({"y": torch.arange(49) % 2, "protocol": "random-10-90-cv"}, "needs at least 50 labelled"),
            ({"y": torch.arange(49) % 2, "protocol": "random-2-2-96"}, "needs at least 50 labelled"),
            ({"protocol": "public"}, "train_mask, val_mask and test_mask, which this graph does not have"),
            ({"protocol": "public", "masks": {"train_mask": torch.ones(100)}}, "which this graph does not have"),
        ],
    )
    def test_bad_input_gets_a_sentence(self, arguments, message):
        arguments = {"protocol": "random-10-10-80", "y": torch.arange(100) % 2} | arguments
        with pytest.raises(InputError, match=message):
            splits(**arguments)

    @pytest.mark.parametrize(
        ("n", "columns", "other", "message"),
        [
            (99, None, {}, "train_mask is 99 × 1 but should be 100 × 1"),
            (100, None, {"val_mask": torch.ones(100) > 0}, "share nodes"),
            (100, None, {"test_mask": torch.ones(100) < 0}, "without labelled"),
            (100, 3, {"test_mask": torch.zeros(100, 2) > 0}, "test_mask is 100 × 2 but should be 100 × 1 or 100 × 3"),
        ],
    )
    def test_bad_masks_get_a_sentence(self, n, columns, other, message, own_masks):
        with pytest.raises(InputError, match=message):
            splits("public", torch.arange(100) % 2, masks=own_masks(n, columns) | other)


def test_folds_partition_the_training_set_class_by_class():
    classes = torch.arange(1000) % 4
    train = splits("random-10-90-cv", classes, repeats=1)[0].train
    folds = cross_validation_folds(train, classes)
    assert len(folds) == 5
    assert torch.equal(torch.cat([held for _, held in folds]).sort().values, train.sort().values)
    for fit_on, held in folds:
        assert torch.equal(torch.cat([fit_on, held]).sort().values, train.sort().values)
        for k in range(4):
            assert abs(int((classes[held] == k).sum()) - int((classes[train] == k).sum()) / 5) <= 1


def test_a_split_with_validation_nodes_has_one_fold():
    (split,) = splits("random-10-10-80", torch.arange(100) % 2, repeats=1)
    ((fit_on, held),) = held_out_fold(split)
    assert fit_on is split.train
    assert held is split.validation
