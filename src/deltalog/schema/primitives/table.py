"""The table of primitive types: the names, the storage and the rules of each type.

Schemas, Arrow, partition values, statistics, SQL and Spark use these rows. Modules that translate
to a single engine contain that engine's types themselves: `expressions/polars` and `daft`,
`query/native`, `iceberg/metadata`, `spark/reading/native`.

The rows of a family are ordered from narrow to wide: of two types, the later type has all values of
both. If several rows accept an Arrow type, the first row without `is_declared` is used.

Protocol: Primitive Types, Type Widening
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
import sys
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

import pyarrow as pa

from deltalog._util.argument_types import kind_of
from deltalog.errors import InvalidInputError
from deltalog.schema.primitives import moments, numbers, places, strings
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
# Types of protocol proposals. Users must declare them, and deltalog only stores and reads values.
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
            codec=strings.TEXT,
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
            stored_in=_NUMBERS | {"decimal", moments.YEAR_TO_MONTH},
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
            codec=strings.TRUTH,
            arrow=pa.bool_,
            takes=(pa.bool_(),),
            sql_words=("BOOLEAN", "BOOL"),
        ),
        Primitive(
            name="binary",
            codec=strings.BYTES,
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
            aliases=("timestampNtz",),  # the name that some releases of delta-rs wrote
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
            name=moments.YEAR_TO_MONTH,
            codec=ValueCodec(),  # the values in Arrow are already numbers of months
            arrow=pa.int32,
            aliases=moments.narrower("year", "month"),
            written=moments.months_constant,
        ),
        _interval(
            name=moments.DAY_TO_SECOND,
            codec=moments.TIME_SPAN,
            arrow=lambda: pa.duration("us"),
            takes=(pa.duration("us"),),
            aliases=moments.narrower("day", "hour", "minute", "second"),
            stored_as=pa.int64,
            written=moments.time_constant,
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
    """Return the type with the given name in the log, without parameters; None if unknown."""
    row = PRIMITIVES.get(name)
    return row or next((row for row in PRIMITIVES.values() if name in row.aliases), None)


def primitive_in_sql(word: str) -> Primitive | None:
    """Return the type with the given name in SQL, ignoring case; None if unknown."""
    word = word.upper()
    return next((row for row in PRIMITIVES.values() if word in row.sql_words), None)


def primitive_of_arrow(
    arrow_type: pa.DataType, *, declared: bool = False, fine: bool = False
) -> tuple[Primitive, tuple[str, ...]] | None:
    """Return the type that stores values of an Arrow type, and its parameters, or None.

    Args:
        arrow_type: the Arrow type of the values.
        declared: whether the result may be a type that only users can choose.
        fine: whether nanosecond timestamps keep their unit; if not, they become microseconds.
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
    """Return the type and the string for a literal such as DATE'…'; None for other values."""
    for row in PRIMITIVES.values():
        text = None if row.literal is None else row.literal(value)
        if text is not None:
            return row, text
    return None


def type_of_extension(name: str, metadata: str) -> str | None:
    """Return the name of the type for an Arrow extension type and its metadata, or None."""
    for row in PRIMITIVES.values():
        found = row.of_extension(metadata) if row.extension == name else None
        if found is not None:
            return found
    return None


# --- Suggestions for invalid types, which may be types of Python, Arrow, pandas or SQL


# Python class → the suggested type. For int, it is the widest integer type.
_OF_PYTHON: Final = {
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "binary",
    dt.date: "date",
    dt.datetime: "timestamp",
    decimal.Decimal: "decimal(38,18)",
}
# The classes whose values all have exactly one type. An int may be longer than a long, and a
# datetime may or may not have a time zone.
_EXACT: Final = frozenset({bool, float, str, bytes, dt.date})
_OF_NAMES: Final = {kind.__name__.lower(): name for kind, name in _OF_PYTHON.items()}
# Names of types that neither Arrow nor SQL has → the suggested type.
_OTHERS: Final = {
    **dict.fromkeys(("object", "text", "varchar", "char", "nvarchar", "utf8", "uuid"), "string"),
    **dict.fromkeys(("varchar2", "nvarchar2", "clob", "nchar", "ntext"), "string"),
    **dict.fromkeys(("number", "numeric"), "decimal(38,18)"),
    **dict.fromkeys(("character varying", "character", "json", "enum"), "string"),
    **dict.fromkeys(("datetime64", "timestamptz", "timestamp with time zone"), "timestamp"),
    **dict.fromkeys(("double precision", "float8"), "double"),
    "timestamp without time zone": "timestamp_ntz",
    "float4": "float",
    **dict.fromkeys(("blob", "bytea", "varbinary"), "binary"),
    "serial": "long",
}

_BARE: Final = {
    **dict.fromkeys(("array", "list"), "array<string>"),
    **dict.fromkeys(("map", "dict"), "map<string,long>"),
    **dict.fromkeys(("struct", "row", "record"), "struct<name: string>"),
}
"""Nested types without their parts → an example with parts."""

