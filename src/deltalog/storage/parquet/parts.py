"""Parts of Parquet files: byte ranges, leaf columns, dictionary strings, bounds, errors."""

from __future__ import annotations

import bisect
import os
from decimal import Context, Decimal
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq  # noqa: TID251  # allowed in this package
import pyarrow.types as pt

from deltalog._util.paths import LOG_DIRECTORY, join
from deltalog._util.small_arrays import small_array
from deltalog.errors import (
    DataFileMissingError,
    DataFileUnreadableError,
    DeltaError,
    ObjectNotFoundError,
)
from deltalog.storage.faults import storage_error
from deltalog.storage.pool import CORES, compute_together
from deltalog.storage.store import native_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deltalog.storage.store import ByteRange, Store

_Result = TypeVar("_Result")
Column = str | tuple[str, ...]
_LISTS: Final = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def coalesce(
    ranges: Sequence[ByteRange],
    *,
    max_gap_bytes: int = 1024 * 1024,
    max_range_bytes: int = 8 * 1024 * 1024,
) -> list[ByteRange]:
    """Merge sorted ranges if reading the gap between them is faster than another request.

    Long ranges are split into equal parts that are requested concurrently, because one connection
    transfers only about 100 MB/s.
    """
    merged: list[ByteRange] = []
    for start, end in ranges:
        first, last = merged[-1] if merged else (start, start)
        if merged and start - last <= max_gap_bytes and max(end, last) - first <= max_range_bytes:
            merged[-1] = (first, max(end, last))
        elif not merged or end > last:
            merged.append((max(start, last), end))
    return [part for one in merged for part in _split(*one, max_range_bytes)]


