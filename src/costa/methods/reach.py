"""How far an encoder of hops looks, chosen from a graph without labels.

Choices are compared by how well they predict features that were held out (:mod:`costa.nn.held_out`). The first of
these rules that holds decides:

    own     X                       edges mislead: X alone predicts clearly better than all hops do
    apart   X, Â²X, Â⁴X             edges say nothing of features, so something else: without PageRank, which repeats X
    near    X, Â²X, PageRank        regions are mixed: these predict best, and PageRank better alone than beside Â⁴X
    far     Â⁴X, PageRank           averages over many nodes have less noise: taken if they predict almost as well
    all     X, ÂX, Â⁴X, PageRank    the neighbours by themselves say as much as both ends
    ends    X, Â⁴X, PageRank        they say less

A vector that leaves out what a graph does not need serves a classifier of few labels better. The margins were set on
the development graphs, by validation.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torch_geometric.data import Data

from costa.graphs.propagation import OnDisk, fitted_rows
from costa.graphs.storage import StoredGraph
from costa.nn import Adjacency, FeatureScaling
from costa.nn.held_out import Candidate, InMemory, held_out_scores

STEPS = 10
OWN: Candidate = ((0,), 0)
ALL: Candidate = ((0, 1, 4), STEPS)
ENDS: Candidate = ((0, 4), STEPS)
FAR: Candidate = ((4,), STEPS)
NEAR: Candidate = ((0, 2), STEPS)
APART: Candidate = ((0, 2, 4), 0)
PAGERANK: Candidate = ((), STEPS)
COMPARED = (OWN, ALL, ENDS, FAR, NEAR, PAGERANK)

MISLED = 0.935
"""Edges mislead if all hops predict less than this share of what X predicts,"""
NOISE = 0.002
"""and less by more than this R²."""
NOTHING = 1.01
"""Edges say nothing of features if no hops predict more than so many times what X predicts."""
MIXED = 1.01
"""Regions are mixed if PageRank predicts more than so many times what it does beside Â⁴X."""
BEST = 0.995
"""Near hops predict best if they predict this share of what any others do."""
ENOUGH = 0.96
"""The far hops are enough if they predict this share of what they do beside X."""
ALMOST = 0.98
"""Neighbours stay if all hops predict this share of what both ends do."""

COLUMNS = 512
"""The columns of a vector: of the hops themselves, and of all codes."""


def choose_reach(graph: Data, scaling: str, teleport: float) -> Candidate:
    """Powers of Â and steps of PageRank; a node's own features if there are no edges."""
    if graph.num_edges == 0:
        return OWN
    scale, columns = FeatureScaling(scaling, graph.num_features), graph.get("columns")
    groups = None if columns is None else columns.groups
    if isinstance(graph, StoredGraph):
        scale.fit(fitted_rows(graph))
        return reach(*held_out_scores(OnDisk(graph, scale), COMPARED, teleport, groups))
    x, weight = graph.x.float().cpu(), graph.get("edge_weight")
    scale.fit(x)
    adjacency = Adjacency(graph.edge_index.cpu(), graph.num_nodes, weight if weight is None else weight.cpu())
    return reach(*held_out_scores(InMemory(scale(x), adjacency.normalized()), COMPARED, teleport, groups))


def reach(own: float, everything: float, ends: float, far: float, near: float, pagerank: float) -> Candidate:
    """The choice, from the R² of each that is compared; all hops if nothing can be predicted.

    >>> reach(0.65, 0.53, 0.61, 0.36, 0.59, 0.41) == OWN, reach(0.56, 0.54, 0.55, 0.48, 0.55, 0.46) == APART
    (True, True)
    >>> reach(0.23, 0.28, 0.29, 0.25, 0.29, 0.26) == NEAR, reach(0.01, 0.07, 0.07, 0.07, 0.05, 0.04) == FAR
    (True, True)
    >>> reach(0.85, 0.87, 0.87, 0.52, 0.87, 0.51) == ALL, reach(0.39, 0.44, 0.45, 0.38, 0.45, 0.37) == ENDS
    (True, True)
    """
    most = max(everything, ends)
    if max(own, most, far) <= 0:
        return ALL
    if everything < own * MISLED and everything < own - NOISE:
        return OWN
    if max(most, far) <= own * NOTHING:
        return APART
    if pagerank > far * MIXED and near >= BEST * max(most, far):
        return NEAR
    if far >= ENOUGH * most:
        return FAR
    return ALL if everything >= ALMOST * ends else ENDS


def choose_hops(graph: Data, scaling: str, encoder: Any, given: Collection[str] = ()) -> dict[str, Any]:
    """The settings of an encoder of hops: its reach, unless that is given, and the width that makes 512 columns."""
    powers, steps, chosen = encoder.powers, encoder.steps, dict[str, Any]()
    if not {"encoder.powers", "encoder.steps"} & set(given):
        powers, steps = choose_reach(graph, scaling, encoder.teleport)
        chosen = {"encoder.powers": powers, "encoder.steps": steps}
    room = COLUMNS - encoder.columns
    return chosen | ({"encoder.width": max(1, room // (len(powers) + (steps > 0)))} if room > 0 else {})
