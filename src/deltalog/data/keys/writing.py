"""Writing packs: of new data files while they are written, and of existing files.

Protocol: none (delta-io/delta #7435 proposes record-level indexes)
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from deltalog._util.kernels import compute
from deltalog._util.paths import canonical_path, encode_path
from deltalog.data.keys.hashing import TableKey, hashes_of_rows, key_of
from deltalog.data.keys.packs import TableIndex, put_pack
from deltalog.errors import DeltaError
from deltalog.storage.key_packs import FILE_FIELDS, MOST_ROWS, PackBody

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog._util.paths import FileInfo
    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.actions import AddFile
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.key_packs import Hashes
    from deltalog.storage.store import Store

logger: logging.Logger = logging.getLogger(__name__)

LEAST_ROWS: Final = 1000
"""Writes and commits only index files with at least this number of rows.

Bounds of smaller files are narrow, and one pack for each of many small commits would make every
lookup slower.
"""
_NUM_RECORDS: Final = pa.schema([("numRecords", pa.int64())])


@dataclass(slots=True)
class _Waiting:
    """The content of the next pack."""

    files: list[pa.Table] = field(default_factory=list)
    hashes: list[Hashes] = field(default_factory=list)
    num_rows: int = 0
    row_bits: int = 1
    body: PackBody | None = None


class PackWriter:
    """Writes packs; may be used by several threads.

    Args:
        store: the table's store.
        key: the table's key.

    Attributes:
        paths: the paths of the packs, also of those that existed.
        num_packs: the number of new packs.
        num_bytes: their size.
    """

    def __init__(self, store: Store, key: TableKey) -> None:
        self._store = store
        self._key = key
        self._lock = threading.Lock()
        self._waiting = _Waiting()
        self.paths: set[str] = set()
        self.num_packs: int = 0
        self.num_bytes: int = 0

    def add(
        self,
        files: pa.Table,
        hashes: Sequence[Hashes],
        *,
        row_bits: int = 1,
        body: PackBody | None = None,
    ) -> None:
        """Add files; write a pack if these files do not fit into it.

        Args:
            files: the files, with `FILE_FIELDS`.
            hashes: the hashes of their rows, in order.
            row_bits: the number of last bits that the hashes lack.
            body: the entries of these rows, if known; used if the pack has no other rows.
        """
        num_rows = sum(map(len, hashes))
        full = None
        with self._lock:
            if self._waiting.files and self._waiting.num_rows + num_rows > MOST_ROWS:
                full, self._waiting = self._waiting, _Waiting()
            self._waiting.files.append(files)
            self._waiting.hashes += hashes
            self._waiting.num_rows += num_rows
            self._waiting.row_bits = max(self._waiting.row_bits, row_bits)
            self._waiting.body = body if len(self._waiting.files) == 1 else None
        if full is not None:
            self._write(full)

    def finish(self) -> None:
        """Write the last pack.

        Raises:
            StorageError: the pack cannot be written.
        """
        with self._lock:
            last, self._waiting = self._waiting, _Waiting()
        if last.files:
            self._write(last)

    def _write(self, part: _Waiting) -> None:
        files = pa.concat_tables(part.files)
        body = part.body
        if body is None:
            hashes = np.concatenate([np.empty(0, np.uint64), *part.hashes])
            body = PackBody.of(hashes, least_row_bits=part.row_bits)
        path, size = put_pack(self._store, self._key, files, body)
        with self._lock:
            self.paths.add(path)
            self.num_packs += size > 0
            self.num_bytes += size


class FileKeys:
    """The keys of a new file while it is written; for one thread at a time.

    Args:
        key: the table's key.

    Attributes:
        hashes: the hashes of the rows, in order.
        body: the entries of the rows if they were added at once, which is the usual case.
    """

    def __init__(self, key: TableKey) -> None:
        self._key = key
        self.hashes: list[Hashes] = []
        self.body: PackBody | None = None

    def add(self, rows: pa.Table) -> None:
        """Add rows that have the columns of data files. Cost: a sort of their hashes."""
        hashes = hashes_of_rows(rows, self._key.packed.columns, self._key)
        self.body = None if self.hashes else PackBody.of(hashes)
        self.hashes.append(hashes)


class NewKeys:
    """The keys of new data files. If they cannot be stored, the files are read without the index.

    If the files are not committed, vacuum deletes the packs.

    Args:
        store: the table's store.
        key: the table's key.
    """

    def __init__(self, store: Store, key: TableKey) -> None:
        self._root = store.root
        self._key = key
        self._packs = PackWriter(store, key)

    @classmethod
    def of(cls, store: Store, configuration: TableConfiguration) -> Self | None:
        """Return an object for the new files of a table; None if the table has no key."""
        key = key_of(configuration)
        return None if key is None else cls(store, key)

    def of_file(self) -> FileKeys:
        """Return an object for the keys of one file."""
        return FileKeys(self._key)

    def add(self, info: FileInfo, keys: FileKeys) -> None:
        """Add the keys of a complete file, unless the file is small.

        Args:
            info: the path of the file, relative to the root, its size and its time.
            keys: the keys of all its rows.
        """
        num_rows = sum(map(len, keys.hashes))
        if num_rows < LEAST_ROWS:
            return
        path = canonical_path(encode_path(info.path), self._root)
        values = (path, info.size_bytes, info.modified_ms, num_rows)
        row = dict(zip(FILE_FIELDS.names, values, strict=True))
        try:
            files = pa.Table.from_pylist([row], schema=FILE_FIELDS)
            self._packs.add(files, keys.hashes, body=keys.body)
        except (DeltaError, OSError) as error:
            self._warn(error)

    def finish(self) -> None:
        """Write the last pack."""
        try:
            self._packs.finish()
        except (DeltaError, OSError) as error:
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        logger.warning(
            "cannot write the key index of new files of %s: %s; these files are read without it "
            "until optimize.key_index() runs",
            self._root,
            error,
        )


def unindexed(snapshot: Snapshot, adds: Sequence[AddFile]) -> list[AddFile]:
    """Return the new files of a commit that their writer has not indexed, except small files.

    Files are not indexed while they are written if Spark writes them, or if row groups are copied
    into them.

    Args:
        snapshot: the committed version.
        adds: the new files.

    Cost: nothing if this process has written entries for all files. Otherwise a listing of the
        packs.
    """
    key = key_of(snapshot.configuration)
    # A file with a deletion vector was there before.
    new = [add for add in adds if add.deletion_vector is None]
    if key is None or not new:
        return []
    columns: dict[str, Any] = {
        "path": pa.array([encode_path(add.path) for add in new], pa.string()),
        "size": pa.array([add.size_bytes for add in new], pa.int64()),
        "modificationTime": pa.array([add.modification_time_ms for add in new], pa.int64()),
        "stats": pa.array([add.stats for add in new], pa.string()),
        "number": pa.array(range(len(new))),
    }
    index = TableIndex(snapshot.store, key, snapshot.version)
    files = pa.table(columns)
    files = files.take(index.without_held_entry(files))
    if not files.num_rows:
        return []
    from deltalog.protocol.stats.parse import parse_stats  # noqa: PLC0415  # rarely needed

    counts = parse_stats(files.column("stats"), _NUM_RECORDS).column("numRecords")
    files = files.filter(compute.greater_equal(counts, LEAST_ROWS))
    files = files.take(index.without_entry(files))
    numbers: list[Any] = files.column("number").to_pylist()
    return [new[number] for number in numbers]
