"""Attributes that are computed when they are first asked for.

Until Python 3.12 `functools.cached_property` has one lock for all objects of a class. Values of
deltalog wait for stores: with that lock, one table would wait for another, and a thread that holds
it while it waits for the pool waits for ever if all threads of the pool want it, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class cached_property(Generic[_T]):  # noqa: N801  # the name of what it replaces
    """A property that is computed once; by two threads at the same time, twice.

    Args:
        compute: gives the value, which must be the same each time.
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Remember under which name objects keep the value."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | _T:
        """The value, which from now on is an attribute of the object."""
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
