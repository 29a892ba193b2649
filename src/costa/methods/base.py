"""The interface of a method: build → prepare(graph) → loss(graph) each epoch → embed(graph).

A method without gradients implements ``fit(graph)`` instead of ``loss``. Methods know nothing of files or labels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from costa.errors import InputError
from costa.nn import choose_scaling
from costa.nn.ranks import ALONE, Ranks


class Method(nn.Module):
    """Base of all methods.

    ``costa methods`` shows the class attributes ``name``, ``title``, ``paper`` and ``year``. ``Settings`` is the frozen
    dataclass of the settings; ``inductive`` says whether :meth:`embed` takes a graph the method was not trained on,
    ``random`` whether the vectors depend on the seed, ``views`` how many views of the graph are augmented,
    ``scheduled`` whether an epoch depends on the total number of epochs, and ``takes_parts`` whether a step may read
    the subgraph of some of the nodes, ``loss(graph, nodes)``.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    year: ClassVar[int | None] = None
    inductive: ClassVar[bool] = True
    random: ClassVar[bool] = True
    views: ClassVar[int] = 1
    scheduled: ClassVar[bool] = False
    takes_parts: ClassVar[bool] = False
    Settings: ClassVar[type]

    generator: torch.Generator
    """Draws the random numbers of :meth:`loss`; on the method's device, set by the training loop."""
    ranks: Ranks = ALONE
    """The processes that train the method together, see :meth:`join`."""

    @property
    def code_columns(self) -> int | None:
        """How many columns of a vector are trained, the first ones; None if all are."""
        return None

    @classmethod
    def build(cls, settings: Any, in_features: int, generator: torch.Generator | None = None) -> Method:
        """The method with new weights, drawn from ``generator`` (on the CPU, whatever the device)."""
        raise NotImplementedError

    @classmethod
    def choose(cls, graph: Data, settings: Any = None, given: Collection[str] = ()) -> dict[str, Any]:
        """Settings chosen from the graph, without labels; they override defaults, presets and users override them.

        ``settings`` are all settings without that choice, the defaults if None; ``given`` are the keys that a preset or
        the user decides.
        """
        return {"features.scaling": choose_scaling(graph.x)}

    @classmethod
    def citation(cls) -> str:
        """The paper, and its year if there is one; a baseline has none."""
        return f"{cls.paper}, {cls.year}" if cls.year else cls.paper

    @property
    def unresumable(self) -> str | None:
        """Why weights, optimiser and generator are not enough for a checkpoint; None if they are."""
        return None

    @property
    def unsplittable(self) -> str | None:
        """Why several processes cannot train the method together; None if they can."""
        return "only costa-sv and costa-mv can be split"

    def join(self, ranks: Ranks) -> None:
        """Train as one of several processes, before :meth:`prepare`."""
        if ranks.size > 1 and self.unsplittable is not None:
            raise InputError(f"several processes cannot train this {self.name}: {self.unsplittable}; start one.")
        self.ranks = ranks

    @classmethod
    def unused(cls, settings: Any) -> dict[str, str]:
        """Settings that other settings make unused, each with the reason; setting one of them is an error."""
        return {}

    def prepare(self, graph: Data) -> None:
        """Compute what stays the same from epoch to epoch."""

    def share(self, other: Method) -> None:
        """Take over what another seed of the method has prepared, if that is large; :meth:`prepare` follows."""

    def forget(self) -> None:
        """Release what was prepared: a model that outlives its training should not keep the graph in memory."""

    def fit(self, graph: Data) -> None:
        """Fit a method that has no loss."""

    def embed(self, graph: Data) -> Tensor:
        """The nodes' vectors, n × d; dense, except that ``raw`` leaves sparse features sparse (CSR)."""
        raise NotImplementedError

    def embed_rows(self, graph: Data) -> Iterator[Tensor]:
        """The same vectors, some rows at a time if the method can, so that they need not be in memory at once."""
        yield self.embed(graph)


class GradientMethod(Method):
    """A method that descends a loss."""

    @property
    def capturable(self) -> bool:
        """Whether an epoch is the same sequence of CUDA kernels every time, and never waits for the GPU."""
        return False

    def loss(self, graph: Data) -> Tensor:
        """The loss of one step, on fresh random draws.

        If :attr:`by_rows`, it takes the rows of a batch too; if ``takes_parts``, nodes in ascending order, whose
        subgraph it reads in place of the graph.
        """
        raise NotImplementedError

    @property
    def by_rows(self) -> bool:
        """Whether :meth:`loss` takes the rows of a batch: ``loss(graph, rows)``."""
        return False

    def prefetch(self, rows: Callable[[], Tensor]) -> None:
        """Let what :meth:`loss` reads of the next step's rows be read from a disk while this step computes."""

    def settle(self, graph: Data) -> None:
        """Compute what belongs to the trained weights, from the whole graph; called when training ends."""

    after_step: Callable[[], None] | None = None
    """Called after each step of the optimiser, for example to update a momentum encoder; None for most methods."""
