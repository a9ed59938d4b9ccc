"""The schema of a table: types, their JSON and Arrow forms, look-up and evolution."""

from __future__ import annotations

from deltalog.schema.arrow import (
    VARIANT,
    VARIANT_STORAGE,
    VariantExtensionType,
    from_arrow_schema,
    from_arrow_type,
    to_arrow_schema,
    to_arrow_type,
)
from deltalog.schema.codec import encode_schema, encode_type, parse_schema, parse_type
from deltalog.schema.columns import (
    canonical_path_of,
    duplicates,
    find_field,
    leaf_columns,
    project,
    walk,
)
from deltalog.schema.conform import conform, conform_array
from deltalog.schema.types import (
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    Schema,
    StructType,
    UnknownType,
    VariantType,
    as_type,
)

__all__ = [
    "VARIANT",
    "VARIANT_STORAGE",
    "ArrayType",
    "DataType",
    "Field",
    "MapType",
    "PrimitiveType",
    "Schema",
    "StructType",
    "UnknownType",
    "VariantExtensionType",
    "VariantType",
    "as_type",
    "canonical_path_of",
    "conform",
    "conform_array",
    "duplicates",
    "encode_schema",
    "encode_type",
    "find_field",
    "from_arrow_schema",
    "from_arrow_type",
    "leaf_columns",
    "parse_schema",
    "parse_type",
    "project",
    "to_arrow_schema",
    "to_arrow_type",
    "walk",
]
