"""Commit files that workers have written: the second step of a distributed write.

Protocol: Add File and Remove File
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from deltalog._util.json import loads
from deltalog._util.kernels import pc
from deltalog._util.paths import canonical_paths, check_confined, encode_path
from deltalog._util.readable import FILE, counted
from deltalog.data.scan.prune import prune
from deltalog.data.write.written import WrittenFiles, rules_of
from deltalog.errors import DataFileMissingError, InvalidInputError, ObjectNotFoundError
from deltalog.expressions import columns
from deltalog.operations.arguments import as_condition, with_blanks_as_nulls
from deltalog.operations.operation import Nothing, Operation
from deltalog.operations.write import RowsWritten, WriteMode
from deltalog.protocol.actions import AddFile
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.features.declarations import generation_expressions, table_checks
from deltalog.protocol.features.identity_columns import identity_columns
from deltalog.protocol.partition_values import parse_value
from deltalog.storage.store import Store, is_local
from deltalog.transaction.pending import AddAction, RemoveAction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.operations.engine import Engine
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.schema import StructType
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFiles(Operation[RowsWritten]):
    """Commit files that workers have written.

    Args:
        parts: the result of each worker.
        mode: `append`, or `overwrite`, which removes all existing files.
    """

    parts: Sequence[WrittenFiles]
    mode: WriteMode = "append"
    name: ClassVar[str] = "WRITE"
    needs_latest: ClassVar[bool] = False

    @property
    def is_repeatable(self) -> bool:
        """False, because the files are valid only for the configuration they were written for."""
        return False

    def logged_parameters(self) -> Mapping[str, Any]:
        """Return the mode."""
        return {"mode": self.mode.capitalize(), "partitionBy": []}

    def stage(self, transaction: PendingTransaction, engine: Engine) -> RowsWritten:
        """Add the files.

        Raises:
            InvalidInputError: the files were written for another table, or the table's schema,
                properties, constraints or protocol have changed since.
            DataFileMissingError: a local file no longer exists.

        Cost: on a local disk, checks that each file exists; sends no requests to object stores.
        """
        del engine
        if self.mode not in {"append", "overwrite"}:
            raise InvalidInputError(f"mode: expected 'append' or 'overwrite', found {self.mode!r}")
        written = WrittenFiles.merge(self.parts)
        if written.schema_string != transaction.configuration.metadata.schema_string:
            raise InvalidInputError(
                f"cannot commit these files to {transaction.store.root}: the table's schema has "
                "changed since they were written; write them again"
            )
        if written.rules and written.rules != rules_of(transaction.configuration):
            raise InvalidInputError(
                f"cannot commit these files to {transaction.store.root}: the table's properties, "
                "constraints, partition columns or protocol have changed since they were written; "
                "write them again"
            )
        if is_local(transaction.store):
            _check_there(transaction.store, written)
        transaction.add_files(written)
        # A failed commit must not delete the files, because the caller may commit them again.
        transaction.own_paths.clear()
        removed = None
        if self.mode == "overwrite":
            removed = transaction.read_snapshot.files()
            transaction.record_read(None)
            transaction.remove_files(removed, data_change=True)
        return RowsWritten(written=written, removed=removed)


def _check_there(store: Store, written: WrittenFiles) -> None:
    """Raise if a file no longer exists, for example because vacuum deleted it.

    Raises:
        DataFileMissingError: a file no longer exists.
    """
    for add in written.adds:
        try:
            store.stat(add.path)
        except ObjectNotFoundError as error:
            raise DataFileMissingError(
                f"cannot commit the file {add.path!r} to {store.root}: it no longer exists; vacuum "
                "may have deleted it, or the directory was rolled back; write the rows again"
            ) from error


# --- Commits of a caller's add and remove actions


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitActions(Operation[Nothing]):
    """Add files that a caller has written, and remove files that the caller names.

    Args:
        actions: the files to add and, with mode `append`, the files to remove.
        mode: `append`, or `overwrite`, which removes the existing files.
        schema: schema of the added files; it must have the table's columns and types.
        partition_by: the table's partition columns, if given.
        partition_filters: with mode `overwrite`: remove only the files of these partitions.
    """

    actions: Sequence[AddAction | RemoveAction]
    mode: str
    schema: StructType
    partition_by: Sequence[str] | None = None
    partition_filters: Any = None
    name: ClassVar[str] = "WRITE"

    def __post_init__(self) -> None:
        """Raise for invalid or contradictory arguments."""
        given: Sequence[object] = self.actions  # callers may pass other types
        odd = [one for one in given if not isinstance(one, AddAction | RemoveAction)]
        if odd:
            raise InvalidInputError(
                f"cannot commit {odd[0]!r}: expected an AddAction or a RemoveAction"
            )
        if self.mode not in {"append", "overwrite"}:
            raise InvalidInputError(f"mode: expected 'append' or 'overwrite', found {self.mode!r}")
        if self.mode == "overwrite" and any(isinstance(a, RemoveAction) for a in self.actions):
            raise InvalidInputError(
                "cannot commit a RemoveAction with mode='overwrite', which removes files by itself"
            )
        paths = [_relative(one.path) for one in self.actions]
        twice = sorted({path for path in paths if paths.count(path) > 1})
        if twice:
            raise InvalidInputError(f"cannot commit the same file path twice: {twice[0]!r}")

    def logged_parameters(self) -> Mapping[str, Any]:
        """Return the mode and the partition columns."""
        return {"mode": self.mode.capitalize(), "partitionBy": list(self.partition_by or ())}

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Nothing:
        """Add and remove the files.

        Raises:
            InvalidInputError: a file's schema, partition values, size or statistics are invalid
                for the table; or the table has constraints, generated columns or identity columns,
                which cannot be checked here.
            DataFileMissingError: a file does not exist.

        Cost: one request per added file.
        """
        del engine
        self._check_table(transaction)
        adds = [one for one in self.actions if isinstance(one, AddAction)]
        transaction.add_files([_add_file(one, transaction) for one in adds])
        self._remove(transaction)
        return Nothing()

    def _check_table(self, transaction: PendingTransaction) -> None:
        configuration, root = transaction.configuration, transaction.store.root
        given = {field.name: str(field.type) for field in self.schema}
        own = {field.name: str(field.type) for field in configuration.schema}
        if given != own:
            raise InvalidInputError(
                f"cannot commit files to {root}: expected the table's schema {own}, found {given}"
            )
        known = configuration.partition_columns
        if self.partition_by and list(self.partition_by) != list(known):
            raise InvalidInputError(
                f"cannot commit files to {root} with partition_by={list(self.partition_by)}: the "
                f"table's partition columns are {list(known)}"
            )
        rules = _rules(configuration)
        if rules and any(isinstance(one, AddAction) for one in self.actions):
            raise InvalidInputError(
                f"cannot commit files to {root}: their rows are not checked, but the table has "
                f"{', '.join(rules)}; write the files with write_files, which checks the rows"
            )

    def _remove(self, transaction: PendingTransaction) -> None:
        snapshot, configuration = transaction.read_snapshot, transaction.configuration
        if self.mode == "overwrite":
            known = configuration.partition_columns
            blank = with_blanks_as_nulls(self.partition_filters, known)
            predicate = as_condition(
                configuration.schema, blank, session=transaction.context.session
            )
            others = {path[0] for path in columns(predicate)} if predicate is not None else set()
            if not others <= set(known):
                raise InvalidInputError(
                    f"partition_filters: expected conditions on {list(known)}, found "
                    f"{self.partition_filters!r}"
                )
            transaction.record_read(predicate)
            transaction.remove_files(
                prune(snapshot, predicate).files(FILE_SCHEMA.names), data_change=True
            )
            return
        removes = [one for one in self.actions if isinstance(one, RemoveAction)]
        if not removes:
            return
        files = snapshot.files()
        for data_change in (True, False):
            paths = [_relative(one.path) for one in removes if one.data_change is data_change]
            encoded = pa.array([encode_path(path) for path in paths], pa.string())
            wanted = canonical_paths(encoded, transaction.store.root)
            found = files.filter(pc.is_in(files["path"], value_set=wanted))
            if found.num_rows < len(paths):
                raise InvalidInputError(
                    f"cannot remove {paths!r} from {transaction.store.root}: the table has "
                    f"{found.num_rows} of {counted(len(paths), FILE)}"
                )
            transaction.remove_files(found, data_change=data_change)


def _rules(configuration: TableConfiguration) -> list[str]:
    """Describe the table's rules that need a check of each row, for an error message."""
    schema = configuration.schema
    checks = table_checks(configuration.metadata.configuration, schema)
    return [
        *(f"{check.kind} {check.name}" for check in checks),
        *(f"the generated column {name}" for name in generation_expressions(schema)),
        *(f"the identity column {column.name}" for column in identity_columns(schema)),
    ]


