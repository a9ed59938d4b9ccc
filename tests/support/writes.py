"""Writing without a transaction: specs of tables that exist in a test only, and their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq  # reads files without our own reader

from deltalog._util.json import loads
from deltalog.data.scan import plan_scan
from deltalog.data.write import (
    Enforcer,
    WriteSpec,
    WrittenFiles,
    write_files,
)
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.protocol.actions import Metadata, Protocol, action_to_json
from deltalog.protocol.column_mapping import assign
from deltalog.protocol.configuration import TableConfiguration
from deltalog.schema import Field, StructType, encode_schema
from tests.support import logs
from tests.support.raw_tables import rows_of

TABLE_ID = "5fba94ed-9794-4965-ba6e-6ee3c0d22af9"


# Those that readers must know too.
_READER_FEATURES = {"columnMapping", "deletionVectors", "timestampNtz", "variantType"}


def table(
    *fields: Field,
    partition_by: Sequence[str] = (),
    features: Sequence[str] = (),
    mapping: str = "none",
    **properties: str,
) -> TableConfiguration:
    """A table's configuration.

    Args:
        fields: columns.
        partition_by: names.
        features: of the protocol; none of them: writer version 2.
        mapping: the column mapping mode; physical names are random.
        properties: `delta.` is put in front of each name, and `__` is a dot.
    """
    schema = StructType(fields)
    names = list(features)
    if mapping != "none":
        names.append("columnMapping")
        schema, _ = assign(schema)
    entries = {f"delta.{name.replace('__', '.')}": text for name, text in properties.items()}
    if mapping != "none":
        entries["delta.columnMapping.mode"] = mapping
    protocol = Protocol(min_reader_version=1, min_writer_version=2)
    if names:
        protocol = Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=tuple(name for name in names if name in _READER_FEATURES),
            writer_features=tuple(names),
        )
    metadata = Metadata(
        id=TABLE_ID,
        schema_string=encode_schema(schema),
        partition_columns=tuple(partition_by),
        configuration=entries,
    )
    return TableConfiguration(protocol, metadata)


def batch_of(configuration: TableConfiguration, **columns: Any) -> pa.RecordBatch:
    """Rows in the table's own schema."""
    return pa.record_batch(columns, schema=configuration.arrow_schema)


def spec_of(configuration: TableConfiguration, **options: Any) -> WriteSpec:
    """How to write that table, into a store of its own."""
    given = {"store": logs.DictStore(), "time_zone": "UTC", **options}
    return WriteSpec(configuration=configuration, **given)


def write(configuration: TableConfiguration, data: object, **options: Any) -> WrittenFiles:
    """The files of some rows, in a store that is then forgotten."""
    return write_files(spec_of(configuration, **options), data)


def file_table(spec: WriteSpec, path: str) -> pa.Table:
    """A file as Parquet has it."""
    return pq.read_table(BytesIO(spec.store.read(path)))


def parquet_file(spec: WriteSpec, path: str) -> pq.ParquetFile:
    """A file's footer and schema."""
    return pq.ParquetFile(BytesIO(spec.store.read(path)))


def commit(spec: WriteSpec, written: WrittenFiles, version: int = 0) -> None:
    """Name the files in a log made by hand."""
    assert isinstance(spec.store, logs.DictStore)
    actions: list[Any] = [*written.adds, *written.cdc]
    if version == 0:
        actions = [spec.configuration.protocol, spec.configuration.metadata, *actions]
    logs.commit(spec.store, version, *(action_to_json(action) for action in actions))


def read_back(spec: WriteSpec, written: WrittenFiles) -> pa.Table:
    """The rows as deltalog reads them from a table that has just these files."""
    commit(spec, written)
    return plan_scan(load_snapshot(utc_context(spec.store))).to_table()


def rows(configuration: TableConfiguration, data: object, **options: Any) -> list[Any]:
    """The rows that a table has after `data` was written: tuples, or bare values."""
    spec = spec_of(configuration, **options)
    return rows_of(read_back(spec, write_files(spec, data)))


def stats_of(written: WrittenFiles) -> list[Mapping[str, Any]]:
    """The statistics of each file, as JSON reads them."""

    return [loads(add.stats or "{}") for add in written.adds]


def with_metadata(field: Field, **metadata: Any) -> Field:
    """The field with entries of its metadata; `__` in a name is a dot."""
    entries = {name.replace("__", "."): value for name, value in metadata.items()}
    return replace(field, metadata={**field.metadata, **entries})


def enforced(configuration: TableConfiguration, data: Any, **options: Any) -> dict[str, list[Any]]:
    """The rows as the table takes them."""
    rows = data if isinstance(data, pa.Table) else pa.table(data)
    enforcer = Enforcer(configuration, rows.schema, **{"time_zone": "UTC", **options})
    batches = [enforcer.apply(batch) for batch in rows.to_batches()]
    found = pa.Table.from_batches(batches, enforcer.schema).to_pydict()
    assert isinstance(found, dict)
    return found


def temporary_files(directory: Path) -> int:
    """How many files are open there: their names are given at the end."""
    return sum(path.is_file() and path.suffix != ".parquet" for path in directory.rglob("*"))
