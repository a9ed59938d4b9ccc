"""The PEP 249 connection, `connect` and `sql`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deltalog
from deltalog import statements
from deltalog.errors import DeltaError, InvalidInputError, TableNotFoundError
from deltalog.statements import Connection, connect
from tests.support.sql_tables import SqlTables

ROWS: dict[str, list[Any]] = {"id": [1, 2, 3], "v": ["a", "b", "c"]}


def test_the_module_says_what_it_is() -> None:
    assert (statements.apilevel, statements.threadsafety, statements.paramstyle) == (
        "2.0",
        1,
        "qmark",
    )


@pytest.mark.parametrize(
    "name",
    ["Warning", "Error", "InterfaceError", "DatabaseError", "DataError", "OperationalError",
     "IntegrityError", "InternalError", "ProgrammingError", "NotSupportedError"],
)  # fmt: skip
def test_errors_are_there(name: str) -> None:
    found = getattr(statements, name)
    assert issubclass(found, Exception)
    assert getattr(Connection, name) is found
    if name not in {"Warning", "Error"}:
        assert issubclass(found, statements.Error)


def test_every_error_of_a_statement_is_an_error_of_the_module() -> None:
    connection = connect()
    for sql in ("SELEC", "SELECT * FROM missing", "SELECT 1 / 0"):
        with pytest.raises(statements.Error):
            connection.execute(sql).fetchall()


def test_rows_are_fetched() -> None:
    cursor = connect({"t": pa.table(ROWS)}).cursor()
    assert cursor.description is None
    assert cursor.execute("SELECT * FROM t ORDER BY id") is cursor
    assert cursor.rowcount == -1
    assert cursor.fetchone() == (1, "a")
    assert cursor.fetchmany() == [(2, "b")]
    assert cursor.fetchmany(5) == [(3, "c")]
    assert (cursor.fetchone(), cursor.fetchmany(2), cursor.fetchall()) == (None, [], [])
    cursor.execute("SELECT id FROM t")
    cursor.arraysize = 2
    assert len(cursor.fetchmany()) == 2
    assert len(cursor.fetchall()) == 1
    assert sorted(cursor.execute("SELECT id FROM t")) == [(1,), (2,), (3,)]


def test_columns_are_described() -> None:
    cursor = connect().execute(
        "SELECT 1 AS n, 'x' AS s, date'2025-01-01' AS d, 1.5 AS m, true AS b, X'00' AS r"
    )
    assert cursor.description is not None
    assert [len(column) for column in cursor.description] == [7] * 6
    kinds = {column[0]: column[1] for column in cursor.description}
    assert kinds["n"] == statements.NUMBER == kinds["m"]
    assert kinds["s"] == statements.STRING != kinds["n"]
    assert kinds["d"] == statements.DATETIME
    assert kinds["r"] == statements.BINARY != statements.STRING
    assert kinds["n"] == pa.int32()


def test_rows_come_as_arrow_data() -> None:
    connection = connect({"t": pa.table(ROWS)})
    assert connection.execute("SELECT * FROM t").fetch_arrow_table().num_rows == 3
    reader = connection.execute("SELECT * FROM t").fetch_record_batch()
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.read_all().num_rows == 3


def test_changes_are_counted(db: SqlTables) -> None:
    db.create("t", "(id INT)")
    cursor = db.connection.cursor()
    assert cursor.execute("INSERT INTO t VALUES (1), (2)").rowcount == 2
    assert cursor.executemany("INSERT INTO t VALUES (?)", [(3,), [4], (5,)]).rowcount == 3
    assert cursor.execute("UPDATE t SET id = id WHERE id > 3").rowcount == 2
    assert cursor.execute("DELETE FROM t WHERE id = 1").rowcount == 1
    assert cursor.execute("ALTER TABLE t ADD COLUMN x INT").rowcount == -1
    assert cursor.executemany("DELETE FROM t WHERE id = :id", [{"id": 2}, {"id": 9}]).rowcount == 1
    assert cursor.executemany("DELETE FROM t WHERE id = ?", []).rowcount == 0


def test_a_statement_without_rows_has_none_to_fetch(db: SqlTables) -> None:
    db.create("t", "(id INT)")
    cursor = db.connection.execute("ALTER TABLE t ADD COLUMN x INT")
    assert cursor.description is None
    for fetch in (cursor.fetchone, cursor.fetchall, cursor.fetch_arrow_table, cursor.nextset):
        with pytest.raises(statements.Error, match="cannot fetch rows"):
            fetch()
    with pytest.raises(statements.Error, match="no statement was executed"):
        db.connection.cursor().fetchone()


def test_a_failed_statement_leaves_no_old_rows() -> None:
    cursor = connect().execute("SELECT 1")
    with pytest.raises(statements.Error):
        cursor.execute("SELEC")
    with pytest.raises(statements.Error, match="no statement was executed"):
        cursor.fetchall()


def test_one_statement_has_one_set_of_rows() -> None:
    cursor = connect().execute("SELECT 1")
    cursor.nextset()
    assert cursor.fetchall() == []
    cursor.setinputsizes([1])
    cursor.setoutputsize(1)
    assert cursor.lastrowid is None


def test_what_is_closed_is_refused() -> None:
    with connect() as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        for call in (cursor.fetchone, lambda: cursor.execute("SELECT 1")):
            with pytest.raises(statements.Error, match="the cursor: it is closed"):
                call()
        cursor = connection.cursor()
    connection.close()
    refused: list[Callable[[], object]] = [
        connection.cursor,
        connection.commit,
        connection.rollback,
        lambda: connection.sql("SELECT 1"),
        lambda: cursor.execute("SELECT 1"),
        lambda: connection.register("t", pa.table(ROWS)),
    ]
    for again in refused:
        with pytest.raises(statements.Error, match="the connection is closed"):
            again()


def test_each_statement_is_committed() -> None:
    connection = connect()
    connection.commit()
    with pytest.raises(statements.NotSupportedError, match="RESTORE TABLE restores"):
        connection.rollback()


def test_values_are_made() -> None:
    assert statements.Date(2025, 1, 2) == date(2025, 1, 2)
    assert statements.Time(1, 2, 3).minute == 2
    assert statements.Timestamp(2025, 1, 2, 3, 4, 5).hour == 3
    assert statements.Binary(b"x") == b"x"
    moment = datetime(2025, 1, 2, 3, 4, 5).timestamp()  # noqa: DTZ001  # the local moment
    assert statements.DateFromTicks(moment) == date(2025, 1, 2)
    assert statements.TimeFromTicks(moment).second == 5
    assert statements.TimestampFromTicks(moment).minute == 4
    assert repr(statements.ROWID) == "ROWID"
    assert len({statements.STRING, statements.NUMBER}) == 2


@pytest.mark.parametrize(
    "value",
    [None, True, 5, 2**40, 1.5, "it's; -- `x` ?:y", b"\x00x", date(2025, 1, 2),
     datetime(2025, 1, 2, 3, tzinfo=UTC), Decimal("1.50"), "\\", '"', "\0", "é✓"],
)  # fmt: skip
def test_parameters_are_bound_and_come_back(db: SqlTables, value: object) -> None:
    assert db.values("SELECT ? AS v", [value]) == [value]
    assert db.values("SELECT :v AS v", {"v": value}) == [value]
    if isinstance(value, str):
        db.create("t", "(id INT, v STRING)")
        db.run("INSERT INTO t VALUES (1, ?), (2, 'other')", [value])
        db.run("UPDATE t SET v = :a WHERE v = :b", {"a": f"{value}!", "b": value})
        assert db.values("SELECT id FROM t WHERE v = ?", [f"{value}!"]) == [1]
        db.run("MERGE INTO t USING (SELECT ? AS v) s ON t.v = s.v WHEN MATCHED THEN DELETE",
               [f"{value}!"])  # fmt: skip
        assert db.values("SELECT id FROM t") == [2]
        db.run("DELETE FROM t WHERE v IN (SELECT ?)", [value])
        assert db.values("SELECT id FROM t") == [2]


@pytest.mark.parametrize("value", [object(), {1}, 2**200])
def test_values_that_nothing_can_hold_are_refused(value: object) -> None:
    with pytest.raises(InvalidInputError):
        deltalog.sql("SELECT ?", [value]).to_arrow()


@pytest.mark.parametrize(
    "rows",
    [
        pa.table(ROWS),
        pa.record_batch(ROWS),
        pd.DataFrame(ROWS),
        pl.DataFrame(ROWS),
        [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 3, "v": "c"}],
    ],
    ids=lambda rows: type(rows).__module__,
)
def test_rows_of_any_kind_are_a_table(rows: Any) -> None:
    found = deltalog.sql("SELECT sum(id) AS n, max(v) AS v FROM T", t=rows)
    assert found.to_pylist() == [{"n": 6, "v": "c"}]


def test_a_stream_is_read_once() -> None:
    connection = connect({"t": pa.table(ROWS).to_reader()})
    assert connection.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 3}]
    with pytest.raises(InvalidInputError, match="cannot read t again: it is a stream"):
        connection.sql("SELECT * FROM t")


def test_rows_of_another_kind_are_not_changed() -> None:
    with pytest.raises(InvalidInputError, match="registered as other rows"):
        deltalog.sql("DELETE FROM t", t=pa.table(ROWS))


def test_names_of_the_caller_are_no_tables() -> None:
    secret = pa.table(ROWS)
    assert secret.num_rows
    with pytest.raises(TableNotFoundError, match="cannot find the table secret"):
        deltalog.sql("SELECT * FROM secret")


def test_names_have_parts_and_ignore_case() -> None:
    connection = connect(
        {"Cat.Sch.T": pa.table(ROWS), "`a.b`": pa.table(ROWS), "c d": pa.table(ROWS)}
    )
    for name in ("cat.sch.t", "CAT.`sch`.T", "`a.b`", "`C D`"):
        assert connection.sql(f"SELECT count(*) AS n FROM {name}").to_pylist() == [{"n": 3}]
    with pytest.raises(InvalidInputError, match="expected the name of a table"):
        connection.register("a..b", pa.table(ROWS))


def test_scripts_are_checked_before_they_run(db: SqlTables) -> None:
    found = db.connection.execute_script(
        f"CREATE TABLE t LOCATION '{db.root}/t' AS SELECT 1 AS id; -- ; not here\n"
        "INSERT INTO t VALUES (2); SELECT ';' AS s, count(*) AS n FROM t;"
    )
    assert found[-1].to_pylist() == [{"s": ";", "n": 2}]
    with pytest.raises(InvalidInputError, match="SELEC"):
        db.connection.execute_script("INSERT INTO t VALUES (3); SELEC 1")
    assert db.values("SELECT id FROM t") == [1, 2]


def test_each_thread_may_have_its_connection(db: SqlTables) -> None:
    db.create("t", "(id INT)")
    location = db.table("t").table_uri
    failures: list[BaseException] = []

    def insert(value: int) -> None:
        try:
            connect({"t": location}).sql("INSERT INTO t VALUES (?)", [value])
        except DeltaError as error:
            failures.append(error)

    threads = [threading.Thread(target=insert, args=(value,)) for value in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert db.values("SELECT id FROM t") == list(range(8))


def test_a_statement_sees_one_version_of_a_table(db: SqlTables) -> None:
    db.create("t", "AS SELECT 1 AS id")
    other = connect({"t": db.table("t").table_uri})
    result = db.run("SELECT * FROM t a JOIN t b ON true")
    other.sql("INSERT INTO t VALUES (2)")
    assert result.to_arrow().num_rows == 1
    assert db.values("SELECT id FROM t") == [1, 2]


def test_a_table_that_was_opened_at_a_version_is_read_there(db: SqlTables) -> None:
    db.create("t", "AS SELECT 1 AS id")
    db.run("INSERT INTO t VALUES (2)")
    old = deltalog.DeltaTable(db.table("t").table_uri, version=0)
    travelled = deltalog.DeltaTable(db.table("t").table_uri)
    travelled.load_as_version(0)
    for table in (old, travelled):
        for session in (connect({"o": table}), connect()):
            session.register("o", table)
            assert session.sql("SELECT id FROM o").to_arrow()["id"].to_pylist() == [1]
            found = session.sql("SELECT id FROM o VERSION AS OF 1 ORDER BY id").to_arrow()
            assert found["id"].to_pylist() == [1, 2]
            with pytest.raises(InvalidInputError, match="was opened at this version"):
                session.sql("DELETE FROM o")
        assert table.version() == 0
