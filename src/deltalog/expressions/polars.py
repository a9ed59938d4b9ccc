"""Converting Polars' expressions through their JSON form.

Contains the list of convertible parts. Polars filters the rows again after reading them. If a part
is left out, or an unknown Polars release writes it differently, the query only takes longer.
"""

from __future__ import annotations

import io
import math
import struct
from typing import TYPE_CHECKING, Any, Final

import pyarrow.types as pt

from deltalog._util import json as _json
from deltalog.errors import DeltaError
from deltalog.expressions import nodes
from deltalog.expressions.analyze import resolve_predicate
from deltalog.expressions.nodes import Call, Column, Expression, Literal
from deltalog.expressions.sql_session import RULES_OF_TABLES, SqlSession, TextRules
from deltalog.expressions.substrait import as_meant
from deltalog.expressions.trees import conjunction
from deltalog.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    MapType,
    StructType,
)

if TYPE_CHECKING:
    import polars as pl

_COMPARISONS: Final = {
    "Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">=",
    "EqValidity": "<=>",
}  # fmt: skip
_BOUNDS: Final = {
    "Both": ("GtEq", "LtEq"), "Left": ("GtEq", "Lt"), "Right": ("Gt", "LtEq"), "None": ("Gt", "Lt"),
}  # fmt: skip
_TEXT_TESTS: Final = {"StartsWith": "startswith", "EndsWith": "endswith"}
_WIDER: Final[dict[DataType, dict[str, DataType]]] = {
    BYTE: {"Int16": SHORT, "Int32": INTEGER, "Int64": LONG, "Float64": DOUBLE},
    SHORT: {"Int32": INTEGER, "Int64": LONG, "Float64": DOUBLE},
    INTEGER: {"Int64": LONG, "Float64": DOUBLE},
    LONG: {"Float64": DOUBLE},
    FLOAT: {"Float64": DOUBLE},
    DATE: {"Datetime": TIMESTAMP_NTZ},
}
"""Casts that never fail: a column's type → the target types by their names in Polars."""


def weaker_than_polars(
    expression: pl.Expr, schema: StructType, session: SqlSession = RULES_OF_TABLES
) -> Expression | None:
    """Return a resolved condition that is true for at least the rows of a Polars filter, or None.

    Args:
        expression: the filter that Polars passes to a row source, with its casts already added.
        schema: the schema of the rows; names must match exactly.
        session: provides the time zone of values without a zone.
    """
    try:
        root = _json.loads(expression.meta.serialize(format="json").encode())
    except Exception:  # noqa: BLE001  # Polars raises exceptions of many types
        return None
    found = []
    for part in _conjuncts(root):
        try:
            converted = as_meant(_PolarsConverter(schema).converted(part), schema)
            found.append(resolve_predicate(converted, schema, session, text_rules=TextRules.NONE))
        except (_InexactError, DeltaError, RecursionError):
            continue  # only Polars applies this part
    return conjunction(found) if found else None


class _InexactError(Exception):
    """A part of the filter cannot be converted exactly."""


def _conjuncts(root: Any) -> list[Any]:
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        match node:
            case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
                waiting += [right, left]
            case {"Function": {"input": list(inputs), "function": {"Boolean": "AllHorizontal"}}}:
                waiting += reversed(inputs)
            case _:
                found.append(node)
    return found


class _PolarsConverter:
    """Converts one part of a filter.

    Args:
        schema: the schema of the columns.
    """

    def __init__(self, schema: StructType) -> None:
        self._schema = schema

    def converted(self, node: Any) -> Expression:
        match node:
            case {"Column": str(name)}:
                return Column((name,))
            case {"Literal": _}:
                return _literal(node)
            case {"Alias": [operand, _]}:
                return self.converted(operand)
            case {"BinaryExpr": {"left": left, "op": str(operator), "right": right}}:
                return self._binary(operator, self.converted(left), self.converted(right))
            case {"Cast": {"expr": operand, "dtype": {"Literal": kind}}}:
                return self._cast(self.converted(operand), kind)
            case {"Function": {"input": list(inputs), "function": function}}:
                return self._call(function, inputs)
        raise _InexactError

    def _binary(self, operator: str, left: Expression, right: Expression) -> Expression:
        # Do not convert comparisons of nested values. Polars may compare only some of their fields.
        if any(isinstance(side, Column) and self._is_nested(side) for side in (left, right)):
            raise _InexactError
        if operator in _COMPARISONS:
            return nodes.Comparison(_COMPARISONS[operator], left, right)
        if operator == "NotEqValidity":
            return nodes.Not(nodes.Comparison("<=>", left, right))
        if operator in {"And", "LogicalAnd"}:
            return nodes.And((left, right))
        if operator in {"Or", "LogicalOr"}:
            return nodes.Or((left, right))
        raise _InexactError

    def _cast(self, operand: Expression, to: Any) -> Expression:
        """Convert a cast to a wider type, which Polars adds and which does not change the value."""
        target = "Datetime" if to == {"Datetime": ["Microseconds", None]} else to
        wider = _WIDER.get(self._kind(operand), {})
        if not isinstance(target, str) or target not in wider:
            raise _InexactError
        return nodes.Cast(operand, wider[target])

    def _kind(self, operand: Expression) -> DataType:
        if not isinstance(operand, Column):
            raise _InexactError
        kind: DataType = self._schema
        for name in operand.path:
            fields = kind if isinstance(kind, StructType) else ()
            found = [field.type for field in fields if field.name == name]
            if not found:
                raise _InexactError
            kind = found[0]
        return kind

    def _is_nested(self, column: Column) -> bool:
        return isinstance(self._kind(column), StructType | ArrayType | MapType)

    def _call(self, function: Any, inputs: list[Any]) -> Expression:
        match function, inputs:
            case {"StructExpr": {"FieldByName": str(name)}}, [operand]:
                parent = self.converted(operand)
                if isinstance(parent, Column):
                    return Column((*parent.path, name))
            case {"Boolean": {"IsIn": {"nulls_equal": bool(nulls_equal)}}}, [operand, options]:
                return _membership(
                    self.converted(operand), _values(options), nulls_equal=nulls_equal
                )
            case {"Boolean": {"IsBetween": {"closed": str(closed)}}}, [operand, low, high]:
                value, (above, below) = self.converted(operand), _BOUNDS[closed]
                lower = self._binary(above, value, self.converted(low))
                return nodes.And((lower, self._binary(below, value, self.converted(high))))
            case {"Boolean": str(name)}, _:
                return _test(name, [self.converted(item) for item in inputs])
            case {"StringExpr": str(name)}, [operand, {"Literal": _} as text]:
                if name in _TEXT_TESTS:
                    return Call(_TEXT_TESTS[name], (self.converted(operand), _literal(text)))
            case {"StringExpr": {"Contains": {"literal": True}}}, [operand, {"Literal": _} as text]:
                return Call("contains", (self.converted(operand), _literal(text)))
        raise _InexactError


