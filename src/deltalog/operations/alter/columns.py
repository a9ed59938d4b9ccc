"""Operations that add, rename, move, drop and change columns.

All of them change metadata only; no data file is written.

Protocol: Change Metadata, Column Mapping, Type Widening
"""

from __future__ import annotations

import logging
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from deltalog._util.escaping import name_key, path_key
from deltalog._util.kernels import pc
from deltalog.data.scan import plan_scan
from deltalog.data.write.fit import distinct
from deltalog.errors import ConstraintViolationError, InvalidInputError
from deltalog.expressions import columns as columns_of
from deltalog.expressions.nodes import And, Column, IsNull, Not
from deltalog.operations.operation import Nothing, Operation
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.column_mapping import Mode, physical_path
from deltalog.protocol.features.clustering import clustering_columns
from deltalog.protocol.features.identity_columns import (
    MAX_VALUE,
    MIN_VALUE,
    identity_columns,
    with_high_water_marks,
)
from deltalog.protocol.features.support import (
    asked_features,
    engine_answers,
    engines_misled,
    shown_engines,
)
from deltalog.protocol.table_change.change import changed_table
from deltalog.protocol.table_change.checks import engines_losing_access
from deltalog.schema import StructType, as_type, canonical_path_of, evolve, find_field
from deltalog.schema.check import readable_rows, shown_values
from deltalog.schema.collations import with_collations
from deltalog.schema.new_metadata import check_keys
from deltalog.schema.types import CURRENT_DEFAULT_KEY, GENERATION_EXPRESSION_KEY, IDENTITY_STEP_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.expressions import Expression
    from deltalog.operations.engine import Engine
    from deltalog.protocol.actions import Protocol
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.protocol.features.identity_columns import IdentityColumn
    from deltalog.schema import DataType, Field
    from deltalog.schema.columns import Path
    from deltalog.schema.evolve import Where
    from deltalog.transaction import PendingTransaction


# --- Base class of the operations that change metadata


logger: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Alteration(Operation[Nothing]):
    """Base class of operations that change metadata. Without a change, nothing is committed."""

    skips_empty: ClassVar[bool] = True

    @abstractmethod
    def change(self, transaction: PendingTransaction) -> Mapping[str, Any]:
        """Stage the change, and return the `operationParameters` that Delta Spark would log."""

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Nothing:
        """Stage the change, and record its `operationParameters`."""
        del engine
        transaction.parameters.update(self.change(transaction))
        return Nothing()


def change_schema(pending: PendingTransaction, schema: StructType) -> None:
    """Stage a new schema with which the existing files can still be read.

    Raises:
        InvalidInputError: the existing files cannot be read with the schema, or the schema is
            invalid.
    """
    pending.set_configuration(changed_table(pending.configuration, schema=schema))


def change_properties(
    pending: PendingTransaction, configuration: Mapping[str, str], **options: Any
) -> TableConfiguration:
    """Stage new table properties, and upgrade the protocol if they need it.

    Args:
        pending: the transaction.
        configuration: the new properties.
        **options: of `changed_table`; with `warns=False`, the caller calls `warn_of_lost_access`
            after its own checks.

    Raises:
        InvalidInputError: a property is invalid, or the change is not allowed.
    """
    return _change(pending, configuration=configuration, **options)


def change_features(
    pending: PendingTransaction, features: Sequence[str] = (), **options: Any
) -> TableConfiguration:
    """Stage additional table features.

    Raises:
        InvalidInputError: a feature is unknown.
        UnsupportedFeatureError: deltalog could not write the table afterwards.
    """
    return _change(pending, features=features, **options)


