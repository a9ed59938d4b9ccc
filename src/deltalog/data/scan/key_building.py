"""Building the key index of a table: writing packs for files without an entry, and merging packs.

A pack contains the keys of all physical rows, also of deleted ones, so it stays valid as long as
its data files exist. No commit is made: readers find packs by listing them.

Protocol: none (delta-io/delta #7435 proposes record-level indexes)
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from deltalog._util.paths import canonical_paths, encode_path
from deltalog.data.scan.key_index import (
    KEYS_DIRECTORY,
    TableIndex,
    TableKey,
    hashes_of,
    key_of,
    placed,
)
from deltalog.data.scan.plan import TASK_COLUMNS, check_rows_readable, make_numbered_tasks
from deltalog.data.scan.reader import read_tasks
from deltalog.data.scan.task import read_spec
from deltalog.errors import AlreadyExistsError, DeltaError, InvalidInputError
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.stats.parse import parse_stats
from deltalog.schema.metadata_columns import FILE_NUMBER
from deltalog.storage.key_packs import (
    FILE_FIELDS,
    MOST_ROWS,
    SUFFIX,
    DamagedPackError,
    KeyPack,
    encode_pack,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog._util.cards import ProgressCount
    from deltalog._util.paths import FileInfo
    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.actions import AddFile
    from deltalog.storage.key_packs import Hashes

logger: logging.Logger = logging.getLogger(__name__)

_FEW_ROWS: Final = MOST_ROWS // 4
"""Packs with fewer rows are merged."""
_MOST_SMALL: Final = 8
"""If there are more packs with few rows, they are merged."""
_LEAST_LIVE: Final = 0.5
"""A pack is written again if a smaller share of its rows is in live files."""
_ROWS_AT_ONCE: Final = 1 << 16
_NUM_RECORDS: Final = pa.schema([("numRecords", pa.int64())])
LEAST_ROWS_OF_COMMIT: Final = 1000
"""After a commit, only new files with at least this number of rows are indexed.

