"""Laws of nanoseconds and intervals: they are ordered as whole numbers, and no row is lost.

Whatever the model says, it says of Python's whole numbers: nanoseconds, microseconds or months.
"""

from __future__ import annotations

import datetime as dt
import operator as operators
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.data.scan import plan_scan
from deltalog.expressions import (
    Expression,
    Literal,
    col,
    evaluate,
    parse_sql,
    resolve_predicate,
    to_sql,
)
from deltalog.expressions.nodes import COMPARISONS, Comparison, Not
from deltalog.schema import PrimitiveType, StructType, to_arrow_type
from tests.support.examples import examples
from tests.support.logs import DictStore
from tests.support.raw_tables import DataTable

INTERVAL: Any = pa.MonthDayNano  # the stubs know other arguments

KINDS = {
    "at": "timestamp_nanos",
    "clock": "timestamp_nanos_ntz",
    "months": "interval year to month",
    "span": "interval day to second",
}
MICROS = {"ts": "timestamp", "wall": "timestamp_ntz"}
NOW = 1_700_000_000_123_456_789
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operators.eq,
    "<>": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}
_near = st.integers(-3, 3)
VALUES: dict[str, st.SearchStrategy[int]] = {
    "at": _near.map(lambda n: NOW + n) | _near | st.integers(-(2**63), 2**63 - 1),
    "clock": _near.map(lambda n: 1_000 * n - 1) | _near | st.integers(-(2**63), 2**63 - 1),
    "months": _near | st.integers(-(2**31), 2**31 - 1),
    "span": _near | st.integers(-(2**63), 2**63 - 1),
    # Further than nanoseconds reach, and within the years that Python has.
    "ts": _near.map(lambda n: NOW // 1000 + n) | st.integers(-(6 * 10**16), 2 * 10**17),
    "wall": _near | st.integers(-(6 * 10**16), 2 * 10**17),
}
# How many of the unit of a column are one of the finest that it is compared with.
SCALE = {**dict.fromkeys(KINDS, 1), **dict.fromkeys(MICROS, 1000)}
PAIRS = [(name, name) for name in KINDS] + [
    ("at", "ts"), ("ts", "at"), ("clock", "wall"), ("wall", "clock"),
]  # fmt: skip
SCHEMA = StructType([Field(name, kind) for name, kind in (KINDS | MICROS).items()])


@pytest.fixture(autouse=True, scope="module")
def previews() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DELTALOG_PREVIEWS", "timestampNanos,intervalTypes")
        yield


def holds(symbol: str, left: int | None, right: int | None) -> bool | None:
    if symbol == "<=>":
        return left == right
    return None if left is None or right is None else _TESTS[symbol](left, right)


def in_arrow(name: str, values: list[int | None]) -> pa.Array[Any]:
    kind = to_arrow_type(PrimitiveType((KINDS | MICROS)[name]))
    numbers: pa.Array[Any] = pa.array(values, pa.int32() if name == "months" else pa.int64())
    return numbers.cast(kind)


def constant(name: str, value: int) -> Any:
    """A value as callers have it."""
    if name == "months":
        return INTERVAL([value, 0, 0]) if value else Literal(0, PrimitiveType(KINDS[name]))
    if name == "span":
        return dt.timedelta(microseconds=value)
    return in_arrow(name, [value])[0]


@given(data=st.data(), pair=st.sampled_from(PAIRS), symbol=st.sampled_from(sorted(COMPARISONS)))
def test_values_are_ordered_as_whole_numbers(
    data: st.DataObject, pair: tuple[str, str], symbol: str
) -> None:
    left, right = pair
    values = st.none() | VALUES[left]
    one = data.draw(st.lists(values, min_size=1, max_size=5))
    other = data.draw(st.lists(st.none() | VALUES[right], min_size=len(one), max_size=len(one)))
    rows = pa.table({"a": in_arrow(left, one), "b": in_arrow(right, other)})
    schema = StructType([Field("a", (KINDS | MICROS)[left]), Field("b", (KINDS | MICROS)[right])])
    scales = SCALE[left], SCALE[right]
    pairs = [
        tuple(None if v is None else v * scale for v, scale in zip(both, scales, strict=True))
        for both in zip(one, other, strict=True)
    ]
    found = evaluate(resolve_predicate(Comparison(symbol, col("a"), col("b")), schema), rows)
    assert found.to_pylist() == [holds(symbol, *both) for both in pairs]
    value = data.draw(VALUES[right])
    condition = resolve_predicate(Comparison(symbol, col("a"), lit_of(right, value)), schema)
    expected = [holds(symbol, None if v is None else v * scales[0], value * scales[1]) for v in one]
    assert evaluate(condition, rows).to_pylist() == expected
    again = resolve_predicate(parse_sql(to_sql(condition)), schema)
    assert evaluate(again, rows).to_pylist() == expected
    options = data.draw(st.lists(VALUES[right], min_size=1, max_size=4))
    among = resolve_predicate(col("a").is_in([constant(right, one) for one in options]), schema)
    numbers = {option * scales[1] for option in options}
    assert evaluate(among, rows).to_pylist() == [
        None if v is None else v * scales[0] in numbers for v in one
    ]


def lit_of(name: str, value: int) -> Any:
    found = constant(name, value)
    return found if isinstance(found, Expression) else Literal(found)


@st.composite
def conditions(draw: st.DrawFn) -> Expression:
    left, right = draw(st.sampled_from(PAIRS))
    symbol = draw(st.sampled_from(sorted(COMPARISONS)))
    value = lit_of(right, draw(VALUES[right]))
    options = [
        constant(right, one) for one in draw(st.lists(VALUES[right], min_size=1, max_size=3))
    ]
    return draw(
        st.sampled_from(
            [
                Comparison(symbol, col(left), value),
                Comparison(symbol, value, col(left)),
                Comparison(symbol, col(left), col(right)),
                col(left).is_in(options),
                col(left).is_null(),
            ]
        )
    )


predicates = st.recursive(
    conditions(),
    lambda inner: (
        st.builds(lambda left, right: left & right, inner, inner)
        | st.builds(lambda left, right: left | right, inner, inner)
        | inner.map(Not)
    ),
    max_leaves=3,
)


@settings(deadline=None)
@given(
    groups=st.lists(
        st.lists(
            st.fixed_dictionaries({name: st.none() | VALUES[name] for name in KINDS | MICROS}),
            min_size=1,
            max_size=3,
        ),
        min_size=1,
        max_size=4,
    ),
    predicate=predicates,
)
def test_no_row_is_lost_by_pruning(
    groups: list[list[dict[str, int | None]]], predicate: Expression
) -> None:
    size = max(map(len, groups))
    rows = [row for group in groups for row in (group * size)[:size]]
    stored = pa.table(
        {
            "n": pa.array(range(len(rows)), pa.int64()),
            **{name: in_arrow(name, [row[name] for row in rows]) for name in KINDS | MICROS},
        }
    )
    fields = [("n", "long"), *(KINDS | MICROS).items()]
    table = DataTable(fields, features=("timestampNtz", "timestampNanos", "intervalTypes"))
    span = stored.schema.get_field_index("span")
    written = stored.set_column(span, "span", stored.column("span").cast(pa.int64()))
    # Bounds of other writers, which are of no use: they cut them, or write what is none.
    told = dict.fromkeys(KINDS, "1999-01-01T00:00:00.000Z")
    table.commit(
        table.add(
            written,
            options={"row_group_size": size},
            stats={"numRecords": len(rows), "minValues": told, "maxValues": told},
        )
    )
    schema = StructType([Field(name, kind) for name, kind in fields])
    mask = evaluate(resolve_predicate(predicate, schema), stored)
    expected: list[Any] = stored.filter(mask).column("n").to_pylist()
    scanned = plan_scan(table.snapshot(), predicate=predicate).to_table()
    assert scanned.sort_by("n").column("n").to_pylist() == expected


@settings(deadline=None, max_examples=examples(30))
@given(data=st.data(), name=st.sampled_from(sorted(KINDS)), limit=st.integers(1, 4))
def test_the_first_rows_of_an_order(data: st.DataObject, name: str, limit: int) -> None:
    files = data.draw(
        st.lists(st.lists(st.none() | VALUES[name], min_size=1, max_size=4), min_size=1, max_size=3)
    )
    store = DictStore()
    schema = Schema([Field("n", "long"), Field("v", KINDS[name])])
    DeltaTable.create(store, schema=schema)
    known: list[tuple[int, int | None]] = []
    for values in files:
        numbers = range(len(known), len(known) + len(values))
        known += zip(numbers, values, strict=True)
        rows = pa.table({"n": pa.array(numbers, pa.int64()), "v": in_arrow(name, values)})
        write_deltalake(store, rows, mode="append")
    turn = data.draw(st.sampled_from(["", " DESC"]))
    found = DeltaTable(store).scan(order_by=f"v{turn}, n", limit=limit).to_table()
    least = [value for _, value in known if value is not None]
    rank: dict[Any, int] = {value: place for place, value in enumerate(sorted(set(least)), 1)}
    sign = -1 if turn else 1
    ordered = sorted(known, key=lambda row: (sign * rank.get(row[1], 0), row[0]))
    assert found.column("n").to_pylist() == [number for number, _ in ordered[:limit]]


@settings(deadline=None, max_examples=examples(30))
@given(data=st.data(), name=st.sampled_from(sorted(KINDS)))
def test_keys_of_a_merge_are_whole_numbers(data: st.DataObject, name: str) -> None:
    keys = data.draw(st.lists(st.none() | VALUES[name], min_size=1, max_size=6))
    source = data.draw(st.lists(VALUES[name] | st.sampled_from(keys), max_size=6, unique=True))
    source = [value for value in source if value is not None]
    store = DictStore()
    schema = Schema([Field("k", KINDS[name]), Field("n", "long")])
    table = DeltaTable.create(store, schema=schema)
    rows = pa.table({"k": in_arrow(name, keys), "n": pa.array([0] * len(keys), pa.int64())})
    write_deltalake(table, rows, mode="append")
    given_rows = pa.table(
        {"k": in_arrow(name, list(source)), "n": pa.array([1] * len(source), pa.int64())}
    )
    (
        DeltaTable(store)
        .merge(given_rows, "t.k = s.k", source_alias="s", target_alias="t")
        .when_matched_update(updates={"n": "s.n"})
        .when_not_matched_insert_all()
        .execute()
    )
    found = DeltaTable(store).to_pyarrow_table()
    numbers = found.column("k").cast(pa.int32() if name == "months" else pa.int64()).to_pylist()
    changed = [(key, int(key is not None and key in source)) for key in keys]
    added = [(key, 1) for key in source if key not in keys]
    assert sorted(map(repr, zip(numbers, found.column("n").to_pylist(), strict=True))) == sorted(
        map(repr, [*changed, *added])
    )
