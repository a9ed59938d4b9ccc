"""Row ids through the facade."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import DeltaProtocolError, InvalidInputError
from tests.support import logs
from tests.support.facade import actions, fresh_rows, make, rows, store_of, unchanged

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


DRAFT = {"delta.enableRowIds": "true", "delta.feature.rowIds": "supported"}
ROW_ID = ("id", "_metadata.row_id")


def draft() -> DeltaTable:
    """Rows 1, 20 and 3 with the ids 0, 1 and 2 of the draft, all in a file that was rewritten."""
    made = make([{"id": 1}, {"id": 2}, {"id": 3}], configuration=dict(DRAFT))
    made.update(updates={"id": "20"}, predicate="id = 2")
    assert fresh_rows(made, *ROW_ID) == [(1, 0), (3, 2), (20, 1)]
    return made


def marks(table: DeltaTable, version: int | None = None) -> list[tuple[int, bool]]:
    """What the draft's actions of a commit say: the mark, and whether ids were kept."""
    found = [line.get("rowIdHighWaterMark") for line in actions(table, version)]
    return [(one["highWaterMark"], one["preservedRowIds"]) for one in found if one]


@pytest.mark.protocol("B-70", "B-78", "ROWID-02")
@pytest.mark.parametrize(
    "switch",
    [
        lambda table: table.alter.set_table_properties(TRACKED),
        lambda table: table.alter.add_feature("rowTracking", allow_protocol_versions_increase=True),
        lambda table: DeltaTable.create(
            store_of(table), table.schema(), mode="overwrite", configuration=dict(TRACKED)
        ),
        lambda table: make([{"id": 1}], configuration=dict(TRACKED)).clone(
            store_of(table), replace=True
        ),
        lambda _: make([{"id": 1}], configuration={**DRAFT, **TRACKED}),
    ],
    ids=["property", "feature", "replace", "clone", "new"],
)
def test_no_row_gets_a_second_id(switch: Callable[[DeltaTable], object]) -> None:
    table = draft()
    with unchanged(table), pytest.raises(InvalidInputError, match=r"alter\.upgrade_row_ids\(\)"):
        switch(table)
    assert fresh_rows(table, *ROW_ID) == [(1, 0), (3, 2), (20, 1)]


@pytest.mark.protocol("B-78", "ROWID-02", "ROWID-09")
def test_row_ids_of_the_draft_are_upgraded_and_kept() -> None:
    table = draft()
    table.alter.upgrade_row_ids()
    assert {"rowTracking", "domainMetadata"} <= set(table.protocol().writer_features or ())
    assert fresh_rows(table, *ROW_ID) == [(1, 0), (3, 2), (20, 1)]
    write_deltalake(table, [{"id": 4}], mode="append")
    table.optimize.compact()
    assert fresh_rows(table, *ROW_ID) == [(1, 0), (3, 2), (4, 6), (20, 1)]
    with pytest.raises(InvalidInputError, match="does not have it"):
        table.alter.upgrade_row_ids()


@pytest.mark.protocol("B-78", "ROWID-17")
def test_a_version_with_row_ids_of_the_draft_is_restored_with_those_of_today() -> None:
    table = draft()
    table.alter.upgrade_row_ids()
    table.delete("id = 20")
    table.restore(0)
    assert "rowIds" not in (table.protocol().writer_features or ())
    assert fresh_rows(table, *ROW_ID) == [(1, 0), (2, 1), (3, 2)]
    (add,) = [line["add"] for line in actions(table) if "add" in line]
    assert (add["baseRowId"], add["defaultRowCommitVersion"]) == (0, table.version())


@pytest.mark.protocol("ROWID-06", "ROWID-14")
def test_a_table_that_has_both_dialects_already_gets_the_marks_of_both() -> None:
    both = {"delta.feature.rowTracking": "supported", "delta.feature.domainMetadata": "supported"}
    table = make([{"id": 1}], configuration=both)
    protocol = next(line["protocol"] for line in actions(table) if "protocol" in line)
    protocol["writerFeatures"] = [*protocol["writerFeatures"], "rowIds"]
    logs.commit(store_of(table), 1, {"protocol": protocol})
    table.update_incremental()
    write_deltalake(table, [{"id": 2}], mode="append")
    domains = [line["domainMetadata"] for line in actions(table) if "domainMetadata" in line]
    assert [one["domain"] for one in domains] == ["delta.rowTracking"]
    assert marks(table) == [(1, True)]
    table.update(updates={"id": "3"}, predicate="id = 2")
    assert marks(table) == [(2, False)]


@pytest.mark.protocol("ROWID-14")
def test_the_draft_says_that_ids_were_kept_only_where_they_were() -> None:
    supported = make([{"id": 1}, {"id": 2}], configuration={"delta.feature.rowIds": "supported"})
    supported.update(updates={"id": "20"}, predicate="id = 2")
    assert marks(supported) == [(3, False)]
    write_deltalake(supported, [{"id": 5}], mode="append")
    assert marks(supported) == [(4, True)]
    supported.optimize.compact()
    assert marks(supported) == [(7, False)]
    write_deltalake(supported, [{"id": 6}], mode="overwrite")
    assert marks(supported) == [(8, True)]
    assert marks(draft()) == [(5, True)]


@pytest.mark.protocol("ROWID-12")
@pytest.mark.parametrize("column", ["_metadata.row_id", "_metadata.row_commit_version"])
def test_a_table_without_row_tracking_has_no_row_ids(column: str) -> None:
    plain = make([{"id": 1}])
    with pytest.raises(DeltaProtocolError, match="row tracking is not enabled"):
        plain.scan(columns=["id", column])
    with pytest.raises(DeltaProtocolError, match="row tracking is not enabled"):
        plain.scan(predicate=f"{column} >= 0")
    with unchanged(plain), pytest.raises(DeltaProtocolError, match="row tracking is not enabled"):
        plain.delete(f"{column} = 0")
    assert rows(make([{"id": 1}], configuration=dict(TRACKED)), "id", column) == [(1, 0)]
