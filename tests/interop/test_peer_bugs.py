"""Tables on which deltalake 1.6.6 goes wrong, and what is right.

Every test shows both: when the peer's half fails, the peer was mended, and that half may go.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
import pickle
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltalog
import deltalog.errors
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


NUMBERS = pa.table({"id": [1, 2]})
LONG = deltalake.schema.PrimitiveType("long")


def test_b5_a_step_of_an_application_is_written_once(tmp_path: Path) -> None:
    for _ in range(2):
        step = deltalog.CommitProperties(app_transactions=[deltalog.Transaction("app", 1)])
        deltalog.write_deltalake(tmp_path / "ours", NUMBERS, mode="append", commit_properties=step)
        theirs = deltalake.CommitProperties(app_transactions=[deltalake.Transaction("app", 1)])
        deltalake.write_deltalake(
            tmp_path / "theirs", NUMBERS, mode="append", commit_properties=theirs
        )
    assert deltalog.DeltaTable(tmp_path / "ours").count() == 2
    assert deltalog.DeltaTable(tmp_path / "theirs").count() == 4


def test_b6_bounds_hold_nan_and_infinity(tmp_path: Path) -> None:
    """Spark orders NaN last: a maximum without it makes Spark leave the file out."""
    data = pa.table({"x": [1.0, float("nan")], "y": [1.0, float("inf")], "z": [-1.0, 2.0]})

    def bounds(path: Path) -> Mapping[str, Any]:
        (line,) = [
            json.loads(text)["add"]
            for text in (path / "_delta_log" / f"{0:020d}.json").read_text("utf-8").splitlines()
            if "add" in json.loads(text)
        ]
        stats: Mapping[str, Any] = json.loads(line["stats"])
        return stats

    deltalog.write_deltalake(tmp_path / "ours", data)
    ours = bounds(tmp_path / "ours")
    # No bound that another reader could take for the truth.
    assert ours["maxValues"].get("x") in {None, "NaN"}
    assert ours["maxValues"].get("y") in {None, "Infinity"}
    assert (ours["minValues"]["z"], ours["maxValues"]["z"]) == (-1.0, 2.0)
    table = deltalog.DeltaTable(tmp_path / "ours")
    assert table.scan(predicate="x > 5").count() == 1
    assert table.scan(predicate="y > 5").count() == 1

    deltalake.write_deltalake(tmp_path / "theirs", data)
    assert bounds(tmp_path / "theirs")["maxValues"]["x"] == 1.0


@pytest.mark.parametrize(
    ("feature", "peers"),
    [
        ("rowTracking", deltalake.TableFeatures.RowTracking),
        ("identityColumns", deltalake.TableFeatures.IdentityColumns),
        ("domainMetadata", deltalake.TableFeatures.DomainMetadata),
        ("icebergCompatV1", deltalake.TableFeatures.IcebergCompatV1),
    ],
)
def test_b7_a_feature_that_was_added_does_not_brick_the_table(
    tmp_path: Path, feature: str, peers: Any
) -> None:
    deltalog.write_deltalake(tmp_path / "ours", NUMBERS)
    table = deltalog.DeltaTable(tmp_path / "ours")
    table.alter.add_feature(feature, allow_protocol_versions_increase=True)
    assert feature in (table.protocol().writer_features or ())
    deltalog.write_deltalake(table, NUMBERS, mode="append")
    assert table.count() == 4

    deltalake.write_deltalake(tmp_path / "theirs", NUMBERS)
    theirs = deltalake.DeltaTable(tmp_path / "theirs")
    theirs.alter.add_feature(peers, allow_protocol_versions_increase=True)
    with pytest.raises(Exception, match=r"(?i)feature"):
        deltalake.write_deltalake(tmp_path / "theirs", NUMBERS, mode="append")
    # We go on where the peer cannot.
    deltalog.write_deltalake(tmp_path / "theirs", NUMBERS, mode="append")
    assert deltalog.DeltaTable(tmp_path / "theirs").count() == 4


def test_b8_what_a_column_declares_comes_with_its_feature(tmp_path: Path) -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": 1}
    identity_rules = {**identity, "delta.identity.allowExplicitInsert": False}
    default = {"CURRENT_DEFAULT": "7"}

    table = deltalog.DeltaTable.create(
        tmp_path / "ours",
        [
            deltalog.Field("id", "long", metadata=identity_rules),
            deltalog.Field("n", "long"),
            deltalog.Field("d", "long", metadata=default),
        ],
        configuration={"delta.feature.allowColumnDefaults": "supported"},
    )
    assert {"identityColumns", "allowColumnDefaults"} <= set(table.protocol().writer_features or ())
    deltalog.write_deltalake(table, [{"n": 1}, {"n": 2}], mode="append")
    assert table.to_pyarrow_table().sort_by("id")["id"].to_pylist() == [1, 2]
    assert table.to_pyarrow_table()["d"].to_pylist() == [7, 7]

    theirs = deltalake.DeltaTable.create(
        tmp_path / "theirs",
        deltalake.Schema(
            [
                deltalake.Field("id", LONG, metadata=identity_rules),
                deltalake.Field("n", LONG),
            ]
        ),
    )
    assert theirs.protocol().min_writer_version == 2
    deltalake.write_deltalake(theirs, pa.table({"n": [1]}), mode="append", schema_mode="merge")
    assert deltalog.DeltaTable(tmp_path / "theirs").to_pyarrow_table()["id"].to_pylist() == [None]


@pytest.mark.parametrize(
    ("key", "feature"),
    [
        ("delta.enableRowTracking", "rowTracking"),
        ("delta.enableInCommitTimestamps", "inCommitTimestamp"),
        ("delta.enableTypeWidening", "typeWidening"),
    ],
)
def test_b8_a_switch_comes_with_its_feature(tmp_path: Path, key: str, feature: str) -> None:
    deltalog.write_deltalake(tmp_path / "ours", NUMBERS, configuration={key: "true"})
    ours = deltalog.DeltaTable(tmp_path / "ours")
    assert feature in (ours.protocol().writer_features or ())
    assert ours.metadata().configuration[key] == "true"

    deltalake.DeltaTable.create(
        tmp_path / "theirs",
        deltalake.Schema([deltalake.Field("id", LONG)]),
        configuration={key: "true"},
        raise_if_key_not_exists=False,
    )
    theirs = deltalog.DeltaTable(tmp_path / "theirs")
    assert feature not in (theirs.protocol().writer_features or ())


def test_b9_deletion_vectors_are_all_that_is_asked_for(tmp_path: Path) -> None:
    properties = {"delta.enableDeletionVectors": "true"}
    deltalog.write_deltalake(tmp_path / "ours", NUMBERS, configuration=properties)
    ours = deltalog.DeltaTable(tmp_path / "ours")
    assert ours.protocol().reader_features == ("deletionVectors",)
    assert ours.delete("id = 1")["num_deletion_vectors"] == 1
    assert ours.to_pandas()["id"].to_list() == [2]

    deltalake.write_deltalake(tmp_path / "theirs", NUMBERS, configuration=properties)
    theirs = deltalake.DeltaTable(tmp_path / "theirs")
    assert "variantType" in (theirs.protocol().reader_features or ())
    with pytest.raises(Exception, match=r"variantType|deletionVectors"):
        theirs.to_pandas()


def test_b9_the_checkpoint_policy_counts(tmp_path: Path) -> None:
    properties = {"delta.checkpointPolicy": "v2"}
    deltalog.write_deltalake(tmp_path / "ours", NUMBERS, configuration=properties)
    ours = deltalog.DeltaTable(tmp_path / "ours")
    ours.create_checkpoint()
    assert "v2Checkpoint" in (ours.protocol().reader_features or ())
    (name,) = [path.name for path in (tmp_path / "ours" / "_delta_log").glob("*.checkpoint.*")]
    assert len(name.split(".")) == 4  # <version>.checkpoint.<uuid>.<format>
    assert deltalog.DeltaTable(tmp_path / "ours").count() == 2

    deltalake.write_deltalake(tmp_path / "theirs", NUMBERS, configuration=properties)
    deltalake.DeltaTable(tmp_path / "theirs").create_checkpoint()
    (name,) = [path.name for path in (tmp_path / "theirs" / "_delta_log").glob("*.checkpoint.*")]
    assert name.endswith(".checkpoint.parquet")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pa.array([decimal.Decimal("-12.50")], pa.decimal128(10, 2)), "-12.50"),
        (pa.array([b"\x01\xc3\xa9"], pa.binary()), None),
        (pa.array([""], pa.string()), None),
        (
            pa.array([dt.datetime(2024, 1, 1, 1, 2, 3, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
            "2024-01-01T01:02:03.000000Z",
        ),
    ],
)
def test_b10_partition_values_are_written(tmp_path: Path, values: Any, text: str | None) -> None:
    data = pa.table({"id": [1], "p": values})
    deltalog.write_deltalake(tmp_path, data, partition_by=["p"])
    table = deltalog.DeltaTable(tmp_path)
    expected = values.to_pylist() if values.to_pylist() != [""] else [None]
    for found in (
        table.to_pyarrow_table(),
        pa.table(table.scan()),
        table.to_pyarrow_dataset().to_table(),
    ):
        assert found["p"].to_pylist() == expected
    if text is not None:
        commit = (tmp_path / "_delta_log" / f"{0:020d}.json").read_text("utf-8")
        (add,) = [json.loads(line)["add"] for line in commit.splitlines() if '"add"' in line]
        assert add["partitionValues"] == {"p": text}


def test_b10_the_peer_cannot_write_a_negative_decimal_partition(tmp_path: Path) -> None:
    data = pa.table({"id": [1], "p": pa.array([decimal.Decimal("-12.50")], pa.decimal128(10, 2))})
    with pytest.raises(Exception, match=r"(?i)decimal|-12"):
        deltalake.write_deltalake(tmp_path, data, partition_by=["p"])


def test_b14_blind_appends_always_get_in(tmp_path: Path) -> None:
    """The peer gives up after 15 attempts; races of processes are in `tests/stateful`."""
    deltalog.write_deltalake(tmp_path, pa.table({"id": [0]}))
    first = threading.Barrier(24)

    def append(number: int) -> None:
        table = deltalog.DeltaTable(tmp_path)
        first.wait()
        deltalog.write_deltalake(table, pa.table({"id": [number]}), mode="append")

    with ThreadPoolExecutor(24) as pool:
        for done in [pool.submit(append, number) for number in range(1, 25)]:
            done.result()
    table = deltalog.DeltaTable(tmp_path)
    rows = table.to_pyarrow_table().sort_by("id")["id"].to_pylist()
    assert (table.version(), rows) == (24, list(range(25)))


def test_b16_constraints_are_set_at_creation(tmp_path: Path) -> None:
    field = deltalog.Field("id", "long")
    table = deltalog.DeltaTable.create(tmp_path / "a", [field], constraints={"small": "id < 10"})
    with pytest.raises(deltalog.errors.ConstraintViolationError, match="small"):
        deltalog.write_deltalake(table, [{"id": 10}], mode="append")
    properties = {"delta.constraints.small": "id < 10"}
    deltalog.write_deltalake(tmp_path / "b", NUMBERS, configuration=properties)
    with pytest.raises(deltalog.errors.ConstraintViolationError, match="small"):
        deltalog.write_deltalake(tmp_path / "b", [{"id": 10}], mode="append")

    with pytest.raises(Exception, match=r"delta.constraints.small"):
        deltalake.write_deltalake(tmp_path / "theirs", NUMBERS, configuration=properties)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.parquet.compression.codec", "ZSTD"),
        ("delta.feature.vacuumProtocolCheck", "supported"),
    ],
)
def test_b16_known_properties_are_accepted(tmp_path: Path, key: str, value: str) -> None:
    deltalog.write_deltalake(tmp_path / "ours", NUMBERS, configuration={key: value})
    table = deltalog.DeltaTable(tmp_path / "ours")
    if "codec" in key:
        assert all(uri.endswith(".zstd.parquet") for uri in table.file_uris())
    else:
        assert table.protocol().reader_features == ("vacuumProtocolCheck",)
        assert key not in table.metadata().configuration

    with pytest.raises(Exception, match=key):
        deltalake.write_deltalake(tmp_path / "theirs", NUMBERS, configuration={key: value})


def test_b16_before_the_first_version_there_is_none(tmp_path: Path) -> None:
    deltalog.write_deltalake(tmp_path, NUMBERS)
    with pytest.raises(deltalog.errors.VersionNotFoundError):
        deltalog.DeltaTable(tmp_path, "2001-01-01")

    theirs = deltalake.DeltaTable(tmp_path)
    theirs.load_as_version("2001-01-01T00:00:00Z")
    assert theirs.version() == 0
