# ruff: noqa: D102  # the docstrings are those of PySpark's own methods
"""What noting subclasses have in common: options as strings, the format meant, and the subclass.

Protocol: none
"""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.escaping import name_key
from deltalog.spark.session.settings import formats_of, is_left_to_spark

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

    from pyspark.sql import DataFrame, SparkSession

DEFAULT_FORMAT: Final = "spark.sql.sources.default"
PATH: Final = "path"


class Noted:
    """The options and the format that a reader or a writer was told.

    Args:
        spark: its session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.format: str | None = None
        self.options: dict[str, Any] = {}

    def note(self, options: Mapping[str, Any]) -> None:
        """Note options: Spark's ignore case, and the last one holds."""
        known = self.options
        for name, value in options.items():
            for same in [one for one in known if name_key(one) == name_key(name)]:
                del known[same]
            known[name] = value

    def own_formats(self) -> frozenset[str]:
        """Return the formats that are deltalog's here; none inside of our own calls."""
        return frozenset() if is_left_to_spark() else formats_of(self.spark)

    def meant(self, formats: Iterable[str]) -> str | None:
        """Return the format meant, in lower case, if it is one of these."""
        known = frozenset(formats)
        name = self.format or (known and self.spark.conf.get(DEFAULT_FORMAT, None)) or ""
        return name_key(name) if name_key(name) in known else None


class NotedSink(Noted):
    """What the writer of a batch or a stream was told.

    Args:
        frame: the rows.
    """

    def __init__(self, frame: DataFrame) -> None:
        super().__init__(frame.sparkSession)
        self.frame = frame
        self.partition_by: tuple[str, ...] | None = None


class NotingOptions:
    """The part of a reader or a writer that notes its format and its options."""

    _asked: Noted

    def format(self, source: str) -> Self:
        self._asked.format = source
        super().format(source)  # type: ignore[misc]  # PySpark's class comes next
        return self

    def option(self, key: str, value: Any) -> Self:
        self._asked.note({key: value})
        super().option(key, value)  # type: ignore[misc]  # as above
        return self

    def options(self, **options: Any) -> Self:
        self._asked.note(options)
        super().options(**options)  # type: ignore[misc]  # as above
        return self


class NotingSink(NotingOptions):
    """The part of a batch's or a stream's writer that notes partition columns."""

    _asked: NotedSink

    def partitionBy(self, *cols: Any) -> Self:  # noqa: N802  # PySpark's
        super().partitionBy(*cols)  # type: ignore[misc]  # PySpark's class comes next
        self._asked.partition_by = flattened(cols)
        return self


def flattened(names: Sequence[Any]) -> tuple[str, ...]:
    """Return names that were given one by one or as a list."""
    if len(names) == 1 and isinstance(names[0], list | tuple):
        return tuple(names[0])
    return tuple(names)


def as_text(value: object) -> str:
    """Return the value of an option as Spark hands it to a format."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def noting_class(noting: type, kind: type) -> type:
    """Return a subclass of one of PySpark's classes that looks like it.

    Args:
        noting: the methods that are overridden.
        kind: PySpark's class.
    """
    own = {
        "__doc__": kind.__doc__,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
    }
    return type(kind.__name__, (noting, kind), own)


def begin_noting(one: Any, noting: type, asked: object) -> Any:
    """Return an object of PySpark that notes what it is told.

    Args:
        one: a reader, a writer or a catalog.
        noting: the methods that are overridden.
        asked: where they note it.
    """
    one = copy(one)  # a session keeps its catalog
    kinds: Any = noting, type(one)
    one.__class__ = noting_class(*kinds)
    object.__setattr__(one, "_asked", asked)
    return one
