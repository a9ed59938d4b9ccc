"""Expressions over rows: trees, SQL, typing and evaluation, by Spark's ANSI rules."""

from __future__ import annotations

from deltalog.expressions.analyze import TextRules, resolve, resolve_predicate, type_of
from deltalog.expressions.evaluation import evaluate, filter_mask
from deltalog.expressions.filters import as_expression, from_filters
from deltalog.expressions.implicit import cast_literal
from deltalog.expressions.nodes import Column, Expression, Literal, col, lit
from deltalog.expressions.sql import parse_sql, parse_type, to_sql
from deltalog.expressions.trees import (
    all_of,
    columns,
    conjunction,
    conjuncts,
    is_deterministic,
    map_columns,
)
from deltalog.expressions.zones import depends_on_zone
from deltalog.sql_session import UTC_NAMES, SqlSession

__all__ = [
    "UTC_NAMES",
    "Column",
    "Expression",
    "Literal",
    "SqlSession",
    "TextRules",
    "all_of",
    "as_expression",
    "cast_literal",
    "col",
    "columns",
    "conjunction",
    "conjuncts",
    "depends_on_zone",
    "evaluate",
    "filter_mask",
    "from_filters",
    "is_deterministic",
    "lit",
    "map_columns",
    "parse_sql",
    "parse_type",
    "resolve",
    "resolve_predicate",
    "to_sql",
    "type_of",
]
