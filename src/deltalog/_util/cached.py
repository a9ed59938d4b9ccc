"""Attributes that are computed on first access.

Before Python 3.12, `functools.cached_property` has one lock for all objects of a class. Some of
deltalog's properties wait for stores. With this lock, one table would wait for another. There could
also be a deadlock: a thread that has the lock waits for a thread pool whose threads need the lock.
"""

from __future__ import annotations

from functools import update_wrapper
from inspect import getattr_static
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar, overload

from deltalog._util.call_errors import (
    CalledFirst,
    UnknownNameError,
    WrongCallError,
    no_item,
)
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_T = TypeVar("_T")


class cached_property(Generic[_T]):  # noqa: N801  # the name in functools
    """A property that is computed once, or twice if two threads read it at the same time.

    Args:
        compute: a function that returns the value. Repeated calls must return the same value.
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Record the name of the attribute in which objects store the value."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | _T:
        """Return the value, and store it as an attribute of the object."""
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value

    def set(self, instance: object, value: _T) -> None:
        """Set the value of an object without computing it.

        Args:
            instance: the object.
            value: the value that the property would compute.
        """
        instance.__dict__[self._name] = value


# --- Immutable lists, for attributes that are lists in deltalake


class FrozenList(tuple[_T, ...]):
    """A tuple that is equal to a list with the same items.

    Its sum with a list is a list. So `metadata().partition_columns == ["day"]` and
    `schema.fields + [field]` work as with lists.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Return whether the items are equal and in the same order."""
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        """Return whether the items differ."""
        return not self == other

    def __hash__(self) -> int:
        """Return the hash of the items."""
        return tuple.__hash__(self)

    def __add__(self, other: Any) -> Any:
        """Return the concatenation: a list if `other` is a list, else a tuple."""
        return [*self, *other] if isinstance(other, list) else tuple.__add__(self, other)

    def __radd__(self, other: Any) -> Any:
        """Return `other` followed by these items."""
        return [*other, *self] if isinstance(other, list) else NotImplemented

    if not TYPE_CHECKING:  # type checkers must report these uses

        def __getitem__(self, key: Any) -> Any:
            """Return an item or a slice; the error for a name says what takes names."""
            try:
                return tuple.__getitem__(self, key)
            except IndexError:
                raise no_item(key, len(self)) from None
            except TypeError as error:
                if not isinstance(key, str):
                    raise WrongCallError(*error.args) from None
            hint = f": use schema[{key!r}]" if any(hasattr(one, "nullable") for one in self) else ""
            raise WrongCallError(f"a list has no item {key!r}, only items by number{hint}")

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error for methods that change a list."""
            kind = "a list that describes one version of a table"
            if hasattr(list, name):
                raise UnknownNameError(f"{kind} has no method {name!r}: change list(…) of it")
            raise UnknownNameError(f"{kind} has no attribute {name!r}")

        def __call__(self, *_: object, **__: object) -> NoReturn:
            """Raise an error for `schema.fields()`, as PySpark's and Polars' methods are called."""
            raise WrongCallError("this is a list, not a method: omit the (), as in schema.fields")

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the items, for pickle."""
        return type(self), (tuple(self),)

    def __repr__(self) -> str:
        """Return the representation of a tuple."""
        return tuple.__repr__(self)


def frozen(items: Iterable[_T] | None) -> FrozenList[_T] | None:
    """Return the items as an immutable list; None for None."""
    return None if items is None else FrozenList(items)


# --- Immutable dicts, for the properties and metadata of a version of a table


class FrozenDict(dict[str, _T]):
    """A dict that cannot be changed; copies, such as `{**frozen}` and `frozen | …`, can be.

    Args:
        values: the values.
        advice: what to call to change the table instead; the end of the error.
    """

    __slots__ = ("_advice",)

    # `dataclasses.asdict` passes pairs, and no advice.
    def __init__(
        self,
        values: Mapping[str, _T] | Iterable[tuple[str, _T]] = (),
        advice: str = "copy it with dict(…)",
    ) -> None:
        super().__init__(values)
        self._advice = advice

    def _refuse(self, *_args: Any, **_options: Any) -> NoReturn:
        raise InvalidInputError(
            f"cannot change this dict, which describes one version of a table; {self._advice}"
        )

    if not TYPE_CHECKING:  # type checkers know that a key may be missing

        def __missing__(self, key: object) -> NoReturn:
            """Raise an error that names a similar key, or all of them."""
            __tracebackhide__ = True  # IPython does not show this frame
            from deltalog._util.similar_names import no_key  # noqa: PLC0415  # only for errors

            raise no_key(key, self)

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the values, for pickle."""
        return type(self), (dict(self), self._advice)


# --- Copies of inherited methods, so that Python's error messages contain the subclass's name


def name_methods_after(kind: type, base: type) -> None:
    """Copy inherited methods into a class, so that Python's errors contain the class's name.

    Args:
        kind: the class. Methods that it defines itself, or inherits from other classes, are not
            replaced.
        base: the class whose public methods and class methods are copied. Call this function in
            its `__init_subclass__`.
    """
    for name, member in vars(base).items():
        if name.startswith("_") or getattr_static(kind, name) is not member:
            continue
        function = member.function if isinstance(member, CalledFirst) else member
        if isinstance(function, FunctionType):
            setattr(kind, name, _named_after(kind, function))
        elif isinstance(member, classmethod) and isinstance(member.__func__, FunctionType):
            setattr(kind, name, classmethod(_named_after(kind, member.__func__)))


def _named_after(kind: type, function: Any) -> FunctionType:
    copied = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    update_wrapper(copied, function)
    if (wrapped := getattr(function, "__wrapped__", None)) is None:
        del copied.__wrapped__  # type: ignore[attr-defined]  # the copy is not a wrapper
    else:
        copied.__wrapped__ = wrapped  # type: ignore[attr-defined]  # it has the signature
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__qualname__ = f"{kind.__qualname__}.{function.__name__}"
    return copied
