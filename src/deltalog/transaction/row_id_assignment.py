"""Assignment of row ids to the files of a commit, for every attempt again.

Owns which files get ids, and from which id on: new files and files without ids, directly after the
highest id in use. Existing ids never change.

Protocol: Row Tracking (Writer Requirements); Row IDs (draft)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._json import JsonObject, loads
from deltalog.errors import InvalidInputError
from deltalog.features import row_ids
from deltalog.features.row_ids import Dialect
from deltalog.kernels import compute, exact_sum
from deltalog.paths import canonical_paths

if TYPE_CHECKING:
    from deltalog.actions import Action, AddFile
    from deltalog.configuration import TableConfiguration
    from deltalog.transaction.commit_base import CommitBase
    from deltalog.transaction.pending import PendingTransaction

_IDS: Final = ("baseRowId", "defaultRowCommitVersion")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """The files of a commit with their row ids.

    Args:
        adds: new files.
        rows: existing files that are added again, `FILE_SCHEMA`.
        actions: the new high water mark, if it must be recorded.
        backfilled: ids that a winning backfill gave to files.
        root: the table's location.
    """

    adds: list[AddFile]
    rows: pa.Table
    actions: list[Action]
    backfilled: pa.Table | None
    root: str

    def with_ids(self, files: pa.Table) -> pa.Table:
        """Removed files with the ids that a winning backfill gave them (ledger ROWID-16)."""
        return _with_backfilled(files, self.backfilled, self.root)


def assign_row_ids(
    pending: PendingTransaction,
    base: CommitBase,
    configuration: TableConfiguration,
    rows: pa.Table,
    version: int,
) -> Assigned:
    """Give row ids to every file of the commit that has none.

    Args:
        pending: the content of the commit.
        base: the version below it, with the highest row id in use.
        configuration: protocol and metadata after it.
        rows: existing files that it adds again.
        version: that it creates.

    Raises:
        InvalidInputError: a file's statistics lack `numRecords`, or the ids do not fit 64 bits.
    """
    root = pending.store.root
    rows = _with_backfilled(rows, base.backfilled, root)
    dialect = configuration.row_id_dialect
    assigning = row_ids.is_assigning(dialect, configuration.properties)
    if dialect is None or not assigning or not (pending.adds or rows.num_rows):
        return Assigned(
            adds=list(pending.adds), rows=rows, actions=[], backfilled=base.backfilled, root=root
        )
    commit_version = version if dialect is Dialect.CURRENT else None
    known = base.row_id_high_water_mark
    mark = row_ids.NO_ROW_ID if known is None else known
    adds: list[AddFile] = []
    for add in pending.adds:
        if add.base_row_id is None:
            count = _num_records(add)
            adds.append(
                replace(add, base_row_id=mark + 1, default_row_commit_version=commit_version)
            )
            mark += count
        elif add.default_row_commit_version is None:
            adds.append(replace(add, default_row_commit_version=commit_version))
        else:
            adds.append(add)
    rows, mark = _fill_rows(rows, mark, commit_version)
    # Files may bring ids along (a clone, a restore); the high water mark must cover them, too.
    mark = max([mark, *_last_ids(adds)])
    if mark > row_ids.MAX_ROW_ID:
        raise InvalidInputError(
            f"cannot commit {pending.operation} to {root}: the highest row id in use is {known}, "
            f"and there are no ids left for its rows: the last one is {row_ids.MAX_ROW_ID}"
        )
    actions: list[Action] = [
        row_ids.high_water_mark_action(
            spoken, mark, preserved=_are_preserved(pending, base, configuration, spoken)
        )
        for spoken in row_ids.dialects_of(configuration.features)
        # The draft wants its action in every commit that adds data.
        if spoken is Dialect.DRAFT or known is None or mark != known
    ]
    return Assigned(adds=adds, rows=rows, actions=actions, backfilled=base.backfilled, root=root)


def _are_preserved(
    pending: PendingTransaction,
    base: CommitBase,
    configuration: TableConfiguration,
    dialect: Dialect,
) -> bool:
    """Whether all rows that the commit copies keep the ids that they have in a dialect."""
    if not pending.preserves_row_ids or base.gained_row_ids:
        return False
    copies = pending.copies_rows and bool(pending.adds)
    return not copies or row_ids.keeps_copied_ids(
        dialect, configuration.features, configuration.properties
    )


def _num_records(add: AddFile) -> int:
    found = None
    if add.stats:
        found = JsonObject(loads(add.stats, add.path), add.path).optional("numRecords", int)
    if found is None:
        raise _uncounted(add.path)
    if found < 0:
        raise InvalidInputError(
            f"cannot give row ids to {add.path!r}: its statistics say that it has {found} rows"
        )
    return found


def _uncounted(path: str) -> InvalidInputError:
    return InvalidInputError(
        f"cannot give row ids to {path!r}: its statistics lack numRecords, and tables with row "
        "ids need it"
    )


def _last_ids(adds: list[AddFile]) -> list[int]:
    return [add.base_row_id + _num_records(add) - 1 for add in adds if add.base_row_id is not None]


def _fill_rows(rows: pa.Table, mark: int, commit_version: int | None) -> tuple[pa.Table, int]:
    """Give ids to existing files that have none (backfill), and commit versions (the draft)."""
    versions: Any = rows.column("defaultRowCommitVersion")
    if commit_version is not None and versions.null_count:
        given = compute.coalesce(versions, pa.scalar(commit_version, pa.int64()))
        rows = _replaced(rows, "defaultRowCommitVersion", given)
    bases: Any = rows.column("baseRowId")
    if not bases.null_count:
        return rows, mark
    missing = bases.is_null()
    from deltalog.stats import parse_stats  # noqa: PLC0415  # only files that are added again

    counts = parse_stats(rows.column("stats"), pa.schema([("numRecords", pa.int64())]))
    needed = compute.if_else(missing, counts.column("numRecords"), 0)
    if needed.null_count:
        row = needed.is_null().to_pylist().index(True)
        raise _uncounted(rows.column("path")[row].as_py())
    last = mark + exact_sum(needed)  # whoever called refuses what is too large
    if last > row_ids.MAX_ROW_ID:
        return rows, last
    after = compute.cumulative_sum(needed)
    starts = compute.add(compute.subtract(after, needed), mark + 1)
    rows = _replaced(rows, "baseRowId", compute.coalesce(bases, starts))
    return rows, last


def _with_backfilled(files: pa.Table, backfilled: pa.Table | None, root: str) -> pa.Table:
    if backfilled is None or not files.num_rows:
        return files
    keys: Any = canonical_paths(backfilled.column("path"), root)
    places = compute.index_in(
        canonical_paths(files.column("path"), root),
        value_set=keys.combine_chunks(),
    )
    for name in _IDS:
        given = backfilled.column(name).take(places)
        files = _replaced(files, name, compute.coalesce(given, files.column(name)))
    return files


def _replaced(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)
