"""Long lists of constants and ranges: what they rule out, and how little is asked for it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from deltalog.expressions import as_expression, filter_mask, nodes
from deltalog.expressions.arrow import evaluate, narrowed
from deltalog.protocol.column_mapping import Mode
from deltalog.protocol.stats.ranges import AllOf, AnyOf
from deltalog.protocol.stats.rewrite import Spans
from deltalog.protocol.stats.skipping import plan_skipping
from deltalog.schema import from_arrow_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deltalog.protocol.stats.ranges import Claim

MANY = 500
DAY = dt.date(2000, 1, 1)
VALUES: dict[str, tuple[Any, Callable[[int], Any]]] = {
    "int": (pa.int32(), lambda n: n),
    "long": (pa.int64(), lambda n: n << 33),
    "string": (pa.string(), lambda n: f"{n:05}é"),
    "binary": (pa.binary(), lambda n: n.to_bytes(4)),
    "date": (pa.date32(), lambda n: DAY + dt.timedelta(days=n)),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        lambda n: dt.datetime(2000, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=n),
    ),
    "decimal": (pa.decimal128(12, 2), lambda n: Decimal(n) / 4),
    "double": (pa.float64(), lambda n: n / 4),
}
kinds = pytest.mark.parametrize("kind", VALUES)


class _Table:
    column_mapping_mode = Mode.NONE

    def __init__(self, schema: pa.Schema, partition_columns: tuple[str, ...] = ()) -> None:
        self.schema = from_arrow_schema(schema)
        self.partition_columns = partition_columns


def _stats(ranges: list[tuple[Any, Any]], kind: Any) -> pa.Table:
    lows, highs = ([{"x": one[side]} for one in ranges] for side in (0, 1))
    of_values: Any = pa.struct([pa.field("x", kind)])
    return pa.table(
        {
            "numRecords": pa.array([10] * len(ranges), pa.int64()),
            "minValues": pa.array(lows, of_values),
            "maxValues": pa.array(highs, of_values),
            "nullCount": pa.array([{"x": 0}] * len(ranges), pa.struct([pa.field("x", pa.int64())])),
        }
    )


def _claims(claim: Claim) -> Iterator[Claim]:
    yield claim
    for part in claim.parts if isinstance(claim, AllOf | AnyOf) else ():
        yield from _claims(part)


@kinds
@pytest.mark.parametrize("form", ["in", "or", "or, constants first", "ranges"])
def test_a_long_list_is_one_claim_that_rules_out_what_lies_between(kind: str, form: str) -> None:
    arrow_type, value = VALUES[kind]
    table = _Table(pa.schema({"x": arrow_type}))
    x, options = nodes.col("x"), [value(10 * n) for n in range(MANY)]
    condition: Any
    match form:
        case "in":
            condition = x.is_in([*options, None])
        case "or":
            condition = nodes.Or(tuple(x == option for option in options))
        case "or, constants first":
            condition = nodes.Or(
                tuple(nodes.Comparison("=", nodes.lit(option), x) for option in options)
            )
        case _:
            condition = nodes.Or(
                tuple((x >= value(10 * n)) & (x <= value(10 * n + 1)) for n in range(MANY))
            )
    skipping = plan_skipping(
        as_expression(condition, table.schema), table, is_bounded=lambda _: True
    )
    assert skipping is not None
    assert len(list(_claims(skipping.claim))) <= 3
    assert any(isinstance(claim, Spans) for claim in _claims(skipping.claim))
    last = 10 * (MANY - 1)
    ranges = [(0, 0), (2, 9), (2, 10), (9, 11), (last, last + 3), (last + 2, last + 9)]
    ranges += [(0, last + 9), (15, 19)]
    stats = _stats([(value(first), value(last)) for first, last in ranges], arrow_type)
    expected = [True, False, True, True, True, False, True, False]
    assert skipping.keep(stats).to_pylist() == expected


def test_a_file_without_bounds_is_kept() -> None:
    table = _Table(pa.schema({"x": pa.int64()}))
    skipping = plan_skipping(as_expression([("x", "in", range(MANY))], table.schema), table)
    assert skipping is not None
    stats = _stats([(None, None), (0, None), (MANY, MANY)], pa.int64())
    assert skipping.keep(stats).to_pylist() == [True, True, False]


def test_nan_among_the_options_keeps_every_file() -> None:
    table = _Table(pa.schema({"x": pa.float64()}))
    options = [float(number) for number in range(MANY)]
    condition = as_expression(nodes.col("x").is_in([*options, float("nan")]), table.schema)
    skipping = plan_skipping(condition, table)
    assert skipping is not None
    assert skipping.keep(_stats([(1e9, 1e9)], pa.float64())).to_pylist() == [True]
    zeros = plan_skipping(
        as_expression(nodes.col("x").is_in([-0.0, *options[1:]]), table.schema), table
    )
    assert zeros is not None
    assert zeros.keep(_stats([(0.0, 0.0)], pa.float64())).to_pylist() == [True]


def test_open_ranges_and_limits_are_merged() -> None:
    table = _Table(pa.schema({"x": pa.int64()}))
    x = nodes.col("x")
    either = nodes.Or(tuple((x < number) | (x > 1_000 - number) for number in range(50)))
    skipping = plan_skipping(as_expression(either, table.schema), table)
    assert skipping is not None
    stats = _stats([(49, 900), (50, 950), (50, 951), (48, 60)], pa.int64())
    assert skipping.keep(stats).to_pylist() == [True, False, True, True]
    both = nodes.And(tuple(x > number for number in range(MANY)))
    skipping = plan_skipping(as_expression(both, table.schema), table)
    assert skipping is not None
    assert len(list(_claims(skipping.claim))) <= 4
    assert skipping.keep(_stats([(0, 499), (0, 500)], pa.int64())).to_pylist() == [False, True]


def test_pairs_are_ruled_out_by_either_column() -> None:
    table = _Table(pa.schema({"x": pa.int64(), "p": pa.int64()}), ("p",))
    pairs = [[("x", "=", number), ("p", "=", 2 * number)] for number in range(MANY)]
    skipping = plan_skipping(as_expression(pairs, table.schema), table)
    assert skipping is not None
    assert len(list(_claims(skipping.claim))) <= 5
    stats = _stats([(1, 5), (1, 5), (MANY, MANY)], pa.int64())
    kept = skipping.keep(stats, pa.table({"p": [4, 5, 4]}))
    assert kept.to_pylist() == [True, False, False]


def test_what_no_few_claims_say_is_not_asked_for() -> None:
    table = _Table(pa.schema({f"c{number}": pa.int64() for number in range(MANY)}))
    either = nodes.Or(tuple(nodes.col(f"c{number}") == 1 for number in range(MANY)))
    assert plan_skipping(as_expression(either, table.schema), table) is None
    mixed: Any = nodes.col("c0") == 1
    for number in range(MANY):
        test = nodes.col("c1") == number
        mixed = mixed | test if number % 2 else mixed & test
    skipping = plan_skipping(as_expression(mixed, table.schema), table)
    depth = 0 if skipping is None else len(list(_claims(skipping.claim)))
    assert depth <= 200


def test_a_chain_of_equalities_is_looked_up_in_one_list() -> None:
    schema = from_arrow_schema(pa.schema({"x": pa.int64()}))
    x = nodes.col("x")
    found = as_expression(nodes.Or(tuple(x == number for number in range(MANY))), schema)
    assert isinstance(found, nodes.In)
    assert len(found.options) == MANY
    found = as_expression(nodes.And(tuple(x != number for number in range(MANY))), schema)
    assert isinstance(found, nodes.Not)
    assert isinstance(found.operand, nodes.In)
    data = pa.table({"x": pa.array([1, MANY, None], pa.int64())})
    assert evaluate(found, data).to_pylist() == [False, True, None]
    few = as_expression((x == 1) | (x == 2), schema)
    assert isinstance(few, nodes.Or)


def test_a_list_is_converted_once_for_all_batches() -> None:
    schema = from_arrow_schema(pa.schema({"x": pa.int64()}))
    found: Any = as_expression([("x", "in", range(MANY))], schema)
    filter_mask(found, pa.table({"x": [1]}))

    def never() -> Any:
        raise AssertionError

    assert len(found.fact("members as int64", never).values) == MANY


@kinds
def test_a_batch_is_asked_for_the_few_operands_that_can_match(kind: str) -> None:
    arrow_type, value = VALUES[kind]
    schema = from_arrow_schema(pa.schema({"x": arrow_type, "y": pa.int64()}))
    x, y = nodes.col("x"), nodes.col("y")
    either = nodes.Or(tuple((x == value(number)) & (y == number) for number in range(MANY)))
    condition = as_expression(either, schema)
    values = [value(7), value(9), None]
    data = pa.table({"x": pa.array(values, arrow_type), "y": pa.array([7, 7, 7], pa.int64())})
    found: Any = narrowed(condition, data)
    assert len(conjuncts_of(found)) == 2  # of one operand; by `y` it is this one alone
    assert filter_mask(condition, data).to_pylist() == [True, False, False]
    assert filter_mask(condition, data.slice(2)).to_pylist() == [False]
    assert filter_mask(condition, data.slice(0, 0)).to_pylist() == []


def conjuncts_of(found: Any) -> tuple[Any, ...]:
    assert isinstance(found, nodes.And)
    return found.operands


def test_an_or_under_not_is_not_narrowed() -> None:
    schema = from_arrow_schema(pa.schema({"x": pa.int64(), "y": pa.int64()}))
    x, y = nodes.col("x"), nodes.col("y")
    either = nodes.Or(tuple((x > number) & (y == 900 + number) for number in range(MANY)))
    data = pa.table({"x": pa.array([None, 5], pa.int64()), "y": [900, 1]})
    # The first row is NULL: x > 0 is.
    assert filter_mask(as_expression(~either, schema), data).to_pylist() == [False, True]
