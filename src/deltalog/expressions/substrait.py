"""Converting pyarrow's expressions through Substrait.

Parses as much of Substrait's binary form as pyarrow uses for filters. The result has exactly the
meaning that the filter has in pyarrow (NaN equals nothing, `isin` is never NULL); otherwise the
filter is refused. Arithmetic and casts are refused, because they fail for other values than in
Spark.

Substrait has no durations, and pyarrow cannot write nanosecond timestamps. Both become integers in
the message, and `as_meant` converts them back to constants of the column's type.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.kernels import pc
from deltalog.expressions import nodes
from deltalog.expressions.nodes import Call, Column, Expression, Literal
from deltalog.expressions.trees import bottom_up
from deltalog.schema.types import (
    DATE,
    DAY_TO_SECOND,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    PrimitiveType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.schema.types import DataType


# --- The wire format of protobuf: a message is a dictionary of its fields by number


Message = dict[int, list[Any]]


class UnreadableError(Exception):
    """A part of the message is not supported."""


def number_at(fields: Message, number: int) -> int:
    """Return the number in a field; 0 if the field is missing, because protobuf omits zeros."""
    value = fields.get(number, [0])[0]
    return int(value)


def fields_of(data: bytes) -> Message:
    """Return the fields of a protobuf message: numbers as int, everything else as bytes."""
    found: Message = {}
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        value: Any
        if wire == 0:
            value, position = _varint(data, position)
        elif wire == 2:
            size, position = _varint(data, position)
            value, position = data[position : position + size], position + size
        elif wire in {1, 5}:
            size = 8 if wire == 1 else 4
            value, position = data[position : position + size], position + size
        else:
            raise UnreadableError("a field of this form")
        found.setdefault(number, []).append(value)
    return found


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def signed_64(value: int) -> int:
    """Return the signed integer with the same 64 bits."""
    return value - (1 << 64) if value >> 63 else value


# --- Converting the expressions


COMPARISONS: Final = {
    "equal": "=", "not_equal": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=",
}  # fmt: skip
_VALUE_SET: Final = "value_set"
_TEXT_TESTS: Final = {"starts_with": "startswith", "ends_with": "endswith", "contains": "contains"}
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # local times without a time zone
_EPOCH_UTC: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def converted(
    expressions: Sequence[pc.Expression], schema: pa.Schema
) -> list[Expression | InexactPartError]:
    """Convert each condition to an unresolved expression, or to an error.

    Args:
        expressions: pyarrow filters with few nested functions, because the size of pyarrow's
            messages doubles with each level.
        schema: the schema of the columns; the filters name them exactly.
    """
    if not expressions:
        return []
    try:
        converter = _SubstraitConverter(_serialized(expressions, schema), schema)
    except InexactPartError as error:
        if len(expressions) == 1:
            return [error]
        # pyarrow cannot serialise one of the filters. Convert each half of the list separately, so
        # that only this filter fails.
        half = len(expressions) // 2
        return [*converted(expressions[:half], schema), *converted(expressions[half:], schema)]
    return converter.roots()


def _serialized(expressions: Sequence[pc.Expression], schema: pa.Schema) -> Message:
    from pyarrow import substrait  # noqa: PLC0415  # slow to import, and seldom needed

    def message(given: Sequence[pc.Expression]) -> bytes:
        names = [str(place) for place in range(len(given))]
        return bytes(substrait.serialize_expressions(list(given), names, known))

    try:
        known = pa.schema([field.with_type(_in_substrait(field.type)) for field in schema])
        is_counted = known.types != schema.types
        try:
            found = message(expressions)
        except (pa.ArrowException, ValueError):
            counted = [_with_counts(expression) for expression in expressions]
            if all(one is None for one in counted):
                raise
            pairs = zip(counted, expressions, strict=True)
            found = message([one if changed is None else changed for changed, one in pairs])
            is_counted = True
        if is_counted:
            for expression in expressions:
                _check_types(expression, schema)
    except (pa.ArrowException, ValueError, KeyError) as error:
        if missing := _MISSING.match(str(error)):
            raise MissingColumnError(missing[1]) from error
        advice = _BRACKETS if _NO_CONDITION.match(str(error)) else ""
        raise InexactPartError(f"a filter that pyarrow refuses ({error}{advice})") from error
    return fields_of(found)


def _check_types(expression: pc.Expression, schema: pa.Schema) -> None:
    """Raise pyarrow's error for comparisons of different types, which integers would hide."""
    row = [pa.nulls(1, field.type) for field in schema]
    pa.Table.from_arrays(row, schema=schema).filter(expression)


