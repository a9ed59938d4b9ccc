"""Types of DuckDB and those of tables: their names, and columns of the one as the other.

Protocol: none
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import DeltaError, InvalidInputError
from deltalog.schema import StructType
from deltalog.schema.arrow import from_arrow_type
from deltalog.schema.primitives.spans import NAMED_MONTHS, time_spans
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NANOS_NTZ,
    TIMESTAMP_NTZ,
    VOID,
    YEAR_TO_MONTH,
    ArrayType,
    MapType,
)

if TYPE_CHECKING:
    from deltalog.schema import DataType

MAX_PRECISION: Final = 38
_TYPES: Final[dict[DataType, str]] = {
    STRING: "VARCHAR", BYTE: "TINYINT", SHORT: "SMALLINT", INTEGER: "INTEGER", LONG: "BIGINT",
    FLOAT: "FLOAT", DOUBLE: "DOUBLE", BOOLEAN: "BOOLEAN", BINARY: "BLOB", DATE: "DATE",
    TIMESTAMP: "TIMESTAMP WITH TIME ZONE", TIMESTAMP_NTZ: "TIMESTAMP", VOID: "INTEGER",
    TIMESTAMP_NANOS: "TIMESTAMPTZ_NS", TIMESTAMP_NANOS_NTZ: "TIMESTAMP_NS",
    DAY_TO_SECOND: "INTERVAL",
}  # fmt: skip
# Its own intervals have months, days and microseconds at once.
MONTHS_TEXT: Final = f'STRUCT("{NAMED_MONTHS.field(0).name}" INTEGER)'
# How DuckDB calls the types of constants.
_CONSTANTS: Final = {"INTEGER_LITERAL": "INTEGER", "STRING_LITERAL": "VARCHAR"}
_INTERVALS: Final[dict[str, DataType]] = {"INTERVAL": DAY_TO_SECOND, MONTHS_TEXT: YEAR_TO_MONTH}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


def decimal_of(kind: DataType) -> tuple[int, int] | None:
    """Return the precision and the scale of a decimal; None of another type."""
    found = _DECIMAL.fullmatch(str(getattr(kind, "type", "")))
    return (int(found[1]), int(found[2])) if found else None


def as_type_of(column: Any, kind: pa.DataType) -> Any:
    """Return a column as one array of a type."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)
    if pa.types.is_interval(column.type) and pa.types.is_duration(kind):
        return time_spans(column)
    if column.type == NAMED_MONTHS and kind == pa.int32():
        return column.flatten()[0]
    return column if column.type == kind else column.cast(kind)


def nullable_type(kind: pa.DataType) -> pa.DataType:
    """Return a type whose fields may all be NULL, as those of DuckDB's types."""
    found: Any = kind
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, nullable_type(one.type)) for one in found])
    if pa.types.is_map(kind):
        return pa.map_(nullable_type(found.key_type), nullable_type(found.item_type))
    return pa.list_(nullable_type(found.value_type)) if pa.types.is_list(kind) else kind


def type_named(connection: Any, text: str, shown: str, *, fine: bool = False) -> DataType:
    """Return the type of a table for a type of DuckDB.

    Args:
        connection: to DuckDB.
        text: the type in its words.
        shown: the query in errors.
        fine: whether nanoseconds are of the types that have them, or are cut off.
    """
    if text == '"NULL"':
        return VOID
    if text in _INTERVALS:
        return _INTERVALS[text]
    try:
        return from_arrow_type(_arrow(connection, _CONSTANTS.get(text, text)), fine=fine)
    except DeltaError as error:
        raise InvalidInputError(f"cannot run {shown!r}: {error}") from error


def _arrow(connection: Any, text: str) -> pa.DataType:
    if text in {"HUGEINT", "UHUGEINT"}:
        return pa.decimal128(MAX_PRECISION, 0)
    if text not in _ARROWS:
        found = connection.sql(f"SELECT CAST(NULL AS {text}) AS found").to_arrow_reader()
        _ARROWS[text] = found.schema.field(0).type
    return _ARROWS[text]


_FIELD: Final = re.compile(r'("(?:[^"]|"")*"|\S+) (.+)', re.DOTALL)
_ARROWS: Final[dict[str, pa.DataType]] = {}


def column_text(kind: DataType) -> str:
    """Return the type of a column, which may have months too, in DuckDB's words."""
    return MONTHS_TEXT if kind == YEAR_TO_MONTH else type_text(kind)


@lru_cache(maxsize=512)
def type_text(kind: DataType) -> str:
    """Return a type in DuckDB's words."""
    match kind:
        case ArrayType():
            return f"{type_text(kind.element_type)}[]"
        case MapType():
            return f"MAP({type_text(kind.key_type)}, {type_text(kind.value_type)})"
        case StructType():
            inner = (f"{_quoted(one.name)} {type_text(one.type)}" for one in kind)
            return f"STRUCT({', '.join(inner)})"
        case _:
            decimal = decimal_of(kind)
            if decimal is not None:
                return f"DECIMAL{decimal}"
            if kind not in _TYPES:
                raise InvalidInputError(f"a query cannot give values of the type {kind}")
            return _TYPES[kind]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def divided_types(text: str) -> list[str]:
    """Return the types of a list, which commas divide outside of brackets and quotes."""
    found, depth, quote, begin = [], 0, "", 0
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign == "," and not depth:
            found.append(text[begin:place].strip())
            begin = place + 1
    return [*found, text[begin:].strip()] if text.strip() else []


def fields_of_row(text: str) -> list[tuple[str, str]]:
    """Return the names, in quotes, and the types of the fields of a struct, in DuckDB's words."""
    inside = text.removeprefix("STRUCT(").removesuffix(")")
    found = []
    for one in divided_types(inside):
        match = _FIELD.fullmatch(one)
        assert match is not None, one  # noqa: S101  # of DuckDB's own making
        name, kind = match.groups()
        found.append((name if name[0] == '"' else f'"{name}"', kind))
    return found
