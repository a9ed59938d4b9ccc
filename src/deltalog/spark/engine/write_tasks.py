"""The part of a write that one Spark task does.

Owns the ranges of identity values that tasks get. No commit names what a task has written before
the driver does; if the task fails, or another attempt of it wins, nobody ever reads its files.

Protocol: Identity Columns
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.features.identity_columns import identity_columns
from deltalog.rows.gather import optimizes_writes, write_optimized
from deltalog.spark.session.tasks import decode_all, task_number
from deltalog.write.files import FileWriter, write_files
from deltalog.write.replace_where import write_where
from deltalog.write.written import WrittenFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deltalog.expressions import Expression
    from deltalog.write.spec import WriteSpec

RANGE: Final = 1 << 30
"""Identity values that one task may give; those that it does not need are a gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTask:
    """What a task must know to write its rows.

    Args:
        spec: of the table.
        predicate: which every row must match.
        tells_changes: whether files for the change feed are written as well.
    """

    spec: WriteSpec
    predicate: Expression | None = None
    tells_changes: bool = False


def write_task(task: WriteTask, batches: Iterable[pa.RecordBatch]) -> WrittenFiles:
    """Write the rows of this Spark task.

    Raises:
        SchemaMismatchError, ConstraintViolationError: the rows do not fit; no file is left.
        StorageError: the store failed; Spark may try again.
    """
    reader = iter(batches)
    first = next((batch for batch in reader if batch.num_rows), None)
    if first is None:
        return no_files(task.spec)
    rows = pa.RecordBatchReader.from_batches(first.schema, chain([first], reader))
    spec = task.spec
    if (number := task_number()) and (starts := identity_starts(spec, number)):
        spec = replace(spec, identity_starts=starts)
    if task.predicate is not None:
        return write_where(spec, rows, task.predicate, tells_changes=task.tells_changes)
    write = write_optimized if optimizes_writes(spec.configuration) else write_files
    return write(spec, rows)


def written_by(spec: WriteSpec, messages: Sequence[bytes]) -> WrittenFiles:
    """Return the files of all tasks.

    Raises:
        DeltaError: what is wrong with the rows of some task; the others' files are removed.
    """
    parts: list[WrittenFiles] = decode_all(messages, spec.store, lambda written: written.paths)
    return WrittenFiles.merge(parts) if parts else no_files(spec)


def no_files(spec: WriteSpec) -> WrittenFiles:
    """Return what a write without rows leaves."""
    return FileWriter(spec).finish()


def identity_starts(spec: WriteSpec, place: int) -> dict[str, int]:
    """Return where each identity column starts in the range of a place among the tasks."""
    columns = identity_columns(spec.configuration.schema)
    return {one.name: one.next_value + place * RANGE * one.step for one in columns}
