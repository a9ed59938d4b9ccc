"""Read files as logical batches: open, skip row groups, read, mask, transform, filter.

Owns the order of these steps. Deletion vectors and row indices count physical rows, so they are
applied before any predicate. The predicate's columns are read first; of row groups without a
match, the other columns are not read.

Protocol: Deletion Vectors, Row Tracking, Partition Value Serialization
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog import metadata_columns
from deltalog.column_mapping import Mode
from deltalog.deletion_vectors import keep_mask
from deltalog.errors import DeltaError, InvalidPartitionValueError
from deltalog.expressions import columns, filter_mask
from deltalog.kernels import arrow, compute
from deltalog.partition_values import parse_value
from deltalog.paths import join
from deltalog.scan.deletion_vectors import load_bitmap
from deltalog.scan.prune import as_mask
from deltalog.scan.rebase import file_rebase
from deltalog.scan.row_groups import surviving_row_groups
from deltalog.scan.task import METADATA_COLUMNS
from deltalog.scan.transform import FileProjection, project_file
from deltalog.schema import Field, StructType, to_arrow_type
from deltalog.schema.types import LONG, STRING
from deltalog.storage.parquet import open_parquet
from deltalog.storage.parquet_parts import native_path
from deltalog.storage.pool import MOST_REQUESTS, read_ahead

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from deltalog.deletion_vectors import DeletionBitmap
    from deltalog.scan.task import ReadSpec, ScanTask
    from deltalog.storage.parquet import ParquetReader

    _Columns = Mapping[str, pa.ChunkedArray[Any]]

_PIECE_ROWS: Final = 1 << 20
"""Row groups are read together up to this many rows, which bounds the memory for decoding."""
_MOST: Final = 0.97
"""From this share of kept rows on, filtering column by column is faster."""


def read_tasks(
    tasks: Iterable[ScanTask], *, files_ahead: int = 4, pieces_ahead: int = 2
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all tasks, in the order of the tasks.

    Cost: memory for footers and deletion vectors of the next `files_ahead` files, and for
    `pieces_ahead` decoded pieces of up to about a million rows. Of a store that is reached by
    requests, up to 64 files are opened ahead; small ones are in memory then.
    """
    tasks = iter(tasks)
    first = next(tasks, None)
    if first is None:
        return
    is_local = native_path(first.store, first.path) is not None
    opened = read_ahead(
        _open,
        chain([first], tasks),
        depth=files_ahead if is_local or not files_ahead else MOST_REQUESTS,
        sends_requests=not is_local,
    )
    pieces = (piece for file in opened for piece in file.pieces())
    for batches in read_ahead(_Piece.read, pieces, depth=pieces_ahead):
        yield from batches


def read_task(task: ScanTask) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one task, read in this thread."""
    for piece in _open(task).pieces():
        yield from piece.read()


def _open(task: ScanTask) -> _OpenTask:
    spec = task.spec
    try:
        reader = open_parquet(task.store, task.path, size_bytes=task.size_bytes)
        predicate_columns, other_columns = _split(spec)
        schema = reader.arrow_schema
        rebase = file_rebase(reader, spec.time_zone)
        matched = project_file(predicate_columns, schema, spec.mode, path=task.path, rebase=rebase)
        marked = _marked_rows(task)
        groups = surviving_row_groups(spec.predicate, predicate_columns, matched.leaf_of, reader)
        return _OpenTask(
            task=task,
            reader=reader,
            of_predicate=matched,
            of_others=project_file(other_columns, schema, spec.mode, path=task.path, rebase=rebase),
            unmapped=_unmapped(spec, schema, task.path),
            marked=marked,
            row_groups=(
                _with_marked(groups, reader, marked)
                if task.only_deleted and marked is not None
                else groups
            ),
        )
    except DeltaError as error:
        error.add_note(f"while reading {task.path!r} of table {spec.table!r}")
        raise


def _split(spec: ReadSpec) -> tuple[StructType, StructType]:
    """Split the data columns into those that the predicate needs, and the others."""
    if spec.predicate is None:
        return spec.data_columns, StructType(())
    needed = {path[0] for path in columns(spec.predicate)}
    return (
        StructType([column for column in spec.data_columns if column.name in needed]),
        StructType([column for column in spec.data_columns if column.name not in needed]),
    )


def _unmapped(spec: ReadSpec, schema: pa.Schema, path: str) -> FileProjection:
    """Columns outside the table's schema; column mapping does not apply to their names."""
    wanted = []
    if metadata_columns.ROW_ID in spec.metadata_columns:
        wanted += [Field(name, LONG) for name in schema.names if name == spec.row_id_column]
    if metadata_columns.ROW_COMMIT_VERSION in spec.metadata_columns:
        wanted += [
            Field(name, LONG) for name in schema.names if name == spec.row_commit_version_column
        ]
    if spec.reads_change_type:
        wanted.append(Field(metadata_columns.CHANGE_TYPE, STRING))
    return project_file(StructType(wanted), schema, Mode.NONE, path=path)


