"""Decide which expressions DuckDB computes as Spark does.

All other expressions are computed by the package `expressions`, with Spark's semantics.

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
from deltalog.query.bare_calls import bare_calls
from deltalog.query.lexer import as_written
from deltalog.query.query_trees import OF_DOUBLES, ResultType
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
# The types whose values DuckDB compares as Spark does.
_COMPARED: Final = frozenset({*INTEGRALS, STRING, DOUBLE, FLOAT, BOOLEAN, DATE, TIMESTAMP, BINARY,
                              TIMESTAMP_NTZ})  # fmt: skip
# The types that DuckDB adds and multiplies as Spark does, with an error for a result out of range.
_ADDED: Final = frozenset({INTEGER, LONG, DOUBLE})
_TOO_LARGE: Final = 2**63
_NATIVE_CONSTANTS: Final = (str, float, Decimal, date, NoneType)
_PLAIN: Final = (
    nodes.Column, Literal, nodes.Comparison, nodes.In, nodes.And, nodes.Or, nodes.Not,
    nodes.IsNull, nodes.Like, nodes.Arithmetic,
)  # fmt: skip


def is_same_by_duckdb(parsed: Expression, resolved: Expression, schema: StructType) -> bool:
    """Return whether DuckDB and Spark compute the same result for an expression.

    Args:
        parsed: the expression as the user wrote it.
        resolved: the same expression with resolved names, types and casts.
        schema: the schema of the columns in the expression.
    """
    return (
        _is_plain(parsed)
        and _has_usual_strings(parsed, resolved, schema)
        and _means_the_same(resolved, schema)
    )


def check_aggregated(what: ResultType, kind: DataType, shown: str) -> None:
    """Refuse an aggregate function if DuckDB computes it differently from Spark for a type.

    Args:
        what: the kind of the function's result.
        kind: the type of the argument.
        shown: the query, for the error.

    Raises:
        InvalidInputError: DuckDB's result would differ from Spark's.
    """
    if what in _EXPECTED and not _is_expected(what, kind):
        counts = what is ResultType.SUM and kind == BOOLEAN
        hint = "; count_if(condition) counts rows" if counts else ""
        raise InvalidInputError(
            f"cannot run {as_written(shown)!r}: the function expects {_EXPECTED[what]}, found "
            f"{kind}{hint}"
        )
    named = "strings" if what is ResultType.TEXT else "sum and the average"
    is_known = kind != YEAR_TO_MONTH
    if what in {ResultType.ORDERED, ResultType.BY}:
        named, is_known = "least and the greatest value", is_ordered_by_duckdb(kind)
    if not is_known:
        raise InvalidInputError(
            f"cannot run {as_written(shown)!r}: the {named} of the type {kind} are not supported"
        )


_EXPECTED: Final = {
    **dict.fromkeys((ResultType.SUM, ResultType.AVERAGE, *OF_DOUBLES), "a number"),
    ResultType.TRUTH: "a boolean",
    ResultType.WHOLE: "an integer",
}
"""The kind of an aggregate function → what its argument must be, in an error."""


def _is_expected(what: ResultType, kind: DataType) -> bool:
    """Return whether Spark has an aggregate function for arguments of a type."""
    if kind in {STRING, VOID}:  # Spark casts them
        return True
    if what is ResultType.TRUTH:
        return kind == BOOLEAN
    if what is ResultType.WHOLE:
        return kind in INTEGRALS
    is_number = kind in {*INTEGRALS, FLOAT, DOUBLE} or decimal_of(kind) is not None
    # Spark has the sum and the average of intervals. The latter is DuckDB's.
    is_span = what in {ResultType.SUM, ResultType.AVERAGE} and kind == YEAR_TO_MONTH
    return is_number or is_span or (what is ResultType.AVERAGE and kind == DAY_TO_SECOND)


def is_ordered_by_duckdb(kind: DataType) -> bool:
    """Return whether DuckDB sorts the values of a type as Spark does."""
    return kind in {*_COMPARED, *FINE_MOMENTS, VOID, YEAR_TO_MONTH} or decimal_of(kind) is not None


def is_widened_by_duckdb(source: DataType, to: DataType) -> bool:
    """Return whether DuckDB casts every value of a type to another type as Spark does."""
    numbers = (*INTEGRALS, FLOAT, DOUBLE)
    if source in numbers and to in numbers:
        return to not in INTEGRALS or source in INTEGRALS
    return source == VOID or bool((source in INTEGRALS or decimal_of(source)) and decimal_of(to))


def problem_of_pair(
    name: str, kinds: Sequence[DataType], session: SqlSession, *, is_put_together: bool
) -> str | None:
    """Return the reason why DuckDB would join two columns by name differently from Spark, or None.

    Args:
        name: the name of the columns.
        kinds: the types of the columns.
        session: the SQL settings, such as the time zone.
        is_put_together: whether the join returns one column for both.
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
    """Return whether DuckDB tests values of two types for equality as Spark does."""
    if kinds[0] == kinds[1] and not isinstance(kinds[0], PrimitiveType):
        return True
    schema = StructType([Field(name, kind) for name, kind in zip("ab", kinds, strict=True)])
    parsed = nodes.Comparison("=", nodes.Column(("a",)), nodes.Column(("b",)))
    try:
        return is_same_by_duckdb(parsed, resolve(parsed, schema, session), schema)
    except DeltaError:
        return False


