"""Functions without an Arrow kernel: of numbers, with Java's mathematics, and of strings.

Python functions compute most of them row by row.
"""

from __future__ import annotations

import decimal
import math
import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.argument_types import kind_of
from deltalog._util.kernels import Datum, compute
from deltalog.errors import InvalidInputError
from deltalog.expressions import java_math
from deltalog.expressions.arrays import checked_pairs
from deltalog.expressions.numbers import null_of, round_decimal
from deltalog.expressions.render import simple_name
from deltalog.expressions.rows import NO, by_row, refusing, spend
from deltalog.expressions.strings import part_of
from deltalog.schema.arrow import from_arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable


_SAME_NAMES: Final = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh"),
    *("cosh", "exp", "expm1", "sinh", "tanh"),
)
_FACTORIALS: Final = 20
_EXACT: Final = decimal.Context(prec=400, rounding=decimal.ROUND_HALF_EVEN)


def _signed(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def _shift(operation: Callable[[int, int, int], int]) -> Callable[[Datum, Datum], Datum]:
    """Return a shift function; as in Java, the number of bits is taken modulo 32 or 64."""

    def run(value: Datum, count: Datum) -> Datum:
        bits = 64 if pt.is_int64(value.type) else 32
        return by_row(
            lambda number, by: _signed(operation(number, by & (bits - 1), bits), bits),
            value.type,
            value,
            count,
        )

    return run


def _factorial(number: int) -> int | None:
    return math.factorial(number) if 0 <= number <= _FACTORIALS else None


def _rint(value: float) -> float:
    if not math.isfinite(value) or abs(value) >= 1 << 52:
        return value
    return math.copysign(round(value), value)


def _to_degrees(value: Datum) -> Datum:
    # The factors here and in `_to_radians` are those of java.lang.Math.
    return compute.multiply(value, pa.scalar(57.29577951308232))


def _to_radians(value: Datum) -> Datum:
    return compute.multiply(value, pa.scalar(0.017453292519943295))


def _bround(value: Datum, digits: Datum | None = None) -> Datum:
    """Round halves to the even neighbour. Cost: by row, except for decimals."""
    places = 0 if digits is None else digits.as_py()
    if places is None:
        return null_of(value)
    if pt.is_decimal(value.type):
        return round_decimal(value, places, "half_to_even")
    if pt.is_integer(value.type):
        return value if places >= 0 else _bround_integer(value, places)
    return by_row(
        lambda number: (
            float(_to_even(decimal.Decimal(repr(number)), places)) + 0.0
            if math.isfinite(number)
            else number
        ),
        value.type,
        value,
    )


def _bround_integer(value: Datum, places: int) -> Datum:
    exact = by_row(
        lambda number: int(_to_even(decimal.Decimal(number), places)), pa.decimal128(38, 0), value
    )
    with refusing(f"bround overflows {from_arrow_type(value.type)}"):
        return compute.cast(exact, value.type)


def _to_even(number: decimal.Decimal, places: int) -> decimal.Decimal:
    return number.quantize(decimal.Decimal(1).scaleb(-places), context=_EXACT)


def _above(least: float, logarithm: Callable[[float], float]) -> Callable[[float], float | None]:
    """Return a logarithm that is NULL for arguments of at most `least`, as in Spark."""
    return lambda value: None if value <= least else logarithm(value)


def _log_to_base(base: float, value: float) -> float | None:
    if base <= 0 or value <= 0:
        return None
    above, below = java_math.log(value), java_math.log(base)
    if below == 0:
        return math.nan if above == 0 or math.isnan(above) else math.copysign(math.inf, above)
    return above / below


ROWS: Final[dict[str, Callable[..., Any]]] = {
    **{name: getattr(java_math, name) for name in _SAME_NAMES},
    # Spark adds 0.0 to both arguments, which turns -0.0 into 0.0.
    "atan2": lambda y, x: java_math.atan2(y + 0.0, x + 0.0),
    "cbrt": java_math.cbrt,
    "hypot": java_math.hypot,
    "pow": java_math.power,
    "ln": _above(0.0, java_math.log),
    "log": _log_to_base,
    "log2": _above(0.0, java_math.log2),
    "log10": _above(0.0, java_math.log10),
    "log1p": _above(-1.0, java_math.log1p),
    "bin": lambda number: format(number & ((1 << 64) - 1), "b"),
    "bit_count": lambda number: (number & ((1 << 64) - 1)).bit_count(),
    "factorial": _factorial,
    "rint": _rint,
}


def _assert_true(condition: Datum, message: Datum | None = None) -> Datum:
    """Return NULL for every row; raise an error unless the condition is true for all rows."""
    if not compute.all(compute.fill_null(condition, NO), min_count=0).as_py():
        reason = (
            message.as_py() if isinstance(message, pa.Scalar) else "the assertion fails for a row"
        )
        raise InvalidInputError(f"assert_true: {reason}")
    return pa.scalar(None, pa.null())


def _typeof(value: Datum) -> Datum:
    return pa.scalar(simple_name(from_arrow_type(value.type)))


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "shiftleft": _shift(lambda number, by, _: number << by),
    "shiftright": _shift(lambda number, by, _: number >> by),
    "shiftrightunsigned": _shift(lambda number, by, bits: (number & ((1 << bits) - 1)) >> by),
    "degrees": _to_degrees,
    "radians": _to_radians,
    "assert_true": _assert_true,
    "typeof": _typeof,
    "bround": _bround,
    "e": lambda: pa.scalar(math.e),
    "pi": lambda: pa.scalar(math.pi),
}


