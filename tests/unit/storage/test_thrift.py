"""Thrift's compact protocol: footers of Arrow survive, damaged bytes are errors."""

from __future__ import annotations

import io
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalog.storage.parquet import thrift
from deltalog.storage.parquet.thrift import Elements, Struct, Value


def footer_of(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=2, write_page_index=True)
    data = out.getvalue()
    length = struct.unpack("<I", data[-8:-4])[0]
    return data[-8 - length : -8]


@pytest.fixture(scope="module")
def footer() -> bytes:
    columns = {f"c{number}": [number, None, 3, 4, 5] for number in range(20)}
    return footer_of(pa.table({**columns, "nested": [[{"a": "x"}], [], None, [None], [{"a": ""}]]}))


def test_a_footer_of_arrow_is_written_again_as_it_was(footer: bytes) -> None:
    fields, end = thrift.read_struct(footer)
    assert end == len(footer)
    assert fields[3] == Value(thrift.INT64, 5)  # num_rows
    assert len(fields[4].value.values) == 3  # row_groups
    assert thrift.write_struct(fields) == footer


def test_arrow_reads_what_was_changed(footer: bytes) -> None:
    fields, _ = thrift.read_struct(footer)
    groups = fields[4].value
    fields[4] = Value(thrift.LIST, Elements(groups.kind, groups.values[:1]))
    fields[3] = Value(thrift.INT64, 2)
    changed = thrift.write_struct(fields)
    file = b"PAR1" + changed + struct.pack("<I", len(changed)) + b"PAR1"
    metadata = pq.read_metadata(io.BytesIO(file))
    assert (metadata.num_rows, metadata.num_row_groups) == (2, 1)


def test_bytes_that_end_too_early_are_an_error(footer: bytes) -> None:
    for end in range(0, len(footer) - 1, 29):
        with pytest.raises(LookupError):
            thrift.read_struct(footer[:end])


def test_a_kind_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(TypeError, match="type 14"):
        thrift.read_struct(bytes([0x1E, 0]))


def test_structs_inside_structs_end() -> None:
    with pytest.raises(RecursionError):
        thrift.read_struct(bytes([0x1C]) * 1000)


def test_a_list_is_no_longer_than_its_bytes() -> None:
    with pytest.raises(LookupError):
        thrift.read_struct(bytes([0x19, 0xF3, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0]))


_SCALARS = {
    thrift.TRUE: st.booleans(),
    thrift.BYTE: st.binary(min_size=1, max_size=1),
    thrift.INT16: st.integers(-(2**15), 2**15 - 1),
    thrift.INT32: st.integers(-(2**31), 2**31 - 1),
    thrift.INT64: st.integers(-(2**63), 2**63 - 1),
    thrift.DOUBLE: st.binary(min_size=8, max_size=8),
    thrift.BINARY: st.binary(max_size=200),
}
_KINDS = st.sampled_from(sorted(_SCALARS))


def _lists(elements: st.SearchStrategy[Struct]) -> st.SearchStrategy[Value]:
    scalars = _KINDS.flatmap(
        lambda kind: st.lists(_SCALARS[kind], max_size=20).map(
            lambda values: Elements(kind, values)
        )
    )
    structs = st.lists(elements, max_size=20).map(
        lambda values: Elements(thrift.STRUCT, list(values))
    )
    return st.one_of(scalars, structs).map(lambda values: Value(thrift.LIST, values))


def _structs(inner: st.SearchStrategy[Struct]) -> st.SearchStrategy[Struct]:
    scalars = _KINDS.flatmap(
        lambda kind: _SCALARS[kind].map(
            lambda value: Value(thrift.FALSE if value is False else kind, value)
        )
    )
    values = st.one_of(
        scalars, _lists(inner), inner.map(lambda fields: Value(thrift.STRUCT, fields))
    )
    return st.dictionaries(st.integers(1, 32767), values, max_size=6)


@given(st.recursive(st.just(Struct()), _structs, max_leaves=12))
def test_what_was_written_is_read(fields: Struct) -> None:
    data = thrift.write_struct(fields)
    assert thrift.read_struct(data) == (fields, len(data))
    assert thrift.pass_struct(data, 0) == len(data)


@pytest.mark.parametrize("kind", [thrift.BYTE, thrift.DOUBLE, thrift.TRUE, thrift.BINARY])
def test_a_list_with_a_wrong_length_takes_no_time(kind: int) -> None:
    stated = 2**62  # a loop over so many elements would not end
    data = bytes([1 << 4 | thrift.LIST]) + thrift.list_head(kind, stated) + bytes(10)
    with pytest.raises(IndexError):
        thrift.pass_struct(data, 0)
