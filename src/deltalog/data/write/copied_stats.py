"""Compute statistics of existing row groups, as if their rows were written now.

The row groups are copied into another file, or their whole file is added to a table. A footer's
bounds are used if they are exact. Other columns are decoded: strings that may be truncated, strings
that a collation orders, floating-point numbers (footers leave NaN out), geometries (their box needs
all values), lists and maps (footers count their elements).

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
    """Add the statistics of some row groups of a file.

    Args:
        stats: collects them.
        reader: a reader of the file; only for this thread.
        footer: the file's footer.
        groups: numbers.
        schema: the schema of the file, with the types of the table.
        segments: with all column chunks of these row groups; None fetches the decoded ones.
        cuts_nothing: whether bounds are known to be exact; otherwise the footer decides.

    Returns:
        Row group and leaf column of each column chunk that was decoded.

    Raises:
        DataFileUnreadableError: a column that must be decoded is damaged.

    Cost: none beyond the footer for columns with exact bounds; the others are decoded, one column
    of one row group at a time.
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
            # One at a time: files of other writers may have any number of rows.
            first = _first_leaf(paths, path)
            table = reader.read_leaves([first], [group], segments)
            decoded.add((group, first))
            values = find_leaf(table, path)
            for chunk in () if values is None else values.chunks:
                stats.update_column(number, chunk)
    stats.count_rows(sum(footer.groups[group].num_rows for group in groups))
    return frozenset(decoded)


def check_decoding(
    reader: ParquetReader, group: int, leaf: int, num_rows: int, segments: Segments | None
) -> None:
    """Decode a column chunk before it is copied as stored, so that damage is not spread.

    Raises:
        DataFileUnreadableError: it cannot be decoded, or has another number of rows.

    Cost: decoding it; it is in memory.
    """
    found = reader.read_leaves([leaf], [group], segments).num_rows
    if found != num_rows:
        raise DataFileUnreadableError(
            f"cannot copy row group {group} of {reader.path!r}: expected {num_rows} rows in its "
            f"leaf column {leaf}, found {found}"
        )


def are_bounds_enough(stats: StatsCollector, number: int, field: Field) -> bool:
    """Whether no statistics besides bounds and NULL count are collected for a column."""
    is_plain = isinstance(field.type, PrimitiveType) and box_of(field) is None
    return is_plain and not stats.needs_values(number)


def _first_leaf(paths: Sequence[tuple[str, ...]], column: tuple[str, ...]) -> int:
    """Return a leaf column that shows which values of a list, map or variant are NULL."""
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
    """Return the smallest and largest value, and the number of NULLs; None if unknown."""
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
    """Return the stored bounds, if they are values of the column."""
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
