"""Read many small files at a low cost per file.

A scan maps the Parquet columns of every file to the table's columns, and reads it in pieces. Small
files mostly have the same schema: here they are read whole, several at a time, and the mapping is
reused for files of the same Parquet schema. Files with deletion vectors, row ids or dates of an old
calendar are left to the scan.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.kernels import arrow
from deltalog.partition_values import parse_value
from deltalog.scan.reader import read_task
from deltalog.scan.rebase import file_rebase
from deltalog.scan.task import noting
from deltalog.scan.transform import FileProjection, project_file
from deltalog.schema import to_arrow_type
from deltalog.storage.parquet import open_parquet
from deltalog.storage.pool import map_in_pool
from deltalog.storage.store import is_local

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deltalog.scan.task import ReadSpec, ScanTask
    from deltalog.storage.parquet import ParquetReader

SMALL_BYTES: Final = 4 * 1024 * 1024
_MOST_FILES: Final = 128

Group = list["ScanTask"]


def grouped(tasks: Iterable[ScanTask]) -> Iterator[Group]:
    """Group the tasks of consecutive small files; a large file is a group of its own."""
    group: Group = []
    size = 0
    for task in tasks:
        more = SMALL_BYTES if task.size_bytes is None else task.size_bytes
        if group and (size + more > SMALL_BYTES or len(group) == _MOST_FILES):
            yield group
            group, size = [], 0
        group.append(task)
        size += more
    if group:
        yield group


def is_small(group: Group) -> bool:
    """Whether the files of a group are small enough to be read whole."""
    return sum(task.size_bytes or SMALL_BYTES for task in group) <= SMALL_BYTES


class SmallFileReader:
    """Reads groups of small files; thread-safe.

    Args:
        spec: of all tasks.
    """

    def __init__(self, spec: ReadSpec) -> None:
        self._spec = spec
        self._names = set(spec.output.names)
        self._known: tuple[pa.Schema, FileProjection] | None = None

    def read(self, group: Group) -> list[pa.RecordBatch]:
        """Return the rows of some files, in order."""
        batches: list[pa.RecordBatch] = []
        run: list[pa.Table] = []
        before: FileProjection | None = None
        last: ScanTask | None = None
        for task, reader in zip(group, self._open(group), strict=True):
            found = None if reader is None else self._physical(task, reader)
            if run and (
                found is None
                or found[1] is not before
                or (last is not None and task.partition_values != last.partition_values)
            ):
                batches += self._logical(run, before, last)
                run = []
            if found is None:
                batches += read_task(task)
            else:
                run.append(found[0])
                before, last = found[1], task
        if run:
            batches += self._logical(run, before, last)
        return batches

    def _open(self, group: Group) -> Iterator[ParquetReader | None]:
        """Open the files of a group; None in the place of one that the scan must read.

        Cost: of a store that is reached by requests, all of them are fetched at once.
        """
        if not is_local(group[0].store):
            return iter(map_in_pool(self._open_one, group))
        return map(self._open_one, group)

    def _open_one(self, task: ScanTask) -> ParquetReader | None:
        if self._spec.metadata_columns or task.deletion_vector is not None:
            return None
        with noting(task):
            return open_parquet(task.store, task.path, size_bytes=task.size_bytes, at_once=True)

    def _physical(
        self, task: ScanTask, reader: ParquetReader
    ) -> tuple[pa.Table, FileProjection] | None:
        """Return a file's columns and their mapping; None if the scan must read the file."""
        with noting(task), closing(reader):
            if file_rebase(reader, self._spec.time_zone) is not None:
                return None
            projection = self._projection(reader.arrow_schema, task.path)
            return reader.read_leaves(projection.leaves), projection

    def _projection(self, schema: pa.Schema, path: str) -> FileProjection:
        known = self._known
        if known is not None and known[0].equals(schema, check_metadata=True):
            return known[1]
        spec = self._spec
        found = project_file(spec.data_columns, schema, spec.mode, path=path)
        self._known = (schema, found)
        return found

    def _logical(
        self, run: list[pa.Table], projection: FileProjection | None, task: ScanTask | None
    ) -> list[pa.RecordBatch]:
        if projection is None or task is None:
            return []
        table = pa.concat_tables(run).combine_chunks()
        data: dict[str, Any] = dict(
            zip(projection.schema.names, projection.apply(table), strict=True)
        )
        for field in self._spec.partition_columns:
            text = task.partition_values.get(self._spec.physical_names[field.name])
            value = parse_value(text, field.type, time_zone=self._spec.time_zone)
            data[field.name] = arrow.repeat(
                pa.scalar(value, to_arrow_type(field.type)), table.num_rows
            )
        output = self._spec.output
        columns = [data[name] for name in output.names]
        return pa.Table.from_arrays(columns, schema=output).to_batches()
