"""The batch reader of the format `deltalog`, in which Python workers return Arrow batches.

This module plans a scan, divides it among tasks, and handles the filters that Spark pushes down.

Protocol: none
"""

from __future__ import annotations

import heapq
import pickle
from abc import abstractmethod
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, InputPartition

from deltalog._util.clock import Moment
from deltalog._util.escaping import name_key
from deltalog._util.kernels import arrow
from deltalog._util.readable import FILE, counted
from deltalog.data.scan import Changes, ScanTask, open_changes, plan_scan, read_tasks
from deltalog.errors import InvalidInputError
from deltalog.expressions import Column, Literal, TextRules, lit, resolve_predicate
from deltalog.expressions.nodes import Call, Comparison, Expression, In, IsNull, Not
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.column_mapping import Mode
from deltalog.schema import Field, StructType, from_arrow_type
from deltalog.schema.metadata_columns import CHANGE_COLUMNS, METADATA, METADATA_COLUMNS
from deltalog.schema.types import TIMESTAMP
from deltalog.spark.reading.options import ReadOptions, asked_metadata_columns
from deltalog.spark.session.known_settings import TIME_ZONE, refuse_unfollowed, task_settings
from deltalog.spark.session.opening import load_version, moment_ms, without_version, zone_of
from deltalog.spark.session.types import as_spark_batches, to_spark_arrow, to_spark_schema
from deltalog.spark.session.workers import InEnvelope, naming_credentials
from deltalog.storage.options import is_sent_to_tasks, pickled_for_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import types as spark_types


_UTC: Final = "UTC"
_HIDDEN: Final = "__deltalog_metadata"
_ROWS_OF_BATCH: Final = 10_000  # the default of `spark.sql.execution.arrow.maxRecordsPerBatch`
_BYTES_OF_BATCH: Final = 8 << 20


class TaskPartition(InputPartition):
    """The files that one Spark task reads.

    Args:
        tasks: the files.
    """

    def __init__(self, tasks: Sequence[ScanTask]) -> None:
        super().__init__(None)
        self.tasks: tuple[ScanTask, ...] = tuple(tasks)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the store's credentials, which the task needs."""
        if is_sent_to_tasks():  # within a larger pickle, which stores shared objects only once
            return TaskPartition, (self.tasks,)
        return _opened_partition, (pickled_for_tasks(self.tasks),)

    def __repr__(self) -> str:
        return f"TaskPartition({counted(len(self.tasks), FILE)})"


def _opened_partition(tasks: bytes) -> TaskPartition:
    return TaskPartition(pickle.loads(tasks))  # noqa: S301  # the driver wrote these bytes


def read_partition(partition: TaskPartition, rows: StructType) -> Iterator[pa.RecordBatch]:
    """Read the rows of a partition, and convert them to the Arrow types that Spark accepts.

    Args:
        partition: the files.
        rows: the result of `rows_schema`.
    """
    batches = (with_metadata_struct(batch, rows) for batch in read_tasks(partition.tasks))
    yield from _together(as_spark_batches(batches, to_spark_arrow(rows)))


