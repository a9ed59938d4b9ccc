"""Read and parse a range of commits, and return their actions by kind.

File actions become Arrow tables. The few other actions are Python objects. `replay` decides which
file actions are live.

Protocol: Delta Log Entries, Actions
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.json import JsonObject, iter_objects
from deltalog._util.small_arrays import no_rows, small_array
from deltalog.errors import MalformedLogError, ObjectNotFoundError
from deltalog.log.listing import list_log
from deltalog.log.names import LogFile, LogFileKind, commit_path
from deltalog.log.segment import readable_versions
from deltalog.protocol.actions import arrow
from deltalog.protocol.actions.codec import (
    ERRORS,
    domain_from_json,
    high_water_mark_from_json,
    metadata_from_json,
    protocol_from_json,
    txn_from_json,
)
from deltalog.storage.store import Store, is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from deltalog.log.context import LogTail
    from deltalog.protocol.actions import model

VERSION_COLUMN: Final = "version"
_VERSION_FIELD: Final = pa.field(VERSION_COLUMN, pa.int64())
_BATCH_BYTES: Final = 32 << 20
_BATCH_FILES: Final = 512
_GROUP_BYTES: Final = 16 << 20
# The minimum total size in bytes of commits that are parsed together. Fewer bytes are parsed faster
# line by line.
_TOGETHER_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitTable:
    """The actions of a range of commits. Actions of a compaction have its last version.

    Args:
        adds: `add` actions (schema `FILE_SCHEMA` and the column `version`), oldest version first.
        removes: `remove` actions (schema `REMOVE_SCHEMA` and the column `version`).
        cdc: `cdc` actions (schema `CDC_SCHEMA` and the column `version`).
        protocol_nodes: the version and the JSON object of each `protocol` action, oldest first. It
            is parsed on demand, because an invalid action may have been replaced later.
        metadata_nodes: the version and the JSON object of each `metaData` action, oldest first.
        commit_infos: version → members of `commitInfo`.
    """

    adds: pa.Table
    removes: pa.Table
    cdc: pa.Table
    protocol_nodes: tuple[tuple[int, JsonObject], ...] = ()
    metadata_nodes: tuple[tuple[int, JsonObject], ...] = ()
    txns: tuple[tuple[int, model.SetTransaction], ...] = ()
    domains: tuple[tuple[int, model.DomainMetadata], ...] = ()
    high_water_marks: tuple[tuple[int, model.RowIdHighWaterMark], ...] = ()
    commit_infos: Mapping[int, Mapping[str, Any]]

    @property
    def protocols(self) -> tuple[tuple[int, model.Protocol], ...]:
        """All protocols with their versions, oldest first.

        Raises:
            InvalidProtocolError: a protocol is invalid.
        """
        return tuple((version, protocol_from_json(node)) for version, node in self.protocol_nodes)

    @property
    def metadatas(self) -> tuple[tuple[int, model.Metadata], ...]:
        """All metadata actions with their versions, oldest first.

        Raises:
            InvalidMetadataError: a metadata action is invalid.
        """
        return tuple((version, metadata_from_json(node)) for version, node in self.metadata_nodes)


def read_in_batches(
    store: Store, files: Sequence[LogFile]
) -> Iterator[list[tuple[LogFile, bytes]]]:
    """Yield the files with their contents, in order, in batches of limited size.

    Cost: one request for each file; the requests of a batch run at the same time.
    """
    batch: list[LogFile] = []
    size = 0
    for file in files:
        if batch and (size + file.info.size_bytes > _BATCH_BYTES or len(batch) >= _BATCH_FILES):
            yield _read(store, batch)
            batch, size = [], 0
        batch.append(file)
        size += file.info.size_bytes
    if batch:
        yield _read(store, batch)


def _read(store: Store, files: Sequence[LogFile]) -> list[tuple[LogFile, bytes]]:
    found = store.read_many([file.info.path for file in files])
    for file, data in zip(files, found, strict=True):
        if not data and _is_torn(store, file):
            raise MalformedLogError(
                f"cannot read version {file.version} of {store.root}: its file {file.info.path!r} "
                "is empty, because its writer was interrupted"
            )
    return list(zip(files, found, strict=True))


def _is_torn(store: Store, file: LogFile) -> bool:
    """Return whether an empty file is damaged, for example because a write was interrupted.

    An empty commit is damaged only if it is the newest commit, in a store that does not create
    files atomically. Any other empty commit is a version without actions, as in Delta Spark. An
    empty compaction is always damaged, because its commits have actions.
    """
    if file.kind is not LogFileKind.COMMIT:
        return True
    if not is_local(store):
        return False
    try:
        store.stat(commit_path(file.version + 1))
    except ObjectNotFoundError:
        return True
    return False


def read_commits(
    store: Store, files: Sequence[LogFile], *, commit_infos: bool = False
) -> CommitTable:
    """Read and parse commits.

    Args:
        store: the table's store.
        files: commits and compactions, oldest first.
        commit_infos: whether to return `commitInfo` actions.

    Raises:
        MalformedLogError: a line is not a JSON object, or an action lacks a required member.
    """
    with naming_the_table(store):
        tables = [
            parse_commits(batch, commit_infos=commit_infos)
            for batch in read_in_batches(store, files)
        ]
    return concat_commits(tables)


@contextmanager
def naming_the_table(store: Store) -> Iterator[None]:
    """Make errors about damaged commits in the `with` block name the table."""
    try:
        yield
    except MalformedLogError as error:
        if store.root in str(error):
            raise
        raise error.with_message(f"cannot read the log of {store.root}: {error}") from None


@contextmanager
def advising_on_damage(
    store: Store, commits: Iterable[LogFile], log_tail: LogTail | None
) -> Iterator[None]:
    """Make errors about damaged commits in the `with` block name the table and the way out.

    Args:
        store: the table's store.
        commits: the commits that are read in the block, oldest first.
        log_tail: the newest commits of a catalog-managed table.

    Cost: none without an error; otherwise see `with_readable_versions`.
    """
    try:
        with naming_the_table(store):
            yield
    except MalformedLogError as error:
        raise with_readable_versions(error, store, commits, log_tail) from error.__cause__


def with_readable_versions(
    error: MalformedLogError, store: Store, commits: Iterable[LogFile], log_tail: LogTail | None
) -> MalformedLogError:
    """Return the error with advice on the first damaged commit: readable versions, what to do.

    Cost: reads every commit up to the damaged one, and lists the log.
    """
    for file in commits:
        try:
            read_commits(store, [file])
        except MalformedLogError:
            listing = list_log(store, from_version=0, log_tail=log_tail)
            readable = readable_versions(listing, file.version)
            older = (
                ", or open one of these versions by DeltaTable(…, version=…)" if readable else ""
            )
            return error.with_message(
                f"{error}; the commit of version {file.version} ({file.info.path}) is damaged"
                f"{readable}; restore this file from a backup{older}; `deltalog doctor` reports "
                "all damage"
            )
    return error


def parse_commits(
    commits: Iterable[tuple[LogFile, bytes]], *, commit_infos: bool = False
) -> CommitTable:
    """Parse the contents of commits, oldest first; see `read_commits`."""
    return concat_commits([_parse(group, commit_infos) for group in _in_groups(commits)])


def _in_groups(
    commits: Iterable[tuple[LogFile, bytes]],
) -> Iterator[list[tuple[int, bytes]]]:
    """Yield version and content of each commit, in groups of limited size."""
    group: list[tuple[int, bytes]] = []
    size = 0
    for file, data in commits:
        if group and size + len(data) > _GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append((file.end_version or file.version, data))
        size += len(data)
    if group:
        yield group


def _parse(commits: Sequence[tuple[int, bytes]], commit_infos: bool) -> CommitTable:  # noqa: FBT001
    if sum(len(data) for _, data in commits) >= _TOGETHER_BYTES:
        from deltalog.log.many_commits import read_together  # noqa: PLC0415  # loads pyarrow.json

        together = read_together(commits)
        if together is not None:
            actions = _ActionLists(keep_commit_infos=commit_infos)
            for version, line, values in together.others:
                actions.add_line(version, line, values)
            return actions.table(
                {
                    kind: files.append_column(_VERSION_FIELD, versions)
                    for kind, (files, versions) in together.files.items()
                }
            )
    actions = _ActionLists(keep_commit_infos=commit_infos)
    for version, data in commits:
        actions.add_commit(version, data)
    return actions.table()


def concat_commits(tables: Sequence[CommitTable]) -> CommitTable:
    """Join several ranges of commits, oldest first."""
    if len(tables) == 1:
        return tables[0]
    if not tables:
        return _ActionLists().table()
    infos: dict[int, Mapping[str, Any]] = {}
    for table in tables:
        infos.update(table.commit_infos)
    return CommitTable(
        adds=pa.concat_tables([table.adds for table in tables]),
        removes=pa.concat_tables([table.removes for table in tables]),
        cdc=pa.concat_tables([table.cdc for table in tables]),
        protocol_nodes=tuple(item for table in tables for item in table.protocol_nodes),
        metadata_nodes=tuple(item for table in tables for item in table.metadata_nodes),
        txns=tuple(item for table in tables for item in table.txns),
        domains=tuple(item for table in tables for item in table.domains),
        high_water_marks=tuple(item for table in tables for item in table.high_water_marks),
        commit_infos=infos,
    )


def find_protocol_and_metadata(
    version: int, data: bytes
) -> tuple[JsonObject | None, JsonObject | None]:
    """Return the JSON objects of the `protocol` and `metaData` actions of one commit, or None.

    Raises:
        MalformedLogError: a line is not a JSON object, so it may have been one of the two actions.

    Cost: a few searches in the bytes; only a commit that contains one of the two keys, or a line
    that does not look like a known action, is parsed.
    """
    # JSON could escape letters of a key (`\u0070rotocol`), but no writer does.
    if b'"protocol"' not in data and b'"metaData"' not in data and _looks_regular(data):
        return None, None
    found: dict[str, JsonObject] = {}
    for line, values in enumerate(iter_objects(data, f"version {version}"), 1):
        for kind in ("protocol", "metaData"):
            if (value := values.get(kind)) is not None:
                found[kind] = _node(kind, value, version, line)
    return found.get("protocol"), found.get("metaData")


def _looks_regular(data: bytes) -> bool:
    """Return whether every line begins with `{"<known action>":` and ends with `}`.

    Blank lines and CRLF are not regular.
    """
    # After a crash, a file can contain blocks of zeros, even within a line that looks regular.
    if b"\0" in data:
        return False
    position = 0
    while position < len(data):
        found = _REGULAR_LINES.match(data, position)
        if found is None:
            return False
        position = found.end()
    return True


def _node(kind: str, value: Any, version: int, line: int) -> JsonObject:
    error = ERRORS.get(kind, MalformedLogError)
    return JsonObject(value, f"version {version}, line {line}: {kind}", error)


class _FileActions:
    """The parsed file actions of one kind, with their version and line."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.actions: list[Any] = []
        self.versions: list[int] = []
        self.lines: list[int] = []

    def where(self, row: int) -> str:
        return f"version {self.versions[row]}, line {self.lines[row]}"

    def table(self) -> pa.Table:
        if not self.actions:
            return _no_files(self.kind)
        files = _BUILDERS[self.kind](self.actions, where=self.where)
        return files.append_column(_VERSION_FIELD, small_array(self.versions, pa.int64()))


