"""Reading the rows of an open file in pieces: masking, filtering, and making logical columns.

This module defines the order of these steps. Deletion vectors and row indices refer to physical
rows, so they are applied before the predicate. The predicate's columns are read first; the other
columns are read only from row groups and pages with matching rows. `reader` decides which steps run
in advance.

Protocol: Deletion Vectors, Row Tracking, Partition Value Serialization
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import FALSE, TRUE, arrow, compute
from deltalog._util.paths import join
from deltalog._util.small_arrays import small_scalar
from deltalog.data.scan.prune import as_mask
from deltalog.data.scan.task import FileTask, hits, merged, noting, positions, within_groups
from deltalog.errors import InvalidPartitionValueError
from deltalog.expressions import columns, filter_mask
from deltalog.protocol.deletion_vectors import DeletionBitmap, keep_mask
from deltalog.protocol.partition_values import parse_value
from deltalog.schema import metadata_columns, to_arrow_type
from deltalog.schema.metadata_columns import METADATA_COLUMNS
from deltalog.storage.parquet.excerpt import cut_rows
from deltalog.storage.parquet.facts import MOST_DECODED_BYTES, PART_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from deltalog.data.scan.transform import FileProjection
    from deltalog.storage.parquet.paged import PagedReader
    from deltalog.storage.parquet.pages import RowRange
    from deltalog.storage.parquet.parts import Segments
    from deltalog.storage.parquet.reader import ParquetReader
    from deltalog.storage.store import ByteRange

    Columns = Mapping[str, pa.ChunkedArray[Any]]

_PIECE_ROWS: Final = 1 << 20
"""The maximum number of rows of a piece with several row groups, which limits the memory."""
_TOGETHER_BYTES: Final = 1024 * 1024
"""If the columns outside of the predicate have at most this number of bytes, fetch all at once."""
AT_ONCE_ROWS: Final = 32 * 1024
"""If a piece has at most this number of rows, reading all its columns at once is faster."""


@dataclass(frozen=True, slots=True)
class OpenTask:
    """An open file: footer and deletion vector are loaded, and its columns are matched.

    Args:
        decoded: the part of the rows that is being read, if rows are too large to be decoded at
            once.
    """

    task: FileTask
    reader: ParquetReader
    paged: PagedReader
    of_predicate: FileProjection
    of_others: FileProjection
    unmapped: FileProjection
    marked: DeletionBitmap | None
    runs: Sequence[RowRange]
    decoded: DecodedRows | None = None

    def pieces(self) -> Iterator[Piece]:
        """Yield pieces, which are adjacent row groups that can be decoded at once."""
        starts = self.reader.row_group_starts
        piece: list[RowRange] = []
        first = last = 0  # the range of row groups in the piece
        for run in within_groups(self.runs, starts):
            group = bisect_right(starts, run[0]) - 1
            too_long = starts[group + 1] - starts[first] > _PIECE_ROWS
            if piece and group != last and (too_long or group != last + 1):
                yield Piece(self, tuple(merged(piece)))
                piece = []
            if not piece:
                first = group
            last = group
            piece.append(run)
        if piece:
            yield Piece(self, tuple(merged(piece)))

    def keep_mask(self, runs: Sequence[RowRange]) -> pa.BooleanArray | None:
        """Return a mask of the physical rows that the task returns; None means all of them."""
        if self.marked is None:
            return None
        parts = [self._keep_mask(start, end - start) for start, end in runs]
        if all(part is None for part in parts):
            return None
        return pa.concat_arrays(
            [
                arrow.repeat(TRUE, end - start) if part is None else part
                for part, (start, end) in zip(parts, runs, strict=True)
            ]
        )

    def _keep_mask(self, first_row: int, num_rows: int) -> pa.BooleanArray | None:
        mask = None if self.marked is None else keep_mask(self.marked, first_row, num_rows)
        if not self.task.only_deleted:
            return mask
        return compute.invert(mask) if mask is not None else pa.repeat(FALSE, num_rows)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of a file, given by their row numbers."""

    file: OpenTask
    runs: tuple[RowRange, ...]

    def read(self) -> Iterable[pa.RecordBatch]:
        """Return the logical batches of these rows after masking and filtering.

        Large rows are read in parts; each part is read when its batches are requested.
        """
        if (parts := self.in_parts(self.leaves(), None)) is not None:
            return parts
        if self.file.paged.is_at_hand or self.file.decoded is not None:
            kept = self.decide(None)
            return [] if kept is None else kept.read()
        rows = decide_fetched(FirstFetch.of(self).run())
        return chain.from_iterable([some.fetch().read() for some in rows])

    def in_parts(
        self, leaves: Sequence[int], segments: Segments | None
    ) -> Iterator[pa.RecordBatch] | None:
        """Return the result of `read` in parts, or None if the rows can be decoded at once.

        Args:
            leaves: numbers of the leaf columns to decode.
            segments: the fetched column chunks of these columns. If None, and the file is not in
                memory, strings count as empty.
        """
        if self.file.decoded is not None:
            return None
        with noting(self.file.task):
            size = constant_bytes(self.file.task)
            size += null_bytes(self.file.of_predicate) + null_bytes(self.file.of_others)
            if leaves:
                size += self.file.paged.row_bytes(leaves, self.runs, segments)
        if size * self.num_rows <= MOST_DECODED_BYTES:
            return None
        return self._parts(max(1, PART_BYTES // size))

    def _parts(self, most_rows: int) -> Iterator[pa.RecordBatch]:
        file, starts, leaves = self.file, self.file.reader.row_group_starts, self.leaves()
        by_group = groupby(
            within_groups(self.runs, starts), lambda run: bisect_right(starts, run[0])
        )
        for next_group, found in by_group:
            runs, rows = list(found), (starts[next_group - 1], starts[next_group])
            for part in decoded_parts(file.paged, leaves, next_group - 1, rows, most_rows):
                within = clipped(runs, part.first_row, part.first_row + part.num_rows)
                if within:
                    yield from Piece(replace(file, decoded=part), within).read()

    def leaves(self) -> list[int]:
        """Return the leaf numbers of all columns to read."""
        file = self.file
        return sorted({*file.of_predicate.leaves, *file.of_others.leaves, *file.unmapped.leaves})

    def decide(self, segments: Segments | None) -> KeptRows | None:
        """Read the predicate's columns, and return the rows to keep, or None if no row is kept.

        Args:
            segments: the fetched column chunks of these columns; None fetches them.
        """
        with noting(self.file.task):
            return self._decide(segments)

    def columns(
        self,
        projections: Sequence[FileProjection],
        runs: Sequence[RowRange],
        segments: Segments | None,
    ) -> dict[str, pa.ChunkedArray[Any]]:
        """Read the columns of projections; if `segments` is None, fetch them first."""
        wanted = [projection for projection in projections if projection.schema.names]
        if not wanted:
            return {}
        leaves = sorted({leaf for projection in wanted for leaf in projection.leaves})
        if self.file.decoded is None:
            table = self.file.paged.read(leaves, runs, segments)
        else:
            table = self.file.decoded.read(runs)
        return {
            name: column
            for projection in wanted
            for name, column in zip(projection.schema.names, projection.apply(table), strict=True)
        }

    def _decide(self, segments: Segments | None) -> KeptRows | None:
        file = self.file
        spec = file.task.spec
        mask = file.keep_mask(self.runs)
        if mask is not None and not mask.true_count:
            return None
        along = file.task.along
        has_all = (
            segments is None
            and spec.predicate is not None
            and self._is_short()
            and (along is None or not along.is_spent)
        )
        projections = [file.of_predicate, file.unmapped, *([file.of_others] if has_all else [])]
        found = self.columns(projections, self.runs, segments)
        if spec.predicate is not None:
            rows = TaskRows(file.task, found, self.runs, None, {})
            used = sorted({path[0] for path in columns(spec.predicate)})
            hits = filter_mask(spec.predicate, rows.table(used))
            mask = as_mask(hits if mask is None else compute.and_(mask, hits))
            if not mask.true_count:
                return None
        if mask is not None and mask.true_count == len(mask):
            mask = None
        if file.task.footers is not None:
            file.task.footers.keep(file.task.path, file.reader.footer)
        num_kept = self.num_rows if mask is None else mask.true_count
        is_bare = along is not None and not along.take(num_kept * self._row_bytes())
        return KeptRows(self, found, mask, has_all=has_all, is_bare=is_bare)

    @property
    def num_rows(self) -> int:
        """Return the number of physical rows."""
        return sum(end - start for start, end in self.runs)

    def _is_short(self) -> bool:
        """Whether there are so few rows that reading all columns at once is faster."""
        return self.num_rows <= AT_ONCE_ROWS

    def _row_bytes(self) -> int:
        """Return the approximate size of a row with all its columns in bytes."""
        reader = self.file.reader
        first = reader.metadata.row_group(
            bisect_right(reader.row_group_starts, self.runs[0][0]) - 1
        )
        return max(1, first.total_byte_size // max(1, first.num_rows))


@dataclass(frozen=True, slots=True)
class FirstFetch:
    """The fetch of the column chunks that determine which rows of a piece are kept.

    Args:
        piece: the piece of the file.
        ranges: the byte ranges to fetch, which may include a few bytes of other columns.
        has_all: whether the ranges contain the column chunks of all columns.
    """

    piece: Piece
    ranges: list[ByteRange]
    has_all: bool

    @classmethod
    def of(cls, piece: Piece) -> FirstFetch:
        """Return the first fetch of a piece; this needs no I/O."""
        file, paged = piece.file, piece.file.paged
        with noting(file.task):
            ranges = paged.missing_ranges(file.of_predicate.leaves, piece.runs)
            ranges = sorted({*ranges, *paged.missing_ranges(file.unmapped.leaves, piece.runs)})
            others = paged.missing_ranges(file.of_others.leaves, piece.runs)
        is_spent = file.task.along is not None and file.task.along.is_spent
        if is_spent or sum(end - start for start, end in others) > _TOGETHER_BYTES:
            return cls(piece, ranges, has_all=False)
        return cls(piece, sorted({*ranges, *others}), has_all=True)

    def num_bytes(self) -> int:
        """Return the number of bytes to fetch, including bytes already fetched with the footer."""
        tail = self.piece.file.reader.footer.tail
        fetched = sum(end - start for start, end in self.ranges)
        return fetched if tail is None else fetched + len(tail.data)

    def run(self) -> tuple[Piece, Segments, bool]:
        """Fetch the column chunks."""
        with noting(self.piece.file.task):
            return self.piece, self.piece.file.paged.fetch(self.ranges), self.has_all


@dataclass(frozen=True, slots=True)
class RowParts:
    """Batches of rows that are too large to be decoded at once.

    Args:
        batches: the batches; each is decoded when it is requested.
    """

    batches: Iterator[pa.RecordBatch]

    def num_bytes(self) -> int:
        """Return 0, because no batch is in memory."""
        return 0

    def fetch(self) -> RowParts:
        """Return this object, because a batch is fetched when it is requested."""
        return self

    def read(self) -> Iterable[pa.RecordBatch]:
        """Return the batches."""
        return self.batches


def decide_fetched(fetched: tuple[Piece, Segments, bool]) -> tuple[KeptRows | RowParts, ...]:
    """Return the kept rows of a piece; empty if no row is kept."""
    piece, segments, has_all = fetched
    file = piece.file
    first = sorted({*file.of_predicate.leaves, *file.unmapped.leaves})
    if file.paged.is_at_hand:  # reading all columns at once needs no further fetch
        first = piece.leaves()
    if (parts := piece.in_parts(first, segments)) is not None:
        return (RowParts(parts),)
    kept = piece.decide(segments)
    if kept is None:
        return ()
    return (replace(kept, segments=segments) if has_all else kept.with_ranges(),)


def read_fetched(fetched: tuple[Piece, Segments, bool]) -> Iterable[pa.RecordBatch]:
    """Return the logical batches of a piece that was fetched completely."""
    return chain.from_iterable([kept.read() for kept in decide_fetched(fetched)])


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows of a piece that are kept, before their other columns are read.

    Args:
        piece: the piece of the file.
        found: the predicate's columns, with all rows of the piece.
        mask: the rows to keep; None means all rows.
        has_all: whether `found` also contains all other columns.
        segments: the fetched column chunks of the other columns; None means that they must be
            fetched.
        ranges: the byte ranges that must still be fetched.
        is_bare: whether to return only metadata columns and constants, and no table columns.
    """

    piece: Piece
    found: Columns
    mask: pa.BooleanArray | None
    has_all: bool = False
    segments: Segments | None = None
    ranges: Sequence[ByteRange] = ()
    is_bare: bool = False

    def with_ranges(self) -> KeptRows:
        """Return the same rows with the byte ranges of their other columns."""
        if self.is_bare:
            return self
        file = self.piece.file
        runs, _ = self._hits()
        with noting(file.task):
            return replace(self, ranges=file.paged.missing_ranges(file.of_others.leaves, runs))

    def num_bytes(self) -> int:
        """Return the size of these rows, and of the bytes that were fetched for them."""
        own = sum(column.nbytes for column in self.found.values())
        return own + sum(end - start for start, end in self.ranges)

    def fetch(self) -> KeptRows:
        """Fetch the other columns."""
        if not self.ranges:
            return self
        with noting(self.piece.file.task):
            return replace(self, segments=self.piece.file.paged.fetch(self.ranges))

    def read(self) -> Iterable[pa.RecordBatch]:
        """Read the other columns, and return all columns of the kept rows."""
        task = self.piece.file.task
        if self.segments is not None and not (self.has_all or self.is_bare):
            others = self.piece.file.of_others.leaves
            if (parts := self.piece.in_parts(others, self.segments)) is not None:
                return parts
        with noting(task):
            rest = self._rest()
            rows = TaskRows(task, self.found, self.piece.runs, self.mask, rest)
            schema = _bare(task) if self.is_bare else task.spec.output
            output = rows.table(schema.names)
        if schema.names:
            # The columns already have these types. The schema only sets their nullability.
            output = pa.Table.from_arrays(output.columns, schema=schema)
        if task.indexed is not None:  # a few rows of many ranges
            output = output.combine_chunks()
        return output.to_batches()

    def _hits(self) -> tuple[Sequence[RowRange], pa.BooleanArray | None]:
        """Return row ranges around the kept rows, and a mask over them; None means all rows."""
        if self.mask is None:
            return self.piece.runs, None
        return hits(self.piece.runs, self.mask, self.piece.file.reader.row_group_starts)

    def _rest(self) -> Columns:
        """Read the columns that the predicate does not use, for the kept rows.

        Cost: reads the row groups, or only the pages, with kept rows.
        """
        projection = self.piece.file.of_others
        if not projection.schema.names or self.has_all or self.is_bare:
            return {}
        runs, mask = self._hits()
        found = self.piece.columns([projection], runs, self.segments)
        return found if mask is None else filtered(found, mask)


def _bare(task: FileTask) -> pa.Schema:
    """Return the schema of a task's batches if they have no table columns."""
    names = {*METADATA_COLUMNS, *(name for name, _ in task.constants)}
    return pa.schema([field for field in task.spec.output if field.name in names])


# --- Rows that are too large to be decoded at once


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """A part of the rows, decoded.

    Args:
        first_row: the number of the first row in the file.
        num_rows: the number of rows.
        rows: the requested columns of the part; a table without rows if no column is requested.
    """

    first_row: int
    num_rows: int
    rows: pa.Table

    def read(self, wanted: Sequence[RowRange]) -> pa.Table:
        """Return some of the rows, by their numbers in the file."""
        end = self.first_row + self.num_rows
        return cut_rows(self.rows, [(self.first_row, end)], wanted)


def decoded_parts(
    paged: PagedReader, leaves: Sequence[int], group: int, rows: RowRange, most_rows: int
) -> Iterator[DecodedRows]:
    """Yield the rows of a row group, in parts of at most `most_rows` rows.

    Args:
        paged: reads the file.
        leaves: numbers of the leaf columns to decode.
        group: number of the row group.
        rows: the row group's range of row numbers in the file.
        most_rows: the maximum number of rows in a part.
    """
    first, end = rows
    if not leaves:
        nothing = pa.table({})
        for start in range(first, end, most_rows):
            yield DecodedRows(start, min(most_rows, end - start), nothing)
        return
    for batch in paged.stream(leaves, group, most_rows):
        yield DecodedRows(first, batch.num_rows, pa.Table.from_batches([batch]))
        first += batch.num_rows


def clipped(runs: Iterable[RowRange], first: int, end: int) -> tuple[RowRange, ...]:
    """Return the parts of the row ranges that are between `first` and `end`."""
    cut = ((max(first, start), min(end, stop)) for start, stop in runs)
    return tuple((start, stop) for start, stop in cut if start < stop)


def null_bytes(projection: FileProjection) -> int:
    """Return the size per row of columns that are not completely in the file."""
    return sum(
        _width(field.type)
        for (name, adapter), field in zip(projection.columns, projection.schema, strict=True)
        if name is None or (adapter is not None and pa.types.is_nested(field.type))
    )


def _width(kind: Any) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_struct(kind):
        return 1 + sum(_width(kind.field(number).type) for number in range(kind.num_fields))
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:  # strings and lists have offsets of four bytes
        return 4


def constant_bytes(task: FileTask) -> int:
    """Return the size per row of columns that have one value for all rows of a file."""
    spec = task.spec
    wanted = {*spec.output.names, *spec.physical_names}
    size = sum(
        len(task.partition_values.get(spec.physical_names[column.name]) or "")
        for column in spec.partition_columns
        if column.name in wanted
    )
    size += sum(int(value.nbytes) for _, value in task.constants)
    has_metadata = not wanted.isdisjoint(METADATA_COLUMNS)
    return 4 * size + (len(task.path) + len(task.store.root) if has_metadata else 0)


# --- The columns of some rows, read from the file or derived from the log


_MOST: Final = 0.97
"""If at least this share of the rows is kept, columns are filtered one by one, which is faster."""


@dataclass(frozen=True, slots=True)
class TaskRows:
    """The columns of the kept rows in ranges of physical rows.

    Args:
        task: the task to which the rows belong.
        found: columns with all rows of the ranges.
        runs: ascending ranges of physical row numbers (first row, end).
        mask: the rows to keep; None means all rows.
        kept: columns that already contain only the kept rows.
    """

    task: FileTask
    found: Columns
    runs: Sequence[RowRange]
    mask: pa.BooleanArray | None
    kept: Columns

    @property
    def count(self) -> int:
        """Return the number of kept rows."""
        if self.mask is not None:
            return self.mask.true_count
        return sum(end - start for start, end in self.runs)

    def table(self, names: Sequence[str]) -> pa.Table:
        """Return the named columns of the kept rows."""
        if not names:
            rows = pa.Array.from_buffers(pa.struct([]), self.count, [None], children=[])
            return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])  # type: ignore[arg-type]  # `rows` is a struct array
        data = {name: self.found[name] for name in names if name in self.found}
        if self.mask is not None:
            data = filtered(data, self.mask)
        data |= {name: self.kept[name] for name in names if name in self.kept}
        return _table({name: data[name] if name in data else self._derived(name) for name in names})

    def _derived(self, name: str) -> pa.Array[Any]:
        constants = dict(self.task.constants)
        if name in constants:
            return _repeat(constants[name][0], self.count)
        # A partition column has priority over a metadata column with the same name.
        if name in self.task.spec.physical_names:
            return _repeat(_partition_value(self.task, name), self.count)
        if name == metadata_columns.METADATA:
            parts = [self._metadata(part) for part in self.task.spec.metadata_columns]
            names = [part.partition(".")[2] for part in self.task.spec.metadata_columns]
            return pa.StructArray.from_arrays(parts, names)
        return self._metadata(name)

    def _metadata(self, name: str) -> pa.Array[Any]:
        task = self.task
        match name:
            case metadata_columns.ROW_INDEX:
                return self._row_index()
            case metadata_columns.ROW_ID:
                # The row id is the materialized row id. If that is NULL, the row id is the sum of
                # baseRowId and the row index (protocol: Row Tracking).
                base = task.base_row_id
                fresh = None if base is None else compute.add(self._row_index(), base)
                return self._kept_or(task.spec.row_id_column, fresh)
            case metadata_columns.ROW_COMMIT_VERSION:
                version = small_scalar(task.default_row_commit_version, pa.int64())
                fresh = _repeat(version, self.count)
                return self._kept_or(task.spec.row_commit_version_column, fresh)
            case _:
                return _repeat(_file_metadata(task, name), self.count)

    def _row_index(self) -> pa.Array[Any]:
        index = positions(self.runs)
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


def filtered(data: Columns, mask: pa.BooleanArray) -> dict[str, pa.ChunkedArray[Any]]:
    """Filter columns by a mask."""
    if not data:
        return {}
    if mask.true_count >= _MOST * len(mask):
        # If most rows are kept, filter each column separately, because Arrow then copies long
        # ranges of rows.
        return {name: column.filter(mask) for name, column in data.items()}
    return dict(zip(data, _table(data).filter(mask).columns, strict=True))


def _table(columns: Mapping[str, Any]) -> pa.Table:
    """Return a table of arrays and chunked arrays."""
    return pa.table(dict(columns))


def _repeat(value: pa.Scalar[Any], count: int) -> pa.Array[Any]:
    repeated: pa.Array[Any] = arrow.repeat(value, count)
    return repeated


def _file_metadata(task: FileTask, name: str) -> pa.Scalar[Any]:
    kind = METADATA_COLUMNS[name]
    match name:
        case metadata_columns.FILE_PATH:
            return small_scalar(join(task.store.root, task.path), kind)
        case metadata_columns.FILE_NAME:
            return small_scalar(task.path.rpartition("/")[2], kind)
        case metadata_columns.FILE_SIZE:
            return small_scalar(task.size_bytes, kind)
        case _:
            return pa.scalar(metadata_columns.moment_of(task.modification_time_ms), kind)


def _partition_value(task: FileTask, name: str) -> pa.Scalar[Any]:
    spec = task.spec
    column = next(field for field in spec.partition_columns if field.name == name)
    text = task.partition_values.get(spec.physical_names[name])
    try:
        value = parse_value(text, column.type, time_zone=spec.time_zone)
    except InvalidPartitionValueError as error:
        error.add_note(f"partition column {name!r} of file {task.path!r}")
        raise
    return small_scalar(value, to_arrow_type(column.type))
