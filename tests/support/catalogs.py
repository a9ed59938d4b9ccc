"""Tables that tests create through a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog._util.clock import now_ms
from deltalog.operations.create import Create
from deltalog.operations.engine import LocalEngine
from deltalog.operations.execute import make_table
from deltalog.protocol.table_change.change import new_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.catalogs import CatalogTable, Name, StagedTable, TableCatalog
    from deltalog.log.snapshot import Snapshot
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
    snapshot = first_version(
        staged,
        schema,
        properties,
        partition_columns=partition_by,
        clustering_columns=cluster_by,
        description=description,
    )
    return catalog.register(staged, snapshot)


def first_version(
    staged: StagedTable,
    schema: StructType,
    properties: Mapping[str, str | None] | None = None,
    **more: Any,
) -> Snapshot:
    """Write version 0 of a staged table."""
    asked = staged.configuration(properties)
    wanted = new_table(
        schema,
        configuration={key: text for key, text in asked.items() if text is not None},
        features=staged.features,
        has_catalog=True,
        created_time_ms=now_ms(),
        **more,
    )
    verb = Create(more.get("clustering_columns"))
    return make_table(verb, staged.context, wanted, LocalEngine()).committed.snapshot
