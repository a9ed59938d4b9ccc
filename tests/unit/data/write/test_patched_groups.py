"""Row groups that lose few rows: pages without them stay, and nothing is left of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, Field, Schema, convert_to_deltalake, write_deltalake
from deltalog.data.write.options import WriterProperties
from deltalog.data.write.patched_groups import PATCHING, is_worth_patching
from deltalog.errors import DataFileUnreadableError, InternalError
from deltalog.log.context import utc_context
from deltalog.operations.changes import kept_groups
from deltalog.protocol.deletion_vectors import DeletionBitmap
from deltalog.storage.parquet import thrift
from deltalog.storage.parquet.byte_sources import EncodedBytes
from deltalog.storage.parquet.groups import StoredChunk
from deltalog.storage.parquet.patch import has_dictionary
from deltalog.storage.parquet.splice import encoded_groups, flat_pages
from deltalog.storage.parquet.thrift import Value
from deltalog.testing.stores import CountingStore
from tests.support.copied_groups import new_adds, num_copied
from tests.support.logs import DictStore
from tests.support.patched_groups import (
    GROUP_ROWS,
    PAGE_ROWS,
    changed_with_and_without,
    counting_patches,
    many_kinds,
    metadata_of,
    only_path,
    page_bounds,
    page_bytes,
    paged_file,
    paged_table,
    pages_of,
    patching,
    texts_of_floats,
    without,
)
from tests.unit.storage.test_parquet_splice import with_footer

GONE = {
    "few": {12, 13, 57},
    "the first page": set(range(10)),
    "the last page": set(range(90, 100)),
    "a whole page and some": {*range(30, 40), 41, 42},
    "the first and the last row": {0, 99},
    "several runs": {5, 25, 45, 65},
    "in both row groups": {3, 199},
    "the second row group": set(range(140, 150)),
}


@pytest.fixture(autouse=True)
def _patches_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    patching(monkeypatch)


def condition(gone: set[int]) -> str:
    return f"id in ({', '.join(map(str, sorted(gone)))})"


def rows_of(table: DeltaTable) -> pa.Table:
    return texts_of_floats(DeltaTable(table.table_uri).scan().to_table())


OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"data_page_version": "2.0"},
    {"data_page_version": "2.0", "compression": "zstd"},
    {"write_statistics": False},
    {"write_statistics": ["id", "t", "m"]},
    {"bloom_filter_options": {"id": {"ndv": 100}, "t": {"ndv": 100}}},
    {"use_dictionary": ["i", "b"]},
    {"column_encoding": {"id": "DELTA_BINARY_PACKED", "x": "BYTE_STREAM_SPLIT"}},
)


@pytest.mark.parametrize(
    ("gone", "options"),
    [
        pytest.param(gone, options, id=f"{options}-{name}")
        for row, (name, gone) in enumerate(GONE.items())
        for column, options in enumerate(OPTIONS)
        # By turns, but for the two kinds of pages, which know where rows begin.
        if column < 2 or (row + column) % 3 == 0
    ],
)
def test_rows_and_statistics_are_those_of_rewriting(
    tmp_path: Path, gone: set[int], options: dict[str, Any]
) -> None:
    patched, rewritten, num_patched = changed_with_and_without(
        tmp_path, lambda path: paged_table(path, **options), lambda it: it.delete(condition(gone))
    )
    # Without page bounds only floating-point numbers could be patched, with another compression
    # nothing: not worth it.
    is_patched = not {"compression", "write_statistics"} & options.keys()
    assert num_patched == is_patched * len({number // GROUP_ROWS for number in gone})
    expected = texts_of_floats(without(many_kinds(), gone))
    assert texts_of_floats(pq.read_table(only_path(patched))).equals(expected)
    assert rows_of(rewritten).equals(expected)
    (ours,), (theirs,) = new_adds(patched), new_adds(rewritten)
    assert ours["stats"] == theirs["stats"]
    footer = metadata_of(only_path(patched).read_bytes())
    assert footer.num_rows == expected.num_rows
    if not is_patched:
        return
    first = 0
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        rows = without(many_kinds().slice(number * GROUP_ROWS, GROUP_ROWS), gone)
        assert group.num_rows == rows.num_rows
        for leaf, name in enumerate(rows.column_names):
            check_chunk(group.column(leaf), rows.column(name))
        first += rows.num_rows
    assert first == footer.num_rows


def check_chunk(chunk: pq.ColumnChunkMetaData, values: pa.ChunkedArray[Any]) -> None:
    """What a footer says is what pyarrow finds in the rows."""
    assert chunk.num_values == len(values)
    found = chunk.statistics
    if found is None:
        return
    assert found.null_count in {None, values.null_count}
    if pa.types.is_floating(values.type):
        assert not found.has_min_max
    elif found.has_min_max:
        low, high = (one.as_py() for one in pc.min_max(values).values())
        assert (found.min, found.max) == (low, high)


def test_pages_without_removed_rows_stay_as_they_are(tmp_path: Path) -> None:
    table = paged_table(tmp_path)
    before = only_path(table).read_bytes()
    table.delete(condition(GONE["few"]))
    after = only_path(table).read_bytes()
    assert metadata_of(after).num_row_groups == 2
    assert num_copied(before, after) == 1
    for leaf in range(len(many_kinds().column_names)):
        old, new = page_bytes(before, 0, leaf), page_bytes(after, 0, leaf)
        assert len(old) == len(new) == GROUP_ROWS // PAGE_ROWS
        assert [number for number, page in enumerate(old) if page != new[number]] == [1, 5]
        assert [page.first_row for page in pages_of(after, 0, leaf)] == [
            0, 10, 18, 28, 38, 48, 57, 67, 77, 87,
        ]  # fmt: skip


def test_a_page_that_loses_all_rows_is_left_out(tmp_path: Path) -> None:
    table = paged_table(tmp_path)
    before = only_path(table).read_bytes()
    table.delete("id >= 40 and id < 50")
    after = only_path(table).read_bytes()
    old = page_bytes(before, 0, 0)
    assert page_bytes(after, 0, 0) == old[:4] + old[5:]


def test_bounds_of_pages_are_those_of_their_rows(tmp_path: Path) -> None:
    table = paged_table(tmp_path)
    table.delete("id in (50, 59, 90)")
    data = only_path(table).read_bytes()
    rows = without(many_kinds().slice(0, GROUP_ROWS), {50, 59, 90})
    starts = [page.first_row for page in pages_of(data, 0, 0)]
    found = page_bounds(data, 0, 0)
    assert found is not None
    ids = rows.column("id").to_pylist()
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(ids)], strict=True)):
        low, high = (int.from_bytes(found[n][number], "little") for n in (1, 2))
        assert (low, high) == (ids[start], ids[end - 1])
    assert found[0] == [False] * 10
    assert found[3] == [0] * 10


def test_removed_values_are_gone_from_the_file(tmp_path: Path) -> None:
    each = range(2 * GROUP_ROWS)
    rows = pa.table(
        {
            "id": pa.array(each, pa.int64()),
            "t": [f"secret-{n:05d}-" for n in each],
            "y": pa.array([f"bytes-{n:05d}-".encode() for n in each]),
            "few": [f"entry-{n:05d}-" for n in each],
        }
    )
    options: dict[str, Any] = {"compression": "none", "use_dictionary": ["few"]}
    table = paged_table(
        tmp_path, rows, **options, bloom_filter_options={"t": {"ndv": 100}, "few": {"ndv": 100}}
    )
    table.alter.set_table_properties({"delta.parquet.compression.codec": "none"})
    table = DeltaTable(tmp_path)
    old = only_path(table).read_bytes()
    table.delete("id in (0, 45, 99)")  # the first and the last one are bounds
    new = only_path(table).read_bytes()
    for name in (b"secret", b"bytes", b"entry"):
        left = [n for n in each if b"%s-%05d-" % (name, n) in new]
        assert left == [n for n in each if n not in (0, 45, 99)]
        assert all(b"%s-%05d-" % (name, n) in old for n in each)
    assert 14 not in with_chunk(new, 1)[3].value  # a Bloom filter would tell of what was there


def with_chunk(data: bytes, leaf: int) -> thrift.Struct:
    """A column chunk's fields, of the first row group."""
    found: list[thrift.Struct] = []
    with_footer(data, lambda f: found.append(f[4].value.values[0][1].value.values[leaf]))
    return found[0]


