"""Column mapping: logical names for users, physical names and ids for files.

This module finds, assigns and checks physical names and ids. `configuration` decides whether a
table has column mapping.

Protocol: Column Mapping
"""

from __future__ import annotations

import re
import uuid
from dataclasses import replace
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.escaping import path_key
from deltalog.errors import InvalidInputError, InvalidMetadataError
from deltalog.schema.columns import canonical_path_of, map_fields, walk
from deltalog.schema.types import ArrayType, DataType, Field, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Sequence


ID_KEY: Final = "delta.columnMapping.id"
PHYSICAL_NAME_KEY: Final = "delta.columnMapping.physicalName"
MAX_COLUMN_ID_PROPERTY: Final = "delta.columnMapping.maxColumnId"
MODE_PROPERTY: Final = "delta.columnMapping.mode"
HAS_DROPPED_OR_RENAMED_PROPERTY: Final = "delta.columnMapping.hasDroppedOrRenamed"
USAGE_TRACKING: Final = "columnMappingUsageTracking"

_MAX_ID: Final = 2**31 - 1
# The characters that have a special meaning in the schema strings of older Parquet readers.
_PUNCTUATION: Final = re.compile(r"[ ,;{}()\n\t=]")


class Mode(StrEnum):
    """The column mapping mode: how columns are matched in data files.

    Protocol: Column Mapping (`delta.columnMapping.mode`)
    """

    NONE = "none"
    ID = "id"
    NAME = "name"

    @classmethod
    def parse(cls, text: str | None) -> Mode:
        """Return the mode for the property's value; `none` if it is absent.

        Raises:
            InvalidMetadataError: the mode does not exist.
        """
        try:
            return cls.NONE if text is None else cls(text.strip().lower())
        except ValueError as error:
            raise InvalidMetadataError(
                f"{MODE_PROPERTY}: expected none, id or name, found {text!r}"
            ) from error


def physical_name(field: Field, mode: Mode = Mode.NAME) -> str:
    """Return the name of the field in data files, partition values and statistics.

    For a field without a physical name, return the logical name; `validate` raises for such tables.
    """
    if mode is Mode.NONE:
        return field.name
    name = field.metadata.get(PHYSICAL_NAME_KEY)
    return name if isinstance(name, str) else field.name


def field_id(field: Field) -> int | None:
    """Return the field's id, or None."""
    value = field.metadata.get(ID_KEY)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    # Some writers write numbers in field metadata as strings.
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def to_physical_schema(schema: StructType, mode: Mode) -> StructType:
    """Return the schema with physical names at every level, and unchanged metadata."""
    return schema if mode is Mode.NONE else _rename(schema)


def physical_path(
    schema: StructType, logical_path: str | tuple[str, ...], mode: Mode
) -> tuple[str, ...]:
    """Return the physical path for a logical path, ignoring case.

    Raises:
        InvalidInputError: the column does not exist.
    """
    path = canonical_path_of(schema, logical_path)
    if mode is Mode.NONE:
        return path
    names: list[str] = []
    current: DataType = schema
    for segment in path:
        name, current = _step(current, segment)
        names.append(name)
    return tuple(names)


def physical_names(schema: StructType, columns: Sequence[str], mode: Mode) -> tuple[str, ...]:
    """Return the physical names of top-level columns, such as the partition columns."""
    return tuple(physical_path(schema, (column,), mode)[0] for column in columns)


def physical_name_by_id(number: int) -> str:
    """Return the physical name `col-<id>`, which is derived from a column's id."""
    return f"col-{number}"


class PhysicalNames(Enum):
    """The rule for assigning physical names."""

    LOGICAL = auto()
    """Logical names, for an existing table whose files already use them."""
    FIRST = auto()
    """Logical names if valid in Parquet, for a table without dropped or renamed columns."""
    BY_ID = auto()
    """Names that contain the column's id, which is never reused."""
    RANDOM = auto()
    """Random names, so that a new column never reads data of a dropped column."""


def assign(
    schema: StructType, max_id: int = 0, *, names: PhysicalNames = PhysicalNames.RANDOM
) -> tuple[StructType, int]:
    """Assign an id and a physical name to every field that lacks them, at every level.

    Args:
        schema: the schema, with ids and names that were assigned before.
        max_id: the highest id ever assigned (`delta.columnMapping.maxColumnId`).
        names: the rule for physical names.

    Returns:
        The schema, and the highest id ever assigned.

    Protocol: Writer Requirements for Column Mapping
    """
    highest = max([max_id, *(field_id(field) or 0 for _, field in walk(schema))])

    def complete(field: Field) -> Field:
        nonlocal highest
        entries: dict[str, Any] = dict(field.metadata)
        if field_id(field) is None:
            highest += 1
            entries[ID_KEY] = highest
        # The protocol: "Assign a globally unique identifier as the physical name for each new
        # column that is added to the schema. This is especially important for supporting cheap
        # column deletions."
        if not isinstance(entries.get(PHYSICAL_NAME_KEY), str):
            entries[PHYSICAL_NAME_KEY] = _named(field.name, entries[ID_KEY], names)
        return replace(field, metadata=entries)

    return map_fields(schema, complete), highest


