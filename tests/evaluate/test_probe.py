import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score
from torch_geometric.data import Data

from costa.errors import InputError
from costa.evaluate import logistic, probe
from costa.evaluate.clustering import Clustering, cluster
from costa.evaluate.inputs import unit_rows
from costa.evaluate.probe import STRENGTHS, linear_probe, linear_probes, validation_accuracies
from costa.evaluate.protocols import PROTOCOLS, splits
from costa.evaluate.scores import Score

RANDOM = [name for name in PROTOCOLS if name != "public"]
PERCENT = {
    "random-10-10-80": (10, 10),
    "random-10-90-cv": (10, 0),
    "random-20-80": (10, 10),
    "random-10-80-10": (10, 80),
    "random-2-2-96": (2, 2),
    "strict-10-10-80": (10, 10),
}
HELD_OUT = [name for name, protocol in PROTOCOLS.items() if protocol.selection != "cv"]


def blobs(n=400, classes=3, d=8, *, noise=0.6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=generator)
    return torch.eye(classes, d)[y] + noise * torch.randn(n, d, generator=generator), y


def own_masks(n, columns=None):
    """60% train, 20% validation, 20% test; rolled by ten nodes a column."""
    part = torch.arange(n) * 5 // n
    masks = {"train_mask": part < 3, "val_mask": part == 3, "test_mask": part == 4}
    if columns:
        for name in ("train_mask", "val_mask"):
            kept = torch.stack(
                [torch.rand(n, generator=torch.Generator().manual_seed(i)) < 0.8 for i in range(columns)], 1
            )
            masks[name] = masks[name][:, None] & kept
    return masks


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

    def test_masks_have_no_first_seed(self):
        y, masks = torch.arange(200) % 3, own_masks(200, columns=4)
        early, late = splits("public", y, repeats=2, masks=masks), splits("public", y, repeats=2, first=7, masks=masks)
        assert len(early) == len(late) == 2
        assert all(torch.equal(one.train, other.train) for one, other in zip(early, late, strict=True))

    def test_splits_are_not_stratified(self):
        counts = {int((split.train % 2).sum()) for split in splits("random-10-10-80", torch.arange(500) % 2)}
        assert len(counts) > 3

    def test_planetoid_masks_give_one_split(self):
        masks = own_masks(100)
        (split,) = splits("public", torch.arange(100) % 3, masks=Data(num_nodes=100, **masks))
        assert torch.equal(split.train, torch.arange(60))
        assert torch.equal(split.validation, torch.arange(60, 80))
        assert torch.equal(split.test, torch.arange(80, 100))

    def test_wikics_masks_give_twenty(self):
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
            ({"y": None}, "has no labels"),
            ({"y": torch.full((100,), -1)}, "has no labels"),
            ({"y": torch.zeros(100, dtype=torch.long)}, "one class"),
            ({"y": torch.zeros(100, 2, dtype=torch.long)}, r"one integer per node, not int64 of shape \(100, 2\)"),
            ({"y": torch.zeros(100)}, "one integer per node, not float32"),
            ({"y": torch.arange(9) % 2}, "'random-10-10-80' needs at least 10 labelled nodes and the graph has 9"),
            ({"y": torch.arange(49) % 2, "protocol": "random-10-90-cv"}, "needs at least 50 labelled"),
            ({"y": torch.arange(49) % 2, "protocol": "random-2-2-96"}, "needs at least 50 labelled"),
            ({"protocol": "public"}, "train_mask, val_mask and test_mask, which this graph does not have"),
            ({"protocol": "public", "masks": {"train_mask": torch.ones(100)}}, "which this graph does not have"),
            ({"protocol": "public", "masks": own_masks(99)}, "train_mask is 99 × 1 but should be 100 × 1"),
            ({"protocol": "public", "masks": own_masks(100) | {"val_mask": torch.ones(100) > 0}}, "share nodes"),
            ({"protocol": "public", "masks": own_masks(100) | {"test_mask": torch.ones(100) < 0}}, "without labelled"),
            (
                {"protocol": "public", "masks": own_masks(100, 3) | {"test_mask": torch.zeros(100, 2) > 0}},
                "test_mask is 100 × 2 but should be 100 × 1 or 100 × 3",
            ),
        ],
    )
    def test_bad_input_gets_a_sentence(self, arguments, message):
        arguments = {"protocol": "random-10-10-80", "y": torch.arange(100) % 2} | arguments
        with pytest.raises(InputError, match=message):
            splits(**arguments)


