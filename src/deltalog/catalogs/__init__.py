"""Names of tables, and the catalogs that contain them: Unity Catalog, AWS Glue, a directory.

- `protocol`: the interface of catalogs, and tables by name.
- `unity`, `glue`, `files`: Unity Catalog, AWS Glue, and a directory of tables.
- `addresses`: names such as `uc://catalog.schema.table`.
- `table_uri`: the ways in which callers refer to a table: a store, a path, a URL or a name.
- `locations`: checks of the locations that a catalog returns; credentials that it lends.
"""

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

# Module → its classes. A class is imported on first use, because some need optional libraries.
_ORIGINS = {
    "deltalog.catalogs.files": ["FileCatalog"],
    "deltalog.catalogs.glue": ["GlueCatalog"],
    "deltalog.catalogs.protocol": [
        "CatalogTable",
        "Name",
        "NamedTable",
        "StagedTable",
        "TableCatalog",
        "TableType",
    ],
    "deltalog.catalogs.unity": ["UnityCatalog"],
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

_MEANT = {
    **dict.fromkeys(("DataCatalog", "Catalog", "Unity", "DatabricksCatalog"), "UnityCatalog(url)"),
    **dict.fromkeys(
        ("DirectoryCatalog", "LocalCatalog", "HadoopCatalog"), "FileCatalog(directory)"
    ),
    **dict.fromkeys(
        (
            *("HiveCatalog", "HiveMetastore", "RestCatalog", "RESTCatalog", "IcebergCatalog"),
            *("PolarisCatalog", "NessieCatalog", "load_catalog", "SqlCatalog"),
        ),
        "an own TableCatalog; deltalog has no client for this kind of catalog",
    ),
    **dict.fromkeys(("AwsGlue", "Glue", "connect_glue"), "GlueCatalog()"),
    **dict.fromkeys(("connect_unity", "connect_unity_catalog"), "UnityCatalog(url)"),
    **dict.fromkeys(("connect", "connect_catalog", "open_catalog"), "deltalog.connect(catalog=…)"),
}
"""Names of other libraries, and what to use instead."""

if not TYPE_CHECKING:  # so that type checkers report unknown names
    __getattr__, __dir__ = names_on_demand(__name__, _ORIGINS, meant=_MEANT)
