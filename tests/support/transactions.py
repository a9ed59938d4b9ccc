"""Pending transactions of a few lines, over tables of a few lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deltalog._util.json import iter_objects
from deltalog.data.write.written import WrittenFiles
from deltalog.expressions import Expression, as_expression, resolve_predicate
from deltalog.log.context import utc_context
from deltalog.log.names import commit_path
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.actions import AddFile
from deltalog.storage.store import Store
from deltalog.testing.simulation.model import SteadyClock
from deltalog.transaction import (
    PendingTransaction,
    PostCommitHookProperties,
)
from tests.support.logs import DictStore, Json, commit, metadata

NOW_MS = 1_700_000_000_000
NO_CHECKPOINT = PostCommitHookProperties(create_checkpoint=False)


def table(
    *commits: list[Json],
    features: tuple[str, ...] = (),
    configuration: Mapping[str, str] | None = None,
    **members: Any,
) -> DictStore:
    """A table with writer features, properties and these commits after version 0."""
    store = DictStore()
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    if features:
        protocol = {
            "minReaderVersion": 1,
            "minWriterVersion": 7,
            "writerFeatures": list(features),  # type: ignore[dict-item]
        }
    head: list[Json] = [{"commitInfo": {"inCommitTimestamp": NOW_MS, "operation": "CREATE TABLE"}}]
    head += [{"protocol": protocol}, metadata(configuration=dict(configuration or {}), **members)]
    for version, actions in enumerate([head, *commits]):
        commit(store, version, *actions, time_ms=NOW_MS + version)
    return store


def new_file(path: str, rows: int = 1, *, data_change: bool = True, **members: Any) -> AddFile:
    """A file that joins a table."""
    return AddFile(
        path=path,
        partition_values=members.pop("partition_values", {}),
        size_bytes=1,
        modification_time_ms=1,
        data_change=data_change,
        stats=members.pop("stats", f'{{"numRecords":{rows}}}'),
        **members,
    )


def pending(
    store: Store,
    *adds: AddFile,
    snapshot: Snapshot | None = None,
    operation: str = "WRITE",
    parameters: Mapping[str, Any] | None = None,
) -> PendingTransaction:
    """A transaction on the latest version that adds files."""
    base = snapshot or load_snapshot(utc_context(store))
    found = PendingTransaction(
        replace(base.context, clock=SteadyClock(NOW_MS + 1000)),
        base,
        operation=operation,
        parameters=parameters,
    )
    found.add_files(adds)
    return found


def condition(text: str, snapshot: Snapshot) -> Expression:
    """A predicate, resolved."""
    schema = snapshot.configuration.schema
    return resolve_predicate(as_expression(text, schema), schema)


def actions_of(store: DictStore, version: int) -> list[Json]:
    """The lines of a commit."""
    return iter_objects(store.files[commit_path(version)])


def commit_info_of(store: DictStore, version: int) -> Json:
    """The first line of a commit, which must be its `commitInfo`."""
    found: Json = actions_of(store, version)[0]["commitInfo"]
    return found


def of_kind(store: DictStore, version: int, kind: str) -> list[Json]:
    """The actions of one kind in a commit."""
    return [action[kind] for action in actions_of(store, version) if kind in action]


def names_of_files(snapshot: Snapshot) -> list[str]:
    """The paths of live files, sorted."""
    found: list[Any] = snapshot.files(["path"]).column("path").to_pylist()
    return sorted(found)


def paths_of_adds(store: DictStore) -> list[str]:
    """The paths of the latest version's files, sorted."""
    return names_of_files(load_snapshot(utc_context(store)))


def remove_all(tx: PendingTransaction, *, data_change: bool = True) -> None:
    """Remove every file."""
    assert tx.snapshot is not None
    tx.remove_files(tx.snapshot.files(), data_change=data_change)


def written_files(tx: PendingTransaction, **members: Any) -> WrittenFiles:
    """A file that was written elsewhere."""
    found = tx.configuration.metadata
    base: dict[str, Any] = {
        "adds": (new_file("w.parquet"),),
        "num_rows": 1,
        "num_bytes": 1,
        "table_id": found.id,
        "schema_string": found.schema_string,
    }
    return WrittenFiles(**base | members)
