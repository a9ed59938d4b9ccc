"""Replay: find the live files and tombstones in the file actions of many commits. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import arrow, compute
from deltalog._util.paths import canonical_paths
from deltalog._util.small_arrays import small_array

if TYPE_CHECKING:
    StringColumn = pa.StringArray | pa.ChunkedArray[pa.StringScalar]
    Column = pa.Array[Any] | pa.ChunkedArray[Any]

__all__ = ["Survivors", "file_keys", "not_mentioned", "reconcile"]


_ROW_BITS: Final = 32
_ROW_MASK: Final = (1 << _ROW_BITS) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivors:
    """The result of reconciliation.

    Args:
        adds: row numbers of the adds that are live files, ascending.
        removes: row numbers of the removes that are tombstones, ascending.
        keys: the distinct keys of all actions.
    """

    adds: pa.Array[Any]
    removes: pa.Array[Any]
    keys: StringColumn


def reconcile(
    add_keys: StringColumn, add_versions: Column, remove_keys: StringColumn, remove_versions: Column
) -> Survivors:
    """Return the adds and removes that are the newest action of their key.

    If one version adds a key twice, the later row is used.

    Args:
        add_keys: `file_keys` of the adds, in any order.
        add_versions: the version of each add, as int64.
        remove_keys: `file_keys` of the removes, in any order.
        remove_versions: the version of each remove, as int64.

    Protocol: Action Reconciliation
    Cost: one sort of all actions, and one hash table of their keys.
    """
    known = [compute.min(versions).as_py() for versions in (add_versions, remove_versions)]
    oldest = min((version for version in known if version is not None), default=0)
    columns = [
        _keyed(add_keys, _order(add_versions, oldest, is_remove=0)),
        _keyed(remove_keys, _order(remove_versions, oldest, is_remove=1)),
    ]
    # The protocol: "Scan all file actions and keep only the newest reference for each logical
    # file."
    newest = _first_of_each_key(pa.concat_tables(columns).sort_by([("order", "descending")]))
    order = newest.column("order")
    kind = compute.bit_wise_and(compute.shift_right(order, _ROW_BITS), 1)
    return Survivors(
        adds=_rows(order.filter(compute.equal(kind, 0))),
        removes=_rows(order.filter(compute.equal(kind, 1))),
        keys=newest.column("key"),
    )


def not_mentioned(keys: StringColumn, mentioned: StringColumn) -> Column:
    """Return for each key of a checkpoint whether it is not in `mentioned`."""
    result: Column = compute.invert(compute.is_in(keys, value_set=mentioned))
    return result


def _keyed(keys: StringColumn, order: Column) -> pa.Table:
    columns: list[Any] = [keys, order]
    return pa.Table.from_arrays(columns, ["key", "order"])


def _first_of_each_key(table: pa.Table) -> pa.Table:
    # Do not use `group_by`, because it would load Arrow's query engine, which takes a tenth of a
    # second.
    codes: Any = table.column("key").combine_chunks().dictionary_encode()
    if isinstance(codes, pa.ChunkedArray):
        codes = codes.combine_chunks()
    if not len(codes):
        return table
    # Each new key is assigned the next code. So the first row of a key has a new highest code.
    highest = compute.cumulative_max(codes.indices)
    risen = compute.greater(highest[1:], highest[:-1])
    first = pa.concat_arrays([small_array([True], pa.bool_()), risen])
    return table.filter(first)


def _order(versions: Column, oldest: int, *, is_remove: int) -> Column:
    """Return one integer for each action, which sorts by version, adds before removes, and row."""
    rows = arrow.arange(0, len(versions))
    rank = compute.add(compute.multiply(compute.subtract(versions, oldest), 2), is_remove)
    shifted = compute.shift_left(rank, _ROW_BITS)
    result: Column = compute.bit_wise_or(shifted, rows)
    return result


def _rows(order: Column) -> pa.Array[Any]:
    rows = compute.bit_wise_and(order, _ROW_MASK)
    if isinstance(rows, pa.ChunkedArray):  # without chunks, `combine_chunks` imports pandas
        rows = rows.combine_chunks() if rows.num_chunks else pa.nulls(0, rows.type)
    return rows.take(compute.sort_indices(rows))


# --- Keys of logical files: canonical path and deletion vector, as one column


SEPARATOR: Final = "\0"  # cannot occur in a path or in the id of a deletion vector


def file_keys(paths: StringColumn, deletion_vectors: Column | None, root: str) -> StringColumn:
    """Return the key of each logical file: its canonical path, and the id of its deletion vector.

    Outside of the root, `/x` and `file:/x` are different files, as for the Delta kernels: engines
    resolve `/x` against their default file system (requirement D-06).

    Args:
        paths: encoded paths, as in the log.
        deletion_vectors: deletion vector descriptors of the same rows; None if all are NULL.
        root: the table's location.

    Cost: one pass over the paths, and one over the descriptors that are not NULL.
    """
    keys = canonical_paths(paths, root)
    bare = compute.starts_with(paths, "/")
    if compute.any(bare).as_py():
        outside = compute.and_(bare, compute.starts_with(keys, "file:"))
        keys = compute.if_else(outside, paths, keys)
    if deletion_vectors is None or deletion_vectors.null_count == len(deletion_vectors):
        return keys
    ids = vector_ids(deletion_vectors)
    joined = compute.binary_join_element_wise(keys, ids, SEPARATOR)
    result: StringColumn = compute.if_else(ids.is_valid(), joined, keys)
    return result


def vector_ids(deletion_vectors: Column) -> StringColumn:
    """Return `storageType + pathOrInlineDv + ("@" + offset)`; null without a deletion vector.

    Protocol: Deletion Vector Descriptor Schema (derived field `uniqueId`)
    """
    place = compute.binary_join_element_wise(
        _text(deletion_vectors, "storageType"), _text(deletion_vectors, "pathOrInlineDv"), ""
    )
    offset = _text(deletion_vectors, "offset")
    at = compute.binary_join_element_wise(place, offset, "@")
    result: StringColumn = compute.if_else(offset.is_valid(), at, place)
    return result


def _text(vectors: Column, member: str) -> Any:
    return compute.cast(compute.struct_field(vectors, member), pa.string())
