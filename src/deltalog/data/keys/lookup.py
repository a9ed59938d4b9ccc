"""Finding the rows that may have some keys, without reading data files.

A pack only narrows a read: the log decides which files are live, and the reader applies deletion
vectors and the complete predicate to the rows that are found. A file without a usable entry is read
as without an index.

Protocol: none (delta-io/delta #7435 proposes record-level indexes)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from deltalog._util.readable import FILE, counted
from deltalog.data.keys.hashing import TableKey, hashes_of, hashes_of_rows, key_of
from deltalog.data.keys.indexed_rows import IndexedRows
from deltalog.data.keys.packs import TableIndex, placed
from deltalog.errors import DeltaError
from deltalog.expressions import conjuncts
from deltalog.expressions.literals import array_of, to_scalar
from deltalog.expressions.nodes import Collate, Column, Comparison, In, IsNull, Literal, Or
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.collations import own_collation
from deltalog.schema.types import BY_BYTES
from deltalog.storage.key_packs import DamagedPackError, Hashes, KeyPack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.schema import Field

_MOST_KEYS: Final = 100_000
"""If a predicate allows more keys, the index is not used."""
_MOST_ROWS: Final = 1_000_000
"""If the index finds more rows, it is not used, because reading whole files is faster."""


# --- The keys that a predicate allows


def hashes_in(predicate: Expression, key: TableKey) -> Hashes | None:
    """Return the ascending hashes of all keys for which a predicate can be true.

    Returns:
        The hashes; None if the predicate does not restrict every key column to some values, or
        allows too many keys.
    """
    parts = conjuncts(predicate)
    values: list[list[Any]] = []
    for column in key.fields:
        found = [some for part in parts if (some := _values(part, column)) is not None]
        if not found:
            return None
        values.append(min(found, key=len))
    count = 1
    for some in values:
        count *= len(some)
    if count > _MOST_KEYS:
        return None
    # All combinations of the values: each column repeats its values for those of later columns.
    columns: list[Any] = []
    before = 1
    for some, column in zip(values, key.fields, strict=True):
        array = _array(some, column)
        after = count // max(1, before * len(some))
        places = np.tile(np.repeat(np.arange(len(some)), after), before)
        columns.append(array.take(pa.array(places, pa.int64())))
        before *= max(1, len(some))
    return np.unique(hashes_of(columns, key.fields))


def _hashes_of_values(values: pa.Table, key: TableKey) -> Hashes | None:
    """Return the ascending hashes of some keys; None if columns are missing, or for many keys."""
    if not set(key.names) <= set(values.column_names):
        return None
    columns: list[Any] = [values.column(name).combine_chunks() for name in key.names]
    kinds: list[Any] = [to_arrow_type(column.type) for column in key.fields]
    try:
        columns = [column.cast(kind) for column, kind in zip(columns, kinds, strict=True)]
    except pa.ArrowException:  # a value is outside of the column's type
        return None
    rows = pa.table(dict(zip(key.names, columns, strict=True)))
    hashes = np.unique(hashes_of_rows(rows, key.names, key))
    return hashes if len(hashes) <= _MOST_KEYS else None


def _array(values: Sequence[Literal | None], column: Field) -> pa.Array[Any]:
    kind: Any = to_arrow_type(column.type)
    known = [to_scalar(one.value, column.type) for one in values if one is not None]
    nulls = pa.nulls(len(values) - len(known), kind)
    return pa.concat_arrays([array_of(known, kind), nulls])


def _values(part: Expression, column: Field) -> list[Literal | None] | None:
    """Return the values that a condition allows for a column, None for NULL; None if any value."""
    if isinstance(part, Or):
        each = [_values(one, column) for one in part.operands]
        if any(one is None for one in each):
            return None
        return [value for one in each if one is not None for value in one]
    if isinstance(part, IsNull):
        inner = part.operand.operand if isinstance(part.operand, Collate) else part.operand
        return [None] if _is_column(inner, column) else None
    if isinstance(part, In):
        options = part.options
        if not _is(part.operand, column) or not all(_fits(one, column) for one in options):
            return None
        return [one for one in options if isinstance(one, Literal) and one.value is not None]
    if isinstance(part, Comparison) and part.operator in {"=", "<=>"}:
        for one, other in ((part.left, part.right), (part.right, part.left)):
            if _is(one, column) and isinstance(other, Literal) and _fits(other, column):
                if other.value is not None:
                    return [other]
                return [None] if part.operator == "<=>" else []
    return None


def _is(operand: Expression, column: Field) -> bool:
    """Whether an operand is the column, compared by the column's own collation."""
    collation = own_collation(column)
    if isinstance(operand, Collate):
        return operand.collation == collation and _is_column(operand.operand, column)
    return collation == BY_BYTES and _is_column(operand, column)


