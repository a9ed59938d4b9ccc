"""SQL literals: numbers with suffixes, `DATE'…'`, `TIMESTAMP'…'`, `INTERVAL`.

Parses the values of literals. `sql_nodes` adds the position to error messages.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog._util.clock import MICROS_PER_DAY
from deltalog.errors import InvalidInputError
from deltalog.expressions import string_forms
from deltalog.expressions.literals import type_of_decimal
from deltalog.expressions.nodes import Literal
from deltalog.expressions.render import UNITS
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.primitives import PRIMITIVES, Family, primitive_in_sql
from deltalog.schema.primitives.numbers import MAX_DIGITS
from deltalog.schema.types import PrimitiveType

if TYPE_CHECKING:
    pass

# Matches a number without a sign, and its suffix.
NUMBER: Final = re.compile(
    r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(BD|[LSYFD])?", re.IGNORECASE
)
NO_UNIT: Final = "an INTERVAL needs a number and a unit, as in INTERVAL '1' DAY"
# The fields of each kind of interval, and the maximum of each field that follows another field.
_FIELDS: Final = (("YEAR", "MONTH"), ("DAY", "HOUR", "MINUTE", "SECOND"))
_MOST: Final = {"MONTH": 11, "HOUR": 23, "MINUTE": 59, "SECOND": 59}
_AFTER: Final = {
    "MONTH": "-(?P<MONTH>[0-9]+)",
    "HOUR": " (?P<HOUR>[0-9]{1,2})",
    "MINUTE": ":(?P<MINUTE>[0-9]{1,2})",
    "SECOND": ":(?P<SECOND>[0-9]{1,2})",
}
_EXAMPLES: Final = {
    ("YEAR", "MONTH"): "1-2",
    ("DAY", "HOUR"): "1 02",
    ("DAY", "MINUTE"): "1 02:03",
    ("DAY", "SECOND"): "1 02:03:04.5",
    ("HOUR", "MINUTE"): "02:03",
    ("HOUR", "SECOND"): "02:03:04.5",
    ("MINUTE", "SECOND"): "03:04.5",
}
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # local times without a time zone


def number(source: str) -> Literal:
    """Parse a number: a decimal or integer by default, a double if it has an exponent.

    Raises:
        InvalidInputError: the number is out of range for its type.
    """
    match = NUMBER.fullmatch(source.removeprefix("-"))
    if match is None:
        raise InvalidInputError("this is not a number")
    text, suffix = ("-" if source[0] == "-" else "") + match[1], (match[2] or "").upper()
    if suffix == "BD":
        value = Decimal(text)
        return Literal(value, type_of_decimal(value))
    if suffix:
        return _suffixed(text, suffix)
    if "e" in text.lower():
        if math.isinf(float(text)):
            raise InvalidInputError("the number is out of range for double")
        return Literal(float(text))
    if "." not in text and len(text) <= MAX_DIGITS:
        return Literal(int(text))
    value = Decimal(text)
    type_of_decimal(value)  # raises an error for more than 38 digits
    return Literal(value) if "." in text else Literal(int(text))


def _suffixed(text: str, suffix: str) -> Literal:
    (row,) = (row for row in PRIMITIVES.values() if row.suffix == suffix)
    data_type = PrimitiveType(row.name)
    if row.family is not Family.INTEGRAL:
        return Literal(float(text), data_type)
    try:
        value = int(text)
    except ValueError:
        raise InvalidInputError(f"the suffix {suffix} needs a whole number") from None
    if not -(1 << (row.bits - 1)) <= value < 1 << (row.bits - 1):
        raise InvalidInputError(f"the number is out of range for {data_type}")
    return Literal(value, data_type)


def hexadecimal(digits: str) -> Literal:
    """Parse `X'1F'`; Spark pads an odd number of digits with a leading zero."""
    return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}"))


def datetime_literal(word: str, text: str) -> Literal:
    """Parse the string after DATE, TIMESTAMP, TIMESTAMP_NTZ or another type.

    Raises:
        InvalidInputError: the string is not a valid literal of that type.
    """
    row = primitive_in_sql(word)
    if row is None or row.codec.parse is None:
        raise InvalidInputError(f"there is no literal of type {word}")
    if row.family is not Family.MOMENT:
        kind = PrimitiveType(row.name)
        try:
            value = row.codec.parse(pa.array([text]), to_arrow_type(kind), "UTC")[0].as_py()
            return Literal(value, kind)
        except (ValueError, OverflowError) as error:
            raise InvalidInputError(f"this is not a valid {word}") from error
    days = None
    if row.has_zone is None:
        days = string_forms.days_of(text)
        micros = None if days is None else days * MICROS_PER_DAY
    else:
        micros = string_forms.micros_of(text, has_zone=row.has_zone)
    if micros is None:
        raise InvalidInputError(f"this is not a valid {word}")
    nanos = 0 if row.has_zone is None else string_forms.below_micros(text)
    try:
        found = _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        kind = PrimitiveType(row.name)
        return Literal(micros if days is None else days, kind, nanos=nanos)
    if row.has_zone is None:
        return Literal(found.date())
    return Literal(found.replace(tzinfo=dt.UTC) if row.has_zone else found, nanos=nanos)


def interval(text: str, unit: str | None, sign: int) -> tuple[Literal, ...]:
    """Parse amounts and units. The string contains both, or one amount that is followed by `unit`.

    Raises:
        InvalidInputError: an amount is malformed, or has no unit.
    """
    words = [*text.lower().split(), *([unit] if unit else [])]
    if not words or len(words) % 2:
        raise InvalidInputError(NO_UNIT)
    parts: list[Literal] = []
    for amount, word in zip(words[::2], words[1::2], strict=True):
        name = unit_of(word)
        if name is None:
            raise InvalidInputError(f"{word!r} is not a unit: expected {', '.join(UNITS)}")
        parts += [Literal(_amount(amount, name) * sign), Literal(name)]
    return tuple(parts)


def fields_of(text: str, first: str, last: str, sign: int) -> tuple[Literal, ...]:
    """Parse an interval from one field to another, such as `'1-2' YEAR TO MONTH`.

    Args:
        text: the string; it may begin with a second sign.
        first: the unit of the first number.
        last: the unit of the last number.
        sign: the sign before the string.

    Raises:
        InvalidInputError: Spark has no such interval, or the string has another form.
    """
    known = next((fields for fields in _FIELDS if {first, last} <= {*fields}), ())
    units = list(known[known.index(first) : known.index(last) + 1]) if known else []
    if len(units) < 2:
        raise InvalidInputError(f"there is no INTERVAL from {first} to {last}")
    signed = text if sign > 0 else text[1:] if text.startswith("-") else f"-{text}"
    match = re.fullmatch(_pattern(units), signed.strip(), re.ASCII)
    if match is None:
        shown = _EXAMPLES[first, last]
        raise InvalidInputError(
            f"{text!r} is not an interval from {first} to {last}: expected one such as {shown!r}"
        )
    sign = -1 if match["sign"] == "-" else 1
    parts: list[Literal] = []
    for place, unit in enumerate(units):
        amount = int(match[unit])
        if place and amount > _MOST[unit]:
            raise InvalidInputError(
                f"{text!r} has {amount} as its {unit}; the maximum is {_MOST[unit]}"
            )
        parts += [Literal(amount * sign), Literal(unit)]
    if units[-1] == "SECOND" and match["fraction"]:
        micros = int(match["fraction"][:6].ljust(6, "0"))  # as in Spark, further digits are omitted
        parts += [Literal(micros * sign), Literal("MICROSECOND")]
    return tuple(parts)


def _pattern(units: list[str]) -> str:
    first, *others = units
    numbers = "".join(_AFTER[unit] for unit in others)
    fraction = r"(?:\.(?P<fraction>[0-9]{1,9}))?" if units[-1] == "SECOND" else ""
    return f"(?P<sign>[+-]?)(?P<{first}>[0-9]+){numbers}{fraction}"


def _amount(text: str, unit: str) -> int | Decimal:
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return int(text)
    if unit == "SECOND" and re.fullmatch(r"[+-]?[0-9]*\.[0-9]{1,6}", text):
        return Decimal(text)
    raise InvalidInputError(f"{text!r} is not a whole number of {unit.lower()}s")


def unit_of(word: str) -> str | None:
    """Return the unit for a singular or plural word; None for other words."""
    name = word.upper()
    name = name if name in UNITS else name.removesuffix("S")
    return name if name in UNITS else None
