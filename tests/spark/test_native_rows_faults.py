"""What goes wrong while Spark writes rows by itself, and what such a write leaves behind."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

import deltalog.spark
from deltalog import DeltaTable, convert_to_deltalake
from deltalog._util.clock import now_ms
from deltalog._util.paths import FileInfo
from deltalog.data.write import WriteSpec
from deltalog.data.write.adopted_files import describe_staged
from deltalog.errors import AccessDeniedError, DataFileUnreadableError, StorageError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.changes.file_options import FileOptions
from deltalog.spark.engine import rows as native_rows
from deltalog.storage import Store, open_store
from tests.spark.conftest import CONNECT
from tests.support.native_writes import (
    BY_SPARK,
    STAGING,
    TIMESTAMPS,
    entries,
    failing,
    frame_of,
    having,
    is_clean,
    paths,
    rows,
    stats,
    writers,
)

pytestmark = pytest.mark.skipif(CONNECT, reason="rows of remote sessions are our tasks'")

AT = "timestamp_micros(id) AS at"


def by_arrow(spark: SparkSession) -> DataFrame:
    return (
        spark.range(0, 6, 1, 2)
        .selectExpr("id", AT)
        .mapInArrow(failing(99), "id long, at timestamp")
    )


def by_function(spark: SparkSession) -> DataFrame:
    def of(number: int) -> int:
        if number == 5:
            raise RuntimeError("lost")
        return number

    made = F.udf(of, "long", useArrow=False)
    return spark.range(0, 6, 1, 2).select(made("id").alias("id"), F.expr(AT))


def by_expression(spark: SparkSession) -> DataFrame:
    column = "if(id = 5, raise_error('lost'), id) AS id"
    return spark.range(0, 6, 1, 2).selectExpr(
        f"CAST({column.removesuffix(' AS id')} AS long) AS id", AT
    )


@pytest.mark.parametrize("kept", [None, "INT96", "TIMESTAMP_MICROS"])
@pytest.mark.parametrize("make", [by_arrow, by_function, by_expression])
def test_a_frame_that_fails_leaves_everything_as_it_was(
    spark: SparkSession,
    tmp_path: Path,
    make: Callable[[SparkSession], DataFrame],
    kept: str | None,
) -> None:
    table = tmp_path / "t"
    deltalog.spark.write(spark.range(3).selectExpr("id", AT), table)
    before = entries(table)
    with having(spark, **({} if kept is None else {TIMESTAMPS: kept})):
        with pytest.raises(Exception, match="lost"):
            deltalog.spark.write(make(spark), table, mode="overwrite")
        assert spark.conf.get(TIMESTAMPS, None) == kept
    assert entries(table) == before
    assert [row[0] for row in rows(table)] == [0, 1, 2]


def test_a_table_that_fails_to_come_into_being_is_none(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="lost"):
        deltalog.spark.write(by_expression(spark), tmp_path / "t")
    assert entries(tmp_path / "t") == set()
    deltalog.spark.write(spark.range(1), tmp_path / "t")
    assert rows(tmp_path / "t") == [(0,)]


@pytest.mark.parametrize("kept", [None, "INT96"])
def test_settings_are_as_they_were_after_a_write(
    spark: SparkSession, tmp_path: Path, kept: str | None
) -> None:
    with having(spark, **({} if kept is None else {TIMESTAMPS: kept})):
        before = dict(spark.conf.getAll)
        deltalog.spark.write(
            spark.range(3).selectExpr("id", "struct(id, " + AT + ") AS s"), tmp_path
        )
        assert dict(spark.conf.getAll) == before
    assert writers(tmp_path) == BY_SPARK
    assert {pq.read_metadata(path).schema.column(2).physical_type for path in paths(tmp_path)} == {
        "INT64"
    }


def test_tasks_that_are_run_again_leave_each_row_once(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0, 6, 1, 2).mapInArrow(failing(2), "id long")
    deltalog.spark.write(frame, tmp_path)
    assert (rows(tmp_path), writers(tmp_path)) == ([(n,) for n in range(6)], BY_SPARK)
    assert is_clean(tmp_path)


def test_writes_at_the_same_time_do_not_meet(spark: SparkSession, tmp_path: Path) -> None:
    for _ in range(2):
        threads = [
            threading.Thread(
                target=deltalog.spark.write,
                args=(spark.range(3).selectExpr("id", "timestamp_micros(id + 1) AS at"), tmp_path),
                kwargs={"mode": "append"},
            )
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert spark.conf.get(TIMESTAMPS, None) is None
    assert not [name for name in spark.conf.getAll if name.startswith("spark.deltalog.output")]
    assert writers(tmp_path) == BY_SPARK
    stored = [pq.read_metadata(path).schema.column(1).physical_type for path in paths(tmp_path)]
    assert set(stored) == {"INT64"}
    found = DeltaTable(tmp_path).to_pyarrow_table()
    ids: list[Any] = found.column("id").to_pylist()
    assert sorted(ids) == sorted([0, 1, 2] * 6)
    assert set(found.column("at").cast(pa.int64()).to_pylist()) == {1, 2, 3}
    assert is_clean(tmp_path)


class LocalStore:
    """The store of a local table, which does something before it is listed or puts a file."""

    def __init__(self, root: Path, before: Callable[[str, str], None]) -> None:
        self.store: Any = open_store(root)
        self.before = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def list_all(self, directory: str) -> Iterator[FileInfo]:
        self.before("list_all", directory)
        return iter(self.store.list_all(directory))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.before("put_if_absent", path)
        self.store.put_if_absent(path, data)


def test_a_write_that_cannot_commit_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(spark.range(3), tmp_path)
    before = entries(tmp_path)

    def refusing(verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.endswith("1.json"):
            raise AccessDeniedError("not yours")

    store: Store = LocalStore(tmp_path, refusing)
    with pytest.raises(AccessDeniedError):
        deltalog.spark.write(spark.range(5), store, mode="append")
    assert entries(tmp_path) == before


def test_an_attempt_that_still_runs_adds_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Spark does not wait for tasks that it has given up: they go on below `_temporary`."""

    def writing_late(verb: str, directory: str) -> None:
        if verb == "list_all" and directory.startswith(".staged."):
            late = tmp_path / directory / "_temporary/0/_temporary/attempt_1"
            late.mkdir(parents=True)
            (one, *_) = (tmp_path / directory).glob("*.parquet")
            shutil.copy(one, late / one.name)
            (late / "part-00009.parquet").write_bytes(b"PAR1 and not yet more")

    store: Store = LocalStore(tmp_path, writing_late)
    deltalog.spark.write(spark.range(0, 4, 1, 2), store)
    assert (rows(tmp_path), writers(tmp_path)) == ([(0,), (1,), (2,), (3,)], BY_SPARK)
    assert is_clean(tmp_path)


