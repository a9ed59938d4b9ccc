from __future__ import annotations

import struct
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from deltalog.errors import DeletionVectorError
from deltalog.protocol.deletion_vectors import (
    DeletionBitmap,
    decode_z85,
    encode_file,
    encode_z85,
    inline_descriptor,
    keep_mask,
    parse_file,
    parse_inline,
)
from tests.support.examples import examples

ranges = st.tuples(st.integers(0, 200_000), st.integers(0, 70_000)).map(
    lambda pair: range(pair[0], pair[0] + pair[1])
)
sparse = st.sets(st.integers(0, 2**63 - 1) | st.integers(0, 300_000), max_size=50)
row_sets = st.tuples(sparse, st.lists(ranges, max_size=2)).map(
    lambda parts: parts[0].union(*parts[1])
)


@given(row_sets)
@settings(deadline=None, max_examples=examples(40))
def test_every_stored_form_gives_the_set_back(rows: set[int]) -> None:
    bitmap = DeletionBitmap(rows)
    assert bitmap.to_arrow().to_pylist() == sorted(rows)
    assert DeletionBitmap.parse(bitmap.encode()) == bitmap
    assert DeletionBitmap.from_arrow(bitmap.to_arrow()) == bitmap
    assert parse_inline(inline_descriptor(bitmap)) == bitmap


@given(st.lists(sparse, max_size=5), st.uuids())
@settings(deadline=None, max_examples=examples(40))
def test_files_give_every_vector_back(sets: list[set[int]], uuid: UUID) -> None:
    bitmaps = [DeletionBitmap(rows) for rows in sets]
    file = encode_file(bitmaps, uuid)
    assert [parse_file(file.data, told) for told in file.descriptors] == bitmaps


@given(st.lists(st.sets(st.integers(0, 2**32 - 1), max_size=20), max_size=4), st.sampled_from("<>"))
@settings(deadline=None, max_examples=examples(40))
def test_native_form_equals_the_set_model(buckets: list[set[int]], order: str) -> None:
    data = struct.pack(order + "ii", 1681511376, len(buckets))
    for bucket in buckets:
        content = BitMap(bucket).serialize()
        data += struct.pack(order + "i", len(content)) + content
    model = sorted((key << 32) + low for key, bucket in enumerate(buckets) for low in bucket)
    assert DeletionBitmap.parse(data).to_arrow().to_pylist() == model


@given(row_sets, row_sets, st.integers(0, 300_000), st.integers(0, 2_000))
@settings(deadline=None, max_examples=examples(40))
def test_operations_and_masks_equal_the_set_model(
    left: set[int], right: set[int], start: int, count: int
) -> None:
    one, other = DeletionBitmap(left), DeletionBitmap(right)
    assert one.union(other).to_arrow().to_pylist() == sorted(left | right)
    assert (one - other).to_arrow().to_pylist() == sorted(left - right)
    assert (one & other).to_arrow().to_pylist() == sorted(left & right)
    assert one.is_superset(other) == (left >= right)
    live = [row not in left for row in range(start, start + count)]
    mask = keep_mask(one, start, count)
    assert ([True] * count if mask is None else mask.to_pylist()) == live
    assert one.count_between(start, start + count) == live.count(False)


@given(st.binary(max_size=60).map(lambda data: data + bytes(-len(data) % 4)))
@settings(deadline=None)
def test_z85_gives_the_bytes_back(data: bytes) -> None:
    assert decode_z85(encode_z85(data)) == data


@given(row_sets, st.data())
@settings(deadline=None, max_examples=examples(60))
def test_damage_is_an_error_and_never_a_crash(rows: set[int], data: st.DataObject) -> None:
    torn = bytearray(DeletionBitmap(rows).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        torn[data.draw(st.integers(0, min(len(torn), 64) - 1))] = data.draw(st.integers(0, 255))
    try:
        bitmap = DeletionBitmap.parse(bytes(torn[: data.draw(st.integers(0, len(torn)))]))
    except DeletionVectorError:
        return
    assert bitmap.cardinality == len(bitmap.to_arrow())
