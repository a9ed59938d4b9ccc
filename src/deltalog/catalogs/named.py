"""A table by its name in a catalog: one that is there, or the place for one that is not.

Owns the step between them: a table is shown once its version 0 is written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from deltalog.catalogs.protocol import Name, StagedTable, TableCatalog
    from deltalog.context import TableContext
    from deltalog.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTable:
    """A table by its name.

    Args:
        catalog: that knows it.
        name: its parts.
        at: the version or moment that the URI names.
    """

    catalog: TableCatalog
    name: Name
    at: int | datetime | None = None

    def is_delta_table(self) -> bool:
        """Whether the catalog has a Delta table of that name."""
        found = self.catalog.find(self.name)
        return found is not None and found.provider == "delta"

    def stage(self) -> NewNamedTable:
        """A place for it, where there is none of the name."""
        return NewNamedTable(catalog=self.catalog, staged=self.catalog.stage(self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNamedTable:
    """A place for a table, and the catalog that is told when version 0 is written."""

    catalog: TableCatalog
    staged: StagedTable

    def register(self, snapshot: Snapshot) -> TableContext:
        """Show the table; its context from now on.

        Raises:
            TableExistsError: somebody else took the name.
        """
        self.catalog.register(self.staged, snapshot)
        context = self.catalog.open(self.staged.name)
        return replace(context, time_zone=snapshot.context.time_zone)
