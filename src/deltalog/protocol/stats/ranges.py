"""Ranges (bounds of values in each file) and claims (conditions on files that use ranges).

The operands of a comparison are ranges. A constant is a range with one value. A partition value is
a range with one value for each file. A data column is a range between its minimum and maximum in
each file. The range of a cast is the cast of both ends. A claim is a condition on a file: if it is
false, no row of the file matches the predicate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from deltalog._util.kernels import FALSE, Array, compute, pc
from deltalog._util.small_arrays import small_scalar
from deltalog.errors import DeltaError
from deltalog.expressions.casts import cast
from deltalog.expressions.comparing import compare, keys
from deltalog.expressions.evaluation import evaluate
from deltalog.expressions.literals import to_scalar
from deltalog.expressions.render import shown_sql
from deltalog.expressions.trees import columns
from deltalog.protocol.stats.schema import (
    MAX_VALUES,
    MIN_VALUES,
    NULL_COUNT,
    NUM_RECORDS,
    child_of,
    leaf_of_bound,
)
from deltalog.schema.evolve import TYPE_CHANGES_KEY
from deltalog.schema.primitives import Family
from deltalog.schema.types import DOUBLE, FLOAT, DataType, Field, PrimitiveType, name_in_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from deltalog.expressions.nodes import Expression, Literal
    from deltalog.protocol.stats.schema import Path

# An Arrow array or scalar of any type. None means that the value is unknown.
Datum = Any


class Facts:
    """Statistics and partition values of files, one row per file.

    Args:
        stats: one row per file, or None if there are no statistics.
        partitions: typed partition values by logical name, one row per file, or None.
    """

    def __init__(self, stats: pa.Table | None, partitions: pa.Table | None) -> None:
        self._stats = stats
        self._partitions = partitions
        self._leaves: dict[Path, Datum] = {}

    @property
    def num_files(self) -> int:
        """The number of files."""
        sizes = [table.num_rows for table in (self._stats, self._partitions) if table is not None]
        return max(sizes, default=0)

    def leaf(self, path: Path) -> Datum:
        """Return one statistic of every file, or None if no file has it."""
        if path not in self._leaves:
            self._leaves[path] = self._find(path)
        return self._leaves[path]

    def _find(self, path: Path) -> Datum:
        if self._stats is None or (index := self._stats.schema.get_field_index(path[0])) < 0:
            return None
        column = self._stats.column(index)
        found: Datum = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        for name in path[1:]:
            found = None if found is None else child_of(found, name)
        return found

    def exact(self, expression: Expression) -> Datum:
        """Return the values of an expression on partition columns; None if evaluation fails."""
        used = {path[0] for path in columns(expression)}
        if not used:
            data = pa.table({"": pa.nulls(1)})
        elif self._partitions is None or not used <= set(self._partitions.column_names):
            return None
        else:
            data = self._partitions
        try:
            values: Any = evaluate(expression, data)
        except DeltaError:
            # Ignore the error. If a row needs this value, reading the row raises the error.
            return None
        return values.combine_chunks() if used else values[0]


class Range(Protocol):
    """A value with a lower and an upper bound in every file."""

    def lower(self, facts: Facts) -> Datum:
        """Return a lower bound of the file's values; NULL or None if unknown."""
        ...

    def upper(self, facts: Facts) -> Datum:
        """Return an upper bound of the file's values; NULL or None if unknown."""
        ...

    @property
    def low_text(self) -> str:
        """The lower end as a string, for messages."""
        ...

    @property
    def high_text(self) -> str:
        """The upper end as a string, for messages."""
        ...

    @property
    def stored(self) -> tuple[Stored, ...]:
        """The data columns from which the value is computed."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """A range with one constant value."""

    literal: Literal

    def lower(self, facts: Facts) -> Datum:
        """Return the value."""
        del facts
        return to_scalar(self.literal.value, self.literal.type)  # type: ignore[arg-type]  # `resolve` has set the type

    @property
    def low_text(self) -> str:
        """The value."""
        return shown_sql(self.literal)

    def upper(self, facts: Facts) -> Datum:
        """Return the same as `lower`."""
        return self.lower(facts)

    @property
    def high_text(self) -> str:
        """The same as `low_text`."""
        return self.low_text

    @property
    def stored(self) -> tuple[Stored, ...]:
        """No column."""
        return ()


@dataclass(frozen=True, slots=True)
class PartitionValue:
    """One value for each file, computed from its partition values."""

    expression: Expression

    def lower(self, facts: Facts) -> Datum:
        """Return the value of every file."""
        return facts.exact(self.expression)

    @property
    def low_text(self) -> str:
        """The expression."""
        return shown_sql(self.expression)

    def upper(self, facts: Facts) -> Datum:
        """Return the same as `lower`."""
        return self.lower(facts)

    @property
    def high_text(self) -> str:
        """The same as `low_text`."""
        return self.low_text

    @property
    def stored(self) -> tuple[Stored, ...]:
        """No column, because partition values have no statistics."""
        return ()


@dataclass(frozen=True, slots=True)
class Stored:
    """The range of a data column between its stored minimum and maximum.

    Args:
        name: the logical name, for messages.
        path: the physical path.
        field: the logical field.
        collation: the collation of the column. Bounds are then compared by collation keys. None
            compares bytes.
    """

    name: str
    path: Path
    field: Field
    collation: str | None = None

    @property
    def low_leaf(self) -> Path:
        """The statistic with the minimum."""
        return leaf_of_bound(MIN_VALUES, self.path, self.collation)

    @property
    def high_leaf(self) -> Path:
        """The statistic with the maximum."""
        return leaf_of_bound(MAX_VALUES, self.path, self.collation)

    def lower(self, facts: Facts) -> Datum:
        """Return the corrected minimum."""
        found = facts.leaf(self.low_leaf)
        if found is None or self.collation is not None:
            return self._keys(found)
        return correction(self.field).lower(found)

    def upper(self, facts: Facts) -> Datum:
        """Return the corrected maximum."""
        found = facts.leaf(self.high_leaf)
        if found is None or self.collation is not None:
            return self._keys(found)
        return correction(self.field).upper(found)

    def _keys(self, bounds: Datum) -> Datum:
        # Compare collation keys, because a stored bound may be any string that is equal to the
        # minimum or maximum under the collation.
        if bounds is None or self.collation is None:
            return bounds
        return keys(bounds, self.collation)

    @property
    def low_text(self) -> str:
        """The statistic's name."""
        return f"min({self.name}{self._collate})"

    @property
    def high_text(self) -> str:
        """The statistic's name."""
        return f"max({self.name}{self._collate})"

    @property
    def _collate(self) -> str:
        return "" if self.collation is None else f" COLLATE {name_in_sql(self.collation)}"

    @property
    def stored(self) -> tuple[Stored, ...]:
        """This column."""
        return (self,)


