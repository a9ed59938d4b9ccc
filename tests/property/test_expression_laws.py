"""Laws of expressions: text and tree, evaluation and a model of plain Python, pyarrow's filters."""

from __future__ import annotations

import datetime as dt
import math
import operator
import struct
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.errors import InvalidInputError
from deltalog.expressions import (
    Column,
    Expression,
    Literal,
    conjuncts,
    evaluate,
    filter_mask,
    map_columns,
    parse_sql,
    resolve,
    resolve_predicate,
    to_sql,
    type_of,
)
from deltalog.expressions.arrow_filters import from_arrow_expression
from deltalog.expressions.evaluation import fold
from deltalog.expressions.nodes import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Comparison,
    In,
    IsNull,
    Like,
    Not,
    Or,
)
from deltalog.schema import PrimitiveType, from_arrow_schema, to_arrow_type
from tests.support.examples import examples

pytestmark = pytest.mark.slow("hundreds of examples for each law")

COMPARISONS: Final = ["=", "<>", "<", "<=", ">", ">=", "<=>"]


def _constants() -> st.SearchStrategy[Literal]:
    small = st.integers(-(1 << 31), (1 << 31) - 1)
    zone = st.just(dt.UTC)
    typed = st.one_of(
        st.builds(Literal, st.integers(-(1 << 63), (1 << 63) - 1), st.just(PrimitiveType("long"))),
        st.builds(Literal, st.integers(-128, 127), st.just(PrimitiveType("byte"))),
        st.builds(
            Literal, st.floats(allow_nan=False, allow_infinity=False),
            st.just(PrimitiveType("double")),
        ),
    )  # fmt: skip
    plain = st.one_of(
        st.none(),
        st.booleans(),
        small,
        st.floats(allow_nan=False, allow_infinity=False),
        st.decimals(-(10**9), 10**9, places=3),
        st.text(),
        st.binary(max_size=4),
        st.dates(),
        st.datetimes(timezones=zone),
        st.datetimes(),
    )
    return st.one_of(plain.map(Literal), typed)


def _columns() -> st.SearchStrategy[Column]:
    names = st.one_of(
        st.sampled_from(["a", "Order", "date", "select", "x y", "é", "a.b", "`", "1", "null"]),
        st.text(min_size=1, max_size=5),
    )
    return st.lists(names, min_size=1, max_size=3).map(lambda path: Column(tuple(path)))


