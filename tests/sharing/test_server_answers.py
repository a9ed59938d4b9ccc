"""Answers that break off, and the memory that they take."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import orjson
import pytest

from deltalog import DeltaTable
from deltalog.sharing.server.answers import TableRequest
from deltalog.sharing.server.application import make_server
from deltalog.sharing.server.config_settings import parse_config
from deltalog.sharing.server.queries import answer_query
from deltalog.sharing.server.recipients import Recipient
from deltalog.sharing.server.tables import TableName
from deltalog.sharing.wire.requests import TableQuery, parse_capabilities
from tests.support.asgi import Json
from tests.support.sharing import KEY, Caller, actions, config_of

T = "s.d.t"


@pytest.mark.protocol("SHARE-SEC-07")
@pytest.mark.parametrize("lines_at_once", [512, 0])
def test_an_answer_that_breaks_is_not_taken_for_complete(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, lines_at_once: int
) -> None:
    from deltalog.errors import StorageError
    from deltalog.sharing.server.file_lines import FileLines

    def fail(*_: object, **__: object) -> None:
        raise StorageError("cannot read /secret/path")

    monkeypatch.setattr(FileLines, "chunks", fail)
    monkeypatch.setattr("deltalog.sharing.server.queries.LINES_PER_CHUNK", lines_at_once)
    reply = caller.query(T)
    if lines_at_once:  # the answer is short: nothing was sent before it broke
        assert reply.status == 503
        assert b"secret" not in reply.body
    else:
        assert not reply.is_complete
    header = "includeendstreamaction=true"
    told = caller.query(T, delta_sharing_capabilities=header)
    assert told.is_complete
    (end,) = actions(told, "endStreamAction")
    assert end == {"errorMessage": "the table's storage does not respond; try again later"}


FILES = 10_000


SCHEMA = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"p","type":"string","nullable":true,"metadata":{}}]}'
)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that names many files, with a checkpoint; the files are not there."""
    path = tmp_path_factory.mktemp("large")
    metadata = {
        "id": "large",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": SCHEMA,
        "partitionColumns": ["p"],
        "configuration": {},
    }
    lines: list[Json] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": metadata},
        *({"add": _add(number)} for number in range(FILES)),
    ]
    log = path / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    DeltaTable(path).create_checkpoint()
    return path


def _add(number: int) -> Json:
    bounds = {"minValues": {"id": number * 10}, "maxValues": {"id": number * 10 + 9}}
    stats = {"numRecords": 10, **bounds, "nullCount": {"id": 0}}
    part = str(number % 50)
    return {
        "path": f"p={part}/part-{number:05d}-8b0086f2-7b27-4935-ac5a-8ed6215a6640.c000.parquet",
        "partitionValues": {"p": part},
        "size": 1000,
        "modificationTime": 1,
        "dataChange": True,
        "stats": orjson.dumps(stats).decode(),
    }


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_lines_are_made_while_they_are_sent(large: Path, form: str) -> None:
    server = make_server(parse_config(config_of({"s.d.t": large})), KEY.encode())
    recipient = Recipient("alice", None)
    request = TableRequest(
        table=server.tables.table(recipient, TableName("s", "d", "t")),
        recipient=recipient,
        capabilities=parse_capabilities(f"responseformat={form}"),
        base_url="http://x/delta-sharing",
        now_ms=0,
        services=server.services,
    )
    for _ in answer_query(request, TableQuery()).chunks:
        break  # what is kept of the table is not the answer's
    tracemalloc.start()
    sent_bytes = num_lines = 0
    for chunk in answer_query(request, TableQuery()).chunks:
        sent_bytes += len(chunk)
        num_lines += chunk.count(b"\n")
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert num_lines == FILES + 2
    assert peak_bytes < sent_bytes / 3
