"""Hops: what is propagated, the codes in float64 with their gradient, what is fitted, and the vectors."""

import pytest
import torch
import torch.nn.functional as F

from costa.graphs.synthetic import planted_partition
from costa.nn import Adjacency, Hops
from costa.nn.hops import ALIKE, DOUBT, propagate

N, D, WIDTH = 40, 7, 5


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def make_blocks(n=N, hops=3, seed=0):
    return [torch.randn(n, D, generator=generator(seed + 10 * place)) for place in range(hops + 1)]


def make(columns=6, **values):
    return Hops(D, WIDTH, **{"powers": (1, 4), "steps": 2, "columns": columns, "generator": generator()} | values)


def fitted(blocks, smoothness=ALIKE, **values):
    """An encoder whose every weight and buffer is other than it starts."""
    encoder = make(**values)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator(5)))
    encoder.fit(blocks, smoothness)
    encoder.settle(blocks)
    return encoder


# --- what is propagated ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("powers", [(1,), (1, 4), (4, 0, 2)])
@pytest.mark.parametrize("steps", [0, 3])
def test_hops_are_powers_of_the_adjacency_and_pagerank(weighted, powers, steps):
    graph = planted_partition(30, 3, 4, seed=0)
    lower = torch.rand(30, 30, generator=generator(), dtype=torch.float64)
    weight = (lower + lower.T)[tuple(graph.edge_index)] if weighted else None
    a = torch.zeros(30, 30, dtype=torch.float64)
    a[tuple(graph.edge_index)] = 1.0 if weight is None else weight
    a += torch.eye(30)
    degree = a.sum(1)
    a = a / (degree[:, None] * degree).sqrt()

    x, *hops = propagate(
        graph.x,
        Adjacency(graph.edge_index, 30, None if weight is None else weight.float()).normalized(),
        powers,
        steps,
        0.2,
    )
    assert x is graph.x
    dense = x.double()
    expected = [torch.linalg.matrix_power(a, power) @ dense for power in powers]
    if steps:
        walk = dense
        for _ in range(steps):
            walk = 0.8 * a @ walk + 0.2 * dense
        expected.append(walk)
    assert len(hops) == len(expected)
    for ours, twin in zip(hops, expected, strict=True):
        torch.testing.assert_close(ours.double(), twin, rtol=1e-4, atol=1e-5)


# --- the codes ------------------------------------------------------------------------------------------------


def plain_codes(encoder, blocks, mask=None, training=True):
    """C_b = σ(norm(s_b B_b W_b + b)) in float64, with PReLU and BatchNorm written out."""
    codes = []
    for layer, block, scale in zip(encoder.layers, blocks[1:], encoder.scale.double(), strict=True):
        block = block.double() * scale * (1 if mask is None else mask.double())
        h = block @ layer.weight.double() + layer.bias.double()
        if layer.norm is not None:
            mean = h.mean(0) if training else layer.norm.running_mean.double()
            variance = h.var(0, correction=0) if training else layer.norm.running_var.double()
            h = (h - mean) / (variance + layer.norm.eps).sqrt() * layer.norm.weight.double() + layer.norm.bias.double()
        slope = layer.activation.weight.double()
        codes.append(torch.where(h > 0, h, slope * h))
    return codes


@pytest.mark.parametrize("norm", ["batch", "none"])
@pytest.mark.parametrize("masked", [False, True])
def test_h_and_its_gradient_are_those_of_the_formula(norm, masked):
    blocks = make_blocks()
    encoder = fitted(blocks, norm=norm)
    mask = torch.tensor([1.0, 0, 1, 1, 0, 1, 1]) if masked else None
    kept = torch.tensor([1.0, 0.0, 1.0])
    ours = encoder(blocks, mask, kept)
    codes = plain_codes(encoder, blocks, mask)
    twin = torch.cat([code * share for code, share in zip(codes, kept, strict=True)], 1)
    torch.testing.assert_close(ours.double(), twin, rtol=1e-4, atol=1e-5)

    slopes = torch.randn(twin.shape, generator=generator(3), dtype=torch.float64)
    parameters = list(encoder.parameters())
    gradients = torch.autograd.grad((ours * slopes.float()).sum(), parameters)
    for gradient, exact in zip(gradients, torch.autograd.grad((twin * slopes).sum(), parameters), strict=True):
        torch.testing.assert_close(gradient, exact, rtol=1e-3, atol=1e-4)


