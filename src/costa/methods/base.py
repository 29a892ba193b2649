"""What a method is: build → prepare(graph) → loss(graph) each epoch → embed(graph).

A method without gradients implements ``fit(graph)`` instead of ``loss``. It knows no file, no dataset and no label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from costa import settings
from costa.augment.streams import Streams, as_list
from costa.augment.topology import edge_ids
from costa.nn import GCN, Adjacency, FeatureScaling, ProjectionHead, SparseMatrix, choose_scaling, sparse_if_faster


class Method(nn.Module):
    """Base of all methods.

    Class attributes say what ``costa methods`` shows: ``name``, ``title``, ``paper`` and ``year``; ``Settings`` is the
    frozen dataclass of its settings; ``inductive`` says whether :meth:`embed` takes a graph it was not trained on,
    ``random`` whether its vectors depend on the seed, ``views`` how many views of the graph it augments, ``scheduled``
    whether an epoch depends on how many there will be.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    year: ClassVar[int | None] = None
    inductive: ClassVar[bool] = True
    random: ClassVar[bool] = True
    views: ClassVar[int] = 1
    scheduled: ClassVar[bool] = False
    Settings: ClassVar[type]

    STACKED: ClassVar[tuple[str, ...]] = ("encoder", "head")
    """The parts that differ between initialisations; what is learnt from the graph alone is shared."""

    generator: Streams
    """Draws what is random in :meth:`loss`; lives on the method's device, set by the training loop."""

    stack_size: int = 0
    """How many initialisations these weights hold, one after the other along a first dimension; 0 for a single one."""

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> Method:
        """The method with fresh weights, drawn from ``generator`` (on the CPU, whatever the device)."""
        raise NotImplementedError

    @classmethod
    def choose(cls, graph: Data) -> dict[str, Any]:
        """Settings chosen from the graph, without labels: over the defaults, under presets and the user's own."""
        return {"features.scaling": choose_scaling(graph.x)}

    @classmethod
    def citation(cls) -> str:
        """Paper and year; a floor has none."""
        return f"{cls.paper}, {cls.year}" if cls.year else cls.paper

    @property
    def unresumable(self) -> str | None:
        """Why weights, optimiser and generator are not all that a checkpoint would need; None where they are."""
        return None

    @classmethod
    def unused(cls, settings: Any) -> dict[str, str]:
        """Settings that others make idle, with the reason: a user who asks for one of them should hear so."""
        return {}

    def prepare(self, graph: Data) -> None:
        """Compute what stays the same from epoch to epoch."""

    def forget(self) -> None:
        """Let go of what was prepared: a model that outlives its training should not hold on to the graph."""

    def fit(self, graph: Data) -> None:
        """Fit a method that has no loss."""

    def embed(self, graph: Data) -> Tensor:
        """The nodes' vectors, n × d."""
        raise NotImplementedError


class GradientMethod(Method):
    """A method that descends a loss."""

    @property
    def capturable(self) -> bool:
        """Whether an epoch is the same sequence of CUDA kernels every time, and never waits for the GPU."""
        return False

    @property
    def stackable(self) -> bool:
        """Whether :meth:`loss` takes stacked weights: one number for each initialisation, as each would give alone."""
        return False

    def loss(self, graph: Data) -> Tensor:
        """The loss of one epoch, on fresh random draws."""
        raise NotImplementedError

    def after_step(self) -> None:
        """What follows the optimiser's step (a momentum encoder, say)."""


@dataclass(frozen=True)
class Inputs:
    """A graph as the encoder reads it, on the encoder's device.

    ``mixed`` is the normalised Â times X, where X is dense: what a GCN's first layer reads of an unperturbed graph.
    Of a sparse X it has more non-zeros than X and Â together (Cora: 181,116 against 62,480): two products are quicker.
    """

    x: Tensor | SparseMatrix
    mixed: Tensor | None
    layout: Adjacency
    adjacency: SparseMatrix
    edge_index: Tensor
    edge_weight: Tensor | None
    edge_ids: Tensor

    @classmethod
    def of(cls, graph: Data, scaling: FeatureScaling, device: torch.device, *, alone: bool = False) -> Inputs:
        """Scale X, make it sparse where that is faster, lay out Â. X is moved only then: sparse, it is far smaller.

        Layers that look at each node ``alone`` never read Â times X.
        """
        edge_index = graph.edge_index.to(device)
        edge_weight = graph.edge_weight.to(device) if graph.get("edge_weight") is not None else None
        layout = Adjacency(edge_index, graph.num_nodes, edge_weight)
        adjacency = layout.normalized()
        x = sparse_if_faster(scaling(graph.x.float())).to(device)
        return cls(
            x=x,
            mixed=adjacency @ x if isinstance(x, Tensor) and not alone else None,
            layout=layout,
            adjacency=adjacency,
            edge_index=edge_index,
            edge_weight=edge_weight,
            edge_ids=edge_ids(edge_index, graph.num_nodes),
        )


