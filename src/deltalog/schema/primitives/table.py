"""THE table of primitive types: what each is called, how it is stored, which rules it follows.

A row is data. Schemas, Arrow, partition values, statistics, SQL and Spark read it; nothing else
lists types. Rows of a family go from narrow to wide: a value of two types is of the later one.

Protocol: Primitive Types, Type Widening
"""

from __future__ import annotations

from functools import partial
from typing import Final

import pyarrow as pa

from deltalog.schema.primitives import moments, numbers, places, spans, texts
from deltalog.schema.primitives.row import Family, Primitive, ValueCodec

_INTEGERS: Final = frozenset({"byte", "short", "integer", "long"})
_NUMBERS: Final = _INTEGERS | {"float", "double"}
_FINE_MOMENTS: Final = frozenset({"timestamp_nanos", "timestamp_nanos_ntz"})
_MOMENTS: Final = frozenset({"timestamp", "timestamp_ntz"}) | _FINE_MOMENTS
_WALL_CLOCK: Final = pa.timestamp("us")
_INSTANT: Final = pa.timestamp("us", "UTC")
_integer: Final = partial(
    Primitive,
    family=Family.INTEGRAL,
    codec=numbers.INTEGER,
    stored_in=_NUMBERS | {"decimal"},
)
_float: Final = partial(Primitive, family=Family.FLOATING, codec=numbers.FLOAT, stored_in=_NUMBERS)
# Of proposed texts: those who name them get them, and values are stored and handed on.
_draft: Final = partial(Primitive, takes=(), is_declared=True, is_opaque=True, in_spark=False)
_nanos: Final = partial(
    _draft,
    codec=moments.FINE_MOMENT,
    stored_in=_FINE_MOMENTS,
    feature="timestampNanos",
    is_ordered=True,
)
_interval: Final = partial(_draft, feature="intervalTypes", is_ordered=True)
_place: Final = partial(
    _draft,
    arrow=lambda *_: pa.binary(),
    large_arrow=lambda *_: pa.large_binary(),
    stored_in=frozenset({"binary"}),
    defaults=("4326",),
    feature="geospatial",
    name_in_sql=places.name_in_sql,
    stored_as=places.stored_wkb,
    check=places.check_wkb,
    extension=places.WKB,
    extension_metadata=places.wkb_metadata,
)

