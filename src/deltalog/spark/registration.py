"""Register deltalog's formats in a session.

PySpark finds the formats `deltalog` and `deltalog_sharing` without registration if the driver's
Python has this package. `register` also replaces PySpark's own methods in the session, adds the
formats to sessions that do not search for formats (such as remote sessions), and can register the
format under the name `delta`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal
from weakref import WeakSet

from pyspark.errors import AnalysisException

from deltalog.errors import InvalidInputError
from deltalog.spark.session.names import set_catalogs
from deltalog.spark.session.settings import FORMATS, check_catalog, formats_of
from deltalog.spark.source import (
    DeltalogSource,
    DeltaSharingSource,
    DeltaSource,
    SharingSource,
)
from deltalog.spark.spellings.frames import (
    AskedRows,
    AskedStream,
    AskedWrite,
    NotingReader,
    NotingStreamReader,
    NotingStreamWriter,
    NotingWriter,
)
from deltalog.spark.spellings.noting import Noted, begin_noting
from deltalog.spark.spellings.tables import (
    AskedTable,
    NotingCatalog,
    NotingTableWriter,
    merge_into,
    statement_rows,
    table_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from deltalog.catalogs.protocol import TableCatalog

_NAMED: Final = {"deltalog": DeltalogSource, "delta": DeltaSource}


def register(
    spark: SparkSession,
    name: Literal["deltalog", "delta"] = "deltalog",
    *,
    push_filters: bool = True,
    native: bool = True,
    catalogs: Mapping[str, TableCatalog | str] | None = None,
) -> None:
    """Register the formats for Delta tables and for shared tables in a session.

    PySpark's own methods then call deltalog for the format `name`. `spark.read` plans batch reads
    like `deltalog.spark.read`, and `df.write` writes like `deltalog.spark.write`. `spark.sql`,
    `spark.table`, `spark.catalog`, `saveAsTable`, `insertInto` and `toTable` find tables of the
    format by their names in Spark's catalog. `unregister` restores PySpark's methods.

    Args:
        spark: the session, classic or remote.
        name: the name of the format. With `delta`, code that uses `format("delta")` and
            `format("deltaSharing")` runs without the jars of Delta and of its sharing connector.
        push_filters: whether Spark may push filters down to Python sources. Spark's default is no.
        native: if False, PySpark's own methods are not replaced, and Python workers read all files.
        catalogs: name → catalog. `DeltaTable.forName`, `DeltaTable.create` and
            `deltalog.spark.sql` then find the catalog's tables by names that begin with this
            name, such as `uc.main.sales.orders`. A string is `uc://` for the Unity Catalog of the
            environment, the URL of a Unity Catalog, `glue`, or a directory. The registration
            applies to this session in this process. None does not change the registered catalogs.

    Raises:
        InvalidInputError: `name` is another string; Spark already has a format with this name, for
            example from Delta's jar; or the session's settings require the catalog of Delta's jar,
            but the jar is missing.
    """
    _check_name(name)
    given: object = spark
    if not hasattr(given, "conf"):
        raise InvalidInputError(
            f"cannot register the formats of deltalog: expected a SparkSession, found {given!r}"
        )
    check_catalog(spark, spark.conf.getAll)
    try:
        spark.dataSource.register(_NAMED[name])
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        raise InvalidInputError(
            f"cannot register {name!r}: Spark has a format of this name from a jar, which cannot "
            "be replaced; use format('deltalog'), or start the session without the jar"
        ) from error
    spark.dataSource.register(SharingSource)
    if name == "delta":
        with suppress(AnalysisException):  # the official connector's jar is there
            spark.dataSource.register(DeltaSharingSource)
    if push_filters:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    if catalogs is not None:
        set_catalogs(spark, catalogs)
    if native:
        install_spellings(spark, name)
    else:
        uninstall_spellings(spark, name)


def unregister(spark: SparkSession, name: Literal["deltalog", "delta"] = "deltalog") -> None:
    """Restore PySpark's own methods for a format, which `register` has replaced.

    Spark cannot remove a format, so the format itself remains registered in the session.

    Args:
        spark: the session.
        name: the name of the format.

    Raises:
        InvalidInputError: `name` is another string.
    """
    _check_name(name)
    uninstall_spellings(spark, name)


def _check_name(name: str) -> None:
    if name not in _NAMED:
        raise InvalidInputError(f"cannot register {name!r}: expected one of {sorted(_NAMED)}")


# --- replacements of PySpark's own methods


_OF_SESSIONS: Final = {
    "read": (NotingReader, AskedRows),
    "readStream": (NotingStreamReader, Noted),
    "catalog": (NotingCatalog, Noted),
}
"""A property of a session → the class that replaces methods of the property's value, and the class
that stores the recorded calls."""
_OF_FRAMES: Final = {
    "write": (NotingWriter, AskedWrite),
    "writeStream": (NotingStreamWriter, AskedStream),
}

_lock: Final = Lock()
_installed: Final[dict[type, _Spellings]] = {}


def install_spellings(spark: SparkSession, name: str) -> None:
    """Make PySpark's own methods call deltalog for a format in a session; idempotent.

    Args:
        spark: the session, classic or remote.
        name: the name of the format.
    """
    with _lock:
        owner = _owner_of(type(spark), "read")
        spellings = _installed.get(owner)
        if spellings is None:
            spellings = _installed[owner] = _Spellings(_hangings(owner, type(spark.range(0))))
            spellings.hang()
        spellings.sessions.add(spark)
        spark.conf.set(FORMATS, ",".join(sorted({*formats_of(spark), name})))


def uninstall_spellings(spark: SparkSession, name: str) -> None:
    """Make PySpark's own methods of a session ignore a format.

    The original methods are restored when no session needs the replacements any more.
    """
    with _lock:
        left = formats_of(spark) - {name}
        if left:
            spark.conf.set(FORMATS, ",".join(sorted(left)))
            return
        spark.conf.unset(FORMATS)
        for owner, spellings in list(_installed.items()):
            spellings.sessions.discard(spark)
            if not spellings.sessions and spellings.unhang():
                del _installed[owner]


def _owner_of(kind: type, name: str) -> type:
    return next(one for one in kind.__mro__ if name in vars(one))


@dataclass(slots=True)
class _Hanging:
    """An attribute of a PySpark class, and its replacement.

    Args:
        owner: the class.
        name: the name of the attribute.
        replaced: a function that returns the replacement for the original attribute.
    """

    owner: Any
    name: str
    replaced: Callable[[Any], Any]
    before: Any = field(init=False)
    hung: Any = field(init=False)

    def hang(self) -> None:
        """Replace the attribute."""
        self.before = vars(self.owner)[self.name]
        self.hung = self.replaced(self.before)
        setattr(self.owner, self.name, self.hung)

    @property
    def is_ours(self) -> bool:
        """Whether the class still has the replacement."""
        return vars(self.owner)[self.name] is self.hung

    def unhang(self) -> None:
        """Restore the original attribute."""
        setattr(self.owner, self.name, self.before)


def _hangings(session: type, frame: type) -> list[_Hanging]:
    found = [
        _Hanging(session, name, _noting(noting, asked))
        for name, (noting, asked) in _OF_SESSIONS.items()
    ]
    found += [_Hanging(session, "sql", _sql), _Hanging(session, "table", _table)]
    found += [
        _Hanging(_owner_of(frame, name), name, replaced)
        for name, replaced in (("writeTo", _write_to), ("mergeInto", _merge_into))
    ]
    return found + [
        _Hanging(_owner_of(frame, name), name, _noting(noting, asked))
        for name, (noting, asked) in _OF_FRAMES.items()
    ]


def _noting(noting: type, asked: Callable[[Any], object]) -> Callable[[Any], Any]:
    """Return a function that wraps a property so that the property's values record their calls."""

    def replaced(before: Any) -> property:
        def get(owner: Any) -> Any:
            return begin_noting(before.__get__(owner, type(owner)), noting, asked(owner))

        return property(get, doc=before.__doc__)

    return replaced


