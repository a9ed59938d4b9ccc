"""Change rows of existing files, by deletion vectors or by rewriting the files.

Owns how UPDATE and MERGE of this process apply a `FileDecision` to each file: a file without
remaining rows is removed; a masked file gets a deletion vector, and the new versions of its rows go
into new files; a rewritten file is written again with all its rows in their order. Rows keep their
row ids, and pre-images and post-images go to the change data feed.

Protocol: Deletion Vectors, Row Tracking, Add CDC File
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from deltalog.deletion_vectors import DeletionBitmap, inline_descriptor
from deltalog.errors import InternalError
from deltalog.kernels import Array, arrow, compute, exact_sum
from deltalog.metadata_columns import FILE_NUMBER, ROW_COMMIT_VERSION, ROW_ID, ROW_INDEX
from deltalog.progress import ProgressCount
from deltalog.rows import kept_groups
from deltalog.rows.decide import FileDecision, copied_rows
from deltalog.rows.kept_groups import KeptGroups
from deltalog.rows.planned import FileCounts
from deltalog.scan.plan import make_numbered_tasks
from deltalog.scan.reader import read_tasks
from deltalog.scan.spec import read_spec
from deltalog.schema.conform import conform
from deltalog.transaction.masks import write_masks
from deltalog.write.open_files import random_prefix

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from deltalog.rows.find import SelectedRows
    from deltalog.scan.task import ScanTask
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction
    from deltalog.write.changes import ChangeWriter
    from deltalog.write.files import FileWriter


@dataclass(frozen=True, slots=True)
class NewVersions:
    """The new versions of a batch of old rows, some of which may be deleted instead.

    Args:
        rows: the new versions of the updated rows, in order, in the schema that the table will
            have after the commit.
        is_updated: True for updated rows, False for deleted ones; None if all are updated.
    """

    rows: pa.RecordBatch
    is_updated: pa.BooleanArray | None = None


class RowUpdate(Protocol):
    """A function that computes the new versions of rows."""

    def __call__(self, file: int, first: int, old: pa.RecordBatch) -> NewVersions:
        """Return the new versions of the rows.

        Args:
            file: index into `SelectedRows.files`.
            first: number of the file's matching rows that were passed in earlier calls.
            old: matching rows before the change, in the schema that the table will have.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdits:
    """Which rows of which files change, and what is done to each file.

    Args:
        selected: the files, and the positions of the rows that change, ascending.
        updates: for each file, whether any of its rows gets a new version.
        columns: the columns that may differ between old and new versions.
        reads: the old columns that new versions are computed from; None means all.
        decisions: drop, mask or rewrite, for each file.
        progress: counted in files read.
    """

    selected: SelectedRows
    updates: Sequence[bool]
    columns: Collection[str]
    decisions: Sequence[FileDecision]
    reads: Collection[str] | None = None
    progress: ProgressCount = field(default_factory=lambda: ProgressCount(None))


