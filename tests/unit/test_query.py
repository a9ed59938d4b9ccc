"""`QueryBuilder`: SQL over tables, by DuckDB."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, QueryBuilder, Schema, write_deltalake
from deltalog.errors import InvalidInputError
from tests.support.logs import DictStore
from tests.support.raw_tables import DataTable


@pytest.fixture
def table() -> DeltaTable:
    """Columns `id` and `seen`; one of three rows is deleted."""
    made = DataTable([("id", "long"), ("seen", "timestamp")], features=["deletionVectors"])
    at = pa.array([0, 1, 2], pa.timestamp("us", "UTC"))
    vector = made.vector(1)
    made.commit(made.add({"id": [1, 2, 3], "seen": at}, deletionVector=vector))
    return DeltaTable(made.store)


def test_a_query_gives_rows(table: DeltaTable) -> None:
    query = QueryBuilder().register("one", table).register("two", table)
    found = query.execute("select id, two.id as other from one join two using (id) order by id")
    assert found.read_all().to_pydict() == {"id": [1, 3], "other": [1, 3]}


def test_moments_are_in_utc(table: DeltaTable) -> None:
    found = QueryBuilder().register("t", table).execute("select seen from t")
    assert found.schema.field("seen").type == pa.timestamp("us", "UTC")


def test_a_query_sees_the_version_that_was_registered(table: DeltaTable) -> None:
    query = QueryBuilder().register("t", table)
    table.load_as_version(0)
    assert query.execute("select id from t").read_all().num_rows == 2
    query.register("t", table)
    assert query.execute("select id from t").read_all().num_rows == 0


def test_results_are_independent(table: DeltaTable) -> None:
    query = QueryBuilder().register("t", table)
    first, second = query.execute("select id from t"), query.execute("select 2 * id as x from t")
    assert second.read_all()["x"].to_pylist() == [2, 6]
    assert first.read_all()["id"].to_pylist() == [1, 3]


def test_a_result_outlives_its_builder(table: DeltaTable) -> None:
    found = QueryBuilder().register("t", table).execute("select count(*) as n from t")
    assert found.read_all().to_pydict() == {"n": [2]}


def test_names_in_a_query_may_need_quotes(table: DeltaTable) -> None:
    found = QueryBuilder().register("my table", table).execute('select id from "my table"')
    assert found.read_all().num_rows == 2


def test_settings_are_duckdbs(table: DeltaTable) -> None:
    query = QueryBuilder({"threads": "1"}).register("t", table)
    found = query.execute("select current_setting('threads') as n")
    assert found.read_all().to_pydict() == {"n": [1]}


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("selec 1", "syntax error"),
        ("select * from missing", "missing"),
        ("select nothing from t", "nothing"),
        ("select cast('a' as int)", "Could not convert"),
        ("select * from dataset", "dataset"),  # a variable in reach is no table
    ],
)
def test_a_refused_statement_is_named(table: DeltaTable, sql: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as error:
        QueryBuilder().register("t", table).execute(sql)
    assert str(error.value).startswith(f"cannot run {sql!r}: ")


def test_a_setting_that_is_none_is_named_without_its_value() -> None:
    with pytest.raises(InvalidInputError, match=r"cannot start DuckDB with .*colour") as error:
        QueryBuilder({"colour": "hush"})
    assert "hush" not in str(error.value)


def test_without_duckdb_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InvalidInputError, match=r"pip install 'deltalog\[duckdb\]'"):
        QueryBuilder()


@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb"])
def test_without_a_library_its_extra_is_named(
    table: DeltaTable, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InvalidInputError, match=rf"pip install 'deltalog\[{library}\]'"):
        getattr(table, f"to_{library}")()


@pytest.mark.parametrize(
    ("query", "nullable"),
    [
        ("select * from t", [False, True]),
        ("select note, x.ID as key from t as x where id > 1 order by id limit 1", [True, False]),
        ("select id, id + 1 as next from t", [False, True]),
        ("select * exclude (note) from t", [True]),
        ("select id from t group by id", [True]),
        ("select t.id from t left join t as other on false", [True]),
        ("select id from t union all select null", [True]),
        ("with t as (select null as id) select id from t", [True]),
        ("select id from (select null as id) as t", [True]),
        ("select count(*) as id from t", [True]),
    ],
)
def test_results_keep_not_null_where_they_are_columns(query: str, nullable: list[bool]) -> None:
    schema = Schema([Field("id", "long", nullable=False), Field("note", "string")])
    table = DeltaTable.create(DictStore(), schema)
    write_deltalake(table, [{"id": 1, "note": None}, {"id": 2, "note": "b"}], mode="append")
    reader = QueryBuilder().register("t", table).execute(query)
    assert [field.nullable for field in reader.schema] == nullable
    assert reader.read_all().schema == reader.schema
