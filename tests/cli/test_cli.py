"""The command line as a whole: its help, its names, how soon it is there."""

import shutil
import subprocess
import sys

import pytest
from typer.main import get_command

from costa.cli import app

COMMANDS = [command.callback.__name__ for command in app.registered_commands]


def test_help_is_quick_to_read_and_names_every_command(command):
    shown = subprocess.run([command, "--help"], capture_output=True, text=True, check=True).stdout
    for name in COMMANDS:
        assert f"\n  {name} " in shown
    assert "Start with `costa demo`" in " ".join(shown.split())


def test_help_does_not_wait_for_torch():
    code = "import sys, costa.cli; assert 'torch' not in sys.modules and 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("costa tra", ["train"]),
        ("costa train amazon-", ["amazon-computers", "amazon-photo"]),
        ("costa train cora --method costa-", ["costa-mv", "costa-sv"]),
        ("costa train ./somewhere", []),
    ],
)
def test_a_shell_completes_commands_graphs_and_methods(costa, monkeypatch, typed, offered):
    monkeypatch.setenv("_COSTA_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    assert sorted(costa().out.split()) == offered


def test_python_m_costa_is_the_same_command():
    shown = subprocess.run([sys.executable, "-m", "costa", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("costa 0.")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(costa, name):
    result = costa(name, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: costa {name} [OPTIONS]")
    assert all(parameter.help for parameter in get_command(app).commands[name].params)


@pytest.mark.parametrize("name", ["embed", "probe", "report", "train"])
def test_a_run_of_a_newer_version_is_told_from_a_damaged_one(digits_run, costa, tmp_path, name):
    run = shutil.copytree(digits_run, tmp_path / "run")
    (run / "config.json").write_text('{"schema": 2}')
    more = {"embed": ["digits", "--out", tmp_path / "z.npy"], "train": ["digits", "--resume", "--out", run]}
    result = costa(name, *([] if name == "train" else [run]), *more.get(name, []))
    assert result.code == 2
    assert result.err == (
        f"costa: {run / 'config.json'} was written by a newer version of costa (schema 2; this version reads 1);"
        " update costa.\n"
    )
