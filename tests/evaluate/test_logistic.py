import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch.nn.functional import cross_entropy, normalize

from costa.evaluate import lbfgs, logistic
from costa.evaluate.lbfgs import Coordinates, SparseCoordinates
from costa.evaluate.logistic import LogisticModels, fit, fit_predict, fit_predict_sklearn
from costa.nn import SparseMatrix

pytestmark = pytest.mark.filterwarnings("error:.*did not converge")
STRENGTHS = [2.0**-10, 2.0**-3, 1.0, 2.0**4, 2.0**10]


def problem(n, d, classes, *, seed=0, signal=1.5):
    """Rows of length one around one centre a class, as float64."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=generator)
    centres = torch.randn(classes, d, generator=generator, dtype=torch.float64)
    noise = torch.randn(n, d, generator=generator, dtype=torch.float64)
    return normalize(signal * centres[y] / d**0.25 + noise + 1), y


def plain_objective(x, y, rows, weight, bias, c):
    """C·Σ loss + ½‖W‖², as the module's first lines have it."""
    return c * cross_entropy(x[rows] @ weight.T + bias, y[rows], reduction="sum") + 0.5 * weight.square().sum()


def objective_of(models: LogisticModels, x, y, fit_on, c):
    return torch.stack(
        [
            torch.stack(
                [
                    plain_objective(x, y, rows, models.weight[t, g], models.bias[t, g], c[t, g])
                    for g in range(c.shape[1])
                ]
            )
            for t, rows in enumerate(fit_on)
        ]
    )


def strengths_for(sets, strengths=STRENGTHS):
    return torch.tensor(strengths, dtype=torch.float64).expand(sets, -1)


def watched(monkeypatch):
    """The models that fit_predict has fitted."""
    models = []
    original = logistic.fit
    monkeypatch.setattr(logistic, "fit", lambda *given, **how: models.append(original(*given, **how)) or models[-1])
    return models


@pytest.mark.parametrize(
    ("rows", "columns"), [(120, 12), (40, 90), (60, 60)], ids=["more rows", "more columns", "square"]
)
def test_the_solution_is_a_stationary_point_of_the_plain_objective(rows, columns):
    x, y = problem(200, columns, 4)
    fit_on = [torch.arange(rows), torch.arange(80, 80 + rows)]
    c = strengths_for(2)
    models = fit(x, y, fit_on, c, tolerance=1e-13)
    for t, part in enumerate(fit_on):
        for g in range(len(STRENGTHS)):
            weight = models.weight[t, g].clone().requires_grad_()
            bias = models.bias[t, g].clone().requires_grad_()
            plain_objective(x, y, part, weight, bias, c[t, g]).backward()
            start = x[part].T @ (torch.eye(4, dtype=torch.float64)[y[part]] - 0.25) * c[t, g]  # −∇ at W = 0
            assert weight.grad.norm() < 1e-5 * start.norm()
            assert bias.grad.norm() < 1e-5 * start.norm()


def test_a_step_that_is_too_long_is_taken_back():
    x, y = problem(300, 20, 5, signal=3.0)  # classes far apart, of which the first steps go too far
    rows, c = torch.arange(100), strengths_for(1, [1024.0])
    models = fit(x, y, [rows], c, tolerance=1e-13)
    weight = models.weight[0, 0].clone().requires_grad_()
    plain_objective(x, y, rows, weight, models.bias[0, 0], c[0, 0]).backward()
    assert weight.grad.norm() < 1e-6 * c[0, 0]


@pytest.mark.parametrize(("rows", "columns"), [(150, 10), (50, 80)], ids=["more rows", "more columns"])
def test_the_objective_reaches_scikit_learns(rows, columns):
    x, y = problem(200, columns, 5)
    fit_on = [torch.arange(rows), torch.arange(30, 200)]
    c = strengths_for(2)
    ours = objective_of(fit(x, y, fit_on, c), x, y, fit_on, c)
    for t, part in enumerate(fit_on):
        for g, strength in enumerate(STRENGTHS):
            model = LogisticRegression(C=strength, tol=1e-8, max_iter=10_000).fit(x[part].numpy(), y[part].numpy())
            weight, bias = torch.from_numpy(model.coef_), torch.from_numpy(model.intercept_)
            reference = plain_objective(x, y, part, weight, bias, strength)
            assert ours[t, g] <= reference * (1 + 1e-4)
            assert ours[t, g] >= reference * (1 - 1e-4)


