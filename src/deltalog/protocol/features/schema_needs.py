"""Functions that return whether a schema requires a table feature.

Core: no I/O.

Protocol: Table Features
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog.schema.columns import walk, walk_types
from deltalog.schema.types import (
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_STEP_KEY,
    PrimitiveType,
    StructType,
    VariantType,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


INVARIANTS_KEY: Final = "delta.invariants"


def has_invariants(schema: StructType) -> bool:
    """Return whether a column has an invariant."""
    return any(INVARIANTS_KEY in metadata for metadata in _metadata(schema))


def has_generated_columns(schema: StructType) -> bool:
    """Return whether a column is computed from other columns."""
    return any(GENERATION_EXPRESSION_KEY in metadata for metadata in _metadata(schema))


def has_identity_columns(schema: StructType) -> bool:
    """Return whether a column numbers new rows."""
    return any(IDENTITY_STEP_KEY in metadata for metadata in _metadata(schema))


def has_column_defaults(schema: StructType) -> bool:
    """Return whether a column has a default value."""
    return any(CURRENT_DEFAULT_KEY in metadata for metadata in _metadata(schema))


def has_types_of(schema: StructType, feature: str) -> bool:
    """Return whether the schema contains a primitive type that needs the table feature."""
    return any(
        isinstance(found, PrimitiveType) and found.primitive.feature == feature
        for _, found in walk_types(schema)
    )


def has_variant(schema: StructType) -> bool:
    """Return whether the schema contains a variant at any level."""
    return any(isinstance(found, VariantType) for _, found in walk_types(schema))


def _metadata(schema: StructType) -> Iterator[Any]:
    return (field.metadata for _, field in walk(schema))
