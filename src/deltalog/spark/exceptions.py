"""The errors of concurrent writers under the names of `delta.exceptions`, and Spark's own.

The first are the errors that deltalog raises anywhere: the names differ, the classes do not. So
code that catches Delta's errors needs another import only.
"""

from __future__ import annotations

from deltalog import errors
from deltalog.spark.session.environment import (
    InstallationError,
    UnsupportedPySparkError,
    WorkerMismatchError,
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
    "UnsupportedPySparkError",
    "WorkerMismatchError",
]

ConcurrentAppendException = errors.ConcurrentAppendError
ConcurrentDeleteDeleteException = errors.ConcurrentDeleteDeleteError
ConcurrentDeleteReadException = errors.ConcurrentDeleteReadError
ConcurrentTransactionException = errors.ConcurrentTransactionError
ConcurrentWriteException = errors.CommitRetriesExhaustedError
DeltaConcurrentModificationException = errors.CommitConflictError
MetadataChangedException = errors.MetadataChangedError
ProtocolChangedException = errors.ProtocolChangedError
