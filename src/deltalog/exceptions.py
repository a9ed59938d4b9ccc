"""Errors with the names of deltalake's module; `deltalog.errors` has all errors."""

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
