import pytest
import torch

from costa.errors import InputError
from costa.nn import FeatureScaling, SparseMatrix, choose_scaling

X = torch.tensor([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0], [2.0, -6.0, 0.0]])


def scaled(kind, x=X):
    scaling = FeatureScaling(kind, x.size(1))
    scaling.fit(x)
    return scaling(x)


def test_none_leaves_the_features_alone():
    assert scaled("none") is X


def test_rows_sum_to_one_and_zero_rows_stay():
    torch.testing.assert_close(scaled("rows").abs().sum(1), torch.tensor([1.0, 0.0, 1.0]))


def test_standard_centres_and_scales_and_a_constant_column_is_zero():
    z = scaled("standard")
    torch.testing.assert_close(z.mean(0), torch.zeros(3), atol=1e-6, rtol=0)
    torch.testing.assert_close(z.std(0, correction=0), torch.tensor([1.0, 1.0, 0.0]))


def test_a_new_graph_is_scaled_by_what_was_learned():
    scaling = FeatureScaling("standard", 3)
    scaling.fit(X)
    fresh = FeatureScaling("standard", 3)
    fresh.load_state_dict(scaling.state_dict())
    torch.testing.assert_close(fresh(X[:1] + 5), (X[:1] + 5 - X.mean(0)) / scaling.std)


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (X, "standard"),
        (X.abs(), "rows"),
        (X.abs() / 6, "none"),
        ((X > 0).float(), "none"),
        (torch.tensor([[31.0, 1.7], [40.0, 1.8]]), "standard"),
        (torch.tensor([[0.0, 2.0], [0.0, 3.0]]), "standard"),  # half of it 0
    ],
)
def test_auto_goes_by_the_range_of_the_values(x, kind):
    assert choose_scaling(x) == kind

    assert choose_scaling(SparseMatrix.from_dense(x).a) == kind


def test_a_csr_without_a_value_is_left_alone():
    assert choose_scaling(SparseMatrix.from_dense(torch.zeros(2, 3)).a) == "none"


@pytest.mark.parametrize("kind", ["none", "rows", "standard"])
def test_a_csr_gives_what_the_dense_features_give(kind):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(30, 8, generator=generator, dtype=torch.float64) + 2
    x *= torch.rand(30, 8, generator=generator) < 0.3
    x[4], x[:, 2], x[:, 3] = 0, 0, 5
    sparse = SparseMatrix.from_dense(x).a
    of_dense, of_sparse = FeatureScaling(kind, 8).double(), FeatureScaling(kind, 8).double()
    of_dense.fit(x)
    of_sparse.fit(sparse)
    for name, value in of_dense.state_dict().items():
        torch.testing.assert_close(of_sparse.state_dict()[name], value)
    scaled = of_sparse(sparse)
    assert isinstance(scaled, SparseMatrix)
    assert scaled.density < 0.5
    torch.testing.assert_close(scaled.to_dense(), of_dense(x))


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match="choose none, rows or standard"):
        FeatureScaling("auto", 3)
