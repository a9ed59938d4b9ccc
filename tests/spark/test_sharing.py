"""Shared tables on Spark: a server over loopback, read by the format `deltalog_sharing`."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, StringEndsWith
from pyspark.sql.types import LongType, StringType, StructField, StructType

import deltalog.spark
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError, ShareNotFoundError
from deltalog.schema.metadata_columns import CHANGE_COLUMNS
from deltalog.sharing import SharedTable
from deltalog.sharing.server import app
from deltalog.spark import load_as_spark, load_table_changes_as_spark
from deltalog.spark.sharing.batch import SharedBatchReader
from deltalog.spark.source import SharingSource
from tests.spark.shapes import SHAPES, Build, mapped, partitioned_with_vectors, plain
from tests.spark.test_native import rows
from tests.spark.test_settings import setting
from tests.support.asgi import serving
from tests.support.shared_files import PROTOCOL, file_line, metadata, parquet
from tests.support.sharing import commit_at, config_of, write_profile
from tests.support.sharing_server import Answer, Asked, ScriptedServer, lines
from tests.support.spark_workers import own_environment, packed, sent

FEED = {"delta.enableChangeDataFeed": "true"}
ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "day": ["mo", "tu", "we", None] * 25})


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tables by name: those of every shape, one with a history, one whose history is not shared."""
    directory = tmp_path_factory.mktemp("shared")
    found = {build.__name__: directory / build.__name__ for build in SHAPES}
    for build in SHAPES:
        build(found[build.__name__])
    names = ("changed", "renamed", "latest", "growing", "zoneless", "dotted")
    found |= {name: directory / name for name in names}
    write_deltalake(found["changed"], ROWS, partition_by=["day"], configuration=FEED)
    DeltaTable(found["changed"]).update(updates={"id": "id + 1000"}, predicate="id < 2")
    DeltaTable(found["changed"]).delete("id = 50")
    commit_at(found["changed"], *(f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3)))
    write_deltalake(found["latest"], ROWS)
    write_deltalake(found["dotted"], pa.table({"id": [1], "_metadata.file_name": ["own"]}))
    write_deltalake(found["growing"], ROWS, configuration=FEED)
    both = FEED | {"delta.columnMapping.mode": "name"}
    write_deltalake(found["renamed"], pa.table({"id": [1]}), configuration=both)
    write_deltalake(found["renamed"], pa.table({"id": [2]}), mode="append")
    DeltaTable(found["renamed"]).alter.rename_column("id", "key")
    moments = pa.table({"id": [1], "at": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]})
    write_deltalake(found["zoneless"], moments, partition_by=["at"])
    commit = found["zoneless"] / "_delta_log" / f"{0:020}.json"
    written = commit.read_text("utf-8")
    assert "2024-01-01T00:00:00.000000Z" in written
    commit.write_text(written.replace("2024-01-01T00:00:00.000000Z", "2024-01-01 00:00:00"))
    for checksum in commit.parent.glob("*.crc"):
        checksum.unlink()
    return found


