import gc
import itertools
import math

import pytest
import torch

from costa.augment.registry import SKETCHES, make_sketch
from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.insight.bias import Bias, Subject, covariance_bias, measure, noise, noise_of_equal_strength, unit_noise
from costa.nn import GCN, SparseMatrix

PAIR = torch.tensor([[0, 1], [1, 0]])


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def graph():
    return planted_partition(60, 3, 12, degree=4, seed=0)


def propagate(x, adjacency, mask):
    """One linear layer without weights: ÂXdiag(m)."""
    return adjacency @ (x if mask is None else x * mask)


class TestMeasure:
    def test_sums_give_what_all_draws_at_once_would(self, graph):
        subject = Subject(GCN(12, (8, 4), activation="elu", generator=generator()), graph.x, graph.edge_index)
        draw = subject.draw(edge_rate=0.3, mask_rate=0.2)
        found = measure(draw, subject.h, 40, generator(1))
        source = generator(1)
        with torch.no_grad():
            every = torch.stack([draw(source) for _ in range(40)]).double()
        mean, x = every.mean(0), subject.h.double()
        torch.testing.assert_close(found.distance, (mean - x).norm(dim=1), rtol=1e-5, atol=1e-8)
        torch.testing.assert_close(found.variance, every.var(0).sum(1), rtol=1e-5, atol=1e-8)
        torch.testing.assert_close(found.strength, (every - x).square().sum(2).mean(0), rtol=1e-5, atol=1e-8)
        pairs = torch.stack([(a - x).mul(b - x).sum(1) for a, b in itertools.permutations(every, 2)]).mean(0)
        torch.testing.assert_close(found.squared, pairs, rtol=1e-4, atol=1e-7)
        torch.testing.assert_close(found.norm, x.norm(dim=1))
        assert found.squared.dtype == torch.float64

    def test_without_bias_the_noise_floor_is_subtracted_and_not_before(self):
        x = torch.randn(400, 16, generator=generator())
        found = measure(noise(x, 0.5), x, 50, generator(1))
        error = float(found.squared.std() / math.sqrt(400))
        assert abs(float(found.squared.mean())) < 4 * error
        uncorrected = found.distance.square()
        assert float(uncorrected.mean()) > 20 * error
        assert float(uncorrected.mean()) == pytest.approx(16 * 0.5**2 / 50, rel=0.1)
        assert not found.exceeds().any()
        assert 0.3 < float((found.squared < 0).double().mean()) < 0.8

    def test_a_known_bias_is_found_through_the_noise(self):
        x = torch.randn(300, 8, generator=generator())
        shift = torch.zeros(8).index_fill_(0, torch.tensor([2]), 0.1)
        moved = noise(x + shift, 0.3)
        found = measure(moved, x, 400, generator(1))
        error = float(found.squared.std() / math.sqrt(300))
        assert float(found.squared.mean()) == pytest.approx(0.01, abs=4 * error)
        torch.testing.assert_close(found.ratio, found.squared / found.variance)
        assert found.exceeds(1).double().mean() > 0.9

    def test_a_bound_on_the_standard_error_that_is_reached_when_columns_vary_as_one(self):
        x = torch.zeros(4000, 6)
        together = measure(
            lambda g: torch.randn(4000, 1, generator=g).expand(4000, 6) / math.sqrt(6), x, 20, generator()
        )
        apart = measure(noise(x, 1 / math.sqrt(6)), x, 20, generator())
        bound = math.sqrt(2 / (20 * 19))
        assert float(together.squared.std()) == pytest.approx(bound, rel=0.1)
        assert float(apart.squared.std()) == pytest.approx(bound / math.sqrt(6), rel=0.1)

    def test_nothing_moved_is_no_bias(self, graph):
        subject = Subject(GCN(12, (8, 4), activation="elu", generator=generator()), graph.x, graph.edge_index)
        found = measure(subject.draw(), subject.h, 3, generator())
        assert not torch.cat([found.distance, found.variance, found.squared, found.ratio, found.relative]).any()
        assert not found.exceeds().any()

    def test_a_vector_of_length_zero_has_no_relative_bias(self):
        x = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
        found = measure(lambda g: x + 1, x, 2, generator())
        assert found.relative.isnan().tolist() == [True, False]
        assert float(found.relative[1]) == pytest.approx(math.sqrt(2) / 5)
        assert found.ratio.tolist() == [math.inf, math.inf]

    def test_one_draw_is_refused(self):
        with pytest.raises(InputError, match="at least two draws"):
            measure(noise(torch.ones(2, 2), 1.0), torch.ones(2, 2), 1, generator())

    def test_memory_does_not_grow_with_the_draws(self, graph):
        subject = Subject(GCN(12, (8, 4), activation="elu", generator=generator()), graph.x, graph.edge_index)
        plain = subject.draw(edge_rate=0.3, mask_rate=0.3)

        def held(draws):
            """How many numbers live tensors hold when the last draw is asked for."""
            made = live = 0

            def watched(source):
                nonlocal made, live
                made += 1
                if made == draws:
                    live = sum(thing.numel() for thing in gc.get_objects() if type(thing) is torch.Tensor)
                return plain(source)

            measure(watched, subject.h, draws, generator())
            return live

        assert held(30) == held(3)

    def test_the_global_generator_is_left_alone(self, graph):
        before = torch.random.get_rng_state()
        subject = Subject(GCN(12, (8, 4), activation="elu", generator=generator()), graph.x, graph.edge_index)
        first, second = (
            measure(subject.draw(edge_rate=0.3, mask_rate=0.3), subject.h, 5, generator(3)) for _ in range(2)
        )
        assert torch.equal(first.distance, second.distance)
        assert torch.equal(torch.random.get_rng_state(), before)


