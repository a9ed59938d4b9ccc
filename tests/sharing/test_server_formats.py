"""Which format answers whom, and what the format delta tells."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.protocol.actions import Protocol
from deltalog.sharing.server.formats import _without_unused
from tests.support.asgi import Json
from tests.support.sharing import Caller, actions, capabilities, path_of, sharing

PLAIN, VECTORS, MAPPED, NTZ, ICT = "s.d.plain", "s.d.vectors", "s.d.mapped", "s.d.ntz", "s.d.ict"


EVERYTHING = "deletionvectors,columnmapping,timestampntz"


def _form(caller: Caller, table: str, header: str | None) -> str | int:
    """The format of the answer, or the status of a refusal; the same at every endpoint."""
    headers = {} if header is None else {"delta_sharing_capabilities": header}
    replies = [caller.get(f"{path_of(table)}/metadata", **headers), caller.query(table, **headers)]
    found = {
        reply.headers["delta-sharing-capabilities"].partition("=")[2]
        if reply.status == 200
        else reply.status
        for reply in replies
    }
    for reply in replies:
        if reply.status != 200:
            assert reply.json()["errorCode"] == "UNSUPPORTED_OPERATION"
    (only,) = found
    return only


@pytest.mark.parametrize(
    ("reader", "needed", "expected"),
    [(1, {}, 1), (2, {"columnMapping": "columnMapping"}, 2), (2, {}, 1), (1, {"x": "x"}, 1)],
)
def test_reader_version_2_is_told_to_whom_column_mapping_concerns(
    reader: int, needed: dict[str, str], expected: int
) -> None:
    protocol = Protocol(min_reader_version=reader, min_writer_version=5)
    told = _without_unused(protocol, needed)
    assert told == Protocol(min_reader_version=expected, min_writer_version=5)
    listed = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("appendOnly",))
    assert _without_unused(listed, {}) == listed


@pytest.mark.parametrize("header", [None, capabilities("delta", EVERYTHING)])
def test_the_metadata_of_a_query_counts_the_table_s_files(
    tmp_path: Path, header: str | None
) -> None:
    for values in ([1], [2, 3]):
        write_deltalake(tmp_path / "t", pa.table({"a": values}), mode="append")
    sizes = [path.stat().st_size for path in (tmp_path / "t").glob("*.parquet")]
    headers = {} if header is None else {"delta_sharing_capabilities": header}
    reply = sharing({"s.d.t": tmp_path / "t"}).query("s.d.t", {"limitHint": 1}, **headers)
    (told,) = actions(reply, "metaData")
    assert (told["size"], told["numFiles"]) == (sum(sizes), 2)


@pytest.mark.protocol(
    "SHARE-CAP-01",
    "SHARE-CAP-02",
    "SHARE-CAP-03",
    "SHARE-CAP-04",
    "SHARE-CAP-05",
    "SHARE-CAP-07",
    "SHARE-CAP-08",
    "SHARE-CAP-09",
    "B-95",
)
@pytest.mark.parametrize(
    ("table", "header", "expected"),
    [
        (PLAIN, None, "parquet"),
        (PLAIN, "", "parquet"),
        (PLAIN, "later=1", "parquet"),
        (PLAIN, capabilities("parquet"), "parquet"),
        (PLAIN, capabilities("delta"), "delta"),
        (PLAIN, capabilities("DELTA"), "delta"),
        (PLAIN, capabilities("delta,parquet"), "parquet"),
        (PLAIN, capabilities("parquet,delta"), "parquet"),
        (PLAIN, capabilities("later"), 400),
        (PLAIN, capabilities("later,delta"), "delta"),
        (VECTORS, None, 400),
        (VECTORS, capabilities("parquet", EVERYTHING), 400),
        (VECTORS, capabilities("delta"), 400),
        (VECTORS, capabilities("delta", "columnmapping"), 400),
        (VECTORS, capabilities("delta", "DeletionVectors"), "delta"),
        (VECTORS, capabilities("delta,parquet", EVERYTHING), "delta"),
        (VECTORS, capabilities("delta,parquet"), 400),
        (MAPPED, None, 400),
        (MAPPED, capabilities("delta,parquet", EVERYTHING), "delta"),
        (MAPPED, capabilities("delta", "deletionvectors"), 400),
        (NTZ, None, 400),
        (NTZ, capabilities("delta", "timestampntz"), "delta"),
        (ICT, None, "parquet"),
        (ICT, capabilities("delta"), "delta"),
    ],
)
def test_who_gets_which_format(
    formats_caller: Caller, table: str, header: str | None, expected: str | int
) -> None:
    assert _form(formats_caller, table, header) == expected


@pytest.mark.protocol("SHARE-CAP-09", "SHARE-DLT-01", "B-95")
def test_the_protocol_tells_what_is_needed_to_read(formats_caller: Caller) -> None:
    def protocol(table: str) -> Json:
        header = capabilities("delta", EVERYTHING)
        reply = formats_caller.get(f"{path_of(table)}/metadata", delta_sharing_capabilities=header)
        found: Json = actions(reply, "protocol")[0]["deltaProtocol"]
        return found

    assert protocol(PLAIN)["minReaderVersion"] == 1
    assert "readerFeatures" not in protocol(PLAIN)
    assert protocol(VECTORS)["readerFeatures"] == ["deletionVectors"]
    # v2Checkpoint concerns checkpoints, of which a recipient sees none.
    assert protocol(ICT)["minReaderVersion"] == 1
    assert "v2Checkpoint" not in protocol(ICT)["writerFeatures"]
    assert "inCommitTimestamp" in protocol(ICT)["writerFeatures"]


@pytest.mark.protocol("SHARE-DLT-02", "SHARE-DLT-07")
def test_the_metadata_is_the_tables_own(formats_caller: Caller, formats_root: Path) -> None:
    header = capabilities("delta", EVERYTHING)
    reply = formats_caller.get(f"{path_of(MAPPED)}/metadata", delta_sharing_capabilities=header)
    found = actions(reply, "metaData")[0]["deltaMetadata"]
    log = (formats_root / "mapped" / "_delta_log" / f"{0:020d}.json").read_bytes().splitlines()
    (own,) = (line["metaData"] for line in map(orjson.loads, log) if "metaData" in line)
    assert found["schemaString"] == own["schemaString"]
    assert found["configuration"] == own["configuration"]
    (file,) = actions(formats_caller.query(MAPPED, delta_sharing_capabilities=header), "file")
    physical = {
        field["metadata"]["delta.columnMapping.physicalName"]
        for field in orjson.loads(own["schemaString"])["fields"]
    }
    stats = orjson.loads(file["deltaSingleAction"]["add"]["stats"])
    assert set(stats["minValues"]) == physical


@pytest.mark.protocol("D-77", "SHARE-SEC-08")
def test_places_are_not_told(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(table, pa.table({"a": [1]}))
    log = table / "_delta_log" / f"{0:020d}.json"
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["tags"] = {"from": f"file://{table}", "path": str(table), "kept": "1"}
        if "metaData" in line:
            line["metaData"]["configuration"] = {"location": str(table), "x": "s3://b/c", "y": "1"}
    log.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    caller = sharing({PLAIN: table})
    reply = caller.query(PLAIN, delta_sharing_capabilities=capabilities("delta"))
    assert str(table).encode() not in reply.body
    assert b"s3://" not in reply.body
    (file,) = actions(reply, "file")
    assert file["deltaSingleAction"]["add"]["tags"] == {"kept": "1"}
    assert actions(reply, "metaData")[0]["deltaMetadata"]["configuration"] == {"y": "1"}


def test_a_feature_that_is_listed_and_not_used_keeps_nobody_out(tmp_path: Path) -> None:
    table = tmp_path / "t"
    vectors = {"delta.enableDeletionVectors": "true"}
    write_deltalake(table, pa.table({"id": range(10)}), configuration=vectors)
    caller = sharing({PLAIN: table})
    assert _form(caller, PLAIN, None) == 400
    DeltaTable(table).alter.set_table_properties({"delta.enableDeletionVectors": "false"})
    assert _form(caller, PLAIN, None) == "parquet"
    DeltaTable(table).alter.set_table_properties(vectors)
    DeltaTable(table).delete("id = 1")
    DeltaTable(table).alter.set_table_properties({"delta.enableDeletionVectors": "false"})
    assert _form(caller, PLAIN, None) == 400


@pytest.mark.protocol("SHARE-CAP-09")
def test_a_table_that_deltalog_cannot_read_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(table, pa.table({"a": [1]}))
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["laterFeature"],
        "writerFeatures": ["laterFeature"],
    }
    log = table / "_delta_log" / f"{1:020d}.json"
    log.write_bytes(orjson.dumps({"protocol": protocol}))
    caller = sharing({PLAIN: table})
    assert _form(caller, PLAIN, capabilities("delta,parquet", "laterfeature")) == 400
