"""The physical files that a version still needs: data files and deletion vector files.

Owns their canonical paths. `vacuum` decides when a file is deleted; `repair` and `restore` act on
files that are missing.

Protocol: Action Reconciliation, Deletion Vectors
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.deletion_vectors import location
from deltalog.errors import ObjectNotFoundError
from deltalog.kernels import compute
from deltalog.log.listing import list_log
from deltalog.log.reader import read_commits
from deltalog.paths import canonical_path, canonical_paths
from deltalog.scan.plan import descriptor_of
from deltalog.snapshot import load_snapshot
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deltalog.snapshot import Snapshot

Paths = pa.StringArray
FILE_COLUMNS: Final = ("path", "deletionVector")
_VECTOR_FILE: Final = ("storageType", "pathOrInlineDv")


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededFiles:
    """Files that must not be deleted.

    Args:
        paths: canonical.
        names: file names of the paths outside of the table's root. Such a path may be an unknown
            spelling of the root, so files with these names are kept, too.
    """

    paths: Paths
    names: Paths

    def are_needed(self, paths: Any) -> Any:
        """Return a mask of the canonical paths below the root that must not be deleted."""
        needed = compute.is_in(paths, value_set=self.paths)
        if not len(self.names):
            return needed
        return compute.or_(needed, compute.is_in(names_of(paths), value_set=self.names))


def needed_files(
    snapshot: Snapshot, *, cutoff_ms: int, keep_versions: Sequence[int] = ()
) -> NeededFiles:
    """Return the files of live adds, of unexpired tombstones, and of versions to keep.

    A tombstone without a time has expired; one at exactly the cutoff has not (ledger D-17).

    Args:
        snapshot: the newest version.
        cutoff_ms: older tombstones have expired; milliseconds since 1970, UTC.
        keep_versions: versions of the same table that must stay readable.

    Raises:
        VersionNotFoundError, MalformedLogError: a version to keep cannot be read.
        DeltaProtocolError: a deletion vector has an unknown storage type.

    Cost: paths and deletion vectors of the log, once; Python touches only distinct vector files.
    """
    root = snapshot.store.root
    tombstones = snapshot.tombstones([*FILE_COLUMNS, "deletionTimestamp"])
    young = compute.greater_equal(deletion_times(tombstones), pa.scalar(cutoff_ms, pa.int64()))
    files = [snapshot.files(FILE_COLUMNS), tombstones.filter(young).select(FILE_COLUMNS)]
    for version in keep_versions:
        kept = load_snapshot(snapshot.context, version=version)
        files += [kept.files(FILE_COLUMNS), _changes_of(kept)]
    named = paths_of(pa.concat_tables(files), root)
    outside = compute.match_substring_regex(named, "^[A-Za-z][A-Za-z0-9+.-]*:/")
    return NeededFiles(paths=named, names=names_of(named.filter(outside)))


def paths_of(files: pa.Table, root: str) -> Paths:
    """Return canonical paths of data files and of their deletion vectors' files.

    Args:
        files: with `FILE_COLUMNS` as in the log.
        root: the table's location.
    """
    data: Any = canonical_paths(files.column("path"), root)
    vectors = vector_paths(files.column("deletionVector"), root)
    found: pa.StringArray = pa.concat_arrays([*data.chunks, vectors])
    return found


def vector_paths(vectors: Any, root: str) -> Paths:
    """Return distinct canonical paths of deletion vector files; inline vectors have none."""
    present = vectors.filter(vectors.is_valid())
    if not len(present):
        return pa.array([], pa.string())
    table = pa.table({name: compute.struct_field(present, name) for name in _VECTOR_FILE})
    table = table.filter(compute.not_equal(table.column("storageType"), "i"))
    distinct = table.group_by(list(_VECTOR_FILE), use_threads=False).aggregate([])
    found = {vector_path(row) for row in distinct.to_pylist()}
    return pa.array([canonical_path(path, root) for path in found if path], pa.string())


def vector_path(row: dict[str, Any]) -> str | None:
    """Return the decoded path of one deletion vector's file; None if it is inline.

    Args:
        row: of a `deletionVector` column; `storageType` and `pathOrInlineDv` are enough.
    """
    descriptor = descriptor_of({"offset": None, "sizeInBytes": 0, "cardinality": 0, **row})
    return None if descriptor is None else location(descriptor)


def deletion_times(tombstones: pa.Table) -> Any:
    """Return the time of each removal; 0 if `deletionTimestamp` is absent (ledger D-17)."""
    return compute.coalesce(tombstones.column("deletionTimestamp"), pa.scalar(0, pa.int64()))


def names_of(paths: Any) -> Any:
    """Return the file name of each path."""
    return compute.replace_substring_regex(paths, "(?s)^.*/", "")


def existing(snapshot: Snapshot, paths: Iterable[str]) -> set[str]:
    """Return the decoded paths at which the store has a file.

    Cost: one request each, several at a time.
    """
    asked = sorted(paths)
    store = snapshot.store

    def is_there(path: str) -> bool:
        try:
            store.stat(path)
        except ObjectNotFoundError:
            return False
        return True

    there = map_in_pool(is_there, asked, batch_size=16)
    return {path for path, found in zip(asked, there, strict=True) if found}


def _changes_of(kept: Snapshot) -> pa.Table:
    """Return the files that the change feed of a version also needs: cdc and removed files."""
    empty = kept.files(FILE_COLUMNS).slice(0, 0)
    if not kept.configuration.change_data_feed_enabled:
        return empty
    listing = list_log(kept.store, from_version=kept.version, log_tail=kept.log_tail)
    commit = listing.commits.get(kept.version)
    if commit is None:
        return empty
    actions = read_commits(kept.store, [commit])
    changes = actions.cdc.select(["path"]).append_column(
        "deletionVector", pa.nulls(actions.cdc.num_rows, empty.schema.field("deletionVector").type)
    )
    return pa.concat_tables([actions.removes.select(FILE_COLUMNS), changes])
