"""The settings of a session that say what is written and read.

Owns how each is understood. Code that runs where the session is reads them there. A format's reader
and writer have no session, but their tasks do: Spark hands a session's settings to the tasks of its
jobs, so a task that finds one follows it, or refuses it before anything is committed.

Protocol: none
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext

from deltalog.actions.properties import PROPERTIES
from deltalog.errors import InvalidInputError
from deltalog.spark.session.fates import (
    DELTA,
    FOLLOWED,
    REFUSED,
    WITHOUT_EFFECT,
    full_name,
)
from deltalog.table import table_defaults
from deltalog.transaction import PostCommitHookProperties
from deltalog.transaction.properties import AppTransaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

DEFAULTS: Final = f"{DELTA}properties.defaults."
_USER_METADATA: Final = f"{DELTA}commitInfo.userMetadata"
_AUTO_MERGE: Final = f"{DELTA}schema.autoMerge.enabled"
_APP: Final = f"{DELTA}write.txnAppId"
_APP_VERSION: Final = f"{DELTA}write.txnVersion"
_OPTIMIZE_WRITE: Final = f"{DELTA}optimizeWrite.enabled"
_AUTO_COMPACT: Final = f"{DELTA}autoCompact.enabled"
_OPTIMIZED_SIZE: Final = f"{DELTA}optimize.maxFileSize"
_OVERWRITE_MODE: Final = "spark.sql.sources.partitionOverwriteMode"
_ANSI: Final = "spark.sql.ansi.enabled"
TIME_ZONE: Final = "spark.sql.session.timeZone"
RETENTION_CHECK: Final = f"{DELTA}retentionDurationCheck.enabled"
_NAMES: Final = frozenset(
    spelt
    for name in (*FOLLOWED, *REFUSED, *(one for many in WITHOUT_EFFECT.values() for one in many))
    for spelt in (full_name(name), DELTA + name)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """What a session says of writes; what it does not say is None.

    Args:
        dynamic: whether an overwrite replaces only the partitions of its rows.
        merge_schema: whether columns that only the data has are added.
        user_metadata: a text for the history.
        app: makes writes idempotent.
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
    return read_settings(spark.conf.getAll)


def check_reads(spark: SparkSession) -> None:
    """Refuse settings of a session that would have other rows read.

    Raises:
        InvalidInputError: one of them asks for what deltalog does not do.
    """
    refuse_unfollowed(spark.conf.getAll, writes=False)


def task_settings() -> dict[str, str]:
    """Return the settings of the session whose job this task belongs to, as far as they are known.

    Spark passes on only what was set. An unset time zone is that of the machine, as Java's.
    """
    context = TaskContext.get()
    if context is None:
        return {}
    names = _NAMES.union(f"{DEFAULTS}{key.removeprefix('delta.')}" for key in PROPERTIES)
    asked = {name: context.getLocalProperty(name) for name in names}
    found = {name: text for name, text in asked.items() if text is not None}
    return {TIME_ZONE: _machine_zone(), **found}


def refuse_unfollowed(given: Mapping[str, str], *, writes: bool) -> None:
    """Refuse settings that change what is written or read, and that deltalog does not follow.

    Args:
        given: the settings of a session.
        writes: whether something is written, and not only read.

    Raises:
        InvalidInputError: it names the setting.
    """
    for name, refusal in REFUSED.items():
        full = full_name(name)
        text = given.get(full)
        concerns = refusal.writes if writes else refusal.reads
        if text is None or not concerns or text.strip().lower() in refusal.accepted:
            continue
        expected = " or ".join(refusal.accepted)
        raise _not_followed(full, text, f"expected {expected}", refusal.instead)
    for full, text in given.items():
        if full.startswith(DELTA) and not full.startswith(DEFAULTS) and full not in _NAMES:
            raise _not_followed(full, text, "expected none of this name, which Delta's list lacks")


def _not_followed(
    name: str, text: str, expected: str, instead: str | None = None
) -> InvalidInputError:
    do = f"{instead}, and unset it" if instead else "unset it"
    return InvalidInputError(
        f"cannot work in a session with the setting {name}={text!r}, which deltalog does not "
        f"follow: {expected}; {do} with spark.conf.unset({name!r})"
    )


def _truth(given: Mapping[str, str], name: str) -> bool | None:
    text = given.get(name)
    if text is None:
        return None
    if text.strip().lower() not in {"true", "false"}:
        raise InvalidInputError(f"{name}: expected true or false, found {text!r}")
    return text.strip().lower() == "true"


def _app(given: Mapping[str, str]) -> AppTransaction | None:
    name, version = given.get(_APP), given.get(_APP_VERSION)
    if name is None and version is None:
        return None
    if name is None or version is None or not version.strip().isdecimal():
        raise InvalidInputError(
            f"expected both {_APP} and a number as {_APP_VERSION}, found {name!r} and {version!r}"
        )
    return AppTransaction(name, int(version))


def _machine_zone() -> str:
    """Return the name of the machine's time zone as Java finds it, UTC where it has none."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if named:
        return named
    _, found, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    return name if found else "UTC"


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
