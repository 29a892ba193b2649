"""Train a method: build it from a seed, run its epochs, keep checkpoints.

``loop`` trains, ``steps`` runs epochs (captured on CUDA), ``state`` is what they go on from, ``checkpoints`` keeps and
finds it, ``watch`` steps in before vectors collapse, ``falling`` says whether the loss fell, ``lines`` how far it is,
``interrupts`` turns a Ctrl-C into a stop after the current epoch, ``devices`` says where to compute, and
``distributed`` how several processes train one method.
"""

from costa.training.capture import make_steps
from costa.training.checkpoints import CHECKPOINT, read_progress
from costa.training.devices import make_deterministic, resolve_device, tensor_float
from costa.training.distributed import joined, restarted, started
from costa.training.expected import expected_seconds, step_seconds
from costa.training.falling import FLAT, loss_fell
from costa.training.interrupts import stop_on_interrupt
from costa.training.lines import progress_lines
from costa.training.loop import LOG, Outcome, Report, build, prepare, train, train_and_embed, train_together
from costa.training.steps import Steps
from costa.training.watch import Watched
