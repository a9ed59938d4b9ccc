"""Read files as logical batches: open, skip row groups and pages, read, mask, transform, filter.

Owns the order of these steps. Deletion vectors and row indices count physical rows, so they are
applied before any predicate. The predicate's columns are read first; the other columns are read
only of row groups and pages with a match.

A file of a store that is reached by requests is fetched by threads that wait, and decoded by
others: fetch the predicate's columns, decide which rows are kept, fetch the other columns, read the
rows. Of a local file these are one step.

Protocol: Deletion Vectors, Row Tracking, Partition Value Serialization
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog import metadata_columns
from deltalog.column_mapping import Mode
from deltalog.deletion_vectors import keep_mask
from deltalog.expressions import columns, filter_mask
from deltalog.kernels import arrow, compute
from deltalog.scan.deletion_vectors import load_bitmap
from deltalog.scan.judge import as_mask
from deltalog.scan.rebase import file_rebase
from deltalog.scan.row_groups import FooterPruning
from deltalog.scan.runs import hits, live_runs, merged, within_groups
from deltalog.scan.task import noting
from deltalog.scan.task_rows import TaskRows, filtered
from deltalog.scan.transform import FileProjection, project_file
from deltalog.schema import Field, StructType
from deltalog.schema.types import LONG, STRING
from deltalog.storage.parquet import open_parquet
from deltalog.storage.parquet_footer import tail_bytes
from deltalog.storage.parquet_paged import PagedReader
from deltalog.storage.pool import MOST_REQUESTS, read_ahead
from deltalog.storage.store import fetches_whole, native_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deltalog.deletion_vectors import DeletionBitmap
    from deltalog.scan.task import ReadSpec, ScanTask
    from deltalog.scan.task_rows import Columns
    from deltalog.storage.parquet import ParquetReader
    from deltalog.storage.parquet_pages import Rows
    from deltalog.storage.parquet_parts import Segments
    from deltalog.storage.store import ByteRange


_PIECE_ROWS: Final = 1 << 20
"""Row groups are read together up to this many rows, which bounds the memory for decoding."""
_AT_ONCE_ROWS: Final = 32 * 1024
"""Of so few rows, all columns are read with the predicate's: on most pages there is a match."""
_TOGETHER_BYTES: Final = 1024 * 1024
"""Other columns of up to this size are fetched with the predicate's: quicker than to wait twice."""


