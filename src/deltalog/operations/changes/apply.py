"""Change rows of existing files, by deletion vectors or by rewriting the files.

UPDATE and MERGE in this process apply a `FileDecision` to each file. A file without remaining rows
is removed. A masked file gets a deletion vector, and the new versions of its rows are written to
new files. A rewritten file is written again with all its rows, in the same order. Row ids do not
change. Pre-images and post-images are written to the change data feed.

Protocol: Deletion Vectors, Row Tracking, Add CDC File
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

import pyarrow as pa

from deltalog._util.cards import ProgressCount
from deltalog._util.kernels import Array, arrow, compute, exact_sum, pc
from deltalog._util.paths import decode_path
from deltalog.data.scan.plan import check_row_ids, make_numbered_tasks
from deltalog.data.scan.prune import prune
from deltalog.data.scan.reader import ScanTask, read_tasks
from deltalog.data.scan.task import Allowance, read_spec
from deltalog.data.write.changes import ChangeWriter
from deltalog.data.write.files import FileWriter
from deltalog.data.write.open_files import random_prefix
from deltalog.errors import InternalError, InvalidInputError
from deltalog.operations.changes import kept_groups
from deltalog.operations.changes.kept_groups import KeptGroups
from deltalog.operations.changes.request import FileCounts
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.deletion_vectors import DeletionBitmap, inline_descriptor
from deltalog.schema.conform import conform
from deltalog.schema.metadata_columns import FILE_NUMBER, ROW_COMMIT_VERSION, ROW_ID, ROW_INDEX
from deltalog.storage.parquet.facts import FetchedFooters
from deltalog.storage.parquet.reader import read_footer
from deltalog.transaction.masks import Masks, write_masks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True)
class NewVersions:
    """The new versions of a batch of old rows, some of which may be deleted instead.

    Args:
        rows: the new versions of the updated rows, in order, in the schema that the table will
            have after the commit.
        is_updated: for each old row, True if it is updated, False if it is deleted; None if all
            rows are updated.
    """

    rows: pa.RecordBatch
    is_updated: pa.BooleanArray | None = None


class FileRows(NamedTuple):
    """Consecutive matching rows of a file.

    Args:
        file: index of the file in `SelectedRows.files`.
        first: the number of matching rows of the file before these.
        num_rows: the number of rows.
    """

    file: int
    first: int
    num_rows: int


class RowUpdate(Protocol):
    """A function that computes the new versions of rows."""

    def __call__(self, parts: Sequence[FileRows], old: pa.RecordBatch) -> NewVersions:
        """Return the new versions of the rows.

        Args:
            parts: the files of the rows, in the order of `old`.
            old: matching rows before the change, in the schema of the table after the commit.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdits:
    """The changed rows of each file, and the decision for each file.

    Args:
        selected: the files, and the ascending positions of the rows that change.
        updates: for each file, whether any of its rows is updated.
        columns: the columns that an update may change.
        reads: the columns from which new values are computed; None means all columns.
        decisions: the decision for each file: drop, mask or rewrite.
        progress: counts the files that are read.
    """

    selected: SelectedRows
    updates: Sequence[bool]
    columns: Collection[str]
    decisions: Sequence[FileDecision]
    reads: Collection[str] | None = None
    progress: ProgressCount = field(default_factory=lambda: ProgressCount(None))


def file_counts(selected: SelectedRows, decisions: Sequence[FileDecision]) -> FileCounts:
    """Return the file metrics of a change, without reading any data file."""
    masked = pa.array([decision is FileDecision.MASKED for decision in decisions], pa.bool_())
    had = selected.files.column("deletionVector").is_valid()
    gone = selected.files.filter(compute.invert(masked))
    return FileCounts(
        num_copied_rows=copied_rows(selected, decisions),
        num_removed_files=gone.num_rows,
        num_removed_bytes=exact_sum(gone.column("size")),
        num_rewritten_files=decisions.count(FileDecision.REWRITTEN),
        num_vectors_added=masked.true_count,
        num_vectors_updated=compute.sum(compute.and_(had, masked)).as_py() or 0,
        num_vectors_removed=compute.sum(had).as_py() or 0,
    )


