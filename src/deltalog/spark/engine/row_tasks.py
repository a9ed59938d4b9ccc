"""The executors' half of deletes, updates and merges: what tasks do with changed rows.

Spark has decided about each row before: it comes with the number of its clause, the position of its
old version, and its new values. Owns the checking and writing of rows, the writing of change files,
and the collection of old versions' positions.

Protocol: Deletion Vectors, Add CDC File, Row Tracking, Identity Columns
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.deletion_vectors import DeletionBitmap, inline_descriptor
from deltalog.features.identity_columns import identity_columns
from deltalog.kernels import Array, compute
from deltalog.rows.copy import write_copied
from deltalog.rows.request import Action
from deltalog.rows.write_task import identity_starts
from deltalog.scan import read_tasks
from deltalog.scan.deletion_vectors import load_bitmap
from deltalog.spark.session.tasks import task_number
from deltalog.write.changes import ChangeWriter
from deltalog.write.enforce import Enforcer
from deltalog.write.files import FileWriter
from deltalog.write.fit import Fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from deltalog.scan import ScanTask
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles


CLAUSE: Final = "__deltalog_clause"
"""Column with the number of the clause that applies to a row."""
OLD_FILE: Final = "__deltalog_path"
"""Column with the path of the file of a row's old version."""
OLD_POSITION: Final = "__deltalog_position"
"""Column with the position of the old version in its file."""
ROW_ID: Final = "__deltalog_row_id"
OLD: Final = "__deltalog_old"
"""Column with the old version, a struct, if change files are written."""
NEW: Final = "__deltalog_new_"
"""Prefix, followed by the number of a clause: column with the new version, a struct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeJob:
    """What tasks need to change rows.

    Args:
        write_spec: of the table.
        clauses: what each does, by number.
        tells_changes: whether change files are written.
        writes: whether new versions are written; otherwise rows are only counted and located.
    """

    write_spec: WriteSpec
    clauses: tuple[Action, ...]
    tells_changes: bool
    writes: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsDone:
    """The report of a task, or of all tasks together.

    Args:
        written: new files.
        counts: rows by clause.
        places: file → number of row changes, and the distinct positions: fewer if a row repeats.
    """

    written: WrittenFiles
    counts: tuple[int, ...]
    places: Mapping[str, tuple[int, DeletionBitmap]] = field(default_factory=dict)


def change_task(job: ChangeJob, batches: Iterable[pa.RecordBatch]) -> RowsDone:
    """Change the rows of this Spark task."""
    opened = ChangeWriter(job.write_spec) if job.tells_changes else contextlib.nullcontext()
    with FileWriter(job.write_spec) as writer, opened as feed:
        work = _RowWork(job, writer, feed)
        for batch in batches:
            if batch.num_rows:
                work.take(batch)
        return work.finish()


class _RowWork:
    def __init__(self, job: ChangeJob, writer: FileWriter, feed: ChangeWriter | None) -> None:
        self._clauses = job.clauses
        self._spec = job.write_spec
        self._writes = job.writes
        self._writer = writer
        self._feed = feed
        self._has_ids = job.write_spec.configuration.row_ids_enabled
        self._counts = [0] * len(job.clauses)
        self._places: dict[str, list[Array]] = {}
        self._enforcers: dict[int, Enforcer] = {}

    def take(self, batch: pa.RecordBatch) -> None:
        """Apply the clauses of some rows."""
        numbers = batch.column(CLAUSE)
        for number in compute.unique(numbers).to_pylist():
            mask = compute.equal(numbers, number)
            rows = batch if mask.true_count == batch.num_rows else batch.filter(mask)
            self._counts[number] += rows.num_rows
            self._do(number, rows)

    def _do(self, number: int, rows: pa.RecordBatch) -> None:
        action = self._clauses[number]
        is_new = action is Action.INSERT
        if not is_new:
            self._note(rows)
        if not self._writes:
            return
        if not is_new:
            self._tell_old(rows, "delete" if action is Action.DELETE else "update_preimage")
        if action is Action.DELETE:
            return
        structs: Array = rows.column(f"{NEW}{number}")
        given = pa.RecordBatch.from_struct_array(structs)
        new = self._enforcer(number, given.schema).apply(given)
        if self._has_ids:
            none: Any = pa.nulls(new.num_rows, pa.int64())
            ids = none if is_new else rows.column(ROW_ID)
            self._writer.write(new, row_ids=ids, row_commit_versions=none)
        else:
            self._writer.write(new)
        if self._feed is not None:
            self._feed.write(new, "insert" if is_new else "update_postimage")

    def _enforcer(self, number: int, schema: pa.Schema) -> Enforcer:
        found = self._enforcers.get(number)
        if found is None:
            configuration = self._spec.configuration
            place = task_number() * len(self._clauses) + number
            found = Enforcer(
                configuration,
                schema,
                table=self._spec.store.root,
                time_zone=self._spec.time_zone,
                identity_starts=identity_starts(self._spec, place),
                now_ms=self._spec.now_ms,
                keeps_identities=self._clauses[number] is not Action.INSERT,
            )
            self._enforcers[number] = found
        return found

    def _note(self, rows: pa.RecordBatch) -> None:
        """Collect the positions of old versions."""
        names: Array = rows.column(OLD_FILE).dictionary_encode()
        places = rows.column(OLD_POSITION)
        for code, name in enumerate(names.dictionary.to_pylist()):
            mask = compute.equal(names.indices, code)
            here = places if mask.true_count == rows.num_rows else places.filter(mask)
            self._places.setdefault(name, []).append(here)

    def _tell_old(self, rows: pa.RecordBatch, change_type: str) -> None:
        if self._feed is None:
            return
        structs: Array = rows.column(OLD)
        old = pa.RecordBatch.from_struct_array(structs)
        schema = self._spec.configuration.schema
        fit = Fit(old.schema, schema, optional=schema.names, time_zone=self._spec.time_zone)
        found = fit.apply(old)
        arrow = self._spec.configuration.arrow_schema
        arrays: list[Array] = [
            found[one.name] if one.name in found else pa.nulls(old.num_rows, one.type)
            for one in arrow
        ]
        self._feed.write(pa.RecordBatch.from_arrays(arrays, schema=arrow), change_type)

    def finish(self) -> RowsDone:
        """Close all files, and return what was done."""
        starts: dict[str, int] = {}
        marks: dict[str, int] = {}
        columns = {one.name: one for one in identity_columns(self._spec.configuration.schema)}
        for enforcer in self._enforcers.values():
            for name, start in enforcer.identity_starts.items():
                starts[name] = min(starts.get(name, start), start, key=_along(columns[name].step))
            for name, mark in enforcer.identity_marks.items():
                marks[name] = max(marks.get(name, mark), mark, key=_along(columns[name].step))
        written = self._writer.finish(identity_marks=marks, identity_starts=starts)
        if self._feed is not None:
            written = replace(written, cdc=self._feed.finish())
        places = {name: _joined(parts) for name, parts in self._places.items()}
        return RowsDone(written=written, counts=tuple(self._counts), places=places)


def _along(step: int) -> Callable[[int], int]:
    """Return the sort key that puts identity values in order of assignment."""
    return lambda value: value if step > 0 else -value


def _joined(parts: Sequence[Array]) -> tuple[int, DeletionBitmap]:
    rows = pa.concat_arrays(parts)
    return len(rows), DeletionBitmap.from_arrow(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyJob:
    """Files whose remaining rows are copied.

    Args:
        write_spec: of the table.
        groups: for each Spark task: files, and the rows to leave out of each.
    """

    write_spec: WriteSpec
    groups: tuple[tuple[tuple[ScanTask, DeletionBitmap], ...], ...]


def copy_task(job: CopyJob, number: int) -> RowsDone:
    """Copy the remaining rows of a group's files; runs in a task, and reports one count."""
    copied, schema = 0, job.write_spec.configuration.arrow_schema
    with FileWriter(job.write_spec) as writer:
        for rows in read_tasks([_without(*one) for one in job.groups[number]]):
            write_copied(writer, rows, schema)
            copied += rows.num_rows
        return RowsDone(written=writer.finish(), counts=(copied,))


def _without(task: ScanTask, gone: DeletionBitmap) -> ScanTask:
    if task.deletion_vector is not None:
        # The reader of the task checks the rows.
        gone |= load_bitmap(task.store, task.deletion_vector, num_rows=None)
    return replace(task, deletion_vector=inline_descriptor(gone))
