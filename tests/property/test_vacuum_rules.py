"""Vacuum deletes exactly the files that the retention rules give up, in every pair of lives.

The specification (ledger D-45 … D-49) is `may_go`: a file that is live stays, and so does one that
left within the retention, or that is so young that its commit may still come. A file that no commit
ever named is found by a full vacuum only.
"""

from __future__ import annotations

from itertools import product
from typing import Literal

import pytest

from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.engine import LocalEngine
from deltalog.operations.vacuum import plan_vacuum
from tests.support import logs

DAY_MS = 86_400_000
START_MS = 1_700_000_000_000 // DAY_MS * DAY_MS
NOW, RETENTION = 20, 7
Event = tuple[int, Literal["written", "added", "removed"]]
Life = tuple[Event, ...]
Mode = Literal["lite", "full"]
LIVES: tuple[Life, ...] = (
    ((1, "written"),),
    ((15, "written"),),
    ((1, "written"), (2, "added")),
    ((1, "written"), (19, "added")),
    ((15, "written"), (16, "added")),
    ((1, "written"), (2, "added"), (3, "removed")),
    ((1, "written"), (2, "added"), (18, "removed")),
    ((1, "written"), (2, "added"), (3, "removed"), (4, "added")),
    ((1, "written"), (2, "added"), (3, "removed"), (18, "added")),
    ((1, "written"), (2, "added"), (3, "removed"), (4, "added"), (5, "removed")),
    ((1, "written"), (2, "added"), (3, "removed"), (4, "added"), (18, "removed")),
    ((1, "written"), (2, "added"), (3, "removed"), (17, "added"), (18, "removed")),
    ((15, "written"), (16, "added"), (17, "removed")),
)


def may_go(life: Life, mode: Mode) -> bool:
    """Whether a vacuum on day `NOW` may delete a file."""
    oldest_kept = NOW - RETENTION
    last_day, last = life[-1]
    if last == "added":
        return False
    if last == "removed":
        return last_day < oldest_kept
    return mode == "full" and last_day < oldest_kept


def _table(lives: dict[str, Life]) -> logs.DictStore:
    store = logs.DictStore()
    configuration = {"delta.deletedFileRetentionDuration": f"interval {RETENTION} days"}
    logs.commit(
        store, 0, logs.PROTOCOL, logs.metadata(configuration=configuration), time_ms=START_MS
    )
    version = 0
    events = sorted((day, path, what) for path, life in lives.items() for day, what in life)
    for day, path, what in events:
        time_ms = START_MS + day * DAY_MS
        if what == "written":
            store.put(path, b"data")
            store.times_ms[path] = time_ms
            continue
        version += 1
        action = (
            logs.add(path, size=4)
            if what == "added"
            else logs.remove(path, deletionTimestamp=time_ms)
        )
        logs.commit(store, version, action, time_ms=time_ms)
    return store


@pytest.mark.protocol("D-47", "D-49", "OV-08")
@pytest.mark.parametrize("mode", ["lite", "full"])
def test_vacuum_deletes_what_the_rules_give_up(mode: Mode) -> None:
    for first, second in product(LIVES, repeat=2):
        lives = {"a.parquet": first, "b.parquet": second}
        snapshot = load_snapshot(utc_context(_table(lives)))
        now_ms = START_MS + NOW * DAY_MS
        plan = plan_vacuum(snapshot, mode=mode, now_ms=now_ms, engine=LocalEngine())
        expected = {path for path, life in lives.items() if may_go(life, mode)}
        assert set(plan.paths) == expected, lives
