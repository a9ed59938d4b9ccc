"""A merge, understood: names, types and new columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError, SchemaMismatchError
from deltalog.operations.changes.request import Action, Clause, When
from deltalog.operations.merge import upsert
from tests.support.merging import NUMBERS
from tests.support.statements import (
    FEED,
    VECTORS,
    StatedTable,
    insert,
    matched_update,
)


def rows(*ids: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": number, **more} for number in ids]


def test_an_upsert_does_not_lose_columns_and_says_what_to_do() -> None:
    table = StatedTable(NUMBERS, rows(1, x=0))
    with pytest.raises(SchemaMismatchError, match=r"'y'.*merge_schema=True.*merge\(…\)"):
        table.run_merge(rows(1, y=1), upsert(None, "id"))


def test_a_star_leaves_out_what_the_table_lacks() -> None:
    table = StatedTable(NUMBERS, rows(1, x=0))
    stars = (
        Clause(when=When.MATCHED, action=Action.UPDATE),
        Clause(when=When.NOT_MATCHED, action=Action.INSERT),
    )
    table.merge(rows(1, 2, X=5, y="new"), "t.id = s.id", *stars)
    assert table.rows() == rows(1, 2, x=5)


def test_a_star_that_takes_nothing_is_no_merge() -> None:
    table = StatedTable(NUMBERS, rows(1, x=0))
    nothing = Clause(when=When.MATCHED, action=Action.UPDATE, except_columns=("id",))
    with pytest.raises(InvalidInputError, match="assigns nothing: the source has the columns 'y'"):
        table.merge(rows(1, y=1), "t.id = s.id", nothing)


def test_new_rows_get_whole_structs() -> None:
    table = StatedTable({"id": "long", "s": "struct<a:int>"}, [{"id": 1, "s": {"a": 1}}])
    with pytest.raises(InvalidInputError, match=r"insert into 's\.a': .* whole struct"):
        table.merge(rows(2), "t.id = s.id", insert(**{"id": "s.id", "s.a": "1"}))


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
        table.run_merge(rows(1, x=[1]), upsert(None, "id", merge_schema=True))


def test_plain_types_are_cast_as_without_new_columns() -> None:
    table = StatedTable(NUMBERS, rows(1, x=0))
    table.run_merge(rows(1, 2, x="7", y=1), upsert(None, "id", merge_schema=True))
    assert table.rows() == rows(1, 2, x=7, y=1)
    with pytest.raises(SchemaMismatchError, match="cannot cast 'text' to long"):
        table.run_merge(rows(1, x="text"), upsert(None, "id", merge_schema=True))


def test_columns_widen_where_the_table_allows_it() -> None:
    table = StatedTable(
        {"id": "long", "x": "int"},
        rows(1, 2, x=0),
        properties={"delta.enableTypeWidening": "true"},
    )
    table.run_merge(rows(2, 3, x=1 << 40), upsert(None, "id", merge_schema=True))
    assert table.rows() == [*rows(1, x=0), *rows(2, 3, x=1 << 40)]
