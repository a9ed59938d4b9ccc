from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.column_mapping import Mode
from deltalog.expressions import Expression, col, lit, parse_sql, resolve_predicate
from deltalog.schema import ArrayType, Field, StructType
from deltalog.stats import Skipping, leaves_of_schema, parse_stats, plan_skipping


@dataclass(frozen=True)
class FakeTable:
    schema: StructType
    partition_columns: tuple[str, ...] = ()
    column_mapping_mode: Mode = Mode.NONE


NAN = float("nan")
TABLE = FakeTable(
    StructType(
        [
            Field("x", "long"),
            Field("i", "integer"),
            Field("s", "string"),
            Field("f", "double"),
            Field("t", "timestamp"),
            Field("n", "timestamp_ntz"),
            Field("d", "date"),
            Field("b", "boolean"),
            Field("st", StructType([Field("a", "integer")])),
            Field("l", ArrayType("long")),
            Field("p", "integer"),
            Field("q", "string"),
        ]
    ),
    partition_columns=("p", "q"),
)


def plan(predicate: str | Expression, table: FakeTable = TABLE) -> Skipping | None:
    tree = parse_sql(predicate) if isinstance(predicate, str) else predicate
    return plan_skipping(resolve_predicate(tree, table.schema), table)


def keep(
    predicate: str | Expression,
    *stats: str | None,
    partitions: pa.Table | None = None,
    table: FakeTable = TABLE,
) -> list[bool]:
    skipping = plan(predicate, table)
    if skipping is None:
        return [True] * len(stats)
    parsed = parse_stats(pa.array(list(stats), pa.string()), skipping.stats_schema)
    return [bool(kept) for kept in skipping.keep(parsed, partitions).to_pylist()]


def stats(column: str, low: str, high: str, *, nulls: int = 0, rows: int = 10) -> str:
    return (
        f'{{"numRecords":{rows},"minValues":{{"{column}":{low}}},'
        f'"maxValues":{{"{column}":{high}}},"nullCount":{{"{column}":{nulls}}}}}'
    )


ONE_TO_FIVE = stats("x", "1", "5")
ALL_NULL = '{"numRecords":10,"minValues":{},"maxValues":{},"nullCount":{"x":10}}'


@pytest.mark.protocol("STAT-04", "STAT-08")
@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("x > 5", False),
        ("x > 4", True),
        ("x >= 5", True),
        ("x >= 6", False),
        ("x < 1", False),
        ("x <= 1", True),
        ("5 < x", False),
        ("1 >= x", True),
        ("x = 0", False),
        ("x = 3", True),
        ("x <=> 6", False),
        ("x <> 3", True),
        ("x BETWEEN 6 AND 9", False),
        ("x IN (0, 6)", False),
        ("x IN (0, 3)", True),
        ("x IN (0, NULL)", False),
        ("x NOT IN (1, NULL)", False),
        ("x NOT IN (1, 2)", True),
        ("x IS NULL", False),
        ("x IS NOT NULL", True),
        ("x <=> NULL", False),
        ("x = NULL", False),
        ("NOT x <= 5", False),
        ("NOT x > 5", True),
        ("NOT (x > 0 OR x IS NULL)", False),
        ("NOT (x >= 1 AND x <= 5)", False),
        ("NOT (x <=> 3)", True),
        ("x > 5 OR x < 1", False),
        ("x > 5 OR x = 2", True),
        ("x > 5 AND x = 2", False),
        ("x > 3000000000", False),
        ("x > 5.5", False),
        ("x < 1.5", True),
        ("CAST(x AS DOUBLE) > 5", False),
        ("CAST(x AS DOUBLE) IS NULL", False),
        ("CAST(x AS STRING) = '7'", True),
        ("x % 2 = 7", True),
        ("x > 5 OR x % 2 = 0", True),
        ("x > 5 AND x % 2 = 0", False),
        ("FALSE", False),
        ("TRUE", True),
        ("NULL", False),
    ],
)
def test_a_file_with_x_from_1_to_5(predicate: str, *, expected: bool) -> None:
    assert keep(predicate, ONE_TO_FIVE, None) == [
        expected,
        # Without statistics, only what no row can fulfil is skipped.
        predicate not in {"FALSE", "NULL", "x = NULL", "x NOT IN (1, NULL)"},
    ]


@pytest.mark.protocol("STAT-08")
@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("x > 5", False),
        ("x <> 5", False),
        ("x = 5", False),
        ("x IN (5)", False),
        ("x IS NULL", True),
        ("x <=> NULL", True),
        ("x IS NOT NULL", False),
        ("NOT (x <=> 5)", True),
    ],
)
def test_a_file_where_all_is_null(predicate: str, *, expected: bool) -> None:
    assert keep(predicate, ALL_NULL) == [expected]


