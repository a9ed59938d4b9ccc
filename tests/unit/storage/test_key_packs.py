"""The files of a key index: what is written is found, and damage is seen."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deltalog._util.paths import FileInfo
from deltalog.errors import ObjectNotFoundError
from deltalog.storage.key_packs import (
    FILE_FIELDS,
    DamagedPackError,
    KeyPack,
    PackBody,
    PackedKey,
    encode_pack,
)
from deltalog.testing import CountingStore
from tests.support.logs import DictStore

KEY = PackedKey(table_id="t", columns=("id",), families=("number",))
ENDS = [0, 1, 2**63, 2**64 - 1]


def put(
    hashes: list[int], sizes: list[int], store: DictStore | None = None
) -> tuple[Any, FileInfo]:
    store = store or DictStore()
    files = pa.Table.from_pylist(
        [
            {"path": f"f{n}", "size": 10 + n, "modificationTime": n, "num_rows": size}
            for n, size in enumerate(sizes)
        ],
        schema=FILE_FIELDS,
    )
    name, data = encode_pack(KEY, files, PackBody.of(np.array(hashes, np.uint64)))
    path = f"_delta_log/_keys/k/{name}"
    store.files[path] = data
    return store, FileInfo(path, len(data), 0)


def found(store: Any, info: FileInfo, hashes: list[int]) -> list[tuple[int, int]]:
    pack = KeyPack.open(store, info)
    files, rows = pack.find(store, np.unique(np.array(hashes, np.uint64)))
    return sorted(zip(files.tolist(), rows.tolist(), strict=True))


def expected(hashes: list[int], sizes: list[int], wanted: list[int]) -> list[tuple[int, int]]:
    starts = [0, *itertools.accumulate(sizes)]
    where = []
    for row, one in enumerate(hashes):
        if one in set(wanted):
            file = max(n for n in range(len(sizes)) if starts[n] <= row and sizes[n])
            where.append((file, row - starts[file]))
    return sorted(where)


@pytest.mark.parametrize("count", [0, 1, 2, 1024, 1025, 5000])
def test_every_hash_is_found_where_it_is(count: int) -> None:
    rng = random.Random(count)
    pool = [*ENDS, *(rng.getrandbits(64) for _ in range(count // 2 + 1))]
    hashes = [rng.choice(pool) for _ in range(count)]
    cut = rng.randint(0, count)
    sizes = [cut, 0, count - cut]
    store, info = put(hashes, sizes)
    wanted = [
        *ENDS,
        *rng.sample(pool, min(len(pool), 50)),
        *(rng.getrandbits(64) for _ in range(9)),
    ]
    assert found(store, info, wanted) == expected(hashes, sizes, wanted)
    assert found(store, info, hashes) == expected(hashes, sizes, hashes)
    assert found(store, info, [12345]) == []


def test_an_entry_and_a_bucket_take_eight_bytes() -> None:
    rng = random.Random(7)
    hashes = [rng.getrandbits(64) for _ in range(4096)]
    _, small = put(hashes[:1], [1])
    _, large = put(hashes, [4096])
    # The footers differ by the digits of the numbers.
    assert abs(large.size_bytes - small.size_bytes - 4095 * 8 - 7 * 8) < 8


def test_a_lookup_reads_one_bucket_of_an_open_pack() -> None:
    rng = random.Random(8)
    hashes = [rng.getrandbits(64) for _ in range(1 << 15)]
    store, info = put(hashes, [1 << 15])
    counting = CountingStore(store)
    pack = KeyPack.open(counting, info)
    assert counting.counts == {"read_ranges": 1}
    counting.reset()
    pack.find(counting, np.array(hashes[:1], np.uint64))
    assert counting.counts == {"read_ranges": 1}
    assert 0 < counting.bytes_read < 2 * 512 * 8


def test_all_buckets_are_read_in_one_range_if_there_are_many(monkeypatch: Any) -> None:
    monkeypatch.setattr("deltalog.storage.key_packs._MOST_RANGES", 3)
    rng = random.Random(9)
    hashes = [rng.getrandbits(64) for _ in range(10_000)]
    store, info = put(hashes, [10_000])
    assert found(store, info, hashes[:100]) == expected(hashes, [10_000], hashes[:100])


def test_any_changed_byte_is_found() -> None:
    rng = random.Random(1)
    hashes = [rng.getrandbits(64) for _ in range(3000)]
    store, info = put(hashes, [1000, 2000])
    data = store.files[info.path]
    whole = expected(hashes, [1000, 2000], hashes)
    places = {*range(20), *range(len(data) - 20, len(data)), *rng.sample(range(len(data)), 300)}
    for place in sorted(places - set(range(8))):  # the first magic bytes are not read
        harmed = bytearray(data)
        harmed[place] ^= 1 << rng.randrange(8)
        store.files[info.path] = bytes(harmed)
        with pytest.raises(DamagedPackError):
            found(store, info, hashes)
    store.files[info.path] = data
    assert found(store, info, hashes) == whole


@pytest.mark.parametrize("left", [0, 1, 7, 11, 12, 100, 0.5, 0.99])
def test_a_cut_pack_is_found(left: float) -> None:
    store, info = put(list(range(3000)), [3000])
    data = store.files[info.path]
    cut = data[: left if isinstance(left, int) else int(left * len(data))]
    store.files[info.path] = cut
    with pytest.raises(DamagedPackError):  # it is as long as listed, or not
        found(store, info, [1])
    with pytest.raises(DamagedPackError):
        found(store, FileInfo(info.path, len(cut), 0), [1])


def test_a_pack_under_another_name_is_damaged() -> None:
    store, info = put([1, 2], [2])
    other = "_delta_log/_keys/k/" + "0" * 32 + ".keys"
    store.files[other] = store.files[info.path]
    with pytest.raises(DamagedPackError, match="name"):
        KeyPack.open(store, FileInfo(other, info.size_bytes, 0))


def test_a_deleted_pack_is_missing() -> None:
    store, info = put([1, 2], [2])
    pack = KeyPack.open(store, info)
    del store.files[info.path]
    with pytest.raises(ObjectNotFoundError):
        pack.find(store, np.array([1], np.uint64))
