"""ALTER TABLE and COMMENT ON."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    SchemaMismatchError,
    TableNotFoundError,
)
from tests.support.sql_tables import SqlTables


@pytest.fixture
def table(db: SqlTables) -> SqlTables:
    """A table `t` of a number, a text and a struct, with one row."""
    db.create(
        "t",
        "(id INT, v STRING, s STRUCT<a: INT>) -- TBLPROPERTIES ("
        "'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true', "
        "'delta.feature.allowColumnDefaults' = 'supported')",
    )
    db.run("INSERT INTO t VALUES (1, 'a', named_struct('a', 1))")
    return db


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("ADD COLUMN x INT", ["id int", "v string", "s struct<a:int>", "x int"]),
        ("ADD COLUMNS (x INT FIRST, y STRING COMMENT 'c' AFTER v)",
         ["x int", "id int", "v string", "y string", "s struct<a:int>"]),
        ("ADD COLUMNS (s.b STRING, s.c INT FIRST)",
         ["id int", "v string", "s struct<c:int,a:int,b:string>"]),
        ("RENAME COLUMN v TO w", ["id int", "w string", "s struct<a:int>"]),
        ("RENAME COLUMN s.a TO b", ["id int", "v string", "s struct<b:int>"]),
        ("DROP COLUMN v", ["id int", "s struct<a:int>"]),
        ("DROP COLUMNS (v, s)", ["id int"]),
        ("DROP COLUMN IF EXISTS v, nothing", ["id int", "s struct<a:int>"]),
        ("DROP COLUMN IF EXISTS nothing", ["id int", "v string", "s struct<a:int>"]),
        ("ALTER COLUMN id TYPE BIGINT", ["id bigint", "v string", "s struct<a:int>"]),
        ("ALTER id TYPE BIGINT", ["id bigint", "v string", "s struct<a:int>"]),
        ("ALTER COLUMN s FIRST", ["s struct<a:int>", "id int", "v string"]),
        ("ALTER COLUMN id AFTER v, v COMMENT 'x'", ["v string", "id int", "s struct<a:int>"]),
        ("CHANGE COLUMN id ID BIGINT COMMENT 'c' AFTER v",
         ["v string", "id bigint", "s struct<a:int>"]),
        ("CHANGE id id INT", ["id int", "v string", "s struct<a:int>"]),
    ],
)  # fmt: skip
def test_columns_are_changed(table: SqlTables, sql: str, columns: list[str]) -> None:
    table.run(f"ALTER TABLE t {sql}")
    found = table.run("DESCRIBE t").to_pylist()
    assert [f"{row['col_name']} {row['data_type']}" for row in found] == columns
    assert len(table.rows("SELECT * FROM t")) == 1


def test_comments_of_tables_and_columns(table: SqlTables) -> None:
    table.run("ALTER TABLE t ALTER COLUMN id COMMENT 'it\\'s'")
    table.run("COMMENT ON COLUMN t.v IS 'text'")
    table.run("COMMENT ON TABLE t IS 'table'")
    comments = [row["comment"] for row in table.run("DESCRIBE t").to_pylist()]
    assert comments == ["it's", "text", None]
    assert table.table("t").metadata().description == "table"
    table.run("COMMENT ON TABLE t IS NULL")
    table.run("COMMENT ON COLUMN t.v IS NULL")
    assert not table.table("t").metadata().description
    assert table.run("DESCRIBE t").to_pylist()[1]["comment"] is None


def test_a_column_is_required_or_not(table: SqlTables) -> None:
    table.run("ALTER TABLE t ALTER COLUMN v SET NOT NULL")
    with pytest.raises(SchemaMismatchError, match="must not be NULL"):
        table.run("INSERT INTO t (id) VALUES (2)")
    table.run("ALTER TABLE t ALTER COLUMN v DROP NOT NULL")
    table.run("INSERT INTO t (id) VALUES (2)")


def test_a_column_has_a_default_or_not(table: SqlTables) -> None:
    table.run("ALTER TABLE t ALTER COLUMN v SET DEFAULT upper('x')")
    table.run("INSERT INTO t (id) VALUES (2)")
    table.run("UPDATE t SET v = DEFAULT WHERE id = 1")
    table.run("ALTER TABLE t ALTER COLUMN v DROP DEFAULT")
    table.run("INSERT INTO t VALUES (3, DEFAULT, NULL)")
    assert table.rows("SELECT id, v FROM t") == [(1, "X"), (2, "X"), (3, None)]


def test_properties_are_set_and_unset(table: SqlTables) -> None:
    table.run("ALTER TABLE t SET TBLPROPERTIES ('k' = 'v', delta.appendOnly = true)")
    own = table.table("t").metadata().configuration
    assert (own["k"], own["delta.appendOnly"]) == ("v", "true")
    table.run("ALTER TABLE t UNSET TBLPROPERTIES ('k', delta.appendOnly)")
    table.run("ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('k')")
    assert "k" not in table.table("t").metadata().configuration
    with pytest.raises(InvalidInputError, match="does not have it"):
        table.run("ALTER TABLE t UNSET TBLPROPERTIES ('k')")


def test_double_quotes_of_a_constraint_are_not_guessed_at(table: SqlTables) -> None:
    """Python callers mean the column, as for deltalake; in Spark's SQL it is a text."""
    with pytest.raises(InvalidInputError, match="double quotes mean a string"):
        table.run('ALTER TABLE t ADD CONSTRAINT c CHECK ("id" > 0)')