def _is_plain(parsed: Expression) -> bool:
    """Return whether an expression as written contains only constants, columns and operators."""
    return all(isinstance(one, _PLAIN) and not _is_lost(one) for one in walk(parsed))


def _is_lost(node: Expression) -> bool:
    """Return whether Spark casts a constant in the expression to a type, but DuckDB would not."""
    if isinstance(node, nodes.Arithmetic):
        sides = (node.left, node.right)
        return any(isinstance(one, Literal) and isinstance(one.value, str | None) for one in sides)
    return isinstance(node, Literal) and node.type == FLOAT


# Type of a column → the strings that DuckDB converts to this type, in a comparison with the column,
# with the same result as Spark's conversion. Other strings may be rounded, or be an error.
_USUAL_STRINGS: Final[Mapping[DataType, re.Pattern[str]]] = {
    **{
        kind: re.compile(rf"-?[0-9]{{1,{digits}}}")
        for kind, digits in zip(INTEGRALS, (2, 4, 9, 18), strict=True)
    },
    DOUBLE: re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?"),
    BOOLEAN: re.compile("true|false"),
    DATE: re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    **dict.fromkeys(
        (TIMESTAMP, TIMESTAMP_NTZ),
        re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?"),
    ),
}


def _has_usual_strings(parsed: Expression, resolved: Expression, schema: StructType) -> bool:
    """Return whether DuckDB converts the strings of comparisons to other types as Spark does."""
    written, found = _compared(parsed), _compared(resolved)
    if len(written) != len(found):
        return False
    for sides, typed in zip(written, found, strict=True):
        strings = [one.value for one in sides if isinstance(one, Literal) and _is_string(one)]
        kinds = {
            type_of(_without_casts(other), schema)
            for one, other in zip(sides, typed, strict=True)
            if not _is_string(one)
        } - {STRING}
        usual = [_USUAL_STRINGS.get(kind) for kind in kinds]
        if strings and not all(
            pattern is not None and pattern.fullmatch(text) for pattern in usual for text in strings
        ):
            return False
    return True


def _compared(node: Expression) -> list[tuple[Expression, ...]]:
    """Return the operands of each comparison in an expression."""
    found: list[tuple[Expression, ...]] = []
    for one in walk(node):
        if isinstance(one, nodes.Comparison):
            found.append((one.left, one.right))
        elif isinstance(one, nodes.In):
            found.append((one.operand, *one.options))
    return found


def _is_string(node: Expression) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, str) and node.type is None


def _without_casts(node: Expression) -> Expression:
    while isinstance(node, nodes.Cast):
        node = node.operand
    return node