def test_what_is_masked_changes_nothing_and_the_rest_does():
    blocks = make_blocks()
    encoder, mask = fitted(blocks), torch.ones(D)
    mask[[1, 4]] = 0
    before = encoder(blocks, mask)
    hidden = [block.clone() for block in blocks]
    for block in hidden:
        block[:, [1, 4]] += 3.0 * torch.randn(N, 2, generator=generator(9))
    assert torch.equal(encoder(hidden, mask), before)
    assert not torch.allclose(encoder(hidden), encoder(blocks))


def test_a_hop_that_is_left_out_has_a_zero_code():
    blocks = make_blocks()
    encoder = fitted(blocks)
    all_of_it = encoder(blocks).reshape(N, 3, WIDTH)
    without = encoder(blocks, kept=torch.tensor([1.0, 0.0, 2.0])).reshape(N, 3, WIDTH)
    assert torch.equal(without[:, 0], all_of_it[:, 0])
    assert (without[:, 1] == 0).all()
    assert torch.equal(without[:, 2], 2 * all_of_it[:, 2])


def test_linear_layers_have_neither_activation_nor_norm():
    blocks = make_blocks()
    encoder = fitted(blocks, linear=True)
    expected = [
        scale * block @ layer.weight + layer.bias
        for layer, block, scale in zip(encoder.layers, blocks[1:], encoder.scale, strict=True)
    ]
    torch.testing.assert_close(encoder(blocks), torch.cat(expected, 1), rtol=1e-4, atol=1e-5)


# --- what is fitted -------------------------------------------------------------------------------------------


def test_every_hop_is_scaled_to_a_deviation_of_one():
    blocks = make_blocks()
    blocks[2] *= 100
    blocks[3] = torch.full((N, D), 3.0)  # it has none
    encoder = make()
    encoder.fit(blocks, ALIKE)
    expected = [1 / block.double().std(correction=0) for block in blocks[1:3]]
    torch.testing.assert_close(encoder.scale.double(), torch.tensor([*expected, 1.0]), rtol=1e-5, atol=0)


def test_shares_depend_on_whether_edges_join_what_is_alike():
    blocks, encoder = make_blocks(), make()
    encoder.fit(blocks, ALIKE)
    torch.testing.assert_close(encoder.shares, torch.tensor([1.0, 0.5, 0.5, 0.5, 0.5]))
    encoder.fit(blocks, ALIKE - 0.01)
    torch.testing.assert_close(encoder.shares, torch.tensor([DOUBT, 1.0, 0.0, 0.0, 0.0]))


def test_v_are_the_leading_directions_of_the_hops_side_by_side():
    blocks, encoder = make_blocks(), make(columns=4)
    encoder.fit(blocks, ALIKE)
    side_by_side = torch.cat([0.5 * F.normalize(block.double()) for block in blocks], 1)
    exact = torch.linalg.svd(side_by_side).Vh[:4].T
    projection = encoder.basis.double() @ encoder.basis.double().T
    torch.testing.assert_close(projection, exact @ exact.T, rtol=0, atol=1e-2)


