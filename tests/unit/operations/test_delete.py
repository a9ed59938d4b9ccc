"""Delete: rows that go, files that are masked or written once more."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog import CommitProperties, DeltaTable, Transaction, col, write_deltalake
from deltalog._util.json import loads
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.testing import FaultyStore, InjectedFault
from tests.support.facade import (
    FEED,
    NO_VECTORS,
    VECTORS,
    BusyStore,
    actions,
    changes,
    fresh_rows,
    last,
    make,
    rows,
    store_of,
    unchanged,
)
from tests.support.logs import DictStore
from tests.support.raw_tables import DataTable

DATA = [{"id": n, "p": "ab"[n % 2]} for n in range(6)]


BOTH = pytest.mark.parametrize("configuration", [VECTORS, NO_VECTORS])


@BOTH
@pytest.mark.parametrize("partition_by", [None, ["p"]])
@pytest.mark.parametrize(
    ("predicate", "left"),
    [
        (None, []),
        ("true", []),
        ("id < 2", [2, 3, 4, 5]),
        ("p = 'a'", [1, 3, 5]),
        ("p = 'a' and id > 1", [0, 1, 3, 5]),
        (col("id").is_in([0, 5]), [1, 2, 3, 4]),
        ("id > 9", [0, 1, 2, 3, 4, 5]),
        ("id > NULL", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_rows_go(
    configuration: dict[str, str], partition_by: Any, predicate: Any, left: list[int]
) -> None:
    made = make(DATA, configuration=configuration, partition_by=partition_by)
    found = made.delete(predicate)
    assert fresh_rows(made, "id") == rows(made, "id") == left
    assert found["num_deleted_rows"] == 6 - len(left)
    assert made.count() == len(left)
    assert made.version() == (0 if len(left) == 6 else 1)


@BOTH
def test_deletes_follow_each_other(configuration: dict[str, str]) -> None:
    made = make(DATA, configuration=configuration)
    for n in range(6):
        made.delete("id = ?", parameters=[n])
        assert fresh_rows(made, "id") == list(range(n + 1, 6))
    assert made.snapshot.num_files == 0
    assert DeltaTable(store_of(made), 2).count() == 4


@BOTH
def test_rows_for_which_the_predicate_is_unknown_stay(configuration: dict[str, str]) -> None:
    made = make([{"v": 1}, {"v": None}, {"v": 3}], configuration=configuration)
    made.delete("v > 2")
    assert fresh_rows(made) == [1, None]
    made.delete("not v = 7")
    assert fresh_rows(made) == [None]


def bare(action: dict[str, Any]) -> dict[str, Any]:
    """The add without statistics."""
    del action["add"]["stats"]
    return action


def test_files_that_other_writers_left_bare_of_counts() -> None:
    """No statistics: the rows are counted in the footer."""
    table = DataTable([("id", "long")], features=["deletionVectors"], configuration=dict(VECTORS))
    table.commit(bare(table.add({"id": [1, 2, 3]})))
    made = DeltaTable(table.store)
    made.delete("id = 2")
    (add,) = [action["add"] for action in actions(made) if "add" in action]
    assert loads(add["stats"], "stats")["numRecords"] == 3
    assert fresh_rows(made) == [1, 3]


def test_what_the_log_does_not_tell_is_not_counted() -> None:
    """A partition goes without a look at its files, whose rows nobody counted."""
    table = DataTable([("id", "long"), ("p", "string")], partition_by=["p"])
    table.commit(bare(table.add({"id": [1, 2, 3]}, partitionValues={"p": "a"})))
    made = DeltaTable(table.store)
    assert made.delete("p = 'a'")["num_deleted_rows"] is None
    assert "numDeletedRows" not in last(made)["operationMetrics"]
    assert fresh_rows(made) == []


def test_vectors_are_written_when_asked_for_and_allowed() -> None:
    plain = make(DATA)
    with unchanged(plain), pytest.raises(InvalidInputError, match="enableDeletionVectors"):
        plain.delete("id = 1", use_deletion_vectors=True)
    made = make(DATA, configuration=VECTORS)
    made.delete("id = 1", use_deletion_vectors=False)
    assert not any("deletionVector" in action.get("add", {}) for action in actions(made))
    assert fresh_rows(made, "id") == [0, 2, 3, 4, 5]


@pytest.mark.parametrize("vectors", [VECTORS, NO_VECTORS])
@pytest.mark.parametrize("partition_by", [None, ["p"]])
@pytest.mark.parametrize("predicate", ["id = 2", "p = 'a'", "p = 'a' or id = 1", "true"])
def test_the_change_feed_tells_what_went(
    vectors: dict[str, str], partition_by: Any, predicate: str
) -> None:
    made = make(DATA, configuration={**FEED, **vectors}, partition_by=partition_by)
    before = rows(made, "id")
    made.delete(predicate)
    gone = set(before).difference(rows(made, "id"))
    assert changes(made) == [("delete", n) for n in sorted(gone)]


def test_rows_that_stay_keep_their_ids() -> None:
    made = make(DATA, configuration={**NO_VECTORS, "delta.enableRowTracking": "true"})
    columns = ("id", "_metadata.row_id", "_metadata.row_commit_version")
    before = rows(made, *columns)
    made.delete("id = 3")
    assert fresh_rows(made, *columns) == [row for row in before if row[0] != 3]


@pytest.mark.parametrize("mode", ["name", "id"])
@BOTH
def test_columns_under_mapping(configuration: dict[str, str], mode: str) -> None:
    made = make(
        DATA, configuration={**configuration, "delta.columnMapping.mode": mode}, partition_by=["p"]
    )
    made.alter.rename_column("id", "p2")
    made.alter.rename_column("p", "id")
    made.delete("id = 'a' and p2 > 0")
    assert fresh_rows(made, "p2") == [0, 1, 3, 5]


@pytest.mark.protocol("APP-01")
def test_append_only_tables_keep_their_rows() -> None:
    made = make(DATA, configuration={"delta.appendOnly": "true"})
    for change in (
        lambda: made.delete("id = 1"),
        lambda: write_deltalake(made, DATA, mode="overwrite"),
        lambda: write_deltalake(made, [{"id": 1}], mode="overwrite", predicate="id = 1"),
    ):
        with unchanged(made), pytest.raises(DeltaError, match="appendOnly"):
            change()
    write_deltalake(made, [{"id": 6}], mode="append")
    assert made.count() == 7


@BOTH
@pytest.mark.parametrize("call", range(1, 9))
def test_a_store_that_refuses_a_call_leaves_nothing(
    configuration: dict[str, str], call: int
) -> None:
    made = make(DATA, configuration={**configuration, **FEED})
    before = dict(store_of(made).files)
    faulty = DeltaTable(FaultyStore(store_of(made)))
    store = faulty.snapshot.store
    assert isinstance(store, FaultyStore)
    store.faults.append(InjectedFault(call))
    error: Exception | None = None
    try:
        faulty.delete("id = 3")
    except DeltaError as raised:
        error = raised
    made.update_incremental()
    if made.version():
        assert fresh_rows(made, "id") == [0, 1, 2, 4, 5]
    else:
        assert error is not None
        assert dict(store_of(made).files) == before


@BOTH
def test_two_deletes_of_one_file_are_both_done(configuration: dict[str, str]) -> None:
    """The second one's table is old: it looks first."""
    one = make(DATA, configuration=configuration)
    two = DeltaTable(store_of(one))
    one.delete("id = 1")
    two.delete("id = 2")
    assert fresh_rows(one, "id") == [0, 3, 4, 5]


