"""Comparisons of Arrow arrays and constants by Spark's rules.

Implements the rules for NaN (equal to itself, greater than all other values), for 0.0 and -0.0
(equal), for timestamps in two units, NULL-safe equality, IN and LIKE. Except for timestamps,
`resolve` guarantees that both operands have one type.
"""

from __future__ import annotations

import operator as operators
import re
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.kernels import FALSE, Datum, compute, pc
from deltalog._util.small_arrays import small_array, small_scalar
from deltalog.errors import InvalidInputError
from deltalog.expressions.literals import array_of
from deltalog.expressions.rows import NO, by_row, is_constant
from deltalog.schema.primitives.moments import parted_nanos
from deltalog.schema.types import RULES, CollationRules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NAN: Final = object()
# Operator → Arrow's kernel, and the Python function that compares nested values.
_OPERATORS: Final[dict[str, tuple[Callable[..., Any], Callable[[Any, Any], bool]]]] = {
    "=": (compute.equal, operators.eq),
    "<>": (compute.not_equal, operators.ne),
    "<": (compute.less, operators.lt),
    "<=": (compute.less_equal, operators.le),
    ">": (compute.greater, operators.gt),
    ">=": (compute.greater_equal, operators.ge),
}

_MOMENT: Final = frozenset({pa.timestamp("us").id})
_FLIPPED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare(operator: str, left: Datum, right: Datum) -> Datum:
    """Return `left operator right`; NULL where a side is NULL, except for `<=>`."""
    if operator == "<=>":
        return _null_safe_equal(left, right)
    if pt.is_null(left.type) or pt.is_null(right.type):
        return all_null(left, right)
    if pt.is_nested(left.type):
        return _compare_nested(operator, left, right)
    if {left.type.id, right.type.id} == _MOMENT and left.type.unit != right.type.unit:
        return _compare_units(operator, left, right)
    found = _OPERATORS[operator][0](left, right)
    if not pt.is_floating(left.type):
        return found
    return _with_nan(operator, left, right, found)


def _compare_units(operator: str, left: Datum, right: Datum) -> Datum:
    """Compare timestamps in microseconds with timestamps in nanoseconds, without rounding."""
    if left.type.unit == "ns":
        return _compare_units(_FLIPPED[operator], right, left)
    micros = compute.cast(left, pa.int64())
    floor, is_whole = parted_nanos(right)
    match operator:
        case "=":
            return compute.and_(compute.equal(micros, floor), is_whole)
        case "<>":
            return compute.invert(compute.and_(compute.equal(micros, floor), is_whole))
        case "<=" | ">":
            return _OPERATORS[operator][0](micros, floor)
        case "<":
            reached: Datum = compute.less_equal(micros, floor)
            return compute.if_else(is_whole, compute.less(micros, floor), reached)
        case _:
            passed: Datum = compute.greater(micros, floor)
            return compute.if_else(is_whole, compute.greater_equal(micros, floor), passed)


def all_null(*sides: Datum) -> Datum:
    """Return one boolean NULL for each row of the sides."""
    for side in sides:
        if not isinstance(side, pa.Scalar):
            return pa.nulls(len(side), pa.bool_())
    return small_scalar(None, pa.bool_())


def _with_nan(operator: str, left: Datum, right: Datum, found: Any) -> Datum:
    # Arrow follows IEEE 754, where NaN equals nothing. In Spark, NaN = NaN is true, and NaN is
    # greater than any other value, even infinity.
    left_nan, right_nan = _nan(left), _nan(right)
    if left_nan is None and right_nan is None:
        return found
    # Swap the masks for > and >=, so that these operators share the code of < and <=.
    if operator in {">", ">="}:
        left_nan, right_nan = right_nan, left_nan
    left_nan = FALSE if left_nan is None else left_nan
    right_nan = FALSE if right_nan is None else right_nan
    both = pc.and_kleene(left_nan, right_nan)
    match operator:
        case "=":
            return pc.or_kleene(found, both)
        case "<>":
            return pc.and_kleene(found, compute.invert(both))
        case "<" | ">":
            answer = pc.or_kleene(found, pc.and_kleene(right_nan, compute.invert(left_nan)))
        case _:
            answer = pc.or_kleene(found, right_nan)
    # The result of comparing NULL with NaN is NULL.
    return compute.if_else(compute.is_valid(found), answer, small_scalar(None, pa.bool_()))


