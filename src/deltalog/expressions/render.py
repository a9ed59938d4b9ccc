"""Rendering expressions as Spark SQL.

Places brackets and quotes. `sql` parses the result to the same tree.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.argument_types import show_by
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
    name_in_sql,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    _Piece = str | tuple[Expression, int]
    """A string, or a child node with the minimum precedence at which it needs no brackets."""

    _Rendered = tuple[list[_Piece], int]
    """The pieces of a rendered node, and the precedence of its operator."""

# Precedence of operators, from the lowest. A child with a lower precedence is put in brackets.
(
    _OR, _AND, _NOT, _PREDICATE, _COMPARISON, _BIT_OR, _BIT_XOR, _BIT_AND, _SUM, _PRODUCT, _UNARY,
    _PRIMARY,
) = range(1, 13)  # fmt: skip
_BIT_OPERATORS: Final = {"|": _BIT_OR, "^": _BIT_XOR, "&": _BIT_AND}
_SUFFIX: Final = re.compile(r"^(-?[\d.]+(?:E-?\d+)?)(?:BD|E0|[A-Z])$", re.ASCII)
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
# The words that need backticks as column names, in addition to words that begin a literal.
_RESERVED: Final = frozenset(
    {
        "and", "or", "not", "in", "is", "null", "true", "false", "like", "ilike", "rlike",
        "regexp", "between", "case", "when", "then", "else", "end", "cast", "try_cast", "escape",
        "interval", "div", "from", "distinct", "current_date", "current_timestamp", "extract",
        "select", "exists", "collate", "localtimestamp",
    }
)  # fmt: skip


def to_sql(expression: Expression) -> str:
    """Return the expression as one line of Spark SQL; `parse_sql` parses it to the same tree."""
    return _rendered(expression, _RENDERERS)


def shown_sql(expression: Expression) -> str:
    """Return the expression for people, in messages.

    As `to_sql`, but numbers have no suffix for their type, and long constants are cut.
    """
    return _rendered(expression, _RENDERERS | {Literal: _plain_literal})


show_by(Expression, shown_sql)


def _rendered(expression: Expression, renderers: Mapping[type[Expression], Any]) -> str:
    texts: list[str] = []
    waiting: list[_Piece] = [(expression, 0)]
    while waiting:
        piece = waiting.pop()
        if isinstance(piece, str):
            texts.append(piece)
            continue
        node, least = piece
        pieces, binding = renderers[type(node)](node)
        waiting += reversed(pieces if binding >= least else ["(", *pieces, ")"])
    return "".join(texts)


def quote_name(name: str) -> str:
    """Return a name as an identifier, in backticks if it is not plain or is a keyword."""
    is_plain = _PLAIN_NAME.fullmatch(name) and name.lower() not in _RESERVED
    if is_plain and not begins_literal(name):
        return name
    return "`" + name.replace("`", "``") + "`"


def begins_literal(word: str) -> bool:
    """Whether a word begins a typed literal, such as `DATE'2024-01-31'`."""
    row = primitive_in_sql(word)
    return row is not None and row.literal is not None


def begins_number(word: str) -> bool:
    """Whether a word is a numeric type, as in deltalake's literal `int'10'`."""
    row = primitive_in_sql(word)
    return row is not None and row.family in {Family.INTEGRAL, Family.FLOATING}


def quote_text(text: str) -> str:
    """Return a string literal in single quotes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0") + "'"


def type_name(data_type: DataType) -> str:
    """Return a type in SQL, such as `ARRAY<BIGINT>`; collations are omitted."""
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
    """Return a type as Spark's `typeof` does, such as `array<bigint>`, without collations."""
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
    """Return a field's type as Spark does, with collations: `string collate UTF8_LCASE`."""

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


def _listed(nodes: Iterable[Expression], separator: str, least: int = 0) -> list[_Piece]:
    found: list[_Piece] = []
    for node in nodes:
        found += [separator, (node, least)]
    return found[1:]


def _chain(word: str, binding: int, operands: tuple[Expression, ...]) -> _Rendered:
    if len(operands) < 2:
        # SQL has no AND or OR of fewer than two operands. The rendered SQL has the same value, but
        # is parsed as another tree.
        return (
            [(operands[0], binding + 1)] if operands else [str(word == "AND").upper()]
        ), _PRIMARY
    return _listed(operands, f" {word} ", binding + 1), binding


def _comparison(node: Comparison) -> _Rendered:
    return [(node.left, _BIT_OR), f" {node.operator} ", (node.right, _BIT_OR)], _COMPARISON


