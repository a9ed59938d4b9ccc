"""The errors in deltalake's module `exceptions`, with the same names; see `deltalog.errors`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import explain_names
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

if not TYPE_CHECKING:  # type checkers must report unknown names
    __getattr__ = explain_names(
        __name__,
        __all__,
        {
            **dict.fromkeys(
                ("DeltalogError", "DeltaTableError"), "DeltaError, the base class of all"
            ),
            "TableNotFound": "TableNotFoundError",
        },
        otherwise="deltalog.errors, which has all exceptions",
    )
