"""The interface between verbs, which decide what is done, and engines, which do it.

An engine finds and changes rows, writes them, rewrites, lists and deletes files; it knows no verb.
`engine.local` uses threads of this process, `spark.engine` tasks of a cluster. An engine stages
into the transaction that it is given, and the caller commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from deltalog.configuration import TableConfiguration
    from deltalog.expressions import Expression
    from deltalog.rows.bins import BinRewrite, Rewritten
    from deltalog.rows.planned import PlannedChange
    from deltalog.rows.request import ChangeRequest
    from deltalog.snapshot import Snapshot
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles


class RowSource(Protocol):
    """Rows to write: a stream of Arrow batches, or a data frame on a cluster."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        ...


class Engine(Protocol):
    """Does the work on rows and files that verbs plan.

    Attributes:
        files_per_deletion: batch size of deletions; progress is reported after each batch.
    """

    files_per_deletion: int

    def open_rows(self, data: Any) -> RowSource:
        """Open rows in any form that the engine supports.

        Raises:
            InvalidInputError: the engine does not support the type.
        """
        ...

    def open_merge_source(self, data: Any) -> AbstractContextManager[Any]:
        """Open a merge's source, so that its rows can be read several times without a change.

        Raises:
            InvalidInputError: the engine does not support the type.
        """
        ...

    def plan_change(self, transaction: PendingTransaction, request: ChangeRequest) -> PlannedChange:
        """Plan a change of rows; the rows may be searched when it is applied.

        The source, if any, is from `open_merge_source`. Predicates and files that are read are
        recorded in the transaction, for conflict detection.

        Raises:
            InvalidInputError: condition, clauses or values do not fit the table.
        """
        ...

    def write_rows(
        self,
        spec: WriteSpec,
        rows: RowSource,
        *,
        predicate: Expression | None = None,
        tells_changes: bool = False,
    ) -> WrittenFiles:
        """Write rows to data files, without a commit; after a failure no file is left.

        Args:
            spec: of the table.
            rows: of `open_rows`; read once.
            predicate: every row must match it.
            tells_changes: whether change data files are written as well.

        Raises:
            SchemaMismatchError, ConstraintViolationError: the rows do not fit.
        """
        ...

    def rewrite_bins(self, job: BinRewrite) -> Sequence[Rewritten]:
        """Rewrite bins into new files; after a failure no file is left.

        Returns:
            The new files of each bin, in order; only of the first bins if the job's commit interval
            passed.
        """
        ...

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """Write a checkpoint; return whether this process read the version's whole state for it.

        Args:
            snapshot: the version.
            at_ms: milliseconds since 1970, UTC; tombstones that have expired by then are left out.
        """
        ...

    def list_files(self, store: Store, configuration: TableConfiguration) -> pa.Table:
        """List the files that vacuum may delete, with `LISTING_SCHEMA`."""
        ...

    def delete_files(self, store: Store, paths: Sequence[str]) -> None:
        """Delete files; files that do not exist are ignored.

        Raises:
            StorageError: some could not be deleted.
        """
        ...
