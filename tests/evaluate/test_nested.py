"""Nested cross-validation: no node has a part in what predicts it."""

import pytest
import torch
from scipy.sparse import csr_array

from costa.errors import InputError
from costa.evaluate import nested
from costa.evaluate.inputs import stacked_rows, unit_rows
from costa.nn.sparse import from_scipy


def test_each_deal_predicts_every_node_once_from_the_others():
    classes = torch.arange(50) % 3
    folds = nested.deal(classes)
    assert len(folds) == 5 * nested.REPEATS
    for deal in (folds[start : start + 5] for start in range(0, len(folds), 5)):
        assert torch.cat([test for _, test in deal]).sort().values.tolist() == list(range(50))
        for train, test in deal:
            assert not set(train.tolist()) & set(test.tolist())
            assert len(train) + len(test) == 50
    assert len(nested.deal(torch.arange(3000) % 2)) == 5
    with pytest.raises(InputError, match="at least 10 labelled nodes and the graph has 9"):
        nested.deal(torch.arange(9) % 2)


def test_labels_without_meaning_are_predicted_no_better_than_by_chance():
    generator = torch.Generator().manual_seed(0)
    x, classes = torch.randn(400, 60, generator=generator), torch.randint(2, (400,), generator=generator)
    accuracy = nested.held_out_accuracy(stacked_rows([x], 400, "cpu"), classes, nested.deal(classes))
    assert abs(accuracy.mean - 0.5) < 0.08


def test_the_label_of_a_held_out_node_changes_nothing_that_is_predicted_of_it(blobs):
    x, classes = blobs(60, 3, 8)
    rows, folds = stacked_rows([x], 60, "cpu"), nested.deal(classes)[:1]
    other = classes.clone()
    other[folds[0][1]] = (other[folds[0][1]] + 1) % 3
    first, second = (nested.held_out_logits(rows, labels, folds)[0] for labels in (classes, other))
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_the_logits_and_the_accuracy_are_of_the_same_classifiers_sparse_or_dense(blobs):
    x, classes = blobs(200, 3, 30, noise=0.9)
    x = x[:, :12] * (x[:, :12].abs() > 0.5)
    rows, folds = stacked_rows([x], 200, "cpu"), nested.deal(classes)
    logits = nested.held_out_logits(rows, classes, folds)
    right = nested.score([each.argmax(1) == classes[test] for each, (_, test) in zip(logits, folds, strict=True)])
    assert right == nested.held_out_accuracy(rows, classes, folds)
    assert right.std > 0
    sparse = [unit_rows(from_scipy(csr_array(x.numpy())), 200, "cpu")]  # as a large one is given
    assert nested.held_out_accuracy(sparse, classes, folds[:5]).mean == pytest.approx(
        nested.held_out_accuracy(rows, classes, folds[:5]).mean, abs=0.01
    )
