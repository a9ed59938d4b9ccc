"""The work of tasks that index the keys of existing files, in any engine.

Protocol: none (delta-io/delta #7435 proposes record-level indexes)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from deltalog._util.cards import ProgressCount
from deltalog._util.kernels import arrow
from deltalog._util.paths import canonical_paths
from deltalog.data.keys.hashing import TableKey, hashes_of_rows, key_of
from deltalog.data.keys.writing import PackWriter
from deltalog.data.scan.plan import check_rows_readable, make_numbered_tasks
from deltalog.data.scan.reader import read_tasks
from deltalog.data.scan.task import read_spec
from deltalog.errors import InvalidInputError
from deltalog.operations.changes.apply import balanced
from deltalog.schema.metadata_columns import FILE_NUMBER
from deltalog.storage.key_packs import FILE_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.log.snapshot import Snapshot
    from deltalog.storage.key_packs import Hashes

_LEAST_TASK_BYTES: Final = 32 << 20
"""The least stored size of the files that one task of an engine indexes."""
SILENT: Final = ProgressCount(None)


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

    def add(self, other: Self) -> None:
        """Add the numbers of another report."""
        for part in fields(self):
            setattr(self, part.name, getattr(self, part.name) + getattr(other, part.name))

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


@dataclass(frozen=True, slots=True)
class KeyIndexJob:
    """The work of indexing files, for tasks of any engine; picklable.

    Args:
        snapshot: a version with the files.
    """

    snapshot: Snapshot

    def run(self, files: pa.Table, progress: ProgressCount | None = None) -> KeyIndexReport:
        """Write packs for files.

        Args:
            files: the files, with `TASK_COLUMNS`.
            progress: counts the files.

        Raises:
            DeltaError: a file cannot be read, or a pack cannot be written.

        Cost: reads the key columns; memory for the rows of one pack, 24 bytes for each.
        """
        snapshot, key = self.snapshot, required_key(self.snapshot)
        columns: dict[str, Any] = {
            "path": canonical_paths(files.column("path"), snapshot.store.root),
            "size": files.column("size"),
            "modificationTime": files.column("modificationTime"),
        }
        listed = pa.table(columns)
        writer, report = PackWriter(snapshot.store, key), KeyIndexReport()
        for number, hashes in self._hashes(key, files, progress or SILENT):
            num_rows = sum(map(len, hashes))
            file = listed.slice(number, 1).append_column("num_rows", pa.array([num_rows]))
            writer.add(file.cast(FILE_FIELDS), hashes)
            report.num_files_added += 1
            report.num_rows_added += num_rows
        writer.finish()
        report.num_packs_added = writer.num_packs
        report.num_bytes_added = writer.num_bytes
        return report

    def _hashes(
        self, key: TableKey, files: pa.Table, progress: ProgressCount
    ) -> Iterator[tuple[int, list[Hashes]]]:
        """Yield the number of each file, and the hashes of its physical rows."""
        place = files.column_names.index("deletionVector")
        vectors = pa.nulls(files.num_rows, files.schema.field(place).type)
        files = files.set_column(place, files.schema.field(place), vectors)
        spec = read_spec(self.snapshot, columns=key.names, predicate=None)
        progress.expect(files.num_rows)
        tasks = progress.each(make_numbered_tasks(self.snapshot, spec, files))
        current, parts = 0, list[Any]()
        for batch in read_tasks(tasks):
            number = batch.column(FILE_NUMBER)[0].as_py() if batch.num_rows else current
            while current < number:
                yield current, parts
                current, parts = current + 1, []
            parts.append(hashes_of_rows(batch, key.names, key))
        while current < files.num_rows:
            yield current, parts
            current, parts = current + 1, []


def required_key(snapshot: Snapshot) -> TableKey:
    """Return the key of a table whose rows shall be indexed.

    Raises:
        InvalidInputError: the table has no key, or a key column was dropped.
        UnsupportedFeatureError: deltalog cannot read the rows.
    """
    check_rows_readable(snapshot)
    key = key_of(snapshot.configuration)
    if key is None:
        raise InvalidInputError(
            f"cannot index the keys of {snapshot.store.root}: the table has no key, or a column of "
            "it was dropped; set one with alter.set_key_index"
        )
    return key


def file_groups(files: pa.Table, most: int) -> list[pa.Table]:
    """Divide files into groups of about the same total size, for the tasks of an engine.

    Args:
        files: the files, with `TASK_COLUMNS`.
        most: the maximum number of groups; there are fewer if there are few bytes.
    """
    sizes: list[Any] = files.column("size").to_pylist()
    most = max(1, min(most, sum(sizes) // _LEAST_TASK_BYTES))
    # A pickled slice would contain the whole table.
    return [
        files.take(arrow.arange(start, start + length)) for start, length in balanced(sizes, most)
    ]
