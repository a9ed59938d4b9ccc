"""The hidden columns that a read can add to a table's own, as part of its schema.

Owns which of them the table's own columns hide by their names.

Protocol: none; `_metadata` is Spark's hidden struct of file and row facts
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.metadata_columns import METADATA, METADATA_COLUMNS
from deltalog.names import name_key
from deltalog.schema.arrow import from_arrow_type
from deltalog.schema.types import Field, StructType

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

_METADATA_FIELD: Final = Field(
    METADATA,
    StructType(
        [
            Field(name.removeprefix(f"{METADATA}."), from_arrow_type(kind))
            for name, kind in METADATA_COLUMNS.items()
        ]
    ),
    nullable=False,
)


def has_own_metadata(schema: StructType) -> bool:
    """Whether the table has a column of its own that is called `_metadata`."""
    return any(name_key(name) == METADATA for name in schema.names)


def metadata_columns_of(schema: StructType) -> Mapping[str, pa.DataType]:
    """Those of `METADATA_COLUMNS` that no column of the table hides by its name."""
    if has_own_metadata(schema):
        return {}
    if METADATA_COLUMNS.keys().isdisjoint(schema.names):
        return METADATA_COLUMNS
    return {name: kind for name, kind in METADATA_COLUMNS.items() if name not in schema.names}


def with_metadata_columns(schema: StructType) -> StructType:
    """The schema for predicates: that of the table and the struct `_metadata`."""
    if not metadata_columns_of(schema):
        return schema
    return StructType([*schema, _METADATA_FIELD])
