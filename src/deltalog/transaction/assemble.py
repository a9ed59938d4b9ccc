"""Assemble the bytes of a commit from a pending transaction and the version below it.

This module chooses the actions of a commit and their order, assigns row ids and the in-commit
timestamp, and makes the final checks. It runs again for every attempt, because ids and timestamps
depend on the previous version. It does no I/O.

Protocol: Delta Log Entries, Actions, Commit Provenance Information, In-Commit Timestamps, Row
Tracking
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.json import JsonObject, dumps, loads
from deltalog._util.kernels import compute, exact_sum
from deltalog._util.paths import canonical_paths, encode_path
from deltalog._util.version import __version__
from deltalog.errors import CommitConflictError, InternalError, InvalidInputError
from deltalog.log.branches import branch_of
from deltalog.log.names import MAX_VERSION
from deltalog.log.replay import SEPARATOR, file_keys
from deltalog.protocol import column_mapping
from deltalog.protocol.actions import Action, AddFile, CommitInfo, SetTransaction, encode_actions
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.actions.codec import check_commit
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features import in_commit_timestamps, row_ids
from deltalog.protocol.features.identity_columns import IDENTITY_TAG
from deltalog.protocol.features.row_ids import BACKFILL, PRESERVED_TAG, UNBACKFILL, Dialect
from deltalog.protocol.features.support import (
    check_column_types,
    check_may_remove,
    check_protocol,
    check_writable,
)
from deltalog.transaction.properties import READS, SNAPSHOT_ISOLATION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from deltalog.log.snapshot import Snapshot
    from deltalog.transaction.conflicts import WinningCommit
    from deltalog.transaction.pending import PendingTransaction

_ENABLEMENT_KEYS: Final = (
    TableProperties.in_commit_timestamp_enablement_version.key,
    TableProperties.in_commit_timestamp_enablement_timestamp.key,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """The bytes of one commit attempt.

    Args:
        version: the version that the commit would create.
        data: the actions as newline-delimited JSON; `commitInfo` is the first action.
        configuration: protocol and metadata of that version.
        in_commit_timestamp_ms: in-commit timestamp of that version; None if the table does not use
            them.
    """

    version: int
    data: bytes
    configuration: TableConfiguration
    in_commit_timestamp_ms: int | None


def assemble(
    pending: PendingTransaction,
    base: CommitBase,
    *,
    txn_id: str,
    now_ms: int,
    has_log_tail: bool = False,
) -> Assembled:
    """Assemble the commit that follows `base`.

    Args:
        pending: the content of the commit.
        base: the version before the commit.
        txn_id: id of the transaction, the same for every attempt.
        now_ms: milliseconds since 1970, UTC.
        has_log_tail: whether a catalog decides which commits are part of the table.

    Raises:
        InvalidInputError: parts of the commit contradict each other, or are not valid for the
            table.
        DeltaProtocolError: deltalog cannot write the table.

    Cost: one pass over the files that the commit names. No I/O.
    """
    version = base.version + 1
    if version > MAX_VERSION:
        raise InvalidInputError(
            f"cannot commit to {pending.store.root}: its version {base.version} is the highest "
            "possible version number"
        )
    configuration = effective_configuration(pending, base)
    time_ms = None
    if configuration.in_commit_timestamps is not None:
        time_ms = in_commit_timestamps.next_timestamp_ms(now_ms, base.previous_commit_timestamp_ms)
    configuration = _with_timestamp_enablement(configuration, base, version, time_ms)
    check_protocol(configuration.protocol)
    check_writable(
        configuration, table=pending.store.root, version=version, has_log_tail=has_log_tail
    )
    rows = _without_touched(pending, base)
    given = assign_row_ids(pending, base, configuration, rows, version)
    info = commit_info(
        pending,
        base,
        configuration,
        txn_id=txn_id,
        now_ms=now_ms,
        in_commit_timestamp_ms=time_ms,
        isolation_level=isolation_level(pending, configuration),
    )
    # With in-commit timestamps, the protocol requires commitInfo to be the first action.
    actions: list[Action] = [CommitInfo(values=info), *_table_actions(configuration, base)]
    actions += [
        SetTransaction(
            app_id=txn.app_id,
            version=txn.version,
            last_updated_ms=now_ms if txn.last_updated is None else txn.last_updated,
        )
        for txn in pending.app_transactions.values()
    ]
    actions += pending.domains.values()
    actions += given.actions
    actions += given.adds
    actions += pending.cdc
    check_parts(pending, configuration, actions, given.rows, before=base.configuration)
    lines = [encode_actions(actions), *add_lines(given.rows)]
    for files, data_change in pending.removes:
        lines += remove_lines(
            given.with_ids(files), data_change=data_change, deletion_timestamp_ms=now_ms
        )
    return Assembled(
        version=version,
        data=b"".join(lines),
        configuration=configuration,
        in_commit_timestamp_ms=time_ms,
    )


def effective_configuration(pending: PendingTransaction, base: CommitBase) -> TableConfiguration:
    """Return protocol and metadata after the commit.

    An action that the commit does not set has the value of the version before the commit.
    """
    now = base.configuration
    if now is None:
        return pending.configuration
    protocol, metadata = pending.changes_protocol, pending.changes_metadata
    if not protocol and not metadata:
        return now
    mine = pending.configuration
    return TableConfiguration(
        mine.protocol if protocol else now.protocol, mine.metadata if metadata else now.metadata
    )


def isolation_level(pending: PendingTransaction, configuration: TableConfiguration) -> str:
    """Return the isolation level of the commit.

    It is snapshot isolation if the commit changes no rows (requirement D-35), otherwise the table's
    level.
    """
    if pending.names_files and not pending.data_change:
        return SNAPSHOT_ISOLATION
    return configuration.properties.isolation_level


def _with_timestamp_enablement(
    configuration: TableConfiguration, base: CommitBase, version: int, time_ms: int | None
) -> TableConfiguration:
    """Record the version and time from which the table has in-commit timestamps.

    Protocol: In-Commit Timestamps (enablement)
    """
    texts = dict(configuration.metadata.configuration)
    before = base.configuration
    kept: dict[str, str] = {}
    if time_ms is not None and before is not None:
        if before.in_commit_timestamps is None:
            kept = dict(zip(_ENABLEMENT_KEYS, (str(version), str(time_ms)), strict=True))
        else:
            old = before.metadata.configuration
            kept = {key: old[key] for key in _ENABLEMENT_KEYS if key in old}
    changed = {key: text for key, text in texts.items() if key not in _ENABLEMENT_KEYS} | kept
    if changed == texts:
        return configuration
    metadata = replace(configuration.metadata, configuration=changed)
    return TableConfiguration(configuration.protocol, metadata)


def _table_actions(configuration: TableConfiguration, base: CommitBase) -> list[Action]:
    now = base.configuration
    found: list[Action] = []
    if now is None or now.metadata != configuration.metadata:
        found.append(configuration.metadata)
    if now is None or now.protocol != configuration.protocol:
        found.append(configuration.protocol)
    return found


def _without_touched(pending: PendingTransaction, base: CommitBase) -> pa.Table:
    """Return the existing files to add again, for a backfill without files of winning commits."""
    rows = pending.files_added_again
    if base.touched_paths is None or pending.operation not in {BACKFILL, UNBACKFILL}:
        return rows
    keys = file_keys(rows.column("path"), None, pending.store.root)
    touched = compute.is_in(keys, value_set=base.touched_paths.combine_chunks())
    return rows.filter(compute.invert(touched))


# --- Final check of a commit


def check_parts(
    pending: PendingTransaction,
    configuration: TableConfiguration,
    actions: Sequence[Action],
    rows: pa.Table,
    *,
    before: TableConfiguration | None,
) -> None:
    """Raise for a commit that would make the table invalid.

    Args:
        pending: the content of the commit.
        configuration: protocol and metadata after the commit.
        actions: the actions of the commit, except those of existing files.
        rows: existing files that the commit adds again (schema `FILE_SCHEMA`).
        before: protocol and metadata of the version before the commit; None for a new table.

    Raises:
        InvalidInputError: two actions set the same thing; or the table does not support metadata
            domains, or would get two row ids for one row.
        AppendOnlyError: the table is append-only, and rows would be deleted.
        InvalidProtocolError: a column type needs a table feature that the protocol lacks.
        InvalidMetadataError: two columns have the same physical name or column id.
        InternalError: an operation of deltalog staged deletion vectors for a table without the
            feature.

    Cost: one hash aggregation over the paths of the commit.
    """
    check_commit(actions)
    if pending.domains and not configuration.supports("domainMetadata"):
        raise InvalidInputError(
            f"cannot set metadata domains of {pending.store.root}: the protocol lacks the table "
            "feature domainMetadata; add it first"
        )
    # Use the configuration before the commit. Otherwise, a commit that replaces, clones or restores
    # the table could remove `delta.appendOnly` and delete rows at once.
    if before is not None and any(changed for _, changed in pending.removes):
        check_may_remove(
            before.features,
            before.properties,
            table=pending.store.root,
            operation=pending.operation,
        )
    if pending.adds or pending.changes_metadata:
        column_mapping.check_distinct(
            configuration.schema,
            configuration.column_mapping_mode,
            table=pending.store.root,
            operation=pending.operation,
        )
    if pending.adds:
        check_column_types(configuration, table=pending.store.root, operation=pending.operation)
    row_ids.check_change(
        configuration.features,
        configuration.properties,
        before=None if before is None else before.features,
        was_enabled=before is not None and before.row_ids_enabled,
        table=pending.store.root,
        operation=pending.operation,
    )
    has_vectors = rows.column("deletionVector").null_count < rows.num_rows or any(
        add.deletion_vector is not None for add in pending.adds
    )
    if has_vectors and not configuration.may_have_deletion_vectors:
        raise InternalError("cannot commit deletion vectors: the table lacks the feature")
    _check_files(pending, rows)


def _check_files(pending: PendingTransaction, rows: pa.Table) -> None:
    """Raise if a path is added twice or removed twice, or a logical file is added and removed."""
    removed = [files for files, _ in pending.removes]
    if not removed and not rows.num_rows:
        return  # `check_commit` has checked the other actions
    root = pending.store.root
    new_paths = _keys(_texts(encode_path(add.path) for add in pending.adds), None, root)
    new_keys = _texts(
        path if add.deletion_vector is None else f"{path}{SEPARATOR}{add.deletion_vector.unique_id}"
        for path, add in zip(new_paths.to_pylist(), pending.adds, strict=True)
    )
    added_paths = _join([new_paths, _keys(rows.column("path"), None, root)])
    removed_paths = _join([_keys(files.column("path"), None, root) for files in removed])
    _refuse_twice("add", added_paths)
    _refuse_twice("remove", removed_paths)
    added = _join([new_keys, _keys(rows.column("path"), rows.column("deletionVector"), root)])
    gone = _join(
        [_keys(files.column("path"), files.column("deletionVector"), root) for files in removed]
    )
    both = gone.filter(compute.is_in(gone, value_set=added))
    if len(both):
        path = str(both[0]).partition(SEPARATOR)[0]
        raise InvalidInputError(f"cannot add and remove the same file in one commit: {path!r}")


def _keys(paths: Any, vectors: Any, root: str) -> Any:
    return file_keys(paths, vectors, root)


def _texts(values: Iterable[str]) -> Any:
    return pa.chunked_array([pa.array(list(values), pa.string())])


def _join(columns: Sequence[Any]) -> Any:
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())


def _refuse_twice(what: str, keys: Any) -> None:
    counts = compute.value_counts(keys)
    twice = counts.filter(compute.greater(compute.struct_field(counts, "counts"), 1))
    if len(twice):
        path = twice[0].as_py()["values"]
        raise InvalidInputError(
            f"cannot {what} the file {path!r} twice in one commit: two operations of a transaction "
            "change rows of the same file; commit between them, or combine their conditions"
        )


# --- `add` and `remove` lines of existing files, created in batches from Arrow rows


_ROWS_TOGETHER: Final = 8192
_REMOVED_COLUMNS: Final = (
    "path",
    "partitionValues",
    "size",
    "tags",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
)
_MAPS: Final = ("partitionValues", "tags")


def add_lines(files: pa.Table) -> Iterator[bytes]:
    """Yield the `add` lines of rows with `FILE_SCHEMA`."""
    for rows in _batches(files.select(FILE_SCHEMA.names)):
        yield b"".join(dumps({"add": row}) + b"\n" for row in rows)


def remove_lines(
    files: pa.Table, *, data_change: bool, deletion_timestamp_ms: int
) -> Iterator[bytes]:
    """Yield the `remove` lines of live files, without their statistics.

    Args:
        files: rows with at least the columns `path`, `partitionValues`, `size`, `tags`,
            `deletionVector`, `baseRowId` and `defaultRowCommitVersion` of `FILE_SCHEMA`.
        data_change: whether the removal deletes rows from the table.
        deletion_timestamp_ms: milliseconds since 1970, UTC.
    """
    common = {
        "deletionTimestamp": deletion_timestamp_ms,
        "dataChange": data_change,
        "extendedFileMetadata": True,
    }
    for rows in _batches(files.select(list(_REMOVED_COLUMNS))):
        yield b"".join(
            dumps({"remove": {"path": row.pop("path"), **common, **row}}) + b"\n" for row in rows
        )


def _batches(files: pa.Table) -> Iterator[list[dict[str, Any]]]:
    for batch in files.to_batches(max_chunksize=_ROWS_TOGETHER):
        yield [_present(row) for row in batch.to_pylist()]


def _present(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row as a JSON action. Maps are converted to objects, and nulls are omitted."""
    found = {name: value for name, value in row.items() if value is not None}
    for name in _MAPS:
        if name in found:
            found[name] = dict(found[name])
    vector = found.get("deletionVector")
    if vector is not None:
        found["deletionVector"] = {
            name: value for name, value in vector.items() if value is not None
        }
    return found


