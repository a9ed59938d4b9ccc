"""Type widening: the changes that the protocol allows, and how a field remembers them.

Owns the table of allowed changes and the `delta.typeChanges` entry of column metadata.

Protocol: Type Widening
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError, InvalidMetadataError, UnsupportedTypeError
from deltalog.schema.columns import walk
from deltalog.schema.primitives import Family
from deltalog.schema.types import Field, PrimitiveType, as_type

if TYPE_CHECKING:
    from deltalog.schema.types import DataType, StructType

TYPE_CHANGES_KEY: Final = "delta.typeChanges"


@dataclass(frozen=True, slots=True)
class TypeChange:
    """A past change of a field's type: files may still hold the earlier type.

    Args:
        from_type: before.
        to_type: after.
        path: `element`, `key`, `value` inside the field; empty for the field itself.

    Protocol: Type Change Metadata
    """

    from_type: DataType
    to_type: DataType
    path: tuple[str, ...] = ()


def is_widening(from_type: DataType, to_type: DataType, *, is_lenient: bool = False) -> bool:
    """Return whether a column may change from one type to the other; not to the same one.

    Args:
        from_type: before.
        to_type: after.
        is_lenient: a decimal needs no more digits than hold any value of the integer before it.
            Early writers kept to that (byte to decimal(4,1)), and it reads.

    Protocol: Type Widening
    """
    if not isinstance(from_type, PrimitiveType) or not isinstance(to_type, PrimitiveType):
        return False
    row = from_type.primitive
    if not to_type.is_decimal:
        return to_type.primitive.name in row.widens_to
    if row.family is Family.INTEGRAL:
        least, scale = row.digits if is_lenient else row.decimal_digits, 0
    elif from_type.is_decimal and from_type != to_type:
        least, scale = from_type.precision, from_type.scale
    else:
        return False
    more_scale = to_type.scale - scale
    return to_type.precision - least >= more_scale >= 0


def widening_changes(field: Field) -> tuple[TypeChange, ...]:
    """Return the changes that a field remembers, oldest first.

    Raises:
        InvalidMetadataError: the entry is malformed.

    Protocol: Type Change Metadata
    """
    entries = field.metadata.get(TYPE_CHANGES_KEY)
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise _malformed(field, entries)
    return tuple(_change(field, entry) for entry in entries)


def check_readable_changes(schema: StructType) -> None:
    """Refuse a table whose files may hold a type that cannot be read as today's.

    Raises:
        UnsupportedTypeError: a field has a change that deltalog does not know.
        InvalidMetadataError: an entry is malformed.

    Protocol: Reader Requirements for Type Widening
    """
    for path, field in walk(schema):
        for change in widening_changes(field):
            if not is_widening(change.from_type, change.to_type, is_lenient=True):
                raise UnsupportedTypeError(
                    f"cannot read column {'.'.join((*path, *change.path))!r}: its type changed "
                    f"from {change.from_type} to {change.to_type}, which deltalog does not know "
                    "as a widening; use an engine that does"
                )


def with_change(field: Field, change: TypeChange) -> Field:
    """Return the field with one more change to remember; its type stays."""
    entry = {"toType": str(change.to_type), "fromType": str(change.from_type)}
    if change.path:
        entry["fieldPath"] = ".".join(change.path)
    known = list(field.metadata.get(TYPE_CHANGES_KEY) or [])
    return replace(field, metadata={**field.metadata, TYPE_CHANGES_KEY: [*known, entry]})


def _change(field: Field, entry: Any) -> TypeChange:
    if not isinstance(entry, dict):
        raise _malformed(field, entry)
    before, after, inner = entry.get("fromType"), entry.get("toType"), entry.get("fieldPath") or ""
    if not (isinstance(before, str) and isinstance(after, str) and isinstance(inner, str)):
        raise _malformed(field, entry)
    path = tuple(inner.split(".")) if inner else ()
    return TypeChange(_type(field, before), _type(field, after), path)


def _type(field: Field, name: str) -> DataType:
    try:
        return as_type(name)
    except InvalidInputError as error:
        raise UnsupportedTypeError(
            f"cannot read column {field.name!r}: its type changed from or to {name!r}, "
            "which deltalog does not know"
        ) from error


def _malformed(field: Field, entry: Any) -> InvalidMetadataError:
    return InvalidMetadataError(
        f"column {field.name!r}: expected {TYPE_CHANGES_KEY} to be a list of objects with "
        f"fromType and toType, found {entry!r}"
    )
