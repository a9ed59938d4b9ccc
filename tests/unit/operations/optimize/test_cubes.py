"""Cubes: which files an incremental clustering rewrites."""

from __future__ import annotations

from deltalog.operations.optimize import Cluster, CubeSizes
from tests.support.optimizing import (
    clustered,
    cubes,
    numbered,
)

TINY = CubeSizes(full_bytes=1, target_bytes=1 << 30)


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
