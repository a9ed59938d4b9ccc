"""A shared table as a store: ranges, refusals, and nothing to write."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import DataFileMissingError, SharingError, StorageError
from deltalog.sharing.client import SharedTable
from deltalog.sharing.client.store import _RecentFiles
from tests.support.shared_files import PROTOCOL, file_line, metadata, open_shared, parquet
from tests.support.sharing_server import Answer, ScriptedServer


def test_only_the_bytes_of_the_columns_are_fetched(scripted: ScriptedServer) -> None:
    wide = {f"c{n}": pa.array(range(n, n + 20_000), pa.int64()) for n in range(10)}
    line = file_line(scripted, "wide", parquet(**wide))
    table = open_shared(scripted, PROTOCOL, metadata(columns=dict.fromkeys(wide, "long")), line)
    assert table.scan(["c3"]).to_table()["c3"].to_pylist()[:2] == [3, 4]
    spans = [asked.headers["range"] for asked in scripted.find("/data/wide")]
    sizes = [int(end) - int(start) for start, end in (s[6:].split("-") for s in spans)]
    assert sum(sizes) < len(scripted.files["/data/wide"]) / 4
    assert all("authorization" not in asked.headers for asked in scripted.find("/data/wide"))


def test_small_files_are_held_for_a_while_only() -> None:
    held = _RecentFiles(most_bytes=10)
    assert held.get((1, "a")) is None
    assert held.put((1, "a"), b"12345") == b"12345"
    held.put((2, "a"), b"12345")
    assert (held.get((1, "a")), held.get((2, "a"))) == (b"12345", b"12345")
    held.put((2, "a"), b"123456")
    assert (held.get((1, "a")), held.get((2, "a"))) == (None, b"123456")


def test_a_small_file_is_fetched_once_though_none_is_held(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.sharing.client.store._RECENT", _RecentFiles(most_bytes=1))
    many = pa.array(range(100_000), pa.int64())  # more than is fetched with any footer
    names = [f"f{number}" for number in range(20)]
    files = [file_line(scripted, name, parquet(id=many)) for name in names]
    assert len(scripted.files["/data/f0"]) > 600_000
    table = open_shared(scripted, PROTOCOL, metadata(columns={"id": "long"}), *files)
    assert table.to_pyarrow_table().num_rows == 2_000_000
    assert all(len(scripted.find(f"/data/{name}")) == 1 for name in names)


@pytest.mark.protocol("SHARE-SEC-09")
def test_the_token_stays_with_the_sharing_server(
    shared: SharedTable, scripted: ScriptedServer
) -> None:
    shared.to_pyarrow_table()
    seen = {
        asked.path.startswith("/data/"): "authorization" in asked.headers
        for asked in scripted.asked
    }
    assert seen == {True: False, False: True}


@pytest.mark.protocol("D-76")
def test_signed_urls_are_sent_as_they_stand(scripted: ScriptedServer) -> None:
    name, query = "p=a%253Ab%20c%7E", "?sig=a%2Fb%2B+%3D&x=%7E~&y"
    line = file_line(scripted, name, parquet(id=[1]), query=query)
    table = open_shared(scripted, PROTOCOL, metadata(columns={"id": "long"}), line)
    assert table.to_pyarrow_table().num_rows == 1
    (asked,) = scripted.find(f"/data/{name}")
    assert asked.target == f"/data/{name}{query}"


def test_a_missing_file_is_named_by_its_id(shared: SharedTable, scripted: ScriptedServer) -> None:
    del scripted.files["/data/f2"]
    with pytest.raises(DataFileMissingError, match="files/f2") as caught:
        shared.to_pyarrow_table()
    assert "/data/" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "/etc/passwd", "ftp://x/y", "http://example.com/x", ""]
)
def test_urls_of_other_kinds_are_refused(scripted: ScriptedServer, url: str) -> None:
    line = file_line(scripted, "f", parquet(id=[1]))
    line["file"]["url"] = url
    table = open_shared(scripted, PROTOCOL, metadata(columns={"id": "long"}), line)
    with pytest.raises(SharingError, match=r"refused|names no host"):
        table.to_pyarrow_table()


WIDE = metadata(columns={"id": "long", "more": "double"})


def _wide(server: ScriptedServer) -> dict[str, Any]:
    """A file that is too large to be fetched whole for one of its columns."""
    numbers = range(50_000)
    data = parquet(
        id=pa.array(numbers, pa.int64()), more=pa.array([n / 7 for n in numbers], pa.float64())
    )
    assert len(data) > 1 << 18
    return file_line(server, "f", data)


def test_a_server_that_knows_no_ranges_is_read_too(scripted: ScriptedServer) -> None:
    line = _wide(scripted)
    scripted.at("/data/f", Answer(200, scripted.files["/data/f"]))
    table = open_shared(scripted, PROTOCOL, WIDE, line)
    assert table.scan(["id"]).to_table()["id"].to_pylist() == list(range(50_000))


@pytest.mark.parametrize("wrong", [-7, 7, 100_000])
@pytest.mark.parametrize("columns", [["id"], ["id", "more"]])
def test_a_size_that_is_wrong_is_found_out(
    scripted: ScriptedServer, wrong: int, columns: list[str]
) -> None:
    line = _wide(scripted)
    line["file"]["size"] += wrong
    table = open_shared(scripted, PROTOCOL, WIDE, line)
    assert table.scan(columns).to_table().num_rows == 50_000


def test_nothing_can_be_written(shared: SharedTable) -> None:
    store = shared.snapshot.store
    with pytest.raises(StorageError, match="read-only"):
        store.put("x", b"")
    with pytest.raises(StorageError, match="read-only"):
        store.put_if_absent("x", b"")
    with pytest.raises(StorageError, match="read-only"):
        store.delete_many(["x"])


def test_a_store_reads_files_in_every_way(shared: SharedTable, scripted: ScriptedServer) -> None:
    store = shared.snapshot.store
    data = scripted.files["/data/f1"]
    assert store.read("files/f1") == data
    assert store.read_many(["files/f1"]) == [data]
    assert store.read_ranges("files/f1", [(4, 9), (0, 2)]) == [data[4:9], data[:2]]
    assert store.stat("files/f1").size_bytes == len(data)
    with store.open("files/f1") as file:
        file.seek(-4, 2)
        assert file.read() == b"PAR1"
    assert list(store.list_all("")) == []
    (log,) = store.list_from("_delta_log", "")
    assert store.stat(log.path) == log
    with store.open(log.path) as file:
        assert file.read() == store.read(log.path)
