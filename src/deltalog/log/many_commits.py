"""Parse many commits together: lines become one Arrow array, file actions become columns.

A regular line is one compact JSON object whose first member is the kind of action. If any line is
not regular, functions return None instead of raising, and `reader` parses the commits line by line.

Protocol: Delta Log Entries
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.json as pj

from deltalog._util.json import dumps, loads, plain_objects
from deltalog._util.kernels import arrow, compute, pc
from deltalog.errors import MalformedLogError
from deltalog.protocol.actions.arrow import (
    CDC_SCHEMA,
    DELETION_VECTOR_TYPE,
    FILE_SCHEMA,
    REMOVE_SCHEMA,
    REQUIRED,
)
from deltalog.protocol.actions.codec import REQUIRED as REQUIRED_OF_VECTORS
from deltalog.protocol.actions.codec import are_sound
from deltalog.storage.pool import read_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SLICE_BYTES: Final = 2 << 20

_SLICES_AHEAD: Final = 3

_MOST_BYTES: Final = (1 << 31) - 2  # limit of arrays with 32-bit offsets


@dataclass(frozen=True, slots=True)
class Together:
    """The actions of some commits.

    Args:
        files: for `add`, `remove` and `cdc` the actions with their versions, in line order.
        others: for every other line: version, line number and JSON object.
    """

    files: Mapping[str, tuple[pa.Table, pa.Int64Array]]
    others: Sequence[tuple[int, int, dict[str, Any]]]


def read_together(commits: Sequence[tuple[int, bytes]]) -> Together | None:
    """Return the actions of commits with regular lines; None if a line is or may be irregular.

    Args:
        commits: version and content of each commit.

    Cost: a few passes over the bytes; Python objects only for lines without a file action.
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
    """Return the lines of NDJSON bytes; None if a line is not `{…}`, or not UTF-8."""
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
    """Return the file actions of lines of one kind, parsed on several cores if there are many."""
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


# --- File actions of many lines as Arrow data, without a Python object for each line


FILE_SCHEMAS: Final = {"add": FILE_SCHEMA, "remove": REMOVE_SCHEMA, "cdc": CDC_SCHEMA}
"""The kinds of file actions, with the schema of each kind."""

_BLOCK_BYTES: Final = 1 << 20
_SAMPLES: Final = 8
_MEMBERS: Final = frozenset(
    name
    for fields in (*FILE_SCHEMAS.values(), pa.schema(DELETION_VECTOR_TYPE))
    for name in fields.names
)


def starts_as(lines: pa.StringArray, kind: str) -> pa.BooleanArray:
    """Return for each line whether it begins with `{"<kind>":{`."""
    found: pa.BooleanArray = compute.starts_with(lines, _start_of(kind) + "{")
    return found


