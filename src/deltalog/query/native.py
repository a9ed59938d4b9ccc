"""Decide which expressions DuckDB computes as Spark does.

For other trees and types, `expressions` computes the result.

Protocol: none
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from sqlglot import exp

from deltalog._util.escaping import name_key
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions import Literal, columns, nodes, parse_sql, resolve, type_of
from deltalog.expressions.coercion import FINE_MOMENTS, common_type, has_same_structure
from deltalog.expressions.sql_session import SqlSession
from deltalog.expressions.trees import walk
from deltalog.query.query_trees import ResultType
from deltalog.schema import DataType, Field, MapType, PrimitiveType, StructType
from deltalog.schema.arrow import from_arrow_type
from deltalog.schema.columns import walk_types
from deltalog.schema.primitives.moments import NAMED_MONTHS, time_spans
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NANOS_NTZ,
    TIMESTAMP_NTZ,
    VOID,
    YEAR_TO_MONTH,
    ArrayType,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sqlglot.expressions import Expr

    from deltalog.expressions import Expression

INTEGRALS: Final = (BYTE, SHORT, INTEGER, LONG)
# Types whose values DuckDB compares as Spark does.
_COMPARED: Final = frozenset({*INTEGRALS, STRING, DOUBLE, FLOAT, BOOLEAN, DATE, TIMESTAMP, BINARY,
                              TIMESTAMP_NTZ})  # fmt: skip
# Types with which DuckDB adds and multiplies as Spark does: results that are too large are errors
# in both.
_ADDED: Final = frozenset({INTEGER, LONG, DOUBLE})
_TOO_LARGE: Final = 2**63
_NATIVE_CONSTANTS: Final = (str, float, Decimal, date, NoneType)
_PLAIN: Final = (
    nodes.Column, Literal, nodes.Comparison, nodes.In, nodes.And, nodes.Or, nodes.Not,
    nodes.IsNull, nodes.Like, nodes.Arithmetic,
)  # fmt: skip


def is_same_by_duckdb(parsed: Expression, resolved: Expression, schema: StructType) -> bool:
    """Return whether DuckDB's result of an expression is Spark's.

    Args:
        parsed: the expression as written.
        resolved: the same expression with names, types and casts.
        schema: schema of its columns.
    """
    return _is_plain(parsed) and _means_the_same(resolved, schema)


def check_aggregated(what: ResultType, kind: DataType, shown: str) -> None:
    """Raise if DuckDB computes an aggregate function over a type differently.

    Args:
        what: the function.
        kind: type of its argument.
        shown: the query, for errors.

    Raises:
        InvalidInputError: it cannot be computed.
    """
    named = "strings" if what is ResultType.TEXT else "sum and the average"
    is_known = kind != YEAR_TO_MONTH
    if what in {ResultType.ORDERED, ResultType.BY}:
        named, is_known = "least and the greatest value", is_ordered_by_duckdb(kind)
    if not is_known:
        raise InvalidInputError(
            f"cannot run {shown!r}: the {named} of the type {kind} are not supported"
        )


def is_ordered_by_duckdb(kind: DataType) -> bool:
    """Return whether DuckDB sorts the values of a type as Spark does."""
    return kind in {*_COMPARED, *FINE_MOMENTS, VOID, YEAR_TO_MONTH} or decimal_of(kind) is not None


def is_widened_by_duckdb(source: DataType, to: DataType) -> bool:
    """Return whether DuckDB casts a type to another one as Spark does, and no value fails."""
    numbers = (*INTEGRALS, FLOAT, DOUBLE)
    if source in numbers and to in numbers:
        return to not in INTEGRALS or source in INTEGRALS
    return source == VOID or bool((source in INTEGRALS or decimal_of(source)) and decimal_of(to))


def problem_of_pair(
    name: str, kinds: Sequence[DataType], session: SqlSession, *, is_put_together: bool
) -> str | None:
    """Return why DuckDB does not join by two columns as Spark does; None if it does.

    Args:
        name: name of the columns.
        kinds: their types.
        session: the time zone.
        is_put_together: whether the two columns become one.
    """
    if any(isinstance(part, MapType) for kind in kinds for _, part in walk_types(kind)):
        return f"columns {name} of {kinds[0]} and of {kinds[1]} cannot be compared: they have maps"
    has_other_type = is_put_together and kinds[0] != kinds[1] and any(map(decimal_of, kinds))
    if not has_other_type and _are_equal_as_in_spark(kinds, session):
        return None
    return (
        f"columns {name} of {kinds[0]} and of {kinds[1]} cannot be joined by name: join ON "
        "a condition that casts one of them"
    )


def _are_equal_as_in_spark(kinds: Sequence[DataType], session: SqlSession) -> bool:
    """Return whether DuckDB compares two types for equality as Spark does."""
    if kinds[0] == kinds[1] and not isinstance(kinds[0], PrimitiveType):
        return True
    schema = StructType([Field(name, kind) for name, kind in zip("ab", kinds, strict=True)])
    parsed = nodes.Comparison("=", nodes.Column(("a",)), nodes.Column(("b",)))
    try:
        return is_same_by_duckdb(parsed, resolve(parsed, schema, session), schema)
    except DeltaError:
        return False


def _is_plain(parsed: Expression) -> bool:
    """Return whether an expression as written has only constants, columns and operators."""
    return all(isinstance(one, _PLAIN) and not _is_lost(one) for one in walk(parsed))


def _is_lost(node: Expression) -> bool:
    """Return whether Spark casts a constant's type to another one, but DuckDB does not."""
    if isinstance(node, nodes.Arithmetic):
        sides = (node.left, node.right)
        return any(isinstance(one, Literal) and isinstance(one.value, str | None) for one in sides)
    return isinstance(node, Literal) and node.type == FLOAT


