"""Reading large scans of local files with Polars, if it is installed.

Polars decodes a Parquet file in about 60 % of the processor time of pyarrow. It reads the files of
a scan in their order, if its row of `native` states that it reads all of them exactly. Deleted rows
are removed here. If Polars fails, deltalog's reader continues after the last returned row, and
raises the error if it fails, too.

Protocol: Deletion Vectors
"""

from __future__ import annotations

import _thread
import logging
import os
import sys
import threading
from bisect import bisect_left, bisect_right
from importlib.util import find_spec
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.kernels import TRUE, arrow, compute
from deltalog.data.scan.native import POLARS, plan_native
from deltalog.data.scan.polars_files import files_frame, files_in_order, has_datasets
from deltalog.data.scan.reader import read_tasks
from deltalog.errors import DataFileUnreadableError, DeltaError
from deltalog.protocol.deletion_vectors import keep_mask
from deltalog.storage.parquet.facts import MOST_DECODED_BYTES, PART_BYTES
from deltalog.storage.store import native_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from deltalog.data.scan.native import FileVector, NativePlan, StoredFile
    from deltalog.data.scan.plan import Scan
    from deltalog.protocol.deletion_vectors import DeletionBitmap
    from deltalog.storage.store import Store

logger: logging.Logger = logging.getLogger(__name__)

LEAST_BYTES: Final = 16 * 1024 * 1024
"""The minimum size of the files of a scan."""
_LEAST_BYTES_WITH_IMPORT: Final = 128 * 1024 * 1024
"""The minimum size if Polars must be imported first, which takes 0.1 s."""
_LEAST_FILE_BYTES: Final = 1024 * 1024
"""The minimum mean size of a file, because Polars parses the footers again."""
_MOST_GROUP_BYTES: Final = 256 * 1024 * 1024
"""The maximum size of a row group, because Polars decodes several row groups at once."""


def read_large(scan: Scan) -> Iterator[pa.RecordBatch] | None:
    """Return the batches of a scan, read by Polars; None if deltalog's reader should read them.

    Args:
        scan: a scan without limit.

    Cost: for a large scan, see `plan_native`; for another one, reads the sizes of files from the
        log.
    """
    if scan.spec.predicate is not None or not _is_large(scan) or not _may_use_polars():
        return None
    try:
        plan = plan_native(scan, POLARS, has_filter=False)
        files = [file for group in plan.groups for file in group.files]
        if not files or any(file.group_bytes > _MOST_GROUP_BYTES for file in files):
            return None
        frame = files_frame(plan, has_deleted=True) if has_datasets() else None
    except _failures():
        return None  # deltalog's reader raises the error after the rows of the files before
    return None if frame is None else _read(plan, frame)


def _is_large(scan: Scan) -> bool:
    """Whether the scan has so many bytes that Polars saves time, and columns that it can return."""
    if native_path(scan.snapshot.store, "") is None or not scan.schema.names:
        return False
    if any(pt.is_nested(kind) for kind in scan.schema.types):
        return False
    least = LEAST_BYTES if "polars" in sys.modules else _LEAST_BYTES_WITH_IMPORT
    num_bytes = compute.sum(scan.pruned.files(("size",)).column("size")).as_py() or 0
    return num_bytes >= max(least, scan.pruned.num_left * _LEAST_FILE_BYTES)


_FORKED: Final = threading.Event()
"""Is set in processes that were forked, in which the threads of Polars do not exist."""
_RUNNING: Final[set[object]] = set()
"""The batches of queries that are running."""


def _forget_queries() -> None:
    """Note a fork, and keep the queries of the parent in memory until the process ends.

    Freeing one takes a lock, which a thread of Polars that does not exist here may have held.
    """
    _FORKED.set()
    if _RUNNING:
        import ctypes  # noqa: PLC0415  # only after a fork while a query runs

        for batches in _RUNNING:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(batches))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_queries)