def test_a_file_of_one_value() -> None:
    one = stats("x", "3", "3")
    assert keep("x <> 3", one) == [False]
    assert keep("x <> 4", one) == [True]
    assert keep("x NOT IN (1, 3)", one) == [False]
    assert keep("NOT (x <=> 3)", one) == [False]
    assert keep("NOT (x <=> 3)", stats("x", "3", "3", nulls=1)) == [True]


@pytest.mark.protocol("STAT-04", "STAT-03", "D-56")
@pytest.mark.parametrize("tight", ["", ',"tightBounds":true', ',"tightBounds":false'])
@pytest.mark.parametrize(
    ("nulls", "is_null", "is_not_null"), [(0, False, True), (4, True, True), (10, True, False)]
)
def test_null_counts_with_tight_and_wide_bounds(
    tight: str, nulls: int, *, is_null: bool, is_not_null: bool
) -> None:
    text = f'{{"numRecords":10,"nullCount":{{"x":{nulls}}}{tight}}}'
    assert keep("x IS NULL", text) == [is_null]
    assert keep("x IS NOT NULL", text) == [is_not_null]


@pytest.mark.protocol("STAT-02", "D-63")
@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{bad",
        "{}",
        '{"numRecords":10}',
        '{"numRecords":10,"minValues":{"x":1},"nullCount":{"x":0}}',
        '{"maxValues":{"y":1}}',
    ],
)
def test_a_missing_statistic_keeps_the_file(text: str | None) -> None:
    assert keep("x > 5", text) == [True]


def test_only_the_statistics_that_decide_are_asked_for() -> None:
    skipping = plan("x > 5 AND s IS NULL")
    assert skipping is not None
    assert [".".join(path) for path, _ in leaves_of_schema(skipping.stats_schema)] == [
        "numRecords",
        "maxValues.x",
        "nullCount.s",
        "nullCount.x",
    ]
    assert skipping.partition_columns == ()


@pytest.mark.parametrize(
    "predicate",
    ["b", "NOT b", "x % 2 = 0", "x + i > 5", "l IS NULL OR b", "s LIKE '%a' OR x % 2 = 0"],
)
def test_what_no_statistic_can_decide_needs_no_plan(predicate: str) -> None:
    assert plan(predicate) is None


def test_leaves_of_every_kind_have_null_counts() -> None:
    text = '{"numRecords":2,"nullCount":{"l":0,"b":2,"st":{"a":0}}}'
    assert keep("l IS NULL", text) == [False]
    assert keep("b IS NOT NULL", text) == [False]
    assert keep("st.a IS NULL", text) == [False]
    assert keep("st IS NULL", text) == [True]


def test_fields_of_structs() -> None:
    text = '{"minValues":{"st":{"a":1}},"maxValues":{"st":{"a":5}}}'
    assert keep("st.a > 5", text) == [False]
    assert keep("ST.A = 2", text) == [True]


@pytest.mark.protocol("STAT-06", "D-12")
@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("s LIKE 'ab%'", True),
        ("s LIKE 'aa%'", False),
        ("s LIKE 'b%'", True),
        ("s LIKE 'bb%'", False),
        ("s LIKE 'a%z_'", True),
        ("s LIKE 'aa_'", False),
        ("s LIKE 'aa'", False),
        ("s LIKE 'abc'", True),
        ("s LIKE '%x'", True),
        ("s LIKE ''", False),
        ("s LIKE 'a\\\\%%'", False),
        ("s LIKE NULL", False),
        ("s ILIKE 'Z%'", True),
        ("startswith(s, 'c')", False),
        ("startswith(s, '')", True),
        ("startswith(s, NULL)", False),
        ("s NOT LIKE 'a%'", True),
        ("s NOT LIKE 'a%b'", True),
        ("s NOT LIKE 'abc'", True),
        ("s IN ('a', 'bb')", False),
        ("s > 'é'", False),
    ],
)
def test_texts_from_abc_to_ba(predicate: str, *, expected: bool) -> None:
    assert keep(predicate, stats("s", '"abc"', '"ba"')) == [expected]


def test_texts_that_all_have_one_prefix() -> None:
    text = stats("s", '"abc"', '"abz"')
    assert keep("s NOT LIKE 'ab%'", text) == [False]
    assert keep("NOT startswith(s, 'ab')", text) == [False]
    assert keep("s NOT LIKE 'abc%'", text) == [True]