_DECIMAL: Final = re.compile(r"(?:decimal|dec|numeric|number)\((\d+)(?:, *(\d+))?\)")
_MOST_DIGITS: Final = 38

# The type stubs of pyarrow accept only constant arguments.
_arrow_type: Any = pa.type_for_alias


def exact_type_of_python(kind: object) -> str | None:
    """Return the type of a class of Python whose values have exactly one type; None for others."""
    return _OF_PYTHON[kind] if isinstance(kind, type) and kind in _EXACT else None


def as_arrow_type(value: Any) -> pa.DataType | None:
    """Return a data type of pyarrow or arro3 as one of pyarrow; None for other values."""
    if isinstance(value, pa.DataType):
        return value
    if type(value).__name__ == "DataType" and hasattr(value, "__arrow_c_schema__"):
        found: pa.DataType = pa.field(value).type
        return found
    return None


def unknown_type(value: object, nested: str | None = None) -> InvalidInputError:
    """Return the error for an invalid type, with a suggestion.

    Args:
        value: the invalid type.
        nested: the Python call of the type that is meant, if it is not primitive.
    """
    known = ", ".join(sorted(PRIMITIVES))
    shown = repr(value) if isinstance(value, str | type) else f"{value!r}, {kind_of(value)}"
    if nested:
        return InvalidInputError(f"cannot make a type of {shown}: did you mean {nested}?")
    decimal_of = _DECIMAL.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if decimal_of is not None and int(decimal_of[1][:_MOST_DIGITS]) > _MOST_DIGITS:
        return InvalidInputError(
            f"cannot make a type of {shown}: a decimal has at most {_MOST_DIGITS} digits, as in "
            f"decimal({_MOST_DIGITS},{decimal_of[2] or 0})"
        )
    meant = _meant(value)
    if meant:
        return InvalidInputError(f"cannot make a type of {shown}: did you mean {meant!r}?")
    return InvalidInputError(
        f"cannot make a type of {shown}: expected a type such as ArrayType(…), or a name: {known}; "
        "with parameters if it has them, such as decimal(p,s)"
    )


_IN_SQL: Final = {
    "int": "integer",
    "bigint": "long",
    "smallint": "short",
    "tinyint": "byte",
    "real": "float",
}
"""Names of types in SQL, which may be mistyped, and their names in the protocol."""
_SIMILAR: Final = 0.7
"""The minimum similarity of a type that is suggested; `id` and `void` have 0.67."""


def _meant(value: object) -> str | None:
    if isinstance(value, type) and value in _OF_PYTHON:
        return _OF_PYTHON[value]
    if not isinstance(value, str):
        found = as_arrow(value)
        return None if found is None else _of_arrow(found)
    name = value.strip().lower()
    known = {one: one for one in PRIMITIVES} | _IN_SQL
    close = get_close_matches(name, known, n=1, cutoff=_SIMILAR)
    return named_elsewhere(name) or _BARE.get(name) or (known[close[0]] if close else None)


def named_elsewhere(name: str) -> str | None:
    """Return the type that has a name, in small letters, in SQL, Arrow or Python, or None."""
    if (decimal_of := _DECIMAL.fullmatch(name)) is not None:
        precision, scale = int(decimal_of[1]), int(decimal_of[2] or 0)
        return f"decimal({precision},{scale})" if scale <= precision <= _MOST_DIGITS else None
    in_sql = primitive_in_sql(name)
    if in_sql is not None:
        return in_sql.name
    word = name.partition("(")[0].partition("[")[0].strip()
    found = _OF_NAMES.get(name) or _OTHERS.get(word)
    if word == "timestamp" and "tz=" in name:
        return "timestamp"
    if found is None:
        try:
            found = _of_arrow(_arrow_type(name))
        except ValueError:
            return None
    return found


def as_arrow(value: Any) -> pa.DataType | None:
    """Return the Arrow type for a type of Arrow, Polars, NumPy, pandas or deltalake, or None."""
    if isinstance(value, pa.DataType):
        return value
    library = (value if isinstance(value, type) else type(value)).__module__.partition(".")[0]
    try:
        if library == "polars":
            found: pa.DataType = sys.modules["polars"].Series("x", [], dtype=value).to_arrow().type
            return found
        if library == "deltalake":
            other: pa.DataType = pa.field(value.to_arrow()).type
            return other
        if library == "pandas":
            arrow: pa.DataType | None = getattr(value, "pyarrow_dtype", None)
            return arrow or pa.from_numpy_dtype(value.numpy_dtype)
        if library == "numpy":
            number: pa.DataType = pa.from_numpy_dtype(value)
            return number
    except (AttributeError, TypeError, ValueError, pa.ArrowException):
        pass
    return None


def _of_arrow(kind: pa.DataType) -> str | None:
    found = primitive_of_arrow(kind)
    if found is None:
        return None
    row, parameters = found
    return f"{row.name}({','.join(parameters)})" if parameters else row.name
