"""Queries for one version in the format parquet: versions, metadata, hints, limits, pages."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.sharing.server import app
from tests.support.sharing import (
    TOKEN,
    Caller,
    actions,
    commit_at,
    config_of,
    path_of,
    sharing,
)

T = "s.d.t"
VERSION = "delta-table-version"
TIMES = ("2022-01-01T00:00:10Z", "2022-01-01T00:00:20Z", "2022-01-01T00:00:30Z")


def _at(second: int) -> str:
    return f"2022-01-01T00:00:{second:02d}Z"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Versions 0 to 2, ten seconds apart; each adds a day of ten rows."""
    path = tmp_path / "t"
    for number, day in enumerate(["2021-04-28", "2021-04-29", "2021-04-30"]):
        rows = {"id": range(number * 10, number * 10 + 10), "day": [day] * 10}
        columns = pa.table({"id": pa.array(rows["id"], pa.int64()), "day": rows["day"]})
        write_deltalake(path, columns, partition_by=["day"], mode="append")
    commit_at(path, *TIMES)
    return path


@pytest.fixture
def caller(table: Path) -> Caller:
    return sharing({T: {"location": str(table), "historyShared": True}})


def _days(caller: Caller, body: object = None) -> list[str]:
    return sorted(
        file["partitionValues"]["day"][-2:] for file in actions(caller.query(T, body), "file")
    )


# -- version


@pytest.mark.protocol("SHARE-VER-01", "SHARE-VER-02", "B-90")
def test_the_version(caller: Caller) -> None:
    for method, suffix in (("GET", "/version"), ("HEAD", "/version"), ("HEAD", "")):
        reply = caller.ask(method, path_of(T) + suffix)
        assert (reply.status, reply.headers[VERSION], reply.body) == (200, "2", b"")
    assert caller.ask("HEAD", path_of("s.d.nothing")).status == 404


@pytest.mark.protocol("SHARE-VER-03")
@pytest.mark.parametrize(("second", "version"), [(15, 1), (5, 0), (20, 1), (10, 0), (30, 2)])
def test_the_first_version_since_a_moment(caller: Caller, second: int, version: int) -> None:
    reply = caller.get(f"{path_of(T)}/version?startingTimestamp={_at(second)}")
    assert reply.headers[VERSION] == str(version)


@pytest.mark.protocol("SHARE-VER-03", "SHARE-TS-01")
@pytest.mark.parametrize("moment", [_at(31), "abc", "2022-01-01 00:00:10", ""])
def test_moments_without_a_version(caller: Caller, moment: str) -> None:
    reply = caller.get(f"{path_of(T)}/version?startingTimestamp={moment.replace(' ', '%20')}")
    assert reply.status == 400


@pytest.mark.protocol("SHARE-VER-04", "SHARE-SEC-10")
def test_moments_before_the_shared_history(table: Path) -> None:
    late = sharing({T: {"location": str(table), "historyShared": True, "startVersion": 2}})
    assert late.get(f"{path_of(T)}/version?startingTimestamp={_at(15)}").status == 400
    assert late.get(f"{path_of(T)}/version?startingTimestamp={_at(25)}").status == 200
    closed = sharing({T: table})
    assert closed.get(f"{path_of(T)}/version?startingTimestamp={_at(15)}").status == 400
    assert closed.get(f"{path_of(T)}/version").status == 200


@pytest.mark.protocol("SHARE-TS-01")
def test_offsets_are_understood(caller: Caller) -> None:
    for moment in ("2022-01-01T01:00:15%2B01:00", "2022-01-01T01:00:15+01:00"):
        reply = caller.get(f"{path_of(T)}/version?startingTimestamp={moment}")
        assert reply.headers[VERSION] == "1"


# -- metadata


@pytest.mark.protocol("SHARE-META-01", "SHARE-META-03", "SHARE-META-05", "SHARE-GEN-12")
def test_the_metadata(caller: Caller) -> None:
    reply = caller.get(f"{path_of(T)}/metadata")
    assert reply.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert reply.headers[VERSION] == "2"
    protocol, metadata = reply.lines()
    assert protocol == {"protocol": {"minReaderVersion": 1}}
    found = metadata["metaData"]
    assert set(found) == {"id", "format", "schemaString", "partitionColumns"}
    assert found["format"] == {"provider": "parquet"}
    assert found["partitionColumns"] == ["day"]
    fields = orjson.loads(found["schemaString"])["fields"]
    assert [field["name"] for field in fields] == ["id", "day"]


