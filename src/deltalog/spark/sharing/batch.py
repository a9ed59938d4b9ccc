"""The batch reader of the format `deltalog_sharing`, which reads files by their signed URLs.

This module sends the requests to the server, and handles the filters that Spark pushes down. Each
task contains the profile, because workers request new URLs when URLs expire.

Protocol: Read Data from a Table, Read Change Data Feed from a Table
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession

from deltalog.errors import InvalidInputError
from deltalog.protocol.column_mapping import Mode
from deltalog.protocol.configuration import TableConfiguration
from deltalog.schema import StructType, from_arrow_schema, project
from deltalog.sharing.client import AsyncRestClient, SharedTable, parse_table_url, read_profile
from deltalog.sharing.client.pages import CAPABILITIES
from deltalog.sharing.client.profile import parse_table_name
from deltalog.spark.reading.batch_source import (
    FilteringReader,
    TaskPartition,
    as_predicate,
    change_fields,
    check_columns,
    moments_of,
    split_tasks,
)
from deltalog.spark.reading.native import task_frame, with_comments
from deltalog.spark.reading.options import MAX_PARTITION_BYTES, ReadOptions
from deltalog.spark.session.opening import moment_ms, session_time_zone
from deltalog.spark.session.settings import check_reads
from deltalog.spark.session.types import to_spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, datasource
    from pyspark.sql import types as spark_types

    from deltalog.data.scan import Changes, ReadSpec, Scan, ScanTask
    from deltalog.expressions import Expression
    from deltalog.sharing.client.follow import SharedChanges
    from deltalog.sharing.client.snapshots import SharedScan
    from deltalog.sharing.wire.lines import Table
    from deltalog.spark.sharing.options import SharedPlace, SharedReadOptions

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def connect(place: SharedPlace) -> tuple[AsyncRestClient, Table]:
    """Return the client of the server that the profile describes, and the name of the table.

    Raises:
        InvalidInputError: the path or the profile is invalid.
    """
    if place.profile is None:
        location, table = parse_table_url(place.path)
    else:
        location, table = place.profile, parse_table_name(place.path)
    capabilities = CAPABILITIES
    if place.response_format is not None:
        capabilities = replace(CAPABILITIES, response_formats=(place.response_format,))
    return AsyncRestClient(read_profile(location), capabilities=capabilities), table


def open_shared(options: SharedReadOptions) -> SharedTable:
    """Return a shared table at the requested version. No request is sent yet."""
    client, table = connect(options.place)
    read = options.read
    at = read.version if read.timestamp is None else as_moment(read.timestamp, read.time_zone)
    return SharedTable(table, at, client=client, default_timezone=read.time_zone)


def as_moment(text: str, time_zone: str) -> datetime:
    """Parse a timestamp. A timestamp without a time zone is in `time_zone`."""
    try:
        return _EPOCH + timedelta(milliseconds=moment_ms(text, time_zone))
    except OverflowError:
        raise InvalidInputError(
            f"cannot read the timestamp {text!r}: expected a year from 1 to 9999"
        ) from None


def shown_rows(options: SharedReadOptions, table: SharedTable) -> StructType:
    """Return the schema of the rows that the options select.

    Cost: one small request. For changes of a table with column mapping: the request for the
        changes.
    """
    if not options.read.changes:
        return table.schema()
    configuration = TableConfiguration(table.protocol(), table.metadata())
    if configuration.column_mapping_mode is not Mode.NONE and options.read.start is not None:
        configuration = load_changes(options.read, table).snapshot.configuration
    return StructType([*configuration.schema, *change_fields()])


def load_changes(
    options: ReadOptions,
    table: SharedTable,
    columns: Sequence[str] | None = None,
    predicate: Expression | None = None,
) -> Changes:
    """Load the requested change feed, which ends no later than the version of `table`."""
    start, end = options.start, options.end
    zone = options.time_zone
    last = min(end, table.version()) if isinstance(end, int) else table.version()
    return table.load_cdf(
        starting_version=start if isinstance(start, int) else None,
        starting_timestamp=as_moment(start, zone) if isinstance(start, str) else None,
        ending_version=None if isinstance(end, str) else last,
        ending_timestamp=as_moment(end, zone) if isinstance(end, str) else None,
        columns=columns,
        predicate=predicate,
    )


class SharedBatchReader(FilteringReader):
    """Reader of one version of a shared table, or of a range of its change feed.

    Args:
        options: the options of the read.
        table: the table, at the version whose schema Spark has received.
        columns: the schema that Spark requests.
    """

    def __init__(
        self, options: SharedReadOptions, table: SharedTable, columns: spark_types.StructType
    ) -> None:
        self._options = options
        self._unzoned = options.read.unzoned
        self._table = table
        self._shown = shown_rows(options, table)
        self._rows = check_columns(self._shown, columns, table.name)
        self._predicate: Expression | None = None

    def take(self, filters: Sequence[datasource.Filter]) -> None:
        """Use filters for pruning: files on the server, and files, row groups and rows in tasks."""
        if self._options.read.push_filters:
            self._predicate = as_predicate(filters, self._shown)

    def partitions(self) -> Sequence[TaskPartition]:
        """Return one partition per task. All partitions have about the same size.

        Cost: one request for the files that may contain matching rows.
        """
        read = self._options.read
        found = self._changes() if read.changes else self._scan()
        tasks = list(found.tasks())
        groups = split_tasks(tasks, read.max_partition_bytes, in_order=read.changes)
        return [TaskPartition(group) for group in groups] or [TaskPartition(())]

    def _scan(self) -> Scan:
        predicate = self._predicate
        limit = self._options.limit_hint if predicate is None else None
        found = self._table.scan(self._rows.names, predicate, limit=limit)
        self._check_still(found.snapshot.configuration.schema)
        return found

    def _changes(self) -> Changes:
        read = self._options.read
        found = load_changes(read, self._table, self._rows.names, self._predicate)
        schema = found.snapshot.configuration.schema
        self._check_still(StructType([*schema, *change_fields()]))
        return found

    def _check_still(self, rows: StructType) -> None:
        """Refuse rows with another schema. Without shared history, the table may have changed."""
        check_columns(rows, to_spark_schema(self._rows), self._table.name)


# --- scans and change feeds of the sharing client as DataFrames, read by Python workers


_MOST_ROWS: Final = 2**31 - 1
"""The largest number of rows that Spark accepts as a limit."""


def scan_frame(scan: SharedScan, spark: SparkSession | None = None) -> DataFrame:
    """Return the rows of a scan, with its columns, predicate and limit applied.

    Args:
        scan: a scan of a shared table.
        spark: the session; None means the active session.

    Raises:
        InvalidInputError: there is no session, or Spark does not support the scan.
    """
    hidden = [name for name in scan.spec.output.names if name in scan.spec.metadata_columns]
    if hidden:
        raise InvalidInputError(
            f"cannot read {hidden!r} of {scan.spec.table} on Spark: a DataFrame of a shared table "
            "has no metadata columns; omit them, or read the scan with to_table()"
        )
    if scan.most_rows is not None and scan.most_rows > _MOST_ROWS:
        raise InvalidInputError(
            f"cannot read the first {scan.most_rows} rows of {scan.spec.table} on Spark: Spark's "
            f"largest limit is {_MOST_ROWS}; use a smaller limit, or none"
        )
    schema = scan.snapshot.configuration.schema
    frame = _frame(spark, scan.spec, scan.tasks(), schema, in_order=False)
    return frame if scan.most_rows is None else frame.limit(scan.most_rows)


def changes_frame(changes: SharedChanges, spark: SparkSession | None = None) -> DataFrame:
    """Return the rows of a change feed, with its columns and predicate applied.

    Args:
        changes: the changes of a shared table.
        spark: the session; None means the active session.

    Raises:
        InvalidInputError: there is no session.
        IncompatibleChangesError: the schema changed within the range.
    """
    schema = StructType([*changes.snapshot.configuration.schema, *change_fields()])
    return _frame(spark, changes.spec, changes.tasks(), schema, in_order=True)


def active_session(table: str, spark: SparkSession | None = None) -> SparkSession:
    """Return the session that reads a shared table.

    Args:
        table: the name of the table, for the error.
        spark: the session; None means the active session.

    Raises:
        InvalidInputError: there is no active session.
    """
    spark = SparkSession.getActiveSession() if spark is None else spark
    if spark is None:
        raise InvalidInputError(
            f"No active SparkSession was found. Reading {table!r} needs a session: "
            "call SparkSession.builder.getOrCreate()"
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
    """Return the rows of scan tasks as a DataFrame.

    Args:
        spark: the session; None means the active session.
        spec: the read specification of the tasks.
        tasks: the scan tasks, one per file.
        schema: the schema of the rows, with all columns.
        in_order: whether to preserve the order of files.
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
    """Yield the paths of the leaf columns of a scan. Only selected struct fields are included."""
    for field in rows:
        if isinstance(field.type, StructType) and len(field.type):
            yield from ((field.name, *path) for path in _leaves(field.type))
        else:
            yield (field.name,)


def _check_zone(tasks: Iterable[ScanTask], own: str, zone: str) -> None:
    """Refuse partition values without a time zone if the session has another zone than the table.

    Raises:
        InvalidInputError: there is such a value. The message contains the value and its column.
    """
    if own == zone:
        return
    for task in tasks:
        for column, text in moments_of(task):
            if moment_ms(text, own) != moment_ms(text, zone):
                raise InvalidInputError(
                    f"cannot read {task.spec.table} in a session with the time zone {zone}: the "
                    f"value {text!r} of the partition column {column!r} has no time zone, and is "
                    f"read in {own}; open the SharedTable with {zone!r} as its default time zone"
                )
