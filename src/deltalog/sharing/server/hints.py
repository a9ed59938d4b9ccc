"""Predicate hints of a query, resolved against the table's columns.

A hint that cannot be parsed or resolved filters nothing, and is never an error: "the server may
return all the files if validations fail" (ledger SHARE-QT-04, D-78).

Protocol: SQL Expressions for Filtering, JSON predicates for Filtering
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

import deltalog.expressions.arrow  # noqa: F401  # no first query waits for the kernels
from deltalog.errors import DeltaError
from deltalog.expressions import TextRules, resolve_predicate
from deltalog.expressions.trees import all_of, walk
from deltalog.scan.prune import Pruned, prune
from deltalog.sharing.server.work import check_client
from deltalog.sharing.wire.hints import MOST_OPERATIONS, parse_json_hint, parse_sql_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deltalog.expressions import Expression
    from deltalog.schema import StructType
    from deltalog.sharing.server.config import ServerConfig
    from deltalog.sharing.wire.requests import TableQuery
    from deltalog.snapshot import Snapshot


# Each hint is evaluated for every file. Ignored ones only make the answer longer.
_MOST_HINTS: Final = 100
# Operations times files: about a second of work.
_MOST_EVALUATIONS: Final = 200_000_000


@dataclass(frozen=True, slots=True)
class Hints:
    """The hints of a query as far as they are evaluated.

    Args:
        predicate: that holds for all rows that the client wants; None without one.
        num_read: hints that were looked at, in their order, the JSON hint last. The pages of a
            query must agree on it, as on the files that are left.
        num_used: hints of which the predicate is made.
    """

    predicate: Expression | None
    num_read: int
    num_used: int


class _Budget:
    """What is left of the limits on the hints of one query.

    Args:
        config: of the server.
        num_files: for which hints are evaluated.
        num_read: hints that an earlier page looked at, which this one does in any case.
    """

    def __init__(self, config: ServerConfig, num_files: int, num_read: int | None) -> None:
        limits = config.limits
        self._bytes = limits.hint_bytes
        self._operations = min(MOST_OPERATIONS, _MOST_EVALUATIONS // max(1, num_files))
        self._end_s = time.monotonic() + limits.hint_milliseconds / 1000
        self._agreed = num_read

    def may_read(self, number: int, text: str) -> bool:
        """Whether there is a budget for the next hint, which is taken from it."""
        if self._agreed is not None:
            return number < self._agreed
        self._bytes -= len(text.encode("utf-8", "surrogatepass"))
        is_left = self._bytes >= 0 and self._operations > 0
        # One hint is always read: a busy server must not answer each query with all files.
        return is_left and (number == 0 or time.monotonic() < self._end_s)

    def take(self, hint: Expression) -> bool:
        """Whether there is a budget for evaluating a hint, which is taken from it."""
        self._operations -= sum(1 for _ in walk(hint))
        return self._operations >= 0


def read_hints(
    query: TableQuery,
    schema: StructType,
    config: ServerConfig,
    num_files: int,
    num_read: int | None = None,
) -> Hints:
    """Return the condition that a query's hints make, as far as the budget goes.

    Args:
        query: with its hints.
        schema: of the columns that hints may name.
        config: which hints are evaluated, and within which limits.
        num_files: for which they will be evaluated.
        num_read: hints that the first page looked at; None is the first page.
    """
    budget = _Budget(config, num_files, num_read)
    found: list[Expression] = []
    number = -1
    for number, (text, parse) in enumerate(_texts(query, config)):
        check_client()
        if not budget.may_read(number, text):
            break
        try:
            hint = resolve_predicate(parse(text), schema, text_rules=TextRules.NONE)
        except (DeltaError, RecursionError):
            continue
        if budget.take(hint):
            found.append(hint)
    else:
        number += 1
    return Hints(all_of(found), number, len(found))


def _texts(
    query: TableQuery, config: ServerConfig
) -> Iterator[tuple[str, Callable[[str], Expression]]]:
    if config.evaluate_predicate_hints:
        for text in query.predicate_hints[:_MOST_HINTS]:
            yield text, parse_sql_hint
    if config.evaluate_json_predicate_hints and query.json_predicate_hints is not None:
        yield query.json_predicate_hints, parse_json_hint


def prune_by(snapshot: Snapshot, predicate: Expression | None) -> Pruned:
    """Return the files that may hold wanted rows; all files if the condition cannot be evaluated.

    Cost: the log's columns that the predicate needs.
    """
    try:
        return prune(snapshot, predicate)
    except (DeltaError, pa.ArrowException, OverflowError, RecursionError):
        if predicate is None:
            raise
        return replace(prune(snapshot, None), is_exact=False)