def _with_counts(expression: pc.Expression) -> pc.Expression | None:
    """Replace nanosecond timestamps and durations in a filter by integers.

    In the pickle of a pyarrow expression, each constant is a column of an Arrow record batch.

    Returns:
        The new filter, or None if it has no such constants.
    """
    pickled: Any = expression.__reduce__()
    make, (buffer, *_) = pickled
    table = pa.ipc.open_file(buffer).read_all()
    columns, schema = list(table.columns), table.schema
    for place, part in enumerate(schema):
        values = columns[place].combine_chunks()
        counted = _options(values) if pt.is_struct(part.type) else _counts(values)
        columns[place] = counted
        schema = schema.set(place, part.with_type(counted.type))
    if schema == table.schema:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    found: pc.Expression = make(sink.getvalue())
    return found


def _counts(values: Any) -> Any:
    """Convert nanosecond timestamps or microsecond durations to integers."""
    if _in_substrait(values.type) == values.type or pt.is_nested(values.type):
        return values
    if pt.is_duration(values.type):
        values = values.cast(pa.duration("us"))
    return values.cast(pa.int64())


def _options(options: Any) -> Any:
    """Convert the constants in the options of a function; only `isin` has constants."""
    if _VALUE_SET not in options.type.names:
        return options
    fields = list(options.type)
    arrays = [options.field(part.name) for part in fields]
    place = options.type.get_field_index(_VALUE_SET)
    lists = arrays[place]
    arrays[place] = pa.ListArray.from_arrays(lists.offsets, _counts(lists.values))
    fields[place] = fields[place].with_type(arrays[place].type)
    return pa.StructArray.from_arrays(arrays, fields=fields)


def as_meant(expression: Expression, schema: StructType) -> Expression:
    """Convert the integers in a filter back to constants of their columns' types.

    Args:
        expression: the unresolved filter, with exact column names.
        schema: the schema of the table. In the filter, integers replace the constants for its
            columns of months, durations and nanoseconds.
    """

    def meant(node: Expression) -> Expression:
        match node:
            case nodes.Comparison(operator, left, right):
                kind = _counted_type(left, schema) or _counted_type(right, schema)
                if kind is not None:
                    return nodes.Comparison(operator, _meant(left, kind), _meant(right, kind))
            case nodes.In(operand, options):
                kind = _counted_type(operand, schema)
                if kind is not None:
                    return nodes.In(operand, tuple(_meant(option, kind) for option in options))
        return node

    return bottom_up(expression, meant)


def _counted_type(side: Expression, schema: StructType) -> DataType | None:
    if not isinstance(side, Column):
        return None
    kind: DataType = schema
    for name in side.path:
        fields = kind.fields_named(name) if isinstance(kind, StructType) else ()
        if len(fields) != 1:
            return None
        kind = fields[0].type
    return kind if isinstance(kind, PrimitiveType) and kind.primitive.is_ordered else None


def _meant(side: Expression, kind: DataType | None) -> Expression:
    if kind is None or not isinstance(side, Literal) or type(side.value) is not int:
        return side
    if kind == DAY_TO_SECOND:
        return Literal(dt.timedelta(microseconds=side.value), kind)
    return Literal(side.value, kind)


def _in_substrait(kind: Any) -> pa.DataType:
    """Return the type that replaces a type which pyarrow cannot write to Substrait."""
    if isinstance(kind, pa.BaseExtensionType):
        return _in_substrait(kind.storage_type)
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_in_substrait(field.type)) for field in kind])
    if pt.is_map(kind):
        return pa.map_(kind.key_type, _in_substrait(kind.item_type))
    if pt.is_list(kind):
        return pa.list_(_in_substrait(kind.value_type))
    if pt.is_duration(kind) or (pt.is_timestamp(kind) and kind.unit == "ns"):
        return pa.int64()
    plain: pa.DataType = kind
    return plain


class InexactPartError(Exception):
    """A part of a filter has no exact counterpart; the message names the part."""


class MissingColumnError(InexactPartError):
    """A filter reads a column that the table lacks; the message is its name."""


