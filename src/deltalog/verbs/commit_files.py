"""Commit files that workers have written: the second step of a distributed write.

Protocol: Add File and Remove File
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from deltalog.errors import DataFileMissingError, InvalidInputError, ObjectNotFoundError
from deltalog.storage.store import is_local
from deltalog.verbs.verb import Verb
from deltalog.verbs.write import RowsWritten, WriteMode
from deltalog.write.written import WrittenFiles, rules_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.engine import Engine
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFiles(Verb[RowsWritten]):
    """Commit files that workers have written.

    Args:
        parts: the result of each worker.
        mode: `overwrite` removes all existing files.
    """

    parts: Sequence[WrittenFiles]
    mode: WriteMode = "append"
    name: ClassVar[str] = "WRITE"
    needs_latest: ClassVar[bool] = False

    @property
    def is_repeatable(self) -> bool:
        """False: files are only valid for the configuration that they were written for."""
        return False

    def logged_parameters(self) -> Mapping[str, Any]:
        """Return the mode."""
        return {"mode": self.mode.capitalize(), "partitionBy": []}

    def stage(self, transaction: PendingTransaction, engine: Engine) -> RowsWritten:
        """Add the files.

        Raises:
            InvalidInputError: they were written for another table, or for another schema,
                properties, constraints or protocol than the table has now.
            DataFileMissingError: a local file is gone.

        Cost: a look at each file on a local disk; nothing elsewhere.
        """
        del engine
        if self.mode not in {"append", "overwrite"}:
            raise InvalidInputError(f"mode: expected 'append' or 'overwrite', found {self.mode!r}")
        written = WrittenFiles.merge(self.parts)
        if written.schema_string != transaction.configuration.metadata.schema_string:
            raise InvalidInputError(
                f"cannot commit these files to {transaction.store.root}: they were written for a "
                "schema that the table has no more; write them again"
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
        # Not deleted if this commit fails, as the caller may commit the files again.
        transaction.own_paths.clear()
        removed = None
        if self.mode == "overwrite":
            removed = transaction.read_snapshot.files()
            transaction.record_read(None)
            transaction.remove_files(removed, data_change=True)
        return RowsWritten(written=written, removed=removed)


def _check_there(store: Store, written: WrittenFiles) -> None:
    """Refuse files that are gone with a directory that was set back, or by vacuum.

    Raises:
        DataFileMissingError: one is.
    """
    for add in written.adds:
        try:
            store.stat(add.path)
        except ObjectNotFoundError as error:
            raise DataFileMissingError(
                f"cannot commit the file {add.path!r} to {store.root}: it is gone, as after vacuum "
                "or where the directory was set back; write the rows again"
            ) from error
