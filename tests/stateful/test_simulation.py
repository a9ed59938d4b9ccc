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

pytestmark = pytest.mark.slow("writers are interleaved in many ways")

HISTORIES = int(os.environ.get("DELTALOG_HISTORIES", "100"))
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
        del data
        if verb == "put_if_absent" and paths[0].endswith(".json"):
            self.store.delete_many(paths)
        return act()


class ForgetfulStore(_Wrapper):
    """Acknowledges every third file, and does not keep it."""

    puts = 0

    def _pass(
        self, verb: str, paths: tuple[str, ...], act: Callable[[], _Result], data: bytes = b""
    ) -> _Result:
        del data
        answer = act()
        if verb == "put_if_absent":
            self.puts += 1
            if self.puts % 3 == 0:
                self.store.delete_many(paths)
        return answer


@pytest.mark.parametrize("broken", [OverwritingStore, ForgetfulStore])
def test_a_broken_store_is_found(broken: Callable[[Store], Store]) -> None:
    found = next(error for error in (_wrong(seed, broken) for seed in range(200)) if error)
    assert f"deltalog simulate --seed {found.seed}" in str(found)
    again = _wrong(found.seed, broken)
    assert again is not None
    assert again.trace == found.trace
    assert str(again) == str(found)


def _wrong(seed: int, broken: Callable[[Store], Store]) -> WrongHistoryError | None:
    try:
        simulate(seed, wrap_store=broken)
    except WrongHistoryError as error:
        return error
    return None