_MISSING: Final = re.compile(r"No match for FieldRef\.Name\((.*?)\) in ", re.DOTALL)
"""The beginning of pyarrow's message about such a column."""
_NO_CONDITION: Final = re.compile(r"Function '(?:and_kleene|or_kleene|invert)' has no kernel")
"""The beginning of pyarrow's message about an operand that is not a condition."""
_BRACKETS: Final = (
    "; in Python, put comparisons in brackets, such as (pc.field('a') > 1) & (pc.field('b') < 4)"
)
_UNREADABLE: Final = (InexactPartError, UnreadableError, IndexError, struct.error, OverflowError)


class _SubstraitConverter:
    """Converts the Substrait message of some expressions."""

    def __init__(self, message: Message, schema: pa.Schema) -> None:
        self._message = message
        self._schema = schema
        self._functions: dict[int, str] = {}
        for declaration in message.get(2, ()):
            for function in fields_of(declaration).get(3, ()):
                parts = fields_of(function)
                self._functions[number_at(parts, 2)] = parts[3][0].decode()

    def roots(self) -> list[Expression | InexactPartError]:
        """Return each expression or its error."""
        found: list[Expression | InexactPartError] = []
        for one in self._message[3]:
            try:
                found.append(self._expression(fields_of(fields_of(one)[1][0])))
            except InexactPartError as error:
                found.append(error)
            except _UNREADABLE as error:
                found.append(InexactPartError(str(error)))
        return found

    def _expression(self, node: Message) -> Expression:
        readers: dict[int, Callable[[Message], Expression]] = {
            1: _literal,
            2: lambda reference: Column(self._path(reference)),
            3: self._call,
            6: self._choice,
            8: self._membership,
        }
        for number, read in readers.items():
            if number in node:
                return read(fields_of(node[number][0]))
        raise InexactPartError("a cast, or another part")

    def _path(self, reference: Message) -> tuple[str, ...]:
        names: list[str] = []
        kind: Any = self._schema
        segment: Message | None = fields_of(reference[1][0])
        while segment is not None:
            step = fields_of(segment[2][0])
            field = kind.field(number_at(step, 1))
            names.append(field.name)
            kind = field.type
            segment = fields_of(step[2][0]) if 2 in step else None
        return tuple(names)

    def _name(self, call: Message) -> str:
        return self._functions[number_at(call, 1)]

    @staticmethod
    def _operands(call: Message) -> list[Message]:
        return [fields_of(fields_of(item)[3][0]) for item in call.get(4, ())]

    def _call(self, node: Message) -> Expression:
        name = self._name(node)
        arguments = [self._expression(operand) for operand in self._operands(node)]
        options = [fields_of(option) for option in node.get(5, ())]
        if name in COMPARISONS:
            return comparison(COMPARISONS[name], arguments, self._schema)
        if name in _TEXT_TESTS and all(option[2] == [b"CASE_SENSITIVE"] for option in options):
            return Call(_TEXT_TESTS[name], tuple(arguments))
        match name, arguments:
            case "and", _:
                return nodes.And(tuple(arguments))
            case "or", _:
                return nodes.Or(tuple(arguments))
            case "not", [argument]:
                return nodes.Not(argument)
            case "is_null", [argument]:
                return nodes.IsNull(argument)
            case "is_not_null", [argument]:
                return nodes.Not(nodes.IsNull(argument))
            case "is_nan", [Column() as argument]:
                # For NULL, pyarrow's `is_nan` is NULL, but Spark's isnan() is false.
                return nodes.Comparison("=", argument, Literal(math.nan))
            case _:
                raise InexactPartError(f"the function {name!r}")

    def _membership(self, node: Message) -> Expression:
        operand, options = self._members(node)
        # For NULL, pyarrow's `isin` is false, but SQL's IN is NULL.
        return nodes.And((nodes.Not(nodes.IsNull(operand)), nodes.In(operand, options)))

    def _members(self, node: Message) -> tuple[Expression, tuple[Expression, ...]]:
        operand = self._expression(fields_of(node[1][0]))
        options = tuple(self._expression(fields_of(option)) for option in node.get(2, ()))
        for option in options:
            if not isinstance(option, Literal) or option.value is None:
                raise InexactPartError("a list that contains NULL")
            if isinstance(option.value, float) and (
                option.value == 0 or _may_be_nan(option, self._schema)
            ):
                # pyarrow's `isin` compares the bits of floating-point numbers, which differ between
                # 0.0 and -0.0.
                raise InexactPartError("a list that contains NaN or zero as floating-point numbers")
        return operand, options

    def _choice(self, node: Message) -> Expression:
        """Convert `if_else`; DuckDB uses it so that SQL's IN is NULL for NULL."""
        clauses = [fields_of(clause) for clause in node[1]]
        if len(clauses) == 1 and 2 in node:
            condition, found, otherwise = (
                fields_of(data) for data in (clauses[0][1][0], clauses[0][2][0], node[2][0])
            )
            if 8 in found and 1 in otherwise and 29 in fields_of(otherwise[1][0]):
                operand, options = self._members(fields_of(found[8][0]))
                if self._expression(condition).same_as(nodes.Not(nodes.IsNull(operand))):
                    return nodes.In(operand, options)
        raise InexactPartError("if_else")


