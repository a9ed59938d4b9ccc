"""Claims about files, judged from statistics."""

from __future__ import annotations

import pytest

from deltalog.expressions import Expression, col, lit
from tests.support.skipping import ALL_NULL, keep, stats

NAN = float("nan")


@pytest.mark.parametrize("text", ['{"nullCount":{"x":3}}', '{"numRecords":3}', "{}"])
def test_one_count_without_the_other_decides_nothing(text: str) -> None:
    assert keep("x IS NOT NULL", text) == [True]
    assert keep("NOT x IS NOT NULL", text) == [True]


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


def test_leaves_of_every_kind_have_null_counts() -> None:
    text = '{"numRecords":2,"nullCount":{"l":0,"b":2,"st":{"a":0}}}'
    assert keep("l IS NULL", text) == [False]
    assert keep("b IS NOT NULL", text) == [False]
    assert keep("st.a IS NULL", text) == [False]
    assert keep("st IS NULL", text) == [True]


def test_texts_that_all_have_one_prefix() -> None:
    text = stats("s", '"abc"', '"abz"')
    assert keep("s NOT LIKE 'ab%'", text) == [False]
    assert keep("NOT startswith(s, 'ab')", text) == [False]
    assert keep("s NOT LIKE 'abc%'", text) == [True]


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


@pytest.mark.parametrize("count", [10, 1000])
def test_many_options(count: int) -> None:
    options = [lit(10 * number) for number in range(count)]
    texts = [stats("x", "1", "9"), stats("x", "11", "30"), ALL_NULL, None, stats("x", "-5", "-1")]
    texts.append(stats("x", str(10 * count), str(20 * count)))
    assert keep(col("x").is_in(options), *texts) == [False, True, False, True, False, False]