def _may_use_polars() -> bool:
    """Whether Polars is installed, and this thread may wait for it."""
    spec = find_spec("polars")
    # A directory of this name, for example in the working directory, has no origin.
    return spec is not None and spec.origin is not None and _may_wait()


def _may_wait() -> bool:
    """Whether no thread of Polars can wait for this thread, which would be a deadlock.

    A thread that runs Python code, but that Python did not start, may be one of Polars. It is this
    thread, or may wait for it, for example if a function in a query uses a pool of threads.
    """
    if _FORKED.is_set() or isinstance(threading.current_thread(), threading._DummyThread):  # noqa: SLF001  # there is no public way
        return False
    num_started = 1 + _thread._count()  # noqa: SLF001  # also those that `threading` does not know
    return len(sys._current_frames()) <= num_started  # noqa: SLF001  # as documented


def _failures() -> tuple[type[BaseException], ...]:
    """Return the errors after which deltalog's reader continues; warnings may be errors."""
    exceptions = sys.modules.get("polars.exceptions")
    of_polars = () if exceptions is None else (exceptions.PolarsError, exceptions.PanicException)
    return (pa.ArrowException, OSError, DeltaError, Warning, *of_polars)


def _read(plan: NativePlan, frame: pl.LazyFrame) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a plan; if Polars fails, deltalog's reader yields the rest."""
    num_rows = 0
    try:
        for batch in _live_batches(plan, frame):
            num_rows += batch.num_rows
            yield batch
    except _failures() as error:
        logger.info(
            "cannot read %s with Polars after %d rows: %s; deltalog's reader reads the rest",
            plan.scan.spec.table,
            num_rows,
            str(error).partition("\n")[0],
        )
    else:
        return
    yield from _without_first(read_tasks(plan.scan.tasks()), num_rows)


