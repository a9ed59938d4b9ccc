"""The base class of operations on a table, and the operation that wraps a caller's function.

Protocol: none
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

    from deltalog.operations.engine import Engine
    from deltalog.transaction import PendingTransaction


# --- Base class of operations


ResultT_co = TypeVar("ResultT_co", covariant=True)


class Outcome(Protocol[ResultT_co]):
    """The outcome of an operation: metrics for the history, and the result for the caller."""

    def metrics(self) -> Mapping[str, int | str]:
        """Return the metrics under the names of Delta Spark's `operationMetrics`."""
        ...

    def result(self) -> ResultT_co:
        """Return the result for the caller.

        A dictionary has the keys of deltalake's result, and additional keys.
        """
        ...


OutcomeT_co = TypeVar("OutcomeT_co", bound=Outcome[Any], covariant=True)
T = TypeVar("T")


class Nothing:
    """The outcome of an operation without metrics and without a result."""

    def metrics(self) -> Mapping[str, int | str]:
        """Return no metrics."""
        return _NOTHING

    def result(self) -> None:
        """Return nothing."""
        return


class Operation(Generic[OutcomeT_co]):
    """An operation on a table, with the arguments of the user.

    Attributes:
        name: name of the operation in the history, as Delta Spark writes it.
        doing: label of the progress bar.
        needs_latest: whether the table is refreshed before the operation is staged.
        skips_empty: whether the commit is skipped if nothing was staged.
    """

    __slots__ = ()

    name: ClassVar[str]
    doing: ClassVar[str] = "working"
    needs_latest: ClassVar[bool] = True
    skips_empty: ClassVar[bool] = False

    @property
    def is_repeatable(self) -> bool:
        """Whether the operation can be staged again after a conflict.

        False if its source can be read only once.
        """
        return True

    def logged_parameters(self) -> Mapping[str, Any]:
        """Return the `operationParameters` for the history; `stage` may add more."""
        return _NOTHING

    def opened(self, engine: Engine) -> AbstractContextManager[Self]:
        """Return a context manager that yields the operation with its sources opened.

        An operation is opened once, and may then be staged several times.
        """
        del engine
        return nullcontext(self)

    @abstractmethod
    def stage(self, transaction: PendingTransaction, engine: Engine) -> OutcomeT_co:
        """Stage the operation into a transaction: write files, but commit nothing.

        Args:
            transaction: transaction of the table.
            engine: does the work on rows and files.
        """

    def preview(self, transaction: PendingTransaction, engine: Engine) -> dict[str, Any]:
        """Return the result of a dry run; nothing is written.

        Raises:
            InvalidInputError: the operation has no dry run.
        """
        del engine
        raise InvalidInputError(
            f"cannot preview {self.name} of {transaction.store.root}: it has no dry run"
        )

    def explain(self, transaction: PendingTransaction, engine: Engine) -> str:
        """Describe how the operation would find the rows to change.

        Raises:
            InvalidInputError: the operation does not search for rows.
        """
        del engine
        raise InvalidInputError(
            f"cannot explain {self.name} of {transaction.store.root}: it does not search for rows"
        )


# --- Operation that wraps a caller's function


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Staged(Generic[T]):
    """An outcome that consists of one value, such as the return value of a caller's function."""

    value: T

    def metrics(self) -> Mapping[str, int | str]:
        """Return no metrics. The operation may set metrics in the transaction itself."""
        return _NOTHING

    def result(self) -> T:
        """Return the value."""
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomOperation(Operation[Staged[T]]):
    """An operation that is staged by a function of the caller.

    Args:
        name: name of the operation in the history.
        plan: the function that stages the operation. After a conflict, it is called again on the
            newest version.
        parameters: parameters of the operation in the history.
        needs_latest: whether the table is refreshed before the operation is staged.
        skips_empty: whether the commit is skipped if nothing was staged.
    """

    name: str  # type: ignore[misc]  # set per instance
    plan: Callable[[PendingTransaction], T]
    parameters: Mapping[str, Any] | None = None
    needs_latest: bool = True  # type: ignore[misc]  # set per instance
    skips_empty: bool = False  # type: ignore[misc]  # set per instance

    def logged_parameters(self) -> Mapping[str, Any]:
        """Return the caller's parameters."""
        return self.parameters or _NOTHING

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Staged[T]:
        """Call `plan`."""
        del engine
        return Staged(self.plan(transaction))