def _together(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine small batches, because each batch has a high cost in Spark."""
    held: list[pa.RecordBatch] = []
    num_rows = num_bytes = 0
    for batch in batches:
        num_rows += batch.num_rows
        num_bytes += batch.nbytes
        if num_rows < _ROWS_OF_BATCH and num_bytes < _BYTES_OF_BATCH:
            held.append(batch)
            continue
        if held:
            yield _one(held)
        held, num_rows, num_bytes = [batch], batch.num_rows, batch.nbytes
    if held:
        yield _one(held)


def _one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else arrow.concat_batches(batches)


def metadata_struct(names: Iterable[str]) -> str:
    """Return the name of the struct that contains the metadata columns.

    The name is `_metadata` unless the table has a column with this name. In that case users cannot
    read the metadata columns, and deltalog uses another name internally.

    Args:
        names: the names of the table's columns.
    """
    return _HIDDEN if METADATA in (name_key(name) for name in names) else METADATA


def with_metadata_struct(batch: pa.RecordBatch, rows: StructType) -> pa.RecordBatch:
    """Return the batch with its metadata columns as one struct at the end.

    Args:
        batch: a batch of a scan.
        rows: the result of `rows_schema`.
    """
    known = METADATA_COLUMNS.keys() - set(rows.names)
    hidden = [name for name in batch.schema.names if name in known]
    if not hidden:
        return batch
    parts: list[Any] = [batch.column(name) for name in hidden]
    struct = pa.StructArray.from_arrays(parts, [name.partition(".")[2] for name in hidden])
    shown = [name for name in batch.schema.names if name not in known]
    arrays: list[Any] = [*(batch.column(name) for name in shown), struct]
    return pa.RecordBatch.from_arrays(arrays, [*shown, metadata_struct(shown)])


def rows_schema(schema: StructType, metadata_columns: Sequence[str]) -> StructType:
    """Return the schema of rows: the columns, and one struct of the selected metadata columns."""
    if not metadata_columns:
        return schema
    parts = [
        Field(name.partition(".")[2], from_arrow_type(METADATA_COLUMNS[name]))
        for name in metadata_columns
    ]
    return StructType([*schema, Field(metadata_struct(schema.names), StructType(parts))])


def table_names(rows: StructType, metadata_columns: Sequence[str]) -> list[str]:
    """Return the names of the table's columns in a result of `rows_schema`."""
    return [name for name in rows.names if name != METADATA or not metadata_columns]


def resolve(options: ReadOptions) -> tuple[ReadOptions, StructType]:
    """Return the options with a fixed version, and the schema of the rows.

    With a fixed version, every evaluation of a dataframe reads the same version, even after later
    commits.
    """
    return pinned_to(options, open_shown(options))


def pinned_to(options: ReadOptions, snapshot: Snapshot) -> tuple[ReadOptions, StructType]:
    """Return the options with a fixed version, and the schema of the rows; see `resolve`.

    Args:
        options: the options of the read.
        snapshot: the result of `open_shown`.
    """
    path = without_version(options.path, options.storage)
    hidden = asked_metadata_columns(options.metadata_columns, snapshot)
    pinned = replace(
        options, path=path, version=snapshot.version, timestamp=None, metadata_columns=hidden
    )
    schema = snapshot.configuration.schema
    if not options.changes:
        return pinned, rows_schema(schema, hidden)
    end = _bound(options.end, options.time_zone)
    if end is not None and snapshot.configuration.column_mapping_mode is not Mode.NONE:
        if isinstance(end, Moment):
            last = load_snapshot(snapshot.context, timestamp_ms=end.ms)
        else:
            last = load_snapshot(snapshot.context, version=min(end, snapshot.version))
        schema = last.configuration.schema
    return pinned, StructType([*schema, *change_fields()])


def change_fields() -> list[Field]:
    """Return the columns that a change feed has in addition to the table's columns."""
    return [Field(name, from_arrow_type(kind)) for name, kind in CHANGE_COLUMNS.items()]


def open_shown(options: ReadOptions) -> Snapshot:
    """Open the requested version, which determines the schema of the rows."""
    return load_version(
        options.path,
        options.storage,
        version=options.version,
        timestamp=options.timestamp,
        time_zone=options.time_zone,
    )


def open_feed(
    options: ReadOptions, latest: Snapshot, predicate: Expression | None = None
) -> Changes:
    """Open the requested change feed, which ends no later than the latest version.

    Args:
        options: the options of the read.
        latest: the snapshot of the latest version.
        predicate: a condition on the columns of the feed.
    """
    if options.metadata_columns:
        raise InvalidInputError("cannot add metadata columns: a change feed does not have them")
    end = _bound(options.end, options.time_zone)
    return open_changes(
        latest,
        start=_bound(options.start, options.time_zone) or 0,
        end=min(end, latest.version) if isinstance(end, int) else end,
        predicate=predicate,
    )


def _bound(bound: int | str | None, time_zone: str) -> int | Moment | None:
    return Moment(moment_ms(bound, time_zone)) if isinstance(bound, str) else bound


def check_columns(shown: StructType, asked: spark_types.StructType, path: object) -> StructType:
    """Return the columns that Spark requests, in the order of the request.

    Raises:
        InvalidInputError: a column does not exist, or has another type.
    """
    known = {field.name: field for field in shown}
    theirs = {field.name: field.dataType for field in to_spark_schema(shown).fields}
    wrong = [one.name for one in asked.fields if theirs.get(one.name) != one.dataType]
    if wrong:
        raise InvalidInputError(
            f"cannot read {path} with another schema: column {wrong[0]!r} is "
            f"{known[wrong[0]].type if wrong[0] in known else 'missing'}; omit schema(…), and cast "
            "the columns of the result"
        )
    return StructType([known[name] for name in asked.names])


class TaskReader(InEnvelope):
    """The part of a reader that Spark sends to workers. The files are in the partitions instead.

    Args:
        rows: the schema of the rows.
        unzoned: the names and values of options whose timestamps have no time zone. None if the
            option `timeZone` is set.
    """

    def __init__(self, rows: StructType, unzoned: tuple[tuple[str, str], ...] | None) -> None:
        self._rows = rows
        self._unzoned = unzoned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one partition."""
        assert isinstance(partition, TaskPartition)  # noqa: S101  # `partitions` returns only this class
        check_session(partition.tasks, self._unzoned)
        return read_partition(partition, self._rows)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only the schema and the options; each partition contains its files."""
        return {"_rows": self._rows, "_unzoned": self._unzoned}


class CredentialedTaskReader(TaskReader):
    """Reader of tables, for which a worker may need credentials."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one partition."""
        with naming_credentials():
            yield from super().read(partition)


def check_session(tasks: Sequence[ScanTask], unzoned: tuple[tuple[str, str], ...] | None) -> None:
    """Check in a task that the session's settings allow the read.

    PySpark plans a format in a process that cannot read the session's settings; tasks can.

    Args:
        tasks: the files of the task.
        unzoned: the names and values of options whose timestamps were read as UTC. None if the
            option `timeZone` is set.

    Raises:
        InvalidInputError: a timestamp or a partition value is another moment in the session's time
            zone than in UTC, or deltalog does not support a setting.
    """
    given = task_settings()
    if not given:
        return
    refuse_unfollowed(given, writes=False)
    zone = zone_of(given[TIME_ZONE])
    if unzoned is None or zone == _UTC:
        return
    for option, text in unzoned:
        if moment_ms(text, zone) != moment_ms(text, _UTC):
            raise _other_moment(f"{option}={text!r}", zone)
    for task in tasks:
        for column, text in moments_of(task):
            if moment_ms(text, zone) != moment_ms(text, _UTC):
                what = f"the value {text!r} of the partition column {column!r}"
                raise _other_moment(f"{what} of {task.path}", zone)


def moments_of(task: ScanTask) -> Iterator[tuple[str, str]]:
    """Yield the name and the serialized value of each partition column of type TIMESTAMP."""
    for field in task.spec.partition_columns:
        if field.type == TIMESTAMP:
            text = task.partition_values.get(task.spec.physical_names[field.name])
            if text:
                yield field.name, text


def _other_moment(what: str, zone: str) -> InvalidInputError:
    return InvalidInputError(
        f"cannot read {what} in a session with the time zone {zone}: the timestamp has no time "
        "zone, and the format uses UTC because it has no access to the session; set the option "
        "timeZone, or read with deltalog.spark.read"
    )


class PushFilters:
    """The method `pushFilters` of a reader, in a form that PySpark does not detect as an override.

    In sessions that do not push filters down, PySpark refuses readers that override the method. It
    detects an override by comparing `__func__` with the method of the base class.
    """

    __func__: Any = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: FilteringReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[datasource.Filter]) -> list[datasource.Filter]:
        """Pass the filters to the reader. Return all of them, so that Spark evaluates them too."""
        self._reader.take(filters)
        return filters


