"""Delta tables as dataframes of Daft, and dataframes as versions of Delta tables.

Daft reads the files that it reads exactly with its own reader. Other read tasks read a few files
with deltalog's. Workers write the batches of rows that they have. The caller commits all files at
once.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from operator import and_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Unpack

import pyarrow as pa

try:
    import daft
    from daft.daft import ParquetSourceConfig, PyTimeUnit
    from daft.expressions import ExpressionsProjection
    from daft.expressions.visitor import PredicateVisitor
    from daft.io import DataSource
    from daft.io.pushdowns import Pushdowns
    from daft.io.sink import DataSink, WriteResult
    from daft.io.source import DataSourceTask
    from daft.recordbatch import MicroPartition, RecordBatch
    from daft.runners import get_or_infer_runner_type
except ImportError as _error:
    raise ImportError("deltalog.daft needs Daft: pip install 'deltalog[daft]'") from _error

from deltalog._util.similar_names import suggests_options
from deltalog.data.scan.native import DAFT, FEW_ROWS, plan_native
from deltalog.errors import InvalidInputError, UnsupportedTypeError
from deltalog.expressions.daft import DaftConverter
from deltalog.expressions.trees import conjunction
from deltalog.integrations.tasks import (
    READ_OPTIONS,
    DistributedRows,
    Sent,
    TaskGroup,
    VersionRead,
    open_version,
    own_errors,
    reported,
    share_by_bytes,
    write_rows,
    wrong_rows,
)
from deltalog.protocol.features.identity_columns import identity_columns
from deltalog.schema.types import DOUBLE, FLOAT, PrimitiveType, StructType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

    from deltalog.data.scan.native import FileGroup, StoredFile
    from deltalog.data.scan.plan import Scan
    from deltalog.data.scan.reader import ScanTask
    from deltalog.expressions import Expression
    from deltalog.integrations.tasks import Report, Source, Version
    from deltalog.operations.changes.task_writes import WriteJob
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.table.write import WriteArguments

__all__ = ["read", "write"]

_TASK_BYTES: Final = 64 * 1024 * 1024
_BATCH_ROWS: Final = 1024 * 1024


@suggests_options("deltalog.daft.read()", READ_OPTIONS)
def read(
    source: Source,
    *,
    columns: Sequence[str] | None = None,
    predicate: Any = None,
    filters: Any = None,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
    version: Version | None = None,
    storage_options: StorageOptions | None = None,
    delta_table_options: Mapping[str, Any] | None = None,
) -> daft.DataFrame:
    """Return one version of a table as a Daft dataframe.

    Daft pushes the columns, filters and limit of a query down to the read. Only these columns are
    read, and filters prune files and row groups. With a limit and without filters, only as many
    files as necessary are opened. Daft applies the filters to the rows again, so Daft's semantics
    decide.

    Args:
        source: the location of the table, or the table.
        columns: see `DeltaTable.scan`.
        predicate: see `DeltaTable.scan`.
        filters: a second predicate, named as in `DeltaTable.to_pandas`.
        parameters: see `DeltaTable.scan`.
        version: the number of a version, or a timestamp as a string, datetime or date. None means
            the latest version, or the version of a `DeltaTable`.
        storage_options: see `DeltaTable`. They are sent to the workers.
        delta_table_options: other arguments of `DeltaTable`.

    Raises:
        TableNotFoundError: there is no Delta table.
        VersionNotFoundError: there is no such version.
        InvalidInputError: there is no such column, or the predicate cannot be parsed.
        UnsupportedFeatureError: deltalog cannot read the table's rows.
        UnsupportedTypeError: deltalog or Daft has no type for a column.

    Cost: opens the table. Data is read when the frame is collected.
    """
    table = open_version(source, version, storage_options, delta_table_options)
    rows = VersionRead.of(
        table, columns=columns, predicates=(predicate, filters), parameters=parameters
    )
    return _DaftSource(rows).read()


def write(
    frame: daft.DataFrame,
    table: Source,
    *,
    batch_rows: int | None = _BATCH_ROWS,
    **options: Unpack[WriteArguments],
) -> int | None:
    """Write a Daft dataframe to a table, as one version.

    Workers write batches to files, and the caller commits all files at once. If a batch or the
    commit fails, the table is unchanged.

    Args:
        frame: the rows. It is computed again if another writer's commit conflicts with the write.
        table: the target, which is created if it does not exist. A `DeltaTable` is updated to the
            new version.
        batch_rows: the number of rows that are combined to a batch, so that files are not too
            small; None writes Daft's own batches.
        options: the other arguments of `write_deltalake`: `mode`, `partition_by`, `predicate`,
            `schema_mode`, `configuration`, `storage_options`, `commit_properties` and so on.

    Returns:
        The new version; None if the write was skipped.

    Raises:
        TableExistsError: the mode is `error`, but the table exists.
        SchemaMismatchError: the frame's columns do not match the table's schema. Raised before the
            frame is computed.
        ConstraintViolationError: a row violates a constraint of the table.
        CommitFailedError: a commit of another writer conflicts with this write. The table is
            unchanged.
        InvalidInputError: arguments contradict each other; or the table has identity columns, and
            Daft runs on a cluster, whose workers cannot coordinate identity values.

    Cost: the frame is computed once. There is one file for each batch and partition of the table.
    """
    return write_rows(_DaftRows(frame, batch_rows), table, **options)


class _DaftSource(DataSource):  # type: ignore[misc]  # Daft may be missing in type checks
    """A source of Daft that reads one version of a table.

    Args:
        rows: the read, with its columns and predicate.

    Raises:
        UnsupportedTypeError: Daft has no type for a column.
    """

    def __init__(self, rows: VersionRead) -> None:
        self._rows = Sent(rows)
        self._schema = _schema_of(rows.schema)

    @property
    def name(self) -> str:
        """The name of the source in Daft's plans."""
        return f"Delta({self._rows.value.snapshot.store.root})"

    @property
    def schema(self) -> daft.Schema:
        """The schema of the rows."""
        return self._schema

    async def get_tasks(self, pushdowns: Pushdowns) -> AsyncIterator[DataSourceTask]:
        """Yield tasks, each of which reads some files.

        Args:
            pushdowns: the columns, filters and limit of the query.
        """
        rows = self._rows.value
        if pushdowns.aggregation is not None:
            num_rows = await asyncio.to_thread(rows.scan().count)
            yield _CountTask(num_rows, pushdowns.aggregation.name())
            return
        used = _used(pushdowns, rows.schema.names)
        # Preserve the order of the schema, because Daft's filters refer to columns by their index.
        names = [name for name in rows.schema.names if name in used]
        scan = await asyncio.to_thread(rows.scan, names, self._pushed(pushdowns))
        most = pushdowns.limit if pushdowns.filters is None else None
        is_whole = rows.predicate is None and (most is None or most > FEW_ROWS)
        plan = await asyncio.to_thread(_files_of, scan, pushdowns) if is_whole else _DaftFiles()
        tasks = await asyncio.to_thread(_first_tasks, scan, most)
        for found in plan.in_order(tasks, self._schema):
            if isinstance(found, DataSourceTask):
                yield found
            else:
                for group in share_by_bytes(found, scan.schema, most_bytes=_TASK_BYTES):
                    yield _DeltaTask(group, most)

    def supports_count_pushdown(self) -> bool:
        """Whether `get_tasks` can return the number of rows in place of the rows."""
        return self._rows.value.predicate is None

    def _pushed(self, pushdowns: Pushdowns) -> Expression | None:
        """Return the part of the filters that deltalog can evaluate."""
        rows = self._rows.value
        if pushdowns.filters is None:
            return None
        converter = _Converter(rows.snapshot.configuration.schema)
        parts = [rows.resolved(part) for part in converter.parts(pushdowns.filters)]
        found = [part for part in parts if part is not None]
        return conjunction(found) if found else None


