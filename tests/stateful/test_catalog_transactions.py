"""Transactions over several tables: a machine dies, or meets another, at each of its calls.

Whatever happens, no table gets its commit twice, a recovery completes what has a journal or names
what it cannot complete, and no file of a table is lost.

Every call from the last checks on; those of staging with `DELTALOG_HISTORIES` (`make test-long`,
`make soak`), else an eighth of them.
"""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from deltalog import write_deltalake
from deltalog.errors import CommitConflictError, DeltaError, TransactionIncompleteError
from deltalog.table.catalog_transaction import PartState
from tests.support.catalog_transactions import (
    AFTER,
    BEFORE,
    NAMES,
    Fate,
    Machine,
    Place,
    change,
    transactions,
)

pytestmark = pytest.mark.slow("writers are interleaved in many ways")

IS_LONG = "DELTALOG_HISTORIES" in os.environ
DEATHS = [Fate.DIES_BEFORE, Fate.DIES_AFTER]


@pytest.fixture(scope="module")
def tables() -> Place:
    return Place.new()


def try_change(place: Place, machine: Machine) -> DeltaError | None:
    try:
        change(place, machine)
    except DeltaError as error:
        return error
    return None


@pytest.fixture(scope="module")
def calls(tables: Place) -> list[int]:
    """The numbers of the calls of a transaction at which something happens."""
    machine = Machine()
    place = tables.copy()
    change(place, machine)
    assert place.rows() == AFTER
    last_checks = machine.journal_at - 8
    return [
        number
        for number in range(1, machine.calls + 1)
        if IS_LONG or number >= last_checks or number % 8 == 1
    ]


def halfway(tables: Place, calls: list[int]) -> Place:
    """A place whose machine died right after the commit of the first table."""
    for at in calls:
        place = tables.copy()
        try_change(place, Machine(at, Fate.DIES_AFTER))
        if place.versions() == [1, 0, 0]:
            return place
    raise AssertionError("no machine died after the first commit")


@pytest.mark.parametrize("death", DEATHS)
def test_a_death_at_any_call_loses_nothing_and_commits_nothing_twice(
    tables: Place, calls: list[int], death: Fate
) -> None:
    recovered = 0
    for at in calls:
        place = tables.copy()
        error = try_change(place, Machine(at, death))
        was_begun = bool(place.journals.files)
        reports = transactions(place).recover()
        assert len(reports) == was_begun
        assert all(report.is_complete for report in reports)
        assert place.journals.files == {}
        expected = AFTER if was_begun or error is None or place.versions()[0] else BEFORE
        assert place.rows() == expected
        assert place.versions() == ([1, 1, 1] if expected is AFTER else [0, 0, 0])
        assert transactions(place).recover() == []
        recovered += was_begun
    assert recovered == 4  # before, between and after the three commits


@pytest.mark.parametrize("death", DEATHS)
def test_a_recovery_may_die_too(tables: Place, calls: list[int], death: Fate) -> None:
    begun = halfway(tables, calls)
    at = 0
    while True:
        at += 1
        place, machine = begun.copy(), Machine(at, death)
        place.journals.files = dict(begun.journals.files)
        try:
            transactions(place, machine).recover()
        except DeltaError:
            assert machine.is_dead
        for report in transactions(place).recover():
            assert report.is_complete
        assert place.rows() == AFTER
        assert place.versions() == [1, 1, 1]
        assert place.journals.files == {}
        if not machine.is_dead:
            break
    assert at > 10


def test_two_recoveries_may_run_at_once(tables: Place, calls: list[int]) -> None:
    begun = halfway(tables, calls)
    at = 0
    while True:
        at += 1
        place = begun.copy()
        place.journals.files = dict(begun.journals.files)
        other = transactions(place)
        machine = Machine(at, Fate.MEETS, other.recover)
        assert all(report.is_complete for report in transactions(place, machine).recover())
        assert place.rows() == AFTER
        assert place.versions() == [1, 1, 1]
        assert place.journals.files == {}
        if machine.calls < at:
            break
    assert at > 10


