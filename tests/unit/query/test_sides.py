"""Sides of set operations, of IN about a query, and rows of VALUES have Spark's common types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pytest

import deltalog
from deltalog.errors import InvalidInputError

_DOUBLE_OF_TENTH: Final = 0.10000000149011612
_T: Final = pa.table(
    {
        "n": [1, 2, 3],
        "f": pa.array([0.1, 0.5, 16777216.0], pa.float32()),
        "d": pa.array([_DOUBLE_OF_TENTH, 0.5, 16777217.0]),
        "i": pa.array([0, 16777216, 16777217], pa.int32()),
        "l": pa.array([0, 16777216, 9007199254740993], pa.int64()),
        "s": ["0", "1", "0.5"],
        "odd name": pa.array([0, 1, None], pa.date32()),
        "x": pa.array([Decimal("0.1"), Decimal("0.5"), None], pa.decimal128(3, 1)),
        "y": pa.array([Decimal("9007199254740993.5"), None, None], pa.decimal128(20, 1)),
        "st": [{"a": 1}, None, {"a": 3}],
        "m": [b"", None, b"x"],
    }
)


def _rows(query: str) -> pa.Table:
    return deltalog.connect({"t": _T}).sql(query).to_arrow()


def _key(value: object) -> tuple[bool, Any]:
    return (value is not None, value)


@pytest.mark.parametrize(
    ("query", "kind", "expected"),
    [
        ("SELECT f FROM t UNION ALL SELECT x FROM t", pa.float64(),
         [None, 0.1, _DOUBLE_OF_TENTH, 0.5, 0.5, 16777216.0]),
        ("SELECT x FROM t UNION ALL SELECT f FROM t", pa.float64(),
         [None, 0.1, _DOUBLE_OF_TENTH, 0.5, 0.5, 16777216.0]),
        ("SELECT f FROM t UNION SELECT i FROM t", pa.float64(),
         [0.0, _DOUBLE_OF_TENTH, 0.5, 16777216.0, 16777217.0]),
        ("SELECT f FROM t EXCEPT SELECT i FROM t", pa.float64(), [_DOUBLE_OF_TENTH, 0.5]),
        ("SELECT f FROM t INTERSECT SELECT x FROM t", pa.float64(), [0.5]),
        ("SELECT l FROM t WHERE n > 1 UNION ALL SELECT y FROM t WHERE n = 1",
         pa.decimal128(21, 1), [Decimal("16777216.0"), Decimal("9007199254740993.0"),
                                Decimal("9007199254740993.5")]),
        ("SELECT i FROM t UNION SELECT s FROM t WHERE n < 3", pa.int64(),
         [0, 1, 16777216, 16777217]),
        ("SELECT NULL UNION ALL SELECT i FROM t WHERE n = 1", pa.int32(), [None, 0]),
        ("SELECT 1 UNION ALL SELECT 0.5 UNION ALL SELECT 2D", pa.float64(), [0.5, 1.0, 2.0]),
        ("SELECT v FROM (SELECT f AS v FROM t UNION SELECT x FROM t) WHERE v < 0.2",
         pa.float64(), [0.1, _DOUBLE_OF_TENTH]),
        ("WITH q AS (SELECT f FROM t UNION SELECT x FROM t) SELECT f FROM q WHERE f > 1",
         pa.float64(), [16777216.0]),
        ("(SELECT i FROM t ORDER BY i DESC LIMIT 1) UNION ALL SELECT 0.5", pa.decimal128(11, 1),
         [Decimal("0.5"), Decimal("16777217.0")]),
    ],
)  # fmt: skip
def test_set_operations_have_common_types(
    query: str, kind: pa.DataType, expected: list[object]
) -> None:
    found = _rows(query)
    assert found.schema.types == [kind]
    assert sorted(found.column(0).to_pylist(), key=_key) == expected


@pytest.mark.parametrize(
    ("query", "kind", "expected"),
    [
        ("VALUES (0.1F), (1), (16777217)", pa.float32(), [_DOUBLE_OF_TENTH, 1.0, 16777216.0]),
        ("VALUES (1Y), (NULL), (1.5F)", pa.float32(), [1.0, None, 1.5]),
        ("VALUES (0.1F), (1), (1.5)", pa.float64(), [_DOUBLE_OF_TENTH, 1.0, 1.5]),
        ("VALUES (named_struct('a', 1)), (named_struct('a', 1.5F))",
         pa.struct([pa.field("a", pa.float32())]), [{"a": 1.0}, {"a": 1.5}]),
        ("VALUES (array(NULL)), (array(1.5F)), (array(1L))",
         pa.list_(pa.float32()), [[None], [1.5], [1.0]]),
        ("VALUES (map(1, 1)), (map(1.5F, 1.5F)), (NULL)",
         pa.map_(pa.float32(), pa.float32()), [[(1.0, 1.0)], [(1.5, 1.5)], None]),
    ],
)  # fmt: skip
def test_only_rows_of_values_have_floats_beside_whole_numbers(
    query: str, kind: pa.DataType, expected: list[object]
) -> None:
    found = _rows(query).column(0)
    assert found.type.equals(kind)
    assert found.to_pylist() == expected


def test_the_first_side_gives_the_names() -> None:
    found = _rows(
        'SELECT `odd name`, f AS `a"b`, f FROM t UNION ALL SELECT NULL, 1, x FROM t'
        ' ORDER BY `a"b` DESC LIMIT 1'
    )
    assert found.column_names == ["odd name", 'a"b', "f"]
    assert found.to_pylist() == [{"odd name": None, 'a"b': 16777216.0, "f": 16777216.0}]


def test_rows_of_a_recursion_have_the_types_of_its_first() -> None:
    found = _rows(
        "WITH RECURSIVE r AS (SELECT 1 AS v UNION ALL SELECT v + 1 FROM r WHERE v < 3)"
        " SELECT v FROM r ORDER BY v"
    )
    assert found.column("v").to_pylist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("f IN (SELECT x FROM t)", [2]),
        ("x IN (SELECT f FROM t)", [2]),
        ("f IN (SELECT i FROM t)", [3]),
        ("NOT f IN (SELECT i FROM t)", [1, 2]),
        ("f NOT IN (SELECT i FROM t)", [1, 2]),
        ("l IN (SELECT d FROM t)", []),
        ("(n, f) IN (SELECT n, x FROM t)", [2]),
        ("(n, f) NOT IN (SELECT n, i FROM t)", [1, 2, 3]),
        ("f IN (SELECT x FROM t u WHERE u.n = t.n)", [2]),
        ("f + 0 IN (SELECT x FROM t)", [2]),
        ("f IN (SELECT x FROM t UNION SELECT i FROM t)", [2, 3]),
        ("i IN (SELECT s FROM t WHERE n < 3)", [1]),
        ("1 IN (SELECT n FROM t) AND n = 2", [2]),
        ("0.5 IN (SELECT x FROM t) AND n = 2", [2]),
    ],
)
def test_values_are_compared_with_a_query_as_with_a_column(
    condition: str, expected: list[int]
) -> None:
    found = _rows(f"SELECT n FROM t WHERE {condition} ORDER BY n")
    assert found.column("n").to_pylist() == expected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT i FROM t UNION SELECT s FROM t", "0.5"),
        ("SELECT n FROM t WHERE i IN (SELECT s FROM t)", "0.5"),
        ("SELECT st FROM t UNION SELECT i FROM t", "have no common type"),
        ("SELECT n FROM t WHERE m IN (SELECT d FROM t)", "have no common type"),
        ("SELECT n, i FROM t UNION SELECT n FROM t", "(?i)number of|columns"),
        ("SELECT n FROM t WHERE (n, i) IN (SELECT n FROM t)", "(?i)columns"),
    ],
)
def test_sides_that_do_not_fit_are_refused(query: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _rows(query)
