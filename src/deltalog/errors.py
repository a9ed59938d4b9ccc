"""Every exception that deltalog raises, as one tree.

The branches follow what a caller does about it:

    DeltaError
    ├── TableNotFoundError (FileNotFoundError)      create the table, or mend the location
    ├── TableExistsError (FileExistsError)          pick another mode
    ├── InvalidInputError (ValueError)              mend the call
    ├── DeltaProtocolError                          the table cannot be honoured as asked
    │   ├── MalformedLogError                       what the log holds breaks the protocol
    │   │   ├── NoMetadataError, NoProtocolError, InvalidMetadataError, InvalidProtocolError
    │   │   ├── LogGapError, CheckpointMissingError, CheckpointUnreadableError
    │   │   ├── InvalidPartitionValueError, UnsafePathError
    │   │   └── MalformedMessageError               a message of Delta Sharing breaks its protocol
    │   ├── UnsupportedFeatureError                 a newer deltalog, or another engine
    │   │   └── CatalogManagedError                 hand in the catalog's log tail
    │   ├── UnsupportedProtocolError, UnsupportedTypeError
    │   ├── VersionNotFoundError                    ask for a version that is still there
    │   ├── DataFileMissingError, DataFileUnreadableError, DeletionVectorError
    │   └── ChangeDataFeedNotEnabledError, IncompatibleChangesError, RowsChangedError
    ├── SchemaMismatchError, ConstraintViolationError
    ├── CommitFailedError
    │   ├── CommitConflictError ← ProtocolChangedError, MetadataChangedError, ConcurrentAppendError,
    │   │   ConcurrentDeleteReadError, ConcurrentDeleteDeleteError, ConcurrentTransactionError,
    │   │   DomainMetadataConflictError
    │   └── CommitOutcomeUnknownError, CommitRetriesExhaustedError
    ├── StorageError ← AlreadyExistsError, ObjectNotFoundError, AccessDeniedError
    ├── SharingError                                what the sharing server answered
    │   └── SharingAccessError, ShareNotFoundError, SharingUnavailableError
    └── InternalError                               a defect of deltalog

A message says what was attempted, on what, what was expected, what was found and what to do.
This module imports nothing of deltalog; `deltalog.spark` adds errors of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def _rebuild(cls: type[DeltaError], args: tuple[Any, ...], state: dict[str, Any]) -> DeltaError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class DeltaError(Exception):
    """Root of everything that deltalog raises on purpose.

    Attributes:
        code: stable, machine-readable kind of the error.
    """

    code: ClassVar[str] = "delta-error"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by state: leaves have constructors of their own."""
        return _rebuild, (type(self), self.args, self.__dict__.copy())

    def with_note(self, note: str) -> Self:
        """Add a line of context (`while reading …`) and return the same error."""
        self.add_note(note)
        return self


class TableNotFoundError(DeltaError, FileNotFoundError):
    """There is no Delta table at this location."""

    code = "table-not-found"


class TableExistsError(DeltaError, FileExistsError):
    """A table is already at this location and the mode forbids that."""

    code = "table-exists"


class InvalidInputError(DeltaError, ValueError):
    """An argument is wrong: a bad predicate, an unknown column, an option that does not exist."""

    code = "invalid-input"


class AmbiguousMergeError(InvalidInputError):
    """Several rows of a merge's source would change the same row of the table."""

    code = "ambiguous-merge"


class DeltaProtocolError(DeltaError):
    """The table cannot be read or written as asked without breaking the Delta protocol."""

    code = "protocol"


class MalformedLogError(DeltaProtocolError):
    """The log holds something that the protocol does not allow."""

    code = "malformed-log"


class MalformedMessageError(MalformedLogError):
    """A message of Delta Sharing is not as its protocol says."""

    code = "malformed-message"


class NoMetadataError(MalformedLogError):
    """No metaData action was found."""

    code = "no-metadata"


class NoProtocolError(MalformedLogError):
    """No protocol action was found."""

    code = "no-protocol"


class InvalidMetadataError(MalformedLogError):
    """The metaData action is incomplete or contradicts itself."""

    code = "invalid-metadata"


class InvalidProtocolError(MalformedLogError):
    """The protocol action is incomplete or contradicts itself."""

    code = "invalid-protocol"


class LogGapError(MalformedLogError):
    """Commit versions are not contiguous."""

    code = "log-gap"


class CheckpointMissingError(MalformedLogError):
    """The log starts after version 0 and no complete checkpoint covers what is gone."""

    code = "checkpoint-missing"


class CheckpointUnreadableError(MalformedLogError):
    """A checkpoint that is needed cannot be read, and nothing else covers it."""

    code = "checkpoint-unreadable"


class InvalidPartitionValueError(MalformedLogError):
    """A partition value in the log is no text of its column's type."""

    code = "invalid-partition-value"


class UnsafePathError(MalformedLogError):
    """A path in the log leads where a table's path must not lead."""

    code = "unsafe-path"


class UnsupportedFeatureError(DeltaProtocolError):
    """The table needs a table feature that deltalog cannot honour for this operation.

    Attributes:
        table: where the table is.
        version: the version that was to be used, or None.
        operation: what was attempted, as a verb.
        features: the names that stand in the protocol.
    """

    code = "unsupported-feature"

    def __init__(
        self,
        *,
        table: str,
        version: int | None,
        operation: str,
        features: Sequence[str],
        hint: str = "use an engine that knows it, or a newer deltalog",
    ) -> None:
        self.table = table
        self.version = version
        self.operation = operation
        self.features = tuple(features)
        at = "" if version is None else f" at version {version}"
        names = ", ".join(sorted(features))
        super().__init__(
            f"cannot {operation} {table}{at}: table feature(s) {names} "
            f"are not supported for this; {hint}"
        )