def _means_the_same(resolved: Expression, schema: StructType) -> bool:
    """Return whether DuckDB's result of an expression is Spark's."""
    match resolved:
        case nodes.Column():
            return True
        case Literal(type=kind) if kind == YEAR_TO_MONTH:
            return False  # in DuckDB it is an interval, which also has days
        case Literal():
            # A timestamp stored as a number has a year that DuckDB formats differently.
            is_whole = isinstance(resolved.value, int) and not resolved.is_far_moment
            is_small = is_whole and abs(resolved.value) < _TOO_LARGE
            return is_small or isinstance(resolved.value, _NATIVE_CONSTANTS)
        case nodes.Comparison():
            return _are_compared((resolved.left, resolved.right), schema)
        case nodes.In():
            return _are_compared((resolved.operand, *resolved.options), schema)
        case nodes.And() | nodes.Or():
            return all(_means_the_same(one, schema) for one in resolved.operands)
        case nodes.Not() | nodes.IsNull():
            return _means_the_same(resolved.operand, schema)
        case nodes.Like():
            pattern = resolved.pattern
            is_plain = isinstance(pattern, Literal) and "\\" not in str(pattern.value)
            is_usual = not resolved.ignore_case and resolved.escape == "\\"
            return is_plain and is_usual and isinstance(resolved.operand, nodes.Column)
        case nodes.Arithmetic():
            sides = (resolved.left, resolved.right)
            return resolved.operator in {"+", "-", "*"} and all(
                type_of(one, schema) in _ADDED and _is_value(one, schema) for one in sides
            )
        case _:
            return False


def _is_value(node: Expression, schema: StructType) -> bool:
    """Return whether a side of an operator has the same type in DuckDB."""
    side = _widened(node, schema)
    return type_of(side, schema) not in {FLOAT, VOID} and _means_the_same(side, schema)


def _are_compared(sides: Sequence[Expression], schema: StructType) -> bool:
    plain = [_widened(one, schema) for one in sides]
    kinds = [type_of(one, schema) for one in plain]
    if FINE_MOMENTS.intersection(kinds) and (
        len(set(kinds)) > 1 or not all(isinstance(one, nodes.Column) for one in plain)
    ):
        return False  # DuckDB casts one unit to the other
    if FLOAT in kinds and not all(map(_is_compared_with_float, plain, kinds)):
        return False
    return all(
        isinstance(side, nodes.Column | Literal | nodes.Arithmetic)
        and is_ordered_by_duckdb(one)
        and _means_the_same(side, schema)
        for side, one in zip(plain, kinds, strict=True)
    )


