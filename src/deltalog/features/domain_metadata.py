"""Domains: named configurations beside the schema, and who may change which.

Protocol: Domain Metadata
"""

from __future__ import annotations

from typing import Final

from deltalog.errors import InvalidInputError

SYSTEM_PREFIX: Final = "delta."


def is_system_domain(name: str) -> bool:
    """Whether the domain belongs to a table feature; its name starts with `delta.`, in any case."""
    return name.lower().startswith(SYSTEM_PREFIX)


def check_user_domain(name: str) -> None:
    """Refuse a domain that users must not set or remove.

    Raises:
        InvalidInputError: the name is empty, or the domain is a feature's own.

    Protocol: Domain Metadata (system-controlled domains)
    """
    if not name:
        raise InvalidInputError("a metadata domain needs a name")
    if is_system_domain(name):
        raise InvalidInputError(
            f"cannot change the metadata domain {name!r}: domains that start with "
            f"{SYSTEM_PREFIX!r} are kept by table features"
        )
