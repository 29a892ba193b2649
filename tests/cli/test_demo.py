"""``costa demo``: what it refuses; ``tests/test_demo.py`` runs it."""


def test_demo_leaves_other_peoples_folders_alone(costa, tmp_path):
    mine = tmp_path / "words-costa-mv-0"
    mine.mkdir()
    (mine / "config.json").write_text("{}")
    result = costa("demo", "--out", tmp_path)
    assert (result.code, "not an earlier demo" in result.err) == (2, True)
    assert (mine / "config.json").read_text() == "{}"
