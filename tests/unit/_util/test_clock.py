from __future__ import annotations

import datetime as dt

from deltalog._util.clock import Clock, SystemClock, now_ms


def test_the_clock_tells_milliseconds_since_1970() -> None:
    clock: Clock = SystemClock()
    before = dt.datetime.now(dt.UTC).timestamp() * 1000  # to compare with
    assert abs(clock.now_ms() - before) < 5000
    assert abs(now_ms() - before) < 5000


def test_time_passes() -> None:
    clock = SystemClock()
    before = clock.now_ms()
    clock.sleep(0.01)
    assert clock.now_ms() >= before + 9
