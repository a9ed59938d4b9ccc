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
from deltalog.storage.parquet_sizes import MOST_DECODED_BYTES
from deltalog.storage.store import native_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.storage.store import Store

    ChooseLeaves = Callable[[Any, pa.Schema], Sequence[int] | None]

_MOST_BYTES: Final = 512 * 1024  # up to which one read is quicker than one for each column chunk
_USUAL_RATIO: Final = 20  # of decompressed bytes to stored ones; above, an entry may be long
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


class KnownSchema:
    """The Arrow schema of the last file, which the next one mostly has as well; thread-safe.

    Arrow makes a schema from the leaf columns, the groups above them, and the texts in the footer.
    Where there are no groups, comparing these costs a third of making and comparing the schema.
    """

    def __init__(self) -> None:
        self._last: tuple[Any, Any, pa.Schema] | None = None

    def of(self, reader: Any, metadata: Any) -> pa.Schema:
        """The Arrow schema of an open file; of equal files the same object."""
        texts, leaves, last = metadata.metadata, metadata.schema, self._last
        is_flat = all(len(path) == 1 for path in reader.column_paths)
        if is_flat and last is not None and last[0] == texts and last[1].equals(leaves):
            return last[2]
        schema: pa.Schema = reader.schema_arrow
        if is_flat:
            self._last = texts, leaves, schema
        return schema


def decode_small(
    store: Store, path: str, data: bytes, choose: ChooseLeaves, known: KnownSchema
) -> pa.Table | None:
    """Some columns of a small file.

    Args:
        store: where the file is, for errors.
        path: likewise.
        data: the whole file.
        choose: the numbers of the leaf columns to read, ascending, by the footer's metadata and
            its Arrow schema; None reads nothing, and is the result.
        known: of the files before.

    Returns:
        Columns as `ParquetReader.read_leaves` gives them; None, too, if the file has many rows, or
        few that may take many bytes.

    Raises:
        DataFileUnreadableError: it is no Parquet file, or damaged.
    """
    return guarded(store, path, lambda: _decode(data, choose, known))


def _decode(data: bytes, choose: ChooseLeaves, known: KnownSchema) -> pa.Table | None:
    # What `pq.ParquetFile` holds: to make that one takes as long as decoding a column.
    reader: Any = pq.ParquetReader()
    # There is nothing to fetch before it is asked for.
    reader.open(
        pa.BufferReader(data),
        pre_buffer=False,
        coerce_int96_timestamp_unit="us",
        arrow_extensions_enabled=True,  # as `pq.ParquetFile` has it
    )
    metadata = reader.metadata
    groups = range(metadata.num_row_groups)
    num_rows = num_bytes = 0
    for group in groups:
        described = metadata.row_group(group)
        num_rows += described.num_rows
        num_bytes += described.total_byte_size
    is_dense = num_bytes > _USUAL_RATIO * len(data)
    if num_rows >= _MOST_ROWS or (is_dense and num_rows * num_bytes > MOST_DECODED_BYTES):
        return None
    leaves = choose(metadata, known.of(reader, metadata))
    if leaves is None:
        return None
    if not leaves:
        return pa.table({"_": pa.nulls(num_rows)}).select([])
    found: pa.Table = reader.read_row_groups(groups, column_indices=leaves, use_threads=False)
    # Arrow compares neither: by a damaged footer columns may have any number of rows.
    found.validate()
    if found.num_rows != num_rows:
        raise pa.ArrowInvalid(f"expected {num_rows} rows, found {found.num_rows}")
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
