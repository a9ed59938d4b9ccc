"""Row ids for files that were written before the table had any.

Protocol: Row Tracking (Enabling Row Tracking)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from deltalog.actions import DomainMetadata
from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.errors import InvalidInputError
from deltalog.features.row_ids import Dialect, high_water_mark_action
from deltalog.table_change import with_current_row_ids
from deltalog.verbs.alter.protocol import shown
from deltalog.verbs.alter.staging import record

if TYPE_CHECKING:
    from deltalog.transaction import PendingTransaction

BATCH_FILES: Final = 100_000
"""How many files one commit of a backfill adds again, as in Delta Spark."""


def stage_backfill(pending: PendingTransaction, *, max_files: int = BATCH_FILES) -> int:
    """Give row ids to files that have none, in a commit of its own.

    A table of many files gets them batch by batch, while others go on writing; the next call goes
    on where this one, or another process, came to.

    Args:
        pending: the transaction; the table must support row tracking.
        max_files: how many files at most.

    Returns:
        How many files got row ids; 0 if all have them.

    Raises:
        InvalidInputError: the table does not support row tracking.

    Protocol: Row Tracking (Enabling Row Tracking)
    """
    if pending.configuration.row_id_dialect is None:
        raise InvalidInputError(
            f"cannot give row ids to the files of {pending.store.root}: add the table feature "
            "rowTracking first"
        )
    files = _without_ids(pending).slice(0, max_files)
    pending.read_files(files)
    pending.add_rows(files)
    record(pending, "ROW TRACKING BACKFILL", batchId="0")
    return files.num_rows


def stage_all_row_ids(pending: PendingTransaction) -> int:
    """Give row ids to every file in the commit that enables row tracking.

    Raises:
        InvalidInputError: there are too many files for one commit.
    """
    files = _without_ids(pending)
    if files.num_rows > BATCH_FILES:
        raise InvalidInputError(
            f"cannot enable row tracking of {pending.store.root} in one commit: {files.num_rows} "
            "files have no row ids; add the table feature rowTracking, then backfill_row_ids, "
            "then set the property"
        )
    if files.num_rows:
        # A file that comes or goes meanwhile would be left out, or come back.
        pending.read(None)
        pending.add_rows(files)
    return files.num_rows


def upgrade_row_ids(pending: PendingTransaction) -> int:
    """Turn the draft's row ids into today's row tracking; every row keeps its id.

    Readers of the draft cannot write the table afterwards; Delta Spark can. Row commit versions,
    which the draft does not have, begin with this commit.

    Returns:
        How many files were added again.

    Raises:
        InvalidInputError: the table does not have the draft's row ids, or too many files.
    """
    snapshot = pending.snapshot
    pending.set_configuration(with_current_row_ids(pending.configuration))
    record(pending, "UPGRADE PROTOCOL", newProtocol=shown(pending.configuration.protocol))
    if snapshot is None:
        return 0
    files = _kept(snapshot.files())
    if files.num_rows > BATCH_FILES:
        raise InvalidInputError(
            f"cannot upgrade the row ids of {pending.store.root}: {files.num_rows} files are too "
            f"many for one commit, which takes {BATCH_FILES}; compact the table first"
        )
    pending.read(None)
    versions: Any = files.column("defaultRowCommitVersion")
    filled = pc.fill_null(versions, snapshot.version + 1)
    place = files.column_names.index("defaultRowCommitVersion")
    pending.add_rows(files.set_column(place, "defaultRowCommitVersion", filled))
    mark = snapshot.row_id_high_water_mark
    if mark is not None and not files.column("baseRowId").null_count:
        # Where files still lack ids, the commit gives some and records the mark itself.
        action = high_water_mark_action(Dialect.CURRENT, mark, preserved=True)
        if isinstance(action, DomainMetadata):
            pending.set_domain(action)
    return files.num_rows


def _without_ids(pending: PendingTransaction) -> pa.Table:
    if pending.snapshot is None:
        return FILE_SCHEMA.empty_table()
    has_ids: Any = pending.snapshot.files(["baseRowId"]).column("baseRowId")
    if not has_ids.null_count:
        return FILE_SCHEMA.empty_table()
    return _kept(pending.snapshot.files().filter(pc.is_null(has_ids)))


def _kept(files: pa.Table) -> pa.Table:
    """Files as they are added again: no row comes or goes."""
    flags = pa.repeat(pa.scalar(value=False), files.num_rows)
    return files.set_column(files.column_names.index("dataChange"), "dataChange", flags)
