"""``costa tune``."""

import tomllib
from pathlib import Path


def test_from_a_folder_of_ones_own_to_settings_that_train_takes(costa, own_graph, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--trials", 2, "--epochs", 4, "--seeds", 1, "--splits", 2, "--finalists", 1, "--final-seeds", 1)
    # settings that are drawn may collapse and be given up; these do not
    Path("start.toml").write_text("train.lr = 0.01\n")
    options += ("--try", "start.toml")
    result = costa("tune", own_graph, *options)
    assert result.code == 0, result.err
    assert result.err == ""
    lines = result.out.splitlines()
    assert "COSTA, two views on friends: 60 nodes" in lines[0]
    assert lines[1] == "tuning/costa-mv-friends.log: 0 of 2 trials"
    assert [line.split()[:4] for line in lines[2:4]] == [
        ["trial", "0", "strict", "validation"],
        ["trial", "1", "strict", "validation"],
    ]
    assert "after 4 epochs" in lines[2]
    assert "the best so far" in lines[3]
    assert sorted(line.split()[2] for line in lines[4:-2]) == ["strict", "tuned"]
    assert lines[-2:] == ["tuning/strict/costa-mv/friends.toml", "tuning/tuned/costa-mv/friends.toml"]
    again = costa("tune", own_graph, *options)
    assert again.code == 0, again.err
    assert again.out.splitlines()[1:] == ["tuning/costa-mv-friends.log: 2 of 2 trials", *lines[-2:]]
    trained = costa("train", own_graph, "--config", lines[-1], "--out", "run", "--no-probe")
    assert trained.code == 0, trained.err
    assert "tuning/tuned/costa-mv/friends.toml" in trained.out


def test_a_setting_that_is_set_is_kept(costa, own_graph, tmp_path):
    options = ("--method", "costa-mv", "--epochs", 2, "--seeds", 1, "--splits", 2, "--finalists", 1)
    options += ("--final-seeds", 1, "--study", tmp_path / "s.log", "--out", tmp_path / "out", "--trials", 2)
    kept = ("--set", "encoder.width=12", "--set", "augment.edge_rate=0.3,0.55")
    result = costa("tune", own_graph, *options, *kept)
    assert result.code == 0, result.err
    for path in result.out.splitlines()[-2:]:
        text = Path(path).read_text(encoding="utf-8")
        assert tomllib.loads(text)["encoder"]["width"] == 12
        assert tomllib.loads(text)["augment"]["edge_rate"] == [0.3, 0.55]
        assert "trials that kept encoder.width, augment.edge_rate. Untested" in text.replace("\n# ", " ")
    assert "2 of 2 trials" in costa("tune", own_graph, *options, *kept).out
    assert "started with set" in costa("tune", own_graph, *options).err
    misspelt = costa("tune", own_graph, "--set", "encoder.widht=12", "--study", tmp_path / "other.log")
    assert "did you mean encoder.width" in misspelt.err
    assert not (tmp_path / "other.log").exists()


def test_no_finalists_and_no_time_write_no_settings(costa, own_graph, tmp_path):
    options = ("--epochs", 2, "--seeds", 1, "--splits", 1, "--study", tmp_path / "s.log", "--out", tmp_path / "out")
    result = costa("tune", own_graph, *options, "--trials", 1, "--finalists", 0)
    assert result.code == 0, result.err
    stopped = costa("tune", own_graph, *options, "--trials", 2, "--timeout", 0)
    assert stopped.code == 0, stopped.err
    assert "1 of 2 trials" in stopped.out
    assert "run the same command to continue" in stopped.out
    assert not (tmp_path / "out").exists()
    assert "Note" not in stopped.out


def test_few_labels_get_a_note(costa, own_graph, tmp_path):
    lines = (own_graph / "nodes.csv").read_text().splitlines()
    kept = [line if i < 34 else line.split(",")[0] + "," for i, line in enumerate(lines)]
    (own_graph / "nodes.csv").write_text("\n".join(kept) + "\n")
    result = costa("tune", own_graph, "--timeout", 0, "--study", tmp_path / "s.log")
    assert "Note: strict-10-10-80 learns 2 classes from only 3 nodes, so its score says little." in result.out


def test_a_graph_without_labels_gets_a_sentence(costa, own_graph):
    (own_graph / "nodes.csv").write_text("id\n" + "".join(f"person {i:02d}\n" for i in range(60)))
    result = costa("tune", own_graph)
    assert result.code == 2
    assert "friends has no labels of two classes, so settings cannot be validated" in result.err
