"""Parquet writer options with deltalake's names, and their translation to pyarrow's options.

This module also determines the defaults from table properties.

Protocol: Table Properties (`delta.parquet.compression.codec`)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from deltalog._util.argument_types import checks_types
from deltalog._util.escaping import path_key
from deltalog._util.similar_names import SimilarNames, suggests_arguments
from deltalog.errors import InvalidInputError
from deltalog.storage.parquet.sink import LIMITS_PAGE_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog.protocol.actions.properties import TableProperties
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.store import Store

Leaf = tuple[str, ...]


@checks_types
@suggests_arguments
@dataclass(slots=True)
class BloomFilterProperties:
    """A column's Bloom filter.

    Args:
        set_bloom_filter_enabled: whether the column has a Bloom filter.
        fpp: false positive probability, between 0 and 1.
        ndv: expected number of distinct values in a row group.
    """

    set_bloom_filter_enabled: bool | None
    fpp: float | None = None
    ndv: int | None = None

    def __post_init__(self) -> None:
        """Raise if the probability is out of range."""
        if self.fpp is not None and not 0 < self.fpp < 1:
            raise InvalidInputError(f"fpp: expected a number between 0 and 1, found {self.fpp!r}")


@checks_types
@suggests_arguments
@dataclass(slots=True)
class ColumnProperties(SimilarNames):
    """Options of one column.

    Args:
        dictionary_enabled: whether to use dictionary encoding.
        statistics_enabled: `NONE`, `CHUNK` or `PAGE`, for statistics in the Parquet footer, which
            Delta does not use. Floating-point columns never have them, because Arrow ignores NaN in
            bounds. Files have a page index unless all columns set `NONE` or `CHUNK`.
        bloom_filter_properties: a Bloom filter.
        encoding: the encoding if no dictionary is used: `PLAIN`, `RLE` (booleans),
            `DELTA_BINARY_PACKED`, …
    """

    dictionary_enabled: bool | None = None
    statistics_enabled: str | None = None
    bloom_filter_properties: BloomFilterProperties | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        """Raise for unknown options, or for options that exclude each other."""
        _check_word("statistics_enabled", self.statistics_enabled, _STATISTICS)
        _check_word("encoding", self.encoding, _ENCODINGS)
        if self.encoding is not None and self.dictionary_enabled:
            raise InvalidInputError(
                "cannot use both encoding and dictionary_enabled=True for a column: give "
                "one of them"
            )


@suggests_arguments
@dataclass(slots=True)
class WriterProperties(SimilarNames):
    """Options of Parquet files; None means the table's property or pyarrow's default.

    Attributes can be changed; they are checked again when files are written.

    Args:
        data_page_size_limit: maximum size of a data page in bytes.
        dictionary_page_size_limit: maximum size of a dictionary in bytes; values that exceed it are
            encoded without the dictionary.
        data_page_row_count_limit: maximum number of rows of a data page; 5,000 by default (20,000
            before pyarrow 23).
        write_batch_size: number of values that are encoded at a time.
        max_row_group_size: maximum number of rows of a row group.
        compression: `UNCOMPRESSED`, `SNAPPY`, `GZIP`, `BROTLI`, `LZ4`, `ZSTD` or `LZ4_RAW`. If the
            codec has levels, the attribute also contains the level: `ZSTD(3)`.
        compression_level: the level for `GZIP` (0 to 10; pyarrow supports 1 to 9), `BROTLI` and
            `ZSTD`.
        statistics_truncate_length: accepted for compatibility with deltalake, but has no effect:
            pyarrow omits long values from the footer, and a table property sets the truncation of
            Delta's statistics.
        default_column_properties: the properties of columns that are not in `column_properties`.
        column_properties: the properties by column name; a dotted path means a field of a struct.
    """

    data_page_size_limit: int | None = None
    dictionary_page_size_limit: int | None = None
    data_page_row_count_limit: int | None = None
    write_batch_size: int | None = None
    max_row_group_size: int | None = None
    compression: str | None = None
    compression_level: int | None = None
    statistics_truncate_length: int | None = None
    default_column_properties: ColumnProperties | None = None
    column_properties: Mapping[str, ColumnProperties] | None = None

    def __post_init__(self) -> None:
        """Raise for invalid sizes, and for unknown compressions and levels."""
        if self.compression_level is not None and self.compression is None:
            raise InvalidInputError(
                "compression_level needs compression, because each codec has its own levels"
            )
        self.check()
        if self.compression is not None:
            word, level = _codec_and_level(self.compression, self.compression_level)
            self.compression = word if level is None else f"{word}({level})"
            self.compression_level = level

    def check(self) -> None:
        """Raise InvalidInputError for options that are out of range."""
        for name in _SIZES:
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or not 1 <= value <= MAX_LONG):
                raise InvalidInputError(
                    f"{name}: expected a number above 0 and below 2^63, found {value!r}"
                )
        if self.compression is not None:
            _codec_and_level(self.compression, self.compression_level)


def codec_of(writer: WriterProperties | None, table: TableProperties) -> str:
    """Return the compression of data files, as named in pyarrow.

    Raises:
        InvalidInputError: the table's property is not a supported codec.
    """
    if writer is not None and writer.compression is not None:
        word, _ = _codec_and_level(writer.compression)
        return _CODECS[word]
    text = table.parquet_compression_codec or _DEFAULT_CODEC
    _check_word("table property delta.parquet.compression.codec", text, _CODECS)
    return _CODECS[text.upper()]


def file_suffix(codec: str) -> str:
    """Return the suffix of data files; as in other engines, it contains the compression."""
    return f"{_SUFFIXES.get(codec, f'.{codec}')}.parquet"


def parquet_options(
    writer: WriterProperties | None,
    table: TableProperties,
    leaves: Sequence[tuple[Leaf, str]] = (),
) -> dict[str, Any]:
    """Return the arguments for `pyarrow.parquet.ParquetWriter`.

    Args:
        writer: options of the caller.
        table: properties of the table.
        leaves: logical path and Parquet's dotted path of each leaf column, for options of single
            columns.

    Raises:
        InvalidInputError: an option is for an unknown column, or not supported by pyarrow.
    """
    codec = codec_of(writer, table)
    options: dict[str, Any] = {
        "compression": codec,
        # An Arrow schema in the file would contain names and types that readers must not use.
        "store_schema": False,
        # Pages with checksums can be copied into other files without being decoded.
        "write_page_checksum": True,
        # Like Spark, store small decimals as integers, which every reader supports.
        "store_decimal_as_integer": True,
        # With a page index, readers can decode only the pages that contain the requested rows.
        "write_page_index": True,
    }
    if LIMITS_PAGE_ROWS:
        options["max_rows_per_page"] = _PAGE_ROWS
    if writer is None:
        return options
    writer.check()
    level = None
    if writer.compression is not None:
        _, level = _codec_and_level(writer.compression)
    if level is not None and codec in _PYARROW_LEVELS:
        low, high = _PYARROW_LEVELS[codec]
        level = min(max(level, low), high)
    named = {
        "compression_level": level,
        "data_page_size": writer.data_page_size_limit,
        "dictionary_pagesize_limit": writer.dictionary_page_size_limit,
        "max_rows_per_page": writer.data_page_row_count_limit,
        "write_batch_size": writer.write_batch_size,
    }
    options.update({name: value for name, value in named.items() if value is not None})
    options.update(_column_options(writer, leaves))
    return options


def dictionary_leaves(rows: pa.Table, leaves: Sequence[tuple[Leaf, str]]) -> list[str]:
    """Return the leaf columns to write with a dictionary, chosen by a sample of their values.

    If nearly all values are distinct, a dictionary makes files larger, and building it takes longer
    than the rest of the encoding.

    Args:
        rows: the first rows of a write, with physical names.
        leaves: see `parquet_options`.
    """
    sample = rows.slice(0, _SAMPLE_ROWS)
    distinct = {
        field.name
        for field, values in zip(sample.schema, sample.columns, strict=True)
        if not pa.types.is_nested(field.type) and _differ(values)
    }
    known = [leaf for _, leaf in leaves]
    roots = {leaf.partition(".")[0] for leaf in known}
    more = [name for name in rows.schema.names if name not in roots and name not in known]
    return [leaf for leaf in (*known, *more) if leaf not in distinct]


def _differ(values: pa.ChunkedArray[Any]) -> bool:
    count = len(values) - values.null_count
    if count < _MIN_SAMPLE_ROWS:
        return False
    # `unique` is twice as fast as `count_distinct`, which makes a hash table for each chunk.
    distinct = values.unique()
    return len(distinct) - distinct.null_count > _MOST_DISTINCT * count


def _column_options(writer: WriterProperties, leaves: Sequence[tuple[Leaf, str]]) -> dict[str, Any]:
    found = dict(_properties_by_leaf(writer, leaves))
    if not found:
        return {}
    options: dict[str, Any] = {
        # pyarrow expects lists of the columns for which the option is enabled.
        "use_dictionary": [
            leaf
            for leaf, column in found.items()
            if column.dictionary_enabled is not False and column.encoding is None
        ],
        "write_statistics": [
            leaf for leaf, column in found.items() if _upper(column.statistics_enabled) != "NONE"
        ],
        "write_page_index": any(
            _upper(column.statistics_enabled) in {None, "PAGE"} for column in found.values()
        ),
    }
    encodings = {
        leaf: column.encoding.upper()
        for leaf, column in found.items()
        if column.encoding is not None
    }
    if encodings:
        options["column_encoding"] = encodings
    blooms = {
        leaf: _bloom_options(column.bloom_filter_properties)
        for leaf, column in found.items()
        if column.bloom_filter_properties is not None
        and column.bloom_filter_properties.set_bloom_filter_enabled
    }
    if blooms:
        options["bloom_filter_options"] = blooms
    return options


def _properties_by_leaf(
    writer: WriterProperties, leaves: Sequence[tuple[Leaf, str]]
) -> Iterator[tuple[str, ColumnProperties]]:
    named = dict(writer.column_properties or {})
    default = writer.default_column_properties
    if not named and default is None:
        return
    by_path = {_dotted_key(key): key for key in reversed(named)}
    used: set[str] = set()
    for path, leaf in leaves:
        names = [_dotted_key(".".join(path[:length])) for length in range(len(path), 0, -1)]
        chosen = next((by_path[name] for name in names if name in by_path), None)
        if chosen is not None:
            used.add(chosen)
        yield leaf, named[chosen] if chosen is not None else (default or ColumnProperties())
    unknown = sorted(named.keys() - used)
    if unknown:
        raise InvalidInputError(
            f"column_properties: there is no column {', '.join(map(repr, unknown))} in data "
            f"files; the columns are {', '.join('.'.join(path) for path, _ in leaves)}"
        )


def _dotted_key(path: str) -> tuple[str, ...]:
    """Return a key for comparing dotted paths, ignoring case."""
    return path_key(path.split("."))


def _bloom_options(bloom: BloomFilterProperties) -> dict[str, Any]:
    options = {"ndv": bloom.ndv, "fpp": bloom.fpp}
    return {name: value for name, value in options.items() if value is not None}


def _check_word(name: str, text: str | None, words: Mapping[str, object] | frozenset[str]) -> None:
    if text is not None and str(text).upper() not in words:
        raise InvalidInputError(
            f"{name}: expected one of {', '.join(sorted(words))}, found {text!r}"
        )


def _codec_and_level(text: str, given: int | None = None) -> tuple[str, int | None]:
    """Return codec and level of a string such as `ZSTD` or `zstd(3)`; the level may be None.

    Raises:
        InvalidInputError: the codec or the level does not exist.
    """
    word, _, inner = str(text).upper().partition("(")
    _check_word("compression", word, _CODECS)
    own = inner.removesuffix(")")
    if inner and not own.isdecimal():
        raise InvalidInputError(f"compression: expected a codec such as ZSTD(3), found {text!r}")
    codec = _CODECS[word]
    level = given if given is not None else int(own) if own else None
    low, high = _LEVELS.get(codec, (0, -1))
    if level is not None and not low <= level <= high:
        expected = f"a level from {low} to {high}" if high >= low else "none, it has no levels"
        raise InvalidInputError(
            f"compression_level of {word}: expected {expected}, found {level!r}"
        )
    return word, _DEFAULT_LEVELS.get(codec) if level is None else level


def _upper(text: str | None) -> str | None:
    return None if text is None else text.upper()


MAX_LONG: Final = (1 << 63) - 1
"""The largest number that Parquet and Arrow accept as a size."""
_DEFAULT_CODEC: Final = "SNAPPY"
# The maximum number of rows per page. Readers decode a whole page to get one row. With pyarrow's
# default of 20,000, files are 0.6 % smaller (Snappy), but a look-up takes 50 % longer.
_PAGE_ROWS: Final = 5_000
# The number of sampled rows. If 90 % of the sampled values are distinct, the column has about
# 80,000 distinct values. About this number fits in a dictionary page.
_SAMPLE_ROWS: Final = 16_384
_MIN_SAMPLE_ROWS: Final = 1_000
_MOST_DISTINCT: Final = 0.9
_SIZES: Final = (
    "data_page_size_limit",
    "dictionary_page_size_limit",
    "data_page_row_count_limit",
    "write_batch_size",
    "max_row_group_size",
    "statistics_truncate_length",
)
_STATISTICS: Final = frozenset({"NONE", "CHUNK", "PAGE"})
_ENCODINGS: Final = frozenset(
    {
        "PLAIN",
        "RLE",
        "DELTA_BINARY_PACKED",
        "DELTA_LENGTH_BYTE_ARRAY",
        "DELTA_BYTE_ARRAY",
        "BYTE_STREAM_SPLIT",
    }
)
_CODECS: Final[Mapping[str, str]] = {
    "UNCOMPRESSED": "none",
    "NONE": "none",
    "SNAPPY": "snappy",
    "GZIP": "gzip",
    "BROTLI": "brotli",
    "ZSTD": "zstd",
    # Both names mean raw LZ4 blocks. Parquet's own codec LZ4, with Hadoop's framing, is deprecated.
    "LZ4": "lz4",
    "LZ4_RAW": "lz4",
}
_LEVELS: Final = {"gzip": (0, 10), "brotli": (0, 11), "zstd": (1, 22)}
# The gzip levels that pyarrow accepts. Other Parquet writers accept more levels.
_PYARROW_LEVELS: Final = {"gzip": (1, 9)}
_DEFAULT_LEVELS: Final = {"gzip": 6, "brotli": 1, "zstd": 1}
_SUFFIXES: Final = {"none": "", "gzip": ".gz", "brotli": ".br"}


# --- The settings of a write


DEFAULT_TARGET_FILE_SIZE_BYTES: Final = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSpec:
    """The settings with which a worker writes data files of a table; picklable.

    Args:
        store: the table's store.
        configuration: protocol and metadata of the table.
        time_zone: the time zone of timestamps that have no zone.
        target_file_size_bytes: when a file has reached this size, it is closed, and another file is
            opened.
        max_rows_per_file: maximum number of rows per file; None means no limit.
        writer_properties: Parquet options; None uses the table's properties.
        identity_starts: for each identity column, the first value to assign, so that workers assign
            different values; other identity columns continue after their high water mark.
        data_change: False if the rows were in the table before.
        now_ms: the value of `current_timestamp()`; None means the time at which the write starts.
        casts: whether to cast columns; see `fit.Fit`.
        job: the id of a distributed job, a result of `open_files.new_job`, which all names of new
            files contain; None if no job has to find its files by their names.
    """

    store: Store
    configuration: TableConfiguration
    time_zone: str
    target_file_size_bytes: int = DEFAULT_TARGET_FILE_SIZE_BYTES
    max_rows_per_file: int | None = None
    writer_properties: WriterProperties | None = None
    identity_starts: Mapping[str, int] = field(default_factory=dict)
    data_change: bool = True
    now_ms: int | None = None
    casts: bool = False
    job: str | None = None

    def starting_at(self, identity_starts: Mapping[str, int]) -> Self:
        """Return the same settings with other `identity_starts`."""
        return replace(self, identity_starts=dict(identity_starts))
