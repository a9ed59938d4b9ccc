"""What every store promises, shown on local files, memory and a plain fsspec file system."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pyarrow.fs as pafs
import pytest

from deltalog._util.paths import FileInfo
from deltalog.errors import (
    AlreadyExistsError,
    ObjectNotFoundError,
)
from deltalog.storage import FsspecStore, LevelStore, Store, open_store
from tests.support.filesystems import OneByOneFileSystem

MakeStore = Callable[[Path], Store]


def _local(directory: Path) -> Store:
    return open_store(directory)


def _memory(directory: Path) -> Store:
    return open_store(f"memory://{directory}")


def _fsspec_local(directory: Path) -> Store:
    return open_store(str(directory), filesystem=fsspec.filesystem("file"))


def _arrow_local(directory: Path) -> Store:
    return open_store(str(directory), filesystem=pafs.LocalFileSystem())


def _arrow_subtree(directory: Path) -> Store:
    tree = pafs.SubTreeFileSystem(str(directory.parent), pafs.LocalFileSystem())
    return open_store(directory.name, filesystem=tree)


def _plain_fsspec(directory: Path) -> Store:
    """A file system that only does what fsspec's base class demands, with a lock for commits."""
    filesystem = OneByOneFileSystem(skip_instance_cache=True)
    return FsspecStore(str(directory), filesystem=filesystem, commit_lock=LOCK)


