"""Simulated machines: their time and chance, for the threads that are on them."""

from __future__ import annotations

import random
import secrets
import threading
import time
import uuid
from typing import Any

from deltalog._util.clock import SystemClock, now_ms
from deltalog.testing.simulation.model import Machine, SteadyClock, simulated


def _asked() -> list[Any]:
    time.sleep(60)
    return [uuid.uuid4(), random.random(), secrets.choice("abcdefgh"), now_ms()]


def test_a_machine_answers_from_its_seed_and_its_clock() -> None:
    clock = SteadyClock(1_000_000)
    ahead = Machine(clock, random.Random(1), skew_ms=5000)
    with simulated():
        with ahead.on():
            first = _asked()
        with Machine(SteadyClock(1_000_000), random.Random(1), skew_ms=5000).on():
            assert _asked() == first
        with Machine(clock, random.Random(2)).on():
            assert _asked()[0] != first[0]
            assert SystemClock().now_ms() > first[-1] + 60_000 - 5000
    assert first[0].version == 4
    assert first[-1] == 1_000_000 + 60_000 + 5000 + 1


def test_other_threads_are_answered_as_ever() -> None:
    real = time.time_ns()
    found: list[int] = []
    with simulated(), Machine(SteadyClock(0), random.Random(1)).on():
        thread = threading.Thread(target=lambda: found.append(time.time_ns()))
        thread.start()
        thread.join()
        assert time.time_ns() < real
    assert found[0] >= real
    assert time.time_ns() >= real


def test_machines_take_turns_in_one_thread() -> None:
    clock = SteadyClock(0)
    with simulated(), Machine(clock, random.Random(1), skew_ms=1000).on():
        with Machine(clock, random.Random(1), skew_ms=2000).on():
            assert now_ms() == 2001
        assert now_ms() == 1002
