"""File pruning: finding the files of a snapshot that may have matching rows.

This module decides which parts of the log pruning reads, and explains the result. The checkpoint of
a large table is read row group by row group, on several cores. A row group is skipped if its footer
shows that none of its files can match. The size of the cache of row groups is limited.

Protocol: Per-file Statistics, Partition Values
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import pyarrow as pa

from deltalog._util.kernels import TRUE, compute, exact_sum, pc
from deltalog._util.paths import canonical_paths
from deltalog.errors import MalformedLogError
from deltalog.expressions import columns, conjuncts, filter_mask
from deltalog.expressions.render import shown_sql
from deltalog.expressions.trees import conjunction
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.column_mapping import physical_name
from deltalog.protocol.partition_values import extract, parse_column
from deltalog.protocol.stats.schema import MAX_VALUES, MIN_VALUES, STATS_WITH_COLLATION
from deltalog.protocol.stats.skipping import plan_skipping
from deltalog.schema import find_field
from deltalog.schema.columns import naming_the_attempt
from deltalog.storage.pool import read_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.log.snapshot.splits import SnapshotPiece
    from deltalog.log.snapshot.state import LogState
    from deltalog.protocol.configuration import TableConfiguration

_Result = TypeVar("_Result")

_LARGE_BYTES: Final = 4 << 20  # size in bytes of a checkpoint of about a hundred thousand files
_HELD_BYTES: Final = 128 << 20
MANY_ROWS: Final = 1_000_000_000
"""The number of rows that is assumed for any table with a large checkpoint."""
_PIECES_AHEAD: Final = 1  # number of pieces that are read in advance
_NUM_RECORDS: Final = pa.schema([("numRecords", pa.int64())])


@dataclass(frozen=True, slots=True)
class PruningParts:
    """The parts of a predicate by which files were pruned.

    Args:
        of_partitions: the parts that were evaluated on partition values.
        of_statistics: the parts that were evaluated on statistics, for the remaining files.
    """

    of_partitions: Expression | None = None
    of_statistics: Expression | None = None

    @property
    def number(self) -> int:
        """Return the number of parts."""
        return (self.of_partitions is not None) + (self.of_statistics is not None)

    def lines(self, configuration: TableConfiguration) -> tuple[str, ...]:
        """Return the parts as strings, for a table's configuration."""
        lines: list[str] = []
        if self.of_partitions is not None:
            lines.append(f"partition values: {shown_sql(self.of_partitions)}")
        if self.of_statistics is not None:
            skipping = plan_skipping(self.of_statistics, configuration)
            lines += () if skipping is None else skipping.explain()
        return tuple(lines)


