from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import evaluate, resolve_predicate
from deltalog.expressions.arrow_filters import from_arrow_expression, weaker_than_arrow_expression
from deltalog.expressions.substrait import as_meant
from deltalog.schema import Field, StructType, from_arrow_schema

F: Any = pc.field
NAN: Any = float("nan")
DATA = pa.table(
    {
        "i": pa.array([1, -2, None, 4], pa.int32()),
        "l": pa.array([1 << 40, -1, None, 0], pa.int64()),
        "tiny": pa.array([1, -128, None, 127], pa.int8()),
        "f": pa.array([0.1, NAN, None, -0.0], pa.float32()),
        "x": pa.array([0.1, NAN, None, float("inf")]),
        "t": pa.array(["a", "B%", None, "é_"]),
        "b": pa.array([b"a", b"", None, b"\xff"]),
        "flag": pa.array([True, False, None, True]),
        "d": pa.array([dt.date(2024, 2, 29), dt.date(1, 1, 1), None, dt.date(1969, 12, 31)]),
        "ts": pa.array([0, -1, None, 1 << 50], pa.timestamp("us", "UTC")),
        "wall": pa.array([0, -1, None, 1 << 50], pa.timestamp("us")),
        "p": pa.array([Decimal("1.25"), Decimal("-0.01"), None, Decimal("0.00")]),
        "s": pa.array(
            [{"u": {"v": 1}}, {"u": None}, None, {"u": {"v": 2}}],
            pa.struct([("u", pa.struct([("v", pa.int32())]))]),
        ),
        "Twin": pa.array([1, 2, 3, 4], pa.int32()),
    }
)


def _ours(expression: Any) -> list[bool | None]:
    schema = from_arrow_schema(DATA.schema)
    found = from_arrow_expression(expression, DATA.schema)
    return evaluate(resolve_predicate(found, schema), DATA).to_pylist()


def _theirs(expression: Any) -> list[bool | None]:
    found: list[bool | None] = (
        ds.dataset(DATA).to_table(columns={"it": expression})["it"].to_pylist()
    )
    return found


@pytest.mark.parametrize(
    "expression",
    [
        F("i") == 1,
        F("i") != 1,
        F("i") < 0,
        F("i") <= -2,
        F("i") > F("Twin"),
        F("l") >= 1 << 40,
        F("tiny") == pa.scalar(-128, pa.int8()),
        F("x") > 0.1,
        F("x") <= float("inf"),
        F("x") == NAN,
        F("x") != NAN,
        F("x") != 0.1,
        F("x") < F("x"),
        F("x") == F("x"),
        F("x").is_nan(),
        ~F("x").is_nan(),
        F("f") > pa.scalar(0.1, pa.float32()),
        F("f") == pa.scalar(0.0, pa.float32()),
        F("t") == "a",
        F("t") > "B",
        F("b") == b"\xff",
        F("flag"),
        ~F("flag"),
        F("flag") == True,  # noqa: E712  # an expression, no test of truth
        F("flag") & (F("i") > 0),
        F("flag") | (F("i") > 0),
        ~((F("i") > 0) & F("flag")),
        F("i").is_null(),
        F("i").is_valid(),
        F("i").isin([1, 4, 9]),
        ~F("i").isin([1, 4, 9]),
        F("t").isin(["a", "é_"]),
        F("x").isin([0.1, 7.0]),
        ~F("x").isin([0.1, 7.0]),
        pc.if_else(F("i").is_valid(), F("i").isin([1, 4]), pa.scalar(None, pa.bool_())),
        ~pc.if_else(F("i").is_valid(), F("i").isin([1, 4]), pa.scalar(None, pa.bool_())),
        F("d") == dt.date(2024, 2, 29),
        F("d") < dt.date(1970, 1, 1),
        F("ts") >= pa.scalar(0, pa.timestamp("us", "UTC")),
        F("wall") < pa.scalar(0, pa.timestamp("us")),
        F("p") == Decimal("1.25"),
        F("p") > pa.scalar(Decimal("-0.02"), pa.decimal128(3, 2)),
        F("s", "u", "v") > 1,
        pc.starts_with(F("t"), "a"),
        pc.ends_with(F("t"), "_"),
        pc.match_substring(F("t"), "%"),
        F("i") == pa.scalar(None, pa.int32()),
        pc.scalar(True),
    ],
    ids=str,
)
def test_a_filter_means_what_it_means_to_pyarrow(expression: Any) -> None:
    assert _ours(expression) == _theirs(expression)