def test_every_reader_finds_the_rows_that_are_left_and_no_others(tmp_path: Path) -> None:
    gone = GONE["a whole page and some"]
    table = paged_table(tmp_path)
    table.delete(condition(gone))
    file = only_path(table)
    again = DeltaTable(tmp_path)
    left = [n for n in range(2 * GROUP_ROWS) if n not in gone]
    for number in range(0, 2 * GROUP_ROWS, 7):
        expected = [number] if number in left else []
        point = again.scan(predicate=f"id = {number}").to_table()
        assert point.column("id").to_pylist() == expected
    texts = dict(zip(*(many_kinds().column(n).to_pylist() for n in ("id", "t")), strict=True))
    for number in (28, 35, 41, 43, 99, 100):
        found = again.scan(predicate=f"t = '{texts[number]}'").to_table().column("id").to_pylist()
        assert found == ([number] if number in left and texts[number] is not None else [])
    expected = [n for n in left if 25 <= n < 60]
    is_between = (pc.field("id") >= 25) & (pc.field("id") < 60)
    filtered = ds.dataset(file).to_table(filter=is_between)
    assert filtered.column("id").to_pylist() == expected
    with duckdb.connect() as connection:
        relation = connection.read_parquet(str(file)).filter("id >= 25 and id < 60").project("id")
        assert sorted(row[0] for row in relation.fetchall()) == expected
    lazy = pl.scan_parquet(file).filter(pl.col("id").is_between(25, 59)).select("id")
    assert lazy.collect().get_column("id").to_list() == expected
    peer = deltalake.DeltaTable(tmp_path).to_pyarrow_table(
        filters=[("id", ">=", 25), ("id", "<", 60)]
    )
    assert peer.sort_by("id").column("id").to_pylist() == expected


