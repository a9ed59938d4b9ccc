"""Tables with icebergCompatV3: deletion vectors as Puffin files, and rows with their ids."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.avro.file import AvroFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DATA_FILE_TYPE, MANIFEST_ENTRY_SCHEMAS, MANIFEST_LIST_FILE_SCHEMAS
from pyiceberg.table import StaticTable
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from deltalog import DeltaTable, convert_to_deltalake, write_deltalake
from deltalog._util.clock import SystemClock
from deltalog.errors import DeletionVectorError, InvalidInputError
from deltalog.iceberg import IcebergVersion, sync
from deltalog.log.snapshot import load_snapshot

V2 = {"delta.enableIcebergCompatV2": "true"}
V3 = {"delta.enableIcebergCompatV3": "true", "delta.enableDeletionVectors": "true"}


class FixedClock(SystemClock):
    """A clock that shows one moment."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def append(path: Path, *values: int) -> None:
    write_deltalake(path, numbers(*values), mode="append", configuration=V3)


def synced(path: Path) -> IcebergVersion:
    return sync(DeltaTable(path).snapshot)


def ids(made: IcebergVersion, snapshot_id: int | None = None) -> list[Any]:
    found = StaticTable.from_metadata(made.metadata_location).scan(snapshot_id=snapshot_id)
    return sorted(found.to_arrow()["id"].to_pylist())


def metadata_of(made: IcebergVersion) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stored(made.metadata_location))
    return found


def stored(location: str) -> bytes:
    return Path(location.removeprefix("file://")).read_bytes()


def listed(made: IcebergVersion) -> list[dict[str, Any]]:
    """The live entries of the current snapshot, with the fields of format version 3."""
    shown = StaticTable.from_metadata(made.metadata_location)
    current = shown.current_snapshot()
    assert current is not None
    found = []
    for manifest in _records(current.manifest_list, MANIFEST_LIST_FILE_SCHEMAS[3]):
        for entry in _records(manifest["manifest_path"], MANIFEST_ENTRY_SCHEMAS[3]):
            if entry["status"] == 2:
                continue
            names = [one.name for one in DATA_FILE_TYPE[3].fields]
            data_file = dict(zip(names, entry["data_file"]._data, strict=True))
            number = entry["sequence_number"]
            found.append(
                {
                    **data_file,
                    "sequence_number": manifest["sequence_number"] if number is None else number,
                    "manifest_first_row_id": manifest["first_row_id"],
                }
            )
    return found


def _records(location: str, schema: Any) -> list[dict[str, Any]]:
    names = [one.name for one in schema.fields]
    with AvroFile[Any](PyArrowFileIO().new_input(location), schema) as reader:
        return [dict(zip(names, one._data, strict=True)) for one in reader]


def vectors_of(made: IcebergVersion) -> dict[str, list[Any]]:
    """The deleted positions by data file, as PyIceberg reads the Puffin files."""
    found = {}
    for entry in listed(made):
        if entry["content"] == 1:
            data = stored(entry["file_path"])
            (vector,) = deletion_vectors_from_puffin_file(PuffinFile(data))
            assert vector.referenced_data_file == entry["referenced_data_file"]
            start, size = entry["content_offset"], entry["content_size_in_bytes"]
            assert int.from_bytes(data[start : start + 4], "big") == size - 8
            assert entry["file_size_in_bytes"] == len(data)
            found[vector.referenced_data_file] = vector.to_vector().to_pylist()
            assert entry["record_count"] == len(found[vector.referenced_data_file])
    return found


def test_rows_have_the_ids_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, 1, 2, 3)
    append(path, 4, 5)
    made = synced(path)
    metadata = metadata_of(made)

    assert metadata["format-version"] == 3
    assert metadata["next-row-id"] == 5
    (first,) = metadata["snapshots"]
    assert (first["first-row-id"], first["added-rows"]) == (0, 5)
    append(path, 6)
    metadata = metadata_of(made := synced(path))
    assert metadata["next-row-id"] == 6
    assert [one["sequence-number"] for one in metadata["snapshots"]] == [1, 2]
    last = metadata["snapshots"][-1]
    assert (last["first-row-id"], last["added-rows"]) == (5, 1)
    assert last["summary"]["operation"] == "append"
    found = sorted((one["first_row_id"], one["sequence_number"]) for one in listed(made))
    assert found == [(0, 0), (3, 1), (5, 2)]
    assert {one["manifest_first_row_id"] for one in listed(made)} == {0, 5}


