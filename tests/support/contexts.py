"""Snapshots and transactions in other contexts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from deltalog.log.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction

T = TypeVar("T", "Snapshot", "PendingTransaction")


def moved(thing: T, **changes: Any) -> T:
    """The same object; store, clock or committer of its context are others from now on."""
    thing.context = replace(thing.context, **changes)
    return thing
