"""Methods from outside the package, registered or found by an entry point; what the page on adding one says is run."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch

from costa import methods
from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.methods.base import GradientMethod, Method
from costa.methods.baselines import Raw, RawSettings
from costa.settings import presets
from costa.tuning import jobs
from costa.tuning import study as studies

LOOK_UP = methods._entry_points.__wrapped__
PAGE = (Path(__file__).parents[2] / "docs" / "adding-a-method.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture(autouse=True)
def nobody(monkeypatch):
    """As in an environment where nothing else is installed; what a test brings is gone after it."""
    monkeypatch.setattr(methods, "_registered", {})
    monkeypatch.setattr(methods, "_entry_points", tuple)


@pytest.fixture
def installed(monkeypatch):
    """Entry points, as if packages had brought them: installed("toy = package:Toy", …)."""

    def install(*lines):
        entries = tuple(EntryPoint(*line.split(" = "), methods.GROUP) for line in lines)
        monkeypatch.setattr(methods, "_entry_points", lambda: entries)

    return install


def named(name, base=Raw, **members):
    return type("Own", (base,), {"name": name, **members})


def test_a_registered_method_is_one_of_them():
    own = methods.register(named("own"))
    assert methods.get_method("own") is own
    assert methods.method_names() == [*methods.METHODS, "own"]
    assert methods.get_method("raw") is Raw


def test_a_cell_that_is_run_twice_registers_its_later_class():
    first, second = methods.register(named("own")), methods.register(named("own"))
    assert methods.get_method("own") is second is not first


def test_names_are_listed_without_an_import(installed):
    installed("zebra = no.such.package:Zebra", "ape = no.such.package:Ape", "raw = no.such.package:Raw")
    assert methods.method_names() == [*methods.METHODS, "ape", "zebra"]
    assert methods.get_method("costa-sv").name == "costa-sv"
    with pytest.raises(InputError, match=r"unknown method 'GRACE' \(did you mean 'grace'\?\);"):
        methods.get_method("GRACE")
    with pytest.raises(InputError, match=r"unknown method 'bee'; there are: costa-sv, .*untrained, ape, zebra\."):
        methods.get_method("bee")


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (named("grace"), r"two methods are called 'grace', costa.methods.grace:GRACE and .*:Own; rename or remove"),
        (type("Other", (Raw,), {"name": "taken"}), r"two methods are called 'taken', .*:Own and .*:Other; rename"),
        (RawSettings, r"<class 'costa.methods.baselines.RawSettings'> is not a method; give a class that derives"),
        (Raw.build, r"is not a method; give a class"),
        (type("Bare", (Method,), {"name": "bare"}), r"the method .*:Bare lacks .* attributes title, paper, Settings;"),
        (
            named("loose", type("L", (Raw, GradientMethod), {})),
            r"baselines:RawSettings has no group train,",
        ),
    ],
)
def test_what_is_no_method_or_has_a_name_that_is_taken_is_refused(cls, message):
    methods.register(named("taken"))
    before = methods.method_names()
    with pytest.raises(InputError, match=message):
        methods.register(cls)
    assert methods.method_names() == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "own = no.such.package:Own",
            r"the entry point own = no.such.package:Own .*ModuleNotFoundError: No module named 'no'.* uninstall it",
        ),
        ("own = costa.methods.baselines:Row", r"cannot be imported \(AttributeError: .*'Row'"),
        ("own = costa.methods.baselines:Raw", r"leads to a method called 'raw'; give both the same name"),
        ("own = costa.methods.baselines", r"<module 'costa.methods.baselines' .*> is not a method"),
        ("own = costa.methods.baselines:RawSettings", r"RawSettings'> is not a method"),
        ("grace = own_package:Own", r"two methods are called 'grace'"),
    ],
)
def test_an_entry_point_that_leads_nowhere_is_refused_where_it_is_asked_for(
    installed, monkeypatch, tmp_path, line, message
):
    (tmp_path / "own_package.py").write_text(
        "from costa.methods import register\nfrom costa.methods.baselines import Raw\n"
        "@register\nclass Own(Raw):\n    name = 'grace'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    installed(line)
    with pytest.raises(InputError, match=message):
        methods.get_method(line.split()[0])
    assert methods.get_method("raw") is Raw


def test_two_packages_with_one_name(installed, monkeypatch, tmp_path):
    for package in ("one_package", "other_package"):
        text = "from costa.methods.baselines import Raw\nclass Own(Raw):\n    name = 'own'\n"
        (tmp_path / f"{package}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    installed("own = one_package:Own")
    assert methods.get_method("own").__module__ == "one_package"
    installed("own = one_package:Own", "own = other_package:Own")
    with pytest.raises(InputError, match=r"two methods are called 'own', one_package:Own and other_package:Own;"):
        methods.get_method("own")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A folder that looks as if the page's package were installed into it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "costa_toy.py").write_text(blocks("python")[0], encoding="utf-8")
    entries = tomllib.loads(blocks("toml")[0])["project"]["entry-points"]["costa.methods"]
    info = folder / "costa_toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: costa-toy\nVersion: 1.0\n")
    lines = ["[costa.methods]", *(f"{name} = {value}" for name, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def toy(environment, monkeypatch):
    """The page's method, installed for this process."""
    monkeypatch.syspath_prepend(environment)
    monkeypatch.setattr(methods, "_entry_points", LOOK_UP)
    return methods.get_method("toy")


