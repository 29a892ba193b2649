"""A Ctrl-C stops after the epoch that is running."""

import os
import signal
import threading

import pytest

from costa import training


@pytest.fixture
def interrupts_arrive():
    """A test run in the background may have been started with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts_arrive")
def test_the_first_interrupt_waits_for_the_epoch_and_the_second_does_not():
    heard = []
    with training.stop_on_interrupt(then=lambda: heard.append("asked")) as should_stop:
        assert not should_stop()
        os.kill(os.getpid(), signal.SIGINT)
        assert should_stop()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert heard == ["asked"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interrupts_arrive")
def test_torchrun_repeats_an_interrupt_and_that_changes_nothing():
    with training.stop_on_interrupt(patient=True) as should_stop:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert should_stop()
    os.kill(os.getpid(), signal.SIGINT)  # while the results are written


@pytest.mark.usefixtures("interrupts_arrive")
def test_another_thread_than_the_main_one_leaves_interrupts_alone():
    seen = []

    def train():
        with training.stop_on_interrupt() as should_stop:
            seen.extend([should_stop(), signal.getsignal(signal.SIGINT)])

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert seen == [False, signal.default_int_handler]