# --- Row ids of the files of a commit, assigned again for every attempt


_IDS: Final = ("baseRowId", "defaultRowCommitVersion")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """The files of a commit with their row ids.

    Args:
        adds: new files.
        rows: existing files that are added again (schema `FILE_SCHEMA`).
        actions: the new high water mark, if it must be recorded.
        backfilled: files to which a concurrent backfill assigned row ids; None if there are none.
        root: the table's location.
    """

    adds: list[AddFile]
    rows: pa.Table
    actions: list[Action]
    backfilled: pa.Table | None
    root: str

    def with_ids(self, files: pa.Table) -> pa.Table:
        """Return removed files with the row ids that a concurrent backfill assigned to them.

        Requirement ROWID-16
        """
        return _with_backfilled(files, self.backfilled, self.root)


def assign_row_ids(
    pending: PendingTransaction,
    base: CommitBase,
    configuration: TableConfiguration,
    rows: pa.Table,
    version: int,
) -> Assigned:
    """Assign row ids to every file of the commit that has no row ids.

    Args:
        pending: the content of the commit.
        base: the version before the commit, with the highest row id in use.
        configuration: protocol and metadata after the commit.
        rows: existing files that the commit adds again.
        version: the version that the commit creates.

    Raises:
        InvalidInputError: a file's statistics lack `numRecords`, or the ids would exceed 64 bits.
    """
    root = pending.store.root
    rows = _with_backfilled(rows, base.backfilled, root)
    dialect = configuration.row_id_dialect
    assigning = row_ids.is_assigning(dialect, configuration.properties)
    if dialect is None or not assigning or not (pending.adds or rows.num_rows):
        return Assigned(
            adds=list(pending.adds), rows=rows, actions=[], backfilled=base.backfilled, root=root
        )
    commit_version = version if dialect is Dialect.CURRENT else None
    known = base.row_id_high_water_mark
    mark = row_ids.NO_ROW_ID if known is None else known
    adds: list[AddFile] = []
    for add in pending.adds:
        if add.base_row_id is None:
            count = _num_records(add)
            adds.append(
                replace(add, base_row_id=mark + 1, default_row_commit_version=commit_version)
            )
            mark += count
        elif add.default_row_commit_version is None:
            adds.append(replace(add, default_row_commit_version=commit_version))
        else:
            adds.append(add)
    rows, mark = _fill_rows(rows, mark, commit_version)
    # Files may already have row ids, for example in a restore. The high water mark must include
    # these ids, too.
    mark = max([mark, *_last_ids(adds)])
    if mark > row_ids.MAX_ROW_ID:
        raise InvalidInputError(
            f"cannot commit {pending.operation} to {root}: the new row ids would exceed the "
            f"maximum {row_ids.MAX_ROW_ID}; the highest row id in use is {known}"
        )
    actions: list[Action] = [
        row_ids.high_water_mark_action(
            spoken, mark, preserved=_are_preserved(pending, base, configuration, spoken)
        )
        for spoken in row_ids.dialects_of(configuration.features)
        # The draft of row tracking requires this action in every commit that adds data.
        if spoken is Dialect.DRAFT or known is None or mark != known
    ]
    return Assigned(adds=adds, rows=rows, actions=actions, backfilled=base.backfilled, root=root)


