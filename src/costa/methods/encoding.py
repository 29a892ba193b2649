"""The base of methods with an encoder: its inputs, its vectors, and augmented views of the graph."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from costa import settings
from costa.augment.topology import (
    drop_probability,
    edge_ids,
    keep_hops,
    keep_mask,
    mask_attributes,
    permute_edges,
    weigh,
)
from costa.errors import InputError
from costa.graphs.ahead import ReadAhead
from costa.graphs.hop_files import StoredHop
from costa.graphs.propagation import fitted_rows, stored_hops
from costa.graphs.storage import StoredGraph
from costa.methods.base import GradientMethod, Method
from costa.methods.building import Encoder
from costa.methods.reach import choose_hops
from costa.nn import GCN, Adjacency, Features, Hops, Preparation, SparseMatrix, sparse_if_faster
from costa.nn.hops import ROWS, Block, propagate
from costa.nn.norm import BatchNorm
from costa.nn.ranks import ALONE, Ranks

Rate = float | Tensor | None
"""The probability of dropping, one for all or one for each; None: nothing is dropped."""
WIDE = 2**27
"""Bytes of an array of n × the widest layer from which H of a graph is computed some columns at a time. Smaller arrays
are in memory as a whole, so that the vectors of small graphs keep the bits that published results have."""
AT_ONCE = 2**24
"""Bytes of the columns that are computed at a time then, 16 columns at least. On WordNet, GRACE's encoder so takes a
third of the time and half of the memory of whole layers; blocks of two or four times the size gain nothing."""


@dataclass(frozen=True)
class Inputs:
    """A graph as the encoder reads it, on the encoder's device.

    ``mixed`` is the normalised Â times a dense X, which a GCN's first layer reads without augmentation. For a sparse X
    the product has more non-zeros than X and Â together (Cora: 181,116 against 62,480), and two products are faster.
    """

    x: Features
    mixed: Tensor | None
    layout: Adjacency
    adjacency: SparseMatrix
    edge_index: Tensor
    edge_weight: Tensor | None
    edge_ids: Tensor
    entries: Tensor | None = field(default=None, kw_only=True)
    """Of a group of parts, the columns of the whole graph's ``edge_index`` that are its edges; None for the graph."""

    @classmethod
    def of(cls, graph: Data, x: Features, *, alone: bool = False) -> Inputs:
        """Lay out Â beside the prepared features, on their device.

        Layers that look at each node ``alone`` do not need Â times X.
        """
        device = x.device
        edge_index = graph.edge_index.to(device)
        edge_weight = graph.edge_weight.to(device) if graph.get("edge_weight") is not None else None
        layout = Adjacency(edge_index, graph.num_nodes, edge_weight)
        adjacency = layout.normalized()
        return cls(
            x=x,
            mixed=adjacency @ x if isinstance(x, Tensor) and not alone else None,
            layout=layout,
            adjacency=adjacency,
            edge_index=edge_index,
            edge_weight=edge_weight,
            edge_ids=edge_ids(edge_index, graph.num_nodes),
        )

    def at(self, nodes: Tensor) -> Inputs:
        """The subgraph of these nodes, in ascending order, with all edges between them and degrees of its own.

        Augmentation changes most steps' Â, so ÂX is not computed in advance.
        """
        entries = self.layout.between(nodes)
        edge_index = torch.searchsorted(nodes, self.edge_index[:, entries])
        edge_weight = None if self.edge_weight is None else self.edge_weight[entries]
        layout = Adjacency(edge_index, len(nodes), edge_weight)
        return Inputs(
            x=self.x[nodes] if isinstance(self.x, Tensor) else self.x.at(nodes),
            mixed=None,
            layout=layout,
            adjacency=layout.normalized(),
            edge_index=edge_index,
            edge_weight=edge_weight,
            edge_ids=edge_ids(edge_index, len(nodes)),
            entries=entries,
        )