@pytest.mark.parametrize("values", ["all NULLs go", "all others go", "NaN goes", "empty texts"])
def test_columns_of_few_values(tmp_path: Path, values: str) -> None:
    each = range(GROUP_ROWS)
    few = {20, 21, 50}
    kinds: dict[str, tuple[pa.DataType, list[Any]]] = {
        "all NULLs go": (pa.string(), [None if n in few else f"t{n}" for n in each]),
        "all others go": (pa.string(), ["x" if n in few else None for n in each]),
        "NaN goes": (pa.float64(), [float("nan") if n in few else -0.0 for n in each]),
        "empty texts": (pa.string(), ["" if n % 2 else "a" * 5_000 for n in each]),
    }
    kind, found = kinds[values]
    rows = pa.table({"id": pa.array(each, pa.int64()), "v": pa.array(found, kind)})
    patched, rewritten, num_patched = changed_with_and_without(
        tmp_path, lambda path: paged_table(path, rows), lambda it: it.delete(condition(few))
    )
    # Of long texts pages have no bounds, so that the column is encoded whole.
    assert num_patched <= 1
    assert rows_of(patched).equals(texts_of_floats(without(rows, few)))
    assert new_adds(patched)[0]["stats"] == new_adds(rewritten)[0]["stats"]


def test_required_and_nested_columns(tmp_path: Path) -> None:
    each = range(GROUP_ROWS)
    fields: list[pa.Field[Any]] = [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("t", pa.string(), nullable=False),
        pa.field("s", pa.struct([pa.field("a", pa.int64(), nullable=False)]), nullable=False),
        pa.field("l", pa.list_(pa.int32())),
        pa.field("p", pa.map_(pa.string(), pa.int64())),
    ]
    values: list[list[Any]] = [
        list(each),
        [f"some text {n}" * 9 for n in each],
        [{"a": n} for n in each],
        [None if n % 5 == 0 else [n] * (n % 3) for n in each],
        [[("k", n)] * (n % 2) for n in each],
    ]
    arrays = [pa.array(one, field.type) for one, field in zip(values, fields, strict=True)]
    rows = pa.table(arrays, schema=pa.schema(fields))
    properties = WriterProperties(
        data_page_row_count_limit=PAGE_ROWS,
        write_batch_size=PAGE_ROWS,
    )

    def make(path: Path) -> None:
        table = DeltaTable.create(path, Schema.from_arrow(rows.schema))
        write_deltalake(table, rows, mode="append", writer_properties=properties)

    patched, rewritten, num_patched = changed_with_and_without(
        tmp_path, make, lambda it: it.delete("id in (3, 77)")
    )
    assert num_patched <= 1
    expected = without(rows, {3, 77})
    assert rows_of(patched).to_pylist() == expected.to_pylist()
    assert pq.read_table(only_path(patched)).to_pylist() == expected.to_pylist()
    assert new_adds(patched)[0]["stats"] == new_adds(rewritten)[0]["stats"]


