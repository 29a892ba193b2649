"""Hops: what is propagated, the codes in float64 with their gradient, what is fitted, and the vectors."""

import pytest
import torch
import torch.nn.functional as F

from costa.graphs.hop_files import Halves
from costa.graphs.synthetic import planted_partition
from costa.nn import Adjacency, Hops
from costa.nn.hops import OWN, block_weights, propagate, side_by_side

N, D, WIDTH = 40, 7, 5


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def make_blocks(n=N, hops=3, seed=0):
    return [torch.randn(n, D, generator=generator(seed + 10 * place)) for place in range(hops)]


def make(columns=6, **values):
    return Hops(D, WIDTH, **{"powers": (1, 4), "steps": 2, "columns": columns, "generator": generator()} | values)


def fitted(blocks, **values):
    """An encoder whose every weight and buffer is other than it starts."""
    encoder = make(**values)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator(5)))
    encoder.fit(blocks)
    encoder.settle(blocks)
    return encoder


# --- what is propagated ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("powers", "steps"), [((0,), 0), ((1,), 3), ((1, 4), 0), ((4, 0, 2), 0), ((4, 0, 2), 3), ((), 3)]
)
def test_hops_are_powers_of_the_adjacency_and_pagerank(weighted, powers, steps):
    """Those that were asked for, in that order, and no other."""
    graph = planted_partition(30, 3, 4, seed=0)
    lower = torch.rand(30, 30, generator=generator(), dtype=torch.float64)
    weight = (lower + lower.T)[tuple(graph.edge_index)] if weighted else None
    a = torch.zeros(30, 30, dtype=torch.float64)
    a[tuple(graph.edge_index)] = 1.0 if weight is None else weight
    a += torch.eye(30)
    degree = a.sum(1)
    a = a / (degree[:, None] * degree).sqrt()

    adjacency = Adjacency(graph.edge_index, 30, None if weight is None else weight.float()).normalized()
    hops = propagate(graph.x, adjacency, powers, steps, 0.2)
    assert [power for power, hop in zip(powers, hops, strict=False) if hop is graph.x] == [0] * (0 in powers)
    dense = graph.x.double()
    expected = [torch.linalg.matrix_power(a, power) @ dense for power in powers]
    if steps:
        walk = dense
        for _ in range(steps):
            walk = 0.8 * a @ walk + 0.2 * dense
        expected.append(walk)
    assert len(hops) == len(expected)
    for ours, twin in zip(hops, expected, strict=True):
        torch.testing.assert_close(ours.double(), twin, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("edges", [[], [[0, 1]], [[0, 1], [1, 2]]])
def test_a_node_without_edges_has_its_own_features_in_every_hop(edges):
    both = torch.tensor([*edges, *([b, a] for a, b in edges)], dtype=torch.long).reshape(-1, 2).T
    adjacency = Adjacency(both, 5).normalized()
    x = torch.randn(5, D, generator=generator())
    for hop in propagate(x, adjacency, (1, 4), 3, 0.2):
        alone = [node for node in range(5) if node not in both]
        torch.testing.assert_close(hop[alone], x[alone])
        assert all(not torch.allclose(hop[node], x[node]) for node in both.unique().tolist())


# --- the weights of the hops ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("powers", "steps", "ratios"),
    [
        ((0,), 0, [1.0]),
        ((), 3, [1.0]),
        ((4,), 3, [1.0, 1.0]),
        ((1, 2, 4), 0, [1.0, 1.0, 1.0]),
        ((0, 1), 0, [OWN, 1.0]),
        ((4, 0), 10, [1.0, OWN, 1.0]),
    ],
)
def test_weights_are_equal_but_that_of_the_features_and_their_squares_sum_to_one(powers, steps, ratios):
    ratios = torch.tensor(ratios, dtype=torch.float64)
    weights = block_weights(powers, steps)
    torch.testing.assert_close(weights.double(), ratios / ratios.square().sum().sqrt(), rtol=1e-6, atol=0)
    assert torch.equal(make(powers=powers, steps=steps).weights, weights)


def test_the_weight_of_the_features_may_be_another():
    torch.testing.assert_close(block_weights((1, 0), 0, own=0.75), torch.tensor([0.8, 0.6]))


def test_side_by_side_are_unit_rows_times_their_weights():
    blocks = make_blocks()
    blocks[1][5] = 0  # which stays zero
    weights = torch.tensor([0.5, 1.0, 2.0])
    expected = []
    for v, block in zip(weights.double(), blocks, strict=True):
        length = block.double().square().sum(1, keepdim=True).sqrt()
        expected.append(v * block.double() / length.where(length > 0, 1))
    torch.testing.assert_close(side_by_side(blocks, weights).double(), torch.cat(expected, 1), rtol=1e-5, atol=1e-6)


