"""Type widening: recording the type changes of a new schema, if the table allows them.

The `schema` package decides which type is wider than another.

Protocol: Type Widening
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError
from deltalog.protocol.column_mapping import without_metadata
from deltalog.schema.columns import Path, walk
from deltalog.schema.evolve import TypeChange, is_widening, widening_changes, with_change
from deltalog.schema.types import VOID, ArrayType, DataType, Field, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator


def record_type_changes(name: str, before: Field, after: Field, *, is_enabled: bool) -> Field:
    """Return the new field, with every change of its own type recorded in its metadata.

    Changes of nested struct fields are recorded in their own metadata.

    Args:
        name: name of the column, for the message.
        before: the old field.
        after: the new field; a change that is already in its metadata is not added again.
        is_enabled: whether the table may widen types.

    Raises:
        InvalidInputError: the new type is not wider, or type widening is disabled.

    Protocol: Writer Requirements for Type Widening
    """
    result = after
    for change in _changes(before.type, after.type, ()):
        whole = ".".join((name, *change.path))
        is_wider = is_widening(change.from_type, change.to_type)
        if not (is_wider and is_enabled):
            why = (
                "set delta.enableTypeWidening = true first"
                if is_wider
                else "it is not a wider type; write the data into a new column"
            )
            raise InvalidInputError(
                f"cannot change the type of {whole!r} from {change.from_type} to "
                f"{change.to_type}: {why}"
            )
        # Record a change even if an entry of an earlier change is equal.
        if change not in widening_changes(result)[len(widening_changes(before)) :]:
            result = with_change(result, change)
    return result


def changes_own_type(before: Field, after: Field) -> bool:
    """Return whether the type of a field changes, apart from nested struct fields."""
    return any(True for _ in _changes(before.type, after.type, ())) or (
        before.type == VOID != after.type
    )


def without_type_changes(field: Field) -> Field:
    """Return the field without recorded type changes.

    The result is valid only if no file contains the column with an older type.
    """
    return without_metadata(field, ("delta.typeChanges",))


def has_type_changes(schema: StructType) -> bool:
    """Return whether a field has recorded type changes, so that files may have older types."""
    return any(widening_changes(field) for _, field in walk(schema))


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