def _nan(side: Datum) -> Datum | None:
    """Return a mask of the rows with NaN; None if there are no such rows, which saves work."""
    is_nan: Any = compute.is_nan(side)
    if isinstance(is_nan, pa.Scalar):
        return is_nan if is_nan.as_py() else None
    return is_nan if compute.any(is_nan).as_py() else None


def _null_safe_equal(left: Datum, right: Datum) -> Datum:
    both_null = compute.and_(compute.is_null(left), compute.is_null(right))
    if pt.is_null(left.type) or pt.is_null(right.type):
        return both_null
    equal = compare("=", left, right)
    return compute.or_(both_null, compute.fill_null(equal, NO))


def _compare_nested(operator: str, left: Datum, right: Datum) -> Datum:
    """Compare lists and structs element by element. Cost: by row."""
    test = _OPERATORS[operator][1]
    return by_row(lambda a, b: test(sort_key(a), sort_key(b)), pa.bool_(), left, right)


def sort_key(value: Any) -> Any:
    """Return a sort key for Spark's order: NULL first (inside nested values), NaN last."""
    match value:
        case None:
            return (0,)
        case float() if value != value:  # noqa: PLR0124  # only NaN differs from itself
            return (2,)
        case str():
            return (1, value.encode())
        case list():
            return (1, [sort_key(item) for item in value])
        case dict():
            return (1, [sort_key(item) for item in value.values()])
        case _:
            return (1, value)


def identity(value: Any) -> Any:
    """Return a hashable value, which is the same for all values that Spark treats as equal."""
    match value:
        case float() if value != value:  # noqa: PLR0124  # only NaN differs from itself
            return _NAN
        case list() | tuple():
            return tuple(map(identity, value))
        case dict():
            return tuple(map(identity, value.values()))
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Members:
    """The constants of an IN list, for operands of one type.

    Args:
        known: the constants that are not NULL.
        values: the same constants as an array; None for types that are compared one by one.
        has_null: whether the list also contains NULL.
    """

    known: list[pa.Scalar[Any]]
    values: pa.Array[Any] | None
    has_null: bool


def members(options: list[pa.Scalar[Any]], kind: pa.DataType) -> Members:
    """Prepare constants for `is_member`."""
    known = [option for option in options if option.is_valid]
    values: Any = None
    if not pt.is_nested(kind) and not pt.is_null(kind):
        values = array_of(known, kind)
        if pt.is_floating(kind):
            values = compute.add(values, small_scalar(0.0, kind))
    return Members(known, values, len(known) < len(options))


def is_member(operand: Datum, options: Members) -> Datum:
    """Whether the operand equals a constant. NULL if it equals none and the list contains NULL."""
    if options.values is None:
        found: Any = FALSE
        for option in options.known:
            found = pc.or_kleene(found, compare("=", operand, option))
        return _null_where_unknown(found, operand, options.has_null)
    if pt.is_floating(operand.type):
        # `is_in` compares hashes, which differ for -0.0 and 0.0. Adding 0.0 turns -0.0 into 0.0.
        operand = compute.add(operand, small_scalar(0.0, operand.type))
    found = compute.is_in(operand, value_set=options.values)
    return _null_where_unknown(found, operand, options.has_null)


def _null_where_unknown(found: Any, operand: Datum, has_null: bool) -> Datum:  # noqa: FBT001  # a private function
    is_known: Any = compute.is_valid(operand)
    if has_null:
        is_known = compute.and_(is_known, found)
    return compute.if_else(is_known, found, small_scalar(None, pa.bool_()))


def like(operand: Datum, pattern: str, escape: str, *, ignore_case: bool) -> Datum:
    """Return `operand LIKE pattern`; simple patterns become prefix, suffix or substring tests."""
    parts = like_parts(pattern, escape)
    if ignore_case:
        operand = pc.utf8_lower(operand)
        parts = [part.lower() if part not in {"%", "_"} else part for part in parts]
    body = [part for part in parts if part != "%"]
    if "_" not in body and len(body) == 1 and parts != body:
        text = body[0][1:]
        if parts[0] == "%" and parts[-1] == "%":
            return pc.match_substring(operand, text)
        if parts[0] == "%":
            return pc.ends_with(operand, text)
        return compute.starts_with(operand, text)
    if parts == body and "_" not in body:
        return compute.equal(operand, "".join(part[1:] for part in body))
    return compute.match_substring_regex(operand, _like_regex(parts))


