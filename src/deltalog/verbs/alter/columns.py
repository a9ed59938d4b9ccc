"""Columns added, renamed, moved, dropped and changed.

Everything here changes metadata only; no file is written.

Protocol: Change Metadata, Column Mapping, Type Widening
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from deltalog.column_mapping import Mode, physical_path
from deltalog.errors import InvalidInputError
from deltalog.expressions.nodes import And, Column, IsNull, Not
from deltalog.features.clustering import clustering_columns
from deltalog.schema import StructType, alter, as_type, canonical_path_of, find_field
from deltalog.schema.types import CURRENT_DEFAULT_KEY, GENERATION_EXPRESSION_KEY, IDENTITY_STEP_KEY
from deltalog.table_change import changed_table
from deltalog.verbs.alter.existing_rows import check_existing_rows
from deltalog.verbs.alter.staging import change_schema, described, record
from deltalog.verbs.alter.stats_columns import with_renamed_column, without_column

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.schema import DataType, Field
    from deltalog.schema.alter import Where
    from deltalog.schema.columns import Path
    from deltalog.transaction import PendingTransaction

_DECLARATIONS: Final = {
    CURRENT_DEFAULT_KEY: "a default: add it, then set the default for rows to come",
    GENERATION_EXPRESSION_KEY: "a generation expression: rows that are there have no value for it",
    IDENTITY_STEP_KEY: "an identity: rows that are there have no number",
}
_OWN_METADATA: Final = ("delta.", "__", CURRENT_DEFAULT_KEY)


def add_columns(
    pending: PendingTransaction,
    fields: Sequence[Field],
    *,
    parent: str | Path = (),
    where: Where = "last",
) -> None:
    """Add columns, or fields of the struct at `parent`; rows that are there have NULL in them.

    Args:
        pending: the transaction.
        fields: one after the other, from `where` on.
        parent: path of a struct; empty is the table itself.
        where: `first`, `last` or `("after", name)`.

    Raises:
        InvalidInputError: a name is taken, or a column is NOT NULL or has a value of its own.
    """
    if not fields:
        raise InvalidInputError("there are no columns to add")
    schema = pending.configuration.schema
    columns: list[dict[str, Any]] = []
    for field in fields:
        _check_addable(field)
        schema = alter.add_column(schema, field, parent=parent, where=where)
        path = (*(canonical_path_of(schema, parent) if parent else ()), field.name)
        entry: dict[str, Any] = {"column": described(find_field(schema, path), ".".join(path))}
        if where != "last":
            entry["position"] = _position(where)
            where = ("after", field.name)
        columns.append(entry)
    change_schema(pending, schema)
    record(pending, "ADD COLUMNS", columns=columns)


def rename_column(pending: PendingTransaction, path: str | Path, new_name: str) -> None:
    """Show a column or nested field by another name; files keep theirs.

    Raises:
        InvalidInputError: the table has no column mapping, the name is taken, or a rule of the
            table names the column.
    """
    _check_mapped(pending, "rename")
    before = pending.configuration
    old = canonical_path_of(before.schema, path)
    new = (*old[:-1], new_name)
    schema = alter.rename_column(before.schema, old, new_name)
    properties = with_renamed_column(before.metadata.configuration, old, new)
    pending.set_configuration(changed_table(before, schema=schema, configuration=properties))
    record(pending, "RENAME COLUMN", oldColumnPath=".".join(old), newColumnPath=".".join(new))


def drop_columns(pending: PendingTransaction, paths: Sequence[str | Path]) -> None:
    """Leave columns or nested fields out from now on; their values stay in old files, unseen.

    Raises:
        InvalidInputError: the table has no column mapping, or partitions, clusters or rules
            depend on a column.
    """
    if not paths:
        raise InvalidInputError("there are no columns to drop")
    _check_mapped(pending, "drop")
    before = pending.configuration
    schema, properties = before.schema, dict(before.metadata.configuration)
    names: list[str] = []
    for path in paths:
        canonical = canonical_path_of(schema, path)
        _check_not_clustered(pending, canonical)
        schema = alter.drop_column(schema, canonical)
        properties = without_column(properties, canonical)
        names.append(".".join(canonical))
    pending.set_configuration(changed_table(before, schema=schema, configuration=properties))
    record(pending, "DROP COLUMNS", columns=names)


def move_column(pending: PendingTransaction, path: str | Path, where: Where) -> None:
    """Show a column or nested field at another place in its struct.

    Raises:
        InvalidInputError: one of the columns does not exist.
    """
    schema = alter.move_column(pending.configuration.schema, path, where)
    change_schema(pending, schema)
    _record_change(pending, path, position=_position(where))


def set_column_type(pending: PendingTransaction, path: str | Path, to_type: DataType | str) -> None:
    """Give a column, a nested field or a part of a list or map a wider type.

    Raises:
        InvalidInputError: the type is no wider, the table does not allow it
            (`delta.enableTypeWidening`), or a rule of the table names the column.

    Protocol: Type Widening
    """
    schema = alter.change_type(pending.configuration.schema, path, as_type(to_type))
    change_schema(pending, schema)
    _record_change(pending, path)


def set_column_comment(pending: PendingTransaction, path: str | Path, comment: str | None) -> None:
    """Describe a column or nested field; None takes the description away."""
    _change_metadata(pending, path, {"comment": comment})


def set_column_metadata(
    pending: PendingTransaction, path: str | Path, metadata: Mapping[str, Any]
) -> None:
    """Add entries to the metadata of a column; those that features own have verbs of their own.

    Raises:
        InvalidInputError: an entry belongs to a table feature.
    """
    own = sorted(key for key in metadata if key.startswith(_OWN_METADATA))
    if own:
        raise InvalidInputError(
            f"cannot set {', '.join(own)} as column metadata: table features keep it; use the "
            "method for what you want to change"
        )
    _change_metadata(pending, path, metadata)


def set_column_default(pending: PendingTransaction, path: str | Path, sql: str | None) -> None:
    """Give rows to come a value where they bring none; None takes the default away.

    Raises:
        InvalidInputError: the text is no constant of the column's type.

    Protocol: Default Columns
    """
    _change_metadata(pending, path, {CURRENT_DEFAULT_KEY: sql})


def set_column_not_null(pending: PendingTransaction, path: str | Path) -> None:
    """Forbid NULL in a column or nested field from now on.

    Raises:
        ConstraintViolationError: rows of the table have NULL there.
        InvalidInputError: the path leads into a list or map.

    Cost: reads the column, where statistics do not show that it has no NULL.
    """
    canonical = canonical_path_of(pending.configuration.schema, path)
    if find_field(pending.configuration.schema, canonical).nullable:
        what = f"NOT NULL for column {'.'.join(canonical)!r}"
        if _is_inside_container(pending.configuration.schema, canonical):
            raise InvalidInputError(
                f"cannot set {what}: rows that are there cannot be checked inside lists and maps"
            )
        check_existing_rows(
            pending, what, _is_missing(canonical), constraint=f"{'.'.join(canonical)} IS NOT NULL"
        )
    _change(pending, canonical, lambda field: replace(field, nullable=False))


def drop_column_not_null(pending: PendingTransaction, path: str | Path) -> None:
    """Allow NULL in a column or nested field."""
    _change(pending, path, lambda field: replace(field, nullable=True))


def _check_addable(field: Field) -> None:
    if not field.nullable:
        raise InvalidInputError(
            f"cannot add the column {field.name!r} as NOT NULL: rows that are there have no value "
            "for it; add it, fill it, then set NOT NULL"
        )
    for key, why in _DECLARATIONS.items():
        if key in field.metadata:
            raise InvalidInputError(f"cannot add the column {field.name!r} with {why}")


def _check_mapped(pending: PendingTransaction, verb: str) -> None:
    if pending.configuration.column_mapping_mode is Mode.NONE:
        raise InvalidInputError(
            f"cannot {verb} a column of {pending.store.root}: files have it by its name; set "
            "delta.columnMapping.mode = name first"
        )


def _check_not_clustered(pending: PendingTransaction, path: Path) -> None:
    known = {} if pending.snapshot is None else dict(pending.snapshot.domain_metadata)
    clustered = clustering_columns({**known, **pending.domains}) or ()
    configuration = pending.configuration
    physical = physical_path(configuration.schema, path, configuration.column_mapping_mode)
    if any(column[: len(physical)] == physical for column in clustered):
        raise InvalidInputError(
            f"cannot drop {'.'.join(path)!r}: the table is clustered by it; cluster by other "
            "columns first"
        )


def _is_inside_container(schema: StructType, path: Path) -> bool:
    parents = [find_field(schema, path[:depth]).type for depth in range(1, len(path))]
    return not all(isinstance(parent, StructType) for parent in parents)


def _is_missing(path: Path) -> Expression:
    """NULL in a field whose struct is there: a struct that is NULL misses nothing."""
    missing: Expression = IsNull(Column(path))
    if len(path) == 1:
        return missing
    return And((Not(IsNull(Column(path[:-1]))), missing))


def _change_metadata(
    pending: PendingTransaction, path: str | Path, entries: Mapping[str, Any]
) -> None:
    def change(field: Field) -> Field:
        merged = {**field.metadata, **entries}
        kept = {key: value for key, value in merged.items() if value is not None}
        return replace(field, metadata=kept)

    _change(pending, path, change)


def _change(
    pending: PendingTransaction, path: str | Path, change: Callable[[Field], Field]
) -> None:
    change_schema(pending, alter.change_field(pending.configuration.schema, path, change))
    _record_change(pending, path)


def _record_change(pending: PendingTransaction, path: str | Path, **parameters: Any) -> None:
    schema = pending.configuration.schema
    canonical = canonical_path_of(schema, path)
    column = described(find_field(schema, canonical), ".".join(canonical))
    record(pending, "CHANGE COLUMN", column=column, **parameters)


def _position(where: Where) -> str:
    if isinstance(where, str):
        return where.upper()
    return f"AFTER {where[1]}"