class _Converter(DaftConverter, PredicateVisitor):  # type: ignore[misc]  # as above
    """Converts the filters of a query from Daft's form to deltalog's expressions."""


def _used(pushdowns: Pushdowns, every: list[str]) -> set[str]:
    """Return the columns that a query and its filters use. Daft applies the filters again."""
    if pushdowns.columns is None:
        return set(every)
    try:
        return {*pushdowns.columns, *pushdowns.filter_required_column_names()}
    except ValueError:  # Daft cannot tell the columns of some functions
        return set(every)


def _first_tasks(scan: Scan, limit: int | None) -> list[ScanTask]:
    """Return the tasks of a scan; only the first tasks if their rows suffice for the limit."""
    if limit is None or scan.spec.predicate is not None:
        return list(scan.tasks())
    found, num_rows = [], 0
    for task in scan.tasks(with_rows=True):
        if num_rows >= limit:
            break
        found.append(task)
        num_rows += task.most_rows or 0
    return found


class _DeltaTask(DataSourceTask):  # type: ignore[misc]  # as above
    """A task that reads some files.

    Args:
        group: the files.
        most_rows: the maximum number of rows to return; None means all rows.
    """

    def __init__(self, group: TaskGroup, most_rows: int | None) -> None:
        self._group = Sent(group)
        self._most_rows = most_rows

    @property
    def schema(self) -> daft.Schema:
        """The schema of the rows."""
        return _schema_of(self._group.value.schema)

    async def read(self) -> AsyncIterator[RecordBatch]:
        """Yield the rows, in a task."""
        schema, missing = self._group.value.schema, self._most_rows
        batches = self._group.value.to_batches()
        # Read in a thread, because otherwise the read would block Daft's other tasks.
        while missing != 0 and (batch := await asyncio.to_thread(next, batches, None)) is not None:
            shown = batch if missing is None else batch.slice(0, missing)
            missing = None if missing is None else missing - shown.num_rows
            yield RecordBatch.from_arrow_record_batches([shown], schema)