Bounds of smaller files are narrow, and one pack for each of many small commits would make every
lookup slower.
"""


@dataclass(slots=True)
class KeyIndexReport:
    """What building an index has done.

    Args:
        num_files: the number of live files with an entry.
        num_files_added: the number of files whose keys were read.
        num_rows_added: the number of their rows.
        num_packs: the number of packs.
        num_packs_added: the number of new packs.
        num_packs_removed: the number of deleted packs.
        num_bytes_added: the size of the new packs.
    """

    num_files: int = 0
    num_files_added: int = 0
    num_rows_added: int = 0
    num_packs: int = 0
    num_packs_added: int = 0
    num_packs_removed: int = 0
    num_bytes_added: int = 0

    def result(self) -> dict[str, int]:
        """Return the numbers with names as in other metrics."""
        return {
            "numFilesIndexed": self.num_files,
            "numFilesAdded": self.num_files_added,
            "numRowsAdded": self.num_rows_added,
            "numPacks": self.num_packs,
            "numPacksAdded": self.num_packs_added,
            "numPacksRemoved": self.num_packs_removed,
            "numBytesAdded": self.num_bytes_added,
        }


def build_key_index(snapshot: Snapshot, *, progress: ProgressCount | None = None) -> KeyIndexReport:
    """Write packs for all live files without an entry, and merge small packs.

    Raises:
        InvalidInputError: the table has no key, or a key column was dropped.

    Cost: reads the key columns of files without an entry. Merging reads whole packs.
    """
    builder = _Builder(snapshot, _required_key(snapshot), progress)
    files = snapshot.files(TASK_COLUMNS)
    packs = builder.index.packs()
    places, _ = placed(files, packs, snapshot.store.root)
    builder.add(files.filter(pa.array(places < 0)))
    builder.merge(packs, files)
    builder.index.forget()
    left = builder.index.packs()
    report = builder.report
    report.num_packs = len(left)
    report.num_files = int((placed(files, left, snapshot.store.root)[0] >= 0).sum())
    return report


def index_new_files(snapshot: Snapshot, adds: Sequence[AddFile]) -> KeyIndexReport | None:
    """Write a pack for new files of a commit, except for small files.

    Args:
        snapshot: the committed version.
        adds: the new files.

    Cost: reads the key columns of these files.
    """
    key = key_of(snapshot.configuration)
    large = [add for add in adds if _num_records(add) >= LEAST_ROWS_OF_COMMIT]
    if key is None or not large:
        return None
    rows = [
        {
            "path": encode_path(add.path),
            "partitionValues": list(add.partition_values.items()),
            "size": add.size_bytes,
            "modificationTime": add.modification_time_ms,
        }
        for add in large
    ]
    schema = pa.schema([FILE_SCHEMA.field(name) for name in TASK_COLUMNS])
    builder = _Builder(snapshot, key, None)
    builder.add(pa.Table.from_pylist(rows, schema=schema))
    builder.index.forget()
    return builder.report


def _num_records(add: AddFile) -> int:
    stats = parse_stats(pa.array([add.stats], pa.string()), _NUM_RECORDS)
    count: int | None = stats.column("numRecords")[0].as_py()
    return count or 0


def old_packs(snapshot: Snapshot, *, cutoff_ms: int) -> list[FileInfo]:
    """Return the packs that are not used, and that were written before a time.

    A pack is not used if it has no live files or another key, or if it is damaged.

    Args:
        snapshot: the newest version.
        cutoff_ms: milliseconds since 1970, UTC.

    Cost: two listings, and the directories of the packs.
    """
    key = key_of(snapshot.configuration)
    store = snapshot.store
    infos = [one for one in store.list_all(KEYS_DIRECTORY) if one.name.endswith(SUFFIX)]
    infos = [one for one in infos if one.modified_ms < cutoff_ms]
    if key is None or not infos:
        return infos
    files = snapshot.files(TASK_COLUMNS)
    used = {
        pack.path
        for pack in TableIndex(snapshot, key).packs()
        if (placed(files, [pack], store.root)[0] >= 0).any()
    }
    return [info for info in infos if info.path not in used]


def _required_key(snapshot: Snapshot) -> TableKey:
    check_rows_readable(snapshot)
    key = key_of(snapshot.configuration)
    if key is None:
        raise InvalidInputError(
            f"cannot index the keys of {snapshot.store.root}: the table has no key, or a column of "
            "it was dropped; set one with alter.set_key_index"
        )
    return key


@dataclass(slots=True)
class _Pending:
    """The content of the next pack."""

    files: list[dict[str, Any]] = field(default_factory=list)
    hashes: list[Hashes] = field(default_factory=list)
    num_rows: int = 0
    least_row_bits: int = 1

    def add(self, files: Sequence[dict[str, Any]], hashes: Hashes) -> None:
        self.files += files
        self.hashes.append(hashes)
        self.num_rows += len(hashes)


class _Builder:
    def __init__(self, snapshot: Snapshot, key: TableKey, progress: ProgressCount | None) -> None:
        self.index = TableIndex(snapshot, key)
        self.report = KeyIndexReport()
        self._snapshot = snapshot
        self._key = key
        self._progress = progress

    # --- new entries

    def add(self, files: pa.Table) -> None:
        """Write packs for the files."""
        if not files.num_rows:
            return
        columns: dict[str, Any] = {
            "path": canonical_paths(files.column("path"), self._snapshot.store.root),
            "size": files.column("size"),
            "modificationTime": files.column("modificationTime"),
        }
        listed = pa.table(columns).to_pylist()
        pending = _Pending()
        for number, hashes in self._hashes(files):
            if pending.files and pending.num_rows + len(hashes) > MOST_ROWS:
                self._write(pending)
                pending = _Pending()
            pending.add([{**listed[number], "num_rows": len(hashes)}], hashes)
            self.report.num_files_added += 1
            self.report.num_rows_added += len(hashes)
        self._write(pending)

    def _hashes(self, files: pa.Table) -> Iterator[tuple[int, Hashes]]:
        """Yield the number of each file, and the hashes of its physical rows."""
        place = files.column_names.index("deletionVector")
        vectors = pa.nulls(files.num_rows, files.schema.field(place).type)
        files = files.set_column(place, files.schema.field(place), vectors)
        spec = read_spec(self._snapshot, columns=self._key.names, predicate=None)
        tasks = make_numbered_tasks(self._snapshot, spec, files)
        if self._progress is not None:
            self._progress.expect(files.num_rows)
            tasks = self._progress.each(tasks)
        current, parts = 0, [np.empty(0, np.uint64)]
        for batch in read_tasks(tasks):
            number = batch.column(FILE_NUMBER)[0].as_py() if batch.num_rows else current
            while current < number:
                yield current, np.concatenate(parts)
                current, parts = current + 1, [np.empty(0, np.uint64)]
            for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                some = batch.slice(start, _ROWS_AT_ONCE)
                columns = [some.column(name) for name in self._key.names]
                parts.append(hashes_of(columns, self._key.fields))
        while current < files.num_rows:
            yield current, np.concatenate(parts)
            current, parts = current + 1, [np.empty(0, np.uint64)]

    def _write(self, pending: _Pending) -> None:
        if not pending.files:
            return
        files = pa.Table.from_pylist(pending.files, schema=FILE_FIELDS)
        hashes = np.concatenate(pending.hashes)
        bits = pending.least_row_bits
        name, data = encode_pack(self._key.packed, files, hashes, least_row_bits=bits)
        try:
            self.index.store.put_if_absent(f"{self._key.directory}/{name}", data)
        except AlreadyExistsError:  # the name is the digest, so the content is the same
            return
        self.report.num_packs_added += 1
        self.report.num_bytes_added += len(data)

    # --- merging packs

    def merge(self, packs: Sequence[KeyPack], live: pa.Table) -> None:
        """Merge packs if many are small, and write packs with few live rows again."""
        places, inner = placed(live, packs, self._snapshot.store.root)
        used = [np.unique(inner[places == number]) for number in range(len(packs))]
        rows = [int(np.diff(pack.starts)[own].sum()) for pack, own in zip(packs, used, strict=True)]
        sparse = {
            number
            for number, pack in enumerate(packs)
            if rows[number] < _LEAST_LIVE * pack.num_rows or not pack.num_rows
        }
        small = {number for number, count in enumerate(rows) if count < _FEW_ROWS}
        chosen = sorted(sparse | small if len(small) > _MOST_SMALL else sparse)
        pending = _Pending()
        gone: list[str] = []
        waiting: list[str] = []
        for number in chosen:
            if pending.files and pending.num_rows + rows[number] > MOST_ROWS:
                self._write(pending)
                gone += waiting
                pending, waiting = _Pending(), []
            waiting.append(packs[number].path)
            if rows[number] and not self._take(pending, packs[number], used[number]):
                waiting.pop()
        self._write(pending)
        gone += waiting
        self.index.store.delete_many(gone)
        self.report.num_packs_removed = len(gone)

    def _take(self, pending: _Pending, pack: KeyPack, numbers: Any) -> bool:
        """Add the entries of some files of a pack; return whether the pack could be read."""
        try:
            hashes = pack.hashes(self.index.store)
        except (DamagedPackError, DeltaError) as error:
            self.index.drop(pack.path, error)
            return False
        files = pack.files.take(pa.array(numbers)).to_pylist()
        kept = [hashes[pack.starts[number] : pack.starts[number + 1]] for number in numbers]
        pending.add(files, np.concatenate(kept))
        pending.least_row_bits = max(pending.least_row_bits, pack.row_bits)
        return True
