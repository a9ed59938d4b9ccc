"""Checks of the schema of a new table.

These checks do not apply to reading, which also accepts existing tables that fail them.

Protocol: Schema Serialization Format, Column Mapping
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.clock import date_text, moment_text
from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError, UnsupportedTypeError
from deltalog.schema.collations import check_collations, own_collation
from deltalog.schema.columns import canonical_path_of, duplicates, find_field, walk, walk_types
from deltalog.schema.primitives.moments import has_nanoseconds
from deltalog.schema.types import (
    BY_BYTES,
    VOID,
    ArrayType,
    MapType,
    PrimitiveType,
    StructType,
    UnknownType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deltalog._util.kernels import Array
    from deltalog.schema.columns import Path
    from deltalog.schema.types import DataType

# The characters that older Parquet readers do not accept in column names.
_FORBIDDEN: Final = re.compile(r"[ ,;{}()\n\t=]")


def check_new_schema(
    schema: StructType,
    partition_columns: Sequence[str] = (),
    *,
    has_column_mapping: bool = False,
    consequences: Callable[[], str] = str,
) -> None:
    """Raise for a schema that a new table must not have.

    Args:
        schema: the schema of the new table.
        partition_columns: the names of the partition columns, in any case.
        has_column_mapping: whether the table uses column mapping. If it does, any name is valid,
            because physical names are generated.
        consequences: what column mapping means for other engines, for the advice to use it.

    Raises:
        InvalidInputError: a name is repeated or needs column mapping, a struct has no fields, a
            list or map contains type void, a collation is on a column without strings, or a
            partition column is invalid.
        UnsupportedTypeError: a type is unknown.

    Protocol: Schema Serialization Format
    """
    repeated = duplicates(schema)
    if repeated:
        keys = {tuple(map(name_key, path)) for path in repeated}
        names = ", ".join(
            repr(".".join(path)) for path, _ in walk(schema) if tuple(map(name_key, path)) in keys
        )
        raise InvalidInputError(
            f"columns have the same name, ignoring case: {names}; rename one of them"
        )
    for path, field in walk(schema):
        if not field.name:
            raise InvalidInputError(f"the column {'.'.join(path)!r} has no name")
        if not has_column_mapping and _FORBIDDEN.search(field.name):
            raise InvalidInputError(
                f"the name of column {'.'.join(path)!r} contains one of ' ,;{{}}()\\n\\t=': rename "
                "it, or enable column mapping (delta.columnMapping.mode = name)"
                + (f"; {effects}" if (effects := consequences()) else "")
            )
    for path, data_type in walk_types(schema):
        _check_type(path, data_type)
    check_collations(schema)
    check_partition_columns(schema, partition_columns)


def check_partition_columns(schema: StructType, partition_columns: Sequence[str]) -> None:
    """Raise for columns that cannot partition a table with this schema.

    Raises:
        InvalidInputError: a column does not exist, is repeated, has a collation, has a type without
            a partition value, or no data column remains.
    """
    names = [canonical_path_of(schema, (column,))[0] for column in partition_columns]
    if len(set(names)) < len(names):
        raise InvalidInputError(f"a partition column is repeated: {', '.join(names)}")
    for name in names:
        field = find_field(schema, (name,))
        kind, collation = field.type, own_collation(field)
        if not isinstance(kind, PrimitiveType) or kind.primitive.codec.encode is None:
            raise InvalidInputError(
                f"cannot partition by column {name!r} of type {kind}: expected a column of "
                "numbers, strings, dates or timestamps"
            )
        if collation != BY_BYTES:
            raise InvalidInputError(
                f"cannot partition by column {name!r}: it has the collation {collation}, "
                "so strings that compare equal could be in different partitions"
            )
    stored = [field for field in schema.fields if field.name not in names and field.type != VOID]
    if names and not stored:
        raise InvalidInputError(
            "cannot partition by all columns: files need at least one other column"
        )


def _check_type(path: Path, data_type: DataType) -> None:
    name = ".".join(path)
    match data_type:
        case UnknownType():
            raise UnsupportedTypeError(f"column {name!r} has the unknown type {data_type}")
        case StructType():
            # Files omit void columns, but a struct in a Parquet file needs at least one field.
            if path and all(field.type == VOID for field in data_type.fields):
                raise InvalidInputError(
                    f"the struct {name!r} has no field that a file can store; add a field"
                )
        case ArrayType() if data_type.element_type == VOID:
            raise InvalidInputError(
                f"the list {name!r} has elements of type void; use another type"
            )
        case MapType() if VOID in (data_type.key_type, data_type.value_type):
            raise InvalidInputError(
                f"the map {name!r} has keys or values of type void; use another type"
            )
        case _:
            return


# --- Arrow values as Python values, or as strings if Python cannot represent them


def readable_rows(rows: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """Return rows as dictionaries; a value that Python cannot represent becomes a string."""
    names = rows.schema.names
    return [dict(zip(names, row, strict=True)) for row in readable_tuples(rows)]


def shown_values(value: Any) -> Any:
    """Return a value, or rows, for a message: times and decimals are strings, at any depth.

    Otherwise, a row would be shown as `{'day': datetime.date(2026, 1, 1)}`.
    """
    match value:
        case dict():
            return {name: shown_values(part) for name, part in value.items()}
        case list() | tuple():
            return [shown_values(part) for part in value]
        case dt.date() | dt.time() | dt.timedelta() | Decimal():
            return str(value)
        case _:
            return value


def readable_tuples(rows: pa.RecordBatch | pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield rows as tuples of readable values; several columns may have the same name."""
    return zip(*(readable_values(column) for column in rows.columns), strict=True)


