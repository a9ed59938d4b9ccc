"""Tables by name: Unity Catalog, AWS Glue, a directory; one protocol that others can implement."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltalog.catalogs.files import FileCatalog
    from deltalog.catalogs.glue import GlueCatalog
    from deltalog.catalogs.named import NamedTable
    from deltalog.catalogs.protocol import CatalogTable, Name, StagedTable, TableCatalog, TableType
    from deltalog.catalogs.unity import UnityCatalog

# Some need libraries that not everybody has.
_ORIGINS = {
    "CatalogTable": "protocol",
    "FileCatalog": "files",
    "GlueCatalog": "glue",
    "Name": "protocol",
    "NamedTable": "named",
    "StagedTable": "protocol",
    "TableCatalog": "protocol",
    "TableType": "protocol",
    "UnityCatalog": "unity",
}

__all__ = [
    "CatalogTable",
    "FileCatalog",
    "GlueCatalog",
    "Name",
    "NamedTable",
    "StagedTable",
    "TableCatalog",
    "TableType",
    "UnityCatalog",
]

if not TYPE_CHECKING:  # type checkers shall find a wrong name themselves

    def __getattr__(name: str) -> Any:
        """Load a public name from where it lives (PEP 562)."""
        origin = _ORIGINS.get(name)
        if origin is None:
            raise AttributeError(f"module 'deltalog.catalogs' has no attribute {name!r}")
        return getattr(import_module(f"deltalog.catalogs.{origin}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
