"""Bins are rewritten: several at a time, for one commit or several; failures leave nothing.

Owns what every optimization has in common: rows are read with what belongs to them, come out as
new files, and the old ones go; no row changes. The order of rows is the strategy's affair.

Protocol: Add File and Remove File (`dataChange`), Row Tracking
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from deltalog.clock import Stopwatch
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions import to_sql
from deltalog.metadata_columns import ROW_COMMIT_VERSION, ROW_ID
from deltalog.progress import shown
from deltalog.rows.copy import ROW_GROUP_BYTES, tasks_of, write_copied
from deltalog.scan.plan import read_spec
from deltalog.scan.reader import read_task, read_tasks
from deltalog.storage.pool import Background, read_ahead
from deltalog.verbs.append import FileOptions
from deltalog.verbs.optimize.bins import snapshot_of, vectors_of
from deltalog.verbs.optimize.result import Optimized
from deltalog.verbs.optimize.small_files import SmallFileReader, grouped, is_small
from deltalog.write.files import FileWriter
from deltalog.write.parts import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deltalog.expressions import Expression
    from deltalog.progress import OnProgress, Progress
    from deltalog.scan.task import ReadSpec, ScanTask
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction
    from deltalog.verbs.optimize.bins import Bin
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles

logger = logging.getLogger(__name__)

# Small batches are joined: what is done for each batch costs more than a copy of its rows.
_JOINED_ROWS: Final = 64 * 1024
_GROUPS_AHEAD: Final = 4


class Elsewhere(Protocol):
    """Rewrites bins on other machines."""

    def __call__(
        self,
        pending: PendingTransaction,
        files: FileOptions,
        bins: Sequence[Bin],
        rewrite: Rewrite,
    ) -> Sequence[Rewritten]:
        """What has come of each bin; where one fails, the others' files are removed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How an optimization goes about its work.

    Args:
        files: how the new files are written.
        max_concurrent_tasks: bins that are rewritten at the same time; None is one per core.
        min_commit_interval_s: after so many seconds what is done is committed, and the rest goes
            on in a commit of its own; 0 is a commit per partition, None one commit.
        progress: True for a bar, or told how many files of how many are read; what it raises
            ends the work. It may be called from any thread, by one at a time.
        elsewhere: rewrites bins on other machines, all in one commit, and tells no progress; None
            is here.
    """

    files: FileOptions = field(default_factory=FileOptions)
    max_concurrent_tasks: int | None = None
    min_commit_interval_s: float | None = None
    progress: Progress | None = None
    elsewhere: Elsewhere | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
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
        """Bins at a time."""
        return self.max_concurrent_tasks or max(1, min(8, os.cpu_count() or 1))


class Rows:
    """Reads the rows of bins, and makes writers for them.

    Args:
        pending: of the optimization.
        options: of its files.
        report: told of every file that is read.
        num_tasks: bins at a time; the files of one that is alone are read ahead.
    """

    def __init__(
        self,
        pending: PendingTransaction,
        options: FileOptions,
        report: Callable[[], None],
        *,
        num_tasks: int,
    ) -> None:
        self.snapshot: Snapshot = snapshot_of(pending)
        self.spec: WriteSpec = options.spec_for(pending, data_change=False)
        self.num_tasks = num_tasks
        self._zone = options.time_zone
        self._report = report
        self._schema = self.spec.configuration.arrow_schema

    def read(self, files: pa.Table, columns: Sequence[str] | None = None) -> Counted:
        """The rows of some files, in their order.

        Args:
            files: of a bin.
            columns: only these; None is everything that belongs to a row.
        """
        configuration = self.snapshot.configuration
        if columns is None:
            ids = (ROW_ID, ROW_COMMIT_VERSION) if configuration.row_ids_enabled else ()
            columns = [*configuration.schema.names, *ids]
            report = self._report
        else:
            report = _nothing
        spec = read_spec(self.snapshot, columns=columns, predicate=None, time_zone=self._zone)
        tasks = _reported(tasks_of(self.snapshot, spec, files), report)
        return Counted(self._batches(spec, tasks))

    def _batches(self, spec: ReadSpec, tasks: Iterable[ScanTask]) -> Iterator[pa.RecordBatch]:
        small = SmallFileReader(spec)
        for is_run_small, run in groupby(grouped(tasks), key=is_small):
            if not is_run_small:
                large = (task for group in run for task in group)
                if self.num_tasks == 1:
                    yield from read_tasks(large)
                else:
                    for task in large:
                        yield from read_task(task)
            elif self.num_tasks == 1:
                for batches in read_ahead(small.read, run, depth=_GROUPS_AHEAD):
                    yield from batches
            else:
                for group in run:
                    yield from small.read(group)

    def writer(self) -> FileWriter:
        """One file after another, each of them full before the next is begun."""
        return FileWriter(self.spec, limits=Limits(lanes=1, row_group_bytes=ROW_GROUP_BYTES))

    def write(self, writer: FileWriter, batch: pa.RecordBatch) -> None:
        """Hand on rows with what belongs to them."""
        write_copied(writer, batch, self._schema)


class Counted:
    """Batches that are joined where they are small, and counted."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.count = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The batches."""
        waiting: list[pa.RecordBatch] = []
        rows = 0
        for batch in self._batches:
            self.count += 1
            if not batch.num_rows:
                continue
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= _JOINED_ROWS:
                yield from _joined(waiting)
                waiting, rows = [], 0
        yield from _joined(waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """What has come of one bin."""

    written: WrittenFiles
    num_batches: int


Rewrite = Callable[[Rows, "Bin"], Rewritten]


def record(
    pending: PendingTransaction,
    predicate: Expression | None,
    *,
    z_order_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    **more: object,
) -> None:
    """Say in the history what is optimized, and how; the names are Delta Spark's."""
    pending.parameters.setdefault("auto", False)
    pending.parameters.update(
        predicate=[] if predicate is None else [to_sql(predicate)],
        zOrderBy=list(z_order_by),
        clusterBy=list(cluster_by),
        **more,
    )


def rewrite_bins(
    pending: PendingTransaction,
    bins: Sequence[Bin],
    rewrite: Rewrite,
    *,
    strategy: str,
    num_considered: int,
    options: RunOptions,
    preserves_order: bool = True,
) -> Optimized:
    """Rewrite bins, and say so in the transaction; as many of them as one commit shall hold.

    Args:
        pending: of the table.
        bins: of its snapshot.
        rewrite: makes new files of a bin's rows; called from several threads.
        strategy: of the optimization.
        num_considered: files that could have been in the bins.
        options: of the run.
        preserves_order: whether `rewrite` leaves rows in their order.

    Cost: the files of `max_concurrent_tasks` bins are read and written at a time. Whatever fails
    leaves no file.
    """
    if options.elsewhere is not None and bins:
        made = options.elsewhere(pending, options.files, bins, rewrite)
        done = list(zip(bins, made, strict=True))
    else:
        with shown(options.progress, "rewriting files") as tell:
            done = _Work(pending, bins, rewrite, options, tell).run()
    for one, rewritten in done:
        pending.read_files(one.files)
        pending.remove_files(one.files, data_change=False)
        pending.add_files(rewritten.written)
    removed: list[Any] = [size for one, _ in done for size in one.files.column("size").to_pylist()]
    optimized = Optimized(
        strategy=strategy,
        added_sizes=tuple(add.size_bytes for _, new in done for add in new.written.adds),
        removed_sizes=tuple(removed),
        removed_vectors=tuple(count for one, _ in done for count in vectors_of(one.files)),
        partitions=frozenset(one.partition for one, _ in done),
        num_batches=sum(new.num_batches for _, new in done),
        num_considered=num_considered,
        max_bin_files=max((one.files.num_rows for one, _ in done), default=0),
        preserves_order=preserves_order,
        left=bins[len(done) :],
    )
    if done:
        pending.set_metrics(optimized.metrics())
    return optimized


def copy_bin(rows: Rows, one: Bin) -> Rewritten:
    """The rows of a bin as they are, in fewer files."""
    batches = rows.read(one.files)
    with rows.writer() as writer:
        for batch in batches:
            rows.write(writer, batch)
        return Rewritten(written=writer.finish(), num_batches=batches.count)


class _Work:
    """The bins of one commit."""

    def __init__(
        self,
        pending: PendingTransaction,
        bins: Sequence[Bin],
        rewrite: Rewrite,
        options: RunOptions,
        progress: OnProgress | None,
    ) -> None:
        self._pending = pending
        self._bins = bins
        self._rewrite = rewrite
        self._interval_s = options.min_commit_interval_s
        self._progress = progress
        self._lock = threading.Lock()
        self._num_files = 0
        self._num_read = 0
        self._done: dict[int, Rewritten] = {}
        num_tasks = max(1, min(len(bins), options.num_tasks))
        self._rows = Rows(pending, options.files, self._report, num_tasks=num_tasks)

    def run(self) -> list[tuple[Bin, Rewritten]]:
        background = Background(self._rows.num_tasks)
        try:
            self._submit(background)
            background.wait()
        except BaseException:
            background.cancel()
            self._abandon()
            raise
        return [(self._bins[number], self._done[number]) for number in sorted(self._done)]

    def _submit(self, background: Background) -> None:
        watch = Stopwatch()
        self._num_files = sum(one.files.num_rows for one in self._bins)
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
        """Whether the bins from a number on go into another commit."""
        if self._interval_s is None:
            return False
        if self._interval_s == 0:
            return self._bins[number].partition != self._bins[number - 1].partition
        return watch.elapsed_ms() >= self._interval_s * 1000

    def _report(self) -> None:
        if self._progress is None:
            return
        with self._lock:
            self._num_read += 1
            self._progress(self._num_read, self._num_files)

    def _abandon(self) -> None:
        """Remove the files of bins that were complete; others have removed theirs."""
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