@pytest.mark.protocol("SHARE-META-02", "B-91")
def test_the_metadata_of_an_older_version(caller: Caller, table: Path) -> None:
    for parameters in ("version=1", f"timestamp={_at(25)}"):
        reply = caller.get(f"{path_of(T)}/metadata?{parameters}")
        assert reply.headers[VERSION] == "1"
        assert actions(reply, "metaData")[0]["version"] == 1
    both = caller.get(f"{path_of(T)}/metadata?version=1&timestamp={_at(25)}")
    assert both.status == 400
    assert sharing({T: table}).get(f"{path_of(T)}/metadata?version=1").status == 400


@pytest.mark.protocol("SHARE-META-06", "SHARE-SEC-08", "SHARE-SCH-01")
def test_the_format_parquet_strips_what_is_the_tables_own(tmp_path: Path) -> None:
    feed = {"delta.enableChangeDataFeed": "true", "my.secret": "x"}
    rows = pa.table({"a": [1]})
    write_deltalake(tmp_path / "t", rows, configuration=feed)
    DeltaTable(tmp_path / "t").alter.set_column_metadata("a", {"comment": "c", "other": "o"})
    caller = sharing({T: {"location": str(tmp_path / "t"), "historyShared": True}})
    (metadata,) = actions(caller.get(f"{path_of(T)}/metadata"), "metaData")
    (field,) = orjson.loads(metadata["schemaString"])["fields"]
    assert field == {"name": "a", "type": "long", "nullable": True, "metadata": {"comment": "c"}}
    assert metadata["configuration"] == {"enableChangeDataFeed": "true"}
    closed = sharing({T: tmp_path / "t"})
    assert "configuration" not in actions(closed.get(f"{path_of(T)}/metadata"), "metaData")[0]


# -- query


@pytest.mark.protocol("SHARE-QT-01", "SHARE-QT-02", "SHARE-QT-03", "SHARE-QT-21", "SHARE-GEN-08")
@pytest.mark.parametrize("body", [None, {}, {"foo": 1}, {"predicateHints": []}])
def test_a_query(caller: Caller, body: object) -> None:
    reply = caller.query(T, body, content_type="application/json; charset=utf-8")
    lines = reply.lines()
    assert [list(line) for line in lines] == [["protocol"], ["metaData"], *[["file"]] * 3]
    assert (lines[1]["metaData"]["numFiles"], reply.headers[VERSION]) == (3, "2")
    files = [line["file"] for line in lines[2:]]
    assert lines[1]["metaData"]["size"] == sum(file["size"] for file in files)
    assert set(files[0]) == {
        "url",
        "id",
        "partitionValues",
        "size",
        "stats",
        "expirationTimestamp",
    }
    assert orjson.loads(files[0]["stats"])["numRecords"] == 10


@pytest.mark.protocol("SHARE-QT-01", "SHARE-GEN-07", "SHARE-QT-20")
@pytest.mark.parametrize(
    "body",
    [
        b"[1]",
        b"{",
        b"\xff",
        b'"x"',
        {"version": "x3"},
        {"version": -1},
        {"limitHint": -1},
        {"limitHint": 1.5},
        {"predicateHints": [1]},
        {"timestamp": 5},
        {"timestamp": "yesterday"},
        {"maxFiles": -1},
        {"version": 2**63},
    ],
)
def test_bodies_that_cannot_be_understood(caller: Caller, body: object) -> None:
    reply = caller.query(T, body)
    assert reply.status == 400
    assert reply.json()["errorCode"] == "MALFORMED_REQUEST"


@pytest.mark.protocol("SHARE-QT-17", "B-96")
def test_ids_last_and_urls_do_not(caller: Caller) -> None:
    one, other = caller.query(T), caller.query(T)
    ids = [file["id"] for file in actions(one, "file")]
    assert ids == [file["id"] for file in actions(other, "file")]
    assert [len(name) for name in ids] == [32] * 3
    assert one.headers["fileidhash"] == "md5"
    long = caller.query(T, None, fileidhash="SHA256")
    assert long.headers["fileidhash"] == "sha256"
    assert [len(file["id"]) for file in actions(long, "file")] == [64] * 3
    assert caller.query(T, None, fileidhash="crc").status == 400


