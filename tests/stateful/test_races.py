"""Processes that append to one table at once: none loses a row, none fails.

`DELTALOG_RACE=32x100` makes it a long run; `make soak` does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.emulators import Emulator
from tests.support.racing import Race, race

pytestmark = pytest.mark.slow("processes race")

PROCESSES, APPENDS = map(int, os.environ.get("DELTALOG_RACE", "4x8").split("x"))


def _check(found: Race) -> None:
    expected = range(PROCESSES * APPENDS)
    sys.stderr.write(
        f"\n{PROCESSES} x {APPENDS}: {found.versions} commits, {found.retries} lost attempts "
        f"(at most {found.most_retries} for one commit), {found.seconds:.1f} s\n"
    )
    assert found.failures == []
    assert found.versions == len(expected)
    assert sorted(found.rows) == list(expected)
    assert set(found.rows.values()) == {1}


@pytest.mark.protocol("LOG-06", "OV-02", "OV-05", "B-01")
def test_racing_on_local_files(tmp_path: Path) -> None:
    _check(race(str(tmp_path / "a table"), {}, processes=PROCESSES, appends=APPENDS))


@pytest.mark.emulator
@pytest.mark.protocol("LOG-06", "OV-05", "B-01")
def test_racing_on_s3(s3: Emulator) -> None:
    _check(race(s3.url, s3.options, processes=PROCESSES, appends=APPENDS))


@pytest.mark.emulator
@pytest.mark.protocol("LOG-06", "OV-05", "B-01")
def test_racing_on_azure(azure: Emulator) -> None:
    _check(race(azure.url, azure.options, processes=PROCESSES, appends=APPENDS))