@dataclass(frozen=True, slots=True)
class CastRange:
    """The range of a cast that preserves the order of values."""

    inner: Range
    source: DataType
    to: DataType

    def lower(self, facts: Facts) -> Datum:
        """Return the lower end, cast."""
        return self._cast(self.inner.lower(facts))

    def upper(self, facts: Facts) -> Datum:
        """Return the upper end, cast."""
        return self._cast(self.inner.upper(facts))

    def _cast(self, datum: Datum) -> Datum:
        return None if datum is None else cast(datum, self.source, self.to, is_try=True)

    @property
    def low_text(self) -> str:
        """The lower end as a cast."""
        return f"CAST({self.inner.low_text} AS {self.to})"

    @property
    def high_text(self) -> str:
        """The upper end as a cast."""
        return f"CAST({self.inner.high_text} AS {self.to})"

    @property
    def stored(self) -> tuple[Stored, ...]:
        """The data columns of the range that is cast."""
        return self.inner.stored


# --- Correction of stored minima and maxima, which may be rounded or truncated


_MICROS_PER_MILLI: Final = 1_000
_MAX_INT64: Final = (1 << 63) - 1
_MIN_INT64: Final = -(1 << 63)
# Decimals with at most this number of digits are unchanged after a conversion to double and back.
_EXACT_DOUBLE_DIGITS: Final = 15
_MOST_DOUBLE_DIGITS: Final = 17
_MAX_EXACT_DOUBLE: Final = 1 << 53
_DOUBLE_ERROR: Final = 2.0**-52