def test_parameters_equal_scikit_learns_when_solved_tightly():
    x, y = problem(150, 8, 3)
    rows = torch.arange(100)
    models = fit(x, y, [rows], strengths_for(1, [0.1, 30.0]), tolerance=1e-14)
    for g, strength in enumerate([0.1, 30.0]):
        reference = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000).fit(x[rows].numpy(), y[rows].numpy())
        np.testing.assert_allclose(models.weight[0, g].numpy(), reference.coef_, atol=2e-4)
        # A constant added to all intercepts changes nothing.
        bias = models.bias[0, g] - models.bias[0, g].mean()
        np.testing.assert_allclose(bias.numpy(), reference.intercept_ - reference.intercept_.mean(), atol=2e-4)


def test_a_small_strength_is_solved_as_precisely_as_a_large_one():
    """At C = 2⁻³⁴ the loss is all but that of the class frequencies, and W alone tells the nodes apart."""
    x, y = problem(200, 30, 4)
    rows, c = torch.arange(120), strengths_for(1, [2.0**-34, 2.0**-10, 1.0])
    loose, tight = fit(x, y, [rows], c), fit(x, y, [rows], c, tolerance=1e-13)
    error = (loose.weight - tight.weight).norm(dim=(-1, -2)) / tight.weight.norm(dim=(-1, -2))
    assert error.max() < 5e-3


def test_two_classes_are_penalised_as_scikit_learn_does():
    x, y = problem(150, 6, 2, signal=0.5)
    rows = torch.arange(80)
    models = fit(x, y, [rows], strengths_for(1, [0.5, 20.0]), tolerance=1e-14)
    for g, strength in enumerate([0.5, 20.0]):
        reference = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000).fit(x[rows].numpy(), y[rows].numpy())
        difference = models.weight[0, g, 1] - models.weight[0, g, 0]
        np.testing.assert_allclose(difference.numpy(), reference.coef_[0], atol=2e-4)


def test_training_sets_of_unequal_size_do_not_touch_each_other():
    x, y = problem(300, 20, 4)
    fit_on = [torch.arange(30), torch.arange(40, 200), torch.arange(100, 109)]
    c = torch.tensor([[0.01, 4.0], [1.0, 1000.0], [8.0, 0.5]], dtype=torch.float64)
    together = fit(x, y, fit_on, c, tolerance=1e-12)
    for t, part in enumerate(fit_on):
        alone = fit(x, y, [part], c[t : t + 1], tolerance=1e-12)
        torch.testing.assert_close(together.weight[t], alone.weight[0], rtol=1e-4, atol=1e-4)
        # A constant added to all intercepts changes nothing.
        bias, expected = (bias - bias.mean(-1, keepdim=True) for bias in (together.bias[t], alone.bias[0]))
        torch.testing.assert_close(bias, expected, rtol=1e-4, atol=1e-4)


def test_the_rows_that_fill_up_a_training_set_change_no_path():
    x, y = problem(300, 20, 4)
    fit_on = [torch.arange(160), (y[200:] != 0).nonzero().squeeze(1)[:30] + 200]
    c = strengths_for(2, [0.5, 50.0])
    together = fit(x, y, fit_on, c, tolerance=1e-2)
    for t, part in enumerate(fit_on):
        torch.testing.assert_close(together.weight[t], fit(x, y, [part], c[t : t + 1], tolerance=1e-2).weight[0])