def _with_marked(
    groups: tuple[int, ...], reader: ParquetReader, marked: DeletionBitmap
) -> tuple[int, ...]:
    """The row groups that hold any row that the deletion vector marks."""
    starts = reader.row_group_starts
    return tuple(
        group for group in groups if marked.count_between(starts[group], starts[group + 1])
    )


def _marked_rows(task: ScanTask) -> DeletionBitmap | None:
    if task.deletion_vector is None:
        return None
    bitmap = load_bitmap(task.store, task.deletion_vector)
    if task.without is not None:
        bitmap = bitmap - load_bitmap(task.store, task.without)
    return bitmap


@dataclass(frozen=True, slots=True)
class _OpenTask:
    """An open file: its footer, deletion vector and matched columns are loaded."""

    task: ScanTask
    reader: ParquetReader
    of_predicate: FileProjection
    of_others: FileProjection
    unmapped: FileProjection
    marked: DeletionBitmap | None
    row_groups: tuple[int, ...]

    def pieces(self) -> Iterator[_Piece]:
        """Yield runs of adjacent row groups, each small enough to be decoded at once."""
        starts = self.reader.row_group_starts
        run: list[int] = []
        for group in self.row_groups:
            too_long = run and starts[group + 1] - starts[run[0]] > _PIECE_ROWS
            if run and (too_long or group != run[-1] + 1):
                yield _Piece(self, tuple(run))
                run = []
            run.append(group)
        if run:
            yield _Piece(self, tuple(run))

    def read(self, row_groups: tuple[int, ...], leaves: tuple[int, ...]) -> pa.Table:
        """Read leaf columns of some row groups."""
        # Pieces of one file are read by several threads, so each opens the file for itself.
        shared, task = self.reader, self.task
        own = open_parquet(
            task.store, task.path, size_bytes=shared.size_bytes, footer=shared.footer
        )
        try:
            return own.read_leaves(leaves, row_groups)
        finally:
            own.close()

    def keep_mask(self, first_row: int, num_rows: int) -> pa.BooleanArray | None:
        """Which of the physical rows the task returns; None is all."""
        if self.marked is None:
            return None
        mask = keep_mask(self.marked, first_row, num_rows)
        if not self.task.only_deleted:
            return mask
        return (
            compute.invert(mask) if mask is not None else pa.array([False] * num_rows, pa.bool_())
        )


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some row groups of a file."""

    file: _OpenTask
    row_groups: tuple[int, ...]

    def read(self) -> list[pa.RecordBatch]:
        """Read the logical batches of these row groups, masked and filtered."""
        try:
            return self._read()
        except DeltaError as error:
            task = self.file.task
            error.add_note(f"while reading {task.path!r} of table {task.spec.table!r}")
            raise

    def _read(self) -> list[pa.RecordBatch]:
        file = self.file
        spec = file.task.spec
        starts = file.reader.row_group_starts
        first_row = starts[self.row_groups[0]]
        num_rows = starts[self.row_groups[-1] + 1] - first_row
        mask = file.keep_mask(first_row, num_rows)
        if mask is not None and not mask.true_count:
            return []
        found = self._columns(file.of_predicate) | self._columns(file.unmapped)
        if spec.predicate is not None:
            rows = _TaskRows(file.task, found, first_row, num_rows, None, {})
            used = sorted({path[0] for path in columns(spec.predicate)})
            hits = filter_mask(spec.predicate, rows.table(used))
            mask = as_mask(hits if mask is None else compute.and_(mask, hits))
            if not mask.true_count:
                return []
        if mask is not None and mask.true_count == num_rows:
            mask = None
        rest = self._rest(mask, first_row)
        rows = _TaskRows(file.task, found, first_row, num_rows, mask, rest)
        output = rows.table(spec.output.names)
        if spec.output.names:
            # The columns have these types already; only nullability comes from the schema.
            output = pa.Table.from_arrays(output.columns, schema=spec.output)
        return output.to_batches()

    def _rest(self, mask: pa.BooleanArray | None, first_row: int) -> _Columns:
        """Read the columns that the predicate does not need, for the kept rows.

        Cost: the row groups that have kept rows.
        """
        projection = self.file.of_others
        if mask is None or not projection.schema.names:
            return self._columns(projection)
        starts = self.file.reader.row_group_starts
        hits: list[tuple[int, pa.BooleanArray]] = []
        for group in self.row_groups:
            part = mask.slice(starts[group] - first_row, starts[group + 1] - starts[group])
            if part.true_count:
                hits.append((group, part))
        found = self._columns(projection, tuple(group for group, _ in hits))
        whole = (
            mask if len(hits) == len(self.row_groups) else pa.concat_arrays([m for _, m in hits])
        )
        return _filtered(found, whole)

    def _columns(
        self, projection: FileProjection, row_groups: tuple[int, ...] | None = None
    ) -> dict[str, pa.ChunkedArray[Any]]:
        if not projection.schema.names:
            return {}
        groups = self.row_groups if row_groups is None else row_groups
        table = self.file.read(groups, projection.leaves)
        return dict(zip(projection.schema.names, projection.apply(table), strict=True))


@dataclass(frozen=True, slots=True)
class _TaskRows:
    """The columns of a run of physical rows, of which `mask` keeps some.

    Args:
        task: whose rows they are.
        found: columns that hold all rows of the run.
        first_row: physical position of the first row.
        num_rows: length of the run.
        mask: which rows are kept; None is all.
        kept: columns that hold only the kept rows.
    """

    task: ScanTask
    found: _Columns
    first_row: int
    num_rows: int
    mask: pa.BooleanArray | None
    kept: _Columns

    @property
    def count(self) -> int:
        return self.num_rows if self.mask is None else self.mask.true_count

    def table(self, names: Sequence[str]) -> pa.Table:
        """The named columns of the kept rows."""
        if not names:
            rows = pa.Array.from_buffers(pa.struct([]), self.count, [None], children=[])
            return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])  # type: ignore[arg-type]  # a struct array
        data = {name: self.found[name] for name in names if name in self.found}
        if self.mask is not None:
            data = _filtered(data, self.mask)
        data |= {name: self.kept[name] for name in names if name in self.kept}
        return _table({name: data[name] if name in data else self._derived(name) for name in names})

    def _derived(self, name: str) -> pa.Array[Any]:
        constants = dict(self.task.constants)
        if name in constants:
            return _repeat(constants[name], self.count)
        if name in METADATA_COLUMNS:
            return self._metadata(name)
        if name == metadata_columns.METADATA:
            parts = [self._metadata(part) for part in self.task.spec.metadata_columns]
            names = [part.partition(".")[2] for part in self.task.spec.metadata_columns]
            return pa.StructArray.from_arrays(parts, names)
        return _repeat(_partition_value(self.task, name), self.count)

    def _metadata(self, name: str) -> pa.Array[Any]:
        task = self.task
        match name:
            case metadata_columns.ROW_INDEX:
                return self._row_index()
            case metadata_columns.ROW_ID:
                # Row Tracking: a materialized id wins; else baseRowId plus the physical position.
                base = task.base_row_id
                fresh = None if base is None else compute.add(self._row_index(), base)
                return self._kept_or(task.spec.row_id_column, fresh)
            case metadata_columns.ROW_COMMIT_VERSION:
                version = pa.scalar(task.default_row_commit_version, pa.int64())
                fresh = _repeat(version, self.count)
                return self._kept_or(task.spec.row_commit_version_column, fresh)
            case _:
                return _repeat(_file_metadata(task, name), self.count)

    def _row_index(self) -> pa.Array[Any]:
        index: pa.Array[Any] = arrow.arange(self.first_row, self.first_row + self.num_rows)
        return index if self.mask is None else index.filter(self.mask)

    def _kept_or(self, column: str | None, fresh: pa.Array[Any] | None) -> pa.Array[Any]:
        fresh = pa.nulls(self.count, pa.int64()) if fresh is None else fresh
        kept = self.found.get(column) if column is not None else None
        if kept is None:
            return fresh
        if self.mask is not None:
            kept = kept.filter(self.mask)
        merged: pa.Array[Any] = compute.coalesce(kept.combine_chunks(), fresh)
        return merged


def _filtered(data: _Columns, mask: pa.BooleanArray) -> dict[str, pa.ChunkedArray[Any]]:
    """Filter columns by a mask."""
    if not data:
        return {}
    if mask.true_count >= _MOST * len(mask):
        # Arrow copies the long runs between few gaps as they are, but only column by column.
        return {name: column.filter(mask) for name, column in data.items()}
    return dict(zip(data, _table(data).filter(mask).columns, strict=True))


def _table(columns: Mapping[str, Any]) -> pa.Table:
    """A table of arrays and chunked arrays."""
    return pa.table(dict(columns))


def _repeat(value: pa.Scalar[Any], count: int) -> pa.Array[Any]:
    repeated: pa.Array[Any] = arrow.repeat(value, count)
    return repeated


def _file_metadata(task: ScanTask, name: str) -> pa.Scalar[Any]:
    kind = METADATA_COLUMNS[name]
    match name:
        case metadata_columns.FILE_PATH:
            return pa.scalar(join(task.store.root, task.path), kind)
        case metadata_columns.FILE_NAME:
            return pa.scalar(task.path.rpartition("/")[2], kind)
        case metadata_columns.FILE_SIZE:
            return pa.scalar(task.size_bytes, kind)
        case _:
            changed_ms = task.modification_time_ms
            return pa.scalar(None if changed_ms is None else changed_ms * 1000, kind)


def _partition_value(task: ScanTask, name: str) -> pa.Scalar[Any]:
    spec = task.spec
    column = next(field for field in spec.partition_columns if field.name == name)
    text = task.partition_values.get(spec.physical_names[name])
    try:
        value = parse_value(text, column.type, time_zone=spec.time_zone)
    except InvalidPartitionValueError as error:
        error.add_note(f"partition column {name!r} of file {task.path!r}")
        raise
    return pa.scalar(value, to_arrow_type(column.type))
