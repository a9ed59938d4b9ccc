"""Columns that are computed from others.

Owns where the expressions stand. Whether an expression may be one is checked where schemas are
made; computing it is a writer's affair.

Protocol: Generated Columns
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidMetadataError
from deltalog.schema.types import GENERATION_EXPRESSION_KEY

if TYPE_CHECKING:
    from deltalog.schema.types import StructType


def generation_expressions(schema: StructType) -> dict[str, str]:
    """Generated column → the SQL that computes it, in the schema's order.

    Only top-level columns can be generated. Where the protocol does not support generated
    columns, the metadata means nothing (ledger GEN-03).

    Raises:
        InvalidMetadataError: an expression is no text.
    """
    found: dict[str, str] = {}
    for field in schema.fields:
        text = field.metadata.get(GENERATION_EXPRESSION_KEY)
        if text is None:
            continue
        if not isinstance(text, str):
            raise InvalidMetadataError(
                f"column {field.name!r}: expected {GENERATION_EXPRESSION_KEY} as a text, "
                f"found {text!r}"
            )
        found[field.name] = text
    return found
