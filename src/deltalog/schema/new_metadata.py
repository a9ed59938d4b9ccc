"""Check of the column metadata that a caller gives to new columns.

Tables of other writers may contain any entries, so reading does not check them.

Protocol: Column Metadata, Generated Columns, Identity Columns
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.schema.columns import walk
from deltalog.schema.types import (
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_ALLOW_EXPLICIT_INSERT_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from deltalog.schema.types import Field

_PREFIX: Final = "delta."
_IDENTITY: Final = (IDENTITY_START_KEY, IDENTITY_STEP_KEY, IDENTITY_ALLOW_EXPLICIT_INSERT_KEY)
_KNOWN: Final = (
    GENERATION_EXPRESSION_KEY,
    *_IDENTITY,
    "delta.identity.highWaterMark",
    "delta.columnMapping.id",
    "delta.columnMapping.physicalName",
    "delta.columnMapping.nested.ids",
    "delta.invariants",
    "delta.typeChanges",
)
"""The keys with the prefix that the protocol defines."""
_SET_BY: Final = {
    GENERATION_EXPRESSION_KEY: "Field(…).generated_as(sql)",
    CURRENT_DEFAULT_KEY: "Field(…).default(sql)",
    **dict.fromkeys(_IDENTITY, "Field(…).identity(start, step)"),
}
"""Key → the method that sets it."""


def _folded(key: str) -> str:
    return key.removeprefix(_PREFIX).replace("_", "").lower()


_ALONE: Final = {
    _folded(key): key for key in (GENERATION_EXPRESSION_KEY, *_IDENTITY, CURRENT_DEFAULT_KEY)
}
"""Spelling without the prefix → the key that is meant, unless it may be a key of an application."""
_SHORT: Final = {
    "default": CURRENT_DEFAULT_KEY,
    "comment": "comment",
    "identity": IDENTITY_START_KEY,
    "generated": GENERATION_EXPRESSION_KEY,
}
"""Other names after the prefix → the key that is meant."""
_BY_FOLDED: Final = {_folded(key): key for key in _KNOWN}


def check_new_metadata(fields: Iterable[Field]) -> None:
    """Raise for column metadata of new columns that would have no effect.

    Args:
        fields: the new columns, with the fields inside them.

    Raises:
        InvalidInputError: a key has the prefix `delta.` and is unknown, a key is misspelled, or the
            entries of an identity are not complete.
    """
    for path, field in walk(StructType(tuple(fields))):
        if not field.metadata:
            continue
        name = ".".join(path)
        check_keys(name, field.metadata)
        missing = [key for key in _IDENTITY if key not in field.metadata]
        if 0 < len(missing) < len(_IDENTITY):
            raise InvalidInputError(
                f"the metadata of column {name!r} describes an incomplete identity: it lacks "
                f"{' and '.join(missing)}; use {_SET_BY[IDENTITY_START_KEY]}, which sets all keys"
            )


def check_keys(column: str, metadata: Mapping[str, Any]) -> None:
    """Raise for a key of column metadata that is unknown or misspelled.

    Args:
        column: the path of the column, for errors.
        metadata: entries that a caller sets; keys of other owners may have any name.

    Raises:
        InvalidInputError: a key has the prefix `delta.` and is unknown, or lacks the prefix.
    """
    for key in metadata:
        if key in _KNOWN or key == CURRENT_DEFAULT_KEY:
            continue
        if meant := _meant_by(key):
            how = f", or use {_SET_BY[meant]}" if meant in _SET_BY else ""
            hint = f"did you mean {meant!r}{how}?"
        elif key.lower().startswith(_PREFIX):
            hint = (
                "the protocol defines the keys with this prefix; use another name for a key of an "
                "application"
            )
        else:
            continue
        raise InvalidInputError(f"there is no column metadata {key!r} (column {column!r}); {hint}")


def _meant_by(key: str) -> str | None:
    """Return the key that a misspelled key means; None if it may be one of an application."""
    folded = _folded(key.lower())
    if not key.lower().startswith(_PREFIX):
        return _ALONE.get(folded)
    if folded in _SHORT:
        return _SHORT[folded]
    close = get_close_matches(folded, [*_BY_FOLDED, _folded(CURRENT_DEFAULT_KEY)], n=1, cutoff=0.75)
    return (_BY_FOLDED | _ALONE)[close[0]] if close else None
