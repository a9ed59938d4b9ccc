"""Conditions that AND and OR join: the same inputs have the same types in all of them.

DuckDB tells the types of one part at a time, and reads the whole query for it: thousands of
conditions would take hours.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.query.computed import Computed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.query.computed import Part


def alike(parts: Sequence[Part], number: int) -> Iterator[tuple[int, Computed]]:
    """Yield a computed part, and those of its chain that have its inputs.

    Args:
        parts: of a query.
        number: of the part.
    """
    first = parts[number]
    assert isinstance(first, Computed)  # noqa: S101  # the caller asks of no other
    yield number, first
    if first.chain is None:
        return
    for other, one in enumerate(parts[number + 1 :], number + 1):
        if isinstance(one, Computed) and (one.chain, one.inputs) == (first.chain, first.inputs):
            yield other, one
