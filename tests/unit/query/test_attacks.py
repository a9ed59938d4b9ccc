"""Queries whose results differed from Spark's; the expected rows are written by hand."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError

ROWS: dict[str, Any] = {
    "id": pa.array([1, 2, 3, 4]),
    "amount": pa.array([Decimal("1.50"), Decimal("2.00"), None, None], pa.decimal128(10, 2)),
    "real": [1.0, 2.5, None, None],
    "word": ["a", "b", "a", None],
    "day": [date(2024, 1, 2), date(2024, 1, 3), None, None],
    "at": pa.array([datetime(2024, 1, 2), None, None, None], pa.timestamp("us")),  # noqa: DTZ001  # naive
    "flag": [True, False, None, None],
    "items": pa.array([[7], [None], None, []], pa.list_(pa.int64())),
    "pairs": [[{"a": 1, "b": "x"}], [], None, [{"a": None, "b": None}]],
    "point": [{"x": 1, "y": "p"}, {"x": None, "y": "q"}, None, {"x": 1, "y": None}],
    "named": pa.array([[("k", 1)], [], None, [("l", None)]], pa.map_(pa.string(), pa.int64())),
}
LEAP_DAY = datetime.fromisoformat("2024-02-29 12:00:00")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    path = tmp_path_factory.mktemp("table")
    write_deltalake(path, pa.table(ROWS))
    return DeltaTable(path)


def run(table: DeltaTable, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
    result = deltalog.sql(query, list(parameters) or None, t=table).to_pylist()
    return [tuple(row.values()) for row in result]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        # As in Spark, strings and decimals are compared as doubles, not rounded to two digits.
        ("amount = '1.504'", []),
        ("amount <> '1.504'", [1, 2]),
        ("amount >= '1.501'", [2]),
        ("amount > '1.499' AND amount < '1.501'", [1]),
        ("amount BETWEEN '1.499' AND '1.501'", [1]),
        ("amount IN ('1.504', '2.0')", [2]),
        ("amount <=> '1.504'", []),
        ("amount = '1.50'", [1]),
        ("id = '2'", [2]),
        ("real = '2.5'", [2]),
        ("real = '1d'", [1]),
        # Spark's casts accept parts of dates and blanks.
        ("day > '2023'", [1, 2]),
        ("day = '2024-1-2'", [1]),
        ("day = '2024-01-02T10'", [1]),
        ("day = '2024-01-02'", [1]),
        ("day = ' 2024-01-02 '", [1]),
        ("at >= '2024-01'", [1]),
        ("at = '2024-01-02 0'", [1]),
        ("at = '2024-01-02 00:00:00'", [1]),
        ("flag = 'TRUE '", [1]),
        ("flag = ' y'", [1]),
        ("flag = 'false'", [2]),
    ],
)
def test_strings_are_compared_as_spark_converts_them(
    table: DeltaTable, condition: str, expected: list[int]
) -> None:
    ids = [(one,) for one in expected]
    assert run(table, f"SELECT id FROM t WHERE {condition}") == ids
    assert run(table, f"SELECT id FROM t WHERE {condition} ORDER BY id") == ids
    assert run(table, f"SELECT count(*) FROM t WHERE {condition}") == [(len(ids),)]
    assert run(table, f"SELECT count(*) FILTER (WHERE {condition}) FROM t") == [(len(ids),)]
    joined = f"SELECT t.id FROM t JOIN (SELECT id AS k FROM t) u ON k = id AND {condition}"
    assert run(table, f"{joined} ORDER BY t.id") == ids
    grouped = f"SELECT id FROM t GROUP BY id, amount, real, day, at, flag HAVING {condition}"
    assert run(table, f"{grouped} ORDER BY id") == ids


def test_a_parameter_is_compared_as_a_string(table: DeltaTable) -> None:
    assert run(table, "SELECT id FROM t WHERE amount = ? ORDER BY id", "1.504") == []
    assert run(table, "SELECT id FROM t WHERE amount = ? ORDER BY id", "1.5") == [(1,)]


def test_rows_of_a_rounded_constant_are_not_deleted(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": ROWS["id"], "amount": ROWS["amount"]}))
    table = DeltaTable(tmp_path)
    deltalog.sql(
        "DELETE FROM t WHERE id IN (SELECT max(id) FROM t WHERE amount = '1.504')", t=table
    )
    assert DeltaTable(tmp_path).count() == 4


@pytest.mark.parametrize(
    ("view", "columns", "expected"),
    [
        ("explode(items) e AS v", "v", [(1, 7), (2, None), (3, None), (4, None)]),
        ("explode(items) e", "e.col", [(1, 7), (2, None), (3, None), (4, None)]),
        (
            "posexplode(items) e AS p, v",
            "p, v",
            [(1, 0, 7), (2, 0, None), (3, None, None), (4, None, None)],
        ),
        ("posexplode(items) e", "pos", [(1, 0), (2, 0), (3, None), (4, None)]),
        (
            "inline(pairs) e AS a, b",
            "a, b",
            [(1, 1, "x"), (2, None, None), (3, None, None), (4, None, None)],
        ),
        (
            "explode(named) e AS k, v",
            "k, v",
            [(1, "k", 1), (2, None, None), (3, None, None), (4, "l", None)],
        ),
        ("explode(array()) e AS v", "v", [(1, None), (2, None), (3, None), (4, None)]),
    ],
)
def test_an_outer_view_keeps_all_rows(
    table: DeltaTable, view: str, columns: str, expected: list[tuple[Any, ...]]
) -> None:
    query = f"SELECT id, {columns} FROM t LATERAL VIEW OUTER {view} ORDER BY id"
    assert run(table, query) == expected
    counted = f"SELECT count(*) FROM t LATERAL VIEW OUTER {view}"
    assert run(table, counted) == [(len(expected),)]


def test_views_after_an_outer_view(table: DeltaTable) -> None:
    query = (
        "SELECT id, v, w FROM t LATERAL VIEW OUTER explode(items) e AS v "
        "LATERAL VIEW explode(array(v, 9)) f AS w WHERE id < 3 ORDER BY id, w NULLS FIRST"
    )
    assert run(table, query) == [(1, 7, 7), (1, 7, 9), (2, None, None), (2, None, 9)]
    inner = "SELECT id, k, v FROM t LATERAL VIEW explode(named) e AS k, v ORDER BY id"
    assert run(table, inner) == [(1, "k", 1), (4, "l", None)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT explode(named) FROM t", "for a map, use LATERAL VIEW"),
        ("SELECT explode(named) AS (k, v) FROM t", "use LATERAL VIEW"),
        ("SELECT id FROM t LATERAL VIEW OUTER inline(pairs) e", "needs names: e AS a, b"),
        ("SELECT id FROM t ORDER BY named", "maps have no order"),
    ],
)
def test_what_is_not_supported_is_refused(table: DeltaTable, query: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        run(table, query)


@pytest.mark.parametrize(
    ("pivot", "names", "expected"),
    [
        # The values are compared as values: 1.5 is equal to 1.50.
        ("(max(id) AS m FOR amount IN (1.5, 2))", ["1.5", "2"], [(1, 2)]),
        ("(max(id) FOR real IN (1, 2.50))", ["1", "2.50"], [(1, 2)]),
        ("(max(id) FOR day IN ('2024-1-2' AS x, '2024-01-03'))", ["x", "2024-01-03"], [(1, 2)]),
        # Without rows, the result is NULL, also of count.
        ("(count(id) FOR word IN ('a', 'z'))", ["a", "z"], [(2, None)]),
        ("(collect_list(id) FOR word IN ('a', 'z'))", ["a", "z"], [([1, 3], None)]),
        ("(max(id) FOR word IN ('b', NULL AS n))", ["b", "n"], [(2, 4)]),
        (
            "(sum(id) s, avg(amount) a FOR word IN ('a'))",
            ["a_s", "a_a"],
            [(4, Decimal("1.500000"))],
        ),
        (
            "(sum(id), max(id) FOR amount IN (1.5, 2.0))",
            ["1.5_sum(id)", "1.5_max(id)", "2.0_sum(id)", "2.0_max(id)"],
            [(1, 1, 2, 2)],
        ),
        (
            "(max(id) FOR (word, amount) IN (('a', 1.5) AS q, ('b', 2)))",
            ["q", "{b, 2}"],
            [(1, 2)],
        ),
    ],
)
def test_pivots(
    table: DeltaTable, pivot: str, names: list[str], expected: list[tuple[Any, ...]]
) -> None:
    used = [name for name in ("id", "amount", "real", "word", "day") if name in pivot]
    query = f"SELECT * FROM (SELECT {', '.join(used)} FROM t) PIVOT {pivot}"
    found = deltalog.sql(query, t=table).to_arrow()
    assert found.column_names == names
    assert [tuple(row.values()) for row in found.to_pylist()] == expected
    if "sum(id)" in pivot:
        assert found.schema.types[0] == pa.int64()


def test_a_pivot_groups_by_the_other_columns(table: DeltaTable) -> None:
    query = (
        "SELECT q.flag, q.x FROM (SELECT flag, word, id FROM t) "
        "PIVOT (max(id) FOR word IN ('a' AS x, 'b')) AS q JOIN t ON t.id = q.x"
    )
    assert run(table, f"{query} ORDER BY x") == [(True, 1), (None, 3)]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        # In Spark, NULL is the smallest value at every depth.
        ("point", [3, 2, 4, 1]),
        ("point DESC", [1, 4, 2, 3]),
        ("point DESC NULLS FIRST", [3, 1, 4, 2]),
        ("items, id", [3, 4, 2, 1]),
        ("items DESC, id", [1, 2, 4, 3]),
        ("pairs, id", [3, 2, 4, 1]),
        ("struct(point.y, id)", [3, 4, 1, 2]),
        ("array(point.x, id)", [2, 3, 1, 4]),
        ("amount DESC, id", [2, 1, 3, 4]),
    ],
)
def test_nested_values_are_sorted_as_in_spark(
    table: DeltaTable, key: str, expected: list[int]
) -> None:
    assert run(table, f"SELECT id FROM t ORDER BY {key}") == [(one,) for one in expected]
    assert run(table, f"SELECT id FROM t ORDER BY {key} LIMIT 1") == [(expected[0],)]
    numbered = f"SELECT id, row_number() OVER (ORDER BY {key}) AS n FROM t ORDER BY n"
    assert [one for one, _ in run(table, numbered)] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id AS point FROM t ORDER BY point", [(1,), (2,), (3,), (4,)]),
        ("SELECT id, point AS p FROM t ORDER BY p", [3, 2, 4, 1]),
        ("SELECT id, struct(point.x) AS items FROM t ORDER BY items, id", [2, 3, 1, 4]),
        ("SELECT id, sum(id) OVER () AS s, point FROM t ORDER BY s, point", [3, 2, 4, 1]),
    ],
)
def test_a_sort_key_is_first_a_name_of_the_result(
    table: DeltaTable, query: str, expected: list[Any]
) -> None:
    assert [row[0] for row in run(table, query)] == [
        one[0] if isinstance(one, tuple) else one for one in expected
    ]


@pytest.mark.parametrize(
    "name", ["a\\b", "a\\1", "a\\g<0>", "a`b", 'a"b', "x[0]", "a.b", "a?b", ":a"]
)
def test_names_with_signs(tmp_path: Path, name: str) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    write_deltalake(tmp_path, pa.table({name: [1, 2], "k": ["x", "y"]}), configuration=mapped)
    quoted = f"`{name.replace('`', '``')}`"
    table = DeltaTable(tmp_path)
    assert run(table, f"SELECT sum({quoted}) AS s FROM t") == [(3,)]
    having = f"SELECT k, max({quoted}) m FROM t GROUP BY k HAVING min({quoted}) > 1"
    assert run(table, having) == [("y", 2)]
    deltalog.sql(f"UPDATE t SET {quoted} = 7 WHERE {quoted} = 1", t=table)
    deltalog.sql(
        f"MERGE INTO t USING (SELECT 2 AS z) s ON t.{quoted} = s.z "
        f"WHEN MATCHED THEN UPDATE SET {quoted} = 8",
        t=DeltaTable(tmp_path),
    )
    rows: list[Any] = DeltaTable(tmp_path).to_pyarrow_table().column(name).to_pylist()
    assert sorted(rows) == [7, 8]


def test_a_sum_of_null_is_a_double(table: DeltaTable) -> None:
    assert deltalog.sql("SELECT sum(NULL) AS s FROM t", t=table).to_arrow().schema.types == [
        pa.float64()
    ]


def test_fields_of_a_struct_without_a_name_are_numbered(table: DeltaTable) -> None:
    query = "SELECT struct(count(*) OVER (), word, upper(word)) AS s FROM t WHERE id = 1"
    assert run(table, query) == [({"col1": 1, "word": "a", "col3": "A"},)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM VALUES ('x', 1) t(a, v) PIVOT (count(v) FOR a IN ('x', 'y'))", [(1, None)]),
        (
            (
                "SELECT * FROM VALUES ('x', 0.1), ('x', 0.2), ('x', 0.2) t(a, v) "
                "PIVOT (avg(v) FOR a IN ('x'))"
            ),
            [(Decimal("0.16667"),)],
        ),
        ("SELECT * FROM range(2) PIVOT (count(1) FOR id IN (0, 1))", [(1, 1)]),
        ("SELECT * FROM range(2) UNPIVOT (v FOR k IN (id))", [("id", 0), ("id", 1)]),
        ("SELECT count(*) FROM range(1000) TABLESAMPLE (10 ROWS)", [(10,)]),
        ("SELECT count(*) FROM explode(array(1, 2, 3)) TABLESAMPLE (1 ROWS)", [(1,)]),
        # A row of UNPIVOT is left out only if all its values are NULL.
        (
            (
                "SELECT k, v, w FROM VALUES (2, NULL, 3, 4, NULL, NULL) t(a, b, c, d, e, f) "
                "UNPIVOT ((v, w) FOR k IN ((a, b) AS p, (c, d) AS q, (e, f) AS r)) ORDER BY k"
            ),
            [("p", 2, None), ("q", 3, 4)],
        ),
        ("SELECT listagg(x), string_agg(x, NULL) FROM VALUES ('a'), ('b') t(x)", [("ab", "ab")]),
        ("SELECT string_agg(x, '-') FROM VALUES ('a'), ('b') t(x)", [("a-b",)]),
        ("SELECT typeof(x) FROM VALUES (-2147483648) t(x)", [("int",)]),
        ("SELECT typeof(x) FROM VALUES (-9223372036854775808) t(x)", [("bigint",)]),
        ("SELECT -2147483648 + 0 AS x", [(-2147483648,)]),
        # The argument is computed only for rows that the filter keeps.
        ("SELECT sum(10 DIV x) FILTER (WHERE x <> 0) FROM VALUES (0), (5) t(x)", [(2,)]),
        (
            "SELECT sum(CAST(x AS INT)) FILTER (WHERE x <> 'a') FROM VALUES ('a'), ('5') t(x)",
            [(5,)],
        ),
        ("SELECT count(10 / x) FILTER (WHERE x <> 0) FROM VALUES (0), (5) t(x)", [(1,)]),
        (
            "SELECT v.p, n FROM VALUES (array(2, 3)) t(a) LATERAL VIEW posexplode(a) v AS p, n",
            [(0, 2), (1, 3)],
        ),
        ("VALUES (1), (2) ORDER BY 1 DESC LIMIT 1", [(2,)]),
        # Rows of rows are structs, in which NULL is the smallest value.
        (
            "SELECT x.col2 FROM VALUES ((1, 2)), ((1, NULL)), ((0, 5)) t(x) ORDER BY x",
            [(5,), (None,), (2,)],
        ),
        (
            (
                "SELECT x[0] FROM (SELECT split(a, ',') AS x FROM VALUES ('b,c'), ('a,d') t(a)) "
                "ORDER BY x"
            ),
            [("a",), ("b",)],
        ),
        ("SELECT try_divide(1.5, b) FROM VALUES (0.0D) t(b)", [(None,)]),
    ],
)
def test_rows_of_values(query: str, expected: list[tuple[Any, ...]]) -> None:
    assert [tuple(row.values()) for row in deltalog.sql(query).to_pylist()] == expected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT -x FROM VALUES (-2147483648) t(x)", "negation overflows integer"),
        ("SELECT abs(x) FROM (SELECT -2147483648 AS x)", "abs overflows integer"),
        ("SELECT * FROM range(4) TABLESAMPLE (BUCKET 1 OUT OF 4)", "use PERCENT"),
        (
            (
                "SELECT * FROM VALUES ('x', 9223372036854775807), ('x', 1L) t(a, v) "
                "PIVOT (sum(v) FOR a IN ('x'))"
            ),
            "out of range",
        ),
    ],
)
def test_errors_of_values(query: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        deltalog.sql(query).to_pylist()


def test_a_percentage_samples_each_row() -> None:
    query = "SELECT count(*) AS n FROM range(100000) TABLESAMPLE (50 PERCENT)"
    (row,) = deltalog.sql(query).to_pylist()
    assert 48_000 < row["n"] < 52_000  # 12 standard deviations


def test_an_unknown_column_of_rows_of_any_kind() -> None:
    rows = pa.table({"a": [1]})
    for given in (rows, rows.to_reader(), rows.to_pandas()):
        with pytest.raises(InvalidInputError, match="there is no column 'nope'; known: 'a'"):
            deltalog.sql("SELECT nope FROM x", x=given)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # NATURAL compares, and PIVOT groups by, columns that the query does not name.
        ("SELECT count(*) FROM t NATURAL JOIN s", [(1,)]),
        ("SELECT t.id FROM t NATURAL LEFT JOIN s WHERE t.id < 3 ORDER BY t.id", [(1,), (2,)]),
        ("SELECT s.id FROM t NATURAL RIGHT JOIN s ORDER BY s.id", [(1,), (2,), (2,)]),
        ("SELECT `2` FROM s PIVOT (sum(n) FOR id IN (1, 2)) ORDER BY 1", [(None,), (7,), (9,)]),
        ("SELECT count(*) FROM s PIVOT (sum(n) FOR id IN (1, 2))", [(3,)]),
    ],
)
def test_columns_that_a_query_does_not_name(
    table: DeltaTable, tmp_path: Path, query: str, expected: list[tuple[Any, ...]]
) -> None:
    rows: dict[str, Any] = {"id": [1, 2, 2], "real": [1.0, 0.5, 0.25], "n": [5, 7, 9]}
    write_deltalake(tmp_path, pa.table(rows))
    found = deltalog.sql(query, t=table, s=tmp_path).to_pylist()
    assert [tuple(row.values()) for row in found] == expected


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("SELECT id FROM t WHERE id", "id is of type long"),
        ("SELECT id FROM t WHERE (id) OR flag", "id is of type long"),
        ("SELECT count(*) FROM t WHERE NOT real", "real is of type double"),
        ("SELECT count(*) FROM t WHERE id AND flag", "id is of type long"),
        ("SELECT count(*) FROM t WHERE id > 1 AND real", "real is of type double"),
        ("SELECT count(*) FROM t WHERE day", "day is of type date"),
        ("SELECT count(*) FROM t WHERE id + 1", "id [+] 1 is of type long"),
        ("SELECT count(*) FROM t WHERE (SELECT 1)", "is of type integer"),
        ("SELECT count(*) FROM t JOIN t u ON t.id", "id is of type long"),
        ("SELECT count(*) FILTER (WHERE id) FROM t", "id is of type long"),
        ("SELECT count(*) FROM t JOIN t u ON 1", "expected a condition, found a constant"),
    ],
)
def test_a_condition_is_a_boolean(table: DeltaTable, query: str, condition: str) -> None:
    with pytest.raises(InvalidInputError, match=condition):
        run(table, query)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("flag", [1]),
        ("NOT flag", [2]),
        ("(flag OR id = 2) AND id > 1", [2]),
        ("(SELECT true) AND id = 1", [1]),
        ("coalesce(flag, id = 3)", [1, 3]),
    ],
)
def test_a_boolean_is_a_condition(table: DeltaTable, condition: str, expected: list[int]) -> None:
    ids = [(one,) for one in expected]
    assert run(table, f"SELECT id FROM t WHERE {condition} ORDER BY id") == ids
    assert run(table, f"SELECT count(*) FILTER (WHERE {condition}) FROM t") == [(len(ids),)]


def test_years_and_months_are_added_in_one_step() -> None:
    query = "SELECT :m + INTERVAL 1 YEAR 2 MONTHS AS a, :m - INTERVAL '1-2' YEAR TO MONTH AS b"
    (row,) = deltalog.sql(query, {"m": LEAP_DAY}).to_pylist()
    assert [one.isoformat(" ") for one in row.values()] == [
        "2025-04-29 12:00:00", "2022-12-29 12:00:00"
    ]  # fmt: skip


def test_a_timedelta_is_added_to_a_moment() -> None:
    given = {"m": LEAP_DAY, "d": timedelta(hours=13), "day": timedelta(days=1)}
    query = "SELECT :m + :d AS a, :m - :d AS b, DATE'2024-02-29' + :day AS c"
    (row,) = deltalog.sql(query, given).to_pylist()
    assert [one.isoformat() for one in row.values()] == [
        "2024-03-01T01:00:00", "2024-02-28T23:00:00", "2024-03-01"
    ]  # fmt: skip
