"""Names of a package that are loaded on first use (PEP 562).

A package lists its public names and the module of each name, but does not import the modules. So
`import deltalog` is fast, and an operation imports only the modules that it needs.

Protocol: none
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping


_HIGHER: dict[str, str] = {}


def state_higher_names(origins: Mapping[str, str]) -> None:
    """Register functions and classes of higher packages, for the use of lower packages.

    Lower packages must not import higher packages, so they call `higher` instead.
    `deltalog/__init__.py`, which is above all packages, calls this function.

    Args:
        origins: name of a function or class → the full name of its module.
    """
    _HIGHER.update(origins)


def higher(name: str) -> Any:
    """Load a function or class that `state_higher_names` has registered."""
    return getattr(import_module(_HIGHER[name]), name)


_SIMILAR: Final = 0.75
"""The minimum similarity of a name that is suggested; less would be a guess."""


def similar_to(name: str, names: Iterable[str]) -> str:
    """Return `: did you mean 'x'?` for the most similar public name; empty if none is similar."""
    from difflib import get_close_matches  # noqa: PLC0415  # only for errors

    public = [one for one in names if not one.startswith("_")]
    close = [] if name.startswith("_") else get_close_matches(name, public, 1, _SIMILAR)
    return f": did you mean {close[0]!r}?" if close else ""


class SimilarNames:
    """Base class of public classes: an error about an unknown attribute names a similar one.

    Attributes:
        _meant: name in other libraries → what to use instead.
    """

    __slots__ = ()
    _meant: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # type checkers must report unknown attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that names what to use instead, or a similar name."""
            kind = type(self)
            other = self._meant.get(name)
            hint = f": use {other}" if other else similar_to(name, dir(kind))
            raise AttributeError(f"{kind.__name__} has no attribute {name!r}{hint}")


def names_on_demand(
    package: str,
    origins: Mapping[str, Collection[str]],
    modules: Collection[str] = (),
    meant: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package.

    Callers hide the two functions from type checkers, which would otherwise accept any name.

    Args:
        package: the name of the package, which is being imported.
        origins: full name of a module → its public names.
        modules: submodules that are imported when they are accessed as attributes.
        meant: name in other libraries → what to use instead, for errors.
    """
    namespace = vars(sys.modules[package])
    module_of = {name: module for module, names in origins.items() for name in names}

    def load(name: str) -> Any:
        """Load a public name from its module."""
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in module_of:
            other = (meant or {}).get(name)
            hint = f": use {other}" if other else similar_to(name, [*module_of, *modules])
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        value = namespace[name] = getattr(import_module(module_of[name]), name)
        return value

    def public_names() -> list[str]:
        """Return the public names."""
        return sorted(module_of)

    return load, public_names
