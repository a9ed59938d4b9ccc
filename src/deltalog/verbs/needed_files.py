"""Which physical files a version still needs: data files, and the files of deletion vectors.

Owns the paths only, in canonical form. When a file may go is `vacuum`'s to say, whether one is
there is `repair`'s and `restore`'s.

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
    """Files that must stay.

    Args:
        paths: canonical.
        names: last parts of those that are outside of the table's root: who spells the root in a
            way that nobody can tell from another place loses nothing.
    """

    paths: Paths
    names: Paths

    def are_needed(self, paths: Any) -> Any:
        """Which of some canonical paths below the root must stay."""
        needed = compute.is_in(paths, value_set=self.paths)
        if not len(self.names):
            return needed
        return compute.or_(needed, compute.is_in(names_of(paths), value_set=self.names))


def needed_files(
    snapshot: Snapshot, *, cutoff_ms: int, keep_versions: Sequence[int] = ()
) -> NeededFiles:
    """The files of live adds, of tombstones that have not expired, and of versions to be kept.

    A tombstone without a time has expired, and one from the very moment has not (ledger D-17).

    Args:
        snapshot: the newest version.
        cutoff_ms: tombstones from before have expired; milliseconds since 1970, UTC.
        keep_versions: of the same table.

    Raises:
        VersionNotFoundError, MalformedLogError: a version that is to be kept cannot be read.
        DeltaProtocolError: a deletion vector is stored in a way that nobody knows.

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
    """Canonical paths of data files and of the files of their deletion vectors.

    Args:
        files: with `FILE_COLUMNS` as they stand in the log.
        root: the table's location.
    """
    data: Any = canonical_paths(files.column("path"), root)
    vectors = vector_paths(files.column("deletionVector"), root)
    found: pa.StringArray = pa.concat_arrays([*data.chunks, vectors])
    return found


def vector_paths(vectors: Any, root: str) -> Paths:
    """Canonical paths of the files that hold deletion vectors, each once; inline ones have none."""
    present = vectors.filter(vectors.is_valid())
    if not len(present):
        return pa.array([], pa.string())
    table = pa.table({name: compute.struct_field(present, name) for name in _VECTOR_FILE})
    table = table.filter(compute.not_equal(table.column("storageType"), "i"))
    distinct = table.group_by(list(_VECTOR_FILE)).aggregate([])
    found = {vector_path(row) for row in distinct.to_pylist()}
    return pa.array([canonical_path(path, root) for path in found if path], pa.string())


def vector_path(row: dict[str, Any]) -> str | None:
    """Decoded path of the file of one vector: a row of a `deletionVector` column, or its place."""
    descriptor = descriptor_of({"offset": None, "sizeInBytes": 0, "cardinality": 0, **row})
    return None if descriptor is None else location(descriptor)


def deletion_times(tombstones: pa.Table) -> Any:
    """When each file was removed; 0 where nobody wrote it down (ledger D-17)."""
    return compute.coalesce(tombstones.column("deletionTimestamp"), pa.scalar(0, pa.int64()))


def names_of(paths: Any) -> Any:
    """The last part of every path."""
    return compute.replace_substring_regex(paths, "(?s)^.*/", "")


def existing(snapshot: Snapshot, paths: Iterable[str]) -> set[str]:
    """Those of some decoded paths at which the store has a file.

    Cost: one request each, several at a time.
    """
    asked = list(paths)
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
    """What the change feed of one version needs besides: its change files, and what it removed."""
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
