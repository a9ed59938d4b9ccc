"""INSERT in all forms: columns, partitions, defaults, computed columns, and how values are cast."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    SchemaMismatchError,
)
from tests.support.sql_tables import SqlTables

_DEFAULTS = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"


@pytest.fixture
def parted(db: SqlTables) -> SqlTables:
    """A table `t` of three columns, the last one its partition."""
    db.create(
        "t", f"(id INT, name STRING DEFAULT 'none', p STRING) -- PARTITIONED BY (p) {_DEFAULTS}"
    )
    db.run("INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y')")
    return db


def test_columns_go_by_their_place(parted: SqlTables) -> None:
    found = parted.run("INSERT INTO t SELECT 3, 'c', 'z'")
    assert (found.num_affected_rows, found.to_pylist()) == (
        1,
        [{"num_affected_rows": 1, "num_inserted_rows": 1}],
    )
    assert parted.rows("SELECT * FROM t WHERE id = 3") == [(3, "c", "z")]


def test_columns_go_by_a_list(parted: SqlTables) -> None:
    parted.run("INSERT INTO t (P, ID) VALUES ('z', 3)")
    assert parted.rows("SELECT * FROM t WHERE id = 3") == [(3, "none", "z")]


def test_columns_go_by_name(parted: SqlTables) -> None:
    parted.run("INSERT INTO t BY NAME SELECT 'z' AS P, 3 AS id")
    assert parted.rows("SELECT * FROM t WHERE id = 3") == [(3, "none", "z")]


def test_columns_that_are_left_out_have_their_defaults(parted: SqlTables) -> None:
    parted.run("INSERT INTO t (id) VALUES (3)")
    parted.run("INSERT INTO t BY NAME SELECT 4 AS id")
    assert parted.rows("SELECT * FROM t WHERE id > 2") == [(3, "none", None), (4, "none", None)]


def test_default_is_a_value(parted: SqlTables) -> None:
    parted.run("INSERT INTO t VALUES (3, DEFAULT, 'z'), (DEFAULT, 'DEFAULT', ?)", ["w"])
    assert parted.rows("SELECT * FROM t WHERE p IN ('z', 'w')") == [
        (3, "none", "z"),
        (None, "DEFAULT", "w"),
    ]


def test_default_may_be_an_expression_of_the_moment(db: SqlTables) -> None:
    db.create("t", f"(id INT, day DATE DEFAULT current_date()) -- {_DEFAULTS}")
    db.run("INSERT INTO t VALUES (1, DEFAULT), (2, date'2020-01-01')")
    (old, new) = db.values("SELECT day FROM t ORDER BY day")
    assert (old, type(new)) == (date(2020, 1, 1), date)
    assert new > date(2025, 1, 1)


@pytest.mark.parametrize(
    ("sql", "left"),
    [
        ("INSERT OVERWRITE t VALUES (3, 'c', 'x')", [(3, "c", "x")]),
        ("INSERT OVERWRITE t PARTITION (p = 'x') VALUES (3, 'c')", [(2, "b", "y"), (3, "c", "x")]),
        ("INSERT OVERWRITE t PARTITION (p) VALUES (3, 'c', 'x')", [(3, "c", "x")]),
        ("INSERT OVERWRITE t (name, id, p) VALUES ('c', 3, 'x')", [(3, "c", "x")]),
        ("INSERT OVERWRITE t SELECT * FROM t WHERE id = 2", [(2, "b", "y")]),
        ("INSERT INTO t REPLACE WHERE p = 'x' VALUES (3, 'c', 'x')",
         [(2, "b", "y"), (3, "c", "x")]),
        ("INSERT INTO t REPLACE WHERE p = 'x' SELECT id + 2, name, 'x' FROM t WHERE p = 'x'",
         [(2, "b", "y"), (3, "a", "x")]),
        ("INSERT INTO t REPLACE WHERE id IN (SELECT max(id) FROM t) TABLE t", None),
        ("INSERT INTO t REPLACE WHERE t.id = 1 OR id = 2 (SELECT 3, 'c', 'x')", [(3, "c", "x")]),
    ],
)  # fmt: skip
def test_rows_are_replaced(parted: SqlTables, sql: str, left: list[tuple[Any, ...]] | None) -> None:
    if left is None:  # a row that does not match the condition must not come in
        with pytest.raises(ConstraintViolationError):
            parted.run(sql)
    elif "(SELECT 3" in sql:  # brackets after a value would be a call: Spark needs none here
        with pytest.raises(InvalidInputError):
            parted.run(sql)
    else:
        parted.run(sql)
        assert parted.rows("SELECT * FROM t") == sorted(left, key=repr)


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("INSERT INTO t PARTITION (p = 'z') VALUES (3, 'c')", (3, "c", "z")),
        ("INSERT INTO t PARTITION (P = 'z') (name, id) VALUES ('c', 3)", (3, "c", "z")),
        ("INSERT INTO t PARTITION (p = NULL) VALUES (3, 'c')", (3, "c", None)),
        ("INSERT INTO t PARTITION (p = 5) VALUES (3, 'c')", (3, "c", "5")),
        ("INSERT INTO t PARTITION (p) VALUES (3, 'c', 'z')", (3, "c", "z")),
    ],
)
def test_partitions_are_constant_or_columns(
    parted: SqlTables, sql: str, row: tuple[Any, ...]
) -> None:
    parted.run(sql)
    assert parted.rows("SELECT * FROM t WHERE id = 3") == [row]


@pytest.mark.parametrize(
    ("sql", "error", "problem"),
    [
        ("INSERT INTO t VALUES (1)", SchemaMismatchError, r"expected 3 columns \(id, name, p\)"),
        ("INSERT INTO t VALUES (1, 'a', 'b', 2)", SchemaMismatchError, "found 4"),
        ("INSERT INTO t VALUES (DEFAULT, 'b')", SchemaMismatchError, "expected 3 columns"),
        ("INSERT INTO t (id, q) VALUES (1, 2)", SchemaMismatchError, "it has no column 'q'"),
        ("INSERT INTO t BY NAME SELECT 1 AS q", SchemaMismatchError, "it has no column 'q'"),
        ("INSERT INTO t PARTITION (id = 1) VALUES ('a', 'b')", DeltaError, "id"),
        ("INSERT INTO t PARTITION (q = 1) VALUES (1, 'a', 'b')", DeltaError, "q"),
    ],
)
def test_columns_that_do_not_fit_are_refused(
    parted: SqlTables, sql: str, error: type[DeltaError], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        parted.run(sql)
    assert parted.history("t") == ["WRITE", "CREATE TABLE"]


def test_new_columns_come_with_schema_evolution(parted: SqlTables) -> None:
    parted.run("INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 3 AS id, 'z' AS p, 1.5 AS extra")
    assert parted.rows("SELECT id, extra FROM t") == [(1, None), (2, None), (3, Decimal("1.5"))]


def test_identity_columns_are_computed(db: SqlTables) -> None:
    db.create("t", "(id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5), v STRING)")
    db.run("INSERT INTO t (v) VALUES ('a')")
    db.run("INSERT INTO t VALUES (DEFAULT, 'b')")
    assert db.rows("SELECT * FROM t") == [(5, "a"), (6, "b")]
    with pytest.raises(InvalidInputError, match="always generated"):
        db.run("INSERT INTO t VALUES (7, 'c')")


@pytest.mark.parametrize(
    ("sql", "advice"),
    [
        ("INTO t VALUES (40, 'a', 7)", r"always generated.*INSERT INTO t \(id, v\)"),
        ("INTO t VALUES (40, 'a')", r"computes 'n': write INSERT INTO t \(id, v\)"),
        ("INTO t REPLACE WHERE id = 40 SELECT 40, 'a'", r"write INSERT INTO t \(id, v\)"),
        ("INTO t VALUES (40)", r"found 1 \(col1\); name the columns"),
    ],
)
def test_identity_columns_are_left_out_by_a_list(db: SqlTables, sql: str, advice: str) -> None:
    db.create("t", "(id INT, v STRING, n BIGINT GENERATED ALWAYS AS IDENTITY)")
    with pytest.raises(DeltaError, match=advice):
        db.run(f"INSERT {sql}")
    db.run("INSERT INTO t (id, v) REPLACE WHERE id = 40 SELECT 40, 'a'")
    assert db.rows("SELECT id, v FROM t") == [(40, "a")]


def test_identity_columns_by_default_take_values(db: SqlTables) -> None:
    db.create("t", "(id BIGINT GENERATED BY DEFAULT AS IDENTITY, v STRING)")
    db.run("INSERT INTO t VALUES (70, 'a')")
    db.run("INSERT INTO t VALUES (DEFAULT, 'b')")
    assert (70, "a") in db.rows("SELECT * FROM t")
    with pytest.raises(InvalidInputError, match="give it DEFAULT in every row, or in none"):
        db.run("INSERT INTO t VALUES (DEFAULT, 'b'), (80, 'c')")


def test_nanoseconds_inside_of_a_column_are_refused(db: SqlTables) -> None:
    db.create("t", "(id INT, s STRUCT<v: TIMESTAMP_NTZ>)")
    for nanos, stored in ((1704067200_123_456_789, 0), (1704067200_123_456_000, 1)):
        part = pa.array([nanos], pa.timestamp("ns"))
        rows = pa.table({"id": [1], "s": pa.StructArray.from_arrays([part], ["v"])})
        db.session.register("rows_of_pandas", rows)
        if stored:
            db.run("INSERT INTO t SELECT id, s FROM rows_of_pandas")
        else:
            with pytest.raises(SchemaMismatchError, match=r"'s\.v'.*would lose data"):
                db.run("INSERT INTO t SELECT id, s FROM rows_of_pandas")
        assert db.values("SELECT count(*) FROM t") == [stored]


@pytest.mark.parametrize("kind", ["INT", "BIGINT", "STRING", "DECIMAL(10, 0)", "DATE"])
@pytest.mark.parametrize("span", ["2' MONTH", "1-2' YEAR TO MONTH", "3' DAY"])
def test_an_interval_is_no_number_of_months(db: SqlTables, kind: str, span: str) -> None:
    db.create("t", f"(id INT, v {kind})")
    with pytest.raises(InvalidInputError, match="cannot cast interval"):
        db.run(f"INSERT INTO t VALUES (1, INTERVAL '{span})")
    with pytest.raises(InvalidInputError, match="cannot cast interval"):
        db.run(f"INSERT INTO t (v) VALUES (NULL), (INTERVAL '{span})")
    assert db.rows("SELECT * FROM t") == []


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        ("TIMESTAMP_NTZ", datetime.fromisoformat("2024-01-01 00:00:00.123456")),
        ("TIMESTAMP", datetime(2024, 1, 1, 0, 0, 0, 123456, UTC)),
        ("DATE", date(2024, 1, 1)),
        ("STRING", "2024-01-01 00:00:00.123456"),
    ],
)
def test_nanoseconds_of_rows_are_cut_off(db: SqlTables, kind: str, stored: Any) -> None:
    db.create("t", f"(id INT, v {kind})")
    moments = pa.array([1704067200_123_456_789], pa.timestamp("ns"))
    rows = pa.table({"id": pa.array([1], pa.int32()), "v": moments})
    db.session.register("rows_of_pandas", rows)
    db.run("INSERT INTO t SELECT id, v FROM rows_of_pandas")
    assert db.rows("SELECT * FROM t") == [(1, stored)]


def test_generated_columns_are_computed_or_checked(db: SqlTables) -> None:
    db.create("t", "(id INT, twice INT GENERATED ALWAYS AS (id * 2))")
    db.run("INSERT INTO t (id) VALUES (1)")
    db.run("INSERT INTO t VALUES (2, DEFAULT)")
    db.run("INSERT INTO t VALUES (3, 6)")
    assert db.rows("SELECT * FROM t") == [(1, 2), (2, 4), (3, 6)]
    with pytest.raises(ConstraintViolationError, match="twice"):
        db.run("INSERT INTO t VALUES (4, 9)")


def test_a_table_that_computes_all_columns_needs_one(db: SqlTables) -> None:
    db.create("t", "(id BIGINT GENERATED ALWAYS AS IDENTITY)")
    with pytest.raises(InvalidInputError, match="it computes all columns"):
        db.run("INSERT INTO t VALUES (DEFAULT)")


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        ("INT", "'12'", 12),
        ("INT", "1.9", 1),
        ("INT", "CAST(7 AS BIGINT)", 7),
        ("INT", "true", 1),
        ("INT", "NULL", None),
        ("STRING", "5", "5"),
        ("STRING", "date'2020-01-02'", "2020-01-02"),
        ("STRING", "true", "true"),
        ("DATE", "'2020-01-02'", date(2020, 1, 2)),
        ("DATE", "timestamp'2020-01-02 10:00:00'", date(2020, 1, 2)),
        ("DECIMAL(5, 1)", "2.25", Decimal("2.3")),
        ("DOUBLE", "'1.5'", 1.5),
        ("STRUCT<a: INT>", "named_struct('a', 5)", {"a": 5}),
        ("ARRAY<BIGINT>", "array(1, 2)", [1, 2]),
    ],
)
def test_values_are_stored_as_ansi_casts_them(
    db: SqlTables, kind: str, value: str, stored: object
) -> None:
    db.create("t", f"(v {kind})")
    db.run(f"INSERT INTO t SELECT {value}")  # of this test
    assert db.values("SELECT v FROM t") == [stored]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("INT", "'abc'"),
        ("INT", "99999999999"),
        ("INT", "date'2020-01-01'"),
        ("TINYINT", "200"),
        ("DATE", "'x'"),
        ("DATE", "5"),
        ("DECIMAL(3, 1)", "500"),
        ("BOOLEAN", "'maybe'"),
        ("VARCHAR(2)", "'abc'"),
        ("STRUCT<a: INT>", "5"),
        ("ARRAY<INT>", "map('a', 1)"),
    ],
)
def test_values_that_ansi_refuses_are_refused(db: SqlTables, kind: str, value: str) -> None:
    db.create("t", f"(v {kind})")
    with pytest.raises(DeltaError):
        db.run(f"INSERT INTO t SELECT {value}")  # of this test
    assert db.values("SELECT v FROM t") == []
    assert db.history("t") == ["CREATE TABLE"]


def test_rules_of_the_table_hold(db: SqlTables) -> None:
    db.create("t", "(id INT NOT NULL, CONSTRAINT pos CHECK (id > 0))")
    for wrong in ("NULL", "-1"):
        with pytest.raises(ConstraintViolationError):
            db.run(f"INSERT INTO t VALUES ({wrong})")  # of this test


def test_a_table_is_inserted_into_itself(db: SqlTables) -> None:
    db.create("t", "AS SELECT * FROM range(3)")
    db.run("INSERT INTO t SELECT id + 3 FROM t")
    db.run("INSERT INTO t TABLE t")
    assert len(db.values("SELECT id FROM t")) == 12


def test_partition_columns_without_a_value_stay_in_their_place(db: SqlTables) -> None:
    # As Delta Spark does, unlike Hive.
    db.create("t", "(p STRING, v STRING, q STRING) -- PARTITIONED BY (p, q)")
    db.run("INSERT INTO t PARTITION (p, q) SELECT 'p', 'v', 'q'")
    db.run("INSERT INTO t PARTITION (q = 'fixed', p) SELECT 'p', 'v'")
    assert db.rows("SELECT p, v, q FROM t") == [("p", "v", "fixed"), ("p", "v", "q")]


def test_fields_of_structs_go_by_their_place(db: SqlTables) -> None:
    db.create("t", "(s STRUCT<x: BIGINT, y: STRING>, l ARRAY<STRUCT<z: DOUBLE>>)")
    db.run(
        "INSERT INTO t SELECT named_struct('other', 7, 'name', 9), array(named_struct('q', 1.5))"
    )
    assert db.rows("SELECT * FROM t") == [({"x": 7, "y": "9"}, [{"z": 1.5}])]


def test_structs_by_name_keep_the_order_of_the_table(db: SqlTables) -> None:
    db.create("t", "(s STRUCT<x: STRING, y: STRING>)")
    db.run("INSERT INTO t BY NAME SELECT named_struct('x', 'a', 'y', 'b') AS s")
    with pytest.raises(InvalidInputError, match="use the table's order"):
        db.run("INSERT INTO t BY NAME SELECT named_struct('y', 'b', 'x', 'a') AS s")
    assert db.rows("SELECT s.x, s.y FROM t") == [("a", "b")]


_S = "WITH s AS (SELECT 3 AS id, 'c' AS name, 'z' AS p)"


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        (f"{_S} INSERT INTO t SELECT * FROM s", [(1, "a"), (2, "b"), (3, "c")]),
        (f"{_S} INSERT OVERWRITE t SELECT * FROM s", [(3, "c")]),
        (f"{_S} INSERT INTO t (p, id) SELECT p, id FROM s", [(1, "a"), (2, "b"), (3, "none")]),
        (f"{_S} INSERT INTO t BY NAME SELECT p, id FROM s", [(1, "a"), (2, "b"), (3, "none")]),
        (f"{_S} INSERT INTO t REPLACE WHERE p = 'z' SELECT * FROM s", None),
        (f"{_S}, u AS (SELECT id + 1 AS i, p FROM s) INSERT INTO t SELECT i, 'u', p FROM u", None),
        ("WITH t(a, b, c) AS (SELECT 3, 'c', 'z') INSERT INTO t SELECT * FROM t", None),
        (f"{_S} INSERT INTO t WITH s AS (SELECT 9) SELECT 3, 'c', 'z' FROM s", None),
        (f"{_S} INSERT INTO t (SELECT * FROM s)", None),
        (f"{_S} INSERT INTO t SELECT * FROM s UNION ALL SELECT 4, 'd', 'z'", None),
        (
            (
                "WITH RECURSIVE r AS (SELECT 3 AS id UNION ALL SELECT id + 1 FROM r WHERE id < 5) "
                "INSERT INTO t SELECT id, 'r', 'z' FROM r"
            ),
            [(1, "a"), (2, "b"), (3, "r"), (4, "r"), (5, "r")],
        ),
        (f"{_S} UPDATE t SET name = 'u' WHERE id < (SELECT id FROM s) - 1", [(1, "u"), (2, "b")]),
        (f"{_S} DELETE FROM t WHERE id + 2 IN (SELECT id FROM s)", [(2, "b")]),
        (f"{_S} MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *", None),
        (
            (
                f"{_S} MERGE INTO t USING s AS x ON t.id = x.id - 1 "
                "WHEN MATCHED THEN UPDATE SET name = x.name"
            ),
            [(1, "a"), (2, "c")],
        ),
        (
            (
                f"{_S} MERGE INTO t USING (SELECT * FROM s) x ON t.id = x.id "
                "WHEN NOT MATCHED THEN INSERT *"
            ),
            None,
        ),
        (
            (
                "WITH t AS (SELECT 3 AS id, 'c' AS name, 'z' AS p) MERGE INTO t USING t AS x "
                "ON t.id = x.id WHEN NOT MATCHED THEN INSERT *"
            ),
            None,
        ),
    ],
)
def test_queries_of_with_are_known_to_a_change(
    parted: SqlTables, statement: str, rows: list[tuple[int, str]] | None
) -> None:
    parted.run(statement)
    found = parted.rows("SELECT id, name FROM t")
    assert found == rows or (rows is None and len(found) > 2 and found[:2] == [(1, "a"), (2, "b")])


def test_values_of_parameters_stand_in_with(parted: SqlTables) -> None:
    parted.run("WITH s AS (SELECT ? AS id) INSERT INTO t SELECT id, ?, 'z' FROM s", [3, "c"])
    parted.run("WITH s AS (SELECT :a AS id) DELETE FROM t WHERE id IN (SELECT id FROM s)", {"a": 1})
    assert parted.rows("SELECT id, name FROM t") == [(2, "b"), (3, "c")]
    # Positions are those of the statement.
    with pytest.raises(DeltaError, match=r"character 19: .*nothing"):
        parted.run("WITH s AS (SELECT nothing(1)) INSERT INTO t SELECT 4, 'a', 'x' FROM s")


@pytest.fixture
def pair(db: SqlTables) -> SqlTables:
    """Two tables with the same columns, the first with two rows."""
    for name in ("t", "u"):
        db.create(name, "(id INT, v STRING)")
    db.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return db


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("FROM t INSERT INTO u SELECT id, v", [(1, "a"), (2, "b")]),
        ("FROM t AS x INSERT INTO u SELECT x.id + 1, x.v WHERE x.id = 2", [(3, "b")]),
        ("FROM (SELECT 5 AS id, 'e' AS v) x INSERT INTO u SELECT id, v", [(5, "e")]),
        ("FROM (SELECT 5 AS id, 'e' AS v) x INSERT INTO TABLE u BY NAME SELECT v, id", [(5, "e")]),
        ("FROM t INSERT INTO u (v, id) SELECT v, id LIMIT 0", []),
        ("FROM t INSERT OVERWRITE u SELECT max(id), v GROUP BY v HAVING v > 'a'", [(2, "b")]),
        ("FROM t, (SELECT 7 AS k) y INSERT INTO u SELECT k, v ORDER BY v LIMIT 1", [(7, "a")]),
        ("FROM t JOIN t AS z ON t.id = z.id INSERT INTO u SELECT t.id, z.v", [(1, "a"), (2, "b")]),
        ("FROM VALUES (9, 'w') AS x(id, v) INSERT INTO u SELECT *", [(9, "w")]),
        ("WITH s AS (SELECT 4 AS id) FROM s INSERT INTO u SELECT id, 'q'", [(4, "q")]),
        ("FROM t INSERT INTO u REPLACE WHERE id = 1 SELECT id, v WHERE id = 1", [(1, "a")]),
    ],
)
def test_a_relation_stands_before_insert(
    pair: SqlTables, statement: str, rows: list[tuple[int, str]]
) -> None:
    assert pair.run(statement).num_affected_rows == len(rows)
    assert pair.rows("SELECT * FROM u") == rows


def test_several_inserts_read_the_tables_as_they_were(pair: SqlTables) -> None:
    found = pair.run(
        "FROM t INSERT INTO t SELECT id + 10, v WHERE id = 1 "
        "INSERT INTO u SELECT id, v INSERT INTO t SELECT id + 20, v"
    )
    assert found.num_affected_rows == 5
    assert pair.values("SELECT id FROM t") == [1, 11, 2, 21, 22]
    assert pair.values("SELECT id FROM u") == [1, 2]


@pytest.mark.parametrize(
    ("insert", "names", "row"),
    [
        ("INTO t SELECT 3, 'c', 'z', 7 AS more", ["more"], (3, "c", "z", 7)),
        ("INTO t SELECT 3 AS x, 'c' AS y, 'z' AS w, 7 AS a, 8 AS b", ["a", "b"], (3, "c", "z", 7)),
        ("INTO t VALUES (3, 'c', 'z', 7)", ["col4"], (3, "c", "z", 7)),
        ("OVERWRITE t SELECT 3, 'c', 'z', 7 AS more", ["more"], (3, "c", "z", 7)),
        ("INTO t PARTITION (p = 'z') SELECT 3, 'c', 7 AS more", ["more"], (3, "c", "z", 7)),
        ("INTO t REPLACE WHERE p = 'z' SELECT 3, 'c', 'z', 7 AS m", ["m"], (3, "c", "z", 7)),
        ("INTO t BY NAME SELECT 7 AS more, 3 AS id, 'z' AS p", ["more"], (3, "none", "z", 7)),
    ],
)
def test_columns_behind_those_of_the_table_are_added(
    parted: SqlTables, insert: str, names: list[str], row: tuple[Any, ...]
) -> None:
    parted.run(f"INSERT WITH SCHEMA EVOLUTION {insert}")
    assert list(parted.table("t").schema().names) == ["id", "name", "p", *names]
    shown = f"SELECT id, name, p, {names[0]} FROM t WHERE id = 3"  # of this test
    assert parted.rows(shown) == [row]


@pytest.mark.parametrize(
    ("insert", "problem"),
    [
        ("INTO t SELECT 3, 'c'", "expected 3 columns"),
        ("INTO t SELECT 3, 'c', 'z', 7 AS Name", "extra column 'Name' has the name of"),
        ("INTO t SELECT 3, 'c', 'z', 7 AS a, 8 AS A", "extra column 'A'"),
        ("INTO t (id, p) SELECT 3, 'z', 7 AS more", "expected 2 columns"),
        ("INTO t (id, p, more) SELECT 3, 'z', 7", "no column 'more'"),
    ],
)
def test_columns_that_cannot_be_added_are_refused(
    parted: SqlTables, insert: str, problem: str
) -> None:
    with pytest.raises(SchemaMismatchError, match=problem):
        parted.run(f"INSERT WITH SCHEMA EVOLUTION {insert}")


def test_fields_behind_those_of_the_table_are_added(db: SqlTables) -> None:
    db.create("t", "(id INT, s STRUCT<a: INT, in: ARRAY<STRUCT<b: INT>>>)")
    insert = "INSERT WITH SCHEMA EVOLUTION INTO t"
    inner = "array(named_struct('x', 2, 'new', 3))"
    db.run(f"{insert} SELECT 1, named_struct('y', 1, 'z', {inner}, 'c', 4)")
    db.run(f"{insert} (id, s) SELECT 2, named_struct('a', 1, 'in', {inner}, 'c', 4, 'd', 5)")
    inside = [{"b": 2, "new": 3}]
    assert db.values("SELECT s FROM t ORDER BY id") == [
        {"a": 1, "in": inside, "c": 4, "d": 5},
        {"a": 1, "in": inside, "c": 4, "d": None},
    ]
    with pytest.raises(SchemaMismatchError, match="field 'A' has the name of a field of 's'"):
        db.run(f"{insert} SELECT 1, named_struct('y', 1, 'z', {inner}, 'c', 4, 'd', 5, 'A', 4)")


def test_fields_are_added_by_their_names(db: SqlTables) -> None:
    kinds = (
        "s STRUCT<a: INT, in: STRUCT<b: INT>>, r ARRAY<STRUCT<a: INT>>, m MAP<INT, STRUCT<a: INT>>"
    )
    db.create("t", f"(id INT, {kinds})")
    two = "named_struct('new', 3, 'a', 2)"
    s = "named_struct('c', 4, 'in', named_struct('d', 5, 'b', 6), 'a', 1)"
    rows = f"{s} AS s, array({two}) AS r, map(1, {two}) AS m, 1 AS id"
    db.run(f"INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT {rows}, 7 AS more")
    new = {"a": 2, "new": 3}
    s_row = {"a": 1, "in": {"b": 6, "d": 5}, "c": 4}
    assert db.rows("SELECT * FROM t") == [(1, s_row, [new], [(1, new)], 7)]
