"""Primitive types as a table with one row per type.

- `row`: the columns of the table; `table`: its rows.
- `numbers`, `moments`, `strings`, `places`: codecs of numbers, times, strings and geometries.

To add a type, add a row, tests and, if no existing codec is suitable, a codec.

Protocol: Primitive Types
"""

from __future__ import annotations

from deltalog.schema.primitives.row import Bounds, Family, Primitive, ValueCodec
from deltalog.schema.primitives.table import (
    PRIMITIVES,
    exact_type_of_python,
    is_arrow_type,
    primitive_in_sql,
    primitive_named,
    primitive_of_arrow,
    type_of_extension,
    worded_literal,
)

__all__ = [
    "PRIMITIVES",
    "Bounds",
    "Family",
    "Primitive",
    "ValueCodec",
    "exact_type_of_python",
    "is_arrow_type",
    "primitive_in_sql",
    "primitive_named",
    "primitive_of_arrow",
    "type_of_extension",
    "worded_literal",
]
