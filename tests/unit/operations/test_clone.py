"""Clone: the same rows in another table, by name or by copy."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog._util.paths import FileInfo, canonical_path, decode_path, is_absolute
from deltalog.errors import DeltaError, InvalidInputError, UnsafePathError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations import alter
from deltalog.operations.clone import Clone, Cloned, cloned_configuration
from deltalog.operations.engine import LocalEngine
from deltalog.operations.execute import make_table
from deltalog.storage import open_store
from deltalog.testing import CountingStore, FaultyStore, Harm, InjectedFault
from deltalog.transaction.properties import CommitOptions
from tests.support.aging import FEATURES, NO_HOOKS, AgingStore, AgingTable
from tests.support.contexts import moved

MAPPED = {"delta.columnMapping.mode": "name"}
ICT = {"delta.enableInCommitTimestamps": "true"}
ROW_ID = "_metadata.row_id"


class Bucket:
    """Several tables' files, so that one can name those of another."""

    def __init__(self) -> None:
        self.stores: dict[str, NeighbourStore] = {}

    def table(self, name: str) -> AgingTable:
        store = NeighbourStore(root=f"s3://bucket/{name}")
        store.bucket = self
        self.stores[store.root] = store
        return AgingTable(store)


class NeighbourStore(AgingStore):
    """A store that finds absolute paths in the tables beside it."""

    bucket: Bucket

    def read(self, path: str) -> bytes:
        """As `Store`."""
        if is_absolute(path):
            for root, store in self.bucket.stores.items():
                if path.startswith(f"{root}/"):
                    return store.read(canonical_path(path, root))
        return super().read(path)

    def stat(self, path: str) -> FileInfo:
        """As `Store`."""
        return FileInfo(path, len(self.read(path)), self.times_ms.get(path, 0))


def clone(
    source: Snapshot,
    target: AgingTable,
    *,
    is_shallow: bool,
    allows_foreign_files: bool = False,
    properties: dict[str, str] | None = None,
) -> Cloned:
    """As the facade does it: the first time a new table, then a version of it."""
    verb = Clone(
        source=source,
        is_shallow=is_shallow,
        properties=properties,
        allows_foreign_files=allows_foreign_files,
    )
    return target.do(verb) if target.kept.files else clone_new(verb, target)


def source_in(bucket: Bucket, properties: dict[str, str]) -> AgingTable:
    table = bucket.table("a b")
    table.create(
        {"id": list(range(6000)), "p": ["x y", "z", None] * 2000},
        partition_by=["p"],
        properties=properties,
    )
    table.delete("id % 7 = 0 and id > 10")
    table.delete("id = 3")
    return table


KINDS = pytest.mark.parametrize("is_shallow", [True, False], ids=["shallow", "deep"])


@pytest.mark.protocol("D-45")
@KINDS
@pytest.mark.parametrize(
    "properties",
    [{}, FEATURES, FEATURES | MAPPED, FEATURES | ICT],
    ids=["plain", "features", "mapped", "timed"],
)
def test_a_clone_has_the_rows(properties: dict[str, str], *, is_shallow: bool) -> None:
    bucket = Bucket()
    source = source_in(bucket, properties)
    target = bucket.table("copy")
    clone(source.snapshot(), target, is_shallow=is_shallow)
    assert target.rows() == source.rows()
    target.append({"id": [-1], "p": ["new"]})
    target.delete("id % 5 = 0")
    assert len(target.rows()) < len(source.rows())
    assert target.rows(0) == source.rows()
    own = target.snapshot().metadata
    assert own.id != source.snapshot().metadata.id
    assert own.schema_string == source.snapshot().metadata.schema_string


def test_a_shallow_clone_copies_nothing() -> None:
    bucket = Bucket()
    source, target = source_in(bucket, FEATURES), bucket.table("copy")
    cloned = clone(source.snapshot(), target, is_shallow=True)
    assert target.data_files() == []
    assert (cloned.num_copied_files, cloned.num_source_files) == (0, 3)
    files = target.snapshot().files()
    assert all(str(path).startswith("s3://bucket/a%20b/p=") for path in files["path"].to_pylist())
    vectors: list[Any] = files["deletionVector"].to_pylist()
    places = {found["storageType"] for found in vectors if found is not None}
    assert places <= {"p", "i"}
    assert "p" in places


