"""Delete: rows that match a predicate leave the table.

Owns what happens to each file: removed whole, given a deletion vector, or rewritten without the
rows. Overwriting by predicate deletes this way, too.

Protocol: Deletion Vectors, Add File and Remove File, Add CDC File
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deltalog.clock import Stopwatch
from deltalog.errors import InternalError
from deltalog.progress import Steps
from deltalog.rows.apply import mask_files
from deltalog.rows.copy import ROW_GROUP_BYTES, copy_rows, read_rows
from deltalog.rows.decide import Fate, choose_fates, copied_rows, explain_fates
from deltalog.rows.find import find_touched
from deltalog.schema.conform import conform
from deltalog.write.changes import ChangeWriter
from deltalog.write.files import FileWriter
from deltalog.write.parts import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.expressions import Expression
    from deltalog.progress import OnProgress
    from deltalog.rows.find import Touched
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction
    from deltalog.verbs.append import FileOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What a deletion did.

    Args:
        num_rows: that were deleted; None where the log does not tell it of whole files.
        num_removed_files: data files that are no longer live.
        num_removed_bytes: size of those.
        num_copied_rows: that were written once more.
        num_added_files: new data files with them.
        num_added_bytes: size of those.
        num_rewritten_files: of the removed ones, those of which rows were written once more.
        num_masked_files: files that got a deletion vector.
        num_vectors_updated: of those, files that had one before.
        num_vectors_removed: deletion vectors that are no longer live.
        num_change_files: if there is any, change files must tell of all the commit changes.
        scan_time_ms: for finding the rows.
        rewrite_time_ms: for writing vectors or files.
    """

    num_rows: int | None
    num_removed_files: int
    num_removed_bytes: int
    num_copied_rows: int = 0
    num_added_files: int = 0
    num_added_bytes: int = 0
    num_rewritten_files: int = 0
    num_masked_files: int = 0
    num_vectors_updated: int = 0
    num_vectors_removed: int = 0
    num_change_files: int = 0
    scan_time_ms: int = 0
    rewrite_time_ms: int = 0

    def metrics(self) -> dict[str, int]:
        """As the history tells them."""
        found = {
            "numDeletedRows": self.num_rows,
            "numCopiedRows": self.num_copied_rows,
            "numRemovedFiles": self.num_removed_files,
            "numRemovedBytes": self.num_removed_bytes,
            "numAddedFiles": self.num_added_files,
            "numAddedBytes": self.num_added_bytes,
            "numDeletionVectorsAdded": self.num_masked_files,
            "numDeletionVectorsUpdated": self.num_vectors_updated,
            "numDeletionVectorsRemoved": self.num_vectors_removed,
            "numAddedChangeFiles": self.num_change_files,
            "executionTimeMs": self.scan_time_ms + self.rewrite_time_ms,
            "scanTimeMs": self.scan_time_ms,
            "rewriteTimeMs": self.rewrite_time_ms,
        }
        return {name: value for name, value in found.items() if value is not None}


def stage_delete(
    pending: PendingTransaction,
    predicate: Expression | None,
    *,
    options: FileOptions,
    use_deletion_vectors: bool | None = None,
    progress: OnProgress | None = None,
) -> Deleted:
    """Remove the rows for which a predicate is true.

    Args:
        pending: of an existing table.
        predicate: resolved against the snapshot's schema; None is every row.
        options: of files that are rewritten.
        use_deletion_vectors: for files that keep rows; None chooses, see `fates`.
        progress: told how many files of how many are read; what it raises ends the work.

    Raises:
        InvalidInputError: deletion vectors are asked for, and the table does not allow them.

    Cost: `find_touched`; then one small request for all deletion vectors, or a copy of the rows
    that stay in the files that are cut.
    """
    snapshot = _snapshot_of(pending)
    watch, steps = Stopwatch(), Steps(progress)
    touched = find_touched(snapshot, predicate, steps=steps)
    scan_time_ms = watch.elapsed_ms()
    pending.read(predicate, touched.files, is_row_local=True)
    fates = choose_fates(snapshot, touched, asked=use_deletion_vectors, tells_rows=False)
    deleted = _planned(touched, fates, scan_time_ms)
    pending.remove_files(_of(touched, fates, Fate.REMOVED), data_change=True)
    if deleted.num_masked_files:
        mask_files(pending, touched, _numbers(fates, Fate.MASKED))
    if deleted.num_rewritten_files and predicate is not None:
        cut = _numbers(fates, Fate.REWRITTEN)
        deleted = _rewrite(pending, touched, cut, predicate, deleted, options=options, steps=steps)
    return replace(deleted, rewrite_time_ms=watch.elapsed_ms() - scan_time_ms)


