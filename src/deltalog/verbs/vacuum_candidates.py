"""Candidates for vacuum: from a listing of the table's directory, an inventory, or the log.

Owns which files are old enough to be deleted. `needed_files` decides which are still needed.

Protocol: none; Delta Spark's vacuum (ledger D-46, D-47, D-49)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.engine.listing import LISTING_SCHEMA, visible
from deltalog.errors import InvalidInputError
from deltalog.kernels import compute
from deltalog.log.listing import list_log
from deltalog.log.reader import (
    VERSION_COLUMN,
    concat_commits,
    parse_commits,
    read_commits,
    read_in_batches,
)
from deltalog.names import name_key
from deltalog.paths import canonical_path, canonical_paths
from deltalog.storage.atomic import TEMPORARY_NAME
from deltalog.storage.staging import STAGING_NAME
from deltalog.verbs.needed_files import deletion_times, vector_paths

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.configuration import TableConfiguration
    from deltalog.log.names import LogFile
    from deltalog.log.reader import CommitTable
    from deltalog.snapshot import Snapshot
    from deltalog.storage.store import Store

_VACUUM_FIELDS: Final[list[pa.Field[Any]]] = [
    pa.field("path", pa.string(), nullable=False),
    pa.field("size_bytes", pa.int64()),
    pa.field("modification_time", pa.timestamp("ms", "UTC")),
    pa.field("reason", pa.string(), nullable=False),
]
VACUUM_SCHEMA: Final = pa.schema(_VACUUM_FIELDS)
"""A file that vacuum deletes; in lite mode, times and some sizes are NULL."""

REMOVED: Final = "removed from the table"
UNKNOWN: Final = "not in the log"
CHANGES: Final = "change data"
VECTORS: Final = "deletion vectors"
TEMPORARY: Final = "temporary file of a write that was cut off"

_REMOVE_COLUMNS: Final = ("path", "size", "deletionTimestamp", "deletionVector")
_GONE_KINDS: Final = (b'"remove"', b'"cdc"')
_VECTOR_NAME: Final = r"(?:^|/)deletion_vector_[0-9a-fA-F-]{36}\.bin$"
_INVENTORY_NAMES: Final = {
    "size_bytes": ("length", "size", "size_bytes"),
    "modification_time": ("modificationtime", "modification_time"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteVacuum:
    """How far an earlier lite vacuum came.

    Args:
        swept_version: all files that this version and older ones removed are deleted.
        cutoff_ms: all files that were removed earlier are deleted; milliseconds since 1970, UTC;
            None if unknown.
    """

    swept_version: int
    cutoff_ms: int | None


def inventory_files(
    inventory: pa.RecordBatchReader, store: Store, configuration: TableConfiguration
) -> pa.Table:
    """Return a listing of files from a table of the caller, such as a bucket's inventory.

    Args:
        inventory: `path` (a location, or relative to the root; not percent-encoded), `length` in
            bytes, `modificationTime` in milliseconds or as a timestamp, and optionally `isDir`.
            Files outside of the root are left out.
        store: of the table.
        configuration: of the table.

    Raises:
        InvalidInputError: a column is missing.
    """
    names = {name_key(name): name for name in inventory.schema.names}
    wanted = {"path": ("path",), **_INVENTORY_NAMES}
    chosen = {
        column: next(names[text] for text in spellings if text in names)
        for column, spellings in wanted.items()
        if not names.keys().isdisjoint(spellings)
    }
    missing = [column for column in wanted if column not in chosen]
    if missing:
        raise InvalidInputError(
            f"cannot vacuum by this inventory: it lacks {', '.join(missing)}; expected the columns "
            f"path, length and modificationTime, found {', '.join(inventory.schema.names)}"
        )
    tables = [LISTING_SCHEMA.empty_table()]
    for batch in inventory:
        rows = pa.Table.from_batches([batch])
        if "isdir" in names:
            rows = rows.filter(compute.invert(rows.column(names["isdir"])))
        found: dict[str, Any] = {column: rows.column(name) for column, name in chosen.items()}
        times = found["modification_time"]
        if pa.types.is_timestamp(times.type):
            found["modification_time"] = times.cast(pa.timestamp("ms", times.type.tz), safe=False)
        texts: list[str] = found["path"].to_pylist()
        found["path"] = pa.array([canonical_path(text, store.root) for text in texts], pa.string())
        listed = pa.table(found).cast(LISTING_SCHEMA)
        tables.append(visible(confined(listed), configuration))
    return pa.concat_tables(tables)


def old_files(snapshot: Snapshot, listed: pa.Table, *, cutoff_ms: int) -> pa.Table:
    """Return the listed files that were modified before the cutoff, each with a reason.

    Newer files may belong to a commit that is still in progress.

    Returns:
        A table with `VACUUM_SCHEMA`.
    """
    times = listed.column("modification_time")
    old = listed.filter(compute.less(times, pa.scalar(cutoff_ms, pa.int64())))
    paths = old.column("path")
    removed = snapshot.tombstones(["path"]).column("path")
    known: Any = canonical_paths(removed, snapshot.store.root)
    reasons = compute.if_else(
        compute.is_in(paths, value_set=known.combine_chunks()), REMOVED, UNKNOWN
    )
    reasons = compute.if_else(compute.match_substring_regex(paths, _VECTOR_NAME), VECTORS, reasons)
    reasons = compute.if_else(compute.starts_with(paths, "_change_data/"), CHANGES, reasons)
    left = compute.match_substring_regex(paths, f"(?:^|/){TEMPORARY_NAME}|^{STAGING_NAME}/")
    reasons = compute.if_else(left, TEMPORARY, reasons)
    columns: list[Any] = [
        paths,
        old.column("size_bytes"),
        old.column("modification_time").cast(pa.timestamp("ms", "UTC")),
        reasons,
    ]
    return pa.Table.from_arrays(columns, schema=VACUUM_SCHEMA)


def removed_files(
    snapshot: Snapshot, *, cutoff_ms: int, since: LiteVacuum | None
) -> tuple[pa.Table, int | None]:
    """Return the files of expired removes in the log, and old change data files.

    Checkpoints leave out expired tombstones, so older commits are read as well.

    Args:
        snapshot: the newest version.
        cutoff_ms: earlier removes have expired; milliseconds since 1970, UTC.
        since: an earlier lite vacuum, whose files are left out.

    Returns:
        A table with `VACUUM_SCHEMA` of distinct paths below the root; and the newest version whose
        removes have all expired.

    Cost: the commits that the log has since that vacuum; no listing of data files.
    """
    listing = list_log(
        snapshot.store,
        from_version=0 if since is None else since.swept_version,
        log_tail=snapshot.log_tail,
    )
    commits = {
        version: file for version, file in listing.commits.items() if version <= snapshot.version
    }
    older = _read_behind_checkpoint(snapshot, commits)
    removes = pa.concat_tables(
        [snapshot.tombstones(_REMOVE_COLUMNS), older.removes.select(_REMOVE_COLUMNS)]
    )
    old_versions = list(
        takewhile(lambda version: commits[version].info.modified_ms < cutoff_ms, sorted(commits))
    )
    cdc = pa.concat_tables([older.cdc, snapshot.read_log(lambda state: state.commits.cdc)])
    is_old = compute.is_in(cdc.column(VERSION_COLUMN), value_set=pa.array(old_versions, pa.int64()))
    files = _gone(
        snapshot.store.root,
        _expired(removes, cutoff_ms, since),
        cdc.filter(is_old),
        may_repeat=older.removes.num_rows > 0,
    )
    # A malformed log may contain a `remove` for a file of `_delta_log` itself: never delete that.
    return visible(files, snapshot.configuration), max(old_versions, default=None)


def _read_behind_checkpoint(snapshot: Snapshot, commits: Mapping[int, LogFile]) -> CommitTable:
    """Read actions of commits before the checkpoint that the checkpoint does not contain.

    These are removes that had expired when it was written, and all `cdc` actions.
    """
    checkpoint = snapshot.segment.checkpoint
    if checkpoint is None:
        return read_commits(snapshot.store, [])
    written_ms = min(file.modified_ms for file in checkpoint.files)
    forgotten_ms = written_ms - snapshot.configuration.properties.deleted_file_retention_ms
    has_changes = snapshot.configuration.supports("changeDataFeed")
    files = [
        file
        for version, file in commits.items()
        if version <= checkpoint.version and (has_changes or file.info.modified_ms < forgotten_ms)
    ]
    return concat_commits(
        [
            parse_commits([(file, _lines_with(_GONE_KINDS, data)) for file, data in batch])
            for batch in read_in_batches(snapshot.store, files)
        ]
    )


def _lines_with(words: Sequence[bytes], data: bytes) -> bytes:
    """Return the lines that contain any of the words, to avoid parsing most commits."""
    if not any(word in data for word in words):
        return b""
    lines = data.split(b"\n")
    return b"\n".join(line for line in lines if any(word in line for word in words))


def _expired(removes: pa.Table, cutoff_ms: int, since: LiteVacuum | None) -> pa.Table:
    times = deletion_times(removes)
    expired = compute.less(times, pa.scalar(cutoff_ms, pa.int64()))
    if since is not None and since.cutoff_ms is not None:
        # Removes without a time may be newer than the earlier vacuum, so they stay candidates.
        later = compute.greater_equal(times, pa.scalar(since.cutoff_ms, pa.int64()))
        timeless = removes.column("deletionTimestamp").is_null()
        expired = compute.and_(expired, compute.or_(later, timeless))
    return removes.filter(expired)


def _gone(root: str, removes: pa.Table, changes: pa.Table, *, may_repeat: bool) -> pa.Table:
    vectors = vector_paths(removes.column("deletionVector"), root)
    parts = [
        _with_reason(canonical_paths(removes.column("path"), root), removes["size"], REMOVED),
        _with_reason(canonical_paths(changes.column("path"), root), changes["size"], CHANGES),
        _with_reason(vectors, pa.nulls(len(vectors), pa.int64()), VECTORS),
    ]
    files = pa.concat_tables(parts)
    # Tombstones of one snapshot have distinct paths unless deletion vectors tell them apart.
    has_vectors = removes.column("deletionVector").null_count < removes.num_rows
    return confined(_distinct(files) if may_repeat or has_vectors else files)


def confined(files: pa.Table) -> pa.Table:
    """Return the files whose canonical paths are certainly below the root."""
    paths = files.column("path")
    odd = compute.match_substring_regex(paths, r"^[A-Za-z][A-Za-z0-9+.-]*:/|\.\.|[\\\x00]|^/|^$")
    return files.filter(compute.invert(odd)) if compute.any(odd).as_py() else files


def _with_reason(paths: Any, sizes: Any, reason: str) -> pa.Table:
    columns: list[Any] = [
        paths,
        sizes,
        pa.nulls(len(paths), pa.timestamp("ms", "UTC")),
        pa.repeat(pa.scalar(reason), len(paths)),
    ]
    return pa.Table.from_arrays(columns, schema=VACUUM_SCHEMA)


def _distinct(files: pa.Table) -> pa.Table:
    """Return the first row of each path."""
    codes: Any = files.column("path").combine_chunks().dictionary_encode().indices
    if not len(codes):
        return files
    highest = compute.cumulative_max(codes)
    first = pa.concat_arrays([pa.array([True]), compute.greater(highest[1:], highest[:-1])])
    return files.filter(first)
