"""Expressions in DuckDB's SQL, with Spark's result types.

`to_duckdb` translates a resolved expression, in which every cast of Spark is explicit. If DuckDB's
result would differ from Spark's in value, type or error, `expressions` computes the expression. If
it would differ only for some rows, such as those with long decimals, guards find these rows.
`_FUNCTIONS` lists the functions.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Context, Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from deltalog.errors import InvalidInputError
from deltalog.expressions import Literal, nodes, type_of
from deltalog.expressions.coercion import arithmetic_type
from deltalog.expressions.evaluation import fold
from deltalog.expressions.trees import children, walk
from deltalog.query.native import (
    INTEGRALS,
    MAX_PRECISION,
    column_text,
    decimal_of,
    has_moved_constant,
    is_ordered_by_duckdb,
    is_zero,
    quoted_name,
    quoted_string,
)
from deltalog.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    decimal_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.schema import DataType, PrimitiveType, StructType

_EXACT_DIGITS: Final = 15
"""Whole numbers with this number of digits are exact doubles."""
_EXACT_SCALE: Final = 22
"""The powers of ten up to this exponent are exact doubles."""
_MOST_REPEATED_CHARS: Final = 2_000
"""The maximum length of operands that are written several times."""
_ALL_DIGITS: Final = Context(prec=2 * MAX_PRECISION)
_SHORT_DIGITS: Final = 18
"""The maximum number of digits of decimals that DuckDB stores in 64 bits."""
# The days that DuckDB treats as infinity and -infinity, as year, quarter, month and day.
_LAST_DAY, _FIRST_DAY = (5881580, 3, 7, 11), (-5877641, 2, 6, 24)


BY_ZERO: Final = "division by zero: guard it with NULLIF or CASE"


class _NotSameError(Exception):
    """DuckDB's result would differ from Spark's."""


@dataclass(frozen=True, slots=True)
class Translation:
    """An expression in DuckDB's SQL.

    Args:
        text: the expression; None if DuckDB's result would differ from Spark's.
        guards: conditions. For rows in which one of them is false, the result may differ.
    """

    text: str | None
    guards: tuple[str, ...] = ()

    def guarded(self, otherwise: str) -> str:
        """Return the expression, with another expression for the rows in which it may differ."""
        if self.text is None:
            return otherwise
        checks = " AND ".join(self.guards)
        return f"(CASE WHEN ({checks}) IS FALSE THEN {otherwise} ELSE {self.text} END)"


def to_duckdb(resolved: Expression, schema: StructType, columns: Mapping[str, str]) -> Translation:
    """Return an expression in DuckDB's SQL.

    Args:
        resolved: the expression, resolved against `schema`.
        schema: the columns of the expression; DuckDB has them in the same types.
        columns: for each column, its SQL.
    """
    writer = _Writer(schema, columns)
    try:
        folded = fold(resolved)
        text = writer.text(folded)
    except (_NotSameError, InvalidInputError):
        return Translation(None)  # an invalid constant: `expressions` raises the error for a row
    # DuckDB simplifies operations with such constants, and then evaluates no other operand.
    if writer.may_fail and any(map(_has_simplified, walk(folded))):
        return Translation(None)
    return Translation(text, tuple(dict.fromkeys(writer.guards)))


def _has_simplified(node: Expression) -> bool:
    """Return whether DuckDB may simplify an operation with NULL, true or false."""
    values = _values_of(node) if isinstance(node, nodes.Case) else []
    return any(
        isinstance(one, Literal) and (one.value is None or isinstance(one.value, bool))
        for one in children(node)
        if not any(one is value for value in values)
    )


@dataclass(slots=True)
class _Writer:
    """Writes one expression.

    Args:
        schema: the columns.
        columns: for each column, its SQL.
        nonzero: the expressions, as `_key` has them, that are not zero where this one is evaluated.
        may_fail: whether evaluating the expression may raise an error, as far as it was written.
        guards: see `Translation`.
        is_guarded: whether an operand has guards. It may fail where one of them is false.
    """

    schema: StructType
    columns: Mapping[str, str]
    nonzero: frozenset[str] = frozenset()
    may_fail: bool = False
    guards: list[str] = field(default_factory=list)
    is_guarded: bool = False

    def text(self, node: Expression) -> str:
        """Return an expression; raise `_NotSameError` if DuckDB's result would differ."""
        write = _NODES.get(type(node))
        if write is None:
            raise _NotSameError
        return write(self, node)

    def kind(self, node: Expression) -> DataType:
        """Return the type of an expression."""
        return type_of(node, self.schema)

    def operand(self, node: Expression, nonzero: frozenset[str] = frozenset()) -> tuple[str, bool]:
        """Return an operand, and whether it may fail.

        Args:
            node: the operand.
            nonzero: further expressions that are not zero where the operand is evaluated.
        """
        inner = _Writer(self.schema, self.columns, self.nonzero | nonzero)
        text = inner.text(node)
        self.may_fail |= inner.may_fail
        self.guards += inner.guards
        self.is_guarded |= bool(inner.guards)
        return text, inner.may_fail

    def operands(self, parts: Iterable[Expression]) -> list[str]:
        """Return the operands of an operation that is NULL if one of them is NULL.

        Spark evaluates them in order until one is NULL, and DuckDB always evaluates all of them. So
        only the first operand may fail.
        """
        texts: list[str] = []
        for part in parts:
            text, may_fail = self.operand(part)
            if may_fail and texts:
                raise _NotSameError
            texts.append(text)
        return texts

    def guard(self, check: str) -> None:
        """Add a guard. It is evaluated even where the expression is not, so it must not fail."""
        if self.may_fail or self.is_guarded:
            raise _NotSameError
        self.guards.append(check)


