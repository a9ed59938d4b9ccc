"""Assignments of updates and merges (`column = value`) as Spark columns.

Owns what may be assigned, and how a value is cast to its column's type. Spark evaluates the values,
so they may use anything that Spark supports.

Protocol: Generated Columns, Identity Columns
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, col, to_sql
from deltalog.features.computed_columns import generation_expressions
from deltalog.names import name_key
from deltalog.rows.assign import canonical_path
from deltalog.schema import PrimitiveType, StructType, find_field
from deltalog.spark.session.settings import is_ansi
from deltalog.spark.session.types import to_spark_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from deltalog.configuration import TableConfiguration
    from deltalog.schema import DataType, Field

Path = tuple[str, ...]


def parse_assignments(
    schema: StructType, values: Mapping[str | Path, Any], alias: str | None
) -> dict[Path, Column]:
    """Return the path of each assigned column, with its value.

    Raises:
        InvalidInputError: a column does not exist, or is assigned twice.
    """
    found: dict[Path, Column] = {}
    for key, value in values.items():
        path = assigned_path(schema, key, alias)
        taken = [other for other in found if other[: len(path)] == path[: len(other)]]
        if taken:
            raise InvalidInputError(
                f"cannot assign {key!r} twice: {'.'.join(taken[0])!r} is assigned already"
            )
        found[path] = as_value(value)
    return found


def assigned_path(schema: StructType, key: str | Path, alias: str | None) -> Path:
    """Resolve the path of an assigned column, in the schema's spelling."""
    names = {name_key(name) for name in schema.names}
    if isinstance(key, tuple):
        parts: Path = key
    elif isinstance(key, str):
        parts = (key,) if name_key(key) in names else tuple(col(key).path)
    else:
        raise InvalidInputError(f"cannot assign {key!r}: expected the name of a column")
    is_alias = alias is not None and name_key(parts[0]) == name_key(alias)
    if is_alias and len(parts) > 1 and name_key(parts[0]) not in names:
        parts = parts[1:]
    return canonical_path(schema, parts)


def as_value(value: Any) -> Column:
    """Return a condition or a value as a Spark column: Spark SQL, a column or an expression."""
    if isinstance(value, Column):
        return value
    if isinstance(value, Expression):
        return F.expr(to_sql(value))
    if isinstance(value, str):
        return F.expr(value)
    raise InvalidInputError(
        f"cannot assign {value!r}: expected Spark SQL or a Spark column, such as lit({value!r})"
    )


def new_struct(
    configuration: TableConfiguration,
    assigned: Mapping[Path, Column],
    old: Mapping[str, Column],
    before: StructType | None = None,
) -> Column:
    """Return the new version of a row without the generated columns that are not assigned.

    Args:
        configuration: of the table, as it will be.
        assigned: values by path.
        old: the columns of the old version.
        before: schema of the old version; None is the table's.
    """
    schema = configuration.schema
    generated: Iterable[str] = (
        generation_expressions(schema) if configuration.supports("generatedColumns") else ()
    )
    given = {path[0] for path in assigned}
    parts = [
        _assigned(one, (one.name,), assigned, old[one.name], _named(before or schema, one.name))
        if one.name in given
        else old[one.name].alias(one.name)
        for one in schema
        if one.name in given or one.name not in generated
    ]
    return F.struct(*parts)


def _assigned(
    field: Field, path: Path, values: Mapping[Path, Column], old: Column, known: Field | None
) -> Column:
    """Return a column with its assignments; a NULL struct becomes a struct."""
    is_touched = any(other[: len(path)] == path for other in values)
    if path in values:
        found = _cast(values[path], field.type)
    elif is_touched and isinstance(field.type, StructType):
        mine = None if known is None else known.type
        found = F.struct(
            *(
                _assigned(one, (*path, one.name), values, old[one.name], _named(mine, one.name))
                for one in field.type
            )
        )
    elif known is None:  # a column that the statement adds
        found = F.lit(None).cast(to_spark_type(field.type))
    else:
        found = old
    return found.alias(field.name)


def keeping(
    new: Column, theirs: StructType, old_row: Column, mine: StructType, path: Path
) -> Column:
    """Return a value of a merge's source in which fields that the source lacks keep their values.

    Args:
        new: the column of the source.
        theirs: schema of the source.
        old_row: the row as it was, a struct.
        mine: schema of that.
        path: of the column.
    """
    (name,) = path
    column, old = _named(theirs, name), _named(mine, name)
    if column is None or old is None:
        return new
    return _keeping(new, column.type, old_row[old.name], old.type)


def _keeping(new: Column, theirs: DataType, old: Column, mine: DataType) -> Column:
    if not isinstance(theirs, StructType) or not isinstance(mine, StructType):
        return new
    if not _lacks(theirs, mine):
        return new
    parts = {}
    for one in theirs:
        known = _named(mine, one.name)
        part = new[one.name]
        parts[one.name] = (
            part if known is None else _keeping(part, one.type, old[known.name], known.type)
        )
    for one in mine:
        if _named(theirs, one.name) is None:
            parts[one.name] = old[one.name]
    return F.when(new.isNotNull(), F.struct(*(part.alias(name) for name, part in parts.items())))


def _lacks(theirs: DataType, mine: DataType) -> bool:
    """Whether a struct has fewer fields than another one, at any depth."""
    if not isinstance(theirs, StructType) or not isinstance(mine, StructType):
        return False
    given = [(one, _named(theirs, one.name)) for one in mine]
    return any(part is None or _lacks(part.type, one.type) for one, part in given)


def _named(struct: DataType | None, name: str) -> Field | None:
    """Return the field of a name, ignoring case; None if there is none."""
    fields = struct if isinstance(struct, StructType) else ()
    return next((one for one in fields if name_key(one.name) == name_key(name)), None)


def checked_values(
    schema: StructType, values: Mapping[Path, Column], spark: SparkSession
) -> dict[Path, Column]:
    """Return the values, with an error for a value that does not fit its column's type.

    As in Delta: also in sessions without ANSI, whose casts would give NULL or wrap around.
    """
    if is_ansi(spark):
        return dict(values)
    return {path: _or_error(schema, path, value) for path, value in values.items()}


def _or_error(schema: StructType, path: Path, value: Column) -> Column:
    kind = find_field(schema, path).type
    if not isinstance(kind, PrimitiveType):
        return value
    fitted = value.try_cast(to_spark_type(kind))
    said = F.lit(f"a value of column {'.'.join(path)!r} does not fit into {kind}: ")
    error = F.raise_error(F.concat(said, value.cast("string")))
    return F.when(value.isNotNull() & fitted.isNull(), error).otherwise(fitted)


def as_type_of(schema: StructType, path: Path, value: Column) -> Column:
    """Cast a value to its column's type; nested values are matched by name when written."""
    return _cast(value, find_field(schema, path).type)


def _cast(value: Column, kind: DataType) -> Column:
    return value.cast(to_spark_type(kind)) if isinstance(kind, PrimitiveType) else value