@dataclass(frozen=True, slots=True)
class Correction:
    """Functions that convert a column's stored minimum and maximum to reliable bounds."""

    lower: Callable[[Array], Array]
    upper: Callable[[Array], Array]


def correction(field: Field) -> Correction:
    """Return the correction for the bounds of a column."""
    data_type = field.type
    if not isinstance(data_type, PrimitiveType):
        return _NONE
    bounds = data_type.primitive.codec.bounds
    if bounds is not None and bounds.has_millis:
        return _MILLIS
    if data_type.is_decimal and data_type.precision > _EXACT_DOUBLE_DIGITS:
        return _decimal_correction(data_type)
    if data_type == DOUBLE and _was_float(field.metadata):
        return _FORMER_FLOAT
    return _NONE


def is_taken_as_stored(field: Field) -> bool:
    """Return whether the stored bounds of a column need no correction."""
    return correction(field) is _NONE


def _same(array: Array) -> Array:
    return array


def _later(array: Array) -> Array:
    """Add one millisecond to each maximum, because writers truncate maxima to milliseconds."""
    micros = array.cast(pa.int64())
    last = pa.scalar(_MAX_INT64 - _MICROS_PER_MILLI)
    at_end = pc.greater(micros, last)
    later = pc.add(pc.min_element_wise(micros, last, skip_nulls=False), _MICROS_PER_MILLI)
    return pc.if_else(at_end, _MAX_INT64, later).cast(array.type)


def _was_float(metadata: Mapping[str, Any]) -> bool:
    changes = metadata.get(TYPE_CHANGES_KEY)
    return isinstance(changes, list) and any(
        isinstance(change, dict) and change.get("fromType") == FLOAT.type for change in changes
    )


def _float_lower(array: Array) -> Array:
    return pc.min_element_wise(array, _through_float(array), skip_nulls=False)


def _float_upper(array: Array) -> Array:
    return pc.max_element_wise(array, _through_float(array), skip_nulls=False)


def _through_float(array: Array) -> Array:
    """Round bounds to float, for a column that was widened to double.

    An old bound is the decimal form of a float: as a double, 0.1 is 0.10000000149011612.
    """
    return array.cast(pa.float32(), safe=False).cast(pa.float64())


def _decimal_correction(data_type: PrimitiveType) -> Correction:
    """Return the correction of decimals, whose bounds delta-rs writes as doubles.

    Such a bound can be wrong by half a unit in the double's last place. delta-rs 1.6 even writes
    the limits of int64 for larger decimals without fraction.
    """
    # Build the number from digits, because Python's decimal arithmetic rounds to 28 digits, even
    # for a change of sign.
    most = Decimal((0, (9,) * data_type.precision, -data_type.scale))

    def lower(array: Array) -> Array:
        return _widened(array, data_type, -1, pa.scalar(most.copy_negate(), _wide(data_type)))

    def upper(array: Array) -> Array:
        return _widened(array, data_type, 1, pa.scalar(most, _wide(data_type)))

    return Correction(lower, upper)


def _wide(data_type: PrimitiveType) -> pa.DataType:
    return pa.decimal256(data_type.precision + 1, data_type.scale)


