"""Profiles name the planted columns that set groups apart, in their units, and no others."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from scipy.stats import rankdata
from torch_geometric.data import Data

from costa.evaluate import attributes
from costa.evaluate.profiles import profiles
from costa.graphs import as_graph
from costa.graphs.columns import fit_columns
from costa.graphs.storage import open_stored, store
from costa.graphs.tables import Table
from costa.nn.sparse import from_scipy

N = 600
OF = np.arange(N) % 3


def said(graph, of=OF):
    return [[str(trait) for trait in traits] for traits in profiles(graph, of, 1 + of.max())]


def with_table(columns, given=None, **more):
    """A graph whose nodes have these columns, taken for what a person said."""
    graph = Data(x=torch.zeros(N, 2), edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=N, **more)
    graph.table = Table("the node table", "nodes.csv", columns, N)
    graph.columns = fit_columns(graph.table, given)
    return graph


def of_table(columns, given=None, of=OF, **more):
    return said(with_table(columns, given, **more), of)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def as_text(values):
    return [f"{value:.1f}" for value in values]


def test_a_number_that_differs_is_named_with_both_medians(rng):
    age = rng.normal(40, 5, N).round(1) + 10 * (OF == 1)
    noise = rng.normal(0, 1, N)
    for columns in ({"age": age, "noise": noise}, {"age": as_text(age), "noise": as_text(noise)}):
        low, high, _ = of_table(columns)
        assert high == [f"age {np.median(age[OF == 1]):.3g} (all: {np.median(age):.3g})"]
        assert low == [f"age {np.median(age[OF == 0]):.3g} (all: {np.median(age):.3g})"]


def test_outliers_hide_nothing(rng):
    income = rng.normal(40, 5, N) + 10 * (OF == 1)
    income[:2] = 1e12
    assert of_table({"income": income})[1] == [
        f"income {np.median(income[OF == 1]):.3g} (all: {np.median(income):.3g})"
    ]


def test_where_the_medians_agree_means_are_compared(rng):
    stars = np.where(rng.random(N) < 0.6, 4, np.where(OF == 0, 5, 3))
    expected = f"mean stars {stars[OF == 0].mean():.3g} (all: {stars.mean():.3g})"
    assert np.median(stars) == np.median(stars[OF == 0])
    assert of_table({"stars": stars})[0] == [expected]


def test_the_difference_is_that_of_mean_ranks_in_standard_deviations(rng):
    x = rng.integers(1, 9, N).astype(float) ** 3 + (OF == 2)
    yes = (x > 200).astype(float)
    for values in (x, yes):
        (trait,) = profiles(with_table({"x": values}), np.where(x > 100, 1, 0), 2)[1]
        ranks, inside = rankdata(values), x > 100
        expected = (ranks[inside].mean() - ranks[~inside].mean()) / ranks.std()
        assert trait.difference == pytest.approx(expected)


def test_missing_numbers_are_left_out_of_the_medians(rng):
    age = as_text(rng.normal(40, 5, N) + 10 * (OF == 1))
    for row in range(0, N, 7):
        age[row] = ""
    known = np.array([float(cell or "nan") for cell in age])
    assert of_table({"age": age})[1] == [f"age {np.nanmedian(known[OF == 1]):.3g} (all: {np.nanmedian(known):.3g})"]


def test_the_value_of_a_category_that_differs_most_is_named(rng):
    plan = np.where((OF == 2) & (rng.random(N) < 0.7), "gold", rng.choice(["silver", "tin"], N))
    found = of_table({"plan": plan.tolist(), "sex": rng.choice(["m", "f"], N).tolist()})
    everywhere = (plan == "gold").mean()
    assert found[2] == [f"plan = gold {(plan[OF == 2] == 'gold').mean():.0%} (all: {everywhere:.0%})"]
    assert found[0] == [f"plan = gold 0% (all: {everywhere:.0%})"]


def test_of_two_values_the_more_frequent_one_is_named(rng):
    paid = np.where(rng.random(N) < np.where(OF == 1, 0.8, 0.3), "yes", "no")
    first, second, _ = of_table({"paid": paid.tolist()})
    assert first == [f"paid = no {(paid[OF == 0] == 'no').mean():.0%} (all: {(paid == 'no').mean():.0%})"]
    assert second == [f"paid = yes {(paid[OF == 1] == 'yes').mean():.0%} (all: {(paid == 'yes').mean():.0%})"]
    assert of_table({"paid": paid == "yes"})[1] == [second[0].replace("yes", "True")]


@pytest.mark.parametrize("values", [["gold", "tin"], ["1.5", "2.5", "3.5"], ["2024-01-01", "2024-02-02", "2024-03-03"]])
def test_what_is_missing_more_often_is_said(rng, values):
    cells = np.where((OF == 0) & (rng.random(N) < 0.5), "", rng.choice(values, N))
    missing = f"c missing {(cells[OF == 0] == '').mean():.0%} (all: {(cells == '').mean():.0%})"
    assert of_table({"c": cells.tolist()})[0] == [missing]


@pytest.mark.parametrize("written", ["%Y-%m-%d", "%d.%m.%Y"])
def test_a_date_is_compared_by_its_day(rng, written):
    days = np.datetime64("2010-01-01") + rng.integers(0, 1000, N) + 2000 * (OF == 2)
    middle = [np.sort(each)[len(each) // 2] for each in (days[OF == 2], days)]
    joined = [day.strftime(written) for day in days.tolist()]
    joined[2] = ""
    (found,) = of_table({"joined": joined})[2]
    first, last = found.removeprefix("joined ").removesuffix(")").split(" (all: ")
    for day, expected in zip((first, last), middle, strict=True):
        assert abs(np.datetime64(day) - expected) <= np.timedelta64(20, "D")


def test_columns_are_what_a_person_said_that_they_are(rng):
    zone = np.where(OF == 0, rng.choice(["1010", "1020"], N), rng.choice(["1030", "1040", "1050"], N)).tolist()
    assert of_table({"zone": zone})[0][0].startswith("zone 1,0")
    assert of_table({"zone": zone}, {"zone": "category"})[0][0].startswith("zone = 10")
    assert of_table({"zone": zone, "x": OF}, {"zone": "ignore"})[0][1].startswith("zone 1,0")  # still the user's


def test_names_long_texts_and_what_cannot_be_read_are_left_out(rng):
    notes = [f"2024-01-01 came {row} and said {'much ' * 50}" for row in range(N)]
    columns = {"note": notes, "name": [f"person {row}" for row in range(N)], "x": rng.normal(0, 1, N), "none": [""] * N}
    columns["mixed"] = [str(row) if row % 9 else "about 5" for row in range(N)]
    assert of_table(columns, {"mixed": "ignore"}) == [[], [], []]


def test_numbers_that_are_mostly_zero_are_shares(rng):
    orders = rng.integers(1, 9, N) * (rng.random(N) < np.where(OF == 1, 0.6, 0.2))
    here, everywhere = (orders[OF == 1] > 0).mean(), (orders > 0).mean()
    assert of_table({"orders": orders})[1] == [f"orders ≠ 0 {here:.0%} (all: {everywhere:.0%})"]


def test_columns_are_ranked_by_their_difference_and_four_are_named(rng):
    columns = {f"c{size}": rng.normal(0, 1, N) + size * (OF == 0) for size in (1, 4, 2, 0.7, 3)}
    assert [phrase.split()[0] for phrase in of_table(columns)[0]] == ["c4", "c3", "c2", "c1"]


@pytest.mark.parametrize("size", [8, 20, 50, 200])
def test_what_differs_by_chance_is_not_named(rng, size):
    of = np.full(N, 1)
    of[:size] = 0
    words = rng.random((N, 300)) < rng.choice([0.003, 0.02, 0.3], 300)
    graph = graph_of(from_scipy(csr_array(words.astype("float32"))))
    assert said(graph, of) == [[], []]
    columns = {f"c{column}": rng.normal(0, 1, N) for column in range(30)}
    columns["city"] = [f"city {row}" for row in rng.integers(150, size=N)]
    assert of_table(columns, of=of) == [[], []]


def test_one_group_alone_is_not_apart(rng):
    of = np.zeros(N, dtype=int)
    assert of_table({"x": rng.normal(size=N), "y": rng.choice(["a", "b"], N).tolist()}, of=of) == [[]]


def test_a_group_of_most_nodes_is_compared_with_the_others(rng):
    of = np.where(np.arange(N) < 30, 1, 0)
    age = rng.normal(40, 1, N) + 20 * of
    assert of_table({"age": age}, of=of)[0] == [f"mean age {age[30:].mean():.3g} (all: {age.mean():.3g})"]


def test_the_label_is_compared_among_the_labelled_nodes():
    y = torch.from_numpy(OF.copy())
    y[:300] = -1
    first, second, third = of_table({"x": np.ones(N)}, y=y, label_names=["cat", "dog", "cow"])
    assert (first, second, third) == tuple([f"label = {name} 100% (all: 33%)"] for name in ("cat", "dog", "cow"))


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


def test_features_without_a_table_have_their_names_or_numbers(rng, stored):
    x = rng.normal(100, 10, (N, 5))
    x[OF == 1, 3] += 30
    expected = f"{np.median(x[OF == 1, 3]):.3g} (all: {np.median(x[:, 3]):.3g})"
    graph = graph_of(torch.from_numpy(x).float())
    assert said(graph)[1] == [f"column 3 {expected}"]
    assert said(stored(graph))[1] == [f"column 3 {expected}"]
    graph.feature_names = list("abcde")
    assert said(graph)[1] == [f"d {expected}"]


@pytest.mark.parametrize("on_disk", [False, True])
def test_of_many_numbers_those_of_evenly_spaced_nodes_are_compared(rng, stored, on_disk, monkeypatch):
    x = rng.normal(100, 10, (N, 5))
    x[OF == 1, 3] += 30
    monkeypatch.setattr(attributes, "ENTRIES", N * 5 // 2)
    some, of = x[::2, 3], OF[::2]
    graph = graph_of(torch.from_numpy(x).float())
    expected = f"column 3 {np.median(some[of == 1]):.3g} (all: {np.median(some):.3g})"
    assert said(stored(graph) if on_disk else graph)[1] == [expected]


def test_a_feature_that_is_zero_or_one_is_a_share(rng):
    x = rng.normal(0, 1, (N, 2))
    x[:, 1] = rng.random(N) < np.where(OF == 1, 0.8, 0.2)
    found = said(graph_of(torch.from_numpy(x).float(), feature_names=["size", "plays"]))
    assert found[1] == [f"plays {x[OF == 1, 1].mean():.0%} (all: {x[:, 1].mean():.0%})"]


@pytest.mark.parametrize("form", ["csr", "dense", "stored"])
def test_words_that_differ_are_named_and_numbers_among_them(rng, stored, form, monkeypatch):
    monkeypatch.setattr(attributes, "ROWS", 64)
    bags = (rng.random((N, 400)) < 0.02) * rng.integers(1, 4, (N, 400))
    bags[(OF == 1) & (rng.random(N) < 0.3), 17] = 1
    bags[:, 18] = rng.random(N) < np.where(OF == 1, 0.3, 0.02)
    bags[:, 19] = rng.integers(50, 60, N) + 5 * (OF == 1)
    bags[4, 399] = 1
    graph = graph_of(from_scipy(csr_array(bags.astype("float32"))))
    if form != "csr":
        graph = stored(graph) if form == "stored" else graph_of(torch.from_numpy(bags).float())
    share = [f"{(bags[OF == 1, word] > 0).mean():.0%} (all: {(bags[:, word] > 0).mean():.0%})" for word in (17, 18)]
    number = f"{np.median(bags[OF == 1, 19]):.3g} (all: {np.median(bags[:, 19]):.3g})"
    assert set(said(graph)[1]) == {f"column 17 ≠ 0 {share[0]}", f"column 18 {share[1]}", f"column 19 {number}"}


def test_of_features_that_were_made_from_the_edges_the_degree_is_named(rng, stored):
    hubs = np.flatnonzero(OF == 0)[:20]
    ends = np.stack([np.repeat(hubs, 30), rng.integers(N, size=600)], 1)
    graph = as_graph(ends[ends[:, 0] != ends[:, 1]])
    of = np.where(np.isin(np.arange(graph.num_nodes), hubs), 0, 1)
    degree = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes).double().numpy()
    expected = [f"degree {np.median(degree[of == 0]):.3g} (all: {np.median(degree):.3g})"]
    assert said(graph, of)[0] == expected
    graph.y = torch.full((graph.num_nodes,), -1)
    assert said(stored(graph), of)[0] == expected
