import json

import pytest
import torch
from torch_geometric.data import Data

from costa import settings, training
from costa.graphs.synthetic import planted_partition
from costa.methods import METHODS, get_method
from reproduction import parts_page
from reproduction.tables import NOT_MEASURED

TAKING = [name for name in METHODS if get_method(name).takes_parts]


def test_the_table_has_every_method_and_whether_it_takes_parts():
    rows = [line.strip("| ").split(" | ") for line in parts_page.on_parts(None).splitlines()[2:]]
    assert [row[0].strip("`") for row in rows] == list(METHODS) == list(parts_page.ON_PARTS)
    assert [row[0].strip("`") for row in rows if row[1] == "yes"] == TAKING
    assert [row[0].strip("`") for row in rows if row[2] != "–"] == TAKING


@pytest.mark.parametrize("name", TAKING)
def test_a_loss_is_said_to_be_the_same_if_it_is_the_mean_over_two_halves_without_an_edge_between(name):
    halves = [planted_partition(n, 3, 12, seed=n) for n in (40, 60)]
    edges = torch.cat([halves[0].edge_index, 40 + halves[1].edge_index], 1)
    graph = Data(x=torch.cat([half.x for half in halves]), edge_index=edges)
    method = get_method(name)
    plain = {"encoder.kind": "gcn", "encoder.norm": "none", "features.scaling": "none", "features.rank": 0}
    plain |= {"augment.edge_rate": 0.0, "augment.mask_rate": 0.0, "augment.hop_rate": 0.0, "encoder.steps": 0}
    known = settings.flatten(method.Settings())
    values, _ = settings.merge(method.Settings, [("test", {k: v for k, v in plain.items() if k in known})])
    built = training.build(method, values, graph, 0, torch.device("cpu"))
    built.prepare(graph)
    whole = built.loss(graph)
    first, second = built.loss(graph, torch.arange(40)), built.loss(graph, torch.arange(40, 100))
    same = torch.allclose(whole, 0.4 * first + 0.6 * second, rtol=1e-5)
    assert same == (parts_page.ON_PARTS[name][0] == "yes")


def test_the_last_line_of_each_run_is_shown(tmp_path):
    assert parts_page.measured(tmp_path) == NOT_MEASURED
    (tmp_path / "bench").mkdir()
    line = {"run": "GRACE", "nodes": 100_000, "parts": 1024, "epochs": 8, "train_seconds": 90.2, "seconds": 101.7}
    line |= {"peak_anonymous_bytes": 2**30, "peak_resident_bytes": 2**31, "accuracy": [0.5, 0.6]}
    lines = [
        line | {"epochs": 4},
        line | {"run": "larger", "group": 128},
        {"run": "diffused features", "nodes": 100_000, "accuracy": [0.75]},
        line,
    ]
    (tmp_path / "bench" / "parts-cpu.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    said, _, rows = parts_page.measured(tmp_path).partition("\n\n")
    assert "n² = 1.00·10¹⁰" in said
    assert "40.0 GB. The 64 groups" in said
    assert rows.splitlines()[2:] == [
        "| GRACE | 1,024 | 1,562 | 8 | 90 | 102 | 1.0 GiB | 2.0 GiB | 55.0 |",
        "| larger | 1,024 | 12,500 | 8 | 90 | 102 | 1.0 GiB | 2.0 GiB | 55.0 |",
        "| diffused features | – | – | – | – | – | – | – | 75.0 |",
    ]