def _larger(part: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    some = st.lists(part, min_size=2, max_size=3).map(tuple)
    # A minus sign before a number is the number's own, so it stands on other things only.
    signed = part.filter(lambda node: not isinstance(node, Literal))
    escapes = st.sampled_from(["\\", "#", "'"])
    types = st.sampled_from(["integer", "decimal(10,2)", "string", "timestamp_ntz"])
    functions = st.sampled_from(["upper", "coalesce", "concat", "my function"])
    return st.one_of(
        st.builds(Comparison, st.sampled_from(COMPARISONS), part, part),
        st.builds(And, some),
        st.builds(Or, some),
        st.builds(Not, part),
        st.builds(IsNull, part),
        st.builds(In, part, some),
        st.builds(Like, part, part, escapes, st.booleans()),
        st.builds(Arithmetic, st.sampled_from("+-*/%"), part, part),
        st.builds(Cast, part, types.map(PrimitiveType), st.booleans()),
        st.builds(Case, st.lists(st.tuples(part, part), min_size=1, max_size=2).map(tuple), part),
        st.builds(Call, functions, some),
        st.builds(Call, st.sampled_from("&|^"), st.tuples(part, part)),
        st.builds(Call, st.just("~"), st.tuples(part)),
        st.builds(Call, st.just("negative"), signed.map(lambda node: (node,))),
        st.builds(Call, st.just("[]"), st.tuples(part, part)),
    )


TREES: Final = st.recursive(st.one_of(_constants(), _columns()), _larger, max_leaves=12)


@given(tree=TREES)
@settings(max_examples=examples(300))
def test_text_of_a_tree_reads_as_the_same_tree(tree: Expression) -> None:
    assert parse_sql(to_sql(tree)).same_as(tree), to_sql(tree)


@given(tree=TREES)
def test_renaming_columns_there_and_back_changes_nothing(tree: Expression) -> None:
    there = map_columns(tree, lambda column: Column(("x", *column.path)))
    back = map_columns(there, lambda column: Column(column.path[1:]))
    assert back.same_as(tree)


@given(tree=TREES)
def test_conjuncts_say_what_the_tree_says(tree: Expression) -> None:
    parts = conjuncts(tree)
    assert not any(isinstance(part, And) for part in parts)
    assert isinstance(tree, And) or parts[0] is tree


@given(sql=st.text(alphabet="ab1'\"`.,()=<>!+-*/%[]:?\\ \n", max_size=30))
@settings(max_examples=examples(300))
def test_any_text_is_an_expression_or_our_error(sql: str) -> None:
    try:
        tree = parse_sql(sql)
    except InvalidInputError:
        return
    assert parse_sql(to_sql(tree)).same_as(tree)


ROW_TYPES: Final[dict[str, Any]] = {
    "i": pa.int32(),
    "l": pa.int64(),
    "x": pa.float64(),
    "t": pa.string(),
    "d": pa.date32(),
    "p": pa.decimal128(9, 2),
    "f": pa.bool_(),
}
_KINDS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "i": st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-3, 3),
    "l": st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-3, 3),
    "x": st.floats() | st.sampled_from([0.0, -0.0, 1.0, -1.5, math.nan]),
    "t": st.text(max_size=3) | st.sampled_from(["a", "b", "ab"]),
    "d": st.dates(),
    "p": st.decimals(-(10**6), 10**6, places=2) | st.sampled_from([Decimal("0.00")]),
    "f": st.booleans(),
}
ROWS: Final = st.lists(
    st.fixed_dictionaries({name: st.none() | kind for name, kind in _KINDS.items()}),
    min_size=1,
    max_size=6,
)
_ORDER: Final = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _key(value: Any) -> Any:
    """A value that Python orders as Spark orders it: NaN last, texts by their bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def _compare(sign: str, left: Any, right: Any) -> bool | None:
    if sign == "<=>":
        return left is right if None in (left, right) else bool(_key(left) == _key(right))
    if left is None or right is None:
        return None
    return bool(_ORDER[sign](_key(left), _key(right)))


def _decided(values: list[bool | None], *, decisive: bool) -> bool | None:
    """AND (decided by false) and OR (decided by true)."""
    if decisive in values:
        return decisive
    return None if None in values else not decisive


def _model(node: Expression, row: dict[str, Any]) -> Any:
    match node:
        case Column():
            return row[node.path[0]]
        case Literal():
            return node.value
        case Comparison():
            return _compare(node.operator, _model(node.left, row), _model(node.right, row))
        case And() | Or():
            values = [_model(operand, row) for operand in node.operands]
            return _decided(values, decisive=isinstance(node, Or))
        case Not():
            value = _model(node.operand, row)
            return None if value is None else not value
        case IsNull():
            return _model(node.operand, row) is None
        case In():
            operand = _model(node.operand, row)
            found = [_compare("=", operand, _model(option, row)) for option in node.options]
            return _decided(found, decisive=True)
        case Case():
            holding = [value for test, value in node.branches if _model(test, row) is True]
            chosen = next(iter(holding), node.otherwise)
            return None if chosen is None else _model(chosen, row)
        case _:
            raise AssertionError(node)


def _pair(name: str) -> st.SearchStrategy[Expression]:
    """A column or a constant of one kind."""
    constant = _KINDS[name].map(
        lambda value: (
            Literal(value, PrimitiveType({"i": "integer", "l": "long"}[name]))
            if name in "il"
            else Literal(value)
        )
    )
    nothing = st.just(Literal(None))
    return st.just(Column((name,))) | st.just(Column((name,))) | constant | nothing


def _conditions() -> st.SearchStrategy[Expression]:
    kinds = st.sampled_from(sorted(ROW_TYPES))
    comparisons = kinds.flatmap(
        lambda name: st.builds(Comparison, st.sampled_from(COMPARISONS), _pair(name), _pair(name))
    )
    memberships = kinds.flatmap(
        lambda name: st.builds(
            In, st.just(Column((name,))), st.lists(_pair(name), min_size=1, max_size=4).map(tuple)
        )
    )
    tests = kinds.map(lambda name: IsNull(Column((name,))))
    leaves = st.one_of(comparisons, memberships, tests, st.just(Column(("f",))))

    def larger(part: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        some = st.lists(part, min_size=2, max_size=3).map(tuple)
        cases = st.lists(st.tuples(part, part), min_size=1, max_size=2).map(tuple)
        return st.one_of(
            st.builds(And, some),
            st.builds(Or, some),
            st.builds(Not, part),
            st.builds(Case, cases, st.none() | part),
        )

    return st.recursive(leaves, larger, max_leaves=8)


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema(list(ROW_TYPES.items())))


@given(condition=_conditions(), rows=ROWS)
@settings(max_examples=examples(300))
def test_conditions_are_what_a_row_by_row_model_says(
    condition: Expression, rows: list[dict[str, Any]]
) -> None:
    table = _table(rows)
    schema = from_arrow_schema(table.schema)
    expected = [_model(condition, row) for row in rows]
    resolved = resolve_predicate(condition, schema)
    assert evaluate(resolved, table).to_pylist() == expected
    assert evaluate(fold(resolved), table).to_pylist() == expected
    assert filter_mask(resolved, table).to_pylist() == [value is True for value in expected]


@given(condition=_conditions(), rows=ROWS)
def test_text_of_a_resolved_condition_means_the_same(
    condition: Expression, rows: list[dict[str, Any]]
) -> None:
    table = _table(rows)
    schema = from_arrow_schema(table.schema)
    resolved = resolve_predicate(condition, schema)
    again = resolve_predicate(parse_sql(to_sql(resolved)), schema)
    assert evaluate(again, table).to_pylist() == evaluate(resolved, table).to_pylist()


@given(condition=_conditions(), rows=ROWS)
def test_rows_do_not_depend_on_their_neighbours(
    condition: Expression, rows: list[dict[str, Any]]
) -> None:
    table = _table(rows)
    resolved = resolve_predicate(condition, from_arrow_schema(table.schema))
    alone = [evaluate(resolved, table.slice(row, 1))[0].as_py() for row in range(len(rows))]
    assert evaluate(resolved, table).to_pylist() == alone


def _truncated(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_WHOLE: Final = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "%": lambda left, right: left - right * _truncated(left, right),
    "div": _truncated,
}


@given(
    sign=st.sampled_from(sorted(_WHOLE)),
    left=st.none() | _KINDS["l"],
    right=st.none() | _KINDS["l"],
)
@settings(max_examples=examples(300))
def test_whole_numbers_are_exact_or_an_error(
    sign: str, left: int | None, right: int | None
) -> None:
    table = pa.table({"a": pa.array([left], pa.int64()), "b": pa.array([right], pa.int64())})
    resolved = resolve(parse_sql(f"a {sign} b"), from_arrow_schema(table.schema))
    exact = None
    if left is not None and right is not None:
        exact = _WHOLE[sign](left, right) if right or sign in "+-*" else 1 << 64
    try:
        found = evaluate(resolved, table)[0].as_py()
    except InvalidInputError:
        assert exact is not None
        assert not -(1 << 63) <= exact < 1 << 63
    else:
        assert found == exact


@given(
    sign=st.sampled_from("+-*/%"),
    left=st.none() | _KINDS["x"],
    right=st.none() | _KINDS["x"],
)
@settings(max_examples=examples(300))
def test_doubles_follow_ieee_but_for_zero_divisors(
    sign: str, left: float | None, right: float | None
) -> None:
    table = pa.table({"a": pa.array([left], pa.float64()), "b": pa.array([right], pa.float64())})
    resolved = resolve(parse_sql(f"a {sign} b"), from_arrow_schema(table.schema))
    is_known = left is not None and right is not None
    try:
        found = evaluate(resolved, table)[0].as_py()
    except InvalidInputError:
        assert is_known
        assert right == 0
        assert sign in "/%"
        return
    if left is None or right is None:
        assert found is None
    else:
        assert _bits(found) == _bits(_ieee(sign, left, right))


def _ieee(sign: str, left: float, right: float) -> float:
    if sign == "%":
        is_nan = math.isnan(left) or math.isnan(right) or math.isinf(left)
        return math.nan if is_nan else math.fmod(left, right)
    signs = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
    return float(signs[sign](left, right))


def _bits(value: float) -> bytes:
    return b"nan" if math.isnan(value) else struct.pack("<d", value)


_WIDE: Final = Context(prec=200)
_DIGITS: Final = st.tuples(st.integers(1, 38), st.integers(0, 38)).filter(lambda it: it[1] <= it[0])


@given(data=st.data(), sign=st.sampled_from("+-*/%"), left=_DIGITS, right=_DIGITS)
@settings(max_examples=examples(300))
def test_decimals_are_the_rounded_exact_result_or_an_error(
    data: st.DataObject, sign: str, left: tuple[int, int], right: tuple[int, int]
) -> None:
    a, b = (
        _WIDE.scaleb(data.draw(st.integers(-(10**precision) + 1, 10**precision - 1)), -scale)
        for precision, scale in (left, right)
    )
    table = pa.table(
        {"a": pa.array([a], pa.decimal128(*left)), "b": pa.array([b], pa.decimal128(*right))}
    )
    schema = from_arrow_schema(table.schema)
    resolved = resolve(parse_sql(f"a {sign} b"), schema)
    result = type_of(resolved, schema)
    assert isinstance(result, PrimitiveType)
    unit, limit = Decimal(1).scaleb(-result.scale), 10 ** (result.precision - result.scale)
    try:
        found = evaluate(resolved, table)
    except InvalidInputError:
        assert b == 0 or _WIDE.add(abs(_exact(sign, a, b)), unit) >= limit
        return
    assert found.type == to_arrow_type(result)
    # Java rounds a product to 39 digits first, so halves can be a tenth of a unit off.
    distance = _WIDE.subtract(_exact(sign, a, b), found[0].as_py())
    assert abs(distance) <= unit * Decimal("0.6")


def _exact(sign: str, left: Decimal, right: Decimal) -> Decimal:
    compute = {
        "+": _WIDE.add, "-": _WIDE.subtract, "*": _WIDE.multiply, "/": _WIDE.divide,
        "%": _WIDE.remainder,
    }  # fmt: skip
    return compute[sign](left, right)


def _arrow_leaf(name: str, sign: str, value: Any) -> pc.Expression:
    field: Any = pc.field(name)
    constant = pa.scalar(value, ROW_TYPES[name])
    return _ORDER[sign](field, constant)  # type: ignore[no-any-return]  # an overloaded operator


def _arrow_filters() -> st.SearchStrategy[pc.Expression]:
    kinds = st.sampled_from(sorted(ROW_TYPES))
    fields = {name: pc.field(name) for name in ROW_TYPES}
    comparisons = kinds.flatmap(
        lambda name: st.builds(
            _arrow_leaf, st.just(name), st.sampled_from(sorted(_ORDER)), st.none() | _KINDS[name]
        )
    )
    twins = st.builds(
        lambda name, sign: _ORDER[sign](fields[name], fields[name]),
        kinds, st.sampled_from(sorted(_ORDER)),
    )  # fmt: skip
    known = st.sampled_from(["i", "l", "t", "d"])
    memberships = known.flatmap(
        lambda name: st.lists(_KINDS[name], max_size=3).map(
            lambda values: fields[name].isin(pa.array(values, ROW_TYPES[name]))
        )
    )
    nulls = kinds.map(lambda name: fields[name].is_null())
    valid = kinds.map(lambda name: fields[name].is_valid())
    leaves = st.one_of(
        comparisons, twins, memberships, nulls, valid, st.just(fields["f"]),
        st.just(fields["x"].is_nan()),
    )  # fmt: skip
    return st.recursive(
        leaves,
        lambda part: st.one_of(
            st.builds(operator.and_, part, part),
            st.builds(operator.or_, part, part),
            st.builds(operator.invert, part),
        ),
        max_leaves=6,
    )


@given(expression=_arrow_filters(), rows=ROWS)
@settings(max_examples=examples(300))
def test_filters_of_pyarrow_mean_what_they_mean_to_pyarrow(
    expression: Any, rows: list[dict[str, Any]]
) -> None:
    table = _table(rows)
    expected = ds.dataset(table).to_table(columns={"it": expression})["it"].to_pylist()
    found = from_arrow_expression(expression, table.schema)
    resolved = fold(resolve_predicate(found, from_arrow_schema(table.schema)))
    assert evaluate(resolved, table).to_pylist() == expected