@pytest.mark.filterwarnings("error")
def test_degenerate_rows_are_solved():
    x, y = problem(120, 5, 3)
    x = torch.cat([x, x, torch.zeros(120, 2, dtype=x.dtype)], 1)  # rank 5 of 12
    x[:10] = 0
    rows = torch.arange(100)
    c = strengths_for(1)
    ours = objective_of(fit(x, y, [rows], c), x, y, [rows], c)
    constant = fit(x[20].expand(120, -1), y, [torch.arange(37)], c)
    assert constant.weight.abs().max() < 1e-12
    for g, strength in enumerate(STRENGTHS):
        model = LogisticRegression(C=strength, tol=1e-8, max_iter=10_000).fit(x[rows].numpy(), y[rows].numpy())
        reference = plain_objective(
            x, y, rows, torch.from_numpy(model.coef_), torch.from_numpy(model.intercept_), strength
        )
        assert abs(ours[0, g] - reference) <= 1e-4 * reference


def test_one_node_is_enough_for_either_solver():
    x, y = problem(40, 6, 3)
    parts, wanted = [torch.arange(30), torch.tensor([4])], [torch.tensor([35]), torch.tensor([36])]
    for solve in (fit_predict, fit_predict_sklearn):
        found = solve(x, y, parts, wanted, strengths_for(2))
        assert found.shape[-1] == 1
        assert (found[1] == y[4]).all()


def test_an_absent_class_is_never_predicted():
    x, y = problem(300, 6, 4)
    without = (y[:150] != 2).nonzero().squeeze(1)
    one_class = (y == 1).nonzero().squeeze(1)[:7]
    wanted = [torch.arange(150, 300)] * 2
    c = strengths_for(2)
    found = fit_predict(x, y, [without, one_class], wanted, c)
    reference = fit_predict_sklearn(x, y, [without, one_class], wanted, c)
    assert not (found[0] == 2).any()
    assert (found[0] == reference[0]).double().mean() > 0.995
    assert (found[1] == 1).all()
    assert torch.equal(found[1], reference[1])


def test_batches_within_memory_predict_the_same(monkeypatch):
    x, y = problem(300, 10, 3)
    generator = torch.Generator().manual_seed(1)
    orders = [torch.randperm(300, generator=generator) for _ in range(5)]
    fit_on, wanted = [order[:40] for order in orders], [order[40 : 200 + 10 * i] for i, order in enumerate(orders)]
    whole = fit_predict(x, y, fit_on, wanted, strengths_for(5))
    sizes = []
    original = logistic.fit
    monkeypatch.setattr(
        logistic, "fit", lambda x, y, fit_on, c, **how: sizes.append(len(fit_on)) or original(x, y, fit_on, c, **how)
    )
    monkeypatch.setattr(logistic, "MEMORY", 20_000)
    parts = fit_predict(x, y, fit_on, wanted, strengths_for(5))
    assert len(sizes) > 1
    assert sum(sizes) == 5
    for one, other in zip(whole, parts, strict=True):
        assert one.shape == other.shape
        assert (one == other).double().mean() > 0.999


@pytest.mark.parametrize("columns", [10, 120], ids=["more rows", "more columns"])
def test_several_embeddings_are_fitted_in_every_training_set(columns):
    x, y = problem(200, columns, 3)
    other = problem(200, columns, 3, seed=5)[0]
    fit_on, wanted = [torch.arange(40), torch.arange(30, 90)], [torch.arange(100, 140), torch.arange(150, 200)]
    c = torch.tensor([[[0.1, 9.0], [2.0, 30.0]], [[1.0, 0.5], [64.0, 8.0]]])
    found = fit_predict(torch.stack([x, other]), y, fit_on, wanted, c)
    assert found.shape == (2, 2, 2, 50)
    assert torch.equal(found[0], fit_predict(x, y, fit_on, wanted, c[0]))
    assert torch.equal(found[1], fit_predict(other, y, fit_on, wanted, c[1]))
    assert torch.equal(found, fit_predict_sklearn(torch.stack([x, other]), y, fit_on, wanted, c))
    assert torch.equal(found[:, 0] == -1, (torch.arange(50) >= 40).expand(2, 2, -1))
    for solve in (fit_predict, fit_predict_sklearn):
        pairs = solve(torch.stack([x, other]), y, fit_on, wanted, torch.stack([c[1, 0], c[0, 1]]), within=[1, 0])
        assert torch.equal(pairs, torch.stack([found[1, 0], found[0, 1]]))


