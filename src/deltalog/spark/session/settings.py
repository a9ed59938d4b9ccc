"""The settings of a session that change what deltalog writes and reads.

The settings come from a session, or, in a task, from the properties that Spark sends to the task.

Protocol: none
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.spark.session.known_settings import DEFAULTS, DELTA, TIME_ZONE, refuse_unfollowed
from deltalog.table import table_defaults
from deltalog.transaction import CommitProperties, PostCommitHookProperties
from deltalog.transaction.properties import AppTransaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

_USER_METADATA: Final = f"{DELTA}commitInfo.userMetadata"
_AUTO_MERGE: Final = f"{DELTA}schema.autoMerge.enabled"
_APP: Final = f"{DELTA}write.txnAppId"
_APP_VERSION: Final = f"{DELTA}write.txnVersion"
_MOST_RECORDS: Final = "spark.sql.files.maxRecordsPerFile"
_OPTIMIZE_WRITE: Final = f"{DELTA}optimizeWrite.enabled"
_AUTO_COMPACT: Final = f"{DELTA}autoCompact.enabled"
_OPTIMIZED_SIZE: Final = f"{DELTA}optimize.maxFileSize"
_OVERWRITE_MODE: Final = "spark.sql.sources.partitionOverwriteMode"
_ANSI: Final = "spark.sql.ansi.enabled"
MAX_RETRIES: Final = "spark.deltalog.maxRetries"
RETENTION_CHECK: Final = f"{DELTA}retentionDurationCheck.enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """A session's settings for writes. A setting that is not set is None.

    Args:
        dynamic: whether an overwrite replaces only the partitions that receive new rows.
        merge_schema: whether a write adds columns of the data that the table lacks.
        user_metadata: the user's string that commits store in the table's history.
        app: the application id and version, which make a repeated write have no effect.
        max_records_per_file: the maximum number of rows in a file; 0 means no limit.
        optimize_write: whether the rows of a partition are moved to few tasks, which write larger
            files.
        auto_compact: whether small files are compacted after a commit.
        optimized_bytes: the size of the files that OPTIMIZE writes.
        max_retries: the maximum number of times that a change is run again after a conflict with
            another writer.
        time_zone: the time zone of timestamps without a time zone, in Spark's notation.
        defaults: the default properties of new tables: name → value.
    """

    dynamic: bool | None = None
    merge_schema: bool | None = None
    user_metadata: str | None = None
    app: AppTransaction | None = None
    max_records_per_file: int | None = None
    optimize_write: bool | None = None
    auto_compact: bool | None = None
    optimized_bytes: int | None = None
    max_retries: int | None = None
    time_zone: str | None = None
    defaults: tuple[tuple[str, str], ...] = ()

    @property
    def hooks(self) -> PostCommitHookProperties | None:
        """Return the settings of post-commit hooks; None if the table's properties decide."""
        if self.auto_compact is None:
            return None
        return PostCommitHookProperties(auto_compact=self.auto_compact)

    def commit_properties(self, app: AppTransaction | None = None) -> CommitProperties:
        """Return the user metadata, the application transaction and the retries of a commit."""
        text = self.user_metadata
        return CommitProperties(
            custom_metadata={"userMetadata": text} if text else None,
            app_transactions=None if app is None else [app],
            max_retries=self.max_retries,
        )


def read_settings(given: Mapping[str, str]) -> SessionSettings:
    """Parse the settings for writes.

    Args:
        given: all settings of a session, by full name.

    Raises:
        InvalidInputError: a value is invalid, or deltalog does not support it.
    """
    refuse_unfollowed(given, writes=True)
    mode = given.get(_OVERWRITE_MODE)
    size = given.get(_OPTIMIZED_SIZE)
    if size is not None and not (size.strip().isdecimal() and int(size)):
        raise InvalidInputError(f"{_OPTIMIZED_SIZE}: expected a number of bytes, found {size!r}")
    return SessionSettings(
        dynamic=None if mode is None else mode.strip().lower() == "dynamic",
        merge_schema=_truth(given, _AUTO_MERGE),
        user_metadata=given.get(_USER_METADATA) or None,
        app=_app(given),
        max_records_per_file=_most_records(given),
        optimize_write=_truth(given, _OPTIMIZE_WRITE),
        auto_compact=_truth(given, _AUTO_COMPACT),
        optimized_bytes=None if size is None else int(size),
        max_retries=_max_retries(given),
        time_zone=given.get(TIME_ZONE),
        defaults=tuple(
            (f"delta.{name[len(DEFAULTS) :]}", text)
            for name, text in given.items()
            if name.startswith(DEFAULTS)
        ),
    )


def session_settings(spark: SparkSession) -> SessionSettings:
    """Return a session's settings for writes.

    Raises:
        InvalidInputError: a value is invalid, or deltalog does not support it.
    """
    given = spark.conf.getAll
    check_catalog(spark, given)
    return read_settings(given)


