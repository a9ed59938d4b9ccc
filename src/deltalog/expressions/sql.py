"""Spark SQL text as expressions.

Owns the door: sqlglot reads the text (`spark_dialect`), `sql_nodes` says what it means, and
nothing is skipped: what is not understood is an error with its place in the text. The text of an
expression is `render.to_sql`; reading that back gives the same tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError
from deltalog.expressions.render import to_sql

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from types import ModuleType

    from deltalog.expressions.nodes import Expression
    from deltalog.schema.types import DataType

__all__ = ["length_limits", "parse_sql", "parse_type", "to_sql"]


def parse_sql(
    sql: str,
    *,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
    columns: Collection[str] | None = None,
) -> Expression:
    """The expression that a text says; nothing is looked up yet.

    Args:
        sql: one expression in Spark's dialect.
        parameters: values for `?` (a list) or `:name` (a mapping).
        columns: the table's columns, so that "id" in double quotes, which Spark reads as a text,
            can be refused where a column is meant.

    Raises:
        InvalidInputError: the text is no such expression; the message says where.
    """
    if not isinstance(sql, str):
        raise InvalidInputError(f"expected SQL as a text, found {sql!r}")
    found: Expression = _sqlglot().read(sql, parameters, columns or ())
    return found


def parse_type(sql: str) -> DataType:
    """The type that a text says.

    Raises:
        InvalidInputError: there is no such type.
    """
    found: DataType = _sqlglot().read_type(sql)
    return found


def length_limits(sql: str) -> list[tuple[tuple[str, ...], str, int]]:
    """Each `char(n)` and `varchar(n)` of a type in SQL: its path inside, its name and length.

    Raises:
        InvalidInputError: there is no such type.
    """
    found: list[tuple[tuple[str, ...], str, int]] = _sqlglot().read_limits(sql)
    return found


def _sqlglot() -> ModuleType:
    # sqlglot takes longer to load than the rest of deltalog: only who reads SQL waits for it.
    from deltalog.expressions import sql_nodes  # noqa: PLC0415

    return sql_nodes