def test_vectors_are_purged_and_files_are_changed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = paged_table(tmp_path)
    gone: set[int] = set()
    with counting_patches(monkeypatch) as patched:
        for number in (5, 6, 47, 99, 151):
            table.delete(f"id = {number}")
            gone.add(number)
            assert rows_of(table).equals(texts_of_floats(without(many_kinds(), gone)))
        assert patched == [0, 0, 0, 0, 1]
        table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
        DeltaTable(tmp_path).delete("id in (22, 160)")
        DeltaTable(tmp_path).optimize.purge()
        gone |= {22, 160}
        assert len(patched) == 7
    again = DeltaTable(tmp_path)
    assert rows_of(again).equals(texts_of_floats(without(many_kinds(), gone)))
    again.update({"t": "'new'"}, predicate="id = 33")
    DeltaTable(tmp_path).optimize.z_order(["i"])
    found = rows_of(again).sort_by("id")
    expected = without(many_kinds(), gone)
    assert found.column("id").equals(expected.column("id"))
    assert found.column("w").equals(expected.column("w"))


def test_change_data_and_metrics(tmp_path: Path) -> None:
    table = paged_table(tmp_path)
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    table = DeltaTable(tmp_path)
    metrics = table.delete("id in (12, 13)")
    assert (metrics["num_deleted_rows"], metrics["num_copied_rows"]) == (2, 198)
    feed = DeltaTable(tmp_path).load_cdf(starting_version=2).read_all().sort_by("id")
    assert feed.column("id").to_pylist() == [12, 13]
    assert feed.column("_change_type").to_pylist() == ["delete", "delete"]
    assert feed.column("w").equals(many_kinds().slice(12, 2).column("w"))


