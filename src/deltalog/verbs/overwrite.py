"""Overwrite: new rows instead of all, of those that match a predicate, or of their partitions.

Protocol: Add File and Remove File, Add CDC File
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deltalog.actions.arrow import STRING_MAP
from deltalog.column_mapping import physical_path
from deltalog.errors import InternalError, InvalidInputError
from deltalog.features.clustering import check_clustering_columns, clustering_columns
from deltalog.kernels import arrow
from deltalog.partition_values import extract, parse_column
from deltalog.schema import from_arrow_schema
from deltalog.schema.columns import walk
from deltalog.table_change import changed_table
from deltalog.verbs.append import set_write_metrics, with_columns_of, write_rows
from deltalog.verbs.delete import stage_delete
from deltalog.write.files import write_files
from deltalog.write.matching import write_matching

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.expressions import Expression
    from deltalog.schema import Field
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction
    from deltalog.verbs.append import FileOptions, Rows, SchemaMode
    from deltalog.verbs.delete import Deleted
    from deltalog.write.written import WrittenFiles


def stage_overwrite(
    pending: PendingTransaction,
    rows: Rows,
    *,
    options: FileOptions,
    schema_mode: SchemaMode | None = None,
    partition_by: Sequence[str] | None = None,
) -> WrittenFiles:
    """Replace every row of the table.

    Args:
        pending: of an existing table.
        rows: read once.
        options: of the files.
        schema_mode: `overwrite` gives the table the data's schema, `merge` adds its new columns;
            None keeps the table's.
        partition_by: the new partition columns; with `schema_mode="overwrite"` only.
    """
    snapshot = _snapshot_of(pending)
    if schema_mode == "overwrite":
        if not rows.schema.names:
            raise InvalidInputError(
                f"cannot give {pending.store.root} the schema of the data: it has no columns"
            )
        pending.set_configuration(
            changed_table(
                pending.configuration,
                schema=from_arrow_schema(rows.schema),
                partition_columns=partition_by,
                replaces_data=True,
            )
        )
        _check_clustering(pending)
    elif schema_mode == "merge":
        pending.set_configuration(with_columns_of(pending.configuration, rows.schema))
    written = write_rows(options.spec_for(pending), rows)
    pending.add_files(written)
    pending.read(None)
    removed = snapshot.files()
    pending.remove_files(removed, data_change=True)
    set_write_metrics(pending, written, **_removed_metrics(removed))
    return written


def stage_overwrite_partitions(
    pending: PendingTransaction, rows: Rows, *, options: FileOptions
) -> WrittenFiles:
    """Replace the partitions that the new rows fall into, and no other."""
    snapshot = _snapshot_of(pending)
    configuration = pending.configuration
    if not configuration.partition_columns:
        raise InvalidInputError(
            f"cannot overwrite partitions of {pending.store.root}: it has no partition columns"
        )
    written = write_rows(options.spec_for(pending), rows)
    pending.add_files(written)
    removed = _files_in_partitions(snapshot, written, options.time_zone)
    pending.read(None)
    pending.remove_files(removed, data_change=True)
    set_write_metrics(pending, written, **_removed_metrics(removed))
    return written


def stage_replace_where(
    pending: PendingTransaction,
    rows: Rows,
    predicate: Expression,
    *,
    options: FileOptions,
    schema_mode: SchemaMode | None = None,
    delete: Callable[..., Deleted] = stage_delete,
) -> WrittenFiles:
    """Replace the rows that match a predicate; the new rows must match it too.

    Args:
        pending: of an existing table.
        rows: read once.
        predicate: resolved against the snapshot's schema. Files that it cuts are rewritten.
        options: of the files.
        schema_mode: `merge` adds the columns that only the data has.
        delete: stages the deletion of the old rows, as `stage_delete` does.

    Raises:
        ConstraintViolationError: a new row does not match.
    """
    if schema_mode == "overwrite":
        raise InvalidInputError(
            "rows that do not match the predicate keep the table's schema: "
            "schema_mode='overwrite' goes without a predicate"
        )
    if schema_mode == "merge":
        pending.set_configuration(with_columns_of(pending.configuration, rows.schema))
    deleted = delete(pending, predicate, options=options)
    spec = options.spec_for(pending)
    tells = deleted.num_change_files > 0
    if not isinstance(rows, pa.RecordBatchReader):
        written = rows.write_to(spec, predicate=predicate, tells_changes=tells)
    elif rows.schema.names:
        written = write_matching(spec, rows, predicate, tells_changes=tells)
    else:
        written = write_files(spec, rows)  # an empty list has no columns to be checked
    pending.add_files(written)
    _set_metrics(pending, written, deleted)
    return written


def _set_metrics(pending: PendingTransaction, written: WrittenFiles, deleted: Deleted) -> None:
    """What the history says, as the reference counts: rows that were copied are output, too."""
    more = {
        name: value
        for name, value in deleted.metrics().items()
        if name.startswith(("numRemoved", "numDeleted", "numCopied", "numDeletionVectors"))
    }
    set_write_metrics(pending, written, **more)
    pending.set_metrics(
        {
            "numFiles": len(written.adds) + deleted.num_added_files,
            "numOutputRows": written.num_rows + deleted.num_copied_rows,
            "numOutputBytes": written.num_bytes + deleted.num_added_bytes,
            "numAddedChangeFiles": len(pending.cdc),
        }
    )


def _check_clustering(pending: PendingTransaction) -> None:
    """Refuse a schema without the columns that the table is clustered by."""
    clustered = clustering_columns(_snapshot_of(pending).domain_metadata)
    if not clustered:
        return
    configuration = pending.configuration
    schema, mode = configuration.schema, configuration.column_mapping_mode
    logical = {physical_path(schema, path, mode): path for path, _ in walk(schema)}
    missing = [".".join(path) for path in clustered if path not in logical]
    if missing:
        raise InvalidInputError(
            f"cannot overwrite the schema of {pending.store.root}: it is clustered by "
            f"{', '.join(missing)}, which the new schema lacks; end or change that first with "
            "alter.set_clustering_columns"
        )
    check_clustering_columns(
        [logical[path] for path in clustered],
        schema,
        configuration.partition_columns,
        configuration.properties,
    )


def _snapshot_of(pending: PendingTransaction) -> Snapshot:
    if pending.snapshot is None:
        raise InternalError("there is nothing to overwrite in a table that is to be made")
    return pending.snapshot


def _removed_metrics(removed: pa.Table) -> dict[str, int]:
    return {
        "numRemovedFiles": removed.num_rows,
        "numRemovedBytes": pc.sum(removed.column("size")).as_py() or 0,
    }


def _files_in_partitions(snapshot: Snapshot, written: WrittenFiles, zone: str) -> pa.Table:
    """The live files whose partition has a new file."""
    files = snapshot.files()
    new = pa.array([list(add.partition_values.items()) for add in written.adds], STRING_MAP)
    configuration = snapshot.configuration
    fields = configuration.partition_schema.fields
    # Values, not texts: writers spell them differently. A partition is one number, made of the
    # place of each of its values among the new ones.
    codes = arrow.repeat(pa.scalar(0, pa.int64()), files.num_rows)
    new_codes = arrow.repeat(pa.scalar(0, pa.int64()), len(new))
    for field, name in zip(fields, configuration.physical_partition_columns, strict=True):

        def typed(values: Any, name: str = name, field: Field = field) -> Any:
            texts = extract(values, name)
            return parse_column(texts, field.type, column=field.name, time_zone=zone)

        wanted: Any = typed(new)
        distinct = pc.unique(wanted)
        places = [
            pc.index_in(found, distinct) for found in (typed(files["partitionValues"]), wanted)
        ]
        codes, new_codes = (
            pc.add(pc.multiply(code, len(distinct)), place.cast(pa.int64()))
            for code, place in zip((codes, new_codes), places, strict=True)
        )
    return files.filter(pc.is_in(codes, pc.unique(new_codes), skip_nulls=True))
