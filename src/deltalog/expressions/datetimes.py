"""Functions of dates and timestamps as in Spark, with UTC as the session's time zone."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.clock import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    civil_from_days,
    days_from_civil,
    days_in_month,
)
from deltalog._util.kernels import TRUE, Array, Datum, compute, pc
from deltalog.errors import InvalidInputError
from deltalog.expressions import string_forms
from deltalog.expressions.casts import floor_divide
from deltalog.expressions.datetime_patterns import (
    DEFAULT_PATTERN,
    format_timestamps,
    parse_timestamps,
)
from deltalog.expressions.rows import by_row, is_constant, on_array, refusing
from deltalog.schema.primitives.moments import instants, wall_clocks

if TYPE_CHECKING:
    from collections.abc import Callable

_WALL: Final = pa.timestamp("us")
DATE_UNITS: Final = {
    "year": "year",
    "yyyy": "year",
    "yy": "year",
    "quarter": "quarter",
    "month": "month",
    "mon": "month",
    "mm": "month",
    "week": "week",
}
CLOCK_UNITS: Final = {
    **DATE_UNITS,
    "day": "day",
    "dd": "day",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
    "millisecond": "millisecond",
    "microsecond": "microsecond",
}
_MONTHS: Final = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_MICROS: Final = {
    "WEEK": 7 * MICROS_PER_DAY,
    "DAY": MICROS_PER_DAY,
    "HOUR": 3600 * MICROS_PER_SECOND,
    "MINUTE": 60 * MICROS_PER_SECOND,
    "SECOND": MICROS_PER_SECOND,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}


def _field(kernel: Callable[..., Datum], **options: Any) -> Callable[[Datum], Datum]:
    # Return the field of the time in UTC. Arrow would return the field of the local time, so remove
    # the zone from the type.
    def run(value: Datum) -> Datum:
        string_forms.check_years(value)
        wall = compute.cast(value, _WALL) if pt.is_timestamp(value.type) else value
        return compute.cast(kernel(wall, **options), pa.int32())

    return run


def date_trunc(unit: Datum, moment: Datum) -> Datum:
    """Truncate a timestamp to a unit; as in Spark, an unknown unit returns NULL.

    Cost: one pass for each distinct unit, if the unit is not constant.
    """
    return _truncated(moment, unit, CLOCK_UNITS)


def trunc(date: Datum, unit: Datum) -> Datum:
    """Truncate a date to a unit; an unknown unit returns NULL."""
    return _truncated(date, unit, DATE_UNITS)


def _truncated(moment: Datum, unit: Datum, units: dict[str, str]) -> Datum:
    if isinstance(unit, pa.Scalar):
        name = units.get((unit.as_py() or "").lower())
        if name is None:
            return _null_like(moment)
        return _floor(moment, name)
    found = _null_like(moment)
    for word in compute.unique(unit).drop_null().to_pylist():
        name = units.get(word.lower())
        if name is not None:
            found = compute.if_else(compute.equal(unit, word), _floor(moment, name), found)
    return found


def _null_like(value: Datum) -> Datum:
    null = pa.scalar(None, value.type)
    return compute.if_else(compute.is_null(value), null, null)


def _floor(moment: Datum, unit: str) -> Datum:
    string_forms.check_years(moment)
    named: Any = unit  # the type stubs allow only literal units
    wall = compute.cast(moment, _WALL)
    return compute.cast(pc.floor_temporal(wall, unit=named, week_starts_monday=True), moment.type)


def date_add(date: Datum, days: Datum) -> Datum:
    """Return the date plus a number of days."""
    return _as_date(pc.add_checked, date, days)


def date_sub(date: Datum, days: Datum) -> Datum:
    """Return the date minus a number of days."""
    return _as_date(pc.subtract_checked, date, days)


def _as_date(kernel: Callable[..., Datum], date: Datum, days: Datum) -> Datum:
    with refusing("the date is out of range"):
        return compute.cast(kernel(compute.cast(date, pa.int32()), days), pa.date32())


def datediff(end: Datum, start: Datum) -> Datum:
    """Return the number of days from `start` to `end`."""
    return compute.subtract(compute.cast(end, pa.int32()), compute.cast(start, pa.int32()))


def last_day(date: Datum) -> Datum:
    """Return the last day of the date's month."""
    return date_sub(
        add_months(_floor(date, "month"), pa.scalar(1, pa.int32())), pa.scalar(1, pa.int32())
    )


