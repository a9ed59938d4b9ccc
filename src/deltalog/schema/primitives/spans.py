"""Intervals: months in 32 bits, and microseconds in 64, as data files have them.

Owns their narrower names, which engines write and which mean the same values, their constants in
SQL, and the form in which Arrow has both at once: months, days and nanoseconds.

Protocol: RFC Interval types
"""

from __future__ import annotations

import datetime as dt
from itertools import combinations
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.types as pt

from deltalog.kernels import Array, arrow, compute
from deltalog.schema.primitives.row import ValueCodec

YEAR_TO_MONTH: Final = "interval year to month"
DAY_TO_SECOND: Final = "interval day to second"
_MONTHS_OF_YEAR: Final = 12
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_MICROS_OF_DAY: Final = 86_400_000_000
_NANOS_OF_MICRO: Final = 1_000
_LOW_WORD: Final = (1 << 32) - 1
_MONTHS: Final = f"deltalog months {uuid4().hex}"  # no struct of a table has such a field
NAMED_MONTHS: Final = pa.struct([(_MONTHS, pa.int32())])
"""Months in an engine that has no such type, and takes plain numbers for numbers."""


def narrower(*fields: str) -> tuple[str, ...]:
    """Return the names of intervals between two of these fields, or of one, but for the widest."""
    spans = [f"interval {first} to {last}" for first, last in combinations(fields, 2)]
    widest = f"interval {fields[0]} to {fields[-1]}"
    return (*(f"interval {field}" for field in fields), *(one for one in spans if one != widest))


def months_constant(months: int) -> str:
    """Return a number of months as `INTERVAL '1-6' YEAR TO MONTH`."""
    years, rest = divmod(abs(months), _MONTHS_OF_YEAR)
    return f"INTERVAL '{'-' * (months < 0)}{years}-{rest}' YEAR TO MONTH"


def time_constant(span: dt.timedelta) -> str:
    """Return a span of time as `INTERVAL '1 02:03:04.5' DAY TO SECOND`."""
    micros = span // _MICROSECOND
    days, rest = divmod(abs(micros), _MICROS_OF_DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    minutes, second = divmod(seconds, 60)
    shown = f"{days} {minutes // 60:02}:{minutes % 60:02}:{second:02}"
    if fraction:
        shown += f".{fraction:06}".rstrip("0")
    return f"INTERVAL '{'-' * (micros < 0)}{shown}' DAY TO SECOND"


def calendar_intervals(values: Array) -> Array:
    """Return spans of time as Arrow's months, days and nanoseconds.

    Days are days of 24 hours: the nanoseconds of more than 292 years have no 64 bits.

    Args:
        values: of `duration[us]`.
    """
    micros = compute.fill_null(values.cast(pa.int64()), 0)
    days = compute.divide(micros, _MICROS_OF_DAY)  # towards zero: both parts have one sign
    rest = compute.subtract(micros, compute.multiply(days, _MICROS_OF_DAY))
    words = [
        compute.shift_left(days, pa.scalar(32, pa.int64())),  # months are the low half
        compute.multiply(rest, _NANOS_OF_MICRO),
    ]
    count = len(values)
    numbers = arrow.arange(0, 2 * count)
    word = compute.bit_wise_and(numbers, 1)
    row = compute.shift_right(numbers, pa.scalar(1, pa.int64()))
    mixed = pa.concat_arrays(words).take(compute.add(compute.multiply(word, count), row))
    valid = None
    if values.null_count:  # a copy, which begins at the first bit of its buffer
        valid = values.is_valid().take(arrow.arange(0, count)).buffers()[1]
    kind = pa.month_day_nano_interval()
    return pa.Array.from_buffers(kind, count, [valid, mixed.buffers()[1]])


def time_spans(intervals: Array) -> Array:
    """Return `calendar_intervals` as `duration[us]` again.

    Raises:
        ValueError: one has months, or parts of a microsecond, or more than 64 bits of them.
    """
    count, first = len(intervals), 2 * intervals.offset
    words = pa.Array.from_buffers(pa.int64(), first + 2 * count, [None, intervals.buffers()[1]])
    numbers = compute.multiply(arrow.arange(0, count), 2)
    low = words.take(compute.add(numbers, first))
    nanos = words.take(compute.add(numbers, first + 1))
    is_there = intervals.is_valid()
    low, nanos = (compute.if_else(is_there, word, 0) for word in (low, nanos))
    micros = compute.divide(nanos, _NANOS_OF_MICRO)
    has_months = compute.not_equal(compute.bit_wise_and(low, _LOW_WORD), 0)
    is_fine = compute.not_equal(compute.multiply(micros, _NANOS_OF_MICRO), nanos)
    if compute.any(compute.or_(has_months, is_fine), min_count=0).as_py():
        raise ValueError("expected an interval of days and microseconds, without months")
    days = compute.shift_right(low, pa.scalar(32, pa.int64()))
    try:
        whole = compute.add_checked(compute.multiply_checked(days, _MICROS_OF_DAY), micros)
    except pa.ArrowInvalid as error:
        raise ValueError(
            "expected an interval of no more microseconds than 64 bits hold: 292 thousand years"
        ) from error
    kept: Array = compute.if_else(is_there, whole, pa.scalar(None, pa.int64()))
    return kept.cast(pa.duration("us"))


def named_months(values: Array) -> Array:
    """Return numbers of months as values of the type `NAMED_MONTHS`."""
    named: Array = pa.StructArray.from_arrays([values], [_MONTHS], mask=values.is_null())
    return named


def _conform_time(array: Array, target: pa.DataType) -> Array | None:
    return array.cast(target) if pt.is_duration(array.type) else None


TIME_SPAN: Final = ValueCodec(conform=_conform_time)