def test_settling_gives_the_moments_of_all_rows():
    blocks = make_blocks()
    encoder = fitted(blocks)
    encoder([block[:10] for block in blocks])  # a step of training, which moves the running averages
    encoder.settle(blocks)
    for layer, block, scale in zip(encoder.layers, blocks[1:], encoder.scale, strict=True):
        hidden = (scale * block).double() @ layer.weight.double() + layer.bias.double()
        torch.testing.assert_close(layer.norm.running_mean.double(), hidden.mean(0), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(layer.norm.running_var.double(), hidden.var(0, correction=0), rtol=1e-4, atol=1e-5)
    means = [code.mean(0) for code in plain_codes(encoder, blocks, training=False)]
    torch.testing.assert_close(encoder.mean.double(), torch.stack(means), rtol=1e-4, atol=1e-5)
    assert encoder.training


def test_another_seed_takes_over_what_is_fitted_but_no_weight():
    blocks = make_blocks()
    one, other = fitted(blocks), make(generator=generator(1))
    other.take_over(one)
    for name in ("scale", "shares", "basis"):
        assert torch.equal(getattr(other, name), getattr(one, name)), name
    assert not torch.equal(other.layers[0].weight, one.layers[0].weight)


# --- the vectors ----------------------------------------------------------------------------------------------


def plain_vectors(encoder, blocks, weight):
    """z of the module's docstring, in float64."""
    a, *v = encoder.shares.double()
    m = len(encoder.layers)
    parts = [
        a * F.normalize(code - mean.double()) / m**0.5 * (block != 0).any(1, keepdim=True)
        for code, mean, block in zip(
            plain_codes(encoder, blocks, training=False), encoder.mean, blocks[1:], strict=True
        )
    ]
    hops = torch.cat([share * F.normalize(block.double()) for share, block in zip(v, blocks, strict=True)], 1)
    return torch.cat([*parts, weight * hops @ encoder.basis.double()], 1)


@pytest.mark.parametrize("smoothness", [ALIKE, 0.0], ids=["alike", "by chance"])
@pytest.mark.parametrize("columns", [0, 6])
@pytest.mark.parametrize("new", [False, True])
def test_vectors_are_those_of_the_formula(smoothness, columns, new):
    """On a new graph too, with what was fitted to the first."""
    blocks = make_blocks()
    encoder = fitted(blocks, smoothness, columns=columns, weight=1.5)
    kept = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    given = make_blocks(n=17, seed=3) if new else blocks
    z = encoder.vectors(given)
    assert z.shape == (len(given[0]), encoder.vector_width) == (len(given[0]), 3 * WIDTH + columns)
    torch.testing.assert_close(z.double(), plain_vectors(encoder, given, 1.5).detach(), rtol=1e-4, atol=1e-5)
    assert all(torch.equal(tensor, kept[name]) for name, tensor in encoder.state_dict().items())
    assert encoder.training
    assert not z.requires_grad


def test_no_block_drowns_another():
    """Where edges join what is alike, all codes together have length 1, and all columns together the weight."""
    blocks = make_blocks()
    encoder = fitted(blocks, columns=4 * D, weight=1.2)
    z = encoder.vectors(blocks)
    torch.testing.assert_close(z[:, : 3 * WIDTH].norm(dim=1), torch.ones(N))
    torch.testing.assert_close(z[:, 3 * WIDTH :].norm(dim=1), torch.full((N,), 1.2), rtol=1e-3, atol=0)


def test_a_node_without_anything_is_zero():
    blocks = make_blocks()
    for block in blocks:
        block[5] = 0
    blocks[2][6] = 0  # one hop alone
    z = fitted(blocks).vectors(blocks)
    assert (z[5] == 0).all()
    assert (z[6, WIDTH : 2 * WIDTH] == 0).all()
    assert (z[6, :WIDTH] != 0).any()


def test_rows_in_parts_are_the_rows_at_once(monkeypatch):
    blocks = make_blocks()
    encoder = fitted(blocks)
    whole = encoder.vectors(blocks)
    monkeypatch.setattr("costa.nn.hops.ROWS", 7)
    torch.testing.assert_close(encoder.vectors(blocks), whole, rtol=1e-5, atol=1e-6)


def test_there_are_never_more_columns_than_hops_have():
    encoder = make(columns=1000)
    assert encoder.vector_width == 3 * WIDTH + 4 * D
    assert (make(columns=0).vector_width, encoder.out_features) == (3 * WIDTH, 3 * WIDTH)


def test_fewer_rows_than_columns_are_no_problem():
    blocks = make_blocks(n=3)
    z = fitted(blocks, columns=20).vectors(blocks)
    assert z.isfinite().all()
    assert z.shape == (3, 3 * WIDTH + 20)