def test_rows_without_a_class_take_no_part(monkeypatch):
    x, y = problem(200, 10, 3)
    hidden = torch.arange(200) >= 150
    wild = torch.where(hidden[:, None], 1e3 * x.flip(1), x)
    fit_on, wanted, c = [torch.arange(60)], [torch.arange(60, 150)], strengths_for(1)
    models = watched(monkeypatch)
    found = fit_predict(wild, y.masked_fill(hidden, -1), fit_on, wanted, c)
    assert torch.equal(found, fit_predict(x[:150], y[:150], fit_on, wanted, c))
    torch.testing.assert_close(models[0].weight, models[1].weight)


def test_the_shared_eigenbasis_saves_passes(monkeypatch):
    x, y = problem(400, 30, 4)
    mix = torch.linalg.qr(torch.randn(30, 30, generator=torch.Generator().manual_seed(1), dtype=x.dtype)).Q
    mixed = (x * torch.logspace(0, -1, 30, dtype=x.dtype)) @ mix
    models = watched(monkeypatch)
    arguments = (mixed, y, [torch.arange(60), torch.arange(200, 260)], [torch.arange(300, 400)] * 2, strengths_for(2))
    turned = fit_predict(*arguments)
    monkeypatch.setattr(logistic, "_rotated", lambda x, known: x)
    assert torch.equal(turned, fit_predict(*arguments))
    assert models[0].iterations < 0.9 * models[1].iterations


def test_a_batch_takes_an_eighth_of_the_free_memory_on_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2**36, 2**37))
    assert logistic._memory(torch.device("cuda")) == 2**36 // 8 // 8
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2**10, 2**37))
    assert logistic._memory(torch.device("cuda")) == logistic._memory(torch.device("cpu")) == logistic.MEMORY


def test_float32_rows_are_solved_in_float64():
    x, y = problem(100, 6, 3)
    models = fit(x.float(), y, [torch.arange(60)], strengths_for(1))
    assert models.weight.dtype == torch.float64
    reference = fit(x.float().double(), y, [torch.arange(60)], strengths_for(1))
    torch.testing.assert_close(models.weight, reference.weight)


def test_what_has_not_converged_is_said(monkeypatch):
    monkeypatch.setattr(lbfgs, "MAX_ITERATIONS", 2)
    x, y = problem(100, 30, 3)
    with pytest.warns(RuntimeWarning, match="did not converge in 2 iterations"):
        fit(x, y, [torch.arange(60)], strengths_for(1, [1e-6, 1024.0]))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_agrees_with_the_cpu():
    x, y = problem(2000, 64, 6)
    orders = [torch.randperm(2000, generator=torch.Generator().manual_seed(r)) for r in range(4)]
    fit_on, wanted = [order[:200] for order in orders], [order[200:] for order in orders]
    host = fit_predict(x, y, fit_on, wanted, strengths_for(4))
    device = fit_predict(x.cuda(), y.cuda(), fit_on, wanted, strengths_for(4))
    assert all((a == b.cpu()).double().mean() > 0.999 for a, b in zip(host, device, strict=True))


def agreement(x, y, fit_on, wanted, strengths):
    """Torch's accuracy minus scikit-learn's in points, splits × strengths."""
    c = strengths_for(len(fit_on), strengths)
    points = [
        torch.stack([100 * (found == y[rows]).double().mean(-1) for found, rows in zip(predicted, wanted, strict=True)])
        for predicted in (fit_predict(x, y, fit_on, wanted, c), fit_predict_sklearn(x, y, fit_on, wanted, c))
    ]
    return points[0] - points[1]


