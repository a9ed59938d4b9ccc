"""Strings of limited length: `char(n)` and `varchar(n)`, which are stored as `string`.

This module owns how limits are stored. Spark enforces them on write, stores `char` values unpadded, and pads
them on read (requirements D-39, F-02).

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
    """The greatest length of a string in a column.

    Args:
        path: of the string; inside containers with `element`, `key` and `value`.
        length: in characters.
        type_name: `char(3)` or `varchar(3)`, for messages.
    """

    path: Path
    length: int
    type_name: str


def length_limits(schema: StructType) -> tuple[LengthLimit, ...]:
    """All limits in column metadata, in the schema's order.

    The entry of a column is its whole type, such as `array<varchar(3)>`; a field of a struct may
    have an entry of its own too.

    Raises:
        InvalidMetadataError: an entry is not a type.
    """
    found: dict[Path, LengthLimit] = {}
    for path, field in walk(schema):
        text = field.metadata.get(CHAR_VARCHAR_KEY)
        if text is None:
            continue
        # Imported late: few tables have limits, and the type parser is slow to load.
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