_JOINED_ROWS: Final = 1 << 14
_JOINED_BYTES: Final = 16 * 1024 * 1024
"""The new versions of rows of several files are computed together up to these limits, because each
computation has a cost that does not depend on the number of rows."""
_REPLACED_ROWS: Final = 1 << 17
"""The maximum number of rows whose new versions are computed at once without reading old ones."""


def change_rows(
    transaction: PendingTransaction,
    edits: FileEdits,
    change: RowUpdate,
    writer: FileWriter,
    feed: ChangeWriter | None,
) -> FileCounts:
    """Write new versions of rows, and stage the removals and masks of their old files.

    Args:
        transaction: transaction on an existing table.
        edits: the files, the rows to change, and the decisions.
        change: computes the new versions.
        writer: writes new versions to data files.
        feed: writes change data files; None if the change data feed is disabled.

    Cost: reads all columns of the row groups that contain updated rows. In rewritten files, also
    reads row groups that cannot be copied unchanged (see `kept_groups`). Files without remaining
    rows are not read.
    """
    work = _FileEditor(transaction, transaction.read_snapshot, edits, change, writer, feed)
    work.write_rows()
    return work.stage()


class _FileEditor:
    def __init__(
        self,
        transaction: PendingTransaction,
        snapshot: Snapshot,
        edits: FileEdits,
        change: RowUpdate,
        writer: FileWriter,
        feed: ChangeWriter | None,
    ) -> None:
        self._transaction = transaction
        self._snapshot = snapshot
        self._edits = edits
        self._selected = edits.selected
        self._change = change
        self._kept = KeptGroups(snapshot, writer, least_bytes=kept_groups.LEAST_BYTES)
        self._feed = feed
        self._schema = transaction.configuration.arrow_schema
        self._names = self._columns_to_read()
        self._has_ids = snapshot.configuration.row_ids_enabled
        self._done = [0] * edits.selected.files.num_rows
        self._waiting: list[tuple[int, pa.RecordBatch]] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0
        self._copied = 0

    def write_rows(self) -> None:
        progress = self._edits.progress
        progress.expect(sum(self._is_read(number) for number in range(len(self._done))))
        for number, batches in self._selected.held.items():
            for batch in batches if self._is_held(number) else ():
                self._take(number, batch)
        for number, positions in enumerate(self._selected.positions):
            if positions is not None and self._is_replaced(number):
                for start in range(0, len(positions), _REPLACED_ROWS):
                    some = positions.slice(start, _REPLACED_ROWS)
                    self._take(number, pa.RecordBatch.from_arrays([some], [ROW_INDEX]))
        for batch in read_tasks(self._kept.tasks(progress.each(self._tasks()))):
            if batch.num_rows:
                self._take(batch.column(FILE_NUMBER)[0].as_py(), batch)
        self._update_waiting()
        self._kept.finish()
        self._copied += self._kept.num_rows

    def _tasks(self) -> Iterator[tuple[int, ScanTask, DeletionBitmap | None]]:
        ids = [ROW_ID, ROW_COMMIT_VERSION] if self._has_ids else []
        spec = read_spec(
            self._snapshot,
            columns=self._names,
            hidden=(ROW_INDEX, *ids),
            predicate=None,
        )
        files = self._selected.files
        are_read = [self._is_read(number) for number in range(files.num_rows)]
        numbers = (number for number, is_read in enumerate(are_read) if is_read)
        footers = self._selected.footers
        tasks = make_numbered_tasks(self._snapshot, spec, files, are_read=are_read, footers=footers)
        for number, task in zip(numbers, tasks, strict=True):
            yield number, self._only_selected(task, number), self._changes_of(number)

    def _changes_of(self, number: int) -> DeletionBitmap | None:
        """Return the rows that change in a rewritten file; None for other files."""
        positions = self._selected.positions[number]
        if self._edits.decisions[number] is not FileDecision.REWRITTEN or positions is None:
            return None
        return DeletionBitmap.from_arrow(positions)

    def _columns_to_read(self) -> list[str]:
        """Return all columns, or only `edits.reads` if other columns are not needed."""
        names = self._snapshot.configuration.schema.names
        edits = self._edits
        if (
            edits.reads is None
            or self._feed is not None
            or FileDecision.REWRITTEN in edits.decisions
        ):
            return list(names)
        return [name for name in names if name in edits.reads]

    def _is_read(self, number: int) -> bool:
        copies = self._edits.decisions[number] is FileDecision.REWRITTEN
        tells = self._edits.updates[number] or self._feed is not None
        return copies or (tells and not self._is_held(number) and not self._is_replaced(number))

    def _is_replaced(self, number: int) -> bool:
        """Return whether the new versions of a file's rows need no value of the old ones."""
        return (
            not self._names
            and not self._has_ids
            and self._edits.decisions[number] is FileDecision.MASKED
            and self._edits.updates[number]
            and self._selected.positions[number] is not None
            and not self._is_held(number)
        )

    def _is_held(self, number: int) -> bool:
        """Return whether the search has already read all needed columns of a file."""
        copies = self._edits.decisions[number] is FileDecision.REWRITTEN
        return not copies and number in self._selected.held

    def _only_selected(self, task: ScanTask, number: int) -> ScanTask:
        """Return the task; if the file is masked, the task reads only the matching rows."""
        positions = self._selected.positions[number]
        if self._edits.decisions[number] is not FileDecision.MASKED or positions is None:
            return task
        wanted = inline_descriptor(DeletionBitmap.from_arrow(positions))
        return replace(task, deletion_vector=wanted, only_deleted=True)

    def _take(self, number: int, batch: pa.RecordBatch) -> None:
        """Write the changed rows of a batch; if the file is rewritten, also its unchanged rows.

        All rows of a batch are from one file. The changed rows of a masked file may wait for rows
        of further files.
        """
        positions = self._selected.positions[number]
        if self._edits.decisions[number] is not FileDecision.REWRITTEN or positions is None:
            self._join(number, batch)
            return
        self._update_waiting()
        place = (number, batch.column(ROW_INDEX)[0].as_py())
        old, ids = self._old(batch)
        rest = positions.slice(self._done[number])
        is_hit = compute.is_in(batch.column(ROW_INDEX), value_set=rest)
        if not is_hit.true_count:
            self._copied += old.num_rows
            self._put(place, old, ids)
            return
        hits = old.filter(is_hit)
        changed = self._changed([self._next(number, hits.num_rows)], hits)
        self._copied += old.num_rows - is_hit.true_count
        self._put(place, *self._merged(old, ids, is_hit, changed))

    def _join(self, number: int, batch: pa.RecordBatch) -> None:
        """Add changed rows of a masked file to those that wait for their new versions."""
        rows, num_bytes = self._waiting_rows + batch.num_rows, self._waiting_bytes + batch.nbytes
        fits = rows <= _JOINED_ROWS and num_bytes <= _JOINED_BYTES
        if self._waiting and not (fits and batch.schema.equals(self._waiting[0][1].schema)):
            self._update_waiting()
            rows, num_bytes = batch.num_rows, batch.nbytes
        self._waiting.append((number, batch))
        self._waiting_rows, self._waiting_bytes = rows, num_bytes

    def _update_waiting(self) -> None:
        """Write the new versions of the rows that wait for them."""
        waiting, self._waiting = self._waiting, []
        self._waiting_rows = self._waiting_bytes = 0
        if not waiting:
            return
        parts = [self._next(number, batch.num_rows) for number, batch in waiting]
        batches = [batch for _, batch in waiting]
        joined = batches[0] if len(batches) == 1 else arrow.concat_batches(batches)
        old, ids = self._old(joined)
        place = (parts[0].file, joined.column(ROW_INDEX)[0].as_py())
        self._write(place, ids, self._changed(parts, old))

    def _old(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[Array]]:
        """Return rows with the columns of the new schema, and their ids."""
        ids = [batch.column(name) for name in (ROW_ID, ROW_COMMIT_VERSION)] if self._has_ids else []
        names = [name for name in self._names if name in batch.schema.names]
        return conform(batch.select(names), self._schema), ids

    def _next(self, number: int, num_rows: int) -> FileRows:
        first = self._done[number]
        self._done[number] += num_rows
        return FileRows(number, first, num_rows)

    def _changed(self, parts: Sequence[FileRows], old: pa.RecordBatch) -> NewVersions:
        changed = self._change(parts, old)
        if self._feed is not None:
            updated = changed.is_updated
            if updated is not None and updated.true_count < old.num_rows:
                self._feed.write(old.filter(compute.invert(updated)), "delete")
                old = old.filter(updated)
            if old.num_rows:
                self._feed.write(old, "update_preimage")
                self._feed.write(changed.rows, "update_postimage")
        return changed

    def _write(self, place: tuple[int, int], ids: list[Array], changed: NewVersions) -> None:
        """Write only the new versions of rows."""
        if changed.is_updated is not None:
            ids = [column.filter(changed.is_updated) for column in ids]
        if ids:
            # In an updated row, NULL means the default row commit version of the new file.
            ids[1] = pa.nulls(changed.rows.num_rows, pa.int64())
        self._put(place, changed.rows, ids)

    def _merged(
        self, old: pa.RecordBatch, ids: list[Array], is_hit: Array, changed: NewVersions
    ) -> tuple[pa.RecordBatch, list[Array]]:
        """Return unchanged rows and new versions together, in the order of the file."""
        updated = is_hit
        if changed.is_updated is not None:
            updated = compute.replace_with_mask(is_hit, is_hit, changed.is_updated)
        arrays = [
            _spliced(old.column(name), updated, changed.rows.column(name))
            if name in self._edits.columns
            else old.column(name)
            for name in self._schema.names
        ]
        merged = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        if ids:
            ids[1] = compute.if_else(updated, pa.scalar(None, pa.int64()), ids[1])
        if changed.is_updated is not None:
            stays = compute.or_(compute.invert(is_hit), updated)
            merged = merged.filter(stays)
            ids = [column.filter(stays) for column in ids]
        return merged, ids

    def _put(self, place: tuple[int, int], rows: pa.RecordBatch, ids: list[Array]) -> None:
        """Write rows; `place` is the file and physical position of the first row."""
        if not rows.num_rows:
            return
        if ids:
            self._kept.write(*place, rows, row_ids=ids[0], row_commit_versions=ids[1])
        else:
            self._kept.write(*place, rows)

    def stage(self) -> FileCounts:
        """Stage removals and deletion vectors; return the file metrics."""
        stage_files(self._transaction, self._selected, self._edits.decisions)
        done = file_counts(self._selected, self._edits.decisions)
        return replace(done, num_copied_rows=self._copied)