def _is_column(operand: Expression, column: Field) -> bool:
    return isinstance(operand, Column) and operand.path == (column.name,)


def _fits(option: Expression, column: Field) -> bool:
    return isinstance(option, Literal) and option.type == column.type and not option.nanos


# --- Looking keys up


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files that may have rows with the keys of a predicate.

    Args:
        files: the files to read.
        rows: for each of them, the rows that may have such a key; None if the index does not know
            the file.
        numbers: for each of them, its index among the given files.
        names: the logical names of the key columns.
        num_without: the number of given files without an entry in the index.
        num_given: the number of given files.
    """

    files: pa.Table
    rows: list[IndexedRows | None]
    numbers: list[int]
    names: tuple[str, ...]
    num_without: int
    num_given: int

    def explain(self) -> list[str]:
        """Return lines that explain the result."""
        count = sum(len(one.positions) for one in self.rows if one is not None)
        found = sum(one is not None for one in self.rows)
        names, rest = ", ".join(self.names), self.num_given - len(self.rows)
        where = f"{counted(count, 'row')} in {counted(found, FILE)}"
        verb = "is" if rest == 1 else "are"
        lines = [f"key index of {names}: {where}, {counted(rest, FILE)} {verb} not read"]
        if self.num_without:
            lines.append(
                f"not in the key index, so read without it: {counted(self.num_without, FILE)}"
            )
        return lines


def look_up(
    snapshot: Snapshot, predicate: Expression, files: pa.Table, keys: pa.Table | None = None
) -> FoundFiles | None:
    """Look keys up in the packs of a table.

    Args:
        snapshot: the version of the files.
        predicate: a resolved predicate, which may restrict the keys.
        files: live files, with at least `path`, `size` and `modificationTime`.
        keys: values of key columns, by logical name; only rows with these values are needed.

    Returns:
        The files to read; None if the index cannot narrow the read.

    Cost: one bucket of each pack per key; see `KeyPack.find`. The first time, also a listing of the
        packs, and their directories.
    """
    key = key_of(snapshot.configuration)
    if key is None or not files.num_rows:
        return None
    hashes = None if keys is None else _hashes_of_values(keys, key)
    if hashes is None:
        name = f"hashes of {key.directory} {key.packed.families}"
        hashes = predicate.fact(name, lambda: hashes_in(predicate, key))
    if hashes is None:
        return None
    index = TableIndex(snapshot.store, key, snapshot.version)
    packs = index.packs(files)
    places = placed(files, packs, snapshot.store.root)
    found: dict[int, IndexedRows] = {}
    used = [number for number in np.unique(places[0]).tolist() if number >= 0]
    answers = index.each(lambda number: _rows_in(index, packs[number], hashes), used)
    if sum(len(answer[1]) for answer in answers if answer is not None) > _MOST_ROWS:
        return None
    is_read = places[0] < 0
    num_without = int(is_read.sum())
    for number, answer in zip(used, answers, strict=True):
        if answer is not None and not len(answer[0]):
            continue
        own = np.nonzero(places[0] == number)[0]
        if answer is None:  # the pack is damaged or missing
            is_read[own] = True
            num_without += len(own)
            continue
        pack_files, positions = answer
        for place in own[np.isin(places[1][own], pack_files)].tolist():
            in_pack = int(places[1][place])
            rows = positions[slice(*np.searchsorted(pack_files, [in_pack, in_pack + 1]))]
            num_rows = packs[number].files.column("num_rows")[in_pack].as_py()
            found[place] = IndexedRows(pa.array(np.unique(rows)), num_rows)
            is_read[place] = True
    numbers: Any = np.nonzero(is_read)[0]
    return FoundFiles(
        files=files.take(pa.array(numbers, pa.int64())),
        rows=[found.get(place) for place in numbers.tolist()],
        numbers=numbers.tolist(),
        names=key.names,
        num_without=num_without,
        num_given=files.num_rows,
    )


def _rows_in(index: TableIndex, pack: KeyPack, hashes: Hashes) -> tuple[Any, Any] | None:
    try:
        return pack.find(index.store, hashes)
    except (DamagedPackError, DeltaError) as error:
        index.drop(pack.path, error)
        return None
