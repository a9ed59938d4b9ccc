"""Checkpoints that tasks write, for tables with more files than the driver should read.

This module distributes the work. The task that reads a share of the files also writes the sidecar
for this share. In a multi-part checkpoint, each part contains a range of paths, so the rows of all
shares pass through a shuffle. The core decides on contents, layout, verification and
`_last_checkpoint`.

Protocol: none
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from deltalog._util.kernels import compute
from deltalog.errors import AlreadyExistsError
from deltalog.log.checkpoints.rows import FILE_KINDS, ActionRows, RowFile, conform, nulls
from deltalog.log.checkpoints.writer import (
    AFTER_ALL_PATHS,
    CheckpointLayout,
    WrittenCheckpoint,
    classic_rows,
    count_parts,
    file_rows,
    part_numbers,
    part_paths,
    part_places,
    small_actions,
    write_v2_top,
)
from deltalog.log.segment import CheckpointFiles, CheckpointKind
from deltalog.log.snapshot.splits import SHARE_BYTES, CutSnapshot, cut_snapshot
from deltalog.schema import from_arrow_schema
from deltalog.spark.reading.state import on_pieces, prune_on_cluster
from deltalog.spark.session.failures import as_spark_does
from deltalog.spark.session.opening import load_version, session_time_zone
from deltalog.spark.session.tasks import decode_message, numbered_frame, run_tasks
from deltalog.spark.session.types import as_spark_batches, to_spark_arrow, to_spark_schema
from deltalog.transaction.maintenance.checkpoint import (
    CheckpointInfo,
    content_of_piece,
    create_checkpoint,
    layout_of,
    write_piece,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import PurePath

    from pyspark.sql import DataFrame, SparkSession

    from deltalog._util.paths import FileInfo
    from deltalog.catalogs.protocol import NamedTable
    from deltalog.log.checkpoints.writer import CheckpointContent
    from deltalog.log.snapshot import Snapshot
    from deltalog.log.snapshot.state import LogState
    from deltalog.storage.store import Store

PART_ROWS: Final = 1_000_000
"""The default maximum number of file actions in a part or sidecar of a checkpoint."""
_PART: Final = "__deltalog_part"
_KIND: Final = "__deltalog_kind"
# The kinds of file actions, numbered in the order in which `file_rows` returns them.
_REMOVES: Final = 0
_ADDS: Final = 1

CheckpointPart = tuple["FileInfo", list[int]]


def checkpoint(
    spark: SparkSession,
    table: str | PurePath | Store | NamedTable,
    *,
    version: int | None = None,
    part_files: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> CheckpointInfo:
    """Write a checkpoint of a table in tasks unless it exists; update `_last_checkpoint`.

    If the table supports V2 checkpoints, a V2 checkpoint with sidecars is written, because a
    classic checkpoint of such a table must be a single file. Otherwise a multi-part checkpoint is
    written.

    Args:
        spark: the session, classic or remote.
        table: a location, which may end in `@v3`, or a table of a catalog; see `read`.
        version: the version of the checkpoint; None means the latest.
        part_files: the maximum number of file actions in a part or sidecar, 1,000,000 by default.
        storage_options: credentials and settings for the store.

    Returns:
        The written or existing checkpoint: `version`, `num_adds`, `num_removes`, `size_bytes` and
        `files`.

    Raises:
        TableNotFoundError: there is no table.
        DeltaProtocolError: the table needs a feature that deltalog cannot write.

        Cost: one job over the previous checkpoint; for a multi-part checkpoint, also two small jobs
            and a shuffle. The driver reads into memory the commits after the previous checkpoint.
    """
    with as_spark_does():
        snapshot = load_version(
            table, storage_options, version=version, time_zone=session_time_zone(spark)
        )
    return checkpoint_on_cluster(spark, snapshot, part_files=part_files)


def checkpoint_on_cluster(
    spark: SparkSession,
    snapshot: Snapshot,
    *,
    layout: CheckpointLayout | None = None,
    part_files: int | None = None,
    at_ms: int | None = None,
    share_bytes: int = SHARE_BYTES,
) -> CheckpointInfo:
    """Write a checkpoint of a version in tasks; see `create_checkpoint` of the core.

    Args:
        spark: the session.
        snapshot: the snapshot of the version.
        layout: the layout of the checkpoint; None chooses the layout as `checkpoint` does.
        part_files: the maximum number of file actions in a part or sidecar.
        at_ms: the time that determines which tombstones and application transactions have expired;
            None means now.
        share_bytes: the number of bytes of the previous checkpoint that one task reads.
    """
    if layout is None:
        layout = layout_of(snapshot.configuration)
        if layout is CheckpointLayout.CLASSIC and snapshot.configuration.supports("v2Checkpoint"):
            layout = CheckpointLayout.V2_JSON
    part_rows = part_files or PART_ROWS
    return create_checkpoint(
        snapshot,
        layout=layout,
        part_rows=part_rows,
        at_ms=at_ms,
        work=_CheckpointTasks(spark, snapshot, share_bytes),
    )


class _CheckpointTasks:
    """Those steps of `CheckpointWork` that read all file actions, as Spark jobs."""

    def __init__(self, spark: SparkSession, snapshot: Snapshot, share_bytes: int) -> None:
        self._spark = spark
        self._snapshot = snapshot
        self._share_bytes = share_bytes
        self._what = f"writing a checkpoint of {snapshot.store.root}"

    def count_files(self) -> int:
        """Return the number of live files."""
        found = prune_on_cluster(
            self._spark,
            self._snapshot,
            None,
            names=("size",),
            most_files=0,
            share_bytes=self._share_bytes,
        )
        return found.num_left

    def write(
        self,
        state: LogState,
        content: CheckpointContent,
        layout: CheckpointLayout,
        part_rows: int | None,
        at_ms: int,
    ) -> WrittenCheckpoint:
        """Write the files of the checkpoint; see `CheckpointWork`."""
        cut = cut_snapshot(self._snapshot, state, share_bytes=self._share_bytes)
        rows = part_rows or PART_ROWS
        if layout is CheckpointLayout.CLASSIC:
            return self._write_parts(cut, content, rows, at_ms)
        written = self._ask(cut, partial(write_piece, cut, at_ms=at_ms, part_rows=rows))
        return write_v2_top(self._snapshot.store, content, layout, written)

    def _ask(self, cut: CutSnapshot, look: Callable[[int], Any]) -> list[Any]:
        return on_pieces(self._spark, range(cut.num_pieces), look, self._what)

    def _write_parts(
        self, cut: CutSnapshot, content: CheckpointContent, part_rows: int, at_ms: int
    ) -> WrittenCheckpoint:
        store, version = self._snapshot.store, content.version
        num_files = self.count_files()
        parts = count_parts(store, version, num_files, part_rows)
        places = part_places(num_files, parts)
        starts = paths_at(partial(self._ask, cut), cut, places, num_files)
        paths = part_paths(version, parts)
        frame = _rows_frame(self._spark, cut, content, starts, at_ms)
        frame = frame.repartition(parts, _PART).sortWithinPartitions(_PART, _KIND)
        messages = run_tasks(frame, partial(_write_parts, store, content, paths), self._what)
        found = {part: one for message in messages for part, one in decode_message(message).items()}
        for part in range(parts):
            if part not in found:  # the part is empty, so no task has written it
                found[part] = _write_part(store, content, paths, part, iter(()))
        return WrittenCheckpoint(
            files=CheckpointFiles(
                version=version,
                kind=CheckpointKind.MULTI_PART,
                files=tuple(found[part][0] for part in range(parts)),
            ),
            num_adds=sum(counts[_ADDS] for _, counts in found.values()),
            num_removes=sum(counts[_REMOVES] for _, counts in found.values()),
        )


def _schema_of(rows: ActionRows) -> pa.Schema:
    """Return the schema of the rows in the shuffle: part, kind of action, and the actions."""
    kinds = [rows.schema.field(kind) for kind in FILE_KINDS]
    return pa.schema([pa.field(_PART, pa.int64()), pa.field(_KIND, pa.int64()), *kinds])


def _rows_frame(
    spark: SparkSession,
    cut: CutSnapshot,
    content: CheckpointContent,
    starts: Sequence[str],
    at_ms: int,
) -> DataFrame:
    """Return a row for each tombstone and each file, with the number of the part for it."""
    schema = from_arrow_schema(_schema_of(classic_rows(content)))

    def find(number: int) -> Iterator[pa.RecordBatch]:
        arrow, rows = to_spark_arrow(schema), classic_rows(content)
        for kind, tables in enumerate(file_rows(content_of_piece(cut, number, at_ms), rows)):
            for table in tables:
                yield from as_spark_batches(_sorted_out(table, starts, kind), arrow)

    return numbered_frame(spark, cut.num_pieces, find, to_spark_schema(schema))


def _sorted_out(table: pa.Table, starts: Sequence[str], kind: int) -> list[pa.RecordBatch]:
    columns: dict[str, Any] = {
        _PART: part_numbers(starts, table),
        _KIND: pa.repeat(pa.scalar(kind), table.num_rows),
    }
    columns |= {name: table.column(name) for name in FILE_KINDS}
    return pa.table(columns).to_batches(max_chunksize=1 << 13)


def _write_parts(
    store: Store,
    content: CheckpointContent,
    paths: Sequence[str],
    batches: Iterable[pa.RecordBatch],
) -> dict[int, CheckpointPart]:
    """Write the parts whose rows this task receives. The rows are ordered by part."""
    return {
        part: _write_part(store, content, paths, part, ((kind, rows) for _, kind, rows in runs))
        for part, runs in groupby(_runs(batches), key=itemgetter(0))
    }


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Split batches into runs of consecutive rows of the same part and the same kind of action."""
    for batch in batches:
        parts, kinds = batch.column(_PART), batch.column(_KIND)
        keys = compute.add(compute.multiply(parts, len(FILE_KINDS)), kinds)
        for key in compute.unique(keys).to_pylist():
            part, kind = divmod(key, len(FILE_KINDS))
            yield part, kind, batch.filter(compute.equal(keys, key))


