"""Constant parts of a query that have a value: `68 + 30`, `CAST('2000-02-01' AS DATE)`.

Spark computes them before it reads rows, so that they cannot fail for a row. A condition that has
nothing else that may fail needs no order, and DuckDB may ask it where its columns are read, below
the joins.

Protocol: none; Spark's rule ConstantFolding
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from deltalog.errors import DeltaError
from deltalog.expressions import evaluate, parse_sql, resolve
from deltalog.query.parse import span_of
from deltalog.schema.types import StructType

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_SAFE: Final = "deltalog_safe"
_MAY_FAIL: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Cast)
_CONSTANT: Final = (
    *_MAY_FAIL, exp.Paren, exp.Literal, exp.Null, exp.Boolean, exp.DataType, exp.DataTypeParam,
    exp.Interval, exp.Var,
)  # fmt: skip
_MOST: Final = 100
"""From here on, conditions are asked together: each that is apart has a cost of its own."""
_ONE_ROW: Final = pa.RecordBatch.from_pydict({"one": [1]})


def note_safe_constants(tree: Expr, text: str) -> None:
    """Note the constant parts that have a value.

    Args:
        tree: of a query.
        text: that it was read from.

    Cost: a constant is parsed and computed; nothing if there are very many.
    """
    found = [
        node
        for node in tree.find_all(*_MAY_FAIL)
        if not isinstance(node.parent, _MAY_FAIL)
        and all(isinstance(one, _CONSTANT) for one in node.walk())
    ]
    if len(found) > _MOST:
        return
    for node in found:
        span = span_of(node)
        if span is not None and _has_value(text[span[0] : span[1]]):
            node.meta[_SAFE] = True


def is_safe(node: Expr | None) -> bool:
    """Whether a node is a constant that has a value, or stands in one."""
    return node is not None and bool(node.meta.get(_SAFE))


def _has_value(text: str) -> bool:
    try:
        evaluate(resolve(parse_sql(text), StructType(())), _ONE_ROW)
    except DeltaError:
        return False
    return True
