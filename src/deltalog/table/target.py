"""The protocols by which builders run verbs on their table.

They avoid an import cycle: `DeltaTable` imports the builders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.engine import Engine
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import Committed, Ran


class VerbTarget(Protocol):
    """Something that runs verbs: a `DeltaTable`, or one transaction of it."""

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot on which verbs run."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine for work on rows and files."""
        ...

    @property
    def do(self) -> Callable[..., Any]:
        """Run a verb, and return its result; arguments are those of `DeltaTable.do`."""
        ...


class LatestTable(VerbTarget, Protocol):
    """A `DeltaTable`, whose verbs are commits."""

    @property
    def carry_out(self) -> Callable[..., Ran[Any]]:
        """Run a verb, show the committed version, and return the outcome and the commit."""
        ...

    def show(self, committed: Committed) -> None:
        """Show the version of a commit."""
        ...

    def update_incremental(self, *, same_table: bool = False) -> None:
        """Show the latest version; with `same_table`, only of the table that was opened."""
        ...
