"""Python's own exceptions for wrong calls, whose tracebacks in a notebook end at the call.

IPython always shows the last frame of a traceback, also one with `__tracebackhide__`. So functions
that raise AttributeError, TypeError or KeyError about the call itself raise a subclass from this
module, which shows the same frames as `DeltaError`. Outside of notebooks, these exceptions look and
pickle like Python's.

Protocol: none
"""

from __future__ import annotations

import os
from dataclasses import FrozenInstanceError
from inspect import signature
from os import PathLike
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

from deltalog.errors import FULL_TRACEBACKS, DeltaError, frames_up_to_call, notebook_lines

if TYPE_CHECKING:
    from collections.abc import Callable

_Class = TypeVar("_Class", bound=type)
_VALUES: Final = (int, float, str, list, tuple, dict, set)
"""Types of results, with which a method that was not called cannot be equal."""


class _EndsAtCall(BaseException):
    """Base class of the exceptions of this module.

    Attributes:
        _plain: the exception of Python.
    """

    _plain: ClassVar[type[BaseException]]

    def __init_subclass__(cls) -> None:
        """Give the class the name of Python's class, which users know and catch."""
        cls.__name__ = cls.__qualname__ = cls._plain.__name__
        cls.__module__ = cls._plain.__module__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the exception of Python."""
        return self._plain, self.args, dict(self.__dict__)

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows: the traceback up to the call of deltalog."""
        shown = self._plain(*self.args)
        for note in getattr(self, "__notes__", ()):
            shown.add_note(note)
        return notebook_lines(shown, frames_up_to_call(self.__traceback__))


class UnknownNameError(_EndsAtCall, AttributeError):
    """An object has no such attribute."""

    _plain = AttributeError


class WrongCallError(_EndsAtCall, TypeError):
    """An object cannot be used like this, or a function has no such arguments."""

    _plain = TypeError


class UnknownKeyError(_EndsAtCall, KeyError):
    """A collection has no such key."""

    _plain = KeyError


class UnknownIndexError(_EndsAtCall, IndexError):
    """A list is shorter."""

    _plain = IndexError


def no_item(key: object, count: int, what: str = "item") -> UnknownIndexError:
    """Return the error about a number after the last item of a list.

    Args:
        key: the number.
        count: the number of items.
        what: an item in one word.
    """
    has = f"{count} {what}{'' if count == 1 else 's'}"
    first = ", counted from 0" if count else ""
    return UnknownIndexError(f"there is no item {key}: the list has {has}{first}")


class WrongImportError(_EndsAtCall, ImportError):
    """A module has no such name."""

    _plain = ImportError


NO_OBJECT: Any = object()
"""The default of `self`, for calls of a method of a class without any argument."""


def check_object(kind: type, method: str, given: object) -> None:
    """Raise for a method that is called on its class: `DeltaTable.delete("t")`.

    Call this only after the method has failed, so that it costs other calls nothing.

    Args:
        kind: the class of the method.
        method: the name of the method or property.
        given: the first argument, which must be an object of the class.

    Raises:
        WrongCallError: it is not.
    """
    if isinstance(given, kind | type):
        return
    raise WrongCallError(of_object(kind, method, given))


def of_object(kind: type, method: str, given: object, end: str = "(…)") -> str:
    """Return the error message about a use of a class that needs an object of the class."""
    parts: list[type] = kind.__subclasses__()
    while kind.__name__.endswith("Table") and len(parts) == 1 and _is_own(parts[0]):
        kind = parts[0]  # the public class, such as DeltaTable, which users write
        parts = kind.__subclasses__()
    called = _GETTERS.get(kind.__name__, kind.__name__)
    if called.endswith("Table"):
        is_place = isinstance(given, str | PathLike) and " " not in str(given)
        called = f"{called}({repr(given) if is_place else 'location'})"
    if called == kind.__name__:
        return f"{called}.{method} needs an object of the class, found {type(given).__name__}"
    return f"{kind.__name__}.{method} needs an object, not the class: use {called}.{method}{end}"


_GETTERS: Final = {
    "TableAlterer": "DeltaTable(location).alter",
    "TableOptimizer": "DeltaTable(location).optimize",
    "TableMerger": "DeltaTable(location).merge(source, predicate)",
    "Scan": "DeltaTable(location).scan()",
    "Changes": "DeltaTable(location).load_cdf()",
}
"""Class → what returns an object of it, if it is not made by its name."""


def _is_own(kind: type) -> bool:
    return kind.__module__.startswith("deltalog.")


