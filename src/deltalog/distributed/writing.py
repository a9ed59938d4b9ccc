"""Writes whose rows are written to files by the tasks of an engine, and committed once.

Owns the two halves: `reported` runs in a task, writes its rows, and tells what it wrote;
`write_rows` runs in the process that was called, has the engine run the tasks, and does the verb
`Write` with their files. Until its commit nothing is visible.

An engine would do a task that fails again, but an error in the rows would only occur again: it is
the task's report, so that the files of the other tasks are known and deleted.

Protocol: none
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deltalog.distributed.sending import Sent
from deltalog.engine import LocalEngine
from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    SchemaMismatchError,
)
from deltalog.rows.write_task import WriteJob, no_files, write_part
from deltalog.table.write import write_by
from deltalog.write.enforce import Enforcer
from deltalog.write.source import Rereadable
from deltalog.write.written import WrittenFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Unpack

    import pyarrow as pa

    from deltalog.distributed.reading import Source
    from deltalog.engine import RowSource
    from deltalog.expressions import Expression
    from deltalog.table.write import WriteArguments
    from deltalog.write.spec import WriteSpec

Report = WrittenFiles | DeltaError
"""What a task tells: its files, or what is wrong with its rows."""
_IN_THE_ROWS = (ConstraintViolationError, InvalidInputError, SchemaMismatchError)


class DistributedRows(Rereadable):
    """Rows that the tasks of an engine compute and write.

    Asked for again, as after a conflict with another writer, they are computed again.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The schema of the rows; it may have to be computed.

        Raises:
            InvalidInputError: it is not known.
        """

    @property
    def known_schema(self) -> pa.Schema | None:
        """The schema, if it is known without computing anything."""
        return self.schema

    @abstractmethod
    def write(self, job: Sent[WriteJob]) -> Sequence[Report]:
        """Have tasks do `reported` with their rows; return what they tell."""


def reported(job: Sent[WriteJob], batches: Iterable[pa.RecordBatch], *, place: int) -> Report:
    """Write the rows of a task, in the task; return its files, or the error in the rows.

    Args:
        job: of the write.
        batches: the rows, of one schema.
        place: of the task among those of the write.

    Raises:
        StorageError: the store failed; the engine may do the task again.
    """
    try:
        return write_part(job.value, batches, place=place)
    except _IN_THE_ROWS as error:
        return error


def write_rows(
    rows: DistributedRows, table: Source, **options: Unpack[WriteArguments]
) -> int | None:
    """Write rows by the tasks that compute them, and commit their files as one version.

    Args:
        rows: of an engine.
        table: where; a `DeltaTable` shows the new version afterwards.
        options: those of `write_deltalake`.

    Returns:
        The new version; None if nothing had to be written.

    Raises:
        DeltaError: as `write_deltalake`; the table is as it was.
    """
    committed = write_by(_TaskEngine(), table, rows, **options)
    return None if committed is None or committed.skipped else committed.version


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise the error of ours that an engine has wrapped instead of the engine's."""
    try:
        yield
    except Exception as error:
        own = _own_error(error)
        if own is None:
            raise
        raise own from error


def _own_error(error: BaseException | None) -> DeltaError | None:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        cause = getattr(error, "cause", None)
        for one in (cause, error):
            if isinstance(one, DeltaError) and type(one).__module__.startswith("deltalog."):
                return one
        error = error.__cause__ or (cause if isinstance(cause, BaseException) else None)
    return None


class _TaskEngine(LocalEngine):
    """Has tasks write the rows; all other work is done in this process."""

    def open_rows(self, data: Any) -> RowSource:
        """Open rows of an engine, which stay where they are."""
        return data if isinstance(data, DistributedRows) else super().open_rows(data)

    def write_rows(
        self,
        spec: WriteSpec,
        rows: RowSource,
        *,
        predicate: Expression | None = None,
        tells_changes: bool = False,
    ) -> WrittenFiles:
        """Write rows by the tasks that compute them.

        Raises:
            SchemaMismatchError: the rows do not fit the table; if their schema is known, no task
                has run.
        """
        if not isinstance(rows, DistributedRows):
            return super().write_rows(spec, rows, predicate=predicate, tells_changes=tells_changes)
        if (schema := rows.known_schema) is not None:
            Enforcer.of_spec(spec, schema)
        job = WriteJob(spec=spec, predicate=predicate, tells_changes=tells_changes)
        return _combined(spec, rows.write(Sent(job)))


def _combined(spec: WriteSpec, reports: Sequence[Report]) -> WrittenFiles:
    """The files of all tasks.

    Raises:
        DeltaError: what is wrong with the rows of some task; the others' files are deleted.
    """
    parts = [report for report in reports if isinstance(report, WrittenFiles)]
    error = next((report for report in reports if isinstance(report, DeltaError)), None)
    if error is None:
        return WrittenFiles.merge(parts) if parts else no_files(spec)
    spec.store.delete_many([path for part in parts for path in part.paths])
    raise error
