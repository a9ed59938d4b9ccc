"""The key index of a table: indexing existing files, merging packs, and finding old packs.

A pack contains the keys of all physical rows, also of deleted ones, so it stays valid as long as
its data files exist. No commit is made: readers find packs by listing them. Writes index their new
files themselves (`data.keys.writing`).

Protocol: none (delta-io/delta #7435 proposes record-level indexes)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from deltalog._util.cards import ProgressCount
from deltalog._util.paths import KEYS_DIRECTORY, encode_path
from deltalog.data.keys.hashing import TableKey, key_of
from deltalog.data.keys.packs import TableIndex, placed
from deltalog.data.keys.writing import PackWriter
from deltalog.data.scan.plan import TASK_COLUMNS
from deltalog.errors import DeltaError, ObjectNotFoundError
from deltalog.log.branches import branch_of
from deltalog.operations.changes.key_tasks import SILENT, KeyIndexJob, KeyIndexReport, required_key
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.storage.key_packs import MOST_ROWS, SUFFIX, DamagedPackError, KeyPack

if TYPE_CHECKING:
    from deltalog._util.paths import FileInfo
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.engine import Engine
    from deltalog.protocol.actions import AddFile
    from deltalog.storage.store import Store

_FEW_ROWS: Final = MOST_ROWS // 4
"""Packs with fewer rows are merged."""
_MOST_SMALL: Final = 8
"""If there are more packs with few rows, they are merged."""
_LEAST_LIVE: Final = 0.5
"""A pack is written again if a smaller share of its rows is in live files."""


def build_key_index(
    snapshot: Snapshot, engine: Engine, *, progress: ProgressCount | None = None
) -> KeyIndexReport:
    """Write packs for all live files without an entry, merge small packs, delete damaged ones.

    Args:
        snapshot: the newest version.
        engine: reads the key columns.
        progress: counts the files.

    Raises:
        InvalidInputError: the table has no key, or a key column was dropped.

    Cost: reads the key columns of files without an entry. Merging reads whole packs.
    """
    key = required_key(snapshot)
    index = TableIndex(snapshot.store, key, snapshot.version)
    live = snapshot.files(TASK_COLUMNS)
    packs, damaged = _opened(snapshot.store, key)
    # First, because the same entries have the same name.
    snapshot.store.delete_many([path for path, _ in damaged])
    without = live.filter(pa.array(placed(live, packs, snapshot.store.root)[0] < 0))
    report = KeyIndexReport()
    if without.num_rows:
        for part in engine.index_keys(KeyIndexJob(snapshot), without, progress or SILENT):
            report.add(part)
    if branch_of(snapshot.store) is None:  # other packs have files of main that a branch lacks
        _merge(index, key, packs, live, report)
    report.num_packs_removed += len(damaged)
    index.forget()
    left = index.packs()
    report.num_packs = len(left)
    report.num_files = int((placed(live, left, snapshot.store.root)[0] >= 0).sum())
    return report


def index_new_files(snapshot: Snapshot, adds: Sequence[AddFile], engine: Engine) -> None:
    """Index new files of a commit.

    Args:
        snapshot: the committed version.
        adds: the files, from `unindexed`.
        engine: reads the key columns.

    Cost: reads the key columns of these files.
    """
    rows = [
        {
            "path": encode_path(add.path),
            "partitionValues": list(add.partition_values.items()),
            "size": add.size_bytes,
            "modificationTime": add.modification_time_ms,
        }
        for add in adds
    ]
    schema = pa.schema([FILE_SCHEMA.field(name) for name in TASK_COLUMNS])
    files = pa.Table.from_pylist(rows, schema=schema)
    engine.index_keys(KeyIndexJob(snapshot), files, SILENT)
    TableIndex(snapshot.store, required_key(snapshot), snapshot.version).forget()


def old_packs(snapshot: Snapshot, *, cutoff_ms: int) -> list[FileInfo]:
    """Return the packs that are not used, and that were written before a time.

    A pack is not used if it has no live files or another key, or if it is damaged.

    Args:
        snapshot: the newest version.
        cutoff_ms: milliseconds since 1970, UTC.

    Raises:
        StorageError: the packs cannot be listed or opened.

    Cost: two listings, and the directories of the packs.
    """
    key = key_of(snapshot.configuration)
    store = snapshot.store
    infos = [one for one in store.list_all(KEYS_DIRECTORY) if one.name.endswith(SUFFIX)]
    infos = [one for one in infos if one.modified_ms < cutoff_ms]
    if key is None or not infos:
        return infos
    files = snapshot.files(TASK_COLUMNS)
    packs, _ = _opened(store, key)  # raises if the store fails, so that no usable pack is deleted
    used = {pack.path for pack in packs if (placed(files, [pack], store.root)[0] >= 0).any()}
    return [info for info in infos if info.path not in used]


@dataclass(frozen=True, slots=True)
class KeyIndexState:
    """What a key index lacks.

    Args:
        num_files: the number of live files.
        num_without: the number of live files without an entry.
        damaged: the paths of packs that cannot be opened, and why.
    """

    num_files: int
    num_without: int
    damaged: list[tuple[str, str]]


def inspect_key_index(snapshot: Snapshot) -> KeyIndexState:
    """Return what the key index of a table lacks.

    Raises:
        DeltaError: the packs cannot be listed, or the table has no key.

    Cost: a listing, and the directories of the packs.
    """
    packs, damaged = _opened(snapshot.store, required_key(snapshot))
    live = snapshot.files(TASK_COLUMNS)
    without = int((placed(live, packs, snapshot.store.root)[0] < 0).sum())
    return KeyIndexState(live.num_rows, without, damaged)


def _opened(store: Store, key: TableKey) -> tuple[list[KeyPack], list[tuple[str, str]]]:
    """Return the packs of a key, and the path and the problem of each damaged pack."""
    packs, damaged = list[KeyPack](), list[tuple[str, str]]()
    for info in store.list_from(key.directory, ""):
        if info.name.endswith(SUFFIX):
            try:
                packs.append(KeyPack.open(store, info))
            except DamagedPackError as error:
                damaged.append((info.path, str(error)))
            except ObjectNotFoundError:  # another process has merged it
                continue
    return [pack for pack in packs if pack.key == key.packed], damaged


def _merge(
    index: TableIndex,
    key: TableKey,
    packs: Sequence[KeyPack],
    live: pa.Table,
    report: KeyIndexReport,
) -> None:
    """Merge packs if many are small, and write packs with few live rows again.

    Packs without live rows may have files of branches. Vacuum deletes them.
    """
    places, inner = placed(live, packs, index.store.root)
    used = [np.unique(inner[places == number]) for number in range(len(packs))]
    rows = [int(np.diff(pack.starts)[own].sum()) for pack, own in zip(packs, used, strict=True)]
    sparse = {
        number
        for number, pack in enumerate(packs)
        if 0 < rows[number] < _LEAST_LIVE * pack.num_rows
    }
    small = {number for number, count in enumerate(rows) if 0 < count < _FEW_ROWS}
    chosen = sorted(sparse | small if len(small) > _MOST_SMALL else sparse)
    writer = PackWriter(index.store, key)
    taken = [
        packs[number] for number in chosen if _take(index, packs[number], used[number], writer)
    ]
    writer.finish()
    # A pack that did not fit together with others was written again with the same name.
    gone = [pack.path for pack in taken if pack.path not in writer.paths]
    index.store.delete_many(gone)
    report.num_packs_added += writer.num_packs
    report.num_bytes_added += writer.num_bytes
    report.num_packs_removed += len(gone)


def _take(index: TableIndex, pack: KeyPack, numbers: Any, writer: PackWriter) -> bool:
    """Add the entries of some files of a pack; return whether the pack is no longer needed."""
    try:
        hashes = pack.hashes(index.store)
    except (DamagedPackError, DeltaError) as error:
        index.drop(pack.path, error)
        return False
    files = pack.files.take(pa.array(numbers))
    kept = [hashes[pack.starts[number] : pack.starts[number + 1]] for number in numbers]
    writer.add(files, kept, row_bits=pack.row_bits)
    return True
