"""DELETE, UPDATE, TRUNCATE and MERGE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from deltalog.errors import CommitConflictError, DeltaError, InvalidInputError
from deltalog.statements import Connection
from deltalog.statements.local import LocalSession
from deltalog.transaction import CommitOptions, CommitProperties
from tests.support.sql_tables import SqlTables

if TYPE_CHECKING:
    from deltalog.statements.statement import Query


@pytest.fixture
def pair(db: SqlTables) -> SqlTables:
    """A table `t` of ids 1 to 4 with names, and `s`, an Arrow table of ids 3 to 5."""
    db.create("t", "AS SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, NULL) AS v(id, name)")
    db.connection.register("s", pa.table({"id": [3, 4, 5], "name": ["x", "y", "z"]}))
    return db


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("", []),
        ("WHERE id = 1", [2, 3, 4]),
        ("WHERE T.ID = 1 OR Name = 'b'", [3, 4]),
        ("AS x WHERE x.id < 3", [3, 4]),
        ("x WHERE x.id < 3 AND id > 1", [1, 3, 4]),
        ("WHERE id IN (SELECT id FROM s)", [1, 2]),
        ("WHERE id IN (SELECT id FROM s WHERE false)", [1, 2, 3, 4]),
        ("WHERE id NOT IN (SELECT id FROM s)", [3, 4]),
        ("WHERE id NOT IN (SELECT id FROM s UNION SELECT NULL)", [1, 2, 3, 4]),
        ("WHERE id NOT IN (SELECT id FROM s WHERE false)", []),
        ("WHERE id IN (1, (SELECT 2))", [3, 4]),
        ("WHERE id IN (VALUES 1, 2)", [3, 4]),
        ("WHERE id IN (TABLE ids)", [2, 3, 4]),
        ("WHERE id = (SELECT max(id) FROM t)", [1, 2, 3]),
        ("WHERE id = (SELECT id FROM s WHERE false)", [1, 2, 3, 4]),
        ("WHERE id > (SELECT min(id) FROM s) - 1 AND name IS NULL", [1, 2, 3]),
        ("WHERE EXISTS (SELECT 1 FROM s) AND id = 1", [2, 3, 4]),
        ("WHERE EXISTS (SELECT 1 FROM s WHERE false)", [1, 2, 3, 4]),
        ("WHERE NOT EXISTS (SELECT 1 FROM s WHERE false) AND id < 3", [3, 4]),
        ("WHERE CASE WHEN id = 1 THEN true ELSE false END", [2, 3, 4]),
        ("WHERE id = 1 /* OR true */ -- OR true", [2, 3, 4]),
    ],
)
def test_rows_are_deleted(pair: SqlTables, where: str, left: list[int]) -> None:
    pair.connection.register("ids", pa.table({"one": [1]}))
    found = pair.run(f"DELETE FROM t {where}")  # of this test
    assert pair.values("SELECT id FROM t") == left
    assert found.num_affected_rows == 4 - len(left)


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("id = (SELECT id FROM s)", "must return one value, but has 3 rows"),
        ("id = (SELECT id, name FROM s)", "must return one value, but has 2 columns"),
        ("id IN (SELECT id, name FROM s)", "has 2 columns, but is compared with 1: use"),
        ("(id, name, 1) IN (SELECT id, name FROM s)", "has 2 columns, but is compared with 3"),
        ("(id, name) = (SELECT id, name FROM s)", "must return one value, but has 2 columns"),
        ("(id, name) = (1, 'a', 2)", "cannot compare struct"),
        ("id IN (SELECT nothing FROM s)", "nothing"),
        ("id IN (SELECT id FROM missing)", "cannot find the table missing"),
        ("nothing = 1", "nothing"),
        ("other.id = 1", "other"),
        ('name = "id"', "double quotes mean a string"),
        ("id", "condition"),
        ("id / 0 = 1", "zero"),
    ],
)
def test_conditions_that_cannot_be_answered_are_refused(
    pair: SqlTables, where: str, problem: str
) -> None:
    with pytest.raises(DeltaError, match=problem):
        pair.run(f"DELETE FROM t WHERE {where}")  # of this test
    assert pair.history("t") == ["CREATE TABLE AS SELECT"]


@pytest.mark.parametrize(
    "where", ["EXISTS (SELECT 1 FROM s WHERE s.id = t.id)", "id = (SELECT max(id) + t.id FROM s)"]
)
def test_a_query_about_the_row_itself_is_refused_with_advice(pair: SqlTables, where: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        pair.run(f"DELETE FROM t WHERE {where}")  # of this test
    assert "write MERGE INTO t USING s ON" in str(error.value)


def test_no_value_can_stand_for_a_query(pair: SqlTables) -> None:
    sql = "DELETE FROM t WHERE name = :v OR id IN (SELECT 1)"
    pair.run(sql, {"v": "\0deltalog_query_0"})
    assert pair.values("SELECT id FROM t") == [2, 3, 4]


@pytest.mark.parametrize(
    ("rest", "rows"),
    [
        ("SET name = 'n'", [(1, "n"), (2, "n"), (3, "n"), (4, "n")]),
        ("SET name = 'n' WHERE id = 1", [(1, "n"), (2, "b"), (3, "c"), (4, None)]),
        ("SET T.NAME = 'n' WHERE t.Id = 1", [(1, "n"), (2, "b"), (3, "c"), (4, None)]),
        ("AS u SET u.name = u.name || '!' WHERE u.id = 1",
         [(1, "a!"), (2, "b"), (3, "c"), (4, None)]),
        ("SET id = id + 10, name = CAST(id AS STRING) WHERE id > 3",
         [(1, "a"), (14, "4"), (2, "b"), (3, "c")]),
        ("SET name = DEFAULT WHERE id < 3", [(1, None), (2, None), (3, "c"), (4, None)]),
        ("SET name = (SELECT max(name) FROM s) WHERE id IN (SELECT id FROM s)",
         [(1, "a"), (2, "b"), (3, "z"), (4, "z")]),
        ("SET name == 'n' WHERE false", [(1, "a"), (2, "b"), (3, "c"), (4, None)]),
    ],
)  # fmt: skip
def test_rows_are_updated(pair: SqlTables, rest: str, rows: list[tuple[Any, ...]]) -> None:
    before = pair.rows("SELECT * FROM t")
    found = pair.run(f"UPDATE t {rest}")  # of this test
    assert pair.rows("SELECT * FROM t") == sorted(rows, key=repr)
    if "DEFAULT" not in rest:
        assert found.num_affected_rows == len(set(rows) - set(before)) or "WHERE" not in rest


def test_fields_of_structs_are_updated(db: SqlTables) -> None:
    db.create("t", "AS SELECT 1 AS id, named_struct('a', 1, 'b', named_struct('c', 2)) AS s")
    db.run("UPDATE t SET s.a = 5, t.s.b.c = s.a + 1")
    assert db.values("SELECT s FROM t") == [{"a": 5, "b": {"c": 2}}]
    db.run("UPDATE t AS u SET u.s.a = 6 WHERE u.s.a = 5")
    assert db.values("SELECT u.s.a FROM t AS u") == [6]


def test_a_column_comes_before_an_alias_of_the_same_name(db: SqlTables) -> None:
    db.create("t", "AS SELECT 1 AS id, named_struct('id', 5) AS x")
    db.run("UPDATE t AS x SET id = 2 WHERE x.id = 5")
    assert db.values("SELECT id FROM t") == [2]


def test_whole_names_qualify_columns(db: SqlTables) -> None:
    db.create("a.t", "AS SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v(id, name)")
    db.create("b.t", "AS SELECT * FROM VALUES (2, 'x'), (3, 'y') AS v(id, name)")
    db.run("UPDATE a.t SET a.t.name = 'u' WHERE a.t.id = 1 AND t.id = 1")
    db.run(
        "MERGE INTO a.t USING b.t AS s ON a.t.id = s.id WHEN MATCHED THEN UPDATE SET a.t.name = "
        "s.name WHEN NOT MATCHED THEN INSERT *"
    )
    assert db.rows("SELECT * FROM a.t") == [(1, "u"), (2, "x"), (3, "y")]
    joined = "SELECT a.t.id, b.t.name FROM a.t JOIN b.t ON a.t.id = b.t.id"
    assert db.rows(joined) == [(2, "x"), (3, "y")]
    db.run("DELETE FROM a.t WHERE a.t.id = 3")
    assert db.values("SELECT a.t.id FROM a.t") == [1, 2]


def test_columns_may_be_called_as_keywords(db: SqlTables) -> None:
    db.create("t", "AS SELECT 1 AS `select`, 2 AS `end`, 3 AS `when`, 4 AS `set`")
    db.run("UPDATE t SET `end` = `when`, set = t.set + 1 WHERE `select` = 1 AND t.`end` = 2")
    assert db.rows("SELECT `select`, `end`, `when`, `set` FROM t") == [(1, 3, 3, 5)]
    db.run("INSERT INTO t (`select`, `end`) VALUES (7, 8)")
    db.run("DELETE FROM t WHERE t.`when` = 3")
    assert db.rows("SELECT `select`, `end` FROM t") == [(7, 8)]


def test_all_rows_are_removed(pair: SqlTables) -> None:
    found = pair.run("TRUNCATE TABLE t")
    assert found.schema.names == []
    assert found.metrics is not None
    assert pair.history("t")[0] == "TRUNCATE"
    assert pair.rows("SELECT * FROM t") == []


@pytest.mark.parametrize(
    ("rest", "rows", "counts"),
    [
        ("USING s ON t.id = s.id WHEN MATCHED THEN DELETE", [1, 2], (2, 0, 2, 0)),
        ("USING s ON t.id = s.id WHEN MATCHED AND s.id = 3 THEN UPDATE SET name = s.name",
         [1, 2, "3x", 4], (1, 1, 0, 0)),
        ("USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
         [1, 2, "3x", "4y", "5z"], (3, 2, 0, 1)),
        ("AS x USING s AS y ON x.id = y.id WHEN MATCHED THEN UPDATE SET x.name = y.name || x.id",
         [1, 2, "3x3", "4y4"], (2, 2, 0, 0)),
        ("x USING s y ON x.id = y.id WHEN NOT MATCHED BY TARGET THEN INSERT (ID) VALUES (y.id)",
         [1, 2, 3, 4, 5], (1, 0, 0, 1)),
        (("USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN DELETE "
         "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = 'old'"), ["2old", 3, 4], (2, 1, 1, 0)),
        (("USING (SELECT id, upper(name) AS name FROM s WHERE id > 3) q ON t.id = q.id "
         "WHEN MATCHED THEN UPDATE SET name = q.name"), [1, 2, 3, "4Y"], (1, 1, 0, 0)),
        ("USING t@v0 AS old ON t.id = old.id + 1 WHEN MATCHED THEN UPDATE SET name = 'm'",
         [1, "2m", "3m", "4m"], (3, 3, 0, 0)),
        ("USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = (SELECT min(name) FROM s)",
         [1, 2, "3x", "4x"], (2, 2, 0, 0)),
        ("USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = DEFAULT",
         [1, 2, "3None", 4], (2, 2, 0, 0)),
        (("USING s ON false WHEN NOT MATCHED AND s.id IN (SELECT 5) THEN INSERT (id, name) "
         "VALUES (s.id * 2, CASE WHEN s.id = 5 THEN 'five' END)"), [1, 2, 3, 4, "10five"],
         (1, 0, 0, 1)),
    ],
)  # fmt: skip
def test_rows_are_merged(
    pair: SqlTables, rest: str, rows: list[int | str], counts: tuple[int, ...]
) -> None:
    found = pair.run(f"MERGE INTO t {rest}")
    assert tuple(found.to_pylist()[0].values()) == counts
    own = {1: "a", 2: "b", 3: "c", 4: None}
    expected = []
    for row in rows:
        if isinstance(row, int):
            expected.append((row, own.get(row)))
        else:
            digits = "10" if row.startswith("10") else row[0]
            name = row[len(digits) :]
            expected.append((int(digits), None if name == "None" else name))
    assert pair.rows("SELECT * FROM t") == sorted(expected, key=repr)


def test_a_merge_adds_columns(pair: SqlTables) -> None:
    pair.run(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 9 AS id, 1 AS extra) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert pair.rows("SELECT * FROM t WHERE id = 9") == [(9, None, 1)]


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ("USING t ON t.id = t.id WHEN MATCHED THEN DELETE", "both be called 't'"),
        ("USING missing ON true WHEN MATCHED THEN DELETE", "cannot find the table missing"),
        ("USING (SELECT id FROM s) ON t.id = id WHEN MATCHED THEN DELETE", "ambiguous"),
        ("USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nothing = 1", "nothing"),
        (("USING (SELECT 3 AS id UNION ALL SELECT 3) s ON t.id = s.id WHEN MATCHED THEN "
         "UPDATE SET name = 'x'"), "several rows of the source"),
    ],
)  # fmt: skip
def test_merges_that_cannot_be_done_are_refused(pair: SqlTables, rest: str, problem: str) -> None:
    with pytest.raises(DeltaError, match=problem):
        pair.run(f"MERGE INTO t {rest}")
    assert pair.history("t") == ["CREATE TABLE AS SELECT"]


def test_the_table_that_is_changed_may_be_read_by_the_statement(pair: SqlTables) -> None:
    pair.run("MERGE INTO t USING (SELECT id + 10 AS id, name FROM t) s ON t.id = s.id "
             "WHEN NOT MATCHED THEN INSERT *")  # fmt: skip
    pair.run("UPDATE t SET name = (SELECT count(*) FROM t) WHERE id IN (SELECT max(id) FROM t)")
    pair.run("DELETE FROM t WHERE id < (SELECT avg(id) FROM t)")
    assert pair.rows("SELECT * FROM t") == [(11, "a"), (12, "b"), (13, "c"), (14, "8")]


def test_two_sessions_change_the_same_table(pair: SqlTables) -> None:
    location = pair.table("t").table_uri
    other = Connection(LocalSession({"t": location}))
    other.sql("DELETE FROM t WHERE id = 1")
    pair.run("UPDATE t SET name = 'n' WHERE id = 2")
    other.sql("INSERT INTO t VALUES (6, 'six')")
    assert other.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 4}]
    assert pair.values("SELECT id FROM t") == [2, 3, 4, 6]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT OVERWRITE t SELECT id, name FROM t",
        "INSERT INTO t SELECT id, name FROM t",
        "DELETE FROM t WHERE id = (SELECT max(id) FROM t)",
        "UPDATE t SET name = 'x' WHERE id IN (SELECT id FROM t)",
        "MERGE INTO t USING (SELECT id + 1 AS id FROM t) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ],
)
def test_rows_that_the_statement_has_read_are_those_that_it_changes(
    pair: SqlTables, sql: str
) -> None:
    """Another session commits after the statement has read the table, and before it commits."""
    other = Connection(LocalSession({"t": pair.table("t").table_uri}))
    rows = pair.session.select

    def select(query: Query) -> pa.RecordBatchReader:
        found = rows(query)
        other.sql("UPDATE t SET name = 'late' WHERE id = 3")
        return found

    pair.session.select = select  # type: ignore[method-assign]  # the moment of the race
    pair.session.values = lambda query: select(query).read_all()  # type: ignore[method-assign]
    pair.session.options = CommitOptions(properties=CommitProperties(max_retries=0))
    with pytest.raises(CommitConflictError):
        pair.run(sql)
    pair.session.select = rows  # type: ignore[method-assign]
    assert pair.rows("SELECT * FROM t WHERE id > 2") == [(3, "late"), (4, None)]


@pytest.mark.parametrize(
    ("sql", "ids"),
    [
        ("INSERT OVERWRITE t SELECT id, name FROM t", [1, 2, 4]),
        ("INSERT INTO t SELECT id + 10, name FROM t", [1, 2, 4, 11, 12, 14]),
        ("DELETE FROM t WHERE id = (SELECT max(id) - 1 FROM t)", [1, 2, 4]),
        ("UPDATE t SET id = id + 5 WHERE id IN (SELECT id FROM t)", [6, 7, 9]),
        (
            (
                "MERGE INTO t USING (SELECT id + 1 AS id FROM t) s ON t.id = s.id "
                "WHEN MATCHED THEN DELETE"
            ),
            [1, 4],
        ),
    ],
)
def test_a_statement_whose_query_read_an_old_version_runs_again(
    pair: SqlTables, sql: str, ids: list[int]
) -> None:
    """Another session deletes a row after the first query, and before the statement commits."""
    other = Connection(LocalSession({"t": pair.table("t").table_uri}))
    rows = pair.session.select
    seen: list[Query] = []

    def select(query: Query) -> pa.RecordBatchReader:
        found = rows(query)
        if not seen:
            other.sql("DELETE FROM t WHERE id = 3")
        seen.append(query)
        return found

    pair.session.select = select  # type: ignore[method-assign]  # the moment of the race
    pair.session.values = lambda query: select(query).read_all()  # type: ignore[method-assign]
    pair.run(sql)
    assert len(seen) == 2
    pair.session.select = rows  # type: ignore[method-assign]
    assert sorted(pair.values("SELECT id FROM t")) == ids


def test_explaining_changes_nothing(pair: SqlTables) -> None:
    for sql in (
        "DELETE FROM t WHERE id = 1",
        "UPDATE t SET name = 'x' WHERE id IN (SELECT id FROM s)",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE t",
        "INSERT OVERWRITE t SELECT 1, 'x'",
        "DROP TABLE t",
        "CREATE OR REPLACE TABLE t AS SELECT 1 AS a",
        "OPTIMIZE t",
        "VACUUM t RETAIN 0 HOURS",
        "RESTORE TABLE t TO VERSION AS OF 0",
        "ALTER TABLE t ADD COLUMN x INT",
        "ALTER TABLE t RENAME TO u",
        "SELECT * FROM t",
    ):
        (plan,) = pair.values(f"EXPLAIN {sql}")
        assert plan
        assert "Statement(" not in plan
    assert pair.history("t") == ["CREATE TABLE AS SELECT"]
    assert pair.values("SELECT id FROM t") == [1, 2, 3, 4]


def test_an_explanation_tells_which_files_are_read(pair: SqlTables) -> None:
    (plan,) = pair.values("EXPLAIN DELETE FROM t WHERE id > 100")
    assert "files: 1 in the table, 0 to read" in plan


def test_a_star_leaves_out_what_the_table_lacks(db: SqlTables) -> None:
    db.create("t", "(id INT, v STRING)")
    db.run("INSERT INTO t VALUES (1, 'old')")
    source = "(SELECT * FROM VALUES (1, 'new', 5), (2, 'two', 6) AS q(id, v, extra)) s"
    db.run(
        f"MERGE INTO t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert db.rows("SELECT * FROM t") == [(1, "new"), (2, "two")]
    with pytest.raises(InvalidInputError, match=r"columns .*; found .*INSERT \(columns\)"):
        db.run(
            "MERGE INTO t USING (SELECT 1 AS id, 5 AS extra) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET *"
        )


@pytest.fixture
def rows(db: SqlTables) -> SqlTables:
    """A table of pairs, some with NULL, and a table to ask."""
    db.create("t", "(a INT, b STRING)")
    db.run("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, NULL), (NULL, NULL)")
    db.create("s", "(a INT, b STRING)")
    db.run("INSERT INTO s VALUES (1, 'x'), (3, NULL)")
    return db


@pytest.mark.parametrize(
    ("where", "left"),
    [
        # What Delta Spark 4.4 leaves, where it takes the condition: a row is a struct, in which
        # NULL equals NULL; beside the rows of a query it is unknown.
        ("(a, b) = (1, 'x')", [2, 3, None]),
        ("(a, b) <> (1, 'x')", [1]),
        ("(a, b) = (3, CAST(NULL AS STRING))", [1, 2, None]),
        ("(a, b) <=> (3, NULL)", [1, 2, None]),
        ("(a, b) IN ((1, 'x'), (3, NULL))", [2, None]),
        ("(a, b) NOT IN ((1, 'x'), (3, NULL))", [1, 3]),
        ("(a, b) < (2, 'z')", [3]),
        ("(a, b) BETWEEN (1, 'a') AND (2, 'y')", [3, None]),
        ("(a, (b, 1)) = (2, ('y', 1))", [1, 3, None]),
        # Values of other types are cast one by one, whatever the fields are called.
        ("(a, b) < (2L, 'z')", [3]),
        ("(a, b) BETWEEN (0.5, 'a') AND (2L, 'y')", [3, None]),
        ("((a, 1), b) = ((2L, 1.0), 'y')", [1, 3, None]),
        ("((a, 1), b) IN (((2L, 1), 'y'), ((3, 1L), NULL))", [1, None]),
        ("struct(a, b) = (1L, 'x')", [2, 3, None]),
        ("array((a, b)) = array((1L, 'x'))", [2, 3, None]),
        ("struct(a AS i, b) = struct(2 AS j, 'y')", [1, 3, None]),
        ("struct(a AS i).i = 2", [1, 3, None]),
        ("(a, b AS c).c = 'x'", [2, 3, None]),
        ("(a, b) IN (SELECT a, b FROM s)", [2, 3, None]),
        ("(a, b) NOT IN (SELECT a, b FROM s)", [1, 3, None]),
        ("(b, a) IN (SELECT b, a FROM s WHERE a > 9)", [1, 2, 3, None]),
        ("struct(a, b) IN (SELECT a, b FROM s)", [2, 3, None]),
    ],
)
def test_rows_of_values_are_compared(rows: SqlTables, where: str, left: list[int | None]) -> None:
    rows.run(f"DELETE FROM t WHERE {where}")
    assert rows.values("SELECT a FROM t") == left


def test_equal_rows_prune_files(rows: SqlTables) -> None:
    rows.run("INSERT INTO t VALUES (7, 'z')")
    plan = rows.table("t").scan(predicate="(a, b) = (7, 'z')").explain()
    assert "files: 2 in the table, 1 to read" in str(plan)


def test_columns_are_called_by_the_path_of_their_table(rows: SqlTables) -> None:
    t, s = (f"delta.`{rows.table(name).table_uri}`" for name in "ts")
    assert rows.values(f"SELECT {s}.a FROM {s} WHERE {s}.b = 'x'") == [1]
    rows.run(f"DELETE FROM {t} WHERE {t}.a = 2")
    rows.run(f"UPDATE {t} SET {t}.b = 'u' WHERE {t}.a = 1")
    on = f"{t}.a = {s}.a WHEN MATCHED AND {s}.a = 3 THEN"
    rows.run(f"MERGE INTO {t} USING {s} ON {on} UPDATE SET {t}.b = concat('m', {s}.a)")
    rows.run(f"MERGE INTO {t} USING s ON {on.replace(s, 's')} UPDATE SET a = s.a + 1")
    rows.run(f"INSERT INTO {t} REPLACE WHERE {t}.a IS NULL SELECT NULL, 'r'")
    assert rows.values("SELECT b FROM t") == ["m3", "r", "u"]
    assert rows.values("SELECT a FROM t") == [1, 4, None]


def test_default_is_a_keyword_and_the_name_of_a_schema(db: SqlTables) -> None:
    for name, definition in (("t", "(a INT, b STRING)"), ("s", "(a INT, b STRING)")):
        db.create(f"default.{name}", definition)
        db.run(f"INSERT INTO default.{name} VALUES (1, '{name}')")
    merge = "MERGE INTO default.t USING default.s ON default.t.a = default.s.a WHEN"
    db.run(f"{merge} MATCHED THEN UPDATE SET b = default.s.b, default.t.a = default.t.a + 1")
    assert db.rows("SELECT * FROM default.t") == [(2, "s")]
    db.run(f"{merge} NOT MATCHED THEN INSERT (a, b) VALUES (default.s.a, DEFAULT)")
    db.run("UPDATE default.t SET b = default.t.b || '!' WHERE default.t.a = 2")
    assert db.rows("SELECT * FROM default.t") == [(1, None), (2, "s!")]
    db.run("UPDATE default.t SET b = DEFAULT, a = DEFAULT WHERE a = 2")
    assert db.rows("SELECT * FROM default.t") == [(1, None), (None, None)]


_EVOLVED = [
    # The source, what is set, the type that the column has then, and its value: as in Delta Spark
    # 4.4. The source's column of the same path decides, whatever the value is.
    ("named_struct('y', 2, 'x', 3) AS c", "c = s.c", "struct<y:int,x:int>", {"y": 2, "x": 3}),
    ("named_struct('x', 3) AS c", "c = s.c", "struct<y:int,x:int>", {"y": None, "x": 3}),
    (
        "named_struct('y', 2, 'x', 3) AS c",
        "c = named_struct('y', s.c.x, 'x', 9)",
        "struct<y:int,x:int>",
        {"y": 3, "x": 9},
    ),
    (
        "map('k', named_struct('a', 2, 'b', 3)) AS m",
        "m = s.m",
        "map<string,struct<a:int,b:int>>",
        [("k", {"a": 2, "b": 3})],
    ),
    (
        "array(named_struct('a', 2, 'b', 3)) AS l",
        "l = s.l",
        "array<struct<a:int,b:int>>",
        [{"a": 2, "b": 3}],
    ),
    (
        "named_struct('p', named_struct('q', 2, 'r', 3)) AS d",
        "d = s.d",
        "struct<p:struct<q:int,r:int>>",
        {"p": {"q": 2, "r": 3}},
    ),
    (
        "named_struct('p', named_struct('q', 2, 'r', 3), 'o', 4) AS d",
        "d.p = s.d.p",
        "struct<p:struct<q:int,r:int>>",
        {"p": {"q": 2, "r": 3}},
    ),
    ("named_struct('y', 2, 'x', 3) AS c", "*", "struct<y:int,x:int>", {"y": 2, "x": 3}),
]


@pytest.fixture
def nested(db: SqlTables) -> SqlTables:
    """A table with structs in every kind of type."""
    db.create(
        "t",
        "(id INT, c STRUCT<y: INT>, m MAP<STRING, STRUCT<a: INT>>, l ARRAY<STRUCT<a: INT>>, "
        "d STRUCT<p: STRUCT<q: INT>>)",
    )
    db.run(
        "INSERT INTO t VALUES (1, named_struct('y', 1), map('k', named_struct('a', 1)), "
        "array(named_struct('a', 1)), named_struct('p', named_struct('q', 1)))"
    )
    return db


def _type_of(db: SqlTables, column: str) -> str:
    found = db.run("DESCRIBE t").to_pylist()
    return next(str(row["data_type"]) for row in found if row["col_name"] == column)


@pytest.mark.parametrize(("source", "sets", "data_type", "value"), _EVOLVED)
def test_a_column_that_is_set_gains_the_fields_of_the_source(
    nested: SqlTables, source: str, sets: str, data_type: str, value: object
) -> None:
    column = source[-1]
    merge = f"INTO t USING (SELECT 1 AS id, {source}) s ON t.id = s.id"  # of this test
    if sets != "*":
        with pytest.raises(DeltaError):
            nested.run(f"MERGE {merge} WHEN MATCHED THEN UPDATE SET {sets}")
    nested.run(f"MERGE WITH SCHEMA EVOLUTION {merge} WHEN MATCHED THEN UPDATE SET {sets}")
    assert _type_of(nested, column) == data_type
    assert nested.values(f"SELECT {column} FROM t") == [value]


@pytest.mark.parametrize(
    ("source", "clause"),
    [
        ("named_struct('y', 2, 'x', 3) AS c", "WHEN MATCHED AND false THEN UPDATE SET c = s.c"),
        (
            "named_struct('y', 2, 'x', 3) AS c",
            "WHEN NOT MATCHED THEN INSERT (id, c) VALUES (s.id, s.c)",
        ),
    ],
)
def test_a_clause_evolves_whether_or_not_it_changes_a_row(
    nested: SqlTables, source: str, clause: str
) -> None:
    merge = f"USING (SELECT 2 AS id, {source}) s ON t.id = s.id {clause}"
    nested.run(f"MERGE WITH SCHEMA EVOLUTION INTO t {merge}")
    assert _type_of(nested, "c") == "struct<y:int,x:int>"


@pytest.mark.parametrize(
    ("source", "sets", "problem"),
    [
        ("named_struct('y', 2, 'x', 3) AS other", "c = s.other", "'c.x'"),
        ("named_struct('q', 2, 'z', 3) AS p", "d.p = s.p", "'d.p.z'"),
        ("7 AS w", "d.p.z = s.w", "'d.p.z'"),
        ("7 AS w", "c.y = s.w, nothing = s.w", "'nothing'"),
    ],
)
def test_only_a_column_of_the_same_path_gives_fields(
    nested: SqlTables, source: str, sets: str, problem: str
) -> None:
    merge = f"USING (SELECT 1 AS id, {source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET {sets}"
    with pytest.raises(DeltaError, match=problem):
        nested.run(f"MERGE WITH SCHEMA EVOLUTION INTO t {merge}")


def test_a_source_of_another_type_does_not_hinder_a_value_that_fits(nested: SqlTables) -> None:
    nested.run(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS id, 5 AS c) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET c = named_struct('y', s.c)"
    )
    assert nested.values("SELECT c FROM t") == [{"y": 5}]