def comparison(operator: str, sides: Sequence[Expression], schema: pa.Schema) -> Expression:
    """Return a comparison by IEEE 754, where NaN equals nothing, unlike in Spark."""
    left, right = sides
    plain = nodes.Comparison(operator, left, right)
    constants = [side for side in sides if isinstance(side, Literal)]
    if any(_may_be_nan(side, schema) for side in constants):
        # In pyarrow, a comparison with NaN is true for `<>` and false for other operators, whatever
        # the other side is. If the other side is NULL, the result is NULL.
        return (nodes.Or if operator == "<>" else nodes.And)((plain, nodes.Not(plain)))
    nan = [Call("isnan", (side,)) for side in sides if _may_be_nan(side, schema)]
    if not nan:
        return plain
    tests = nan if operator == "<>" else [nodes.Not(test) for test in nan]
    found = (nodes.Or if operator == "<>" else nodes.And)((plain, *tests))
    if any(constant.value is not None for constant in constants):
        return found
    # In pyarrow, NaN compared with NULL is NULL.
    return nodes.Case(((nodes.IsNull(plain), Literal(None)),), found)


def _may_be_nan(side: Expression, schema: pa.Schema) -> bool:
    if isinstance(side, Column):
        kind: Any = schema
        for name in side.path:
            kind = kind.field(name).type
        return pa.types.is_floating(kind)
    if isinstance(side, Literal):
        return isinstance(side.value, float) and side.value != side.value  # true only for NaN
    return False


def _literal(node: Message) -> Expression:
    if 51 in node and number_at(node, 51):
        raise InexactPartError("a constant of an Arrow type that Delta does not have")
    if 29 in node:
        return Literal(None)
    for number, read in _CONSTANTS.items():
        if number in node:
            return _constant(read, _COUNTED.get(number), node[number][0])
    raise InexactPartError("a constant of this type")


def _constant(read: Callable[[Any], Any], counted: DataType | None, data: Any) -> Literal:
    try:
        return Literal(read(data))
    except OverflowError:  # a date or time outside of the years 1 to 9999
        if counted is None:
            raise
        return Literal(signed_64(data), counted)


def _decimal(data: bytes) -> Decimal:
    parts = fields_of(data)
    unscaled = int.from_bytes(parts[1][0], "little", signed=True)
    return Context(prec=50).scaleb(Decimal(unscaled), -number_at(parts, 3))


_CONSTANTS: Final[dict[int, Callable[[Any], Any]]] = {
    1: bool,
    2: signed_64,
    3: signed_64,
    5: signed_64,
    7: signed_64,
    10: lambda data: struct.unpack("<f", data)[0],
    11: lambda data: struct.unpack("<d", data)[0],
    12: lambda data: data.decode(),
    13: bytes,
    14: lambda micros: _EPOCH + dt.timedelta(microseconds=signed_64(micros)),
    16: lambda days: (_EPOCH + dt.timedelta(days=signed_64(days))).date(),
    24: _decimal,
    27: lambda micros: _EPOCH_UTC + dt.timedelta(microseconds=signed_64(micros)),
}
"""Field number of a literal in Substrait → the function that decodes the literal."""
_COUNTED: Final[dict[int, DataType]] = {14: TIMESTAMP_NTZ, 16: DATE, 27: TIMESTAMP}
