"""The key of a logical file, as one column: the canonical path and the deletion vector.

Owns the key. Knows nothing of versions or of which action wins.

Protocol: Action Reconciliation (a logical file is a data file plus an optional deletion vector)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.kernels import compute
from deltalog.paths import canonical_paths

if TYPE_CHECKING:
    StringColumn = pa.StringArray | pa.ChunkedArray[pa.StringScalar]
    Column = pa.Array[Any] | pa.ChunkedArray[Any]

SEPARATOR: Final = "\0"  # occurs in no path and in no id of a vector


def file_keys(paths: StringColumn, deletion_vectors: Column | None, root: str) -> StringColumn:
    """The key of each logical file: its canonical path, and the vector's id if there is one.

    Outside of the root, `/x` and `file:/x` are two files here, as for the Delta kernels: `/x` names
    no file system, so each engine resolves it against its own default (ledger D-06).

    Args:
        paths: encoded, as in the log.
        deletion_vectors: descriptors of the same rows; None if no row has one.
        root: the table's location.

    Cost: one pass over the paths; vectors cost something only if a row has one.
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
    """`storageType + pathOrInlineDv + ("@" + offset)`; null where there is no vector.

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
