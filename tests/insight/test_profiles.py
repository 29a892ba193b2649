"""Profiles name the planted columns that set groups apart, in their units, and no others."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch_geometric.data import Data

from costa.graphs import as_graph
from costa.graphs.storage import open_stored, store
from costa.graphs.tables import Table
from costa.insight import profiles
from costa.nn.sparse import from_scipy

N = 600
OF = np.arange(N) % 3


def of_table(columns, **more):
    """The profiles of a graph whose nodes have these columns."""
    graph = Data(x=torch.zeros(N, 2), edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=N, **more)
    graph.table = Table("the node table", "nodes.csv", columns, N)
    return profiles.profiles(graph, OF, 3)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def as_text(values):
    return [f"{value:.1f}" for value in values]


def test_a_number_that_differs_is_named_with_both_means(rng):
    age = rng.normal(40, 5, N) + 10 * (OF == 1)
    noise = rng.normal(0, 1, N)
    for columns in ({"age": age, "noise": noise}, {"age": as_text(age), "noise": as_text(noise)}):
        low, high, _ = of_table(columns)
        assert high == [f"age {age[OF == 1].mean():.3g} (all: {age.mean():.3g})"]
        assert low == [f"age {age[OF == 0].mean():.3g} (all: {age.mean():.3g})"]


def test_missing_numbers_are_left_out_of_the_means(rng):
    age = as_text(rng.normal(40, 5, N) + 10 * (OF == 1))
    age[1::9] = [""] * len(age[1::9])
    known = np.array([float(cell) if cell else np.nan for cell in age])
    assert of_table({"age": age})[1] == [f"age {np.nanmean(known[OF == 1]):.3g} (all: {np.nanmean(known):.3g})"]


def test_the_value_of_a_text_that_is_over_represented_is_named(rng):
    plan = np.where((OF == 2) & (rng.random(N) < 0.7), "gold", rng.choice(["silver", "tin"], N))
    found = of_table({"plan": plan.tolist(), "sex": rng.choice(["m", "f"], N).tolist()})
    share, everywhere = (plan[OF == 2] == "gold").mean(), (plan == "gold").mean()
    assert found[2] == [f"plan = gold {share:.0%} (all: {everywhere:.0%})"]
    assert all("gold" not in phrase for group in found[:2] for phrase in group)


def test_what_is_missing_more_often_is_said(rng):
    plan = np.where((OF == 0) & (rng.random(N) < 0.5), "", "gold")
    missing = [f"plan missing {(plan[OF == 0] == '').mean():.0%} (all: {(plan == '').mean():.0%})"]
    assert of_table({"plan": plan.tolist()})[0] == missing


def test_a_date_is_compared_by_its_day(rng):
    days = rng.integers(0, 1000, N) + 2000 * (OF == 2)
    joined = (np.datetime64("2010-01-01") + days).astype(str).tolist()
    mean = [str(np.datetime64("2010-01-01") + round(each)) for each in (days[OF == 2].mean(), days.mean())]
    joined[2] = ""
    (found,) = of_table({"joined": joined})[2]
    near = [str(np.datetime64(each) + shift) for each in mean for shift in (-4, 0, 4)]
    first, last = found.removeprefix("joined ").removesuffix(")").split(" (all: ")
    assert near[0] <= first <= near[2]
    assert near[3] <= last <= near[5]


def test_long_texts_and_dates_that_are_none_are_left_out(rng):
    notes = [f"2024-01-01 came {row} and said {'much ' * 50}" for row in range(N)]
    assert of_table({"note": notes, "when": [f"2024-13-{row}" for row in range(N)]}) == [[], [], []]


def test_columns_are_ranked_by_their_standardised_difference_and_three_are_named(rng):
    columns = {f"c{size}": rng.normal(0, 1, N) + size * (OF == 0) for size in (1, 4, 2, 3)}
    assert [phrase.split()[0] for phrase in of_table(columns)[0]] == ["c4", "c3", "c2"]


def test_ids_names_and_noise_say_nothing(rng):
    names = [f"person {row}" for row in range(N)]
    noise = {f"noise {column}": rng.normal(0, 1, N) for column in range(20)}
    columns = {"id": names, "customer": [str(row) for row in range(N)], "note": names, **noise}
    assert of_table(columns, node_ids=[str(row) for row in range(N)]) == [[], [], []]


def test_the_label_is_compared_among_the_labelled_nodes():
    y = torch.from_numpy(OF.copy())
    y[:300] = -1
    found = of_table({"label": ["x"] * N}, y=y, label_names=["cat", "dog", "cow"])
    assert found == [[f"label = {name} 100% (all: 33%)"] for name in ("cat", "dog", "cow")]


def graph_of(x, **more):
    ends = np.arange(N)
    graph = Data(x=x, edge_index=torch.from_numpy(np.stack([ends, np.roll(ends, 1)])), num_nodes=N, **more)
    graph.edge_index = torch.cat([graph.edge_index, graph.edge_index.flip(0)], 1)
    return graph


@pytest.fixture
def stored(tmp_path):
    """The same graph on a disk."""

    def make(graph):
        store(graph, tmp_path)
        return open_stored(tmp_path, 2**26)

    return make


def test_features_without_a_table_have_their_names_or_numbers(rng, stored, monkeypatch):
    monkeypatch.setattr(profiles, "ROWS", 64)
    x = rng.normal(100, 10, (N, 5))
    x[OF == 1, 3] += 30
    expected = f"{x[OF == 1, 3].mean():.3g} (all: {x[:, 3].mean():.3g})"
    graph = graph_of(torch.from_numpy(x).float())
    assert profiles.profiles(graph, OF, 3)[1] == [f"column 3 {expected}"]
    assert profiles.profiles(stored(graph), OF, 3)[1] == [f"column 3 {expected}"]
    graph.feature_names = list("abcde")
    assert profiles.profiles(graph, OF, 3)[1] == [f"d {expected}"]


def test_a_feature_that_is_zero_or_one_is_a_share(rng):
    x = rng.normal(0, 1, (N, 2))
    x[:, 1] = rng.random(N) < np.where(OF == 1, 0.8, 0.2)
    found = profiles.profiles(graph_of(torch.from_numpy(x).float(), feature_names=["size", "plays"]), OF, 3)
    assert found == [[], [f"plays {x[OF == 1, 1].mean():.0%} (all: {x[:, 1].mean():.0%})"], []]


@pytest.mark.parametrize("form", ["csr", "dense", "stored"])
def test_words_that_are_more_frequent_in_a_group_are_named(rng, stored, form, monkeypatch):
    monkeypatch.setattr(profiles, "ROWS", 64)
    bags = (rng.random((N, 400)) < 0.02) * rng.integers(1, 4, (N, 400))
    bags[(OF == 1) & (rng.random(N) < 0.3), 17] = 1
    bags[4, 399] = 1  # a word of a single node
    graph = graph_of(from_scipy(csr_array(bags.astype("float32"))))
    if form != "csr":
        graph = stored(graph) if form == "stored" else graph_of(torch.from_numpy(bags).float())
    found = profiles.profiles(graph, OF, 3)
    assert found[1][0] == f"column 17 {(bags[OF == 1, 17] > 0).mean():.0%} (all: {(bags[:, 17] > 0).mean():.0%})"
    assert not any("column 399 " in phrase for group in found for phrase in group)


def test_of_features_that_were_made_from_the_edges_the_degree_is_named(rng, stored):
    hubs = np.flatnonzero(OF == 0)[:20]
    ends = np.stack([np.repeat(hubs, 30), rng.integers(N, size=600)], 1)
    graph = as_graph(ends[ends[:, 0] != ends[:, 1]])
    of = np.where(np.isin(np.arange(graph.num_nodes), hubs), 0, 1)
    degree = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes).double().numpy()
    expected = [f"degree {degree[of == 0].mean():.3g} (all: {degree.mean():.3g})"]
    assert profiles.profiles(graph, of, 2)[0] == expected
    graph.y = torch.full((graph.num_nodes,), -1)
    assert profiles.profiles(stored(graph), of, 2)[0] == expected
