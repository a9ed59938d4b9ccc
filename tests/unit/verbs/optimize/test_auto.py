"""Auto-compaction: where there are many small files after a commit, and the table wants it."""

from __future__ import annotations

import logging

import pytest

from deltalog.snapshot import load_snapshot
from deltalog.testing import CountingStore, FaultyStore, InjectedFault
from deltalog.verbs.optimize import (
    AutoCompaction,
    auto_compact,
    is_auto_compaction_due,
    stage_cluster,
)
from tests.support.logs import DictStore
from tests.support.optimizing import OptimizedTable, numbered
from tests.support.statements import ROW_IDS

AUTO = {"delta.autoOptimize.autoCompact": "true"}
SOON = AutoCompaction(min_files=3)
COLUMNS = {"id": "long", "p": "string"}


def test_many_small_files_are_put_together() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 2), numbered(2, 4), properties={**AUTO, **ROW_IDS})
    assert auto_compact(load_snapshot(table.store), when=SOON) is None
    table.append(numbered(4, 6))
    before = table.rows("id", "_metadata.row_id")
    done = auto_compact(load_snapshot(table.store), when=SOON)
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
    done = auto_compact(load_snapshot(table.store), when=SOON)
    assert done is not None
    assert done.snapshot.num_files == 3


@pytest.mark.parametrize("properties", [{}, {"delta.autoOptimize.autoCompact": "false"}])
def test_a_table_that_does_not_ask_is_not_looked_at(properties: dict[str, str]) -> None:
    kept = DictStore()
    OptimizedTable(
        COLUMNS, *(numbered(n, n + 1) for n in range(4)), properties=properties, store=kept
    )
    counted = CountingStore(kept)
    snapshot = load_snapshot(counted)
    before = len(counted.calls)
    assert auto_compact(snapshot, when=SOON) is None
    assert len(counted.calls) == before


def test_large_files_do_not_count() -> None:
    table = OptimizedTable(COLUMNS, *(numbered(n, n + 1) for n in range(4)), properties=AUTO)
    snapshot = load_snapshot(table.store)
    assert is_auto_compaction_due(snapshot, SOON)
    assert not is_auto_compaction_due(snapshot)
    assert not is_auto_compaction_due(snapshot, AutoCompaction(min_files=3, max_file_bytes=100))


def test_clustered_files_stay_as_they_are() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 2), numbered(2, 4), properties=AUTO)
    table.cluster_by("id")
    table.optimize(stage_cluster)
    for number in range(3):
        table.append(numbered(number, number + 1))
    done = auto_compact(load_snapshot(table.store), when=SOON)
    assert done is not None
    tags = done.snapshot.files(["tags"]).column("tags").to_pylist()
    assert sorted(bool(found) for found in tags) == [False, True]


def test_a_failure_is_logged_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    kept = DictStore()
    OptimizedTable(COLUMNS, *(numbered(n, n + 1) for n in range(4)), properties=AUTO, store=kept)
    paths = set(kept.files)
    snapshot = load_snapshot(FaultyStore(kept, InjectedFault(verb="put_if_absent", times=9)))
    with caplog.at_level(logging.WARNING):
        assert auto_compact(snapshot, when=SOON) is None
    assert "cannot compact" in caplog.text
    assert set(kept.files) == paths
