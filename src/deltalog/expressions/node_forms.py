"""What all nodes of expression trees have: equality, text and pickles of whole trees.

A tree may be deeper than Python's stack, as a filter of 10,000 terms is. So nothing here calls
itself for the parts of a node.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Fact = TypeVar("_Fact")


class Node:
    """A frozen dataclass, whose parts are nodes, tuples of parts, and constants."""

    __slots__ = ("_facts",)
    _facts: dict[str, Any]

    def __repr__(self) -> str:
        """Show the node as the call that makes it."""
        return _shown(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all nodes side by side, not inside of each other."""
        return _from_steps, (_steps(self),)

    def same_as(self, other: object) -> bool:
        """Whether both trees are equal, node by node."""
        waiting: list[tuple[Any, Any]] = [(self, other)]
        while waiting:
            left, right = waiting.pop()
            if type(left) is not type(right):
                return False
            if isinstance(left, Node):
                waiting += [(getattr(left, name), getattr(right, name)) for name in parts_of(left)]
            elif isinstance(left, tuple):
                if len(left) != len(right):
                    return False
                waiting += zip(left, right, strict=True)
            elif left != right:
                return False
        return True

    def fact(self, name: str, find: Callable[[], _Fact]) -> _Fact:
        """What follows from the tree alone, found once: nodes never change.

        Args:
            name: of the fact.
            find: returns it.
        """
        try:
            facts = self._facts
        except AttributeError:
            facts = {}
            object.__setattr__(self, "_facts", facts)
        if name not in facts:
            facts[name] = find()
        found: _Fact = facts[name]
        return found


_PARTS: Final[dict[type, tuple[str, ...]]] = {}


def parts_of(expression: Node) -> tuple[str, ...]:
    """The names of a node's parts: `dataclasses.fields` takes longer than the rest of a walk."""
    kind = type(expression)
    if (known := _PARTS.get(kind)) is None:
        known = _PARTS[kind] = tuple(part.name for part in fields(kind))  # type: ignore[arg-type]  # every node is a dataclass
    return known


def _shown(root: Node) -> str:
    texts: list[str] = []
    waiting: list[tuple[bool, Any]] = [(False, root)]
    while waiting:
        is_text, value = waiting.pop()
        if is_text:
            texts.append(value)
        elif isinstance(value, Node):
            inner: list[tuple[bool, Any]] = [(True, f"{type(value).__name__}(")]
            for place, name in enumerate(parts_of(value)):
                inner += [(True, f"{', ' if place else ''}{name}="), (False, getattr(value, name))]
            waiting += reversed([*inner, (True, ")")])
        elif isinstance(value, tuple):
            inner = [(True, "(")]
            for place, item in enumerate(value):
                inner += [(True, ", " if place else ""), (False, item)]
            waiting += reversed([*inner, (True, ",)" if len(value) == 1 else ")")])
        else:
            texts.append(repr(value))
    return "".join(texts)


def _steps(root: Node) -> list[Any]:
    """How a tree is made: constants, and behind the parts of a tuple or node what makes it."""
    found: list[Any] = []
    waiting: list[Any] = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Node):
            names = parts_of(value)
            found.append((type(value), len(names)))
            waiting += [getattr(value, name) for name in names]
        elif isinstance(value, tuple):
            found.append((tuple, len(value)))
            waiting += value
        else:
            found.append((None, value))
    # Parents came first, and the last part of each before the others.
    return found[::-1]


def _from_steps(steps: list[Any]) -> Any:
    made: list[Any] = []
    for kind, value in steps:
        if kind is None:
            made.append(value)
            continue
        parts = made[len(made) - value :]
        del made[len(made) - value :]
        made.append(tuple(parts) if kind is tuple else kind(*parts))
    return made[0]