def stage_files(
    transaction: PendingTransaction, selected: SelectedRows, decisions: Sequence[FileDecision]
) -> None:
    """Stage the removal of dropped and rewritten files, and the deletion vectors of masked files.

    Cost: one request for all deletion vectors that are not inline.
    """
    transaction.copies_rows = True
    masked = [n for n, decision in enumerate(decisions) if decision is FileDecision.MASKED]
    if masked:
        mask_files(transaction, selected, masked)
    gone = sorted(set(range(len(decisions))).difference(masked))
    transaction.remove_files(selected.files.take(pa.array(gone, pa.int64())), data_change=True)


def mask_files(
    transaction: PendingTransaction, selected: SelectedRows, numbers: Sequence[int]
) -> None:
    """Stage deletion vectors that mark the matching rows and the already deleted rows.

    Args:
        transaction: transaction on the table.
        selected: the files, and the positions of their matching rows.
        numbers: indexes of the files to mask; in each file, at least one row remains.
    """
    bitmaps = []
    for number in numbers:
        positions = selected.positions[number]
        if positions is None:
            raise InternalError("cannot mask a file if all its rows change: remove the file")
        bitmaps.append(DeletionBitmap.from_arrow(positions))
    properties = transaction.configuration.properties
    prefix = random_prefix(properties) if properties.randomize_file_prefixes else ""
    files = selected.files.take(pa.array(numbers, pa.int64()))
    num_records = [selected.num_records[number] or 0 for number in numbers]
    if transaction.defers_masks:
        masks = Masks(
            files=files,
            rows=tuple(bitmaps),
            num_records=tuple(num_records),
            prefix=prefix,
            added=None,
            paths=(),
        )
    else:
        masks = write_masks(transaction.store, files, bitmaps, num_records, prefix=prefix)
    transaction.mask_rows(masks)


