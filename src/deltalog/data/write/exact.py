"""Which values the cast of a written column has changed.

Spark's casts cut the time of a date, ignore an offset, and round decimals. A write refuses such
values, because nobody would notice the change.

Protocol: none
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog._util.decimals import num_decimals
from deltalog._util.kernels import Array, compute
from deltalog.expressions.casts import cast
from deltalog.expressions.string_forms import trim_all
from deltalog.schema.primitives import Family
from deltalog.schema.types import DATE, DOUBLE, STRING, TIMESTAMP_NANOS, TIMESTAMP_NANOS_NTZ

if TYPE_CHECKING:
    from deltalog.schema import PrimitiveType

_DAY: Final = r"[+-]?[0-9]{4,7}-[0-9]{1,2}-[0-9]{1,2}"
_MINUTE: Final = rf"{_DAY}[ T][0-9]{{1,2}}:[0-9]{{1,2}}"
# The cast has checked the zone, so that any string may follow the digits.
_ZONE: Final = r"(\s*[A-Za-z+-].*)?"
# These do not change the digits, as Arrow's timestamps in UTC do not.
_UTC: Final = r"\s?(Z|UTC|[+]00(:?00)?)?"
_FINE: Final = {TIMESTAMP_NANOS: 9, TIMESTAMP_NANOS_NTZ: 9}
_MICROSECONDS: Final = 6
_EXACT_DIGITS: Final = 15
"""Every whole number of so many digits is a double."""
_EXPECTED: Final = "expected YYYY-MM-DD HH:MM:SS, such as 2024-01-31 12:00:00.123456, or timestamps"


def with_seconds(strings: Array) -> Array:
    """Add the seconds between minutes and an offset, without which Spark knows no timestamp."""
    return compute.replace_substring_regex(
        strings, rf"\A(\s*{_MINUTE})(\s?(?:Z|UTC|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)\s*)\z", r"\1:00\2"
    )


def change_of(
    given: Array, stored: Array, source: PrimitiveType, target: PrimitiveType
) -> str | None:
    """Return the first value that a cast has changed, and what to do; None if there is none.

    Args:
        given: the strings or floating-point numbers; for any other values, nothing is checked.
        stored: the result of the cast, which has not failed.
        source: the type of `given`.
        target: the type of `stored`.

    Cost: one or two passes over the column; by row for decimals in strings with an exponent.
    """
    family = target.primitive.family
    if source.primitive.family is Family.FLOATING and family is Family.DECIMAL:
        return _of_fractionals(given, stored, source, target)
    if source != STRING:
        return None
    if family is Family.MOMENT:
        return _of_moments(given, target)
    if family is Family.DECIMAL:
        return _of_decimals(given, target)
    if family is Family.FLOATING:
        if compute.all(compute.is_finite(stored), min_count=0).as_py():
            return None
        unnamed = compute.invert(compute.match_substring_regex(given, "(?i)inf|nan"))
        string = _first(given, compute.and_(compute.invert(compute.is_finite(stored)), unnamed))
        return string and f"{string!r} is out of range of {target}"
    return None


def _first(given: Array, changed: Array) -> str | None:
    """Return the first value for which the mask is true."""
    row: int = compute.index(changed, pa.scalar(True)).as_py()  # noqa: FBT003  # a value
    return None if row < 0 else given[row].as_py()


def _unlike(strings: Array, pattern: str) -> Array:
    return compute.invert(compute.match_substring_regex(strings, rf"\A{pattern}\z"))


def _of_moments(given: Array, target: PrimitiveType) -> str | None:
    strings = trim_all(given)
    if target == DATE:
        string = _first(given, _unlike(strings, _DAY))
        return string and (
            f"{string!r} is not just one day; expected YYYY-MM-DD, such as 2024-01-31, or values "
            "of the type date"
        )
    digits = _FINE.get(target, _MICROSECONDS)
    string = _first(given, _unlike(strings, _moment(digits, _ZONE)))
    if string is not None:
        is_fine = "." in string
        what = f"has more than {digits} digits after the seconds" if is_fine else "lacks the day"
        return f"{string!r} {what}; {_EXPECTED}"
    if target.primitive.has_zone is False:
        string = _first(given, _unlike(strings, _moment(digits, _UTC)))
        return string and (
            f"{string!r} has a time zone, and the column stores times without one; {_EXPECTED} "
            "without a zone, or in UTC"
        )
    return None


def _moment(digits: int, zone: str) -> str:
    """Return the pattern of a day, alone or with a time of so many digits after the seconds."""
    seconds = rf":[0-9]{{1,2}}([.][0-9]{{0,{digits}}}0*)?"
    return rf"{_DAY}([ T][0-9]{{1,2}}(:[0-9]{{1,2}}({seconds})?)?{zone})?"


def _of_decimals(given: Array, target: PrimitiveType) -> str | None:
    strings = trim_all(given)
    rest = strings.filter(_unlike(strings, rf"[+-]?[0-9]*([.][0-9]{{0,{target.scale}}}0*)?"))
    for string in rest.to_pylist():
        if num_decimals(Decimal(string)) > target.scale:
            return _round(repr(string), target)
    return None


def _of_fractionals(
    given: Array, stored: Array, source: PrimitiveType, target: PrimitiveType
) -> str | None:
    # A decimal with fewer digits than the shortest form of a number is another number.
    kept = compute.equal(_back(stored, source, target), given)
    value = _first(given, compute.invert(compute.if_else(compute.is_valid(given), kept, None)))
    lost = _first(given, compute.and_(compute.is_null(stored), compute.is_valid(given)))
    if lost is not None:
        return f"a decimal cannot be {lost}; use None for missing values"
    return None if value is None else _round(repr(value), target)


def _back(stored: Array, source: PrimitiveType, target: PrimitiveType) -> Array:
    """Return the floating-point numbers that are nearest to decimals."""
    if source != DOUBLE or target.precision > _EXACT_DIGITS:
        return cast(stored, target, source)
    # The digits and the power of ten are doubles, whose quotient is rounded correctly.
    digits = stored.view(pa.decimal128(target.precision, 0)).cast(pa.int64()).cast(pa.float64())
    return compute.divide(digits, float(10**target.scale))


def _round(shown: str, target: PrimitiveType) -> str:
    digits = "1 digit" if target.scale == 1 else f"{target.scale} digits"
    place = f"{digits} after the point" if target.scale else "a whole number"
    return f"round {shown} to {place}"
