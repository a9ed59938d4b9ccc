"""The seam between what is to be done and who does it.

An engine finds and changes rows, writes them, rewrites files and handles many files; it knows no
verb. `engine.local` is threads of this process; `spark.engine` is tasks of a cluster. Whatever an
engine stages goes into the transaction that it is given, and the caller commits.
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
    from deltalog.rows.changes import FoundRows, RowChanges
    from deltalog.snapshot import Snapshot
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles


class RowSource(Protocol):
    """Rows to write, wherever they are: a stream of Arrow batches, or a frame on a cluster."""

    @property
    def schema(self) -> pa.Schema:
        """Of the rows."""
        ...


class Engine(Protocol):
    """Does the work on rows and files that verbs plan.

    Attributes:
        files_per_deletion: files that are deleted at once; between such batches work can be ended.
    """

    files_per_deletion: int

    def open_rows(self, data: Any) -> RowSource:
        """Rows in any form that the engine takes.

        Raises:
            InvalidInputError: it takes no such thing.
        """
        ...

    def open_source(self, data: Any) -> AbstractContextManager[Any]:
        """The rows of a merge's source, which are asked for more than once and do not change.

        Raises:
            InvalidInputError: the engine takes no such thing.
        """
        ...

    def find_rows(self, transaction: PendingTransaction, changes: RowChanges) -> FoundRows:
        """The rows that a change concerns, found when they are first asked for.

        A source is of `open_source`.
        What is read of the table for that is noted in the transaction as read.

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
        """Rows as data files that no commit names yet; where it fails, none is left.

        Args:
            spec: of the table.
            rows: of `open_rows`; read once.
            predicate: which every row must match.
            tells_changes: whether files for the change feed are written as well.

        Raises:
            SchemaMismatchError, ConstraintViolationError: the rows do not fit.
        """
        ...

    def rewrite_bins(self, job: BinRewrite) -> Sequence[Rewritten]:
        """The rows of groups of files in new files; where one fails, no file is left.

        Returns:
            What came of each bin, in their order: of all, or of the first ones if the job lets
            the rest go into another commit.
        """
        ...

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """Write a checkpoint of a version; whether this process went through all its files.

        Args:
            snapshot: the version.
            at_ms: milliseconds since 1970, UTC; tombstones that have expired by then are left out.
        """
        ...

    def list_files(self, store: Store, configuration: TableConfiguration) -> pa.Table:
        """Every file of the table's directory that a vacuum may look at: `LISTING_SCHEMA`."""
        ...

    def delete_files(self, store: Store, paths: Sequence[str]) -> None:
        """Delete files; gone ones are no error.

        Raises:
            StorageError: some could not be deleted.
        """
        ...
