"""deltalog as the checkers of the corpus and of the reference tables call it.

Runs by itself too: `python DIRECTORY/check.py tests/conformance/adapter.py -v`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa

from deltalog import DeltaTable
from deltalog._util.paths import decode_path
from deltalog.errors import DeltaError, VersionNotFoundError

P = ParamSpec("P")
T = TypeVar("T")


def _tells_kind(function: Callable[P, T]) -> Callable[P, T]:
    """The checkers compare an attribute `kind` with the manifest; ours is the error's code."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except DeltaError as error:
            error.kind = error.code  # type: ignore[attr-defined]  # the checkers' convention
            raise

    return call


@_tells_kind
def read(path: str, version: int | None = None) -> pa.Table:
    """All rows of a version."""
    return DeltaTable(path, version=version).to_pyarrow_table()


@_tells_kind
def snapshot(path: str, version: int | None = None) -> dict[str, Any]:
    """The state of a version, from the log alone."""
    table = DeltaTable(path, version=version)
    state = table.snapshot
    files = state.files(["path", "deletionVector"])
    # Expired ones too: the corpus has them, the reference tables leave both readings open.
    transactions = state.recorded_app_transactions
    return {
        "num_files": state.num_files,
        "files": [
            (decode_path(file["path"]), _unique_id(file["deletionVector"]))
            for file in files.to_pylist()
        ],
        "protocol": [state.protocol.min_reader_version, state.protocol.min_writer_version],
        "partition_columns": list(state.metadata.partition_columns),
        "txn": {app: txn.version for app, txn in transactions.items()},
        "domain_metadata": list(state.domain_metadata),
    }


def _unique_id(vector: dict[str, Any] | None) -> str | None:
    if vector is None:
        return None
    at = "" if vector["offset"] is None else f"@{vector['offset']}"
    return f"{vector['storageType']}{vector['pathOrInlineDv']}{at}"


@_tells_kind
def changes(path: str, start: int, end: int) -> pa.Table:
    """The change data feed from `start` to `end`, both included."""
    feed = DeltaTable(path).load_cdf(starting_version=start, ending_version=end)
    return pa.table(feed)


@_tells_kind
def row_ids(path: str, version: int) -> pa.Table:
    """All rows with their stable row ids and commit versions."""
    table = DeltaTable(path, version=version)
    names = [field.name for field in table.schema().fields]
    scan = table.scan(columns=[*names, "_metadata.row_id", "_metadata.row_commit_version"])
    return scan.to_table().rename_columns([*names, "_row_id", "_row_commit_version"])


@_tells_kind
def version_at(path: str, timestamp: str) -> int:
    """The version that a read as of this moment gives; after the last commit: an error."""
    table = DeltaTable(path)
    moment = datetime.fromisoformat(timestamp)
    last_ms = table.snapshot.commit_timestamp_ms
    if moment > datetime.fromtimestamp(last_ms / 1000, UTC):
        raise VersionNotFoundError(f"{timestamp} is after the last commit")
    table.load_as_version(moment)
    return table.version()


@_tells_kind
def commit_timestamps(path: str) -> dict[int, int]:
    """Commit times in milliseconds since 1970, by version."""
    return {entry["version"]: entry["timestamp"] for entry in DeltaTable(path).history()}
