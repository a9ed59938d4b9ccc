"""Rows of values, `(a, b)` and `struct(a, b AS c)`, and whether they are equal.

Owns the names of their fields, and the comparisons that stand for the equality of two rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.expressions import nodes
from deltalog.expressions.macros import names_of_fields
from deltalog.expressions.nodes import Call, Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence


def row_of(values: tuple[Expression, ...], names: Sequence[str | None]) -> Call:
    """The struct of values, of which some have a name."""
    if not any(name is not None for name in names):
        return Call("struct", values)
    found: list[Expression] = []
    for value, own, name in zip(values, names_of_fields(values), names, strict=True):
        found += [Literal(own if name is None else name), value]
    return Call("named_struct", tuple(found))


def values_of_row(row: Expression) -> tuple[Expression, ...] | None:
    """The values of which a row was made; None of another expression."""
    match row:
        case Call("struct", values):
            return values
        case Call("named_struct", arguments):
            return arguments[1::2]
    return None


def equal_rows(left: Expression, right: Expression) -> Expression | None:
    """Whether two rows have equal values, in which NULL equals NULL; None if they are no such rows.

    Rows are compared as structs, and those by their fields: each comparison can prune files.
    """
    mine, theirs = values_of_row(left), values_of_row(right)
    if mine is None or theirs is None or len(mine) != len(theirs):
        return None
    pairs = zip(mine, theirs, strict=True)
    return nodes.And(tuple(nodes.Comparison("<=>", one, other) for one, other in pairs))


def is_one_of_rows(row: Expression, options: tuple[Expression, ...]) -> Expression:
    """Whether a row is one of a list."""
    found = [equal_rows(row, option) for option in options]
    known = tuple(one for one in found if one is not None)
    if len(known) < len(found):  # the resolver says what is wrong
        return nodes.In(row, options)
    return known[0] if len(known) == 1 else nodes.Or(known)
