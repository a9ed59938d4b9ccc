"""Expressions as tables state them: constraints, generated columns and defaults."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import (
    Literal,
    as_expression,
    evaluate,
    is_deterministic,
    parse_sql,
    resolve,
    resolve_predicate,
    type_of,
)
from deltalog.expressions.arrow import fold
from deltalog.expressions.sql_session import SqlSession
from deltalog.schema import Schema, StructType, from_arrow_schema

DATA = pa.RecordBatch.from_pydict(
    {
        "id": pa.array([7, None, -20], pa.int64()),
        "a": pa.array([1, None, -3], pa.int32()),
        "b": pa.array(["x", None, ""]),
        "name": pa.array(["Ärger", None, "bob"]),
        "birthDate": pa.array([dt.date(1980, 5, 6), None, dt.date(1850, 1, 1)]),
        "ts": pa.array([1_706_696_430_500_000, None, -1], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.25"), None, Decimal("-9.99")], pa.decimal128(10, 2)),
        "s": pa.array(
            [{"nested": {"x": 5}}, None, {"nested": None}],
            pa.struct([("nested", pa.struct([("x", pa.int32())]))]),
        ),
        "arr": pa.array([[1, 2], None, [3]], pa.list_(pa.int32())),
        "props": pa.array([[("k", "v")], None, []], pa.map_(pa.string(), pa.string())),
    }
)
SCHEMA: Schema = from_arrow_schema(DATA.schema)


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("birthDate > '1900-01-01'", [True, None, False]),
        ("a > 0 AND b IS NOT NULL", [True, False, False]),
        ("a > 0 OR a IS NULL", [True, True, False]),
        ("s.nested.x > 3", [True, None, None]),
        ("array_contains(arr, 1)", [True, None, False]),
        ("size(arr) <= 2", [True, None, True]),
        ("length(name) BETWEEN 1 AND 5", [True, None, True]),
        ("b IN ('x', '')", [True, None, True]),
        ("name RLIKE '^[a-z]+$'", [False, None, True]),
        ("name LIKE '%o%'", [False, None, True]),
        ("price >= 0", [True, None, False]),
        ("price * 2 < 2.51", [True, None, True]),
        ("ts < TIMESTAMP'2030-01-01' AND ts >= '1970-01-01 00:00:00'", [True, None, False]),
        ("props['k'] = 'v'", [True, None, None]),
        ("CASE WHEN a > 0 THEN b = 'x' ELSE TRUE END", [True, True, True]),
        ("id % 10 <> 0", [True, None, False]),
        ("coalesce(a, 0) >= 0", [True, True, False]),
        ("NOT (a < 0 AND id < 0)", [True, None, False]),
    ],
)
def test_constraints(constraint: str, expected: list[bool | None]) -> None:
    resolved = as_expression(constraint, SCHEMA)
    assert evaluate(resolved, DATA).to_pylist() == expected


@pytest.mark.parametrize(
    ("generation", "data_type", "expected"),
    [
        ("CAST(ts AS DATE)", "date", [dt.date(2024, 1, 31), None, dt.date(1969, 12, 31)]),
        ("year(ts)", "integer", [2024, None, 1969]),
        ("month(ts)", "integer", [1, None, 12]),
        ("day(ts)", "integer", [31, None, 31]),
        ("hour(ts)", "integer", [10, None, 23]),
        ("date_format(ts,'yyyy-MM')", "string", ["2024-01", None, "1969-12"]),
        ("date_format(ts,'yyyy-MM-dd-HH')", "string", ["2024-01-31-10", None, "1969-12-31-23"]),
        ("date_trunc('DAY', ts) = ts", "boolean", [False, None, False]),
        ("trunc(birthDate, 'MONTH')", "date", [dt.date(1980, 5, 1), None, dt.date(1850, 1, 1)]),
        ("substring(name,1,3)", "string", ["Ärg", None, "bob"]),
        ("upper(name)", "string", ["ÄRGER", None, "BOB"]),
        ("concat(b, '-', name)", "string", ["x-Ärger", None, "-bob"]),
        ("id % 8", "long", [7, None, -4]),
        ("pmod(id, 8)", "long", [7, None, 4]),
        ("CAST(id / 10 AS INT)", "integer", [0, None, -2]),
        ("id div 10", "long", [0, None, -2]),
        ("a + 1", "integer", [2, None, -2]),
        ("CAST(price AS INT)", "integer", [1, None, -9]),
        ("round(price, 1)", "decimal(10,1)", [Decimal("1.3"), None, Decimal("-10.0")]),
        ("s.nested.x", "integer", [5, None, None]),
        ("sha2(name, 256) IS NULL", "boolean", [False, True, False]),
        ("crc32(name) % 4", "long", [3, None, 0]),
        ("coalesce(b, name, 'none')", "string", ["x", "none", ""]),
        ("regexp_extract(name, '^(.)', 1)", "string", ["Ä", None, "b"]),
    ],
)
def test_generated_columns(generation: str, data_type: str, expected: list[Any]) -> None:
    resolved = fold(resolve(parse_sql(generation), SCHEMA))
    assert str(type_of(resolved, SCHEMA)) == data_type
    assert evaluate(resolved, DATA).to_pylist() == expected


NOW = dt.datetime(2024, 6, 1, 12, 30, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("default", "value"),
    [
        ("0", 0),
        ("-1", -1),
        ("'unknown'", "unknown"),
        ("NULL", None),
        ("TRUE", True),
        ("1.5", Decimal("1.5")),
        ("CAST('5' AS BIGINT)", 5),
        ("DATE'2024-01-31' + 1", dt.date(2024, 2, 1)),
        ("current_timestamp()", NOW),
        ("current_date()", NOW.date()),
        ("current_timestamp() - INTERVAL 30 MINUTES", NOW - dt.timedelta(minutes=30)),
        ("date_format(current_timestamp(), 'yyyy')", "2024"),
        ("concat('a', 'b', 1 + 1)", "ab2"),
    ],
)
def test_defaults_become_one_constant(default: str, value: object) -> None:
    found = fold(resolve(parse_sql(default), StructType(), SqlSession(now=NOW, time_zone="UTC")))
    assert isinstance(found, Literal)
    assert found.value == value


@pytest.mark.parametrize("sql", ["current_date() > birthDate", "now() > ts", "ts < localtimestamp"])
def test_rules_that_depend_on_the_present_are_known_as_such(sql: str) -> None:
    assert not is_deterministic(parse_sql(sql))
    with pytest.raises(InvalidInputError, match="its value changes with time"):
        resolve_predicate(parse_sql(sql), SCHEMA)


@pytest.mark.parametrize(
    "sql",
    ["my_udf(a) > 1", "sum(a) > 1", "a IN (SELECT 1)", "row_number() OVER (ORDER BY a) = 1",
     "my_udf(arr, x -> x > 1)", "rand() > 0.5"],
)  # fmt: skip
def test_what_a_rule_may_not_hold_is_refused_before_any_row(sql: str) -> None:
    with pytest.raises(InvalidInputError):
        as_expression(sql, SCHEMA)
