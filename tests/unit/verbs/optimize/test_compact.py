"""Compact: few full files instead of many small ones, and the same rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deltalog import DeltaTable, Field, Schema, write_files
from deltalog.context import utc_context
from deltalog.engine import LocalEngine
from deltalog.errors import ConcurrentDeleteReadError, InvalidInputError
from deltalog.expressions import as_expression, resolve_predicate
from deltalog.rows.bins import RunOptions
from deltalog.snapshot import load_snapshot
from deltalog.testing import CountingStore
from deltalog.transaction import PendingTransaction
from deltalog.transaction.commit import commit
from deltalog.verbs.optimize import Compact, Optimized
from tests.support.logs import DictStore
from tests.support.optimizing import IDS, OptimizedTable, numbered, run_options
from tests.support.statements import FEED, ROW_IDS, VECTORS

COLUMNS = {"id": "long", "p": "string"}
ALL = {**VECTORS, **ROW_IDS, **FEED}


@pytest.mark.protocol("ADD-06", "REM-06", "ROWID-13")
def test_small_files_become_one_and_nobody_sees_a_change() -> None:
    table = OptimizedTable(COLUMNS, *(numbered(n, n + 2) for n in (0, 2, 4)), properties=ALL)
    before = table.rows("id", *IDS)
    done = table.optimize(Compact)
    assert (len(done.removed_sizes), len(done.added_sizes)) == (3, 1)
    assert table.files().num_rows == 1
    assert table.rows("id", *IDS) == before
    assert table.changes() == []
    actions = [*table.actions("add"), *table.actions("remove")]
    assert {action["dataChange"] for action in actions} == {False}
    assert table.info()["isolationLevel"] == "SnapshotIsolation"


def test_rows_keep_their_order() -> None:
    table = OptimizedTable(COLUMNS, *([{"id": n}, {"id": n - 9}] for n in (5, 3, 4)))
    table.optimize(Compact)
    (file,) = table.physical_rows("id")
    pairs = [file[n : n + 2] for n in range(0, 6, 2)]
    assert all(second[0] == first[0] - 9 for first, second in pairs)


def test_files_of_one_moment_stay_as_their_commit_names_them() -> None:
    """Their names are random, and each writer begins to count at 0."""
    store = DictStore()
    made = DeltaTable.create(store, Schema([Field("id", "long")]))
    parts = [write_files(made, [{"id": number}]) for number in range(12)]
    made.commit(
        [
            replace(part, adds=tuple(replace(add, modification_time_ms=1) for add in part.adds))
            for part in parts
        ]
    )
    done = made.optimize.compact()
    assert done["preserveInsertionOrder"]
    assert made.to_pyarrow_table()["id"].to_pylist() == list(range(12))


def test_the_second_time_there_is_nothing_to_do() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 2), numbered(2, 4))
    table.optimize(Compact)
    version = table.version
    done = table.optimize(Compact)
    assert table.version == version
    assert done.result()["numFilesAdded"] == 0
    assert done.result()["totalFilesSkipped"] == 1


@pytest.mark.protocol("APP-02")
def test_a_table_that_only_grows_is_rearranged() -> None:
    properties = {"delta.appendOnly": "true"}
    table = OptimizedTable(COLUMNS, numbered(0, 2), numbered(2, 4), properties=properties)
    table.optimize(Compact)
    assert table.files().num_rows == 1


def test_files_of_a_partition_stay_in_it() -> None:
    files = [[{"id": n, "p": p}] for p in ("a", "b", None) for n in (1, 2)]
    table = OptimizedTable(COLUMNS, *files, [{"id": 9, "p": "c"}], partition_by=["p"])
    before = table.rows()
    done = table.optimize(Compact)
    assert done.result()["partitionsOptimized"] == 3
    assert table.files().num_rows == 4
    assert table.rows() == before


def test_a_predicate_chooses_partitions() -> None:
    files = [[{"id": n, "p": p}] for p in ("a", "b") for n in (1, 2)]
    table = OptimizedTable(COLUMNS, *files, partition_by=["p"])
    schema = table.snapshot.configuration.schema
    where = resolve_predicate(as_expression("p = 'b'", schema), schema)
    done = table.optimize(Compact, where)
    assert (done.num_considered, table.files().num_rows) == (2, 3)
    assert table.info()["operationParameters"]["predicate"] == "[\"p = 'b'\"]"


def test_a_predicate_over_rows_is_refused() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 2, p="a"), partition_by=["p"])
    schema = table.snapshot.configuration.schema
    where = resolve_predicate(as_expression("id = 1", schema), schema)
    with pytest.raises(InvalidInputError, match="id is no partition column"):
        table.optimize(Compact, where)


def test_files_are_packed_up_to_the_target_size() -> None:
    table = OptimizedTable(COLUMNS, *(numbered(n, n + 1) for n in range(6)))
    sizes: list[Any] = table.files().column("size").to_pylist()
    done = table.optimize(Compact, options=run_options(max(sizes) * 2))
    assert (done.max_bin_files, len(done.added_sizes)) == (2, 3)


def test_full_files_stay() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 5000), numbered(0, 1), numbered(1, 2))
    done = table.optimize(Compact, options=run_options(5000))
    assert len(done.removed_sizes) == 2
    assert table.files().num_rows == 2


@pytest.mark.parametrize(("share", "rewritten"), [(0.05, True), (0.5, False)])
def test_many_deleted_rows_make_a_file_worth_rewriting(share: float, rewritten: bool) -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 10), properties=ALL)
    table.delete("id < 3")
    before = table.rows("id", *IDS)
    done = table.optimize(Compact, max_deleted_share=share)
    assert done.removed_vectors == ((3,) if rewritten else ())
    assert table.rows("id", *IDS) == before
    if rewritten:
        (stats,) = table.stats()
        assert (stats["numRecords"], stats["minValues"]["id"]) == (7, 3)
        assert stats["tightBounds"]
        assert table.files().column("deletionVector").null_count == 1


def test_a_file_without_a_live_row_goes() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 2), numbered(5, 9), properties=VECTORS)
    table.delete("id IN (5, 6, 7)")
    pending_rows = table.rows()
    table.optimize(Compact)
    assert table.rows() == pending_rows


def test_commits_follow_one_another() -> None:
    files = [[{"id": n, "p": p}] for p in ("a", "b", "c") for n in (1, 2)]
    table = OptimizedTable(COLUMNS, *files, partition_by=["p"])
    version, before = table.version, table.rows()
    options = run_options(min_commit_interval_s=0)
    done = table.optimize(Compact, options=options)
    assert len(done.left) == 2
    # Somebody changes what is left of b: it is not matching any more.
    table.delete("p = 'b' AND id = 2")
    total = done
    while total.left:
        done = table.optimize(Compact, options=options, left=total.left)
        total = total.and_then(done)
    assert table.version == version + 3
    assert table.rows() == [row for row in before if row != {"id": 2, "p": "b"}]
    assert total.result()["partitionsOptimized"] == 2
    assert total.result()["totalConsideredFiles"] == 6
    assert total.result()["filesRemoved"]["totalFiles"] == 4


def test_several_bins_at_a_time_are_the_same_as_one() -> None:
    files = [[{"id": n, "p": str(n % 7)}] for n in range(21)]
    found = []
    for tasks in (1, 4):
        table = OptimizedTable(COLUMNS, *files, partition_by=["p"], properties=ROW_IDS)
        table.optimize(Compact, options=RunOptions(max_concurrent_tasks=tasks))
        found.append(table.rows("id", "p", *IDS))
        assert table.files().num_rows == 7
    assert found[0] == found[1]


def test_progress_is_told_and_may_end_the_work() -> None:
    store = DictStore()
    files = [[{"id": n, "p": str(n % 2)}] for n in range(6)]
    table = OptimizedTable(COLUMNS, *files, partition_by=["p"], store=store)
    paths, told = set(store.files), list[tuple[int, int]]()

    def stop(done: int, total: int) -> None:
        told.append((done, total))
        if done == 5:
            raise InvalidInputError("enough")

    with pytest.raises(InvalidInputError, match="enough"):
        table.do(Compact(), progress=stop)
    assert told == [(n, 6) for n in range(1, 6)]
    assert set(store.files) == paths


@pytest.mark.protocol("D-36")
def test_an_append_meanwhile_is_let_in_and_a_delete_is_not() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 2), numbered(2, 4), properties=VECTORS)

    def staged() -> PendingTransaction:
        snapshot = load_snapshot(utc_context(table.store))
        pending = PendingTransaction(snapshot.context, snapshot, operation="OPTIMIZE")
        Compact().stage(pending, LocalEngine())
        return pending

    pending = staged()
    table.append(numbered(4, 6))
    commit(pending)
    assert len(table.rows()) == 6
    pending = staged()
    table.delete("id = 1")
    with pytest.raises(ConcurrentDeleteReadError):
        commit(pending)


def test_every_file_is_opened_once() -> None:
    kept = DictStore()
    OptimizedTable(COLUMNS, *(numbered(n, n + 1) for n in range(20)), store=kept)
    counted = CountingStore(kept)
    OptimizedTable.reopened(counted).optimize(Compact)
    data = [call for call in counted.calls if call.paths and call.paths[0].endswith(".parquet")]
    verbs = [call.verb for call in data]
    # A footer and the columns of each small file, and one file that is written.
    assert verbs.count("put_if_absent") == 1
    assert verbs.count("read_ranges") == 40


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_concurrent_tasks": 0}, "max_concurrent_tasks"),
        ({"min_commit_interval_s": -1}, "min_commit_interval"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(options: dict[str, int], named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        RunOptions(**options)  # type: ignore[arg-type]
    table = OptimizedTable(COLUMNS)
    with pytest.raises(InvalidInputError, match="max_deleted_share"):
        table.optimize(Compact, max_deleted_share=2)


def test_the_history_says_what_delta_spark_says() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 2), numbered(2, 4), properties=ROW_IDS)
    table.optimize(Compact)
    info = table.info()
    assert info["operationParameters"] == {
        "predicate": "[]",
        "zOrderBy": "[]",
        "clusterBy": "[]",
        "auto": False,
    }
    assert info["tags"] == {"delta.rowTracking.preserved": "true"}
    assert set(info["operationMetrics"]) == {
        "numRemovedFiles",
        "numRemovedBytes",
        "numAddedFiles",
        "numAddedBytes",
        "numDeletionVectorsRemoved",
        "minFileSize",
        "p25FileSize",
        "p50FileSize",
        "p75FileSize",
        "maxFileSize",
    }


def test_quantiles_are_delta_sparks() -> None:
    metrics = Optimized(strategy="", added_sizes=(736, 731)).metrics()
    assert [metrics[f"p{share}FileSize"] for share in (25, 50, 75)] == [731, 736, 736]
