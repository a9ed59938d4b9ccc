"""Register the formats in a session.

PySpark finds `deltalog` and `deltalog_sharing` by itself if the driver's Python has this package;
registering is for sessions that do not search, such as remote ones, and to use another name for
`deltalog`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from deltalog.errors import InvalidInputError
from deltalog.spark.sharing.source import SharingSource
from deltalog.spark.source import DeltalogSource, DeltaSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAMED: Final = {"deltalog": DeltalogSource, "delta": DeltaSource}


def register(
    spark: SparkSession,
    *,
    name: Literal["deltalog", "delta"] = "deltalog",
    push_filters: bool = True,
) -> None:
    """Register the formats for Delta tables and for shared tables in a session.

    Args:
        spark: the session, classic or remote.
        name: `delta` lets pipelines with `format("delta")` run without Delta's jar.
        push_filters: let Spark push filters to Python sources; by default sessions do not.

    Raises:
        InvalidInputError: another name.
    """
    if name not in _NAMED:
        raise InvalidInputError(f"cannot register {name!r}: expected one of {sorted(_NAMED)}")
    spark.dataSource.register(_NAMED[name])
    spark.dataSource.register(SharingSource)
    if push_filters:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
