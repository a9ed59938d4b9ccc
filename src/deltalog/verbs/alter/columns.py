"""Verbs that add, rename, move, drop and change columns.

All of them change metadata only; no data file is written.

Protocol: Change Metadata, Column Mapping, Type Widening
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from deltalog.column_mapping import Mode, physical_path
from deltalog.errors import InvalidInputError
from deltalog.expressions.nodes import And, Column, IsNull, Not
from deltalog.features.clustering import clustering_columns
from deltalog.schema import StructType, alter, as_type, canonical_path_of, find_field
from deltalog.schema.collations import with_collations
from deltalog.schema.types import CURRENT_DEFAULT_KEY, GENERATION_EXPRESSION_KEY, IDENTITY_STEP_KEY
from deltalog.table_change import changed_table
from deltalog.verbs.alter.existing_rows import check_existing_rows
from deltalog.verbs.alter.staging import Alteration, change_schema, described
from deltalog.verbs.alter.stats_columns import with_renamed_column, without_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


@dataclass(frozen=True, slots=True)
class AddColumns(Alteration):
    """Add columns, or fields of the struct at `parent`; existing rows have NULL in them.

    Args:
        fields: in order; the first is placed at `where`, the others follow it.
        parent: path of a struct; empty is the table itself.
        where: `first`, `last` or `("after", name)`.
        extends_structs: whether a struct that is there gets the fields that only the given one has.
    """

    fields: Sequence[Field]
    parent: str | Path = ()
    where: Where = "last"
    extends_structs: bool = False
    name: ClassVar[str] = "ADD COLUMNS"

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the schema.

        Raises:
            InvalidInputError: a name is taken, or a column is NOT NULL, generated, an identity
                column, or has a default.
        """
        if not self.fields:
            raise InvalidInputError("there are no columns to add")
        schema, where = transaction.configuration.schema, self.where
        columns: list[dict[str, Any]] = []
        parent = canonical_path_of(schema, self.parent) if self.parent else ()
        for field in self.fields:
            _check_addable(field)
            inner = self._new_fields(schema, (*parent, field.name), field)
            for path, new in inner:
                _check_addable(new)
                schema = alter.add_column(schema, new, parent=path)
                columns.append({"column": _described(schema, (*path, new.name))})
            if inner:
                continue
            schema = alter.add_column(schema, field, parent=parent, where=where)
            entry: dict[str, Any] = {"column": _described(schema, (*parent, field.name))}
            if where != "last":
                entry["position"] = _position(where)
                where = ("after", field.name)
            columns.append(entry)
        change_schema(transaction, schema)
        return {"columns": columns}

    def _new_fields(self, schema: StructType, path: Path, given: Field) -> list[tuple[Path, Field]]:
        """Return the fields that a struct of the table lacks, with the path of their struct.

        Nothing means that the column itself is to be added, or is there already.
        """
        if not self.extends_structs or not isinstance(given.type, StructType):
            return []
        *parent, name = path
        inside = find_field(schema, tuple(parent)).type if parent else schema
        known = inside.fields_named(name) if isinstance(inside, StructType) else ()
        if len(known) != 1 or not isinstance(known[0].type, StructType):
            return []
        own, at = known[0].type, (*parent, known[0].name)
        found: list[tuple[Path, Field]] = []
        for part in given.type:
            if not own.fields_named(part.name):
                found.append((at, part))
            elif isinstance(part.type, StructType):
                found += self._new_fields(schema, (*at, part.name), part)
        return found


