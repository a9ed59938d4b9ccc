"""How the columns of a file are matched to the table's, and put together."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog.data.scan.transform import FileProjection, kept_projection, project_file
from deltalog.errors import DataFileUnreadableError
from deltalog.protocol.column_mapping import Mode
from deltalog.schema import Field, StructType
from deltalog.schema.types import LONG, STRING
from deltalog.storage.parquet.reader import open_parquet
from tests.support.logs import DictStore
from tests.support.raw_tables import DataTable, mapped, struct_of

MAPPED_NAME = "delta.columnMapping.physicalName"


def with_id(name: str, kind: Any, number: int) -> pa.Field[Any]:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def mapped_table(mode: str, *fields: dict[str, Any], **options: Any) -> DataTable:
    return DataTable(
        fields,
        features=["columnMapping"],
        configuration={"delta.columnMapping.mode": mode},
        **options,
    )


def file_of(*columns: tuple[pa.Field[Any], list[Any]]) -> pa.Table:
    schema = pa.schema([field for field, _ in columns])
    return pa.table([pa.array(values, field.type) for field, values in columns], schema=schema)


@pytest.mark.protocol("D-67")
def test_columns_match_by_name_not_by_place() -> None:
    table = DataTable([("a", "long"), ("b", "long")])
    table.commit(table.add({"b": [1], "a": [2]}))
    assert table.rows() == [(2, 1)]
    assert table.rows(columns=["b", "a"]) == [(1, 2)]


@pytest.mark.protocol("D-67")
def test_names_match_without_case() -> None:
    table = DataTable([("Id", "long")])
    table.commit(table.add({"iD": [1]}), table.add({"Id": [3]}))
    assert sorted(table.rows()) == [1, 3]


@pytest.mark.protocol("D-67")
def test_two_columns_of_one_name_are_refused() -> None:
    table = DataTable([("id", "long")])
    table.commit(table.add({"ID": [1], "Id": [2]}))
    with pytest.raises(DataFileUnreadableError, match=r"'ID', 'Id'"):
        table.rows()


@pytest.mark.protocol("D-67")
@pytest.mark.parametrize("where", [None, "x = 1"])
def test_two_columns_that_differ_in_case_are_refused_though_one_matches(where: str | None) -> None:
    table = DataTable([("x", "long"), ("s", struct_of(("a", "long")))])
    table.commit(table.add({"x": [1], "X": [2], "s": [{"a": 1}]}))
    with pytest.raises(DataFileUnreadableError, match=r"'x'.*found \['x', 'X'\]"):
        table.rows(where)
    nested = DataTable([("s", struct_of(("a", "long")))])
    nested.commit(nested.add({"s": [{"A": 1, "a": 2}]}))
    with pytest.raises(DataFileUnreadableError, match=r"found \['A', 'a'\]"):
        nested.rows()
    assert table.rows(columns=["s"]) == [{"a": 1}]  # nobody asks for either


@pytest.mark.protocol("CONS-01", "B-31")
def test_columns_that_are_not_the_tables_are_left_out() -> None:
    table = DataTable([("id", "long")])
    table.commit(table.add({"other": ["x"], "id": [1], "_change_type": ["insert"]}))
    assert table.rows() == [1]


@pytest.mark.protocol("CONS-03")
@pytest.mark.parametrize(
    "kind",
    [
        "long",
        "string",
        "timestamp",
        "decimal(10,2)",
        struct_of(("x", "long")),
        {"type": "array", "elementType": "long", "containsNull": True},
        {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
    ],
)
def test_a_missing_column_is_null(kind: Any) -> None:
    table = DataTable([("id", "long"), ("c", kind)])
    table.commit(table.add({"id": [1, 2]}))
    assert table.rows() == [(1, None), (2, None)]
    assert table.rows("c is null", ["id"]) == [1, 2]


def test_a_file_with_no_column_of_the_table_still_counts_rows() -> None:
    table = DataTable([("id", "long")])
    table.commit(table.add({"other": [1, 2, 3]}, stats={}))
    assert table.rows() == [None, None, None]
    assert table.scan().count() == 3


@pytest.mark.protocol("CONS-04", "D-64")
def test_a_missing_nested_field_is_null_and_a_null_parent_stays() -> None:
    table = DataTable([("s", struct_of(("b", "string"), ("a", "long")))])
    kind = pa.struct([("a", pa.int64())])
    table.commit(table.add(pa.table({"s": pa.array([{"a": 1}, None, {"a": None}], kind)})))
    assert table.rows() == [{"b": None, "a": 1}, None, {"b": None, "a": None}]


@pytest.mark.protocol("CONS-04", "D-64")
def test_a_struct_of_which_the_file_has_no_field_keeps_its_nulls() -> None:
    table = DataTable([("s", struct_of(("new", "long")))])
    deep = pa.struct([("gone", pa.map_(pa.string(), pa.int64())), ("a", pa.int64())])
    values = [{"gone": [("k", 1)], "a": 1}, None]
    table.commit(table.add(pa.table({"s": pa.array(values, deep)})))
    assert table.rows() == [{"new": None}, None]
    assert table.rows("s is not null") == [{"new": None}]


@pytest.mark.protocol("CONS-04", "D-64", "D-67")
def test_structs_in_lists_and_maps_evolve_too() -> None:
    element = struct_of(("b", "long"), ("a", "long"))
    fields = [
        ("l", {"type": "array", "elementType": element, "containsNull": True}),
        ("m", {"type": "map", "keyType": element, "valueType": element, "valueContainsNull": True}),
    ]
    table = DataTable(fields)
    old = pa.struct([("a", pa.int64())])
    lists = pa.array([[{"a": 1}, None], [], None], pa.list_(old))
    maps = pa.array([[({"a": 1}, None), ({"a": 2}, {"a": 3})], [], None], pa.map_(old, old))
    table.commit(table.add(pa.table({"l": lists, "m": maps})))
    one, two, three = ({"b": None, "a": value} for value in (1, 2, 3))
    assert table.rows() == [([one, None], [(one, None), (two, three)]), ([], []), (None, None)]


def test_sliced_lists_keep_their_values() -> None:
    table = DataTable(
        [("l", {"type": "array", "elementType": "integer", "containsNull": True})],
        features=["deletionVectors"],
    )
    values = [[number, number + 1] for number in range(10)]
    lists = pa.array(values, pa.list_(pa.int64()))
    table.commit(table.add(pa.table({"l": lists}), deletionVector=table.vector(0, 1, 5)))
    assert table.rows() == [values[row] for row in (2, 3, 4, 6, 7, 8, 9)]


@pytest.mark.parametrize("kind", [pa.large_list(pa.int64()), pa.list_(pa.int64(), 2)])
def test_other_flavours_of_lists(kind: pa.DataType) -> None:
    table = DataTable([("l", {"type": "array", "elementType": "long", "containsNull": True})])
    table.commit(table.add(pa.table({"l": pa.array([[1, 2], [3, None]], kind)})))
    assert table.rows() == [[1, 2], [3, None]]


@pytest.mark.protocol("CM-12", "D-31")
def test_in_id_mode_names_do_not_matter() -> None:
    inner = struct_of(mapped("x", "long", 3, "col-x"), mapped("y", "long", 4, "col-y"))
    table = mapped_table("id", mapped("a", "long", 1, "col-a"), mapped("s", inner, 2, "col-s"))
    shuffled = pa.struct([with_id("col-x", pa.int64(), 4), with_id("?", pa.int64(), 3)])
    table.commit(
        table.add(
            file_of(
                (with_id("col-a", shuffled, 2), [{"col-x": 40, "?": 30}]),
                (with_id("a", pa.int64(), 1), [10]),
            )
        )
    )
    assert table.rows() == [(10, {"x": 30, "y": 40})]
    assert table.rows("s.y = 40 and a = 10", ["s.x"]) == [{"x": 30}]
    assert table.rows("s.y = 30") == []


@pytest.mark.protocol("CM-12")
def test_in_id_mode_partitions_and_statistics_go_by_physical_name() -> None:
    table = mapped_table(
        "id",
        mapped("a", "long", 1, "col-a"),
        mapped("p", "long", 2, "col-p"),
        partition_by=["p"],
    )
    for value in (1, 2):
        table.commit(
            table.add(
                file_of((with_id("x", pa.int64(), 1), [value])),
                partitionValues={"col-p": str(10 * value)},
                stats={"numRecords": 1, "minValues": {"col-a": value}, "maxValues": {"col-a": 2}},
            )
        )
    assert sorted(table.rows()) == [(1, 10), (2, 20)]
    assert len(list(table.scan("p = 20").tasks())) == 1
    assert len(list(table.scan("a = 1").tasks())) == 1


@pytest.mark.protocol("D-31")
def test_ids_of_fields_below_lists_and_maps() -> None:
    element = struct_of(mapped("x", "long", 2, "col-x"))
    table = mapped_table(
        "id",
        mapped("l", {"type": "array", "elementType": element, "containsNull": True}, 1, "col-l"),
        mapped(
            "m",
            {"type": "map", "keyType": "string", "valueType": element, "valueContainsNull": True},
            3,
            "col-m",
        ),
    )
    stored = pa.struct([with_id("q", pa.int64(), 2)])
    table.commit(
        table.add(
            file_of(
                (with_id("ll", pa.list_(stored), 1), [[{"q": 1}]]),
                (with_id("mm", pa.map_(pa.string(), stored), 3), [[("k", {"q": 2})]]),
            )
        )
    )
    assert table.rows() == [([{"x": 1}], [("k", {"x": 2})])]


@pytest.mark.protocol("CM-13")
def test_an_id_that_the_file_lacks_is_null() -> None:
    table = mapped_table("id", mapped("a", "long", 1, "col-a"), mapped("b", "long", 2, "col-b"))
    # A column of the right name, but with another id, is another column.
    stored = file_of((with_id("col-a", pa.int64(), 1), [1]), (with_id("col-b", pa.int64(), 9), [2]))
    table.commit(table.add(stored))
    assert table.rows() == [(1, None)]


@pytest.mark.protocol("CM-14")
def test_a_file_without_ids_is_refused_in_id_mode() -> None:
    table = mapped_table("id", mapped("a", "long", 1, "col-a"))
    table.commit(table.add({"col-a": [1]}))
    with pytest.raises(DataFileUnreadableError, match="the file has no field ids"):
        table.rows()


@pytest.mark.protocol("CM-14")
@pytest.mark.parametrize("text", ["x", " 1", "1" * 5_000, "-1", ""])
def test_ids_that_are_no_numbers_are_none(text: str) -> None:
    table = mapped_table("id", mapped("a", "long", 1, "col-a"))
    field = pa.field("col-a", pa.int64(), metadata={"PARQUET:field_id": text})
    # What Arrow stores of its own schema is read after the ids of Parquet.
    table.commit(table.add(pa.table([pa.array([1], pa.int64())], schema=pa.schema([field]))))
    with pytest.raises(DataFileUnreadableError, match="the file has no field ids"):
        table.rows()


@pytest.mark.protocol("CM-15")
def test_in_name_mode_ids_do_not_matter() -> None:
    inner = struct_of(mapped("x", "long", 3, "col-x"))
    table = mapped_table("name", mapped("a", "long", 1, "col-a"), mapped("s", inner, 2, "col-s"))
    stored = pa.struct([with_id("col-x", pa.int64(), 1), with_id("x", pa.int64(), 3)])
    table.commit(
        table.add(
            file_of(
                (with_id("col-s", stored, 1), [{"col-x": 2, "x": -1}]),
                (with_id("col-a", pa.int64(), 7), [1]),
                (with_id("a", pa.int64(), 1), [-1]),
            )
        ),
        table.add({"a": [-1]}),
    )
    assert table.rows() == [(1, {"x": 2}), (None, None)]


@pytest.mark.protocol("CM-17")
def test_a_column_dropped_and_added_again_is_a_new_one() -> None:
    table = mapped_table("name", mapped("id", "long", 1, "id"), mapped("c", "long", 2, "c"))
    table.commit(table.add({"id": [1], "c": [7]}))
    again = [mapped("id", "long", 1, "id"), mapped("c", "long", 3, "col-new")]
    table.commit(table.metadata(again))
    table.commit(table.add({"id": [2], "col-new": [8]}))
    assert sorted(table.rows()) == [(1, None), (2, 8)]
    assert table.rows("c = 7") == []


@pytest.mark.parametrize(
    ("columns", "leaves"),
    [
        (["s.x"], ["s.x"]),
        (["s"], ["s.x", "s.y.z"]),
        (["l.element.a"], []),
        (["s.y.z", "id"], ["id", "s.y.z"]),
        (["m"], ["m.key_value.key", "m.key_value.value.a", "m.key_value.value.b"]),
    ],
)
def test_only_the_leaves_wanted_are_read(columns: list[str], leaves: list[str]) -> None:
    item = struct_of(("a", "long"), ("b", "long"))
    table = DataTable(
        [
            ("id", "long"),
            ("s", struct_of(("x", "long"), ("y", struct_of(("z", "long"))))),
            (
                "m",
                {"type": "map", "keyType": "string", "valueType": item, "valueContainsNull": True},
            ),
        ]
    )
    pair = pa.struct([("a", pa.int64()), ("b", pa.int64())])
    stored = pa.table(
        {
            "id": [1],
            "s": [{"x": 1, "y": {"z": 2}, "old": 3}],
            "m": pa.array([[("k", {"a": 1, "b": 2})]], pa.map_(pa.string(), pair)),
        }
    )
    table.commit(table.add(stored))
    if not leaves:
        with pytest.raises(ValueError, match="l"):
            table.scan(columns=columns)
        return
    scan = table.scan(columns=columns)
    schema = pq.ParquetFile(io.BytesIO(table.store.files["part-0.parquet"]))
    projection = project_file(scan.spec.data_columns, schema.schema_arrow, Mode.NONE, path="f")
    read = [schema.schema.column(leaf).path for leaf in projection.leaves]
    assert read == leaves
    assert scan.to_table().num_rows == 1


def test_a_file_of_another_type_is_refused() -> None:
    table = DataTable([("id", "long"), ("s", struct_of(("x", "long")))])
    table.commit(table.add({"id": ["1"], "s": [{"x": [1]}]}))
    with pytest.raises(DataFileUnreadableError, match=r"'id'.*expected long, found string"):
        table.rows(columns=["id"])
    with pytest.raises(DataFileUnreadableError, match=r"'s\.x'.*expected long, found list"):
        table.rows(columns=["s"])


def test_an_error_names_the_file_and_the_table() -> None:
    table = DataTable([("id", "long")])
    table.commit(table.add({"id": ["x"]}))
    with pytest.raises(DataFileUnreadableError) as caught:
        table.rows()
    assert caught.value.__notes__ == ["while reading 'part-0.parquet' of table 'memory://table'"]


def test_a_shown_struct_may_be_a_part_in_any_order() -> None:
    columns = StructType([Field("s", StructType([Field("y", "long"), Field("x", "long")]))])
    stored = pa.table({"s": [{"x": 1, "q": 5, "y": 2}]})
    projection = project_file(columns, stored.schema, Mode.NONE, path="f")
    assert projection.leaves == (0, 2)
    narrow = pa.table({"s": [{"x": 1, "y": 2}]})
    (shown,) = projection.apply(narrow)
    assert shown.to_pylist() == [{"y": 2, "x": 1}]


@pytest.mark.protocol("NTZ-02", "NTZ-03")
@pytest.mark.parametrize(
    ("kind", "zone", "adjusted"), [("timestamp", "UTC", True), ("timestamp_ntz", None, False)]
)
def test_both_timestamps(kind: str, zone: str | None, adjusted: bool) -> None:
    table = DataTable([("t", kind)], features=["timestampNtz"])
    moment = dt.datetime(2024, 3, 10, 2, 30, 0, 1, tzinfo=dt.UTC if zone else None)
    stored = pa.table({"t": pa.array([moment], pa.timestamp("us", zone))})
    table.commit(table.add(stored))
    file = pq.ParquetFile(io.BytesIO(table.store.files["part-0.parquet"]))
    assert f"isAdjustedToUTC={str(adjusted).lower()}" in str(file.schema.column(0).logical_type)
    assert table.scan().schema == pa.schema([("t", pa.timestamp("us", zone))])
    assert table.rows() == [moment]


def _projection(columns: StructType, stored: pa.Schema, mode: Mode, path: str) -> FileProjection:
    store = DictStore()
    data = io.BytesIO()
    pq.write_table(stored.empty_table(), data)
    store.files[path] = data.getvalue()
    return kept_projection(columns, open_parquet(store, path), mode, path, "UTC")


def test_files_with_the_same_columns_are_matched_once() -> None:
    columns = StructType([Field("a", LONG), Field("b", STRING), Field("gone", LONG)])
    stored = pa.schema([with_id("a", pa.int64(), 1), with_id("b", pa.string(), 2)])
    first = _projection(columns, stored, Mode.NONE, "1.parquet")
    again = StructType([Field("a", LONG), Field("b", STRING), Field("gone", LONG)])
    assert _projection(again, stored, Mode.NONE, "2.parquet") is first


def test_files_with_other_columns_ids_or_types_are_matched_by_themselves() -> None:
    columns = StructType(
        [
            Field("a", LONG, metadata={"delta.columnMapping.id": 1, MAPPED_NAME: "a"}),
            Field("b", LONG, metadata={"delta.columnMapping.id": 2, MAPPED_NAME: "b"}),
        ]
    )

    def leaves(mode: Mode, *stored: tuple[str, int]) -> list[str | None]:
        schema = pa.schema([with_id(name, pa.int64(), number) for name, number in stored])
        return [name for name, _ in _projection(columns, schema, mode, "f.parquet").columns]

    assert leaves(Mode.NAME, ("a", 1), ("b", 2)) == ["a", "b"]
    assert leaves(Mode.ID, ("a", 1), ("b", 2)) == ["a", "b"]
    assert leaves(Mode.ID, ("a", 2), ("b", 1)) == ["b", "a"]
    assert leaves(Mode.NAME, ("a", 2), ("b", 1)) == ["a", "b"]
    assert leaves(Mode.NAME, ("b", 2), ("c", 3)) == [None, "b"]


def test_what_converts_names_its_own_file() -> None:
    table = DataTable([("a", "integer")])
    table.commit(table.add({"a": pa.array([1], pa.int64())}))
    table.commit(table.add({"a": pa.array([1 << 40], pa.int64())}))
    with pytest.raises(DataFileUnreadableError, match=r"'a' of data file 'part-1\.parquet'"):
        table.rows()
