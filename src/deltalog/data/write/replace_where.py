"""Write rows that must all match a predicate: the writing half of `replaceWhere`.

Owns the check. The operation deletes the replaced rows.

Protocol: Add CDC File
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import pc
from deltalog.data.write.changes import ChangeWriter
from deltalog.data.write.enforce import Enforcer
from deltalog.data.write.files import FileWriter
from deltalog.errors import ConstraintViolationError
from deltalog.expressions import filter_mask, to_sql
from deltalog.schema.check import readable_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deltalog.data.write.options import WriteSpec
    from deltalog.data.write.written import WrittenFiles
    from deltalog.expressions import Expression

_EXAMPLES: Final = 5


def write_where(
    spec: WriteSpec, rows: pa.RecordBatchReader, predicate: Expression, *, tells_changes: bool
) -> WrittenFiles:
    """Write rows as `write_files` does, and raise if one of them does not match.

    Args:
        spec: of the table.
        rows: read once.
        predicate: resolved against the table's schema.
        tells_changes: whether change data files are written as well.

    Raises:
        ConstraintViolationError: a row does not match, or violates a constraint of the table.
        SchemaMismatchError: the rows do not fit the table. After any error, no file is left.
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

    NULL counts as no match, as the same overwrite would not replace such a row the next time.
    """
    for batch in batches:
        mask: Any = filter_mask(predicate, batch)
        missed = batch.num_rows - mask.true_count
        if missed:
            examples = readable_rows(batch.filter(pc.invert(mask)).slice(0, _EXAMPLES))
            raise ConstraintViolationError(
                f"cannot overwrite the rows of {table} where {to_sql(predicate)}: {missed} of the "
                f"new rows do not match, for example {examples}; write them apart"
            )
        yield batch
