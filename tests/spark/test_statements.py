# ruff: noqa: S608  # locations of tables are in the statements
"""SQL statements on a cluster: those about Delta tables are done by deltalog, others by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deltalog import DeltaTable
from deltalog.errors import CommitConflictError, InvalidInputError, SchemaMismatchError
from deltalog.query.names import QualifiedName
from deltalog.spark import read, sql
from deltalog.spark.cluster_session import ClusterSession
from deltalog.statements import parse_statement
from tests.spark.test_settings import setting

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_PROPERTIES = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"


@pytest.fixture
def name(spark: SparkSession, tmp_path: Path) -> str:
    """A table of three rows, by its location."""
    found = f"delta.`{tmp_path / 't'}`"
    sql(spark, f"CREATE TABLE {found} (id BIGINT, v STRING) USING DELTA {_PROPERTIES}")
    sql(spark, f"INSERT INTO {found} VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    return found


def rows(spark: SparkSession, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in sql(spark, statement, parameters).collect()]


def test_rows_are_inserted_and_selected(spark: SparkSession, name: str, tmp_path: Path) -> None:
    assert rows(spark, f"SELECT id, v FROM {name} WHERE id < 3 ORDER BY id") == [(1, "a"), (2, "b")]
    assert rows(spark, f"INSERT INTO {name} (id) SELECT id + 10 FROM {name}") == [(3, 3)]
    ids: list[Any] = DeltaTable(tmp_path / "t").to_pyarrow_table()["id"].to_pylist()
    assert sorted(ids) == [
        1, 2, 3, 11, 12, 13,
    ]  # fmt: skip


@pytest.mark.parametrize("parameters", [[2], (2,)])
def test_parameters_are_bound(spark: SparkSession, name: str, parameters: Any) -> None:
    assert rows(spark, f"SELECT v FROM {name} WHERE id = ?", parameters) == [("b",)]
    assert rows(spark, f"SELECT v FROM {name} WHERE v = :v", {"v": "b' OR '1' = '1"}) == []
    assert rows(spark, f"DELETE FROM {name} WHERE id = ?", parameters) == [(1,)]


def test_rows_change(spark: SparkSession, name: str) -> None:
    inner = f"SELECT id FROM {name} WHERE v = 'a'"
    assert rows(spark, f"UPDATE {name} SET v = 'u' WHERE id IN ({inner})") == [(1,)]
    merge = (
        f"MERGE INTO {name} AS t USING (SELECT 2 AS id, 'm' AS v UNION ALL SELECT 9, 'n') s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.v = s.v "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
    )
    assert rows(spark, merge) == [(2, 1, 0, 1)]
    assert rows(spark, f"DELETE FROM {name} WHERE v IS NULL") == [(1,)]
    expected = [(1, "u"), (2, "m"), (9, "n")]
    assert rows(spark, f"SELECT * FROM {name} ORDER BY id") == expected


def test_older_versions_are_read(spark: SparkSession, name: str) -> None:
    sql(spark, f"DELETE FROM {name}")
    assert rows(spark, f"SELECT count(*) FROM {name}") == [(0,)]
    assert rows(spark, f"SELECT count(*) FROM {name} VERSION AS OF 1") == [(3,)]
    assert rows(spark, f"SELECT count(*) AS n FROM {name}@v0") == [(0,)]


def test_a_name_is_that_of_a_view(spark: SparkSession, tmp_path: Path) -> None:
    where = f"LOCATION '{tmp_path / 'named'}'"
    sql(spark, f"CREATE TABLE statements_named (id INT) USING DELTA {where}")
    try:
        sql(spark, "INSERT INTO statements_named VALUES (1)")
        assert rows(spark, "SELECT * FROM statements_named") == [(1,)]
        (commit,) = rows(spark, "DESCRIBE HISTORY statements_named LIMIT 1")
        assert commit[0] == 1
    finally:
        sql(spark, "DROP TABLE statements_named")


def test_tables_are_joined_with_those_of_spark(spark: SparkSession, name: str) -> None:
    spark.range(2, 5).createOrReplaceTempView("statements_other")
    query = f"SELECT o.id, t.v FROM statements_other o LEFT JOIN {name} t USING (id) ORDER BY 1"
    assert rows(spark, query) == [(2, "b"), (3, None), (4, None)]
    braces = f"SELECT '{{x}}' AS b FROM {name} LIMIT 1"
    assert rows(spark, braces) == [("{x}",)]


def test_upkeep_answers_as_here(spark: SparkSession, name: str, tmp_path: Path) -> None:
    sql(spark, f"INSERT INTO {name} VALUES (4, 'd')")
    ((path, metrics),) = rows(spark, f"OPTIMIZE {name}")
    assert (path, metrics["numFilesAdded"]) == (str(tmp_path / "t"), 1)
    sql(spark, f"RESTORE TABLE {name} TO VERSION AS OF 1")
    assert DeltaTable(tmp_path / "t").count() == 3
    sql(spark, f"ALTER TABLE {name} ADD COLUMN extra INT")
    assert DeltaTable(tmp_path / "t").schema().names == ("id", "v", "extra")


def test_other_statements_go_to_spark(spark: SparkSession) -> None:
    assert rows(spark, "SELECT 1 AS one") == [(1,)]
    sql(spark, "SET spark.sql.shuffle.partitions=2")
    with pytest.raises(InvalidInputError, match="expected SELECT"):
        sql(spark, "FETCH ME IF YOU CAN")


def test_rows_that_do_not_fit_are_refused(spark: SparkSession, name: str) -> None:
    with pytest.raises(SchemaMismatchError, match="expected 2 columns"):
        sql(spark, f"INSERT INTO {name} VALUES (1)")
    with pytest.raises(SchemaMismatchError, match="no column 'w'"):
        sql(spark, f"INSERT INTO {name} BY NAME SELECT 1 AS id, 2 AS w")


def told(table: DeltaTable) -> str:
    table.update_incremental()
    found = table.to_pyarrow_table().sort_by("id").to_pylist()
    return " ".join(f"{row['id']}{row['v']}" for row in found)


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("INSERT INTO {name} SELECT id + 10, v FROM {name}", "1a 2b 11a 12b"),
        ("UPDATE {name} SET v = 'x' WHERE id = (SELECT max(id) FROM {name})", "1a 2x"),
        ("DELETE FROM {name} WHERE id IN (SELECT id FROM {name} WHERE v = 'a')", "2b"),
        (
            (
                "MERGE INTO {name} t USING (SELECT id FROM {name}) s ON t.id = s.id + 1 "
                "WHEN MATCHED THEN DELETE"
            ),
            "1a",
        ),
    ],
)
def test_a_statement_that_reads_what_it_changes_keeps_to_one_version(
    spark: SparkSession, name: str, tmp_path: Path, statement: str, left: str
) -> None:
    session = ClusterSession(spark, None)
    found = parse_statement(statement.format(name=name))
    table = DeltaTable(tmp_path / "t")
    session.open(QualifiedName(("delta", str(tmp_path / "t"))))
    table.delete("id = 3")  # by another writer, after the statement has seen the table
    with setting(spark, {"spark.deltalog.maxRetries": "0"}), pytest.raises(CommitConflictError):
        found.run(session)
    assert told(table) == "1a 2b"
    session.begin()
    session.open(QualifiedName(("delta", str(tmp_path / "t"))))
    table.update({"v": "'a'"}, predicate="id = 1")
    found.run(session)
    assert told(table) == left


def test_the_version_that_a_statement_names_stays(spark: SparkSession, name: str) -> None:
    sql(spark, f"DELETE FROM {name}")
    assert rows(spark, f"INSERT INTO {name} SELECT * FROM {name}@v1 WHERE id = 1") == [(1, 1)]
    assert rows(spark, f"SELECT id FROM {name}") == [(1,)]


def test_a_branch_is_another_table_than_main(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    draft = f"{name[:-1]}@n`"
    sql(spark, f"CREATE BRANCH n FOR TABLE {name}")
    assert rows(spark, f"DELETE FROM {draft} WHERE id = 1") == [(1,)]
    assert rows(spark, f"INSERT INTO {draft} SELECT id + 10, v FROM {name} WHERE id = 1") == [
        (1, 1)
    ]
    both = f"SELECT m.id FROM {name} m LEFT JOIN {draft} d ON m.id = d.id WHERE d.id IS NULL"
    assert rows(spark, both) == [(1,)]
    read(spark, f"{tmp_path / 't'}@n").createOrReplaceTempView("branch_of_t")
    assert rows(spark, "SELECT count(*) FROM branch_of_t WHERE id > 1") == [(3,)]
    inner = f"SELECT id FROM {name} WHERE v = 'b'"
    assert rows(spark, f"UPDATE {draft} SET v = 'u' WHERE id IN ({inner})") == [(1,)]
    assert rows(spark, f"SELECT id, v FROM {name} ORDER BY id") == [(1, "a"), (2, "b"), (3, None)]
    sql(spark, f"PUBLISH BRANCH n FOR TABLE {name} CHECK (id > 1)")
    found = [(2, "u"), (3, None), (11, "a")]
    assert rows(spark, f"SELECT id, v FROM {name} ORDER BY id") == found
