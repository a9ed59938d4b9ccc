"""Tables that PyIceberg wrote become Delta tables with the same rows; no data is copied."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import shutil
import sys
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import types
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform, VoidTransform

from deltalog import DeltaTable, connect, convert_to_deltalake, write_deltalake
from deltalog.errors import (
    DeltaError,
    InvalidInputError,
    TableExistsError,
    UnsafePathError,
    UnsupportedTypeError,
)
from deltalog.table.convert import ForeignSource
from tests.support.iceberg_tables import Catalog, iceberg, in_order, path_of

__all__ = ["iceberg"]

MOMENT = dt.datetime(2025, 3, 30, 1, 30, tzinfo=dt.UTC)


def rows(*numbers: int) -> pa.Table:
    """Rows of each type that both formats have."""
    kinds: dict[str, tuple[Any, pa.DataType]] = {
        "id": (list(numbers), pa.int64()),
        "p": ([None if one % 5 == 0 else f"a {one % 2}/é%20" for one in numbers], pa.string()),
        "day": ([dt.date(2025, 1, 1 + one % 2) for one in numbers], pa.date32()),
        "small": (list(numbers), pa.int32()),
        "real": ([one / 4 for one in numbers], pa.float64()),
        "single": ([float(one) for one in numbers], pa.float32()),
        "yes": ([one % 2 == 0 for one in numbers], pa.bool_()),
        "amount": ([Decimal(one) / 4 for one in numbers], pa.decimal128(9, 2)),
        "at": ([MOMENT] * len(numbers), pa.timestamp("us", "UTC")),
        "local": ([MOMENT.replace(tzinfo=None)] * len(numbers), pa.timestamp("us")),
        "bytes": ([bytes([one]) for one in numbers], pa.binary()),
        "s": ([{"x": one, "y": [f"q{one}"]} for one in numbers],
              pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])),
        "m": ([[("k", one)] for one in numbers], pa.map_(pa.string(), pa.int64())),
    }  # fmt: skip
    return pa.table({name: pa.array(*given) for name, given in kinds.items()})


def commit_lines(table: Path, version: int) -> list[dict[str, Any]]:
    text = (table / "_delta_log" / f"{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def story(iceberg: Catalog) -> Table:
    """A table with all that can happen to files and columns."""
    table = iceberg.create(rows(0).schema)
    table.append(rows(1, 2, 3))  # before the table had partitions
    with table.update_spec() as spec:
        spec.add_identity("p")
        spec.add_identity("day")
    table.append(rows(4, 5, 6, 7))
    table.delete("id = 6")
    with table.update_schema() as change:
        change.rename_column("real", "ratio")
        change.delete_column("single")
    with table.update_schema() as change:  # the name of a column that was there
        change.add_column("real", types.StringType())
    names = {"real": "ratio"}
    more = rows(8).drop_columns(["single"])
    table.append(more.rename_columns([names.get(name, name) for name in more.column_names]))
    return table


@pytest.mark.parametrize("form", ["directory", "metadata", "table"])
@pytest.mark.parametrize("collect_stats", [True, False])
def test_a_table_is_taken_over_where_it_is(
    iceberg: Catalog, form: str, collect_stats: bool
) -> None:
    table = story(iceberg)
    expected = in_order(table.scan().to_arrow())
    before = sorted(path_of(table).rglob("*.parquet"))
    given: dict[str, Any] = {
        "directory": path_of(table),
        "metadata": table.metadata_location,
        "table": table,
    }
    convert_to_deltalake(given[form], collect_stats=collect_stats)
    found = DeltaTable(path_of(table))
    assert in_order(found.to_pyarrow_table()) == expected
    assert sorted(path_of(table).rglob("*.parquet")) == before
    assert found.metadata().configuration["delta.columnMapping.mode"] == "id"
    # Not all files have the partition values, and all have the columns.
    assert found.metadata().partition_columns == ()
    (commit,) = found.history()
    assert commit["operation"] == "CONVERT"
    assert commit["operationParameters"]["sourceFormat"] == "iceberg"
    assert found.scan(predicate="id = 7").explain().facts["files_to_read"] == (
        1 if collect_stats else 5
    )
    reading = found.scan(predicate="ratio = 2.0").explain().facts["files_to_read"]
    assert reading == (1 if collect_stats else 5)
    assert found.scan(predicate="ratio = 2.0").count() == 1
    # It goes on as a table of ours.
    more = found.to_pyarrow_table().slice(0, 2)
    write_deltalake(found, more, mode="append")
    found.alter.rename_column("ratio", "share")
    assert found.delete("id = 7")["num_deleted_rows"] == 1
    assert found.count() == len(expected) + 1
    assert found.to_pyarrow_table(columns=["share"]).num_rows == len(expected) + 1


@pytest.mark.parametrize("whole", [True, False])
def test_partition_columns_are_those_of_which_files_have_the_value(
    iceberg: Catalog, whole: bool
) -> None:
    schema = Schema(
        types.NestedField(1, "id", types.LongType(), required=True, doc="the key"),
        types.NestedField(2, "p", types.StringType()),
        types.NestedField(3, "day", types.DateType()),
    )
    second: Any = IdentityTransform() if whole else VoidTransform()
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "p"), PartitionField(3, 1001, second, "day")
    )
    table = iceberg.create(schema, partition_spec=spec, properties={"comment": "of the catalog"})
    given = rows(1, 2, 3, 4, 5).select(["id", "p", "day"])
    table.append(given.cast(table.schema().as_arrow()))
    convert_to_deltalake(table)
    found = DeltaTable(path_of(table))
    assert found.metadata().partition_columns == (("p", "day") if whole else ("p",))
    assert found.metadata().description == "of the catalog"
    assert found.schema().fields[0].nullable is False
    assert found.schema().fields[0].metadata["comment"] == "the key"
    assert in_order(found.to_pyarrow_table()) == in_order(given)
    scan = found.scan(predicate="p = 'a 1/é%20'")
    assert scan.count() == 2
    assert scan.explain().facts["pruned_by_partition_values"] > 0


def test_a_partition_column_may_have_the_name_of_a_dropped_one(iceberg: Catalog) -> None:
    schema = Schema(
        types.NestedField(1, "id", types.LongType()), types.NestedField(2, "p", types.LongType())
    )
    table = iceberg.create(schema)
    table.append(pa.table({"id": [1], "p": [7]}))
    with table.update_schema() as change:
        change.delete_column("p")
    with table.update_schema() as change:
        change.add_column("p", types.StringType())
    with table.update_spec() as spec:
        spec.add_identity("p")
    table.append(pa.table({"id": [2, 3], "p": ["x", "y"]}))
    table.overwrite(pa.table({"id": [1], "p": ["x"]}), overwrite_filter="id = 1")
    convert_to_deltalake(table)
    found = DeltaTable(path_of(table))
    assert found.metadata().partition_columns == ("p",)
    assert in_order(found.to_pyarrow_table()) == [
        {"id": 1, "p": "x"}, {"id": 2, "p": "x"}, {"id": 3, "p": "y"},
    ]  # fmt: skip
    write_deltalake(found, pa.table({"id": [4], "p": ["z"]}), mode="append")
    assert found.scan(predicate="p = 'z'").explain().facts["files_to_read"] == 1


@pytest.mark.parametrize("kind", ["SHALLOW CLONE", "CLONE"])
def test_a_clone_is_elsewhere(iceberg: Catalog, tmp_path: Path, kind: str) -> None:
    table = story(iceberg)
    older = table.metadata_location
    expected = in_order(table.scan().to_arrow())
    table.delete("id = 1")
    with connect() as db:
        db.sql(f"CREATE TABLE c {kind} iceberg.`{older}` LOCATION '{tmp_path}/c'")
        found = DeltaTable(tmp_path / "c")
        assert in_order(found.to_pyarrow_table()) == expected
        (commit,) = found.history()
        assert commit["operation"] == "CLONE"
        source = f"iceberg.`file:{path_of(table)}`"
        assert commit["operationParameters"]["source"] == source
        assert len(list((tmp_path / "c").rglob("*.parquet"))) == (5 if kind == "CLONE" else 0)
        # Again: only what is new.
        newest = f"iceberg.`{table.metadata_location}`"
        db.sql(f"CREATE OR REPLACE TABLE c {kind} {newest} LOCATION '{tmp_path}/c'")
        found.update_incremental()
        assert in_order(found.to_pyarrow_table()) == in_order(table.scan().to_arrow())
        metrics = found.history(1)[0]["operationMetrics"]
        assert int(metrics["numRemovedFiles"]) == 1
        # There and back between versions whose files are partly the same, and whose partition
        # columns are not: what stays is told anew, and is no new row.
        newer = in_order(table.scan().to_arrow())
        assert found.metadata().partition_columns == ("p", "day")
        for version, rows_then in [(0, expected), (1, newer)]:
            found.restore(version)
            assert in_order(found.to_pyarrow_table()) == rows_then
            columns = found.metadata().partition_columns
            lines = commit_lines(tmp_path / "c", found.version())
            adds = [line["add"] for line in lines if "add" in line]
            assert len(adds) == len(found.file_uris())
            assert {len(add["partitionValues"]) for add in adds} == {len(columns)}
            assert sum(not add["dataChange"] for add in adds) == 4  # what both versions have
    assert not (path_of(table) / "_delta_log").exists()


def test_parquet_files_are_cloned_likewise(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "files" / "a.parquet")
    with connect() as db:
        source = f"parquet.`{tmp_path}/files`"
        db.sql(f"CREATE TABLE c SHALLOW CLONE {source} LOCATION '{tmp_path}/c'")
    assert DeltaTable(tmp_path / "c").to_pyarrow_table()["id"].to_pylist() == [1, 2]


def test_sql_converts(iceberg: Catalog) -> None:
    table = story(iceberg)
    with connect() as db:
        with pytest.raises(InvalidInputError, match="convert it with source_format"):
            db.sql(f"CONVERT TO DELTA parquet.`{path_of(table)}`")
        db.sql(f"CONVERT TO DELTA iceberg.`{table.metadata_location}` NO STATISTICS")
        db.sql(f"CONVERT TO DELTA iceberg.`{path_of(table)}`")  # there is one already
    assert DeltaTable(path_of(table)).count() == table.scan().to_arrow().num_rows
    with pytest.raises(TableExistsError):
        convert_to_deltalake(table)


def test_a_table_without_rows_is_taken_over(iceberg: Catalog) -> None:
    table = iceberg.create(rows(0).schema)
    convert_to_deltalake(table)
    found = DeltaTable(path_of(table))
    assert found.count() == 0
    assert found.schema().fields[0].name == "id"


def test_the_newest_metadata_is_that_of_the_hint_or_the_only_one(iceberg: Catalog) -> None:
    table = story(iceberg)
    expected = in_order(table.scan().to_arrow())
    metadata = path_of(table) / "metadata"
    newest = Path(table.metadata_location.removeprefix("file://"))
    twin = metadata / newest.name.replace("-", "-0", 1)
    shutil.copy(newest, twin)
    with pytest.raises(InvalidInputError, match="expected one newest"):
        convert_to_deltalake(path_of(table))
    # As a table of Iceberg's file system catalog, of which the names tell.
    (metadata / "v7.gz.metadata.json").write_bytes(gzip.compress(newest.read_bytes()))
    (metadata / "version-hint.text").write_text("7")
    convert_to_deltalake(path_of(table))
    assert in_order(DeltaTable(path_of(table)).to_pyarrow_table()) == expected


# --- what has no equal


def changed(table: Table, change: Any) -> Path:
    """The newest metadata file, after a change to its JSON."""
    path = Path(table.metadata_location.removeprefix("file://"))
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))
    return path


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (types.TimeType(), "time"),
        (types.UUIDType(), "uuid"),
    ],
)
def test_types_that_delta_lacks_are_named(iceberg: Catalog, kind: Any, text: str) -> None:
    table = iceberg.create(Schema(types.NestedField(1, "odd", kind)))
    with pytest.raises(UnsupportedTypeError, match=f"'odd' has the type {text}"):
        convert_to_deltalake(table)
    assert not (path_of(table) / "_delta_log").exists()


def test_files_without_field_ids_are_refused(iceberg: Catalog) -> None:
    table = iceberg.create(pa.schema([("n", pa.int32())]))
    file = path_of(table) / "data" / "other.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": pa.array([1], pa.int32())}), file)
    table.add_files([f"file://{file}"])
    with pytest.raises(InvalidInputError, match="'n' has no field id"):
        convert_to_deltalake(table)


def test_an_empty_text_as_a_partition_is_refused(iceberg: Catalog) -> None:
    table = iceberg.create(rows(0).schema)
    with table.update_spec() as spec:
        spec.add_identity("p")
    table.append(rows(1).set_column(1, "p", pa.array([""])))
    with pytest.raises(InvalidInputError, match="cannot distinguish from NULL"):
        convert_to_deltalake(table)


def test_defaults_are_refused(iceberg: Catalog) -> None:
    table = story(iceberg)

    def give_default(found: dict[str, Any]) -> None:
        found["schemas"][-1]["fields"][0]["initial-default"] = 7

    path = changed(table, give_default)
    with pytest.raises(InvalidInputError, match="'id' has an Iceberg default value"):
        convert_to_deltalake(path)


def test_files_elsewhere_are_refused(iceberg: Catalog, tmp_path: Path) -> None:
    table = story(iceberg)
    moved = tmp_path / "moved"
    shutil.copytree(path_of(table), moved)
    with pytest.raises(UnsafePathError, match="outside of the table"):
        convert_to_deltalake(moved)


@pytest.mark.parametrize(
    "damage",
    [
        lambda found: found.pop("schemas"),
        lambda found: found.update({"current-snapshot-id": 12}),
        lambda found: found.update({"format-version": 9}),
        lambda found: found.update({"default-spec-id": 77}),
        lambda found: found["snapshots"][-1].update({"manifest-list": "file:///etc/hostname"}),
        lambda found: found["snapshots"][-1].update({"manifest-list": "metadata/../../x"}),
    ],
)
def test_damaged_metadata_is_an_error_of_ours(iceberg: Catalog, damage: Any) -> None:
    table = story(iceberg)
    path = changed(table, damage)
    with pytest.raises(DeltaError):
        convert_to_deltalake(path)
    assert not (path_of(table) / "_delta_log").exists()


@pytest.mark.parametrize("ending", ["-m0.avro", "snap-*.avro"])
def test_damaged_manifests_are_errors_of_ours(iceberg: Catalog, ending: str) -> None:
    table = story(iceberg)
    random = Random(18)
    there = sorted((path_of(table) / "metadata").glob(f"*{ending}"))
    newest = table.current_snapshot()
    assert newest is not None
    named = {newest.manifest_list, *(one.manifest_path for one in newest.manifests(table.io))}
    files = [path for path in there if f"file://{path}" in named]
    assert files
    failed = 0
    for number in range(80):
        file = random.choice(files)
        whole = file.read_bytes()
        damaged = bytearray(whole[: random.randrange(len(whole))] if number % 4 == 0 else whole)
        for _ in range(random.choice([1, 3, 20])):
            if damaged and number % 4:
                damaged[random.randrange(len(damaged))] = random.randrange(256)
        file.write_bytes(bytes(damaged))
        try:
            ForeignSource.at(path_of(table)).snapshot()
        except DeltaError:
            failed += 1
        finally:
            file.write_bytes(whole)
    assert failed > 20


def test_what_we_show_as_iceberg_comes_back(tmp_path: Path) -> None:
    on = {
        "delta.universalFormat.enabledFormats": "iceberg",
        "delta.enableIcebergCompatV2": "true",
    }
    write_deltalake(tmp_path / "t", rows(1, 2, 3), configuration=on, partition_by=["day"])
    table = DeltaTable(tmp_path / "t")
    table.alter.rename_column("real", "ratio")
    write_deltalake(table, table.to_pyarrow_table(), mode="append")
    expected = in_order(table.to_pyarrow_table())
    (tmp_path / "t" / "_delta_log").rename(tmp_path / "log")
    convert_to_deltalake(tmp_path / "t")
    found = DeltaTable(tmp_path / "t")
    assert in_order(found.to_pyarrow_table()) == expected
    assert found.metadata().partition_columns == ("day",)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"partition_strategy": "hive"}, "the partition spec of the Iceberg table defines the"),
        (
            {"configuration": {"delta.columnMapping.mode": "name"}},
            "needs delta.columnMapping.mode=id",
        ),
        ({"configuration": {"delta.enableIcebergCompatV2": "true"}}, "upgrade_uniform"),
        ({"source_format": "orc"}, "expected parquet or iceberg"),
    ],
)
def test_what_cannot_be_asked_is_refused(iceberg: Catalog, options: Any, words: str) -> None:
    table = story(iceberg)
    with pytest.raises(InvalidInputError, match=words):
        convert_to_deltalake(table, **options)
    assert not (path_of(table) / "_delta_log").exists()


def test_without_pyiceberg_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    monkeypatch.setitem(sys.modules, "deltalog.iceberg", None)
    monkeypatch.setitem(sys.modules, "deltalog.iceberg.source", None)
    with pytest.raises(InvalidInputError, match=r"pip install 'deltalog\[iceberg\]'"):
        convert_to_deltalake(tmp_path / "other", source_format="iceberg")
    with pytest.raises(InvalidInputError, match=r"pip install 'deltalog\[iceberg\]'"):
        DeltaTable(tmp_path / "t").sync_iceberg()
