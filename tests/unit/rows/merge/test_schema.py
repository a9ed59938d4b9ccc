"""Merges and the table's schema: columns that come along, types, and rules for new rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import ConstraintViolationError, InvalidInputError, SchemaMismatchError
from deltalog.expressions import parse_type
from deltalog.rows.changes import Action, Clause, When
from deltalog.schema import Field
from deltalog.verbs.merge import upsert
from tests.support.statements import (
    FEED,
    VECTORS,
    StatedTable,
    by_source_update,
    insert,
    matched_delete,
    matched_update,
)

NUMBERS = {"id": "long", "x": "long"}
IDENTITY = {
    "delta.identity.start": 10,
    "delta.identity.step": 5,
    "delta.identity.allowExplicitInsert": False,
}


def rows(*ids: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": number, **more} for number in ids]


# --- schema evolution


def test_new_columns_are_an_error_that_says_what_to_do() -> None:
    table = StatedTable(NUMBERS, rows(1, x=0))
    with pytest.raises(SchemaMismatchError, match=r"'y'.*merge_schema=True.*except_cols"):
        table.run_merge(rows(1, y=1), upsert(None, "id"))


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewritten", "masked"])
def test_new_columns_come_along(properties: dict[str, str]) -> None:
    table = StatedTable(NUMBERS, rows(1, 2, x=0), properties={**properties, **FEED})
    table.run_merge(rows(2, 3, y="new"), upsert(None, "id", merge_schema=True))
    assert [tuple(row.values()) for row in table.rows()] == [
        (1, 0, None),
        (2, 0, "new"),
        (3, None, "new"),
    ]
    assert [tuple(row.values()) for row in table.changes()] == [
        (2, 0, None, "update_preimage"),
        (2, 0, "new", "update_postimage"),
        (3, None, "new", "insert"),
    ]


def test_columns_that_are_left_out_do_not_come_along() -> None:
    table = StatedTable(NUMBERS, rows(1, x=0))
    table.merge(
        rows(1, x=5, y=1, z=2),
        "t.id = s.id",
        Clause(when=When.MATCHED, action=Action.UPDATE, except_columns=("y",)),
        merge_schema=True,
    )
    assert table.rows() == [{"id": 1, "x": 5, "z": 2}]


def test_new_columns_may_be_assigned_by_name() -> None:
    table = StatedTable(NUMBERS, rows(1, 2, x=0))
    table.merge(
        rows(1, y=4),
        "t.id = s.id",
        matched_update(y="s.y + 1"),
        insert(id="s.id"),
        merge_schema=True,
    )
    assert table.rows() == [{"id": 1, "x": 0, "y": 5}, {"id": 2, "x": 0, "y": None}]
    with pytest.raises(InvalidInputError, match="no column 'w'"):
        table.merge(rows(1, y=4), "t.id = s.id", matched_update(w="1"), merge_schema=True)


def test_nested_fields_come_along_and_those_that_are_missing_stay() -> None:
    table = StatedTable(
        {"id": "long", "s": "struct<a:long,b:string>"},
        [{"id": 1, "s": {"a": 1, "b": "keep"}}, {"id": 2, "s": {"a": 1, "b": "keep"}}],
    )
    table.run_merge(
        pa.table({"id": [1, 2, 3], "s": [{"a": 5, "c": 6}, None, {"a": 7, "c": 8}]}),
        upsert(None, "id", merge_schema=True),
    )
    # The source lacks b and brings c: no field of b is lost where the row was there.
    assert table.rows() == [
        {"id": 1, "s": {"a": 5, "b": "keep", "c": 6}},
        {"id": 2, "s": None},
        {"id": 3, "s": {"a": 7, "b": None, "c": 8}},
    ]


def test_types_that_do_not_merge_are_refused() -> None:
    table = StatedTable(NUMBERS, rows(1, x=0))
    with pytest.raises(SchemaMismatchError, match="'x' is of type long"):
        table.run_merge(rows(1, x="text"), upsert(None, "id", merge_schema=True))


def test_columns_widen_where_the_table_allows_it() -> None:
    table = StatedTable(
        {"id": "long", "x": "int"},
        rows(1, 2, x=0),
        properties={"delta.enableTypeWidening": "true"},
    )
    table.run_merge(rows(2, 3, x=1 << 40), upsert(None, "id", merge_schema=True))
    assert table.rows() == [*rows(1, x=0), *rows(2, 3, x=1 << 40)]


def test_names_are_compared_without_case() -> None:
    table = StatedTable({"Id": "long", "X": "long"}, [{"Id": 1, "X": 0}])
    table.run_merge([{"ID": 1, "x": 5}], upsert(None, "id", merge_schema=True))
    assert table.rows() == [{"Id": 1, "X": 5}]


# --- types


def test_values_are_cast_to_the_columns_types() -> None:
    table = StatedTable({"id": "int", "x": "byte"}, rows(1, 2, x=0))
    table.run_merge(rows(1, x="7"), upsert(None, "id"))
    assert table.values("x") == [0, 7]
    with pytest.raises(InvalidInputError):
        table.run_merge(rows(1, x=300), upsert(None, "id"))
    table.merge(rows(1, x=300), "t.id = s.id", matched_update(), error_on_type_mismatch=False)
    assert table.values("x") == [None, 0]


def test_names_that_need_quotes() -> None:
    table = StatedTable(
        {"my id": "long", "a.b": "long"},
        [{"my id": 1, "a.b": 0}],
        properties={"delta.columnMapping.mode": "name"},
    )
    table.merge(
        [{"my id": 1, "a.b": 5}],
        "t.`my id` = s.`my id`",
        Clause(when=When.MATCHED, action=Action.UPDATE, values={"t.`a.b`": "s.`a.b` + 1"}),
    )
    assert table.rows() == [{"my id": 1, "a.b": 6}]


def test_a_column_that_is_called_as_the_other_side() -> None:
    table = StatedTable({"source": "long", "s": "long"}, [{"source": 1, "s": 0}])
    table.merge([{"source": 1, "s": 9}], "t.source = s.source", matched_update(s="s.s + t.source"))
    assert table.rows() == [{"source": 1, "s": 10}]


# --- what the table demands


def test_generated_columns_of_new_and_changed_rows() -> None:
    columns = [
        Field("id", "long"),
        Field("x", "long"),
        Field("twice", "long", metadata={"delta.generationExpression": "x * 2"}),
    ]
    table = StatedTable(columns, rows(1, 2, x=1))
    table.run_merge(rows(2, 3, x=5), upsert(None, "id"))
    assert table.values("twice") == [2, 10, 10]
    table.merge(rows(1), "t.id = s.id", by_source_update(x="0"))
    assert table.values("twice") == [0, 0, 2]
    with pytest.raises(ConstraintViolationError, match="generated column 'twice'"):
        table.run_merge(rows(2, x=5, twice=11), upsert(None, "id"))


@pytest.mark.protocol("IDN-04", "IDN-08")
def test_identity_columns_go_on_over_several_clauses() -> None:
    columns = [Field("n", "long", metadata=IDENTITY), *StatedTable.fields(NUMBERS)]
    table = StatedTable(columns, rows(1, 2, x=0))
    source = rows(2, 3, 4, 5, x=7)
    for _ in range(2):
        table.merge(
            source,
            "t.id = s.id",
            matched_update(x="s.x"),
            insert("s.id = 4", id="s.id", x="40"),
            insert(id="s.id", x="s.x"),
        )
    assert [tuple(row.values()) for row in table.rows()] == [
        (10, 1, 0), (15, 2, 7), (25, 3, 7), (20, 4, 7), (30, 5, 7),
    ]  # fmt: skip
    table.append(rows(6, x=0))
    assert max(table.values("n")) == 35
    with pytest.raises(InvalidInputError, match="identity column"):
        table.run_merge(rows(1, n=5), upsert(None, "id"))


def test_defaults_of_columns_that_the_source_lacks() -> None:
    columns = [Field("id", "long"), Field("x", "long", metadata={"CURRENT_DEFAULT": "40 + 2"})]
    table = StatedTable(
        columns, rows(1, x=0), properties={"delta.feature.allowColumnDefaults": "supported"}
    )
    table.run_merge(rows(1, 2), upsert(None, "id"))
    assert table.values("x") == [0, 42]


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewritten", "masked"])
def test_rules_hold_for_new_and_changed_rows_and_nothing_is_left(
    properties: dict[str, str],
) -> None:
    table = StatedTable(
        [Field("id", "long", nullable=False), Field("s", parse_type("struct<a:long>"))],
        [{"id": 1, "s": {"a": 1}}, {"id": 2, "s": {"a": 1}}],
        properties={**properties, **FEED, "delta.constraints.small": "s.a < 10"},
    )
    paths = {file.path for file in table.store.list_all("")}
    for source, clauses, says in (
        ([{"id": 1, "s": {"a": 11}}], [matched_update()], "small"),
        ([{"id": 3, "s": {"a": 11}}], [insert()], "small"),
        ([{"id": 1, "s": None}], [matched_update(id="NULL")], "NOT NULL"),
        (
            [{"id": 1, "s": {"a": 3}}],
            [insert(), by_source_update(s="named_struct('a', 99L)")],
            "small",
        ),
    ):
        with pytest.raises(ConstraintViolationError, match=says):
            table.merge(source, "t.id = s.id", *clauses)
    assert {file.path for file in table.store.list_all("")} == paths


def test_rows_move_between_partitions_and_partition_columns_are_compared() -> None:
    table = StatedTable(
        {"id": "long", "p": "string"},
        [{"id": 1, "p": "a"}, {"id": 2, "p": "b"}, {"id": 3, "p": None}],
        partition_by=["p"],
        properties={**VECTORS, **FEED},
    )
    source = [{"id": 1, "p": "z"}, {"id": 4, "p": None}]
    table.run_merge(source, upsert(None, "id"))
    table.merge([{"p": "b"}], "t.p <=> s.p", matched_delete())
    table.merge([{"p": None}], "t.p = s.p", matched_delete())
    assert [tuple(row.values()) for row in table.rows()] == [(1, "z"), (3, None), (4, None)]
