"""A graph that is read again says only what is new."""

import logging

import pytest

from costa.graphs import load_graph
from costa.graphs.again import NEW, read_again


@pytest.fixture
def people(tmp_path):
    """Edges with a column that is not read, and a table of features."""
    folder = tmp_path / "people"
    folder.mkdir()
    (folder / "edges.csv").write_text("source,target,since\na,b,1\nb,c,2\n")
    (folder / "features.csv").write_text("id,age\na,1\nb,2\nc,3\n")
    return folder


def test_what_reading_warns_of_is_said_the_first_time_only(people, caplog):
    with read_again(False):
        graph = load_graph(people)
    assert "the column 'since' is not read" in caplog.text
    caplog.clear()
    with read_again():
        load_graph(people, columns=graph.get("columns"))
    assert caplog.text == ""
    load_graph(people)
    assert "the column 'since' is not read" in caplog.text


def test_what_the_model_was_not_fitted_to_is_still_said(people, caplog):
    graph = load_graph(people)
    (people / "features.csv").write_text("id,age,height\na,1,1\nb,2,5\nc,3,4\n")
    caplog.clear()
    with read_again():
        load_graph(people, columns=graph.get("columns"))
    assert "'height', which the model was not fitted to" in caplog.text
    assert "since" not in caplog.text


def test_the_loggers_are_left_as_they_were():
    reading = logging.getLogger("costa.graphs.roles")
    before = reading.getEffectiveLevel(), NEW.level
    with pytest.raises(ValueError, match="stop"), read_again():
        raise ValueError("stop")
    assert (reading.getEffectiveLevel(), NEW.level) == before