def _spliced(old: Array, mask: Array, new: Array) -> Array:
    """Return `old` with the k-th row where `mask` is true replaced by the k-th value of `new`."""
    kind = old.type
    is_other = isinstance(kind, pa.BaseExtensionType) or pa.types.is_duration(kind)
    if not (pa.types.is_nested(kind) or is_other):
        return compute.replace_with_mask(old, mask, new)
    # `replace_with_mask` does not support these types, so take values from a concatenation.
    after = compute.cumulative_sum(mask.cast(pa.int64()))
    places = arrow.arange(0, len(old))
    picks = compute.if_else(mask, compute.add(after, len(old) - 1), places)
    return pa.concat_arrays([old, new]).take(picks)


# --- Decision for each file: drop, mask with a deletion vector, or rewrite


_MOST_DEAD: Final = 0.5
_SCHEMA: Final[Sequence[str]] = ("path", "action", "num_rows", "deleted_ratio", "reason")


class FileDecision(StrEnum):
    """Whether a file is dropped, masked or rewritten."""

    REMOVED = "remove"
    MASKED = "mask"
    REWRITTEN = "rewrite"


def decide_files(
    snapshot: Snapshot, selected: SelectedRows, *, asked: bool | None, tells_rows: bool = True
) -> tuple[FileDecision, ...]:
    """Decide for each file whether it is dropped, masked or rewritten.

    Args:
        snapshot: snapshot of the table.
        selected: the files, and the positions of the rows to delete.
        asked: True masks files, False rewrites files. None decides by the share of deleted rows if
            the table enables deletion vectors, otherwise rewrites files.
        tells_rows: whether the operation writes change data files even if no file is rewritten.

    Raises:
        InvalidInputError: deletion vectors are requested, but the table does not support them.
    """
    configuration = snapshot.configuration
    if asked and not configuration.may_have_deletion_vectors:
        raise InvalidInputError(
            f"cannot write deletion vectors to {snapshot.store.root}: the table does not support "
            "them; set delta.enableDeletionVectors=true first"
        )
    most = _most_dead(configuration, asked=asked, tells_rows=tells_rows)
    return tuple(
        FileDecision.REMOVED
        if selected.is_whole(number)
        else FileDecision.MASKED
        if dead <= most
        else FileDecision.REWRITTEN
        for number, dead in enumerate(dead_ratios(selected))
    )