def has_lost_names(before: StructType, after: StructType) -> bool:
    """Return whether a column of `before` is dropped or renamed in `after`."""
    there = {(field_id(field), path) for path, field in walk(after)}
    return any((field_id(field), path) not in there for path, field in walk(before))


def _named(name: str, number: int, names: PhysicalNames) -> str:
    is_plain = not _PUNCTUATION.search(name)
    if names is PhysicalNames.LOGICAL or (names is PhysicalNames.FIRST and is_plain):
        return name
    return physical_name_by_id(number) if names is PhysicalNames.BY_ID else f"col-{uuid.uuid4()}"


def strip(schema: StructType) -> StructType:
    """Return the schema without ids and physical names."""
    return map_fields(schema, lambda field: without_metadata(field, ("delta.columnMapping.",)))


def without_metadata(field: Field, prefixes: tuple[str, ...]) -> Field:
    """Return the field without the metadata keys that start with a prefix."""
    kept = {key: value for key, value in field.metadata.items() if not key.startswith(prefixes)}
    return field if len(kept) == len(field.metadata) else replace(field, metadata=kept)


def validate(schema: StructType, mode: Mode, *, max_id: int | None = None) -> None:
    """Raise unless every field has a unique id and a unique physical path.

    Raises:
        InvalidMetadataError: an id or a physical name is missing, out of range or not unique.

    Protocol: Column Mapping
    """
    if mode is Mode.NONE:
        return
    ids: dict[int, str] = {}
    for path, field in walk(schema):
        name = ".".join(path)
        number = field_id(field)
        if number is None or not 0 <= number <= _MAX_ID:
            raise InvalidMetadataError(
                f"column {name!r}: expected a 32-bit {ID_KEY}, found {field.metadata.get(ID_KEY)!r}"
            )
        if number in ids:
            raise InvalidMetadataError(
                f"columns {ids[number]!r} and {name!r} have the same {ID_KEY} {number}"
            )
        if max_id is not None and number > max_id:
            raise InvalidMetadataError(
                f"column {name!r}: {ID_KEY} {number} is above {MAX_COLUMN_ID_PROPERTY} {max_id}"
            )
        ids[number] = name
        if not isinstance(field.metadata.get(PHYSICAL_NAME_KEY), str):
            raise InvalidMetadataError(
                f"column {name!r}: expected {PHYSICAL_NAME_KEY}, "
                f"found {field.metadata.get(PHYSICAL_NAME_KEY)!r}"
            )
    # The full physical path must be unique. Several paths may end with the same name, because
    # fields of different structs may have the same name (requirement B-34).
    seen: set[tuple[str, ...]] = set()
    for path, _ in walk(_rename(schema)):
        if path in seen:
            raise InvalidMetadataError(f"two columns have the physical name {'.'.join(path)!r}")
        seen.add(path)


def check_distinct(schema: StructType, mode: Mode, *, table: str, operation: str) -> None:
    """Raise if files would have two columns with the same name or id.

    Names are compared without case, like in many readers.

    Raises:
        InvalidMetadataError: the message contains both columns.
    """
    if mode is Mode.NONE:
        return
    names: dict[tuple[str, ...], str] = {}
    ids: dict[int, str] = {}
    stored = (path for path, _ in walk(_rename(schema)))
    for (path, field), place in zip(walk(schema), stored, strict=True):
        name, number = ".".join(path), field_id(field)
        key = path_key(place)
        what, other = f"the physical name {'.'.join(place)!r}", names.setdefault(key, name)
        if other == name and number is not None:
            what, other = f"the {ID_KEY} {number}", ids.setdefault(number, name)
        if other != name:
            raise InvalidMetadataError(
                f"cannot {operation} {table}: the columns {other!r} and {name!r} both have {what}, "
                "so readers could not distinguish them in a file"
            )


def check_mode_change(before: Mode, after: Mode, *, is_rewrite: bool = False) -> None:
    """Raise for a change of mode after which existing files could not be read.

    Args:
        before: the mode of the table.
        after: the new mode.
        is_rewrite: whether all data files are rewritten; then mapping may be removed.

    Raises:
        InvalidInputError: the change is not allowed.

    Protocol: Writer Requirements for Column Mapping
    """
    allowed = before is after or (before, after) == (Mode.NONE, Mode.NAME)
    if not allowed and not (is_rewrite and after is Mode.NONE):
        raise InvalidInputError(
            f"cannot change {MODE_PROPERTY} from {before} to {after}: a table with files can "
            f"only change from none to name; {_INSTEAD[after]}"
        )


_INSTEAD: Final = {
    Mode.NONE: "to change to none, rewrite its files",
    Mode.NAME: "to change to name, write the rows to a new table that has this mode",
    Mode.ID: "to change to id, write the rows to a new table that has this mode, or use name",
}
"""Mode → what to do for a table that cannot change to it."""


def _rename(schema: StructType) -> StructType:
    return map_fields(schema, lambda field: replace(field, name=physical_name(field)))


def _step(current: DataType, segment: str) -> tuple[str, DataType]:
    match current:
        case StructType():
            field = next(field for field in current.fields if field.name == segment)
            return physical_name(field), field.type
        case ArrayType():
            return segment, current.element_type
        case MapType():
            return segment, current.key_type if segment == "key" else current.value_type
        case _:
            raise InvalidMetadataError(f"{current} has no field {segment!r}")
