"""The steps of a vacuum: what is logged before and after it deletes."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import (
    StorageError,
)
from deltalog.operations.restore import Restore
from deltalog.testing import CountingStore, FaultyStore, Harm, InjectedFault
from tests.support.aging import AgingTable
from tests.support.facade import FEED, VECTORS, make, rows, store_of
from tests.support.vacuuming import (
    old_and_new,
)


def forced(table: AgingTable, **options: Any) -> list[str]:
    facade = DeltaTable(table.store)
    return facade.vacuum(0, enforce_retention_duration=False, **options)


@pytest.mark.parametrize("harm", [Harm.REFUSE, Harm.CRASH])
def test_a_deletion_that_fails_says_so(harm: Harm) -> None:
    table = old_and_new()
    table.store = FaultyStore(table.kept, InjectedFault(verb="delete_many", harm=harm))
    with pytest.raises(StorageError, match="delete_many"):
        forced(table, dry_run=False)
    table.store = table.kept
    logged = [entry["operationParameters"].get("status") for entry in table.snapshot().history(2)]
    assert logged == (["FAILED", None] if harm is Harm.REFUSE else [None, None])
    assert len(forced(table, dry_run=False)) == 1
    assert table.rows() == [(3,)]


def test_vacuum_deletes_only_when_told_and_logs_only_when_it_deletes() -> None:
    table = old_and_new()
    before = table.snapshot().version
    assert len(forced(table)) == 1
    assert table.snapshot().version == before
    assert len(forced(table, dry_run=False)) == 1
    assert forced(table, dry_run=False) == []
    assert table.snapshot().version == before + 2


def test_a_vacuum_looks_for_newer_versions_once() -> None:
    table = old_and_new()
    counting = CountingStore(table.kept)
    table.store = counting
    shown = DeltaTable(counting)
    counting.reset()
    assert len(shown.vacuum(0, enforce_retention_duration=False, dry_run=False)) == 1
    assert counting.counts["stat"] == 1  # of the shown version; that of the next one fails
    listed = [call for call in counting.calls if call.verb == "list_from"]
    assert [call.paths for call in listed].count(("_delta_log",)) == 1


class _Restored(CountingStore):
    """Another writer restores version 1 just before the first commit of this one."""

    table: AgingTable | None = None

    def put_if_absent(self, path: str, data: bytes) -> None:
        table, self.table = self.table, None
        if table is not None:
            table.store = table.kept
            table.do(Restore(target=table.snapshot(1), asked=1))
        super().put_if_absent(path, data)


def test_what_was_restored_before_the_start_was_committed_stays() -> None:
    table = old_and_new()
    store = _Restored(table.kept)
    shown = DeltaTable(store)
    store.table = table
    assert shown.vacuum(0, enforce_retention_duration=False, dry_run=False) == []
    assert sorted(table.rows()) == [(1,), (2,), (3,)]


def _table() -> DeltaTable:
    """Four files, two of them with a deletion vector."""
    table = make([{"id": n, "v": 0} for n in range(5)], configuration={**VECTORS, **FEED})
    for start in (5, 10, 15):
        more = [{"id": n, "v": 0} for n in range(start, start + 5)]
        write_deltalake(table, more, mode="append")
    table.delete("id in (0, 19)")
    return table


def test_a_vacuum_that_was_ended_says_so_and_harms_nothing() -> None:
    def end(*_: int) -> None:
        raise KeyboardInterrupt

    table = _table()
    table.optimize.compact()
    before = rows(table)
    with pytest.raises(KeyboardInterrupt):
        table.vacuum(0, dry_run=False, enforce_retention_duration=False, progress=end)
    assert rows(DeltaTable(store_of(table))) == before
    assert table.history(1)[0]["operationParameters"]["status"] == "FAILED"
