"""Tables on which deltalake 1.6.6 goes wrong, and what is right.

Every test shows both: when the peer's half fails, the peer was mended, and that half may go.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltalog
from tests.support.raw_tables import RawTable, column, mapped, schema_string

START_MS = 1_700_000_000_000


def write_log(path: Path, version: int, actions: Sequence[Mapping[str, Any]]) -> Path:
    """Write one commit with the standard library."""
    log = path / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    commit = log / f"{version:020d}.json"
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions), "utf-8")
    return commit


def metadata(
    fields: Sequence[dict[str, Any]], partition_by: Sequence[str] = (), **properties: str
) -> dict[str, Any]:
    """A `metaData` line; `_` in a property's name stands for a dot."""
    return {
        "metaData": {
            "id": "9a1f7f5e-5d2c-4a53-8a52-0d7c4b3c2f10",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema_string(fields),
            "partitionColumns": list(partition_by),
            "configuration": {name.replace("_", "."): text for name, text in properties.items()},
            "createdTime": START_MS,
        }
    }


def protocol(reader: int, writer: int, *features: str) -> dict[str, Any]:
    """A `protocol` line; features are the writer's."""
    versions = {"minReaderVersion": reader, "minWriterVersion": writer}
    return {"protocol": {**versions, **({"writerFeatures": list(features)} if features else {})}}


def add(path: Path, name: str, data: Mapping[str, Any], **partition: str | None) -> dict[str, Any]:
    """Write a data file; its `add` line."""
    pq.write_table(pa.table(dict(data)), path / name)
    return {
        "add": {
            "path": name,
            "partitionValues": partition,
            "size": (path / name).stat().st_size,
            "modificationTime": START_MS,
            "dataChange": True,
            "stats": json.dumps({"numRecords": len(next(iter(data.values())))}),
        }
    }


def test_b1_legacy_column_mapping_is_read(tmp_path: Path) -> None:
    """The peer looks for features only at reader version 3, and gives NULLs."""
    fields = [mapped("id", "long", 1, "col-a"), mapped("name", "string", 2, "col-b")]
    properties = {"delta_columnMapping_mode": "name", "delta_columnMapping_maxColumnId": "2"}
    head = metadata(fields, **properties)
    file = add(tmp_path, "one.parquet", {"col-a": [1, 2], "col-b": ["x", "y"]})
    write_log(tmp_path, 0, [protocol(2, 5), head, file])
    expected = {"id": [1, 2], "name": ["x", "y"]}

    ours = deltalog.DeltaTable(tmp_path)
    assert ours.to_pyarrow_table().to_pydict() == expected
    assert ours.to_pandas(filters=[("id", "=", 2)])["name"].to_list() == ["y"]
    query = deltalog.QueryBuilder().register("t", ours)
    assert query.execute("select name from t where id = 1").read_all().to_pydict() == {
        "name": ["x"]
    }

    theirs = deltalake.DeltaTable(tmp_path).to_pyarrow_table()
    assert theirs.to_pydict() == {"id": [None, None], "name": [None, None]}


def test_b3_count_leaves_deleted_rows_out(tmp_path: Path) -> None:
    table = RawTable(tmp_path)
    table.create()
    _, vector = table.deletion_vector([0, 3])
    table.commit(1, [table.add(range(10), 1, vector)])

    ours = deltalog.DeltaTable(tmp_path)
    assert ours.count() == ours.to_pyarrow_table().num_rows == 8

    assert deltalake.DeltaTable(tmp_path).count() == 10


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("decimal(10,2)", "-12.50", decimal.Decimal("-12.50")),
        ("binary", "\u0001\u0002é", b"\x01\x02\xc3\xa9"),
        ("string", "", None),
        ("binary", "", None),
        ("timestamp", "2024-01-01 01:02:03", dt.datetime(2024, 1, 1, 1, 2, 3, tzinfo=dt.UTC)),
        ("timestamp", "2024-01-01T01:02:03Z", dt.datetime(2024, 1, 1, 1, 2, 3, tzinfo=dt.UTC)),
    ],
)
def test_b10_partition_values_are_read(
    tmp_path: Path, kind: str, text: str, expected: object
) -> None:
    head = metadata([column("id", "long"), column("p", kind)], ["p"])
    file = add(tmp_path, "one.parquet", {"id": [1]}, p=text)
    write_log(tmp_path, 0, [protocol(1, 2), head, file])
    table = deltalog.DeltaTable(tmp_path)
    everywhere = [
        table.to_pyarrow_table()["p"].to_pylist(),
        pa.table(table.scan())["p"].to_pylist(),
        table.to_pyarrow_dataset().to_table()["p"].to_pylist(),
        table.get_add_actions(flatten=True)["partition.p"].to_pylist(),
    ]
    assert everywhere == [[expected]] * 4


def test_b10_the_peer_cannot_read_a_negative_decimal_partition(tmp_path: Path) -> None:
    head = metadata([column("id", "long"), column("p", "decimal(10,2)")], ["p"])
    file = add(tmp_path, "one.parquet", {"id": [1]}, p="-12.50")
    write_log(tmp_path, 0, [protocol(1, 2), head, file])
    with pytest.raises(Exception, match=r"(?i)decimal|-12"):
        deltalake.DeltaTable(tmp_path).to_pyarrow_table()


def test_b15_a_table_is_pickled(tmp_path: Path) -> None:
    table = RawTable(tmp_path)
    table.create()
    table.commit(1, [table.add([1, 2], 1)])
    copy = pickle.loads(pickle.dumps(deltalog.DeltaTable(tmp_path)))
    assert (copy.version(), copy.count()) == (1, 2)
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(deltalake.DeltaTable(tmp_path))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_b15_a_table_is_read_after_a_fork(tmp_path: Path) -> None:
    table = RawTable(tmp_path)
    table.create()
    table.commit(1, [table.add([1, 2], 1)])
    ours = deltalog.DeltaTable(tmp_path)
    assert ours.scan().count() == 2  # pools and file systems are in use before the fork
    child = os.fork()
    if child == 0:
        rows = -1
        try:
            ours.update_incremental()
            rows = ours.scan(predicate="id > 1").to_table().num_rows
        finally:
            os._exit(10 + rows)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 11


def test_b17_travel_goes_by_in_commit_timestamps(tmp_path: Path) -> None:
    """A copied table's files are all young; its commits know better."""
    properties = {"delta_enableInCommitTimestamps": "true"}
    head = metadata([column("id", "long")], **properties)
    hour_ms = 3_600_000
    for version in range(3):
        info = {
            "commitInfo": {
                "inCommitTimestamp": START_MS + version * hour_ms,
                "timestamp": START_MS + version * hour_ms,
                "operation": "WRITE",
            }
        }
        rest = [protocol(1, 7, "inCommitTimestamp"), head] if version == 0 else []
        commit = write_log(tmp_path, version, [info, *rest])
        os.utime(commit, (2_000_000_000 + version, 2_000_000_000 + version))
    moment = dt.datetime.fromtimestamp((START_MS + hour_ms) / 1000, dt.UTC)

    ours = deltalog.DeltaTable(tmp_path)
    assert [entry["timestamp"] for entry in ours.history()] == [
        START_MS + version * hour_ms for version in (2, 1, 0)
    ]
    ours.load_as_version(moment)
    assert ours.version() == 1

    theirs = deltalake.DeltaTable(tmp_path)
    theirs.load_as_version(moment)
    assert theirs.version() == 0
