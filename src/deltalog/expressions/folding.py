"""Replacing the constant parts of a condition by their values, and long chains by IN lists."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.expressions import nodes
from deltalog.expressions.analyze import type_of
from deltalog.expressions.arrow import evaluate
from deltalog.expressions.literals import from_scalar
from deltalog.expressions.nodes import Cast, Column, Expression, Literal
from deltalog.expressions.render import to_sql
from deltalog.expressions.trees import flattened, fold_up, with_children
from deltalog.schema.types import DataType, PrimitiveType, StructType

_NO_COLUMNS: Final = StructType()
_INPUTS: Final = (Column, nodes.Variable, nodes.Lambda)
# The minimum number of comparisons that IN lists must save. Otherwise an OR or AND is not changed.
_MANY: Final = 16


def fold(resolved: Expression) -> Expression:
    """Replace every constant part of an expression by its value.

    `d >= current_date() - 7` becomes a comparison with a date, so that statistics can skip files. A
    part whose evaluation raises an error is not replaced, because perhaps no row reaches it. As in
    Spark, `FALSE AND x` becomes FALSE, and `TRUE OR x` becomes TRUE. A long OR of `x = constant`
    becomes `x IN (…)`, and a long AND of `x <> constant` becomes NOT IN, because a list lookup is
    faster than many comparisons.
    """
    return fold_up(resolved, _folded)[0]


def _folded(resolved: Expression, found: list[tuple[Expression, bool]]) -> tuple[Expression, bool]:
    """Fold a node whose children are already folded; return it, and whether it is constant."""
    if isinstance(resolved, Literal):
        return resolved, True
    is_constant = not isinstance(resolved, _INPUTS) and all(known for _, known in found)
    node = flattened(with_children(resolved, [part for part, _ in found]))
    if isinstance(node, nodes.And | nodes.Or):
        decides = isinstance(node, nodes.Or)
        for part in node.operands:
            if isinstance(part, Literal) and part.value is decides:
                return part, True
        node = _with_lists(node)
    # A constant need not be a literal, because there are no literals of arrays and structs.
    if not is_constant or not found:
        return node, is_constant
    data_type = type_of(node, _NO_COLUMNS)
    if not isinstance(data_type, PrimitiveType):
        return node, True
    try:
        # Create the table only here. As a module constant, it would slow down `import deltalog`,
        # because pyarrow imports pandas when it converts its first list.
        value = from_scalar(evaluate(node, pa.table({"": [0]}))[0])
    except InvalidInputError:
        return node, True
    return Literal(value, data_type), True


def _with_lists(node: nodes.And | nodes.Or) -> Expression:
    if len(node.operands) <= _MANY:
        return node
    lists: dict[tuple[str, DataType | None], list[Literal]] = {}
    operands: dict[tuple[str, DataType | None], Expression] = {}
    others: dict[int, Expression] = {}
    for place, part in enumerate(node.operands):
        tested = _tested(part, "=" if isinstance(node, nodes.Or) else "<>")
        if tested is None:
            others[place] = part
            continue
        operand, options = tested
        key = to_sql(operand), options[0].type
        if key not in lists:
            # The IN list replaces the operand's first comparison, so the order of evaluation is
            # preserved.
            lists[key], operands[key], others[place] = [], operand, operand
        lists[key] += options
    if sum(map(len, lists.values())) - len(lists) < _MANY:
        return node
    made = {id(operands[key]): nodes.In(operands[key], tuple(lists[key])) for key in lists}
    parts: list[Expression] = []
    for one in others.values():
        found: Any = made.get(id(one))
        if found is None:
            parts.append(one)
        else:
            parts.append(found if isinstance(node, nodes.Or) else nodes.Not(found))
    return parts[0] if len(parts) == 1 else type(node)(tuple(parts))


def _tested(part: Expression, operator: str) -> tuple[Expression, list[Literal]] | None:
    """Return the operand and the constants of a test against constants; None for other nodes."""
    if isinstance(part, nodes.Comparison) and part.operator == operator:
        operand, option = part.left, part.right
        if isinstance(operand, Literal):
            operand, option = option, operand
        options: tuple[Expression, ...] = (option,)
    elif operator == "=" and isinstance(part, nodes.In):
        operand, options = part.operand, part.options
    elif operator == "<>" and isinstance(part, nodes.Not) and isinstance(part.operand, nodes.In):
        operand, options = part.operand.operand, part.operand.options
    else:
        return None
    held = operand.operand if isinstance(operand, Cast) else operand
    constants = [one for one in options if isinstance(one, Literal)]
    is_plain = isinstance(held, Column) and len(constants) == len(options) > 0
    # An IN list cannot contain timestamps in different units, so all types must be equal.
    same = {one.type for one in constants}
    if not is_plain or len(same) != 1 or not isinstance(constants[0].type, PrimitiveType):
        return None
    return operand, constants
