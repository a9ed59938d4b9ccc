"""The SQL of a table's rules: constraints, invariants and generated columns.

This module handles the SQL of delta-rs, whose engine prints rules in another dialect: quoted names
in double quotes (`"homeTeam"`), `get_field(s, 'a')` for `s.a`, and
`arrow_cast('2024-01-01T00:00:00', 'Timestamp(Microsecond, None)')` for a timestamp.

Protocol: CHECK Constraints, Column Invariants, Generated Columns
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError
from deltalog.expressions import columns, evaluate, parse_sql, resolve, to_sql
from deltalog.expressions.nodes import And, Call, Cast, Column, Literal, Not, Or
from deltalog.expressions.sql import with_backticks
from deltalog.expressions.trees import children, rebuild, walk
from deltalog.schema.columns import find_field
from deltalog.schema.types import STRING, TIMESTAMP, TIMESTAMP_NTZ, PrimitiveType, StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deltalog.expressions import Expression
    from deltalog.schema.types import DataType

_MOMENT_TYPE: Final = re.compile(
    r'Timestamp\((?:Second|Millisecond|Microsecond|Nanosecond), (None|Some\("(?:UTC|\+00:00)"\))\)'
)
# Matches a timestamp. The group lacks the zeros after the digits of the microseconds.
_MOMENT: Final = re.compile(r"([^.]*(?:\.\d{1,6})?)0*")
_CONNECTIVES: Final = (And, Or, Not)
_NO_COLUMNS: Final = StructType([])
# A table with one row. It is not made from Python values, for which pyarrow would import pandas.
_ONE_ROW: Final = pa.table({"": pa.nulls(1)})


def parse_rule(text: str, schema: StructType) -> Expression:
    """Parse a rule; return the unresolved expression.

    `"a"` is a string in Spark and a column in delta-rs. It is parsed as a column if the table has a
    column `a`, and if no condition compares `"a"` with a column that could contain the string 'a'.
    Otherwise it is parsed as a string.

    Args:
        text: the SQL in the log.
        schema: schema of the table.

    Raises:
        InvalidInputError: the SQL is not an expression, or both interpretations are possible.
    """
    spelled = with_backticks(text, schema.names)
    if spelled != text and _means_columns(text, spelled, schema):
        text = spelled
    return _in_our_words(parse_sql(text, columns=schema.names))


def is_of_delta_rs(text: str, schema: StructType) -> bool:
    """Return whether a rule is in the SQL of delta-rs, so that it is wrong or invalid in Spark.

    Args:
        text: the SQL in the log.
        schema: schema of the table.
    """
    try:
        as_spark = parse_sql(text)
    except InvalidInputError:
        as_spark = None
    if as_spark is not None and any(
        isinstance(node, Call) and node.function.lower() in _FUNCTIONS for node in walk(as_spark)
    ):
        return True
    try:
        meant = parse_rule(text, schema)
    except InvalidInputError:  # the SQL cannot be interpreted
        return False
    return as_spark is None or repr(meant) != repr(as_spark)


def in_words_of_spark(text: str, schema: StructType) -> str | None:
    """Return a rule of delta-rs in Spark's SQL; None if it cannot be translated.

    Args:
        text: the SQL in the log.
        schema: schema of the table.
    """
    try:
        found = to_sql(parse_rule(text, schema))
    except InvalidInputError:
        return None
    return None if is_of_delta_rs(found, schema) else found


def _means_columns(text: str, spelled: str, schema: StructType) -> bool:
    """Return whether double quotes can only enclose names."""
    as_names = parse_sql(spelled)
    try:
        as_texts = parse_sql(text)
    except InvalidInputError:  # such as `"s"."a"`
        return True
    # Compare the `repr` of expressions, because `==` between expressions builds a condition.
    known = {repr(one) for one in _conditions(as_names)}
    return not any(
        repr(one) not in known and _may_mean_texts(one, schema) for one in _conditions(as_texts)
    )


def _conditions(node: Expression) -> Iterator[Expression]:
    """Yield the operands of AND, OR and NOT."""
    if isinstance(node, _CONNECTIVES):
        for part in children(node):
            yield from _conditions(part)
    else:
        yield node


def _may_mean_texts(condition: Expression, schema: StructType) -> bool:
    """Return whether column names in a condition may be meant as string literals."""
    others = columns(condition)
    if not others:
        return False
    if any(isinstance(node, Call | Cast) for node in walk(condition)):
        return True
    types = [_type_at(schema, path) for path in others]
    texts = [
        node.value
        for node in walk(condition)
        if isinstance(node, Literal) and isinstance(node.value, str)
    ]
    known = {name_key(name) for name in schema.names}
    names = [one for one in texts if name_key(one) in known]
    return not set(names) <= set(schema.names) or any(
        _is_value(name, kind) for name in names for kind in types
    )


def _type_at(schema: StructType, path: tuple[str, ...]) -> DataType | None:
    try:
        return find_field(schema, path).type
    except InvalidInputError:
        return None


def _is_value(text: str, kind: DataType | None) -> bool:
    """Return whether a string may be a value of a type; true if that is unknown."""
    if not isinstance(kind, PrimitiveType) or kind == STRING:
        return True
    try:
        evaluate(resolve(Cast(Literal(text), kind), _NO_COLUMNS), _ONE_ROW)
    except InvalidInputError:
        return False
    return True


def _in_our_words(node: Expression) -> Expression:
    """Replace functions of delta-rs by equivalent expressions of deltalog."""
    node = rebuild(node, _in_our_words)
    if not isinstance(node, Call) or len(node.arguments) != 2:
        return node
    first, second = node.arguments
    meaning = _FUNCTIONS.get(node.function.lower())
    if meaning is None or not isinstance(second, Literal) or not isinstance(second.value, str):
        return node
    found = meaning(first, second.value)
    return node if found is None else found


def _field(source: Expression, name: str) -> Expression:
    if isinstance(source, Column):
        return Column((*source.path, name))
    return Call("[]", (source, Literal(name)))


def _moment(source: Expression, kind: str) -> Expression | None:
    """Return a timestamp; None for other types and for values out of range."""
    found = _MOMENT_TYPE.fullmatch(kind)
    if found is None or not isinstance(source, Literal) or not isinstance(source.value, str):
        return None
    text = _MOMENT.fullmatch(source.value)
    if text is None:
        return None
    if found[1] == "None":
        return Cast(Literal(text[1]), TIMESTAMP_NTZ)
    return Cast(Literal(f"{text[1]}Z"), TIMESTAMP)


_FUNCTIONS: Final[dict[str, Callable[[Expression, str], Expression | None]]] = {
    "get_field": _field,
    "arrow_cast": _moment,
}
