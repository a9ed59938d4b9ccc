"""Copy row groups without changed rows from a rewritten file to a new file, without decoding them.

This module decides which row groups may be copied. `WhyNot` lists the reasons against copying. Two
reasons are not in this list: the file is too small, or `read_stored` does not accept the file,
because it is encrypted or has columns in other files. If a copied row group has a few deleted rows,
only their pages are written again. All other row groups are read, and their rows are written
between the copied row groups, so that the order of rows does not change.

Protocol: Row Tracking, Column Mapping, Writer Requirements for Add File
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.cards import ProgressCount
from deltalog.data.scan.plan import make_numbered_tasks, make_tasks
from deltalog.data.scan.reader import ScanTask, read_tasks
from deltalog.data.scan.task import read_spec
from deltalog.data.scan.transform import file_rebase, load_bitmap
from deltalog.data.write.encode import is_materialising
from deltalog.data.write.options import WriteSpec, codec_of
from deltalog.data.write.patched_groups import are_pages_apart, is_worth_patching
from deltalog.data.write.spliced_files import SourceFile
from deltalog.protocol.deletion_vectors import DeletionBitmap, inline_descriptor
from deltalog.protocol.partition_values import encode_value, parse_value
from deltalog.schema.conform import conform
from deltalog.schema.metadata_columns import FILE_NUMBER, ROW_COMMIT_VERSION, ROW_ID, ROW_INDEX
from deltalog.storage.parquet.groups import StoredFooter, StoredGroup, read_stored
from deltalog.storage.parquet.parts import guarded
from deltalog.storage.parquet.reader import ParquetReader, open_parquet
from deltalog.storage.pool import MOST_REQUESTS, read_ahead
from deltalog.storage.store import is_local, native_path

if TYPE_CHECKING:
    from deltalog._util.kernels import Array
    from deltalog.data.write.files import FileWriter
    from deltalog.data.write.open_files import Values
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.parquet.facts import FetchedFooters
    from deltalog.storage.parquet.pages import RowRange

_log: Final = logging.getLogger("deltalog.data.write")

LEAST_BYTES: int | None = 1024 * 1024
"""The minimum size in bytes, as stored, of a row group that is copied. If None, none is copied.

