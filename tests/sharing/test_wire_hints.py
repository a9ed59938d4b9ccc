"""Predicate hints: what they may say, and that nothing else is understood."""

from __future__ import annotations

import datetime as dt
from typing import Any

import orjson
import pytest

from deltalog.errors import MalformedMessageError
from deltalog.expressions import Expression, col, lit, parse_sql, resolve_predicate, to_sql
from deltalog.schema import parse_schema
from deltalog.sharing.wire.hints import (
    MOST_BYTES,
    MOST_DEPTH,
    MOST_OPERATIONS,
    encode_json_hint,
    parse_json_hint,
    parse_sql_hint,
)

Json = dict[str, Any]

TYPES = {
    "bool": ("true", True),
    "int": ("25", 25),
    "long": ("9007199254740993", 9007199254740993),
    "string": ("x", "x"),
    "date": ("2021-04-29", dt.date(2021, 4, 29)),
    "float": ("1.5", 1.5),
    "double": ("-2.5", -2.5),
    "timestamp": (
        "2021-04-29T00:00:00Z",
        dt.datetime(2021, 4, 29, tzinfo=dt.UTC),
    ),
}
OPERATIONS = {
    "equal": "=",
    "lessThan": "<",
    "lessThanOrEqual": "<=",
    "greaterThan": ">",
    "greaterThanOrEqual": ">=",
}


def _column(name: str = "c", kind: str = "int") -> Json:
    return {"op": "column", "name": name, "valueType": kind}


def _literal(value: str = "1", kind: str = "int") -> Json:
    return {"op": "literal", "value": value, "valueType": kind}


def _op(operation: str, *children: Json) -> Json:
    return {"op": operation, "children": list(children)}


def _parse(node: object) -> Expression:
    return parse_json_hint(orjson.dumps(node).decode())


@pytest.mark.protocol("SHARE-JP-01", "SHARE-JP-02", "SHARE-JP-04", "SHARE-JP-07")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_comparison_of_every_type(operation: str, kind: str) -> None:
    text, value = TYPES[kind]
    found: Any = _parse(_op(operation, _column(kind=kind), _literal(text, kind)))
    assert (found.operator, found.left.path, found.right.value) == (
        OPERATIONS[operation],
        ("c",),
        value,
    )
    turned: Any = _parse(_op(operation, _literal(text, kind), _column(kind=kind)))
    assert turned.left.value == value


@pytest.mark.protocol("SHARE-JP-05")
def test_the_trees_of_the_specification() -> None:
    date = _op("equal", _column("hireDate", "date"), _literal("2021-04-29", "date"))
    both = _op("and", date, _op("lessThan", _column("id"), _literal("25")))
    assert to_sql(_parse(date)) == "hireDate = DATE'2021-04-29'"
    assert to_sql(_parse(both)) == "hireDate = DATE'2021-04-29' AND id < 25"
    assert to_sql(_parse(_op("not", _op("isNull", _column("id"))))) == "id IS NOT NULL"
    with pytest.raises(MalformedMessageError):  # as it stands there, with a comma too many
        parse_json_hint('{"op":"not","children":[{"op":"isNull","children":[{"op":"column",},]}]}')


@pytest.mark.protocol("SHARE-JP-02", "SHARE-JP-03")
@pytest.mark.parametrize(
    "node",
    [
        [],
        1,
        None,
        {},
        {"op": "later"},
        _column(),
        _literal(),
        _op("equal", _column()),
        _op("equal", _column(), _literal(), _literal()),
        _op("equal", _column(), _op("equal", _column(), _literal())),
        _op("isNull", _column(), _column()),
        _op("isNull", _literal()),
        _op("not"),
        _op("not", _op("isNull", _column()), _op("isNull", _column())),
        _op("and", _op("isNull", _column())),
        _op("or"),
        {"op": "and", "children": "x"},
        _op("equal", _column(kind="decimal"), _literal()),
        _op("equal", _column(""), _literal()),
        _op("equal", _column(), _literal("x")),
        _op("equal", _column(), _literal("2147483648")),
        _op("equal", _column(kind="long"), _literal("9" * 30, "long")),
        _op("equal", _column(kind="bool"), _literal("maybe", "bool")),
        _op("equal", _column(kind="date"), _literal("2021-4-29", "date")),
        _op("equal", _column(kind="date"), _literal("20210429", "date")),
        _op("equal", _column(kind="timestamp"), _literal("2021-04-29T00:00:00", "timestamp")),
        _op("equal", _column(kind="double"), _literal("nan", "double")),
        _op("equal", _column(), {"op": "literal", "value": 1, "valueType": "int"}),
    ],
)
def test_what_is_no_tree(node: object) -> None:
    with pytest.raises(MalformedMessageError):
        _parse(node)


