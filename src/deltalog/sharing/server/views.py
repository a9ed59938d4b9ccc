"""Views: tables of which only some columns and rows are shared.

This module ensures that recipients learn nothing about hidden columns and rows. Files are rewritten
with the rows and columns of the view; their names are keyed hashes. Statistics of the log are not
sent. Files without a row of the view are neither listed nor counted. Only partition values are used
to evaluate hints. The configuration contains the column names of the latest version.

Protocol: Read Data from a Table
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import pyarrow as pa

from deltalog._util.cached import cached_property
from deltalog._util.escaping import name_key
from deltalog._util.json import dumps
from deltalog.data.scan import plan_scan, read_task
from deltalog.data.scan.plan import TASK_COLUMNS, make_task
from deltalog.errors import InvalidInputError
from deltalog.expressions import columns as columns_of
from deltalog.expressions import conjuncts, parse_sql
from deltalog.expressions.trees import all_of
from deltalog.protocol.actions.model import Metadata, Protocol
from deltalog.protocol.column_mapping import Mode, physical_name
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features.schema_needs import (
    has_types_of,
    has_variant,
)
from deltalog.schema import DataType, Field, StructType, canonical_path_of, encode_schema, project
from deltalog.schema.check import readable_values
from deltalog.sharing.server.cache import CachedFile
from deltalog.sharing.server.downloads import check_inside
from deltalog.sharing.server.faults import not_found, unsupported
from deltalog.sharing.server.formats import schema_without_metadata
from deltalog.sharing.server.middleware import check_client
from deltalog.sharing.server.pages import Hints, prune_by, read_hints
from deltalog.storage.parquet.sink import ParquetSink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.data.scan.reader import ScanTask
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.sharing.server.answers import Services
    from deltalog.sharing.server.tables import ServedTable
    from deltalog.sharing.wire.requests import TableQuery
    from deltalog.storage import Store

_LOG: Final = logging.getLogger("deltalog.sharing")
_ROWS_AT_ONCE: Final = 1024
_ROWS_OF_PIECE: Final = 1 << 16
_PIECE_BYTES: Final = 1 << 20
_PART: Final = 24  # length of a hash in a file name, in hexadecimal digits
_ASSUMED_FILES: Final = 1_000_000


@dataclass(frozen=True)
class SourceFiles:
    """The table's files that may contain the requested rows of a view, as columns of the log.

    Args:
        view: view of the table.
        files: the files, with the columns `TASK_COLUMNS`.
        keys: keys of the files; pages are ordered by them.
        hints: the hints that selected the files.
    """

    view: View
    files: pa.Table
    keys: list[str]
    hints: Hints

    def tasks(self, after: str) -> Iterator[tuple[str, ScanTask]]:
        """Yield keys and tasks of the files with keys greater than `after`, in order."""
        order = sorted(range(len(self.keys)), key=self.keys.__getitem__)
        for index in order:
            if self.keys[index] > after:
                (row,) = self.files.slice(index, 1).to_pylist()
                yield self.keys[index], self.view.task(row)


@dataclass(frozen=True, slots=True)
class ViewFile:
    """A file of a view, as recipients see it.

    Args:
        name: a hash that depends only on the shown rows and on the path of the table's file; empty
            if the file has no rows.
        num_rows: number of shown rows.
        size_bytes: size of the file.
    """

    name: str
    num_rows: int
    size_bytes: int


class View:
    """The shared part of one version of a table.

    Args:
        snapshot: the version.
        table: the table, whose configuration describes the view.
        services: services of the server.
        latest: the latest version, whose column names are used in the configuration; None means the
            last loaded version.

    Raises:
        Fault: 400 if the view has a column of a type that is not shared, or if columns of the
            configuration do not exist in the table.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        table: ServedTable,
        services: Services,
        latest: Snapshot | None = None,
    ) -> None:
        self.snapshot = snapshot
        self._config = config = table.config
        self._services = services
        if latest is None:
            latest = table.known_latest()
            # The request may name a newer version that the client has from another process.
            latest = latest if latest.version >= snapshot.version else table.latest()
        try:
            shown = None if config.row_filter is None else parse_sql(config.row_filter)
            self.row_filter: Expression | None = shown
            self.columns: tuple[str, ...] = _columns_in(snapshot, config.columns, shown, latest)
            self.schema: StructType = project(snapshot.configuration.schema, self.columns)
            self._scan = plan_scan(snapshot, columns=self.columns, predicate=self.row_filter)
        except InvalidInputError:
            # Do not send the message of the error to the client, because it may contain a storage
            # location.
            _LOG.error("the view of table %r does not fit it; run check --tables", config.name)
            raise unsupported("the configured view does not fit the table (any more)") from None
        if has_variant(self.schema):
            raise unsupported("the table has a feature that cannot be shared")

    @cached_property
    def configuration(self) -> TableConfiguration:
        """Return the view's protocol and metadata: those of a plain table with its columns."""
        own = self.snapshot.metadata
        feed = self.snapshot.configuration.properties.enable_change_data_feed
        has_feed = feed and self._config.history_shared
        metadata = Metadata(
            id=own.id,
            schema_string=schema_without_metadata(encode_schema(self.schema)),
            name=own.name,
            # Other properties may contain names of hidden columns.
            configuration={"delta.enableChangeDataFeed": "true"} if has_feed else {},
        )
        protocol = Protocol(min_reader_version=1, min_writer_version=4 if has_feed else 2)
        if has_types_of(self.schema, "timestampNtz"):
            names = ("timestampNtz",)
            protocol = Protocol(
                min_reader_version=3,
                min_writer_version=7,
                reader_features=names,
                writer_features=(*names, "changeDataFeed") if has_feed else names,
            )
        return TableConfiguration(protocol, metadata)

    def source_files(self, query: TableQuery, num_read_hints: int | None = None) -> SourceFiles:
        """Return the files that may contain the requested rows.

        Args:
            query: the query with its hints.
            num_read_hints: number of hints that were read for the first page; None on the first
                page.

        Cost: reads the log's columns for these files; the names of all files are in memory.
        """
        config = self._services.config
        # Use a constant, because the true number of files would reveal hidden files.
        hints = read_hints(query, self.schema, config, _ASSUMED_FILES, num_read_hints)
        wanted = self._safe_hints(hints.predicate)
        own = self._scan.spec.predicate
        predicate = all_of([part for part in (own, wanted) if part is not None])
        files = prune_by(self.snapshot, predicate).files(TASK_COLUMNS)
        return SourceFiles(self, files, [self.key(task) for task in self.tasks(files)], hints)

    def tasks(self, files: pa.Table | None = None) -> Iterator[ScanTask]:
        """Yield the tasks of the given files of the log, or of all files of the version."""
        files = self.snapshot.files(TASK_COLUMNS) if files is None else files
        for batch in files.to_batches(max_chunksize=_ROWS_AT_ONCE):
            check_client()
            yield from map(self.task, batch.to_pylist())

    def task(self, row: dict[str, Any]) -> ScanTask:
        """Return the task that reads the view's rows from one file."""
        return make_task(self.snapshot, self._scan.spec, row)

    def make_file(self, task: ScanTask) -> ViewFile:
        """Return the view's file for a task, as recipients see it.

        Cost: reads the table's file and writes the view's file, unless they are cached.
        """
        cache, own = self._services.cache, self._cache_name(task)
        found = cache.describe_or_make(own, partial(_write, task))
        if not found.num_rows:
            return ViewFile("", 0, 0)
        # The name contains a hash of the file's content. A hash of the deletion vector would reveal
        # that hidden rows were deleted.
        contents = self._services.sealer.keyed_hash(found.digest)[:_PART]
        name = f"{self._prefix}{self.key(task)}{contents}"
        cache.tell(name, own)
        return ViewFile(name, found.num_rows, found.size_bytes)

    def open(self, name: str, tasks: Iterator[ScanTask]) -> BinaryIO | None:
        """Open the file of this name; write it first if it is not in the file cache.

        Args:
            name: name of a file of the view.
            tasks: tasks, one of which makes the file; not used if the file is cached.

        Returns:
            The open file; None if it was evicted from the cache before it was opened.

        Raises:
            Fault: 404 if no task makes a file of this name.
        """
        cache = self._services.cache
        if not name.startswith(self._prefix):  # the cache contains the files of all views
            raise not_found("file")
        own = cache.name_of(name)
        if own is not None and cache.known(own) is not None:
            return cache.open(own)
        key = name[len(self._prefix) :][:_PART]
        for task in tasks:
            if self.key(task) == key and self.make_file(task).name == name:
                own = self._cache_name(task)
                cache.get(own, partial(_write, task))
                return cache.open(own)
        raise not_found("file")

    def _safe_hints(self, predicate: Expression | None) -> Expression | None:
        """Return the parts of a hint whose evaluation does not reveal anything about hidden rows.

        Statistics describe all rows of a file, including deleted and hidden rows. If statistics
        excluded a file, the answer would reveal values of such rows.
        """
        if predicate is None:
            return None
        partitions = set(self.snapshot.configuration.partition_columns)
        kept = [
            part
            for part in conjuncts(predicate)
            if (used := {path[0] for path in columns_of(part)}) and used <= partitions
        ]
        return all_of(kept)

    @cached_property
    def _prefix(self) -> str:
        """Return a hash of all that determines the view's files, except the table's files."""
        own = self.snapshot.metadata
        identity = dumps(
            [
                self.snapshot.store.root,
                own.schema_string,
                dict(sorted(own.configuration.items())),
                list(self.columns),
                self._config.row_filter,
            ]
        )
        return self._services.sealer.keyed_hash(identity)[:24]

    def key(self, task: ScanTask) -> str:
        """Return a hash that identifies a file but reveals nothing about hidden rows."""
        identity = dumps(
            [
                task.path,
                task.only_deleted,
                task.spec.output.names,
                [(name, *map(str, readable_values(value))) for name, value in task.constants],
            ]
        )
        return self._services.sealer.keyed_hash(self._prefix.encode(), identity)[:_PART]

    def _cache_name(self, task: ScanTask) -> str:
        """Return the file's name in the cache: a hash of everything that determines its content."""
        vectors = [
            None if vector is None else vector.unique_id
            for vector in (task.deletion_vector, task.without)
        ]
        identity = dumps([vectors, sorted(task.partition_values.items())])
        own = self._services.sealer.keyed_hash(self.key(task).encode(), identity)
        return self._prefix + own[: 2 * _PART]


