"""Predicate hints ⇄ expressions: the JSON tree, and the small SQL of the older form.

Owns what a hint may say. A hint is a courtesy: what cannot be understood is refused here, and who
asked then filters nothing. Nothing of a hint is ever run by an engine: it becomes a tree of
comparisons, or nothing.

Protocol: JSON predicates for Filtering, SQL Expressions for Filtering
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from deltalog._json import dumps, loads
from deltalog.errors import DeltaError, MalformedMessageError
from deltalog.expressions import Column, Expression, Literal, conjuncts, lit, parse_sql
from deltalog.expressions.nodes import And, Cast, Comparison, In, IsNull, Not, Or
from deltalog.schema.types import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MOST_BYTES: Final = 1 << 20
MOST_DEPTH: Final = 100
MOST_OPERATIONS: Final = 2000
_MOST_SQL: Final = 4096

_COMPARISONS: Final = {
    "equal": "=",
    "lessThan": "<",
    "lessThanOrEqual": "<=",
    "greaterThan": ">",
    "greaterThanOrEqual": ">=",
}
_OPERATIONS: Final = {operator: name for name, operator in _COMPARISONS.items()}

# What a hint calls a type, and what the table does.
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
    """The condition of a `jsonPredicateHints` text; not resolved against any schema.

    Raises:
        MalformedMessageError: it is no JSON, too large or deep, or breaks the rules of the tree.
    """
    if len(text) > MOST_BYTES:
        raise MalformedMessageError(f"hint: longer than {MOST_BYTES} characters")
    try:
        tree = loads(text, "hint")
        _check_size(tree)
        return _condition(tree, 1)
    except MalformedMessageError:
        raise
    except (DeltaError, ValueError, TypeError, OverflowError) as error:
        raise MalformedMessageError(f"hint: {error}") from None


def encode_json_hint(predicate: Expression) -> str | None:
    """The hint for a condition that is resolved; None if nothing of it can be said as a hint.

    Parts of a conjunction that cannot be said are left out: the hint keeps more, never less.
    """
    said = [node for part in conjuncts(predicate) if (node := _said(part)) is not None]
    if not said:
        return None
    tree = said[0] if len(said) == 1 else {"op": "and", "children": said}
    text = dumps(tree).decode()
    return text if len(text) <= MOST_BYTES else None


def parse_sql_hint(text: str) -> Expression:
    """The condition of one of the `predicateHints`; not resolved against any schema.

    Raises:
        MalformedMessageError: it is more than comparisons of columns and constants.
    """
    simple = _simple_sql(text)
    if simple is not None:
        return simple
    if len(text) > _MOST_SQL:
        raise MalformedMessageError(f"hint: longer than {_MOST_SQL} characters")
    try:
        tree = parse_sql(text)
    except (DeltaError, RecursionError) as error:
        raise MalformedMessageError(f"hint: {error}") from None
    _check_plain(tree, 1)
    return tree


def _check_size(tree: Any) -> None:
    """Each operation is a look at every file of a table."""
    pending, count = [tree], 0
    while pending:
        node = pending.pop()
        count += isinstance(node, dict)
        if count > MOST_OPERATIONS:
            raise MalformedMessageError(f"hint: more than {MOST_OPERATIONS} operations")
        children = node.get("children") if isinstance(node, dict) else node
        if isinstance(children, list):
            pending += children


def _condition(node: Any, depth: int) -> Expression:
    if depth > MOST_DEPTH:
        raise MalformedMessageError(f"hint: nested deeper than {MOST_DEPTH}")
    operation, children = _operation(node)
    if operation in _COMPARISONS:
        left, right = _exactly(children, 2, operation)
        return _comparison(_COMPARISONS[operation], left, right)
    if operation == "isNull":
        (child,) = _exactly(children, 1, operation)
        column, _ = _column(child)
        return IsNull(column)
    if operation == "not":
        (child,) = _exactly(children, 1, operation)
        return Not(_condition(child, depth + 1))
    if operation in {"and", "or"}:
        if len(children) < 2:
            raise MalformedMessageError(f"hint: {operation} takes two children or more")
        parts = tuple(_condition(child, depth + 1) for child in children)
        return And(parts) if operation == "and" else Or(parts)
    raise MalformedMessageError(f"hint: unknown op {str(operation)[:40]!r}")


def _operation(node: Any) -> tuple[str, Sequence[Any]]:
    if not isinstance(node, dict):
        raise MalformedMessageError("hint: expected an object")
    children = node.get("children") or ()
    if not isinstance(children, list | tuple):
        raise MalformedMessageError("hint: children are a list")
    return str(node.get("op")), children


def _exactly(children: Sequence[Any], count: int, operation: str) -> Sequence[Any]:
    if len(children) != count:
        raise MalformedMessageError(f"hint: {operation} takes {count} children")
    return children


def _comparison(operator: str, left: Any, right: Any) -> Expression:
    sides: list[Expression] = []
    for side in (left, right):
        operation, _ = _operation(side)
        if operation == "column":
            sides.append(_column(side)[0])
        elif operation == "literal":
            sides.append(_literal(side))
        else:
            raise MalformedMessageError("hint: a comparison takes columns and literals")
    return Comparison(operator, sides[0], sides[1])


def _column(node: Any) -> tuple[Column, str]:
    operation, _ = _operation(node)
    name = node.get("name")
    if operation != "column" or not isinstance(name, str) or not name:
        raise MalformedMessageError("hint: expected a column with its name")
    return Column((name,)), _value_type(node)


def _literal(node: Any) -> Literal:
    value = node.get("value")
    kind = _value_type(node)
    if not isinstance(value, str):
        raise MalformedMessageError("hint: the value of a literal is a text")
    return Literal(_VALUES[kind](value), PrimitiveType(VALUE_TYPES[kind]))


def _value_type(node: Any) -> str:
    kind = node.get("valueType")
    if not isinstance(kind, str) or kind not in VALUE_TYPES:
        raise MalformedMessageError(f"hint: unknown valueType {str(kind)[:40]!r}")
    return kind


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _whole(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text) if len(text) <= 20 else 1 << 64
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError(f"number beyond {bits} bits")
        return value

    return parse


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError("number is not finite")
    return value


def _day(text: str) -> date:
    if len(text) != 10:
        raise ValueError("expected a date yyyy-mm-dd")
    return date.fromisoformat(text)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("expected a time with its zone")
    return moment.astimezone(UTC)


def _boolean_or_refuse(text: str) -> bool:
    try:
        return _boolean(text)
    except KeyError:
        raise ValueError("expected true or false") from None


_VALUES: Final[Mapping[str, Callable[[str], Any]]] = {
    "bool": _boolean_or_refuse,
    "int": _whole(32),
    "long": _whole(64),
    "string": str,
    "date": _day,
    "float": _finite,
    "double": _finite,
    "timestamp": _moment,
}


def _said(node: Expression) -> dict[str, Any] | None:
    """The tree for a condition, all of it or None."""
    match node:
        case Comparison(operator="<>", left=left, right=right):
            return _negated(_said(Comparison("=", left, right)))
        case Comparison(operator=operator, left=left, right=right) if operator in _OPERATIONS:
            leaves = [_leaf(left, right), _leaf(right, left)]
            return _tree(_OPERATIONS[operator], leaves)
        case IsNull(operand=Column() as column) if len(column.path) == 1:
            # No literal tells the type; any may stand there, as nothing is compared.
            return _tree("isNull", [_column_leaf(column, "string")])
        case Not(operand=operand):
            return _negated(_said(operand))
        case And(operands=operands) | Or(operands=operands):
            return _joined("and" if isinstance(node, And) else "or", operands)
        case In(operand=operand, options=options):
            equals = [Comparison("=", operand, option) for option in options]
            return _said(equals[0]) if len(equals) == 1 else _joined("or", equals)
    return None


def _joined(operation: str, operands: Sequence[Expression]) -> dict[str, Any] | None:
    return _tree(operation, [_said(operand) for operand in operands])


def _negated(tree: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if tree is None else {"op": "not", "children": [tree]}


def _tree(operation: str, children: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    if not children or any(child is None for child in children):
        return None
    return {"op": operation, "children": list(children)}


def _leaf(node: Expression, other: Expression) -> dict[str, Any] | None:
    if isinstance(node, Literal):
        kind = _kind(node)
        if kind is None or node.value is None:
            return None
        return {"op": "literal", "value": _text(node.value), "valueType": kind}
    if isinstance(node, Column) and isinstance(other, Literal) and len(node.path) == 1:
        kind = _kind(other)
        return None if kind is None else _column_leaf(node, kind)
    return None


def _column_leaf(column: Column, kind: str) -> dict[str, Any]:
    return {"op": "column", "name": column.path[0], "valueType": kind}


def _kind(literal: Literal) -> str | None:
    kind = literal.type
    if isinstance(literal.value, float) and not isfinite(literal.value):
        return None
    return _TYPE_NAMES.get(kind.type) if isinstance(kind, PrimitiveType) else None


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
    return str(value)


_NAME: Final = r"(?:`(?:[^`]|``)+`|[^\W\d]\w*)"
_CONSTANT: Final = r"(?:'(?:[^'\\]|'')*'|[+-]?\d{1,30}(?:\.\d{1,30})?|(?i:true|false)(?!\w))"
_OPERATOR: Final = r"(?P<op><=|>=|<>|!=|=|<|>)"
_COLUMN_FIRST: Final = re.compile(rf"(?P<name>{_NAME})\s*{_OPERATOR}\s*(?P<value>{_CONSTANT})")
_VALUE_FIRST: Final = re.compile(rf"(?P<value>{_CONSTANT})\s*{_OPERATOR}\s*(?P<name>{_NAME})")
_NULL_TEST: Final = re.compile(rf"(?P<name>{_NAME})\s+(?i:IS)\s+(?P<not>(?i:NOT)\s+)?(?i:NULL)")


def _simple_sql(text: str) -> Expression | None:
    """The eight forms of the protocol, which quote a quote by doubling it."""
    stripped = text.strip()
    if (found := _NULL_TEST.fullmatch(stripped)) is not None:
        null = IsNull(_named(found["name"]))
        return Not(null) if found["not"] else null
    found = _COLUMN_FIRST.fullmatch(stripped)
    if found is not None and found["name"].lower() not in {"true", "false"}:
        return Comparison(_operator(found["op"]), _named(found["name"]), _constant(found["value"]))
    found = _VALUE_FIRST.fullmatch(stripped)
    if found is not None:
        return Comparison(_operator(found["op"]), _constant(found["value"]), _named(found["name"]))
    return None


def _operator(text: str) -> str:
    return "<>" if text == "!=" else text


def _named(text: str) -> Column:
    return Column((text[1:-1].replace("``", "`") if text.startswith("`") else text,))


def _constant(text: str) -> Expression:
    if text.startswith("'"):
        return lit(text[1:-1].replace("''", "'"))
    if text.lower() in {"true", "false"}:
        return lit(text.lower() == "true")
    return lit(Decimal(text) if "." in text else int(text))


def _check_plain(node: Expression, depth: int) -> None:
    """Refuse all but comparisons: functions and patterns may cost whatever a stranger likes."""
    if depth > MOST_DEPTH:
        raise MalformedMessageError(f"hint: nested deeper than {MOST_DEPTH}")
    match node:
        case Column() | Literal():
            return
        case Comparison(left=left, right=right):
            children: Sequence[Expression] = (left, right)
        case And(operands=operands) | Or(operands=operands):
            children = operands
        case Not(operand=operand) | IsNull(operand=operand) | Cast(operand=operand):
            children = (operand,)
        case In(operand=operand, options=options):
            children = (operand, *options)
        case _:
            raise MalformedMessageError(f"hint: {type(node).__name__} is no simple comparison")
    for child in children:
        _check_plain(child, depth + 1)
