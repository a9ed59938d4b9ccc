"""Computing Delta statistics of existing row groups.

The row groups are copied into another file, or their file is added to a table. If the footer has
exact bounds, they are used. Other columns are decoded: strings that may be truncated or have a
collation, floating-point numbers (bounds ignore NaN), geometries (bounding boxes need all values),
lists and maps (footers count elements).

Protocol: Per-file Statistics
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import DataFileUnreadableError
from deltalog.protocol.stats.schema import box_of, find_leaf
from deltalog.schema import Field, PrimitiveType
from deltalog.storage.parquet.parts import Segments, decode_bounds, leaf_columns
from deltalog.storage.parquet.splice import CUTS_NOTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.protocol.stats.collect import StatsCollector
    from deltalog.storage.parquet.groups import StoredChunk, StoredFooter
    from deltalog.storage.parquet.reader import ParquetReader

_MAX, _MIN, _MAX_IS_EXACT, _MIN_IS_EXACT = 5, 6, 7, 8
_FIXED_WIDTH: Final = frozenset({"BOOLEAN", "INT32", "INT64"})


def collect_copied(
    stats: StatsCollector,
    reader: ParquetReader,
    footer: StoredFooter,
    groups: Sequence[int],
    *,
    schema: pa.Schema,
    segments: Segments | None = None,
    cuts_nothing: bool = False,
) -> frozenset[tuple[int, int]]:
    """Collect the statistics of some row groups of a file.

    Args:
        stats: the collector.
        reader: a reader of the file, for this thread only.
        footer: the file's footer.
        groups: numbers of the row groups.
        schema: the schema of the file, with the types of the table.
        segments: the fetched column chunks of these row groups; None fetches the chunks to decode.
        cuts_nothing: whether all bounds are exact. If False, the flags in the footer are used.

    Returns:
        Row group and leaf column of each column chunk that was decoded.

    Raises:
        DataFileUnreadableError: a column that must be decoded is damaged.

    Cost: nothing for columns with exact bounds; other columns are decoded, one column of one row
        group at a time.
    """
    leaves = list(leaf_columns(schema))
    paths = [leaf.parts for leaf in leaves]
    leaf_of = {path: leaf for leaf, path in enumerate(paths)}
    columns, decoded = stats.columns(), set()
    for number, (path, field) in enumerate(columns):
        has_bounds = stats.has_bounds(number)
        leaf = leaf_of[path] if are_bounds_enough(stats, number, field) else None
        for group in groups:
            found = (
                None
                if leaf is None
                else _known(
                    footer,
                    footer.groups[group].chunks[leaf],
                    reader,
                    leaf,
                    leaves[leaf].type,
                    has_bounds=has_bounds,
                    cuts_nothing=cuts_nothing,
                )
            )
            if found is not None:
                stats.update_column(number, found[0], null_count=found[1])
                continue
            # Decode one column chunk at a time, because row groups of other writers may be large.
            first = _first_leaf(paths, path)
            table = reader.read_leaves([first], [group], segments)
            decoded.add((group, first))
            values = find_leaf(table, path)
            for chunk in () if values is None else values.chunks:
                stats.update_column(number, chunk)
    stats.count_rows(sum(footer.groups[group].num_rows for group in groups))
    return frozenset(decoded)


def check_decoding(
    reader: ParquetReader,
    group: int,
    leaves: Sequence[int],
    num_rows: int,
    segments: Segments | None,
) -> None:
    """Check that column chunks of a row group can be decoded, before they are copied.

    Raises:
        DataFileUnreadableError: a chunk cannot be decoded, or does not have `num_rows` rows.

    Cost: decodes the chunks in memory.
    """
    if not leaves:
        return
    found = reader.read_leaves(leaves, [group], segments).num_rows
    if found != num_rows:
        raise DataFileUnreadableError(
            f"cannot copy row group {group} of {reader.path!r}: expected {num_rows} rows in its "
            f"leaf columns {list(leaves)}, found {found}"
        )


def are_bounds_enough(stats: StatsCollector, number: int, field: Field) -> bool:
    """Whether bounds and NULL count are the only statistics of a column."""
    is_plain = isinstance(field.type, PrimitiveType) and box_of(field) is None
    return is_plain and not stats.needs_values(number)


def _first_leaf(paths: Sequence[tuple[str, ...]], column: tuple[str, ...]) -> int:
    """Return a leaf column that shows which lists, maps or variants of a column are NULL."""
    return next(n for n, path in enumerate(paths) if path[: len(column)] == column)


def _known(
    footer: StoredFooter,
    chunk: StoredChunk,
    reader: ParquetReader,
    leaf: int,
    kind: pa.DataType,
    *,
    has_bounds: bool,
    cuts_nothing: bool,
) -> tuple[pa.Array[Any], int] | None:
    """Return an array of the smallest and largest value, and the number of NULLs, or None."""
    null_count = chunk.null_count
    if null_count is None:
        return None
    if not has_bounds or null_count == chunk.num_values:
        return pa.array([], kind), null_count
    physical = reader.metadata.schema.column(leaf).physical_type
    stored = _stored_bounds(footer, chunk, physical, cuts_nothing=cuts_nothing)
    bounds = (
        None
        if stored is None
        else decode_bounds(
            stored, are_ordered=footer.has_orders, physical_type=physical, arrow_type=kind
        )
    )
    return None if bounds is None or bounds.null_count else (bounds, null_count)


def _stored_bounds(
    footer: StoredFooter, chunk: StoredChunk, physical: str, *, cuts_nothing: bool
) -> list[bytes | None] | None:
    """Return the stored bounds; None if they may not be values of the column."""
    found = {number: value for number, (_, value) in chunk.statistics.items()}
    low, high = found.get(_MIN), found.get(_MAX)
    flags = (found.get(_MIN_IS_EXACT), found.get(_MAX_IS_EXACT))
    if False in flags or not footer.has_orders:
        return None
    may_be_cut = physical not in _FIXED_WIDTH and flags != (True, True)
    cuts_nothing = cuts_nothing or footer.created_by.startswith(CUTS_NOTHING)
    if may_be_cut and not cuts_nothing:
        return None
    return [low, high] if isinstance(low, bytes) and isinstance(high, bytes) else None
