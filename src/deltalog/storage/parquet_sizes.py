"""How many bytes a row of a Parquet file takes when it is decoded.

A file of some hundred bytes may hold one long string in a dictionary, and refer to it in a million
rows. So the length of the longest entry bounds a row, not the length of the file. What a footer
says of sizes is trusted for few rows only.

Protocol: none; Apache Parquet's `parquet.thrift` (ColumnMetaData, DictionaryPageHeader)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.kernels import compute, pc
from deltalog.storage.parquet_pages import DamagedPageError, dictionary_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.storage.parquet_facts import Footer
    from deltalog.storage.parquet_footer import ColumnChunk, ColumnChunks
    from deltalog.storage.store import ByteRange

MOST_DECODED_BYTES: Final = 1024 * 1024 * 1024
"""Rows that may take more are decoded in parts."""
PART_BYTES: Final = 64 * 1024 * 1024
"""How many bytes the rows of a part may take, unless it is a single one."""

_FEW_ROWS: Final = 16_384
_HEADER_BYTES: Final = 64  # more than the header of a dictionary has
_FIXED_BYTES: Final = 8
_LONGEST_FIXED_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class RowSizes:
    """How many bytes the rows of a file take.

    Args:
        footer: of the file.
        chunks_of: what the footer says of some columns; its bytes are known then.
        read_ranges: gives parts of the file.
        first_row: the first row of a row group and leaf, with strings as dictionary entries.
    """

    footer: Footer
    chunks_of: Callable[[Sequence[int]], ColumnChunks]
    read_ranges: Callable[[Sequence[ByteRange]], Sequence[bytes]]
    first_row: Callable[[int, int], pa.RecordBatch]

    def of(self, groups: Sequence[int], leaves: Sequence[int]) -> int:
        """How many bytes a row takes at most, or nearly so.

        Strings outside of dictionaries and lists count with their mean, as all of their bytes are
        in the file; entries of dictionaries count with the longest.

        Args:
            groups: row groups that are read.
            leaves: numbers of the columns that are read.

        Cost: of strings, one read of some bytes of each column chunk, kept with the footer;
        decoding a dictionary where its length times the rows exceeds `MOST_DECODED_BYTES`.
        """
        footer = self.footer
        num_rows = footer.rows_of(groups)
        schema = footer.metadata.schema
        fixed = sum(_fixed_bytes(schema.column(leaf)) for leaf in leaves)
        unsure = [leaf for leaf in leaves if not is_fixed(schema.column(leaf))]
        if not unsure or not num_rows:
            return fixed
        few = num_rows < _FEW_ROWS and not any(
            schema.column(leaf).max_repetition_level for leaf in unsure
        )
        if few and num_rows * footer.total_bytes(groups) <= MOST_DECODED_BYTES:
            return fixed  # however long an entry is
        chunks = self.chunks_of(unsure)
        return fixed + max(
            sum(self._leaf(group, leaf, chunks[group][leaf]) for leaf in unsure) for group in groups
        )

    def _leaf(self, group: int, leaf: int, chunk: ColumnChunk) -> int:
        known = self.footer.row_bytes.get((group, leaf))
        if known is not None:
            return known
        try:
            found = self._measured(group, leaf, chunk)
        except (DamagedPageError, pa.ArrowException, OSError):
            return 0  # what Arrow says of the column chunk is the answer
        self.footer.row_bytes[group, leaf] = found
        return found

    def _measured(self, group: int, leaf: int, chunk: ColumnChunk) -> int:
        num_rows = max(1, self.footer.metadata.row_group(group).num_rows)
        details = self.footer.described.details(chunk.details_at)
        values = -(-details.num_values // num_rows)
        found = details.uncompressed_bytes // num_rows + values * _FIXED_BYTES
        if self.footer.metadata.schema.column(leaf).physical_type != "BYTE_ARRAY":
            return found
        start, length = chunk.start or 0, min(_HEADER_BYTES, chunk.stored_bytes or 0)
        [header] = self.read_ranges([(start, start + length)])
        longest = dictionary_bytes(header)
        if longest * details.num_values > MOST_DECODED_BYTES:
            longest = _longest(self.first_row(group, leaf))
        return found + values * longest


def is_fixed(column: Any) -> bool:
    """Whether each row has one value of this leaf, and all values are of one length."""
    return column.physical_type != "BYTE_ARRAY" and not column.max_repetition_level


def _fixed_bytes(column: Any) -> int:
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return max(_LONGEST_FIXED_BYTES, int(column.length))
    return _FIXED_BYTES


def _longest(batch: pa.RecordBatch) -> int:
    """The length of the longest entry of the dictionaries below."""
    return max((_longest_below(column) for column in batch.columns), default=0)


def _longest_below(column: Any) -> int:
    kind = column.type
    if pa.types.is_dictionary(kind):
        longest: int | None = compute.max(pc.binary_length(column.dictionary)).as_py()
        return longest or 0
    if pa.types.is_struct(kind):
        return max((_longest_below(column.field(n)) for n in range(kind.num_fields)), default=0)
    if pa.types.is_map(kind):
        return max(_longest_below(column.keys), _longest_below(column.items))
    return _longest_below(column.values) if kind.num_fields else 0
