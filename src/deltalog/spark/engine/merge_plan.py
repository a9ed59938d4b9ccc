"""A merge, understood as a join: which rows meet, what is done to them, and what they become.

Owns the translation of clauses into columns over the joined frame. Spark evaluates conditions and
values. What we understand of the condition ourselves, the keys of the source bound which files of
the table are read.

Protocol: Schema Serialization Format, Type Widening
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog.clock import now_ms
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions import Column as Name
from deltalog.expressions import Literal, col, columns, map_columns, parse_sql, resolve, to_sql
from deltalog.expressions.nodes import Comparison
from deltalog.features.computed_columns import default_expressions, generation_expressions
from deltalog.features.identity_columns import identity_columns
from deltalog.rows.assign import check_identities
from deltalog.rows.changes import Action, Clause, RowChanges, When
from deltalog.rows.merge.plan import plan_merge
from deltalog.schema import StructType, merge_schemas
from deltalog.spark.engine.row_changes import TARGET
from deltalog.spark.engine.row_tasks import NEW, ROW, STEP
from deltalog.spark.engine.statements import (
    as_type_of,
    as_value,
    checked_values,
    keeping,
    new_struct,
    parse_assignments,
)
from deltalog.spark.session.types import to_spark_type
from deltalog.table_change import changed_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from deltalog.configuration import TableConfiguration
    from deltalog.expressions import Expression

SOURCE: Final = "__deltalog_source"
"""The struct of a row of the source."""
_BOUNDED: Final = (int, str, date, Decimal)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkClause:
    """One `WHEN … THEN …`.

    Args:
        when: which rows.
        action: what is done to them.
        values: column → Spark SQL or Spark column; None is every column of the source.
        condition: likewise; rows for which it is not true go to the next clause.
    """

    when: When
    action: Action
    values: Mapping[str, Any] | None = None
    condition: Any = None

    @property
    def is_star(self) -> bool:
        """Whether every column of the source is taken."""
        return self.values is None and self.action is not Action.DELETE


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkMerge:
    """A whole merge, apart from its table.

    Args:
        source: the rows.
        condition: which rows match: Spark SQL or a Spark column.
        clauses: in order; the first one whose condition is true for a row decides.
        alias: of the table.
        merge_schema: columns that only the source has are added to the table.
    """

    source: DataFrame
    condition: Any
    clauses: tuple[SparkClause, ...] = ()
    alias: str | None = None
    merge_schema: bool = False

    def check(self) -> None:
        """Refuse clauses that mean nothing."""
        shown = tuple(
            Clause(
                when=one.when,
                action=one.action,
                values=None if one.values is None else dict.fromkeys(one.values),
                condition=None if one.condition is None else "true",
            )
            for one in self.clauses
        )
        RowChanges(predicate="true", clauses=shown).check()

    def of(self, when: When) -> tuple[SparkClause, ...]:
        """The clauses about some rows, in order."""
        return tuple(clause for clause in self.clauses if clause.when is when)

    @property
    def ordered(self) -> tuple[SparkClause, ...]:
        """All clauses; their places are the numbers of the steps."""
        return tuple(clause for when in When for clause in self.of(when))

    @property
    def allows_repeats(self) -> bool:
        """Whether several rows of the source may match one of the table: if all it does is go."""
        matched = self.of(When.MATCHED)
        if not matched:
            return True
        (first, *more) = matched
        return first.action is Action.DELETE and first.condition is None and not more

    @property
    def join(self) -> str:
        """How the table, on the left, is joined with the source."""
        inserts, alone = self.of(When.NOT_MATCHED), self.of(When.NOT_MATCHED_BY_SOURCE)
        if alone:
            return "full" if inserts else "left"
        return "right" if inserts else "inner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What is known of the condition without Spark.

    Args:
        pairs: values of the table and of the source that are equal in rows that match.
        target_only: what must hold of the table's row.
    """

    pairs: tuple[tuple[Expression, Expression], ...] = ()
    target_only: tuple[Expression, ...] = ()


def evolved(
    merge: SparkMerge, configuration: TableConfiguration, source: StructType
) -> TableConfiguration:
    """The configuration with the columns that clauses bring from the source."""
    if not merge.merge_schema:
        return configuration
    known = {name.lower() for name in configuration.schema.names}
    wanted = set(source.names) if any(one.is_star for one in merge.clauses) else set()
    ours = {name.lower(): name for name in source.names}
    for clause in merge.clauses:
        for key in clause.values or ():
            *_, name = col(key).path
            if name.lower() not in known and name.lower() in ours:
                wanted.add(ours[name.lower()])
    taken = StructType([one for one in source if one.name in wanted])
    merged = merge_schemas(
        configuration.schema, taken, allow_widening=configuration.is_active("typeWidening")
    )
    if merged == configuration.schema:
        return configuration
    return changed_table(configuration, schema=merged)


