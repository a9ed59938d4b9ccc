"""The changes of each version of a range."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.support.asgi import Json
from tests.support.sharing import Caller, actions, changes, kinds_and_versions, sharing

T = "s.d.t"


FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.mark.protocol("SHARE-CDF-07")
def test_a_version_without_a_feed_is_named(changed: Path, changed_caller: Caller) -> None:
    off = {"delta.enableChangeDataFeed": "false"}
    DeltaTable(changed).alter.set_table_properties(off)
    write_deltalake(changed, pa.table({"id": [7], "p": ["c"], "extra": ["x"]}), mode="append")
    reply = changes(changed_caller, "startingVersion=1")
    assert reply.status == 400
    assert reply.json()["message"] == "cdf is not enabled on table in version 4"
    assert changes(changed_caller, "startingVersion=1&endingVersion=3").status == 200


@pytest.mark.protocol("SHARE-CDF-08", "SHARE-QT-15")
def test_commits_that_change_no_data_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for number in range(3):
        rows = pa.table({"id": [number]})
        write_deltalake(path, rows, mode="append", configuration=FEED)
    DeltaTable(path).optimize.compact()
    caller = sharing({T: {"location": str(path), "historyShared": True}})
    expected = [("add", 0), ("add", 1), ("add", 2)]
    assert kinds_and_versions(changes(caller, "startingVersion=0")) == expected
    assert kinds_and_versions(caller.query(T, {"startingVersion": 0})) == expected


def _append(path: Path, version: int, *lines: Json) -> None:
    log = path / "_delta_log" / f"{version:020d}.json"
    log.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


@pytest.mark.protocol("SHARE-CDF-08")
@pytest.mark.parametrize(("updated", "count"), [("0", 0), ("1", 2)])
def test_a_merge_that_changed_no_row_is_skipped(tmp_path: Path, updated: str, count: int) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1]}), configuration=FEED)
    (add,) = (
        orjson.loads(line)["add"]
        for line in (path / "_delta_log" / f"{0:020d}.json").read_bytes().splitlines()
        if b'"add"' in line
    )
    (path / "copy.parquet").write_bytes((path / add["path"]).read_bytes())
    metrics = {
        "numTargetRowsInserted": "0",
        "numTargetRowsUpdated": updated,
        "numTargetRowsDeleted": "0",
    }
    _append(
        path,
        1,
        {"commitInfo": {"operation": "MERGE", "operationMetrics": metrics}},
        {"remove": {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}},
        {"add": {**add, "path": "copy.parquet"}},
    )
    caller = sharing({T: {"location": str(path), "historyShared": True}})
    assert len(kinds_and_versions(changes(caller, "startingVersion=1"))) == count


def test_a_remove_takes_its_partition_values_from_the_add(
    changed: Path, changed_caller: Caller
) -> None:
    log = changed / "_delta_log" / f"{3:020d}.json"
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    for line in lines:
        if "remove" in line:
            del line["remove"]["partitionValues"]
    _append(changed, 3, *lines)
    (remove,) = actions(changes(changed_caller, "startingVersion=3"), "remove")
    assert remove["partitionValues"] == {"p": "b"}