def who_loses_access(before: Protocol, after: Protocol) -> str:
    """Describe which engines lose read or write access to the table; empty if no engine does.

    Engines that would read or write wrong rows, instead of refusing the table, are named.
    """
    parts: list[str] = []
    readers: list[str] = []
    for verb in ("read", "write"):
        writing = verb == "write"
        misled = engines_misled(asked_features(after), writing=writing)
        lost = engines_losing_access(before, after, writing=writing)
        # Who cannot read a table in any way cannot write it either.
        refused = [one for one in lost if one not in misled and one not in readers]
        if refused:
            parts.append(f"{shown_engines(refused)} cannot {verb} it any more")
            readers = [
                engine for engine in engine_answers(writing=True) if _all_in(engine, refused)
            ]
        if wrong := [one for one in lost if one in misled]:
            parts.append(f"{shown_engines(wrong)} would {verb} wrong rows without an error")
    return ", ".join(parts)


def _all_in(engine: str, ways: list[str]) -> bool:
    """Return whether all ways by which an engine reads are among these."""
    return all(way in ways for way in engine_answers() if way.partition(": ")[0] == engine)


def warn_of_lost_access(pending: PendingTransaction, before: Protocol) -> None:
    """Warn of engines that lose access, because a protocol upgrade is hard to undo."""
    lost = who_loses_access(before, pending.configuration.protocol)
    if lost:
        logger.warning("changing the protocol of %s: %s", pending.store.root, lost)


def _change(
    pending: PendingTransaction, *, warns: bool = True, **options: Any
) -> TableConfiguration:
    before = pending.configuration.protocol
    changed = changed_table(pending.configuration, **options)
    pending.set_configuration(changed)
    if warns:
        warn_of_lost_access(pending, before)
    return changed


def described(field: Field, name: str | None = None) -> dict[str, Any]:
    """Return a column as Delta Spark writes it to `operationParameters`.

    A nested type is only its name, such as `struct`.
    """
    return {
        "name": name or field.name,
        "type": getattr(field.type, "type", str(field.type)),
        "nullable": field.nullable,
        "metadata": {
            key: value
            for key, value in field.metadata.items()
            if not key.startswith("delta.columnMapping.")
        },
    }


# --- Operations that add, rename, move, drop and change columns


_DECLARATIONS: Final = {
    CURRENT_DEFAULT_KEY: "a default: add it, then set the default for new rows",
    GENERATION_EXPRESSION_KEY: "a generation expression: existing rows have no value for it",
    IDENTITY_STEP_KEY: "an identity: existing rows would have no identity value",
}
_OWN_METADATA: Final = ("delta.", "__", CURRENT_DEFAULT_KEY)


@dataclass(frozen=True, slots=True)
class AddColumns(Alteration):
    """Add columns, or fields of a struct. In existing rows they are NULL.

    Args:
        fields: the new columns in order: the first at the position `where`, the others after it.
        parent: path of the struct that the fields are added to; empty adds columns of the table.
        where: `first`, `last` or `("after", name)`.
        extends_structs: whether a struct in `fields` that exists already adds its new fields to
            the existing struct. If False, a struct that exists is an error.
    """

    fields: Sequence[Field]
    parent: str | Path = ()
    where: Where = "last"
    extends_structs: bool = False
    name: ClassVar[str] = "ADD COLUMNS"

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the schema.

        Raises:
            InvalidInputError: a column of this name exists, or a new column is NOT NULL, is a
                generated or identity column, or has a default.
        """
        if not self.fields:
            raise InvalidInputError("there are no columns to add")
        schema, where = transaction.configuration.schema, self.where
        columns: list[dict[str, Any]] = []
        parent = canonical_path_of(schema, self.parent) if self.parent else ()
        for field in self.fields:
            _check_addable(field)
            if self.extends_structs:
                _check_no_path(schema, parent, field.name)
            inner = self._new_fields(schema, (*parent, field.name), field)
            for path, new in inner:
                _check_addable(new)
                schema = evolve.add_column(schema, new, parent=path)
                columns.append({"column": _described(schema, (*path, new.name))})
            if inner:
                continue
            schema = evolve.add_column(schema, field, parent=parent, where=where)
            entry: dict[str, Any] = {"column": _described(schema, (*parent, field.name))}
            if where != "last":
                entry["position"] = _position(where)
                where = ("after", field.name)
            columns.append(entry)
        change_schema(transaction, schema)
        return {"columns": columns}

    def _new_fields(self, schema: StructType, path: Path, given: Field) -> list[tuple[Path, Field]]:
        """Return the fields of `given` that the table's struct lacks, each with its struct's path.

        Empty if the table has no struct at `path`, or if this struct lacks no field.
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