class TestClosedForms:
    def test_masking_a_linear_layer_shrinks_it_by_the_rate(self, graph):
        x = graph.x.double()
        subject = Subject(propagate, x.float(), graph.edge_index)
        found = measure(subject.draw(mask_rate=0.4), subject.h, 1000, generator())
        # E[ÂXdiag(m)] = 0.6·ÂX, and each column's mask has variance 0.24
        torch.testing.assert_close(found.variance, 0.24 * found.norm.square(), rtol=0.15, atol=0)
        error = 0.24 * math.sqrt(2) / 1000 + 2 * 0.4 * math.sqrt(0.24 / 1000)
        assert float((found.squared / found.norm.square() - 0.16).abs().max()) < 5 * error

    def test_dividing_by_what_is_kept_makes_it_unbiased(self, graph):
        subject = Subject(propagate, graph.x, graph.edge_index)
        found = measure(subject.draw(mask_rate=0.4, rescale=True), subject.h, 500, generator())
        assert not found.exceeds(4).any()
        torch.testing.assert_close(found.variance, 0.4 / 0.6 * found.norm.square(), rtol=0.2, atol=0)

    def test_an_edge_between_two_nodes(self):
        x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        subject = Subject(propagate, x, PAIR)
        rate = 0.3
        found = measure(subject.draw(edge_rate=rate), subject.h, 1500, generator())
        # with the edge both are (½, ½); without it each is itself, (½, ½) + (½, −½)
        assert found.norm.tolist() == pytest.approx([math.sqrt(0.5)] * 2)
        assert found.strength.tolist() == pytest.approx([rate / 2] * 2, rel=0.15)
        assert found.squared.tolist() == pytest.approx([rate**2 / 2] * 2, rel=0.25)
        assert found.variance.tolist() == pytest.approx([rate * (1 - rate) / 2] * 2, rel=0.15)

    def test_a_node_without_neighbours_is_not_moved_by_dropped_edges(self):
        subject = Subject(propagate, torch.eye(3), PAIR)
        found = measure(subject.draw(edge_rate=0.5), subject.h, 50, generator())
        assert (found.strength > 0).tolist() == [True, True, False]
        assert (float(found.ratio[2]), bool(found.exceeds()[2])) == (0.0, False)

    def test_edge_weights_count(self):
        weighted = Subject(propagate, torch.eye(2), PAIR, torch.tensor([3.0, 3.0]))
        torch.testing.assert_close(weighted.h, torch.tensor([[0.25, 0.75], [0.75, 0.25]]))

    def test_sparse_features_give_the_same(self, graph):
        x = torch.relu(graph.x)
        gcn = GCN(12, (8, 4), activation="elu", generator=generator())
        dense, sparse = (Subject(gcn, form, graph.edge_index) for form in (x, SparseMatrix.from_dense(x)))
        first, second = (measure(s.draw(edge_rate=0.2, mask_rate=0.2), s.h, 20, generator()) for s in (dense, sparse))
        torch.testing.assert_close(first.distance, second.distance, rtol=1e-4, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_measures_what_a_cpu_does(graph):
    gcn = GCN(12, (8, 4), activation="elu", generator=generator())
    found = []
    for device in ("cpu", "cuda"):
        subject = Subject(gcn.to(device), graph.x.to(device), graph.edge_index.to(device))
        draw = subject.draw(edge_rate=0.3, mask_rate=0.3, rescale=True)
        # a generator on the CPU draws the same augmentations for both
        found.append(measure(draw, subject.h, 30, generator(1)))
    torch.testing.assert_close(found[0].distance, found[1].distance, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(found[0].variance, found[1].variance, rtol=1e-3, atol=1e-5)
    own = measure(draw, subject.h, 30, torch.Generator("cuda").manual_seed(1))
    beside = noise_of_equal_strength(own, unit_noise(60, 4, 30, torch.Generator("cuda").manual_seed(2)))
    assert beside.distance.device.type == own.distance.device.type == "cpu"


class TestNoise:
    def test_it_is_as_strong_at_every_node(self, graph):
        subject = Subject(GCN(12, (8, 4), activation="elu", generator=generator()), graph.x, graph.edge_index)
        found = measure(subject.draw(edge_rate=0.3), subject.h, 200, generator())
        beside = noise_of_equal_strength(found, unit_noise(60, 4, 200, generator(4)))
        torch.testing.assert_close(beside.strength, found.strength, rtol=0.3, atol=1e-12)
        assert float((beside.strength.sum() / found.strength.sum()).log().abs()) < 0.05
        assert torch.equal(beside.norm, found.norm)
        assert not beside.exceeds().any()
        assert found.exceeds().double().mean() > 0.5

    def test_scaled_unit_noise_is_noise_of_that_deviation(self):
        x = torch.zeros(5, 3)
        strength = Bias(30, 3, torch.ones(5), torch.zeros(5).double(), torch.full((5,), 3 * 0.25).double() * 30 / 29)
        scaled = noise_of_equal_strength(strength, unit_noise(5, 3, 30, generator(2)))
        drawn = measure(noise(x, 0.5), x, 30, generator(2))
        torch.testing.assert_close(scaled.distance, drawn.distance, rtol=1e-5, atol=1e-8)
        torch.testing.assert_close(scaled.variance, drawn.variance, rtol=1e-5, atol=1e-8)

    def test_other_draws_are_refused(self):
        unit = unit_noise(5, 3, 10, generator())
        with pytest.raises(InputError, match="10 draws of width 3, but the augmentation with 20 of width 3"):
            noise_of_equal_strength(unit_noise(5, 3, 20, generator()), unit)


class TestCovariance:
    h = torch.randn(40, 6, generator=torch.Generator().manual_seed(0)) + 1

    @pytest.mark.parametrize("name", ["gaussian", "rademacher", "sparse", "countsketch", "selection"])
    def test_it_is_kept_on_average(self, name):
        options = {"density": 0.2} if name == "sparse" else {}
        found = covariance_bias(make_sketch(name, k=20, **options), self.h, 300, generator())
        assert not found.exceeds().any()
        assert float(found.distance) == pytest.approx(float(found.floor), rel=0.5)
        centred = (self.h - self.h.mean(0)).double()
        assert float(found.norm) == pytest.approx(float((centred.T @ centred).norm()))

    def test_noise_adds_n_times_its_variance(self):
        found = covariance_bias(make_sketch("noise", noise_std=0.5), self.h, 300, generator())
        assert float(found.squared.sqrt()) == pytest.approx(40 * 0.25 * math.sqrt(6), rel=0.1)
        assert found.exceeds().all()

    def test_svd_leaves_out_the_smallest(self):
        found = covariance_bias(make_sketch("svd", k=4, center=False), self.h, 2, generator())
        smallest = torch.linalg.svdvals(self.h.double())[4:]
        assert float(found.distance) == pytest.approx(float(smallest.pow(4).sum().sqrt()), rel=1e-3)
        assert float(found.variance) < 1e-6 * float(found.norm) ** 2

    def test_selection_as_printed_is_biased(self):
        found = covariance_bias(make_sketch("selection", k=20, scaling="printed"), self.h, 300, generator())
        assert found.exceeds().all()

    def test_every_sketch_is_measured(self):
        for name in SKETCHES:
            found = covariance_bias(make_sketch(name, **({} if name == "noise" else {"k": 5})), self.h, 2, generator())
            assert found.distance.shape == (1,)
