"""Comparisons with Spark's rules, over Arrow arrays and constants.

Owns NaN (equal to itself, greater than all other values), zeros of either sign, moments in two
units, NULL-safe equality, IN and LIKE. `resolve` guarantees that other operands have one type.
"""

from __future__ import annotations

import operator as operators
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog.errors import InvalidInputError
from deltalog.expressions.literals import array_of
from deltalog.expressions.rows import NO, by_row
from deltalog.kernels import Datum, compute, pc
from deltalog.schema.primitives.moments import parted_nanos

if TYPE_CHECKING:
    from collections.abc import Callable

_NAN: Final = object()
# Of each operator: Arrow's kernel, and Python's for nested values.
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
    """`left operator right`; NULL where a side is NULL, except for `<=>`."""
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
    """Moments in microseconds beside moments in nanoseconds, none of which is rounded."""
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
    """NULL of type boolean, with the number of rows of the sides."""
    for side in sides:
        if not isinstance(side, pa.Scalar):
            return pa.nulls(len(side), pa.bool_())
    return pa.scalar(None, pa.bool_())


def _with_nan(operator: str, left: Datum, right: Datum, found: Any) -> Datum:
    # Arrow follows IEEE 754, where NaN equals nothing. In Spark NaN = NaN is true, and NaN is
    # greater than any other value, also than infinity.
    left_nan, right_nan = _nan(left), _nan(right)
    if left_nan is None and right_nan is None:
        return found
    if operator in {">", ">="}:
        left_nan, right_nan = right_nan, left_nan
    # With the sides of > and >= swapped, only =, <, <= and <> are left to decide.
    no = pa.scalar(NO)
    left_nan = no if left_nan is None else left_nan
    right_nan = no if right_nan is None else right_nan
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
    # A NULL beside NaN stays NULL.
    return compute.if_else(compute.is_valid(found), answer, pa.scalar(None, pa.bool_()))


def _nan(side: Datum) -> Datum | None:
    """The rows that are NaN; None if there are none, so that the usual case costs one pass."""
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
    """Lists and structs, compared element by element. Cost: by row."""
    test = _OPERATORS[operator][1]
    return by_row(lambda a, b: test(sort_key(a), sort_key(b)), pa.bool_(), left, right)


def sort_key(value: Any) -> Any:
    """A key by which Python orders values as Spark: NULL first (inside of values), NaN last."""
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
    """A hashable value, the same for all values that Spark takes for equal: NaN is NaN."""
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
    """The constants of a list, for operands of one type.

    Args:
        known: those that are not NULL.
        values: the same as an array; None for types that are compared one by one.
        has_null: whether there is a NULL too.
    """

    known: list[pa.Scalar[Any]]
    values: pa.Array[Any] | None
    has_null: bool


def members(options: list[pa.Scalar[Any]], kind: pa.DataType) -> Members:
    """Constants as `is_member` looks for them."""
    known = [option for option in options if option.is_valid]
    values: Any = None
    if not pt.is_nested(kind) and not pt.is_null(kind):
        values = array_of(known, kind)
        if pt.is_floating(kind):
            values = compute.add(values, pa.scalar(0.0, kind))
    return Members(known, values, len(known) < len(options))


def is_member(operand: Datum, options: Members) -> Datum:
    """Whether the operand is one of the constants; NULL if it equals none and one is NULL."""
    if options.values is None:
        found: Any = pa.scalar(NO)
        for option in options.known:
            found = pc.or_kleene(found, compare("=", operand, option))
        return _null_where_unknown(found, operand, options.has_null)
    if pt.is_floating(operand.type):
        # `is_in` hashes, and -0.0 and 0.0 have different hashes; adding 0.0 turns -0.0 into 0.0.
        operand = compute.add(operand, pa.scalar(0.0, operand.type))
    found = compute.is_in(operand, value_set=options.values)
    return _null_where_unknown(found, operand, options.has_null)


def _null_where_unknown(found: Any, operand: Datum, has_null: bool) -> Datum:  # noqa: FBT001  # private
    is_known: Any = compute.is_valid(operand)
    if has_null:
        is_known = compute.and_(is_known, found)
    return compute.if_else(is_known, found, pa.scalar(None, pa.bool_()))


def like(operand: Datum, pattern: str, escape: str, *, ignore_case: bool) -> Datum:
    """`operand LIKE pattern`; common patterns become tests of a prefix, a suffix or a substring."""
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
    """A LIKE pattern as `%`, `_` and plain text (with a leading `=`).

    Raises:
        InvalidInputError: the escape character is not before `%`, `_` or itself, which is an error
            in Spark too.
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
                    "must stand before %, _ or itself"
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
    """LIKE with a pattern that is not constant. Cost: by row, with one compiled pattern each."""

    def matches(text: str, shape: str) -> bool | None:
        found: bool | None = like(pa.scalar(text), shape, escape, ignore_case=ignore_case).as_py()
        return found

    return by_row(matches, pa.bool_(), operand, pattern)
