"""Texts of limited length: `char(n)` and `varchar(n)`, which are stored as `string`.

Owns how the limits are written down. Spark enforces them in writing and pads `char` in reading;
values are stored as they are given (ledger D-39, F-02).

Protocol: Column Metadata
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError, InvalidMetadataError
from deltalog.expressions.lexer import NAME, Cursor
from deltalog.features.schema_traits import CHAR_VARCHAR_KEY
from deltalog.schema.columns import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.schema.types import StructType

Path = tuple[str, ...]
_LIMITED: Final = frozenset({"char", "character", "varchar"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthLimit:
    """The longest text that a column, or a part of it, may hold.

    Args:
        path: of the text; inside containers with `element`, `key` and `value`.
        length: in characters.
        type_name: `char(3)` or `varchar(3)`, for messages.
    """

    path: Path
    length: int
    type_name: str


def length_limits(schema: StructType) -> tuple[LengthLimit, ...]:
    """Every limit that column metadata states, in the schema's order.

    A column's metadata holds its whole type, as in `array<varchar(3)>`; a field of a struct may
    have an entry of its own too.

    Raises:
        InvalidMetadataError: an entry is no type.
    """
    found: dict[Path, LengthLimit] = {}
    for path, field in walk(schema):
        text = field.metadata.get(CHAR_VARCHAR_KEY)
        if text is None:
            continue
        try:
            cursor = Cursor(str(text))
            limits = list(_limits(cursor, path))
            cursor.finish()
        except (InvalidInputError, ValueError) as error:
            raise InvalidMetadataError(
                f"column {'.'.join(path)!r}: expected a type in {CHAR_VARCHAR_KEY}, found "
                f"{text!r}: {error}"
            ) from error
        found.update({limit.path: limit for limit in limits})
    return tuple(found.values())


def _limits(cursor: Cursor, path: Path) -> Iterator[LengthLimit]:
    token = cursor.take()
    if token.kind != NAME:
        raise cursor.error("expected a type", token)
    match token.word:
        case "array":
            cursor.expect("<")
            yield from _limits(cursor, (*path, "element"))
            cursor.expect(">")
        case "map":
            cursor.expect("<")
            yield from _limits(cursor, (*path, "key"))
            cursor.expect(",")
            yield from _limits(cursor, (*path, "value"))
            cursor.expect(">")
        case "struct":
            yield from _struct_limits(cursor, path)
        case word if word in _LIMITED:
            cursor.expect("(")
            length = int(cursor.take().value)
            cursor.expect(")")
            name = "varchar" if word == "varchar" else "char"
            yield LengthLimit(path=path, length=length, type_name=f"{name}({length})")
        case _:
            _skip_arguments(cursor)


def _struct_limits(cursor: Cursor, path: Path) -> Iterator[LengthLimit]:
    if cursor.accept("<>"):
        return
    cursor.expect("<")
    while True:
        name = cursor.name()
        cursor.accept(":")
        yield from _limits(cursor, (*path, name))
        cursor.accept("not", "null")
        if not cursor.accept(","):
            break
    cursor.expect(">")


def _skip_arguments(cursor: Cursor) -> None:
    """The digits of a decimal."""
    if cursor.accept("("):
        while not cursor.accept(")"):
            cursor.take()