def _is_compared_with_float(side: Expression, kind: DataType) -> bool:
    """Return whether DuckDB compares a side with a float as Spark does: without losing digits.

    DuckDB casts whole numbers and decimals to float; Spark casts both sides to double.
    """
    if not isinstance(side, Literal):
        return kind in {FLOAT, DOUBLE}
    number = side.value
    if not isinstance(number, int | float | Decimal):
        return number is None
    try:
        return bool(struct.unpack("f", struct.pack("f", number))[0] == number)
    except OverflowError:
        return False


def _widened(node: Expression, schema: StructType) -> Expression:
    """Return the operand of a lossless cast that DuckDB makes implicitly."""
    if not isinstance(node, nodes.Cast):
        return node
    source, to = type_of(node.operand, schema), node.to
    numbers = (*INTEGRALS, DOUBLE)
    if source in numbers and to in numbers:
        return node.operand if numbers.index(source) <= numbers.index(to) else node
    is_exact = (source in INTEGRALS or decimal_of(source)) and (decimal_of(to) or to == DOUBLE)
    is_other = (source, to) in {(DATE, TIMESTAMP), (DATE, TIMESTAMP_NTZ), (FLOAT, DOUBLE)}
    return node.operand if is_exact or is_other or source == VOID else node


# Types of DuckDB and of tables: names and conversions.


MAX_PRECISION: Final = 38
_TYPES: Final[dict[DataType, str]] = {
    STRING: "VARCHAR", BYTE: "TINYINT", SHORT: "SMALLINT", INTEGER: "INTEGER", LONG: "BIGINT",
    FLOAT: "FLOAT", DOUBLE: "DOUBLE", BOOLEAN: "BOOLEAN", BINARY: "BLOB", DATE: "DATE",
    TIMESTAMP: "TIMESTAMP WITH TIME ZONE", TIMESTAMP_NTZ: "TIMESTAMP", VOID: "INTEGER",
    TIMESTAMP_NANOS: "TIMESTAMPTZ_NS", TIMESTAMP_NANOS_NTZ: "TIMESTAMP_NS",
    DAY_TO_SECOND: "INTERVAL",
}  # fmt: skip
# DuckDB's own intervals combine months, days and microseconds.
MONTHS_TEXT: Final = f'STRUCT("{NAMED_MONTHS.field(0).name}" INTEGER)'
# DuckDB's names of the types of constants.
_CONSTANTS: Final = {"INTEGER_LITERAL": "INTEGER", "STRING_LITERAL": "VARCHAR"}
_INTERVALS: Final[dict[str, DataType]] = {"INTERVAL": DAY_TO_SECOND, MONTHS_TEXT: YEAR_TO_MONTH}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


def decimal_of(kind: DataType) -> tuple[int, int] | None:
    """Return the precision and the scale of a decimal; None for another type."""
    found = _DECIMAL.fullmatch(str(getattr(kind, "type", "")))
    return (int(found[1]), int(found[2])) if found else None


def as_type_of(column: Any, kind: pa.DataType) -> Any:
    """Return a column as one array of a type."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)
    if pa.types.is_interval(column.type) and pa.types.is_duration(kind):
        return time_spans(column)
    if column.type == NAMED_MONTHS and kind == pa.int32():
        return column.flatten()[0]
    return column if column.type == kind else column.cast(kind)


def nullable_type(kind: pa.DataType) -> pa.DataType:
    """Return a type with all fields nullable, as in DuckDB."""
    found: Any = kind
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, nullable_type(one.type)) for one in found])
    if pa.types.is_map(kind):
        return pa.map_(nullable_type(found.key_type), nullable_type(found.item_type))
    return pa.list_(nullable_type(found.value_type)) if pa.types.is_list(kind) else kind


def type_named(connection: Any, text: str, shown: str, *, fine: bool = False) -> DataType:
    """Return the type of a table for a type of DuckDB.

    Args:
        connection: connection to DuckDB.
        text: the type in DuckDB's spelling.
        shown: the query in errors.
        fine: whether to keep nanoseconds; otherwise they are truncated.
    """
    if text == '"NULL"':
        return VOID
    if text in _INTERVALS:
        return _INTERVALS[text]
    try:
        return from_arrow_type(_arrow(connection, _CONSTANTS.get(text, text)), fine=fine)
    except DeltaError as error:
        raise InvalidInputError(f"cannot run {shown!r}: {error}") from error


def _arrow(connection: Any, text: str) -> pa.DataType:
    if text in {"HUGEINT", "UHUGEINT"}:
        return pa.decimal128(MAX_PRECISION, 0)
    if text not in _ARROWS:
        found = connection.sql(f"SELECT CAST(NULL AS {text}) AS found").to_arrow_reader()
        _ARROWS[text] = found.schema.field(0).type
    return _ARROWS[text]


_FIELD: Final = re.compile(r'("(?:[^"]|"")*"|\S+) (.+)', re.DOTALL)
_ARROWS: Final[dict[str, pa.DataType]] = {}


def column_text(kind: DataType) -> str:
    """Return the type of a column, which may have months, in DuckDB's spelling."""
    return MONTHS_TEXT if kind == YEAR_TO_MONTH else type_text(kind)


