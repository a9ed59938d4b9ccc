"""What the pieces of the facade know of the table that they belong to.

So they need not know `DeltaTable`, which knows them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.schema import Schema
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import (
        CommitProperties,
        PendingTransaction,
        PostCommitHookProperties,
    )
    from deltalog.transaction.commit import Committed, Ran

T = TypeVar("T")


class Standing(Protocol):
    """A table that stands on a snapshot: see `DeltaTable`."""

    @property
    def snapshot(self) -> Snapshot:
        """The version that it shows."""
        ...

    def schema(self) -> Schema:
        """Of that version."""
        ...

    def update_incremental(self) -> None:
        """Show the latest version."""
        ...

    def show(self, committed: Committed) -> None:
        """Show the version of a commit."""
        ...

    def run(
        self,
        operation: str,
        stage: Callable[[PendingTransaction], T],
        *,
        parameters: Mapping[str, Any] | None = None,
        refresh: bool = True,
        on_conflict: Literal["retry", "raise"] = "retry",
        commit_properties: CommitProperties | None = None,
        hooks: PostCommitHookProperties | None = None,
        skip_empty: bool = False,
    ) -> Ran[T]:
        """Stage an operation and commit it."""
        ...
