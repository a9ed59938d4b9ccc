"""Readiness and liveness: what is checked, how long, and that nothing is told."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.sharing.server import app, parse_config
from tests.support.asgi import Reply, ask
from tests.support.logs import DictStore
from tests.support.sharing import config_of

WATCHED = {"tables": ["s.d.t"], "timeoutSeconds": 1}


def _config(table: Path, **more: Any) -> dict[str, Any]:
    return config_of({"s.d.t": str(table)}, **{"readiness": WATCHED, **more})


def _pass_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what was found be old, so that it is looked for again."""
    monkeypatch.setattr("deltalog.sharing.server.application._KEEP_SECONDS", 0.0)


def test_a_process_lives_and_is_ready(table: Path) -> None:
    served = app(_config(table))
    for path in ("/health", "/health/live", "/health/ready"):
        reply = ask(served, "GET", path)
        assert (reply.status, reply.json()) == (200, {"status": "ok"})


def test_a_table_that_is_gone_is_no_death(
    table: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _pass_a_second(monkeypatch)
    served = app(_config(table))
    with caplog.at_level(logging.INFO, "deltalog.sharing"):
        moved = table.with_name("moved")
        shutil.move(table, moved)
        replies = [ask(served, "GET", "/health/ready") for _ in range(3)]
        assert ask(served, "GET", "/health/live").status == 200
        shutil.move(moved, table)
        assert ask(served, "GET", "/health/ready").status == 200
    for reply in replies:
        assert (reply.status, reply.body) == (503, b'{"status":"unavailable"}')
    told = [one.getMessage() for one in caplog.records if one.name == "deltalog.sharing"]
    assert [text for text in told if "ready" in text] == [
        "not ready: s.d.t: TableNotFoundError",  # once, not for every probe
        "ready again",
    ]


def test_a_store_that_hangs_is_asked_once(table: Path) -> None:
    held, num_calls = threading.Event(), [0]

    class Slow(DictStore):
        def list_from(self, directory: str, first: str) -> Any:
            num_calls[0] += 1
            held.wait(30)
            return super().list_from(directory, first)

    store = Slow()
    held.set()
    write_deltalake(store, pa.table({"a": [1]}))
    held.clear()
    num_calls[0] = 0
    served = app(_config(table), make_store=lambda _: store)
    began = time.monotonic()
    assert ask(served, "GET", "/health/ready").status == 503
    assert 0.9 <= time.monotonic() - began < 5
    assert ask(served, "GET", "/health/ready").status == 503
    assert time.monotonic() - began < 5
    assert num_calls == [1]
    assert ask(served, "GET", "/health/live").status == 200
    held.set()
    assert _until(served, 200).status == 200


def _until(served: Any, status: int) -> Reply:
    for _ in range(300):
        reply = ask(served, "GET", "/health/ready")
        if reply.status == status:
            break
        time.sleep(0.02)
    return reply


def test_probes_are_not_listings(table: Path) -> None:
    """However often strangers ask, the store is asked once a second at most."""
    num_listings = [0]

    class Counting(DictStore):
        def list_from(self, directory: str, first: str) -> Any:
            num_listings[0] += 1
            return super().list_from(directory, first)

    store = Counting()
    write_deltalake(store, pa.table({"a": [1]}))
    served = app(_config(table), make_store=lambda _: store)
    assert ask(served, "GET", "/health/ready").status == 200
    first = num_listings[0]
    began = time.monotonic()
    for _ in range(20):
        assert ask(served, "GET", "/health/ready").status == 200
    assert num_listings[0] - first <= 2 * (time.monotonic() - began) + 2


def test_a_cache_that_cannot_be_written(tmp_path: Path, table: Path) -> None:
    part = {"s.d.t": {"location": str(table), "columns": ["id"]}}
    gone = str(tmp_path / "nowhere")
    assert ask(app(config_of(part, cacheDirectory=gone)), "GET", "/health/ready").status == 503
    whole = {"s.d.t": str(table)}
    assert ask(app(config_of(whole, cacheDirectory=gone)), "GET", "/health/ready").status == 200


def test_names_are_those_of_shared_tables() -> None:
    config = config_of({"s.d.Flights": "/x"})
    found = parse_config({**config, "readiness": {"tables": "S.D.flights"}})
    assert found.readiness.tables == ("s.d.Flights",)
    assert found.readiness.timeout_seconds == 5
    with pytest.raises(InvalidInputError, match=r"tables: there is no table 's\.d\.fligths'; did"):
        parse_config({**config, "readiness": {"tables": ["s.d.fligths"]}})
    with pytest.raises(InvalidInputError, match="timeoutSeconds: expected 1 or more"):
        parse_config({**config, "readiness": {"timeoutSeconds": 0}})
    with pytest.raises(InvalidInputError, match="unknown setting"):
        parse_config({**config, "readiness": {"tablse": []}})
