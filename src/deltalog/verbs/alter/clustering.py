"""The verb that sets the clustering columns.

Protocol: Clustered Table
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from deltalog.column_mapping import physical_path
from deltalog.features.clustering import CLUSTERING_DOMAIN, clustering_columns
from deltalog.schema.columns import walk
from deltalog.table_change import clustering_domain
from deltalog.verbs.alter.staging import Alteration, change_features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.configuration import TableConfiguration
    from deltalog.schema.columns import Path
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True)
class SetClusteringColumns(Alteration):
    """Set the clustering columns; existing files keep their order until they are rewritten.

    Args:
        columns: names or paths; None or an empty sequence ends clustering.
    """

    columns: Sequence[str | Path] | None
    name: ClassVar[str] = "CLUSTER BY"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Set the metadata domain, and add the table feature.

        Raises:
            InvalidInputError: the table is partitioned, or a column has no min and max statistics.
        """
        snapshot = transaction.snapshot
        known = {} if snapshot is None else dict(snapshot.domain_metadata)
        before = clustering_columns({**known, **transaction.domains}) or ()
        if not self.columns and not transaction.configuration.supports("clustering"):
            return {}
        configuration = change_features(transaction, ["clustering"])
        domain = clustering_domain(configuration, self.columns or ())
        transaction.set_domain(domain)
        after = clustering_columns({CLUSTERING_DOMAIN: domain}) or ()
        return {
            "oldClusteringColumns": ",".join(_logical(configuration, path) for path in before),
            "newClusteringColumns": ",".join(_logical(configuration, path) for path in after),
        }


def _logical(configuration: TableConfiguration, path: Path) -> str:
    for found, _ in walk(configuration.schema):
        mode = configuration.column_mapping_mode
        if physical_path(configuration.schema, found, mode) == path:
            return ".".join(found)
    return ".".join(path)