def test_bounds_that_another_writer_has_cut_are_not_said_to_be_exact(tmp_path: Path) -> None:
    """Its row groups are copied into a file of ours, which is then patched."""
    each = range(2 * GROUP_ROWS)
    texts = [f"{'k' * 70}{n:04d}" for n in each]
    rows = pa.table({"id": pa.array(each, pa.int64()), "t": texts})
    plain = deltalake.ColumnProperties(dictionary_enabled=False, statistics_enabled="PAGE")
    properties = deltalake.WriterProperties(
        max_row_group_size=GROUP_ROWS,
        data_page_row_count_limit=PAGE_ROWS,
        write_batch_size=PAGE_ROWS,
        compression="SNAPPY",
        default_column_properties=plain,
    )
    deltalake.write_deltalake(tmp_path, rows, writer_properties=properties)
    for number in (5, 105):
        DeltaTable(tmp_path).delete(f"id = {number}")
    data = only_path(DeltaTable(tmp_path)).read_bytes()
    statistics = with_chunk_of(data, 1, 1)[3].value[12].value
    low, high = statistics[6].value, statistics[5].value
    is_exact = 7 in statistics and statistics[7].value is True
    assert not is_exact or (low.decode() in texts and high.decode() in texts)


def with_chunk_of(data: bytes, group: int, leaf: int) -> thrift.Struct:
    found: list[thrift.Struct] = []
    with_footer(data, lambda f: found.append(f[4].value.values[group][1].value.values[leaf]))
    return found[0]


def test_a_masked_row_group_of_more_rows_than_can_be_marked_is_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": list(range(100))}), tmp_path / "old.parquet", row_group_size=50)
    convert_to_deltalake(tmp_path)
    DeltaTable(tmp_path).alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    DeltaTable(tmp_path).delete("id in (5, 70)")

    def lie(footer: thrift.Struct) -> None:
        footer[4].value.values[0][3] = Value(thrift.INT64, 1 << 62)

    path = tmp_path / "old.parquet"
    path.write_bytes(with_footer(path.read_bytes(), lie))
    with pytest.raises(DataFileUnreadableError, match="expected fewer than 2147483648 rows"):
        DeltaTable(tmp_path).scan().to_table()
    with pytest.raises(DataFileUnreadableError, match="expected fewer than 2147483648 rows"):
        DeltaTable(tmp_path).optimize.purge()


@pytest.mark.parametrize("rows", [(0, 1 << 40), (0, 1 << 62)])
def test_row_groups_of_more_rows_than_can_be_counted(rows: tuple[int, int]) -> None:
    assert not is_worth_patching(DeletionBitmap.from_range(5, 6), rows)


def test_a_store_that_is_reached_by_requests(tmp_path: Path) -> None:
    table = paged_table(tmp_path)
    paths = [path for path in tmp_path.rglob("*") if path.is_file()]
    files = {str(path.relative_to(tmp_path)): path.read_bytes() for path in paths}
    found = []
    stores = [DictStore(dict(files)) for _ in range(2)]
    for is_on, inner in zip((True, False), stores, strict=True):
        store = CountingStore(inner)
        with pytest.MonkeyPatch.context() as patch:
            patching(patch, is_on=is_on)
            DeltaTable.from_context(utc_context(store)).delete("id in (12, 13, 57)")
        found.append(store)
    table.delete("id in (12, 13, 57)")
    (new,) = [
        data
        for path, data in stores[0].files.items()
        if path.endswith(".parquet") and path not in files
    ]
    assert new == only_path(table).read_bytes()
    verbs = [[(call.verb, call.paths) for call in one.calls] for one in found]
    # This file is so small that it came whole with its footer, of which copying makes no use;
    # row groups of `LEAST_BYTES` are in no such file.
    assert len(verbs[0]) <= len(verbs[1]) + 1, verbs


def test_an_index_with_rows_of_another_kind_is_as_good_as_none(tmp_path: Path) -> None:
    table = paged_table(tmp_path)
    file = only_path(table)
    data = file.read_bytes()
    chunk = with_chunk(data, 0)
    start, size = chunk[4].value, chunk[5].value
    index = thrift.read_struct(data[start : start + size])[0]
    index[1].value.values[3][3] = Value(thrift.LIST, thrift.Elements(thrift.INT32, []))
    new = thrift.write_struct(index)
    assert len(new) <= size
    file.write_bytes(data[:start] + new + bytes(size - len(new)) + data[start + size :])
    table.delete("id = 12")
    assert rows_of(table).equals(texts_of_floats(without(many_kinds(), {12})))


