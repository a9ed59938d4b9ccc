"""Clustering: only what is new is arranged, in groups that Delta Spark knows."""

from __future__ import annotations

import random
from typing import Any

import pytest

from deltalog._json import loads
from deltalog.errors import InvalidInputError
from deltalog.verbs.optimize import Cluster, Compact, CubeSizes
from tests.support.optimizing import IDS, OptimizedTable, numbered, run_options
from tests.support.statements import FEED, ROW_IDS, VECTORS

COLUMNS = {"id": "long", "x": "long", "y-new": "long", "s": "struct<z:long>"}
TINY = CubeSizes(full_bytes=1, target_bytes=1 << 30)


def cubes(table: OptimizedTable) -> set[str | None]:
    found = table.files().column("tags").to_pylist()
    return {None if tags is None else dict(tags)["ZCUBE_ID"] for tags in found}


def clustered(*columns: str, **options: Any) -> OptimizedTable:
    draw = random.Random(7)
    rows = [
        {"id": n, "x": draw.randrange(1000), "y-new": draw.randrange(1000)} for n in range(4000)
    ]
    table = OptimizedTable(COLUMNS, rows[:2000], rows[2000:], **options)
    table.cluster_by(*columns)
    return table


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


def test_one_cube_alone_stays() -> None:
    table = clustered("x", "y-new")
    table.optimize(Cluster)
    version = table.version
    assert table.optimize(Cluster).removed_sizes == ()
    assert table.version == version


def test_new_rows_join_a_cube_that_is_not_full() -> None:
    table = clustered("x", "y-new")
    table.optimize(Cluster)
    before = cubes(table)
    table.append(numbered(5000, 5010))
    done = table.optimize(Cluster)
    assert len(done.removed_sizes) == 2
    assert len(cubes(table)) == 1
    assert cubes(table) != before


def test_full_cubes_stay() -> None:
    table = clustered("x", "y-new")
    table.optimize(Cluster, sizes=TINY)
    before = cubes(table)
    table.append(numbered(5000, 5010))
    done = table.optimize(Cluster, sizes=TINY)
    assert len(done.removed_sizes) == 1
    assert len(cubes(table)) == 2
    assert before < cubes(table)


def test_other_columns_count_from_now_on_and_for_all_rows_if_asked() -> None:
    table = clustered("x", "y-new")
    table.optimize(Cluster)
    before = cubes(table)
    table.cluster_by("s.z")
    table.append(numbered(5000, 5010))
    done = table.optimize(Cluster)
    assert len(done.removed_sizes) == 1
    assert before < cubes(table)
    done = table.optimize(Cluster, full=True)
    assert len(done.removed_sizes) == 2
    assert table.actions("add")[0]["tags"]["ZCUBE_ZORDER_BY"] == '["s.z"]'
    assert table.info()["operationParameters"]["isFull"] is True


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
    table = OptimizedTable(COLUMNS, numbered(0, 2))
    with pytest.raises(InvalidInputError, match="set_clustering_columns"):
        table.optimize(Cluster)
    table.cluster_by("x")
    with pytest.raises(InvalidInputError, match="hilbert"):
        table.optimize(Cluster, curve="peano")
    with pytest.raises(InvalidInputError, match="cube sizes"):
        CubeSizes(full_bytes=0)