class _DaftRows(DistributedRows):
    """The rows of a Daft dataframe, which workers compute.

    Args:
        frame: the rows.
        batch_rows: see `write`.
    """

    def __init__(self, frame: daft.DataFrame, batch_rows: int | None) -> None:
        if not isinstance(frame, daft.DataFrame):
            raise wrong_rows("daft", frame, "Daft DataFrame")
        self._frame = frame if batch_rows is None else frame.into_batches(batch_rows)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the frame."""
        found: pa.Schema = self._frame.schema().to_pyarrow_schema()
        return found

    def write(self, job: Sent[WriteJob]) -> Sequence[Report]:
        """Make the workers write their batches; return the reports."""
        configuration = job.value.spec.configuration
        if identity_columns(configuration.schema) and get_or_infer_runner_type() != "native":
            raise InvalidInputError(
                f"cannot write to {job.value.spec.store.root} from Daft on a cluster: the table "
                "has identity columns, and Daft's workers cannot coordinate the values; "
                "write frame.to_arrow() with write_deltalake"
            )
        sink = _DeltaSink(job)
        with own_errors():
            self._frame.write_sink(sink)
        return sink.reports


class _DeltaSink(DataSink):  # type: ignore[misc]  # as above
    """A sink that writes batches to files. The caller commits the files.

    Args:
        job: the specification of the write.

    Attributes:
        reports: the reports of all batches.
    """

    def __init__(self, job: Sent[WriteJob]) -> None:
        self._job = job
        self._places = count()
        self.reports: list[Report] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the counter of batches, because each worker counts its own batches."""
        return _DeltaSink, (self._job,)

    def name(self) -> str:
        """Return the name of the sink in Daft's plans."""
        return "Delta"

    def schema(self) -> daft.Schema:
        """Return the schema of the dataframe that `write_sink` returns."""
        return daft.Schema.from_pyarrow_schema(_RESULT)

    def write(self, micropartitions: Iterator[MicroPartition]) -> Iterator[WriteResult[Report]]:
        """Write each batch to its own files, on a worker."""
        for part in micropartitions:
            rows = part.to_arrow()
            if rows.num_rows:
                report = reported(self._job, rows.to_batches(), place=next(self._places))
                num_bytes = getattr(report, "num_bytes", 0)
                yield WriteResult(
                    result=report, bytes_written=num_bytes, rows_written=rows.num_rows
                )

    def finalize(self, write_results: list[WriteResult[Report]]) -> MicroPartition:
        """Store the reports of all batches in `reports`."""
        self.reports = [found.result for found in write_results]
        num_rows = sum(found.rows_written for found in write_results)
        return MicroPartition.from_arrow(pa.table({"num_rows": [num_rows]}, schema=_RESULT))


