"""Advice in errors about statements, conditions and changes: each entry is one mistake.

No mistake changes a table.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltalog
from deltalog import DeltaTable, Field, QueryBuilder, Schema, col, write_deltalake
from deltalog.catalogs import FileCatalog
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.sharing.client.profile import read_profile
from deltalog.statements.connection import Connection

ROWS = [
    {"id": 1, "name": "n1", "amount": 1.5, "day": dt.date(2024, 1, 1), "tags": ["a"]},
    {"id": 2, "name": "n2", "amount": None, "day": dt.date(2024, 1, 2), "tags": ["b"]},
]


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """A table of two rows, one of which a column of structs describes."""
    rows = [{**row, "info": {"city": "Oslo"}} for row in ROWS]
    write_deltalake(tmp_path / "s" / "t", rows)
    return DeltaTable(tmp_path / "s" / "t")


def refused(act: Any, table: DeltaTable, *words: str) -> None:
    """Assert that a call fails with these words in its message, and changes nothing."""
    with pytest.raises(DeltaError) as caught:
        act()
    for word in words:
        assert word in str(caught.value)
    latest = DeltaTable(table.table_uri)
    assert (latest.version(), latest.count()) == (0, 2)


EXPECTED = "condition is expected here"
BRACKETS = "in Python, put comparisons in brackets, such as (col('a') > 1) & (col('b') < 4)"
CONDITIONS: list[tuple[Any, str]] = [
    ("ifnull(name, 1, 2) = 'x'", "ifnull expects 2 argument(s), found 3"),
    ("nvl(name) = 'x'", "nvl expects 2 argument(s), found 1"),
    ("date_trunc(day, 'month') = day", "wrong order; write date_trunc('month', day)"),
    ("trunc('month', day) = day", "wrong order; write trunc(day, 'month')"),
    ("t.id = 1", "no column 't'; if it is an alias, leave it out"),
    ("t.info.city = 'x'", "leave it out, because the expression is about one table: info.city"),
    (pc.field("nope") == 1, "there is no column 'nope': the columns are 'id', 'name'"),
    (pc.field("nme") == 1, "there is no column 'nme': did you mean 'name'?"),
    ("id == 1 & amount > 2", "found double; conditions are joined by AND and OR"),
    ("name ~ '^a'", "(~): expected the end, or an operator before this; a regular expression is"),
    ("'a' in tags", "array_contains(tags, 'a') looks into an array"),
    ("'a' in (tags)", "array_contains(array, value) looks into an array"),
    (col("tags") == "a", "array_contains(array, value) looks into an array"),
    ("info->>'city' = 'x'", "a field of a struct is info.city"),
    ("WHERE id = 1", "(id): expected the end, or an operator before this; leave out WHERE"),
    ("id = @x", "'@' has no meaning in an expression; a parameter is written :x, with param"),
    ("id = {x}", "a parameter is written :x"),
    ("id = $x", "a parameter is written :x"),
    ("id = :x", "pass a dictionary, such as parameters={'x': value}"),
    ("id in :x", "pass a dictionary, such as parameters={'x': value}"),
    ("id in tags", "array_contains(tags, 'a') looks into an array"),
    ("id in (select 1)", "DELETE FROM t WHERE id IN (SELECT …), and MERGE compares rows"),
    ("id = 1 LIMIT 1", "a condition has no LIMIT"),
    ("name.upper() = 'A'", "a method of Python is a function, as in upper(column)"),
    ("1 < id < 3", "a comparison has two sides; write 1 < id AND id < 3"),
    ("id = 1 = (amount = 2) = 3", "a comparison has two sides; conditions are joined by AND"),
    ("id = 1 | id = 2", "| computes with the bits of integers; conditions are joined by AND"),
    ("id = 1 || id = 2", "|| joins strings; conditions are joined by AND and OR"),
    ("id = 1 & name = 'n1'", "no common type: integer, string; conditions are joined by AND"),
    ("(id = 1) & (name = 'n1')", "found boolean; conditions are joined by AND and OR"),
    ("id = 1, name = 'n1'", "an operator before this; conditions are joined by AND and OR"),
    ("name = 'n1' OR 'n2'", "repeat the column before each value, as in x = 'n2'"),
    ("id = 1 OR 2", "repeat the column before each value, as in x = 2, or write x IN (…, 2)"),
    ("isin(id, 1)", "no SQL function 'isin'; in Spark's SQL, write value IN (1, 2)"),
    ("name rlike '['", "it is not a valid pattern (missing ]: ["),
    (r"name rlike '(?=n)'", "look-around and back-references are not supported (invalid"),
    ("info:city = 'x'", "character 5 (:): expected the end, or an operator before this; a field"),
    ("id = 1;", "';' has no meaning in an expression; leave it out"),
    ("DELETE FROM t WHERE id = 1", "found a statement: pass only what follows WHERE or SET"),
    ("update t set id = 1", "found a statement: pass only what follows WHERE or SET"),
    ("SELECT * FROM t WHERE id = 1", "found a query: pass only what follows WHERE"),
    ("name LIKE n%", "a pattern has quotes, as in name LIKE 'n%'"),
    ("name LIKE %n", "a pattern has quotes, as in name LIKE 'n%'"),
    ("id NOT NULL", "write IS NOT NULL, NOT IN (…) or NOT LIKE"),
    ("id IS 1", "TRUE, FALSE, UNKNOWN or DISTINCT FROM; = and <> compare values"),
    ("id IS IN (1, 2)", "TRUE, FALSE, UNKNOWN or DISTINCT FROM; leave out IS"),
    ("amount > 1,000", "a number has no separator of thousands: 1000"),
    ("name contains 'n'", "there is no such operator; write contains(name, 'n')"),
    ("id =< 1", "expected a value, a column or a function; write <="),
    ("id =! 1", "(!): expected a value, a column or a function; write !="),
    ("id !== 1", "expected a value, a column or a function; write !="),
    ("id =!= 1", "expected a value, a column or a function; write !="),
    ("id <> = 1", "expected a value, a column or a function; write !="),
    ("id ! = 1", "write !=, or NOT before LIKE, IN and BETWEEN"),
    ("id === 1", "expected a value, a column or a function; write ="),
    ("id > = 1", "expected a value, a column or a function; write >="),
    ("id < > 1", "expected a value, a column or a function; write <>"),
    ("id = 1 GROUP BY id", "a condition has no GROUP BY; deltalog.sql runs queries"),
    ("id = 1 having id > 0", "a condition has no HAVING; deltalog.sql runs queries"),
    ("id = 1 QUALIFY id = 1", "a condition has no QUALIFY; deltalog.sql runs queries"),
    ("id = 1 UNION ALL SELECT 1", "a condition has no UNION; deltalog.sql runs queries"),
    ("id = 1 MINUS SELECT 1", "a condition has no MINUS; deltalog.sql runs queries"),
    ("id = 1 LEFT OUTER JOIN s ON a = b", "a condition has no JOIN; deltalog.sql runs queries"),
    ("id = 1 OFFSET 1", "a condition has no OFFSET; deltalog.sql runs queries"),
    ("id = 1 WINDOW w AS (id)", "a condition has no WINDOW; deltalog.sql runs queries"),
    ((col("name") == "n1") & col("id") == 0, f"id is of type long, but a {EXPECTED}; {BRACKETS}"),
    ((col("id") == 1) | col("id") > 0, f"id is of type long, but a {EXPECTED}; {BRACKETS}"),
    ((col("id") == 1) & col("name") == "n1", f"= 'n1'; {BRACKETS}"),
    ((col("id") == 1) & (col("id") == 2) == 1, f"= 2) = 1: {BRACKETS}"),
    (~col("id") == 0, f"{EXPECTED}; in Python, put the comparison in brackets, as in ~(col('a')"),
    ((pc.field("name") == "n1") & pc.field("id") == 0, "such as (pc.field('a') > 1) & (pc.field("),
    (~pc.field("id") == 0, "in Python, put comparisons in brackets, such as (pc.field('a') > 1)"),
    (
        "info = 'Oslo'",
        "with string in info = 'Oslo': compare a field of the struct, as in info.city",
    ),
    ("name + '!' = 'a!'", "string + string; strings are joined by || or concat"),
]


@pytest.mark.parametrize(("condition", "words"), CONDITIONS)
def test_conditions(table: DeltaTable, condition: Any, words: str) -> None:
    refused(lambda: table.scan(predicate=condition).count(), table, words)
    refused(lambda: table.delete(condition), table, words)
    refused(lambda: table.update({"name": "'x'"}, predicate=condition), table, words)


QUERIES = [
    ("SELECT percentile(amount) FROM t", "percentile expects 2 arguments"),
    ("SELECT date_trunc(day, 'month') FROM t", "write date_trunc('month', day)"),
    ("SELECT id FROM t WHERE 1 < id < 3", "write 1 < id AND id < 3"),
    ("SELECT id FROM t WHERE id = 1 | id = 2", "conditions are joined by AND and OR"),
    ("SELECT id FROM t WHERE name contains 'n'", "write contains(name, 'n')"),
    ("SELECT id FROM t WHERE name LIKE n%", "a pattern has quotes, as in name LIKE 'n%'"),
    ("SELECT id FROM t WHERE id =! 1", "write !="),
    ("SELECT id FROM t WHERE id !== 1", "expected a value; write !="),
    ("SELECT id FROM t WHERE id => 1", "write >= to compare values"),
    ("SELECT id FROM t WHERE id > = 1", "expected a value; write >="),
    ("SELECT id FROM t WHERE id > 1,000", "a number has no separator of thousands: 1000"),
    ("SELECT id FROM t WHERE name rlike '['", "it is not a valid pattern (missing ]: ["),
    ("SELECT info:city FROM t", "expected a name, found the parameter :city"),
    ("SELECT TOP 5 * FROM t", "write LIMIT n at the end"),
    ("SELECT * FORM t", "did you mean FROM?"),
    ("SELECT * FROM t WHRE id = 1", "did you mean WHERE?"),  # codespell:ignore whre
    ("SELECT * FROM t FOR UPDATE", "leave out FOR UPDATE"),
    ("SELECT DISTINCT ON (day) id FROM t", "write QUALIFY row_number() OVER (PARTITION BY"),
    ("SELECT id FROM t SAMPLE 10", "write TABLESAMPLE (10 PERCENT)"),
    ("SELECT id FROM t WITH (NOLOCK)", "leave out WITH (NOLOCK)"),
    ("SELECT * FROM read_parquet('x')", "t=pyarrow.dataset.dataset(path)"),
    ("SELECT * FROM read_csv('x')", "t=pyarrow.dataset.dataset(path)"),
    ("SELECT * FROM delta_scan('x')", "write delta.`/path`"),
    ("SELECT * FROM delta./data/t", "a location has backticks: delta.`/path`"),
    ("WITH a AS (SELECT 1), SELECT * FROM a", "leave out the comma before SELECT"),
]


@pytest.mark.parametrize(("query", "words"), QUERIES)
def test_queries(table: DeltaTable, query: str, words: str) -> None:
    refused(lambda: deltalog.sql(query, t=table).to_arrow(), table, words)
    refused(lambda: deltalog.connect({"t": table}).sql(query).to_arrow(), table, words)
    refused(lambda: table.sql(query.replace(" t", " this")).read_all(), table, words)


STATEMENTS = [
    ("SELECT [name] FROM t", "names are quoted by backticks: `name`"),
    ("SELECT id, [name] FROM t", "names are quoted by backticks: `name`"),
    ("SELECT id FROM t WHERE id = $1", "a parameter is written :x"),
    ("SELECT id FROM t WHERE id = {x}", "a parameter is written :x"),
    ("INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO NOTHING", "write MERGE INTO t USING s"),
    ("INSERT OR REPLACE INTO t (id) VALUES (1)", "write MERGE INTO t USING s"),
    ("UPDATE t SET name = s.name FROM s WHERE t.id = s.id", "of another table, merge them"),
    ("DELETE FROM t USING s WHERE t.id = s.id", "to use other rows, write MERGE INTO"),
    ("DELETE FROM t WHERE id = 1 LIMIT 1", "a condition has no LIMIT"),
    ("CREATE TABLE x (id BIGINT PRIMARY KEY) USING delta", "alter.set_key_index(columns)"),
    ("CREATE TABLE x (id INT, FOREIGN KEY (id) REFERENCES y(id))", "alter.set_key_index(columns)"),
    ("ALTER TABLE t ADD CONSTRAINT p PRIMARY KEY (id)", "alter.set_key_index(columns)"),
    ("CREATE INDEX i ON t (id)", "table.alter.set_key_index(columns)"),
    ("ALTER TABLE t SET KEY INDEX (id)", "table.alter.set_key_index(columns)"),
    ("CREATE TABLE x (id INT, name VARCHAR) USING delta", "write STRING, or VARCHAR(n)"),
    ("CREATE VIEW v AS SELECT * FROM t", "there are no views; write WITH v AS"),
    ("CREATE OR REPLACE VIEW v AS SELECT * FROM t", "there are no views; write WITH v AS"),
    ("OPTIMIZE t ZORDER (id)", "write ZORDER BY (…)"),
    ("BEGIN; DELETE FROM t; ROLLBACK", "with table.transaction() as tx:"),
    ("COMMIT", "with table.transaction() as tx:"),
    ("ALTER TABLE t CREATE BRANCH n", "write CREATE BRANCH b FOR TABLE t"),
    ("MERGE BRANCH n INTO t", "write PUBLISH BRANCH b FOR TABLE t"),
    ("PRAGMA table_info(t)", "write DESCRIBE TABLE t"),
    ("COPY t FROM 'x.csv'", "deltalog.write_deltalake(location, rows) loads rows"),
]


@pytest.mark.parametrize(("statement", "words"), STATEMENTS)
def test_statements(table: DeltaTable, statement: str, words: str) -> None:
    refused(lambda: deltalog.sql(statement, t=table, s=table), table, words)
    refused(lambda: deltalog.connect({"t": table}).execute(statement), table, words)


@pytest.mark.parametrize(
    ("query", "given", "words"),
    [
        ("SELECT * FROM t WHERE id = :id", [1], "pass a dictionary for parameters such as :name"),
        ("SELECT * FROM t WHERE id = %s", [1], "write ? instead of %s"),
    ],
)
def test_parameters(table: DeltaTable, query: str, given: Any, words: str) -> None:
    refused(lambda: deltalog.sql(query, given, t=table), table, words)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM t WHERE name = ':n'",
        "UPDATE t SET name = ':n' WHERE id = 1",
        "INSERT INTO t (name) VALUES (':n')",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.name = ':n' THEN DELETE",
        "SELECT * FROM t WHERE name = ':n'",
        "DESCRIBE HISTORY t",
    ],
)
def test_named_parameters_that_a_statement_lacks(table: DeltaTable, statement: str) -> None:
    advice = "a parameter has no quotes" if ":n" in statement else "leave it out"
    words = f"there is no :n for the parameter 'n', nor another one; {advice}"
    connection = deltalog.connect({"t": table, "s": table})
    refused(lambda: deltalog.sql(statement, {"n": "n1"}, t=table, s=table), table, words)
    refused(lambda: connection.execute(statement, {"n": "n1"}), table, words)
    refused(lambda: connection.cursor().executemany(statement, [{"n": "n1"}]), table, words)


def test_named_parameters_that_a_query_of_one_table_lacks(table: DeltaTable) -> None:
    query = "SELECT * FROM this WHERE name = ':n'"
    refused(lambda: table.sql(query, {"n": "n1"}), table, "there is no :n for the parameter 'n'")


def test_one_named_parameter_too_many(table: DeltaTable) -> None:
    statement = "DELETE FROM t WHERE name = :n"
    given = {"n": "n1", "m": 1}
    words = "there is no :m for the parameter 'm', only :n;"
    refused(lambda: deltalog.sql(statement, given, t=table), table, words)


def test_the_position_of_a_parameter_in_place_of_a_name(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match="at line 1, character 16: expected a name"):
        deltalog.sql("SELECT id, info:city FROM t", t=table)


@pytest.mark.parametrize("given", [[1], (1,), 1, [("x", 1)]])
def test_parameters_without_names(table: DeltaTable, given: Any) -> None:
    query = "SELECT * FROM this WHERE id = ?"
    words = "a dictionary of values for :name", "deltalog.sql(query, parameters, t=table) also"
    refused(lambda: table.sql(query, given), table, *words)


@pytest.mark.parametrize(
    "query", ["INSERT orders VALUES (1)", "DELETE orders", "VACUUM FULL groups"]
)
def test_a_name_is_no_misspelled_keyword(table: DeltaTable, query: str) -> None:
    with pytest.raises(DeltaError) as caught:
        deltalog.sql(query, orders=table, groups=table)
    assert "did you mean" not in str(caught.value)
    table.update_incremental()
    assert table.version() == 0


@pytest.mark.parametrize(
    "query",
    [
        "CREATE OR REPLACE TABLE x (id INT",
        "CREATE OR REPLACE TABLE x (id INT) USING delta LOCATION 'x' AND",
    ],
)
def test_keywords_far_from_the_error_are_not_its_cause(table: DeltaTable, query: str) -> None:
    with pytest.raises(DeltaError) as caught:
        deltalog.sql(query, t=table)
    assert "there are no views" not in str(caught.value)


@pytest.mark.parametrize("location", ["s3://", "s3:///", "gs://", "az://", "hdfs://"])
def test_a_location_without_a_bucket(location: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: write_deltalake(location, SOURCE),
        lambda: DeltaTable.create(location, Schema([Field("id", "long")])),
        lambda: DeltaTable(location),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match="expected a URL with a bucket"):
            call()


SOURCE = {"id": [1], "name": ["x"]}
MERGES: list[tuple[Any, Any, dict[str, str], str]] = [
    (SOURCE, "t.id = s.id", {"source_alias": "s"}, "the aliases are 's' and 'target'"),
    (SOURCE, "t.id = s.id", {"source_alias": "s"}, "name the table by target_alias='t'"),
    (SOURCE, "x.id = target.id", {}, "no alias 'x': the aliases are 'source' and 'target'"),
    (SOURCE, "id", {}, "write 'target.id = source.id', or upsert(data, 'id')"),
    (SOURCE, "s.ids = target.id", {"source_alias": "s"}, "no column 's.ids': did you mean 's.id'"),
    ({"key": [1]}, "s.id = target.id", {"source_alias": "s"}, "the columns are 's.key'"),
]


@pytest.mark.parametrize(("source", "predicate", "aliases", "words"), MERGES)
def test_merges(
    table: DeltaTable, source: Any, predicate: Any, aliases: dict[str, str], words: str
) -> None:
    merge: Any = table.merge
    refused(merge(source, predicate, **aliases).when_matched_delete().execute, table, words)


def test_an_upsert_without_its_key(table: DeltaTable) -> None:
    words = "the rows lack the key column 'id'; their columns are 'name'"
    refused(lambda: table.upsert({"name": ["x"]}, "id"), table, words)
    with table.appender(upsert="id") as appender:
        sent = appender.append([{"name": "x"}])
        refused(sent.result, table, words)


def place_of(table: DeltaTable, name: str = "") -> str:
    """The directory of the catalog with the table, or a path in it."""
    return str(Path(table.table_uri).parent.parent / name)


def in_catalog(table: DeltaTable, name: str = "") -> Connection:
    return deltalog.connect(catalog=place_of(table, name))


def text_at(table: DeltaTable, text: str) -> str:
    path = Path(place_of(table, "x.share"))
    path.write_text(text, "utf-8")
    path.chmod(0o600)
    return str(path)


CHANGES: list[tuple[Any, str]] = [
    (lambda t: t.update("name = 'x'", "id = 1"), "expected a dictionary of SQL, such as"),
    (lambda t: t.update({"name": pl.col("name")}), "SQL such as 'upper(name)'"),
    (lambda t: t.scan("id, name"), "such as ['id', 'name']"),
    (lambda t: t.alter.set_clustering_columns("idd"), "did you mean 'id'?"),
    (
        lambda t: write_deltalake(f"{t.table_uri}2", ROWS, partition_by=["info.city"]),
        "there is no column 'info.city'",
    ),
    (
        lambda t: write_deltalake(f"{t.table_uri}2", t, partition_by=["info.city"]),
        "only top-level columns can be partition columns; copy the field of 'info'",
    ),
    (lambda _: DeltaTable("unity://main.sales.t"), "uc://catalog.schema.table"),
    (lambda _: DeltaTable("glue://sales.t"), "connect(catalog='glue')"),
    (lambda _: deltalog.connect(catalog="uc:/main"), "expected uc://catalog"),
    (lambda _: deltalog.connect(catalog="unity://main"), "expected uc://catalog"),
    (lambda _: FileCatalog("x").find(("t",)), "such as ('schema', 'table')"),
    (lambda _: deltalog.sql("SELECT * FROM t"), "deltalog sql -t t=LOCATION"),
    (lambda _: deltalog.sql("SELECT * FROM t"), "connect({'t': table})"),
    (lambda _: deltalog.sql("WITH a AS (SELECT 1 AS x) SELECT y FROM a"), "'y'; known: 'x'"),
    (lambda _: deltalog.sql("SELECT * FROM t", t={"id": 1}), "the column 'id' of a dict"),
    (lambda _: deltalog.sql("SELECT * FROM t", t=5), "cannot read t in SQL: it is an int"),
    (lambda _: deltalog.sql("SELECT * FROM t", t=None), "expected a table, a dataframe"),
    (lambda t: deltalog.sql("SELECT * FROM t", tables={"t": t}), "sql(query, t=…)"),
    (lambda t: deltalog.sql("SELECT 1", catalog=place_of(t)), "use connect(catalog=…, schema=…)"),
    (lambda t: in_catalog(t).sql("SELECT * FROM t"), "write schema.t, or set the schema by USE"),
    (
        lambda t: deltalog.connect(catalog={"a": place_of(t)}).sql("SELECT * FROM s.t"),
        "begins with the alias of a catalog, as in a.schema.t",
    ),
    (lambda t: in_catalog(t).sql("SELECT * FROM main.s.t"), "write as schema.table"),
    (lambda t: FileCatalog(place_of(t)).branch(["t"], "n"), "branch([…]) write as schema.table"),
    (lambda t: in_catalog(t, "nope").sql("SHOW TABLES"), "there is no such directory"),
    (lambda t: in_catalog(t, "nope").sql("SHOW SCHEMAS"), "CREATE SCHEMA makes it"),
    (lambda t: QueryBuilder().register("t", t).execute("SELECT * FROM x"), "'x'; known: 't'"),
    (lambda t: t.publish(), "@NAME'), or create it by branch('NAME')"),
    (lambda t: t.update({"tags[0]": "'z'"}), "assign the whole column 'tags'"),
    (lambda _: DeltaTable("/data/x.share#s.d.t"), "deltalog.sharing.SharedTable opens"),
    (lambda t: read_profile(text_at(t, "{bad")), "cannot read the profile '/"),
    (lambda t: read_profile(text_at(t, "{}")), "cannot read the profile '/"),
    (
        lambda t: t.load_cdf(0).read_all(),
        "deltalog properties TABLE --set delta.enableChangeDataFeed=true",
    ),
]


@pytest.mark.parametrize(("act", "words"), CHANGES)
def test_arguments(table: DeltaTable, act: Any, words: str) -> None:
    refused(lambda: act(table), table, words)


def test_a_refused_change_logs_no_change(
    table: DeltaTable, caplog: pytest.LogCaptureFixture
) -> None:
    refused(lambda: table.alter.set_clustering_columns(["idd"]), table, "did you mean 'id'?")
    assert not caplog.messages
    table.alter.set_clustering_columns("id")
    assert table.detail()["clusteringColumns"] == ["id"]


CHECKS: list[tuple[Any, str]] = [
    (lambda branch: branch.delete("id = 2"), "a check of publish cannot change the branch"),
    (lambda: True, "is called with the branch, as in lambda branch: branch.count() > 0"),
]


@pytest.mark.parametrize(("check", "words"), CHECKS)
def test_checks_of_a_branch(table: DeltaTable, check: Any, words: str) -> None:
    branch = table.branch("b")
    branch.delete("id = 1")
    refused(lambda: branch.publish([check]), table, words)
    assert branch.count() == 1
    branch.publish([lambda one: one.count() == 1, "id > 1"])


NEW_VALUES: list[tuple[dict[str, Any], str]] = [
    ({"updates": {"amount": pl.col("amount") + 1}}, "found an expression of polars: write SQL"),
    ({"updates": {"amount": pl.lit(3)}}, "found an expression of polars: write SQL, such as"),
    ({"new_values": {"amount": pl.lit(3)}}, "{'n': deltalog.col('n') + 1} as updates"),
    ({"updates": {"amount": pc.field("amount")}}, "found an expression of pyarrow: write SQL"),
]


@pytest.mark.parametrize(("given", "words"), NEW_VALUES)
def test_new_values_of_other_libraries(
    table: DeltaTable, given: dict[str, Any], words: str
) -> None:
    refused(lambda: table.update(**given), table, words)


@pytest.mark.parametrize(
    ("given", "found"),
    [({}, "neither"), ({"updates": {"amount": "1"}, "new_values": {"amount": 1}}, "both")],
)
def test_an_update_needs_one_of_two_arguments(
    table: DeltaTable, given: dict[str, Any], found: str
) -> None:
    words = f"cannot run UPDATE on {table.table_uri}: expected either updates, a dictionary of SQL"
    refused(lambda: table.update(**given), table, words, f", found {found}")

    def staged() -> None:
        with table.transaction() as tx:
            tx.update(**given)

    refused(staged, table, words, f", found {found}")


LARGE: list[Any] = [
    pl.Series("n", range(1000)),
    pa.chunked_array([range(1000)]),
    pa.table({"n": range(1000)}),
    [*range(1000)],
    b"x" * 10_000,
]


@pytest.mark.parametrize("value", LARGE, ids=lambda value: type(value).__name__)
def test_messages_have_no_large_values(table: DeltaTable, value: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: table.update({"amount": value}),
        lambda: table.update(value),
        lambda: table.update(new_values={"amount": value}),
        lambda: table.update(new_values=value),
        lambda: table.delete(value),
        lambda: table.delete("id = :x", parameters={"x": value}),
        lambda: table.delete("id = :x", parameters={"x": str(value) * 10}),
        lambda: table.delete("id = :x", parameters=value),
        lambda: table.delete(col("amount") == value),
        lambda: table.load_as_version(value),
        lambda: table.restore(value),
        lambda: table.vacuum(value),
        lambda: deltalog.sql(value),
    ]
    for call in calls:
        with pytest.raises(DeltaError) as caught:
            call()
        message = str(caught.value)
        assert "\n" not in message
        assert len(message) < len(table.table_uri) + 900
    assert DeltaTable(table.table_uri).version() == 0


STRINGS = [{"id": "1"}, {"id": "2"}, {"id": "abc"}]


@pytest.mark.parametrize(
    "rows",
    [
        STRINGS,
        pl.DataFrame(STRINGS).to_arrow(),
        pl.concat([pl.DataFrame(STRINGS[:2]), pl.DataFrame(STRINGS[2:])], rechunk=False),
    ],
    ids=["dicts", "Arrow", "chunks"],
)
def test_the_row_of_a_value_that_cannot_be_stored(table: DeltaTable, rows: Any) -> None:
    words = f"cannot write the data to {table.table_uri}: cannot store", "'id' as long", "'abc'"
    row = "in row 3 of the data"
    refused(lambda: write_deltalake(table, rows, mode="append"), table, *words, row)
    refused(lambda: table.upsert(rows, "id"), table, *words, row)


def test_the_row_of_an_appended_value_that_cannot_be_stored(table: DeltaTable) -> None:
    with table.appender() as appender:
        future = appender.append(STRINGS)
    words = (
        f"cannot write the data to {table.table_uri}: cannot store string",
        "in row 3 of the data",
    )
    refused(future.result, table, *words)


def test_the_row_of_a_number_that_cannot_be_stored(table: DeltaTable) -> None:
    rows = {"id": [1.0, 2.0, 3.5]}
    words = "3.5", "in row 3 of the data"
    refused(lambda: write_deltalake(table, rows, mode="append"), table, *words)


def test_the_row_of_a_type_that_cannot_be_stored(table: DeltaTable) -> None:
    with pytest.raises(DeltaError) as caught:
        write_deltalake(table, {"id": [True]}, mode="append")
    assert " in row " not in str(caught.value)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("INSERT INTO t (id, day) SELECT id, id FROM t", "CAST(id AS DATE)"),
        ("INSERT INTO t SELECT id, name, id AS x, id AS y, tags, info FROM t", "CAST(y AS DATE)"),
    ],
)
def test_the_columns_of_inserted_rows(table: DeltaTable, statement: str, words: str) -> None:
    start = f"cannot insert into {table.table_uri}: cannot compute column 'day'"
    refused(lambda: deltalog.sql(statement, t=table), table, start, words)


def test_a_query_in_an_update_that_cannot_be_read(table: DeltaTable) -> None:
    statement = "UPDATE t SET name = (SELECT max(name) FROM s) FROM s WHERE t.id = s.id"
    with pytest.raises(InvalidInputError, match="merge them") as caught:
        deltalog.sql(statement, t=table, s=table)
    assert "deltalog_query" not in str(caught.value)


def test_a_value_in_place_of_a_table(table: DeltaTable) -> None:
    words = (
        "n=… names a table: pass a value in the second argument, as in sql(statement, {'n': 'n1'})"
    )
    with pytest.raises(DeltaError) as caught:
        deltalog.sql("SELECT * FROM t WHERE name = :n", n="n1", t=table)
    assert words in str(caught.value)


def test_a_new_table_without_types(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="all values are NULL, give the columns types"):
        write_deltalake(tmp_path / "new", {"a": [None]})


def test_a_schema_without_fields_in_json() -> None:
    with pytest.raises(DeltaError, match=r"expected a type, such as 'long' or .*found \{\}"):
        Schema.from_json("{}")
