"""Tables of which a share shows a part: some columns, some rows.

Owns what may be known of the rest: nothing. Files are written anew with the shown rows and columns
only, without the log's statistics, under names that tell nothing; files without a shown row are
not mentioned. Hints are judged by what is shown: where rows are hidden, by partition values alone.
A column is the one that has its name in the latest version, whatever it was called earlier.

Protocol: Read Data from a Table
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from deltalog._json import dumps
from deltalog.actions.model import Metadata, Protocol
from deltalog.column_mapping import Mode, physical_name
from deltalog.configuration import TableConfiguration
from deltalog.errors import InvalidInputError
from deltalog.expressions import columns as columns_of
from deltalog.expressions import conjuncts, parse_sql
from deltalog.expressions.nodes import And
from deltalog.features.schema_traits import has_types_of, has_variant
from deltalog.scan import plan_scan, read_task
from deltalog.scan.plan import TASK_COLUMNS, make_task
from deltalog.schema import StructType, canonical_path_of, encode_schema, project
from deltalog.sharing.server.cache import MadeFile
from deltalog.sharing.server.downloads import check_inside
from deltalog.sharing.server.faults import not_found, unsupported
from deltalog.sharing.server.formats import bare_schema
from deltalog.sharing.server.hints import predicate_of, prune_by
from deltalog.storage.parquet import ParquetSink

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from deltalog.expressions import Expression
    from deltalog.scan.task import ScanTask
    from deltalog.schema import DataType, Field
    from deltalog.sharing.server.answers import Tools
    from deltalog.sharing.server.config import TableConfig
    from deltalog.sharing.wire import TableQuery
    from deltalog.snapshot import Snapshot
    from deltalog.storage import Store

_LOG: Final = logging.getLogger("deltalog.sharing")
_ROWS_AT_ONCE: Final = 1024


@dataclass(frozen=True)
class ShownFile:
    """A file with shown rows.

    Args:
        name: of the file in the cache, and its id.
    """

    name: str
    made: MadeFile


@dataclass(frozen=True)
class ViewFiles:
    """The files of a view that may hold wanted rows, as columns of the log.

    Args:
        view: whose.
        files: `TASK_COLUMNS`.
        names: of what is shown of each.
        order: rows by name, so that pages go on where they ended.
    """

    view: View
    files: pa.Table
    names: list[str]
    order: list[int]

    def __len__(self) -> int:
        """How many."""
        return len(self.order)

    def tasks(self, offset: int, count: int) -> Iterator[tuple[str, ScanTask]]:
        """Names and readers of some of them, each made when it is asked for."""
        for index in self.order[offset : offset + count]:
            (row,) = self.files.slice(index, 1).to_pylist()
            yield self.names[index], self.view.task(row)


class View:
    """What is shown of one version of a table.

    Args:
        snapshot: the version.
        config: what is shown of it.
        tools: cache and seals of the server.
        latest: the latest version, by whose names the configuration goes.

    Raises:
        Fault: 400: a shown column has a type that cannot be written for others, or the
            configuration does not fit the table.
    """

    def __init__(
        self, snapshot: Snapshot, config: TableConfig, tools: Tools, latest: Snapshot
    ) -> None:
        self.snapshot = snapshot
        self._config = config
        self._tools = tools
        try:
            self.row_filter = None if config.row_filter is None else parse_sql(config.row_filter)
            self.columns = _columns_then(config.columns, self.row_filter, snapshot, latest)
            self.schema: StructType = project(snapshot.configuration.schema, self.columns)
            self._scan = plan_scan(snapshot, columns=self.columns, predicate=self.row_filter)
        except InvalidInputError:
            _LOG.error(  # what the error itself says names a place of the storage
                "what is shared of table %r does not fit it; check --tables tells why", config.name
            )
            raise unsupported("what is shared does not fit the table (any more)") from None
        if has_variant(self.schema):
            raise unsupported("the table has a feature that cannot be shared")

    @cached_property
    def configuration(self) -> TableConfiguration:
        """Protocol and metadata of what is shown: a plain table with the shown columns."""
        own = self.snapshot.metadata
        feed = self.snapshot.configuration.properties.enable_change_data_feed
        has_feed = feed and self._config.history_shared
        metadata = Metadata(
            id=own.id,
            schema_string=bare_schema(encode_schema(self.schema)),
            name=own.name,
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

    def files(self, query: TableQuery) -> ViewFiles:
        """The files that may hold wanted rows.

        Cost: the log's columns for these files; a name is kept of each.
        """
        wanted = self._judgeable(predicate_of(query, self.schema, self._tools.config))
        own = self._scan.spec.predicate
        both = [part for part in (own, wanted) if part is not None]
        predicate = And(tuple(both)) if len(both) > 1 else (both[0] if both else None)
        files = prune_by(self.snapshot, predicate).files(TASK_COLUMNS)
        names = [self.name(task) for task in self._tasks(files)]
        return ViewFiles(self, files, names, sorted(range(len(names)), key=names.__getitem__))

    def _tasks(self, files: pa.Table) -> Iterator[ScanTask]:
        for batch in files.to_batches(max_chunksize=_ROWS_AT_ONCE):
            yield from map(self.task, batch.to_pylist())

    def task(self, row: dict[str, Any]) -> ScanTask:
        """What reads the shown rows of a file of the log."""
        return make_task(self.snapshot, self._scan.spec, row)

    def show(self, name: str, task: ScanTask) -> ShownFile:
        """What is shown of one file.

        Cost: the file is read and written, unless it is in the cache.
        """

        def make(store: Store, path: str) -> MadeFile:
            return self._write(task, store, path)

        return ShownFile(name, self._tools.cache.get(name, make))

    def find(self, name: str) -> ShownFile:
        """What is shown of the file of this name.

        Raises:
            Fault: 404: there is none in this version.

        Cost: nothing for a file that is in the cache; else the version's columns of files, and
        what `show` costs.
        """
        found = self.known(name)
        if found is not None:
            return found
        for task in self._tasks(self.snapshot.files(TASK_COLUMNS)):
            if self.name(task) == name:
                return self.show(name, task)
        raise not_found("file")

    def known(self, name: str) -> ShownFile | None:
        """What is shown of a file, if it is in the cache and belongs to this part of this table."""
        found = self._tools.cache.known(name) if name.startswith(self._prefix) else None
        return None if found is None else ShownFile(name, found)

    def _judgeable(self, predicate: Expression | None) -> Expression | None:
        """The parts of a hint that tell nothing of hidden rows.

        Statistics are of all rows of a file: whether a file is left out by them would tell.
        """
        if predicate is None or self._config.row_filter is None:
            return predicate
        partitions = set(self.snapshot.configuration.partition_columns)
        kept = [
            part
            for part in conjuncts(predicate)
            if (used := {path[0] for path in columns_of(part)}) and used <= partitions
        ]
        return And(tuple(kept)) if len(kept) > 1 else (kept[0] if kept else None)

    @cached_property
    def _prefix(self) -> str:
        """Tells what besides a file decides what is shown of it; names start with it."""
        own = self.snapshot.metadata
        decides = dumps(
            [
                self.snapshot.store.root,
                own.schema_string,
                dict(sorted(own.configuration.items())),
                list(self.columns),
                self._config.row_filter,
            ]
        )
        return self._tools.sealer.mark(decides)[:24]

    def name(self, task: ScanTask) -> str:
        """Of what is shown of a file: always the same, and tells nothing of it."""
        vectors = [
            None if vector is None else vector.unique_id
            for vector in (task.deletion_vector, task.without)
        ]
        values = sorted(task.partition_values.items())
        decides = dumps(
            [
                task.path,
                *vectors,
                task.only_deleted,
                values,
                task.spec.output.names,
                [(name, str(value)) for name, value in task.constants],
            ]
        )
        return self._prefix + self._tools.sealer.mark(decides)[:40]

    def _write(self, task: ScanTask, store: Store, path: str) -> MadeFile:
        check_inside(task.store, task.path)
        num_rows = 0
        batches = (batch for batch in read_task(task) if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return MadeFile(0, 0)
        with ParquetSink(store, path, first.schema, compression="snappy") as sink:
            for batch in chain([first], batches):
                num_rows += batch.num_rows
                sink.write(batch)
        return MadeFile(num_rows, sink.file.size_bytes)


def _columns_then(
    columns: tuple[str, ...] | None,
    row_filter: Expression | None,
    snapshot: Snapshot,
    latest: Snapshot,
) -> tuple[str, ...]:
    """The shown columns of a version, in its own spelling; what it does not have yet is left out.

    Raises:
        InvalidInputError: the latest version lacks a column, the version lacks all of them, or a
            column of the filter was not there yet or had another name.
    """
    then, now = snapshot.configuration, latest.configuration
    for path in () if row_filter is None else columns_of(row_filter):
        known = canonical_path_of(now.schema, path)
        if _path_then(known, now, then) != known:
            raise InvalidInputError(f"column {path!r} is another one in version {snapshot.version}")
    if columns is None:
        return tuple(then.schema.names)
    paths = [_path_then(canonical_path_of(now.schema, name), now, then) for name in columns]
    dotted = {".".join(path): path for path in paths if path is not None}
    found = tuple(
        name for name, path in dotted.items() if canonical_path_of(then.schema, name) == path
    )
    if not found:
        raise InvalidInputError(f"version {snapshot.version} has none of the shown columns")
    return found


def _path_then(
    path: tuple[str, ...], now: TableConfiguration, then: TableConfiguration
) -> tuple[str, ...] | None:
    """How another version spells a column; None if it does not have it.

    Names may be given to other columns; what stays is the name in the files.
    """
    found: list[str] = []
    here: DataType = now.schema
    there: DataType = then.schema
    for position, name in enumerate(path):
        if not (isinstance(here, StructType) and isinstance(there, StructType)):
            # Inside of lists and maps nothing may have changed.
            return (*found, *path[position:]) if here == there else None
        own = next(field for field in here if field.name == name)
        match = [field for field in there if identity(field, then) == identity(own, now)]
        if not match:
            return None
        found.append(match[0].name)
        here, there = own.type, match[0].type
    return tuple(found)


def identity(field: Field, configuration: TableConfiguration) -> str:
    """What stays of a column when it is called something else."""
    mode = configuration.column_mapping_mode
    return field.name.casefold() if mode is Mode.NONE else physical_name(field, mode).casefold()
