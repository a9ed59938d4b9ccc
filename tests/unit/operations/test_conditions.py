"""Conditions and new values as callers give them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import col, lit, to_sql
from deltalog.expressions.sql_session import SqlSession
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations import arguments as conditions
from deltalog.schema import Field, StructType
from tests.support import logs

SCHEMA = StructType([Field("id", "long"), Field("p", "string")])
NOW = datetime(2024, 1, 1, tzinfo=UTC)
AT_NOW = SqlSession(now=NOW, time_zone="UTC")


def test_blanks_stand_for_null_in_filters_of_partitions_alone() -> None:
    filters = [[("p", "=", ""), ("id", "=", "")], [("p", "in", ["", "a"])]]
    assert conditions.with_blanks_as_nulls(filters, ["p"]) == [
        [("p", "=", None), ("id", "=", "")],
        [("p", "in", ["", "a"])],
    ]
    assert conditions.with_blanks_as_nulls("p = ''", ["p"]) == "p = ''"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], None),
        ([None, []], None),
        (["id > 1"], "id > 1L"),
        ([None, "id > 1", [("p", "=", "a")]], "id > 1L AND p = 'a'"),
        ([col("id") == lit(2)], "id = 2L"),
    ],
)
def test_all_conditions_hold_together(given: list[Any], expected: str | None) -> None:
    found = conditions.as_condition(SCHEMA, *given, session=AT_NOW)
    assert (None if found is None else to_sql(found)) == expected


def test_parameters_need_a_condition() -> None:
    found = conditions.as_condition(SCHEMA, "id = :n", session=AT_NOW, parameters={"n": 3})
    assert found is not None
    assert to_sql(found) == "id = 3L"
    with pytest.raises(InvalidInputError, match="no predicate"):
        conditions.as_condition(SCHEMA, None, session=AT_NOW, parameters=[3])


def test_updates_are_sql_or_values() -> None:
    found = conditions.as_updates({"p": "upper(p)", "id": col("id")}, None, None)
    assert {name: to_sql(value) for name, value in found.items()} == {  # type: ignore[arg-type]
        "p": "upper(p)",
        "id": "id",
    }
    values = conditions.as_updates(None, {"p": "upper(p)", "id": None}, None)
    assert [to_sql(value) for value in values.values()] == ["'upper(p)'", "NULL"]  # type: ignore[arg-type]
    for updates, new in (({}, {}), (None, None)):
        with pytest.raises(InvalidInputError, match="either updates"):
            conditions.as_updates(updates, new, None)
    plain = {"id": 3, "p": None, "d": date(2024, 1, 31)}
    found = conditions.as_updates(plain, None, None)
    assert [to_sql(value) for value in found.values()] == ["3", "NULL", "DATE'2024-01-31'"]  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="new_values"):
        conditions.as_updates({"id": [3]}, None, None)


def test_constraints_may_name_columns_in_double_quotes() -> None:
    given = {"a": '"id" > 0 AND p <> "x"', "b": "id < 9"}
    assert conditions.as_constraints(given, ["id", "p"]) == {
        "a": '`id` > 0 AND p <> "x"',
        "b": "id < 9",
    }
    assert conditions.as_constraints("id > 0", ["id"]) == "id > 0"  # which is refused later


def test_a_condition_of_each_version_goes_by_its_columns() -> None:
    assert conditions.for_each_version(None, changes=True) is None
    store = logs.table_of([logs.PROTOCOL, logs.metadata()])
    snapshot = load_snapshot(utc_context(store))
    text = "id > 0 AND _change_type = 'insert'"
    of_changes = conditions.for_each_version(text, changes=True)
    assert of_changes is not None
    assert of_changes(snapshot) is not None
    of_rows = conditions.for_each_version(text, changes=False)
    assert of_rows is not None
    with pytest.raises(InvalidInputError, match="_change_type"):
        of_rows(snapshot)


def test_an_empty_list_of_filters_is_not_every_row() -> None:
    for predicate in (None, "id = 1", [("id", "=", 1)]):
        conditions.check_given(predicate)
    nothing: tuple[object, ...] = ([], ())
    for empty in nothing:
        with pytest.raises(InvalidInputError, match="would match all rows"):
            conditions.check_given(empty)
