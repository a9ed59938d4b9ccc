"""The local engine: threads read and write files, the caller's thread plans and stages.

What only some work needs is imported with it: a first write that adds rows needs none of that.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog.engine.listing import listed_files
from deltalog.errors import InternalError
from deltalog.write.files import write_files
from deltalog.write.source import open_batches

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from deltalog.configuration import TableConfiguration
    from deltalog.engine.protocol import RowSource
    from deltalog.expressions import Expression
    from deltalog.rows.bins import BinRewrite, Rewritten
    from deltalog.rows.planned import PlannedChange
    from deltalog.rows.request import ChangeRequest
    from deltalog.snapshot import Snapshot
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles


class LocalEngine:
    """Does all work in this process, without state; see `Engine`."""

    files_per_deletion = 5_000

    def open_rows(self, data: Any) -> RowSource:
        """Open anything that holds rows as a stream of Arrow batches."""
        return open_batches(data)

    def open_merge_source(self, data: Any) -> AbstractContextManager[Any]:
        """Hold the source's rows in memory, or in a temporary file if they are many."""
        # Only merges need what knows how rows are matched, a tenth of what a first write loads.
        from deltalog.rows.merge.source import MergeSource  # noqa: PLC0415

        return nullcontext(data) if isinstance(data, MergeSource) else MergeSource(data)

    def plan_change(self, transaction: PendingTransaction, request: ChangeRequest) -> PlannedChange:
        """Find rows, by reading the columns of conditions from the files that pruning leaves."""
        if request.source is None:
            from deltalog.rows.local import LocalChange  # noqa: PLC0415  # as above

            return LocalChange(transaction, request)
        from deltalog.rows.merge.local import LocalMerge  # noqa: PLC0415  # as above

        return LocalMerge(transaction, request)

    def write_rows(
        self,
        spec: WriteSpec,
        rows: RowSource,
        *,
        predicate: Expression | None = None,
        tells_changes: bool = False,
    ) -> WrittenFiles:
        """Write rows in one pass; files are encoded while the next rows are read."""
        if not isinstance(rows, pa.RecordBatchReader):
            raise InternalError(f"cannot write a {type(rows).__name__} in this process")
        # An empty list has no columns that a predicate could be about.
        if predicate is not None and rows.schema.names:
            from deltalog.write.replace_where import write_where  # noqa: PLC0415  # as above

            return write_where(spec, rows, predicate, tells_changes=tells_changes)
        if predicate is None and spec.configuration.optimizes_writes:
            from deltalog.rows.gather import write_optimized  # noqa: PLC0415  # as above

            return write_optimized(spec, rows)
        return write_files(spec, rows)

    def rewrite_bins(self, job: BinRewrite) -> Sequence[Rewritten]:
        """Rewrite several bins at a time: `max_concurrent_tasks`, or one per core up to 8."""
        from deltalog.rows.bins import rewrite_here  # noqa: PLC0415  # as above

        return rewrite_here(job)

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """Write a checkpoint with `upkeep.create_checkpoint`."""
        from deltalog.upkeep import create_checkpoint  # noqa: PLC0415  # as above

        create_checkpoint(snapshot, at_ms=at_ms)
        return True

    def list_files(self, store: Store, configuration: TableConfiguration) -> pa.Table:
        """List the whole table."""
        return listed_files(store, configuration)

    def delete_files(self, store: Store, paths: Sequence[str]) -> None:
        """Delete files in the batches that the store supports."""
        store.delete_many(paths)