def _check_no_path(schema: StructType, parent: Path, name: str) -> None:
    """Raise if the name of a new column is the path of a field in an existing struct.

    Names may contain dots, so this would be another column beside the struct.
    """
    start, _, inner = name.rpartition(".")
    if not start:
        return
    try:
        path = canonical_path_of(schema, (*parent, *start.split(".")))
        is_struct = isinstance(find_field(schema, path).type, StructType)
    except InvalidInputError:
        return
    if is_struct:
        raise InvalidInputError(
            f"cannot add a column with the name {name!r}: {start!r} is a struct; to add a field to "
            f"it, call add_columns(Field({inner!r}, …), parent={'.'.join(path)!r}); for a column "
            "whose name contains a dot, use SQL: ALTER TABLE … ADD COLUMNS with the name in "
            "backticks"
        )


@dataclass(frozen=True, slots=True)
class RenameColumn(Alteration):
    """Rename a column or nested field. Its physical name does not change."""

    column: str | Path
    new_name: str
    name: ClassVar[str] = "RENAME COLUMN"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Change the schema, and the properties that name the column.

        Raises:
            InvalidInputError: the table has no column mapping, a column of the new name exists, or
                a constraint or generated column uses the column.
        """
        before = transaction.configuration
        old = _path_of(transaction, self.column, "rename")
        _check_mapped(transaction, "rename")
        new = (*old[:-1], self.new_name)
        schema = evolve.rename_column(before.schema, old, self.new_name)
        properties = with_renamed_column(before.metadata.configuration, old, new)
        changed = changed_table(before, schema=schema, configuration=properties)
        transaction.set_configuration(changed)
        return {"oldColumnPath": ".".join(old), "newColumnPath": ".".join(new)}


@dataclass(frozen=True, slots=True)
class DropColumns(Alteration):
    """Drop columns or nested fields from the schema. Existing files still contain the values."""

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
        before = transaction.configuration
        for column in self.columns:
            path = _path_of(transaction, column, "drop")
            if len(path) == 1 and path[0] in before.partition_columns:
                raise InvalidInputError(
                    f"cannot drop the column {path[0]!r} of {transaction.store.root}: it is a "
                    "partition column; write the other columns to a new table"
                )
        _check_mapped(transaction, "drop")
        schema, properties = before.schema, dict(before.metadata.configuration)
        names: list[str] = []
        for column in self.columns:
            path = canonical_path_of(schema, column)
            _check_not_clustered(transaction, path)
            schema = evolve.drop_column(schema, path)
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
        """Return the position as in SQL: `FIRST`, `LAST` or `AFTER name`."""
        return {"position": _position(self.where)}

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema in the new order."""
        return evolve.move_column(transaction.configuration.schema, self.column, self.where)


