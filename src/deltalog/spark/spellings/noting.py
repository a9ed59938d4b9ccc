# ruff: noqa: D102  # PySpark documents these methods
"""Common code of the subclasses that record calls: recorded options, and replaced objects.

Protocol: none
"""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self

from deltalog._util.escaping import name_key
from deltalog.spark.session.settings import formats_of, is_left_to_spark

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

DEFAULT_FORMAT: Final = "spark.sql.sources.default"
PATH: Final = "path"


class Noted:
    """The recorded options and the recorded format of a reader or writer.

    Args:
        spark: the session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.format: str | None = None
        self.options: dict[str, Any] = {}

    def note(self, options: Mapping[str, Any]) -> None:
        """Record options. Names ignore case: a later value replaces that of an equal name."""
        known = self.options
        for name, value in options.items():
            for same in [one for one in known if name_key(one) == name_key(name)]:
                del known[same]
            known[name] = value

    def own_formats(self) -> frozenset[str]:
        """Return deltalog's formats in this session; none while deltalog calls PySpark."""
        return frozenset() if is_left_to_spark() else formats_of(self.spark)

    @property
    def is_own(self) -> bool:
        """Whether the format to use is one of deltalog's."""
        return self.meant(self.own_formats()) is not None

    def meant(self, formats: Iterable[str]) -> str | None:
        """Return the format to use, in lower case; None if it is not in `formats`.

        If no format was recorded, the session's default format is used.
        """
        known = frozenset(formats)
        name = self.format or (known and self.spark.conf.get(DEFAULT_FORMAT, None)) or ""
        return name_key(name) if name_key(name) in known else None


class NotedSink(Noted):
    """The recorded calls of a writer of batches or streams.

    Args:
        frame: the rows.
    """

    def __init__(self, frame: DataFrame) -> None:
        super().__init__(frame.sparkSession)
        self.frame = frame
        self.partition_by: tuple[str, ...] | None = None


class NotingOptions:
    """Replacements of the methods that set the format and options; they record their calls."""

    _asked: Noted

    def format(self, source: str) -> Self:
        self._asked.format = source
        super().format(source)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        return self

    def option(self, key: str, value: Any) -> Self:
        self._asked.note({key: value})
        super().option(key, value)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        return self

    def options(self, **options: Any) -> Self:
        self._asked.note(options)
        super().options(**options)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        return self


class NotingSink(NotingOptions):
    """Replacements of the methods that all writers have; they record their calls."""

    _asked: NotedSink

    def partitionBy(self, *cols: Any) -> Self:  # noqa: N802  # PySpark's name
        super().partitionBy(*cols)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        self._asked.partition_by = flattened(cols)
        return self


def flattened(names: Sequence[Any]) -> tuple[str, ...]:
    """Return names that the caller passes as separate arguments or as one list."""
    if len(names) == 1 and isinstance(names[0], list | tuple):
        return tuple(names[0])
    return tuple(names)


def as_text(value: object) -> str:
    """Return the value of an option as a string, as Spark passes it to a format."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def noting_class(noting: type, kind: type) -> type:
    """Return a subclass of a class of PySpark that has the same name and documentation.

    Args:
        noting: the class that contains the replacements of methods.
        kind: PySpark's class.
    """
    own = {
        "__doc__": kind.__doc__,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
    }
    return type(kind.__name__, (noting, kind), own)


def begin_noting(one: Any, noting: type, asked: object) -> Any:
    """Return a copy of an object of PySpark whose methods record their calls.

    Args:
        one: a reader, a writer or a catalog.
        noting: the class that contains the replacements of methods.
        asked: the object that records the calls.
    """
    one = copy(one)  # because all users of a session share its catalog object
    kinds: Any = noting, type(one)
    one.__class__ = noting_class(*kinds)
    object.__setattr__(one, "_asked", asked)
    return one