class FilteringReader(TaskReader, DataSourceReader):
    """Base class of batch readers that use Spark's filters for pruning."""

    @property
    def pushFilters(self) -> Any:  # noqa: N802  # PySpark's name
        """Use Spark's filters for pruning; Spark applies all of them again."""
        return PushFilters(self)

    @abstractmethod
    def take(self, filters: Sequence[datasource.Filter]) -> None:
        """Use filters for pruning. Subclasses override this method."""


class BatchReader(FilteringReader, CredentialedTaskReader):
    """Reader of one version of a table, or of a range of its change feed.

    Args:
        options: the options of the read.
        columns: the schema that Spark requests.
    """

    def __init__(self, options: ReadOptions, columns: spark_types.StructType) -> None:
        self._snapshot = open_shown(options)
        self._options, shown = pinned_to(options, self._snapshot)
        self._unzoned = options.unzoned
        self._predicate: Expression | None = None
        self._rows = check_columns(shown, columns, options.path)

    def take(self, filters: Sequence[datasource.Filter]) -> None:
        """Use filters to prune files, row groups and rows."""
        schema = self._snapshot.configuration.schema
        if self._options.changes:
            schema = StructType([*schema, *change_fields()])
        if self._options.push_filters:
            self._predicate = as_predicate(filters, schema)

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition per task. All partitions have about the same size."""
        options = self._options
        if options.changes:
            tasks = list(open_feed(options, self._snapshot, self._predicate).tasks())
        else:
            names = table_names(self._rows, options.metadata_columns)
            scan = plan_scan(
                self._snapshot,
                columns=names,
                hidden=options.metadata_columns,
                predicate=self._predicate,
            )
            tasks = list(scan.tasks())
        groups = split_tasks(tasks, options.max_partition_bytes, in_order=options.changes)
        return [TaskPartition(group) for group in groups] or [TaskPartition(())]


# --- distribution of files among tasks


OPEN_COST_BYTES: Final = 1 << 19
"""The cost of opening a file, as the number of bytes that could be read in the same time.

