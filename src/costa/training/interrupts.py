"""Stop after the current epoch."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def stop_on_interrupt(
    then: Callable[[], None] = lambda: None, *, patient: bool = False
) -> Iterator[Callable[[], bool]]:
    """Inside this block, the first Ctrl-C stops training after the current epoch and a second one stops at once.

    An interrupt in the middle of an optimiser's step would leave weights that belong to no epoch. ``then`` is called
    at the first one. If ``patient``, later ones change nothing, even after the block: torchrun passes on a Ctrl-C that
    the terminal has already sent to every process, and kills what takes longer than half a minute.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    interrupted = threading.Event()
    default = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: object) -> None:
        interrupted.set()
        then()
        if not patient:
            signal.signal(signal.SIGINT, default)

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted.is_set
    finally:
        if not (patient and interrupted.is_set()):
            signal.signal(signal.SIGINT, default)
