"""Leaving out of a long OR what no row of a batch can match.

A row is asked for each operand of an OR. Of thousands of ranges, or pairs of a key's columns, few
can match in a file whose rows are close together: the batch's least and greatest values tell which.

Only a filter may be narrowed: what is left out may be NULL where it was not true, which a filter
takes for the same, and NOT does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog.errors import DeltaError
from deltalog.expressions import nodes
from deltalog.expressions.literals import array_of, to_scalar
from deltalog.expressions.nodes import Column, Comparison, Expression, Literal
from deltalog.expressions.trees import conjunction, conjuncts
from deltalog.kernels import compute
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.types import BOOLEAN, PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Sequence

MANY: Final = 64
"""An OR of so many operands is narrowed; of fewer, asking for all is as quick."""
_FLIPPED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True, eq=False)
class _Limits:
    """Of each operand of an OR, between what values it looks for in a column; NULL is open."""

    name: str
    lows: pa.Array[Any]
    highs: pa.Array[Any]


def narrowed(condition: Expression, data: pa.RecordBatch | pa.Table) -> Expression:
    """The condition without operands of a long OR that are true of no row.

    Args:
        condition: resolved; of a filter.
        data: the rows.

    Cost: of the whole OR once, then a few kernels for each batch.
    """
    if not condition.fact("has long ORs", lambda: any(map(_is_long, conjuncts(condition)))):
        return condition
    parts = [_narrowed(part, data) if _is_long(part) else part for part in conjuncts(condition)]
    return conjunction(parts)


def _is_long(part: Expression) -> bool:
    return isinstance(part, nodes.Or) and len(part.operands) > MANY


def _narrowed(part: Any, data: Any) -> Expression:
    keep: Any = None
    for limits in part.fact("limits", lambda: _limits(part.operands)):
        column = data.column(limits.name)
        if column.type != limits.lows.type:
            continue
        ends = compute.min_max(column)
        fits = compute.and_(
            compute.fill_null(compute.less_equal(limits.lows, ends["max"]), limits.lows.is_null()),
            compute.fill_null(
                compute.greater_equal(limits.highs, ends["min"]), limits.highs.is_null()
            ),
        )
        keep = fits if keep is None else compute.and_(keep, fits)
    if keep is None:
        return part  # type: ignore[no-any-return]  # an OR
    kept = [part.operands[place] for place in compute.indices_nonzero(keep).to_pylist()]
    if not kept:
        return Literal(value=False, type=BOOLEAN)
    return kept[0] if len(kept) == 1 else nodes.Or(tuple(kept))


def _limits(operands: Sequence[Expression]) -> list[_Limits]:
    """The columns of which every operand says something."""
    each = [_of_operand(operand) for operand in operands]
    common = set(each[0]).intersection(*each[1:])
    found = []
    for name, kind in sorted(common, key=str):
        arrow_type = to_arrow_type(kind)
        if pt.is_floating(arrow_type):
            continue  # NaN is above all that a batch's greatest value tells
        try:
            lows, highs = (
                array_of([to_scalar(ends[name, kind][side], kind) for ends in each], arrow_type)
                for side in (0, 1)
            )
        except (DeltaError, pa.ArrowException, AttributeError):
            continue
        found.append(_Limits(name, lows, highs))
    return found


def _of_operand(operand: Expression) -> dict[tuple[str, PrimitiveType], tuple[Any, Any]]:
    """Between what constants an operand looks for, by column and type; None is open."""
    found: dict[tuple[str, PrimitiveType], tuple[Any, Any]] = {}
    for part in conjuncts(operand):
        if isinstance(part, Comparison):
            operator, left, right = part.operator, part.left, part.right
            if isinstance(left, Literal):
                operator, left, right = _FLIPPED.get(operator, operator), right, left
            options: tuple[Expression, ...] = (right,)
        elif isinstance(part, nodes.In):
            operator, left, options = "in", part.operand, part.options
        else:
            continue
        values = [one.value for one in options if isinstance(one, Literal)]
        first = options[0] if options else None
        if not isinstance(left, Column) or len(left.path) > 1 or len(values) < len(options):
            continue
        if not isinstance(first, Literal) or not isinstance(first.type, PrimitiveType):
            continue
        ends = _ends(operator, values)
        if ends is not None:
            low, high = found.get((left.path[0], first.type), (None, None))
            # Of two limits on one side, either is one.
            found[left.path[0], first.type] = (
                ends[0] if low is None else low,
                ends[1] if high is None else high,
            )
    return found


def _ends(operator: str, values: list[Any]) -> tuple[Any, Any] | None:
    if not values or any(value is None for value in values):
        return None
    match operator:
        case "=" | "in":
            return min(values), max(values)
        case "<" | "<=":
            return None, values[0]
        case ">" | ">=":
            return values[0], None
        case _:
            return None
