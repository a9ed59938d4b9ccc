"""Copy rows of existing files into new files: the part of copy-on-write that all verbs share.

Owns which rows are copied, and that they keep their values in the table's schema and, with row
tracking, their row ids and commit versions.

Protocol: Row Tracking, Writer Requirements for Add File
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.deletion_vectors import DeletionBitmap, inline_descriptor
from deltalog.metadata_columns import FILE_NUMBER, ROW_COMMIT_VERSION, ROW_ID, ROW_INDEX
from deltalog.progress import ProgressCount
from deltalog.scan.deletion_vectors import load_bitmap
from deltalog.scan.plan import make_numbered_tasks, make_tasks
from deltalog.scan.reader import read_tasks
from deltalog.scan.spec import read_spec
from deltalog.schema.conform import conform

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.expressions import Expression
    from deltalog.rows.kept_groups import KeptGroups
    from deltalog.scan.task import ScanTask
    from deltalog.snapshot import Snapshot
    from deltalog.storage.parquet_facts import FetchedFooters
    from deltalog.write.files import FileWriter


ROW_GROUP_BYTES: Final = 16 * 1024 * 1024
"""In-memory size of the row groups of rewritten files.

Smaller than the default: a row group is encoded while the next one is read, and only the last one
has nothing to overlap with.
"""


def read_rows(
    snapshot: Snapshot,
    files: pa.Table,
    *,
    predicate: Expression | None = None,
    more_columns: Sequence[str] = (),
    footers: FetchedFooters | None = None,
    progress: ProgressCount | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of some files, with all columns.

    Args:
        snapshot: that the files belong to.
        files: rows of `snapshot.files`, at least with `TASK_COLUMNS`.
        predicate: only rows for which it is true; resolved against the snapshot's schema.
        more_columns: of `METADATA_COLUMNS`, after the table's own.
        footers: what was fetched of the files before.
        progress: counted in files.

    Cost: bounded memory, like any scan.
    """
    spec = read_spec(
        snapshot,
        columns=snapshot.configuration.schema.names,
        hidden=more_columns,
        predicate=predicate,
    )
    progress = progress or ProgressCount(None)
    progress.expect(files.num_rows)
    yield from read_tasks(progress.each(make_tasks(snapshot, spec, files, footers=footers)))


def copy_rows(
    snapshot: Snapshot,
    files: pa.Table,
    writer: FileWriter,
    schema: pa.Schema,
    *,
    without: Sequence[pa.Int64Array | None] | None = None,
    kept: KeptGroups | None = None,
    footers: FetchedFooters | None = None,
    progress: ProgressCount | None = None,
) -> int:
    """Copy the live rows of some files, in the schema that the table will have.

    Args:
        snapshot: that the files belong to.
        files: rows of `snapshot.files`, at least with `TASK_COLUMNS`.
        writer: writes the rows.
        schema: of the writer's rows; may have more columns than the snapshot's.
        without: for each file, positions of rows to leave out besides those of its vector.
        kept: copies row groups in which nothing changes; None reads and writes all rows.
        footers: what was fetched of the files before.
        progress: counted in files.

    Returns:
        The number of copied rows.
    """
    ids = (ROW_ID, ROW_COMMIT_VERSION) if snapshot.configuration.row_ids_enabled else ()
    names = snapshot.configuration.schema.names
    progress = progress or ProgressCount(None)
    progress.expect(files.num_rows)
    more = () if kept is None else (ROW_INDEX,)
    spec = read_spec(snapshot, columns=names, hidden=(*ids, *more), predicate=None)
    if kept is None:
        tasks = make_tasks(snapshot, spec, files, footers=footers)
    else:
        tasks = make_numbered_tasks(snapshot, spec, files, footers=footers)
    if without is not None:
        tasks = map(_without, tasks, without)
    if kept is None:
        tasks = progress.each(tasks)
    else:
        # Rows to leave out are in the tasks' vectors.
        numbered = enumerate(progress.each(tasks))
        tasks = kept.tasks((number, task, DeletionBitmap()) for number, task in numbered)
    copied = 0
    for batch in read_tasks(tasks):
        if not batch.num_rows:
            continue
        copied += batch.num_rows
        if kept is None:
            write_copied(writer, batch, schema)
        else:
            write_between(kept, batch, schema)
    if kept is not None:
        kept.finish()
        copied += kept.num_rows
    return copied


def write_between(kept: KeptGroups, batch: pa.RecordBatch, schema: pa.Schema) -> None:
    """Write rows of one file as `write_copied` does, between the row groups that are copied.

    Args:
        kept: the row groups.
        batch: with the columns `FILE_NUMBER` and `ROW_INDEX`.
        schema: of the writer's rows.
    """
    number, first_row = (batch.column(name)[0].as_py() for name in (FILE_NUMBER, ROW_INDEX))
    rows, ids = _with_ids(batch.drop_columns([FILE_NUMBER, ROW_INDEX]))
    kept.write(number, first_row, conform(rows, schema), **ids)


def _without(task: ScanTask, positions: pa.Int64Array | None) -> ScanTask:
    """The task with these rows added to its deletion vector."""
    if positions is None:
        return task
    bitmap = DeletionBitmap.from_arrow(positions)
    if task.deletion_vector is not None:
        # The reader of the task checks the rows.
        bitmap |= load_bitmap(task.store, task.deletion_vector, num_rows=None)
    return replace(task, deletion_vector=inline_descriptor(bitmap))


def write_after(kept: KeptGroups, number: int, batch: pa.RecordBatch, schema: pa.Schema) -> None:
    """Write rows as `write_copied` does, after the row groups of files before the given one."""
    rows, ids = _with_ids(batch)
    kept.write(number, 0, conform(rows, schema), **ids)


def write_copied(writer: FileWriter, batch: pa.RecordBatch, schema: pa.Schema) -> None:
    """Write rows that were in the table before; their row ids, if read, are kept."""
    rows, ids = _with_ids(batch)
    writer.write(conform(rows, schema), **ids)


def _with_ids(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, Any]]:
    """The rows without row ids, and these, if they were read, as a writer takes them."""
    found = {
        parameter: batch.column(name)
        for name, parameter in _ID_PARAMETERS.items()
        if name in batch.schema.names
    }
    if not found:
        return batch, {}
    return batch.drop_columns(
        [name for name in _ID_PARAMETERS if name in batch.schema.names]
    ), found


_ID_PARAMETERS: Final = {ROW_ID: "row_ids", ROW_COMMIT_VERSION: "row_commit_versions"}
