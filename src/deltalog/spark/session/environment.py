"""Check that the installed PySpark is recent enough; a class that some versions lack; errors.

The check runs before any other module of the package is imported. With an older PySpark, those
imports would fail with unhelpful errors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deltalog._util.extras import needing
from deltalog.errors import DeltaError

with needing("PySpark", "spark", __name__, "pyspark"):
    import pyspark

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
    except ImportError:

        class AvailableNow:
            """Placeholder for a base class that this version of PySpark lacks."""


__all__ = [
    "OLDEST_PYSPARK",
    "AvailableNow",
    "InstallationError",
    "UnsupportedPySparkError",
    "WorkerMismatchError",
    "check_pyspark",
]

OLDEST_PYSPARK: Final = (4, 1)


class InstallationError(DeltaError, ImportError):
    """The installed PySpark, or a Python worker, does not work with this version of deltalog."""

    code = "installation"


class UnsupportedPySparkError(InstallationError):
    """The installed PySpark is older than the oldest version that `deltalog.spark` supports."""

    code = "unsupported-pyspark"


class WorkerMismatchError(InstallationError):
    """A Python worker of Spark has no deltalog, or a version that differs from the driver's."""

    code = "worker-mismatch"


def check_pyspark(version: str) -> None:
    """Refuse a PySpark that is too old.

    Args:
        version: a version such as `4.1.0.dev3`; an unparsable string is accepted.

    Raises:
        UnsupportedPySparkError: the version is older than `OLDEST_PYSPARK`.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is not None and (int(found[1]), int(found[2])) < OLDEST_PYSPARK:
        oldest = ".".join(map(str, OLDEST_PYSPARK))
        raise UnsupportedPySparkError(
            f"deltalog.spark needs PySpark {oldest} or newer, but this Python has {version}: "
            f"install 'pyspark>={oldest}' or 'deltalog[spark]'"
        )


check_pyspark(pyspark.__version__)