@dataclass(frozen=True, slots=True)
class RenameColumn(Alteration):
    """Rename a column or nested field; its physical name in files stays."""

    column: str | Path
    new_name: str
    name: ClassVar[str] = "RENAME COLUMN"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Change the schema, and the properties that name the column.

        Raises:
            InvalidInputError: the table has no column mapping, the name is taken, or a constraint
                or generated column uses the column.
        """
        _check_mapped(transaction, "rename")
        before = transaction.configuration
        old = canonical_path_of(before.schema, self.column)
        new = (*old[:-1], self.new_name)
        schema = alter.rename_column(before.schema, old, self.new_name)
        properties = with_renamed_column(before.metadata.configuration, old, new)
        changed = changed_table(before, schema=schema, configuration=properties)
        transaction.set_configuration(changed)
        return {"oldColumnPath": ".".join(old), "newColumnPath": ".".join(new)}


@dataclass(frozen=True, slots=True)
class DropColumns(Alteration):
    """Drop columns or nested fields from the schema; existing files keep the values."""

    columns: Sequence[str | Path]
    name: ClassVar[str] = "DROP COLUMNS"

    def change(self, transaction: PendingTransaction) -> dict[str, list[str]]:
        """Change the schema, and the properties that name the columns.

        Raises:
            InvalidInputError: the table has no column mapping, or partitioning, clustering, a
                constraint or a generated column uses a column.
        """
        if not self.columns:
            raise InvalidInputError("there are no columns to drop")
        _check_mapped(transaction, "drop")
        before = transaction.configuration
        schema, properties = before.schema, dict(before.metadata.configuration)
        names: list[str] = []
        for column in self.columns:
            path = canonical_path_of(schema, column)
            _check_not_clustered(transaction, path)
            schema = alter.drop_column(schema, path)
            properties = without_column(properties, path)
            names.append(".".join(path))
        changed = changed_table(before, schema=schema, configuration=properties)
        transaction.set_configuration(changed)
        return {"columns": names}


@dataclass(frozen=True, slots=True)
class _ColumnChange(Alteration):
    """Change one column or nested field, named by its path."""

    column: str | Path
    name: ClassVar[str] = "CHANGE COLUMN"

    @abstractmethod
    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema with the change."""

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the schema."""
        change_schema(transaction, self.changed(transaction))
        return {"column": _described(transaction.configuration.schema, self.column)}


@dataclass(frozen=True, slots=True)
class MoveColumn(_ColumnChange):
    """Move a column or nested field within its struct."""

    where: Where

    def logged_parameters(self) -> dict[str, str]:
        """Return the position in SQL's words."""
        return {"position": _position(self.where)}

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema in the new order."""
        return alter.move_column(transaction.configuration.schema, self.column, self.where)


@dataclass(frozen=True, slots=True)
class SetColumnType(_ColumnChange):
    """Widen the type of a column, a nested field, or the elements of a list or map.

    Protocol: Type Widening
    """

    to_type: DataType | str

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema with the type.

        Raises:
            InvalidInputError: the change is no widening, `delta.enableTypeWidening` is not set, or
                a constraint or generated column uses the column.
        """
        wider = as_type(self.to_type)
        return alter.change_type(transaction.configuration.schema, self.column, wider)


@dataclass(frozen=True, slots=True)
class SetColumnCollations(_ColumnChange):
    """Set by which collations the texts of a column, or of a nested field, are compared.

    Args:
        collations: from paths inside the column to names in SQL; the empty path is the column.
        to_type: that the column gets too, if it has another one; None is the one it has.

    Protocol: Writer Requirements for Collations
    """

    collations: Mapping[Path, str]
    to_type: DataType | None = None

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema with the collations.

        Raises:
            InvalidInputError: there is no such collation, the column has no such texts, or the
                table is clustered by it; or as of `SetColumnType`.
        """
        schema = transaction.configuration.schema
        path = canonical_path_of(schema, self.column)
        _check_not_clustered(transaction, path, "change the collation of")
        if self.to_type is not None:
            schema = alter.change_type(schema, path, self.to_type)
        replaces = self.to_type is not None  # a type that is said again says all of them

        def collated(field: Field) -> Field:
            found = with_collations(field, {}) if replaces else field
            for inner, name in self.collations.items():
                found = found.collate(name, at=".".join(inner))
            return found

        return alter.change_field(schema, path, collated)


@dataclass(frozen=True, slots=True)
class SetColumnComment(_ColumnChange):
    """Set the comment of a column or nested field; None removes it."""

    comment: str | None

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema with the comment."""
        return _with_entries(transaction, self.column, {"comment": self.comment})


@dataclass(frozen=True, slots=True)
class SetColumnMetadata(_ColumnChange):
    """Add entries to a column's metadata; entries of table features are set by other verbs."""

    metadata: Mapping[str, Any]

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema with the entries.

        Raises:
            InvalidInputError: an entry belongs to a table feature.
        """
        own = sorted(key for key in self.metadata if key.startswith(_OWN_METADATA))
        if own:
            raise InvalidInputError(
                f"cannot set {', '.join(own)} as column metadata: table features keep it; use the "
                "method for what you want to change"
            )
        return _with_entries(transaction, self.column, self.metadata)


@dataclass(frozen=True, slots=True)
class SetColumnDefault(_ColumnChange):
    """Set the default of a column, for new rows without a value; None removes it.

    Protocol: Default Columns
    """

    default: str | None

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema with the default.

        Raises:
            InvalidInputError: the text is not a constant of the column's type.
        """
        return _with_entries(transaction, self.column, {CURRENT_DEFAULT_KEY: self.default})


