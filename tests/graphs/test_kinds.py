"""What columns are taken for."""

import pytest

from costa.errors import InputError
from costa.graphs.cells import Problem, read_cells
from costa.graphs.kinds import parse_columns, recognise
from costa.graphs.tables import Table


def kind(values: list[object]) -> str:
    return recognise(read_cells(Table("it", "it", {"a": values}, len(values)), "a"))[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", " 2.5 ", "", "1e3"], "number"),
        ([1, None, 3], "number"),
        (["0", "1", "0"], "number"),
        (["yes", "No", "", "yes"], "flag"),
        ([True, None, False], "flag"),
        (["T", "F", "T"], "flag"),
        (["m", "f", "m", "f"], "category"),
        (["2023-01-31", "NA", "2023-02-28"], "date"),
        (["31.1.2023", "01.02.2023"], "date"),
        (["01/31/2023", "02/01/2023"], "date"),
        (["free", "gold", "free", "gold"], "category"),
        (["1A", "2B", "10", "1A", "2B"], "category"),
        (["192.168.1.1", "10.0.0.1", "10.0.0.1"], "category"),
        ([f"C{i % 50}" for i in range(100)], "category"),
        ([f"person {i}" for i in range(50)], "ignore"),
        ([f"row {i} is the one before {i + 1}" for i in range(50)], "text"),
        (["it is on its way", "it has been delivered today"] * 10, "category"),
        (["CH", "CH", "CH"], "constant"),
        (["2023-01-31"] * 3, "constant"),
        (["CH", "", "CH"], "category"),
        (["7", "7"], "number"),
    ],
    ids=str,
)
def test_each_kind_is_recognised(values: list[object], expected: str) -> None:
    assert kind(values) == expected


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        (["1.234,5", "2"], "1.234,5"),
        (["1,234.50", "2,000"], "1,234.50"),
        (["$5", "$7"], r"\$5"),
        (["5 €", "6 €"], "5 €"),
        (["10%", "20%"], "10%"),
        (["1 000", "12 000"], "1 000"),
        (["1_000", "2"], "1_000"),
        (["12", "14", "unknown"], "unknown"),
        (["2023-01-31", "2023-02-30"], "2023-02-30"),
        (["31/01/2023", "01/31/2023", "05/05/2023"], "01/31/2023"),
        (["01/02/2023", "03/04/2023"], "01/02/2023"),
    ],
)
def test_what_is_nearly_numbers_or_dates_is_refused(values: list[object], wrong: str) -> None:
    with pytest.raises(Problem, match=f"'{wrong}' in row .* of the column 'a'"):
        kind(values)


def test_kinds_are_read_from_an_option() -> None:
    assert parse_columns("plan=category, a=b=date,note=ignore") == {"plan": "category", "a=b": "date", "note": "ignore"}
    assert parse_columns('"first, last=text",x=flag') == {"first, last": "text", "x": "flag"}
    assert parse_columns("") == {}


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("plan=categroy", r"the kind 'categroy' for 'plan' \(did you mean 'category'\?\); the kinds are number, flag"),
        ("plan=constant", "the kind 'constant' for 'plan'"),
        ("plan", "has 'plan'; give NAME=KIND"),
        ("=date", "has '=date'; give NAME=KIND"),
        ("a=date,a=text", "has 'a' twice"),
    ],
)
def test_a_wrong_option_is_refused(said: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_columns(said)
