"""The change data feed: which files tell the changes, and which ranges can be shown."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from deltalog._util.clock import Moment
from deltalog.data.scan import Changes, open_changes
from deltalog.data.scan.reader import read_task
from deltalog.errors import (
    ChangeDataFeedNotEnabledError,
    IncompatibleChangesError,
    InvalidInputError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from deltalog.expressions import parse_sql
from deltalog.schema.metadata_columns import CHANGE_COLUMNS
from tests.support import logs
from tests.support.raw_tables import Action, DataTable, column, mapped, rows_of, struct_of

FEED = {"delta.enableChangeDataFeed": "true"}
FEATURES = ["changeDataFeed", "deletionVectors", "columnMapping", "inCommitTimestamp"]
INSERT, DELETE = "insert", "delete"


def feed_table(*fields: Any, **options: Any) -> DataTable:
    configuration = {**FEED, **options.pop("configuration", {})}
    shown = fields or (("id", "long"),)
    return DataTable(shown, features=FEATURES, configuration=configuration, **options)


def changes(table: DataTable, start: int | Moment = 0, **options: Any) -> Changes:
    if isinstance(options.get("predicate"), str):
        options["predicate"] = parse_sql(options["predicate"])
    return open_changes(table.snapshot(), start=start, **options)


def shown(table: DataTable, start: int | Moment = 0, **options: Any) -> list[Any]:
    options.setdefault("columns", ["id", "_change_type", "_commit_version"])
    return rows_of(changes(table, start, **options).to_table())


def remove(add: Action, **members: Any) -> Action:
    """The `remove` line that ends an `add`."""
    vector = add["add"].get("deletionVector")
    same = {"partitionValues": add["add"]["partitionValues"], "size": add["add"]["size"]}
    ended = logs.remove(add["add"]["path"], **{"extendedFileMetadata": True, **same, **members})
    if vector is not None:
        ended["remove"]["deletionVector"] = vector
    return ended


@pytest.mark.protocol("CDC-04", "DF-07")
def test_files_that_came_and_went_tell_their_rows() -> None:
    table = feed_table()
    first = table.add({"id": [1, 2]})
    table.commit(first)
    table.commit(remove(first), table.add({"id": [2, 3]}))
    assert shown(table) == [
        (1, INSERT, 1),
        (2, INSERT, 1),
        (2, INSERT, 2),
        (3, INSERT, 2),
        (1, DELETE, 2),
        (2, DELETE, 2),
    ]


@pytest.mark.protocol("CDC-04", "DF-09", "DF-08")
def test_change_files_win_over_the_others() -> None:
    table = feed_table()
    first = table.add({"id": [1, 2]})
    table.commit(first)
    kinds = ["update_preimage", "update_postimage"]
    table.commit(
        remove(first),
        table.add({"id": [1, 3]}),
        table.cdc({"id": [2, 3], "_change_type": kinds}),
    )
    assert shown(table, 2) == [(2, kinds[0], 2), (3, kinds[1], 2)]


@pytest.mark.protocol("CDC-04", "ADD-07")
def test_rearranged_files_are_no_change() -> None:
    table = feed_table()
    first = table.add({"id": [1, 2]})
    table.commit(first)
    table.commit(remove(first, dataChange=False), table.add({"id": [2, 1]}, dataChange=False))
    assert shown(table, 2) == []


@pytest.mark.protocol("B-31", "D-44")
def test_a_change_type_in_a_data_file_is_ignored() -> None:
    table = feed_table()
    table.commit(table.add({"id": [1], "_change_type": ["delete"], "_commit_version": [9]}))
    assert shown(table) == [(1, INSERT, 1)]


@pytest.mark.protocol("D-42")
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, (1, 3), [(1, DELETE), (3, DELETE)]),
        ((1,), (1, 3), [(3, DELETE)]),
        ((1, 3), (1,), [(3, INSERT)]),  # a restore
        ((1, 3), None, [(1, INSERT), (3, INSERT)]),
        ((1,), (3,), [(3, DELETE), (1, INSERT)]),
        ((1,), (1,), []),
    ],
)
def test_a_grown_or_shrunk_vector_tells_its_difference(
    before: tuple[int, ...] | None,
    after: tuple[int, ...] | None,
    expected: list[tuple[int, str]],
) -> None:
    table = feed_table()
    add = table.add({"id": [0, 1, 2, 3]})["add"]
    old = {"add": add if before is None else {**add, "deletionVector": table.vector(*before)}}
    new = {"add": add if after is None else {**add, "deletionVector": table.vector(*after)}}
    table.commit(old)
    table.commit(remove(old), new)
    assert shown(table, 2) == [(*row, 2) for row in expected]


@pytest.mark.protocol("D-42")
def test_a_file_that_went_shows_only_the_rows_that_were_left() -> None:
    table = feed_table()
    first = table.add({"id": [0, 1, 2]}, deletionVector=table.vector(1))
    table.commit(first)
    table.commit(remove(first))
    assert shown(table) == [(0, INSERT, 1), (2, INSERT, 1), (0, DELETE, 2), (2, DELETE, 2)]


@pytest.mark.protocol("CDC-05")
def test_version_and_time_of_a_change() -> None:
    table = feed_table()
    table.commit(table.add({"id": [1]}), time_ms=1_700_000_000_123)
    table.commit(table.add({"id": [2]}), time_ms=1_700_000_000_456)
    names = ["_commit_version", "_commit_timestamp"]
    first = dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, dt.UTC)
    second = first.replace(microsecond=456_000)
    assert shown(table, columns=names) == [(1, first), (2, second)]
    schema = changes(table).schema
    assert schema == pa.schema([("id", pa.int64()), *CHANGE_COLUMNS.items()])


@pytest.mark.protocol("B-32", "CDC-05")
def test_in_commit_times_win_over_the_files() -> None:
    table = feed_table()
    on = {"delta.enableInCommitTimestamps": "true"}
    table.commit(table.add({"id": [1]}), time_ms=5_000)
    enabled = {
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": "6000",
    }
    info = {"commitInfo": {"inCommitTimestamp": 6_000}}
    table.commit(
        info, table.metadata(configuration=on | enabled), table.add({"id": [2]}), time_ms=99_000
    )
    info = {"commitInfo": {"inCommitTimestamp": 7_000}}
    table.commit(info, table.add({"id": [3]}), time_ms=98_000)
    times = [row.timestamp() for row in shown(table, columns=["_commit_timestamp"])]
    assert times == [5, 6, 7]
    # A bound by time goes by the same clock.
    assert shown(table, Moment(6_001)) == [(3, INSERT, 3)]
    assert shown(table, 1, end=Moment(6_000)) == [(1, INSERT, 1), (2, INSERT, 2)]


@pytest.mark.protocol("CDC-06", "ROWID-18")
@pytest.mark.parametrize("name", ["_metadata.row_id", "_metadata.row_commit_version"])
def test_the_feed_has_no_row_ids(name: str) -> None:
    table = feed_table()
    table.commit(table.add({"id": [1]}, baseRowId=0))
    with pytest.raises(InvalidInputError, match="_metadata"):
        changes(table, columns=["id", name])
    with pytest.raises(InvalidInputError, match="_metadata"):
        changes(table, predicate=f"{name} = 0")


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("id > 1", [2, 3, 2]),
        ("_change_type = 'delete'", [2]),
        ("_commit_version = 2", [3, 2]),
        ("_commit_timestamp >= timestamp'1970-01-01 00:00:02Z' and id = 3", [3]),
        ("_change_type = 'insert' and p = 1", [3]),
    ],
)
def test_filters_over_rows_and_their_changes(where: str, ids: list[int]) -> None:
    table = feed_table(("id", "long"), ("p", "long"), partition_by=["p"])
    first = table.add({"id": [1, 2]}, partitionValues={"p": "0"})
    table.commit(first)
    table.commit(
        table.add({"id": [3]}, partitionValues={"p": "1"}),
        {"add": {**first["add"], "deletionVector": table.vector(1)}},
        remove(first),
    )
    assert shown(table, predicate=where, columns=["id"]) == ids


def test_partition_values_of_a_bare_remove_are_those_of_its_add() -> None:
    table = feed_table(("id", "long"), ("p", "long"), partition_by=["p"])
    first = table.add({"id": [1]}, partitionValues={"p": "7"})
    table.commit(first)
    table.commit(logs.remove(first["add"]["path"]))
    assert shown(table, 2, columns=["id", "p"]) == [(1, 7)]


@pytest.mark.protocol("B-27")
@pytest.mark.parametrize("extended", [True, False, None])
def test_a_removes_own_values_count_whatever_it_claims_to_have(extended: bool | None) -> None:
    table = feed_table(("id", "long"), ("p", "long"), partition_by=["p"])
    first = table.add({"id": [1]}, partitionValues={"p": "7"})
    table.commit(first)
    ended = remove(first, extendedFileMetadata=extended)
    assert "tags" not in ended["remove"]
    table.commit(ended)
    assert shown(table, 2, columns=["id", "p"]) == [(1, 7)]


def test_change_files_have_partition_values_too() -> None:
    table = feed_table(("id", "long"), ("p", "long"), partition_by=["p"])
    table.commit(table.cdc({"id": [1], "_change_type": [DELETE]}, partitionValues={"p": "7"}))
    assert shown(table, columns=["p", "id", "_change_type"]) == [(7, 1, DELETE)]


@pytest.mark.parametrize(
    ("start", "end", "ids"),
    [
        (0, None, [1, 2, 3]),
        (2, None, [2, 3]),
        (1, 2, [1, 2]),
        (3, 3, [3]),
        (Moment(2000), None, [2, 3]),
        (Moment(1001), Moment(2000), [2]),
        (Moment(0), Moment(2999), [1, 2]),
        (1, Moment(9_999_999), [1, 2, 3]),
    ],
)
def test_bounds_are_included(start: int | Moment, end: int | Moment, ids: list[int]) -> None:
    table = feed_table()
    for number in (1, 2, 3):
        table.commit(table.add({"id": [number]}))
    assert shown(table, start, end=end, columns=["id"]) == ids


@pytest.mark.parametrize(
    ("start", "end", "error"),
    [
        (4, None, VersionNotFoundError),
        (0, 4, VersionNotFoundError),
        (-1, None, VersionNotFoundError),
        (0, -1, VersionNotFoundError),
        (2, 1, InvalidInputError),
        (Moment(3001), None, VersionNotFoundError),
        (0, Moment(-1), VersionNotFoundError),
        (Moment(1500), Moment(1600), InvalidInputError),
    ],
)
def test_ranges_that_are_none(start: Any, end: Any, error: type[Exception]) -> None:
    table = feed_table()
    for number in (1, 2, 3):
        table.commit(table.add({"id": [number]}))
    with pytest.raises(error):
        changes(table, start, end=end)


@pytest.mark.parametrize(
    ("start", "end", "ids"),
    [(4, None, []), (7, 9, []), (3, 7, [3]), (Moment(3001), None, []), (2, 4, [2, 3])],
)
def test_versions_that_are_not_there_yet_may_be_asked_for(
    start: Any, end: Any, ids: list[int]
) -> None:
    table = feed_table()
    for number in (1, 2, 3):
        table.commit(table.add({"id": [number]}))
    found = changes(table, start, end=end, allow_out_of_range=True, columns=["id"])
    assert rows_of(found.to_table()) == ids
    assert found.schema == pa.schema([("id", pa.int64())])


def test_a_version_whose_commit_was_cleaned_up() -> None:
    table = feed_table()
    adds = [table.add({"id": [number]}) for number in (1, 2, 3)]
    for add in adds:
        table.commit(add)
    actions = [table.protocol(), table.metadata(), *adds[:2]]
    logs.classic_checkpoint(table.store, 2, actions)
    for version in (0, 1):
        del table.store.files[f"_delta_log/{version:020d}.json"]
    assert shown(table, 3, columns=["id"]) == [3]
    with pytest.raises(VersionNotFoundError, match="start after version 1"):
        changes(table, 1)


def test_the_feed_must_be_on_in_every_version_of_the_range() -> None:
    table = feed_table()
    table.commit(table.add({"id": [1]}))
    table.commit(table.metadata(configuration={"delta.enableChangeDataFeed": "false"}))
    table.commit(table.add({"id": [2]}))
    table.commit(table.metadata())
    table.commit(table.add({"id": [3]}))
    assert shown(table, 0, end=1, columns=["id"]) == [1]
    assert shown(table, 4, columns=["id"]) == [3]
    with pytest.raises(ChangeDataFeedNotEnabledError, match="version 2 was written without"):
        shown(table, 0)
    with pytest.raises(ChangeDataFeedNotEnabledError, match="version 3 was written without"):
        shown(table, 3)


def test_a_feature_that_is_unknown_in_between_is_refused() -> None:
    table = feed_table()
    table.commit(table.add({"id": [1]}))
    strange = table.protocol()
    strange["protocol"]["readerFeatures"].append("newFeature")
    strange["protocol"]["writerFeatures"].append("newFeature")
    table.commit(strange)
    table.commit(table.protocol())
    with pytest.raises(UnsupportedFeatureError, match="newFeature"):
        shown(table, 0)


ID, C = ("id", "long"), ("c", "long")


@pytest.mark.protocol("D-43")
def test_a_column_that_came_later_is_null_before() -> None:
    table = feed_table()
    table.commit(table.add({"id": [1]}))
    table.commit(table.metadata([ID, C]))
    table.commit(table.add({"id": [2], "c": [3]}))
    assert shown(table, columns=["id", "c"]) == [(1, None), (2, 3)]
    # Without column mapping the newest schema shows every range.
    assert shown(table, 0, end=1, columns=["id", "c"]) == [(1, None)]


@pytest.mark.protocol("D-43")
@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ([ID, C], [ID], "'c' is gone"),
        ([("id", "integer")], [ID], "was integer and is long"),
        ([ID], [{**column("id", "long"), "nullable": False}], "was nullable"),
        ([("s", struct_of(ID, C))], [("s", struct_of(ID))], "'s' 'c' is gone"),
        (
            [("l", {"type": "array", "elementType": "integer", "containsNull": True})],
            [("l", {"type": "array", "elementType": "long", "containsNull": True})],
            "was integer and is long",
        ),
    ],
)
def test_a_schema_that_cannot_show_the_range(before: Any, after: Any, message: str) -> None:
    table = feed_table(*before)
    table.commit(table.metadata(after))
    table.commit()
    with pytest.raises(IncompatibleChangesError, match=message):
        changes(table, 0).to_table()
    assert changes(table, 1).to_table().num_rows == 0


def rename(table: DataTable) -> Action:
    return table.metadata([mapped("id", "long", 1, "id"), mapped("new", "long", 2, "col-c")])


def drop(table: DataTable) -> Action:
    return table.metadata([mapped("id", "long", 1, "id")])


@pytest.mark.protocol("D-43", "UPG-11")
@pytest.mark.parametrize("change", [rename, drop])
def test_with_column_mapping_the_range_has_its_own_schema(
    change: Callable[[DataTable], Action],
) -> None:
    table = feed_table(
        mapped("id", "long", 1, "id"),
        mapped("c", "long", 2, "col-c"),
        configuration={"delta.columnMapping.mode": "name"},
    )
    table.commit(table.add({"id": [1], "col-c": [2]}))
    table.commit(change(table))
    table.commit(table.add({"id": [3], "col-c": [4]}))
    assert shown(table, 0, end=1, columns=["id", "c"]) == [(1, 2)]
    assert shown(table, 2, columns=["id"]) == [3]
    with pytest.raises(IncompatibleChangesError, match="at version 0"):
        shown(table, 0, columns=["id"])


@pytest.mark.protocol("D-44")
@pytest.mark.parametrize("columns", [["nothing"], ["id", "_change_type.x"]])
def test_unknown_columns(columns: list[str]) -> None:
    with pytest.raises(InvalidInputError):
        changes(feed_table(), columns=columns)


def test_columns_come_in_the_order_asked_for() -> None:
    table = feed_table(ID, C)
    table.commit(table.add({"id": [1], "c": [2]}))
    names = ["_commit_version", "c", "_change_type", "ID", "c"]
    found = changes(table, columns=names).to_table()
    assert found.column_names == ["_commit_version", "c", "_change_type", "id"]
    assert rows_of(found) == [(1, 2, INSERT, 1)]


def test_changes_and_their_tasks_are_picklable() -> None:
    table = feed_table()
    add = table.add({"id": [0, 1, 2]})
    table.commit(add)
    table.commit({"add": {**add["add"], "deletionVector": table.vector(1)}}, remove(add))
    found = changes(table)
    again = pickle.loads(pickle.dumps(found))  # our own
    assert again.to_table().equals(found.to_table())
    tasks = pickle.loads(pickle.dumps(list(found.tasks())))  # our own
    batches = [batch for task in tasks for batch in read_task(task)]
    assert pa.Table.from_batches(batches, found.schema).equals(found.to_table())
