"""Shared tables followed by the format `deltalog_sharing`, as PySpark's runner calls it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import IncompatibleChangesError, InvalidInputError, RowsChangedError
from deltalog.schema.metadata_columns import CHANGE_COLUMNS
from deltalog.sharing.client import AsyncRestClient, SharedTable, read_profile
from deltalog.sharing.server import app
from deltalog.spark.sharing.options import parse_shared_stream_options
from deltalog.spark.sharing.stream import SharedStreamReader
from deltalog.spark.source import SharingSource
from tests.sharing.test_client_follow import MovedClock
from tests.support.asgi import serving
from tests.support.sharing import config_of, write_profile
from tests.support.spark_queries import EVERYTHING, Batch, StreamingQuery, needs_limits

FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A table of one file; more are appended by the tests."""
    write_deltalake(tmp_path / "t", pa.table({"id": [0]}), configuration=FEED)
    return tmp_path / "t"


@pytest.fixture
def url(place: Path) -> Iterator[str]:
    """The table shared."""
    with serving(app(config_of({"s.d.t": {"location": str(place), "historyShared": True}}))) as at:
        profile = place.parent / "test.share"
        profile.touch(mode=0o600)
        yield f"{write_profile(profile, f'{at}/delta-sharing/')}#s.d.t"


def append(place: Path, *ids: int) -> None:
    """A commit for each."""
    for number in ids:
        write_deltalake(place, pa.table({"id": [number]}), mode="append")


class Query(StreamingQuery):
    """A query from a shared table, of which the tests see ids."""

    def __init__(self, url: str, **options: str) -> None:
        self.clock = MovedClock()
        self.url = url
        self.options = {"path": url, **options}
        super().__init__()

    def open_reader(self) -> SharedStreamReader:
        location, _, name = self.url.rpartition("#")
        client = AsyncRestClient(read_profile(location), clock=self.clock)
        schema = SharingSource(self.options).schema()
        options = parse_shared_stream_options(self.options)
        return SharedStreamReader(options, SharedTable(name, client=client), schema)

    def row(self, values: dict[str, Any]) -> Any:
        return values["id"]


@pytest.mark.protocol("SHARE-STR-03", "SHARE-STR-04")
def test_all_rows_come_first_and_then_what_comes(place: Path, url: str) -> None:
    append(place, 1)
    query = Query(url)
    assert sorted(query.batch() or []) == [0, 1]
    assert query.batch() is None
    append(place, 2, 3)
    assert query.batch() is None, "the server was asked again too soon"
    query.clock.sleep(30)
    assert query.batches() == [[2, 3]]


@needs_limits
@pytest.mark.protocol("SHARE-STR-02")
@pytest.mark.parametrize(
    ("options", "batches"),
    [
        ({"maxVersionsPerRpc": "2"}, [[1, 2], [3, 4], [5]]),
        ({"maxFilesPerTrigger": "2"}, [[1, 2], [3, 4], [5]]),
        ({"maxVersionsPerRpc": "3", "maxFilesPerTrigger": "2"}, [[1, 2], [3], [4, 5]]),
        ({"maxBytesPerTrigger": "1b"}, [[1], [2], [3], [4], [5]]),
        ({"readChangeFeed": "true", "maxFilesPerTrigger": "2"}, [[1, 2, 3, 4, 5]]),
    ],
    ids=str,
)
def test_how_much_a_batch_takes(
    place: Path, url: str, options: dict[str, str], batches: list[Batch]
) -> None:
    append(place, 1, 2, 3, 4, 5)
    assert Query(url, startingVersion="1", **options).batches() == batches
    all_at_once = Query(url, startingVersion="1", **options).batches(EVERYTHING)
    assert all_at_once == [[1, 2, 3, 4, 5]]


@pytest.mark.parametrize("stops", [1, 2, 3])
@pytest.mark.parametrize("start", [None, "0"])
def test_each_row_comes_once_however_often_the_query_is_stopped(
    place: Path, url: str, stops: int, start: str | None
) -> None:
    append(place, 1, 2, 3)
    options = {"maxFilesPerTrigger": "2", "maxVersionsPerRpc": "3"}
    query = Query(url, **options, **({"startingVersion": start} if start else {}))
    found: Batch = []
    for number in range(4, 10):
        append(place, number)
        query.clock.sleep(30)
        found += query.batch() or []
        if number % stops == 0:
            query.start()
    query.start()
    found += [row for batch in query.batches() for row in batch]
    assert sorted(found) == list(range(10))


@needs_limits
@pytest.mark.parametrize(
    "options", [{}, {"startingVersion": "0"}, {"startingVersion": "0", "readChangeFeed": "true"}]
)
def test_batches_that_are_planned_again_are_the_same(
    place: Path, url: str, options: dict[str, str]
) -> None:
    """As after a crash between the log of offsets and the end of the batch."""
    append(place, 1, 2, 3, 4)
    query = Query(url, maxFilesPerTrigger="2", maxVersionsPerRpc="4", **options)
    planned = []
    while True:
        start = dict(query.offset or {})
        rows = query.batch()
        if rows is None:
            break
        planned.append((start, query.offset, rows))
    assert len(planned) > 1
    append(place, 5, 6)
    query.options["maxVersionsPerRpc"] = "1"
    for start, end, rows in planned:
        query.start()
        assert query.rows_between(start, end or {}) == rows


