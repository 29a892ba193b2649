"""One graph of a PyG ``HeteroData``, whose nodes and edges are of several types.

**Nodes** are those of all types, one type after the other, the types in alphabetical order.

**Features.** Each type has a block of columns, and a column that says which nodes are of it (t types of d₁ … d_t
features become Σ dᵢ + t columns):

    x = [ X_customer      0      | 1 0 ]
        [     0       X_product  | 0 1 ]

**Edges.** Within a relation the rules of :mod:`costa.graphs.assembly` hold; the edges ``rev_buys`` from b to a are the
other direction of ``buys`` from a to b, as ``torch_geometric.transforms.ToUndirected`` writes them. Weights of an edge
add up over relations, where edges without weights have 1. What a relation means is lost: one encoder averages
over all of them.

**Ids** are those of ``node_ids`` if all differ, else ``customer/0``, ``customer/1``, … **Labels** and masks are those
of the one type that has them; nodes of other types have none.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from scipy.sparse import block_array, coo_array
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import coalesce

from costa.errors import InputError
from costa.graphs.arrays import Links, as_features
from costa.graphs.assembly import undirected
from costa.graphs.features import as_tensor
from costa.graphs.labels import as_labels, encode_labels
from costa.nn.sparse import from_coo, to_scipy
from costa.wording import counted

logger = logging.getLogger(__name__)

WHERE = "the HeteroData"
MASKS = ("train_mask", "val_mask", "test_mask")
READ = {"x", "y", "num_nodes", "node_ids", *MASKS}
"""What is read of a type of nodes."""
REVERSE = "rev_"


def merge_types(given: HeteroData) -> Data:
    """One graph of all types; a warning says what was merged and what was not read."""
    sizes = {kind: _count(given, kind) for kind in sorted(given.node_types)}
    first = dict(zip(sizes, itertools.accumulate(sizes.values(), initial=0), strict=False))
    n = sum(sizes.values())
    links = _relations(given, sizes, first)
    data = Data(num_nodes=n)
    data.edge_index, weight = _merged([undirected(each, n) for each in links.values()])
    if weight is not None:
        data.edge_weight = weight
    if any("x" in given[kind] for kind in sizes):
        data.x, data.feature_names = _features(given, sizes)
    data.node_ids = _ids(given, sizes)
    _add_labels(data, given, sizes, first)
    if "name" in given:
        data.name = given["name"]
    _say(given, sizes, list(links))
    return data


def _count(given: HeteroData, kind: str) -> int:
    store = given[kind]
    if not {"x", "num_nodes", "node_ids"} & set(store.keys()):
        raise InputError(f"{WHERE} does not say how many {kind} nodes there are; give them x or num_nodes.")
    count = int(store["num_nodes"] if "num_nodes" in store else len(store["x"] if "x" in store else store["node_ids"]))
    for name in READ - {"num_nodes"}:
        if name in store and len(store[name]) != count:
            raise InputError(f"{name} of {kind} has {len(store[name])} rows for {count} nodes; give one for each node.")
    return count


def _relations(given: HeteroData, sizes: dict[str, int], first: dict[str, int]) -> dict[tuple[str, str, str], Links]:
    """The edges of each relation between the rows of the graph, with their reverse ones."""
    parts: dict[tuple[str, str, str], list[tuple[np.ndarray, np.ndarray | None]]] = {}
    for source, name, target in given.edge_types:
        store, where = given[source, name, target], f"{source} {name} {target}"
        index = store.get("edge_index")
        if not isinstance(index, Tensor) or index.dim() != 2 or index.size(0) != 2 or index.is_floating_point():
            raise InputError(f"{where} needs an edge_index of shape (2, edges) with row numbers.")
        for end, kind in zip(index.cpu(), (source, target), strict=True):
            if end.numel() and not 0 <= int(end.min()) <= int(end.max()) < sizes[kind]:
                raise InputError(
                    f"edge_index of {where} has a number that is no row of {kind}; those are 0 to {sizes[kind] - 1}."
                )
        weight = store.get("edge_weight")
        if weight is not None and weight.shape != (index.size(1),):
            raise InputError(f"edge_weight of {where} has the shape {tuple(weight.shape)}; give one for each edge.")
        ends = index.cpu().numpy() + np.array([[first[source]], [first[target]]])
        forward = (target, name.removeprefix(REVERSE), source)
        relation = forward if name.startswith(REVERSE) and forward in given.edge_types else (source, name, target)
        values = None if weight is None else weight.double().cpu().numpy()
        parts.setdefault(relation, []).append((ends, values))
    links = {}
    for relation, edges in parts.items():
        ends = np.concatenate([index for index, _ in edges], axis=1)
        weight = None
        if any(values is not None for _, values in edges):
            weight = np.concatenate([np.ones(len(index[0])) if w is None else w for index, w in edges])
        if ends.size:
            links[relation] = Links(f"the edges {' '.join(relation)}", ends.astype(np.int64), weight)
    return links


def _merged(parts: Iterable[tuple[Tensor, Tensor | None]]) -> tuple[Tensor, Tensor | None]:
    """The edges of several relations as one, their weights added; no weights if all are 1."""
    index = [torch.empty(2, 0, dtype=torch.long)]
    weights = [torch.empty(0)]
    for edges, weight in parts:
        index.append(edges)
        weights.append(torch.ones(edges.size(1)) if weight is None else weight)
    edge_index, weight = coalesce(torch.cat(index, dim=1), torch.cat(weights), reduce="sum")
    return edge_index, None if bool((weight == 1).all()) else weight


def _features(given: HeteroData, sizes: dict[str, int]) -> tuple[Tensor, list[str]]:
    blocks: list[list[Any]] = [[None] * 2 * len(sizes) for _ in sizes]
    names, kinds = list[str](), list[str]()
    for place, (kind, count) in enumerate(sizes.items()):
        if "x" in given[kind]:
            matrix = as_features(_array(given[kind]["x"]), f"x of {kind}", kind).x
            blocks[place][place] = coo_array(matrix)
            names += [f"{kind}[{column}]" for column in range(matrix.shape[1])]
        blocks[place][len(sizes) + place] = coo_array(np.ones((count, 1), dtype=np.float32))
        kinds.append(f"type={kind}")
    kept = [column for column in zip(*blocks, strict=True) if any(block is not None for block in column)]
    x = as_features(block_array([list(row) for row in zip(*kept, strict=True)]), WHERE, WHERE).x
    return as_tensor(x, f"x of {WHERE}"), names + kinds


def _array(x: Tensor) -> Any:
    """A tensor as an array, or as a scipy matrix if it is sparse."""
    if x.layout == torch.sparse_coo:
        x = from_coo(x)
    x = x.detach().cpu()
    return to_scipy(x) if x.layout == torch.sparse_csr else x.numpy()


def _ids(given: HeteroData, sizes: dict[str, int]) -> list[str]:
    own = {kind: [str(node) for node in given[kind].get("node_ids", range(count))] for kind, count in sizes.items()}
    if all("node_ids" in given[kind] for kind in sizes):
        ids = [node for kind in sizes for node in own[kind]]
        if len(set(ids)) == len(ids):
            return ids
    return [f"{kind}/{node}" for kind in sizes for node in own[kind]]


def _add_labels(data: Data, given: HeteroData, sizes: dict[str, int], first: dict[str, int]) -> None:
    labelled = [kind for kind in sizes if "y" in given[kind]]
    if len(labelled) > 1:
        raise InputError(
            f"{' and '.join(labelled)} both have labels y, and whether a number means the same for both is not known;"
            " keep those of one type, or set y of the graph afterwards."
        )
    for kind in labelled:
        y = given[kind]["y"]
        if y.dim() != 1:
            raise InputError(f"y of {kind} has the shape {tuple(y.shape)}; give one label for each node.")
        rows = slice(first[kind], first[kind] + sizes[kind])
        texts = [""] * data.num_nodes
        texts[rows] = as_labels(y, f"the labels of {kind}")
        data.y, data.label_names = encode_labels(texts)
        for name in MASKS:
            if name in given[kind]:
                data[name] = torch.zeros(data.num_nodes, dtype=torch.bool)
                data[name][rows] = given[kind][name].cpu()


def _say(given: HeteroData, sizes: dict[str, int], relations: list[tuple[str, str, str]]) -> None:
    """What became of the types, and what was not read."""
    counts = " and ".join(counted(count, f"{kind} node") for kind, count in sizes.items())
    said = f"{WHERE} becomes one graph of {counts}"
    bare = [kind for kind in sizes if "x" not in given[kind]]
    if bare and len(bare) < len(sizes):
        said += f"; {' and '.join(bare)} nodes have no features but their type"
    if len(relations) > 1:
        said += f"; the edges {', '.join(map(' '.join, relations))} are no longer told apart"
    logger.warning("%s.", said)
    labelled = {kind for kind in sizes if "y" in given[kind]}
    unread = [f"{name} of {kind}" for kind in sizes for name in set(given[kind].keys()) - READ]
    unread += [f"{name} of {kind}" for kind in sizes for name in MASKS if name in given[kind] and kind not in labelled]
    for edge in given.edge_types:
        unread += [f"{name} of {' '.join(edge)}" for name in set(given[edge].keys()) - {"edge_index", "edge_weight"}]
    if unread:
        logger.warning("not read of %s: %s; weights are called edge_weight.", WHERE, ", ".join(sorted(unread)))
