"""Expressions over rows: trees, SQL, types and evaluation by Spark's ANSI rules.

- Trees: `nodes`, `trees`, `literals`, `filters`, `folding`.
- SQL: `sql`, `spark_dialect`, `sql_nodes` (text → tree), `render` (tree → text).
- Types: `analyze` resolves a tree. `functions` and `signatures` contain the functions' types,
    `coercion` and `implicit` the rules of Spark's implicit casts. `aliases` replaces functions that
    abbreviate other expressions.
- Values: `arrow` evaluates a tree on Arrow arrays. The kernels of functions are in `strings`,
`numbers`, `datetimes`, `containers`, `arrays`, `hashing` and `java_functions`. The functions in
`strings_by_row` have no Arrow kernel; they are called row by row.
- Other engines: `polars`, `daft`, `substrait`, `arrow_filters`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import names_on_demand

if TYPE_CHECKING:
    from deltalog.expressions.analyze import depends_on_zone, resolve, resolve_predicate, type_of
    from deltalog.expressions.evaluation import evaluate, filter_mask
    from deltalog.expressions.filters import as_expression, from_filters
    from deltalog.expressions.implicit import cast_literal
    from deltalog.expressions.nodes import Column, Expression, Literal, col, lit
    from deltalog.expressions.sql import parse_sql, parse_type, to_sql
    from deltalog.expressions.sql_session import UTC_NAMES, SqlSession, TextRules
    from deltalog.expressions.trees import (
        all_of,
        columns,
        conjunction,
        conjuncts,
        is_deterministic,
        map_columns,
    )

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

_ORIGINS = {
    "deltalog.expressions.analyze": ["depends_on_zone", "resolve", "resolve_predicate", "type_of"],
    "deltalog.expressions.evaluation": ["evaluate", "filter_mask"],
    "deltalog.expressions.filters": ["as_expression", "from_filters"],
    "deltalog.expressions.implicit": ["cast_literal"],
    "deltalog.expressions.nodes": ["Column", "Expression", "Literal", "col", "lit"],
    "deltalog.expressions.sql": ["parse_sql", "parse_type", "to_sql"],
    "deltalog.expressions.sql_session": ["SqlSession", "TextRules", "UTC_NAMES"],
    "deltalog.expressions.trees": [
        "all_of",
        "columns",
        "conjunction",
        "conjuncts",
        "is_deterministic",
        "map_columns",
    ],
}

if not TYPE_CHECKING:  # hidden, so that type checkers report names that do not exist
    __getattr__, __dir__ = names_on_demand(__name__, _ORIGINS)