def preview_delete(
    snapshot: Snapshot,
    predicate: Expression | None,
    *,
    options: FileOptions,
    use_deletion_vectors: bool | None = None,
) -> tuple[Deleted, pa.Table]:
    """What a deletion would do, and for each file what and why; nothing is written.

    Args and Raises as `stage_delete`.
    """
    watch = Stopwatch()
    touched = find_touched(snapshot, predicate)
    fates = choose_fates(snapshot, touched, asked=use_deletion_vectors, tells_rows=False)
    found = replace(
        _planned(touched, fates, watch.elapsed_ms()), num_copied_rows=copied_rows(touched, fates)
    )
    return found, explain_fates(touched, fates)


def _planned(touched: Touched, fates: Sequence[Fate], scan_time_ms: int) -> Deleted:
    """What is known before anything is written."""
    masked = _of(touched, fates, Fate.MASKED)
    vectors: Any = touched.files.column("deletionVector")
    had: Any = masked.column("deletionVector")
    return Deleted(
        num_rows=touched.num_rows,
        num_vectors_removed=len(vectors) - vectors.null_count,
        num_removed_files=touched.files.num_rows - masked.num_rows,
        num_removed_bytes=_sum(touched.files) - _sum(masked),
        num_rewritten_files=len(_numbers(fates, Fate.REWRITTEN)),
        num_masked_files=masked.num_rows,
        num_vectors_updated=len(had) - had.null_count,
        scan_time_ms=scan_time_ms,
    )


def _numbers(fates: Sequence[Fate], fate: Fate) -> list[int]:
    return [number for number, found in enumerate(fates) if found is fate]


def _of(touched: Touched, fates: Sequence[Fate], fate: Fate) -> pa.Table:
    """The files of one fate."""
    return touched.files.take(pa.array(_numbers(fates, fate), pa.int64()))


def _rewrite(
    pending: PendingTransaction,
    touched: Touched,
    cut: Sequence[int],
    predicate: Expression,
    planned: Deleted,
    *,
    options: FileOptions,
    steps: Steps,
) -> Deleted:
    """Write the rows that stay into new files, and for the change feed those that do not."""
    snapshot = _snapshot_of(pending)
    files = touched.files.take(pa.array(cut, pa.int64()))
    pending.remove_files(files, data_change=True)
    spec = options.spec_for(pending)
    # Which may have more columns than the rows that are there.
    schema = spec.configuration.arrow_schema
    with FileWriter(spec, limits=Limits(row_group_bytes=ROW_GROUP_BYTES)) as writer:
        copied = copy_rows(
            snapshot,
            files,
            writer,
            schema,
            without=[touched.positions[number] for number in cut],
            steps=steps,
        )
        written = writer.finish()
    pending.add_files(written)
    told = len(pending.cdc)
    if snapshot.configuration.change_data_feed_enabled:
        with ChangeWriter(spec) as changes:
            for batch in read_rows(snapshot, touched.files, predicate=predicate, steps=steps):
                changes.write(conform(batch, schema), "delete")
            pending.add_changes(changes.finish())
    return replace(
        planned,
        num_copied_rows=copied,
        num_added_files=len(written.adds),
        num_added_bytes=written.num_bytes,
        num_change_files=len(pending.cdc) - told,
    )


def _snapshot_of(pending: PendingTransaction) -> Snapshot:
    if pending.snapshot is None:
        raise InternalError("there is nothing to delete in a table that is to be made")
    return pending.snapshot


def _sum(files: pa.Table) -> int:
    return pc.sum(files.column("size")).as_py() or 0
