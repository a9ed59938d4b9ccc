"""Which version a shared table shows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from deltalog import col
from deltalog.errors import InvalidInputError
from deltalog.sharing.client import SharedTable
from tests.support.shared_files import PROTOCOL, QUICK, file_line, metadata, parquet
from tests.support.sharing_server import Asked, ScriptedServer, fault, lines


@pytest.mark.protocol("SHARE-QT-10", "SHARE-QT-11", "SHARE-QT-12")
def test_other_versions_are_asked_for(shared: SharedTable, scripted: ScriptedServer) -> None:
    shared.scan(version=3)
    shared.scan(timestamp="2022-01-01T01:00:00+01:00")
    shared.scan(predicate="id > 1", timestamp=dt.datetime(2022, 1, 1, tzinfo=dt.UTC))
    bodies = [asked.json for asked in scripted.find("/query")]
    assert bodies[:2] == [{"version": 3}, {"timestamp": "2022-01-01T00:00:00Z"}]
    assert bodies[2]["timestamp"] == "2022-01-01T00:00:00Z"
    assert scripted.find("/metadata")[0].query == {"timestamp": "2022-01-01T00:00:00Z"}
    with pytest.raises(InvalidInputError, match="both"):
        shared.scan(version=3, timestamp="2022-01-01T00:00:00Z")
    with pytest.raises(InvalidInputError, match="-1"):
        shared.scan(version=-1)


def test_a_table_can_show_another_version(shared: SharedTable, scripted: ScriptedServer) -> None:
    shared.load_as_version(3)
    shared.to_pyarrow_table()
    assert scripted.find("/query")[0].json == {"version": 3}
    shared.update_incremental()
    shared.to_pyarrow_table()
    assert scripted.find("/query")[1].json == {"includeRefreshToken": True}
    profile = scripted.profile()
    older = SharedTable("s.d.t", "2022-01-01T00:00:00Z", profile=profile, options=QUICK)
    older.to_pyarrow_table()
    assert scripted.find("/query")[2].json == {"timestamp": "2022-01-01T00:00:00Z"}


def _by_version(answers: dict[int | None, Any]) -> Callable[[Asked], Any]:
    return lambda asked: answers[asked.json.get("version")]


def test_one_version_is_shown_as_long_as_the_server_lets_it(scripted: ScriptedServer) -> None:
    columns = metadata(columns={"id": "long"})
    old = file_line(scripted, "old", parquet(id=[1]))
    new = file_line(scripted, "new", parquet(id=[2]))
    latest = {
        3: lines(PROTOCOL, columns, old, version=3),
        4: lines(PROTOCOL, columns, new, version=4),
    }
    scripted.on_table("GET metadata", lines(PROTOCOL, columns, version=3))
    scripted.on_table("POST query", _by_version({None: latest[4], 3: latest[3]}))
    table = SharedTable("s.d.t", profile=scripted.profile(), options=QUICK)
    assert table.version() == 3
    assert table.scan(predicate="id > 0").to_table()["id"].to_pylist() == [1]
    # Without a shared history only the latest version can be had: the table moves on.
    scripted.on_table("POST query", _by_version({None: latest[4], 3: fault(400)}))
    assert table.scan(predicate="id > 0").to_table()["id"].to_pylist() == [2]
    assert table.version() == 4


def test_a_hint_is_made_for_the_schema_that_answers(scripted: ScriptedServer) -> None:
    before, after = metadata(columns={"id": "long"}), metadata(columns={"id": "string"})
    line = file_line(scripted, "f", parquet(id=["5", "x"]))
    scripted.on_table("GET metadata", lines(PROTOCOL, before, version=3))
    scripted.on_table(
        "POST query",
        lambda asked: (
            fault(400) if "version" in asked.json else lines(PROTOCOL, after, line, version=4)
        ),
    )
    table = SharedTable("s.d.t", profile=scripted.profile(), options=QUICK)
    rows = table.scan(predicate=col("id") == "5").to_table()
    assert rows["id"].to_pylist() == ["5"]
    hints = [asked.json.get("jsonPredicateHints") for asked in scripted.find("/query")]
    assert '"valueType":"string"' in hints[-1]
