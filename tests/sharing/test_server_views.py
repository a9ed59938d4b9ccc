"""Tables of which a share shows a part: nothing of the rest can be known."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.sharing.server.cache import CachedFile, FileCache
from deltalog.sharing.server.downloads import download_open
from deltalog.storage import Store
from tests.support.asgi import Json
from tests.support.sharing import TOKEN, Caller, actions, sharing

SECRETS = (b"secret", b"salary", b"north", b"_delta_log", b"p=", b"part-")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = pa.table(
        {
            "id": [1, 2, 3, 4, 5],
            "salary": [1000, 2000, 3000, 4000, 9_999_999],
            "note": ["secret a", "b", "secret c", "d", "secret e"],
            "p": ["south", "south", "north", "north", "east"],
        }
    )
    write_deltalake(tmp_path / "t", rows, partition_by=["p"])
    return tmp_path / "t"


def _view(table: Path, settings: Json | None = None, /, **more: Any) -> Caller:
    """Settings of the table by position or by name; of the server beside a position."""
    own, server = (more, {}) if settings is None else (settings, more)
    return sharing({"s.d.t": {"location": str(table), "historyShared": True, **own}}, **server)


def _rows(caller: Caller, body: object = None) -> list[dict[str, object]]:
    found = []
    for file in actions(caller.query("s.d.t", body), "file"):
        reply = caller.download(file["url"])
        assert reply.status == 200
        assert len(reply.body) == file["size"]
        found += pq.read_table(io.BytesIO(reply.body)).to_pylist()
    return sorted(found, key=lambda row: row["id"])


def test_only_shown_rows_and_columns_are_there(table: Path) -> None:
    caller = _view(table, columns=["id", "p"], rowFilter="salary < 3500 AND id <> 2")
    assert _rows(caller) == [{"id": 1, "p": "south"}, {"id": 3, "p": "north"}]


@pytest.mark.protocol("SHARE-SEC-08")
def test_nothing_of_the_rest_is_told(table: Path) -> None:
    caller = _view(table, columns=["id"], rowFilter="p = 'south'")
    for reply in (
        caller.get("/shares/s/schemas/d/tables/t/metadata"),
        caller.query("s.d.t"),
        caller.query("s.d.t", delta_sharing_capabilities="responseformat=delta"),
    ):
        assert reply.status == 200
        assert not [word for word in SECRETS if word in reply.body]
    (file,) = actions(caller.query("s.d.t"), "file")
    assert file["partitionValues"] == {}
    assert file["stats"] == '{"numRecords":2}'
    footer = pq.read_metadata(io.BytesIO(caller.download(file["url"]).body))
    statistics = footer.row_group(0).column(0).statistics
    assert statistics is not None
    assert (statistics.min, statistics.max) == (1, 2)


def test_the_metadata_is_that_of_the_shown_columns(table: Path) -> None:
    caller = _view(table, columns=["p", "id"])
    (metadata,) = actions(caller.get("/shares/s/schemas/d/tables/t/metadata"), "metaData")
    assert [name for name in ("salary", "note") if name in metadata["schemaString"]] == []
    assert metadata["partitionColumns"] == []
    assert "size" not in metadata
    assert "numFiles" not in metadata


@pytest.mark.parametrize(
    "hint",
    ["salary > 5000", "note = 'b'", "id > 3"],
    ids=["hidden column", "another hidden column", "shown column"],
)
def test_hints_do_not_feel_for_hidden_rows(table: Path, hint: str) -> None:
    """Statistics are of hidden rows too, so with a row filter they leave no file out."""
    caller = _view(table, columns=["id"], rowFilter="id <= 3")
    assert [row["id"] for row in _rows(caller, {"predicateHints": [hint]})] == [1, 2, 3]


def test_hints_on_shown_partitions_leave_files_out(table: Path) -> None:
    caller = _view(table, columns=["id", "p"], rowFilter="id <= 3")
    found = _rows(caller, {"predicateHints": ["p = 'north'"]})
    assert found == [{"id": 3, "p": "north"}]


def test_hints_on_shown_columns_leave_files_out_where_no_row_is_hidden(table: Path) -> None:
    caller = _view(table, columns=["id"])
    assert [row["id"] for row in _rows(caller, {"predicateHints": ["id > 4"]})] == [5]
    hidden = {"predicateHints": ["salary > 5000000"]}
    assert len(_rows(caller, hidden)) == 5


def test_files_that_left_the_cache_are_made_again(table: Path) -> None:
    config = {"location": str(table), "columns": ["id"]}
    caller = sharing({"s.d.t": config}, limits={"cacheBytes": 1})
    files = actions(caller.query("s.d.t"), "file")
    assert len(files) == 3
    bodies = [caller.download(file["url"]).body for file in files]
    assert [len(body) for body in bodies] == [file["size"] for file in files]


def test_the_cache_is_bounded(tmp_path: Path) -> None:
    cache = FileCache(100, str(tmp_path))

    def make(store: Store, path: str) -> CachedFile:
        store.put(path, b"x" * 40)
        return CachedFile(1, 40)

    for name in ("a", "b", "a", "c"):
        cache.get(name, make)
    assert cache.size_bytes == 80
    assert [name for name in "abc" if cache.known(name) is not None] == ["a", "c"]
    (home,) = tmp_path.iterdir()
    assert sorted(file.name for file in home.iterdir()) == ["a", "c"]
    del cache
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_leaves_the_cache_is_read_to_its_end(tmp_path: Path) -> None:
    cache = FileCache(100, str(tmp_path))

    def make(store: Store, path: str) -> CachedFile:
        store.put(path, path.encode() * 90)
        return CachedFile(1, 90)

    cache.get("a", make)
    file = cache.open("a")
    assert file is not None
    cache.get("b", make)
    assert cache.open("a") is None
    reply = download_open(file, {}, with_body=True)
    assert b"".join(reply.chunks) == b"a" * 90
    assert file.closed


def test_a_file_that_somebody_cleaned_up_is_made_again(table: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache"
    place.mkdir()
    caller = _view(table, {"columns": ["id"]}, cacheDirectory=str(place))
    (file, *_) = actions(caller.query("s.d.t"), "file")
    before = caller.download(file["url"]).body
    for made in place.glob("*/*"):
        made.unlink()
    assert caller.download(file["url"]).body == before
    assert len(_rows(caller)) == 5


def test_what_holds_no_row_is_not_remembered_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.sharing.server.cache._MOST_ENTRIES", 2)
    cache = FileCache(100, str(tmp_path))
    for name in "abcd":
        cache.get(name, lambda _store, _path: CachedFile(0, 0))
    assert [name for name in "abcd" if cache.known(name) is not None] == ["c", "d"]


def test_a_file_is_made_once_for_all_who_wait(tmp_path: Path) -> None:
    cache = FileCache(100, str(tmp_path))
    made = []

    def make(store: Store, path: str) -> CachedFile:
        made.append(path)
        store.put(path, b"x")
        return CachedFile(1, 1)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cache.get("a", make), range(50)))
    assert found == [CachedFile(1, 1)] * 50
    assert made == ["a"]


def test_deleted_rows_stay_deleted_and_old_versions_are_shown(table: Path) -> None:
    DeltaTable(table).alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    DeltaTable(table).delete("id = 1")
    caller = _view(table, columns=["id"], rowFilter="id < 4")
    assert [row["id"] for row in _rows(caller)] == [2, 3]
    assert [row["id"] for row in _rows(caller, {"version": 0})] == [1, 2, 3]


def test_pages_and_limits(table: Path) -> None:
    caller = _view(table, columns=["id"])
    found, token = [], None
    for _ in range(3):
        body = {"maxFiles": 1} | ({"pageToken": token} if token else {})
        reply = caller.query("s.d.t", body)
        found += [file["id"] for file in actions(reply, "file")]
        (end,) = actions(reply, "endStreamAction")
        token = end.get("nextPageToken")
    assert token is None
    assert len(set(found)) == 3
    assert len(actions(caller.query("s.d.t", {"limitHint": 1}), "file")) == 1


def test_a_url_of_the_whole_table_dies_when_a_part_is_shared(table: Path) -> None:
    whole = sharing({"s.d.t": table})
    url = actions(whole.query("s.d.t"), "file")[0]["url"]
    assert whole.download(url).status == 200
    part = _view(table, columns=["id"])
    assert part.download(url).status == 404
    shown = actions(part.query("s.d.t"), "file")[0]["url"]
    assert whole.download(shown).status == 404
    other = _view(table, columns=["id", "p"])
    assert other.download(shown).status == 404


def test_a_share_that_does_not_fit_its_table_is_refused(
    table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caller = _view(table, columns=["id", "nowhere"])
    reply = caller.query("s.d.t")
    assert reply.status == 400
    assert b"nowhere" not in reply.body
    assert TOKEN.encode() not in reply.body
    assert "table 't' does not fit" in caplog.text
    assert str(table) not in caplog.text
