"""Append-only tables: rows may be added, never changed or deleted.

Protocol: Append-only Tables
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Collection

    from deltalog.actions.properties import TableProperties


def is_append_only(features: Collection[str], properties: TableProperties) -> bool:
    """Whether the table forbids to take rows away; the property alone, unsupported, does not.

    Args:
        features: current names of the features that the protocol supports.
        properties: of the table.
    """
    return "appendOnly" in features and properties.append_only


def check_may_remove(
    features: Collection[str], properties: TableProperties, *, table: str, operation: str
) -> None:
    """Refuse a commit that takes rows away; rearranging rows is allowed everywhere.

    Raises:
        InvalidInputError: the table is append-only.
    """
    if is_append_only(features, properties):
        raise InvalidInputError(
            f"cannot {operation} {table}: it is append-only; set delta.appendOnly = false first"
        )