_RESULT: Final = pa.schema([("num_rows", pa.int64())])


def _schema_of(schema: pa.Schema) -> daft.Schema:
    try:
        return daft.Schema.from_pyarrow_schema(schema)
    except Exception as error:
        raise UnsupportedTypeError(
            f"cannot convert the columns to Daft's types: {error}; found {schema.to_string()!r}"
        ) from error


# --- Files that Daft reads itself: a task of its reader for each, which applies the query's filter


@dataclass(frozen=True, slots=True)
class _DaftFiles:
    """The files of a scan that Daft reads.

    Args:
        files: position in the scan → the file, and its partition values; None instead of both if
            the query's filter is false for the partition values.
        pushed: what Daft's reader applies to each file.
    """

    files: Mapping[int, tuple[StoredFile, RecordBatch | None] | None] = field(
        default_factory=lambda: MappingProxyType({})
    )
    pushed: Pushdowns = field(default_factory=Pushdowns)

    def in_order(
        self, tasks: Iterable[ScanTask], schema: daft.Schema
    ) -> Iterator[DataSourceTask | list[ScanTask]]:
        """Yield Daft's tasks, and lists of tasks of deltalog's reader between them.

        Args:
            tasks: the scan's first tasks, in order.
            schema: the schema of the source.
        """
        own: list[ScanTask] = []
        for number, task in enumerate(tasks):
            if number not in self.files:
                own.append(task)
                continue
            if own:
                yield own
                own = []
            if (found := self.files[number]) is not None:
                file, values = found
                yield DataSourceTask.parquet(
                    path=file.path,
                    schema=schema,
                    parquet_config=_PARQUET,
                    pushdowns=self.pushed,
                    num_rows=file.num_rows,
                    size_bytes=task.size_bytes,
                    partition_values=values,
                )
        if own:
            yield own


# Otherwise Daft would read INT96 as nanoseconds, which overflow after the year 2262.
_PARQUET: Final = ParquetSourceConfig(coerce_int96_timestamp_unit=PyTimeUnit.microseconds())


def _files_of(scan: Scan, pushdowns: Pushdowns) -> _DaftFiles:
    """Return the files of a scan that Daft reads; none if its filter would be applied wrongly.

    Args:
        scan: the scan of a query, without conditions other than those of the query.
        pushdowns: the filter and limit of the query.

    Cost: see `plan_native`.
    """
    spec = scan.spec
    partitions = spec.partition_columns.names
    if {*spec.data_columns.names, *partitions} != set(scan.schema.names):
        return _DaftFiles()  # such as fields of structs
    of_files: list[daft.Expression] = []
    of_partitions: list[daft.Expression] = []
    for operand in [] if pushdowns.filters is None else _operands(pushdowns.filters):
        used = _columns_of(operand)
        if used is None or (used & set(partitions) and used - set(partitions)):
            return _DaftFiles()
        (of_partitions if used & set(partitions) else of_files).append(operand)
    plan = plan_native(scan, DAFT, has_filter=bool(of_files))
    if plan.is_renamed:
        return _DaftFiles()
    filtered: set[str] = set().union(*(_columns_of(one) or () for one in of_files))
    found: dict[int, tuple[StoredFile, RecordBatch | None] | None] = {}
    for group in plan.groups:
        if not group.vectors and _is_filtered_exactly(group, scan, filtered):
            found.update(_with_partitions(group, of_partitions))
    pushed = Pushdowns(
        filters=reduce(and_, of_files) if of_files else None,
        columns=pushdowns.columns,
        limit=pushdowns.limit,
    )
    return _DaftFiles(found, pushed)


