"""Delta Sharing: a client that reads shared tables, and a server that shares tables.

`SharedTable` and `SharingClient` read; `deltalog.sharing.server` shares. Names are loaded when they
are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltalog.sharing.client import (
        AnswerLimits,
        AsyncSharedTable,
        AsyncSharingClient,
        HttpOptions,
        Retry,
        Schema,
        Share,
        SharedFollowOptions,
        SharedMetadata,
        SharedTable,
        SharingClient,
        Table,
        get_table_metadata,
        get_table_protocol,
        get_table_version,
        load_as_arrow,
        load_as_pandas,
        load_table_changes_as_pandas,
    )

__all__ = [
    "AnswerLimits",
    "AsyncSharedTable",
    "AsyncSharingClient",
    "HttpOptions",
    "Retry",
    "Schema",
    "Share",
    "SharedFollowOptions",
    "SharedMetadata",
    "SharedTable",
    "SharingClient",
    "Table",
    "get_table_metadata",
    "get_table_protocol",
    "get_table_version",
    "load_as_arrow",
    "load_as_pandas",
    "load_table_changes_as_pandas",
]

if not TYPE_CHECKING:  # type checkers shall find a wrong name themselves

    def __getattr__(name: str) -> Any:
        """Load a public name from its module (PEP 562)."""
        if name not in __all__:
            raise AttributeError(f"module 'deltalog.sharing' has no attribute {name!r}")
        value = getattr(import_module("deltalog.sharing.client"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The public names."""
    return __all__
