"""A shared table is read by the rooms that read any other: plans, masks, names and types."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import pickle
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from deltalog import col
from deltalog.actions.codec import deletion_vector_to_json
from deltalog.deletion_vectors import DeletionBitmap, inline_descriptor
from deltalog.errors import (
    DataFileMissingError,
    InvalidInputError,
    SharingError,
    StorageError,
    UnsupportedTypeError,
)
from deltalog.scan.reader import read_task
from deltalog.sharing.client import HttpOptions, Retry, SharedTable
from deltalog.sharing.client.snapshots import is_read_whole
from deltalog.sharing.client.store import _RecentFiles
from tests.support.shared_files import (
    PROTOCOL,
    delta_file,
    delta_metadata,
    delta_protocol,
    file_line,
    metadata,
    parquet,
    stats,
)
from tests.support.sharing_server import Answer, Asked, ScriptedServer, fault, lines

QUICK = HttpOptions(retry=Retry(attempts=2, first_delay_ms=1))
COLUMNS = {"id": "long", "name": "string", "day": "date"}
METADATA = metadata(["day"], columns=COLUMNS)
MONDAY, TUESDAY = "2024-01-01", "2024-01-02"


@pytest.fixture
def shared(scripted: ScriptedServer) -> SharedTable:
    """Two files of two days, of which the server leaves out none, whatever it is told."""
    monday = parquet(id=pa.array([1, 2, 3], pa.int64()), name=["a", None, "c"])
    tuesday = parquet(id=pa.array([11, 12], pa.int64()), name=["x", "y"])
    files = [
        file_line(
            scripted, "f1", monday, partition_values={"day": MONDAY}, stats=stats(3, id=(1, 3))
        ),
        file_line(
            scripted, "f2", tuesday, partition_values={"day": TUESDAY}, stats=stats(2, id=(11, 12))
        ),
    ]
    scripted.on_table("GET metadata", lines(PROTOCOL, METADATA, version=7))
    scripted.on_table("POST query", lines(PROTOCOL, METADATA, *files, version=7))
    return SharedTable("s.d.t", profile=scripted.profile(), options=QUICK)


def _opened(scripted: ScriptedServer, *answer: Any, version: int = 0) -> SharedTable:
    scripted.on_table("GET metadata", lines(*answer[:2], version=version))
    scripted.on_table("POST query", lines(*answer, version=version))
    return SharedTable("s.d.t", profile=scripted.profile(), options=QUICK)


def _files_asked(server: ScriptedServer) -> set[str]:
    return {asked.path for asked in server.asked if asked.path.startswith("/data/")}


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
    assert _files_asked(scripted) == set()


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
    assert _files_asked(scripted) == {"/data/f1"}  # the server pruned nothing, we did


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


def test_only_the_bytes_of_the_columns_are_fetched(scripted: ScriptedServer) -> None:
    wide = {f"c{n}": pa.array(range(n, n + 20_000), pa.int64()) for n in range(10)}
    line = file_line(scripted, "wide", parquet(**wide))
    table = _opened(scripted, PROTOCOL, metadata(columns=dict.fromkeys(wide, "long")), line)
    assert table.scan(["c3"]).to_table()["c3"].to_pylist()[:2] == [3, 4]
    spans = [asked.headers["range"] for asked in scripted.find("/data/wide")]
    sizes = [int(end) - int(start) for start, end in (s[6:].split("-") for s in spans)]
    assert sum(sizes) < len(scripted.files["/data/wide"]) / 4
    assert all("authorization" not in asked.headers for asked in scripted.find("/data/wide"))


def test_a_small_file_is_fetched_with_one_request(
    shared: SharedTable, scripted: ScriptedServer
) -> None:
    shared.scan(predicate="id = 12").to_table()
    assert [asked.headers.get("range") for asked in scripted.find("/data/f2")] == [None]


def test_small_files_are_fetched_side_by_side(scripted: ScriptedServer) -> None:
    """The server gives none of ten files before all ten were asked for."""
    together = threading.Barrier(10)
    found = [file_line(scripted, f"f{n}", parquet(id=[n])) for n in range(10)]

    def give(asked: Asked) -> Answer:
        together.wait(20)
        return Answer(200, scripted.files[asked.path])

    for n in range(10):
        scripted.at(f"/data/f{n}", give)
    table = _opened(scripted, PROTOCOL, metadata(columns={"id": "long"}), *found)
    assert table.to_pyarrow_table()["id"].to_pylist() == list(range(10))


def test_a_scan_that_ends_early_forgets_what_comes(scripted: ScriptedServer) -> None:
    found = [file_line(scripted, f"f{n}", parquet(id=[n])) for n in range(40)]
    table = _opened(scripted, PROTOCOL, metadata(columns={"id": "long"}), *found)
    batches = table.scan().to_batches()
    assert next(batches)["id"].to_pylist() == [0]
    del batches
    assert len(_files_asked(scripted)) < 40
    assert table.count() == 40


def test_small_files_are_held_for_a_while_only() -> None:
    held = _RecentFiles(most_bytes=10)
    assert held.get((1, "a")) is None
    assert held.put((1, "a"), b"12345") == b"12345"
    held.put((2, "a"), b"12345")
    assert (held.get((1, "a")), held.get((2, "a"))) == (b"12345", b"12345")
    held.put((2, "a"), b"123456")
    assert (held.get((1, "a")), held.get((2, "a"))) == (None, b"123456")


@pytest.mark.parametrize(
    ("size", "columns", "whole"),
    [(1 << 22, 5, True), (1 << 22, 4, False), (1 << 18, 1, True), ((1 << 22) + 1, 5, False)],
)
def test_which_files_are_fetched_whole(size: int, columns: int, *, whole: bool) -> None:
    assert is_read_whole(size, columns, 5) is whole
    assert not is_read_whole(None, columns, 5)


@pytest.mark.protocol("SHARE-SEC-09")
def test_the_token_stays_with_the_sharing_server(
    shared: SharedTable, scripted: ScriptedServer
) -> None:
    shared.to_pyarrow_table()
    seen = {
        asked.path.startswith("/data/"): "authorization" in asked.headers
        for asked in scripted.asked
    }
    assert seen == {True: False, False: True}


@pytest.mark.protocol("D-76")
def test_signed_urls_are_sent_as_they_stand(scripted: ScriptedServer) -> None:
    name, query = "p=a%253Ab%20c%7E", "?sig=a%2Fb%2B+%3D&x=%7E~&y"
    line = file_line(scripted, name, parquet(id=[1]), query=query)
    table = _opened(scripted, PROTOCOL, metadata(columns={"id": "long"}), line)
    assert table.to_pyarrow_table().num_rows == 1
    (asked,) = scripted.find(f"/data/{name}")
    assert asked.target == f"/data/{name}{query}"


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
    found = _opened(scripted, PROTOCOL, meta, *files).to_pyarrow_table()["p"].to_pylist()
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
    table = _opened(scripted, PROTOCOL, meta)
    assert table.metadata().schema_string == text
    schema = table.scan().schema
    assert schema.names == ["a", "b", "c", "e", "f", "g"]
    assert schema.field("g").type == pa.decimal128(10, 0)
    assert table.to_pyarrow_table().num_rows == 0


@pytest.mark.protocol("SHARE-SCH-03")
def test_an_unknown_type_is_named(scripted: ScriptedServer) -> None:
    table = _opened(scripted, PROTOCOL, metadata(columns={"id": "foo"}))
    with pytest.raises(UnsupportedTypeError, match="foo"):
        table.scan()


@pytest.mark.protocol("SHARE-ST-01")
@pytest.mark.parametrize("text", [None, "", "no json", "[]", '{"numRecords": "x"}'])
def test_statistics_may_be_dropped(scripted: ScriptedServer, text: str | None) -> None:
    line = file_line(scripted, "f", parquet(id=[1, 2]), stats=text)
    table = _opened(scripted, PROTOCOL, metadata(columns={"id": "long"}), line)
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
    table = _opened(scripted, PROTOCOL, meta, line)
    assert table.scan(predicate="a.b.c > 200").to_table().num_rows == 0
    assert _files_asked(scripted) == set()
    assert table.scan(predicate="a.b.c > 100").to_table().num_rows == 1


@pytest.mark.protocol("SHARE-QT-20", "D-74")
def test_numbers_may_be_texts(scripted: ScriptedServer) -> None:
    line = file_line(scripted, "f", parquet(id=[1]))
    line["file"] |= {"size": str(line["file"]["size"]), "version": "3", "timestamp": "1000"}
    table = _opened(scripted, PROTOCOL, metadata(columns={"id": "long"}), line)
    assert table.count() == 1
    line["file"]["size"] = "x3"
    with pytest.raises(SharingError.__bases__[0], match="size"):
        _opened(scripted, PROTOCOL, metadata(columns={"id": "long"}), line).scan()


@pytest.mark.protocol("SHARE-DLT-01", "SHARE-DLT-02", "SHARE-DLT-03")
def test_the_specifications_delta_format_is_read(scripted: ScriptedServer) -> None:
    """Its example names no feature lists, and its file has nothing but what is needed."""
    protocol = {"protocol": {"deltaProtocol": {"minReaderVersion": 3, "minWriterVersion": 7}}}
    meta = delta_metadata(columns={"id": "long", "date": "date"}, enableChangeDataFeed="true")
    meta["metaData"] |= {"version": 20, "size": 123456, "numFiles": 5}
    meta["metaData"]["deltaMetadata"]["partitionColumns"] = ["date"]
    line = delta_file(scripted, "591723a8-6a27-4240-a90e-57426f4736d2", parquet(id=[5]))
    line["file"] |= {"size": 573, "expirationTimestamp": 32503680000000}
    add = line["file"]["deltaSingleAction"]["add"]
    for name in ("size", "modificationTime", "dataChange"):
        del add[name]
    add |= {"partitionValues": {"date": "2021-04-28"}, "stats": stats(1, id=(5, 5))}
    table = _opened(scripted, protocol, meta, line, version=20)
    assert table.to_pyarrow_table().to_pylist() == [{"id": 5, "date": dt.date(2021, 4, 28)}]
    assert table.version() == 20


@pytest.mark.protocol("SHARE-DLT-04", "SHARE-DLT-05", "SHARE-QT-08")
def test_inline_deletion_vectors_are_applied(scripted: ScriptedServer) -> None:
    vector = deletion_vector_to_json(inline_descriptor(DeletionBitmap([0, 2])))
    line = delta_file(
        scripted, "f", parquet(id=[1, 2, 3]), deletionVector=vector, stats=stats(3, id=(1, 3))
    )
    table = _opened(
        scripted, delta_protocol("deletionVectors"), delta_metadata(columns={"id": "long"}), line
    )
    assert table.count() == 1
    assert table.to_pyarrow_table()["id"].to_pylist() == [2]


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
    table = _opened(scripted, delta_protocol("columnMapping"), meta, line)
    rows = table.scan(["my value"], "id = 2").to_table()
    assert rows.to_pylist() == [{"my value": 20}]
    (asked,) = scripted.find("/query")
    assert json.loads(asked.json["jsonPredicateHints"])["children"][0]["name"] == "id"


def test_a_catalogs_table_is_read_as_the_server_tells_it(scripted: ScriptedServer) -> None:
    line = delta_file(scripted, "f", parquet(id=[1]))
    protocol = delta_protocol("catalogManaged", "deletionVectors")
    table = _opened(scripted, protocol, delta_metadata(columns={"id": "long"}), line)
    assert table.to_pyarrow_table().num_rows == 1


@pytest.mark.protocol("SHARE-QT-10", "SHARE-QT-11", "SHARE-QT-12")
def test_other_versions_are_asked_for(shared: SharedTable, scripted: ScriptedServer) -> None:
    shared.scan(version=3)
    shared.scan(timestamp="2022-01-01T01:00:00+01:00")
    shared.scan(predicate="id > 1", timestamp=dt.datetime(2022, 1, 1, tzinfo=dt.UTC))
    bodies = [asked.json for asked in scripted.find("/query")]
    assert bodies[:2] == [{"version": 3}, {"timestamp": "2022-01-01T00:00:00Z"}]
    assert bodies[2]["timestamp"] == "2022-01-01T00:00:00Z"
    assert scripted.find("/metadata")[0].query == {"timestamp": "2022-01-01T00:00:00Z"}
    with pytest.raises(InvalidInputError, match="both"):
        shared.scan(version=3, timestamp="2022-01-01T00:00:00Z")
    with pytest.raises(InvalidInputError, match="-1"):
        shared.scan(version=-1)


def test_a_table_can_show_another_version(shared: SharedTable, scripted: ScriptedServer) -> None:
    shared.load_as_version(3)
    shared.to_pyarrow_table()
    assert scripted.find("/query")[0].json == {"version": 3}
    shared.update_incremental()
    shared.to_pyarrow_table()
    assert scripted.find("/query")[1].json == {"includeRefreshToken": True}
    profile = scripted.profile()
    older = SharedTable("s.d.t", "2022-01-01T00:00:00Z", profile=profile, options=QUICK)
    older.to_pyarrow_table()
    assert scripted.find("/query")[2].json == {"timestamp": "2022-01-01T00:00:00Z"}


def _by_version(answers: dict[int | None, Any]) -> Callable[[Asked], Any]:
    return lambda asked: answers[asked.json.get("version")]


def test_one_version_is_shown_as_long_as_the_server_lets_it(scripted: ScriptedServer) -> None:
    columns = metadata(columns={"id": "long"})
    old = file_line(scripted, "old", parquet(id=[1]))
    new = file_line(scripted, "new", parquet(id=[2]))
    latest = {
        3: lines(PROTOCOL, columns, old, version=3),
        4: lines(PROTOCOL, columns, new, version=4),
    }
    scripted.on_table("GET metadata", lines(PROTOCOL, columns, version=3))
    scripted.on_table("POST query", _by_version({None: latest[4], 3: latest[3]}))
    table = SharedTable("s.d.t", profile=scripted.profile(), options=QUICK)
    assert table.version() == 3
    assert table.scan(predicate="id > 0").to_table()["id"].to_pylist() == [1]
    # Without a shared history only the latest version can be had: the table moves on.
    scripted.on_table("POST query", _by_version({None: latest[4], 3: fault(400)}))
    assert table.scan(predicate="id > 0").to_table()["id"].to_pylist() == [2]
    assert table.version() == 4


def test_a_hint_is_made_for_the_schema_that_answers(scripted: ScriptedServer) -> None:
    before, after = metadata(columns={"id": "long"}), metadata(columns={"id": "string"})
    line = file_line(scripted, "f", parquet(id=["5", "x"]))
    scripted.on_table("GET metadata", lines(PROTOCOL, before, version=3))
    scripted.on_table(
        "POST query",
        lambda asked: (
            fault(400) if "version" in asked.json else lines(PROTOCOL, after, line, version=4)
        ),
    )
    table = SharedTable("s.d.t", profile=scripted.profile(), options=QUICK)
    rows = table.scan(predicate=col("id") == "5").to_table()
    assert rows["id"].to_pylist() == ["5"]
    hints = [asked.json.get("jsonPredicateHints") for asked in scripted.find("/query")]
    assert '"valueType":"string"' in hints[-1]


def test_tasks_go_to_other_processes_with_their_own_urls_alone(
    shared: SharedTable, scripted: ScriptedServer
) -> None:
    tasks = list(shared.scan(["id"]).tasks())
    sent = [pickle.dumps(task) for task in tasks]
    assert [b"/data/f1" in data for data in sent] == [True, False]
    assert [b"/data/f2" in data for data in sent] == [False, True]
    rows = [batch for data in sent for batch in read_task(pickle.loads(data))]
    assert pa.Table.from_batches(rows)["id"].to_pylist() == [1, 2, 3, 11, 12]
    again = pickle.loads(pickle.dumps(shared.scan(predicate="id > 2")))
    assert again.to_table()["id"].to_pylist() == [3, 11, 12]
    assert scripted.find("/query")[1:] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # that is what is tested
def test_a_forked_child_reads_too(shared: SharedTable, tmp_path: Path) -> None:
    assert shared.to_pyarrow_table().num_rows == 5  # connections and threads are there
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs ends, and the test fails
        with contextlib.suppress(BaseException):
            (tmp_path / "rows").write_text(str(shared.scan(["id"]).to_table().num_rows), "utf-8")
        os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / "rows").read_text("utf-8") == "5"
    assert shared.to_pyarrow_table().num_rows == 5


def test_a_missing_file_is_named_by_its_id(shared: SharedTable, scripted: ScriptedServer) -> None:
    del scripted.files["/data/f2"]
    with pytest.raises(DataFileMissingError, match="files/f2") as caught:
        shared.to_pyarrow_table()
    assert "/data/" not in str(caught.value)


def test_ids_may_be_anything(scripted: ScriptedServer) -> None:
    line = file_line(scripted, "f", parquet(id=[1]))
    for odd in ("a/b", "a b%20c", "é#?", "x=1&y", "C:\\x"):
        line["file"]["id"] = odd
        table = _opened(scripted, PROTOCOL, metadata(columns={"id": "long"}), line)
        assert table.to_pyarrow_table().num_rows == 1


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "/etc/passwd", "ftp://x/y", "http://example.com/x", ""]
)
def test_urls_of_other_kinds_are_refused(scripted: ScriptedServer, url: str) -> None:
    line = file_line(scripted, "f", parquet(id=[1]))
    line["file"]["url"] = url
    table = _opened(scripted, PROTOCOL, metadata(columns={"id": "long"}), line)
    with pytest.raises(SharingError, match=r"refused|names no host"):
        table.to_pyarrow_table()


WIDE = metadata(columns={"id": "long", "more": "double"})


def _wide(server: ScriptedServer) -> dict[str, Any]:
    """A file that is too large to be fetched whole for one of its columns."""
    numbers = range(50_000)
    data = parquet(
        id=pa.array(numbers, pa.int64()), more=pa.array([n / 7 for n in numbers], pa.float64())
    )
    assert len(data) > 1 << 18
    return file_line(server, "f", data)


def test_a_server_that_knows_no_ranges_is_read_too(scripted: ScriptedServer) -> None:
    line = _wide(scripted)
    scripted.at("/data/f", Answer(200, scripted.files["/data/f"]))
    table = _opened(scripted, PROTOCOL, WIDE, line)
    assert table.scan(["id"]).to_table()["id"].to_pylist() == list(range(50_000))


@pytest.mark.parametrize("wrong", [-7, 7, 100_000])
@pytest.mark.parametrize("columns", [["id"], ["id", "more"]])
def test_a_size_that_is_wrong_is_found_out(
    scripted: ScriptedServer, wrong: int, columns: list[str]
) -> None:
    line = _wide(scripted)
    line["file"]["size"] += wrong
    table = _opened(scripted, PROTOCOL, WIDE, line)
    assert table.scan(columns).to_table().num_rows == 50_000


def test_nothing_can_be_written(shared: SharedTable) -> None:
    store = shared.snapshot.store
    with pytest.raises(StorageError, match="read-only"):
        store.put("x", b"")
    with pytest.raises(StorageError, match="read-only"):
        store.put_if_absent("x", b"")
    with pytest.raises(StorageError, match="read-only"):
        store.delete_many(["x"])


def test_a_store_reads_files_in_every_way(shared: SharedTable, scripted: ScriptedServer) -> None:
    store = shared.snapshot.store
    data = scripted.files["/data/f1"]
    assert store.read("files/f1") == data
    assert store.read_many(["files/f1"]) == [data]
    assert store.read_ranges("files/f1", [(4, 9), (0, 2)]) == [data[4:9], data[:2]]
    assert store.stat("files/f1").size_bytes == len(data)
    with store.open("files/f1") as file:
        file.seek(-4, 2)
        assert file.read() == b"PAR1"
    assert list(store.list_all("")) == []
    (log,) = store.list_from("_delta_log", "")
    assert store.stat(log.path) == log
    with store.open(log.path) as file:
        assert file.read() == store.read(log.path)
