"""`ORDER BY` as Spark spells it, read by sqlglot.

Protocol: none; Spark SQL's ORDER BY
"""

from __future__ import annotations

from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from deltalog.errors import InvalidInputError

_HEAD: Final = "SELECT 1 ORDER BY "


def read_order(sql: str) -> list[tuple[str, bool, bool]]:
    """Name, whether it is descending, and whether NULL comes first, of each column.

    Raises:
        InvalidInputError: it is no list of columns.
    """
    try:
        order = sqlglot.parse_one(_HEAD + sql, dialect="spark").args.get("order")
    except SqlglotError as error:
        raise InvalidInputError(f"order_by: cannot read {sql!r}: {error}") from error
    found = []
    for item in [] if order is None else order.expressions:
        column, is_descending = item.this, bool(item.args.get("desc"))
        if not isinstance(column, exp.Column):
            raise InvalidInputError(
                f"order_by: expected names of columns in {sql!r}, found {column.sql('spark')!r}"
            )
        nulls_first = item.args.get("nulls_first")
        name = ".".join(part.name for part in column.parts)
        found.append(
            (name, is_descending, not is_descending if nulls_first is None else nulls_first)
        )
    if not found:
        raise InvalidInputError(f"order_by: expected names of columns, found {sql!r}")
    return found