def add_months(date: Datum, months: Datum) -> Datum:
    """Return the date plus a number of months; January 31 plus one is the last day of February."""
    if isinstance(date, pa.Scalar) and isinstance(months, pa.Scalar):
        return add_months(pa.array([date], date.type), months)[0]
    string_forms.check_years(date)
    year = compute.cast(pc.year(date), pa.int64())
    month = compute.cast(pc.month(date), pa.int64())
    total = compute.add(
        compute.add(compute.multiply(year, 12), compute.subtract(month, 1)),
        compute.cast(months, pa.int64()),
    )
    new_year = floor_divide(total, 12)
    new_month = compute.add(compute.subtract(total, compute.multiply(new_year, 12)), 1)
    first = _first_of_month(new_year, new_month)
    is_december = compute.equal(new_month, 12)
    following = _first_of_month(
        compute.add(new_year, compute.cast(is_december, pa.int64())),
        compute.if_else(is_december, 1, compute.add(new_month, 1)),
    )
    # The result has the same day of the month, or the last day of a month that is too short. As in
    # Spark 3 and later, February 28 plus one month is March 28, although February 28 is a last day.
    day = pc.min_element_wise(
        compute.cast(pc.day(date), pa.int64()), compute.subtract(following, first), skip_nulls=False
    )
    days = compute.subtract(compute.add(first, day), 1)
    with refusing("the date is out of range"):
        return compute.cast(compute.cast(days, pa.int32()), pa.date32())


def _first_of_month(year: Array, month: Array) -> Array:
    """Return the first day of a month, in days since 1970 (proleptic Gregorian calendar)."""
    # Howard Hinnant's `days_from_civil`: years start in March and end with the leap day.
    shifted = compute.subtract(year, compute.cast(compute.less_equal(month, 2), pa.int64()))
    march = compute.add(month, compute.if_else(compute.less_equal(month, 2), 9, -3))
    era = floor_divide(shifted, 400)
    year_of_era = compute.subtract(shifted, compute.multiply(era, 400))
    leap_days = compute.subtract(compute.divide(year_of_era, 4), compute.divide(year_of_era, 100))
    day_of_year = compute.divide(compute.add(compute.multiply(march, 153), 2), 5)
    day_of_era = compute.add(
        compute.add(compute.multiply(year_of_era, 365), leap_days), day_of_year
    )
    return compute.subtract(compute.add(compute.multiply(era, 146_097), day_of_era), 719_468)


def timestampadd(unit: Datum, amount: Datum, moment: Datum) -> Datum:
    """Return the timestamp plus a number of units; months preserve the time of day."""
    name = _constant_unit(unit)
    with refusing("the timestamp is out of range"):
        if name in _MONTHS:
            return on_array_pair(lambda m, n: _later_months(m, n, _MONTHS[name]), moment, amount)
        step = pc.multiply_checked(amount, pa.scalar(_MICROS[name], pa.int64()))
        return compute.cast(pc.add_checked(compute.cast(moment, pa.int64()), step), moment.type)


def on_array_pair(function: Callable[[Array, Datum], Array], first: Datum, second: Datum) -> Datum:
    """Apply a function of an array and a datum; a constant as first argument becomes an array."""
    if not isinstance(first, pa.Scalar):
        return function(first, second)
    if isinstance(second, pa.Scalar):
        return function(pa.array([first], first.type), second)[0]
    constant: Any = first
    return function(pa.repeat(constant, len(second)), second)


