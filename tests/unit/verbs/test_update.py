"""Updates: which rows change, into what, and what becomes of the files that hold them."""

from __future__ import annotations

import datetime as dt
from io import BytesIO
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from deltalog._json import iter_objects
from deltalog.actions import AddCDCFile, actions_from_json
from deltalog.errors import ConstraintViolationError, DeltaError, InvalidInputError
from deltalog.expressions import col, lit, parse_type
from deltalog.log.names import commit_path
from deltalog.scan import plan_scan
from deltalog.schema import Field
from deltalog.testing import CountingStore, FaultyStore, InjectedFault
from deltalog.write import WriterProperties
from tests.support.logs import DictStore
from tests.support.statements import FEED, ROW_IDS, VECTORS, StatedTable

MODES = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewritten", "masked"])
NUMBERS = {"id": "long", "x": "long"}


def rows(*ids: int) -> list[dict[str, int]]:
    return [{"id": number, "x": 10 * number} for number in ids]


@MODES
def test_only_rows_that_match_change(properties: dict[str, str]) -> None:
    table = StatedTable(NUMBERS, rows(1, 2, 3), rows(4, 5), properties=properties)
    updated = table.update({"x": "x + id"}, "id in (2, 4)")
    assert table.rows() == [
        {"id": 1, "x": 10}, {"id": 2, "x": 22}, {"id": 3, "x": 30},
        {"id": 4, "x": 44}, {"id": 5, "x": 50},
    ]  # fmt: skip
    assert updated.rows.all_updated == 2


@MODES
def test_without_a_predicate_every_row_changes_and_no_old_file_stays(
    properties: dict[str, str],
) -> None:
    table = StatedTable(NUMBERS, rows(1, 2), rows(3), properties=properties)
    updated = table.update({"x": "0"})
    assert table.values("x") == [0, 0, 0]
    assert updated.files.num_removed_files == 2
    assert updated.files.num_vectors_added == 0
    assert updated.files.num_copied_rows == 0


def test_rewritten_files_keep_the_order_of_their_rows() -> None:
    table = StatedTable(NUMBERS, rows(5, 3, 4, 1, 2))
    table.update({"x": "0"}, "id = 4")
    assert plan_scan(table.snapshot).to_table()["id"].to_pylist() == [5, 3, 4, 1, 2]


@pytest.mark.protocol("DV-01")
def test_masked_rows_unite_with_those_that_were_masked_before() -> None:
    table = StatedTable(NUMBERS, rows(1, 2, 3, 4), properties=VECTORS)
    table.delete("id = 1")
    updated = table.update({"x": "0"}, "id = 2")
    vectors = pc.struct_field(table.files()["deletionVector"], "cardinality").to_pylist()
    assert sorted(vectors, key=str) == [2, None]
    assert (updated.files.num_vectors_updated, updated.files.num_vectors_removed) == (1, 1)
    assert table.rows() == [{"id": 2, "x": 0}, {"id": 3, "x": 30}, {"id": 4, "x": 40}]


def test_an_argument_forces_either_way() -> None:
    masked = StatedTable(NUMBERS, rows(1, 2), properties=VECTORS)
    applied = masked.update({"x": "0"}, "id = 1", use_deletion_vectors=False).files
    assert (applied.num_removed_files, applied.num_vectors_added) == (1, 0)
    assert applied.num_copied_rows == 1
    plain = StatedTable(NUMBERS, rows(1, 2))
    with pytest.raises(InvalidInputError, match="does not support"):
        plain.update({"x": "0"}, "id = 1", use_deletion_vectors=True)


def test_nothing_that_matches_makes_no_version() -> None:
    table = StatedTable(NUMBERS, rows(1))
    before = table.version
    assert table.update({"x": "0"}, "id = 9").rows.all_updated == 0
    assert table.version == before


# --- what may be assigned


