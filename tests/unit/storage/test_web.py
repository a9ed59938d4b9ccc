"""Tables on a plain web server: read only, found by its index pages."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog.errors import ObjectNotFoundError, StorageError
from deltalog.storage import FsspecStore, Store, open_store
from deltalog.storage.parquet.reader import open_parquet
from deltalog.storage.parquet.sink import write_parquet


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and index pages; knows no ranges."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def files(tmp_path: Path) -> Store:
    return open_store(tmp_path / "a t")


@pytest.mark.parametrize("name", ["a b", "é", "p=x%3Ay", "h#x", "q?x=1", "plus+&"])
def test_names_are_taken_literally(web: str, files: Store, name: str) -> None:
    files.put(f"{name}/{name}.json", b"0123456789")
    store = open_store(f"{web}/a%20t")
    path = f"{name}/{name}.json"
    assert store.read(path) == b"0123456789"
    assert store.read(f"{store.root}/{path}") == b"0123456789"
    assert store.stat(path).size_bytes == 10
    assert store.read_ranges(path, [(2, 4), (9, 10)]) == [b"23", b"9"]
    assert store.read_many([path, path]) == [b"0123456789"] * 2
    assert [file.path for file in store.list_from(name, "")] == [path]
    assert [file.path for file in store.list_all("")] == [path]


@pytest.mark.protocol("D-25")
def test_listings_come_from_the_index_page(web: str, files: Store) -> None:
    for version in (0, 1, 2, 10):
        files.put(f"_delta_log/{version:020d}.json", b"x")
    store = open_store(f"{web}/a%20t")
    found = [file.path for file in store.list_from("_delta_log", f"{1:020d}.json")]
    assert found == [f"_delta_log/{version:020d}.json" for version in (1, 2, 10)]
    assert list(store.list_from("nowhere", "")) == []


def test_parquet_files_and_open_files(web: str, files: Store) -> None:
    table = pa.table({"id": range(50_000)})
    write_parquet(files, "x y.parquet", table)
    store = open_store(f"{web}/a%20t")
    assert open_parquet(store, "x y.parquet").read().equals(table)
    with store.open("x y.parquet") as file:
        assert file.read(4) == b"PAR1"
        file.seek(-4, 2)
        assert file.read() == b"PAR1"


def test_a_web_server_is_read_only(web: str, files: Store) -> None:
    files.put("a", b"1")
    store = FsspecStore(f"{web}/a%20t")
    attempts: list[Callable[[], None]] = [
        lambda: store.put("b", b""),
        lambda: store.put_if_absent("b", b""),
        lambda: store.delete_many(["a"]),
    ]
    for attempt in attempts:
        with pytest.raises(StorageError, match="read only"):
            attempt()
    with pytest.raises(ObjectNotFoundError):
        store.read("b")
