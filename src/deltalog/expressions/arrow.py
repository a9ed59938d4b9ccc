"""Evaluating resolved expressions over Arrow data.

Contains three-valued logic, the choice of rows for which an operand is evaluated, the conversion of
results to arrays, and `fold`. Other modules contain the kernels of functions.

Spark evaluates row by row and stops early: in `b <> 0 AND a / b > 1`, no row with b = 0 reaches the
division. Kernels evaluate whole columns, and in ANSI mode a division by zero is an error. So
an operand that can fail is evaluated only for the rows that Spark evaluates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.kernels import FALSE, TRUE, Array, Datum, compute, pc
from deltalog._util.small_arrays import small_scalar
from deltalog.errors import DeltaError, InternalError, InvalidInputError
from deltalog.expressions import (
    arithmetic,
    arrays,
    comparing,
    containers,
    datetimes,
    hashing,
    java_functions,
    nodes,
    numbers,
    strings,
)
from deltalog.expressions.analyze import type_of
from deltalog.expressions.arithmetic import calculate
from deltalog.expressions.casts import cast_in_zone
from deltalog.expressions.functions import find_function
from deltalog.expressions.literals import array_of, from_scalar, to_scalar
from deltalog.expressions.mistakes import advice_on_strings
from deltalog.expressions.nodes import Call, Cast, Column, Comparison, Expression, Literal
from deltalog.expressions.render import shown_sql, to_sql
from deltalog.expressions.rows import (
    NO,
    YES,
    Where,
    as_array,
    by_row,
    choose,
    flat,
    nulls,
    spent_on,
    taken,
    with_nulls,
)
from deltalog.expressions.trees import (
    LOGIC,
    VARIABLE,
    columns,
    conjunction,
    conjuncts,
    flattened,
    fold_up,
    variables,
    walk,
    with_children,
)
from deltalog.schema.arrow import from_arrow_schema, from_arrow_type, to_arrow_type
from deltalog.schema.types import BOOLEAN, VOID, DataType, PrimitiveType, StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence


# Batches with fewer rows are concatenated before the evaluation, because copying a few rows is
# cheaper than calling the kernels for each batch.
_MIN_BATCH_ROWS: Final = 16_384
KERNELS: Final[dict[str, Callable[..., Any]]] = {
    **numbers.KERNELS,
    **strings.KERNELS,
    **datetimes.KERNELS,
    **containers.KERNELS,
    **arrays.KERNELS,
    **hashing.KERNELS,
    **java_functions.KERNELS,
    **arithmetic.KERNELS,
}
ROWS: Final[dict[str, Callable[..., Any]]] = {
    **arrays.ROWS,
    **java_functions.ROWS,
    **numbers.ROWS,
    **java_functions.TEXT_ROWS,
}
ROWS_WITH_NULLS: Final[dict[str, Callable[..., Any]]] = {
    **java_functions.TEXT_ROWS_WITH_NULLS,
}
_SAFE: Final = (
    Column, Literal, nodes.Variable, nodes.Comparison, nodes.And, nodes.Or, nodes.Not, nodes.IsNull,
    nodes.Collate, nodes.In,
)  # fmt: skip

_INPUTS: Final = (Column, Literal, nodes.Variable)
_DIVISIONS: Final = frozenset({"/", "%", "div", "pmod"})

# Exceptions that a kernel raises for invalid data, such as a value that is out of range.
_OF_VALUES: Final = (
    pa.ArrowInvalid, pa.ArrowCapacityError, pa.ArrowIndexError, MemoryError, ValueError,
    ArithmeticError, RecursionError, re.error,
)  # fmt: skip


def evaluate(
    resolved: Expression, data: pa.RecordBatch | pa.Table
) -> pa.Array[Any] | pa.ChunkedArray[Any]:
    """Return the expression's value for every row; see `evaluation.evaluate`."""
    if isinstance(data, pa.RecordBatch):
        array: pa.Array[Any] = as_array(_evaluate(resolved, data), data.num_rows)
        return array
    needed = sorted({path[0] for path in columns(resolved)} & set(data.column_names))
    if not needed:
        return pa.chunked_array([as_array(_evaluate(resolved, data), data.num_rows)])
    table = data.select(needed)
    num_chunks = max(column.num_chunks for column in table.columns)
    if num_chunks > 1 and table.num_rows < _MIN_BATCH_ROWS * num_chunks:
        table = table.combine_chunks()
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    arrays: Any = [evaluate(resolved, batch) for batch in batches]
    return pa.chunked_array(arrays)


