"""Conversion of a table's types to Arrow types, and back.

Contains the mapping between the protocol's types and Arrow's types, the extension type of variants,
and the form of column metadata in Arrow fields. `conform` converts the data.

Protocol: Primitive Types, Variant Type
"""

from __future__ import annotations

import contextlib
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.argument_types import kind_of, shortened, with_article
from deltalog._util.json import dumps, loads
from deltalog._util.kernels import arrow
from deltalog._util.previews import keeps_nanoseconds
from deltalog.errors import (
    DeltaError,
    InvalidInputError,
    MalformedLogError,
    UnsupportedTypeError,
)
from deltalog.schema.codec import encode_type, parse_type
from deltalog.schema.interchange import FORMS, Form
from deltalog.schema.primitives import primitive_of_arrow, type_of_extension
from deltalog.schema.types import (
    ArrayType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    UnknownType,
    VariantType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.schema.types import DataType

_EXTENSION: Final = "ARROW:extension:name"
_EXTENSION_METADATA: Final = "ARROW:extension:metadata"
_OF_QUERY: Final = b"deltalog:type"
PARQUET_FIELD_ID: Final = "PARQUET:field_id"
"""The key under which Arrow stores the field id of a Parquet column, as a string.

The value may be any string, because the Arrow schema in a file overrides Parquet's ids.
"""
_FIELD_ID_KEY: Final = PARQUET_FIELD_ID.encode()
_MOST_DIGITS: Final = 10  # 32-bit Parquet ids have at most 10 digits
VARIANT_STORAGE: Final = pa.struct(
    [
        pa.field("metadata", pa.binary(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
)


class VariantExtensionType(pa.ExtensionType):
    """Arrow's canonical extension type for variants, `arrow.parquet.variant`.

    Args:
        storage_type: `struct<metadata: binary not null, value: binary not null>`. Data of other
            libraries may be shredded; the struct then also has a `typed_value`.
    """

    def __init__(self, storage_type: pa.DataType = VARIANT_STORAGE) -> None:
        super().__init__(storage_type, "arrow.parquet.variant")

    def __arrow_ext_serialize__(self) -> bytes:
        """Return no bytes, because the type has no parameters."""
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        """Return the type for the storage type in a file or message."""
        del serialized
        return cls(storage_type)

    def __hash__(self) -> int:
        """Return the same hash for equal types."""
        return hash((self.extension_name, self.storage_type))


VARIANT: Final = VariantExtensionType()
# Another library may have registered a type of this name. deltalog accepts that type, too.
with contextlib.suppress(pa.ArrowKeyError):
    pa.register_extension_type(VARIANT)  # type: ignore[arg-type]  # the stubs expect an older base class


_TEXTS: Final = frozenset(
    {
        "delta.generationExpression",
        "delta.columnMapping.physicalName",
        "delta.invariants",
        "__CHAR_VARCHAR_TYPE_STRING",
    }
)


class _Form(NamedTuple):
    large: bool
    with_metadata: bool


class _Naming(NamedTuple):
    declared: bool
    fine: bool


def to_arrow_schema(
    schema: StructType, *, as_large_types: bool = False, with_metadata: bool = False
) -> pa.Schema:
    """Return the Arrow schema of the table's rows.

    Args:
        schema: the schema of the table, or a part of it.
        as_large_types: whether strings, binaries and lists have 64-bit offsets.
        with_metadata: whether to include column metadata, whose values are strings in Arrow.

    Raises:
        UnsupportedTypeError: a column has an unknown type.
    """
    form = _Form(as_large_types, with_metadata)
    return pa.schema([_to_arrow_field(field, (), form) for field in schema.fields])


def with_query_type(field: pa.Field[Any], data_type: DataType) -> pa.Field[Any]:
    """Record in a field of a query's rows a type that Arrow does not have."""
    recorded: dict[bytes | str, bytes | str] = {_OF_QUERY: encode_type(data_type)}
    recorded.update((field.metadata or {}).items())
    return field.with_metadata(recorded)


def type_of_query(field: pa.Field[Any]) -> DataType | None:
    """Return the type that `with_query_type` recorded; None if there is none or values were cast.

    An invalid value is ignored, because metadata of the caller may contain any value under this
    key.
    """
    found, arrow_type = _type_in((field.metadata or {}).get(_OF_QUERY))
    return found if arrow_type == field.type else None


def _type_in(recorded: bytes | None) -> tuple[DataType | None, pa.DataType | None]:
    """Return the type in a JSON string and its Arrow type; both are None if it is invalid."""
    try:
        found = None if recorded is None else parse_type(recorded.decode())
        return found, None if found is None else to_arrow_type(found)
    except (UnicodeDecodeError, DeltaError):
        return None, None


def to_arrow_type(
    data_type: DataType, *, as_large_types: bool = False, with_metadata: bool = False
) -> pa.DataType:
    """Return the Arrow type that stores values of a type.

    Raises:
        UnsupportedTypeError: the type is unknown.
    """
    return _to_arrow_type(data_type, (), _Form(as_large_types, with_metadata))


def _to_arrow_field(field: Field, path: tuple[str, ...], form: _Form) -> pa.Field[Any]:
    arrow_type = _to_arrow_type(field.type, (*path, field.name), form)
    metadata = _encode_metadata(field.metadata) if form.with_metadata and field.metadata else None
    return _field(field.name, arrow_type, field.type, metadata, nullable=field.nullable)


def _field(
    name: str,
    arrow_type: pa.DataType,
    data_type: DataType,
    metadata: dict[str, str] | None = None,
    *,
    nullable: bool,
) -> pa.Field[Any]:
    if isinstance(data_type, PrimitiveType) and (row := data_type.primitive).extension:
        recorded = row.extension_metadata(*data_type.parameters)
        metadata = {**(metadata or {}), _EXTENSION: row.extension, _EXTENSION_METADATA: recorded}
    # In Arrow, a field of type null must be nullable. A NOT NULL column of type void has no rows.
    return pa.field(name, arrow_type, nullable or pt.is_null(arrow_type), metadata)


def _to_arrow_type(data_type: DataType, path: tuple[str, ...], form: _Form) -> pa.DataType:
    match data_type:
        case PrimitiveType():
            return _primitive(data_type.type, large=form.large)
        case VariantType():
            return VARIANT
        case StructType():
            return pa.struct([_to_arrow_field(field, path, form) for field in data_type.fields])
        case ArrayType():
            element = _to_arrow_type(data_type.element_type, (*path, "element"), form)
            inner, may_be_null = data_type.element_type, data_type.contains_null
            item = _field("element", element, inner, nullable=may_be_null)
            return pa.large_list(item) if form.large else pa.list_(item)
        case MapType():
            key = _to_arrow_type(data_type.key_type, (*path, "key"), form)
            value = _to_arrow_type(data_type.value_type, (*path, "value"), form)
            if pt.is_null(key):
                raise UnsupportedTypeError(
                    f"the map {'.'.join(path)!r} has keys of type void, which have no values"
                )
            inner, may_be_null = data_type.value_type, data_type.value_contains_null
            value_field = _field("value", value, inner, nullable=may_be_null)
            return arrow.map_(_field("key", key, data_type.key_type, nullable=False), value_field)
        case UnknownType():
            at = f"column {'.'.join(path)!r} has" if path else "cannot use"
            raise UnsupportedTypeError(
                f"{at} the type {data_type.name!r}, which deltalog does not support; "
                "leave the column out, or use an engine that supports it"
            )


@cache  # bounded: few types, and at most 741 decimal types
def _primitive(name: str, *, large: bool) -> pa.DataType:
    data_type = PrimitiveType(name)
    row = data_type.primitive
    make = row.large_arrow if large and row.large_arrow else row.arrow
    return make() if row.canonical is None else make(*data_type.parameters)


def from_arrow_schema(
    schema: pa.Schema, *, declared: bool = False, fine: bool = False
) -> StructType:
    """Return the table schema that stores data of an Arrow schema.

    Args:
        schema: the schema of the data.
        declared: whether columns may have types that users must choose explicitly; True for the
            schema of an existing table, or for a schema that is compared with a table's schema.
        fine: whether nanosecond timestamps keep their unit; if not, they are truncated to
            microseconds.

    Raises:
        InvalidInputError: Delta has no type for a column.
    """
    naming = _Naming(declared, fine)
    return StructType([_from_arrow_field(field, (), naming) for field in schema])


def from_arrow_type(
    arrow_type: pa.DataType, *, declared: bool = False, fine: bool = False
) -> DataType:
    """Return the type that stores values of an Arrow type, in any encoding or width.

    Unsigned integers become the next wider signed type, and naive timestamps `timestamp_ntz`.

    Args:
        arrow_type: the Arrow type of the values.
        declared: see `from_arrow_schema`.
        fine: see `from_arrow_schema`.

    Raises:
        InvalidInputError: Delta has no such type (times, Arrow's intervals, unions), or users must
            choose the type explicitly (durations).
    """
    return _from_arrow_type(arrow_type, (), _Naming(declared, fine))


def _from_arrow_field(field: pa.Field[Any], path: tuple[str, ...], naming: _Naming) -> Field:
    return Field(
        field.name,
        _from_arrow_part(field, (*path, field.name), naming),
        nullable=field.nullable,
        metadata=_decode_metadata(field.metadata or {}),
    )


def _from_arrow_part(field: pa.Field[Any], path: tuple[str, ...], naming: _Naming) -> DataType:
    recorded = type_of_query(field) or (_type_declared_by(field) if naming.declared else None)
    return recorded or _from_arrow_type(field.type, path, naming)


def _type_declared_by(field: pa.Field[Any]) -> DataType | None:
    """Return the type that an Arrow extension in a field's type or metadata means, or None."""
    kind: Any = field.type
    if isinstance(kind, pa.BaseExtensionType):
        name, recorded = kind.extension_name, _serialized(kind)
    else:
        metadata = field.metadata or {}
        name = metadata.get(_EXTENSION.encode(), b"").decode()
        recorded = metadata.get(_EXTENSION_METADATA.encode(), b"").decode()
    found = type_of_extension(name, recorded) if name else None
    return None if found is None else PrimitiveType(found)


def _serialized(kind: Any) -> str:
    serialize = getattr(kind, "__arrow_ext_serialize__", None)
    return serialize().decode() if serialize is not None else ""


def check_extension(arrow_type: pa.BaseExtensionType, path: tuple[str, ...]) -> None:
    """Raise if the stored values of an Arrow extension type mean something else without the type.

    Raises:
        InvalidInputError: the type contains periods of pandas, which are stored as numbers, values
            that only Ray or DuckDB can read, or tensors that would lose their shape.
    """
    name = arrow_type.extension_name
    shape = getattr(arrow_type, "shape", ())  # of tensors, of pyarrow or Ray
    if len(shape) > 1:
        at = f" of column {'.'.join(path)!r}" if path else ""
        raise InvalidInputError(
            f"cannot store the tensors{at} of the shape {list(shape)}: they would become flat "
            "lists; convert them first to nested lists, or reshape them to one dimension"
        )
    if isinstance(arrow_type, pa.OpaqueType):
        name = f"{arrow_type.vendor_name}.{arrow_type.type_name}"
    if name not in _FOREIGN:
        return
    what, advice = _FOREIGN[name]
    at = f" of column {'.'.join(path)!r}" if path else ""
    raise InvalidInputError(f"cannot store the {what}{at}: Delta has no such type, and {advice}")


_FOREIGN: Final = {
    "pandas.period": (
        "pandas periods",
        (
            "their numbers mean nothing without pandas; convert them first, for example by "
            ".dt.to_timestamp() or .astype(str)"
        ),
    ),
    "ray.data.arrow_pickled_object": (
        "Python objects",
        "Ray has pickled them; convert them first to values that Arrow has, such as strings",
    ),
    "DuckDB.bignum": (
        "BIGNUM values of DuckDB",
        "only DuckDB can read their bytes; cast them first, as in CAST(… AS VARCHAR)",
    ),
}
"""Extension → what the values are, and why they cannot be stored."""


def _from_arrow_type(arrow_type: Any, path: tuple[str, ...], naming: _Naming) -> DataType:
    if isinstance(arrow_type, pa.BaseExtensionType):
        if arrow_type.extension_name == VARIANT.extension_name:
            return VariantType()
        check_extension(arrow_type, path)
        return _from_arrow_type(arrow_type.storage_type, path, naming)
    if pt.is_dictionary(arrow_type) or pt.is_run_end_encoded(arrow_type):
        return _from_arrow_type(arrow_type.value_type, path, naming)
    if is_list(arrow_type):
        element = _from_arrow_part(arrow_type.value_field, (*path, "element"), naming)
        return ArrayType(element, arrow_type.value_field.nullable)
    if pt.is_map(arrow_type):
        return MapType(
            _from_arrow_part(arrow_type.key_field, (*path, "key"), naming),
            _from_arrow_part(arrow_type.item_field, (*path, "value"), naming),
            arrow_type.item_field.nullable,
        )
    if pt.is_struct(arrow_type):
        return StructType([_from_arrow_field(field, path, naming) for field in arrow_type.fields])
    found = primitive_of_arrow(arrow_type, declared=naming.declared, fine=naming.fine)
    if found is None:
        at = f" of column {'.'.join(path)!r}" if path else ""
        raise InvalidInputError(
            f"cannot store the Arrow type {arrow_type}{at}: Delta has no such type; "
            "cast it first, for example to a string or an integer"
        )
    row, parameters = found
    return PrimitiveType(f"{row.name}({','.join(parameters)})" if parameters else row.name)


def is_list(arrow_type: pa.DataType) -> bool:
    """Return whether an Arrow type is any kind of list: also large lists, fixed sizes and views."""
    return any(test(arrow_type) for test in _IS_LIST)


_IS_LIST: Final[tuple[Callable[[pa.DataType], bool], ...]] = (
    pt.is_list,
    pt.is_large_list,
    pt.is_fixed_size_list,
    pt.is_list_view,
    pt.is_large_list_view,
)


def _encode_metadata(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {key: _encode_entry(key, value) for key, value in metadata.items()}


def _encode_entry(key: str, value: Any) -> str:
    if isinstance(value, str) and _decode_entry(key, value) == value:
        return value
    return dumps(value).decode()


def _decode_metadata(metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
    # Omit keys that Arrow libraries use for their own purposes, because they are no metadata of the
    # Delta column. The prefix of Polars is `_PL_`.
    return {
        (name := key.decode(errors="replace")): _decode_entry(name, value.decode(errors="replace"))
        for key, value in metadata.items()
        if not key.startswith((b"PARQUET:", b"ARROW:", b"_PL_"))
        and not (key == _OF_QUERY and _type_in(value)[0])
    }


def _decode_entry(key: str, text: str) -> Any:
    # Values in Arrow metadata are strings. Parse only entries in which engines store numbers and
    # lists as JSON. Entries of users, such as "comment": "4", remain strings. So do entries that
    # the protocol defines as strings, such as the generation expression `10` or an invariant.
    if key in _TEXTS or not key.startswith(("delta.", "__", "parquet.")):
        return text
    try:
        return loads(text)
    except MalformedLogError:
        return text


def _to_arrow(value: Any, large: bool) -> Any:  # noqa: FBT001  # a private function
    if isinstance(value, StructType):
        return to_arrow_schema(value, as_large_types=large, with_metadata=True)
    if isinstance(value, Field):
        return _to_arrow_field(value, (), _Form(large, with_metadata=True))
    return to_arrow_type(value, as_large_types=large, with_metadata=True)


def _from_arrow(value: Any, kind: type[Any]) -> Any:
    fine = keeps_nanoseconds()
    if not isinstance(value, pa.Schema | pa.Field | pa.DataType):
        if not hasattr(value, "__arrow_c_schema__"):
            advice = ""
            if hasattr(value, "schema"):
                advice = "; pass its schema"
            elif isinstance(value, list | tuple):
                advice = "; pyarrow.schema(fields) makes a schema of a list"
            raise InvalidInputError(
                f"cannot make {with_article(kind.__name__)} of {shortened(value)}, "
                f"{kind_of(value)}: expected a pyarrow Schema, Field or DataType, or an object "
                f"with __arrow_c_schema__{advice}"
            )
        if kind is StructType:
            return from_arrow_schema(pa.schema(value), declared=True, fine=fine)
        value = pa.field(value) if kind is Field else pa.field(value).type
    if isinstance(value, pa.Schema):
        return from_arrow_schema(value, declared=True, fine=fine)
    if isinstance(value, pa.Field):
        return _from_arrow_field(value, (), _Naming(declared=True, fine=fine))
    return from_arrow_type(value, declared=True, fine=fine)


FORMS["arrow"] = Form(_to_arrow, _from_arrow)


def parquet_field_id(field: pa.Field[Any]) -> int | None:
    """Return a column's field id in a file; None if it is absent or not a number."""
    text = (field.metadata or {}).get(_FIELD_ID_KEY, b"")
    return int(text) if text.isdigit() and len(text) <= _MOST_DIGITS else None


def parquet_id_metadata(number: int | None) -> dict[str, str] | None:
    """Return the metadata of an Arrow field with a field id; None without an id."""
    return None if number is None else {PARQUET_FIELD_ID: str(number)}
