"""Lists that cannot be changed: what values hold, and deltalake's users take for lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

_T = TypeVar("_T")


class FrozenList(tuple[_T, ...]):
    """A tuple that is equal to a list of the same items, and gives a list when one is added.

    `metadata().partition_columns == ["day"]` and `schema.fields + [field]` are asked of lists.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Return whether the items are the same ones, in the same order."""
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        """Return whether they are not."""
        return not self == other

    def __hash__(self) -> int:
        """Return the hash of the items."""
        return tuple.__hash__(self)

    def __add__(self, other: Any) -> Any:
        """Return a list if a list is added, else a tuple."""
        return [*self, *other] if isinstance(other, list) else tuple.__add__(self, other)

    def __radd__(self, other: Any) -> Any:
        """Return a list that begins with the other one."""
        return [*other, *self] if isinstance(other, list) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the items."""
        return type(self), (tuple(self),)

    def __repr__(self) -> str:
        """Show the items as a tuple does."""
        return tuple.__repr__(self)


def frozen(items: Iterable[_T] | None) -> FrozenList[_T] | None:
    """Return the items as a list that cannot be changed; None stays None."""
    return None if items is None else FrozenList(items)