def _like_regex(parts: list[str]) -> str:
    known = {"%": ".*", "_": "."}
    inner = "".join(known.get(part) or _quoted(part[1:]) for part in parts)
    return rf"(?s)\A{inner}\z"


def _quoted(text: str) -> str:
    return re.sub(r"[!-/:-@\[-`{-~]", r"\\\g<0>", text)


def like_parts(pattern: str, escape: str) -> list[str]:
    """Split a LIKE pattern into `%`, `_` and plain text (with a leading `=`).

    InvalidInputError: the escape character does not precede `%`, `_` or itself, which is an
        error in Spark too.
    """
    if len(escape) != 1:
        raise InvalidInputError(f"LIKE needs one character as ESCAPE, found {escape!r}")
    parts: list[str] = []
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            following = next(chars, None)
            if following not in {"%", "_", escape}:
                raise InvalidInputError(
                    f"cannot use the LIKE pattern {pattern!r}: the escape character {escape!r} "
                    "must precede %, _ or itself"
                )
            _append_text(parts, following)
        elif char in "%_":
            if char == "_" or parts[-1:] != ["%"]:
                parts.append(char)
        else:
            _append_text(parts, char)
    return parts


def _append_text(parts: list[str], char: str) -> None:
    if parts and parts[-1].startswith("="):
        parts[-1] += char
    else:
        parts.append("=" + char)


def like_by_row(operand: Datum, pattern: Datum, escape: str, *, ignore_case: bool) -> Datum:
    """Return LIKE with a non-constant pattern. Cost: by row; each pattern is compiled."""

    def matches(text: str, shape: str) -> bool | None:
        one = small_scalar(text, pa.string())
        found: bool | None = like(one, shape, escape, ignore_case=ignore_case).as_py()
        return found

    return by_row(matches, pa.bool_(), operand, pattern)


# --- Comparing strings by collations


_PLAIN: Final = CollationRules(lowers=False, trims=False)
# The only character whose lower case is two characters. Arrow's lower-case kernel does not support
# it.
DOTTED_I: Final = "\u0130"
_LOWER_DOTTED_I: Final = "i\u0307"
# The two lower-case forms of sigma are equal, whatever their position in a word.
_FINAL_SIGMA: Final = "\u03c2"
_SIGMA: Final = "\u03c3"


def keys(texts: Datum, collation: str) -> Datum:
    """Return the collation key of each string; NULL for NULL.

    Args:
        texts: the strings.
        collation: one of `RULES`, or the default collation, in which each string is its own key.

    Cost: a few kernels; by row if a string contains a character whose key Arrow cannot compute.
    """
    rules = RULES.get(collation, _PLAIN)
    if rules.trims:
        texts = _trimmed(texts)
    return _lower(texts) if rules.lowers else texts


def keys_of(texts: Sequence[str | None], collation: str) -> list[str | None]:
    """Return the collation keys of some constants."""
    found: list[str | None] = keys(small_array(texts, pa.string()), collation).to_pylist()
    return found


def test(function: str, text: Datum, part: Datum, collation: str) -> Datum:
    """Whether strings start with, end with or contain a given part.

    Args:
        function: one of `TESTS`.
        text: strings, or their keys.
        part: strings or keys to look for.
        collation: one of `RULES`, or the default collation.

    Cost: by row if the part is not constant, or if a string contains `İ`, whose two lower-case
    characters match only together.
    """
    kernel, rowwise = TESTS[function]
    if is_constant(part) and not _has(text, DOTTED_I):
        return kernel(keys(text, collation), keys(part, collation).as_py())
    rules = RULES.get(collation, _PLAIN)
    if rules.trims:
        text = _trimmed(text)
    split = _lower_pieces if rules.lowers else list
    return by_row(
        lambda value, wanted: rowwise(split(value), wanted), pa.bool_(), text, keys(part, collation)
    )


def _trimmed(texts: Datum) -> Datum:
    return pc.utf8_rtrim(texts, characters=" ")


