"""Which format answers whom, and what the format delta tells."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.support.asgi import Json
from tests.support.sharing import Caller, actions, path_of, sharing

PLAIN, VECTORS, MAPPED, NTZ, ICT = "s.d.plain", "s.d.vectors", "s.d.mapped", "s.d.ntz", "s.d.ict"
EVERYTHING = "deletionvectors,columnmapping,timestampntz"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("formats")
    rows = pa.table({"id": range(10), "name": [f"n{number}" for number in range(10)]})
    write_deltalake(root / "plain", rows)
    vectors = {"delta.enableDeletionVectors": "true"}
    write_deltalake(root / "vectors", rows, configuration=vectors)
    DeltaTable(root / "vectors").delete("id = 3")
    write_deltalake(root / "mapped", rows, configuration={"delta.columnMapping.mode": "name"})
    times = pa.table({"t": pa.array([1, 2], pa.timestamp("us"))})
    write_deltalake(root / "ntz", times)
    own_times = {"delta.enableInCommitTimestamps": "true", "delta.checkpointPolicy": "v2"}
    write_deltalake(root / "ict", rows, configuration=own_times)
    return root


@pytest.fixture
def caller(root: Path) -> Caller:
    names = ("plain", "vectors", "mapped", "ntz", "ict")
    shared = {"historyShared": True}
    return sharing({f"s.d.{name}": {"location": str(root / name), **shared} for name in names})


def _header(formats: str, features: str = "") -> str:
    return f"responseformat={formats}" + (f";readerfeatures={features}" if features else "")


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
        (PLAIN, _header("parquet"), "parquet"),
        (PLAIN, _header("delta"), "delta"),
        (PLAIN, _header("DELTA"), "delta"),
        (PLAIN, _header("delta,parquet"), "parquet"),
        (PLAIN, _header("parquet,delta"), "parquet"),
        (PLAIN, _header("later"), 400),
        (PLAIN, _header("later,delta"), "delta"),
        (VECTORS, None, 400),
        (VECTORS, _header("parquet", EVERYTHING), 400),
        (VECTORS, _header("delta"), 400),
        (VECTORS, _header("delta", "columnmapping"), 400),
        (VECTORS, _header("delta", "DeletionVectors"), "delta"),
        (VECTORS, _header("delta,parquet", EVERYTHING), "delta"),
        (VECTORS, _header("delta,parquet"), 400),
        (MAPPED, None, 400),
        (MAPPED, _header("delta,parquet", EVERYTHING), "delta"),
        (MAPPED, _header("delta", "deletionvectors"), 400),
        (NTZ, None, 400),
        (NTZ, _header("delta", "timestampntz"), "delta"),
        (ICT, None, "parquet"),
        (ICT, _header("delta"), "delta"),
    ],
)
def test_who_gets_which_format(
    caller: Caller, table: str, header: str | None, expected: str | int
) -> None:
    assert _form(caller, table, header) == expected


@pytest.mark.protocol("SHARE-CAP-09", "SHARE-DLT-01", "B-95")
def test_the_protocol_tells_what_is_needed_to_read(caller: Caller) -> None:
    def protocol(table: str) -> Json:
        header = _header("delta", EVERYTHING)
        reply = caller.get(f"{path_of(table)}/metadata", delta_sharing_capabilities=header)
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
def test_the_metadata_is_the_tables_own(caller: Caller, root: Path) -> None:
    header = _header("delta", EVERYTHING)
    reply = caller.get(f"{path_of(MAPPED)}/metadata", delta_sharing_capabilities=header)
    found = actions(reply, "metaData")[0]["deltaMetadata"]
    log = (root / "mapped" / "_delta_log" / f"{0:020d}.json").read_bytes().splitlines()
    (own,) = (line["metaData"] for line in map(orjson.loads, log) if "metaData" in line)
    assert found["schemaString"] == own["schemaString"]
    assert found["configuration"] == own["configuration"]
    (file,) = actions(caller.query(MAPPED, delta_sharing_capabilities=header), "file")
    physical = {
        field["metadata"]["delta.columnMapping.physicalName"]
        for field in orjson.loads(own["schemaString"])["fields"]
    }
    stats = orjson.loads(file["deltaSingleAction"]["add"]["stats"])
    assert set(stats["minValues"]) == physical


@pytest.mark.protocol("SHARE-DLT-03", "SHARE-DLT-04", "SHARE-QT-17")
def test_files_keep_their_actions(caller: Caller, root: Path) -> None:
    reply = caller.query(PLAIN, delta_sharing_capabilities=_header("delta"))
    (file,) = actions(reply, "file")
    log = (root / "plain" / "_delta_log" / f"{0:020d}.json").read_bytes().splitlines()
    (own,) = (line["add"] for line in map(orjson.loads, log) if "add" in line)
    told = file["deltaSingleAction"]["add"]
    assert caller.download(told.pop("path")).status == 200
    own.pop("path")
    assert told == own
    assert len(file["id"]) == 64
    assert reply.headers["fileidhash"] == "sha256"


@pytest.mark.protocol("SHARE-DLT-05", "D-74")
def test_deletion_vectors_are_signed(tmp_path: Path) -> None:
    vectors = {"delta.enableDeletionVectors": "true"}
    write_deltalake(tmp_path / "t", pa.table({"id": range(50_000)}), configuration=vectors)
    DeltaTable(tmp_path / "t").delete("id % 7 = 0")
    caller = sharing({PLAIN: tmp_path / "t"})
    header = _header("delta", "deletionvectors")
    files = actions(caller.query(PLAIN, delta_sharing_capabilities=header), "file")
    vector = files[0]["deltaSingleAction"]["add"]["deletionVector"]
    assert vector["storageType"] == "p"
    reply = caller.download(vector["pathOrInlineDv"])
    assert reply.status == 200
    assert len(reply.body) >= vector["sizeInBytes"]
    assert len(files[0]["deletionVectorFileId"]) == 64
    again = actions(caller.query(PLAIN, delta_sharing_capabilities=header), "file")
    assert again[0]["deletionVectorFileId"] == files[0]["deletionVectorFileId"]


@pytest.mark.protocol("SHARE-DLT-05")
def test_inline_deletion_vectors_stay_inline(caller: Caller) -> None:
    header = _header("delta", "deletionvectors")
    (file,) = actions(caller.query(VECTORS, delta_sharing_capabilities=header), "file")
    assert file["deltaSingleAction"]["add"]["deletionVector"]["storageType"] == "i"
    assert "deletionVectorFileId" not in file


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
    reply = caller.query(PLAIN, delta_sharing_capabilities=_header("delta"))
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
    assert _form(caller, PLAIN, _header("delta,parquet", "laterfeature")) == 400
