"""Expressions of queries give what Spark gives: for constants, and for columns."""

from __future__ import annotations

import os
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import deltalog
from deltalog.errors import InvalidInputError
from deltalog.expressions import parse_sql, to_sql
from deltalog.schema import from_arrow_schema, to_arrow_type
from tests.support.recorded_answers import ANSWERS, expected_of, shown, spark_name, with_columns

# Each of them is a query, which takes some milliseconds.
_EVERY: Final = 1 if os.environ.get("DELTALOG_REFERENCE_FULL", "") not in {"", "0"} else 16
_SOME: Final = [
    answer
    for answer in ANSWERS
    # No query: a comment that nothing ends, and what only an expression alone may have.
    if "--" not in answer["sql"]
][::_EVERY]
# DuckDB has no struct without fields, and sqlglot reads neither `>>>` nor `~~` nor `concat()`.
_REFUSED: Final = re.compile(r">>>|~~|^concat\(\)|^arrays_zip\(\)")
# What only a query can have; and a condition that DuckDB asks first, as it cannot fail.
_ONLY_HERE: Final = re.compile(r"^(count|sum|row_number)\(|SELECT|AND FALSE$", re.IGNORECASE)
# What has to be a constant; sqlglot takes the names of some columns for such a word.
_UNSURE: Final = re.compile("must be a constant|there is no column|is not supported here")


def _answers(sql: str, rows_of_t: pa.Table | None = None) -> list[str]:
    rows = deltalog.connect({} if rows_of_t is None else {"t": rows_of_t}).sql(sql).to_arrow()
    (field,) = from_arrow_schema(rows.schema)
    return [
        f"{spark_name(field.type)} {shown(value, field.type)}"
        for value in rows.column(0).to_pylist()
    ]


@pytest.mark.parametrize("answer", _SOME, ids=lambda answer: answer["sql"])
def test_constants_are_sparks(answer: dict[str, str]) -> None:
    sql, expected = f"SELECT {answer['sql']} AS found", expected_of(answer)
    if expected is None and _ONLY_HERE.search(answer["sql"]):
        assert len(_answers(sql)) == 1
    elif expected is None or _REFUSED.search(answer["sql"]):
        with pytest.raises(InvalidInputError):
            _answers(sql)
    else:
        assert _without_maps(_answers(sql)) == _without_maps([expected])


@pytest.mark.parametrize(
    "answer",
    [answer for answer in _SOME if expected_of(answer) and not _REFUSED.search(answer["sql"])],
    ids=lambda answer: answer["sql"],
)
def test_columns_are_sparks(answer: dict[str, str]) -> None:
    lifted, values = with_columns(parse_sql(answer["sql"]))
    kinds = [to_arrow_type(kind) for _, kind in values]
    arrays: list[Any] = [
        pa.array([value, value], kind) for (value, _), kind in zip(values, kinds, strict=True)
    ]
    names = [f"c{place}" for place in range(len(arrays))]
    rows = pa.table([*arrays, pa.array([1, 2])], names=[*names, "n"])
    try:
        found = _answers(f"SELECT {to_sql(lifted)} AS found FROM t", rows)
    except InvalidInputError as error:
        assert _UNSURE.search(str(error)), answer  # noqa: PT017  # most of them have no error
        return
    expected = str(expected_of(answer))
    # Constants count with fewer digits in decimal types, so the types may differ; and no more.
    if found[0].partition(" ")[0] == expected.partition(" ")[0]:
        assert _without_maps(found) == _without_maps([expected] * 2)


def _without_maps(texts: list[str]) -> list[str]:
    """Types without the word by which no Arrow type is told: a map of no entries, and NULL."""
    return [re.sub(r"\bvoid(?=[ >,])", "int", text) for text in texts]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT ID, Id AS x FROM t ORDER BY id", ["ID", "x"]),
        ("SELECT T.ID FROM t JOIN t u ON t.id = u.id", ["ID"]),
        ("SELECT ID FROM t UNION ALL SELECT id FROM t", ["ID"]),
        ("WITH q AS (SELECT ID AS Found FROM t) SELECT FOUND FROM q", ["FOUND"]),
        ("SELECT S.X FROM t", ["X"]),
        ("SELECT *, ID + 1 FROM t", ["id", "s", "(ID + 1)"]),
    ],
)
def test_columns_are_named_as_the_query_spells_them(query: str, names: list[str]) -> None:
    rows = pa.table({"id": [1], "s": [{"x": 1}]})
    assert deltalog.connect({"t": rows}).sql(query).schema.names == names


@pytest.mark.parametrize(
    ("query", "counted"),
    [
        ("SELECT count(-CAST(3000000000 AS INT)) FROM t", [2]),
        ("SELECT count(2147483647 + 1), n FROM t GROUP BY n ORDER BY n", [1, 1]),
        ("SELECT count(1, (CAST(300 AS TINYINT))) FROM t", [2]),
        ("SELECT count(CAST(300 AS TINYINT)) OVER () FROM t", [2, 2]),
        ("SELECT count(CAST(300 AS TINYINT)) FILTER (WHERE n > 1) FROM t", [1]),
        ("SELECT count(TRY_CAST(300 AS TINYINT)) FROM t", [0]),
        ("SELECT count(CAST(NULL AS INT)) FROM t", [0]),
    ],
)
def test_a_count_of_whole_constants_counts_rows(query: str, counted: list[int]) -> None:
    # As Delta Spark answered: what is never NULL is not computed, so nor does it fail.
    rows = pa.table({"n": [1, 2]})
    assert deltalog.connect({"t": rows}).sql(query).to_arrow().column(0).to_pylist() == counted


