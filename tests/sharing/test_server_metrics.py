"""Metrics in Prometheus' format."""

from __future__ import annotations

from pathlib import Path

from deltalog.sharing.server import app
from deltalog.sharing.server.middleware import Metrics
from tests.support.asgi import ask
from tests.support.sharing import Caller, config_of

TOKEN_OF_METRICS = "token-of-prometheus"  # noqa: S105 - of a test


def test_health_and_metrics(tmp_path: Path) -> None:
    tables = {"vaccine.d.t": str(tmp_path / "none")}
    vaccine = Caller(app(config_of(tables, metricsToken={"token": TOKEN_OF_METRICS})))
    vaccine.get("/shares")
    vaccine.get("/shares/nowhere")
    assert ask(vaccine.app, "GET", "/health").json() == {"status": "ok"}
    headers = {"Authorization": f"Bearer {TOKEN_OF_METRICS}"}
    text = ask(vaccine.app, "GET", "/metrics", headers=headers).body.decode()
    assert 'deltalog_sharing_requests_total{action="list_shares",status="200"} 1' in text
    assert 'deltalog_sharing_requests_total{action="get_share",status="404"} 1' in text
    assert "vaccine" not in text
    assert "alice" not in text


def test_metrics_can_be_switched_off() -> None:
    silent = app(config_of({"s.d.t": "/x"}, metrics=False))
    assert ask(silent, "GET", "/metrics").status == 404


def test_the_text_of_prometheus() -> None:
    metrics = Metrics()
    metrics.begin()
    metrics.begin()
    metrics.end("query", 200, 0.5, 100, 3)
    assert metrics.text() == (
        "# HELP deltalog_sharing_requests_total Requests by endpoint and status.\n"
        "# TYPE deltalog_sharing_requests_total counter\n"
        'deltalog_sharing_requests_total{action="query",status="200"} 1\n'
        "# HELP deltalog_sharing_request_seconds How long requests took.\n"
        "# TYPE deltalog_sharing_request_seconds histogram\n"
        'deltalog_sharing_request_seconds_bucket{action="query",le="0.005"} 0\n'
        'deltalog_sharing_request_seconds_bucket{action="query",le="0.02"} 0\n'
        'deltalog_sharing_request_seconds_bucket{action="query",le="0.1"} 0\n'
        'deltalog_sharing_request_seconds_bucket{action="query",le="0.5"} 1\n'
        'deltalog_sharing_request_seconds_bucket{action="query",le="2.0"} 1\n'
        'deltalog_sharing_request_seconds_bucket{action="query",le="10.0"} 1\n'
        'deltalog_sharing_request_seconds_bucket{action="query",le="60.0"} 1\n'
        'deltalog_sharing_request_seconds_bucket{action="query",le="+Inf"} 1\n'
        'deltalog_sharing_request_seconds_sum{action="query"} 0.500000\n'
        'deltalog_sharing_request_seconds_count{action="query"} 1\n'
        "# HELP deltalog_sharing_sent_bytes_total Bytes of bodies.\n"
        "# TYPE deltalog_sharing_sent_bytes_total counter\n"
        "deltalog_sharing_sent_bytes_total 100\n"
        "# HELP deltalog_sharing_told_files_total Files in answers.\n"
        "# TYPE deltalog_sharing_told_files_total counter\n"
        "deltalog_sharing_told_files_total 3\n"
        "# HELP deltalog_sharing_running_requests Requests at work.\n"
        "# TYPE deltalog_sharing_running_requests gauge\n"
        "deltalog_sharing_running_requests 1\n"
    )