def file_counts(selected: SelectedRows, decisions: Sequence[FileDecision]) -> FileCounts:
    """Return the file metrics of edits, without reading any data file."""
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
        edits: which rows of which files change.
        change: computes the new versions.
        writer: writes them to data files.
        feed: writes change data files; None if the change data feed is off.

    Cost: all columns of the row groups that hold updated rows, and in rewritten files also of those
    that cannot be copied as they are stored (`rows.kept_groups`). Files that are removed whole are
    not read.
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
        self._copied = 0

    def write_rows(self) -> None:
        progress = self._edits.progress
        progress.expect(sum(self._is_read(number) for number in range(len(self._done))))
        for number, batches in self._selected.held.items():
            for batch in batches if self._is_held(number) else ():
                self._take(number, batch)
        for batch in read_tasks(self._kept.tasks(progress.each(self._tasks()))):
            if batch.num_rows:
                self._take(batch.column(FILE_NUMBER)[0].as_py(), batch)
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
        """The rows that change in a file that is rewritten; None for other files."""
        positions = self._selected.positions[number]
        if self._edits.decisions[number] is not FileDecision.REWRITTEN or positions is None:
            return None
        return DeletionBitmap.from_arrow(positions)

    def _columns_to_read(self) -> list[str]:
        """All columns, or only `edits.reads` if neither copies nor change data need the others."""
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
        return copies or (tells and not self._is_held(number))

    def _is_held(self, number: int) -> bool:
        """Whether all that is needed of a file was read when its rows were found."""
        copies = self._edits.decisions[number] is FileDecision.REWRITTEN
        return not copies and number in self._selected.held

    def _only_selected(self, task: ScanTask, number: int) -> ScanTask:
        """The task, limited to the matching rows if the file is masked."""
        positions = self._selected.positions[number]
        if self._edits.decisions[number] is not FileDecision.MASKED or positions is None:
            return task
        wanted = inline_descriptor(DeletionBitmap.from_arrow(positions))
        return replace(task, deletion_vector=wanted, only_deleted=True)

    def _take(self, number: int, batch: pa.RecordBatch) -> None:
        """Write the changed rows of a batch, and also the unchanged ones if the file is rewritten.

        A batch never spans two files.
        """
        place = (number, batch.column(ROW_INDEX)[0].as_py())
        ids = [batch.column(name) for name in (ROW_ID, ROW_COMMIT_VERSION)] if self._has_ids else []
        rows = batch.column(ROW_INDEX)
        names = [name for name in self._names if name in batch.schema.names]
        old = conform(batch.select(names), self._schema)
        positions = self._selected.positions[number]
        if self._edits.decisions[number] is not FileDecision.REWRITTEN or positions is None:
            self._write(place, ids, self._changed(number, old))
            return
        rest = positions.slice(self._done[number])
        is_hit = compute.is_in(rows, value_set=rest)
        if not is_hit.true_count:
            self._copied += old.num_rows
            self._put(place, old, ids)
            return
        changed = self._changed(number, old.filter(is_hit))
        self._copied += old.num_rows - is_hit.true_count
        self._put(place, *self._merged(old, ids, is_hit, changed))

    def _changed(self, number: int, old: pa.RecordBatch) -> NewVersions:
        first = self._done[number]
        self._done[number] += old.num_rows
        changed = self._change(number, first, old)
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
            # Row Tracking: NULL is read as the commit version of the file that this commit adds.
            ids[1] = pa.nulls(changed.rows.num_rows, pa.int64())
        self._put(place, changed.rows, ids)

    def _merged(
        self, old: pa.RecordBatch, ids: list[Array], is_hit: Array, changed: NewVersions
    ) -> tuple[pa.RecordBatch, list[Array]]:
        """Unchanged rows and new versions together, in the order of the file."""
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
        """Write rows of a file, the first of which was at this place (file, physical position)."""
        if not rows.num_rows:
            return
        if ids:
            self._kept.write(*place, rows, row_ids=ids[0], row_commit_versions=ids[1])
        else:
            self._kept.write(*place, rows)

    def stage(self) -> FileCounts:
        """Stage removals and deletion vectors; return the metrics with the counted copies."""
        stage_files(self._transaction, self._selected, self._edits.decisions)
        done = file_counts(self._selected, self._edits.decisions)
        return replace(done, num_copied_rows=self._copied)


def stage_files(
    transaction: PendingTransaction, selected: SelectedRows, decisions: Sequence[FileDecision]
) -> None:
    """Stage the removal of files that are dropped or rewritten, and the masks of the others.

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
    """Stage files again with deletion vectors that add the matching rows to the deleted ones.

    Args:
        transaction: transaction on the table.
        selected: the files, and the positions of their matching rows.
        numbers: indices of the files to mask; each keeps at least one row.
    """
    bitmaps = []
    for number in numbers:
        positions = selected.positions[number]
        if positions is None:
            raise InternalError("a file of which all rows change needs no deletion vector")
        bitmaps.append(DeletionBitmap.from_arrow(positions))
    properties = transaction.configuration.properties
    transaction.mask_rows(
        write_masks(
            transaction.store,
            selected.files.take(pa.array(numbers, pa.int64())),
            bitmaps,
            [selected.num_records[number] or 0 for number in numbers],
            prefix=random_prefix(properties) if properties.randomize_file_prefixes else "",
        )
    )


def _spliced(old: Array, mask: Array, new: Array) -> Array:
    """`old` with the k-th row where `mask` is true replaced by the k-th value of `new`."""
    kind = old.type
    is_other = isinstance(kind, pa.BaseExtensionType) or pa.types.is_duration(kind)
    if not (pa.types.is_nested(kind) or is_other):
        return compute.replace_with_mask(old, mask, new)
    # `replace_with_mask` has no kernel for such types: take from old and new concatenated.
    after = compute.cumulative_sum(mask.cast(pa.int64()))
    places = arrow.arange(0, len(old))
    picks = compute.if_else(mask, compute.add(after, len(old) - 1), places)
    return pa.concat_arrays([old, new]).take(picks)
