"""Journals of transactions over several tables, and the commits that are rebuilt from them.

Before a commit is rebuilt, this module checks that its files belong to the table and exist, and
that removed files are live. The journal does not record which data was read, so the whole table
counts as read. If another writer has changed the table since, the conflict rules may reject the
commit.

Protocol: Actions
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.json import JsonObject, dumps, loads
from deltalog._util.kernels import compute
from deltalog._util.paths import (
    LOG_DIRECTORY,
    FileInfo,
    canonical_path,
    check_confined,
    decode_path,
)
from deltalog._util.readable import FILE, counted
from deltalog.data.scan.transform import load_bitmap
from deltalog.errors import (
    AlreadyExistsError,
    DataFileMissingError,
    InvalidInputError,
    MalformedLogError,
    ObjectNotFoundError,
)
from deltalog.log.names import LogFile, LogFileKind, commit_path
from deltalog.log.replay import file_keys
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.actions.codec import add_from_json, cdc_from_json, descriptor_from_json
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features.row_ids import (
    BACKFILL,
    PRESERVED_TAG,
    ROW_TRACKING_DOMAIN,
    UNBACKFILL,
)
from deltalog.protocol.stats.parse import parse_stats
from deltalog.storage.pool import map_in_pool
from deltalog.transaction.assemble import COMMIT_INFO_MEMBERS
from deltalog.transaction.conflicts import WinningCommit, parse_winner
from deltalog.transaction.pending import PendingTransaction
from deltalog.transaction.properties import AppTransaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.actions import AddCDCFile, AddFile
    from deltalog.storage.store import Store

_NUM_RECORDS: Final = pa.schema([("numRecords", pa.int64())])


def pending_again(prepared: PreparedCommit, snapshot: Snapshot, app_id: str) -> PendingTransaction:
    """Return a transaction with the content of a prepared commit.

    Args:
        prepared: the commit, from a journal.
        snapshot: snapshot of the table at `prepared.base_version`.
        app_id: the application that the commit must record.

    Raises:
        MalformedLogError: the commit is not valid for this table.
        DataFileMissingError: a file that the commit adds no longer exists, or was replaced.

    Cost: reads the paths of the table's files, and one request for each new file and deletion
    vector.
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
        if domain.domain != ROW_TRACKING_DOMAIN:  # every attempt computes it
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
            f"cannot make the prepared commit of {shown}: it was prepared for the table with id "
            f"{prepared.table_id!r}, but the table now has the id {snapshot.metadata.id!r}"
        )
    if commit.metadata is not None and commit.metadata.id != prepared.table_id:
        raise MalformedLogError(
            f"cannot make the prepared commit of {shown}: it would change the table's id"
        )
    if commit.app_versions.get(app_id) != APP_VERSION:
        raise MalformedLogError(
            f"cannot make the prepared commit of {shown}: it does not record the application "
            f"{app_id}"
        )
    if commit.operation in {BACKFILL, UNBACKFILL}:
        raise MalformedLogError(
            f"cannot make the prepared commit of {shown}: transactions over several tables cannot "
            f"contain the operation {commit.operation}"
        )
    return commit


def _is_number(text: object) -> bool:
    return isinstance(text, str) and text.isdecimal() and len(text) < 19


def _members(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _add_files(pending: PendingTransaction, commit: WinningCommit, snapshot: Snapshot) -> None:
    """Add the files of the commit; check that removed files are live and that new files exist."""
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
                f"cannot make the prepared commit of {root}: it removes "
                f"{counted(gone.num_rows, FILE)}, but version {snapshot.version} has only "
                f"{rows.num_rows} of them"
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
            f"cannot commit {file.path!r} to {pending.store.root}: the path is in _delta_log"
        )
    try:
        found = pending.store.stat(file.path)
    except ObjectNotFoundError as error:
        raise DataFileMissingError(
            f"cannot commit {file.path!r} to {pending.store.root}: the file no longer exists; "
            "vacuum deletes uncommitted files after the table's retention period"
        ) from error
    if found.size_bytes != file.size_bytes:
        raise DataFileMissingError(
            f"cannot commit {file.path!r} to {pending.store.root}: expected {file.size_bytes} "
            f"bytes, found {found.size_bytes}"
        )


def _check_vectors(pending: PendingTransaction, again: pa.Table) -> None:
    """Read the deletion vectors of the files; raise if one is damaged or outside of the table."""
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


# --- Journals: the commits of a transaction over several tables


