"""Making the format known to a session.

PySpark finds `deltalog` by itself where the driver's Python has this package; registering serves
sessions that do not look, such as remote ones, and gives the format another name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from deltalog.errors import InvalidInputError
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
    """Make a session know the format.

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
    if push_filters:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