def _live_batches(plan: NativePlan, frame: pl.LazyFrame) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a plan that no deletion vector marks.

    Raises:
        DataFileUnreadableError: the number of rows is not that of the footers; or see `_tables`.
        Other errors: see `_read`.
    """
    live = _LiveRows(plan.scan.snapshot.store, files_in_order(plan))
    end = 0
    for table in _tables(plan, frame):
        first, end = end, end + table.num_rows
        if end > live.num_rows:
            break
        mask = live.mask(first, end)
        yield from (table if mask is None else table.filter(mask)).to_batches()
    if end != live.num_rows:
        raise DataFileUnreadableError(f"expected {live.num_rows} rows, found {end}")


def _tables(plan: NativePlan, frame: pl.LazyFrame) -> Iterator[pa.Table]:
    """Yield the rows of a frame in order, with the schema of the scan.

    Raises:
        DataFileUnreadableError: the rows are too large, or this thread must not wait for Polars.
    """
    from polars import selectors  # noqa: PLC0415  # optional

    schema = plan.scan.schema
    # Polars would interpret `*` and `^a.*$` as patterns if they were not in `by_name`.
    batches = frame.select(selectors.by_name(*schema.names)).collect_batches(maintain_order=True)
    _RUNNING.add(batches)
    try:
        yield from _converted(plan, iter(batches))
    finally:
        _RUNNING.discard(batches)


def _converted(plan: NativePlan, batches: Iterator[pl.DataFrame]) -> Iterator[pa.Table]:
    """Yield the rows of a query; see `_tables`."""
    from polars import CompatLevel  # noqa: PLC0415  # optional

    schema = plan.scan.schema
    while _may_wait():
        rows = next(batches, None)
        if rows is None:
            return
        # Arrow converts views of strings to strings in less time than Polars.
        whole = rows.to_arrow(compat_level=CompatLevel.newest())
        if _is_compact(whole, plan.constant_bytes):
            table = _with_schema(whole, schema)
            del rows, whole  # Polars decodes the next rows in their memory
            yield table
            continue
        for part in _parts(rows, plan.constant_bytes):
            yield _with_schema(part.to_arrow(compat_level=CompatLevel.newest()), schema)
    raise DataFileUnreadableError("a thread of Polars may wait for this thread")


def _with_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        column if column.type == kind else column.cast(kind)
        for column, kind in zip(rows.columns, schema.types, strict=True)
    ]
    # A cast of the table would refuse NULL in columns that are not nullable.
    return pa.Table.from_arrays(columns, schema=schema)


def _is_compact(rows: pa.Table, constant_bytes: int) -> bool:
    """Whether no value has more than 16 bytes, and the rows have at most `PART_BYTES`.

    This takes less time than adding up the lengths of strings. A view contains a string of at most
    12 bytes; longer ones are in further buffers.
    """
    row_bytes = 16 * rows.num_columns + constant_bytes
    return rows.num_rows * row_bytes <= PART_BYTES and all(
        len(chunk.buffers()) == _VIEW_BUFFERS
        if pt.is_string_view(column.type) or pt.is_binary_view(column.type)
        else pt.is_primitive(column.type) or pt.is_decimal128(column.type)
        for column in rows.columns
        for chunk in column.chunks
    )


_VIEW_BUFFERS: Final = 2


def _parts(rows: pl.DataFrame, constant_bytes: int) -> Iterator[pl.DataFrame]:
    """Yield parts of limited size.

    Strings of a dictionary share their bytes in Polars, but not in Arrow. If they have more than
    2 GB together, Arrow's conversion of views returns wrong strings, without an error.

    Args:
        rows: the rows.
        constant_bytes: the size of the partition values of a row, which Polars counts only once.

    Raises:
        DataFileUnreadableError: a part is too large, because a few rows are larger than others.
    """
    size = int(rows.estimated_size())
    row_bytes = size // max(1, rows.height) + constant_bytes
    most_rows = max(1, PART_BYTES // max(1, row_bytes))
    if rows.height <= most_rows and row_bytes * rows.height <= MOST_DECODED_BYTES:
        yield rows
        return
    for part in rows.iter_slices(most_rows):
        if part.estimated_size() + part.height * constant_bytes > MOST_DECODED_BYTES:
            raise DataFileUnreadableError("the rows are too large")
        yield part


class _LiveRows:
    """Masks of the rows of several files that no deletion vector marks.

    Args:
        store: the store of the table.
        files: the files and their deletion vectors.
    """

    def __init__(self, store: Store, files: Sequence[tuple[StoredFile, FileVector | None]]) -> None:
        self._store = store
        self._vectors = [vector for _, vector in files]
        self._starts = list(accumulate((file.num_rows for file, _ in files), initial=0))
        self._last: tuple[int, DeletionBitmap] | None = None

    @property
    def num_rows(self) -> int:
        """Return the number of physical rows of all files."""
        return self._starts[-1]

    def mask(self, first: int, end: int) -> pa.BooleanArray | None:
        """Return a mask of some physical rows; None keeps all of them."""
        number = bisect_right(self._starts, first) - 1
        last = bisect_left(self._starts, end)
        if not any(self._vectors[number:last]):
            return None
        parts: list[pa.BooleanArray] = []
        while first < end:
            start, stop = self._starts[number], min(end, self._starts[number + 1])
            part = self._part(number, first - start, stop - first)
            parts.append(arrow.repeat(TRUE, stop - first) if part is None else part)
            first, number = stop, number + 1
        return pa.concat_arrays(parts)

    def _part(self, number: int, first: int, num_rows: int) -> pa.BooleanArray | None:
        vector = self._vectors[number]
        if vector is None:
            return None
        if self._last is None or self._last[0] != number:
            self._last = number, vector.bitmap(self._store)
        return keep_mask(self._last[1], first, num_rows)


def _without_first(rows: Iterator[pa.RecordBatch], num_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches without the first rows."""
    for batch in rows:
        if num_rows < batch.num_rows:
            yield batch.slice(num_rows)
        num_rows = max(0, num_rows - batch.num_rows)
