"""Row ids of new and old files, given anew for every attempt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.transaction import PendingTransaction, commit
from tests.support.logs import (
    DictStore,
    Json,
    add,
    domain,
    metadata,
    remove,
)
from tests.support.logs import (
    commit as write_commit,
)
from tests.support.transactions import NOW_MS, commit_info_of, new_file, of_kind, pending, table

CURRENT = ("rowTracking", "domainMetadata")


DRAFT = ("rowIds",)


ENABLED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_a",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_b",
}


def _ids(store: DictStore, version: int) -> dict[str, tuple[int | None, int | None]]:
    return {
        found["path"]: (found.get("baseRowId"), found.get("defaultRowCommitVersion"))
        for found in of_kind(store, version, "add")
    }


def _mark(store: DictStore, version: int) -> Any:
    return of_kind(store, version, "domainMetadata") or of_kind(
        store, version, "rowIdHighWaterMark"
    )


def _domain(mark: int) -> Json:
    text = f'{{"rowIdHighWaterMark":{mark},"domainName":"delta.rowTracking"}}'
    return {"domain": "delta.rowTracking", "configuration": text, "removed": False}


@pytest.mark.protocol("ROWID-05", "ROWID-06", "ROWID-07", "ROWID-09", "B-72", "B-75")
def test_new_files_get_ids_after_the_highest_in_use() -> None:
    store = table(features=CURRENT)
    commit(pending(store, new_file("a", 3), new_file("b", 2)))
    commit(pending(store, new_file("c", 1)))
    assert _ids(store, 1) == {"a": (0, 1), "b": (3, 1)}
    assert _ids(store, 2) == {"c": (5, 2)}
    assert _mark(store, 1) == [_domain(4)]
    assert _mark(store, 2) == [_domain(5)]
    assert load_snapshot(utc_context(store)).row_id_high_water_mark == 5


@pytest.mark.protocol("ROWID-05", "ROWID-06", "ROWID-14", "B-72", "B-73")
def test_the_draft_s_dialect_is_spoken_where_the_table_does() -> None:
    store = table(features=DRAFT)
    commit(pending(store, new_file("a", 3)))
    tx = pending(store, new_file("b", 0))
    tx.preserves_row_ids = False
    commit(tx)
    assert _ids(store, 1) == {"a": (0, None)}
    assert _mark(store, 1) == [{"highWaterMark": 2, "preservedRowIds": True}]
    # A commit that adds data carries the mark, moved or not.
    assert _mark(store, 2) == [{"highWaterMark": 2, "preservedRowIds": False}]


@pytest.mark.protocol("ROWID-19", "ROWID-08", "D-37")
@pytest.mark.parametrize("features", [CURRENT, DRAFT], ids=["current", "draft"])
def test_a_lost_race_gives_ids_after_the_winner_s(features: tuple[str, ...]) -> None:
    store = table(features=features)
    commit(pending(store, new_file("before", 3)))
    tx = pending(store, new_file("mine", 2))
    mark = {"rowIdHighWaterMark": {"highWaterMark": 10, "preservedRowIds": True}}
    winner = domain("delta.rowTracking", '{"rowIdHighWaterMark":10}')
    write_commit(store, 2, winner if features is CURRENT else mark, add("won", baseRowId=3))
    assert tx.adds[0].base_row_id is None
    commit(tx)
    version = 3 if features is CURRENT else None
    assert _ids(store, 3) == {"mine": (11, version)}
    assert load_snapshot(utc_context(store)).row_id_high_water_mark == 12


@pytest.mark.protocol("ROWID-17", "D-37")
def test_a_file_that_is_added_again_keeps_its_ids() -> None:
    store = table(features=CURRENT)
    commit(pending(store, new_file("old", 3)))
    tx = pending(store, new_file("new", 2), operation="COMPUTE STATS")
    assert tx.snapshot is not None
    tx.add_again(tx.snapshot.files())
    commit(tx)
    assert _ids(store, 2) == {"old": (0, 1), "new": (3, 2)}


@pytest.mark.protocol("ROWID-09", "ROWID-08")
def test_ids_that_come_along_with_files_count_as_used() -> None:
    store = table(features=CURRENT)
    commit(pending(store, new_file("cloned", 5, base_row_id=100, default_row_commit_version=7)))
    commit(pending(store, new_file("next", 1)))
    assert _ids(store, 1) == {"cloned": (100, 7)}
    assert _ids(store, 2) == {"next": (105, 2)}


@pytest.mark.protocol("ROWID-11", "B-77")
def test_a_backfill_gives_ids_to_files_without_and_leaves_out_what_others_touched() -> None:
    store = table(
        [
            add(name, stats=f'{{"numRecords":{rows}}}')
            for name, rows in zip("abc", (3, 2, 4), strict=True)
        ],
        features=CURRENT,
    )
    tx = pending(store, operation="ROW TRACKING BACKFILL")
    assert tx.snapshot is not None
    tx.record_read(None, tx.snapshot.files())
    files = tx.snapshot.files()
    unchanged = files.set_column(4, "dataChange", [[False] * files.num_rows])
    tx.add_again(unchanged)
    write_commit(store, 2, {"commitInfo": {"operation": "DELETE"}}, remove("b"))
    commit(tx)
    assert _ids(store, 3) == {"a": (0, 3), "c": (3, 3)}
    assert _mark(store, 3) == [_domain(6)]


@pytest.mark.protocol("ROWID-16", "D-37")
def test_who_loses_to_a_backfill_takes_over_its_ids() -> None:
    store = table([add("a%20b", stats='{"numRecords":3}')], features=CURRENT)
    tx = pending(store, operation="DELETE")
    assert tx.snapshot is not None
    tx.record_read_files(tx.snapshot.files())
    tx.remove_files(tx.snapshot.files(), data_change=True)
    info = {"commitInfo": {"operation": "ROW TRACKING BACKFILL", "isBlindAppend": False}}
    again = add("a%20b", dataChange=False, baseRowId=7, defaultRowCommitVersion=2)
    write_commit(store, 2, info, again, domain("delta.rowTracking", '{"rowIdHighWaterMark":9}'))
    commit(tx)
    [removed] = of_kind(store, 3, "remove")
    assert (removed["baseRowId"], removed["defaultRowCommitVersion"]) == (7, 2)


@pytest.mark.protocol("B-76")
def test_suspended_tables_give_no_ids() -> None:
    store = table(features=CURRENT, configuration={"delta.rowTrackingSuspended": "true"})
    commit(pending(store, new_file("a", 3)))
    assert _ids(store, 1) == {"a": (None, None)}
    assert _mark(store, 1) == []


@pytest.mark.protocol("ROWID-14", "B-73")
@pytest.mark.parametrize(("preserves", "flag"), [(True, "true"), (False, "false")])
def test_a_commit_tells_whether_ids_were_kept(preserves: bool, flag: str) -> None:
    store = table(features=CURRENT, configuration=ENABLED)
    tx = pending(store, new_file("a"))
    tx.preserves_row_ids = preserves
    commit(tx)
    assert commit_info_of(store, 1)["tags"] == {"delta.rowTracking.preserved": flag}


@pytest.mark.protocol("D-34")
def test_what_was_prepared_before_ids_were_on_has_not_kept_them() -> None:
    store = table(features=CURRENT)
    tx = pending(store, new_file("a"))
    write_commit(store, 1, metadata(configuration=ENABLED), time_ms=NOW_MS)
    commit(tx)
    assert commit_info_of(store, 2)["tags"] == {"delta.rowTracking.preserved": "false"}


@pytest.mark.protocol("D-34", "ROWID-05")
def test_a_winner_may_bring_row_ids_along() -> None:
    store = table(features=("appendOnly",))
    tx = pending(store, new_file("a", 2))
    features = ["appendOnly", *CURRENT]
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
    write_commit(store, 1, {"protocol": protocol})
    commit(tx)
    assert _ids(store, 2) == {"a": (0, 2)}


@pytest.mark.protocol("ROWID-09")
def test_files_must_tell_how_many_rows_they_have() -> None:
    store = table(features=CURRENT)
    with pytest.raises(InvalidInputError, match="numRecords"):
        commit(pending(store, replace(new_file("a"), stats=None)))
    tx = pending(table([add("old")], features=CURRENT))
    assert isinstance(tx, PendingTransaction)
    assert tx.snapshot is not None
    tx.add_again(tx.snapshot.files())
    with pytest.raises(InvalidInputError, match="numRecords"):
        commit(tx)