def test_column_mapping_and_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = many_kinds().append_column("p", pa.array(["a", "b"] * GROUP_ROWS))
    properties = WriterProperties(
        data_page_row_count_limit=PAGE_ROWS, write_batch_size=PAGE_ROWS, compression="SNAPPY"
    )
    write_deltalake(
        tmp_path,
        rows,
        partition_by=["p"],
        configuration={
            "delta.columnMapping.mode": "name",
            "delta.enableRowTracking": "true",
        },
        writer_properties=properties,
    )
    names = ["id", "t", "p", "_metadata.row_id", "_metadata.row_commit_version"]

    def told() -> list[Any]:
        found = DeltaTable(tmp_path).scan(columns=names).to_table().sort_by("id")
        return list(found.to_pylist())

    before = told()
    gone: set[int] = set()
    with counting_patches(monkeypatch):
        for number in (4, 13, 90, 91):
            DeltaTable(tmp_path).delete(f"id = {number}", writer_properties=None)
            gone.add(number)
            assert told() == [row for row in before if row["id"] not in gone]
    DeltaTable(tmp_path).alter.add_columns(Field("more", "long"))
    assert told() == [row for row in before if row["id"] not in gone]


def test_row_ids_that_a_file_holds_stay_with_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = WriterProperties(data_page_row_count_limit=100, write_batch_size=100)
    for first in (0, 2000):
        rows = pa.table({"id": [first + n for n in range(2000)], "x": [n / 7 for n in range(2000)]})
        write_deltalake(
            tmp_path,
            rows,
            mode="append",
            configuration={"delta.enableRowTracking": "true"},
            writer_properties=properties,
        )
    names = ["id", "x", "_metadata.row_id", "_metadata.row_commit_version"]

    def told() -> list[Any]:
        found = DeltaTable(tmp_path).scan(columns=names).to_table().sort_by("id")
        return list(found.to_pylist())

    before = told()
    monkeypatch.setattr(kept_groups, "LEAST_COMPACTED_BYTES", None)  # so that ids are written
    DeltaTable(tmp_path).optimize.compact(writer_properties=properties)
    assert told() == before
    with counting_patches(monkeypatch) as patched:
        DeltaTable(tmp_path).delete("id in (7, 3001)")
        DeltaTable(tmp_path).delete("id = 8")
    assert patched == [0, 0]
    assert told() == [row for row in before if row["id"] not in {7, 8, 3001}]


def test_a_merge_that_deletes_some_and_updates_others(tmp_path: Path) -> None:
    table = paged_table(tmp_path)
    table.delete("id = 163")
    source = pa.table({"id": pa.array([12, 57, 150], pa.int64())})
    merger = DeltaTable(tmp_path).merge(source, "target.id = source.id", "source", "target")
    merger.when_matched_delete("source.id = 150").when_matched_update({"i": "7"}).execute()
    expected = without(many_kinds(), {150, 163}).to_pylist()
    for number in (12, 57):
        expected[number]["i"] = 7
    assert rows_of(table).equals(
        texts_of_floats(pa.Table.from_pylist(expected, schema=many_kinds().schema))
    )


def test_compaction_of_files_with_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = many_kinds()
    for number in range(2):
        paged_file(tmp_path / f"{number}.parquet", rows.slice(number * GROUP_ROWS, GROUP_ROWS))
    convert_to_deltalake(tmp_path)
    DeltaTable(tmp_path).alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    DeltaTable(tmp_path).delete("id in (12, 13, 150)")
    assert len(DeltaTable(tmp_path).file_uris()) == 2
    with counting_patches(monkeypatch) as patched:
        DeltaTable(tmp_path).optimize.compact()
    assert len(patched) == 2
    found = DeltaTable(tmp_path)
    assert len(found.file_uris()) == 1
    expected = texts_of_floats(without(rows, {12, 13, 150}))
    assert texts_of_floats(pq.read_table(only_path(found))).sort_by("id").equals(expected)


