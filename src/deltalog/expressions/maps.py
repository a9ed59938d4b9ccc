"""Functions of maps as in Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.expressions.arrays import counts_of, offsets_of
from deltalog.expressions.comparing import identity
from deltalog.expressions.rows import row_numbers
from deltalog.kernels import Array, compute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Pairs = list[tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of all maps of a column.

    Args:
        is_known: of each row, whether its map is not NULL.
        parents: of each entry, its row.
        keys: of each entry.
        items: of each entry, its value.
    """

    is_known: Array
    parents: Array
    keys: Array
    items: Array


def entries(maps: Array) -> Entries:
    """The entries of a column of maps; those below a NULL are left out."""
    first, last = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
    is_known = compute.is_valid(maps)
    places = pa.ListArray.from_arrays(
        compute.subtract(maps.offsets, first),
        row_numbers(last - first),
        mask=compute.is_null(maps),
    )
    kept = compute.list_flatten(places)
    keys, items = (part.slice(first, last - first).take(kept) for part in (maps.keys, maps.items))
    return Entries(is_known, compute.list_parent_indices(places), keys, items)


def map_of(is_known: Array, parents: Array, keys: Array, items: Array) -> Array:
    """A column of maps of their entries, which are ordered by row."""
    offsets = compute.cast(offsets_of(counts_of(len(is_known), parents)), pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, items, mask=compute.invert(is_known))


def checked_pairs(pairs: Iterable[tuple[Any, Any]]) -> Pairs:
    """The entries of a map, if they are such.

    Raises:
        InvalidInputError: a key is NULL or repeated (the default of Spark's
            `spark.sql.mapKeyDedupPolicy`).
    """
    found = list(pairs)
    keys = [key for key, _ in found]
    if None in keys or len({identity(key) for key in keys}) < len(keys):
        raise InvalidInputError(f"the keys of a map are different and not NULL, found {keys}")
    return found


def _from_arrays(keys: list[Any], values: list[Any]) -> Pairs:
    if len(keys) != len(values):
        raise InvalidInputError(
            f"a map has as many keys as values, found {len(keys)} and {len(values)}"
        )
    return checked_pairs(zip(keys, values, strict=True))


def _from_entries(structs: list[dict[str, Any] | None]) -> Pairs | None:
    known = [tuple(struct.values()) for struct in structs if struct is not None]
    if len(known) < len(structs):
        return None
    return checked_pairs((key, value) for key, value in known)


def _concat(*maps: Pairs) -> Pairs:
    return checked_pairs(pair for pairs in maps for pair in pairs)


ROWS: Final[dict[str, Callable[..., Any]]] = {
    "map_from_arrays": _from_arrays,
    "map_from_entries": _from_entries,
    "map_concat": _concat,
    "map_entries": lambda pairs: pairs,
}