class EncoderMethod(Method):
    """A method whose vectors are the output of one encoder: feature scaling, then the GCN."""

    def __init__(self, encoder: GCN, scaling: FeatureScaling) -> None:
        super().__init__()
        self.encoder = encoder
        self.scaling = scaling
        self._prepared: tuple[Data, Inputs] | None = None

    @classmethod
    def unused(cls, settings: Any) -> dict[str, str]:
        """Of one layer none is hidden; without steps there is nowhere to go back from; no head has an activation."""
        encoder, idle = settings.encoder, {}
        if hasattr(encoder, "hidden") and encoder.layers == 1:
            idle["encoder.hidden"] = "encoder.layers = 1 leaves no layer before the last"
        if hasattr(encoder, "steps") and encoder.steps == 0:
            idle["encoder.teleport"] = "encoder.steps = 0 takes no step"
        if hasattr(settings, "head") and settings.head.width == 0:
            idle["head.activation"] = "head.width = 0 leaves the head out"
        return idle

    def prepare(self, graph: Data) -> None:
        """Learn the feature scaling, lay out the graph."""
        self.scaling.fit(graph.x)
        self._prepared = (graph, self._read(graph))

    def forget(self) -> None:
        """Let go of the prepared inputs."""
        self._prepared = None

    def inputs(self, graph: Data) -> Inputs:
        """The prepared inputs, or those of a graph not seen before."""
        if self._prepared is not None and self._prepared[0] is graph:
            return self._prepared[1]
        return self._read(graph)

    def _read(self, graph: Data) -> Inputs:
        device = next(self.encoder.parameters()).device
        return Inputs.of(graph, self.scaling, device, alone=self.encoder.alone)

    @torch.no_grad()
    def embed(self, graph: Data) -> Tensor:
        """H = f(X, A) of the graph as it is, nothing dropped or masked."""
        inputs = self.inputs(graph)
        self.eval()
        h = self._encode(inputs, inputs.adjacency, None)
        self.train()
        return h

    def _encode(
        self, inputs: Inputs, adjacency: SparseMatrix, mask: Tensor | None, encoder: GCN | None = None
    ) -> Tensor:
        """H by ``encoder``, or by the method's own."""
        mixed = inputs.mixed if adjacency is inputs.adjacency else None
        x = inputs.x if mixed is None else mixed
        h: Tensor = (encoder or self.encoder)(x, adjacency, mask, mixed=mixed is not None)
        return h


def stack(shell: Method, methods: Sequence[Method]) -> Method:
    """``shell`` with the weights and the generators of all ``methods``, stacked: S initialisations in one.

    Args:
        shell: Built from the same settings; it is changed and returned.
        methods: The S methods.
    """
    states = [dict(_own_tensors(method)) for method in methods]
    for name, tensor in _own_tensors(shell):
        tensor.data = torch.stack([state[name].detach() for state in states])
    shell.generator = [generator for method in methods for generator in as_list(method.generator)]
    shell.stack_size = len(methods)
    return shell


def state_of(method: Method, index: int) -> dict[str, Tensor]:
    """The ``state_dict`` of one of the stacked initialisations; of a single method, its own."""
    state: dict[str, Tensor] = method.state_dict()
    if not method.stack_size:
        return state
    own = {name for name, _ in _own_tensors(method)}
    return {name: tensor[index] if name in own else tensor for name, tensor in state.items()}


def _own_tensors(method: Method) -> list[tuple[str, Tensor]]:
    tensors = [*method.named_parameters(), *method.named_buffers()]
    return [(name, tensor) for name, tensor in tensors if name.split(".")[0] in method.STACKED]


def build_encoder(
    encoder: settings.Encoder, in_features: int, generator: torch.Generator | None, *, linear: bool = False
) -> GCN:
    """The encoder from its settings; ``linear`` leaves σ and normalisation out of the last layer."""
    return GCN(
        in_features,
        encoder.widths,
        activation=encoder.activation,
        norm=encoder.norm,
        linear=linear,
        alone=encoder.kind == "appnp",
        steps=encoder.steps,
        teleport=encoder.teleport,
        generator=generator,
    )


def build_head(head: settings.Head, width: int, generator: torch.Generator | None) -> nn.Module:
    """The projection head for vectors of that width from its settings; nothing at all where it has no width."""
    return ProjectionHead(width, head.width, head.activation, generator) if head.width else nn.Identity()
