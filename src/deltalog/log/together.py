"""Many commits parsed together: their lines as one Arrow array, their file actions as columns.

Owns what makes a line regular (one compact object, whose first member is its kind), and which line
belongs to which commit. Commits that are not regular throughout are left to `reader`, which parses
them line by line; so nothing here raises.

Protocol: Delta Log Entries
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._json import plain_objects
from deltalog.actions.arrow_lines import FILE_SCHEMAS, files_of_lines, starts_as
from deltalog.kernels import compute, pc
from deltalog.storage.pool import read_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SLICE_BYTES: Final = 2 << 20
_SLICES_AHEAD: Final = 3
_MOST_BYTES: Final = (1 << 31) - 2  # of an array with 32-bit offsets


@dataclass(frozen=True, slots=True)
class Together:
    """The actions of some commits.

    Args:
        files: `add`, `remove` and `cdc` with the version of each, in the order of the lines.
        others: version, number and object of every other line, in order; none has a file action.
    """

    files: Mapping[str, tuple[pa.Table, pa.Int64Array]]
    others: Sequence[tuple[int, int, dict[str, Any]]]


def read_together(commits: Sequence[tuple[int, bytes]]) -> Together | None:
    """The actions of commits whose lines are regular; None if a line is not, or is not certain.

    Args:
        commits: version and bytes of each.

    Cost: some passes over the bytes; Python objects only for lines that name no file.
    """
    parts = [data if data.endswith(b"\n") else data + b"\n" for _, data in commits if data]
    versions = [version for version, data in commits if data]
    lines = _lines_of(b"".join(parts))
    if lines is None:
        return None
    ends = list(accumulate(part.count(b"\n") for part in parts))
    commit_of_line = pc.list_parent_indices(
        pa.ListArray.from_arrays(pa.array([0, *ends], pa.int32()), lines)
    )
    kinds = {kind: starts_as(lines, kind) for kind in FILE_SCHEMAS}
    others = _others(lines, compute.invert(reduce(compute.or_, kinds.values())), versions, ends)
    if others is None:
        return None
    files = {}
    version_of_commit = pa.array(versions, pa.int64())
    for kind, is_kind in kinds.items():
        table = _files(kind, lines.filter(is_kind))
        if table is None:
            return None
        version: Any = version_of_commit.take(commit_of_line.filter(is_kind))
        files[kind] = table, version
    return Together(files, others)


def _lines_of(data: bytes) -> pa.StringArray | None:
    """The lines of a text that ends with a line end; None if one is not `{…}`, or not UTF-8."""
    if not 0 < len(data) < _MOST_BYTES:
        return None
    offsets = pa.array([0, len(data) - 1], pa.int32()).buffers()[1]
    binary: Any = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(data)])
    try:
        text = binary.cast(pa.string())
    except pa.ArrowInvalid:
        return None
    lines: Any = pc.split_pattern(text, "\n").flatten()
    is_tidy = compute.and_(compute.starts_with(lines, "{"), compute.ends_with(lines, "}"))
    return lines if compute.all(is_tidy).as_py() else None


def _others(
    lines: pa.StringArray, is_other: pa.BooleanArray, versions: Sequence[int], ends: Sequence[int]
) -> list[tuple[int, int, dict[str, Any]]] | None:
    texts: Any = lines.filter(is_other).cast(pa.binary()).to_pylist()
    objects = plain_objects(texts)
    if objects is None:
        return None
    found = []
    commit = 0
    rows: Any = compute.indices_nonzero(is_other).to_pylist()
    for row, values in zip(rows, objects, strict=True):
        if not FILE_SCHEMAS.keys().isdisjoint(values):
            return None
        while ends[commit] <= row:
            commit += 1
        first = ends[commit - 1] if commit else 0
        found.append((versions[commit], row - first + 1, values))
    return found


def _files(kind: str, lines: pa.StringArray) -> pa.Table | None:
    """The file actions of lines of one kind, parsed on several cores if they are many."""
    tables = [FILE_SCHEMAS[kind].empty_table()]
    for table in read_ahead(
        lambda part: files_of_lines(part, kind), _slices(lines), depth=_SLICES_AHEAD
    ):
        if table is None:
            return None
        tables.append(table)
    return pa.concat_tables(tables)


def _slices(lines: pa.StringArray) -> Iterator[pa.StringArray]:
    if not len(lines):
        return
    step = max(1, len(lines) * _SLICE_BYTES // max(lines.nbytes, 1))
    for start in range(0, len(lines), step):
        yield lines.slice(start, step)