class TestScore:
    def test_the_text_carries_the_protocol(self):
        assert str(Score.of([0.85, 0.83], "random-20-80")) == "84.0 ± 1.4 % (random-20-80, 2 splits)"
        assert str(Score.of([0.815], "public")) == "81.5 % (public, 1 split)"

    def test_the_deviation_is_the_samples(self):
        score = Score.of([0.5, 0.7, 0.9], "public")
        assert score.mean == pytest.approx(0.7)
        assert score.std == pytest.approx(0.2)
        assert Score.of([0.5], "public").std == 0.0


class TestLinearProbe:
    @pytest.mark.parametrize("name", [*RANDOM, "public"])
    def test_the_solvers_agree_under_every_protocol(self, name):
        z, y = blobs()
        masks = own_masks(400, columns=2)
        ours, reference = (
            linear_probe(z, y, name, repeats=2, masks=masks, solver=solver) for solver in ("torch", "sklearn")
        )
        assert ours.protocol == name
        assert ours.chosen_c == reference.chosen_c
        assert ours.accuracy.per_split == pytest.approx(reference.accuracy.per_split, abs=0.004)
        assert ours.macro_f1.per_split == pytest.approx(reference.macro_f1.per_split, abs=0.006)
        assert 0.25 < ours.accuracy.mean < 0.95

    def test_it_equals_a_plain_loop_over_splits_and_strengths(self):
        from sklearn.linear_model import LogisticRegression

        z, y = blobs(n=300, classes=4)
        x = (z / z.norm(dim=1, keepdim=True)).double().numpy()
        result = linear_probe(z, y, repeats=2)
        for r, split in enumerate(splits("random-10-10-80", y, repeats=2)):
            train, validation, test = split.train.numpy(), split.validation.numpy(), split.test.numpy()
            best = (-1.0, None)
            for c in STRENGTHS:
                model = LogisticRegression(C=c, tol=1e-7, max_iter=10_000).fit(x[train], y[train].numpy())
                accuracy = model.score(x[validation], y[validation].numpy())
                best = max(best, (accuracy, -c))
            assert result.chosen_c[r] == -best[1]
            model = LogisticRegression(C=-best[1], tol=1e-7, max_iter=10_000).fit(x[train], y[train].numpy())
            assert result.accuracy.per_split[r] == pytest.approx(model.score(x[test], y[test].numpy()), abs=0.005)
            f1 = f1_score(y[test].numpy(), model.predict(x[test]), average="macro")
            assert result.macro_f1.per_split[r] == pytest.approx(f1, abs=0.006)

    @pytest.mark.parametrize("name", ["random-10-10-80", "random-10-90-cv", "random-20-80"])
    def test_validation_is_the_chosen_strengths_score_where_it_was_chosen(self, name):
        from sklearn.linear_model import LogisticRegression

        z, y = blobs(n=500, classes=4)
        x, target = (z / z.norm(dim=1, keepdim=True)).double().numpy(), y.numpy()
        result = linear_probe(z, y, name, repeats=2)
        assert result.validation.protocol == name
        for r, split in enumerate(splits(name, y, repeats=2)):
            folds = [(split.train, split.validation)]
            if name.endswith("cv"):
                order = split.train[y[split.train].argsort(stable=True)]
                folds = [(order[torch.arange(len(order)) % 5 != k], order[k::5]) for k in range(5)]
            model = LogisticRegression(C=result.chosen_c[r], tol=1e-8, max_iter=10_000)
            accuracies = [model.fit(x[fit], target[fit]).score(x[held], target[held]) for fit, held in folds]
            assert result.validation.per_split[r] == pytest.approx(np.mean(accuracies), abs=1e-9)
        assert result.validation.mean != result.accuracy.mean

    def test_its_dictionary_is_the_contract(self):
        z, y = blobs()
        found = linear_probe(z, y, "random-20-80", repeats=3).to_dict()
        assert list(found) == ["protocol", "label_fraction", "trained_on", "classes", "accuracy", "macro_f1"]
        assert found["protocol"] == "random-20-80"
        assert found["label_fraction"] == 0.2
        for name in ("accuracy", "macro_f1"):
            assert list(found[name]) == ["mean", "std", "per_split"]
            assert [type(value) for value in found[name]["per_split"]] == [float] * 3
            assert type(found[name]["mean"]) is type(found[name]["std"]) is float
            assert 0 <= found[name]["mean"] <= 1

    def test_its_text_names_the_protocol(self):
        z, y = blobs()
        text = str(linear_probe(z, y, repeats=2))
        assert text.startswith("random-10-10-80, 2 splits: accuracy ")
        assert ", macro-F1 " in text

    def test_a_classifier_of_few_nodes_is_named(self):
        z, y = blobs(n=100)
        y[60:] = -1
        few = linear_probe(z, y, repeats=2)
        assert (few.trained_on, few.classes) == (6, len(y[y >= 0].unique()))
        assert replace(few, classes=4).too_few() == (
            "random-10-10-80 learns 4 classes from only 6 nodes, so its score says little"
        )
        assert replace(few, classes=3).too_few() is None
        assert replace(few, trained_on=None).too_few() is None  # as an earlier version wrote it

    def test_own_masks_state_their_label_fraction(self):
        z, y = blobs(n=100)
        y[:30] = -1  # of the 60 in train
        assert linear_probe(z, y, "public", masks=own_masks(100)).label_fraction == pytest.approx(30 / 70)

    @pytest.mark.parametrize(
        ("wrong", "expected"),
        [
            ([3] * 21, STRENGTHS[0]),
            ([3] * 7 + [1, 2, 1] + [2] * 11, STRENGTHS[7]),
            ([5] * 20 + [4], STRENGTHS[20]),
        ],
    )
    def test_ties_take_the_smallest_strength(self, wrong, expected, monkeypatch):
        y = torch.arange(300) % 2

        def errs(x, classes, fit_on, predict_on, c):
            """Wrong on as many held-out nodes as asked, at each strength."""
            truth = torch.stack([classes[rows] for rows in predict_on])[None, :, None]
            return truth ^ (torch.arange(truth.shape[-1]) < torch.tensor(wrong)[:, None])

        monkeypatch.setitem(probe.SOLVERS, "errs", errs)
        result = linear_probe(torch.ones(300, 1), y, repeats=3, solver="errs")
        assert result.chosen_c == (expected,) * 3

    def test_ties_in_cross_validation_survive_the_order_of_addition(self, monkeypatch):
        y = torch.arange(450) % 2

        def errs(x, classes, fit_on, predict_on, c):
            """The folds' errors are the same numbers at every strength, each time in another order."""
            truth = torch.stack([classes[rows] for rows in predict_on])[None, :, None]
            fold, g = torch.arange(len(predict_on))[:, None, None], torch.arange(c.shape[-1])[:, None]
            return truth ^ (torch.arange(truth.shape[-1]) < (fold * (1 + g % 4) + g) % 5)

        monkeypatch.setitem(probe.SOLVERS, "errs", errs)
        result = linear_probe(torch.ones(450, 1), y, "random-10-90-cv", repeats=1, solver="errs")
        assert result.chosen_c == (STRENGTHS[0],)

    def test_folds_partition_the_training_set_class_by_class(self):
        classes = torch.arange(1000) % 4
        train = splits("random-10-90-cv", classes, repeats=1)[0].train
        folds = probe.cross_validation_folds(train, classes)
        assert len(folds) == 5
        assert torch.equal(torch.cat([held for _, held in folds]).sort().values, train.sort().values)
        for fit_on, held in folds:
            assert torch.equal(torch.cat([fit_on, held]).sort().values, train.sort().values)
            for k in range(4):
                assert abs(int((classes[held] == k).sum()) - int((classes[train] == k).sum()) / 5) <= 1

    def test_refitting_uses_the_validation_labels(self):
        z, y = blobs(n=2000, classes=5, d=40, noise=0.5)
        assert linear_probe(z, y, "random-20-80", repeats=3).accuracy.mean > linear_probe(z, y, repeats=3).accuracy.mean

    def test_labels_choose_nothing_on_the_test_part(self):
        z, y = blobs()
        split = splits("random-10-10-80", y, repeats=1)[0]
        other = y.clone()
        other[split.test] = (y[split.test] + 1) % 3
        assert linear_probe(z, other, repeats=1).chosen_c == linear_probe(z, y, repeats=1).chosen_c

    @pytest.mark.parametrize("solver", ["torch", "sklearn"])
    def test_a_class_absent_from_training_counts_as_errors(self, solver):
        z, y = blobs(n=100, noise=0.01)
        masks = own_masks(100)
        y[:60] = y[:60] % 2  # class 2 is in validation and test alone
        z[:60] = torch.eye(3, 8)[y[:60]]
        result = linear_probe(z, y, "public", masks=masks, solver=solver)
        truth = y[80:]
        assert 2 in truth
        right = float((truth != 2).double().mean())
        assert result.accuracy.mean == pytest.approx(right)
        assert result.macro_f1.mean < 1 - 1 / 3 + 1e-9

    def test_macro_f1_is_over_the_classes_of_the_test_set(self):
        truth = torch.tensor([[0, 0, 1, 1, 3, 3, -1]])
        found = torch.tensor([[[0, 2, 1, 0, 4, 4, 3]], [[0, 0, 1, 1, 3, 3, 0]]])
        confusion = probe._confusion(found, truth, 5)
        assert confusion.shape == (2, 1, 5, 5)
        assert confusion[0, 0, 1].tolist() == [1, 1, 0, 0, 0]
        expected = f1_score(truth[0, :-1], found[0, 0, :-1], labels=[0, 1, 3], average="macro", zero_division=0)
        assert probe._macro_f1(confusion)[0, 0] == pytest.approx(expected)
        assert probe._macro_f1(confusion)[1, 0] == 1.0

    def test_accuracy_is_over_the_nodes_that_are_there(self):
        found, truth = torch.tensor([[[[0, 1, -1], [1, 1, -1]]]]), torch.tensor([[0, 0, -1]])
        assert probe._accuracy(found, truth).tolist() == [[[0.5, 0.0]]]

    def test_unlabelled_nodes_change_nothing(self):
        z, y = blobs(n=300)
        hidden = torch.arange(300) % 3 == 0
        partly = torch.where(hidden, -1, y)
        wild = torch.where(hidden[:, None], 100.0 * torch.ones_like(z), z)
        result = linear_probe(wild, partly, repeats=3)
        assert result == linear_probe(z[~hidden], y[~hidden], repeats=3)

    def test_labels_need_not_be_contiguous(self):
        z, y = blobs()
        names = torch.tensor([3, 40, 7_000_000])
        assert linear_probe(z, names[y], repeats=2) == linear_probe(z, y, repeats=2)

    def test_rows_are_scaled_to_length_one(self):
        z, y = blobs(n=200)
        z[5] = 0
        scale = torch.logspace(-30, 30, 200, dtype=torch.float64)[:, None]
        x = unit_rows(z.double() * scale, 200, None)
        torch.testing.assert_close(x.norm(dim=1)[6:], torch.ones(194, dtype=torch.float64))
        assert torch.equal(x[5], torch.zeros(8, dtype=torch.float64))
        assert unit_rows(torch.full((2, 3), 1e-30), 2, None).norm(dim=1).tolist() == pytest.approx([1, 1])
        assert linear_probe(z * 7, y, repeats=2).accuracy.per_split == pytest.approx(
            linear_probe(z, y, repeats=2).accuracy.per_split, abs=0.01
        )

    def test_arrays_and_tensors_are_alike(self):
        z, y = blobs()
        frozen = z.numpy().copy()
        frozen.flags.writeable = False
        assert linear_probe(frozen, y.numpy(), repeats=2) == linear_probe(z.requires_grad_(), y, repeats=2)
        assert linear_probe(z.detach().to(torch.bfloat16), y, repeats=2).accuracy.mean > 0.5

    def test_the_global_generators_are_left_as_found(self):
        z, y = blobs()
        before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
        linear_probe(z, y, repeats=2)
        cluster(z, y)
        assert torch.equal(before[0], torch.get_rng_state())
        assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002
        assert before[2] == random.getstate()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"solver": "newton"}, "no solver 'newton'; choose one of: torch, sklearn"),
            ({"y": None}, "no labels"),
            ({"z": torch.zeros(99, 4)}, r"must be 100 × d, a row for each label, not of shape \(99, 4\)"),
            ({"z": torch.zeros(100)}, r"not of shape \(100,\)"),
            ({"z": torch.zeros(100, 0)}, r"not of shape \(100, 0\)"),
            ({"z": torch.zeros(100, 2).index_fill(0, torch.tensor(17), torch.nan)}, "not finite, first in row 17"),
            ({"z": np.full((100, 2), np.inf)}, "not finite, first in row 0"),
        ],
    )
    def test_bad_input_gets_a_sentence(self, arguments, message):
        arguments = {"z": torch.ones(100, 4), "y": torch.arange(100) % 2} | arguments
        with pytest.raises(InputError, match=message):
            linear_probe(**arguments)

    @pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
    def test_cuda_that_is_absent_is_said(self):
        with pytest.raises(InputError, match="CUDA, which this machine does not have"):
            linear_probe(torch.ones(100, 4), torch.arange(100) % 2, device="cuda")

    def test_the_first_split_is_a_seed(self):
        z, y = blobs()
        early, late = linear_probe(z, y, repeats=4), linear_probe(z, y, repeats=2, first_split=2)
        assert late.accuracy.per_split == early.accuracy.per_split[2:]
        assert late.chosen_c == early.chosen_c[2:]
        assert late.accuracy.per_split != early.accuracy.per_split[:2]

    @pytest.mark.gpu
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    @pytest.mark.parametrize("name", RANDOM)
    def test_cuda_agrees_with_the_cpu(self, name):
        z, y = blobs(n=1000)
        host, device = linear_probe(z, y, name, repeats=3), linear_probe(z.cuda(), y.cuda(), name, repeats=3)
        assert device.chosen_c == host.chosen_c
        assert device.accuracy.per_split == pytest.approx(host.accuracy.per_split, abs=0.003)
        assert linear_probe(z, y, name, repeats=3, device="cuda").accuracy == device.accuracy


