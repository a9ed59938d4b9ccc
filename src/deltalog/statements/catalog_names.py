"""Names of tables in a statement that a catalog keeps.

Owns how a name finds its catalog: by the catalog's alias, or by the default schema of the session.

Protocol: none
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deltalog.catalogs.named import NewNamedTable
from deltalog.catalogs.protocol import TableCatalog, TableType
from deltalog.errors import InvalidInputError
from deltalog.query.names import QualifiedName
from deltalog.table import DeltaTable
from deltalog.table.creating import TablePlace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.catalogs.protocol import Name


class CatalogNames:
    """Tables of one or several catalogs, by the names that statements have for them.

    Args:
        catalog: the session's, or several by their aliases, which are the first part of names.
        schema: the default schema, such as `sales` or `main.sales`: what shorter names begin with.

    Raises:
        InvalidInputError: an argument is no catalog, or no schema.
    """

    def __init__(
        self, catalog: TableCatalog | Mapping[str, TableCatalog] | None, schema: str | None
    ) -> None:
        several = isinstance(catalog, Mapping)
        self._aliased: dict[str, TableCatalog] = (
            {alias.lower(): one for alias, one in catalog.items()} if several else {}  # type: ignore[union-attr]  # a mapping then
        )
        self._only: TableCatalog | None = None if several else catalog  # type: ignore[assignment]  # no mapping then
        for one in (*self._aliased.values(), *([self._only] if self._only is not None else [])):
            if not isinstance(one, TableCatalog):
                raise InvalidInputError(
                    f"catalog: expected a catalog such as UnityCatalog(…) or FileCatalog(…), found "
                    f"a {type(one).__name__}"
                )
        self._schema = () if schema is None else QualifiedName.parse(schema).parts

    def find(self, name: QualifiedName) -> DeltaTable | None:
        """Return the newest version of the table of a name; None if no catalog has it."""
        found = self._resolved(name)
        if found is None:
            return None
        catalog, parts = found
        if catalog.find(parts) is None:
            return None
        return DeltaTable.from_context(catalog.open(parts))

    def place(self, name: QualifiedName, location: str | None) -> TablePlace | None:
        """Return where a table of a name is or goes; None if no catalog keeps the name."""
        found = self._resolved(name)
        if found is None:
            return None
        catalog, parts = found
        if catalog.find(parts) is not None:
            return TablePlace(context=catalog.open(parts))
        staged = catalog.stage(parts, location)
        new = NewNamedTable(catalog=catalog, staged=staged)
        return TablePlace(context=staged.context, new=new)

    def keeps(self, name: QualifiedName) -> bool:
        """Whether a name is one that a catalog keeps, be the table there or not."""
        return self._resolved(name) is not None

    def forget(self, name: QualifiedName) -> bool:
        """Drop a table from its catalog; return whether it was there.

        As in Spark, files of a managed table go with it, and those of an external one stay.
        """
        found = self._resolved(name)
        table = None if found is None else found[0].find(found[1])
        if found is None or table is None:
            return False
        catalog, parts = found
        catalog.drop(parts, purge=table.table_type is TableType.MANAGED)
        return True

    def rename(self, name: QualifiedName, to: QualifiedName) -> None:
        """Give a table another name in its catalog."""
        found, other = self._resolved(name), self._resolved(to)
        if found is None or other is None or found[0] is not other[0]:
            raise InvalidInputError(
                f"cannot rename {name} to {to}: expected a name in the same catalog"
            )
        found[0].rename(found[1], other[1])

    def relocate(self, name: QualifiedName, location: str) -> None:
        """Tell the catalog of a table that it is elsewhere."""
        found = self._resolved(name)
        if found is not None:
            found[0].relocate(found[1], location)

    def tables(self, schema: Sequence[str]) -> list[QualifiedName]:
        """Return the tables of a schema; those of the default schema if it is empty."""
        wanted = tuple(schema) or self._schema
        catalog = self._only
        alias: Name = ()
        if wanted and wanted[0].lower() in self._aliased:
            catalog, alias, wanted = self._aliased[wanted[0].lower()], wanted[:1], wanted[1:]
        if catalog is None or not wanted:
            return []
        if len(wanted) < len(self._schema) and not alias:
            wanted = (*self._schema[: len(self._schema) - len(wanted)], *wanted)
        return [QualifiedName((*alias, *name)) for name in catalog.list_tables(wanted)]

    def _resolved(self, name: QualifiedName) -> tuple[TableCatalog, Name] | None:
        """Return the catalog of a name, and the name in it."""
        if name.location is not None:
            return None
        parts = name.parts
        missing = len(self._schema) + 1 - len(parts)
        if missing > 0:
            parts = (*self._schema[:missing], *parts)
        if parts[0].lower() in self._aliased and len(parts) > 1:
            return self._aliased[parts[0].lower()], parts[1:]
        if self._only is None or len(parts) == 1:
            return None
        return self._only, parts