def _lower(texts: Datum) -> Datum:
    if compute.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return pc.ascii_lower(texts)
    table = _table()
    is_settled = compute.match_substring_regex(texts, table.settled_text)
    if not compute.all(is_settled, min_count=0).as_py():
        return by_row(lambda text: text.translate(table.keys), pa.string(), texts)
    texts = pc.replace_substring(texts, DOTTED_I, _LOWER_DOTTED_I)
    return pc.replace_substring(pc.utf8_lower(texts), _FINAL_SIGMA, _SIGMA)


class _Table(NamedTuple):
    """The keys of characters, and a pattern for strings whose keys Arrow's kernels can compute."""

    keys: dict[int, int | str]
    settled_text: str


@cache
def _table() -> _Table:

    special = {ord(DOTTED_I): _LOWER_DOTTED_I, ord(_FINAL_SIGMA): _SIGMA}
    return _Table({**LOWER, **special}, SETTLED_TEXT)


def _has(text: Datum, character: str) -> bool:
    return bool(compute.any(pc.match_substring(text, character), min_count=0).as_py())


def _lower_pieces(text: str) -> list[str]:
    """Return the lower case of each character of a string."""
    table = _table().keys
    return [character.translate(table) for character in text]


def _starts(pieces: list[str], part: str) -> bool:
    return part in accumulate(pieces, initial="")


def _ends(pieces: list[str], part: str) -> bool:
    return part in accumulate(reversed(pieces), lambda found, piece: piece + found, initial="")


def _contains(pieces: list[str], part: str) -> bool:
    return any(_starts(pieces[start:], part) for start in range(len(pieces) + 1))


TESTS: Final[dict[str, tuple[Callable[..., Datum], Callable[[list[str], str], bool]]]] = {
    "startswith": (compute.starts_with, _starts),
    "endswith": (pc.ends_with, _ends),
    "contains": (pc.match_substring, _contains),
}


# --- The lower case of single characters in Unicode 17, whatever the adjacent characters are


