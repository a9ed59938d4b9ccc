"""CREATE TABLE in all forms, CONVERT and DROP."""

from __future__ import annotations

import re
from datetime import date
from typing import Any
from uuid import uuid4

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq  # writes what another system left
import pytest

from deltalog.errors import (
    DeltaError,
    InvalidInputError,
    TableExistsError,
    TableNotFoundError,
    VersionNotFoundError,
)
from tests.support.sql_tables import SqlTables


def test_a_table_has_what_its_definition_says(db: SqlTables) -> None:
    table = db.create(
        "t",
        "(id INT NOT NULL COMMENT 'it\\'s', `b c` STRUCT<x: INT, y: ARRAY<STRING>>, v VARCHAR(5), "
        "twice INT GENERATED ALWAYS AS (id * 2), CONSTRAINT pos CHECK (id > 0)) -- "
        "USING DELTA COMMENT 'the table' PARTITIONED BY (v) TBLPROPERTIES ('k' = 'x', "
        "delta.appendOnly = true, n = 5, 'delta.columnMapping.mode' = 'name')",
    )
    schema, metadata = table.schema(), table.metadata()
    assert schema.names == ("id", "b c", "v", "twice")
    assert (schema.fields[0].nullable, schema.fields[0].metadata["comment"]) == (False, "it's")
    assert (metadata.description, metadata.partition_columns) == ("the table", ("v",))
    own = {key: metadata.configuration[key] for key in ("k", "delta.appendOnly", "n")}
    assert own == {"k": "x", "delta.appendOnly": "true", "n": "5"}
    assert metadata.configuration["delta.constraints.pos"] == "id > 0"


def test_partition_columns_may_have_their_types(db: SqlTables) -> None:
    table = db.create("t", "(id INT) -- PARTITIONED BY (p DATE, q STRING)")
    assert table.schema().names == ("id", "p", "q")
    assert table.metadata().partition_columns == ("p", "q")


@pytest.mark.parametrize(
    ("function", "column", "value"),
    [
        ("days(y)", "y_day DATE GENERATED ALWAYS AS (CAST(y AS DATE))", date(2024, 1, 2)),
        ("CAST(y AS DATE)", "y_day DATE GENERATED ALWAYS AS (CAST(y AS DATE))", date(2024, 1, 2)),
        ("date_trunc(day, y)", "y_day DATE GENERATED ALWAYS AS (CAST(y AS DATE))", None),
        ("months(y)", "y_month STRING GENERATED ALWAYS AS (DATE_FORMAT(y, 'yyyy-MM'))", "2024-01"),
        ("hours(y)", "y_hour STRING GENERATED ALWAYS AS (DATE_FORMAT(y, 'yyyy-MM-dd-HH'))",
         "2024-01-02-03"),
        ("Years(y)", "y_year INT GENERATED ALWAYS AS (YEAR(y))", 2024),
        ("bucket(4, id)", "id_bucket INT GENERATED ALWAYS AS (PMOD(HASH(id), 4))", 3),
        ("truncate(2, `a b`)", "`a b_prefix` STRING GENERATED ALWAYS AS (SUBSTRING(`a b`, 1, 2))",
         "ab"),
    ],
)  # fmt: skip
def test_a_function_in_partitioned_by_is_answered_with_a_generated_column(
    db: SqlTables, function: str, column: str, value: Any
) -> None:
    columns = "id INT, y TIMESTAMP_NTZ, `a b` STRING"
    with pytest.raises(InvalidInputError, match=re.escape(f"define the column {column}")) as info:
        db.create("t", f"({columns}) -- PARTITIONED BY ({function})")
    clause = str(info.value).rpartition("and write ")[2]
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    db.create("t", f"({columns}, {column}) -- {clause} {mapped}")
    db.run("INSERT INTO t (id, y, `a b`) VALUES (1, TIMESTAMP_NTZ'2024-01-02 03:04:05', 'abc')")
    (row,) = db.run("SELECT * FROM t").to_pylist()
    assert [*row.values()][3] == (value or date(2024, 1, 2))


def test_a_function_over_columns_of_a_query_is_selected(db: SqlTables) -> None:
    answer = re.escape("select CAST(y AS DATE) AS y_day, and write PARTITIONED BY (y_day)")
    with pytest.raises(InvalidInputError, match=answer):
        db.run("CREATE TABLE memory.t PARTITIONED BY (days(y)) AS SELECT 1 AS id")
    for statement in (
        "CREATE TABLE memory.t (y DATE) CLUSTER BY (days(y))",
        "ALTER TABLE t CLUSTER BY (days(y))",
    ):
        with pytest.raises(InvalidInputError, match=re.escape("write CLUSTER BY (y)")):
            db.run(statement)


