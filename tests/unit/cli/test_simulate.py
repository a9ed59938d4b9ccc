"""`deltalog simulate`."""

from __future__ import annotations

import pytest

from deltalog.testing import simulation
from deltalog.testing.simulation import HistoryReport, WrongHistoryError
from tests.support.command_line import run


def test_one_history_is_told_step_by_step() -> None:
    told = run("simulate", "--seed", 3).stdout
    report = simulation.simulate(3)
    assert told.splitlines()[: len(report.trace)] == report.trace
    assert f"digest {report.digest}" in told
    assert f"1 of 1 histories are right: {report.versions} versions" in told


def test_many_histories_are_counted() -> None:
    found = run("simulate", "--seed", 5, "--histories", 3)
    versions = sum(simulation.simulate(seed).versions for seed in (5, 6, 7))
    assert found.stdout == f"3 of 3 histories are right: {versions} versions\n"
    assert "histories a second" in found.stderr


def test_a_wrong_history_is_told_with_the_command_that_replays_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = simulation.simulate

    def fails_at_two(seed: int) -> HistoryReport:
        if seed == 2:
            raise WrongHistoryError(seed, "row 7 is missing", ["1 writer 0 #0 put"])
        return real(seed)

    monkeypatch.setattr(simulation, "simulate", fails_at_two)
    told = run("simulate", "--seed", 1, "--histories", 2, code=1).stdout
    assert "row 7 is missing; replay it with: deltalog simulate --seed 2" in told
    assert "1 of 2 histories are right" in told
    assert "1 writer 0 #0 put" in run("simulate", "--seed", 2, code=1).stdout
