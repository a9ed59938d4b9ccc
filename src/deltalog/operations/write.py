"""Write new rows: append, or overwrite.

There are four modes: append, overwrite, overwrite by predicate (`replaceWhere`), and overwrite of
the partitions that the new rows belong to (dynamic partition overwrite).

Protocol: Add File and Remove File, Add CDC File
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pyarrow as pa

from deltalog._util.escaping import name_key
from deltalog._util.kernels import exact_sum, pc
from deltalog._util.previews import keeps_nanoseconds
from deltalog._util.similar_names import similar_to
from deltalog.data.write.files import write_parts
from deltalog.data.write.fit import check_index
from deltalog.data.write.source import (
    is_rereadable,
    may_be_read_before,
    may_lack_columns,
    warn_if_read_before,
    warn_of_no_items,
)
from deltalog.data.write.typed_values import with_typed_values
from deltalog.data.write.written import WrittenFiles
from deltalog.errors import InvalidInputError, SchemaMismatchError
from deltalog.operations.arguments import as_condition, check_given
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.operation import Operation
from deltalog.protocol.actions.arrow import STRING_MAP
from deltalog.protocol.column_mapping import physical_path
from deltalog.protocol.features.clustering import check_clustering_columns, clustering_columns
from deltalog.protocol.partition_values import extract, parse_column
from deltalog.protocol.table_change.change import changed_table
from deltalog.schema import Field, StructType, from_arrow_schema
from deltalog.schema.columns import walk
from deltalog.schema.evolve import merge_schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.changes.request import ChangeMetrics
    from deltalog.operations.engine import Engine, RowSource
    from deltalog.protocol.actions import AddFile
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.transaction import PendingTransaction

SchemaMode = Literal["merge", "overwrite"]
WriteMode = Literal["append", "overwrite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsWritten:
    """The result of a write.

    Args:
        written: the new files.
        removed: the removed files, as rows of `snapshot.files`; None for an append or
            `replaceWhere`.
        replaced: metrics of the deletion of rows that matched the predicate; None without a
            predicate.
        num_change_files: number of new change data files.
    """

    written: WrittenFiles
    removed: pa.Table | None = None
    replaced: ChangeMetrics | None = None
    num_change_files: int = 0

    def metrics(self) -> dict[str, int | str]:
        """Return the metrics under the names of Delta Spark's `operationMetrics`.

        As in Delta Spark, `numOutputRows` includes copied rows.
        """
        written, removed, replaced = self.written, self.removed, self.replaced
        found: dict[str, int | str] = {
            "numFiles": len(written.adds),
            "numOutputRows": written.num_rows,
            "numOutputBytes": written.num_bytes,
        }
        if removed is not None:
            found["numRemovedFiles"] = removed.num_rows
            found["numRemovedBytes"] = exact_sum(removed.column("size"))
        if replaced is None:
            return found
        files = replaced.files
        if replaced.rows.deleted_not_matched_by_source is not None:
            found["numDeletedRows"] = replaced.rows.deleted_not_matched_by_source
        return found | {
            "numCopiedRows": files.num_copied_rows,
            "numRemovedFiles": files.num_removed_files,
            "numRemovedBytes": files.num_removed_bytes,
            "numDeletionVectorsAdded": files.num_vectors_added,
            "numDeletionVectorsUpdated": files.num_vectors_updated,
            "numDeletionVectorsRemoved": files.num_vectors_removed,
            "numFiles": len(written.adds) + replaced.num_added_files,
            "numOutputRows": written.num_rows + files.num_copied_rows,
            "numOutputBytes": written.num_bytes + replaced.num_added_bytes,
            "numAddedChangeFiles": self.num_change_files,
        }

    def result(self) -> None:
        """Return nothing, because callers get the committed version."""
        return


@dataclass(frozen=True, slots=True, kw_only=True)
class Write(Operation[RowsWritten]):
    """Write rows.

    Args:
        data: rows of any type that `Engine.open_rows` accepts.
        mode: `append`, or `overwrite`, which removes existing rows.
        schema_mode: `merge` adds the columns that only the data has. `overwrite` replaces the
            table's schema with that of the data; it needs mode `overwrite`. With a predicate,
            `overwrite` only adds columns.
        predicate: with mode `overwrite`: a condition that selects the existing rows to remove.
            Every new row must match it, too.
        parameters: values for `?` or `:name` in an SQL predicate.
        dynamic: whether to replace only the partitions that the new rows belong to.
        keeps_null_partitions: with `dynamic`: whether to append to a partition with a NULL value
            instead of replacing it.
        partition_by: the new partition columns; only with `schema_mode="overwrite"`.
        file_options: options of the new files.
        logged: `operationParameters` for the history; None derives them from the arguments.
        name: name of the operation in the history.
    """

    data: Any
    mode: WriteMode = "append"
    schema_mode: SchemaMode | None = None
    predicate: Any = None
    parameters: Sequence[object] | Mapping[str, object] | None = None
    dynamic: bool = False
    keeps_null_partitions: bool = False
    partition_by: Sequence[str] | None = None
    file_options: FileOptions = field(default_factory=FileOptions)
    logged: Mapping[str, Any] | None = None
    name: str = "WRITE"  # type: ignore[misc]  # streaming writes have another name
    doing: ClassVar[str] = "writing"

    def __post_init__(self) -> None:
        """Check that the arguments can be combined.

        Raises:
            InvalidInputError: a mode is unknown, or an option cannot be used in this mode.
        """
        check_given(self.predicate)
        for name, value, known in (
            ("mode", self.mode, ("append", "overwrite")),
            ("schema_mode", self.schema_mode, (None, "merge", "overwrite")),
        ):
            if value not in known:
                expected = ", ".join(map(repr, known))
                hint = similar_to(str(value), filter(None, known))
                raise InvalidInputError(
                    f"{name}: expected one of {expected}, found {value!r}{hint}"
                )
        for name, given in (
            ("predicate", self.predicate is not None),
            ("partition_overwrite='dynamic'", self.dynamic),
        ):
            if given and self.mode != "overwrite":
                raise InvalidInputError(f"{name} needs mode='overwrite', found mode={self.mode!r}")
        if self.parameters and self.predicate is None:
            raise InvalidInputError(
                f"cannot write with parameters={self.parameters!r}: there is no predicate for them"
            )
        if self.dynamic and (self.predicate is not None or self.schema_mode == "overwrite"):
            raise InvalidInputError(
                "partition_overwrite='dynamic' excludes a predicate and schema_mode='overwrite': "
                "the partitions of the new rows define what is replaced"
            )
        if self.schema_mode == "overwrite" and self.mode == "append":
            raise InvalidInputError(
                "schema_mode='overwrite' needs mode='overwrite', found mode='append'"
            )

    @property
    def needs_latest(self) -> bool:  # type: ignore[override]  # depends on the mode
        """Whether the table is refreshed first. True if existing rows are removed."""
        return self.mode == "overwrite"

    @property
    def is_repeatable(self) -> bool:
        """Whether the rows can be read again."""
        return is_rereadable(self.data)

    def logged_parameters(self) -> Mapping[str, Any]:
        """Return the mode, the partition columns and the predicate."""
        if self.logged is not None:
            return self.logged
        found = {"mode": self.mode.capitalize(), "partitionBy": list(self.partition_by or ())}
        return found if self.predicate is None else {**found, "predicate": str(self.predicate)}

    def stage(self, transaction: PendingTransaction, engine: Engine) -> RowsWritten:
        """Write the rows, and remove the rows that they replace.

        Raises:
            SchemaMismatchError, ConstraintViolationError: the rows do not match the table's schema
                or constraints, or the predicate. New files are deleted.

        Cost: one pass over the rows; an append reads no file of the table.
        """
        staged = self._staged(transaction, engine)
        warn_if_read_before(self.data, staged.written.num_rows)
        return staged

    def _staged(self, transaction: PendingTransaction, engine: Engine) -> RowsWritten:
        known = transaction.snapshot is not None and self.schema_mode != "overwrite"
        schema = transaction.configuration.schema
        rows = engine.open_rows(with_typed_values(self.data, schema) if known else self.data)
        predicate = self._condition(transaction)
        replaces = self.mode == "overwrite" and transaction.snapshot is not None
        if not replaces:
            if may_be_read_before(self.data) and not rows.schema.names:
                warn_of_no_items(self.data)
            self._merge_schema(transaction, rows)
            written = self._add(transaction, engine, rows, predicate=predicate)
            return RowsWritten(written=written)
        if not rows.schema.names and schema.names and not may_lack_columns(self.data):
            advice = "DeltaTable.delete() removes " + ("all rows" if predicate is None else "rows")
            raise InvalidInputError(
                f"cannot overwrite {transaction.store.root}: the data has no columns, as an "
                f"iterator that was already read; {advice}"
            )
        if predicate is not None:
            return self._replace_where(transaction, engine, rows, predicate)
        if self.dynamic:
            return self._replace_partitions(transaction, engine, rows)
        return self._replace_all(transaction, engine, rows)

    def _condition(self, transaction: PendingTransaction) -> Expression | None:
        """Return the predicate that every new row must match, even if no row is replaced."""
        if self.predicate is None:
            return None
        return as_condition(
            transaction.configuration.schema,
            self.predicate,
            session=transaction.context.session,
            parameters=self.parameters,
        )

    def _merge_schema(self, transaction: PendingTransaction, rows: RowSource) -> None:
        if self.schema_mode == "merge" and transaction.snapshot is not None:
            self._add_columns_of(rows, transaction)

    def _add_columns_of(self, rows: RowSource, transaction: PendingTransaction) -> None:
        known = transaction.configuration.schema.names
        check_index(rows.schema, known, "write the data")
        casts = self.file_options.casts
        wanted = with_columns_of(transaction.configuration, rows.schema, casts=casts)
        transaction.set_configuration(wanted)

    def _add(
        self, transaction: PendingTransaction, engine: Engine, rows: RowSource, **options: Any
    ) -> WrittenFiles:
        written = engine.write_rows(self.file_options.spec_for(transaction), rows, **options)
        transaction.add_files(written)
        return written

    def _replace_all(
        self, transaction: PendingTransaction, engine: Engine, rows: RowSource
    ) -> RowsWritten:
        if self.schema_mode == "overwrite":
            if not rows.schema.names:
                raise InvalidInputError(
                    f"cannot overwrite the schema of {transaction.store.root}: the data has no "
                    "columns"
                )
            known = transaction.configuration.schema.names
            check_index(rows.schema, known, "write the data")
            _check_partitions(transaction, rows, self.partition_by)
            changed = changed_table(
                transaction.configuration,
                schema=from_arrow_schema(rows.schema, fine=keeps_nanoseconds()),
                partition_columns=self.partition_by,
                replaces_data=True,
            )
            transaction.set_configuration(changed)
            _check_clustering(transaction)
        try:
            self._merge_schema(transaction, rows)
            written = self._add(transaction, engine, rows)
        except SchemaMismatchError as error:
            advice = "schema_mode='overwrite' (overwriteSchema on Spark) replaces the columns, too"
            raise SchemaMismatchError(f"{error}; {advice}") from error
        transaction.record_read(None)
        removed = transaction.read_snapshot.files()
        transaction.remove_files(removed, data_change=True)
        return RowsWritten(written=written, removed=removed)

    def _check_columns_that_stay(self, transaction: PendingTransaction, rows: RowSource) -> None:
        """Raise if the change of schema or partitions would affect rows that are not replaced."""
        if self.schema_mode != "overwrite":
            return
        configuration = transaction.configuration
        given = {name_key(name) for name in rows.schema.names}
        lost = [name for name in configuration.schema.names if name_key(name) not in given]
        asked = self.partition_by
        if lost or (asked is not None and list(asked) != list(configuration.partition_columns)):
            raise InvalidInputError(
                "cannot overwrite the schema with a predicate: rows that do not match it remain in "
                "the table, so columns can only be added and partition columns cannot change; the "
                f"data lacks the columns {lost}, and partition_by={asked!r}"
            )

    def _replace_partitions(
        self, transaction: PendingTransaction, engine: Engine, rows: RowSource
    ) -> RowsWritten:
        if not transaction.configuration.partition_columns:
            raise InvalidInputError(
                f"cannot overwrite partitions of {transaction.store.root}: it has no partition "
                "columns"
            )
        self._merge_schema(transaction, rows)
        written = self._add(transaction, engine, rows)
        adds = written.adds
        if self.keeps_null_partitions:
            adds = tuple(add for add in adds if None not in add.partition_values.values())
        removed = _files_in_partitions(transaction.read_snapshot, adds)
        transaction.record_read(None)
        transaction.remove_files(removed, data_change=True)
        return RowsWritten(written=written, removed=removed)

    def _replace_where(
        self,
        transaction: PendingTransaction,
        engine: Engine,
        rows: RowSource,
        predicate: Expression,
    ) -> RowsWritten:
        self._check_columns_that_stay(transaction, rows)
        if self.schema_mode is not None:
            self._add_columns_of(rows, transaction)
        from deltalog.operations.changes.request import deletion  # noqa: PLC0415  # rarely needed

        request = deletion(predicate, file_options=self.file_options)
        replaced = engine.plan_change(transaction, request).apply()
        transaction.parameters.update(self.logged_parameters())
        written = self._add(
            transaction,
            engine,
            rows,
            predicate=predicate,
            tells_changes=replaced.num_change_files > 0,
        )
        return RowsWritten(
            written=written, replaced=replaced, num_change_files=len(transaction.cdc)
        )


def with_columns_of(
    configuration: TableConfiguration, schema: pa.Schema, *, casts: bool = False
) -> TableConfiguration:
    """Return the configuration with the columns that only the data has.

    Args:
        configuration: configuration of the table.
        schema: schema of the data.
        casts: whether the data of existing columns will be cast, so that their types may differ.

    Raises:
        SchemaMismatchError: a column's type differs from the type in the table.
    """
    known = {name_key(name) for name in configuration.schema.names}
    given = from_arrow_schema(schema)
    if keeps_nanoseconds():
        pairs = zip(given, from_arrow_schema(schema, fine=True), strict=True)
        given = StructType(
            [field if name_key(field.name) in known else fine for field, fine in pairs]
        )
    merged = merge_schemas(
        configuration.schema,
        given,
        allow_widening=configuration.is_active("typeWidening"),
        casts=casts,
    )
    if merged == configuration.schema:
        return configuration
    return changed_table(configuration, schema=merged)


def _check_partitions(
    transaction: PendingTransaction, rows: RowSource, partition_by: Sequence[str] | None
) -> None:
    """Raise if the data lacks partition columns, unless the caller passes new ones."""
    known = {name_key(name) for name in rows.schema.names}
    kept = transaction.configuration.partition_columns
    missing = [name for name in kept if name_key(name) not in known]
    if partition_by is None and missing:
        raise InvalidInputError(
            f"cannot overwrite the schema of {transaction.store.root}: it is partitioned by "
            f"{', '.join(map(repr, kept))}, and the data has no {', '.join(map(repr, missing))}; "
            "pass the new partition columns as partition_by, [] for none"
        )


def _check_clustering(transaction: PendingTransaction) -> None:
    """Raise if the new schema lacks clustering columns, or their types do not allow clustering."""
    clustered = clustering_columns(transaction.read_snapshot.domain_metadata)
    if not clustered:
        return
    configuration = transaction.configuration
    schema, mode = configuration.schema, configuration.column_mapping_mode
    logical = {physical_path(schema, path, mode): path for path, _ in walk(schema)}
    missing = [".".join(path) for path in clustered if path not in logical]
    if missing:
        raise InvalidInputError(
            f"cannot overwrite the schema of {transaction.store.root}: it is clustered by "
            f"{', '.join(missing)}, which the new schema lacks; change the clustering columns "
            "first with alter.set_clustering_columns"
        )
    check_clustering_columns(
        [logical[path] for path in clustered],
        schema,
        configuration.partition_columns,
        configuration.properties,
    )


def _files_in_partitions(snapshot: Snapshot, adds: Sequence[AddFile]) -> pa.Table:
    """Return the live files in the partitions of the new files."""
    files, zone = snapshot.files(), snapshot.context.time_zone
    new = pa.array([list(add.partition_values.items()) for add in adds], STRING_MAP)
    configuration = snapshot.configuration
    fields = configuration.partition_schema.fields
    # Compare parsed values, because writers serialize equal values differently. Each partition
    # becomes one number, computed from the index of each value among the new files' values.
    codes: Any = pa.repeat(pa.scalar(0, pa.int64()), files.num_rows)
    new_codes: Any = pa.repeat(pa.scalar(0, pa.int64()), len(new))
    for column, name in zip(fields, configuration.physical_partition_columns, strict=True):

        def typed(values: Any, name: str = name, column: Field = column) -> Any:
            texts = extract(values, name)
            return parse_column(texts, column.type, column=column.name, time_zone=zone)

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


# --- Appends of the rows of several callers in one version


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsAppended:
    """The outcome of `AppendParts`.

    Args:
        written: the new files.
        errors: for each part its error, or None if its rows were written.
    """

    written: WrittenFiles
    errors: Sequence[Exception | None]

    def metrics(self) -> dict[str, int]:
        """Return the metrics under the names of Delta Spark's `operationMetrics`."""
        written = self.written
        return {
            "numFiles": len(written.adds),
            "numOutputRows": written.num_rows,
            "numOutputBytes": written.num_bytes,
        }

    def result(self) -> Sequence[Exception | None]:
        """Return for each part its error, or None if its rows were written."""
        return self.errors


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendParts(Operation[PartsAppended]):
    """Append the rows of several callers in one commit.

    A part with an invalid row is not written. Nothing is committed if no part is valid.

    Args:
        parts: the rows of each caller, in memory.
        file_options: options of the new files.
    """

    parts: Sequence[pa.Table]
    file_options: FileOptions = field(default_factory=FileOptions)
    name: ClassVar[str] = "WRITE"
    needs_latest: ClassVar[bool] = False
    skips_empty: ClassVar[bool] = True

    def logged_parameters(self) -> Mapping[str, Any]:
        """Return the mode."""
        return {"mode": "Append", "partitionBy": []}

    def stage(self, transaction: PendingTransaction, engine: Engine) -> PartsAppended:
        """Write the rows.

        Cost: one pass over the rows; no file of the table is read.
        """
        del engine  # not needed to write a few rows that are in this process
        written, errors = write_parts(self.file_options.spec_for(transaction), self.parts)
        if written.adds:
            transaction.add_files(written)
        return PartsAppended(written=written, errors=errors)
