"""Every exception that deltalog raises, as one tree.

The branches of the tree correspond to the possible reactions of a caller::

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
    │   ├── BranchClosedError                       the branch is being published
    │   └── CommitOutcomeUnknownError, CommitRetriesExhaustedError
    ├── AuditFailedError                            correct the rows of the branch
    ├── BranchNotFoundError (LookupError), BranchExistsError
    ├── StorageError ← AlreadyExistsError, ObjectNotFoundError, AccessDeniedError
    │   └── CatalogError                            the catalog refused or failed
    │       └── CatalogAccessError, CatalogUnavailableError
    ├── SharingError                                the sharing server refused or failed
    │   └── SharingAccessError, ShareNotFoundError, SharingUnavailableError
    └── InternalError                               a bug in deltalog

A message states what was attempted, on which object, what was expected and found, and what to do.
The package `deltalog.spark` defines further errors.

A call with wrong names raises Python's errors instead, which are no `DeltaError`: `TypeError` for
an unknown argument, and `AttributeError` for an unknown method.
"""

from __future__ import annotations

import os
import sys
import traceback
import unicodedata
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Self, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# Unicode categories of characters that are escaped: control characters, format characters such as
# direction marks, surrogates, and separators of lines and paragraphs.
CONTROLS: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str) -> str:
    r"""Return a string as one line, in which Python's escapes replace invisible characters.

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
    """Return a string in which escapes replace invisible characters, except line ends and tabs."""
    if text.isprintable():
        return text
    return "\n".join(
        "\t".join(printable(part) for part in line.split("\t")) for line in text.split("\n")
    )


FULL_TRACEBACKS: Final = "DELTALOG_FULL_TRACEBACKS"
"""The environment variable with which tracebacks contain deltalog's frames."""
_INTERNAL: Final = frozenset(
    {"concurrent", "contextlib", "deltalog", "functools", "pyarrow", "sqlglot", "threading"}
)
"""Packages whose frames at the end of a traceback are about deltalog, and not about its caller."""


def frames_up_to_call(frames: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of deltalog at its end."""
    found = []
    while frames is not None:
        found.append(frames)
        frames = frames.tb_next
    while found and _package(found[-1]) in _INTERNAL:
        found.pop()
    kept: TracebackType | None = None
    for one in reversed(found):
        kept = TracebackType(kept, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return kept


def _package(frames: TracebackType) -> str:
    name: str = frames.tb_frame.f_globals.get("__name__") or ""
    return name.partition(".")[0]


def notebook_lines(error: BaseException, frames: TracebackType | None) -> list[str]:
    """Return the lines that IPython shows for an error; without IPython, those of Python."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        return traceback.format_exception(type(error), error, frames)
    lines: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, frames)
    return lines


def _rebuild(cls: type[DeltaError], args: tuple[Any, ...], state: dict[str, Any]) -> DeltaError:
    error = cls.__new__(cls)
    error.args = args
    error.__setstate__(state)
    return error


