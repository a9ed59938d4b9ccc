from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import (
    Literal,
    as_expression,
    col,
    columns,
    parse_sql,
    resolve,
    resolve_predicate,
    to_sql,
    type_of,
)
from deltalog.expressions.sql_session import SqlSession
from tests.support.typed_columns import SCHEMA, resolved_sql

NOW = dt.datetime(2024, 6, 1, 12, 30, tzinfo=dt.timezone(dt.timedelta(hours=2)))
AT_NOW = SqlSession(now=NOW, time_zone="UTC")


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("ID > 5", "Id > 5L"),
        ("S.INNER.leaf = 1", "s.Inner.Leaf = 1"),
        ("s.`B.C` = 'x'", "s.`b.c` = 'x'"),
        ("`A.B` = 1", "`a.b` = 1"),
        ("s['inner'].leaf", "s.Inner.Leaf"),
        ("m.k", "m['k']"),
        ("maps.k.v", "maps['k']['v']"),
    ],
)
def test_names_take_the_spelling_of_the_schema(sql: str, shown: str) -> None:
    assert resolved_sql(sql) == shown


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("nme = 'x'", "no column 'nme'.*did you mean 'name'"),
        ("zzzzzz = 1", "the columns are 'Id', 'n'"),
        ("s.Innr.Leaf = 1", "no column 's.Innr'.*did you mean 's.Inner'"),
        ("n.x = 1", "'n' is of type integer and has no field 'x'"),
        ("a.b = 1", "no column 'a'; for the column 'a.b', .* backticks"),
        ("trimm(name)", "no SQL function 'trimm'; did you mean 'trim'"),
        ("nvll(name, 1)", "did you mean 'nvl'"),
        ("upper()", r"upper expects 1 argument\(s\), found 0"),
        ("substring(name)", r"substring expects 2 to 3 argument\(s\), found 1"),
        ("greatest(1)", r"greatest expects 2 or more argument\(s\), found 1"),
    ],
)
def test_what_does_not_exist_is_named_with_the_nearest(sql: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        resolve(parse_sql(sql), SCHEMA)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("n AND flag", "n is of type integer, but a condition is expected"),
        ("NOT price", "price is of type decimal"),
        ("n = flag", "cannot compare integer with boolean in n = flag"),
        ("arr = 1", "cannot compare array<integer> with integer"),
        ("m = m", "cannot compare maps"),
        ("n IN (1, TRUE)", "no common type"),
        ("d = 5", "cannot compare date with integer"),
        ("d = 'x'", "cannot cast 'x' to date"),
        ("n = 'x'", "cannot cast 'x' to long"),
        ("name + d", r"string \+ date|cannot compute|date"),
        ("flag + 1", r"boolean \+ integer"),
        ("CAST(d AS int)", "cannot cast date to integer"),
        ("CAST(arr AS int)", "cannot cast array"),
        ("CASE WHEN flag THEN 1 ELSE d END", "no common type: integer, date"),
        ("coalesce(n, d)", "no common type"),
        ("array_contains(arr, 'x')", "no common type"),
        ("arr['x']", "index must be an integer"),
        ("n[0]", "only arrays, maps and structs have parts"),
        ("size(n)", "size needs an array or a map"),
        ("date_add(d, 1.5)", "number of days must be of type integer"),
        ("INTERVAL 1 DAY", "of type interval day to second, but a condition is expected"),
        ("d = INTERVAL 1 DAY", "cannot compare date with interval day to second"),
        ("INTERVAL 1 DAY = INTERVAL 1 MONTH", "cannot compare interval day to second"),
        ("INTERVAL 1 MONTH 1 DAY IS NULL", "either years and months, or days"),
        ("INTERVAL '200000000' YEAR IS NULL", "out of range"),
        ("INTERVAL 1 DAY * 2 = INTERVAL 2 DAYS", "cannot compute"),
        ("n + INTERVAL 1 DAY", "an INTERVAL must be added to or subtracted from"),
        ("d + INTERVAL 1 MONTH 1 DAY", "either years and months, or days"),
        ("round(price, n)", "must be a constant"),
        ("date_format(ts, name)", "must be a constant"),
        ("rand()", "differs each time, so only a query can use it"),
        ("row_number()", "compares a row with others, so only a query can use it"),
        ("explode(a)", "returns several rows, so only a query can use it"),
        ("stddev(a)", "it is an aggregate function"),
    ],
)
def test_types_that_do_not_fit(sql: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        resolve_predicate(parse_sql(sql), SCHEMA)


@pytest.mark.parametrize("sql", ["n > 1 AND name = 'x'", "CASE WHEN flag THEN price END IS NULL"])
def test_resolving_twice_changes_nothing(sql: str) -> None:
    once = resolve(parse_sql(sql), SCHEMA)
    assert resolve(once, SCHEMA).same_as(once)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("current_timestamp()", dt.datetime(2024, 6, 1, 10, 30, tzinfo=dt.UTC)),
        ("now()", dt.datetime(2024, 6, 1, 10, 30, tzinfo=dt.UTC)),
        ("current_date", dt.date(2024, 6, 1)),
        ("localtimestamp()", dt.datetime(2024, 6, 1, 10, 30)),  # noqa: DTZ001  # wall time
    ],
)
def test_the_present_is_handed_in(sql: str, expected: object) -> None:
    found = resolve(parse_sql(sql), SCHEMA, session=AT_NOW)
    assert isinstance(found, Literal)
    assert found.value == expected
    with pytest.raises(InvalidInputError, match="its value changes with time"):
        resolve(parse_sql(sql), SCHEMA)


def test_constant_parts_are_computed_once() -> None:
    found = as_expression(
        "d >= current_date() - 7 AND n > 2 * 3",
        SCHEMA,
        session=AT_NOW,
    )
    assert to_sql(found) == "d >= DATE'2024-05-25' AND n > 6"


def test_a_constant_part_that_fails_belongs_to_the_rows() -> None:
    found = as_expression("CASE WHEN n = 0 THEN 1 / 0 ELSE n END > 1", SCHEMA)
    assert columns(found) == {("n",)}
    assert "1.0D / 0.0D" in to_sql(found)


def test_python_values_become_constants_of_the_right_type() -> None:
    values = [5, 5.5, Decimal("5.50"), 1 << 40, True, "x", b"x", None]
    found = [resolve(col("n").is_in([value]).options[0], SCHEMA) for value in values]
    types = [str(type_of(node, SCHEMA)) for node in found]
    assert types == [
        "integer", "double", "decimal(3,2)", "long", "boolean", "string", "binary", "void",
    ]  # fmt: skip


def test_a_value_that_sql_does_not_have() -> None:
    with pytest.raises(InvalidInputError, match="cannot use"):
        resolve(col("n") == object(), SCHEMA)


def test_a_tree_too_deep_is_an_error() -> None:
    found = col("n") + 1
    for _ in range(5000):
        found = found + 1
    with pytest.raises(InvalidInputError, match="nested too deep"):
        resolve(found, SCHEMA)
