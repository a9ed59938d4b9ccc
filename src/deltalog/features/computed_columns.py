"""The SQL of generated columns and of column defaults.

Owns where the expressions are stored. `declarations` checks whether a table may have them; writers
evaluate them.

Protocol: Generated Columns, Default Columns
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidMetadataError
from deltalog.schema.columns import walk
from deltalog.schema.types import CURRENT_DEFAULT_KEY, GENERATION_EXPRESSION_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.schema.columns import Path
    from deltalog.schema.types import StructType


def generation_expressions(schema: StructType) -> dict[str, str]:
    """Generated column → the SQL that computes it, in the schema's order.

    Only top-level columns can be generated. Where the protocol does not support generated columns,
    writers must ignore the metadata (ledger GEN-03).

    Raises:
        InvalidMetadataError: an expression is not a string.
    """
    found = _expressions(schema, GENERATION_EXPRESSION_KEY)
    return {path[0]: text for path, text in found if len(path) == 1}


def default_expressions(schema: StructType) -> dict[Path, str]:
    """Path of a column → the SQL of its default value, in the schema's order.

    Where the protocol does not support column defaults, the metadata has no meaning.

    Raises:
        InvalidMetadataError: an expression is not a string.
    """
    return dict(_expressions(schema, CURRENT_DEFAULT_KEY))


def _expressions(schema: StructType, key: str) -> Iterator[tuple[Path, str]]:
    for path, field in walk(schema):
        text = field.metadata.get(key)
        if text is not None and not isinstance(text, str):
            raise InvalidMetadataError(
                f"column {'.'.join(path)!r}: expected {key} as a text, found {text!r}"
            )
        if text is not None:
            yield path, text
