"""What builders know of the table that they belong to.

So they need not know `DeltaTable`, which knows them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.engine import Engine
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import Committed, Ran


class VerbTarget(Protocol):
    """What verbs can be done to: a `DeltaTable`, or one transaction of it."""

    @property
    def snapshot(self) -> Snapshot:
        """The version that it shows."""
        ...

    @property
    def engine(self) -> Engine:
        """What does the work on rows and files."""
        ...

    @property
    def do(self) -> Callable[..., Any]:
        """Does a verb, and returns its result. Arguments are those of `DeltaTable.do`."""
        ...


class LatestTable(VerbTarget, Protocol):
    """A `DeltaTable`, whose verbs are commits."""

    @property
    def carry_out(self) -> Callable[..., Ran[Any]]:
        """Does a verb, and shows the version that it made; returns its outcome and its commit."""
        ...

    def show(self, committed: Committed) -> None:
        """Show the version of a commit."""
        ...

    def update_incremental(self) -> None:
        """Show the latest version."""
        ...