@lru_cache(maxsize=512)
def type_text(kind: DataType) -> str:
    """Return a type in DuckDB's spelling."""
    match kind:
        case ArrayType():
            return f"{type_text(kind.element_type)}[]"
        case MapType():
            return f"MAP({type_text(kind.key_type)}, {type_text(kind.value_type)})"
        case StructType():
            inner = (f"{_quoted(one.name)} {type_text(one.type)}" for one in kind)
            return f"STRUCT({', '.join(inner)})"
        case _:
            decimal = decimal_of(kind)
            if decimal is not None:
                return f"DECIMAL{decimal}"
            if kind not in _TYPES:
                raise InvalidInputError(f"a query cannot return values of the type {kind}")
            return _TYPES[kind]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def divided_types(text: str) -> list[str]:
    """Split a list of types at commas outside of brackets and quotes."""
    found, depth, quote, begin = [], 0, "", 0
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign == "," and not depth:
            found.append(text[begin:place].strip())
            begin = place + 1
    return [*found, text[begin:].strip()] if text.strip() else []


def fields_of_row(text: str) -> list[tuple[str, str]]:
    """Return the quoted names and the types of a struct's fields, in DuckDB's spelling."""
    inside = text.removeprefix("STRUCT(").removesuffix(")")
    found = []
    for one in divided_types(inside):
        match = _FIELD.fullmatch(one)
        assert match is not None, one  # noqa: S101  # of DuckDB's own making
        name, kind = match.groups()
        found.append((name if name[0] == '"' else f'"{name}"', kind))
    return found


# Common types of columns in set operations and VALUES.


_NO_COLUMNS: Final = StructType(())
# Only the types are needed.
_ANY_MOMENT: Final = SqlSession(now=datetime(2000, 1, 1, tzinfo=UTC), time_zone="UTC")


def common_type_of_sides(kinds: Sequence[DataType]) -> DataType:
    """Return the common type of two columns in a set operation.

    Struct fields of the same type may have different names: they get the names of the
    first side.

    Raises:
        InvalidInputError: they have no common type.
    """
    if len(kinds) == 2 and has_same_structure(*kinds):
        return kinds[0]
    found = _common(kinds)
    if found is None:
        names = " and of ".join(map(str, kinds))
        raise InvalidInputError(f"columns of {names} have no common type")
    return found


def common_type_of_values(texts: Sequence[str]) -> DataType:
    """Return the common type of the constants in a column of VALUES.

    Args:
        texts: the constants in Spark's dialect.

    Raises:
        InvalidInputError: one is not a constant, or they have no common type.
    """
    kinds = [
        type_of(resolve(parse_sql(one), _NO_COLUMNS, _ANY_MOMENT), _NO_COLUMNS) for one in texts
    ]
    found = _common(kinds)
    if found is None:
        names = ", ".join(dict.fromkeys(map(str, kinds)))
        raise InvalidInputError(f"the values of a column of VALUES have no common type: {names}")
    return _with_floats(found, kinds)


def _common(kinds: Sequence[DataType]) -> DataType | None:
    found: DataType | None = VOID
    for kind in kinds:
        found = None if found is None else common_type(found, kind)
    return found


