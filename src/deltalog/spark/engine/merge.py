"""MERGE in tasks: one join of the table with the source determines the clause of every row.

The clauses become columns of the joined frame, and Spark evaluates their conditions and values. Two
things prune the table's files: the bounds of the source's keys, and the part of the condition that
deltalog can parse.

Protocol: Schema Serialization Format, Type Widening
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention

from deltalog._util.clock import Stopwatch
from deltalog._util.escaping import name_key
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions import Column as ColumnNode
from deltalog.expressions import (
    Expression,
    Literal,
    TextRules,
    columns,
    map_columns,
    parse_sql,
    resolve,
    to_sql,
)
from deltalog.expressions.nodes import Comparison
from deltalog.operations.changes.assign import check_identities
from deltalog.operations.changes.merge import source
from deltalog.operations.changes.merge.plan import configuration_after, plan_condition, star_columns
from deltalog.operations.changes.request import Action, ChangeRequest, Clause, When
from deltalog.protocol.features.declarations import default_expressions, generation_expressions
from deltalog.protocol.features.identity_columns import identity_columns
from deltalog.spark.engine.apply import TARGET_STRUCT, FrameChange, find_candidates, row_struct
from deltalog.spark.engine.row_tasks import (
    CLAUSE,
    NEW,
    OLD,
    OLD_FILE,
    OLD_POSITION,
    ROW_ID,
    as_type_of,
    as_value,
    checked_values,
    keeping,
    new_struct,
    parse_assignments,
)
from deltalog.spark.reading.conditions import asks_the_clock, knows_no_zone
from deltalog.spark.session.tasks import described
from deltalog.spark.session.types import schema_of, to_spark_type
from deltalog.spark.session.workers import check_workers

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.changes.merge.plan import MergeCondition
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.schema import StructType
    from deltalog.spark.reading.scan import SparkScan
    from deltalog.transaction import PendingTransaction

SOURCE_STRUCT: Final = "__deltalog_source"
"""The name of the struct column that contains a row of the source."""
_STRUCTS: Final = {source.TARGET: TARGET_STRUCT, source.SOURCE: SOURCE_STRUCT}
_ONLY: Final = {When.NOT_MATCHED: SOURCE_STRUCT, When.NOT_MATCHED_BY_SOURCE: TARGET_STRUCT}
_BOUNDED: Final = (int, str, date, Decimal)
_NEW_ROW: Final = "__deltalog_new_row"
"""The name of the column that contains a unique number for each new row, and NULL for all other
rows, which a path and a position identify."""


def plan_merge_by_tasks(
    scan: SparkScan, transaction: PendingTransaction, request: ChangeRequest
) -> FrameChange:
    """Plan the rows that a merge changes or inserts.

    Args:
        scan: a scan of the transaction's version.
        transaction: a transaction on an existing table.
        request: the user's request. Its source is a dataframe, which Spark computes twice.

    Raises:
        InvalidInputError: a clause uses a column that does not exist or must not be assigned.
        WorkerMismatchError: see `check_workers`.

    Cost: one job that reads the source. `apply` then runs one join, which reads the columns of the
    conditions, or all columns if rows are updated.
    """
    request.check()
    # The transaction's configuration includes columns that its earlier operations have added.
    watch, before, frame = Stopwatch(), transaction.configuration, request.source
    source = schema_of(frame.schema)
    # As in Delta Spark, a merge without schema evolution ignores columns that only the source has.
    after = configuration_after(request, before, source) if request.merge_schema else before
    if after is not before:
        transaction.set_configuration(after)
    transaction.parameters.update(request.logged())
    keys = _known_condition(request, scan.snapshot, source)
    check_workers(scan.spark)  # before the first job, because each merge needs workers
    with described(scan.spark, "looking at the source of a merge"):
        reach, num_source_rows = _reach(request, keys, before.schema)
    candidates = find_candidates(scan, reach, request.target_alias)
    target = candidates.frame.withColumn(TARGET_STRUCT, row_struct(before.schema.names))
    theirs = frame.withColumn(SOURCE_STRUCT, row_struct(source.names))
    plan = _JoinPlan(request, before, after, source)
    plan.check_sides(target, theirs)
    return FrameChange(
        transaction=transaction,
        request=request,
        candidates=candidates,
        frame=plan.decided(target, theirs),
        watch=watch,
        num_source_rows=num_source_rows,
    )


def _known_condition(
    request: ChangeRequest, snapshot: Snapshot, source: StructType
) -> MergeCondition | None:
    """Return the part of the condition that deltalog evaluates as Spark does, or None."""
    whole, schema = request.condition, snapshot.configuration.schema
    is_text = isinstance(whole, str)
    if not isinstance(whole, str | Expression) or asks_the_clock(whole):
        return None
    try:
        alias = request.source_alias
        if isinstance(whole, str) and alias is None:
            alias = _source_alias(whole, request.target_alias, schema, source)
        aliased = replace(request, source_alias=alias)
        found = plan_condition(
            aliased, schema, source, snapshot.context.session, text_rules=TextRules.NONE
        )
    except DeltaError:
        return None
    zone = snapshot.context.time_zone

    def is_same(part: Expression, side: StructType = schema) -> bool:
        return knows_no_zone(part, side, zone, is_text=is_text)

    keys = [key for key in found.keys if is_same(key.target) and is_same(key.source, source)]
    return replace(
        found,
        keys=tuple(key for key in keys if not key.null_safe),
        target_only=tuple(filter(is_same, found.target_only)),
    )


def _source_alias(
    condition: str, mine: str | None, schema: StructType, source: StructType
) -> str | None:
    """Return the alias of the source, found in the condition, because Spark does not expose it."""
    known = {name_key(name) for name in (*schema.names, *source.names, mine or "")}
    paths = columns(parse_sql(condition))
    others = {path[0] for path in paths if len(path) > 1 and name_key(path[0]) not in known}
    return others.pop() if len(others) == 1 else None


def _reach(
    request: ChangeRequest, known: MergeCondition | None, schema: StructType
) -> tuple[Expression | None, int]:
    """Return a predicate that is true for every row that may change, and the number of source rows.

    Cost: one job that reads the source.
    """
    keys = () if known is None else known.keys
    wanted = [F.count(F.lit(1)).alias("n")]
    for number, key in enumerate(keys):
        value = F.expr(to_sql(key.source))
        wanted += [F.min(value).alias(f"low{number}"), F.max(value).alias(f"high{number}")]
    (row,) = request.source.agg(*wanted).collect()
    if known is None or request.of(When.NOT_MATCHED_BY_SOURCE):
        return None, row["n"]
    parts = list(known.target_only)
    for number, key in enumerate(keys):
        low, high = row[f"low{number}"], row[f"high{number}"]
        if isinstance(low, _BOUNDED) and not isinstance(low, datetime):
            parts.append(Comparison(">=", key.target, Literal(low)))
            parts.append(Comparison("<=", key.target, Literal(high)))
    resolved = [resolve(part, schema) for part in parts]
    return (reduce(and_, resolved) if resolved else None), row["n"]


class _JoinPlan:
    """The clauses of a merge as columns of the joined frame, which has one struct per side.

    Args:
        request: the merge.
        before: the configuration of the table before the merge.
        after: the configuration of the table after the merge.
        source: the schema of the source.
    """

    def __init__(
        self,
        request: ChangeRequest,
        before: TableConfiguration,
        after: TableConfiguration,
        source: StructType,
    ) -> None:
        self._request = request
        self._before = before
        self._after = after
        self._source = source
        mine = {name_key(name) for name in before.schema.names}
        self._shared = mine & {name_key(name) for name in source.names}

    def check_sides(self, target: DataFrame, source: DataFrame) -> None:
        """Refuse a clause that uses a column of the side that has no row; Spark raises the error.

        The joined frame would not reveal the mistake, because the columns of both sides exist there
        and are NULL.
        """
        for when, frame in ((When.NOT_MATCHED, source), (When.NOT_MATCHED_BY_SOURCE, target)):
            said = [
                self._column(value, when)
                for clause in self._request.of(when)
                for value in (clause.condition, *(clause.values or {}).values())
                if value is not None
            ]
            if said:
                _ = frame.select(*said).schema  # `schema` makes Spark analyze the columns

    def decided(self, target: DataFrame, source: DataFrame) -> DataFrame:
        """Return the rows that change, each with its clause, file, position and new values."""
        request, before = self._request, self._before
        rows = self._joined(target, source).withColumn(CLAUSE, self._clause())
        found = [F.col(CLAUSE), *self._new_values()]
        if any(clause.action is not Action.INSERT for clause in request.clauses):
            found += [F.col(OLD_FILE), F.col(OLD_POSITION)]
            found += [F.col(ROW_ID)] if before.row_ids_enabled else []
            found += [F.col(TARGET_STRUCT).alias(OLD)] if before.change_data_feed_enabled else []
        frame = rows.where(F.col(CLAUSE).isNotNull()).select(*found)
        if not request.of(When.MATCHED) or not request.allows_repeats:
            return frame
        # If several source rows match a deleted row, `frame` contains this row several times.
        # Remove these duplicates, but no new rows, which `_NEW_ROW` distinguishes from each other.
        new = F.when(F.col(OLD_POSITION).isNull(), F.monotonically_increasing_id())
        return (
            frame.withColumn(_NEW_ROW, new)
            .dropDuplicates([OLD_FILE, OLD_POSITION, _NEW_ROW])
            .drop(_NEW_ROW)
        )

    def _joined(self, target: DataFrame, source: DataFrame) -> DataFrame:
        on = self._column(self._request.condition, When.MATCHED)
        inserts = bool(self._request.of(When.NOT_MATCHED))
        if all(clause.action is Action.INSERT for clause in self._request.clauses):
            none = F.expr("CAST(NULL AS BIGINT)")
            return source.join(target, on, "left_anti").withColumn(OLD_POSITION, none)
        if self._request.of(When.NOT_MATCHED_BY_SOURCE):
            return target.join(source, on, "full" if inserts else "left")
        return target.join(source, on, "right" if inserts else "inner")

    def _clause(self) -> Column:
        """Return a column: the number of the clause that applies to a row, or NULL."""
        mine, theirs = F.col(OLD_POSITION).isNotNull(), F.col(SOURCE_STRUCT).isNotNull()
        held = {
            When.MATCHED: mine & theirs,
            When.NOT_MATCHED: ~mine & theirs,
            When.NOT_MATCHED_BY_SOURCE: mine & ~theirs,
        }
        found: Any = F
        for number, clause in enumerate(self._request.ordered):
            applies = held[clause.when]
            if clause.condition is not None:
                applies &= self._column(clause.condition, clause.when)
            found = found.when(applies, F.lit(number))
        chosen: Column = found
        return chosen

    def _column(self, value: Any, when: When) -> Column:
        """Return a condition or value as a column of the joined frame.

        In a clause for which only one side has a row, column names need no qualifier. Expressions
        of deltalog have the qualifiers `target` and `source`; SQL strings have the aliases of the
        frames.
        """
        side, is_text = _ONLY.get(when), isinstance(value, str)
        if is_text and side is not None:
            try:
                value = parse_sql(text := value)
            except DeltaError:  # perhaps Spark can parse the expression
                return as_value(text)
            if not any(name_key(path[0]) in self._shared for path in columns(value)):
                return as_value(text)
        if not isinstance(value, Expression):
            return as_value(value)

        def place(name: ColumnNode) -> ColumnNode:
            first, *rest = name.path
            if rest and first in _STRUCTS and not is_text:
                return ColumnNode((_STRUCTS[first], *rest))
            return (
                ColumnNode((side, *name.path)) if side and name_key(first) in self._shared else name
            )

        return as_value(map_columns(value, place))

    def _new_values(self) -> list[Column]:
        """Return one struct of new values for each clause. It is NULL in rows of other clauses."""
        found = []
        for number, clause in enumerate(self._request.ordered):
            if clause.action is Action.DELETE:
                continue
            inserts = clause.action is Action.INSERT
            struct = self._inserted(clause) if inserts else self._updated(clause)
            found.append(F.when(F.col(CLAUSE) == number, struct).alias(f"{NEW}{number}"))
        return found

    def _updated(self, clause: Clause) -> Column:
        before, after = self._before.schema, self._after
        values = self._assigned(clause)
        check_identities(after.schema, {path[0] for path in values})
        mine = F.col(TARGET_STRUCT)
        if clause.is_star:
            values = {
                path: keeping(value, self._source, mine, before, path)
                for path, value in values.items()
            }
        old = {
            one.name: mine[one.name]
            if one.name in before.names
            else F.lit(None).cast(to_spark_type(one.type))
            for one in after.schema
        }
        return new_struct(after, values, old, before)

    def _inserted(self, clause: Clause) -> Column:
        values, schema = self._assigned(clause), self._after.schema
        deep = [path for path in values if len(path) > 1]
        if deep:
            raise InvalidInputError(
                f"cannot insert into {'.'.join(deep[0])!r}: for new rows, assign the whole struct"
            )
        return F.struct(
            *(as_type_of(schema, path, value).alias(path[0]) for path, value in values.items())
        )

    def _assigned(self, clause: Clause) -> dict[tuple[str, ...], Column]:
        request, schema = self._request, self._after.schema
        spark = request.source.sparkSession
        if clause.values is not None:
            given = {key: self._column(one, clause.when) for key, one in clause.values.items()}
            values = parse_assignments(schema, given, request.target_alias)
            return checked_values(schema, values, spark)
        theirs = {name_key(name): name for name in star_columns(clause, self._source)}
        missing = [name for name in schema.names if name_key(name) not in theirs]
        needed = [name for name in missing if name not in _filled_in(self._after)]
        if needed and not request.merge_schema and not clause.except_columns:
            raise InvalidInputError(
                "cannot assign every column from the source: the source lacks "
                f"{', '.join(map(repr, needed))}; list the columns to assign, or use "
                "withSchemaEvolution()"
            )
        taken: dict[tuple[str, ...], Column] = {
            (name,): F.col(SOURCE_STRUCT)[theirs[name_key(name)]]
            for name in schema.names
            if name_key(name) in theirs
        }
        return checked_values(schema, taken, spark)


def _filled_in(configuration: TableConfiguration) -> set[str]:
    """Return the identity columns, the generated columns, and the columns with a default."""
    schema = configuration.schema
    defaults = default_expressions(schema) if configuration.supports("allowColumnDefaults") else {}
    return {
        *(one.name for one in identity_columns(schema)),
        *(generation_expressions(schema) if configuration.supports("generatedColumns") else ()),
        *(path[0] for path in defaults if len(path) == 1),
    }
