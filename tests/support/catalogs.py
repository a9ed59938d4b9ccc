"""Tables that tests create through a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.clock import now_ms
from deltalog.engine import LocalEngine
from deltalog.table_change import new_table
from deltalog.verbs.create import Create
from deltalog.verbs.do import make_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.catalogs import CatalogTable, Name, TableCatalog
    from deltalog.schema import StructType


def create(
    catalog: TableCatalog,
    name: Name,
    schema: StructType,
    properties: Mapping[str, str | None] | None = None,
    *,
    location: str | None = None,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] | None = None,
    description: str | None = None,
) -> CatalogTable:
    """Stage an empty table, write its version 0 and register it."""
    staged = catalog.stage(name, location)
    asked = staged.configuration(properties)
    wanted = new_table(
        schema,
        configuration={key: text for key, text in asked.items() if text is not None},
        partition_columns=partition_by,
        clustering_columns=cluster_by,
        description=description,
        features=staged.features,
        has_catalog=True,
        created_time_ms=now_ms(),
    )
    ran = make_table(Create(cluster_by), staged.context, wanted, LocalEngine())
    return catalog.register(staged, ran.committed.snapshot)