@dataclass(frozen=True, slots=True)
class SetColumnType(_ColumnChange):
    """Widen the type of a column, a nested field, or the elements of a list or map.

    Protocol: Type Widening
    """

    to_type: DataType | str

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema with the column's new type.

        Raises:
            InvalidInputError: the change is not a widening, `delta.enableTypeWidening` is not set,
                or a constraint or generated column uses the column.
        """
        wider = as_type(self.to_type)
        return evolve.change_type(transaction.configuration.schema, self.column, wider)


@dataclass(frozen=True, slots=True)
class SetColumnCollations(_ColumnChange):
    """Set the collations of the strings in a column or nested field.

    Args:
        collations: path inside the column → name of the collation in SQL. The empty path is the
            column itself.
        to_type: the new type of the column, which also removes all its collations; None preserves
            type and collations.

    Protocol: Writer Requirements for Collations
    """

    collations: Mapping[Path, str]
    to_type: DataType | None = None

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema with the collations.

        Raises:
            InvalidInputError: a collation does not exist, a path does not lead to a string, the
                table is clustered by the column, or `SetColumnType` would not accept the new type.
        """
        schema = transaction.configuration.schema
        path = canonical_path_of(schema, self.column)
        _check_not_clustered(transaction, path, "change the collation of")
        if self.to_type is not None:
            schema = evolve.change_type(schema, path, self.to_type)
        replaces = self.to_type is not None  # a new type removes all existing collations

        def collated(field: Field) -> Field:
            found = with_collations(field, {}) if replaces else field
            for inner, name in self.collations.items():
                found = found.collate(name, at=".".join(inner))
            return found

        return evolve.change_field(schema, path, collated)


@dataclass(frozen=True, slots=True)
class SetColumnComment(_ColumnChange):
    """Set the comment of a column or nested field; None removes it."""

    comment: str | None

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema with the comment.

        Raises:
            InvalidInputError: the comment is no string.
        """
        comment: object = self.comment
        if comment is not None and not isinstance(comment, str):
            raise InvalidInputError(
                f"cannot use {comment!r} as the comment of a column: expected a string or None"
            )
        return _with_entries(transaction, self.column, {"comment": comment})


@dataclass(frozen=True, slots=True)
class SetColumnMetadata(_ColumnChange):
    """Add entries to a column's metadata, except entries that belong to a table feature."""

    metadata: Mapping[str, Any]

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema with the entries.

        Raises:
            InvalidInputError: an entry belongs to a table feature, or is misspelled.
        """
        given: Any = self.metadata
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            raise InvalidInputError(
                f"cannot use {given!r} as column metadata: expected a dictionary with strings as "
                "keys"
            )
        own = sorted(key for key in self.metadata if key.startswith(_OWN_METADATA))
        if own:
            raise InvalidInputError(
                f"cannot set {', '.join(own)} as column metadata: these keys belong to table "
                "features; use the method of the feature instead"
            )
        column = self.column
        check_keys(column if isinstance(column, str) else ".".join(column), self.metadata)
        return _with_entries(transaction, self.column, self.metadata)


@dataclass(frozen=True, slots=True)
class SetColumnDefault(_ColumnChange):
    """Set the default that a column has in new rows without a value; None removes it.

    Protocol: Default Columns
    """

    default: str | None

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema with the default.

        Raises:
            InvalidInputError: the default is not a constant of the column's type.
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

        Cost: reads the column from all files except those whose statistics prove that it has no
        NULL.
        """
        schema = transaction.configuration.schema
        path = canonical_path_of(schema, self.column)
        if find_field(schema, path).nullable:
            column = ".".join(path)
            what = f"NOT NULL for column {column!r}"
            if _is_inside_container(schema, path):
                raise InvalidInputError(
                    f"cannot set {what}: existing rows cannot be checked inside lists and maps"
                )
            violation = _is_missing(path)
            check_existing_rows(transaction, what, violation, constraint=f"{column} IS NOT NULL")
        return evolve.change_field(schema, path, lambda field: replace(field, nullable=False))


@dataclass(frozen=True, slots=True)
class DropColumnNotNull(_ColumnChange):
    """Drop NOT NULL from a column or nested field."""

    def changed(self, transaction: PendingTransaction) -> StructType:
        """Return the schema with the field nullable."""
        schema = transaction.configuration.schema
        return evolve.change_field(schema, self.column, lambda field: replace(field, nullable=True))