def _most_dead(configuration: TableConfiguration, *, asked: bool | None, tells_rows: bool) -> float:
    """Return the maximum share of deleted rows of a masked file; negative to mask no file."""
    if asked is not None:
        return 1.0 if asked else -1.0
    if not configuration.writes_deletion_vectors:
        return -1.0
    set_ratio = configuration.properties.max_deleted_rows_ratio
    if set_ratio is not None:
        return set_ratio
    is_distinguished = configuration.change_data_feed_enabled and not tells_rows
    if is_distinguished or configuration.properties.enable_row_level_concurrency:
        return 1.0
    return _MOST_DEAD


def may_rewrite(configuration: TableConfiguration, *, asked: bool | None, tells_rows: bool) -> bool:
    """Return whether `decide_files` may rewrite any file."""
    return _most_dead(configuration, asked=asked, tells_rows=tells_rows) < 1


def may_mask(configuration: TableConfiguration, *, asked: bool | None) -> bool:
    """Return whether `decide_files` may mask any file of an UPDATE."""
    return _most_dead(configuration, asked=asked, tells_rows=True) > 0


def explain_choice(snapshot: Snapshot, *, asked: bool | None) -> str:
    """Describe in plain text how `decide_files` would decide with these arguments."""
    most = _most_dead(snapshot.configuration, asked=asked, tells_rows=True)
    if most >= 1:
        return "rows are marked by deletion vectors"
    if most < 0:
        return "remaining rows are rewritten"
    return (
        f"rows are marked by deletion vectors; where more than {most:.0%} of a file would be "
        "deleted, remaining rows are rewritten"
    )