@pytest.mark.protocol("D-12", "STAT-06")
def test_a_cut_maximum_covers_what_was_cut() -> None:
    low, high = f'"{"a" * 32}"', f'"{"a" * 32}\\u007f"'
    assert keep(col("s") == "a" * 32 + "z", stats("s", low, high)) == [True]
    assert keep(col("s").starts_with("a" * 32 + "z"), stats("s", low, high)) == [True]
    assert keep(col("s") == "a" * 31 + "b", stats("s", low, high)) == [False]


@pytest.mark.protocol("STAT-07", "D-15")
@pytest.mark.parametrize("column", ["t", "n"])
def test_a_timestamps_maximum_is_one_millisecond_later(column: str) -> None:
    zone = "Z" if column == "t" else ""
    text = stats(column, f'"2024-01-01T00:00:00.955{zone}"', f'"2024-01-01T00:00:57.955{zone}"')
    assert keep(f"{column} > '2024-01-01 00:00:57.955123'", text) == [True]
    assert keep(f"{column} >= '2024-01-01 00:00:57.956'", text) == [True]
    assert keep(f"{column} > '2024-01-01 00:00:57.956'", text) == [False]
    assert keep(f"{column} < '2024-01-01 00:00:00.955'", text) == [False]


@pytest.mark.protocol("D-15")
def test_the_last_timestamp_has_no_later_one() -> None:
    skipping = plan(col("t") > datetime(2024, 1, 1, tzinfo=UTC))
    assert skipping is not None
    last = pa.array([(1 << 63) - 1, (1 << 63) - 1000, 0, None]).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"maxValues": pa.StructArray.from_arrays([last], names=["t"])})
    assert skipping.keep(table).to_pylist() == [True, True, False, True]


@pytest.mark.protocol("STAT-14")
def test_dates_and_their_casts() -> None:
    text = stats("d", '"2024-01-01"', '"2024-01-31"')
    assert keep("d > '2024-01-31'", text) == [False]
    assert keep("d >= DATE'2024-01-31'", text) == [True]
    assert keep("d >= TIMESTAMP'2024-02-01 00:00:00Z'", text) == [False]
    moments = stats("t", '"2024-01-01T10:00:00.000Z"', '"2024-01-02T10:00:00.000Z"')
    assert keep("CAST(t AS DATE) > '2024-01-02'", moments) == [False]
    assert keep("CAST(t AS DATE) = '2024-01-01'", moments) == [True]


@pytest.mark.protocol("D-13")
@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("f") > 5.0, True),
        (col("f") == NAN, True),
        (col("f") >= NAN, True),
        (col("f") > NAN, False),
        (col("f") < NAN, True),
        (col("f").is_in([NAN, 7.0]), True),
        (col("f") < 1.0, False),
    ],
)
def test_nan_is_the_greatest(predicate: Expression, *, expected: bool) -> None:
    assert keep(predicate, stats("f", "1.0", '"NaN"')) == [expected]


@pytest.mark.protocol("D-13")
def test_a_file_of_nan_alone() -> None:
    text = stats("f", '"NaN"', '"NaN"')
    assert keep(col("f") < 5.0, text) == [False]
    assert keep(col("f") == 5.0, text) == [False]
    assert keep(col("f") < NAN, text) == [False]
    assert keep(col("f") != NAN, text) == [False]
    assert keep(col("f") == NAN, text) == [True]


@pytest.mark.protocol("D-13")
def test_nan_is_looked_for_also_where_a_writer_leaves_it_out_of_its_bounds() -> None:
    text = stats("f", "1.0", "1.0")
    for predicate in (col("f") == NAN, col("f") >= NAN, col("f").is_in([NAN])):
        assert keep(predicate, text) == [True]


@pytest.mark.protocol("D-14")
def test_zeros_and_infinities() -> None:
    for low, high in (("-0.0", "-0.0"), ("0.0", "0.0")):
        assert keep(col("f") == 0.0, stats("f", low, high)) == [True]
        assert keep(col("f") >= -0.0, stats("f", low, high)) == [True]
        assert keep(col("f") < 0.0, stats("f", low, high)) == [False]
        zeros = lit(0.0), *(lit(float(i)) for i in range(5, 40))
        assert keep(col("f").is_in(zeros), stats("f", low, high)) == [True]
    assert keep(col("f") > 1e308, stats("f", "1.0", '"Infinity"')) == [True]
    assert keep(col("f") < 5.0, stats("f", '"Infinity"', '"Infinity"')) == [False]


