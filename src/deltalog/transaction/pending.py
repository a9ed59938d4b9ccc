"""The content of one commit, while an operation collects it.

This module does no I/O. `assemble` creates the bytes of a commit, and `conflicts` compares the
content with other commits. A commit may remove or add again many existing files, so they are in
Arrow tables. It adds few new files, so they are Python objects.

Protocol: Actions
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog._util.cards import ProgressCount
from deltalog._util.kernels import pc
from deltalog._util.readable import FILE, counted
from deltalog.data.write.written import WrittenFiles
from deltalog.errors import (
    CommitOutcomeUnknownError,
    DeltaError,
    InternalError,
    InvalidInputError,
    SchemaMismatchError,
)
from deltalog.protocol.actions import AddCDCFile, AddFile, DomainMetadata
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features.identity_columns import (
    IDENTITY_HIGH_WATER_MARK_KEY,
    with_high_water_marks,
)
from deltalog.schema import StructType, encode_schema, parse_schema
from deltalog.storage.faults import cleanup_level
from deltalog.transaction.properties import AppTransaction, ReadSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from deltalog.expressions import Expression
    from deltalog.log.checksum import VersionChecksum
    from deltalog.log.context import TableContext
    from deltalog.log.snapshot import Snapshot
    from deltalog.storage.store import Store
    from deltalog.transaction.masks import Masks


@cache
def _no_files() -> pa.Table:
    return FILE_SCHEMA.empty_table()


def _combined(name: str, before: int, last: int) -> int:
    """Combine the values of a metric of two operations, as the prefix of its name requires."""
    match name[:3]:
        case "min":
            return min(before, last)
        case "max":
            return max(before, last)
        case "p25" | "p50" | "p75":
            return last  # the sum of two quantiles has no meaning
        case _:
            return before + last


class PendingTransaction:
    """The content of one commit. Not safe for use by several threads.

    Args:
        context: context of the table.
        snapshot: the version that the transaction reads; None if it creates the table.
        operation: name of the operation in the history, as in Delta Spark (`WRITE`, `DELETE`).
        parameters: parameters of the operation; lists and mappings become JSON strings.
        configuration: configuration of a new table.

    Attributes:
        context: context of the table.
        snapshot: the version that the transaction reads; None if it creates the table.
        operation: name of the operation in the history.
        parameters: parameters of the operation.
        metrics: metrics of the operation.
        custom_metadata: members of `commitInfo` that the caller adds.
        tags: tags in `commitInfo`.
        preserves_row_ids: whether all copied rows have the same row ids as before. Operations that
            do not preserve row ids set it to False.
        keeps_new_row_ids: whether new files have row ids that were assigned elsewhere, so that the
            commit conflicts with commits that assign row ids.
        copies_rows: whether new files may contain rows of the removed or masked files.
        defers_masks: whether deletion vectors are not written while rows are masked. It is set in
            tasks; the client writes the vectors of all tasks together.
        read_set: the rows and applications that were read.
        adds: new files.
        masks: rows of existing files that are marked as deleted.
        cdc: new change data files.
        domains: metadata domains by name.
        app_transactions: application transactions by application.
        own_paths: decoded paths of the files that were written for this transaction. They are
            deleted if it fails.
        job_id: the id of a distributed job, which the names of new files contain; see `WriteSpec`.
        checks_base: whether to check before the commit that the log still contains the version that
            was read.
        is_sent: whether a commit request was sent.
        checksum_before: checksum file of the version that was read; None if it was not read.
        is_committed: whether the commit has succeeded.
        progress: counts the files that are read.
    """

    def __init__(
        self,
        context: TableContext,
        snapshot: Snapshot | None,
        *,
        operation: str,
        parameters: Mapping[str, Any] | None = None,
        configuration: TableConfiguration | None = None,
    ) -> None:
        if snapshot is None and configuration is None:
            raise InternalError("a transaction needs a snapshot, or a configuration of a new table")
        self.context = context
        self.snapshot = snapshot
        self.operation = operation
        self.parameters: dict[str, Any] = dict(parameters or {})
        self.metrics: dict[str, int | str] = {}
        self.custom_metadata: dict[str, Any] = {}
        self.tags: dict[str, str] = {}
        self.preserves_row_ids = True
        self.keeps_new_row_ids = False
        self.copies_rows = False
        self.defers_masks = False
        self.read_set: ReadSet = ReadSet()
        self.adds: list[AddFile] = []
        self.masks: list[Masks] = []
        self.cdc: list[AddCDCFile] = []
        self.domains: dict[str, DomainMetadata] = {}
        self.app_transactions: dict[str, AppTransaction] = {}
        self.own_paths: list[str] = []
        self.job_id: str | None = None
        self.checks_base = False
        self.is_sent = False
        self.checksum_before: VersionChecksum | None = None
        self.is_committed = False
        self.progress: ProgressCount = ProgressCount(None)
        self._configuration = configuration
        self._added_again: list[pa.Table] = []
        self._removes: list[tuple[pa.Table, bool]] = []
        self._identity_marks: dict[str, int] = {}
        self._marked: TableConfiguration | None = None

    @property
    def read_snapshot(self) -> Snapshot:
        """The snapshot that the transaction has read. It does not change when a commit is retried.

        Raises:
            InternalError: the table does not exist yet.
        """
        if self.snapshot is None:
            raise InternalError(f"cannot {self.operation}: the table does not exist yet")
        return self.snapshot

    @property
    def store(self) -> Store:
        """The store of the table."""
        return self.context.store

    @property
    def configuration(self) -> TableConfiguration:
        """Protocol and metadata after the commit."""
        if self._marked is None:
            self._marked = _with_marks(self._unmarked, self._identity_marks)
        return self._marked

    @property
    def _unmarked(self) -> TableConfiguration:
        if self._configuration is not None:
            return self._configuration
        if self.snapshot is None:
            raise InternalError("a new table has no configuration")
        return self.snapshot.configuration

    def set_configuration(self, configuration: TableConfiguration) -> None:
        """Set protocol and metadata after the commit."""
        self._configuration = configuration
        self._marked = None

    @property
    def changes_protocol(self) -> bool:
        """Whether the commit contains a protocol action."""
        return self.snapshot is None or self.configuration.protocol != self.snapshot.protocol

    @property
    def changes_metadata(self) -> bool:
        """Whether the commit contains a metaData action."""
        return self.snapshot is None or self.configuration.metadata != self.snapshot.metadata

    @property
    def changes_identity_marks_only(self) -> bool:
        """Whether the metadata changes only in the high water marks of identity columns."""
        return (
            self.snapshot is not None
            and self.changes_metadata
            and self._unmarked.metadata == self.snapshot.metadata
        )

    def add_files(self, written: WrittenFiles | Iterable[AddFile]) -> None:
        """Add new files. From `WrittenFiles`, also add change files and identity high water marks.

        Raises:
            InvalidInputError: the files were written for another table.
            SchemaMismatchError: the table's schema or the high water mark of an identity column has
                changed since the files were written.
        """
        if not isinstance(written, WrittenFiles):
            self.adds.extend(written)
            return
        self._check_written(written)
        self.adds.extend(written.adds)
        self.cdc.extend(written.cdc)
        self.own_paths.extend(written.paths)
        self._identity_marks.update(written.identity_marks)
        self._marked = None

    def _check_written(self, written: WrittenFiles) -> None:
        metadata = self._unmarked.metadata
        if written.table_id != metadata.id:
            raise InvalidInputError(
                f"cannot commit these files to {self.store.root}: they were written for the table "
                f"with id {written.table_id!r}, but this table has the id {metadata.id!r}"
            )
        if written.schema_string == metadata.schema_string:
            return
        theirs, ours = parse_schema(written.schema_string), self._unmarked.schema
        if written.identity_marks or _without_marks(theirs) != _without_marks(ours):
            raise SchemaMismatchError(
                f"cannot commit these files to {self.store.root}: the table's schema, or the last "
                "value of an identity column, has changed since they were written; write them again"
            )

    def add_again(self, files: pa.Table) -> None:
        """Add existing files again, with a new deletion vector, statistics or row ids.

        Args:
            files: rows with `FILE_SCHEMA`; `dataChange` must be as in the commit.
        """
        if files.num_rows:
            self._added_again.append(files.select(FILE_SCHEMA.names).cast(FILE_SCHEMA))

    @property
    def files_added_again(self) -> pa.Table:
        """Existing files that are added again (schema `FILE_SCHEMA`)."""
        masked = [masks.added for masks in self.masks if masks.added is not None]
        found = [*self._added_again, *masked]
        return pa.concat_tables([_no_files(), *found]) if found else _no_files()

    def mask_rows(self, masks: Masks) -> None:
        """Mark rows as deleted: remove their files, add them again with new deletion vectors."""
        self.masks.append(masks)
        self.own_paths.extend(masks.paths)

    def remove_files(self, files: pa.Table, *, data_change: bool) -> None:
        """Remove live files.

        Args:
            files: rows of `snapshot.files()` with at least the columns `path`, `partitionValues`,
                `size`, `tags`, `deletionVector`, `baseRowId` and `defaultRowCommitVersion`.
            data_change: whether the removal deletes rows from the table.
        """
        if files.num_rows:
            self._removes.append((files, data_change))

    @property
    def removes(self) -> tuple[tuple[pa.Table, bool], ...]:
        """Removed files, as pairs of an Arrow table and the value of `dataChange`."""
        return (*self._removes, *((masks.files, True) for masks in self.masks))

    def add_changes(self, files: Iterable[AddCDCFile]) -> None:
        """Add change data files that were written for this transaction."""
        for file in files:
            self.cdc.append(file)
            self.own_paths.append(file.path)

    def set_domain(self, domain: DomainMetadata) -> None:
        """Set a domain's metadata."""
        self.domains[domain.domain] = domain

    def remove_domain(self, name: str) -> None:
        """Remove a metadata domain. The tombstone contains the old configuration.

        Requirement DOM-06

        Raises:
            InvalidInputError: the table has no such domain.
        """
        known = {} if self.snapshot is None else self.snapshot.domain_metadata
        found = known.get(name)
        if found is None:
            raise InvalidInputError(
                f"cannot remove the metadata domain {name!r}: {self.store.root} has no such domain"
            )
        self.domains[name] = replace(found, removed=True)

    def set_app_transaction(self, transaction: AppTransaction) -> None:
        """Record an application transaction, and that the commit depends on it.

        Raises:
            InvalidInputError: the application is already recorded with another version.
        """
        known = self.app_transactions.get(transaction.app_id)
        if known is not None and known.version != transaction.version:
            raise InvalidInputError(
                f"cannot record two versions of the application {transaction.app_id!r} in one "
                f"commit: {known.version} and {transaction.version}"
            )
        self.app_transactions[transaction.app_id] = transaction
        self.read_set = self.read_set.with_app(transaction.app_id)

    def record_read(
        self,
        predicate: Expression | None,
        files: pa.Table | None = None,
        *,
        is_row_local: bool = False,
    ) -> None:
        """Record which rows the operation read, for conflict detection.

        Args:
            predicate: a condition that matches all rows that were read, resolved against the
                snapshot's schema. None means the whole table.
            files: the files that were read, as rows of `snapshot.files`.
            is_row_local: whether the operation decides about each row only by that row's values;
                see `rebase`.
        """
        found = self.read_set.with_predicate(predicate)
        self.read_set = replace(found, is_row_local=found.is_row_local and is_row_local)
        if files is not None:
            self.record_read_files(files, is_row_local=is_row_local)

    def record_read_files(self, files: pa.Table, *, is_row_local: bool = False) -> None:
        """Record files whose rows were read; see `record_read`."""
        found = self.read_set.with_files(files)
        self.read_set = replace(found, is_row_local=found.is_row_local and is_row_local)

    def add_metrics(self, metrics: Mapping[str, int | str]) -> None:
        """Add the metrics of an operation to the metrics of earlier operations.

        Counts, bytes and times are added. A minimum or maximum is that of all operations. Strings
        and quantiles are replaced.
        """
        for name, value in metrics.items():
            before = self.metrics.get(name)
            if isinstance(before, int) and isinstance(value, int):
                self.metrics[name] = _combined(name, before, value)
            else:
                self.metrics[name] = value

    @property
    def is_blind_append(self) -> bool:
        """Whether the commit only adds new files and has read no rows."""
        return not (self._removes or self._added_again or self.masks) and self.read_set.is_blind

    @property
    def data_change(self) -> bool:
        """Whether the commit changes rows: any of its files has `dataChange`."""
        return (
            bool(self.masks)
            or any(add.data_change for add in self.adds)
            or any(changed for _, changed in self._removes)
            or any(pc.any(rows.column("dataChange")).as_py() for rows in self._added_again)
        )

    @property
    def names_files(self) -> bool:
        """Whether the commit adds or removes any file."""
        return bool(self.adds or self._added_again or self._removes or self.masks)

    @property
    def is_empty(self) -> bool:
        """Whether the commit would change nothing."""
        return not (
            self.names_files
            or self.cdc
            or self.domains
            or self.app_transactions
            or self.changes_protocol
            or self.changes_metadata
        )


