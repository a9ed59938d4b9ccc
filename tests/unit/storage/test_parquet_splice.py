"""Files made of row groups of other files: what footers and indexes say of them, and damage."""

from __future__ import annotations

import io
import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalog.errors import AlreadyExistsError, DataFileUnreadableError
from deltalog.storage.parquet import thrift
from deltalog.storage.parquet.byte_sources import EncodedBytes
from deltalog.storage.parquet.groups import StoredFooter, read_stored
from deltalog.storage.parquet.splice import (
    GroupsToCopy,
    Page,
    SplicedFile,
    _is_column_index,
    _moved_offsets,
    checked_groups,
    empty_footer,
    encoded_groups,
)
from deltalog.storage.parquet.thrift import Value
from tests.support.logs import DictStore

ROWS = pa.table(
    {
        "id": pa.array(range(50), pa.int64()),
        "x": [float(n) for n in range(50)],
        "l": [None if n % 3 else [{"a": n}, None] for n in range(50)],
    }
)
OPTIONS: dict[str, Any] = {"store_schema": False}


def file_of(rows: pa.Table = ROWS, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(rows, out, row_group_size=10, **{**OPTIONS, **options})
    return out.getvalue()


def stored(data: bytes) -> tuple[EncodedBytes, StoredFooter]:
    source = EncodedBytes(pa.py_buffer(data))
    footer = read_stored(source.footer(), source.size_bytes)
    assert footer is not None
    return source, footer


def groups_of(data: bytes, *numbers: int) -> GroupsToCopy:
    return checked_groups(*stored(data), numbers)


def spliced(*parts: GroupsToCopy, schema: pa.Schema = ROWS.schema) -> bytes:
    store = DictStore()
    file = SplicedFile(store, "new", empty_footer(schema, **OPTIONS))
    for part in parts:
        file.append(part)
    info = file.close()
    data = store.read("new")
    assert (info.path, info.size_bytes) == ("new", len(data))
    return data


def with_footer(data: bytes, change: Any) -> bytes:
    """The file with its footer's fields changed."""
    length = struct.unpack("<I", data[-8:-4])[0]
    fields, _ = thrift.read_struct(data[-8 - length : -8])
    change(fields)
    footer = thrift.write_struct(fields)
    return data[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def chunk_of(fields: thrift.Struct, group: int, leaf: int) -> thrift.Struct:
    found: thrift.Struct = fields[4].value.values[group][1].value.values[leaf]
    return found


def test_copied_and_encoded_row_groups_in_order() -> None:
    data = spliced(
        groups_of(file_of(), 1, 3),
        encoded_groups(ROWS.slice(7, 2), **OPTIONS),
        groups_of(file_of(compression="zstd", data_page_version="2.0"), 0),
    )
    expected = [ROWS.slice(10, 10), ROWS.slice(30, 10), ROWS.slice(7, 2), ROWS.slice(0, 10)]
    assert pq.read_table(io.BytesIO(data)).equals(pa.concat_tables(expected))
    footer = pq.read_metadata(io.BytesIO(data))
    assert [footer.row_group(n).num_rows for n in range(4)] == [10, 10, 2, 10]
    assert footer.num_rows == 32
    _, found = stored(data)
    assert [group.fields[7].value for group in found.groups] == [0, 1, 2, 3]  # ordinals
    starts = [group.fields[5].value for group in found.groups]
    assert starts == [group.chunks[0].start for group in found.groups]
    assert starts == sorted(starts)


def test_indexes_and_bloom_filters_move_with_their_pages() -> None:
    old = file_of(write_page_index=True, bloom_filter_options={"id": {"ndv": 10}})
    data = spliced(groups_of(old, 0, 2))
    source, footer = stored(data)
    for group, number in zip(footer.groups, (0, 2), strict=True):
        for leaf, chunk in enumerate(group.chunks):
            offsets = chunk.fields[4].value
            index, _ = thrift.read_struct(source.read(offsets, offsets + chunk.fields[5].value))
            places = [place[1].value for place in index[1].value.values]
            assert chunk.start <= places[0] < chunk.end
            assert (6 in chunk.fields) == (leaf != 1)  # no bounds of floating-point numbers
            assert (14 in chunk.meta) == (leaf == 0)
        bloom = group.chunks[0].meta[14].value
        before = stored(old)[1].groups[number].chunks[0].meta
        length = before[15].value
        assert source.read(bloom, bloom + length) == old[before[14].value :][:length]
    found = pq.read_table(io.BytesIO(data))
    assert found.equals(pa.concat_tables([ROWS.slice(0, 10), ROWS.slice(20, 10)]))


@pytest.mark.parametrize("field", [4, 6, 14])
def test_damaged_indexes_are_left_out(field: int) -> None:
    options: Any = {"write_page_index": True, "bloom_filter_options": {"id": {"ndv": 10}}}

    def change(fields: thrift.Struct) -> None:
        chunk = chunk_of(fields, 0, 0)
        if field == 14:
            chunk = chunk[3].value
        chunk[field] = Value(thrift.INT64, chunk[field].value + 1)

    _, footer = stored(spliced(groups_of(with_footer(file_of(**options), change), 0)))
    chunk = footer.groups[0].chunks[0]
    assert field not in (chunk.meta if field == 14 else chunk.fields)
    if field == 4:
        assert 6 not in chunk.fields  # bounds of pages are of no use without their places


def test_bounds_without_an_order_are_left_out() -> None:
    old = with_footer(file_of(), lambda fields: fields.pop(7))
    footer = pq.read_metadata(io.BytesIO(spliced(groups_of(old, 0))))
    statistics = footer.row_group(0).column(0).statistics
    assert statistics is not None
    assert not statistics.has_min_max
    assert statistics.null_count == 0


@pytest.mark.parametrize(
    ("number", "value"), [(9, 5), (9, 1 << 40), (7, 3), (7, 1 << 40), (5, 11), (5, -1), (7, -1)]
)
def test_places_and_sizes_that_are_wrong(number: int, value: int) -> None:
    def change(fields: thrift.Struct) -> None:
        chunk_of(fields, 2, 0)[3].value[number] = Value(thrift.INT64, value)
        chunk_of(fields, 2, 0)[3].value.pop(11, None)

    data = with_footer(file_of(use_dictionary=False), change)
    with pytest.raises(DataFileUnreadableError):
        groups_of(data, 2)


@pytest.mark.parametrize("change", [lambda f: f.pop(4), lambda f: f.pop(2), lambda f: f[4].value])
def test_footers_that_lack_something(change: Any) -> None:
    def damage(fields: thrift.Struct) -> None:
        change(fields)
        if 4 in fields and 2 in fields:
            fields[4].value.values[0][1].value.values.pop()

    data = with_footer(file_of(), damage)
    source = EncodedBytes(pa.py_buffer(data))
    with pytest.raises(DataFileUnreadableError):
        read_stored(source.footer(), source.size_bytes)


@pytest.mark.parametrize("number", [1, 8])
def test_columns_of_other_files_and_encrypted_ones_are_nobodys_to_copy(number: int) -> None:
    def change(fields: thrift.Struct) -> None:
        value = Value(thrift.BINARY, b"x") if number == 1 else Value(thrift.STRUCT, {})
        chunk_of(fields, 1, 0)[number] = value

    source = EncodedBytes(pa.py_buffer(with_footer(file_of(), change)))
    assert read_stored(source.footer(), source.size_bytes) is None
    encrypted = with_footer(file_of(), lambda f: f.update({8: Value(thrift.STRUCT, {})}))
    source = EncodedBytes(pa.py_buffer(encrypted))
    assert read_stored(source.footer(), source.size_bytes) is None


def test_old_annotations_mean_what_new_ones_do() -> None:
    rows = pa.table(
        {
            "t": ["x"],
            "d": pa.array([0], pa.date32()),
            "i": pa.array([1], pa.int32()),
            "ts": pa.array([1], pa.timestamp("us", "UTC")),
            "l": [[1]],
        }
    )

    def forget_new(fields: thrift.Struct) -> None:
        for element in fields[2].value.values:
            element.pop(10, None)

    data = file_of(rows)
    new = stored(data)[1].schema
    assert stored(with_footer(data, forget_new))[1].schema == new
    local = rows.set_column(3, "ts", pa.array([1], pa.timestamp("us")))
    assert stored(file_of(local))[1].schema != new


def test_nothing_is_left_of_a_file_that_fails() -> None:
    store = DictStore()
    store.put("new", b"taken")
    file = SplicedFile(store, "new", empty_footer(ROWS.schema, **OPTIONS))
    file.append(groups_of(file_of(), 0))
    with pytest.raises(AlreadyExistsError):
        file.close()
    assert store.read("new") == b"taken"
    with pytest.raises(AlreadyExistsError):
        file.append(groups_of(file_of(), 0))


PLACES = st.lists(st.tuples(*[st.integers(0, 1 << 40)] * 3), max_size=40)


@given(
    places=PLACES,
    shift=st.integers(0, 1 << 40),
    more=st.sampled_from([{}, {2: 7}]),
    cut=st.integers(0, 9),
)
def test_offset_indexes_of_any_form_are_moved(
    places: list[tuple[int, int, int]], shift: int, more: dict[int, int], cut: int
) -> None:
    """A plain one is moved like one of which all is made sense of."""

    def index(by: int) -> bytes:
        kinds = (thrift.INT64, thrift.INT32, thrift.INT64)
        values = [
            {n: Value(kind, one[n - 1] + (by if n == 1 else 0)) for n, kind in enumerate(kinds, 1)}
            for one in places
        ]
        rest = {n: Value(thrift.INT64, number) for n, number in more.items()}
        listed = thrift.Elements(thrift.STRUCT, values)
        return thrift.write_struct({1: Value(thrift.LIST, listed), **rest})

    pages = [Page(start, size) for start, size, _ in places]
    data = index(0)
    assert _moved_offsets(data, pages, shift) == (index(shift), len(pages))
    assert _moved_offsets(data, None, shift) == (index(shift), len(pages))
    assert _moved_offsets(data, [*pages, Page(1, 1)], shift) is None
    assert _moved_offsets(data[: -1 - cut], None, shift) is None


@given(
    lengths=st.tuples(*[st.integers(0, 20)] * 3), count=st.integers(0, 20), cut=st.integers(0, 3)
)
def test_column_indexes_have_a_place_for_each_page(
    lengths: tuple[int, int, int], count: int, cut: int
) -> None:
    kinds = ((thrift.TRUE, False), (thrift.BINARY, b"low"), (thrift.BINARY, b"h" * 200))
    fields = {
        number: Value(thrift.LIST, thrift.Elements(kind, [value] * length))
        for number, (length, (kind, value)) in enumerate(zip(lengths, kinds, strict=True), 1)
    }
    data = thrift.write_struct({**fields, 4: Value(thrift.INT32, 1)})
    assert _is_column_index(data[: len(data) - cut], count) == (not cut and {*lengths} == {count})
