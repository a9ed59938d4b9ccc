"""Which schema may follow another one while the files stay.

Protocol: Column Mapping, Type Widening
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deltalog.column_mapping import Mode, field_id
from deltalog.errors import InvalidInputError
from deltalog.features.type_widening import changes_own_type, remember_changes
from deltalog.schema import ArrayType, Field, MapType, StructType

if TYPE_CHECKING:
    from deltalog.configuration import TableConfiguration
    from deltalog.schema import DataType
    from deltalog.schema.columns import Path


@dataclass(frozen=True, slots=True)
class Followed:
    """A schema that follows another.

    Args:
        schema: with every change of type remembered.
        touched: paths in the schema before, of columns that went, have another name or type.
    """

    schema: StructType
    touched: tuple[Path, ...]


def followed(before: TableConfiguration, schema: StructType, *, widens: bool) -> Followed:
    """The schema that comes after another one while the files stay.

    Args:
        before: the table as it was.
        schema: as it shall be, with ids of known columns.
        widens: whether types may become wider.

    Raises:
        InvalidInputError: a column went without column mapping, a new column is NOT NULL, or a
            type changed in a way that files cannot follow.

    Protocol: Type Widening, Column Mapping
    """
    follower = _Follower(is_mapped=before.column_mapping_mode is not Mode.NONE, widens=widens)
    followed_schema = follower.struct(before.schema, schema, ())
    return Followed(followed_schema, tuple(follower.touched))


class _Follower:
    def __init__(self, *, is_mapped: bool, widens: bool) -> None:
        self.is_mapped = is_mapped
        self.widens = widens
        self.touched: list[Path] = []

    def struct(self, before: StructType, after: StructType, path: Path) -> StructType:
        left = {self._key(field): field for field in before.fields}
        fields: list[Field] = []
        for field in after.fields:
            known = left.pop(self._key(field), None)
            if known is None and not field.nullable:
                raise InvalidInputError(
                    f"cannot add the column {'.'.join((*path, field.name))!r} as NOT NULL: rows "
                    "that are there have no value for it; add it, fill it, then set NOT NULL"
                )
            fields.append(field if known is None else self._field(known, field, path))
        for gone in left.values():
            self._drop((*path, gone.name))
        return StructType(fields)

    def _key(self, field: Field) -> int | str:
        number = field_id(field) if self.is_mapped else None
        if number is None:
            return f"new {field.name}" if self.is_mapped else field.name.lower()
        return number

    def _field(self, before: Field, after: Field, parent: Path) -> Field:
        path = (*parent, before.name)
        if before.name != after.name:
            self._drop(path)
        changed = remember_changes(".".join(path), before, after, is_enabled=self.widens)
        if changes_own_type(before, after):
            self.touched.append(path)
        return replace(changed, type=self._type(before.type, changed.type, path))

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
        if not self.is_mapped:
            raise InvalidInputError(
                f"cannot drop or rename the column {'.'.join(path)!r}: files have it by this name; "
                "set delta.columnMapping.mode = name first"
            )
        self.touched.append(path)

    @staticmethod
    def _check_null(before: object, after: object, path: Path) -> None:
        if before and not after:
            raise InvalidInputError(
                f"cannot forbid NULL inside {'.'.join(path)!r}: files may hold some"
            )
