"""Answers about the shared table `s.d.t`, and Parquet files for them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deltalog.sharing.client import HttpOptions, Retry, SharedTable
from tests.support.sharing_server import ScriptedServer, lines

Json = dict[str, Any]

QUICK = HttpOptions(retry=Retry(attempts=2, first_delay_ms=1))
PROTOCOL: Json = {"protocol": {"minReaderVersion": 1}}
TABLE_ID = "f8d5c169-3d01-4ca3-ad9e-7dc3355aedb2"


def schema_string(**columns: str) -> str:
    """A schema of nullable columns with primitive types."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in columns.items()
    ]
    return json.dumps({"type": "struct", "fields": fields})


def metadata(
    partition_columns: Sequence[str] = (), *, columns: Mapping[str, str], **more: Any
) -> Json:
    """A `metaData` line of the format `parquet`."""
    return {
        "metaData": {
            "id": TABLE_ID,
            "format": {"provider": "parquet"},
            "schemaString": schema_string(**columns),
            "partitionColumns": list(partition_columns),
            **more,
        }
    }


def parquet(**columns: Any) -> bytes:
    """A Parquet file."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def file_line(
    server: ScriptedServer,
    name: str,
    data: bytes | None = None,
    *,
    kind: str = "file",
    partition_values: Mapping[str, str] | None = None,
    query: str = "",
    **more: Any,
) -> Json:
    """The line of a file that the server has from now on; its id is its name."""
    path = f"/data/{name}"
    if data is not None:
        server.files[path] = data
    return {
        kind: {
            "url": f"{server.url}{path}{query}",
            "id": name,
            "partitionValues": dict(partition_values or {}),
            "size": len(server.files[path]),
            **more,
        }
    }


def stats(num_records: int, **bounds: tuple[Any, Any]) -> str:
    """Statistics with the least and greatest value of columns."""
    return json.dumps(
        {
            "numRecords": num_records,
            "minValues": {name: low for name, (low, _) in bounds.items()},
            "maxValues": {name: high for name, (_, high) in bounds.items()},
            "nullCount": dict.fromkeys(bounds, 0),
        }
    )


def delta_protocol(*features: str) -> Json:
    """A `protocol` line of the format `delta`."""
    listed = {"readerFeatures": list(features), "writerFeatures": list(features)}
    return {"protocol": {"deltaProtocol": {"minReaderVersion": 3, "minWriterVersion": 7, **listed}}}


def delta_metadata(
    *, columns: Mapping[str, str], schema: str | None = None, **configuration: str
) -> Json:
    """A `metaData` line of the format `delta`."""
    wrapped = {
        "id": TABLE_ID,
        "format": {"provider": "parquet"},
        "schemaString": schema or schema_string(**columns),
        "partitionColumns": [],
        "configuration": configuration,
    }
    return {"metaData": {"deltaMetadata": wrapped}}


def delta_file(
    server: ScriptedServer,
    name: str,
    data: bytes | None = None,
    *,
    action: str = "add",
    wrapper: Mapping[str, Any] | None = None,
    **more: Any,
) -> Json:
    """A `file` line of the format `delta`."""
    path = f"/data/{name}"
    if data is not None:
        server.files[path] = data
    values = {
        "path": f"{server.url}{path}?X-Amz-Signature=1",
        "partitionValues": {},
        "size": len(server.files[path]),
        "modificationTime": 0,
        "dataChange": True,
        **more,
    }
    return {"file": {"id": name, **(wrapper or {}), "deltaSingleAction": {action: values}}}


def open_shared(server: ScriptedServer, *answer: Any, version: int = 0) -> SharedTable:
    """The table that these lines describe."""
    server.on_table("GET metadata", lines(*answer[:2], version=version))
    server.on_table("POST query", lines(*answer, version=version))
    return SharedTable("s.d.t", profile=server.profile(), options=QUICK)


def files_asked(server: ScriptedServer) -> set[str]:
    """The paths of the data files that were requested."""
    return {asked.path for asked in server.asked if asked.path.startswith("/data/")}


def id_files(server: ScriptedServer, count: int) -> list[Json]:
    """Lines of files with one row each, whose `id` is the file's number."""
    return [file_line(server, f"f{n}", parquet(id=[n])) for n in range(count)]


def ids_of(table: SharedTable) -> list[int]:
    """The ids of a table, in order."""
    found: list[Any] = table.to_pyarrow_table()["id"].to_pylist()
    return sorted(found)


def end_line(**members: Any) -> Json:
    """The last line of an answer."""
    return {"endStreamAction": members}
