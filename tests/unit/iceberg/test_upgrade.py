"""`optimize.upgrade_uniform` and `REORG … UPGRADE UNIFORM`: what it takes, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from pathlib import Path

VECTORS = {"delta.enableDeletionVectors": "true"}


def shown(path: Path) -> list[Any]:
    location = DeltaTable(path).sync_iceberg().metadata_location
    found: list[Any] = StaticTable.from_metadata(location).scan().to_arrow()["id"].to_pylist()
    return sorted(found)


def with_vectors(path: Path) -> Path:
    """A table of two files, of which one has a deletion vector."""
    for start in (0, 100):
        rows = pa.table({"id": pa.array(range(start, start + 100), pa.int64())})
        write_deltalake(path, rows, mode="append", configuration=VECTORS)
    DeltaTable(path).delete("id = 7")
    return path


def test_a_dry_run_says_what_it_takes(tmp_path: Path) -> None:
    path = with_vectors(tmp_path / "t")
    table = DeltaTable(path)
    sizes = {one["path"]: one["size_bytes"] for one in table.get_add_actions().to_pylist()}

    plan = table.optimize.upgrade_uniform(dry_run=True)

    assert (plan.num_files, plan.num_files_to_rewrite, plan.metrics) == (2, 1, None)
    assert plan.size_bytes_to_rewrite in sizes.values()
    assert plan.properties == {
        "delta.enableIcebergCompatV2": "true",
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "false",
        "delta.universalFormat.enabledFormats": "iceberg",
    }
    assert DeltaTable(path).version() == 2


def test_files_with_vectors_are_rewritten_and_no_others(tmp_path: Path) -> None:
    path = with_vectors(tmp_path / "t")
    before = set(DeltaTable(path).file_uris())

    done = DeltaTable(path).optimize.upgrade_uniform()

    assert done.metrics is not None
    assert done.metrics["numDeletedRowsPurged"] == 1
    assert len(before & set(DeltaTable(path).file_uris())) == 1
    assert shown(path) == [*range(7), *range(8, 200)]
    assert DeltaTable(path).optimize.upgrade_uniform(dry_run=True).properties == {}
    version = DeltaTable(path).version()
    DeltaTable(path).optimize.upgrade_uniform()
    assert DeltaTable(path).version() == version


def test_v3_rewrites_nothing(tmp_path: Path) -> None:
    path = with_vectors(tmp_path / "t")
    before = set(DeltaTable(path).file_uris())

    done = DeltaTable(path).optimize.upgrade_uniform(3)

    assert done.num_files_to_rewrite == 0
    assert set(DeltaTable(path).file_uris()) == before
    assert shown(path) == [*range(7), *range(8, 200)]
    # V2 takes no vectors: back again they are rewritten.
    back = DeltaTable(path).optimize.upgrade_uniform(2)
    assert back.num_files_to_rewrite == 1
    assert shown(path) == [*range(7), *range(8, 200)]


def test_what_cannot_be_is_refused_before_a_file_is_rewritten(tmp_path: Path) -> None:
    path = with_vectors(tmp_path / "t")
    optimize = DeltaTable(path).optimize
    with pytest.raises(InvalidInputError, match="expected one of 1, 2, 3"):
        optimize.upgrade_uniform(4)
    with pytest.raises(InvalidInputError, match="drop the feature"):
        optimize.upgrade_uniform(1)
    DeltaTable(path).alter.set_table_properties({"delta.enableRowTracking": "true"})
    with pytest.raises(InvalidInputError, match="without the field id"):
        DeltaTable(path).optimize.upgrade_uniform(3)
    assert DeltaTable(path).version() == 3


def test_the_statement_does_the_same(tmp_path: Path) -> None:
    path = with_vectors(tmp_path / "t")
    text = "REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))"

    (plan,) = deltalog.sql(f"{text} DRY RUN", t=path).to_arrow().to_pylist()
    assert (plan["numFiles"], plan["numFilesToRewrite"]) == (2, 1)
    (answer,) = deltalog.sql(text, t=path).to_arrow().to_pylist()

    assert answer["metrics"]["numDeletedRowsPurged"] == 1
    assert shown(path) == [*range(7), *range(8, 200)]
    with pytest.raises(InvalidInputError, match="leave WHERE out"):
        deltalog.sql(text.replace("APPLY", "WHERE id = 1 APPLY"), t=path)
