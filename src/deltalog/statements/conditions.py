"""Expressions of statements, with the answers of the queries in them.

A query in an expression is answered once, before the statement begins, and its answer is a
constant. A query that names a column of the statement's own rows has no such answer: it is refused.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, Literal, lit, parse_sql
from deltalog.expressions.nodes import In
from deltalog.expressions.trees import rebuild
from deltalog.schema.arrow import type_of_query
from deltalog.schema.primitives.moments import has_nanoseconds
from deltalog.schema.readable import python_values
from deltalog.statements.slices import SubqueryKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

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
                values = answers[option.value]
                return In(node.operand, tuple(map(lit, values))) if values else Literal(value=False)
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
    if rows.num_columns != 1:
        raise InvalidInputError(
            f"the query ({text}) stands for one value, and has {rows.num_columns} columns"
        )
    found = rows.column(0)
    # Python has no nanoseconds; constants take Arrow's scalars, too.
    is_fine = has_nanoseconds(found.type)
    values = list(found) if is_fine else python_values(found, f"the query ({text})", _ADVICE)
    kind = type_of_query(rows.schema.field(0))
    if kind is not None:
        values = [Literal(value, kind) for value in values]
    if subquery.kind is SubqueryKind.LIST:
        return values
    if len(values) > 1:
        raise InvalidInputError(
            f"the query ({text}) stands for one value, and has {len(values)} rows"
        )
    return values[0] if values else None
