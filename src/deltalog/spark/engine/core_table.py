"""The core's table as a cluster has it: what follows its commits is done by tasks too.

Owns which of that tasks do: checkpoints of tables with more files than a driver should go through,
and the compaction that some tables ask for after each write.

Protocol: none; Checkpoints is the core's
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.snapshot.pieces import holds_more_files
from deltalog.spark.engine.bins import on_cluster
from deltalog.spark.engine.checkpoint import checkpoint_on_cluster
from deltalog.spark.reading.state import most_files_here
from deltalog.table import DeltaTable
from deltalog.transaction import PostCommitHookProperties
from deltalog.upkeep import create_checkpoint
from deltalog.verbs.optimize import RunOptions, auto_compact

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from pyspark.sql import SparkSession

    from deltalog.snapshot import Snapshot
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction
    from deltalog.transaction.commit import Ran

    T = TypeVar("T")


class ClusterTable(DeltaTable):
    """A table whose verbs commit here, and whose files tasks go through.

    Args:
        spark: the session.
        store: of the table.
        time_zone: of partition values that name none.
    """

    def __init__(self, spark: SparkSession, store: Store, *, time_zone: str) -> None:
        super().__init__(store, default_timezone=time_zone)
        self._spark = spark

    def run(
        self, operation: str, stage: Callable[[PendingTransaction], T], **options: Any
    ) -> Ran[T]:
        """As the core's; checkpoints are written where the state is."""
        if options.get("hooks") is None:
            options["hooks"] = PostCommitHookProperties(checkpoint_by=self._write_checkpoint)
        return super().run(operation, stage, **options)

    def _compact(self, hooks: PostCommitHookProperties | None) -> None:
        options = RunOptions(elsewhere=on_cluster(self._spark))
        compacted = auto_compact(self._snapshot, options=options, hooks=hooks)
        if compacted is not None:
            self.show(compacted)

    def _write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> None:
        if holds_more_files(snapshot, most_files_here(self._spark)):
            checkpoint_on_cluster(self._spark, snapshot, at_ms=at_ms)
        else:
            create_checkpoint(snapshot, at_ms=at_ms)
