"""Types as SQL writes them: `decimal(10, 2)`, `array<struct<a: int>>`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions.lexer import NAME, Cursor
from deltalog.expressions.render import SQL_NAMES
from deltalog.schema.types import ArrayType, DataType, Field, MapType, StructType, as_type

if TYPE_CHECKING:
    from deltalog.expressions.lexer import Token

_NAMES: Final = {
    **{sql.lower(): name for name, sql in SQL_NAMES.items()},
    "bool": "boolean",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}


def parse_type(sql: str) -> DataType:
    """The type that a text says.

    Raises:
        InvalidInputError: there is no such type.
    """
    cursor = Cursor(sql)
    found = read_type(cursor)
    cursor.finish()
    return found


def read_type(cursor: Cursor) -> DataType:
    """The type that comes now."""
    token = cursor.take()
    if token.kind != NAME:
        raise cursor.error("expected a type", token)
    match token.word:
        case "array":
            cursor.expect("<")
            element = read_type(cursor)
            cursor.expect(">")
            return ArrayType(element)
        case "map":
            cursor.expect("<")
            key = read_type(cursor)
            cursor.expect(",")
            value = read_type(cursor)
            cursor.expect(">")
            return MapType(key, value)
        case "struct":
            return _struct(cursor)
        case _:
            return _plain(cursor, token)


def _struct(cursor: Cursor) -> DataType:
    if cursor.accept("<>"):
        return StructType()
    cursor.expect("<")
    fields = [_field(cursor)]
    while cursor.accept(","):
        fields.append(_field(cursor))
    cursor.expect(">")
    return StructType(fields)


def _field(cursor: Cursor) -> Field:
    name = cursor.name()
    cursor.accept(":")
    data_type = read_type(cursor)
    return Field(name, data_type, nullable=not cursor.accept("not", "null"))


def _plain(cursor: Cursor, token: Token) -> DataType:
    name = _NAMES.get(token.word, token.word)
    if name in {"varchar", "char", "character"}:
        raise cursor.error("char and varchar are no types of an expression; use STRING", token)
    if name == "decimal" and cursor.accept("("):
        digits = [cursor.take().value]
        if cursor.accept(","):
            digits.append(cursor.take().value)
        cursor.expect(")")
        name = f"decimal({digits[0]},{digits[1] if len(digits) > 1 else 0})"
    try:
        return as_type(name)
    except InvalidInputError as error:
        raise cursor.error(str(error), token) from error
