"""Servers that answer nonsense: an error with a name, or right rows, and nothing else."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import DeltaError
from deltalog.protocol.actions.codec import deletion_vector_to_json
from deltalog.protocol.deletion_vectors import DeletionBitmap, inline_descriptor
from deltalog.sharing.client import HttpOptions, Retry, SharedTable
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
from tests.support.sharing_server import Answer, ScriptedServer, lines

ONCE = HttpOptions(retry=Retry(attempts=1))
ODD: list[Any] = [
    None,
    True,
    -1,
    2**63,
    1e300,
    "",
    "x" * 1000,
    "\x00",
    "../../etc/passwd",
    "file:///etc/passwd",
    [],
    {},
    [[]],
    {"a": {"b": None}},
    "9" * 30,
    "NaN",
]


def _paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _paths(inner, (*at, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            found += _paths(inner, (*at, number))
    return found


def _spoilt(answer: list[Any], randomness: random.Random) -> list[Any]:
    """The answer with one or two members replaced or left out."""
    spoilt = copy.deepcopy(answer)
    for _ in range(randomness.choice([1, 1, 2])):
        path = randomness.choice(_paths(spoilt))
        holder: Any = spoilt
        for part in path[:-1]:
            holder = holder[part]
        if randomness.random() < 0.2:
            del holder[path[-1]]
        else:
            holder[path[-1]] = copy.deepcopy(randomness.choice(ODD))
    return spoilt


def _parquet_answer(server: ScriptedServer) -> list[Any]:
    data = parquet(id=pa.array([1, 2, 3], pa.int64()))
    more: dict[str, Any] = {"version": 0, "timestamp": 1, "expirationTimestamp": 4102444800000}
    line = file_line(
        server, "f", data, partition_values={"p": "x"}, stats=stats(3, id=(1, 3)), **more
    )
    columns = {"id": "long", "p": "string"}
    meta = metadata(["p"], columns=columns, configuration={"enableChangeDataFeed": "true"})
    return [copy.deepcopy(PROTOCOL), meta, line, {"endStreamAction": {"refreshToken": "t"}}]


def _delta_answer(server: ScriptedServer) -> list[Any]:
    inline = deletion_vector_to_json(inline_descriptor(DeletionBitmap([0])))
    data = parquet(id=pa.array([1, 2, 3], pa.int64()))
    server.files["/data/v"] = b"\x01"
    remote = {
        "storageType": "p",
        "pathOrInlineDv": f"{server.url}/data/v",
        "offset": 1,
        "sizeInBytes": 34,
        "cardinality": 1,
    }
    told = {"version": 0, "timestamp": 1, "deletionVectorFileId": "v"}
    return [
        delta_protocol("deletionVectors"),
        delta_metadata(columns={"id": "long"}, **{"delta.enableChangeDataFeed": "true"}),
        delta_file(server, "f", data, deletionVector=inline, wrapper=told, stats=stats(3)),
        delta_file(server, "g", data, deletionVector=remote, wrapper=told),
    ]


def _try(server: ScriptedServer, answer: Answer) -> None:
    for request in ("POST query", "GET metadata", "GET changes"):
        server.on_table(request, answer)
    table = SharedTable("s.d.t", profile=server.profile(), options=ONCE)
    with contextlib.suppress(DeltaError):
        table.scan(predicate="id > 1").to_table()
    with contextlib.suppress(DeltaError):
        table.to_pyarrow_table()
    with contextlib.suppress(DeltaError):
        table.load_cdf(0, 0).to_table()


@pytest.mark.protocol("SHARE-QT-02", "SHARE-SCH-03")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_nonsense_is_an_error_with_a_name(scripted: ScriptedServer, form: str, seed: int) -> None:
    randomness = random.Random(seed)
    answer = _parquet_answer(scripted) if form == "parquet" else _delta_answer(scripted)
    for _ in range(6):
        _try(scripted, lines(*_spoilt(answer, randomness)))


@pytest.mark.parametrize("member", ["storageType", "pathOrInlineDv", "sizeInBytes", "offset"])
@pytest.mark.parametrize("value", [None, 7, "x", [], {}], ids=repr)
def test_a_vector_that_is_none_is_an_error_with_a_name(
    scripted: ScriptedServer, member: str, value: Any
) -> None:
    answer = _delta_answer(scripted)
    answer[3]["file"]["deltaSingleAction"]["add"]["deletionVector"][member] = value
    _try(scripted, lines(*answer))


@pytest.mark.parametrize("seed", range(3))
def test_bytes_at_random_are_an_error_with_a_name(scripted: ScriptedServer, seed: int) -> None:
    randomness = random.Random(seed)
    whole = lines(*_parquet_answer(scripted))
    for _ in range(8):
        body = bytearray(whole.body)
        for _ in range(3):
            body[randomness.randrange(len(body))] = randomness.randrange(256)
        _try(scripted, Answer(200, bytes(body), whole.headers))


def test_deep_nesting_is_an_error_with_a_name(scripted: ScriptedServer) -> None:
    deep = b'{"file":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    head = [json.dumps(one).encode() + b"\n" for one in _parquet_answer(scripted)[:2]]
    _try(scripted, lines(*head, deep))