def _split(start: int, end: int, most_bytes: int) -> Iterator[ByteRange]:
    num_parts = max(1, -(-(end - start) // most_bytes))
    bounds = [start + (end - start) * number // num_parts for number in range(num_parts + 1)]
    return pairwise(bounds)


class Segments:
    """The parts of a file that were fetched so far."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._parts: list[bytes] = []

    def add(self, start: int, data: bytes) -> None:
        """Add the bytes from position `start` on."""
        place = bisect.bisect(self._starts, start)
        self._starts.insert(place, start)
        self._parts.insert(place, data)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`; they must have been added before."""
        pieces = []
        place = bisect.bisect(self._starts, start) - 1
        while start < end:
            if not 0 <= place < len(self._starts):
                raise OSError(f"bytes {start} to {end} were not fetched")
            first, part = self._starts[place], self._parts[place]
            piece = part[start - first : end - first]
            if not piece:
                raise OSError(f"bytes {start} to {end} were not fetched")
            pieces.append(piece)
            start += len(piece)
            place += 1
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class FetchedParts:
    """A file object for Arrow that reads from the fetched parts of a file.

    Python's garbage collector does not see Arrow's reference to this object. If this object
    referred to the reader that owns Arrow's file, neither object would ever be freed.

    Attributes:
        segments: the parts that can be read.
    """

    def __init__(self) -> None:
        self.segments: Segments = Segments()

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`."""
        return self.segments.read(start, end)

    def read_ranges(self, ranges: Sequence[ByteRange]) -> Sequence[bytes]:
        """Return the bytes of each range."""
        return [self.read(start, end) for start, end in ranges]


class Leaf(NamedTuple):
    """A leaf column.

    Args:
        parts: the path of the column, without levels of lists and maps (`("tags", "key")`).
        path: Parquet's dotted path (`tags.key_value.key`).
        type: the Arrow type.
    """

    parts: tuple[str, ...]
    path: str
    type: pa.DataType


def walk_leaves(schema: pa.Schema) -> Iterator[tuple[str, ...]]:
    """Yield the parts of the path of every leaf column, in Parquet's order."""
    return (leaf.parts for leaf in leaf_columns(schema))


def leaf_columns(schema: pa.Schema) -> Iterator[Leaf]:
    """Yield the leaf columns of a schema, in Parquet's order."""
    for field in schema:
        yield from _leaves_below(Leaf((field.name,), field.name, field.type))


class LeafNumbers:
    """The numbers of leaf columns, by the fields to which they belong.

    Args:
        schema: the Arrow schema.
        leaf_paths: Parquet's dotted path of every leaf.

    Attributes:
        leaves: the path of each leaf, without levels of lists and maps (`("add", "tags", "key")`).
    """

    def __init__(self, schema: pa.Schema, leaf_paths: Sequence[str]) -> None:
        leaves = tuple(walk_leaves(schema))
        if len(leaves) != len(leaf_paths):  # `walk_leaves` does not know a type
            leaves = tuple(tuple(path.split(".")) for path in leaf_paths)
        self.leaves = leaves
        self._names = frozenset(schema.names)
        self._leaf_paths = leaf_paths
        self._below: dict[tuple[str, ...], list[int]] = {}
        for number, leaf in enumerate(leaves):
            for depth in range(len(leaf) + 1):
                self._below.setdefault(leaf[:depth], []).append(number)

    def of(self, columns: Sequence[Column]) -> list[int]:
        """Return the numbers of leaves by name; see `ParquetReader.leaf_indices`."""
        wanted: set[int] = set()
        for column in columns:
            parts = (column,) if isinstance(column, str) and column in self._names else column
            if isinstance(parts, str):
                wanted.update(
                    number
                    for number, path in enumerate(self._leaf_paths)
                    if path == parts or path.startswith(parts + ".")
                )
            else:
                wanted.update(self._below.get(tuple(parts), ()))
        return sorted(wanted)


def _leaves_below(column: Leaf) -> Iterator[Leaf]:
    dtype: Any = column.type
    if isinstance(dtype, pa.BaseExtensionType):
        dtype = dtype.storage_type
    if isinstance(dtype, pa.StructType):
        inner = [(field.name, field.name, field.type) for field in dtype.fields]
    elif isinstance(dtype, pa.MapType):
        key, value = dtype.key_type, dtype.item_type
        inner = [("key", "key_value.key", key), ("value", "key_value.value", value)]
    elif dtype.num_fields and any(is_list(dtype) for is_list in _LISTS):
        inner = [("element", "list.element", dtype.value_type)]
    else:
        yield Leaf(column.parts, column.path, dtype)
        return
    for part, stored, below in inner:
        yield from _leaves_below(Leaf((*column.parts, part), f"{column.path}.{stored}", below))


def guarded(store: Store, path: str, act: Callable[[], _Result]) -> _Result:
    """Call `act`, and convert errors of Arrow and the store to errors of data files."""
    try:
        return act()
    except (ObjectNotFoundError, FileNotFoundError) as error:
        raise DataFileMissingError(
            f"cannot read {join(store.root, path)!r}: there is no such file; "
            f"{advice_on_missing(store)}"
        ) from error
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(store, path, error) from error
    except OSError as error:
        if isinstance(error, DeltaError):
            raise
        if error.errno is None:  # raised by Arrow for damaged pages and footers
            raise _unreadable(store, path, error) from error
        raise storage_error(error, operation="read", path=join(store.root, path)) from error


def advice_on_missing(store: Store) -> str:
    """Return what to do about a missing data file: its whole table may be missing."""
    local = native_path(store, "")
    if local is not None and not os.path.lexists(local):
        return (
            f"the directory {store.root} was deleted or moved after the table was opened: open the "
            "table at its new place, or restore it from a backup"
        )
    return DataFileMissingError.ADVICE


def _unreadable(store: Store, path: str, error: Exception) -> DataFileUnreadableError:
    is_of_log = path.startswith(f"{LOG_DIRECTORY}/")  # the reader of the log gives its own advice
    advice = "" if is_of_log else f"; {DataFileUnreadableError.ADVICE}"
    # Arrow's messages are sentences; the advice continues them.
    reason = f"{type(error).__name__}: {error}".rstrip(".")
    return DataFileUnreadableError(
        f"cannot read {join(store.root, path)!r} as Parquet: {reason}{advice}"
    )


def as_texts(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the table with strings instead of dictionary entries in some columns.

    Raises:
        pa.ArrowException: an index is not in its dictionary, or the strings of an array are too
            long.
    """
    for name in names:
        index = table.schema.get_field_index(name)
        column: pa.ChunkedArray[Any] = table.column(index)
        kind: Any = column.type
        if pa.types.is_dictionary(kind):
            field = table.schema.field(index).with_type(kind.value_type)
            table = table.set_column(index, field, column.cast(kind.value_type))
    return table


def with_exact_bounds(schema: pa.Schema, wanted: bool | Sequence[str]) -> bool | list[str]:  # noqa: FBT001  # as in pyarrow
    """Return the `write_statistics` for a new file, which excludes floating-point columns.

    Arrow ignores NaN in the bounds of a column. In Spark and DuckDB, NaN is the greatest number, so
    they would skip row groups that contain NaN because of such bounds.

    Args:
        schema: the schema of the file.
        wanted: the value of `write_statistics` for pyarrow: all, none, or dotted paths.

    Returns:
        `wanted`, or a list of paths if a column must be excluded.
    """
    if wanted is False:
        return False
    leaves = list(leaf_columns(schema))
    floating = {leaf.path for leaf in leaves if pa.types.is_floating(leaf.type)}
    if wanted is True:
        return [leaf.path for leaf in leaves if leaf.path not in floating] if floating else True
    return [name for name in wanted if name not in floating]


# --- Decoding row groups to Arrow tables, in deltalog's threads instead of Arrow's


_ITEMS_PER_CORE: Final = 2
"""The number of parts per thread. It is more than one, because the decoding times are estimates."""


def open_file(
    source: Any, *, metadata: pq.FileMetaData | None = None, texts: Sequence[str] = ()
) -> pq.ParquetFile:
    """Open a file that Arrow reads in the calling thread.

    Args:
        source: anything that pyarrow accepts as an open file.
        metadata: the footer, if known; otherwise it is read.
        texts: the columns to read as entries of their dictionaries.
    """
    return pq.ParquetFile(
        source,
        metadata=metadata,
        read_dictionary=list(texts),
        coerce_int96_timestamp_unit="us",
        pre_buffer=False,
    )


def read_groups(file: pq.ParquetFile, groups: Sequence[int], leaves: Sequence[int]) -> pa.Table:
    """Return columns of some row groups, decoded in the calling thread."""
    reader: Any = file.reader
    found: pa.Table = reader.read_row_groups(
        list(groups), column_indices=list(leaves), use_threads=False
    )
    return found


def stream_group(
    file: pq.ParquetFile, group: int, leaves: Sequence[int], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield columns of one row group in batches, decoded in the calling thread."""
    reader: Any = file.reader
    batches: Iterator[pa.RecordBatch] = reader.iter_batches(
        batch_rows, [group], column_indices=list(leaves), use_threads=False
    )
    return batches


def read_side_by_side(
    opened: Callable[[], pq.ParquetFile],
    groups: Sequence[int],
    leaves: Sequence[int],
    columns: Sequence[str],
    sizes: Sequence[int],
    texts: Sequence[str] = (),
) -> pa.Table:
    """Return columns of some row groups, decoded by several threads.

    Args:
        opened: opens the file again; called for each thread.
        groups: the numbers of the row groups.
        leaves: the numbers of the leaf columns, ascending.
        columns: the top-level column of each leaf.
        sizes: the relative decoding time of each leaf.
        texts: the columns that `opened` reads as dictionary entries; they are strings in the
            result.

    Returns:
        Columns in the file's order.
    """
    runs = _column_runs(leaves, columns, sizes, -(-_ITEMS_PER_CORE * CORES // len(groups)))

    def read(part: tuple[int, list[int]]) -> pa.Table:
        group, some = part
        with opened() as file:
            found = read_groups(file, [group], some)
        return as_texts(found, [name for name in texts if name in found.column_names])

    tables = compute_together(read, [(group, run) for group in groups for run in runs])
    whole = [_beside(tables[at : at + len(runs)]) for at in range(0, len(tables), len(runs))]
    return whole[0] if len(whole) == 1 else pa.concat_tables(whole)


def _column_runs(
    leaves: Sequence[int], columns: Sequence[str], sizes: Sequence[int], most: int
) -> list[list[int]]:
    """Split the leaves into lists of whole columns with about equal decoding times."""
    numbered = zip(columns, leaves, sizes, strict=True)
    whole = [list(column) for _, column in groupby(numbered, lambda leaf: leaf[0])]
    weights = [sum(size for *_, size in column) + 1 for column in whole]
    total = sum(weights)
    runs: dict[int, list[int]] = {}
    for column, weight, end in zip(whole, weights, accumulate(weights), strict=True):
        middle = end - weight / 2
        run = runs.setdefault(int(middle * most / total), [])
        run.extend(leaf for _, leaf, _ in column)
    return list(runs.values())


def _beside(tables: Sequence[pa.Table]) -> pa.Table:
    """Return one table with the columns of all tables."""
    if len(tables) == 1:
        return tables[0]
    lengths = {table.num_rows for table in tables}
    if len(lengths) > 1:  # the footer is damaged
        raise pa.ArrowInvalid(f"expected columns of one length, found {sorted(lengths)} rows")
    fields = [field for table in tables for field in table.schema]
    arrays = [column for table in tables for column in table.columns]
    schema = pa.schema(fields).with_metadata(tables[0].schema.metadata)
    return pa.Table.from_arrays(arrays, schema=schema)


# --- Decoding bounds of columns from Parquet footers, without pyarrow's statistics


# The physical types of integers, and their sizes in bytes.
_WIDTHS: Final = {"INT32": 4, "INT64": 8}
_BYTES: Final = frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})
_DECIMAL_BYTES: Final = 32
_EXACT: Final = Context(prec=80)


def decode_bounds(
    stored: Sequence[bytes | None],
    *,
    are_ordered: bool,
    physical_type: str,
    arrow_type: pa.DataType,
) -> pa.Array[Any] | None:
    """Decode the bounds of a column, with NULL for a missing bound; None if no bound is usable.

    Args:
        stored: the bounds in PLAIN encoding without a length.
        are_ordered: whether the bounds follow the order of the logical type. Old writers compared
            values as signed numbers, which is wrong for strings and unsigned numbers.
        physical_type: Parquet's name of the physical type.
        arrow_type: the Arrow type of the column.
    """
    found = _decoder(physical_type, arrow_type)
    if found is None:
        return None
    decode, value_type, needs_order = found
    if needs_order and not are_ordered:
        return None
    try:
        values = [None if text is None else decode(text) for text in stored]
        array = small_array(values, value_type)
        return array if value_type == arrow_type else array.cast(arrow_type)
    except (pa.ArrowException, ValueError, ArithmeticError):
        return None


def _decoder(
    physical: str, kind: pa.DataType
) -> tuple[Callable[[bytes], Any], pa.DataType, bool] | None:
    """Return a decoder for bounds, its Arrow type, and whether it needs the logical type's order.

    Return None for floating-point columns, because writers ignore NaN in their bounds.
    """
    width = _WIDTHS.get(physical)
    if isinstance(
        kind, pa.Decimal32Type | pa.Decimal64Type | pa.Decimal128Type | pa.Decimal256Type
    ):
        if width is None and physical not in _BYTES:
            return None
        scale = kind.scale
        read = _unscaled if width is None else _number(width, signed=True)
        return lambda data: Decimal(read(data)).scaleb(-scale, _EXACT), kind, width is None
    if width is not None:
        if pt.is_unsigned_integer(kind):
            return _number(width, signed=False), kind, True
        if pt.is_signed_integer(kind):
            return _number(width, signed=True), kind, False
        if pt.is_date32(kind) or pt.is_timestamp(kind) or pt.is_duration(kind):
            return _number(width, signed=True), pa.int32() if width == 4 else pa.int64(), False
        return None
    if physical == "BOOLEAN" and pt.is_boolean(kind):
        return _truth, kind, False
    if physical == "BYTE_ARRAY" and (pt.is_string(kind) or pt.is_large_string(kind)):
        return _same, pa.binary(), True
    if physical == "BYTE_ARRAY" and (pt.is_binary(kind) or pt.is_large_binary(kind)):
        return _same, pa.binary(), True
    return None


def _number(width: int, *, signed: bool) -> Callable[[bytes], int]:
    def read(data: bytes) -> int:
        if len(data) != width:
            raise ValueError(f"expected {width} bytes, found {len(data)}")
        return int.from_bytes(data, "little", signed=signed)

    return read


def _unscaled(data: bytes) -> int:
    if not 0 < len(data) <= _DECIMAL_BYTES:
        raise ValueError(f"expected 1 to {_DECIMAL_BYTES} bytes, found {len(data)}")
    return int.from_bytes(data, "big", signed=True)


def _truth(data: bytes) -> bool:
    if len(data) != 1:
        raise ValueError(f"expected a byte, found {len(data)}")
    return bool(data[0] & 1)


def _same(data: bytes) -> bytes:
    return data