def test_files_of_another_compression_are_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = paged_table(tmp_path, compression="zstd")
    with counting_patches(monkeypatch) as patched:
        table.delete("id in (3, 77)")
    assert patched == []  # new pages would be compressed in another way
    assert rows_of(table).equals(texts_of_floats(without(many_kinds(), {3, 77})))


def test_large_row_groups_are_read_and_written() -> None:
    most = PATCHING.most_rows
    assert is_worth_patching(DeletionBitmap([1]), (0, most))
    assert not is_worth_patching(DeletionBitmap([1]), (0, most + 1))  # Arrow would make two of it


def test_columns_of_other_numbers_of_rows_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = paged_table(tmp_path, use_dictionary=["i"])
    whole = encoded_groups

    def shorter(rows: pa.Table, **options: Any) -> Any:
        return whole(rows.slice(1), **options)

    monkeypatch.setattr("deltalog.data.write.patched_groups.encoded_groups", shorter)
    with pytest.raises(InternalError, match="in a row group of 99"):
        table.delete("id = 3")
    assert rows_of(table).equals(texts_of_floats(many_kinds()))
    assert len(list(tmp_path.glob("*.parquet"))) == 1


@pytest.mark.parametrize("size", [-1, 1 << 40])
def test_a_page_of_an_impossible_size_is_an_error(tmp_path: Path, size: int) -> None:
    table = paged_table(tmp_path)
    path = only_path(table)
    data = path.read_bytes()
    (start, num_bytes, _), *_ = pages_of(data, 0, 0)
    header, end = thrift.read_struct(data[start : start + num_bytes])
    header[2] = Value(thrift.INT32, size)
    stored = _Bytes(thrift.write_struct(header) + data[start + end : start + num_bytes])
    chunk = StoredChunk(
        {3: Value(thrift.STRUCT, {9: Value(thrift.INT64, 0)})}, 0, stored.size_bytes, PAGE_ROWS
    )
    with pytest.raises(DataFileUnreadableError, match=f"a page of {size} bytes|a page of"):
        flat_pages(chunk, PAGE_ROWS, stored)


class _Bytes(EncodedBytes):
    def __init__(self, data: bytes) -> None:
        super().__init__(pa.py_buffer(data))


def test_encodings_that_are_no_numbers_are_a_dictionary() -> None:
    odd = Value(thrift.LIST, thrift.Elements(thrift.STRUCT, [{}]))
    chunk = StoredChunk({3: Value(thrift.STRUCT, {2: odd})}, 4, 5, 1)
    assert has_dictionary(chunk)


@pytest.mark.parametrize("writer", ["Polars", "DuckDB"])
def test_files_of_others(tmp_path: Path, writer: str) -> None:
    rows = many_kinds().select(["id", "i", "x", "t", "b", "d"])

    def make(path: Path) -> None:
        path.mkdir()
        if writer == "Polars":
            frame = pl.from_arrow(rows)
            assert isinstance(frame, pl.DataFrame)
            frame.write_parquet(path / "old.parquet", row_group_size=100, data_page_size=100)
        else:
            with duckdb.connect() as connection:
                connection.register("rows", rows)
                connection.execute(f"copy rows to '{path / 'old.parquet'}' (format parquet)")
        convert_to_deltalake(path)

    patched, rewritten, _ = changed_with_and_without(
        tmp_path, make, lambda it: it.delete("id in (12, 13, 57)")
    )
    expected = texts_of_floats(without(rows, {12, 13, 57}))
    assert rows_of(patched).to_pylist() == expected.to_pylist()
    assert new_adds(patched)[0]["stats"] == new_adds(rewritten)[0]["stats"]
