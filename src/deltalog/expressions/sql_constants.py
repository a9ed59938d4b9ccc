"""SQL literals: numbers with suffixes, `DATE'…'`, `TIMESTAMP'…'`, `INTERVAL`.

Owns the values of literals. `sql_nodes` knows their positions, and adds them to errors.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions import coercion, texts
from deltalog.expressions.nodes import Literal
from deltalog.expressions.render import UNITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.schema.types import DataType

# A number without its sign.
NUMBER: Final = re.compile(
    r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(BD|[LSYFD])?", re.IGNORECASE
)
NO_UNIT: Final = "an INTERVAL needs a number and a unit, as in INTERVAL '1' DAY"
_SUFFIXES: Final[dict[str, tuple[DataType, Callable[[str], Any]]]] = {
    "L": (coercion.LONG, int),
    "S": (coercion.SHORT, int),
    "Y": (coercion.BYTE, int),
    "F": (coercion.FLOAT, float),
    "D": (coercion.DOUBLE, float),
}
_BITS: Final = {"L": 64, "S": 16, "Y": 8}
_MAX_DIGITS: Final = 38
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # naive on purpose: wall time
_MICROS_PER_DAY: Final = 86_400_000_000


def number(source: str) -> Literal:
    """A number; without suffix an integer, a decimal, or with an exponent a double, as in Spark.

    Raises:
        InvalidInputError: it is out of the range of its type.
    """
    match = NUMBER.fullmatch(source.removeprefix("-"))
    if match is None:
        raise InvalidInputError("this is no number")
    text, suffix = ("-" if source[0] == "-" else "") + match[1], (match[2] or "").upper()
    if suffix == "BD":
        value = Decimal(text)
        return Literal(value, _decimal_type(value))
    if suffix:
        return _suffixed(text, suffix)
    if "e" in text.lower():
        if math.isinf(float(text)):
            raise InvalidInputError("the number is out of the range of double")
        return Literal(float(text))
    value = Decimal(text)
    _decimal_type(value)
    return Literal(value) if "." in text else Literal(int(text))


def _suffixed(text: str, suffix: str) -> Literal:
    data_type, convert = _SUFFIXES[suffix]
    try:
        value = convert(text)
    except ValueError:
        raise InvalidInputError(f"the suffix {suffix} needs a whole number") from None
    bits = _BITS.get(suffix)
    if bits is not None and not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise InvalidInputError(f"the number is out of the range of {data_type}")
    return Literal(value, data_type)


def _decimal_type(value: Decimal) -> DataType:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101  # the text is a finite number
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale)
    if precision > _MAX_DIGITS:
        raise InvalidInputError(f"a decimal has at most {_MAX_DIGITS} digits")
    return coercion.decimal(precision, scale)


def hexadecimal(digits: str) -> Literal:
    """`X'1F'`; Spark pads an odd number of digits with a leading zero."""
    return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}"))


def datetime_literal(word: str, text: str) -> Literal:
    """The literal after the word DATE, TIMESTAMP or TIMESTAMP_NTZ.

    Raises:
        InvalidInputError: the text is not such a literal.
    """
    if word == "DATE":
        days = texts.days_of(text)
        micros = None if days is None else days * _MICROS_PER_DAY
    else:
        micros = texts.micros_of(text, has_zone=word != "TIMESTAMP_NTZ")
    if micros is None:
        raise InvalidInputError(f"this is no {word}")
    try:
        found = _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        raise InvalidInputError("the year is outside of 1 to 9999") from None
    if word == "DATE":
        return Literal(found.date())
    return Literal(found if word == "TIMESTAMP_NTZ" else found.replace(tzinfo=dt.UTC))


def interval(text: str, unit: str | None, sign: int) -> tuple[Literal, ...]:
    """Amounts and their units: in the text, or the text as amount and the unit after it.

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
            raise InvalidInputError(f"{word!r} is no unit: expected {', '.join(UNITS)}")
        parts += [Literal(_amount(amount, name) * sign), Literal(name)]
    return tuple(parts)


def _amount(text: str, unit: str) -> int | Decimal:
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return int(text)
    if unit == "SECOND" and re.fullmatch(r"[+-]?[0-9]*\.[0-9]{1,6}", text):
        return Decimal(text)
    raise InvalidInputError(f"{text!r} is no whole number of {unit.lower()}s")


def unit_of(word: str) -> str | None:
    """The unit that a word names, in singular or plural; None if there is none."""
    name = word.upper()
    name = name if name in UNITS else name.removesuffix("S")
    return name if name in UNITS else None
