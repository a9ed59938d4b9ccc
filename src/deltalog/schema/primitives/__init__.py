"""Primitive types as one table: `table` has a row for each, the other files their codecs.

To add a type, add a row, a codec if no existing one fits, and tests.

Protocol: Primitive Types
"""

from __future__ import annotations

from deltalog.schema.primitives.row import Bounds, Family, Primitive, ValueCodec
from deltalog.schema.primitives.table import (
    PRIMITIVES,
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
    "primitive_in_sql",
    "primitive_named",
    "primitive_of_arrow",
    "type_of_extension",
    "worded_literal",
]