The rows of smaller row groups are written again, together with other rows. Otherwise, repeated
rewrites would lead to files with many small row groups.
"""
LEAST_COMPACTED_BYTES: int | None = 4 * 1024 * 1024
"""The same limit as `LEAST_BYTES` for operations that merge small files."""

_CODECS: Final = {"none": 0, "snappy": 1, "gzip": 2, "brotli": 4, "zstd": 6, "lz4": 7}


class WhyNot(Enum):
    """A reason why a row group is not copied: its rows are read and written again."""

    OPTIONS = "the caller chose how new files are encoded"
    PARTITION_COLUMNS = "data files contain partition columns, whose values come from the log"
    WRITER = "readers treat files of this writer differently, or the writer is unknown"
    CALENDAR = "its dates or times are in the hybrid calendar, which only the old footer records"
    SCHEMA = "the schema in its file differs from the schema of new files"
    OVERLAP = "the row groups of its file are together larger than the file"
    CHANGED = "some of its rows change, or too many of its pages contain deleted rows"
    DAMAGED = "it has more rows than values; reading it raises the error"
    SIZE = "it is too small for a row group of its own"
    CODEC = "its compression differs from the table's property"
    ROW_IDS = "its row ids or row commit versions depend on the old file"


def _version(text: str) -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)", text)
    return (0, 0) if found is None else (int(found[1]), int(found[2]))


# The prefix of `created_by` and the first version of each writer whose row groups may be copied
# into a file of deltalog. Readers work around known faults of older versions: parquet-mr before 1.8
# wrote wrong bounds of strings and wrong DELTA_BYTE_ARRAY pages, and parquet-mr before 1.2.9 wrote
# wrong lengths of column chunks. Readers would not expect these faults in a copied row group,
# because `created_by` of the new file contains deltalog.
_WRITERS: Final[tuple[tuple[str, tuple[int, ...]], ...]] = (
    ("parquet-cpp-arrow version ", (3, 0)),
    ("parquet-mr version ", (1, 10)),
    ("parquet-rs version ", (0, 0)),
    ("delta-rs version ", (0, 0)),
    ("DuckDB version ", (1, 0)),
    ("Polars", (0, 0)),
)


@dataclass(frozen=True, slots=True)
class _SourceFacts:
    """Facts that decide whether any row group of a file may be copied."""

    reader: ParquetReader
    stored: StoredFooter
    size_bytes: int
    template: StoredFooter
    time_zone: str


@dataclass(frozen=True, slots=True)
class _GroupFacts:
    """Facts that decide whether a row group may be copied."""

    group: StoredGroup
    is_kept: bool
    least_bytes: int
    codec: int | None
    id_leaves: tuple[int, ...]


_OF_ALL: Final[tuple[tuple[WhyNot, Callable[[WriteSpec], bool]], ...]] = (
    (WhyNot.OPTIONS, lambda spec: spec.writer_properties is not None),
    (
        WhyNot.PARTITION_COLUMNS,
        lambda spec: (
            bool(spec.configuration.partition_columns) and is_materialising(spec.configuration)
        ),
    ),
)
_OF_FILES: Final[tuple[tuple[WhyNot, Callable[[_SourceFacts], bool]], ...]] = (
    (WhyNot.WRITER, lambda file: not _is_known(file.stored.created_by)),
    (WhyNot.CALENDAR, lambda file: file_rebase(file.reader.metadata, file.time_zone) is not None),
    (WhyNot.SCHEMA, lambda file: file.stored.schema != file.template.schema),
    (
        WhyNot.OVERLAP,
        lambda file: sum(group.stored_bytes for group in file.stored.groups) > file.size_bytes,
    ),
)
_OF_GROUPS: Final[tuple[tuple[WhyNot, Callable[[_GroupFacts], bool]], ...]] = (
    (WhyNot.CHANGED, lambda one: not one.is_kept or not one.group.num_rows),
    (WhyNot.DAMAGED, lambda one: not one.group.has_its_values),
    (WhyNot.SIZE, lambda one: one.group.stored_bytes < one.least_bytes),
    (WhyNot.CODEC, lambda one: one.codec is not None and one.group.codecs != {one.codec}),
    (
        WhyNot.ROW_IDS,
        lambda one: any(one.group.chunks[leaf].null_count != 0 for leaf in one.id_leaves),
    ),
)


def _is_known(created_by: str) -> bool:
    return any(
        created_by.startswith(name) and _version(created_by) >= least for name, least in _WRITERS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptFile:
    """A file with row groups to copy.

    `kept` has the numbers of these row groups, and `starts` the first row of every row group.
    """

    source: SourceFile
    values: Values
    kept: tuple[int, ...]
    starts: list[int]


class KeptGroups:
    """Copies row groups without changed rows, between the rows that the caller writes.

    The caller numbers the files, and writes their rows in the order of these numbers.

    Args:
        snapshot: the snapshot that contains the files.
        writer: writer of the new files.
        least_bytes: the minimum size of a copied row group; None copies no row group.
    """

    def __init__(self, snapshot: Snapshot, writer: FileWriter, *, least_bytes: int | None) -> None:
        self._snapshot = snapshot
        self._writer = writer
        self._spec = spec = writer.spec
        self._least_bytes = least_bytes
        self._has_ids = spec.configuration.row_ids_enabled
        self._codec = _codec(spec.configuration)
        self._files: dict[int, _KeptFile] = {}
        self._lock = threading.Lock()
        self._begun: int | None = None
        self._beside: Values | None = None
        self._copied = 0
        self.why_not: WhyNot | None = next((why for why, test in _OF_ALL if test(spec)), None)

    @property
    def is_possible(self) -> bool:
        """Whether row groups may be copied at all, before any file is inspected."""
        return self._least_bytes is not None and self.why_not is None

    @property
    def num_rows(self) -> int:
        """The number of rows in the row groups that have been copied so far."""
        return self._writer.copied.num_rows

    def is_large(self, size_bytes: int | None) -> bool:
        """Whether a file of this size may contain a row group that is large enough to be copied."""
        least = self._least_bytes
        return self.is_possible and least is not None and (size_bytes or least) >= least

    def has(self, number: int) -> bool:
        """Whether the inspected file of this number has row groups to copy."""
        return number in self._files

    def tasks(
        self, tasks: Iterable[tuple[int, ScanTask, DeletionBitmap | None]]
    ) -> Iterator[ScanTask]:
        """Choose the row groups to copy, and yield tasks that read all other rows.

        A file gets no task if all its row groups are copied.

        Args:
            tasks: for each file, its number, the task that reads all its rows, and the positions of
                the rows that change. If the positions are None, nothing is copied from the file.

        Cost: reads the footer of each file that is large enough; for a remote store, several
        footers at a time.
        """
        if not self.is_possible:
            for _, task, _ in tasks:
                yield task
            return
        is_here = is_local(self._snapshot.store)
        looked = (
            map(self._look, tasks)
            if is_here
            else read_ahead(self._look, tasks, depth=MOST_REQUESTS, sends_requests=True)
        )
        for number, rest, kept in looked:
            if kept is not None:
                self._files[number] = kept
            if rest is not None:
                yield rest

    def write(
        self,
        number: int,
        first_row: int,
        rows: pa.RecordBatch,
        *,
        row_ids: Array | None = None,
        row_commit_versions: Array | None = None,
    ) -> None:
        """Copy the row groups that precede some rows of a file, then write these rows.

        Args:
            number: number of the file.
            first_row: physical position of the first row in the file.
            rows: the rows, in the schema that the table will have.
            row_ids: row ids of the rows before the rewrite.
            row_commit_versions: row commit versions of the rows before the rewrite.
        """
        self.advance(number, first_row)
        file = self._files.get(number)
        values = self._beside if file is None else file.values
        if values is None:
            self._writer.write(rows, row_ids=row_ids, row_commit_versions=row_commit_versions)
        else:
            self._writer.write_spliced(
                values, rows, row_ids=row_ids, row_commit_versions=row_commit_versions
            )

    def put_together(self) -> None:
        """Write the rows of files without copied row groups into the same new files as the copies.

        All files must belong to one partition.
        """
        spliced = self._writer.splice(with_row_ids=self._has_ids)
        self._beside = next(iter(self._files.values())).values
        spliced.begin(self._beside, 0)

    def advance(self, number: int, first_row: int) -> None:
        """Copy the row groups that precede a row of a file, including those of earlier files."""
        for before in sorted(one for one in self._files if one < number):
            self._copy(before, None)
            del self._files[before]
        if number in self._files:
            self._copy(number, first_row)

    def finish(self) -> None:
        """Copy the remaining row groups."""
        for number in sorted(self._files):
            self._copy(number, None)
        self._files.clear()
        copied = self._writer.copied
        if copied.num_groups:
            _log.debug(
                "copied %d row groups (%d rows, %d bytes) to %s without decoding them",
                copied.num_groups,
                copied.num_rows,
                copied.num_bytes,
                self._spec.store.root,
            )

    def _copy(self, number: int, first_row: int | None) -> None:
        """Copy the remaining row groups of a file that begin before a row; None copies all."""
        file = self._files[number]
        spliced = self._writer.splice(with_row_ids=self._has_ids)
        if self._begun != number:
            spliced.begin(file.values, file.source.size_bytes)
            self._begun, self._copied = number, 0
        left = file.kept[self._copied :]
        now = tuple(n for n in left if first_row is None or file.starts[n] < first_row)
        if now:
            spliced.copy(file.values, file.source, now)
            self._copied += len(now)

    def _look(
        self, job: tuple[int, ScanTask, DeletionBitmap | None]
    ) -> tuple[int, ScanTask | None, _KeptFile | None]:
        """Decide which row groups of a file are copied, and limit the task to the others."""
        number, task, changed = job
        if changed is None or not self.is_large(task.size_bytes):
            return number, task, None
        try:
            found = self._kept(task, changed)
        except Exception as error:
            error.add_note(f"while reading {task.path!r} of table {self._snapshot.store.root!r}")
            raise
        if found is None:
            return number, task, None
        kept, gone = found
        marked = gone.union(
            *(DeletionBitmap.from_range(kept.starts[n], kept.starts[n + 1]) for n in kept.kept)
        )
        if marked.cardinality >= kept.starts[-1]:
            return number, None, kept
        return number, replace(task, deletion_vector=inline_descriptor(marked)), kept

    def _kept(
        self, task: ScanTask, changed: DeletionBitmap
    ) -> tuple[_KeptFile, DeletionBitmap] | None:
        reader = open_parquet(
            task.store,
            task.path,
            size_bytes=task.size_bytes,
            footer=None if task.footers is None else task.footers.get(task.path),
            footer_only=True,
        )
        try:
            starts, gone = reader.row_group_starts, DeletionBitmap()
            if task.deletion_vector is not None:
                gone = load_bitmap(task.store, task.deletion_vector, num_rows=starts[-1])
            if not any(self._may_keep(gone, changed, ends) for ends in pairwise(starts)):
                return None  # without a call of `read_stored`, which is slow
            native = native_path(task.store, task.path)
            size = Path(native).stat().st_size if native is not None else reader.size_bytes or 0
            stored = read_stored(guarded(task.store, task.path, reader.stored_footer), size)
            if stored is None:
                return None
            with self._lock:  # other threads may inspect other files at the same time
                template = self._writer.splice(with_row_ids=self._has_ids).template
            facts = _SourceFacts(reader, stored, size, template, self._spec.time_zone)
            if any(test(facts) for _, test in _OF_FILES):
                return None
            kept = self._groups(reader, stored, gone, changed)
            if not kept:
                return None
            source = SourceFile(
                store=task.store,
                path=task.path,
                size_bytes=size,
                footer=reader.footer,
                stored=stored,
                gone=gone,
            )
            return (
                _KeptFile(
                    source=source,
                    values=self._values(task),
                    kept=kept,
                    starts=starts,
                ),
                gone,
            )
        finally:
            reader.close()

    def _may_keep(self, gone: DeletionBitmap, changed: DeletionBitmap, rows: RowRange) -> bool:
        """Whether no row of a row group changes, and only few of its pages have deleted rows."""
        if changed.count_between(*rows):
            return False
        return not gone.count_between(*rows) or is_worth_patching(gone, rows)

    def _groups(
        self,
        reader: ParquetReader,
        stored: StoredFooter,
        gone: DeletionBitmap,
        changed: DeletionBitmap,
    ) -> tuple[int, ...]:
        ids = self._id_leaves(stored) if self._has_ids else ()
        schema = self._writer.splice(with_row_ids=self._has_ids).schema
        has_our_types = reader.arrow_schema.types == schema.types
        found = []
        for number, rows in enumerate(pairwise(reader.row_group_starts)):
            group = stored.groups[number]
            is_whole = not gone.count_between(*rows)
            facts = _GroupFacts(
                group=group,
                is_kept=self._may_keep(gone, changed, rows)
                and (is_whole or (has_our_types and self._are_pages_apart(stored, group, schema))),
                least_bytes=self._least_bytes or 0,
                codec=self._codec,
                id_leaves=ids,
            )
            if not any(test(facts) for _, test in _OF_GROUPS):
                found.append(number)
        return tuple(found)

    def _are_pages_apart(self, stored: StoredFooter, group: StoredGroup, schema: pa.Schema) -> bool:
        codec = _CODECS[codec_of(None, self._spec.configuration.properties)]
        return are_pages_apart(group, schema, created_by=stored.created_by, codec=codec)

    def _id_leaves(self, stored: StoredFooter) -> tuple[int, ...]:
        """Return the leaf columns of row ids and row commit versions: the last ones of a file."""
        configuration = self._spec.configuration
        names = (configuration.row_id_column, configuration.row_commit_version_column)
        num_hidden = sum(name is not None for name in names)
        num_leaves = len(stored.groups[0].chunks) if stored.groups else 0
        return tuple(range(num_leaves - num_hidden, num_leaves))

    def _values(self, task: ScanTask) -> Values:
        """Return a file's partition values in the encoding of new files."""
        configuration = self._spec.configuration
        columns = zip(
            configuration.partition_schema,
            configuration.physical_partition_columns,
            strict=True,
        )
        found: list[Any] = []
        for column, physical in columns:
            text = task.partition_values.get(physical)
            value = parse_value(text, column.type, time_zone=self._spec.time_zone)
            found.append(encode_value(value, column.type))
        return tuple(found)