# --- Nodes


def _column(writer: _Writer, node: nodes.Column) -> str:
    name, *fields = node.path
    return ".".join([writer.columns[name], *map(quoted_name, fields)])


def _in(writer: _Writer, node: nodes.In) -> str:
    _check_compared(writer, (node.operand, *node.options))
    operand, *options = writer.operands((node.operand, *node.options))
    if writer.may_fail:
        raise _NotSameError  # DuckDB evaluates nothing if an option is NULL
    return f"({operand} IN ({', '.join(options)}))"


def _joined(word: str, end: str) -> Callable[[_Writer, Any], str]:
    """Return a function that writes AND or OR.

    DuckDB evaluates operands in any order. If one may fail, CASE, which DuckDB evaluates in order,
    skips the other operands where Spark skips them: after an operand that has the value `end`.
    """

    def write(writer: _Writer, node: nodes.And | nodes.Or) -> str:
        operands = list(map(writer.operand, node.operands))
        *before, (found, may_fail) = operands
        for text, fails in reversed(before):
            may_fail |= fails
            both = f"({text} {word} {found})"
            found = f"(CASE WHEN {text} IS {end} THEN {end} ELSE {both} END)" if may_fail else both
        return found

    return write


def _key(writer: _Writer, node: Expression) -> str:
    """Return a key for an expression that is zero in the same rows."""
    while (
        isinstance(node, nodes.Cast)
        and not node.is_try
        and _is_exact_cast(writer.kind(node.operand), node.to)
    ):
        node = node.operand
    return repr(node)


# For each operator, the constants for which a value is not zero if the comparison is true, and the
# constants for which it is not zero if the comparison is not true.
_NOT_ZERO: Final[Mapping[str, tuple[Callable[[Any], bool], Callable[[Any], bool]]]] = (
    MappingProxyType({
        "=": (lambda one: one != 0, lambda one: one == 0),
        "<>": (lambda one: one == 0, lambda one: one != 0),
        ">": (lambda one: one >= 0, lambda one: one < 0),
        ">=": (lambda one: one > 0, lambda one: one <= 0),
        "<": (lambda one: one <= 0, lambda one: one > 0),
        "<=": (lambda one: one < 0, lambda one: one >= 0),
    })
)  # fmt: skip


def _nonzero(writer: _Writer, condition: Expression, *, is_true: bool) -> frozenset[str]:
    """Return expressions that are not zero, or NULL, where a condition is true, or is not true."""
    if isinstance(condition, nodes.And) and is_true:
        found = [_nonzero(writer, one, is_true=True) for one in condition.operands]
        return frozenset().union(*found)
    if not isinstance(condition, nodes.Comparison) or not isinstance(condition.right, Literal):
        return frozenset()
    value, tests = condition.right.value, _NOT_ZERO.get(condition.operator)
    if tests is None or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return frozenset()
    return frozenset({_key(writer, condition.left)}) if tests[not is_true](value) else frozenset()


