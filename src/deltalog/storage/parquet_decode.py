"""Row groups of Parquet files as Arrow tables, decoded by our threads and by none of Arrow's.

Arrow and the engines that use it call our generators in threads of Arrow's pools. If decoding
waited for one of those threads, enough scans at once would wait for each other forever. So Arrow is
told to decode in the calling thread and to fetch nothing ahead, here and nowhere else, and columns
and row groups are decoded side by side by `compute_together`.

Protocol: none
"""

from __future__ import annotations

from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq  # noqa: TID251  # this, `parquet`, `parquet_excerpt` are the places

from deltalog.storage.parquet_parts import as_texts
from deltalog.storage.pool import CORES, compute_together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_ITEMS_PER_CORE: Final = 2
"""Into so many parts work is divided, as columns take longer than their bytes tell."""


def open_file(
    source: Any, *, metadata: pq.FileMetaData | None = None, texts: Sequence[str] = ()
) -> pq.ParquetFile:
    """Open a file that Arrow reads in the calling thread.

    Args:
        source: what pyarrow takes for an open file.
        metadata: the footer if it is known; else it is read.
        texts: columns that are read as entries of their dictionaries.
    """
    return pq.ParquetFile(
        source,
        metadata=metadata,
        read_dictionary=list(texts),
        coerce_int96_timestamp_unit="us",
        pre_buffer=False,
    )


def read_groups(file: pq.ParquetFile, groups: Sequence[int], leaves: Sequence[int]) -> pa.Table:
    """Columns of some row groups, decoded in the calling thread."""
    reader: Any = file.reader
    found: pa.Table = reader.read_row_groups(
        list(groups), column_indices=list(leaves), use_threads=False
    )
    return found


def stream_group(
    file: pq.ParquetFile, group: int, leaves: Sequence[int], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Columns of one row group in batches, decoded in the calling thread."""
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
    """Columns of some row groups, decoded by several threads.

    Args:
        opened: opens the file anew, as each thread reads it for itself.
        groups: numbers.
        leaves: numbers of the leaf columns, ascending.
        columns: the top-level column of each leaf.
        sizes: how long each leaf takes, in any unit.
        texts: columns that `opened` reads as dictionary entries; they become strings.

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
    """The leaves in at most so many runs of whole columns, which take about as long as another."""
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
    """The columns of all tables in one."""
    if len(tables) == 1:
        return tables[0]
    lengths = {table.num_rows for table in tables}
    if len(lengths) > 1:  # of a damaged footer
        raise pa.ArrowInvalid(f"expected columns of one length, found {sorted(lengths)} rows")
    fields = [field for table in tables for field in table.schema]
    arrays = [column for table in tables for column in table.columns]
    schema = pa.schema(fields).with_metadata(tables[0].schema.metadata)
    return pa.Table.from_arrays(arrays, schema=schema)
