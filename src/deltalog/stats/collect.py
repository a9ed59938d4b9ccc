"""Statistics of the rows that go into a file, batch by batch.

Owns which value is the smallest and the greatest as Spark orders them: NaN above all numbers,
texts by their bytes. How they are stored is `encode`.

Protocol: Per-file Statistics
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from deltalog.kernels import Array
from deltalog.schema.types import PrimitiveType
from deltalog.stats.encode import DEFAULT_PREFIX_LENGTH, truncate_max, truncate_min
from deltalog.stats.schema import (
    DEFAULT_NUM_INDEXED_COLUMNS,
    MAX_VALUES,
    MIN_VALUES,
    NULL_COUNT,
    NUM_RECORDS,
    TIGHT_BOUNDS,
    has_bounds,
    indexed_columns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from deltalog.schema.types import DataType, Field, StructType
    from deltalog.stats.schema import Path


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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
        """Rows seen so far."""
        return self._num_records

    def update(self, data: pa.RecordBatch | pa.Table) -> None:
        """Take more rows of the file, with physical column names.

        A column that is not there is NULL in all of them.

        Cost: one pass over each column that gets statistics.
        """
        batches = data.to_batches() if isinstance(data, pa.Table) else [data]
        for batch in batches:
            self._num_records += batch.num_rows
            for column in self._columns:
                column.update(batch)

    def finish(self) -> dict[str, Any]:
        """The statistics, as Python values; `encode_stats` makes them JSON."""
        stats: dict[str, Any] = {
            NUM_RECORDS: self._num_records,
            MIN_VALUES: {},
            MAX_VALUES: {},
            NULL_COUNT: {},
        }
        for column in self._columns:
            if column.has_bounds:
                low, high = column.bounds()
                _put(stats[MIN_VALUES], column.path, low)
                _put(stats[MAX_VALUES], column.path, high)
            _put(stats[NULL_COUNT], column.path, column.null_count)
        if self._tight_bounds:
            stats[TIGHT_BOUNDS] = True
        return stats


class _ColumnStats:
    def __init__(self, path: Path, field: Field, prefix_length: int) -> None:
        self.path = path
        self.type: DataType = field.type
        self.null_count = 0
        self._prefix_length = prefix_length
        self.has_bounds = has_bounds(field)
        self._low: Any = None
        self._high: Any = None
        self._has_nan = False

    def update(self, batch: pa.RecordBatch) -> None:
        values = _leaf(batch, self.path)
        if values is None:
            self.null_count += batch.num_rows
            return
        self.null_count += values.null_count
        if self.has_bounds and values.null_count < len(values):
            self._widen(values)

    def _widen(self, values: Array) -> None:
        if pt.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pt.is_timestamp(values.type):
            values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
        elif pt.is_date(values.type):
            values = values.cast(pa.int32())
        elif pt.is_floating(values.type):
            is_nan = pc.is_nan(values)
            if pc.any(is_nan).as_py():
                self._has_nan = True
                values = values.filter(pc.invert(is_nan))
        ends = pc.min_max(values)
        low, high = ends["min"].as_py(), ends["max"].as_py()
        if low is None:
            return
        self._low = low if self._low is None else min(self._low, low)
        self._high = high if self._high is None else max(self._high, high)

    def bounds(self) -> tuple[Any, Any]:
        """The smallest and the greatest value as they are stored, None where there is none."""
        low, high = self._low, self._high
        if self._has_nan:
            high = math.nan
            low = high if low is None else low
        if low is None:
            return None, None
        convert = _STORED.get(self.type.type) if isinstance(self.type, PrimitiveType) else None
        if convert is not None:
            return convert(low), convert(high)
        if isinstance(low, str):
            return truncate_min(low, self._prefix_length), truncate_max(high, self._prefix_length)
        return low, high


def _leaf(batch: pa.RecordBatch, path: Path) -> Array | None:
    found: Array = batch
    for name in path:
        if isinstance(found, pa.RecordBatch):
            index = found.schema.get_field_index(name)
            found = found.column(index) if index >= 0 else None
        else:
            index = found.type.get_field_index(name)
            found = pc.struct_field(found, [index]) if index >= 0 else None
        if found is None:
            return None
    return found


def _put(tree: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    if value is not None:
        tree[path[-1]] = value


def _timestamp(micros: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        # No ISO text has a year beyond 9999, and a bound may be left out.
        return None


def _timestamp_ntz(micros: int) -> datetime | None:
    moment = _timestamp(micros)
    return None if moment is None else moment.replace(tzinfo=None)


def _date(days: int) -> date | None:
    try:
        return _EPOCH.date() + timedelta(days=days)
    except OverflowError:
        return None


def _shortest(number: float) -> float:
    """The double with the fewest digits that is this float: 0.1 and not 0.10000000149011612."""
    return float(str(pa.scalar(number, pa.float32()).cast(pa.string())))


_STORED: Final[dict[str, Callable[[Any], Any]]] = {
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
    "date": _date,
    "float": _shortest,
}