@pytest.mark.protocol("D-11")
def test_longs_beyond_a_double_are_exact() -> None:
    text = stats("x", "9007199254740993", "9007199254740993")
    assert keep("x = 9007199254740993", text) == [True]
    assert keep("x = 9007199254740992", text) == [False]


@pytest.mark.parametrize("count", [10, 1000])
def test_many_options(count: int) -> None:
    options = [lit(10 * number) for number in range(count)]
    texts = [stats("x", "1", "9"), stats("x", "11", "30"), ALL_NULL, None, stats("x", "-5", "-1")]
    texts.append(stats("x", str(10 * count), str(20 * count)))
    assert keep(col("x").is_in(options), *texts) == [False, True, False, True, False, False]


DECIMALS = FakeTable(
    StructType(
        [
            Field("small", "decimal(9,2)"),
            Field("d", "decimal(18,2)"),
            Field("big", "decimal(38,10)"),
            Field("whole", "decimal(38,0)"),
        ]
    )
)


@pytest.mark.protocol("D-10", "STAT-14")
def test_decimals_are_compared_digit_by_digit() -> None:
    low = "12345678901234567890.0123456789"
    text = stats("big", low, low)
    assert keep(col("big") < Decimal(low), text, table=DECIMALS) == [False]
    assert keep(col("big") == Decimal(low), text, table=DECIMALS) == [True]
    assert keep(col("big") > Decimal(low), text, table=DECIMALS) == [False]
    assert keep("small > 5.5", stats("small", "1.10", "5.50"), table=DECIMALS) == [False]
    assert keep("small >= 5.5", stats("small", "1.10", "5.50"), table=DECIMALS) == [True]


@pytest.mark.protocol("D-10")
def test_decimals_that_went_through_a_double_lose_no_row() -> None:
    # What deltalake 1.6.6 writes for 1234567890123456.11 and .77.
    text = stats("d", "1234567890123456.2", "1234567890123456.8")
    assert keep(col("d") == Decimal("1234567890123456.11"), text, table=DECIMALS) == [True]
    assert keep(col("d") == Decimal("1234567890123450.00"), text, table=DECIMALS) == [False]
    # It cuts whole decimals beyond int64 to its limits.
    text = stats("whole", "-9223372036854775808", "9223372036854775807")
    assert keep(col("whole") > Decimal(10) ** 20, text, table=DECIMALS) == [True]
    assert keep(col("whole") > Decimal(10) ** 20, stats("whole", "1", "5"), table=DECIMALS) == [
        False
    ]
    # 123456789012345678901 as a double has other last digits.
    text = stats("whole", "123456789012345683968", "123456789012345683968")
    exact = Decimal(123456789012345678901)
    assert keep(col("whole") == exact, text, table=DECIMALS) == [True]
    most = "9" * 38
    assert keep(col("whole") >= 0, stats("whole", f"-{most}", most), table=DECIMALS) == [True]


@pytest.mark.protocol("B-50", "D-68")
def test_a_former_float_column_has_bounds_of_floats() -> None:
    changes = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    table = FakeTable(StructType([Field("f", "double", metadata=changes), Field("g", "double")]))
    # The file holds the float 0.1, which is the double 0.10000000149011612.
    both = '{"minValues":{"f":0.1,"g":0.1},"maxValues":{"f":0.1,"g":0.1}}'
    assert keep(col("f") > 0.1, both, table=table) == [True]
    assert keep(col("g") > 0.1, both, table=table) == [False]
    assert keep(col("f") > 0.2, both, table=table) == [False]


@pytest.mark.protocol("B-50", "D-68")
def test_statistics_in_the_narrower_type_decide() -> None:
    table = FakeTable(
        StructType([Field("x", "long"), Field("n", "timestamp_ntz"), Field("d", "decimal(8,4)")])
    )
    text = '{"maxValues":{"x":100,"n":"2024-09-09","d":12.34}}'
    assert keep("x > 3000000000", text, table=table) == [False]
    assert keep("n > '2024-09-10'", text, table=table) == [False]
    assert keep("n >= '2024-09-09'", text, table=table) == [True]
    assert keep("d > 12.3401", text, table=table) == [False]


