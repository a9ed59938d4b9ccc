"""Results: rows in all forms, and how they are shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, QueryBuilder, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.query.results import SqlResult
from tests.support.sql_tables import SqlTables


def test_rows_come_in_all_forms() -> None:
    sql = "SELECT 1 AS a, 'x' AS b"
    assert deltalog.sql(sql).to_arrow().to_pylist() == [{"a": 1, "b": "x"}]
    assert deltalog.sql(sql).to_pandas().to_dict("records") == [{"a": 1, "b": "x"}]
    assert deltalog.sql(sql).to_polars().to_dicts() == [{"a": 1, "b": "x"}]
    assert deltalog.sql(sql).to_pylist() == [{"a": 1, "b": "x"}]
    assert pa.table(deltalog.sql(sql)).num_rows == 1
    assert sum(batch.num_rows for batch in deltalog.sql(sql)) == 1
    assert deltalog.sql(sql).schema.names == ["a", "b"]


def test_rows_are_taken_once() -> None:
    result = deltalog.sql("SELECT 1 AS a")
    result.to_arrow()
    with pytest.raises(InvalidInputError, match="they were already read"):
        result.to_arrow()
    assert "rows already read" in repr(result)
    assert "rows already read" in result._repr_html_()


def test_showing_loses_no_rows() -> None:
    result = deltalog.sql("SELECT id FROM range(100000)")
    text = repr(result)
    assert text.startswith("id\n--\n0\n")
    assert text.endswith("…")
    assert text.count("\n") == 22
    assert "the first 20 rows" in result._repr_html_()
    assert result.to_arrow().num_rows == 100_000


def test_values_that_python_does_not_have_are_shown_and_refused() -> None:
    late = pa.table({"id": [1], "d": pa.array([4_000_000], pa.int32()).cast(pa.date32())})
    sql = "SELECT * FROM late"
    assert "12921-08-18" in repr(deltalog.sql(sql, late=late))
    assert "12921-08-18" in deltalog.sql(sql, late=late)._repr_html_()
    assert deltalog.sql(sql, late=late).to_arrow() == late
    with pytest.raises(InvalidInputError, match="values of column 'd' to Python"):
        deltalog.sql(sql, late=late).to_pylist()
    with deltalog.connect({"late": late}) as connection, connection.cursor() as cursor:
        with pytest.raises(InvalidInputError, match="values of column 'd' to Python"):
            cursor.execute(sql).fetchall()
        assert cursor.execute("SELECT id FROM late").fetchall() == [(1,)]


def test_columns_of_the_same_name_are_shown() -> None:
    assert repr(deltalog.sql("SELECT 1 AS a, 2 AS a")).splitlines()[-1] == "1  2"


@pytest.mark.parametrize(
    "condition", ["d = (SELECT max(d) FROM late)", "d IN (SELECT d FROM late)"]
)
def test_a_query_of_a_condition_gives_values_that_python_does_not_have(
    db: SqlTables, condition: str
) -> None:
    late = pa.table({"d": pa.array([4_000_000], pa.int32()).cast(pa.date32())})
    db.create("t", "(d DATE)")
    db.run("INSERT INTO t VALUES (DATE'2024-01-01'), (DATE'+12921-08-18')")
    db.connection.register("late", late)
    assert db.run(f"DELETE FROM t WHERE {condition}").num_affected_rows == 1
    assert db.values("SELECT CAST(d AS STRING) FROM t") == ["2024-01-01"]


def test_a_change_shows_what_it_did(db: SqlTables) -> None:
    db.create("t", "(id INT)")
    result = db.run("INSERT INTO t VALUES (1)")
    told = repr(result).splitlines()
    assert told[0] == "INSERT: 1 row written"
    assert re.fullmatch(r"files: 1, output rows: 1, output size: [\d.]+ (bytes|KiB).*", told[1])
    assert "<strong>INSERT: 1 row written</strong><details><summary " in result._repr_html_()
    assert result.to_arrow().column_names == ["num_affected_rows", "num_inserted_rows"]
    assert repr(db.run("ALTER TABLE t ADD COLUMN x INT")) == "done"
    assert db.run("ALTER TABLE t ADD COLUMN y INT")._repr_html_().count("done") == 1


def test_hostile_texts_are_only_shown() -> None:
    script = "<script>alert('x')</script>&\"\n"
    result = deltalog.sql("SELECT ? AS `<b>`, NULL AS n", [script])
    html = result._repr_html_()
    assert "<script" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html
    assert "NULL" in html
    taken = deltalog.sql("SELECT '<script>' AS x")
    taken.to_arrow()
    assert "<script" not in taken._repr_html_()


def test_long_values_are_cut() -> None:
    text = repr(deltalog.sql("SELECT repeat('x', 10000) AS long"))
    assert len(text) < 800
    assert "…" in text


def test_columns_may_share_a_name() -> None:
    assert repr(deltalog.sql("SELECT 1 AS a, 2 AS a")).splitlines()[2].split() == ["1", "2"]


def test_no_rows_are_shown_as_none() -> None:
    assert repr(deltalog.sql("SELECT 1 AS a WHERE false")) == "a\n-"


def by_function(table: DeltaTable) -> SqlResult:
    return deltalog.sql("SELECT id FROM t", t=table)


def by_method(table: DeltaTable) -> SqlResult:
    return table.sql("SELECT id FROM this")


def by_engine(table: DeltaTable) -> SqlResult:
    return table.sql("SELECT id + 0L AS id FROM this")


def by_builder(table: DeltaTable) -> SqlResult:
    return QueryBuilder().register("t", table).execute("SELECT id FROM t")


@pytest.fixture(params=[by_function, by_method, by_engine, by_builder])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], SqlResult]:
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1, 2, 3]}))
    table = DeltaTable(str(tmp_path / "t"))
    return lambda: request.param(table)


def test_each_query_has_the_same_result(run: Callable[[], SqlResult], tmp_path: Path) -> None:
    rows = [{"id": 1}, {"id": 2}, {"id": 3}]
    assert run().to_pandas().to_dict("records") == rows
    assert str(run().to_pandas("pyarrow")["id"].dtype) == "int64[pyarrow]"
    assert run().to_polars().to_dicts() == rows
    assert run().to_duckdb().fetchall() == [(1,), (2,), (3,)]
    assert run().to_arrow() == run().to_table() == pa.table({"id": [1, 2, 3]})
    assert run().to_pylist() == rows
    assert "<table>" in run()._repr_html_()
    write_deltalake(str(tmp_path / "other"), run())
    other = DeltaTable(str(tmp_path / "other"))
    merged = other.merge(run(), "s.id = t.id", "s", "t").when_matched_delete().execute()
    assert merged["num_target_rows_deleted"] == 3
    assert deltalog.sql("SELECT * FROM r", r=run()).to_pylist() == rows


def test_each_result_is_read_as_a_reader_of_arrow(run: Callable[[], SqlResult]) -> None:
    assert run().read_all().num_rows == 3
    assert len(run().read_pandas()) == 3
    assert pa.RecordBatchReader.from_stream(run()).read_all().num_rows == 3
    assert pa.Table.from_batches(run()).num_rows == 3
    assert pl.DataFrame(run()).shape == (3, 1)
    assert duckdb.from_arrow(run()).fetchall() == [(1,), (2,), (3,)]
    narrow = pa.schema({"id": pa.int32()})
    assert run().cast(narrow).read_all().schema == narrow
    with run() as result:
        assert result.read_next_batch().num_rows == 3
        with pytest.raises(StopIteration):
            result.read_next_batch()
    with pytest.raises(InvalidInputError, match="they were already read"):
        result.read_all()


def test_a_stream_goes_on_after_some_batches() -> None:
    rows = pa.table({"id": range(100)}).to_batches(max_chunksize=30)
    result = SqlResult(pa.Table.from_batches(rows), "SELECT …")
    assert next(iter(result)).num_rows == 30
    assert repr(result).startswith("id\n--\n30\n")
    assert result.read_next_batch().num_rows == 30
    assert result.read_all()["id"].to_pylist() == list(range(60, 100))
    closed = deltalog.sql("SELECT id FROM range(100000)")
    closed.close()
    closed.close()
    with pytest.raises(InvalidInputError, match="they were already read"):
        closed.read_next_batch()


def test_an_error_of_the_query_keeps_its_type(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"name": ["1", "x"]}))
    table = DeltaTable(str(tmp_path / "t"))
    result = table.sql("SELECT * FROM this WHERE CAST(name AS INT) = 1")
    with pytest.raises(InvalidInputError, match="cannot cast 'x'"):
        write_deltalake(str(tmp_path / "other"), result)


def test_rows_are_printed_without_reading_them(capsys: pytest.CaptureFixture[str]) -> None:
    result = deltalog.sql("SELECT id FROM range(3)")
    result.show(1)
    assert capsys.readouterr().out == "id\n--\n0\n…\n"
    result.show()
    assert capsys.readouterr().out == "id\n--\n0\n1\n2\n"
    assert result.to_arrow().num_rows == 3
    with pytest.raises(InvalidInputError, match="a number of rows, found -1"):
        result.show(-1)
