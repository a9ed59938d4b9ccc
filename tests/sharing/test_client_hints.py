"""What a server is told of a predicate."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltalog.expressions import as_expression
from deltalog.protocol.table_change.change import new_table
from deltalog.schema import Field, Schema, StructType
from deltalog.sharing.client.shown_version import _hinting, json_hint, sql_hints
from tests.support.shared_files import schema_string

SCHEMA = Schema.from_json(
    schema_string(
        id="integer",
        big="long",
        name="string",
        day="date",
        at="timestamp",
        flag="boolean",
        x="double",
        price="decimal(10,2)",
    )
)


def _json(predicate: str) -> Any:
    text = json_hint(as_expression(predicate, SCHEMA), SCHEMA)
    return None if text is None else json.loads(text)


def _sql(predicate: str) -> tuple[str, ...]:
    return sql_hints(as_expression(predicate, SCHEMA), SCHEMA)


def _shape(tree: Any) -> Any:
    """`[op, children]`, and a leaf as `name:type` or `value:type`."""
    if "valueType" in tree:
        return f"{tree.get('name', tree.get('value'))}:{tree['valueType']}"
    return [tree["op"], *map(_shape, tree["children"])]


@pytest.mark.protocol("SHARE-JP-01", "SHARE-JP-02", "SHARE-JP-04", "SHARE-JP-07")
@pytest.mark.parametrize(
    ("predicate", "shape"),
    [
        ("id = 5", ["equal", "id:int", "5:int"]),
        ("5 < id", ["lessThan", "5:int", "id:int"]),
        ("big >= -1", ["greaterThanOrEqual", "big:long", "-1:long"]),
        ("name <= 'b'", ["lessThanOrEqual", "name:string", "b:string"]),
        ("day > DATE '2021-04-29'", ["greaterThan", "day:date", "2021-04-29:date"]),
        ("flag = true", ["equal", "flag:bool", "true:bool"]),
        ("id <> 5", ["not", ["equal", "id:int", "5:int"]]),
        ("id IS NOT NULL", ["not", ["isNull", "id:string"]]),
        ("id IN (1, 2)", ["or", ["equal", "id:int", "1:int"], ["equal", "id:int", "2:int"]]),
        (
            "id = 1 OR name = 'x'",
            ["or", ["equal", "id:int", "1:int"], ["equal", "name:string", "x:string"]],
        ),
    ],
)
def test_conditions_are_told_as_json(predicate: str, shape: Any) -> None:
    assert _shape(_json(predicate)) == shape


@pytest.mark.protocol("SHARE-JP-02")
def test_moments_are_told_with_their_zone() -> None:
    tree = _json("at >= TIMESTAMP '2022-01-01 00:00:00Z'")
    assert tree["children"][1]["value"] == "2022-01-01T00:00:00Z"


@pytest.mark.protocol("SHARE-QT-07", "D-78")
@pytest.mark.parametrize(
    "predicate",
    [
        "x > 5",
        "price = 1.5",
        "length(name) > 3",
        "name LIKE 'a%'",
        "id + 1 = 2",
        "day > DATE'+12022-11-05'",
        "at < TIMESTAMP'-0044-03-15 00:00:00Z'",
    ],
)
def test_what_is_not_safe_is_not_told(predicate: str) -> None:
    assert _json(predicate) is None
    assert _sql(predicate) == ()


@pytest.mark.protocol("SHARE-QT-07")
def test_parts_of_a_conjunction_are_told_by_themselves() -> None:
    assert _shape(_json("x > 5 AND id = 1 AND name LIKE 'a%'")) == ["equal", "id:int", "1:int"]
    assert _json("x > 5 OR id = 1") is None  # half of a choice would leave out rows


@pytest.mark.protocol("SHARE-QT-05", "SHARE-SQL-01")
@pytest.mark.parametrize(
    ("predicate", "hints"),
    [
        ("id = 123", ("id = 123",)),
        ("name > 'foo'", ("name > 'foo'",)),
        ("'foo' < name", ("'foo' < name",)),
        ("id >= 123 AND 456 <= id", ("id >= 123", "456 <= id")),
        ("name <> 'foo'", ("name <> 'foo'",)),
        ("id IS NULL", ("id IS NULL",)),
        ("id IS NOT NULL", ("id IS NOT NULL",)),
        ("day = DATE '2021-01-01'", ("day = '2021-01-01'",)),
        ("flag = false", ("flag = false",)),
        ('name = "it\'s"', ()),
        ("name = 'a\\\\b'", ()),
        ("at > TIMESTAMP '2022-01-01 00:00:00Z'", ()),
        ("id = 1 OR id = 2", ()),
    ],
)
def test_simple_conditions_are_told_as_sql(predicate: str, hints: tuple[str, ...]) -> None:
    assert _sql(predicate) == hints


def test_columns_that_the_server_may_read_otherwise_are_kept_from_it() -> None:
    schema = StructType([Field("ts", "timestamp"), Field("id", "long")])
    predicate = as_expression("ts = TIMESTAMP '2024-01-01 00:00:00Z' AND id = 1", schema)
    assert "ts" in str(json_hint(predicate, schema))
    hint = json_hint(predicate, schema, {"ts"})
    assert hint is not None
    assert "ts" not in hint
    assert sql_hints(predicate, schema, {"ts"}) == ("id = 1",)
    assert json_hint(as_expression("ts IS NULL", schema), schema, {"ts"}) is None


@pytest.mark.parametrize(("zone", "kept"), [("UTC", True), ("Europe/Berlin", False)])
def test_zoneless_partition_values_are_the_clients_to_read(zone: str, kept: bool) -> None:
    schema = StructType([Field("p", "timestamp"), Field("ts", "timestamp")])
    configuration = new_table(schema, partition_columns=["p"], created_time_ms=0)
    for name, expected in (("p", kept), ("ts", True)):
        predicate = as_expression(f"{name} = TIMESTAMP '2024-01-01 00:00:00Z'", schema)
        query = _hinting(predicate, configuration, zone)
        assert (query.json_predicate_hints is not None) == expected
