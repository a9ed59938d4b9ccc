"""Tables by name: Unity Catalog, AWS Glue, a directory; one protocol that others can implement."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deltalog.catalogs.files import FileCatalog
from deltalog.catalogs.protocol import CatalogTable, Name, StagedTable, TableCatalog, TableType

if TYPE_CHECKING:
    from deltalog.catalogs.glue import GlueCatalog
    from deltalog.catalogs.unity import UnityCatalog

# They need libraries that not everybody has.
_ORIGINS = {"GlueCatalog": "deltalog.catalogs.glue", "UnityCatalog": "deltalog.catalogs.unity"}

__all__ = [
    "CatalogTable",
    "FileCatalog",
    "GlueCatalog",
    "Name",
    "StagedTable",
    "TableCatalog",
    "TableType",
    "UnityCatalog",
]


def __getattr__(name: str) -> Any:
    """Load a catalog from where it lives (PEP 562)."""
    origin = _ORIGINS.get(name)
    if origin is None:
        raise AttributeError(f"module 'deltalog.catalogs' has no attribute {name!r}")
    return getattr(import_module(origin), name)
