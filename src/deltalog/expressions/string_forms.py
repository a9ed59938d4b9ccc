"""Spark's string form of numbers, dates and timestamps: parsing and printing Arrow arrays.

Contains the accepted syntax. Arrow parses the usual forms; other forms are parsed row by row.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa

from deltalog._util.clock import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    date_text,
    days_from_civil,
    moment_text,
    region_offset_micros,
)
from deltalog._util.kernels import Array, Datum, compute, pc
from deltalog.errors import InvalidInputError
from deltalog.schema.primitives.moments import NANOS_OF_MICRO

_SPACE: Final = "".join(map(chr, range(0x21))) + "\x7f"
_EXACT: Final = Context(prec=100)
_FIRST_DAY: Final = -12_687_428
_LAST_DAY: Final = 11_248_737

# As in Spark, `2024` and `2024-05` mean the first day of the year or month, and a date may be
# followed by a T or space and any characters. The last fields of a timestamp may be missing.
_DATE: Final = re.compile(
    r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL
)
_MOMENT: Final = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T]"
    r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?\s*([^\d\s].*)?)?)?)?)?)?",
    re.ASCII | re.DOTALL,
)
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?", re.ASCII)
# Java's short zone ids. The tz database uses some of these names for other zones.
_FIXED_ZONES: Final = {
    "Z": "",
    "UTC": "",
    "GMT": "",
    "UT": "",
    "EST": "-05:00",
    "MST": "-07:00",
    "HST": "-10:00",
}
_SHORT_ZONES: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
_PLAIN_DATE: Final = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
_PLAIN_MOMENT: Final = (
    r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z?\z"
)


def trim_all(array: Array) -> Array:
    """Strip leading and trailing white space and control characters from strings.

    Spark's casts trim all characters up to U+0020, and U+007F (`UTF8String.trimAll`).
    """
    return pc.utf8_trim(array, characters=_SPACE)


def without_plus(array: Array) -> Array:
    """Remove the plus sign of numbers in strings, because Arrow does not parse it."""
    return pc.utf8_ltrim(array, characters="+")


def integers_within(array: Array, bits: int) -> Array:
    """Replace strings whose integers need more bits by NULL. Cost: by row if there are any."""
    limit = 1 << (bits - 1)
    return pa.array(
        [None if text is None else -limit <= int(text) < limit for text in array.to_pylist()],
        pa.bool_(),
    )


def decimals_by_row(array: Array, precision: int, scale: int) -> tuple[Array, Array]:
    """Parse strings as decimals, with a mask of the valid rows.

    Cost: by row; call it only for very long strings.
    """
    values: list[Decimal | None] = []
    fits: list[bool | None] = []
    for text in array.to_pylist():
        value = None if text is None else decimal_of(text, precision, scale)
        values.append(value)
        fits.append(None if text is None else value is not None)
    return pa.array(values, pa.decimal128(precision, scale)), pa.array(fits, pa.bool_())


def decimal_of(text: str, precision: int, scale: int) -> Decimal | None:
    """Parse a string as a decimal, rounded half up; None if it is out of range."""
    value = Decimal(text)
    if value == 0:
        return Decimal(0).scaleb(-scale)
    if value.adjusted() >= precision - scale:
        return None
    if value.adjusted() < -scale - 1:
        return Decimal(0).scaleb(-scale)
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT)
    return None if rounded.adjusted() >= precision - scale and rounded != 0 else rounded


def of_fractionals(array: Array) -> Array:
    """Format floats and doubles as Java 19 and later does. Cost: by row."""
    # Arrow and Java print the same digits: the fewest digits that identify the value. Only the
    # formats differ.
    digits = compute.cast(array, pa.string()).to_pylist()
    values = array.to_pylist()
    return pa.array(
        [
            None if value is None else _java_text(value, text)
            for value, text in zip(values, digits, strict=True)
        ],
        pa.string(),
    )


def _java_text(number: float, text: str) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    value = Decimal(text)
    sign, digits, _ = value.as_tuple()
    minus = "-" if sign else ""
    if value == 0:
        return f"{minus}0.0"
    shown = "".join(map(str, digits)).rstrip("0")
    if len(shown) == 1:
        # Java always prints at least two digits, so use the nearest decimal number of two digits.
        value = Decimal(format(number, ".1e"))
        shown = "".join(map(str, value.as_tuple().digits)).rstrip("0")
    exponent = value.adjusted()
    # Java writes an exponent for numbers below 10^-3 or of at least 10^7.
    if -4 < exponent < 7:
        if exponent < 0:
            return f"{minus}0.{'0' * (-exponent - 1)}{shown}"
        whole = shown[: exponent + 1].ljust(exponent + 1, "0")
        return f"{minus}{whole}.{shown[exponent + 1 :] or '0'}"
    return f"{minus}{shown[0]}.{shown[1:] or '0'}E{exponent}"


def of_decimals(array: Array) -> Array:
    """Format decimals without exponent."""
    printed = compute.cast(array, pa.string())
    if not compute.any(pc.match_substring(printed, "E")).as_py():
        return printed
    return pa.array(
        [None if text is None else format(Decimal(text), "f") for text in printed.to_pylist()],
        pa.string(),
    )


def of_dates(array: Array) -> Array:
    """Format dates as `2024-01-31`, with a plus sign from year 10000. Cost: by row in far years."""
    if has_far_years(array):
        days = compute.cast(array, pa.int32()).to_pylist()
        return pa.array([None if day is None else date_text(day) for day in days], pa.string())
    return _signed(compute.cast(array, pa.string()))


def check_years(moments: Datum) -> None:
    """Refuse years that do not fit in 16 bits, for which Arrow's calendar kernels are wrong.

    Raises:
        InvalidInputError: a date or timestamp is outside of the years -32767 to 32767.
    """
    if has_far_years(moments):
        raise InvalidInputError(
            "cannot compute the year, month or day of a date or timestamp outside of the years "
            "-32767 to 32767"
        )


def has_far_years(moments: Datum) -> bool:
    """Whether a date or timestamp is outside of the years -32767 to 32767."""
    days = compute.cast(moments, pa.date32(), safe=False)
    if isinstance(days, pa.Scalar):
        days = pa.array([days], pa.date32())
    extremes = compute.min_max(compute.cast(days, pa.int32()))
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    return low is not None and (low < _FIRST_DAY or high > _LAST_DAY)


def _moment(micros: int) -> str:
    return moment_text(micros, sep=" ").rstrip("0").rstrip(".")


def _signed(texts: Array) -> Array:
    return compute.replace_substring_regex(texts, r"\A([0-9]{5,}-)", r"+\1")


def of_timestamps(array: Array) -> Array:
    """Format timestamps as `2024-01-31 10:00:00.5`, in UTC. Cost: by row in far years."""
    if has_far_years(array):
        micros = compute.cast(array, pa.int64()).to_pylist()
        return pa.array([None if one is None else _moment(one) for one in micros], pa.string())
    printed = compute.cast(compute.cast(array, pa.timestamp("us")), pa.string())
    trimmed = pc.utf8_rtrim(pc.utf8_rtrim(printed, characters="0"), characters=".")
    # Trimming zeros cannot remove digits of the seconds, because Arrow always prints six decimal
    # places.
    return _signed(trimmed)


def to_dates(array: Array) -> tuple[Array, Array | None]:
    """Parse strings as dates, with a mask of the strings that are not dates."""
    trimmed = trim_all(array)
    plain = compute.match_substring_regex(trimmed, _PLAIN_DATE)
    if compute.all(plain, min_count=0).as_py():
        try:
            return compute.cast(trimmed, pa.date32()), None
        except pa.ArrowInvalid:
            pass
    days = [None if text is None else days_of(text) for text in trimmed.to_pylist()]
    values = pa.array(days, pa.int32())
    return compute.cast(values, pa.date32()), compute.and_(
        compute.is_null(values), compute.is_valid(array)
    )


def to_micros(array: Array, *, has_zone: bool) -> tuple[Array, Array | None]:
    """Parse strings as microseconds since 1970 in UTC, with a mask of the invalid rows.

    Args:
        array: the strings.
        has_zone: whether to apply a zone in the string. Spark ignores the zone for
            `timestamp_ntz`.
    """
    trimmed = trim_all(array)
    plain = compute.match_substring_regex(trimmed, _PLAIN_MOMENT)
    if compute.all(plain, min_count=0).as_py():
        try:
            bare = pc.utf8_rtrim(trimmed, characters="Z")
            return compute.cast(compute.cast(bare, pa.timestamp("us")), pa.int64()), None
        except pa.ArrowInvalid:
            pass
    rows = [
        None if text is None else micros_of(text, has_zone=has_zone) for text in trimmed.to_pylist()
    ]
    values = pa.array(rows, pa.int64())
    return values, compute.and_(compute.is_null(values), compute.is_valid(array))


def days_of(text: str) -> int | None:
    """Return the number of days since 1970 for a date in a string; None if it is not a date."""
    match = _DATE.fullmatch(text.strip(_SPACE))
    if match is None:
        return None
    days = days_from_civil(*_date_parts(match))
    return days if days is not None and -(1 << 31) <= days < 1 << 31 else None


def _date_parts(match: re.Match[str]) -> tuple[int, int, int]:
    year = int(match[2]) * (-1 if match[1] == "-" else 1)
    return year, int(match[3] or 1), int(match[4] or 1)


def micros_of(text: str, *, has_zone: bool) -> int | None:
    """Return the microseconds since 1970 for a timestamp in a string; None if it is invalid."""
    match = _MOMENT.fullmatch(text.strip(_SPACE))
    if match is None:
        return None
    days = days_from_civil(*_date_parts(match))
    hour, minute, second = (int(part or 0) for part in match.group(5, 6, 7))
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((match[8] or "")[:6].ljust(6, "0"))
    clock = (hour * 60 + minute) * 60 + second
    local = days * MICROS_PER_DAY + clock * MICROS_PER_SECOND + fraction
    offset = offset_micros(match[9] or "", local)
    if offset is None:
        return None
    micros = local - offset if has_zone else local
    return micros if -(1 << 63) <= micros < 1 << 63 else None


def below_micros(text: str) -> int:
    """Return the nanoseconds after the last full microsecond of a timestamp in a string."""
    match = _MOMENT.fullmatch(text.strip(_SPACE))
    fraction = (match[8] or "") if match else ""
    return int(fraction[6:9].ljust(3, "0"))


def to_nanos(array: Array, *, has_zone: bool) -> tuple[Array, Array]:
    """Parse strings as nanoseconds since 1970 in UTC, with a mask of invalid rows. Cost: by row.

    Args:
        array: the strings; digits after the nanoseconds are ignored.
        has_zone: see `to_micros`.
    """
    rows = [
        None if text is None else nanos_of(text, has_zone=has_zone) for text in array.to_pylist()
    ]
    values = pa.array(rows, pa.int64())
    return values, compute.and_(compute.is_null(values), compute.is_valid(array))


def nanos_of(text: str, *, has_zone: bool) -> int | None:
    """Return a string's timestamp as nanoseconds since 1970; None if invalid or out of range."""
    micros = micros_of(text, has_zone=has_zone)
    if micros is None:
        return None
    nanos = micros * NANOS_OF_MICRO + below_micros(text)
    return nanos if -(1 << 63) <= nanos < 1 << 63 else None


