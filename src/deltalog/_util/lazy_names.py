"""Names of a package that are loaded on first use (PEP 562).

They keep `import deltalog` fast, and an operation loads only the modules that it needs. A package
lists the module of each name, and imports none of them.

Protocol: none
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


_HIGHER: dict[str, str] = {}


def state_higher_names(origins: Mapping[str, str]) -> None:
    """State where functions are that lower packages call without importing their packages.

    `deltalog/__init__.py`, which stands above all packages, states them.

    Args:
        origins: each name → the full name of the module that has it.
    """
    _HIGHER.update(origins)


def higher(name: str) -> Any:
    """Load a function or class of a higher package; a stated name."""
    return getattr(import_module(_HIGHER[name]), name)


def names_on_demand(
    package: str, origins: Mapping[str, Collection[str]], modules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    Hide the two from type checkers, which would otherwise accept any name.

    Args:
        package: its name, while it is being imported.
        origins: full name of a module → its public names.
        modules: submodules that are imported when they are accessed as attributes.
    """
    namespace = vars(sys.modules[package])
    module_of = {name: module for module, names in origins.items() for name in names}

    def load(name: str) -> Any:
        """Load a public name from the module that has it."""
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = namespace[name] = getattr(import_module(module_of[name]), name)
        return value

    def public_names() -> list[str]:
        """Return the public names."""
        return sorted(module_of)

    return load, public_names
