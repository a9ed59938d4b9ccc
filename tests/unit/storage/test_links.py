"""Links in a local table: they lead nowhere that is not the table's."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import threading
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from deltalog import DeltaTable, convert_to_deltalake, write_deltalake
from deltalog.errors import ObjectNotFoundError, StorageError, UnsafePathError
from deltalog.storage import atomic, open_store
from deltalog.storage.links import Home, RealPaths
from deltalog.storage.parquet.sink import ParquetSink, write_parquet


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


def test_a_root_and_files_may_be_links_themselves(tmp_path: Path) -> None:
    """A table behind a link, a file that is a link, directories elsewhere in the table."""
    root = tmp_path / "t"
    write_deltalake(root, pa.table({"x": [1]}))
    (tmp_path / "alias").symlink_to(root)
    store = open_store(tmp_path / "alias")
    (tmp_path / "elsewhere").write_text("kept")
    (root / "file").symlink_to(tmp_path / "elsewhere")
    (root / "a").mkdir()
    (root / "inside").symlink_to(root / "a")
    (root / "a" / "up").symlink_to("../a")
    (root / "around").symlink_to(f"../{root.name}/a")
    store.put("_delta_log/_last_checkpoint", b"{}")
    for path in ("inside/b/c", "a/up/d", "around/e", "a/up/up/f"):
        store.put(path, b"1")
    store.put_if_absent("inside/g", b"1")
    names = sorted(path.name for path in (root / "a").rglob("*") if path.is_file())
    assert names == ["c", "d", "e", "f", "g"]
    paths = ["inside/b/c", "a/up/d", "around/e", "a/up/up/f", "inside/g"]
    store.delete_many(["_delta_log/_last_checkpoint", *paths, "file", "no/such"])
    assert not [path for path in (root / "a").rglob("*") if path.is_file()]
    assert not (root / "file").exists()
    assert (tmp_path / "elsewhere").read_text() == "kept"  # the link is deleted, not the file
    write_deltalake(tmp_path / "alias", pa.table({"x": [2]}), mode="append")
    assert DeltaTable(tmp_path / "alias").to_pyarrow_table().num_rows == 2


ROWS = pa.table({"id": [1, 2], "p": ["a", "a"], "q": ["b", "b"]})
MORE = pa.table({"id": [3], "p": ["c"], "q": ["d"]})


def append(root: Path) -> None:
    write_deltalake(root, MORE, mode="append")


def update(root: Path) -> None:
    DeltaTable(root).update(predicate="id = 1", updates={"id": "9"})


def compacted_log(root: Path) -> None:
    DeltaTable(root).compact_logs(0, 1)


def delete_row(root: Path) -> None:
    DeltaTable(root).delete("id = 1")


def checkpoint(root: Path) -> None:
    DeltaTable(root).create_checkpoint()


def overwrite(root: Path) -> None:
    write_deltalake(root, MORE, mode="overwrite")


def append_with_appender(root: Path) -> None:
    with DeltaTable(root).appender() as appender:
        appender.append(MORE).result()


WRITES = [
    ("p=c", append, {}),
    ("p=c", overwrite, {}),
    ("p=c", append_with_appender, {}),
    ("p=c/q=d", append, {}),
    ("p=a", delete_row, {}),
    ("p=a", update, {}),
    ("_change_data", update, {"delta.enableChangeDataFeed": "true"}),
    ("_change_data/p=a", update, {"delta.enableChangeDataFeed": "true"}),
    ("_delta_log", append, {}),
    ("_delta_log", delete_row, {}),
    ("_delta_log", checkpoint, {}),
    ("_delta_log/_sidecars", checkpoint, {"delta.checkpointPolicy": "v2"}),
]


def link_away(root: Path, name: str, outside: Path, *, is_relative: bool) -> None:
    """Move a directory of the table outside, and put a link in its place."""
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        outside.rmdir()
        place.rename(outside)
    target = os.path.relpath(outside, place.parent) if is_relative else outside
    place.symlink_to(target)


def tree(directory: Path) -> list[tuple[str, bytes]]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return [(str(path.relative_to(directory)), path.read_bytes()) for path in files]


@pytest.mark.parametrize("is_relative", [False, True])
@pytest.mark.parametrize(("link", "act", "configuration"), WRITES)
def test_no_operation_writes_behind_a_link(
    link: str,
    act: Callable[[Path], None],
    configuration: dict[str, str],
    is_relative: bool,
    tmp_path: Path,
) -> None:
    root, outside = tmp_path / "t", tmp_path / "outside"
    outside.mkdir()
    write_deltalake(root, ROWS, partition_by=["p", "q"], configuration=configuration)
    link_away(root, link, outside, is_relative=is_relative)
    before = tree(outside)
    with pytest.raises(UnsafePathError, match="a link leads from there out of the table"):
        act(root)
    assert tree(outside) == before
    assert DeltaTable(root).to_pyarrow_table().num_rows == 2  # reading follows links


@pytest.mark.parametrize("target", ["..", "../..", "../other", "../t-2", "/"])
def test_links_to_parents_and_neighbours_are_refused(target: str, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write_deltalake(root, ROWS, partition_by=["p"])
    write_deltalake(tmp_path / "t-2", ROWS, partition_by=["p"])
    (root / "p=c").symlink_to(target)
    before = tree(tmp_path)
    store = open_store(root)
    for path in ("p=c/x", "p=c/t-2/p=a/x", "p=c/new/x", "p=a/../p=c/x", "../t-2/x"):
        for write in (store.put, store.put_if_absent):
            with pytest.raises(UnsafePathError):
                write(path, b"1")
        with pytest.raises(UnsafePathError):
            store.delete_many([path])
        with pytest.raises(UnsafePathError):
            write_parquet(store, path, ROWS)
    with pytest.raises(UnsafePathError):
        append(root)
    assert tree(tmp_path) == before


def test_a_link_that_is_put_there_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    """Between the check and the write, and between the write and the name."""
    root, outside = tmp_path / "t", tmp_path / "outside"
    (root / "p").mkdir(parents=True)
    outside.mkdir()
    store = open_store(root)
    sink = ParquetSink(store, "p/x.parquet", ROWS.schema)
    sink.write(ROWS)
    home = Home(str(root))
    with home.open(str(root / "p"), syncs=True) as folder:
        (root / "p").rename(root / "moved")
        (root / "p").symlink_to(outside)
        atomic.create_local(folder, "y", b"1", syncs=True)
        folder.unlink("y")
        atomic.create_local(folder, "z", b"1", syncs=True)
    with pytest.raises(UnsafePathError):
        sink.close()
    assert not list(outside.iterdir())
    assert (root / "moved" / "z").read_bytes() == b"1"


def test_a_directory_that_becomes_a_link_again_and_again(tmp_path: Path) -> None:
    root, outside = tmp_path / "t", tmp_path / "outside"
    (root / "p").mkdir(parents=True)
    outside.mkdir()
    (outside / "kept").write_text("kept")
    store, is_over = open_store(root, {"fsync": "false"}), threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            with contextlib.suppress(OSError):  # a directory was made while there was none
                (root / "p").rename(root / uuid.uuid4().hex)
                (root / "p").symlink_to(outside)
                (root / "p").unlink()
                (root / "p").mkdir()

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for number in range(300):
            acts: list[Callable[[], None]] = [
                partial(store.put_if_absent, f"p/{number}", b"1"),
                partial(store.put, "p/file", b"1"),
                partial(store.delete_many, ["p/kept"]),
            ]
            for act in acts:
                with contextlib.suppress(UnsafePathError, StorageError, ObjectNotFoundError):
                    act()
    finally:
        is_over.set()
        swapping.join()
    # A directory that is made while there is none is a directory of the table.
    assert tree(outside) == [("kept", b"kept")]


def test_where_directories_cannot_be_held_open_paths_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outside = tmp_path / "t", tmp_path / "outside"
    outside.mkdir()
    write_deltalake(root, ROWS, partition_by=["p"])
    (root / "p=c").symlink_to(outside)
    monkeypatch.setattr(os, "supports_dir_fd", set())
    with pytest.raises(UnsafePathError):
        append(root)
    write_deltalake(root, MORE.set_column(1, "p", [["e"]]), mode="append")
    DeltaTable(root).delete("id = 1")
    DeltaTable(root).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert not list(outside.iterdir())
    assert set(DeltaTable(root).to_pyarrow_table()["id"].to_pylist()) == {2, 3}


def test_tables_are_not_made_behind_a_link_to_a_log(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    for name in ("new", "converted", "clone"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "_delta_log").symlink_to("../outside")
    write_parquet(open_store(tmp_path / "converted"), "x.parquet", ROWS)
    write_deltalake(tmp_path / "source", ROWS)
    with pytest.raises(UnsafePathError):
        write_deltalake(tmp_path / "new", ROWS)
    with pytest.raises(UnsafePathError):
        convert_to_deltalake(tmp_path / "converted")
    with pytest.raises(UnsafePathError):
        DeltaTable(tmp_path / "source").clone(tmp_path / "clone")
    assert not list((tmp_path / "outside").iterdir())


def test_logs_are_not_cleaned_behind_a_link(tmp_path: Path) -> None:
    root, outside = tmp_path / "t", tmp_path / "outside"
    conf = {"delta.logRetentionDuration": "interval 0 seconds"}
    write_deltalake(root, ROWS, configuration=conf)
    append(root)
    checkpoint(root)
    append(root)
    outside.mkdir()
    link_away(root, "_delta_log", outside, is_relative=True)
    old = dt.datetime(2020, 1, 1, tzinfo=dt.UTC).timestamp()
    for path in outside.iterdir():
        os.utime(path, (old, old))
    before = tree(outside)
    with contextlib.suppress(UnsafePathError):
        DeltaTable(root).cleanup_metadata()
    assert tree(outside) == before


def test_a_refused_write_leaves_no_files_elsewhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "t"
    write_deltalake(root, pa.table({"p": [1, 2], "x": [1, 2]}), partition_by=["p"])
    before = set(root.rglob("*"))
    (root / "p=3").symlink_to(outside)
    with pytest.raises(UnsafePathError):
        write_deltalake(root, pa.table({"p": [1, 2, 3], "x": [1, 2, 3]}), mode="append")
    assert set(root.rglob("*")) - before == {root / "p=3"}
    assert not list(outside.iterdir())
    assert "stay until vacuum" not in caplog.text


def test_paths_without_links_are_those_of_the_operating_system(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "real" / "a.parquet").touch()
    (tmp_path / "real" / "inner" / "b.parquet").touch()
    (tmp_path / "directory").symlink_to("real")
    (tmp_path / "real" / "file.parquet").symlink_to("inner/b.parquet")
    (tmp_path / "real" / "twice.parquet").symlink_to(tmp_path / "directory" / "file.parquet")
    names = [
        *("real/a.parquet", "directory/a.parquet", "directory/inner/b.parquet"),
        *("directory/file.parquet", "real/file.parquet", "real/twice.parquet"),
        *("directory/inner/../a.parquet", "directory/..", "real/.", "real/", "absent/c"),
    ]
    real_paths = RealPaths()
    for path in (os.path.join(tmp_path, name) for name in names * 2):  # noqa: PTH118  # keeps ".."
        assert real_paths[path] == os.path.realpath(path)
