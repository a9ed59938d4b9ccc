"""Parsing Spark SQL.

Contains the entry points. sqlglot parses the SQL (see `spark_dialect`), and `sql_nodes` converts
its tree. Unsupported syntax is never ignored; it is an error with its position. `render.to_sql` is
the inverse: parsing the SQL that it returns results in the same tree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions.render import to_sql
from deltalog.expressions.simple_sql import read_simple
from deltalog.schema.types import BY_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from types import ModuleType

    from deltalog.expressions.nodes import Expression
from deltalog.schema.types import DataType

__all__ = [
    "length_limits",
    "num_positional",
    "parameter_names",
    "parse_collated_type",
    "parse_sql",
    "parse_type",
    "to_sql",
    "with_backticks",
]

_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_BARE_DATE: Final = re.compile(
    r"(?<![\w.'-])\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?![\w.'-])"
)


def parse_sql(
    sql: str,
    *,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
    columns: Collection[str] | None = None,
    quotes_names: bool = False,
) -> Expression:
    """Parse a string to an unresolved expression.

    Args:
        sql: one expression in Spark's dialect.
        parameters: values for `?` (a list) or `:name` (a mapping).
        columns: the columns of the table. In Spark, "id" in double quotes is a string. The string
            is refused if a column has that name, because users of deltalake mean the column. A
            column with the name of a function without brackets, such as `current_date`, has
            precedence over the function.
        quotes_names: whether "id" is a column instead, and `int'10'` a number, as in deltalake.
            Use it for callers' conditions, never for constraints and generated columns, because
            Spark reads those too.

    Raises:
        InvalidInputError: the SQL is not one expression; the message contains the position.
    """
    _check_text(sql)
    if quotes_names:
        _check_dates(sql)
    if not parameters and (simple := read_simple(sql)) is not None:
        return simple
    found: Expression = _sqlglot().read(sql, parameters, columns or (), quotes_names=quotes_names)
    return found


def num_positional(sql: str) -> int:
    """Return the number of parameters `?` in SQL.

    Raises:
        InvalidInputError: the SQL has a quote or a comment that is not closed.
    """
    return int(_sqlglot().num_positional(sql)) if "?" in sql else 0


def parameter_names(sql: object) -> set[str]:
    """Return the names of the parameters `:name` in SQL, and of what looks like one, as in `a:b`.

    Conditions and values that are not SQL have none.

    Raises:
        InvalidInputError: the SQL has a quote or a comment that is not closed.
    """
    if not isinstance(sql, str) or ":" not in sql:
        return set()
    found: set[str] = _sqlglot().parameter_names(sql)
    return found


def _check_dates(sql: str) -> None:
    """Refuse `2024-01-01` without quotes: it is a subtraction, whose result is 2022."""
    if (found := _BARE_DATE.search(_QUOTED.sub("''", sql))) is not None:
        raise InvalidInputError(
            f"cannot parse {sql!r}: {found[0]} without quotes is a subtraction of numbers; write a "
            f"date as DATE'{found[0]}', or a string as '{found[0]}'"
        )


def with_backticks(sql: str, columns: Collection[str]) -> str:
    """Replace double quotes around column names by backticks; the length does not change.

    Args:
        sql: one expression in deltalake's syntax.
        columns: the columns of the table, in any case. Next to a dot, double quotes always
            contain a name.

    Raises:
        InvalidInputError: the SQL cannot be parsed.
    """
    _check_text(sql)
    if '"' not in sql:
        return sql
    found: str = _sqlglot().with_backticks(sql, columns)
    return found


def parse_type(sql: str) -> DataType:
    """Parse a type.

    Raises:
        InvalidInputError: the type does not exist, or has a collation, which only columns can have.
    """
    found, collations, _ = parse_collated_type(sql)
    if any(name != BY_BYTES for name in collations.values()):
        raise InvalidInputError(f"cannot use the type {sql}: only a column can have a collation")
    return found


def parse_collated_type(
    sql: str,
) -> tuple[DataType, dict[tuple[str, ...], str], frozenset[tuple[str, ...]]]:
    """Parse a type with collations.

    Returns:
        A tuple of three: the type, in which struct fields have their own collations; the other
        collations in the SQL by path, such as `("element",)`, including default collations; and
        the paths of all strings for which the SQL states the default collation.

    Raises:
        InvalidInputError: the type or collation does not exist.
    """
    found: tuple[DataType, dict[tuple[str, ...], str], frozenset[tuple[str, ...]]]
    found = _sqlglot().read_type(sql)
    return found


def length_limits(sql: str) -> list[tuple[tuple[str, ...], str, int]]:
    """Return the path, name and length of each `char(n)` and `varchar(n)` in a SQL type.

    Raises:
        InvalidInputError: the type does not exist.
    """
    found: list[tuple[tuple[str, ...], str, int]] = _sqlglot().read_limits(sql)
    return found


def _check_text(sql: object) -> None:
    if not isinstance(sql, str):
        raise InvalidInputError(f"expected SQL as a string, found {sql!r}")


def _sqlglot() -> ModuleType:
    # Importing sqlglot takes longer than importing the rest of deltalog, so import it only for SQL.
    from deltalog.expressions import sql_nodes  # noqa: PLC0415

    return sql_nodes
