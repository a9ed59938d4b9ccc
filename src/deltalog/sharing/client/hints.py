"""Predicate hints for a query: the parts of a predicate by which a server may leave out files.

Owns which parts are safe to send. Both forms are sent, as some servers know only one of them. The
rows are filtered here in any case: "the client must always apply predicateHints and limitHint on
the response".

Protocol: JSON predicates for Filtering, SQL Expressions for Filtering
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError, MalformedMessageError
from deltalog.expressions import Column, Literal, columns, conjuncts, resolve_predicate
from deltalog.expressions.nodes import And, Comparison, IsNull, Not
from deltalog.schema import find_field
from deltalog.schema.collation_names import BY_BYTES
from deltalog.schema.collations import own_collation
from deltalog.schema.types import DOUBLE, FLOAT
from deltalog.sharing.wire.hints import encode_json_hint, parse_json_hint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from deltalog.expressions import Expression
    from deltalog.schema import StructType

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_TEXT: Final = re.compile(r"[^'\\\x00-\x1f]*")
_OPERATORS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})


def as_json_hint(text: str) -> Expression:
    """Return the predicate in a caller's `jsonPredicateHints`.

    Raises:
        InvalidInputError: it is no JSON predicate.
    """
    try:
        return parse_json_hint(text)
    except MalformedMessageError as error:
        raise InvalidInputError(f"cannot use the JSON predicate: {error}") from None


def json_hint(
    predicate: Expression, schema: StructType, unsafe: Collection[str] = ()
) -> str | None:
    """Return `jsonPredicateHints` for the safe parts of a predicate; None if there are none.

    Args:
        predicate: over the columns.
        schema: of the table.
        unsafe: columns whose values the server may read otherwise than the client.
    """
    parts = tuple(_safe_parts(predicate, schema, unsafe))
    return encode_json_hint(And(parts)) if parts else None


def sql_hints(
    predicate: Expression, schema: StructType, unsafe: Collection[str] = ()
) -> tuple[str, ...]:
    """Return `predicateHints` for the safe parts of a predicate that have a form in their SQL."""
    texts = (_sql(part) for part in _safe_parts(predicate, schema, unsafe))
    return tuple(text for text in texts if text is not None)


def _safe_parts(
    predicate: Expression, schema: StructType, unsafe: Collection[str]
) -> Iterator[Expression]:
    known = {field.name for field in schema} - set(unsafe)
    for part in conjuncts(resolve_predicate(predicate, schema)):
        paths = columns(part)
        if paths and all(path[0] in known and not _is_unsafe(path, schema) for path in paths):
            yield part


def _is_unsafe(path: tuple[str, ...], schema: StructType) -> bool:
    # Engines order NaN in different ways, and the bounds of a file may leave it out. They compare
    # texts by bytes, whose bounds are no other collation's.
    field = find_field(schema, path)
    return field.type in (FLOAT, DOUBLE) or own_collation(field) != BY_BYTES


def _sql(node: Expression) -> str | None:
    """Return one of the protocol's eight forms of SQL, or None for any other condition."""
    match node:
        case Comparison(operator=operator, left=left, right=right) if operator in _OPERATORS:
            sides = [_sql_operand(left), _sql_operand(right)]
            # The protocol's forms are "between a column in the table and a constant value".
            one_column = isinstance(left, Column) != isinstance(right, Column)
            if one_column and None not in sides:
                return f"{sides[0]} {operator} {sides[1]}"
        case IsNull(operand=Column() as column) if name := _sql_operand(column):
            return f"{name} IS NULL"
        case Not(operand=IsNull(operand=Column() as column)) if name := _sql_operand(column):
            return f"{name} IS NOT NULL"
    return None


def _sql_operand(node: Expression) -> str | None:
    if isinstance(node, Column):
        is_plain = len(node.path) == 1 and _NAME.fullmatch(node.path[0])
        return node.path[0] if is_plain else None
    value = node.value if isinstance(node, Literal) and not node.is_far_moment else None
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str() if _PLAIN_TEXT.fullmatch(value):
            return f"'{value}'"
        case date() if not isinstance(value, datetime):
            return f"'{value.isoformat()}'"
    return None
