"""How verbs are done: previewed, explained, tried again and followed by upkeep."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.changes.merge.source import MergeSource
from deltalog.operations.changes.request import ChangeRequest
from deltalog.operations.engine import LocalEngine
from deltalog.operations.execute import EngineMaintenance, explain, preview
from deltalog.operations.merge import Merge, upsert
from deltalog.testing import FaultyStore, InjectedFault
from deltalog.transaction import PostCommitHookProperties
from deltalog.transaction.commit import stage_and_commit
from tests.support.logs import DictStore
from tests.support.merging import NUMBERS, rows
from tests.support.optimizing import OptimizedTable, numbered
from tests.support.statements import (
    StatedTable,
    insert,
    matched_update,
)


def test_explain_says_what_is_compared_and_read() -> None:
    table = StatedTable(NUMBERS, rows(1, 2), rows(11))
    changes = ChangeRequest(
        condition="t.id <=> s.id AND t.x > 3 AND s.x < 5 AND t.x < s.x",
        clauses=(matched_update(), insert()),
        source_alias="s",
        target_alias="t",
    )
    text = explain(Merge(changes).with_source(rows(1)), table.snapshot, LocalEngine())
    for part in ("<=>", "x > 3", "x < 5", "WHEN MATCHED THEN UPDATE", "files: 2 in the table"):
        assert part in text


def test_preview_counts_and_writes_nothing() -> None:
    inner = DictStore()
    table = StatedTable(NUMBERS, rows(1, 2), store=inner)
    files = set(inner.files)
    found = preview(upsert(rows(2, 9), "id"), table.snapshot, LocalEngine())
    assert found["num_target_rows_updated"] == found["num_target_rows_inserted"] == 1
    assert set(inner.files) == files


def test_a_merge_that_lost_is_evaluated_again() -> None:
    table = StatedTable(NUMBERS, rows(1))
    other = StatedTable.__new__(StatedTable)
    other.store = table.store
    seen: list[int] = []
    merge = upsert(None, "id")
    with MergeSource(iter([pa.record_batch({"id": [5], "x": [7]})])) as source:

        def stage(pending: Any) -> Any:
            merged = merge.with_source(source).stage(pending, LocalEngine())
            if not seen:
                other.append(rows(5))
            seen.append(merged.changed.rows.inserted)
            return merged

        stage_and_commit(lambda: load_snapshot(utc_context(table.store)), stage, operation="MERGE")
    assert seen == [1, 0]
    assert [tuple(row.values()) for row in table.rows()] == [(1, 0), (5, 7)]


COLUMNS = {"id": "long", "p": "string"}


def test_a_failure_is_logged_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    kept = DictStore()
    OptimizedTable(COLUMNS, *(numbered(n, n + 1) for n in range(51)), store=kept)
    paths = set(kept.files)
    snapshot = load_snapshot(
        utc_context(FaultyStore(kept, InjectedFault(verb="put_if_absent", times=9)))
    )
    with caplog.at_level(logging.WARNING):
        found = EngineMaintenance(LocalEngine()).compact(snapshot, PostCommitHookProperties())
    assert found is snapshot
    assert "cannot compact" in caplog.text
    assert set(kept.files) == paths


FIFTY = 50  # from so many small files on it is worth a commit


def test_small_files_are_put_together_after_a_commit(tmp_path: Path) -> None:
    properties = {"delta.autoOptimize.autoCompact": "true"}
    write_deltalake(tmp_path, [{"id": 0}], configuration=properties)
    table = DeltaTable(tmp_path)
    for number in range(1, FIFTY):
        write_deltalake(table, [{"id": number}], mode="append")
    assert [entry["operation"] for entry in table.history(2)] == ["OPTIMIZE", "WRITE"]
    assert len(table.file_uris()) == 1
    assert table.count() == FIFTY


def test_nothing_follows_where_the_table_does_not_ask(tmp_path: Path) -> None:
    write_deltalake(tmp_path, [{"id": 0}])
    table = DeltaTable(tmp_path)
    for number in range(1, FIFTY):
        write_deltalake(table, [{"id": number}], mode="append")
    assert len(table.file_uris()) == FIFTY
