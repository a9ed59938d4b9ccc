"""The condition of a merge, split by the sides that its conjuncts use.

Owns which conjuncts are equi-join keys, which use one side only, which are evaluated on pairs of
rows, and which of these make a range that rows can be looked up by. Does no I/O.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalog.expressions import Expression, Literal, columns, conjuncts, type_of
from deltalog.expressions.nodes import Cast, Column, Comparison
from deltalog.rows.merge.names import SOURCE, TARGET, sides_of, without_side
from deltalog.schema import PrimitiveType, StructType
from deltalog.schema.primitives import Family
from deltalog.schema.types import VOID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.schema import DataType

_ORDERED: Final = (Family.INTEGRAL, Family.DECIMAL, Family.MOMENT)


@dataclass(frozen=True, slots=True)
class Key:
    """An equality of the condition that can be looked up: `target = source`.

    Args:
        target: over the table's columns.
        source: over the source's columns.
        null_safe: whether NULL equals NULL.
    """

    target: Expression
    source: Expression
    null_safe: bool


@dataclass(frozen=True, slots=True)
class SourceRange:
    """Inequalities of the condition that can be searched: `low <= target`, `target <= high`.

    Equal values may or may not match: the inequalities are in the residual, too.

    Args:
        target: a column of the table.
        low: a column of the source, or None.
        high: as `low`; one of them is there.
    """

    target: Expression
    low: Expression | None
    high: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeCondition:
    """The condition of a merge, split into conjuncts by the sides that they use.

    Args:
        keys: equi-join keys.
        target_only: conjuncts over the table's columns.
        source_only: conjuncts over the source's columns.
        residual: the other conjuncts, over both sides.
        within: some of the residual as a range of the source; only where there are no keys.
        is_never: a constant conjunct is not true, so that no rows match.
    """

    keys: tuple[Key, ...]
    target_only: tuple[Expression, ...]
    source_only: tuple[Expression, ...]
    residual: tuple[Expression, ...]
    within: SourceRange | None
    is_never: bool


def taken_apart(whole: Expression, schema: StructType) -> MergeCondition:
    """Split a resolved condition.

    Args:
        whole: over the structs `target` and `source`.
        schema: of these.
    """
    keys: list[Key] = []
    target_only: list[Expression] = []
    source_only: list[Expression] = []
    residual: list[Expression] = []
    is_never = False
    for part in conjuncts(whole):
        sides = sides_of(columns(part))
        key = _key(part, schema)
        if not sides:
            is_never = is_never or not (isinstance(part, Literal) and part.value is True)
        elif key is not None:
            keys.append(key)
        elif sides == {TARGET}:
            target_only.append(without_side(part))
        elif sides == {SOURCE}:
            source_only.append(without_side(part))
        else:
            residual.append(part)
    return MergeCondition(
        keys=tuple(keys),
        target_only=tuple(target_only),
        source_only=tuple(source_only),
        residual=tuple(residual),
        within=None if keys else _range(residual, schema),
        is_never=is_never,
    )


def _key(part: Expression, schema: StructType) -> Key | None:
    """Return a conjunct as a key if it equates a value of each side; else None."""
    if not isinstance(part, Comparison) or part.operator not in {"=", "<=>"}:
        return None
    left, right = sides_of(columns(part.left)), sides_of(columns(part.right))
    ends = (part.left, part.right)
    if (left, right) == ({SOURCE}, {TARGET}):
        ends = ends[::-1]
    elif (left, right) != ({TARGET}, {SOURCE}):
        return None
    data_type = type_of(ends[0], schema)
    if not isinstance(data_type, PrimitiveType) or data_type == VOID:
        return None
    if type_of(ends[1], schema) != data_type:  # moments in two units have no common form
        return None
    return Key(without_side(ends[0]), without_side(ends[1]), part.operator == "<=>")


def _range(parts: Sequence[Expression], schema: StructType) -> SourceRange | None:
    """Return two inequalities of one column as a range, or one of them; None if there is none."""
    found: list[SourceRange] = []
    for part in parts:
        new = _bound(part, schema)
        if new is None:
            continue
        for number, old in enumerate(found):
            if old.target.same_as(new.target):
                low = new.low if old.low is None else old.low
                high = new.high if old.high is None else old.high
                found[number] = SourceRange(old.target, low, high)
                break
        else:
            found.append(new)
    both = [one for one in found if one.low is not None and one.high is not None]
    return next(iter(both or found), None)


def _bound(part: Expression, schema: StructType) -> SourceRange | None:
    """Return a conjunct as a range with one end if it compares a column of each side; else None."""
    if not isinstance(part, Comparison) or part.operator not in {"<", "<=", ">", ">="}:
        return None
    less, greater = part.left, part.right
    if part.operator in {">", ">="}:
        less, greater = greater, less
    data_type = type_of(less, schema)
    # Of other types Arrow's order is not Spark's, or depends on a collation.
    if not isinstance(data_type, PrimitiveType) or data_type.primitive.family not in _ORDERED:
        return None
    if type_of(greater, schema) != data_type:
        return None
    if not (_never_fails(less, schema) and _never_fails(greater, schema)):
        return None
    sides = sides_of(columns(less)), sides_of(columns(greater))
    if sides == ({SOURCE}, {TARGET}):
        return SourceRange(without_side(greater), without_side(less), None)
    if sides == ({TARGET}, {SOURCE}):
        return SourceRange(without_side(less), None, without_side(greater))
    return None


def _never_fails(expression: Expression, schema: StructType) -> bool:
    """Whether an expression can be evaluated for rows of which no pair would be looked at."""
    if isinstance(expression, Cast) and isinstance(expression.operand, Column):
        narrow, wide = _digits(type_of(expression.operand, schema)), _digits(expression.to)
        return 0 < narrow <= wide
    return isinstance(expression, Column)


def _digits(kind: DataType) -> int:
    """How many decimal digits the values of an integral type have; 0 for other types."""
    if not isinstance(kind, PrimitiveType) or kind.primitive.family is not Family.INTEGRAL:
        return 0
    return kind.primitive.decimal_digits
