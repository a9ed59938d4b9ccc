"""Rewrite bins: groups of files whose rows are copied into new files together.

This module reads the rows of a bin with their row ids and writes them. It rewrites several bins in
parallel, and deletes the new files after a failure. The operation decides which files are in a bin,
and how the rows are ordered.

Protocol: Add File and Remove File (`dataChange`), Row Tracking
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, groupby
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from deltalog._util.clock import Stopwatch
from deltalog._util.kernels import arrow, exact_sum
from deltalog._util.paths import decode_path
from deltalog.data.scan.plan import make_numbered_tasks, make_tasks
from deltalog.data.scan.reader import ScanTask, read_pieces, read_task, read_tasks
from deltalog.data.scan.task import ReadSpec, noting, read_spec
from deltalog.data.scan.transform import FileProjection, file_rebase, project_file
from deltalog.data.write.files import FileWriter
from deltalog.data.write.rows_to_files import WriteLimits
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.operations.changes import kept_groups
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.changes.kept_groups import (
    ROW_GROUP_BYTES,
    KeptGroups,
    write_after,
    write_between,
    write_copied,
)
from deltalog.protocol.deletion_vectors import DeletionBitmap
from deltalog.protocol.partition_values import parse_value
from deltalog.schema import to_arrow_type
from deltalog.schema.metadata_columns import ROW_COMMIT_VERSION, ROW_ID, ROW_INDEX
from deltalog.storage.faults import cleanup_level
from deltalog.storage.parquet.excerpt import KnownSchema, decode_small, small_bytes
from deltalog.storage.parquet.reader import ParquetReader, open_parquet
from deltalog.storage.pool import Background, map_in_pool, read_ahead
from deltalog.storage.store import is_local
from deltalog.transaction import PendingTransaction

if TYPE_CHECKING:
    from deltalog.data.write.options import WriteSpec
    from deltalog.data.write.written import WrittenFiles
    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.configuration import TableConfiguration

logger: logging.Logger = logging.getLogger(__name__)

# Consecutive batches are joined until they have this number of rows or this size in memory, because
# the fixed cost of a small batch is higher than the cost of copying its rows.
_JOINED_ROWS: Final = 16 * 1024
_JOINED_BYTES: Final = 32 * 1024 * 1024
_GROUPS_AHEAD: Final = 2
# The number of groups of small files that are decoded before the writer needs them. More decoding
# threads would mostly wait for the interpreter lock, and slow down the writer.
_DECODED_AHEAD: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Files of one partition whose rows are written to new files together.

    Args:
        partition: a value that identifies the partition.
        files: rows of `snapshot.files` with `TASK_COLUMNS` and the columns of a `remove` action.
    """

    partition: object
    files: pa.Table

    @property
    def size_bytes(self) -> int:
        """The total size of the files."""
        return exact_sum(self.files.column("size"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of an OPTIMIZE run.

    Args:
        files: options of the new files.
        max_concurrent_tasks: the number of bins that are rewritten at the same time; None means one
            per core, at most 8.
        min_commit_interval_s: the number of seconds after which the finished bins are committed;
            later commits contain the remaining bins. 0 makes one commit per partition, None makes
            a single commit.
    """

    files: FileOptions = field(default_factory=FileOptions)
    max_concurrent_tasks: int | None = None
    min_commit_interval_s: float | None = None

    def __post_init__(self) -> None:
        """Raise if a number is out of range."""
        tasks, interval = self.max_concurrent_tasks, self.min_commit_interval_s
        if tasks is not None and tasks < 1:
            raise InvalidInputError(
                f"max_concurrent_tasks: expected a number above 0, found {tasks!r}"
            )
        if interval is not None and interval < 0:
            raise InvalidInputError(
                f"min_commit_interval: expected 0 seconds or more, found {interval!r}"
            )

    @property
    def num_tasks(self) -> int:
        """The number of bins that are rewritten at the same time."""
        return self.max_concurrent_tasks or max(1, min(8, os.cpu_count() or 1))


class BinReader:
    """Reads the rows of bins, and creates the writers of the new files.

    Args:
        pending: transaction of the OPTIMIZE.
        options: options of the new files.
        report: called after each file that has been read.
        num_tasks: the number of bins that are rewritten at the same time. If 1, files are
            prefetched while earlier rows are written.
        job: see `WriteSpec`.
    """

    def __init__(
        self,
        pending: PendingTransaction,
        options: FileOptions,
        report: Callable[[], None],
        *,
        num_tasks: int,
        job: str | None = None,
    ) -> None:
        self.snapshot: Snapshot = pending.read_snapshot
        self.spec: WriteSpec = replace(options.spec_for(pending, data_change=False), job=job)
        self.num_tasks = num_tasks
        self._report = report
        self._schema = self.spec.configuration.arrow_schema

    def read(self, files: pa.Table, columns: Sequence[str] | None = None) -> Counted:
        """Return the rows of some files in order.

        Args:
            files: files of a bin.
            columns: the columns to read. None means all columns and, with row tracking, the row
                ids. Only a read of all columns is reported as progress, because an operation may
                have read some columns of the same files before.
        """
        is_whole = columns is None
        report = self._report if is_whole else _nothing
        names = self.snapshot.configuration.schema.names if columns is None else columns
        hidden = self._ids if is_whole else ()
        spec = read_spec(self.snapshot, columns=names, hidden=hidden, predicate=None)
        tasks = _reported(make_tasks(self.snapshot, spec, files), report)
        return Counted(self._batches(spec, tasks))

    def _batches(self, spec: ReadSpec, tasks: Iterable[ScanTask]) -> Iterator[pa.RecordBatch]:
        small = SmallFileReader(spec)
        for is_run_small, run in groupby(grouped(tasks), key=is_small):
            if not is_run_small:
                large = (task for group in run for task in group)
                if self.num_tasks == 1 or not is_local(self.snapshot.store):
                    yield from read_tasks(large)
                else:
                    for task in large:
                        yield from read_task(task)
            elif self.num_tasks > 1:
                for group in run:
                    yield from small.read_group(group)
            elif is_local(self.snapshot.store):
                for batches in read_ahead(small.read_group, run, depth=_DECODED_AHEAD):
                    yield from batches
            else:  # fetch the next groups in the background, but decode them in this thread
                for fetched in read_ahead(small.fetch, run, depth=_GROUPS_AHEAD):
                    yield from small.read(fetched)

    def look(self, files: pa.Table, kept: KeptGroups) -> dict[int, ScanTask | None]:
        """Find the row groups that can be copied, and return how to read the rest of their files.

        Args:
            files: files of a bin.
            kept: records the row groups to copy.

        Returns:
            For each file with row groups to copy: its number in `files`, and the task that reads
            its other row groups. The task is None if all row groups are copied.

        Cost: reads the footers of large files.
        """
        sizes: list[Any] = files.column("size").to_pylist()
        are_large = [kept.is_large(size) for size in sizes]
        if not any(are_large):
            return {}
        names = self.snapshot.configuration.schema.names
        hidden = (*self._ids, ROW_INDEX)
        spec = read_spec(self.snapshot, columns=names, hidden=hidden, predicate=None)
        numbers = [number for number, is_large in enumerate(are_large) if is_large]
        tasks = make_numbered_tasks(self.snapshot, spec, files, are_read=are_large)
        jobs = ((*job, DeletionBitmap()) for job in zip(numbers, tasks, strict=True))
        rest = {task.path: task for task in kept.tasks(jobs)}
        paths: list[Any] = files.column("path").to_pylist()
        return {n: rest.get(decode_path(paths[n])) for n in numbers if kept.has(n)}

    def read_rest(self, task: ScanTask | None) -> Counted:
        """Return the rows of a task that `look` returned."""
        tasks = _reported([] if task is None else [task], self._report)
        if task is None:
            self._report()
        if self.num_tasks == 1:
            return Counted(read_tasks(tasks), joins=False)
        return Counted(chain.from_iterable(map(read_task, tasks)), joins=False)

    def writer(self) -> FileWriter:
        """Return a writer that fills one file at a time, so that the order of rows is preserved."""
        target = self.spec.target_file_size_bytes
        limits = WriteLimits(files_at_once=1, row_group_bytes=ROW_GROUP_BYTES, spliced_bytes=target)
        return FileWriter(self.spec, limits=limits)

    def write(self, writer: FileWriter, batch: pa.RecordBatch) -> None:
        """Write rows, with their row ids if they were read."""
        write_copied(writer, batch, self._schema)

    def write_between(self, kept: KeptGroups, batch: pa.RecordBatch) -> None:
        """Write rows of `read_rest` between the copied row groups of their file."""
        write_between(kept, batch, self._schema)

    def write_after(self, kept: KeptGroups, number: int, batch: pa.RecordBatch) -> None:
        """Write rows of a file, after the copied row groups of the files with lower numbers."""
        write_after(kept, number, batch, self._schema)

    @property
    def _ids(self) -> tuple[str, ...]:
        """The row id columns to read; empty without row tracking."""
        enabled = self.snapshot.configuration.row_ids_enabled
        return (ROW_ID, ROW_COMMIT_VERSION) if enabled else ()


class Counted:
    """Iterates over batches, joins small batches, and counts the batches before they are joined.

    Args:
        batches: the batches that a scan returns.
        joins: whether to join small batches. False if copied row groups belong between them.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch], *, joins: bool = True) -> None:
        self._batches = batches
        self._least_rows = _JOINED_ROWS if joins else 1
        self.count: int = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield batches of at least `_JOINED_ROWS` rows or `_JOINED_BYTES`, except the last one."""
        waiting: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in self._batches:
            self.count += 1
            if not batch.num_rows:
                continue
            waiting.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= self._least_rows or size >= _JOINED_BYTES:
                yield from _joined(waiting)
                waiting, rows, size = [], 0, 0
        yield from _joined(waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The new files of one bin."""

    written: WrittenFiles
    num_batches: int


