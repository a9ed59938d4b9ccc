"""Convert actions to rows of a checkpoint, and write these rows to Parquet files.

A row has a struct column for each kind of action; exactly one of them is not null. This module adds
the columns that table properties require: statistics as JSON or typed, and typed partition values.
The caller provides the actions. `writer` chooses the files and their names.

Protocol: Checkpoint Schema
"""

from __future__ import annotations

import contextlib
import uuid
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from deltalog._util.json import dumps
from deltalog._util.kernels import FALSE, TRUE, compute
from deltalog._util.kernels import arrow as arrow_kernels
from deltalog.errors import DeltaError
from deltalog.log import names
from deltalog.protocol.actions import arrow
from deltalog.protocol.actions.arrow import DELETION_VECTOR_TYPE, STRING_MAP, map_array
from deltalog.protocol.actions.codec import action_to_json, check_column
from deltalog.protocol.actions.model import Action, DomainMetadata, Sidecar
from deltalog.protocol.partition_values import encode_value, extract, parse_column
from deltalog.protocol.stats.parse import StatsLeaf, nest
from deltalog.protocol.stats.schema import indexed_columns, leaves_of_schema, stats_schema
from deltalog.schema import StructType, from_arrow_type
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.primitives.moments import values_or_counts
from deltalog.storage.parquet.parts import leaf_columns
from deltalog.storage.parquet.sink import ParquetSink
from deltalog.storage.pool import Background

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deltalog._util.paths import FileInfo
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.store import Store

    Column = pa.Array[Any] | pa.ChunkedArray[Any]

FILE_KINDS: Final = ("add", "remove")
_SMALL_TYPES: Final[Mapping[str, pa.DataType]] = {
    "protocol": arrow.PROTOCOL_TYPE,
    "metaData": arrow.METADATA_TYPE,
    "txn": arrow.TXN_TYPE,
    "domainMetadata": arrow.DOMAIN_TYPE,
}
_V2_TYPES: Final[Mapping[str, pa.DataType]] = {
    "checkpointMetadata": arrow.CHECKPOINT_METADATA_TYPE,
    "sidecar": arrow.SIDECAR_TYPE,
}


def stats_leaves(configuration: TableConfiguration) -> list[StatsLeaf]:
    """Return the leaves of `stats_parsed`, with physical names; empty if it is not written.

    Protocol: Checkpoint Schema (`stats_parsed`), Table Properties
    """
    properties = configuration.properties
    if not properties.checkpoint_write_stats_as_struct:
        return []
    partitions = set(configuration.physical_partition_columns)
    fields = [
        field for field in configuration.physical_schema.fields if field.name not in partitions
    ]
    indexed = indexed_columns(
        StructType(fields),
        num_indexed_columns=properties.data_skipping_num_indexed_cols,
        columns=configuration.physical_stats_columns,
    )
    bounds = configuration.may_have_deletion_vectors
    return leaves_of_schema(stats_schema(indexed, tight_bounds=bounds))