def filter_mask(
    resolved: Expression, data: pa.RecordBatch | pa.Table
) -> pa.BooleanArray | pa.ChunkedArray[Any]:
    """Return the rows for which the condition is true; NULL counts as false, as in WHERE."""
    mask: Any = evaluate(narrowed(resolved, data), data)
    found: pa.BooleanArray = compute.fill_null(mask, NO) if mask.null_count else mask
    return found


def _evaluate(node: Expression, data: Any) -> Datum:
    try:
        return spent_on(_RULES[type(node)](node, data), is_made=not isinstance(node, _INPUTS))
    except InvalidInputError as error:
        raise _located(node, error) from error.__cause__
    except DeltaError:
        raise
    except _OF_VALUES as error:
        raise _marked(InvalidInputError(_failed(node, error))) from error
    except Exception as error:
        # Catch any exception of a kernel, so that the message contains the expression and users can
        # find the constraint.
        raise InternalError(_failed(node, error)) from error


def _located(node: Expression, error: InvalidInputError) -> InvalidInputError:
    """Return an error of a kernel with the innermost expression that failed."""
    if getattr(error, _MARK, False):
        advice = advice_on_strings(node)
        return _marked(error.with_message(f"{error}{advice}")) if advice else error
    if any(_OWN_NAME.fullmatch(path[0]) for path in columns(node)):
        return _marked(error)  # the user did not write these names
    sql = shown_sql(node)
    text = error.args[0]
    return _marked(error if sql in text else error.with_message(f"{text}, in {sql}"))


def _marked(error: InvalidInputError) -> InvalidInputError:
    setattr(error, _MARK, True)
    return error


_MARK: Final = "_has_expression"
"""The attribute of an error whose message contains the expression that failed."""


def _failed(node: Expression, error: Exception) -> str:
    reason = str(error) or "there is not enough memory"  # a MemoryError may have no message
    named = "" if isinstance(error, pa.ArrowInvalid) else f"{type(error).__name__}: "
    return f"cannot compute {shown_sql(node)}: {named}{reason}"


def _column(node: Column, data: Any) -> Datum:
    try:
        found: Any = data.column(node.path[0])
    except KeyError as error:
        raise InternalError(f"the data has no column {node.path[0]!r}") from error
    for name in node.path[1:]:
        if isinstance(found, pa.StructArray) and not found.null_count:
            found = found.field(name)  # faster than Arrow's kernel, which processes all fields
        else:
            found = compute.struct_field(found, [name])
    return found


def _variable(node: nodes.Variable, data: Any) -> Datum:
    return data.column(VARIABLE + node.name)


def _literal(node: Literal, _data: Any) -> Datum:
    return to_scalar(node.value, node.type or VOID)


def _comparison(node: nodes.Comparison, data: Any) -> Datum:
    left = _evaluate(node.left, data)
    is_null_safe = node.operator == "<=>"
    right = _evaluate(node.right, data) if is_null_safe else _beside(left, node.right, data)
    return comparing.compare(node.operator, left, right)


def _beside(first: Datum, node: Expression, data: Any) -> Datum:
    """Evaluate the second operand only for the rows in which the first is not NULL, as in Spark."""
    has_nulls = not first.is_valid if isinstance(first, pa.Scalar) else first.null_count
    if not has_nulls or not can_fail(node):
        return _evaluate(node, data)
    return evaluate_where(node, data, compute.is_valid(first))


