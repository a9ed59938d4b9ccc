"""File actions of many lines of a log as Arrow data at once, without a Python object for each line.

Owns what `pyarrow.json` must be told and asked so that it finds what `arrow` would find in the
parsed lines: it knows no maps of any key, and a key without a value looks to it like one that is
absent. Whatever is not certain is left to `arrow`, which also has the errors: a member that is not
known here, a number where a text belongs, a key that stands twice, a missing path.

Protocol: Add File and Remove File, Add CDC File
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.json as pj

from deltalog._json import dumps, loads
from deltalog.actions.arrow import (
    CDC_SCHEMA,
    DELETION_VECTOR_TYPE,
    FILE_SCHEMA,
    REMOVE_SCHEMA,
    REQUIRED,
)
from deltalog.actions.descriptors import REQUIRED as REQUIRED_OF_VECTORS
from deltalog.actions.descriptors import are_sound
from deltalog.errors import MalformedLogError
from deltalog.kernels import arrow, compute, pc

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_SCHEMAS: Final = {"add": FILE_SCHEMA, "remove": REMOVE_SCHEMA, "cdc": CDC_SCHEMA}
"""The kinds of file actions, with the columns of each."""

_BLOCK_BYTES: Final = 1 << 20
_SAMPLES: Final = 8
_MEMBERS: Final = frozenset(
    name
    for fields in (*FILE_SCHEMAS.values(), pa.schema(DELETION_VECTOR_TYPE))
    for name in fields.names
)


def starts_as(lines: pa.StringArray, kind: str) -> pa.BooleanArray:
    """Which of the lines begin as a compact object whose first member is `kind`, an object."""
    found: pa.BooleanArray = compute.starts_with(lines, _start_of(kind) + "{")
    return found


def files_of_lines(lines: pa.StringArray, kind: str) -> pa.Table | None:
    """A row for each line, as `arrow` would make of them; None if that is not certain.

    Args:
        lines: each begins as `starts_as` says, ends with `}` and has no line end in it; at least
            one.
        kind: `add`, `remove` or `cdc`.

    Cost: one pass of `pyarrow.json`, and some kernels per column.
    """
    schema = FILE_SCHEMAS[kind]
    # What is between the outer braces: if it is an object, it is the only member of the line.
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
    """What to read the objects as: the members that some of them have, maps as structs of texts.

    Another member, or another key of a map, stops the reading.
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
            pa.BufferReader(data),  # type: ignore[arg-type]  # stubs: any file but Arrow's
            read_options=pj.ReadOptions(
                use_threads=False, block_size=max(_BLOCK_BYTES, 2 * longest + 2)
            ),
            parse_options=pj.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="error"
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    # An object cannot vanish or join the next one, so as many rows as objects is one for each.
    return table if table.num_rows == len(objects) else None


def _are_exact(maps: Mapping[str, pa.StructArray], data: pa.Buffer) -> bool:
    """Whether every key of a map that has no value in a row stands there, with null as its value.

    A key of plain characters and the null behind it have one spelling in compact JSON, which does
    not occur inside a text; so it suffices to count it. A key that is the name of a member could
    stand elsewhere, too.
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
    """A struct of texts as the map with the same keys in every row that is not null."""
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
