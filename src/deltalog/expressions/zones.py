"""Whether an expression means the same in every time zone.

Owns what in an expression depends on the zone of a session. deltalog evaluates in UTC.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deltalog.errors import DeltaError
from deltalog.expressions.analyze import type_of
from deltalog.expressions.nodes import Call, Cast, Column, Expression
from deltalog.expressions.trees import children, walk
from deltalog.schema.columns import walk_types
from deltalog.schema.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ

if TYPE_CHECKING:
    from deltalog.schema.types import DataType, StructType

# A date, possibly with a time of day, without a zone at the end.
WITHOUT_ZONE: Final = re.compile(r"['\"]\s*\d+-\d+(?:-[\d]+(?:[T ][\d:.]*)?)?\s*['\"]")
_OF_TODAY: Final = re.compile(r"(?i)current_date|curdate|localtimestamp")
# Functions of moments as such.
_OF_INSTANTS: Final = frozenset(
    {
        *("coalesce", "nvl", "nvl2", "ifnull", "nullif", "greatest", "least", "if"),
        *("array", "map", "struct", "named_struct"),
        *("unix_seconds", "unix_millis", "unix_micros"),
        *("timestamp_seconds", "timestamp_millis", "timestamp_micros"),
    }
)
# What a wall time is cast from or to.
_WALL_TIMES: Final = frozenset({DATE, STRING, TIMESTAMP_NTZ})
_ALWAYS: Final = frozenset({"from_unixtime", "unix_timestamp", "to_unix_timestamp"})


def depends_on_zone(text: str, resolved: Expression, schema: StructType) -> bool:
    """Whether the value may differ between time zones; in doubt it does.

    Args:
        text: as it was written: literals of `resolved` no longer tell whether they named a zone.
        resolved: the same, resolved against `schema`.
        schema: of the rows.
    """
    if _OF_TODAY.search(text):
        return True
    nodes = list(walk(resolved))
    names_none = WITHOUT_ZONE.search(text) is not None
    if names_none and any(_type(node, schema) == TIMESTAMP for node in nodes):
        return True
    has_moments = any(
        TIMESTAMP in (kind for _, kind in walk_types(found))
        for node in nodes
        if isinstance(node, Column) and (found := _type(node, schema)) is not None
    )
    # The type of a lambda's variable is known to its function only.
    unknown = TIMESTAMP if has_moments else None
    return any(_computes(node, schema, unknown) for node in nodes)


def _computes(node: Expression, schema: StructType, unknown: DataType | None) -> bool:
    """Whether one step takes a moment for a wall time, or the other way round."""
    if isinstance(node, Call) and node.function in _ALWAYS:
        return True
    if not isinstance(node, Call | Cast) or (
        isinstance(node, Call) and node.function in _OF_INSTANTS
    ):
        return False
    types = [_type(part, schema) or unknown for part in (node, *children(node))]
    if isinstance(node, Cast):
        return TIMESTAMP in types and not _WALL_TIMES.isdisjoint(types)
    return TIMESTAMP in types


def _type(node: Expression, schema: StructType) -> DataType | None:
    try:
        return type_of(node, schema)
    except DeltaError:
        return None
