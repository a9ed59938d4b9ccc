"""Branches of several tables: published together or not at all, also if a machine dies."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import (
    AuditFailedError,
    BranchExistsError,
    BranchNotFoundError,
    CommitConflictError,
    DeltaError,
    InvalidInputError,
    TransactionIncompleteError,
)
from deltalog.table.catalog_branches import CatalogBranch
from tests.support.catalog_transactions import (
    AFTER,
    BEFORE,
    NAMES,
    Fate,
    Machine,
    Place,
    PlaceCatalog,
    transactions,
)
from tests.support.facade import rows

pytestmark = pytest.mark.slow("a machine dies at each call")

IS_LONG = "DELTALOG_HISTORIES" in os.environ


def opened(place: Place, machine: Machine | None = None, **options: Any) -> CatalogBranch:
    return transactions(place, machine).branch(NAMES, "b", **options)


def change(branch: CatalogBranch) -> None:
    """Change the tables so that `BEFORE` becomes `AFTER`."""
    write_deltalake(branch["s.a"], [{"id": 10, "v": 10}], mode="append")
    branch["s.b"].delete("id = 1")
    branch["s.c"].update({"v": "v + 100"}, predicate="id = 2")
    write_deltalake(branch["s.c"], [{"id": 11, "v": 11}], mode="append")


@pytest.fixture
def place() -> Place:
    return Place.new()


@pytest.fixture(scope="module")
def changed() -> Place:
    """A place whose tables have a changed branch."""
    place = Place.new()
    change(opened(place))
    return place


def records(place: Place) -> list[Any]:
    return [found.name for name in NAMES for found in place.table(name).branches()]


def test_a_publish_is_one_commit_of_each_table(place: Place) -> None:
    branch = opened(place)
    change(branch)
    assert place.rows() == BEFORE
    assert {name: rows(branch[name]) for name in branch.tables} == AFTER
    versions = branch.publish({"s.a": ["v < 20"], "s.c": [lambda draft: draft.count() == 5]})
    assert versions == dict.fromkeys(NAMES, 1)
    assert place.rows() == AFTER
    assert place.versions() == [1, 1, 1]
    assert records(place) == []
    assert place.journals.files == {}
    assert place.table("s.b").history(1)[0]["operationParameters"]["branch"] == "b"


def test_a_catalog_has_the_method(place: Place) -> None:
    branch = PlaceCatalog(place).branch(["s.a"], "b")
    write_deltalake(branch["s.a"], [{"id": 10, "v": 10}], mode="append")
    assert branch.publish() == {"s.a": 1}


def test_a_failing_check_publishes_nothing(place: Place) -> None:
    branch = opened(place)
    change(branch)
    with pytest.raises(AuditFailedError, match="v < 50"):
        branch.publish({"s.c": ["v < 50"]})
    assert place.rows() == BEFORE
    branch["s.c"].delete("v > 50")  # the branches accept commits again
    branch["s.a"].delete("id = 10")
    branch.publish({"s.c": ["v < 50"]})
    assert place.versions() == [1, 1, 1]


def test_a_conflict_of_one_table_publishes_nothing(place: Place) -> None:
    branch = opened(place)
    change(branch)
    place.table("s.b").delete("id = 1")
    with pytest.raises(CommitConflictError):
        branch.publish()
    assert place.versions() == [0, 1, 0]
    assert records(place) == ["b"] * 3
    change(branch)  # open again
    branch.discard()
    assert records(place) == []
    with pytest.raises(BranchNotFoundError):
        branch.discard()


def test_commits_that_do_not_conflict_are_kept(place: Place) -> None:
    branch = opened(place)
    change(branch)
    write_deltalake(place.table("s.a"), [{"id": 77, "v": 7}], mode="append")
    branch.publish()
    assert place.rows() == {**AFTER, "s.a": sorted([*AFTER["s.a"], (77, 7)])}


def test_all_branches_are_created_or_none(place: Place) -> None:
    place.table("s.b").branch("b")
    with pytest.raises(BranchExistsError):
        opened(place)
    assert records(place) == ["b"]
    with pytest.raises(InvalidInputError, match="different tables"):
        transactions(place).branch(["s.a", "s.a"], "c")
    with pytest.raises(InvalidInputError, match="none"):
        transactions(place).branch([], "c")
    branch = opened(place, exist_ok=True)
    with pytest.raises(KeyError, match=r"no table 's\.z'"):
        branch["s.z"]
    with pytest.raises(KeyError):
        branch.publish({"s.z": ["true"]})
    assert str(branch) == "<branch 'b' of s.a, s.b, s.c>"


def num_calls(changed: Place) -> int:
    place, machine = changed.copy(), Machine()
    opened(place, machine, exist_ok=True).publish()
    assert place.rows() == AFTER
    return machine.calls


@pytest.mark.parametrize("death", [Fate.DIES_BEFORE, Fate.DIES_AFTER])
def test_a_death_at_any_call_publishes_all_or_nothing(changed: Place, death: Fate) -> None:
    outcomes = set()
    for at in range(1, num_calls(changed) + 1, 1 if IS_LONG else 5):
        place = changed.copy()
        try:
            opened(place, Machine(at, death), exist_ok=True).publish()
        except DeltaError as error:
            outcomes.add(type(error).__name__)
        branch = opened(place, exist_ok=True)
        if place.rows() != AFTER:
            assert place.rows() == BEFORE
            branch.publish()
        else:
            outcomes.add("completed")
            branch.discard()
        assert place.rows() == AFTER
        assert place.versions() == [1, 1, 1]
        assert records(place) == []
        assert place.journals.files == {}
    assert "completed" in outcomes
    assert TransactionIncompleteError.__name__ in outcomes


def test_an_interrupted_publish_is_completed_by_the_next_call(changed: Place) -> None:
    seen = 0
    for at in range(1, num_calls(changed) + 1):
        place, machine = changed.copy(), Machine(at, Fate.DIES_AFTER)
        with contextlib.suppress(DeltaError):
            opened(place, machine, exist_ok=True).publish()
        if place.versions() != [1, 0, 0]:
            continue
        seen += 1
        branch = opened(place, exist_ok=True)
        assert place.rows() == AFTER
        branch.discard()
        break
    assert seen


def test_a_branch_that_cannot_be_completed_says_which_tables_are_published(
    changed: Place,
) -> None:
    for at in range(1, num_calls(changed) + 1):
        place = changed.copy()
        with contextlib.suppress(DeltaError):
            opened(place, Machine(at, Fate.DIES_AFTER), exist_ok=True).publish()
        if place.versions() == [1, 0, 0]:
            break
    for name in place.journals.files.copy():
        del place.journals.files[name]
    branch = opened(place, exist_ok=True)
    with pytest.raises(InvalidInputError, match=r"cannot publish the branch 'b' of s\.b, s\.c"):
        branch.publish()
    for name in ("s.b", "s.c"):
        DeltaTable.publish(branch[name])
    assert place.rows() == AFTER