def readable_values(values: Array) -> list[Any]:
    """Return the Python values of a column; a value that Python cannot represent becomes a string.

    Python cannot represent nanoseconds (without pandas), years before 1 and after 9999, and strings
    that are not UTF-8.
    """
    if not has_nanoseconds(values.type):
        with contextlib.suppress(ValueError, ArithmeticError):
            return list(values.to_pylist())
        return [_readable(value) for value in values]
    with contextlib.suppress(pa.ArrowException, ValueError):
        return list(values.cast(pa.string()).to_pylist())
    return ["…"] * len(values)


def _readable(value: Any) -> Any:
    """Convert a value, or each part of a nested value; see `readable_values`."""
    kind = value.type
    if has_nanoseconds(kind):
        return str(value.cast(pa.string()).as_py())
    try:
        return value.as_py()
    except (ValueError, ArithmeticError):
        parts: Any = value
        if isinstance(value, pa.Date32Scalar):
            return date_text(parts.value)
        if isinstance(value, pa.TimestampScalar) and kind.unit == "us":
            return f"{moment_text(parts.value, sep=' ')}{'' if kind.tz is None else '+00:00'}"
        if isinstance(value, pa.StructScalar):
            return {name: _readable(part) for name, part in value.items()}
        if isinstance(value, pa.MapScalar):
            return [tuple(map(_readable, pair.values())) for pair in parts.values]
        if isinstance(value, pa.ListScalar):
            return [_readable(part) for part in parts.values]
        return "…"  # Python has no value for it, such as invalid UTF-8


def python_values(values: Array, what: str, advice: str) -> list[Any]:
    """Return the values of a column as Python values.

    Args:
        values: values of one column.
        what: the origin of the values, for the error message.
        advice: the advice in the error message.

    Raises:
        InvalidInputError: Python cannot represent a value: a year before 1 or after 9999, a string
            that is not UTF-8, or nanoseconds if pandas is not installed.
    """
    try:
        return list(values.to_pylist())
    except (ValueError, ArithmeticError) as error:
        raise InvalidInputError(
            f"cannot convert the values of {what} to Python: {error}; {advice}"
        ) from error


def readable_moment(time_ms: int, *, timespec: str = "seconds") -> str:
    """Format milliseconds since 1970 as a time in UTC; the year may be any number."""
    return f"{moment_text(time_ms * 1000, sep=' ', timespec=timespec)}Z"