def test_constraints_are_added_and_dropped(table: SqlTables) -> None:
    table.run("ALTER TABLE t ADD CONSTRAINT pos CHECK (id > 0 /* always */ AND v IN ('a', 'b)'))")
    with pytest.raises(ConstraintViolationError):
        table.run("INSERT INTO t (id) VALUES (-1)")
    with pytest.raises(ConstraintViolationError):
        table.run("ALTER TABLE t ADD CONSTRAINT neg CHECK (id < 0)")
    table.run("ALTER TABLE t DROP CONSTRAINT pos")
    table.run("ALTER TABLE t DROP CONSTRAINT IF EXISTS pos")
    with pytest.raises(InvalidInputError, match="pos"):
        table.run("ALTER TABLE t DROP CONSTRAINT pos")
    table.run("INSERT INTO t (id) VALUES (-1)")


def test_clustering_and_features(table: SqlTables) -> None:
    table.run("ALTER TABLE t CLUSTER BY (id, s.a)")
    (detail,) = table.run("DESCRIBE DETAIL t").to_pylist()
    assert detail["clusteringColumns"] == ["id", "s.a"]
    table.run("ALTER TABLE t CLUSTER BY NONE")
    table.run("ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    table.run("ALTER TABLE t DROP FEATURE deletionVectors")
    (detail,) = table.run("DESCRIBE DETAIL t").to_pylist()
    assert detail["clusteringColumns"] in ([], None)
    assert detail["properties"] is not None


def test_an_identity_column_is_synchronised(db: SqlTables) -> None:
    db.create("t", "(id BIGINT GENERATED BY DEFAULT AS IDENTITY, v INT)")
    db.run("INSERT INTO t VALUES (100, 1)")
    db.run("ALTER TABLE t ALTER COLUMN id SYNC IDENTITY")
    db.run("INSERT INTO t (v) VALUES (2)")
    assert db.rows("SELECT * FROM t") == [(100, 1), (101, 2)]


def test_names_and_locations_are_the_sessions(table: SqlTables) -> None:
    table.run("ALTER TABLE t RENAME TO a.u")
    assert table.values("SELECT id FROM a.u") == [1]
    with pytest.raises(TableNotFoundError):
        table.run("SELECT * FROM t")
    table.create("other", "AS SELECT 5 AS id")
    with pytest.raises(InvalidInputError, match="that name is taken"):
        table.run("ALTER TABLE other RENAME TO A.U")
    table.run("ALTER TABLE a.u SET LOCATION '{root}/other'")
    assert table.values("SELECT id FROM a.u") == [5]
    with pytest.raises(TableNotFoundError):
        table.run("ALTER TABLE a.u SET LOCATION '{root}/nothing'")
    assert table.values("SELECT id FROM a.u") == [5]


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("ADD COLUMN v INT", "exists already"),
        ("ADD COLUMN V INT", "exists already"),
        ("ADD COLUMN x INT NOT NULL", "NOT NULL"),
        ("ADD COLUMN x INT DEFAULT 5", "add it, then set the default"),
        ("ADD COLUMN x INT AFTER nothing", "nothing"),
        ("DROP COLUMN nothing", "there is no column 'nothing'"),
        ("RENAME COLUMN v TO id", "id"),
        ("ALTER COLUMN id TYPE STRING", "it is not a wider type"),
        ("ALTER COLUMN nothing COMMENT 'x'", "there is no column 'nothing'"),
        ("DROP FEATURE nonsense", "there is no such table feature"),
        ("SET TBLPROPERTIES ('delta.appendOnly' = 'maybe')", "appendOnly"),
        ("CLUSTER BY (nothing)", "nothing"),
        ("ALTER COLUMN v SYNC IDENTITY", "identity"),
    ],
)
def test_changes_that_cannot_be_made_are_refused(table: SqlTables, sql: str, problem: str) -> None:
    with pytest.raises(DeltaError, match=problem):
        table.run(f"ALTER TABLE t {sql}")
    assert len(table.history("t")) == 2