def find_keys(merge: SparkMerge, configuration: TableConfiguration, source: StructType) -> Keys:
    """What the condition says that files can be pruned by; nothing if it is Spark's alone."""
    if not isinstance(merge.condition, str):
        return Keys()
    try:
        now = datetime.fromtimestamp(now_ms() / 1000, UTC)
        clause = Clause(when=When.MATCHED, action=Action.DELETE)
        asked = RowChanges(
            predicate=merge.condition,
            clauses=(clause,),
            target_alias=merge.alias,
            source_alias=_source_alias(merge, configuration.schema, source),
        )
        found = plan_merge(asked, configuration, source, time_zone="UTC", now=now).condition
    except DeltaError:
        return Keys()
    return Keys(
        pairs=tuple((key.target, key.source) for key in found.keys if not key.null_safe),
        target_only=found.target_only,
    )


def _source_alias(merge: SparkMerge, schema: StructType, source: StructType) -> str | None:
    """What the condition calls the source: its alias is part of the frame, and not ours to see."""
    known = {name.lower() for name in (*schema.names, *source.names)}
    mine = (merge.alias or "").lower()
    paths = columns(parse_sql(merge.condition))
    others = {path[0] for path in paths if len(path) > 1 and path[0].lower() not in {*known, mine}}
    return others.pop() if len(others) == 1 else None


def reach(
    merge: SparkMerge, keys: Keys, frame: DataFrame, schema: StructType
) -> tuple[Expression | None, int]:
    """What holds of every row of the table that a merge may concern, and the source's rows.

    Cost: one job over the source.
    """
    wanted = [F.count(F.lit(1)).alias("n")]
    for number, (_, theirs) in enumerate(keys.pairs):
        value = F.expr(to_sql(theirs))
        wanted += [F.min(value).alias(f"low{number}"), F.max(value).alias(f"high{number}")]
    (row,) = frame.agg(*wanted).collect()
    if merge.of(When.NOT_MATCHED_BY_SOURCE):
        return None, row["n"]
    parts = list(keys.target_only)
    for number, (ours, _) in enumerate(keys.pairs):
        low, high = row[f"low{number}"], row[f"high{number}"]
        if isinstance(low, _BOUNDED) and not isinstance(low, datetime):
            parts += [Comparison(">=", ours, Literal(low)), Comparison("<=", ours, Literal(high))]
    resolved = [resolve(part, schema) for part in parts]
    return (reduce(and_, resolved) if resolved else None), row["n"]


def joined(merge: SparkMerge, target: DataFrame, source: DataFrame) -> DataFrame:
    """The rows of both sides as structs beside the columns that conditions know."""
    on = as_value(merge.condition)
    if all(clause.action is Action.INSERT for clause in merge.clauses):
        return source.join(target, on, "left_anti").withColumn(ROW, F.expr("CAST(NULL AS BIGINT)"))
    return target.join(source, on, merge.join)


def step_column(merge: SparkMerge, schema: StructType, source: StructType) -> Column:
    """The number of the step that is done to a row of the joined frame; NULL for none.

    Args:
        merge: what is to be done.
        schema: of the table.
        source: schema of the source.
    """
    mine, theirs = F.col(ROW).isNotNull(), F.col(SOURCE).isNotNull()
    held = {
        When.MATCHED: mine & theirs,
        When.NOT_MATCHED: ~mine & theirs,
        When.NOT_MATCHED_BY_SOURCE: mine & ~theirs,
    }
    found: Any = F
    for number, clause in enumerate(merge.ordered):
        applies = held[clause.when]
        if clause.condition is not None:
            applies &= _on_its_side(clause, clause.condition, schema, source)
        found = found.when(applies, F.lit(number))
    step: Column = found
    return step


