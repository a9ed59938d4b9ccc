"""Every exception that deltalog raises, as one tree.

The branches correspond to the possible reactions of a caller:

    DeltaError
    ├── TableNotFoundError (FileNotFoundError)      create the table, or correct the location
    ├── TableExistsError (FileExistsError)          choose another mode
    ├── InvalidInputError (ValueError)              correct the call
    ├── DeltaProtocolError                          the table does not allow the request
    │   ├── MalformedLogError                       the log breaks the protocol
    │   │   ├── NoMetadataError, NoProtocolError, InvalidMetadataError, InvalidProtocolError
    │   │   ├── LogGapError, CheckpointMissingError, CheckpointUnreadableError
    │   │   ├── InvalidPartitionValueError, UnsafePathError
    │   │   └── MalformedMessageError               a message of a server breaks its protocol
    │   ├── UnsupportedFeatureError                 use a newer deltalog, or another engine
    │   │   └── CatalogManagedError                 pass the catalog's log tail
    │   ├── UnsupportedProtocolError, UnsupportedTypeError
    │   ├── VersionNotFoundError                    request a version that still exists
    │   ├── DataFileMissingError, DataFileUnreadableError, DeletionVectorError
    │   └── ChangeDataFeedNotEnabledError, IncompatibleChangesError, RowsChangedError
    ├── SchemaMismatchError, ConstraintViolationError
    ├── CommitFailedError
    │   ├── CommitConflictError ← ProtocolChangedError, MetadataChangedError, ConcurrentAppendError,
    │   │   ConcurrentDeleteReadError, ConcurrentDeleteDeleteError, ConcurrentTransactionError,
    │   │   DomainMetadataConflictError
    │   └── CommitOutcomeUnknownError, CommitRetriesExhaustedError
    ├── StorageError ← AlreadyExistsError, ObjectNotFoundError, AccessDeniedError
    │   └── CatalogError                            the catalog refused or failed
    │       └── CatalogAccessError, CatalogUnavailableError
    ├── SharingError                                the sharing server refused or failed
    │   └── SharingAccessError, ShareNotFoundError, SharingUnavailableError
    └── InternalError                               a bug in deltalog

A message states what was attempted, on which object, what was expected and found, and what to do.
`deltalog.spark` defines further errors.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# Unicode categories of characters that are not printed literally: controls, formats such as
# directions, surrogates, and line and paragraph separators.
CONTROLS: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str) -> str:
    r"""Return a string on one line, with Python's escapes for invisible characters.

    >>> print(printable("a\x1b[2J\nb"))
    a\x1b[2J\nb
    """
    if text.isprintable():
        return text
    return "".join(
        repr(letter)[1:-1] if unicodedata.category(letter) in CONTROLS else letter
        for letter in text
    )


def printable_lines(text: str) -> str:
    """Return a string like `printable`, but with its line ends and tabs."""
    if text.isprintable():
        return text
    return "\n".join(
        "\t".join(printable(part) for part in line.split("\t")) for line in text.split("\n")
    )


def _rebuild(cls: type[DeltaError], args: tuple[Any, ...], state: dict[str, Any]) -> DeltaError:
    error = cls.__new__(cls)
    error.args = args
    error.__setstate__(state)
    return error


class DeltaError(Exception):
    """Root of all exceptions that deltalog raises.

    Attributes:
        code: a stable, machine-readable code for the kind of error.
    """

    code: ClassVar[str] = "delta-error"

    def __str__(self) -> str:
        """Return the message, with control characters from a table escaped."""
        return printable_lines(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the constructor, whose arguments differ between classes.

        Spark sends errors between processes.
        """
        return _rebuild, (type(self), self.args, self.__dict__.copy())

    def with_note(self, note: str) -> Self:
        """Add a line of context, such as `while reading …`, and return the same error."""
        self.add_note(note)
        return self


class TableNotFoundError(DeltaError, FileNotFoundError):
    """There is no Delta table at this location."""

    code = "table-not-found"
    log_begins = False  # whether a part of a log exists, such as an incomplete checkpoint


class TableExistsError(DeltaError, FileExistsError):
    """A table already exists at this location, and the mode requires a new table."""

    code = "table-exists"


class InvalidInputError(DeltaError, ValueError):
    """An argument is invalid, such as an unparsable predicate or an unknown column or option."""

    code = "invalid-input"


class AmbiguousMergeError(InvalidInputError):
    """Several rows of a merge's source would change the same row of the table."""

    code = "ambiguous-merge"


class DeltaProtocolError(DeltaError):
    """The request cannot be executed without a violation of the Delta protocol."""

    code = "protocol"


class MalformedLogError(DeltaProtocolError):
    """The log contains something that the protocol does not allow."""

    code = "malformed-log"


class MalformedMessageError(MalformedLogError):
    """A message of Delta Sharing or of a catalog breaks its protocol."""

    code = "malformed-message"


class NoMetadataError(MalformedLogError):
    """The log has no metaData action."""

    code = "no-metadata"


class NoProtocolError(MalformedLogError):
    """The log has no protocol action."""

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
    """The first commits have been deleted, and no complete checkpoint replaces them."""

    code = "checkpoint-missing"


class CheckpointUnreadableError(MalformedLogError):
    """A checkpoint cannot be read, and the commits that it replaces have been deleted."""

    code = "checkpoint-unreadable"


class InvalidPartitionValueError(MalformedLogError):
    """A partition value in the log cannot be parsed as its column's type."""

    code = "invalid-partition-value"


class UnsafePathError(MalformedLogError):
    """A path in the log is outside of the table, or at a location that a table must not use."""

    code = "unsafe-path"


class UnsupportedFeatureError(DeltaProtocolError):
    """The table uses a table feature that deltalog does not support for this operation.

    Attributes:
        table: the location of the table.
        version: the version of the table, or None.
        operation: the attempted operation, such as `write to`.
        features: the names of the features in the protocol.
    """

    code = "unsupported-feature"

    def __init__(
        self,
        *,
        table: str,
        version: int | None,
        operation: str,
        features: Sequence[str],
        hint: str = "use an engine that supports it, or a newer deltalog",
    ) -> None:
        self.table = table
        self.version = version
        self.operation = operation
        self.features: tuple[str, ...] = tuple(features)
        at = "" if version is None else f" at version {version}"
        names = ", ".join(sorted(features))
        super().__init__(
            f"cannot {operation} {table}{at}: table feature(s) {names} "
            f"are not supported for this; {hint}"
        )


class CatalogManagedError(UnsupportedFeatureError):
    """A catalog decides which commits of the table are valid, but its log tail was not passed."""

    code = "catalog-managed"


class UnsupportedProtocolError(DeltaProtocolError):
    """The protocol version of the table is higher than deltalog supports."""

    code = "unsupported-protocol"


class UnsupportedTypeError(DeltaProtocolError):
    """A column has a type that deltalog does not support."""

    code = "unsupported-type"


class VersionNotFoundError(DeltaProtocolError):
    """The log does not contain the requested version or timestamp, or no longer contains it."""

    code = "version-not-found"


class DataFileMissingError(DeltaProtocolError):
    """The log refers to a data file, deletion vector or change file that does not exist."""

    code = "data-file-missing"


class DataFileUnreadableError(DeltaProtocolError):
    """A data file is not Parquet, or its columns do not match the table's schema."""

    code = "data-file-unreadable"


class DeletionVectorError(DeltaProtocolError):
    """A deletion vector is truncated, corrupt or does not match its descriptor."""

    code = "deletion-vector-unreadable"


class ChangeDataFeedNotEnabledError(DeltaProtocolError):
    """A version of the requested range was written without a change data feed."""

    code = "cdf-not-enabled"


class IncompatibleChangesError(DeltaProtocolError):
    """The schema changes in the requested range, so that no schema can represent all its rows."""

    code = "cdf-incompatible-schema"


class RowsChangedError(DeltaProtocolError):
    """A commit deleted or rewrote rows, but the stream reads only new rows."""

    code = "rows-changed"


class SchemaMismatchError(DeltaError):
    """The data's columns or types do not match the table's schema."""

    code = "schema-mismatch"


class ConstraintViolationError(DeltaError):
    """Rows violate a NOT NULL or CHECK constraint, an invariant, or a generated column.

    Attributes:
        constraint: the name of the violated constraint, or None.
        num_rows: the number of violating rows in the rows that were checked so far, or None.
        examples: a few violating rows as dictionaries.
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
        self.examples: tuple[Any, ...] = tuple(examples)
        super().__init__(message)


class CommitFailedError(DeltaError):
    """The commit did not happen; the table is unchanged."""

    code = "commit-failed"


class CommitOutcomeUnknownError(CommitFailedError):
    """The store failed, so it is unknown whether the commit exists. It may still appear later.

    Attributes:
        version: the attempted version.
        txn_id: the value of `commitInfo.txnId` in the commit. If the log contains it, the commit
            has succeeded.
    """

    code = "commit-outcome-unknown"

    def __init__(self, message: str, *, version: int | None = None, txn_id: str = "") -> None:
        self.version = version
        self.txn_id = txn_id
        super().__init__(message)


class TransactionIncompleteError(CommitFailedError):
    """A transaction on several tables ended between its commits. Its journal still exists.

    `CatalogTransactions.recover` makes the remaining commits, or raises the error that prevents
    them.

    Attributes:
        transaction_id: the id of the transaction and its journal.
        committed: the names of the tables with a commit.
        left: the names of the other tables, in the order of their commits. The commit of the first
            table may exist.
    """

    code = "transaction-incomplete"

    def __init__(
        self,
        message: str,
        *,
        transaction_id: str = "",
        committed: Sequence[str] = (),
        left: Sequence[str] = (),
    ) -> None:
        self.transaction_id = transaction_id
        self.committed: tuple[str, ...] = tuple(committed)
        self.left: tuple[str, ...] = tuple(left)
        super().__init__(message)


class CommitConflictError(CommitFailedError):
    """Another writer committed first, and this commit conflicts with that winning commit.

    Attributes:
        version: the version of the winning commit, or None.
        operation: the operation of the winning commit.
        files: some paths of files that both commits use.
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
        self.files: tuple[str, ...] = tuple(files)
        super().__init__(message)


class ProtocolChangedError(CommitConflictError):
    """The winning commit changed the protocol."""

    code = "protocol-changed"


class MetadataChangedError(CommitConflictError):
    """The winning commit changed the schema, the properties or the partitioning."""

    code = "metadata-changed"


class ConcurrentAppendError(CommitConflictError):
    """The winning commit added files with rows that this operation would have read."""

    code = "concurrent-append"


class ConcurrentDeleteReadError(CommitConflictError):
    """The winning commit removed a file that this operation read."""

    code = "concurrent-delete-read"


class ConcurrentDeleteDeleteError(CommitConflictError):
    """The winning commit removed a file that this operation also removes."""

    code = "concurrent-delete-delete"


class ConcurrentTransactionError(CommitConflictError):
    """The winning commit recorded a transaction of the same application."""

    code = "concurrent-transaction"


class DomainMetadataConflictError(CommitConflictError):
    """The winning commit changed a metadata domain that this commit also changes."""

    code = "domain-metadata-conflict"


class CommitRetriesExhaustedError(CommitFailedError):
    """In every attempt, another writer committed first."""

    code = "commit-retries-exhausted"


class StorageError(DeltaError, OSError):
    """The store failed, or refused a request."""

    code = "storage"


class AlreadyExistsError(StorageError):
    """An object already exists and must not be overwritten."""

    code = "already-exists"


class ObjectNotFoundError(StorageError):
    """There is no object at this path."""

    code = "object-not-found"


class AccessDeniedError(StorageError):
    """The store rejected the credentials, or requires credentials."""

    code = "access-denied"


class CatalogError(StorageError):
    """A catalog refused a request, or sent an invalid response.

    The class is a `StorageError`, so code that retries a commit handles a failed store and a failed
    catalog in the same way.

    Attributes:
        status: the HTTP status; None if there was no response.
        error_code: the catalog's own error code; empty if the response has none.
    """

    code = "catalog"

    def __init__(self, message: str, *, status: int | None = None, error_code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code

    @property
    def was_refused(self) -> bool:
        """Whether the catalog rejected the request, which therefore cannot take effect later."""
        return self.status is not None and 400 <= self.status < 500


class CatalogAccessError(CatalogError, AccessDeniedError):
    """The catalog rejected the token, or the owner of the token lacks the permission."""

    code = "catalog-access"


class CatalogUnavailableError(CatalogError):
    """The catalog sent no valid response in any attempt."""

    code = "catalog-unavailable"


class SharingError(DeltaError):
    """A sharing server refused a request, or could not answer the request.

    Attributes:
        status: the HTTP status; None if there was no response.
        error_code: the server's own error code; empty if the response has none.
    """

    code = "sharing"

    def __init__(self, message: str, *, status: int | None = None, error_code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code


class SharingAccessError(SharingError):
    """The server rejected the profile. Request a new profile, or permission for the table."""

    code = "sharing-access"


class ShareNotFoundError(SharingError):
    """The server has no such share, schema or table for this recipient."""

    code = "share-not-found"


class SharingUnavailableError(SharingError):
    """The server sent no valid response in any attempt."""

    code = "sharing-unavailable"


class InternalError(DeltaError):
    """A bug in deltalog; please report it."""

    code = "internal"