@pytest.mark.parametrize(
    ("definition", "answer"),
    [
        ("a VARCHAR(3) DEFAULT 'abcd'", "a string of 4 characters, and a varchar(3) has at most 3"),
        ("a CHAR(3) DEFAULT upper('abcd')", "of 4 characters, and a char(3) has at most 3"),
        ("a ARRAY<VARCHAR(2)> DEFAULT array('a', 'abc')", "a varchar(2) has at most 2"),
        ("a MAP<STRING, CHAR(2)> DEFAULT map('abc', 'abc')", "a char(2) has at most 2"),
        ("a STRUCT<x: CHAR(2)> DEFAULT named_struct('x', 'abc')", "a char(2) has at most 2"),
        ("a TINYINT DEFAULT 300", "expected a whole number from -128 to 127"),
    ],
)
def test_a_default_that_no_row_can_have_is_refused(
    db: SqlTables, definition: str, answer: str
) -> None:
    features = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    with pytest.raises(InvalidInputError, match=re.escape(answer)):
        db.create("t", f"(id INT, {definition}) -- {features}")
    name, kind, rest = definition.partition(" DEFAULT ")
    db.create("t", f"(id INT, {name}) -- {features}")
    with pytest.raises(InvalidInputError, match=re.escape(answer)):
        db.run(f"ALTER TABLE t ALTER COLUMN a SET{kind}{rest}")


def test_a_default_as_long_as_its_column_is_accepted(db: SqlTables) -> None:
    db.create(
        "t",
        "(id INT, a VARCHAR(3) DEFAULT 'abc', m MAP<STRING, CHAR(2)> DEFAULT map('abc', 'ab'), "
        "n INT DEFAULT NULL COMMENT 'c') -- "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    )
    db.run("INSERT INTO t (id) VALUES (1)")
    assert db.rows("SELECT * FROM t") == [(1, "abc", [("abc", "ab")], None)]


def test_the_missing_version_of_a_clone_cannot_be_cloned(db: SqlTables) -> None:
    db.create("t", "(id INT)")
    with pytest.raises(VersionNotFoundError, match="cannot clone version 7 of"):
        db.run("CREATE TABLE c SHALLOW CLONE t VERSION AS OF 7 LOCATION '{root}/c'")
    with pytest.raises(VersionNotFoundError, match=r"cannot clone .* as of 1999"):
        db.run("CREATE TABLE c SHALLOW CLONE t TIMESTAMP AS OF '1999-01-01' LOCATION '{root}/c'")


def test_a_table_is_converted_once(db: SqlTables, caplog: pytest.LogCaptureFixture) -> None:
    root = db.create("t", "(id INT)").table_uri
    with caplog.at_level("WARNING", "deltalog"):
        db.run(f"CONVERT TO DELTA parquet.`{root}`")
    (message,) = caplog.messages
    assert message.startswith("CONVERT TO DELTA changed nothing: ")
    assert message.endswith("is a Delta table already")
    assert db.table("t").version() == 0


def test_a_table_is_clustered(db: SqlTables) -> None:
    db.create("t", "(id INT, s STRUCT<a: INT>) -- CLUSTER BY (id, s.a)")
    (found,) = db.run("DESCRIBE DETAIL t").to_pylist()
    assert found["clusteringColumns"] == ["id", "s.a"]


@pytest.mark.parametrize(
    ("sql", "rows", "operations"),
    [
        ("CREATE TABLE IF NOT EXISTS t (b INT) LOCATION '{root}/t'", [(1,)], 1),
        ("CREATE TABLE IF NOT EXISTS t AS SELECT 5 AS b", [(1,)], 1),
        ("CREATE OR REPLACE TABLE t (b INT)", [], 2),
        ("CREATE OR REPLACE TABLE t AS SELECT 5 AS b", [(5,)], 2),
        ("REPLACE TABLE t AS SELECT 5 AS b", [(5,)], 2),
        ("CREATE OR REPLACE TABLE t AS SELECT a + 1 AS a FROM t", [(2,)], 2),
    ],
)
def test_a_table_that_is_there_is_kept_or_replaced(
    db: SqlTables, sql: str, rows: list[tuple[Any, ...]], operations: int
) -> None:
    db.create("t", "AS SELECT 1 AS a")
    db.run(sql)
    assert db.rows("SELECT * FROM t") == rows
    assert len(db.history("t")) == operations


