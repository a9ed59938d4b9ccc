"""Writing rows to new data files, and returning add actions for the files.

Workers use this module. It never commits. A failed write deletes its files.

Protocol: Add File and Remove File
"""

from __future__ import annotations

import logging
from itertools import groupby
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from deltalog._util.kernels import Array
from deltalog.data.write.encode import Layout
from deltalog.data.write.enforce import Enforcer
from deltalog.data.write.open_files import FilePlan, FinishedFile, Values
from deltalog.data.write.rows_to_files import RowsToFiles, WriteLimits
from deltalog.data.write.source import open_batches
from deltalog.data.write.typed_values import with_typed_values
from deltalog.data.write.written import WrittenFiles, rules_of
from deltalog.errors import InternalError, InvalidMetadataError
from deltalog.protocol.actions import AddFile
from deltalog.schema.columns import naming_the_attempt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.data.keys.writing import NewKeys
    from deltalog.data.write.options import WriteSpec
    from deltalog.data.write.spliced_files import CopiedGroups, SplicedFiles

logger: logging.Logger = logging.getLogger(__name__)


def write_files(spec: WriteSpec, data: object) -> WrittenFiles:
    """Write rows to data files, which are committed later.

    The rows are completed and checked. The data may be larger than memory.

    Args:
        spec: the table's write spec.
        data: anything that `open_batches` accepts.

    Raises:
        SchemaMismatchError: the data's columns or types are invalid for the table.
        ConstraintViolationError: a row violates a constraint of the table.
        UnsupportedFeatureError: deltalog cannot evaluate an expression of the table.
        StorageError: the store failed. After any error, the files of this call are deleted.

    Cost: one pass over the data; memory for a few row groups; one request per file on object
        stores.
    """
    reader = open_batches(with_typed_values(data, spec.configuration.schema))
    with FileWriter(spec) as writer:
        if not reader.schema.names:
            # an empty list has no columns to check
            return writer.finish()
        enforcer = Enforcer.of_spec(spec, reader.schema)
        for batch in reader:
            if batch.num_rows:
                writer.write(enforcer.apply(batch))
        return writer.finish(
            identity_marks=enforcer.identity_marks, identity_starts=enforcer.identity_starts
        )


class FileWriter:
    """Writes checked rows to files; after an error, the context manager deletes its files.

    Args:
        spec: the table's write spec.
        limits: limits on memory and open files; None uses the defaults.

    Attributes:
        spec: the write spec.
    """

    def __init__(self, spec: WriteSpec, *, limits: WriteLimits | None = None) -> None:
        self.spec = spec
        self._layout = Layout(spec.configuration)
        self._limits = limits or WriteLimits()
        self._keys = _new_keys(spec)
        self._plan = FilePlan(spec=spec, layout=self._layout, keys=self._keys)
        self._parts = RowsToFiles(self._plan, self._limits)
        self._spliced: SplicedFiles | None = None

    def write(
        self,
        batch: pa.RecordBatch,
        *,
        row_ids: Array | None = None,
        row_commit_versions: Array | None = None,
    ) -> None:
        """Add rows.

        Args:
            batch: rows in the table's logical schema, as returned by `Enforcer.apply`.
            row_ids: row ids to preserve, NULL for new rows.
            row_commit_versions: row commit versions to preserve, NULL for changed rows.
        """
        physical = self._layout.encode(
            batch, row_ids=row_ids, row_commit_versions=row_commit_versions
        )
        self._parts.write(physical, batch)

    def splice(self, *, with_row_ids: bool) -> SplicedFiles:
        """Return the writer for copied row groups; every call returns the same writer.

        Args:
            with_row_ids: whether these files have the hidden columns of row tracking.
        """
        from deltalog.data.write.spliced_files import SplicedFiles  # noqa: PLC0415  # only for copied row groups

        if self._spliced is None:
            schema = self._layout.arrow_schema(with_row_ids=with_row_ids)
            self._spliced = SplicedFiles(self._plan, self._limits, schema)
        return self._spliced

    def write_spliced(
        self,
        values: Values,
        batch: pa.RecordBatch,
        *,
        row_ids: Array | None = None,
        row_commit_versions: Array | None = None,
    ) -> None:
        """Add rows of one partition to files with copied row groups; call `splice` first.

        `values` are the serialised partition values; see `write` for the other arguments.
        """
        if self._spliced is None:
            raise InternalError("write_spliced was called before splice")
        physical = self._layout.encode(
            batch, row_ids=row_ids, row_commit_versions=row_commit_versions
        )
        self._spliced.write(values, physical)

    @property
    def copied(self) -> CopiedGroups:
        """Return counts of the copied row groups."""
        from deltalog.data.write.spliced_files import CopiedGroups  # noqa: PLC0415  # only for copied row groups

        return CopiedGroups() if self._spliced is None else self._spliced.copied

    def finish(
        self,
        *,
        identity_marks: Mapping[str, int] | None = None,
        identity_starts: Mapping[str, int] | None = None,
    ) -> WrittenFiles:
        """Close all files, and return their add actions.

        Args:
            identity_marks: the last assigned identity values, from which the high water marks
                follow.
            identity_starts: the first assigned identity values.
        """
        if self._spliced is not None:
            self._spliced.finish()
        parts = self._parts.finish()
        if self._keys is not None:
            self._keys.finish()
        return written_files(
            self.spec,
            parts,
            identity_marks=identity_marks,
            identity_starts=identity_starts,
        )

    def abandon(self) -> None:
        """Delete the files that were written."""
        if self._spliced is not None:
            self._spliced.abandon()
        self._parts.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abandon()