@pytest.mark.protocol("SHARE-QT-10", "SHARE-QT-11", "SHARE-QT-16")
@pytest.mark.parametrize(
    ("body", "version"),
    [
        ({"version": 1}, 1),
        ({"version": "0"}, 0),
        ({"timestamp": _at(15)}, 0),
        ({"timestamp": _at(20)}, 1),
        ({"timestamp": _at(30)}, 2),
    ],
)
def test_travel_in_time(caller: Caller, body: object, version: int) -> None:
    reply = caller.query(T, body)
    assert reply.headers[VERSION] == str(version)
    files = actions(reply, "file")
    assert len(files) == version + 1
    seconds = {0: 10, 1: 20, 2: 30}[version]
    assert {file["timestamp"] for file in files} == {1640995200000 + seconds * 1000}
    assert {file["version"] for file in files} == {version}
    assert actions(reply, "metaData")[0]["version"] == version


@pytest.mark.protocol("SHARE-QT-10", "SHARE-QT-11", "SHARE-QT-12", "SHARE-QT-14")
@pytest.mark.parametrize(
    "body",
    [
        {"version": 3},
        {"timestamp": _at(5)},
        {"timestamp": _at(31)},
        {"version": 1, "timestamp": _at(15)},
        {"version": 1, "startingVersion": 0},
        {"timestamp": _at(15), "startingVersion": 0},
        {"endingVersion": 1},
        {"startingVersion": 2, "endingVersion": 1},
        {"startingVersion": 0, "endingVersion": 3},
        {"startingVersion": 3},
        {"version": 1, "includeRefreshToken": True},
        {"maxFiles": 0},
        {"pageToken": "abc"},
        {"refreshToken": "abc"},
    ],
)
def test_parameters_that_cannot_be_followed(caller: Caller, body: object) -> None:
    reply = caller.query(T, body)
    assert reply.status == 400
    assert reply.json()["errorCode"] == "INVALID_PARAMETER_VALUE"


@pytest.mark.protocol("SHARE-QT-10", "SHARE-SEC-10")
def test_history_that_is_not_shared(table: Path) -> None:
    closed = sharing({T: table})
    for body in ({"version": 1}, {"timestamp": _at(15)}, {"startingVersion": 0}):
        assert closed.query(T, body).status == 400
    late = sharing({T: {"location": str(table), "historyShared": True, "startVersion": 1}})
    reply = late.query(T, {"version": 0})
    assert reply.status == 400
    assert reply.json()["message"] == "You can only query table data since version 1."
    assert late.query(T, {"startingVersion": 0}).status == 400
    assert late.query(T, {"timestamp": _at(15)}).status == 400
    assert late.query(T, {"version": 1}).status == 200


# -- hints


def _json_hint(operation: str, name: str, value: str, kind: str) -> dict[str, object]:
    column = {"op": "column", "name": name, "valueType": kind}
    literal = {"op": "literal", "value": value, "valueType": kind}
    return {"op": operation, "children": [column, literal]}


@pytest.mark.protocol("SHARE-QT-04", "SHARE-QT-05", "SHARE-QT-06", "SHARE-JP-10", "D-78")
@pytest.mark.parametrize(
    ("hints", "days"),
    [
        (["day >= '2021-04-29'"], ["29", "30"]),
        (["day >= '2021-04-29'", "day < '2021-04-30'"], ["29"]),
        (["'2021-04-29' = DAY"], ["29"]),
        (["day <> '2021-04-29'"], ["28", "30"]),
        (["day IS NULL"], []),
        (["id > 15"], ["29", "30"]),
        (["foo("], ["28", "29", "30"]),
        (["nowhere = 1", "day = '2021-04-28'"], ["28"]),
        (["nowhere = 1"], ["28", "29", "30"]),
        (["day = '2021-04-28' OR id = 25"], ["28", "30"]),
        (["id"], ["28", "29", "30"]),
    ],
)
def test_sql_hints(caller: Caller, hints: list[str], days: list[str]) -> None:
    assert _days(caller, {"predicateHints": hints}) == days


