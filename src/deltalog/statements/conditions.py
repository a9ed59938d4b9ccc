"""Expressions of statements, with the answers of the queries in them.

A query in an expression is answered once, before the statement begins, and its answer is a
constant. A query that names a column of the statement's own rows has no such answer: it is refused.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.types as pt

from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, Literal, lit, parse_sql
from deltalog.expressions.nodes import And, Comparison, In, Or
from deltalog.expressions.row_values import values_of_row
from deltalog.expressions.trees import rebuild
from deltalog.schema.arrow import type_of_query
from deltalog.schema.readable import python_values
from deltalog.statements.slices import SubqueryKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from deltalog.statements.slices import Query, SqlCondition, Subquery

_ADVICE: Final = "compare with the rows themselves: write it as a MERGE"


def resolved(
    values_of: Callable[[Query], pa.Table], condition: SqlCondition, columns: Collection[str] = ()
) -> Expression:
    """Return the expression of a condition, whose queries are answered.

    Args:
        values_of: answers a query.
        condition: from the statement.
        columns: of the rows that it is about; double quotes around such a name are refused.

    Raises:
        InvalidInputError: a query gives more than one column, or several rows where one value is
            needed; or it needs the row that the expression is about; or Python has no such value.
    """
    # No value of the statement can be one of these.
    secret = uuid4().hex
    named = {name: f"{name}_{secret}" for name in condition.subqueries}
    marks = {named[name]: one for name, one in condition.subqueries.items()}
    parameters = {**condition.parameters, **named}
    found = parse_sql(condition.text, parameters=parameters, columns=columns)
    answers = {mark: answer_of(values_of, one) for mark, one in marks.items()}

    def answered(node: Expression) -> Expression:
        if isinstance(node, In) and len(node.options) == 1:
            (option,) = node.options
            if isinstance(option, Literal) and option.value in answers:
                return _is_in(node.operand, *answers[option.value])
        if isinstance(node, Literal) and isinstance(node.value, str) and node.value in answers:
            return lit(answers[node.value])
        return rebuild(node, answered)

    return answered(found) if marks else found


def answer_of(values_of: Callable[[Query], pa.Table], subquery: Subquery) -> Any:
    """Return the value or the values that a query stands for.

    Raises:
        InvalidInputError: it gives more columns or rows than its place allows.
    """
    text = subquery.query.text.strip()
    try:
        rows = values_of(subquery.query)
    except InvalidInputError as error:
        error.add_note(
            f"in the query ({text}) of a condition, which cannot name columns of the table that "
            "is changed: write it as a MERGE"
        )
        raise
    if subquery.kind is SubqueryKind.EXISTS:
        return rows.num_rows > 0
    if subquery.kind is SubqueryKind.LIST:
        return text, [_values(text, rows, place) for place in range(rows.num_columns)]
    if rows.num_columns != 1:
        raise InvalidInputError(
            f"the query ({text}) stands for one value, and has {rows.num_columns} columns"
        )
    values = _values(text, rows, 0)
    if len(values) > 1:
        raise InvalidInputError(
            f"the query ({text}) stands for one value, and has {len(values)} rows"
        )
    return values[0] if values else None


def _is_in(operand: Expression, text: str, columns: Sequence[Sequence[Any]]) -> Expression:
    """Whether a value, or a row of values, is in the columns of a query's answer.

    Unlike rows that are written, NULL beside a row of a query is unknown, as in Spark.
    """
    if len(columns) == 1:
        (values,) = columns
        return In(operand, tuple(map(lit, values))) if values else Literal(value=False)
    parts = values_of_row(operand) or ()
    if len(parts) != len(columns):
        raise InvalidInputError(
            f"the query ({text}) has {len(columns)} columns, and is compared with "
            f"{len(parts) or 1}: write as many values in brackets, such as (a, b) IN (…)"
        )
    rows = [
        And(
            tuple(Comparison("=", part, lit(value)) for part, value in zip(parts, row, strict=True))
        )
        for row in zip(*columns, strict=True)
    ]
    if not rows:
        return Literal(value=False)
    return rows[0] if len(rows) == 1 else Or(tuple(rows))


def _values(text: str, rows: pa.Table, place: int) -> list[Any]:
    """Return the values of a column of a query's answer as constants."""
    found = rows.column(place)
    # Python has no nanoseconds and not all years; constants take Arrow's scalars, too.
    is_arrow = pt.is_timestamp(found.type) or pt.is_date(found.type)
    values = list(found) if is_arrow else python_values(found, f"the query ({text})", _ADVICE)
    kind = type_of_query(rows.schema.field(place))
    return values if kind is None else [Literal(value, kind) for value in values]
