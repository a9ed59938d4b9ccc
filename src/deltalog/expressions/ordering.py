"""The order of rows: the keys of `ORDER BY`, and sorting Arrow rows by them.

In Spark's order, NULL comes before all values, and NaN after all others. `DESC` reverses both.
`NULLS FIRST` and `NULLS LAST` set the position of NULL.

Protocol: none; Spark SQL's ORDER BY
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import FALSE, compute
from deltalog.errors import InvalidInputError
from deltalog.expressions.coercion import is_unordered
from deltalog.expressions.nodes import Collate, Column, Comparison, Expression, IsNull, Literal, Or
from deltalog.schema import (
    ArrayType,
    MapType,
    StructType,
    VariantType,
    canonical_path_of,
    find_field,
)
from deltalog.schema.collations import own_collation
from deltalog.schema.types import BY_BYTES, DOUBLE, FLOAT, RULES

if TYPE_CHECKING:
    from deltalog.schema import DataType

_ORDERS: Final = ("ascending", "descending")


@dataclass(frozen=True, slots=True, kw_only=True)
class SortKey:
    """A column of an ORDER BY.

    Args:
        path: the path of the column.
        type: the type of its values.
        descending: whether the greatest value comes first.
        nulls_first: whether NULL comes before all values.
        collation: the collation by which strings are compared; None compares bytes.
    """

    path: tuple[str, ...]
    type: DataType
    descending: bool
    nulls_first: bool
    collation: str | None = None

    @property
    def value(self) -> Expression:
        """Return the expression to sort by: the column, or the collation key of its string."""
        column = Column(self.path)
        return column if self.collation is None else Collate(column, self.collation)

    @property
    def has_nan(self) -> bool:
        """Whether a value may be NaN, which statistics do not record."""
        return self.type in {FLOAT, DOUBLE}

    def not_after(self, value: Any) -> Expression | None:
        """Return a condition for the rows that sort before or together with a row of this value.

        Args:
            value: a value of the column's type; None is NULL.

        Returns:
            The condition, or None if it would be true for every row.
        """
        if self.has_nan:
            return None
        column = Column(self.path)
        if value is None:
            return IsNull(column) if self.nulls_first else None
        operator = ">=" if self.descending else "<="
        condition: Expression = Comparison(operator, self.value, Literal(value, self.type))
        return Or((IsNull(column), condition)) if self.nulls_first else condition

    def __str__(self) -> str:
        """Format the key as SQL."""
        turn = "DESC" if self.descending else "ASC"
        return f"{'.'.join(self.path)} {turn} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


def sort_keys(order_by: object, schema: StructType) -> tuple[SortKey, ...]:
    """Parse an ORDER BY into its keys.

    Args:
        order_by: SQL such as `at DESC, id`, or a sequence of such strings and of pyarrow's pairs
            such as `("at", "descending")`.
        schema: the schema of the table.

    Raises:
        InvalidInputError: the order has another form, or a column does not exist or cannot be
            sorted.
    """
    items = [order_by] if isinstance(order_by, str) else order_by
    if not isinstance(items, Sequence) or not items:
        raise _not_understood(order_by)
    keys = []
    for item in items:
        match item:
            case str():
                keys += read_order(item)
            case (str(name), str(turn)) if turn in _ORDERS:
                keys.append((name, turn == "descending", turn == "ascending"))
            case _:
                raise _not_understood(order_by)
    return tuple(_key(schema, *key) for key in keys)


def arranged(rows: pa.Table, keys: Sequence[SortKey], columns: Sequence[Any]) -> pa.Table:
    """Sort rows; rows with equal keys keep their order.

    Args:
        rows: the rows to sort.
        keys: the keys of the order.
        columns: for each key, its values in these rows.
    """
    arrays: list[Any] = []
    turns: list[tuple[str, str]] = []

    def add(values: Any, *, descending: bool) -> None:
        turns.append((str(len(arrays)), _ORDERS[descending]))
        arrays.append(values)

    for key, values in zip(keys, columns, strict=True):
        if values.null_count:
            add(compute.is_null(values).cast(pa.int8()), descending=key.nulls_first)
        if pa.types.is_floating(values.type):
            is_nan = compute.fill_null(compute.is_nan(values), FALSE)
            add(is_nan.cast(pa.int8()), descending=key.descending)
        add(values, descending=key.descending)
    table = pa.table(dict(zip(map(str, range(len(arrays))), arrays, strict=True)))
    return rows.take(compute.sort_indices(table, sort_keys=turns))


def _key(schema: StructType, name: str, descending: bool, nulls_first: bool) -> SortKey:  # noqa: FBT001
    path = canonical_path_of(schema, name)
    field = find_field(schema, path)
    kind, collation = field.type, own_collation(field)
    if collation not in {BY_BYTES, *RULES}:
        raise InvalidInputError(
            f"cannot order rows by {name!r}: its strings have the collation {collation}, "
            "whose order deltalog does not support"
        )
    nested = isinstance(kind, StructType | ArrayType | MapType | VariantType)
    if len(path) > 1 or nested or is_unordered(kind):
        raise InvalidInputError(
            f"cannot order rows by {name!r}, of type {kind}: expected a top-level column of "
            "numbers, times, strings, booleans or bytes"
        )
    return SortKey(
        path=path,
        type=kind,
        descending=descending,
        nulls_first=nulls_first,
        collation=None if collation == BY_BYTES else collation,
    )


def _not_understood(order_by: object) -> InvalidInputError:
    return InvalidInputError(
        "order_by: expected SQL such as 'at DESC, id', or a list of column names and pairs "
        f"such as ('at', 'descending'), found {order_by!r}"
    )


# --- Parsing `ORDER BY` in Spark's syntax with sqlglot


_HEAD: Final = "SELECT 1 ORDER BY "
_OF_ORDER: Final = frozenset({"kind", "expressions", "order", "operation_modifiers"})
"""The parts of such a query."""
_TWICE: Final = re.compile(r",\s*$|\b(?:asc|desc)\s+(?:asc|desc)\b", re.IGNORECASE)
"""What sqlglot ignores."""


def read_order(sql: str) -> list[tuple[str, bool, bool]]:
    """Return each column's name, whether it is descending, and whether NULL comes first.

    Raises:
        InvalidInputError: the string is not a list of columns.
    """
    import sqlglot  # noqa: PLC0415  # slow to import, and not always needed
    from sqlglot import exp  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    try:
        query = sqlglot.parse_one(_HEAD + sql, dialect="spark")
    except SqlglotError as error:
        (first, *_) = getattr(error, "errors", None) or [{}]
        raise _no_order(sql, str(first.get("highlight") or "")) from error
    if wrong := _TWICE.search(sql):
        raise _no_order(sql, wrong[0])
    order = query.args.get("order")
    # What follows the columns, such as LIMIT, is a part of the query.
    others = [name for name, value in query.args.items() if value and name not in _OF_ORDER]
    if others:
        raise _no_order(sql, others[0].upper())
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


def _no_order(sql: str, found: str) -> InvalidInputError:
    """Return the error about a string that is no list of columns."""
    shown = f", found {found!r}" if found else ""
    return InvalidInputError(
        f"order_by: cannot read {sql!r}: expected names of columns, each with ASC or DESC, such as "
        f"'at DESC, id'{shown}"
    )
