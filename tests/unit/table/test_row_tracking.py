"""Row ids through the facade."""

from __future__ import annotations

import pytest

from deltalog import DeltaTable, write_deltalake
from tests.support import logs
from tests.support.facade import actions, fresh_rows, make, rows, store_of

TRACKED = {"delta.enableRowTracking": "true"}
IDS = ("id", "_metadata.row_id", "_metadata.row_commit_version")


@pytest.mark.protocol("ROWID-05", "ROWID-09")
def test_every_row_has_an_id_of_its_own() -> None:
    made = make([{"id": n} for n in range(3)], configuration=dict(TRACKED))
    write_deltalake(made, [{"id": 3}, {"id": 4}], mode="append")
    assert fresh_rows(made, *IDS) == [(n, n, int(n > 2)) for n in range(5)]
    write_deltalake(made, [{"id": 5}], mode="overwrite")
    assert fresh_rows(made, *IDS) == [(5, 5, 2)]


@pytest.mark.protocol("ROWID-10")
def test_ids_that_another_writer_reserved_are_left_to_it() -> None:
    made = make([{"id": 1}], configuration=dict(TRACKED))
    mark = logs.domain("delta.rowTracking", '{"rowIdHighWaterMark":1000}')
    logs.commit(store_of(made), 1, mark)
    made.update_incremental()
    write_deltalake(made, [{"id": 2}], mode="append")
    (add,) = [action["add"] for action in actions(made) if "add" in action]
    assert add["baseRowId"] == 1001
    assert fresh_rows(made, *IDS) == [(1, 0, 0), (2, 1001, 2)]


@pytest.mark.protocol("ROWID-11")
def test_rows_that_were_there_get_ids_when_tracking_begins() -> None:
    made = make([{"id": n} for n in range(3)])
    made.alter.set_table_properties(TRACKED)
    found = rows(DeltaTable(store_of(made)), "_metadata.row_id")
    assert found == [0, 1, 2]
    made.delete("id = 1")
    write_deltalake(made, [{"id": 9}], mode="append")
    # The file that was written once more was given ids of its own, which no row uses.
    assert [row[:2] for row in fresh_rows(made, *IDS)] == [(0, 0), (2, 2), (9, 5)]
