"""Auto-compaction: where there are many small files after a commit, and the table wants it."""

from __future__ import annotations

import pytest

from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.engine import LocalEngine
from deltalog.operations.execute import execute
from deltalog.operations.optimize import (
    AutoCompact,
    Cluster,
    CompactionThresholds,
    is_auto_compaction_due,
)
from deltalog.operations.write import Write
from deltalog.storage.store import Store
from deltalog.transaction import Committed, PostCommitHookProperties
from deltalog.transaction.properties import CommitOptions
from tests.support.optimizing import OptimizedTable, numbered
from tests.support.statements import ROW_IDS

AUTO = {"delta.autoOptimize.autoCompact": "true"}


SOON = CompactionThresholds(min_files=3)


COLUMNS = {"id": "long", "p": "string"}


def compacted(store: Store) -> Committed | None:
    """What comes after a commit, where three files are many."""
    snapshot = load_snapshot(utc_context(store))
    if not is_auto_compaction_due(snapshot, SOON):
        return None
    return execute(AutoCompact(SOON), lambda: snapshot, LocalEngine()).committed


def test_many_small_files_are_put_together() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 2), numbered(2, 4), properties={**AUTO, **ROW_IDS})
    assert compacted(table.store) is None
    table.append(numbered(4, 6))
    before = table.rows("id", "_metadata.row_id")
    done = compacted(table.store)
    assert done is not None
    assert done.version == table.version + 1
    assert done.snapshot.num_files == 1
    assert table.rows("id", "_metadata.row_id") == before
    found = OptimizedTable.reopened(table.store)
    found.snapshot = done.snapshot
    assert found.info()["operationParameters"]["auto"] is True


def test_only_partitions_with_many_files_are_rewritten() -> None:
    files = [[{"id": n, "p": p}] for n, p in enumerate("aaabb")]
    table = OptimizedTable(COLUMNS, *files, properties=AUTO, partition_by=["p"])
    done = compacted(table.store)
    assert done is not None
    assert done.snapshot.num_files == 3


@pytest.mark.parametrize("properties", [{}, {"delta.autoOptimize.autoCompact": "false"}])
def test_a_table_that_does_not_ask_stays_as_it_is(properties: dict[str, str]) -> None:
    files = (numbered(n, n + 1) for n in range(51))
    table = OptimizedTable(COLUMNS, *files, properties=properties)
    assert table.version == 51
    asking = OptimizedTable(COLUMNS, *(numbered(n, n + 1) for n in range(51)), properties=AUTO)
    assert asking.version == 52
    assert asking.files().num_rows == 2


def test_a_caller_can_switch_it_on_and_off() -> None:
    files = [numbered(n, n + 1) for n in range(50)]
    for properties, wish in ((AUTO, False), ({}, True)):
        table = OptimizedTable(COLUMNS, *files[:49], properties=properties)
        done = execute(
            Write(data=files[49]),
            lambda table=table: load_snapshot(utc_context(table.store)),  # type: ignore[misc]
            LocalEngine(),
            CommitOptions(hooks=PostCommitHookProperties(auto_compact=wish)),
        )
        assert done.committed.version == 50
        assert done.committed.snapshot.version == (51 if wish else 50)


def test_large_files_do_not_count() -> None:
    table = OptimizedTable(COLUMNS, *(numbered(n, n + 1) for n in range(4)), properties=AUTO)
    snapshot = load_snapshot(utc_context(table.store))
    assert is_auto_compaction_due(snapshot, SOON)
    assert not is_auto_compaction_due(snapshot)
    assert not is_auto_compaction_due(
        snapshot, CompactionThresholds(min_files=3, max_file_bytes=100)
    )


def test_clustered_files_stay_as_they_are() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 2), numbered(2, 4), properties=AUTO)
    table.cluster_by("id")
    table.optimize(Cluster)
    for number in range(3):
        table.append(numbered(number, number + 1))
    done = compacted(table.store)
    assert done is not None
    tags = done.snapshot.files(["tags"]).column("tags").to_pylist()
    assert sorted(bool(found) for found in tags) == [False, True]
