"""Configuration of new tables, with the default properties that `table_defaults` sets.

`table_change` decides which protocol and metadata a table may have.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from deltalog._util.argument_types import checked_types
from deltalog._util.builders import RunsOnce
from deltalog._util.clock import now_ms
from deltalog.protocol.actions.properties import canonical_key
from deltalog.protocol.table_change.change import new_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deltalog.catalogs.protocol import NewNamedTable
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.schema import StructType

_Function = TypeVar("_Function", bound="Callable[..., Any]")
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

_DEFAULTS: Final[ContextVar[tuple[Mapping[str, str], ...]]] = ContextVar(
    "table_defaults", default=(_NOTHING,)
)
"""The defaults in each open block of this thread or task, with those of the outer blocks."""


@checked_types
def table_defaults(properties: Mapping[str, str]) -> TableDefaults:
    """Set default properties of the tables that are created in the `with` block.

    Properties of a table take precedence over defaults, and the defaults of an inner block over
    those of an outer block. A block affects only the current thread or task.

    Args:
        properties: key → string, such as `{"delta.enableDeletionVectors": "true"}`.

    Returns:
        A context manager, which is also a decorator of functions.

    Raises:
        InvalidInputError: a property does not exist.
    """
    return TableDefaults({canonical_key(key): text for key, text in properties.items()})


class TableDefaults(ContextDecorator, RunsOnce):
    """The context manager of `table_defaults`; if it is never used, it warns.

    Args:
        asked: the default properties.
    """

    def __init__(self, asked: Mapping[str, str]) -> None:
        self._asked = asked
        self._is_used = False

    def __enter__(self) -> None:
        """Set the defaults."""
        self._is_used = True
        blocks = _DEFAULTS.get()
        _DEFAULTS.set((*blocks, {**blocks[-1], **self._asked}))

    def __exit__(self, *_: object) -> None:
        """Restore the defaults of the outer block."""
        _DEFAULTS.set(_DEFAULTS.get()[:-1])

    def __call__(self, function: _Function) -> _Function:
        """Decorate a function, each call of which is a block."""
        self._is_used = True
        return super().__call__(function)

    def _recreate_cm(self) -> Self:
        """Return the context manager of one call of a decorated function."""
        return type(self)(self._asked)

    def _left_undone(self) -> str | None:
        if self._is_used:
            return None
        return (
            "table_defaults(…) was never used: it has an effect on the tables that are created in "
            "its block, `with table_defaults({…}):`"
        )


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
    place: NewNamedTable | None = None,
) -> TableConfiguration:
    """Return `table_change.new_table` with the current defaults.

    Args:
        configuration: table properties; the value None removes a default.
        place: the table's entry in a catalog, which may require properties and features.

    Raises:
        InvalidInputError: a column's metadata is misspelled, or a property is invalid.
    """
    from deltalog.schema.new_metadata import check_new_metadata  # new tables

    check_new_metadata(schema.fields)
    asked = dict(configuration or {})
    if place is not None:
        asked = place.staged.configuration(asked)
        features = (*features, *place.staged.features)
    own = {key.lower() for key in asked}
    defaults = {key: text for key, text in _DEFAULTS.get()[-1].items() if key.lower() not in own}
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
        has_catalog=place is not None,
        created_time_ms=now_ms(),
    )
