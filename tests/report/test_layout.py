import numpy as np

from costa.report.layout import lay_out, place, unit_rows


def three_groups(n):
    rng = np.random.default_rng(0)
    group = np.arange(n) % 3
    return unit_rows((np.eye(3, 8)[group] + 0.05 * rng.normal(size=(n, 8))).astype(np.float32)), group


def nearest_is_alike(points, group):
    away = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(away, np.inf)
    return (group[away.argmin(1)] == group).mean()


def test_groups_stay_together_and_the_seed_decides():
    unit, group = three_groups(90)
    layout = lay_out(unit, seed=0)
    assert (layout.kind, layout.anchors, layout.points.shape) == ("t-SNE", 90, (90, 2))
    assert nearest_is_alike(layout.points, group) == 1
    np.testing.assert_array_equal(layout.points, lay_out(unit, seed=0).points)


def test_beyond_the_limit_a_sample_is_placed_and_the_rest_beside_it():
    unit, group = three_groups(120)
    layout = lay_out(unit, seed=0, most=60)
    assert (layout.kind, layout.anchors) == ("t-SNE of a sample", 60)
    assert np.isfinite(layout.points).all()
    assert nearest_is_alike(layout.points, group) == 1


def test_a_row_between_two_groups_is_not_put_into_the_void():
    known = np.array([[float(i), 0] for i in range(10)], dtype=np.float32)
    anchors = np.array([[0, 0]] * 7 + [[100, 0]] * 3, dtype=np.float32)
    np.testing.assert_array_equal(place(np.array([[4.5, 0]], dtype=np.float32), known, anchors), [[0, 0]])


def test_few_or_equal_vectors_are_shown_by_principal_components():
    assert lay_out(three_groups(9)[0]).kind == "PCA"
    still = lay_out(np.ones((40, 4), dtype=np.float32) / 2)
    assert still.kind == "PCA"
    assert np.isfinite(still.points).all()
    assert lay_out(np.sign(np.arange(40.0) - 20.5)[:, None].astype(np.float32)).points.shape == (40, 2)


def test_zero_rows_stay_zero():
    np.testing.assert_array_equal(unit_rows(np.array([[0, 0], [3, 4]], np.float32)), np.float32([[0, 0], [0.6, 0.8]]))