def _is_never_zero(writer: _Writer, node: Expression, known: frozenset[str]) -> bool:
    """Return whether a value is never zero, or NULL, given the expressions that are not zero."""
    if isinstance(node, Literal):
        return node.value is None or bool(node.value)
    if not isinstance(node, nodes.Case):
        return _key(writer, node) in known
    for condition, value in node.branches:
        if not _is_never_zero(writer, value, known | _nonzero(writer, condition, is_true=True)):
            return False
        known |= _nonzero(writer, condition, is_true=False)
    return node.otherwise is None or _is_never_zero(writer, node.otherwise, known)


def _not(writer: _Writer, node: nodes.Not) -> str:
    return f"(NOT {writer.text(node.operand)})"


def _is_null(writer: _Writer, node: nodes.IsNull) -> str:
    text, may_fail = writer.operand(node.operand)
    if may_fail:
        raise _NotSameError  # DuckDB does not evaluate an operand that is never NULL
    return f"({text} IS NULL)"


def _comparison(writer: _Writer, node: nodes.Comparison) -> str:
    _check_compared(writer, (node.left, node.right))
    operator = "IS NOT DISTINCT FROM" if node.operator == "<=>" else node.operator
    left, right = writer.operands((node.left, node.right))
    if has_moved_constant(node, writer.schema):
        # DuckDB does not look into this function, which changes nothing.
        left, right = f"add({left})", f"add({right})"
    return f"({left} {operator} {right})"


def _check_compared(writer: _Writer, sides: Sequence[Expression]) -> None:
    kinds = {writer.kind(one) for one in sides}
    if not all(map(is_ordered_by_duckdb, kinds)) or VOID in kinds:
        raise _NotSameError
    decimals = [found for one in kinds if (found := decimal_of(one)) is not None]
    if len(kinds) > 1 and len(decimals) < len(kinds):
        raise _NotSameError
    if decimals:  # DuckDB casts both sides to a type with all digits
        whole = max(precision - scale for precision, scale in decimals)
        if whole + max(scale for _, scale in decimals) > MAX_PRECISION:
            raise _NotSameError


def _like(writer: _Writer, node: nodes.Like) -> str:
    pattern = node.pattern
    is_plain = isinstance(pattern, Literal) and isinstance(pattern.value, str)
    is_usual = not node.ignore_case and node.escape == "\\"
    if not is_plain or not is_usual or writer.kind(node.operand) != STRING:
        raise _NotSameError
    if "\\" in cast("str", cast("Literal", pattern).value):
        raise _NotSameError
    return f"({writer.text(node.operand)} LIKE {writer.text(pattern)})"


def _arithmetic(writer: _Writer, node: nodes.Arithmetic) -> str:
    if node.operator != "/":
        return _computed(writer, node, writer.operands((node.left, node.right)))
    # Spark evaluates the divisor first, and does not evaluate the dividend if the divisor is NULL.
    divisor, divisor_may_fail = writer.operand(node.right)
    dividend, may_fail = writer.operand(node.left)
    if divisor_may_fail:
        raise _NotSameError
    text = _computed(writer, node, (dividend, divisor))
    if not may_fail or (isinstance(node.right, nodes.Literal) and node.right.value is not None):
        return text
    return f"(CASE WHEN {divisor} IS NULL THEN NULL ELSE {text} END)"


