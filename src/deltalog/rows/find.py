"""Find the rows that match a predicate: the first half of a DELETE or UPDATE here.

`SelectedRows` is what every change of existing rows begins with, a merge and those on Spark too.

Owns the search: files are pruned, then only the predicate's columns are read. What happens to the
rows is left to the caller, who may ask for further columns of the matching rows: they are kept
while there are few, so that their files are not read twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.kernels import pc
from deltalog.metadata_columns import FILE_NUMBER, ROW_COMMIT_VERSION, ROW_ID, ROW_INDEX
from deltalog.paths import decode_path
from deltalog.progress import ProgressCount
from deltalog.scan.plan import check_row_ids, make_numbered_tasks
from deltalog.scan.prune import prune
from deltalog.scan.reader import read_tasks
from deltalog.scan.spec import read_spec
from deltalog.scan.task import Allowance
from deltalog.storage.parquet import read_footer
from deltalog.storage.parquet_facts import FetchedFooters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.snapshot import Snapshot

MOST_HELD_BYTES: Final = 64 * 1024 * 1024
"""Of matching rows whose columns are kept with their positions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRows:
    """The files with rows to change, and the positions of these.

    Args:
        files: rows of `snapshot.files`, all columns; each file has such a row.
        positions: for each file, the physical positions of those live rows; None if the log alone
            shows that they are all live rows.
        num_records: for each file, the number of physical rows; None if the log has no
            `numRecords` and the footer was not read.
        num_candidates: files that pruning left.
        held: by the file's number here, all its matching rows, with the columns that were asked
            for; not of every file.
        footers: what was fetched of them, as far as there was room.
    """

    files: pa.Table
    positions: tuple[pa.Int64Array | None, ...]
    num_records: tuple[int | None, ...]
    num_candidates: int
    held: Mapping[int, Sequence[pa.RecordBatch]] = field(default_factory=dict)
    footers: FetchedFooters | None = None

    @property
    def num_rows(self) -> int | None:
        """How many rows there are; None if a file of which all are has no `numRecords`."""
        cardinalities = pc.struct_field(self.files.column("deletionVector"), "cardinality")
        deleted: list[Any] = pc.fill_null(cardinalities, 0).to_pylist()
        total = 0
        for found, rows, gone in zip(self.positions, self.num_records, deleted, strict=True):
            if found is None and rows is None:
                return None
            total += len(found) if found is not None else (rows or 0) - gone
        return total

    def num_live_rows(self, number: int) -> int | None:
        """Physical rows of a file minus those that its deletion vector masks."""
        rows = self.num_records[number]
        vector = self.files.column("deletionVector")[number].as_py()
        return rows if rows is None or vector is None else rows - vector["cardinality"]

    def is_whole(self, number: int) -> bool:
        """Whether every live row of a file is selected."""
        found = self.positions[number]
        return found is None or len(found) == self.num_live_rows(number)


def find_matching_files(
    snapshot: Snapshot,
    predicate: Expression | None,
    *,
    along: Sequence[str] = (),
    progress: ProgressCount | None = None,
) -> SelectedRows:
    """Return the files that hold matching rows, and the rows' positions.

    Args:
        snapshot: of the table.
        predicate: resolved; None matches every row.
        along: columns to read of the matching rows, up to `MOST_HELD_BYTES` of them all; with
            row tracking, row ids and commit versions come with them.
        progress: counted in files read.

    Cost: the log's columns that the predicate needs; then the predicate's columns of the files
    that pruning left. Memory: eight bytes per matching row, and what is held.
    """
    pruned = prune(snapshot, predicate)
    files = pruned.files(FILE_SCHEMA.names)
    counts: list[int | None] = pruned.num_records().to_pylist()
    if pruned.is_exact:
        return SelectedRows(
            files=files,
            positions=(None,) * files.num_rows,
            num_records=tuple(counts),
            num_candidates=files.num_rows,
        )
    found: dict[int, list[pa.Int64Array]] = {}
    held = _HeldRows() if along else None
    progress = progress or ProgressCount(None)
    progress.expect(files.num_rows)
    has_ids = bool(along) and snapshot.configuration.row_ids_enabled
    hidden = (ROW_INDEX, ROW_ID, ROW_COMMIT_VERSION) if has_ids else (ROW_INDEX,)
    spec = read_spec(snapshot, columns=along, hidden=hidden, predicate=predicate)
    check_row_ids(snapshot, spec)
    allowance = None if held is None else held.allowance
    footers = FetchedFooters()
    tasks = progress.each(
        make_numbered_tasks(snapshot, spec, files, along=allowance, footers=footers)
    )
    for batch in read_tasks(tasks):
        if batch.num_rows:
            rows: Any = batch.column(ROW_INDEX)
            number: int = batch.column(FILE_NUMBER)[0].as_py()
            found.setdefault(number, []).append(rows)
            if held is not None:
                held.add(number, batch, is_whole=batch.num_columns == len(spec.output) + 1)
    selected = files.take(pa.array(list(found), pa.int64()))
    return SelectedRows(
        files=selected,
        positions=tuple(pa.concat_arrays(parts) for parts in found.values()),
        num_records=complete_counts(snapshot, selected, [counts[number] for number in found]),
        num_candidates=files.num_rows,
        held={} if held is None else held.by_file(list(found)),
        footers=footers,
    )


class _HeldRows:
    """Columns of matching rows, of files of which all of these could be kept."""

    def __init__(self) -> None:
        self.allowance = Allowance(MOST_HELD_BYTES)
        self._left = MOST_HELD_BYTES
        self._rows: dict[int, list[pa.RecordBatch]] = {}
        self._lacking: set[int] = set()

    def add(self, number: int, batch: pa.RecordBatch, *, is_whole: bool) -> None:
        """Keep rows of a file, or none of it if they lack columns or there is no room."""
        if number in self._lacking:
            return
        self._left -= batch.nbytes
        if is_whole and self._left >= 0:
            self._rows.setdefault(number, []).append(batch)
            return
        if self._left < 0:
            self.allowance.take(MOST_HELD_BYTES)
        self._lacking.add(number)
        for gone in self._rows.pop(number, ()):
            self._left += gone.nbytes

    def by_file(self, numbers: Sequence[int]) -> dict[int, list[pa.RecordBatch]]:
        """What is kept, by the place of the file in `numbers`."""
        return {place: self._rows[n] for place, n in enumerate(numbers) if n in self._rows}


def complete_counts(
    snapshot: Snapshot, files: pa.Table, counts: Sequence[int | None]
) -> tuple[int | None, ...]:
    """Return the physical rows of each file, read from its footer if the log has no count."""
    paths: list[Any] = files.column("path").to_pylist()
    return tuple(
        read_footer(snapshot.store, decode_path(path)).num_rows if rows is None else rows
        for path, rows in zip(paths, counts, strict=True)
    )