# --- the codes ------------------------------------------------------------------------------------------------


def plain_codes(encoder, blocks, mask=None, training=True):
    """C_b = σ(norm(s_b B_b W_b + b)) in float64, with PReLU and BatchNorm written out."""
    codes = []
    for layer, block, scale in zip(encoder.layers, blocks, encoder.scale.double(), strict=True):
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
        for layer, block, scale in zip(encoder.layers, blocks, encoder.scale, strict=True)
    ]
    torch.testing.assert_close(encoder(blocks), torch.cat(expected, 1), rtol=1e-4, atol=1e-5)


# --- what is fitted -------------------------------------------------------------------------------------------


def test_every_hop_is_scaled_to_a_deviation_of_one():
    blocks = make_blocks()
    blocks[1] *= 100
    blocks[2] = torch.full((N, D), 3.0)  # it has none
    encoder = make()
    encoder.fit(blocks)
    expected = [1 / block.double().std(correction=0) for block in blocks[:2]]
    torch.testing.assert_close(encoder.scale.double(), torch.tensor([*expected, 1.0]), rtol=1e-5, atol=0)


def plain_side_by_side(encoder, blocks):
    """(v_1·u(B_1), … v_m·u(B_m)) in float64."""
    v = torch.tensor([OWN if power == 0 else 1.0 for power in encoder.powers] + [1.0] * (encoder.steps > 0))
    v = v.double() / v.double().square().sum().sqrt()
    return torch.cat([weight * F.normalize(block.double()) for weight, block in zip(v, blocks, strict=True)], 1)


@pytest.mark.parametrize("powers", [(1, 4), (0, 1)])
def test_v_are_the_leading_directions_of_the_hops_side_by_side(powers):
    blocks, encoder = make_blocks(), make(columns=4, powers=powers)
    encoder.fit(blocks)
    exact = torch.linalg.svd(plain_side_by_side(encoder, blocks)).Vh[:4].T
    projection = encoder.basis.double() @ encoder.basis.double().T
    torch.testing.assert_close(projection, exact @ exact.T, rtol=0, atol=1e-2)


def test_of_many_rows_v_is_fitted_to_some_evenly_spaced(monkeypatch):
    blocks, whole, part = make_blocks(), make(columns=4), make(columns=4)
    part.fit([block[::3] for block in blocks])
    monkeypatch.setattr("costa.nn.hops.SAMPLE", 14)
    whole.fit(blocks)
    assert torch.equal(whole.basis, part.basis)


def test_rows_that_are_read_a_few_at_a_time_are_fitted_and_settled_alike(monkeypatch):
    monkeypatch.setattr("costa.nn.hops.ROWS", 7)
    stored, unit = [block.half() for block in make_blocks()], torch.linspace(0.5, 2, D)
    read, whole = [Halves(block, unit) for block in stored], [block.float() * unit for block in stored]
    ours, theirs = fitted(read), fitted(whole)
    for name, tensor in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], tensor, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.vectors(read), theirs.vectors(whole), rtol=1e-4, atol=1e-5)


def test_the_spread_of_rows_that_are_read_a_few_at_a_time_is_not_that_of_rounding(monkeypatch):
    monkeypatch.setattr("costa.nn.hops.ROWS", 7)
    equal, far, near = torch.full((N, D), 0.1), 2000 + 2 * torch.randn(N, D, generator=generator()), make_blocks()[0]
    encoder = make(columns=0)
    encoder.fit([Halves(block.half(), torch.full((D,), 3.0)) for block in (equal, far, near)])
    expected = [1.0, *(1 / float(3 * block.half().double().std(correction=0)) for block in (far, near))]
    torch.testing.assert_close(encoder.scale, torch.tensor(expected), rtol=1e-6, atol=0)


