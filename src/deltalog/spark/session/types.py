"""Convert schemas and types to Spark's, and batches to the Arrow types that Spark accepts.

Protocol: Schema Serialization Format (also Spark's JSON format of schemas)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import types as spark_types

from deltalog._util.escaping import name_key
from deltalog._util.json import loads
from deltalog._util.kernels import arrow
from deltalog.data.scan.transform import with_children
from deltalog.errors import InvalidInputError, UnsupportedTypeError
from deltalog.protocol.column_mapping import Mode, physical_name
from deltalog.protocol.features.char_varchar import CHAR_VARCHAR_KEY
from deltalog.schema import (
    Field,
    PrimitiveType,
    StructType,
    UnknownType,
    VariantExtensionType,
    encode_schema,
    parse_schema,
    to_arrow_schema,
)
from deltalog.schema.columns import loosened, walk_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deltalog.schema import DataType


def to_spark_schema(schema: StructType) -> spark_types.StructType:
    """Return Spark's schema with the table's column comments. All columns are nullable.

    Reads do not check files for NULL, so Spark must not rely on NOT NULL.
    """
    return _from_log(loosened(schema, _with_comment, _in_spark))


def stored_spark_schema(schema: StructType, mode: Mode) -> spark_types.StructType:
    """Return the schema with the column names of data files."""

    def bare(field: Field) -> Field:
        return Field(physical_name(field, mode), field.type)

    return _from_log(loosened(schema, bare, _in_spark))


def as_nullable(schema: StructType) -> StructType:
    """Return the schema with nullable columns at every depth, and without metadata but comments."""
    return loosened(schema, _with_comment)


def _from_log(schema: StructType) -> spark_types.StructType:
    return spark_types.StructType.fromJson(loads(encode_schema(schema).encode()))


def schema_of(columns: spark_types.StructType) -> StructType:
    """Return the schema of a dataframe; all columns are nullable, as in Delta's writes.

    Raises:
        UnsupportedTypeError: Delta has no such type.
        InvalidInputError: the names of two columns differ only in case.
    """
    seen: dict[str, str] = {}
    for name in columns.names:
        other = seen.setdefault(name_key(name), name)
        if other is not name:
            raise InvalidInputError(
                f"cannot write columns {other!r} and {name!r}: a table's columns must differ in "
                "more than case; rename one of them"
            )
    return loosened(parse_schema(columns.json()), _with_comment, _checked)


def defined_schema(columns: spark_types.StructType) -> StructType:
    """Return the schema of a table definition; CHAR and VARCHAR become STRING.

    As in Spark, a column's metadata contains the full type, such as `array<varchar(3)>`.

    Raises:
        UnsupportedTypeError: Delta has no such type.
    """
    return parse_schema(spark_types.StructType([_limited(field) for field in columns]).json())


def _limited(field: spark_types.StructField) -> spark_types.StructField:
    plain = _unlimited(field.dataType)
    if plain == field.dataType:
        return field
    metadata = {**(field.metadata or {}), CHAR_VARCHAR_KEY: field.dataType.simpleString()}
    return spark_types.StructField(field.name, plain, field.nullable, metadata)


def _unlimited(kind: spark_types.DataType) -> spark_types.DataType:
    match kind:
        case spark_types.CharType() | spark_types.VarcharType():
            return spark_types.StringType()
        case spark_types.ArrayType():
            return spark_types.ArrayType(_unlimited(kind.elementType), kind.containsNull)
        case spark_types.MapType():
            key, value = _unlimited(kind.keyType), _unlimited(kind.valueType)
            return spark_types.MapType(key, value, kind.valueContainsNull)
        case spark_types.StructType():
            return spark_types.StructType(
                [
                    spark_types.StructField(
                        one.name, _unlimited(one.dataType), one.nullable, one.metadata
                    )
                    for one in kind
                ]
            )
        case _:
            return kind


def _with_comment(field: Field) -> Field:
    kept = {key: text for key, text in field.metadata.items() if key == "comment"}
    return Field(field.name, field.type, metadata=kept)


def _checked(kind: DataType) -> DataType:
    if isinstance(kind, PrimitiveType) and not kind.primitive.in_spark:
        raise UnsupportedTypeError(
            f"cannot exchange values of type {kind} with Spark: deltalog does not support it; cast "
            "new values first, as with cast('string'), or use deltalog without Spark for a table "
            "with such a column"
        )
    return kind


def _in_spark(kind: DataType) -> DataType:
    _checked(kind)
    if not isinstance(kind, PrimitiveType) or kind.primitive.spark_name == kind.primitive.name:
        return kind
    row = kind.primitive
    return UnknownType(kind.type.replace(row.name, row.spark_name, 1))


def to_spark_arrow(schema: StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark accepts the rows of `to_spark_schema(schema)`."""
    arrow = to_arrow_schema(as_nullable(schema))
    return pa.schema([pa.field(field.name, _without_extension(field.type)) for field in arrow])


def _without_extension(kind: Any) -> Any:
    """Return the type in which each variant is Spark's struct, whose first field is `value`."""
    if isinstance(kind, VariantExtensionType):
        return pa.struct(
            [
                pa.field("value", pa.binary(), nullable=False),
                pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
            ]
        )
    if pt.is_struct(kind):
        return pa.struct([child.with_type(_without_extension(child.type)) for child in kind])
    if pt.is_list(kind):
        item = kind.value_field
        return pa.list_(item.with_type(_without_extension(item.type)))
    if pt.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return arrow.map_(
            key.with_type(_without_extension(key.type)),
            item.with_type(_without_extension(item.type)),
        )
    return kind


def as_spark_batches(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Convert batches of a scan to the types that Spark accepts.

    Args:
        batches: the batches, which contain the columns of `schema` in any order.
        schema: the result of `to_spark_arrow`.
    """
    for batch in batches:
        arrays = [_recast(batch.column(field.name), field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _recast(array: Any, wanted: Any) -> pa.Array[Any]:
    """Cast values to a type that differs only in nullability or in the form of variants."""
    if array.type == wanted:
        return array  # type: ignore[no-any-return]  # the value is a `pa.Array`
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pt.is_struct(wanted):
        children = [_recast(array.field(child.name), child.type) for child in wanted]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
    if pt.is_list(wanted):
        return with_children(array, wanted, _recast(array.values, wanted.value_type))
    if pt.is_map(wanted):
        fields = [wanted.key_field, wanted.item_field]
        parts = [_recast(array.keys, fields[0].type), _recast(array.items, fields[1].type)]
        return with_children(array, wanted, pa.StructArray.from_arrays(parts, fields=fields))
    return array.cast(wanted)  # type: ignore[no-any-return]  # the value is a `pa.Array`


def to_spark_type(kind: DataType) -> spark_types.DataType:
    """Return Spark's type, with NULLs allowed at every depth."""
    return to_spark_schema(StructType([Field("_", kind)])).fields[0].dataType


def has_structs(kind: DataType) -> bool:
    """Return whether the type contains a struct, at any depth."""
    return any(isinstance(found, StructType) for _, found in walk_types(kind))


def quoted(name: str) -> str:
    """Return a column's name in backticks, as Spark's functions expect."""
    return "`" + name.replace("`", "``") + "`"
