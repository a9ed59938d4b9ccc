"""Rewrite bins: groups of files whose unchanged rows go into new files together.

Owns reading the rows of a bin with their row ids, writing them, working on several bins at a time,
and deleting new files after a failure. The verb decides which files are in a bin, and in which
order its rows are written.

Protocol: Add File and Remove File (`dataChange`), Row Tracking
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.clock import Stopwatch
from deltalog.deletion_vectors import DeletionBitmap
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.kernels import exact_sum
from deltalog.metadata_columns import ROW_COMMIT_VERSION, ROW_ID, ROW_INDEX
from deltalog.paths import decode_path
from deltalog.rows import kept_groups
from deltalog.rows.copy import ROW_GROUP_BYTES, write_after, write_between, write_copied
from deltalog.rows.file_options import FileOptions
from deltalog.rows.kept_groups import KeptGroups
from deltalog.rows.small_files import SmallFileReader, grouped, is_small
from deltalog.scan.plan import make_numbered_tasks, make_tasks
from deltalog.scan.reader import read_task, read_tasks
from deltalog.scan.spec import read_spec
from deltalog.storage.pool import Background, read_ahead
from deltalog.storage.store import is_local
from deltalog.write.files import FileWriter
from deltalog.write.rows_to_files import WriteLimits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from deltalog.scan.task import ReadSpec, ScanTask
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles

logger: logging.Logger = logging.getLogger(__name__)

# Small batches are joined: the fixed work per batch costs more than a copy of its rows. Groups of
# small files are mostly joined already, and are not copied once more.
_JOINED_ROWS: Final = 16 * 1024
_JOINED_BYTES: Final = 32 * 1024 * 1024
_GROUPS_AHEAD: Final = 2
# Two threads decode; more of them would mostly wait for the interpreter, and disturb the writer's.
_DECODED_AHEAD: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Files of one partition whose rows go into new files together.

    Args:
        partition: identifies the partition.
        files: rows of `snapshot.files`, with `TASK_COLUMNS` and the columns that removing needs.
    """

    partition: object
    files: pa.Table

    @property
    def size_bytes(self) -> int:
        """The size of all files together."""
        return exact_sum(self.files.column("size"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of an OPTIMIZE run.

    Args:
        files: how the new files are written.
        max_concurrent_tasks: bins that are rewritten at the same time; None is one per core, at
            most 8.
        min_commit_interval_s: after this many seconds the finished bins are committed, and the
            others follow in later commits; 0 is a commit per partition, None a single commit.
    """

    files: FileOptions = field(default_factory=FileOptions)
    max_concurrent_tasks: int | None = None
    min_commit_interval_s: float | None = None

    def __post_init__(self) -> None:
        """Raise for numbers out of range."""
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
        """How many bins are rewritten at a time."""
        return self.max_concurrent_tasks or max(1, min(8, os.cpu_count() or 1))


class BinReader:
    """Reads the rows of bins, and makes writers for them.

    Args:
        pending: transaction of the OPTIMIZE.
        options: of the new files.
        report: called after each file that is read.
        num_tasks: bins at a time; with 1, the files of the bin are read ahead.
    """

    def __init__(
        self,
        pending: PendingTransaction,
        options: FileOptions,
        report: Callable[[], None],
        *,
        num_tasks: int,
    ) -> None:
        self.snapshot: Snapshot = pending.read_snapshot
        self.spec: WriteSpec = options.spec_for(pending, data_change=False)
        self.num_tasks = num_tasks
        self._report = report
        self._schema = self.spec.configuration.arrow_schema

    def read(self, files: pa.Table, columns: Sequence[str] | None = None) -> Counted:
        """Return the rows of some files in order.

        Args:
            files: of a bin.
            columns: only these; None is all columns and, with row tracking, the row ids. Only
                reads with None are reported as progress, as a file may be read twice.
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
            else:  # all requests of a group are sent at once: the next groups' need no decoding
                for fetched in read_ahead(small.fetch, run, depth=_GROUPS_AHEAD):
                    yield from small.read(fetched)

    def look(self, files: pa.Table, kept: KeptGroups) -> dict[int, ScanTask | None]:
        """Look for row groups that can be copied, and return the tasks of the files that have any.

        Args:
            files: of a bin.
            kept: notes these row groups.

        Returns:
            By number of the file, the tasks that read the other row groups, None if there are none.

        Cost: the footers of large files.
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
        """Return the rows of a task of `look`."""
        tasks = _reported([] if task is None else [task], self._report)
        if task is None:
            self._report()
        if self.num_tasks == 1:
            return Counted(read_tasks(tasks), joins=False)
        return Counted(chain.from_iterable(map(read_task, tasks)), joins=False)

    def writer(self) -> FileWriter:
        """A writer that fills one file before it begins the next, to keep the order of rows."""
        target = self.spec.target_file_size_bytes
        limits = WriteLimits(files_at_once=1, row_group_bytes=ROW_GROUP_BYTES, spliced_bytes=target)
        return FileWriter(self.spec, limits=limits)

    def write(self, writer: FileWriter, batch: pa.RecordBatch) -> None:
        """Write rows with their row ids."""
        write_copied(writer, batch, self._schema)

    def write_between(self, kept: KeptGroups, batch: pa.RecordBatch) -> None:
        """Write rows of `read_rest` between the row groups of their file that are copied."""
        write_between(kept, batch, self._schema)

    def write_after(self, kept: KeptGroups, number: int, batch: pa.RecordBatch) -> None:
        """Write rows of other files, from that number on, after the row groups before them."""
        write_after(kept, number, batch, self._schema)

    @property
    def _ids(self) -> tuple[str, ...]:
        """With row tracking, the row ids."""
        enabled = self.snapshot.configuration.row_ids_enabled
        return (ROW_ID, ROW_COMMIT_VERSION) if enabled else ()


class Counted:
    """Iterates over batches, joins small ones, and counts them as they were read.

    Args:
        batches: as they are read.
        joins: whether small ones are joined; where others belong between them they are not.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch], *, joins: bool = True) -> None:
        self._batches = batches
        self._least_rows = _JOINED_ROWS if joins else 1
        self.count: int = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield batches of at least `_JOINED_ROWS` rows or `_JOINED_BYTES`, and the rest."""
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
"""Writes a bin's rows to new files; called from several threads, or in tasks of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinRewrite:
    """A job for an engine: bins to rewrite within one transaction.

    Args:
        transaction: of the table.
        bins: of its snapshot.
        rewrite: writes a bin's rows to new files.
        options: of the run.
    """

    transaction: PendingTransaction
    bins: Sequence[Bin]
    rewrite: Rewrite
    options: RunOptions


def rewrite_here(job: BinRewrite) -> list[Rewritten]:
    """Rewrite bins with threads of this process, and return the results in the order of the bins.

    Returns fewer results than bins if the job's commit interval passed: those of the first bins.
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
        rows: of the bins.
        one: the bin.
        least_bytes: stored size from which on a row group is copied as it is; None copies none.
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
    """The first file and the number of files of each run; those of `alone` are runs of one."""
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
            job.transaction, job.options.files, progress.done, num_tasks=num_tasks
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
        """Whether bin `number` and those after it are left for another commit."""
        if self._interval_s is None:
            return False
        if self._interval_s == 0:
            return self._bins[number].partition != self._bins[number - 1].partition
        return watch.elapsed_ms() >= self._interval_s * 1000

    def _abandon(self) -> None:
        """Delete the files of finished bins; writers of unfinished bins delete their own."""
        paths = [path for new in self._done.values() for path in new.written.paths]
        if not paths:
            return
        try:
            self._pending.store.delete_many(paths)
        except DeltaError as error:
            logger.warning(
                "%d files of a failed %s stay until vacuum: %s",
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