@pytest.fixture(scope="module")
def profile(places: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A server with these tables as `s.d.<name>`, and the profile for it."""
    tables = {
        f"s.d.{name}": {"location": str(place), "historyShared": name != "latest"}
        for name, place in places.items()
    }
    with serving(app(config_of(tables))) as url:
        path = tmp_path_factory.mktemp("profile") / "test.share"
        path.touch(mode=0o600)
        yield write_profile(path, f"{url}/delta-sharing/")


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.close()


class Plan:
    """A read as PySpark plans it, without Spark."""

    def __init__(self, profile: Path, name: str, **options: str) -> None:
        self.source = SharingSource({"path": f"{profile}#s.d.{name}", **options})
        self.schema = self.source.schema()

    def reader(self, *filters: Filter) -> SharedBatchReader:
        """One of any number of plans of the same dataframe."""
        found = sent(self.source).reader(self.schema)
        assert isinstance(found, SharedBatchReader)
        if filters:
            assert found.pushFilters(list(filters)) == list(filters)
        return found

    def files(self, *filters: Filter) -> int:
        return sum(len(partition.tasks) for partition in self.reader(*filters).partitions())

    def table(self, *filters: Filter) -> pa.Table:
        reader = self.reader(*filters)
        worker = sent(reader)
        partitions = sent(reader.partitions())
        return pa.Table.from_batches(
            [batch for partition in partitions for batch in worker.read(partition)]
        )


def load(spark: SparkSession, profile: Path, name: str, **options: Any) -> DataFrame:
    reader = spark.read.format("deltalog_sharing").options(**options)
    return reader.load(f"{profile}#s.d.{name}")


@pytest.mark.protocol("SHARE-CLI-01")
@pytest.mark.parametrize("build", [plain, mapped, partitioned_with_vectors])
def test_spark_shows_the_rows_of_the_table_itself(
    spark: SparkSession, profile: Path, places: dict[str, Path], build: Build
) -> None:
    direct = DeltaTable(places[build.__name__]).to_pyarrow_table()
    assert rows(load(spark, profile, build.__name__)) == rows(direct)


def test_code_for_the_official_connector_reads_the_same_rows(
    spark: SparkSession, profile: Path, places: dict[str, Path]
) -> None:
    deltalog.spark.register(spark, "delta")
    try:
        found = spark.read.format("deltaSharing").load(f"{profile}#s.d.{plain.__name__}")
    finally:
        deltalog.spark.unregister(spark, "delta")
    assert rows(found) == rows(DeltaTable(places[plain.__name__]).to_pyarrow_table())


@pytest.mark.parametrize("build", SHAPES, ids=lambda build: build.__name__)
def test_rows_are_those_of_the_table_itself(
    profile: Path, places: dict[str, Path], build: Build
) -> None:
    plan = Plan(profile, build.__name__)
    direct = DeltaTable(places[build.__name__]).to_pyarrow_table()
    if direct.num_rows:
        assert rows(plan.table()) == rows(direct)
    else:
        assert plan.files() == 0


@pytest.mark.protocol("SHARE-QT-10")
@pytest.mark.parametrize(
    ("options", "version"),
    [
        ({"versionAsOf": "0"}, 0),
        ({"VERSIONASOF": "1"}, 1),
        ({"timestampAsOf": "2026-01-02T12:00:00Z"}, 1),
        ({"timestampAsOf": "2026-01-02 01:00:00", "timeZone": "+02:00"}, 0),
        ({"responseFormat": "delta"}, 2),
        ({"responseFormat": "parquet"}, 2),
    ],
    ids=str,
)
def test_versions_are_read(
    profile: Path, places: dict[str, Path], options: dict[str, str], version: int
) -> None:
    direct = DeltaTable(places["changed"], version).to_pyarrow_table()
    assert rows(Plan(profile, "changed", **options).table()) == rows(direct)


@pytest.mark.protocol("SHARE-CDF-05")
@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        ({"startingVersion": "0"}, (0, 2)),
        ({"startingVersion": "1", "endingVersion": "1"}, (1, 1)),
        ({"startingVersion": "1", "endingVersion": "99"}, (1, 2)),
        ({"startingTimestamp": "2026-01-02", "endingTimestamp": "2026-01-02T01:00:00Z"}, (1, 1)),
    ],
    ids=str,
)
def test_changes_are_read(
    profile: Path, places: dict[str, Path], options: dict[str, str], bounds: tuple[int, int]
) -> None:
    direct = DeltaTable(places["changed"]).load_cdf(*bounds).to_table()
    plan = Plan(profile, "changed", readChangeFeed="true", **options)
    assert rows(plan.table().select(direct.column_names)) == rows(direct)


def test_changes_before_a_column_was_renamed_have_its_old_name(profile: Path) -> None:
    bounds = {"startingVersion": "0", "endingVersion": "1"}
    found = Plan(profile, "renamed", readChangeFeed="true", **bounds).table()
    assert found["id"].to_pylist() == [1, 2]


def test_filters_leave_out_files_and_rows(profile: Path) -> None:
    plan = Plan(profile, "changed")
    monday = EqualTo(("day",), "mo")
    assert 0 < plan.files(monday) < plan.files()
    found = plan.table(monday, GreaterThan(("id",), 90))
    assert set(found["id"].to_pylist()) == {92, 96, 1000}
    assert Plan(profile, "changed", pushFilters="false").files(monday) == plan.files()


@pytest.fixture
def told(scripted: ScriptedServer, tmp_path: Path) -> tuple[Path, list[dict[str, Any]]]:
    """The profile of a server with a table of two rows, and the queries that it gets."""
    profile = tmp_path / "told.share"
    profile.touch(mode=0o600)
    profile.write_text(json.dumps(scripted.profile()), "utf-8")
    queries: list[dict[str, Any]] = []
    head = PROTOCOL, metadata(columns={"id": "long"})

    def query(asked: Asked) -> Answer:
        queries.append(asked.json)
        line = file_line(scripted, f"url-{len(queries)}", parquet(id=pa.array([1, 2], pa.int64())))
        line["file"]["id"] = "the same file"
        return lines(*head, line)

    scripted.on_table("GET metadata", lines(*head))
    scripted.on_table("POST query", query)
    return profile, queries


@pytest.mark.protocol("SHARE-QT-07", "SHARE-QT-08")
def test_the_server_is_told_of_filters_and_limits(told: tuple[Path, list[dict[str, Any]]]) -> None:
    profile, queries = told
    plan = Plan(profile, "t", limitHint="5")
    assert plan.table(EqualTo(("id",), 2))["id"].to_pylist() == [2]
    assert queries[-1]["predicateHints"] == ["id = 2"]
    assert "limitHint" not in queries[-1], "how many rows match, the server does not know"
    assert plan.table()["id"].to_pylist() == [1, 2]
    assert queries[-1]["limitHint"] == 5
    assert plan.table(StringEndsWith(("other",), "x")).num_rows == 2


@pytest.mark.protocol("SHARE-CLI-03")
def test_a_worker_asks_for_new_urls(
    scripted: ScriptedServer, told: tuple[Path, list[dict[str, Any]]]
) -> None:
    profile, queries = told
    reader = Plan(profile, "t").reader()
    planned = packed((reader, reader.partitions()))
    scripted.denied.add("/data/url-1")
    worker, partitions = pickle.loads(planned)
    found = [batch for partition in partitions for batch in worker.read(partition)]
    assert pa.Table.from_batches(found)["id"].to_pylist() == [1, 2]
    assert len(queries) == 2


def test_a_session_that_knows_the_format_hands_filters_on(
    spark: SparkSession, told: tuple[Path, list[dict[str, Any]]]
) -> None:
    profile, queries = told
    deltalog.spark.register(spark)
    assert load(spark, profile, "t").where("id > 1").collect() == [(2,)]
    assert "id > 1" in queries[-1]["predicateHints"]


def test_some_columns_are_read(spark: SparkSession, profile: Path) -> None:
    source = SharingSource({"path": f"{profile}#s.d.changed"})
    reader: Any = source.reader(StructType([StructField("day", StringType())]))
    task = reader.partitions()[0].tasks[0]
    assert task.spec.output.names == ["day"]
    frame = spark.read.schema("id LONG").format("deltalog_sharing")
    found = frame.load(f"{profile}#s.d.changed").where("id < 5")
    assert sorted(found.collect()) == [(2,), (3,), (4,)]
    with pytest.raises(InvalidInputError, match="column 'day' is string"):
        source.reader(StructType([StructField("day", LongType())]))


def test_a_frame_keeps_the_version_that_it_showed(profile: Path, places: dict[str, Path]) -> None:
    plan = Plan(profile, "growing")
    changes = Plan(profile, "growing", readChangeFeed="true", startingVersion="0")
    assert plan.table().num_rows == 100
    write_deltalake(places["growing"], ROWS, mode="append")
    assert plan.table().num_rows == 100
    assert Plan(profile, "growing").table().num_rows == 200
    assert changes.table().num_rows == 100


def test_without_shared_history_the_latest_rows_are_shown(
    profile: Path, places: dict[str, Path]
) -> None:
    plan = Plan(profile, "latest")
    write_deltalake(places["latest"], ROWS, mode="append")
    assert plan.table().num_rows == 200
    shutil.rmtree(places["latest"])
    write_deltalake(places["latest"], pa.table({"id": ["now a text"], "day": ["mo"]}))
    with pytest.raises(InvalidInputError, match="another schema"):
        plan.table()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"versionAsOff": "1"}, "did you mean 'versionAsOf'"),
        ({"xyz": "1"}, "expected one of .*'limitHint'"),
        ({"storage.key": "1"}, "server signs"),
        ({"responseFormat": "csv"}, "delta, parquet"),
        ({"limitHint": "0"}, "expected 1 or more"),
        ({"startingVersion": "0"}, "without readChangeFeed"),
        ({"maxVersionsPerRpc": "5"}, "maxVersionsPerRpc"),
    ],
    ids=str,
)
def test_options_that_cannot_be_honoured_are_refused(
    profile: Path, options: dict[str, str], error: str
) -> None:
    schema = StructType([StructField("id", LongType())])
    with pytest.raises(InvalidInputError, match=error):
        SharingSource({"path": f"{profile}#s.d.changed", **options}).reader(schema)


def test_tables_that_cannot_be_found_are_named(profile: Path) -> None:
    for path in ("", "t", f"{profile}#t"):
        with pytest.raises(InvalidInputError, match="table"):
            SharingSource({"path": path}).schema()
    with pytest.raises(InvalidInputError, match="profile"):
        SharingSource({"path": "no.share#s.d.t"}).schema()
    with pytest.raises(ShareNotFoundError, match=r"s\.d\.none"):
        SharingSource({"path": f"{profile}#s.d.none"}).schema()
    named = SharingSource({"path": "s.d.changed", "profile": str(profile)})
    assert named.schema().names == ["id", "day"]


def test_shared_tables_are_not_written(profile: Path) -> None:
    source = SharingSource({"path": f"{profile}#s.d.changed"})
    for write in (source.writer, source.streamWriter):
        with pytest.raises(InvalidInputError, match="read-only"):
            write(source.schema(), overwrite=False)


@pytest.mark.usefixtures("spark")
def test_the_names_of_the_official_client(profile: Path, places: dict[str, Path]) -> None:
    url, direct = f"{profile}#s.d.changed", DeltaTable(places["changed"])
    assert load_as_spark(url).count() == 99
    assert load_as_spark(url, version=0).where("day = 'mo'").count() == 25
    assert load_as_spark(url, timestamp="2026-01-01 12:00:00").count() == 100
    changes = load_table_changes_as_spark(url, starting_version=1, ending_version=1)
    told = direct.load_cdf(1, 1).to_table().select(changes.columns)
    assert rows(changes) == rows(told)
    with pytest.raises(InvalidInputError, match="starting_version or"):
        load_table_changes_as_spark(url, ending_version=1)
    with pytest.raises(AnalysisException, match=r"s\.d\.none"):
        load_as_spark(f"{profile}#s.d.none").count()  # Spark Connect looks only now


@pytest.mark.parametrize("build", [plain, mapped, partitioned_with_vectors])
def test_a_scan_gives_the_frame_of_the_format(
    spark: SparkSession, profile: Path, build: Build
) -> None:
    url = f"{profile}#s.d.{build.__name__}"
    frame, theirs = SharedTable(url).scan().to_spark(), load_as_spark(url)
    assert frame.schema == theirs.schema
    assert frame.sparkSession is spark
    assert rows(frame) == rows(theirs)


def test_a_frame_is_what_was_scanned(spark: SparkSession, profile: Path) -> None:
    told = json.loads(profile.read_text("utf-8"))
    shared = SharedTable("s.d.changed", profile=told)
    late = shared.scan(["day", "id"], "id >= 98").to_spark(spark)
    assert late.columns == ["day", "id"]
    found = {(row.id, row.day) for row in late.collect()}
    assert found == {(98, "we"), (99, None), (1000, "mo"), (1001, "tu")}
    assert shared.scan(predicate="day = 'mo'", limit=3).to_spark(spark).count() == 3
    assert shared.scan(predicate="id < 0").to_spark(spark).count() == 0
    first = shared.scan(version=0).to_spark(spark)
    assert rows(first) == rows(load_as_spark(f"{profile}#s.d.changed", version=0))


def test_a_frame_has_parts_of_structs(spark: SparkSession, profile: Path) -> None:
    scan = SharedTable(f"{profile}#s.d.plain").scan(["inner.x", "id"], "inner.y[0].z > 9")
    frame = scan.to_spark(spark)
    assert frame.dtypes == [("inner", "struct<x:bigint>"), ("id", "bigint")]
    assert sorted(frame.collect()) == [((10,), 10), ((11,), 11)]


def test_changes_are_frames(spark: SparkSession, profile: Path, places: dict[str, Path]) -> None:
    url = f"{profile}#s.d.changed"
    frame = SharedTable(url).load_cdf(1, 1).to_spark()
    theirs = load_table_changes_as_spark(url, starting_version=1, ending_version=1)
    assert frame.schema == theirs.schema
    assert rows(frame) == rows(theirs)
    some = SharedTable(url).load_cdf(1, columns=["_change_type", "id"], predicate="id < 100")
    assert sorted(some.to_spark(spark).collect()) == [
        ("delete", 50),
        ("update_preimage", 0),
        ("update_preimage", 1),
    ]
    nothing = SharedTable(url).load_cdf(99, allow_out_of_range=True).to_spark(spark)
    assert nothing.columns == [*DeltaTable(places["changed"]).schema().names, *CHANGE_COLUMNS]
    assert nothing.count() == 0


def test_what_a_frame_cannot_have_is_refused(spark: SparkSession, profile: Path) -> None:
    shared = SharedTable(f"{profile}#s.d.plain")
    with pytest.raises(InvalidInputError, match=r"_metadata\.file_name"):
        shared.scan(["id", "_metadata.file_name"]).to_spark(spark)
    with pytest.raises(InvalidInputError, match="the first 2147483648 rows"):
        shared.scan(limit=1 << 31).to_spark(spark)


def test_a_frame_has_a_column_of_the_table_that_is_called_as_a_hidden_one(
    spark: SparkSession, profile: Path
) -> None:
    frame = SharedTable(f"{profile}#s.d.dotted").scan().to_spark(spark)
    assert frame.columns == ["id", "_metadata.file_name"]
    assert [tuple(row) for row in frame.collect()] == [(1, "own")]


def test_a_frame_keeps_moments_of_partitions(spark: SparkSession, profile: Path) -> None:
    """Where the log names no zone, the client and the session have to agree on one."""
    url = f"{profile}#s.d.zoneless"
    with setting(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        with pytest.raises(InvalidInputError, match=r"'at' has no time zone.*'Asia/Tokyo' as its"):
            SharedTable(url).scan().to_spark(spark)
        assert SharedTable(url).scan(["id"]).to_spark(spark).count() == 1
        agreed = SharedTable(url, default_timezone="Asia/Tokyo").scan().to_spark(spark)
        assert rows(agreed) == rows(load_as_spark(url))


WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
from deltalog.sharing import SharedTable
shared = SharedTable(sys.argv[1])
for given in (shared.scan(), shared.load_cdf(0)):
    try:
        given.to_spark()
    except ValueError as error:
        print(error)
"""


def test_without_pyspark_the_client_says_what_to_install(profile: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_SPARK, f"{profile}#s.d.changed"]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    expected = "cannot use pyspark: it is not installed; pip install 'deltalog[spark]'"
    assert found.stdout.splitlines() == [expected] * 2


def test_without_a_session_a_frame_cannot_be_made(profile: Path) -> None:
    code = "import deltalog.sharing as s, sys; s.SharedTable(sys.argv[1]).scan().to_spark()"
    command = [sys.executable, "-W", "ignore", "-c", code, f"{profile}#s.d.plain"]
    found = subprocess.run(
        command, check=False, capture_output=True, text=True, env=own_environment()
    )
    assert "No active SparkSession was found" in found.stderr


def test_the_package_for_discovery_needs_no_http_library() -> None:
    """PySpark imports it whenever it looks for formats, for users of other formats too."""
    code = "import pyspark_deltalog_sharing, sys; print('aiohttp' in sys.modules)"
    command = [sys.executable, "-W", "ignore", "-c", code]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "False"
