"""Delta tables as dataframes of Daft, and dataframes of Daft as versions of Delta tables.

The code is in `deltalog.integrations.daft`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog._util.lazy_names import explain_call, explain_names
from deltalog.integrations.daft import read, write

__all__ = ["read", "write"]

_MEANT: Final = {
    **dict.fromkeys(
        ("read_delta", "read_deltalake", "read_deltalog", "scan_delta", "to_daft", "from_delta"),
        "read(location)",
    ),
    **dict.fromkeys(
        ("write_delta", "write_deltalake", "write_deltalog", "to_delta", "to_deltalake"),
        "write(frame, location)",
    ),
}
"""Names of other libraries, and what to use instead."""

if not TYPE_CHECKING:  # type checkers must report unknown names
    __getattr__ = explain_names(__name__, __all__, _MEANT)
    explain_call(__name__, "deltalog.daft.read(location)")
