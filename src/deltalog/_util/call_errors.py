"""Python's own exceptions for wrong calls, whose tracebacks in a notebook end at the call.

IPython always shows the last frame of a traceback, also one with `__tracebackhide__`. So functions
that raise AttributeError, TypeError or KeyError about the call itself raise a subclass from this
module, which shows the same frames as `DeltaError`. Outside of notebooks, these exceptions look and
pickle like Python's.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from deltalog.errors import frames_up_to_call, notebook_lines

if TYPE_CHECKING:
    from collections.abc import Callable


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


def called_with(function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    """Call a function; raise `WrongCallError` if it has no such arguments."""
    __tracebackhide__ = True  # IPython does not show this frame
    try:
        return function(*args, **options)
    except TypeError as error:
        if not is_of_call(error):
            raise
        raise WrongCallError(*error.args) from None


def is_of_call(error: TypeError) -> bool:
    """Whether Python has raised the error because a function has no such arguments.

    Otherwise, the function itself has raised it. Call this in the frame that catches the error.
    """
    return error.__traceback__ is None or error.__traceback__.tb_next is None
