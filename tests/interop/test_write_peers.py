"""What deltalog writes, deltalake and DuckDB read; and deltalake goes on writing it."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pytest

import deltalog

WHEN = dt.datetime(2024, 2, 29, 12, 30, 1, 500_000, tzinfo=dt.UTC)
EVERYTHING = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "i": pa.array([1, None, -3], pa.int32()),
        "s": pa.array([7, None, -7], pa.int16()),
        "y": pa.array([1, None, -1], pa.int8()),
        "f": pa.array([1.5, None, float("nan")], pa.float32()),
        "d": pa.array([1.5, None, float("inf")], pa.float64()),
        "b": pa.array([True, None, False]),
        "t": pa.array(["it's", None, "größer"]),
        "x": pa.array([b"\x00\xff", None, b""], pa.binary()),
        "day": pa.array([dt.date(2024, 2, 29), None, dt.date(1582, 10, 4)]),
        "at": pa.array([WHEN, None, WHEN], pa.timestamp("us", "UTC")),
        "m": pa.array(
            [decimal.Decimal("-1.50"), None, decimal.Decimal("9.99")], pa.decimal128(5, 2)
        ),
        "l": pa.array([[1, None], None, []], pa.list_(pa.int64())),
        "r": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]),
        "k": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    }
)


def theirs(path: Path) -> pa.Table:
    """All rows as deltalake reads them, by id."""
    return pa.table(deltalake.DeltaTable(path).to_pyarrow_table()).sort_by("id")


def ours(path: Path, version: int | None = None) -> pa.Table:
    """The same as deltalog does."""
    return deltalog.DeltaTable(path, version).to_pyarrow_table().sort_by("id")


def ids(table: pa.Table) -> list[int]:
    found: list[Any] = table["id"].to_pylist()
    return sorted(found)


def same(path: Path) -> None:
    """Both read the same rows, of the same types."""
    mine, peers = ours(path), theirs(path)
    assert peers.schema.names == mine.schema.names
    assert repr(peers.cast(mine.schema).to_pylist()) == repr(mine.to_pylist())


def test_every_type_is_read(tmp_path: Path) -> None:
    deltalog.write_deltalake(tmp_path, EVERYTHING)
    same(tmp_path)
    schema = json.loads(deltalake.DeltaTable(tmp_path).schema().to_json())
    assert [field["type"] for field in schema["fields"]][:4] == ["long", "integer", "short", "byte"]
    # And deltalake's own rows of the same kind go below them.
    deltalake.write_deltalake(tmp_path, EVERYTHING, mode="append")
    assert len(ids(ours(tmp_path))) == 6
    same(tmp_path)


@pytest.mark.parametrize("name", ["i", "s", "y", "f", "d", "b", "t", "day", "at", "m"])
def test_partitions_of_every_type_are_read(tmp_path: Path, name: str) -> None:
    data = EVERYTHING.select(["id", name])
    if name == "m":
        data = data.slice(1)  # deltalake cannot read a negative one: B10
    deltalog.write_deltalake(tmp_path, data, partition_by=[name])
    if name not in {"f", "d"}:  # NaN and infinity
        same(tmp_path)
    assert ids(theirs(tmp_path)) == data["id"].to_pylist()


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_versions_are_read(tmp_path: Path, mode: Any) -> None:
    deltalog.write_deltalake(tmp_path, [{"id": 1}])
    deltalog.write_deltalake(tmp_path, [{"id": 2}], mode=mode)
    deltalog.DeltaTable(tmp_path).delete("id = 2")
    for version in range(3):
        peer = deltalake.DeltaTable(tmp_path, version=version)
        assert ids(pa.table(peer.to_pyarrow_table())) == ids(ours(tmp_path, version))
    history = deltalake.DeltaTable(tmp_path).history()
    assert [entry["operation"] for entry in history] == ["DELETE", "WRITE", "WRITE"]
    assert history[0]["operationMetrics"]["numDeletedRows"] == "1"


def test_statistics_prune_files(tmp_path: Path) -> None:
    for start in (0, 10, 20):
        data = [{"id": n, "t": f"v{n:03}"} for n in range(start, start + 10)]
        deltalog.write_deltalake(tmp_path, data, mode="append")
    peer = deltalake.DeltaTable(tmp_path)
    actions = pa.table(peer.get_add_actions(flatten=True)).sort_by("min.id")
    assert actions["num_records"].to_pylist() == [10, 10, 10]
    assert actions["min.id"].to_pylist() == [0, 10, 20]
    assert actions["max.t"].to_pylist() == ["v009", "v019", "v029"]
    assert actions["null_count.t"].to_pylist() == [0, 0, 0]
    dataset = peer.to_pyarrow_dataset()
    fragments = list(dataset.get_fragments(filter=pa.compute.field("id") > 25))
    assert len(fragments) == 1


def test_checkpoints_are_read(tmp_path: Path) -> None:
    properties = {"delta.checkpointInterval": "3", "delta.enableChangeDataFeed": "true"}
    for n in range(5):
        deltalog.write_deltalake(
            tmp_path,
            [{"id": n, "p": n % 2}],
            mode="append",
            partition_by=["p"],
            configuration=properties if n == 0 else None,
        )
    deltalog.DeltaTable(tmp_path).delete("id = 0")
    log = tmp_path / "_delta_log"
    assert (log / f"{3:020d}.checkpoint.parquet").is_file()
    for version in range(3):  # without these only the checkpoint is left to read
        (log / f"{version:020d}.json").unlink()
    assert ids(theirs(tmp_path)) == [1, 2, 3, 4]
    peer = deltalake.DeltaTable(tmp_path)
    assert peer.metadata().configuration == properties
    deltalake.write_deltalake(peer, pa.table({"id": [9], "p": [0]}), mode="append")
    peer.create_checkpoint()
    same(tmp_path)


def test_both_write_in_turns(tmp_path: Path) -> None:
    deltalog.write_deltalake(
        tmp_path, [{"id": 0, "p": "a"}], partition_by=["p"], name="turns", description="two writers"
    )
    deltalog.DeltaTable(tmp_path).alter.add_constraint({"positive": "id >= 0"})
    for n in range(1, 9):
        rows = pa.table({"id": [n], "p": ["ab"[n % 2]]})
        writer = deltalake if n % 2 else deltalog
        writer.write_deltalake(str(tmp_path), rows, mode="append")
    same(tmp_path)
    deltalake.DeltaTable(tmp_path).delete("id = 3")
    deltalog.DeltaTable(tmp_path).delete("id = 4")
    deltalake.DeltaTable(tmp_path).update(updates={"id": "id + 100"}, predicate="id = 5")
    deltalog.write_deltalake(
        tmp_path, [{"id": 50, "p": "a"}], mode="overwrite", predicate="p = 'a'"
    )
    deltalake.DeltaTable(tmp_path).optimize.compact()
    deltalog.write_deltalake(tmp_path, [{"id": 51, "p": "b"}], mode="append")
    assert ids(ours(tmp_path)) == [1, 7, 50, 51, 105]
    same(tmp_path)
    for wrong in (deltalake, deltalog):
        with pytest.raises(Exception, match=r"positive|failed validation"):
            wrong.write_deltalake(str(tmp_path), pa.table({"id": [-1], "p": ["a"]}), mode="append")


def test_the_change_feed_is_read(tmp_path: Path) -> None:
    properties = {"delta.enableChangeDataFeed": "true"}
    deltalog.write_deltalake(tmp_path, [{"id": n} for n in range(4)], configuration=properties)
    table = deltalog.DeltaTable(tmp_path)
    table.delete("id = 1")
    deltalog.write_deltalake(table, [{"id": 7}], mode="overwrite", predicate="id >= 2")
    peer = deltalake.DeltaTable(tmp_path)
    for version in range(3):
        found = [
            sorted(
                zip(
                    rows["_change_type"].to_pylist(),
                    rows["id"].to_pylist(),
                    rows["_commit_version"].to_pylist(),
                    strict=True,
                )
            )
            for rows in (
                pa.table(peer.load_cdf(version, version)),
                table.load_cdf(version, version).read_all(),
            )
        ]
        assert found[0] == found[1]
        assert found[0]


def test_idempotent_steps_are_known_to_both(tmp_path: Path) -> None:
    step = deltalog.CommitProperties(app_transactions=[deltalog.Transaction("app", 5)])
    deltalog.write_deltalake(tmp_path, [{"id": 1}], commit_properties=step)
    assert deltalake.DeltaTable(tmp_path).transaction_version("app") == 5
    theirs_step = deltalake.CommitProperties(app_transactions=[deltalake.Transaction("app", 6)])
    deltalake.write_deltalake(
        tmp_path, pa.table({"id": [2]}), mode="append", commit_properties=theirs_step
    )
    step = deltalog.CommitProperties(app_transactions=[deltalog.Transaction("app", 6)])
    deltalog.write_deltalake(tmp_path, [{"id": 2}], mode="append", commit_properties=step)
    assert ids(ours(tmp_path)) == [1, 2]


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.enableDeletionVectors": "true"},
        {"delta.columnMapping.mode": "name"},
        {"delta.checkpointPolicy": "v2"},
    ],
)
def test_what_deltalake_cannot_read_by_pyarrow_its_scan_reads(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    data = [{"id": n, "p": n % 2} for n in range(6)]
    deltalog.write_deltalake(tmp_path, data, configuration=properties)
    table = deltalog.DeltaTable(tmp_path)
    table.delete("id = 3")
    table.create_checkpoint()
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path))
    assert ids(pa.table(query.execute("select * from t"))) == [0, 1, 2, 4, 5]
    assert ids(ours(tmp_path)) == [0, 1, 2, 4, 5]


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"delta.enableDeletionVectors": "true"},
        {"delta.columnMapping.mode": "name"},
        {"delta.enableRowTracking": "true"},
    ],
)
def test_duckdb_reads_the_dataset(tmp_path: Path, properties: dict[str, str]) -> None:
    data = [{"id": n, "p": "ab"[n % 2], "v": n * 1.5} for n in range(10)]
    deltalog.write_deltalake(tmp_path, data, partition_by=["p"], configuration=properties)
    table = deltalog.DeltaTable(tmp_path)
    table.delete("id = 3")
    deltalog.write_deltalake(
        table, [{"id": 4, "p": "a", "v": 0.0}], mode="overwrite", predicate="id = 4"
    )
    dataset = table.to_pyarrow_dataset()
    found = duckdb.from_arrow(dataset).filter("p = 'a' and v < 10").order("id")
    assert [row[0] for row in found.fetchall()] == [0, 2, 4, 6]
    # And what it makes of them is written again.
    deltalog.write_deltalake(
        tmp_path / "out", duckdb.from_arrow(dataset).aggregate("p, count(*) n")
    )
    rows = deltalog.DeltaTable(tmp_path / "out").to_pyarrow_table().sort_by("p").to_pylist()
    assert rows == [{"p": "a", "n": 5}, {"p": "b", "n": 4}]


@pytest.mark.parametrize("zeros", [[-0.0, 0.0], [0.0, -0.0], [-0.0], [-5.0, -0.0]], ids=str)
def test_deltalake_finds_and_deletes_zeros(tmp_path: Path, zeros: list[float]) -> None:
    """Its `-0.0 < 0.0` made bounds of zero lose rows."""
    deltalog.write_deltalake(tmp_path, pa.table({"id": list(range(len(zeros))), "x": zeros}))
    peer = deltalake.DeltaTable(tmp_path)
    query = deltalake.QueryBuilder().register("t", peer)
    for sign in ("", "-"):
        found = pa.table(query.execute(f"select * from t where x = {sign}0.0"))  # noqa: S608  # ours
        assert found.num_rows == zeros.count(0.0)
    assert peer.delete("x = 0.0")["num_deleted_rows"] == zeros.count(0.0)


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ([], {}),
        ([], {"configuration": {"delta.enableChangeDataFeed": "true"}}),
        ([], {"configuration": {"delta.columnMapping.mode": "name"}}),
        ([], {"constraints": {"low": "id < 100"}}),
        ([], {"partition_by": ["p"]}),
        ([deltalog.Field("twice", "long").generated_as("id * 2")], {}),
        ([deltalog.Field("t", "timestamp_ntz")], {}),
    ],
    ids=["plain", "changes", "mapped", "constraint", "partitions", "generated", "wall clock"],
)
def test_deltalake_goes_on_writing_what_was_created_here(
    tmp_path: Path, fields: list[deltalog.Field], options: dict[str, Any]
) -> None:
    """Whatever form the protocol has: Delta Spark's lists of features, or versions alone."""
    schema = deltalog.Schema([deltalog.Field("id", "long"), deltalog.Field("p", "string"), *fields])
    deltalog.DeltaTable.create(tmp_path, schema, **options)
    rows: dict[str, Any] = {"id": [1, 2], "p": ["a", "b"]}
    if any(field.name == "t" for field in fields):
        rows |= {"t": [dt.datetime(2024, 1, 1)] * 2}  # noqa: DTZ001  # without a zone on purpose
    deltalog.write_deltalake(tmp_path, pa.table(rows), mode="append")
    deltalake.write_deltalake(tmp_path, pa.table({**rows, "id": [3, 4]}), mode="append")
    peer = deltalake.DeltaTable(tmp_path)
    peer.delete("id = 1")
    table = deltalog.DeltaTable(tmp_path)
    found = table.to_pyarrow_table(columns=["id", "p"]).sort_by("id").to_pydict()
    assert found == {"id": [2, 3, 4], "p": ["b", "a", "b"]}
    assert table.version() == 3
