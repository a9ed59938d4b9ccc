"""External merge sort: sort rows by a key in memory, or in runs on disk that are merged.

This module limits the memory and manages the temporary files. The caller computes the key.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from deltalog._util.kernels import arrow, compute
from deltalog.data.write.enforce import Enforcer
from deltalog.data.write.files import FileWriter, write_files
from deltalog.data.write.open_files import Values, split
from deltalog.data.write.rows_to_files import WriteLimits
from deltalog.data.write.source import open_batches
from deltalog.errors import StorageError
from deltalog.schema.metadata_columns import METADATA
from deltalog.storage.faults import disk_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deltalog.data.write.options import WriteSpec
    from deltalog.data.write.written import WrittenFiles
    from deltalog.protocol.configuration import TableConfiguration

DEFAULT_MEMORY_BYTES: Final = 512 * 1024 * 1024
_CHUNK_BYTES: Final = 4 * 1024 * 1024
_MOST_RUNS: Final = 64
_SLICE_ROWS: Final = 512 * 1024
# The maximum number of bytes of a run, so that no column of a run exceeds the 2 GiB to which
# Arrow's 32-bit offsets limit a string or binary column.
_MAX_RUN_BYTES: Final = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SortLimits:
    """The memory and disk that a sort may use.

    Args:
        memory_bytes: limit for rows in memory; further rows are spilled to disk.
        disk_bytes: limit for temporary files; None means no limit.
        directory: directory of the temporary files; None means the system's default.
    """

    memory_bytes: int = DEFAULT_MEMORY_BYTES
    disk_bytes: int | None = None
    directory: str | None = None


def sort_batches(
    batches: Iterable[pa.RecordBatch], key: str, limits: SortLimits
) -> Iterator[pa.RecordBatch]:
    """Yield all rows, sorted by ascending key.

    Args:
        batches: batches of one schema.
        key: name of a column of numbers without NULL.
        limits: limits of memory and disk.

    Raises:
        StorageError: the temporary files would exceed their limit, or cannot be written.

    Cost: if the rows exceed the memory limit, they are written to and read from temporary files.
    With more than 64 runs, some rows are written and read again for each merge level. The files are
    deleted when the iterator ends, is closed or fails.
    """
    run_bytes = max(1, min(limits.memory_bytes // 2, _MAX_RUN_BYTES))
    with contextlib.ExitStack() as stack:
        spill: _Spill | None = None
        waiting: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            waiting.append(batch)
            size += batch.nbytes
            if size >= run_bytes:
                spill = spill or stack.enter_context(_Spill(limits, key))
                spill.write(_sorted(waiting, key))
                waiting, size = [], 0
        if spill is None:
            yield from _sorted(waiting, key)
            return
        if waiting:
            spill.write(_sorted(waiting, key))
        yield from spill.merged()


def _sorted(batches: list[pa.RecordBatch], key: str) -> Iterator[pa.RecordBatch]:
    """Yield the sorted rows. Clears the list, so that the batches can be freed."""
    if not batches:
        return
    table = pa.Table.from_batches(batches).combine_chunks()
    batches.clear()
    order = compute.array_sort_indices(one_piece(table.column(key)))
    for start in range(0, table.num_rows, _SLICE_ROWS):
        yield from table.take(order.slice(start, _SLICE_ROWS)).combine_chunks().to_batches()


class _Spill:
    """Sorted runs in temporary files; a context manager that deletes the files.

    To limit the number of open files, `_MOST_RUNS` runs of one level are merged into one run of the
    next level.
    """

    def __init__(self, limits: SortLimits, key: str) -> None:
        self._limits = limits
        self._key = key
        self._levels: list[list[Path]] = []
        self._files: list[Any] = []
        self._num_written = 0
        self._size = 0
        # During a merge, one chunk of each run is in memory. Together, these chunks may use half of
        # the memory limit.
        self._chunk_bytes = max(1, min(_CHUNK_BYTES, limits.memory_bytes // (2 * _MOST_RUNS)))

    def __enter__(self) -> Self:
        with disk_errors("sort"):
            self._home = tempfile.TemporaryDirectory(
                prefix="deltalog-sort-", dir=self._limits.directory, ignore_cleanup_errors=True
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        self._home.cleanup()

    def write(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Write another run."""
        self._add(self._write(batches), 0)

    def merged(self) -> Iterator[pa.RecordBatch]:
        """Return the rows of all runs, sorted."""
        paths = [path for level in self._levels for path in level]
        return _merged([self._read(path) for path in paths], self._key)

    def _add(self, path: Path, level: int) -> None:
        if level == len(self._levels):
            self._levels.append([])
        paths = self._levels[level]
        paths.append(path)
        if len(paths) < _MOST_RUNS:
            return
        merged = self._write(_merged([self._read(path) for path in paths], self._key))
        self._close()
        with disk_errors("sort"):
            for old in paths:
                self._size -= old.stat().st_size
                old.unlink()
        paths.clear()
        self._add(merged, level + 1)

    def _write(self, batches: Iterator[pa.RecordBatch]) -> Path:
        path = Path(self._home.name) / f"{self._num_written}.arrow"
        self._num_written += 1
        first = next(batches)
        with (
            disk_errors("sort"),
            pa.OSFile(str(path), "wb") as sink,
            pa.ipc.new_stream(sink, first.schema) as writer,
        ):
            for batch in itertools.chain([first], batches):
                rows = max(1, batch.num_rows * self._chunk_bytes // max(1, batch.nbytes))
                for start in range(0, batch.num_rows, rows):
                    writer.write_batch(batch.slice(start, rows))
                self._check(sink.tell())
        self._size += path.stat().st_size
        return path

    def _read(self, path: Path) -> Iterator[pa.RecordBatch]:
        with disk_errors("sort"):
            file = pa.OSFile(str(path), "rb")
        self._files.append(file)
        return iter(pa.ipc.open_stream(file))

    def _close(self) -> None:
        for file in self._files:
            file.close()
        self._files.clear()

    def _check(self, more: int) -> None:
        most = self._limits.disk_bytes
        if most is not None and self._size + more > most:
            raise StorageError(
                f"cannot sort: the rows need more than {most} bytes of temporary files, the limit "
                "that max_temp_directory_size sets; increase max_temp_directory_size or "
                "max_spill_size"
            )


def _merged(runs: list[Iterator[pa.RecordBatch]], key: str) -> Iterator[pa.RecordBatch]:
    """Merge sorted runs. One batch of each run, its head, is in memory.

    Each step takes the smallest of the heads' last keys, and yields all rows up to this key. The
    batches after the heads have no lower keys.
    """
    live = [(head, run) for run in runs if (head := next(run, None)) is not None]
    while live:
        last = min(head.column(key)[-1].as_py() for head, _ in live)
        ready: list[pa.RecordBatch] = []
        left: list[tuple[pa.RecordBatch, Iterator[pa.RecordBatch]]] = []
        for head, run in live:
            count = compute.sum(compute.less_equal(head.column(key), last)).as_py() or 0
            if count:
                ready.append(head.slice(0, count))
            # The next batch of this run may begin with the same key. The next step yields its rows.
            rest = head.slice(count) if count < head.num_rows else next(run, None)
            if rest is not None:
                left.append((rest, run))
        live = left
        yield from _sorted(ready, key)


def one_piece(column: Any) -> Any:
    """Return a column as one array that is not chunked."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):
        return whole.chunk(0) if whole.num_chunks == 1 else pa.concat_arrays(whole.chunks)
    return whole


# --- Optimized write: rows are sorted by partition before they are written


_KEY: Final = f"{METADATA}.partition"  # no column of a table has this name


def write_optimized(
    spec: WriteSpec, data: object, *, limits: SortLimits | None = None
) -> WrittenFiles:
    """Write rows as `write_files` does, with as few files per partition as their size allows.

    Args:
        spec: spec of the table.
        data: anything that `open_batches` accepts.
        limits: limits of the sort.

    Raises:
        DeltaError: see `write_files`.
        StorageError: the temporary files exceed their limit, or cannot be written.

    Cost: that of `write_files`, and of sorting the rows of a partitioned table by partition. Rows
    beyond the memory limit are spilled to temporary files.
    """
    reader = open_batches(data)
    if not reader.schema.names:
        return write_files(spec, reader)
    partition_columns = spec.configuration.partition_columns
    with FileWriter(spec, limits=WriteLimits(files_at_once=1)) as writer:
        enforcer = Enforcer.of_spec(spec, reader.schema)
        batches: Iterable[pa.RecordBatch] = map(enforcer.apply, reader)
        if partition_columns:
            batches = gathered(spec.configuration, batches, limits or SortLimits())
        for batch in batches:
            if batch.num_rows:
                writer.write(batch)
        return writer.finish(
            identity_marks=enforcer.identity_marks, identity_starts=enforcer.identity_starts
        )


def gathered(
    configuration: TableConfiguration, batches: Iterable[pa.RecordBatch], limits: SortLimits
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one partition after the other, in the order of each partition's first row.

    Args:
        configuration: configuration of the table.
        batches: rows in the table's logical schema.
        limits: limits of sorting.
    """
    numbers: dict[Values, int] = {}
    fields = configuration.partition_schema.fields

    def keyed() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for group in split(batch, fields):
                number = numbers.setdefault(group.values, len(numbers))
                rows = batch if group.rows is None else batch.take(group.rows)
                key = arrow.repeat(pa.scalar(number, pa.int64()), rows.num_rows)
                yield rows.append_column(_KEY, key)

    for batch in sort_batches(keyed(), _KEY, limits):
        yield batch.drop_columns([_KEY])
