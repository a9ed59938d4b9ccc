"""Reading files as logical batches: open, skip row groups and pages, read, mask, filter, transform.

This module opens files, and distributes the steps to threads; `pieces` reads rows. For a remote
store, some threads wait for bytes while other threads decode. The steps are: fetch the predicate's
columns, decide which rows are kept, fetch the other columns, read the rows. For a local file, all
of this is a single step.

Protocol: Deletion Vectors, Row Tracking, Partition Value Serialization
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from dataclasses import dataclass, fields
from itertools import chain, islice, zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.clock import WaitMeter
from deltalog.data.scan.pieces import (
    AT_ONCE_ROWS,
    FirstFetch,
    OpenTask,
    Piece,
    decide_fetched,
    read_fetched,
)
from deltalog.data.scan.row_groups import FooterPruning
from deltalog.data.scan.task import (
    FileTask,
    ReadSpec,
    live_runs,
    noting,
    runs_of,
    within_groups,
)
from deltalog.data.scan.transform import FileProjection, kept_projection, load_bitmap, project_file
from deltalog.expressions import columns
from deltalog.protocol.column_mapping import Mode
from deltalog.schema import Field, StructType, metadata_columns
from deltalog.schema.types import LONG, STRING
from deltalog.storage.parquet.footer import tail_bytes
from deltalog.storage.parquet.paged import PagedReader
from deltalog.storage.parquet.reader import ParquetReader, open_parquet
from deltalog.storage.pool import MOST_REQUESTS, read_ahead
from deltalog.storage.store import fetches_whole, is_local, native_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deltalog.data.scan.pieces import KeptRows, RowParts
    from deltalog.protocol.deletion_vectors import DeletionBitmap
    from deltalog.storage.parquet.pages import RowRange

# `ReadSpec` is exported because pickles of deltalog 0.2 refer to it in this module.
__all__ = ["ReadSpec", "ScanTask", "read_pieces", "read_task", "read_tasks"]

logger: logging.Logger = logging.getLogger(__name__)

_FEW_FILES: Final = 2
"""The maximum number of local files with few rows that are read in the calling thread."""
_FEW_ROWS: Final = 32
"""The maximum number of indexed rows of a file that are read in the calling thread. Decoding the
pages of more rows takes longer than passing them to another thread."""
_NOTHING: Final = FileProjection((), (), pa.schema([]), MappingProxyType({}))


def read_tasks(
    tasks: Iterable[ScanTask], *, files_ahead: int = 4, pieces_ahead: int = 2
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all tasks, in the order of the tasks.

    Cost: memory for footers and deletion vectors of the next `files_ahead` files, and for
        `pieces_ahead` decoded pieces of up to about a million rows. For a remote store, up to 64
        files are opened in advance, and up to 256 MiB of column chunks (at least one piece) are
        fetched in advance.
    """
    tasks = iter(tasks)
    first = next(tasks, None)
    if first is None:
        return
    tasks = chain([first], tasks)
    if native_path(first.store, first.path) is not None:
        yield from _read_local(tasks, files_ahead, pieces_ahead)
        return
    some = list(islice(tasks, 2))
    if len(some) == 1 and fetches_whole(first.store, first.path):
        yield from read_task(first)  # with only one file, nothing can run concurrently
        return
    tasks = chain(some, tasks)
    # If a scan may need only a few rows, open no files and fetch no bytes in advance.
    depth = MOST_REQUESTS if files_ahead else 0
    opened = read_ahead(_open, tasks, depth=depth, sends_requests=True, bytes_of=_tail_bytes)
    wanted = (FirstFetch.of(piece) for file in opened for piece in file.pieces())
    fetched = read_ahead(
        FirstFetch.run, wanted, depth=depth, sends_requests=True, bytes_of=FirstFetch.num_bytes
    )
    if first.spec.predicate is None:  # all columns are fetched at once
        for batches in read_ahead(read_fetched, fetched, depth=pieces_ahead):
            yield from batches
        return
    kept = chain.from_iterable(read_ahead(decide_fetched, fetched, depth=pieces_ahead))
    complete = read_ahead(
        _fetch, kept, depth=depth, sends_requests=True, bytes_of=lambda rows: rows.num_bytes()
    )
    for batches in read_ahead(lambda rows: rows.read(), complete, depth=pieces_ahead):
        yield from batches


