"""The same graph with other edges in the place of those that are held out."""

import copy

import numpy as np
import torch

from costa.graphs import hold_out_edges
from costa.graphs.pairs import count_pairs, edge_numbers, number_pairs, pairs_of


def with_other_edges(graph, share, seed=0):
    """Edges that :func:`hold_out_edges` draws become non-edges whose numbers keep the order, so it draws these."""
    numbers = edge_numbers(graph)
    held, total = number_pairs(hold_out_edges(graph, share, seed=seed)[1]), count_pairs(graph.num_nodes)
    for place in np.flatnonzero(np.isin(numbers, held)):
        low = numbers[place - 1] + 1 if place else 0
        high = numbers[place + 1] if place + 1 < len(numbers) else total
        free = [number for number in range(low, high) if number != numbers[place]]
        numbers[place] = free[0] if free else numbers[place]
    pairs = pairs_of(numbers)
    index = torch.cat([pairs, pairs.flip(0)], dim=1)
    changed = copy.copy(graph)
    kept = torch.from_numpy(np.isin(number_pairs(graph.edge_index), numbers))
    new = torch.from_numpy(np.isin(number_pairs(index), edge_numbers(graph), invert=True))
    changed.edge_index = torch.cat([graph.edge_index[:, kept], index[:, new]], dim=1)
    if graph.get("edge_weight") is not None:
        changed.edge_weight = torch.cat([graph.edge_weight[kept], torch.ones(int(new.sum()))])
    return changed
