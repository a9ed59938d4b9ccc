"""The errors in deltalake's module `exceptions`, with the same names; see `deltalog.errors`."""

from __future__ import annotations

from deltalog.errors import (
    CommitFailedError,
    DeltaError,
    DeltaProtocolError,
    SchemaMismatchError,
    TableNotFoundError,
)

__all__ = [
    "CommitFailedError",
    "DeltaError",
    "DeltaProtocolError",
    "SchemaMismatchError",
    "TableNotFoundError",
]
