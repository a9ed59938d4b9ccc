"""Mistakes in SQL of a reader who tried the library, and what they are answered."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog import DeltaTable, connect, write_deltalake
from deltalog.errors import DeltaError, InvalidInputError


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    path = tmp_path_factory.mktemp("table")
    rows = {"id": [1, 2, 3], "name": ["a", "b", "c"], "tags": [["x"], ["y"], []]}
    write_deltalake(path, rows)
    return DeltaTable(path)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT * FROM t VERSION AS OF", "expected a version or timestamp after AS OF"),
        ("SELECT * FROM t VERSION AS OF WHERE id = 1", "expected a version or timestamp after"),
        ("SELECT * FROM t TIMESTAMP AS OF", "expected a version or timestamp after AS OF"),
        ("SELECT * FROM t JOIN t VERSION AS OF", "expected a version or timestamp after AS OF"),
        ("SELECT * FROM t VERSION AS OF latest", "leave VERSION AS OF out"),
        ("SELECT * FROM t VERSION AS OF 'latest'", "leave VERSION AS OF out"),
        ("SELECT * FROM t VERSION AS OF first", "the first version is 0"),
        ("RESTORE TABLE t TO VERSION AS OF latest", "leave VERSION AS OF out"),
        ("SELECT %(x)s", r"a parameter is written \? \(with a list of values\) or :name"),
        ("SELECT * FROM t WHERE id = %s", "a parameter is written"),
        ("DELETE FROM t WHERE id = %s", "a parameter is written"),
        ("SELECT * FROM t WHERE name = 'O'Brien'", "written twice, as in 'O''Brien'"),
        ("SELECT * FROM t WHERE name = \u2018a\u2019", "write straight quotes"),
        ("SELECT to_char(1, '9')", "for numbers, format_number"),
        ("CREATE TABLE delta.`x` (id intt)", "did you mean 'integer'"),
        ("RENAME TABLE t TO x", "write ALTER TABLE name RENAME TO other"),
        ("UNDROP TABLE t", "RESTORE TABLE t TO VERSION AS OF n undoes changes"),
        ("DROP INDEX i", "a table has no such keys or indexes"),
        ("LIST TABLES", "write SHOW TABLES"),
        ("SELECT * FROM ./t", "a path is written delta.`/path`"),
        ("ALTER TABLE t ADD x INT", "found ADD; write ADD COLUMN name TYPE"),
        ("ALTER TABLE t DROP x", "found DROP; write DROP COLUMN name"),
        ("ALTER TABLE t DROP DEFAULT", "write ALTER COLUMN name DROP DEFAULT"),
        ("ALTER TABLE t ADD INDEX (id)", "a table has no such keys or indexes"),
        ("ALTER TABLE t ADD PARTITION (p = 1)", "INSERT INTO adds the rows of one"),
        ("ALTER TABLE t DROP PARTITION (p = 1)", "deletes the rows of a partition"),
        ("ALTER TABLE t PARTITION BY (id)", "the partition columns of a table are fixed"),
        ("ALTER TABLE t SET PROPERTIES ('a' = 'b')", "write SET TBLPROPERTIES"),
        ("ALTER TABLE t OWNER TO x", "a table has no owner"),
        ("TRUNCATE TABLE t PARTITION (p = 1)", "DELETE FROM t WHERE … deletes"),
        ("DELETE FROM t LIMIT 1", "DELETE has no LIMIT"),
        ("SELECT * FROM t JOIN t ON id = id", "give each table an alias, as in FROM t a JOIN t b"),
        ("SELECT upper(name, id) FROM t", "upper expects at most 1 argument, found 2"),
        ("SELECT 1 + max(id, 2) FROM t", "character 12: max expects 1 argument, found 2"),
        ("SELECT collect_list(id, id) FROM t", "collect_list expects 1 argument, found 2"),
        ("SELECT mean(id, id) FROM t", "mean expects 1 argument, found 2"),
        ("SELECT max_by(name) FROM t", "max_by expects 2 arguments, found 1"),
        ("SELECT string_agg(name, ',', 'x') FROM t", "string_agg expects 2 arguments, found 3"),
        ("SELECT id FROM t ORDER BY id ASC DESC", "expected ASC or DESC, found both"),
        ("SELECT hash(*) FROM t", r"cannot be part of an expression$"),
        ("SELECT corr(id, id, id) FROM t", "corr expects 2 arguments, found 3"),
        ("CREATE TABLE delta.`x` (id varchar2(10))", "did you mean 'string'"),
        (
            "DELETE FROM t WHERE EXISTS (SELECT 1 FROM t s WHERE s.id = u.id)",
            "write MERGE INTO t USING s",
        ),
    ],
)
def test_mistakes_are_answered(table: DeltaTable, query: str, answer: str) -> None:
    with pytest.raises(DeltaError, match=answer):
        deltalog.sql(query, t=table)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("DELETE FROM this WHERE id = 1", "found DELETE; deltalog.sql runs statements"),
        ("id > 3", r"found a condition; write SELECT \* FROM … WHERE id > 3"),
    ],
)
def test_what_a_table_does_not_query(table: DeltaTable, query: str, answer: str) -> None:
    with pytest.raises(InvalidInputError, match=answer):
        table.sql(query)


@pytest.mark.parametrize(
    "query",
    [
        "WITH max (a, b) AS (SELECT 1, 2) SELECT a FROM max",
        "WITH x AS (SELECT 1), max (a, b) AS (SELECT 1, 2) SELECT a FROM max",
        "SELECT a FROM (SELECT 1, 2) max(a, b)",
        "SELECT a FROM (SELECT 1, 2) AS max (a, b)",
        "SELECT max(coalesce(1, 0)) AS a /* max(1, 2) */",
        "SELECT sum(array(1, 2)[0]) OVER (PARTITION BY 1, 2) AS a",
        "SELECT count(DISTINCT id, name) - 2 AS a FROM t",
    ],
)
def test_commas_that_are_not_between_arguments(table: DeltaTable, query: str) -> None:
    assert deltalog.sql(query, t=table).to_pylist() == [{"a": 1}]


@pytest.mark.parametrize("options", [{}, {"AWS_REGION": "eu-west-1"}], ids=str)
@pytest.mark.parametrize("name", ["storage_options", "settings"])
def test_options_of_a_connection_are_no_tables(name: str, options: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match=f"sql has no argument {name}, only tables"):
        deltalog.sql("SELECT 1", **{name: options})


def test_the_next_batch_of_a_result(table: DeltaTable) -> None:
    found = deltalog.sql("SELECT id FROM t", t=table)
    assert next(found).num_rows == 3
    with pytest.raises(StopIteration):
        next(found)


def test_orders_within_calls(table: DeltaTable) -> None:
    query = (
        "SELECT array_agg(id ORDER BY name, id) AS a, string_agg(name, ',' ORDER BY id, id) AS b"
    )
    (row,) = deltalog.sql(f"{query} FROM t", t=table).to_pylist()  # as above
    assert (sorted(row["a"]), len(row["b"].split(","))) == (row["a"], 3)


def test_a_direction_after_an_operator_is_a_column() -> None:
    query = "SELECT a FROM (SELECT 1 AS a, 2 AS asc) ORDER BY a + asc DESC"
    assert deltalog.sql(query).to_pylist() == [{"a": 1}]


def test_a_column_with_the_name_of_a_direction() -> None:
    query = "SELECT desc, 'ASC DESC' AS a FROM (SELECT 1 AS desc) ORDER BY desc ASC"
    assert deltalog.sql(query).to_pylist() == [{"desc": 1, "a": "ASC DESC"}]


def test_a_query_compares_strings_with_numbers(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match="compare it with a string in quotes, such as '5'"):
        deltalog.sql("SELECT * FROM t WHERE name > 5", t=table).to_pylist()


def test_an_error_points_behind_as_of(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match="line 1, character 30"):
        deltalog.sql("SELECT * FROM t VERSION AS OF", t=table)


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        ("id = %s", r"a parameter is written \?"),
        ("id = %(x)s", r"a parameter is written \?"),
        ("name = 'O'Brien'", "written twice, as in 'O''Brien'"),
        ("name = \u201ca\u201d", "write straight quotes"),
        ("exists(select 1)", "deltalog.sql runs statements with subqueries"),
        ("name > 5", "name holds strings: compare it with a string in quotes, such as '5'"),
        ("name IN (1, 2)", r"such as '1', or use TRY_CAST\(name AS BIGINT\)"),
    ],
)
def test_mistakes_in_conditions_are_answered(
    table: DeltaTable, condition: str, answer: str
) -> None:
    with pytest.raises(InvalidInputError, match=answer):
        table.count(condition)


@pytest.mark.parametrize(
    "order", ["id descc", "id limit 1", "id,", "id asc desc", "", "(", "id order by id", "id; x"]
)
def test_an_order_that_cannot_be_read(table: DeltaTable, order: str) -> None:
    with pytest.raises(InvalidInputError, match="order_by: ") as caught:
        table.scan(order_by=order, limit=1).to_table()
    assert "\x1b" not in str(caught.value)
    assert "Line 1" not in str(caught.value)


@pytest.mark.parametrize("order", ["id", "id desc", "name DESC NULLS LAST, id"])
def test_orders_that_can_be_read(table: DeltaTable, order: str) -> None:
    assert table.scan(order_by=order, limit=3).to_table().num_rows == 3


@pytest.mark.parametrize("text", ["id IN :x", "id IN (:x)", "id in ?", "id in (?)"])
@pytest.mark.parametrize("values", [[1, 3], (1, 3), {1, 3}])
def test_a_list_as_a_parameter_of_in(table: DeltaTable, text: str, values: Any) -> None:
    parameters: Any = {"x": values} if ":x" in text else [values]
    assert table.count(text, parameters=parameters) == 2
    found = deltalog.sql(f"SELECT id FROM t WHERE {text} ORDER BY id", parameters, t=table)
    assert found.to_pylist() == [{"id": 1}, {"id": 3}]
    summed = deltalog.sql(f"SELECT sum(id) AS n FROM t WHERE NOT {text}", parameters, t=table)
    assert summed.to_pylist() == [{"n": 2}]


@pytest.mark.parametrize("text", ["id IN :x", "id IN (:x)"])
def test_lists_as_parameters_of_statements(tmp_path: Path, text: str) -> None:
    write_deltalake(tmp_path, {"id": [1, 2, 3]})
    deltalog.sql(f"DELETE FROM t WHERE {text}", {"x": [1, 3]}, t=DeltaTable(tmp_path))
    assert DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist() == [2]
    assert DeltaTable(tmp_path).sql(f"SELECT id FROM this WHERE {text}", {"x": [2]}).to_pylist()


def test_a_string_that_looks_like_a_parameter(table: DeltaTable) -> None:
    query = "SELECT id, 'IN ($x)' AS a, 'it''s $y, IN $x' AS b FROM t WHERE id IN (:x) AND 1 = :y"
    found = deltalog.sql(query, {"x": {3}, "y": 1}, t=table)
    assert found.to_pylist() == [{"id": 3, "a": "IN ($x)", "b": "it's $y, IN $x"}]


def test_one_value_as_a_parameter_of_in(table: DeltaTable) -> None:
    assert table.count("id IN (?, ?)", parameters=[1, 2]) == 2
    assert table.count("id IN (?)", parameters=[1]) == 1


def test_a_table_without_a_schema_in_a_catalog(tmp_path: Path) -> None:
    connection = connect(catalog=str(tmp_path))
    with pytest.raises(InvalidInputError, match=r"write schema\.x, or set the schema by USE"):
        connection.sql("CREATE TABLE x (id INT)")


@pytest.mark.parametrize("function", ["sum(id)", "row_number()", "lag(id)"])
def test_a_window_without_brackets_is_refused(table: DeltaTable, function: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape("OVER")):
        deltalog.sql(f"SELECT name, {function} OVER FROM t", t=table)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1,",
        "SELECT id FROM t,",
        "SELECT id FROM t, WHERE id = 1",
        "SELECT id FROM t GROUP BY id,",
        "SELECT id FROM t GROUP BY id, HAVING count(*) > 1",
        "SELECT id FROM t GROUP BY id, ORDER BY id",
        "SELECT id FROM t ORDER BY id,",
        "SELECT id FROM t ORDER BY id, LIMIT 1",
        "SELECT count(id,) FROM t",
        "SELECT * FROM (VALUES (1, 2),) v",
        "SELECT * FROM t WHERE id IN (1, 2,)",
        "WITH a AS (SELECT 1,) SELECT * FROM a",
    ],
)
def test_a_list_does_not_end_with_a_comma(table: DeltaTable, query: str) -> None:
    with pytest.raises(InvalidInputError, match=r"another part of the list after the comma"):
        deltalog.sql(query, t=table)


@pytest.mark.parametrize("name", ["limit", "order", "group"])
def test_a_column_may_have_the_name_of_a_clause(name: str) -> None:
    query = f"SELECT id, {name} FROM t ORDER BY id, `{name}`"
    assert deltalog.sql(query, t=[{"id": 1, name: 2}]).to_pylist() == [{"id": 1, name: 2}]


def test_an_alias_names_all_columns_of_a_table(table: DeltaTable) -> None:
    for query in (
        "SELECT x FROM t a(x, y, z) WHERE a.y = 'b'",
        "SELECT a.x FROM t AS a(x, y, z) WHERE upper(y) = 'B' LIMIT 1",
        "SELECT max(x) AS x FROM t a(x, y, z) JOIN t ON t.id = a.x WHERE y = 'b'",
    ):
        assert deltalog.sql(query, t=table).to_pylist() == [{"x": 2}]
    # The names are those of other columns of the table.
    query = "SELECT name FROM t a(name, id, tags) WHERE upper(id) = 'B' AND name = 2"
    assert deltalog.sql(query, t=table).to_pylist() == [{"name": 2}]


@pytest.mark.parametrize("names", ["x", "x, y", "x, y, z, w"])
def test_an_alias_with_another_number_of_names_is_refused(table: DeltaTable, names: str) -> None:
    for query in (f"SELECT * FROM t a({names})", f"SELECT x FROM t a({names}) LIMIT 1"):
        with pytest.raises(InvalidInputError, match=r"alias 'a' names \d column.*rows have 3"):
            deltalog.sql(query, t=table)


def test_a_qualifier_does_not_suggest_the_same_column(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match="there is no column 'id'") as caught:
        deltalog.sql("SELECT a.id FROM t a(x, y, z)", t=table)
    assert "did you mean 'id'" not in str(caught.value)


def test_datediff_of_two_dates_takes_day_for_a_column() -> None:
    rows = [{"day": date(2024, 1, 5)}]
    query = "SELECT datediff(day, DATE'2024-01-01') AS x, datediff(DAY, '2024-01-01', day) AS y"
    assert deltalog.sql(f"{query} FROM t", t=rows).to_pylist() == [{"x": 4, "y": 4}]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT * FROM t @ 0", "no spaces around it, as in t@v1"),
        ("SELECT * FROM t @v0", "no spaces around it, as in t@v1"),
        ("SELECT * FROM t TABLESAMPLE (10)", r"write \(10 PERCENT\) or \(10 ROWS\)"),
        ("SELECT * FROM t TABLESAMPLE BERNOULLI (10)", r"write \(10 PERCENT\) or \(10 ROWS\)"),
        ("SELECT TOP(2) * FROM t", "write LIMIT n at the end"),
        ("SELECT * FROM [t]", "names are quoted by backticks"),
        ("SELECT id FROM t ORDER id", "write ORDER BY id"),
        ("SELECT id FROM t GROUP id", "write GROUP BY id"),
        ("SELECT id FROM t WHERE id = 1 && name = 'a'", "write AND"),
        ("DELETE FROM t WHERE id = 1 && name = 'a'", "no &&; write AND$"),
        ("SELECT id FROM t WHERE id === 1", "write =$"),
        ("SELECT 7 // 2", "write a div b; a comment begins with --"),
        ("SELECT isnull(id, 0) FROM t", r"found 2; coalesce\(value, other\) replaces NULL"),
        ("SELECT 2 ** 3", r"write power\(base, exponent\)"),
        ("SELECT * FROM t VERSION 0", "write VERSION AS OF 0"),
        ("SELECT * FROM t AT (VERSION => 0)", "write FROM t VERSION AS OF 3, or"),
        ("SELECT * FROM t AS OF VERSION 0", "write FROM t VERSION AS OF 3, or"),
        ("SELECT * FROM t a VERSION AS OF 0", "the version follows the name of the table"),
        ("DELETE FROM t VERSION AS OF 0 WHERE id = 1", "made to the latest version; RESTORE"),
        ("REPLACE INTO t (id) VALUES (5)", "write MERGE INTO t"),
        ("SELECT ARRAY[1, 2]", r"write array\(1, 2\)"),
        ("SELECT MAP['a', 1]", r"write map\('key', 1\)"),
        ("SELECT inline(array(struct(1, 'a')))", r"write LATERAL VIEW inline\(…\) e AS a, b"),
        ("SELECT CONVERT(INT, id) FROM t", r"write CAST\(value AS type\)"),
        ("SELECT GROUP_CONCAT(name SEPARATOR ',') FROM t", r"write listagg\(value, ','\)"),
        ("SELECT TIMESTAMP'2024-01-01' + INTERVAL id DAY FROM t", r"timestampadd\(DAY, id, moment"),
        ("SELECT CAST(name AS DATE) AT TIME ZONE 'UTC' FROM t", "write from_utc_timestamp"),
        ("SELECT approx_percentile(id, 0.5) FROM t", "no SQL function 'approx_percentile'"),
        ("SELECT id FROM t WHERE rownum < 2", "LIMIT n limits the rows"),
    ],
)
def test_syntax_of_other_dialects_is_answered(table: DeltaTable, query: str, answer: str) -> None:
    with pytest.raises(InvalidInputError, match=answer):
        deltalog.sql(query, t=table)


def test_extract_of_a_string_is_not_told_to_merge(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match=r"expected \)") as caught:
        deltalog.sql("SELECT EXTRACT('year' FROM name) FROM t", t=table)
    assert "MERGE" not in str(caught.value)


@pytest.mark.parametrize(
    "selected",
    [
        "explode(tags), explode(tags)",
        "id, explode(tags) AS a, explode(array(1, 2)) AS b",
        "explode(tags), posexplode(tags)",
        "posexplode(tags) AS (i, a), explode(tags) AS b",
    ],
)
def test_a_query_has_one_function_that_returns_rows(table: DeltaTable, selected: str) -> None:
    # Spark returns all combinations, and DuckDB pairs.
    with pytest.raises(InvalidInputError, match="only one function that returns rows"):
        deltalog.sql(f"SELECT {selected} FROM t", t=table)


def test_lateral_views_return_all_combinations(table: DeltaTable) -> None:
    query = (
        "SELECT a, b FROM t LATERAL VIEW explode(array(1, 2)) x AS a "
        "LATERAL VIEW explode(array(3, 4)) y AS b WHERE id = 1 ORDER BY a, b"
    )
    found = [tuple(row.values()) for row in deltalog.sql(query, t=table).to_pylist()]
    assert found == [(1, 3), (1, 4), (2, 3), (2, 4)]


# --- arguments of aggregate functions


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("first(name, id)", "second argument of first states whether to ignore NULL"),
        ("last(name, 'x')", "expected TRUE or FALSE"),
        ("first_value(name, NULL)", "expected TRUE or FALSE"),
        ("any_value(name, id > 1)", "expected TRUE or FALSE"),
        ("first(name, true, 1)", "first expects 1 or 2 arguments, found 3"),
        ("count()", "count expects more arguments"),
        ("percentile(id, 0.5, id)", "percentile expects 2 arguments, found 3"),
        ("every(id > 1, id > 2)", "every expects 1 argument, found 2"),
        ("percentile(id, 0.5, 1, 2)", "percentile expects 2 arguments, found 4"),
        ("uuid(1, 2)", "uuid expects 1 argument, found 2"),
    ],
)
def test_arguments_that_would_be_ignored(table: DeltaTable, call: str, answer: str) -> None:
    with pytest.raises(InvalidInputError, match=answer):
        deltalog.sql(f"SELECT {call} FROM t", t=table)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT max() FROM t", "max expects more arguments"),
        ("SELECT * FROM IDENTIFIER('t')", "write the table's name, or pass the table"),
        ("SELECT sum(id) OVER (ORDER BY id ROWS 1 FOLLOWING) FROM t", "1 FOLLOWING AND UNBOUNDED"),
        ("SELECT coalesce() FROM t", "coalesce expects more arguments"),
        ("SELECT sum(abs(id), (id)) FROM t", "sum expects at most 1 argument, found 2"),
        ("SELECT (id FROM t", r"expected \)"),
        ("SELECT date_add('2024-01-31', 1, 'month')", "unit first; write dateadd.'month', 1,"),
        ("SELECT row_number() OVER () FROM t", "row_number needs an order of the rows"),
        ("SELECT lag(id) OVER (PARTITION BY name) FROM t", "lag needs an order of the rows"),
        ("SELECT id FROM t QUALIFY rank() OVER (PARTITION BY name) = 1", "rank needs an order"),
        ("SELECT ntile(2) OVER w FROM t WINDOW w AS (PARTITION BY name)", "ntile needs an order"),
        ("SELECT name, count(*) FROM t GROUP BY ALL HAVING id > 1", "'id' is neither in GROUP BY"),
        ("SELECT count(*) FROM t GROUP BY ALL HAVING id > 1", "'id' is neither in GROUP BY"),
        ("SELECT * EXCEPT (id), count(*) FROM t GROUP BY ALL HAVING id > 1", "HAVING uses 'id'"),
        ("SELECT t.*, count(*) FROM t JOIN t u ON t.id = u.id GROUP BY ALL HAVING u.id > 1",
         "name the columns in SELECT"),
        ("SELECT name, id + count(*) FROM t GROUP BY ALL", "'id' is neither in GROUP BY"),
    ],
)  # fmt: skip
def test_calls_groups_and_windows_of_other_dialects(
    table: DeltaTable, query: str, answer: str
) -> None:
    with pytest.raises(InvalidInputError, match=answer):
        deltalog.sql(query, t=table)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT g, count(*) n FROM t GROUP BY ALL HAVING n > 1 AND g = 1", [{"g": 1, "n": 2}]),
        ("SELECT upper(s) u, count(*) n FROM t GROUP BY ALL HAVING upper(s) = 'X'",
         [{"u": "X", "n": 1}]),
        ("SELECT g, every(n > 1) e FROM t GROUP BY ALL HAVING g = 2", [{"g": 2, "e": True}]),
        ("SELECT count(*) n FROM t WHERE g = 9 GROUP BY ALL", [{"n": 0}]),
        ("SELECT 'k' k FROM t GROUP BY ALL", [{"k": "k"}]),
        ("SELECT t.*, count(*) c FROM t JOIN t u ON t.n = u.n GROUP BY ALL "  # noqa: ISC004
         "HAVING t.n > 3 AND max(u.n) > 0", [{"g": 2, "n": 4, "s": None, "c": 1}]),
        ("SELECT t.*, count(*) c FROM t GROUP BY ALL HAVING n > 3",
         [{"g": 2, "n": 4, "s": None, "c": 1}]),
        ("SELECT g, sum(count(*)) OVER (PARTITION BY first(g)) c FROM t GROUP BY g ORDER BY g",
         [{"g": 1, "c": 2}, {"g": 2, "c": 2}]),
        ("SELECT 'k' k FROM t WHERE g = 9 GROUP BY ALL", []),
        ("SELECT count(g, s) a, count(DISTINCT g, s) b FROM t", [{"a": 2, "b": 2}]),
        ("SELECT n FROM t QUALIFY rank() OVER w = 4 WINDOW w AS (PARTITION BY 1 ORDER BY n)",
         [{"n": 4}]),
        ("SELECT max(r) r FROM (SELECT row_number() OVER (w ORDER BY n) r FROM t "  # noqa: ISC004
         "WINDOW w AS (PARTITION BY g))", [{"r": 2}]),
    ],
)  # fmt: skip
def test_groups_of_all_and_counts_as_in_spark(query: str, rows: list[dict[str, Any]]) -> None:
    assert deltalog.sql(query, t=ROWS).to_pylist() == rows


def test_brackets_around_arguments(table: DeltaTable) -> None:
    query = "SELECT count((id)) a, count(DISTINCT id, name) b, first((name), true) c FROM t"
    assert deltalog.sql(query, t=table).to_pylist() == [{"a": 3, "b": 3, "c": "a"}]


ROWS = [
    {"g": 1, "n": 1, "s": None},
    {"g": 1, "n": 2, "s": "x"},
    {"g": 2, "n": 3, "s": "y"},
    {"g": 2, "n": 4, "s": None},
]


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("first_value(s)", [None]),
        ("first_value(s, true)", ["x"]),
        ("first(s) IGNORE NULLS", ["x"]),
        ("last_value(s) RESPECT NULLS", [None]),
        ("last_value(s) IGNORE NULLS", ["y"]),
        ("last(s, true)", ["y"]),
        ("last(s, false)", [None]),
        ("last(s, true) FILTER (WHERE n < 3)", ["x"]),
        ("first(s, true) OVER (ORDER BY n)", [None, "x", "x", "x"]),
        ("last(s, true) OVER (ORDER BY n)", [None, "x", "y", "y"]),
        ("first_value(s, false) OVER (ORDER BY n DESC)", [None, None, None, None]),
    ],
)
def test_first_and_last_in_groups_and_windows(call: str, values: list[str | None]) -> None:
    found = deltalog.sql(f"SELECT n, {call} AS v FROM t ORDER BY n" if "OVER" in call else
                         f"SELECT {call} AS v FROM t", t=ROWS)  # fmt: skip
    assert [row["v"] for row in found.to_pylist()] == values


def test_last_value_of_each_group() -> None:
    query = "SELECT g, last_value(s, true) v FROM t GROUP BY g HAVING first_value(s) = 'y'"
    assert deltalog.sql(query, t=ROWS).to_pylist() == [{"g": 2, "v": "y"}]


def test_uuids_are_strings() -> None:
    query = (
        "SELECT length(uuid()) a, uuid() LIKE '%-%' b, CASE WHEN n = 1 THEN 'x' ELSE uuid() END c"
    )
    (row,) = deltalog.sql(f"{query} FROM t", t=[{"n": 1}]).to_pylist()
    assert row == {"a": 36, "b": True, "c": "x"}


def test_columns_that_arrow_cannot_return() -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]
    with pytest.raises(InvalidInputError, match="Arrow cannot return its columns"):
        deltalog.sql("SELECT * FROM t", t=[{"a": value}])
