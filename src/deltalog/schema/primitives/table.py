"""THE table of primitive types: what each is called, how it is stored, which rules it follows.

A row is data. Schemas, Arrow, partition values, statistics, SQL and Spark read it; nothing else
lists types. Rows of a family go from narrow to wide: a value of two types is of the later one.

Protocol: Primitive Types, Type Widening
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog.schema.primitives import moments, numbers, texts
from deltalog.schema.primitives.row import Family, Primitive

if TYPE_CHECKING:
    from collections.abc import Callable

    ParametersOf = Callable[[Any], tuple[str, ...] | None]


def _any_of(*arrow_types: pa.DataType) -> ParametersOf:
    """No parameters for Arrow types of these kinds, whatever their units."""
    kinds = frozenset(arrow_type.id for arrow_type in arrow_types)
    return lambda arrow_type: () if arrow_type.id in kinds else None


def _moments(*, has_zone: bool) -> ParametersOf:
    return lambda kind: () if pt.is_timestamp(kind) and (kind.tz is None) != has_zone else None


_TEXTS: Final = (pa.string(), pa.large_string(), pa.string_view())
_BYTES: Final = (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))
_INTEGERS: Final = frozenset({"byte", "short", "integer", "long"})
_NUMBERS: Final = _INTEGERS | {"float", "double"}
_EXACT_TOO: Final = _NUMBERS | {"decimal"}
_MOMENTS: Final = frozenset({"timestamp", "timestamp_ntz"})

PRIMITIVES: Final[dict[str, Primitive]] = {
    row.name: row
    for row in (
        Primitive(
            name="string",
            family=Family.TEXT,
            codec=texts.TEXT,
            arrow=pa.string,
            large_arrow=pa.large_string,
            parameters_of=_any_of(*_TEXTS),
        ),
        Primitive(
            name="byte",
            family=Family.INTEGRAL,
            bits=8,
            codec=numbers.INTEGER,
            arrow=pa.int8,
            parameters_of=_any_of(pa.int8()),
            widens_to=frozenset({"short", "integer", "long", "double"}),
            stored_in=_EXACT_TOO,
            sql_words=("TINYINT",),
            suffix="Y",
        ),
        Primitive(
            name="short",
            family=Family.INTEGRAL,
            bits=16,
            codec=numbers.INTEGER,
            arrow=pa.int16,
            parameters_of=_any_of(pa.int16(), pa.uint8()),
            widens_to=frozenset({"integer", "long", "double"}),
            stored_in=_EXACT_TOO,
            sql_words=("SMALLINT",),
            suffix="S",
        ),
        Primitive(
            name="integer",
            family=Family.INTEGRAL,
            bits=32,
            codec=numbers.INTEGER,
            arrow=pa.int32,
            parameters_of=_any_of(pa.int32(), pa.uint16()),
            widens_to=frozenset({"long", "double"}),
            stored_in=_EXACT_TOO,
            sql_words=("INT",),
        ),
        Primitive(
            name="long",
            family=Family.INTEGRAL,
            bits=64,
            codec=numbers.INTEGER,
            arrow=pa.int64,
            parameters_of=_any_of(pa.int64(), pa.uint32(), pa.uint64()),
            stored_in=_EXACT_TOO,
            sql_words=("BIGINT",),
            suffix="L",
        ),
        Primitive(
            name="float",
            family=Family.FLOATING,
            bits=32,
            codec=numbers.FLOAT,
            arrow=pa.float32,
            parameters_of=_any_of(pa.float32(), pa.float16()),
            widens_to=frozenset({"double"}),
            stored_in=_NUMBERS,
            sql_words=("FLOAT", "REAL"),
            suffix="F",
        ),
        Primitive(
            name="double",
            family=Family.FLOATING,
            bits=64,
            codec=numbers.FLOAT,
            arrow=pa.float64,
            parameters_of=_any_of(pa.float64()),
            stored_in=_NUMBERS,
            suffix="D",
        ),
        Primitive(
            name="decimal",
            family=Family.DECIMAL,
            codec=numbers.DECIMAL,
            arrow=numbers.arrow_decimal,
            parameters_of=numbers.decimal_parameters,
            canonical=numbers.canonical_decimal,
            defaults=("10", "0"),
            stored_in=_INTEGERS | {"decimal"},
            sql_words=("DECIMAL", "DEC", "NUMERIC"),
        ),
        Primitive(
            name="boolean",
            codec=texts.TRUTH,
            arrow=pa.bool_,
            parameters_of=_any_of(pa.bool_()),
            sql_words=("BOOLEAN", "BOOL"),
        ),
        Primitive(
            name="binary",
            codec=texts.BYTES,
            arrow=pa.binary,
            large_arrow=pa.large_binary,
            parameters_of=_any_of(*_BYTES),
            stored_in=frozenset({"string"}),
        ),
        Primitive(
            name="date",
            family=Family.MOMENT,
            codec=moments.DATE,
            arrow=pa.date32,
            parameters_of=_any_of(pa.date32(), pa.date64()),
            widens_to=frozenset({"timestamp_ntz"}),
            stored_in=frozenset({"timestamp_ntz"}),
            literal=moments.date_literal,
        ),
        Primitive(
            name="timestamp_ntz",
            family=Family.MOMENT,
            has_zone=False,
            codec=moments.WALL_CLOCK,
            arrow=partial(pa.timestamp, "us"),
            parameters_of=_moments(has_zone=False),
            aliases=("timestampNtz",),  # delta-rs wrote it for some releases
            stored_in=_MOMENTS,
            feature="timestampNtz",
            literal=moments.wall_clock_literal,
        ),
        Primitive(
            name="timestamp",
            family=Family.MOMENT,
            has_zone=True,
            codec=moments.INSTANT,
            arrow=partial(pa.timestamp, "us", "UTC"),
            parameters_of=_moments(has_zone=True),
            stored_in=_MOMENTS,
            sql_words=("TIMESTAMP", "TIMESTAMP_LTZ"),
            literal=moments.instant_literal,
        ),
        Primitive(
            name="void",
            codec=texts.NOTHING,
            arrow=pa.null,
            parameters_of=_any_of(pa.null()),
            aliases=("null",),
        ),
    )
}


def primitive_named(name: str) -> Primitive | None:
    """Return the type that a log calls so, without its parameters; None if there is none."""
    row = PRIMITIVES.get(name)
    return row or next((row for row in PRIMITIVES.values() if name in row.aliases), None)


def primitive_in_sql(word: str) -> Primitive | None:
    """Return the type that SQL calls so, whatever the case; None if there is none."""
    word = word.upper()
    return next((row for row in PRIMITIVES.values() if word in row.sql_words), None)


def primitive_of_arrow(arrow_type: pa.DataType) -> tuple[Primitive, tuple[str, ...]] | None:
    """Return the type that stores values of an Arrow type, with its parameters, or None."""
    for row in PRIMITIVES.values():
        parameters = row.parameters_of(arrow_type)
        if parameters is not None:
            return row, parameters
    return None


def worded_literal(value: object) -> tuple[Primitive, str] | None:
    """Return the type that SQL names before a Python value, and the text after it, or None."""
    for row in PRIMITIVES.values():
        text = None if row.literal is None else row.literal(value)
        if text is not None:
            return row, text
    return None
