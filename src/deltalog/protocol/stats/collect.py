"""Collect the statistics of a new file batch by batch, and encode them as JSON.

Minimum and maximum use Spark's order: NaN is greater than all numbers, and strings are compared by
bytes or by the collation of their column.

Protocol: Per-file Statistics
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.json import Lexeme, dumps, parse_lexemes
from deltalog._util.kernels import FALSE, Array, arrow, compute, pc
from deltalog._util.small_arrays import small_scalar
from deltalog.errors import InternalError, InvalidInputError, MalformedLogError
from deltalog.protocol.stats.schema import (
    DEFAULT_NUM_INDEXED_COLUMNS,
    MAX_VALUES,
    MIN_VALUES,
    NULL_COUNT,
    NUM_RECORDS,
    TIGHT_BOUNDS,
    bounds_in_arrow,
    bounds_of,
    box_of,
    find_leaf,
    has_bounds,
    indexed_columns,
    leaf_of_bound,
)
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.collations import ruled_collation
from deltalog.schema.primitives import Bounds
from deltalog.schema.primitives.numbers import java_word
from deltalog.schema.primitives.places import corner
from deltalog.schema.primitives.strings import join

if TYPE_CHECKING:
    from deltalog.protocol.stats.schema import Path
    from deltalog.schema.primitives.row import Box
    from deltalog.schema.types import Field, StructType


# --- The JSON form of statistics, with strings and times truncated as in Delta Spark


DEFAULT_PREFIX_LENGTH: Final = 32

_GREATEST_ASCII: Final = "\x7f"
_GREATEST_CHARACTER: Final = "\U0010ffff"


def truncate_min(text: str, length: int = DEFAULT_PREFIX_LENGTH) -> str:
    """Return a prefix of a string, as a lower bound of the string.

    Args:
        text: the smallest value.
        length: maximum number of characters.
    """
    return text[:length]


def truncate_max(text: str, length: int = DEFAULT_PREFIX_LENGTH) -> str | None:
    """Return a short upper bound of a string; None if there is no short upper bound.

    The bound is a prefix of the string with a greater last character, because a plain prefix would
    be less than the string. Lengths are in UTF-16 units, as in Delta, and no surrogate pair is
    split.

    Args:
        text: the greatest value.
        length: number of UTF-16 units of the prefix; up to twice as many if no character is
            greater.
    """
    size = 0
    for position, char in enumerate(text):
        if size >= length:
            if size > 2 * length:
                return None
            if char < _GREATEST_ASCII:
                return text[:position] + _GREATEST_ASCII
            if char < _GREATEST_CHARACTER:
                return text[:position] + _GREATEST_CHARACTER
        size += 1 if char <= "\uffff" else 2
    return text if size <= 2 * length else None


def encode_stats(stats: Mapping[str, Any]) -> str:
    """Return the JSON string of one file's statistics.

    Args:
        stats: the result of `StatsCollector.finish`; statistics that are None are omitted.
    """
    return _encode(stats)


def with_wide_bounds(text: str | None, *, num_records: int) -> str:
    """Return the statistics for a file with a new deletion vector: `tightBounds` becomes false.

    Args:
        text: the current statistics; None or a malformed string means no statistics.
        num_records: the number of physical rows of the file, including deleted rows.

    Protocol: Per-file Statistics (`tightBounds`), Deletion Vectors (Writer Requirements)
    """
    try:
        known = parse_lexemes(text) if text else {}
    except MalformedLogError:
        known = {}
    stats = known if isinstance(known, dict) else {}
    return _encode({**stats, NUM_RECORDS: num_records, TIGHT_BOUNDS: False})


def encode_stats_column(stats: pa.Table) -> pa.ChunkedArray[Any]:
    """Return the JSON string of each row of a table of statistics; NULL without statistics.

    Cost: some vectorised kernels per leaf; strings that need JSON escapes are encoded one by one.
    """
    chunks = []
    for batch in stats.to_batches():
        texts, has_any = _objects(list(batch.schema), batch.columns, batch.num_rows)
        chunks.append(pc.if_else(has_any, texts, _no_text()))
    return pa.chunked_array(chunks, pa.string())


def _objects(
    fields: Sequence[pa.Field[Any]], columns: Sequence[Array], num_rows: int
) -> tuple[Array, Array]:
    """Return each row's JSON object without NULL members, and whether the object has members."""
    inner: Array = arrow.repeat(small_scalar("", pa.string()), num_rows)
    found: Array = pa.repeat(FALSE, num_rows)
    for field, column in zip(fields, columns, strict=True):
        if pt.is_struct(field.type):
            children = list(field.type)
            parts = [pc.struct_field(column, [index]) for index in range(len(children))]
            texts, has_any = _objects(children, parts, num_rows)
            texts = pc.if_else(pc.is_valid(column), texts, _no_text())
        else:
            texts = _texts(column)
            has_any = pc.is_valid(texts)
        # Join the members one by one. A single join that skips NULLs would drop rows whose members
        # are all NULL (pyarrow 26).
        member = join(f"{dumps(field.name).decode()}:", texts)
        comma = pc.if_else(
            pc.and_(compute.not_equal(inner, ""), pc.is_valid(member)),
            ",",
            "",
        )
        inner = join(inner, comma, pc.coalesce(member, small_scalar("", pa.string())))
        found = pc.or_(found, has_any)
    return join("{", inner, "}"), found