PARTITIONS = pa.table({"p": pa.array([1, 2, None], pa.int32()), "q": ["a", None, "b"]})
THREE = (ONE_TO_FIVE, stats("x", "11", "15"), None)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("p = 1", [True, False, False]),
        ("p IS NULL", [False, False, True]),
        ("NOT p = 1", [False, True, False]),
        ("p <=> NULL OR q = 'a'", [True, False, True]),
        ("q LIKE '%a'", [True, False, False]),
        ("p + 1 = 3", [False, True, False]),
        ("p = 1 AND x > 5", [False, False, False]),
        ("p = 1 OR x > 10", [True, True, True]),
        ("p = 9 OR x > 20", [False, False, True]),
        ("NOT (p = 1 AND x < 9)", [False, True, True]),
        ("p > x", [False, False, False]),
        ("p < x", [True, True, False]),
        ("x = p * 11", [False, False, False]),
        ("x IN (p, 12)", [True, True, True]),
        ("x NOT IN (p)", [True, True, False]),
        ("q = s", [True, False, True]),
        ("1 / (p - 1) = 1 OR p = 1", [True, True, True]),
    ],
)
def test_partition_values_are_exact(predicate: str, expected: list[bool]) -> None:
    assert keep(predicate, *THREE, partitions=PARTITIONS) == expected


def test_partition_values_alone_decide_too() -> None:
    skipping = plan("p = 1 AND x > 5")
    assert skipping is not None
    assert skipping.partition_columns == ("p",)
    assert skipping.keep(None, PARTITIONS).to_pylist() == [True, False, False]
    assert skipping.keep(None, None).to_pylist() == []


@pytest.mark.protocol("STAT-01")
def test_statistics_have_physical_names() -> None:
    inner = StructType([Field("b", "long", metadata={"delta.columnMapping.physicalName": "col-2"})])
    table = FakeTable(
        StructType([Field("a", inner, metadata={"delta.columnMapping.physicalName": "col-1"})]),
        column_mapping_mode=Mode.NAME,
    )
    text = '{"maxValues":{"col-1":{"col-2":5},"a":{"b":9}}}'
    assert keep("a.b > 5", text, table=table) == [False]


def test_collations_do_not_order_by_bytes() -> None:
    metadata = {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}}
    table = FakeTable(StructType([Field("s", "string", metadata=metadata)]))
    assert keep("s > 'b'", stats("s", '"A"', '"B"'), table=table) == [True]
    assert keep("s IS NULL", stats("s", '"A"', '"B"'), table=table) == [False]


@pytest.mark.protocol("D-16", "STAT-11")
def test_bounds_of_booleans_are_not_used() -> None:
    assert keep("b = TRUE", stats("b", "false", "false")) == [True]


def test_explanations_name_the_statistic() -> None:
    skipping = plan("x > 5 AND (p = 1 OR s LIKE 'a%') AND x % 2 = 0 AND x IS NOT NULL")
    assert skipping is not None
    assert skipping.explain() == (
        "max(x) > 5L",
        "nullCount(x) < numRecords",
        "any of",
        "  partition values: p = 1",
        "  some of [min(s), max(s)] start with 'a'",
        "  nullCount(s) < numRecords",
        "not decided by statistics: x % 2L = 0L",
    )
    parsed = parse_stats(pa.array(list(THREE)), skipping.stats_schema)
    assert skipping.explain(parsed, PARTITIONS)[0] == "max(x) > 5L: keeps 2 of 3 files"


@pytest.mark.parametrize(
    ("predicate", "line"),
    [
        ("x = 5", "min(x) <= 5L"),
        ("x <> 5", "not min(x) = max(x) = 5L"),
        ("x IN (5)", "one of 1 options in [min(x), max(x)]"),
        ("i > 3000000000", "CAST(max(i) AS long) > 3000000000L"),
        ("x IS NULL", "nullCount(x) > 0"),
        ("s NOT LIKE 'a%'", "not all of [min(s), max(s)] start with 'a'"),
        ("x = NULL", "never true: x = CAST(NULL AS BIGINT)"),
        ("1 = 2", "constant: 1 = 2"),
        ("p < x", "CAST(p AS BIGINT) < max(x)"),
    ],
)
def test_explanations_of_every_kind(predicate: str, line: str) -> None:
    skipping = plan(predicate)
    assert skipping is not None
    assert line in skipping.explain()


def test_a_million_files_cost_no_python_object_each(monkeypatch: pytest.MonkeyPatch) -> None:
    skipping = plan("x > 5 AND x IN (7, 8)")
    assert skipping is not None
    bounds: Any = pa.StructArray.from_arrays([pa.array(range(100_000))], names=["x"])
    table = pa.table({"minValues": bounds, "maxValues": bounds})

    def refuse(*_: object) -> None:
        raise AssertionError("a column was turned into Python objects")

    monkeypatch.setattr("deltalog.expressions.comparing.sort_key", refuse)
    assert skipping.keep(table).true_count == 2
