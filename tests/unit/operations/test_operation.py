"""What every verb is, and what it does not have unless it says so."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations.engine import Engine, LocalEngine
from deltalog.operations.execute import execute, explain, preview
from deltalog.operations.operation import CustomOperation, Nothing, Operation, Staged
from deltalog.transaction import PendingTransaction
from tests.support.logs import DictStore, table_of
from tests.support.transactions import commit_info_of, new_file


class Look(Operation[Nothing]):
    """A verb that says nothing of itself but its name."""

    name = "LOOK"

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Nothing:
        del transaction, engine
        return Nothing()


def latest(store: DictStore) -> Snapshot:
    return load_snapshot(utc_context(store))


def test_what_a_verb_is_if_it_says_nothing() -> None:
    verb = Look()
    assert (verb.doing, verb.needs_latest, verb.skips_empty) == ("working", True, False)
    assert verb.is_repeatable
    assert dict(verb.logged_parameters()) == {}
    with verb.opened(LocalEngine()) as opened:
        assert opened is verb


def test_a_verb_without_a_dry_run_says_so() -> None:
    snapshot = latest(table_of([]))
    with pytest.raises(InvalidInputError, match="LOOK of memory://table: it has no dry run"):
        preview(Look(), snapshot, LocalEngine())
    with pytest.raises(InvalidInputError, match="LOOK of memory://table: it does not search"):
        explain(Look(), snapshot, LocalEngine())


def test_nothing_counts_and_tells_nothing() -> None:
    assert dict(Nothing().metrics()) == {}
    Nothing().result()
    store = table_of([])
    execute(Look(), lambda: latest(store), LocalEngine())
    assert commit_info_of(store, 1)["operation"] == "LOOK"


def test_an_operation_of_the_callers_gives_what_its_plan_gave() -> None:
    store = table_of([])

    def plan(transaction: PendingTransaction) -> int:
        transaction.add_files([new_file("x")])
        return 7

    operation = CustomOperation(name="MINE", plan=plan, parameters={"a": 1})
    done = execute(operation, lambda: latest(store), LocalEngine())
    assert done.value == Staged(7)
    assert done.value is not None
    assert (done.value.result(), dict(done.value.metrics())) == (7, {})
    info = commit_info_of(store, 1)
    assert (info["operation"], info["operationParameters"]) == ("MINE", {"a": 1})


@pytest.mark.parametrize(("skips", "version"), [(True, 0), (False, 1)])
def test_an_operation_may_leave_out_empty_commits(skips: bool, version: int) -> None:
    store = table_of([])
    operation = CustomOperation(name="MINE", plan=lambda _: None, skips_empty=skips)
    assert dict(operation.logged_parameters()) == {}
    done = execute(operation, lambda: latest(store), LocalEngine())
    assert done.committed.version == latest(store).version == version
