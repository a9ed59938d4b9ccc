"""Check that rows of a merge, given as Python dicts, all have the same keys.

In an append, a missing key means NULL. In a merge, this NULL would replace a value of the table.

Protocol: none
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, ValuesView
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.escaping import name_key
from deltalog._util.readable import counted
from deltalog.data.write.python_rows import as_mapping
from deltalog.errors import InvalidInputError
from deltalog.schema import StructType

if TYPE_CHECKING:
    from collections.abc import Iterable

    Path = tuple[str, ...]
    Keys = dict[Path, dict[tuple[Any, ...], int]]
    """Path of a struct, empty for the row → the keys of rows, and the first item that has them."""


class Structs(dict[str, "Structs"]):
    """Name of each struct in a struct, as `name_key` spells it → the structs in it."""


_MOST_NAMED: Final = 3


def with_same_keys(data: Any, schema: StructType) -> Any:
    """Return the rows of a merge. Dicts with different keys raise, at the latest on reading.

    Args:
        data: rows in any form that a write accepts.
        schema: the schema of the table. Its structs are checked too, because a merge keeps the
            fields of a struct that the source lacks.

    Raises:
        InvalidInputError: a row lacks a key of another row.

    Cost: one pass over a list of rows; nothing for Arrow data and frames.
    """
    if isinstance(data, Sequence) and not isinstance(data, str | bytes | bytearray):
        if len(data) and as_mapping(data[0]) is not None:
            for _ in _checked(data, _structs(schema)):
                pass
    elif isinstance(data, Iterator | ValuesView) and not hasattr(data, "__arrow_c_stream__"):
        return _checked(data, _structs(schema))
    return data


def _checked(items: Iterable[Any], structs: Structs) -> Iterator[Any]:
    """Yield the items, and check their keys after the last one."""
    found: Keys = {}
    number = 0
    for item in items:
        row = as_mapping(item)
        if row is not None:
            _note_keys(found, (), row, structs, number)
        number += 1
        yield item
    lacking = _lacking(found)
    if lacking:
        shown = [f"item {item} lacks {'.'.join(path)!r}" for path, item in lacking[:_MOST_NAMED]]
        more = "" if len(lacking) <= _MOST_NAMED else f" and {len(lacking) - _MOST_NAMED} more"
        raise InvalidInputError(
            f"cannot merge {counted(number, 'row')} with different keys: {', '.join(shown)}{more}; "
            "NULL would replace the table's value for a missing key. Add the key with None if you "
            "want NULL; to keep the table's value, merge rows with different keys in separate calls"
        )


def _note_keys(
    found: Keys, path: Path, row: Mapping[Any, Any], structs: Structs, number: int
) -> None:
    found.setdefault(path, {}).setdefault(tuple(row), number)
    if not structs:
        return
    for key, value in row.items():
        inner = structs.get(name_key(str(key)))
        if inner is not None and isinstance(value, Mapping):
            _note_keys(found, (*path, str(key)), value, inner, number)


def _structs(struct: StructType) -> Structs:
    return Structs(
        {
            name_key(field.name): _structs(field.type)
            for field in struct
            if isinstance(field.type, StructType)
        }
    )


def _lacking(found: Keys) -> list[tuple[Path, int]]:
    """Return the path of each key that some rows lack, and the number of the first such row."""
    lacking: list[tuple[Path, int]] = []
    for path, kinds in found.items():
        for key in dict.fromkeys(key for keys in kinds for key in keys):
            items = [number for keys, number in kinds.items() if key not in keys]
            if items:
                lacking.append(((*path, str(key)), min(items)))
    return lacking