def _test(name: str, operands: list[Expression]) -> Expression:
    match name, operands:
        case "Not", [operand]:
            return nodes.Not(operand)
        case "IsNull", [operand]:
            return nodes.IsNull(operand)
        case "IsNotNull", [operand]:
            return nodes.Not(nodes.IsNull(operand))
        case "IsNan", [operand]:  # not isnan(), which is false for NULL
            return nodes.Comparison("=", operand, Literal(math.nan))
        case "IsNotNan", [operand]:
            return nodes.Not(nodes.Comparison("=", operand, Literal(math.nan)))
        case "AllHorizontal", [_, _, *_]:
            return nodes.And(tuple(operands))
        case "AnyHorizontal", [_, _, *_]:
            return nodes.Or(tuple(operands))
    raise _InexactError


def _membership(operand: Expression, values: list[Any], *, nulls_equal: bool) -> Expression:
    """Return a test whether a value is one of the options; a NULL in the list has no effect."""
    options = tuple(Literal(value) for value in values if value is not None)
    if not options:
        raise _InexactError
    found = nodes.In(operand, options)
    if not nulls_equal:
        return found
    if None in values:
        return nodes.Or((nodes.IsNull(operand), found))
    return nodes.And((nodes.Not(nodes.IsNull(operand)), found))


def _values(node: Any) -> list[Any]:
    """Return the options of an `is_in`, which must be a constant list."""
    while "Alias" in node:
        node = node["Alias"][0]
    options = _constants(node)
    if len(options) != 1 or not isinstance(options[0], list):
        raise _InexactError
    return options[0]


def _literal(node: Any) -> Literal:
    match node:
        case {"Literal": {"Scalar": {"Boolean": bool(value)} | {"String": str(value)}}}:
            return Literal(value)
        case {
            "Literal": {
                "Scalar": {"Int8": value} | {"Int16": value} | {"Int32": value} | {"Int64": value}
            }
        } if type(value) is int:
            return Literal(value)
        case {"Literal": {"Scalar": {"Float64": value}}} if value is not None:
            return Literal(value)
        case {"Literal": {"Scalar": {"Float32": value}}} if value is not None:
            return Literal(struct.unpack("<f", struct.pack("<f", value))[0])
        case {"Literal": {"Scalar": {"Float32": _} | {"Float64": _}}}:
            raise _InexactError  # NaN or an infinity, which JSON cannot represent
    values = _constants(node)
    if len(values) != 1:
        raise _InexactError
    return Literal(values[0])


def _constants(node: Any) -> list[Any]:
    """Return the values of a constant, decoded by Polars itself."""
    import polars as pl  # noqa: PLC0415  # installed, because the caller has a Polars expression

    if "Literal" not in node:
        raise _InexactError
    try:
        constant = pl.Expr.deserialize(io.BytesIO(_json.dumps(node)), format="json")
        series = pl.select(constant).to_series()
        kind = series.dtype.inner if isinstance(series.dtype, pl.List) else series.dtype
        if isinstance(kind, pl.Duration) or (
            isinstance(kind, pl.Datetime) and kind.time_unit == "ns"
        ):
            return _arrow_values(series)
        values = series.to_list()
    except _InexactError:
        raise
    except Exception as error:  # this release of Polars cannot read the constant
        raise _InexactError from error
    if isinstance(kind, pl.Datetime):
        is_plain = kind.time_zone in {None, "UTC"}
    else:
        plain = {pl.String, pl.Binary, pl.Boolean, pl.Date, pl.Null}
        is_plain = kind in plain or kind.is_numeric()
    if not is_plain:
        raise _InexactError
    return values


def _arrow_values(series: pl.Series) -> list[Any]:
    """Return the constants of a series as Arrow scalars, without loss of precision."""
    array: Any = series.to_arrow()
    kind = array.type.value_type if pt.is_large_list(array.type) else array.type
    if pt.is_timestamp(kind) and kind.tz not in {None, "UTC"}:
        raise _InexactError
    rows = [[*one.values] if pt.is_large_list(array.type) else one for one in array]
    return [_or_none(one) for one in rows]


def _or_none(value: Any) -> Any:
    """Return a scalar or a list of scalars, with None for NULL."""
    if isinstance(value, list):
        return [_or_none(one) for one in value]
    return value if value.is_valid else None