def dead_ratios(selected: SelectedRows) -> list[float]:
    """Return for each file the share of its physical rows that are deleted after the change."""
    vectors: list[Any] = selected.files.column("deletionVector").to_pylist()
    found = []
    for number, vector in enumerate(vectors):
        positions, rows = selected.positions[number], selected.num_records[number]
        dead = 0 if vector is None else vector["cardinality"]
        if positions is None or not rows:
            found.append(1.0)
        else:
            found.append((dead + len(positions)) / rows)
    return found


def copied_rows(selected: SelectedRows, decisions: Sequence[FileDecision]) -> int:
    """Return the number of unchanged rows in the files to rewrite."""
    total = 0
    for number, decision in enumerate(decisions):
        live, found = selected.num_live_rows(number), selected.positions[number]
        if decision is FileDecision.REWRITTEN and live is not None and found is not None:
            total += live - len(found)
    return total


def explain_decisions(selected: SelectedRows, decisions: Sequence[FileDecision]) -> pa.Table:
    """Return a table with the decision for each file, and its reason.

    Args:
        selected: the files.
        decisions: the decision for each file.

    Returns:
        One row for each file. Columns: `path`: the decoded path; `action`: `remove`, `mask` or
        `rewrite`; `num_rows`: the number of rows to delete, NULL if all rows of a file without
        `numRecords` are deleted; `deleted_ratio`: the share of physical rows that are deleted after
        the operation; `reason`.
    """
    paths: list[Any] = selected.files.column("path").to_pylist()
    counts = [
        selected.num_live_rows(number) if found is None else len(found)
        for number, found in enumerate(selected.positions)
    ]
    ratios = dead_ratios(selected)
    columns: list[Any] = [
        pa.array([decode_path(path) for path in paths], pa.string()),
        pa.array([decision.value for decision in decisions], pa.string()),
        pa.array(counts, pa.int64()),
        pa.array(ratios, pa.float64()),
        pa.array([_reason(*one) for one in zip(decisions, ratios, strict=True)], pa.string()),
    ]
    return pa.table(dict(zip(_SCHEMA, columns, strict=True)))


def _reason(decision: FileDecision, ratio: float) -> str:
    if decision is FileDecision.REMOVED:
        return "all of its rows change"
    share = f"{ratio:.1%} of its rows would be deleted"
    if decision is FileDecision.MASKED:
        return f"{share}: marking them costs less"
    return f"{share}: the remaining rows are rewritten"


# --- The files to search: all that remain after pruning, or a task's share of them


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateFiles:
    """The files in which a change searches for rows; picklable.

    Args:
        files: rows of `snapshot.files` with all columns.
        num_records: for each file, the number of physical rows; NULL if the log has none.
        is_exact: whether the log alone shows that all rows of the files match.
        is_pruned: whether pruning has excluded any file of the table.
        num_live_files: the number of live files of the table.
    """

    files: pa.Table
    num_records: pa.ChunkedArray[Any]
    is_exact: bool
    is_pruned: bool
    num_live_files: int

    @classmethod
    def of(cls, snapshot: Snapshot, predicate: Expression | None) -> Self:
        """Return the files of a version that may have rows for which a predicate is true.

        Cost: see `prune`.
        """
        pruned = prune(snapshot, predicate)
        files = pruned.files(FILE_SCHEMA.names)
        return cls(
            files=files,
            num_records=pruned.num_records(),
            is_exact=pruned.is_exact,
            is_pruned=files.num_rows < pruned.num_files,
            num_live_files=pruned.num_files,
        )

    @property
    def size_bytes(self) -> int:
        """The total size of the files."""
        return exact_sum(self.files.column("size"))

    def divided(self, most: int) -> list[CandidateFiles]:
        """Divide the files into at most `most` parts of about the same size in bytes.

        The parts are copies: a pickled slice of an Arrow table would contain the whole table.
        """
        sizes: list[Any] = self.files.column("size").to_pylist()
        return [
            replace(self, files=self.files.take(rows), num_records=self.num_records.take(rows))
            for start, length in balanced(sizes, most)
            for rows in (arrow.arange(start, start + length),)
        ]


