"""Inherited methods that go by the class whose user calls them.

Python names a function after the class that defines it. A wrong argument of
`TableTransaction.append` would be one of a base class that nobody has heard of.

Protocol: none
"""

from __future__ import annotations

from functools import update_wrapper
from inspect import getattr_static
from types import FunctionType
from typing import Any


def name_methods_after(kind: type, base: type) -> None:
    """Give a class its own copies of a base's methods, so that errors name the class.

    Args:
        kind: the class; what it defines itself, or inherits from elsewhere, stays.
        base: whose public methods and class methods are copied; call it in its
            `__init_subclass__`.
    """
    for name, member in vars(base).items():
        if name.startswith("_") or getattr_static(kind, name) is not member:
            continue
        if isinstance(member, FunctionType):
            setattr(kind, name, _named_after(kind, member))
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
    del copied.__wrapped__  # type: ignore[attr-defined]  # it wraps nothing: it is the function
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__qualname__ = f"{kind.__qualname__}.{function.__name__}"
    return copied
