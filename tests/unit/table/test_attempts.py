"""Errors contain the operation, the table, the column and the value, and say what to write."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltalog
from deltalog import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    QueryBuilder,
    Transaction,
    connect,
    sql,
    write_deltalake,
)
from deltalog.catalogs import FileCatalog
from deltalog.errors import (
    AccessDeniedError,
    CatalogError,
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    SchemaMismatchError,
    TableNotFoundError,
)
from deltalog.storage.fsspec_store import FsspecStore
from deltalog.storage.options import warn_of_ineffective, warn_of_lock
from tests.support.facade import make, unchanged

ROWS: Any = {"id": [1, 2], "name": ["a", "b"], "amount": [1.5, 2.5], "tags": [["x"], []]}
ROWS["addr"] = [{"city": "Ulm", "zip": 1}] * 2
ON = "target.id = source.id"
SOURCE = pd.DataFrame({"id": [1], "name": ["x"]})
NEW = pd.DataFrame({"id": [9], "name": ["x"]})
LATE: Any = [{"id": 2, "amount": "late"}, {"id": 99, "amount": "x"}]


def _any(found: Any) -> Any:
    """The same object, for mypy without a class."""
    return found


@pytest.mark.parametrize(
    ("call", "operation", "value"),
    [
        (lambda t: t.update({"amount": "name"}), "UPDATE", "a"),
        (lambda t: t.update({"amount": "cast(name as double)"}), "UPDATE", "a"),
        (lambda t: t.update(new_values={"amount": "x"}), "UPDATE", "x"),
        (lambda t: sql("UPDATE t SET amount = name", t=t), "UPDATE", "a"),
        (
            lambda t: t.merge(SOURCE, ON).when_matched_update({"amount": "source.name"}).execute(),
            "MERGE",
            "x",
        ),
        (
            lambda t: t.merge(NEW, ON).when_not_matched_insert({"amount": "source.name"}).execute(),
            "MERGE",
            "x",
        ),
        (
            lambda t: sql(
                "MERGE INTO t USING (SELECT 1 AS id, 'x' AS v) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET amount = s.v",
                t=t,
            ),
            "MERGE",
            "x",
        ),
        (lambda t: sql("INSERT INTO t (id, amount) SELECT id, name FROM t", t=t), "WRITE", "a"),
        (lambda t: sql("INSERT INTO t (id, amount) VALUES (1, 'x')", t=t), "WRITE", "x"),
    ],
)
def test_a_cast_that_fails_has_its_column_and_value(
    call: Callable[[DeltaTable], object], operation: str, value: str
) -> None:
    table = make(ROWS)
    with pytest.raises(InvalidInputError) as caught, unchanged(table):
        call(table)
    text = str(caught.value)
    begin = f"cannot run {operation} on {table.table_uri}: cannot compute column 'amount': "
    assert text.startswith(f"{begin}cannot cast '{value}' to double")
    assert text.endswith("try_cast returns NULL instead")


@pytest.mark.parametrize(
    ("call", "row"),
    [
        (
            lambda t: t.update({"amount": "CAST(concat('x', id) AS DOUBLE)"}, predicate="id > 1"),
            "{'id': 2, 'name': 'b', 'amount': 2.5, 'tags': [], 'addr': {'city': 'Ulm', 'zip': 1}}",
        ),
        (
            lambda t: (
                t.merge(LATE, "source.id = target.id")
                .when_matched_update({"amount": "source.amount"})
                .execute()
            ),
            "{'amount': 'late'} of the source",
        ),
        (
            lambda t: (
                t.merge(LATE, "source.id = target.id").when_not_matched_insert_all().execute()
            ),
            "{'amount': 'x', 'id': 99} of the source",
        ),
        (
            lambda t: sql("INSERT INTO t (id, amount) VALUES (1, '2.5'), (2, 'x')", t=t),
            "(2, 'x')",
        ),
    ],
)
def test_a_cast_that_fails_has_its_row(call: Callable[[DeltaTable], object], row: str) -> None:
    table = make(ROWS)
    with pytest.raises(InvalidInputError) as caught, unchanged(table):
        call(table)
    assert f", in the row {row}; try_cast" in str(caught.value)


def test_a_generated_column_that_cannot_be_computed_is_named(tmp_path: Path) -> None:
    place = tmp_path / "g"
    sql(f"CREATE TABLE delta.`{place}` (a STRING, b INT GENERATED ALWAYS AS (CAST(a AS INT)))")
    with pytest.raises(InvalidInputError, match=r"cast 'x' to integer.* generated column 'b' of "):
        write_deltalake(place, [{"a": "x"}], mode="append")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.delete("id = 'x'"), "cannot run DELETE on {root}: cannot cast 'x' to long"),
        (lambda t: t.merge(SOURCE, ON).execute(), "cannot run MERGE on {root}: a merge needs"),
        (
            lambda t: t.alter.set_table_properties({"delta.appendOnly": "yes"}),
            "cannot run SET TBLPROPERTIES on {root}: table property delta.appendOnly: expected",
        ),
        (
            lambda t: write_deltalake(t, [{"id": 1, "new": 2}], mode="append"),
            "cannot write the data to {root}: the data has column(s) 'new'",
        ),
        (
            lambda t: t.update(new_values={"addr": {"town": "x"}}),
            "there is no field 'town'; the fields are 'city', 'zip'",
        ),
        (lambda t: t.delete({"id": 1}), "for equal values, write [('id', '=', 1)]"),
        (lambda t: t.to_pandas(filters={"id": 1}), "for equal values, write [('id', '=', 1)]"),
        (lambda t: t.delete(t.to_pandas().id == 1), "cannot use a Series as a condition"),
        (lambda t: t.to_pyarrow_dataset().to_table(filter=_any("id = 1")), "an expression of pyar"),
        (lambda t: DeltaTable(_any(t)), "the table is open: pass its table_uri"),
        (lambda _: DeltaTable(_any(SOURCE)), "write_deltalake(location, data) makes a table"),
        (lambda t: t.scan(predicate="not id"), "cannot scan {root}: id is of type long"),
        (lambda t: t.scan(predicate="id = 1;"), "cannot scan {root}: cannot read the SQL"),
        (lambda t: t.to_pandas(filters="id ="), "cannot read {root}: cannot read the SQL"),
        (lambda t: DeltaTable(t.table_uri, default_timezone="Mars"), "no time zone 'Mars'"),
        (lambda t: DeltaTable(t.table_uri, engine=_any("spark")), "deltalog.ray.RayEngine()"),
        (lambda _: write_deltalake("n", _any(pa.array([1]))), "it is one column, not a table"),
        (lambda _: CommitProperties(max_commit_retries=-1), "max_commit_retries: expected"),
        (
            lambda _: write_deltalake("n", {"a": [1], "b": [[1]]}, partition_by=["b"]),
            "expected a column of numbers, strings, dates or timestamps",
        ),
        (lambda t: sql("ALTER TABLE t RENAME TO u", t=t), "cannot rename t to u: it is a name"),
        (lambda _: bool(deltalog.col("id") == 1), "cannot use the expression id = 1 as"),
    ],
)
def test_the_error_says_what_was_attempted(
    call: Callable[[DeltaTable], object],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    table = make(ROWS)
    with pytest.raises(DeltaError) as caught, unchanged(table):
        call(table)
    assert message.replace("{root}", table.table_uri) in str(caught.value)


@pytest.mark.parametrize("options", [{"columns": ["nme"]}, {"filter": pc.field("nme") == 1}])
def test_unknown_columns_of_a_dataset_are_errors_of_pyarrow(options: dict[str, Any]) -> None:
    table = make(ROWS)
    message = f"cannot read {table.table_uri}: there is no column 'nme': did you mean 'name'?"
    with pytest.raises(pa.ArrowInvalid, match=re.escape(message)):
        table.to_pyarrow_dataset().to_table(**options)


def test_a_violated_constraint_has_its_table() -> None:
    table = make(ROWS)
    table.alter.add_constraint({"c": "id > 0"})
    message = f" {table.table_uri}: CHECK constraint 'c' (id > 0) is viol"
    for attempt, change in (
        ("run UPDATE on", lambda: table.update({"id": "-1"})),
        ("write the data to", lambda: write_deltalake(table, [{"id": -1}], mode="append")),
        (
            "run MERGE on",
            lambda: table.merge(SOURCE, ON).when_matched_update({"id": "-1"}).execute(),
        ),
    ):
        with pytest.raises(ConstraintViolationError) as caught, unchanged(table):
            change()
        assert str(caught.value).startswith(f"cannot {attempt}{message}")
        assert (caught.value.constraint, len(caught.value.examples)) == ("c", 1)


def test_the_class_of_an_error_and_its_notes_stay() -> None:
    error = SchemaMismatchError("cannot").with_note("one").with_message("must")
    assert (type(error), str(error)) == (SchemaMismatchError, "must")
    assert error.__notes__ == ["one"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select to_timestamp('2024','%Y')", "not of strftime: write 'yyyy'"),
        ("select to_date('2024-01-02','%Y-%m-%d')", "write 'yyyy-MM-dd'"),
        ("select date_format(date '2024-01-02', '%Y-%m')", "write 'yyyy-MM'"),
        ("select to_date('2024-01-02','YYYY-MM-DD')", "y for years and d for days: 'yyyy-MM-dd'"),
        ("select to_timestamp('2024','%q')", "write 'yyyy-MM-dd HH:mm:ss'"),
        ("select array_length(tags) from t", "in Spark's SQL, write size(array)"),
        ("select to_number(name) from t", "write CAST(value AS DECIMAL(18, 2))"),
        ("select parse_json(name) from t", "parse the strings in Python"),
        ("select generate_series(1, 3)", "write explode(sequence(1, 3))"),
        ("select percentile_cont(id) from t", "write percentile(value, 0.5)"),
        ("select current_user()", "pass it as a parameter"),
        ("select sum(distinct) from t", "expected a value after DISTINCT"),
        ("select name ~ 'a' from t", "write column RLIKE 'pattern'"),
        ("select safe_cast(name as int) from t", "write try_cast(value AS type)"),
        ("select tags.x from t", "there is no field 'x': tags is no struct"),
        ("select addr.town from t", "there is no field 'town'; the fields are 'city', 'zip'"),
        ("select * except (nme) from t", "there is no column 'nme', which the list after *"),
        ("select 2147483647 + 1", "2147483647 + 1 is out of the range of INT"),
        ("select date '2024-13-01'", "this is not a valid DATE"),
        ("summarize t", "write SELECT count(x)"),
        ("set x = 5", "connect(settings={…}) sets options of a session"),
        ("analyze table t compute statistics", "each write stores statistics"),
        ("refresh table t", "each query reads the newest version"),
        ("grant select on t to x", "the catalog or the store decides"),
        ("create or replace temp view v as select 1", "there are no views"),
        ("vacuum t retain 7 days", "write the hours, as in RETAIN 168 HOURS"),
        ("vacuum t retain 7 days dry run", "found days; write the hours, as in RETAIN 168 HOURS"),
        ("vacuum t dry", "write DRY RUN"),
        (
            "alter table t set tblproperties (delta.appendOnly = yes)",
            "expected a constant, found yes; write 'yes' if it is a string",
        ),
        ("optimize t where id = 1", "found id; the table has none: leave it out"),
        ("describe history t version as of 1", "only DESCRIBE HISTORY t LIMIT n limits"),
        (
            "alter table t alter column id set data type bigint",
            "expected NOT NULL or DEFAULT, found data; write TYPE in place of SET DATA TYPE",
        ),
        ("alter table t alter column id drop x", "expected NOT NULL or DEFAULT, found x"),
        ("insert into t (id) values (1) returning id", "no change returns rows"),
        (
            "merge into t using t s on t.id = s.id when not matched then insert values (1)",
            "write INSERT (columns) VALUES (…), or INSERT *",
        ),
        (
            "merge into t using t s on t.id = s.id when matched then update *",
            "write UPDATE SET *",
        ),
        ("select map('a')", "expected more arguments of a function"),
        ("select id::txt from t", "expected a type, such as STRING, INT, BIGINT"),
        ("drop view v", "there are no views"),
        ("clone t to c", "write CREATE TABLE copy SHALLOW CLONE t"),
        ("select * from tt", "did you mean t?"),
        ("select * from delta.`/nowhere/t`", "expected a Delta table, found none at /nowhere/t"),
    ],
)
def test_sql_of_other_dialects_is_answered_with_that_of_spark(query: str, message: str) -> None:
    with pytest.raises(DeltaError) as caught:
        sql(query, t=make(ROWS)).to_table()
    assert message in str(caught.value)


def test_an_advice_appears_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        sql("CREATE TABLE n (a INT PRIMARY KEY) LOCATION 'n'")
    assert str(caught.value).count("set_key_index") == 1


def test_a_string_with_the_name_of_a_column_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    table = make(ROWS)
    with caplog.at_level(logging.WARNING):
        found = sql('SELECT "name" AS a FROM t WHERE id = 1', t=table).to_table()
    assert found.to_pylist() == [{"a": "name"}]
    assert '"name" is a string, as in Spark; the column is `name`' in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        sql('SELECT id FROM t WHERE name = "a"', t=table).to_table()
    assert not caplog.text


def test_an_unknown_unit_of_time_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = sql("SELECT date_trunc('monht', timestamp '2024-01-31 01:00:00') AS a").to_table()
    assert found.to_pylist() == [{"a": None}]
    assert "'monht' is not a unit of time; did you mean 'month'?" in caplog.text


def test_parameters_are_shown_as_they_were_written() -> None:
    with pytest.raises(InvalidInputError, match=r"id = \(\?\)'"):
        connect({"t": make(ROWS)}).execute("select * from t where id = (?)", [[1, 2]]).fetchall()


# --- options of stores, and catalogs


def test_options_without_effect_on_local_files_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_ineffective.cache_clear()
    options = {"color": "x", "AWS_REGION": "y", "fsync": True, "allow_http": "true"}
    with caplog.at_level(logging.WARNING):
        write_deltalake(tmp_path / "t", {"a": [1]}, storage_options=options)
    assert [record.getMessage() for record in caplog.records] == [
        "storage option 'color' has no effect on file locations"
    ]
    with pytest.raises(InvalidInputError, match="'fsynk': did you mean 'fsync'"):
        DeltaTable(tmp_path / "t", storage_options={"fsynk": False})


def test_misspelt_options_of_other_stores_are_refused_for_local_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_ineffective.cache_clear()
    write_deltalake(tmp_path / "t", {"a": [1]})
    with pytest.raises(InvalidInputError, match="'AWS_REGIO': did you mean 'AWS_REGION'"):
        DeltaTable(tmp_path / "t", storage_options={"AWS_REGIO": "x"})
    options = {"AWS_S3_LOCKING_PROVIDER": "dynamodb", "AZURE_STORAGE_ACCOUNT_NAME": "x"}
    with caplog.at_level(logging.WARNING):
        DeltaTable(tmp_path / "t", storage_options={**options, "AWS_COLOR": "x"})
    assert [record.getMessage() for record in caplog.records] == [
        "storage option 'AWS_COLOR' has no effect on file locations"
    ]


def test_a_lock_is_reported_when_the_table_is_opened(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_lock.cache_clear()
    with pytest.raises(InvalidInputError, match="expected 'dynamodb', or no such option"):
        FsspecStore("s3://bucket/t", {"AWS_S3_LOCKING_PROVIDER": "dynamo"})
    with caplog.at_level(logging.WARNING):
        store = FsspecStore("s3://bucket/t", {"AWS_S3_LOCKING_PROVIDER": "dynamodb"})
    assert "tables can be read, but not written: the storage options request" in caplog.text
    with pytest.raises(DeltaError, match="let all writers use conditional puts"):
        store.put("part-0.parquet", b"")


def test_missing_credentials_say_where_they_are_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    options = {"s3_client": "s3fs"}
    with pytest.raises(AccessDeniedError, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        DeltaTable("s3://bucket/t", storage_options=options)


def test_a_file_in_the_place_of_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    with pytest.raises(DeltaError, match="f is a file, and a table is a directory"):
        write_deltalake(tmp_path / "f", pa.table({"a": [1]}))


@pytest.mark.parametrize("name", ["unity", "uc", "databricks", "aws_glue", "hive_metastore"])
def test_the_name_of_a_product_is_no_directory_of_tables(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError, match="as a catalog: expected uc://catalog"):
        connect(catalog=name)
    (tmp_path / name).mkdir()
    assert connect(catalog=name) is not None


def test_missing_schemas_and_tables_are_named_with_those_that_exist(tmp_path: Path) -> None:
    found = connect(catalog=str(tmp_path / "c"))
    found.execute("CREATE SCHEMA travel")
    found.execute("CREATE TABLE travel.trips (a INT)")
    for statement in ("SELECT * FROM travl.x", "INSERT INTO travl.x VALUES (1)"):
        with pytest.raises(
            TableNotFoundError,
            match=r"there is no schema travl; the schemas are 'travel', did you mean 'travel'\?",
        ):
            found.execute(statement)
    with pytest.raises(TableNotFoundError, match=r"the tables are 'trips', did you mean 'trips'\?"):
        found.execute("SELECT * FROM travel.trip")
    with pytest.raises(CatalogError, match="found travel"):
        found.execute("CREATE TABLE travl.x (a INT)")


# --- attributes and arguments


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.detail().nme, "this dictionary has no attribute 'nme': use ['name']"),
        (lambda t: t.protocol().features, "use reader_features and writer_features"),
        (lambda t: t.plot.files(), "use commits(), file_sizes()"),
        (
            lambda t: _any(connect({"t": t}).cursor()).fetch_df(),
            "use connection.sql(…).to_pandas()",
        ),
        (lambda t: _any(connect({"t": t})).executemany("x", []), "use cursor().executemany("),
        (lambda t: _any(connect({"t": t})).table("t"), "use sql('SELECT * FROM t')"),
        (
            lambda t: _any(t.follow()).read(),
            "Follower has no attribute 'read': use next(follower.available()",
        ),
        (lambda _: _any(CommitProperties)(metadata={}), "did you mean 'custom_metadata'?"),
        (lambda _: _any(deltalog.ColumnProperties)(dictionary=True), "'dictionary_enabled'?"),
        (lambda _: _any(deltalog.WriterProperties)(compress="x"), "did you mean 'compression'?"),
        (lambda t: t.delete(id=1), 'write a condition in SQL, as in predicate="id = …"'),
        (lambda t: t.vacuum(days=7), "did you mean 'retention_hours'?"),
        (lambda t: _any(DeltaTable).create("n", t.schema(), properties={}), "'configuration'?"),
        (lambda t: _any(DeltaTable).create("n", t.schema(), partitionBy="id"), "'partition_by'?"),
        (lambda _: _any(DeltaTable)("t", branch="b"), "use DeltaTable('location@branch')"),
        (lambda _: _any(DeltaTable).for_name("t"), "DeltaTable('uc://catalog.schema.table')"),
        (lambda _: _any(deltalog).IntegerType, "as in Field('id', 'long')"),
        (lambda _: _any(deltalog).merge, "use the method of DeltaTable(location)"),
    ],
)
def test_names_of_other_libraries_are_answered_with_those_of_deltalog(
    call: Callable[[Any], object], message: str
) -> None:
    table = make(ROWS)
    with pytest.raises((AttributeError, TypeError)) as caught:
        call(table)
    assert message in str(caught.value)


# --- what is meant by a call that is nearly right


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.delete("id > 1", limit=1), "use a condition that only these rows match"),
        (lambda t: t.update({"id": 1}, limit=1), "use a condition that only these rows match"),
        (lambda t: t.to_pandas(filters={}), "for all rows, leave it out"),
        (lambda t: t.delete(""), "a condition is an empty string: for all rows, leave it out"),
        (lambda t: t.scan(predicate=" "), "a condition is an empty string"),
        (lambda t: t.merge(t, "").execute(), "such as 'source.id = target.id'; write_deltalake"),
        (lambda t: t.merge(t, "true").when_matched_delete(""), "for all rows, leave it out"),
        (lambda t: t.count("id IN {1, 2}"), "in round brackets, as in id IN (1, 2)"),
        (lambda t: t.count("id = none"), "for a missing value, write IS NULL; a string has"),
        (lambda t: t.count("id = NaN"), "for NaN, write isnan(…)"),
        (
            lambda t: (
                t.merge(t, "source.id = target.id").when_matched_update({"id": "None"}).execute()
            ),
            "for a missing value, write IS NULL",
        ),
        (lambda t: t.count([("id", "is", None)]), "write ('id', '=', None)"),
        (lambda t: t.count([("id", "is not null", "")]), "write ('id', '!=', None)"),
        (lambda t: t.count([("name", "isin", ["a"])]), "write ('name', 'in', ['a'])"),
        (lambda t: t.count([("name", "like", "a%")]), "as in \"name LIKE 'a%'\""),
        (lambda t: t.count([("name", "contains", "a")]), "as in \"contains(name, 'a')\""),
        (lambda t: t.count([("id", "between", (1, 2))]), "as in 'id BETWEEN 1 AND 2'"),
        (lambda t: t.count([("name", "regex", "a.")]), "as in \"name RLIKE 'a.'\""),
        (lambda t: t.upsert(t, "id,name"), "a list of names, such as ['id', 'name']"),
        (lambda t: t.commit([]), "expected the results of write_files"),
        (
            lambda t: t.restore("nope"),
            "a version is a number, and a branch is part of the location",
        ),
        (lambda t: DeltaTable(t.table_uri, "append"), "mode='append') writes rows"),
        (lambda t: DeltaTable(t.table_uri, "r"), "a table is not opened with a mode"),
        (lambda t: DeltaTable(t.table_uri, "yesterday"), "is a day ago"),
        (
            lambda t: t.delete(commit_properties=Transaction("app", 1)),
            "write CommitProperties(app_transactions=[Transaction('app', 1)])",
        ),
        (
            lambda t: t.delete(commit_properties=PostCommitHookProperties()),
            "pass it as post_commithook_properties=…",
        ),
        (
            lambda t: t.delete(commit_properties="nightly"),
            "custom_metadata={'comment': 'nightly'})",
        ),
        (lambda t: t.count("id = 'January'"), "in id = 'January'; column id is long"),
        (lambda t: t.count("id IN (1, 'May')"), "; column id is long"),
        (
            lambda _: write_deltalake("memory://u64", {"h": pa.array([2**63 + 5], pa.uint64())}),
            "for a new table, cast the column to decimal(20,0) or to a string first",
        ),
        (
            lambda t: t.alter.add_constraint({"few": "id > 100"}),
            "; change or delete these rows first",
        ),
        (
            lambda t: t.alter.rename_column("id", "key"),
            "as in table.alter.set_table_properties({'delta.columnMapping.mode': 'name'})",
        ),
        (
            lambda t: (
                QueryBuilder().register("t", t).execute("SELECT arrow_typeof(id) FROM t").read_all()
            ),
            "no function 'arrow_typeof': the dialect is DuckDB's, not DataFusion's",
        ),
        (
            lambda _: DeltaTable.create("memory://c", schema={"id": int}),
            "cannot make a type of <class 'int'>: did you mean 'long'?",
        ),
        (lambda t: t.alter.add_feature("dv"), "did you mean 'deletionVectors'?"),
        (lambda t: t.alter.drop_feature("zzz"), "the features are adaptiveMetadata, allow"),
        (lambda t: t.alter.drop_constraint("nope"), "does not have it: it has no constraint"),
        (lambda t: t.alter.unset_table_properties(["nope"]), "does not have it: it has"),
        (
            lambda t: t.alter.set_table_properties({"delta.columnMapping.mode": "id"}),
            "to change to id, write the rows to a new table",
        ),
        (lambda t: t.alter.rename_column("id"), "write rename_column(column, new_name)"),
        (lambda t: t.delete(["id = 1", "id = 2"]), "SQL is one string, as in 'id = 1 AND id = 2'"),
        (lambda t: t.delete([1, 2]), "name their column: [('id', 'in', [1, 2])]"),
        (lambda t: t.delete(1), "a condition names columns, as in 'id = 1'"),
        (lambda t: t.delete("~(id > 1)"), "found boolean; write NOT"),
        (lambda t: t.update(name=5), "for a column, write updates={'name': 5}; the arguments"),
        (lambda t: t.truncate("id = 1"), "truncate deletes all rows; delete('id = 1') deletes"),
        (lambda _: FileCatalog(), "write FileCatalog(root)"),  # type: ignore[call-arg]
        (lambda _: write_deltalake("x"), "write write_deltalake(table_or_uri, data)"),  # type: ignore[call-arg]
        (lambda t: t.count("name ISNULL"), "write IS NULL"),
        (lambda t: t.count("name GLOB 'a*'"), "write LIKE, as in name LIKE 'a%'"),
        (lambda t: t.count("name SIMILAR TO 'a'"), "name RLIKE 'pattern'"),
        (lambda t: t.count("name =~ 'a'"), "a regular expression is name RLIKE 'a'"),
        (lambda t: t.to_pandas(columns=["id", 5]), "expected a list of names, not of positions"),
        (lambda t: len(t.follow().available()), "use len(list(steps))"),
    ],
)
def test_what_is_meant_is_said(call: Callable[[Any], object], message: str) -> None:
    table = make(ROWS)
    with unchanged(table), pytest.raises((TypeError, DeltaError)) as caught:
        call(table)
    assert message in str(caught.value)