def test_deletion_vectors_are_shown_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, *range(10))
    append(path, *range(10, 20))
    synced(path)

    DeltaTable(path).delete("id IN (2, 3, 14)")
    made = synced(path)
    assert not made.is_whole
    assert ids(made) == [0, 1, *range(4, 14), *range(15, 20)]
    assert sorted(vectors_of(made).values()) == [[2, 3], [4]]
    summary = metadata_of(made)["snapshots"][-1]["summary"]
    assert summary["operation"] == "delete"
    assert (summary["added-dvs"], summary["added-position-deletes"]) == ("2", "3")
    assert (summary["total-delete-files"], summary["total-position-deletes"]) == ("2", "3")

    DeltaTable(path).delete("id = 5")
    made = synced(path)
    assert sorted(vectors_of(made).values()) == [[2, 3, 5], [4]]
    summary = metadata_of(made)["snapshots"][-1]["summary"]
    assert (summary["removed-dvs"], summary["total-position-deletes"]) == ("1", "4")

    DeltaTable(path).update(predicate="id = 16", updates={"id": "id + 100"})
    made = synced(path)
    assert ids(made) == [0, 1, 4, *range(6, 14), 15, 17, 18, 19, 116]
    assert metadata_of(made)["snapshots"][-1]["summary"]["operation"] == "overwrite"

    DeltaTable(path).delete("id < 10")
    made = synced(path)
    assert ids(made) == [10, 11, 12, 13, 15, 17, 18, 19, 116]
    assert list(vectors_of(made).values()) == [[4, 6]]
    for snapshot in StaticTable.from_metadata(made.metadata_location).snapshots():
        version = snapshot.sequence_number
        assert version is not None
        expected: list[Any] = DeltaTable(path, version=version).to_pyarrow_table()["id"].to_pylist()
        assert ids(made, snapshot.snapshot_id) == sorted(expected)


def test_a_vector_of_a_row_beyond_its_file_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, *range(40))
    append(path, *range(10))
    DeltaTable(path).delete("id = 30")
    log = path / "_delta_log" / "00000000000000000002.json"
    text = log.read_text("utf-8")
    told, wrong = 'numRecords\\":40', 'numRecords\\":20'
    assert told in text
    log.write_text(text.replace(told, wrong), "utf-8")
    with pytest.raises(DeletionVectorError, match=r"below 20, .* found row 30"):
        synced(path)


def test_a_restore_takes_deletions_back(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, *range(10))
    append(path, *range(10, 20))
    DeltaTable(path).delete("id IN (1, 11)")
    synced(path)
    DeltaTable(path).delete("id IN (2, 12)")
    synced(path)
    DeltaTable(path).delete("id > 9")
    synced(path)

    DeltaTable(path).restore(2)
    made = synced(path)
    assert ids(made) == [0, *range(2, 11), *range(12, 20)]
    assert metadata_of(made)["snapshots"][-1]["summary"]["operation"] == "overwrite"
    DeltaTable(path).restore(1)
    made = synced(path)
    assert not made.is_whole
    assert ids(made) == list(range(20))
    assert vectors_of(made) == {}


def test_all_vectors_are_listed_anew(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, *range(10))
    DeltaTable(path).delete("id = 1")
    made = synced(path)

    assert made.is_whole
    assert ids(made) == [0, *range(2, 10)]
    assert list(vectors_of(made).values()) == [[1]]


def test_a_table_of_v2_is_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, numbers(1, 2), configuration=V2)
    before = synced(path)
    assert metadata_of(before)["format-version"] == 2
    DeltaTable(path).alter.set_table_properties(
        {**V3, "delta.enableIcebergCompatV2": "false", "delta.enableRowTracking": "true"}
    )
    DeltaTable(path).delete("id = 1")

    made = synced(path)

    assert made.is_whole
    assert ids(made) == [2]
    metadata = metadata_of(made)
    assert (metadata["format-version"], metadata["next-row-id"]) == (3, 2)
    old, new = metadata["snapshots"]
    assert "first-row-id" not in old
    assert ids(made, old["snapshot-id"]) == [1, 2]
    assert (new["first-row-id"], new["added-rows"]) == (0, 2)


