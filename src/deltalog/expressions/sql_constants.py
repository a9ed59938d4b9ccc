"""Constants as SQL writes them: numbers with suffixes, `DATE'…'`, `TIMESTAMP'…'`, `INTERVAL`."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from deltalog.expressions import coercion, texts
from deltalog.expressions.lexer import NAME, NUMBER, TEXT, Cursor
from deltalog.expressions.nodes import Call, Expression, Literal
from deltalog.expressions.render import UNITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.expressions.lexer import Token
    from deltalog.schema.types import DataType

_NUMBER: Final = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)(BD|[LSYFD])?", re.IGNORECASE)
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


def number(cursor: Cursor, token: Token, sign: str = "") -> Literal:
    """A number; without suffix it is whole, a decimal, or a double if it has an exponent."""
    match = _NUMBER.fullmatch(token.value)
    if match is None:
        raise cursor.error("this is no number", token)
    text, suffix = sign + match[1], (match[2] or "").upper()
    if suffix == "BD":
        value = Decimal(text)
        return Literal(value, _decimal_type(cursor, value, token))
    if suffix:
        return _suffixed(cursor, text, suffix, token)
    if "e" in text.lower():
        if math.isinf(float(text)):
            raise cursor.error("the number is out of the range of double", token)
        return Literal(float(text))
    value = Decimal(text)
    _decimal_type(cursor, value, token)
    return Literal(value) if "." in text else Literal(int(text))


def _suffixed(cursor: Cursor, text: str, suffix: str, token: Token) -> Literal:
    data_type, convert = _SUFFIXES[suffix]
    try:
        value = convert(text)
    except ValueError:
        raise cursor.error(f"the suffix {suffix} needs a whole number", token) from None
    bits = _BITS.get(suffix)
    if bits is not None and not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise cursor.error(f"the number is out of the range of {data_type}", token)
    return Literal(value, data_type)


def _decimal_type(cursor: Cursor, value: Decimal, token: Token) -> DataType:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101  # the token is a finite number
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale)
    if precision > _MAX_DIGITS:
        raise cursor.error(f"a decimal has at most {_MAX_DIGITS} digits", token)
    return coercion.decimal(precision, scale)


def hexadecimal(cursor: Cursor, token: Token) -> Literal:
    """`X'1F'`; an odd digit count gets a zero in front."""
    digits = token.value if len(token.value) % 2 == 0 else f"0{token.value}"
    try:
        return Literal(bytes.fromhex(digits))
    except ValueError:
        raise cursor.error("X'…' holds hexadecimal digits only", token) from None


def moment(cursor: Cursor, token: Token) -> Literal | None:
    """The constant after the word DATE or TIMESTAMP, or None if the word is a plain name."""
    if cursor.next.kind != TEXT:
        return None
    value = cursor.take()
    if token.word == "date":
        days = texts.days_of(value.value)
        micros = None if days is None else days * _MICROS_PER_DAY
    else:
        micros = texts.micros_of(value.value, has_zone=token.word != "timestamp_ntz")
    if micros is None:
        raise cursor.error(f"this is no {token.word.upper()}", value)
    try:
        found = _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        raise cursor.error("the year is outside of 1 to 9999", value) from None
    if token.word == "date":
        return Literal(found.date())
    return Literal(found if token.word == "timestamp_ntz" else found.replace(tzinfo=dt.UTC))


def interval(cursor: Cursor) -> Expression | None:
    """What follows the word INTERVAL, or None if the word is a plain name."""
    if not _is_amount(cursor):
        return None
    parts: list[Expression] = []
    while _is_amount(cursor) and (not parts or cursor.next.kind in {TEXT, NUMBER}):
        parts += _interval_part(cursor)
    return Call("interval", tuple(parts))


def _is_amount(cursor: Cursor) -> bool:
    token = cursor.ahead() if cursor.next.word in {"-", "+"} else cursor.next
    return token.kind in {TEXT, NUMBER}


def _interval_part(cursor: Cursor) -> list[Expression]:
    sign = -1 if cursor.next.word == "-" else 1
    if cursor.next.word in {"-", "+"}:
        cursor.take()
    token = cursor.take()
    words = token.value.lower().split()
    if cursor.next.kind == NAME and unit_of(cursor.next.word) and len(words) == 1:
        words.append(cursor.take().word)
    if not words or len(words) % 2:
        raise cursor.error("an INTERVAL needs a number and a unit, as in INTERVAL '1' DAY", token)
    parts: list[Expression] = []
    for amount, word in zip(words[::2], words[1::2], strict=True):
        unit = unit_of(word)
        if unit is None:
            raise cursor.error(f"{word!r} is no unit: expected {', '.join(UNITS)}", token)
        parts += [Literal(_amount(cursor, amount, unit, token) * sign), Literal(unit)]
    return parts


def _amount(cursor: Cursor, text: str, unit: str, token: Token) -> int | Decimal:
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return int(text)
    if unit == "SECOND" and re.fullmatch(r"[+-]?[0-9]*\.[0-9]{1,6}", text):
        return Decimal(text)
    raise cursor.error(f"{text!r} is no whole number of {unit.lower()}s", token)


def unit_of(word: str) -> str | None:
    """The unit that a word names, in the plural too, or None."""
    name = word.upper()
    name = name if name in UNITS else name.removesuffix("S")
    return name if name in UNITS else None
