"""DELETE and UPDATE on the cluster.

Owns what each says about rows. Spark evaluates conditions and new values, so they may be anything
that Spark knows; what of a condition we know ourselves prunes files, and tells other writers what
was read.

Protocol: Generated Columns, Identity Columns
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.clock import Stopwatch
from deltalog.errors import InvalidInputError
from deltalog.expressions import col
from deltalog.features.computed_columns import generation_expressions
from deltalog.rows.assign import canonical_path, check_identities
from deltalog.rows.changes import Action
from deltalog.scan.prune import judge
from deltalog.schema import PrimitiveType, StructType, find_field
from deltalog.spark.engine.row_changes import Change, find_rows, row_struct, snapshot_of
from deltalog.spark.engine.row_tasks import FILE, NEW, OLD, ROW, ROW_ID, STEP
from deltalog.spark.reading.conditions import as_spark_condition
from deltalog.spark.session.settings import is_ansi
from deltalog.spark.session.types import quoted, to_spark_type
from deltalog.verbs.delete import Deleted, stage_delete
from deltalog.verbs.update import Updated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from deltalog.configuration import TableConfiguration
    from deltalog.expressions import Expression
    from deltalog.rows.files import FileOptions
    from deltalog.schema import DataType, Field
    from deltalog.spark.reading.scan import SparkScan
    from deltalog.transaction import PendingTransaction

Path = tuple[str, ...]


def stage_spark_delete(
    pending: PendingTransaction,
    condition: Any,
    *,
    scan: SparkScan,
    options: FileOptions,
    alias: str | None = None,
) -> Deleted:
    """Remove the rows for which a condition is true.

    Args:
        pending: of an existing table.
        condition: Spark SQL, a Spark column, an expression; None is every row.
        scan: of the table; it is moved to the transaction's version.
        options: of files that are rewritten.
        alias: under which the condition knows the table.

    Cost: the condition's columns of the files that pruning leaves, read by tasks; nothing where
    the log alone tells.
    """
    if condition is None:
        return stage_delete(pending, None, options=options)
    scan, watch = at_version(scan, pending), Stopwatch()
    snapshot = scan.snapshot
    understood = as_spark_condition(
        condition, snapshot.configuration.schema, snapshot.context.time_zone, alias=alias
    )
    pruning = understood.pruning
    if pruning is not None and understood.is_known and _is_exact(scan, pruning):
        return stage_delete(pending, pruning, options=options)
    found = find_rows(scan, pruning, alias)
    frame = found.frame.where(understood.column)
    tells = snapshot.configuration.change_data_feed_enabled
    old = [row_struct(snapshot.configuration.schema.names).alias(OLD)] if tells else []
    frame = frame.select(F.lit(0).alias(STEP), F.col(FILE), F.col(ROW), *old)
    change = Change(
        pending=pending, options=options, found=found, frame=frame, steps=(Action.DELETE,)
    )
    matching, done = change.run()
    pending.read(pruning, matching.files, is_row_local=True)
    applied = done.applied
    return Deleted(
        num_rows=done.counts[0],
        num_removed_files=applied.num_removed_files,
        num_removed_bytes=applied.num_removed_bytes,
        num_rewritten_files=applied.num_rewritten_files,
        num_copied_rows=applied.num_copied_rows,
        num_added_files=done.num_added_files,
        num_added_bytes=done.num_added_bytes,
        num_masked_files=applied.num_vectors_added,
        num_vectors_updated=applied.num_vectors_updated,
        num_vectors_removed=applied.num_vectors_removed,
        num_change_files=done.num_change_files,
        scan_time_ms=watch.elapsed_ms(),
    )


def stage_spark_update(
    pending: PendingTransaction,
    values: Mapping[str, Any],
    condition: Any,
    *,
    scan: SparkScan,
    options: FileOptions,
    alias: str | None = None,
) -> Updated:
    """Give new values to the rows for which a condition is true.

    Args:
        pending: of an existing table.
        values: column (a dotted name reaches into a struct) → Spark SQL or Spark column, computed
            from the row as it was.
        condition: Spark SQL, a Spark column, an expression; None is every row.
        scan: of the table; it is moved to the transaction's version.
        options: of new files.
        alias: under which condition and values know the table.

    Raises:
        InvalidInputError: a column does not exist or cannot be assigned.
        ConstraintViolationError: new rows break a rule of the table.
    """
    if not values:
        raise InvalidInputError("an update needs at least one column = value")
    scan, watch = at_version(scan, pending), Stopwatch()
    configuration = scan.snapshot.configuration
    schema = configuration.schema
    assigned = checked_values(schema, parse_assignments(schema, values, alias), scan.spark)
    check_identities(schema, {path[0] for path in assigned})
    pruning = None
    column: Column = F.expr("true")
    if condition is not None:
        understood = as_spark_condition(
            condition, schema, scan.snapshot.context.time_zone, alias=alias
        )
        pruning, column = understood.pruning, understood.column
    found = find_rows(scan, pruning, alias)
    names = schema.names
    new = new_struct(configuration, assigned, {name: F.col(quoted(name)) for name in names})
    tells = configuration.change_data_feed_enabled
    frame = found.frame.where(column).select(
        F.lit(0).alias(STEP),
        F.col(FILE),
        F.col(ROW),
        *([F.col(ROW_ID)] if configuration.row_ids_enabled else []),
        new.alias(f"{NEW}0"),
        *([row_struct(names).alias(OLD)] if tells else []),
    )
    change = Change(
        pending=pending, options=options, found=found, frame=frame, steps=(Action.UPDATE,)
    )
    matching, done = change.run()
    pending.read(pruning, matching.files, is_row_local=True)
    return Updated(
        num_rows=done.counts[0],
        applied=done.applied,
        num_added_files=done.num_added_files,
        num_added_bytes=done.num_added_bytes,
        num_change_files=done.num_change_files,
        scan_ms=watch.elapsed_ms(),
    )


def at_version(scan: SparkScan, pending: PendingTransaction) -> SparkScan:
    """The scan of the version that a transaction stands on."""
    return replace(scan, snapshot=snapshot_of(pending), columns=None, conditions=())


def parse_assignments(
    schema: StructType, values: Mapping[str, Any], alias: str | None
) -> dict[Path, Column]:
    """Path of each assigned column → its value.

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