@MODES
def test_fields_of_structs_change_by_themselves(properties: dict[str, str]) -> None:
    columns = {"id": "long", "s": "struct<a:int,t:struct<b:string,c:int>>"}
    one, two = ({"a": n, "t": {"b": "x", "c": n}} for n in (1, 2))
    table = StatedTable(columns, [{"id": 1, "s": one}, {"id": 2, "s": two}], properties=properties)
    table.update({"s.t.c": "s.a + 10", "S.A": "0"}, "id = 2")
    assert table.rows() == [
        {"id": 1, "s": one},
        {"id": 2, "s": {"a": 0, "t": {"b": "x", "c": 12}}},
    ]


def test_a_field_of_a_struct_that_is_null_makes_the_struct() -> None:
    table = StatedTable(
        {"id": "long", "s": "struct<a:int,b:int>"}, [{"id": 1, "s": None}], [{"id": 2, "s": None}]
    )
    table.update({"s.a": "7"}, "id = 1")
    assert table.rows() == [{"id": 1, "s": {"a": 7, "b": None}}, {"id": 2, "s": None}]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("y", "there is no column 'y'"),
        ("idd", "did you mean 'id'"),
        ("s.aa", "did you mean 's.a'"),
        ("x.a", "is of type long and has no field 'a'"),
        ("l.element", "only fields of structs"),
    ],
)
def test_unknown_columns_are_errors_and_nothing_is_written(name: str, says: str) -> None:
    columns = {**NUMBERS, "s": "struct<a:int>", "l": "array<int>"}
    table = StatedTable(columns, [{"id": 1, "x": 1, "s": {"a": 1}, "l": [1]}])
    before = table.version
    with pytest.raises(InvalidInputError, match=says):
        table.update({name: "9"})
    assert table.version == before


@pytest.mark.parametrize("twice", [{"x": "1", "X": "2"}, {"s": "NULL", "s.a": "1"}])
def test_a_column_is_assigned_once(twice: dict[str, str]) -> None:
    table = StatedTable({"x": "long", "s": "struct<a:int>"}, [{"x": 1, "s": {"a": 1}}])
    with pytest.raises(InvalidInputError, match="twice"):
        table.update(twice)


def test_a_name_with_a_dot_is_a_column_before_it_is_a_path() -> None:
    columns = [Field("a.b", "long"), Field("a", parse_type("struct<b:long>"))]
    table = StatedTable(
        columns,
        [{"a.b": 1, "a": {"b": 1}}],
        properties={"delta.columnMapping.mode": "name"},
    )
    table.update({"a.b": "2"})
    table.update({("a", "b"): "3"})
    assert table.rows() == [{"a.b": 2, "a": {"b": 3}}]


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("string", "a", "it's \\ ' OR '1'='1"),
        ("string", "a", None),
        ("date", dt.date(2024, 1, 1), dt.date(2025, 2, 3)),
        (
            "timestamp",
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
            dt.datetime(2025, 1, 1, tzinfo=dt.UTC),
        ),
        ("binary", b"a", b"\x00'"),
        ("array<string>", ["a"], ["it's", None]),
        ("array<int>", [1], []),
        ("map<string,int>", None, [("b'", 2)]),
        ("struct<a:string,b:int>", {"a": "x", "b": 1}, {"a": "it's", "b": None}),
        ("double", 1.0, float("inf")),
        ("boolean", False, True),
    ],
)
def test_values_are_taken_as_they_are(kind: str, old: object, new: Any) -> None:
    table = StatedTable({"id": "long", "v": kind}, [{"id": 1, "v": old}])
    value: Any = {"b'": 2} if kind.startswith("map") else new
    table.update({"v": lit(value)})
    assert table.values("v") == [new]


def test_values_may_be_expressions() -> None:
    table = StatedTable(NUMBERS, rows(1, 2))
    table.update({"x": col("x") * 2, "id": col("x")}, "id = 2")
    assert table.rows() == [{"id": 1, "x": 10}, {"id": 20, "x": 40}]


