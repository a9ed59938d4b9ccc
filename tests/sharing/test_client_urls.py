"""URLs that end while a table is being read."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from deltalog.data.scan.reader import read_task
from deltalog.errors import AccessDeniedError, DeletionVectorError, SharingAccessError
from deltalog.protocol.deletion_vectors import DeletionBitmap, encode_file
from deltalog.sharing.client import AsyncRestClient, SharedTable, read_profile
from tests.support.shared_files import (
    PROTOCOL,
    QUICK,
    delta_file,
    delta_metadata,
    delta_protocol,
    file_line,
    metadata,
    parquet,
)
from tests.support.sharing_server import Asked, ScriptedServer, fault, lines

pytestmark = pytest.mark.protocol("SHARE-CLI-03")
METADATA = metadata(columns={"id": "long"})
START_MS = 1_700_000_000_000


class MovedClock:
    """A clock that a test moves."""

    ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


class Renewing:
    """A table of three files whose URLs are other ones at each query."""

    def __init__(self, server: ScriptedServer, *, lifetime_ms: int | None = 900_000) -> None:
        self.server = server
        self.clock = MovedClock()
        self.lifetime_ms = lifetime_ms
        self.round = 0
        self.version = 5
        self.shares_history = True
        self.gives_token = True
        self.files = [parquet(id=pa.array([n], pa.int64())) for n in range(3)]
        server.on_table("GET metadata", lines(PROTOCOL, METADATA, version=5))
        server.on_table("POST query", self.answer)

    def answer(self, asked: Asked) -> Any:
        body = asked.json
        if "version" in body and not self.shares_history:
            return fault(400, "INVALID_PARAMETER_VALUE", "no history")
        self.round += 1
        more: dict[str, Any] = {}
        if self.lifetime_ms is not None:
            more["expirationTimestamp"] = self.clock.ms + self.lifetime_ms
        found = [
            file_line(self.server, f"r{self.round}-{n}", data, **more)
            for n, data in enumerate(self.files)
        ]
        for n, line in enumerate(found):
            line["file"]["id"] = f"f{n}"
        end = {"endStreamAction": {"refreshToken": f"again-{self.round}"}}
        rest = [end] if self.gives_token and body.get("includeRefreshToken") else []
        return lines(PROTOCOL, METADATA, *found, *rest, version=body.get("version", self.version))

    def end_urls(self) -> None:
        """The store refuses all URLs that were given so far."""
        self.server.denied = set(self.server.files)

    def open(self) -> SharedTable:
        client = AsyncRestClient(read_profile(self.server.profile()), QUICK, clock=self.clock)
        return SharedTable("s.d.t", client=client)

    def bodies(self) -> list[Any]:
        return [asked.json for asked in self.server.find("/query")]


def _ids(rows: Any) -> list[Any]:
    found: list[Any] = pa.Table.from_batches(list(rows))["id"].to_pylist()
    return found


def test_urls_that_end_in_the_middle_of_a_scan_are_replaced(scripted: ScriptedServer) -> None:
    server = Renewing(scripted, lifetime_ms=None)
    tasks = list(server.open().scan().tasks())
    first = list(read_task(tasks[0]))
    server.end_urls()
    rest = [batch for task in tasks[1:] for batch in read_task(task)]
    assert _ids([*first, *rest]) == [0, 1, 2]
    # One new query is enough for all files, and it asks for the same version.
    assert server.bodies() == [
        {"includeRefreshToken": True},
        {"includeRefreshToken": True, "refreshToken": "again-1"},
    ]


def test_urls_that_have_ended_when_files_are_fetched_ahead_are_replaced(
    scripted: ScriptedServer,
) -> None:
    server = Renewing(scripted, lifetime_ms=None)
    scan = server.open().scan()
    server.end_urls()
    assert scan.to_table()["id"].to_pylist() == [0, 1, 2]
    assert len(server.bodies()) == 2


def test_urls_are_replaced_before_they_end(scripted: ScriptedServer) -> None:
    server = Renewing(scripted)
    scan = server.open().scan()
    tasks = list(scan.tasks())
    server.clock.sleep(900 - 61)
    list(read_task(tasks[0]))
    assert len(server.bodies()) == 1
    server.clock.sleep(2)
    server.end_urls()
    assert _ids(batch for task in tasks for batch in read_task(task)) == [0, 1, 2]
    assert len(server.bodies()) == 2
    assert not [one for one in scripted.asked if one.path in scripted.denied and one.path[6] == "x"]


def test_short_lived_urls_are_used_for_most_of_their_time(scripted: ScriptedServer) -> None:
    server = Renewing(scripted, lifetime_ms=10_000)
    tasks = list(server.open().scan().tasks())
    server.clock.sleep(7.9)
    list(read_task(tasks[0]))
    assert len(server.bodies()) == 1
    server.clock.sleep(0.2)
    list(read_task(tasks[1]))
    assert len(server.bodies()) == 2


def test_without_a_token_the_version_is_asked_for(scripted: ScriptedServer) -> None:
    server = Renewing(scripted, lifetime_ms=None)
    server.gives_token = False
    tasks = list(server.open().scan().tasks())
    server.end_urls()
    server.version = 6  # a commit meanwhile does not matter
    assert _ids(batch for task in tasks for batch in read_task(task)) == [0, 1, 2]
    assert server.bodies()[1:] == [{"version": 5}]


def test_without_history_the_latest_version_may_still_have_the_file(
    scripted: ScriptedServer,
) -> None:
    server = Renewing(scripted, lifetime_ms=None)
    server.gives_token = server.shares_history = False
    tasks = list(server.open().scan().tasks())
    server.end_urls()
    server.version = 6
    assert _ids(batch for task in tasks for batch in read_task(task)) == [0, 1, 2]
    assert server.bodies()[1:] == [{"version": 5}, {"includeRefreshToken": True}]


def test_a_file_that_is_no_longer_shared_is_an_error(scripted: ScriptedServer) -> None:
    server = Renewing(scripted, lifetime_ms=None)
    tasks = list(server.open().scan().tasks())
    server.end_urls()
    server.files = server.files[:2]
    with pytest.raises(AccessDeniedError, match=r"files/f2.*403"):
        list(read_task(tasks[2]))
    assert _ids(batch for task in tasks[:2] for batch in read_task(task)) == [0, 1]


def test_a_refusal_to_renew_is_told(scripted: ScriptedServer) -> None:
    server = Renewing(scripted, lifetime_ms=None)
    tasks = list(server.open().scan().tasks())
    server.end_urls()
    scripted.on_table("POST query", fault(401))
    with pytest.raises(SharingAccessError):
        list(read_task(tasks[0]))


def test_many_threads_ask_once(scripted: ScriptedServer) -> None:
    server = Renewing(scripted, lifetime_ms=None)
    tasks = list(server.open().scan().tasks()) * 4
    server.end_urls()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda task: _ids(read_task(task)), tasks))
    assert found == [[0], [1], [2]] * 4
    assert len(server.bodies()) == 2


def test_tasks_in_other_processes_renew_too(scripted: ScriptedServer) -> None:
    server = Renewing(scripted, lifetime_ms=None)
    task = pickle.loads(pickle.dumps(list(server.open().scan().tasks())[1]))
    server.end_urls()
    assert _ids(read_task(task)) == [1]
    assert server.bodies()[1]["refreshToken"] == "again-1"


def test_hints_and_versions_are_asked_for_again(scripted: ScriptedServer) -> None:
    server = Renewing(scripted, lifetime_ms=None)
    tasks = list(server.open().scan(predicate="id >= 0", version=3).tasks())
    server.end_urls()
    assert _ids(read_task(tasks[0])) == [0]
    first, again = server.bodies()
    assert first == again
    assert (first["version"], "jsonPredicateHints" in first) == (3, True)


@pytest.mark.protocol("SHARE-DLT-05", "SHARE-DLT-03")
def test_deletion_vectors_are_fetched_and_renewed(scripted: ScriptedServer) -> None:
    import uuid

    vectors = encode_file([DeletionBitmap([0]), DeletionBitmap([1, 2])], uuid.uuid4())
    data = parquet(id=pa.array([1, 2, 3], pa.int64()))
    rounds: list[int] = []

    def answer(asked: Asked) -> Any:
        del asked
        rounds.append(1)
        place = f"/data/dv-{len(rounds)}.bin"
        scripted.files[place] = vectors.data
        found = []
        for number, one in enumerate(vectors.descriptors):
            vector = {
                "storageType": "p",
                "pathOrInlineDv": f"{scripted.url}{place}?X-Amz-Signature=geheim",
                "offset": one.offset,
                "sizeInBytes": one.size_bytes,
                "cardinality": one.cardinality,
            }
            line = delta_file(
                scripted,
                f"r{len(rounds)}-{number}",
                data,
                deletionVector=vector,
                wrapper={"deletionVectorFileId": "dv"},
            )
            line["file"]["id"] = f"f{number}"
            found.append(line)
        return lines(
            delta_protocol("deletionVectors"), delta_metadata(columns={"id": "long"}), *found
        )

    scripted.on_table("POST query", answer)
    table = SharedTable("s.d.t", profile=scripted.profile(), options=QUICK)
    scan = table.scan()
    assert scan.count() == 3 - 1 + 3 - 2
    scripted.denied = set(scripted.files)
    assert scan.to_table()["id"].to_pylist() == [2, 3, 1]
    shown = json.dumps(table.snapshot.files(["deletionVector"]).to_pylist())
    assert "geheim" not in shown
    assert pickle.loads(pickle.dumps(list(scan.tasks())[1])).deletion_vector is not None


def test_a_vector_of_a_row_beyond_its_file_is_refused(scripted: ScriptedServer) -> None:
    data = parquet(id=pa.array([1, 2, 3], pa.int64()))
    vector = {
        "storageType": "i",
        # Row 3, which would be the fourth.
        "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg##093",
        "sizeInBytes": 34,
        "cardinality": 1,
    }
    line = delta_file(scripted, "r", data, deletionVector=vector)
    scripted.on_table(
        "POST query",
        lines(delta_protocol("deletionVectors"), delta_metadata(columns={"id": "long"}), line),
    )
    table = SharedTable("s.d.t", profile=scripted.profile(), options=QUICK)
    with pytest.raises(DeletionVectorError, match="found row 3"):
        table.scan().to_table()
