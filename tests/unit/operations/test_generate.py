"""Generate: manifests for engines that know no log."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.operations.generate import generate_symlink_manifest
from tests.support.aging import AgingStore, AgingTable


def manifests(table: AgingTable) -> dict[str, list[str]]:
    return {
        path: data.decode().splitlines()
        for path, data in table.kept.files.items()
        if path.startswith("_symlink_format_manifest/")
    }


def test_one_manifest_without_partitions() -> None:
    table = AgingTable(AgingStore(root="/tables/a b"))
    table.create({"id": [1]})
    table.append({"id": [2]})
    assert generate_symlink_manifest(table.snapshot()) == ["_symlink_format_manifest/manifest"]
    (lines,) = manifests(table).values()
    assert sorted(lines) == [f"file:/tables/a b/{path}" for path in table.data_files()[1:]]


def test_a_manifest_for_each_partition() -> None:
    table = AgingTable(AgingStore(root="s3://bucket/t"))
    table.create({"id": [1, 2, 3], "p": ["a b", "x/y", None]}, partition_by=["p"])
    table.append({"id": [4], "p": ["a b"]})
    generate_symlink_manifest(table.snapshot())
    found = manifests(table)
    start = "_symlink_format_manifest"
    assert set(found) == {
        f"{start}/p=a b/manifest",
        f"{start}/p=x%2Fy/manifest",
        f"{start}/p=__HIVE_DEFAULT_PARTITION__/manifest",
    }
    assert len(found[f"{start}/p=a b/manifest"]) == 2
    (line,) = found[f"{start}/p=x%2Fy/manifest"]
    assert line.startswith("s3://bucket/t/p=x%2Fy/part-")


def test_manifests_of_partitions_that_are_no_more_go() -> None:
    table = AgingTable()
    table.create({"id": [1, 2], "p": [1, 2]}, partition_by=["p"])
    generate_symlink_manifest(table.snapshot())
    table.kept.files["_symlink_format_manifest/README"] = b""
    table.delete("p = 1")
    generate_symlink_manifest(table.snapshot())
    assert set(manifests(table)) == {
        "_symlink_format_manifest/p=2/manifest",
        "_symlink_format_manifest/README",
    }


def test_vacuum_leaves_manifests_alone() -> None:
    table = AgingTable()
    table.create({"id": [1]})
    generate_symlink_manifest(table.snapshot())
    table.wait(30)
    assert table.vacuum(mode="full") == []


def test_deleted_rows_would_show() -> None:
    table = AgingTable()
    table.create({"id": [1, 2]}, properties={"delta.enableDeletionVectors": "true"})
    table.delete("id = 1")
    with pytest.raises(InvalidInputError, match="deletion vectors"):
        generate_symlink_manifest(table.snapshot())