def _is_filtered_exactly(group: FileGroup, scan: Scan, filtered: set[str]) -> bool:
    """Return whether Daft filters rows by these columns exactly.

    It prunes row groups by all bounds, even by those of floating-point numbers, which do not count
    NaN. And a column that a file lacks has no type there.
    """
    stored = dict(zip(scan.spec.data_columns.names, group.columns, strict=True))
    kinds = {column.name: column.type for column in scan.spec.data_columns}
    for name in filtered:
        kind, column = kinds[name], stored[name]
        if not isinstance(kind, PrimitiveType) or kind in {FLOAT, DOUBLE}:
            return False
        if column is None or column.name in group.untrusted:
            return False
    return True


def _with_partitions(
    group: FileGroup, conditions: list[daft.Expression]
) -> Iterator[tuple[int, tuple[StoredFile, RecordBatch | None] | None]]:
    """Yield for each file its position, and its partition values if the conditions are true."""
    if not group.constants:
        yield from (
            (number, (file, None)) for number, file in zip(group.numbers, group.files, strict=True)
        )
        return
    constants = pa.RecordBatch.from_arrays(list(group.constants.values()), list(group.constants))
    is_true = _evaluate(conditions, constants)
    for place, (number, file) in enumerate(zip(group.numbers, group.files, strict=True)):
        yield number, (file, _to_daft(constants.slice(place, 1))) if is_true[place] else None


def _evaluate(conditions: list[daft.Expression], rows: pa.RecordBatch) -> list[bool | None]:
    """Return for each row whether all conditions are true, as Daft computes it."""
    if not conditions:
        return [True] * rows.num_rows
    asked = ExpressionsProjection([reduce(and_, conditions).alias("is_true")])
    found: list[bool | None] = _to_daft(rows).eval_expression_list(asked).to_pydict()["is_true"]
    return found


def _to_daft(rows: pa.RecordBatch) -> RecordBatch:
    return RecordBatch.from_arrow_record_batches([rows], rows.schema)


class _OutermostAnd(DaftConverter, PredicateVisitor):  # type: ignore[misc]  # Daft may be missing in type checks
    """Divides a condition at the outermost AND."""

    def visit_and(self, left: Any, right: Any) -> list[Any]:
        """Return the operands of both sides."""
        return [*_operands(left), *_operands(right)]


def _operands(condition: Any) -> list[Any]:
    try:
        found = _OutermostAnd(StructType([])).visit(condition)
    except Exception:  # noqa: BLE001  # all other expressions, and those of other releases of Daft
        return [condition]
    return found if isinstance(found, list) else [condition]


def _columns_of(condition: Any) -> set[str] | None:
    """Return the columns of a condition; None if Daft cannot tell them."""
    try:
        return set(Pushdowns(filters=condition).filter_required_column_names())
    except ValueError:
        return None


class _CountTask(DataSourceTask):  # type: ignore[misc]  # as above
    """A task that returns the number of rows in place of the rows.

    Args:
        num_rows: the number of rows.
        column: the column in which Daft expects the number.
    """

    def __init__(self, num_rows: int, column: str) -> None:
        self._num_rows = num_rows
        self._column = column

    @property
    def schema(self) -> daft.Schema:
        """The schema of the number."""
        return daft.Schema.from_pyarrow_schema(pa.schema([(self._column, pa.uint64())]))

    async def read(self) -> AsyncIterator[RecordBatch]:
        """Yield the number."""
        values = pa.array([self._num_rows], pa.uint64())
        yield RecordBatch.from_pydict({self._column: values})