def _sql(before: Any) -> Any:
    @wraps(before)
    def sql(spark: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:  # noqa: N803  # PySpark's name
        found = statement_rows(spark, sqlQuery, args, kwargs)
        return before(spark, sqlQuery, args, **kwargs) if found is None else found

    return sql


def _table(before: Any) -> Any:
    @wraps(before)
    def table(spark: SparkSession, tableName: str) -> Any:  # noqa: N803  # PySpark's name
        found = table_rows(spark, tableName)
        return before(spark, tableName) if found is None else found

    return table


def _write_to(before: Any) -> Any:
    @wraps(before)
    def writeTo(frame: DataFrame, table: str) -> Any:  # noqa: N802  # PySpark's name
        return begin_noting(before(frame, table), NotingTableWriter, AskedTable(frame, table))

    return writeTo


def _merge_into(before: Any) -> Any:
    @wraps(before)
    def mergeInto(frame: DataFrame, table: str, condition: Any) -> Any:  # noqa: N802  # PySpark's name
        found = merge_into(frame, table, condition)
        return before(frame, table, condition) if found is None else found

    return mergeInto


class _Spellings:
    """The replaced attributes of one class of sessions, and of its class of dataframes.

    Args:
        hangings: the attributes and their replacements.
    """

    def __init__(self, hangings: list[_Hanging]) -> None:
        self._hangings = hangings
        self.sessions: WeakSet[SparkSession] = WeakSet()

    def hang(self) -> None:
        """Replace the attributes."""
        for one in self._hangings:
            one.hang()

    def unhang(self) -> bool:
        """Restore the attributes. Return False if other code has replaced one of them since."""
        if not all(one.is_ours for one in self._hangings):
            return False
        for one in self._hangings:
            one.unhang()
        return True
