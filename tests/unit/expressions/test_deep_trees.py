"""Trees that are deeper than Python's stack, in every walk over them."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deltalog.expressions import as_expression, col, filter_mask, lit, parse_sql, to_sql
from deltalog.expressions.arrow_filters import (
    Pickled,
    depth,
    for_arrow,
    from_arrow_expression,
    weaker_than_arrow_expression,
)
from deltalog.expressions.nodes import And, Not, Or, as_calls
from deltalog.expressions.render import shown_sql
from deltalog.expressions.trees import columns, conjuncts, map_columns, walk
from deltalog.schema import from_arrow_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.expressions import Expression

TERMS = 3_000  # three times the depth of Python's stack
DATA = pa.table({"v": pa.array([0, 1, 2, TERMS - 1, TERMS, None], pa.int64())})
SCHEMA = from_arrow_schema(DATA.schema)


def _balanced(terms: list[Any], join: Callable[[Any, Any], Any]) -> Any:
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [join(*pair) for pair in pairs] + ([terms[-1]] if len(terms) % 2 else [])
    return terms[0]


def _shape(name: str, equal: Callable[[int], Any]) -> Any:
    terms = [equal(number) for number in range(TERMS)]
    others = [~term for term in terms]
    match name:
        case "left or":
            return functools.reduce(lambda one, other: one | other, terms)
        case "right or":
            return functools.reduce(lambda one, other: other | one, terms)
        case "balanced or":
            return _balanced(terms, lambda one, other: one | other)
        case "left and":
            return functools.reduce(lambda one, other: one & other, others)
        case "right and":
            return functools.reduce(lambda one, other: other & one, others)
        case "not":
            return functools.reduce(lambda one, _: ~one, range(TERMS), terms[1])
        case "mixed, left":
            pairs = enumerate(terms)
            return functools.reduce(
                lambda one, pair: one & ~pair[1] if pair[0] % 2 else one | pair[1],
                pairs,
                equal(TERMS),
            )
        case _:
            pairs = enumerate(terms)
            return functools.reduce(
                lambda one, pair: ~pair[1] & one if pair[0] % 2 else pair[1] | one,
                pairs,
                equal(TERMS),
            )


# Which values of `v` each is true for; what is NULL is never a match.
MATCHES = {
    "left or": [0, 1, 2, TERMS - 1],
    "right or": [0, 1, 2, TERMS - 1],
    "balanced or": [0, 1, 2, TERMS - 1],
    "left and": [TERMS],
    "right and": [TERMS],
    "not": [1],
    # An even number is added by OR; an odd one is taken out by AND NOT.
    "mixed, left": [0, 2, TERMS],
    "mixed, right": [0, 2, TERMS],
}
shapes = pytest.mark.parametrize("shape", MATCHES)


def _matches(condition: Expression) -> list[Any]:
    mask: Any = filter_mask(condition, DATA)
    return DATA.filter(mask).column("v").to_pylist()


@shapes
def test_conditions_of_thousands_of_terms_are_evaluated(shape: str) -> None:
    condition = _shape(shape, lambda number: col("v") == number)
    assert _matches(as_expression(condition, SCHEMA)) == MATCHES[shape]


@pytest.mark.slow("thousands of terms")
@shapes
def test_pyarrow_filters_of_thousands_of_terms_are_converted(shape: str) -> None:
    condition = _shape(shape, lambda number: pc.field("v") == number)
    assert _matches(as_expression(condition, SCHEMA)) == MATCHES[shape]
    weaker = weaker_than_arrow_expression(condition, DATA.schema)
    assert weaker is not None
    assert _matches(as_expression(weaker, SCHEMA)) == MATCHES[shape]


@pytest.mark.parametrize("shape", ["left or", "right or", "balanced or", "left and", "right and"])
def test_arrow_is_given_no_filter_that_ends_the_process(shape: str) -> None:
    condition = for_arrow(_shape(shape, lambda number: pc.field("v") == number))
    assert depth(Pickled(condition).root) < 200
    assert DATA.filter(condition).column("v").to_pylist() == MATCHES[shape]


@pytest.mark.slow("thousands of terms")
@shapes
def test_operands_that_can_fail_are_evaluated_in_turn_however_deep(shape: str) -> None:
    condition = _shape(shape, lambda number: col("v") + 1 == number + 1)
    assert _matches(as_expression(condition, SCHEMA)) == MATCHES[shape]


@shapes
def test_walks_end(shape: str) -> None:
    tree = _shape(shape, lambda number: col("v") == number)
    assert columns(tree) == {("v",)}
    assert sum(1 for _ in walk(tree)) > TERMS
    other = pickle.loads(pickle.dumps(tree))
    assert other.same_as(tree)
    assert copy.deepcopy(tree).same_as(tree)
    assert not map_columns(tree, lambda _: col("w")).same_as(tree)
    assert as_calls(other) == as_calls(tree)
    assert repr(other) == f"<Expression {shown_sql(tree)}>"
    assert hash(tree) != hash(other)
    assert to_sql(tree).count("v = ") == (1 if shape == "not" else tree_size(shape))


def tree_size(shape: str) -> int:
    return TERMS + ("mixed" in shape)


@pytest.mark.parametrize("word", ["OR", "AND"])
def test_sql_of_thousands_of_terms_is_read(word: str) -> None:
    text = f" {word} ".join(f"v <> {number}" for number in range(TERMS))
    found = as_expression(text, SCHEMA)
    # v <> 0 OR v <> 1 is true of every number.
    every = [0, 1, 2, TERMS - 1, TERMS]
    assert _matches(found) == (every if word == "OR" else [TERMS])
    assert parse_sql(to_sql(parse_sql(text))).same_as(parse_sql(text))


def test_filter_tuples_of_thousands_of_terms_are_read() -> None:
    groups = [[("v", "=", number), ("v", "<", 2)] for number in range(TERMS)]
    assert _matches(as_expression(groups, SCHEMA)) == [0, 1]
    assert _matches(as_expression([("v", "!=", n) for n in range(TERMS)], SCHEMA)) == [TERMS]


def test_chains_are_flat_however_they_are_built() -> None:
    a, b, c = col("a"), col("b"), col("c")
    assert [len(tree.operands) for tree in (a | b | c, a | (b | c))] == [3, 3]
    assert [len(tree.operands) for tree in (a & b & c, a & (b & c))] == [3, 3]
    assert len(conjuncts(And((a, And((b, Not(c))))))) == 3


def test_substrait_is_asked_for_small_parts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import substrait  # slow to import

    sizes = []
    serialize = substrait.serialize_expressions

    def counting(*arguments: Any) -> Any:
        found = serialize(*arguments)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(substrait, "serialize_expressions", counting)
    schema = pa.schema({"t": pa.string()})
    for terms in (100, 200):
        tests = [pc.starts_with(pc.field("t"), str(number)) for number in range(terms)]
        condition = functools.reduce(lambda one, other: one | other, tests)
        found = from_arrow_expression(condition, schema)
        assert isinstance(found, Or)
        assert len(found.operands) == terms
    assert len(sizes) == 2
    assert sizes[1] < 3 * sizes[0]


@pytest.mark.parametrize(
    "condition",
    [
        (pc.field("v") == 1).is_null(),
        ~(pc.field("v") == 1).is_valid(),
        ((pc.field("v") == 1) | (pc.field("v") == 2)).is_null(),
    ],
    ids=str,
)
def test_null_of_a_condition_is_converted(condition: pc.Expression) -> None:
    assert _matches(as_expression(condition, SCHEMA)) == [None]


def test_a_filter_of_nested_calls_is_refused_without_a_message_that_doubles() -> None:
    value = pc.field("v")
    for _ in range(60):
        value = pc.add(value, 1)
    assert weaker_than_arrow_expression(value == 1, DATA.schema) is None


def test_a_name_of_any_letters_and_a_field_inside_are_kept() -> None:
    name = "a'\n-- metadata --\nliteral: '0"
    data = pa.table({name: [1, 2], "s": [{"x": 1}, {"x": 3}]})
    found = from_arrow_expression((pc.field(name) == 2) & (pc.field("s", "x") == 3), data.schema)
    assert columns(found) == {(name,), ("s", "x")}
    rebuilt = Pickled((pc.field(name) == 2) & (pc.field("s", "x") == 3))
    assert data.filter(rebuilt.expression(rebuilt.root)).num_rows == 1


def test_single_operands_and_none_are_kept() -> None:
    assert to_sql(And((col("a") == 1,))) == "a = 1"
    assert to_sql(Or(())) == "FALSE"
    assert _matches(as_expression(Or((lit(value=True),)), SCHEMA)) == DATA.column("v").to_pylist()
