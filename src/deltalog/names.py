"""Which names are one: the rule by which names that differ in case only are the same.

Owns the rule for names of columns, tables, schemas, catalogs and shares. It is Spark's
`toLowerCase(Locale.ROOT)`, which `str.lower` is, too: ẞ and ß, the Kelvin sign and k are one name.
`str.casefold` goes further: by it ß is ss, and a ligature is its letters: different columns.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def name_key(name: str) -> str:
    """Return what names have in common that differ in case only.

    A name is taken alone, never a path of names joined by dots: what is lower of a Σ depends on the
    letters around it.
    """
    return name.lower()


def path_key(path: Iterable[str]) -> tuple[str, ...]:
    """Return what paths have in common whose names differ in case only."""
    return tuple(map(name_key, path))