def _means_the_same(resolved: Expression, schema: StructType) -> bool:
    """Return whether DuckDB and Spark compute the same result for a resolved expression."""
    match resolved:
        case nodes.Column():
            return True
        case Literal(type=kind) if kind == YEAR_TO_MONTH:
            return False  # DuckDB's intervals of months may also contain days
        case Literal():
            # If a date or timestamp is stored as a number, DuckDB formats its year differently from
            # Spark.
            is_whole = isinstance(resolved.value, int) and not resolved.is_far_moment
            is_small = is_whole and abs(resolved.value) < _TOO_LARGE
            return is_small or isinstance(resolved.value, _NATIVE_CONSTANTS)
        case nodes.Comparison():
            sides = resolved.left, resolved.right
            return not has_moved_constant(resolved, schema) and _are_compared(sides, schema)
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
            return _is_added(resolved, schema)
        case _:
            return False


def is_zero(node: Expression) -> bool:
    """Return whether an operand is the constant 0, or NULL."""
    return isinstance(node, Literal) and not node.value


def has_moved_constant(node: nodes.Comparison, schema: StructType) -> bool:
    """Return whether DuckDB may move a constant to the other side of a comparison of integers.

    `a * 4 > 0` becomes `a > 0`, which does not overflow.
    """
    sides = (node.left, node.right)
    is_whole = all(type_of(one, schema) in INTEGRALS for one in sides)
    return is_whole and any(map(_is_sum, sides)) and not all(map(columns, sides))


def _is_sum(node: Expression) -> bool:
    while isinstance(node, nodes.Cast):
        node = node.operand
    return isinstance(node, nodes.Arithmetic) and node.operator in {"+", "-", "*"}


def _is_added(resolved: nodes.Arithmetic, schema: StructType) -> bool:
    sides = (resolved.left, resolved.right)
    if any(map(is_zero, sides)):
        return False  # DuckDB does not evaluate what is multiplied by zero
    return resolved.operator in {"+", "-", "*"} and all(
        type_of(one, schema) in _ADDED and _is_value(one, schema) for one in sides
    )


def _is_value(node: Expression, schema: StructType) -> bool:
    """Return whether an operand has the same type in DuckDB as in Spark."""
    side = _widened(node, schema)
    return type_of(side, schema) not in {FLOAT, VOID} and _means_the_same(side, schema)


def _are_compared(sides: Sequence[Expression], schema: StructType) -> bool:
    plain = [_widened(one, schema) for one in sides]
    kinds = [type_of(one, schema) for one in plain]
    if FINE_MOMENTS.intersection(kinds) and (
        len(set(kinds)) > 1 or not all(isinstance(one, nodes.Column) for one in plain)
    ):
        return False  # DuckDB would cast a value to another unit of time
    if FLOAT in kinds and not all(map(_is_compared_with_float, plain, kinds)):
        return False
    return all(
        isinstance(side, nodes.Column | Literal | nodes.Arithmetic)
        and is_ordered_by_duckdb(one)
        and _means_the_same(side, schema)
        for side, one in zip(plain, kinds, strict=True)
    )


