"""Predicate hints of a query, resolved against the table's columns.

A hint that cannot be parsed or resolved filters nothing, and is never an error: "the server may
return all the files if validations fail" (ledger SHARE-QT-04, D-78).

Protocol: SQL Expressions for Filtering, JSON predicates for Filtering
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.errors import DeltaError
from deltalog.expressions import resolve_predicate
from deltalog.expressions.trees import all_of
from deltalog.scan.prune import Pruned, prune
from deltalog.sharing.wire.hints import parse_json_hint, parse_sql_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.expressions import Expression
    from deltalog.schema import StructType
    from deltalog.sharing.server.config import ServerConfig
    from deltalog.sharing.wire.requests import TableQuery
    from deltalog.snapshot import Snapshot


# Each hint is evaluated for every file. Ignored ones only make the answer longer.
_MOST_HINTS: Final = 100


def predicate_of(query: TableQuery, schema: StructType, config: ServerConfig) -> Expression | None:
    """Return a condition that holds for all rows that the client wants, or None.

    Args:
        query: with its hints.
        schema: of the columns that hints may name.
        config: which hints are evaluated.
    """
    found: list[Expression] = []
    if config.evaluate_predicate_hints:
        found += _resolved(query.predicate_hints, parse_sql_hint, schema)
    if config.evaluate_json_predicate_hints and query.json_predicate_hints is not None:
        found += _resolved([query.json_predicate_hints], parse_json_hint, schema)
    return all_of(found)


def prune_by(snapshot: Snapshot, predicate: Expression | None) -> Pruned:
    """Return the files that may hold wanted rows; all files if the condition cannot be evaluated.

    Cost: the log's columns that the predicate needs.
    """
    try:
        return prune(snapshot, predicate)
    except (DeltaError, pa.ArrowException, OverflowError, RecursionError):
        if predicate is None:
            raise
        return prune(snapshot, None)


def _resolved(
    texts: Sequence[str], parse: Callable[[str], Expression], schema: StructType
) -> list[Expression]:
    found = []
    for text in texts[:_MOST_HINTS]:
        try:
            found.append(resolve_predicate(parse(text), schema))
        except (DeltaError, RecursionError):
            continue
    return found