# --- Functions of strings

_SOUNDS: Final = "01230127022455012623017202"
_SILENT: Final = "7"
_VOWEL: Final = "0"
_SOUNDEX_LENGTH: Final = 4
_MOST_DIGITS: Final = 4
_METACHARACTERS: Final = frozenset("\\^$.|?*+()[]{}")
_SPECIFIER: Final = re.compile(
    r"%(?:(\d+)\$)?([-#+ 0,(<]*)(\d+)?(\.\d+)?([a-zA-Z%]|.|\Z)", re.DOTALL
)


def _find_in_set(text: str, members_text: str) -> int:
    members = members_text.split(",")
    return members.index(text) + 1 if "," not in text and text in members else 0


def _levenshtein(left: str, right: str, most: int | None = None) -> int:
    if most is not None and most < 0:
        return -1
    spend(steps=2 * (len(left) + 1) * (len(right) + 1))
    row = list(range(len(right) + 1))
    for place, char in enumerate(left, 1):
        before, row[0] = row[0], place
        for at, other in enumerate(right, 1):
            changed = before + (char != other)
            before = row[at]
            row[at] = min(changed, before + 1, row[at - 1] + 1)
    return -1 if most is not None and row[-1] > most else row[-1]


def _overlay(value: Any, new: Any, start: int, count: int = -1) -> Any:
    many = count if count >= 0 else len(new)
    return part_of(value, 1, start - 1) + new + part_of(value, start + many)


def _soundex(text: str) -> str:
    first = text[:1].upper() if text[:1].isascii() else ""
    if not first.isalpha():
        return text
    found, last = first, _SOUNDS[ord(first) - ord("A")]
    for char in text[1:]:
        if not (char.isascii() and char.isalpha()):
            last = _VOWEL
            continue
        code = _SOUNDS[ord(char.upper()) - ord("A")]
        if code == _SILENT:
            continue
        if code not in (_VOWEL, last):
            found += code
            if len(found) == _SOUNDEX_LENGTH:
                break
        last = code
    return found.ljust(_SOUNDEX_LENGTH, "0")


def _substring_index(text: str, delimiter: str, count: int) -> str:
    if not delimiter or count == 0:
        return ""
    if count > 0:
        at = -1
        for _ in range(count):
            at = text.find(delimiter, at + 1)
            if at < 0:
                return text
        return text[:at]
    at = len(text) - len(delimiter) + 1
    for _ in range(-count):
        at = text.rfind(delimiter, 0, at - 1 + len(delimiter)) if at > 0 else -1
        if at < 0:
            return text
    return text[at + len(delimiter) :]


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for place, char in enumerate(old):
        table.setdefault(ord(char), new[place] if place < len(new) else None)
    return text.translate(table)