# Each row: the first and last code point of a range, the step between the code points, and the
# number to add to a code point for its lower case.
_RUNS: Final = (
    (0x41, 0x5A, 1, 32), (0xC0, 0xD6, 1, 32), (0xD8, 0xDE, 1, 32), (0x100, 0x12E, 2, 1),
    (0x132, 0x136, 2, 1), (0x139, 0x147, 2, 1), (0x14A, 0x176, 2, 1), (0x178, 0x178, 1, -121),
    (0x179, 0x17D, 2, 1), (0x181, 0x181, 1, 210), (0x182, 0x184, 2, 1), (0x186, 0x186, 1, 206),
    (0x187, 0x187, 1, 1), (0x189, 0x18A, 1, 205), (0x18B, 0x18B, 1, 1), (0x18E, 0x18E, 1, 79),
    (0x18F, 0x18F, 1, 202), (0x190, 0x190, 1, 203), (0x191, 0x191, 1, 1), (0x193, 0x193, 1, 205),
    (0x194, 0x194, 1, 207), (0x196, 0x196, 1, 211), (0x197, 0x197, 1, 209), (0x198, 0x198, 1, 1),
    (0x19C, 0x19C, 1, 211), (0x19D, 0x19D, 1, 213), (0x19F, 0x19F, 1, 214), (0x1A0, 0x1A4, 2, 1),
    (0x1A6, 0x1A6, 1, 218), (0x1A7, 0x1A7, 1, 1), (0x1A9, 0x1A9, 1, 218), (0x1AC, 0x1AC, 1, 1),
    (0x1AE, 0x1AE, 1, 218), (0x1AF, 0x1AF, 1, 1), (0x1B1, 0x1B2, 1, 217), (0x1B3, 0x1B5, 2, 1),
    (0x1B7, 0x1B7, 1, 219), (0x1B8, 0x1B8, 1, 1), (0x1BC, 0x1BC, 1, 1), (0x1C4, 0x1C4, 1, 2),
    (0x1C5, 0x1C5, 1, 1), (0x1C7, 0x1C7, 1, 2), (0x1C8, 0x1C8, 1, 1), (0x1CA, 0x1CA, 1, 2),
    (0x1CB, 0x1DB, 2, 1), (0x1DE, 0x1EE, 2, 1), (0x1F1, 0x1F1, 1, 2), (0x1F2, 0x1F4, 2, 1),
    (0x1F6, 0x1F6, 1, -97), (0x1F7, 0x1F7, 1, -56), (0x1F8, 0x21E, 2, 1),
    (0x220, 0x220, 1, -130), (0x222, 0x232, 2, 1), (0x23A, 0x23A, 1, 10795),
    (0x23B, 0x23B, 1, 1), (0x23D, 0x23D, 1, -163), (0x23E, 0x23E, 1, 10792),
    (0x241, 0x241, 1, 1), (0x243, 0x243, 1, -195), (0x244, 0x244, 1, 69), (0x245, 0x245, 1, 71),
    (0x246, 0x24E, 2, 1), (0x370, 0x372, 2, 1), (0x376, 0x376, 1, 1), (0x37F, 0x37F, 1, 116),
    (0x386, 0x386, 1, 38), (0x388, 0x38A, 1, 37), (0x38C, 0x38C, 1, 64), (0x38E, 0x38F, 1, 63),
    (0x391, 0x3A1, 1, 32), (0x3A3, 0x3AB, 1, 32), (0x3CF, 0x3CF, 1, 8), (0x3D8, 0x3EE, 2, 1),
    (0x3F4, 0x3F4, 1, -60), (0x3F7, 0x3F7, 1, 1), (0x3F9, 0x3F9, 1, -7), (0x3FA, 0x3FA, 1, 1),
    (0x3FD, 0x3FF, 1, -130), (0x400, 0x40F, 1, 80), (0x410, 0x42F, 1, 32), (0x460, 0x480, 2, 1),
    (0x48A, 0x4BE, 2, 1), (0x4C0, 0x4C0, 1, 15), (0x4C1, 0x4CD, 2, 1), (0x4D0, 0x52E, 2, 1),
    (0x531, 0x556, 1, 48), (0x10A0, 0x10C5, 1, 7264), (0x10C7, 0x10C7, 1, 7264),
    (0x10CD, 0x10CD, 1, 7264), (0x13A0, 0x13EF, 1, 38864), (0x13F0, 0x13F5, 1, 8),
    (0x1C89, 0x1C89, 1, 1), (0x1C90, 0x1CBA, 1, -3008), (0x1CBD, 0x1CBF, 1, -3008),
    (0x1E00, 0x1E94, 2, 1), (0x1E9E, 0x1E9E, 1, -7615), (0x1EA0, 0x1EFE, 2, 1),
    (0x1F08, 0x1F0F, 1, -8), (0x1F18, 0x1F1D, 1, -8), (0x1F28, 0x1F2F, 1, -8),
    (0x1F38, 0x1F3F, 1, -8), (0x1F48, 0x1F4D, 1, -8), (0x1F59, 0x1F5F, 2, -8),
    (0x1F68, 0x1F6F, 1, -8), (0x1F88, 0x1F8F, 1, -8), (0x1F98, 0x1F9F, 1, -8),
    (0x1FA8, 0x1FAF, 1, -8), (0x1FB8, 0x1FB9, 1, -8), (0x1FBA, 0x1FBB, 1, -74),
    (0x1FBC, 0x1FBC, 1, -9), (0x1FC8, 0x1FCB, 1, -86), (0x1FCC, 0x1FCC, 1, -9),
    (0x1FD8, 0x1FD9, 1, -8), (0x1FDA, 0x1FDB, 1, -100), (0x1FE8, 0x1FE9, 1, -8),
    (0x1FEA, 0x1FEB, 1, -112), (0x1FEC, 0x1FEC, 1, -7), (0x1FF8, 0x1FF9, 1, -128),
    (0x1FFA, 0x1FFB, 1, -126), (0x1FFC, 0x1FFC, 1, -9), (0x2126, 0x2126, 1, -7517),
    (0x212A, 0x212A, 1, -8383), (0x212B, 0x212B, 1, -8262), (0x2132, 0x2132, 1, 28),
    (0x2160, 0x216F, 1, 16), (0x2183, 0x2183, 1, 1), (0x24B6, 0x24CF, 1, 26),
    (0x2C00, 0x2C2F, 1, 48), (0x2C60, 0x2C60, 1, 1), (0x2C62, 0x2C62, 1, -10743),
    (0x2C63, 0x2C63, 1, -3814), (0x2C64, 0x2C64, 1, -10727), (0x2C67, 0x2C6B, 2, 1),
    (0x2C6D, 0x2C6D, 1, -10780), (0x2C6E, 0x2C6E, 1, -10749), (0x2C6F, 0x2C6F, 1, -10783),
    (0x2C70, 0x2C70, 1, -10782), (0x2C72, 0x2C72, 1, 1), (0x2C75, 0x2C75, 1, 1),
    (0x2C7E, 0x2C7F, 1, -10815), (0x2C80, 0x2CE2, 2, 1), (0x2CEB, 0x2CED, 2, 1),
    (0x2CF2, 0x2CF2, 1, 1), (0xA640, 0xA66C, 2, 1), (0xA680, 0xA69A, 2, 1),
    (0xA722, 0xA72E, 2, 1), (0xA732, 0xA76E, 2, 1), (0xA779, 0xA77B, 2, 1),
    (0xA77D, 0xA77D, 1, -35332), (0xA77E, 0xA786, 2, 1), (0xA78B, 0xA78B, 1, 1),
    (0xA78D, 0xA78D, 1, -42280), (0xA790, 0xA792, 2, 1), (0xA796, 0xA7A8, 2, 1),
    (0xA7AA, 0xA7AA, 1, -42308), (0xA7AB, 0xA7AB, 1, -42319), (0xA7AC, 0xA7AC, 1, -42315),
    (0xA7AD, 0xA7AD, 1, -42305), (0xA7AE, 0xA7AE, 1, -42308), (0xA7B0, 0xA7B0, 1, -42258),
    (0xA7B1, 0xA7B1, 1, -42282), (0xA7B2, 0xA7B2, 1, -42261), (0xA7B3, 0xA7B3, 1, 928),
    (0xA7B4, 0xA7C2, 2, 1), (0xA7C4, 0xA7C4, 1, -48), (0xA7C5, 0xA7C5, 1, -42307),
    (0xA7C6, 0xA7C6, 1, -35384), (0xA7C7, 0xA7C9, 2, 1), (0xA7CB, 0xA7CB, 1, -42343),
    (0xA7CC, 0xA7DA, 2, 1), (0xA7DC, 0xA7DC, 1, -42561), (0xA7F5, 0xA7F5, 1, 1),
    (0xFF21, 0xFF3A, 1, 32), (0x10400, 0x10427, 1, 40), (0x104B0, 0x104D3, 1, 40),
    (0x10570, 0x10594, 2, 39), (0x10571, 0x10579, 2, 39), (0x1057D, 0x10589, 2, 39),
    (0x1058D, 0x10591, 2, 39), (0x10595, 0x10595, 1, 39), (0x10C80, 0x10CB2, 1, 64),
    (0x10D50, 0x10D65, 1, 32), (0x118A0, 0x118BF, 1, 32), (0x16E40, 0x16E5F, 1, 32),
    (0x16EA0, 0x16EB8, 1, 27), (0x1E900, 0x1E921, 1, 34),
)  # fmt: skip

