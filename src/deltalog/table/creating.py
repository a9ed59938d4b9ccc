"""Tables that are to be made: defaults for many of them, and the first commit.

Owns `table_defaults`. What a table's protocol and metadata may be is `table_change`'s to say.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from deltalog.actions.settable import canonical_key
from deltalog.clock import now_ms
from deltalog.table_change import new_table
from deltalog.transaction import PendingTransaction
from deltalog.transaction.commit import commit
from deltalog.transaction.discard import discard, discarding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deltalog.configuration import TableConfiguration
    from deltalog.context import TableContext
    from deltalog.schema import StructType
    from deltalog.transaction import CommitProperties, PostCommitHookProperties
    from deltalog.transaction.commit import Committed

T = TypeVar("T")

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_DEFAULTS: Final[ContextVar[Mapping[str, str]]] = ContextVar("table_defaults", default=_NOTHING)


@contextmanager
def table_defaults(properties: Mapping[str, str]) -> Iterator[None]:
    """Give every table that is made in this block these properties, unless it says otherwise.

    Blocks can be nested; the inner one's properties come first. The block holds for the current
    thread or task.

    Args:
        properties: key → text, such as `{"delta.enableDeletionVectors": "true"}`.

    Raises:
        InvalidInputError: there is no such property.
    """
    asked = {canonical_key(key): text for key, text in properties.items()}
    token = _DEFAULTS.set({**_DEFAULTS.get(), **asked})
    try:
        yield
    finally:
        _DEFAULTS.reset(token)


def new_table_with_defaults(
    schema: StructType,
    *,
    partition_columns: Sequence[str] = (),
    configuration: Mapping[str, str | None] | None = None,
    name: str | None = None,
    description: str | None = None,
    clustering_columns: Sequence[str | tuple[str, ...]] | None = None,
    features: Sequence[str] = (),
    arbitrary_properties: bool = False,
) -> TableConfiguration:
    """`table_change.new_table` with the defaults of the moment; None takes one of them away."""
    asked = dict(configuration or {})
    own = {key.lower() for key in asked}
    defaults = {key: text for key, text in _DEFAULTS.get().items() if key.lower() not in own}
    merged = {**defaults, **asked}
    return new_table(
        schema,
        partition_columns=partition_columns,
        configuration={key: text for key, text in merged.items() if text is not None},
        name=name,
        description=description,
        clustering_columns=clustering_columns,
        features=features,
        arbitrary_properties=arbitrary_properties,
        created_time_ms=now_ms(),
    )


def make_table(
    context: TableContext,
    configuration: TableConfiguration,
    stage: Callable[[PendingTransaction], T],
    *,
    operation: str,
    parameters: Mapping[str, Any] | None = None,
    commit_properties: CommitProperties | None = None,
    hooks: PostCommitHookProperties | None = None,
) -> Committed:
    """Commit version 0.

    Args:
        context: of the table that is to be.
        configuration: of the table.
        stage: adds what version 0 holds besides.
        operation: for the history.
        parameters: of the operation.
        commit_properties: of the commit.
        hooks: what follows it.

    Raises:
        CommitFailedError: another writer made a table there.
    """
    pending = PendingTransaction(
        context, None, operation=operation, parameters=parameters, configuration=configuration
    )
    with discarding(pending):
        stage(pending)
        committed = commit(pending, commit_properties=commit_properties, hooks=hooks)
        if committed.skipped:
            discard(pending)
        return committed