def _logic(node: nodes.And | nodes.Or | nodes.Not, data: Any) -> Datum:
    """Evaluate AND, OR and NOT without recursion, so that they may be nested to any depth."""
    steps = [_operands_in_turn(node, data)]
    value: Any = None
    while steps:
        try:
            operand, rows = steps[-1].send(value)
        except StopIteration as done:
            steps.pop()
            value = done.value
            continue
        if isinstance(operand, LOGIC):
            steps.append(_operands_in_turn(operand, rows))
            value = None
        else:
            value = _evaluate(operand, rows)
    return value


def _operands_in_turn(node: Any, data: Any) -> Generator[tuple[Expression, Any], Datum, Datum]:
    """Yield each operand with the rows that need it; return the value of the whole node."""
    if isinstance(node, nodes.Not):
        return compute.invert(_as_boolean((yield node.operand, data)))
    # An operand that is false in AND, or true in OR, decides the result, even if others are NULL.
    decisive = isinstance(node, nodes.Or)
    kernel = pc.or_kleene if decisive else pc.and_kleene
    found: Any = FALSE if decisive else TRUE
    operands = node.operands
    if not can_fail(node):
        # The operands may be evaluated in any order. Evaluate nested AND, OR and NOT first, so that
        # fewer results are in memory at the same time.
        operands = sorted(operands, key=lambda operand: not isinstance(operand, LOGIC))
    for operand in operands:
        if not can_fail(operand):
            part = yield operand, data
        else:
            undecided = compute.fill_null(compute.not_equal(found, decisive), YES)
            rows = Where(data, undecided)
            if rows.picked is None:
                part = _unevaluated(operand, data)
            else:
                part = rows.spread((yield operand, rows.picked))
        found = kernel(found, _as_boolean(part))
    return found


def _as_boolean(datum: Datum) -> Datum:
    return compute.cast(datum, pa.bool_()) if pa.types.is_null(datum.type) else datum


def can_fail(node: Expression) -> bool:
    """Whether the evaluation can raise an error for some values."""
    # One pass over the tree computes the answer for every node, and caches it in the node.
    return node.fact("can fail", lambda: fold_up(node, _can_fail, inside=LOGIC))


def _can_fail(node: Expression, operands: Sequence[bool]) -> bool:
    def find() -> bool:
        if isinstance(node, LOGIC):
            return any(operands)
        return any(not isinstance(part, _SAFE) for part in walk(node))

    return node.fact("can fail", find)


def evaluate_where(node: Expression, data: Any, mask: Datum) -> Datum:
    """Evaluate the expression in the rows of `mask`; the result is NULL in other rows.

    Args:
        node: a resolved expression.
        data: a batch.
        mask: booleans without NULL.
    """
    rows = Where(data, mask)
    if rows.picked is None:
        return _unevaluated(node, data)
    return rows.spread(_evaluate(node, rows.picked))


def _unevaluated(node: Expression, data: Any) -> Datum:
    # Do not evaluate the node: without columns, as in `1 / 0`, it can fail even for no rows.
    return nulls(data.num_rows, _arrow_type_of(node, data.schema))


def _arrow_type_of(node: Expression, schema: pa.Schema) -> Any:
    """Return the Arrow type of a node's result; some Delta types share one Arrow type."""
    match node:
        case Column(path):
            kind: Any = schema
            for name in path:
                kind = kind.field(name).type
            return kind
        case nodes.Case(branches):
            return _arrow_type_of(branches[0][1], schema)
        case Call("coalesce", arguments):
            return _arrow_type_of(arguments[0], schema)
        case _:
            known = from_arrow_schema(schema, declared=True, fine=True)
            return to_arrow_type(type_of(node, known))


def _is_null(node: nodes.IsNull, data: Any) -> Datum:
    return compute.is_null(_evaluate(node.operand, data))


def _members(node: nodes.In, kind: pa.DataType) -> comparing.Members:
    """Return the constants of an IN list, converted once and not for each batch."""

    def find() -> comparing.Members:
        constants = [option for option in node.options if isinstance(option, Literal)]
        scalars = [to_scalar(option.value, option.type or VOID) for option in constants]
        return comparing.members(scalars, kind)

    return node.fact(f"members as {kind}", find)


