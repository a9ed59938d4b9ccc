"""The part of a distributed write that runs on a worker, whatever engine sends it there.

Owns the ranges of identity values for tasks. Only the driver's commit makes a task's files part of
the table; if the task fails, or another attempt of it wins, its files are never read.

Protocol: Identity Columns
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.features.identity_columns import identity_columns
from deltalog.rows.gather import write_optimized
from deltalog.write.files import FileWriter, write_files
from deltalog.write.replace_where import write_where

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deltalog.expressions import Expression
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles

RANGE: Final = 1 << 30
"""Identity values reserved for a task; those that it does not use are a gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteJob:
    """What a task needs to write its rows.

    Args:
        spec: of the table.
        predicate: which every row must match.
        tells_changes: whether change files are written as well.
        gathers: whether the rows of a partition are gathered in the task; None follows the table.
    """

    spec: WriteSpec
    predicate: Expression | None = None
    tells_changes: bool = False
    gathers: bool | None = None


def write_part(job: WriteJob, batches: Iterable[pa.RecordBatch], *, place: int) -> WrittenFiles:
    """Write the rows of one task.

    Args:
        job: of the write.
        batches: of one schema.
        place: of the task among those of the write, from 0: each has identity values of its own.

    Raises:
        SchemaMismatchError, ConstraintViolationError: the rows do not fit; no file is left.
        StorageError: the store failed; the task may be done again.
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
    """Return the first value of each identity column for the task of a number."""
    columns = identity_columns(spec.configuration.schema)
    return {one.name: one.next_value + place * RANGE * one.step for one in columns}