def _write(task: ScanTask, store: Store, path: str) -> CachedFile:
    check_inside(task.store, task.path)
    num_rows = 0
    pieces = _even(batch for batch in read_task(task) if batch.num_rows)
    first = next(pieces, None)
    if first is None:
        return CachedFile(0, 0)
    with ParquetSink(store, path, first.schema, compression="snappy") as sink:
        for rows in chain([first], pieces):
            num_rows += rows.num_rows
            sink.write(rows)
    digest = sha256()
    with store.open(path) as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return CachedFile(num_rows, sink.file.size_bytes, digest.digest())


def _even(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows in batches of one size.

    The given batches end where row groups of the table's file end. The sizes of the row groups
    include hidden rows, and the pages of the written file would reveal them.
    """
    held: list[pa.RecordBatch] = []
    num_rows = 0
    for batch in batches:
        check_client()
        held.append(batch)
        num_rows += batch.num_rows
        while num_rows >= _ROWS_OF_PIECE:
            table = pa.Table.from_batches(held).combine_chunks()
            yield table.slice(0, _ROWS_OF_PIECE)
            held = table.slice(_ROWS_OF_PIECE).to_batches()
            num_rows -= _ROWS_OF_PIECE
    if num_rows:
        yield pa.Table.from_batches(held).combine_chunks()


def _columns_in(
    snapshot: Snapshot,
    columns: tuple[str, ...] | None,
    row_filter: Expression | None,
    latest: Snapshot,
) -> tuple[str, ...]:
    """Return the view's columns with their names in a version; columns added later are left out.

    Raises:
        InvalidInputError: the latest version lacks a column, the version lacks all columns, or a
            column of the filter does not exist in the version or has another name there.
    """
    then, now = snapshot.configuration, latest.configuration
    for path in () if row_filter is None else columns_of(row_filter):
        known = canonical_path_of(now.schema, path)
        if _path_in(known, now, then) != known:
            raise InvalidInputError(
                f"column {path!r} is another column in version {snapshot.version}"
            )
    if columns is None:
        return tuple(then.schema.names)
    paths = [_path_in(canonical_path_of(now.schema, name), now, then) for name in columns]
    dotted = {".".join(path): path for path in paths if path is not None}
    found = tuple(
        name for name, path in dotted.items() if canonical_path_of(then.schema, name) == path
    )
    if not found:
        raise InvalidInputError(f"version {snapshot.version} has none of the columns")
    return found


def _path_in(
    path: tuple[str, ...], now: TableConfiguration, then: TableConfiguration
) -> tuple[str, ...] | None:
    """Return the path of a column in another version, or None if it does not exist there.

    After renames and drops, another column may have this name. Physical names never change.
    """
    found: list[str] = []
    here: DataType = now.schema
    there: DataType = then.schema
    for position, name in enumerate(path):
        if not (isinstance(here, StructType) and isinstance(there, StructType)):
            # Compare the whole type, because fields inside of arrays and maps have no path of their
            # own.
            return (*found, *path[position:]) if here == there else None
        own = next(field for field in here if field.name == name)
        match = [
            field for field in there if column_identity(field, then) == column_identity(own, now)
        ]
        if not match:
            return None
        found.append(match[0].name)
        here, there = own.type, match[0].type
    return tuple(found)


def column_identity(field: Field, configuration: TableConfiguration) -> str:
    """Return an id of a column that remains the same when the column is renamed."""
    mode = configuration.column_mapping_mode
    return name_key(field.name) if mode is Mode.NONE else name_key(physical_name(field, mode))