def _later_months(moment: Array, amount: Datum, factor: int) -> Array:
    micros = compute.cast(moment, pa.int64())
    days = floor_divide(micros, MICROS_PER_DAY)
    clock = compute.subtract(micros, compute.multiply(days, MICROS_PER_DAY))
    date = compute.cast(compute.cast(days, pa.int32()), pa.date32())
    months = pc.multiply_checked(amount, pa.scalar(factor, pa.int64()))
    moved = compute.cast(compute.cast(add_months(date, months), pa.int32()), pa.int64())
    whole = pc.multiply_checked(moved, pa.scalar(MICROS_PER_DAY, pa.int64()))
    return compute.cast(pc.add_checked(whole, clock), moment.type)


def timestampdiff(unit: Datum, start: Datum, end: Datum) -> Datum:
    """Return the number of complete units from `start` to `end`. Cost: by row from months up."""
    name = _constant_unit(unit)
    first, last = compute.cast(start, pa.int64()), compute.cast(end, pa.int64())
    if name not in _MONTHS:
        return compute.divide(
            pc.subtract_checked(last, first), pa.scalar(_MICROS[name], pa.int64())
        )
    return by_row(lambda a, b: _whole_months(a, b, _MONTHS[name]), pa.int64(), first, last)


def _whole_months(first: int, last: int, factor: int) -> int:
    if last < first:
        return -_whole_months(last, first, factor)
    (year, month, *rest), (other_year, other_month, *other_rest) = _fields(first), _fields(last)
    # The last month is incomplete if the day and time of `last` are before those of `first`.
    months = (other_year - year) * 12 + other_month - month
    return (months - (other_rest < rest)) // factor


def _fields(micros: int) -> tuple[int, int, int, int]:
    days, clock = divmod(micros, MICROS_PER_DAY)
    year, month, day = civil_from_days(days)
    return year, month, day, clock


def _constant_unit(unit: Datum) -> str:
    name: Any = unit.as_py() if isinstance(unit, pa.Scalar) else None
    name = name.upper() if isinstance(name, str) else name
    if name not in _MONTHS and name not in _MICROS:
        raise InvalidInputError(
            f"{name!r} is not a unit: expected {', '.join([*_MONTHS, *_MICROS])}"
        )
    return str(name)


def make_date(year: Datum, month: Datum, day: Datum) -> Datum:
    """Return a date from its year, month and day. Cost: by row."""

    def row(*parts: int) -> int:
        days = days_from_civil(*parts)
        if days is None:
            raise InvalidInputError(f"there is no date {'-'.join(map(str, parts))}")
        return days

    return compute.cast(by_row(row, pa.int32(), year, month, day), pa.date32())


def to_date(value: Datum, pattern: Datum) -> Datum:
    """Parse strings as dates by a pattern, or return the dates of timestamps. Cost: by row."""
    if not pt.is_string(value.type):
        return compute.cast(value, pa.date32(), safe=False)
    micros = parse_timestamps(value, _pattern(pattern))
    days = on_array(lambda array: floor_divide(array, MICROS_PER_DAY), micros)
    return compute.cast(compute.cast(days, pa.int32()), pa.date32())


def to_timestamp(value: Datum, pattern: Datum) -> Datum:
    """Parse strings as timestamps by a pattern. Cost: by row."""
    if not pt.is_string(value.type):
        return compute.cast(value, pa.timestamp("us", "UTC"))
    return compute.cast(parse_timestamps(value, _pattern(pattern)), pa.timestamp("us", "UTC"))


def date_format(value: Datum, pattern: Datum) -> Datum:
    """Format timestamps by a pattern. Cost: by row, unless all fields have fixed lengths."""
    return format_timestamps(compute.cast(value, _WALL), _pattern(pattern))


