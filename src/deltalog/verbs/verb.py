"""What every verb is: a frozen value with a name that stages itself and tells its outcome.

A new verb is one module here: its arguments as fields, `stage`, and an outcome with the metrics of
the history and the result that callers get. Dry run, progress, retries and what follows the commit
are `verbs.do`'s, for all verbs alike.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.engine import Engine
    from deltalog.transaction import PendingTransaction

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


ResultT_co = TypeVar("ResultT_co", covariant=True)


class Outcome(Protocol[ResultT_co]):
    """What a verb did, and the result that callers get of it."""

    def metrics(self) -> Mapping[str, int | str]:
        """As the history tells it: Delta Spark's `operationMetrics`."""
        ...

    def result(self) -> ResultT_co:
        """As the caller gets it: deltalake's keys, and ours."""
        ...


OutcomeT_co = TypeVar("OutcomeT_co", bound=Outcome[Any], covariant=True)
T = TypeVar("T")


class Nothing:
    """The outcome of a verb that counts nothing and has nothing to tell."""

    def metrics(self) -> Mapping[str, int | str]:
        """Nothing is counted."""
        return _NOTHING

    def result(self) -> None:
        """Nothing is told."""
        return


class Verb(Generic[OutcomeT_co]):
    """Something that can be done to a table, as the user says it.

    Attributes:
        name: for the history of the table, in Delta Spark's words.
        doing: what a progress bar says.
        needs_latest: whether newer versions are looked for before it is staged.
        skips_empty: whether there is no commit where nothing was staged.
    """

    __slots__ = ()

    name: ClassVar[str]
    doing: ClassVar[str] = "working"
    needs_latest: ClassVar[bool] = True
    skips_empty: ClassVar[bool] = False

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be staged again, on the version of a winner; a one-shot source cannot."""
        return True

    def logged_parameters(self) -> Mapping[str, Any]:
        """What the history says of the arguments; `stage` may add to it."""
        return _NOTHING

    def opened(self, engine: Engine) -> AbstractContextManager[Self]:
        """The verb with what it reads from opened, which is let go of at the end.

        Whoever does the verb opens it once, however often it is staged then.
        """
        del engine
        return nullcontext(self)

    @abstractmethod
    def stage(self, transaction: PendingTransaction, engine: Engine) -> OutcomeT_co:
        """Plan it into a transaction; files are written, nothing is committed.

        Args:
            transaction: of the table.
            engine: does the work on rows and files.
        """

    def preview(self, transaction: PendingTransaction, engine: Engine) -> dict[str, Any]:
        """What it would do, as callers get it; nothing is written.

        Raises:
            InvalidInputError: it has no dry run.
        """
        del engine
        raise InvalidInputError(
            f"cannot preview {self.name} of {transaction.store.root}: it has no dry run"
        )

    def explain(self, transaction: PendingTransaction, engine: Engine) -> str:
        """How it would find the rows that it concerns.

        Raises:
            InvalidInputError: it looks for none.
        """
        del engine
        raise InvalidInputError(
            f"cannot explain {self.name} of {transaction.store.root}: it looks for no rows"
        )


@dataclass(frozen=True, slots=True)
class Staged(Generic[T]):
    """The outcome of an operation of the caller's own: what its `stage` gave."""

    value: T

    def metrics(self) -> Mapping[str, int | str]:
        """None: such an operation sets its own."""
        return _NOTHING

    def result(self) -> T:
        """What its `stage` gave."""
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Verb[Staged[T]]):
    """An operation of the caller's own.

    Args:
        name: for the history.
        plan: stages it; called again on the newest version if another writer won.
        parameters: of the operation, for the history.
        needs_latest: whether to look for newer versions first.
        skips_empty: whether nothing is committed where nothing was staged.
    """

    name: str  # type: ignore[misc]  # the caller's
    plan: Callable[[PendingTransaction], T]
    parameters: Mapping[str, Any] | None = None
    needs_latest: bool = True  # type: ignore[misc]  # the caller's
    skips_empty: bool = False  # type: ignore[misc]  # the caller's

    def logged_parameters(self) -> Mapping[str, Any]:
        """The caller's."""
        return self.parameters or _NOTHING

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Staged[T]:
        """Call `plan`."""
        del engine
        return Staged(self.plan(transaction))
