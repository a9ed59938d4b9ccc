"""Write the rows of one task of a distributed write.

Protocol: Identity Columns
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.data.write.changes import write_where
from deltalog.data.write.files import FileWriter, write_files
from deltalog.operations.changes.external_sort import write_optimized
from deltalog.protocol.features.identity_columns import identity_columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deltalog.data.write.options import WriteSpec
    from deltalog.data.write.written import WrittenFiles
    from deltalog.expressions import Expression

RANGE: Final = 1 << 30
"""The number of identity values that are reserved for each task.

Values that a task does not use are never assigned.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteJob:
    """The arguments of a task that writes rows.

    Args:
        spec: describes the table and how files are written.
        predicate: a condition that every row must match.
        tells_changes: whether to also write change data files.
        gathers: whether the task sorts its rows by partition, to write fewer files; None follows
            the table's property for optimized writes.
    """

    spec: WriteSpec
    predicate: Expression | None = None
    tells_changes: bool = False
    gathers: bool | None = None


def write_part(job: WriteJob, batches: Iterable[pa.RecordBatch], *, place: int) -> WrittenFiles:
    """Write the rows of one task.

    Args:
        job: arguments of the write.
        batches: batches with the same schema.
        place: number of the task, from 0, which defines its range of identity values.

    Raises:
        SchemaMismatchError, ConstraintViolationError: the rows do not match the table's schema or
            constraints, or the predicate. New files are deleted.
        StorageError: the store failed; the task may be repeated.
    """
    reader = iter(batches)
    first = next((batch for batch in reader if batch.num_rows), None)
    if first is None:
        return no_files(job.spec)
    rows = pa.RecordBatchReader.from_batches(first.schema, chain([first], reader))
    spec = job.spec
    if place and (starts := identity_starts(spec, place)):
        spec = replace(spec, identity_starts=starts)
    if job.predicate is not None:
        return write_where(spec, rows, job.predicate, tells_changes=job.tells_changes)
    gathers = spec.configuration.optimizes_writes if job.gathers is None else job.gathers
    return (write_optimized if gathers else write_files)(spec, rows)


def no_files(spec: WriteSpec) -> WrittenFiles:
    """Return the result of a write without rows."""
    return FileWriter(spec).finish()


def identity_starts(spec: WriteSpec, place: int) -> dict[str, int]:
    """Return the first value of each identity column for a task."""
    columns = identity_columns(spec.configuration.schema)
    return {one.name: one.next_value + place * RANGE * one.step for one in columns}
