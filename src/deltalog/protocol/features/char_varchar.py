"""Strings of limited length: `char(n)` and `varchar(n)`, which are stored as `string`.

This module reads the limits from column metadata. Spark enforces limits on write, stores `char`
values without padding, and pads them on read (requirements D-39, F-02).

Protocol: Column Metadata
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError, InvalidMetadataError
from deltalog.schema.columns import walk

if TYPE_CHECKING:
    from deltalog.schema.types import StructType

Path = tuple[str, ...]

CHAR_VARCHAR_KEY: Final = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthLimit:
    """The maximum length of strings in a column.

    Args:
        path: path of the strings, with `element`, `key` and `value` for lists and maps.
        length: maximum number of characters.
        type_name: `char(3)` or `varchar(3)`, for messages.
    """

    path: Path
    length: int
    type_name: str


def length_limits(schema: StructType) -> tuple[LengthLimit, ...]:
    """Return all limits in column metadata, in the schema's order.

    The metadata of a column contains its whole type, such as `array<varchar(3)>`; fields of structs
    may have such metadata, too.

    Raises:
        InvalidMetadataError: the metadata is not a type.
    """
    found: dict[Path, LengthLimit] = {}
    for path, field in walk(schema):
        text = field.metadata.get(CHAR_VARCHAR_KEY)
        if text is None:
            continue
        # Import the slow type parser only here, because few tables have columns with limits.
        from deltalog.expressions.sql import length_limits as limits_of_type  # noqa: PLC0415

        try:
            limits = limits_of_type(str(text))
        except InvalidInputError as error:
            raise InvalidMetadataError(
                f"column {'.'.join(path)!r}: expected a type in {CHAR_VARCHAR_KEY}, found "
                f"{text!r}: {error}"
            ) from error
        for inner, name, length in limits:
            limit = LengthLimit(path=(*path, *inner), length=length, type_name=f"{name}({length})")
            found[limit.path] = limit
    return tuple(found.values())
