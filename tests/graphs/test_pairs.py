"""Pairs and their numbers, and non-edges drawn with equal probability."""

import itertools

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from costa.graphs.pairs import count_pairs, edge_numbers, number_pairs, pairs_of, sample_non_edges


def test_every_pair_has_one_number():
    pairs = sorted(itertools.combinations(range(10), 2), key=lambda pair: (pair[1], pair[0]))
    listed = pairs_of(np.arange(count_pairs(10)))
    assert listed.T.tolist() == [list(pair) for pair in pairs]
    assert number_pairs(listed).tolist() == number_pairs(listed.flip(0)).tolist() == list(range(45))


@pytest.mark.parametrize("j", [3, 10**5, 94_906_267, 10**9])
def test_pairs_are_exact_where_the_square_root_is_not(j):
    first = j * (j - 1) // 2
    numbers = np.array([first - 1, first, first + j - 1, first + j])
    low, high = pairs_of(numbers)
    assert low.tolist() == [j - 2, 0, j - 1, 0]
    assert high.tolist() == [j - 1, j, j, j + 1]
    assert number_pairs(torch.stack([high, low])).tolist() == numbers.tolist()


def test_edges_count_once_and_self_loops_do_not():
    graph = Data(edge_index=torch.tensor([[3, 1, 2, 0, 1, 1], [1, 3, 2, 1, 0, 3]]), num_nodes=4)
    assert pairs_of(edge_numbers(graph)).T.tolist() == [[0, 1], [1, 3]]


def test_non_edges_are_all_others_each_as_often():
    edges = np.array([0, 3, 4, 9, 14])
    others = np.setdiff1d(np.arange(count_pairs(6)), edges)
    every = sample_non_edges(edges, 6, len(others), np.random.default_rng(0))
    assert sorted(every.tolist()) == others.tolist()
    draws, size = 4000, 3
    drawn = np.concatenate([sample_non_edges(edges, 6, size, np.random.default_rng(seed)) for seed in range(draws)])
    counts = np.bincount(drawn, minlength=count_pairs(6))
    p = size / len(others)
    assert counts[edges].sum() == 0
    assert np.abs(counts[others] / draws - p).max() < 4.5 * np.sqrt(p * (1 - p) / draws)
    assert np.array_equal(drawn[:size], sample_non_edges(edges, 6, size, np.random.default_rng(0)))