def _with_floats(common: DataType, kinds: Sequence[DataType]) -> DataType:
    """Return the common type; in VALUES, FLOAT and whole numbers give FLOAT."""
    if FLOAT in kinds and common == DOUBLE and {FLOAT, VOID, *INTEGRALS}.issuperset(kinds):
        return FLOAT
    known: list[Any] = [one for one in kinds if one != VOID]
    match common:
        case ArrayType():
            inner = _with_floats(common.element_type, [one.element_type for one in known])
            return replace(common, element_type=inner)
        case MapType():
            key = _with_floats(common.key_type, [one.key_type for one in known])
            value = _with_floats(common.value_type, [one.value_type for one in known])
            return replace(common, key_type=key, value_type=value)
        case StructType():
            columns = zip(common, *known, strict=True)
            fields = [
                replace(one, type=_with_floats(one.type, [other.type for other in own]))
                for one, *own in columns
            ]
            return StructType(fields)
        case _:
            return common


# The parts of a query that a table can apply before DuckDB reads it.


_SIMPLE: Final = (
    exp.And, exp.Or, exp.Paren, exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between,
    exp.Is, exp.Like, exp.Null, exp.Literal, exp.Column, exp.Identifier, exp.Placeholder, exp.Neg,
)  # fmt: skip
_NANOSECONDS: Final = re.compile(r"\.\d{7}")
# DuckDB pushes conditions into a dataset itself, except if WHERE has one of these.
_UNKNOWN_TO_DUCKDB: Final = (exp.In, exp.Like)
# The parts of a plain `SELECT … FROM t LIMIT n`.
_UNCHANGED_ROWS: Final = frozenset({"kind", "expressions", "from_", "limit"})


@dataclass(frozen=True, slots=True)
class TableRead:
    """The parts of a table that a query needs.

    Args:
        where: true for each needed row, in Spark's dialect; None if unknown.
        limit: number of rows that suffices; None means all.
        columns: for a limit: the needed columns; None means all.
        looked_into: names in lower case that the query uses beyond returning them: their
            values are compared, sorted or computed with; None means all.
        named: names in lower case anywhere in the query; None means all.
    """

    where: str | None = None
    limit: int | None = None
    columns: tuple[str, ...] | None = None
    looked_into: frozenset[str] | None = frozenset()
    named: frozenset[str] | None = None

    def predicate(
        self, parameters: Mapping[str, object], names: Collection[str]
    ) -> Expression | None:
        """Return the condition with its parameters; None if it uses other columns than the table's.

        Args:
            parameters: parameters of the query.
            names: names of the table's columns.
        """
        if self.where is None:
            return None
        try:
            found = parse_sql(self.where, parameters=parameters)
        except InvalidInputError:
            return None  # only DuckDB can evaluate it
        own = {name_key(name) for name in names}
        return found if all(name_key(path[0]) in own for path in columns(found)) else None


EVERYTHING: Final = TableRead()


def read_of(node: exp.Table) -> TableRead:
    """Return the parts of a table, a node of the query's tree, that the query needs."""
    select = node.parent_select
    if select is None or not isinstance(node.parent, exp.From | exp.Join):
        return EVERYTHING
    joins = select.args.get("joins") or []
    if any(
        join.side or join.args.get("kind") not in {None, "", "INNER", "CROSS"} for join in joins
    ):
        return EVERYTHING
    is_alone = not joins and not select.args.get("laterals")
    where = select.args.get("where")
    if where is None:
        return _limited(select) if is_alone else EVERYTHING
    if where.find(*_UNKNOWN_TO_DUCKDB) is None:
        return EVERYTHING
    alias = node.alias or node.name
    parts = [
        _text(one, alias)
        for one in _conjuncts(where.this)
        if _is_simple(one) and _is_about(one, alias, is_alone=is_alone)
    ]
    return TableRead(" AND ".join(f"({part})" for part in parts) or None)


