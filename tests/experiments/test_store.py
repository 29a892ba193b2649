import os
import threading

import pytest

from costa.experiments import store


def test_runs_come_back_in_order_and_a_half_written_line_does_not(tmp_path):
    for seed in range(3):
        path = store.append(tmp_path, {"method": "costa-sv", "dataset": "cora", "seed": seed}, {"train.lr": 0.1})
    assert path == tmp_path / "costa-sv" / "cora.jsonl"
    with path.open("a") as file:
        file.write('{"method": "costa-sv", "da')
    runs = store.read(path)
    assert [run["seed"] for run in runs] == [0, 1, 2]
    assert runs[0]["settings"] == {"train.lr": 0.1}
    store.append(tmp_path, {"method": "costa-sv", "dataset": "cora", "seed": 3}, {})
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
    with pytest.raises(OSError, match="by half"):
        store.append(tmp_path, {"method": "m", "dataset": "d", "seed": 0}, {})
