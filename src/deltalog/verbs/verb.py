"""The base class of verbs: frozen values that stage themselves and return an outcome.

A new verb is one module here: its arguments as fields, `stage`, and an outcome with the metrics of
the history and the result for the caller. `verbs.do` owns dry runs, progress, retries and the steps
after the commit, for all verbs.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.engine import Engine
    from deltalog.transaction import PendingTransaction

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


ResultT_co = TypeVar("ResultT_co", covariant=True)


class Outcome(Protocol[ResultT_co]):
    """What a verb did: metrics for the history, and the result for the caller."""

    def metrics(self) -> Mapping[str, int | str]:
        """Return the metrics as Delta Spark's `operationMetrics`."""
        ...

    def result(self) -> ResultT_co:
        """Return the result for the caller: deltalake's keys, and ours."""
        ...


OutcomeT_co = TypeVar("OutcomeT_co", bound=Outcome[Any], covariant=True)
T = TypeVar("T")


class Nothing:
    """The outcome of a verb without metrics and without a result."""

    def metrics(self) -> Mapping[str, int | str]:
        """Return no metrics."""
        return _NOTHING

    def result(self) -> None:
        """Return nothing."""
        return


class Verb(Generic[OutcomeT_co]):
    """An operation on a table, with the arguments of the user.

    Attributes:
        name: the operation in the history, as Delta Spark names it.
        doing: text of the progress bar.
        needs_latest: whether the table is refreshed before the verb is staged.
        skips_empty: whether the commit is skipped if nothing was staged.
    """

    __slots__ = ()

    name: ClassVar[str]
    doing: ClassVar[str] = "working"
    needs_latest: ClassVar[bool] = True
    skips_empty: ClassVar[bool] = False

    @property
    def is_repeatable(self) -> bool:
        """Whether the verb can be staged again after a conflict; not with a one-shot source."""
        return True

    def logged_parameters(self) -> Mapping[str, Any]:
        """Return the operationParameters that follow from the arguments; `stage` may add more."""
        return _NOTHING

    def opened(self, engine: Engine) -> AbstractContextManager[Self]:
        """Return a context manager that yields the verb with its sources opened.

        A verb is opened once, and may then be staged several times.
        """
        del engine
        return nullcontext(self)

    @abstractmethod
    def stage(self, transaction: PendingTransaction, engine: Engine) -> OutcomeT_co:
        """Stage the verb into a transaction; files are written, nothing is committed.

        Args:
            transaction: of the table.
            engine: does the work on rows and files.
        """

    def preview(self, transaction: PendingTransaction, engine: Engine) -> dict[str, Any]:
        """Return the result of a dry run; nothing is written.

        Raises:
            InvalidInputError: the verb has no dry run.
        """
        del engine
        raise InvalidInputError(
            f"cannot preview {self.name} of {transaction.store.root}: it has no dry run"
        )

    def explain(self, transaction: PendingTransaction, engine: Engine) -> str:
        """Describe how the verb would find its rows.

        Raises:
            InvalidInputError: the verb does not search rows.
        """
        del engine
        raise InvalidInputError(
            f"cannot explain {self.name} of {transaction.store.root}: it looks for no rows"
        )
