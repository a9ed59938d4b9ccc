"""Writing files that consist of copied row groups of other files and of encoded row groups.

The row groups are in the order of the calls. When a file has reached the target size, another file
is opened. The caller decides which row groups are copied. Several row groups are encoded and
checked concurrently in the background. Copied column chunks are checked by the checksums of their
pages or, without checksums, by decoding them once.

Protocol: Data Files, Per-file Statistics
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

from deltalog.data.write.copied_stats import check_decoding, collect_copied
from deltalog.data.write.open_files import FilePlan, FinishedFile, Values
from deltalog.data.write.patched_groups import GroupPatch
from deltalog.data.write.rows_to_files import WaitingRows, WriteLimits, pieces
from deltalog.errors import DeltaError
from deltalog.protocol.stats.collect import StatsCollector, encode_stats
from deltalog.storage.parquet.byte_sources import FetchedBytes, LocalBytes
from deltalog.storage.parquet.reader import open_parquet
from deltalog.storage.parquet.splice import (
    SplicedFile,
    checked_groups,
    empty_footer,
    encoded_groups,
)
from deltalog.storage.pool import Background
from deltalog.storage.store import Store, is_local, native_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.protocol.deletion_vectors import DeletionBitmap
    from deltalog.storage.parquet.facts import Footer
    from deltalog.storage.parquet.groups import StoredFooter
    from deltalog.storage.parquet.splice import GroupsToCopy

# The maximum number of parts in the background, in addition to one part per open file. So the next
# file can be prepared while a file is synced to the disk.
_PARTS_AHEAD: Final = 4
_PART_BYTES: Final = 64 * 1024 * 1024
"""The maximum number of bytes of fetched row groups that are in memory at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file whose row groups are copied.

    Args:
        store: the file's store.
        path: the decoded path.
        size_bytes: the length of the file.
        footer: the footer from the cache.
        stored: the same footer, parsed for copying.
        gone: the numbers of the rows that are removed.
    """

    store: Store
    path: str
    size_bytes: int
    footer: Footer
    stored: StoredFooter
    gone: DeletionBitmap

    def num_gone(self, group: int) -> int:
        """Return the number of removed rows of a row group."""
        starts = self.footer.row_group_starts
        return self.gone.count_between(starts[group], starts[group + 1])


@dataclass(slots=True)
class CopiedGroups:
    """Counts of the copied row groups.

    Attributes:
        num_groups: the number of row groups, including row groups with replaced pages.
        num_rows: the number of their rows, without removed rows.
        num_bytes: the size of the row groups in the source files.
    """

    num_groups: int = 0
    num_rows: int = 0
    num_bytes: int = 0


class SplicedFiles:
    """Writes files of copied and encoded row groups, in the order of the calls.

    Args:
        plan: the write's plan.
        limits: limits on memory and open files.
        schema: the schema of the files.

    Attributes:
        copied: counts of the row groups that were copied so far.
        template: the footer of an empty file with this schema.
        schema: the schema of the files.
    """

    def __init__(self, plan: FilePlan, limits: WriteLimits, schema: pa.Schema) -> None:
        self._plan = plan
        self._limits = limits
        self.schema: pa.Schema = schema
        self._background: Background[None] = Background(limits.files_at_once + _PARTS_AHEAD)
        # The most recently used file is last.
        self._files: dict[Values, _OpenFile] = {}
        self._closing: list[_OpenFile] = []
        self._is_local = is_local(plan.store)
        self._target = max(1, plan.spec.target_file_size_bytes)
        self._max_bytes = min(limits.row_group_bytes, max(1, self._target // 2))
        self.copied: CopiedGroups = CopiedGroups()
        self.template: StoredFooter = empty_footer(schema, **plan.options)

    def begin(self, values: Values, num_bytes: int) -> None:
        """Prepare for the rows of another source file; open a new file if they do not fit.

        Args:
            values: serialised partition values.
            num_bytes: the length of the source file.
        """
        file = self._files.get(values)
        if file is not None and file.expected_bytes >= self._limits.spliced_bytes:
            num_bytes = max(num_bytes, self._target)  # so that a new file is opened
        self._file_for(values, num_bytes)

    def copy(self, values: Values, source: SourceFile, numbers: tuple[int, ...]) -> None:
        """Append row groups of a source file, without their removed rows."""
        for part in _parts(source, numbers, min(_PART_BYTES, self._target)):
            groups = [source.stored.groups[number] for number in part]
            size = sum(group.stored_bytes for group in groups)
            num_rows = sum(group.num_rows for group in groups) - sum(map(source.num_gone, part))
            file = self._file_for(values, size)
            self._flush(file)
            file.copied_bytes += size
            file.copied_rows += num_rows
            self._put(file, _Copy(self._plan, self.schema, source, part))
            self.copied.num_groups += len(groups)
            self.copied.num_rows += num_rows
            self.copied.num_bytes += size

    def write(self, values: Values, physical: pa.RecordBatch) -> None:
        """Append rows, which have the columns of the files."""
        file, most = self._file_for(values, 0), self._plan.row_group_rows
        for rows, _ in pieces(physical, max_rows=most, max_bytes=self._max_bytes):
            size, waiting = rows.nbytes, file.waiting
            if (
                waiting.num_rows + rows.num_rows > most
                or waiting.num_bytes + size > self._max_bytes
            ):
                self._flush(file)
            file.waiting.add(rows, size)

    def finish(self) -> None:
        """Write all waiting rows, and close all files."""
        for file in list(self._files.values()):
            self._close(file)
        self._files.clear()
        self._background.wait()

    def abandon(self) -> None:
        """Stop, and delete the open files; the caller must delete the closed files."""
        self._background.cancel()
        for file in (*self._closing, *self._files.values()):
            file.abandon()

    def _file_for(self, values: Values, more_bytes: int) -> _OpenFile:
        """Return the open file of a partition, or a new file if the open file is full."""
        file = self._files.pop(values, None)
        if file is not None and file.is_full(self._target, more_bytes):
            self._close(file)
            file = None
        if file is None:
            self._limit_open_files(more_bytes)
            file = _OpenFile(self._plan, values, self.template)
        self._files[values] = file
        return file

    def _flush(self, file: _OpenFile) -> None:
        """Encode the waiting rows, as one row group."""
        waiting, file.waiting = file.waiting, WaitingRows()
        if waiting.num_rows:
            rows = pa.Table.from_batches(waiting.batches)
            self._plan.look_at(rows)
            self._put(file, _Encode(self._plan, rows))

    def _close(self, file: _OpenFile) -> None:
        self._flush(file)
        self._closing = [one for one in self._closing if not one.is_closed]
        self._closing.append(file)
        self._put(file, _Close())

    def _put(self, file: _OpenFile, part: _Part) -> None:
        turn = _Turn(part)
        file.turns.append(turn)
        self._background.submit(lambda: file.run(turn))

    def _limit_open_files(self, num_bytes: int) -> None:
        """Close the least recently used files if there are too many."""
        for values in list(self._files):
            held = sum(file.num_bytes for file in self._files.values()) + num_bytes
            is_full = not self._is_local and held > self._limits.open_bytes
            if len(self._files) < self._limits.open_files and not is_full:
                return
            self._close(self._files.pop(values))


def _parts(
    source: SourceFile, numbers: Sequence[int], most_bytes: int
) -> Iterator[tuple[int, ...]]:
    """Yield parts of limited size; a row group with removed rows is a part of its own."""
    part: list[int] = []
    size = 0
    for number in numbers:
        more = source.stored.groups[number].stored_bytes
        is_alone = source.num_gone(number) > 0
        if part and (is_alone or size + more > most_bytes):
            yield tuple(part)
            part, size = [], 0
        part.append(number)
        size += most_bytes + 1 if is_alone else more
    yield tuple(part)


class _Part(Protocol):
    """A part of a file."""

    def prepare(self) -> None:
        """Run the steps that do not depend on other parts, for which parts may be in any order."""
        ...

    def append_to(self, file: _OpenFile) -> None:
        """Append this part to the file; called after the earlier parts were appended."""
        ...

    def release(self) -> None:
        """Close everything that was opened; may be called twice."""
        ...


@dataclass(slots=True)
class _Turn:
    part: _Part
    is_ready: bool = False


class _OpenFile:
    """One new file.

    Attributes:
        turns: the parts that were not appended yet.
        waiting: the rows for the next row group.
        copied_bytes: the size of the row groups that are copied into the file.
        copied_rows: the number of rows of these row groups.
        is_closed: whether the file is complete.
    """

    def __init__(self, plan: FilePlan, values: Values, template: StoredFooter) -> None:
        self._plan = plan
        self._values = values
        self._lock = threading.Lock()
        self._number, self._path = plan.next_path(values)
        self._sink = SplicedFile(plan.store, self._path, template)
        self._stats = plan.collector()
        self.turns: deque[_Turn] = deque()
        self.waiting = WaitingRows()
        self.copied_bytes = 0
        self.copied_rows = 0
        self.is_closed = False

    @property
    def num_bytes(self) -> int:
        """Return the length of the file so far, as far as it is known."""
        return max(self._sink.size_bytes, self.copied_bytes)

    @property
    def expected_bytes(self) -> int:
        """Return the estimated length with the waiting rows, by the average size of copied rows."""
        waiting = self.copied_bytes * self.waiting.num_rows // max(1, self.copied_rows)
        return self.num_bytes + waiting

    def is_full(self, target_bytes: int, more_bytes: int) -> bool:
        """Whether the file has the target size, or would exceed it with `more_bytes`."""
        size = self.num_bytes
        return size >= target_bytes or (self.copied_bytes > 0 and size + more_bytes > target_bytes)

    def run(self, turn: _Turn) -> None:
        """Prepare a part, and append all parts that are next."""
        turn.part.prepare()
        with self._lock:
            turn.is_ready = True
            while self.turns and self.turns[0].is_ready:
                part = self.turns.popleft().part
                try:
                    part.append_to(self)
                finally:
                    part.release()

    def append(self, groups: GroupsToCopy, stats: StatsCollector) -> None:
        """Append row groups."""
        self._sink.append(groups)
        self._stats.merge(stats)

    def close(self) -> None:
        """Complete the file."""
        info = self._sink.close()
        self.is_closed = True
        self._plan.finished.append(
            FinishedFile(
                number=self._number,
                path=self._path,
                values=self._values,
                num_rows=self._stats.num_records,
                size_bytes=info.size_bytes,
                modified_ms=info.modified_ms,
                stats=encode_stats(self._stats.finish()) if self._plan.has_stats else None,
            )
        )

    def abandon(self) -> None:
        """Delete the file unless it is complete."""
        with self._lock:
            for turn in self.turns:
                turn.part.release()
            self.turns.clear()
            if not self.is_closed:
                self._sink.abandon()


class _Encode:
    """A part of a file: rows to encode as one row group."""

    def __init__(self, plan: FilePlan, rows: pa.Table) -> None:
        self._rows = rows
        self._size = plan.row_group_rows
        self._options = dict(plan.options)
        self._stats = plan.collector()

    def prepare(self) -> None:
        self._stats.update(self._rows)
        self._groups = encoded_groups(self._rows, row_group_size=self._size, **self._options)

    def append_to(self, file: _OpenFile) -> None:
        file.append(self._groups, self._stats)

    def release(self) -> None:
        pass


class _Copy:
    """A part of a file: row groups of another file."""

    def __init__(
        self, plan: FilePlan, schema: pa.Schema, source: SourceFile, numbers: tuple[int, ...]
    ) -> None:
        self._schema = schema
        self._source = source
        self._numbers = numbers
        self._options = dict(plan.options)
        self._stats = plan.collector()
        self._bytes: LocalBytes | FetchedBytes | None = None

    def prepare(self) -> None:
        with self._noting():
            self._prepare()

    def append_to(self, file: _OpenFile) -> None:
        with self._noting():
            file.append(self._groups, self._stats)

    def release(self) -> None:
        if self._bytes is not None:
            self._bytes.close()
            self._bytes = None

    def _prepare(self) -> None:
        source, stored, numbers = self._source, self._source.stored, self._numbers
        reader = open_parquet(
            source.store, source.path, size_bytes=source.size_bytes, footer=source.footer
        )
        try:
            native = native_path(source.store, source.path)
            if native is not None:
                segments = None
                self._bytes = LocalBytes(native)
            else:
                groups = [stored.groups[number] for number in numbers]
                ranges = [one for group in groups for one in group.ranges(source.size_bytes)]
                segments = reader.fetch(sorted(ranges))
                self._bytes = FetchedBytes(segments, source.size_bytes)
            if any(map(source.num_gone, numbers)):
                (number,) = numbers
                patch = GroupPatch(
                    reader,
                    self._bytes,
                    stored,
                    number,
                    gone=source.gone,
                    schema=self._schema,
                    options=self._options,
                    segments=segments,
                )
                self._groups = patch.encode(self._stats)
                return
            self._groups = checked_groups(self._bytes, stored, numbers)
            decoded = collect_copied(
                self._stats, reader, stored, numbers, schema=self._schema, segments=segments
            )
            left = [chunk for chunk in self._groups.unproven if chunk not in decoded]
            for group in sorted({group for group, _ in left}):
                leaves = sorted(leaf for number, leaf in left if number == group)
                check_decoding(reader, group, leaves, stored.groups[group].num_rows, segments)
        finally:
            reader.close()

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Add a note with the file and the table to errors."""
        try:
            yield
        except DeltaError as error:
            where = f"{self._source.path!r} of table {self._source.store.root!r}"
            error.add_note(f"while copying row groups of {where}")
            raise


class _Close:
    """A part of a file: its end."""

    def prepare(self) -> None:
        pass

    def append_to(self, file: _OpenFile) -> None:
        file.close()

    def release(self) -> None:
        pass
