"""The tasks of DELETE, UPDATE and MERGE, which write the changed rows.

Each input row contains the number of its clause, the position of its old version, and its new
values. Tasks check and write the rows, write change data files, and collect the positions of the
old versions.

Protocol: Deletion Vectors, Add CDC File, Row Tracking, Identity Columns
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention

from deltalog._util.escaping import name_key
from deltalog._util.kernels import Array, compute
from deltalog.data.scan import ScanTask, read_tasks
from deltalog.data.scan.transform import load_bitmap
from deltalog.data.write.changes import ChangeWriter
from deltalog.data.write.enforce import Enforcer
from deltalog.data.write.files import FileWriter
from deltalog.data.write.fit import Fit
from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, col, to_sql
from deltalog.operations.changes.assign import canonical_path
from deltalog.operations.changes.kept_groups import write_copied
from deltalog.operations.changes.request import Action
from deltalog.operations.changes.task_writes import identity_starts
from deltalog.protocol.deletion_vectors import DeletionBitmap, inline_descriptor
from deltalog.protocol.features.declarations import generation_expressions
from deltalog.protocol.features.identity_columns import identity_columns
from deltalog.schema import DataType, Field, PrimitiveType, StructType, find_field
from deltalog.spark.reading.conditions import sql_column
from deltalog.spark.session.settings import is_ansi
from deltalog.spark.session.tasks import task_number
from deltalog.spark.session.types import to_spark_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from deltalog.data.write.options import WriteSpec
    from deltalog.data.write.written import WrittenFiles
    from deltalog.protocol.configuration import TableConfiguration

CLAUSE: Final = "__deltalog_clause"
"""The name of the column that contains the number of the clause that applies to a row."""
OLD_FILE: Final = "__deltalog_path"
"""The name of the column that contains the path of the file with the old version of a row."""
OLD_POSITION: Final = "__deltalog_position"
"""The name of the column that contains the position of a row's old version in its file."""
ROW_ID: Final = "__deltalog_row_id"
OLD: Final = "__deltalog_old"
"""The name of the struct column that contains the old version of a row. Only tables with a change
data feed need it."""
NEW: Final = "__deltalog_new_"
"""The prefix of the names of the struct columns with new versions of rows. Each clause has its own
column, and the number of the clause follows the prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeJob:
    """The input of the tasks that change rows.

    Args:
        write_spec: the specification by which tasks write files of the table.
        clauses: the clauses, in the order of their numbers.
        tells_changes: whether tasks write change data files.
        writes: whether tasks write new versions. If not, rows are only counted and located.
    """

    write_spec: WriteSpec
    clauses: tuple[Action, ...]
    tells_changes: bool
    writes: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsDone:
    """The report of a task, or of all tasks together.

    Args:
        written: the new files.
        counts: the number of rows of each clause.
        places: the path of a file → the number of its row changes, and the positions of the changed
            rows. A position occurs once even if the row is changed twice.
    """

    written: WrittenFiles
    counts: tuple[int, ...]
    places: Mapping[str, tuple[int, DeletionBitmap]] = field(default_factory=dict)


def change_task(job: ChangeJob, batches: Iterable[pa.RecordBatch]) -> RowsDone:
    """Apply the clauses to the rows of one task."""
    opened = ChangeWriter(job.write_spec) if job.tells_changes else contextlib.nullcontext()
    with FileWriter(job.write_spec) as writer, opened as feed:
        work = _RowWork(job, writer, feed)
        for batch in batches:
            if batch.num_rows:
                work.take(batch)
        return work.finish()


class _RowWork:
    def __init__(self, job: ChangeJob, writer: FileWriter, feed: ChangeWriter | None) -> None:
        self._clauses = job.clauses
        self._spec = job.write_spec
        self._writes = job.writes
        self._writer = writer
        self._feed = feed
        self._has_ids = job.write_spec.configuration.row_ids_enabled
        self._counts = [0] * len(job.clauses)
        self._places: dict[str, list[Array]] = {}
        self._enforcers: dict[int, Enforcer] = {}

    def take(self, batch: pa.RecordBatch) -> None:
        """Apply the clauses to a batch of rows."""
        numbers = batch.column(CLAUSE)
        for number in compute.unique(numbers).to_pylist():
            mask = compute.equal(numbers, number)
            rows = batch if mask.true_count == batch.num_rows else batch.filter(mask)
            self._counts[number] += rows.num_rows
            self._do(number, rows)

    def _do(self, number: int, rows: pa.RecordBatch) -> None:
        action = self._clauses[number]
        is_new = action is Action.INSERT
        if not is_new:
            self._note(rows)
        if not self._writes:
            return
        if not is_new:
            self._tell_old(rows, "delete" if action is Action.DELETE else "update_preimage")
        if action is Action.DELETE:
            return
        structs: Array = rows.column(f"{NEW}{number}")
        given = pa.RecordBatch.from_struct_array(structs)
        new = self._enforcer(number, given.schema).apply(given)
        if self._has_ids:
            none: Any = pa.nulls(new.num_rows, pa.int64())
            ids = none if is_new else rows.column(ROW_ID)
            self._writer.write(new, row_ids=ids, row_commit_versions=none)
        else:
            self._writer.write(new)
        if self._feed is not None:
            self._feed.write(new, "insert" if is_new else "update_postimage")

    def _enforcer(self, number: int, schema: pa.Schema) -> Enforcer:
        found = self._enforcers.get(number)
        if found is None:
            configuration = self._spec.configuration
            place = task_number() * len(self._clauses) + number
            found = Enforcer(
                configuration,
                schema,
                table=self._spec.store.root,
                time_zone=self._spec.time_zone,
                identity_starts=identity_starts(self._spec, place),
                now_ms=self._spec.now_ms,
                keeps_identities=self._clauses[number] is not Action.INSERT,
            )
            self._enforcers[number] = found
        return found

    def _note(self, rows: pa.RecordBatch) -> None:
        """Collect the positions of the old versions of rows."""
        names: Array = rows.column(OLD_FILE).dictionary_encode()
        places = rows.column(OLD_POSITION)
        for code, name in enumerate(names.dictionary.to_pylist()):
            mask = compute.equal(names.indices, code)
            here = places if mask.true_count == rows.num_rows else places.filter(mask)
            self._places.setdefault(name, []).append(here)

    def _tell_old(self, rows: pa.RecordBatch, change_type: str) -> None:
        if self._feed is None:
            return
        structs: Array = rows.column(OLD)
        old = pa.RecordBatch.from_struct_array(structs)
        schema = self._spec.configuration.schema
        fit = Fit(old.schema, schema, optional=schema.names, time_zone=self._spec.time_zone)
        found = fit.apply(old)
        arrow = self._spec.configuration.arrow_schema
        arrays: list[Array] = [
            found[one.name] if one.name in found else pa.nulls(old.num_rows, one.type)
            for one in arrow
        ]
        self._feed.write(pa.RecordBatch.from_arrays(arrays, schema=arrow), change_type)

    def finish(self) -> RowsDone:
        """Close all files, and return the report of this task."""
        starts: dict[str, int] = {}
        marks: dict[str, int] = {}
        columns = {one.name: one for one in identity_columns(self._spec.configuration.schema)}
        for enforcer in self._enforcers.values():
            for name, start in enforcer.identity_starts.items():
                starts[name] = min(starts.get(name, start), start, key=_along(columns[name].step))
            for name, mark in enforcer.identity_marks.items():
                marks[name] = max(marks.get(name, mark), mark, key=_along(columns[name].step))
        written = self._writer.finish(identity_marks=marks, identity_starts=starts)
        if self._feed is not None:
            written = replace(written, cdc=self._feed.finish())
        places = {name: _joined(parts) for name, parts in self._places.items()}
        return RowsDone(written=written, counts=tuple(self._counts), places=places)


def _along(step: int) -> Callable[[int], int]:
    """Return a sort key that orders identity values in the order in which they are assigned."""
    return lambda value: value if step > 0 else -value


def _joined(parts: Sequence[Array]) -> tuple[int, DeletionBitmap]:
    rows = pa.concat_arrays(parts)
    return len(rows), DeletionBitmap.from_arrow(rows)


def copy_task(spec: WriteSpec, files: Sequence[tuple[ScanTask, DeletionBitmap]]) -> RowsDone:
    """Copy the remaining rows of some rewritten files, in a task.

    Args:
        spec: the specification by which tasks write files of the table.
        files: the files to copy, each with the positions of the rows to omit.
    """
    copied, schema = 0, spec.configuration.arrow_schema
    with FileWriter(spec) as writer:
        for rows in read_tasks([_without(*one) for one in files]):
            write_copied(writer, rows, schema)
            copied += rows.num_rows
        return RowsDone(written=writer.finish(), counts=(copied,))


def _without(task: ScanTask, gone: DeletionBitmap) -> ScanTask:
    if task.deletion_vector is not None:
        # Without `num_rows`, positions are not checked. The reader of the file checks them later.
        gone |= load_bitmap(task.store, task.deletion_vector, num_rows=None)
    return replace(task, deletion_vector=inline_descriptor(gone))


# --- assignments (`column = value`) of UPDATE and MERGE, converted to Spark columns


Path = tuple[str, ...]


def parse_assignments(
    schema: StructType, values: Mapping[str | Path, Any], alias: str | None
) -> dict[Path, Column]:
    """Return the assignments: the path of an assigned column → its value.

    Raises:
        InvalidInputError: a column does not exist, or is assigned twice.
    """
    found: dict[Path, Column] = {}
    for key, value in values.items():
        path = assigned_path(schema, key, alias)
        taken = [other for other in found if other[: len(path)] == path[: len(other)]]
        if taken:
            raise InvalidInputError(
                f"cannot assign {key!r} twice: {'.'.join(taken[0])!r} is assigned already"
            )
        found[path] = as_value(value)
    return found


def assigned_path(schema: StructType, key: str | Path, alias: str | None) -> Path:
    """Return the path of an assigned column, with the names as the schema spells them."""
    names = {name_key(name) for name in schema.names}
    if isinstance(key, tuple):
        parts: Path = key
    elif isinstance(key, str):
        parts = (key,) if name_key(key) in names else tuple(col(key).path)
    else:
        raise InvalidInputError(f"cannot assign {key!r}: expected the name of a column")
    is_alias = alias is not None and name_key(parts[0]) == name_key(alias)
    if is_alias and len(parts) > 1 and name_key(parts[0]) not in names:
        parts = parts[1:]
    return canonical_path(schema, parts)


def as_value(value: Any) -> Column:
    """Convert a condition or value to a Spark column. SQL strings and expressions are accepted."""
    if isinstance(value, Column):
        return value
    if isinstance(value, Expression):
        return F.expr(to_sql(value))
    if isinstance(value, str):
        return sql_column(value)
    raise InvalidInputError(
        f"cannot assign {value!r}: expected Spark SQL or a Spark column, such as lit({value!r})"
    )


def new_struct(
    configuration: TableConfiguration,
    assigned: Mapping[Path, Column],
    old: Mapping[str, Column],
    before: StructType | None = None,
) -> Column:
    """Return the new version of a row as a struct, without generated columns that are not assigned.

    Args:
        configuration: the configuration of the table after the operation.
        assigned: the path of an assigned column → its new value.
        old: the name of a column → its value in the old version.
        before: the schema of the old version; None means the schema of `configuration`.
    """
    schema = configuration.schema
    generated: Iterable[str] = (
        generation_expressions(schema) if configuration.supports("generatedColumns") else ()
    )
    given = {path[0] for path in assigned}
    parts = [
        _assigned(one, (one.name,), assigned, old[one.name], _named(before or schema, one.name))
        if one.name in given
        else old[one.name].alias(one.name)
        for one in schema
        if one.name in given or one.name not in generated
    ]
    return F.struct(*parts)


def _assigned(
    field: Field, path: Path, values: Mapping[Path, Column], old: Column, known: Field | None
) -> Column:
    """Return a column with its assignments. Assigning a field makes a NULL struct non-NULL."""
    is_touched = any(other[: len(path)] == path for other in values)
    if path in values:
        found = _cast(values[path], field.type)
    elif is_touched and isinstance(field.type, StructType):
        mine = None if known is None else known.type
        found = F.struct(
            *(
                _assigned(one, (*path, one.name), values, old[one.name], _named(mine, one.name))
                for one in field.type
            )
        )
    elif known is None:  # the statement adds this column, so there is no old value
        found = F.lit(None).cast(to_spark_type(field.type))
    else:
        found = old
    return found.alias(field.name)


def keeping(
    new: Column, theirs: StructType, old_row: Column, mine: StructType, path: Path
) -> Column:
    """Return a source value in which fields that the source lacks have the table's old values.

    Args:
        new: the column of the source.
        theirs: the schema of the source.
        old_row: the old version of the row, as a struct.
        mine: the schema of `old_row`.
        path: the path of the assigned column, which is a top-level column.
    """
    (name,) = path
    column, old = _named(theirs, name), _named(mine, name)
    if column is None or old is None:
        return new
    return _keeping(new, column.type, old_row[old.name], old.type)


def _keeping(new: Column, theirs: DataType, old: Column, mine: DataType) -> Column:
    if not isinstance(theirs, StructType) or not isinstance(mine, StructType):
        return new
    if not _lacks(theirs, mine):
        return new
    parts = {}
    for one in theirs:
        known = _named(mine, one.name)
        part = new[one.name]
        parts[one.name] = (
            part if known is None else _keeping(part, one.type, old[known.name], known.type)
        )
    for one in mine:
        if _named(theirs, one.name) is None:
            parts[one.name] = old[one.name]
    return F.when(new.isNotNull(), F.struct(*(part.alias(name) for name, part in parts.items())))


def _lacks(theirs: DataType, mine: DataType) -> bool:
    """Return whether the struct `theirs` lacks a field of the struct `mine`, at any depth."""
    if not isinstance(theirs, StructType) or not isinstance(mine, StructType):
        return False
    given = [(one, _named(theirs, one.name)) for one in mine]
    return any(part is None or _lacks(part.type, one.type) for one, part in given)


def _named(struct: DataType | None, name: str) -> Field | None:
    """Return the field with this name in upper or lower case; None if there is no such field."""
    fields = struct if isinstance(struct, StructType) else ()
    return next((one for one in fields if name_key(one.name) == name_key(name)), None)


def checked_values(
    schema: StructType, values: Mapping[Path, Column], spark: SparkSession
) -> dict[Path, Column]:
    """Return the values as columns that raise an error if a value overflows the column's type.

    As in Delta, assignments raise this error in every session. In a session without ANSI mode, a
    cast of Spark alone would return NULL or wrap around.
    """
    if is_ansi(spark):
        return dict(values)
    return {path: _or_error(schema, path, value) for path, value in values.items()}


def _or_error(schema: StructType, path: Path, value: Column) -> Column:
    kind = find_field(schema, path).type
    if not isinstance(kind, PrimitiveType):
        return value
    fitted = value.try_cast(to_spark_type(kind))
    said = F.lit(f"a value of column {'.'.join(path)!r} does not fit into {kind}: ")
    error = F.raise_error(F.concat(said, value.cast("string")))
    return F.when(value.isNotNull() & fitted.isNull(), error).otherwise(fitted)


def as_type_of(schema: StructType, path: Path, value: Column) -> Column:
    """Cast a value to the type of its column. Writers match nested fields by name later."""
    return _cast(value, find_field(schema, path).type)


def _cast(value: Column, kind: DataType) -> Column:
    return value.cast(to_spark_type(kind)) if isinstance(kind, PrimitiveType) else value
