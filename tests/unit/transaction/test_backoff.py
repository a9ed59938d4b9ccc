"""How long the next attempt waits, and when there is none."""

from __future__ import annotations

import pytest

from deltalog.errors import (
    CommitRetriesExhaustedError,
)
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.testing.simulation.model import SteadyClock
from deltalog.transaction import (
    Backoff,
    CommitProperties,
    commit,
)
from deltalog.transaction.properties import CommitOptions
from tests.support.contexts import moved
from tests.support.logs import DictStore
from tests.support.transactions import (
    NO_CHECKPOINT,
    new_file,
    paths_of_adds,
    pending,
    table,
)


class RecordingClock(SteadyClock):
    """Remembers how long it was asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        """As `Clock`."""
        self.slept.append(seconds)
        super().sleep(seconds)


class Contended(DictStore):
    """Somebody else is always faster."""

    busy = False

    def put_if_absent(self, path: str, data: bytes) -> None:
        if not self.busy:
            self.busy = True
            rival = load_snapshot(utc_context(self))
            commit(
                pending(self, new_file(path), snapshot=rival), CommitOptions(hooks=NO_CHECKPOINT)
            )
            self.busy = False
        super().put_if_absent(path, data)


def test_retries_wait_longer_and_longer_and_end() -> None:
    store = Contended(dict(table().files))
    clock = RecordingClock()
    backoff = Backoff(clock=clock, jitter=lambda: 1.0, max_retries=9)
    with pytest.raises(CommitRetriesExhaustedError, match=r"10 attempt\(s\)"):
        commit(pending(store, new_file("mine")), backoff=backoff)
    assert clock.slept == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0, 1.0]
    assert "mine" not in paths_of_adds(store)


def test_retries_end_after_a_time() -> None:
    store = Contended(dict(table().files))
    backoff = Backoff(clock=RecordingClock(), jitter=lambda: 1.0, max_wait_ms=5000)
    with pytest.raises(CommitRetriesExhaustedError):
        commit(pending(store, new_file("mine")), backoff=backoff)


def test_the_caller_limits_retries() -> None:
    store = Contended(dict(table().files))
    tx = moved(pending(store, new_file("mine")), clock=RecordingClock())
    with pytest.raises(CommitRetriesExhaustedError):
        commit(tx, CommitOptions(properties=CommitProperties(max_commit_retries=0)))
    assert load_snapshot(utc_context(store)).version == 1


def test_a_wait_is_a_random_part_of_its_limit() -> None:
    clock = RecordingClock()
    Backoff(clock=clock, jitter=lambda: 0.25).wait(1)
    assert clock.slept == [0.005]
    assert all(0 <= Backoff(clock=clock).jitter() < 1 for _ in range(10))


@pytest.mark.protocol("B4-commit-attempts")
def test_a_commit_is_tried_ten_thousand_times_or_ten_minutes() -> None:
    clock = SteadyClock(1_000)
    backoff = Backoff(clock=clock)
    assert (backoff.allows(10_000), backoff.allows(10_001)) == (True, False)
    late = Backoff(clock=SteadyClock(1_000 + 600_000))
    late.started_ms = 1_000
    assert not late.allows(1)
