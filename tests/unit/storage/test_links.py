"""Links in a local table: they lead nowhere that is not the table's."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import UnsafePathError
from deltalog.storage import open_store


def table_with_link(tmp_path: Path) -> tuple[DeltaTable, Path]:
    """A table with a link to a directory outside, whose log says that a file there is removed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    precious = outside / "precious.txt"
    precious.write_text("kept")
    root = tmp_path / "t"
    write_deltalake(root, pa.table({"x": [1]}))
    (root / "link").symlink_to(outside)
    then = dt.datetime.now(dt.UTC) - dt.timedelta(days=30)
    remove = {
        "path": "link/precious.txt",
        "deletionTimestamp": int(then.timestamp() * 1000),
        "dataChange": True,
    }
    commit = root / "_delta_log" / f"{1:020}.json"
    commit.write_bytes(orjson.dumps({"remove": remove}))
    return DeltaTable(root), precious


@pytest.mark.parametrize("full", [False, True])
def test_vacuum_deletes_nothing_behind_a_link(full: bool, tmp_path: Path) -> None:
    table, precious = table_with_link(tmp_path)
    if full:  # a listing does not follow links
        table.vacuum(dry_run=False, full=True)
    else:
        with pytest.raises(UnsafePathError, match="a link leads from there out of the table"):
            table.vacuum(dry_run=False)
    assert precious.read_text() == "kept"


def test_vacuum_by_an_inventory_deletes_nothing_behind_a_link(tmp_path: Path) -> None:
    table, precious = table_with_link(tmp_path)
    long_ago = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    inventory = pa.table(
        {
            "path": ["link/precious.txt"],
            "length": [4],
            "modificationTime": [int(long_ago.timestamp() * 1000)],
            "isDir": [False],
        }
    )
    with pytest.raises(UnsafePathError):
        table.vacuum(dry_run=False, inventory=inventory)
    assert precious.read_text() == "kept"


def test_nothing_is_replaced_behind_a_link(tmp_path: Path) -> None:
    table, precious = table_with_link(tmp_path)
    store = table.snapshot.store
    for path in ("link/precious.txt", "link/new.txt"):
        with pytest.raises(UnsafePathError):
            store.put(path, b"overwritten")
        with pytest.raises(UnsafePathError):
            store.delete_many([path, "_delta_log/gone"])
    assert [path.name for path in precious.parent.iterdir()] == ["precious.txt"]
    assert precious.read_text() == "kept"


def test_manifests_are_not_written_behind_a_link(tmp_path: Path) -> None:
    table, precious = table_with_link(tmp_path)
    (tmp_path / "t" / "_symlink_format_manifest").symlink_to(precious.parent)
    (precious.parent / "manifest").write_text("kept")
    with pytest.raises(UnsafePathError):
        table.generate()
    assert (precious.parent / "manifest").read_text() == "kept"


def test_tables_log_and_files_may_be_links_themselves(tmp_path: Path) -> None:
    """A table behind a link, a log on another disk, a file that is a link."""
    root, log = tmp_path / "t", tmp_path / "log"
    write_deltalake(root, pa.table({"x": [1]}))
    (root / "_delta_log").rename(log)
    (root / "_delta_log").symlink_to(log)
    (tmp_path / "alias").symlink_to(root)
    store = open_store(tmp_path / "alias")
    (tmp_path / "elsewhere").write_text("kept")
    (root / "file").symlink_to(tmp_path / "elsewhere")
    store.put("_delta_log/_last_checkpoint", b"{}")
    store.put("a/b/c", b"1")
    store.delete_many(["_delta_log/_last_checkpoint", "a/b/c", "file", "no/such"])
    assert not (root / "file").exists()
    assert (tmp_path / "elsewhere").read_text() == "kept"  # the link is deleted, not the file
    assert [path.name for path in log.iterdir()] == [f"{0:020}.json"] or list(log.glob("*.crc"))
    assert DeltaTable(tmp_path / "alias").to_pyarrow_table().num_rows == 1
