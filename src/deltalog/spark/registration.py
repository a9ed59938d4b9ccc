"""Register the formats in a session.

PySpark finds `deltalog` and `deltalog_sharing` by itself if the driver's Python has this package;
registering has PySpark's own spellings lead to deltalog in the session, makes the formats known to
sessions that do not search, such as remote ones, and gives `deltalog` another name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pyspark.errors import AnalysisException

from deltalog.errors import InvalidInputError
from deltalog.spark.door import close_door, open_door
from deltalog.spark.session.catalogs import set_catalogs
from deltalog.spark.session.formats import check_catalog
from deltalog.spark.sharing.source import SharingSource
from deltalog.spark.source import DeltalogSource, DeltaSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from deltalog.catalogs.protocol import TableCatalog

_NAMED: Final = {"deltalog": DeltalogSource, "delta": DeltaSource}


def register(
    spark: SparkSession,
    *,
    name: Literal["deltalog", "delta"] = "deltalog",
    push_filters: bool = True,
    native: bool = True,
    catalogs: Mapping[str, TableCatalog | str] | None = None,
) -> None:
    """Register the formats for Delta tables and for shared tables in a session.

    PySpark's own spellings lead to deltalog for the format `name`: batches that `spark.read` loads
    are planned as by `deltalog.spark.read`, `df.write` writes as `deltalog.spark.write`, and
    `spark.sql`, `spark.table`, `spark.catalog`, `saveAsTable`, `insertInto` and `toTable` know its
    tables by their names, which Spark's catalog holds. `unregister` ends that.

    Args:
        spark: the session, classic or remote.
        name: `delta` lets pipelines with `format("delta")` run without Delta's jar.
        push_filters: let Spark push filters to Python sources; by default sessions do not.
        native: False leaves all spellings to PySpark, and reads to Python workers.
        catalogs: name → catalog: `DeltaTable.forName`, `DeltaTable.create` and
            `deltalog.spark.sql` know the catalog's tables by names that begin with it, such as
            `uc.main.sales.orders`. A text is `uc://` for the Unity Catalog of the environment, the
            URL of one, `glue`, or a directory. They are those of this session and process; None
            leaves what is registered.

    Raises:
        InvalidInputError: another name, or Spark has that format already, as from Delta's jar; or
            the session's settings ask for the catalog of that jar, which is not there.
    """
    _check_name(name)
    check_catalog(spark, spark.conf.getAll)
    try:
        spark.dataSource.register(_NAMED[name])
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        raise InvalidInputError(
            f"cannot register {name!r}: Spark has a format of this name from a jar, and keeps it; "
            "say format('deltalog') for deltalog's, or start the session without the jar"
        ) from error
    spark.dataSource.register(SharingSource)
    if push_filters:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    if catalogs is not None:
        set_catalogs(spark, catalogs)
    if native:
        open_door(spark, name)
    else:
        close_door(spark, name)


def unregister(spark: SparkSession, *, name: Literal["deltalog", "delta"] = "deltalog") -> None:
    """Leave PySpark's spellings of a format to PySpark, as before `register`.

    Spark has no way to forget a format: it stays known to the session.

    Args:
        spark: the session.
        name: of the format.

    Raises:
        InvalidInputError: another name.
    """
    _check_name(name)
    close_door(spark, name)


def _check_name(name: str) -> None:
    if name not in _NAMED:
        raise InvalidInputError(f"cannot register {name!r}: expected one of {sorted(_NAMED)}")