def _with_marks(configuration: TableConfiguration, marks: Mapping[str, int]) -> TableConfiguration:
    if not marks:
        return configuration
    schema = with_high_water_marks(configuration.schema, marks)
    if schema == configuration.schema:
        return configuration
    metadata = replace(configuration.metadata, schema_string=encode_schema(schema))
    return TableConfiguration(configuration.protocol, metadata)


def _without_marks(schema: StructType) -> StructType:
    return schema.with_fields(
        [
            replace(
                field,
                metadata={
                    key: value
                    for key, value in field.metadata.items()
                    if key != IDENTITY_HIGH_WATER_MARK_KEY
                },
            )
            for field in schema.fields
        ]
    )


# --- Files that callers commit themselves, with the names of deltalake's classes


@dataclass(slots=True)
class AddAction:
    """A Parquet file in the table's directory that becomes part of the table.

    Args:
        path: path relative to the table, not encoded.
        size: size in bytes.
        partition_values: column → serialised value, as in `partitions()`.
        modification_time: milliseconds since 1970, UTC.
        data_change: False if the rows of the file were already in the table.
        stats: statistics as a JSON string, such as `{"numRecords": 3}`. They are not checked
            against the file.
    """

    path: str
    size: int
    partition_values: Mapping[str, str | None]
    modification_time: int
    data_change: bool
    stats: str


