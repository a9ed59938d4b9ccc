"""Work for one recipient: bounded, and ended when nobody waits for it."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.sharing.server import app
from deltalog.storage import Store, open_store
from deltalog.testing.stores import CountingStore
from tests.support.asgi import Reply, ask_async, serving
from tests.support.sharing import PREFIX, TOKEN, Caller, actions, config_of, path_of, sharing

T = "s.d.t"
QUERY = f"{PREFIX}{path_of(T)}/query"
BOTH = [
    {"name": "alice", "token": TOKEN, "shares": "all"},
    {"name": "bob", "token": "token-of-bob", "shares": "all"},
]


class GatedStore(CountingStore):
    """Lets nobody read a data file before the gate is open."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.gate = threading.Event()
        self.inside = 0
        self.most_inside = 0
        self._own = threading.Lock()
        self.delay_s = 0.0

    def _pass(self, verb: str, *paths: Any, **more: Any) -> Any:
        path = paths[0][0] if paths and isinstance(paths[0], tuple) else str(paths)
        if ".parquet" in path and "_delta_log" not in path:
            with self._own:
                self.inside += 1
                self.most_inside = max(self.most_inside, self.inside)
            time.sleep(self.delay_s)
            assert self.gate.wait(60)
            with self._own:
                self.inside -= 1
        return super()._pass(verb, *paths, **more)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Sixty files of one row, each in a partition of its own."""
    rows = pa.table({"id": range(60), "p": range(60)})
    write_deltalake(tmp_path / "t", rows, partition_by=["p"])
    return tmp_path / "t"


def _gated(files: Path, **more: Any) -> tuple[GatedStore, Caller]:
    store = GatedStore(open_store(files))
    tables = {
        "s.d.t": {"location": str(files), "rowFilter": "id >= 0"},
        "s.d.plain": {"location": str(files)},
    }
    config = config_of(tables, recipients=BOTH, **more)
    return store, Caller(app(config, make_store=lambda _: store))


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def _until(condition: Any) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to that")


@pytest.mark.parametrize(("lines_at_once", "turns"), [(60, 1), (59, 4)])
def test_a_short_answer_takes_one_turn(
    files: Path, monkeypatch: pytest.MonkeyPatch, lines_at_once: int, turns: int
) -> None:
    monkeypatch.setattr("deltalog.sharing.server.queries.LINES_PER_CHUNK", lines_at_once)
    caller = sharing({T: {"location": str(files)}})
    taken = 0
    run_sync = anyio.to_thread.run_sync

    async def counted(*given: Any, **more: Any) -> Any:
        nonlocal taken
        taken += 1
        return await run_sync(*given, **more)

    monkeypatch.setattr(anyio.to_thread, "run_sync", counted)
    reply = caller.query(T)
    assert len(actions(reply, "file")) == 60
    assert taken == turns


@pytest.mark.parametrize("way", ["query", "download"])
def test_files_of_views_are_written_within_the_limit(files: Path, way: str) -> None:
    store, caller = _gated(files, limits={"concurrentQueries": 6, "queriesPerRecipient": 4})
    urls: list[str] = []
    if way == "download":
        store.gate.set()
        other = sharing({T: {"location": str(files), "rowFilter": "id >= 0"}}, recipients=BOTH)
        urls = [one["url"] for one in actions(other.query(T), "file")]
        store.gate.clear()
    store.most_inside = 0

    async def many() -> tuple[list[Reply], Reply]:
        asked = [asyncio.create_task(_ask(caller, number, urls)) for number in range(45)]
        await _until(lambda: store.inside == 4)
        # Another recipient is answered while the first one's files wait.
        plain = await ask_async(
            caller.app,
            "POST",
            f"{PREFIX}{path_of('s.d.plain')}/query",
            headers=_headers("token-of-bob"),
        )
        health = await ask_async(caller.app, "GET", "/health")
        assert health.status == 200
        store.gate.set()
        return await asyncio.gather(*asked), plain

    replies, plain = asyncio.run(many())
    assert {reply.status for reply in replies} == {200}
    assert plain.status == 200
    assert store.most_inside == 4


async def _ask(caller: Caller, number: int, urls: list[str]) -> Reply:
    if urls:
        target = "/" + urls[number].partition("://")[2].partition("/")[2]
        return await ask_async(caller.app, "GET", target)
    # Each of them is about another file, so none waits for another one's.
    body = json.dumps({"predicateHints": [f"p = {number}"]}).encode()
    return await ask_async(caller.app, "POST", QUERY, headers=_headers(TOKEN), body=body)


def test_all_recipients_together_are_bounded(files: Path) -> None:
    store, caller = _gated(files, limits={"concurrentQueries": 5, "queriesPerRecipient": 4})

    async def many() -> None:
        tokens = [TOKEN, "token-of-bob"] * 8
        asked = [
            asyncio.create_task(
                ask_async(
                    caller.app,
                    "POST",
                    QUERY,
                    headers=_headers(token),
                    body=json.dumps({"predicateHints": [f"p = {number}"]}).encode(),
                )
            )
            for number, token in enumerate(tokens)
        ]
        await _until(lambda: store.inside == 5)
        store.gate.set()
        await asyncio.gather(*asked)

    asyncio.run(many())
    assert store.most_inside == 5


def _connect(url: str) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request("POST", QUERY, headers=_headers(TOKEN))
    return connection


def _running(url: str) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    (line,) = [one for one in text.splitlines() if one.startswith("deltalog_sharing_running")]
    return int(line.split()[1]) - 1  # itself


@pytest.fixture
def slow(files: Path) -> Iterator[tuple[GatedStore, str]]:
    store, caller = _gated(files, limits={"queriesPerRecipient": 1})
    store.gate.set()
    store.delay_s = 0.05
    with serving(caller.app) as url:
        yield store, url


def _wait_until_idle(url: str) -> None:
    for _ in range(600):
        if _running(url) == 0:
            return
        time.sleep(0.02)
    raise AssertionError("requests are at work")


def test_work_ends_when_the_client_is_gone(slow: tuple[GatedStore, str]) -> None:
    store, url = slow
    connection = _connect(url)
    connection.getresponse().read(10)  # the first lines are there
    connection.close()
    _wait_until_idle(url)
    read = {path for path in store.paths() if "p=" in path}
    assert 0 < len(read) < 30


def test_who_waits_is_forgotten_when_he_is_gone(
    slow: tuple[GatedStore, str], caplog: pytest.LogCaptureFixture
) -> None:
    store, url = slow
    store.gate.clear()
    with caplog.at_level(logging.INFO, logger="deltalog.sharing.audit"):
        first = _connect(url)
        waiting = [_connect(url) for _ in range(5)]
        while store.inside == 0:
            time.sleep(0.005)
        for one in waiting:
            one.close()
        for _ in range(600):
            if _running(url) == 1:
                break
            time.sleep(0.02)
        # All but the first one have ended, although the first one is still at work.
        assert _running(url) == 1
        first.close()
        store.gate.set()
        _wait_until_idle(url)
    with suppress(OSError):
        first.close()
    told = [json.loads(one.getMessage()) for one in caplog.records]
    asked = [one for one in told if one["action"] == "query"]
    assert [(one["complete"], one["files"]) for one in asked[:5]] == [(False, 0)] * 5


SQL = " OR ".join(f"id = {number}" for number in range(300))[:3500].rpartition(" OR ")[0]


def _hints_used(caplog: pytest.LogCaptureFixture) -> int:
    found = json.loads(caplog.messages[-1])["hints"]
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize(
    ("hints", "limits", "used"),
    [
        (["id = 1"] * 50, {}, 50),
        (["id = 1"] * 50, {"hintBytes": 60}, 10),
        ([SQL] * 100, {}, 6),  # as many operations as a JSON hint may have
        ([SQL + ")"] * 100, {}, 9),  # what cannot be parsed costs, too
        ([SQL] * 100, {"hintMilliseconds": 1}, 1),
        (["nowhere = 1"] * 10, {}, 0),
    ],
)
def test_hints_have_a_budget(
    files: Path,
    caplog: pytest.LogCaptureFixture,
    hints: list[str],
    limits: dict[str, int],
    used: int,
) -> None:
    caller = sharing({T: files}, limits=limits)
    with caplog.at_level(logging.INFO, logger="deltalog.sharing.audit"):
        assert caller.query(T, {"predicateHints": hints}).status == 200
    found = _hints_used(caplog)
    assert found <= used if SQL in hints[0] else found == used


def test_a_json_hint_shares_the_budget(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    column = {"op": "column", "name": "id", "valueType": "long"}
    equal = {"op": "equal", "children": [column, {**column, "op": "literal", "value": "3"}]}
    caller = sharing({T: files}, limits={"hintBytes": 1000})
    for count, used in ((2, 1), (60, 0)):
        hint = json.dumps({"op": "or", "children": [equal] * count})
        with caplog.at_level(logging.INFO, logger="deltalog.sharing.audit"):
            reply = caller.query(T, {"jsonPredicateHints": hint})
        assert _hints_used(caplog) == used
        assert len(actions(reply, "file")) == (1 if used else 60)


@pytest.mark.parametrize("settings", [{}, {"rowFilter": "id >= 0"}])
def test_pages_use_the_hints_of_the_first_one(files: Path, settings: dict[str, Any]) -> None:
    hints = ["p >= 10", "p < 40", "p <> 20"]
    table = {T: {"location": str(files), **settings}}
    plenty, poor = sharing(table), sharing(table, limits={"hintBytes": 14})
    for one, other, count in ((plenty, poor, 29), (poor, plenty, 30)):
        ids, token, caller = [], None, one
        while True:
            body: dict[str, Any] = {"predicateHints": hints, "maxFiles": 7}
            reply = caller.query(T, body if token is None else {**body, "pageToken": token})
            ids += [file["id"] for file in actions(reply, "file")]
            token = actions(reply, "endStreamAction")[0].get("nextPageToken")
            if token is None:
                break
            caller = other
        assert (len(ids), len(set(ids))) == (count, count)