@dataclass(frozen=True, slots=True)
class SetColumnNotNull(_ColumnChange):
    """Set NOT NULL on a column or nested field."""

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Check the existing rows, and return the schema with the field NOT NULL.

        Raises:
            ConstraintViolationError: existing rows have NULL in the column.
            InvalidInputError: the path leads into a list or map.

        Cost: reads the column of files whose statistics do not show that it has no NULL.
        """
        schema = transaction.configuration.schema
        path = canonical_path_of(schema, self.column)
        if find_field(schema, path).nullable:
            column = ".".join(path)
            what = f"NOT NULL for column {column!r}"
            if _is_inside_container(schema, path):
                raise InvalidInputError(
                    f"cannot set {what}: rows that are there cannot be checked inside lists and "
                    "maps"
                )
            violation = _is_missing(path)
            check_existing_rows(transaction, what, violation, constraint=f"{column} IS NOT NULL")
        return alter.change_field(schema, path, lambda field: replace(field, nullable=False))


@dataclass(frozen=True, slots=True)
class DropColumnNotNull(_ColumnChange):
    """Drop NOT NULL from a column or nested field."""

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema with the field nullable."""
        schema = transaction.configuration.schema
        return alter.change_field(schema, self.column, lambda field: replace(field, nullable=True))


def _check_addable(field: Field) -> None:
    if not field.nullable:
        raise InvalidInputError(
            f"cannot add the column {field.name!r} as NOT NULL: rows that are there have no value "
            "for it; add it, fill it, then set NOT NULL"
        )
    for key, why in _DECLARATIONS.items():
        if key in field.metadata:
            raise InvalidInputError(f"cannot add the column {field.name!r} with {why}")


def _check_mapped(transaction: PendingTransaction, verb: str) -> None:
    if transaction.configuration.column_mapping_mode is Mode.NONE:
        raise InvalidInputError(
            f"cannot {verb} a column of {transaction.store.root}: files have it by its name; set "
            "delta.columnMapping.mode = name first"
        )


def _check_not_clustered(transaction: PendingTransaction, path: Path, doing: str = "drop") -> None:
    known = {} if transaction.snapshot is None else dict(transaction.snapshot.domain_metadata)
    clustered = clustering_columns({**known, **transaction.domains}) or ()
    configuration = transaction.configuration
    physical = physical_path(configuration.schema, path, configuration.column_mapping_mode)
    if any(column[: len(physical)] == physical for column in clustered):
        raise InvalidInputError(
            f"cannot {doing} {'.'.join(path)!r}: the table is clustered by it; cluster by other "
            "columns first"
        )


def _is_inside_container(schema: StructType, path: Path) -> bool:
    parents = [find_field(schema, path[:depth]).type for depth in range(1, len(path))]
    return not all(isinstance(parent, StructType) for parent in parents)


def _is_missing(path: Path) -> Expression:
    """The condition for a violation of NOT NULL: the field is NULL, but its struct is not."""
    missing: Expression = IsNull(Column(path))
    if len(path) == 1:
        return missing
    return And((Not(IsNull(Column(path[:-1]))), missing))


def _with_entries(
    transaction: PendingTransaction, column: str | Path, entries: Mapping[str, Any]
) -> StructType:
    """Return the schema with entries in a column's metadata; a value of None removes the key."""

    def change(field: Field) -> Field:
        merged = {**field.metadata, **entries}
        kept = {key: value for key, value in merged.items() if value is not None}
        return replace(field, metadata=kept)

    return alter.change_field(transaction.configuration.schema, column, change)


def _described(schema: StructType, column: str | Path) -> dict[str, Any]:
    path = canonical_path_of(schema, column)
    return described(find_field(schema, path), ".".join(path))


def _position(where: Where) -> str:
    return where.upper() if isinstance(where, str) else f"AFTER {where[1]}"
