import json
import os
import threading

import pytest

from reproduction import store


def test_runs_come_back_in_order_and_a_half_written_line_does_not(tmp_path):
    for seed in range(3):
        path = store.append(tmp_path, {"method": "costa-mv", "dataset": "cora", "seed": seed}, {"train.lr": 0.1})
    assert path == tmp_path / "costa-mv" / "cora.jsonl"
    with path.open("a") as file:
        file.write('{"method": "costa-mv", "da')
    runs = store.read(path)
    assert [run["seed"] for run in runs] == [0, 1, 2]
    assert runs[0]["settings"] == {"train.lr": 0.1}
    store.append(tmp_path, {"method": "costa-mv", "dataset": "cora", "seed": 3}, {})
    assert [run["seed"] for run in store.read(path)] == [0, 1, 2, 3]


def test_several_writers_do_not_cut_into_each_other(tmp_path):
    def write(worker):
        for seed in range(50):
            store.append(tmp_path, {"method": "m", "dataset": "d", "seed": seed, "pad": "x" * 5000}, {"w": worker})

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.read(tmp_path / "m" / "d.jsonl")) == 200


def test_a_run_that_does_not_fit_on_the_disk_is_an_error(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, line: real(descriptor, line[:9]))
    with pytest.raises(OSError, match="only partly written"):
        store.append(tmp_path, {"method": "m", "dataset": "d", "seed": 0}, {})


def test_runs_of_a_folder_are_recorded_as_they_ended(costa, tmp_path):
    folder = tmp_path / "runs"
    given = ("--epochs", 1, "--set", "sketch.k=50", "--set", "features.scaling=rows", "--preset", "none", "--no-probe")
    assert costa("train", "digits", "--seeds", 3, "--out", folder, *given).code == 0
    stopped = folder / "digits-costa-mv-1" / "metrics.json"
    stopped.write_text(stopped.read_text().replace('"ok"', '"interrupted"'))
    path = tmp_path / "results" / "costa-mv" / "digits.jsonl"
    assert store.record(tmp_path / "results", folder) == [path, path]
    lines = store.read(path)
    assert [line["seed"] for line in lines] == [0, 2]
    metrics = json.loads((folder / "digits-costa-mv-0" / "metrics.json").read_text())
    settings = json.loads((folder / "digits-costa-mv-0" / "config.json").read_text())["settings"]
    assert settings["sketch.k"] == 50
    assert lines[0] == metrics | {"settings": settings, "set": ["features.scaling", "train.epochs"]}