def _fetch(rows: KeptRows | RowParts) -> KeptRows | RowParts:
    return rows.fetch()


def _read_local(
    tasks: Iterator[ScanTask], files_ahead: int, pieces_ahead: int
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of local files; a few rows are read in the calling thread.

    Passing a file or a piece to another thread would take longer than reading a few rows.
    """
    meter = WaitMeter()
    for task in tasks:
        indexed = task.indexed
        if indexed is None or len(indexed.positions) > _FEW_ROWS or meter.mostly_waits:
            tasks = chain([task], tasks)
            break
        with meter.measuring():
            file = _open(task)
        for piece in file.pieces():  # many if the index does not fit the file
            with meter.measuring():
                batches = piece.read()
            yield from batches
    most = _FEW_FILES if files_ahead else 1
    some = list(islice(tasks, most + 1))
    pieces: Iterator[Piece]
    if len(some) > most:
        opened = read_ahead(_open, chain(some, tasks), depth=files_ahead)
        pieces = (piece for file in opened for piece in file.pieces())
    else:
        few = [piece for task in some for piece in _open(task).pieces()]
        if len(few) == 1 or sum(piece.num_rows for piece in few) <= AT_ONCE_ROWS * most:
            for piece in few:
                yield from piece.read()
            return
        pieces = iter(few)
    for batches in read_ahead(Piece.read, pieces, depth=pieces_ahead):
        yield from batches


def read_task(task: ScanTask) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one task, read in the calling thread."""
    for piece in _open(task).pieces():
        yield from piece.read()


def read_pieces(task: ScanTask) -> list[Iterable[pa.RecordBatch]]:
    """Return the batches of one task; they are already decoded, except for large rows."""
    return [piece.read() for piece in _open(task).pieces()]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask(FileTask):
    """A data file to read, without the rows that its deletion vector marks."""

    def __setstate__(self, state: list[Any]) -> None:
        """Set the fields; pickles of older releases have fewer."""
        for part, value in zip_longest(fields(self), state):
            object.__setattr__(self, part.name, value)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that match the predicate and are not deleted, in batches.

        Cost: reads the footer, and the requested column chunks of row groups that may match; memory
            for one piece of up to about a million rows.
        """
        return read_task(self)

    def to_table(self) -> pa.Table:
        """Return the rows that match the predicate and are not deleted, in memory."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)


def _open(task: ScanTask) -> OpenTask:
    spec = task.spec
    with noting(task):
        known = None if task.footers is None else task.footers.get(task.path)
        reader = open_parquet(
            task.store,
            task.path,
            size_bytes=task.size_bytes,
            footer=known,
            # A few pages are decoded without Arrow. A small remote file is fetched whole.
            footer_only=task.indexed is not None and is_local(task.store),
        )
        predicate_columns, other_columns = _split(spec)
        matched = kept_projection(predicate_columns, reader, spec.mode, task.path, spec.time_zone)
        others = kept_projection(other_columns, reader, spec.mode, task.path, spec.time_zone)
        unmapped = _unmapped(spec, reader.arrow_schema, task.path)
        marked = _marked_rows(task, reader.row_group_starts[-1])
        paged = PagedReader(task.store, reader)
        pruning = FooterPruning(spec.predicate, predicate_columns, matched.leaf_of, reader)
        indexed = _indexed_runs(task, reader)
        if indexed is None:
            groups = pruning.row_groups(paged)
        else:
            starts = reader.row_group_starts
            cut = within_groups(indexed, starts)
            groups = tuple(dict.fromkeys(bisect_right(starts, run[0]) - 1 for run in cut))
        if marked is not None:
            groups = _with_rows(groups, reader, marked, only_deleted=task.only_deleted)
        leaves = sorted({*matched.leaves, *others.leaves, *unmapped.leaves})
        if groups and (spec.predicate is not None or indexed is not None):
            paged.load_index(groups, leaves, pruning.leaves)
        runs = pruning.rows(groups, paged) if indexed is None else indexed
        if marked is not None:
            every, runs = runs, live_runs(runs, marked, only_deleted=task.only_deleted)
            if spec.predicate is None and runs != every:  # long ranges of rows are skipped
                paged.load_index(groups, leaves)
        return OpenTask(
            task=task,
            reader=reader,
            paged=paged,
            of_predicate=matched,
            of_others=others,
            unmapped=unmapped,
            marked=marked,
            runs=runs,
        )


def _indexed_runs(task: ScanTask, reader: ParquetReader) -> list[RowRange] | None:
    """Return the rows that the key index knows; None if it does not know the file."""
    indexed = task.indexed
    if indexed is None:
        return None
    if indexed.num_rows != reader.row_group_starts[-1]:
        logger.warning(
            "cannot use the key index for %s of %s: expected a file of %d rows, found %d; all of "
            "the file is read",
            task.path,
            task.spec.table,
            indexed.num_rows,
            reader.row_group_starts[-1],
        )
        return None
    return runs_of(indexed.positions)


def _tail_bytes(task: ScanTask) -> int:
    """Return the number of bytes that opening a file fetches; a small file is fetched whole."""
    return tail_bytes(task.store, task.path, task.size_bytes or 0)


def _split(spec: ReadSpec) -> tuple[StructType, StructType]:
    """Return the data columns of the predicate, and the other data columns."""
    if spec.predicate is None:
        return spec.data_columns, StructType(())
    needed = {path[0] for path in columns(spec.predicate)}
    return (
        StructType([column for column in spec.data_columns if column.name in needed]),
        StructType([column for column in spec.data_columns if column.name not in needed]),
    )


def _unmapped(spec: ReadSpec, schema: pa.Schema, path: str) -> FileProjection:
    """Return the projection of columns that are not in the table's schema, by their own names."""
    wanted = []
    if metadata_columns.ROW_ID in spec.metadata_columns:
        wanted += [Field(name, LONG) for name in schema.names if name == spec.row_id_column]
    if metadata_columns.ROW_COMMIT_VERSION in spec.metadata_columns:
        wanted += [
            Field(name, LONG) for name in schema.names if name == spec.row_commit_version_column
        ]
    if spec.reads_change_type:
        wanted.append(Field(metadata_columns.CHANGE_TYPE, STRING))
    if not wanted:
        return _NOTHING
    return project_file(StructType(wanted), schema, Mode.NONE, path=path)


def _with_rows(
    groups: Sequence[int], reader: ParquetReader, marked: DeletionBitmap, *, only_deleted: bool
) -> tuple[int, ...]:
    """Return the row groups that have live rows or, with `only_deleted`, deleted rows."""
    starts = reader.row_group_starts

    def has_rows(group: int) -> bool:
        num_rows = starts[group + 1] - starts[group]
        num_marked = marked.count_between(starts[group], starts[group + 1])
        return num_marked > 0 if only_deleted else num_marked < num_rows

    return tuple(filter(has_rows, groups))


def _marked_rows(task: ScanTask, num_rows: int) -> DeletionBitmap | None:
    if task.deletion_vector is None:
        return None
    bitmap = load_bitmap(task.store, task.deletion_vector, num_rows=num_rows)
    if task.without is not None:
        bitmap = bitmap - load_bitmap(task.store, task.without, num_rows=num_rows)
    return bitmap