def _widened(array: Array, data_type: PrimitiveType, sign: int, limit: Any) -> Array:
    suspect = _may_be_rounded(array, data_type)
    if not pc.any(suspect).as_py():
        return array
    wide = _wide(data_type)
    margin = pc.multiply(pc.abs(array.cast(pa.float64())), sign * _DOUBLE_ERROR)
    # Convert the margin to the scale of the column, so that the sum has this scale, too.
    margin = pc.cast(margin, pa.decimal256(data_type.precision, data_type.scale))
    moved = pc.add(array.cast(margin.type), margin).cast(wide)
    choose = pc.max_element_wise if sign < 0 else pc.min_element_wise
    moved = choose(moved, limit, skip_nulls=False).cast(array.type)
    widened = pc.if_else(suspect, moved, array)
    if data_type.scale:
        return widened
    ends = pa.array([Decimal(_MIN_INT64), Decimal(_MAX_INT64)], pa.decimal128(38, 0))
    clamped = pc.is_in(array.cast(pa.decimal128(38, 0)), value_set=ends)
    return pc.if_else(clamped, small_scalar(None, array.type), widened)


def _may_be_rounded(array: Array, data_type: PrimitiveType) -> Array:
    """Return for each value whether it may have been written as a double, by its digits."""
    digits = pc.replace_substring_regex(array.cast(pa.string()), r"E.*|^-|\.", "")
    digits = pc.utf8_length(pc.utf8_trim(digits, "0"))
    few = pc.less_equal(digits, small_scalar(_MOST_DOUBLE_DIGITS, digits.type))
    if data_type.scale:
        return few
    # Whole numbers are written with all digits, including digits beyond a double's precision.
    large = pc.greater(pc.abs(array.cast(pa.float64())), pa.scalar(float(_MAX_EXACT_DOUBLE)))
    return pc.or_(few, large)


_NONE: Final = Correction(_same, _same)
_MILLIS: Final = Correction(_same, _later)
_FORMER_FLOAT: Final = Correction(_float_lower, _float_upper)


def keeps_order(source: DataType, to: DataType) -> bool:
    """Return whether a cast preserves the order of values, and never fails.

    A cast between strings and numbers does not preserve the order. A narrowing cast fails for some
    values.
    """
    if source == to:
        return True
    if not isinstance(source, PrimitiveType) or not isinstance(to, PrimitiveType):
        return False
    one, other = source.primitive, to.primitive
    if one.family is other.family is Family.MOMENT:
        return True
    if other.family is Family.FLOATING:
        return one.family in _EXACT or source == FLOAT
    if one.family is other.family is Family.INTEGRAL:
        return one.bits <= other.bits
    return to.is_decimal and one.family in _EXACT and _fits_decimal(source, to)


def _fits_decimal(source: PrimitiveType, to: PrimitiveType) -> bool:
    whole = to.precision - to.scale
    if source.is_decimal:
        return source.precision - source.scale <= whole and source.scale <= to.scale
    return source.primitive.digits <= whole


_EXACT: Final = frozenset({Family.INTEGRAL, Family.DECIMAL})


# --- Claims about files, evaluated by statistics and partition values