@pytest.mark.parametrize(
    "expression",
    [
        F("i") + 1 > 2,
        F("i").cast(pa.int64()) > 2,
        F("x").isin([0.0]),
        F("x").isin([1.0, NAN]),
        F("i").isin([1, None]),
        pc.if_else(F("l").is_valid(), F("i").isin([1, 4]), pa.scalar(None, pa.bool_())),
        pc.if_else(F("i").is_valid(), F("i").isin([1, 4]), pa.scalar(True, pa.bool_())),
        pc.if_else(F("i").is_valid(), F("flag"), pa.scalar(None, pa.bool_())),
        pc.utf8_upper(F("t")) == "A",
        pc.if_else(F("flag"), F("i"), 0) > 1,
        pc.starts_with(F("t"), "a", ignore_case=True),
        F("i").is_null(nan_is_null=True),
        F("nope") > 1,
        F("twin") > 1,
        F("i") == "x",
        F("ts") > pa.scalar(1500, pa.timestamp("ns", "UTC")),
    ],
    ids=str,
)
def test_what_has_no_exact_counterpart_is_refused(expression: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot read the pyarrow|there is no column"):
        _ours(expression)


def test_a_weaker_condition_keeps_the_parts_that_have_counterparts() -> None:
    unknown = F("i") + 1 > 2
    exact = (F("i") > 0) & F("flag")
    weaker = weaker_than_arrow_expression(unknown & exact & unknown, DATA.schema)
    assert weaker is not None
    assert weaker.same_as(from_arrow_expression(exact, DATA.schema))
    assert weaker_than_arrow_expression(unknown | exact, DATA.schema) is None
    assert weaker_than_arrow_expression(~(unknown & exact), DATA.schema) is None


def test_names_are_exact() -> None:
    found = from_arrow_expression(F("Twin") > 1, DATA.schema)
    assert found.same_as(from_arrow_expression(F("Twin") > 1, DATA.schema))
    with pytest.raises(InvalidInputError):
        from_arrow_expression(F("TWIN") > 1, DATA.schema)


NANOS = 1_700_000_000_123_456_789
INTERVAL: Any = pa.MonthDayNano  # the stubs know other arguments
COUNTED = StructType(
    [
        Field("at", "timestamp_nanos"),
        Field("clock", "timestamp_nanos_ntz"),
        Field("months", "interval year to month"),
        Field("span", "interval day to second"),
        Field("i", "long"),
        Field("s", StructType([Field("span", "interval day to second")])),
    ]
)
COUNTS = pa.table(
    {
        "at": pa.array([NANOS, NANOS + 1, None], pa.timestamp("ns", "UTC")),
        "clock": pa.array([NANOS, -1, None], pa.timestamp("ns")),
        "months": pa.array([18, -7, None], pa.int32()),
        "span": pa.array([5, -5, None], pa.duration("us")),
        "i": pa.array([1, 2, 3]),
        "s": pa.array(
            [{"span": 5}, None, {"span": None}], pa.struct([("span", pa.duration("us"))])
        ),
    }
)


def instant(value: int) -> Any:
    return pa.scalar(value, pa.timestamp("ns", "UTC"))


def wall(value: int) -> Any:
    return pa.scalar(value, pa.timestamp("ns"))


def span(value: int) -> Any:
    return pa.scalar(value, pa.duration("us"))


@pytest.mark.parametrize(
    "condition",
    [
        F("at") > instant(NANOS),
        F("at") == instant(NANOS + 1),
        (F("clock") < wall(0)) & (F("i") > 1),
        F("span") >= span(5),
        F("span") != pa.scalar(0, pa.duration("ms")),
        F("span").isin(pa.array([5, 7], pa.duration("us"))),
        F("at").isin(pa.array([NANOS], pa.timestamp("ns", "UTC"))),
        F("months") > 3,
        F("months").isin([18, 2]),
        ~(F("months") == -7),
        F("i") > 2,
        F("i").isin(pa.array([2], pa.duration("us"))),
        (F("i") > 1) & (F("span") < span(0)),
        F("at").is_null(),
        F("s", "span") == span(5),
        F("at") == F("at"),
    ],
    ids=str,
)
def test_filters_of_nanoseconds_and_intervals(condition: Any) -> None:
    found = as_meant(from_arrow_expression(condition, COUNTS.schema), COUNTED)
    mask = evaluate(resolve_predicate(found, COUNTED), COUNTS)
    assert COUNTS.filter(mask).equals(COUNTS.filter(condition))


@pytest.mark.parametrize(
    "condition",
    [
        F("at") > pa.scalar(0, pa.timestamp("us", "UTC")),
        F("span") > pa.scalar(1, pa.duration("ns")),
        F("i") == span(5),
        F("i") > pa.scalar(5, pa.duration("s")),
        F("months") == span(5),
        F("at") == span(5),
        F("at").isin(pa.array([5], pa.duration("us"))),
        F("months").isin(pa.array([5], pa.duration("us"))),
        F("i") < instant(5),
        F("i") < wall(5),
        F("at") == wall(5),
        F("clock") == instant(5),
        F("span") == wall(5),
        F("span") == 5,
        F("at") == 5,
        F("i") == F("span"),
        F("at") == F("clock"),
        F("i") == pa.scalar(INTERVAL([5, 0, 0])),
        F("months") == pa.scalar(INTERVAL([5, 0, 0])),
        F("s", "span") == 5,
    ],
    ids=str,
)
def test_filters_of_other_units_and_types_are_left_to_their_engine(condition: Any) -> None:
    assert weaker_than_arrow_expression(condition, COUNTS.schema) is None
    with pytest.raises(InvalidInputError, match="write it as SQL"):
        from_arrow_expression(condition, COUNTS.schema)
