"""Names of a package that are loaded on first use (PEP 562).

A package lists its public names and the module of each name, but does not import the modules. So
`import deltalog` is fast, and an operation imports only the modules that it needs.

Protocol: none
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


_HIGHER: dict[str, str] = {}
_MOST_NAMES: Final = 8
"""The most names of a module that an error lists."""


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


def explain_call(package: str, instead: str) -> None:
    """Make the error about a call of a package say what to use instead."""

    class Package(ModuleType):
        def __call__(self, *_: object, **__: object) -> NoReturn:
            __tracebackhide__ = True  # IPython does not show this frame
            from deltalog._util.call_errors import WrongCallError  # noqa: PLC0415  # only for errors

            raise WrongCallError(f"{package} is a module, which cannot be called: use {instead}")

    sys.modules[package].__class__ = Package


def explain_names(
    package: str,
    names: Collection[str],
    meant: Mapping[str, str] | None = None,
    otherwise: str = "",
) -> Callable[[str], NoReturn]:
    """Return `__getattr__` for a module without lazy names: its error suggests a name.

    Callers hide the function from type checkers, which would otherwise accept any name.

    Args:
        package: the name of the module.
        names: its public names.
        meant: name in other libraries → what to use instead.
        otherwise: what to use if no name is similar.
    """

    def refuse(name: str) -> NoReturn:
        """Raise an error that says what to use instead."""
        if name.startswith("__"):  # Python asks for `__path__` while modules are imported
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from deltalog._util.call_errors import (  # noqa: PLC0415  # only for errors
            UnknownNameError,
            WrongImportError,
        )
        from deltalog._util.similar_names import similar_to  # noqa: PLC0415  # only for errors

        other = (meant or {}).get(name)
        hint = f": use {other}" if other else similar_to(name, names)
        if not hint and not name.startswith("_"):
            hint = f": use {otherwise}" if otherwise else listed(package, names)
        if _is_imported():
            message = f"cannot import name {name!r} from {package!r}{hint}"
            raise WrongImportError(message, name=name)
        raise UnknownNameError(f"module {package!r} has no attribute {name!r}{hint}")

    return refuse


def listed(package: str, names: Collection[str]) -> str:
    """Return what names a module has, for an error about a name that is not similar to any."""
    public = sorted(name for name in names if not name.startswith("_"))
    if 0 < len(public) <= _MOST_NAMES:
        return f": it has {', '.join(public)}"
    return f": dir({package}) lists its names"


def _is_imported() -> bool:
    """Whether the code outside of this module executes `from … import …`.

    Python would replace an AttributeError there by an ImportError without its hint.
    """
    from dis import opmap  # noqa: PLC0415  # only for errors
    from inspect import currentframe  # noqa: PLC0415  # as above

    frame = currentframe()
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


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
    refuse = explain_names(package, [*module_of, *modules], meant)

    def load(name: str) -> Any:
        """Load a public name from its module."""
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in module_of:
            refuse(name)
        value = namespace[name] = getattr(import_module(module_of[name]), name)
        return value

    def public_names() -> list[str]:
        """Return the public names."""
        return sorted(module_of)

    return load, public_names
