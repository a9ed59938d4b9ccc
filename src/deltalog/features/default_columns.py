"""Columns that have a value when a writer brings none.

Owns where the expressions stand. Evaluating them is a writer's affair.

Protocol: Default Columns
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidMetadataError
from deltalog.schema.columns import walk
from deltalog.schema.types import CURRENT_DEFAULT_KEY

if TYPE_CHECKING:
    from deltalog.schema.types import StructType


def default_expressions(schema: StructType) -> dict[tuple[str, ...], str]:
    """Path of a column → the SQL of its default value, in the schema's order.

    Where the protocol does not support column defaults, the metadata means nothing.

    Raises:
        InvalidMetadataError: an expression is no text.
    """
    found: dict[tuple[str, ...], str] = {}
    for path, field in walk(schema):
        text = field.metadata.get(CURRENT_DEFAULT_KEY)
        if text is None:
            continue
        if not isinstance(text, str):
            raise InvalidMetadataError(
                f"column {'.'.join(path)!r}: expected {CURRENT_DEFAULT_KEY} as a text, "
                f"found {text!r}"
            )
        found[path] = text
    return found
