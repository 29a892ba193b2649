"""Watch the vectors while they are trained, without labels, and step in before they collapse.

After 1, 2, 4, 8 and 16 epochs, after every 32nd and after the last, H of the graph without augmentation is compared
with H₀ of the untrained encoder, by effective rank r and mean cosine c (:mod:`costa.nn.spectrum`):

- They are fine if r ≥ min(6, r₀/2) and 1 − c ≥ (1 − c₀)/100. Training remembers this place.
- They are dying if r or 1 − c is below half of that and the untrained encoder has as low a loss on the same draws; or,
  whatever the loss, if they reach a line, r < 2, or one direction, 1 − c < 10⁻⁶, and did not when last fine.

If they are dying, training goes back to where they were last fine, with a tenth of the weight decay. If that was done
twice, or there is no weight decay, it ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from costa.methods.base import GradientMethod
from costa.nn.spectrum import LINE, ROWS, effective_rank, mean_cosine, participation
from costa.training.state import load_state, state_of

Hidden = Callable[[Data, Tensor], Tensor]
"""H of these rows of a graph, without augmentation."""

EVERY = 32
"""Epochs between two checks; the first ones are closer."""
APART = 1e-6
"""Vectors with a lower 1 − c all point the same way."""
RANK = 6.0
"""The r of vectors that are fine, unless r₀ is less than twice that."""
RANK_LEFT = 0.5
"""Share of r₀ that is fine."""
APART_LEFT = 0.01
"""Share of 1 − c₀ that is fine."""
LOWER = 10
"""What the weight decay is divided by."""
MOST = 2
"""How often it is."""


def next_check(epochs: int) -> int:
    """The first check after this many epochs.

    >>> [next_check(epochs) for epochs in (0, 1, 5, 16, 32, 33)]
    [1, 2, 8, 32, 64, 64]
    """
    return 1 << epochs.bit_length() if epochs < EVERY else (epochs // EVERY + 1) * EVERY


@dataclass(frozen=True)
class Watched:
    """What the watch changed.

    Attributes:
        weight_decay: The weight decay at the end.
        since_epoch: The number of epochs after which it was lowered; 0 if it was not.
        stopped: Whether training ended early, at the last epoch that was fine.
    """

    weight_decay: float
    since_epoch: int
    stopped: bool

    def __str__(self) -> str:
        """The sentence for the user, without its full stop."""
        if self.stopped:
            return "the vectors were about to collapse, so training stopped at the last epoch where they were not"
        return (
            "the vectors were about to collapse, so training went back and goes on from epoch"
            f" {self.since_epoch} with train.weight_decay = {self.weight_decay:g}"
        )


@dataclass(frozen=True)
class Spread:
    """Effective rank, and one minus the mean cosine."""

    rank: float
    apart: float


class Watch:
    """The watch over one seed.

    It draws nothing and leaves no trace in the method, so a training where it never steps in has the same bits
    without it.

    Args:
        method: A prepared method with its first weights, in training mode.
        hidden: Its H, see :meth:`costa.methods.encoding.EncoderMethod.hidden`.
        optimizer: Its optimiser.
        graph: The graph that it was prepared for.
    """

    def __init__(self, method: GradientMethod, hidden: Hidden, optimizer: torch.optim.Optimizer, graph: Data) -> None:
        self._method, self._hidden, self._graph = method, hidden, graph
        step = max(1, -(-graph.num_nodes // ROWS))
        self._rows = torch.arange(0, graph.num_nodes, step, device=next(method.parameters()).device)
        self._untrained = {key: value.clone() for key, value in method.state_dict().items()}
        self.changed: Watched | None = None
        self.epochs = 0
        """Epochs when the vectors were last fine."""
        self._weight_decay: float = optimizer.param_groups[0]["weight_decay"]
        self._lowered = 0
        self._state = state_of(method, optimizer)
        self._first = self._last = self._measure(RANK / RANK_LEFT)

    @property
    def stopped(self) -> bool:
        """Whether training ends where :meth:`go_back` goes."""
        return self.changed is not None and self.changed.stopped

    def check(self, epochs: int, optimizer: torch.optim.Optimizer, loss: Callable[[], Tensor]) -> bool:
        """Whether training may go on after so many epochs; otherwise :meth:`go_back` must follow.

        ``loss`` is the loss of the next step.
        """
        if self._first is None:
            return True
        spread = self._measure(max(LINE, _fine_rank(self._first)))
        if spread is None:
            return True  # what is not finite has diverged, which the loop finds out itself
        if self._is_dying(spread, loss):
            self._step_in()
            return False
        if _is_above(1.0, spread, self._first):
            self.epochs, self._last, self._state = epochs, spread, state_of(self._method, optimizer)
        return True

    def go_back(self, optimizer: torch.optim.Optimizer) -> None:
        """Go back to where the vectors were last fine, with the weight decay of now."""
        load_state(self._state, self._method, optimizer)
        self._set_weight_decay(optimizer)

    def memory(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What a checkpoint must hold: values for JSON, and tensors."""
        values = {
            "epochs": self.epochs,
            "weight_decay": self._weight_decay,
            "lowered": self._lowered,
            "first": self._first and asdict(self._first),
            "last": self._last and asdict(self._last),
            "changed": self.changed and asdict(self.changed),
        }
        return values, self._state

    def recall(self, values: Mapping[str, Any], state: Mapping[str, Tensor], optimizer: torch.optim.Optimizer) -> None:
        """The inverse of :meth:`memory`; also sets the optimiser's weight decay."""
        device = self._rows.device
        self.epochs, self._weight_decay, self._lowered = values["epochs"], values["weight_decay"], values["lowered"]
        self._first, self._last = (values[key] and Spread(**values[key]) for key in ("first", "last"))
        self.changed = values["changed"] and Watched(**values["changed"])
        # a generator's state is on the CPU whatever its device
        self._state = {key: value if key == "generator" else value.to(device) for key, value in state.items()}
        self._set_weight_decay(optimizer)

    def _set_weight_decay(self, optimizer: torch.optim.Optimizer) -> None:
        for group in optimizer.param_groups:
            group["weight_decay"] = self._weight_decay

    def _step_in(self) -> None:
        since = self.changed.since_epoch if self.changed else 0
        if self._weight_decay > 0 and self._lowered < MOST:
            self._weight_decay /= LOWER
            self._lowered += 1
            self.changed = Watched(self._weight_decay, self.epochs, stopped=False)
        else:
            self.changed = Watched(self._weight_decay, since, stopped=True)

    def _is_dying(self, now: Spread, loss: Callable[[], Tensor]) -> bool:
        first, last = self._first, self._last
        assert first is not None
        assert last is not None
        if now.rank < LINE <= last.rank or now.apart < APART <= last.apart:
            return True
        return not _is_above(0.5, now, first) and not self._beats_untrained(loss)

    @torch.no_grad()
    def _measure(self, enough: float) -> Spread | None:
        """The spread of H; None if it is not finite. A lower bound serves as the rank if it is ``enough``."""
        with _forgetful(self._method):
            h = self._hidden(self._graph, self._rows)
        if not bool(h.isfinite().all()):
            return None
        bound = participation(h)
        rank = bound if bound >= enough else effective_rank(h)
        return Spread(*self._method.ranks.agree(rank, 1 - mean_cosine(h)))

    @torch.no_grad()
    def _beats_untrained(self, loss: Callable[[], Tensor]) -> bool:
        """Whether the loss is below that of the first weights on the same draws."""
        method, draws = self._method, self._method.generator.get_state()
        weights = {key: value.clone() for key, value in method.state_dict().items()}
        losses = []
        for each in (weights, self._untrained):
            method.load_state_dict(each)
            method.generator.set_state(draws)
            with _forgetful(method):
                losses.append(float(loss()))
        method.load_state_dict(weights)
        method.generator.set_state(draws)
        trained, untrained = method.ranks.agree(*losses)
        return trained < untrained


def _is_above(share: float, now: Spread, first: Spread) -> bool:
    """Whether the vectors have at least this share of what is fine."""
    return now.rank >= share * _fine_rank(first) and now.apart >= share * APART_LEFT * first.apart


def _fine_rank(first: Spread) -> float:
    return min(RANK, RANK_LEFT * first.rank)


@contextmanager
def _forgetful(method: nn.Module) -> Iterator[None]:
    """BatchNorm reads the moments of the rows that it is given, and its running moments stay as they are."""
    norms = [module for module in method.modules() if isinstance(module, nn.BatchNorm1d)]
    for norm in norms:
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True
