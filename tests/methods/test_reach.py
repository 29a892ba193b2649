"""How far hops look: the rule, graphs whose answer is known, and what the user's settings leave to be chosen."""

from dataclasses import replace

import pytest
import torch

from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.methods.reach import (
    ALL,
    ALMOST,
    APART,
    BEST,
    COLUMNS,
    ENDS,
    ENOUGH,
    FAR,
    MISLED,
    MIXED,
    NEAR,
    NOISE,
    NOTHING,
    OWN,
    PAGERANK,
    choose_hops,
    choose_reach,
    reach,
)
from costa.nn import SparseMatrix
from costa.settings.presets import resolve

METHOD = get_method("costa-sv")
DEFAULT = METHOD.Settings().encoder


def alike(seed=0):
    return planted_partition(300, 5, 24, degree=8, homophily=0.9, signal=3.0, seed=seed)


def unlike(seed=0):
    return planted_partition(400, 5, 24, degree=3, homophily=0.1, signal=3.0, seed=seed)


def number_of_hops(powers, steps):
    return len(powers) + (steps > 0)


# --- the reach ------------------------------------------------------------------------------------------------


LESS, MORE = 0.999, 1.001
"""Just below a margin, and just above."""


@pytest.mark.parametrize(
    ("own", "everything", "ends", "far", "near", "pagerank", "chosen"),
    [
        # the edges mislead, whatever the others are worth
        (0.5, 0.5 * MISLED * LESS, 0.6, 0.6, 0.5, 0.7, OWN),
        (0.5, 0.5 * MISLED * MORE, 0.6, 0.6, 0.5, 0.1, FAR),
        # what X predicts more is noise
        (NOISE * LESS, 0.0, 0.0, 0.0, 0.5, 0.0, APART),
        (NOISE * MORE, 0.0, 0.0, 0.0, 0.5, 0.0, OWN),
        # the edges say nothing of features, or a little
        (0.5, 0.5, 0.5 * NOTHING * LESS, 0.4, 0.5, 0.7, APART),
        (0.5, 0.5, 0.5 * NOTHING * MORE, 0.4, 0.5, 0.3, ALL),
        (0.5, 0.5, 0.4, 0.5 * NOTHING * MORE, 0.5, 0.3, FAR),
        # regions are mixed, or not
        (0.1, 0.5, 0.5, 0.5, 0.5, 0.5 * MIXED * MORE, NEAR),
        (0.1, 0.5, 0.5, 0.5, 0.5, 0.5 * MIXED * LESS, FAR),
        (0.1, 0.5, 0.5, 0.5, 0.5 * BEST * LESS, 0.5 * MIXED * MORE, FAR),
        # the far hops are enough, or not
        (0.1, 0.5, 0.4, 0.5 * ENOUGH * MORE, 0.5, 0.1, FAR),
        (0.1, 0.5, 0.4, 0.5 * ENOUGH * LESS, 0.5, 0.1, ALL),
        (0.1, 0.4, 0.5, 0.5 * ENOUGH * MORE, 0.5, 0.1, FAR),
        (0.1, 0.4, 0.5, 0.5 * ENOUGH * LESS, 0.5, 0.1, ENDS),
        # the neighbours stay, or not
        (0.1, 0.5 * ALMOST * MORE, 0.5, 0.1, 0.5, 0.1, ALL),
        (0.1, 0.5 * ALMOST * LESS, 0.5, 0.1, 0.5, 0.1, ENDS),
        # nothing can be predicted
        (0.0, 0.0, 0.0, 0.0, 0.5, 0.0, ALL),
        (-0.01, -0.02, -0.01, -0.005, 0.5, -0.001, ALL),
    ],
)
def test_what_is_chosen_for_which_scores(own, everything, ends, far, near, pagerank, chosen, monkeypatch):
    assert reach(own, everything, ends, far, near, pagerank) == chosen
    scores = {OWN: own, ALL: everything, ENDS: ends, FAR: far, NEAR: near, PAGERANK: pagerank}

    def held_out_scores(x, candidates, teleport, groups):
        return [scores[each] for each in candidates]

    monkeypatch.setattr("costa.methods.reach.held_out_scores", held_out_scores)
    assert choose_reach(alike(), "none", 0.1) == chosen


def test_without_edges_a_node_has_its_own_features_alone():
    graph = alike()
    graph.edge_index = graph.edge_index[:, :0]
    assert choose_reach(graph, "standard", 0.1) == OWN


@pytest.mark.parametrize("scaling", ["none", "standard"])
@pytest.mark.parametrize("seed", range(3))
def test_edges_between_what_is_alike_are_followed_and_others_are_not(scaling, seed):
    assert choose_reach(alike(seed), scaling, 0.1) == FAR
    assert choose_reach(unlike(seed), scaling, 0.1) == OWN


@pytest.mark.parametrize("seed", range(6))
def test_where_features_say_nothing_of_each_other_something_is_chosen_too(seed):
    noise = planted_partition(300, 3, 12, homophily=1 / 3, signal=0.0, seed=seed)
    assert choose_reach(noise, "standard", 0.1) in (OWN, APART, NEAR, FAR, ALL, ENDS)


@pytest.mark.parametrize(("n", "features"), [(2, 6), (3, 6), (50, 1)])
def test_where_nothing_can_be_said_no_hop_is_left_out(n, features):
    graph = planted_partition(n, 1, features, degree=1, homophily=1.0, seed=0)
    graph.edge_index = torch.tensor([[0, 1], [1, 0]])
    assert choose_reach(graph, "standard", 0.1) == ALL


