"""Choosing among a portfolio by validation on labels."""

import numpy as np
import pytest
import torch

from costa.errors import InputError
from costa.evaluate.probe import CROSS_VALIDATION
from costa.evaluate.protocols import splits
from costa.evaluate.scores import Score
from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.methods.costa import CostaMV
from costa.tuning import portfolio
from costa.tuning.portfolio import DEFAULT, PORTFOLIO, STRICT, Candidate, Choice, choose, chosen_by, is_clearly_above

CPU = torch.device("cpu")
QUICK = (Candidate("raw", "raw features", "raw"), Candidate("hops", "hops of the features", "hops"))


@pytest.fixture
def quick(monkeypatch):
    """Two candidates that need no training."""
    monkeypatch.setattr(portfolio, "PORTFOLIO", QUICK)


@pytest.fixture(scope="module")
def by_chance():
    return planted_partition(1200, 3, 16, degree=6, homophily=0.33, signal=2.0, seed=1007)


@pytest.fixture(scope="module")
def alike():
    return planted_partition(1200, 3, 16, degree=6, homophily=0.8, signal=1.0, seed=0)


@pytest.mark.parametrize("few", [False, True])
def test_the_features_win_where_edges_join_nodes_at_random_and_hops_where_they_join_like_nodes(
    quick, by_chance, alike, few
):
    for graph, best in ((by_chance, "raw"), (alike, "hops")):
        y = graph.y.clone()
        if few:
            y[150:] = -1
        choice = choose(graph, y, device=CPU)
        assert (choice.chosen.name, choice.by) == (best, CROSS_VALIDATION if few else STRICT)
        assert {row.status for row in choice.table} == {"ok"}
        assert all(len(row.validation.per_split) == 20 for row in choice.table)


def test_labels_outside_the_fifth_cannot_influence_the_choice(quick, by_chance):
    (split,) = splits(STRICT, by_chance.y, repeats=1)
    changed = by_chance.clone()
    shuffled = split.test[torch.randperm(len(split.test), generator=torch.Generator().manual_seed(0))]
    changed.y = by_chance.y.clone()
    changed.y[split.test] = by_chance.y[shuffled]
    # a hundred classes that the fifth does not have
    changed.y[split.test[:100]] = torch.arange(100, 200)
    assert not torch.equal(changed.y, by_chance.y)
    before, after = (choose(graph, device=CPU) for graph in (by_chance, changed))
    assert after.chosen == before.chosen
    assert [row.validation for row in after.table] == [row.validation for row in before.table]
    changed.y[split.train] = by_chance.y[split.train.flip(0)]
    other = choose(changed, device=CPU)
    assert [row.validation for row in other.table] != [row.validation for row in before.table]


def test_which_labels_choose():
    y = torch.arange(1000) % 4
    assert chosen_by(y) == STRICT
    y[0] = -1
    assert chosen_by(y) == CROSS_VALIDATION
    assert chosen_by(torch.arange(1000) % 20) == STRICT
    assert chosen_by(torch.arange(1000) % 21) == CROSS_VALIDATION


def test_every_candidate_can_be_trained_and_the_table_is_kept():
    ended = []
    small = planted_partition(100, 2, 6, seed=0)
    choice = choose(small, device=CPU, epochs=1, report=ended.append)
    assert ended == choice.table
    assert [row.candidate for row in ended] == list(PORTFOLIO)
    assert [candidate.name for candidate in PORTFOLIO] == [
        *("raw", "diffused", "hops", "untrained"),
        *("costa-sv-hops", "costa-mv-hops", "costa-mv-gcn", "costa-mv-appnp"),
    ]
    best = max(ended, key=lambda row: row.validation.mean)
    (default,) = [row for row in ended if row.candidate.name == DEFAULT]
    clearly = is_clearly_above(best.validation, default.validation, choice.by)
    assert choice.chosen == (best if clearly else default).candidate
    method, outcome, z = choice.trained
    assert isinstance(method, get_method(choice.chosen.method))
    assert outcome.status == "ok"
    assert len(z) == 100
    again = Choice.from_dict(choice.to_dict())
    assert (again.chosen, again.by, again.table) == (choice.chosen, choice.by, choice.table)


