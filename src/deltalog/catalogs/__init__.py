"""Table names and the catalogs that resolve them: Unity Catalog, AWS Glue, a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import names_on_demand

if TYPE_CHECKING:
    from deltalog.catalogs.files import FileCatalog
    from deltalog.catalogs.glue import GlueCatalog
    from deltalog.catalogs.protocol import (
        CatalogTable,
        Name,
        NamedTable,
        StagedTable,
        TableCatalog,
        TableType,
    )
    from deltalog.catalogs.unity import UnityCatalog

# Some need libraries that not everybody has.
_ORIGINS = {
    "CatalogTable": "deltalog.catalogs.protocol",
    "FileCatalog": "deltalog.catalogs.files",
    "GlueCatalog": "deltalog.catalogs.glue",
    "Name": "deltalog.catalogs.protocol",
    "NamedTable": "deltalog.catalogs.protocol",
    "StagedTable": "deltalog.catalogs.protocol",
    "TableCatalog": "deltalog.catalogs.protocol",
    "TableType": "deltalog.catalogs.protocol",
    "UnityCatalog": "deltalog.catalogs.unity",
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
    __getattr__, __dir__ = names_on_demand(__name__, _ORIGINS)