def files_of_lines(lines: pa.StringArray, kind: str) -> pa.Table | None:
    """Return a row for each line; None if the result might differ from that of `reader`.

    Args:
        lines: at least one line. Each begins as `starts_as` requires, ends with `}` and contains no
            line break.
        kind: `add`, `remove` or `cdc`.

    Cost: one pass of `pyarrow.json`, and a few kernels for each column.
    """
    schema = FILE_SCHEMAS[kind]
    # The text of each line after the key of its first member. If this text is a valid object, the
    # line has no other member.
    inner: Any = pc.binary_slice(lines.cast(pa.binary()), len(_start_of(kind)), -1).cast(
        pa.string()
    )
    wire = _wire_schema(inner, schema)
    if wire is None or not all(name in wire.names for name in REQUIRED[kind]):
        return None
    data = compute.binary_join_element_wise(inner, "", "\n").buffers()[2]
    table = _read(data, inner, wire)
    if table is None or any(table[name].null_count for name in REQUIRED[kind]):
        return None
    members: dict[str, Any] = {name: table[name].combine_chunks() for name in wire.names}
    maps = [name for name in wire.names if pa.types.is_map(schema.field(name).type)]
    if not _are_exact({name: members[name] for name in maps}, data):
        return None
    if "deletionVector" in members and not _are_whole(members["deletionVector"]):
        return None
    members.update({name: _map_of(members[name]) for name in maps})
    columns = [
        members[field.name] if field.name in members else pa.nulls(len(lines), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _start_of(kind: str) -> str:
    return f'{{"{kind}":'


def _wire_schema(objects: pa.StringArray, schema: pa.Schema) -> pa.Schema | None:
    """Return a schema for `pyarrow.json`: the members that occur, with maps as structs of strings.

    Reading fails at any other member or map key.
    """
    found: dict[str, dict[str, None]] = {}
    step = max(1, len(objects) // _SAMPLES)
    for text in [*objects[::step], objects[-1]]:
        try:
            values = loads(text.as_py())
        except MalformedLogError:
            return None
        if not isinstance(values, dict):
            return None
        for name, value in values.items():
            found.setdefault(name, {}).update(dict.fromkeys(value if type(value) is dict else ()))
    return pa.schema(
        [
            field.with_type(pa.struct([(key, pa.string()) for key in found[field.name]]))
            if pa.types.is_map(field.type)
            else field
            for field in schema
            if field.name in found
        ]
    )


def _read(data: pa.Buffer, objects: pa.StringArray, schema: pa.Schema) -> pa.Table | None:
    longest = compute.max(pc.binary_length(objects)).as_py()
    try:
        table = pj.read_json(
            pa.BufferReader(data),  # type: ignore[arg-type]  # the stubs lack Arrow's files
            read_options=pj.ReadOptions(
                use_threads=False, block_size=max(_BLOCK_BYTES, 2 * longest + 2)
            ),
            parse_options=pj.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="error"
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    # If the numbers differ, at least one line was not exactly one object.
    return table if table.num_rows == len(objects) else None


def _are_exact(maps: Mapping[str, pa.StructArray], data: pa.Buffer) -> bool:
    """Return whether no map lacks a key: every null in a struct must be a null in the JSON.

    In compact JSON, a plain key followed by null has only one spelling, which cannot occur within a
    string. So it is enough to count this spelling, except for keys that are also names of members.
    """
    nulls: Counter[str] = Counter()
    for column in maps.values():
        for field, child in zip(column.type, column.flatten(), strict=True):
            nulls[field.name] += child.null_count - column.null_count
    nulls = +nulls
    if not nulls:
        return True
    if not _MEMBERS.isdisjoint(nulls):
        return False
    text = data.to_pybytes()
    return all(
        sum(text.count(before + dumps(key) + b":null") for before in (b"{", b",")) == count
        for key, count in nulls.items()
    )


def _are_whole(vectors: pa.StructArray) -> bool:
    if vectors.null_count == len(vectors):
        return True
    children = dict(zip((field.name for field in vectors.type), vectors.flatten(), strict=True))
    required = (children[name].null_count for name in REQUIRED_OF_VECTORS)
    return all(count == vectors.null_count for count in required) and are_sound(vectors)


def _map_of(keyed: pa.StructArray) -> pa.Array[Any]:
    """Convert a struct of strings to a map, with the same keys in all rows that are not null."""
    names = [field.name for field in keyed.type]
    is_valid = keyed.is_valid()
    present = keyed.drop_null()
    width, rows = len(names), len(present)
    number = arrow.arange(0, width * rows)
    place = compute.divide(number, max(width, 1))  # the row of each entry
    key = compute.subtract(number, compute.multiply(place, width))
    values: Any = pa.nulls(0, pa.string())
    if width:
        by_key = pa.concat_arrays(present.flatten())
        values = by_key.take(compute.add(compute.multiply(key, rows), place))
    lengths = compute.if_else(is_valid, pa.scalar(width, pa.int32()), pa.scalar(0, pa.int32()))
    ends = compute.cumulative_sum(lengths)
    offsets: Any = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    if keyed.null_count:
        is_there = pa.concat_arrays([is_valid, pa.array([True])])
        offsets = compute.if_else(is_there, offsets, pa.scalar(None, pa.int32()))
    return pa.MapArray.from_arrays(offsets, pa.array(names, pa.string()).take(key), values)
