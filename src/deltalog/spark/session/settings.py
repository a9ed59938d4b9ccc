"""Delta's session settings, for code that runs where the session is.

A format's reader and writer have no session, so these settings do not apply to them.

Protocol: none
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from deltalog.table import table_defaults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_DEFAULTS: Final = "spark.databricks.delta.properties.defaults."
_USER_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
RETENTION_CHECK: Final = "spark.databricks.delta.retentionDurationCheck.enabled"


@contextmanager
def session_defaults(spark: SparkSession) -> Iterator[None]:
    """Give every table created in this block the default properties of the session's settings.

    Raises:
        InvalidInputError: a setting names no table property.
    """
    settings = spark.conf.getAll
    asked = {key: text for key, text in settings.items() if key.startswith(_DEFAULTS)}
    with table_defaults({f"delta.{key[len(_DEFAULTS) :]}": text for key, text in asked.items()}):
        yield


def session_user_metadata(spark: SparkSession) -> str | None:
    """Return the user metadata of commits; None for none."""
    return spark.conf.get(_USER_METADATA, None) or None


def is_ansi(spark: SparkSession) -> bool:
    """Whether the session's casts raise an error for a value that does not fit."""
    return (spark.conf.get("spark.sql.ansi.enabled", None) or "true").strip().lower() != "false"


def enforces_retention(spark: SparkSession) -> bool:
    """Whether a vacuum refuses a retention shorter than the table's."""
    return (spark.conf.get(RETENTION_CHECK, None) or "true").strip().lower() != "false"
