"""What writes tables, by the names that deltalake's users import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import explain_call, explain_names
from deltalog.data.write.options import BloomFilterProperties, ColumnProperties, WriterProperties
from deltalog.table import convert_to_deltalake, write_deltalake

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "WriterProperties",
    "convert_to_deltalake",
    "write_deltalake",
]

if not TYPE_CHECKING:  # type checkers report such uses themselves
    __getattr__ = explain_names(__name__, __all__)
    explain_call(__name__, "deltalog.write_deltalake(location, data)")
