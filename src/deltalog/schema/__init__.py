"""Types of a table, their JSON and Arrow forms, column look-up and schema evolution.

- `types`: types, fields and schemas as values. `primitives`: the table of primitive types.
- `codec`, `arrow`: conversion to and from JSON and Arrow. `interchange`: methods for it.
- `columns`: look up, walk and project columns. `metadata_columns`: columns that a scan can add.
- `check`: checks new schemas. `evolve`: changes and merges schemas, and widens types.
- `conform`: converts Arrow data to a table's exact types.
- `collations`: the collations of string columns.
- `variant`: the binary form of variants, and reading shredded variants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog._util.lazy_names import explain_call, explain_names
from deltalog.schema.arrow import (
    VARIANT,
    VARIANT_STORAGE,
    VariantExtensionType,
    from_arrow_schema,
    from_arrow_type,
    to_arrow_schema,
    to_arrow_type,
)
from deltalog.schema.check import check_new_schema, check_partition_columns
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
from deltalog.schema.evolve import (
    TypeChange,
    add_column,
    can_promote,
    can_store,
    change_field,
    change_type,
    check_readable_changes,
    drop_column,
    is_widening,
    merge_schemas,
    move_column,
    new_field,
    rename_column,
    reorder,
    widening_changes,
)
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
    as_fields,
    as_type,
    named_type,
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
    "TypeChange",
    "UnknownType",
    "VariantExtensionType",
    "VariantType",
    "add_column",
    "as_fields",
    "as_type",
    "can_promote",
    "can_store",
    "canonical_path_of",
    "change_field",
    "change_type",
    "check_new_schema",
    "check_partition_columns",
    "check_readable_changes",
    "conform",
    "conform_array",
    "drop_column",
    "duplicates",
    "encode_schema",
    "encode_type",
    "find_field",
    "from_arrow_schema",
    "from_arrow_type",
    "is_widening",
    "leaf_columns",
    "merge_schemas",
    "move_column",
    "named_type",
    "new_field",
    "parse_schema",
    "parse_type",
    "project",
    "rename_column",
    "reorder",
    "to_arrow_schema",
    "to_arrow_type",
    "walk",
    "widening_changes",
]

_MEANT: Final = {
    **dict.fromkeys(
        (
            *("LongType", "IntegerType", "StringType", "DoubleType", "BooleanType", "DateType"),
            *("TimestampType", "DecimalType", "FloatType", "ShortType", "BinaryType"),
        ),
        "the name of the type, as in Field('id', 'long')",
    ),
    "StructField": "Field(name, type)",
}
"""Names of other libraries, and what to use instead."""

if not TYPE_CHECKING:  # type checkers report such uses themselves
    __getattr__ = explain_names(__name__, __all__, _MEANT)
    explain_call(__name__, "deltalog.Schema([Field('id', 'long')])")
