"""The formats of a session whose ordinary spellings lead to deltalog, and the way around that.

Owns the setting that `register` writes, and `left_to_spark`, by which our own calls of `spark.sql`
and `spark.table` reach PySpark's.

Protocol: none
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

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