def _not(node: Not) -> _Rendered:
    inner = node.operand
    if isinstance(inner, IsNull):
        return [(inner.operand, _COMPARISON), " IS NOT NULL"], _PREDICATE
    if isinstance(inner, In):
        return _in(inner, "NOT ")
    if isinstance(inner, Like):
        return _like(inner, "NOT ")
    return ["NOT ", (inner, _NOT)], _NOT


def _is_null(node: IsNull) -> _Rendered:
    return [(node.operand, _COMPARISON), " IS NULL"], _PREDICATE


def _in(node: In, negation: str = "") -> _Rendered:
    options = _listed(node.options, ", ")
    return [(node.operand, _COMPARISON), f" {negation}IN (", *options, ")"], _PREDICATE


def _like(node: Like, negation: str = "") -> _Rendered:
    word = "ILIKE" if node.ignore_case else "LIKE"
    escape = "" if node.escape == "\\" else f" ESCAPE {quote_text(node.escape)}"
    operand, pattern = (node.operand, _COMPARISON), (node.pattern, _BIT_OR)
    return [operand, f" {negation}{word} ", pattern, escape], _PREDICATE


def _arithmetic(node: Arithmetic) -> _Rendered:
    binding = _SUM if node.operator in "+-" else _PRODUCT
    return [(node.left, binding), f" {node.operator} ", (node.right, binding + 1)], binding


def _cast(node: Cast) -> _Rendered:
    word = "TRY_CAST" if node.is_try else "CAST"
    return [f"{word}(", (node.operand, 0), f" AS {type_name(node.to)})"], _PRIMARY


def _collate(node: Collate) -> _Rendered:
    name = quote_name(name_in_sql(node.collation))
    return [(node.operand, _PRIMARY), f" COLLATE {name}"], _PRIMARY


def _case(node: Case) -> _Rendered:
    parts: list[_Piece] = ["CASE "]
    for condition, value in node.branches:
        parts += ["WHEN ", (condition, 0), " THEN ", (value, 0), " "]
    if node.otherwise is not None:
        parts += ["ELSE ", (node.otherwise, 0), " "]
    return [*parts, "END"], _PRIMARY


def _call(node: Call) -> _Rendered:
    arguments = node.arguments
    binding = _BIT_OPERATORS.get(node.function)
    if binding is not None:
        left, right = arguments
        return [(left, binding), f" {node.function} ", (right, binding + 1)], binding
    if node.function == "~":
        return ["~", (arguments[0], _UNARY)], _UNARY
    if node.function == "[]":
        return [(arguments[0], _PRIMARY), "[", (arguments[1], 0), "]"], _PRIMARY
    if node.function == "interval":
        pairs = zip(arguments[::2], arguments[1::2], strict=True)
        shown = [f"'{_plain(amount)}' {_plain(unit)}" for amount, unit in pairs]
        return [f"INTERVAL {' '.join(shown)}"], _PRIMARY
    listed = _listed(arguments, ", ")
    if node.function in _UNIT_FIRST and arguments and _is_unit(arguments[0]):
        listed[0] = _plain(arguments[0])
    return [f"{quote_name(node.function)}(", *listed, ")"], _PRIMARY


def _lambda(node: Lambda) -> _Rendered:
    names = ", ".join(map(quote_name, node.parameters))
    if len(node.parameters) > 1:
        names = f"({names})"
    return [f"{names} -> ", (node.body, 0)], _PRIMARY


def _plain(node: Expression) -> str:
    return str(node.value) if isinstance(node, Literal) else to_sql(node)


def _is_unit(node: Expression) -> bool:
    return isinstance(node, Literal) and node.value in UNITS


def _literal(node: Literal) -> _Rendered:
    text = _constant(node.value, node.type)
    if node.nanos:
        text = _with_nanos(text, node.nanos)
    return [text], _UNARY if text.startswith("-") else _PRIMARY


_MOST_SHOWN: Final = 200
"""The most characters of a constant in a message."""


def _plain_literal(node: Literal) -> _Rendered:
    pieces, binding = _literal(node)
    texts = (_SUFFIX.sub(r"\1", str(one)) for one in pieces)
    return [f"{one[:_MOST_SHOWN]}…" if len(one) > _MOST_SHOWN else one for one in texts], binding


def _with_nanos(text: str, nanos: int) -> str:
    """Extend the fraction of a quoted timestamp to nine digits; a zone may follow the fraction."""
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


_RENDERERS: Final[dict[type[Expression], Callable[[Any], _Rendered]]] = {
    Column: lambda node: ([".".join(map(quote_name, node.path))], _PRIMARY),
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
    Variable: lambda node: ([quote_name(node.name)], _PRIMARY),
}
