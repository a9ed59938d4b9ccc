"""Traversing and rebuilding expression trees.

Returns and replaces the children of each node. Does not depend on types or data. Trees may be
deeper than Python's stack, so no function here is recursive.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from deltalog.expressions.nodes import (
    And,
    Call,
    Column,
    Expression,
    Literal,
    Not,
    Or,
    Variable,
    parts_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

VARIABLE: Final = "\0"
"""The prefix of the temporary columns that contain lambda parameters during evaluation."""

_Node = TypeVar("_Node")
_Found = TypeVar("_Found")
LOGIC: Final = (And, Or, Not)
"""The nodes whose operands are conditions. Long filters consist mainly of these nodes."""
# The functions whose value is constant within a query in Spark, but differs between queries. So
# constraints and generated columns must not use them.
NON_DETERMINISTIC: Final = frozenset(
    {"current_date", "curdate", "current_timestamp", "now", "localtimestamp"}
)


def children(expression: Expression) -> list[Expression]:
    """Return the expressions directly inside a node, in order."""
    found: list[Expression] = []
    for name in parts_of(expression):
        value = getattr(expression, name)
        if isinstance(value, Expression):
            found.append(value)
        elif isinstance(value, tuple):
            _collect(value, found)
    return found


def _collect(values: tuple[Any, ...], found: list[Expression]) -> None:
    for value in values:
        if isinstance(value, Expression):
            found.append(value)
        elif isinstance(value, tuple):
            _collect(value, found)


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield the node and all its descendants, parents first."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Literal):  # long lists consist of constants
            waiting += reversed(children(node))


def rebuild(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return the node with `change` applied to every child."""
    changed: dict[str, Any] = {}
    for name in parts_of(expression):
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


def fold_up(
    expression: Expression,
    combine: Callable[[Expression, list[_Found]], _Found],
    *,
    inside: tuple[type[Expression], ...] = (Expression,),
) -> _Found:
    """Compute a result for each node from its children's results, without recursion.

    Args:
        expression: the root.
        combine: returns a node's result from the results of its children.
        inside: the kinds of nodes whose children are visited; all other nodes are treated as
        leaves.
    """

    def parts(node: Expression) -> list[Expression]:
        return children(node) if isinstance(node, inside) else []

    return fold_tree(expression, parts, combine)


def fold_tree(
    root: _Node,
    parts: Callable[[_Node], Sequence[_Node]],
    combine: Callable[[_Node, list[_Found]], _Found],
) -> _Found:
    """Compute a result for each node of any tree from its children's results, without recursion.

    Args:
        root: the root of the tree.
        parts: returns the children of a node.
        combine: returns a node's result from the results of its children.
    """
    done: list[_Found] = []
    waiting: list[tuple[_Node, int]] = [(root, -1)]
    while waiting:
        node, count = waiting.pop()
        if count < 0:
            inner = parts(node)
            waiting.append((node, len(inner)))
            waiting += [(part, -1) for part in reversed(inner)]
            continue
        found = done[len(done) - count :]
        del done[len(done) - count :]
        done.append(combine(node, found))
    return done[0]


def with_children(expression: Expression, changed: Sequence[Expression]) -> Expression:
    """Replace the children of a node, in the order of `children`."""
    if all(map(_is_same, children(expression), changed)):
        return expression
    following = iter(changed)
    return rebuild(expression, lambda _: next(following))


def _is_same(one: Expression, other: Expression) -> bool:
    return one is other


def bottom_up(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Apply `change` to every node of a tree, children first."""
    return fold_up(expression, lambda node, changed: change(with_children(node, changed)))


def flattened(node: Expression) -> Expression:
    """Merge AND of ANDs into one AND, and OR of ORs into one OR."""
    if not isinstance(node, And | Or) or not any(
        isinstance(one, type(node)) for one in node.operands
    ):
        return node
    found: list[Expression] = []
    for operand in node.operands:
        found += (
            operand.operands
            if isinstance(operand, And | Or) and type(operand) is type(node)
            else (operand,)
        )
    return type(node)(tuple(found))


def map_columns(expression: Expression, change: Callable[[Column], Expression]) -> Expression:
    """Replace every column of a tree, for example a logical name by the physical name."""
    return bottom_up(expression, lambda node: change(node) if isinstance(node, Column) else node)


def variables(expression: Expression) -> set[str]:
    """Return the names of all lambda parameters in the tree, also of lambdas around the tree."""
    return {node.name for node in walk(expression) if isinstance(node, Variable)}


def columns(expression: Expression) -> set[tuple[str, ...]]:
    """Return the paths of all columns that the expression reads."""
    # One pass over the tree computes the columns of all nodes, and caches them in each node.
    return set(expression.fact("columns", lambda: fold_up(expression, _columns, inside=LOGIC)))


def _columns(
    node: Expression, inner: Sequence[frozenset[tuple[str, ...]]]
) -> frozenset[tuple[str, ...]]:
    def find() -> frozenset[tuple[str, ...]]:
        if isinstance(node, LOGIC):
            return frozenset().union(*inner)
        return frozenset(part.path for part in walk(node) if isinstance(part, Column))

    return node.fact("columns", find)


def conjunction(conditions: Sequence[Expression]) -> Expression:
    """Return the AND of one or more conditions."""
    return conditions[0] if len(conditions) == 1 else And(tuple(conditions))


def all_of(conditions: Sequence[Expression]) -> Expression | None:
    """Return the AND of the conditions; None, which means every row, if there are no conditions."""
    return conjunction(conditions) if conditions else None


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands of nested ANDs; the expression is true only if all operands are true."""
    found: list[Expression] = []
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, And):
            waiting += reversed(node.operands)
        else:
            found.append(node)
    return tuple(found)


def is_deterministic(expression: Expression) -> bool:
    """Whether the expression always has the same value for equal rows."""
    return not any(
        isinstance(node, Call) and node.function.lower() in NON_DETERMINISTIC
        for node in walk(expression)
    )