def test_files_on_another_machine_are_no_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    def elsewhere(verb: str, directory: str) -> None:
        if verb == "list_all" and directory.startswith(".staged."):
            shutil.move(tmp_path / directory, tmp_path.with_name("elsewhere"))

    store: Store = LocalStore(tmp_path, elsewhere)
    with pytest.raises(StorageError, match="finds no complete job"):
        deltalog.spark.write(spark.range(4), store)
    assert entries(tmp_path) == set()


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} is not there"
        time.sleep(0.01)


def test_a_job_without_its_mark_is_not_taken(spark: SparkSession, tmp_path: Path) -> None:
    def unmark(verb: str, directory: str) -> None:
        if verb == "list_all" and directory.startswith(".staged."):
            (tmp_path / directory / "_SUCCESS").unlink()

    store: Store = LocalStore(tmp_path, unmark)
    with pytest.raises(StorageError, match="finds no complete job"):
        deltalog.spark.write(spark.range(4), store)
    assert entries(tmp_path) == set()


def test_a_setting_that_somebody_changes_meanwhile_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    def change(verb: str, directory: str) -> None:
        if verb == "list_all" and directory.startswith(".staged."):
            seen.append(spark.conf.get(TIMESTAMPS, None))

    def slow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started.touch()
        for batch in batches:
            wait_for(released)
            yield batch

    seen: list[str | None] = []
    started, released = tmp_path / "started", tmp_path / "released"
    frame = spark.range(2).coalesce(1).mapInArrow(slow, "id long")
    frame = frame.selectExpr("id", "timestamp_micros(id) AS at")
    store: Store = LocalStore(tmp_path / "t", change)
    with having(spark, spark__sql__parquet__outputTimestampType="INT96"):
        thread = threading.Thread(target=deltalog.spark.write, args=(frame, store))
        thread.start()
        wait_for(started)
        assert spark.conf.get(TIMESTAMPS, None) == "TIMESTAMP_MICROS"
        spark.conf.set(TIMESTAMPS, "TIMESTAMP_MILLIS")
        released.touch()
        thread.join()
        assert seen == ["TIMESTAMP_MILLIS"]
    assert rows(tmp_path / "t")[1][1].microsecond == 1


