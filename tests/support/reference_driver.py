"""The program that holds the reference: Delta Spark behind a pair of pipes.

It runs in the reference's own virtual environment, which has PySpark and lacks deltalog, and is
started by `tests.support.reference`. Each line of standard input is a JSON list of SQL statements
that may run side by side, each line of output the list of their answers: Arrow IPC in base64, or
the error. An object in place of a statement is a stream from one table to another, which ends with
what is there, or a table of Iceberg that Iceberg's own library makes, or reads. It ends when its
input does, so it never outlives the tests.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
QUICK = {
    # The tables are a handful of rows: what pays off for large data only costs here.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A JVM with one compiler keeps 48 MB of what it compiles. Spark fills them in two minutes; from
    # then on a thread seeks what it can throw away, which is soon compiled again.
    "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
    # The plans of a thousand statements, for a page that is off, would fill the heap.
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
}
"""How a session for small tables does less: this one, and those of tests."""
SETTINGS = {
    **QUICK,
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {_JAVA_OPTIONS}",
    "spark.log.level": "ERROR",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.session.timeZone": "UTC",
    "spark.default.parallelism": "2",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    # A broadcast has failed after a hundred statements, twice, and never alone.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # a vacuum starts as many
    # A vacuum may take all that the latest version does not need, and tells of it.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.vacuum.logging.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
}


def start_session(jars: str, scratch: str) -> Any:
    """A session of the reference, with Delta's jars from one directory."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    sql = importlib.import_module("pyspark.sql")
    builder = sql.SparkSession.builder.master("local[2]").appName("reference")
    builder = builder.config("spark.jars", ",".join(map(str, sorted(Path(jars).glob("*.jar")))))
    builder = builder.config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
    builder = builder.config("spark.local.dir", f"{scratch}/local")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def follow(session: Any, stream: dict[str, Any]) -> str:
    """Run a stream; what tells that it has ended well."""
    frame = session.readStream.format("delta").options(**stream["options"]).load(stream["source"])
    writer = frame.writeStream.format("delta").option("checkpointLocation", stream["checkpoint"])
    writer.trigger(availableNow=True).start(stream["target"]).awaitTermination()
    return "SELECT 1"


def read_iceberg(session: Any, read: dict[str, Any]) -> Any:
    """The rows of an Iceberg table in a directory, with their ids from format version 3 on."""
    pyarrow = importlib.import_module("pyarrow")
    iceberg = session._jvm.org.apache.iceberg
    hadoop = session._jsc.hadoopConfiguration()
    table = iceberg.hadoop.HadoopTables(hadoop).load(read["iceberg"])
    scan = iceberg.data.IcebergGenerics.read(table)
    snapshot = table.currentSnapshot()
    if read["snapshot"] is not None:
        snapshot = table.snapshot(read["snapshot"])
        scan = scan.useSnapshot(read["snapshot"])
    schema = table.schemas().get(snapshot.schemaId())
    if snapshot.firstRowId() is not None:
        schema = iceberg.MetadataColumns.schemaWithRowLineage(schema)
    names = [column.name() for column in schema.columns()]
    rows, found = [], scan.project(schema).build().iterator()
    while found.hasNext():
        record = found.next()
        rows.append({name: _plain(record.getField(name)) for name in names})
    table = pyarrow.Table.from_pylist(rows).combine_chunks()
    return table.to_batches() or [pyarrow.record_batch([], names=[])]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def answer(session: Any, statement: str | dict[str, Any]) -> dict[str, Any]:
    """The rows that a statement gives, or how it failed."""
    pyarrow = importlib.import_module("pyarrow")
    try:
        if isinstance(statement, dict) and "iceberg" in statement:
            batches = read_iceberg(session, statement)
        else:
            if isinstance(statement, dict) and "iceberg_story" in statement:
                importlib.import_module("reference_iceberg").make_iceberg(session, statement)
                statement = "SELECT 1"
            elif isinstance(statement, dict):
                statement = follow(session, statement)
            # toArrow() fails on a NULL variant: its cast wants fields of structs to be never null.
            batches = session.sql(statement)._collect_as_arrow(empty_list_if_zero_records=False)
    except Exception as error:  # noqa: BLE001  # the test decides what an error means
        condition = getattr(error, "getCondition", lambda: None)()
        return {"error": type(error).__name__, "condition": condition, "message": str(error)}
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return {"rows": base64.b64encode(sink.getvalue()).decode("ascii")}


def serve(session: Any, replies: Any) -> None:
    """Answer until nobody asks any more."""
    with ThreadPoolExecutor(4) as pool:
        for line in sys.stdin:
            answers = pool.map(lambda statement: answer(session, statement), json.loads(line))
            replies.write(json.dumps(list(answers)) + "\n")
            replies.flush()


def main() -> None:
    """Say that the session is there, then serve."""
    # What Spark prints must not get between the answers.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    session = start_session(*sys.argv[1:])
    replies.write(json.dumps({"spark": session.version}) + "\n")
    replies.flush()
    serve(session, replies)
    session.stop()


if __name__ == "__main__":
    main()