def _on_its_side(clause: SparkClause, value: Any, schema: StructType, source: StructType) -> Column:
    """A condition or value; where there is one row only, its columns need no name before them."""
    if not isinstance(value, str) or clause.when is When.MATCHED:
        return as_value(value)
    both = {name.lower() for name in schema.names} & {name.lower() for name in source.names}
    side = SOURCE if clause.when is When.NOT_MATCHED else TARGET
    try:
        parsed = parse_sql(value)
    except DeltaError:  # Spark may know what we do not
        return as_value(value)
    if not any(path[0].lower() in both for path in columns(parsed)):
        return as_value(value)
    return F.expr(
        to_sql(
            map_columns(
                parsed,
                lambda name: Name((side, *name.path)) if name.path[0].lower() in both else name,
            )
        )
    )


def check_sides(
    merge: SparkMerge, target: DataFrame, source: DataFrame, schemas: tuple[StructType, StructType]
) -> None:
    """Let Spark refuse what names the other side where there is no row of it.

    In the joined frame that side's columns are there, and NULL.

    Args:
        merge: what is to be done.
        target: the table, with `TARGET`.
        source: the source, with `SOURCE`.
        schemas: of both.
    """
    for when, frame in ((When.NOT_MATCHED, source), (When.NOT_MATCHED_BY_SOURCE, target)):
        said = [
            _on_its_side(clause, value, *schemas)
            for clause in merge.of(when)
            for value in (clause.condition, *(clause.values or {}).values())
            if value is not None
        ]
        if said:
            _ = frame.select(*said).schema  # which analyzes it, on Connect too


def new_columns(
    merge: SparkMerge,
    before: TableConfiguration,
    after: TableConfiguration,
    source: StructType,
) -> list[Column]:
    """The struct of new values for each step that has some; NULL in rows of other steps."""
    found = []
    for number, clause in enumerate(merge.ordered):
        if clause.action is Action.DELETE:
            continue
        if clause.action is Action.INSERT:
            struct = _inserted(merge, clause, after, source)
        else:
            struct = _updated(merge, clause, before, after, source)
        found.append(F.when(F.col(STEP) == number, struct).alias(f"{NEW}{number}"))
    return found


def _updated(
    merge: SparkMerge,
    clause: SparkClause,
    before: TableConfiguration,
    after: TableConfiguration,
    source: StructType,
) -> Column:
    values = _assigned(merge, clause, after, source)
    check_identities(after.schema, {path[0] for path in values})
    mine = F.col(TARGET)
    if clause.is_star:
        values = {
            path: keeping(value, source, mine, before.schema, path)
            for path, value in values.items()
        }
    old = {
        one.name: mine[one.name]
        if one.name in before.schema.names
        else F.lit(None).cast(to_spark_type(one.type))
        for one in after.schema
    }
    return new_struct(after, values, old, before.schema)


def _inserted(
    merge: SparkMerge, clause: SparkClause, after: TableConfiguration, source: StructType
) -> Column:
    values = _assigned(merge, clause, after, source)
    deep = [path for path in values if len(path) > 1]
    if deep:
        raise InvalidInputError(
            f"cannot insert into {'.'.join(deep[0])!r}: new rows need the whole struct"
        )
    schema = after.schema
    return F.struct(
        *(as_type_of(schema, path, value).alias(path[0]) for path, value in values.items())
    )


def _assigned(
    merge: SparkMerge, clause: SparkClause, after: TableConfiguration, source: StructType
) -> dict[tuple[str, ...], Column]:
    schema, spark = after.schema, merge.source.sparkSession
    if clause.values is not None:
        values = {
            key: _on_its_side(clause, value, schema, source) for key, value in clause.values.items()
        }
        return checked_values(schema, parse_assignments(schema, values, merge.alias), spark)
    theirs = {name.lower(): name for name in source.names}
    missing = [name for name in schema.names if name.lower() not in theirs]
    needed = [name for name in missing if name not in _filled_in(after)]
    if needed and not merge.merge_schema:
        raise InvalidInputError(
            f"cannot take every column from the source: it lacks {', '.join(map(repr, needed))}; "
            "name the columns to take, or use withSchemaEvolution()"
        )
    taken: dict[tuple[str, ...], Column] = {
        (name,): F.col(SOURCE)[theirs[name.lower()]]
        for name in schema.names
        if name.lower() in theirs
    }
    return checked_values(schema, taken, spark)


def _filled_in(configuration: TableConfiguration) -> set[str]:
    """Columns that the table itself gives a value."""
    schema = configuration.schema
    defaults = default_expressions(schema) if configuration.supports("allowColumnDefaults") else {}
    return {
        *(one.name for one in identity_columns(schema)),
        *(generation_expressions(schema) if configuration.supports("generatedColumns") else ()),
        *(path[0] for path in defaults if len(path) == 1),
    }
