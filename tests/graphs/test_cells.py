"""The cells of one column."""

import shlex

import numpy as np
import pytest

from costa.graphs.cells import MISSING, Cells, Problem, option, read_cells
from costa.graphs.kinds import parse_columns
from costa.graphs.tables import Table


def cells(values: object) -> Cells:
    return read_cells(Table("it", "it", {"a": values}, len(values)), "a")


def test_each_text_is_there_once() -> None:
    column = cells([" x", "y", "", "x ", None, "NA"])
    assert list(column.distinct) == ["x", "y"]
    assert column.codes.tolist() == [0, 1, -1, 0, -1, -1]
    assert column.counts().tolist() == [2, 1]
    assert column.missing_words == ("NA",)


@pytest.mark.parametrize("missing", [*sorted(MISSING), "  ", None, float("nan"), np.datetime64("NaT")])
def test_what_is_missing(missing: object) -> None:
    assert cells(["x", missing]).missing.tolist() == [False, True]


def test_pandas_and_its_missing_values() -> None:
    pandas = pytest.importorskip("pandas")
    assert cells([pandas.NA, pandas.NaT, 1]).missing.tolist() == [True, True, False]


def test_typed_values_are_the_text_that_a_file_would_have() -> None:
    assert cells([1.0, 2.5, -0.5, 10**20, True, np.float32(0.5)]).texts() == [
        *("1", "2.5", "-0.5", "100000000000000000000", "True", "0.5")
    ]
    assert cells(np.array([1.0, np.nan, 2.5])).texts() == ["1", "2.5"]


@pytest.mark.parametrize(
    "values", [["1", " 2.5 ", "1e3"], [1, 2.5, None, 1000], [1, 2.5, float("nan"), 1e3], np.array([1, 2.5, 1e3])]
)
def test_numbers_are_read_at_once(values: object) -> None:
    column = cells(values)
    assert column.typed
    assert column.numbers().tolist() == [1, 2.5, 1000]
    assert column.missing.tolist() == [False, False] + [True] * (len(values) == 4) + [False]


@pytest.mark.parametrize("values", [["1", "2", "x"], ["1", "", "2"], ["1_0", "2"], [10**400, 1], [True, False]])
def test_other_columns_are_text(values: object) -> None:
    assert not cells(values).typed


def test_codes_begin_with_zero() -> None:
    assert cells(["007", "12"]).padded
    assert not cells(["0.5", "0", "12"]).padded
    assert read_cells(Table("it", "it", {"a": ["007", "12"]}, 2), "a", "category").texts() == ["007", "12"]


@pytest.mark.parametrize("value", [b"x", [1], (1, 2), {}, np.zeros(2)])
def test_what_is_neither_a_number_nor_text_is_refused(value: object) -> None:
    with pytest.raises(Problem, match="in row 2 of the column 'a', which is neither a number nor text"):
        cells(["x", value])


@pytest.mark.parametrize("name", ["plan", "first name", "a,b", 'the "plan"', "a=b", "it's", "é, $x"])
def test_an_option_says_what_it_should(name: str) -> None:
    flag, said = shlex.split(option(name, "date"))
    assert flag == "--columns"
    assert parse_columns(said) == {name: "date"}
