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
    as_arrow_type,
    exact_type_of_python,
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
    "as_arrow_type",
    "exact_type_of_python",
    "primitive_in_sql",
    "primitive_named",
    "primitive_of_arrow",
    "type_of_extension",
    "worded_literal",
]