class Claim(Protocol):
    """A condition on a file; if it is false, no row of the file matches the predicate."""

    def judge(self, facts: Facts) -> Datum:
        """Return true, false or NULL (unknown) for each file; None if unknown for all files."""
        ...

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Yield the statistics that the claim uses.

        Minimum and maximum have the type of their column; counts have the type None.
        """
        ...

    def lines(self) -> Iterator[str]:
        """Yield the claim as lines of text for messages; parts of a claim are indented."""
        ...


class _WithoutStatistics:
    """A claim that uses no statistics."""

    __slots__ = ()

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Return no statistics."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Unknown(_WithoutStatistics):
    """A condition that statistics cannot decide: any file may have a matching row."""

    expression: Expression

    def judge(self, facts: Facts) -> Datum:
        """Return None: unknown for all files."""
        del facts

    def lines(self) -> Iterator[str]:
        """Yield the condition as one line of text for messages."""
        yield f"not decided by statistics: {shown_sql(self.expression)}"


@dataclass(frozen=True, slots=True)
class Never(_WithoutStatistics):
    """A condition that no row can match: a comparison with NULL, or `> NaN`."""

    expression: Expression

    def judge(self, facts: Facts) -> Datum:
        """Return false."""
        del facts
        return FALSE

    def lines(self) -> Iterator[str]:
        """Yield the condition as one line of text for messages."""
        yield f"never true: {shown_sql(self.expression)}"


@dataclass(frozen=True, slots=True)
class Exact(_WithoutStatistics):
    """A condition on partition values only; if it is NULL, no row matches."""

    condition: Expression

    def judge(self, facts: Facts) -> Datum:
        """Return the condition's value, NULL as false."""
        found = facts.exact(self.condition)
        return None if found is None else pc.coalesce(found, FALSE)

    def lines(self) -> Iterator[str]:
        """Yield the condition as one line of text for messages."""
        kind = "partition values" if columns(self.condition) else "constant"
        yield f"{kind}: {shown_sql(self.condition)}"


@dataclass(frozen=True, slots=True)
class AllOf:
    """A claim that is true if all of its parts are true."""

    parts: tuple[Claim, ...]

    def judge(self, facts: Facts) -> Datum:
        """Return false for files for which at least one part is false."""
        found: Datum = None
        for part in self.parts:
            answer = part.judge(facts)
            if answer is not None:
                found = answer if found is None else pc.and_kleene(found, answer)
        return found

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Yield the statistics of all parts."""
        for part in self.parts:
            yield from part.leaves()

    def lines(self) -> Iterator[str]:
        """Yield the conditions of the parts as lines of text for messages."""
        for part in self.parts:
            yield from part.lines()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A claim that is true if at least one of its parts is true."""

    parts: tuple[Claim, ...]

    def judge(self, facts: Facts) -> Datum:
        """Return false for files for which all parts are false."""
        found: Datum = None
        for part in self.parts:
            answer = part.judge(facts)
            if answer is None:
                return None
            found = answer if found is None else pc.or_kleene(found, answer)
        return found

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Yield the statistics of all parts."""
        for part in self.parts:
            yield from part.leaves()

    def lines(self) -> Iterator[str]:
        """Yield the conditions of the parts as lines of text for messages."""
        yield "any of"
        for part in self.parts:
            yield from (f"  {line}" for line in part.lines())


@dataclass(frozen=True, slots=True)
class HasNull:
    """The claim that a column is NULL in some row: its null count is not zero.

    This is also correct for a file with `tightBounds` false. In such a file, a null count of zero
    is still exact.
    """

    name: str
    path: Path

    def judge(self, facts: Facts) -> Datum:
        """Return whether the null count is not zero."""
        count = facts.leaf((NULL_COUNT, *self.path))
        return None if count is None else compute.not_equal(count, 0)

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Yield the null count."""
        yield (NULL_COUNT, *self.path), None

    def lines(self) -> Iterator[str]:
        """Yield the condition as one line of text for messages."""
        yield f"{self.name} is NULL in some row"


