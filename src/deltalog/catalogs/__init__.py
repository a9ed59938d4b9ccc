"""Tables by name: Unity Catalog, AWS Glue, a directory; one protocol that others can implement."""

from __future__ import annotations

from deltalog.catalogs.files import FileCatalog
from deltalog.catalogs.protocol import CatalogTable, Name, StagedTable, TableCatalog, TableType

__all__ = [
    "CatalogTable",
    "FileCatalog",
    "Name",
    "StagedTable",
    "TableCatalog",
    "TableType",
]