def _are_preserved(
    pending: PendingTransaction,
    base: CommitBase,
    configuration: TableConfiguration,
    dialect: Dialect,
) -> bool:
    """Return whether all rows that the commit copies have the same row ids as before."""
    if not pending.preserves_row_ids or base.gained_row_ids:
        return False
    copies = pending.copies_rows and bool(pending.adds)
    return not copies or row_ids.keeps_copied_ids(
        dialect, configuration.features, configuration.properties
    )


def _num_records(add: AddFile) -> int:
    found = None
    if add.stats:
        found = JsonObject(loads(add.stats, add.path), add.path).optional("numRecords", int)
    if found is None:
        raise _uncounted(add.path)
    if found < 0:
        raise InvalidInputError(
            f"cannot assign row ids to {add.path!r}: numRecords in its statistics is {found}"
        )
    return found


def _uncounted(path: str) -> InvalidInputError:
    return InvalidInputError(
        f"cannot assign row ids to {path!r}: its statistics lack numRecords, which a table with "
        "row ids needs"
    )


def _last_ids(adds: list[AddFile]) -> list[int]:
    return [add.base_row_id + _num_records(add) - 1 for add in adds if add.base_row_id is not None]


def _fill_rows(rows: pa.Table, mark: int, commit_version: int | None) -> tuple[pa.Table, int]:
    """Assign row ids and commit versions to existing files that lack them, as in a backfill."""
    versions: Any = rows.column("defaultRowCommitVersion")
    if commit_version is not None and versions.null_count:
        given = compute.coalesce(versions, pa.scalar(commit_version, pa.int64()))
        rows = _replaced(rows, "defaultRowCommitVersion", given)
    bases: Any = rows.column("baseRowId")
    if not bases.null_count:
        return rows, mark
    missing = bases.is_null()
    from deltalog.protocol.stats.parse import parse_stats  # noqa: PLC0415  # rarely needed

    counts = parse_stats(rows.column("stats"), pa.schema([("numRecords", pa.int64())]))
    needed = compute.if_else(missing, counts.column("numRecords"), 0)
    if needed.null_count:
        row = needed.is_null().to_pylist().index(True)
        raise _uncounted(rows.column("path")[row].as_py())
    last = mark + exact_sum(needed)  # the caller raises if this is too large
    if last > row_ids.MAX_ROW_ID:
        return rows, last
    after = compute.cumulative_sum(needed)
    starts = compute.add(compute.subtract(after, needed), mark + 1)
    rows = _replaced(rows, "baseRowId", compute.coalesce(bases, starts))
    return rows, last