def read_tasks(
    tasks: Iterable[ScanTask], *, files_ahead: int = 4, pieces_ahead: int = 2
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all tasks, in the order of the tasks.

    Cost: memory for footers and deletion vectors of the next `files_ahead` files, and for
    `pieces_ahead` decoded pieces of up to about a million rows. Of a store that is reached by
    requests, up to 64 files are opened ahead, and column chunks of up to 256 MiB are fetched ahead
    (or of one piece, if that has more).
    """
    tasks = iter(tasks)
    first = next(tasks, None)
    if first is None:
        return
    second = next(tasks, None)
    tasks = chain([first] if second is None else [first, second], tasks)
    if native_path(first.store, first.path) is not None:
        # Handing a single file or piece to another thread takes longer than reading a row of it.
        opened = (
            map(_open, tasks) if second is None else read_ahead(_open, tasks, depth=files_ahead)
        )
        pieces = (piece for file in opened for piece in file.pieces())
        some = list(islice(pieces, 1 if second is None else 0))
        more = list(islice(pieces, len(some)))
        if some and not more:
            yield from some[0].read()
            return
        for batches in read_ahead(_Piece.read, chain(some, more, pieces), depth=pieces_ahead):
            yield from batches
        return
    if second is None and fetches_whole(first.store, first.path):
        yield from read_task(first)  # no request is left that others could wait for
        return
    # A scan that opens no files ahead, because a few rows may be enough, fetches none ahead either.
    depth = MOST_REQUESTS if files_ahead else 0
    opened = read_ahead(_open, tasks, depth=depth, sends_requests=True, bytes_of=_tail_bytes)
    wanted = (_FirstFetch.of(piece) for file in opened for piece in file.pieces())
    fetched = read_ahead(
        _FirstFetch.run, wanted, depth=depth, sends_requests=True, bytes_of=_FirstFetch.num_bytes
    )
    if first.spec.predicate is None:  # everything has been fetched
        for batches in read_ahead(_read_fetched, fetched, depth=pieces_ahead):
            yield from batches
        return
    kept = chain.from_iterable(read_ahead(_decide, fetched, depth=pieces_ahead))
    complete = read_ahead(
        _KeptRows.fetch, kept, depth=depth, sends_requests=True, bytes_of=_KeptRows.num_bytes
    )
    for batches in read_ahead(_KeptRows.read, complete, depth=pieces_ahead):
        yield from batches


def read_task(task: ScanTask) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one task, read in this thread."""
    for piece in _open(task).pieces():
        yield from piece.read()


def _open(task: ScanTask) -> _OpenTask:
    spec = task.spec
    with noting(task):
        reader = open_parquet(task.store, task.path, size_bytes=task.size_bytes)
        predicate_columns, other_columns = _split(spec)
        schema = reader.arrow_schema
        rebase = file_rebase(reader, spec.time_zone)
        matched = project_file(predicate_columns, schema, spec.mode, path=task.path, rebase=rebase)
        others = project_file(other_columns, schema, spec.mode, path=task.path, rebase=rebase)
        unmapped = _unmapped(spec, schema, task.path)
        marked = _marked_rows(task)
        paged = PagedReader(task.store, reader)
        pruning = FooterPruning(spec.predicate, predicate_columns, matched.leaf_of, reader)
        every = range(reader.metadata.num_row_groups)
        groups = every if paged.knows(every, pruning.leaves) else pruning.row_groups()
        if marked is not None:
            groups = _with_rows(groups, reader, marked, only_deleted=task.only_deleted)
        if groups and (spec.predicate is not None or marked is not None):
            leaves = {*matched.leaves, *others.leaves, *unmapped.leaves}
            paged.load_index(groups, sorted(leaves), pruning.leaves)
        runs = pruning.rows(groups, paged)
        if marked is not None:
            runs = live_runs(runs, marked, only_deleted=task.only_deleted)
        return _OpenTask(
            task=task,
            reader=reader,
            paged=paged,
            of_predicate=matched,
            of_others=others,
            unmapped=unmapped,
            marked=marked,
            runs=runs,
        )


def _tail_bytes(task: ScanTask) -> int:
    """What opening a file fetches, of a small one all."""
    return tail_bytes(task.store, task.path, task.size_bytes or 0)


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


def _with_rows(
    groups: Sequence[int], reader: ParquetReader, marked: DeletionBitmap, *, only_deleted: bool
) -> tuple[int, ...]:
    """The row groups with any row that is left, or that is deleted if only those are wanted."""
    starts = reader.row_group_starts

    def has_rows(group: int) -> bool:
        num_rows = starts[group + 1] - starts[group]
        num_marked = marked.count_between(starts[group], starts[group + 1])
        return num_marked > 0 if only_deleted else num_marked < num_rows

    return tuple(filter(has_rows, groups))


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
    paged: PagedReader
    of_predicate: FileProjection
    of_others: FileProjection
    unmapped: FileProjection
    marked: DeletionBitmap | None
    runs: Sequence[Rows]

    def pieces(self) -> Iterator[_Piece]:
        """Yield rows of adjacent row groups, each small enough to be decoded at once."""
        starts = self.reader.row_group_starts
        piece: list[Rows] = []
        first = last = 0  # row groups of the piece
        for run in within_groups(self.runs, starts):
            group = bisect_right(starts, run[0]) - 1
            too_long = starts[group + 1] - starts[first] > _PIECE_ROWS
            if piece and group != last and (too_long or group != last + 1):
                yield _Piece(self, tuple(merged(piece)))
                piece = []
            if not piece:
                first = group
            last = group
            piece.append(run)
        if piece:
            yield _Piece(self, tuple(merged(piece)))

    def keep_mask(self, runs: Sequence[Rows]) -> pa.BooleanArray | None:
        """Which of these physical rows the task returns; None is all."""
        if self.marked is None:
            return None
        parts = [self._keep_mask(start, end - start) for start, end in runs]
        if all(part is None for part in parts):
            return None
        return pa.concat_arrays(
            [
                arrow.repeat(pa.scalar(value=True), end - start) if part is None else part
                for part, (start, end) in zip(parts, runs, strict=True)
            ]
        )

    def _keep_mask(self, first_row: int, num_rows: int) -> pa.BooleanArray | None:
        mask = None if self.marked is None else keep_mask(self.marked, first_row, num_rows)
        if not self.task.only_deleted:
            return mask
        return (
            compute.invert(mask) if mask is not None else pa.array([False] * num_rows, pa.bool_())
        )


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some rows of a file, by their numbers."""

    file: _OpenTask
    runs: tuple[Rows, ...]

    def read(self) -> list[pa.RecordBatch]:
        """Read the logical batches of these rows, masked and filtered."""
        kept = self.decide(None)
        return [] if kept is None else kept.read()

    def decide(self, segments: Segments | None) -> _KeptRows | None:
        """Read the predicate's columns, and decide which rows are kept; None is no row.

        Args:
            segments: with the column chunks of these columns; None fetches them.
        """
        with noting(self.file.task):
            return self._decide(segments)

    def columns(
        self,
        projections: Sequence[FileProjection],
        runs: Sequence[Rows],
        segments: Segments | None,
    ) -> dict[str, pa.ChunkedArray[Any]]:
        """Read the columns of projections; without `segments` they are fetched first."""
        wanted = [projection for projection in projections if projection.schema.names]
        if not wanted:
            return {}
        leaves = sorted({leaf for projection in wanted for leaf in projection.leaves})
        table = self.file.paged.read(leaves, runs, segments)
        return {
            name: column
            for projection in wanted
            for name, column in zip(projection.schema.names, projection.apply(table), strict=True)
        }

    def _decide(self, segments: Segments | None) -> _KeptRows | None:
        file = self.file
        spec = file.task.spec
        mask = file.keep_mask(self.runs)
        if mask is not None and not mask.true_count:
            return None
        has_all = segments is None and spec.predicate is not None and self._is_short()
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
        return _KeptRows(self, found, mask, has_all=has_all)

    def _is_short(self) -> bool:
        """Whether the rows are so few that reading all columns at once is quicker."""
        return sum(end - start for start, end in self.runs) <= _AT_ONCE_ROWS


@dataclass(frozen=True, slots=True)
class _FirstFetch:
    """The column chunks that decide which rows of a piece are kept, before they are fetched.

    Args:
        piece: whose they are.
        ranges: where they are; a few bytes of other columns are fetched with them.
        has_all: whether these are the column chunks of all columns.
    """

    piece: _Piece
    ranges: list[ByteRange]
    has_all: bool

    @classmethod
    def of(cls, piece: _Piece) -> _FirstFetch:
        """What is fetched first of a piece. Cost: none."""
        file, paged = piece.file, piece.file.paged
        with noting(file.task):
            ranges = paged.missing_ranges(file.of_predicate.leaves, piece.runs)
            ranges = sorted({*ranges, *paged.missing_ranges(file.unmapped.leaves, piece.runs)})
            others = paged.missing_ranges(file.of_others.leaves, piece.runs)
        if sum(end - start for start, end in others) > _TOGETHER_BYTES:
            return cls(piece, ranges, has_all=False)
        return cls(piece, sorted({*ranges, *others}), has_all=True)

    def num_bytes(self) -> int:
        """How many bytes are fetched, or were fetched with the footer."""
        tail = self.piece.file.reader.footer.tail
        fetched = sum(end - start for start, end in self.ranges)
        return fetched if tail is None else fetched + len(tail.data)

    def run(self) -> tuple[_Piece, Segments, bool]:
        """Fetch them."""
        with noting(self.piece.file.task):
            return self.piece, self.piece.file.paged.fetch(self.ranges), self.has_all


def _decide(fetched: tuple[_Piece, Segments, bool]) -> tuple[_KeptRows, ...]:
    """The kept rows of a piece, if there are any."""
    piece, segments, has_all = fetched
    kept = piece.decide(segments)
    if kept is None:
        return ()
    return (replace(kept, segments=segments) if has_all else kept.with_ranges(),)


def _read_fetched(fetched: tuple[_Piece, Segments, bool]) -> list[pa.RecordBatch]:
    return [batch for kept in _decide(fetched) for batch in kept.read()]


@dataclass(frozen=True, slots=True)
class _KeptRows:
    """The rows of a piece that are kept, before their other columns are read.

    Args:
        piece: whose rows they are.
        found: the predicate's columns, of all rows of the piece.
        mask: which rows are kept; None is all.
        has_all: whether the other columns are among them.
        segments: with the column chunks of the other columns; None fetches them.
        ranges: where those are that are still to be fetched.
    """

    piece: _Piece
    found: Columns
    mask: pa.BooleanArray | None
    has_all: bool = False
    segments: Segments | None = None
    ranges: Sequence[ByteRange] = ()

    def with_ranges(self) -> _KeptRows:
        """Find where the other columns are, of row groups and pages that have kept rows."""
        file = self.piece.file
        runs, _ = self._hits()
        with noting(file.task):
            return replace(self, ranges=file.paged.missing_ranges(file.of_others.leaves, runs))

    def num_bytes(self) -> int:
        """How many bytes these rows take, with what is fetched for them."""
        own = sum(column.nbytes for column in self.found.values())
        return own + sum(end - start for start, end in self.ranges)

    def fetch(self) -> _KeptRows:
        """Fetch the other columns."""
        if not self.ranges:
            return self
        with noting(self.piece.file.task):
            return replace(self, segments=self.piece.file.paged.fetch(self.ranges))

    def read(self) -> list[pa.RecordBatch]:
        """Read the other columns, and return all columns of the kept rows."""
        task = self.piece.file.task
        with noting(task):
            rest = self._rest()
            rows = TaskRows(task, self.found, self.piece.runs, self.mask, rest)
            output = rows.table(task.spec.output.names)
        if task.spec.output.names:
            # The columns have these types already; only nullability comes from the schema.
            output = pa.Table.from_arrays(output.columns, schema=task.spec.output)
        return output.to_batches()

    def _hits(self) -> tuple[Sequence[Rows], pa.BooleanArray | None]:
        """The rows around those that are kept, and which of them these are; None is all."""
        if self.mask is None:
            return self.piece.runs, None
        return hits(self.piece.runs, self.mask, self.piece.file.reader.row_group_starts)

    def _rest(self) -> Columns:
        """Read the columns that the predicate does not need, for the kept rows.

        Cost: the row groups that have kept rows, or the pages that have.
        """
        projection = self.piece.file.of_others
        if not projection.schema.names or self.has_all:
            return {}
        runs, mask = self._hits()
        found = self.piece.columns([projection], runs, self.segments)
        return found if mask is None else filtered(found, mask)