Rewrite = Callable[[BinReader, Bin], Rewritten]
"""A function that writes a bin's rows to new files.

It is called in several threads, or in the tasks of a cluster.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinRewrite:
    """A job for an engine: bins to rewrite within one transaction.

    Args:
        transaction: transaction of the table.
        bins: bins of files from the transaction's snapshot.
        rewrite: writes a bin's rows to new files.
        options: options of the run.
        job_id: see `WriteSpec.job`.
    """

    transaction: PendingTransaction
    bins: Sequence[Bin]
    rewrite: Rewrite
    options: RunOptions
    job_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BinGroup:
    """Consecutive bins that one task rewrites; picklable.

    Args:
        files: the files of all bins, in one table, because a pickled table has a high fixed size.
        partitions: for each bin, its partition.
        counts: for each bin, the number of its files.
    """

    files: pa.Table
    partitions: tuple[object, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, bins: Sequence[Bin]) -> Self:
        """Return the group of at least one bin."""
        files = pa.concat_tables([one.files for one in bins])
        return cls(
            files=files.take(arrow.arange(0, files.num_rows)),
            partitions=tuple(one.partition for one in bins),
            counts=tuple(one.files.num_rows for one in bins),
        )

    @property
    def bins(self) -> list[Bin]:
        """The bins."""
        starts = accumulate(self.counts, initial=0)
        return [
            Bin(partition=partition, files=self.files.slice(start, count))
            for partition, start, count in zip(self.partitions, starts, self.counts, strict=False)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BinTask:
    """The work of the tasks of an OPTIMIZE, in any engine; picklable.

    Args:
        snapshot: the version of the files.
        configuration: the configuration of the table after the operation.
        operation: the name of the operation.
        options: the options of the new files.
        rewrite: writes a bin's rows to new files.
        job_id: see `WriteSpec.job`.
    """

    snapshot: Snapshot
    configuration: TableConfiguration
    operation: str
    options: FileOptions
    rewrite: Rewrite
    job_id: str | None = None

    @classmethod
    def of(cls, job: BinRewrite) -> Self:
        """Return the work of the tasks of a job."""
        transaction = job.transaction
        return cls(
            snapshot=transaction.read_snapshot,
            configuration=transaction.configuration,
            operation=transaction.operation,
            options=job.options.files,
            rewrite=job.rewrite,
            job_id=job.job_id,
        )

    def run(self, group: BinGroup) -> list[Rewritten]:
        """Rewrite the bins of a group one after another. After a failure, delete the new files."""
        transaction = PendingTransaction(
            self.snapshot.context,
            self.snapshot,
            operation=self.operation,
            configuration=self.configuration,
        )
        options = RunOptions(files=self.options, max_concurrent_tasks=1)
        return rewrite_here(
            BinRewrite(
                transaction=transaction,
                bins=group.bins,
                rewrite=self.rewrite,
                options=options,
                job_id=self.job_id,
            )
        )


def rewrite_here(job: BinRewrite) -> list[Rewritten]:
    """Rewrite bins in threads of this process, and return the results in the order of the bins.

    If the job's commit interval ends first, only the results of the first bins are returned.
    After a failure, the new files are deleted.

    Cost: the files of `max_concurrent_tasks` bins are read and written at a time.
    """
    return _BinWork(job).run() if job.bins else []


def copy_bin(rows: BinReader, one: Bin) -> Rewritten:
    """Copy the rows of a bin, in their order, into fewer files with larger row groups."""
    return copy_with_groups(rows, one, least_bytes=kept_groups.LEAST_COMPACTED_BYTES)


def copy_with_groups(rows: BinReader, one: Bin, *, least_bytes: int | None) -> Rewritten:
    """Copy the rows of a bin, in their order, into fewer files.

    Args:
        rows: reads and writes the bin.
        one: the bin.
        least_bytes: row groups of at least this stored size are copied without decoding; None
            copies no row group this way.
    """
    with rows.writer() as writer:
        kept = KeptGroups(rows.snapshot, writer, least_bytes=least_bytes)
        tasks = rows.look(one.files, kept)
        num_batches = 0
        if not tasks:
            batches = rows.read(one.files)
            for batch in batches:
                rows.write(writer, batch)
            num_batches = batches.count
        else:
            kept.put_together()
            for first, length in _runs(one.files.num_rows, tasks):
                if first in tasks:
                    batches = rows.read_rest(tasks[first])
                    for batch in batches:
                        rows.write_between(kept, batch)
                else:
                    batches = rows.read(one.files.slice(first, length))
                    for batch in batches:
                        rows.write_after(kept, first, batch)
                num_batches += batches.count
            kept.finish()
        return Rewritten(written=writer.finish(), num_batches=num_batches)


def _runs(num_files: int, alone: Collection[int]) -> Iterator[tuple[int, int]]:
    """Split file numbers into runs; yield each run's first number and length.

    Each number in `alone` is a run of its own.
    """
    first = 0
    for number in (*sorted(alone), num_files):
        if number > first:
            yield first, number - first
        if number < num_files:
            yield number, 1
        first = number + 1


class _BinWork:
    """Rewrites the bins of one commit."""

    def __init__(self, job: BinRewrite) -> None:
        self._pending = job.transaction
        self._bins = job.bins
        self._rewrite = job.rewrite
        self._interval_s = job.options.min_commit_interval_s
        self._done: dict[int, Rewritten] = {}
        num_tasks = max(1, min(len(job.bins), job.options.num_tasks))
        progress = job.transaction.progress
        progress.expect(sum(one.files.num_rows for one in job.bins))
        self._rows = BinReader(
            job.transaction,
            job.options.files,
            progress.done,
            num_tasks=num_tasks,
            job=job.job_id,
        )

    def run(self) -> list[Rewritten]:
        background: Background[None] = Background(self._rows.num_tasks)
        try:
            self._submit(background)
            background.wait()
        except BaseException:
            background.cancel()
            self._abandon()
            raise
        return [self._done[number] for number in sorted(self._done)]

    def _submit(self, background: Background[None]) -> None:
        watch = Stopwatch()
        for number, one in enumerate(self._bins):
            if number and self._is_enough(watch, number):
                return

            def work(number: int = number, one: Bin = one) -> None:
                self._done[number] = self._rewrite(self._rows, one)

            if self._rows.num_tasks == 1:
                work()
            else:
                background.submit(work)

    def _is_enough(self, watch: Stopwatch, number: int) -> bool:
        """Whether bin `number` and all later bins must wait for another commit."""
        if self._interval_s is None:
            return False
        if self._interval_s == 0:
            return self._bins[number].partition != self._bins[number - 1].partition
        return watch.elapsed_ms() >= self._interval_s * 1000

    def _abandon(self) -> None:
        """Delete the new files of finished bins. Writers of other bins delete their own files."""
        paths = [path for new in self._done.values() for path in new.written.paths]
        if not paths:
            return
        try:
            self._pending.store.delete_many(paths)
        except DeltaError as error:
            logger.log(
                cleanup_level(error),
                "could not delete %d new files of a failed %s; vacuum deletes them: %s",
                len(paths),
                self._pending.operation,
                error,
            )


def _reported(tasks: Iterable[ScanTask], report: Callable[[], None]) -> Iterator[ScanTask]:
    for task in tasks:
        yield task
        report()


def _nothing() -> None:
    pass


def _joined(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if len(batches) < 2:
        yield from batches
        return
    yield from pa.Table.from_batches(batches).combine_chunks().to_batches()


# --- Reading of many small files at a low cost per file


SMALL_BYTES: Final = 1024 * 1024
_MOST_FILES: Final = 32

Group = list["ScanTask"]
FetchedGroup = list[tuple["ScanTask", "bytes | ParquetReader | None"]]
"""For each file, its scan task, and the file's content or a reader that has opened the file.

