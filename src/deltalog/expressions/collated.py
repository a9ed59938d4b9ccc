"""Texts with a collation in expressions: what may be asked of them.

Owns which nodes hand values on, and which look into them. deltalog has the rules of no collation.

Protocol: Collations Table Feature
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions import nodes
from deltalog.expressions.nodes import Call, Column, Literal
from deltalog.expressions.render import to_sql
from deltalog.expressions.trees import children, columns, walk
from deltalog.schema.collations import collation_below

if TYPE_CHECKING:
    from deltalog.expressions.nodes import Expression
    from deltalog.schema.types import StructType

HANDING_ON: Final = frozenset({"[]", "coalesce", "named_struct"})
"""Functions that ask of a value no more than whether it is there, or where it is."""
_HANDING_ON_NODES: Final = (
    Column,
    Literal,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.IsNull,
    nodes.Case,
)
# What a text is compared by does not matter to them.
_OF_LENGTH: Final = frozenset({"length", "char_length", "octet_length", "bit_length"})


def check_collations(resolved: Expression, schema: StructType) -> None:
    """Refuse to compare texts that a collation compares by rules of its own.

    Raises:
        InvalidInputError: a node of the expression looks into such a text.
    """
    collated = {
        path: collation
        for path in columns(resolved)
        if (path[0] in schema.names and (collation := collation_below(schema, path)))
    }
    for node in walk(resolved) if collated else ():
        if isinstance(node, _HANDING_ON_NODES) or (
            isinstance(node, Call) and node.function in HANDING_ON | _OF_LENGTH
        ):
            continue
        for path in sorted(_texts_in(node) & collated.keys()):
            raise InvalidInputError(
                f"cannot compute {to_sql(node)}: the texts of column {'.'.join(path)!r} have the "
                f"collation {collated[path]}, whose rules deltalog does not have; it compares "
                "texts by their bytes only"
            )


def _texts_in(node: Expression) -> set[tuple[str, ...]]:
    """The columns in a node of which more is asked than whether they are NULL, or how long."""
    found: set[tuple[str, ...]] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Column):
            found.add(one.path)
        elif not isinstance(one, nodes.IsNull) and not (
            isinstance(one, Call) and one.function in _OF_LENGTH
        ):
            waiting += children(one)
    return found
