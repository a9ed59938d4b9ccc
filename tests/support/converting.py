"""Parquet files without a log, and what converting makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq  # writes files as other writers do

from deltalog._util.json import loads
from deltalog.log.context import utc_context
from deltalog.operations.convert import (
    Conversion,
    Convert,
    configuration_in_place,
    plan_conversion,
)
from deltalog.operations.engine import LocalEngine
from deltalog.operations.execute import stage
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.table_change.change import new_table
from deltalog.schema import Field, StructType
from deltalog.transaction import PendingTransaction
from deltalog.transaction.commit import commit
from deltalog.transaction.properties import CommitOptions
from tests.support.aging import NO_HOOKS, AgingTable


def put(table: AgingTable, path: str, data: Mapping[str, Any] | pa.Table, **options: Any) -> None:
    """Write a Parquet file as another writer does."""
    out = BytesIO()
    pq.write_table(data if isinstance(data, pa.Table) else pa.table(dict(data)), out, **options)
    table.kept.put(path, out.getvalue())


def parquet(*paths: str, **columns: Sequence[Any]) -> AgingTable:
    """A directory of such files."""
    table = AgingTable()
    for path in paths:
        put(table, path, columns or {"id": [1, 2]})
    return table


def convert(
    table: AgingTable,
    fields: Sequence[Field] | None = None,
    *,
    strategy: Any = None,
    collect_stats: bool = True,
    properties: Mapping[str, str] | None = None,
) -> Conversion:
    """As the facade does it."""
    partition_by = None if fields is None else StructType(fields)
    found = plan_conversion(
        utc_context(table.store), partition_by=partition_by, partition_strategy=strategy
    )
    pending = PendingTransaction(
        utc_context(table.store),
        None,
        operation="CONVERT",
        configuration=_configured(found, properties or {}),
    )
    stage(Convert(conversion=found, collect_stats=collect_stats), pending, LocalEngine())
    commit(pending, CommitOptions(hooks=NO_HOOKS))
    return found


def _configured(found: Conversion, properties: Mapping[str, str]) -> TableConfiguration:
    """The table that they are to become."""
    return configuration_in_place(
        new_table(
            found.schema,
            partition_columns=found.partition_columns,
            configuration=properties,
            created_time_ms=1,
        )
    )


def stats(table: AgingTable) -> list[Any]:
    """The statistics of live files."""
    texts: list[Any] = table.snapshot().files(["stats"]).column("stats").to_pylist()
    return [loads(text, "") for text in texts]


def types(table: AgingTable) -> dict[str, str]:
    """The types of columns."""
    return {field.name: str(field.type) for field in table.snapshot().configuration.schema}