def test_weights_of_edges_count():
    graph, shuffled = alike(), torch.randperm(300, generator=torch.Generator().manual_seed(0))
    good, bad = graph.edge_index, shuffled[graph.edge_index]
    graph.edge_index = torch.cat([good, bad], 1)
    weight = torch.cat([torch.ones(good.shape[1]), torch.zeros(bad.shape[1])])
    graph.edge_weight = weight
    assert choose_reach(graph, "standard", 0.1) == FAR
    graph.edge_weight = 1 - weight
    assert choose_reach(graph, "standard", 0.1) == OWN


@pytest.mark.parametrize("scaling", ["none", "rows", "standard"])
def test_csr_features_choose_what_dense_ones_do(scaling):
    for dense in (alike(), unlike()):
        dense.x = (dense.x > 1).float()
        sparse = dense.clone()
        sparse.x = SparseMatrix.from_dense(dense.x).a
        assert choose_reach(sparse, scaling, 0.1) == choose_reach(dense, scaling, 0.1)


@pytest.mark.parametrize("make", [alike, unlike])
def test_labels_play_no_part(make):
    graph = make()
    chosen = choose_hops(graph, "standard", DEFAULT)
    other, without = graph.clone(), graph.clone()
    other.y = graph.y.flip(0)
    del without.y
    assert choose_hops(other, "standard", DEFAULT) == chosen
    assert choose_hops(without, "standard", DEFAULT) == chosen


# --- the settings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [0, 100, 256, COLUMNS - 5])
@pytest.mark.parametrize("make", [alike, unlike])
def test_the_codes_have_the_columns_that_the_hops_leave(make, columns):
    graph, encoder = make(), replace(DEFAULT, columns=columns)
    chosen = choose_hops(graph, "standard", encoder)
    powers, steps, width = (chosen[f"encoder.{key}"] for key in ("powers", "steps", "width"))
    assert (powers, steps) == choose_reach(graph, "standard", encoder.teleport)
    hops = number_of_hops(powers, steps)
    assert COLUMNS - hops < width * hops + columns <= COLUMNS
    values = resolve(METHOD, graph, given={"encoder.columns": columns}).values.encoder
    assert (values.powers, values.steps, values.width, values.columns) == (powers, steps, width, columns)


def test_every_reach_has_room_for_a_code(monkeypatch):
    for candidate in (OWN, APART, NEAR, FAR, ALL, ENDS):
        monkeypatch.setattr("costa.methods.reach.choose_reach", lambda *given, chosen=candidate: chosen)
        values = resolve(METHOD, alike(), given={"encoder.columns": COLUMNS - 1}).values.encoder
        assert (values.powers, values.steps) == candidate
        assert values.width >= 1


@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS + 1])
def test_as_many_columns_as_a_vector_has_leave_the_width_alone(columns):
    encoder = replace(DEFAULT, columns=columns)
    assert "encoder.width" not in choose_hops(alike(), "standard", encoder)
    given = {"encoder.columns": columns, "encoder.powers": "1,2"}
    assert resolve(METHOD, alike(), given=given).values.encoder.width == DEFAULT.width


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({"encoder.powers": "0,2"}, ((0, 2), DEFAULT.steps)),
        ({"encoder.steps": 3}, (DEFAULT.powers, 3)),
        ({"encoder.powers": "1", "encoder.steps": 0}, ((1,), 0)),
        ({"encoder.powers": "0,1,2,3,5", "encoder.steps": 2}, ((0, 1, 2, 3, 5), 2)),
        # what is given counts as given if it equals the default, too
        ({"encoder.powers": "4"}, FAR),
        ({"encoder.steps": 10}, FAR),
        ({"encoder.powers": "4", "encoder.steps": 10}, FAR),
    ],
)
@pytest.mark.parametrize("make", [alike, unlike])
def test_the_users_reach_wins_and_the_width_follows_it(make, given, chosen):
    resolved = resolve(METHOD, make(), given=given)
    encoder = resolved.values.encoder
    assert (encoder.powers, encoder.steps) == chosen
    assert encoder.width == (COLUMNS - encoder.columns) // number_of_hops(*chosen)
    assert resolved.origins["encoder.width"] == "graph"
    assert "graph" not in (resolved.origins["encoder.powers"], resolved.origins["encoder.steps"])


def test_the_users_reach_needs_no_scores(monkeypatch):
    def held_out_scores(*given):
        raise AssertionError("nothing is left to choose")

    monkeypatch.setattr("costa.methods.reach.held_out_scores", held_out_scores)
    given = {"encoder.powers"}
    assert choose_hops(alike(), "standard", replace(DEFAULT, powers=(1,)), given).keys() == {"encoder.width"}


def test_the_users_width_wins():
    chosen = choose_reach(unlike(), "standard", DEFAULT.teleport)
    encoder = resolve(METHOD, unlike(), given={"encoder.width": 20}).values.encoder
    assert (encoder.powers, encoder.steps, encoder.width) == (*chosen, 20)


def test_the_users_scaling_is_the_one_that_is_compared(monkeypatch):
    scalings = []
    monkeypatch.setattr(
        "costa.methods.reach.choose_reach", lambda graph, scaling, teleport: scalings.append(scaling) or ALL
    )
    resolve(METHOD, alike(), given={"features.scaling": "none"})
    resolve(METHOD, alike())
    assert scalings == ["none", "standard"]


def test_a_preset_leaves_nothing_to_choose(monkeypatch):
    monkeypatch.setattr("costa.methods.reach.held_out_scores", None)
    graph = alike()
    graph.name = "digits"
    assert resolve(METHOD, graph, preset="tuned").values.encoder.kind != "hops"
