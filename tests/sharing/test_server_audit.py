"""What the audit log says of refusals, and what recipients cannot do to each other or for ever."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.sharing.server import app, parse_config
from deltalog.sharing.server.application import make_app, make_server
from deltalog.sharing.server.config_file import ReloadingServer
from deltalog.sharing.server.tokens import token_digest
from tests.support.asgi import ask, serving
from tests.support.sharing import (
    KEY,
    PREFIX,
    TOKEN,
    Caller,
    actions,
    changes,
    config_of,
    file_url,
    path_of,
    sharing,
    small_config,
)

T = "s.d.t"
OTHER_KEY = "another key of sixteen bytes"


def _last(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(caplog.messages[-1])
    return found


@pytest.fixture
def audit(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="deltalog.sharing.audit")
    return caplog


@pytest.mark.parametrize(
    ("method", "target", "asked"),
    [
        ("GET", "/shares/nowhere", "nowhere"),
        ("GET", "/shares/nowhere/schemas/x/tables", "nowhere/x"),
        ("POST", "/shares/nowhere/schemas/x/tables/y/query", "nowhere/x/y"),
        ("GET", "/shares/S/schemas/d/tables/gone/metadata", "S/d/gone"),
        ("GET", "/shares/s/schemas/d/tables/t/changes?startingVersion=x", "s/d/t"),
        ("GET", "/somewhere/else?token=geheim", f"{PREFIX}/somewhere/else"),
        ("GET", f"/shares/{'x' * 400}", "x" * 256),
        ("GET", "/shares/a%1b%0a%E2%80%AEb", "a\x1b\n\u202eb"),
    ],
)
@pytest.mark.parametrize("token", [TOKEN, "wrong-token-here"])
def test_a_refusal_names_what_was_asked_for(
    caller: Caller,
    audit: pytest.LogCaptureFixture,
    method: str,
    target: str,
    asked: str,
    token: str,
) -> None:
    reply = Caller(caller.app, token).ask(method, target)
    assert reply.status in {400, 401, 404}
    line = _last(audit)
    assert line["asked"] == asked
    assert line["error"] == reply.json()["errorCode"]
    assert "geheim" not in audit.text
    assert audit.messages[-1].isprintable()  # no line of the log is made by a request


def test_a_refused_url_names_what_it_says(caller: Caller, audit: pytest.LogCaptureFixture) -> None:
    url = file_url(caller)
    assert caller.download(url[:-1] + ("0" if url[-1] != "0" else "1")).status == 403
    line = _last(audit)
    assert (line["asked"], line["recipient"], line["error"]) == ("s/d/t", None, "PERMISSION_DENIED")
    assert caller.download(f"http://x{PREFIX}/_files/_w/_w?X-Amz-Signature=geheim").status == 403
    assert "geheim" not in audit.text


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"token": TOKEN, "ipRanges": ["10.0.0.0/8"]}, 403),
        ({"tokens": [{"token": TOKEN, "expires": "2020-01-01T00:00:00Z"}]}, 401),
    ],
)
def test_a_refused_recipient_is_named(
    table: Path, audit: pytest.LogCaptureFixture, settings: dict[str, Any], status: int
) -> None:
    one = {"name": "alice", "shares": "all", **settings}
    caller = sharing({T: table}, recipients=[one])
    assert caller.get("/shares").status == status
    assert (_last(audit)["recipient"], _last(audit)["status"]) == ("alice", status)
    assert Caller(caller.app, "wrong-token-here").get("/shares").status == 401
    assert _last(audit)["recipient"] is None


def test_a_recipient_whose_url_has_ended_is_named(
    table: Path, audit: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = sharing({T: table})
    url = file_url(caller)
    from deltalog._util.clock import now_ms
    from deltalog.sharing.server import endpoints

    monkeypatch.setattr(endpoints, "now_ms", lambda: now_ms() + 10**8)
    assert caller.download(url).status == 403
    assert _last(audit)["recipient"] == "alice"


def test_metrics_ask_for_a_token() -> None:
    token = {"hash": f"sha256:{token_digest('token-of-prometheus')}"}
    open_to_none = app(config_of({T: "/x"}))
    assert ask(open_to_none, "GET", "/metrics").status == 401
    guarded = app(config_of({T: "/x"}, metricsToken=token))
    for value, status in (
        (None, 401),
        ("Bearer wrong-token-here", 401),
        (f"Bearer {TOKEN}", 401),
        ("Bearer token-of-prometheus", 200),
    ):
        headers = {} if value is None else {"Authorization": value}
        assert ask(guarded, "GET", "/metrics", headers=headers).status == status
    assert ask(guarded, "GET", "/health").status == 200


@pytest.mark.parametrize(("more", "status"), [({}, 200), ({"host": "0.0.0.0"}, 401)])  # noqa: S104
def test_metrics_are_open_on_loopback(more: dict[str, Any], status: int) -> None:
    import http.client

    with serving(app(config_of({T: "/x"}, **more))) as url:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        connection.request("GET", "/metrics")
        assert connection.getresponse().status == status
        connection.close()


@pytest.mark.parametrize(("mode", "is_told"), [(0o644, True), (0o640, False), (0o600, False)])
def test_a_configuration_that_all_can_read_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, *, is_told: bool
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps(small_config()))
    path.chmod(mode)
    make_app(ReloadingServer(path).current)
    assert ("every user of this machine can read" in caplog.text) is is_told
    caplog.clear()
    path.chmod(0o600)
    key = tmp_path / "key.pem"
    key.write_text("x")
    key.chmod(mode)
    files = {"certificateFile": str(key), "certificateKeyFile": str(key)}
    path.write_text(json.dumps(small_config(ssl=files)))
    ReloadingServer(path)
    assert ("every user of this machine can read" in caplog.text) is is_told


@pytest.mark.parametrize("settings", [{}, {"rowFilter": "id < 90"}])
def test_signing_keys_overlap(daily: Path, settings: dict[str, Any]) -> None:
    table = {T: {"location": str(daily), "historyShared": True, **settings}}
    before = sharing(table)
    both = sharing(table, signingKey=[OTHER_KEY, KEY])
    after = sharing(table, signingKey=OTHER_KEY)
    body = {"maxFiles": 1, "includeRefreshToken": True}
    first = before.query(T, body)
    token = actions(first, "endStreamAction")[0]["nextPageToken"]
    ids = [actions(first, "file")[0]["id"]]
    url = actions(first, "file")[0]["url"]
    assert before.download(url).body == both.download(url).body != b""
    assert after.download(url).status == 403
    assert after.query(T, {**body, "pageToken": token}).status == 400
    while token is not None:
        reply = both.query(T, {**body, "pageToken": token})
        (file,) = actions(reply, "file")
        ids.append(file["id"])
        assert both.download(file["url"]).status == 200
        token = actions(reply, "endStreamAction")[0].get("nextPageToken")
    whole = [file["id"] for file in actions(before.query(T), "file")]
    assert sorted(ids) == sorted(whole)
    new = both.query(T, body)
    assert after.download(actions(new, "file")[0]["url"]).status == 200
    refresh = actions(new, "endStreamAction")[0]["refreshToken"]
    assert after.query(T, {"refreshToken": refresh}).status == 200


def test_downloads_count_for_the_rate(table: Path) -> None:
    caller = sharing({T: table}, limits={"requestsPerMinute": 3})
    url = file_url(caller)
    assert [caller.download(url).status for _ in range(3)] == [200, 200, 429]
    assert caller.get("/shares").status == 429


def test_queries_of_one_recipient_evict_none_of_another(table: Path) -> None:
    both = [
        {"name": "alice", "token": TOKEN, "shares": "all"},
        {"name": "bob", "token": "token-of-bob", "shares": "all"},
    ]
    server = make_server(parse_config(config_of({T: str(table)}, recipients=both)), KEY.encode())
    alice = Caller(make_app(lambda: server))
    bob = Caller(alice.app, "token-of-bob")

    def begin(caller: Caller, key: str) -> str:
        capabilities = "asyncquery=true;includeendstreamaction=true"
        reply = caller.query(T, {"idempotencyKey": key}, delta_sharing_capabilities=capabilities)
        found: str = actions(reply, "queryStatus")[0]["queryId"]
        return found

    first = begin(bob, "k")
    own = [begin(alice, str(number)) for number in range(1200)]
    poll = f"{path_of(T)}/queries/"
    assert bob.ask("POST", poll + first).status == 200
    # What is kept has a bound; an id that was forgotten says all that it takes to answer it.
    known = server.async_queries._known["alice"]
    assert len(known.queries) <= len(known.ids) <= 1000
    assert alice.ask("POST", poll + own[0]).status == 200
    assert alice.ask("POST", poll + own[-1]).status == 200


@pytest.mark.parametrize("settings", [{}, {"rowFilter": "id < 900"}])
@pytest.mark.parametrize("is_shared", [True, False])
def test_refresh_tokens_end_with_the_version(
    table: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], *, is_shared: bool
) -> None:
    from deltalog._util.clock import now_ms
    from deltalog.sharing.server import endpoints

    own = {"location": str(table), "historyShared": is_shared, **settings}
    caller = sharing({T: own}, refreshTokenTtlMs=3_600_000)
    reply = caller.query(T, {"includeRefreshToken": True})
    token = actions(reply, "endStreamAction")[0]["refreshToken"]
    write_deltalake(table, pa.table({"id": [1]}), mode="overwrite")
    statuses = []
    for minutes in (30, 70):
        monkeypatch.setattr(endpoints, "now_ms", lambda m=minutes: now_ms() + m * 60_000)
        reply = caller.query(T, {"refreshToken": token})
        statuses.append(reply.status)
        if reply.status == 200:
            token = actions(reply, "endStreamAction")[0]["refreshToken"]
    # Where older versions are not shared, no chain of tokens may keep one.
    assert statuses == ([200, 200] if is_shared else [200, 400])


@pytest.mark.parametrize("settings", [{}, {"rowFilter": "id < 900"}])
def test_tokens_end_with_what_is_shared(daily: Path, settings: dict[str, Any]) -> None:
    own = {"location": str(daily), "historyShared": True, **settings}
    caller = sharing({T: own})
    later = sharing({T: {**own, "startVersion": 2}})
    latest_only = sharing({T: {**own, "historyShared": False}})
    refresh = actions(caller.query(T, {"includeRefreshToken": True}), "endStreamAction")[0]
    old = {"version": 1, "maxFiles": 1}
    token = actions(caller.query(T, old), "endStreamAction")[0]["nextPageToken"]
    page = {**old, "pageToken": token}
    assert caller.query(T, page).status == 200
    assert later.query(T, page).status == 400
    assert latest_only.query(T, page).status == 400
    assert later.query(T, {"refreshToken": refresh["refreshToken"]}).status == 200
    newer = sharing({T: {**own, "startVersion": 3}})
    assert newer.query(T, {"refreshToken": refresh["refreshToken"]}).status in {400, 404}


def test_urls_of_changes_end_with_the_history(changed: Path) -> None:
    own = {"location": str(changed), "historyShared": True, "rowFilter": "id < 900"}
    caller = sharing({T: own})
    url = actions(changes(caller, "startingVersion=1"), "cdf")[0]["url"]
    assert caller.download(url).status == 200
    assert sharing({T: {**own, "historyShared": False}}).download(url).status == 404
    assert sharing({T: {**own, "startVersion": 3}}).download(url).status == 404
