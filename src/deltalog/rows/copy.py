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
from deltalog.metadata_columns import ROW_COMMIT_VERSION, ROW_ID
from deltalog.progress import ProgressCount
from deltalog.scan.deletion_vectors import load_bitmap
from deltalog.scan.plan import make_tasks, read_spec
from deltalog.scan.reader import read_tasks
from deltalog.schema.conform import conform

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.scan.task import ScanTask
    from deltalog.snapshot import Snapshot
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
    progress: ProgressCount | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of some files, with all columns.

    Args:
        snapshot: that the files belong to.
        files: rows of `snapshot.files`, at least with `TASK_COLUMNS`.
        predicate: only rows for which it is true; resolved against the snapshot's schema.
        more_columns: of `METADATA_COLUMNS`, after the table's own.
        progress: counted in files.

    Cost: bounded memory, like any scan.
    """
    spec = read_spec(
        snapshot,
        columns=[*snapshot.configuration.schema.names, *more_columns],
        predicate=predicate,
    )
    progress = progress or ProgressCount(None)
    progress.expect(files.num_rows)
    yield from read_tasks(progress.each(make_tasks(snapshot, spec, files)))


def copy_rows(
    snapshot: Snapshot,
    files: pa.Table,
    writer: FileWriter,
    schema: pa.Schema,
    *,
    without: Sequence[pa.Int64Array | None] | None = None,
    progress: ProgressCount | None = None,
) -> int:
    """Copy the live rows of some files, in the schema that the table will have.

    Args:
        snapshot: that the files belong to.
        files: rows of `snapshot.files`, at least with `TASK_COLUMNS`.
        writer: writes the rows.
        schema: of the writer's rows; may have more columns than the snapshot's.
        without: for each file, positions of rows to leave out besides those of its vector.
        progress: counted in files.

    Returns:
        The number of copied rows.
    """
    ids = (ROW_ID, ROW_COMMIT_VERSION) if snapshot.configuration.row_ids_enabled else ()
    spec = read_spec(
        snapshot,
        columns=[*snapshot.configuration.schema.names, *ids],
        predicate=None,
    )
    tasks = make_tasks(snapshot, spec, files)
    if without is not None:
        tasks = map(_without, tasks, without)
    progress = progress or ProgressCount(None)
    progress.expect(files.num_rows)
    copied = 0
    for batch in read_tasks(progress.each(tasks)):
        write_copied(writer, batch, schema)
        copied += batch.num_rows
    return copied


def _without(task: ScanTask, positions: pa.Int64Array | None) -> ScanTask:
    """The task with these rows added to its deletion vector."""
    if positions is None:
        return task
    bitmap = DeletionBitmap.from_arrow(positions)
    if task.deletion_vector is not None:
        bitmap |= load_bitmap(task.store, task.deletion_vector)
    return replace(task, deletion_vector=inline_descriptor(bitmap))


def write_copied(writer: FileWriter, batch: pa.RecordBatch, schema: pa.Schema) -> None:
    """Write rows that were in the table before; their row ids, if read, are kept."""
    ids: Mapping[str, Any] = {
        name: batch.column(name)
        for name in (ROW_ID, ROW_COMMIT_VERSION)
        if name in batch.schema.names
    }
    if ids:
        batch = batch.drop_columns(list(ids))
    writer.write(
        conform(batch, schema),
        row_ids=ids.get(ROW_ID),
        row_commit_versions=ids.get(ROW_COMMIT_VERSION),
    )
