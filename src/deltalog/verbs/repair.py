"""Repair: files that the log names and the store has lost leave the table.

Owns the search. Rows of such files are gone whatever is done; without them the rest can be read.

Protocol: Add File and Remove File
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from deltalog.kernels import compute
from deltalog.paths import canonical_paths, decode_path
from deltalog.verbs.needed_files import existing, vector_path
from deltalog.verbs.verb import Verb

if TYPE_CHECKING:
    from deltalog.engine import Engine
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFiles:
    """Live files of which something is missing.

    Args:
        files: rows of `snapshot.files` whose data file is no more.
        without_vector: decoded paths of data files that are there, and whose deletion vector is
            not: nobody can tell which of their rows are deleted.
    """

    files: pa.Table
    without_vector: tuple[str, ...]

    @property
    def paths(self) -> list[str]:
        """Decoded paths of the data files that are no more."""
        texts: list[Any] = self.files.column("path").to_pylist()
        return [decode_path(text) for text in texts]

    def result(self) -> dict[str, Any]:
        """As users get them."""
        return {
            "dry_run": False,
            "files_removed": self.paths,
            "files_without_deletion_vector": list(self.without_vector),
        }

    def metrics(self) -> dict[str, int]:
        """As the history tells them; nothing where nothing was removed."""
        if not self.files.num_rows:
            return {}
        return {
            "numRemovedFiles": self.files.num_rows,
            "numRemovedBytes": pc.sum(self.files.column("size")).as_py() or 0,
        }


def find_lost_files(snapshot: Snapshot) -> LostFiles:
    """The live files that the store does not have.

    Cost: one listing of the table; a request for each file that it does not show, and for each
    file elsewhere.
    """
    files = snapshot.files()
    listed = pa.array([info.path for info in snapshot.store.list_all("")], pa.string())
    paths = canonical_paths(files.column("path"), snapshot.store.root)
    doubtful = files.filter(compute.invert(compute.is_in(paths, value_set=listed)))
    texts: list[Any] = doubtful.column("path").to_pylist()
    decoded = [decode_path(text) for text in texts]
    there = existing(snapshot, decoded)  # a listing may be behind, or know other spellings
    lost = [path not in there for path in decoded]
    gone = doubtful.filter(pa.array(lost, pa.bool_()))
    return LostFiles(files=gone, without_vector=_without_vector(snapshot, files))


@dataclass(frozen=True, slots=True)
class Repair(Verb[LostFiles]):
    """Remove the files that are no more.

    A file that only lacks its deletion vector stays: to remove it would lose rows, and to read it
    without would bring deleted ones back.
    """

    name: ClassVar[str] = "FSCK"
    skips_empty: ClassVar[bool] = True

    def stage(self, transaction: PendingTransaction, engine: Engine) -> LostFiles:
        """Find and remove them."""
        del engine
        lost = find_lost_files(transaction.base)
        if lost.files.num_rows:
            transaction.read_files(lost.files)
            transaction.remove_files(lost.files, data_change=True)
        return lost

    def preview(self, transaction: PendingTransaction, engine: Engine) -> dict[str, Any]:
        """Find them."""
        del engine
        return {**find_lost_files(transaction.base).result(), "dry_run": True}


def _without_vector(snapshot: Snapshot, files: pa.Table) -> tuple[str, ...]:
    masked = files.select(["path", "deletionVector"])
    masked = masked.filter(masked.column("deletionVector").is_valid())
    rows: list[dict[str, Any]] = masked.to_pylist()
    places = [(decode_path(row["path"]), vector_path(row["deletionVector"])) for row in rows]
    there = existing(snapshot, {place for _, place in places if place is not None})
    return tuple(path for path, place in places if place is not None and place not in there)
