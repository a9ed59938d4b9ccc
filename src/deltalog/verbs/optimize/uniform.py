"""Switch on icebergCompatV3, and rewrite the files in which Iceberg would not find the row ids.

It is one commit: how row ids are stored follows from the properties that the commit sets.

Protocol: RFC IcebergCompatV3, Row Tracking
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from deltalog.catalog import MaintenanceOperation
from deltalog.errors import InvalidInputError
from deltalog.rows.bins import BinRewrite, RunOptions
from deltalog.upkeep.permission import check_maintenance
from deltalog.verbs.alter.iceberg import check_counts, missing_properties
from deltalog.verbs.alter.staging import change_properties
from deltalog.verbs.foreign_row_ids import hidden_columns, with_other_row_ids
from deltalog.verbs.optimize.bins import considered_files
from deltalog.verbs.optimize.purge import STRATEGY, copy_alike, pack_alike
from deltalog.verbs.optimize.result import Optimized
from deltalog.verbs.optimize.rewrite import stage_rewrite
from deltalog.verbs.verb import Verb

if TYPE_CHECKING:
    from deltalog.engine import Engine
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeUniform(Verb[Optimized]):
    """Show the table as Iceberg with the ids of its rows, which every file gets that lacks them.

    Args:
        version: of Iceberg compatibility, one that needs row tracking.
        options: of the run; all is one commit.
    """

    version: int
    options: RunOptions = field(default_factory=RunOptions)
    name: ClassVar[str] = "REORG"
    doing: ClassVar[str] = "rewriting files"

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Set the properties, and have the engine rewrite the files; rows keep their ids.

        Raises:
            InvalidInputError: the table cannot have the version, rows are not tracked yet, or a
                file has no `numRecords`.

        Cost: the footer of every file; each selected file is read and written once.
        """
        snapshot = transaction.read_snapshot
        configuration = snapshot.configuration
        check_maintenance(snapshot, MaintenanceOperation.DATA_REORGANIZATION, "reorganize")
        if not configuration.row_ids_enabled:
            raise InvalidInputError(
                f"cannot switch on icebergCompatV{self.version} of {snapshot.store.root} while "
                "files are rewritten: expected row tracking; set delta.enableRowTracking = true"
            )
        check_counts(snapshot, self.version)
        files = considered_files(snapshot, None)
        others = with_other_row_ids(snapshot.store, files, hidden_columns(configuration))
        # A file that is added meanwhile may hold such row ids, too.
        transaction.record_read(None)
        missing = missing_properties(configuration, self.version)
        change_properties(transaction, {**configuration.metadata.configuration, **missing})
        target = self.options.files.spec_for(transaction).target_file_size_bytes
        transaction.parameters.update(predicate=[], icebergCompatVersion=self.version)
        job = BinRewrite(
            transaction=transaction,
            bins=pack_alike(snapshot, files.filter(others), target),
            rewrite=copy_alike,
            options=replace(self.options, min_commit_interval_s=None),
        )
        return stage_rewrite(job, engine, strategy=STRATEGY, num_considered=files.num_rows)
