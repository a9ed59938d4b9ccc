"""The names that `dir(x)` lists, and that tab completion of notebooks and consoles offers.

Some methods of public classes are for other modules of deltalog, or for extensions. They stay
callable, but users should not find them among the names of the reference.

Protocol: none
"""

from __future__ import annotations

from typing import ClassVar


class VisibleNames:
    """Base class of public classes: `dir(x)` lists only the names that users need.

    Attributes:
        _internal: the other names without an underscore, in addition to those of the base classes.
    """

    __slots__ = ()
    _internal: ClassVar[frozenset[str]] = frozenset()

    def __dir__(self) -> list[str]:
        """Return the names of the object, without those of `_internal`."""
        hidden = {name for kind in type(self).__mro__ for name in vars(kind).get("_internal", ())}
        return [name for name in super().__dir__() if name not in hidden]