def unix_timestamp(value: Datum, pattern: Datum | None = None) -> Datum:
    """Return seconds since 1970, without fraction. Cost: by row for strings."""
    if pt.is_string(value.type):
        micros = parse_timestamps(value, DEFAULT_PATTERN if pattern is None else _pattern(pattern))
    else:
        micros = compute.cast(compute.cast(value, _WALL), pa.int64())
    # As in Spark, this function rounds towards zero. unix_seconds() rounds down, so the results
    # differ before 1970.
    return compute.divide(micros, MICROS_PER_SECOND)


def from_unixtime(seconds: Datum, pattern: Datum | None = None) -> Datum:
    """Format seconds since 1970 as a timestamp."""
    with refusing("the timestamp is out of range"):
        micros = pc.multiply_checked(seconds, MICROS_PER_SECOND)
    shape = DEFAULT_PATTERN if pattern is None else _pattern(pattern)
    return format_timestamps(compute.cast(micros, _WALL), shape)


def _pattern(pattern: Datum) -> str:
    shape: Any = pattern.as_py() if isinstance(pattern, pa.Scalar) else None
    if not isinstance(shape, str):
        raise InvalidInputError("a date or time pattern must be a constant string")
    return shape


def _unix(divisor: int) -> Callable[[Datum], Datum]:
    def run(moment: Datum) -> Datum:
        return on_array(
            lambda array: floor_divide(compute.cast(array, pa.int64()), divisor), moment
        )

    return run


def _from_unix(factor: int) -> Callable[[Datum], Datum]:
    def run(number: Datum) -> Datum:
        with refusing("the timestamp is out of range"):
            micros = pc.multiply_checked(number, factor)
        return compute.cast(micros, pa.timestamp("us", "UTC"))

    return run


# --- Functions of weekdays, months between dates, and time zones other than UTC


_DAYS: Final = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_DAY_NUMBERS: Final = {
    name[:length]: number for number, name in enumerate(_DAYS) for length in (2, 3, len(name))
}
_MONTH_SECONDS: Final = 31 * 86_400
_EIGHT_DIGITS: Final = decimal.Decimal("1e-8")


def next_day(date: Datum, day: Datum) -> Datum:
    """Return the first date after `date` that is the given weekday. Cost: by row.

    Raises:
        InvalidInputError: there is no such day of the week.
    """
    return compute.cast(
        by_row(_next_day, pa.int32(), compute.cast(date, pa.int32()), day), pa.date32()
    )


def _next_day(days: int, name: str) -> int:
    wanted = _DAY_NUMBERS.get(name.upper())
    if wanted is None:
        raise InvalidInputError(f"{name!r} is not a day of the week")
    # Day 0 is 1970-01-01, a Thursday.
    return days + 1 + (wanted - 4 - days) % 7


def months_between(end: Datum, start: Datum, is_rounded: Datum | None = None) -> Datum:
    """Return the number of months from `start` to `end`, with 31 days per month. Cost: by row."""
    rounded = TRUE if is_rounded is None else is_rounded
    micros = compute.cast(end, pa.int64()), compute.cast(start, pa.int64())
    return by_row(_months_between, pa.float64(), *micros, rounded)


def _months_between(end: int, start: int, is_rounded: bool) -> float:  # noqa: FBT001  # the value of a row
    (year, month, day, seconds), (from_year, from_month, from_day, from_seconds) = (
        _parts(end),
        _parts(start),
    )
    months = float((year - from_year) * 12 + month - from_month)
    # Ignore the time if the days of the month are equal, or both are the last day of their month.
    is_last = day == days_in_month(year, month)
    is_from_last = from_day == days_in_month(from_year, from_month)
    if day == from_day or (is_last and is_from_last):
        return months
    rest = (day - from_day) * 86_400 + seconds - from_seconds
    found = months + rest / _MONTH_SECONDS
    if not is_rounded:
        return found
    return float(decimal.Decimal(repr(found)).quantize(_EIGHT_DIGITS, decimal.ROUND_HALF_UP))


