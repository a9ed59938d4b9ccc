"""What stands after a sync: which files, under which names, and what is done about damage."""

from __future__ import annotations

import json
import os
import shutil
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from deltalog import DeltaTable, write_deltalake
from deltalog._util.clock import SystemClock
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.iceberg import manifests, sync
from deltalog.iceberg.store_io import metadata_path
from deltalog.log.snapshot import load_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class FixedClock(SystemClock):
    """A clock that shows one moment."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms


V2 = {"delta.enableIcebergCompatV2": "true"}


def one(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64())})


def append(path: Path, *numbers: int) -> None:
    for number in numbers:
        write_deltalake(path, one(number), mode="append", configuration=V2)


def ids(location: str) -> list[Any]:
    found: list[Any] = StaticTable.from_metadata(location).scan().to_arrow()["id"].to_pylist()
    return sorted(found)


def _named(location: str) -> Iterator[str]:
    """The manifest lists and manifests of all snapshots."""
    found = StaticTable.from_metadata(location)
    for snapshot in found.snapshots():
        yield snapshot.manifest_list
        for manifest in snapshot.manifests(found.io):
            yield manifest.manifest_path


def test_a_second_sync_writes_nothing(tmp_path: Path) -> None:
    append(tmp_path / "t", 1)
    snapshot = DeltaTable(tmp_path / "t").snapshot

    first, second = sync(snapshot), sync(snapshot)

    assert (first.num_snapshots, first.is_whole) == (1, True)
    assert (second.num_snapshots, second.is_whole) == (0, False)
    assert first.metadata_location == second.metadata_location
    names = sorted(path.name for path in (tmp_path / "t" / "metadata").iterdir())
    assert names[-2:] == ["v1.metadata.json", "version-hint.text"]
    assert len(names) == 4


def test_an_older_snapshot_does_not_take_newer_metadata_back(tmp_path: Path) -> None:
    append(tmp_path / "t", 1, 2)
    newest = sync(DeltaTable(tmp_path / "t").snapshot)

    assert sync(DeltaTable(tmp_path / "t", version=0).snapshot) == replace(
        newest, num_snapshots=0, is_whole=False
    )


def test_writers_that_sync_at_once_agree(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, 1, 2, 3, 4, 5)
    errors: list[BaseException] = []

    def run(version: int) -> None:
        try:
            sync(DeltaTable(path, version=version).snapshot)
        except BaseException as error:  # noqa: BLE001  # told below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(version,)) for version in (0, 1, 2, 3, 4, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    last = sync(DeltaTable(path).snapshot)
    assert last.version == 4
    assert ids(last.metadata_location) == [1, 2, 3, 4, 5]
    # Nothing is left of those who lost.
    named = {file.rpartition("/")[2] for file in _named(last.metadata_location)}
    assert {file.name for file in (path / "metadata").glob("*.avro")} == named


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"format-version": 9}', b"\xff\xfe"])
def test_damaged_metadata_is_written_anew(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "t"
    append(path, 1)
    sync(DeltaTable(path).snapshot)
    (path / "metadata" / "v1.metadata.json").write_bytes(data)

    made = sync(DeltaTable(path).snapshot)

    assert made.is_whole
    assert made.metadata_location.endswith("/v2.metadata.json")
    assert ids(made.metadata_location) == [1]


@pytest.mark.parametrize("hint", ["7", "0", "x", "", "99999999999999999999"])
def test_a_wrong_hint_costs_a_listing(tmp_path: Path, hint: str) -> None:
    path = tmp_path / "t"
    append(path, 1)
    sync(DeltaTable(path).snapshot)
    (path / "metadata" / "version-hint.text").write_text(hint)
    append(path, 2)

    made = sync(DeltaTable(path).snapshot)

    assert not made.is_whole
    assert made.metadata_location.endswith("/v2.metadata.json")
    assert ids(made.metadata_location) == [1, 2]


def test_metadata_of_a_table_that_was_here_before_is_not_its_own(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, 1, 2, 3)
    sync(DeltaTable(path).snapshot)
    shutil.rmtree(path / "_delta_log")
    append(path, 9)

    made = sync(DeltaTable(path).snapshot)

    assert (made.version, made.is_whole) == (0, True)
    assert ids(made.metadata_location) == [9]


def test_snapshots_have_the_times_of_their_commits(tmp_path: Path) -> None:
    path = tmp_path / "t"
    own = {**V2, "delta.enableInCommitTimestamps": "true"}
    write_deltalake(path, one(1), configuration=own)
    sync(DeltaTable(path).snapshot)
    append(path, 2, 3)
    for file in (path / "_delta_log").glob("*.json"):
        os.utime(file, (4_000_000_000, 4_000_000_000))

    made = sync(DeltaTable(path).snapshot)

    times = [
        one.timestamp_ms for one in StaticTable.from_metadata(made.metadata_location).snapshots()
    ]
    assert times == [one["timestamp"] for one in reversed(DeltaTable(path).history())]


def test_a_copied_table_gets_metadata_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, 1)
    sync(DeltaTable(path).snapshot)
    path.rename(tmp_path / "moved")

    made = sync(DeltaTable(tmp_path / "moved").snapshot)

    assert made.is_whole
    assert ids(made.metadata_location) == [1]


@pytest.mark.parametrize("kind", ["*-m0-*.avro", "snap-*.avro"])
@pytest.mark.parametrize("data", [b"", b"Obj\x01broken", b"\x00" * 100, None])
def test_damaged_avro_is_not_built_upon(tmp_path: Path, kind: str, data: bytes | None) -> None:
    path = tmp_path / "t"
    append(path, 1, 2)
    sync(DeltaTable(path).snapshot)
    for file in (path / "metadata").glob(kind):
        file.unlink() if data is None else file.write_bytes(data)
    DeltaTable(path).delete("id = 1")

    made = sync(DeltaTable(path).snapshot)

    assert made.is_whole
    assert ids(made.metadata_location) == [2]
    assert len(StaticTable.from_metadata(made.metadata_location).snapshots()) == 1


def test_small_manifests_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "_MANY_SMALL", 3)
    path = tmp_path / "t"
    for number in range(8):
        append(path, number)
        made = sync(DeltaTable(path).snapshot)

    current = StaticTable.from_metadata(made.metadata_location).current_snapshot()

    assert ids(made.metadata_location) == list(range(8))
    assert current is not None
    found = current.manifests(StaticTable.from_metadata(made.metadata_location).io)
    assert len(found) <= 4
    DeltaTable(path).delete("id in (0, 5)")
    assert ids(sync(DeltaTable(path).snapshot).metadata_location) == [1, 2, 3, 4, 6, 7]


def test_old_snapshots_go_with_their_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, 1)
    sync(DeltaTable(path).snapshot)
    DeltaTable(path).delete("id = 1")
    append(path, 2)
    snapshot = DeltaTable(path).snapshot
    week_ms = 8 * 24 * 3_600_000
    later = replace(snapshot.context, clock=FixedClock(snapshot.commit_timestamp_ms + week_ms))

    made = sync(load_snapshot(later))

    shown = StaticTable.from_metadata(made.metadata_location)
    assert len(shown.snapshots()) == 1
    assert ids(made.metadata_location) == [2]
    lists = {entry.manifest_list for entry in shown.snapshots()}
    left = {f"file://{file}" for file in (path / "metadata").glob("snap-*.avro")}
    assert left == lists


def test_deletion_vectors_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = pa.table({"id": pa.array(range(100), pa.int64())})
    write_deltalake(path, rows, configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(path).delete("id = 5")
    with pytest.raises(InvalidInputError, match="deletion vectors"):
        DeltaTable(path).alter.set_table_properties(
            {"delta.enableDeletionVectors": "false", **V2, "delta.columnMapping.mode": "name"}
        )


@pytest.mark.parametrize(
    "location",
    ["file:///etc/passwd", "s3://other/metadata/x", "metadata/../../x", "/tmp/x", "", "metadata"],  # noqa: S108
)
def test_locations_outside_of_the_metadata_are_refused(tmp_path: Path, location: str) -> None:
    append(tmp_path / "t", 1)
    with pytest.raises(DeltaError, match=r"Iceberg metadata|refused"):
        metadata_path(location, DeltaTable(tmp_path / "t").snapshot.store)


def test_properties_for_readers_are_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(
        path,
        one(1),
        configuration={**V2, "delta.universalFormat.config.iceberg.read.split.target-size": "1000"},
    )

    made = sync(DeltaTable(path).snapshot)

    text = (path / "metadata" / "v1.metadata.json").read_text("utf-8")
    assert json.loads(text)["properties"]["read.split.target-size"] == "1000"
    assert made.version == 0
