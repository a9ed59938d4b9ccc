"""Clustering columns are chosen."""

from __future__ import annotations

import pytest

from deltalog._util.json import loads
from deltalog.errors import InvalidInputError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations import alter
from deltalog.operations.engine import LocalEngine
from deltalog.transaction import PendingTransaction
from tests.support.altering import apply, make, mapped, told


@pytest.mark.protocol("B-52")
def test_clustering_columns() -> None:
    table = mapped()
    apply(table, alter.RenameColumn("v", "w"))
    after = apply(table, alter.SetClusteringColumns(["W", "s.x"]))
    assert after.configuration.supports("clustering")
    domain = loads(str(after.domain_metadata["delta.clustering"].configuration), "domain")
    assert domain == {
        "clusteringColumns": [["v"], ["s", "x"]],
        "domainName": "delta.clustering",
    }
    assert told(table) == (
        "CLUSTER BY",
        {"oldClusteringColumns": "", "newClusteringColumns": "w,s.x"},
    )
    for path in ("w", "s", "s.x"):
        with pytest.raises(InvalidInputError, match="clustered by it"):
            apply(table, alter.DropColumns([path]))
    apply(table, alter.SetClusteringColumns(None))
    assert told(table)[1] == {"oldClusteringColumns": "w,s.x", "newClusteringColumns": ""}


def test_a_table_without_clusters_needs_no_feature_to_stay_so() -> None:
    table = make()
    snapshot = load_snapshot(utc_context(table.store))
    pending = PendingTransaction(snapshot.context, snapshot, operation="")
    alter.SetClusteringColumns(None).stage(pending, LocalEngine())
    assert pending.is_empty