@pytest.mark.protocol("D-45")
def test_local_files_are_named_as_delta_spark_knows_them(tmp_path: Path) -> None:
    """With `file:///x` it reads them, and fails to delete rows of them."""
    write_deltalake(tmp_path / "a b", pa.table({"id": [1, 2]}))
    source = load_snapshot(utc_context(open_store(tmp_path / "a b")))
    target = AgingTable()
    target.store = open_store(tmp_path / "copy")
    clone_new(Clone(source=source, is_shallow=True), target)
    (path,) = target.snapshot().files(["path"]).column("path").to_pylist()
    assert str(path).startswith(f"file:{tmp_path}/a%20b/part-")
    assert target.rows() == [(1,), (2,)]


@pytest.mark.protocol("D-45")
def test_vacuum_of_a_clone_leaves_the_source_alone() -> None:
    bucket = Bucket()
    source, target = source_in(bucket, FEATURES), bucket.table("copy")
    clone(source.snapshot(), target, is_shallow=True)
    target.delete("p = 'z'")
    target.wait(30)
    before = dict(source.kept.files)
    assert target.vacuum(mode="full") == []
    assert target.vacuum(mode="lite") == []
    assert source.kept.files == before


def test_a_deep_clone_needs_its_source_no_more() -> None:
    bucket = Bucket()
    source, target = source_in(bucket, FEATURES), bucket.table("copy")
    expected = source.rows()
    cloned = clone(source.snapshot(), target, is_shallow=False)
    assert cloned.num_copied_files == len(target.data_files())
    assert cloned.copied_bytes == sum(len(target.kept.files[path]) for path in target.data_files())
    source.kept.files.clear()
    assert target.rows() == expected


def test_a_deep_clone_of_a_shallow_one_brings_the_files_home() -> None:
    bucket = Bucket()
    source, middle, target = source_in(bucket, FEATURES), bucket.table("m"), bucket.table("t")
    expected = source.rows()
    clone(source.snapshot(), middle, is_shallow=True)
    with pytest.raises(UnsafePathError, match="allow_foreign_files"):
        clone(middle.snapshot(), target, is_shallow=False)
    clone(middle.snapshot(), target, is_shallow=False, allows_foreign_files=True)
    source.kept.files.clear()
    middle.kept.files.clear()
    assert target.rows() == expected
    assert target.vacuum(mode="full", retention_hours=0, enforce_retention_duration=False) == []


@KINDS
def test_cloned_again_only_the_difference_is_added(*, is_shallow: bool) -> None:
    bucket = Bucket()
    source, target = source_in(bucket, FEATURES), bucket.table("copy")
    clone(source.snapshot(), target, is_shallow=is_shallow)
    source.append({"id": [77_777], "p": ["z"]})
    source.delete("p = 'x y'")
    target.append({"id": [-5], "p": ["own"]})
    counted = CountingStore(source.kept)
    snapshot = source.snapshot()
    moved(snapshot, store=counted)
    again = clone(snapshot, target, is_shallow=is_shallow)
    assert target.rows() == source.rows()
    assert (again.num_added_files, again.num_removed_files) == (1, 2)
    assert again.num_copied_files == (0 if is_shallow else 1)
    assert counted.counts.get("read", 0) == again.num_copied_files
    nothing = clone(source.snapshot(), target, is_shallow=is_shallow)
    assert (nothing.num_added_files, nothing.num_removed_files, nothing.num_copied_files) == (
        0,
    ) * 3


def test_copies_of_an_attempt_that_failed_are_used() -> None:
    bucket = Bucket()
    source, target = source_in(bucket, FEATURES), bucket.table("copy")
    target.store = FaultyStore(
        target.kept, InjectedFault(verb="put_if_absent", path="_delta_log", harm=Harm.CRASH)
    )
    with pytest.raises(DeltaError):
        clone(source.snapshot(), target, is_shallow=False)
    left = len(target.data_files())
    assert left
    target.store = target.kept
    other = bucket.table("other")
    other.kept.files |= target.kept.files
    again = clone_new(Clone(source=source.snapshot(), is_shallow=False), other)
    assert again.num_copied_files == 0
    assert other.rows() == source.rows()


