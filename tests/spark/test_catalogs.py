"""Tables of catalogs on Spark: opened by name, written by tasks, committed through the catalog."""

from __future__ import annotations

import contextlib
import io
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import deltalog.spark
from deltalog import DeltaTable as CoreTable
from deltalog import write_deltalake
from deltalog.catalogs import FileCatalog, GlueCatalog, NamedTable, UnityCatalog
from deltalog.errors import (
    CatalogAccessError,
    InvalidInputError,
    TableExistsError,
    TableNotFoundError,
)
from deltalog.spark import DeltaTable, sql
from deltalog.spark.session.names import CATALOGS
from deltalog.storage.http import HttpOptions, Retry
from tests.spark.conftest import LONG
from tests.support.lent_keys import Issuer
from tests.support.openapi import specification
from tests.support.unity_server import TOKEN, UnityServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.support.emulators import Emulator

QUICK = HttpOptions(retry=Retry(attempts=3, first_delay_ms=1))
ORDERS = ("main", "sales", "orders")
MARKS = ("LENTKEY", "was-lent", TOKEN)
"""What no text may show."""


@pytest.fixture
def issuer(s3: Emulator) -> Iterator[Issuer]:
    issuer = Issuer(s3)
    yield issuer
    issuer.close()


@pytest.fixture
def unity(s3: Emulator, issuer: Issuer) -> Iterator[UnityServer]:
    """A server whose tables are in S3, where only lent keys are used."""
    server = UnityServer(specification(), s3.url.replace(" ", "-"))
    server.lend = issuer.lend
    yield server
    server.close()
    assert server.violations == []


def place(s3: Emulator) -> dict[str, str]:
    """The options of the place, without keys."""
    return {name: text for name, text in s3.options.items() if "KEY" not in name}


def catalog_of(unity: UnityServer, s3: Emulator, **more: Any) -> UnityCatalog:
    options = {"storage_options": place(s3), "http_options": QUICK, "token": TOKEN}
    return UnityCatalog(unity.url, **{**options, **more})


@pytest.fixture
def named(spark: SparkSession, unity: UnityServer, s3: Emulator) -> Iterator[NamedTable]:
    """The name of a table, in a catalog that the session knows as `uc`."""
    catalog = catalog_of(unity, s3)
    deltalog.spark.register(spark, catalogs={"uc": catalog})
    yield NamedTable(catalog=catalog, name=ORDERS)
    spark.conf.unset(CATALOGS)


@pytest.fixture
def by_options(unity: UnityServer, s3: Emulator) -> dict[str, str]:
    """Options by which the format, whose processes know no session, finds the catalog."""
    given = {"databricks_host": unity.url, "databricks_token": TOKEN, **place(s3)}
    return {f"storage.{name}": text for name, text in given.items()}


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def latest(unity: UnityServer, *name: str) -> int:
    """The version that the server has ratified last."""
    main, sales, orders = name or ORDERS
    return unity.tables[main, sales, orders].latest


def test_a_table_is_made_written_and_changed_by_tasks(
    spark: SparkSession, named: NamedTable, unity: UnityServer, issuer: Issuer
) -> None:
    with pytest.raises(TableNotFoundError, match=r"main\.sales\.orders"):
        DeltaTable.forName(spark, "uc.main.sales.orders")
    assert not DeltaTable.isDeltaTable(spark, "uc.main.sales.orders")
    builder = DeltaTable.create(spark).tableName("uc.main.sales.orders")
    made = builder.addColumn("id", "BIGINT").addColumn("v", "STRING").clusterBy("id").execute()
    assert made.toDF().count() == 0
    with pytest.raises(TableExistsError):
        DeltaTable.create(spark).tableName("uc.main.sales.orders").addColumn("a", "INT").execute()
    issuer.seen.clear()
    frame = spark.range(6, numPartitions=2).selectExpr("id", "'a' AS v")
    assert deltalog.spark.write(frame, named, mode="append") == 1
    table = DeltaTable.forName(spark, "uc.main.sales.orders")
    assert rows(table.toDF()) == [(number, "a") for number in range(6)]
    table.delete("id = 0")
    table.update("id = 1", {"v": "'u'"})
    source = spark.range(5, 8).selectExpr("id", "'m' AS v")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    expected = [(1, "u"), (2, "a"), (3, "a"), (4, "a"), (5, "m"), (6, "m"), (7, "m")]
    assert rows(table.toDF()) == expected
    unity.allowed = ["DATA_REORGANIZATION"]
    table.optimize().executeCompaction()
    assert rows(deltalog.spark.read(spark, named)) == expected
    assert latest(unity) == 5
    assert [row.version for row in table.history().collect()] == [5, 4, 3, 2, 1, 0]
    found = rows(deltalog.spark.read(spark, named, version=1, where="id < 2"))
    assert found == [(0, "a"), (1, "a")]
    assert issuer.seen
    assert all(key.startswith("LENTKEY") for key in issuer.seen)