def _in(node: nodes.In, data: Any) -> Datum:
    operand = _evaluate(node.operand, data)
    found = comparing.is_member(operand, _members(node, operand.type))
    # As in Spark, an option is evaluated only for rows whose value equals no earlier option.
    others = node.fact(
        "computed options", lambda: [one for one in node.options if not isinstance(one, Literal)]
    )
    for option in others:
        undecided = compute.fill_null(compute.invert(found), YES)
        undecided = compute.and_(undecided, compute.is_valid(operand))
        value = evaluate_where(option, data, undecided)
        found = pc.or_kleene(found, comparing.compare("=", operand, value))
    return found


def _like(node: nodes.Like, data: Any) -> Datum:
    operand = _evaluate(node.operand, data)
    pattern = _evaluate(node.pattern, data)
    if isinstance(pattern, pa.Scalar):
        if not pattern.is_valid:
            return comparing.all_null(operand)
        return comparing.like(operand, pattern.as_py(), node.escape, ignore_case=node.ignore_case)
    return comparing.like_by_row(operand, pattern, node.escape, ignore_case=node.ignore_case)


_OWN_NAME = re.compile(r"c\d+|col-[0-9a-f-]{36}|__.*")
"""Names that deltalog gives to columns for a while, or in files."""


def _cast(node: nodes.Cast, data: Any) -> Datum:
    operand = _evaluate(node.operand, data)
    source = from_arrow_type(operand.type, declared=True, fine=True)
    return cast_in_zone(operand, source, node.to, is_try=node.is_try, time_zone=node.time_zone)


def _collate(node: nodes.Collate, data: Any) -> Datum:
    return comparing.keys(_evaluate(node.operand, data), node.collation)


def _case(node: nodes.Case, data: Any) -> Datum:
    branches = list(node.branches)
    if node.otherwise is not None:
        branches.append((Literal(YES, BOOLEAN), node.otherwise))
    # A branch is evaluated only for the rows for which no earlier condition is true.
    pending: Any = as_array(TRUE, data.num_rows)
    found: Any = None
    for condition, value in branches:
        holds = evaluate_where(condition, data, pending)
        holds = compute.and_(pending, compute.fill_null(_as_boolean(holds), NO))
        part = as_array(evaluate_where(value, data, holds), data.num_rows)
        found = part if found is None else choose(holds, part, found)
        if found is part:
            found = compute.if_else(holds, part, small_scalar(None, part.type))
        pending = compute.and_(pending, compute.invert(holds))
    return found


def _arithmetic(node: nodes.Arithmetic, data: Any) -> Datum:
    return calculate(node.operator, *_operands(node.operator, (node.left, node.right), data))


def _operands(operator: str, operands: tuple[Expression, ...], data: Any) -> tuple[Datum, Datum]:
    """Evaluate both operands; Spark evaluates a divisor first."""
    left, right = operands
    if operator in _DIVISIONS:
        divisor = _evaluate(right, data)
        return _beside(divisor, left, data), divisor
    first = _evaluate(left, data)
    return first, _beside(first, right, data)


def _call(node: Call, data: Any) -> Datum:
    if node.function == "coalesce":
        return _coalesce(node, data)
    if node.function == "nanvl":
        return _nanvl(node, data)
    if node.function in containers.LAMBDAS:
        bound = [_argument(argument, data) for argument in node.arguments]
        return containers.LAMBDAS[node.function](data.num_rows, *bound)
    if node.function in _DIVISIONS:
        return KERNELS[node.function](*_operands(node.function, node.arguments, data))
    collates = [one for one in node.arguments if isinstance(one, nodes.Collate)]
    if collates and node.function in comparing.TESTS:
        return _collated_test(node, collates[0].collation, data)
    values = [_evaluate(argument, data) for argument in node.arguments]
    if node.function in KERNELS:
        return KERNELS[node.function](*values)
    result = _result_type(node, values)
    if node.function in ROWS:
        return by_row(ROWS[node.function], result, *values)
    return with_nulls(ROWS_WITH_NULLS[node.function], result, *values)


