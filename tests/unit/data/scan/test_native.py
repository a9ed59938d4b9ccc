"""Plans for engines with their own Parquet reader: groups of files, and reasons for the others."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.data.scan import Scan
from deltalog.data.scan.native import (
    DUCKDB,
    POLARS,
    NativePlan,
    StoredColumn,
    is_stored_as,
    plan_native,
)
from deltalog.errors import (
    DataFileMissingError,
    DataFileUnreadableError,
    DeletionVectorError,
)
from deltalog.storage.parquet.reader import ParquetReader
from tests.support.raw_tables import DataTable, Fields, mapped, struct_of

LEGACY = {"org.apache.spark.version": "2.4.8", "org.apache.spark.legacyDateTime": ""}
UTC = pa.timestamp("us", "UTC")


def on_disk(table: DataTable, directory: Path) -> DeltaTable:
    """The files of a table in memory, in a directory."""
    for path, content in table.store.files.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return DeltaTable(directory)


def scan_of(directory: Path, fields: Fields, *files: Any, **options: Any) -> Scan:
    """A scan of a table with these files."""
    table = DataTable(fields, **options)
    table.commit(*(table.add(data) for data in files))
    return on_disk(table, directory).scan()


def plan_of(directory: Path, fields: Fields, *files: Any, **options: Any) -> NativePlan:
    """The plan of DuckDB for a table with these files."""
    return plan_native(scan_of(directory, fields, *files, **options), DUCKDB)


def sizes(plan: NativePlan) -> list[int]:
    """How many files each group has."""
    return [len(group.paths) for group in plan.groups]


def names(plan: NativePlan) -> list[list[str]]:
    """The names of the files of each group, with the columns."""
    return [sorted(Path(path).name for path in group.paths) for group in plan.groups]


def same(*columns: str) -> tuple[StoredColumn, ...]:
    """Columns that are stored with the types of the table."""
    return tuple(StoredColumn(name, is_same=True) for name in columns)


# --- Groups


def test_equal_files_are_one_group(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [("id", "long"), ("s", "string")], *[{"id": [1], "s": ["a"]}] * 3)
    (group,) = plan.groups
    assert sorted(group.paths) == [str(tmp_path / f"part-{number}.parquet") for number in range(3)]
    assert group.columns == same("id", "s")
    assert group.vectors == ()
    assert (plan.num_files, plan.num_rest, plan.reasons) == (3, 0, ())
    assert plan.explain() == ["read by DuckDB: 3 files"]


def test_a_table_without_files_has_no_group(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [("id", "long")])
    assert (plan.groups, plan.num_rest, plan.reasons) == ((), 0, ())
    assert plan.explain() == ["read by DuckDB: 0 files"]


def test_files_with_deletion_vectors_are_a_group_of_their_own(tmp_path: Path) -> None:
    table = DataTable(
        [("id", "long")], [], ["deletionVectors"], {"delta.enableDeletionVectors": "true"}
    )
    vectors = table.vectors([0], [1, 2], [])
    rows = {"id": [1, 2, 3]}
    table.commit(
        table.add(rows, path="a.parquet"),
        table.add(rows, path="b.parquet", deletionVector=vectors[0]),
        table.add(rows, path="c.parquet"),
        table.add(rows, path="d.parquet", deletionVector=vectors[1]),
        table.add(rows, path="e.parquet", deletionVector=vectors[2]),
    )
    found = on_disk(table, tmp_path)
    plan = plan_native(found.scan(), DUCKDB)
    assert sorted(names(plan)) == [
        ["a.parquet", "c.parquet"], ["b.parquet", "d.parquet", "e.parquet"],
    ]  # fmt: skip
    assert plan.explain() == ["read by DuckDB: 5 files", "of these with deletion vectors: 3"]
    (marked,) = (group for group in plan.groups if group.vectors)
    deleted = [rows.to_pylist() for rows in marked.deleted(found.snapshot.store)]
    by_file = {Path(path).name: one for path, one in zip(marked.paths, deleted, strict=True)}
    assert by_file == {"b.parquet": [0], "d.parquet": [1, 2], "e.parquet": []}


def test_a_vector_of_rows_that_the_file_lacks_is_named(tmp_path: Path) -> None:
    table = DataTable(
        [("id", "long")], [], ["deletionVectors"], {"delta.enableDeletionVectors": "true"}
    )
    table.commit(table.add({"id": [1]}, deletionVector=table.vector(1)))
    found = on_disk(table, tmp_path)
    (group,) = plan_native(found.scan(), DUCKDB).groups
    with pytest.raises(DeletionVectorError) as caught:
        group.deleted(found.snapshot.store)
    assert f"of table {found.snapshot.store.root!r}" in caught.value.__notes__[0]


def test_a_missing_column_is_null_in_a_group(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path, [("id", "long"), ("late", "string")], {"id": [1], "late": ["x"]}, {"id": [2]}
    )
    assert sizes(plan) == [1, 1]
    by_file = {
        found[0]: group.columns for found, group in zip(names(plan), plan.groups, strict=True)
    }
    assert by_file == {
        "part-0.parquet": same("id", "late"), "part-1.parquet": (*same("id"), None),
    }  # fmt: skip


def test_other_orders_and_other_columns_are_groups(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        [("id", "long"), ("s", "string")],
        {"id": [1], "s": ["a"]},
        {"s": ["b"], "id": [2]},
        {"id": [3], "s": ["c"], "extra": [1.5]},
    )
    assert sizes(plan) == [1, 1, 1]
    assert {group.columns for group in plan.groups} == {same("id", "s")}
    assert plan.num_rest == 0


def test_a_column_may_be_spelled_in_another_case(tmp_path: Path) -> None:
    (group,) = plan_of(tmp_path, [("Id", "long")], {"iD": [1]}).groups
    assert group.columns == same("iD")


def test_only_scanned_columns_decide(tmp_path: Path) -> None:
    odd = pa.array([1], pa.timestamp("ms", "UTC"))
    scan = scan_of(tmp_path, [("id", "long"), ("t", "timestamp")], {"id": [1], "t": odd})
    table = DeltaTable(tmp_path)
    assert plan_native(scan, DUCKDB).num_rest == 1
    (group,) = plan_native(table.scan(["id"]), DUCKDB).groups
    assert group.columns == same("id")


def test_pruned_files_are_in_no_group(tmp_path: Path) -> None:
    table = DataTable([("id", "long"), ("p", "integer")], ["p"])
    table.commit(*(table.add({"id": [p]}, partitionValues={"p": str(p)}) for p in range(4)))
    on_disk(table, tmp_path)
    plan = plan_native(DeltaTable(tmp_path).scan(predicate="p >= 2"), DUCKDB)
    (group,) = plan.groups
    assert set(group.constants["p"].to_pylist()) == {2, 3}


def test_partition_values_are_those_of_each_file(tmp_path: Path) -> None:
    fields = [("id", "long"), ("p", "integer"), ("d", "date"), ("s", "string")]
    table = DataTable(fields, ["p", "d", "s"])
    values = [
        {"p": "1", "d": "2020-02-29", "s": "it's"},
        {"p": None, "d": None, "s": None},
        {"p": "-3", "d": "0001-01-01", "s": "\u00e9\U0001f600"},
    ]
    table.commit(*(table.add({"id": [1]}, partitionValues=value) for value in values))
    plan = plan_native(on_disk(table, tmp_path).scan(), DUCKDB)
    (group,) = plan.groups
    kinds = {name: array.type for name, array in group.constants.items()}
    assert kinds == {"p": pa.int32(), "d": pa.date32(), "s": pa.string()}
    places = [names(plan)[0].index(Path(path).name) for path in group.paths]
    found = {
        place: tuple(array[number].as_py() for array in group.constants.values())
        for number, place in enumerate(places)
    }
    assert found == {
        0: (1, dt.date(2020, 2, 29), "it's"),
        1: (None, None, None),
        2: (-3, dt.date(1, 1, 1), "\u00e9\U0001f600"),
    }


# --- Types


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        ("short", pa.int8()),
        ("integer", pa.int16()),
        ("long", pa.int32()),
        ("double", pa.int32()),
        ("double", pa.float32()),
        ("decimal(10,0)", pa.int32()),
        ("decimal(20,1)", pa.int64()),
        ("decimal(12,3)", pa.decimal128(10, 2)),
        ("timestamp", pa.timestamp("us")),
    ],
    ids=str,
)
def test_widened_types_are_cast(tmp_path: Path, kind: str, stored: Any) -> None:
    plan = plan_of(tmp_path, [("x", kind)], {"x": pa.array([1], stored)})
    (group,) = plan.groups
    assert group.columns == (StoredColumn("x", is_same=False),)


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        ("long", pa.array([1], pa.uint32())),
        ("integer", pa.array([1], pa.int64())),
        ("byte", pa.array([1], pa.int32())),
        ("double", pa.array([1], pa.int64())),
        ("decimal(10,0)", pa.array([1], pa.int64())),
        ("decimal(10,2)", pa.array([1], pa.decimal128(10, 3))),
        ("decimal(10,3)", pa.array([1], pa.decimal128(10, 2))),
        ("timestamp", pa.array([1], pa.timestamp("ns", "UTC"))),
        ("timestamp", pa.array([1], pa.timestamp("ms", "UTC"))),
        ("timestamp_ntz", pa.array([1], pa.timestamp("ns"))),
        ("timestamp_ntz", pa.array([1], UTC)),
        ("timestamp_ntz", pa.array([1], pa.date32())),
        ("string", pa.array([b"a"], pa.binary())),
        ("binary", pa.array(["a"], pa.string())),
        ("string", pa.array(["{}"], pa.json_())),
        ("binary", pa.array([b"0123456789abcdef"], pa.uuid())),
        ("float", pa.array([1.5], pa.float64())),
        ("string", pa.array([1], pa.int64())),
        (struct_of(("a", "long")), pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))),
        (struct_of(("a", "long")), pa.array([{"b": 1}], pa.struct([("b", pa.int64())]))),
    ],
    ids=str,
)
def test_other_types_are_read_by_deltalog(tmp_path: Path, kind: Any, stored: Any) -> None:
    plan = plan_of(tmp_path, [("x", kind)], {"x": stored})
    assert (plan.groups, plan.num_rest) == ((), 1)
    (reason,) = plan.reasons
    assert reason.startswith("1 ")
    assert "store 'x' as " in reason or "do not match" in reason
    assert plan.explain()[1:] == ["read by deltalog: 1 file", f"because {reason}"]


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_int96_is_cast(tmp_path: Path, kind: str) -> None:
    table = DataTable([("t", kind)])
    data = {"t": pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], UTC)}
    table.commit(table.add(data, options={"use_deprecated_int96_timestamps": True}))
    (group,) = plan_native(on_disk(table, tmp_path).scan(), DUCKDB).groups
    # The footer says no zone, which the type of the table may have.
    assert group.columns == (StoredColumn("t", is_same=kind == "timestamp_ntz"),)


def test_strings_without_annotation_are_read_by_deltalog(tmp_path: Path) -> None:
    data = pa.table({"s": pa.array([b"text"], pa.binary())})
    table = DataTable([("s", "string")])
    table.commit(table.add(data, options={"store_schema": False}))
    plan = plan_native(on_disk(table, tmp_path).scan(), DUCKDB)
    assert plan.reasons == ("1 store 's' as binary, but the table has string",)


def test_a_type_that_duckdb_has_in_another_form(tmp_path: Path) -> None:
    fields = [("id", "long"), ("v", "variant")]
    plan = plan_of(tmp_path, fields, {"id": [1]}, features=["variantType"])
    assert plan.reasons == ("1 have a column of the type variant",)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (pa.list_(pa.field("item", pa.int32())), pa.list_(pa.field("element", pa.int32())), True),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), False),
        (pa.struct([("a", pa.int32())]), pa.struct([pa.field("a", pa.int32(), False)]), True),
        (pa.struct([("a", pa.int32())]), pa.struct([("A", pa.int32())]), False),
        (
            pa.struct([("a", pa.int32()), ("b", pa.int32())]),
            pa.struct([("b", pa.int32()), ("a", pa.int32())]),
            False,
        ),
        (pa.struct([("a", pa.int32()), ("b", pa.int32())]), pa.struct([("a", pa.int32())]), False),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int32(), True), True),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), False),
        (pa.list_(pa.int32()), pa.int32(), False),
    ],
    ids=str,
)
def test_nested_types_are_compared_by_their_parts(one: Any, other: Any, *, expected: bool) -> None:
    assert is_stored_as(one, other) is expected


# --- Names


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_have_their_physical_names(tmp_path: Path, mode: str) -> None:
    fields = [mapped('a"b', "long", 1, "col-1"), mapped("file_row_number", "string", 2, "col-2")]
    table = DataTable(
        fields,
        features=["columnMapping"],
        configuration={"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "2"},
    )
    names_of_file = ["col-1", "col-2"] if mode == "name" else ["other", "names"]
    schema = pa.schema([
        pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})
        for number, (name, kind) in enumerate(
            zip(names_of_file, (pa.int64(), pa.string()), strict=True), 1
        )
    ])  # fmt: skip
    table.commit(table.add(pa.table([pa.array([1]), pa.array(["x"])], schema=schema)))
    plan = plan_native(on_disk(table, tmp_path).scan(), DUCKDB)
    (group,) = plan.groups
    assert group.columns == same(*names_of_file)


@pytest.mark.parametrize(
    "name", ["file_row_number", "File_Row_Number", "file_index", "filename", "FILENAME"]
)
def test_a_column_that_duckdb_adds_itself(tmp_path: Path, name: str) -> None:
    plan = plan_of(tmp_path, [("id", "long")], {"id": [1], name: [2]}, {"id": [2]})
    assert sizes(plan) == [1]
    assert plan.num_rest == 1
    assert plan.reasons == ("1 have column names that DuckDB changes",)


@pytest.mark.parametrize("other", ["ID", "id"])
def test_columns_that_differ_in_case_only(tmp_path: Path, other: str) -> None:
    data = pa.table([pa.array([one]) for one in (1, 2, 3)], names=["x", "id", other])
    plan = plan_of(tmp_path, [("x", "long")], data)
    assert plan.reasons == ("1 have column names that DuckDB changes",)


@pytest.mark.parametrize("character", "*?[]{}\\")
def test_names_that_are_patterns(tmp_path: Path, character: str) -> None:
    table = DataTable([("id", "long")])
    encoded = f"a%{ord(character):02X}.parquet"
    table.store.put(f"a{character}.parquet", table.store.read(table.file({"id": [1]})[0]))
    size = len(table.store.read(f"a{character}.parquet"))
    line = {**table.add({"id": [1]})["add"], "path": encoded, "size": size}
    table.commit({"add": line}, table.add({"id": [2]}))
    plan = plan_native(on_disk(table, tmp_path).scan(), DUCKDB)
    assert sizes(plan) == [1]
    assert plan.reasons == ("1 have names that are patterns in DuckDB",)


@pytest.mark.parametrize("name", ["it's", 'say "so"', "100%", "a b", "\u00e9\U0001f600", "#;--"])
def test_other_names_are_no_patterns(tmp_path: Path, name: str) -> None:
    write_deltalake(tmp_path / name, pa.table({"id": [1]}))
    (group,) = plan_native(DeltaTable(tmp_path / name).scan(), DUCKDB).groups
    assert [Path(path).parent for path in group.paths] == [tmp_path / name]


def test_a_directory_whose_name_is_a_pattern(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "a[b]", pa.table({"id": [1]}))
    plan = plan_native(DeltaTable(tmp_path / "a[b]").scan(), DUCKDB)
    assert plan.reasons == ("1 have names that are patterns in DuckDB",)


# --- Places


def test_files_of_a_clone_are_outside(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "source", pa.table({"id": [1]}))
    clone = DeltaTable(tmp_path / "source").clone(tmp_path / "clone", shallow=True)
    write_deltalake(tmp_path / "clone", pa.table({"id": [2]}), mode="append")
    clone = DeltaTable(tmp_path / "clone")
    assert plan_native(clone.scan(), DUCKDB).num_files == 2
    plan = plan_native(clone.scan(), replace(DUCKDB, most_outside=0))
    outside = plan.num_rest, plan.reasons
    assert outside == (1, ("1 are outside of the table's directory",))
    assert [Path(path).parent for group in plan.groups for path in group.paths] == [
        tmp_path / "clone"
    ]


def test_a_sibling_directory_with_the_same_beginning_is_outside(tmp_path: Path) -> None:
    table = DataTable([("id", "long")])
    table.commit(table.add({"id": [1]}))
    found = on_disk(table, tmp_path / "t")
    sibling = tmp_path / "t2" / "x.parquet"
    sibling.parent.mkdir()
    sibling.write_bytes((tmp_path / "t" / "part-0.parquet").read_bytes())
    line = {**table.add({"id": [1]})["add"], "path": sibling.as_uri()}
    table.commit({"add": line})
    found = on_disk(table, tmp_path / "t")
    plan = plan_native(found.scan(), replace(DUCKDB, most_outside=0))
    assert plan.reasons == ("1 are outside of the table's directory",)


def test_a_store_without_local_paths(tmp_path: Path) -> None:
    del tmp_path
    table = DataTable([("id", "long")])
    table.commit(table.add({"id": [1]}))
    plan = plan_native(table.scan(), DUCKDB)
    assert (plan.groups, plan.num_rest) == ((), 1)
    assert plan.reasons == ("DuckDB does not open files in this store",)


def test_metadata_columns_are_read_by_deltalog(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    scan = DeltaTable(tmp_path).scan(["id", "_metadata.file_path"])
    plan = plan_native(scan, DUCKDB)
    assert plan.reasons == ("the scan has metadata columns",)


def test_too_many_files_are_read_by_deltalog(tmp_path: Path) -> None:
    scan = scan_of(tmp_path, [("id", "long")], *[{"id": [1]}] * 3)
    assert sizes(plan_native(scan, replace(DUCKDB, most_files=3))) == [3]
    plan = plan_native(scan, replace(DUCKDB, most_files=2))
    assert (plan.groups, plan.num_rest) == ((), 3)
    assert plan.reasons == ("3 files are too many for one query of DuckDB",)


def test_too_many_schemas_are_read_by_deltalog(tmp_path: Path) -> None:
    files = [{"id": [1], f"extra{number}": [1]} for number in range(33)]
    plan = plan_of(tmp_path, [("id", "long")], *files)
    assert (plan.groups, plan.num_rest) == ((), 33)
    assert plan.reasons == ("files of 33 different schemas are too many for one query",)
    assert sizes(plan_of(tmp_path / "less", [("id", "long")], *files[:32])) == [1] * 32


# --- Footers


@pytest.mark.parametrize("kind", ["date", "timestamp"])
def test_old_calendars_are_read_by_deltalog(tmp_path: Path, kind: str) -> None:
    stored = pa.array([-354_222], pa.int32()).view(pa.date32())
    data = pa.table({"d": stored if kind == "date" else stored.cast(UTC)})
    plan = plan_of(tmp_path, [("d", kind)], data.replace_schema_metadata(LEGACY), data)
    assert sizes(plan) == [1]
    assert plan.reasons == ("1 have dates or timestamps of the hybrid calendar",)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    scan = scan_of(tmp_path, [("id", "long")], {"id": [1]}, {"id": [2]})
    (tmp_path / "part-1.parquet").unlink()
    with pytest.raises(DataFileMissingError, match=r"part-1\.parquet"):
        plan_native(scan, DUCKDB)


def test_a_damaged_footer_is_named(tmp_path: Path) -> None:
    scan = scan_of(tmp_path, [("id", "long")], {"id": [1]}, {"id": [2]})
    (tmp_path / "part-1.parquet").write_bytes(b"PAR1 no footer PAR1")
    with pytest.raises(DataFileUnreadableError, match=r"part-1\.parquet"):
        plan_native(scan, DUCKDB)


def _overwrite(file: Path, content: bytes, *, time_s: int) -> None:
    """Change the bytes of a file in place, and set its time."""
    with file.open("r+b") as opened:
        opened.write(content)
    os.utime(file, (time_s, time_s))


def test_footers_of_unchanged_files_are_read_once(tmp_path: Path) -> None:
    scan = scan_of(tmp_path, [("id", "long")], {"id": [1]})
    file = tmp_path / "part-0.parquet"
    os.utime(file, (1_700_000_000, 1_700_000_000))
    first = plan_native(scan, DUCKDB)
    # Same size, time and inode: only a second read of the footer would notice.
    _overwrite(file, b"x" * file.stat().st_size, time_s=1_700_000_000)
    assert plan_native(scan, DUCKDB).groups == first.groups
    os.utime(file, (1_700_000_001, 1_700_000_001))
    with pytest.raises(DataFileUnreadableError, match=r"part-0\.parquet"):
        plan_native(scan, DUCKDB)


def test_a_replaced_file_is_planned_anew(tmp_path: Path) -> None:
    scan = scan_of(tmp_path, [("id", "long")], {"id": [1]})
    file = tmp_path / "part-0.parquet"
    os.utime(file, (1_700_000_000, 1_700_000_000))
    assert plan_native(scan, DUCKDB).groups[0].columns == same("id")
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), file)
    (group,) = plan_native(scan, DUCKDB).groups
    assert group.columns == (StoredColumn("id", is_same=False),)


def test_groups_do_not_depend_on_earlier_plans(tmp_path: Path) -> None:
    scan = scan_of(tmp_path, [("s", "string")], {"s": ["a", "b"]}, {"s": ["c"]})
    for name in ("part-0.parquet", "part-1.parquet"):
        os.utime(tmp_path / name, (1_700_000_000, 1_700_000_000))
    assert sizes(plan_native(scan, POLARS)) == [2]
    os.utime(tmp_path / "part-1.parquet", (1_600_000_000, 1_600_000_000))
    # The bounds of only one of the files are known now.
    assert sizes(plan_native(scan, POLARS, has_filter=False)) == [2]
    assert sizes(plan_native(scan, POLARS)) == [2]


def test_bounds_are_only_read_if_the_engine_may_compare_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    real = ParquetReader.column_chunks

    def counted(self: ParquetReader, *leaves: Any) -> Any:
        calls.append(self.path)
        return real(self, *leaves)

    monkeypatch.setattr(ParquetReader, "column_chunks", counted)
    files = [{"s": ["a", "b"]}, {"s": ["c"]}]
    scan = scan_of(tmp_path, [("s", "string")], *files)
    for name in ("part-0.parquet", "part-1.parquet"):
        os.utime(tmp_path / name, (1_700_000_000, 1_700_000_000))
    assert sizes(plan_native(scan, POLARS, has_filter=False)) == [2]
    assert calls == []
    (group,) = plan_native(scan, POLARS).groups
    assert group.untrusted == frozenset()
    assert sorted(calls) == ["part-0.parquet", "part-1.parquet"]
    assert plan_native(scan, POLARS, has_filter=False).groups == (group,)  # they are known now
    assert len(calls) == 2
