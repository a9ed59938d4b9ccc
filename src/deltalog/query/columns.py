"""The schemas and columns of rows of any library that a query reads.

Protocol: none
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from deltalog.data.write.polars_frames import frame_kind
from deltalog.schema import StructType


def arrow_schema(rows: Any) -> pa.Schema | None:
    """Return the Arrow schema of rows; None if they have only a schema of their own library."""
    if frame_kind(rows) is not None:  # asking a LazyFrame for its schema would warn
        return None
    schema = getattr(rows, "schema", None)
    return schema if isinstance(schema, pa.Schema) else None


def column_names(rows: Any) -> list[str]:
    """Return the names of the columns; empty if they are unknown."""
    if frame_kind(rows) is not None:
        return list(rows.collect_schema())
    # A column of a pandas frame may have the name of one of these attributes.
    schemas = (getattr(rows, "table_schema", None), getattr(rows, "schema", None))
    found: Any = next((one for one in schemas if isinstance(one, StructType | pa.Schema)), None)
    names = getattr(rows, "columns", ()) if found is None else found.names
    return [str(name) for name in names]


def fields_beside(rows: Any, field: str = "") -> list[str]:
    """Return the names of the fields of the first struct that has a field of this name."""
    schemas = (getattr(rows, "table_schema", None), getattr(rows, "schema", None))
    found: Any = next((one for one in schemas if isinstance(one, StructType | pa.Schema)), ())
    for column in found:
        children = [str(child.name) for child in _fields_of(column.type)]
        if field in children:
            return children
    return []


def _fields_of(kind: Any) -> list[Any]:
    if isinstance(kind, StructType):
        return list(kind)
    return list(kind.fields) if isinstance(kind, pa.StructType) else []


def index_names(rows: Any) -> list[str]:
    """Return the names of the levels of a pandas frame's index, which are no columns in SQL."""
    names = getattr(getattr(rows, "index", None), "names", ())
    return [name for name in names if isinstance(name, str)]
