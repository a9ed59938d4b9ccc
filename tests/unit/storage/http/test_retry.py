"""When requests are sent again."""

from __future__ import annotations

import pytest

from deltalog.sharing.client import Retry
from deltalog.storage.http.client import is_retryable, retry_after_ms


@pytest.mark.protocol("SHARE-GEN-10")
def test_delays_double_up_to_a_limit() -> None:
    retry = Retry(attempts=10, first_delay_ms=100, longest_delay_ms=1000)
    delays = [retry.delay_ms(failures, jitter=lambda: 1.0) for failures in range(1, 10)]
    assert delays == [100, 200, 400, 800, 1000, 1000, 1000, 1000, 1000]
    assert retry.delay_ms(10) is None
    assert retry.delay_ms(1, jitter=lambda: 0.0) == 50


@pytest.mark.protocol("SHARE-GEN-10")
def test_the_server_may_say_how_long_to_wait() -> None:
    retry = Retry(longest_wait_ms=60_000)
    assert retry.delay_ms(1, 7000) == 7000
    assert retry.delay_ms(1, 61_000) is None  # it is not worth while to wait
    assert retry_after_ms("7", 0) == 7000
    assert retry_after_ms("Thu, 01 Jan 1970 00:00:09 GMT", 4000) == 5000
    assert retry_after_ms("Thu, 01 Jan 1970 00:00:01 GMT", 4000) == 0
    assert [retry_after_ms(text, 0) for text in (None, "", "soon", "-1")] == [None] * 4


def test_which_faults_pass() -> None:
    passing = [status for status in range(200, 600) if is_retryable(status)]
    assert [status for status in passing if status < 500] == [408, 425, 429]
    assert not {501, 505} & set(passing)
