from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Context
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog._util.json import loads
from deltalog.errors import DataFileUnreadableError
from deltalog.schema.variant import decode, encode, to_json, unshred
from deltalog.schema.variant.reader import members, names_of
from deltalog.schema.variant.shredding import encode_array, encode_object
from tests.property.schema_strategies import TEXT
from tests.support.examples import examples

WIDE = Context(prec=40)
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))  # noqa: DTZ001
DECIMALS = st.builds(
    lambda digits, scale: WIDE.scaleb(WIDE.create_decimal(digits), -scale),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.integers(0, 38),
)
PRIMITIVES: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | DECIMALS
    | TEXT
    | st.text("a", min_size=60, max_size=70)
    | st.binary(max_size=5)
    | st.dates(date(1, 1, 1))
    | MOMENTS
    | MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC))
    | st.uuids()
)
VARIANTS: st.SearchStrategy[Any] = st.recursive(
    PRIMITIVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.protocol("B-51")
@given(VARIANTS)
def test_a_value_comes_back(value: object) -> None:
    metadata, data = encode(value)
    assert decode(metadata, data) == value
    assert names_of(metadata) == tuple(sorted(names_of(metadata), key=str.encode))
    loads(to_json(metadata, data))


@given(VARIANTS, st.data())
def test_torn_or_changed_bytes_never_raise_anything_else(
    value: object, data: st.DataObject
) -> None:
    metadata, encoded = encode(value)
    torn = encoded[: data.draw(st.integers(0, len(encoded)))]
    at = data.draw(st.integers(0, len(encoded) - 1))
    changed = encoded[:at] + bytes([data.draw(st.integers(0, 255))]) + encoded[at + 1 :]
    for broken in (torn, changed):
        for read in (decode, to_json):
            try:
                read(metadata, broken)
            except DataFileUnreadableError:
                continue


SHAPES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, "long", "string"]),
    lambda inner: (
        st.tuples(st.just("list"), inner)
        | st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=2).map(
            lambda parts: ("object", parts)
        )
    ),
    max_leaves=4,
)
SMALL: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers(-5, 5) | st.sampled_from("xyz"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.protocol("B-51")
@settings(max_examples=examples(80))
@given(st.lists(st.none() | st.tuples(SMALL), max_size=4), SHAPES)
def test_shredding_in_any_shape_changes_no_value(rows: list[Any], shape: Any) -> None:
    kind = pa.struct([("metadata", pa.binary()), *_columns(shape)])
    stored: list[Any] = []
    for row in rows:
        if row is None:
            stored.append(None)
            continue
        metadata, value = encode({"a": 0, "b": 0, "c": 0, "d": 0, "z": row[0]})
        part = dict(members(metadata, value) or [])["z"]
        stored.append({"metadata": metadata, **_shred(metadata, part, row[0], shape)})
    result = unshred(pa.array(stored, kind))
    result.validate(full=True)
    assert [
        None if cell is None else (decode(cell["metadata"], cell["value"]),)
        for cell in result.to_pylist()
    ] == rows


def _columns(shape: Any) -> list[tuple[str, pa.DataType]]:
    columns: list[tuple[str, pa.DataType]] = [("value", pa.binary())]
    if shape == "long":
        columns.append(("typed_value", pa.int64()))
    elif shape == "string":
        columns.append(("typed_value", pa.string()))
    elif shape is not None and shape[0] == "list":
        columns.append(("typed_value", pa.list_(pa.struct(_columns(shape[1])))))
    elif shape is not None:
        fields = [(name, pa.struct(_columns(part))) for name, part in shape[1].items()]
        columns.append(("typed_value", pa.struct(fields)))
    return columns


def _shred(metadata: bytes, part: bytes, value: Any, shape: Any) -> dict[str, Any]:
    """A model of a shredding writer, over one value."""
    ids = {name: at for at, name in enumerate(names_of(metadata))}
    typed: Any = None
    rest: bytes | None = part
    if shape in {"long", "string"} if not isinstance(shape, tuple) else False:
        if isinstance(value, int if shape == "long" else str):
            typed, rest = value, None
    elif isinstance(shape, tuple) and shape[0] == "list" and isinstance(value, list):
        typed = [_shred(metadata, _encode(item, ids), item, shape[1]) for item in value]
        rest = None
    elif isinstance(shape, tuple) and shape[0] == "object" and isinstance(value, dict):
        typed = {
            name: _shred(metadata, _encode(value[name], ids), value[name], inner)
            if name in value
            else None
            for name, inner in shape[1].items()
        }
        others = {name: _encode(item, ids) for name, item in value.items() if name not in shape[1]}
        rest = encode_object(others.items(), ids) if others else None
    return {"value": rest, "typed_value": typed}


def _encode(value: Any, ids: dict[str, int]) -> bytes:
    if isinstance(value, dict):
        return encode_object([(name, _encode(item, ids)) for name, item in value.items()], ids)
    if isinstance(value, list):
        return encode_array([_encode(item, ids) for item in value])
    return encode(value)[1]
