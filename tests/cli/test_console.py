"""Lines, tables, numbers, the progress bar, and how a mistake ends a command."""

import errno
import io
import os
import signal
import subprocess
import threading

import pytest
import typer
from rich.console import Console

from costa.cli import console
from costa.errors import InputError


def ends_with(problem):
    """An app with one command, which raises this."""
    app = typer.Typer()

    @app.command()
    def fail():
        raise problem

    return app


@pytest.fixture
def run(monkeypatch):
    """Run an app without arguments, and leave the handler of SIGTERM as it was."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("sys.argv", ["costa"])
    yield lambda problem: console.run_app(ends_with(problem), "costa", "use a larger machine")
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (InputError("the graph has no edges; add some."), "the graph has no edges; add some."),
        (OSError(errno.ENOSPC, "No space left on device", "run/x"), "run/x: No space left on device; check the path"),
        (MemoryError(), "there is not enough memory for this; use a larger machine."),
    ],
)
def test_a_mistake_is_one_sentence_and_code_2(run, capsys, problem, says):
    with pytest.raises(SystemExit) as stop:
        run(problem)
    assert stop.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"costa: {says}")
    assert shown.count("\n") == 1


def test_an_error_of_our_own_is_not_hidden(run):
    with pytest.raises(RuntimeError, match="shapes do not match"):
        run(RuntimeError("shapes do not match"))


def test_a_long_line_stays_whole_in_a_file(capsys):
    console.say("word " * 60)
    assert capsys.readouterr().out.count("\n") == 1


def test_a_note_is_printed_if_there_is_one(capsys):
    console.note(None)
    assert capsys.readouterr().out == ""
    console.note("few labels")
    assert capsys.readouterr().out == "  Note: few labels.\n"


def test_work_that_takes_long_is_said_on_standard_error(capsys, monkeypatch):
    with console.busy("Counting"):
        pass
    assert capsys.readouterr() == ("", "")
    said, heard = threading.Event(), io.StringIO()
    heard.flush = said.set
    monkeypatch.setattr(console.sys, "stderr", heard)
    monkeypatch.setattr(console, "LONG", 0.0)
    with console.busy("Counting"):
        assert said.wait(10)
    assert heard.getvalue() == "Counting …\n"
    assert capsys.readouterr().out == ""


def test_with_quiet_only_results_are_printed(capsys):
    with console.results_only():
        console.tell("on the way")
        console.say_stage("a stage")
        console.tell_table(("a",), [("b",)])
        console.say("a result")
    assert capsys.readouterr().out == "a result\n"
    console.tell("on the way")
    assert capsys.readouterr().out == "on the way\n"


def test_a_table_aligns_numbers_to_the_right(capsys):
    console.print_table(("name", "count"), [["a", "1"], ["bb", "1,000"]], right=("count",))
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        " name  count",
        " a         1",
        " bb    1,000",
    ]


def test_an_interrupt_says_where_the_results_are(capsys, tmp_path):
    with pytest.raises(typer.Exit) as stop, console.kept_on_interrupt(tmp_path):
        raise KeyboardInterrupt
    assert stop.value.exit_code == 130
    assert f"The results so far are in {tmp_path}{os.sep}; run the same command" in capsys.readouterr().out


def test_a_stage_is_one_line_in_a_file_if_it_is_short(capsys):
    for share in (0, 0.2, 0.5, 1):
        console.say_stage("Reading …", share)
    assert capsys.readouterr().out == "Reading …\n"


def test_a_long_stage_says_now_and_then_what_is_done(capsys, monkeypatch):
    now = iter([0, 10, 29, 40, 60, 69, 71, 100])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(now))
    for share in (0, 0.1, 0.2, 0.4, 0.5, 0.6, 0.8, 1):
        console.say_stage("Reading …", share)
    assert capsys.readouterr().out.splitlines() == ["Reading …", "  40% done, 60 s left", "  80% done, 18 s left"]


@pytest.fixture
def terminal(monkeypatch):
    """What is shown on a terminal."""
    shown = io.StringIO()
    monkeypatch.setattr(console, "console", Console(file=shown, force_terminal=True, width=100, highlight=False))
    monkeypatch.setattr(console, "REWRITTEN_EVERY", 0)
    return shown


def test_on_a_terminal_the_line_is_rewritten_and_vanishes(terminal):
    for share in (0, 0.25, 0.5, 1):
        console.say_stage("Reading …", share)
    console.say_stage("Laying out …")
    console.say_stage("Laying out …", 0.5)
    console.say("done")
    lines = terminal.getvalue().split("\n")
    assert [line.split("\r\x1b[2K")[-1] for line in lines] == ["Reading …", "Laying out …", "done", ""]
    rewritten = [part[: part.find(" done")] for part in lines[1].split("\r\x1b[2K")]
    assert rewritten[:2] == ["  25%", "  50%"]


def test_the_last_line_of_a_terminal_is_the_bars(terminal):
    with console.progress_bar("seed 0", 1) as report:
        console.say_stage("Propagating …")
        console.say_stage("Propagating …", 0.25)
        console.say_stage("Propagating …", 1)
        report(0.5, 2.0)
    last = terminal.getvalue().strip().split("\n")[-2]
    assert "seed 0" in last
    assert "50%" in last
    assert "\r\x1b[2K  25%" not in terminal.getvalue()


def test_training_says_what_is_done_in_a_file(capsys, monkeypatch):
    now = iter([100, 101, 140, 141, 200])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(now))
    with console.progress_bar("seed 3", 2) as report:
        for epochs in (1.0, 1.5, 1.75, 2.0):  # resumed after an epoch
            report(epochs, 2.0)
    assert capsys.readouterr().out == "  75% done of seed 3, loss 2.0000, 40 s left\n"


def test_progress_shows_loss_rate_and_time_left_on_a_terminal_only(tmp_path, command):
    import pty

    arguments = [command, "train", "digits", "--epochs", "30", "--no-probe", "--set", "sketch.k=100", "--out"]
    quiet = subprocess.run([*arguments, tmp_path / "a"], capture_output=True, text=True, check=True)
    assert "epochs/s" not in quiet.stdout

    shown = b""
    leader, follower = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen([*arguments, tmp_path / "b"], stdout=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        while True:
            try:
                chunk = os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            shown += chunk
    os.close(leader)
    assert process.returncode == 0
    assert b"epochs/s" in shown
    assert b"loss" in shown
    assert b"30/30" in shown