def balanced(sizes: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Divide consecutive items into at most `most` groups of about the same total size.

    Returns:
        The first item and the number of items of each group. No group is empty. If there are at
        most `most` items, each item is a group.
    """
    if len(sizes) <= most:
        return [(number, 1) for number in range(len(sizes))]
    total, before = sum(max(1, size) for size in sizes), 0
    counts: dict[int, int] = {}
    for size in (max(1, size) for size in sizes):
        # An item belongs to the group whose share of the total size contains its middle.
        place = min(most - 1, (2 * before + size) * most // (2 * total))
        counts[place] = counts.get(place, 0) + 1
        before += size
    return list(zip(accumulate([0, *counts.values()]), counts.values(), strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A part of a change that one task applies: some of the files, with all their rows.

    The client decides whether change data files are written. They must be written by all tasks or
    by none, because readers ignore other changes of a version that has change data files.

    Args:
        candidates: the files.
        tells_changes: whether to write the changes of all rows to change data files.
        source: for a merge, the source rows that these files can match; None means all rows.
    """

    candidates: CandidateFiles
    tells_changes: bool
    source: Any = None  # a `MergeSource`, whose package uses this module


# --- Search for the rows that match a predicate


MOST_HELD_BYTES: Final = 64 * 1024 * 1024
"""The maximum size in bytes of the columns of matching rows that the search stores in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRows:
    """The files with rows to change, and the positions of these rows.

    Args:
        files: rows of `snapshot.files` with all columns. Each file has at least one row to change.
        positions: for each file, the physical positions of the live rows to change; None if the log
            alone shows that all live rows change.
        num_records: the number of physical rows of each file; None if the log has no `numRecords`
            and the footer was not read.
        num_candidates: the number of files that remained after pruning.
        held: index in `files` → all matching rows with the requested columns; only for files whose
            rows were kept in memory.
        footers: footers that were read and kept in memory.
    """

    files: pa.Table
    positions: tuple[pa.Int64Array | None, ...]
    num_records: tuple[int | None, ...]
    num_candidates: int
    held: Mapping[int, Sequence[pa.RecordBatch]] = field(default_factory=dict)
    footers: FetchedFooters | None = None

    @property
    def num_rows(self) -> int | None:
        """The number of selected rows; None if it is unknown for a file without `numRecords`."""
        cardinalities = pc.struct_field(self.files.column("deletionVector"), "cardinality")
        deleted: list[Any] = pc.fill_null(cardinalities, 0).to_pylist()
        total = 0
        for found, rows, gone in zip(self.positions, self.num_records, deleted, strict=True):
            if found is None and rows is None:
                return None
            total += len(found) if found is not None else (rows or 0) - gone
        return total

    def num_live_rows(self, number: int) -> int | None:
        """Return the number of physical rows of a file without already deleted rows."""
        rows = self.num_records[number]
        vector = self.files.column("deletionVector")[number].as_py()
        return rows if rows is None or vector is None else rows - vector["cardinality"]

    def is_whole(self, number: int) -> bool:
        """Whether every live row of a file is selected."""
        found = self.positions[number]
        return found is None or len(found) == self.num_live_rows(number)


def find_matching_files(
    snapshot: Snapshot,
    predicate: Expression | None,
    *,
    candidates: CandidateFiles | None = None,
    along: Sequence[str] = (),
    progress: ProgressCount | None = None,
) -> SelectedRows:
    """Return the files that contain matching rows, and the positions of these rows.

    Args:
        snapshot: snapshot of the table.
        predicate: the resolved condition; None matches all rows.
        candidates: the files to search; None means the files that remain after pruning.
        along: columns of the matching rows to store in memory, up to `MOST_HELD_BYTES` in total.
            With row tracking, row ids and row commit versions are stored, too.
        progress: counts the files that are read.

    Cost: reads statistics from the log, prunes files, and reads the predicate's columns of the
    remaining files. Memory: eight bytes for each matching row, and the columns `along`.
    """
    candidates = candidates or CandidateFiles.of(snapshot, predicate)
    files = candidates.files
    counts: list[int | None] = candidates.num_records.to_pylist()
    if candidates.is_exact:
        return SelectedRows(
            files=files,
            positions=(None,) * files.num_rows,
            num_records=tuple(counts),
            num_candidates=files.num_rows,
        )
    found: dict[int, list[pa.Int64Array]] = {}
    held = _HeldRows() if along else None
    progress = progress or ProgressCount(None)
    progress.expect(files.num_rows)
    has_ids = bool(along) and snapshot.configuration.row_ids_enabled
    hidden = (ROW_INDEX, ROW_ID, ROW_COMMIT_VERSION) if has_ids else (ROW_INDEX,)
    spec = read_spec(snapshot, columns=along, hidden=hidden, predicate=predicate)
    check_row_ids(snapshot, spec)
    allowance = None if held is None else held.allowance
    footers = FetchedFooters()
    tasks = progress.each(
        make_numbered_tasks(snapshot, spec, files, along=allowance, footers=footers)
    )
    for batch in read_tasks(tasks):
        if batch.num_rows:
            rows: Any = batch.column(ROW_INDEX)
            number: int = batch.column(FILE_NUMBER)[0].as_py()
            found.setdefault(number, []).append(rows)
            if held is not None:
                held.add(number, batch, is_whole=batch.num_columns == len(spec.output) + 1)
    selected = files.take(pa.array(list(found), pa.int64()))
    return SelectedRows(
        files=selected,
        positions=tuple(pa.concat_arrays(parts) for parts in found.values()),
        num_records=complete_counts(snapshot, selected, [counts[number] for number in found]),
        num_candidates=files.num_rows,
        held={} if held is None else held.by_file(list(found)),
        footers=footers,
    )


class _HeldRows:
    """Columns of matching rows in memory. A file is omitted if not all its rows fit."""

    def __init__(self) -> None:
        self.allowance = Allowance(MOST_HELD_BYTES)
        self._left = MOST_HELD_BYTES
        self._rows: dict[int, list[pa.RecordBatch]] = {}
        self._lacking: set[int] = set()

    def add(self, number: int, batch: pa.RecordBatch, *, is_whole: bool) -> None:
        """Store rows of a file. If columns are missing or memory is full, omit the whole file."""
        if number in self._lacking:
            return
        self._left -= batch.nbytes
        if is_whole and self._left >= 0:
            self._rows.setdefault(number, []).append(batch)
            return
        if self._left < 0:
            self.allowance.take(MOST_HELD_BYTES)
        self._lacking.add(number)
        for gone in self._rows.pop(number, ()):
            self._left += gone.nbytes

    def by_file(self, numbers: Sequence[int]) -> dict[int, list[pa.RecordBatch]]:
        """Return the stored rows: index of the file in `numbers` → batches."""
        return {place: self._rows[n] for place, n in enumerate(numbers) if n in self._rows}


def complete_counts(
    snapshot: Snapshot, files: pa.Table, counts: Sequence[int | None]
) -> tuple[int | None, ...]:
    """Return the number of physical rows of each file, from footers if the log lacks it."""
    paths: list[Any] = files.column("path").to_pylist()
    return tuple(
        read_footer(snapshot.store, decode_path(path)).num_rows if rows is None else rows
        for path, rows in zip(paths, counts, strict=True)
    )