@dataclass(frozen=True)
class HopInputs:
    """A graph as :class:`costa.nn.Hops` reads it: the hops of X, computed once; the edges are not needed again.

    The hops of a graph on disk stay there (:mod:`costa.graphs.propagation`), and ``ahead`` has their files. ``first``
    is the number of the first row that is held; None if all are.
    """

    blocks: tuple[Block, ...]
    first: int | None = None
    ahead: ReadAhead | None = None

    @classmethod
    def of(cls, graph: Data, x: Features, encoder: Hops) -> HopInputs:
        """Propagate the prepared features, on their device."""
        x = x.to_dense() if isinstance(x, SparseMatrix) else x
        weight = graph.get("edge_weight")
        weight = None if weight is None else weight.to(x.device)
        adjacency = Adjacency(graph.edge_index.to(x.device), graph.num_nodes, weight).normalized()
        return cls(tuple(propagate(x, adjacency, encoder.powers, encoder.steps, encoder.teleport)))

    @classmethod
    def on_disk(cls, hops: Sequence[StoredHop], first: int | None = None) -> HopInputs:
        """Hops that are mapped from files, or the rows of them that are held."""
        return cls(tuple(hop.block for hop in hops), first, ReadAhead([hop.array for hop in hops]))

    def part(self, rows: range) -> HopInputs:
        """A range of rows, in memory of its own."""
        return HopInputs(tuple(block[rows.start : rows.stop].clone() for block in self.blocks), rows.start)

    def at(self, rows: Tensor) -> HopInputs:
        """These rows of every block, or those of them that are held, on the device of ``rows``."""
        if self.first is not None:
            rows = rows[self.held(rows)] - self.first
        with contextlib.nullcontext() if self.ahead is None else self.ahead.reading(rows):
            parts = tuple(block[rows.to(block.device)].to(rows.device) for block in self.blocks)
        return HopInputs(parts, self.first)

    def prefetch(self, rows: Callable[[], Tensor]) -> None:
        """Let rows be read that :meth:`at` will be called with, if they are on a disk that has to be waited for."""
        if self.ahead is not None and self.ahead.waits:
            each = rows()
            self.ahead.prefetch(each if self.first is None else each[self.held(each)] - self.first)

    def held(self, rows: Tensor | None) -> Tensor:
        """The places, among these rows or all, of those that are held."""
        first, count = self.first or 0, len(self.blocks[0])
        if rows is None:
            return torch.arange(first, first + count, device=self.blocks[0].device)
        return ((rows >= first) & (rows < first + count)).nonzero().squeeze(1)


AnyInputs = Inputs | HopInputs


@dataclass(frozen=True)
class View:
    """What an encoder reads of one augmented view, beside the inputs; None: nothing is taken away.

    Attributes:
        mask: Multiplies the columns of X.
        adjacency: Â of the edges that stay, for a GCN.
        kept: Multiplies the codes of the hops.
    """

    mask: Tensor | None = None
    adjacency: SparseMatrix | None = None
    kept: Tensor | None = None


def select_rows(h: Tensor, rows: Tensor | None) -> Tensor:
    """These rows of H; all if None."""
    return h if rows is None else h.index_select(0, rows)