def test_values_are_cast_as_ansi_sql_does() -> None:
    table = StatedTable({"id": "byte"}, [{"id": 1}])
    table.update({"id": "'7'"})
    assert table.values("id") == [7]
    with pytest.raises(InvalidInputError):
        table.update({"id": "300"})
    with pytest.raises(InvalidInputError):
        table.update({"id": "'seven'"})
    table.update({"id": "'seven'"}, error_on_type_mismatch=False)
    assert table.values("id") == [None]


def test_rows_move_between_partitions() -> None:
    columns = {"id": "long", "p": "string"}
    table = StatedTable(
        columns,
        [{"id": 1, "p": "a"}, {"id": 2, "p": "a"}, {"id": 3, "p": "b"}],
        partition_by=["p"],
    )
    table.update({"p": "'b'"}, "id = 1")
    assert table.rows() == [{"id": 1, "p": "b"}, {"id": 2, "p": "a"}, {"id": 3, "p": "b"}]
    values: list[Any] = table.files()["partitionValues"].to_pylist()
    assert sorted(dict(value)["p"] for value in values) == ["a", "b", "b"]


# --- what the table demands


def test_generated_columns_are_computed_anew() -> None:
    columns = [
        Field("t", "timestamp"),
        Field("day", "date", metadata={"delta.generationExpression": "CAST(t AS DATE)"}),
    ]
    first, second = (dt.datetime(2024, 1, day, tzinfo=dt.UTC) for day in (1, 2))
    for properties in ({}, VECTORS):
        table = StatedTable(columns, [{"t": first}, {"t": second}], properties=properties)
        table.update({"t": "timestamp'2024-03-01T00:00:00Z'"}, "day = date'2024-01-02'")
        assert table.values("day") == [dt.date(2024, 1, 1), dt.date(2024, 3, 1)]
        with pytest.raises(ConstraintViolationError, match="generated column 'day'"):
            table.update({"day": "date'2000-01-01'"})


@MODES
def test_rules_hold_for_new_values(properties: dict[str, str]) -> None:
    columns = [
        Field("id", "long", nullable=False),
        Field("x", "long"),
        Field("c", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}),
    ]
    table = StatedTable(
        columns,
        [{"id": 1, "x": 1, "c": "abc"}, {"id": 2, "x": 1, "c": "abc"}],
        properties={**properties, "delta.constraints.positive": "x > 0"},
    )
    files = set(table.store.files) if isinstance(table.store, DictStore) else set()
    for values, says in (
        ({"x": "-1"}, "positive"),
        ({"id": "NULL"}, "NOT NULL"),
        ({"c": "'abcd'"}, "varchar"),
    ):
        with pytest.raises(ConstraintViolationError, match=says):
            table.update(values, "id = 2")
    assert table.version == 1
    assert isinstance(table.store, DictStore)
    assert set(table.store.files) == files


@pytest.mark.protocol("IDN-08")
def test_identity_columns_are_not_assigned_and_keep_their_values() -> None:
    columns = [
        Field(
            "n",
            "long",
            metadata={
                "delta.identity.start": 1,
                "delta.identity.step": 1,
                "delta.identity.allowExplicitInsert": False,
            },
        ),
        Field("x", "long"),
    ]
    table = StatedTable(columns, [{"x": 1}, {"x": 2}])
    with pytest.raises(InvalidInputError, match="identity column"):
        table.update({"n": "5"})
    table.update({"x": "x * 10"}, "x = 2")
    assert table.rows() == [{"n": 1, "x": 1}, {"n": 2, "x": 20}]


@pytest.mark.protocol("APP-01")
def test_append_only_tables_refuse() -> None:
    table = StatedTable(NUMBERS, rows(1), properties={"delta.appendOnly": "true"})
    with pytest.raises(DeltaError, match="append"):
        table.update({"x": "0"})


# --- ids and the change feed