class DeltaError(Exception):
    """Base class of all exceptions that deltalog raises.

    Attributes:
        code: a stable, machine-readable code for the kind of error.
    """

    code: ClassVar[str] = "delta-error"
    has_internal_frames: ClassVar[bool] = False  # whether tracebacks show deltalog's frames

    def __str__(self) -> str:
        """Return the message. Control characters, which may be from a table, are escaped."""
        return printable_lines(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without a call of the constructor, because constructors have different arguments.

        Spark sends errors between processes.
        """
        return _rebuild, (type(self), self.args, self.__dict__.copy())

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows: the traceback up to the call of deltalog.

        The message states what to do about the error; frames inside of deltalog and the errors that
        it handled do not. The environment variable `DELTALOG_FULL_TRACEBACKS` keeps them.
        """
        shown, frames = self, self.__traceback__
        if not self.has_internal_frames and not os.environ.get(FULL_TRACEBACKS):
            # `copy` would keep the cause if Dask has registered its pickling of exceptions.
            shown = _rebuild(type(self), self.args, self.__dict__.copy())
            frames = frames_up_to_call(frames)
        return notebook_lines(shown, frames)

    def with_message(self, message: str) -> Self:
        """Return an error with the same class, attributes and traceback, and another message."""
        made = _rebuild(type(self), (message, *self.args[1:]), self.__dict__.copy())
        return cast("Self", made.with_traceback(self.__traceback__))

    def with_note(self, note: str) -> Self:
        """Add a line of context, such as `while reading …`; return the same error."""
        self.add_note(note)
        return self


class TableNotFoundError(DeltaError, FileNotFoundError):
    """There is no Delta table at this location."""

    code = "table-not-found"
    log_begins = False  # whether there is a part of a log, such as an incomplete checkpoint


class TableExistsError(DeltaError, FileExistsError):
    """A table already exists at this location, and the mode requires a new table."""

    code = "table-exists"


class InvalidInputError(DeltaError, ValueError):
    """An argument is invalid, for example an unknown option or an unparsable predicate."""

    code = "invalid-input"


class AmbiguousMergeError(InvalidInputError):
    """Several rows of a merge's source would change the same row of the table."""

    code = "ambiguous-merge"


class DeltaProtocolError(DeltaError):
    """The request cannot be executed without violating the Delta protocol."""

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
    """A version between two commits of the log is missing."""

    code = "log-gap"


class CheckpointMissingError(MalformedLogError):
    """The log does not begin with version 0, and it has no complete checkpoint."""

    code = "checkpoint-missing"


class CheckpointUnreadableError(MalformedLogError):
    """A checkpoint cannot be read, and the commits before it have been deleted."""

    code = "checkpoint-unreadable"


class InvalidPartitionValueError(MalformedLogError):
    """A partition value in the log cannot be parsed as the type of its column."""

    code = "invalid-partition-value"


class UnsafePathError(MalformedLogError):
    """A path in the log leads out of the table, or to a location that a table must not use."""

    code = "unsafe-path"


class UnsupportedFeatureError(DeltaProtocolError):
    """The table uses a table feature that deltalog does not support for this operation.

    Attributes:
        table: the location of the table.
        version: the version of the table; None if it is unknown.
        operation: the attempted operation, such as `write to`.
        features: the names of the features that prevent the operation.
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
    """A catalog coordinates the commits of the table, but the catalog's log tail was not passed."""

    code = "catalog-managed"


class UnsupportedProtocolError(DeltaProtocolError):
    """The protocol version of the table is higher than the highest one that deltalog supports."""

    code = "unsupported-protocol"


class UnsupportedTypeError(DeltaProtocolError):
    """A column has a type that deltalog does not support."""

    code = "unsupported-type"


class VersionNotFoundError(DeltaProtocolError):
    """The log does not contain the requested version: it was never created, or was cleaned up."""

    code = "version-not-found"


class DataFileMissingError(DeltaProtocolError):
    """The log refers to a data file, deletion vector or change data file that does not exist."""

    code = "data-file-missing"
    ADVICE: ClassVar[str] = (
        "a vacuum deletes files that only versions before the retention period need "
        "(delta.deletedFileRetentionDuration, 7 days by default): open the table again, without a "
        "version or with a newer one; if the newest version lacks files, doctor() names them, to "
        "be restored from a backup"
    )


class DataFileUnreadableError(DeltaProtocolError):
    """A data file is not Parquet, or its columns do not match the table's schema."""

    code = "data-file-unreadable"
    ADVICE: ClassVar[str] = (
        "if the file is damaged, restore it from a backup, or delete it and remove its rows from "
        "the table with repair()"
    )


class DeletionVectorError(DeltaProtocolError):
    """A deletion vector is truncated, corrupt or does not match its descriptor."""

    code = "deletion-vector-unreadable"


class ChangeDataFeedNotEnabledError(DeltaProtocolError):
    """A version of the requested range was written without a change data feed."""

    code = "cdf-not-enabled"


class IncompatibleChangesError(DeltaProtocolError):
    """The schema changes within the requested range, and no schema can represent all rows."""

    code = "cdf-incompatible-schema"


class RowsChangedError(DeltaProtocolError):
    """A commit deleted or rewrote rows, but the stream can only return new rows."""

    code = "rows-changed"


class SchemaMismatchError(DeltaError):
    """The columns or types of the data do not match the schema of the table."""

    code = "schema-mismatch"


class ConstraintViolationError(DeltaError):
    """Rows violate a constraint: NOT NULL, CHECK, an invariant, or a generated column.

    Attributes:
        constraint: the name of the violated constraint; None if it is unknown.
        num_rows: the number of violating rows among the rows that were checked; None if it is
            unknown.
        examples: a few violating rows, as dictionaries.
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
    """The commit failed. Unless a subclass states otherwise, the table is unchanged."""

    code = "commit-failed"


class AppendOnlyError(CommitFailedError, InvalidInputError):
    """The operation would change or delete rows of an append-only table; the table is unchanged."""

    code = "append-only"


class CommitOutcomeUnknownError(CommitFailedError):
    """The store failed, and it is unknown whether the commit exists. It may still appear later.

    Attributes:
        version: the attempted version.
        txn_id: the value of `commitInfo.txnId` in the commit. If a commit in the log has this
            value, the commit has succeeded.
    """

    code = "commit-outcome-unknown"

    def __init__(self, message: str, *, version: int | None = None, txn_id: str = "") -> None:
        self.version = version
        self.txn_id = txn_id
        super().__init__(message)


class TransactionIncompleteError(CommitFailedError):
    """A transaction over several tables ended after some of its commits. Its journal still exists.

    `CatalogTransactions.recover` makes the remaining commits, or raises the error that prevents
    them.

    Attributes:
        transaction_id: the id of the transaction and of its journal.
        committed: the names of the tables whose commits exist.
        left: the names of the other tables, in the order of their commits. The commit of the first
            of these tables may exist, too.
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
    """Another writer committed first, and this commit conflicts with the other writer's commit.

    The commit of the other writer is called the winning commit.

    Attributes:
        version: the version of the winning commit; None if it is unknown.
        operation: the operation of the winning commit.
        files: the paths of some files that both commits concern.
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
    """The winning commit added files that may contain rows that this operation would have read."""

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
    """Other writers committed first in every attempt."""

    code = "commit-retries-exhausted"


class BranchNotFoundError(DeltaError, LookupError):
    """The table has no branch with this name: it was published or discarded, or never existed."""

    code = "branch-not-found"


class BranchExistsError(DeltaError):
    """The table already has a branch with this name."""

    code = "branch-exists"


class BranchClosedError(CommitFailedError):
    """The branch is being published, so it accepts no commits."""

    code = "branch-closed"


class AuditFailedError(DeltaError):
    """A branch does not pass the checks of its publish. Main is unchanged, and the branch remains.

    Attributes:
        branch: the name of the branch.
        failures: for each failed check, what it found.
    """

    code = "audit-failed"

    def __init__(self, message: str, *, branch: str = "", failures: Sequence[str] = ()) -> None:
        self.branch = branch
        self.failures: tuple[str, ...] = tuple(failures)
        super().__init__(message)


class StorageError(DeltaError, OSError):
    """The store failed, or refused a request."""

    code = "storage"


class AlreadyExistsError(StorageError):
    """An object already exists and must not be overwritten."""

    code = "already-exists"


class ObjectNotFoundError(StorageError):
    """The store has no object at this path."""

    code = "object-not-found"


class AccessDeniedError(StorageError):
    """The store rejected the credentials, or none were found."""

    code = "access-denied"


class CatalogError(StorageError):
    """A catalog refused a request, or sent an invalid response.

    The class is a subclass of `StorageError`. So code that retries a commit handles a failure of
    the catalog like a failure of the store.

    Attributes:
        status: the HTTP status; None if there was no response.
        error_code: the error code in the response; empty if there is none.
    """

    code = "catalog"

    def __init__(self, message: str, *, status: int | None = None, error_code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code

    @property
    def was_refused(self) -> bool:
        """Whether the catalog rejected the request. The request can then not take effect later."""
        return self.status is not None and 400 <= self.status < 500


class CatalogAccessError(CatalogError, AccessDeniedError):
    """The catalog rejected the token, or the token's owner does not have the permission."""

    code = "catalog-access"


class CatalogUnavailableError(CatalogError):
    """The catalog did not send a valid response in any attempt."""

    code = "catalog-unavailable"


class SharingError(DeltaError):
    """A sharing server refused a request, or failed to answer it.

    Attributes:
        status: the HTTP status; None if there was no response.
        error_code: the error code in the response; empty if there is none.
    """

    code = "sharing"

    def __init__(self, message: str, *, status: int | None = None, error_code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code


class SharingAccessError(SharingError):
    """The server rejected the profile. Request a new profile, or access to the table."""

    code = "sharing-access"


class ShareNotFoundError(SharingError):
    """The server has no such share, schema or table for this recipient."""

    code = "share-not-found"


class SharingUnavailableError(SharingError):
    """The server did not send a valid response in any attempt."""

    code = "sharing-unavailable"


class InternalError(DeltaError):
    """A bug in deltalog; please report it."""

    code = "internal"
    has_internal_frames = True


_MEANT: Final = {
    **dict.fromkeys(
        ("DeltalogError", "DeltaTableError", "DeltaException", "DeltaLakeError"),
        "DeltaError, the base class of all",
    ),
    **dict.fromkeys(
        ("TableNotFound", "NotATableError", "DeltaTableNotFoundError"), "TableNotFoundError"
    ),
    **dict.fromkeys(("SchemaError", "SchemaMismatch"), "SchemaMismatchError"),
    **dict.fromkeys(
        ("ConflictError", "ConcurrentModificationException", "CommitConflict"),
        "CommitConflictError",
    ),
    **dict.fromkeys(("ValidationError", "InvariantViolationError"), "ConstraintViolationError"),
}
"""Names of other libraries, and what to use instead."""

if not TYPE_CHECKING:  # type checkers must report unknown names

    def __getattr__(name: str) -> NoReturn:
        """Raise an error that suggests the name of an exception."""
        # `_util.lazy_names` has such a function for other modules, but errors are below `_util`.
        from difflib import get_close_matches  # noqa: PLC0415  # only for errors
        from dis import opmap  # noqa: PLC0415  # as above

        own = [one for one, kind in globals().items() if isinstance(kind, type)]
        known = [one for one in own if issubclass(globals()[one], DeltaError)]
        close = [] if name.startswith("_") else get_close_matches(name, known, 1, 0.75)
        hint = f": did you mean {close[0]!r}?" if close else ""
        hint = f": use {_MEANT[name]}" if name in _MEANT else hint
        hint = hint or f": dir({__name__}) lists its names" * (not name.startswith("_"))
        caller = sys._getframe(1)  # noqa: SLF001  # the function for this purpose
        # Python would replace an AttributeError of `from … import …` by an error without the hint.
        if caller.f_code.co_code[caller.f_lasti] == opmap["IMPORT_FROM"]:
            raise ImportError(f"cannot import name {name!r} from {__name__!r}{hint}", name=name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
