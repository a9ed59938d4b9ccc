from __future__ import annotations

import itertools
import re
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import DeltaError, InternalError, InvalidInputError
from deltalog.expressions import (
    evaluate,
    filter_mask,
    parse_sql,
    parse_type,
    resolve,
    resolve_predicate,
    to_sql,
)
from deltalog.expressions.arrow import KERNELS, fold
from deltalog.schema import Field, StructType, from_arrow_schema
from tests.support.sql import values_of

SCHEMA = StructType([Field("n", parse_type("int")), Field("d", parse_type("date"))])


TRUTHS: list[bool | None] = [True, False, None]


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


@pytest.mark.parametrize(("a", "b"), list(itertools.product(TRUTHS, TRUTHS)))
def test_three_valued_logic(a: bool | None, b: bool | None) -> None:
    columns = {"a": pa.array([a], pa.bool_()), "b": pa.array([b], pa.bool_())}
    assert values_of("a AND b", **columns) == [_and(a, b)]
    assert values_of("a OR b", **columns) == [_not(_and(_not(a), _not(b)))]
    assert values_of("NOT a", **columns) == [_not(a)]
    assert values_of("a = b", **columns) == [None if None in (a, b) else a == b]
    assert values_of("a <=> b", **columns) == [a == b]
    assert values_of("a IS TRUE", **columns) == [a is True]
    assert values_of("a IS NOT FALSE", **columns) == [a is not False]
    assert values_of("a IS UNKNOWN", **columns) == [a is None]
    assert values_of("a IN (b)", **columns) == [None if None in (a, b) else a == b]


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("n + 1", r"\+ overflows integer"),
        ("n * 2", r"\* overflows integer"),
        ("-n - 2", "- overflows integer"),
        ("n / 0", "division by zero"),
        ("n % 0", "division by zero"),
        ("n div 0", "division by zero"),
        ("CAST(name AS int) < nullif(1, 1)", "cannot cast 'abc'"),
        ("CAST(name AS int) + nullif(1, 1)", "cannot cast 'abc'"),
        ("nullif(1, 1) / CAST(name AS int)", "cannot cast 'abc'"),
        ("nullif(1, 1) <=> CAST(name AS int)", "cannot cast 'abc'"),
        ("pmod(n, 0)", "division by zero"),
        ("abs(-n - 1)", "abs overflows integer"),
        ("CAST(n AS smallint)", "cannot cast 2147483647 to short"),
        ("CAST(name AS int)", "cannot cast 'abc' to integer"),
        ("CAST(name AS date)", "cannot cast '1' to date"),
        ("CAST(x AS int)", r"cannot cast 1.0E300 to integer"),
        ("CAST(n AS decimal(5,2))", r"cannot cast 2147483647 to decimal\(5,2\)"),
        ("CAST(name AS boolean)", "cannot cast 'abc' to boolean"),
        ("arr[1]", "no element with this index"),
        ("element_at(arr, 0)", "must not be 0"),
        ("name LIKE 'a\\\\bc'", "escape character"),
        ("name RLIKE '('", "regular expression"),
        ("to_date(name, 'yyyy')", "cannot read '1' as 'yyyy'"),
    ],
)
def test_what_ansi_refuses_is_an_error(sql: str, problem: str) -> None:
    columns = {
        "n": pa.array([1, (1 << 31) - 1], pa.int32()),
        "name": pa.array(["1", "abc"]),
        "x": pa.array([1.0, 1e300]),
        "arr": pa.array([[1, 2], [1]], pa.list_(pa.int32())),
    }
    with pytest.raises(InvalidInputError, match=problem):
        values_of(sql, **columns)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("n <> 0 AND 10 / n > 4", [False, True, None, False]),
        ("n = 0 OR 10 / n > 4", [True, True, None, False]),
        ("CASE WHEN n = 0 THEN -1 ELSE 10 div n END", [-1, 5, None, 2]),
        ("if(n = 0, NULL, 10 div n)", [None, 5, None, 2]),
        ("coalesce(nullif(n, 0), 1 div nullif(n, 0), 7)", [7, 2, 7, 4]),
        ("10 / nullif(n, 0)", [None, 5.0, None, 2.5]),
        ("try_cast(text AS int)", [1, None, None, 4]),
        ("text RLIKE '^[0-9]+$' AND CAST(text AS int) > 1", [False, False, None, True]),
        ("CASE WHEN text = 'x' THEN 0 ELSE CAST(text AS int) END", [1, 0, None, 4]),
        ("CASE WHEN FALSE THEN 1 / 0 END", [None] * 4),
        ("n IN (2, 10 div nullif(n, 0))", [None, True, None, False]),
        # As a real Spark answered: beside a NULL, the other operand is not evaluated.
        ("nullif(text, 'x') < CAST(text AS int)", [False, None, None, False]),
        ("nullif(text, 'x') + CAST(text AS int)", [2, None, None, 8]),
        ("CAST(text AS int) / nullif(length(text), length(text))", [None] * 4),
        ("CAST(text AS int) % nullif(1, 1)", [None] * 4),
        ("CAST(text AS int) div nullif(1, 1)", [None] * 4),
        ("pmod(CAST(text AS int), nullif(1, 1))", [None] * 4),
        ("nullif(1, 1) BETWEEN 0 AND CAST(text AS int)", [None] * 4),
        ("nullif(1, 1) IN (0, CAST(text AS int))", [None] * 4),
    ],
)
def test_a_guard_keeps_rows_from_what_would_fail(sql: str, expected: list[Any]) -> None:
    columns = {"n": pa.array([0, 2, None, 4], pa.int32()), "text": ["1", "x", None, "4"]}
    assert values_of(sql, **columns) == expected