def test_metadata_of_v3_is_none_of_v2(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, 1)
    synced(path)
    DeltaTable(path).alter.set_table_properties(
        {**V2, "delta.enableIcebergCompatV3": "false", "delta.enableDeletionVectors": "false"}
    )

    made = synced(path)

    metadata = metadata_of(made)
    assert (metadata["format-version"], len(metadata["snapshots"])) == (2, 1)
    assert ids(made) == [1]


def test_moved_rows_keep_their_ids_under_the_field_ids_of_iceberg(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, 1, 2)
    append(path, 3)
    DeltaTable(path).optimize.compact()
    made = synced(path)

    (entry,) = listed(made)
    schema = pq.read_schema(entry["file_path"].removeprefix("file://"))
    hidden = {
        field.metadata[b"PARQUET:field_id"]: field.name
        for field in schema
        if field.metadata is not None and not field.name.startswith("col-")
    }
    assert set(hidden) == {b"2147483540", b"2147483539"}
    rows: Any = pq.read_table(entry["file_path"].removeprefix("file://"))
    assert sorted(rows[hidden[b"2147483540"]].to_pylist()) == [0, 1, 2]
    assert sorted(rows[hidden[b"2147483539"]].to_pylist()) == [0, 0, 1]
    shown: Any = DeltaTable(path).scan(["id", "_metadata.row_id"]).to_table()
    assert sorted(shown["_metadata.row_id"].to_pylist()) == [0, 1, 2]


def test_old_vectors_go_with_their_snapshots(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, *range(10))
    append(path, *range(10, 20))
    for number in (1, 2, 11):
        DeltaTable(path).delete(f"id = {number}")
        synced(path)
    assert len(list((path / "metadata").glob("*.puffin"))) == 3
    append(path, 30)
    snapshot = DeltaTable(path).snapshot
    week_ms = 8 * 24 * 3_600_000
    later = replace(snapshot.context, clock=FixedClock(snapshot.commit_timestamp_ms + week_ms))

    made = sync(load_snapshot(later))

    assert len(metadata_of(made)["snapshots"]) == 1
    assert ids(made) == [0, *range(3, 11), *range(12, 20), 30]
    left = {f"file://{file}" for file in (path / "metadata").glob("*.puffin")}
    assert left == {one["file_path"] for one in listed(made) if one["content"] == 1}
    assert len(left) == 2


def test_v3_switches_row_tracking_on_with_it(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, numbers(1, 2))
    DeltaTable(path).alter.set_table_properties({**V3, "delta.columnMapping.mode": "name"})
    assert DeltaTable(path).metadata().configuration["delta.enableRowTracking"] == "true"
    assert ids(synced(path)) == [1, 2]
    other = tmp_path / "other"
    write_deltalake(other, numbers(1))
    explicit = {**V3, "delta.columnMapping.mode": "name", "delta.enableRowTracking": "false"}
    with pytest.raises(InvalidInputError, match="needs row tracking"):
        DeltaTable(other).alter.set_table_properties(explicit)


def test_v3_is_switched_on_where_no_file_has_row_ids(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, numbers(1, 2))
    on = {**V3, "delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"}
    DeltaTable(path).alter.set_table_properties(on)
    DeltaTable(path).delete("id = 2")
    assert ids(synced(path)) == [1]

    tracked = tmp_path / "tracked"
    write_deltalake(tracked, numbers(1), configuration={"delta.enableRowTracking": "true"})
    DeltaTable(tracked).alter.set_table_properties(on)
    assert ids(synced(tracked)) == [1]


def test_v3_is_not_switched_on_where_a_file_has_no_count(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, numbers(1, 2))
    first = path / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(line) for line in first.read_text("utf-8").splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    first.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    with pytest.raises(InvalidInputError, match="numRecords"):
        DeltaTable(path).alter.set_table_properties(
            {**V3, "delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"}
        )


def test_an_iceberg_table_is_no_directory_of_parquet_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, 1, 2)
    DeltaTable(path).delete("id = 1")
    synced(path)
    shutil.rmtree(path / "_delta_log")

    with pytest.raises(
        InvalidInputError, match=r"Iceberg table with the metadata metadata/v1\.metadata\.json"
    ):
        convert_to_deltalake(path, source_format="parquet")
    assert not (path / "_delta_log").exists()