def _collated_test(node: Call, collation: str, data: Any) -> Datum:
    # Pass the original strings, because a collation key does not show whether a string contains
    # `İ`.
    text, part = (
        _evaluate(one.operand if isinstance(one, nodes.Collate) else one, data)
        for one in node.arguments
    )
    return comparing.test(node.function, text, part, collation)


def _result_type(node: Call, values: list[Datum]) -> pa.DataType:
    function = find_function(node.function, len(values))
    typed = zip(
        node.arguments,
        (from_arrow_type(value.type, declared=True, fine=True) for value in values),
        strict=True,
    )
    return to_arrow_type(function.types(list(typed))[1])


def _argument(node: Expression, data: Any) -> Any:
    """Return the value of an argument; for a lambda, a function that computes its body."""
    if not isinstance(node, nodes.Lambda):
        return _evaluate(node, data)
    return partial(_body, node, data)


def _body(node: nodes.Lambda, data: Any, rows: Array, *parameters: Array) -> Array:
    """Return the value of a lambda's body.

    Args:
        node: the lambda.
        data: the batch around the lambda.
        rows: for each call, the row of `data` that it belongs to.
        parameters: one array per parameter, with one value per call. Parameters that the lambda
            does not name are ignored.
    """
    own = [VARIABLE + name for name in node.parameters]
    outer = {path[0] for path in columns(node.body)}
    outer |= {VARIABLE + name for name in variables(node.body)} - set(own)
    names = sorted(outer & set(data.schema.names))
    arrays = [taken(flat(data.column(name)), rows) for name in names]
    batch = pa.RecordBatch.from_arrays([*arrays, *parameters[: len(own)]], names=[*names, *own])
    return as_array(_evaluate(node.body, batch), len(rows))


def _coalesce(node: Call, data: Any) -> Datum:
    found = as_array(_evaluate(node.arguments[0], data), data.num_rows)
    for argument in node.arguments[1:]:
        is_open = compute.is_null(found)
        if not compute.any(is_open).as_py():
            break
        found = choose(is_open, evaluate_where(argument, data, is_open), found)
    return found


def _nanvl(node: Call, data: Any) -> Datum:
    value, other = node.arguments
    found = as_array(_evaluate(value, data), data.num_rows)
    is_nan = compute.fill_null(compute.is_nan(found), NO)
    return compute.if_else(is_nan, evaluate_where(other, data, is_nan), found)


_RULES: Final[dict[type[Expression], Callable[[Any, Any], Datum]]] = {
    Column: _column,
    Literal: _literal,
    nodes.Comparison: _comparison,
    nodes.And: _logic,
    nodes.Or: _logic,
    nodes.Not: _logic,
    nodes.IsNull: _is_null,
    nodes.In: _in,
    nodes.Like: _like,
    nodes.Cast: _cast,
    nodes.Collate: _collate,
    nodes.Case: _case,
    nodes.Arithmetic: _arithmetic,
    nodes.Variable: _variable,
    Call: _call,
}


# --- Shortening a long OR to the operands that can be true for a row of the batch


MANY: Final = 64
"""The minimum number of operands for which shortening an OR saves time."""
_FLIPPED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True, eq=False)
class _Limits:
    """The lower and upper limits of a column in all operands of an OR; NULL means no limit."""

    name: str
    lows: pa.Array[Any]
    highs: pa.Array[Any]


def narrowed(condition: Expression, data: pa.RecordBatch | pa.Table) -> Expression:
    """Return the condition without the operands of a long OR that match no row of the data.

    Args:
        condition: the resolved condition of a filter.
        data: the rows.

    Cost: a pass over the OR once, then a few kernels for each batch.
    """
    if not condition.fact("has long ORs", lambda: any(map(_is_long, conjuncts(condition)))):
        return condition
    parts = [_narrowed(part, data) if _is_long(part) else part for part in conjuncts(condition)]
    return conjunction(parts)