@cache
def _no_files(kind: str) -> pa.Table:
    return no_rows(_SCHEMAS[kind].append(_VERSION_FIELD))


class _ActionLists:
    """Collects the actions of commits for a `CommitTable`."""

    def __init__(self, *, keep_commit_infos: bool = False) -> None:
        self._files = {kind: _FileActions(kind) for kind in _BUILDERS}
        self._values: dict[str, list[tuple[int, Any]]] = {kind: [] for kind in _SMALL}
        self._infos: dict[int, Mapping[str, Any]] = {}
        self._keep_infos = keep_commit_infos

    def add_commit(self, version: int, data: bytes) -> None:
        for line, values in enumerate(iter_objects(data, f"version {version}"), 1):
            self.add_line(version, line, values)

    def add_line(self, version: int, line: int, values: Mapping[str, Any]) -> None:
        # Skip unknown kinds. The protocol: "Unrecognized actions … are never required in order to
        # correctly interpret the transaction log."
        for kind, value in values.items():
            if value is None:
                continue
            if (found := self._files.get(kind)) is not None:
                found.actions.append(value)
                found.versions.append(version)
                found.lines.append(line)
            elif (parse := _SMALL.get(kind)) is not None:
                self._values[kind].append((version, parse(_node(kind, value, version, line))))
            elif kind == "commitInfo" and self._keep_infos and isinstance(value, dict):
                self._infos.setdefault(version, value)

    def table(self, files: Mapping[str, pa.Table] | None = None) -> CommitTable:
        """Return the actions as columns.

        Args:
            files: the file actions with their versions, if they are already parsed as tables.
        """
        small = self._values
        if files is None:
            files = {kind: found.table() for kind, found in self._files.items()}
        return CommitTable(
            adds=files["add"],
            removes=files["remove"],
            cdc=files["cdc"],
            protocol_nodes=tuple(small["protocol"]),
            metadata_nodes=tuple(small["metaData"]),
            txns=tuple(small["txn"]),
            domains=tuple(small["domainMetadata"]),
            high_water_marks=tuple(small["rowIdHighWaterMark"]),
            commit_infos=self._infos,
        )


_BUILDERS: Final[Mapping[str, Callable[..., pa.Table]]] = {
    "add": arrow.adds_from_json,
    "remove": arrow.removes_from_json,
    "cdc": arrow.cdc_from_json,
}
_SCHEMAS: Final = {
    "add": arrow.FILE_SCHEMA,
    "remove": arrow.REMOVE_SCHEMA,
    "cdc": arrow.CDC_SCHEMA,
}
_SMALL: Final[Mapping[str, Callable[[JsonObject], Any]]] = {
    "protocol": lambda node: node,
    "metaData": lambda node: node,
    "txn": txn_from_json,
    "domainMetadata": domain_from_json,
    "rowIdHighWaterMark": high_water_mark_from_json,
}
# Matches many lines at a time, because a Python object for each line would be slow. The number is
# limited, because the matcher needs memory for each repetition.
_REGULAR_LINES: Final = re.compile(
    rb'(?:\{"(?:%s)":.*\}(?:\n|\Z)){1,1000}'
    % "|".join((*_BUILDERS, "commitInfo", *_SMALL)).encode()
)
