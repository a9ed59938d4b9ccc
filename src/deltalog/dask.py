"""Delta tables as dataframes of Dask, and dataframes of Dask as versions of Delta tables.

The code is in `deltalog.integrations.dask`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog._util.lazy_names import explain_call, explain_names
from deltalog.integrations.dask import DaskEngine, read, read_deltalake, to_deltalake, write

__all__ = ["DaskEngine", "read", "read_deltalake", "to_deltalake", "write"]

_MEANT: Final = {
    **dict.fromkeys(
        ("read_delta", "read_deltalog", "to_dask", "scan_delta", "from_delta"), "read(location)"
    ),
    **dict.fromkeys(
        ("write_delta", "write_deltalake", "write_deltalog", "to_delta"), "write(frame, location)"
    ),
}
"""Names of other libraries, and what to use instead."""

if not TYPE_CHECKING:  # type checkers must report unknown names
    __getattr__ = explain_names(__name__, __all__, _MEANT)
    explain_call(__name__, "deltalog.dask.read(location)")