@dataclass(frozen=True, slots=True)
class HasValue:
    """The claim that a column has a value in some row: there are fewer NULLs than rows."""

    name: str
    path: Path

    def judge(self, facts: Facts) -> Datum:
        """Return whether not all rows are NULL; both counts include deleted rows."""
        count, rows = facts.leaf((NULL_COUNT, *self.path)), facts.leaf((NUM_RECORDS,))
        return None if count is None or rows is None else pc.not_equal(count, rows)

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Yield the null count and the row count."""
        yield (NUM_RECORDS,), None
        yield (NULL_COUNT, *self.path), None

    def lines(self) -> Iterator[str]:
        """Yield the condition as one line of text for messages."""
        yield f"{self.name} is not NULL in some row"


@dataclass(frozen=True, slots=True)
class Compare:
    """The claim that `left operator right` is true for some values of two ranges."""

    operator: str
    left: Range
    right: Range

    def judge(self, facts: Facts) -> Datum:
        """Return whether the comparison can be true for values in the ranges."""
        left, right = self.left, self.right
        match self.operator:
            case "<" | "<=":
                return _ask(self.operator, left.lower, right.upper, facts)
            case ">" | ">=":
                return _ask(self.operator, left.upper, right.lower, facts)
            case "<>":
                # The result is false only if both ranges consist of the same single value.
                differs = _ask("<>", left.lower, right.upper, facts)
                return _join(
                    pc.or_kleene, differs, _ask("<>", left.upper, right.lower, facts), all_of=True
                )
            case _:
                reaches = _ask("<=", left.lower, right.upper, facts)
                return _join(pc.and_kleene, reaches, _ask(">=", left.upper, right.lower, facts))

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Yield the bounds that the operator needs."""
        for side, other in ((self.left, ">"), (self.right, "<")):
            for column in side.stored:
                if not self.operator.startswith(other) or self.operator == "<>":
                    yield column.low_leaf, column.field.type
                if self.operator in {"=", "<>"} or self.operator.startswith(other):
                    yield column.high_leaf, column.field.type

    def lines(self) -> Iterator[str]:
        """Yield the comparison of bounds."""
        left, right = self.left, self.right
        match self.operator:
            case "<" | "<=":
                yield f"{left.low_text} {self.operator} {right.high_text}"
            case ">" | ">=":
                yield f"{left.high_text} {self.operator} {right.low_text}"
            case "<>":
                yield f"not ({left.low_text} = {left.high_text} = {right.low_text})"
            case _:
                yield f"{left.low_text} <= {right.high_text}"
                yield f"{left.high_text} >= {right.low_text}"


@dataclass(frozen=True, slots=True)
class Prefix:
    """The claim that some string in a range starts with a prefix; if negated, does not start so."""

    value: Range
    prefix: str
    negated: bool = False

    def judge(self, facts: Facts) -> Datum:
        """Return whether the range may contain strings with the prefix (negated: without it)."""
        low, high = self.value.lower(facts), self.value.upper(facts)
        if low is None or high is None:
            return None
        if self.negated:
            inside = [pc.starts_with(end, self.prefix) for end in (low, high)]
            return pc.invert(pc.and_kleene(*inside))
        start = pc.utf8_slice_codeunits(low, 0, len(self.prefix))
        prefix: Datum = small_scalar(self.prefix, pa.string())
        return pc.and_kleene(pc.less_equal(start, prefix), pc.greater_equal(high, prefix))

    def leaves(self) -> Iterator[tuple[Path, DataType | None]]:
        """Yield both bounds."""
        for column in self.value.stored:
            yield column.low_leaf, column.field.type
            yield column.high_leaf, column.field.type

    def lines(self) -> Iterator[str]:
        """Yield the range and the prefix."""
        ends = f"between {self.value.low_text} and {self.value.high_text}"
        does = "does not start" if self.negated else "starts"
        yield f"a string {ends} {does} with {self.prefix!r}"


def _ask(
    operator: str,
    left: Callable[[Facts], Datum],
    right: Callable[[Facts], Datum],
    facts: Facts,
) -> Datum:
    try:
        one, other = left(facts), right(facts)
        return None if one is None or other is None else compare(operator, one, other)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, DeltaError):
        # The values cannot be compared, so the claim is unknown.
        return None


def _join(
    kernel: Callable[[Datum, Datum], Datum], one: Datum, other: Datum, *, all_of: bool = False
) -> Datum:
    if one is None or other is None:
        return None if all_of else (other if one is None else one)
    return kernel(one, other)


def is_nan(value: object) -> bool:
    """Return whether a constant is NaN.

    The minimum and maximum of a file may ignore NaN, so a comparison with NaN cannot use them.
    """
    return isinstance(value, float) and math.isnan(value)
