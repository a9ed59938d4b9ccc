"""Expressions as Spark SQL.

Owns where brackets and quotes stand. `sql` parses the result to the same tree.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from deltalog.expressions import coercion
from deltalog.expressions.nodes import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Collate,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Lambda,
    Like,
    Literal,
    Not,
    Or,
    Variable,
)
from deltalog.schema.collation_names import name_in_sql
from deltalog.schema.collations import inner_collations
from deltalog.schema.primitives import Family, primitive_in_sql, worded_literal
from deltalog.schema.primitives.numbers import java_word
from deltalog.schema.types import (
    DAY_TO_SECOND,
    DOUBLE,
    VOID,
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# How tightly an operator binds; a child that binds less tightly stands in brackets.
(
    _OR, _AND, _NOT, _PREDICATE, _COMPARISON, _BIT_OR, _BIT_XOR, _BIT_AND, _SUM, _PRODUCT, _UNARY,
    _PRIMARY,
) = range(1, 13)  # fmt: skip
_BIT_OPERATORS: Final = {"|": _BIT_OR, "^": _BIT_XOR, "&": _BIT_AND}
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
UNITS: Final = (
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MILLISECOND",
    "MICROSECOND",
)
_UNIT_FIRST: Final = frozenset({"timestampadd", "timestampdiff", "dateadd", "datediff"})
# Words that need backticks as a column name in our grammar, besides those that begin a literal.
_RESERVED: Final = frozenset(
    {
        "and", "or", "not", "in", "is", "null", "true", "false", "like", "ilike", "rlike",
        "regexp", "between", "case", "when", "then", "else", "end", "cast", "try_cast", "escape",
        "interval", "div", "from", "distinct", "current_date", "current_timestamp", "extract",
        "select", "exists", "collate",
    }
)  # fmt: skip


def to_sql(expression: Expression) -> str:
    """The expression as one line of Spark SQL; `parse_sql` parses it to the same tree."""
    return _render(expression)[0]


def quote_name(name: str) -> str:
    """A name as an identifier, in backticks if it is not plain or is a keyword."""
    is_plain = _PLAIN_NAME.fullmatch(name) and name.lower() not in _RESERVED
    if is_plain and not begins_literal(name):
        return name
    return "`" + name.replace("`", "``") + "`"


def begins_literal(word: str) -> bool:
    """Whether a word begins a typed literal, such as `DATE'2024-01-31'`."""
    row = primitive_in_sql(word)
    return row is not None and row.literal is not None


def begins_number(word: str) -> bool:
    """Whether a word is a type of numbers, as in `int'10'`, which deltalake has and Spark lacks."""
    row = primitive_in_sql(word)
    return row is not None and row.family in {Family.INTEGRAL, Family.FLOATING}


def quote_text(text: str) -> str:
    """A string literal in single quotes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0") + "'"


def type_name(data_type: DataType) -> str:
    """A type in SQL, such as `ARRAY<BIGINT>`; without collations, which belong to fields."""
    match data_type:
        case ArrayType():
            return f"ARRAY<{type_name(data_type.element_type)}>"
        case MapType():
            return f"MAP<{type_name(data_type.key_type)}, {type_name(data_type.value_type)}>"
        case StructType():
            inner = ", ".join(
                f"{quote_name(field.name)}: {type_name(field.type)}" for field in data_type
            )
            return f"STRUCT<{inner}>"
        case PrimitiveType():
            row = data_type.primitive
            if row.name_in_sql is not None:
                return row.name_in_sql(data_type.type)
            return data_type.type.replace(row.name, row.sql_words[0], 1)
        case _:
            return str(data_type).upper()


def simple_name(data_type: DataType) -> str:
    """A type as Spark's `typeof` names it, such as `array<bigint>`; without collations."""
    match data_type:
        case ArrayType():
            return f"array<{simple_name(data_type.element_type)}>"
        case MapType():
            return f"map<{simple_name(data_type.key_type)},{simple_name(data_type.value_type)}>"
        case StructType():
            inner = ",".join(f"{field.name}:{simple_name(field.type)}" for field in data_type)
            return f"struct<{inner}>"
        case _:
            return type_name(data_type).lower()


