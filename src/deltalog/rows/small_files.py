"""Read many small files at a low cost per file.

A scan maps the Parquet columns of every file to the table's columns, and reads it in pieces. Small
files mostly have the same schema: here they are read whole, and the mapping is reused for files of
the same Parquet schema. Files with deletion vectors, row ids or dates of an old calendar are left
to the scan. Decoding is made of short calls of Arrow, and threads that make such calls wait for the
interpreter: two of them gain a third, more gain nothing.
"""

from __future__ import annotations

from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.kernels import arrow
from deltalog.partition_values import parse_value
from deltalog.scan.reader import read_pieces
from deltalog.scan.rebase import file_rebase
from deltalog.scan.task import noting
from deltalog.scan.transform import FileProjection, project_file
from deltalog.schema import to_arrow_type
from deltalog.storage.parquet import open_parquet
from deltalog.storage.parquet_small import KnownSchema, decode_small, small_bytes
from deltalog.storage.pool import map_in_pool
from deltalog.storage.store import is_local

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deltalog.scan.task import ReadSpec, ScanTask
    from deltalog.storage.parquet import ParquetReader

SMALL_BYTES: Final = 1024 * 1024
_MOST_FILES: Final = 32

Group = list["ScanTask"]
FetchedGroup = list[tuple["ScanTask", "bytes | ParquetReader | None"]]
"""Files with what was fetched of them; None in the place of one that the scan must read."""


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
        self._schemas = KnownSchema()

    def fetch(self, group: Group) -> FetchedGroup:
        """Fetch small files, so that other threads need not wait for them.

        Cost: of a store that is reached by requests, all of them are sent at once.
        """
        if is_local(group[0].store):
            return list(zip(group, map(self._fetch_local, group), strict=True))
        return list(zip(group, map_in_pool(self._open, group), strict=True))

    def read_group(self, group: Group) -> Iterable[pa.RecordBatch]:
        """Fetch small files, and return their rows, in order."""
        return self.read(self.fetch(group))

    def read(self, fetched: FetchedGroup) -> Iterable[pa.RecordBatch]:
        """Return the rows of some files, in order; long ones are decoded when asked for."""
        batches: list[Iterable[pa.RecordBatch]] = []
        run: list[pa.Table] = []
        before: FileProjection | None = None
        last: ScanTask | None = None
        for task, file in fetched:
            found = self._physical(task, file)
            if run and (
                found is None
                or found[1] is not before
                or (last is not None and task.partition_values != last.partition_values)
            ):
                batches.append(self._logical(run, before, last))
                run = []
            if found is None:
                batches += read_pieces(task)
            else:
                run.append(found[0])
                before, last = found[1], task
        if run:
            batches.append(self._logical(run, before, last))
        return chain.from_iterable(batches)

    def _is_for_scan(self, task: ScanTask) -> bool:
        return bool(self._spec.metadata_columns) or task.deletion_vector is not None

    def _fetch_local(self, task: ScanTask) -> bytes | None:
        if self._is_for_scan(task):
            return None
        with noting(task):
            return small_bytes(task.store, task.path)

    def _open(self, task: ScanTask) -> ParquetReader | None:
        if self._is_for_scan(task):
            return None
        with noting(task):
            return open_parquet(task.store, task.path, size_bytes=task.size_bytes)

    def _physical(
        self, task: ScanTask, file: bytes | ParquetReader | None
    ) -> tuple[pa.Table, FileProjection] | None:
        """Return a file's columns and their mapping; None if the scan must read the file."""
        if file is None:
            return None
        if isinstance(file, bytes):
            return self._decoded(task, file)
        with noting(task), closing(file):
            projection = self._projection(task, file.metadata, file.arrow_schema)
            if projection is None:
                return None
            return file.read_leaves(projection.leaves), projection

    def _decoded(self, task: ScanTask, data: bytes) -> tuple[pa.Table, FileProjection] | None:
        projection: FileProjection | None = None

        def choose(metadata: Any, schema: pa.Schema) -> Sequence[int] | None:
            nonlocal projection
            projection = self._projection(task, metadata, schema)
            return None if projection is None else projection.leaves

        with noting(task):
            table = decode_small(task.store, task.path, data, choose, self._schemas)
        return None if table is None or projection is None else (table, projection)

    def _projection(
        self, task: ScanTask, metadata: Any, schema: pa.Schema
    ) -> FileProjection | None:
        """How a file's columns are mapped; None if the scan must read it."""
        if file_rebase(metadata, self._spec.time_zone) is not None:
            return None
        known = self._known
        if known is not None and (
            known[0] is schema or known[0].equals(schema, check_metadata=True)
        ):
            return known[1]
        spec = self._spec
        found = project_file(spec.data_columns, schema, spec.mode, path=task.path)
        self._known = (schema, found)
        return found

    def _logical(
        self, run: list[pa.Table], projection: FileProjection | None, task: ScanTask | None
    ) -> list[pa.RecordBatch]:
        if projection is None or task is None:
            return []
        table = _together(run)
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


def _together(tables: list[pa.Table]) -> pa.Table:
    """The rows of tables of the same columns; Arrow forgets how many those without columns have."""
    if tables[0].num_columns:
        return pa.concat_tables(tables).combine_chunks()
    num_rows = sum(table.num_rows for table in tables)
    return pa.table({"_": pa.nulls(num_rows)}).select([])
