"""`DeltaTable.optimize`: deltalake's names, several commits, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import CommitProperties, DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.transaction import AppTransaction

KEYS = {
    "numFilesAdded",
    "numFilesRemoved",
    "filesAdded",
    "filesRemoved",
    "partitionsOptimized",
    "numBatches",
    "totalConsideredFiles",
    "totalFilesSkipped",
    "preserveInsertionOrder",
    "plannerStrategy",
    "preservedStableOrder",
    "maxBinSpanFiles",
}


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    for number in range(6):
        rows = pa.table({"x": [number, None], "p": [str(number % 2)] * 2})
        write_deltalake(tmp_path, rows, mode="append", partition_by=["p"])
    return DeltaTable(tmp_path)


def test_the_result_has_deltalakes_keys(table: DeltaTable) -> None:
    done = table.optimize.compact()
    assert done.keys() >= KEYS
    assert done["filesAdded"].keys() == {"avg", "max", "min", "totalFiles", "totalSize"}
    assert (done["numFilesAdded"], done["numFilesRemoved"]) == (2, 6)
    assert (table.version(), table.count()) == (6, 12)
    assert table.optimize.compact()["numFilesRemoved"] == 0
    assert table.version() == 6


def test_partition_filters_are_deltalakes(table: DeltaTable) -> None:
    assert table.optimize.compact(partition_filters=[("p", "=", "1")])["numFilesRemoved"] == 3
    assert table.optimize.z_order(["x"], [("p", "in", ["0"])])["numFilesRemoved"] == 3
    with pytest.raises(InvalidInputError, match="partition column"):
        table.optimize.compact([("x", "=", 1)])


@pytest.mark.parametrize("interval", [0, timedelta(0)])
def test_a_long_run_commits_several_times(table: DeltaTable, interval: int | timedelta) -> None:
    done = table.optimize.z_order(["x"], min_commit_interval=interval)
    assert (table.version(), done["numFilesRemoved"], done["partitionsOptimized"]) == (7, 6, 2)


def test_a_transaction_that_is_recorded_is_not_repeated(table: DeltaTable) -> None:
    once = CommitProperties(app_transactions=[AppTransaction("job", 1)])
    table.optimize.compact(commit_properties=once)
    version = table.version()
    write_deltalake(table, pa.table({"x": [1], "p": ["1"]}), mode="append")
    assert table.optimize.compact(commit_properties=once)["numFilesRemoved"] == 0
    assert table.version() == version + 1


def test_every_commit_of_a_run_is_made_with_one_transaction(table: DeltaTable) -> None:
    once = CommitProperties(app_transactions=[AppTransaction("job", 1)])
    table.optimize.compact(min_commit_interval=0, commit_properties=once)
    assert (table.version(), table.snapshot.num_files) == (7, 2)


def test_deleted_rows_are_purged(table: DeltaTable) -> None:
    table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    table.delete("x = 3")
    done = table.optimize.purge()
    assert (done["numDeletionVectorsRemoved"], done["numDeletedRowsPurged"]) == (1, 1)
    assert table.history(1)[0]["operation"] == "REORG"


def test_clustering(tmp_path: Path) -> None:
    rows = pa.table({"x": [3, 1, 2], "y": [1, 1, 1]})
    table = DeltaTable.create(tmp_path, rows.schema, cluster_by=["x", "y"])
    write_deltalake(table, rows, mode="append")
    assert table.optimize.cluster()["plannerStrategy"] == "cluster"
    assert table.optimize.compact()["numFilesRemoved"] == 0
    assert table.optimize.cluster(full=True)["numFilesRemoved"] == 1


@pytest.mark.parametrize(
    "options",
    [
        {"target_size": 0},
        {"max_spill_size": -1},
        {"max_temp_directory_size": -1},
        {"min_commit_interval": -1},
        {"max_concurrent_tasks": 0},
    ],
)
def test_numbers_that_mean_nothing_are_refused(table: DeltaTable, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        table.optimize.compact(**options)