def _new_keys(spec: WriteSpec) -> NewKeys | None:
    """Return an object that indexes the keys of new files; None if the table has no key."""
    try:
        if spec.configuration.properties.key_index_columns is None:
            return None
        from deltalog.data.keys.writing import NewKeys  # noqa: PLC0415  # needs NumPy

        return NewKeys.of(spec.store, spec.configuration)
    except (ModuleNotFoundError, InvalidMetadataError) as error:
        logger.warning("cannot index the keys of new files of %s: %s", spec.store.root, error)
        return None


def written_files(
    spec: WriteSpec,
    parts: Sequence[FinishedFile],
    *,
    identity_marks: Mapping[str, int] | None = None,
    identity_starts: Mapping[str, int] | None = None,
) -> WrittenFiles:
    """Return complete files as `WrittenFiles`.

    Args:
        spec: the write's spec.
        parts: the files.
        identity_marks: the last assigned identity values, from which the high water marks follow.
        identity_starts: the first assigned identity values.
    """
    configuration = spec.configuration
    return WrittenFiles(
        adds=tuple(_add(spec, part) for part in parts),
        identity_marks=dict(identity_marks or {}),
        identity_starts=dict(identity_starts or {}),
        num_rows=sum(part.num_rows for part in parts),
        num_bytes=sum(part.size_bytes for part in parts),
        table_id=configuration.metadata.id,
        schema_string=configuration.metadata.schema_string,
        rules=rules_of(configuration),
    )


def _add(spec: WriteSpec, part: FinishedFile) -> AddFile:
    return AddFile(
        path=part.path,
        partition_values=partition_values(spec, part),
        size_bytes=part.size_bytes,
        modification_time_ms=part.modified_ms,
        data_change=spec.data_change,
        stats=part.stats,
    )


def partition_values(spec: WriteSpec, part: FinishedFile) -> dict[str, str | None]:
    """Return a file's `partitionValues`: serialised values by physical column name."""
    columns = spec.configuration.physical_partition_columns
    return dict(zip(columns, part.values, strict=True))


# --- Writing the rows of several callers together, with an error for each caller of invalid rows


def write_parts(
    spec: WriteSpec, parts: Sequence[pa.Table]
) -> tuple[WrittenFiles, list[Exception | None]]:
    """Write the valid parts to data files, and return an error for each invalid part.

    Args:
        spec: the table's write spec.
        parts: the rows of each caller; a part is written completely or not at all.

    Returns:
        The new files, and for each part its error, or None if the part was written.

    Raises:
        StorageError: the store failed; the files of this call are deleted.

    Cost: one write of all rows; if a part is invalid, adjacent parts with the same columns are
        checked again.
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
    """Write parts with the same columns together; if that fails, write each part separately."""
    if not schema.names:  # an empty list has no columns to be checked
        return [None] * len(run)
    try:
        completed = rules.apply(pa.concat_tables(run))
    except Exception as error:  # noqa: BLE001  # an error of one part must not fail the other parts
        if len(run) == 1:
            return [error]
        return [found for part in run for found in _write_run(writer, rules, schema, [part])]
    for batch in completed:
        writer.write(batch)
    return [None] * len(run)


class _Rules:
    """Completes and checks the rows of parts; identity values continue from part to part."""

    def __init__(self, spec: WriteSpec) -> None:
        self._spec = spec
        self._next = dict(spec.identity_starts)
        self.identity_marks: dict[str, int] = {}
        self.identity_starts: dict[str, int] = {}

    def apply(self, rows: pa.Table) -> list[pa.RecordBatch]:
        """Return all rows in the table's schema.

        Raises:
            DeltaError: see `Enforcer.apply`.
        """
        enforcer = Enforcer.of_spec(self._spec.starting_at(self._next), rows.schema)
        try:
            batches = rows.combine_chunks().to_batches()
            with naming_the_attempt("append to", self._spec.store.root):
                return [enforcer.apply(batch) for batch in batches if batch.num_rows]
        finally:  # identity values of invalid rows are not reused
            self._next.update(enforcer.identity_next)
            self.identity_marks.update(enforcer.identity_marks)
            self.identity_starts = {**enforcer.identity_starts, **self.identity_starts}
