"""`spark.sql(text, name=value)`: PySpark's own formatting, with frames that keep a name.

Protocol: none
"""

from __future__ import annotations

import string
import uuid
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.sql_formatter import SQLStringFormatter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession


class _Formatter(string.Formatter):
    """Formats as another formatter does, but for frames.

    Args:
        other: PySpark's.
    """

    def __init__(self, other: string.Formatter) -> None:
        self._other = other
        self.frames: dict[str, DataFrame] = {}

    def get_field(
        self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, int | str]:
        found, first = super().get_field(field_name, args, kwargs)
        if not isinstance(found, DataFrame):
            shown: tuple[Any, int | str] = self._other.get_field(field_name, args, kwargs)
            return shown
        for name, frame in self.frames.items():
            if frame is found:
                return name, first
        name = f"deltalog_frame_{uuid.uuid4().hex}"
        self.frames[name] = found
        return name, first


def formatted(
    spark: SparkSession, text: str, given: Mapping[str, Any]
) -> tuple[str, dict[str, DataFrame]] | None:
    """Return a statement with values in place of names in braces; None if PySpark must refuse it.

    Args:
        spark: the session, classic or remote.
        text: with names in braces.
        given: name → value, column or frame.

    Returns:
        The text, and the frames by their names in it.
    """
    other: string.Formatter = SQLStringFormatter(spark)
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect import sql_formatter  # noqa: PLC0415  # needs gRPC

        other = sql_formatter.SQLStringFormatter(spark)  # type: ignore[arg-type]  # it is one
    formatter = _Formatter(other)
    try:
        return formatter.format(text, **given), formatter.frames
    except Exception:  # noqa: BLE001  # whatever it is, PySpark says it
        return None
