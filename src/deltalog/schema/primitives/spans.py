"""Intervals: months in 32 bits, and microseconds in 64, as data files have them.

Owns their narrower names, which engines write and which mean the same values.

Protocol: RFC Interval types
"""

from __future__ import annotations

from itertools import combinations
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog.kernels import Array
from deltalog.schema.primitives.row import ValueCodec

YEAR_TO_MONTH: Final = "interval year to month"
DAY_TO_SECOND: Final = "interval day to second"


def narrower(*fields: str) -> tuple[str, ...]:
    """Return the names of intervals between two of these fields, or of one, but for the widest."""
    spans = [f"interval {first} to {last}" for first, last in combinations(fields, 2)]
    widest = f"interval {fields[0]} to {fields[-1]}"
    return (*(f"interval {field}" for field in fields), *(one for one in spans if one != widest))


def _conform_months(array: Array, target: pa.DataType) -> Array | None:
    return array.cast(target) if pt.is_integer(array.type) else None


def _conform_time(array: Array, target: pa.DataType) -> Array | None:
    return array.cast(target) if pt.is_duration(array.type) else None


MONTH_COUNT: Final = ValueCodec(conform=_conform_months)
TIME_SPAN: Final = ValueCodec(conform=_conform_time)
