"""Predictions against labels that were hidden: as accurate, and as sure, as was said."""

import csv

import pytest
import torch
from torch_geometric.data import Data

from costa.errors import InputError
from costa.evaluate.calibration import calibration_error
from costa.graphs.synthetic import planted_partition
from costa.insight import predictions
from costa.methods import get_method
from costa.settings.presets import resolve
from costa.training import train_and_embed

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def hidden():
    """A planted graph of which 300 nodes keep their label, its vectors, and all labels."""
    graph = planted_partition(3000, 4, 16, degree=6, homophily=0.6, signal=1.5, seed=0)
    truth = graph.y.clone()
    graph.y[torch.randperm(3000, generator=torch.Generator().manual_seed(0))[300:]] = -1
    method = get_method("diffused")
    z = train_and_embed(method, resolve(method, graph).values, graph, device=CPU)[2]
    return graph, z, truth


@pytest.fixture(scope="module")
def learnt(hidden):
    graph, z, _ = hidden
    return predictions.learn(z, graph, CPU)


def test_the_accuracy_on_hidden_labels_is_what_was_expected(hidden, learnt):
    graph, z, truth = hidden
    classifier, expected = learnt
    unknown = graph.y < 0
    codes, _ = classifier(z[unknown])
    accuracy = float((torch.tensor(codes) == truth[unknown]).double().mean())
    assert abs(accuracy - expected.accuracy.mean) < expected.accuracy.std
    assert expected.accuracy.mean > expected.raw.mean + 0.1 > expected.most_common + 0.1
    assert expected.accuracy.std > 0
    assert expected.nodes == 300


def test_probabilities_of_hidden_labels_are_calibrated(hidden, learnt):
    graph, z, truth = hidden
    classifier, expected = learnt
    unknown = graph.y < 0
    codes, sure = classifier(z[unknown])
    sure, right = torch.tensor(sure), torch.tensor(codes) == truth[unknown]
    assert 0.5 < float(right.double().mean()) < 0.95  # else every probability would be near 1
    assert calibration_error(sure, right) < 0.06
    assert expected.calibration < 0.08
    raw = predictions.Classifier(classifier.weight, classifier.bias, 5 * classifier.temperature, classifier.codes)
    assert calibration_error(torch.tensor(raw(z[unknown])[1]), right) > 0.15


def test_what_few_predict_with_is_what_all_are_predicted_with(hidden, learnt, tmp_path, monkeypatch):
    graph, z, _ = hidden
    monkeypatch.setattr(predictions, "ROWS", 700)
    graph = Data(**graph.to_dict())
    graph.label_names = ["north", "east", "south", "west"]
    predictions.write_predictions(tmp_path / "p.csv", z, graph, learnt[0])
    with (tmp_path / "p.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["id", "label", "probability", "given-or-predicted"]
    assert [int(row[0]) for row in rows] == list(range(3000))
    codes, sure = learnt[0](z)
    for row, own, code, probability in zip(rows, graph.y.tolist(), codes, sure, strict=True):
        expected = ["", "given"] if own >= 0 else [f"{probability:.4f}", "predicted"]
        assert row[1:] == [graph.label_names[own if own >= 0 else code], *expected]


def test_of_very_many_labels_a_sample_trains_and_a_smaller_one_is_cross_validated(hidden, monkeypatch):
    from costa.evaluate import samples

    graph, z, truth = hidden
    monkeypatch.setattr(samples, "MOST", 200)
    monkeypatch.setattr(predictions, "CROSS", 100)
    classifier, expected = predictions.learn(z, graph, CPU)
    assert expected.nodes == 100
    unknown = graph.y < 0
    right = torch.tensor(classifier(z[unknown])[0]) == truth[unknown]
    assert float(right.double().mean()) > expected.accuracy.mean - 3 * expected.accuracy.std


def labelled(*y, names=None):
    graph = Data(x=torch.eye(len(y)), edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor(y), name="friends")
    if names:
        graph.label_names = names
    return graph


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        (labelled(-1, -1), "friends has no labels, so there is nothing to learn from"),
        (labelled(0, 0, -1, names=["cat"]), "all labelled nodes of friends are 'cat'; label some nodes of another"),
        (labelled(0, 1), "every node of friends has a label, so there is nothing to predict"),
    ],
)
def test_labels_that_leave_nothing_to_do_are_one_sentence(graph, says):
    with pytest.raises(InputError, match=says):
        predictions.check(graph)


def test_too_few_labels_are_refused_and_rare_classes_are_named():
    graph = labelled(*[0] * 5, *[1] * 4, -1, names=["cat", "dog"])
    with pytest.raises(InputError, match="needs at least 10 labelled nodes and the graph has 9"):
        predictions.learn(torch.eye(10), graph, CPU)
    assert predictions.rarely_labelled(graph) == ["dog"]


def test_a_class_with_a_single_label_counts_as_wrong_where_it_could_not_be_learnt():
    graph = labelled(*[0] * 8, *[1] * 8, 2, -1, -1)
    z = torch.eye(3)[[*[0] * 8, *[1] * 8, 2, 0, 1]]
    classifier, expected = predictions.learn(z, graph, CPU)
    assert classifier(z[-2:])[0] == [0, 1]
    assert len(classifier.codes) == 3
    assert 0.8 < expected.accuracy.mean < 1
