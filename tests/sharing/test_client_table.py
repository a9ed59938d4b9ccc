"""A shared table is read by the rooms that read any other: plans, masks, names and types."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from deltalog import col
from deltalog.errors import InvalidInputError, SharingError, UnsupportedTypeError
from deltalog.sharing.client import SharedTable, SharingClient
from tests.support.shared_files import (
    PROTOCOL,
    delta_file,
    delta_metadata,
    delta_protocol,
    file_line,
    files_asked,
    metadata,
    open_shared,
    parquet,
)
from tests.support.sharing_server import ScriptedServer

MONDAY, TUESDAY = "2024-01-01", "2024-01-02"


def test_rows_come_in_every_form(shared: SharedTable) -> None:
    rows = shared.to_pyarrow_table()
    assert rows.column_names == ["id", "name", "day"]
    assert rows["day"].to_pylist() == [dt.date(2024, 1, 1)] * 3 + [dt.date(2024, 1, 2)] * 2
    assert pa.table(shared) == rows
    assert shared.scan().to_table() == rows
    assert shared.to_pandas()["id"].tolist() == [1, 2, 3, 11, 12]
    assert shared.to_polars()["id"].to_list() == [1, 2, 3, 11, 12]
    relation = shared.to_duckdb(duckdb.connect())
    assert relation.filter("day = DATE '2024-01-02'").project("id").fetchall() == [(11,), (12,)]
    dataset = shared.to_pyarrow_dataset()
    assert dataset.count_rows() == 5
    assert dataset.to_table(columns=["name"])["name"].to_pylist() == ["a", None, "c", "x", "y"]


def test_names_of_other_libraries_are_answered(shared: SharedTable) -> None:
    table: Any = shared
    for name, hint in {
        "filter": "use scan(predicate=…, limit=…)",
        "toPandas": "use to_pandas()",
        "to_panda": "did you mean 'to_pandas'?",
        "zzz": "SharedTable has no attribute 'zzz'",
    }.items():
        with pytest.raises(AttributeError) as caught:
            getattr(table, name)
        assert str(caught.value).endswith(hint)
    with pytest.raises(TypeError, match=r"scan.. got .* 'where': did you mean 'predicate'\?"):
        table.scan(where="id = 1")
    with pytest.raises(TypeError, match="a SharedTable has no length: use count"):
        len(table)
    with pytest.raises(TypeError, match=r"use to_pandas\(\) for a dataframe, to_pyarrow_table"):
        table["id"]
    client: Any = SharingClient(table.client.profile)
    with pytest.raises(AttributeError, match=r"did you mean 'list_shares'\?"):
        client.list_share  # noqa: B018


def test_unknown_columns_are_named_with_what_was_attempted(shared: SharedTable) -> None:
    table: Any = shared
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: table.scan(["nme"]), "read"),
        (lambda: table.scan(predicate="nme = 'a'"), "read"),
        (lambda: table.to_pandas(columns=["nme"]), "read"),
        (lambda: table.to_polars(["nme"], lazy=True), "read"),
        (
            lambda: table.to_pyarrow_dataset(file_pruning_predicate=col.nme == "a"),
            "make a dataset of",
        ),
        (lambda: table.file_uris([("nme", "=", "a")]), "list the files of"),
        (lambda: table.partitions([("nme", "=", "a")]), "list the partitions of"),
    ]
    for call, attempt in calls:
        with pytest.raises(InvalidInputError) as caught:
            call()
        found = str(caught.value)
        assert found.startswith(f"cannot {attempt} {shared.table_uri}: there is no column 'nme'")
        assert "did you mean 'name'" in found


def test_a_table_tells_of_itself(shared: SharedTable) -> None:
    assert shared.version() == 7
    assert shared.schema().names == ("id", "name", "day")
    assert shared.metadata().partition_columns == ("day",)
    assert shared.protocol().min_reader_version == 1
    assert shared.name == "s.d.t"
    assert shared.table_uri.endswith("/delta-sharing#s.d.t")
    assert "s.d.t" in repr(shared)
    assert shared.partitions() == [{"day": MONDAY}, {"day": TUESDAY}]
    assert shared.partitions([("day", "=", TUESDAY)]) == [{"day": TUESDAY}]
    (uri,) = shared.file_uris([("day", "=", TUESDAY)])
    assert uri == f"{shared.table_uri}/files/f2"
    files = shared.files().to_pylist()
    assert [(row["path"], row["num_records"]) for row in files] == [
        ("files/f1", 3),
        ("files/f2", 2),
    ]


def test_opening_asks_for_nothing(shared: SharedTable, scripted: ScriptedServer) -> None:
    assert scripted.asked == []
    shared.schema()
    shared.version()
    assert scripted.paths() == ["GET /delta-sharing/shares/s/schemas/d/tables/t/metadata"]


def test_a_count_reads_no_file(shared: SharedTable, scripted: ScriptedServer) -> None:
    assert shared.count() == 5
    assert shared.scan(predicate="day = DATE '2024-01-01'").count() == 3
    assert files_asked(scripted) == set()


@pytest.mark.protocol("SHARE-QT-19", "SHARE-QT-07")
def test_hints_are_sent_and_predicates_applied_again(
    shared: SharedTable, scripted: ScriptedServer
) -> None:
    rows = shared.scan(["name"], (col("id") > 1) & (col("day") == dt.date(2024, 1, 1))).to_table()
    assert rows.to_pylist() == [{"name": None}, {"name": "c"}]
    (asked,) = scripted.find("/query")
    hint = json.loads(asked.json["jsonPredicateHints"])
    assert hint["op"] == "and"
    assert [child["op"] for child in hint["children"]] == ["greaterThan", "equal"]
    assert asked.json["predicateHints"] == ["id > 1", "day = '2024-01-01'"]
    assert "limitHint" not in asked.json
    assert files_asked(scripted) == {"/data/f1"}  # the server pruned nothing, we did


@pytest.mark.protocol("SHARE-QT-19", "SHARE-QT-09")
def test_a_limit_is_a_hint_only_without_a_predicate(
    shared: SharedTable, scripted: ScriptedServer
) -> None:
    assert shared.scan(limit=2).to_table()["id"].to_pylist() == [1, 2]
    assert shared.scan(predicate="id > 2", limit=1).to_table()["id"].to_pylist() == [3]
    assert shared.scan(limit=2**40).to_table().num_rows == 5
    assert [asked.json.get("limitHint") for asked in scripted.find("/query")] == [
        2,
        None,
        2**31 - 1,
    ]


@pytest.mark.protocol("SHARE-PV-01", "SHARE-JP-08")
@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "x", "x"),
        ("byte", "-7", -7),
        ("short", "7", 7),
        ("integer", "7", 7),
        ("long", "-9223372036854775808", -(2**63)),
        ("float", "1.5", 1.5),
        ("double", "-0.25", -0.25),
        ("boolean", "true", True),
        ("date", "1970-01-01", dt.date(1970, 1, 1)),
        ("timestamp", "1970-01-01 00:00:00", dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        ("decimal(10,2)", "1.50", "1.50"),
        ("binary", "\u0001", b"\x01"),
    ],
)
def test_partition_values_are_typed(
    scripted: ScriptedServer, kind: str, text: str, value: Any
) -> None:
    data = parquet(id=[1])
    files = [
        file_line(scripted, "given", data, partition_values={"p": text}),
        file_line(scripted, "empty", data, partition_values={"p": ""}),
    ]
    meta = metadata(["p"], columns={"id": "long", "p": kind})
    found = open_shared(scripted, PROTOCOL, meta, *files).to_pyarrow_table()["p"].to_pylist()
    found = [str(one) if kind.startswith("decimal") and one is not None else one for one in found]
    assert found == [value, None]


@pytest.mark.protocol("SHARE-SCH-01", "SHARE-SCH-02")
def test_the_specifications_schema_is_read(scripted: ScriptedServer) -> None:
    struct = {
        "type": "struct",
        "fields": [{"name": "d", "type": "integer", "nullable": False, "metadata": {}}],
    }

    def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
        return {"name": name, "type": kind, "nullable": True, "metadata": {}, **more}

    fields = [
        field("a", "integer", nullable=False, metadata={"comment": "this is a comment"}),
        field("b", struct),
        field("c", {"type": "array", "elementType": "integer", "containsNull": False}),
        field("e", {"type": "array", "elementType": struct, "containsNull": True}),
        field(
            "f",
            {
                "type": "map",
                "keyType": "string",
                "valueType": "string",
                "valueContainsNull": True,
            },
        ),
        field("g", "decimal"),
    ]
    text = json.dumps({"type": "struct", "fields": fields})
    meta = metadata(columns={})
    meta["metaData"]["schemaString"] = text
    table = open_shared(scripted, PROTOCOL, meta)
    assert table.metadata().schema_string == text
    schema = table.scan().schema
    assert schema.names == ["a", "b", "c", "e", "f", "g"]
    assert schema.field("g").type == pa.decimal128(10, 0)
    assert table.to_pyarrow_table().num_rows == 0


@pytest.mark.protocol("SHARE-SCH-03")
def test_an_unknown_type_is_named(scripted: ScriptedServer) -> None:
    table = open_shared(scripted, PROTOCOL, metadata(columns={"id": "foo"}))
    with pytest.raises(UnsupportedTypeError, match="foo"):
        table.scan()


@pytest.mark.protocol("SHARE-ST-01")
@pytest.mark.parametrize("text", [None, "", "no json", "[]", '{"numRecords": "x"}'])
def test_statistics_may_be_dropped(scripted: ScriptedServer, text: str | None) -> None:
    line = file_line(scripted, "f", parquet(id=[1, 2]), stats=text)
    table = open_shared(scripted, PROTOCOL, metadata(columns={"id": "long"}), line)
    assert table.scan(predicate="id = 2").to_table()["id"].to_pylist() == [2]
    assert table.count() == 2


@pytest.mark.protocol("SHARE-ST-01")
def test_statistics_prune(scripted: ScriptedServer) -> None:
    nested = '{"numRecords":1,"minValues":{"a":{"b":{"c":123}}},"maxValues":{"a":{"b":{"c":123}}}}'
    meta = metadata(columns={"id": "long"})
    inner = {
        "type": "struct",
        "fields": [{"name": "c", "type": "long", "nullable": True, "metadata": {}}],
    }
    outer = {
        "type": "struct",
        "fields": [{"name": "b", "type": inner, "nullable": True, "metadata": {}}],
    }
    fields = [{"name": "a", "type": outer, "nullable": True, "metadata": {}}]
    meta["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": fields})
    line = file_line(scripted, "f", parquet(a=[{"b": {"c": 123}}]), stats=nested)
    table = open_shared(scripted, PROTOCOL, meta, line)
    assert table.scan(predicate="a.b.c > 200").to_table().num_rows == 0
    assert files_asked(scripted) == set()
    assert table.scan(predicate="a.b.c > 100").to_table().num_rows == 1


@pytest.mark.protocol("SHARE-QT-20", "D-74")
def test_numbers_may_be_texts(scripted: ScriptedServer) -> None:
    line = file_line(scripted, "f", parquet(id=[1]))
    line["file"] |= {"size": str(line["file"]["size"]), "version": "3", "timestamp": "1000"}
    table = open_shared(scripted, PROTOCOL, metadata(columns={"id": "long"}), line)
    assert table.count() == 1
    line["file"]["size"] = "x3"
    with pytest.raises(SharingError.__bases__[0], match="size"):
        open_shared(scripted, PROTOCOL, metadata(columns={"id": "long"}), line).scan()


@pytest.mark.protocol("SHARE-DLT-07")
def test_mapped_columns_have_their_logical_names(scripted: ScriptedServer) -> None:
    fields = [
        {
            "name": name,
            "type": "long",
            "nullable": True,
            "metadata": {
                "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": f"col-{number}",
            },
        }
        for number, name in enumerate(["id", "my value"], 1)
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    meta = delta_metadata(columns={}, schema=schema, **configuration)
    line = delta_file(scripted, "f", parquet(**{"col-1": [1, 2], "col-2": [10, 20]}))
    table = open_shared(scripted, delta_protocol("columnMapping"), meta, line)
    rows = table.scan(["my value"], "id = 2").to_table()
    assert rows.to_pylist() == [{"my value": 20}]
    (asked,) = scripted.find("/query")
    assert json.loads(asked.json["jsonPredicateHints"])["children"][0]["name"] == "id"


def test_polars_reads_lazily(shared: SharedTable) -> None:
    lazy = shared.to_polars(["name", "id"], filters="id < 12", lazy=True)
    assert lazy.collect_schema().names() == ["name", "id"]
    assert lazy.filter(pl.col("id") > 2).collect().rows() == [("c", 3), ("x", 11)]
    assert lazy.select("id").head(2).collect().height == 2
