"""Functions of weekdays, months between dates, and time zones other than UTC."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.expressions import texts
from deltalog.expressions.rows import by_row, is_constant
from deltalog.kernels import Datum, compute
from deltalog.schema.primitives import civil
from deltalog.schema.primitives.civil import MICROS_PER_DAY, MICROS_PER_SECOND
from deltalog.schema.primitives.moments import instants, wall_clocks

if TYPE_CHECKING:
    from collections.abc import Callable

_DAYS: Final = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_DAY_NUMBERS: Final = {
    name[:length]: number for number, name in enumerate(_DAYS) for length in (2, 3, len(name))
}
_MONTH_SECONDS: Final = 31 * 86_400
_EIGHT_DIGITS: Final = decimal.Decimal("1e-8")


def next_day(date: Datum, day: Datum) -> Datum:
    """The first given weekday after a date. Cost: by row.

    Raises:
        InvalidInputError: there is no such day of the week.
    """
    return compute.cast(
        by_row(_next_day, pa.int32(), compute.cast(date, pa.int32()), day), pa.date32()
    )


def _next_day(days: int, name: str) -> int:
    wanted = _DAY_NUMBERS.get(name.upper())
    if wanted is None:
        raise InvalidInputError(f"{name!r} is no day of the week")
    # Day 0, 1970-01-01, was a Thursday.
    return days + 1 + (wanted - 4 - days) % 7


def months_between(end: Datum, start: Datum, is_rounded: Datum | None = None) -> Datum:
    """Months from `start` to `end`; the rest counts as parts of a 31-day month. Cost: by row."""
    rounded = pa.scalar(value=True) if is_rounded is None else is_rounded
    micros = compute.cast(end, pa.int64()), compute.cast(start, pa.int64())
    return by_row(_months_between, pa.float64(), *micros, rounded)


def _months_between(end: int, start: int, is_rounded: bool) -> float:  # noqa: FBT001  # a row's value
    (year, month, day, seconds), (from_year, from_month, from_day, from_seconds) = (
        _parts(end),
        _parts(start),
    )
    months = float((year - from_year) * 12 + month - from_month)
    # Of the same day, or of two last days of months, the time of day is ignored.
    is_last = day == civil.days_in_month(year, month)
    is_from_last = from_day == civil.days_in_month(from_year, from_month)
    if day == from_day or (is_last and is_from_last):
        return months
    rest = (day - from_day) * 86_400 + seconds - from_seconds
    found = months + rest / _MONTH_SECONDS
    if not is_rounded:
        return found
    return float(decimal.Decimal(repr(found)).quantize(_EIGHT_DIGITS, decimal.ROUND_HALF_UP))


def _parts(micros: int) -> tuple[int, int, int, int]:
    days, clock = divmod(micros, MICROS_PER_DAY)
    return *civil.civil_from_days(days), clock // MICROS_PER_SECOND


def make_timestamp(*parts: Datum) -> Datum:
    """A timestamp from its parts; 60 seconds are the next minute. Cost: by row.

    Raises:
        InvalidInputError: there is no such timestamp.
    """
    return compute.cast(by_row(_micros, pa.int64(), *parts), pa.timestamp("us", "UTC"))


def _micros(
    year: int, month: int, day: int, hour: int, minute: int, second: decimal.Decimal
) -> int:
    days = civil.days_from_civil(year, month, day)
    in_range = 0 <= hour < 24 and 0 <= minute < 60 and (0 <= second < 60 or second == 60)
    if days is None or not in_range:
        shown = f"{year}-{month}-{day} {hour}:{minute}:{second}"
        raise InvalidInputError(f"there is no timestamp {shown}")
    clock = (hour * 60 + minute) * 60 * MICROS_PER_SECOND + int(second * MICROS_PER_SECOND)
    return days * MICROS_PER_DAY + clock


def from_utc_timestamp(moment: Datum, zone: Datum) -> Datum:
    """The wall time of a zone at a timestamp, as if it were UTC."""
    if not is_constant(zone):
        return compute.if_else(compute.is_valid(moment), pa.scalar(None, moment.type), None)
    return compute.cast(wall_clocks(moment, _zone(zone)), moment.type)


def to_utc_timestamp(moment: Datum, zone: Datum) -> Datum:
    """The time at which a zone's wall time is what the timestamp shows in UTC."""
    if not is_constant(zone):
        return compute.if_else(compute.is_valid(moment), pa.scalar(None, moment.type), None)
    wall = compute.cast(moment, pa.timestamp("us"))
    return compute.cast(instants(wall, _zone(zone)), moment.type)


def _zone(zone: Datum) -> str:
    name = texts.arrow_zone(zone.as_py())
    if name is None:
        raise InvalidInputError(f"there is no time zone {zone.as_py()!r}")
    return name


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "next_day": next_day,
    "months_between": months_between,
    "make_timestamp": make_timestamp,
    "from_utc_timestamp": from_utc_timestamp,
    "to_utc_timestamp": to_utc_timestamp,
}
