"""Rows that take too many bytes to be decoded at once: read in parts, one after the other.

A small file or a partition value may stand for gigabytes. `Piece` asks for a part when the batches
before it were taken, so that no more than one part is in memory.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog.metadata_columns import METADATA_COLUMNS
from deltalog.storage.parquet_excerpt import cut_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deltalog.scan.task import ScanTask
    from deltalog.scan.transform import FileProjection
    from deltalog.storage.parquet_paged import PagedReader
    from deltalog.storage.parquet_pages import RowRange


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """A part that was decoded.

    Args:
        first_row: its number in the file.
        num_rows: how many these are.
        rows: with all columns that are asked for; of no columns, without rows.
    """

    first_row: int
    num_rows: int
    rows: pa.Table

    def read(self, wanted: Sequence[RowRange]) -> pa.Table:
        """Some of the rows, by their numbers in the file."""
        end = self.first_row + self.num_rows
        return cut_rows(self.rows, [(self.first_row, end)], wanted)


def decoded_parts(
    paged: PagedReader, leaves: Sequence[int], group: int, rows: RowRange, most_rows: int
) -> Iterator[DecodedRows]:
    """The rows of a row group, in parts of at most so many.

    Args:
        paged: reads the file.
        leaves: numbers of the columns to decode.
        group: the row group.
        rows: numbers of its rows in the file.
        most_rows: of a part.
    """
    first, end = rows
    if not leaves:
        nothing = pa.table({})
        for start in range(first, end, most_rows):
            yield DecodedRows(start, min(most_rows, end - start), nothing)
        return
    for batch in paged.stream(leaves, group, most_rows):
        yield DecodedRows(first, batch.num_rows, pa.Table.from_batches([batch]))
        first += batch.num_rows


def clipped(runs: Iterable[RowRange], first: int, end: int) -> tuple[RowRange, ...]:
    """The parts of runs of rows that are within others."""
    cut = ((max(first, start), min(end, stop)) for start, stop in runs)
    return tuple((start, stop) for start, stop in cut if start < stop)


def null_bytes(projection: FileProjection) -> int:
    """How many bytes a row takes of columns that a file does not have, or has only in part."""
    return sum(
        _width(field.type)
        for (name, adapter), field in zip(projection.columns, projection.schema, strict=True)
        if name is None or (adapter is not None and pa.types.is_nested(field.type))
    )


def _width(kind: Any) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_struct(kind):
        return 1 + sum(_width(kind.field(number).type) for number in range(kind.num_fields))
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:  # strings and lists: an offset
        return 4


def constant_bytes(task: ScanTask) -> int:
    """How many bytes the columns take in each row that have one value in all rows of a file."""
    spec = task.spec
    wanted = {*spec.output.names, *spec.physical_names}
    size = sum(
        len(task.partition_values.get(spec.physical_names[column.name]) or "")
        for column in spec.partition_columns
        if column.name in wanted
    )
    size += sum(int(value.nbytes) for _, value in task.constants)
    has_metadata = not wanted.isdisjoint(METADATA_COLUMNS)
    return 4 * size + (len(task.path) + len(task.store.root) if has_metadata else 0)
