"""Distributing rows to files, by partitions and row groups, within limits on memory.

Rows are split by partition and encoded as row groups in the background. If there are enough rows,
several files are written concurrently. If the waiting rows exceed a limit, the partitions with the
most waiting rows are written. The number of open files is limited. On object stores, open files are
in memory, so their total size is limited, too.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog._util.kernels import arrow
from deltalog._util.readable import FILE, counted
from deltalog.data.write.open_files import FilePlan, FileQueue, FinishedFile, Values, split
from deltalog.errors import DeltaError, UnsafePathError
from deltalog.storage.faults import cleanup_level
from deltalog.storage.pool import Background
from deltalog.storage.store import is_local

if TYPE_CHECKING:
    from collections.abc import Iterator


_log: Final = logging.getLogger("deltalog.data.write")

_Key = tuple["Values", bool]
_Rows = tuple["Values", pa.RecordBatch]
_Gathered = list[tuple[pa.RecordBatch, pa.RecordBatch]]
_SPLIT_AT_ONCE: Final = 2  # each concurrent split needs memory for three row groups
_FILES_AT_ONCE: Final = max(1, min(8, os.cpu_count() or 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLimits:
    """Limits on the memory and open files of a writer.

    Args:
        row_group_bytes: maximum size of a row group in memory.
        waiting_bytes: maximum size of all rows that wait until their row group is full.
        open_files: maximum number of open files; the least recently written files are closed.
        open_bytes: maximum size of all open files, if they are in memory.
        files_at_once: maximum number of files of one partition that are written concurrently.
        split_bytes: minimum size of the data for which several files of a partition are written
            concurrently.
        spliced_bytes: when a file with copied row groups has this size, rows of the next source
            file are written to another file. This keeps bounds narrow, and allows concurrent
            writes.
    """

    row_group_bytes: int = 64 * 1024 * 1024
    waiting_bytes: int = 256 * 1024 * 1024
    open_files: int = 64
    open_bytes: int = 512 * 1024 * 1024
    files_at_once: int = _FILES_AT_ONCE
    split_bytes: int = 32 * 1024 * 1024
    spliced_bytes: int = 8 * 1024 * 1024


class RowsToFiles:
    """Writes physical rows of any partitions to the files of a `FilePlan`.

    Args:
        plan: the write's plan.
        limits: limits on memory and open files.
    """

    def __init__(self, plan: FilePlan, limits: WriteLimits) -> None:
        self._plan = plan
        self._limits = limits
        self._columns = plan.spec.configuration.partition_schema.fields
        self._background: Background[None] = Background(limits.files_at_once + 1)
        self._splitting: Background[list[_Rows]] = Background(
            min(_SPLIT_AT_ONCE, limits.files_at_once)
        )
        self._queues: dict[_Key, list[FileQueue]] = {}
        self._waiting: dict[_Key, WaitingRows] = {}
        self._gathered: _Gathered = []
        self._gathered_rows = 0
        self._gathered_bytes = 0
        self._waiting_bytes = 0
        self._sent_bytes = 0
        self._is_last = False  # whether only one task is left
        # The files that `_close` was asked to close, but that are still open.
        self._closing: deque[FileQueue] = deque()
        self._max_rows = plan.row_group_rows
        target = max(1, plan.spec.target_file_size_bytes)
        # If the target size is small, use small row groups. Otherwise files would greatly exceed
        # it.
        self._max_bytes = min(limits.row_group_bytes, max(1, target // 2))
        self._is_local = is_local(plan.store)
        fitting = limits.files_at_once if self._is_local else limits.open_bytes // target
        self._num_queues = max(1, min(limits.files_at_once, fitting))

    def write(self, physical: pa.RecordBatch, logical: pa.RecordBatch) -> None:
        """Add rows.

        Args:
            physical: the rows with the columns of data files.
            logical: the same rows with their partition columns.
        """
        for rows, start in pieces(physical, max_rows=self._max_rows, max_bytes=self._max_bytes):
            if self._columns:
                self._gather(rows, logical.slice(start, rows.num_rows))
            else:
                self._add((), rows)

    def finish(self) -> tuple[FinishedFile, ...]:
        """Write all waiting rows and close all files; return the files in the order of opening."""
        self._split_rest()
        self._is_last = len(self._waiting) == 1 and not self._queues
        for key in sorted(self._waiting, key=lambda key: -self._waiting[key].num_bytes):
            self._send(key)
            self._close(key)
        for key in list(self._queues):
            self._close(key)
        self._background.wait()
        return tuple(sorted(self._plan.finished, key=lambda file: file.number))

    def abandon(self) -> None:
        """Delete all files that were opened; if the store fails, only log the failure."""
        self._splitting.cancel()
        self._background.cancel()
        for queue in (*self._closing, *self._all_queues()):
            queue.abandon()
        if self._plan.opened:
            try:
                self._delete_opened()
            except DeltaError as error:
                _log.log(
                    cleanup_level(error),
                    "could not delete %s of a failed write; vacuum deletes the rest: %s",
                    counted(len(self._plan.opened), FILE),
                    error,
                )

    def _delete_opened(self) -> None:
        store, paths = self._plan.store, self._plan.opened
        try:
            store.delete_many(paths)
        except UnsafePathError:
            # If the directory of a file is a link, nothing was written there.
            for path in paths:
                with suppress(UnsafePathError):
                    store.delete_many([path])

    def _gather(self, physical: pa.RecordBatch, logical: pa.RecordBatch) -> None:
        """Collect rows, because splitting many rows by partition at once is faster."""
        self._gathered.append((physical, logical))
        self._gathered_rows += physical.num_rows
        self._gathered_bytes += physical.nbytes
        if self._gathered_rows >= self._max_rows or self._gathered_bytes >= self._max_bytes:
            gathered, self._gathered = self._gathered, []
            self._gathered_rows = self._gathered_bytes = 0
            for rows in self._splitting.submit(lambda: list(self._split(gathered))):
                self._add_all(rows)

    def _split_rest(self) -> None:
        """Split the last collected rows in this thread, because they are usually few."""
        rest = list(self._split(self._gathered))
        self._gathered = []
        for rows in (*self._splitting.wait(), rest):
            self._add_all(rows)

    def _add_all(self, rows: list[_Rows]) -> None:
        for values, some in rows:
            self._add(values, some)

    def _split(self, gathered: _Gathered) -> Iterator[_Rows]:
        """Yield the rows of each partition; their order is preserved."""
        names = [column.name for column in self._columns]
        for kept in _by_schema([physical for physical, _ in gathered]):
            numbers = [n for n, (physical, _) in enumerate(gathered) if physical.schema == kept]
            physical = _joined([gathered[n][0] for n in numbers])
            logical = _joined([gathered[n][1].select(names) for n in numbers])
            for group in split(logical, self._columns):
                # Copy the rows, because a slice would keep the rows of all partitions in memory.
                rows = physical if group.rows is None else physical.take(group.rows)
                yield group.values, rows

    def _add(self, values: Values, rows: pa.RecordBatch) -> None:
        key = (values, len(rows.schema) > len(self._plan.layout.arrow_schema()))
        waiting = self._waiting.setdefault(key, WaitingRows())
        size = rows.nbytes
        if waiting.num_rows and (
            waiting.num_rows + rows.num_rows > self._max_rows
            or waiting.num_bytes + size > self._max_bytes
        ):
            self._send(key)
            waiting = self._waiting.setdefault(key, WaitingRows())
        waiting.add(rows, size)
        self._waiting_bytes += size
        if waiting.num_rows >= self._max_rows or waiting.num_bytes >= self._max_bytes:
            self._send(key)
        if self._waiting_bytes > self._limits.waiting_bytes:
            self._relieve()

    def _relieve(self) -> None:
        """Write the partitions with the most waiting bytes, until half of the limit is reached."""
        for key in sorted(self._waiting, key=lambda key: -self._waiting[key].num_bytes):
            if self._waiting_bytes <= self._limits.waiting_bytes // 2:
                break
            self._send(key)

    def _send(self, key: _Key) -> None:
        """Pass the waiting rows of a partition to one of its queues, as one row group."""
        waiting = self._waiting.pop(key, None)
        if waiting is None:
            return
        rows = pa.Table.from_batches(waiting.batches)
        self._waiting_bytes -= waiting.num_bytes
        self._plan.look_at(rows)
        queue = self._queue_for(key, rows.schema)
        self._sent_bytes += waiting.num_bytes
        self._put(queue, rows)
        self._close_some(key)

    def _queue_for(self, key: _Key, schema: pa.Schema) -> FileQueue:
        queues = self._queues.pop(key, [])
        self._queues[key] = queues  # the most recently used entry is last
        if queues and (queues[0].queued == 0 or self._columns):
            return queues[0]
        if not queues or (
            self._sent_bytes >= self._limits.split_bytes and len(queues) < self._num_queues
        ):
            queues.append(FileQueue(self._plan, key[0], schema))
            return queues[-1]
        return min(queues, key=lambda queue: queue.queued)

    def _put(self, queue: FileQueue, rows: pa.Table | None) -> None:
        queue.put(rows)
        if self._is_last:  # passing the work to a thread takes longer than writing a small file
            queue.run()
        else:
            self._background.submit(queue.run)

    def _close_some(self, used: _Key) -> None:
        """Close the least recently written files, if there are too many."""
        for key in list(self._queues):
            queues = list(self._all_queues())
            size = 0 if self._is_local else sum(queue.size_bytes for queue in queues)
            if len(queues) <= self._limits.open_files and size <= self._limits.open_bytes:
                return
            if key != used:
                self._close(key)

    def _close(self, key: _Key) -> None:
        """Close the files of a partition; further rows are written to new files."""
        for queue in self._queues.pop(key, []):
            self._closing.append(queue)
            self._put(queue, None)
        while self._closing and self._closing[0].is_idle:
            self._closing.popleft()

    def _all_queues(self) -> Iterator[FileQueue]:
        for queues in self._queues.values():
            yield from queues


def pieces(
    batch: pa.RecordBatch, *, max_rows: int, max_bytes: int
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield slices of at most one row group, each with the number of its first row."""
    rows = batch.num_rows
    if not rows:
        return
    most = min(max_rows, max(1, rows * max_bytes // max(1, batch.nbytes)))
    # Make slices of equal size instead of full slices and one small slice.
    size = -(-rows // -(-rows // most))
    for start in range(0, rows, size):
        yield batch.slice(start, size), start


class WaitingRows:
    """The rows of one partition that wait until their row group is full."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.num_rows: int = 0
        self.num_bytes: int = 0

    def add(self, rows: pa.RecordBatch, size: int) -> None:
        """Add rows; `size` is their size in bytes."""
        self.batches.append(rows)
        self.num_rows += rows.num_rows
        self.num_bytes += size


def _by_schema(batches: list[pa.RecordBatch]) -> list[pa.Schema]:
    found: list[pa.Schema] = []
    for batch in batches:
        if batch.schema not in found:
            found.append(batch.schema)
    return found


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return arrow.concat_batches(batches)
