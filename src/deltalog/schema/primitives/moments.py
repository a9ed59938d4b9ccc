"""Codecs of dates and timestamps, and the string formats of different writers.

Protocol: Primitive Types, Partition Value Serialization, Per-file Statistics
"""

from __future__ import annotations

import datetime as dt
import re
from itertools import combinations
from typing import Any, Final, TypeGuard
from uuid import uuid4
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.clock import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    date_text,
    days_from_civil,
    moment_text,
    region_offset_micros,
)
from deltalog._util.kernels import Array, Datum, arrow, compute
from deltalog.errors import InvalidInputError
from deltalog.schema.primitives.row import Bounds, ValueCodec
from deltalog.schema.primitives.strings import all_match, check_kind, check_match, join

EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # a local time without a time zone
NANOS_OF_MICRO: Final = 1_000
LIKE_UTC: Final = frozenset({None, "UTC", "Etc/UTC", "+00:00", "Z"})
"""Time zones of Arrow's timestamps whose clocks show the stored number; None is no zone."""
_FINE: Final = "TIMESTAMP_NANOS"
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_ANY_MOMENT: Final = re.compile(
    r"(\d{4}|\+?\d{5,6}|-\d{4,6})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s?(Z|UTC|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)
_ANY_DATE: Final = r"(?:\d{4}|\+?\d{5,7}|-\d{4,7})-\d{1,2}-\d{1,2}"
_DATE: Final = r"\d{4}-\d{2}-\d{2}"
_MOMENT: Final = _DATE + r"[ T]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?Z?"
_BOUND: Final = re.compile(
    r"(\d{4}|\+?\d{5,7}|-\d{4,7})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,18}))?)?)?"
    r"\s*(Z|UTC|[+-]\d\d(?::?\d\d(?::\d\d)?)?)?"
)
# The years 1 to 9999. Bounds in other years are omitted, because ISO 8601 needs a sign for most of
# them, and many readers do not support the sign.
_YEAR_1_US: Final = -62_135_596_800_000_000
_YEAR_9999_US: Final = 253_402_300_799_999_999
_LEAST_INT64: Final = -(1 << 63)


def instant_micros(text: str, time_zone: str) -> int:
    """Parse a date and time, with or without a zone, to microseconds since 1970 in UTC.

    Raises:
        ValueError: the string is not a date and time.
        OverflowError: the microseconds are out of the range of 64 bits.
        InvalidInputError: the time zone does not exist.
    """
    micros, zone = _wall_clock_micros(text)
    return _in_64_bits(micros - offset_micros_of(zone or time_zone, micros))


def offset_micros_of(zone: str, wall_clock: int) -> int:
    """Return the offset of a zone from UTC, in microseconds, at a local time.

    Args:
        zone: an IANA name, or an offset such as `+02:00`.
        wall_clock: the local time as microseconds since 1970.

    Raises:
        InvalidInputError: the time zone does not exist.
    """
    if zone in {"Z", "UTC"}:
        return 0
    fixed = re.fullmatch(r"([+-])(\d{2}):?(\d{2})", zone)
    if fixed is not None:
        minutes = int(fixed[2]) * 60 + int(fixed[3])
        if minutes > 18 * 60:
            raise ValueError(f"{zone} is not an offset from UTC")
        return (-minutes if fixed[1] == "-" else minutes) * 60 * MICROS_PER_SECOND
    return region_offset_micros(_zone(zone), wall_clock)


def instants(wall_clocks: Array, zone: str) -> Array:
    """Convert local times in a zone to timestamps.

    As in Java: if clocks are set back, a repeated local time means the first of its two instants.
    If clocks are set forward, the offset before the change is used for a skipped local time.

    Args:
        wall_clocks: local times, of type `timestamp_ntz`.
        zone: a name or offset that Arrow supports.
    """
    found = _in_zone(wall_clocks, zone)
    is_there = compute.equal(compute.local_timestamp(found), wall_clocks)
    if not compute.all(is_there, min_count=0).as_py():
        day = pa.scalar(MICROS_PER_DAY, pa.duration("us"))
        skipped = compute.add(_in_zone(compute.subtract(wall_clocks, day), zone), day)
        found = compute.if_else(is_there, found, skipped)
    return compute.cast(found, pa.timestamp("us", "UTC"))


def _in_zone(wall_clocks: Array, zone: str) -> Array:
    return compute.assume_timezone(wall_clocks, zone, ambiguous="earliest", nonexistent="latest")


def wall_clocks(instants: Array, zone: str) -> Array:
    """Convert timestamps to local times in a zone, of type `timestamp_ntz`."""
    return compute.local_timestamp(compute.cast(instants, pa.timestamp("us", zone)))


def date_literal(value: Any) -> str | None:
    """Return the string for a literal `DATE'…'`."""
    is_date = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    return value.isoformat() if is_date else None


def wall_clock_literal(value: Any) -> str | None:
    """Return the string for a literal `TIMESTAMP_NTZ'…'`."""
    is_naive = isinstance(value, dt.datetime) and value.tzinfo is None
    return value.isoformat(sep=" ") if is_naive else None


def instant_literal(value: Any) -> str | None:
    """Return the string for a literal `TIMESTAMP'…'`, with the zone UTC."""
    if not isinstance(value, dt.datetime) or value.tzinfo is None:
        return None
    return f"{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(sep=' ')}Z"


def fine_constant(nanos: int, *, has_zone: bool) -> str:
    """Format nanoseconds since 1970 as `CAST('…' AS TIMESTAMP_NANOS)`."""
    micros, rest = divmod(nanos, NANOS_OF_MICRO)
    moment = EPOCH + dt.timedelta(microseconds=micros)
    text = f"{moment.isoformat(sep=' ', timespec='microseconds')}{rest:03}"
    return f"CAST('{text}Z' AS {_FINE})" if has_zone else f"CAST('{text}' AS {_FINE}_NTZ)"


def counted_date(days: int) -> str:
    """Return the string for a literal `DATE'…'`, from days since 1970."""
    return date_text(days)


def counted_wall_clock(micros: int) -> str:
    """Return the string for a literal `TIMESTAMP_NTZ'…'`, from microseconds since 1970."""
    return moment_text(micros, sep=" ")


def counted_instant(micros: int) -> str:
    """Return the string for a literal `TIMESTAMP'…'` in UTC, from microseconds since 1970."""
    return f"{moment_text(micros, sep=' ')}Z"


def values_or_counts(array: Array) -> list[Any]:
    """Return Python values of an array, with numbers for dates and times outside Python's range.

    Returns:
        The result of `to_pylist`. Instead of a date before the year 1 or after 9999, it contains
        the
            days since 1970; instead of such a timestamp, the microseconds since 1970.
    """
    try:
        return list(array.to_pylist())
    except (OverflowError, ValueError):
        return [value_or_count(one) for one in array]


def value_or_count(scalar: pa.Scalar[Any]) -> Any:
    """Return the Python value of a scalar; see `values_or_counts`.

    Raises:
        OverflowError: a list or struct contains a date or time outside of Python's range.
    """
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        if not isinstance(scalar, pa.Date32Scalar | pa.TimestampScalar):
            raise
        counted: Any = scalar
        return counted.value


def is_missing(value: object) -> bool:
    """Return whether a value is None, or `NaT` or `NA` of pandas, which mean the same."""
    kind = type(value)
    return value is None or (
        kind.__name__ in {"NaTType", "NAType"} and kind.__module__.startswith("pandas.")
    )


def micros_of(moment: dt.datetime) -> int:
    """Return microseconds since 1970 for a datetime: in UTC, or in local time if it is naive."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    return (moment - EPOCH) // _MICROSECOND


def has_nanoseconds(arrow_type: Any) -> TypeGuard[pa.TimestampType[Any, Any]]:
    """Return whether an Arrow type is a timestamp in nanoseconds."""
    return pt.is_timestamp(arrow_type) and arrow_type.unit == "ns"


def parted_nanos(values: Datum) -> tuple[Datum, Datum]:
    """Convert nanoseconds to microseconds, rounded down; also return whether each value is exact.

    Args:
        values: timestamps in nanoseconds: an array, or a constant.

    Returns:
        The microseconds as integers, and a boolean for each value that is true if it is exact.
    """
    nanos = compute.cast(values, pa.int64())
    micros = compute.divide(nanos, NANOS_OF_MICRO)  # rounds towards zero
    again = compute.multiply(micros, NANOS_OF_MICRO)
    floored = compute.subtract(micros, compute.cast(compute.less(nanos, again), pa.int64()))
    return floored, compute.equal(again, nanos)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError) as error:
        raise InvalidInputError(
            f"there is no time zone {name!r}: expected an IANA name such as 'Europe/Berlin', "
            "or an offset such as '+02:00'"
        ) from error


def _wall_clock_micros(text: str) -> tuple[int, str | None]:
    """Parse a string; return its local time in microseconds since 1970, and its zone."""
    match = _ANY_MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a date and time")
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    fraction = (match[7] or "").ljust(6, "0")
    if fraction[6:].strip("0"):
        raise ValueError(f"{text!r} is finer than a microsecond")
    days = days_from_civil(year, month, day)
    if days is None or hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{text!r} is not a date and time")
    clock = (hour * 60 + minute) * 60 + second
    return days * MICROS_PER_DAY + clock * MICROS_PER_SECOND + int(fraction[:6]), match[8]


def _in_64_bits(micros: int) -> int:
    if not _LEAST_INT64 <= micros < -_LEAST_INT64:
        raise OverflowError("the microseconds of the moment do not fit 64 bits")
    return micros


def _conform_date(array: Array, target: Any) -> Array | None:
    return array.cast(target) if pt.is_date(array.type) else None


def _conform_moment(array: Array, target: Any) -> Array | None:
    found = array.type
    if pt.is_date(found):
        return array.cast(target) if target.tz is None else None
    if not pt.is_timestamp(found):
        return None
    if target.tz is None and found.tz not in LIKE_UTC:
        return None  # unclear: convert to local time or to UTC?
    # Arrow stores instants in UTC, so replacing the zone in the type does not change the instant.
    # A timestamp without a zone is treated as UTC.
    return array.view(pa.timestamp(found.unit)).cast(pa.timestamp(target.unit)).view(target)


def _parse_date(texts: pa.StringArray, arrow_type: pa.DataType, _zone: str) -> Array:
    check_match(texts, _ANY_DATE)
    if all_match(texts, _DATE):
        plain: Array = texts.cast(arrow_type)
        return plain
    days = [None if text is None else _day(text) for text in texts.to_pylist()]
    counted: Array = pa.array(days, pa.int32()).cast(arrow_type)
    return counted


def _day(text: str) -> int:
    year, month, day = text.rsplit("-", 2)
    days = days_from_civil(int(year), int(month), int(day))
    if days is None:
        raise ValueError(f"the day {text!r} does not exist")
    return days


def _parse_instant(texts: pa.StringArray, arrow_type: pa.DataType, zone: str) -> Array:
    if zone == "UTC" and all_match(texts, _MOMENT):
        return _wall_clock(texts).cast(arrow_type)
    micros = [None if text is None else instant_micros(text, zone) for text in texts.to_pylist()]
    return pa.array(micros, pa.int64()).cast(arrow_type)


def _parse_wall_clock(texts: pa.StringArray, arrow_type: pa.DataType, _zone: str) -> Array:
    if all_match(texts, _MOMENT):
        return _wall_clock(texts)
    micros = [None if text is None else _wall_clock_only(text) for text in texts.to_pylist()]
    return pa.array(micros, pa.int64()).cast(arrow_type)


def _wall_clock_only(text: str) -> int:
    micros, zone = _wall_clock_micros(text)
    if zone not in {None, "Z", "UTC"}:
        raise ValueError(f"{text!r} has a time zone")
    return _in_64_bits(micros)


def _wall_clock(texts: pa.StringArray) -> Array:
    return compute.ascii_rtrim(texts, "Z").cast(pa.timestamp("us"))


def _is_count(value: Any, *, per_day: int) -> TypeGuard[int]:
    """Whether a value is a number that represents a date or time; see `values_or_counts`."""
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return not _YEAR_1_US <= value * (MICROS_PER_DAY // per_day) <= _YEAR_9999_US


def _encode_date(value: Any, _arrow_type: pa.DataType) -> str:
    if _is_count(value, per_day=1):
        return date_text(value)
    check_kind(value, dt.date)
    if isinstance(value, dt.datetime):
        raise TypeError("found a datetime")
    return str(value.isoformat())


def _encode_instant(value: Any, _arrow_type: pa.DataType) -> str:
    if _is_count(value, per_day=MICROS_PER_DAY):
        return f"{moment_text(value, sep='T')}Z"
    check_kind(value, dt.datetime)
    offset = value.utcoffset()
    if offset is None:
        raise TypeError("found a datetime without a time zone")
    micros = (value.replace(tzinfo=None) - EPOCH - offset) // _MICROSECOND
    return f"{moment_text(micros, sep='T')}Z"


def _encode_wall_clock(value: Any, _arrow_type: pa.DataType) -> str:
    if _is_count(value, per_day=MICROS_PER_DAY):
        timespec = "microseconds" if value % MICROS_PER_SECOND else "seconds"
        return moment_text(value, sep=" ", timespec=timespec)
    check_kind(value, dt.datetime)
    if value.utcoffset() is not None:
        raise TypeError("found a datetime with a time zone")
    timespec = "microseconds" if value.microsecond else "seconds"
    return str(value.isoformat(sep=" ", timespec=timespec))


def _read_bounds(texts: Array, to: Any) -> Array:
    """Parse strings as dates or times; NULL for invalid ones.

    Cost: one pass for ISO strings, otherwise some microseconds per distinct string.
    """
    try:
        return texts.cast(to)
    except pa.ArrowInvalid:
        pass
    # Parse each distinct string only once, because many bounds are equal.
    encoded = texts.dictionary_encode()
    naive = pt.is_date(to) or to.tz is None
    micros = [_bound_micros(text, naive=naive) for text in encoded.dictionary.to_pylist()]
    moments: Array = pa.array(micros, pa.int64()).cast(pa.timestamp("us"))
    # If the bound of a date column is a timestamp, use the day of the timestamp.
    days = compute.floor_temporal(moments, unit="day") if pt.is_date(to) else moments.cast("int64")
    return days.cast(to).take(encoded.indices)


def _bound_micros(text: str, *, naive: bool) -> int | None:
    """Return the microseconds since 1970 for an ISO string; a string without zone is in UTC.

    Args:
        text: the string; digits after the microseconds are ignored.
        naive: whether the type has no zone. Some writers append a `Z`, which is then ignored.
    """
    match = _BOUND.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    offset = _bound_offset(zone)
    if naive and offset:
        return None
    days = days_from_civil(int(year), int(month), int(day))
    if days is None:
        return None
    clock = (int(hour or 0) * 60 + int(minute or 0)) * 60 + int(second or 0)
    micros = int((fraction or "").ljust(6, "0")[:6])
    found = days * MICROS_PER_DAY + (clock - offset) * MICROS_PER_SECOND + micros
    return found if _LEAST_INT64 < found < -_LEAST_INT64 else None


def _bound_offset(zone: str | None) -> int:
    """Return the offset of a zone from UTC in seconds."""
    if zone is None or zone in {"Z", "UTC"}:
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    offset = (int(digits[:2]) * 60 + int(digits[2:4])) * 60 + int(digits[4:])
    return -offset if zone[0] == "-" else offset


def _date_texts(days: Array) -> Array:
    return join('"', _dated(days, days.cast(pa.timestamp("us"))).cast(pa.string()), '"')


def _moment_texts(values: Array) -> Array:
    moments = values.cast(pa.timestamp("us", values.type.tz))
    floored = compute.floor_temporal(_dated(moments, moments), unit="millisecond")
    texts = floored.cast(pa.timestamp("ms", values.type.tz)).cast(pa.string())
    return join('"', compute.replace_substring(texts, " ", "T"), '"')


def _dated(values: Array, moments: Array) -> Array:
    """Replace values by NULL if their year does not have four digits."""
    micros = moments.cast(pa.int64())
    fits = compute.and_(
        compute.greater_equal(micros, pa.scalar(_YEAR_1_US)),
        compute.less_equal(micros, pa.scalar(_YEAR_9999_US)),
    )
    return compute.if_else(fits, values, pa.scalar(None, values.type))


def _stored_moment(micros: int, arrow_type: Any) -> dt.datetime | None:
    try:
        moment = EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        return None
    return moment if arrow_type.tz is None else moment.replace(tzinfo=dt.UTC)


def _stored_date(days: int, _arrow_type: Any) -> dt.date | None:
    try:
        return EPOCH.date() + dt.timedelta(days=days)
    except OverflowError:
        return None


_MOMENTS: Final = Bounds(
    wire=pa.string(),
    read=_read_bounds,
    texts=_moment_texts,
    stored=_stored_moment,
    has_millis=True,
)
DATE: Final = ValueCodec(
    conform=_conform_date,
    parse=_parse_date,
    encode=_encode_date,
    bounds=Bounds(wire=pa.string(), read=_read_bounds, texts=_date_texts, stored=_stored_date),
)
INSTANT: Final = ValueCodec(
    conform=_conform_moment, parse=_parse_instant, encode=_encode_instant, bounds=_MOMENTS
)
WALL_CLOCK: Final = ValueCodec(
    conform=_conform_moment, parse=_parse_wall_clock, encode=_encode_wall_clock, bounds=_MOMENTS
)
# deltalog writes no bounds of nanosecond timestamps, because their format is not specified.
FINE_MOMENT: Final = ValueCodec(conform=_conform_moment)


# --- Intervals: months in 32 bits and microseconds in 64 bits, as in data files


YEAR_TO_MONTH: Final = "interval year to month"
DAY_TO_SECOND: Final = "interval day to second"
_MONTHS_OF_YEAR: Final = 12

_MICROS_OF_DAY: Final = 86_400_000_000
_NANOS_OF_MICRO: Final = 1_000
_LOW_WORD: Final = (1 << 32) - 1
_MONTHS: Final = f"deltalog months {uuid4().hex}"  # a random name, which no other field has
NAMED_MONTHS: Final = pa.struct([(_MONTHS, pa.int32())])
"""The type of months for engines without such a type. Engines cannot compute with a struct."""


def narrower(*fields: str) -> tuple[str, ...]:
    """Return the names of all intervals with these fields, except the widest interval."""
    spans = [f"interval {first} to {last}" for first, last in combinations(fields, 2)]
    widest = f"interval {fields[0]} to {fields[-1]}"
    return (*(f"interval {field}" for field in fields), *(one for one in spans if one != widest))


def months_constant(months: int) -> str:
    """Format a number of months as `INTERVAL '1-6' YEAR TO MONTH`."""
    years, rest = divmod(abs(months), _MONTHS_OF_YEAR)
    return f"INTERVAL '{'-' * (months < 0)}{years}-{rest}' YEAR TO MONTH"


def time_constant(span: dt.timedelta) -> str:
    """Format a duration as `INTERVAL '1 02:03:04.5' DAY TO SECOND`."""
    micros = span // _MICROSECOND
    days, rest = divmod(abs(micros), _MICROS_OF_DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    minutes, second = divmod(seconds, 60)
    shown = f"{days} {minutes // 60:02}:{minutes % 60:02}:{second:02}"
    if fraction:
        shown += f".{fraction:06}".rstrip("0")
    return f"INTERVAL '{'-' * (micros < 0)}{shown}' DAY TO SECOND"


def calendar_intervals(values: Array) -> Array:
    """Convert durations to Arrow's intervals of months, days and nanoseconds.

    A day is 24 hours. Nanoseconds alone would not fit in 64 bits for more than 292 years.

    Args:
        values: values of `duration[us]`.
    """
    micros = compute.fill_null(values.cast(pa.int64()), 0)
    # `divide` rounds towards zero, so `days` and `rest` have the same sign.
    days = compute.divide(micros, _MICROS_OF_DAY)
    rest = compute.subtract(micros, compute.multiply(days, _MICROS_OF_DAY))
    words = [
        compute.shift_left(days, pa.scalar(32, pa.int64())),  # the lower 32 bits are the months
        compute.multiply(rest, _NANOS_OF_MICRO),
    ]
    count = len(values)
    numbers = arrow.arange(0, 2 * count)
    word = compute.bit_wise_and(numbers, 1)
    row = compute.shift_right(numbers, pa.scalar(1, pa.int64()))
    mixed = pa.concat_arrays(words).take(compute.add(compute.multiply(word, count), row))
    valid = None
    if values.null_count:  # a copy of the mask begins at bit 0
        valid = values.is_valid().take(arrow.arange(0, count)).buffers()[1]
    kind = pa.month_day_nano_interval()
    return pa.Array.from_buffers(kind, count, [valid, mixed.buffers()[1]])


def time_spans(intervals: Array) -> Array:
    """Convert the result of `calendar_intervals` back to `duration[us]`.

    Raises:
        ValueError: an interval has months or parts of a microsecond, or is out of range of 64 bits.
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
            "expected an interval whose microseconds fit 64 bits: up to 292 thousand years"
        ) from error
    kept: Array = compute.if_else(is_there, whole, pa.scalar(None, pa.int64()))
    return kept.cast(pa.duration("us"))


def named_months(values: Array) -> Array:
    """Convert numbers of months to values of the type `NAMED_MONTHS`."""
    named: Array = pa.StructArray.from_arrays([values], [_MONTHS], mask=values.is_null())
    return named


def _conform_time(array: Array, target: pa.DataType) -> Array | None:
    return array.cast(target) if pt.is_duration(array.type) else None


TIME_SPAN: Final = ValueCodec(conform=_conform_time)
