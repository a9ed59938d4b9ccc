"""Change feeds, and streams from a starting version."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, Field, PrimitiveType, write_deltalake
from tests.support.asgi import Json, Reply
from tests.support.sharing import Caller, actions, changes, kinds_and_versions, sharing

T = "s.d.t"


VERSION = "delta-table-version"


FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.mark.protocol("SHARE-CDF-03", "SHARE-CDF-04", "SHARE-CDF-08", "D-75", "SHARE-GEN-12")
def test_the_whole_feed(changed_caller: Caller) -> None:
    reply = changes(changed_caller, "startingVersion=0")
    assert reply.headers[VERSION] == "0"
    assert reply.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert [list(line) for line in reply.lines()[:2]] == [["protocol"], ["metaData"]]
    assert kinds_and_versions(reply) == [("add", 0), ("add", 0), ("cdf", 1), ("remove", 3)]


@pytest.mark.protocol("SHARE-QT-18", "SHARE-CDF-09")
def test_lines_ofchanges(changed_caller: Caller) -> None:
    reply = changes(changed_caller, "startingVersion=0")
    for kind in ("add", "cdf", "remove"):
        for file in actions(reply, kind):
            needed = {"url", "id", "partitionValues", "size", "version", "timestamp"}
            assert needed <= set(file)
            assert ("stats" in file) == (kind == "add")
            assert file["timestamp"] == 1640995200000 + (10 + 10 * file["version"]) * 1000
            assert changed_caller.download(file["url"]).status == 200
    (cdf,) = actions(reply, "cdf")
    rows = pq.read_table(io.BytesIO(changed_caller.download(cdf["url"]).body))
    kinds = sorted(str(kind) for kind in rows["_change_type"].to_pylist())
    assert kinds == ["update_postimage"] * 2 + ["update_preimage"] * 2


@pytest.mark.protocol("SHARE-CDF-01", "SHARE-CDF-02", "SHARE-CDF-03")
@pytest.mark.parametrize(
    ("parameters", "versions"),
    [
        ("startingVersion=1&endingVersion=1", [1]),
        ("startingVersion=1&endingVersion=2", [1]),
        ("startingVersion=1&endingVersion=99", [1, 3]),
        ("startingTimestamp=2022-01-01T00:00:15Z&endingTimestamp=2022-01-01T00:00:25Z", [1]),
        ("startingTimestamp=2022-01-01T00:00:20Z&endingTimestamp=2022-01-01T00:00:40Z", [1, 3]),
        ("startingTimestamp=2022-01-01T00:00:00Z&endingVersion=0", [0, 0]),
        ("startingVersion=3", [3]),
    ],
)
def test_ranges(changed_caller: Caller, parameters: str, versions: list[int]) -> None:
    assert [
        version for _, version in kinds_and_versions(changes(changed_caller, parameters))
    ] == versions


@pytest.mark.protocol("SHARE-CDF-01", "SHARE-CDF-02", "SHARE-TS-01")
@pytest.mark.parametrize(
    "parameters",
    [
        "",
        "endingVersion=1",
        "startingVersion=0&startingTimestamp=2022-01-01T00:00:15Z",
        "startingVersion=0&endingVersion=1&endingTimestamp=2022-01-01T00:00:15Z",
        "startingVersion=2&endingVersion=1",
        "startingVersion=4",
        "startingVersion=-1",
        "startingVersion=x",
        "startingTimestamp=2022-01-01T00:00:41Z",
        "startingTimestamp=2022-01-01",
        "startingVersion=0&endingTimestamp=2022-01-01T00:00:05Z",
        "startingVersion=0&includeHistoricalMetadata=maybe",
        "startingVersion=0&maxFiles=0",
        "startingVersion=0&pageToken=x",
    ],
)
def test_ranges_that_cannot_be(changed_caller: Caller, parameters: str) -> None:
    assert changes(changed_caller, parameters).status == 400


@pytest.mark.protocol("SHARE-CDF-06")
def test_historical_metadata(changed_caller: Caller) -> None:
    reply = changes(changed_caller, "startingVersion=0&includeHistoricalMetadata=true")
    first, second = actions(reply, "metaData")
    assert (first["version"], second["version"]) == (0, 2)
    assert "extra" not in first["schemaString"]
    assert "extra" in second["schemaString"]
    (only,) = actions(changes(changed_caller, "startingVersion=0"), "metaData")
    assert "version" not in only
    assert "extra" in only["schemaString"]


@pytest.mark.protocol("SHARE-CDF-07", "SHARE-SEC-10")
def test_feeds_that_are_not_shared(changed: Path, tmp_path: Path) -> None:
    closed = sharing({T: changed})
    assert changes(closed, "startingVersion=0").status == 400
    late = sharing({T: {"location": str(changed), "historyShared": True, "startVersion": 2}})
    assert changes(late, "startingVersion=1").status == 400
    assert kinds_and_versions(changes(late, "startingVersion=2")) == [("remove", 3)]
    write_deltalake(tmp_path / "bare", pa.table({"a": [1]}))
    bare = sharing({T: {"location": str(tmp_path / "bare"), "historyShared": True}})
    reply = changes(bare, "startingVersion=0")
    assert reply.status == 400
    assert "cdf is not enabled on table" in reply.json()["message"]


@pytest.mark.protocol("SHARE-QT-13", "SHARE-QT-03")
def test_a_stream_from_a_version(changed_caller: Caller) -> None:
    reply = changed_caller.query(T, {"startingVersion": 0})
    assert reply.headers[VERSION] == "0"
    assert kinds_and_versions(reply) == [
        ("add", 0),
        ("add", 0),
        ("remove", 1),
        ("add", 1),
        ("remove", 3),
    ]
    first, second = actions(reply, "metaData")
    assert "extra" not in first["schemaString"]
    assert second["version"] == 2
    order = [next(iter(line)) for line in reply.lines()]
    assert order == ["protocol", "metaData", *["add"] * 2, "remove", "add", "metaData", "remove"]


@pytest.mark.protocol("SHARE-QT-14")
def test_a_window_of_a_stream(changed_caller: Caller) -> None:
    reply = changed_caller.query(T, {"startingVersion": 1, "endingVersion": 2})
    assert kinds_and_versions(reply) == [("remove", 1), ("add", 1)]
    assert reply.headers[VERSION] == "1"


@pytest.mark.protocol("SHARE-QT-23")
@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", ["feed", "stream"])
def test_pages_of_changes_join_to_the_whole(changed_caller: Caller, size: int, kind: str) -> None:
    def ask(**page: Any) -> Reply:
        if kind == "stream":
            return changed_caller.query(T, {"startingVersion": 0, **page})
        parameters = {"startingVersion": 0, "includeHistoricalMetadata": "true", **page}
        return changes(
            changed_caller, "&".join(f"{key}={value}" for key, value in parameters.items())
        )

    lines: list[Json] = []
    token = ""
    while True:
        reply = ask(maxFiles=size, pageToken=token)
        page = reply.lines()
        assert len(kinds_and_versions(reply)) <= size
        lines += [_bare(line) for line in page[2:-1]]
        token = page[-1]["endStreamAction"].get("nextPageToken", "")
        if not token:
            break
    assert lines == [_bare(line) for line in ask().lines()[2:]]


def test_metadata_is_told_on_one_page_only(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1]}), configuration=FEED)
    DeltaTable(path).alter.add_columns([Field("extra", PrimitiveType("string"))])
    for number in range(3):
        rows = pa.table({"id": [number], "extra": ["x"]})
        write_deltalake(path, rows, mode="append")
    caller = sharing({T: {"location": str(path), "historyShared": True}})
    told, token = [], ""
    for _ in range(4):
        reply = caller.query(T, {"startingVersion": 0, "maxFiles": 1, "pageToken": token})
        told += [line["metaData"]["version"] for line in reply.lines()[2:] if "metaData" in line]
        token = reply.lines()[-1]["endStreamAction"].get("nextPageToken", "")
    assert told == [1]
    assert not token


def _bare(line: Json) -> Json:
    """A line without what changes from answer to answer."""
    ((kind, values),) = line.items()
    left = {
        key: value for key, value in values.items() if key not in {"url", "expirationTimestamp"}
    }
    return {kind: left}


@pytest.mark.protocol("SHARE-CDF-10", "SHARE-CAP-08")
def test_historical_protocols_in_the_format_delta(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": range(10)}), configuration=FEED)
    vectors = {"delta.enableDeletionVectors": "true"}
    DeltaTable(path).alter.set_table_properties(vectors)
    DeltaTable(path).delete("id = 3")
    caller = sharing({T: {"location": str(path), "historyShared": True}})
    header = "responseformat=delta;readerfeatures=deletionvectors"
    parameters = "startingVersion=0&includeHistoricalMetadata=true&includeHistoricalProtocol=true"
    reply = changes(caller, parameters, delta_sharing_capabilities=header)
    assert reply.headers["delta-sharing-capabilities"] == "responseformat=delta"
    found = actions(reply, "protocol")
    assert [one["version"] for one in found] == [0, 1]
    assert [one["deltaProtocol"]["minReaderVersion"] for one in found] == [1, 3]
    (only,) = actions(
        changes(caller, "startingVersion=0", delta_sharing_capabilities=header), "protocol"
    )
    assert "version" not in only
    assert only["deltaProtocol"]["readerFeatures"] == ["deletionVectors"]
    refused = changes(
        caller, "startingVersion=0", delta_sharing_capabilities="responseformat=delta"
    )
    assert refused.status == 400


@pytest.mark.protocol("SHARE-CDF-05")
def test_changes_in_the_format_delta_keep_the_log_s_actions(changed_caller: Caller) -> None:
    reply = changes(
        changed_caller, "startingVersion=0", delta_sharing_capabilities="responseformat=delta"
    )
    kinds = [next(iter(file["deltaSingleAction"])) for file in actions(reply, "file")]
    assert kinds == ["add", "add", "cdc", "remove"]
    assert actions(reply, "metaData")[0]["version"] == 0
    for file in actions(reply, "file"):
        (values,) = file["deltaSingleAction"].values()
        assert values["path"].startswith("http://")
        assert {"version", "timestamp", "id"} <= set(file)
