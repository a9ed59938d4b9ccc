"""Who is measured on Spark: its own Parquet reader, Delta Spark with its jar, and deltalog without.

Each has a session of its own in a process of its own; what is measured is a job in a session that
has run one before. Delta Spark is there after `make reference`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.tables import ROWS_PER_FILE, name_of
from benchmarks.writers import copy_table

Call = Callable[[], object]
JARS = Path(__file__).resolve().parent.parent / ".cache" / "reference" / "jars"
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_ALL = ("sum(id)", "sum(amount)", "sum(quantity)", "max(name)", "max(at)")


def _session(path: Path, settings: Mapping[str, str] | None = None) -> Any:
    """A session in which everything was loaded once."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch = os.environ["DELTALOG_SCRATCH"]
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "8g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.local.dir", scratch)
        .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
        .config("spark.log.level", "OFF")
    )
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    files = [str(file) for file in sorted(path.glob("*.parquet"))[:1]]
    if files:
        session.read.parquet(*files).selectExpr(*_ALL).collect()
    return session


def _delta_session(path: Path) -> Any:
    jars = ",".join(str(jar) for jar in sorted(JARS.glob("*.jar")))
    session = _session(path, {**DELTA, "spark.jars": jars})
    if any(path.glob("*.parquet")):
        session.read.format("delta").load(str(path)).limit(1).collect()
    return session


def _ours(session: Any, path: Path) -> Any:
    import deltalog.spark

    return deltalog.spark.read(session, str(path))


def _answer(frame: Any, *columns: str) -> object:
    return [str(value) for value in frame.selectExpr(*columns).collect()[0]]


def native_spark_read(path: Path, needle: int) -> Call:
    del needle
    session = _session(path)
    files = [str(file) for file in sorted(path.glob("*.parquet"))]
    return lambda: _answer(session.read.parquet(*files), *_ALL)


def native_spark_column(path: Path, needle: int) -> Call:
    del needle
    session = _session(path)
    files = [str(file) for file in sorted(path.glob("*.parquet"))]
    return lambda: _answer(session.read.parquet(*files), "sum(id)")


def delta_spark_read(path: Path, needle: int) -> Call:
    del needle
    session = _delta_session(path)
    return lambda: _answer(session.read.format("delta").load(str(path)), *_ALL)


def delta_spark_column(path: Path, needle: int) -> Call:
    del needle
    session = _delta_session(path)
    return lambda: _answer(session.read.format("delta").load(str(path)), "sum(id)")


def deltalog_spark_read(path: Path, needle: int) -> Call:
    del needle
    session = _session(path)
    _ours(session, path).limit(1).collect()
    return lambda: _answer(_ours(session, path), *_ALL)


def deltalog_spark_column(path: Path, needle: int) -> Call:
    del needle
    session = _session(path)
    _ours(session, path).limit(1).collect()
    return lambda: _answer(_ours(session, path), "sum(id)")


def _door(path: Path, options: Mapping[str, str] | None = None) -> Any:
    """The ordinary spelling, as everybody writes it."""
    from deltalog.spark import register

    session = _session(path)
    register(session)
    reader = session.read.format("deltalog").options(**(options or {}))
    reader.load(str(path)).limit(1).collect()
    return reader


def _found(frame: Any, needle: int) -> object:
    return [str(row) for row in frame.where(f"id = {needle}").collect()]


def deltalog_spark_count(path: Path, needle: int) -> Call:
    del needle
    session = _session(path)
    _ours(session, path).limit(1).collect()
    return lambda: _answer(_ours(session, path), "count(*)")


def deltalog_spark_point(path: Path, needle: int) -> Call:
    session = _session(path)
    _ours(session, path).limit(1).collect()
    return lambda: _found(_ours(session, path), needle)


def deltalog_spark_format_count(path: Path, needle: int) -> Call:
    del needle
    reader = _door(path)
    return lambda: _answer(reader.load(str(path)), "count(*)")


def deltalog_spark_format_column(path: Path, needle: int) -> Call:
    del needle
    reader = _door(path)
    return lambda: _answer(reader.load(str(path)), "sum(id)")


def deltalog_spark_format_point(path: Path, needle: int) -> Call:
    reader = _door(path)
    return lambda: _found(reader.load(str(path)), needle)


_FEED = {"readChangeFeed": "true", "startingVersion": "0"}


def deltalog_spark_feed(path: Path, needle: int) -> Call:
    del needle
    reader = _door(path, _FEED)
    return lambda: _answer(reader.load(str(path)), "sum(id)", "max(_change_type)")


def delta_spark_feed(path: Path, needle: int) -> Call:
    del needle
    reader = _delta_session(path).read.format("delta").options(**_FEED)
    return lambda: _answer(reader.load(str(path)), "sum(id)", "max(_change_type)")


def deltalog_spark_append(path: Path, needle: int) -> Call:
    import deltalog.spark

    del needle
    session = _session(path)
    files = [str(file) for file in sorted(path.glob("*.parquet"))]
    target = f"{os.environ['DELTALOG_SCRATCH']}/table"
    deltalog.spark.write(session.read.parquet(*files).limit(1), target)

    def call() -> None:
        deltalog.spark.write(session.read.parquet(*files), target, mode="append")

    return call