@dataclass(frozen=True, slots=True)
class Pruned:
    """The result of pruning a snapshot.

    Args:
        snapshot: the version of the files.
        keep: for each live file, in the order of `snapshot.files`, whether it may match; None means
            that all may match.
        num_files: number of live files.
        num_by_partition: number of files that were pruned by partition values.
        num_by_statistics: number of further files that were pruned by statistics.
        is_exact: whether every row of every remaining file matches the predicate.
        parts: the parts of the predicate by which files were pruned.
    """

    snapshot: Snapshot
    keep: pa.BooleanArray | None
    num_files: int
    num_by_partition: int
    num_by_statistics: int
    is_exact: bool
    parts: PruningParts = PruningParts()

    def __repr__(self) -> str:
        """Show the numbers of files."""
        return (
            f"Pruned({self.num_files} files, {self.num_by_partition} pruned by partition values, "
            f"{self.num_by_statistics} by statistics)"
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the conditions by which files were pruned, as strings."""
        return self.parts.lines(self.snapshot.configuration)

    def files(self, names: Sequence[str]) -> pa.Table:
        """Return columns of the remaining files."""
        table = self.snapshot.files(names)
        return table if self.keep is None else _kept(table, self.keep)

    def stats(self, schema: pa.Schema) -> pa.Table:
        """Return statistics of the remaining files; see `Snapshot.stats` for `schema`."""
        table = self.snapshot.stats(schema)
        return table if self.keep is None else table.filter(self.keep)

    def num_records(self) -> pa.ChunkedArray[Any]:
        """Return the number of physical rows of each remaining file; NULL without statistics."""
        counts: pa.ChunkedArray[Any] = self.stats(_NUM_RECORDS).column("numRecords")
        return counts

    def num_live_rows(self) -> int | None:
        """Return the number of live rows of the remaining files; None if a file lacks `numRecords`.

        Raises:
            MalformedLogError: see `live_rows`.
        """
        left = self.live_rows()
        if left.null_count:
            return None
        return exact_sum(left)

    def live_rows(self) -> Any:
        """Return the number of live rows of each remaining file; NULL without `numRecords`.

        Raises:
            MalformedLogError: a file's `numRecords` is negative, or less than its number of deleted
                rows.

        Protocol: Per-file Statistics (`numRecords` counts physical rows)
        """
        counts: Any = self.num_records()
        files = self.files(["path", "deletionVector"])
        deleted = compute.struct_field(files.column("deletionVector"), "cardinality")
        left = compute.subtract(counts, compute.fill_null(deleted, 0))
        wrong = compute.or_(compute.less(counts, 0), compute.less(left, 0))
        row = compute.index(wrong, TRUE).as_py()
        if row >= 0:
            raise MalformedLogError(
                f"cannot count the rows of {self.snapshot.store.root}: expected numRecords of 0 or "
                f"more and at least as many as the deletion vector marks, found numRecords "
                f"{counts[row]} and cardinality {deleted[row]} of {files['path'][row].as_py()!r}; "
                "read the rows, or write the file's statistics again"
            )
        return left

    @property
    def num_left(self) -> int:
        """Return the number of remaining files."""
        return self.num_files - self.num_by_partition - self.num_by_statistics

    def counted(self) -> Pruned:
        """Return the same result with exact numbers of files."""
        return self

    def explain(self) -> list[str]:
        """Return lines that explain the result."""
        lines = [f"files: {self.num_files} in the table, {self.num_left} to read"]
        if self.num_by_partition:
            lines.append(f"pruned by partition values: {self.num_by_partition}")
        if self.num_by_statistics:
            lines.append(f"pruned by statistics: {self.num_by_statistics}")
        return lines + [f"read if {reason}" for reason in self.reasons]


@dataclass(frozen=True, slots=True)
class _PrunedInPieces(Pruned):
    """The result for a large snapshot, in pieces of its checkpoint.

    The numbers of files include adds that later commits replace, unless these adds may match.

    Args:
        predicate: the predicate.
        state: the state of the log that contains the pieces.
        left: the results of the pieces that have remaining files, in order.
        read: the pieces whose statistics were read.
        skipped: the pieces that were not read.
    """

    predicate: Expression = field(kw_only=True)
    state: LogState = field(kw_only=True)
    left: tuple[Pruned, ...] = field(kw_only=True)
    read: tuple[SnapshotPiece, ...] = field(kw_only=True)
    skipped: tuple[SnapshotPiece, ...] = field(kw_only=True)

    def files(self, names: Sequence[str]) -> pa.Table:
        """Return columns of the remaining files."""
        none = pa.schema([FILE_SCHEMA.field(name) for name in names]).empty_table()
        return pa.concat_tables([none, *self._of_each(lambda one: one.files(names))])

    def stats(self, schema: pa.Schema) -> pa.Table:
        """Return statistics of the remaining files; see `Snapshot.stats` for `schema`."""
        return pa.concat_tables(
            [schema.empty_table(), *self._of_each(lambda one: one.stats(schema))]
        )

    def explain(self) -> list[str]:
        """Return lines that explain the result.

        Cost: if commits after the checkpoint add or remove files, reads all paths, and evaluates
            the statistics that were read again.
        """
        skipped = self._num_skipped
        more = [f"in row groups of the checkpoint that were not read: {skipped}"] if skipped else []
        return Pruned.explain(self.counted()) + more

    def counted(self) -> Pruned:
        """Return the same result with exact numbers of files. Cost: see `explain`."""
        if not self.state.names_files:
            return self
        return self._summed(
            [_prune_at_once(piece, self.predicate) for piece in self.read], self._num_skipped
        )

    @property
    def _num_skipped(self) -> int:
        """Return the number of files in pieces that were not read."""
        if self.state.names_files:
            return sum(piece.num_files for piece in self.skipped)
        return sum(_num_adds(piece) for piece in self.skipped)

    def _summed(self, each: Sequence[Pruned], skipped: int) -> Pruned:
        return Pruned(
            self.snapshot,
            None,
            sum(one.num_files for one in each) + skipped,
            sum(one.num_by_partition for one in each),
            sum(one.num_by_statistics for one in each) + skipped,
            is_exact=self.is_exact,
            parts=self.parts,
        )

    def _of_each(self, act: Callable[[Pruned], _Result]) -> list[_Result]:
        def run(state: LogState) -> list[_Result]:
            pruned: _PrunedInPieces = self
            if state is not self.state:  # after an error, `read_log` uses other log files
                pruned = _prune_in_pieces(self.snapshot, state, self.predicate)
            pieces = [cast("SnapshotPiece", one.snapshot) for one in pruned.left]
            found = read_ahead(act, pruned.left, depth=_PIECES_AHEAD)
            return [result for result, _ in zip(found, _bounded(pieces), strict=True)]

        return self.snapshot.read_log(run)


def prune(snapshot: Snapshot, predicate: Expression | None) -> Pruned:
    """Return the files of a snapshot that may have rows for which `predicate` is true.

    Args:
        snapshot: the version to prune.
        predicate: a condition, resolved against the snapshot's schema; None returns all files.

    Cost: reads the columns of the log that the predicate needs: partition values, and the
        statistics of its columns. Of a large checkpoint, reads only row groups that may match.
    """
    if predicate is None or snapshot.is_piece:
        return _prune_at_once(snapshot, predicate)

    def run(state: LogState) -> Pruned | None:
        return _prune_in_pieces(snapshot, state, predicate) if _is_large(state) else None

    return snapshot.read_log(run) or _prune_at_once(snapshot, predicate)


def files_in_turn(snapshot: Snapshot, names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield columns of all files on request; read a large checkpoint row group by row group.

    Cost: reads the requested columns, and does not cache them.
    """
    seen: list[pa.Table] = []
    begun: LogState | None = None

    def run(state: LogState) -> pa.Table | None:
        nonlocal begun
        from deltalog.log.snapshot.splits import live_pieces  # noqa: PLC0415  # only for large tables

        if not _is_large(state) or begun not in {None, state}:
            return None
        if begun is None and state.checkpoint is not None and state.checkpoint.holds_columns:
            return None  # all pieces were already yielded
        begun = state
        pieces = live_pieces(snapshot, state)
        if len(seen) == len(pieces):
            return pa.schema([]).empty_table()
        piece = pieces[len(seen)]
        is_new = not piece.held_bytes
        files = piece.files(list(dict.fromkeys([*names, "path"])))
        if is_new:
            piece.forget(statistics=False)
        return files

    while (files := snapshot.read_log(run)) is not None:
        if not files.num_columns:
            return
        seen.append(files)
        yield files.select(list(names))
    rest = snapshot.files(list(dict.fromkeys([*names, "path"])))
    if seen:  # after an error, `read_log` uses other log files
        root = snapshot.store.root  # these log files may encode paths differently
        known = canonical_paths(pa.concat_tables(seen).column("path"), root)
        paths = canonical_paths(rest.column("path"), root)
        rest = rest.filter(compute.invert(compute.is_in(paths, known)))
    yield rest.select(list(names))


def estimate_rows(snapshot: Snapshot) -> int | None:
    """Return an estimate of a table's number of rows from the log; None if the log lacks it.

    For a table with a large checkpoint, a fixed large number is returned.

    Cost: reads `numRecords` of all files.
    """
    if snapshot.read_log(_is_large):
        return MANY_ROWS
    return prune(snapshot, None).num_live_rows()


def _is_large(state: LogState) -> bool:
    if state.checkpoint is None:
        return False
    return sum(info.size_bytes for info in state.checkpoint.data_files) >= _LARGE_BYTES


def _prune_at_once(snapshot: Snapshot, predicate: Expression | None) -> Pruned:
    num_files = snapshot.num_files
    if predicate is None or not num_files:
        return Pruned(snapshot, None, num_files, 0, 0, is_exact=True)
    return _pruned(snapshot, num_files, _judge(snapshot, predicate))


def _judge(
    snapshot: Snapshot,
    predicate: Expression,
    stats_where: Callable[[pa.Schema, pa.BooleanArray], pa.Table] | None = None,
) -> Judged:
    with naming_the_attempt("read", snapshot.store.root):
        return judge(
            predicate,
            snapshot.configuration,
            num_files=snapshot.num_files,
            partition_values=lambda: snapshot.files(["partitionValues"]).column(0),
            stats=snapshot.stats,
            time_zone=snapshot.context.time_zone,
            stats_where=stats_where,
        )


def _pruned(snapshot: Snapshot, num_files: int, judged: Judged) -> Pruned:
    left = num_files if judged.by_partition is None else judged.by_partition.true_count
    kept = num_files if judged.keep is None else judged.keep.true_count
    return Pruned(
        snapshot,
        judged.keep,
        num_files,
        num_files - left,
        left - kept,
        is_exact=judged.is_exact,
        parts=judged.parts,
    )


def _prune_piece(piece: SnapshotPiece, predicate: Expression, *, bounds_first: bool) -> Pruned:
    """Prune a piece; check only for files that may match whether later commits replace them.

    Args:
        piece: a piece of a version.
        predicate: see `prune`.
        bounds_first: whether to evaluate bounds first, and read other statistics only if files
            remain.
    """
    if piece.row_group is None:
        return _prune_at_once(piece, predicate)
    # If the piece is not cached, first read only the bounds. Other statistics are then read without
    # caching them, because only a few files may need them.
    is_first = bounds_first and not piece.held_bytes
    written = piece.in_checkpoint
    num_files = written.num_files
    judged = _judge(written, predicate, written.stats_where if is_first else None)
    found = _pruned(written, num_files, judged)
    if not (num_left := found.num_left):
        return found
    keep = pa.repeat(TRUE, num_files) if found.keep is None else found.keep
    keep = piece.live_where(keep)
    return replace(found, keep=keep, num_files=num_files - num_left + keep.true_count)


def _prune_in_pieces(snapshot: Snapshot, state: LogState, predicate: Expression) -> _PrunedInPieces:
    from deltalog.log.snapshot.splits import live_pieces  # noqa: PLC0415  # only for large tables

    pieces = live_pieces(snapshot, state)
    groups = [piece.row_group for piece in pieces]
    from deltalog.data.scan.row_groups import may_hold_matches  # noqa: PLC0415  # only for large tables

    may_match = iter(
        may_hold_matches(
            predicate, snapshot.configuration, [group for group in groups if group is not None]
        )
    )
    is_read = [group is None or next(may_match) for group in groups]
    read = [piece for piece, yes in zip(pieces, is_read, strict=True) if yes]
    skipped = tuple(piece for piece, yes in zip(pieces, is_read, strict=True) if not yes)
    found: list[Pruned] = []
    # While bounds exclude all files of each piece, only the bounds of the next piece are read
    # first. This is usual if files are sorted. Otherwise, all statistics are read at once.
    bounds_first = True
    results = read_ahead(
        lambda piece: _prune_piece(piece, predicate, bounds_first=bounds_first),
        read,
        depth=_PIECES_AHEAD,
    )
    bound = _bounded(read)
    for pruned, piece, is_new in zip(results, read, [not p.held_bytes for p in read], strict=True):
        # The piece was not cached before, so cache only its statistics.
        if is_new:
            piece.forget(statistics=False)
        next(bound)
        found.append(pruned)
        bounds_first = not pruned.num_left
    num_skipped = sum(_num_adds(piece) for piece in skipped)
    return _PrunedInPieces(
        snapshot,
        None,
        sum(one.num_files for one in found) + num_skipped,
        sum(one.num_by_partition for one in found),
        sum(one.num_by_statistics for one in found) + num_skipped,
        is_exact=all(one.is_exact for one in found),
        parts=max((one.parts for one in found), key=lambda parts: parts.number),
        predicate=predicate,
        state=state,
        left=tuple(one for one in found if one.num_left),
        read=tuple(read),
        skipped=skipped,
    )


def _bounded(pieces: Sequence[SnapshotPiece]) -> Iterator[None]:
    """Yield after each piece; drop its cached columns if all pieces exceed the cache's limit."""
    held = 0
    for piece in pieces:
        size = piece.held_bytes
        held += size
        if held > _HELD_BYTES:
            held -= size
            piece.forget(statistics=True)
        yield


def _kept(table: pa.Table, keep: pa.BooleanArray) -> pa.Table:
    """Return the rows to keep; if they are adjacent, they are not copied."""
    kept = compute.indices_nonzero(keep)
    count = len(kept)
    first, end = (kept[0].as_py(), kept[-1].as_py() + 1) if count else (0, 0)
    return table.slice(first, count) if end - first == count else table.filter(keep)


def _num_adds(piece: SnapshotPiece) -> int:
    return 0 if piece.row_group is None else piece.row_group.num_actions("add")


# --- Evaluating a predicate for files


_BOUNDS: Final = frozenset({MIN_VALUES, MAX_VALUES, STATS_WITH_COLLATION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The files that may match a predicate, according to the log.

    Args:
        by_partition: for each file, whether its partition values may match; None if no condition
            uses partition values.
        keep: for each file, whether it may have a matching row; None means all files.
        is_exact: whether every row of every kept file matches.
        parts: the parts of the predicate by which files were pruned.
    """

    by_partition: pa.BooleanArray | None
    keep: pa.BooleanArray | None
    is_exact: bool
    parts: PruningParts


def judge(
    predicate: Expression,
    configuration: TableConfiguration,
    *,
    num_files: int,
    partition_values: Callable[[], pa.ChunkedArray[Any]],
    stats: Callable[[pa.Schema], pa.Table],
    time_zone: str,
    stats_where: Callable[[pa.Schema, pa.BooleanArray], pa.Table] | None = None,
) -> Judged:
    """Decide for each file whether it may have rows for which `predicate` is true.

    Args:
        predicate: a condition, resolved against the table's schema.
        configuration: the table's configuration.
        num_files: the number of files.
        partition_values: returns the `partitionValues` of all files.
        stats: returns the statistics of all files, restricted to the leaves of a schema.
        time_zone: the time zone of partition values that have no zone.
        stats_where: returns the statistics of some files. If it is given, bounds are evaluated
            first, and the other statistics are read only for the remaining files.
    """
    partition_columns = set(configuration.partition_columns)
    by_partition: list[Expression] = []
    others: list[Expression] = []
    for part in conjuncts(predicate):
        used = {path[0] for path in columns(part)}
        (by_partition if used and used <= partition_columns else others).append(part)
    # Conditions on both partition columns and data columns are evaluated on statistics and typed
    # partition values.
    named = sorted({path[0] for path in columns(predicate)} & partition_columns)
    partitions: pa.Table | None = None
    if named:
        partitions = _typed(partition_values(), named, configuration, time_zone)
    keep: pa.BooleanArray | None = None
    of_partitions: Expression | None = None
    if by_partition and partitions is not None:
        of_partitions = conjunction(by_partition)
        keep = as_mask(filter_mask(of_partitions, partitions))
    if not others:
        parts = PruningParts(of_partitions)
        return Judged(by_partition=keep, keep=keep, is_exact=True, parts=parts)
    left = num_files if keep is None else keep.true_count
    of_statistics = conjunction(others)
    skipping = plan_skipping(of_statistics, configuration)
    if skipping is None or not left:
        parts = PruningParts(of_partitions)
        return Judged(by_partition=keep, keep=keep, is_exact=False, parts=parts)
    schema = skipping.stats_schema
    asked = schema if stats_where is None else _bounds_alone(schema)
    bounds = skipping.keep(stats(asked), partitions)
    decided = bounds if keep is None else as_mask(pc.and_(keep, bounds))
    if stats_where is not None and asked != schema and decided.true_count:
        # Only bounds were read so far. The other statistics can only exclude more files.
        of_rest = None if partitions is None else partitions.filter(decided)
        rest = skipping.keep(stats_where(schema, decided), of_rest)
        decided = as_mask(pc.replace_with_mask(decided, decided, rest))
    parts = PruningParts(of_partitions, of_statistics)
    return Judged(by_partition=keep, keep=decided, is_exact=False, parts=parts)


def _bounds_alone(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name in _BOUNDS] or list(schema))


def as_mask(mask: pa.BooleanArray | pa.ChunkedArray[Any]) -> pa.BooleanArray:
    """Return a boolean column as one array."""
    whole: Any = mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask
    return whole  # type: ignore[no-any-return]  # `whole` is a BooleanArray


def _typed(
    texts: pa.ChunkedArray[Any],
    names: Sequence[str],
    configuration: TableConfiguration,
    time_zone: str,
) -> pa.Table:
    """Return the typed values of some partition columns, one row per file."""
    found = {}
    for name in names:
        field = find_field(configuration.schema, (name,))
        stored = physical_name(field, configuration.column_mapping_mode)
        found[name] = parse_column(
            extract(texts, stored), field.type, column=name, time_zone=time_zone
        )
    return pa.table(found)