def _computed(writer: _Writer, node: nodes.Arithmetic, sides: Sequence[str]) -> str:
    """Write an operation on operands that are written already."""
    kinds = writer.kind(node.left), writer.kind(node.right)
    if writer.may_fail and any(map(is_zero, (node.left, node.right))):
        raise _NotSameError  # DuckDB does not evaluate what is multiplied by zero
    if decimal_of(kinds[0]) is not None and decimal_of(kinds[1]) is not None:
        left, right = cast("tuple[PrimitiveType, PrimitiveType]", kinds)
        if node.operator == "/":
            return _decimal_quotient(writer, node, (left, right), sides)
        result = arithmetic_type(node.operator, left, right)
        if node.operator == "*" and left.scale + right.scale > result.scale:
            return _rounded_product(writer, (left, right), sides)
        writer.may_fail |= _may_overflow(node.operator, left, right, result)
        wide = _wide(sides[0], left, right, result.precision)
        return f"CAST(({wide} {node.operator} {sides[1]}) AS {column_text(result)})"
    text = f"({sides[0]} {node.operator} {sides[1]})"
    if kinds == (DOUBLE, DOUBLE):
        if node.operator in {"+", "-", "*"}:
            return text
        if node.operator == "/":
            return _quotient(writer, node, sides)
    if kinds in {(INTEGER, INTEGER), (LONG, LONG)} and node.operator in {"+", "-", "*"}:
        writer.may_fail = True
        return text
    raise _NotSameError


def _wide(text: str, left: PrimitiveType, right: PrimitiveType, digits: int) -> str:
    """Write a decimal operand so that DuckDB computes with 128 bits if the result needs them.

    If both operands have at most 18 digits, DuckDB computes with 64 bits, and longer results are
    errors.
    """
    if digits <= _SHORT_DIGITS or max(left.precision, right.precision) > _SHORT_DIGITS:
        return text
    precision = max(left.precision, _SHORT_DIGITS + 1)
    return f"CAST({text} AS DECIMAL({precision}, {left.scale}))"


def _rounded_product(
    writer: _Writer, kinds: tuple[PrimitiveType, PrimitiveType], sides: Sequence[str]
) -> str:
    """Write a product of decimals with fewer decimal places than the exact product."""
    left, right = kinds
    result, scale = arithmetic_type("*", left, right), left.scale + right.scale
    if scale >= MAX_PRECISION:
        raise _NotSameError
    sizes = [f"abs(CAST({side} AS DOUBLE))" for side in sides]
    # The exact product has at most 38 digits. One digit less makes up for the rounding of doubles.
    writer.guard(f"({sizes[0]} * {sizes[1]} < 1e{MAX_PRECISION - scale - 1})")
    digits = left.precision - left.scale + right.precision - right.scale + 1
    writer.may_fail |= digits > result.precision - result.scale
    wide = _wide(sides[0], left, right, left.precision + right.precision)
    return f"CAST(({wide} * {sides[1]}) AS {column_text(result)})"


def _quotient(writer: _Writer, node: nodes.Arithmetic, sides: Sequence[str]) -> str:
    """Write a quotient of doubles."""
    return _guarded(writer, node, sides, f"({sides[0]} / {sides[1]})")


def _guarded(writer: _Writer, node: nodes.Arithmetic, sides: Sequence[str], text: str) -> str:
    """Write a division that fails if the divisor is zero, as in Spark; in DuckDB it is NULL."""
    if _is_never_zero(writer, node.right, writer.nonzero):
        return text
    writer.may_fail = True
    is_zero = f"{sides[1]} = 0 AND {sides[0]} IS NOT NULL"
    return f"(CASE WHEN {is_zero} THEN error({_string(BY_ZERO)}) ELSE {text} END)"


def _decimal_quotient(
    writer: _Writer,
    node: nodes.Arithmetic,
    kinds: tuple[PrimitiveType, PrimitiveType],
    sides: Sequence[str],
) -> str:
    """Write a quotient of decimals; DuckDB only divides whole numbers exactly."""
    left, right = kinds
    result = arithmetic_type("/", left, right)
    shift = result.scale - left.scale + right.scale
    if not 0 <= shift < MAX_PRECISION:
        raise _NotSameError
    if left.precision + shift > MAX_PRECISION:
        writer.guard(_is_below(sides[0], MAX_PRECISION - shift, left.scale))
    if sum(map(len, sides)) > _MOST_REPEATED_CHARS:
        raise _NotSameError
    is_short = max(left.precision + shift, right.precision) <= _SHORT_DIGITS
    whole, most = ("BIGINT", _SHORT_DIGITS) if is_short else ("HUGEINT", MAX_PRECISION)
    dividend, divisor = (
        f"CAST({_unscaled(writer, *side)} AS {whole})" for side in zip(sides, kinds, strict=True)
    )
    dividend = f"({dividend} * CAST('{10**shift}' AS {whole}))"
    rounded = f"(abs({dividend}) + abs({divisor}) // 2) // abs({divisor})"
    signed = f"sign({dividend}) * sign({divisor}) * ({rounded})"
    unit = (
        f"CAST('{Decimal(1).scaleb(-result.scale):f}' AS DECIMAL({result.scale}, {result.scale}))"
    )
    text = f"CAST(CAST({signed} AS DECIMAL({most}, 0)) * {unit} AS {column_text(result)})"
    digits = left.precision - left.scale + right.scale + result.scale
    writer.may_fail |= digits > result.precision
    return _guarded(writer, node, sides, text)


