"""Rebase a transaction onto a winning commit: check for conflicts and merge deletion vectors.

Two writers that mark different rows of one file as deleted do not conflict (row-level concurrency).
Suppose that the winning commit has added rows to a file's deletion vector, but none of the rows
that this transaction marks. Then the transaction writes the union of both deletion vectors, and
replaces the file's entry of the winning commit instead of the entry that it read.

The result is the same as if the operation had run after the winning commit: it marks no row that
the winning commit deleted, the other rows have the same values as before, and added rows are
checked for conflicts as usual. This is only true if the operation decides about each row by that
row's values alone (`ReadSet.is_row_local`). It is not true for a merge that inserts unmatched rows,
or for a condition on the whole table.

Protocol: Deletion Vectors
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.paths import canonical_paths
from deltalog.errors import DeltaError
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.transaction.assemble import CommitBase, advance, isolation_level
from deltalog.transaction.conflicts import PendingFacts, WinningCommit, find_conflict
from deltalog.transaction.masks import Masks, old_rows, write_masks

if TYPE_CHECKING:
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.store import Store
    from deltalog.transaction.pending import PendingTransaction

NOTHING: Final[Mapping[str, int]] = {}


@dataclass(frozen=True, slots=True)
class Shared:
    """Files in which the winning commit and this transaction mark different rows as deleted.

    Args:
        winner: the winning commit.
        places: canonical path → index of the file in `winner.adds`.
    """

    winner: WinningCommit
    places: Mapping[str, int]

    @property
    def paths(self) -> pa.StringArray:
        """Canonical paths of the files."""
        return pa.array(list(self.places), pa.string())


def find_shared(
    pending: PendingTransaction, configuration: TableConfiguration, winner: WinningCommit
) -> Shared:
    """Find the files in which both commits mark rows as deleted, but different rows.

    Args:
        pending: the transaction.
        configuration: configuration of the table after the transaction.
        winner: the winning commit.

    Cost: none unless both commits write a deletion vector for the same file; then one request for
    each deletion vector that is stored in a file.
    """
    allowed = (
        configuration.properties.enable_row_level_concurrency and pending.read_set.is_row_local
    )
    if not allowed or not pending.masks or not winner.removes.num_rows:
        return Shared(winner, NOTHING)
    theirs = _masked_by(winner, pending.store.root)
    if not theirs:
        return Shared(winner, NOTHING)
    found: dict[str, int] = {}
    for masks in pending.masks:
        for number, path in enumerate(_paths(masks.files, pending.store.root)):
            place = theirs.get(path)
            if place is not None and _are_disjoint(pending.store, masks, number, winner, place):
                found[path] = place
    return Shared(winner, found)


def _masked_by(winner: WinningCommit, root: str) -> dict[str, int]:
    """Return the files that the winning commit removed and added again with a deletion vector.

    The result maps canonical paths to indexes in `winner.adds`.
    """
    removed = set(_paths(winner.removes, root))
    has_vector: list[Any] = winner.adds.column("deletionVector").is_valid().to_pylist()
    return {
        path: number
        for number, (path, masked) in enumerate(
            zip(_paths(winner.adds, root), has_vector, strict=True)
        )
        if masked and path in removed
    }


def _are_disjoint(
    store: Store, masks: Masks, number: int, winner: WinningCommit, place: int
) -> bool:
    """Return whether the winning commit only added rows to the vector, and none of `masks.rows`."""
    num_rows = masks.num_records[number]
    theirs = old_rows(store, winner.adds, place, num_rows=num_rows)
    before = old_rows(store, masks.files, number, num_rows=num_rows)
    return theirs.is_superset(before) and not theirs & masks.rows[number]


def unite(pending: PendingTransaction, shared: Shared) -> None:
    """Base the transaction's masks on the files of the winning commit.

    The caller must call `settle` before the next attempt, to write the deletion vectors.
    """
    if not shared.places:
        return
    pending.masks[:] = [_on_top(masks, shared, pending.store.root) for masks in pending.masks]


def _on_top(masks: Masks, shared: Shared, root: str) -> Masks:
    theirs = shared.places
    places = [
        masks.files.num_rows + theirs[path] if path in theirs else number
        for number, path in enumerate(_paths(masks.files, root))
    ]
    if places == list(range(masks.files.num_rows)):
        return masks
    both = pa.concat_tables([masks.files, shared.winner.adds.select(FILE_SCHEMA.names)])
    return Masks(
        files=both.take(pa.array(places, pa.int64())),
        rows=masks.rows,
        num_records=masks.num_records,
        prefix=masks.prefix,
        added=None,
        paths=masks.paths,
    )


def settle(pending: PendingTransaction) -> None:
    """Write the merged deletion vectors, and delete the deletion vector files that they replace.

    Cost: one request to write all vectors, one to delete old files, and one to read each old vector
    that is stored in a file.
    """
    stale = [masks for masks in pending.masks if masks.added is None]
    if not stale:
        return
    old = [path for masks in stale for path in masks.paths]
    for number, masks in enumerate(pending.masks):
        if masks.added is not None:
            continue
        made = write_masks(
            pending.store, masks.files, masks.rows, masks.num_records, prefix=masks.prefix
        )
        pending.own_paths.extend(made.paths)
        pending.masks[number] = made
    try:
        pending.store.delete_many(old)
    except DeltaError:
        return  # the old files remain in `own_paths`, and vacuum deletes them
    pending.own_paths[:] = [path for path in pending.own_paths if path not in old]


def _paths(files: pa.Table, root: str) -> list[str]:
    found: Any = canonical_paths(files.column("path"), root)
    return list(found.to_pylist())


# --- The step from one attempt of a commit to the next


def rebase(
    pending: PendingTransaction,
    base: CommitBase,
    winner: WinningCommit,
    *,
    configuration: TableConfiguration,
    has_log_tail: bool,
) -> CommitBase:
    """Return the base of the next attempt, on top of a winning commit; merge deletion vectors.

    Args:
        pending: the transaction.
        base: the version before the winning commit.
        winner: the winning commit.
        configuration: configuration of the table after the transaction.
        has_log_tail: whether a catalog decides which commits are part of the table.

    Raises:
        CommitConflictError: the winning commit conflicts with the transaction.
    """
    shared = find_shared(pending, configuration, winner)
    removed: list[Any] = [files.column("path") for files, _ in pending.removes]
    mine = pending.configuration
    facts = PendingFacts(
        root=pending.store.root,
        before=base.configuration,
        protocol=mine.protocol if pending.changes_protocol else None,
        metadata=mine.metadata if pending.changes_metadata else None,
        read_set=pending.read_set,
        removed_paths=pa.chunked_array(
            [chunk for column in removed for chunk in column.chunks], pa.string()
        ),
        shared_paths=shared.paths,
        domains=frozenset(pending.domains),
        isolation_level=isolation_level(pending, configuration),
        operation=pending.operation,
        has_log_tail=has_log_tail,
        time_zone=pending.context.time_zone,
        keeps_new_row_ids=pending.keeps_new_row_ids,
    )
    conflict = find_conflict(facts, winner)
    if conflict is not None:
        raise conflict
    unite(pending, shared)
    return advance(base, winner, pending)
