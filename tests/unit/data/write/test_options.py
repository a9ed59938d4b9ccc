from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.data.write import (
    BloomFilterProperties,
    ColumnProperties,
    WriterProperties,
    write_files,
)
from deltalog.data.write.options import dictionary_leaves
from deltalog.errors import InvalidInputError
from deltalog.schema import ArrayType, Field, StructType
from deltalog.storage.parquet.paged import PagedReader
from deltalog.storage.parquet.reader import open_parquet
from deltalog.storage.parquet.sink import LIMITS_PAGE_ROWS
from tests.support.writes import parquet_file, spec_of, table

INNER = StructType([Field("x", "long")])
FIELDS = (Field("a", "long"), Field("s", INNER), Field("l", ArrayType(INNER)))
DATA = pa.table(
    {"a": [1, 1], "s": [{"x": 2}] * 2, "l": [[{"x": 3}]] * 2},
)


def columns(
    properties: WriterProperties | None = None, mapping: str = "none", **table_properties: str
) -> tuple[str, dict[str, Any]]:
    """The file's name, and its column chunks by their place: a, s.x and l.element.x."""
    spec = spec_of(
        table(*FIELDS, mapping=mapping, **table_properties), writer_properties=properties
    )
    (add,) = write_files(spec, DATA).adds
    group = parquet_file(spec, add.path).metadata.row_group(0)
    return add.path, dict(zip("asl", map(group.column, range(3)), strict=True))


@pytest.mark.protocol("B-38")
@pytest.mark.parametrize(
    ("properties", "table_properties", "codec", "suffix"),
    [
        (None, {}, "SNAPPY", "-c000.snappy.parquet"),
        (None, {"parquet__compression__codec": "zstd"}, "ZSTD", "-c000.zstd.parquet"),
        (None, {"parquet__compression__codec": "none"}, "UNCOMPRESSED", "-c000.parquet"),
        (WriterProperties(compression="GZIP"), {}, "GZIP", "-c000.gz.parquet"),
        (WriterProperties(compression="LZ4_RAW"), {}, "LZ4", "-c000.lz4.parquet"),
        (
            WriterProperties(compression="zstd", compression_level=3),
            {"parquet__compression__codec": "gzip"},
            "ZSTD",
            "-c000.zstd.parquet",
        ),
    ],
)
def test_compression(
    properties: WriterProperties | None, table_properties: dict[str, str], codec: str, suffix: str
) -> None:
    path, found = columns(properties, **table_properties)
    assert {chunk.compression for chunk in found.values()} == {codec}
    assert path.endswith(suffix)


def test_an_unknown_compression_of_the_table_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"delta\.parquet\.compression\.codec.*'rar'"):
        columns(parquet__compression__codec="rar")


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_columns_have_options_of_their_own(mapping: str) -> None:
    bloom = BloomFilterProperties(set_bloom_filter_enabled=True, fpp=0.01, ndv=10)
    _, found = columns(
        WriterProperties(
            default_column_properties=ColumnProperties(dictionary_enabled=False),
            column_properties={
                "A": ColumnProperties(encoding="DELTA_BINARY_PACKED", statistics_enabled="NONE"),
                "l.element": ColumnProperties(
                    dictionary_enabled=True, bloom_filter_properties=bloom
                ),
            },
        ),
        mapping=mapping,
    )
    assert "DELTA_BINARY_PACKED" in found["a"].encodings
    assert not found["a"].is_stats_set
    assert found["s"].is_stats_set
    assert "RLE_DICTIONARY" not in found["s"].encodings
    assert "RLE_DICTIONARY" in found["l"].encodings


@pytest.mark.parametrize(
    ("default", "has_index"),
    [
        (None, True),
        (ColumnProperties(dictionary_enabled=False), True),
        (ColumnProperties(statistics_enabled="PAGE"), True),
        (ColumnProperties(statistics_enabled="CHUNK"), False),
        (ColumnProperties(statistics_enabled="NONE"), False),
    ],
)
def test_files_say_where_their_pages_are(
    default: ColumnProperties | None, *, has_index: bool
) -> None:
    properties = None if default is None else WriterProperties(default_column_properties=default)
    _, found = columns(properties)
    assert {chunk.has_offset_index for chunk in found.values()} == {has_index}
    assert {chunk.has_column_index for chunk in found.values()} == {has_index}


@pytest.mark.skipif(not LIMITS_PAGE_ROWS, reason="pyarrow 22 sets no number of rows")
@pytest.mark.parametrize(
    ("properties", "starts"),
    [
        (None, (0, 5_000, 10_000, 12_000)),
        (WriterProperties(compression="ZSTD"), (0, 5_000, 10_000, 12_000)),
        (WriterProperties(data_page_row_count_limit=9_000), (0, 9_000, 12_000)),
    ],
)
def test_pages_are_small_unless_the_caller_says_otherwise(
    properties: WriterProperties | None, starts: tuple[int, ...]
) -> None:
    spec = spec_of(table(Field("a", "long")), writer_properties=properties)
    (add,) = write_files(spec, pa.table({"a": range(12_000)})).adds
    reader = open_parquet(spec.store, add.path, size_bytes=add.size_bytes)
    paged = PagedReader(spec.store, reader)
    paged.load_index([0], [0], [0])
    known = paged.bounds(0, 0)
    assert known is not None
    assert known[0].rows == starts


def test_options_of_a_column_that_is_not_there_are_refused() -> None:
    properties = WriterProperties(column_properties={"b": ColumnProperties()})
    with pytest.raises(InvalidInputError, match=r"no column 'b' .* the columns are a, s\.x, l"):
        columns(properties)


