"""Repair: remove files from the table that the log references but that no longer exist.

The rows of these files are already lost. After the repair, the other rows can be read again.

Protocol: Add File and Remove File
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from deltalog._util.kernels import compute, exact_sum
from deltalog._util.paths import canonical_paths, decode_path
from deltalog.operations.operation import Operation
from deltalog.operations.vacuum import existing, vector_path

if TYPE_CHECKING:
    from deltalog._util.cards import ProgressCount
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.engine import Engine
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFiles:
    """Live files whose data file or deletion vector file is missing.

    Args:
        files: rows of `snapshot.files` whose data file is missing.
        without_vector: decoded paths of data files whose deletion vector file is missing. It is
            unknown which of their rows are deleted.
    """

    files: pa.Table
    without_vector: tuple[str, ...]

    @property
    def paths(self) -> list[str]:
        """Decoded paths of the missing data files."""
        texts: list[Any] = self.files.column("path").to_pylist()
        return [decode_path(text) for text in texts]

    def result(self) -> dict[str, Any]:
        """Return the paths of removed files, and of files whose deletion vector file is missing."""
        return {
            "dry_run": False,
            "files_removed": self.paths,
            "files_without_deletion_vector": list(self.without_vector),
        }

    def metrics(self) -> dict[str, int]:
        """Return the `operationMetrics`; empty if nothing was removed."""
        if not self.files.num_rows:
            return {}
        return {
            "numRemovedFiles": self.files.num_rows,
            "numRemovedBytes": exact_sum(self.files.column("size")),
        }


def find_lost_files(snapshot: Snapshot, progress: ProgressCount | None = None) -> LostFiles:
    """Find the live files whose data file or deletion vector file is missing.

    Args:
        snapshot: the version whose files are looked for.
        progress: counts the files that need a request.

    Cost: one listing of the table, one request for each data file that is not in the listing (such
    as files outside of the table's root), and one for each deletion vector file.
    """
    files = snapshot.files()
    listed = pa.array([info.path for info in snapshot.store.list_all("")], pa.string())
    paths = canonical_paths(files.column("path"), snapshot.store.root)
    doubtful = files.filter(compute.invert(compute.is_in(paths, value_set=listed)))
    texts: list[Any] = doubtful.column("path").to_pylist()
    decoded = [decode_path(text) for text in texts]
    # Check each file again, because the listing may be stale or spell paths differently.
    there = existing(snapshot, decoded, progress)
    lost = [path not in there for path in decoded]
    gone = doubtful.filter(pa.array(lost, pa.bool_()))
    return LostFiles(files=gone, without_vector=_without_vector(snapshot, files, progress))


@dataclass(frozen=True, slots=True)
class Repair(Operation[LostFiles]):
    """Remove the files whose data file is missing.

    A file whose deletion vector file is missing does not change, because removing the file would
    lose rows, and removing its deletion vector would restore deleted rows.
    """

    name: ClassVar[str] = "FSCK"
    skips_empty: ClassVar[bool] = True

    def stage(self, transaction: PendingTransaction, engine: Engine) -> LostFiles:
        """Find the missing files and remove them from the table."""
        del engine
        lost = find_lost_files(transaction.read_snapshot, transaction.progress)
        if lost.files.num_rows:
            transaction.record_read_files(lost.files)
            transaction.remove_files(lost.files, data_change=True)
        return lost

    def preview(self, transaction: PendingTransaction, engine: Engine) -> dict[str, Any]:
        """Return the missing files; nothing is removed."""
        del engine
        return {**find_lost_files(transaction.read_snapshot).result(), "dry_run": True}


def _without_vector(
    snapshot: Snapshot, files: pa.Table, progress: ProgressCount | None
) -> tuple[str, ...]:
    masked = files.select(["path", "deletionVector"])
    masked = masked.filter(masked.column("deletionVector").is_valid())
    rows: list[dict[str, Any]] = masked.to_pylist()
    places = [(decode_path(row["path"]), vector_path(row["deletionVector"])) for row in rows]
    there = existing(snapshot, {place for _, place in places if place is not None}, progress)
    return tuple(path for path, place in places if place is not None and place not in there)
