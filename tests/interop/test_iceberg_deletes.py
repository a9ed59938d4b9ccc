"""Iceberg tables with rows that were deleted one by one: the same rows are deleted in Delta."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import Table

from deltalog import DeltaTable, connect, convert_to_deltalake, write_deltalake
from deltalog.data.scan import plan_scan
from deltalog.errors import (
    DataFileMissingError,
    DeletionVectorError,
    DeltaError,
    InvalidInputError,
    UnsafePathError,
)
from deltalog.table.convert import ForeignSource
from tests.support.iceberg_tables import (
    Catalog,
    Deletes,
    add_deletes,
    data_files,
    iceberg,
    in_order,
    path_of,
    position_deletes,
    rows_of,
)

__all__ = ["iceberg"]

V3 = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV3": "true",
    "delta.enableDeletionVectors": "true",
}


def rows(*numbers: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "p": pa.array([f"p{number % 2}" for number in numbers]),
        }
    )


def two_files(iceberg: Catalog) -> Table:
    table = iceberg.create(rows(0).schema)
    table.append(rows(*range(10)))
    table.append(rows(*range(10, 20)))
    return table


def vectors_of(path: Path) -> dict[str, Any]:
    """The deletion vectors of the newest version, by name of the data file."""
    found: Any = DeltaTable(path).snapshot.files(["path", "deletionVector"]).to_pylist()
    return {one["path"]: one["deletionVector"] for one in found if one["deletionVector"]}


def ids(path: Path) -> list[int]:
    found: list[Any] = DeltaTable(path).to_pyarrow_table()["id"].to_pylist()
    return sorted(found)


# --- position deletes


@pytest.mark.parametrize("scoped", ["by bounds", "by name", "no bounds"])
def test_position_deletes_become_deletion_vectors(iceberg: Catalog, scoped: str) -> None:
    table = two_files(iceberg)
    one, other = (file.file_path for file in data_files(table))
    bounds = scoped == "by bounds"
    metadata = add_deletes(
        table,
        Deletes(rows=[(one, 0), (one, 3), (one, 9)], bounds=bounds),
        Deletes(rows=[(one, 3), (one, 4), (other, 5)], bounds=bounds),
    )
    before = sorted(path_of(table).rglob("*.parquet"))

    convert_to_deltalake(metadata)

    found = DeltaTable(path_of(table))
    assert in_order(found.to_pyarrow_table()) == rows_of(metadata)
    assert ids(path_of(table)) == [1, 2, 5, 6, 7, 8, *range(10, 15), *range(16, 20)]
    assert found.count() == 15
    assert sorted(path_of(table).rglob("*.parquet")) == before
    assert found.metadata().configuration["delta.enableDeletionVectors"] == "true"
    assert "deletionVectors" in (found.protocol().reader_features or ())
    assert found.scan(predicate="id = 9").count() == 0
    assert found.scan(predicate="id > 12").explain().facts["files_to_read"] == 1
    # It goes on as a table of ours: rows are deleted beside those that are.
    assert found.delete("id = 7")["num_deleted_rows"] == 1
    assert found.optimize.purge()["numFilesRemoved"] == 2
    assert ids(path_of(table)) == [1, 2, 5, 6, 8, *range(10, 15), *range(16, 20)]


def test_statistics_are_those_of_all_rows(iceberg: Catalog) -> None:
    table = two_files(iceberg)
    one = data_files(table)[0].file_path
    convert_to_deltalake(add_deletes(table, Deletes(rows=[(one, 0)])))
    log = path_of(table) / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    adds = [action["add"] for action in actions if "add" in action]
    stats = {bool(add.get("deletionVector")): json.loads(add["stats"]) for add in adds}
    assert stats[True]["numRecords"] == 10
    assert stats[True]["tightBounds"] is False
    assert stats[True]["minValues"]["id"] == 0
    assert stats[False].get("tightBounds", True) is True


def test_without_statistics_rows_are_counted(iceberg: Catalog) -> None:
    table = two_files(iceberg)
    one = data_files(table)[0].file_path
    convert_to_deltalake(add_deletes(table, Deletes(rows=[(one, 0)])), collect_stats=False)
    assert DeltaTable(path_of(table)).count() == 19


def test_a_file_without_a_row_is_left_out(iceberg: Catalog) -> None:
    table = two_files(iceberg)
    one = data_files(table)[0].file_path
    metadata = add_deletes(table, Deletes(rows=[(one, at) for at in range(10)]))
    convert_to_deltalake(metadata)
    assert ids(path_of(table)) == list(range(10, 20))
    assert len(DeltaTable(path_of(table)).file_uris()) == 1


@pytest.mark.parametrize("bounds", [True, False])
@pytest.mark.parametrize(("number", "left"), [(0, 20), (1, 19), (2, 18)])
def test_deletes_are_of_rows_that_are_not_younger(
    iceberg: Catalog, number: int, left: int, bounds: bool
) -> None:
    table = two_files(iceberg)  # of the sequence numbers 1 and 2
    one, other = (file.file_path for file in data_files(table))
    named = [[(one, 1)], [(other, 1)]] if bounds else [[(one, 1), (other, 1)]]
    metadata = add_deletes(
        table, *[Deletes(rows=few, sequence_number=number, bounds=bounds) for few in named]
    )
    convert_to_deltalake(metadata)
    assert DeltaTable(path_of(table)).count() == left
    if bounds or number != 1:  # else PyIceberg applies what it has read for the older file to both
        assert in_order(DeltaTable(path_of(table)).to_pyarrow_table()) == rows_of(metadata)


def test_deletes_of_other_partitions_do_not_apply(iceberg: Catalog) -> None:
    table = iceberg.create(rows(0).schema)
    table.append(rows(0, 1))  # before the table had partitions
    with table.update_spec() as spec:
        spec.add_identity("p")
    table.append(rows(2, 4, 3, 5))
    _, *parts = data_files(table)
    even, odd = sorted(parts, key=lambda one: str(one.partition[0]))
    metadata = add_deletes(
        table,
        # One of its own partition, and rows of others, which are not of this file's.
        Deletes(rows=[(even.file_path, 0), (odd.file_path, 1)], partition=("p0",), bounds=False),
    )
    convert_to_deltalake(metadata)
    # PyIceberg applies a file to all partitions once it has read it; the specification does not.
    assert ids(path_of(table)) == [0, 1, 3, 4, 5]


def test_deletes_without_a_partition_are_of_files_without_one(iceberg: Catalog) -> None:
    table = iceberg.create(rows(0).schema)
    table.append(rows(0, 1))
    with table.update_spec() as spec:
        spec.add_identity("p")
    table.append(rows(2, 4))
    plain, part = data_files(table)
    metadata = add_deletes(
        table,
        Deletes(rows=[(plain.file_path, 0), (part.file_path, 0)], spec_id=0, bounds=False),
    )
    convert_to_deltalake(metadata)
    assert ids(path_of(table)) == [1, 2, 4]


def test_deletes_of_files_that_are_gone_are_left_out(iceberg: Catalog) -> None:
    table = two_files(iceberg)
    gone = f"{table.location()}/data/gone.parquet"
    one = data_files(table)[0].file_path
    metadata = add_deletes(
        table, Deletes(rows=[(gone, 0)]), Deletes(rows=[(gone, 7), (one, 2)], bounds=False)
    )
    convert_to_deltalake(metadata)
    assert in_order(DeltaTable(path_of(table)).to_pyarrow_table()) == rows_of(metadata)
    assert DeltaTable(path_of(table)).count() == 19


def test_many_positions_are_a_file_of_vectors(iceberg: Catalog) -> None:
    table = iceberg.create(rows(0).schema)
    table.append(rows(*range(5000)))
    table.append(rows(*range(5000, 10_000)))
    deleted = [
        (file.file_path, at) for file in data_files(table) for at in range(0, 5000, 7) if at % 3
    ]
    metadata = add_deletes(table, Deletes(rows=deleted, bounds=False))
    convert_to_deltalake(metadata)
    assert in_order(DeltaTable(path_of(table)).to_pyarrow_table()) == rows_of(metadata)
    (vectors,) = path_of(table).glob("deletion_vector_*.bin")
    assert vectors.stat().st_size > 1000


# --- deletion vectors of format version 3


def shown(path: Path, *conditions: str, **options: Any) -> tuple[Path, list[dict[str, Any]]]:
    """A table of version 3 with deletion vectors, without its log, and the rows PyIceberg reads."""
    write_deltalake(path, rows(*range(10)), configuration=V3, **options)
    write_deltalake(path, rows(*range(10, 1000)), mode="append")
    for condition in conditions:
        DeltaTable(path).delete(condition)
    location = DeltaTable(path).sync_iceberg().metadata_location
    (path / "_delta_log").rename(path.parent / f"{path.name}-log")
    metadata = Path(location.removeprefix("file://"))
    return metadata, rows_of(metadata)


@pytest.mark.parametrize("partition_by", [None, ["p"]], ids=["whole", "partitions"])
def test_deletion_vectors_are_taken_over(tmp_path: Path, partition_by: list[str] | None) -> None:
    metadata, expected = shown(
        tmp_path / "t", "id = 3", "id % 3 = 1", "id = 900", partition_by=partition_by
    )
    convert_to_deltalake(metadata)
    found = DeltaTable(tmp_path / "t")
    assert in_order(found.to_pyarrow_table()) == expected
    assert found.count() == len(expected)
    (tmp_path / "t" / "metadata").rename(tmp_path / "metadata")  # nothing is read from there
    assert in_order(DeltaTable(tmp_path / "t").to_pyarrow_table()) == expected


@pytest.mark.parametrize("kind", ["SHALLOW CLONE", "CLONE"])
def test_clones_have_vectors_of_their_own(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    metadata, expected = shown(path, "id = 3", "id % 3 = 1")
    before = sorted(path.rglob("*"))
    with connect() as db:
        statement = f"TABLE c {kind} iceberg.`{metadata}` LOCATION '{tmp_path}/c'"
        db.sql(f"CREATE {statement}")
        found = DeltaTable(tmp_path / "c")
        assert in_order(found.to_pyarrow_table()) == expected
        assert len(list((tmp_path / "c").rglob("*.parquet"))) == (2 if kind == "CLONE" else 0)
        vectors = vectors_of(tmp_path / "c")
        assert len(vectors) == 2
        # The small one beside the large one: both are in the file of the commit.
        assert len(list((tmp_path / "c").glob("deletion_vector_*.bin"))) == 1
        # Again: nothing is new.
        db.sql(f"CREATE OR REPLACE {statement}")
        found.update_incremental()
        assert vectors_of(tmp_path / "c") == vectors
        metrics = found.history(1)[0]["operationMetrics"]
        assert (metrics["numRemovedFiles"], metrics["numCopiedFiles"]) in {("0", "0"), (0, 0)}
        assert len(list((tmp_path / "c").glob("deletion_vector_*.bin"))) == 1
    assert sorted(path.rglob("*")) == before
    # Rows that are deleted since come with the next one.
    (path.parent / "t-log").rename(path / "_delta_log")
    DeltaTable(path).delete("id = 500")
    newer = DeltaTable(path).sync_iceberg().metadata_location
    (path / "_delta_log").rename(path.parent / "t-log")
    with connect() as db:
        place = newer.removeprefix("file://")
        db.sql(f"CREATE OR REPLACE TABLE c {kind} iceberg.`{place}` LOCATION '{tmp_path}/c'")
    again = DeltaTable(tmp_path / "c")
    assert in_order(again.to_pyarrow_table()) == rows_of(Path(place))
    kept = vectors_of(tmp_path / "c")
    assert sum(kept.get(name) == vector for name, vector in vectors.items()) == 1
    again.restore(0)
    assert in_order(again.to_pyarrow_table()) == expected


def test_a_choice_of_the_caller_stands(tmp_path: Path) -> None:
    metadata, expected = shown(tmp_path / "t", "id = 3")
    convert_to_deltalake(metadata, configuration={"delta.enableDeletionVectors": "false"})
    found = DeltaTable(tmp_path / "t")
    assert in_order(found.to_pyarrow_table()) == expected
    found.delete("id = 4")  # by rewriting its file, as the property says
    assert vectors_of(tmp_path / "t") == {}
    assert found.count() == len(expected) - 1


# --- what does not fit


def refused(metadata: Path, words: str, error: type[DeltaError] = InvalidInputError) -> None:
    with pytest.raises(error, match=words):
        convert_to_deltalake(metadata)
    assert not (metadata.parent.parent / "_delta_log").exists()


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"file_format": FileFormat.AVRO}, "expected row-level deletes in Parquet, found the avro"),
        ({"file_format": FileFormat.ORC}, "found the orc"),
        ({"record_count": 7}, "expected 7 rows, found 1"),
        ({"key_metadata": b"key"}, "encrypted"),
        ({"content": DataFileContent.DATA}, "a manifest for deletes lists the file"),
        ({"content": DataFileContent.EQUALITY_DELETES}, "have no columns"),
        (
            {"content": DataFileContent.EQUALITY_DELETES, "equality_ids": [99]},
            "column with id 99, which does not exist",
        ),
        (
            {"content": DataFileContent.EQUALITY_DELETES, "equality_ids": [1]},
            r"field ids \{1\} are missing",
        ),
        ({"file_format": FileFormat.PUFFIN}, "does not record the data file"),
    ],
)
def test_entries_that_cannot_be_followed_are_refused(
    iceberg: Catalog, members: dict[str, Any], words: str
) -> None:
    table = two_files(iceberg)
    one = data_files(table)[0].file_path
    refused(add_deletes(table, Deletes(rows=[(one, 1)], members=members)), words)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("{one}", 10)], "row 10 of .* is deleted, but the file has 10 rows"),
        ([("{one}", 1 << 40)], "but the file has 10 rows"),
        ([("{one}", -1)], "a position is invalid"),
    ],
)
def test_positions_outside_of_the_file_are_refused(
    iceberg: Catalog, rows: list[tuple[str, int]], words: str
) -> None:
    table = two_files(iceberg)
    one = data_files(table)[0].file_path
    named = [(path.format(one=one), at) for path, at in rows]
    refused(add_deletes(table, Deletes(rows=named)), words)


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (lambda right: right.rename_columns(["path", "pos"]), None),  # by their ids
        (lambda right: right.replace_schema_metadata().cast(plain(right)), None),  # by their names
        (lambda right: right.drop_columns(["pos"]), "expected one column pos"),
        (lambda right: with_column(right, "pos", pa.array([1], pa.int32())), "one column pos"),
        (lambda right: with_column(right, "pos", pa.array([None], pa.int64())), "is NULL"),
        (lambda right: with_column(right, "file_path", pa.array([1])), "one column file_path"),
    ],
)
def test_delete_files_of_another_form(iceberg: Catalog, held: Any, words: str | None) -> None:
    table = two_files(iceberg)
    right = position_deletes([(data_files(table)[0].file_path, 1)])
    metadata = add_deletes(table, Deletes(table=held(right), bounds=False))
    if words is not None:
        refused(metadata, words)
        return
    convert_to_deltalake(metadata)
    assert ids(path_of(table)) == [0, *range(2, 20)]


def plain(table: pa.Table) -> pa.Schema:
    return pa.schema([pa.field(one.name, one.type) for one in table.schema])


def with_column(table: pa.Table, name: str, values: Any) -> pa.Table:
    place = table.schema.get_field_index(name)
    field = pa.field(name, values.type, metadata=table.schema.field(place).metadata)
    return table.set_column(place, field, values)


def test_delete_files_elsewhere_are_refused(iceberg: Catalog, tmp_path: Path) -> None:
    table = two_files(iceberg)
    one = data_files(table)[0].file_path
    other = {"file_path": f"file://{tmp_path}/elsewhere.parquet"}
    metadata = add_deletes(table, Deletes(rows=[(one, 1)], members=other))
    refused(metadata, "outside of the table", UnsafePathError)


def test_delete_files_that_are_gone_or_none_are_errors(iceberg: Catalog) -> None:
    table = two_files(iceberg)
    one = data_files(table)[0].file_path
    metadata = add_deletes(table, Deletes(rows=[(one, 1)]))
    (file,) = path_of(table).rglob("*-deletes.parquet")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DeltaError):
        convert_to_deltalake(metadata)
    file.unlink()
    refused(metadata, "deletes.parquet", DataFileMissingError)


def test_data_files_of_another_length_are_refused(iceberg: Catalog) -> None:
    table = two_files(iceberg)
    one, other = (Path(file.file_path.removeprefix("file://")) for file in data_files(table))
    table.append(rows(1, 2))
    one.write_bytes(Path(data_files(table)[-1].file_path.removeprefix("file://")).read_bytes())
    with pytest.raises(InvalidInputError, match="expected 10 rows, as the Iceberg metadata"):
        convert_to_deltalake(table)
    assert other.exists()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda data: data[:-1], InvalidInputError, "found"),
        (lambda data: b"XXXX" + data[4:], InvalidInputError, "expected a Puffin file"),
        (lambda data: data[:20] + b"\xff" + data[21:], DeletionVectorError, "checksum"),
        (lambda data: data[:4] + b"\x00" * 4 + data[8:], DeletionVectorError, "size field"),
    ],
)
def test_damaged_vectors_are_refused(
    tmp_path: Path, change: Any, error: type[DeltaError], words: str
) -> None:
    metadata, _ = shown(tmp_path / "t", "id = 3")
    (puffin,) = (tmp_path / "t" / "metadata").glob("*.puffin")
    puffin.write_bytes(change(puffin.read_bytes()))
    refused(metadata, words, error)
    puffin.unlink()
    refused(metadata, "the file is missing", DataFileMissingError)


def snapshot_of(metadata: Path) -> list[dict[str, Any]]:
    _, snapshot = ForeignSource.at(metadata).snapshot()
    return in_order(plan_scan(snapshot).to_table())


@pytest.mark.parametrize("kind", ["manifest", "positions", "vectors"])
def test_damaged_files_with_deletes_are_errors_of_ours(
    iceberg: Catalog, tmp_path: Path, kind: str
) -> None:
    """Whatever the bytes are, nothing but an error of ours, and of vectors never another row."""
    if kind == "vectors":
        metadata, expected = shown(tmp_path / "t", "id = 3", "id % 3 = 1")
        files = sorted((tmp_path / "t" / "metadata").glob("*.puffin"))
    else:
        table = two_files(iceberg)
        one = data_files(table)[0].file_path
        metadata = add_deletes(table, Deletes(rows=[(one, at) for at in range(0, 10, 2)]))
        expected = rows_of(metadata)
        ending = "*-deletes-m0.avro" if kind == "manifest" else "*-deletes.parquet"
        files = sorted(path_of(table).rglob(ending))
    assert snapshot_of(metadata) == expected
    random, failed = Random(18), 0
    for number in range(60):
        file = random.choice(files)
        whole = file.read_bytes()
        damaged = bytearray(whole[: random.randrange(len(whole))] if number % 4 == 0 else whole)
        for _ in range(random.choice([1, 3, 20])):
            if damaged and number % 4:
                damaged[random.randrange(len(damaged))] = random.randrange(256)
        file.write_bytes(bytes(damaged))
        try:
            found = snapshot_of(metadata)
        except DeltaError:
            failed += 1
        else:
            assert kind != "vectors" or found == expected
        finally:
            file.write_bytes(whole)
    assert failed > 10


@pytest.mark.parametrize("is_dropped", [False, True])
def test_equality_deletes_by_a_partition_that_the_file_leaves_out_are_refused(
    iceberg: Catalog, *, is_dropped: bool
) -> None:
    """The value stands in the manifest alone: the file would be read as if it had NULL."""
    held = pa.table({"id": pa.array([1, 2], pa.int64()), "p": ["a", "a"]})
    table = iceberg.create(held.schema)
    with table.update_spec() as spec:
        spec.add_identity("p")
    table.append(held)
    fields = [
        pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})
        for name, kind, number in [("id", pa.int64(), 1), ("p", pa.string(), 2)]
    ]
    by_both = pa.table([pa.array([2]), pa.array(["a"])], schema=pa.schema(fields))
    members = {"content": DataFileContent.EQUALITY_DELETES, "equality_ids": [1, 2]}
    deletes = Deletes(table=by_both, partition=("a",), bounds=False, members=members)
    metadata = add_deletes(table, deletes)
    if is_dropped:  # PyIceberg cannot
        state = json.loads(metadata.read_text("utf-8"))
        (whole,) = state["schemas"]
        state["schemas"].append({**whole, "schema-id": 1, "fields": whole["fields"][:1]})
        state["partition-specs"].append({"spec-id": 9, "fields": []})
        state |= {"current-schema-id": 1, "default-spec-id": 9}
        metadata.write_text(json.dumps(state), "utf-8")
    convert_to_deltalake(metadata)
    assert ids(path_of(table)) == [1]

    (path_of(table) / "_delta_log").rename(path_of(table).parent / "log")
    (file,) = (Path(one.file_path.removeprefix("file://")) for one in data_files(table))
    whole = pq.read_table(file)
    size_bytes = file.stat().st_size
    pq.write_table(whole.drop_columns(["p"]), file)
    parts = file.read_bytes()
    file.write_bytes(parts[:4] + bytes(size_bytes - len(parts)) + parts[4:])
    refused(metadata, "compares a partition column that the file does not contain")