def test_a_recovery_beside_the_run_itself_does_no_harm(tables: Place, calls: list[int]) -> None:
    helped = 0
    for at in calls:
        place = tables.copy()
        recovery = transactions(place)
        found: list[int] = []
        machine = Machine(
            at,
            Fate.MEETS,
            lambda found=found, recovery=recovery: found.append(len(recovery.recover())),  # type: ignore[misc]  # defaults bind the loop's values
        )
        change(place, machine)
        assert place.rows() == AFTER
        assert place.versions() == [1, 1, 1]
        assert place.journals.files == {}
        helped += sum(found)
    assert helped >= 3


@pytest.mark.parametrize("rival", NAMES)
def test_a_rival_at_any_call_is_a_conflict_by_name_or_none(
    tables: Place, calls: list[int], rival: str
) -> None:
    """The rival deletes a row that the transaction has read; of the first table it read nothing."""
    outcomes = set()
    for at in calls:
        place = tables.copy()
        machine = Machine(
            at,
            Fate.MEETS,
            lambda place=place: place.table(rival).delete("id = 2"),  # type: ignore[misc]  # binds the loop's value
        )
        files = place.data_files()
        error = try_change(place, machine)
        mine = [
            version - (name == rival) for name, version in zip(NAMES, place.versions(), strict=True)
        ]
        reports = transactions(place).recover()
        if error is None:
            assert (mine, reports) == ([1, 1, 1], [])
        elif isinstance(error, CommitConflictError):
            assert (mine, reports) == ([0, 0, 0], [])
            # What the run wrote is gone; what stays new is the rival's.
            new = place.data_files() - files
            assert len(new) <= 1
            assert all(path.startswith(f"memory://{rival}/") for path in new)
        else:
            assert isinstance(error, TransactionIncompleteError)
            position = NAMES.index(rival)
            assert mine == [1] * position + [0] * (3 - position)
            assert error.committed == NAMES[:position]
            assert error.left == NAMES[position:]
            (report,) = reports
            states = [part.state for part in report.parts]
            assert states[:position] == [PartState.COMMITTED] * position
            assert states[position] is PartState.IMPOSSIBLE
            assert "DELETE won version 1" in report.parts[position].reason
            assert all(state is PartState.OPEN for state in states[position + 1 :])
            transactions(place).forget(report.transaction_id)
            assert transactions(place).unfinished() == []
        outcomes.add(type(error).__name__)
    assert "NoneType" in outcomes
    assert (TransactionIncompleteError.__name__ in outcomes) == (rival != "s.a")
    assert any(name.startswith("Concurrent") for name in outcomes) == (rival != "s.a")


def test_rows_that_others_append_stop_a_recovery_of_what_has_read(
    tables: Place, calls: list[int]
) -> None:
    place = halfway(tables, calls)
    write_deltalake(place.tables["s", "b"], [{"id": 20, "v": 20}], mode="append")
    (report,) = transactions(place).recover()
    states = [part.state for part in report.parts]
    assert states == [PartState.COMMITTED, PartState.IMPOSSIBLE, PartState.OPEN]
    assert "added rows that this commit should have read" in report.parts[1].reason


def test_appends_are_recovered_whoever_changed_the_table_meanwhile(tables: Place) -> None:
    machine = Machine()
    for at in range(1, 200):
        place, machine = tables.copy(), Machine(at, Fate.DIES_AFTER)
        with suppress(DeltaError), transactions(place, machine).begin() as tx:
            for name in NAMES:
                tx.table(name).append([{"id": 30, "v": 30}])
        if place.versions() == [1, 0, 0]:
            break
    place.table("s.b").delete("id > 1")
    write_deltalake(place.tables["s", "c"], [{"id": 20, "v": 20}], mode="append")
    (report,) = transactions(place).recover()
    assert report.is_complete
    assert place.rows() == {
        "s.a": [*BEFORE["s.a"], (30, 30)],
        "s.b": [(0, 0), (1, 1), (30, 30)],
        "s.c": [*BEFORE["s.c"], (20, 20), (30, 30)],
    }