def _with_backfilled(files: pa.Table, backfilled: pa.Table | None, root: str) -> pa.Table:
    if backfilled is None or not files.num_rows:
        return files
    keys: Any = canonical_paths(backfilled.column("path"), root)
    places = compute.index_in(
        canonical_paths(files.column("path"), root),
        value_set=keys.combine_chunks(),
    )
    for name in _IDS:
        given = backfilled.column(name).take(places)
        files = _replaced(files, name, compute.coalesce(given, files.column(name)))
    return files


def _replaced(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


# --- `commitInfo`


COMMIT_INFO_MEMBERS: Final = frozenset(
    {
        "inCommitTimestamp",
        "timestamp",
        "operation",
        "isolationLevel",
        "isBlindAppend",
        "operationMetrics",
        "tags",
        "engineInfo",
        "txnId",
        "version",
        READS,
    }
)
"""The members of `commitInfo` that deltalog sets. Custom metadata must not contain them."""
_PARAMETERS: Final = "operationParameters"


ENGINE_INFO: Final = f"deltalog/{__version__}"


def commit_info(
    pending: PendingTransaction,
    base: CommitBase,
    configuration: TableConfiguration,
    *,
    txn_id: str,
    now_ms: int,
    in_commit_timestamp_ms: int | None,
    isolation_level: str,
) -> dict[str, Any]:
    """Return the members of `commitInfo`, without nulls except nulls in custom metadata.

    Args:
        pending: the content of the commit.
        base: the version before the commit.
        configuration: protocol and metadata after the commit.
        txn_id: id of the transaction.
        now_ms: milliseconds since 1970, UTC.
        in_commit_timestamp_ms: in-commit timestamp of the commit; None if the table does not use
            them.
        isolation_level: name of the isolation level in `commitInfo`.

    Raises:
        InvalidInputError: custom metadata contains one of `COMMIT_INFO_MEMBERS`.
    """
    taken = sorted(COMMIT_INFO_MEMBERS & pending.custom_metadata.keys())
    if taken:
        raise InvalidInputError(
            f"custom_metadata cannot set {', '.join(taken)}: deltalog sets these members itself"
        )
    custom = dict(pending.custom_metadata)
    asked = {name: _as_text(value) for name, value in custom.pop(_PARAMETERS, {}).items()}
    read_version = None if pending.snapshot is None else pending.snapshot.version
    ours = {
        "inCommitTimestamp": in_commit_timestamp_ms,
        "timestamp": now_ms,
        "operation": pending.operation,
        _PARAMETERS: asked
        | {name: _parameter(value) for name, value in pending.parameters.items()},
        "readVersion": custom.pop("readVersion", read_version),
        "isolationLevel": isolation_level,
        "isBlindAppend": pending.is_blind_append,
        "operationMetrics": {name: str(value) for name, value in pending.metrics.items()},
        READS: pending.read_set.to_json() if branch_of(pending.store) else None,
    }
    last = {
        "tags": _tags(pending, base, configuration) or None,
        "engineInfo": ENGINE_INFO,
        "txnId": txn_id,
    }
    return {**_without_nulls(ours), **custom, **_without_nulls(last)}


def _without_nulls(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _parameter(value: Any) -> Any:
    """Encode lists and objects as JSON strings, as Delta Spark does."""
    return dumps(value).decode() if isinstance(value, dict | list | tuple) else value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value).decode()


def _tags(
    pending: PendingTransaction, base: CommitBase, configuration: TableConfiguration
) -> Mapping[str, str]:
    tags = dict(pending.tags)
    if configuration.row_id_dialect is Dialect.CURRENT and configuration.row_ids_enabled:
        # If a concurrent commit has enabled row tracking, this commit has copied rows before they
        # had row ids.
        preserved = pending.preserves_row_ids and not base.gained_row_ids
        tags.setdefault(PRESERVED_TAG, "true" if preserved else "false")
    if pending.changes_identity_marks_only:
        tags.setdefault(IDENTITY_TAG, "true")
    return tags


# --- Base of a commit attempt: first the transaction's snapshot, then each winning commit


NEW_TABLE: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBase:
    """The version directly before a commit.

    Args:
        version: its number; -1 if the commit creates the table.
        configuration: protocol and metadata of that version; None if the commit creates the table.
        previous_commit_timestamp_ms: timestamp of that version; None if not needed.
        row_id_high_water_mark: the highest row id in use; None if no row ids are in use.
        gained_row_ids: whether a winning commit enabled row tracking.
        backfilled: files to which a winning backfill assigned row ids. Columns: `path`,
            `baseRowId`, `defaultRowCommitVersion`.
        touched_paths: paths that winning commits added or removed; None unless this commit is a
            backfill.
    """

    version: int = NEW_TABLE
    configuration: TableConfiguration | None = None
    previous_commit_timestamp_ms: int | None = None
    row_id_high_water_mark: int | None = None
    gained_row_ids: bool = False
    backfilled: pa.Table | None = None
    touched_paths: pa.ChunkedArray[pa.StringScalar] | None = None


def check_base(snapshot: Snapshot, *, is_there: bool) -> None:
    """Raise if the log no longer contains the version on which the commit is based.

    If the next version is also missing from the log, the commit would succeed, but readers would
    not find it.

    Args:
        snapshot: the version on which the commit is based.
        is_there: whether the log contains the commit of that version.

    Raises:
        TableNotFoundError: the table no longer exists, or was replaced by another table.
        CommitConflictError: the table was rolled back, or its old commits were cleaned up.
    """
    if is_there:
        return
    latest = snapshot.refresh(same_table=True)
    raise CommitConflictError(
        f"cannot commit to {snapshot.store.root} on top of version {snapshot.version}: the log no "
        "longer contains the commit that was read, because the log was cleaned up or the table "
        f"was rolled back; the latest version is {latest.version}; nothing was committed"
    )


def first_base(pending: PendingTransaction) -> CommitBase:
    """Return the base of the first attempt: the transaction's snapshot.

    Cost: one request if the table has in-commit timestamps. If it has row ids, reads metadata
    domains from the log. Independent of the number of files.
    """
    snapshot = pending.snapshot
    if snapshot is None:
        return CommitBase()
    before, after = snapshot.configuration, pending.configuration
    needs_time = before.in_commit_timestamps or after.in_commit_timestamps
    needs_mark = before.row_id_dialect or after.row_id_dialect
    return CommitBase(
        version=snapshot.version,
        configuration=before,
        previous_commit_timestamp_ms=snapshot.commit_timestamp_ms if needs_time else None,
        row_id_high_water_mark=snapshot.row_id_high_water_mark if needs_mark else None,
    )


def advance(base: CommitBase, winner: WinningCommit, pending: PendingTransaction) -> CommitBase:
    """Return the base of the next attempt, after a winning commit that does not conflict."""
    before = base.configuration
    protocol, metadata = winner.protocol, winner.metadata
    after = before
    if before is not None and (protocol or metadata):
        after = TableConfiguration(protocol or before.protocol, metadata or before.metadata)
    has_row_ids = after is not None and after.row_id_dialect is not None
    return replace(
        base,
        version=winner.version,
        configuration=after,
        previous_commit_timestamp_ms=_time_of(winner, after),
        row_id_high_water_mark=_mark_after(base, winner, pending.snapshot, needed=has_row_ids),
        gained_row_ids=base.gained_row_ids
        or (
            before is not None
            and after is not None
            and after.row_ids_enabled
            and not before.row_ids_enabled
        ),
        backfilled=_backfilled(base, winner),
        touched_paths=_touched(base, winner, pending),
    )


def _time_of(winner: WinningCommit, configuration: TableConfiguration | None) -> int:
    own = winner.info.get("inCommitTimestamp")
    if isinstance(own, int) and configuration is not None and configuration.in_commit_timestamps:
        return own
    return winner.file.info.modified_ms


def _mark_after(
    base: CommitBase, winner: WinningCommit, snapshot: Snapshot | None, *, needed: bool
) -> int | None:
    known = base.row_id_high_water_mark
    if known is None and needed and snapshot is not None:
        known = snapshot.row_id_high_water_mark
    marks = winner.actions.high_water_marks
    found = row_ids.high_water_mark(winner.domains, marks[-1][1] if marks else None)
    return max((mark for mark in (known, found) if mark is not None), default=None)


def _backfilled(base: CommitBase, winner: WinningCommit) -> pa.Table | None:
    if winner.operation != BACKFILL:
        return base.backfilled
    found = winner.adds.select(["path", "baseRowId", "defaultRowCommitVersion"])
    return found if base.backfilled is None else pa.concat_tables([base.backfilled, found])


def _touched(
    base: CommitBase, winner: WinningCommit, pending: PendingTransaction
) -> pa.ChunkedArray[pa.StringScalar] | None:
    if pending.operation not in {BACKFILL, UNBACKFILL}:
        return None
    chunks: list[Any] = [] if base.touched_paths is None else list(base.touched_paths.chunks)
    for files in (winner.adds, winner.removes):
        found: Any = canonical_paths(files.column("path"), pending.store.root)
        chunks += found.chunks
    return pa.chunked_array(chunks, pa.string())
