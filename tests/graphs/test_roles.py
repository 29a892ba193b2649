"""What columns of tables are taken for: ids, labels, the ends of edges."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from torch_geometric.data import Data

from costa.errors import InputError
from costa.graphs import as_graph, load_graph

Write = Callable[..., Path]
Load = Callable[..., Data]
AGES = {"7": 31, "8": 40, "9": 29}
EDGES = "source,target\n7,8\n8,9\n"


@pytest.fixture(params=["whole", "in chunks"])
def load(request: pytest.FixtureRequest) -> Load:
    """load(folder, columns=…): the graph as it is read into memory, or in chunks onto the disk."""
    memory = {} if request.param == "whole" else {"memory": "1GiB"}
    return lambda folder, **given: load_graph(folder, **memory, **given)


def rows(header: str, order: str, extra: str = "") -> str:
    return "\n".join([header, *(f"{node},{AGES[node]}{extra}" for node in order)]) + "\n"


@pytest.mark.parametrize("name", ["customer_id", "ID", "Node", "who"])
def test_ids_are_recognised_under_any_name(name: str, write: Write, folder: Path, load: Load) -> None:
    write(folder, edges__csv=EDGES, features__csv=rows(f"{name},age", "987"))
    graph = load(folder)
    assert list(graph.node_ids) == ["9", "8", "7"]
    assert (graph.feature_names, graph.x.tolist()) == (["age"], [[29], [40], [31]])
    assert sorted(map(tuple, graph.edge_index.T.tolist())) == [(0, 1), (1, 0), (1, 2), (2, 1)]


def test_the_recognised_column_is_said(
    write: Write, folder: Path, caplog: pytest.LogCaptureFixture, load: Load
) -> None:
    write(folder, edges__csv=EDGES, features__csv=rows("customer_id,age", "987"))
    load(folder)
    assert "features.csv': the column 'customer_id' is taken for the nodes' ids." in caplog.text


def test_ids_that_are_row_numbers_are_not_rows_by_position(write: Write, folder: Path, load: Load) -> None:
    edges = "source,target\n0,1\n1,2\n"
    shuffled = "{},age\n2,29\n0,31\n1,40\n"
    write(folder, edges__csv=edges, features__csv=shuffled.format("customer_id"))
    assert list(load(folder).node_ids) == ["2", "0", "1"]
    write(folder, features__csv=shuffled.format("position"))
    asked = "its column 'position' has all the ids of .*, in another order than the rows; rename it to 'id'"
    with pytest.raises(InputError, match=asked):
        load(folder)
    assert list(load(folder, columns={"position": "id"}).node_ids) == ["2", "0", "1"]
    by_position = load(folder, columns={"position": "number"})
    assert (list(by_position.node_ids), by_position.feature_names) == (["0", "1", "2"], ["position", "age"])


def test_a_feature_that_counts_the_rows_is_an_id(write: Write, folder: Path, load: Load) -> None:
    write(folder, edges__csv="source,target\n0,1\n1,2\n", features__csv="row,age\n0,31\n1,40\n2,29\n")
    assert load(folder).feature_names == ["age"]


def test_nearly_all_of_the_ids_are_asked_about_under_any_name(write: Write, folder: Path, load: Load) -> None:
    edges = "".join(f"{i},{i + 1}\n" for i in range(19))
    table = "".join(f"{i},{i % 7}\n" for i in range(20, 0, -1))
    write(folder, edges__csv="source,target\n" + edges, features__csv="buyer,age\n" + table)
    with pytest.raises(InputError, match=r"'buyer' has many of the ids of .*, though not '0'; rename it to 'id'"):
        load(folder)


def test_many_of_the_ids_are_asked_about(write: Write, folder: Path, load: Load) -> None:
    write(folder, edges__csv="source,target\n0,1\n1,2\n", features__csv="key,age\n2,29\n0,31\n5,40\n")
    with pytest.raises(InputError, match=r"'key' has many of the ids of .*, though not '1'; rename it to 'id'"):
        load(folder)


def test_two_columns_with_all_ids_are_asked_about(write: Write, folder: Path, load: Load) -> None:
    write(folder, edges__csv=EDGES, features__csv="first,second,age\n7,9,1\n8,7,2\n9,8,3\n")
    with pytest.raises(InputError, match=r"the columns 'first' and 'second' have all the ids of"):
        load(folder)
    assert list(load(folder, columns={"second": "id"}).node_ids) == ["9", "7", "8"]


def test_a_column_called_id_may_be_another_number(write: Write, folder: Path) -> None:
    write(folder, edges__csv=EDGES, features__csv="id,customer,age\n1,9,29\n2,8,40\n3,7,31\n")
    with pytest.raises(
        InputError, match=r"the column 'id' of .* does not have all the ids of .* column 'customer' does"
    ):
        load_graph(folder)
    graph = load_graph(folder, columns={"customer": "id", "id": "ignore"})
    assert (graph.node_ids, graph.feature_names) == (["9", "8", "7"], ["age"])


def test_ids_of_a_table_of_nodes_have_any_name(write: Write, folder: Path, load: Load) -> None:
    write(folder, edges__csv=EDGES, features__csv=rows("nr,age", "987"), nodes__csv="Customer,Label\n8,b\n7,a\n9,\n")
    graph = load(folder)
    assert (list(graph.node_ids), graph.x.tolist()) == (["8", "7", "9"], [[40], [31], [29]])
    assert (graph.y.tolist(), graph.label_names) == ([1, 0, -1], ["a", "b"])


@pytest.mark.parametrize("name", [None, "customer"])
def test_the_index_of_a_frame_may_hold_the_ids(name: str | None) -> None:
    pandas = pytest.importorskip("pandas")
    features = pandas.DataFrame({"age": [29, 31, 40]}, index=pandas.Index([9, 7, 8], name=name))
    graph = as_graph(pandas.DataFrame({"source": [7, 8], "target": [8, 9]}), features)
    assert (graph.node_ids, graph.feature_names) == (["9", "7", "8"], ["age"])
    shuffled = pandas.DataFrame({"age": [29, 31, 40]}, index=pandas.Index([2, 0, 1], name=name))
    assert as_graph(pandas.DataFrame({"source": [0, 1], "target": [1, 2]}), shuffled).node_ids == ["2", "0", "1"]
    with pytest.raises(
        InputError, match=r"the edge array names nodes by number, and the feature table has these numbers"
    ):
        as_graph(np.array([[0, 1], [1, 2]]), shuffled)


def test_an_index_that_holds_no_ids_is_no_feature(caplog: pytest.LogCaptureFixture) -> None:
    pandas = pytest.importorskip("pandas")
    features = pandas.DataFrame({"age": [29, 31]}, index=["x", "y"])
    graph = as_graph(pandas.DataFrame({"source": [0], "target": [1]}), features)
    assert graph.feature_names == ["age"]
    assert "the column 'index' is not read, because it was the frame's index" in caplog.text


def test_the_label_is_never_a_feature(write: Write, folder: Path, load: Load) -> None:
    write(folder, edges__csv=EDGES, features__csv="id,Label,age\n9,b,29\n7,a,31\n8,,40\n")
    graph = load(folder)
    assert (graph.feature_names, graph.y.tolist(), graph.label_names) == (["age"], [1, 0, -1], ["a", "b"])
    write(folder, nodes__csv="id\n7\n8\n9\n")
    assert load(folder).y.tolist() == [0, -1, 1]
    write(folder, nodes__csv="id,label\n7,a\n8,\n9,b\n")
    with pytest.raises(
        InputError, match=r"labels are given twice, by the column 'label' of .* and the column 'label' of"
    ):
        load(folder)


def test_another_column_is_made_the_label(write: Write, folder: Path, load: Load) -> None:
    write(folder, edges__csv=EDGES, features__csv="id,plan,age\n9,b,29\n7,a,31\n8,,40\n")
    graph = load(folder, columns={"plan": "label"})
    assert (graph.feature_names, graph.label_names) == (["age"], ["a", "b"])
    with pytest.raises(
        InputError, match=r"--columns names 'plam' \(did you mean 'plan'\?\), but there are only id, plan"
    ):
        load(folder, columns={"plam": "label"})


def test_the_other_columns_of_nodes_are_the_features(write: Write, folder: Path) -> None:
    write(folder, edges__csv=EDGES, nodes__csv="id,label,age,plan\n9,b,29,x\n7,a,31,y\n8,,40,x\n")
    graph = load_graph(folder)
    assert graph.feature_names == ["age", "plan=x", "plan=y"]
    assert graph.x.tolist() == [[29, 1, 0], [31, 0, 1], [40, 1, 0]]
    assert graph.table.columns.keys() == {"age", "plan"}


@pytest.mark.parametrize("names", ["Source,Target", "from,to", "FROM,To", "src,dst", "target,source"])
def test_the_ends_of_edges_have_several_names(names: str, write: Write, folder: Path) -> None:
    write(folder, edges__csv=EDGES.replace("source,target", names))
    assert set(load_graph(folder).node_ids) == {"7", "8", "9"}


def test_other_columns_of_edges_are_said(
    write: Write, folder: Path, caplog: pytest.LogCaptureFixture, load: Load
) -> None:
    write(folder, edges__csv="source,target,Weight,since\n7,8,2,2020\n", features__csv=rows("id,age", "789"))
    assert load(folder).edge_weight.tolist() == [2, 2]
    assert (
        "edges.csv': the column 'since' is not read, because an edge has two ends and perhaps a weight." in caplog.text
    )


def test_edges_as_json_lines(write: Write, folder: Path) -> None:
    write(folder, edges__jsonl='{"from": "ann", "to": "bob"}\n\n{"to": "cy", "from": "ann", "weight": 2}\n')
    with pytest.raises(InputError, match=r"row 1 of the column 'weight'"):
        load_graph(folder)
    write(folder, edges__jsonl='{"from": "ann", "to": "bob", "weight": 1}\n{"to": "cy", "from": "ann", "weight": 2}\n')
    graph = load_graph(folder)
    assert (graph.node_ids, graph.edge_weight.tolist()) == (["ann", "bob", "cy"], [1, 2, 1, 2])
    write(folder, edges__jsonl='{"from": "ann", "to": "bob"}\n["ann"]\n')
    with pytest.raises(InputError, match=r"is not a JSON object in line 2"):
        load_graph(folder)


def test_ids_that_differ_in_case_are_suggested(write: Write, folder: Path, load: Load) -> None:
    write(folder, edges__csv="source,target\nAnn,bob\n", features__csv="id,age\nann,31\nbob,40\n")
    with pytest.raises(
        InputError, match=r"'Ann' in row 1, which is not an id in features.csv, though 'ann' is; write ids"
    ):
        load(folder)


def test_other_files_in_the_folder_are_said(write: Write, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(folder, edges__csv=EDGES, Features__CSV=rows("id,age", "789"), products__csv="id\n1\n", notes__md="hello")
    assert load_graph(folder).feature_names == ["age"]
    assert "products.csv is not read; only edges, features and nodes are." in caplog.text
    assert "notes.md" not in caplog.text


@pytest.mark.parametrize("name", ["features.xlsx", "node_features.csv"])
def test_what_may_be_the_features_is_not_left_out(name: str, write: Write, folder: Path) -> None:
    write(folder, edges__csv=EDGES)
    (folder / name).write_text("id,age\n")
    with pytest.raises(InputError, match=f"has no features file but {name}; call it features and let its name end in"):
        load_graph(folder)


def test_rows_do_not_follow_nodes_whose_ids_are_other_rows(load: Load, write: Write, folder: Path) -> None:
    write(folder, edges__csv="source,target\n0,1\n1,2\n", nodes__csv="id,label\n2,b\n0,a\n1,a\n")
    np.save(folder / "features.npy", np.eye(3, dtype=np.float32))
    with pytest.raises(
        InputError, match=r"nodes.csv' are the numbers of the rows of .*features.npy', in another order"
    ):
        load(folder)
    write(folder, nodes__csv="id,label\n0,a\n1,a\n2,b\n")
    assert load(folder).y.tolist() == [0, 0, 1]


def test_a_feature_that_is_called_like_labels_is_said(
    write: Write, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder, edges__csv=EDGES, features__csv="id,Class,age\n9,1,29\n7,0,31\n8,1,40\n")
    load_graph(folder)
    assert "the column 'Class' is a feature; if it is the label, say --columns Class=label." in caplog.text
