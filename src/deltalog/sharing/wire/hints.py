"""Predicate hints as expressions: `jsonPredicateHints` (a JSON tree) and `predicateHints` (SQL).

This module contains the syntax of hints and their limits. Hints are not trusted, so they may
contain only comparisons. Functions and patterns are errors, because evaluating them may take
arbitrarily long. After an error, callers ignore the hint: the protocol says that "this is BEST
EFFORT".

Protocol: JSON predicates for Filtering, SQL Expressions for Filtering
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.json import dumps, loads
from deltalog.errors import DeltaError, MalformedMessageError
from deltalog.expressions import Column, Expression, Literal, conjuncts, lit, parse_sql
from deltalog.expressions.nodes import And, Cast, Comparison, In, IsNull, Not, Or
from deltalog.expressions.trees import children
from deltalog.schema.types import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# The limits of a hint. MOST_BYTES and MOST_DEPTH are those of the reference server (requirement
# SHARE-JP-09).
MOST_BYTES: Final = 1 << 20
MOST_DEPTH: Final = 100
MOST_OPERATIONS: Final = 2000
_MOST_SQL_CHARACTERS: Final = 4096

_COMPARISONS: Final = {
    "equal": "=",
    "lessThan": "<",
    "lessThanOrEqual": "<=",
    "greaterThan": ">",
    "greaterThanOrEqual": ">=",
}
_OPERATIONS: Final = {operator: name for name, operator in _COMPARISONS.items()}

# Maps the `valueType` of the protocol to the Delta type.
VALUE_TYPES: Final[Mapping[str, str]] = {
    "bool": "boolean",
    "int": "integer",
    "long": "long",
    "string": "string",
    "date": "date",
    "float": "float",
    "double": "double",
    "timestamp": "timestamp",
}
_TYPE_NAMES: Final = {stored: name for name, stored in VALUE_TYPES.items()} | {
    "byte": "int",
    "short": "int",
}


def parse_json_hint(text: str) -> Expression:
    """Return the condition in a `jsonPredicateHints` string; it is not resolved against a schema.

    Raises:
        MalformedMessageError: the hint is not JSON, too large, nested too deeply, or not a valid
            tree.
    """
    if len(text) > MOST_BYTES:
        raise MalformedMessageError(f"hint: longer than {MOST_BYTES} characters")
    try:
        tree = loads(text)
        _check_size(tree)
        return _condition(tree, 1)
    except (DeltaError, ValueError, TypeError, OverflowError) as error:
        raise MalformedMessageError(f"hint: {error}") from None


def encode_json_hint(predicate: Expression) -> str | None:
    """Return the hint for a resolved condition, or None if no part of it can be a hint.

    Operands of AND that have no JSON form are left out. The hint is then true for more files.
    """
    parts = [node for part in conjuncts(predicate) if (node := _encode(part)) is not None]
    if not parts:
        return None
    tree = parts[0] if len(parts) == 1 else {"op": "and", "children": parts}
    text = dumps(tree).decode()
    return text if len(text) <= MOST_BYTES else None


def parse_sql_hint(text: str) -> Expression:
    """Return the condition in one of the `predicateHints`; it is not resolved against a schema.

    Raises:
        MalformedMessageError: the hint contains anything but comparisons of columns and constants.
    """
    simple = _parse_protocol_sql(text)
    if simple is not None:
        return simple
    if len(text) > _MOST_SQL_CHARACTERS:
        raise MalformedMessageError(f"hint: longer than {_MOST_SQL_CHARACTERS} characters")
    try:
        tree = parse_sql(text)
        _check_comparisons(tree, 1)
    except (DeltaError, ValueError, TypeError, RecursionError) as error:
        raise MalformedMessageError(f"hint: {error}") from None
    return tree


def _check_size(tree: Any) -> None:
    """Raise if a tree has too many operations, because the server evaluates them for every file."""
    pending, count = [tree], 0
    while pending:
        node = pending.pop()
        count += isinstance(node, dict)
        if count > MOST_OPERATIONS:
            raise ValueError(f"more than {MOST_OPERATIONS} operations")
        inner = node.get("children") if isinstance(node, dict) else node
        if isinstance(inner, list):
            pending += inner


def _condition(node: Any, depth: int) -> Expression:
    _check_depth(depth)
    operation, inner = _operation(node)
    # The protocol: "This op should have two children, and both should be leaf ops."
    if operation in _COMPARISONS:
        left, right = _exactly(inner, 2, operation)
        return _comparison(_COMPARISONS[operation], left, right)
    # The protocol: "This op should have only one child, the column op."
    if operation == "isNull":
        (child,) = _exactly(inner, 1, operation)
        return IsNull(_column(child))
    if operation == "not":
        (child,) = _exactly(inner, 1, operation)
        return Not(_condition(child, depth + 1))
    if operation in {"and", "or"}:
        # The protocol: "This op should have at least two children."
        if len(inner) < 2:
            raise ValueError(f"{operation} needs two children or more")
        parts = tuple(_condition(child, depth + 1) for child in inner)
        return And(parts) if operation == "and" else Or(parts)
    raise ValueError(f"unknown op {str(operation)[:40]!r}")


def _check_depth(depth: int) -> None:
    if depth > MOST_DEPTH:
        raise ValueError(f"nested deeper than {MOST_DEPTH}")


def _operation(node: Any) -> tuple[str, Sequence[Any]]:
    if not isinstance(node, dict):
        raise TypeError("expected an object")
    inner = node.get("children") or ()
    if not isinstance(inner, list | tuple):
        raise TypeError("expected a list of children")
    return str(node.get("op")), inner


def _exactly(inner: Sequence[Any], count: int, operation: str) -> Sequence[Any]:
    if len(inner) != count:
        raise ValueError(f"{operation} needs {count} children, found {len(inner)}")
    return inner


def _comparison(operator: str, left: Any, right: Any) -> Expression:
    sides: list[Expression] = []
    for side in (left, right):
        is_literal = _operation(side)[0] == "literal"
        sides.append(_literal(side) if is_literal else _column(side))
    return Comparison(operator, sides[0], sides[1])


def _column(node: Any) -> Column:
    operation, _ = _operation(node)
    name = node.get("name")
    if operation != "column" or not isinstance(name, str) or not name:
        raise ValueError(f"expected a column with a name, found op {operation[:40]!r}")
    _value_type(node)  # required, but ignored: the schema determines the type of the column
    return Column((name,))


def _literal(node: Any) -> Literal:
    value = node.get("value")
    kind = _value_type(node)
    if not isinstance(value, str):
        raise TypeError("expected a string as the value of a literal")
    # The protocol: "The literal's value will be cast to the specified valueType during
    # comparisons". Without this conversion, "9" would be greater than "25".
    return Literal(_VALUES[kind](value), PrimitiveType(VALUE_TYPES[kind]))


def _value_type(node: Any) -> str:
    kind = node.get("valueType")
    if not isinstance(kind, str) or kind not in VALUE_TYPES:
        raise ValueError(f"unknown valueType {str(kind)[:40]!r}")
    return kind


def _boolean(text: str) -> bool:
    if text.strip().lower() not in {"true", "false"}:
        raise ValueError("expected true or false")
    return text.strip().lower() == "true"


def _integer(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text) if len(text) <= 20 else 1 << 64
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError(f"expected a number of {bits} bits")
        return value

    return parse


def _finite_float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError("expected a finite number")
    return value


def _date(text: str) -> date:
    if len(text) != 10:
        raise ValueError("expected a date yyyy-mm-dd")
    return date.fromisoformat(text)


def _timestamp(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("expected a time with its zone")
    return moment.astimezone(UTC)


_VALUES: Final[Mapping[str, Callable[[str], Any]]] = {
    "bool": _boolean,
    "int": _integer(32),
    "long": _integer(64),
    "string": str,
    "date": _date,
    "float": _finite_float,
    "double": _finite_float,
    "timestamp": _timestamp,
}


def _encode(node: Expression) -> dict[str, Any] | None:
    """Return the JSON tree of a condition, or None if a part of it has no JSON form."""
    match node:
        # The protocol has no op for `<>`.
        case Comparison(operator="<>", left=left, right=right):
            return _tree("not", _encode(Comparison("=", left, right)))
        case Comparison(operator=operator, left=left, right=right) if operator in _OPERATIONS:
            return _tree(_OPERATIONS[operator], _leaf(left, right), _leaf(right, left))
        case IsNull(operand=Column() as column) if len(column.path) == 1:
            # The protocol requires a `valueType` of the column. Any type is correct here, because
            # no value is compared.
            return _tree("isNull", _column_leaf(column, "string"))
        case Not(operand=operand):
            return _tree("not", _encode(operand))
        case And(operands=operands) | Or(operands=operands):
            return _tree("and" if isinstance(node, And) else "or", *map(_encode, operands))
        # The protocol has no op for IN.
        case In(operand=operand, options=options):
            equals = [_encode(Comparison("=", operand, option)) for option in options]
            return equals[0] if len(equals) == 1 else _tree("or", *equals)
    return None


def _tree(operation: str, *children: dict[str, Any] | None) -> dict[str, Any] | None:
    if not children or None in children:
        return None
    return {"op": operation, "children": children}


def _leaf(node: Expression, other: Expression) -> dict[str, Any] | None:
    """Return one side of a comparison; the `valueType` of a column is that of the literal."""
    literal = node if isinstance(node, Literal) else other
    kind = _literal_type(literal) if isinstance(literal, Literal) else None
    if kind is None:
        return None
    if isinstance(node, Literal):
        return {"op": "literal", "value": _literal_text(node.value), "valueType": kind}
    if isinstance(node, Column) and len(node.path) == 1:
        return _column_leaf(node, kind)
    return None


def _column_leaf(column: Column, kind: str) -> dict[str, Any]:
    return {"op": "column", "name": column.path[0], "valueType": kind}


def _literal_type(literal: Literal) -> str | None:
    kind = literal.type
    if literal.value is None or (isinstance(literal.value, float) and not isfinite(literal.value)):
        return None
    if not isinstance(kind, PrimitiveType) or literal.is_far_moment:
        return None
    return _TYPE_NAMES.get(kind.type)


def _literal_text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
    return str(value)


_SQL_NODES: Final = (Column, Literal, Comparison, And, Or, Not, IsNull, Cast, In)
_NAME: Final = r"(?:`(?:[^`]|``)+`|[^\W\d]\w*)"
_CONSTANT: Final = r"(?:'(?:[^'\\]|'')*'|[+-]?\d{1,30}(?:\.\d{1,30})?|(?i:true|false)(?!\w))"
_OPERATOR: Final = r"(?P<op><=|>=|<>|!=|=|<|>)"
_COLUMN_FIRST: Final = re.compile(rf"(?P<name>{_NAME})\s*{_OPERATOR}\s*(?P<value>{_CONSTANT})")
_VALUE_FIRST: Final = re.compile(rf"(?P<value>{_CONSTANT})\s*{_OPERATOR}\s*(?P<name>{_NAME})")
_NULL_TEST: Final = re.compile(rf"(?P<name>{_NAME})\s+(?i:IS)\s+(?P<not>(?i:NOT)\s+)?(?i:NULL)")


def _parse_protocol_sql(text: str) -> Expression | None:
    """Return the condition in one of the protocol's eight forms, or None for any other string.

    These forms are not parsed as Spark SQL, because Spark SQL does not read `''` as an escaped
    quote.
    """
    stripped = text.strip()
    if (found := _NULL_TEST.fullmatch(stripped)) is not None:
        null = IsNull(_sql_column(found["name"]))
        return Not(null) if found["not"] else null
    found = _COLUMN_FIRST.fullmatch(stripped)
    if found is None or found["name"].lower() in {"true", "false"}:
        found = _VALUE_FIRST.fullmatch(stripped)
    if found is None:
        return None
    operator = "<>" if found["op"] == "!=" else found["op"]
    column, constant = _sql_column(found["name"]), _sql_constant(found["value"])
    sides = (column, constant) if found.re is _COLUMN_FIRST else (constant, column)
    return Comparison(operator, *sides)


def _sql_column(text: str) -> Column:
    return Column((text[1:-1].replace("``", "`") if text.startswith("`") else text,))


def _sql_constant(text: str) -> Expression:
    if text.startswith("'"):
        return lit(text[1:-1].replace("''", "'"))
    if text.lower() in {"true", "false"}:
        return lit(text.lower() == "true")
    return lit(Decimal(text) if "." in text else int(text))


def _check_comparisons(node: Expression, depth: int) -> None:
    """Raise for anything but comparisons of columns and constants."""
    _check_depth(depth)
    if not isinstance(node, _SQL_NODES):
        raise TypeError(f"{type(node).__name__} is not a comparison")
    for child in children(node):
        _check_comparisons(child, depth + 1)