@pytest.mark.protocol("ROWID-13", "ROWID-14")
@MODES
def test_row_ids_stay_and_only_changed_rows_get_the_new_version(
    properties: dict[str, str],
) -> None:
    table = StatedTable(NUMBERS, rows(1, 2, 3), properties={**properties, **ROW_IDS})
    columns = ("id", "_metadata.row_id", "_metadata.row_commit_version")
    table.update({"x": "0"}, "id = 2")
    table.update({"x": "1"}, "id >= 2")
    found = [tuple(row.values()) for row in table.rows(*columns)]
    assert found == [(1, 0, 1), (2, 1, 3), (3, 2, 3)]


@pytest.mark.protocol("DF-08", "CDC-02")
@MODES
def test_the_feed_tells_what_was_and_what_is(properties: dict[str, str]) -> None:
    table = StatedTable(NUMBERS, rows(1, 2, 3), properties={**properties, **FEED})
    table.update({"x": "0"}, "id = 2")
    assert table.changes() == [
        {"id": 2, "x": 0, "_change_type": "update_postimage"},
        {"id": 2, "x": 20, "_change_type": "update_preimage"},
    ]


@pytest.mark.protocol("DF-06")
def test_change_files_lie_in_directories_of_their_partitions() -> None:
    table = StatedTable(
        {"id": "long", "p": "long"},
        [{"id": 1, "p": 1}, {"id": 2, "p": 2}],
        partition_by=["p"],
        properties=FEED,
    )
    table.update({"id": "id + 1"})
    cdc = [action for action in _actions(table) if isinstance(action, AddCDCFile)]
    assert {action.path.rpartition("/")[0] for action in cdc} == {
        "_change_data/p=1",
        "_change_data/p=2",
    }


def _actions(table: StatedTable) -> list[Any]:
    path = commit_path(table.version)
    objects = list(iter_objects(table.store.read(path), path))
    return list(actions_from_json(objects, path))


# --- counts and faults


def test_only_files_that_may_match_are_opened() -> None:
    store = CountingStore(DictStore())
    table = StatedTable(NUMBERS, *(rows(n, n + 1) for n in range(0, 20, 2)), store=store)
    store.reset()
    table.update({"x": "0"}, "id = 5")
    opened = {call for call in store.paths("open", "read_ranges") if call.endswith(".parquet")}
    assert len(opened) == 1


@pytest.mark.parametrize("properties", [{**FEED}, {**FEED, **VECTORS}], ids=["rewritten", "masked"])
def test_a_write_that_fails_leaves_the_old_version_and_no_file(properties: dict[str, str]) -> None:
    inner = DictStore()
    table = StatedTable(NUMBERS, rows(1, 2, 3), properties=properties, store=inner)
    files, before = set(inner.files), table.rows()
    table.store = FaultyStore(inner, InjectedFault(path="_change_data", times=99))
    with pytest.raises(DeltaError):
        table.update({"x": "0"}, "id = 2")
    table.store = inner
    assert table.rows() == before
    assert set(inner.files) == files


def test_only_row_groups_with_such_rows_are_decoded() -> None:
    store = DictStore()
    properties = WriterProperties(max_row_group_size=100)
    table = StatedTable({"id": "long", "text": "string"}, properties=VECTORS, store=store)
    table.append([{"id": n, "text": f"{n}"} for n in range(1000)], writer_properties=properties)
    (path,) = (path for path in store.files if path.endswith(".parquet"))
    data = bytearray(store.files[path])
    footer = pq.ParquetFile(BytesIO(data)).metadata
    for group in {*range(footer.num_row_groups)} - {1}:
        for column in range(2):
            chunk = footer.row_group(group).column(column)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            data[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    store.files[path] = bytes(data)
    # Whoever decodes another row group than the second one finds rubbish.
    assert footer.num_row_groups == 10
    assert table.update({"id": "-1"}, "id = 150").rows.all_updated == 1