def check_reads(spark: SparkSession) -> None:
    """Refuse settings of the session that would change the rows that a read returns.

    Raises:
        InvalidInputError: deltalog does not support a setting.
    """
    given = spark.conf.getAll
    check_catalog(spark, given)
    refuse_unfollowed(given, writes=False)


def _truth(given: Mapping[str, str], name: str) -> bool | None:
    text = given.get(name)
    if text is None:
        return None
    if text.strip().lower() not in {"true", "false"}:
        raise InvalidInputError(f"{name}: expected true or false, found {text!r}")
    return text.strip().lower() == "true"


def _most_records(given: Mapping[str, str]) -> int | None:
    text = given.get(_MOST_RECORDS)
    if text is None:
        return None
    digits = text.strip()
    if not digits.removeprefix("-").isdecimal():
        raise InvalidInputError(f"{_MOST_RECORDS}: expected a whole number, found {text!r}")
    return max(0, int(digits))


def _max_retries(given: Mapping[str, str]) -> int | None:
    text = given.get(MAX_RETRIES)
    if text is None:
        return None
    if not text.strip().isdecimal():
        raise InvalidInputError(f"{MAX_RETRIES}: expected a number from 0, found {text!r}")
    return int(text)


def _app(given: Mapping[str, str]) -> AppTransaction | None:
    name, version = given.get(_APP), given.get(_APP_VERSION)
    if name is None and version is None:
        return None
    if name is None or version is None or not version.strip().isdecimal():
        raise InvalidInputError(
            f"expected both {_APP} and a number as {_APP_VERSION}, found {name!r} and {version!r}"
        )
    return AppTransaction(name, int(version))


@contextmanager
def session_defaults(spark: SparkSession) -> Iterator[None]:
    """Apply the session's default table properties to tables that this block creates.

    Raises:
        InvalidInputError: deltalog does not support a property, or there is no such property.
    """
    with table_defaults(dict(session_settings(spark).defaults)):
        yield


def is_ansi(spark: SparkSession) -> bool:
    """Return whether casts in the session fail for values that the target type cannot represent."""
    return (spark.conf.get(_ANSI, None) or "true").strip().lower() != "false"


def enforces_retention(spark: SparkSession) -> bool:
    """Return whether a vacuum refuses a retention period that is shorter than the table's."""
    return (spark.conf.get(RETENTION_CHECK, None) or "true").strip().lower() != "false"


# --- formats for which PySpark's own methods call deltalog


FORMATS: Final = "spark.deltalog.formats"
"""Session setting: the formats, such as `delta`, for which PySpark's methods call deltalog. An
attribute would not suffice, because several Python objects may represent the same session."""
_DELTA: Final = "delta"
_DELTALOG: Final = "deltalog"
_CATALOG: Final = "spark.sql.catalog.spark_catalog"
_EXTENSIONS: Final = "spark.sql.extensions"
_DELTA_CATALOG: Final = ".delta.catalog.DeltaCatalog"
_left: Final[ContextVar[bool]] = ContextVar("left_to_spark", default=False)


def formats_of(spark: SparkSession) -> frozenset[str]:
    """Return the formats that are registered in a session."""
    text = spark.conf.get(FORMATS, None) or ""
    return frozenset(name for name in text.split(",") if name)


def format_of_new(formats: frozenset[str]) -> str:
    """Return the format of new tables in Spark's catalog.

    The format is `delta` if it is registered, because other engines expect this name.

    Args:
        formats: the result of `formats_of`.
    """
    return _DELTA if _DELTA in formats else _DELTALOG


def is_left_to_spark() -> bool:
    """Return whether PySpark's methods must run without deltalog, because of `left_to_spark`."""
    return _left.get()


def check_catalog(spark: SparkSession, given: Mapping[str, str]) -> None:
    """Refuse a session whose catalog is a class of Delta's jar if the session lacks the jar.

    Args:
        spark: the session.
        given: the settings of the session.

    Raises:
        InvalidInputError: the jar is missing. The message lists the settings to remove.
    """
    named = given.get(_CATALOG) or ""
    if not named.endswith(_DELTA_CATALOG):
        return
    try:
        spark.catalog.currentCatalog()
        spark.catalog.currentDatabase()
    except Exception as error:
        if named not in str(error):
            raise
        raise InvalidInputError(
            f"cannot work in a session with the setting {_CATALOG}={named!r}: it needs the "
            "catalog of Delta's jar, which this session does not have; remove the setting where "
            f"the session is created, also {_EXTENSIONS}=io.delta.sql.DeltaSparkSessionExtension, "
            f"or call spark.conf.set({_CATALOG!r}, 'builtin')"
        ) from error


@contextmanager
def left_to_spark() -> Iterator[None]:
    """Run the block with PySpark's own methods instead of deltalog's replacements."""
    token = _left.set(True)
    try:
        yield
    finally:
        _left.reset(token)
