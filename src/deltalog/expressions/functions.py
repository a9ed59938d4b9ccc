"""The table of functions: which arguments each takes and what it gives.

Owns names, aliases, argument types and result types. How they are computed is in the kernels
below; a function that is not here is an error wherever it is used.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions.coercion import BOOLEAN, STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.schema.types import DataType

Types = tuple[tuple["DataType", ...], "DataType"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One function.

    Args:
        types: from the arguments' types to the types they are cast to, and the result's type.
        least: the fewest arguments.
        most: the most arguments, or None for any number.
    """

    types: Callable[[Sequence[DataType]], Types]
    least: int
    most: int | None


def fixed(*parameters: DataType, result: DataType, optional: int = 0) -> Function:
    """A function whose parameters and result have one type each."""

    def types(arguments: Sequence[DataType]) -> Types:
        return parameters[: len(arguments)], result

    return Function(types=types, least=len(parameters) - optional, most=len(parameters))


FUNCTIONS: Final[dict[str, Function]] = {
    "startswith": fixed(STRING, STRING, result=BOOLEAN),
    "endswith": fixed(STRING, STRING, result=BOOLEAN),
    "contains": fixed(STRING, STRING, result=BOOLEAN),
}
ALIASES: Final[dict[str, str]] = {}


def canonical_name(name: str) -> str:
    """The one name of a function that has several, in lower case."""
    folded = name.lower()
    return ALIASES.get(folded, folded)


def find_function(name: str, count: int) -> Function:
    """The function of that name, if it takes so many arguments.

    Raises:
        InvalidInputError: there is no such function, or it takes another number of arguments.
    """
    function = FUNCTIONS.get(canonical_name(name))
    if function is None:
        close = difflib.get_close_matches(name.lower(), [*FUNCTIONS, *ALIASES], n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InvalidInputError(f"deltalog has no SQL function {name!r}{hint}")
    if count < function.least or (function.most is not None and count > function.most):
        most = "or more" if function.most is None else f"to {function.most}"
        wanted = (
            str(function.least) if function.least == function.most else (f"{function.least} {most}")
        )
        raise InvalidInputError(f"{name} takes {wanted} arguments, found {count}")
    return function
