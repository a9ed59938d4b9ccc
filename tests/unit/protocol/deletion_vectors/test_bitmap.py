from __future__ import annotations

import pickle
import struct
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap, BitMap64

from deltalog.errors import DeletionVectorError, InvalidInputError
from deltalog.protocol.deletion_vectors import (
    MAGIC_NATIVE,
    MAGIC_PORTABLE,
    DeletionBitmap,
    keep_mask,
)

BITMAP = DeletionBitmap([0, 5, 6, 2**33])


SIX = [3, 4, 7, 11, 18, 29]


SIX_HEX = "d1d339640100000000000000000000003a3000000100000000000500100000000300040007000b0012001d00"


TWO_BUCKETS_HEX = (
    "d1d339640200000000000000000000003a3000000100000000000000100000000700010000003a3000000100000000"
    "000000100000000500"
)


def native(order: str, *bitmaps: BitMap) -> bytes:
    parts = [struct.pack(order + "ii", MAGIC_NATIVE, len(bitmaps))]
    for bitmap in bitmaps:
        content = bitmap.serialize()
        parts += [struct.pack(order + "i", len(content)), content]
    return b"".join(parts)


@pytest.mark.protocol("DV-13", "DV-14", "D-02")
@pytest.mark.parametrize(("rows", "expected"), [(SIX, SIX_HEX), ([7, 2**32 + 5], TWO_BUCKETS_HEX)])
def test_portable_form_is_written_byte_for_byte_and_read_back(
    rows: list[int], expected: str
) -> None:
    assert DeletionBitmap(rows).encode().hex() == expected
    assert DeletionBitmap.parse(bytes.fromhex(expected)).to_arrow().to_pylist() == rows


@pytest.mark.protocol("DV-14")
def test_highest_row_survives_and_the_next_is_refused() -> None:
    top = 2**63 - 1
    assert DeletionBitmap.parse(DeletionBitmap([0, top]).encode()).to_arrow().to_pylist() == [
        0,
        top,
    ]
    with pytest.raises(InvalidInputError, match=r"2\^63-1"):
        DeletionBitmap([top + 1])


@pytest.mark.protocol("DV-14")
def test_negative_bucket_key_is_refused() -> None:
    portable = bytearray(DeletionBitmap([7]).encode())
    portable[12:16] = struct.pack("<i", -1)
    with pytest.raises(DeletionVectorError, match="key of a bitmap is negative"):
        DeletionBitmap.parse(bytes(portable))


@pytest.mark.protocol("D-01")
@pytest.mark.parametrize("order", ["<", ">"])
def test_native_forms_are_read_in_both_byte_orders(order: str) -> None:
    data = native(order, BitMap([1, 70_000]), BitMap(), BitMap([5]))
    assert DeletionBitmap.parse(data).to_arrow().to_pylist() == [1, 70_000, 2 * 2**32 + 5]


@pytest.mark.protocol("D-01")
def test_what_was_read_in_another_form_is_written_portable() -> None:
    assert DeletionBitmap.parse(native(">", BitMap(SIX))).encode().hex() == SIX_HEX


@pytest.mark.protocol("DV-20")
def test_all_kinds_of_containers_are_read() -> None:
    rows = BitMap64()
    rows.add_range(10, 60_000)  # a run, with cookie 12347
    rows.add_range(2 * 65_536, 3 * 65_536)
    for row in range(4 * 65_536, 5 * 65_536, 2):  # a bitset
        rows.add(row)
    rows.add(9 * 65_536)  # an array
    rows.run_optimize()
    kinds = rows.get_statistics()
    assert (kinds["n_run_containers"], kinds["n_bitset_containers"]) == (2, 1)
    assert kinds["n_array_containers"] == 1
    data = MAGIC_PORTABLE.to_bytes(4, "little") + rows.serialize()
    assert DeletionBitmap.parse(data).to_arrow().to_pylist() == list(rows)


def test_empty_set_survives_its_bytes() -> None:
    empty = DeletionBitmap.parse(DeletionBitmap().encode())
    assert (empty.cardinality, empty.max_row, len(empty.to_arrow())) == (0, None, 0)


@pytest.mark.protocol("DV-15")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "magic number is cut off"),
        (b"\0\0\0\0" + bytes.fromhex(SIX_HEX)[4:], "expected magic number 1681511377"),
        (bytes.fromhex(SIX_HEX)[:4], "torn or corrupt"),
        (bytes.fromhex(SIX_HEX)[:-1], "torn or corrupt"),
        (native("<", BitMap(SIX))[:6], "list of bitmaps is cut off"),
        (native("<", BitMap(SIX))[:-1], "bitmap 0 of 1 is cut off"),
        (struct.pack("<ii", MAGIC_NATIVE, -1), "-1 bitmaps"),
        (struct.pack("<iii", MAGIC_NATIVE, 1, -4), "bitmap 0 of 1 is cut off"),
        (struct.pack("<iii", MAGIC_NATIVE, 1, -1), "bitmap 0 of 1 is cut off"),
    ],
)
def test_bytes_that_are_no_bitmap_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(DeletionVectorError, match=message):
        DeletionBitmap.parse(data)


