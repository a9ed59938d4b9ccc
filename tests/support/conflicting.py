"""Commits that another one comes before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deltalog.errors import (
    CommitConflictError,
)
from deltalog.transaction import PendingTransaction, commit
from tests.support.logs import (
    DictStore,
    Json,
    add,
)
from tests.support.logs import (
    commit as write_commit,
)
from tests.support.transactions import NOW_MS, condition, new_file, pending, table

ADDS = [add("x.parquet", partitionValues={"p": "x"}), add("y.parquet", partitionValues={"p": "y"})]


FEATURES = ("domainMetadata", "appendOnly", "invariants")


def two_partitions(level: str = "Serializable", features: tuple[str, ...] = FEATURES) -> DictStore:
    """A table with one file in each of two partitions."""
    return table(
        ADDS,
        features=features,
        configuration={"delta.isolationLevel": level},
        partitionColumns=["p"],
    )


def won(store: DictStore, *actions: Json, operation: str = "WRITE", blind: bool = False) -> None:
    """A commit of somebody else at version 2."""
    info = {"commitInfo": {"operation": operation, "isBlindAppend": blind}}
    write_commit(store, 2, info, *actions, time_ms=NOW_MS + 2)


def delete(tx: PendingTransaction, where: str | None, path: str = "x.parquet") -> None:
    """Reads what matches, and removes one file."""
    assert tx.snapshot is not None
    files = tx.snapshot.files()
    files = files.filter([found == path for found in files.column("path").to_pylist()])
    tx.operation = "DELETE"
    tx.record_read(None if where is None else condition(where, tx.snapshot), files)
    tx.remove_files(files, data_change=True)


def append(tx: PendingTransaction) -> None:
    """Adds one file, and reads nothing."""
    tx.add_files([new_file("mine.parquet", partition_values={"p": "x"})])


def outcome(
    store: DictStore, stage: Callable[[PendingTransaction], None], *winner: Json, **of_winner: Any
) -> CommitConflictError | None:
    """What a transaction is told when another commit was made before its own."""
    tx = pending(store)
    stage(tx)
    won(store, *winner, **of_winner)
    try:
        committed = commit(tx)
    except CommitConflictError as error:
        return error
    assert committed.version == 3
    assert committed.num_retries == 1
    return None


def added(partition: str) -> Json:
    """A new file of a partition."""
    return add("new.parquet", partitionValues={"p": partition}, stats='{"numRecords":1}')
