"""Native plans for Daft: local Parquet files, read by Daft's own reader.

For each file that Daft reads exactly, a query gets a task of Daft's reader, which applies the
query's filter. So the filter must not use columns that the files lack or whose bounds Daft would
misread.

Protocol: Partition Value Serialization
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import daft
import pyarrow as pa
from daft.daft import ParquetSourceConfig, PyTimeUnit
from daft.expressions import ExpressionsProjection
from daft.expressions.visitor import PredicateVisitor
from daft.io.pushdowns import Pushdowns
from daft.io.source import DataSourceTask
from daft.recordbatch import RecordBatch

from deltalog.data.scan.native import DAFT, plan_native
from deltalog.expressions.daft import DaftConverter
from deltalog.schema.types import DOUBLE, FLOAT, PrimitiveType, StructType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

    from deltalog.data.scan.native import FileGroup, StoredFile
    from deltalog.data.scan.plan import Scan
    from deltalog.data.scan.reader import ScanTask


@dataclass(frozen=True, slots=True)
class DaftFiles:
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


def files_of(scan: Scan, pushdowns: Pushdowns) -> DaftFiles:
    """Return the files of a scan that Daft reads; none if its filter would be applied wrongly.

    Args:
        scan: the scan of a query, without conditions other than those of the query.
        pushdowns: the filter and limit of the query.

    Cost: see `plan_native`.
    """
    spec = scan.spec
    partitions = spec.partition_columns.names
    if {*spec.data_columns.names, *partitions} != set(scan.schema.names):
        return DaftFiles()  # such as fields of structs
    of_files: list[daft.Expression] = []
    of_partitions: list[daft.Expression] = []
    for operand in [] if pushdowns.filters is None else _operands(pushdowns.filters):
        used = _columns_of(operand)
        if used is None or (used & set(partitions) and used - set(partitions)):
            return DaftFiles()
        (of_partitions if used & set(partitions) else of_files).append(operand)
    plan = plan_native(scan, DAFT)
    if plan.is_renamed:
        return DaftFiles()
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
    return DaftFiles(found, pushed)


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


def counted(num_rows: int, column: str) -> DataSourceTask:
    """Return a task that returns the number of rows in place of the rows.

    Args:
        num_rows: the number of rows.
        column: the column in which Daft expects the number.
    """
    return _CountTask(num_rows, column)


class _CountTask(DataSourceTask):  # type: ignore[misc]  # as above
    """See `counted`."""

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
