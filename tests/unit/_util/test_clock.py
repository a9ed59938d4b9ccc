from __future__ import annotations

import datetime as dt

import pytest

from deltalog._util.clock import Clock, SystemClock, WaitMeter, now_ms


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


class TestWaitMeter:
    """Waiting, as opposed to working."""

    def measured(self, *spent: tuple[float, float]) -> bool:
        """Whether a thread mostly waits that has spent these elapsed and processor seconds."""
        now = [0.0, 0.0]
        meter = WaitMeter(lambda: now[0], lambda: now[1])
        for elapsed, worked in spent:
            with meter.measuring():
                now[0] += elapsed
                now[1] += worked
            now[0] += 100  # time between the blocks does not count
        return meter.mostly_waits

    def test_work_is_no_wait(self) -> None:
        assert not self.measured((1.0, 1.0), (1.0, 0.6))

    def test_short_waits_do_not_count(self) -> None:
        assert not self.measured((0.009, 0.0))

    def test_the_sum_of_waits_counts(self) -> None:
        assert self.measured(*[(0.005, 0.001)] * 3)

    def test_an_exception_ends_the_measurement(self) -> None:
        now = [0.0]
        meter = WaitMeter(lambda: now[0], lambda: 0.0)

        def wait_and_fail() -> None:
            with meter.measuring():
                now[0] += 1
                raise OSError("the disk is gone")

        with pytest.raises(OSError, match="gone"):
            wait_and_fail()
        assert meter.mostly_waits