@needs_limits
@pytest.mark.parametrize("options", [{}, {"startingVersion": "latest"}], ids=str)
def test_a_first_batch_that_was_not_done_comes_again(
    place: Path, url: str, options: dict[str, str]
) -> None:
    """Spark knows its end, and asks anew where a query starts."""
    append(place, 1)
    query = Query(url, **options)
    append(place, 2)
    query.clock.sleep(30)
    rows, end = query.batch(), query.offset
    assert rows
    append(place, 3)
    again = Query(url, **options)
    assert again.rows_between(again.offset or {}, end or {}) == rows


@needs_limits
@pytest.mark.parametrize("everything", [True, False])
def test_available_now_ends_with_what_is_there(place: Path, url: str, *, everything: bool) -> None:
    append(place, 1, 2)
    query = Query(url, maxVersionsPerRpc="1", startingVersion="1")
    query.reader.prepareForTriggerAvailableNow()
    append(place, 3)
    query.clock.sleep(60)
    limit = EVERYTHING if everything else None
    assert query.batches(limit) == ([[1, 2]] if everything else [[1], [2]])


def test_runners_that_name_no_start_get_everything(place: Path, url: str) -> None:
    """As PySpark 4.1, which tells neither the start nor a limit."""
    append(place, 1)
    query = Query(url)
    for rows in [[0, 1], [2, 3]]:
        end = query.reader.latestOffset()
        assert sorted(query.rows_between(query.offset or {}, end)) == rows
        query.offset = end
        append(place, 2, 3)
        assert query.reader.latestOffset() == end, "the server was asked again too soon"
        query.clock.sleep(30)


@pytest.mark.protocol("SHARE-STR-05")
def test_a_stream_starts_where_it_is_told(place: Path, url: str) -> None:
    append(place, 1, 2)
    assert Query(url, startingVersion="2").batches() == [[2]]
    assert Query(url, startingVersion="latest").batches() == []
    assert Query(url, startingTimestamp="2001-01-01").batches() == [[0, 1, 2]]


@pytest.mark.protocol("SHARE-STR-05")
def test_deleted_rows_are_an_error_unless_an_option_says_what_to_do(place: Path, url: str) -> None:
    append(place, 1)
    DeltaTable(place).delete("id = 1")
    with pytest.raises(RowsChangedError, match="version 2"):
        Query(url, startingVersion="0").batches()
    assert Query(url, startingVersion="0", ignoreDeletes="true").batches() == [[0, 1]]
    assert Query(url, startingVersion="0", skipChangeCommits="true").batches() == [[0, 1]]
    feed = Query(url, startingVersion="0", readChangeFeed="true")
    assert set(feed.reader._rows.names) == {"id", *CHANGE_COLUMNS}
    assert feed.batches() == [[0, 1, 1]]


@needs_limits
@pytest.mark.protocol("SHARE-STR-04")
def test_another_schema_is_an_error_until_the_query_starts_again(place: Path, url: str) -> None:
    query = Query(url)
    assert query.batches() == [[0]]
    append(place, 1)
    more = pa.table({"id": [2], "more": ["x"]})
    write_deltalake(place, more, mode="append", schema_mode="merge")
    query.clock.sleep(30)
    assert query.batch() == [1]
    with pytest.raises(IncompatibleChangesError, match="more"):
        query.batch()
    query.start()
    assert query.batches() == [[2]]
    assert Query(url, startingVersion="0").batches() == [[0, 1], [2]]


@pytest.mark.protocol("SHARE-STR-01")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"queryTableVersionIntervalSeconds": "29"}, "30 s or more"),
        ({"queryTableVersionIntervalSeconds": "soon"}, "expected seconds"),
        ({"maxVersionsPerRpc": "0"}, "expected 1 or more"),
        ({"maxVersionPerRpc": "1"}, "did you mean 'maxVersionsPerRpc'"),
        ({"versionAsOf": "1"}, "versionAsOf"),
    ],
    ids=str,
)
def test_options_that_cannot_be_honoured_are_refused(
    url: str, options: dict[str, str], error: str
) -> None:
    source = SharingSource({"path": url})
    schema = source.schema()
    with pytest.raises(InvalidInputError, match=error):
        SharingSource({"path": url, **options}).streamReader(schema)


def test_an_interval_may_be_longer(place: Path, url: str) -> None:
    query = Query(url, queryTableVersionIntervalSeconds="60s", startingVersion="latest")
    assert query.batch() is None
    append(place, 1)
    query.clock.sleep(59)
    assert query.batch() is None
    query.clock.sleep(1)
    assert query.batch() == [1]


@pytest.mark.protocol("SHARE-STR-04", "SHARE-STR-05")
def test_a_query_runs_on_spark(spark: SparkSession, place: Path, url: str, tmp_path: Path) -> None:
    """Twice, to the end of what is there, with a checkpoint in between."""
    found = []
    for more in ([1, 2], [3]):
        append(place, *more)
        stream = spark.readStream.format("deltalog_sharing").option("maxFilesPerTrigger", 2)
        query = (
            stream.load(url)
            .writeStream.format("deltalog")
            .option("checkpointLocation", str(tmp_path / "notes"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "copy"))
        )
        query.awaitTermination()
        copy: list[Any] = DeltaTable(tmp_path / "copy").to_pyarrow_table()["id"].to_pylist()
        found.append(sorted(copy))
    assert found == [[0, 1, 2], [0, 1, 2, 3]]