@pytest.mark.parametrize("columns", ["", "(a INT) "])
def test_an_existing_table_gets_a_name(db: SqlTables, columns: str) -> None:
    db.create("t", "AS SELECT 1 AS a")
    db.run(f"CREATE TABLE other {columns}USING DELTA LOCATION '{{root}}/t'")
    assert db.rows("SELECT * FROM other") == [(1,)]
    assert db.history("other") == ["CREATE TABLE AS SELECT"]


@pytest.mark.parametrize(
    ("definition", "error", "problem"),
    [
        ("(b INT) LOCATION '{root}/t'", InvalidInputError, "the columns of the existing table"),
        ("LOCATION '{root}/t' TBLPROPERTIES ('k' = 'v')", InvalidInputError, "the property k"),
        ("LOCATION '{root}/t' AS SELECT 2 AS a", TableExistsError, "already exists"),
    ],
)
def test_an_existing_table_gets_a_name_only_if_it_is_as_defined(
    db: SqlTables, definition: str, error: type[DeltaError], problem: str
) -> None:
    db.create("t", "AS SELECT 1 AS a")
    with pytest.raises(error, match=problem):
        db.run(f"CREATE TABLE other {definition}")
    assert db.rows("SELECT * FROM t") == [(1,)]
    with pytest.raises(TableNotFoundError):
        db.run("SELECT * FROM other")