def test_a_table_that_is_not_there_is_named(db: SqlTables) -> None:
    for sql in ("ALTER TABLE t ADD COLUMN x INT", "COMMENT ON TABLE t IS 'x'"):
        with pytest.raises(TableNotFoundError, match="cannot find the table t"):
            db.run(sql)


def test_several_changes_are_one_version(table: SqlTables) -> None:
    before: Any = len(table.history("t"))
    table.run("ALTER TABLE t ADD COLUMNS (x INT, y INT FIRST, s.z INT)")
    assert len(table.history("t")) == before + 1


def test_columns_are_replaced(db: SqlTables) -> None:
    table = db.create("t", "(a INT NOT NULL, s STRUCT<x: INT, y: STRING>)")
    db.run("INSERT INTO t VALUES (1, named_struct('x', 2, 'y', 'z'))")
    db.run(
        "ALTER TABLE t REPLACE COLUMNS (s STRUCT<y: STRING, x: INT, w: DATE> COMMENT 'c', "
        "n BIGINT, A INT)"
    )
    assert db.rows("SELECT * FROM t") == [({"y": "z", "x": 2, "w": None}, None, 1)]
    table.update_incremental()
    fields = {field.name: field for field in table.schema().fields}
    assert list(fields) == ["s", "n", "a"]
    assert fields["s"].metadata["comment"] == "c"
    assert fields["a"].nullable
    version = table.version()
    db.run(
        "ALTER TABLE t REPLACE COLUMNS (s STRUCT<y: STRING, x: INT, w: DATE> COMMENT 'c', "
        "n BIGINT, a INT)"
    )
    assert db.table("t").version() == version


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ("(a INT)", "columnMapping"),
        ("(a STRING, b STRING)", "not a wider type"),
        ("(a INT, c STRING)", "could mean a rename"),
        ("(a INT, A INT, b STRING)", "expected each column once, found 'A' twice"),
        ("(a INT, b STRING, c INT NOT NULL)", "NOT NULL"),
    ],
)
def test_columns_that_cannot_be_replaced_stay(db: SqlTables, columns: str, problem: str) -> None:
    table = db.create("t", "(a INT, b STRING)")
    with pytest.raises(InvalidInputError, match=problem):
        db.run(f"ALTER TABLE t REPLACE COLUMNS {columns}")
    assert db.table("t").version() == table.version()


def test_an_unknown_property_of_delta_is_refused(db: SqlTables) -> None:
    db.create("t", "(a INT)")
    with pytest.raises(InvalidInputError, match="nonsense"):
        db.run("ALTER TABLE t SET TBLPROPERTIES ('delta.nonsense' = 'x')")
    db.run("ALTER TABLE t SET TBLPROPERTIES ('nonsense' = 'x')")
