"""Shared tables as DataFrames, with the functions of the official client, `delta_sharing`.

The format `deltalog_sharing` reads the rows. It is registered in the session, in which Spark may
push filters down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from deltalog._util.argument_types import kind_of
from deltalog.errors import InvalidInputError
from deltalog.sharing.client.profile import parse_table_name, parse_table_url
from deltalog.spark.registration import register
from deltalog.spark.session.opening import session_time_zone
from deltalog.spark.sharing.batch import active_session

if TYPE_CHECKING:
    from pathlib import PurePath

    from pyspark.sql import DataFrame, SparkSession

_REGISTERED: Final[WeakSet[SparkSession]] = WeakSet()


def load_as_spark(
    url: str,
    version: int | None = None,
    timestamp: str | None = None,
    delta_sharing_profile: str | PurePath | None = None,
) -> DataFrame:
    """Return a shared table as a DataFrame of the active session.

    Args:
        url: `<profile>#<share>.<schema>.<table>`. Without `<profile>#` if `delta_sharing_profile`
            is set.
        version: the version of the table. The server must share the history of the table.
        timestamp: the time that selects the version. A timestamp without a time zone is in the
            session's time zone.
        delta_sharing_profile: the location of the profile.

    Raises:
        InvalidInputError: there is no active session.
        AnalysisException: the profile or table does not exist, or the server refuses access.
            PySpark's error contains deltalog's message.
    """
    _check_url(url, delta_sharing_profile)
    return _load(url, versionAsOf=version, timestampAsOf=timestamp, profile=delta_sharing_profile)


def load_table_changes_as_spark(
    url: str,
    starting_version: int | None = None,
    ending_version: int | None = None,
    starting_timestamp: str | None = None,
    ending_timestamp: str | None = None,
) -> DataFrame:
    """Return the changed rows of a shared table as a DataFrame of the active session.

    Args:
        url: `<profile>#<share>.<schema>.<table>`.
        starting_version: the first version; required unless `starting_timestamp` is set.
        ending_version: the last version. None without `ending_timestamp` means the latest version.
        starting_timestamp: the time of the first version. A timestamp without a time zone is in
            the session's time zone.
        ending_timestamp: the time of the last version, in the same form.

    Returns:
        The table's columns, `_change_type`, `_commit_version` and `_commit_timestamp`.

    Raises:
        InvalidInputError: no start is given, or there is no active session.
        AnalysisException: the profile or table does not exist, or the server refuses access. The
            error contains deltalog's message.
    """
    _check_url(url)
    if starting_version is None and starting_timestamp is None:
        raise InvalidInputError(
            f"cannot read the changes of {url.rpartition('#')[2]!r}: expected starting_version or "
            "starting_timestamp"
        )
    return _load(
        url,
        readChangeFeed="true",
        startingVersion=starting_version,
        endingVersion=ending_version,
        startingTimestamp=starting_timestamp,
        endingTimestamp=ending_timestamp,
    )


def _check_url(url: object, profile: str | PurePath | None = None) -> None:
    """Refuse a URL without its parts here, because an error of the format has a traceback."""
    if not isinstance(url, str):
        raise InvalidInputError(
            f"cannot load a shared table of {kind_of(url)}: the URL comes first, as in "
            "load_as_spark('<profile>#<share>.<schema>.<table>'); the active session loads it"
        )
    if profile is None:
        parse_table_url(url)
    else:
        parse_table_name(url.rpartition("#")[2])


def _load(url: str, **options: object) -> DataFrame:
    spark = active_session(url.rpartition("#")[2])
    if spark not in _REGISTERED:  # Spark warns if a format is registered again
        register(spark)
        _REGISTERED.add(spark)
    given = {name: str(value) for name, value in options.items() if value is not None}
    reader = spark.read.format("deltalog_sharing").options(timeZone=session_time_zone(spark))
    return reader.options(**given).load(url)