def _write_part(
    store: Store,
    content: CheckpointContent,
    paths: Sequence[str],
    part: int,
    runs: Iterator[tuple[int, pa.RecordBatch]],
) -> CheckpointPart:
    """Write one part; return its file, and the number of rows of each kind of action."""
    rows, counts, path = classic_rows(content), [0] * len(FILE_KINDS), paths[part]

    def tables(file: RowFile) -> Iterator[pa.Table]:
        last: int | None = None
        for kind, batch in runs:
            counts[kind] += batch.num_rows
            if kind != last:
                file.begin_kind()
            last = kind
            yield _as_rows(batch, rows.schema)

    try:
        with RowFile(store, path, rows.schema) as file:
            if not part:
                file.write(rows.values(small_actions(content)))
            for table in tables(file):
                file.write(table)
    except AlreadyExistsError:
        # Another attempt of this task has written the file. Its rows are the same, because the
        # range of paths determines them.
        return store.stat(path), counts
    return file.info, counts


def _as_rows(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """Cast rows from the Arrow types of Spark to the types of a checkpoint."""
    columns: list[Any] = [
        conform(batch.column(field.name), field.type)
        if field.name in FILE_KINDS
        else nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


# --- the paths of live files at given ranks, found without sorting all paths in one process


_SAMPLES: Final = 1000


@dataclass(frozen=True, slots=True)
class _Sample:
    """A sample of the sorted paths of a piece, including the first and the last path.

    Args:
        paths: the sampled paths, in ascending order.
        places: the rank of each sampled path among the paths of the piece.
        count: the number of paths in the piece.
    """

    paths: list[str]
    places: list[int]
    count: int

    def fewest_below(self, path: str) -> int:
        """Return a lower bound for the number of paths in the piece that sort before `path`."""
        found = bisect_left(self.paths, path)
        return self.places[found - 1] + 1 if found else 0

    def most_below(self, path: str) -> int:
        """Return an upper bound for the number of paths in the piece that sort before `path`."""
        found = bisect_left(self.paths, path)
        return self.places[found] if found < len(self.paths) else self.count


@dataclass(frozen=True, slots=True)
class _Bounds:
    """A range of paths from `low` (inclusive) to `high` (exclusive); None means unbounded."""

    low: str | None
    high: str | None


class Ask(Protocol):
    """A function that evaluates a given function for every piece of a version, in tasks."""

    def __call__(self, look: Callable[[int], Any]) -> list[Any]:
        """Return one result for each piece."""
        ...


def paths_at(
    ask: Ask, cut: CutSnapshot, places: Sequence[int], num_files: int, *, samples: int = _SAMPLES
) -> list[str]:
    """Return the live paths at given ranks in the order of all live paths.

    Args:
        ask: a function that evaluates a given function for every piece, in tasks.
        cut: the pieces of the version.
        places: the ranks, in ascending order; the first path has rank 0.
        num_files: the number of live files.
        samples: the number of paths to sample in each piece. A larger number makes the first job
            slower and the second job faster.

    Cost: two jobs that read the paths in the checkpoint. The driver receives some thousand paths of
    each piece.
    """
    if not places or not num_files:
        return [AFTER_ALL_PATHS] * len(places)
    some: list[_Sample] = ask(partial(_sample, cut, samples))
    known = sorted({path for sample in some for path in sample.paths})
    bounds = [_bounds(some, known, place) for place in places]
    found: list[list[tuple[int, list[str]]]] = ask(partial(_within, cut, bounds))
    starts = []
    for number, place in enumerate(places):
        below = sum(piece[number][0] for piece in found)
        inside = sorted(path for piece in found for path in piece[number][1])
        starts.append(inside[place - below])
    return starts


def _bounds(samples: Sequence[_Sample], known: Sequence[str], place: int) -> _Bounds:
    """Return a range between two sampled paths that contains the path at a rank."""

    def surely_after(path: str) -> bool:
        return sum(sample.fewest_below(path) for sample in samples) > place

    def maybe_after(path: str) -> bool:
        return sum(sample.most_below(path) for sample in samples) > place

    high = bisect_left(known, 1, key=lambda path: int(surely_after(path)))
    low = bisect_left(known, 1, key=lambda path: int(maybe_after(path)))
    return _Bounds(known[low - 1] if low else None, known[high] if high < len(known) else None)


def _paths(cut: CutSnapshot, number: int) -> Any:
    """Return the sorted paths of a piece."""
    paths: Any = cut.piece(number).files(["path"]).column("path")
    return paths.take(compute.sort_indices(paths))


def _sample(cut: CutSnapshot, samples: int, number: int) -> _Sample:
    paths = _paths(cut, number)
    count = len(paths)
    places = list(range(0, count, max(1, count // samples)))
    if count:
        places.append(count - 1)
    chosen: Any = pa.array(places, pa.int64())
    return _Sample(paths.take(chosen).to_pylist(), places, count)


def _within(
    cut: CutSnapshot, bounds: Sequence[_Bounds], number: int
) -> list[tuple[int, list[str]]]:
    """Return for each range the number of the piece's paths before it, and the paths in it."""
    paths = _paths(cut, number)
    found = []
    for one in bounds:
        below = 0 if one.low is None else compute.sum(compute.less(paths, one.low)).as_py() or 0
        inside = paths.slice(below)
        if one.high is not None:
            inside = inside.filter(compute.less(inside, one.high))
        found.append((below, inside.to_pylist()))
    return found
