"""The set of deleted rows of one file, its bytes, and its use as a mask.

Owns the three serialised forms that are read and the one that is written, and every use of
pyroaring. Knows no files and no descriptors: those are `codec`.

Row numbers are physical positions in the data file, counted over all its row groups. So masks apply
before any filter or limit.

Protocol: Deletion Vector Format, Roaring Bitmaps, Deletion Vectors (Reader Requirements)
"""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
from pyroaring import BitMap64

from deltalog.errors import DeletionVectorError, InvalidInputError
from deltalog.kernels import arrow, compute

if TYPE_CHECKING:
    from collections.abc import Iterable

MAGIC_PORTABLE: Final = 1681511377
MAGIC_NATIVE: Final = 1681511376

_MAGIC_BYTES: Final = 4
_MAX_ROWS: Final = 1 << 63


class DeletionBitmap:
    """An immutable set of row numbers, 0 to 2^63-1.

    Cost: compressed in memory; set operations and counts never unpack the rows.
    """

    __slots__ = ("_rows",)

    _rows: BitMap64

    def __init__(self, rows: Iterable[int] | BitMap64 = ()) -> None:
        """Make a set of a few row numbers, or of a bitmap that the caller no longer changes.

        For many rows, use `from_arrow`.

        Raises:
            InvalidInputError: a row number is negative or beyond 2^63-1.
        """
        try:
            self._rows = rows if isinstance(rows, BitMap64) else BitMap64(rows)
        except (OverflowError, TypeError) as error:
            raise InvalidInputError(
                f"cannot make a deletion vector: expected row numbers >= 0, {error}"
            ) from error
        if self._rows and self._rows.max() >= _MAX_ROWS:
            raise InvalidInputError(
                "cannot make a deletion vector: a row number is negative or beyond 2^63-1"
            )

    @classmethod
    def from_arrow(cls, rows: pa.Array[Any] | pa.ChunkedArray[Any]) -> Self:
        """The set of the row numbers in an int64 or uint64 column, in any order.

        Raises:
            InvalidInputError: a row number is NULL or negative.
        """
        chunks = rows.chunks if isinstance(rows, pa.ChunkedArray) else [rows]
        numbers = array("Q")
        for chunk in chunks:
            if chunk.null_count or chunk.type not in (pa.int64(), pa.uint64()):
                raise InvalidInputError(
                    f"cannot make a deletion vector of {chunk.type} with {chunk.null_count} NULLs: "
                    "expected row numbers as int64 without NULL"
                )
            data = chunk.buffers()[1]
            if data is not None and len(chunk):
                numbers.frombytes(data.slice(chunk.offset * 8, len(chunk) * 8))
        return cls(BitMap64(numbers))

    @classmethod
    def from_range(cls, start_row: int, stop_row: int) -> Self:
        """All rows from `start_row` up to, not including, `stop_row`."""
        rows = BitMap64()
        rows.add_range(start_row, max(start_row, stop_row))
        return cls(rows)

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Parse any of the three forms that exist; trailing bytes are padding.

        The protocol specifies the little-endian portable form. Delta Spark also reads a
        little-endian native form, and the inline example in the protocol is native and big-endian
        (ledger D-01).

        Raises:
            DeletionVectorError: unknown magic number, truncated or corrupt bitmap, or a row number
                beyond 2^63-1.
        """
        view = memoryview(data)
        if len(view) < _MAGIC_BYTES:
            raise DeletionVectorError(
                f"cannot read a deletion vector of {len(view)} bytes: its magic number is cut off"
            )
        little, big = (int.from_bytes(view[:_MAGIC_BYTES], order) for order in ("little", "big"))
        body = view[_MAGIC_BYTES:]
        if little == MAGIC_NATIVE:
            body = memoryview(_portable_of_native(body, "<"))
        elif big == MAGIC_NATIVE:
            body = memoryview(_portable_of_native(body, ">"))
        elif little != MAGIC_PORTABLE:
            raise DeletionVectorError(
                f"cannot read a deletion vector: expected magic number {MAGIC_PORTABLE} "
                f"or {MAGIC_NATIVE}, found {little}"
            )
        try:
            # pyroaring raises IndexError for an empty input.
            rows = BitMap64.deserialize(bytes(body))
        except (ValueError, IndexError) as error:
            raise DeletionVectorError(
                f"cannot read a deletion vector: its bitmap of {len(body)} bytes is torn or corrupt"
            ) from error
        if rows and rows.max() >= _MAX_ROWS:
            raise DeletionVectorError(
                "cannot read a deletion vector: the key of a bitmap is negative "
                "(row numbers end at 2^63-1)"
            )
        return cls(rows)

    def encode(self) -> bytes:
        """The little-endian portable form, run-length encoded where that is shorter."""
        rows = self._rows.copy()
        rows.run_optimize()
        return MAGIC_PORTABLE.to_bytes(_MAGIC_BYTES, "little") + bytes(rows.serialize())

    def to_arrow(self) -> pa.Int64Array:
        """The row numbers, ascending."""
        numbers = self._rows.to_array()
        # Values are below 2^63 (the constructor checks), so unsigned bytes are valid signed ones.
        return pa.Array.from_buffers(  # type: ignore[return-value]  # int64 is asked for
            pa.int64(), len(numbers), [None, pa.py_buffer(numbers)], null_count=0
        )

    @property
    def cardinality(self) -> int:
        """How many rows are deleted."""
        return len(self._rows)

    @property
    def max_row(self) -> int | None:
        """The highest deleted row, None if there is none."""
        return int(self._rows.max()) if self._rows else None

    def count_between(self, start_row: int, stop_row: int) -> int:
        """How many rows are deleted from `start_row` up to, not including, `stop_row`."""
        stop_row = self._end_before(stop_row)
        return int(self._rows.range_cardinality(start_row, stop_row)) if stop_row > start_row else 0

    def between(self, start_row: int, stop_row: int) -> DeletionBitmap:
        """The deleted rows from `start_row` up to, not including, `stop_row`."""
        return self & DeletionBitmap.from_range(start_row, self._end_before(stop_row))

    def _end_before(self, stop_row: int) -> int:
        """The end of a range: a damaged file may have more rows than a range can be made of."""
        return min(stop_row, 1 + (-1 if self.max_row is None else self.max_row))

    def is_superset(self, other: DeletionBitmap) -> bool:
        """Whether every row of `other` is deleted here too."""
        return bool(self._rows.issuperset(other._rows))

    def union(self, *others: DeletionBitmap) -> DeletionBitmap:
        """Rows deleted in any of them."""
        return DeletionBitmap(BitMap64.union(self._rows, *map(_rows_of, others)))

    def __or__(self, other: DeletionBitmap) -> DeletionBitmap:
        """Rows deleted in either."""
        return DeletionBitmap(self._rows | other._rows)

    def __and__(self, other: DeletionBitmap) -> DeletionBitmap:
        """Rows deleted in both."""
        return DeletionBitmap(self._rows & other._rows)

    def __sub__(self, other: DeletionBitmap) -> DeletionBitmap:
        """Rows deleted here and not in `other`."""
        return DeletionBitmap(self._rows - other._rows)

    def __contains__(self, row: int) -> bool:
        return row in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeletionBitmap):
            return NotImplemented
        return bool(self._rows == other._rows)

    def __hash__(self) -> int:
        # Not of the bytes: equal sets may be packed in two ways.
        return hash((len(self._rows), self.max_row))

    def __reduce__(self) -> tuple[Any, ...]:
        return DeletionBitmap.parse, (self.encode(),)

    def __repr__(self) -> str:
        return f"DeletionBitmap(cardinality={self.cardinality}, max_row={self.max_row})"


def keep_mask(bitmap: DeletionBitmap, start_row: int, num_rows: int) -> pa.BooleanArray | None:
    """Mark the rows that are not deleted, of `num_rows` rows from `start_row` on.

    Returns:
        One boolean per row, never null; None if all rows live, so that nothing has to be copied.

    Cost: time and memory grow with the range, not with the vector.
    """
    deleted = bitmap.count_between(start_row, start_row + num_rows)
    if deleted == 0:
        return None
    marks: pa.BooleanArray = arrow.repeat(pa.scalar(value=False), deleted)
    if deleted == num_rows:
        return marks
    rows = compute.subtract(bitmap.between(start_row, start_row + num_rows).to_arrow(), start_row)
    options = compute.ScatterOptions(max_index=num_rows - 1)
    # Positions that no index names are NULL afterwards: those are the rows that live.
    return compute.call_function("scatter", [marks, rows], options).is_null()


def _rows_of(bitmap: DeletionBitmap) -> BitMap64:
    return bitmap._rows  # noqa: SLF001 -- of this file's own class


def _portable_of_native(body: memoryview, order: str) -> bytes:
    """The portable form of a native one: a count, then a length and a bitmap for each key."""
    integer = struct.Struct(order + "i")
    parts: list[bytes] = []
    position = integer.size
    try:
        (count,) = integer.unpack_from(body, 0)
        if count < 0:
            raise DeletionVectorError(f"cannot read a deletion vector of {count} bitmaps")
        # Each bitmap consumes bytes, so a wrong count cannot run past the end of the data.
        for key in range(count):
            (length,) = integer.unpack_from(body, position)
            bitmap = bytes(body[position + integer.size : position + integer.size + length])
            position += integer.size + max(length, 0)
            if length < 0 or len(bitmap) < length:
                raise DeletionVectorError(
                    f"cannot read a deletion vector: bitmap {key} of {count} is cut off"
                )
            parts.append(key.to_bytes(4, "little") + bitmap)
    except struct.error as error:
        raise DeletionVectorError(
            "cannot read a deletion vector: its list of bitmaps is cut off"
        ) from error
    return struct.pack("<q", len(parts)) + b"".join(parts)