def assigned_path(schema: StructType, key: str, alias: str | None) -> Path:
    """The path of a column that is to be assigned, in the schema's spelling."""
    names = {name.lower() for name in schema.names}
    if not isinstance(key, str):
        raise InvalidInputError(f"cannot assign {key!r}: expected the name of a column")
    parts: Path = (key,) if key.lower() in names else tuple(col(key).path)
    is_alias = alias is not None and parts[0].lower() == alias.lower()
    if is_alias and len(parts) > 1 and parts[0].lower() not in names:
        parts = parts[1:]
    return canonical_path(schema, parts)


def as_value(value: Any) -> Column:
    """A value of an assignment: Spark SQL or a Spark column."""
    if isinstance(value, Column):
        return value
    if isinstance(value, str):
        return F.expr(value)
    raise InvalidInputError(
        f"cannot assign {value!r}: expected Spark SQL or a Spark column, such as lit({value!r})"
    )


def new_struct(
    configuration: TableConfiguration,
    assigned: Mapping[Path, Column],
    old: Mapping[str, Column],
    before: StructType | None = None,
) -> Column:
    """A new version of a row: generated columns that are not assigned are left out.

    Args:
        configuration: of the table, as it will be.
        assigned: values by path.
        old: the columns of the old version.
        before: the schema of that; None is the table's.
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
    """A column of which something is assigned: a struct that was NULL is one afterwards."""
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
    elif known is None:  # it comes with the statement
        found = F.lit(None).cast(to_spark_type(field.type))
    else:
        found = old
    return found.alias(field.name)


def keeping(
    new: Column, theirs: StructType, old_row: Column, mine: StructType, path: Path
) -> Column:
    """A value of a merge's source; fields of structs that it lacks stay as they are.

    Args:
        new: the column of the source.
        theirs: schema of the source.
        old_row: the row as it was, a struct.
        mine: schema of that.
        path: of the column.
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
    """Whether a struct has fewer fields than another one, at any depth."""
    if not isinstance(theirs, StructType) or not isinstance(mine, StructType):
        return False
    given = [(one, _named(theirs, one.name)) for one in mine]
    return any(part is None or _lacks(part.type, one.type) for one, part in given)


def _named(struct: DataType | None, name: str) -> Field | None:
    """The field of a name, without its case; None if there is none."""
    fields = struct if isinstance(struct, StructType) else ()
    return next((one for one in fields if one.name.lower() == name.lower()), None)


def checked_values(
    schema: StructType, values: Mapping[Path, Column], spark: SparkSession
) -> dict[Path, Column]:
    """The values, none of which becomes another one or NULL in the type of its column.

    As in Delta: in sessions without ANSI, too, whose casts would give whatever fits.
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
    """A value in the type of the column it goes to; nested ones are fitted by name when written."""
    return _cast(value, find_field(schema, path).type)


def _cast(value: Column, kind: DataType) -> Column:
    return value.cast(to_spark_type(kind)) if isinstance(kind, PrimitiveType) else value


def _is_exact(scan: SparkScan, whole: Expression) -> bool:
    """Whether the log alone tells which files match, and that all of their rows do."""
    # Which columns there are decides it, not which files.
    none = FILE_SCHEMA.empty_table().column("partitionValues")
    return judge(
        whole,
        scan.snapshot.configuration,
        num_files=0,
        partition_values=lambda: none,
        stats=lambda schema: schema.empty_table(),
        time_zone=scan.snapshot.context.time_zone,
    ).is_exact
