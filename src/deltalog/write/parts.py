"""Write the rows of several callers to data files together; each of them has an error of its own.

Protocol: Add File and Remove File
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog.write.enforce import Enforcer
from deltalog.write.files import FileWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles


def write_parts(
    spec: WriteSpec, parts: Sequence[pa.Table]
) -> tuple[WrittenFiles, list[Exception | None]]:
    """Write rows to data files, without the parts that break a rule of the table.

    Args:
        spec: of the table.
        parts: rows with columns as any write takes them; a part is written whole or not at all.

    Returns:
        The new files, and for each part its error, or None if its rows are in the files.

    Raises:
        StorageError: the store failed; the files of this call are deleted.

    Cost: as one write of all rows; where a part is refused, neighbours with the same columns are
    checked once more.
    """
    errors: list[Exception | None] = []
    with FileWriter(spec) as writer:
        rules = _Rules(spec)
        for schema, run in groupby(parts, key=lambda part: part.schema):
            errors += _write_run(writer, rules, schema, list(run))
        written = writer.finish(
            identity_marks=rules.identity_marks, identity_starts=rules.identity_starts
        )
    return written, errors


def _write_run(
    writer: FileWriter, rules: _Rules, schema: pa.Schema, run: list[pa.Table]
) -> list[Exception | None]:
    """Write parts with the same columns; all at once, unless one of them is refused."""
    if not schema.names:  # an empty list has no columns to be checked
        return [None] * len(run)
    try:
        completed = rules.apply(pa.concat_tables(run))
    except Exception as error:  # noqa: BLE001  # whatever it is, it is not the others' answer
        if len(run) == 1:
            return [error]
        return [found for part in run for found in _write_run(writer, rules, schema, [part])]
    for batch in completed:
        writer.write(batch)
    return [None] * len(run)


class _Rules:
    """Completes and checks the rows of parts; identity values go on from one part to the next."""

    def __init__(self, spec: WriteSpec) -> None:
        self._spec = spec
        self._next = dict(spec.identity_starts)
        self.identity_marks: dict[str, int] = {}
        self.identity_starts: dict[str, int] = {}

    def apply(self, rows: pa.Table) -> list[pa.RecordBatch]:
        """All rows in the table's schema.

        Raises:
            DeltaError: as `Enforcer.apply`.
        """
        enforcer = Enforcer.of_spec(self._spec.starting_at(self._next), rows.schema)
        try:
            batches = rows.combine_chunks().to_batches()
            return [enforcer.apply(batch) for batch in batches if batch.num_rows]
        finally:  # values of refused rows are not given again
            self._next.update(enforcer.identity_next)
            self.identity_marks.update(enforcer.identity_marks)
            self.identity_starts = {**enforcer.identity_starts, **self.identity_starts}
