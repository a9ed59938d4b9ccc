"""Queries for one version in the format parquet: versions, metadata, hints, limits, pages."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.support.sharing import Caller, actions, path_of, sharing

T = "s.d.t"


VERSION = "delta-table-version"


def _at(second: int) -> str:
    return f"2022-01-01T00:00:{second:02d}Z"


def _days(caller: Caller, body: object = None) -> list[str]:
    return sorted(
        file["partitionValues"]["day"][-2:] for file in actions(caller.query(T, body), "file")
    )


@pytest.mark.protocol("SHARE-META-01", "SHARE-META-03", "SHARE-META-05", "SHARE-GEN-12")
def test_the_metadata(daily_caller: Caller) -> None:
    reply = daily_caller.get(f"{path_of(T)}/metadata")
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
def test_the_metadata_of_an_older_version(daily_caller: Caller, daily: Path) -> None:
    for parameters in ("version=1", f"timestamp={_at(25)}"):
        reply = daily_caller.get(f"{path_of(T)}/metadata?{parameters}")
        assert reply.headers[VERSION] == "1"
        assert actions(reply, "metaData")[0]["version"] == 1
    both = daily_caller.get(f"{path_of(T)}/metadata?version=1&timestamp={_at(25)}")
    assert both.status == 400
    assert sharing({T: daily}).get(f"{path_of(T)}/metadata?version=1").status == 400


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


@pytest.mark.protocol("SHARE-QT-01", "SHARE-QT-02", "SHARE-QT-03", "SHARE-QT-21", "SHARE-GEN-08")
@pytest.mark.parametrize("body", [None, {}, {"foo": 1}, {"predicateHints": []}])
def test_a_query(daily_caller: Caller, body: object) -> None:
    reply = daily_caller.query(T, body, content_type="application/json; charset=utf-8")
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
def test_bodies_that_cannot_be_understood(daily_caller: Caller, body: object) -> None:
    reply = daily_caller.query(T, body)
    assert reply.status == 400
    assert reply.json()["errorCode"] == "MALFORMED_REQUEST"


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
def test_travel_in_time(daily_caller: Caller, body: object, version: int) -> None:
    reply = daily_caller.query(T, body)
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
def test_parameters_that_cannot_be_followed(daily_caller: Caller, body: object) -> None:
    reply = daily_caller.query(T, body)
    assert reply.status == 400
    assert reply.json()["errorCode"] == "INVALID_PARAMETER_VALUE"


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
        # What is not understood here, or is one too many, the recipient evaluates.
        ({"limitHint": 1, "predicateHints": ["upper(name) = 'X'"]}, 3),
        ({"limitHint": 1, "predicateHints": ["day >= '2021-04-29'", "nowhere = 1"]}, 2),
        ({"limitHint": 1, "jsonPredicateHints": "{}"}, 3),
        ({"limitHint": "15"}, 2),
    ],
)
def test_limits(daily_caller: Caller, body: object, count: int) -> None:
    assert len(_days(daily_caller, body)) == count


@pytest.mark.protocol("SHARE-QT-09")
def test_a_limit_counts_after_the_hints(daily_caller: Caller) -> None:
    assert _days(daily_caller, {"limitHint": 1, "predicateHints": ["day = '2021-04-30'"]}) == ["30"]


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


def test_the_files_hold_the_rows(daily_caller: Caller) -> None:
    found: list[Any] = []
    for file in actions(daily_caller.query(T), "file"):
        reply = daily_caller.download(file["url"])
        assert len(reply.body) == file["size"]
        found += pq.read_table(io.BytesIO(reply.body)).column("id").to_pylist()
    assert sorted(found) == list(range(30))
