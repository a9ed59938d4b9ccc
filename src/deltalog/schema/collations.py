"""Collations: the rules for comparing the strings of a column.

Contains the entry `__COLLATIONS` of column metadata, with its paths and identifiers, and updates
the entry when the field is renamed.

Protocol: Specifying collations in the table schema
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError
from deltalog.schema.columns import Path, find_field, walk, walk_types
from deltalog.schema.types import (
    BY_BYTES,
    COLLATIONS_KEY,
    RULES,
    STRING,
    PrimitiveType,
    StructType,
    canonical,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.schema.types import Field

# The identifiers of the default collation. `utf8_binary` is not valid, because it has no provider,
# but deltalog accepts it.
_BY_BYTES: Final = frozenset({BY_BYTES.lower(), "utf8_binary"})


def collations_of(field: Field) -> dict[str, str]:
    """Return the non-default collations of a field's own strings.

    Returns:
        A mapping from dotted paths that begin with the field's name (`tags.element`) to identifiers
            such as `ICU.de_DE`. An invalid identifier is treated as an unknown collation.
    """
    entry = field.metadata.get(COLLATIONS_KEY)
    if entry is None:
        return {}
    if not isinstance(entry, dict):
        return {field.name: str(entry)}
    return {
        path: canonical(str(name))
        for path, name in entry.items()
        if str(name).lower() not in _BY_BYTES
    }


def own_collation(field: Field) -> str:
    """Return the collation of a string column; for other types, the default collation."""
    found = collations_of(field) if field.type == STRING else {}
    return next(iter(found.values()), BY_BYTES)


def ruled_collation(field: Field) -> str | None:
    """Return a string column's collation if deltalog supports it, otherwise None."""
    found = own_collation(field)
    return found if found in RULES else None


def collation_at(field: Field, inner: Path) -> str:
    """Return the collation of strings in a field.

    Args:
        field: the field that contains the strings.
        inner: the path to the strings inside the field, such as `("element",)`; empty for the
            field.
    """
    if not inner:
        return own_collation(field)
    return collations_of(field).get(".".join((field.name, *inner)), BY_BYTES)


def has_collations(schema: StructType) -> bool:
    """Return whether any string in the schema has a non-default collation."""
    return any(collations_of(field) for _, field in walk(schema))


def collation_below(schema: StructType, path: Path) -> str | None:
    """Return a non-default collation of any string in a column, at any depth, or None.

    Raises:
        InvalidInputError: the column does not exist.
    """
    field = find_field(schema, path)
    is_leaf = isinstance(field.type, PrimitiveType)
    fields = [field] if is_leaf else [part for _, part in walk(StructType([field]))]
    return next((name for part in fields for name in collations_of(part).values()), None)


def unordered_in(schema: StructType, name: str) -> str | None:
    """Return the reason (collation or type) why a column is not ordered by bytes; None if it is."""
    collation = collation_below(schema, (name,))
    if collation is not None:
        return f"the collation {collation}"
    for _, kind in walk_types(find_field(schema, (name,)).type):
        if isinstance(kind, PrimitiveType) and kind.primitive.extension:
            return f"values of type {kind}"
    return None


def inner_collations(field: Field) -> dict[Path, str]:
    """Return the collations of a field's own strings, by path in the field."""
    return {
        inner: collation
        for inner in _own_texts(field)
        if (collation := collation_at(field, inner)) != BY_BYTES
    }


def with_collations(field: Field, collations: Mapping[Path, str]) -> Field:
    """Return the field with other collations of its own strings.

    Args:
        field: a field of any type.
        collations: maps paths in the field to identifiers; the empty path means the field itself.
            The default collation needs no entry.
    """
    kept = {key: entry for key, entry in field.metadata.items() if key != COLLATIONS_KEY}
    named = {
        ".".join((field.name, *path)): name for path, name in collations.items() if name != BY_BYTES
    }
    return replace(field, metadata={**kept, COLLATIONS_KEY: named} if named else kept)


def renamed(field: Field, name: str) -> Field:
    """Return the field with another name, which its collation entry contains, too."""
    entry = field.metadata.get(COLLATIONS_KEY)
    if not isinstance(entry, dict):
        return replace(field, name=name)
    paths: dict[str, Any] = {}
    for path, collation in entry.items():
        is_own = path == field.name or path.startswith(f"{field.name}.")
        paths[name + path[len(field.name) :] if is_own else path] = collation
    return replace(field, name=name, metadata={**field.metadata, COLLATIONS_KEY: paths})


def check_collations(schema: StructType) -> None:
    """Raise for collations of parts that are not strings, and for invalid identifiers.

    Raises:
        InvalidInputError: a collation is invalid; the message names the column.

    Protocol: Writer Requirements for Collations
    """
    for path, field in walk(schema):
        entry = field.metadata.get(COLLATIONS_KEY)
        if entry is None:
            continue
        at = ".".join(path)
        if not isinstance(entry, dict) or not entry:
            raise InvalidInputError(
                f"the column {at!r}: expected {COLLATIONS_KEY} to map strings to collations, "
                f"as {{'{field.name}': 'ICU.de_DE'}}, found {entry!r}"
            )
        texts = {".".join((field.name, *inner)) for inner in _own_texts(field)}
        for text, collation in entry.items():
            if text not in texts:
                raise InvalidInputError(
                    f"the column {at!r}: {COLLATIONS_KEY} contains {text!r}, not the path of a "
                    "string in this column"
                )
            parts = collation.split(".") if isinstance(collation, str) else []
            # The protocol says: "Collation identifiers are stored without a version."
            if len(parts) != 2 or not all(parts):
                raise InvalidInputError(
                    f"the column {at!r}: expected the collation of {text!r} as provider and name, "
                    f"such as 'ICU.de_DE', found {collation!r}"
                )
            if collation.lower() in _BY_BYTES:
                raise InvalidInputError(
                    f"the column {at!r}: {collation!r} is the default, which must not be written; "
                    f"remove {text!r} from {COLLATIONS_KEY}"
                )


def _own_texts(field: Field) -> list[Path]:
    """Return the paths of a field's strings, except strings that belong to fields of structs."""
    found: list[Path] = []
    structs: list[Path] = []
    for path, kind in walk_types(field.type):
        if any(path[: len(struct)] == struct for struct in structs):
            continue
        if isinstance(kind, StructType):
            structs.append(path)
        elif kind == STRING:
            found.append(path)
    return found