def deltalog_spark_append_by_format(path: Path, needle: int) -> Call:
    from deltalog.spark import register

    del needle
    session = _session(path)
    register(session)
    files = [str(file) for file in sorted(path.glob("*.parquet"))]
    target = f"{os.environ['DELTALOG_SCRATCH']}/table"
    session.read.parquet(*files).limit(1).write.format("deltalog").mode("append").save(target)

    def call() -> None:
        frame = session.read.parquet(*files)
        frame.write.format("deltalog").mode("append").save(target)

    return call


def delta_spark_append(path: Path, needle: int) -> Call:
    del needle
    session = _delta_session(path)
    files = [str(file) for file in sorted(path.glob("*.parquet"))]
    target = f"{os.environ['DELTALOG_SCRATCH']}/table"
    session.read.parquet(*files).limit(1).write.format("delta").save(target)

    def call() -> None:
        frame = session.read.parquet(*files)
        frame.write.format("delta").mode("append").save(target)

    return call


def _source(session: Any, path: Path, needle: int) -> str:
    """200,000 rows as Parquet, half of which are in the table, spread over all files."""
    rows = needle * 3 // 2
    changes = min(200_000, rows // 10)
    return _written_rows(session, path, range(0, 2 * rows, 2 * rows // changes))


def _written_rows(session: Any, path: Path, ids: range) -> str:
    first = session.read.parquet(str(min(path.glob("*.parquet"))))
    source = f"{os.environ['DELTALOG_SCRATCH']}/source"
    frame = session.range(ids.start, ids.stop, ids.step).selectExpr(
        "id", "0.5D AS amount", "1 AS quantity", "'merged' AS name", "timestamp_micros(id) AS at"
    )
    frame.select(*first.columns).write.parquet(source)
    return source


def deltalog_spark_merge(path: Path, needle: int) -> Call:
    from deltalog.spark import DeltaTable

    session = _session(path)
    target, source = str(copy_table(path)), _source(session, path, needle)

    def call() -> None:
        _merge(DeltaTable.forPath(session, target), session.read.parquet(source))

    return call


def delta_spark_merge(path: Path, needle: int) -> Call:
    session = _delta_session(path)
    return _merge_by_delta(session, str(copy_table(path)), _source(session, path, needle))


def delta_spark_key_merge(path: Path, needle: int) -> Call:
    session = _delta_session(path)
    rows = needle * 3 // 2
    source = _written_rows(session, path, range(0, rows, max(1, rows // 1_000)))
    return _merge_by_delta(session, str(copy_table(path)), source)


def _merge_by_delta(session: Any, target: str, source: str) -> Call:
    def call() -> None:
        session.sql(
            f"MERGE INTO delta.`{target}` AS t USING parquet.`{source}` AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    return call


def _merge(table: Any, source: Any) -> None:
    merger = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merger.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def deltalog_spark_plan(path: Path, needle: int) -> Call:
    import deltalog.spark

    session = _session(path)
    _write_file_of(path, needle)

    def call() -> object:
        # By default tasks would do it, which saves the driver's memory and not time.
        frame = deltalog.spark.read(
            session, str(path), where=f"id = {needle}", state_on_spark_files=1 << 40
        )
        return len(frame.inputFiles())

    return call


def _write_file_of(path: Path, needle: int) -> None:
    """The one file that is left: Spark's Parquet reader looks whether it is there."""
    file = path / name_of(needle // ROWS_PER_FILE)
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"id": [needle], "name": [f"n{needle:012d}"]}), file)


def delta_spark_plan(path: Path, needle: int) -> Call:
    session = _delta_session(path)

    def call() -> object:
        frame = session.read.format("delta").load(str(path)).where(f"id = {needle}")
        return len(frame.inputFiles())

    return call


def _stream(session: Any, form: str, path: Path) -> Call:
    """The rows of each batch, counted there."""
    counts: list[int] = []

    def call() -> object:
        frame = (
            session.readStream.format(form)
            .option("startingVersion", "0")
            .option("maxFilesPerTrigger", "100")
            .load(str(path))
        )
        query = (
            frame.writeStream.trigger(availableNow=True)
            .option("checkpointLocation", f"{os.environ['DELTALOG_SCRATCH']}/checkpoint")
            .foreachBatch(lambda rows, _: counts.append(rows.count()))
            .start()
        )
        query.awaitTermination()
        return sum(counts)

    return call


def deltalog_spark_stream(path: Path, needle: int) -> Call:
    from deltalog.spark import register

    del needle
    session = _session(path)
    register(session)
    session.read.format("deltalog").load(str(path)).limit(1).collect()  # as Delta's session does
    return _stream(session, "deltalog", path)


def delta_spark_stream(path: Path, needle: int) -> Call:
    del needle
    return _stream(_delta_session(path), "delta", path)


SPARKERS: Mapping[str, Callable[[Path, int], Call]] = {
    function.__name__: function
    for function in (
        native_spark_read,
        native_spark_column,
        delta_spark_read,
        delta_spark_column,
        deltalog_spark_read,
        deltalog_spark_column,
        deltalog_spark_count,
        deltalog_spark_point,
        deltalog_spark_format_count,
        deltalog_spark_format_column,
        deltalog_spark_format_point,
        deltalog_spark_feed,
        delta_spark_feed,
        deltalog_spark_append,
        deltalog_spark_append_by_format,
        delta_spark_append,
        deltalog_spark_merge,
        delta_spark_merge,
        delta_spark_key_merge,
        deltalog_spark_plan,
        delta_spark_plan,
        deltalog_spark_stream,
        delta_spark_stream,
    )
}
