"""The verb of a caller's own operation, given as a function.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic

from deltalog.verbs.verb import T, Verb

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.engine import Engine
    from deltalog.transaction import PendingTransaction

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Staged(Generic[T]):
    """The outcome of a caller's own operation: the return value of its `plan`."""

    value: T

    def metrics(self) -> Mapping[str, int | str]:
        """Return no metrics: the operation sets them in the transaction."""
        return _NOTHING

    def result(self) -> T:
        """Return the value."""
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Verb[Staged[T]]):
    """A caller's own operation.

    Args:
        name: for the history.
        plan: stages it; called again on the newest version after a conflict.
        parameters: of the operation, for the history.
        needs_latest: whether the table is refreshed first.
        skips_empty: whether the commit is skipped if nothing was staged.
    """

    name: str  # type: ignore[misc]  # the caller's
    plan: Callable[[PendingTransaction], T]
    parameters: Mapping[str, Any] | None = None
    needs_latest: bool = True  # type: ignore[misc]  # the caller's
    skips_empty: bool = False  # type: ignore[misc]  # the caller's

    def logged_parameters(self) -> Mapping[str, Any]:
        """Return the caller's parameters."""
        return self.parameters or _NOTHING

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Staged[T]:
        """Call `plan`."""
        del engine
        return Staged(self.plan(transaction))
