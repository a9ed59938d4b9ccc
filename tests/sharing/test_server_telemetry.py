"""Telemetry as the configuration of a server has it, in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.sharing.server import parse_config
from deltalog.sharing.server.config import TelemetryConfig
from tests.support.lineage import LineageBackend
from tests.support.sharing import small_config
from tests.support.sharing_process import config_of, running_server


@pytest.fixture
def backend() -> Iterator[LineageBackend]:
    found = LineageBackend()
    yield found
    found.close()


def _wait_for(holds: Callable[[], bool]) -> None:
    for _ in range(500):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come")


def test_a_server_tells_of_its_queries(tmp_path: Path, backend: LineageBackend) -> None:
    pytest.importorskip("openlineage.client", reason="openlineage-python is not installed")
    pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    telemetry = {
        "openTelemetry": True,
        "openLineageUrl": backend.url,
        "openLineageApiKey": "a-key-of-marquez",
        "namespace": "lake",
    }
    config = {**config_of(tmp_path / "t"), "telemetry": telemetry}
    with running_server(tmp_path, config) as server:
        server.file_url()
        _wait_for(lambda: len(backend.events) == 2)
        log = server.log.read_text()
    assert backend.states() == [("START", "sharing.alice"), ("COMPLETE", "sharing.alice")]
    assert backend.events[0]["job"]["namespace"] == "lake"
    assert backend.headers[0]["Authorization"] == "Bearer a-key-of-marquez"
    assert "the process has no tracer provider" in log
    assert "a-key-of-marquez" not in log


def test_nothing_is_told_unless_it_is_asked_for() -> None:
    assert parse_config(small_config()).telemetry == TelemetryConfig()
    assert TelemetryConfig().opentelemetry is False
    assert TelemetryConfig().openlineage_url is None
    assert "secret" not in repr(TelemetryConfig(openlineage_api_key="secret"))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"openLineageUrl": "file:///etc/passwd"}, "openLineageUrl: expected a URL that begins"),
        ({"openTelemetry": "yes"}, "openTelemetry: expected true or false"),
        ({"opentelemetry": True}, "did you mean 'openTelemetry'"),
    ],
)
def test_what_is_wrong_is_refused(section: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_config(small_config(telemetry=section))
