"""Resolving expressions against a schema, for those who evaluate, prune or translate them.

Owns what `TextRules` mean; the rules of each kind of node are `resolver`'s.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError
from deltalog.expressions.resolver import (
    compares_texts_apart,
    resolved,
    resolved_condition,
    type_of_resolved,
)
from deltalog.expressions.text_rules import TextRules
from deltalog.sql_session import RULES_OF_TABLES, SqlSession

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.expressions.nodes import Expression
    from deltalog.schema.types import DataType, StructType


def resolve(
    expression: Expression,
    schema: StructType,
    session: SqlSession = RULES_OF_TABLES,
    *,
    text_rules: TextRules = TextRules.COLLATIONS,
) -> Expression:
    """The expression with canonical names, typed constants and explicit casts.

    Args:
        expression: any tree; a resolved one is returned as it is.
        schema: of the rows.
        session: the current time and the time zone.
        text_rules: by what texts are compared.

    Raises:
        InvalidInputError: a column or function does not exist, types do not match, or the rules of
            a collation are not known.
    """
    with _depth_limited(expression):
        found = resolved(expression, schema, session)
        return _by_rules(found, schema, text_rules)


def resolve_predicate(
    expression: Expression,
    schema: StructType,
    session: SqlSession = RULES_OF_TABLES,
    *,
    text_rules: TextRules = TextRules.COLLATIONS,
) -> Expression:
    """`resolve` for a condition.

    Raises:
        InvalidInputError: as `resolve`, or the expression is not a condition.
    """
    with _depth_limited(expression):
        found = resolved_condition(expression, schema, session)
        return _by_rules(found, schema, text_rules)


def _by_rules(found: Expression, schema: StructType, rules: TextRules) -> Expression:
    """The tree with texts compared as it is asked for."""
    if not compares_texts_apart(found, schema):
        return found
    from deltalog.expressions import collate  # noqa: PLC0415  # few tables have collations

    if rules is TextRules.NONE:
        collate.check_uncollated(found, schema)
        return found

    def of_part(part: Expression) -> DataType:
        return type_of(part, schema)

    if rules is TextRules.VALUES:
        return collate.collated_value(found, schema, of_part)
    by_bytes = rules is TextRules.BYTES
    return collate.collated(found, schema, of_part, by_bytes=by_bytes)


def type_of(resolved: Expression, schema: StructType) -> DataType:
    """The type of a resolved expression."""
    return type_of_resolved(resolved, schema)


@contextlib.contextmanager
def _depth_limited(expression: Expression) -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise InvalidInputError(
            f"the {type(expression).__name__} is nested too deep to be understood; write long "
            "lists of options with IN, or with fewer brackets"
        ) from None
