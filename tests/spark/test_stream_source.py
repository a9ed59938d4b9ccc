"""The stream reader as PySpark's runner calls it, without Spark, and a few queries with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable, write_deltalake
from deltalog.data.scan.plan import TASK_COLUMNS
from deltalog.errors import (
    DeltaError,
    IncompatibleChangesError,
    InvalidInputError,
    RowsChangedError,
)
from deltalog.log.context import TableContext
from deltalog.log.snapshot import load_snapshot
from deltalog.schema import Field
from deltalog.spark.reading.batch_source import TaskPartition
from deltalog.spark.reading.options import parse_stream_options
from deltalog.spark.source import DeferredStreamReader, DeltalogSource
from deltalog.storage import open_store
from deltalog.testing import CountingStore
from tests.support.spark_queries import EVERYTHING, StreamingQuery, needs_limits
from tests.support.spark_workers import packed, sent

FEED = {"delta.enableChangeDataFeed": "true"}


def make(path: Path, *ids: int, **configuration: Any) -> None:
    write_deltalake(path, pa.table({"id": list(ids)}), **configuration)


def append(path: Path, *ids: int) -> None:
    write_deltalake(path, pa.table({"id": list(ids)}), mode="append")


class Query(StreamingQuery):
    """A query from a table."""

    def __init__(self, path: Path, **options: str) -> None:
        self.source = DeltalogSource({"path": str(path), **options})
        self.schema = self.source.schema()
        super().__init__()

    def open_reader(self) -> DeferredStreamReader:
        found = sent(self.source).streamReader(self.schema)
        assert isinstance(found, DeferredStreamReader)
        return found

    def ids(self) -> list[Any]:
        return sorted(row[0] for batch in self.batches() for row in batch)


def test_first_what_is_there_and_then_what_comes(tmp_path: Path) -> None:
    make(tmp_path, 1, 2)
    query = Query(tmp_path)
    assert query.ids() == [1, 2]
    append(tmp_path, 3)
    append(tmp_path, 4)
    assert query.ids() == [3, 4]
    assert query.batch() is None


def test_offsets_are_plain_and_say_where_the_query_is(tmp_path: Path) -> None:
    make(tmp_path, 1)
    query = Query(tmp_path)
    assert query.offset is not None
    first = {key: query.offset[key] for key in ("version", "index", "isStartingVersion")}
    assert first == {"version": 0, "index": 0, "isStartingVersion": True}
    query.ids()
    assert (query.offset["version"], query.offset["isStartingVersion"]) == (1, False)


def test_a_query_says_how_far_behind_it_is(tmp_path: Path) -> None:
    make(tmp_path, 1)
    query = Query(tmp_path)
    told = query.reader.reportLatestOffset()
    assert (told["version"], told.get("versionsBehind")) == (1, None)
    query.ids()
    assert query.reader.reportLatestOffset()["versionsBehind"] == 0
    append(tmp_path, 2)
    append(tmp_path, 3)
    latest = query.reader.reportLatestOffset()
    assert (latest["version"], latest["versionsBehind"]) == (3, 2)
    assert query.ids() == [2, 3]
    assert query.reader.reportLatestOffset()["versionsBehind"] == 0


@needs_limits
def test_a_micro_batch_lists_the_log_once_and_reads_each_commit_once(tmp_path: Path) -> None:
    for number in range(4):
        append(tmp_path, number)
    query = Query(tmp_path, startingVersion="1", maxFilesPerTrigger="1")
    store = CountingStore(open_store(tmp_path))
    opened = query.reader.opened
    opened._known = load_snapshot(TableContext(store=store, time_zone="UTC"))
    query.batch()
    store.reset()
    assert query.offset is not None
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    latest = query.reader.reportLatestOffset()
    assert (latest["version"], latest["versionsBehind"]) == (4, 1)
    query.reader.partitions(query.offset, end)
    query.reader.commit(end)
    assert store.counts == {"list_from": 1}
    assert store.bytes_read == 0  # the commits came with those of the first batch


@needs_limits
def test_the_first_rows_of_a_query_are_planned_from_what_is_open(tmp_path: Path) -> None:
    for number in range(4):
        append(tmp_path, number)
    query = Query(tmp_path)
    store = CountingStore(open_store(tmp_path))
    opened = query.reader.opened
    opened._known = load_snapshot(TableContext(store=store, time_zone="UTC"))
    opened._known.files(TASK_COLUMNS)
    store.reset()
    assert query.offset is not None
    opened.initialOffset()
    query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    assert store.bytes_read == 0


@pytest.mark.parametrize("stops", [1, 2, 3])
def test_each_row_comes_once_however_often_the_query_is_stopped(tmp_path: Path, stops: int) -> None:
    make(tmp_path, 0)
    for number in range(1, 4):
        append(tmp_path, number)
    query = Query(tmp_path, maxFilesPerTrigger="1")
    found: list[Any] = []
    for number in range(4, 12):
        append(tmp_path, number)
        found += [row[0] for row in query.batch() or []]
        if number % stops == 0:
            query.start()
    assert sorted(found + query.ids()) == list(range(12))


@needs_limits
def test_a_batch_that_is_planned_again_is_the_same(tmp_path: Path) -> None:
    """As after a crash between the log of offsets and the end of the batch."""
    make(tmp_path, 1)
    append(tmp_path, 2)
    query = Query(tmp_path, maxFilesPerTrigger="1")
    start = query.offset
    assert start is not None
    rows, end = query.batch(), query.offset
    assert end is not None
    append(tmp_path, 3)
    query.start()
    assert query.rows_between(start, end) == rows


@needs_limits
@pytest.mark.parametrize(
    ("options", "is_noted"),
    [
        ({}, True),
        ({}, False),  # PySpark 4.1 does not say where a batch starts
        ({"maxFilesPerTrigger": "1"}, True),
        ({"maxFilesPerTrigger": "1"}, False),
        ({"startingVersion": "latest"}, True),
        ({"startingVersion": "1"}, True),
        ({"startingVersion": "1"}, False),
    ],
)
def test_a_first_batch_that_was_not_done_comes_again(
    tmp_path: Path, options: dict[str, str], *, is_noted: bool
) -> None:
    """Spark knows its end, and asks anew where a query starts."""
    make(tmp_path, 1)
    append(tmp_path, 2)
    query = Query(tmp_path, **options)
    append(tmp_path, 3)
    rows, end = query.batch(), query.offset
    assert rows
    assert end is not None
    append(tmp_path, 4)
    DeltaTable(tmp_path).optimize.compact()
    again = Query(tmp_path, **options)
    if not is_noted:
        del end["start"]
    assert again.rows_between(again.offset or {}, end) == rows


@needs_limits
@pytest.mark.parametrize(
    ("options", "limit", "sizes"),
    [
        ({"maxFilesPerTrigger": "2"}, None, [2, 2, 1]),
        ({"maxBytesPerTrigger": "1b"}, None, [1, 1, 1, 1, 1]),
        ({"maxFilesPerTrigger": "3", "maxBytesPerTrigger": "1g"}, None, [3, 2]),
        ({"maxFilesPerTrigger": "2"}, EVERYTHING, [5]),
        ({"maxFilesPerTrigger": "1", "withEventTimeOrder": "true"}, None, [5]),
        ({}, None, [5]),
    ],
)
def test_how_much_a_batch_takes(
    tmp_path: Path, options: dict[str, str], limit: Any, sizes: list[int]
) -> None:
    make(tmp_path, 0)
    for number in range(1, 5):
        append(tmp_path, number)
    query = Query(tmp_path, **options)
    assert [len(batch) for batch in query.batches(limit)] == sizes


@needs_limits
def test_the_limit_that_spark_is_told(tmp_path: Path) -> None:
    from pyspark.sql.streaming import datasource as limits

    make(tmp_path, 0)
    assert Query(tmp_path).reader.getDefaultReadLimit() == limits.ReadMaxFiles(1000)
    by_bytes = Query(tmp_path, maxBytesPerTrigger="10m").reader.getDefaultReadLimit()
    assert by_bytes == limits.ReadMaxBytes(10 << 20)


@needs_limits
def test_what_is_available_now_ends(tmp_path: Path) -> None:
    make(tmp_path, 0)
    append(tmp_path, 1)
    query = Query(tmp_path, maxFilesPerTrigger="1")
    query.reader.prepareForTriggerAvailableNow()
    append(tmp_path, 2)
    assert query.ids() == [0, 1]
    query.start()
    assert query.ids() == [2]


def test_without_limits_as_pyspark_4_1_asks(tmp_path: Path) -> None:
    make(tmp_path, 0)
    append(tmp_path, 1)
    query = Query(tmp_path, maxFilesPerTrigger="1")
    assert query.offset is not None
    end = query.reader.latestOffset()
    assert sorted(query.rows_between(query.offset, end)) == [(0,), (1,)]
    assert query.reader.latestOffset() == end


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingVersion": "0"}, [1, 2, 3]),
        ({"startingVersion": "1"}, [2, 3]),
        ({"startingVersion": "latest"}, []),
        ({"startingTimestamp": "2001-01-01"}, [1, 2, 3]),
        ({"startingTimestamp": "2999-01-01T00:00:00Z"}, []),
    ],
)
def test_where_to_start(tmp_path: Path, options: dict[str, str], expected: list[int]) -> None:
    make(tmp_path, 1)
    append(tmp_path, 2)
    append(tmp_path, 3)
    query = Query(tmp_path, **options)
    assert query.ids() == expected
    append(tmp_path, 4)
    assert query.ids() == [4]


@needs_limits
@pytest.mark.parametrize("limit", [None, EVERYTHING])
def test_deletes_and_rewrites_are_errors_after_what_came_before(tmp_path: Path, limit: Any) -> None:
    make(tmp_path, 1, 2)
    query = Query(tmp_path)
    append(tmp_path, 3)
    DeltaTable(tmp_path).delete("id = 1")
    rows = [row for batch in (query.batch(limit),) for row in batch or []]
    if limit is None:  # a step ends with the rows that were there
        rows += query.batch() or []
    assert rows == [(1,), (2,), (3,)]
    with pytest.raises(RowsChangedError, match="version 2 rewrote rows"):
        query.batch(limit)


@pytest.mark.parametrize(
    ("option", "expected"),
    [("ignoreDeletes", [9]), ("ignoreChanges", [9]), ("skipChangeCommits", [9])],
)
def test_deletes_may_be_passed_over(tmp_path: Path, option: str, expected: list[int]) -> None:
    make(tmp_path, 1)
    query = Query(tmp_path, **{option: "true"})
    query.ids()
    DeltaTable(tmp_path).delete("id = 1")
    append(tmp_path, 9)
    assert query.ids() == expected


@pytest.mark.parametrize(
    ("option", "expected"), [("ignoreChanges", [2, 9]), ("skipChangeCommits", [9])]
)
def test_rewrites_may_be_passed_over(tmp_path: Path, option: str, expected: list[int]) -> None:
    make(tmp_path, 1, 2)
    query = Query(tmp_path, **{option: "true"})
    query.ids()
    DeltaTable(tmp_path).delete("id = 1")
    append(tmp_path, 9)
    assert query.ids() == expected


def test_moved_rows_do_not_come_again(tmp_path: Path) -> None:
    make(tmp_path, 1)
    append(tmp_path, 2)
    query = Query(tmp_path)
    query.ids()
    DeltaTable(tmp_path).optimize.compact()
    assert query.batch() is None
    append(tmp_path, 3)
    assert query.ids() == [3]


def test_the_change_feed_is_followed(tmp_path: Path) -> None:
    make(tmp_path, 1, 2, configuration=FEED)
    query = Query(tmp_path, readChangeFeed="true")
    assert query.schema.names == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert [row[:3] for row in query.batch() or []] == [(1, "insert", 0), (2, "insert", 0)]
    DeltaTable(tmp_path).update({"id": "7"}, predicate="id = 1")
    assert sorted(row[:3] for row in query.batch() or []) == [
        (1, "update_preimage", 1),
        (7, "update_postimage", 1),
    ]


@pytest.mark.parametrize("limit", [None, EVERYTHING])
@needs_limits
def test_a_new_column_stops_the_stream_until_it_is_started_again(
    tmp_path: Path, limit: Any
) -> None:
    make(tmp_path, 1)
    query = Query(tmp_path)
    query.ids()
    append(tmp_path, 2)
    DeltaTable(tmp_path).alter.add_columns([Field("more", "string")])
    write_deltalake(tmp_path, pa.table({"id": [3], "more": ["x"]}), mode="append")
    assert query.batch(limit) == [(2,)]
    with pytest.raises(IncompatibleChangesError, match="start the query again"):
        query.batch(limit)
    again = Query(tmp_path)
    again.offset = query.offset
    assert again.batches() == [[(3, "x")]]


def test_a_column_that_was_there_later_is_null_before(tmp_path: Path) -> None:
    make(tmp_path, 1)
    append(tmp_path, 2)
    DeltaTable(tmp_path).alter.add_columns([Field("more", "string")])
    assert [row for batch in Query(tmp_path, startingVersion="0").batches() for row in batch] == [
        (1, None),
        (2, None),
    ]


def test_a_lost_commit_is_an_error_unless_the_query_takes_what_is_left(tmp_path: Path) -> None:
    make(tmp_path, 1)
    strict, lenient = Query(tmp_path), Query(tmp_path, failOnDataLoss="false")
    assert strict.ids() == lenient.ids() == [1]
    append(tmp_path, 2)
    append(tmp_path, 3)
    DeltaTable(tmp_path).create_checkpoint()
    for version in (0, 1):
        (tmp_path / f"_delta_log/{version:020}.json").unlink()
    append(tmp_path, 4)
    strict.start()
    lenient.start()
    with pytest.raises(DeltaError, match="the commits begin at 2"):
        strict.batch()
    assert lenient.ids() == [3, 4]


def test_another_table_at_the_place_is_an_error(tmp_path: Path) -> None:
    import shutil

    make(tmp_path / "t", 1)
    query = Query(tmp_path / "t")
    query.ids()
    shutil.rmtree(tmp_path / "t")
    make(tmp_path / "t", 2)
    query.start()
    with pytest.raises(DeltaError, match="the offset belongs to table"):
        query.batch()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maxFilesPerTriger": "1"}, "did you mean 'maxFilesPerTrigger'"),
        ({"maxFilesPerTrigger": "0"}, "expected 1 or more"),
        ({"maxBytesPerTrigger": "0"}, "expected a size"),
        ({"startingVersion": "1", "startingTimestamp": "2024-01-01"}, "use one of them"),
        ({"versionAsOf": "1"}, "option 'versionAsOf': .* use startingVersion"),
        ({"endingVersion": "1"}, "a stream has no end"),
        ({"schemaTrackingLocation": "p"}, "with a new load"),
        ({"ignoreDeletes": "perhaps"}, "expected true or false"),
    ],
)
def test_bad_options_are_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_stream_options({"path": "t", **options})


def test_a_version_is_not_followed(tmp_path: Path) -> None:
    make(tmp_path, 0)
    source = DeltalogSource({"path": f"{tmp_path}@v0"})
    reader = source.streamReader(source.schema())
    with pytest.raises(InvalidInputError, match=r"cannot follow .*@v0': .* contains a version"):
        reader.initialOffset()


def test_splits_keep_the_order_of_files(tmp_path: Path) -> None:
    make(tmp_path, 0)
    for number in range(1, 6):
        append(tmp_path, number)
    query = Query(tmp_path, maxPartitionBytes="1150k")
    assert query.offset is not None
    end = query.reader.latestOffset(query.offset, EVERYTHING)
    partitions = query.reader.partitions(query.offset, end)
    sizes = [len(one.tasks) for one in partitions if isinstance(one, TaskPartition)]
    assert sizes == [2, 2, 2]


def test_splits_of_a_batch_are_about_equal(tmp_path: Path) -> None:
    make(tmp_path, 0)
    for number in range(1, 9):
        append(tmp_path, number)
    query = Query(tmp_path, maxPartitionBytes="2150k")
    assert query.offset is not None
    end = query.reader.latestOffset(query.offset, EVERYTHING)
    partitions = query.reader.partitions(query.offset, end)
    sizes = [len(one.tasks) for one in partitions if isinstance(one, TaskPartition)]
    assert sizes == [3, 3, 3]  # and not 4, 4, and 1, which two processors need two turns for


def test_rows_of_small_files_come_together(tmp_path: Path) -> None:
    make(tmp_path, 0)
    for number in range(1, 6):
        append(tmp_path, number)
    query = Query(tmp_path)
    assert query.offset is not None
    end = query.reader.latestOffset(query.offset, EVERYTHING)
    (partition,) = query.reader.partitions(query.offset, end)
    (batch,) = query.reader.read(partition)
    assert batch.column("id").to_pylist() == [0, 1, 2, 3, 4, 5]


def test_known_commits_are_not_read_again(tmp_path: Path) -> None:
    for number in range(5):
        append(tmp_path, number)
    source = DeltalogSource({"path": str(tmp_path)})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, DeferredStreamReader)
    store = CountingStore(open_store(tmp_path))
    reader.opened._known = load_snapshot(TableContext(store=store, time_zone="UTC"))
    store.reset()
    reader.prepareForTriggerAvailableNow()
    assert store.bytes_read == 0
    append(tmp_path, 5)
    reader.prepareForTriggerAvailableNow()
    assert store.bytes_read == (tmp_path / f"_delta_log/{5:020}.json").stat().st_size


def test_a_process_that_only_pickles_the_reader_opens_no_table(tmp_path: Path) -> None:
    make(tmp_path / "t", 1, 2)
    query = Query(tmp_path / "t")
    start = query.offset
    assert start is not None
    partitions = query.reader.partitions(start, query.reader.latestOffset(start, EVERYTHING))
    pickling = sent(query.source)
    (tmp_path / "t").rename(tmp_path / "elsewhere")
    worker = sent(pickling.streamReader(query.schema))
    (tmp_path / "elsewhere").rename(tmp_path / "t")
    found: list[Any] = [batch for one in partitions for batch in worker.read(sent(one))]
    assert pa.Table.from_batches(found).to_pydict() == {"id": [1, 2]}


def test_a_query_starts_from_what_was_read_to_show_its_schema(tmp_path: Path) -> None:
    make(tmp_path, 1)
    append(tmp_path, 2)
    query = Query(tmp_path, startingVersion="latest")
    (tmp_path / f"_delta_log/{0:020}.json").unlink()  # the table cannot be opened anew
    assert query.open_reader().initialOffset()["version"] == 2


def test_tasks_do_not_receive_the_log_that_was_read(tmp_path: Path) -> None:
    for number in range(20):
        append(tmp_path, number)
    source = DeltalogSource({"path": str(tmp_path)})
    schema = source.schema()
    before = len(packed(source))
    source.streamReader(schema)
    assert len(packed(source)) < 500 < before


def test_a_query_of_a_table_that_was_replaced_has_the_schema_of_the_new_one(
    tmp_path: Path,
) -> None:
    import shutil

    make(tmp_path / "t", 1)
    query = Query(tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    write_deltalake(tmp_path / "t", pa.table({"id": ["a"]}))
    query.offset = None
    with pytest.raises(InvalidInputError, match="another schema: column 'id' is string"):
        query.start()


def test_a_query_of_spark_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    table, checkpoint, seen = tmp_path / "t", str(tmp_path / "checkpoint"), str(tmp_path / "seen")
    make(table, 1, 2)
    append(table, 3)

    def ids() -> list[int]:
        return sorted(row.id for row in spark.read.schema("id long").json(seen).collect())

    def run() -> None:
        query = (
            spark.readStream.format("deltalog")
            .option("maxFilesPerTrigger", 1)
            .load(str(table))
            .writeStream.option("checkpointLocation", checkpoint)
            .foreachBatch(lambda frame, _: frame.select("id").write.mode("append").json(seen))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    run()
    assert ids() == [1, 2, 3]
    append(table, 4)
    DeltaTable(table).optimize.compact()
    append(table, 5)
    run()
    assert ids() == [1, 2, 3, 4, 5]