LOWER: Final = {
    code: code + distance
    for first, last, step, distance in _RUNS
    for code in range(first, last + 1, step)
}
"""Code point → its lower case. `İ` is missing, because its lower case is two code points."""

# All code points in these ranges were assigned by Unicode 14 or earlier. Later releases do not
# change their lower case.
_SETTLED: Final = (
    (0x0, 0x377), (0x384, 0x38A), (0x38E, 0x3A1), (0x3A3, 0x52F), (0x5D0, 0x5EA), (0x600, 0x70D),
    (0x900, 0x983), (0xE01, 0xE3A), (0xE3F, 0xE5B), (0x1E00, 0x1F15), (0x2000, 0x2064),
    (0x20A0, 0x20C0), (0x2100, 0x218B), (0x2190, 0x23FF), (0x3001, 0x303F), (0x3041, 0x3096),
    (0x3099, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFF01, 0xFFBE), (0x1F300, 0x1F6D7),
    (0x1F90C, 0x1FA53),
)  # fmt: skip
SETTLED_TEXT: Final = (
    r"\A[" + "".join(rf"\x{{{first:X}}}-\x{{{last:X}}}" for first, last in _SETTLED) + r"]*\z"
)
"""Matches strings whose lower case is the same in all releases of Unicode from 14."""