def names_looked_into(tree: Expr) -> frozenset[str] | None:
    """Return the names, in lower case, whose values a query uses beyond returning them.

    This includes names of tables; None means every name. IS NULL does not count as a use.
    """
    if not isinstance(tree, exp.Select) or tree.args.get("distinct"):
        return None
    if tree.find(exp.Union, exp.Except, exp.Intersect) or any(
        join.args.get("method") for join in tree.find_all(exp.Join)
    ):
        return None  # whole rows, or unnamed columns
    if _names_rows(tree):
        return None
    for one in tree.find_all(exp.Ordered, exp.Group, exp.Star):
        parts = one.expressions if isinstance(one, exp.Group) else [one.this]
        is_by_place = any(isinstance(part, exp.Literal) for part in parts)
        is_all = one.args.get("all") or any(part.name.lower() == "all" for part in parts if part)
        is_own = one.parent is tree or isinstance(one.parent, exp.Count)
        if is_by_place or is_all or (isinstance(one, exp.Star) and not is_own):
            return None
    answered = {id(one) for one in tree.expressions}
    called = {
        name_key(one.name)
        for one in tree.find_all(exp.Identifier)
        if id(one.parent) not in answered
    }
    # GROUP BY, ORDER BY and HAVING use values through the names of result columns.
    given = {id(_bare(one)) for one in tree.expressions if name_key(one.alias) not in called}
    asked = {id(one.this) for one in tree.find_all(exp.Is) if isinstance(one.expression, exp.Null)}
    return frozenset(
        name_key(one.name)
        for one in tree.find_all(exp.Identifier)
        if id(one.parent) not in given | asked
    )


def names_in(tree: Expr) -> frozenset[str] | None:
    """Return the names in a query, in lower case; None means every name.

    A star means every name, and so does a table's name where a column is expected.
    """
    if any(not isinstance(one.parent, exp.Count) for one in tree.find_all(exp.Star)):
        return None
    if _names_rows(tree):
        return None
    return frozenset(name_key(one.name) for one in tree.find_all(exp.Identifier))


def _names_rows(tree: Expr) -> bool:
    """Return whether a name may mean a whole row of a table, as in DuckDB."""
    tables = {
        name_key(one.alias_or_name) for one in tree.find_all(exp.Table, exp.Subquery, exp.CTE)
    }
    named = (name_key(one.name) for one in tree.find_all(exp.Column) if not one.table)
    return not tables.isdisjoint(named)


def _bare(node: Expr) -> Expr:
    """Return the expression of a result column without its alias."""
    return node.this if isinstance(node, exp.Alias) else node


def _conjuncts(node: Expr) -> Iterator[Expr]:
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, exp.And):
            pending += [one.right, one.left]
        elif isinstance(one, exp.Paren) and isinstance(one.this, exp.And):
            pending.append(one.this)
        else:
            yield one


def _is_simple(node: Expr) -> bool:
    for one in node.walk():
        if isinstance(one, exp.Cast) and isinstance(one.this, exp.Literal):
            if _NANOSECONDS.search(one.this.name):
                return False  # a cast would truncate them, but a literal keeps them
            continue  # DATE'2025-01-31'
        if isinstance(one, exp.DataType):
            continue
        if not isinstance(one, _SIMPLE) or (isinstance(one, exp.In) and one.args.get("query")):
            return False
        if isinstance(one, exp.Like) and "\\" in str(getattr(one.expression, "this", "\\")):
            return False
    return True


def _is_about(node: Expr, alias: str, *, is_alone: bool) -> bool:
    """Return whether all columns are the table's; an unqualified one may be another table's."""
    return all(
        name_key(column.table) == name_key(alias) if column.table else is_alone
        for column in node.find_all(exp.Column)
    )


def _text(node: Expr, alias: str) -> str:
    found = node.copy()
    for column in found.find_all(exp.Column):
        if name_key(column.table) == name_key(alias) and not column.args.get("db"):
            column.set("table", None)
    return found.sql(dialect="spark")


def _limited(select: exp.Select) -> TableRead:
    """Return the row count and columns that `SELECT a, b FROM t LIMIT n` needs."""
    said = {name for name, value in select.args.items() if value}
    limit: Any = select.args.get("limit")
    if not isinstance(limit, exp.Limit) or not said <= _UNCHANGED_ROWS:
        return EVERYTHING
    count = limit.expression
    if not isinstance(count, exp.Literal) or not count.is_int:
        return EVERYTHING
    names: list[str] = []
    for one in select.expressions:
        if isinstance(one, exp.Star) and not any(one.args.values()):
            return TableRead(limit=int(count.name))
        column = one.this if isinstance(one, exp.Alias) else one
        if not isinstance(column, exp.Column) or len(column.parts) != 1:
            return EVERYTHING
        names.append(column.name)
    return TableRead(limit=int(count.name), columns=tuple(dict.fromkeys(names)))