class EncoderMethod(Method):
    """A method whose vectors are the output of one encoder: feature scaling and reduction, then a GCN or hops."""

    takes_hops: ClassVar[bool] = False
    """Whether the method trains on batches of rows, without edges."""
    linear: ClassVar[bool] = False
    """Whether the encoder's last layer has neither activation nor normalisation."""

    def __init__(self, encoder: Encoder, preparation: Preparation) -> None:
        super().__init__()
        if isinstance(encoder, Hops) and not self.takes_hops:
            raise InputError(
                f"{self.name} reads the edges, which encoder.kind = hops does without; choose gcn or appnp."
            )
        self.encoder = encoder
        self.scaling, self.reduction = preparation
        self._prepared: tuple[Data, AnyInputs] | None = None
        self._shared: tuple[Data, AnyInputs, EncoderMethod] | None = None

    @classmethod
    def choose(cls, graph: Data, settings: Any = None, given: Collection[str] = ()) -> dict[str, Any]:
        """Of an encoder of hops also how far it looks (:mod:`costa.methods.reach`)."""
        chosen, settings = super().choose(graph, settings, given), settings or cls.Settings()
        if getattr(settings.encoder, "kind", "gcn") != "hops":
            return chosen
        scaling = settings.features.scaling
        return chosen | choose_hops(
            graph, chosen["features.scaling"] if scaling == "auto" else scaling, settings.encoder, given
        )

    @classmethod
    def unused(cls, settings: Any) -> dict[str, str]:
        """A one-layer encoder has no hidden width; teleport needs at least one step, and an activation needs a head.

        A GCN has no hops and no batches; hops have one layer each.
        """
        encoder, unused = settings.encoder, dict[str, str]()
        kind = getattr(encoder, "kind", "gcn")
        if hasattr(encoder, "powers") and kind != "hops":
            keys = ("encoder.powers", "encoder.columns", "encoder.weight", "encoder.stored")
            unused |= dict.fromkeys(keys, "it belongs to encoder.kind = hops")
        if hasattr(settings, "train"):
            unused |= cls._unused_steps(settings.train, kind)
        if kind == "hops":
            unused |= dict.fromkeys(("encoder.hidden", "encoder.layers"), "encoder.kind = hops has one layer a hop")
            if cls.linear:
                unused |= dict.fromkeys(("encoder.activation", "encoder.norm"), f"{cls.name} has a linear last layer")
            if encoder.columns == 0:
                unused["encoder.weight"] = "encoder.columns = 0 leaves the codes alone"
        elif hasattr(encoder, "hidden") and encoder.layers == 1:
            unused["encoder.hidden"] = "encoder.layers = 1 has no hidden layer"
        if hasattr(encoder, "steps") and encoder.steps == 0:
            unused["encoder.teleport"] = "encoder.steps = 0 takes no step"
        if hasattr(settings, "head") and settings.head.width == 0:
            unused["head.activation"] = "head.width = 0 leaves out the head"
        return unused

    @classmethod
    def _unused_steps(cls, train: settings.Train, kind: str) -> dict[str, str]:
        """What a step reads is said by one setting: rows for hops, and parts or the whole graph for the others."""
        parts = ("train.parts", "train.group")
        if kind == "hops":
            return dict.fromkeys(parts, "encoder.kind = hops trains on rows, train.batch of them a step")
        if not cls.takes_parts:
            return dict.fromkeys(("train.batch", *parts), f"{cls.name} trains on the whole graph")
        if train.parts:
            return {"train.batch": "train.parts says what a step reads"}
        return {
            "train.batch": f"encoder.kind = {kind} trains on the whole graph",
            "train.group": "train.parts = 0 trains on the whole graph",
        }

    @property
    def preparation(self) -> Preparation:
        """Feature scaling and reduction."""
        return Preparation(self.scaling, self.reduction)

    @property
    def vector_width(self) -> int:
        """Columns of the encoder's vectors."""
        return self.encoder.vector_width if isinstance(self.encoder, Hops) else self.encoder.out_features

    @property
    def code_columns(self) -> int | None:
        """The codes of hops; the hops themselves stand beside them."""
        return self.encoder.out_features if isinstance(self.encoder, Hops) else None

    def share(self, other: Method) -> None:
        """Let the next :meth:`prepare` take over the inputs that another seed of the method has prepared."""
        assert isinstance(other, EncoderMethod)
        self._shared = None if other._prepared is None else (*other._prepared, other)

    def prepare(self, graph: Data) -> None:
        """Learn feature scaling and reduction, and lay out the graph, unless another seed has."""
        shared, self._shared = self._shared, None
        if shared is not None and shared[0] is graph:
            _, inputs, other = shared
            self.scaling.load_state_dict(other.scaling.state_dict())
            self.reduction.load_state_dict(other.reduction.state_dict())
            if isinstance(self.encoder, Hops) and isinstance(other.encoder, Hops):
                self.encoder.take_over(other.encoder)
        else:
            if self.ranks.first:
                self.preparation.fit(fitted_rows(graph).float())
            self.ranks.share(self)
            inputs = self._read(graph)
            if isinstance(self.encoder, Hops):
                assert isinstance(inputs, HopInputs)
                self.encoder.fit(inputs.blocks, ALONE if inputs.first is None else self.ranks)
                self.ranks.share(self)
                if self.ranks.size > 1 and inputs.first is None:
                    inputs = inputs.part(self.ranks.range(graph.num_nodes))
        self._prepared = graph, inputs

    def join(self, ranks: Ranks) -> None:
        """Also take BatchNorm's moments from the rows of all."""
        super().join(ranks)
        for module in self.modules():
            if isinstance(module, BatchNorm):
                module.ranks = ranks

    def forget(self) -> None:
        """Release the prepared inputs."""
        self._prepared = None

    def inputs(self, graph: Data, rows: Tensor | None = None) -> Any:
        """The prepared inputs, or those of a new graph; only these rows of hops, or the subgraph of these nodes."""
        prepared = self._prepared
        inputs = prepared[1] if prepared is not None and prepared[0] is graph else self._read(graph)
        return inputs if rows is None else inputs.at(rows)

    def prefetch(self, rows: Callable[[], Tensor]) -> None:
        """Let rows of the prepared hops be read while something else is computed, if they are on a disk."""
        if self._prepared is not None and isinstance(inputs := self._prepared[1], HopInputs):
            inputs.prefetch(rows)

    def _read(self, graph: Data) -> AnyInputs:
        if not isinstance(encoder := self.encoder, Hops):
            return Inputs.of(graph, self.features(graph), alone=encoder.alone)
        if isinstance(graph, StoredGraph):
            reach = (encoder.powers, encoder.steps, encoder.teleport)
            hops = stored_hops(graph, self.preparation, *reach, encoder.stored, self.ranks)
            return HopInputs.on_disk(hops, None if self.ranks.size == 1 else self.ranks.range(graph.num_nodes).start)
        return HopInputs.of(graph, self.features(graph), encoder)

    def features(self, graph: Data) -> Features:
        """X of a graph, scaled and reduced; sparse if that is faster, and only then on the encoder's device."""
        x = self.preparation.apply(graph.x.float())
        return sparse_if_faster(x).to(next(self.encoder.parameters()).device)

    def embed(self, graph: Data) -> Tensor:
        """The vectors: H or, of hops, the codes and columns (:mod:`costa.nn.hops`).

        If several processes hold the graph's rows, the first one gets all vectors and the others their own.
        """
        if isinstance(self.encoder, Hops):
            return torch.cat(list(self.embed_rows(graph)))
        return self.trained_hidden(graph)

    def embed_rows(self, graph: Data) -> Iterator[Tensor]:
        """The vectors, some rows at a time; only those of hops are also computed so."""
        if not isinstance(self.encoder, Hops):
            yield from self.embed(graph).split(ROWS)
            return
        inputs = self.inputs(graph)
        parts = self.encoder.vector_rows(inputs.blocks)
        yield from parts if inputs.first is None else self.ranks.gather(parts, graph.num_nodes, ROWS)

    @torch.no_grad()
    def trained_hidden(self, graph: Data, rows: Tensor | None = None) -> Tensor:
        """H = f(X, A) of the graph without augmentation, or these rows of it, with BatchNorm's running moments."""
        self.eval()
        h = self.hidden(graph, rows)
        self.train()
        return h

    def hidden(self, graph: Data, rows: Tensor | None = None) -> Tensor:
        """H of the graph without augmentation, or these rows of it, in the mode that the encoder is in.

        It is that of the whole graph, whatever ``train.parts`` may be; of a large one by blocks of columns, if no
        gradient is wanted (:meth:`costa.nn.GCN.by_columns`).
        """
        if not isinstance(self.encoder, Hops):
            return select_rows(self._encode_whole(self.inputs(graph)), rows)
        inputs = self.inputs(graph, rows)
        h = self._encode(inputs)
        if inputs.first is None:
            return h
        n = graph.num_nodes if rows is None else len(rows)
        held = self.inputs(graph).held(rows)
        return self.ranks.total(h.new_zeros(n, h.shape[1]).index_copy(0, held, h))

    def _encode_whole(self, inputs: Inputs) -> Tensor:
        """H of a graph, which a GCN or APPNP computes by blocks of columns if it is large."""
        assert isinstance(self.encoder, GCN)
        column = inputs.layout.num_nodes * inputs.adjacency.dtype.itemsize
        if torch.is_grad_enabled() or column * max(self.encoder.widths) < WIDE:
            return self._encode(inputs)
        x, mixed = (inputs.x, False) if inputs.mixed is None else (inputs.mixed, True)
        return self.encoder.by_columns(x, inputs.adjacency, max(16, AT_ONCE // column), mixed=mixed)

    def _encode(self, inputs: AnyInputs, view: View | None = None, encoder: Encoder | None = None) -> Tensor:
        """H of a view, by default of the graph itself; from ``encoder``, by default the method's."""
        view, encoder = view or View(), encoder or self.encoder
        h: Tensor
        if isinstance(inputs, HopInputs):
            h = encoder([block[:] for block in inputs.blocks], view.mask, view.kept)
            return h
        mixed = inputs.mixed if view.adjacency is None else None
        x = inputs.x if mixed is None else mixed
        h = encoder(x, view.adjacency or inputs.adjacency, view.mask, mixed=mixed is not None)
        return h


class Augmenting(EncoderMethod, GradientMethod):
    """A method that trains on augmented views, H = f(X̃, Ã): edges dropped or rewired, attributes masked.

    With ``train.parts`` both views are of the same group of parts. Its edges have the probabilities that they have in
    the whole graph, rewired ones stay in the group, and edges to other groups are missing in that step.

    Args:
        encoder: f, see :class:`costa.nn.GCN` and :class:`costa.nn.Hops`.
        preparation: Feature scaling and reduction.
        augment: Rates of the graph augmentation of each view, and the centrality that weights them.
    """

    takes_hops = True
    takes_parts = True

    def __init__(self, encoder: Encoder, preparation: Preparation, augment: settings.Augment) -> None:
        super().__init__(encoder, preparation)
        self.augment = augment
        self._rates = self._plain_rates()

    @classmethod
    def unused(cls, settings: Any) -> dict[str, str]:
        """Settings of an augmentation are unused if its rate is 0, or the encoder has nothing to take away."""
        augment, unused = settings.augment, super().unused(settings)
        if settings.encoder.kind == "hops":
            keys = ("augment.edges", "augment.edge_rate", "augment.centrality")
            unused |= dict.fromkeys(keys, "encoder.kind = hops trains without edges")
            if len(settings.encoder.powers) + (settings.encoder.steps > 0) == 1:
                unused["augment.hop_rate"] = "a single hop is never left out"
            return unused
        unused["augment.hop_rate"] = f"encoder.kind = {settings.encoder.kind} has no hops"
        if not any(augment.edge_rate):
            unused["augment.edges"] = "augment.edge_rate = 0 leaves the edges as they are"
        if not any(augment.edge_rate + augment.mask_rate):
            unused["augment.centrality"] = "augment.edge_rate and mask_rate = 0 drop nothing"
        return unused

    def prepare(self, graph: Data) -> None:
        """Also compute drop probabilities from centrality, with the graph's X before scaling, or reduced."""
        super().prepare(graph)
        if self.augment.centrality == "none" or self.by_rows:
            return
        x = self.preparation.apply(graph.x.float()) if self.reduction.reduces else graph.x
        assert isinstance(x, Tensor)  # what is reduced is dense
        edges, attributes = weigh(graph.edge_index, x, self.augment.centrality)
        device = next(self.encoder.parameters()).device

        def probability(weight: Tensor, rate: float) -> Rate:
            return drop_probability(weight, rate).to(device, torch.float32) if rate else None

        self._rates = [(probability(edges, e), probability(attributes, m)) for e, m in self._rates_of_views()]

    def forget(self) -> None:
        """Also release the drop probabilities."""
        super().forget()
        self._rates = self._plain_rates()

    def _plain_rates(self) -> list[tuple[Rate, Rate]]:
        return [(edge_rate or None, mask_rate or None) for edge_rate, mask_rate in self._rates_of_views()]

    def _rates_of_views(self) -> list[tuple[float, float]]:
        """(edge rate, mask rate) of each view; a single rate serves both views."""
        return list(zip((self.augment.edge_rate * 2)[:2], (self.augment.mask_rate * 2)[:2], strict=True))

    @property
    def by_rows(self) -> bool:
        """Whether the encoder is one of hops, which needs no edges."""
        return isinstance(self.encoder, Hops)

    def settle(self, graph: Data) -> None:
        """The moments and means of the hops' codes."""
        if isinstance(self.encoder, Hops):
            self.encoder.settle(self.inputs(graph).blocks)

    def encode_view(self, inputs: AnyInputs, view: int) -> Tensor:
        """H of one augmented view."""
        return self._encode(inputs, self.draw_view(inputs, view))

    def draw_view(self, inputs: AnyInputs, view: int) -> View:
        """One augmented view: a mask of the attributes and, for a GCN, Â; for hops, those that stay."""
        edge_rate, mask_rate = self._rates[view]
        adjacency, mask = None, None
        if isinstance(inputs, HopInputs):
            hop_rate = (self.augment.hop_rate * 2)[view]
            if mask_rate is not None:
                mask = mask_attributes(inputs.blocks[0].shape[1], mask_rate, generator=self.generator)
            kept = keep_hops(len(inputs.blocks), hop_rate, self.generator) if hop_rate else None
            return View(mask, kept=kept)
        if isinstance(edge_rate, Tensor) and inputs.entries is not None:
            edge_rate = edge_rate[inputs.entries]  # centralities are those of the whole graph
        if edge_rate is not None and self.augment.edges == "drop":
            adjacency = inputs.layout.normalized(keep_mask(inputs.edge_ids, edge_rate, self.generator))
        elif edge_rate is not None:
            n = inputs.layout.num_nodes
            assert isinstance(edge_rate, float)
            edge_index, edge_weight = permute_edges(
                inputs.edge_index, edge_rate, num_nodes=n, edge_weight=inputs.edge_weight, generator=self.generator
            )
            adjacency = Adjacency(edge_index, n, edge_weight).normalized()
        if mask_rate is not None:
            mask = mask_attributes(inputs.x.shape[1], mask_rate, generator=self.generator)
        return View(mask, adjacency)

    @property
    def capturable(self) -> bool:
        """Rewiring reads the number of edges from the GPU, and several processes wait for each other."""
        return self.ranks.size == 1 and (self.by_rows or not self.augment.rewires)


class TwoViews(Augmenting):
    """A method of two views, H₁ = f(X₁, A₁) and H₂ = f(X₂, A₂)."""

    views = 2

    def encode_both(self, graph: Data, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """H₁ and H₂, or these rows of them, with fresh draws."""
        inputs = self.inputs(graph, rows)
        return self.encode_view(inputs, 0), self.encode_view(inputs, 1)