def _unscaled(writer: _Writer, text: str, kind: PrimitiveType) -> str:
    """Write the whole number that a decimal is stored as, as a decimal."""
    if not kind.scale:
        return text
    if kind.scale >= MAX_PRECISION:
        raise _NotSameError
    if kind.precision + kind.scale > MAX_PRECISION:
        writer.guard(_is_below(text, MAX_PRECISION - kind.scale, kind.scale))
    power = decimal_type(kind.scale + 1, 0)
    wide = _wide(text, kind, power, kind.precision + power.precision)
    return f"({wide} * CAST('{10**kind.scale}' AS {column_text(power)}))"


def _is_below(text: str, digits: int, scale: int) -> str:
    """Write whether a decimal is stored as a whole number of at most this number of digits."""
    most = Decimal(10**digits - 1).scaleb(-scale, _ALL_DIGITS)
    return f"(abs({text}) <= CAST('{most:f}' AS DECIMAL({MAX_PRECISION}, {scale})))"


def _cast(writer: _Writer, node: nodes.Cast) -> str:
    source = writer.kind(node.operand)
    text = writer.text(node.operand)
    if node.is_try:
        raise _NotSameError
    decimal, wanted = decimal_of(source), decimal_of(node.to)
    if wanted is not None and (source in INTEGRALS or decimal is not None):
        # Both round halves away from zero, and refuse too large numbers.
        writer.may_fail |= not _is_exact_cast(source, node.to)
        if decimal is not None and decimal[0] > _SHORT_DIGITS and decimal[1] > wanted[1]:
            text = f"round({text}, {wanted[1]})"  # twice as fast as a cast that rounds
    elif decimal is not None and node.to in INTEGRALS:
        writer.may_fail = True
        return f"CAST(trunc({text}) AS {column_text(node.to)})"
    elif not _is_exact_cast(source, node.to):
        raise _NotSameError
    return text if source == node.to else f"CAST({text} AS {column_text(node.to)})"


def _case(writer: _Writer, node: nodes.Case) -> str:
    known, texts = frozenset[str](), []
    for condition, value in node.branches:
        test, _ = writer.operand(condition, known)
        found, _ = writer.operand(value, known | _nonzero(writer, condition, is_true=True))
        known |= _nonzero(writer, condition, is_true=False)
        texts.append(f"WHEN {test} THEN {found}")
    otherwise, last = node.otherwise, f"CAST(NULL AS {column_text(writer.kind(node))})"
    if otherwise is not None:
        last, _ = writer.operand(otherwise, known)
    if len({writer.kind(value) for value in _values_of(node)}) > 1:
        raise _NotSameError
    return f"(CASE {' '.join(texts)} ELSE {last} END)"


def _values_of(node: nodes.Case) -> list[Expression]:
    values = [value for _, value in node.branches]
    return values if node.otherwise is None else [*values, node.otherwise]


def _call(writer: _Writer, node: nodes.Call) -> str:
    write = _FUNCTIONS.get(node.function)
    if write is None:
        raise _NotSameError
    kinds = [writer.kind(one) for one in node.arguments]
    arguments = writer.operands(node.arguments)
    if node.function == "coalesce" and writer.may_fail:
        raise _NotSameError  # Spark evaluates arguments only until one is not NULL
    found = write(node, kinds, arguments)
    if isinstance(found, str):
        return found
    for check in found.guards:
        writer.guard(check)
    return found.text


