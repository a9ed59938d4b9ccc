"""The batch reader of the format `deltalog_sharing`: files behind signed URLs to Arrow batches.

Owns one read of a shared table: what the server is asked, and the filters that Spark hands in.
Workers ask for new URLs themselves when theirs end, so that tasks hold the profile.

Protocol: Read Data from a Table, Read Change Data Feed from a Table
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from deltalog.column_mapping import Mode
from deltalog.configuration import TableConfiguration
from deltalog.errors import InvalidInputError
from deltalog.schema import StructType
from deltalog.sharing.client import AsyncRestClient, SharedTable, parse_table_url, read_profile
from deltalog.sharing.client.pages import CAPABILITIES
from deltalog.sharing.client.profile import parse_table_name
from deltalog.spark.reading.batch_source import (
    FilteringReader,
    TaskPartition,
    change_fields,
    check_columns,
)
from deltalog.spark.reading.filters import as_predicate
from deltalog.spark.reading.splits import split_tasks
from deltalog.spark.session.opening import moment_ms
from deltalog.spark.session.types import to_spark_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import datasource
    from pyspark.sql import types as spark_types

    from deltalog.expressions import Expression
    from deltalog.scan import Changes, Scan
    from deltalog.sharing.wire.listing import Table
    from deltalog.spark.reading.options import ReadOptions
    from deltalog.spark.sharing.options import SharedPlace, SharedReadOptions

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def connect(place: SharedPlace) -> tuple[AsyncRestClient, Table]:
    """Return the client of the server, and the table, that are named.

    Raises:
        InvalidInputError: the path or the profile is none.
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
    """Return the version of a shared table that is asked for; nothing is requested yet."""
    client, table = connect(options.place)
    read = options.read
    at = read.version if read.timestamp is None else as_moment(read.timestamp, read.time_zone)
    return SharedTable(table, at, client=client, default_timezone=read.time_zone)


def as_moment(text: str, time_zone: str) -> datetime:
    """Return the moment that a text names; without a zone it is in `time_zone`."""
    try:
        return _EPOCH + timedelta(milliseconds=moment_ms(text, time_zone))
    except OverflowError:
        raise InvalidInputError(
            f"cannot take {text!r} for a moment: its year is not one of 1 to 9999"
        ) from None


def shown_rows(options: SharedReadOptions, table: SharedTable) -> StructType:
    """Return the schema of the rows that are read.

    Cost: one small request; for changes of a table with column mapping, that of the changes.
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
    """Load the change feed that is asked for; it ends with the version that the table shows."""
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
    """Reads one version of a shared table, or a range of its change feed.

    Args:
        options: what is to be read.
        table: opened at the version that Spark was shown.
        columns: the schema that Spark asks for.
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
        """Let filters prune files, on the server and here, row groups and rows."""
        if self._options.read.push_filters:
            self._predicate = as_predicate(filters, self._shown)

    def partitions(self) -> Sequence[TaskPartition]:
        """Return one partition per balanced split of the files.

        Cost: one query, of files that may hold rows.
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
        """Refuse rows of another schema: a table without shared history may have moved on."""
        check_columns(rows, to_spark_schema(self._rows), self._table.name)