def busy(made: DeltaTable) -> BusyStore:
    return BusyStore(store_of(made).files)


@BOTH
@pytest.mark.protocol("OV-05")
def test_rows_that_somebody_added_meanwhile_are_deleted_too(configuration: dict[str, str]) -> None:
    store = busy(make(DATA, configuration=configuration))
    made = DeltaTable(store)
    store.before_commit = lambda: write_deltalake(DeltaTable(store), [{"id": 1}], mode="append")
    assert made.delete("id = 1")["num_deleted_rows"] == 2
    assert (made.version(), fresh_rows(made, "id")) == (2, [0, 2, 3, 4, 5])


def test_vectors_of_a_lost_race_are_removed() -> None:
    numbers = pa.table({"id": range(10_000)})
    store = busy(make(numbers, configuration=VECTORS))
    made = DeltaTable(store)
    store.before_commit = lambda: DeltaTable(store).delete("id % 5 = 1")
    made.delete("id % 5 = 2")
    (add,) = [action["add"] for action in actions(made) if "add" in action]
    assert (made.version(), made.count(), add["deletionVector"]["cardinality"]) == (2, 6000, 4000)
    # That of the winner, and ours on top of it; none of the first attempt.
    assert len([path for path in store.files if path.endswith(".bin")]) == 2


def test_an_application_deletes_once() -> None:
    made = make(DATA)
    step = CommitProperties(app_transactions=[Transaction("app", 1)])
    assert made.delete("id = 1", commit_properties=step)["num_deleted_rows"] == 1
    write_deltalake(made, [{"id": 1}], mode="append")
    with unchanged(made):
        assert made.delete("id = 1", commit_properties=step) == {}
    assert made.count() == 6


@pytest.mark.protocol("B-04")
def test_the_history_names_the_predicate() -> None:
    made = make(DATA, configuration=NO_VECTORS)
    made.delete("id = 1 or id = 2")
    info = last(made)
    assert info["operation"] == "DELETE"
    assert loads(info["operationParameters"]["predicate"], "")[0].startswith("id = 1")
    metrics = info["operationMetrics"]
    assert metrics["numDeletedRows"] == "2"
    assert metrics["numCopiedRows"] == "4"
    assert (metrics["numAddedFiles"], metrics["numRemovedFiles"]) == ("1", "1")
    assert {"executionTimeMs", "scanTimeMs", "rewriteTimeMs"} <= metrics.keys()


def test_an_empty_table_has_nothing_to_delete() -> None:
    made = DeltaTable.create(DictStore(), pa.schema([("id", pa.int64())]))
    assert made.delete()["num_deleted_rows"] == 0
    assert made.version() == 0
