"""Type widening: which changes of a schema are changes of type, and whether the table allows them.

Which type is wider than which is `schema.widening`'s answer.

Protocol: Type Widening
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError
from deltalog.schema.columns import walk
from deltalog.schema.types import VOID, ArrayType, Field, MapType, StructType
from deltalog.schema.widening import TypeChange, is_widening, widening_changes, with_change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.schema.columns import Path
    from deltalog.schema.types import DataType


def remember_changes(name: str, before: Field, after: Field, *, is_enabled: bool) -> Field:
    """The field of today with every change of its own type remembered.

    Fields of structs inside it are fields of their own, and not looked at.

    Args:
        name: of the column, for the message.
        before: the field as it was.
        after: the field as it shall be; what it remembers already is not remembered twice.
        is_enabled: whether the table may widen types.

    Raises:
        InvalidInputError: the type becomes another one that is no wider, or widening is off.

    Protocol: Writer Requirements for Type Widening
    """
    result = after
    for change in _changes(before.type, after.type, ()):
        whole = ".".join((name, *change.path))
        if not is_widening(change.from_type, change.to_type):
            raise InvalidInputError(
                f"cannot change the type of {whole!r} from {change.from_type} to "
                f"{change.to_type}: that is no widening; write the data into a new column"
            )
        if not is_enabled:
            raise InvalidInputError(
                f"cannot change the type of {whole!r} from {change.from_type} to "
                f"{change.to_type}: set delta.enableTypeWidening = true first"
            )
        if not _is_remembered(before, result, change):
            result = with_change(result, change)
    return result


def changes_own_type(before: Field, after: Field) -> bool:
    """Whether the type of a field changes, apart from fields of structs inside it."""
    return any(True for _ in _changes(before.type, after.type, ())) or (
        before.type == VOID != after.type
    )


def forget_changes(field: Field) -> Field:
    """The field without the changes it remembers: once no file holds an older type."""
    metadata = {key: value for key, value in field.metadata.items() if key != "delta.typeChanges"}
    return replace(field, metadata=metadata)


def has_changes(schema: StructType) -> bool:
    """Whether a field remembers another type, which files may hold."""
    return any(widening_changes(field) for _, field in walk(schema))


def _is_remembered(before: Field, after: Field, change: TypeChange) -> bool:
    known = len(widening_changes(before))
    return change in widening_changes(after)[known:]


def _changes(before: DataType, after: DataType, path: Path) -> Iterator[TypeChange]:
    match before, after:
        case StructType(), StructType():
            return
        case ArrayType(), ArrayType():
            yield from _changes(before.element_type, after.element_type, (*path, "element"))
        case MapType(), MapType():
            yield from _changes(before.key_type, after.key_type, (*path, "key"))
            yield from _changes(before.value_type, after.value_type, (*path, "value"))
        case _ if before not in (after, VOID):
            yield TypeChange(before, after, path)
        case _:
            return
