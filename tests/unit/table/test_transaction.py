"""`table.transaction()`: several operations, one commit, or none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

import deltalog
from deltalog import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalog.errors import CommitConflictError, ConstraintViolationError, InvalidInputError
from tests.support.facade import (
    FEED,
    NO_VECTORS,
    VECTORS,
    actions,
    changes,
    fresh_rows,
    last,
    make,
    rows,
    store_of,
    unchanged,
)

DATA = [{"id": n, "p": "ab"[n % 2]} for n in range(4)]
DOMAINS = {"delta.feature.domainMetadata": "supported"}


def run(made: DeltaTable, *operations: Callable[[Any], object]) -> None:
    """One transaction."""
    with made.transaction() as tx:
        for operation in operations:
            operation(tx)


def test_several_operations_are_one_version() -> None:
    made = make(DATA, partition_by=["p"], configuration=DOMAINS)
    with made.transaction() as tx:
        tx.append([{"id": 9, "p": "c"}])
        tx.overwrite([{"id": 7, "p": "a"}], "p = ?", parameters=["a"])
        tx.delete("p = 'b'")
        tx.set_domain_metadata("mine", "{}")
        tx.set_app_transaction("app", 3)
        assert fresh_rows(made, "id") == [0, 1, 2, 3]
    assert made.version() == 1
    assert fresh_rows(made, "id") == rows(made, "id") == [7, 9]
    assert made.transaction_version("app") == 3
    assert made.domain_metadata() == {"mine": "{}"}
    info = last(made)
    assert info["operation"] == "TRANSACTION"
    assert info["operationParameters"]["operations"] == (
        '["WRITE","WRITE","DELETE","SET DOMAIN METADATA"]'
    )


@pytest.mark.parametrize("configuration", [VECTORS, NO_VECTORS])
def test_rows_are_changed_and_merged(configuration: dict[str, str]) -> None:
    made = make(DATA, partition_by=["p"], configuration=configuration)
    with made.transaction() as tx:
        tx.update({"id": "id + :more"}, predicate="p = 'a'", parameters={"more": 100})
        merge = tx.merge([{"id": 1, "p": "b"}, {"id": 3, "p": "b"}], "s.id = t.id", "s", "t")
        merged = merge.when_matched_delete("s.id = 1").execute()
        assert merged["num_target_rows_deleted"] == 1
        assert fresh_rows(made, "id") == [0, 1, 2, 3]
    assert made.version() == 1
    assert fresh_rows(made, "id") == rows(made, "id") == [3, 100, 102]
    assert last(made)["operationParameters"]["operations"] == '["UPDATE","MERGE"]'


def test_rows_are_replaced_by_key() -> None:
    made = make(DATA, partition_by=["p"])
    with made.transaction() as tx:
        tx.upsert([{"id": 1, "p": "b"}, {"id": 5, "p": "c"}], ["id", "p"])
        tx.update(new_values={"id": 7}, predicate="p = 'a'")
    assert (made.version(), fresh_rows(made, "id")) == (1, [1, 3, 5, 7, 7])


@pytest.mark.parametrize(
    "second",
    [
        lambda tx: tx.update({"id": "0"}, predicate="id = 2"),
        lambda tx: tx.upsert([{"id": 2, "p": "x"}], "id"),
    ],
)
@pytest.mark.parametrize("configuration", [VECTORS, NO_VECTORS])
def test_no_row_is_looked_for_in_a_file_that_changes(
    configuration: dict[str, str], second: Callable[[Any], object]
) -> None:
    made = make(DATA, configuration=configuration)
    with unchanged(made), pytest.raises(InvalidInputError, match="twice in one commit"):
        run(made, lambda tx: tx.delete("id = 1"), second)


def test_one_operation_goes_by_its_own_name() -> None:
    made = make(DATA)
    with made.transaction() as tx:
        tx.delete("id = 1")
    assert last(made)["operation"] == "DELETE"


def test_whole_tables_are_overwritten_with_their_schema() -> None:
    made = make(DATA)
    with made.transaction() as tx:
        tx.overwrite([{"x": 1}], schema_mode="overwrite")
    assert fresh_rows(made) == [1]


def test_nothing_to_do_is_no_version() -> None:
    made = make(DATA)
    with unchanged(made), made.transaction() as tx:
        tx.delete("id > 100")
    assert made.version() == 0


def test_an_exception_leaves_nothing() -> None:
    made = make(DATA)
    with unchanged(made), pytest.raises(ZeroDivisionError):
        run(
            made, lambda tx: tx.append([{"id": 9}]), lambda tx: tx.delete("id = 1"), lambda _: 1 / 0
        )
    assert made.version() == 0


@pytest.mark.parametrize("configuration", [VECTORS, NO_VECTORS])
def test_an_operation_that_failed_is_not_forgiven(configuration: dict[str, str]) -> None:
    """Its deletions were staged already; committing them without the new rows would lose rows."""
    made = make(DATA, configuration=configuration)

    def swallow() -> None:
        with made.transaction() as tx:
            with pytest.raises(ConstraintViolationError):
                tx.overwrite([{"id": 8}], "id = 1")
            with pytest.raises(InvalidInputError, match="cannot continue the transaction"):
                tx.append([{"id": 9}])

    with unchanged(made), pytest.raises(InvalidInputError, match="its WRITE failed"):
        swallow()
    assert fresh_rows(made, "id") == [0, 1, 2, 3]


@pytest.mark.parametrize("configuration", [VECTORS, NO_VECTORS])
def test_no_file_is_changed_twice(configuration: dict[str, str]) -> None:
    made = make(DATA, configuration=configuration)
    with unchanged(made), pytest.raises(InvalidInputError, match="twice in one commit"):
        run(made, lambda tx: tx.delete("id = 1"), lambda tx: tx.delete("id = 2"))


def test_the_change_feed_of_a_transaction_is_whole() -> None:
    both = (lambda tx: tx.append([{"id": 9}]), lambda tx: tx.delete("id = 1"))
    made = make(DATA, configuration={**FEED, **VECTORS})
    run(made, *both)
    assert changes(made) == [("delete", 1), ("insert", 9)]
    changed = make(DATA, partition_by=["p"], configuration={**FEED, **NO_VECTORS})
    run(
        changed,
        lambda tx: tx.update({"id": "9"}, predicate="id = 0"),
        lambda tx: tx.delete("id = 1"),
    )
    assert changes(changed) == [("delete", 1), ("update_postimage", 9), ("update_preimage", 0)]
    cut = make(DATA, configuration={**FEED, **NO_VECTORS})
    with (
        unchanged(cut),
        pytest.raises(InvalidInputError, match="only some of them write change data files"),
    ):
        run(cut, *both)
    # Whole files need no change file.
    with cut.transaction() as tx:
        tx.append([{"id": 9}])
        tx.delete("id < 9")
    assert changes(cut) == [*(("delete", n) for n in range(4)), ("insert", 9)]


def test_it_works_inside_of_its_block_only() -> None:
    made = make(DATA)
    tx = made.transaction()
    with pytest.raises(InvalidInputError, match="only in its block"):
        tx.append(DATA)
    for n in (4, 5):  # a transaction may be begun again
        with tx:
            tx.append([{"id": n}])
    with pytest.raises(InvalidInputError, match="only in its block"):
        tx.delete()
    assert (made.version(), fresh_rows(made, "id")) == (2, [0, 1, 2, 3, 4, 5])


def test_it_begins_on_the_latest_version() -> None:
    one = make(DATA)
    write_deltalake(DeltaTable(store_of(one)), [{"id": 4}], mode="append")
    with one.transaction() as tx:
        tx.delete("id = 4")
    assert (one.version(), fresh_rows(one, "id")) == (2, [0, 1, 2, 3])


@pytest.mark.protocol("OV-05")
def test_a_conflict_leaves_the_winner_only() -> None:
    one = make(DATA, configuration=NO_VECTORS)
    two = DeltaTable(store_of(one))
    with pytest.raises(CommitConflictError, match="DELETE won version 1") as hit:
        run(one, lambda tx: tx.delete("id = 1"), lambda _: two.delete("id = 2"))
    assert (hit.value.version, hit.value.operation, len(hit.value.files)) == (1, "DELETE", 1)
    assert fresh_rows(one, "id") == [0, 1, 3]
    files = [path for path in store_of(one).files if path.endswith(".parquet")]
    assert len(files) == 2


def test_appends_get_in_whoever_was_faster() -> None:
    one = make(DATA)
    two = DeltaTable(store_of(one))
    with one.transaction() as tx:
        tx.append([{"id": 4}])
        two.delete("id = 1")
    assert (one.version(), rows(one, "id")) == (2, [0, 2, 3, 4])


@pytest.mark.parametrize("inside", [True, False])
def test_an_application_commits_once(inside: bool) -> None:
    made = make(DATA)
    step = CommitProperties(app_transactions=None if inside else [Transaction("app", 1)])

    def commit() -> None:
        with made.transaction(step) as tx:
            if inside:
                tx.set_app_transaction("app", 1)
            tx.append([{"id": 4}])

    commit()
    before = dict(store_of(made).files)
    commit()
    assert dict(store_of(made).files) == before
    assert (made.version(), fresh_rows(made, "id")) == (1, [0, 1, 2, 3, 4])
    assert actions(made)[0]["commitInfo"]["operation"] == "WRITE"


def test_custom_metadata_goes_along() -> None:
    made = make(DATA)
    with made.transaction(CommitProperties(custom_metadata={"who": "me"})) as tx:
        tx.append(DATA)
    assert made.history(1)[0]["who"] == "me"


def test_merged_columns_are_there_for_what_follows() -> None:
    made = make(DATA, configuration=NO_VECTORS)
    with made.transaction() as tx:
        tx.append([{"id": 4, "x": 1}], schema_mode="merge")
        tx.delete("id = 1")
    assert fresh_rows(made, "id", "x") == [(0, None), (2, None), (3, None), (4, 1)]


def _write(made: DeltaTable) -> None:
    write_deltalake(made, [{"id": 9}], mode="append")


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.delete("id = 1"),
        lambda made: made.alter.set_table_description("x"),
        lambda made: made.optimize.compact(),
        lambda made: deltalog.sql("DELETE FROM t WHERE id = 1", t=made),
        lambda made: made.upsert([{"id": 1}], "id"),
        _write,
    ],
)
def test_changes_of_the_table_in_its_block_cause_a_warning(
    change: Callable[[DeltaTable], object],
) -> None:
    made = make([{"id": 1}, {"id": 2}])
    with made.transaction():
        with pytest.warns(
            UserWarning, match=r"commits at once, outside of the tr.*tx\.append"
        ) as w:
            change(made)
        assert w[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        change(made)  # after the block


def test_other_tables_and_threads_in_a_block_cause_no_warning() -> None:
    made, other = make([{"id": 1}]), make([{"id": 1}])
    again = DeltaTable(store_of(made))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with made.transaction() as tx:
            tx.append([{"id": 2}])
            other.delete()
            _write(again)
            with other.transaction() as inner:
                inner.append([{"id": 3}])
            thread = Thread(target=_write, args=(again,))
            thread.start()
            thread.join()
        with pytest.raises(KeyError), made.transaction():
            raise KeyError
        made.delete("id = 2")
    assert fresh_rows(made, "id") == [1, 9, 9]