PRIMITIVES: Final[dict[str, Primitive]] = {
    row.name: row
    for row in (
        Primitive(
            name="string",
            codec=texts.TEXT,
            arrow=pa.string,
            large_arrow=pa.large_string,
            takes=(pa.string(), pa.large_string(), pa.string_view()),
        ),
        _integer(
            name="byte",
            bits=8,
            arrow=pa.int8,
            takes=(pa.int8(),),
            widens_to=frozenset({"short", "integer", "long", "double"}),
            sql_words=("TINYINT",),
            suffix="Y",
        ),
        _integer(
            name="short",
            bits=16,
            arrow=pa.int16,
            takes=(pa.int16(), pa.uint8()),
            widens_to=frozenset({"integer", "long", "double"}),
            sql_words=("SMALLINT",),
            suffix="S",
        ),
        _integer(
            name="integer",
            bits=32,
            stored_in=_NUMBERS | {"decimal", spans.YEAR_TO_MONTH},
            arrow=pa.int32,
            takes=(pa.int32(), pa.uint16()),
            widens_to=frozenset({"long", "double"}),
            sql_words=("INT",),
        ),
        _integer(
            name="long",
            bits=64,
            arrow=pa.int64,
            takes=(pa.int64(), pa.uint32(), pa.uint64()),
            sql_words=("BIGINT",),
            suffix="L",
        ),
        _float(
            name="float",
            bits=32,
            arrow=pa.float32,
            takes=(pa.float32(), pa.float16()),
            widens_to=frozenset({"double"}),
            sql_words=("FLOAT", "REAL"),
            suffix="F",
        ),
        _float(name="double", bits=64, arrow=pa.float64, takes=(pa.float64(),), suffix="D"),
        Primitive(
            name="decimal",
            family=Family.DECIMAL,
            codec=numbers.DECIMAL,
            arrow=numbers.arrow_decimal,
            takes=(pa.decimal32(1), pa.decimal64(1), pa.decimal128(1), pa.decimal256(1)),
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
            takes=(pa.bool_(),),
            sql_words=("BOOLEAN", "BOOL"),
        ),
        Primitive(
            name="binary",
            codec=texts.BYTES,
            arrow=pa.binary,
            large_arrow=pa.large_binary,
            takes=(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)),
            stored_in=frozenset({"string", "geometry", "geography"}),
        ),
        Primitive(
            name="date",
            family=Family.MOMENT,
            codec=moments.DATE,
            arrow=pa.date32,
            takes=(pa.date32(), pa.date64()),
            widens_to=frozenset({"timestamp_ntz"}),
            stored_in=frozenset({"timestamp_ntz"}),
            literal=moments.date_literal,
            counted=moments.counted_date,
        ),
        Primitive(
            name="timestamp_ntz",
            family=Family.MOMENT,
            has_zone=False,
            codec=moments.WALL_CLOCK,
            arrow=lambda: _WALL_CLOCK,
            takes=(_WALL_CLOCK,),
            parameters_of=lambda kind: () if kind.tz is None else None,
            aliases=("timestampNtz",),  # delta-rs wrote it for some releases
            stored_in=_MOMENTS,
            feature="timestampNtz",
            literal=moments.wall_clock_literal,
            counted=moments.counted_wall_clock,
        ),
        Primitive(
            name="timestamp",
            family=Family.MOMENT,
            has_zone=True,
            codec=moments.INSTANT,
            arrow=lambda: _INSTANT,
            takes=(_INSTANT,),
            parameters_of=lambda kind: () if kind.tz is not None else None,
            stored_in=_MOMENTS,
            sql_words=("TIMESTAMP", "TIMESTAMP_LTZ"),
            literal=moments.instant_literal,
            counted=moments.counted_instant,
        ),
        _nanos(
            name="timestamp_nanos_ntz",
            arrow=lambda: pa.timestamp("ns"),
            written=partial(moments.fine_constant, has_zone=False),
        ),
        _nanos(
            name="timestamp_nanos",
            arrow=lambda: pa.timestamp("ns", "UTC"),
            written=partial(moments.fine_constant, has_zone=True),
        ),
        _interval(
            name=spans.YEAR_TO_MONTH,
            codec=ValueCodec(),  # Arrow has integers for it, which are converted as such
            arrow=pa.int32,
            aliases=spans.narrower("year", "month"),
            written=spans.months_constant,
        ),
        _interval(
            name=spans.DAY_TO_SECOND,
            codec=spans.TIME_SPAN,
            arrow=lambda: pa.duration("us"),
            takes=(pa.duration("us"),),
            aliases=spans.narrower("day", "hour", "minute", "second"),
            stored_as=pa.int64,
            written=spans.time_constant,
        ),
        _place(
            name="geometry",
            codec=places.GEOMETRY,
            canonical=places.canonical_geometry,
            of_extension=places.geometry_of,
        ),
        _place(
            name="geography",
            codec=places.GEOGRAPHY,
            canonical=places.canonical_geography,
            of_extension=places.geography_of,
        ),
        Primitive(
            name="void", codec=ValueCodec(), arrow=pa.null, takes=(pa.null(),), aliases=("null",)
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


def primitive_of_arrow(
    arrow_type: pa.DataType, *, declared: bool = False, fine: bool = False
) -> tuple[Primitive, tuple[str, ...]] | None:
    """Return the type that stores values of an Arrow type, with its parameters, or None.

    Args:
        arrow_type: of the values.
        declared: whether it may be a type that only those who name it get.
        fine: whether nanoseconds are of the types that have them: others cut them off.
    """
    kind = arrow_type.id
    if fine and moments.has_nanoseconds(arrow_type):
        has_zone = arrow_type.tz is not None
        return PRIMITIVES["timestamp_nanos" if has_zone else "timestamp_nanos_ntz"], ()
    for row in PRIMITIVES.values():
        if kind in row.kinds and (declared or not row.is_declared):
            parameters = () if row.parameters_of is None else row.parameters_of(arrow_type)
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


def type_of_extension(name: str, metadata: str) -> str | None:
    """Return the name of the type that an extension type of Arrow stands for, or None."""
    for row in PRIMITIVES.values():
        found = row.of_extension(metadata) if row.extension == name else None
        if found is not None:
            return found
    return None