def _codec(configuration: TableConfiguration) -> int | None:
    """Return the Parquet number of the codec in the table's property; None if it is not set."""
    if configuration.properties.parquet_compression_codec is None:
        return None
    return _CODECS[codec_of(None, configuration.properties)]


# --- Copies of rows of existing files, for all copy-on-write operations


ROW_GROUP_BYTES: Final = 16 * 1024 * 1024
"""The size in memory of the row groups of rewritten files.

A row group is encoded while the next row group is read. Only the last row group is encoded after
all rows are read. This takes less time, because the row groups are smaller than by default.
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
        snapshot: the snapshot that contains the files.
        files: rows of `snapshot.files`, at least with `TASK_COLUMNS`.
        predicate: selects the rows; resolved against the snapshot's schema.
        more_columns: names from `METADATA_COLUMNS`; these columns follow the table's columns.
        footers: footers that have been fetched already.
        progress: counts the files that have been read.

    Cost: reads the files; the memory does not depend on their number.
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
    """Copy the live rows of some files to new files.

    Args:
        snapshot: the snapshot that contains the files.
        files: rows of `snapshot.files`, at least with `TASK_COLUMNS`.
        writer: writes the rows.
        schema: schema of the new files' rows; it may have more columns than the snapshot's schema.
        without: for each file, the positions of rows to leave out, in addition to the rows that its
            deletion vector marks.
        kept: copies row groups without decoding them; None reads and writes all rows.
        footers: footers that have been fetched already.
        progress: counts the files that have been read.

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
        # The empty bitmap means that no row changes. The rows to omit are in the deletion vectors
        # of the tasks.
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
    """Write rows of one file as `write_copied` does, between the copied row groups of the file.

    Args:
        kept: copies the row groups.
        batch: rows with the columns `FILE_NUMBER` and `ROW_INDEX`.
        schema: schema of the writer's rows.
    """
    number, first_row = (batch.column(name)[0].as_py() for name in (FILE_NUMBER, ROW_INDEX))
    rows, ids = _with_ids(batch.drop_columns([FILE_NUMBER, ROW_INDEX]))
    kept.write(number, first_row, conform(rows, schema), **ids)


def _without(task: ScanTask, positions: pa.Int64Array | None) -> ScanTask:
    """Return the task with the rows at these positions added to its deletion vector."""
    if positions is None:
        return task
    bitmap = DeletionBitmap.from_arrow(positions)
    if task.deletion_vector is not None:
        # Without `num_rows`, positions are not checked. The scan checks the combined vector later.
        bitmap |= load_bitmap(task.store, task.deletion_vector, num_rows=None)
    return replace(task, deletion_vector=inline_descriptor(bitmap))


def write_after(kept: KeptGroups, number: int, batch: pa.RecordBatch, schema: pa.Schema) -> None:
    """Write rows of file `number` as `write_copied` does, after all row groups of earlier files."""
    rows, ids = _with_ids(batch)
    kept.write(number, 0, conform(rows, schema), **ids)


def write_copied(writer: FileWriter, batch: pa.RecordBatch, schema: pa.Schema) -> None:
    """Write rows of existing files. If the batch contains row ids, the new files preserve them."""
    rows, ids = _with_ids(batch)
    writer.write(conform(rows, schema), **ids)


def _with_ids(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, Any]]:
    """Split a batch into the table's columns and the row ids, as arguments of the writer."""
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
