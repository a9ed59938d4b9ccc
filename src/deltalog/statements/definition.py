"""The statement that makes an empty table like one that is there: what `SHOW CREATE TABLE` answers.

Protocol: none; Spark's and Delta Lake's SQL references
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.expressions.render import quote_name, quote_text, type_name
from deltalog.features.computed_columns import default_expressions, generation_expressions
from deltalog.features.schema_traits import CHAR_VARCHAR_KEY
from deltalog.schema import ArrayType, MapType, StructType
from deltalog.schema.collation_names import name_in_sql
from deltalog.schema.collations import inner_collations
from deltalog.schema.types import (
    IDENTITY_ALLOW_EXPLICIT_INSERT_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
)
from deltalog.statements.statement import clusters_of
from deltalog.table_change import is_set_by_writers

if TYPE_CHECKING:
    from deltalog.query.names import QualifiedName
    from deltalog.schema import DataType, Field
    from deltalog.table import DeltaTable


def create_statement(name: QualifiedName, table: DeltaTable, *, is_managed: bool = False) -> str:
    """Return the statement that makes an empty table like this one.

    Args:
        name: of the table.
        table: that it is like.
        is_managed: whether a catalog chose its location, as it will for the new one.
    """
    schema, metadata = table.snapshot.configuration.schema, table.metadata()
    columns = ",\n".join(f"  {_defined(field, schema)}" for field in schema)
    lines = [f"CREATE TABLE {name} (\n{columns})", "USING delta"]
    if metadata.partition_columns:
        lines.append(f"PARTITIONED BY ({', '.join(map(quote_name, metadata.partition_columns))})")
    clusters = clusters_of(table)
    if clusters:
        shown = (".".join(map(quote_name, path)) for path in clusters)
        lines.append(f"CLUSTER BY ({', '.join(shown)})")
    if name.location is None and not is_managed:
        lines.append(f"LOCATION {quote_text(table.table_uri)}")
    if metadata.description:
        lines.append(f"COMMENT {quote_text(metadata.description)}")
    properties = {
        key: text for key, text in metadata.configuration.items() if not is_set_by_writers(key)
    }
    if properties:
        pairs = sorted(properties.items())
        shown = (f"  {quote_text(key)} = {quote_text(value)}" for key, value in pairs)
        lines.append("TBLPROPERTIES (\n" + ",\n".join(shown) + ")")
    return "\n".join(lines) + "\n"


def _defined(field: Field, schema: Any) -> str:
    parts = [
        quote_name(field.name),
        str(field.metadata.get(CHAR_VARCHAR_KEY) or _defined_type(field)),
    ]
    if not field.nullable:
        parts.append("NOT NULL")
    metadata = field.metadata
    if IDENTITY_START_KEY in metadata:
        way = "BY DEFAULT" if metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT_KEY) else "ALWAYS"
        numbers = (
            f"START WITH {metadata[IDENTITY_START_KEY]} "
            f"INCREMENT BY {metadata.get(IDENTITY_STEP_KEY, 1)}"
        )
        parts.append(f"GENERATED {way} AS IDENTITY ({numbers})")
    generated = generation_expressions(schema).get(field.name)
    if generated is not None:
        parts.append(f"GENERATED ALWAYS AS ({generated})")
    default = default_expressions(schema).get((field.name,))
    if default is not None:
        parts.append(f"DEFAULT {default}")
    if metadata.get("comment"):
        parts.append(f"COMMENT {quote_text(str(metadata['comment']))}")
    return " ".join(parts)


def _defined_type(field: Field) -> str:
    """Return the type of a field with what its parts have besides their types."""

    def defined(data_type: DataType, path: tuple[str, ...]) -> str:
        match data_type:
            case ArrayType():
                return f"ARRAY<{defined(data_type.element_type, (*path, 'element'))}>"
            case MapType():
                key = defined(data_type.key_type, (*path, "key"))
                return f"MAP<{key}, {defined(data_type.value_type, (*path, 'value'))}>"
            case StructType():
                return f"STRUCT<{', '.join(map(_defined_field, data_type))}>"
            case _:
                collation = collations.get(path)
                behind = "" if collation is None else f" COLLATE {name_in_sql(collation)}"
                return type_name(data_type) + behind

    collations = inner_collations(field)
    return defined(field.type, ())


def _defined_field(field: Field) -> str:
    required = "" if field.nullable else " NOT NULL"
    comment = field.metadata.get("comment")
    said = "" if comment is None else f" COMMENT {quote_text(str(comment))}"
    return f"{quote_name(field.name)}: {_defined_type(field)}{required}{said}"