@pytest.mark.protocol("SHARE-QT-06", "SHARE-QT-07", "SHARE-JP-10", "SHARE-JP-07")
@pytest.mark.parametrize(
    ("hint", "days"),
    [
        (_json_hint("equal", "day", "2021-04-29", "string"), ["29"]),
        (_json_hint("greaterThan", "id", "15", "long"), ["29", "30"]),
        (_json_hint("equal", "nowhere", "1", "int"), ["28", "29", "30"]),
        (_json_hint("later", "id", "1", "int"), ["28", "29", "30"]),
        ("no tree", ["28", "29", "30"]),
        ({"op": "and", "children": []}, ["28", "29", "30"]),
    ],
)
def test_json_hints(caller: Caller, hint: object, days: list[str]) -> None:
    text = hint if isinstance(hint, str) else orjson.dumps(hint).decode()
    assert _days(caller, {"jsonPredicateHints": text}) == days


@pytest.mark.protocol("SHARE-JP-05", "SHARE-JP-06", "SHARE-JP-08", "SHARE-PV-01")
def test_three_valued_logic(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "hireDate": pa.array(["2021-04-29", "2021-04-28", "2021-04-29", None]),
            "id": pa.array([10, 10, 30, 30], pa.int32()),
            "unknown": pa.nulls(4, pa.string()),
        }
    )
    rows = rows.set_column(0, "hireDate", rows["hireDate"].cast(pa.date32()))
    write_deltalake(tmp_path / "t", rows, partition_by=["hireDate", "id"])
    caller = sharing({T: tmp_path / "t"})
    day = _json_hint("equal", "hireDate", "2021-04-29", "date")
    small = _json_hint("lessThan", "id", "25", "int")
    never = _json_hint("equal", "unknown", "x", "string")

    def kept(hint: object) -> set[tuple[str | None, str]]:
        body = {"jsonPredicateHints": orjson.dumps(hint).decode()}
        files = actions(caller.query(T, body), "file")
        values = [file["partitionValues"] for file in files]
        return {(value["hireDate"], value["id"]) for value in values}

    assert kept(day) == {("2021-04-29", "10"), ("2021-04-29", "30")}
    assert kept({"op": "and", "children": [day, small]}) == {("2021-04-29", "10")}
    missing = {"op": "isNull", "children": [{"op": "column", "name": "id", "valueType": "int"}]}
    assert len(kept({"op": "not", "children": [missing]})) == 4
    no_day = {**missing, "children": [{"op": "column", "name": "hireDate", "valueType": "date"}]}
    assert kept(no_day) == {(None, "30")}
    # The statistics tell that the column is NULL everywhere, so nothing can equal anything.
    assert kept({"op": "and", "children": [never, small]}) == set()
    assert len(kept({"op": "or", "children": [small, day]})) == 3


@pytest.mark.protocol("SHARE-QT-07", "SHARE-JP-06")
def test_hints_never_lose_a_row(tmp_path: Path) -> None:
    """Whatever is asked, the files that are told hold every row that matches."""
    generator = random.Random(7)
    values = [generator.choice([None, *range(-5, 20)]) for _ in range(400)]
    rows = pa.table({"p": [value and value % 4 for value in values], "v": values})
    for start in range(0, 400, 40):
        write_deltalake(tmp_path / "t", rows.slice(start, 40), partition_by=["p"], mode="append")
    caller = sharing({T: tmp_path / "t"})
    frame = DeltaTable(tmp_path / "t")
    operators = ["=", "<>", "<", "<=", ">", ">="]
    for _ in range(60):
        parts = [
            f"{generator.choice('pv')} {generator.choice(operators)} {generator.randint(-6, 21)}"
            for _ in range(generator.randint(1, 3))
        ]
        hint = generator.choice([" AND ", " OR "]).join(parts)
        files = actions(caller.query(T, {"predicateHints": [hint]}), "file")
        told = {file["id"] for file in files}
        matching = frame.scan(predicate=hint, columns=["_metadata.file_path"]).to_table()
        every = actions(caller.query(T), "file")
        by_name = {_stored_name(caller, file["url"]): file["id"] for file in every}
        needed = {by_name[str(path).rpartition("/")[2]] for path in matching.column(0).to_pylist()}
        assert needed <= told, hint


