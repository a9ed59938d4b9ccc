"""What outlives a power cut: an acknowledged commit, and the files that it names."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError, MalformedLogError, StorageError
from deltalog.storage import open_store
from deltalog.storage.atomic import sync_directory
from deltalog.storage.store import syncs_files, unsynced

ROWS = pa.table({"p": ["a", "b"], "x": [1, 2]})


class Disk:
    """Which files and directories were synced, by the order of events."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.events: list[tuple[str, str]] = []
        fsync, link = os.fsync, os.link

        def watched_fsync(descriptor: int) -> None:
            self.events.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
            fsync(descriptor)

        def watched_link(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
            directory = Path(f"/proc/self/fd/{dst_dir_fd}").readlink()
            self.events.append(("name", str(directory / target)))
            link(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

        patch.setattr(os, "fsync", watched_fsync)
        patch.setattr(os, "link", watched_link)

    def synced(self) -> set[str]:
        return {path for event, path in self.events if event == "sync"}


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc")


@needs_proc
def test_a_commit_is_on_the_disk_with_all_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    root = tmp_path / "new" / "t"
    write_deltalake(root, ROWS, partition_by=["p"])
    log = root / "_delta_log"
    files = sorted(root.glob("*/*.parquet"))
    names = [path for event, path in disk.events if event == "name"]
    commit = str(log / f"{0:020}.json")
    commit_at = disk.events.index(("name", commit))
    # The commit's name is given to a file that was synced before, and its directory is synced
    # after it; then content and name of each data file are on the disk.
    temporary = [Path(path).name for event, path in disk.events[:commit_at] if event == "sync"]
    assert any(name.startswith(f".{Path(commit).name}") for name in temporary)
    assert ("sync", str(log)) in disk.events[commit_at:]
    for file in files:
        named = disk.events[disk.events.index(("name", str(file))) : commit_at]
        assert ("sync", str(file)) in named
        assert ("sync", str(file.parent)) in named
    # The commit comes after its files, and the directories that were made are in theirs.
    assert max(names.index(str(file)) for file in files) < names.index(commit)
    before_commit = {path for _, path in disk.events[:commit_at]}
    assert {str(root), str(root.parent), str(tmp_path)} <= before_commit | disk.synced()


@needs_proc
def test_a_checksum_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deltalake(tmp_path, ROWS)
    disk = Disk(monkeypatch)
    write_deltalake(tmp_path, ROWS, mode="append")
    log = tmp_path / "_delta_log"
    assert ("name", str(log / f"{1:020}.crc")) in disk.events
    # The data file, its directory, the commit, its directory.
    assert [event for event, _ in disk.events].count("sync") == 4
    # What a power cut leaves of a checksum is ignored.
    (log / f"{1:020}.crc").write_bytes(b"\0" * 100)
    write_deltalake(tmp_path, ROWS, mode="append")
    assert DeltaTable(tmp_path).count() == 3 * ROWS.num_rows


@needs_proc
def test_a_data_file_that_cannot_be_synced_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path, ROWS)
    before = sorted(tmp_path.rglob("*"))
    fsync = os.fsync

    def failing_fsync(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().suffix == ".parquet":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing_fsync)
    with pytest.raises(StorageError):
        write_deltalake(tmp_path, ROWS, mode="append")
    assert sorted(tmp_path.rglob("*")) == before
    assert DeltaTable(tmp_path).version() == 0


@needs_proc
@pytest.mark.parametrize("off", ["option", "property"])
def test_it_can_be_turned_off(off: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"fsync": "false"} if off == "option" else None
    configuration = {"deltalog.fsync": "false"} if off == "property" else None
    write_deltalake(tmp_path, ROWS, storage_options=options, configuration=configuration)
    disk = Disk(monkeypatch)
    write_deltalake(tmp_path, ROWS, mode="append", storage_options=options)
    named = [path for event, path in disk.events if event == "name"]
    assert any(path.endswith(f"{1:020}.json") for path in named)
    assert not any(path.endswith((".parquet.tmp", ".json.tmp")) for path in disk.synced())


def test_what_is_no_truth_value_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path, {"fsync": "perhaps"})
    with pytest.raises(InvalidInputError, match="fsync"):
        store.put_if_absent("x", b"1")


def test_stores_say_whether_they_sync(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert syncs_files(store)
    assert not syncs_files(unsynced(store))
    assert syncs_files(store)  # the other one is another store
    sync_directory(str(tmp_path))


def test_the_newest_commit_is_torn_if_it_is_empty(tmp_path: Path) -> None:
    version = 2
    for _ in range(3):
        write_deltalake(tmp_path, ROWS, mode="append")
    (tmp_path / "_delta_log" / f"{version:020}.json").write_bytes(b"")
    for crc in (tmp_path / "_delta_log").glob("*.crc"):
        crc.unlink()
    with pytest.raises(MalformedLogError, match="empty") as raised:
        DeltaTable(tmp_path).to_pyarrow_table()
    assert f"version {version}" in str(raised.value)
    assert DeltaTable(tmp_path, version=version - 1).count() == 2 * version