class ActionRows:
    """Converts actions to Arrow tables with the schema of a checkpoint.

    Args:
        configuration: the table's configuration, which decides which statistics are written.
        kinds: the kinds of actions. The schema has one column for each kind.
        time_zone: time zone of partition values without a zone.
        domains: the metadata domains of the table. Their configurations are strings, or maps as in
            the protocol's draft, which decides the type of the column.

    Attributes:
        schema: schema of the tables.
        leaves: the leaves of the statistics that `adds` accepts.
    """

    def __init__(
        self,
        configuration: TableConfiguration,
        kinds: Iterable[str],
        *,
        time_zone: str,
        domains: Sequence[DomainMetadata] = (),
    ) -> None:
        self.leaves: list[StatsLeaf] = stats_leaves(configuration)
        self._time_zone = time_zone
        self._partitions = _parsed_partitions(configuration)
        self._json = configuration.properties.checkpoint_write_stats_as_json
        types = {
            **_SMALL_TYPES,
            **_V2_TYPES,
            "rowIdHighWaterMark": arrow.HIGH_WATER_MARK_TYPE,
            "domainMetadata": _domain_type(domains),
            "add": self._add_type(),
            "remove": arrow.REMOVE_TYPE,
        }
        self.schema: pa.Schema = pa.schema([pa.field(kind, types[kind]) for kind in kinds])
        self._nothing = self.schema.empty_table()

    def values(self, actions: Iterable[Action]) -> pa.Table:
        """Return a row for each action, in order. This is slow, so use it for few actions."""
        objects = [action_to_json(action) for action in actions]
        columns = [
            pa.array(
                [_arrow_value(item.get(field.name), field.type) for item in objects], field.type
            )
            for field in self.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def removes(self, tombstones: pa.Table) -> pa.Table:
        """Return a row for each tombstone.

        Args:
            tombstones: a table whose columns are the members of `REMOVE_TYPE`.
        """
        members = {field.name: tombstones.column(field.name) for field in arrow.REMOVE_TYPE}
        return self._rows("remove", {**members, "dataChange": _all_false(tombstones.num_rows)})

    def adds(self, files: pa.Table, stats: Sequence[pa.ChunkedArray[Any]]) -> pa.Table:
        """Return a row for each live file.

        Args:
            files: the files (schema `FILE_SCHEMA`).
            stats: the statistics of these files, one column for each of `leaves`.

        Raises:
            InvalidPartitionValueError: a string cannot be parsed as its column's type.
        """
        members: dict[str, Any] = {field.name: files.column(field.name) for field in arrow.ADD_TYPE}
        members["dataChange"] = _all_false(files.num_rows)
        # The protocol about `delta.checkpoint.writeStatsAsJson`: "When this property is set to
        # `false`, this field should be omitted from the checkpoint."
        if not self._json:
            del members["stats"]
        if self._partitions:
            members[PARTITION_VALUES_PARSED] = self._parsed_values(files)
        if self.leaves:
            members["stats_parsed"] = self._parsed_stats(stats)
        return self._rows("add", members)

    def _add_type(self) -> pa.StructType:
        fields: list[pa.Field[Any]] = [
            field for field in arrow.ADD_TYPE if self._json or field.name != "stats"
        ]
        if self._partitions:
            fields.append(pa.field(PARTITION_VALUES_PARSED, pa.struct(self._partitions_arrow())))
        if self.leaves:
            empty = [pa.chunked_array([nulls(0, kind)]) for _, kind in self.leaves]
            fields.append(pa.field("stats_parsed", self._parsed_stats(empty).type))
        return pa.struct(fields)

    def _partitions_arrow(self) -> list[pa.Field[Any]]:
        return [pa.field(field.name, to_arrow_type(field.type)) for field in self._partitions]

    def _parsed_values(self, files: pa.Table) -> pa.Array[Any]:
        texts = files.column(PARTITION_VALUES)
        columns = [
            parse_column(
                extract(texts, field.name),
                field.type,
                column=field.name,
                time_zone=self._time_zone,
            )
            for field in self._partitions
        ]
        result: pa.Array[Any] = pa.StructArray.from_arrays(columns, fields=self._partitions_arrow())
        return result

    def _parsed_stats(self, stats: Sequence[pa.ChunkedArray[Any]]) -> pa.Array[Any]:
        paths = [path for path, _ in self.leaves]
        table = nest(list(zip(paths, stats, strict=True))).combine_chunks()
        absent = reduce(compute.and_, (column.is_null() for column in stats))
        columns = [_one_chunk(column) for column in table.columns]
        result: pa.Array[Any] = pa.StructArray.from_arrays(
            columns, fields=list(table.schema), mask=_one_chunk(absent)
        )
        return result

    def _rows(self, kind: str, members: Mapping[str, Any]) -> pa.Table:
        fields = self.schema.field(kind).type
        columns = [_one_chunk(members[field.name]) for field in fields]
        actions = pa.StructArray.from_arrays(columns, fields=list(fields))
        rows = len(actions)
        nothing = self._nothing  # columns of nulls, which another thread may replace
        if nothing.num_rows < rows:
            columns = [nulls(rows, field.type) for field in self.schema]
            nothing = self._nothing = pa.Table.from_arrays(columns, schema=self.schema)
        table = nothing.slice(0, rows)
        place = self.schema.get_field_index(kind)
        return table.set_column(place, self.schema.field(kind), actions)


def _parsed_partitions(configuration: TableConfiguration) -> StructType:
    """Return the fields of `partitionValues_parsed`, with physical names; empty if not written."""
    if not configuration.properties.checkpoint_write_stats_as_struct:
        return StructType([])
    by_name = {field.name: field for field in configuration.physical_schema.fields}
    return StructType([by_name[name] for name in configuration.physical_partition_columns])


def _domain_type(domains: Sequence[DomainMetadata]) -> pa.DataType:
    draft = [not isinstance(domain.configuration, str) for domain in domains]
    if not draft or not all(draft):
        return arrow.DOMAIN_TYPE
    fields = [
        pa.field(field.name, arrow.STRING_MAP) if field.name == "configuration" else field
        for field in arrow.DOMAIN_TYPE
    ]
    return pa.struct(fields)


def _arrow_value(value: Any, data_type: Any) -> Any:
    """Return a member of a JSON object as the Python value that Arrow expects."""
    if isinstance(value, dict):
        if pa.types.is_map(data_type):
            return list(value.items())
        # The configuration of a domain is a string. In a draft of the protocol, it was an object.
        if pa.types.is_string(data_type):
            return dumps(value).decode()
        return {field.name: _arrow_value(value.get(field.name), field.type) for field in data_type}
    return value


def _all_false(rows: int) -> pa.Array[Any]:
    # `dataChange` is false, because the files were added or removed by earlier commits.
    return pa.repeat(FALSE, rows)


def _one_chunk(column: Any) -> Any:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


# --- The Parquet files of a checkpoint, written row group by row group


_FEW_ROWS: Final = 1 << 15
_GROUP_ROWS: Final = 1 << 17
_GROUP_BYTES: Final = 64 << 20
_GROUPS_AHEAD: Final = 1
# Columns with these prefixes of Parquet paths have few distinct values. So they are
# dictionary-encoded.
_REPETITIVE: Final = (
    "add.partitionValues.",
    "add.partitionValues_parsed.",
    "add.tags.",
    "add.clusteringProvider",
    "remove.partitionValues.",
)


class RowFile:
    """A Parquet file of actions. Rows are buffered until they fill a row group.

    A full row group is encoded in another thread, while the caller prepares the next rows.

    Attributes:
        info: path, size and time of the file, after `close`.
        num_rows: number of rows written so far.
    """

    info: FileInfo

    def __init__(self, store: Store, path: str, schema: pa.Schema) -> None:
        self.num_rows: int = 0
        self._groups: list[list[pa.Table]] = [[]]
        self._rows = self._bytes = 0
        self._sink = ParquetSink(store, path, schema, **_file_options(schema))
        self._encoding: Background[None] = Background(_GROUPS_AHEAD)

    def write(self, rows: pa.Table) -> None:
        """Append rows."""
        self.num_rows += rows.num_rows
        self._groups[-1].append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            tables = self._take()
            self._encoding.submit(lambda: self._encode(tables))

    def begin_kind(self) -> None:
        """Separate the following rows, which have another kind of action, from the previous rows.

        In a file with many rows, the following rows start a new row group. Then readers of small
        actions can skip the row groups of file actions.
        """
        self._groups.append([])

    def _take(self) -> list[pa.Table]:
        """Clear the buffer, and return its rows as one table for each row group."""
        groups = self._groups
        if self._rows < _FEW_ROWS:
            groups = [[table for group in groups for table in group]]
        self._groups, self._rows, self._bytes = [[]], 0, 0
        return [pa.concat_tables(group) for group in groups if group]

    def _encode(self, tables: Sequence[pa.Table]) -> None:
        for table in tables:
            self._sink.write(table, row_group_size=max(1, table.num_rows))

    def close(self) -> FileInfo:
        """Write the buffered rows, and make the file visible."""
        self._encoding.wait()
        self._encode(self._take())
        self.info = self._sink.close()
        return self.info

    def abandon(self) -> None:
        """Discard the file, which never becomes visible."""
        self._encoding.cancel()
        self._sink.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


class Sidecars:
    """Writes the sidecars of one checkpoint, each with at most `part_rows` rows."""

    def __init__(self, store: Store, schema: pa.Schema, part_rows: int) -> None:
        self.num_rows: int = 0
        self._store = store
        self._schema = schema
        self._part_rows = part_rows
        self._open: RowFile | None = None
        self._written: list[FileInfo] = []

    def write(self, rows: pa.Table) -> None:
        """Append rows."""
        self.num_rows += rows.num_rows
        while rows.num_rows:
            if self._open is None:
                path = f"{names.SIDECAR_DIRECTORY}/{uuid.uuid4()}.parquet"
                self._open = RowFile(self._store, path, self._schema)
            rest = self._part_rows - self._open.num_rows
            self._open.write(rows.slice(0, rest))
            rows = rows.slice(rest)
            if self._open.num_rows >= self._part_rows:
                self._finish()

    def _finish(self) -> None:
        if self._open is not None:
            self._written.append(self._open.close())
            self._open = None

    def begin_kind(self) -> None:
        """See `RowFile`."""
        if self._open is not None:
            self._open.begin_kind()

    def close(self) -> list[Sidecar]:
        """Finish the last sidecar, and return an action for each sidecar."""
        self._finish()
        return [
            Sidecar(path=i.name, size_bytes=i.size_bytes, modification_time_ms=i.modified_ms)
            for i in self._written
        ]

    def abandon(self) -> None:
        """Delete the written sidecars, to which no checkpoint refers yet."""
        if self._open is not None:
            self._open.abandon()
        with contextlib.suppress(DeltaError):
            self._store.delete_many([info.path for info in self._written])


def _file_options(schema: pa.Schema) -> dict[str, Any]:
    """Return Parquet options, with dictionaries and statistics only for columns that need them."""
    leaves = [leaf.path for leaf in leaf_columns(schema)]
    return {
        "compression": "snappy",
        "store_schema": False,
        "use_dictionary": [leaf for leaf in leaves if leaf.startswith(_REPETITIVE)],
        "write_statistics": [leaf for leaf in leaves if leaf != "add.stats"],
    }


# --- The columns of a checkpoint in memory


PARTITION_VALUES: Final = "partitionValues"
PARTITION_VALUES_PARSED: Final = "partitionValues_parsed"

# Kind of action → the marker: a member that every action of this kind has. Its null count is the
# number of rows without such an action.
MARKERS: Final[Mapping[str, str]] = {
    "add": "path",
    "remove": "path",
    "protocol": "minReaderVersion",
    "metaData": "schemaString",
    "txn": "appId",
    "domainMetadata": "domain",
    "rowIdHighWaterMark": "highWaterMark",
    "sidecar": "path",
    "checkpointMetadata": "version",
}
SMALL_KINDS: Final = tuple(kind for kind in MARKERS if kind not in {"add", "remove"})
"""All kinds of actions except file actions. A checkpoint contains few actions of these kinds."""


def chunked(chunks: Sequence[pa.Array[Any]], data_type: pa.DataType) -> pa.ChunkedArray[Any]:
    """Return the chunks as one column. `data_type` is the type of a column without chunks."""
    return arrow_kernels.chunked_array(chunks, data_type)


def nulls(rows: int, data_type: pa.DataType) -> pa.Array[Any]:
    """Return a column of nulls."""
    return arrow_kernels.nulls(rows, data_type)


def member(actions: Column, name: str, data_type: pa.DataType) -> pa.ChunkedArray[Any]:
    """Return one member of a struct column as `data_type`; all null if the struct lacks it.

    Raises:
        pa.ArrowException: the values cannot be converted, or a string is not UTF-8. This is checked
            here, because Arrow checks UTF-8 only when it creates Python strings.
    """
    struct_type = actions.type
    if not pa.types.is_struct(struct_type) or struct_type.get_field_index(name) < 0:
        return chunked([nulls(len(actions), data_type)], data_type)
    found = compute.struct_field(actions, name)
    chunks = found.chunks if isinstance(found, pa.ChunkedArray) else [found]
    conformed = [conform(chunk, data_type) for chunk in chunks]
    if not pa.types.is_primitive(data_type):
        for chunk in conformed:
            chunk.validate(full=True)
    return chunked(conformed, data_type)


def conform(values: pa.Array[Any], data_type: pa.DataType) -> pa.Array[Any]:
    """Convert the values to `data_type`; writers of checkpoints may use other types.

    Raises:
        pa.ArrowException: the values cannot be converted.
        MalformedLogError: a deletion vector's descriptor has an invalid value.
    """
    if values.type.equals(data_type):
        return values
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_null(values.type):
        return nulls(len(values), data_type)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()  # type: ignore[attr-defined]  # `values` is a DictionaryArray
    if pa.types.is_struct(data_type):
        return _conform_struct(values, data_type)
    result: pa.Array[Any] = compute.cast(values, data_type)
    return result


def _conform_struct(values: Any, data_type: Any) -> pa.Array[Any]:
    have = {field.name for field in values.type}
    children = [
        conform(compute.struct_field(values, field.name), field.type)
        if field.name in have
        else nulls(len(values), field.type)
        for field in data_type
    ]
    absent = values.is_null()
    if data_type.equals(DELETION_VECTOR_TYPE):
        # Some writers store a struct of NULLs instead of NULL for a missing deletion vector.
        absent = reduce(compute.and_, [child.is_null() for child in children])
    result: pa.Array[Any] = pa.StructArray.from_arrays(
        children, fields=list(data_type), mask=absent
    )
    if data_type.equals(DELETION_VECTOR_TYPE):
        check_column(result, "checkpoint")
    return result


def valid_rows(table: pa.Table, kind: str) -> pa.ChunkedArray[Any]:
    """Return the rows of the struct column `kind` that are not null.

    Cost: no copy if these rows are contiguous, as in the checkpoints of all known writers.
    """
    column = table.column(kind)
    return chunked([_valid_run(chunk) for chunk in column.chunks], column.type)


def _valid_run(chunk: pa.Array[Any]) -> pa.Array[Any]:
    valid = len(chunk) - chunk.null_count
    if valid == len(chunk):
        return chunk
    first = compute.index(chunk.is_valid(), TRUE).as_py()
    run = chunk.slice(max(first, 0), valid)
    return run if run.null_count == 0 else chunk.drop_null()


def texts_of_values(actions: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Return `partitionValues_parsed` as maps, for a checkpoint without `partitionValues`.

    Cost: Python code for each value.
    """
    if actions.type.get_field_index(PARTITION_VALUES_PARSED) < 0:
        return chunked([], STRING_MAP)
    values: Any = compute.struct_field(actions, PARTITION_VALUES_PARSED)
    columns = [
        [encode_value(value, from_arrow_type(field.type)) for value in values_or_counts(column)]
        for field, column in zip(values.type, values.flatten(), strict=True)
    ]
    names = [field.name for field in values.type]
    rows = [
        dict(zip(names, (column[row] for column in columns), strict=True)) if is_valid else None
        for row, is_valid in enumerate(values.is_valid().to_pylist())
    ]
    return chunked([map_array(rows)], STRING_MAP)
