"""Clustering: only what is new is arranged, in groups that Delta Spark knows."""

from __future__ import annotations

import pytest

from deltalog._util.json import loads
from deltalog.errors import InvalidInputError
from deltalog.operations.optimize import Cluster, Compact, CubeSizes
from tests.support.optimizing import (
    CLUSTERED,
    IDS,
    OptimizedTable,
    clustered,
    cubes,
    numbered,
    run_options,
)
from tests.support.statements import FEED, ROW_IDS, VECTORS


@pytest.mark.protocol("B-52", "ADD-01")
@pytest.mark.parametrize("curve", ["hilbert", "zorder"])
def test_files_become_narrow_and_say_who_clustered_them(curve: str) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    table = clustered("x", "y-new", properties={**mapped, **ROW_IDS, **FEED})
    before = table.rows("id", *IDS)
    table.optimize(Cluster, curve=curve, options=run_options(8000))
    assert table.rows("id", *IDS) == before
    assert table.changes() == []
    adds = table.actions("add")
    assert {add["clusteringProvider"] for add in adds} == {"liquid"}
    assert {add["tags"]["ZCUBE_ZORDER_BY"] for add in adds} == {'["x","`y-new`"]'}
    assert len(cubes(table)) == 1
    spans = [
        max(loads(add["stats"])["maxValues"][name] - low for name, low in lows.items())
        for add in adds
        if (lows := dict(list(loads(add["stats"])["minValues"].items())[1:3]))
    ]
    assert sum(spans) / len(spans) < 700
    assert table.info()["operationParameters"] == {
        "predicate": "[]",
        "zOrderBy": "[]",
        "clusterBy": '["x","`y-new`"]',
        "auto": False,
        "isFull": False,
    }


def test_compact_clusters_a_clustered_table() -> None:
    table = clustered("x", properties=VECTORS)
    table.delete("id < 10")
    before = table.rows()
    table.optimize(Compact)
    assert table.rows() == before
    (file,) = table.physical_rows("x")
    assert file == sorted(file)
    assert len(cubes(table) - {None}) == 1


def test_a_table_without_clustering_columns_is_refused() -> None:
    table = OptimizedTable(CLUSTERED, numbered(0, 2))
    with pytest.raises(InvalidInputError, match="set_clustering_columns"):
        table.optimize(Cluster)
    table.cluster_by("x")
    with pytest.raises(InvalidInputError, match="hilbert"):
        table.optimize(Cluster, curve="peano")
    with pytest.raises(InvalidInputError, match="cube sizes"):
        CubeSizes(full_bytes=0)
