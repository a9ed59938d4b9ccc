"""The part of a write that runs in a Spark task.

Only the driver's commit makes a task's files part of the table; if the task fails, or another
attempt of it wins, its files are never read.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.rows.write_task import no_files, write_part
from deltalog.spark.session.tasks import decode_all, task_number
from deltalog.write.written import WrittenFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from deltalog.rows.write_task import WriteJob
    from deltalog.write.spec import WriteSpec


def write_task(job: WriteJob, batches: Iterable[pa.RecordBatch]) -> WrittenFiles:
    """Write the rows of this Spark task.

    Raises:
        SchemaMismatchError, ConstraintViolationError: the rows do not fit; no file is left.
        StorageError: the store failed; Spark may retry the task.
    """
    return write_part(job, batches, place=task_number())


def written_by(spec: WriteSpec, messages: Sequence[bytes]) -> WrittenFiles:
    """Combine the files of all tasks.

    Raises:
        DeltaError: what is wrong with the rows of some task; the others' files are removed.
    """
    parts: list[WrittenFiles] = decode_all(messages, spec.store, lambda written: written.paths)
    return WrittenFiles.merge(parts) if parts else no_files(spec)