def test_files_that_are_no_table_s_leave_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltalog.spark.write(spark.range(3), tmp_path)
    before = entries(tmp_path)

    def damaging(spec: WriteSpec, files: Any) -> Any:
        (file, *_) = files
        (tmp_path / file.path).write_bytes(b"PAR1")
        return describe_staged(spec, files)

    monkeypatch.setattr(native_rows, "describe_staged", damaging)
    with pytest.raises(DataFileUnreadableError):
        deltalog.spark.write(spark.range(5), tmp_path, mode="append")
    assert entries(tmp_path) == before


# --- files that are staged


def spec_of(table: Path) -> WriteSpec:
    context = utc_context(open_store(table))
    return FileOptions().spec(context, load_snapshot(context).configuration)


def staged(spec: WriteSpec) -> list[FileInfo]:
    return [file for file in spec.store.list_all(STAGING) if file.path.endswith(".parquet")]


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
def test_statistics_of_any_timestamps_and_of_maps(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    frame = spark.sql(
        "SELECT * FROM VALUES "
        "(TIMESTAMP'0001-01-01 00:00:00', map('k', TIMESTAMP'2020-01-01'), struct(1)), "
        "(TIMESTAMP'9999-12-31 23:59:59.999', map(), NULL), (NULL, NULL, struct(NULL)) "
        "AS (at, m, s)"
    ).selectExpr("at", "m", "struct(at, s.col1 AS n) AS s")
    deltalog.spark.write(frame.where("false"), tmp_path)
    spec = spec_of(tmp_path)
    with having(spark, **{TIMESTAMPS: kind}):
        frame.coalesce(1).write.option("maxRecordsPerFile", 2).parquet(str(tmp_path / STAGING))
    physical = {
        pq.read_metadata(tmp_path / file.path).schema.column(0).physical_type
        for file in staged(spec)
    }
    assert physical == {"INT96" if kind == "INT96" else "INT64"}
    null, filled = sorted(add.stats or "" for add in describe_staged(spec, staged(spec)).adds)
    assert null == (
        '{"numRecords":1,"minValues":{"s":{}},"maxValues":{"s":{}},'
        '"nullCount":{"at":1,"m":1,"s":{"at":1,"n":1}}}'
    )
    assert filled == (
        '{"numRecords":2,"minValues":{"at":"0001-01-01T00:00:00.000Z",'
        '"s":{"at":"0001-01-01T00:00:00.000Z","n":1}},'
        '"maxValues":{"at":"9999-12-31T23:59:59.999Z",'
        '"s":{"at":"9999-12-31T23:59:59.999Z","n":1}},'
        '"nullCount":{"at":0,"m":0,"s":{"at":0,"n":1}}}'
    )


def test_files_without_rows_are_left_out(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(frame_of(spark), tmp_path)
    spec = spec_of(tmp_path)
    spark.range(0).write.parquet(str(tmp_path / STAGING))
    (empty,) = staged(spec)
    assert pq.read_metadata(tmp_path / empty.path).num_rows == 0
    assert describe_staged(spec, [empty]).adds == ()


def test_empty_frames_and_empty_tasks_add_no_file(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(spark.range(0, 4, 1, 4).where("id = 2"), tmp_path / "t")
    assert (rows(tmp_path / "t"), len(paths(tmp_path / "t"))) == ([(2,)], 1)
    deltalog.spark.write(spark.range(0), tmp_path / "t", mode="append")
    assert (rows(tmp_path / "t"), is_clean(tmp_path / "t")) == ([(2,)], True)
    deltalog.spark.write(spark.range(0), tmp_path / "t", mode="overwrite")
    assert rows(tmp_path / "t") == []
    assert stats(tmp_path / "t") == []
    deltalog.spark.write(spark.range(0, 4, 1, 4).where("id > 9"), tmp_path / "new")
    assert (rows(tmp_path / "new"), is_clean(tmp_path / "new")) == ([], True)


# --- what killed jobs leave


def left_behind(table: Path, *, hours: float) -> set[str]:
    """What Spark has there in the middle of a job, and as old as that."""
    attempt = f"{STAGING}/_temporary/0/_temporary/attempt_202601010000000000000_0001_m_000000_1"
    names = {
        f"{attempt}/part-00000-0-c000.snappy.parquet",
        f"{attempt}/.part-00000-0-c000.snappy.parquet.crc",
        f"{STAGING}/_temporary/0/task_202601010000000000000_0001_m_000001/part-00001.parquet",
        f"{STAGING}/part-00002.parquet",
        f"{STAGING}/_SUCCESS",
    }
    rows_of_none = pa.table({"id": pa.array([66], pa.int64())})
    then = now_ms() / 1000 - hours * 3600
    for name in names:
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows_of_none, table / name)
        os.utime(table / name, (then, then))
    return names


OTHERS = (
    ".staged/a.parquet",
    ".staged.0123.tmp/a.parquet",
    ".stagedx0123456789abcdef0123456789abcdef.tmp/a.parquet",
    f"d/{STAGING}/a.parquet",
    f"{STAGING}x/a.parquet",
    "_temporary/0/a.parquet",
    ".spark-staging-1/a.parquet",
)


def test_a_vacuum_deletes_what_killed_jobs_left_once_it_is_old(
    spark: SparkSession, tmp_path: Path
) -> None:
    deltalog.spark.write(frame_of(spark), tmp_path)
    names = left_behind(tmp_path, hours=24 * 8)
    old = now_ms() / 1000 - 24 * 3600 * 30
    for name in OTHERS:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (old, old))
    assert rows(tmp_path) == [(0,), (1,)]
    found = deltalog.spark.DeltaTable.forPath(spark, tmp_path).vacuum()
    assert {row["path"] for row in found.collect()} == names
    left = {name for name in entries(tmp_path) if (tmp_path / name).is_file()}
    assert not left & names
    assert left >= set(OTHERS)
    assert rows(tmp_path) == [(0,), (1,)]


def test_young_files_of_jobs_stay(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(frame_of(spark), tmp_path)
    names = left_behind(tmp_path, hours=24 * 6)
    table = DeltaTable(tmp_path)
    assert table.vacuum(dry_run=False, full=True) == []
    assert entries(tmp_path) >= names
    gone = table.vacuum(24 * 5, dry_run=False, enforce_retention_duration=False, full=True)
    assert set(gone) == names


def test_nobody_reads_what_jobs_left(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(frame_of(spark), tmp_path)
    left_behind(tmp_path, hours=0)
    assert rows(tmp_path) == [(0,), (1,)]
    assert deltalog.spark.read(spark, tmp_path).count() == 2
    shutil.rmtree(tmp_path / "_delta_log")
    assert spark.read.parquet(str(tmp_path)).count() == 2
    convert_to_deltalake(str(tmp_path))
    assert rows(tmp_path) == [(0,), (1,)]
