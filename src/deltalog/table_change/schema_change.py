"""Change the schema of a table whose data files stay.

Owns which columns may be added, dropped, renamed and widened. `checks` decides whether constraints
and generated columns allow it.

Protocol: Column Mapping, Type Widening
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deltalog.column_mapping import Mode, field_id
from deltalog.errors import InvalidInputError
from deltalog.features.type_widening import changes_own_type, record_type_changes
from deltalog.names import name_key
from deltalog.schema import ArrayType, Field, MapType, StructType
from deltalog.schema.collations import collations_of, renamed

if TYPE_CHECKING:
    from deltalog.configuration import TableConfiguration
    from deltalog.schema import DataType
    from deltalog.schema.columns import Path


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The new schema of a table, and what changed.

    Args:
        schema: with every type change recorded in column metadata.
        changed: columns that are dropped, renamed or get another type or collation; paths in the
            old schema.
    """

    schema: StructType
    changed: tuple[Path, ...]


def change_schema(before: TableConfiguration, schema: StructType, *, widens: bool) -> SchemaChange:
    """Check a new schema against the current one, and record its type changes.

    Args:
        before: the current table.
        schema: the new one; known columns have their ids.
        widens: whether types may become wider.

    Raises:
        InvalidInputError: a column is dropped or renamed without column mapping, a new column is
            NOT NULL, or existing files cannot be read as the new type.

    Protocol: Type Widening, Column Mapping
    """
    changer = _SchemaChanger(is_mapped=before.column_mapping_mode is not Mode.NONE, widens=widens)
    changed_schema = changer.struct(before.schema, schema, ())
    return SchemaChange(changed_schema, tuple(changer.changed))


class _SchemaChanger:
    def __init__(self, *, is_mapped: bool, widens: bool) -> None:
        self.is_mapped = is_mapped
        self.widens = widens
        self.changed: list[Path] = []

    def struct(self, before: StructType, after: StructType, path: Path) -> StructType:
        left = {self._key(field): field for field in before.fields}
        fields: list[Field] = []
        for field in after.fields:
            known = left.pop(self._key(field), None)
            if known is None and not field.nullable:
                raise InvalidInputError(
                    f"cannot add the column {'.'.join((*path, field.name))!r} as NOT NULL: "
                    "existing rows have no value for it; add it, fill it, then set NOT NULL"
                )
            fields.append(field if known is None else self._field(known, field, path))
        for gone in left.values():
            self._drop((*path, gone.name))
        return StructType(fields)

    def _key(self, field: Field) -> int | str:
        # With column mapping the id stays when a column is renamed; without, a column is its name.
        number = field_id(field) if self.is_mapped else None
        if number is None:
            return f"new {field.name}" if self.is_mapped else name_key(field.name)
        return number

    def _field(self, before: Field, after: Field, parent: Path) -> Field:
        path = (*parent, before.name)
        if before.name != after.name:
            self._drop(path)
        recorded = record_type_changes(".".join(path), before, after, is_enabled=self.widens)
        own = collations_of(renamed(before, after.name))
        if changes_own_type(before, after) or own != collations_of(after):
            self.changed.append(path)
        return replace(recorded, type=self._type(before.type, recorded.type, path))

    def _type(self, before: DataType, after: DataType, path: Path) -> DataType:
        match before, after:
            case StructType(), StructType():
                return self.struct(before, after, path)
            case ArrayType(), ArrayType():
                self._check_null(before.contains_null, after.contains_null, path)
                inner = self._type(before.element_type, after.element_type, (*path, "element"))
                return replace(after, element_type=inner)
            case MapType(), MapType():
                self._check_null(before.value_contains_null, after.value_contains_null, path)
                key = self._type(before.key_type, after.key_type, (*path, "key"))
                value = self._type(before.value_type, after.value_type, (*path, "value"))
                return replace(after, key_type=key, value_type=value)
            case _:
                return after

    def _drop(self, path: Path) -> None:
        # Without column mapping, a later column of the same name would show the old column's data.
        if not self.is_mapped:
            raise InvalidInputError(
                f"cannot drop or rename the column {'.'.join(path)!r}: its files use this name; "
                "set delta.columnMapping.mode = name first"
            )
        self.changed.append(path)

    @staticmethod
    def _check_null(before: object, after: object, path: Path) -> None:
        if before and not after:
            raise InvalidInputError(
                f"cannot forbid NULL inside {'.'.join(path)!r}: existing files may hold NULL"
            )
