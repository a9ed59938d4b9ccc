"""Statistics of the rows that go into a file, collected batch by batch.

Owns which value is the smallest and the greatest as Spark orders them: NaN above all numbers,
texts by their bytes, or by the collation of their column. How they are stored is `encode`.

Protocol: Per-file Statistics
"""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from deltalog.errors import InvalidInputError
from deltalog.kernels import Array, pc
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.collations import ruled_collation
from deltalog.schema.primitives import Bounds
from deltalog.schema.primitives.places import corner
from deltalog.stats.encode import DEFAULT_PREFIX_LENGTH, truncate_max, truncate_min
from deltalog.stats.schema import (
    DEFAULT_NUM_INDEXED_COLUMNS,
    MAX_VALUES,
    MIN_VALUES,
    NULL_COUNT,
    NUM_RECORDS,
    TIGHT_BOUNDS,
    bounds_of,
    box_of,
    find_leaf,
    has_bounds,
    indexed_columns,
    leaf_of_bound,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from deltalog.schema.primitives.row import Box
    from deltalog.schema.types import Field, StructType
    from deltalog.stats.schema import Path


class StatsCollector:
    """The statistics of one data file, as Delta Spark writes them.

    Args:
        schema: physical schema of the file, without partition columns.
        num_indexed_columns: how many leaf columns get statistics; -1 is all.
        columns: physical paths of the chosen columns instead.
        prefix_length: how many characters of a text are kept.
        tight_bounds: whether to say that bounds are those of live rows: tables that may have
            deletion vectors do.

    Protocol: Per-file Statistics
    """

    def __init__(
        self,
        schema: StructType,
        *,
        num_indexed_columns: int = DEFAULT_NUM_INDEXED_COLUMNS,
        columns: Collection[Path] | None = None,
        prefix_length: int = DEFAULT_PREFIX_LENGTH,
        tight_bounds: bool = False,
    ) -> None:
        indexed = indexed_columns(schema, num_indexed_columns=num_indexed_columns, columns=columns)
        self._columns = [_ColumnStats(path, field, prefix_length) for path, field in indexed]
        self._tight_bounds = tight_bounds
        self._num_records = 0

    @property
    def num_records(self) -> int:
        """The number of rows so far."""
        return self._num_records

    def columns(self) -> list[tuple[Path, Field]]:
        """The columns that get statistics."""
        return [(column.path, column.field) for column in self._columns]

    def has_bounds(self, number: int) -> bool:
        """Whether a column of `columns` gets a minimum and a maximum."""
        return self._columns[number].has_bounds

    def needs_values(self, number: int) -> bool:
        """Whether all values of a column of `columns` are looked at: bytes do not order them."""
        return self._columns[number].collation is not None

    def count_rows(self, num_rows: int) -> None:
        """Add rows, whose columns are added one by one with `update_column`."""
        self._num_records += num_rows

    def update_column(self, number: int, values: Array, *, null_count: int | None = None) -> None:
        """Add values of one column.

        Args:
            number: of the column in `columns`.
            values: all of them, or the smallest and the greatest, if `null_count` is given.
            null_count: how many of all values are NULL.
        """
        self._columns[number].add(values, null_count)

    def merge(self, other: StatsCollector) -> None:
        """Add what another collector of the same columns has collected."""
        self._num_records += other._num_records
        for mine, theirs in zip(self._columns, other._columns, strict=True):
            mine.merge(theirs)

    def update(self, data: pa.RecordBatch | pa.Table) -> None:
        """Add rows of the file, with physical column names.

        A column that is not there is NULL in all of them.

        Cost: one pass over each column that gets statistics.
        """
        self._num_records += data.num_rows
        for column in self._columns:
            column.update(data)

    def finish(self) -> dict[str, Any]:
        """Return the statistics as Python values; `encode_stats` makes them JSON."""
        stats: dict[str, Any] = {
            NUM_RECORDS: self._num_records,
            MIN_VALUES: {},
            MAX_VALUES: {},
            NULL_COUNT: {},
        }
        for column in self._columns:
            if column.has_bounds or column.collation is not None:
                for kind, bound in zip((MIN_VALUES, MAX_VALUES), column.bounds(), strict=True):
                    if bound is not None or column.collation is None:
                        _put(stats, leaf_of_bound(kind, column.path, column.collation), bound)
            elif column.box is not None and all(map(math.isfinite, chain(*column.box))):
                for kind, point in zip((MIN_VALUES, MAX_VALUES), column.box, strict=True):
                    _put(stats[kind], column.path, corner(point))
            _put(stats[NULL_COUNT], column.path, column.null_count)
        if self._tight_bounds:
            stats[TIGHT_BOUNDS] = True
        return stats


class _ColumnStats:
    def __init__(self, path: Path, field: Field, prefix_length: int) -> None:
        self.path = path
        self.field = field
        self.null_count = 0
        self._prefix_length = prefix_length
        self.has_bounds = has_bounds(field)
        self.collation = ruled_collation(field)
        self._arrow: Any = to_arrow_type(field.type) if self.has_bounds else None
        self._stored = (bounds_of(field.type) or Bounds()).stored
        self._low: Any = None
        self._high: Any = None
        self._has_nan = False
        self._is_unknown = False
        self._box_of = box_of(field)
        self.box: Box | None = None

    def update(self, data: pa.RecordBatch | pa.Table) -> None:
        values = find_leaf(data, self.path)
        if values is None:
            self.null_count += data.num_rows
        elif isinstance(values, pa.ChunkedArray) and not self._takes_chunks(values.type):
            for chunk in values.chunks:
                self.add(chunk, None)
        else:
            self.add(values, None)

    def _takes_chunks(self, kind: pa.DataType) -> bool:
        """Whether all chunks are looked at together: a kernel for each costs more than its rows."""
        return self.has_bounds and self.collation is None and not pt.is_dictionary(kind)

    def add(self, values: Array, null_count: int | None) -> None:
        self.null_count += values.null_count if null_count is None else null_count
        if values.null_count == len(values):
            return
        if self.has_bounds or self.collation is not None:
            self._widen(values)
        elif self._box_of is not None:
            self._cover(self._box(values))

    def merge(self, other: _ColumnStats) -> None:
        self.null_count += other.null_count
        self._has_nan = self._has_nan or other._has_nan
        self._is_unknown = self._is_unknown or other._is_unknown
        if other._low is not None:
            self._include(other._low, other._high)
        self._cover(other.box)

    def _box(self, values: Array) -> Box | None:
        try:
            return None if self._box_of is None else self._box_of(values)
        except ValueError as error:
            raise InvalidInputError(
                f"cannot write column {'.'.join(self.path)!r}: {error}"
            ) from error

    def _cover(self, box: Box | None) -> None:
        if self.box is None or box is None:
            self.box = self.box or box
            return
        low, high = (
            tuple(map(choose, mine, theirs))
            for choose, mine, theirs in zip((min, max), self.box, box, strict=True)
        )
        self.box = low, high

    def _widen(self, values: Array) -> None:
        if pt.is_dictionary(values.type):
            values = values.dictionary_decode()
        if self.collation is not None:
            from deltalog.expressions.collation_keys import keys  # noqa: PLC0415  # few columns

            # A key is equal to its text, which is all that a bound has to be.
            values = keys(values, self.collation)
        elif pt.is_temporal(values.type):
            # Counts, because Python has no moment after the year 9999.
            values = values.cast(self._arrow)
            values = values.cast(pa.int32() if self._arrow.bit_width == 32 else pa.int64())
        elif pt.is_floating(values.type):
            is_nan = pc.is_nan(values)
            if pc.any(is_nan).as_py():
                self._has_nan = True
                values = values.filter(pc.invert(is_nan))
        ends = pc.min_max(values)
        try:
            low, high = ends["min"].as_py(), ends["max"].as_py()
        except UnicodeDecodeError:  # other bytes than a text's, for which JSON has no room
            self._is_unknown = True
            return
        if low is not None:
            self._include(low, high)

    def _include(self, low: Any, high: Any) -> None:
        self._low = low if self._low is None else min(self._low, low)
        self._high = high if self._high is None else max(self._high, high)

    def bounds(self) -> tuple[Any, Any]:
        """Return the smallest and the greatest value as they are stored, None for none."""
        low, high = self._low, self._high
        if self._has_nan:
            high = math.nan
            low = high if low is None else low
        if low is None or self._is_unknown:
            return None, None
        if isinstance(low, str):
            return truncate_min(low, self._prefix_length), truncate_max(high, self._prefix_length)
        if isinstance(low, float):
            low, high = _with_both_zeros(low, high)
        return self._stored(low, self._arrow), self._stored(high, self._arrow)


def _with_both_zeros(low: float, high: float) -> tuple[float, float]:
    """Return bounds that no reader finds a zero outside of, whichever zero the rows have.

    To SQL the zeros are equal; delta-rs orders -0.0 below 0.0, and passes over a file whose maximum
    is -0.0 when it looks for 0.0. Parquet asks the same of its bounds.
    """
    return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)


def _put(tree: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    if value is not None:
        tree[path[-1]] = value