None instead of a content or reader means that the normal scan must read the file.
"""


def grouped(tasks: Iterable[ScanTask]) -> Iterator[Group]:
    """Group the tasks of consecutive small files. A large file is a group of its own."""
    group: Group = []
    size = 0
    for task in tasks:
        more = SMALL_BYTES if task.size_bytes is None else task.size_bytes
        if group and (size + more > SMALL_BYTES or len(group) == _MOST_FILES):
            yield group
            group, size = [], 0
        group.append(task)
        size += more
    if group:
        yield group


def is_small(group: Group) -> bool:
    """Whether the files of a group together are small enough to be read into memory."""
    return sum(task.size_bytes or SMALL_BYTES for task in group) <= SMALL_BYTES


class SmallFileReader:
    """Reads groups of small files; thread-safe.

    Args:
        spec: the spec from which all tasks were made.
    """

    def __init__(self, spec: ReadSpec) -> None:
        self._spec = spec
        self._names = set(spec.output.names)
        self._known: tuple[pa.Schema, FileProjection] | None = None
        self._schemas = KnownSchema()

    def fetch(self, group: Group) -> FetchedGroup:
        """Fetch the content of small files, without decoding it.

        Cost: for a remote store, sends the requests for all files at the same time.
        """
        if is_local(group[0].store):
            return list(zip(group, map(self._fetch_local, group), strict=True))
        return list(zip(group, map_in_pool(self._open, group), strict=True))

    def read_group(self, group: Group) -> Iterable[pa.RecordBatch]:
        """Fetch small files, and return their rows in order."""
        return self.read(self.fetch(group))

    def read(self, fetched: FetchedGroup) -> Iterable[pa.RecordBatch]:
        """Return the rows of fetched files in order. Files for the normal scan are read lazily."""
        batches: list[Iterable[pa.RecordBatch]] = []
        run: list[pa.Table] = []
        before: FileProjection | None = None
        last: ScanTask | None = None
        for task, file in fetched:
            found = self._physical(task, file)
            if run and (
                found is None
                or found[1] is not before
                or (last is not None and task.partition_values != last.partition_values)
            ):
                batches.append(self._logical(run, before, last))
                run = []
            if found is None:
                batches += read_pieces(task)
            else:
                run.append(found[0])
                before, last = found[1], task
        if run:
            batches.append(self._logical(run, before, last))
        return chain.from_iterable(batches)

    def _is_for_scan(self, task: ScanTask) -> bool:
        return bool(self._spec.metadata_columns) or task.deletion_vector is not None

    def _fetch_local(self, task: ScanTask) -> bytes | None:
        if self._is_for_scan(task):
            return None
        with noting(task):
            return small_bytes(task.store, task.path)

    def _open(self, task: ScanTask) -> ParquetReader | None:
        if self._is_for_scan(task):
            return None
        with noting(task):
            return open_parquet(task.store, task.path, size_bytes=task.size_bytes)

    def _physical(
        self, task: ScanTask, file: bytes | ParquetReader | None
    ) -> tuple[pa.Table, FileProjection] | None:
        """Return a file's stored columns and how to map them to the table's columns.

        None if the normal scan must read the file.
        """
        if file is None:
            return None
        if isinstance(file, bytes):
            return self._decoded(task, file)
        with noting(task), closing(file):
            projection = self._projection(task, file.metadata, file.arrow_schema)
            if projection is None:
                return None
            return file.read_leaves(projection.leaves), projection

    def _decoded(self, task: ScanTask, data: bytes) -> tuple[pa.Table, FileProjection] | None:
        projection: FileProjection | None = None

        def choose(metadata: Any, schema: pa.Schema) -> Sequence[int] | None:
            nonlocal projection
            projection = self._projection(task, metadata, schema)
            return None if projection is None else projection.leaves

        with noting(task):
            table = decode_small(task.store, task.path, data, choose, self._schemas)
        return None if table is None or projection is None else (table, projection)

    def _projection(
        self, task: ScanTask, metadata: Any, schema: pa.Schema
    ) -> FileProjection | None:
        """Return how a file's columns map to the table's; None if the normal scan must read it."""
        if file_rebase(metadata, self._spec.time_zone) is not None:
            return None
        known = self._known
        if known is not None and (
            known[0] is schema or known[0].equals(schema, check_metadata=True)
        ):
            return known[1]
        spec = self._spec
        found = project_file(spec.data_columns, schema, spec.mode, path=task.path)
        self._known = (schema, found)
        return found

    def _logical(
        self, run: list[pa.Table], projection: FileProjection | None, task: ScanTask | None
    ) -> list[pa.RecordBatch]:
        if projection is None or task is None:
            return []
        table = _together(run)
        data: dict[str, Any] = dict(
            zip(projection.schema.names, projection.apply(table), strict=True)
        )
        for column in self._spec.partition_columns:
            text = task.partition_values.get(self._spec.physical_names[column.name])
            value = parse_value(text, column.type, time_zone=self._spec.time_zone)
            data[column.name] = arrow.repeat(
                pa.scalar(value, to_arrow_type(column.type)), table.num_rows
            )
        output = self._spec.output
        columns = [data[name] for name in output.names]
        return pa.Table.from_arrays(columns, schema=output).to_batches()


def _together(tables: list[pa.Table]) -> pa.Table:
    """Join tables of the same columns. Without columns, Arrow would lose the number of rows."""
    if tables[0].num_columns:
        return pa.concat_tables(tables).combine_chunks()
    num_rows = sum(table.num_rows for table in tables)
    return pa.table({"_": pa.nulls(num_rows)}).select([])
