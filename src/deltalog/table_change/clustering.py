"""The metadata domain of clustering columns, of a new table or of one that is altered.

Protocol: Clustered Table
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.column_mapping import physical_path
from deltalog.features.clustering import check_clustering_columns, clustering_action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.actions import DomainMetadata
    from deltalog.configuration import TableConfiguration
    from deltalog.schema.columns import Path


def clustering_domain(
    configuration: TableConfiguration, columns: Sequence[str | Path]
) -> DomainMetadata:
    """Return the metadata domain `delta.clustering` for these columns, by physical names.

    Raises:
        InvalidInputError: a column cannot be a clustering column.
    """
    paths = check_clustering_columns(
        columns, configuration.schema, configuration.partition_columns, configuration.properties
    )
    mode = configuration.column_mapping_mode
    return clustering_action([physical_path(configuration.schema, path, mode) for path in paths])
