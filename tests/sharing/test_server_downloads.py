"""Files through our own URLs: ranges, conditions, HEAD, and the stores' own URLs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.errors import ObjectNotFoundError
from deltalog.sharing.server.downloads import download
from deltalog.storage import open_store
from tests.support.asgi import Reply, ask
from tests.support.sharing import Caller, actions, name_file, sharing, status_of

T = "s.d.t"


DATA = bytes(range(256)) * 10


@pytest.fixture
def caller(tmp_path: Path) -> Caller:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    (data,) = (file for file in (tmp_path / "t").iterdir() if file.suffix == ".parquet")
    data.write_bytes(DATA)
    return sharing({T: tmp_path / "t"})


def _get(caller: Caller, method: str = "GET", **headers: str) -> Reply:
    url = actions(caller.query(T), "file")[0]["url"]
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    target = "/" + url.partition("://")[2].partition("/")[2]
    return ask(caller.app, method, target, headers=fields)


def test_the_whole_file(caller: Caller) -> None:
    reply = _get(caller)
    assert (reply.status, reply.body) == (200, DATA)
    assert reply.headers["content-length"] == "2560"
    assert reply.headers["accept-ranges"] == "bytes"
    assert reply.headers["content-type"] == "application/octet-stream"
    head = _get(caller, "HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "2560")


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-99", 0, 100),
        ("bytes=2500-", 2500, 2560),
        ("bytes=2500-9999", 2500, 2560),
        ("bytes=-8", 2552, 2560),
        ("bytes=-9999", 0, 2560),
    ],
)
def test_a_range(caller: Caller, asked: str, start: int, end: int) -> None:
    reply = _get(caller, range=asked)
    assert (reply.status, reply.body) == (206, DATA[start:end])
    assert reply.headers["content-range"] == f"bytes {start}-{end - 1}/2560"
    assert reply.headers["content-length"] == str(end - start)


@pytest.mark.parametrize("asked", ["bytes=2560-", "bytes=5-4", "bytes=9999-10000", "bytes=-0"])
def test_a_range_outside_of_the_file(caller: Caller, asked: str) -> None:
    reply = _get(caller, range=asked)
    assert reply.status == 416
    assert reply.headers["content-range"] == "bytes */2560"


@pytest.mark.parametrize("asked", ["", "lines=1-2", "bytes=a-b", "bytes=0-1,4-5", "bytes=-"])
def test_ranges_that_are_not_understood_are_ignored(caller: Caller, asked: str) -> None:
    assert _get(caller, range=asked).status == 200


def test_conditions(caller: Caller) -> None:
    tag = _get(caller).headers["etag"]
    known = _get(caller, if_none_match=tag)
    assert (known.status, known.body) == (304, b"")
    assert _get(caller, if_none_match='"other"').status == 200
    assert _get(caller, range="bytes=0-1", if_range=tag).status == 206
    assert _get(caller, range="bytes=0-1", if_range='"other"').status == 200


@pytest.mark.protocol("SHARE-CDF-09")
def test_a_file_that_is_gone(caller: Caller, tmp_path: Path) -> None:
    url = actions(caller.query(T), "file")[0]["url"]
    for file in (tmp_path / "t").glob("*.parquet"):
        file.unlink()
    reply = caller.download(url)
    assert reply.status == 404
    assert reply.json()["errorCode"] == "RESOURCE_DOES_NOT_EXIST"
    with pytest.raises(ObjectNotFoundError):
        download(open_store(tmp_path), "nowhere", {})


def test_large_files_come_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"ab" * (3 << 19))
    found = download(open_store(tmp_path), "x", {})
    assert [len(piece) for piece in found.chunks] == [1 << 20] * 3


@pytest.mark.protocol("SHARE-SEC-02")
def test_links_out_of_the_table_are_not_followed(table: Path) -> None:
    caller = sharing({T: table})
    (table.parent / "secret.parquet").write_bytes(b"secret")
    (table / "link.parquet").symlink_to(table.parent / "secret.parquet")
    (table / "up").symlink_to(table.parent)
    statuses = []
    for path in ("link.parquet", "up/secret.parquet"):
        name_file(table, path)
        replies = [status_of(caller, file["url"]) for file in actions(caller.query(T), "file")]
        statuses.append(sorted(replies))
        (table / "_delta_log" / f"{1:020d}.json").unlink()
    assert statuses == [[200, 404], [200, 404]]
