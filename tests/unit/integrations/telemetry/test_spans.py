"""Spans of OpenTelemetry, in the exporter of its own SDK."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import ConstraintViolationError
from deltalog.sharing.server import app
from deltalog.telemetry import Watching, watch_with_opentelemetry
from tests.support.asgi import ask
from tests.support.sharing import PREFIX, TOKEN, Caller, config_of, path_of

memory = pytest.importorskip(
    "opentelemetry.sdk.trace.export.in_memory_span_exporter",
    reason="opentelemetry-sdk is not installed",
)

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}


class Spans:
    """The spans that have ended."""

    def __init__(self) -> None:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor

        self.exporter = memory.InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def named(self, name: str) -> list[Any]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> Any:
        (found,) = self.named(name)
        return found


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
def watching(spans: Spans) -> Iterator[Watching]:
    with watch_with_opentelemetry(spans.provider) as found:
        yield found


@pytest.mark.usefixtures("watching")
def test_an_operation_has_its_commit_as_a_child(spans: Spans, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(table, pa.table({"id": [1, 2, 3]}))
    spans.exporter.clear()
    write_deltalake(table, pa.table({"id": [4]}), mode="append")
    operation, commit = spans.one("deltalog WRITE"), spans.one("deltalog commit")
    assert commit.parent.span_id == operation.context.span_id
    assert operation.parent is None
    assert operation.attributes["deltalog.table"].endswith("/t")
    assert operation.attributes["deltalog.version"] == 1
    assert operation.attributes["deltalog.num_added_files"] == 1
    assert operation.attributes["deltalog.num_added_bytes"] > 0
    assert operation.status.is_ok
    checksum = spans.one("deltalog checksum")
    assert checksum.parent.span_id == operation.context.span_id


@pytest.mark.usefixtures("watching")
def test_an_operation_that_fails_is_an_error(spans: Spans, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(table, pa.table({"id": [1]}))
    DeltaTable(table).alter.add_constraint({"small": "id < 100"})
    spans.exporter.clear()
    with pytest.raises(ConstraintViolationError):
        write_deltalake(table, pa.table({"id": [424242]}), mode="append")
    operation = spans.one("deltalog WRITE")
    assert operation.status.status_code.name == "ERROR"
    assert operation.attributes["error.type"] == "ConstraintViolationError"
    assert spans.named("deltalog commit") == []
    # Values of rows are none of a tracing backend's business.
    assert "424242" not in operation.to_json()


def test_stopping_stops(spans: Spans, watching: Watching, tmp_path: Path) -> None:
    watching.stop()
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    assert spans.exporter.get_finished_spans() == ()


@pytest.fixture
def caller(tmp_path: Path) -> Caller:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    return Caller(app(config_of({"s.d.t": str(tmp_path / "t")})))


@pytest.mark.usefixtures("watching")
def test_a_request_is_a_span_with_its_work_inside(spans: Spans, caller: Caller) -> None:
    spans.exporter.clear()
    assert caller.query("s.d.t", {}, **PARENT).status == 200
    request = spans.one("deltalog query")
    assert request.kind.name == "SERVER"
    assert request.parent is None  # recipients are strangers
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["deltalog.table"] == "s/d/t"
    assert request.attributes["deltalog.recipient"] == "alice"
    assert request.attributes["deltalog.version"] == 0
    assert request.attributes["deltalog.files"] == 1
    (answer, *_) = spans.named("deltalog answer")
    assert answer.parent.span_id == request.context.span_id
    told = "".join(span.to_json() for span in spans.exporter.get_finished_spans())
    assert TOKEN not in told
    assert "X-Amz-Signature" not in told


def test_a_proxy_may_be_trusted_with_parents(spans: Spans, caller: Caller) -> None:
    with watch_with_opentelemetry(spans.provider, trusts_parents=True):
        assert caller.query("s.d.t", {}, **PARENT).status == 200
    assert format(spans.one("deltalog query").context.trace_id, "032x") == TRACE


@pytest.mark.usefixtures("watching")
def test_a_refusal_is_no_error_and_a_defect_is_one(spans: Spans, caller: Caller) -> None:
    target = f"{PREFIX}{path_of('s.d.t')}/query"
    assert ask(caller.app, "POST", target).status == 401
    refused = spans.one("deltalog query")
    assert refused.attributes["http.response.status_code"] == 401
    assert refused.status.status_code.name == "UNSET"