def test_settling_gives_the_moments_of_all_rows():
    blocks = make_blocks()
    encoder = fitted(blocks)
    encoder([block[:10] for block in blocks])  # a step of training, which moves the running averages
    encoder.settle(blocks)
    for layer, block, scale in zip(encoder.layers, blocks, encoder.scale, strict=True):
        hidden = (scale * block).double() @ layer.weight.double() + layer.bias.double()
        torch.testing.assert_close(layer.norm.running_mean.double(), hidden.mean(0), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(layer.norm.running_var.double(), hidden.var(0, correction=0), rtol=1e-4, atol=1e-5)
    assert encoder.training


def test_without_batchnorm_there_is_nothing_to_settle():
    blocks, encoder = make_blocks(), make(norm="none")
    encoder.fit(blocks)
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    encoder.settle(blocks)
    assert all(torch.equal(tensor, before[name]) for name, tensor in encoder.state_dict().items())


def test_another_seed_takes_over_what_is_fitted_but_no_weight():
    blocks = make_blocks()
    one, other = fitted(blocks), make(generator=generator(1))
    other.take_over(one)
    for name in ("scale", "basis"):
        assert torch.equal(getattr(other, name), getattr(one, name)), name
    assert not torch.equal(other.layers[0].weight, one.layers[0].weight)


# --- the vectors ----------------------------------------------------------------------------------------------


def plain_vectors(encoder, blocks, weight):
    """z of the module's docstring, in float64."""
    v = block_weights(encoder.powers, encoder.steps).double()
    parts = [
        v_b * F.normalize(code) * (block != 0).any(1, keepdim=True)
        for v_b, code, block in zip(v, plain_codes(encoder, blocks, training=False), blocks, strict=True)
    ]
    return torch.cat([*parts, weight * plain_side_by_side(encoder, blocks) @ encoder.basis.double()], 1)


@pytest.mark.parametrize("powers", [(1, 4), (0, 4)], ids=["hops", "features beside them"])
@pytest.mark.parametrize("norm", ["batch", "none"])
@pytest.mark.parametrize("columns", [0, 6])
@pytest.mark.parametrize("new", [False, True])
def test_vectors_are_those_of_the_formula(powers, norm, columns, new):
    """On a new graph too, with what was fitted to the first."""
    blocks = make_blocks()
    encoder = fitted(blocks, powers=powers, norm=norm, columns=columns, weight=1.5)
    kept = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    given = make_blocks(n=17, seed=3) if new else blocks
    z = encoder.vectors(given)
    assert z.shape == (len(given[0]), encoder.vector_width) == (len(given[0]), 3 * WIDTH + columns)
    torch.testing.assert_close(z.double(), plain_vectors(encoder, given, 1.5).detach(), rtol=1e-4, atol=1e-5)
    assert all(torch.equal(tensor, kept[name]) for name, tensor in encoder.state_dict().items())
    assert encoder.training
    assert not z.requires_grad


@pytest.mark.parametrize(("powers", "steps"), [((0,), 0), ((4,), 0), ((), 2)])
def test_one_hop_alone_has_the_whole_weight(powers, steps):
    [block] = blocks = make_blocks(hops=1)
    encoder = fitted(blocks, powers=powers, steps=steps, columns=D)
    z = encoder.vectors(blocks)
    torch.testing.assert_close(z.double(), plain_vectors(encoder, blocks, 1.0).detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(z[:, :WIDTH].norm(dim=1), torch.ones(N))
    # all of its directions are kept, so that V turns it and no more
    columns, unit = z[:, WIDTH:], F.normalize(block)
    torch.testing.assert_close(columns @ columns.T, unit @ unit.T, rtol=1e-4, atol=1e-4)


def test_a_saved_encoder_gives_the_vectors_of_a_new_graph_again():
    encoder, fresh = fitted(make_blocks()), make(generator=generator(1))
    fresh.load_state_dict(encoder.state_dict())
    new = make_blocks(n=17, seed=3)
    assert torch.equal(fresh.vectors(new), encoder.vectors(new))


@pytest.mark.parametrize("powers", [(1, 4), (0, 4)])
def test_no_block_drowns_another(powers):
    """Each code has the length of its weight, and all columns together that of theirs."""
    blocks = make_blocks()
    encoder = fitted(blocks, powers=powers, columns=3 * D, weight=1.2)
    z = encoder.vectors(blocks)
    codes = z[:, : 3 * WIDTH].reshape(N, 3, WIDTH)
    torch.testing.assert_close(codes.norm(dim=2), block_weights(powers, 2).expand(N, 3))
    torch.testing.assert_close(z[:, 3 * WIDTH :].norm(dim=1), torch.full((N,), 1.2), rtol=1e-3, atol=0)


def test_a_node_without_anything_is_zero():
    blocks = make_blocks()
    for block in blocks:
        block[5] = 0
    blocks[1][6] = 0  # one hop alone
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
    assert encoder.vector_width == 3 * WIDTH + 3 * D
    assert (make(columns=0).vector_width, encoder.out_features) == (3 * WIDTH, 3 * WIDTH)


def test_fewer_rows_than_columns_are_no_problem():
    blocks = make_blocks(n=3)
    z = fitted(blocks, columns=20).vectors(blocks)
    assert z.isfinite().all()
    assert z.shape == (3, 3 * WIDTH + 20)