MOST_BYTES: Final = 256 << 20
APP_VERSION: Final = 1
_FORMAT: Final = 1
_YEAR_10000_MS: Final = 253_402_300_800_000
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FILE_NAME: Final = re.compile(rf"(?P<id>{_UUID})\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCommit:
    """A prepared commit of one table.

    Args:
        name: name of the table in its catalog.
        table_id: id in the table's metadata, because another table may have the same name later.
        base_version: the version on top of which the commit was prepared.
        data: the actions, as newline-delimited JSON.
    """

    name: tuple[str, ...]
    table_id: str
    base_version: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """The commits of one transaction, in the order in which they will be made.

    Args:
        transaction_id: a UUID.
        created_ms: time when the commits were prepared, in milliseconds since 1970, UTC.
        commits: the commits of at least two tables.
    """

    transaction_id: str
    created_ms: int
    commits: tuple[PreparedCommit, ...]

    @property
    def app_id(self) -> str:
        """The application id that each commit records, so that made commits can be recognised."""
        return app_id_of(self.transaction_id)

    @property
    def path(self) -> str:
        """The path of the journal's file in the directory of journals."""
        return f"{self.transaction_id}.json"


def app_id_of(transaction_id: str) -> str:
    """Return the application id that all commits of a transaction record."""
    return f"deltalog-transaction-{transaction_id}"


def encode_journal(journal: Journal) -> bytes:
    """Return a journal as JSON.

    Raises:
        InvalidInputError: the JSON is longer than `MOST_BYTES`.
    """
    data = dumps(
        {
            "deltalogTransaction": _FORMAT,
            "id": journal.transaction_id,
            "createdTime": journal.created_ms,
            "tables": [
                {
                    "name": list(commit.name),
                    "tableId": commit.table_id,
                    "version": commit.base_version,
                    "commit": commit.data.decode(),
                }
                for commit in journal.commits
            ],
        }
    )
    if len(data) > MOST_BYTES:
        raise InvalidInputError(
            f"cannot commit a transaction over {counted(len(journal.commits), 'table')}: its "
            f"journal has {len(data)} bytes, but the limit is {MOST_BYTES}; change fewer files in "
            "one transaction"
        )
    return data


def decode_journal(data: bytes, path: str) -> Journal:
    """Parse a journal.

    Raises:
        MalformedLogError: the data is not a journal, is damaged, or belongs to another transaction.
    """
    where = f"journal {path}"
    node = JsonObject(loads(data, where), where)
    if (found := node.required("deltalogTransaction", int)) != _FORMAT:
        raise node.error(f"{where}: expected format {_FORMAT}, found {found}")
    transaction_id = node.required("id", str)
    if path != f"{transaction_id}.json" or not _FILE_NAME.fullmatch(path):
        raise node.error(f"{where}: expected the id in the file name, found {transaction_id!r}")
    commits = tuple(
        _commit(JsonObject(item, f"{where}, table {number}"))
        for number, item in enumerate(node.required("tables", list), 1)
    )
    if not commits or len({commit.table_id for commit in commits}) < len(commits):
        raise node.error(f"{where}: expected different tables, found {len(commits)}")
    created_ms = node.required("createdTime", int)
    if not 0 <= created_ms < _YEAR_10000_MS:
        raise node.error(f"{where}.createdTime: expected a time, found {created_ms}")
    return Journal(transaction_id=transaction_id, created_ms=created_ms, commits=commits)


def _commit(node: JsonObject) -> PreparedCommit:
    name: list[Any] = node.required("name", list)
    if not name or not all(isinstance(part, str) and part for part in name):
        raise node.error(f"{node.where}.name: expected strings, found {name!r:.100}")
    version = node.required("version", int)
    if version < 0:
        raise node.error(f"{node.where}.version: expected a version, found {version}")
    return PreparedCommit(
        name=tuple(name),
        table_id=node.required("tableId", str),
        base_version=version,
        data=node.required("commit", str).encode(errors="surrogatepass"),
    )


class Journals:
    """A directory of journals; other files in it are ignored.

    Args:
        store: a store whose root is the directory.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def put(self, journal: Journal) -> None:
        """Store a journal.

        Raises:
            StorageError: the journal may or may not be stored, as the error states.
        """
        data = encode_journal(journal)
        try:
            self.store.put_if_absent(journal.path, data)
        except AlreadyExistsError:
            # The id is unique, so the existing file is from an earlier request for this journal.
            if self.store.read(journal.path) != data:
                raise

    def ids(self) -> list[str]:
        """Return the ids of all journals, in string order. Cost: one listing."""
        names = [_FILE_NAME.fullmatch(file.name) for file in self.store.list_from("", "")]
        return sorted(found["id"] for found in names if found is not None)

    def read(self, transaction_id: str) -> Journal | None:
        """Return a journal; None if it no longer exists, because its transaction is complete.

        Raises:
            MalformedLogError: the journal is damaged or too long.
            InvalidInputError: the id is not a transaction id.
        """
        path = _path(transaction_id)
        try:
            size_bytes = self.store.stat(path).size_bytes
            if size_bytes > MOST_BYTES:
                raise MalformedLogError(
                    f"cannot read journal {path} in {self.store.root}: it has {size_bytes} bytes, "
                    f"but the limit is {MOST_BYTES}"
                )
            return decode_journal(self.store.read(path), path)
        except ObjectNotFoundError:
            return None

    def remove(self, transaction_ids: Sequence[str]) -> None:
        """Delete journals; missing journals are ignored."""
        self.store.delete_many([_path(one) for one in transaction_ids])


def _path(transaction_id: str) -> str:
    path = f"{transaction_id}.json"
    if not _FILE_NAME.fullmatch(path):
        raise InvalidInputError(
            f"cannot use {transaction_id!r} as the id of a transaction: expected a UUID"
        )
    return path
