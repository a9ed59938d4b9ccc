"""Catalogs that a session knows by a name, such as `uc` in `uc.main.sales.orders`.

Owns where they are kept: in this process, as they hold tokens. The session's settings have a number
alone, by which every Python object of the session finds them.

Protocol: none
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.names import name_key
from deltalog.query.names import QualifiedName
from deltalog.statements.catalog_names import CatalogNames

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from deltalog.catalogs.named import NamedTable
    from deltalog.catalogs.protocol import TableCatalog
    from deltalog.context import TableContext

CATALOGS: Final = "spark.deltalog.catalogs"
"""Session setting: which catalogs of this process the session knows."""


@dataclass(slots=True)
class SessionCatalogs:
    """The catalogs of a session.

    Args:
        names: resolve tables.
        views: the tables that views show, which are known by their catalog alone.
    """

    names: CatalogNames = field(default_factory=lambda: CatalogNames(None, None))
    views: dict[str, TableContext] = field(default_factory=dict)


_NONE: Final = SessionCatalogs()
_sessions: Final[dict[str, SessionCatalogs]] = {}


def set_catalogs(spark: SparkSession, catalogs: Mapping[str, TableCatalog | str]) -> None:
    """Let a session know catalogs by names, instead of those that it knew.

    Args:
        spark: the session, classic or remote.
        catalogs: name → catalog, or how `open_catalog` spells it.

    Raises:
        InvalidInputError: one is no catalog.
    """
    names = CatalogNames(catalogs, None) if catalogs else CatalogNames(None, None)
    _entry_of(spark).names = names


def catalogs_of(spark: SparkSession) -> SessionCatalogs:
    """The catalogs of a session; none if it has none.

    Raises:
        InvalidInputError: another process has registered them.
    """
    key = spark.conf.get(CATALOGS, None)
    if key is None:
        return _NONE
    found = _sessions.get(key)
    if found is None:
        raise InvalidInputError(
            "cannot find the catalogs of this session: another process registered them; call "
            "deltalog.spark.register(spark, catalogs=…) here"
        )
    return found


def note_table(spark: SparkSession, name: str, context: TableContext) -> None:
    """Note which table of a catalog a view shows."""
    _entry_of(spark).views[name_key(name)] = context


def shown_by(spark: SparkSession, name: str) -> TableContext | None:
    """The table of a catalog that a view shows; None if it is no such view."""
    found = catalogs_of(spark).views.get(name_key(name.strip().strip("`")))
    return found if found is not None and spark.catalog.tableExists(name) else None


def named_in(spark: SparkSession, name: str, *, by_alias: bool = False) -> NamedTable | None:
    """The table of a name in a catalog of the session; None if none of them keeps the name.

    Args:
        spark: the session.
        name: of the table.
        by_alias: whether the name must begin with a catalog's, as it could be a path.
    """
    names = catalogs_of(spark).names
    if names.is_empty:
        return None
    try:
        parsed = QualifiedName.parse(name)
    except InvalidInputError:
        return None  # Spark says what is wrong with it
    if by_alias and not names.begins(parsed):
        return None
    return names.named(parsed)


def _entry_of(spark: SparkSession) -> SessionCatalogs:
    key = spark.conf.get(CATALOGS, None)
    if key is None or key not in _sessions:
        key = uuid.uuid4().hex
        _sessions[key] = SessionCatalogs()
        spark.conf.set(CATALOGS, key)
    return _sessions[key]