def simple_name_of(field: Field) -> str:
    """The type of a field as Spark names it, with collations: `string collate UTF8_LCASE`."""

    def name(data_type: DataType, path: tuple[str, ...]) -> str:
        match data_type:
            case ArrayType():
                return f"array<{name(data_type.element_type, (*path, 'element'))}>"
            case MapType():
                key = name(data_type.key_type, (*path, "key"))
                return f"map<{key},{name(data_type.value_type, (*path, 'value'))}>"
            case StructType():
                inner = ",".join(f"{part.name}:{simple_name_of(part)}" for part in data_type)
                return f"struct<{inner}>"
            case _:
                collation = collations.get(path)
                behind = "" if collation is None else f" collate {name_in_sql(collation)}"
                return simple_name(data_type) + behind

    collations = inner_collations(field)
    return name(field.type, ())


def _render(expression: Expression) -> tuple[str, int]:
    return _RENDERERS[type(expression)](expression)


def _child(expression: Expression, binding: int) -> str:
    text, bound = _render(expression)
    return text if bound >= binding else f"({text})"


def _chain(word: str, binding: int, operands: tuple[Expression, ...]) -> tuple[str, int]:
    if len(operands) < 2:
        # No SQL is parsed to AND or OR of fewer than two operands; its value is all that counts.
        return _render(operands[0]) if operands else (str(word == "AND").upper(), _PRIMARY)
    return f" {word} ".join(_child(operand, binding + 1) for operand in operands), binding


def _comparison(node: Comparison) -> tuple[str, int]:
    left, right = _child(node.left, _BIT_OR), _child(node.right, _BIT_OR)
    return f"{left} {node.operator} {right}", _COMPARISON


def _not(node: Not) -> tuple[str, int]:
    inner = node.operand
    if isinstance(inner, IsNull):
        return f"{_child(inner.operand, _COMPARISON)} IS NOT NULL", _PREDICATE
    if isinstance(inner, In):
        return _in(inner, "NOT ")
    if isinstance(inner, Like):
        return _like(inner, "NOT ")
    return f"NOT {_child(inner, _NOT)}", _NOT


def _is_null(node: IsNull) -> tuple[str, int]:
    return f"{_child(node.operand, _COMPARISON)} IS NULL", _PREDICATE


def _in(node: In, negation: str = "") -> tuple[str, int]:
    options = ", ".join(to_sql(option) for option in node.options)
    return f"{_child(node.operand, _COMPARISON)} {negation}IN ({options})", _PREDICATE


def _like(node: Like, negation: str = "") -> tuple[str, int]:
    word = "ILIKE" if node.ignore_case else "LIKE"
    escape = "" if node.escape == "\\" else f" ESCAPE {quote_text(node.escape)}"
    operand, pattern = _child(node.operand, _COMPARISON), _child(node.pattern, _BIT_OR)
    return f"{operand} {negation}{word} {pattern}{escape}", _PREDICATE


def _arithmetic(node: Arithmetic) -> tuple[str, int]:
    binding = _SUM if node.operator in "+-" else _PRODUCT
    left, right = _child(node.left, binding), _child(node.right, binding + 1)
    return f"{left} {node.operator} {right}", binding


def _cast(node: Cast) -> tuple[str, int]:
    word = "TRY_CAST" if node.is_try else "CAST"
    return f"{word}({to_sql(node.operand)} AS {type_name(node.to)})", _PRIMARY


def _collate(node: Collate) -> tuple[str, int]:
    name = quote_name(name_in_sql(node.collation))
    return f"{_child(node.operand, _PRIMARY)} COLLATE {name}", _PRIMARY


def _case(node: Case) -> tuple[str, int]:
    parts = [f"WHEN {to_sql(condition)} THEN {to_sql(value)}" for condition, value in node.branches]
    if node.otherwise is not None:
        parts.append(f"ELSE {to_sql(node.otherwise)}")
    return f"CASE {' '.join(parts)} END", _PRIMARY


def _call(node: Call) -> tuple[str, int]:
    arguments = node.arguments
    binding = _BIT_OPERATORS.get(node.function)
    if binding is not None:
        left, right = _child(arguments[0], binding), _child(arguments[1], binding + 1)
        return f"{left} {node.function} {right}", binding
    if node.function == "~":
        return f"~{_child(arguments[0], _UNARY)}", _UNARY
    if node.function == "[]":
        return f"{_child(arguments[0], _PRIMARY)}[{to_sql(arguments[1])}]", _PRIMARY
    if node.function == "interval":
        pairs = zip(arguments[::2], arguments[1::2], strict=True)
        shown = [f"'{_plain(amount)}' {_plain(unit)}" for amount, unit in pairs]
        return f"INTERVAL {' '.join(shown)}", _PRIMARY
    shown = [to_sql(argument) for argument in arguments]
    if node.function in _UNIT_FIRST and arguments and _is_unit(arguments[0]):
        shown[0] = shown[0][1:-1]
    return f"{quote_name(node.function)}({', '.join(shown)})", _PRIMARY


