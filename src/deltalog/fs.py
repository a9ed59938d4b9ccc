"""The files of a Delta table as a PyArrow file system.

The code is in `deltalog.integrations.fs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import explain_names
from deltalog.integrations.fs import DeltaStorageHandler

__all__ = ["DeltaStorageHandler"]

if not TYPE_CHECKING:  # type checkers must report unknown names
    __getattr__ = explain_names(__name__, __all__)
