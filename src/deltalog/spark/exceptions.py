"""The errors of concurrent writers under the names of `delta.exceptions`, and Spark's own.

The first are the errors that deltalog raises anywhere: the names differ, the classes do not. So
code that catches Delta's errors needs another import only.
"""

from __future__ import annotations

from deltalog.errors import (
    CommitConflictError as DeltaConcurrentModificationException,
)
from deltalog.errors import (
    CommitRetriesExhaustedError as ConcurrentWriteException,
)
from deltalog.errors import (
    ConcurrentAppendError as ConcurrentAppendException,
)
from deltalog.errors import (
    ConcurrentDeleteDeleteError as ConcurrentDeleteDeleteException,
)
from deltalog.errors import (
    ConcurrentDeleteReadError as ConcurrentDeleteReadException,
)
from deltalog.errors import (
    ConcurrentTransactionError as ConcurrentTransactionException,
)
from deltalog.errors import (
    MetadataChangedError as MetadataChangedException,
)
from deltalog.errors import (
    ProtocolChangedError as ProtocolChangedException,
)
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
