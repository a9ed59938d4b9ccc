"""Append the rows of several callers in one version; each of them has an answer of its own.

Protocol: Add File and Remove File
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from deltalog.rows.file_options import FileOptions
from deltalog.verbs.verb import Verb
from deltalog.write.parts import write_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from deltalog.engine import Engine
    from deltalog.transaction import PendingTransaction
    from deltalog.write.written import WrittenFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsAppended:
    """The outcome of `AppendParts`.

    Args:
        written: the new files.
        errors: for each part its error, or None if its rows are in the version.
    """

    written: WrittenFiles
    errors: Sequence[Exception | None]

    def metrics(self) -> dict[str, int]:
        """Return Delta Spark's operationMetrics."""
        written = self.written
        return {
            "numFiles": len(written.adds),
            "numOutputRows": written.num_rows,
            "numOutputBytes": written.num_bytes,
        }

    def result(self) -> Sequence[Exception | None]:
        """Return the errors."""
        return self.errors


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendParts(Verb[PartsAppended]):
    """Append the rows of several callers, without those that break a rule of the table.

    Nothing is committed if all of them do.

    Args:
        parts: rows of one caller each, in memory.
        file_options: how new files are written.
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
        del engine  # few rows, and they are in this process
        written, errors = write_parts(self.file_options.spec_for(transaction), self.parts)
        if written.adds:
            transaction.add_files(written)
        return PartsAppended(written=written, errors=errors)
