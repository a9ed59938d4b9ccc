"""Conflict errors with the names in `delta.exceptions`, and errors that only Spark code raises.

The conflict errors are aliases of deltalog's own classes. So code that catches Delta's errors needs
to change only its import.
"""

from __future__ import annotations

from deltalog import errors
from deltalog.spark.session.environment import (
    InstallationError,
    UnsupportedPySparkError,
    WorkerMismatchError,
)
from deltalog.spark.session.failures import (
    SparkTableExistsError,
    SparkTableNotFoundError,
    WrongIdentityTypeError,
    WrongTypeError,
)

__all__ = [
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "DeltaConcurrentModificationException",
    "InstallationError",
    "MetadataChangedException",
    "ProtocolChangedException",
    "SparkTableExistsError",
    "SparkTableNotFoundError",
    "UnsupportedPySparkError",
    "WorkerMismatchError",
    "WrongIdentityTypeError",
    "WrongTypeError",
]

ConcurrentAppendException = errors.ConcurrentAppendError
ConcurrentDeleteDeleteException = errors.ConcurrentDeleteDeleteError
ConcurrentDeleteReadException = errors.ConcurrentDeleteReadError
ConcurrentTransactionException = errors.ConcurrentTransactionError
ConcurrentWriteException = errors.CommitRetriesExhaustedError
DeltaConcurrentModificationException = errors.CommitConflictError
MetadataChangedException = errors.MetadataChangedError
ProtocolChangedException = errors.ProtocolChangedError
