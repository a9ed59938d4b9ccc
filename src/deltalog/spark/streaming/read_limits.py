"""Limits of micro-batches, in the classes of the installed PySpark.

Owns the difference between PySpark 4.1, which has no such classes, and later versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
    except ImportError:

        class AvailableNow:
            """Stands for a class that this PySpark lacks."""


__all__ = ["AvailableNow", "default_limit", "is_everything"]


def default_limit(max_files: int | None, max_bytes: int | None) -> Any:
    """Return the limit that the options of a stream set; of two, Spark gets the first."""
    from pyspark.sql.streaming import datasource  # noqa: PLC0415  # PySpark 4.1 has it not

    if max_files is not None:
        return datasource.ReadMaxFiles(max_files)
    if max_bytes is not None:
        return datasource.ReadMaxBytes(max_bytes)
    return datasource.ReadAllAvailable()


def is_everything(limit: Any) -> bool:
    """Whether Spark requests everything available, whatever the options say."""
    return limit is None or type(limit).__name__ == "ReadAllAvailable"
