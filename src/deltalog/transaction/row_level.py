"""Two writers that mark different rows of one file: both get their way.

Owns when that is so, and what becomes of the slower one's commit. Where another commit has given a
file a larger deletion vector, and none of the rows that it marks is one of ours, the file's vector
becomes the union of both, and our commit replaces their file instead of the one that we read.

That gives what our operation would have given after theirs. Which of our rows match is decided
row by row: rows that they deleted are none of ours, rows that they left have the values that we
saw, and rows that they added are judged by our predicates as ever. So it holds only for
transactions that looked at rows one by one (`ReadSet.is_row_local`); a merge that inserts what
it does not find, or a check of the whole table, does not.

Protocol: Deletion Vectors
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.errors import DeltaError
from deltalog.paths import canonical_paths
from deltalog.transaction.masks import Masks, old_rows, write_masks

if TYPE_CHECKING:
    from deltalog.configuration import TableConfiguration
    from deltalog.storage.store import Store
    from deltalog.transaction.pending import PendingTransaction
    from deltalog.transaction.winners import WinningCommit

NOTHING: Final[Mapping[str, int]] = {}


@dataclass(frozen=True, slots=True)
class Shared:
    """Files in which a winner and a transaction marked different rows.

    Args:
        winner: who was faster.
        rows: canonical path → its row in the winner's adds.
    """

    winner: WinningCommit
    rows: Mapping[str, int]

    @property
    def paths(self) -> pa.StringArray:
        """Canonical paths of the files."""
        return pa.array(list(self.rows), pa.string())


def find_shared(
    pending: PendingTransaction, configuration: TableConfiguration, winner: WinningCommit
) -> Shared:
    """The files in which both marked rows, each others.

    Args:
        pending: the slower one.
        configuration: of the table, as the commit would leave it.
        winner: the faster one.

    Cost: nothing unless both changed a file by deletion vectors; then one request for each vector
    that is in a file.
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
    """Files that the winner removed and added again with a deletion vector."""
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
    """Whether they only added rows to the vector, and none of ours."""
    theirs = old_rows(store, winner.adds, place)
    before = old_rows(store, masks.files, number)
    return theirs.is_superset(before) and not theirs & masks.rows[number]


def unite(pending: PendingTransaction, shared: Shared) -> None:
    """Let the transaction stand on the winner's files; `settle` has to follow."""
    if not shared.rows:
        return
    pending.masks[:] = [_on_top(masks, shared, pending.store.root) for masks in pending.masks]


def _on_top(masks: Masks, shared: Shared, root: str) -> Masks:
    rows = shared.rows
    places = [
        masks.files.num_rows + rows[path] if path in rows else number
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
    """Write the united vectors; those that they replace are removed, for no commit names them.

    Cost: one request for all vectors, and one for the old ones.
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
        return  # they are among the transaction's own paths, and vacuum finds them
    pending.own_paths[:] = [path for path in pending.own_paths if path not in old]


def _paths(files: pa.Table, root: str) -> list[str]:
    found: Any = canonical_paths(files.column("path"), root)
    return list(found.to_pylist())
