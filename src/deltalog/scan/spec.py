"""Which columns a read takes from files and from the log, by the names that were asked for.

Owns the resolution of names: a table's own columns, parts of structs, and metadata columns.

Protocol: Column Mapping
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog.column_mapping import physical_name
from deltalog.errors import InvalidInputError
from deltalog.expressions import columns as columns_of
from deltalog.expressions import resolve_predicate
from deltalog.metadata_columns import METADATA_COLUMNS
from deltalog.scan.task import ReadSpec
from deltalog.schema import (
    Field,
    StructType,
    canonical_path_of,
    from_arrow_type,
    project,
    to_arrow_schema,
)
from deltalog.schema.metadata_fields import metadata_columns_of, with_metadata_columns
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
    hidden: Sequence[str] = (),
    more_columns: Mapping[str, pa.DataType] = MappingProxyType({}),
    is_resolved: bool = False,
) -> ReadSpec:
    """Resolve columns and predicate against the table's schema.

    Args:
        snapshot: the version to read.
        columns: as for `plan_scan`.
        predicate: likewise.
        hidden: names of `METADATA_COLUMNS`, shown last. For who changes rows: a column `_metadata`
            of the table hides such names from `columns` and `predicate`, and not from here.
        more_columns: those that the tasks supply (`ScanTask.constants`).
        is_resolved: as for `plan_scan`.

    Raises:
        InvalidInputError: an unknown column; or a column of the table has one of the names in
            `hidden`, with the dot in it.
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
    output = configuration.arrow_schema if shows_all else _output(schema, shown, asked, metadata)
    return ReadSpec(
        table=snapshot.store.root,
        data_columns=StructType([field for field in read if field.name not in partitioned]),
        partition_columns=StructType([field for field in read if field.name in partitioned]),
        metadata_columns=tuple(dict.fromkeys([*metadata_names, *hidden])),
        output=_with_hidden(snapshot, output, hidden) if hidden else output,
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


def _with_hidden(snapshot: Snapshot, output: pa.Schema, hidden: Sequence[str]) -> pa.Schema:
    """The schema with metadata columns at its end, whatever the table has of its own."""
    for name in hidden:
        if name in snapshot.configuration.schema.names:
            raise InvalidInputError(
                f"cannot tell the rows of {snapshot.store.root} apart: the table has a column "
                f"{name!r}, the name by which deltalog finds a row's place; rename that column"
            )
        if name not in output.names:
            output = output.append(pa.field(name, METADATA_COLUMNS[name]))
    return output


def _paths(schema: StructType) -> list[tuple[str, ...]]:
    """The leaves of a pruned schema as paths, to be projected together with others."""
    found: list[tuple[str, ...]] = []
    for field in schema:
        if isinstance(field.type, StructType) and len(field.type):
            found += [(field.name, *path) for path in _paths(field.type)]
        else:
            found.append((field.name,))
    return found
