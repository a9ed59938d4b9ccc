"""What was read of a local file is kept while the file stays as it was."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from deltalog.storage.stores.local_files import Recent, is_settled, local_state


def aged(path: Path, age_ms: float, *, whole_seconds: bool = False) -> None:
    changed_ns = time.time_ns() - int(age_ms * 1_000_000)
    if whole_seconds:
        changed_ns -= changed_ns % 1_000_000_000
    elif changed_ns % 1_000_000_000 == 0:
        changed_ns -= 1
    os.utime(path, ns=(changed_ns, changed_ns))


@pytest.mark.parametrize(
    ("age_ms", "whole_seconds", "settled"),
    [
        (60_000, False, True),
        (1_000, False, True),
        (-60_000, False, False),
        (60_000, True, True),
        (500, True, False),
    ],
)
def test_a_change_within_the_clocks_step_would_not_show(
    tmp_path: Path, age_ms: float, *, whole_seconds: bool, settled: bool
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    aged(path, age_ms, whole_seconds=whole_seconds)
    assert is_settled(local_state(str(path))) is settled


def test_facts_of_files_that_changed_are_not_given(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for path in (first, second):
        path.write_bytes(b"one")
        aged(path, 60_000)
    states = [local_state(str(path)) for path in (first, second)]
    recent = Recent[str](2)
    recent.keep("both", *states)
    recent.keep("first", states[0])
    assert (recent.get(*states), recent.get(states[0])) == ("both", "first")
    assert recent.get(states[1]) is None
    second.write_bytes(b"more")
    aged(second, 60_000)
    assert recent.get(states[0], local_state(str(second))) is None
    recent.keep("second", states[1])  # the oldest makes room
    assert (recent.get(*states), recent.get(states[1])) == (None, "second")
    recent.forget()
    assert recent.get(states[0]) is None
