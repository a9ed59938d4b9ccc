"""Which columns a read takes from files and from the log, by the names that were asked for.

Owns the resolution of names: a table's own columns, parts of structs, and metadata columns.

Protocol: Column Mapping
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog.column_mapping import physical_name
from deltalog.expressions import columns as columns_of
from deltalog.expressions import resolve_predicate
from deltalog.scan.task import (
    ReadSpec,
    metadata_columns_of,
    with_metadata_columns,
)
from deltalog.schema import (
    Field,
    StructType,
    canonical_path_of,
    from_arrow_type,
    project,
    to_arrow_schema,
)
from deltalog.sql_session import SqlSession

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.snapshot import Snapshot


def read_spec(
    snapshot: Snapshot,
    *,
    columns: Sequence[str] | None,
    predicate: Expression | None,
    more_columns: Mapping[str, pa.DataType] = MappingProxyType({}),
    is_resolved: bool = False,
) -> ReadSpec:
    """Resolve columns and predicate against the table's schema.

    Args:
        snapshot: the version to read.
        columns: as for `plan_scan`.
        predicate: likewise.
        more_columns: those that the tasks supply (`ScanTask.constants`).
        is_resolved: as for `plan_scan`.
    """
    configuration = snapshot.configuration
    schema = configuration.schema
    metadata = metadata_columns_of(schema)
    asked = list(schema.names if columns is None else columns)
    metadata_names = [name for name in asked if name in metadata]
    shows_all = columns is None and not metadata_names
    plain_names = [name for name in asked if name not in metadata]
    read = shown = schema if shows_all else project(schema, plain_names)
    if predicate is not None:
        if not is_resolved:
            others = [Field(name, from_arrow_type(kind)) for name, kind in more_columns.items()]
            known = StructType([*with_metadata_columns(schema), *others])
            session = SqlSession(now=None, time_zone=snapshot.context.time_zone)
            predicate = resolve_predicate(predicate, known, session)
        used = {".".join(path): path for path in columns_of(predicate)}
        used = {name: path for name, path in used.items() if name not in more_columns}
        metadata_names += [name for name in used if name in metadata]
        needed = [path for name, path in used.items() if name not in metadata]
        read = shown if shows_all else project(schema, [*_paths(shown), *needed])
    partitioned = set(configuration.partition_columns)
    mode = configuration.column_mapping_mode
    return ReadSpec(
        table=snapshot.store.root,
        data_columns=StructType([field for field in read if field.name not in partitioned]),
        partition_columns=StructType([field for field in read if field.name in partitioned]),
        metadata_columns=tuple(dict.fromkeys(metadata_names)),
        output=configuration.arrow_schema if shows_all else _output(schema, shown, asked, metadata),
        predicate=predicate,
        mode=mode,
        physical_names={
            field.name: physical_name(field, mode) for field in read if field.name in partitioned
        },
        row_id_column=configuration.row_id_column,
        row_commit_version_column=configuration.row_commit_version_column,
        time_zone=snapshot.context.time_zone,
    )


def _output(
    schema: StructType,
    shown: StructType,
    asked: Sequence[str],
    metadata: Mapping[str, pa.DataType],
) -> pa.Schema:
    """Arrow schema of the columns that are asked for, each once, in that order."""
    fields = {field.name: field for field in to_arrow_schema(shown)}
    fields |= {name: pa.field(name, metadata[name]) for name in asked if name in metadata}
    order = [name if name in metadata else canonical_path_of(schema, name)[0] for name in asked]
    return pa.schema([fields[name] for name in dict.fromkeys(order)])


def _paths(schema: StructType) -> list[tuple[str, ...]]:
    """The leaves of a pruned schema as paths, to be projected together with others."""
    found: list[tuple[str, ...]] = []
    for field in schema:
        if isinstance(field.type, StructType) and len(field.type):
            found += [(field.name, *path) for path in _paths(field.type)]
        else:
            found.append((field.name,))
    return found
