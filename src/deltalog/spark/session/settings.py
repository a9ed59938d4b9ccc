"""The settings of a session that say what is written and read.

Owns how each is understood, in the session or by what its tasks know of it (`refusals`).

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
RETENTION_CHECK: Final = f"{DELTA}retentionDurationCheck.enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """What a session says of writes; what it does not say is None.

    Args:
        dynamic: whether an overwrite replaces only the partitions of its rows.
        merge_schema: whether columns that only the data has are added.
        user_metadata: a string for the history.
        app: makes writes idempotent.
        max_records_per_file: so many rows at most in a file; 0 is no limit.
        optimize_write: whether the rows of a partition are gathered.
        auto_compact: whether small files are put together after commits.
        optimized_bytes: size of the files that OPTIMIZE makes.
        time_zone: of moments that name none, as Spark spells it.
        defaults: properties of new tables.
    """

    dynamic: bool | None = None
    merge_schema: bool | None = None
    user_metadata: str | None = None
    app: AppTransaction | None = None
    max_records_per_file: int | None = None
    optimize_write: bool | None = None
    auto_compact: bool | None = None
    optimized_bytes: int | None = None
    time_zone: str | None = None
    defaults: tuple[tuple[str, str], ...] = ()

    @property
    def hooks(self) -> PostCommitHookProperties | None:
        """Return what is done after a commit; None leaves it to the table."""
        if self.auto_compact is None:
            return None
        return PostCommitHookProperties(auto_compact=self.auto_compact)

    def commit_properties(self, app: AppTransaction | None = None) -> CommitProperties:
        """Return the user metadata of a commit, and the application that it is of."""
        text = self.user_metadata
        return CommitProperties(
            custom_metadata={"userMetadata": text} if text else None,
            app_transactions=None if app is None else [app],
        )


def read_settings(given: Mapping[str, str]) -> SessionSettings:
    """Return what the settings of a session say of writes.

    Args:
        given: settings of any libraries, by their full names.

    Raises:
        InvalidInputError: one of them has no meaning, or asks for what deltalog does not do.
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
        time_zone=given.get(TIME_ZONE),
        defaults=tuple(
            (f"delta.{name[len(DEFAULTS) :]}", text)
            for name, text in given.items()
            if name.startswith(DEFAULTS)
        ),
    )


def session_settings(spark: SparkSession) -> SessionSettings:
    """Return what a session says of writes.

    Raises:
        InvalidInputError: as `read_settings`.
    """
    given = spark.conf.getAll
    check_catalog(spark, given)
    return read_settings(given)


def check_reads(spark: SparkSession) -> None:
    """Refuse settings of a session that would have other rows read.

    Raises:
        InvalidInputError: one of them asks for what deltalog does not do.
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
    """Give every table created in this block the default properties of the session's settings.

    Raises:
        InvalidInputError: a setting names no table property, or asks for what deltalog does not do.
    """
    with table_defaults(dict(session_settings(spark).defaults)):
        yield


def is_ansi(spark: SparkSession) -> bool:
    """Whether the session's casts raise an error for a value that does not fit."""
    return (spark.conf.get(_ANSI, None) or "true").strip().lower() != "false"


def enforces_retention(spark: SparkSession) -> bool:
    """Whether a vacuum refuses a retention shorter than the table's."""
    return (spark.conf.get(RETENTION_CHECK, None) or "true").strip().lower() != "false"


# The formats of a session whose ordinary spellings lead to deltalog, and the way around that.


FORMATS: Final = "spark.deltalog.formats"
"""Session setting: names of the formats whose spellings are deltalog's here. It is the session's,
and so holds for every Python object of it."""
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
    """Return the format of new entries of Spark's catalog: `delta`, as others look for it."""
    return _DELTA if _DELTA in formats else _DELTALOG


def is_left_to_spark() -> bool:
    """Whether PySpark's own methods are called, and not those that lead to deltalog."""
    return _left.get()


def check_catalog(spark: SparkSession, given: Mapping[str, str]) -> None:
    """Refuse a session whose catalog is to be that of Delta's jar, and that has no such jar.

    Args:
        spark: the session.
        given: its settings.

    Raises:
        InvalidInputError: it says which settings to remove.
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
            f"cannot work in a session with the setting {_CATALOG}={named!r}: it asks for the "
            "catalog of Delta's jar, which this session does not have; remove it where the session "
            f"is made, and {_EXTENSIONS}=io.delta.sql.DeltaSparkSessionExtension with it, or call "
            f"spark.conf.set({_CATALOG!r}, 'builtin')"
        ) from error


@contextmanager
def left_to_spark() -> Iterator[None]:
    """Let calls of the session's methods in this block be PySpark's own."""
    token = _left.set(True)
    try:
        yield
    finally:
        _left.reset(token)
