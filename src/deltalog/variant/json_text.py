"""Variants as JSON text.

Owns how types are written that JSON does not have: dates and times as strings in UTC, binary values
in base64, NaN and infinities as strings, decimals without exponent.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
import struct
from typing import TYPE_CHECKING, Any, Final

from deltalog._json import dumps
from deltalog.variant.reader import EPOCH, FIRST_DAY, PLAIN_READERS, read

if TYPE_CHECKING:
    from collections.abc import Callable


def to_json(metadata: bytes, value: bytes) -> str:
    """The variant as JSON in one line, keys in the order of the binary form.

    Raises:
        DataFileUnreadableError: the bytes are not a variant.
    """
    return _text(read(metadata, value, _LEXEMES))


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{" + ",".join(f"{_quoted(name)}:{_text(part)}" for name, part in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return str(value)


def _quoted(text: str) -> str:
    return dumps(text).decode()


def _lexeme(kind: int, form: Callable[[Any], str]) -> Callable[[bytes], str]:
    plain = PLAIN_READERS[kind]
    return lambda data: form(plain(data))


def _floating(value: float, shortest: str) -> str:
    if math.isfinite(value):
        return shortest
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _single(value: float) -> str:
    # Python's repr is of the 64-bit value: find the fewest digits that give the same 32 bits.
    for digits in range(6, 9):
        shortest = f"{value:.{digits}g}"
        if struct.pack("<f", float(shortest)) == struct.pack("<f", value):
            return _floating(value, repr(float(shortest)))
    return _floating(value, repr(float(f"{value:.9g}")))


def _day(days: int) -> str:
    return f'"{(FIRST_DAY + dt.timedelta(days=days)).isoformat()}"'


def _moment(units: int, per_second: int, zone: str) -> str:
    seconds, rest = divmod(units, per_second)
    moment = EPOCH + dt.timedelta(seconds=seconds)
    return f'"{moment.isoformat(sep=" ")}{_fraction(rest, per_second)}{zone}"'


def _fraction(rest: int, per_second: int) -> str:
    width = len(str(per_second)) - 1
    return f".{rest:0{width}d}".rstrip("0").rstrip(".")


def _clock(micros: int) -> str:
    seconds, rest = divmod(micros, 1_000_000)
    clock = (EPOCH + dt.timedelta(seconds=seconds)).time()
    return f'"{clock.isoformat()}{_fraction(rest, 1_000_000)}"'


def _decimal(value: Any) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


_MILLION: Final = 10**6
_BILLION: Final = 10**9

_LEXEMES: Final[dict[int, Callable[[bytes], str]]] = {
    0: lambda _: "null",
    1: lambda _: "true",
    2: lambda _: "false",
    **{kind: _lexeme(kind, str) for kind in (3, 4, 5, 6)},
    7: _lexeme(7, lambda value: _floating(value, repr(value))),
    **{kind: _lexeme(kind, _decimal) for kind in (8, 9, 10)},
    11: _lexeme(11, _day),
    12: _lexeme(12, lambda micros: _moment(micros, _MILLION, "+00:00")),
    13: _lexeme(13, lambda micros: _moment(micros, _MILLION, "")),
    14: _lexeme(14, _single),
    15: _lexeme(15, lambda data: f'"{base64.b64encode(data).decode()}"'),
    16: _lexeme(16, _quoted),
    17: _lexeme(17, _clock),
    18: _lexeme(18, lambda nanos: _moment(nanos, _BILLION, "+00:00")),
    19: _lexeme(19, lambda nanos: _moment(nanos, _BILLION, "")),
    20: _lexeme(20, lambda value: f'"{value}"'),
}
