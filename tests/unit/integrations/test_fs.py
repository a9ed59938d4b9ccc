"""A table's store is a file system of pyarrow: the same answers as pyarrow's own, in any store."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import deltalog
from deltalog.errors import InvalidInputError, UnsafePathError
from deltalog.fs import DeltaStorageHandler
from tests.support.logs import DictStore

ROWS = pa.table({"a": range(10), "b": [0.5] * 10, "c": [1, 2] * 5})
BY_C = ds.partitioning(pa.schema([("c", pa.int64())]), flavor="hive")


@pytest.fixture(params=["local", "memory"])
def ours(request: pytest.FixtureRequest, tmp_path: Path) -> fs.PyFileSystem:
    place: Any = str(tmp_path) if request.param == "local" else DictStore()
    return fs.PyFileSystem(DeltaStorageHandler(place))


def _kinds(found: list[fs.FileInfo]) -> list[tuple[str, fs.FileType]]:
    return sorted((info.path.strip("/"), info.type) for info in found)


def test_files_are_written_and_read(ours: fs.PyFileSystem) -> None:
    pq.write_table(ROWS, "x/data.parquet", filesystem=ours)
    assert pq.read_table("x/data.parquet", filesystem=ours).equals(ROWS)
    with ours.open_input_file("x/data.parquet") as file:
        assert file.read(4) == b"PAR1"
        assert (file.seek(1), file.read(3), file.tell()) == (1, b"AR1", 4)
        assert file.size() == ours.get_file_info("x/data.parquet").size
    with pytest.raises(FileNotFoundError, match=r"no file 'x/none'"):
        ours.open_input_stream("x/none")


def test_datasets_are_written_and_read(ours: fs.PyFileSystem) -> None:
    options: dict[str, Any] = {"filesystem": ours, "format": "parquet", "partitioning": BY_C}
    ds.write_dataset(ROWS, "/set", existing_data_behavior="delete_matching", **options)
    ds.write_dataset(ROWS, "/set", existing_data_behavior="delete_matching", **options)
    found = ds.dataset("/set", **options).to_table()
    assert found.sort_by("a").select(["a", "b", "c"]).equals(ROWS)
    told = ours.get_file_info(fs.FileSelector("/set", recursive=True))
    assert (
        sorted(info.type for info in told) == [fs.FileType.File] * 2 + [fs.FileType.Directory] * 2
    )
    level = ours.get_file_info(fs.FileSelector("/set"))
    assert _kinds(level) == [
        ("set/c=1", fs.FileType.Directory),
        ("set/c=2", fs.FileType.Directory),
    ]


def test_the_handler_has_the_arguments_of_deltalake(tmp_path: Path) -> None:
    handler = DeltaStorageHandler(tmp_path)
    handler.create_dir("a/b")
    (tmp_path / "a" / "file").touch()
    with pytest.raises(InvalidInputError, match="delete_root_dir_contents"):
        handler.delete_dir_contents("/")
    handler.delete_dir_contents("/", accept_root_dir=True)
    assert list(tmp_path.iterdir()) == []
    assert handler.equals(DeltaStorageHandler(tmp_path))
    assert not handler.equals(DeltaStorageHandler(tmp_path / "a"))


def test_a_size_of_buffers_has_no_effect_and_warns(tmp_path: Path) -> None:
    handler = DeltaStorageHandler(tmp_path, {"max_buffer_size": "1"})
    with pytest.warns(UserWarning, match="max_buffer_size='1' has no effect: a file is written"):
        handler.open_output_stream("file").close()


def test_files_are_moved_copied_and_deleted(ours: fs.PyFileSystem) -> None:
    with ours.open_output_stream("d/one") as file:
        file.write(b"1")
    ours.copy_file("d/one", "d/two")
    ours.move("d/two", "e/two")
    ours.move("d", "e/d")
    every = fs.FileSelector("", recursive=True)
    files = [path for path, kind in _kinds(ours.get_file_info(every)) if kind == fs.FileType.File]
    assert files == ["e/d/one", "e/two"]
    assert ours.get_file_info("d").type == fs.FileType.NotFound
    ours.delete_file("e/two")
    ours.delete_dir("e/d")
    with pytest.raises(FileNotFoundError):
        ours.delete_file("e/two")
    with pytest.raises(FileNotFoundError):
        ours.delete_dir_contents("nothing")
    ours.delete_dir_contents("nothing", missing_dir_ok=True)
    ours.delete_dir_contents("/", accept_root_dir=True)
    assert ours.get_file_info(every) == []


def test_what_is_not_there_is_told(ours: fs.PyFileSystem) -> None:
    assert ours.get_file_info("none").type == fs.FileType.NotFound
    assert ours.get_file_info("").type == fs.FileType.Directory
    with pytest.raises(FileNotFoundError, match="no directory 'none'"):
        ours.get_file_info(fs.FileSelector("none"))
    assert ours.get_file_info(fs.FileSelector("none", allow_not_found=True)) == []


def test_paths_stay_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    ours = DeltaStorageHandler(tmp_path / "table")
    with pytest.raises(InvalidInputError, match="is outside of the table's root"):
        ours.open_input_file("../secret")
    with pytest.raises(InvalidInputError, match="delete_root_dir_contents"):
        ours.delete_dir_contents("/")
    with pytest.raises(NotImplementedError, match="only replace whole files"):
        ours.open_append_stream("x")


def test_sizes_that_are_known_are_not_asked_for() -> None:
    store = DictStore()
    store.put("data", b"12345")
    ours = fs.PyFileSystem(DeltaStorageHandler(store, known_sizes={"/data": 3}))
    with ours.open_input_file("data") as file:
        assert (file.size(), file.read()) == (3, b"123")


def test_local_files_look_as_to_pyarrow(tmp_path: Path) -> None:
    theirs = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    ours = fs.PyFileSystem(DeltaStorageHandler(str(tmp_path)))
    pq.write_table(ROWS, "data", filesystem=theirs)
    theirs.create_dir("empty")
    mine, arrows = (one.get_file_info("data") for one in (ours, theirs))
    assert (mine.path, mine.type, mine.size, mine.mtime_ns) == (
        arrows.path,
        arrows.type,
        arrows.size,
        arrows.mtime_ns,
    )
    every = fs.FileSelector("", recursive=True)
    assert _kinds(ours.get_file_info(every)) == _kinds(theirs.get_file_info(every))
    ours.create_dir("made/here")
    assert theirs.get_file_info("made/here").type == fs.FileType.Directory


def test_a_tables_own_store_is_taken(tmp_path: Path) -> None:
    deltalog.write_deltalake(tmp_path / "t", {"id": [1, 2]})
    table = deltalog.DeltaTable(tmp_path / "t")
    handler = DeltaStorageHandler.from_table(table)
    assert handler == DeltaStorageHandler(tmp_path / "t")
    assert handler == DeltaStorageHandler.from_table(table, options={})
    assert len({handler, pickle.loads(pickle.dumps(handler))}) == 1
    assert repr(handler) == f"DeltaStorageHandler({table.table_uri!r})"
    names = [uri.rpartition("/")[2] for uri in table.file_uris()]
    filesystem = pickle.loads(pickle.dumps(fs.PyFileSystem(handler)))
    assert pq.read_table(names[0], filesystem=filesystem)["id"].to_pylist() == [1, 2]


def test_nothing_behind_a_link_is_made_or_deleted(tmp_path: Path) -> None:
    root, outside = tmp_path / "t", tmp_path / "outside"
    (outside / "empty").mkdir(parents=True)
    (outside / "file").write_bytes(b"kept")
    root.mkdir()
    (root / "link").symlink_to(outside)
    files = fs.PyFileSystem(DeltaStorageHandler(str(root)))
    acts: list[Callable[[], None]] = [
        lambda: files.create_dir("link/new"),
        lambda: files.create_dir("link/new/deep", recursive=True),
        lambda: files.delete_dir("link"),
        lambda: files.delete_dir_contents("link"),
        lambda: files.delete_dir("link/empty"),
        lambda: files.delete_file("link/file"),
        lambda: files.move("link/file", "file"),
        lambda: files.copy_file("link/file", "link/copy"),
    ]
    for act in acts:
        with pytest.raises(UnsafePathError):
            act()
    assert sorted(path.name for path in outside.iterdir()) == ["empty", "file"]
    files.delete_dir_contents("", accept_root_dir=True)
    assert sorted(path.name for path in outside.iterdir()) == ["empty", "file"]
    assert list(root.iterdir()) == []
