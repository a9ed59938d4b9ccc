"""Writing changed rows to change data files, and writing the new rows of a `replaceWhere`.

Protocol: Change Data Files, Add CDC File
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from deltalog._util.kernels import Array, pc
from deltalog.data.write.encode import Layout
from deltalog.data.write.enforce import Enforcer
from deltalog.data.write.files import FileWriter, partition_values
from deltalog.data.write.open_files import CHANGE_DIRECTORY, FilePlan
from deltalog.data.write.rows_to_files import RowsToFiles, WriteLimits
from deltalog.errors import ConstraintViolationError
from deltalog.protocol.actions import AddCDCFile
from deltalog.schema.check import readable_rows, shown_values
from deltalog.schema.metadata_columns import CHANGE_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deltalog.data.write.options import WriteSpec
    from deltalog.data.write.written import WrittenFiles
    from deltalog.expressions import Expression


class ChangeWriter:
    """Writes changed rows to change data files; after an error, the context manager deletes them.

    Args:
        spec: the table's write spec.
    """

    def __init__(self, spec: WriteSpec) -> None:
        self._spec = spec
        self._layout = Layout(spec.configuration, extra=[pa.field(CHANGE_TYPE, pa.string())])
        self._parts = RowsToFiles(
            FilePlan(
                spec=spec,
                layout=self._layout,
                directory=CHANGE_DIRECTORY,
                prefix="cdc",
                has_stats=False,
            ),
            WriteLimits(),
        )

    def write(self, batch: pa.RecordBatch, change_type: str | Array) -> None:
        """Add changed rows.

        Args:
            batch: rows in the table's logical schema.
            change_type: `insert`, `update_preimage`, `update_postimage` or `delete`; a string for
                all rows, or an array with a value per row.
        """
        if isinstance(change_type, str):
            change_type = pa.repeat(pa.scalar(change_type), batch.num_rows)
        self._parts.write(self._layout.encode(batch, extra=[change_type]), batch)

    def finish(self) -> tuple[AddCDCFile, ...]:
        """Close all files, and return their `cdc` actions."""
        return tuple(
            AddCDCFile(
                path=part.path,
                partition_values=partition_values(self._spec, part),
                size_bytes=part.size_bytes,
            )
            for part in self._parts.finish()
        )

    def abandon(self) -> None:
        """Delete the files that were written."""
        self._parts.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abandon()


# --- writing rows that must match the predicate of `replaceWhere`


_EXAMPLES: Final = 5


def write_where(
    spec: WriteSpec, rows: pa.RecordBatchReader, predicate: Expression, *, tells_changes: bool
) -> WrittenFiles:
    """Write rows like `write_files`; raise if a row does not match the predicate.

    Args:
        spec: the table's write spec.
        rows: the rows, which are read once.
        predicate: a condition, resolved against the table's schema.
        tells_changes: whether to also write change data files.

    Raises:
        ConstraintViolationError: a row does not match, or violates a constraint of the table.
        SchemaMismatchError: the rows' columns or types are invalid for the table.

        After any error, the files are deleted.
    """
    with FileWriter(spec) as writer, ChangeWriter(spec) as changes:
        enforcer = Enforcer.of_spec(spec, rows.schema)
        for batch in _matching(map(enforcer.apply, rows), predicate, spec.store.root):
            writer.write(batch)
            if tells_changes:
                changes.write(batch, "insert")
        written = writer.finish(
            identity_marks=enforcer.identity_marks, identity_starts=enforcer.identity_starts
        )
        return replace(written, cdc=changes.finish())


def _matching(
    batches: Iterable[pa.RecordBatch], predicate: Expression, table: str
) -> Iterator[pa.RecordBatch]:
    """Yield the batches; raise if a row does not match.

    NULL is not a match, because the next overwrite with this predicate would not replace such a
    row.
    """
    from deltalog.expressions import filter_mask  # noqa: PLC0415  # few writes need it
    from deltalog.expressions.render import shown_sql  # noqa: PLC0415  # as above

    for batch in batches:
        mask: Any = filter_mask(predicate, batch)
        missed = batch.num_rows - mask.true_count
        if missed:
            examples = readable_rows(batch.filter(pc.invert(mask)).slice(0, _EXAMPLES))
            verb = "does" if missed == 1 else "do"
            raise ConstraintViolationError(
                f"cannot overwrite the rows of {table} where {shown_sql(predicate)}: {missed} of "
                f"the new rows {verb} not match, for example {shown_values(examples)}; "
                "write them separately"
            )
        yield batch
