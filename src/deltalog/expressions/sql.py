"""Parsing Spark SQL.

Owns the entry points. sqlglot parses the text (`spark_dialect`), and `sql_nodes` converts its tree.
Nothing is skipped: what is not supported is an error with its position. `render.to_sql` is the
inverse; parsing its result gives the same tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError
from deltalog.expressions.render import to_sql
from deltalog.schema.types import BY_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from types import ModuleType

    from deltalog.expressions.nodes import Expression
from deltalog.schema.types import DataType

__all__ = [
    "length_limits",
    "parse_collated_type",
    "parse_sql",
    "parse_type",
    "to_sql",
    "with_backticks",
]


def parse_sql(
    sql: str,
    *,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
    columns: Collection[str] | None = None,
    quotes_names: bool = False,
) -> Expression:
    """The expression in a string, not resolved yet.

    Args:
        sql: one expression in Spark's dialect.
        parameters: values for `?` (a list) or `:name` (a mapping).
        columns: of the table. Spark takes "id" in double quotes for a string; if a column has that
            name, it is refused, because deltalake's users mean the column.
        quotes_names: take it for the column instead, and `int'10'` for a number, as deltalake does;
            for what callers give, never for rules of a table, which Spark reads in its own way.

    Raises:
        InvalidInputError: the text is not such an expression; the message has the position.
    """
    _check_text(sql)
    found: Expression = _sqlglot().read(sql, parameters, columns or (), quotes_names=quotes_names)
    return found


def with_backticks(sql: str, columns: Collection[str]) -> str:
    """The text with names of columns in backticks that were in double quotes, as long as before.

    Args:
        sql: one expression, as deltalake takes it.
        columns: of the table; case does not matter. Beside a dot, all double quotes are of names.

    Raises:
        InvalidInputError: the text cannot be read.
    """
    _check_text(sql)
    if '"' not in sql:
        return sql
    found: str = _sqlglot().with_backticks(sql, columns)
    return found


def parse_type(sql: str) -> DataType:
    """The type in a string.

    Raises:
        InvalidInputError: there is no such type, or it has a collation, which belongs to a column.
    """
    found, collations, _ = parse_collated_type(sql)
    if any(name != BY_BYTES for name in collations.values()):
        raise InvalidInputError(f"cannot use the type {sql}: a collation belongs to a column")
    return found


def parse_collated_type(
    sql: str,
) -> tuple[DataType, dict[tuple[str, ...], str], frozenset[tuple[str, ...]]]:
    """The type in a string, and the collations of its strings.

    Returns:
        The type, in which fields of structs have the collations of their own texts; and from paths
        such as `("element",)` to identifiers those that it says of the others, the default too; and
        the paths of all strings of which it says the default.

    Raises:
        InvalidInputError: there is no such type or collation.
    """
    found: tuple[DataType, dict[tuple[str, ...], str], frozenset[tuple[str, ...]]]
    found = _sqlglot().read_type(sql)
    return found


def length_limits(sql: str) -> list[tuple[tuple[str, ...], str, int]]:
    """Each `char(n)` and `varchar(n)` in an SQL type: its path in the type, its name and length.

    Raises:
        InvalidInputError: there is no such type.
    """
    found: list[tuple[tuple[str, ...], str, int]] = _sqlglot().read_limits(sql)
    return found


def _check_text(sql: object) -> None:
    if not isinstance(sql, str):
        raise InvalidInputError(f"expected SQL as a text, found {sql!r}")


def _sqlglot() -> ModuleType:
    # sqlglot takes longer to import than the rest of deltalog, so it is imported for SQL only.
    from deltalog.expressions import sql_nodes  # noqa: PLC0415

    return sql_nodes
