"""How columns of each kind become numbers."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import issparse

from costa.errors import InputError
from costa.graphs.columns import fit_columns
from costa.graphs.tables import Table


def prepared(values: Any, kind: str | None = None, later: Any = None) -> tuple[list[str], list[list[float]]]:
    """Names and rows of a column `a`, fitted to `values`; the rows are those of `later` if it is given."""

    def table(cells: Any) -> Table:
        return Table("the table", "the table", {"a": cells}, len(cells))

    fitted = fit_columns(table(values), {"a": kind} if kind else None)
    x = fitted.transform(table(values if later is None else later))
    return fitted.names, (x.toarray() if issparse(x) else x).tolist()


@pytest.mark.parametrize(
    "values", [["1", "", "5", "6", " NA"], [1, None, 5, 6, None], np.array([1, np.nan, 5, 6, np.nan])]
)
def test_a_missing_number_is_the_median_and_said(values: Any) -> None:
    assert prepared(values) == (["a", "a: missing"], [[1, 0], [5, 1], [5, 0], [6, 0], [5, 1]])


def test_flags() -> None:
    assert prepared(["yes", "No", "", "yes"]) == (["a", "a: missing"], [[1, 0], [0, 0], [1, 1], [1, 0]])
    assert prepared([True, False]) == prepared(np.array([True, False])) == (["a"], [[1], [0]])
    assert prepared(["true", "false"], later=np.array([0.0, 1.0]))[1] == [[0], [1]]
    with pytest.raises(InputError, match=r"'2' in row 2 .* neither yes nor no"):
        prepared(["0", "2"], "flag")


def test_categories() -> None:
    names, rows = prepared(["b", "", "a", "b"])
    assert names == ["a=a", "a=b", "a: missing"]
    assert rows == [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("values", [["1", "2.0", "1.0"], [1, 2, 1], np.array([1.0, 2.0, 1.0])])
def test_numbers_as_categories(values: Any) -> None:
    assert prepared(values, "category") == (["a=1", "a=2"], [[1, 0], [0, 1], [1, 0]])


def test_rare_values_share_a_column() -> None:
    values = ["a", "b"] * 1000 + ["c", "d"]
    names, rows = prepared(values, later=["c", "a", "never seen", ""])
    assert names == ["a=a", "a=b", "a: other"]
    assert rows == [[0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_many_values_are_hashed() -> None:
    values = [f"C{i % 33}" for i in range(99)]
    names, rows = prepared(values)
    assert names == [f"a: hash {i}" for i in range(1, 33)]
    assert (np.abs(rows).sum(1) == 1).all()
    assert rows[:33] == rows[33:66]
    assert len(np.unique(rows, axis=0)) > 16
    assert prepared(values, later=["", "C3"])[1] == [[0] * 32, rows[3]]


def test_dates() -> None:
    names, rows = prepared(["2023-01-02", "", "2023-04-04 12:00", "2023-02-05"])
    assert names == [
        *("a: days", "a: month sin", "a: month cos", "a: weekday sin", "a: weekday cos"),
        "a: missing",
    ]
    half, third, seventh = np.pi / 2, np.pi / 6, 2 * np.pi / 7
    wanted = [
        [0, 0, 1, 0, 1, 0],  # a Monday in January
        [34, np.sin(third), np.cos(third), np.sin(6 * seventh), np.cos(6 * seventh), 1],
        [92.5, np.sin(half), np.cos(half), np.sin(seventh), np.cos(seventh), 0],
        [34, np.sin(third), np.cos(third), np.sin(6 * seventh), np.cos(6 * seventh), 0],
    ]
    np.testing.assert_allclose(rows, wanted, atol=1e-6)


def test_what_does_not_differ_in_dates_is_left_out() -> None:
    assert prepared(["2021-01-01", "2022-01-01"])[0] == ["a: days"]
    assert prepared(["2021-01", "2021-02"])[0] == ["a: days", "a: month sin", "a: month cos"]
    assert prepared(["2021-01-01", "2021-01-04"])[0] == ["a: days", "a: weekday sin", "a: weekday cos"]


def test_dates_before_the_first_are_negative() -> None:
    assert prepared(["1970-01-03", "1971-01-03"], later=["1969-12-31"])[1] == [[-3]]


def test_a_later_table_writes_dates_with_the_same_part_first() -> None:
    fitted = ["31/01/2023", "01/02/2023"]
    assert [row[0] for row in prepared(fitted, later=["03/02/2023"])[1]] == [3]
    with pytest.raises(InputError, match=r"'12/31/2023' in row 1 .* is not a date with the day first"):
        prepared(fitted, later=["12/31/2023"])


def test_whole_numbers_as_dates() -> None:
    assert [row[0] for row in prepared([20230131, 20230203], "date")[1]] == [0, 3]


def test_text() -> None:
    random = np.random.default_rng(0)
    fruit, tools = ["apple", "pear", "plum", "cherry", "fig"], ["hammer", "saw", "drill", "file", "rasp"]
    values = [" ".join(random.choice(fruit if row % 2 else tools, 6)) for row in range(60)]
    names, rows = prepared(values)
    assert names == [f"a: text {i}" for i in range(1, len(names) + 1)]
    assert len(names) == 10
    similar = np.array(rows) @ np.array(rows).T
    assert similar[0::2, 1::2].max() < 1e-6 < similar[0::2, 0::2].mean()
    # all ten words are kept, so that the reduction is a rotation of vectors of length 1
    np.testing.assert_allclose(np.diag(similar), 1, atol=1e-5)
    assert prepared(values, later=["", "not one of the words"])[1] == [[0] * 10] * 2


def test_text_is_at_most_32_columns() -> None:
    random = np.random.default_rng(0)
    assert len(prepared([" ".join(f"w{i}" for i in random.integers(0, 99, 8)) for _ in range(60)])[0]) == 32


def test_text_without_words_is_refused() -> None:
    with pytest.raises(InputError, match="the table has no word in any text of the column 'a'"):
        prepared(["-", "- -"], "text")