def _lambda(node: Lambda) -> tuple[str, int]:
    names = ", ".join(map(quote_name, node.parameters))
    if len(node.parameters) > 1:
        names = f"({names})"
    return f"{names} -> {to_sql(node.body)}", _PRIMARY


def _plain(node: Expression) -> str:
    return str(node.value) if isinstance(node, Literal) else to_sql(node)


def _is_unit(node: Expression) -> bool:
    return isinstance(node, Literal) and node.value in UNITS


def _literal(node: Literal) -> tuple[str, int]:
    text = _constant(node.value, node.type)
    if node.nanos:
        text = _with_nanos(text, node.nanos)
    return text, _UNARY if text.startswith("-") else _PRIMARY


def _with_nanos(text: str, nanos: int) -> str:
    """A moment in quotes with nine digits, before the zone if it has one."""
    moment = text.removesuffix("'").removesuffix("Z")
    zone = text[len(moment) :]
    return f"{moment}{'' if '.' in moment else '.000000'}{nanos:03}{zone}"


def _constant(value: Any, data_type: DataType | None) -> str:
    row = data_type.primitive if isinstance(data_type, PrimitiveType) else None
    if value is not None and row is not None and row.written is not None:
        return row.written(value)
    match value:
        case None:
            return "NULL" if data_type in {None, VOID} else _as_cast("NULL", data_type)
        case dt.timedelta():
            return _constant(value, DAY_TO_SECOND)
        case bool():
            return str(value).upper()
        case int() | float() | Decimal():
            return _number(value, data_type)
        case str():
            return quote_text(value)
        case bytes() | bytearray() | memoryview():
            return f"X'{bytes(value).hex().upper()}'"
        case list() | tuple():
            return f"array({', '.join(_constant(item, None) for item in value)})"
        case dict():
            pairs = (f"{quote_text(str(k))}, {_constant(v, None)}" for k, v in value.items())
            return f"named_struct({', '.join(pairs)})"
        case _:
            found = worded_literal(value)
            return f"{found[0].sql_words[0]}'{found[1]}'" if found else quote_text(str(value))


def _as_cast(text: str, data_type: DataType | None) -> str:
    return text if data_type is None else f"CAST({text} AS {type_name(data_type)})"


def _number(value: float | Decimal, data_type: DataType | None) -> str:
    row = data_type.primitive if isinstance(data_type, PrimitiveType) else None
    if row is not None and row.counted is not None:
        return f"{row.sql_words[0]}'{row.counted(int(value))}'"
    if isinstance(value, float) and (word := java_word(value)) is not None:
        return f"CAST('{word}' AS {type_name(data_type or DOUBLE)})"
    if isinstance(value, float) and data_type in {None, *coercion.FRACTIONALS}:
        if data_type is None:
            mantissa, _, exponent = repr(value).partition("e")
            return f"{mantissa}E{int(exponent or 0)}"
        return f"{value!r}{_suffix(data_type)}"
    if isinstance(value, Decimal):
        text = format(value, "f")
        if data_type is not None:
            return f"{text}BD"
        return text if "." in text else f"{text}."
    return f"{value}{_suffix(data_type)}"


def _suffix(data_type: DataType | None) -> str:
    return data_type.primitive.suffix if isinstance(data_type, PrimitiveType) else ""


_RENDERERS: Final[dict[type[Expression], Callable[[Any], tuple[str, int]]]] = {
    Column: lambda node: (".".join(map(quote_name, node.path)), _PRIMARY),
    Literal: _literal,
    Comparison: _comparison,
    And: lambda node: _chain("AND", _AND, node.operands),
    Or: lambda node: _chain("OR", _OR, node.operands),
    Not: _not,
    IsNull: _is_null,
    In: _in,
    Like: _like,
    Arithmetic: _arithmetic,
    Cast: _cast,
    Collate: _collate,
    Case: _case,
    Call: _call,
    Lambda: _lambda,
    Variable: lambda node: (quote_name(node.name), _PRIMARY),
}