class ObjectProperty(property):
    """A property whose class-level use, `DeltaTable.alter.drop_columns`, raises a clear error."""

    kind: type
    name: str

    def __init__(self, getter: Any, *, kind: type, name: str) -> None:
        super().__init__(getter)
        self.kind, self.name = kind, name

    if not TYPE_CHECKING:  # type checkers must report these uses

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that says how to get an object."""
            __tracebackhide__ = True  # IPython does not show this frame
            if name[0] == "_" or self.fget is None:
                raise AttributeError(f"'property' object has no attribute {name!r}")
            raise UnknownNameError(of_object(self.kind, self.name, None, f".{name}"))

        def __call__(self, *_: object, **__: object) -> NoReturn:
            """Raise the same error for `DeltaTable.optimize()`."""
            __tracebackhide__ = True  # IPython does not show this frame
            raise WrongCallError(of_object(self.kind, self.name, None, ""))


def hide_internal_frames(error: DeltaError) -> None:
    """Let the traceback of an error end at the call of deltalog, as in a notebook.

    The message says what is wrong with the call; the frames inside of deltalog do not. The
    environment variable `DELTALOG_FULL_TRACEBACKS` keeps them.
    """
    if error.has_internal_frames or os.environ.get(FULL_TRACEBACKS):
        return
    one: BaseException | None = error
    while one is not None:
        one.__traceback__ = frames_up_to_call(one.__traceback__)
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def called_with(function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    """Call a function; raise `WrongCallError` if it has no such arguments."""
    __tracebackhide__ = True  # IPython does not show this frame
    try:
        return function(*args, **options)
    except TypeError as error:
        if not is_of_call(error):
            raise
        wrong = str(error)
        wrong += call_of(function, "", wrong.partition("() ")[2])
        raise WrongCallError(wrong) from None


def call_of(function: Callable[..., Any], owner: str, wrong: str) -> str:
    """Return how to write a call that lacks arguments; empty if that is not what is wrong.

    Args:
        function: the function or method.
        owner: the class as users call it; empty for the class that defines the method.
        wrong: what is wrong in Python's words, without the name of the function.
    """
    if not wrong.startswith("missing "):
        return ""
    needed = [
        f"{one.name}=…" if one.kind is one.KEYWORD_ONLY else one.name
        for one in signature(function).parameters.values()
        if one.default is one.empty
        and one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}
        and one.name not in {"self", "cls"}
    ]
    name = function.__name__
    if name in {"__init__", "__call__"}:
        name = owner or function.__qualname__.split(".")[-2]
    return f"; write {name}({', '.join(needed)})"


def is_of_call(error: TypeError) -> bool:
    """Whether Python has raised the error because a function has no such arguments.

    Otherwise, the function itself has raised it. Call this in the frame that catches the error.
    """
    return error.__traceback__ is None or error.__traceback__.tb_next is None


# --- Methods that are used without a call: `table.schema.names`, `table.version == 3`. In other
# libraries, some of them are attributes. Python's errors name a function or a method instead of the
# mistake, and the comparison would be False.


def called_first(*names: str) -> Callable[[_Class], _Class]:
    """Decorate a class whose methods of these names raise clear errors if they are not called."""

    def decorate(kind: _Class) -> _Class:
        for name in names:
            setattr(kind, name, CalledFirst(vars(kind)[name]))
        return kind

    return decorate


class CalledFirst:
    """A descriptor that returns the function itself to the class, and `_Uncalled` to objects.

    Other decorators of the class need the function, so `called_first` is the outermost one.
    """

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self.function if instance is None else _Uncalled(self.function, instance)


class _Uncalled:
    # A bound method whose use as its own result raises an error that says to call it. Its docstring
    # is that of the method.

    __slots__ = ("__func__", "__self__")

    def __init__(self, function: FunctionType, instance: object) -> None:
        self.__func__ = function
        self.__self__ = instance

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]  # which is writable in typeshed
        return self.__func__.__doc__

    # For `inspect` and `help`, the object is the method that it stands for.
    @property  # type: ignore[misc]  # as above
    def __class__(self) -> type:
        return MethodType

    def __call__(self, /, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython does not show this frame
        try:
            return self.__func__(self.__self__, *args, **options)
        except DeltaError as error:
            hide_internal_frames(error)
            raise

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the function; the error for others says to call it."""
        __tracebackhide__ = True  # IPython does not show this frame
        if name.startswith("_"):
            return getattr(self.__func__, name)
        raise UnknownNameError(self._said(f"has no attribute {name!r}", f".{name}"))

    def _said(self, wrong: str, use: str = "") -> str:
        name = self.__func__.__name__
        owner = type(self.__self__).__name__
        return f"{owner}.{name} is a method, which {wrong}: use {name}(){use}"

    def __repr__(self) -> str:
        return repr(MethodType(self.__func__, self.__self__))

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.__self__, self.__func__.__name__)

    def __hash__(self) -> int:
        return hash((self.__func__, id(self.__self__)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _VALUES):
            raise WrongCallError(self._said(f"equals no {type(other).__name__}"))
        mine = self.__func__, self.__self__
        found = getattr(other, "__func__", None), getattr(other, "__self__", None)
        return mine[0] is found[0] and mine[1] is found[1]

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: object) -> NoReturn:
        __tracebackhide__ = True  # IPython does not show this frame
        raise WrongCallError(self._said("has no items", f"[{key!r}]"))

    def _no_value(self, *_: object) -> NoReturn:
        __tracebackhide__ = True  # IPython does not show this frame
        raise WrongCallError(self._said("is not a value"))

    __len__ = __iter__ = __contains__ = __index__ = __int__ = _no_value
    __add__ = __radd__ = __sub__ = __rsub__ = _no_value
    __lt__ = __le__ = __gt__ = __ge__ = _no_value


_Uncalled.__name__ = _Uncalled.__qualname__ = "method"  # in errors about an argument


# --- Values that cannot be changed


def changed_by(advice: str) -> Callable[[_Class], _Class]:
    """Decorate a frozen dataclass, whose errors about assignments say what changes the table.

    Args:
        advice: what to call instead; the end of the error.
    """

    def decorate(kind: _Class) -> _Class:
        def refuse(self: object, name: str, _: object) -> NoReturn:
            __tracebackhide__ = True  # IPython does not show this frame
            raise FrozenInstanceError(
                f"cannot assign to field {name!r} of a {type(self).__name__}, which cannot be "
                f"changed; {advice}"
            )

        setattr(kind, "__setattr__", refuse)  # noqa: B010  # type checkers refuse the assignment
        return kind

    return decorate
