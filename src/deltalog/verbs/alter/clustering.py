"""The columns by which new files keep rows close.

Protocol: Clustered Table
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.column_mapping import physical_path
from deltalog.features.clustering import (
    CLUSTERING_DOMAIN,
    check_clustering_columns,
    clustering_action,
    clustering_columns,
)
from deltalog.schema.columns import walk
from deltalog.verbs.alter.staging import change_features, record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.actions import DomainMetadata
    from deltalog.configuration import TableConfiguration
    from deltalog.schema.columns import Path
    from deltalog.transaction import PendingTransaction


def set_clustering_columns(
    pending: PendingTransaction, columns: Sequence[str | Path] | None
) -> None:
    """Cluster by other columns from now on; files that are there stay until they are rewritten.

    Args:
        pending: the transaction.
        columns: names or paths; None or none clusters new files no longer.

    Raises:
        InvalidInputError: the table is partitioned, or a column has no minimum and maximum.
    """
    known = {} if pending.snapshot is None else dict(pending.snapshot.domain_metadata)
    before = clustering_columns({**known, **pending.domains}) or ()
    if not columns and not pending.configuration.supports("clustering"):
        return
    configuration = change_features(pending, ["clustering"])
    domain = clustering_domain(configuration, columns or ())
    pending.set_domain(domain)
    after = clustering_columns({CLUSTERING_DOMAIN: domain}) or ()
    record(
        pending,
        "CLUSTER BY",
        oldClusteringColumns=",".join(_logical(configuration, path) for path in before),
        newClusteringColumns=",".join(_logical(configuration, path) for path in after),
    )


def clustering_domain(
    configuration: TableConfiguration, columns: Sequence[str | Path]
) -> DomainMetadata:
    """The domain that says by which columns a table is clustered; creating one sets it too.

    Raises:
        InvalidInputError: a column cannot cluster.
    """
    paths = check_clustering_columns(
        columns, configuration.schema, configuration.partition_columns, configuration.properties
    )
    mode = configuration.column_mapping_mode
    return clustering_action([physical_path(configuration.schema, path, mode) for path in paths])


def _logical(configuration: TableConfiguration, path: Path) -> str:
    for found, _ in walk(configuration.schema):
        mode = configuration.column_mapping_mode
        if physical_path(configuration.schema, found, mode) == path:
            return ".".join(found)
    return ".".join(path)
