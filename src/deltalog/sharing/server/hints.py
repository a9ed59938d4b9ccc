"""What hints say about a table: a condition that is resolved against its columns, or nothing.

A hint that cannot be understood filters nothing, and is never an error (ledger SHARE-QT-04, D-78).

Protocol: SQL Expressions for Filtering, JSON predicates for Filtering
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.errors import DeltaError
from deltalog.expressions import resolve_predicate
from deltalog.expressions.nodes import And
from deltalog.scan.prune import Pruned, prune
from deltalog.sharing.wire.hints import parse_json_hint, parse_sql_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.expressions import Expression
    from deltalog.schema import StructType
    from deltalog.sharing.server.config import ServerConfig
    from deltalog.sharing.wire.requests import TableQuery
    from deltalog.snapshot import Snapshot


# Every one costs a look at each file; what is left out only makes the answer longer.
_MOST_HINTS: Final = 100


def predicate_of(query: TableQuery, schema: StructType, config: ServerConfig) -> Expression | None:
    """What must hold of every row that is wanted; None if nothing is known.

    Args:
        query: with its hints.
        schema: the columns that may be named.
        config: which hints are listened to.
    """
    found: list[Expression] = []
    if config.evaluate_predicate_hints:
        found += _understood(query.predicate_hints, parse_sql_hint, schema)
    if config.evaluate_json_predicate_hints and query.json_predicate_hints is not None:
        found += _understood([query.json_predicate_hints], parse_json_hint, schema)
    if len(found) < 2:
        return found[0] if found else None
    return And(tuple(found))


def prune_by(snapshot: Snapshot, predicate: Expression | None) -> Pruned:
    """The files that may hold wanted rows; all of them if the condition cannot be judged.

    Cost: the log's columns that the predicate needs.
    """
    try:
        return prune(snapshot, predicate)
    except (DeltaError, pa.ArrowException, OverflowError, RecursionError):
        if predicate is None:
            raise
        return prune(snapshot, None)


def _understood(
    texts: Sequence[str], parse: Callable[[str], Expression], schema: StructType
) -> list[Expression]:
    found = []
    for text in texts[:_MOST_HINTS]:
        try:
            found.append(resolve_predicate(parse(text), schema))
        except (DeltaError, RecursionError):
            continue
    return found
