"""The public API: `DeltaTable`, `write_deltalake`, and the types that they return.

Each method builds an operation of `deltalog.operations` from its arguments and runs it. Operations
are imported on first use, so that opening a table stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import explain_call, names_on_demand

if TYPE_CHECKING:
    from deltalog.protocol.actions.model import Metadata, Protocol
    from deltalog.table.alter import TableAlterer
    from deltalog.table.catalog_transaction import CatalogTransactions
    from deltalog.table.convert import convert_to_deltalake
    from deltalog.table.defaults import table_defaults
    from deltalog.table.delta_table import DeltaTable
    from deltalog.table.merge import TableMerger
    from deltalog.table.optimize import TableOptimizer
    from deltalog.table.write import write_deltalake, write_files

__all__ = [
    "CatalogTransactions",
    "DeltaTable",
    "Metadata",
    "Protocol",
    "TableAlterer",
    "TableMerger",
    "TableOptimizer",
    "convert_to_deltalake",
    "table_defaults",
    "write_deltalake",
    "write_files",
]

_ORIGINS = {
    "deltalog.protocol.actions.model": ["Metadata", "Protocol"],
    "deltalog.table.alter": ["TableAlterer"],
    "deltalog.table.catalog_transaction": ["CatalogTransactions"],
    "deltalog.table.convert": ["convert_to_deltalake"],
    "deltalog.table.defaults": ["table_defaults"],
    "deltalog.table.delta_table": ["DeltaTable"],
    "deltalog.table.merge": ["TableMerger"],
    "deltalog.table.optimize": ["TableOptimizer"],
    "deltalog.table.write": ["write_deltalake", "write_files"],
}

if not TYPE_CHECKING:  # so that type checkers report unknown names
    explain_call(__name__, "DeltaTable(location)")
    __getattr__, __dir__ = names_on_demand(__name__, _ORIGINS)
