import numpy as np
import pytest

from costa.evaluate.profiles import profiles


@pytest.fixture
def planted():
    """Two clusters of 50 and one of 4; the columns a, b and c differ between the first two, noise does not."""
    rng = np.random.default_rng(0)
    cluster = np.repeat([0, 1, 2], [50, 50, 4])
    unit = np.eye(3)[cluster] + 0.2 * rng.normal(size=(104, 3))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    columns = {
        "noise": rng.normal(size=104),
        "a": np.where(cluster == 0, 30.0, 50.0) + rng.normal(size=104),
        "b": [("pro" if i % 10 else "") if cluster[i] == 1 else "basic" for i in range(104)],
        "c": np.where(rng.random(104) < 0.3, np.nan, cluster + 2 * rng.random(104)),
    }
    return unit.astype(np.float32), cluster, columns


def test_sizes_and_typical_nodes(planted):
    unit, cluster, columns = planted
    found = profiles(unit, cluster, columns)
    assert [(profile.cluster, profile.size) for profile in found] == [(0, 50), (1, 50), (2, 4)]
    for profile in found:
        inside = np.flatnonzero(cluster == profile.cluster)
        cosine = unit[inside] @ unit[inside].mean(0)
        assert profile.typical == inside[np.argsort(-cosine)[:3]].tolist()


def test_the_columns_that_differ_set_a_cluster_apart(planted):
    unit, cluster, columns = planted
    first, second, small = profiles(unit, cluster, columns)
    assert [trait.column for trait in first.traits] == ["a", "b", "c"]
    a = first.traits[0]
    assert (a.value, a.delta) == (None, -1)
    assert a.inside == np.median(columns["a"][:50])
    assert a.outside == np.median(columns["a"][50:])
    b = second.traits[0]
    assert (b.column, b.value, b.inside, b.outside) == ("b", "basic", 0, 1)
    assert all(trait.column != "noise" for profile in (first, second, small) for trait in profile.traits)


def test_delta_is_that_of_all_pairs():
    rng = np.random.default_rng(1)
    x, cluster = rng.integers(5, size=80).astype(float), rng.integers(2, size=80)
    x[cluster == 1] += 2
    pairs = np.sign(x[cluster == 1][:, None] - x[cluster == 0])
    _, second = profiles(np.ones((80, 1), np.float32), cluster, {"x": x})
    assert second.traits[0].delta == pytest.approx(pairs.mean())
    _, classes = profiles(np.ones((80, 1), np.float32), cluster, {"x": [str(value > 2) for value in x]})
    pairs = np.sign((x > 2)[cluster == 1][:, None].astype(int) - (x > 2)[cluster == 0])
    assert abs(classes.traits[0].delta) == pytest.approx(abs(pairs.mean()))


def test_few_nodes_that_differ_by_chance_say_nothing():
    x = np.r_[np.zeros(40), 1.0]
    cluster = np.r_[np.zeros(40, int), 1]
    assert [profile.traits for profile in profiles(np.ones((41, 1), np.float32), cluster, {"x": x})] == [[], []]


def test_one_cluster_alone_is_not_apart():
    (only,) = profiles(np.ones((5, 1), np.float32), np.zeros(5, int), {"x": np.arange(5.0), "y": list("aabbb")})
    assert (only.size, only.traits) == (5, [])


def test_a_column_without_values_says_nothing():
    nothing = {"x": np.full(6, np.nan), "y": [""] * 6}
    found = profiles(np.ones((6, 1), np.float32), np.repeat([0, 1], 3), nothing)
    assert [profile.traits for profile in found] == [[], []]
