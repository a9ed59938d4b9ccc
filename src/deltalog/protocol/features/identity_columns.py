"""Identity columns: columns that number new rows.

This module computes the next values, checks for overflow, and updates the high water mark.

Protocol: Identity Columns
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import arrow, pc
from deltalog._util.readable import counted
from deltalog.errors import InvalidInputError, InvalidMetadataError
from deltalog.schema.types import (
    IDENTITY_ALLOW_EXPLICIT_INSERT_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    LONG,
    Field,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

IDENTITY_TAG: Final = "delta.identity.schemaUpdate"
"""The tag of commits that change only high water marks of identity columns in the metadata."""
MIN_VALUE: Final = -(1 << 63)
MAX_VALUE: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityColumn:
    """A column whose values are members of `start + k * step`.

    Args:
        name: the logical name.
        start: the first value of the sequence.
        step: the difference between consecutive values; never 0.
        high_water_mark: the last generated value; None if no value was generated yet.
        allow_explicit_insert: whether users may insert values of their own.
    """

    name: str
    start: int
    step: int
    high_water_mark: int | None = None
    allow_explicit_insert: bool = False

    @property
    def next_value(self) -> int:
        """The value for the next row, which may exceed 64 bits."""
        if self.high_water_mark is None:
            return self.start
        return self.high_water_mark + self.step

    def member_from(self, value: int) -> int:
        """Return the first value of the sequence at or after `value` (requirement IDN-06)."""
        return self.start - (self.start - value) // self.step * self.step

    def further(self, one: int, other: int) -> int:
        """Return the later of two values, in the direction of the step."""
        return max(one, other) if self.step > 0 else min(one, other)


def identity_columns(schema: StructType) -> tuple[IdentityColumn, ...]:
    """Return the identity columns of a table, in the schema's order.

    Raises:
        InvalidMetadataError: a column's metadata does not describe a sequence of longs.
    """
    return tuple(
        _identity_column(field) for field in schema.fields if IDENTITY_STEP_KEY in field.metadata
    )


def next_values(column: IdentityColumn, start: int, count: int) -> pa.Int64Array:
    """Return `count` values of the sequence from `start` on.

    Raises:
        InvalidInputError: a value would exceed 64 bits. "Overflow when calculating generated
            Identity values should be detected and such writes should not be allowed."
    """
    last = start + (count - 1) * column.step
    if count and not (MIN_VALUE <= start <= MAX_VALUE and MIN_VALUE <= last <= MAX_VALUE):
        raise InvalidInputError(
            f"the identity column {column.name!r} has no values left: the next "
            f"{counted(count, 'value')} from {start} in steps of {column.step} would exceed 64 bits"
        )
    # The first and the last value fit in 64 bits. A product may overflow, but the sums are correct,
    # because Arrow computes modulo 2^64.
    steps = arrow.arange(0, count)
    products = pc.multiply(steps, pa.scalar(column.step, pa.int64()))
    values: pa.Int64Array = pc.add(products, pa.scalar(start if count else 0, pa.int64()))
    return values


def with_high_water_marks(schema: StructType, marks: Mapping[str, int]) -> StructType:
    """Return the schema with new high water marks, unless the current mark is further.

    Args:
        schema: schema of the table.
        marks: the last value by column.

    Protocol: Identity Columns (Writer Requirements)
    """
    known = {column.name: column for column in identity_columns(schema)}
    fields: list[Field] = []
    for field in schema.fields:
        column = known.get(field.name)
        if column is None or field.name not in marks:
            fields.append(field)
            continue
        mark = marks[field.name]
        # The mark must never move back, because later values would then not be unique. An explicit
        # or older value can be behind the current mark.
        if column.high_water_mark is not None:
            mark = column.further(mark, column.high_water_mark)
        metadata = {**field.metadata, IDENTITY_HIGH_WATER_MARK_KEY: mark}
        fields.append(replace(field, metadata=metadata))
    return schema.with_fields(fields)


def _identity_column(field: Field) -> IdentityColumn:
    if field.type != LONG:
        raise InvalidMetadataError(
            f"identity column {field.name!r}: expected the type long, found {field.type}"
        )
    start, step = _number(field, IDENTITY_START_KEY), _number(field, IDENTITY_STEP_KEY)
    if start is None or not step:
        raise InvalidMetadataError(
            f"identity column {field.name!r}: expected {IDENTITY_START_KEY}, and a "
            f"{IDENTITY_STEP_KEY} that is not 0, found {start!r} and {step!r}"
        )
    allowed: Any = field.metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT_KEY, False)
    return IdentityColumn(
        name=field.name,
        start=start,
        step=step,
        high_water_mark=_number(field, IDENTITY_HIGH_WATER_MARK_KEY),
        # Some writers write booleans in field metadata as strings.
        allow_explicit_insert=str(allowed).lower() == "true",
    )


def _number(field: Field, key: str) -> int | None:
    value: Any = field.metadata.get(key)
    if value is None:
        return None
    try:
        number = int(value) if isinstance(value, int | str) else None
    except ValueError:
        number = None
    if number is None or isinstance(value, bool) or not MIN_VALUE <= number <= MAX_VALUE:
        raise InvalidMetadataError(
            f"identity column {field.name!r}: expected a 64-bit {key}, found {value!r}"
        )
    return number


IDENTITY_HIGH_WATER_MARK_KEY: Final = "delta.identity.highWaterMark"
