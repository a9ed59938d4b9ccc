"""A transaction made again of the commit that a journal holds, on whatever the table is by now.

Owns what is checked before: the files of the commit are the table's own and are there, files that
leave are live. What was read is not in the journal, so that it counts as the whole table: where
another writer changed rows meanwhile that the commit may depend on, the conflict rules refuse it.

Protocol: Actions
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._json import JsonObject
from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.actions.codec import add_from_json, cdc_from_json
from deltalog.actions.descriptors import descriptor_from_json
from deltalog.configuration import TableConfiguration
from deltalog.errors import DataFileMissingError, MalformedLogError, ObjectNotFoundError
from deltalog.features.row_ids import BACKFILL, PRESERVED_TAG, ROW_TRACKING_DOMAIN, UNBACKFILL
from deltalog.kernels import compute
from deltalog.log.names import LogFile, LogFileKind, commit_path
from deltalog.paths import LOG_DIRECTORY, FileInfo, canonical_path, check_confined, decode_path
from deltalog.replay import file_keys
from deltalog.scan.deletion_vectors import load_bitmap
from deltalog.stats import parse_stats
from deltalog.storage.pool import map_in_pool
from deltalog.transaction.journal import APP_VERSION
from deltalog.transaction.pending import PendingTransaction
from deltalog.transaction.properties import AppTransaction
from deltalog.transaction.provenance import COMMIT_INFO_MEMBERS
from deltalog.transaction.winners import parse_winner

if TYPE_CHECKING:
    from deltalog.actions import AddCDCFile, AddFile
    from deltalog.snapshot import Snapshot
    from deltalog.transaction.journal import PreparedCommit
    from deltalog.transaction.winners import WinningCommit

_NUM_RECORDS: Final = pa.schema([("numRecords", pa.int64())])


def pending_again(prepared: PreparedCommit, snapshot: Snapshot, app_id: str) -> PendingTransaction:
    """The transaction of a prepared commit.

    Args:
        prepared: of a journal.
        snapshot: the table's version `prepared.base_version`.
        app_id: that the commit must record.

    Raises:
        MalformedLogError: the commit is none that deltalog prepares for this table.
        DataFileMissingError: a file that it adds is gone, or is another one.

    Cost: the paths of the table's files; a request for each file and vector that is new.
    """
    commit = _parsed(prepared, snapshot, app_id)
    info = commit.info
    pending = PendingTransaction(
        snapshot.context,
        snapshot,
        operation=commit.operation,
        parameters=_members(info.get("operationParameters")),
    )
    pending.metrics = {
        name: int(text) if _is_number(text) else str(text)
        for name, text in _members(info.get("operationMetrics")).items()
    }
    pending.custom_metadata = {
        name: value for name, value in info.items() if name not in COMMIT_INFO_MEMBERS
    }
    pending.preserves_row_ids = _members(info.get("tags")).get(PRESERVED_TAG) != "false"
    pending.copies_rows = not commit.is_blind_append
    before = snapshot.configuration
    after = TableConfiguration(
        commit.protocol or before.protocol, commit.metadata or before.metadata
    )
    if commit.protocol or commit.metadata:
        pending.set_configuration(after)
    for domain in commit.domains.values():
        if domain.domain != ROW_TRACKING_DOMAIN:  # counted anew by every attempt
            pending.set_domain(domain)
    for app, version in commit.app_versions.items():
        pending.set_app_transaction(AppTransaction(app, version))
    _add_files(pending, commit, snapshot)
    is_blind = not pending.removes and not pending.files_added_again.num_rows
    if not (is_blind and commit.is_blind_append):
        pending.record_read(None)
    return pending


def _parsed(prepared: PreparedCommit, snapshot: Snapshot, app_id: str) -> WinningCommit:
    shown = ".".join(prepared.name)
    version = prepared.base_version + 1
    file = FileInfo(commit_path(version), len(prepared.data), 0)
    commit = parse_winner(LogFile(LogFileKind.COMMIT, version, file), prepared.data)
    if snapshot.metadata.id != prepared.table_id:
        raise MalformedLogError(
            f"cannot commit what was prepared for {shown}: it was a table with id "
            f"{prepared.table_id!r}, and the one of that name has {snapshot.metadata.id!r}"
        )
    if commit.metadata is not None and commit.metadata.id != prepared.table_id:
        raise MalformedLogError(f"cannot commit what was prepared for {shown}: it changes its id")
    if commit.app_versions.get(app_id) != APP_VERSION:
        raise MalformedLogError(
            f"cannot commit what was prepared for {shown}: it does not record {app_id}"
        )
    if commit.operation in {BACKFILL, UNBACKFILL}:
        raise MalformedLogError(
            f"cannot commit what was prepared for {shown}: no transaction over several tables "
            f"holds a {commit.operation}"
        )
    return commit


def _is_number(text: object) -> bool:
    return isinstance(text, str) and text.isdecimal() and len(text) < 19


def _members(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _add_files(pending: PendingTransaction, commit: WinningCommit, snapshot: Snapshot) -> None:
    """Files that leave and files whose vector changes are live; the others are new."""
    root = pending.store.root
    live = snapshot.files(FILE_SCHEMA.names)
    keys: Any = file_keys(live.column("path"), live.column("deletionVector"), root)
    for data_change in (True, False):
        gone = commit.removes.filter(
            compute.equal(compute.coalesce(commit.removes.column("dataChange"), True), data_change)
        )
        wanted: Any = file_keys(gone.column("path"), gone.column("deletionVector"), root)
        rows = live.filter(compute.is_in(keys, value_set=wanted.combine_chunks()))
        if rows.num_rows != gone.num_rows:
            raise MalformedLogError(
                f"cannot commit what was prepared for {root}: of {gone.num_rows} files that it "
                f"removes, {rows.num_rows} are in version {snapshot.version}"
            )
        pending.remove_files(rows, data_change=data_change)
    adds = commit.adds.select(FILE_SCHEMA.names)
    known: Any = file_keys(live.column("path"), None, root)
    is_again = compute.is_in(
        file_keys(adds.column("path"), None, root), value_set=known.combine_chunks()
    )
    again = adds.filter(is_again)
    _check_vectors(pending, again)
    pending.add_again(again)
    new = [
        replace(add, base_row_id=None, default_row_commit_version=None)
        for add in map(_add, adds.filter(compute.invert(is_again)).to_pylist())
    ]
    changes = [
        cdc_from_json(JsonObject(row, "journal: cdc"))
        for row in commit.actions.cdc.drop_columns(["version"]).to_pylist()
    ]
    files: list[AddFile | AddCDCFile] = [*new, *changes]
    map_in_pool(lambda file: _check_file(pending, file), files)
    pending.adds.extend(new)
    pending.cdc.extend(changes)


def _add(row: dict[str, Any]) -> AddFile:
    return add_from_json(JsonObject(row, "journal: add"))


def _check_file(pending: PendingTransaction, file: AddFile | AddCDCFile) -> None:
    check_confined(file.path, allow_absolute=False)
    where = canonical_path(file.path, pending.store.root)
    if where.split("/", 1)[0] == LOG_DIRECTORY:
        raise MalformedLogError(
            f"cannot commit {file.path!r} to {pending.store.root}: it is a file of the log"
        )
    try:
        found = pending.store.stat(file.path)
    except ObjectNotFoundError as error:
        raise DataFileMissingError(
            f"cannot commit {file.path!r} to {pending.store.root}: the file is gone; vacuum "
            "removes what no version names for as long as the table's retention"
        ) from error
    if found.size_bytes != file.size_bytes:
        raise DataFileMissingError(
            f"cannot commit {file.path!r} to {pending.store.root}: expected {file.size_bytes} "
            f"bytes, found {found.size_bytes}"
        )


def _check_vectors(pending: PendingTransaction, again: pa.Table) -> None:
    """Read the vectors: one that is damaged, or of another table, must not be committed."""
    files = again.filter(again.column("deletionVector").is_valid())
    vectors: list[Any] = files.column("deletionVector").to_pylist()
    counts: list[Any] = parse_stats(files.column("stats"), _NUM_RECORDS)[0].to_pylist()

    def check(one: tuple[dict[str, Any], int | None]) -> None:
        vector, num_rows = one
        descriptor = descriptor_from_json(JsonObject(vector, "journal: deletionVector"))
        if descriptor.storage_type == "p":
            check_confined(decode_path(descriptor.path_or_inline_dv), allow_absolute=False)
        load_bitmap(pending.store, descriptor, num_rows=num_rows)

    map_in_pool(check, list(zip(vectors, counts, strict=True)))