def test_unsorted_container_is_refused() -> None:
    bucket = struct.pack("<IIHHI3H", 12346, 1, 0, 2, 16, 9, 3, 5)
    with pytest.raises(DeletionVectorError, match="torn or corrupt"):
        DeletionBitmap.parse(struct.pack("<iqi", MAGIC_PORTABLE, 1, 0) + bucket)


def test_arrow_columns_are_taken_sliced_chunked_and_unsorted() -> None:
    rows = pa.chunked_array([pa.array([9, 8, 8, 1])[1:], pa.array([], pa.int64()), pa.array([0])])
    assert DeletionBitmap.from_arrow(rows).to_arrow().to_pylist() == [0, 1, 8]
    assert DeletionBitmap.from_arrow(pa.array([4], pa.uint64())) == DeletionBitmap([4])


@pytest.mark.parametrize(
    "rows", [pa.array([1, None]), pa.array([1], pa.int32()), pa.array([-1]), pa.array(["1"])]
)
def test_arrow_columns_that_are_no_row_numbers_are_refused(rows: pa.Array[Any]) -> None:
    with pytest.raises(InvalidInputError):
        DeletionBitmap.from_arrow(rows)


@pytest.mark.parametrize("rows", [[-1], [2**70], ["a"]])
def test_values_that_are_no_row_numbers_are_refused(rows: list[int]) -> None:
    with pytest.raises(InvalidInputError, match="row number"):
        DeletionBitmap(rows)


@pytest.mark.protocol("DV-18")
def test_union_is_a_superset_of_both() -> None:
    old, new = DeletionBitmap([1, 5]), DeletionBitmap([5, 2**40])
    both = old.union(new)
    assert both.to_arrow().to_pylist() == [1, 5, 2**40]
    assert both.is_superset(old)
    assert both.is_superset(new)
    assert not old.is_superset(both)
    assert (both - old).to_arrow().to_pylist() == [2**40]
    assert old.to_arrow().to_pylist() == [1, 5], "operands stay as they are"


def test_counts_and_windows() -> None:
    bitmap = DeletionBitmap.from_range(10, 20) | DeletionBitmap([2**33])
    assert bitmap.count_between(15, 2**33) == 5
    assert bitmap.count_between(15, 15) == 0
    assert bitmap.between(18, 2**33 + 1).to_arrow().to_pylist() == [18, 19, 2**33]
    assert 19 in bitmap
    assert 20 not in bitmap
    assert not DeletionBitmap.from_range(5, 5)


def test_equal_sets_are_equal_whatever_their_containers() -> None:
    run, array = DeletionBitmap.from_range(0, 3), DeletionBitmap([2, 0, 1])
    assert run == array
    assert hash(run) == hash(array)
    assert run != DeletionBitmap([0])
    assert pickle.loads(pickle.dumps(run)) == array


@pytest.mark.protocol("DV-10")
def test_mask_counts_rows_from_the_start_of_the_file() -> None:
    mask = keep_mask(BITMAP, 4, 4)
    assert mask is not None
    assert mask.type == pa.bool_()
    assert mask.to_pylist() == [True, False, False, True]
    high = keep_mask(BITMAP, 2**33 - 1, 2)
    assert high is not None
    assert high.to_pylist() == [True, False]


@pytest.mark.protocol("DV-10")
def test_row_groups_one_after_the_other_are_the_whole_file() -> None:
    deleted = DeletionBitmap(range(0, 30, 5))
    whole = keep_mask(deleted, 0, 30)
    assert whole is not None
    assert whole.to_pylist().count(False) == 6
    parts = [keep_mask(deleted, start, 10) for start in (0, 10, 20)]
    assert pa.concat_arrays([part for part in parts if part is not None]).equals(whole)


def test_nothing_deleted_needs_no_mask() -> None:
    assert keep_mask(BITMAP, 1, 4) is None
    assert keep_mask(BITMAP, 1, 0) is None
    assert keep_mask(DeletionBitmap(), 0, 10) is None


def test_everything_deleted() -> None:
    mask = keep_mask(DeletionBitmap.from_range(0, 100), 90, 10)
    assert mask is not None
    assert mask.to_pylist() == [False] * 10


def test_ranges_beyond_all_numbers_have_what_is_in_them() -> None:
    bitmap = DeletionBitmap([3, 7])
    assert bitmap.count_between(4, 1 << 65) == 1
    assert bitmap.between(4, 1 << 65) == DeletionBitmap([7])
    assert bitmap.count_between(1 << 64, 1 << 65) == 0
    assert not DeletionBitmap().between(0, 1 << 65)
