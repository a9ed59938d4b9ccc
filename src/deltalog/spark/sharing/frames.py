"""Scans and change feeds of the sharing client as DataFrames, whose rows Python workers read.

Owns what of them Spark can have. Files are those that the client has planned; nothing is registered
in the session. The client finds this module by its name, since its room lies below.

Protocol: Read Data from a Table, Read Change Data Feed from a Table
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession

from deltalog.errors import InvalidInputError
from deltalog.schema import StructType, from_arrow_schema, project
from deltalog.spark.reading.batch_source import change_fields, moments_of
from deltalog.spark.reading.native import with_comments
from deltalog.spark.reading.options import MAX_PARTITION_BYTES
from deltalog.spark.reading.task_frame import task_frame
from deltalog.spark.session.opening import moment_ms, session_time_zone
from deltalog.spark.session.settings import check_reads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from deltalog.scan import ReadSpec, ScanTask
    from deltalog.sharing.client.changes import SharedChanges
    from deltalog.sharing.client.snapshots import SharedScan

_MOST_ROWS: Final = 2**31 - 1
"""The largest limit that Spark takes."""


def scan_frame(scan: SharedScan, spark: SparkSession | None = None) -> DataFrame:
    """Return the rows of a scan: its columns, predicate and limit are applied.

    Args:
        scan: of a shared table.
        spark: the session; None is the active one.

    Raises:
        InvalidInputError: there is no session, or the scan asks for what Spark cannot have.
    """
    hidden = [name for name in scan.spec.output.names if name in scan.spec.metadata_columns]
    if hidden:
        raise InvalidInputError(
            f"cannot give {hidden!r} of {scan.spec.table} to Spark: a DataFrame of a shared table "
            "has no hidden columns; leave them out of the scan, or read it with to_table()"
        )
    if scan.limit is not None and scan.limit > _MOST_ROWS:
        raise InvalidInputError(
            f"cannot give the first {scan.limit} rows of {scan.spec.table} to Spark: its limits "
            f"end at {_MOST_ROWS}; scan without a limit, or with a smaller one"
        )
    schema = scan.snapshot.configuration.schema
    frame = _frame(spark, scan.spec, scan.tasks(), schema, in_order=False)
    return frame if scan.limit is None else frame.limit(scan.limit)


def changes_frame(changes: SharedChanges, spark: SparkSession | None = None) -> DataFrame:
    """Return the rows of a change feed: its columns and predicate are applied.

    Args:
        changes: of a shared table.
        spark: the session; None is the active one.

    Raises:
        InvalidInputError: there is no session.
        IncompatibleChangesError: the schema changed within the range.
    """
    schema = StructType([*changes.snapshot.configuration.schema, *change_fields()])
    return _frame(spark, changes.spec, changes.tasks(), schema, in_order=True)


def active_session(table: str, spark: SparkSession | None = None) -> SparkSession:
    """Return the session that reads a shared table.

    Args:
        table: for the error.
        spark: the session that is given; None is the active one.

    Raises:
        InvalidInputError: there is none.
    """
    spark = SparkSession.getActiveSession() if spark is None else spark
    if spark is None:
        raise InvalidInputError(
            f"No active SparkSession was found. Reading {table!r} needs one: "
            "SparkSession.builder.getOrCreate()"
        )
    return spark


def _frame(
    spark: SparkSession | None,
    spec: ReadSpec,
    tasks: Iterable[ScanTask],
    schema: StructType,
    *,
    in_order: bool,
) -> DataFrame:
    """Return the rows of tasks.

    Args:
        spark: the session; None is the active one.
        spec: of the tasks.
        tasks: the files.
        schema: of all columns that there are.
        in_order: keep the order of files.
    """
    spark = active_session(spec.table, spark)
    check_reads(spark)
    found = list(tasks)
    _check_zone(found, spec.time_zone, session_time_zone(spark))
    shown = from_arrow_schema(spec.output, declared=True, fine=True)
    rows = project(schema, _leaves(shown))
    frame = task_frame(
        spark, found, rows, max_bytes=MAX_PARTITION_BYTES, in_order=in_order, what=spec.table
    )
    return with_comments(frame, rows)


def _leaves(rows: StructType) -> Iterator[tuple[str, ...]]:
    """Yield the paths that a scan has of a table's columns: of a struct it may have only a part."""
    for field in rows:
        if isinstance(field.type, StructType) and len(field.type):
            yield from ((field.name, *path) for path in _leaves(field.type))
        else:
            yield (field.name,)


def _check_zone(tasks: Iterable[ScanTask], own: str, zone: str) -> None:
    """Refuse moments in the log that name no zone where the session's is not the table's.

    Raises:
        InvalidInputError: it names the column and the value.
    """
    if own == zone:
        return
    for task in tasks:
        for column, text in moments_of(task):
            if moment_ms(text, own) != moment_ms(text, zone):
                raise InvalidInputError(
                    f"cannot give {task.spec.table} to a session of the time zone {zone}: the "
                    f"value {text!r} of the partition column {column!r} names no zone, and is read "
                    f"in {own}; open the SharedTable with {zone!r} as its default zone"
                )