def _choice(position: int | None, *values: Any) -> Any:
    if position is None:
        return None
    if not 1 <= position <= len(values):
        raise InvalidInputError(f"the index of elt must be 1 to {len(values)}, found {position}")
    return values[position - 1]


def _str_to_map(text: str, between: str = ",", inside: str = ":") -> list[tuple[str, str | None]]:
    for delimiter in (between, inside):
        if not delimiter or _METACHARACTERS & set(delimiter):
            raise InvalidInputError(
                f"the delimiter {delimiter!r} of str_to_map is a regular expression; deltalog "
                "supports only plain delimiters"
            )
    pairs = [[*pair.split(inside, 1), None][:2] for pair in text.split(between)]
    return checked_pairs((str(key), value) for key, value in pairs)


def _format_string(pattern: str | None, *values: Any) -> str | None:
    if pattern is None:
        return None
    found, end, following = [], 0, 0
    for match in _SPECIFIER.finditer(pattern):
        found.append(pattern[end : match.start()])
        end = match.end()
        _, flags, width, _, kind = match.groups()
        if kind and kind in "%n" and not (flags or width):
            found.append("%" if kind == "%" else "\n")
            continue
        _check_specifier(match)
        place = following
        if match[1]:
            place = int(match[1]) - 1
        else:
            following += 1
        if not 0 <= place < len(values):
            raise InvalidInputError(f"format_string has no value for {match[0]!r}")
        found.append(_formatted(match, values[place]))
    return "".join(found) + pattern[end:]


def _check_specifier(match: re.Match[str]) -> None:
    _, flags, width, precision, kind = match.groups()
    is_known = kind in {"s", "d"} and not precision and set(flags) <= {"-", "0", ","}
    is_wrong = len(set(flags)) < len(flags) or {"-", "0"} <= set(flags)
    if kind == "s":
        is_wrong |= bool({"0", ","} & set(flags))
    if len(width or "") > _MOST_DIGITS:
        raise InvalidInputError(
            f"the width of {match[0]!r} in format_string is too large for deltalog"
        )
    if not is_known or is_wrong or (flags.strip(",") and not width):
        raise InvalidInputError(
            f"deltalog does not format {match[0]!r}: supported are %s, %d, %n and %%, widths "
            "and the flags - 0 and ,"
        )


def _formatted(match: re.Match[str], value: Any) -> str:
    _, flags, width, _, kind = match.groups()
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if value is None:
        text = "null"
    elif kind == "d" and is_whole:
        text = format(value, ",d" if "," in flags else "d")
    elif kind == "s" and (is_whole or isinstance(value, str | bool)):
        text = str(value).lower() if isinstance(value, bool) else str(value)
    else:
        raise InvalidInputError(
            f"deltalog does not format {match[0]!r} of {kind_of(value)}: cast it to string"
        )
    size = int(width or 0)
    # In Java, the width is a number of UTF-16 code units. A character above U+FFFF counts twice.
    missing = size - len(text.encode("utf-16-le")) // 2
    if "-" in flags:
        return text + " " * missing
    if "0" in flags and value is not None:
        sign = text[: text.startswith("-")]
        return sign + "0" * missing + text[len(sign) :]
    return " " * missing + text


TEXT_ROWS: Final[dict[str, Callable[..., Any]]] = {
    "find_in_set": _find_in_set,
    "levenshtein": _levenshtein,
    "overlay": _overlay,
    "soundex": _soundex,
    "substring_index": _substring_index,
    "translate": _translate,
    "str_to_map": _str_to_map,
}
TEXT_ROWS_WITH_NULLS: Final[dict[str, Callable[..., Any]]] = {
    "elt": _choice,
    "format_string": _format_string,
}
