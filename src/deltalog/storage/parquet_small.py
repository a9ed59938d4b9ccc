"""Small local Parquet files, each read once and whole, in few steps.

What a `ParquetReader` notes of a file for further readers of it takes as long as decoding some
thousand rows.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq  # noqa: TID251  # `storage.parquet` in short

from deltalog.storage.parquet_parts import guarded
from deltalog.storage.store import native_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.storage.store import Store

    ChooseLeaves = Callable[[Any, pa.Schema], Sequence[int] | None]

_MOST_BYTES: Final = 512 * 1024  # up to which one read is quicker than one for each column chunk
_MOST_ROWS: Final = 16_384  # from here on, `repeated_texts` may be worth a look


def small_bytes(store: Store, path: str) -> bytes | None:
    """What is in a small local file; None if the file is not local, or not small.

    Args:
        store: where the file is.
        path: decoded.

    Raises:
        DataFileMissingError: there is no such file.

    Cost: one open and one read; of a larger file, whatever the log says of it, nothing is read.
    """
    native = native_path(store, path)
    return None if native is None else guarded(store, path, lambda: _bytes(native))


def decode_small(store: Store, path: str, data: bytes, choose: ChooseLeaves) -> pa.Table | None:
    """Some columns of a small file.

    Args:
        store: where the file is, for errors.
        path: likewise.
        data: the whole file.
        choose: the numbers of the leaf columns to read, ascending, by the footer's metadata and
            its Arrow schema; None reads nothing, and is the result.

    Returns:
        Columns as `ParquetReader.read_leaves` gives them; None, too, if the file has many rows.

    Raises:
        DataFileUnreadableError: it is no Parquet file, or damaged.
    """
    return guarded(store, path, lambda: _decode(data, choose))


def _decode(data: bytes, choose: ChooseLeaves) -> pa.Table | None:
    # There is nothing to fetch before it is asked for.
    file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False, coerce_int96_timestamp_unit="us")
    metadata = file.metadata
    groups = list(range(metadata.num_row_groups))
    num_rows = sum(metadata.row_group(group).num_rows for group in groups)
    if num_rows >= _MOST_ROWS:
        return None
    leaves = choose(metadata, file.schema_arrow)
    if leaves is None:
        return None
    if not leaves:
        return pa.table({"_": pa.nulls(num_rows)}).select([])
    found: pa.Table = file.reader.read_row_groups(
        groups, column_indices=list(leaves), use_threads=False
    )
    # Arrow compares neither: by a damaged footer columns may have any number of rows.
    for column in found.itercolumns():
        if len(column) != num_rows:
            raise pa.ArrowInvalid(f"expected {num_rows} values in a column, found {len(column)}")
    return found


def _bytes(native: str) -> bytes | None:
    file = os.open(native, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        size = os.fstat(file).st_size
        if size > _MOST_BYTES:
            return None
        data = os.read(file, size)
        while len(data) < size and (more := os.read(file, size - len(data))):
            data += more  # of file systems that give less than they are asked for
        return data
    finally:
        os.close(file)
