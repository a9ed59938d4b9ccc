"""Numbers and bytes as texts in other bases, and texts as bytes, as in Spark."""

from __future__ import annotations

import base64
import decimal
import math
import re
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable

_UNSIGNED: Final = (1 << 64) - 1
_SIGN: Final = 1 << 63
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LEAST_BASE: Final = 2
_MOST_BASE: Final = 36
_LINE: Final = 76
_MOST_SHOWN: Final = 100
_HEX: Final = re.compile(r"[0-9A-Fa-f]*\Z")
_BASE64: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_EXACT: Final = decimal.Context(prec=500, rounding=decimal.ROUND_HALF_EVEN)
# Names of Spark's character sets, and Python's.
_CHARSETS: Final = {
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
    "UTF-8": "utf-8",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
    "UTF-16": "utf-16",
    "UTF-32": "utf-32",
}


def _hex(value: int | str | bytes) -> str:
    match value:
        case int():
            return format(value & _UNSIGNED, "X")
        case str():
            return value.encode().hex().upper()
        case _:
            return value.hex().upper()


def _unhex(text: str) -> bytes | None:
    if not _HEX.match(text):
        return None
    return bytes.fromhex("0" * (len(text) % 2) + text)


def _conv(text: str, source: int, to: int) -> str | None:
    digits = text.strip(" ")
    if not (_LEAST_BASE <= source <= _MOST_BASE and _LEAST_BASE <= abs(to) <= _MOST_BASE):
        return None
    if not digits:
        return None
    is_negative = digits.startswith("-")
    number = 0
    for digit in digits[is_negative:].upper():
        place = _DIGITS.find(digit)
        if not 0 <= place < source:
            break
        number = number * source + place
        if number > _UNSIGNED:
            shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
            raise InvalidInputError(
                f"conv overflows: {shown!r} has more than 64 bits in base {source}"
            )
    signed = number - (1 << 64) if number & _SIGN else number
    if is_negative and to > 0:
        signed = -1 if signed < 0 else -signed
    if to < 0 and signed < 0:
        signed, is_negative = -signed, True
    shown = _in_base(signed & _UNSIGNED, abs(to))
    return f"-{shown}" if is_negative and to < 0 else shown


def _in_base(number: int, base: int) -> str:
    found = ""
    while number:
        number, place = divmod(number, base)
        found = _DIGITS[place] + found
    return found or "0"


def _base64(data: bytes) -> str:
    text = base64.b64encode(data).decode()
    return "\r\n".join(text[at : at + _LINE] for at in range(0, len(text), _LINE))


def _unbase64(text: str) -> bytes:
    """The bytes, as Java's MIME decoder reads them: it passes over all other characters."""
    found, bits, count, at = bytearray(), 0, 0, 0
    while at < len(text):
        char, at = text[at], at + 1
        if char == "=":
            # After two characters there are two signs, one directly after the other.
            if count == 0 or (count == 2 and text[at : at + 1] != "="):
                raise InvalidInputError(f"{text!r} is no text in base 64: a sign = is misplaced")
            break
        place = _BASE64.find(char)
        if place >= 0:
            bits, count = bits << 6 | place, count + 1
        if count == 4:
            found += bits.to_bytes(3, "big")
            bits = count = 0
    if count == 1 or any(char in _BASE64 for char in text[at:]):
        raise InvalidInputError(f"{text!r} is no text in base 64: it does not end where it should")
    if count:
        found += (bits << 6 * (4 - count)).to_bytes(3, "big")[: count - 1]
    return bytes(found)


def _charset(name: str) -> str:
    found = _CHARSETS.get(name.upper())
    if found is None:
        raise InvalidInputError(
            f"there is no character set {name!r}; known: {', '.join(_CHARSETS)}"
        )
    return found


def _encode(text: str, charset: str) -> bytes:
    # Java writes UTF-16 with a mark and big-endian, UTF-32 without a mark.
    name = _charset(charset)
    try:
        if name == "utf-16":
            return b"\xfe\xff" + text.encode("utf-16-be") if text else b""
        return text.encode("utf-32-be" if name == "utf-32" else name)
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{text!r} has characters that {charset} does not have") from error


def _decode(data: bytes, charset: str) -> str:
    name = _charset(charset)
    try:
        if name in {"utf-16", "utf-32"} and not data.startswith((b"\xfe\xff", b"\xff\xfe")):
            name += "-be"
        return data.decode(name)
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"a binary value is no text in {charset}: {error}") from error


def _format_number(value: Any, digits: int) -> str | None:
    if digits < 0:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    exact = decimal.Decimal(repr(value)) if isinstance(value, float) else decimal.Decimal(value)
    return format(exact.quantize(decimal.Decimal(1).scaleb(-digits), context=_EXACT), ",f")


ROWS: Final[dict[str, Callable[..., Any]]] = {
    "hex": _hex,
    "unhex": _unhex,
    "conv": _conv,
    "base64": _base64,
    "unbase64": _unbase64,
    "encode": _encode,
    "decode": _decode,
    "format_number": _format_number,
}