def test_row_groups_have_a_largest_size() -> None:
    spec = spec_of(table(*FIELDS), writer_properties=WriterProperties(max_row_group_size=2))
    (add,) = write_files(spec, pa.concat_tables([DATA] * 3)).adds
    footer = parquet_file(spec, add.path).metadata
    assert [footer.row_group(n).num_rows for n in range(footer.num_row_groups)] == [2, 2, 2]


def test_row_groups_of_partitions_have_a_largest_size_too() -> None:
    spec = spec_of(
        table(*FIELDS, partition_by=["a"]), writer_properties=WriterProperties(max_row_group_size=2)
    )
    batches = [pa.concat_tables([DATA] * 3).slice(start, 3) for start in (0, 3)]
    (add,) = write_files(spec, [batches[0].slice(0, 1), *batches]).adds
    footer = parquet_file(spec, add.path).metadata
    sizes = [footer.row_group(n).num_rows for n in range(footer.num_row_groups)]
    assert max(sizes) == 2
    assert sum(sizes) == 7


def test_dictionaries_are_left_out_where_values_differ() -> None:
    spec = spec_of(table(Field("id", "long"), Field("few", "long"), Field("rare", "long")))
    rows = 2_000
    data: dict[str, Any] = {
        "id": list(range(rows)),
        "few": [number % 10 for number in range(rows)],
        "rare": [None] * (rows - 1) + [1],
    }
    (add,) = write_files(spec, pa.table(data)).adds
    group = parquet_file(spec, add.path).metadata.row_group(0)
    has = ["RLE_DICTIONARY" in group.column(n).encodings for n in range(3)]
    assert has == [False, True, True]


def test_nested_columns_are_not_sampled() -> None:
    numbers = list(range(5_000))
    rows = pa.table({"n": numbers, "s": [{"x": number} for number in numbers]})
    assert dictionary_leaves(rows, []) == ["s"]


@pytest.mark.parametrize(
    ("codec", "level"),
    [("gzip", 0), ("gzip", 10), ("brotli", 0), ("brotli", 11), ("zstd", 1), ("zstd", 22)],
)
def test_levels_that_a_codec_has(codec: str, level: int) -> None:
    properties = WriterProperties(compression=codec, compression_level=level)
    assert properties.compression_level == level
    assert properties.compression == f"{codec.upper()}({level})"
    _, found = columns(properties)
    assert {column.compression for column in found.values()} == {codec.upper()}


def test_compressions_have_one_form() -> None:
    assert WriterProperties(compression="zstd").compression == "ZSTD(1)"
    assert WriterProperties(compression="Snappy").compression == "SNAPPY"
    assert WriterProperties(compression="GZIP(3)").compression_level == 3
    assert WriterProperties().compression is None


def test_options_may_be_changed_and_are_checked_where_they_are_used() -> None:
    properties = WriterProperties()
    properties.compression = "ZSTD"
    _, found = columns(properties)
    assert {column.compression for column in found.values()} == {"ZSTD"}
    properties.max_row_group_size = 0
    with pytest.raises(InvalidInputError, match="max_row_group_size"):
        columns(properties)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WriterProperties(compression="rar"), "compression: expected one of BROTLI"),
        (lambda: WriterProperties(compression_level=3), "needs compression"),
        (lambda: WriterProperties(compression="SNAPPY", compression_level=3), "has no levels"),
        (lambda: WriterProperties(compression="ZSTD", compression_level=23), "from 1 to 22"),
        (lambda: WriterProperties(compression="ZSTD", compression_level=0), "from 1 to 22"),
        (lambda: WriterProperties(compression="GZIP", compression_level=11), "from 0 to 10"),
        (lambda: WriterProperties(compression="BROTLI", compression_level=12), "from 0 to 11"),
        (lambda: WriterProperties(compression="ZSTD(x)"), r"a codec such as ZSTD\(3\)"),
        (lambda: WriterProperties(max_row_group_size=0), "max_row_group_size: expected a number"),
        (lambda: WriterProperties(max_row_group_size=2**63), r"max_row_group_size: .* below 2\^63"),
        (lambda: WriterProperties(data_page_size_limit=2**70), r"data_page_size_limit: .* 2\^63"),
        (lambda: ColumnProperties(encoding="RLE9"), "encoding: expected one of"),
        (lambda: ColumnProperties(dictionary_enabled=True, encoding="PLAIN"), "give one of"),
        (lambda: ColumnProperties(statistics_enabled="SOME"), "expected one of CHUNK"),
        (lambda: BloomFilterProperties(True, fpp=1.0), "between 0 and 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()


@pytest.mark.parametrize("key", ["s.\u03c3", "S.\u03c3", "s.Σ", "Σ.k", "\u03c3.\u212a", "Σ"])
def test_names_of_a_path_are_compared_one_by_one(key: str) -> None:
    """What is lower of a Σ depends on the letters around it, and a dot is none."""
    fields = (
        Field("s", StructType([Field("Σ", "long")])),
        Field("\u03c3", StructType([Field("\u212a", "long")])),
    )
    data = pa.table({"s": [{"Σ": 1}] * 2, "\u03c3": [{"\u212a": 1}] * 2})
    chosen = WriterProperties(column_properties={key: ColumnProperties(dictionary_enabled=False)})
    spec = spec_of(table(*fields), writer_properties=chosen)
    (add,) = write_files(spec, data).adds
    group = parquet_file(spec, add.path).metadata.row_group(0)
    plain = [n for n in range(2) if "RLE_DICTIONARY" not in group.column(n).encodings]
    assert plain == [0 if key.lower().startswith("s.") else 1]