def _is_long(part: Expression) -> bool:
    return isinstance(part, nodes.Or) and len(part.operands) > MANY


def _narrowed(part: Any, data: Any) -> Expression:
    keep: Any = None
    for limits in part.fact("limits", lambda: _limits(part.operands)):
        column = data.column(limits.name)
        if column.type != limits.lows.type:
            continue
        ends = compute.min_max(column)
        fits = compute.and_(
            compute.fill_null(compute.less_equal(limits.lows, ends["max"]), limits.lows.is_null()),
            compute.fill_null(
                compute.greater_equal(limits.highs, ends["min"]), limits.highs.is_null()
            ),
        )
        keep = fits if keep is None else compute.and_(keep, fits)
    if keep is None:
        return part  # type: ignore[no-any-return]  # `part` is an OR
    kept = [part.operands[place] for place in compute.indices_nonzero(keep).to_pylist()]
    if not kept:
        return Literal(value=False, type=BOOLEAN)
    return kept[0] if len(kept) == 1 else nodes.Or(tuple(kept))


def _limits(operands: Sequence[Expression]) -> list[_Limits]:
    """Return the limits of each column that is limited in every operand."""
    each = [_of_operand(operand) for operand in operands]
    common = set(each[0]).intersection(*each[1:])
    found = []
    for name, kind in sorted(common, key=str):
        arrow_type = to_arrow_type(kind)
        if pt.is_floating(arrow_type):
            continue  # the maximum of a batch ignores NaN, the greatest value
        try:
            lows, highs = (
                array_of([to_scalar(ends[name, kind][side], kind) for ends in each], arrow_type)
                for side in (0, 1)
            )
        except (DeltaError, pa.ArrowException, AttributeError):
            continue
        found.append(_Limits(name, lows, highs))
    return found


def _of_operand(operand: Expression) -> dict[tuple[str, PrimitiveType], tuple[Any, Any]]:
    """Return an operand's lower and upper limit by column and type; None means no limit."""
    found: dict[tuple[str, PrimitiveType], tuple[Any, Any]] = {}
    for part in conjuncts(operand):
        if isinstance(part, Comparison):
            operator, left, right = part.operator, part.left, part.right
            if isinstance(left, Literal):
                operator, left, right = _FLIPPED.get(operator, operator), right, left
            options: tuple[Expression, ...] = (right,)
        elif isinstance(part, nodes.In):
            operator, left, options = "in", part.operand, part.options
        else:
            continue
        values = [one.value for one in options if isinstance(one, Literal)]
        first = options[0] if options else None
        if not isinstance(left, Column) or len(left.path) > 1 or len(values) < len(options):
            continue
        if not isinstance(first, Literal) or not isinstance(first.type, PrimitiveType):
            continue
        ends = _ends(operator, values)
        if ends is not None:
            low, high = found.get((left.path[0], first.type), (None, None))
            # If an operand has two lower or two upper limits of a column, either limit is valid.
            found[left.path[0], first.type] = (
                ends[0] if low is None else low,
                ends[1] if high is None else high,
            )
    return found


def _ends(operator: str, values: list[Any]) -> tuple[Any, Any] | None:
    if not values or any(value is None for value in values):
        return None
    match operator:
        case "=" | "in":
            return min(values), max(values)
        case "<" | "<=":
            return None, values[0]
        case ">" | ">=":
            return values[0], None
        case _:
            return None


# --- Replacing the constant parts of a condition by their values, and long chains by IN lists


_NO_COLUMNS: Final = StructType()
_VARYING: Final = (Column, nodes.Variable, nodes.Lambda)
# The minimum number of comparisons that IN lists must save. Otherwise an OR or AND is not changed.
_MANY: Final = 16


