"""Assign row ids to files that were written before the table supported row tracking.

Protocol: Row Tracking (Enabling Row Tracking)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from deltalog.actions import DomainMetadata
from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.errors import InvalidInputError
from deltalog.features.row_ids import Dialect, high_water_mark_action
from deltalog.kernels import pc
from deltalog.table_change import with_current_row_ids
from deltalog.verbs.alter.protocol import protocol_parameters
from deltalog.verbs.alter.staging import Alteration
from deltalog.verbs.operation import Staged
from deltalog.verbs.verb import Verb

if TYPE_CHECKING:
    from deltalog.engine import Engine
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction

BATCH_FILES: Final = 100_000
"""How many files one commit of a backfill adds again; Delta Spark's number."""


@dataclass(frozen=True, slots=True)
class BackfillRowIds(Verb[Staged[int]]):
    """Assign row ids to files that have none; the outcome is the number of these files.

    A large table is processed in batches, while others continue to write; the next call continues
    where this one, or another process, stopped.

    Args:
        max_files: how many files at most.

    Protocol: Row Tracking (Enabling Row Tracking)
    """

    max_files: int = BATCH_FILES
    name: ClassVar[str] = "ROW TRACKING BACKFILL"

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Staged[int]:
        """Add the files again.

        Raises:
            InvalidInputError: the table does not support row tracking.
        """
        del engine
        if transaction.configuration.row_id_dialect is None:
            raise InvalidInputError(
                f"cannot give row ids to the files of {transaction.store.root}: add the table "
                "feature rowTracking first"
            )
        files = _without_ids(transaction).slice(0, self.max_files)
        transaction.record_read_files(files)
        transaction.add_again(files)
        transaction.parameters["batchId"] = "0"
        return Staged(files.num_rows)


@dataclass(frozen=True, slots=True)
class UpgradeRowIds(Alteration):
    """Migrate row ids of the draft specification to row tracking; every row keeps its id.

    Writers of the draft cannot write the table afterwards; Delta Spark can. Row commit versions,
    which the draft does not have, begin with this commit.
    """

    name: ClassVar[str] = "UPGRADE PROTOCOL"

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the configuration, and add every file again.

        Raises:
            InvalidInputError: the table does not have the draft's row ids, or too many files.
        """
        snapshot = transaction.snapshot
        transaction.set_configuration(with_current_row_ids(transaction.configuration))
        if snapshot is not None:
            _add_files_again(transaction, snapshot)
        return protocol_parameters(transaction)


def stage_all_row_ids(transaction: PendingTransaction) -> None:
    """Assign row ids to all files without, in the commit that enables row tracking.

    Raises:
        InvalidInputError: there are too many files for one commit.
    """
    files = _without_ids(transaction)
    if files.num_rows > BATCH_FILES:
        raise InvalidInputError(
            f"cannot enable row tracking of {transaction.store.root} in one commit: "
            f"{files.num_rows} files have no row ids; add the table feature rowTracking, then "
            "backfill_row_ids, then set the property"
        )
    if files.num_rows:
        # Conflict with any concurrent change: a file added meanwhile would stay without ids, and a
        # file removed meanwhile would be added again.
        transaction.record_read(None)
        transaction.add_again(files)


def _add_files_again(transaction: PendingTransaction, snapshot: Snapshot) -> None:
    files = _kept(snapshot.files())
    if files.num_rows > BATCH_FILES:
        raise InvalidInputError(
            f"cannot upgrade the row ids of {transaction.store.root}: {files.num_rows} files are "
            f"too many for one commit, which takes {BATCH_FILES}; compact the table first"
        )
    transaction.record_read(None)
    versions: Any = files.column("defaultRowCommitVersion")
    filled = pc.fill_null(versions, snapshot.version + 1)
    place = files.column_names.index("defaultRowCommitVersion")
    transaction.add_again(files.set_column(place, "defaultRowCommitVersion", filled))
    mark = snapshot.row_id_high_water_mark
    if mark is not None and not files.column("baseRowId").null_count:
        # If files lack ids, the commit assigns them and records the mark itself.
        action = high_water_mark_action(Dialect.CURRENT, mark, preserved=True)
        if isinstance(action, DomainMetadata):
            transaction.set_domain(action)


def _without_ids(transaction: PendingTransaction) -> pa.Table:
    if transaction.snapshot is None:
        return FILE_SCHEMA.empty_table()
    has_ids: Any = transaction.snapshot.files(["baseRowId"]).column("baseRowId")
    if not has_ids.null_count:
        return FILE_SCHEMA.empty_table()
    return _kept(transaction.snapshot.files().filter(pc.is_null(has_ids)))


def _kept(files: pa.Table) -> pa.Table:
    """Return files to add again, with `dataChange` false as no row changes."""
    flags = pa.repeat(pa.scalar(value=False), files.num_rows)
    return files.set_column(files.column_names.index("dataChange"), "dataChange", flags)
