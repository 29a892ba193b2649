"""The linear probe: which classifier is chosen, and what is tested."""

import random

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from costa.errors import InputError
from costa.evaluate import logistic, probe
from costa.evaluate.clustering import cluster
from costa.evaluate.probe import STRENGTHS, linear_probe, linear_probes, validation_accuracies
from costa.evaluate.protocols import PROTOCOLS, cross_validation_folds, shuffled, splits
from costa.evaluate.scores import Score

RANDOM = [name for name in PROTOCOLS if name != "public"]
HELD_OUT = [name for name, protocol in PROTOCOLS.items() if protocol.selection != "cv"]


class TestLinearProbe:
    @pytest.mark.parametrize("name", [*RANDOM, "public"])
    def test_the_solvers_agree_under_every_protocol(self, name, blobs, own_masks):
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

    def test_it_equals_a_plain_loop_over_splits_and_strengths(self, blobs):
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
    def test_validation_is_the_chosen_strengths_score_where_it_was_chosen(self, name, blobs):
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

    def test_own_masks_state_their_label_fraction(self, blobs, own_masks):
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

    def test_refitting_uses_the_validation_labels(self, blobs):
        z, y = blobs(n=2000, classes=5, d=40, noise=0.5)
        assert linear_probe(z, y, "random-20-80", repeats=3).accuracy.mean > linear_probe(z, y, repeats=3).accuracy.mean

    def test_labels_choose_nothing_on_the_test_part(self, blobs):
        z, y = blobs()
        split = splits("random-10-10-80", y, repeats=1)[0]
        other = y.clone()
        other[split.test] = (y[split.test] + 1) % 3
        assert linear_probe(z, other, repeats=1).chosen_c == linear_probe(z, y, repeats=1).chosen_c

    @pytest.mark.parametrize("solver", ["torch", "sklearn"])
    def test_a_class_absent_from_training_counts_as_errors(self, solver, blobs, own_masks):
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

    def test_unlabelled_nodes_change_nothing(self, blobs):
        z, y = blobs(n=300)
        hidden = torch.arange(300) % 3 == 0
        partly = torch.where(hidden, -1, y)
        wild = torch.where(hidden[:, None], 100.0 * torch.ones_like(z), z)
        result = linear_probe(wild, partly, repeats=3)
        assert result == linear_probe(z[~hidden], y[~hidden], repeats=3)

    def test_labels_need_not_be_contiguous(self, blobs):
        z, y = blobs()
        names = torch.tensor([3, 40, 7_000_000])
        assert linear_probe(z, names[y], repeats=2) == linear_probe(z, y, repeats=2)

    def test_the_length_of_a_row_does_not_matter(self, blobs):
        z, y = blobs(n=200)
        assert linear_probe(z * 7, y, repeats=2).accuracy.per_split == pytest.approx(
            linear_probe(z, y, repeats=2).accuracy.per_split, abs=0.01
        )

    def test_arrays_and_tensors_are_alike(self, blobs):
        z, y = blobs()
        frozen = z.numpy().copy()
        frozen.flags.writeable = False
        assert linear_probe(frozen, y.numpy(), repeats=2) == linear_probe(z.requires_grad_(), y, repeats=2)
        assert linear_probe(z.detach().to(torch.bfloat16), y, repeats=2).accuracy.mean > 0.5

    def test_the_global_generators_are_left_as_found(self, blobs):
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
        ],
    )
    def test_bad_input_gets_a_sentence(self, arguments, message):
        arguments = {"z": torch.ones(100, 4), "y": torch.arange(100) % 2} | arguments
        with pytest.raises(InputError, match=message):
            linear_probe(**arguments)

    def test_the_first_split_is_a_seed(self, blobs):
        z, y = blobs()
        early, late = linear_probe(z, y, repeats=4), linear_probe(z, y, repeats=2, first_split=2)
        assert late.accuracy.per_split == early.accuracy.per_split[2:]
        assert late.chosen_c == early.chosen_c[2:]
        assert late.accuracy.per_split != early.accuracy.per_split[:2]

    @pytest.mark.gpu
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    @pytest.mark.parametrize("name", RANDOM)
    def test_cuda_agrees_with_the_cpu(self, name, blobs):
        z, y = blobs(n=1000)
        host, device = linear_probe(z, y, name, repeats=3), linear_probe(z.cuda(), y.cuda(), name, repeats=3)
        assert device.chosen_c == host.chosen_c
        assert device.accuracy.per_split == pytest.approx(host.accuracy.per_split, abs=0.003)
        assert linear_probe(z, y, name, repeats=3, device="cuda").accuracy == device.accuracy


