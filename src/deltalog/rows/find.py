"""Find the rows that match a predicate: the first half of a DELETE or UPDATE here.

`SelectedRows` is what every change of existing rows begins with, a merge and those on Spark too.

Owns the search: files are pruned, then only the predicate's columns are read. What happens to the
rows is left to the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.kernels import pc
from deltalog.metadata_columns import FILE_NUMBER, ROW_INDEX
from deltalog.paths import decode_path
from deltalog.progress import ProgressCount
from deltalog.scan.plan import check_row_ids, make_numbered_tasks, read_spec
from deltalog.scan.prune import prune
from deltalog.scan.reader import read_tasks
from deltalog.storage.parquet import read_footer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.expressions import Expression
    from deltalog.snapshot import Snapshot


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
    """

    files: pa.Table
    positions: tuple[pa.Int64Array | None, ...]
    num_records: tuple[int | None, ...]
    num_candidates: int

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
    progress: ProgressCount | None = None,
) -> SelectedRows:
    """Return the files that hold matching rows, and the rows' positions.

    Args:
        snapshot: of the table.
        predicate: resolved; None matches every row.
        progress: counted in files read.

    Cost: the log's columns that the predicate needs; then the predicate's columns of the files
    that pruning left. Memory: eight bytes per matching row.
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
    progress = progress or ProgressCount(None)
    progress.expect(files.num_rows)
    spec = read_spec(snapshot, columns=[ROW_INDEX], predicate=predicate)
    check_row_ids(snapshot, spec)
    tasks = progress.each(make_numbered_tasks(snapshot, spec, files))
    for batch in read_tasks(tasks):
        if batch.num_rows:
            rows: Any = batch.column(ROW_INDEX)
            found.setdefault(batch.column(FILE_NUMBER)[0].as_py(), []).append(rows)
    selected = files.take(pa.array(list(found), pa.int64()))
    return SelectedRows(
        files=selected,
        positions=tuple(pa.concat_arrays(parts) for parts in found.values()),
        num_records=complete_counts(snapshot, selected, [counts[number] for number in found]),
        num_candidates=files.num_rows,
    )


def complete_counts(
    snapshot: Snapshot, files: pa.Table, counts: Sequence[int | None]
) -> tuple[int | None, ...]:
    """Return the physical rows of each file, read from its footer if the log has no count."""
    paths: list[Any] = files.column("path").to_pylist()
    return tuple(
        read_footer(snapshot.store, decode_path(path)).num_rows if rows is None else rows
        for path, rows in zip(paths, counts, strict=True)
    )