def _may_overflow(
    operator: str, left: PrimitiveType, right: PrimitiveType, result: PrimitiveType
) -> bool:
    """Return whether an operation on decimals, which DuckDB computes exactly, may overflow."""
    (p1, s1), (p2, s2) = (left.precision, left.scale), (right.precision, right.scale)
    match operator:
        case "+" | "-":
            scale = max(s1, s2)
            digits = max(p1 - s1, p2 - s2) + scale + 1
            if digits - 1 > MAX_PRECISION:
                raise _NotSameError  # DuckDB casts both sides to the larger scale first
        case "*":
            scale, digits = s1 + s2, p1 + p2 + 1
        case _:
            raise _NotSameError
    if scale != result.scale:
        raise _NotSameError  # Spark rounds the result
    return digits > MAX_PRECISION


def _is_exact_cast(source: DataType, to: DataType) -> bool:
    """Return whether DuckDB casts a type as Spark does and without errors."""
    if source in (to, VOID):
        return True
    decimal, wanted = decimal_of(source), decimal_of(to)
    if source in INTEGRALS:
        if to in INTEGRALS:
            return INTEGRALS.index(source) <= INTEGRALS.index(to)
        if wanted is not None:
            return wanted[0] - wanted[1] >= _digits(source)
        return to == DOUBLE
    if decimal is not None and wanted is not None:
        return wanted[1] >= decimal[1] and wanted[0] - wanted[1] >= decimal[0] - decimal[1]
    if decimal is not None and to == DOUBLE:
        return decimal[0] <= _EXACT_DIGITS and decimal[1] <= _EXACT_SCALE
    return (source, to) == (FLOAT, DOUBLE)


def _digits(kind: DataType) -> int:
    return cast("PrimitiveType", kind).primitive.decimal_digits


def _constant(_: _Writer, node: Literal) -> str:
    value, kind = node.value, node.type
    if kind is None or node.is_far_moment or node.nanos:
        raise _NotSameError
    if value is None:
        return f"CAST(NULL AS {column_text(kind)})"
    if kind in INTEGRALS:
        return f"CAST({value} AS {column_text(kind)})"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS {column_text(kind)})"
    write = _CONSTANTS.get(kind)
    if write is None:
        raise _NotSameError
    return write(value)


def _string(value: str) -> str:
    if "\0" in value:
        raise _NotSameError
    return quoted_string(value)


def _finite(value: float) -> str:
    if not math.isfinite(value):
        raise _NotSameError
    return f"CAST('{value!r}' AS DOUBLE)"


_CONSTANTS: Final[Mapping[DataType, Callable[[Any], str]]] = MappingProxyType({
    BOOLEAN: lambda value: str(value).lower(),
    DATE: lambda value: f"DATE '{value.isoformat()}'",
    DOUBLE: _finite,
    STRING: _string,
    TIMESTAMP: lambda value: f"TIMESTAMPTZ '{value.isoformat(sep=' ')}'",
    TIMESTAMP_NTZ: lambda value: f"TIMESTAMP '{value.isoformat(sep=' ')}'",
})  # fmt: skip


_NODES: Final[Mapping[type[Expression], Callable[[_Writer, Any], str]]] = MappingProxyType({
    Literal: _constant,
    nodes.And: _joined("AND", "FALSE"),
    nodes.Arithmetic: _arithmetic,
    nodes.Call: _call,
    nodes.Case: _case,
    nodes.Cast: _cast,
    nodes.Column: _column,
    nodes.Comparison: _comparison,
    nodes.In: _in,
    nodes.IsNull: _is_null,
    nodes.Like: _like,
    nodes.Not: _not,
    nodes.Or: _joined("OR", "TRUE"),
})  # fmt: skip