class _Lock:
    """A lock of this process; stands for one that all writers share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self) -> threading.Lock:
        return self._lock

    def __reduce__(self) -> str:
        return "LOCK"


LOCK = _Lock()


@pytest.fixture(
    params=[_local, _memory, _fsspec_local, _arrow_local, _arrow_subtree, _plain_fsspec],
    ids=lambda make: make.__name__.strip("_"),
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    make: MakeStore = request.param
    return make(tmp_path / "a b%41é")


NAMES = ["a b.parquet", "é.parquet", "p=x%3Ay/100%25.parquet", "h#x", "q?x=1", "*[a]", "a+b&c"]


def test_a_file_system_of_the_users_is_a_store(store: Store) -> None:
    assert isinstance(store, Store)
    assert open_store(store) is store


@pytest.mark.protocol("ADD-02", "D-05")
@pytest.mark.parametrize("name", NAMES)
def test_names_are_taken_literally(store: Store, name: str) -> None:
    store.put(name, name.encode())
    assert store.read(name) == name.encode()
    assert store.stat(name).size_bytes == len(name.encode())
    assert [file.path for file in store.list_all("")] == [name]


def test_reading_parts_and_many(store: Store) -> None:
    store.put("a", b"0123456789")
    store.put("d/b", b"")
    assert store.read_ranges("a", [(8, 10), (0, 0), (2, 5), (9, 99)]) == [b"89", b"", b"234", b"9"]
    assert store.read_ranges("a", []) == []
    assert store.read_many(["d/b", "a", "a"]) == [b"", b"0123456789", b"0123456789"]
    assert store.read_many([]) == []
    with store.open("a") as file:
        assert file.seek(-3, io.SEEK_END) == 7
        assert file.read() == b"789"


@pytest.mark.protocol("D-25")
def test_listings_are_sorted_filtered_and_flat(store: Store) -> None:
    for name in ["00000000000000000010.json", "00000000000000000002.json", "_last_checkpoint"]:
        store.put(f"_delta_log/{name}", b"xy")
    store.put("_delta_log/_sidecars/s.parquet", b"s")
    store.put("data.parquet", b"d")
    found = list(store.list_from("_delta_log", "00000000000000000003"))
    assert [file.path for file in found] == [
        "_delta_log/00000000000000000010.json",
        "_delta_log/_last_checkpoint",
    ]
    assert [file.size_bytes for file in found] == [2, 2]
    assert [file.path for file in store.list_from("", "")] == ["data.parquet"]
    assert [file.path for file in store.list_from("_delta_log/_sidecars", "")] == [
        "_delta_log/_sidecars/s.parquet"
    ]
    assert len(list(store.list_all("_delta_log"))) == 4
    assert len(list(store.list_all(""))) == 5


def test_what_is_not_there(store: Store) -> None:
    store.put("d/x", b"x")
    assert list(store.list_from("nowhere", "")) == []
    assert list(store.list_all("nowhere")) == []
    attempts: list[Callable[[], object]] = [
        lambda: store.read("zz"),
        lambda: store.stat("zz"),
        lambda: store.stat("d"),
        lambda: store.open("zz").read(),
        lambda: store.read_ranges("zz", [(0, 1), (1, 2)]),
        lambda: store.read_many(["d/x", "zz"]),
    ]
    for attempt in attempts:
        with pytest.raises(ObjectNotFoundError):
            attempt()


def test_listings_are_fresh(store: Store) -> None:
    store.put("d/a", b"1")
    assert len(list(store.list_from("d", ""))) == 1
    store.put("d/b", b"1")
    assert len(list(store.list_from("d", ""))) == 2
    store.put("d/a", b"123")
    assert store.stat("d/a").size_bytes == 3
    store.delete_many(["d/a"])
    assert [file.path for file in store.list_from("d", "")] == ["d/b"]


def test_deleting_what_is_gone_is_no_error(store: Store) -> None:
    store.put("a", b"")
    store.delete_many(["nope", "a", "d/nope"])
    store.delete_many([])
    assert list(store.list_all("")) == []


@pytest.mark.protocol("LOG-06", "B-01", "D-26")
def test_put_if_absent_never_overwrites(store: Store) -> None:
    store.put_if_absent("_delta_log/0.json", b"first")
    with pytest.raises(AlreadyExistsError, match=r"_delta_log/0\.json"):
        store.put_if_absent("_delta_log/0.json", b"second")
    assert store.read("_delta_log/0.json") == b"first"
    assert [file.path for file in store.list_all("")] == ["_delta_log/0.json"]


@pytest.mark.protocol("LOG-06", "B-01", "D-26")
def test_of_32_threads_one_wins_every_version(store: Store) -> None:
    def race(version: int, writer: int) -> bool:
        content = f"writer {writer} ".encode() * 1000
        try:
            store.put_if_absent(f"_delta_log/{version:020d}.json", content)
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(32) as pool:
        for version in range(5):
            wins = list(pool.map(lambda writer, v=version: race(v, writer), range(32)))
            assert wins.count(True) == 1
            winner = f"writer {wins.index(True)} ".encode() * 1000
            assert store.read(f"_delta_log/{version:020d}.json") == winner
    assert len(list(store.list_all(""))) == 5  # no temporary files are left


def test_stores_pickle(store: Store) -> None:
    store.put("a b", b"1")
    copy: Store = pickle.loads(pickle.dumps(store))
    assert copy.read("a b") == b"1"
    assert copy.root == store.root


def test_absolute_paths_name_the_same_files(store: Store) -> None:
    store.put("d/a b", b"1")
    prefix = "file://" if store.root.startswith("/") else ""
    path = f"{prefix}{store.root}/d/a b"
    assert store.read(path) == b"1"
    assert store.stat(path) == FileInfo(path, 1, store.stat("d/a b").modified_ms)


def test_times_are_milliseconds(store: Store) -> None:
    store.put("a", b"1")
    (listed,) = store.list_all("")
    assert listed == store.stat("a")
    assert 1_700_000_000_000 < listed.modified_ms < 4_000_000_000_000


def test_one_level_is_listed(store: Store) -> None:
    for path in ("a", "p=1/b", "p=1/q/c", "_delta_log/d", "p%3D2/e"):
        store.put(path, b"xx")
    assert isinstance(store, LevelStore)
    files, directories = store.list_level("")
    assert [(file.path, file.size_bytes) for file in files] == [("a", 2)]
    assert sorted(directories) == ["_delta_log", "p%3D2", "p=1"]
    files, directories = store.list_level("p=1")
    assert ([file.path for file in files], directories) == (["p=1/b"], ["p=1/q"])
    assert files == [store.stat("p=1/b")]
    assert store.list_level("nowhere") == ([], [])