Spark's own estimate is 4 MiB. deltalog's estimate is lower, so that one task reads more small
files. The reason is that a Python worker needs only 0.8 ms to read a small file, but 70 ms to start
a task.
"""
_FEWEST_BYTES: Final = 32 << 20
_MANY: Final = 64
"""The maximum number of tasks, unless the maximum number of bytes per task requires more. 64 tasks
are sufficient to use all cores of a typical cluster."""


def split_tasks(
    tasks: Sequence[ScanTask], max_bytes: int, *, in_order: bool = False
) -> list[list[ScanTask]]:
    """Divide scan tasks into groups of about the same size. No group is empty.

    Args:
        tasks: one scan task per file.
        max_bytes: the maximum number of bytes of a group; a single file may be larger.
        in_order: whether to preserve the order of files. A group then consists of adjacent files.
    """
    costs = [(task.size_bytes or 0) + OPEN_COST_BYTES for task in tasks]
    wanted = min(max_bytes, max(_FEWEST_BYTES, sum(costs) // _MANY))
    count = -(-sum(costs) // wanted)
    return _runs(tasks, costs, count, max_bytes) if in_order else _balanced(tasks, costs, count)


def _runs(
    tasks: Sequence[ScanTask], costs: Sequence[int], count: int, max_bytes: int
) -> list[list[ScanTask]]:
    """Divide files, in order, into `count` groups of equal cost, or more if one is too large."""
    groups: list[list[ScanTask]] = []
    total, before, filled, last = sum(costs), 0, 0, -1
    for task, cost in zip(tasks, costs, strict=True):
        # Divide the sequence of all files into `count` shares of equal cost. A file belongs to the
        # share that contains the middle of the file.
        share = (2 * before + cost) * count // (2 * total)
        if share != last or filled + cost > max_bytes:
            groups.append([])
            filled, last = 0, share
        groups[-1].append(task)
        filled += cost
        before += cost
    return groups


def _balanced(tasks: Sequence[ScanTask], costs: Sequence[int], count: int) -> list[list[ScanTask]]:
    """Assign files to groups: the largest file first, each file to the smallest group so far."""
    groups: list[list[ScanTask]] = [[] for _ in range(min(count, len(tasks)))]
    least = [(0, number) for number in range(len(groups))]
    for position in sorted(range(len(tasks)), key=lambda at: -costs[at]):
        filled, number = heapq.heappop(least)
        groups[number].append(tasks[position])
        heapq.heappush(least, (filled + costs[position], number))
    return groups


# --- translation of the filters that Spark pushes down


_COMPARISONS: Final = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_TEXTS: Final = {
    "StringStartsWith": "startswith",
    "StringEndsWith": "endswith",
    "StringContains": "contains",
}


def as_predicate(filters: Iterable[datasource.Filter], schema: StructType) -> Expression | None:
    """Combine the filters that can be translated into one condition; None if there are none.

    Args:
        filters: Spark's filters, which are all true for the requested rows.
        schema: the schema of the table.
    """
    found = []
    for one in filters:
        expression = _expression(one)
        if expression is None:
            continue
        try:
            found.append(resolve_predicate(expression, schema, text_rules=TextRules.NONE))
        except InvalidInputError:  # the table lacks the column, or the type is not supported
            continue
    return reduce(and_, found) if found else None


def _expression(one: Any) -> Expression | None:
    kind = type(one).__name__
    if kind == "Not":
        inner = _expression(one.child)
        return None if inner is None else Not(inner)
    column = Column(tuple(one.attribute))
    match kind:
        case "IsNull":
            return IsNull(column)
        case "IsNotNull":
            return Not(IsNull(column))
        case "In":
            return In(column, tuple(map(lit, one.value)))
        case _ if kind in _COMPARISONS:
            return Comparison(_COMPARISONS[kind], column, Literal(one.value))
        case _ if kind in _TEXTS:
            return Call(_TEXTS[kind], (column, Literal(one.value)))
        case _:
            return None