def _no_text() -> Any:
    return small_scalar(None, pa.string())


def _texts(values: Array) -> Array:
    texts = bounds_in_arrow(values.type).texts
    return values.cast(pa.string()) if texts is None else texts(values)


def _encode(value: Any) -> str:
    match value:
        case Mapping():
            members = (
                f"{_encode(str(name))}:{_encode(part)}"
                for name, part in value.items()
                if part is not None
            )
            return "{" + ",".join(members) + "}"
        case Lexeme() | Decimal():
            return format(value, "f") if isinstance(value, Decimal) else str(value)
        case float() if (word := java_word(value)) is not None:
            # JSON has no NaN and no infinities, so Delta writes Java's names of these values as
            # strings.
            return f'"{word}"'
        case bool() | int() | float() | str() | list():
            return dumps(value).decode()
        case datetime():
            return f'"{_moment_text(value)}"'
        case date():
            return f'"{value.isoformat()}"'
        case _:
            raise InternalError(f"a statistic cannot have the value {value!r}")


def _moment_text(moment: datetime) -> str:
    """Return the ISO string of a time, truncated to milliseconds."""
    if moment.tzinfo is None:
        return moment.isoformat(timespec="milliseconds")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


# --- Collecting statistics of rows, batch by batch


class StatsCollector:
    """The statistics of one data file, as Delta Spark writes them.

    Args:
        schema: the physical schema of the file, without partition columns.
        num_indexed_columns: the number of leaf columns with statistics; -1 means all.
        columns: the physical paths of the columns with statistics, instead of a number.
        prefix_length: the maximum number of characters of string bounds.
        tight_bounds: whether to write `tightBounds`, which tables with deletion vectors need.

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
        """Return whether the column with this number gets a minimum and a maximum."""
        return self._columns[number].has_bounds

    def needs_values(self, number: int) -> bool:
        """Return whether a column needs all values, because it is not ordered by bytes."""
        return self._columns[number].collation is not None

    def count_rows(self, num_rows: int) -> None:
        """Count rows; `update_column` adds their columns one by one."""
        self._num_records += num_rows

    def update_column(self, number: int, values: Array, *, null_count: int | None = None) -> None:
        """Add values of one column.

        Args:
            number: the number of the column in `columns`.
            values: all values; or, if `null_count` is given, only the smallest and greatest value.
            null_count: the number of NULLs among all values.
        """
        self._columns[number].add(values, null_count)

    def merge(self, other: StatsCollector) -> None:
        """Add the statistics of another collector of the same columns."""
        self._num_records += other._num_records
        for mine, theirs in zip(self._columns, other._columns, strict=True):
            mine.merge(theirs)

    def update(self, data: pa.RecordBatch | pa.Table) -> None:
        """Add rows of the file, with physical column names.

        A missing column is NULL in all rows.

        Cost: one pass over each column that gets statistics.
        """
        self._num_records += data.num_rows
        for column in self._columns:
            column.update(data)

    def finish(self) -> dict[str, Any]:
        """Return the statistics as Python values; `encode_stats` converts them to JSON."""
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
        """Return whether to process all chunks together, because a call per chunk is slow."""
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
            from deltalog.expressions.comparing import keys  # noqa: PLC0415  # few columns have a collation

            # A collation key equals its string under the collation, so it is a valid bound.
            values = keys(values, self.collation)
        elif pt.is_temporal(values.type):
            # Use integers, because Python cannot represent times after the year 9999.
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
        except UnicodeDecodeError:  # JSON cannot contain a string that is not UTF-8
            self._is_unknown = True
            return
        if low is not None:
            self._include(low, high)

    def _include(self, low: Any, high: Any) -> None:
        self._low = low if self._low is None else min(self._low, low)
        self._high = high if self._high is None else max(self._high, high)

    def bounds(self) -> tuple[Any, Any]:
        """Return the smallest and the greatest value in stored form, or None."""
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
    """Return bounds that include both zeros, if one of the bounds is zero.

    In SQL, -0.0 and 0.0 are equal. But delta-rs orders -0.0 below 0.0, so it would skip a file with
    the maximum -0.0 when it searches for 0.0. Parquet also requires such bounds.
    """
    return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)


def _put(tree: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    if value is not None:
        tree[path[-1]] = value
