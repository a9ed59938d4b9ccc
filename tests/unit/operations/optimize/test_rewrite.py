"""What every optimization stages, and what the history says of it."""

from __future__ import annotations

import pytest

from deltalog.errors import ConcurrentDeleteReadError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.engine import LocalEngine
from deltalog.operations.optimize import Compact
from deltalog.transaction import PendingTransaction
from deltalog.transaction.commit import commit
from tests.support.optimizing import OptimizedTable, numbered, run_options
from tests.support.statements import ROW_IDS, VECTORS

COLUMNS = {"id": "long", "p": "string"}


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
