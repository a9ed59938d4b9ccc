"""Generate: manifests for engines that know no log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.transaction.maintenance.manifests import generate_symlink_manifest
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


ENABLED = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}


def _listed(table: DeltaTable) -> set[str]:
    directory = Path(table.table_uri) / "_symlink_format_manifest"
    texts = [path.read_text("utf-8") for path in directory.rglob("manifest")]
    return {line.removeprefix("file:") for text in texts for line in text.splitlines()}


@pytest.mark.parametrize("partition_by", [None, ["p"]])
def test_each_commit_updates_the_manifests_if_the_property_is_set(
    tmp_path: Path, partition_by: list[str] | None
) -> None:
    rows = [{"id": number, "p": "ab"[number % 2]} for number in range(4)]
    write_deltalake(tmp_path, rows, partition_by=partition_by, configuration=ENABLED)
    table = DeltaTable(tmp_path)
    changes: list[Callable[[], object]] = [
        lambda: write_deltalake(table, rows, mode="append"),
        lambda: table.update({"id": "id + 1"}, predicate="p = 'a'"),
        lambda: table.delete("p = 'b'"),
        table.optimize.compact,
        lambda: table.restore(1),
    ]
    for change in (lambda: None, *changes):
        change()
        assert _listed(table) == set(table.file_uris())


def test_the_property_of_an_existing_table_writes_its_manifests(tmp_path: Path) -> None:
    write_deltalake(tmp_path, [{"id": 1}])
    table = DeltaTable(tmp_path)
    assert not _listed(table)
    table.alter.set_table_properties(ENABLED)
    assert _listed(table) == set(table.file_uris())


def test_manifests_are_not_updated_for_deletion_vectors_and_that_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vectors = {"delta.enableDeletionVectors": "true"}
    write_deltalake(
        tmp_path, [{"id": number} for number in range(10)], configuration=ENABLED | vectors
    )
    table = DeltaTable(tmp_path)
    table.delete("id = 1")
    assert "files have deletion vectors" in caplog.text
    table.optimize.purge()
    assert _listed(table) == set(table.file_uris())


def test_a_branch_does_not_change_the_manifests(tmp_path: Path) -> None:
    write_deltalake(tmp_path, [{"id": 1}], configuration=ENABLED)
    table = DeltaTable(tmp_path)
    branch = table.branch("draft")
    write_deltalake(branch, [{"id": 2}], mode="append")
    assert _listed(table) == set(table.file_uris())
    branch.publish()
    table.update_incremental()
    assert len(_listed(table)) == 2
    assert _listed(table) == set(table.file_uris())
