"""Constant parts of a resolved expression, computed once.

`d >= current_date() - 7` becomes a comparison with a date, which statistics can answer.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.expressions.analyze import type_of
from deltalog.expressions.arrow import evaluate
from deltalog.expressions.literals import from_scalar
from deltalog.expressions.nodes import Column, Expression, Literal
from deltalog.expressions.trees import children, rebuild, walk
from deltalog.schema.types import PrimitiveType, StructType

_NO_COLUMNS: Final = StructType()


def fold(resolved: Expression) -> Expression:
    """The same expression with every constant part replaced by its value.

    A part whose value is an error stays: it belongs to the rows that reach it.
    """
    if isinstance(resolved, Literal):
        return resolved
    node = rebuild(resolved, fold)
    if not _is_constant(node):
        return node
    data_type = type_of(node, _NO_COLUMNS)
    if not isinstance(data_type, PrimitiveType):
        return node
    try:
        # Made here: pyarrow imports pandas to look at the first list it converts.
        value = from_scalar(evaluate(node, pa.table({"": [0]}))[0])
    except InvalidInputError:
        return node
    return Literal(value, data_type)


def _is_constant(node: Expression) -> bool:
    # Arrays and structs have no constant of their own, so their parts are looked at too.
    has_parts = next(children(node), None) is not None
    return has_parts and not any(isinstance(part, Column) for part in walk(node))
