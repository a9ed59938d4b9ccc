"""Which kernel computes which function: the one list that evaluation uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog.expressions import calendars, containers, hashes, matches, moments, numbers, strings

if TYPE_CHECKING:
    from collections.abc import Callable

KERNELS: Final[dict[str, Callable[..., Any]]] = {
    **numbers.KERNELS,
    **strings.KERNELS,
    **moments.KERNELS,
    **containers.KERNELS,
    **calendars.KERNELS,
    **matches.KERNELS,
    **hashes.KERNELS,
}
