"""Change feeds of shared tables."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import (
    IncompatibleChangesError,
    InvalidInputError,
    MalformedMessageError,
    SharingError,
)
from deltalog.sharing.client import SharedTable, load_table_changes_as_pandas
from tests.support.shared_files import PROTOCOL, QUICK, file_line, metadata, parquet
from tests.support.sharing_server import Answer, ScriptedServer, fault, lines

METADATA = metadata(columns={"id": "long"}, configuration={"enableChangeDataFeed": "true"})


def _feed(server: ScriptedServer) -> list[Any]:
    """Version 0 adds three rows, 1 updates one, 2 only rewrites, 3 removes the file."""
    rows = parquet(id=pa.array([1, 2, 3], pa.int64()))
    changed = parquet(
        id=pa.array([2, 20], pa.int64()), _change_type=["update_preimage", "update_postimage"]
    )
    return [
        file_line(server, "a", rows, kind="add", version=0, timestamp=1652140000000),
        file_line(server, "c", changed, kind="cdf", version=1, timestamp=1652141000000),
        file_line(server, "a", kind="remove", version=3, timestamp=1652142000000),
    ]


def _table(server: ScriptedServer, *answer: Any) -> SharedTable:
    server.on_table("GET metadata", lines(PROTOCOL, METADATA, version=3))
    server.on_table("GET changes", lines(PROTOCOL, METADATA, *answer))
    return SharedTable("s.d.t", profile=server.profile(), options=QUICK)


@pytest.mark.protocol("SHARE-CDF-05", "SHARE-CDF-08", "SHARE-DLT-06")
def test_each_change_says_what_happened_and_when(scripted: ScriptedServer) -> None:
    rows = _table(scripted, *_feed(scripted)).load_cdf().to_table()
    assert rows.column_names == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    found = [tuple(row.values())[:3] for row in rows.to_pylist()]
    assert found == [
        *((n, "insert", 0) for n in (1, 2, 3)),
        (2, "update_preimage", 1),
        (20, "update_postimage", 1),
        *((n, "delete", 3) for n in (1, 2, 3)),
    ]
    assert rows["_commit_timestamp"][-1].as_py() == dt.datetime(2022, 5, 10, 0, 20, tzinfo=dt.UTC)


@pytest.mark.protocol("SHARE-CDF-01", "SHARE-CDF-02", "SHARE-CDF-03", "SHARE-CDF-06")
@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        ({}, {"startingVersion": "0"}),
        (
            {"starting_version": 1, "ending_version": 2},
            {"startingVersion": "1", "endingVersion": "2"},
        ),
        (
            {"starting_timestamp": "2022-01-01T00:00:00Z", "ending_timestamp": "2022-02-01"},
            {
                "startingTimestamp": "2022-01-01T00:00:00Z",
                "endingTimestamp": "2022-02-01T00:00:00Z",
            },
        ),
    ],
)
def test_ranges_are_asked_for(
    scripted: ScriptedServer, arguments: dict[str, Any], query: dict[str, str]
) -> None:
    _table(scripted, *_feed(scripted)).load_cdf(**arguments)
    (asked,) = scripted.find("/changes")
    assert asked.query == {**query, "includeHistoricalMetadata": "true"}


@pytest.mark.protocol("SHARE-CDF-01")
def test_a_range_has_one_start_and_one_end(scripted: ScriptedServer) -> None:
    table = _table(scripted)
    with pytest.raises(InvalidInputError, match="both"):
        table.load_cdf(starting_version=1, starting_timestamp="2022-01-01")
    with pytest.raises(InvalidInputError, match="both"):
        table.load_cdf(ending_version=1, ending_timestamp="2022-01-01")
    assert scripted.asked == []


@pytest.mark.protocol("SHARE-QT-14")
def test_what_a_server_tells_beyond_the_range_is_left_out(scripted: ScriptedServer) -> None:
    changes = _table(scripted, *_feed(scripted)).load_cdf(1, 2)
    assert changes.to_table()["_commit_version"].to_pylist() == [1, 1]


@pytest.mark.protocol("SHARE-QT-19")
def test_predicates_and_columns_are_applied(scripted: ScriptedServer) -> None:
    table = _table(scripted, *_feed(scripted))
    changes = table.load_cdf(
        columns=["_change_type", "id"], predicate="id > 1 AND _change_type <> 'delete'"
    )
    assert changes.to_table().to_pylist() == [
        {"_change_type": "insert", "id": 2},
        {"_change_type": "insert", "id": 3},
        {"_change_type": "update_preimage", "id": 2},
        {"_change_type": "update_postimage", "id": 20},
    ]


@pytest.mark.protocol("SHARE-CDF-04", "D-75")
def test_a_range_without_changes_is_empty(scripted: ScriptedServer) -> None:
    rows = _table(scripted).load_cdf(1, 2).to_table()
    assert rows.num_rows == 0
    assert rows.column_names[0] == "id"


def test_a_range_to_come_may_be_empty(scripted: ScriptedServer) -> None:
    table = _table(scripted, *_feed(scripted))
    scripted.on_table("GET version", Answer(headers={"Delta-Table-Version": "3"}))
    assert table.load_cdf(4, allow_out_of_range=True).to_table().num_rows == 0
    assert scripted.find("/changes") == []
    assert table.load_cdf(0, 9, allow_out_of_range=True).to_table().num_rows == 8
    assert scripted.find("/changes")[0].query["endingVersion"] == "3"


@pytest.mark.protocol("SHARE-CDF-07")
def test_a_server_may_refuse(scripted: ScriptedServer) -> None:
    table = _table(scripted)
    refusal = fault(400, "INVALID_PARAMETER_VALUE", "cdf is not enabled on table")
    scripted.on_table("GET changes", refusal)
    with pytest.raises(SharingError, match="cdf is not enabled"):
        table.load_cdf()


def test_a_change_must_tell_its_version(scripted: ScriptedServer) -> None:
    line = file_line(scripted, "a", parquet(id=[1]), kind="add")
    with pytest.raises(MalformedMessageError, match="expected a version"):
        _table(scripted, line).load_cdf()


@pytest.mark.protocol("SHARE-CDF-06")
def test_a_schema_that_cannot_show_the_range_is_named(scripted: ScriptedServer) -> None:
    later = metadata(columns={"id": "string"}, version=1)
    table = _table(scripted, *_feed(scripted)[:1], later)
    with pytest.raises(IncompatibleChangesError, match="id"):
        table.load_cdf(0, 1).to_table()


@pytest.mark.protocol("SHARE-CDF-06")
def test_columns_that_came_later_are_null_before(scripted: ScriptedServer) -> None:
    wide = metadata(columns={"id": "long", "more": "string"}, version=1)
    table = _table(scripted, *_feed(scripted)[:1], wide)
    scripted.on_table("GET metadata", lines(PROTOCOL, wide, version=1))
    rows = table.load_cdf(0, 1).to_table()
    assert rows["more"].to_pylist() == [None] * 3


@pytest.mark.protocol("SHARE-CDF-05")
def test_the_official_function_tells_time_in_milliseconds(
    scripted: ScriptedServer, tmp_path: Path
) -> None:
    _table(scripted, *_feed(scripted))
    profile = tmp_path / "p.share"
    profile.write_text(json.dumps(scripted.profile()), "utf-8")
    frame = load_table_changes_as_pandas(f"{profile}#s.d.t", starting_version=0)
    assert frame["_commit_timestamp"].tolist()[::3] == [
        1652140000000,
        1652141000000,
        1652142000000,
    ]
    assert frame["_change_type"].tolist()[3:5] == ["update_preimage", "update_postimage"]
    with pytest.raises(InvalidInputError, match="starting_version"):
        load_table_changes_as_pandas(f"{profile}#s.d.t")
