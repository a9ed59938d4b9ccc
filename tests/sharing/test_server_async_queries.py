"""Queries that are answered later, and temporary credentials."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from tests.support.asgi import Json, Reply
from tests.support.sharing import TOKEN, Caller, actions, path_of, sharing

T = "s.d.t"


ASYNC = "responseformat=parquet;asyncquery=true"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for start in (0, 10, 20):
        write_deltalake(tmp_path / "t", pa.table({"id": range(start, start + 10)}), mode="append")
    return tmp_path / "t"


def _begin(caller: Caller, body: Json) -> Reply:
    return caller.query(T, body, delta_sharing_capabilities=ASYNC)


def _poll(caller: Caller, query_id: str, body: object = None) -> Reply:
    for _ in range(200):
        reply = caller.ask("POST", f"{path_of(T)}/queries/{query_id}", body)
        if reply.status != 200 or b"queryStatus" not in reply.body:
            return reply
        time.sleep(0.02)
    return reply


@pytest.mark.protocol("SHARE-ASY-01", "B-93")
@pytest.mark.parametrize("settings", [{}, {"rowFilter": "id >= 5"}])
def test_a_query_goes_on_under_its_id(table: Path, settings: Json) -> None:
    caller = sharing({T: {"location": str(table), **settings}})
    reply = _begin(caller, {"idempotencyKey": "k"})
    (status,) = actions(reply, "queryStatus")
    assert len(reply.lines()) == 1
    assert status["status"] == "pending"
    again = actions(_begin(caller, {"idempotencyKey": "k"}), "queryStatus")
    assert again[0]["queryId"] == status["queryId"]
    write_deltalake(table, pa.table({"id": [99]}), mode="append")
    done = _poll(caller, status["queryId"])
    assert len(actions(done, "file")) == 3
    assert done.headers["delta-table-version"] == "2"
    page = _poll(caller, status["queryId"], {"maxFiles": 2})
    token = actions(page, "endStreamAction")[0]["nextPageToken"]
    rest = _poll(caller, status["queryId"], {"maxFiles": 2, "pageToken": token})
    assert len(actions(page, "file")) + len(actions(rest, "file")) == 3


@pytest.mark.parametrize("settings", [{}, {"rowFilter": "id >= 5"}])
def test_a_range_that_began_ends_where_it_did(table: Path, settings: Json) -> None:
    caller = sharing({T: {"location": str(table), "historyShared": True, **settings}})
    begun = _begin(caller, {"idempotencyKey": "k", "startingVersion": 1})
    write_deltalake(table, pa.table({"id": [99]}), mode="append")
    done = _poll(caller, actions(begun, "queryStatus")[0]["queryId"])
    assert [file["version"] for file in actions(done, "add")] == [1, 2]


@pytest.mark.protocol("SHARE-ASY-01", "SHARE-SEC-03")
def test_queries_of_others_are_not_there(table: Path) -> None:
    bob = {"name": "bob", "token": "token-of-bob", "shares": "all"}
    alice = {"name": "alice", "token": TOKEN, "shares": "all"}
    caller = sharing({T: table, "s.d.u": table}, recipients=[alice, bob])
    (status,) = actions(_begin(caller, {"idempotencyKey": "k"}), "queryStatus")
    query_id = status["queryId"]
    assert _poll(Caller(caller.app, "token-of-bob"), query_id).status == 404
    assert caller.ask("POST", f"{path_of('s.d.u')}/queries/{query_id}").status == 404
    assert _poll(caller, "nothing").status == 404
    assert _poll(caller, query_id).status == 200


@pytest.mark.protocol("SHARE-ASY-01")
def test_queries_that_cannot_begin(table: Path) -> None:
    caller = sharing({T: table})
    assert _begin(caller, {}).status == 400
    assert _begin(caller, {"idempotencyKey": "k", "version": 0}).status == 400
    assert _begin(caller, {"idempotencyKey": "k", "maxFiles": 1}).status == 200


@pytest.mark.protocol("SHARE-ASY-01")
def test_a_query_that_fails_says_so(table: Path) -> None:
    caller = sharing({T: {"location": str(table), "columns": ["id"]}})
    for file in table.glob("*.parquet"):
        file.unlink()
    (status,) = actions(_begin(caller, {"idempotencyKey": "k"}), "queryStatus")
    for _ in range(200):
        found = caller.ask("POST", f"{path_of(T)}/queries/{status['queryId']}")
        (now,) = actions(found, "queryStatus")
        if now["status"] != "pending":
            break
        time.sleep(0.02)
    assert now["status"] == "failed"
    assert str(table) not in now["error"]


def test_servers_may_answer_at_once(table: Path) -> None:
    caller = sharing({T: table}, asynchronousQueries=False)
    assert len(actions(_begin(caller, {"idempotencyKey": "k"}), "file")) == 3