class TestLinearProbes:
    @pytest.fixture
    def embeddings(self):
        """Of the same nodes: a good one, a worse one, one of fewer directions than columns, and noise."""
        z, y = blobs(classes=4)
        noise = torch.randn(400, 8, generator=torch.Generator().manual_seed(1))
        return [z, z + 0.3 * noise, z[:, :3] @ noise[:3], noise], y

    @pytest.mark.parametrize("name", [*RANDOM, "public"])
    def test_each_is_probed_as_if_alone(self, name, embeddings):
        zs, y = embeddings
        y[::9] = -1
        options = {"repeats": 3, "masks": own_masks(400, columns=3)}
        together = linear_probes(zs, y, name, **options)
        assert together == [linear_probe(z, y, name, **options) for z in zs]
        assert together[0].accuracy.mean > together[3].accuracy.mean + 0.1
        assert linear_probes(torch.stack(zs), y, name, **options) == together

    @pytest.mark.parametrize("name", [*RANDOM, "public"])
    def test_each_may_be_judged_on_one_split_of_its_own(self, name, embeddings):
        zs, y = embeddings
        own, options = [2, 0, 1, 2], {"masks": own_masks(400, columns=3)}
        every = linear_probes(zs, y, name, repeats=3, **options)
        for split, one, whole in zip(own, linear_probes(zs, y, name, own_splits=own, **options), every, strict=True):
            for found, known in ((one.accuracy, whole.accuracy), (one.macro_f1, whole.macro_f1)):
                assert found == Score.of([known.per_split[split]], name)
            assert one.chosen_c == (whole.chosen_c[split],)
            assert one.validation.per_split == (whole.validation.per_split[split],)

    def test_a_split_that_the_graph_does_not_have_is_refused(self, embeddings):
        zs, y = embeddings
        with pytest.raises(InputError, match=r"split 3 does not exist: the graph's masks have splits 0 to 2\."):
            linear_probes(zs[:1], y, "public", own_splits=[3], masks=own_masks(400, columns=3))

    def test_wide_embeddings_are_probed_as_if_alone(self):
        y = blobs()[1]
        zs = [blobs(d=120, noise=noise)[0] for noise in (0.2, 0.4)]
        assert linear_probes(zs, y, repeats=2) == [linear_probe(z, y, repeats=2) for z in zs]

    def test_the_reference_takes_several_too(self, embeddings):
        zs, y = embeddings
        together = linear_probes(zs[:2], y, "random-20-80", repeats=1, solver="sklearn")
        assert together == [linear_probe(z, y, "random-20-80", repeats=1, solver="sklearn") for z in zs[:2]]

    def test_batches_do_not_change_the_result(self, embeddings, monkeypatch):
        zs, y = embeddings
        whole = linear_probes(zs, y, repeats=3)
        monkeypatch.setattr(logistic, "MEMORY", 50_000)
        assert linear_probes(zs, y, repeats=3) == whole

    @pytest.mark.parametrize(
        ("zs", "message"),
        [
            ([], "must have one width, not none"),
            ([torch.ones(100, 4), torch.ones(100, 3)], "must have one width, not 3 and 4; probe them separately"),
            ([torch.ones(100, 4), torch.ones(99, 4)], r"must be 100 × d, a row for each label, not of shape \(99, 4\)"),
            (torch.ones(100, 4), r"not of shape \(4,\)"),
        ],
    )
    def test_bad_input_gets_a_sentence(self, zs, message):
        with pytest.raises(InputError, match=message):
            linear_probes(zs, torch.arange(100) % 2)

    @pytest.mark.gpu
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    @pytest.mark.parametrize("name", RANDOM)
    def test_cuda_agrees_with_the_cpu(self, name, embeddings):
        zs, y = embeddings
        host = linear_probes(zs, y, name, repeats=3)
        for one, other in zip(host, linear_probes([z.cuda() for z in zs], y, name, repeats=3), strict=True):
            assert other.chosen_c == one.chosen_c
            assert other.accuracy.per_split == pytest.approx(one.accuracy.per_split, abs=0.003)