def _is_compared_with_float(side: Expression, kind: DataType) -> bool:
    """Return whether DuckDB compares an operand with a float as Spark does.

    DuckDB casts whole numbers and decimals to float, which loses digits. Spark casts both sides to
    double.
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
    """Return the operand of a lossless cast that DuckDB adds itself; other nodes unchanged."""
    if not isinstance(node, nodes.Cast):
        return node
    source, to = type_of(node.operand, schema), node.to
    numbers = (*INTEGRALS, DOUBLE)
    if source in numbers and to in numbers:
        return node.operand if numbers.index(source) <= numbers.index(to) else node
    is_exact = (source in INTEGRALS or decimal_of(source)) and (decimal_of(to) or to == DOUBLE)
    is_other = (source, to) in {(DATE, TIMESTAMP), (DATE, TIMESTAMP_NTZ), (FLOAT, DOUBLE)}
    return node.operand if is_exact or is_other or source == VOID else node


# --- names of types in DuckDB and in tables, and conversions between them


MAX_PRECISION: Final = 38
_TYPES: Final[dict[DataType, str]] = {
    STRING: "VARCHAR", BYTE: "TINYINT", SHORT: "SMALLINT", INTEGER: "INTEGER", LONG: "BIGINT",
    FLOAT: "FLOAT", DOUBLE: "DOUBLE", BOOLEAN: "BOOLEAN", BINARY: "BLOB", DATE: "DATE",
    TIMESTAMP: "TIMESTAMP WITH TIME ZONE", TIMESTAMP_NTZ: "TIMESTAMP", VOID: "INTEGER",
    TIMESTAMP_NANOS: "TIMESTAMPTZ_NS", TIMESTAMP_NANOS_NTZ: "TIMESTAMP_NS",
    DAY_TO_SECOND: "INTERVAL",
}  # fmt: skip
# A struct represents months, because an interval of DuckDB combines months, days and microseconds.
MONTHS_TEXT: Final = f'STRUCT("{NAMED_MONTHS.field(0).name}" INTEGER)'
# The names of types of constants in DuckDB → the names of the types of their values.
_CONSTANTS: Final = {"INTEGER_LITERAL": "INTEGER", "STRING_LITERAL": "VARCHAR"}
_INTERVALS: Final[dict[str, DataType]] = {"INTERVAL": DAY_TO_SECOND, MONTHS_TEXT: YEAR_TO_MONTH}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


def decimal_of(kind: DataType) -> tuple[int, int] | None:
    """Return the precision and the scale of a decimal type; None for other types."""
    found = _DECIMAL.fullmatch(str(getattr(kind, "type", "")))
    return (int(found[1]), int(found[2])) if found else None


def as_type_of(column: Any, kind: pa.DataType) -> Any:
    """Return a column as one array of a given type."""
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
    """Return the type of a table that corresponds to a type of DuckDB.

    Args:
        connection: the connection to DuckDB.
        text: the type, in DuckDB's notation.
        shown: the query, for errors.
        fine: whether nanoseconds are preserved. If not, timestamps have microseconds.
    """
    if text == '"NULL"':
        return VOID
    if text in _INTERVALS:
        return _INTERVALS[text]
    try:
        return from_arrow_type(_arrow(connection, _CONSTANTS.get(text, text)), fine=fine)
    except DeltaError as error:
        raise InvalidInputError(f"cannot run {as_written(shown)!r}: {error}") from error


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
    """Return the type of a column in DuckDB's notation. A column of months is a struct."""
    return MONTHS_TEXT if kind == YEAR_TO_MONTH else type_text(kind)


@lru_cache(maxsize=512)
def type_text(kind: DataType) -> str:
    """Return a type in DuckDB's notation."""
    match kind:
        case ArrayType():
            return f"{type_text(kind.element_type)}[]"
        case MapType():
            return f"MAP({type_text(kind.key_type)}, {type_text(kind.value_type)})"
        case StructType():
            inner = (f"{quoted_name(one.name)} {type_text(one.type)}" for one in kind)
            return f"STRUCT({', '.join(inner)})"
        case _:
            decimal = decimal_of(kind)
            if decimal is not None:
                return f"DECIMAL{decimal}"
            if kind not in _TYPES:
                raise InvalidInputError(f"a query cannot return values of the type {kind}")
            return _TYPES[kind]


def sort_key(text: str, kind: DataType, depth: int = 0) -> str:
    """Return SQL that DuckDB sorts as Spark sorts values of a type: NULL first at every depth.

    Args:
        text: the SQL of the value.
        kind: its type.
        depth: the number of arrays around the value.

    Raises:
        InvalidInputError: values of the type have no order.
    """
    match kind:
        case MapType():
            raise InvalidInputError(f"cannot sort by values of the type {kind}: maps have no order")
        case StructType() if kind.fields:
            members = []
            for number, field in enumerate(kind):
                value = f"struct_extract({text}, {quoted_string(field.name)})"
                inner = sort_key(value, field.type, depth)
                members.append(f"'p{number}': {value} IS NOT NULL, 'v{number}': {inner}")
            return f"CASE WHEN {text} IS NOT NULL THEN {{{', '.join(members)}}} END"
        case ArrayType():
            one = f"deltalog_item_{depth}"
            inner = sort_key(one, kind.element_type, depth + 1)
            return f"list_transform({text}, lambda {one}: {{'p': {one} IS NOT NULL, 'v': {inner}}})"
        case _:
            return text


