"""Change feeds and streams of tables of which a share shows a part."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, Field, PrimitiveType, write_deltalake
from deltalog.sharing import SharedTable
from deltalog.sharing.server import app
from deltalog.sharing.server.application import make_app, make_server
from deltalog.sharing.server.config_settings import parse_config
from tests.support.asgi import Json, Reply, serving
from tests.support.sharing import KEY, Caller, actions, config_of, path_of, sharing, write_profile

T = "s.d.t"
FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {**FEED, "delta.enableDeletionVectors": "true"}
UA = {"columns": ["id", "carrier"], "rowFilter": "carrier = 'UA'"}
HIDDEN = (b"secret", b"salary", b"Aloha", b"Aloha", b"_delta_log", b"part-")


def _rows(ids: list[int], carriers: list[str]) -> pa.Table:
    secrets = [f"secret {number}" for number in ids]
    return pa.table({"id": ids, "carrier": carriers, "salary": secrets})


@pytest.fixture(params=[FEED, VECTORS], ids=["copied", "vectors"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """UA: 1 comes and goes to Aloha, 2 comes from Aloha, 3 is deleted, 4 comes; 9 is never UA."""
    path = tmp_path / "t"
    rows = _rows([1, 2, 3, 9], ["UA", "Aloha", "UA", "Aloha"])
    write_deltalake(path, rows, configuration=request.param)
    DeltaTable(path).update(updates={"carrier": "'Aloha'"}, predicate="id = 1")
    DeltaTable(path).update(updates={"carrier": "'UA'"}, predicate="id = 2")
    DeltaTable(path).delete("id IN (3, 9)")
    write_deltalake(path, _rows([4, 8], ["UA", "Aloha"]), mode="append")
    return path


EXPECTED = [
    (0, "insert", 1, "UA"),
    (0, "insert", 3, "UA"),
    (1, "update_preimage", 1, "UA"),
    (2, "update_postimage", 2, "UA"),
    (3, "delete", 3, "UA"),
    (4, "insert", 4, "UA"),
]


def _view(table: Path, settings: Json | None = None, **more: Any) -> Caller:
    own = UA if settings is None else settings
    return sharing({T: {"location": str(table), "historyShared": True, **own}}, **more)


def _changes(caller: Caller, parameters: str = "startingVersion=0", **headers: str) -> Reply:
    return caller.get(f"{path_of(T)}/changes?{parameters}", **headers)


def _files(reply: Reply) -> list[tuple[str, Json]]:
    kinds = ("add", "cdf", "remove", "file")
    assert reply.status == 200, reply.body
    return [(kind, line[kind]) for line in reply.lines() for kind in kinds if kind in line]


def _read(caller: Caller, url: str) -> list[Json]:
    reply = caller.download(url)
    assert reply.status == 200
    assert not [word for word in HIDDEN if word in reply.body]
    rows: list[Json] = pq.read_table(io.BytesIO(reply.body)).to_pylist()
    return rows


def _told(caller: Caller, reply: Reply) -> list[tuple[Any, ...]]:
    """Version, kind of change and shown values of each row."""
    return sorted(
        (file["version"], *[row.pop("_change_type")], *row.values())
        for _, file in _files(reply)
        for row in _read(caller, file["url"])
    )


def test_each_changed_row_is_judged_by_itself(table: Path) -> None:
    """An update into the part shows its row after, one out of the part its row before."""
    caller = _view(table)
    assert _told(caller, _changes(caller)) == EXPECTED


@pytest.mark.protocol("SHARE-SEC-08", "SHARE-SEC-10")
def test_nothing_of_the_rest_is_told(table: Path) -> None:
    caller = _view(table)
    for capabilities in ("responseformat=parquet", "responseformat=delta"):
        reply = _changes(caller, delta_sharing_capabilities=capabilities)
        assert not [word for word in HIDDEN if word in reply.body]
        for kind, file in _files(reply):
            action = file["deltaSingleAction"]["cdc"] if kind == "file" else file
            assert "stats" not in action
            assert action["partitionValues"] == {}
    closed = sharing({T: {"location": str(table), **UA}})
    assert _changes(closed).status == 400
    late = _view(table, {**UA, "startVersion": 3})
    assert _changes(late, "startingVersion=2").status == 400
    assert _told(late, _changes(late, "startingVersion=3")) == EXPECTED[-2:]


def test_hidden_columns_change_nothing_but_that_a_row_was_updated(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, _rows([1], ["UA"]), configuration=FEED)
    DeltaTable(path).update(updates={"salary": "'secret 2'"})
    caller = _view(path)
    assert _told(caller, _changes(caller, "startingVersion=1")) == [
        (1, "update_postimage", 1, "UA"),
        (1, "update_preimage", 1, "UA"),
    ]


@pytest.mark.filterwarnings("ignore:The copy keyword is deprecated")  # the official client's
@pytest.mark.parametrize("use_delta_format", [False, True])
@pytest.mark.parametrize("module", ["deltalog.sharing", "delta_sharing"])
def test_both_clients_read_the_feed(
    table: Path, tmp_path: Path, module: str, use_delta_format: bool
) -> None:
    client = pytest.importorskip(module, reason=f"{module} is not installed")
    with _profile(table, tmp_path) as profile:
        frame = client.load_table_changes_as_pandas(
            f"{profile}#{T}", starting_version=0, use_delta_format=use_delta_format
        )
    names = ["_commit_version", "_change_type", "id", "carrier"]
    assert sorted(frame[names].itertuples(index=False, name=None)) == EXPECTED
    assert sorted(frame.columns) == sorted([*names, "_commit_timestamp"])


@contextmanager
def _profile(table: Path, tmp_path: Path) -> Iterator[Path]:
    shared = {"location": str(table), "historyShared": True, **UA}
    with serving(app(config_of({T: shared}))) as url:
        yield write_profile(tmp_path / "profile.share", f"{url}/delta-sharing/")


@pytest.mark.protocol("SHARE-QT-13")
def test_a_stream_tells_files_with_shown_rows(table: Path) -> None:
    caller = _view(table)
    reply = caller.query(T, {"startingVersion": 3})
    assert not [word for word in HIDDEN if word in reply.body]
    found = [
        (kind, file["version"], [row["id"] for row in _read(caller, file["url"])])
        for kind, file in _files(reply)
    ]
    removed = sorted(row for kind, version, rows in found for row in rows if kind == "remove")
    left = sorted(
        row for kind, version, rows in found for row in rows if version == 3 and kind == "add"
    )
    assert sorted({*removed} - {*left}) == [3]
    assert found[-1] == ("add", 4, [4])
    assert _files(reply)[-1][1]["stats"] == '{"numRecords":1}'


def test_rows_that_go_unseen_stop_no_stream(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, _rows([1, 8, 9], ["UA", "Aloha", "Aloha"]), configuration=VECTORS)
    DeltaTable(path).delete("id = 9")
    caller = _view(path)
    assert _files(caller.query(T, {"startingVersion": 1})) == []
    DeltaTable(path).delete("id = 1")
    assert [kind for kind, _ in _files(caller.query(T, {"startingVersion": 2}))] == ["remove"]


def test_our_client_follows_a_part_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, _rows([1, 9], ["UA", "Aloha"]))
    with _profile(path, tmp_path) as profile:
        follower = SharedTable(f"{profile}#{T}").follow()
        first = follower.poll()
        assert first is not None
        assert first.to_table().to_pylist() == [{"id": 1, "carrier": "UA"}]
        write_deltalake(path, _rows([2, 8], ["UA", "Aloha"]), mode="append")
        write_deltalake(path, _rows([7], ["Aloha"]), mode="append")
        (second,) = follower.available()
        assert second.to_table().to_pylist() == [{"id": 2, "carrier": "UA"}]
        assert second.offset.version == 3


@pytest.mark.protocol("SHARE-QT-23")
@pytest.mark.parametrize("kind", ["feed", "stream"])
def test_pages_join_to_the_whole(table: Path, kind: str) -> None:
    caller = _view(table)

    def ask(**page: Any) -> Reply:
        if kind == "stream":
            return caller.query(T, {"startingVersion": 0, **page})
        values = {"startingVersion": 0, **page}
        return _changes(caller, "&".join(f"{name}={value}" for name, value in values.items()))

    found: list[str] = []
    token = ""
    while True:
        reply = ask(maxFiles=1, pageToken=token)
        assert len(_files(reply)) <= 1
        found += [file["id"] for _, file in _files(reply)]
        token = reply.lines()[-1]["endStreamAction"].get("nextPageToken", "")
        if not token:
            break
    assert found == [file["id"] for _, file in _files(ask())]


@pytest.mark.parametrize("kind", ["feed", "stream"])
def test_files_that_left_the_cache_are_made_again(table: Path, kind: str) -> None:
    caller = _view(table, limits={"cacheBytes": 1})
    reply = _changes(caller) if kind == "feed" else caller.query(T, {"startingVersion": 0})
    sizes = [file["size"] for _, file in _files(reply)]
    assert len(sizes) > 3
    bodies = [caller.download(file["url"]).body for _, file in _files(reply)]
    assert [len(body) for body in bodies] == sizes


def test_a_url_of_changes_opens_nothing_where_another_part_is_shared(table: Path) -> None:
    caller = _view(table)
    urls = [file["url"] for _, file in _files(_changes(caller))]
    for other in ({**UA, "rowFilter": "carrier = 'Aloha'"}, {"columns": ["id"]}, {}):
        assert {_view(table, other).download(url).status for url in urls} == {404}


def test_urls_end_with_what_was_shown(table: Path) -> None:
    """A changed configuration keeps the cache, and nothing of it that is not shown any more."""
    config = {T: {"location": str(table), "historyShared": True}}
    before = make_server(parse_config(config_of({T: {**config[T], **UA}})), KEY.encode())
    caller = Caller(make_app(lambda: before))
    replies = (_changes(caller), caller.query(T), caller.query(T, {"startingVersion": 0}))
    urls = [file["url"] for reply in replies for _, file in _files(reply)]
    assert {caller.download(url).status for url in urls} == {200}
    changed = config_of({T: {**config[T], **UA, "columns": ["carrier"]}})
    after = make_server(parse_config(changed), KEY.encode(), before=before)
    caller = Caller(make_app(lambda: after))
    assert {caller.download(url).status for url in urls} == {404}


def test_what_is_kept_of_one_answer_is_not_taken_for_another(table: Path) -> None:
    queries: list[Json | None] = [{"version": 0}, {"startingVersion": 0}, None, {"version": 3}]

    def rows(caller: Caller, query: Json | None) -> list[list[Json]]:
        reply = _changes(caller) if query is None else caller.query(T, query)
        return [_read(caller, file["url"]) for _, file in _files(reply)]

    apart = [rows(_view(table), query) for query in queries]
    one = _view(table)
    for _ in range(2):
        assert [rows(one, query) for query in queries] == apart


def _add_column(path: Path, name: str) -> None:
    DeltaTable(path).alter.add_columns([Field(name, PrimitiveType("string"))])


def test_columns_that_came_later_are_null_before(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, _rows([1], ["UA"]), configuration=FEED)
    _add_column(path, "extra")
    rows = _rows([2], ["UA"]).append_column("extra", pa.array(["x"]))
    write_deltalake(path, rows, mode="append")
    caller = _view(path, {"columns": ["id", "extra"], "rowFilter": "carrier = 'UA'"})
    assert _told(caller, _changes(caller)) == [(0, "insert", 1, None), (2, "insert", 2, "x")]
    assert _told(caller, _changes(caller, "startingVersion=0&endingVersion=0")) == [
        (0, "insert", 1)
    ]
    (old,) = _files(caller.query(T, {"version": 0}))
    assert _read(caller, old[1]["url"]) == [{"id": 1}]


MAPPED = {**FEED, "delta.columnMapping.mode": "name"}


def test_a_name_that_another_column_had_shows_nothing_of_that_one(tmp_path: Path) -> None:
    """What was called `note` once is hidden, and what is called so now is shown."""
    path = tmp_path / "t"
    rows = pa.table({"id": [1], "note": ["secret 1"]})
    write_deltalake(path, rows, configuration=MAPPED)
    DeltaTable(path).alter.rename_column("note", "salary")
    _add_column(path, "note")
    caller = _view(path, {"columns": ["id", "note"]})
    assert _told(caller, _changes(caller)) == [(0, "insert", 1, None)]
    assert _told(caller, _changes(caller, "startingVersion=0&endingVersion=0")) == [
        (0, "insert", 1)
    ]
    for body in ({"version": 0}, {"startingVersion": 0, "endingVersion": 0}):
        ((_, file),) = _files(caller.query(T, body))
        assert _read(caller, file["url"]) == [{"id": 1}]
    filtered = _view(path, {"columns": ["id"], "rowFilter": "note LIKE 'secret%'"})
    assert filtered.query(T, {"version": 0}).status == 400
    assert _told(filtered, _changes(filtered)) == []


def test_a_renamed_column_goes_by_the_name_that_it_had(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1], "old": ["x"]}), configuration=MAPPED)
    DeltaTable(path).alter.rename_column("old", "new")
    caller = _view(path, {"columns": ["new"]})
    ((_, file),) = _files(caller.query(T, {"version": 0}))
    assert _read(caller, file["url"]) == [{"old": "x"}]
    reply = _changes(caller)
    assert reply.status == 400
    assert reply.json()["message"].startswith("the table had another schema in version 0")


def test_a_hidden_column_may_change_its_type(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, _rows([1], ["UA"]), configuration=FEED)
    rows = pa.table({"id": [2], "carrier": ["UA"], "salary": [7]})
    write_deltalake(path, rows, mode="overwrite", schema_mode="overwrite")
    caller = _view(path)
    assert _told(caller, _changes(caller)) == [
        (0, "insert", 1, "UA"),
        (1, "delete", 1, "UA"),
        (1, "insert", 2, "UA"),
    ]
    assert _changes(_view(path, {"columns": ["salary"]})).status == 400


@pytest.mark.protocol("SHARE-CDF-07")
def test_a_version_without_a_feed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, _rows([1], ["UA"]))
    DeltaTable(path).alter.set_table_properties(FEED)
    caller = _view(path)
    assert _changes(caller).json()["message"] == "cdf is not enabled on table in version 0"
    assert [kind for kind, _ in _files(caller.query(T, {"startingVersion": 0}))] == ["add"]


def test_who_may_read_changes_is_told_so(table: Path) -> None:
    reply = _view(table).get(f"{path_of(T)}/metadata")
    assert actions(reply, "metaData")[0]["configuration"] == {"enableChangeDataFeed": "true"}
    closed = sharing({T: {"location": str(table), **UA}})
    for form in ("parquet", "delta"):
        reply = closed.get(
            f"{path_of(T)}/metadata", delta_sharing_capabilities=f"responseformat={form}"
        )
        assert b"enableChangeDataFeed" not in reply.body


def test_links_out_of_the_table_are_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, _rows([1], ["UA"]), configuration=FEED)
    (file,) = path.glob("*.parquet")
    file.rename(tmp_path / "elsewhere.parquet")
    file.symlink_to(tmp_path / "elsewhere.parquet")
    caller = _view(path)
    for reply in (_changes(caller), caller.query(T), caller.query(T, {"startingVersion": 0})):
        assert _files(reply) == []