class CatalogManagedError(UnsupportedFeatureError):
    """A catalog decides which commits of this table count, and none was handed in."""

    code = "catalog-managed"


class UnsupportedProtocolError(DeltaProtocolError):
    """The protocol version of the table is higher than any that deltalog knows."""

    code = "unsupported-protocol"


class UnsupportedTypeError(DeltaProtocolError):
    """A column has a type that deltalog does not know."""

    code = "unsupported-type"


class VersionNotFoundError(DeltaProtocolError):
    """The version or moment asked for is not in the log, or not any more."""

    code = "version-not-found"


class DataFileMissingError(DeltaProtocolError):
    """The log names a data file, a deletion vector or a change file that is not there."""

    code = "data-file-missing"


class DataFileUnreadableError(DeltaProtocolError):
    """A data file is no Parquet file, or its columns do not fit the table's schema."""

    code = "data-file-unreadable"


class DeletionVectorError(DeltaProtocolError):
    """A deletion vector is torn, corrupt or does not fit its descriptor."""

    code = "deletion-vector-unreadable"


class ChangeDataFeedNotEnabledError(DeltaProtocolError):
    """A version of the asked range was written without a change data feed."""

    code = "cdf-not-enabled"


class IncompatibleChangesError(DeltaProtocolError):
    """The asked range of changes crosses a schema change that one schema cannot show."""

    code = "cdf-incompatible-schema"


class RowsChangedError(DeltaProtocolError):
    """A commit deleted or rewrote rows, and who follows the table asked for new rows only."""

    code = "rows-changed"


class SchemaMismatchError(DeltaError):
    """The data's columns or types do not fit the table's schema."""

    code = "schema-mismatch"


class ConstraintViolationError(DeltaError):
    """Rows break a NOT NULL, a CHECK constraint, an invariant or a generated column.

    Attributes:
        constraint: what is broken, or None.
        num_rows: how many rows break it, as far as they were looked at, or None.
        examples: a few of them, as dicts.
    """

    code = "constraint-violation"

    def __init__(
        self,
        message: str,
        *,
        constraint: str | None = None,
        num_rows: int | None = None,
        examples: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.constraint = constraint
        self.num_rows = num_rows
        self.examples = tuple(examples)
        super().__init__(message)


class CommitFailedError(DeltaError):
    """The commit did not happen; the table is as it was."""

    code = "commit-failed"


class CommitOutcomeUnknownError(CommitFailedError):
    """The store failed so that nobody can say whether the commit happened; it may still appear.

    Attributes:
        version: the version that was tried.
        txn_id: the `txnId` in the commit's `commitInfo`, if it is there.
    """

    code = "commit-outcome-unknown"

    def __init__(self, message: str, *, version: int | None = None, txn_id: str = "") -> None:
        self.version = version
        self.txn_id = txn_id
        super().__init__(message)


class CommitConflictError(CommitFailedError):
    """Another commit won, and what it did is incompatible with this one.

    Attributes:
        version: the version that won, or None.
        operation: what the winner says it did.
        files: some of the paths that both are about.
    """

    code = "commit-conflict"

    def __init__(
        self,
        message: str,
        *,
        version: int | None = None,
        operation: str | None = None,
        files: Sequence[str] = (),
    ) -> None:
        self.version = version
        self.operation = operation
        self.files = tuple(files)
        super().__init__(message)


class ProtocolChangedError(CommitConflictError):
    """The winner changed the protocol."""

    code = "protocol-changed"


class MetadataChangedError(CommitConflictError):
    """The winner changed schema, properties or partitioning."""

    code = "metadata-changed"


class ConcurrentAppendError(CommitConflictError):
    """The winner added files that this operation should have read."""

    code = "concurrent-append"


class ConcurrentDeleteReadError(CommitConflictError):
    """The winner removed a file that this operation read."""

    code = "concurrent-delete-read"


class ConcurrentDeleteDeleteError(CommitConflictError):
    """The winner removed a file that this operation removes too."""

    code = "concurrent-delete-delete"


class ConcurrentTransactionError(CommitConflictError):
    """The winner committed the same application transaction."""

    code = "concurrent-transaction"


class DomainMetadataConflictError(CommitConflictError):
    """The winner changed the same metadata domain."""

    code = "domain-metadata-conflict"


class CommitRetriesExhaustedError(CommitFailedError):
    """Every attempt lost to another writer."""

    code = "commit-retries-exhausted"


class StorageError(DeltaError, OSError):
    """The store failed, or refuses."""

    code = "storage"


class AlreadyExistsError(StorageError):
    """An object is already there, and it must not be overwritten."""

    code = "already-exists"


class ObjectNotFoundError(StorageError):
    """There is no object at this path."""

    code = "object-not-found"


class AccessDeniedError(StorageError):
    """The store refuses these credentials, or none were given."""

    code = "access-denied"


class SharingError(DeltaError):
    """A sharing server refused a request, or could not answer it.

    Attributes:
        status: of HTTP; None if no answer came.
        error_code: what the server calls the fault; empty if it does not say.
    """

    code = "sharing"

    def __init__(self, message: str, *, status: int | None = None, error_code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code


class SharingAccessError(SharingError):
    """The server does not let this profile in: get a new one, or the right to what was asked."""

    code = "sharing-access"


class ShareNotFoundError(SharingError):
    """The server has no such share, schema or table for this recipient."""

    code = "share-not-found"


class SharingUnavailableError(SharingError):
    """The server gave no usable answer, however often it was asked."""

    code = "sharing-unavailable"


class InternalError(DeltaError):
    """deltalog broke a rule of its own; please report it."""

    code = "internal"
