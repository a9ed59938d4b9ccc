"""The store over fsspec: what it opens, what it refuses, what a fork leaves of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from deltalog.errors import (
    InvalidInputError,
    StorageError,
    UnsafePathError,
)
from deltalog.storage import open_store
from tests.support.filesystems import OneByOneFileSystem, ShuffledFileSystem


def test_a_local_table_reads_files_of_another_place(tmp_path: Path) -> None:
    source = open_store(f"memory://{tmp_path}/source")
    source.put("x y", b"1")
    with pytest.raises(UnsafePathError, match="trusted_locations"):
        open_store(tmp_path / "clone").read(f"{source.root}/x y")
    clone = open_store(tmp_path / "clone", {"trusted_locations": f"memory://{tmp_path}"})
    clone.put("own", b"2")
    found = clone.read_many(["own", f"{source.root}/x y", f"file://{tmp_path}/clone/own"])
    assert found == [b"2", b"1", b"2"]
    clone.delete_many([f"{source.root}/x y", "own"])
    assert list(source.list_all("")) == list(clone.list_all("")) == []


@pytest.mark.protocol("SHARE-SEC-02")
def test_what_a_log_names_is_not_fetched_from_anywhere(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with pytest.raises(UnsafePathError):
        store.read("http://localhost/x")
    remote = open_store("s3://bucket/t", {"key": "k", "secret": "s"})
    for path in ("file:///etc/passwd", "local:///etc/passwd", "/etc/passwd"):
        with pytest.raises(UnsafePathError, match="another store"):
            remote.read(path)


def test_locations_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="empty"):
        open_store("")
    with pytest.raises(InvalidInputError, match="int"):
        open_store(3)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InvalidInputError, match="file system"):
        open_store(str(tmp_path), filesystem=object())
    with pytest.raises(InvalidInputError, match="nosuch"):
        open_store("nosuch://x/y").read("a")


@pytest.mark.protocol("B-01", "D-26")
def test_an_unknown_kind_of_file_system_refuses_to_commit(tmp_path: Path) -> None:
    filesystem = OneByOneFileSystem(skip_instance_cache=True)
    store = open_store(str(tmp_path), filesystem=filesystem)
    with pytest.raises(StorageError, match="no atomic put-if-absent"):
        store.put_if_absent("0.json", b"")
    assert not (tmp_path / "0.json").exists()
    store.put("0.json", b"x")  # replacing needs no primitive


@pytest.mark.protocol("B-01", "D-26")
@pytest.mark.parametrize("protocol", ["s3", "gs", "abfs", "memory", "file", ("file", "local")])
def test_a_file_system_that_only_bears_a_kinds_name_refuses_to_commit(
    protocol: str | tuple[str, ...], tmp_path: Path
) -> None:
    """pyarrow's file systems of the clouds are such: they look, and then write."""
    filesystem: Any = OneByOneFileSystem(skip_instance_cache=True)
    filesystem.protocol = protocol
    store = open_store(str(tmp_path), filesystem=filesystem)
    store.put("x", b"1")
    assert store.read_many(["x", "x"]) == [b"1", b"1"]
    assert [file.path for file in store.list_from("", "")] == ["x"]
    with pytest.raises(StorageError, match=r"no atomic put-if-absent .*class OneByOneFileSystem"):
        store.put_if_absent("0.json", b"")
    assert not (tmp_path / "0.json").exists()


@pytest.mark.protocol("D-25")
def test_pages_in_any_order_with_odd_entries_are_sorted(tmp_path: Path) -> None:
    names = [f"{version:020d}.json" for version in range(2500)]
    filesystem = ShuffledFileSystem(names, skip_instance_cache=True)
    store = open_store(str(tmp_path), filesystem=filesystem)
    found = [file.path for file in store.list_from("_delta_log", names[100])]
    assert found == [f"_delta_log/{name}" for name in names[100:]]


def test_a_fork_makes_file_systems_anew(tmp_path: Path) -> None:
    store = open_store(f"memory://{tmp_path}")
    store.put("a", b"1")
    store.read_many(["a"] * 200)
    reader, writer = os.pipe()
    with pytest.warns() if _warns_of_threads() else _nothing():
        child = os.fork()
    if child == 0:  # pragma: no cover  # another process
        local = open_store(tmp_path)
        local.put("b", b"2")
        many = local.read_many(["b"] * 200)
        answer = b"ok" if store.read("a") == b"1" and many == [b"2"] * 200 else b"no"
        os.write(writer, answer)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 2) == b"ok"
    os.close(reader)
    os.close(writer)


def _warns_of_threads() -> bool:
    import sys

    return sys.version_info >= (3, 12)


def _nothing() -> Any:
    import contextlib

    return contextlib.nullcontext()


@pytest.mark.parametrize(
    "location",
    [
        "s3://key:SECRET/r@bucket/t",
        "s3://key:SECRET@bucket/t",
        "s3a://key:8/SECRET@bucket/t",
        "gs://key:SECRET@bucket",
    ],
)
def test_keys_in_a_location_are_refused_and_not_shown(location: str) -> None:
    with pytest.raises(InvalidInputError, match="pass them as storage_options") as caught:
        open_store(location)
    assert "SECRET" not in str(caught.value)


class Lent:
    """Options that end when they are told to."""

    def __init__(self) -> None:
        self.given = 0
        self.ends = False

    def __call__(self) -> dict[str, Any]:
        self.given += 1
        self.ends = False
        return {"token": f"anon-{self.given}"}

    def is_due(self) -> bool:
        return self.ends

    def refuse(self) -> None:
        self.ends = True


def test_options_are_taken_anew_before_they_end(tmp_path: Path) -> None:
    lent = Lent()
    store = open_store(f"memory://{tmp_path}", lent)
    store.put("a", b"1")
    assert (store.read("a"), lent.given) == (b"1", 1)
    lent.ends = True
    assert (store.read("a"), lent.given) == (b"1", 2)
    assert (store.read("a"), lent.given) == (b"1", 2)