def fold(resolved: Expression) -> Expression:
    """Replace every constant part of an expression by its value.

    `d >= current_date() - 7` becomes a comparison with a date, so that statistics can skip files. A
    part whose evaluation raises an error is not replaced, because perhaps no row reaches it. As in
    Spark, `FALSE AND x` becomes FALSE, and `TRUE OR x` becomes TRUE. A long OR of `x = constant`
    becomes `x IN (…)`, and a long AND of `x <> constant` becomes NOT IN, because a list lookup is
    faster than many comparisons.
    """
    return fold_up(resolved, _folded)[0]


def _folded(resolved: Expression, found: list[tuple[Expression, bool]]) -> tuple[Expression, bool]:
    """Fold a node whose children are already folded; return it, and whether it is constant."""
    if isinstance(resolved, Literal):
        return resolved, True
    is_constant = not isinstance(resolved, _VARYING) and all(known for _, known in found)
    node = flattened(with_children(resolved, [part for part, _ in found]))
    if isinstance(node, nodes.And | nodes.Or):
        decides = isinstance(node, nodes.Or)
        for part in node.operands:
            if isinstance(part, Literal) and part.value is decides:
                return part, True
        node = _with_lists(node)
    # A constant need not be a literal, because there are no literals of arrays and structs.
    if not is_constant or not found:
        return node, is_constant
    data_type = type_of(node, _NO_COLUMNS)
    if not isinstance(data_type, PrimitiveType):
        return node, True
    try:
        # Create the table only here. As a module constant, it would slow down `import deltalog`,
        # because pyarrow imports pandas when it converts its first list.
        value = from_scalar(evaluate(node, pa.table({"": [0]}))[0])
    except InvalidInputError:
        return node, True
    return Literal(value, data_type), True


def _with_lists(node: nodes.And | nodes.Or) -> Expression:
    if len(node.operands) <= _MANY:
        return node
    lists: dict[tuple[str, DataType | None], list[Literal]] = {}
    operands: dict[tuple[str, DataType | None], Expression] = {}
    others: dict[int, Expression] = {}
    for place, part in enumerate(node.operands):
        tested = _tested(part, "=" if isinstance(node, nodes.Or) else "<>")
        if tested is None:
            others[place] = part
            continue
        operand, options = tested
        key = to_sql(operand), options[0].type
        if key not in lists:
            # The IN list replaces the operand's first comparison, so the order of evaluation is
            # preserved.
            lists[key], operands[key], others[place] = [], operand, operand
        lists[key] += options
    if sum(map(len, lists.values())) - len(lists) < _MANY:
        return node
    made = {id(operands[key]): nodes.In(operands[key], tuple(lists[key])) for key in lists}
    parts: list[Expression] = []
    for one in others.values():
        found: Any = made.get(id(one))
        if found is None:
            parts.append(one)
        else:
            parts.append(found if isinstance(node, nodes.Or) else nodes.Not(found))
    return parts[0] if len(parts) == 1 else type(node)(tuple(parts))


def _tested(part: Expression, operator: str) -> tuple[Expression, list[Literal]] | None:
    """Return the operand and the constants of a test against constants; None for other nodes."""
    if isinstance(part, nodes.Comparison) and part.operator == operator:
        operand, option = part.left, part.right
        if isinstance(operand, Literal):
            operand, option = option, operand
        options: tuple[Expression, ...] = (option,)
    elif operator == "=" and isinstance(part, nodes.In):
        operand, options = part.operand, part.options
    elif operator == "<>" and isinstance(part, nodes.Not) and isinstance(part.operand, nodes.In):
        operand, options = part.operand.operand, part.operand.options
    else:
        return None
    held = operand.operand if isinstance(operand, Cast) else operand
    constants = [one for one in options if isinstance(one, Literal)]
    is_plain = isinstance(held, Column) and len(constants) == len(options) > 0
    # An IN list cannot contain timestamps in different units, so all types must be equal.
    same = {one.type for one in constants}
    if not is_plain or len(same) != 1 or not isinstance(constants[0].type, PrimitiveType):
        return None
    return operand, constants
