"""Create a table, or replace a table with an empty one.

`table_change` decides which protocol and metadata a table may have.

Protocol: Change Metadata, Domain Metadata
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from deltalog._util.argument_types import kind_of
from deltalog._util.previews import keeps_nanoseconds
from deltalog.errors import InvalidInputError
from deltalog.operations.operation import Nothing, Operation
from deltalog.operations.write import RowsWritten, Write
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features.clustering import CLUSTERING_DOMAIN
from deltalog.protocol.table_change.change import changed_table
from deltalog.protocol.table_change.checks import clustering_domain, is_set_by_writers
from deltalog.schema import StructType, as_fields, from_arrow_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.operations.engine import Engine
    from deltalog.transaction import PendingTransaction


# The prefix of the properties of Unity Catalog, for example of the table's id.
_UNITY_CATALOG: Final = "io.unitycatalog."
# The other properties that Unity Catalog requires of its managed tables.
_OF_CATALOGS: Final = frozenset(
    {
        TableProperties.checkpoint_policy.key,
        TableProperties.enable_deletion_vectors.key,
        TableProperties.checkpoint_write_stats_as_json.key,
        TableProperties.checkpoint_write_stats_as_struct.key,
    }
)


def as_schema(schema: Any) -> StructType:
    """Return a schema from a Schema, an Arrow schema, or what `as_fields` accepts.

    Raises:
        InvalidInputError: the argument is of another type.
    """
    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, list | tuple | Mapping | str):
        return StructType(as_fields("DeltaTable.create", "schema", schema))
    if isinstance(schema, pa.Schema) or hasattr(schema, "__arrow_c_schema__"):
        try:
            arrow = schema if isinstance(schema, pa.Schema) else pa.schema(schema)
        except (pa.ArrowInvalid, TypeError):  # of a field or a type
            raise _no_schema(schema) from None
        return from_arrow_schema(arrow, declared=True, fine=keeps_nanoseconds())
    raise _no_schema(schema)


def _no_schema(given: Any) -> InvalidInputError:
    """Return the error about an argument that is no schema, with what to pass instead."""
    hint = "deltalog.sql('CREATE TABLE delta.`/path` (id BIGINT)') takes SQL"
    if type(given).__name__ == "Field":
        hint = "pass a list with the field"
    elif hasattr(given, "columns"):
        hint = "write_deltalake(location, data) makes a table of rows"
    return InvalidInputError(
        f"cannot use {kind_of(given)} as a schema: expected a deltalog.Schema, a list of fields, "
        "such as [Field('id', 'long')], a dictionary, such as {'id': 'long'}, a string, such as "
        f"'id long, name string', or an Arrow schema; {hint}"
    )


@dataclass(frozen=True, slots=True)
class Create(Operation[Nothing]):
    """Create a table with the transaction's configuration.

    Args:
        clustering_columns: names or paths of columns; None means no clustering.
    """

    clustering_columns: Sequence[str | tuple[str, ...]] | None = None
    name: ClassVar[str] = "CREATE TABLE"

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Nothing:
        """Stage the clustering columns and the operation parameters."""
        del engine
        _stage_new(transaction, self.clustering_columns)
        return Nothing()


@dataclass(frozen=True, slots=True)
class Replace(Operation[Nothing]):
    """Replace schema and properties of a table, and remove its rows. The history is preserved.

    Args:
        wanted: the configuration that a new table would have.
        clustering_columns: names or paths of columns; None means no clustering.
    """

    wanted: TableConfiguration
    clustering_columns: Sequence[str | tuple[str, ...]] | None = None
    name: ClassVar[str] = "CREATE OR REPLACE TABLE"

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Nothing:
        """Set the configuration, and remove all files."""
        del engine
        wanted, snapshot = self.wanted, transaction.read_snapshot
        changed = changed_table(
            transaction.configuration,
            schema=wanted.schema,
            partition_columns=wanted.metadata.partition_columns,
            configuration=_replaced_properties(transaction.configuration, wanted),
            protocol=wanted.protocol,
            replaces_data=True,
        )
        # Replace the name and the description of the old table, even if the new table has none.
        metadata = replace(
            changed.metadata, name=wanted.metadata.name, description=wanted.metadata.description
        )
        transaction.set_configuration(TableConfiguration(changed.protocol, metadata))
        transaction.record_read(None)
        transaction.remove_files(snapshot.files(), data_change=True)
        if self.clustering_columns is None and CLUSTERING_DOMAIN in snapshot.domain_metadata:
            transaction.remove_domain(CLUSTERING_DOMAIN)
        _stage_new(transaction, self.clustering_columns)
        return Nothing()


@dataclass(frozen=True, slots=True)
class WithRows(Operation[RowsWritten]):
    """Create or replace a table, and write its rows in the same version.

    Args:
        made: the operation that creates or replaces the table.
        write: the operation that writes the rows.
    """

    made: Create | Replace
    write: Write
    doing: ClassVar[str] = "writing"

    @property
    def name(self) -> str:  # type: ignore[override]  # depends on `made`
        """The name of the operation in the history, as in Delta Spark."""
        return f"{self.made.name} AS SELECT"

    @property
    def is_repeatable(self) -> bool:
        """Whether the rows can be read again."""
        return self.write.is_repeatable

    def stage(self, transaction: PendingTransaction, engine: Engine) -> RowsWritten:
        """Stage the table, then its rows."""
        self.made.stage(transaction, engine)
        return self.write.stage(transaction, engine)


def _stage_new(
    transaction: PendingTransaction,
    clustering_columns: Sequence[str | tuple[str, ...]] | None,
) -> None:
    configuration = transaction.configuration
    if clustering_columns is not None:
        transaction.set_domain(clustering_domain(configuration, clustering_columns))
    metadata = configuration.metadata
    transaction.parameters = {
        "isManaged": "true" if configuration.is_catalog_managed else "false",
        "description": metadata.description,
        "partitionBy": list(metadata.partition_columns),
        "clusterBy": [_shown(column) for column in clustering_columns or ()],
        "properties": dict(metadata.configuration),
    }


def _replaced_properties(current: TableConfiguration, wanted: TableConfiguration) -> dict[str, str]:
    """Return the properties of the table after it is replaced.

    They are the wanted properties, without those that only writers set. In-commit timestamps remain
    enabled, because the history is preserved (requirement B-22). Properties that the table's
    catalog requires do not change, unless the caller sets them.
    """
    key = TableProperties.enable_in_commit_timestamps.key
    kept = {key: "true"} if current.in_commit_timestamps is not None else {}
    if current.is_catalog_managed:
        kept |= {
            name: text
            for name, text in current.metadata.configuration.items()
            if name in _OF_CATALOGS or name.startswith(_UNITY_CATALOG)
        }
    asked = {
        name: text
        for name, text in wanted.metadata.configuration.items()
        if not is_set_by_writers(name)
    }
    return {**kept, **asked}


def _shown(column: str | tuple[str, ...]) -> str:
    return column if isinstance(column, str) else ".".join(column)
