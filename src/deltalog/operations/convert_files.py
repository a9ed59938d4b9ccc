"""Find the schema and partition values of Parquet files to convert.

This module merges the schemas in the footers and parses partition values in paths. It reads no data
pages.

Protocol: Schema Serialization Format, Partition Value Serialization
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from deltalog._util.escaping import name_key, path_key
from deltalog._util.json import JsonObject, loads
from deltalog._util.paths import FileInfo, canonical_path, canonical_paths, decode_path, is_absolute
from deltalog._util.previews import keeps_nanoseconds
from deltalog._util.readable import FILE, counted
from deltalog.data.scan.plan import descriptor_of
from deltalog.data.scan.transform import load_bitmap
from deltalog.data.write.deletion_vectors import store_vectors
from deltalog.data.write.open_files import random_prefix
from deltalog.errors import (
    DataFileUnreadableError,
    DeltaError,
    InvalidInputError,
    MalformedLogError,
    SchemaMismatchError,
)
from deltalog.protocol.actions.arrow import DELETION_VECTOR_TYPE
from deltalog.protocol.actions.codec import deletion_vector_to_json
from deltalog.protocol.deletion_vectors import DeletionBitmap, location, parse_inline
from deltalog.protocol.partition_values import (
    NULL_DIRECTORY,
    encode_value,
    parse_column,
    parse_hive_directory,
)
from deltalog.schema import Field, StructType, encode_schema, from_arrow_schema, parse_schema
from deltalog.schema.columns import leaf_columns, loosened
from deltalog.schema.evolve import merge_schemas
from deltalog.schema.primitives.moments import values_or_counts
from deltalog.schema.types import DATE, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType
from deltalog.storage.parquet.reader import read_footer
from deltalog.storage.pool import map_in_pool
from deltalog.storage.store import native_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deltalog.protocol.actions import DeletionVectorDescriptor
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction

PartitionStrategy = Literal["hive", "directory"]
_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFile:
    """A Parquet file to add to the table.

    Args:
        info: path, size and modification time.
        num_rows: number of physical rows.
        partition_values: physical name of each partition column → serialised value.
        deleted: positions of the deleted rows; None if no rows are deleted.
    """

    info: FileInfo
    num_rows: int
    partition_values: Mapping[str, str | None]
    deleted: DeletionBitmap | None = None

    @property
    def is_deleted(self) -> bool:
        """Whether all rows are deleted."""
        return self.deleted is not None and self.deleted.cardinality >= self.num_rows


def find_parquet_files(store: Store) -> list[FileInfo]:
    """Return the Parquet files below the root, ordered by path, without hidden files.

    If a streaming sink of Spark wrote to the directory, return the files that it committed.

    Raises:
        InvalidInputError: there are no Parquet files; or the sink's log names files that do not
            exist in the directory; or the directory is or contains tables, whose files may contain
            deleted rows or belong to old versions.

    Cost: one listing, and reading the log of the sink.
    """
    listed = list(store.list_all(""))
    _check_no_tables(store, listed)
    found = sorted(
        (
            info
            for info in listed
            if info.name.lower().endswith(".parquet") and not _is_hidden(info.path)
        ),
        key=lambda info: info.path,
    )
    committed = files_of_sink(store)
    if committed is not None:
        gone = committed - {info.path for info in found}
        if gone:
            raise InvalidInputError(
                f"cannot convert {store.root}: {SINK_LOG} names {counted(len(gone), FILE)} that "
                f"cannot be found, such as {min(gone)}"
            )
        found = [info for info in found if info.path in committed]
    if not found:
        if store.root.lower().endswith(".parquet"):
            raise InvalidInputError(
                f"cannot convert {store.root}: expected a directory with Parquet files, found "
                "none in it; for a single file, pass the directory that contains it"
            )
        local = native_path(store, "")
        if not listed and local is not None and not Path(local).is_dir():
            problem = "there is no such directory"
            if Path(local).is_file():
                problem = "it is a file; pass the directory that contains it"
            raise InvalidInputError(f"cannot convert {store.root}: {problem}")
        raise InvalidInputError(
            f"cannot convert {store.root}: it contains no Parquet files{_instead(store, listed)}"
        )
    return found


_ROWS: Final = {"csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}
"""Suffix of a file of rows → the name of its format in pyarrow."""
_PARQUET_TOO: Final = frozenset({"parq", "pq", "pqt"})


def _instead(store: Store, listed: Sequence[FileInfo]) -> str:
    """Return which other file there is, files of rows first, and how its rows get into a table."""
    paths = sorted(info.path for info in listed if not _is_hidden(info.path))
    if not paths:
        return ""
    suffixes = {path: path.rpartition(".")[2].lower() for path in paths}
    known = (one for one in paths if suffixes[one] in _ROWS or suffixes[one] in _PARQUET_TOO)
    path = next(known, paths[0])
    if suffixes[path] in _PARQUET_TOO:
        return f", but {path}; the names of Parquet files end with .parquet: rename them"
    local = native_path(store, path)
    kind = _ROWS.get(suffixes[path])
    if kind is None or local is None:
        return f", but {path}; read the rows, and write_deltalake(location, rows) makes a table"
    rows = f"pyarrow.dataset.dataset({str(local)!r}, format={kind!r})"
    return f", but {path}; write_deltalake(location, {rows}) makes a table with its rows"


def read_footers(store: Store, files: Sequence[FileInfo]) -> tuple[StructType, list[int]]:
    """Return the merged schema of the files, and the number of rows of each file.

    All columns are nullable. They are in the order in which they first occur in the files.

    Raises:
        SchemaMismatchError: a column has different types in two files.
        DataFileUnreadableError: a file is not valid Parquet.

    Cost: one or two requests per file, several files at a time.
    """

    def read(info: FileInfo) -> tuple[str, int]:
        try:
            footer = read_footer(store, info.path, size_bytes=info.size_bytes)
        except DataFileUnreadableError as error:
            # There is no table yet, from which `repair()` could remove the file.
            text = str(error).removesuffix(f"; {DataFileUnreadableError.ADVICE}")
            raise error.with_message(f"{text}; restore it, or remove it first") from error
        return _schema_text(footer), footer.num_rows

    footers = map_in_pool(read, files)
    merged = StructType([])
    for text, info in {text: info for (text, _), info in zip(footers, files, strict=True)}.items():
        merged = _merged(merged, parse_schema(text), info.path)
    return merged, [rows for _, rows in footers]


def partition_fields(
    files: Sequence[FileInfo],
    partition_by: StructType | None,
    strategy: PartitionStrategy | None,
) -> StructType:
    """Return the partition columns: `partition_by`, or columns inferred from directory names.

    The inferred type is `long` or `date` if all values of the column are in the canonical form of
    that type, otherwise `string`.

    Raises:
        InvalidInputError: the strategy is `directory`, but `partition_by` is None.
    """
    if partition_by is not None:
        return StructType([replace(field, nullable=True) for field in partition_by.fields])
    if strategy == "directory":
        raise InvalidInputError(
            "partition_strategy='directory' needs the names and types of the partition columns: "
            "pass them as partition_by"
        )
    values: dict[str, set[str]] = {}
    for info in files:
        for name, text in parse_hive_directory(_directory(info)).items():
            values.setdefault(name, set()).update(() if text is None else (text,))
    return StructType([Field(name, _guessed(texts)) for name, texts in values.items()])


def partition_values(
    files: Sequence[FileInfo],
    fields: StructType,
    strategy: PartitionStrategy | None,
    *,
    time_zone: str,
) -> list[dict[str, str | None]]:
    """Return the partition values of each file, serialised as the protocol requires.

    Raises:
        InvalidInputError: the directories of a path do not match the partition columns.
        InvalidPartitionValueError: a value cannot be parsed as the column's type.
    """
    read = _by_position if strategy == "directory" else _by_name
    texts = [read(info, fields) for info in files]
    columns: dict[str, list[str | None]] = {}
    for number, field in enumerate(fields.fields):
        raw = [row[number] for row in texts]
        distinct = list(dict.fromkeys(raw))
        typed = parse_column(
            pa.array(distinct, pa.string()), field.type, column=field.name, time_zone=time_zone
        )
        stored = {
            text: encode_value(value, field.type)
            for text, value in zip(distinct, values_or_counts(typed), strict=True)
        }
        columns[field.name] = [stored[text] for text in raw]
    return [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ] or [{} for _ in files]


def table_schema(data: StructType, partitions: StructType) -> StructType:
    """Return the columns in the files, followed by the partition columns."""
    names = {name_key(field.name) for field in partitions.fields}
    own = [field for field in data.fields if name_key(field.name) not in names]
    return StructType([*own, *partitions.fields])


_FORMATS: Final = (
    ("Delta", "/_delta_log/", re.compile(r"(?P<table>.+?)/_delta_log/")),
    ("Hudi", ".hoodie/", re.compile(r"(?:(?P<table>.+?)/)?\.hoodie/")),
    (
        "Iceberg",
        ".metadata.json",
        re.compile(r"(?:(?P<table>.+)/)?metadata/[^/]+\.metadata\.json\Z"),
    ),
)
"""Format of a table, a part of the path of a file that only such a table has, and its pattern."""
_MOST_NAMED: Final = 3


def _check_no_tables(store: Store, listed: Sequence[FileInfo]) -> None:
    """Raise if the directory is a table of another format, or contains tables of any format."""
    found = _tables_in(listed)
    if not found:
        return
    text = f"cannot convert {store.root}: expected a directory of Parquet files, found"
    kind, path = found.get("", ("", ""))
    if kind == "Iceberg":
        raise InvalidInputError(
            f"{text} an Iceberg table with the metadata {path}; convert it with "
            "source_format='iceberg' (in SQL: iceberg.`location`)"
        )
    if kind:
        raise InvalidInputError(
            f"{text} a {kind} table, whose files may contain deleted rows or belong to old "
            "versions; read it with a library for this format, and write the rows to a new table"
        )
    names = [f"{name} ({kind})" for name, (kind, _) in sorted(found.items())[:_MOST_NAMED]]
    more = "" if len(found) <= _MOST_NAMED else f" and {len(found) - _MOST_NAMED} more"
    raise InvalidInputError(
        f"{text} {counted(len(found), 'table')} in it: {', '.join(names)}{more}; their rows would "
        "mix, and deleted rows would return. Convert only directories without tables, or first "
        "move the tables out of the directory"
    )


def _tables_in(listed: Sequence[FileInfo]) -> dict[str, tuple[str, str]]:
    """Return the directory of each table → its format, and the path of one of its files."""
    found: dict[str, tuple[str, str]] = {}
    for info in listed:
        for kind, part, pattern in _FORMATS:
            match = pattern.match(info.path) if part in info.path else None
            if match is not None and not _is_hidden(match["table"] or ""):
                found.setdefault(match["table"] or "", (kind, info.path))
    return found


def _is_hidden(path: str) -> bool:
    """Return whether a part of the path begins with `.` or `_`, except partitions (`_p=1`)."""
    return any(part.startswith((".", "_")) and "=" not in part for part in path.split("/"))


def _directory(info: FileInfo) -> str:
    return info.path.rpartition("/")[0]


def _schema_text(footer: Any) -> str:
    """Return a file's schema as JSON: Spark's schema from the footer metadata if present."""
    noted = (footer.metadata or {}).get(_SPARK_SCHEMA)
    if noted is not None:
        try:
            parsed = parse_schema(noted.decode())
        except (DeltaError, UnicodeDecodeError):
            parsed = None
        if parsed is not None:
            return encode_schema(loosened(parsed, _bare))
    arrow = footer.schema.to_arrow_schema().remove_metadata()
    plain = pa.schema([field.remove_metadata() for field in arrow])
    schema = from_arrow_schema(plain, fine=keeps_nanoseconds())
    columns = [footer.schema.column(number) for number in range(len(footer.schema))]
    legacy = {column.path.split(".")[0] for column in columns if column.physical_type == "INT96"}
    # An INT96 column has no annotation of its time zone, but its values are always in UTC.
    fields = [
        loosened(StructType([field]), _bare, _as_instant).fields[0]
        if field.name in legacy
        else field
        for field in schema.fields
    ]
    return encode_schema(loosened(StructType(fields), _bare))


def _bare(field: Field) -> Field:
    return Field(field.name, field.type)


def _as_instant(leaf: DataType) -> DataType:
    return TIMESTAMP if leaf == TIMESTAMP_NTZ else leaf


def _merged(known: StructType, found: StructType, path: str) -> StructType:
    try:
        merged = merge_schemas(known, found)
    except SchemaMismatchError as error:
        raise SchemaMismatchError(
            f"cannot convert: the schema of {path} cannot be merged with that of other files: "
            f"{error}"
        ) from error
    types = {path_key(leaf): field.type for leaf, field in leaf_columns(merged)}
    for leaf, field in leaf_columns(found):
        expected = types.get(path_key(leaf))
        if str(expected) != str(field.type):
            raise SchemaMismatchError(
                f"cannot convert: column {'.'.join(leaf)!r} is of type {field.type} in {path}, and "
                f"of type {expected} in other files"
            )
    return merged


def _guessed(texts: Iterable[str]) -> DataType:
    values = list(texts)
    for kind in (LONG, DATE):
        try:
            typed = parse_column(pa.array(values, pa.string()), kind, time_zone="UTC")
        except DeltaError:
            continue
        if values and [encode_value(value, kind) for value in values_or_counts(typed)] == values:
            return kind
    return STRING


def _by_name(info: FileInfo, fields: StructType) -> list[str | None]:
    found = {name_key(name): text for name, text in parse_hive_directory(_directory(info)).items()}
    wanted = [name_key(field.name) for field in fields.fields]
    if found.keys() != set(wanted):
        raise InvalidInputError(
            f"cannot convert {info.path!r}: expected directories for the partition columns "
            f"{sorted(wanted)}, found directories for {sorted(found)}"
        )
    return [found[name] for name in wanted]


def _by_position(info: FileInfo, fields: StructType) -> list[str | None]:
    parts = [part for part in _directory(info).split("/") if part]
    if len(parts) != len(fields.fields):
        raise InvalidInputError(
            f"cannot convert {info.path!r}: expected "
            f"{counted(len(fields.fields), 'directory', 'directories')}, one for each partition "
            f"column, found {len(parts)}"
        )
    return [None if part == NULL_DIRECTORY else part for part in parts]


# --- Log of a Spark streaming sink, which lists the committed files of its directory


SINK_LOG: Final = "_spark_metadata"
_VERSION: Final = "v1"
_COMPACT: Final = ".compact"


def files_of_sink(store: Store) -> frozenset[str] | None:
    """Return the paths of all files that a streaming sink has committed; None without a sink's log.

    Args:
        store: store of the directory.

    Raises:
        InvalidInputError: the sink's log cannot be read, or it belongs to another directory.

    Cost: one listing, and reading the batches since the last compaction of the sink's log.
    """
    names = [info.name for info in store.list_from(SINK_LOG, "")]
    batches = {int(name): name for name in names if name.isdecimal()}
    ends = {int(name.removesuffix(_COMPACT)): name for name in names if _is_compact(name)}
    if not batches and not ends:
        return None
    last = max(ends, default=-1)
    used = [ends[last]] if ends else []
    used += [name for batch, name in sorted(batches.items()) if batch > last]
    found: set[str] = set()
    for name, data in zip(used, store.read_many([f"{SINK_LOG}/{n}" for n in used]), strict=True):
        _apply(found, f"{SINK_LOG}/{name}", data, store.root)
    return frozenset(found)


def _is_compact(name: str) -> bool:
    return name.endswith(_COMPACT) and name.removesuffix(_COMPACT).isdecimal()


def _apply(found: set[str], path: str, data: bytes, root: str) -> None:
    """Add the paths of one batch of the sink's log to `found`, and remove deleted paths."""
    version, *lines = data.decode("utf-8", "replace").splitlines() or [""]
    if version != _VERSION:
        raise InvalidInputError(
            f"cannot convert {root}: {path} begins with {version[:20]!r}, but "
            f"deltalog supports only {_VERSION!r} in logs of streaming sinks"
        )
    for line in lines:
        try:
            node = JsonObject(loads(line, path), path)
            location = canonical_path(decode_path(node.required("path", str)), root)
            action = node.required("action", str)
        except MalformedLogError as error:
            raise InvalidInputError(f"cannot convert {root}: {error}") from error
        if is_absolute(location):
            raise InvalidInputError(
                f"cannot convert {root}: {path} names {location!r}, which is outside of the "
                "directory; if the directory was moved after a streaming sink wrote to it, its "
                "committed files are unknown"
            )
        if action == "delete":
            found.discard(location)
        else:
            found.add(location)