def test_statements_name_tables_of_a_catalog(
    spark: SparkSession, named: NamedTable, unity: UnityServer
) -> None:
    del named
    sql(spark, "CREATE TABLE uc.main.sales.orders (id BIGINT, v STRING) USING DELTA COMMENT 'all'")
    entry = unity.tables["main", "sales", "orders"]
    assert (entry.comment, entry.table_type) == ("all", "MANAGED")
    sql(spark, "INSERT INTO uc.main.sales.orders VALUES (1, 'a'), (2, 'b')")
    spark.createDataFrame([(2, "two")], "id BIGINT, w STRING").createOrReplaceTempView("words")
    joined = "SELECT o.id, w FROM uc.main.sales.orders o JOIN words USING (id)"
    assert rows(sql(spark, joined)) == [(2, "two")]
    assert rows(sql(spark, "SELECT count(*) FROM uc.main.sales.orders VERSION AS OF 0")) == [(0,)]
    merge = (
        "MERGE INTO uc.main.sales.orders AS t USING words s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.w"
    )
    assert rows(sql(spark, merge)) == [(1, 1, 0, 0)]
    sql(spark, "CREATE TABLE uc.main.sales.twos USING DELTA AS SELECT * FROM words")
    assert rows(sql(spark, "SHOW TABLES IN uc.main.sales LIKE 't*|o*'")) == [
        ("uc.main.sales", "orders", False),
        ("uc.main.sales", "twos", False),
    ]
    assert rows(sql(spark, "SHOW SCHEMAS IN uc.main")) == [("other",), ("sales",)]
    sql(spark, "USE uc.main.sales")
    assert rows(sql(spark, "SELECT * FROM orders")) == [(1, "a"), (2, "two")]
    assert rows(sql(spark, "SELECT * FROM words")) == [(2, "two")]  # a view comes before
    assert not DeltaTable.isDeltaTable(spark, "/no/such/place")  # a path is no shorter name
    sql(spark, "ALTER TABLE twos RENAME TO second")
    sql(spark, "DROP TABLE second")
    assert rows(sql(spark, "SHOW TABLES")) == [("uc.main.sales", "orders", False)]
    sql(spark, "ALTER TABLE orders SET TBLPROPERTIES ('team' = 'blue')")
    assert entry.properties["team"] == "blue"
    (detail,) = sql(spark, "DESCRIBE DETAIL orders").collect()
    assert detail.location.startswith(unity.warehouse)
    assert latest(unity) == 3
    sql(spark, "USE spark_catalog.default")
    assert sql(spark, "SHOW TABLES IN default").columns == ["namespace", "tableName", "isTemporary"]
    with pytest.raises(Exception, match="orders"):
        sql(spark, "SELECT * FROM orders").collect()
    spark.catalog.dropTempView("words")


def test_the_format_reads_and_writes_by_name(
    spark: SparkSession, unity: UnityServer, by_options: dict[str, str], issuer: Issuer
) -> None:
    deltalog.spark.register(spark)
    at = "uc://main.sales.orders"
    issuer.seen.clear()
    spark.range(5).write.format("deltalog").options(**by_options).mode("append").save(at)
    reader = spark.read.format("deltalog").options(**by_options)
    frame = reader.load(at).where("id > 2")
    assert rows(frame) == [(3,), (4,)]
    assert all(key.startswith("LENTKEY") for key in issuer.seen)
    _check_hidden(_plans(frame))
    if LONG:
        more = spark.range(5, 6).write.format("deltalog").options(**by_options)
        more.mode("append").save(at)
        assert len(rows(reader.load(at))) == 6
        assert len(rows(reader.load(f"{at}@v0"))) == 5
        assert latest(unity) == 1