def test_the_pages_method_is_found_and_its_decorator_is_no_second_one(toy):
    assert (toy.__module__, toy.name) == ("costa_toy", "toy")
    assert methods.method_names()[-1] == "toy"
    assert methods.get_method("toy") is toy


def test_the_pages_tests_pass(toy):
    names = {}
    exec(compile(blocks("python")[1], "adding-a-method.md", "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


def test_the_pages_notebook_runs(toy, capsys):
    exec(compile(blocks("python")[2], "adding-a-method.md", "exec"), {})
    assert "random-10-10-80" in capsys.readouterr().out


def test_a_method_from_outside_has_a_file_of_settings_but_no_presets(toy, tmp_path):
    graph = planted_partition(60, 3, 8, seed=0)
    file = tmp_path / "mine.toml"
    file.write_text("[loss]\ntau = 0.3\n")
    resolved = presets.resolve(toy, graph, config=file)
    assert (resolved.values.loss.tau, resolved.origins["loss.tau"]) == (0.3, str(file))
    assert resolved.note is None
    tuned = presets.resolve(toy, graph, preset="tuned", config=file)
    assert tuned.note.startswith("no tuned settings for toy on planted-partition")
    assert tuned.values == resolved.values
    for preset in ("paper", "strict"):
        with pytest.raises(InputError, match="for toy on planted-partition; use the preset tuned or none"):
            presets.resolve(toy, graph, preset=preset)


def test_a_method_from_outside_is_tuned(toy, tmp_path):
    graph = planted_partition(120, 3, 8, degree=4, homophily=0.6, seed=0)
    job = jobs.TuningJob(graph, toy, torch.device("cpu"), epochs=2, seeds=1, splits=2)
    study = studies.open_study(tmp_path / "study.log", job, seed=0)
    assert [ended.why for ended in studies.search(job, study, trials=1)] == [None]
    assert [final.why for final in studies.evaluate_finalists(job, study, 1, 1)] == [None, None]
    written = studies.write_presets(job, study, 1, 1, tmp_path)
    assert {path.relative_to(tmp_path).parts[1] for path in written} == {"toy"}
    for path in written:
        presets.resolve(toy, graph, config=path)


def test_the_command_line_finds_the_pages_method(environment, tmp_path):
    train = [
        "train",
        "digits",
        "--method",
        "toy",
        "--epochs",
        "3",
        "--device",
        "cpu",
        "--no-probe",
        "--preset",
        "tuned",
    ]
    code = (
        "from costa import methods\nfrom costa.cli import app\n"
        "assert not methods._entry_points.cache_info().misses  # an import looks nothing up\n"
        f"for command in (['methods'], {train}): app(command, standalone_mode=False)"
    )
    path = os.pathsep.join(filter(None, [str(environment), os.environ.get("PYTHONPATH")]))
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"^ toy +Toy contrast +an example +$", ended.stdout, flags=re.MULTILINE)
    assert "no tuned settings for toy on digits" in ended.stdout
    assert "toy on digits, seed 0: 3 epochs" in ended.stdout
    assert (tmp_path / "runs" / "digits-toy-0" / "model.safetensors").is_file()