# --- Deletion vectors of converted and cloned files


_COLUMN: Final = "deletionVector"


def stage_vectors(
    pending: PendingTransaction, bitmaps: Sequence[DeletionBitmap]
) -> tuple[DeletionVectorDescriptor, ...]:
    """Store deletion vectors for a transaction, and return a descriptor for each.

    Cost: one request, or none if the vectors are few and small enough to be in the log.
    """
    properties = pending.configuration.properties
    prefix = random_prefix(properties) if properties.randomize_file_prefixes else ""
    stored = store_vectors(pending.store, bitmaps, prefix=prefix)
    pending.own_paths.extend(stored.paths)
    return stored.descriptors


def with_own_vectors(pending: PendingTransaction, now: pa.Table, files: pa.Table) -> pa.Table:
    """Replace inline deletion vectors by vectors that `stage_vectors` has stored.

    If the table already contains the same file with the same deleted rows, its existing deletion
    vector is used instead, so that the file does not count as changed.

    Args:
        pending: transaction of the table.
        now: the files that the table contains (schema `FILE_SCHEMA`).
        files: the files that the table will contain (schema `FILE_SCHEMA`), with paths as in the
            table's log.

    Cost: see `stage_vectors`; also a request for each existing vector with the same cardinality.
    """
    vectors: list[Any] = files.column(_COLUMN).to_pylist()
    inline = [
        (number, descriptor)
        for number, row in enumerate(vectors)
        if (descriptor := descriptor_of(row)) is not None and location(descriptor) is None
    ]
    if not inline:
        return files
    known = _known_vectors(pending, now)
    keys: list[Any] = canonical_paths(files.column("path"), pending.store.root).to_pylist()

    def same(one: tuple[int, DeletionVectorDescriptor]) -> DeletionVectorDescriptor | None:
        number, descriptor = one
        found = known.get(keys[number])
        if found is None or found.cardinality != descriptor.cardinality:
            return None
        # `num_rows` is not needed, because the row numbers of `descriptor` were checked before. A
        # vector that equals it has the same row numbers.
        is_same = load_bitmap(pending.store, found, num_rows=None) == parse_inline(descriptor)
        return found if is_same else None

    kept = map_in_pool(same, inline)
    new = [one for one, found in zip(inline, kept, strict=True) if found is None]
    stored = stage_vectors(pending, [parse_inline(descriptor) for _, descriptor in new])
    for (number, _), found in zip(inline, kept, strict=True):
        if found is not None:
            vectors[number] = deletion_vector_to_json(found)
    for (number, _), descriptor in zip(new, stored, strict=True):
        vectors[number] = deletion_vector_to_json(descriptor)
    place = files.schema.get_field_index(_COLUMN)
    return files.set_column(
        place, files.schema.field(place), pa.array(vectors, DELETION_VECTOR_TYPE)
    )


def _known_vectors(
    pending: PendingTransaction, now: pa.Table
) -> dict[str, DeletionVectorDescriptor]:
    """Return the deletion vectors of the table's files, by canonical path."""
    masked = now.filter(now.column(_COLUMN).is_valid())
    paths: list[Any] = canonical_paths(masked.column("path"), pending.store.root).to_pylist()
    rows: list[Any] = masked.column(_COLUMN).to_pylist()
    return {
        path: descriptor
        for path, row in zip(paths, rows, strict=True)
        if (descriptor := descriptor_of(row)) is not None
    }