class TestLinearProbes:
    @pytest.fixture
    def embeddings(self, blobs):
        """Of the same nodes: a good one, a worse one, one of fewer directions than columns, and noise."""
        z, y = blobs(classes=4)
        noise = torch.randn(400, 8, generator=torch.Generator().manual_seed(1))
        return [z, z + 0.3 * noise, z[:, :3] @ noise[:3], noise], y

    @pytest.mark.parametrize("name", [*RANDOM, "public"])
    def test_each_is_probed_as_if_alone(self, name, embeddings, own_masks):
        zs, y = embeddings
        y[::9] = -1
        options = {"repeats": 3, "masks": own_masks(400, columns=3)}
        together = linear_probes(zs, y, name, **options)
        assert together == [linear_probe(z, y, name, **options) for z in zs]
        assert together[0].accuracy.mean > together[3].accuracy.mean + 0.1
        assert linear_probes(torch.stack(zs), y, name, **options) == together

    @pytest.mark.parametrize("name", [*RANDOM, "public"])
    def test_each_may_be_judged_on_one_split_of_its_own(self, name, embeddings, own_masks):
        zs, y = embeddings
        own, options = [2, 0, 1, 2], {"masks": own_masks(400, columns=3)}
        every = linear_probes(zs, y, name, repeats=3, **options)
        for split, one, whole in zip(own, linear_probes(zs, y, name, own_splits=own, **options), every, strict=True):
            for found, known in ((one.accuracy, whole.accuracy), (one.macro_f1, whole.macro_f1)):
                assert found == Score.of([known.per_split[split]], name)
            assert one.chosen_c == (whole.chosen_c[split],)
            assert one.validation.per_split == (whole.validation.per_split[split],)

    def test_a_split_that_the_graph_does_not_have_is_refused(self, embeddings, own_masks):
        zs, y = embeddings
        with pytest.raises(InputError, match=r"split 3 does not exist: the graph's masks have splits 0 to 2\."):
            linear_probes(zs[:1], y, "public", own_splits=[3], masks=own_masks(400, columns=3))

    def test_wide_embeddings_are_probed_as_if_alone(self, blobs):
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
    def test_it_is_the_validation_of_the_probes(self, name, blobs, own_masks):
        z, y = blobs(classes=4)
        y[::9] = -1
        zs = [z, z + 0.3 * torch.randn(400, 8, generator=torch.Generator().manual_seed(1))]
        options = {"repeats": 3, "first_split": 5, "masks": own_masks(400, columns=3)}
        expected = {name: [result.validation for result in linear_probes(zs, y, name, **options)]}
        assert validation_accuracies(zs, y, [name], **options) == expected
        assert validation_accuracies(torch.stack(zs), y, [name], **options) == expected

    @pytest.mark.parametrize("name", HELD_OUT)
    def test_what_is_known_of_test_nodes_cannot_matter(self, name, blobs, own_masks):
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

    def test_test_nodes_are_neither_predicted_nor_known(self, monkeypatch, blobs):
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

    def test_protocols_solved_at_once_are_as_alone(self, blobs, own_masks):
        z, y = blobs(classes=4, noise=1.5)
        together = validation_accuracies([z, z.flip(1)], y, HELD_OUT, repeats=3, masks=own_masks(400, columns=3))
        assert list(together) == list(HELD_OUT)
        for name in HELD_OUT:
            assert together[name] == [
                result.validation
                for result in linear_probes([z, z.flip(1)], y, name, repeats=3, masks=own_masks(400, columns=3))
            ]

    def test_only_the_strengths_given_are_tried(self, blobs):
        z, y = blobs(noise=1.5)
        tried = [validation_accuracies([z], y, ["random-20-80"], strengths=[c])["random-20-80"][0] for c in (0.5, 64.0)]
        (both,) = validation_accuracies([z], y, ["random-20-80"], strengths=[0.5, 64.0])["random-20-80"]
        assert tried[0].per_split != tried[1].per_split
        assert both.per_split == tuple(map(max, *(score.per_split for score in tried)))

    def test_cross_validation_is_refused(self):
        with pytest.raises(InputError, match="'random-10-90-cv' has no validation nodes"):
            validation_accuracies([torch.ones(100, 4)], torch.arange(100) % 2, ["random-10-90-cv"])


def test_cross_validation_is_scikit_learns_on_the_same_folds():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    y = torch.from_numpy(rng.integers(0, 3, 80))
    y[60:] = -1
    z = torch.eye(3)[y.clamp(min=0)] + 0.8 * torch.from_numpy(rng.normal(size=(80, 3))).float()
    score = probe.cross_validation_accuracies(z, y, repeats=2)
    x, labelled = torch.nn.functional.normalize(z).numpy(), torch.arange(60)
    rows = [
        [
            LogisticRegression(C=c, tol=1e-10, max_iter=10_000).fit(x[train], y[train]).score(x[held_out], y[held_out])
            for c in probe.STRENGTHS
        ]
        for r in range(2)
        for train, held_out in cross_validation_folds(shuffled(labelled, r), y)
    ]
    best = np.asarray(rows).mean(0).round(12).argmax()
    np.testing.assert_allclose(score.per_split, np.asarray(rows)[:, best])
    # every labelled node is held out once in each repeat, and each class is in every fold
    folds = [held_out for _, held_out in cross_validation_folds(shuffled(labelled, 0), y)]
    assert sorted(torch.cat(folds).tolist()) == list(range(60))
    assert all(set(y[fold].tolist()) == {0, 1, 2} for fold in folds)


def test_cross_validation_does_not_see_nodes_without_a_label():
    y = torch.arange(60) % 3
    y[30:] = -1
    z = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    other = z.clone()
    other[30:] = 0
    assert probe.cross_validation_accuracies(z, y) == probe.cross_validation_accuracies(other, y)


def test_cross_validation_needs_ten_labels():
    with pytest.raises(InputError, match="at least 10 labelled nodes and the graph has 9; label more"):
        probe.cross_validation_accuracies(torch.eye(9), torch.arange(9) % 2)
