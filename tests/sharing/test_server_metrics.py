"""Metrics in Prometheus' format."""

from __future__ import annotations

from deltalog.sharing.server import app
from tests.support.asgi import ask
from tests.support.sharing import Caller, config_of


def test_health_and_metrics(vaccine: Caller) -> None:
    vaccine.get("/shares")
    vaccine.get("/shares/nowhere")
    assert ask(vaccine.app, "GET", "/health").json() == {"status": "ok"}
    text = ask(vaccine.app, "GET", "/metrics").body.decode()
    assert 'deltalog_sharing_requests_total{action="list_shares",status="200"} 1' in text
    assert 'deltalog_sharing_requests_total{action="get_share",status="404"} 1' in text
    assert "vaccine" not in text
    assert "alice" not in text


def test_metrics_can_be_switched_off() -> None:
    silent = app(config_of({"s.d.t": "/x"}, metrics=False))
    assert ask(silent, "GET", "/metrics").status == 404
