"""What holds for every request: ids, limits, unforeseen errors, the audit log."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from deltalog.sharing.server import endpoints as endpoints_module
from tests.support.asgi import ask
from tests.support.sharing import POST, PREFIX, TOKEN, Caller, file_url, path_of, sharing


@pytest.mark.protocol("SHARE-GEN-09")
@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("PUT", "/shares", 405),
        ("POST", "/shares", 405),
        ("DELETE", "/shares/vaccine_share", 405),
        ("GET", "/shares/s/schemas/d/tables/t/query", 405),
        ("GET", "/shares/s/schemas/d/tables/t", 405),
        ("GET", "/nothing", 404),
        ("GET", "/shares/", 404),
        ("GET", "", 404),
        ("PATCH", "/shares/s/x/y/z", 404),
    ],
)
def test_unknown_methods_and_routes(vaccine: Caller, method: str, target: str, status: int) -> None:
    reply = vaccine.ask(method, target)
    assert reply.status == status
    assert set(reply.json()) == {"errorCode", "message"}
    assert reply.headers["content-type"] == "application/json"


def test_answers_have_an_id_and_are_not_kept(vaccine: Caller) -> None:
    reply = vaccine.get("/shares", x_request_id="my-id.1")
    assert reply.headers["x-request-id"] == "my-id.1"
    assert reply.headers["cache-control"] == "no-store"
    forged = vaccine.get("/shares", x_request_id="my id\n")
    assert forged.headers["x-request-id"] != "my id\n"
    assert vaccine.get("/nothing").headers["x-request-id"]


T = "s.d.t"


@pytest.mark.protocol("SHARE-SEC-06")
def test_sizes_are_bounded(table: Path) -> None:
    caller = sharing({T: table}, limits={"bodyBytes": 1000, "urlBytes": 500})
    assert caller.query(T, b" " * 1001).status == 413
    assert caller.query(T, b" " * 1000).status == 200
    assert caller.get(f"/shares?x={'a' * 500}").status == 414
    lying = ask(
        caller.app,
        "POST",
        f"{PREFIX}{path_of(T)}/query",
        headers={"Authorization": f"Bearer {TOKEN}", "transfer-encoding": "chunked"},
        body=b" " * 5000,
    )
    assert lying.status == 413
    for length in ("-1", "x", "9" * 30):
        reply = caller.ask("POST", f"{path_of(T)}/query", headers={"content-length": length})
        assert reply.status == 413


@pytest.mark.protocol("SHARE-SEC-06")
def test_a_client_that_takes_nothing_is_given_up(
    table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import asyncio

    caller = sharing({T: table}, limits={"sendSeconds": 1})
    started = []

    bodies = [{"type": "http.request", "body": b"{}", "more_body": False}]

    async def receive() -> dict[str, object]:
        if not bodies:
            await asyncio.sleep(60)
        return bodies.pop()

    async def send(message: dict[str, object]) -> None:
        started.append(message["type"])
        if message["type"] == "http.response.body":
            await asyncio.sleep(60)

    scope = {**POST, "path": f"{PREFIX}{path_of(T)}/query"}
    with caplog.at_level(logging.INFO):
        asyncio.run(caller.app(scope, receive, send))  # type: ignore[arg-type]  # plain dicts
    assert started == ["http.response.start", "http.response.body"]
    told = " ".join(caplog.messages)
    assert '"complete":false' in told
    assert "TimeoutError" in told


@pytest.mark.protocol("SHARE-GEN-05", "SHARE-SEC-07", "SHARE-GEN-07")
def test_an_unforeseen_error_tells_nothing(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("/secret/path of token-of-alice")

    monkeypatch.setattr(endpoints_module, "answer_query", fail)
    with caplog.at_level(logging.INFO):
        reply = caller.query(T)
    assert reply.status == 500
    assert reply.json() == {
        "errorCode": "INTERNAL_ERROR",
        "message": "the server could not handle the request",
    }
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text
    assert TOKEN not in caplog.text


@pytest.mark.protocol("SHARE-SEC-07")
def test_the_audit_log(caller: Caller, table: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="deltalog.sharing.audit"):
        url = file_url(caller)
        caller.download(url)
        caller.get("/shares/nowhere")
        replace(caller, token="wrong-token-here").get("/shares")  # noqa: S106
    lines = [json.loads(record.getMessage()) for record in caplog.records]
    assert [(line["action"], line["recipient"], line["status"]) for line in lines] == [
        ("query", "alice", 200),
        ("get_file", "alice", 200),
        ("get_share", "alice", 404),
        ("list_shares", None, 401),
    ]
    query = lines[0]
    assert (query["table"], query["version"], query["files"]) == ("s/d/t", 0, 1)
    assert query["complete"]
    assert query["bytes"] > 0
    text = caplog.text
    for secret in (TOKEN, "wrong-token-here", str(table), ".parquet", "X-Amz-Signature"):
        assert secret not in text
