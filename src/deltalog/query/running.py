"""Run queries whose parts are computed by DuckDB or by the package `expressions`.

DuckDB reports the types of the columns in an expression. These types decide whether DuckDB computes
the expression itself, or calls a Python function for each batch.

Protocol: none
"""

from __future__ import annotations

import inspect
import itertools
import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import WeakValueDictionary, ref

import pyarrow as pa

from deltalog._util.clock import now_ms, utc_moment
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions import Literal, TextRules, evaluate, nodes, parse_sql, resolve, type_of
from deltalog.expressions.arithmetic import average
from deltalog.expressions.casts import cast_advice
from deltalog.expressions.evaluation import fold
from deltalog.expressions.implicit import fine_literal
from deltalog.expressions.literals import plain_value, values_of
from deltalog.expressions.sql_session import SqlSession
from deltalog.protocol.features.registry import Support, is_supported
from deltalog.query.columns import arrow_schema, column_names
from deltalog.query.computed import ARGUMENTS, MARKS, ROW_OF_SIDE, Aggregated, Computed, Part, Side
from deltalog.query.duckdb import (
    Database,
    DuckDBRun,
    as_spelled,
    has_nanos,
    has_spans,
    is_of_table,
    query_duckdb,
    with_months,
    with_spans,
)
from deltalog.query.duckdb_expressions import BY_ZERO, Translation, to_duckdb
from deltalog.query.joins import (
    ColumnsOfJoin,
    Joined,
    Star,
    columns_of,
    has_no_columns,
    without_marks,
)
from deltalog.query.lexer import as_written, error_at
from deltalog.query.moments import kurtosis, skewness
from deltalog.query.native import (
    INTEGRALS,
    MAX_PRECISION,
    as_type_of,
    check_aggregated,
    column_text,
    common_type_of_sides,
    decimal_of,
    divided_types,
    fields_of_row,
    is_same_by_duckdb,
    is_widened_by_duckdb,
    nullable_type,
    problem_of_pair,
    sort_key,
    type_named,
    type_text,
)
from deltalog.query.query_trees import ASKED, OF_DOUBLES, ResultType
from deltalog.query.regressions import Regression
from deltalog.schema import DataType, Field, PrimitiveType, StructType
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.primitives.moments import (
    calendar_intervals,
    named_months,
)
from deltalog.schema.types import (
    BYTE,
    DAY_TO_SECOND,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NANOS_NTZ,
    TIMESTAMP_NTZ,
    VOID,
    YEAR_TO_MONTH,
    decimal_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.query.translate import TranslatedQuery


# A function without arguments. If it is called with arguments, DuckDB's error contains their types.
_PROBE: Final = "pi"
_PROBED: Final = re.compile(
    rf"'{_PROBE}\(STRUCT\(k(\d+) \w+\)(?:, )?(.*)\)'\. You might", re.DOTALL
)
_QUOTED: Final = """'[^']*'|"[^"]*\""""
_PARAMETER: Final = re.compile(rf"{_QUOTED}|(\bIN )?\$(\w+)")
_IN_PARAMETER: Final = re.compile(rf"{_QUOTED}|\bIN \(\$(\w+)\)")


_Key = tuple[str, tuple[Part, ...], tuple[tuple[str, str, str], ...]]
_Types = tuple[tuple[int, tuple[str, ...]], ...]
_Known = TypeVar("_Known")
_MOST_QUERIES: Final = 256


class _Recent(Generic[_Known]):
    """Facts about recent queries, for the same query over tables with equal types."""

    def __init__(self) -> None:
        self._facts: dict[_Key, _Known] = {}
        self._lock = Lock()

    def get(self, key: _Key) -> _Known | None:
        """Return the fact; None if it is unknown."""
        return self._facts.get(key)

    def keep(self, key: _Key, fact: _Known) -> None:
        """Add a fact; the oldest is dropped if there are many."""
        with self._lock:
            if len(self._facts) >= _MOST_QUERIES:
                self._facts.pop(next(iter(self._facts)))
            self._facts[key] = fact


# The types of the parts of queries. Asking DuckDB for types binds the query again.
_KNOWN_TYPES: Final = _Recent[_Types]()
# The SQL of queries that call no Python function and do not depend on the time.
_KNOWN_SQL: Final = _Recent[str]()


def _key_of(query: TranslatedQuery, tables: Mapping[str, Any]) -> _Key | None:
    """Return what determines the types of a query's parts; None if the key is unknown."""
    schemas = [(name, arrow_schema(rows)) for name, rows in sorted(tables.items())]
    if any(schema is None for _, schema in schemas):
        return None
    # Months and whole numbers have the same Arrow type, but not the same type in the table.
    kinds = [
        repr(rows.table_schema) if is_of_table(rows) else "" for _, rows in sorted(tables.items())
    ]
    shown = zip(schemas, kinds, strict=True)
    return query.sql, query.parts, tuple((name, str(one), kind) for (name, one), kind in shown)


def query_translated(
    database: Database,
    found: TranslatedQuery,
    tables: Mapping[str, Any],
    parameters: Mapping[str, object],
    *,
    prefix: str = "",
    shown: str,
    is_of_values: bool = False,
) -> pa.RecordBatchReader:
    """Run a query in Spark's dialect, and return its rows as a stream.

    Args:
        database: a result of `connect_duckdb`.
        found: the translated query.
        tables: a name in the query → an Arrow dataset, table or reader.
        parameters: the values of parameters: name → value. Names that the query lacks are ignored.
        prefix: the beginning of the statement, such as `EXPLAIN`.
        shown: the query, for errors.
        is_of_values: whether the query is the VALUES of an INSERT, in which nanoseconds are
            preserved.

    Raises:
        InvalidInputError: a part is not valid for the types of its columns, or the query fails.
    """
    for clause, name in found.counts:
        _check_count(clause, parameters.get(name), shown)
    for name, rows in tables.items():
        _check_renamed(found.reads[name].renamed, rows, shown)
    fine = any(is_of_table(rows) and has_nanos(rows) for rows in tables.values())
    run = _Run(
        database,
        found,
        parameters,
        shown,
        fine,
        is_of_values,
        has_nested=found.makes_nested
        or any(map(_has_nested_columns, tables.values()))
        or any(isinstance(value, list | tuple | dict) for value in parameters.values()),
        key=None if parameters else _key_of(found, tables),
    )
    reader = query_duckdb(database, prefix, tables, parameters, shown=shown, run=run)
    if prefix:
        return reader
    if run.gives_spans or any(map(has_spans, tables.values())):
        reader = with_spans(reader, shown)
    return as_spelled(with_months(reader, shown), found.names)


def _check_renamed(renamed: tuple[str, int] | None, rows: Any, shown: str) -> None:
    """Refuse an alias with fewer names than columns; DuckDB renames the first columns."""
    if renamed is None or renamed[1] == len(names := column_names(rows)):
        return
    raise InvalidInputError(
        f"cannot run {as_written(shown)!r}: the alias {renamed[0]!r} names {renamed[1]} column(s), "
        f"but its rows have {len(names)}: {', '.join(names)}"
    )


def _check_count(clause: str, value: object, shown: str) -> None:
    """Refuse a parameter that is not a number of rows; DuckDB counts NULL as no limit."""
    count = _plain(value)
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 1 << 63:
        found = "NULL" if value is None else repr(value)
        raise InvalidInputError(
            f"cannot run {as_written(shown)!r}: {clause} expects a number of rows, found {found}"
        )


@dataclass(eq=False)
class _Run:
    """One run of a query, and the replacements that were chosen for its parts.

    Args:
        database: the DuckDB in which the query runs.
        query: the query.
        parameters: the values of its parameters: name → value.
        shown: the query, for errors.
        fine: whether a table has timestamps in nanoseconds.
        is_of_values: whether the query is the VALUES of an INSERT.
        has_nested: whether an expression may be a struct or an array.
        chosen: the number of a part → its replacement in DuckDB's dialect, which may contain marks
            of earlier parts.
        failure: the error that a Python function raised.
        gives_spans: whether a part returns intervals.
        functions: the Python functions that compute parts.
        sides: for the sides of set operations that DuckDB has reported so far, the names and types
            of their columns.
        joins: the number of a join by column names → its columns; None while they are being
            determined.
        types: the number of a part → the type of its replacement in DuckDB, if it is known.
        asked: the parts whose types DuckDB was asked for, with these types.
        uses_clock: whether a part depends on the time of the run.
        key: the key of the query in the caches of types and SQL; None if they may differ between
            runs.
        crossed: the numbers of the NATURAL joins whose sides have no common column.
    """

    database: Database
    query: TranslatedQuery
    parameters: Mapping[str, object]
    shown: str
    fine: bool
    is_of_values: bool
    has_nested: bool = True
    chosen: dict[int, str] = field(default_factory=dict)
    failure: DeltaError | None = None
    gives_spans: bool = False
    functions: list[RunFunction] = field(default_factory=list)
    sides: dict[int, list[tuple[str, str]]] = field(default_factory=dict)
    joins: dict[int, ColumnsOfJoin | None] = field(default_factory=dict)
    crossed: set[int] = field(default_factory=set)
    types: dict[int, str] = field(default_factory=dict)
    asked: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    key: _Key | None = None
    uses_clock: bool = False

    def __post_init__(self) -> None:
        self._session = SqlSession(now=utc_moment(now_ms()), time_zone="UTC")

    def start(self, connection: Any, prefix: str) -> Any:
        """Replace one part after the other; return DuckDB's relation of the query."""
        sql = None if self.key is None else _KNOWN_SQL.get(self.key)
        if sql is not None:
            return connection.sql(prefix + sql)
        parts = self.query.parts
        for number, part in enumerate(parts):
            if isinstance(part, Computed) and not part.inputs:
                self._compute(connection, number, part, [])
            elif isinstance(part, Aggregated):
                self._type_early(number, part)
        known = (None if self.key is None else _KNOWN_TYPES.get(self.key)) or ()
        for number, types in known:
            if number not in self.chosen:
                self._decide(connection, number, types)
        relation = self._bound(connection, prefix, self.query.sql)
        self._crosses(connection)
        if self.key is not None:
            if self.asked:
                _KNOWN_TYPES.keep(self.key, (*known, *self.asked))
            if not self.functions and not self.uses_clock:
                _KNOWN_SQL.keep(self.key, self._rendered(self.query.sql))
        return relation

    def _type_early(self, number: int, part: Aggregated) -> None:
        """Decide a part for which DuckDB need not be asked."""
        if part.kind is ResultType.KEY:
            if not self.has_nested:
                self.chosen[number] = part.texts[1]
        elif not part.arguments:
            self._typed(number, part, [])

    def _bound(self, connection: Any, prefix: str, text: str) -> Any:
        """Return DuckDB's relation of a query with marks; its errors determine the next part."""
        import duckdb  # noqa: PLC0415  # an optional dependency

        while True:
            sql = self._with_lists(prefix + self._rendered(text))
            try:
                return connection.sql(sql, params=self._given(sql) or None)
            except duckdb.BinderException as error:
                probed = _PROBED.search(str(error))
                if probed is not None:
                    number, types = int(probed[1]), tuple(divided_types(probed[2]))
                    self.asked.append((number, types))
                    self._decide(connection, number, types)
                elif not has_no_columns(error) or not self._crosses(connection):
                    raise

    def _given(self, sql: str) -> dict[str, object]:
        """Return the parameters of a query as DuckDB takes them; a set after IN becomes a list."""
        uses = [found.groups() for found in _PARAMETER.finditer(sql)]
        after_in = {name for is_in, name in uses if is_in}
        given: dict[str, object] = {}
        for name in self.parameters.keys() & {name for _, name in uses}:
            value = self.parameters[name]
            items = values_of(value) if name in after_in else None
            given[name] = _plain(value) if items is None else list(map(_plain, items))
        return given

    def _with_lists(self, sql: str) -> str:
        """Write `IN $x` for `IN ($x)` if a parameter is a list, so that DuckDB tests its values."""
        lists = {name for name, value in self.parameters.items() if values_of(value) is not None}
        return _IN_PARAMETER.sub(
            lambda found: f"IN ${found[1]}" if found[1] in lists else found[0], sql
        )

    def _decide(self, connection: Any, number: int, types: Sequence[str]) -> None:
        """Choose the replacement of a part. `types` are DuckDB's types of its inputs."""
        match self.query.parts[number]:
            case Computed() as part:
                # DuckDB parses the whole query for each part that it reports, so replace all
                # similar parts at once.
                for other, one in alike(self.query.parts, number):
                    if other not in self.chosen:
                        self._compute(connection, other, one, types)
                self._type_aggregates(connection)
            case Side() as part:
                self._unify(connection, number, part, types[0])
            case Star() as part:
                self._expand(connection, number, part)
            case Aggregated() as part:
                self._typed(number, part, types, connection)
            case Joined():
                raise AssertionError(number)  # the SQL has no such mark

    def _type_aggregates(self, connection: Any) -> None:
        """Decide the aggregates of parts with known types; DuckDB need not be asked."""
        for number, part in enumerate(self.query.parts):
            if isinstance(part, Aggregated) and number not in self.chosen:
                marks = map(MARKS.fullmatch, part.arguments)
                kinds = [self.types.get(int(mark[1])) for mark in marks if mark is not None]
                known = [kind for kind in kinds if kind is not None]
                if known and len(known) == len(part.arguments):
                    self._typed(number, part, known, connection)

    def _rendered(self, text_of_query: str) -> str:
        done: list[str] = []

        def marked(text: str) -> str:
            return MARKS.sub(lambda mark: done[int(mark[1])], text)

        for number, part in enumerate(self.query.parts):
            probe = f"{_PROBE}({{'k{number}': 0}}"
            if isinstance(part, Computed):
                inputs = (text for _, text in part.inputs)
                text = self.chosen.get(number) or f"{', '.join([probe, *inputs])})"
            elif isinstance(part, Side):
                named = ", ".join(f"'c{place}': {one}" for place, one in enumerate(part.values))
                row = f"{{{named}}}" if named else ROW_OF_SIDE
                text = self.chosen.get(number) or f"{probe}, {row})"
            elif isinstance(part, Star | Joined):
                text = self.chosen.get(number) or f"{probe})"
            else:
                text = self.chosen.get(number) or part.texts[0]
                text = _with_arguments(part, text, "" if number in self.chosen else probe)
            done.append(marked(text))
        return without_marks(marked(text_of_query), self.crossed)

    def _compute(self, connection: Any, number: int, part: Computed, types: Sequence[str]) -> None:
        """Choose whether DuckDB or a Python function computes an expression."""
        kinds = [self._type(connection, one) for one in types]
        names = [name for name, _ in part.inputs]
        try:
            found = self._translated(part, tuple(kinds))
            text, stored = column_text(found.result), nullable_type(to_arrow_type(found.result))
        except DeltaError as error:
            raise self._error(part, error) from error
        resolved, result, same = found.resolved, found.result, found.translation
        self.types[number] = text
        if isinstance(resolved, Literal) and isinstance(resolved.value, Decimal):
            self.chosen[number] = f"CAST('{resolved.value:f}' AS {text})"
            return
        is_small = isinstance(resolved, Literal) and result in {BYTE, SHORT}
        if part.native is not None and not is_small and found.is_same:
            self.chosen[number] = part.native
            return
        if same.text is not None and not same.guards and not is_small:
            self.chosen[number] = same.text
            return
        arrows = [to_arrow_type(one) for one in kinds] or [pa.int32()]
        names = names or ["deltalog_one"]

        def compute(*columns: Any) -> Any:
            arrays = [
                as_type_of(column, kind) for column, kind in zip(columns, arrows, strict=True)
            ]
            batch = pa.RecordBatch.from_arrays(arrays, names)
            try:
                found = as_type_of(evaluated(resolved, batch), stored)
            except InvalidInputError as error:
                raise self._error(part, error) from error
            if result == YEAR_TO_MONTH:
                return named_months(found)
            return calendar_intervals(found) if result == DAY_TO_SECOND else found

        self.gives_spans |= result == DAY_TO_SECOND
        call = self._register(compute, list(types) or ["INTEGER"], text)
        computed = f"{call}, {', '.join(text for _, text in part.inputs) or '0'})"
        self.chosen[number] = computed if is_small else same.guarded(computed)

    def _translated(self, part: Computed, kinds: tuple[DataType, ...]) -> TranslatedPart:
        """Translate a part. `kinds` are the types of its inputs."""
        if not part.parameters and not self.is_of_values:
            try:
                return _without_clock(part.text, part.inputs, kinds)
            except DeltaError:
                pass  # the part needs a clock, or is invalid
        self.uses_clock = True
        given = {name: self.parameters[name] for name in part.parameters}
        parsed = parse_sql(part.text, parameters=given)
        return translated_part(
            parsed, part.inputs, kinds, self._session, is_of_values=self.is_of_values
        )

    def _type(self, connection: Any, text: str) -> DataType:
        return type_named(connection, text, self.shown, fine=self.fine)

    def _error(self, part: Computed, error: DeltaError) -> DeltaError:
        problem = part.named(str(error))
        return error_at(self.shown, part.place, problem + cast_advice(problem), attempt="run")

    def _expand(self, connection: Any, number: int, part: Star) -> None:
        """Replace a star of a query that joins by column names by the columns, in Spark's order."""
        joined = self.query.parts[part.join]
        assert isinstance(joined, Joined)  # noqa: S101  # `join` is always the number of a join
        found = self._join(connection, part.join, joined)
        try:
            self.chosen[number] = found.expanded(part)
        except InvalidInputError as error:
            raise error_at(self.shown, part.place, str(error), attempt="run") from error

    def _join(self, connection: Any, number: int, part: Joined) -> ColumnsOfJoin:
        """Return the columns of a join by column names; DuckDB reports the columns of its sides."""
        if number not in self.joins:
            self.joins[number] = None
            self.joins[number] = self._joined(connection, part)
        found = self.joins[number]
        if found is None:
            problem = "in a recursion that joins by names, name the columns instead of a star"
            raise error_at(self.shown, part.place, problem, attempt="run")
        return found

    def _crosses(self, connection: Any) -> bool:
        """Check all joins by column names; return whether new ones lack common columns."""
        before = len(self.crossed)
        for number, part in enumerate(self.query.parts):
            if isinstance(part, Joined) and number not in self.joins:
                self._join(connection, number, part)
        return len(self.crossed) > before

    def _joined(self, connection: Any, part: Joined) -> ColumnsOfJoin:
        def ask(query: str) -> list[tuple[str, str]]:
            relation = self._bound(connection, "", query)
            return list(zip(relation.columns, map(str, relation.types), strict=True))

        try:
            found = columns_of(part, ask)
        except InvalidInputError as error:
            raise error_at(self.shown, part.place, str(error), attempt="run") from error
        self.crossed |= found.crossed
        for pair in found.pairs:
            columns = (pair.left, pair.right)
            kinds = [self._type(connection, one.type) for one in columns]
            is_one = pair.is_put_together
            problem = problem_of_pair(pair.left.name, kinds, self._session, is_put_together=is_one)
            if problem is not None:
                raise error_at(self.shown, pair.place, problem, attempt="run")
        return found

    def _unify(self, connection: Any, number: int, part: Side, row: str) -> None:
        """Cast the columns of both sides of an operation to common types, once both are known."""
        self.sides[number] = fields_of_row(row)
        self.chosen[number] = f"({', '.join(part.values)})" if part.values else "*"
        parts = self.query.parts
        sides = {
            side: one for side in (part.first, part.first + 1)
            if isinstance(one := parts[side], Side) and side in self.sides
        }  # fmt: skip
        own = [self.sides[side] for side in sides]
        if len(own) < 2 or len(own[0]) != len(own[1]):
            return  # DuckDB will report the other side, or an error
        columns: dict[int, list[str]] = {side: [] for side in sides}
        is_same = True
        for place, pair in enumerate(zip(*own, strict=True)):
            kinds = [self._type(connection, text) for _, text in pair]
            common = self._common(part, kinds)
            for (side, one), (name, text), kind in zip(sides.items(), pair, kinds, strict=True):
                column = one.values[place] if one.values else f"#{place + 1}"
                if kind != common:
                    column, is_same = self._cast(part, (column, text), kind, common), False
                columns[side].append(column if one.values else f"{column} AS {name}")
        if not is_same:
            for side, one in sides.items():
                chosen = ", ".join(columns[side])
                self.chosen[side] = f"({chosen})" if one.values else chosen

    def _common(self, part: Side, kinds: Sequence[DataType]) -> DataType:
        """Return the common type of a column in both sides."""
        try:
            return common_type_of_sides(kinds)
        except InvalidInputError as error:
            raise error_at(self.shown, part.place, str(error), attempt="run") from error

    def _cast(self, part: Side, column: tuple[str, str], kind: DataType, to: DataType) -> str:
        """Cast a column to another type. A value that this type cannot represent is an error."""
        text = column_text(to)
        if is_widened_by_duckdb(kind, to):
            return f"CAST({column[0]} AS {text})"
        schema = StructType([Field("value", kind)])
        resolved = resolve(nodes.Cast(nodes.Column(("value",)), to), schema, self._session)
        own, stored = to_arrow_type(kind), nullable_type(to_arrow_type(to))

        def compute(values: Any) -> Any:
            batch = pa.RecordBatch.from_arrays([as_type_of(values, own)], ["value"])
            try:
                return as_type_of(evaluated(resolved, batch), stored)
            except InvalidInputError as error:
                raise error_at(self.shown, part.place, str(error), attempt="run") from error

        return f"{self._register(compute, [column[1]], text)}, {column[0]})"

    def _typed(
        self, number: int, part: Aggregated, types: Sequence[str], connection: Any = None
    ) -> None:
        """Cast the result of an aggregate function to Spark's type."""
        text = part.texts[0]
        if part.kind is ResultType.LIST:
            self.chosen[number] = f"coalesce({text}, [])"
            return
        if part.kind is ResultType.COUNT:
            self.chosen[number] = f"CAST(coalesce({text}, 0) AS BIGINT)"
            return
        if part.kind not in ASKED:
            self.chosen[number] = f"CAST({text} AS {part.kind.value})"
            return
        kind, *others = (self._type(connection, one) for one in types)
        if part.kind is ResultType.KEY:
            is_plain = isinstance(kind, PrimitiveType)
            self.chosen[number] = part.texts[1] if is_plain else sort_key(text, kind)
            return
        for one in (kind, *others):
            check_aggregated(part.kind, one, self.shown)
        if part.kind in {ResultType.SKEWNESS, ResultType.KURTOSIS}:
            text = self._of_moments(part)
        elif part.kind is ResultType.REGRESSION:
            text = self._of_pairs(part, [kind, *others])
        elif part.kind in OF_DOUBLES:
            text = _of_doubles(part)
        elif part.kind in {ResultType.SUM, ResultType.AVERAGE}:
            text = self._of_numbers(part, kind)
        self.chosen[number] = text

    def _of_numbers(self, part: Aggregated, kind: DataType) -> str:
        """Return the SQL of a sum or an average with Spark's type."""
        text = part.texts[0]
        if kind in {STRING, VOID}:
            text = _as_doubles(text)
        decimal = decimal_of(kind)
        if decimal is not None and part.kind is ResultType.AVERAGE:
            text = self._average(part, decimal)
        elif decimal is not None:
            precision, scale = decimal
            text = f"CAST({text} AS DECIMAL({min(precision + 10, MAX_PRECISION)}, {scale}))"
        elif part.kind is ResultType.SUM and kind in INTEGRALS:
            text = f"CAST({text} AS BIGINT)"
        return text

    def _of_pairs(self, part: Aggregated, kinds: Sequence[DataType]) -> str:
        """Return the SQL of a function of a linear regression."""
        found = Regression.of(part.texts)
        if found.averaged is None:
            return found.sql(_as_doubles)
        averaged = replace(part, kind=ResultType.AVERAGE, texts=found.average)
        return self._of_numbers(averaged, kinds[found.averaged])

    def _of_moments(self, part: Aggregated) -> str:
        """Return the SQL of a function that is computed from the list of the values."""
        compute = skewness if part.kind is ResultType.SKEWNESS else kurtosis
        call = self._register(compute, ["DOUBLE[]"], "DOUBLE")
        return f"{call}, {_as_doubles(part.texts[1])})"

    def _average(self, part: Aggregated, decimal: tuple[int, int]) -> str:
        """Return the SQL for the average of decimals, with the number of digits as in Spark."""
        precision, scale = (min(one + 4, MAX_PRECISION) for one in decimal)
        result = decimal_type(precision, scale)
        total, count = part.texts[1:]

        def compute(totals: Any, counts: Any) -> Any:
            return as_type_of(average(totals, counts, result), to_arrow_type(result))

        types = [f"DECIMAL({MAX_PRECISION}, {decimal[1]})", "BIGINT"]
        call = self._register(compute, types, type_text(result))
        return f"{call}, {total}, {count})"

    def _register(self, compute: Callable[..., Any], types: Sequence[str], result: str) -> str:
        """Register a Python function of batches; return the beginning of its call in SQL."""
        function = RunFunction(compute, self)
        self.functions.append(function)
        return function.call_in(self.database, types, result)


_EQUAL: Final = f"{BY_ZERO}; corr divides by the deviations, which are 0 if all values are equal"


def _with_arguments(part: Aggregated, text: str, probe: str) -> str:
    """Replace the marks of a call by its arguments; the first by the probe of all, if there is one.

    Args:
        part: the call.
        text: the SQL of the call, with marks.
        probe: the beginning of a call whose error contains the types of its arguments.
    """
    arguments = list(part.arguments)
    if arguments and probe:
        arguments[0] = f"{', '.join([probe, *arguments])})"
    return ARGUMENTS.sub(lambda mark: arguments[int(mark[1])], text)


def _as_doubles(text: str) -> str:
    """Cast the marks of a call to doubles."""
    return ARGUMENTS.sub(lambda mark: f"CAST({mark[0]} AS DOUBLE)", text)


def _of_doubles(part: Aggregated) -> str:
    """Return the SQL of a statistical function, with Spark's results for few or equal values."""
    text, *others = map(_as_doubles, part.texts)
    if part.kind is ResultType.POPULATION:
        (value,) = others
        return f"({text} + 0 * {value})"  # NaN if the value is NaN or infinite
    if part.kind is ResultType.CORRELATION:
        number, covariance = others
        is_equal = f"isnan({text}) AND NOT isnan({covariance})"
        return (
            f"(CASE WHEN {number} < 2 THEN NULL WHEN {is_equal} THEN error('{_EQUAL}') "
            f"ELSE {text} END)"
        )
    return text


def _has_nested_columns(rows: Any) -> bool:
    schema = arrow_schema(rows)
    return schema is None or any(map(pa.types.is_nested, schema.types))


def _plain(value: object) -> object:
    """Return a parameter as DuckDB takes it: as a Python value, and None for pandas' NaT and NA."""
    try:
        plain, kind = plain_value(value)
    except InvalidInputError:
        return value  # of a type that only DuckDB supports
    # An integer of another type is a count, such as nanoseconds since 1970.
    is_count = type(plain) is int and kind not in INTEGRALS
    return value if is_count else plain


# --- the Python functions that DuckDB calls while a query runs


_NUMBERS: Final = itertools.count()


class RunFunction:
    """A Python function of one run. The run refers to it as long as DuckDB may call it.

    Args:
        compute: a function that computes an array of results from arrays of arguments.
        run: the run, which stores the function's error, because DuckDB reports only the message.
    """

    def __init__(self, compute: Callable[..., Any], run: DuckDBRun) -> None:
        self._number = next(_NUMBERS)
        self._compute = compute
        self._run = ref(run)
        _FUNCTIONS[self._number] = self

    def __call__(self, *columns: Any) -> Any:
        """Return the array of the results for a batch."""
        try:
            return self._compute(*columns)
        except DeltaError as error:
            run = self._run()
            if run is not None:
                run.failure = error
            raise

    def call_in(self, database: Database, types: Sequence[str], result: str) -> str:
        """Return the beginning of the call in SQL, to which the caller appends the other arguments.

        Args:
            database: the DuckDB in which the function is registered.
            types: the types of the arguments, in DuckDB's notation.
            result: the type of the result, in DuckDB's notation.
        """
        name, called = _caller((*types, result))
        database.know(name, called, ["BIGINT", *types], result)
        return f"{name}({self._number}"


# The Python functions that DuckDB may call for the queries in progress: number → function.
_FUNCTIONS: Final[WeakValueDictionary[int, RunFunction]] = WeakValueDictionary()


@cache
def _caller(types: tuple[str, ...]) -> tuple[str, Callable[..., Any]]:
    """Return a name and a function for DuckDB. The last type is the type of the result.

    DuckDB never releases a function. So all expressions with the same types share this one, whose
    first argument is the number of the actual function.
    """

    def call(number: Any, *columns: Any) -> Any:
        if not len(number):
            return pa.nulls(0)
        return _FUNCTIONS[number[0].as_py()](*columns)

    # DuckDB checks the number of the function's parameters, so declare them.
    kind = inspect.Parameter.POSITIONAL_ONLY
    names = ("number", *(f"c{place}" for place in range(len(types) - 1)))
    parameters = [inspect.Parameter(name, kind) for name in names]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return f"deltalog_computed_{next(_NUMBERS)}", call


# --- chains of AND and OR, in which equal inputs have equal types


def alike(parts: Sequence[Part], number: int) -> Iterator[tuple[int, Computed]]:
    """Yield a part, and all parts of the same chain that have the same inputs.

    Args:
        parts: the parts of a query.
        number: the index of the part.
    """
    first = parts[number]
    assert isinstance(first, Computed)  # noqa: S101  # callers pass only the number of such a part
    yield number, first
    if first.chain is None:
        return
    for other, one in enumerate(parts[number + 1 :], number + 1):
        if isinstance(one, Computed) and (one.chain, one.inputs) == (first.chain, first.inputs):
            yield other, one


_PLAIN_INPUT: Final = re.compile(r"""["\w.]+|"[^"]*"(?:\."[^"]*")*""")
_WITHOUT_CLOCK: Final = SqlSession(now=None, time_zone="UTC")


@dataclass(frozen=True, slots=True)
class TranslatedPart:
    """An expression of a query, for the types of its inputs.

    Args:
        resolved: the expression.
        result: its type.
        is_same: whether DuckDB computes the part's own SQL as Spark does.
        translation: the expression in DuckDB's SQL.
    """

    resolved: Expression
    result: DataType
    is_same: bool
    translation: Translation


def translated_part(
    parsed: Expression,
    inputs: Sequence[tuple[str, str]],
    kinds: Sequence[DataType],
    session: SqlSession,
    *,
    is_of_values: bool = False,
) -> TranslatedPart:
    """Translate an expression of a query for the types of its inputs.

    Args:
        parsed: the expression.
        inputs: see `Computed`.
        kinds: the types of the inputs.
        session: the time and the zone of the query.
        is_of_values: see `query_translated`.

    Raises:
        DeltaError: the expression is not valid for these types.
    """
    names = [name for name, _ in inputs]
    schema = StructType([Field(*one) for one in zip(names, kinds, strict=True)])
    resolved = resolve(parsed, schema, session, text_rules=TextRules.VALUES)
    if is_of_values and isinstance(resolved, Literal):
        resolved = as_inserted(resolved)
    found = to_duckdb(resolved, schema, dict(inputs))
    written = " ".join([found.text or "", *found.guards])
    if any(not _PLAIN_INPUT.fullmatch(text) and written.count(text) > 1 for _, text in inputs):
        # A subquery may have other values each time, or be slow.
        found = Translation(None)
    return TranslatedPart(
        resolved, type_of(resolved, schema), is_same_by_duckdb(parsed, resolved, schema), found
    )


@lru_cache(maxsize=4_096)
def _without_clock(
    text: str, inputs: tuple[tuple[str, str], ...], kinds: tuple[DataType, ...]
) -> TranslatedPart:
    """Translate an expression without parameters that does not depend on the time of the query."""
    return translated_part(parse_sql(text), inputs, kinds, _WITHOUT_CLOCK)


def as_inserted(literal: Literal) -> Literal:
    """Return a constant of VALUES with its nanoseconds, which the target column may store."""
    is_kept = literal.nanos and is_supported("timestampNanos", Support.PREVIEW)
    if not is_kept or literal.type not in {TIMESTAMP, TIMESTAMP_NTZ}:
        return literal
    has_zone = literal.type == TIMESTAMP
    return fine_literal(literal, TIMESTAMP_NANOS if has_zone else TIMESTAMP_NANOS_NTZ)


def evaluated(resolved: Expression, batch: pa.RecordBatch) -> Any:
    """Return the values of an expression for a batch.

    If a constant operand of AND or OR decides the result, errors of the other operand have no
    effect, because Spark folds constants before it reads rows.

    Raises:
        InvalidInputError: the evaluation fails for a row.
    """
    try:
        return evaluate(resolved, batch)
    except InvalidInputError:
        folded = fold(resolved)
        if folded.same_as(resolved):
            raise
        return evaluate(folded, batch)
