"""Reports on the live files of a version: paths, partitions, statistics, selection vectors.

The results have the form of the deltalake package. No data files are read. Only selection vectors
read files: those of deletion vectors.

Protocol: Add File and Remove File, Per-file Statistics
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog._util.kernels import pc
from deltalog._util.paths import decode_path, file_locations, join
from deltalog.data.scan.plan import check_rows_readable, descriptor_of
from deltalog.data.scan.prune import prune
from deltalog.data.scan.transform import load_bitmap
from deltalog.errors import DeltaError
from deltalog.protocol.column_mapping import Mode, physical_name
from deltalog.protocol.deletion_vectors import keep_mask
from deltalog.protocol.partition_values import extract, parse_column
from deltalog.protocol.stats.schema import indexed_columns, stats_schema
from deltalog.schema import Field, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.configuration import TableConfiguration

_MASK_SCHEMA = pa.schema([("filepath", pa.string()), ("selection_vector", pa.list_(pa.bool_()))])


def file_uris(snapshot: Snapshot, predicate: Expression | None) -> list[str]:
    """Return the locations of the files that may have a matching row.

    Raises:
        UnsupportedFeatureError: the table has a reader feature that deltalog does not support.
            Every function of this module raises this error.
    """
    check_rows_readable(snapshot)
    paths = prune(snapshot, predicate).files(["path"])["path"]
    found: list[Any] = file_locations(paths, snapshot.store.root).to_pylist()
    return found


def partitions(snapshot: Snapshot, predicate: Expression | None) -> list[dict[str, str | None]]:
    """Return the distinct partitions that may have a matching row, with serialised values.

    They are sorted by their values, column by column; NULL is first, as in Spark.
    """
    check_rows_readable(snapshot)
    configuration = snapshot.configuration
    pruned = prune(snapshot, predicate)
    values = pruned.files(["partitionValues"])["partitionValues"]
    names = configuration.partition_columns
    if not names:
        return []
    stored = configuration.physical_partition_columns
    table = pa.table({name: extract(values, key) for name, key in zip(names, stored, strict=True)})
    distinct = table.group_by(list(names), use_threads=False).aggregate([])
    return distinct.take(_order_of(snapshot, distinct)).to_pylist()


def _order_of(snapshot: Snapshot, partitions: pa.Table) -> pa.Array[Any]:
    """Return the row numbers of partitions in the order of their values; NULL is first."""
    keys: dict[str, Any] = {}
    for number, field in enumerate(snapshot.configuration.partition_schema):
        values: Any = partitions.column(number)
        with suppress(DeltaError):  # the listing also shows values that are not of this type
            values = parse_column(
                values, field.type, column=field.name, time_zone=snapshot.context.time_zone
            )
        keys |= {f"{number} is valid": pc.is_valid(values), f"{number}": values}
    return pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])


def add_actions(snapshot: Snapshot, *, flatten: bool = False) -> pa.Table:
    """Return one row per live file: path, size, time, partition values and statistics.

    Args:
        snapshot: the version to report on.
        flatten: whether to return columns such as `null_count.x` and `min.s.x` instead of structs.

    Cost: reads all statistics of all files.
    """
    check_rows_readable(snapshot)
    configuration = snapshot.configuration
    files = snapshot.files(["path", "size", "modificationTime", "partitionValues"])
    stats = snapshot.stats(stats_schema(_indexed(configuration)))
    schema, mode = configuration.schema, configuration.column_mapping_mode
    found: dict[str, Any] = {
        "path": files["path"],
        "size_bytes": files["size"],
        "modification_time": files["modificationTime"],
        "num_records": stats["numRecords"],
    }
    structs = {
        "null_count": _renamed(stats, "nullCount", schema, mode),
        "min": _renamed(stats, "minValues", schema, mode),
        "max": _renamed(stats, "maxValues", schema, mode),
        "partition": _typed_partitions(snapshot, files["partitionValues"]),
    }
    for title, parts in structs.items():
        if flatten:
            for name, values in parts.items():
                found |= _leaves(f"{title}.{name}", values)
        elif parts:
            arrays = [values.combine_chunks() for values in parts.values()]
            found[title] = pa.StructArray.from_arrays(arrays, list(parts))
    return pa.table(found)


def _leaves(name: str, values: pa.ChunkedArray[Any]) -> dict[str, pa.ChunkedArray[Any]]:
    """Flatten a struct, at any depth, into columns with dotted names."""
    if not pa.types.is_struct(values.type):
        return {name: values}
    found: dict[str, pa.ChunkedArray[Any]] = {}
    for member, part in zip(values.type, values.flatten(), strict=True):
        found |= _leaves(f"{name}.{member.name}", part)
    return found


def _indexed(configuration: TableConfiguration) -> list[tuple[tuple[str, ...], Field]]:
    """Return the columns that may have statistics, by their physical names."""
    keys = set(configuration.physical_partition_columns)
    data = StructType([field for field in configuration.physical_schema if field.name not in keys])
    return indexed_columns(
        data,
        num_indexed_columns=configuration.properties.data_skipping_num_indexed_cols,
        columns=configuration.physical_stats_columns,
    )


def _renamed(
    stats: pa.Table, title: str, schema: StructType, mode: Mode
) -> dict[str, pa.ChunkedArray[Any]]:
    """Return one kind of statistics as columns with logical names at every depth."""
    if title not in stats.column_names:
        return {}
    values = stats.column(title)
    shown: Any = _logical_type(values.type, schema, mode)
    columns = pa.chunked_array([chunk.view(shown) for chunk in values.chunks], shown).flatten()
    return dict(zip((member.name for member in shown), columns, strict=True))


def _logical_type(kind: Any, schema: StructType, mode: Mode) -> pa.DataType:
    """Replace the physical names in a struct type by the logical names of `schema`."""
    fields = {physical_name(field, mode): field for field in schema}
    members: list[pa.Field[Any]] = []
    for member in kind:
        field = fields[member.name]
        shown = member.type
        if isinstance(field.type, StructType):
            shown = _logical_type(shown, field.type, mode)
        members.append(pa.field(field.name, shown))
    return pa.struct(members)


def _typed_partitions(
    snapshot: Snapshot, values: pa.ChunkedArray[Any]
) -> dict[str, pa.ChunkedArray[Any]]:
    configuration = snapshot.configuration
    found = {}
    keys = configuration.physical_partition_columns
    for field, key in zip(configuration.partition_schema, keys, strict=True):
        typed = parse_column(
            extract(values, key),
            field.type,
            column=field.name,
            time_zone=snapshot.context.time_zone,
        )
        found[field.name] = pa.chunked_array([typed])
    return found


def selection_vectors(snapshot: Snapshot) -> pa.RecordBatchReader:
    """Return, for each file with a deletion vector, its location and a mask of its live rows.

    Cost: one request per deletion vector.
    """
    check_rows_readable(snapshot)
    return pa.RecordBatchReader.from_batches(_MASK_SCHEMA, _masks(snapshot))


def _masks(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    files = snapshot.files(["path", "deletionVector"])
    rows = snapshot.stats(pa.schema([("numRecords", pa.int64())]))["numRecords"]
    table = files.append_column("numRecords", rows)
    table = table.filter(pc.is_valid(table["deletionVector"]))
    for row in table.to_pylist():
        descriptor = descriptor_of(row["deletionVector"])
        if descriptor is None:
            continue
        num_rows = row["numRecords"]
        bitmap = load_bitmap(snapshot.store, descriptor, num_rows=num_rows)
        if num_rows is None:
            last = bitmap.max_row
            num_rows = 0 if last is None else last + 1
        mask = keep_mask(bitmap, 0, num_rows)
        alive = [True] * num_rows if mask is None else mask.to_pylist()
        uri = join(snapshot.store.root, decode_path(row["path"]))
        yield pa.RecordBatch.from_pylist(
            [{"filepath": uri, "selection_vector": alive}], schema=_MASK_SCHEMA
        )
