"""Which columns a table gains by a merge, and what names in it mean.

Protocol: Schema Serialization Format, Type Widening
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from deltalog.errors import SchemaMismatchError
from deltalog.expressions.nodes import col
from deltalog.rows.merge.names import Names
from deltalog.schema import Field, StructType, find_field, merge_schemas
from deltalog.table_change import changed_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.configuration import TableConfiguration
    from deltalog.rows.request import ChangeRequest, Clause


def configuration_after(
    request: ChangeRequest, configuration: TableConfiguration, source: StructType
) -> TableConfiguration:
    """Return the configuration with the columns that the merge adds from the source.

    Raises:
        SchemaMismatchError: the source has columns that an upsert would lose, or cannot be merged.
    """
    wanted = _wanted(request, configuration.schema, source)
    if not request.merge_schema:
        known = {name.lower() for name in configuration.schema.names}
        extra = [name for name in wanted if name.lower() not in known]
        if extra and request.is_upsert:
            shown = ", ".join(map(repr, extra))
            raise SchemaMismatchError(
                f"cannot upsert: the data has column(s) {shown} that the table lacks; "
                "merge_schema=True adds them, and merge(…) leaves them out"
            )
        return configuration
    widens = configuration.is_active("typeWidening")
    merged = _with_fields(
        configuration.schema, [find_field(source, (name,)) for name in wanted], widens=widens
    )
    for path in _assigned(request, configuration.schema, source):
        field = _along(source, path)
        if field is not None:
            # Where the types differ, the value that is assigned is made of other columns.
            with suppress(SchemaMismatchError):
                merged = _with_fields(merged, [field], widens=False)
    if merged == configuration.schema:
        return configuration
    return changed_table(configuration, schema=merged)


def star_columns(clause: Clause, source: StructType) -> list[str]:
    """Return the source columns that a `*` clause takes.

    Raises:
        InvalidInputError: `except_columns` names a column that the source does not have.
    """
    left_out = {find_field(source, (name.strip("`"),)).name for name in clause.except_columns}
    return [name for name in source.names if name not in left_out]


def names_of(request: ChangeRequest, target: StructType, source: StructType) -> Names:
    """Return what the names in a merge mean: columns of the table, or of the source."""
    return Names(
        target,
        source,
        target_alias=request.target_alias,
        source_alias=request.source_alias,
        parameters=request.named_parameters,
    )


def _with_fields(schema: StructType, fields: Sequence[Field], *, widens: bool) -> StructType:
    return merge_schemas(
        schema,
        StructType(fields),
        allow_widening=widens,
        casts=True,  # each new value is, to the type of its column
    )


def _assigned(
    request: ChangeRequest, target: StructType, source: StructType
) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the table's own columns that clauses name, and give values of their own.

    They gain the fields that the source's column of the same path has, as in Delta Spark: whatever
    the value, and whether or not a row is changed.
    """
    known = {name.lower() for name in target.names}
    names = names_of(request, target, source)
    for clause in request.clauses:
        for key in () if clause.is_star else clause.values or ():
            path = key if isinstance(key, tuple) else names.target_path(key, col(key).path)
            if path[0].lower() in known:
                yield path


def _along(source: StructType, path: tuple[str, ...]) -> Field | None:
    """Return the source's column with nothing but the field at a path; None if it has none."""
    found = source.fields_named(path[0])
    if len(found) != 1 or len(path) == 1:
        return found[0] if len(found) == 1 else None
    if not isinstance(found[0].type, StructType):
        return None
    inner = _along(found[0].type, path[1:])
    return None if inner is None else replace(found[0], type=StructType([inner]))


def _wanted(request: ChangeRequest, target: StructType, source: StructType) -> list[str]:
    """Return the source columns that the table has or gains, where its schema may evolve."""
    found: dict[str, None] = {}
    known = {name.lower() for name in target.names}
    theirs = {name.lower(): name for name in source.names}
    names = names_of(request, target, source)
    for clause in request.clauses:
        if clause.is_star:
            found.update(dict.fromkeys(star_columns(clause, source)))
            continue
        for key in clause.values or {}:
            path = key if isinstance(key, tuple) else names.target_path(key, col(key).path)
            if path[0].lower() not in known and path[0].lower() in theirs:
                found[theirs[path[0].lower()]] = None
    return list(found)
