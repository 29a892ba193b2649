"""From tables of mixed columns to matrices, and the same for later tables."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import issparse

from costa.errors import InputError
from costa.graphs.columns import Columns, fit_columns
from costa.graphs.tables import Table, from_frame, read_table

WORDS = ["the", "red", "wool", "socks", "are", "warm", "and", "cheap", "but", "not", "very", "soft", "or", "long"]


def table(**columns: Any) -> Table:
    return Table("the table", "the table", columns, len(next(iter(columns.values()))))


def mixed(rows: int = 80, seed: int = 0) -> dict[str, list[Any]]:
    """A column of each kind, typed, with gaps in most; None where a value is missing."""
    random = np.random.default_rng(seed)

    def gaps(values: list[Any]) -> list[Any]:
        return [None if gap else value for gap, value in zip(random.random(rows) < 0.1, values, strict=True)]

    days = np.datetime64("2021-03-01") + random.integers(0, 900, rows)
    return {
        "height": random.normal(170, 10, rows).tolist(),
        "age": gaps(random.integers(18, 90, rows).astype(float).tolist()),
        "member": (random.random(rows) < 0.5).tolist(),
        "plan": gaps(random.choice(["free", "silver", "gold"], rows).tolist()),
        "code": random.choice([f"C{i}" for i in range(40)], rows).tolist(),
        "joined": gaps(days.astype("datetime64[us]").tolist()),
        "note": gaps([" ".join(random.choice(WORDS, 8)) for _ in range(rows)]),
        "name": [f"person {i}" for i in range(rows)],
        "country": ["CH"] * rows,
    }


KINDS = ["number", "number", "flag", "category", "category", "date", "text", "ignore", "constant"]


def as_csv(data: dict[str, list[Any]], folder: Path) -> Table:
    import pandas

    pandas.DataFrame(data).to_csv(folder / "table.csv", index=False)
    return read_table(folder / "table.csv")


def as_parquet(data: dict[str, list[Any]], folder: Path) -> Table:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(data), folder / "table.parquet")
    return read_table(folder / "table.parquet")


def as_pandas(data: dict[str, list[Any]], folder: Path) -> Table:
    import pandas

    return from_frame(pandas.DataFrame(data), "the frame")


def as_polars(data: dict[str, list[Any]], folder: Path) -> Table:
    import polars

    return from_frame(polars.DataFrame(data), "the frame")


DOORS = [as_csv, as_parquet, as_pandas, as_polars]


def dense(x: Any) -> np.ndarray:
    return x.toarray() if issparse(x) else x


@pytest.mark.parametrize("door", DOORS)
def test_every_door_leads_to_the_same_matrix(door: Callable[..., Table], tmp_path: Path) -> None:
    data = mixed()
    fitted = fit_columns(table(**data))
    assert [column.kind for column in fitted.columns] == KINDS
    same = door(data, tmp_path)
    again = fit_columns(same)
    assert [column.kind for column in again.columns] == KINDS
    assert again.names == fitted.names
    assert np.array_equal(again.transform(same), fitted.transform(table(**data)))
    assert np.array_equal(fitted.transform(same), fitted.transform(table(**data)))


def test_what_was_saved_gives_the_same_bits() -> None:
    fitted, other = fit_columns(table(**mixed())), table(**mixed(seed=1))
    arrays = {name: array.copy() for name, array in fitted.arrays().items()}
    loaded = Columns.from_dict(json.loads(json.dumps(fitted.to_dict())), arrays)
    assert set(arrays) == {"note: idf", "note: components"}
    assert loaded.names == fitted.names
    assert loaded.lines() == fitted.lines()
    assert loaded.sparse == fitted.sparse
    assert np.array_equal(loaded.transform(other), fitted.transform(other))


def test_the_order_of_columns_does_not_matter() -> None:
    data = mixed()
    fitted = fit_columns(table(**data))
    turned = table(**dict(reversed(data.items())))
    assert np.array_equal(fitted.transform(turned), fitted.transform(table(**data)))
    assert sorted(fit_columns(turned).names) == sorted(fitted.names)


def test_the_order_of_rows_does_not_matter() -> None:
    data = mixed()
    order = np.random.default_rng(5).permutation(80)
    shuffled = table(**{name: [values[i] for i in order] for name, values in data.items()})
    x = fit_columns(table(**data)).transform(table(**data))
    assert np.array_equal(fit_columns(shuffled).transform(shuffled), x[order])


def test_a_row_does_not_depend_on_the_others() -> None:
    fitted, data = fit_columns(table(**mixed())), mixed(seed=1)
    part = table(**{name: values[:7] for name, values in data.items()})
    assert np.array_equal(fitted.transform(part), fitted.transform(table(**data))[:7])


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 4).flatmap(
        lambda k: st.lists(
            st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=k, max_size=k),
            min_size=1,
            max_size=6,
        )
    )
)
def test_numbers_come_out_as_they_are(rows: list[list[float]]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    for values in (
        [np.array(column) for column in columns],
        [[f" {value!r} " for value in column] for column in columns],
    ):
        numbers = table(**{f"c{i}": column for i, column in enumerate(values)})
        fitted = fit_columns(numbers)
        assert fitted.names == list(numbers.columns)
        x = fitted.transform(numbers)
        assert x.dtype == np.float32
        assert np.array_equal(x, np.stack([numbers.numbers(name) for name in numbers.columns], axis=1))


CELL = st.one_of(
    st.none(),
    st.sampled_from(["", "NA", "nan", "x", "yes", "3", "-1.5", "1,5", "2023-01-31", "31.1.2023", "a b c d e", "é"]),
    st.text(max_size=5),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(CELL, min_size=1, max_size=8), st.lists(CELL, min_size=1, max_size=8))
def test_no_cell_becomes_nan(cells: list[Any], others: list[Any]) -> None:
    try:
        fitted = fit_columns(table(a=cells))
        matrices = [dense(fitted.transform(table(a=later))) for later in (cells, others)]
    except InputError:
        return
    for later, x in zip((cells, others), matrices, strict=True):
        assert x.shape == (len(later), len(fitted.names))
        assert np.isfinite(x).all()


def test_all_that_is_wrong_is_said_at_once() -> None:
    bad = table(
        age=["31", "40", "forty", "29"],
        price=["1,50", "2,75", "3,10", "4,00"],
        joined=["01/02/2023", "03/04/2023", "05/06/2023", "05/06/2023"],
        height=["1e39", "1", "2", "3"],
        width=np.array([1, 2, np.inf, 3]),
        where=[[1, 2], [1], [2], [3]],
        fine=["1", "2", "3", "4"],
    )
    with pytest.raises(InputError) as caught:
        fit_columns(bad)
    first, *lines = str(caught.value).splitlines()
    assert first == "the table has 6 columns that cannot be used:"
    for line, (name, row, remedy) in zip(
        lines,
        [
            ("age", 3, "--columns age=category"),
            ("price", 1, "1234.5"),
            ("joined", 1, "2023-01-31"),
            ("height", 1, "too large for float32"),
            ("width", 3, "an infinite value"),
            ("where", 1, "--columns where=ignore"),
        ],
        strict=True,
    ):
        assert f"row {row} of the column '{name}'" in line
        assert remedy in line


def test_one_thing_that_is_wrong_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"^the table has 'forty' in row 2 of the column 'age', which is not a number"):
        fit_columns(table(age=["1", "forty", "2"]))


def test_missing_columns_are_named_together_and_others_are_not_used(caplog: pytest.LogCaptureFixture) -> None:
    fitted = fit_columns(table(age=[1, 2], plan=["a", "b"], size=[3, 4]), {"plan": "category"})
    with pytest.raises(InputError, match=r"lacks the columns 'age' \(did you mean 'Age'\?\), 'plan', which"):
        fitted.transform(table(Age=[1], size=[2]))
    with caplog.at_level(logging.WARNING):
        x = fitted.transform(table(new=[7], size=[2], plan=["b"], age=[9], more=["x"]))
    assert x.tolist() == [[9, 0, 1, 2]]
    assert "has the columns 'new', 'more', which" in caplog.text


def test_ignored_columns_need_not_be_there(caplog: pytest.LogCaptureFixture) -> None:
    fitted = fit_columns(table(age=[1, 2], note=["x", "x"], name=["ann", "bob"]), {"age": "number"})
    assert fitted.transform(table(age=[5])).tolist() == [[5]]
    assert fitted.transform(table(age=[5], name=["cy"])).tolist() == [[5]]
    assert not caplog.text


def test_values_that_were_not_seen_are_counted_in_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    fitted = fit_columns(table(a=["x", "y", "x", "y"], b=["u", "v", "v", "v"]))
    with caplog.at_level(logging.WARNING):
        x = fitted.transform(table(a=["z", "w", "x"], b=["q", "u", "u"]))
    assert dense(x).tolist() == [[0, 0, 0, 0], [0, 0, 1, 0], [1, 0, 1, 0]]
    assert len(caplog.records) == 1
    assert "'z' and the like in 2 rows of 'a', 'q' and the like in 1 row of 'b'" in caplog.text


def test_rare_values_are_not_new(caplog: pytest.LogCaptureFixture) -> None:
    rare = table(a=["x", "y"] * 1000 + ["z"])
    fit_columns(rare).transform(rare)
    assert not caplog.text


def test_nothing_of_a_later_table_is_learnt() -> None:
    fitted = fit_columns(table(age=["1", "", "3"], day=["2020-01-01", "", "2020-01-03"]))
    alone = fitted.transform(table(age=[""], day=["2020-01-05"]))
    among = fitted.transform(table(age=["", "100", "200"], day=["2020-01-05", "", "2019-01-01"]))
    assert np.array_equal(alone[0], among[0])
    assert alone[0, 0] == 2


def test_a_value_missing_only_later_gets_the_median_and_no_column() -> None:
    fitted = fit_columns(table(age=["1", "2", "9"]))
    assert fitted.names == ["age"]
    assert fitted.transform(table(age=["", "4"])).tolist() == [[2], [4]]


def test_mostly_categories_are_sparse_also_later() -> None:
    data = {f"c{i}": [f"v{row * i % 20}" for row in range(60)] for i in (1, 3, 7, 9)}
    fitted = fit_columns(table(**data))
    x = fitted.transform(table(**data))
    assert issparse(x)
    assert (x.dtype, x.shape, x.nnz) == (np.float32, (60, len(fitted.names)), 240)
    assert issparse(fitted.transform(table(**{name: values[:1] for name, values in data.items()})))


def test_what_is_to_be_ignored_may_hold_anything() -> None:
    holds = table(a=[1, 2], b=[[1], [2]], c=["1", "x"])
    fitted = fit_columns(holds, {"b": "ignore", "c": "ignore"})
    assert fitted.lines()[1:] == ["b: ignored, as you said.", "c: ignored, as you said."]
    assert fitted.transform(holds).tolist() == [[1], [2]]


def test_unknown_names_are_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"no column 'plam' \(did you mean 'plan'\?\), 'x', which --columns names"):
        fit_columns(table(plan=["a", "b"]), {"plam": "category", "x": "date"})


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="two columns named 'plan=a'"):
        fit_columns(table(**{"plan": ["a", "b", "a", "b"], "plan=a": [1, 2, 3, 4]}))


def test_the_same_dates_in_another_form_are_the_same_numbers():
    days = [f"2023-{month:02}-{day:02}" for month in (1, 2) for day in (3, 14, 28)]
    fitted = fit_columns(Table("t", "t", {"joined": days}, len(days)))
    american = [f"{day[5:7]}/{day[8:]}/{day[:4]}" for day in days]
    again = fitted.transform(Table("t", "t", {"joined": american}, len(days)))
    assert np.array_equal(again, fitted.transform(Table("t", "t", {"joined": days}, len(days))))