def quoted_name(name: str) -> str:
    """Return a name in DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


def quoted_string(value: str) -> str:
    """Return a string literal in DuckDB's SQL."""
    return "'" + value.replace("'", "''") + "'"


def divided_types(text: str) -> list[str]:
    """Split a list of types at the commas that are not inside brackets or quotes."""
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
    """Return the quoted names and the types of the fields of a struct, in DuckDB's notation."""
    inside = text.removeprefix("STRUCT(").removesuffix(")")
    found = []
    for one in divided_types(inside):
        match = _FIELD.fullmatch(one)
        assert match is not None, one  # noqa: S101  # DuckDB creates this text
        name, kind = match.groups()
        found.append((name if name[0] == '"' else f'"{name}"', kind))
    return found


# --- common types of columns in set operations and in VALUES


_NO_COLUMNS: Final = StructType(())
# The time has no effect, because only the types of the results are used.
_ANY_MOMENT: Final = SqlSession(now=datetime(2000, 1, 1, tzinfo=UTC), time_zone="UTC")


def common_type_of_sides(kinds: Sequence[DataType]) -> DataType:
    """Return the common type of two columns in a set operation.

    If two structs have equal field types but different field names, the names of the first side are
    used.

    Raises:
        InvalidInputError: the columns have no common type.
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
        texts: the constants, in Spark's dialect.

    Raises:
        InvalidInputError: a value is not a constant, or the constants have no common type.
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
    """Return the common type, corrected for VALUES: FLOAT and whole numbers become FLOAT."""
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


# --- the parts of a query that a table's scan can apply before DuckDB reads the rows


_SIMPLE: Final = (
    exp.And, exp.Or, exp.Paren, exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between,
    exp.Is, exp.Like, exp.Null, exp.Literal, exp.Column, exp.Identifier, exp.Placeholder, exp.Neg,
)  # fmt: skip
_NANOSECONDS: Final = re.compile(r"\.\d{7}")
# DuckDB itself pushes conditions into a dataset, unless WHERE contains one of these nodes.
_UNKNOWN_TO_DUCKDB: Final = (exp.In, exp.Like)
# The clauses of `SELECT … FROM t LIMIT n`.
_UNCHANGED_ROWS: Final = frozenset({"kind", "expressions", "from_", "limit"})


@dataclass(frozen=True, slots=True)
class TableRead:
    """The rows and columns of a table that a query needs.

    Args:
        where: a condition, in Spark's dialect, that is true for every needed row; None means all
            rows.
        limit: the number of rows that are sufficient; None means all rows.
        columns: the columns that a query with a limit needs; None means all columns.
        looked_into: the names, in lower case, of columns that the query compares, sorts or computes
            with, instead of only returning their values; None means all names.
        named: all names in the query, in lower case; None means that any column may be used.
        renamed: the alias that names all columns of the table by their places, and the number of
            its names; None if there is no such alias.
    """

    where: str | None = None
    limit: int | None = None
    columns: tuple[str, ...] | None = None
    looked_into: frozenset[str] | None = frozenset()
    named: frozenset[str] | None = None
    renamed: tuple[str, int] | None = None

    def predicate(
        self, parameters: Mapping[str, object], names: Collection[str]
    ) -> Expression | None:
        """Return the condition; None if there is none, or if it uses columns that the table lacks.

        Args:
            parameters: the parameters of the query: name → value.
            names: the names of the table's columns.
        """
        if self.where is None:
            return None
        try:
            found = parse_sql(self.where, parameters=parameters, columns=names)
        except InvalidInputError:
            return None  # only DuckDB can evaluate the condition
        own = {name_key(name) for name in names}
        return found if all(name_key(path[0]) in own for path in columns(found)) else None


EVERYTHING: Final = TableRead()


def read_of(node: exp.Table) -> TableRead:
    """Return the rows and columns of a table that the query needs. `node` names the table."""
    select = node.parent_select
    if names := node.alias_column_names:
        # The names in the query are not those of the table.
        return TableRead(renamed=(node.alias, len(names)))
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


def names_looked_into(tree: Expr, nodes: Sequence[Expr]) -> frozenset[str] | None:
    """Return the names of columns that a query compares, sorts or computes with.

    `nodes` contains all nodes of the tree. Columns whose values are only returned, or only tested
    by IS NULL, are excluded. The names are in lower case, and include names of tables. None means
    all names.
    """
    if not isinstance(tree, exp.Select) or tree.args.get("distinct"):
        return None
    if any(
        isinstance(one, exp.Union | exp.Except | exp.Intersect)
        or (isinstance(one, exp.Join) and one.args.get("method"))
        for one in nodes
    ):
        return None  # the query compares whole rows, or columns that it does not name
    if _names_rows(nodes) or any(map(_renames, nodes)):
        return None
    for one in nodes:
        if not isinstance(one, exp.Ordered | exp.Group | exp.Star):
            continue
        parts = one.expressions if isinstance(one, exp.Group) else [one.this]
        is_by_place = any(isinstance(part, exp.Literal) for part in parts)
        is_all = one.args.get("all") or any(part.name.lower() == "all" for part in parts if part)
        is_own = one.parent is tree or isinstance(one.parent, exp.Count)
        if is_by_place or is_all or (isinstance(one, exp.Star) and not is_own):
            return None
    answered = {id(one) for one in tree.expressions}
    identifiers = [one for one in nodes if isinstance(one, exp.Identifier)]
    called = {name_key(one.name) for one in identifiers if id(one.parent) not in answered}
    # GROUP BY, ORDER BY and HAVING may refer to a value by the name of the result column.
    given = {id(_bare(one)) for one in tree.expressions if name_key(one.alias) not in called}
    given |= {
        id(one.this)
        for one in nodes
        if isinstance(one, exp.Is) and isinstance(one.expression, exp.Null)
    }
    return frozenset(name_key(one.name) for one in identifiers if id(one.parent) not in given)


def names_in(nodes: Sequence[Expr]) -> frozenset[str] | None:
    """Return all names in a query, in lower case; None means that any column may be used.

    `nodes` contains all nodes of the query. The result is None for a star, for a table's name in
    place of a column, for an alias that renames a table's columns by their places, and for NATURAL
    joins and PIVOT, which use columns without naming them.
    """
    if any(
        (isinstance(one, exp.Star) and not isinstance(one.parent, exp.Count))
        or (isinstance(one, exp.Join) and one.args.get("method"))
        or isinstance(one, exp.Pivot)
        or _renames(one)
        for one in nodes
    ):
        return None
    if _names_rows(nodes):
        return None
    names = {name_key(one.name) for one in nodes if isinstance(one, exp.Identifier)}
    # A word such as CURRENT_DATE is a column if a table has one of this name.
    return frozenset(names.union(bare_calls(nodes)))


def _names_rows(nodes: Sequence[Expr]) -> bool:
    """Return whether the name of a table is used as a column, which means a whole row in DuckDB."""
    tables = {
        name_key(one.alias_or_name)
        for one in nodes
        if isinstance(one, exp.Table | exp.Subquery | exp.CTE)
    }
    named = (name_key(one.name) for one in nodes if isinstance(one, exp.Column) and not one.table)
    return not tables.isdisjoint(named)


def _renames(node: Expr) -> bool:
    """Return whether a node is a table with an alias for its columns."""
    return isinstance(node, exp.Table) and bool(node.alias_column_names)


def _bare(node: Expr) -> Expr:
    """Return the expression of a result column, without its alias."""
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
                return False  # a cast would truncate nanoseconds, but a literal preserves them
            continue  # for example DATE'2025-01-31'
        if isinstance(one, exp.DataType):
            continue
        if not isinstance(one, _SIMPLE) or (isinstance(one, exp.In) and one.args.get("query")):
            return False
        if isinstance(one, exp.Like) and "\\" in str(getattr(one.expression, "this", "\\")):
            return False
    return True


def _is_about(node: Expr, alias: str, *, is_alone: bool) -> bool:
    """Return whether all columns are columns of the table `alias`.

    If the table is not alone, an unqualified column may belong to another table.
    """
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
    """Return the rows and columns that a query of the form `SELECT a, b FROM t LIMIT n` needs."""
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
