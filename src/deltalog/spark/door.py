"""`spark.read` of registered sessions, by which the formats are planned as `deltalog.spark.read`.

Owns the one attribute of PySpark that is replaced, `SparkSession.read`, and its undoing. Readers
made through it note what they are told, and pass everything on to PySpark's own. Only `load` and
`table` act otherwise, where the session has a format registered that they are about.

Protocol: none
"""

from __future__ import annotations

import re
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from deltalog.spark.reading.by_options import frame_by_options

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

FORMATS: Final = "spark.deltalog.formats"
"""Session setting: names of the formats that `spark.read` plans here. It is the session's, and so
holds for every Python object of it."""
_DEFAULT_FORMAT: Final = "spark.sql.sources.default"
_PATH: Final = "path"
_BY_LOCATION: Final = re.compile(r"\s*`?(\w+)`?\s*\.\s*`((?:[^`]|``)+)`\s*")

_lock: Final = Lock()
_doors: Final[dict[type, _Door]] = {}


def open_door(spark: SparkSession, name: str) -> None:
    """Have `spark.read` plan a format in a session; once or many times.

    Args:
        spark: the session, classic or remote.
        name: of the format.
    """
    with _lock:
        owner = next(one for one in type(spark).__mro__ if "read" in vars(one))
        door = _doors.get(owner)
        if door is None:
            door = _doors[owner] = _Door(owner)
            door.hang()
        door.sessions.add(spark)
        spark.conf.set(FORMATS, ",".join(sorted({*_formats(spark), name})))


def close_door(spark: SparkSession, name: str) -> None:
    """Leave a format of a session to PySpark again; with its last session the door goes."""
    with _lock:
        left = _formats(spark) - {name}
        if left:
            spark.conf.set(FORMATS, ",".join(sorted(left)))
            return
        spark.conf.unset(FORMATS)
        for owner, door in list(_doors.items()):
            door.sessions.discard(spark)
            if not door.sessions and door.unhang():
                del _doors[owner]


def _formats(spark: SparkSession) -> frozenset[str]:
    text = spark.conf.get(FORMATS, None) or ""
    return frozenset(name for name in text.split(",") if name)


class _Door:
    """The replaced property of one class of sessions.

    Args:
        owner: the class.
    """

    def __init__(self, owner: type) -> None:
        self._owner: Any = owner
        self._before: Any = vars(owner)["read"]
        self._hung = property(self._read, doc=self._before.__doc__)
        self.sessions: WeakSet[SparkSession] = WeakSet()

    def hang(self) -> None:
        """Replace the property."""
        self._owner.read = self._hung

    def unhang(self) -> bool:
        """Put the property back; False if somebody else has replaced it since."""
        if vars(self._owner)["read"] is not self._hung:
            return False
        self._owner.read = self._before
        return True

    def _read(self, spark: SparkSession) -> DataFrameReader:
        reader: DataFrameReader = self._before.fget(spark)
        reader.__class__ = _reader_class(type(reader))  # type: ignore[arg-type]  # it can be hashed
        vars(reader)["_asked"] = _Asked(spark)
        return reader


class _Asked:
    """What a reader was told.

    Args:
        spark: its session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.format: str | None = None
        self.schema: StructType | str | None = None
        self.options: dict[str, Any] = {}

    def frame(self, path: object) -> DataFrame | None:
        """Return the planned rows of a location; None if PySpark must answer.

        Args:
            path: as `load` got it.
        """
        formats = _formats(self.spark)
        name = self.format or (formats and self.spark.conf.get(_DEFAULT_FORMAT, None)) or ""
        if name.lower() not in formats:
            return None
        given = self._given()
        if isinstance(path, list | tuple) and len(path) == 1:
            path = path[0]
        if given is None or not isinstance(path, str | None):
            return None  # PySpark has errors for these
        if path is not None:
            if _PATH in (option.lower() for option in given):
                return None  # as above
            given[_PATH] = path
        return frame_by_options(self.spark, given, self.schema)

    def table(self, name: object) -> DataFrame | None:
        """Return the planned rows of a format's name and a location; None for other tables."""
        found = _BY_LOCATION.fullmatch(name) if isinstance(name, str) else None
        if found is None or self.schema is not None:
            return None
        given = self._given()
        if given is None or found[1].lower() not in _formats(self.spark):
            return None
        return frame_by_options(self.spark, {**given, _PATH: found[2].replace("``", "`")})

    def _given(self) -> dict[str, str] | None:
        """Return the options as texts; None if PySpark takes one of them for none."""
        found: dict[str, str] = {}
        for name, value in self.options.items():
            if value is None:
                return None
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
        return found


class _Noting:
    """The part of a reader that notes what it is told."""

    _asked: _Asked

    def format(self, source: str) -> Self:
        self._asked.format = source
        super().format(source)  # type: ignore[misc]  # PySpark's class comes next
        return self

    def schema(self, schema: StructType | str) -> Self:
        super().schema(schema)  # type: ignore[misc]  # as above; it refuses other types
        self._asked.schema = schema
        return self

    def option(self, key: str, value: Any) -> Self:
        self._note({key: value})
        super().option(key, value)  # type: ignore[misc]  # as above
        return self

    def options(self, **options: Any) -> Self:
        self._note(options)
        super().options(**options)  # type: ignore[misc]  # as above
        return self

    def load(
        self,
        path: Any = None,
        format: str | None = None,  # noqa: A002  # PySpark's
        schema: StructType | str | None = None,
        **options: Any,
    ) -> DataFrame:
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        found = self._asked.frame(path)
        return super().load(path) if found is None else found  # type: ignore[misc]  # as above

    def table(self, tableName: str) -> DataFrame:  # noqa: N803  # PySpark's
        found = self._asked.table(tableName)
        return super().table(tableName) if found is None else found  # type: ignore[misc]  # as above

    def _note(self, options: Mapping[str, Any]) -> None:
        known = self._asked.options
        for name, value in options.items():  # Spark's options ignore case: the last one holds
            for same in [one for one in known if one.lower() == name.lower()]:
                del known[same]
            known[name] = value


@cache
def _reader_class(kind: type) -> type:
    own = {
        "__doc__": kind.__doc__,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
    }
    return type(kind.__name__, (_Noting, kind), own)
