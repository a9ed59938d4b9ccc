from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.support.skipping import ALL_NULL, ONE_TO_FIVE, keep, plan, stats


@pytest.mark.protocol("STAT-04", "STAT-08")
@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("x > 5", False),
        ("x > 4", True),
        ("x >= 5", True),
        ("x >= 6", False),
        ("x < 1", False),
        ("x <= 1", True),
        ("5 < x", False),
        ("1 >= x", True),
        ("x = 0", False),
        ("x = 3", True),
        ("x <=> 6", False),
        ("x <> 3", True),
        ("x BETWEEN 6 AND 9", False),
        ("x IN (0, 6)", False),
        ("x IN (0, 3)", True),
        ("x IN (0, NULL)", False),
        ("x NOT IN (1, NULL)", False),
        ("x NOT IN (1, 2)", True),
        ("x IS NULL", False),
        ("x IS NOT NULL", True),
        ("x <=> NULL", False),
        ("x = NULL", False),
        ("NOT x <= 5", False),
        ("NOT x > 5", True),
        ("NOT (x > 0 OR x IS NULL)", False),
        ("NOT (x >= 1 AND x <= 5)", False),
        ("NOT (x <=> 3)", True),
        ("x > 5 OR x < 1", False),
        ("x > 5 OR x = 2", True),
        ("x > 5 AND x = 2", False),
        ("x > 3000000000", False),
        ("x > 5.5", False),
        ("x < 1.5", True),
        ("CAST(x AS DOUBLE) > 5", False),
        ("CAST(x AS DOUBLE) IS NULL", False),
        ("CAST(x AS STRING) = '7'", True),
        ("x % 2 = 7", True),
        ("x > 5 OR x % 2 = 0", True),
        ("x > 5 AND x % 2 = 0", False),
        ("FALSE", False),
        ("TRUE", True),
        ("NULL", False),
    ],
)
def test_a_file_with_x_from_1_to_5(predicate: str, *, expected: bool) -> None:
    assert keep(predicate, ONE_TO_FIVE, None) == [
        expected,
        # Without statistics, only what no row can fulfil is skipped.
        predicate not in {"FALSE", "NULL", "x = NULL", "x NOT IN (1, NULL)"},
    ]


@pytest.mark.protocol("STAT-08")
@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("x > 5", False),
        ("x <> 5", False),
        ("x = 5", False),
        ("x IN (5)", False),
        ("x IS NULL", True),
        ("x <=> NULL", True),
        ("x IS NOT NULL", False),
        ("NOT (x <=> 5)", True),
    ],
)
def test_a_file_where_all_is_null(predicate: str, *, expected: bool) -> None:
    assert keep(predicate, ALL_NULL) == [expected]


def test_a_file_of_one_value() -> None:
    one = stats("x", "3", "3")
    assert keep("x <> 3", one) == [False]
    assert keep("x <> 4", one) == [True]
    assert keep("x NOT IN (1, 3)", one) == [False]
    assert keep("NOT (x <=> 3)", one) == [False]
    assert keep("NOT (x <=> 3)", stats("x", "3", "3", nulls=1)) == [True]


@pytest.mark.protocol("STAT-02", "D-63")
@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{bad",
        "{}",
        '{"numRecords":10}',
        '{"numRecords":10,"minValues":{"x":1},"nullCount":{"x":0}}',
        '{"maxValues":{"y":1}}',
    ],
)
def test_a_missing_statistic_keeps_the_file(text: str | None) -> None:
    assert keep("x > 5", text) == [True]


@pytest.mark.protocol("STAT-06", "D-12")
@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("s LIKE 'ab%'", True),
        ("s LIKE 'aa%'", False),
        ("s LIKE 'b%'", True),
        ("s LIKE 'bb%'", False),
        ("s LIKE 'a%z_'", True),
        ("s LIKE 'aa_'", False),
        ("s LIKE 'aa'", False),
        ("s LIKE 'abc'", True),
        ("s LIKE '%x'", True),
        ("s LIKE ''", False),
        ("s LIKE 'a\\\\%%'", False),
        ("s LIKE NULL", False),
        ("s ILIKE 'Z%'", True),
        ("startswith(s, 'c')", False),
        ("startswith(s, '')", True),
        ("startswith(s, NULL)", False),
        ("s NOT LIKE 'a%'", True),
        ("s NOT LIKE 'a%b'", True),
        ("s NOT LIKE 'abc'", True),
        ("s IN ('a', 'bb')", False),
        ("s > 'é'", False),
    ],
)
def test_texts_from_abc_to_ba(predicate: str, *, expected: bool) -> None:
    assert keep(predicate, stats("s", '"abc"', '"ba"')) == [expected]


def test_a_million_files_cost_no_python_object_each(monkeypatch: pytest.MonkeyPatch) -> None:
    skipping = plan("x > 5 AND x IN (7, 8)")
    assert skipping is not None
    bounds: Any = pa.StructArray.from_arrays([pa.array(range(100_000))], names=["x"])
    table = pa.table({"minValues": bounds, "maxValues": bounds})

    def refuse(*_: object) -> None:
        raise AssertionError("a column was turned into Python objects")

    monkeypatch.setattr("deltalog.expressions.comparing.sort_key", refuse)
    assert skipping.keep(table).true_count == 2