def ten_percent_splits(n):
    orders = [torch.randperm(n, generator=torch.Generator().manual_seed(r)) for r in range(20)]
    return [order[: n // 10] for order in orders], [order[n // 5 :] for order in orders]


def test_predictions_agree_with_scikit_learn():
    x, y = problem(1500, 32, 6, signal=1.0)
    difference = agreement(x, y, *ten_percent_splits(1500), [2.0**-10, 1.0, 32.0, 1024.0])
    assert difference.abs().max() <= 0.3
    assert difference.mean(0).abs().max() <= 0.1


def test_predictions_agree_with_scikit_learn_on_cora(data_dir):
    """Z = ÂÂXW with a random W: an untrained encoder without its activation."""
    from torch_geometric.io import read_planetoid_data
    from torch_geometric.utils import add_self_loops, to_dense_adj

    folder = data_dir / "Cora" / "raw"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    graph = read_planetoid_data(str(folder), "cora")
    adjacency = to_dense_adj(add_self_loops(graph.edge_index)[0], max_num_nodes=graph.num_nodes)[0].double()
    root = adjacency.sum(1).rsqrt()
    adjacency = root[:, None] * adjacency * root
    weight = torch.randn(1433, 128, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    z = normalize(adjacency @ (adjacency @ (graph.x.to_dense().double() @ weight)))
    difference = agreement(z, graph.y, *ten_percent_splits(graph.num_nodes), [2.0**-5, 4.0, 1024.0])
    assert difference.abs().max() <= 0.3
    assert difference.mean(0).abs().max() <= 0.1


def sparse_problem(n=240, d=50, classes=4, seed=0):
    """Rows of length one of which about a tenth is not zero, as float64, dense and CSR."""
    x, y = problem(n, d, classes, seed=seed)
    kept = torch.rand(n, d, generator=torch.Generator().manual_seed(seed)) < 0.12
    x = normalize(x * kept)
    return x, SparseMatrix.from_dense(x).a, y


def test_sparse_coordinates_are_the_centred_rows_written_out():
    x, sparse, _ = sparse_problem(30, 12)
    written, implicit = Coordinates.of(x[None], torch.ones(1, 30, dtype=torch.bool)), SparseCoordinates(sparse)
    w, p = torch.randn(1, 5, 13, dtype=torch.float64), torch.randn(1, 5, 30, dtype=torch.float64)
    for name in ("values", "mean", "real"):
        torch.testing.assert_close(getattr(implicit, name).view(-1), getattr(written, name).view(-1))
    torch.testing.assert_close(implicit.along(w), written.along(w))
    torch.testing.assert_close(implicit.of_rows(p), written.of_rows(p))


@pytest.mark.parametrize("memory", [logistic.MEMORY, 1], ids=["at once", "piece by piece"])
def test_sparse_embeddings_predict_what_dense_ones_do(monkeypatch, memory):
    monkeypatch.setattr(logistic, "MEMORY", memory)
    x, sparse, y = sparse_problem()
    y[200:] = -1
    train = [torch.arange(60), torch.arange(30, 110)]
    wanted = [torch.arange(110, 240), torch.arange(120, 200)]
    c = strengths_for(2)
    expected = fit_predict(x[None], y, train, wanted, c[None])
    ours = fit_predict([sparse], y, train, wanted, c[None])
    assert ours.shape == expected.shape == (1, 2, 5, 130)
    assert (ours == expected).double().mean() > 0.998  # a tie may fall either way
    assert torch.equal(ours < 0, expected < 0)
    reference = fit_predict_sklearn([sparse], y, train, wanted, c[None])
    assert (ours == reference).double().mean() > 0.998


def test_a_class_without_a_row_and_a_pair_of_classes_are_as_in_dense_embeddings():
    x, sparse, y = sparse_problem(classes=3)
    train = [torch.where(y[:80] < 2)[0], torch.where(y[:80] == 1)[0]]
    wanted = [torch.arange(80, 240)] * 2
    ours, expected = (fit_predict(each, y, train, wanted, strengths_for(2)[None]) for each in ([sparse], x[None]))
    assert (ours == expected).double().mean() > 0.998
    assert ours[0, 0].max() < 2
    assert (ours[0, 1] == 1).all()


def test_each_training_set_may_have_a_sparse_embedding_of_its_own():
    (x, sparse, y), (x2, sparse2, _) = sparse_problem(), sparse_problem(seed=1)
    train, wanted, c = [torch.arange(60), torch.arange(60, 120)], [torch.arange(120, 240)] * 2, strengths_for(2)
    ours = fit_predict([sparse, sparse2], y, train, wanted, c, within=[1, 0])
    expected = fit_predict(torch.stack([x, x2]), y, train, wanted, c, within=[1, 0])
    assert (ours == expected).double().mean() > 0.998