def _stored_name(_caller: Caller, url: str) -> str:
    from deltalog.sharing.server.tokens import decode_base64

    encoded = url.partition("?")[0].rpartition("/")[2]
    return (decode_base64(encoded) or b"").decode().rpartition("/")[2]


def test_hints_can_be_switched_off(table: Path) -> None:
    off = {"evaluatePredicateHints": False, "evaluateJsonPredicateHints": False}
    caller = sharing({T: table}, **off)
    assert len(_days(caller, {"predicateHints": ["day = '2021-04-28'"]})) == 3


@pytest.mark.protocol("SHARE-QT-08", "SHARE-QT-09")
@pytest.mark.parametrize(
    ("body", "count"),
    [
        ({"limitHint": 0}, 0),
        ({"limitHint": 1}, 1),
        ({"limitHint": 10}, 1),
        ({"limitHint": 15}, 2),
        ({"limitHint": 1000}, 3),
        ({"limitHint": 1, "predicateHints": ["day >= '2021-04-29'"]}, 1),
        ({"limitHint": 1, "predicateHints": ["id >= 15"]}, 2),
        ({"limitHint": "15"}, 2),
    ],
)
def test_limits(caller: Caller, body: object, count: int) -> None:
    assert len(_days(caller, body)) == count


@pytest.mark.protocol("SHARE-QT-09")
def test_a_limit_counts_after_the_hints(caller: Caller) -> None:
    assert _days(caller, {"limitHint": 1, "predicateHints": ["day = '2021-04-30'"]}) == ["30"]


@pytest.mark.protocol("SHARE-QT-08")
def test_a_limit_does_not_count_deleted_rows(tmp_path: Path) -> None:
    vectors = {"delta.enableDeletionVectors": "true"}
    for start in (0, 10, 20):
        rows = pa.table({"id": range(start, start + 10)})
        write_deltalake(tmp_path / "t", rows, mode="append", configuration=vectors)
    DeltaTable(tmp_path / "t").delete("id % 10 > 4")
    caller = sharing({T: tmp_path / "t"})
    capabilities = "responseformat=delta;readerfeatures=deletionvectors"
    reply = caller.query(T, {"limitHint": 6}, delta_sharing_capabilities=capabilities)
    assert len(actions(reply, "file")) == 2


# -- pages and fresh URLs


def _pages(caller: Caller, body: dict[str, Any], headers: str = "") -> list[list[str]]:
    pages, token = [], None
    while True:
        asked = body | ({"pageToken": token} if token else {})
        reply = caller.query(T, asked, delta_sharing_capabilities=headers)
        pages.append([file["id"] for file in actions(reply, "file")])
        (end,) = actions(reply, "endStreamAction")
        token = end.get("nextPageToken")
        if token is None:
            return pages


@pytest.mark.protocol("SHARE-QT-23")
def test_pages_hold_every_file_once(caller: Caller) -> None:
    pages = _pages(caller, {"maxFiles": 2})
    assert [len(page) for page in pages] == [2, 1]
    every = {file["id"] for file in actions(caller.query(T), "file")}
    assert {name for page in pages for name in page} == every
    assert [len(page) for page in _pages(caller, {"maxFiles": 3})] == [3]


@pytest.mark.protocol("SHARE-QT-23")
def test_a_page_stays_on_its_version(caller: Caller, table: Path) -> None:
    first = caller.query(T, {"maxFiles": 2})
    token = actions(first, "endStreamAction")[0]["nextPageToken"]
    DeltaTable(table).delete("id < 25")
    rows = pa.table({"id": [99], "day": ["2021-05-01"]})
    write_deltalake(table, rows, mode="append")
    second = caller.query(T, {"maxFiles": 2, "pageToken": token})
    assert second.headers[VERSION] == first.headers[VERSION] == "2"
    days = [
        file["partitionValues"]["day"][-2:]
        for reply in (first, second)
        for file in actions(reply, "file")
    ]
    assert days == ["28", "29", "30"]


