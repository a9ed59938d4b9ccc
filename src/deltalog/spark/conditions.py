"""Conditions as Spark evaluates them, and what of them may prune files before Spark starts.

Owns the difference between the two: Spark reads texts in the session's time zone and knows
functions that we do not, so of a text only that prunes which means the same here.

Protocol: none
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog.arguments import as_condition
from deltalog.errors import InvalidInputError
from deltalog.expressions import columns as columns_of
from deltalog.expressions import conjuncts, to_sql
from deltalog.expressions.nodes import Call, Cast, Expression
from deltalog.expressions.trees import walk
from deltalog.schema import PrimitiveType, find_field

if TYPE_CHECKING:
    from deltalog.schema import StructType

_UTC: Final = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00", "UCT", "Zulu"})
_ASKS_THE_CLOCK: Final = re.compile(r"(?i)current_|\bnow\b|localtimestamp|curdate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition on rows.

    Args:
        column: what Spark evaluates.
        pruning: true of every row for which the condition is; None if nothing is known.
        used: top-level columns that the condition reads; None if that is not known.
        text: for people.
    """

    column: Column
    pruning: Expression | None
    used: frozenset[str] | None
    text: str


def as_spark_condition(condition: Any, schema: StructType, time_zone: str) -> Condition:
    """A condition in any of the forms that callers give.

    Args:
        condition: Spark SQL, a Spark column, an expression, or deltalake's filter tuples.
        schema: of the table.
        time_zone: of the session.

    Raises:
        InvalidInputError: it is none of these. What is wrong in a SQL text is Spark's to say.
    """
    if isinstance(condition, Column):
        return Condition(column=condition, pruning=None, used=None, text=str(condition))
    if not isinstance(condition, str):
        ours = as_condition(schema, condition)
        if ours is None:
            raise InvalidInputError(f"cannot take {condition!r} for a condition")
        text = to_sql(ours)
        return Condition(column=F.expr(text), pruning=ours, used=_used(ours), text=text)
    column = F.expr(condition)
    try:
        ours = as_condition(schema, condition)
    except InvalidInputError:  # Spark may know what we do not
        ours = None
    if ours is None:
        return Condition(column=column, pruning=None, used=None, text=condition)
    used = _used(ours)
    pruning = ours if time_zone in _UTC else _in_any_zone(condition, ours, schema)
    return Condition(column=column, pruning=pruning, used=used, text=condition)


def _used(expression: Expression) -> frozenset[str]:
    """Top-level columns, and metadata columns whole."""
    return frozenset(
        ".".join(path) if path[0] == "_metadata" else path[0] for path in columns_of(expression)
    )


def _in_any_zone(text: str, condition: Expression, schema: StructType) -> Expression | None:
    """The parts of a condition that mean the same in every time zone."""
    if _ASKS_THE_CLOCK.search(text):
        return None
    parts = [part for part in conjuncts(condition) if _knows_no_zone(part, schema)]
    return reduce(and_, parts) if parts else None


def _knows_no_zone(part: Expression, schema: StructType) -> bool:
    if any(isinstance(node, Call | Cast) for node in walk(part)):
        return False
    return not any(
        find_field(schema, path).type == PrimitiveType("timestamp")
        for path in columns_of(part)
        if path[0] != "_metadata"
    )
