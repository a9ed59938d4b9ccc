"""Lines of files: ids, URLs, actions, and files outside of the table."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import orjson
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.support.sharing import Caller, actions, capabilities, name_file, sharing, status_of

T = "s.d.t"


@pytest.mark.protocol("SHARE-QT-17", "B-96")
def test_ids_last_and_urls_do_not(daily_caller: Caller) -> None:
    one, other = daily_caller.query(T), daily_caller.query(T)
    ids = [file["id"] for file in actions(one, "file")]
    assert ids == [file["id"] for file in actions(other, "file")]
    assert [len(name) for name in ids] == [32] * 3
    assert one.headers["fileidhash"] == "md5"
    long = daily_caller.query(T, None, fileidhash="SHA256")
    assert long.headers["fileidhash"] == "sha256"
    assert [len(file["id"]) for file in actions(long, "file")] == [64] * 3
    assert daily_caller.query(T, None, fileidhash="crc").status == 400


@pytest.mark.protocol("SHARE-SEC-02", "SHARE-SEC-07")
@pytest.mark.parametrize(
    "path",
    [
        "../other.parquet",
        "a/../../other.parquet",
        "%2e%2e/other.parquet",
        "%252e%252e/other.parquet",
        "..%5Cother.parquet",
        "/etc/passwd",
        "file:///etc/passwd",
        "s3://bucket/key",
        "http://internal/x",
        "//host/x",
        "a%00b",
        "_delta_log/00000000000000000000.json",
        "./_delta_log/00000000000000000000.json",
        "a/%2e%2e/%2e%2e/x",
    ],
)
@pytest.mark.parametrize("body", [{}, {"startingVersion": 1}, {"maxFiles": 1}])
def test_paths_that_lead_out_get_no_url(
    table: Path, caller: Caller, path: str, body: object
) -> None:
    name_file(table, path)
    reply = caller.query(T, body)
    assert reply.status == 400
    assert b"_files" not in reply.body
    assert b"passwd" not in reply.body
    assert str(table).encode() not in reply.body


@pytest.mark.protocol("SHARE-SEC-02")
def test_absolute_paths_inside_of_the_table_are_its_own(table: Path, caller: Caller) -> None:
    (own,) = [file.name for file in table.iterdir() if file.suffix == ".parquet"]
    name_file(table, f"file://{quote(str(table / own))}")
    urls = [file["url"] for file in actions(caller.query(T), "file")]
    assert {status_of(caller, url) for url in urls} == {200}


PLAIN, VECTORS, MAPPED, NTZ, ICT = "s.d.plain", "s.d.vectors", "s.d.mapped", "s.d.ntz", "s.d.ict"


@pytest.mark.protocol("SHARE-DLT-03", "SHARE-DLT-04", "SHARE-QT-17")
def test_files_keep_their_actions(formats_caller: Caller, formats_root: Path) -> None:
    reply = formats_caller.query(PLAIN, delta_sharing_capabilities=capabilities("delta"))
    (file,) = actions(reply, "file")
    log = (formats_root / "plain" / "_delta_log" / f"{0:020d}.json").read_bytes().splitlines()
    (own,) = (line["add"] for line in map(orjson.loads, log) if "add" in line)
    told = file["deltaSingleAction"]["add"]
    assert formats_caller.download(told.pop("path")).status == 200
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
    header = capabilities("delta", "deletionvectors")
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
def test_inline_deletion_vectors_stay_inline(formats_caller: Caller) -> None:
    header = capabilities("delta", "deletionvectors")
    (file,) = actions(formats_caller.query(VECTORS, delta_sharing_capabilities=header), "file")
    assert file["deltaSingleAction"]["add"]["deletionVector"]["storageType"] == "i"
    assert "deletionVectorFileId" not in file