def _parts(micros: int) -> tuple[int, int, int, int]:
    days, clock = divmod(micros, MICROS_PER_DAY)
    return *civil_from_days(days), clock // MICROS_PER_SECOND


def make_timestamp(*parts: Datum) -> Datum:
    """Build timestamps from their fields; second 60 is the next minute. Cost: by row.

    Raises:
        InvalidInputError: a timestamp does not exist.
    """
    return compute.cast(by_row(_micros, pa.int64(), *parts), pa.timestamp("us", "UTC"))


def _micros(
    year: int, month: int, day: int, hour: int, minute: int, second: decimal.Decimal
) -> int:
    days = days_from_civil(year, month, day)
    in_range = 0 <= hour < 24 and 0 <= minute < 60 and (0 <= second < 60 or second == 60)
    if days is None or not in_range:
        shown = f"{year}-{month}-{day} {hour}:{minute}:{second}"
        raise InvalidInputError(f"there is no timestamp {shown}")
    clock = (hour * 60 + minute) * 60 * MICROS_PER_SECOND + int(second * MICROS_PER_SECOND)
    return days * MICROS_PER_DAY + clock


def from_utc_timestamp(moment: Datum, zone: Datum) -> Datum:
    """Return the local time in a zone at a timestamp, as a timestamp in UTC."""
    if not is_constant(zone):
        return compute.if_else(compute.is_valid(moment), pa.scalar(None, moment.type), None)
    return compute.cast(wall_clocks(moment, _zone(zone)), moment.type)


def to_utc_timestamp(moment: Datum, zone: Datum) -> Datum:
    """Return the instant at which the local time in a zone equals the timestamp's UTC time."""
    if not is_constant(zone):
        return compute.if_else(compute.is_valid(moment), pa.scalar(None, moment.type), None)
    wall = compute.cast(moment, pa.timestamp("us"))
    return compute.cast(instants(wall, _zone(zone)), moment.type)


def _zone(zone: Datum) -> str:
    name = string_forms.arrow_zone(zone.as_py())
    if name is None:
        raise InvalidInputError(f"there is no time zone {zone.as_py()!r}")
    return name


_CALENDAR_KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "next_day": next_day,
    "months_between": months_between,
    "make_timestamp": make_timestamp,
    "from_utc_timestamp": from_utc_timestamp,
    "to_utc_timestamp": to_utc_timestamp,
}


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    **_CALENDAR_KERNELS,
    "year": _field(pc.year),
    "quarter": _field(pc.quarter),
    "month": _field(pc.month),
    "dayofmonth": _field(pc.day),
    "dayofyear": _field(pc.day_of_year),
    "dayofweek": _field(pc.day_of_week, count_from_zero=False, week_start=7),
    "weekday": _field(pc.day_of_week, count_from_zero=True, week_start=1),
    "weekofyear": _field(pc.iso_week),
    "yearofweek": _field(pc.iso_year),
    "hour": _field(pc.hour),
    "minute": _field(pc.minute),
    "second": _field(pc.second),
    "last_day": last_day,
    "date_trunc": date_trunc,
    "trunc": trunc,
    "date_add": date_add,
    "date_sub": date_sub,
    "add_months": add_months,
    "datediff": datediff,
    "timestampadd": timestampadd,
    "timestampdiff": timestampdiff,
    "make_date": make_date,
    "to_date": to_date,
    "to_timestamp": to_timestamp,
    "date_format": date_format,
    "unix_timestamp": unix_timestamp,
    "from_unixtime": from_unixtime,
    "unix_seconds": _unix(MICROS_PER_SECOND),
    "unix_millis": _unix(1000),
    "unix_micros": _unix(1),
    "unix_date": lambda date: compute.cast(date, pa.int32()),
    "date_from_unix_date": lambda days: compute.cast(days, pa.date32()),
    "timestamp_millis": _from_unix(1000),
    "timestamp_micros": _from_unix(1),
}