def test_the_encoders_are_those_of_the_names(alike):
    kinds = {candidate.name: candidate.resolve(alike).values for candidate in PORTFOLIO if "costa" in candidate.method}
    assert {name: (values.encoder.kind, values.encoder.steps) for name, values in kinds.items() if "mv" in name} == {
        "costa-mv-hops": ("hops", kinds["costa-mv-hops"].encoder.steps),
        "costa-mv-gcn": ("gcn", 0),
        "costa-mv-appnp": ("appnp", 10),
    }
    assert kinds["costa-sv-hops"].encoder.kind == "hops"


def test_a_tie_goes_to_the_earlier_candidate(monkeypatch, by_chance):
    twice = (Candidate("first", "one", "raw"), Candidate("second", "the other", "raw"))
    for order in (twice, twice[::-1]):
        monkeypatch.setattr(portfolio, "PORTFOLIO", order)
        assert choose(by_chance, device=CPU).chosen == order[0]


@pytest.mark.parametrize(("apart", "kept"), [(0.02, True), (0.2, False)])
def test_the_default_is_kept_unless_another_is_clearly_better(monkeypatch, by_chance, apart, kept):
    order = (Candidate("other", "another", "raw"), Candidate(DEFAULT, "the default", "raw"))
    wobble = np.array([-0.03, 0.05, 0.0, -0.02])  # a standard error of 0.08 between the two
    scores = [Score.of((0.6 + apart + wobble).tolist(), STRICT), Score.of((0.6 - wobble).tolist(), STRICT)]
    monkeypatch.setattr(portfolio, "PORTFOLIO", order)
    monkeypatch.setattr(portfolio, "validate", lambda z, y, by, device: scores.pop(0))
    assert (choose(by_chance, device=CPU).chosen == order[1]) == kept


def without_memory(graph):
    raise MemoryError


@pytest.mark.parametrize(
    ("vectors", "status"),
    [
        (lambda graph: torch.full((graph.num_nodes, 2), float("nan")), "diverged"),
        (lambda graph: torch.ones(graph.num_nodes, 2), "collapsed"),
        (without_memory, "out of memory"),
    ],
)
def test_a_candidate_that_failed_is_listed_and_never_chosen(monkeypatch, vectors, status):
    monkeypatch.setattr(CostaMV, "embed", lambda self, graph: vectors(graph))
    mine = Candidate("mine", "COSTA, two views", "costa-mv", {"encoder.kind": "hops"})
    monkeypatch.setattr(portfolio, "PORTFOLIO", (mine, QUICK[0]))
    choice = choose(planted_partition(100, 2, 6, seed=0), device=CPU, epochs=1)
    assert [(row.status, row.validation is None) for row in choice.table] == [(status, True), ("ok", False)]
    assert choice.chosen == QUICK[0]
    assert Choice.from_dict(choice.to_dict()).table == choice.table
    monkeypatch.setattr(portfolio, "PORTFOLIO", (mine,))
    with pytest.raises(InputError, match=rf"no candidate gave vectors that can be used \({status}\)"):
        choose(planted_partition(100, 2, 6, seed=0), device=CPU, epochs=1)


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (torch.full((100,), -1), "choosing needs labels of two classes"),
        (torch.zeros(100, dtype=torch.long), "choosing needs labels of two classes"),
        (torch.tensor([0, 1] * 4 + [-1] * 92), "at least 10 labelled nodes and the graph has 8"),
    ],
)
def test_labels_that_cannot_choose_are_one_sentence(quick, y, says):
    with pytest.raises(InputError, match=says):
        choose(planted_partition(100, 2, 6, seed=0), y, device=CPU)


def test_a_seed_gives_the_same_table_and_another_seed_another():
    graph = planted_partition(100, 2, 6, seed=0)
    first, second, other = (choose(graph, seed=seed, device=CPU, epochs=1) for seed in (0, 0, 1))
    assert [row.validation for row in first.table] == [row.validation for row in second.table]
    assert [row.validation for row in first.table] != [row.validation for row in other.table]