def _check_addable(field: Field) -> None:
    if not field.nullable:
        raise InvalidInputError(
            f"cannot add the column {field.name!r} as NOT NULL: existing rows have no value "
            "for it; add it, fill it, then set NOT NULL"
        )
    for key, why in _DECLARATIONS.items():
        if key in field.metadata:
            raise InvalidInputError(f"cannot add the column {field.name!r} with {why}")


def _path_of(transaction: PendingTransaction, column: str | Path, operation: str) -> Path:
    try:
        return canonical_path_of(transaction.configuration.schema, column)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"cannot {operation} a column of {transaction.store.root}: {error}"
        ) from None


def _check_mapped(transaction: PendingTransaction, operation: str) -> None:
    if transaction.configuration.column_mapping_mode is Mode.NONE:
        raise InvalidInputError(
            f"cannot {operation} a column of {transaction.store.root}: without column mapping, the "
            "names in data files would have to change; set delta.columnMapping.mode = name first, "
            "as in table.alter.set_table_properties({'delta.columnMapping.mode': 'name'})"
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
    """Return the condition that violates NOT NULL: the field is NULL, and its struct is not."""
    missing: Expression = IsNull(Column(path))
    if len(path) == 1:
        return missing
    return And((Not(IsNull(Column(path[:-1]))), missing))


def _with_entries(
    transaction: PendingTransaction, column: str | Path, entries: Mapping[str, Any]
) -> StructType:
    """Return the schema after setting a column's metadata entries; the value None removes a key."""

    def change(field: Field) -> Field:
        merged = {**field.metadata, **entries}
        kept = {key: value for key, value in merged.items() if value is not None}
        return replace(field, metadata=kept)

    return evolve.change_field(transaction.configuration.schema, column, change)


def _described(schema: StructType, column: str | Path) -> dict[str, Any]:
    path = canonical_path_of(schema, column)
    return described(find_field(schema, path), ".".join(path))


def _position(where: Where) -> str:
    return where.upper() if isinstance(where, str) else f"AFTER {where[1]}"


# --- Renamed and dropped columns in the property `delta.dataSkippingStatsColumns`


_KEY: Final = TableProperties.data_skipping_stats_columns.key
_PLAIN: Final = re.compile(r"\w+")


def with_renamed_column(configuration: Mapping[str, str], old: Path, new: Path) -> dict[str, str]:
    """Return the properties with the new name of a renamed column or nested field."""
    return _edited(configuration, old, new)


def without_column(configuration: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return the properties without a dropped column and its nested fields."""
    return _edited(configuration, path, None)


def _edited(configuration: Mapping[str, str], old: Path, new: Path | None) -> dict[str, str]:
    paths = TableProperties(configuration).data_skipping_stats_columns
    if paths is None:
        return dict(configuration)
    found: list[Path] = []
    for path in paths:
        if path_key(path[: len(old)]) != path_key(old):
            found.append(path)
        elif new is not None:
            found.append((*new, *path[len(new) :]))
    if tuple(found) == paths:
        return dict(configuration)
    if not found:
        return {key: text for key, text in configuration.items() if key != _KEY}
    return {**configuration, _KEY: ",".join(map(_text, found))}


def _text(path: Sequence[str]) -> str:
    return ".".join(
        name if _PLAIN.fullmatch(name) else "`{}`".format(name.replace("`", "``")) for name in path
    )


# --- Check of existing rows against a new constraint or NOT NULL


_EXAMPLES: Final = 5
_MOST_COMPARED: Final = 1000


def check_existing_rows(
    pending: PendingTransaction, what: str, violation: Expression, *, constraint: str
) -> None:
    """Raise if existing rows violate a new constraint.

    The transaction then conflicts with every concurrent commit that adds rows, because those rows
    have not been checked.

    Args:
        pending: the transaction that adds the constraint; it must not add files.
        what: description of the constraint for messages.
        violation: a condition that is true for rows that violate the constraint.
        constraint: name of the constraint, an attribute of the error.

    Raises:
        ConstraintViolationError: rows violate the constraint. The error has their number and
            examples.
        InvalidInputError: the transaction has staged files, or changes the schema.

    Cost: reads the columns of the constraint from the files that data skipping does not exclude.
    """
    snapshot = pending.snapshot
    pending.record_read(None)
    if snapshot is None or pending.names_files:
        if pending.names_files:
            raise InvalidInputError(
                f"cannot set {what} in a transaction that writes rows: commit them first"
            )
        return
    if pending.configuration.schema != snapshot.configuration.schema:
        raise InvalidInputError(
            f"cannot set {what} in a transaction that changes the schema: commit the schema first"
        )
    names = list(dict.fromkeys(path[0] for path in sorted(columns_of(violation))))
    scan = plan_scan(snapshot, columns=names or None, predicate=violation)
    count = 0
    examples: list[dict[str, Any]] = []
    for batch in scan.to_batches():
        count += batch.num_rows
        if len(examples) < _EXAMPLES:
            found = [*examples, *readable_rows(batch.slice(0, _MOST_COMPARED))]
            examples = distinct(found)[:_EXAMPLES]
    if count:
        rows = "row breaks" if count == 1 else "rows break"
        hint = _on_nulls(examples) if isinstance(violation, Not) else ""  # of a CHECK constraint
        raise ConstraintViolationError(
            f"cannot set {what} of {snapshot.store.root}: {count} {rows} it, such as "
            f"{', '.join(map(repr, shown_values(examples)))}{hint}; change or delete these rows "
            "first",
            constraint=constraint,
            num_rows=count,
            examples=examples,
        )


def _on_nulls(examples: Sequence[Mapping[str, Any]]) -> str:
    """Return a hint for a condition that rows break because of a NULL; else an empty string."""
    nulls = [name for name, value in examples[0].items() if value is None] if examples else []
    if not nulls or len(examples[0]) > len(nulls):
        return ""
    return f"; a condition that is NULL is broken, too: to allow NULL, add OR {nulls[0]} IS NULL"


# --- Identity columns whose values were written explicitly


@dataclass(frozen=True, slots=True)
class SyncIdentity(Alteration):
    """Make an identity column continue after the values in the table.

    If its high water mark is already past these values, nothing changes: the mark never moves back.
    """

    column: str
    name: ClassVar[str] = "SYNC IDENTITY"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Set the column's high water mark.

        Raises:
            InvalidInputError: the column is not an identity column, or its values would exceed the
                range of a long.

        Cost: reads the column from all files.
        """
        schema = transaction.configuration.schema
        known = {name_key(found.name): found for found in identity_columns(schema)}
        identity = known.get(name_key(self.column))
        if identity is None:
            raise InvalidInputError(
                f"{self.column!r} is not an identity column of {transaction.store.root}"
            )
        transaction.record_read(None)
        last = _last_value(transaction, identity)
        if last is not None and identity.further(last, identity.start) == last:
            mark = identity.member_from(last)
            if not MIN_VALUE <= mark <= MAX_VALUE:
                raise InvalidInputError(
                    f"the identity column {identity.name!r} has no values left after {last}"
                )
            change_schema(transaction, with_high_water_marks(schema, {identity.name: mark}))
        return {"column": identity.name}


def _last_value(transaction: PendingTransaction, column: IdentityColumn) -> int | None:
    """Return the column's maximum in the table, or its minimum if the step is negative."""
    if transaction.snapshot is None:
        return None
    last: int | None = None
    for batch in plan_scan(transaction.snapshot, columns=[column.name]).to_batches():
        ends: Any = pc.min_max(batch.column(0)).as_py()
        found = ends["max" if column.step > 0 else "min"]
        if found is not None:
            last = found if last is None else column.further(last, found)
    return last