@pytest.mark.protocol("SHARE-JP-09")
def test_size_and_depth_are_bounded() -> None:
    node = _op("isNull", _column())
    for _ in range(MOST_DEPTH - 1):
        node = _op("not", node)
    _parse(node)
    with pytest.raises(MalformedMessageError, match="nested deeper"):
        _parse(_op("not", node))
    with pytest.raises(MalformedMessageError, match="longer"):
        parse_json_hint(" " * (MOST_BYTES + 1))
    with pytest.raises(MalformedMessageError):
        parse_json_hint('{"op":"not","children":[' * 100_000)
    with pytest.raises(MalformedMessageError, match="more than"):
        _parse(_op("or", *[_op("isNull", _column())] * MOST_OPERATIONS))


@pytest.mark.protocol("SHARE-QT-05", "SHARE-SQL-01")
@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("col = 123", col("col") == 123),
        ("col > 'foo'", col("col") > "foo"),
        ("'foo' < col", lit("foo") < col("col")),
        ("col >= 123", col("col") >= 123),
        ("123 <= col", lit(123) <= col("col")),
        ("col <> 'foo'", col("col") != "foo"),
        ("col IS NULL", col("col").is_null()),
        ("col is not  null", col("col").is_not_null()),
        ("col = 'O''Brien'", col("col") == "O'Brien"),
        ("`a b`>=-5", col("`a b`") >= -5),
        ("`a``b` != true", col("`a``b`") != True),  # noqa: E712
        ("a = 1 AND (b = 2 OR NOT c IN (1, 2))", None),
    ],
)
def test_sql_of_the_specification(text: str, meaning: Expression | None) -> None:
    found = parse_sql_hint(text)
    assert found.same_as(parse_sql(text) if meaning is None else meaning)


@pytest.mark.protocol("SHARE-SQL-02")
@pytest.mark.parametrize(
    "text",
    [
        "foo(",
        "1=1; drop",
        "",
        "rand() > 0.5",
        "a RLIKE '(a+)+$'",
        "a LIKE '%x'",
        "a + 1 = 2",
        "reflect('java.lang.System', 'exit', 1) = 1",
        "(" * 3000 + "a" + ")" * 3000,
        "a = 1 OR " * 5000 + "a = 1",
        "a = '\\",
    ],
)
def test_sql_that_is_more_than_comparisons(text: str) -> None:
    with pytest.raises(MalformedMessageError):
        parse_sql_hint(text)


SCHEMA = parse_schema(
    '{"type":"struct","fields":['
    + ",".join(
        f'{{"name":"{name}","type":"{kind}","nullable":true,"metadata":{{}}}}'
        for name, kind in {
            "i": "integer",
            "l": "long",
            "s": "string",
            "d": "date",
            "t": "timestamp",
            "b": "boolean",
            "x": "double",
            "n": "decimal(10,2)",
        }.items()
    )
    + "]}"
)


@pytest.mark.parametrize(
    "text",
    [
        "i = 5",
        "5 < i",
        "l >= 7 AND s <> 'a'",
        "d = DATE '2021-04-29' OR d IS NULL",
        "NOT (b = true)",
        "i IN (1, 2, 3)",
        "t > TIMESTAMP '2021-04-29 00:00:00Z'",
        "x <= 1.5D AND i IS NOT NULL",
    ],
)
def test_conditions_become_hints_that_mean_the_same(text: str) -> None:
    resolved = resolve_predicate(parse_sql(text), SCHEMA)
    hint = encode_json_hint(resolved)
    assert hint is not None
    back = resolve_predicate(parse_json_hint(hint), SCHEMA)
    again = encode_json_hint(back)
    assert again == hint


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("i = 5 AND length(s) > 2", "i = 5"),
        ("i = 5 AND (l = 1 OR length(s) > 2)", "i = 5"),
        ("length(s) > 2", None),
        ("NOT (i = 5 AND length(s) > 2)", None),
        ("n = 1.5", None),
        ("i = l", None),
    ],
)
def test_what_no_hint_can_say_is_left_out(text: str, kept: str | None) -> None:
    hint = encode_json_hint(resolve_predicate(parse_sql(text), SCHEMA))
    expected = None
    if kept is not None:
        expected = encode_json_hint(resolve_predicate(parse_sql(kept), SCHEMA))
    assert hint == expected