def offset_micros(zone: str, local: int = 0) -> int | None:
    """Return the offset of a zone from UTC at a local time; None if the zone does not exist."""
    zone = _FIXED_ZONES.get(zone.strip(), zone.strip())
    if zone == "":
        return 0
    match = _OFFSET.fullmatch(zone)
    if match is not None:
        hours, minutes, seconds = (int(part or 0) for part in match.group(2, 3, 4))
        total = (hours * 60 + minutes) * 60 + seconds
        # Java accepts offsets of at most 18 hours.
        if total > 18 * 3600 or minutes > 59 or seconds > 59:
            return None
        return (-total if match[1] == "-" else total) * MICROS_PER_SECOND
    return _region_offset_micros(zone, local)


def arrow_zone(zone: str) -> str | None:
    """Return Arrow's name of a zone; None if the zone does not exist."""
    if offset_micros(zone) is None:
        return None
    zone = _FIXED_ZONES.get(zone.strip(), zone.strip())
    match = _OFFSET.fullmatch(zone)
    if match is None:
        return _SHORT_ZONES.get(zone, zone) or "UTC"
    return f"{match[1]}{int(match[2]):02d}:{match[3] or '00'}"


def _region_offset_micros(zone: str, local: int) -> int | None:
    try:
        return region_offset_micros(ZoneInfo(_SHORT_ZONES.get(zone, zone)), local)
    except (LookupError, OSError, ValueError):
        return None