# --- Functions: each checks the types of its arguments, and returns the call


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A call, and the conditions under which it is exact; see `Translation`."""

    text: str
    guards: tuple[str, ...]


def _abs(_: nodes.Call, kinds: list[DataType], texts: list[str]) -> str:
    if decimal_of(kinds[0]) is None and kinds[0] != DOUBLE:
        raise _NotSameError
    return f"abs({texts[0]})"


def _in_case(name: str) -> Callable[[nodes.Call, list[DataType], list[str]], _Guarded]:
    def write(_: nodes.Call, kinds: list[DataType], texts: list[str]) -> _Guarded:
        if kinds != [STRING]:
            raise _NotSameError
        # DuckDB has simple mappings of characters, and Java full ones ("ß" becomes "SS").
        is_ascii = f"(strlen({texts[0]}) = length({texts[0]}))"
        return _Guarded(f"{name}({texts[0]})", (is_ascii,))

    return write


def _date_add(_: nodes.Call, kinds: list[DataType], texts: list[str]) -> _Guarded:
    day, days = texts
    if kinds[0] != DATE or kinds[1] not in INTEGRALS or kinds[1] == LONG:
        raise _NotSameError
    is_usual = f"({day} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31')"
    is_near = f"({days} BETWEEN -1000000 AND 1000000)"
    return _Guarded(f"({day} + CAST({days} AS INTEGER))", (is_usual, is_near))


def _coalesce(_: nodes.Call, kinds: list[DataType], texts: list[str]) -> str:
    if len(set(kinds)) > 1:
        raise _NotSameError
    return f"coalesce({', '.join(texts)})"


def _concat(_: nodes.Call, kinds: list[DataType], texts: list[str]) -> str:
    if set(kinds) != {STRING}:
        raise _NotSameError
    return f"({' || '.join(texts)})"


def _length(_: nodes.Call, kinds: list[DataType], texts: list[str]) -> str:
    if kinds != [STRING]:
        raise _NotSameError
    return f"CAST(length({texts[0]}) AS INTEGER)"


def _round(node: nodes.Call, kinds: list[DataType], texts: list[str]) -> str:
    decimal = decimal_of(kinds[0])
    if decimal is None:
        raise _NotSameError  # Spark rounds the decimal digits of a double
    digits = node.arguments[1] if len(node.arguments) > 1 else Literal(0)
    places = digits.value if isinstance(digits, Literal) else None
    precision, scale = decimal
    if not isinstance(places, int) or not 0 <= places < scale:
        raise _NotSameError
    # Both round half away from zero. DuckDB keeps the precision, which is enough for a carry.
    return (
        f"CAST(round({texts[0]}, {places}) AS DECIMAL({precision - scale + places + 1}, {places}))"
    )


def _substring(node: nodes.Call, kinds: list[DataType], texts: list[str]) -> str:
    # DuckDB counts other positions than Spark for a start before the first character.
    rest = node.arguments[1:]
    is_constant = all(isinstance(one, Literal) and isinstance(one.value, int) for one in rest)
    if kinds[0] != STRING or not rest or not is_constant:
        raise _NotSameError
    start, *lengths = (cast("Literal", one).value for one in rest)
    if start < 1 or any(length < 0 for length in lengths):
        raise _NotSameError
    return f"substring({', '.join(texts)})"


def _date_part(name: str, place: int) -> Callable[[nodes.Call, list[DataType], list[str]], str]:
    def write(_: nodes.Call, kinds: list[DataType], texts: list[str]) -> str:
        if kinds != [DATE]:
            raise _NotSameError
        day = texts[0]
        # DuckDB has no year, month or day for its infinite dates, which are dates in Spark.
        first, last = _FIRST_DAY[place], _LAST_DAY[place]
        ends = (
            f"WHEN {day} = DATE '-infinity' THEN {first} WHEN {day} = DATE 'infinity' THEN {last}"
        )
        return f"CAST(CASE {ends} ELSE {name}({day}) END AS INTEGER)"

    return write


_FUNCTIONS: Final[
    Mapping[str, Callable[[nodes.Call, list[DataType], list[str]], str | _Guarded]]
] = MappingProxyType({
    "abs": _abs,
    "coalesce": _coalesce,
    "concat": _concat,
    "date_add": _date_add,
    "dayofmonth": _date_part("day", 3),
    "length": _length,
    "lower": _in_case("lower"),
    "month": _date_part("month", 2),
    "quarter": _date_part("quarter", 1),
    "round": _round,
    "substring": _substring,
    "upper": _in_case("upper"),
    "year": _date_part("year", 0),
})  # fmt: skip