def clone_new(verb: Clone, target: AgingTable) -> Cloned:
    done = make_table(
        verb,
        utc_context(target.store),
        cloned_configuration(verb.source.configuration, properties=verb.properties),
        LocalEngine(),
        CommitOptions(hooks=NO_HOOKS),
    )
    assert done.value is not None
    return done.value


def test_another_file_of_the_same_name_is_not_taken_for_a_copy() -> None:
    bucket = Bucket()
    source, target = source_in(bucket, {}), bucket.table("copy")
    (taken, *_) = map(decode_path, map(str, source.snapshot().files(["path"])["path"].to_pylist()))
    target.kept.files[taken] = b"other"
    with pytest.raises(InvalidInputError, match="another file"):
        clone_new(Clone(source=source.snapshot(), is_shallow=False), target)
    assert target.kept.files[taken] == b"other"


def test_rows_have_ids_of_their_own() -> None:
    bucket = Bucket()
    source, target = source_in(bucket, FEATURES), bucket.table("copy")
    clone(source.snapshot(), target, is_shallow=True)
    target.append({"id": [-1], "p": ["z"]})
    ids = [found for (found,) in target.rows(columns=[ROW_ID])]
    assert len(set(ids)) == len(ids)
    names = {
        key: text
        for key, text in target.snapshot().metadata.configuration.items()
        if "materialized" in key
    }
    assert len(names) == 2
    assert not names.items() & source.snapshot().metadata.configuration.items()
    clone(source.snapshot(), target, is_shallow=True)
    assert names.items() <= target.snapshot().metadata.configuration.items()


def test_the_history_tells_of_it_as_the_reference_does() -> None:
    bucket = Bucket()
    source, target = source_in(bucket, ICT), bucket.table("copy")
    clone(source.snapshot(), target, is_shallow=True, properties={"my.key": "1"})
    (entry,) = target.snapshot().history()
    assert (entry["operation"], entry["isBlindAppend"]) == ("CLONE", False)
    assert entry["operationParameters"] == {
        "source": "delta.`s3://bucket/a b`",
        "sourceVersion": 2,
        "isShallow": True,
    }
    assert set(entry["operationMetrics"]) == {
        *("removedFilesSize", "numRemovedFiles", "sourceTableSize"),
        *("numCopiedFiles", "copiedFilesSize", "sourceNumOfFiles"),
    }
    assert target.snapshot().metadata.configuration == {
        "delta.enableInCommitTimestamps": "true",
        "my.key": "1",
    }


def test_clustering_goes_along() -> None:
    bucket = Bucket()
    source, target = bucket.table("a"), bucket.table("b")
    source.create(
        pa.table({"id": [1], "v": [2]}), properties={"delta.feature.clustering": "supported"}
    )
    source.do(alter.SetClusteringColumns(["id"]))
    clone(source.snapshot(), target, is_shallow=True)
    (domain,) = target.snapshot().domain_metadata.values()
    assert domain == source.snapshot().domain_metadata["delta.clustering"]
    clone(source.snapshot(0), target, is_shallow=True)
    assert not target.snapshot().domain_metadata


@pytest.mark.slow("a crash at each call of the store")
@KINDS
def test_a_crash_anywhere_leaves_the_old_version_or_the_new_one(*, is_shallow: bool) -> None:
    for number in range(1, 200):
        bucket = Bucket()
        source, target = source_in(bucket, FEATURES), bucket.table("copy")
        clone(source.snapshot(0), target, is_shallow=is_shallow)
        old, new = target.rows(), source.rows()
        target.store = faulty = FaultyStore(
            target.kept, InjectedFault(call=number, harm=Harm.CRASH)
        )
        with contextlib.suppress(DeltaError):
            clone(source.snapshot(), target, is_shallow=is_shallow)
        target.store = target.kept
        assert target.rows() in (old, new)
        if not faulty.crashed:
            break
        target.wait(30)
        target.vacuum(mode="full")
        assert target.rows() in (old, new)
    assert number > 4
