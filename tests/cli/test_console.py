"""Lines, tables, numbers, the progress bar, and how a mistake ends a command."""

import errno
import os
import signal
import subprocess

import pytest
import typer

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