def test_streams_read_and_write_by_name(
    spark: SparkSession,
    unity: UnityServer,
    s3: Emulator,
    by_options: dict[str, str],
    tmp_path: Path,
) -> None:
    deltalog.spark.register(spark)
    catalog = catalog_of(unity, s3)
    source = NamedTable(catalog=catalog, name=ORDERS)
    copies = NamedTable(catalog=catalog, name=("main", "sales", "copies"))
    expected: list[int] = []

    def run(*given: int) -> None:
        write_deltalake(source, pa.table({"id": list(given)}), mode="append")
        expected.extend(given)
        read = spark.readStream.format("deltalog").options(**by_options)
        write = read.load("uc://main.sales.orders").writeStream.format("deltalog")
        write = write.options(**by_options)
        write = write.option("checkpointLocation", str(tmp_path / "checkpoint"))
        write.trigger(availableNow=True).start("uc://main.sales.copies").awaitTermination()
        found: list[Any] = CoreTable(copies).to_pyarrow_table()["id"].to_pylist()
        assert sorted(found) == expected

    run(0, 1)
    assert latest(unity, "main", "sales", "copies") == 0
    if LONG:
        run(2, 3)
        assert latest(unity, "main", "sales", "copies") == 1


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows that come when the credentials of their task have ended."""
    for batch in batches:
        time.sleep(1.5)
        yield batch


def test_tasks_renew_credentials_that_end_while_they_work(
    spark: SparkSession, unity: UnityServer, s3: Emulator, issuer: Issuer
) -> None:
    unity.lifetime_ms = issuer.lifetime_ms = 1000
    told = NamedTable(catalog=catalog_of(unity, s3, pickles_secrets="tasks"), name=ORDERS)
    frame = spark.range(4, numPartitions=1).mapInArrow(slowly, "id BIGINT")
    deltalog.spark.write(frame, told)
    assert rows(deltalog.spark.read(spark, told)) == [(0,), (1,), (2,), (3,)]


def test_tasks_without_a_token_have_what_was_lent_and_say_when_it_ends(
    spark: SparkSession, unity: UnityServer, s3: Emulator, issuer: Issuer
) -> None:
    untold = NamedTable(catalog=catalog_of(unity, s3), name=ORDERS)
    deltalog.spark.write(spark.range(2), untold)
    frame = deltalog.spark.read(spark, untold)
    assert rows(frame) == [(0,), (1,)]
    _check_hidden(_plans(frame))
    issuer.refused.update(f"LENTKEY{number:04}" for number in range(1, issuer.number + 1))
    with pytest.raises(Exception, match="pickles_secrets=True") as caught:
        rows(frame)
    _check_hidden(str(caught.value))
    again = deltalog.spark.read(spark, untold)  # planned anew, with new ones
    assert rows(again) == [(0,), (1,)]


def test_a_view_of_a_table_of_a_catalog_stays_the_catalog_s(
    spark: SparkSession, named: NamedTable, unity: UnityServer
) -> None:
    deltalog.spark.write(spark.range(2), named)
    DeltaTable.forName(spark, "uc.main.sales.orders").createOrReplaceTempView("shown_orders")
    deltalog.spark.write(spark.range(2, 3), named, mode="append")
    table = DeltaTable.forName(spark, "shown_orders")
    table.delete("id = 0")
    assert latest(unity) == 2
    assert rows(table.toDF()) == [(1,), (2,)]
    assert rows(sql(spark, "DELETE FROM shown_orders WHERE id = 1")) == [(1,)]
    assert latest(unity) == 3
    spark.catalog.dropTempView("shown_orders")


def test_sparks_own_reader_is_left_out_where_keys_are_lent(
    spark: SparkSession, named: NamedTable
) -> None:
    deltalog.spark.write(spark.range(2), named)
    explained = deltalog.spark.scan(spark, named).explain()
    assert "credentials lent by a catalog" in explained
    assert "read by Python workers: 2 files" in explained
    _check_hidden(explained)


def test_local_tables_of_a_catalog_are_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lake" / "sales").mkdir(parents=True)
    deltalog.spark.register(spark, catalogs={"lake": str(tmp_path / "lake")})
    sql(spark, "CREATE TABLE lake.sales.orders USING DELTA AS SELECT 1L AS id")
    assert rows(sql(spark, "SELECT * FROM lake.sales.orders")) == [(1,)]
    where = NamedTable(catalog=FileCatalog(tmp_path / "lake"), name=("sales", "orders"))
    assert "Spark's own Parquet reader: 1" in deltalog.spark.scan(spark, where).explain()
    with pytest.raises(TableNotFoundError):
        sql(spark, "SELECT * FROM lake.sales.nothing").collect()
    spark.conf.unset(CATALOGS)


def test_external_tables_and_clones(
    spark: SparkSession, named: NamedTable, unity: UnityServer
) -> None:
    deltalog.spark.write(spark.range(3), named)
    at = f"{unity.warehouse}/outside"
    sql(spark, f"CREATE TABLE uc.main.sales.outside (id BIGINT) USING DELTA LOCATION '{at}'")
    assert unity.tables["main", "sales", "outside"].table_type == "EXTERNAL"
    sql(spark, "INSERT INTO uc.main.sales.outside SELECT * FROM uc.main.sales.orders")
    outside = DeltaTable.forName(spark, "uc.main.sales.outside")
    assert rows(outside.toDF()) == [(0,), (1,), (2,)]


def test_a_table_of_glue(spark: SparkSession, s3: Emulator) -> None:
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    keys = {
        "endpoint_url": s3.endpoint,
        "region_name": "us-east-1",
        "aws_access_key_id": "testing",
        "aws_secret_access_key": "testing-secret",
    }
    client = boto3.client("glue", **keys)
    location = s3.url.replace(" ", "-")
    client.create_database(DatabaseInput={"Name": "spark_sales", "LocationUri": location})
    catalog = GlueCatalog(client_options=keys, storage_options=s3.options)
    deltalog.spark.register(spark, catalogs={"glue": catalog})
    sql(spark, "CREATE TABLE glue.spark_sales.orders (id BIGINT) USING DELTA")
    sql(spark, "INSERT INTO glue.spark_sales.orders VALUES (1), (2)")
    DeltaTable.forName(spark, "glue.spark_sales.orders").delete("id = 1")
    assert rows(sql(spark, "SELECT * FROM glue.spark_sales.orders")) == [(2,)]
    sql(spark, "ALTER TABLE glue.spark_sales.orders ADD COLUMN v STRING")
    entry = client.get_table(DatabaseName="spark_sales", Name="orders")["Table"]
    assert [one["Name"] for one in entry["StorageDescriptor"]["Columns"]] == ["id", "v"]
    spark.conf.unset(CATALOGS)
    client.delete_database(Name="spark_sales")


def test_what_is_no_catalog_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidInputError, match="expected a catalog"):
        deltalog.spark.register(spark, catalogs={"uc": 3})  # type: ignore[dict-item]  # on purpose
    spark.conf.set(CATALOGS, "of-another-process")
    with pytest.raises(InvalidInputError, match="another process registered them"):
        DeltaTable.forName(spark, "uc.main.sales.orders")
    spark.conf.unset(CATALOGS)


def test_a_wrong_token_is_not_shown(spark: SparkSession, unity: UnityServer, s3: Emulator) -> None:
    wrong = catalog_of(unity, s3, token="a-token-of-nobody")  # noqa: S106
    deltalog.spark.register(spark, catalogs={"uc": wrong})
    with pytest.raises(CatalogAccessError) as caught:
        DeltaTable.forName(spark, "uc.main.sales.orders")
    assert "a-token-of-nobody" not in str(caught.value)
    assert "a-token-of-nobody" not in str(dict(spark.conf.getAll))
    spark.conf.unset(CATALOGS)


def _plans(frame: DataFrame) -> str:
    """All that Spark tells of a frame's plan."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        frame.explain(extended=True)
        frame.explain(mode="formatted")
    return told.getvalue()


def _check_hidden(*texts: str) -> None:
    for text in texts:
        assert text
        for mark in MARKS:
            assert mark not in text