def test_null_structs_hide_what_lies_under_them() -> None:
    child = pa.array([1, 2, 3], pa.int32())
    struct = pa.StructArray.from_arrays([child], ["x"], mask=pa.array([False, True, False]))
    assert values_of("s.x > 1", s=struct) == [False, None, True]


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("sql", ["1 + 1", "NULL", "'x' LIKE 'x'", "CASE WHEN n > 1 THEN 1 / 0 END"])
def test_constants_have_as_many_rows_as_the_data(sql: str, rows: int) -> None:
    assert len(values_of(sql, n=pa.array([0] * rows, pa.int32()))) == rows


def test_no_rows_give_no_errors() -> None:
    assert values_of("CAST(name AS int) / 0 > 1", name=pa.array([], pa.string())) == []


def test_a_table_gives_one_value_for_each_of_its_rows() -> None:
    chunks: Any = pa.chunked_array([[1, 2], [], [3]], pa.int64())
    table = pa.table({"n": chunks, "other": [1, 2, 3]})
    schema = from_arrow_schema(table.schema)
    found = evaluate(resolve(parse_sql("n * 2"), schema), table)
    assert isinstance(found, pa.ChunkedArray)
    assert found.to_pylist() == [2, 4, 6]
    assert evaluate(resolve(parse_sql("5"), schema), table).to_pylist() == [5, 5, 5]
    empty = table.slice(0, 0)
    assert evaluate(resolve(parse_sql("n * 2"), schema), empty).to_pylist() == []


def test_a_mask_has_no_null() -> None:
    data = pa.RecordBatch.from_pydict({"n": pa.array([1, None, 3], pa.int32())})
    schema = from_arrow_schema(data.schema)
    mask = filter_mask(resolve_predicate(parse_sql("n > 1"), schema), data)
    assert mask.to_pylist() == [False, False, True]
    assert data.filter(mask).num_rows == 1
    nothing = filter_mask(resolve_predicate(parse_sql("NULL"), schema), data)
    assert nothing.to_pylist() == [False] * 3


@pytest.mark.parametrize(
    ("sql", "folded"),
    [
        ("1 + 2 * 3", "7"),
        ("n > 1 + 2", "n > 3"),
        ("d > date_add(DATE'2024-01-31', 1)", "d > DATE'2024-02-01'"),
        ("n > 1 OR 1 = 1", "TRUE"),
        ("n > 1 AND (1 = 1 OR n > 2) AND NULL", "n > 1 AND TRUE AND CAST(NULL AS BOOLEAN)"),
        ("1 / 0 = n AND 1 BETWEEN 2 AND n", "FALSE"),
        ("n IN (1 + 1, 3)", "n IN (2, 3)"),
        ("upper('a') = 'A'", "TRUE"),
        ("NULL + 1", "CAST(NULL AS INT)"),
        ("n", "n"),
        ("n + 1 + 2", "n + 1 + 2"),
        ("array(1, 2)[0]", "1"),
        ("array(1, n)[0]", "array(1, n)[0]"),
        ("CASE WHEN FALSE THEN 1 / 0 END", "CAST(NULL AS DOUBLE)"),
    ],
)
def test_constant_parts_become_their_value(sql: str, folded: str) -> None:
    assert to_sql(fold(resolve(parse_sql(sql), SCHEMA))) == folded


@pytest.mark.parametrize("sql", ["1 / 0", "CAST('x' AS INT)", "n > 1 / 0", "2147483647 + 1"])
def test_a_part_that_fails_stays_for_the_rows(sql: str) -> None:
    resolved = resolve(parse_sql(sql), SCHEMA)
    assert fold(resolved).same_as(resolved)


def test_a_day_that_python_does_not_have_is_a_constant_too() -> None:
    resolved = resolve(parse_sql("add_months(DATE'9999-12-31', 1)"), SCHEMA)
    assert fold(resolved).same_as(resolve(parse_sql("DATE'+10000-01-31'"), SCHEMA))


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (pa.ArrowInvalid("x"), InvalidInputError),
        (pa.ArrowCapacityError("x"), InvalidInputError),
        (pa.ArrowIndexError("x"), InvalidInputError),
        (pa.ArrowMemoryError("x"), InvalidInputError),
        (MemoryError(), InvalidInputError),
        (OverflowError("x"), InvalidInputError),
        (ZeroDivisionError("x"), InvalidInputError),
        (RecursionError("x"), InvalidInputError),
        (re.error("x"), InvalidInputError),
        (pa.ArrowNotImplementedError("x"), InternalError),
        (pa.ArrowTypeError("x"), InternalError),
        (pa.ArrowKeyError("x"), InternalError),
        (TypeError("x"), InternalError),
        (AttributeError("x"), InternalError),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_whatever_a_kernel_raises_names_the_expression(
    raised: Exception, expected: type[DeltaError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: object) -> object:
        raise raised

    monkeypatch.setitem(KERNELS, "upper", failing)
    data = pa.table({"s": ["a"]})
    resolved = resolve(parse_sql("concat(upper(s), 'b')"), from_arrow_schema(data.schema))
    with pytest.raises(expected, match=r"cannot compute upper\(s\)") as caught:
        evaluate(resolved, data)
    assert caught.value.__cause__ is raised


def test_a_stop_by_the_user_is_none_of_our_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setitem(KERNELS, "upper", stopped)
    data = pa.table({"s": ["a"]})
    with pytest.raises(KeyboardInterrupt):
        evaluate(resolve(parse_sql("upper(s)"), from_arrow_schema(data.schema)), data)
