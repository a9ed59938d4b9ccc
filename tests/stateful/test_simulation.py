"""Simulated histories: every one ends in a right table, each can be replayed, and bugs are found.

`DELTALOG_HISTORIES=100000` makes it a long run; `make soak` does. A failure names its seed and the
command that replays it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import TypeVar

import pytest

from deltalog.storage.store import Store
from deltalog.testing.simulation import WrongHistoryError, simulate
from deltalog.testing.stores import _Wrapper

HISTORIES = int(os.environ.get("DELTALOG_HISTORIES", "200"))
PARTS = 4
REPLAYED = 12
_Result = TypeVar("_Result")


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.protocol(
    "OV-01", "OV-02", "OV-04", "OV-05", "LOG-06", "D-27", "D-33", "D-37", "D-49", "D-61", "TXN-03"
)
def test_every_history_leaves_a_right_table(part: int) -> None:
    versions = sum(simulate(seed).versions for seed in range(part, HISTORIES, PARTS))
    assert versions >= HISTORIES // PARTS


def test_a_seed_gives_the_same_history_in_every_process() -> None:
    """Whatever was played before, and in whichever order sets are iterated."""
    seeds = range(1000, 1000 + REPLAYED)
    code = (
        "import sys\n"
        "from deltalog.testing.simulation import simulate\n"
        "print(*[simulate(seed).digest for seed in map(int, sys.argv[1:])])\n"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code, *map(str, order)],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            text=True,
        ).stdout.split()
        for hash_seed, order in (("1", seeds), ("2", reversed(seeds)))
    ]
    assert found[0] == found[1][::-1] == [simulate(seed).digest for seed in seeds]
    assert len(set(found[0])) == REPLAYED


class OverwritingStore(_Wrapper):
    """Never says that a commit is there already: the last writer of a version wins."""

    def _pass(
        self, verb: str, paths: tuple[str, ...], act: Callable[[], _Result], data: bytes = b""
    ) -> _Result:
        if verb == "put_if_absent" and paths[0].endswith(".json"):
            self.store.delete_many(paths)
        return act()


class ForgetfulStore(_Wrapper):
    """Does not keep the deletion vectors that it was given."""

    def _pass(
        self, verb: str, paths: tuple[str, ...], act: Callable[[], _Result], data: bytes = b""
    ) -> _Result:
        answer = act()
        if verb == "put_if_absent" and paths[0].endswith(".bin"):
            self.store.delete_many(paths)
        return answer


@pytest.mark.parametrize("broken", [OverwritingStore, ForgetfulStore])
def test_a_broken_store_is_found(broken: Callable[[Store], Store]) -> None:
    with pytest.raises(WrongHistoryError, match="deltalog simulate --seed") as caught:
        for seed in range(200):
            simulate(seed, wrap_store=broken)
    again = pytest.raises(WrongHistoryError, simulate, caught.value.seed, wrap_store=broken)
    assert again.value.trace == caught.value.trace
    assert str(again.value) == str(caught.value)