@pytest.mark.parametrize(
    "counted",
    ["CAST('x' AS INT)", "DISTINCT CAST(300 AS TINYINT)", "CAST(n AS TINYINT)", "CAST(3e9 AS INT)"],
)
def test_a_count_of_what_may_be_null_is_computed(counted: str) -> None:
    rows = pa.table({"n": [300, 2]})
    with pytest.raises(InvalidInputError, match="CAST"):
        deltalog.connect({"t": rows}).sql(f"SELECT count({counted}) FROM t").to_arrow()


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ("0.01", pa.decimal128(2, 2)),
        ("-0.01", pa.decimal128(2, 2)),
        ("0.0", pa.decimal128(1, 1)),
        ("1.50", pa.decimal128(3, 2)),
        ("1E-3BD", pa.decimal128(3, 3)),
        ("max(0.01)", pa.decimal128(2, 2)),
        ("sum(0.01)", pa.decimal128(12, 2)),
        ("lag(0.5) OVER (ORDER BY n)", pa.decimal128(1, 1)),
        ("(SELECT 0.5)", pa.decimal128(1, 1)),
    ],
)
def test_decimal_constants_have_the_digits_that_count(found: str, kind: pa.DataType) -> None:
    # As Delta Spark answered; DuckDB counts the zero before the point.
    rows = pa.table({"n": [1]})
    assert deltalog.connect({"t": rows}).sql(f"SELECT {found} FROM t").to_arrow().schema.types == [
        kind
    ]


@pytest.mark.parametrize("never", ["1 > 2", "DATE'1970-01-01' BETWEEN DATE'2020-01-01' AND d"])
def test_what_fails_beside_a_condition_that_is_never_true_is_not_computed(never: str) -> None:
    """Spark folds constants before it reads rows."""
    rows = pa.table({"x": [4.0, None], "d": pa.array([0, 1], pa.date32())})
    with deltalog.connect({"t": rows}) as session:
        fails = "sqrt(x) IN (CAST('no number' AS DOUBLE), 3.0D)"
        found: Any = session.sql(f"SELECT x + 1 FROM t WHERE {fails} AND {never}").to_arrow()
        assert found.num_rows == 0
        with pytest.raises(InvalidInputError, match="no number"):
            session.sql(f"SELECT x + 1 FROM t WHERE {fails} OR {never}").to_arrow()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("f = 0.1", []),
        ("f = 0.1D", []),
        ("f = 0.1F", [1]),
        ("f IN (0.1, 0.5)", [2]),
        ("f = 16777217", []),
        ("f >= 16777217", []),
        ("f = 16777216", [3]),
        ("f <=> 0.5", [2]),
        ("f BETWEEN 0.1 AND 0.5", [1, 2]),
        ("f = i", []),
        ("f = d", [1, 2]),
        ("f + i = 16777216.5", [2]),
        ("f = x", [2]),
    ],
)
def test_floats_are_compared_as_doubles(condition: str, expected: list[int]) -> None:
    # As Spark does: 0.1F is 0.100000001490116, and 16777217 is no float.
    rows = pa.table(
        {
            "n": [1, 2, 3],
            "f": pa.array([0.1, 0.5, 16777216.0], pa.float32()),
            "d": pa.array([0.10000000149011612, 0.5, 16777217.0]),
            "i": pa.array([0, 16777216, 16777217], pa.int32()),
            "x": pa.array([Decimal("0.1"), Decimal("0.5"), None], pa.decimal128(3, 1)),
        }
    )
    found = deltalog.connect({"t": rows}).sql(f"SELECT n FROM t WHERE {condition} ORDER BY n")
    assert found.to_arrow().column("n").to_pylist() == expected


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("CAST(d AS DECIMAL(4,2))", r"DECIMAL\(4,2\).*\(TRY_CAST returns NULL instead\)$"),
        ("CAST(d AS INT)", r"INT32.*\(TRY_CAST returns NULL instead\)$"),
        ("l * 4", r"Overflow in multiplication.*\(cast an operand to a wider type\)$"),
        ("l * 4 > 0", r"Overflow in multiplication.*\(cast an operand to a wider type\)$"),
        ("1 / (l - l)", r": division by zero: guard it with NULLIF or CASE, in 1\.0 / "),
    ],
)
def test_errors_of_duckdb_show_no_sql_that_deltalog_wrote(
    tmp_path: Path, expression: str, problem: str
) -> None:
    rows = {"d": [Decimal("12345678901.25")], "l": [2**62]}
    deltalog.write_deltalake(tmp_path, rows)
    table = deltalog.DeltaTable(tmp_path)
    sql = f"SELECT {expression} FROM t"  # our own text
    with pytest.raises(InvalidInputError, match=problem) as caught:
        deltalog.sql(sql, t=table).to_arrow()
    assert str(caught.value).startswith("cannot run")
    assert sql in str(caught.value)
    assert "LINE 1" not in str(caught.value)


def test_an_unknown_field_of_a_struct_lists_its_fields(tmp_path: Path) -> None:
    deltalog.write_deltalake(tmp_path, [{"s": {"xa": 1, "yb": 2}}])
    with pytest.raises(InvalidInputError, match=r"no field 'zz'; the fields are 'xa', 'yb'$"):
        deltalog.sql("SELECT s.zz FROM t", t=deltalog.DeltaTable(tmp_path))
