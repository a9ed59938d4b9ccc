"""Events on their way: in order, bounded, and again after a fork."""

from __future__ import annotations

import logging
import os
import threading

import pytest

from deltalog.integrations.telemetry import Sender


def test_events_arrive_in_order_before_it_closes() -> None:
    found: list[int] = []
    sender = Sender(found.append)
    for number in range(100):
        sender.send(number)
    sender.close()
    assert found == list(range(100))
    sender.send(100)  # closed: nothing comes any more
    sender.close()
    assert len(found) == 100


def test_what_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    found: list[int] = []

    def emit(number: int) -> None:
        if number == 0:
            raise OSError("secret of the backend")
        found.append(number)

    sender = Sender(emit)
    with caplog.at_level(logging.WARNING, "deltalog.telemetry"):
        sender.send(0)
        sender.send(1)
        sender.close()
    assert found == [1]
    assert "OSError" in caplog.text
    assert "secret" not in caplog.text


def test_what_is_too_much_is_dropped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("deltalog.integrations.telemetry._MOST_EVENTS", 2)
    may_go_on, found = threading.Event(), []

    def emit(number: int) -> None:
        may_go_on.wait(30)
        found.append(number)

    sender = Sender(emit)
    with caplog.at_level(logging.WARNING, "deltalog.telemetry"):
        for number in range(10):
            sender.send(number)
    may_go_on.set()
    sender.close()
    assert len(found) in {2, 3}  # one may have left the queue already
    assert "dropped" in caplog.text


def test_a_backend_that_hangs_does_not_keep_the_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("deltalog.integrations.telemetry._CLOSE_SECONDS", 0.05)
    held = threading.Event()
    sender = Sender(lambda _: held.wait(30))
    with caplog.at_level(logging.WARNING, "deltalog.telemetry"):
        sender.send(1)
        sender.close()
    held.set()
    assert "not sent" in caplog.text


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="no forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_begins_anew() -> None:
    read, write = os.pipe()
    sender = Sender(lambda number: os.write(write, bytes([number])))
    sender.send(1)
    child = os.fork()
    if child == 0:
        sender.send(2)
        sender.close()
        os._exit(0)
    os.waitpid(child, 0)
    sender.close()
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert sorted(pipe.read()) == [1, 2]
