"""Spark's date and time patterns (`yyyy-MM-dd HH:mm`), for formatting and parsing.

Contains the pattern letters. A letter that deltalog or Spark does not support is an error. The time
zone is UTC, and names are English.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from deltalog._util.clock import MICROS_PER_DAY, MICROS_PER_SECOND, civil_from_days, days_from_civil
from deltalog._util.kernels import Datum, compute, pc
from deltalog.errors import InvalidInputError
from deltalog.expressions import string_forms
from deltalog.expressions.rows import as_array, by_row

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_PATTERN: Final = "yyyy-MM-dd HH:mm:ss"
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SEGMENT: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+", re.DOTALL)
_STRFTIME: Final = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


class DateTimeFields(NamedTuple):
    """The fields of a timestamp, in UTC; `days` are days since 1970."""

    year: int
    month: int
    day: int
    days: int
    second_of_day: int
    micros: int


class Segment(NamedTuple):
    """Adjacent pattern letters of one kind, or literal text with an empty `letter`."""

    letter: str
    width: int
    text: str


def segments(pattern: str) -> list[Segment]:
    """Split a pattern into segments.

    Raises:
        InvalidInputError: a quote is not closed.
    """
    found: list[Segment] = []
    position = 0
    while position < len(pattern):
        match = _SEGMENT.match(pattern, position)
        if match is None:
            raise InvalidInputError(f"the pattern {pattern!r} has a quote that is not closed")
        if match[2]:
            found.append(Segment(match[2], len(match[0]), ""))
        elif match[1] is not None:
            found.append(Segment("", 0, match[1].replace("''", "'") or "'"))
        else:
            found.append(Segment("", 0, match[0]))
        position = match.end()
    return found


def format_timestamps(wall: Datum, pattern: str) -> Datum:
    """Format timestamps without time zone as strings.

    Raises:
        InvalidInputError: the pattern has an unknown letter.

    Cost: by row, unless all years have four digits and all other fields have two.
    """
    parts = segments(pattern)
    fast = _strftime(parts)
    # Use strftime only for years of four digits, because it does not pad shorter years.
    if fast is not None and _is_four_digits(wall):
        seconds = compute.cast(pc.floor_temporal(wall, unit="second"), pa.timestamp("s"))
        return pc.strftime(seconds, format=fast)
    of_era = any(part.letter == "G" for part in parts)
    writers = [_writer(part, pattern, of_era=of_era) for part in parts]

    def row(micros: int) -> str:
        at = _fields(micros)
        return "".join(write(at) for write in writers)

    return by_row(row, pa.string(), compute.cast(wall, pa.int64()))


def _is_four_digits(wall: Datum) -> bool:
    if string_forms.has_far_years(wall):
        return False
    year = compute.min_max(pc.year(as_array(wall, 1)))
    low, high = year["min"].as_py(), year["max"].as_py()
    return low is None or (low >= 1000 and high <= 9999)


def _strftime(parts: list[Segment]) -> str | None:
    shown: list[str] = []
    for part in parts:
        if not part.letter:
            shown.append(part.text.replace("%", "%%"))
        else:
            code = _STRFTIME.get(part.letter * part.width)
            if code is None:
                return None
            shown.append(code)
    return "".join(shown)


def _fields(micros: int) -> DateTimeFields:
    days, clock = divmod(micros, MICROS_PER_DAY)
    second, fraction = divmod(clock, MICROS_PER_SECOND)
    return DateTimeFields(*civil_from_days(days), days, second, fraction)


def _writer(part: Segment, pattern: str, *, of_era: bool) -> Callable[[DateTimeFields], str]:
    if not part.letter:
        return lambda _: part.text
    number = _NUMBERS.get(part.letter)
    if number is not None and part.width <= number.most:
        return lambda at: f"{number.value(at):0{part.width}d}"
    write = _WRITERS.get((part.letter, part.width))
    if write is None and part.letter == "y" and part.width <= 6:
        return partial(_year, width=part.width, of_era=of_era)
    if write is None and part.letter == "S" and part.width <= 9:
        return lambda at: f"{at.micros:06d}000"[: part.width]
    if write is None:
        raise InvalidInputError(
            f"deltalog does not support {part.letter * part.width!r} of the pattern {pattern!r}"
            f"{_advice(pattern)}"
        )
    return write


def _year(at: DateTimeFields, *, width: int, of_era: bool) -> str:
    """Format a year as Java does: with four or more letters, a year with more digits has a sign."""
    year = 1 - at.year if of_era and at.year < 1 else at.year
    sign = "-" if year < 0 else "+" if width >= 4 and year >= 10**width else ""
    return f"{sign}{abs(year):0{width}d}"


class _Number(NamedTuple):
    value: Callable[[DateTimeFields], int]
    most: int


def _day_of_year(at: DateTimeFields) -> int:
    first = days_from_civil(at.year, 1, 1) or 0
    return at.days - first + 1


_NUMBERS: Final[dict[str, _Number]] = {
    **{letter: _Number(lambda at: at.month, 2) for letter in "ML"},
    "d": _Number(lambda at: at.day, 2),
    "D": _Number(_day_of_year, 3),
    "H": _Number(lambda at: at.second_of_day // 3600, 2),
    "k": _Number(lambda at: at.second_of_day // 3600 or 24, 2),
    "h": _Number(lambda at: at.second_of_day // 3600 % 12 or 12, 2),
    "K": _Number(lambda at: at.second_of_day // 3600 % 12, 2),
    "m": _Number(lambda at: at.second_of_day // 60 % 60, 2),
    "s": _Number(lambda at: at.second_of_day % 60, 2),
    **{letter: _Number(lambda at: (at.month + 2) // 3, 2) for letter in "qQ"},
}


def _day_name(at: DateTimeFields) -> str:
    return _DAYS[(at.days + 3) % 7]


_WRITERS: Final[dict[tuple[str, int], Callable[[DateTimeFields], str]]] = {
    ("y", 2): lambda at: f"{abs(at.year) % 100:02d}",
    **{(letter, 3): lambda at: _MONTHS[at.month - 1][:3] for letter in "ML"},
    **{(letter, 4): lambda at: _MONTHS[at.month - 1] for letter in "ML"},
    **{(letter, 3): lambda at: f"Q{(at.month + 2) // 3}" for letter in "qQ"},
    **{("E", count): lambda at: _day_name(at)[:3] for count in (1, 2, 3)},
    ("E", 4): _day_name,
    ("a", 1): lambda at: "AM" if at.second_of_day < 43_200 else "PM",
    ("G", 1): lambda at: "AD" if at.year > 0 else "BC",
    **{("X", count): lambda _: "Z" for count in (1, 2, 3)},
    ("x", 1): lambda _: "+00",
    ("x", 2): lambda _: "+0000",
    ("x", 3): lambda _: "+00:00",
    **{("Z", count): lambda _: "+0000" for count in (1, 2, 3)},
    ("V", 2): lambda _: "UTC",
    **{("z", count): lambda _: "UTC" for count in (1, 2, 3)},
    ("O", 1): lambda _: "GMT",
}

_READERS: Final[dict[tuple[str, int], str]] = {
    ("y", 1): r"(?P<y>-?\d{1,6})",
    ("y", 2): r"(?P<yy>\d{2})",
    ("y", 4): r"(?P<y>\d{4})",
    ("M", 3): r"(?P<MMM>[A-Za-z]{3})",
    ("M", 4): r"(?P<MMM>[A-Za-z]{3,9})",
    **{(letter, 1): rf"(?P<{letter}>\d{{1,2}})" for letter in "MdHhms"},
    **{(letter, 2): rf"(?P<{letter}>\d{{2}})" for letter in "MdHhms"},
    ("a", 1): r"(?P<a>[AaPp][Mm])",
    ("X", 1): r"(?P<zone>Z|[+-]\d{2}(?:\d{2})?)",
    ("X", 2): r"(?P<zone>Z|[+-]\d{4})",
    ("X", 3): r"(?P<zone>Z|[+-]\d{2}:\d{2})",
    ("Z", 1): r"(?P<zone>[+-]\d{4})",
}


def parse_timestamps(text: Datum, pattern: str) -> Datum:
    """Parse strings by a pattern, and return microseconds since 1970.

    Raises:
        InvalidInputError: the pattern has a letter that cannot be parsed, or a string does not
            match the pattern.

    Cost: by row.
    """
    regex = re.compile("".join(_reader(part, pattern) for part in segments(pattern)), re.ASCII)

    def row(value: str) -> int:
        match = regex.fullmatch(value)
        micros = None if match is None else _micros(match.groupdict())
        if micros is None:
            raise InvalidInputError(f"cannot read {value!r} as {pattern!r}")
        return micros

    return by_row(row, pa.int64(), text)


def _reader(part: Segment, pattern: str) -> str:
    if not part.letter:
        return re.escape(part.text)
    if part.letter == "S" and part.width <= 9:
        return rf"(?P<S>\d{{1,{part.width}}})"
    reader = _READERS.get((part.letter, part.width))
    if reader is None:
        raise InvalidInputError(
            f"deltalog cannot read {part.letter * part.width!r} of the pattern {pattern!r}"
            f"{_advice(pattern)}"
        )
    return reader


def _advice(pattern: str) -> str:
    """Return how a pattern of another language is written; empty if it is one of Java."""
    if "%" in pattern:
        meant = re.sub("%(.)", lambda found: _OF_STRFTIME.get(found[1], found[0]), pattern)
        shown = "yyyy-MM-dd HH:mm:ss" if "%" in meant else meant
        return f"; the letters are those of Java, not of strftime: write {shown!r}"
    if "Y" in pattern or "D" in pattern:
        meant = pattern.replace("Y", "y").replace("D", "d").replace("H24", "H").replace("MI", "mm")
        return f"; the letters are those of Java, such as y for years and d for days: {meant!r}"
    return ""


_OF_STRFTIME: Final = {
    "Y": "yyyy", "y": "yy", "m": "MM", "d": "dd", "H": "HH", "I": "hh", "M": "mm", "S": "ss",
    "f": "SSSSSS", "p": "a", "b": "MMM", "B": "MMMM", "a": "E", "A": "EEEE", "j": "DDD",
    "z": "Z", "F": "yyyy-MM-dd", "T": "HH:mm:ss", "%": "%",
}  # fmt: skip
"""Letters of strftime → those of Java."""


def _micros(fields: dict[str, str | None]) -> int | None:
    # As in Spark, fields that are missing in the pattern are those of 1970-01-01 00:00:00.
    year = int(fields.get("y") or 1970)
    # A year of two digits is in the range from 2000 to 2099, whatever the current year is.
    if fields.get("yy"):
        year = 2000 + int(fields["yy"] or 0)
    month = _month(fields)
    hour = _hour(fields)
    minute, second = int(fields.get("m") or 0), int(fields.get("s") or 0)
    days = None if month is None else days_from_civil(year, month, int(fields.get("d") or 1))
    offset = string_forms.offset_micros(fields.get("zone") or "")
    if days is None or hour is None or minute > 59 or second > 59 or offset is None:
        return None
    fraction = int((fields.get("S") or "0")[:6].ljust(6, "0"))
    clock = ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + fraction
    return days * MICROS_PER_DAY + clock - offset


def _month(fields: dict[str, str | None]) -> int | None:
    name = fields.get("MMM")
    if name is None:
        return int(fields.get("M") or 1)
    for number, month in enumerate(_MONTHS, 1):
        if name in {month[:3], month}:
            return number
    return None


def _hour(fields: dict[str, str | None]) -> int | None:
    half = fields.get("h")
    if half is None:
        hour = int(fields.get("H") or 0)
        return hour if hour < 24 else None
    # The hour `h` is from 1 to 12, and 12 is the first hour of each half of the day.
    hour = int(half)
    if not 1 <= hour <= 12:
        return None
    is_late = (fields.get("a") or "AM").upper() == "PM"
    return hour % 12 + (12 if is_late else 0)
