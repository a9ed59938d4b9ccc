"""Traversing and rebuilding expression trees.

Owns what the children of a node are. Knows neither types nor data.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog.expressions.nodes import And, Call, Column, Expression, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

VARIABLE: Final = "\0"
"""Ahead of a lambda parameter's name, its name among the columns of the rows of the body."""

_PARTS: Final[dict[type, tuple[str, ...]]] = {}
# Spark replaces these by constants when a query starts. Constraints and generated columns are
# evaluated by many queries, so they must not use them (ledger GEN-04).
NON_DETERMINISTIC: Final = frozenset(
    {"current_date", "curdate", "current_timestamp", "now", "localtimestamp"}
)


def children(expression: Expression) -> list[Expression]:
    """The expressions directly inside a node, in order."""
    found: list[Expression] = []
    for name in _parts(expression):
        value = getattr(expression, name)
        if isinstance(value, Expression):
            found.append(value)
        elif isinstance(value, tuple):
            _collect(value, found)
    return found


def _parts(expression: Expression) -> tuple[str, ...]:
    """The names of a node's parts: `dataclasses.fields` takes longer than the rest of a walk."""
    kind = type(expression)
    if (known := _PARTS.get(kind)) is None:
        known = _PARTS[kind] = tuple(part.name for part in fields(kind))  # type: ignore[arg-type]  # every node is a dataclass
    return known


def _collect(values: tuple[Any, ...], found: list[Expression]) -> None:
    for value in values:
        if isinstance(value, Expression):
            found.append(value)
        elif isinstance(value, tuple):
            _collect(value, found)


def walk(expression: Expression) -> Iterator[Expression]:
    """The node and everything below it, parents first."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(children(node))


def rebuild(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The node with every child mapped."""
    changed: dict[str, Any] = {}
    for name in _parts(expression):
        value = getattr(expression, name)
        if isinstance(value, Expression | tuple):
            changed[name] = _change(value, change)
    return replace(expression, **changed) if changed else expression  # type: ignore[type-var]  # every node is a dataclass


def _change(value: Any, change: Callable[[Expression], Expression]) -> Any:
    if isinstance(value, Expression):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_change(item, change) for item in value)
    return value


def map_columns(expression: Expression, change: Callable[[Column], Expression]) -> Expression:
    """The tree with every column mapped, for example from logical to physical names."""
    if isinstance(expression, Column):
        return change(expression)
    return rebuild(expression, lambda child: map_columns(child, change))


def variables(expression: Expression) -> set[str]:
    """The names of the lambda parameters in the tree, bound inside of it or not."""
    return {node.name for node in walk(expression) if isinstance(node, Variable)}


def columns(expression: Expression) -> set[tuple[str, ...]]:
    """The paths of all columns that the expression reads."""
    return {node.path for node in walk(expression) if isinstance(node, Column)}


def conjunction(conditions: Sequence[Expression]) -> Expression:
    """The condition that all of some conditions are true; there is one at least."""
    return conditions[0] if len(conditions) == 1 else And(tuple(conditions))


def all_of(conditions: Sequence[Expression]) -> Expression | None:
    """The conjunction of some conditions; None, which is true of every row, of none."""
    return conjunction(conditions) if conditions else None


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The operands of AND, at any depth: all of them must be true for the whole to be true."""
    if not isinstance(expression, And):
        return (expression,)
    return tuple(part for operand in expression.operands for part in conjuncts(operand))


def is_deterministic(expression: Expression) -> bool:
    """Whether equal rows always give equal values."""
    return not any(
        isinstance(node, Call) and node.function.lower() in NON_DETERMINISTIC
        for node in walk(expression)
    )