class TestValidationAccuracies:
    @pytest.mark.parametrize("name", HELD_OUT)
    def test_it_is_the_validation_of_the_probes(self, name):
        z, y = blobs(classes=4)
        y[::9] = -1
        zs = [z, z + 0.3 * torch.randn(400, 8, generator=torch.Generator().manual_seed(1))]
        options = {"repeats": 3, "first_split": 5, "masks": own_masks(400, columns=3)}
        expected = {name: [result.validation for result in linear_probes(zs, y, name, **options)]}
        assert validation_accuracies(zs, y, [name], **options) == expected
        assert validation_accuracies(torch.stack(zs), y, [name], **options) == expected

    @pytest.mark.parametrize("name", HELD_OUT)
    def test_what_is_known_of_test_nodes_cannot_matter(self, name):
        z, y = blobs(n=600)
        options = {"repeats": 2, "masks": own_masks(600)}
        tested = torch.ones(600, dtype=torch.bool)
        for split in splits(name, y, **options):
            tested[split.train] = tested[split.validation] = False
        assert tested.any()
        before = validation_accuracies([z], y, [name], **options)
        for other in ((y + 1) % 3, torch.full_like(y, 17), torch.zeros_like(y)):
            assert validation_accuracies([z], torch.where(tested, other, y), [name], **options) == before
        wild = torch.where(tested[:, None], 100 * z.flip(0), z)
        assert validation_accuracies([wild], y, [name], **options) == before

    def test_test_nodes_are_neither_predicted_nor_known(self, monkeypatch):
        z, y = blobs()
        asked, known = [], []

        def watched(x, classes, fit_on, predict_on, c, tolerance):
            known.append(classes >= 0)
            asked.extend(zip(fit_on, predict_on, strict=True))
            return logistic.fit_predict(x, classes, fit_on, predict_on, c, tolerance=tolerance)

        monkeypatch.setattr(probe, "fit_predict", watched)
        validation_accuracies([z], y, ["random-20-80"], repeats=2)
        expected = [(split.train, split.validation) for split in splits("random-20-80", y, repeats=2)]
        assert len(asked) == 2
        for (fit_on, predict_on), (train, validation) in zip(asked, expected, strict=True):
            assert torch.equal(fit_on, train)
            assert torch.equal(predict_on, validation)
        seen = torch.cat([torch.cat(pair) for pair in expected]).unique()
        assert torch.equal(known[0].nonzero().squeeze(1), seen)

    def test_protocols_solved_at_once_are_as_alone(self):
        z, y = blobs(classes=4, noise=1.5)
        together = validation_accuracies([z, z.flip(1)], y, HELD_OUT, repeats=3, masks=own_masks(400, columns=3))
        assert list(together) == list(HELD_OUT)
        for name in HELD_OUT:
            assert together[name] == [
                result.validation
                for result in linear_probes([z, z.flip(1)], y, name, repeats=3, masks=own_masks(400, columns=3))
            ]

    def test_only_the_strengths_given_are_tried(self):
        z, y = blobs(noise=1.5)
        tried = [validation_accuracies([z], y, ["random-20-80"], strengths=[c])["random-20-80"][0] for c in (0.5, 64.0)]
        (both,) = validation_accuracies([z], y, ["random-20-80"], strengths=[0.5, 64.0])["random-20-80"]
        assert tried[0].per_split != tried[1].per_split
        assert both.per_split == tuple(map(max, *(score.per_split for score in tried)))

    def test_cross_validation_is_refused(self):
        with pytest.raises(InputError, match="'random-10-90-cv' has no validation nodes"):
            validation_accuracies([torch.ones(100, 4)], torch.arange(100) % 2, ["random-10-90-cv"])


class TestCluster:
    def test_separate_classes_are_found_whatever_their_scale(self):
        z, y = blobs(noise=0.05)
        z = z * torch.logspace(0, 3, 400)[:, None]
        assert cluster(z, y + 5) == Clustering(nmi=1.0, ari=1.0)

    def test_labelled_nodes_alone_are_scored_and_counted(self):
        z, y = blobs(noise=0.05)
        unlabelled = y == 2
        hidden = torch.where(unlabelled, -1, y)
        z = torch.where(unlabelled[:, None], torch.eye(3, 8)[1], z)  # they join a cluster and are not scored
        assert cluster(z, hidden) == Clustering(nmi=1.0, ari=1.0)

    def test_the_seed_decides(self):
        z, y = blobs(noise=2.0)
        assert cluster(z, y, seed=3) == cluster(z.numpy(), y.numpy(), seed=3) != cluster(z, y, seed=0)
        assert -0.1 < cluster(z, y).ari < 0.9

    def test_a_graph_without_labels_is_refused(self):
        with pytest.raises(InputError, match="no labels"):
            cluster(torch.ones(10, 2), torch.full((10,), -1))
