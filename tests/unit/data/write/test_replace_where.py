"""Overwriting by predicate: rows that match are replaced, others stay what and where they were."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog import DeltaTable, Field, col, write_deltalake
from deltalog.errors import CommitConflictError, ConstraintViolationError
from tests.support.facade import (
    FEED,
    NO_VECTORS,
    VECTORS,
    changes,
    fresh_rows,
    last,
    make,
    rows,
    store_of,
    unchanged,
)
from tests.support.logs import DictStore

DATA = [{"id": n, "p": "ab"[n % 2]} for n in range(6)]


def replace(made: DeltaTable, data: Any, predicate: Any, **options: Any) -> None:
    write_deltalake(made, data, mode="overwrite", predicate=predicate, **options)


@pytest.mark.parametrize("configuration", [VECTORS, NO_VECTORS])
@pytest.mark.parametrize("partition_by", [None, ["p"]])
@pytest.mark.parametrize(
    ("predicate", "parameters", "new", "kept"),
    [
        ("p = 'a'", None, [10], [1, 3, 5]),
        (col("p") == "a", None, [10], [1, 3, 5]),
        ([("p", "=", "a")], None, [10], [1, 3, 5]),
        ("p = ?", ["a"], [10], [1, 3, 5]),
        ("id >= 2 and p = :p", {"p": "a"}, [10], [0, 1, 3, 5]),
        ("id >= 4", None, [10], [0, 1, 2, 3]),
        ("id > 100 or id = 10", None, [10], [0, 1, 2, 3, 4, 5]),
        ("true", None, [10], []),
    ],
)
def test_rows_that_match_are_replaced(
    configuration: dict[str, str],
    partition_by: list[str] | None,
    predicate: Any,
    parameters: Any,
    new: list[int],
    kept: list[int],
) -> None:
    made = make(DATA, partition_by=partition_by, configuration=configuration)
    data = [{"id": n, "p": "a"} for n in new]
    replace(made, data, predicate, parameters=parameters)
    assert fresh_rows(made, "id") == sorted([*kept, *new])


@pytest.mark.parametrize("value", ["b", None])
@pytest.mark.parametrize("configuration", [VECTORS, NO_VECTORS, FEED])
def test_new_rows_must_match(value: str | None, configuration: dict[str, str]) -> None:
    """A row for which the predicate is unknown does not match either."""
    made = make(DATA, configuration=configuration)
    data = [{"id": 7, "p": "a"}, {"id": 8, "p": value}]
    with unchanged(made), pytest.raises(ConstraintViolationError, match="1 of the new rows") as hit:
        replace(made, data, "p = 'a'")
    assert "'id': 8" in str(hit.value)


def test_partitions_that_match_whole_are_not_read() -> None:
    made = make(DATA, partition_by=["p"])
    for path in list(store_of(made).files):
        if path.startswith("p=a"):
            store_of(made).files[path] = b"no Parquet"
    replace(made, [{"id": 7, "p": "a"}], "p = 'a'")
    assert rows(made, "id") == [1, 3, 5, 7]


@pytest.mark.parametrize("configuration", [{**FEED, **VECTORS}, {**FEED, **NO_VECTORS}])
@pytest.mark.parametrize("partition_by", [None, ["p"]])
def test_the_change_feed_tells_of_both_halves(
    configuration: dict[str, str], partition_by: list[str] | None
) -> None:
    made = make(DATA, configuration=configuration, partition_by=partition_by)
    replace(made, [{"id": 9, "p": "a"}], "p = 'a' and id > 0")
    assert changes(made) == [("delete", 2), ("delete", 4), ("insert", 9)]


@pytest.mark.parametrize("configuration", [{**FEED, **VECTORS}, {**FEED, **NO_VECTORS}])
def test_new_columns_come_along(configuration: dict[str, str]) -> None:
    made = make(DATA, configuration=configuration)
    replace(made, [{"id": 5, "p": "a", "x": 1}], "id = 5", schema_mode="merge")
    assert fresh_rows(made, "id", "x") == [(n, None) for n in range(5)] + [(5, 1)]
    assert changes(made) == [("delete", 5), ("insert", 5)]


def test_an_empty_list_replaces_by_nothing() -> None:
    made = DeltaTable.create(DictStore(), [Field("id", "long", nullable=False)])
    write_deltalake(made, [{"id": 1}, {"id": 2}], mode="append")
    replace(made, [], "id = 1")
    assert fresh_rows(made) == [2]


@pytest.mark.parametrize("configuration", [VECTORS, NO_VECTORS])
def test_rows_that_stay_keep_their_ids(configuration: dict[str, str]) -> None:
    made = make(DATA, configuration={**configuration, "delta.enableRowTracking": "true"})
    columns = ("id", "_metadata.row_id", "_metadata.row_commit_version")
    before = {row[0]: row for row in rows(made, *columns)}
    replace(made, [{"id": 4, "p": "z"}], "id = 4")
    after = {row[0]: row for row in fresh_rows(made, *columns)}
    new = after.pop(4)
    assert after == {key: row for key, row in before.items() if key != 4}
    assert new[1] not in {row[1] for row in before.values()}
    assert new[2] == 1


@pytest.mark.protocol("B-04")
def test_the_history_counts_rows() -> None:
    made = make(DATA, configuration=NO_VECTORS)
    replace(made, [{"id": 9, "p": "a"}], "id >= 4")
    info = last(made)
    metrics = info["operationMetrics"]
    assert info["operationParameters"] == {
        "mode": "Overwrite",
        "partitionBy": "[]",
        "predicate": "id >= 4",
    }
    counts = {name: text for name, text in metrics.items() if not name.endswith("Bytes")}
    assert {name: text for name, text in counts.items() if "Vectors" not in name} == {
        "numFiles": "2",
        "numRemovedFiles": "1",
        "numCopiedRows": "4",
        "numDeletedRows": "2",
        "numOutputRows": "5",
        "numAddedChangeFiles": "0",
    }


@pytest.mark.protocol("IDN-04")
@pytest.mark.parametrize("configuration", [VECTORS, NO_VECTORS])
def test_new_rows_are_completed_and_old_ones_left_alone(configuration: dict[str, str]) -> None:
    identity = {
        "delta.identity.start": 1,
        "delta.identity.step": 1,
        "delta.identity.allowExplicitInsert": False,
    }
    fields = [
        Field("id", "long", metadata=identity),
        Field("n", "long"),
        Field("twice", "long", metadata={"delta.generationExpression": "n * 2"}),
    ]
    made = DeltaTable.create(DictStore(), fields, configuration=configuration)
    write_deltalake(made, [{"n": 1}, {"n": 2}, {"n": 3}], mode="append")
    replace(made, [{"n": 2}], "twice = 4")
    write_deltalake(made, [{"n": 7}], mode="append")
    assert fresh_rows(made) == [(1, 1, 2), (3, 3, 6), (4, 2, 4), (5, 7, 14)]


def test_rows_that_another_writer_added_are_replaced_too() -> None:
    one = make(DATA)
    write_deltalake(DeltaTable(store_of(one)), [{"id": 4, "p": "b"}], mode="append")
    replace(one, [{"id": 4, "p": "z"}], "id = 4")
    assert fresh_rows(one)[4:] == [(4, "z"), (5, "b")]


def test_a_lost_race_is_run_again() -> None:
    """Somebody deletes the file that is being rewritten, between look and commit."""
    made = make(DATA, configuration=NO_VECTORS)
    other = DeltaTable(store_of(made))
    told: list[int] = []

    class Racing(list[dict[str, Any]]):
        def __iter__(self) -> Any:
            if not told:
                told.append(1)
                other.delete("id = 0")
            return super().__iter__()

    replace(made, Racing([{"id": 5, "p": "z"}]), "id = 5")
    assert fresh_rows(made, "id") == [1, 2, 3, 4, 5]
    assert told


def test_rows_that_are_read_once_are_not_replaced_twice() -> None:
    made = make(DATA, configuration=NO_VECTORS)
    other = DeltaTable(store_of(made))

    def racing() -> Any:
        other.delete("id = 0")
        yield {"id": 5, "p": "z"}

    with pytest.raises(CommitConflictError):
        replace(made, racing(), "id = 5")
    assert fresh_rows(made, "id") == [1, 2, 3, 4, 5]
    assert rows(DeltaTable(store_of(made)), "p")[-1] == "b"
    named = set(DeltaTable(store_of(made)).file_uris())
    data = {path for path in store_of(made).files if path.endswith(".parquet") and "/" not in path}
    assert len(data) == len(named) + 1  # the file that was deleted from, and none of ours