@pytest.mark.protocol("SHARE-QT-23", "SHARE-SEC-03", "SHARE-SEC-05")
def test_page_tokens_are_bound(table: Path) -> None:
    more = {
        "recipients": [
            {"name": "alice", "token": TOKEN, "shares": ["s"]},
            {"name": "bob", "token": "token-of-bob", "shares": ["s"]},
        ]
    }
    caller = Caller(app(config_of({T: table, "s.d.other": table}, **more)))
    asked = {"maxFiles": 1, "predicateHints": ["day > '2021'"]}
    token = actions(caller.query(T, asked), "endStreamAction")[0]["nextPageToken"]
    assert caller.query(T, {**asked, "pageToken": token}).status == 200
    assert caller.query(T, {**asked, "maxFiles": 2, "pageToken": token}).status == 200
    bob = replace(caller, token="token-of-bob")  # noqa: S106
    wrong = [
        caller.query(T, {"maxFiles": 1, "pageToken": token}),
        caller.query(T, {**asked, "limitHint": 5, "pageToken": token}),
        caller.query("s.d.other", {**asked, "pageToken": token}),
        bob.query(T, {**asked, "pageToken": token}),
        caller.query(T, {**asked, "refreshToken": token}),
        caller.query(T, {**asked, "pageToken": token[:-2] + "AA"}),
    ]
    assert [reply.status for reply in wrong] == [400] * len(wrong)


@pytest.mark.protocol("SHARE-QT-23", "SHARE-SEC-05")
def test_page_tokens_expire(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    from deltalog.clock import now_ms
    from deltalog.sharing.server import endpoints

    token = actions(caller.query(T, {"maxFiles": 1}), "endStreamAction")[0]["nextPageToken"]
    later = now_ms() + 4 * 24 * 3600 * 1000
    monkeypatch.setattr(endpoints, "now_ms", lambda: later)
    reply = caller.query(T, {"maxFiles": 1, "pageToken": token})
    assert reply.status == 400
    assert "expired" in reply.json()["message"]


@pytest.mark.protocol("SHARE-QT-23", "SHARE-CLI-03")
def test_refresh_tokens_give_new_urls_for_the_same_files(caller: Caller, table: Path) -> None:
    first = caller.query(T, {"includeRefreshToken": True})
    (end,) = actions(first, "endStreamAction")
    assert end["minUrlExpirationTimestamp"] == actions(first, "file")[0]["expirationTimestamp"]
    DeltaTable(table).delete("id < 25")
    again = caller.query(T, {"refreshToken": end["refreshToken"]})
    assert again.headers[VERSION] == "2"
    assert [file["id"] for file in actions(again, "file")] == [
        file["id"] for file in actions(first, "file")
    ]
    assert actions(again, "endStreamAction")[0]["refreshToken"]


@pytest.mark.protocol("SHARE-CAP-10", "B-92")
def test_the_last_line_for_who_asks_for_it(caller: Caller) -> None:
    reply = caller.query(T, None, delta_sharing_capabilities="includeendstreamaction=true")
    assert list(reply.lines()[-1]) == ["endStreamAction"]
    assert "includeendstreamaction=true" in reply.headers["delta-sharing-capabilities"]
    bare = caller.query(T)
    assert list(bare.lines()[-1]) == ["file"]
    assert bare.headers["delta-sharing-capabilities"] == "responseformat=parquet"


def test_answers_are_compressed_for_who_takes_that(caller: Caller) -> None:
    import gzip

    reply = caller.query(T, None, accept_encoding="gzip, deflate")
    assert reply.headers["content-encoding"] == "gzip"
    plain = caller.query(T)
    assert len(gzip.decompress(reply.body).splitlines()) == len(plain.lines())


def test_the_files_hold_the_rows(caller: Caller) -> None:
    found: list[Any] = []
    for file in actions(caller.query(T), "file"):
        reply = caller.download(file["url"])
        assert len(reply.body) == file["size"]
        found += pq.read_table(io.BytesIO(reply.body)).column("id").to_pylist()
    assert sorted(found) == list(range(30))


def test_a_table_that_is_gone(tmp_path: Path) -> None:
    caller = sharing({T: tmp_path / "nowhere"})
    for reply in (
        caller.get(f"{path_of(T)}/version"),
        caller.get(f"{path_of(T)}/metadata"),
        caller.query(T),
    ):
        assert reply.status == 404
        assert str(tmp_path).encode() not in reply.body
