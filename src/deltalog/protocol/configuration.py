"""Protocol, metadata and properties of a table, checked against each other.

This is the only module that interprets a table's protocol and properties; other packages use it to
determine what is enabled. `features.support` raises for an unsupported table only when its data is
read, so the schema and protocol of any table can be shown.

Protocol: Table Features, Change Metadata, Column Mapping
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalog._util.cached import cached_property
from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError, InvalidMetadataError
from deltalog.protocol import column_mapping
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.features import in_commit_timestamps, row_ids
from deltalog.protocol.features.protocol_change import supported_features
from deltalog.protocol.features.registry import FEATURES, canonical_name
from deltalog.schema import Field, StructType, parse_schema, to_arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalog.protocol.actions.model import Metadata, Protocol
    from deltalog.protocol.features.in_commit_timestamps import InCommitTimestamps


@dataclass(frozen=True)
class TableConfiguration:
    """Protocol, metadata and enabled features of one version; attributes are computed on access.

    Raises:
        InvalidMetadataError: on access, if protocol, schema and properties contradict each other.
    """

    protocol: Protocol
    metadata: Metadata

    @cached_property
    def schema(self) -> StructType:
        """The logical schema."""
        return parse_schema(self.metadata.schema_string)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The logical schema as an Arrow schema."""
        return to_arrow_schema(self.schema)

    @cached_property
    def properties(self) -> TableProperties:
        """The table's properties, typed."""
        return TableProperties(self.metadata.configuration)

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        """Logical names of the partition columns, spelled as in the schema."""
        return tuple(field.name for field in self.partition_schema.fields)

    @cached_property
    def partition_schema(self) -> StructType:
        """The partition columns, in the order of partitioning."""
        return StructType([self._top_level(name) for name in self.metadata.partition_columns])

    @cached_property
    def data_schema(self) -> StructType:
        """The columns that are stored in data files, in schema order."""
        partitioned = set(self.partition_columns)
        return StructType([field for field in self.schema if field.name not in partitioned])

    @property
    def data_columns(self) -> tuple[str, ...]:
        """Logical names of the columns that are stored in data files."""
        return self.data_schema.names

    @cached_property
    def features(self) -> dict[str, str]:
        """All supported features: current name → name in the protocol.

        For a protocol without feature lists, these are the features that its versions imply.
        """
        return supported_features(self.protocol)

    def supports(self, feature: str) -> bool:
        """Return whether the protocol has the feature, by its name or an alias."""
        return canonical_name(feature) in self.features

    def is_active(self, feature: str) -> bool:
        """Return whether the feature is supported, and enabled by properties or schema.

        Protocol: Active Features
        """
        if not self.supports(feature):
            return False
        # "A feature being enabled does not imply that it is active."
        known = FEATURES.get(canonical_name(feature))
        if known is None or known.enabled_by is None:
            return True
        return known.enabled_by(self.properties, self.schema)

    @cached_property
    def column_mapping_mode(self) -> column_mapping.Mode:
        """The column mapping mode.

        The property has an effect only with reader version 2 or the table feature (requirement
        CM-02). The feature counts even if a table lists it only as a writer feature.
        """
        mode = column_mapping.Mode.parse(
            self.metadata.configuration.get(column_mapping.MODE_PROPERTY)
        )
        # "The table property should only be honored if the table's protocol has reader and writer
        # versions and/or table features that support the `columnMapping` table feature."
        allowed = self.protocol.min_reader_version == 2 or self.supports("columnMapping")
        return mode if allowed else column_mapping.Mode.NONE

    @cached_property
    def physical_schema(self) -> StructType:
        """The schema with the names that data files, partition values and statistics use.

        Raises:
            InvalidMetadataError: a field has no id or physical name, or two fields have the same.
        """
        column_mapping.validate(self.schema, self.column_mapping_mode)
        return column_mapping.to_physical_schema(self.schema, self.column_mapping_mode)

    @cached_property
    def physical_partition_columns(self) -> tuple[str, ...]:
        """The keys of `partitionValues`, in the order of partitioning."""
        return column_mapping.physical_names(
            self.schema, self.partition_columns, self.column_mapping_mode
        )

    @cached_property
    def physical_stats_columns(self) -> list[tuple[str, ...]] | None:
        """The physical paths for `delta.dataSkippingStatsColumns`; None if it is not set."""
        chosen = self.properties.data_skipping_stats_columns
        if chosen is None:
            return None
        found = []
        for column in chosen:
            with contextlib.suppress(InvalidInputError):  # the column was dropped
                found.append(
                    column_mapping.physical_path(self.schema, column, self.column_mapping_mode)
                )
        return found

    @property
    def may_have_deletion_vectors(self) -> bool:
        """Whether files may have deletion vectors; if False, a vector in the log is an error."""
        return self.supports("deletionVectors")

    @property
    def writes_deletion_vectors(self) -> bool:
        """Whether commands may write deletion vectors instead of rewriting files."""
        return self.is_active("deletionVectors")

    @property
    def optimizes_writes(self) -> bool:
        """Whether writers group rows by partition before they write them."""
        wanted = self.properties.optimize_write
        return bool(self.properties.auto_optimize if wanted is None else wanted)

    @property
    def change_data_feed_enabled(self) -> bool:
        """Whether this version records row-level changes."""
        return self.is_active("changeDataFeed")

    @cached_property
    def row_id_dialect(self) -> row_ids.Dialect | None:
        """How the log stores row ids, or None if the table has no row ids."""
        return row_ids.dialect_of(self.features)

    @property
    def row_ids_enabled(self) -> bool:
        """Whether every row has a stable id."""
        return row_ids.is_enabled(self.row_id_dialect, self.properties)

    @property
    def row_id_column(self) -> str | None:
        """The hidden column of data files that stores the row ids of moved rows."""
        return row_ids.row_id_column(self.row_id_dialect, self.properties)

    @property
    def row_commit_version_column(self) -> str | None:
        """The hidden column of data files that stores the commit versions of moved rows."""
        return row_ids.row_commit_version_column(self.row_id_dialect, self.properties)

    @cached_property
    def in_commit_timestamps(self) -> InCommitTimestamps | None:
        """The first version with an in-commit timestamp, and its time; None if not enabled."""
        return in_commit_timestamps.enablement(
            self.properties, supported=self.supports("inCommitTimestamp")
        )

    @property
    def is_catalog_managed(self) -> bool:
        """Whether a catalog decides which commits are valid."""
        return self.supports("catalogManaged")

    def _top_level(self, name: str) -> Field:
        # Names are case-insensitive. If two names differ only in case, prefer the exact match.
        exact = [field for field in self.schema if field.name == name]
        folded = [field for field in self.schema if name_key(field.name) == name_key(name)]
        found = exact or folded
        if len(found) != 1:
            raise InvalidMetadataError(
                f"partitionColumns: expected columns of the schema, found {name!r}; "
                f"the columns are {', '.join(self.schema.names)}"
            )
        return found[0]
