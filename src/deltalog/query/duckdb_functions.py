"""Functions of Python that DuckDB calls while a query runs.

DuckDB does not keep the functions that a running query calls: each of its functions is kept as long
as the process lives, and finds that of a query by a number among its arguments.

Protocol: none
"""

from __future__ import annotations

import inspect
import itertools
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary, ref

import pyarrow as pa

from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions import evaluate
from deltalog.expressions.evaluation import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.expressions import Expression
    from deltalog.query.duckdb import Database, DuckDBRun

_NUMBERS: Final = itertools.count()


class RunFunction:
    """A function of one run of a query, which keeps it as long as DuckDB may call it.

    Args:
        compute: gives an array for arrays.
        run: gets its error, of which DuckDB keeps the text only.
    """

    def __init__(self, compute: Callable[..., Any], run: DuckDBRun) -> None:
        self._number = next(_NUMBERS)
        self._compute = compute
        self._run = ref(run)
        _FUNCTIONS[self._number] = self

    def __call__(self, *columns: Any) -> Any:
        """Return the array for a batch."""
        try:
            return self._compute(*columns)
        except DeltaError as error:
            run = self._run()
            if run is not None:
                run.failure = error
            raise

    def call_in(self, database: Database, types: Sequence[str], result: str) -> str:
        """Return the beginning of a call in a query: its other arguments and a bracket follow.

        Args:
            database: gets to know it.
            types: of its arguments, in DuckDB's words.
            result: its type.
        """
        name, called = _caller((*types, result))
        database.know(name, called, ["BIGINT", *types], result)
        return f"{name}({self._number}"


# Those of the queries that run.
_FUNCTIONS: Final[WeakValueDictionary[int, RunFunction]] = WeakValueDictionary()


@cache
def _caller(types: tuple[str, ...]) -> tuple[str, Callable[..., Any]]:
    """Return a function for DuckDB with these types, the last of which is its result's.

    It is kept forever, and so there is one for all expressions whose types are the same.
    """

    def call(number: Any, *columns: Any) -> Any:
        if not len(number):
            return pa.nulls(0)
        return _FUNCTIONS[number[0].as_py()](*columns)

    # DuckDB counts the arguments of a function of Python.
    kind = inspect.Parameter.POSITIONAL_ONLY
    names = ("number", *(f"c{place}" for place in range(len(types) - 1)))
    parameters = [inspect.Parameter(name, kind) for name in names]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return f"deltalog_computed_{next(_NUMBERS)}", call


def evaluated(resolved: Expression, batch: pa.RecordBatch) -> Any:
    """Return an expression's values for a batch.

    What fails beside a constant condition that decides is not computed, as Spark folds constants
    before it reads rows.

    Raises:
        InvalidInputError: the expression has no value for a row.
    """
    try:
        return evaluate(resolved, batch)
    except InvalidInputError:
        folded = fold(resolved)
        if folded.same_as(resolved):
            raise
        return evaluate(folded, batch)