@dataclass(slots=True)
class RemoveAction:
    """A file to remove from the table.

    Args:
        path: path relative to the table, not encoded.
        data_change: False if the rows of the file remain in the table, in another file.
        deletion_timestamp: ignored; accepted for compatibility with deltalake. The commit records
            its own time.
        size: ignored; accepted for compatibility with deltalake.
        partition_values: ignored; accepted for compatibility with deltalake.
    """

    path: str
    data_change: bool
    deletion_timestamp: int
    size: int | None = None
    partition_values: Mapping[str, str | None] | None = None


# --- Clean-up after a transaction that was not committed


logger: logging.Logger = logging.getLogger(__name__)


@contextmanager
def discarding(pending: PendingTransaction) -> Iterator[None]:
    """Delete the transaction's own files if the block fails and no commit can name them.

    After an interrupt such as Ctrl-C, the files are deleted only if no commit request was sent.
    """
    try:
        yield
    except CommitOutcomeUnknownError:
        raise
    except BaseException as error:
        is_known = isinstance(error, Exception) or not pending.is_sent
        if is_known and not pending.is_committed:
            discard(pending)
        raise


def discard(pending: PendingTransaction) -> None:
    """Delete the own files of a transaction that was not committed."""
    try:
        pending.store.delete_many(pending.own_paths)
    except DeltaError as error:
        logger.log(
            cleanup_level(error),
            "could not delete %s of a failed %s in %s; vacuum deletes the rest: %s",
            counted(len(pending.own_paths), FILE),
            pending.operation,
            pending.store.root,
            error,
        )
