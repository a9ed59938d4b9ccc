"""Making the formats known to a session.

PySpark finds `deltalog` and `deltalog_sharing` by itself where the driver's Python has this
package; registering serves sessions that do not look, such as remote ones, and gives the first
another name.
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
    """Make a session know the formats, for tables of one's own and for shared ones.

    Args:
        spark: the session, classic or remote.
        name: `delta` lets pipelines that say `format("delta")` run where Delta's jar is missing.
        push_filters: let Spark hand its filters to Python sources; sessions do not by default.

    Raises:
        InvalidInputError: another name.
    """
    if name not in _NAMED:
        raise InvalidInputError(f"cannot register {name!r}: expected one of {sorted(_NAMED)}")
    spark.dataSource.register(_NAMED[name])
    spark.dataSource.register(SharingSource)
    if push_filters:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