def _relative(path: str) -> str:
    # Accept a leading slash, as deltalake does. The path is still relative to the table.
    relative = path.lstrip("/")
    check_confined(relative, allow_absolute=False)
    return relative


def _add_file(action: AddAction, transaction: PendingTransaction) -> AddFile:
    path, store = _relative(action.path), transaction.store
    try:
        info = store.stat(path)
    except ObjectNotFoundError as error:
        raise DataFileMissingError(
            f"cannot commit {path!r} to {store.root}: there is no such file"
        ) from error
    if info.size_bytes != action.size:
        raise InvalidInputError(
            f"cannot commit {path!r} to {store.root}: expected a file of {action.size} bytes, "
            f"found {info.size_bytes}"
        )
    stats = loads(action.stats or "{}", f"stats of {path}")
    if not isinstance(stats, dict):
        raise InvalidInputError(f"stats of {path}: expected a JSON object, found {action.stats!r}")
    return AddFile(
        path=path,
        partition_values=_partition_values(action, transaction),
        size_bytes=action.size,
        modification_time_ms=action.modification_time,
        data_change=action.data_change,
        stats=action.stats if stats else None,
    )


def _partition_values(action: AddAction, transaction: PendingTransaction) -> dict[str, str | None]:
    configuration = transaction.configuration
    known, given = configuration.partition_columns, action.partition_values
    if set(given) != set(known):
        raise InvalidInputError(
            f"cannot commit {action.path!r}: expected values of the partition columns "
            f"{list(known)}, found {dict(given)}"
        )
    for field in configuration.partition_schema.fields:
        zone = transaction.context.time_zone
        parse_value(given[field.name], field.type, column=field.name, time_zone=zone)
    stored = configuration.physical_partition_columns
    return {key: given[name] for name, key in zip(known, stored, strict=True)}
