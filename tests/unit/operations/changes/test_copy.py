"""Rows of existing files, into new files, with what belongs to them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog._util.cards import ProgressCount
from deltalog._util.json import loads
from deltalog.data.scan.plan import TASK_COLUMNS
from deltalog.data.write import FileWriter
from deltalog.expressions import as_expression, resolve_predicate
from deltalog.log.context import utc_context
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.changes.kept_groups import copy_rows, read_rows
from tests.support.merging import NUMBERS, rows
from tests.support.statements import ROW_IDS, VECTORS, StatedTable
from tests.support.writes import file_table


def files_of(table: StatedTable) -> pa.Table:
    """The files, the one with the smallest ids first."""
    found = table.snapshot.files([*TASK_COLUMNS, "stats"])
    texts: list[Any] = found.column("stats").to_pylist()
    lows: list[int] = [loads(text, "stats")["minValues"]["id"] for text in texts]
    return found.take(pa.array(sorted(range(len(lows)), key=lambda n: lows[n]), pa.int64()))


def copied(
    table: StatedTable, without: list[pa.Int64Array | None] | None = None, **options: Any
) -> tuple[int, list[dict[str, Any]]]:
    """How many rows were copied, and how they stand in the new files."""
    snapshot = table.snapshot
    spec = FileOptions().spec(utc_context(table.store), snapshot.configuration)
    with FileWriter(spec) as writer:
        count = copy_rows(
            snapshot,
            files_of(table),
            writer,
            snapshot.configuration.arrow_schema,
            without=without,
            **options,
        )
        written = writer.finish()
    found = [row for add in written.adds for row in file_table(spec, add.path).to_pylist()]
    return count, found


def test_all_rows_are_read_but_those_that_are_deleted() -> None:
    table = StatedTable(NUMBERS, rows(1, 2, 3), rows(4), properties=VECTORS)
    table.delete("id = 2")
    found = pa.Table.from_batches(read_rows(table.snapshot, files_of(table)))
    assert found.column("id").to_pylist() == [1, 3, 4]
    assert found.schema.names == ["id", "x"]


def test_rows_may_be_chosen_and_say_where_they_are() -> None:
    table = StatedTable(NUMBERS, rows(1, 2, 3))
    schema = table.snapshot.configuration.schema
    predicate = resolve_predicate(as_expression("id > 1", schema), schema)
    batches = read_rows(
        table.snapshot,
        files_of(table),
        predicate=predicate,
        more_columns=["_metadata.row_index"],
    )
    found = pa.Table.from_batches(batches).to_pylist()
    assert found == [
        {"id": 2, "x": 0, "_metadata.row_index": 1},
        {"id": 3, "x": 0, "_metadata.row_index": 2},
    ]


def test_no_files_have_no_rows() -> None:
    table = StatedTable(NUMBERS, rows(1))
    assert list(read_rows(table.snapshot, files_of(table).slice(0, 0))) == []


@pytest.mark.parametrize(
    ("without", "expected"),
    [
        (None, [1, 3, 4, 5]),
        ([None, None], [1, 3, 4, 5]),
        ([pa.array([0], pa.int64()), None], [3, 4, 5]),
        ([None, pa.array([0, 1], pa.int64())], [1, 3]),
        ([pa.array([0, 2], pa.int64()), pa.array([0, 1], pa.int64())], []),
    ],
)
def test_rows_are_left_out_besides_those_that_were_deleted_before(
    without: list[pa.Int64Array | None] | None, expected: list[int]
) -> None:
    table = StatedTable(NUMBERS, rows(1, 2, 3), rows(4, 5), properties=VECTORS)
    table.delete("id = 2")
    count, found = copied(table, without)
    assert sorted(row["id"] for row in found) == expected
    assert count == len(expected)


def test_row_ids_go_along() -> None:
    table = StatedTable(NUMBERS, rows(1, 2, 3), properties={**VECTORS, **ROW_IDS})
    table.delete("id = 1")
    configuration = table.snapshot.configuration
    assert configuration.row_id_column is not None
    _, found = copied(table)
    assert [(row["id"], row[configuration.row_id_column]) for row in found] == [(2, 1), (3, 2)]


def test_files_are_counted() -> None:
    table = StatedTable(NUMBERS, rows(1), rows(2), rows(3))
    told: list[tuple[int, int]] = []
    copied(table, progress=ProgressCount(lambda done, total: told.append((done, total))))
    assert told == [(1, 3), (2, 3), (3, 3)]