@pytest.mark.parametrize(
    ("sql", "error", "problem"),
    [
        ("CREATE TABLE t (a INT)", TableExistsError, "already exists"),
        ("CREATE TABLE t AS SELECT 1 AS a", TableExistsError, "already exists"),
        ("CREATE TABLE t CLONE t", TableExistsError, "t"),
        ("CREATE TABLE new (a INT)", InvalidInputError, "set its LOCATION"),
        ("REPLACE TABLE new (a INT)", TableNotFoundError, "CREATE OR REPLACE TABLE creates it"),
        ("REPLACE TABLE new (a INT) LOCATION '{root}/new'", TableNotFoundError, "does not exist"),
        ("CREATE TABLE new (a INT) LOCATION '{root}/new' AS SELECT 1 AS a", InvalidInputError,
         "AS SELECT defines the columns"),
        ("CREATE TABLE new (a INT, A INT) LOCATION '{root}/new'", InvalidInputError, "same name"),
        ("CREATE TABLE new LIKE missing LOCATION '{root}/new'", TableNotFoundError, "missing"),
        ("CREATE TABLE new CLONE missing LOCATION '{root}/new'", TableNotFoundError, "missing"),
        ("CREATE OR REPLACE TABLE t AS SELECT CAST('x' AS INT) AS a", InvalidInputError,
         "cannot cast 'x' to integer"),
        ("CREATE TABLE new LOCATION '{root}/new' AS SELECT CAST('x' AS INT) AS a FROM t",
         InvalidInputError, "cannot cast 'x' to integer"),
        ("CREATE TABLE new LOCATION '{root}/new' AS SELECT 1 AS a, 2 AS a", DeltaError, "a"),
        ("CONVERT TO DELTA parquet.`{root}/new`", InvalidInputError, "no Parquet file"),
        ("DROP TABLE missing", TableNotFoundError, "it does not exist"),
        ("DROP TABLE delta.`{root}/t`", InvalidInputError, "it is a location"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_leaves_nothing_behind(
    db: SqlTables, sql: str, error: type[DeltaError], problem: str
) -> None:
    db.create("t", "AS SELECT 1 AS a")
    with pytest.raises(error, match=problem):
        db.run(sql)
    assert db.rows("SELECT * FROM t") == [(1,)]
    assert db.history("t") == ["CREATE TABLE AS SELECT"]
    with pytest.raises(TableNotFoundError):
        db.run("SELECT * FROM delta.`{root}/new`")


def test_a_failed_query_makes_no_files(db: SqlTables) -> None:
    with pytest.raises(InvalidInputError):
        db.run(
            "CREATE TABLE n LOCATION '{root}/n' AS SELECT 1 / (id - 90000) AS x FROM range(100000)"
        )
    assert not fsspec.filesystem("memory").find(db.root.removeprefix("memory:/") + "/n")


def test_a_table_like_another_has_its_columns_and_no_rows(db: SqlTables) -> None:
    model = db.create(
        "m",
        "(id INT NOT NULL COMMENT 'c', p STRING, v CHAR(2)) -- PARTITIONED BY (p) COMMENT 'x' "
        "TBLPROPERTIES ('k' = 'v')",
    )
    db.run("INSERT INTO m VALUES (1, 'p', 'vv')")
    db.run("CREATE TABLE t LIKE m LOCATION '{root}/t'")
    table = db.table("t")
    assert table.schema() == model.schema()
    assert table.metadata().partition_columns == ("p",)
    assert (table.metadata().description, table.metadata().configuration["k"]) == ("x", "v")
    assert db.rows("SELECT * FROM t") == []


def test_tables_are_cloned(db: SqlTables) -> None:
    db.create("s", "AS SELECT 1 AS id")
    db.run("INSERT INTO s VALUES (2)")
    found = db.run("CREATE TABLE deep DEEP CLONE s LOCATION '{root}/deep'").to_pylist()
    assert found[0]["num_copied_files"] == 2
    db.run("CREATE TABLE shallow SHALLOW CLONE s VERSION AS OF 0 LOCATION '{root}/shallow'")
    db.run("CREATE TABLE at CLONE s@v0 TBLPROPERTIES ('k' = 'v') LOCATION '{root}/at'")
    db.run("CREATE OR REPLACE TABLE at CLONE s")
    db.run("CREATE TABLE IF NOT EXISTS again CLONE s LOCATION '{root}/shallow'")
    rows = {name: db.values(f"TABLE {name}") for name in ("deep", "shallow", "at", "again")}
    assert rows == {"deep": [1, 2], "shallow": [1], "at": [1, 2], "again": [1]}


def test_parquet_files_become_a_table(db: SqlTables) -> None:
    path = f"/convert-{uuid4().hex}"
    with fsspec.open(f"memory://{path}/p=1/x.parquet", "wb") as file:
        pq.write_table(pa.table({"id": [1, 2]}), file)
    db.run(f"CONVERT TO DELTA parquet.`memory://{path}` PARTITIONED BY (p INT)")
    assert db.rows(f"SELECT * FROM delta.`memory://{path}`") == [(1, 1), (2, 1)]


def test_names_are_dropped_and_files_stay(db: SqlTables) -> None:
    db.create("t", "AS SELECT 1 AS a")
    db.run("DROP TABLE T")
    db.run("DROP TABLE IF EXISTS t")
    with pytest.raises(TableNotFoundError):
        db.run("SELECT * FROM t")
    assert db.values("SELECT a FROM delta.`{root}/t`") == [1]


def test_odd_names_of_columns_and_tables(db: SqlTables) -> None:
    db.run(
        "CREATE TABLE `my t`.`x``y` (`a.b` INT, `c``d` STRING, `select` INT, été INT) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name') LOCATION '{root}/odd'"
    )
    db.run("INSERT INTO `my t`.`x``y` VALUES (1, 'x', 2, 3)")
    db.run("UPDATE `my t`.`x``y` SET `a.b` = `select` + ÉTÉ WHERE `c``d` = 'x'")
    found = db.rows("SELECT `a.b`, `c``d` FROM `MY T`.`x``y` AS q WHERE q.`select` = 2")
    assert found == [(5, "x")]


@pytest.mark.parametrize("name", ["delta.apendOnly", "delta.nope", "deltalog.nope"])
def test_an_unknown_property_is_refused(db: SqlTables, name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"there is no table property '{name}'"):
        db.create("t", f"(a INT) -- TBLPROPERTIES ('{name}' = 'true')")


@pytest.mark.parametrize(
    ("statement", "answer"),
    [
        ("CREATE TABLE t (a INT, CHECK (a > 0))", "CONSTRAINT name CHECK"),
        ("CREATE TABLE t (a INT CHECK (a > 0))", "CONSTRAINT name CHECK"),
        ("CREATE TABLE t (a INT) CLUSTERED BY (a) INTO 4 BUCKETS", "write CLUSTER BY"),
        ("CREATE TABLE t (a INT) OPTIONS (path 'x')", "write LOCATION '/path'"),
        ("CREATE TABLE t (a INT, b INT AS (a + 1))", "write GENERATED ALWAYS AS"),
        ("CREATE TABLE t (s STRUCT(a INT))", "write STRUCT<field: INT>"),
        ("CREATE TABLE t (a INT[])", "write ARRAY<INT>"),
        ("CREATE TEMP TABLE t AS SELECT 1", "no temporary tables; connection.register"),
        ("CREATE EXTERNAL TABLE t (a INT)", "leave out EXTERNAL"),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT", "leave out IF NOT EXISTS"),
        ("ALTER TABLE t ALTER COLUMN a SET DATA TYPE STRING", "as in ALTER COLUMN c TYPE BIGINT"),
        ("OPTIMIZE TABLE t", "leave out TABLE"),
        ("VACUUM TABLE t", "leave out TABLE"),
    ],
)
def test_clauses_of_other_dialects_are_answered(db: SqlTables, statement: str, answer: str) -> None:
    with pytest.raises(InvalidInputError, match=answer):
        db.run(statement)
