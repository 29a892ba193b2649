"""The JSON files of a RUN folder."""

import pytest

from costa.errors import InputError
from costa.runs import files


def test_what_is_written_is_read(tmp_path):
    files.write_json(tmp_path / "x.json", {"schema": 1, "name": "Zoë"})
    assert files.read_json(tmp_path / "x.json", ("name",)) == {"schema": 1, "name": "Zoë"}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_a_write_that_fails_keeps_the_older_file(tmp_path):
    files.write_json(tmp_path / "x.json", {"schema": 1})
    with pytest.raises(TypeError):
        files.write_json(tmp_path / "x.json", {"schema": object()})
    assert files.read_json(tmp_path / "x.json", ()) == {"schema": 1}


@pytest.mark.parametrize("content", [None, b"{", b"[]", b"\xff\xfe", b"{}", b'{"schema": 1}', b'{"schema": "1"}'])
def test_a_damaged_file_is_one_sentence(tmp_path, content):
    if content is not None:
        (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(InputError, match=r"x.json is missing, damaged or of another version; train the run again"):
        files.read_json(tmp_path / "x.json", ("name",))


def test_a_newer_file_is_told_from_a_damaged_one(tmp_path):
    (tmp_path / "x.json").write_text('{"schema": 2}')
    with pytest.raises(InputError, match=r"newer version of costa \(schema 2; this version reads 1\); update costa"):
        files.read_json(tmp_path / "x.json", ("name",))


def test_a_folder_without_config_is_not_a_run(tmp_path):
    with pytest.raises(InputError, match=r"is not a run: it has no config.json; `costa train` writes one"):
        files.read_config(tmp_path)
