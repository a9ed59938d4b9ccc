# ruff: noqa: S608  # names and locations of tables are in the statements
"""SQL over tables of catalogs: a Unity Catalog, and AWS Glue."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from deltalog import DeltaTable, connect
from deltalog.catalogs import GlueCatalog, UnityCatalog
from deltalog.errors import (
    InvalidInputError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
)
from tests.catalogs.conftest import QUICK
from tests.support.unity_server import TOKEN, UnityServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deltalog.statements import Connection
    from tests.support.emulators import Emulator

KEY = ("main", "sales", "orders")


@pytest.fixture
def connection(unity: UnityServer) -> Iterator[Connection]:
    """A connection whose names have three parts, with a default schema."""
    catalog = UnityCatalog(unity.url, token=TOKEN, allows_local_files=True, http_options=QUICK)
    with connect(catalog=catalog, schema="main.sales") as found:
        yield found


@pytest.fixture
def orders(connection: Connection) -> Connection:
    """The same with a managed table of three rows."""
    connection.execute_script(
        "CREATE TABLE orders (id BIGINT COMMENT 'of the order', v STRING) USING DELTA "
        "COMMENT 'all of them' TBLPROPERTIES ('team' = 'blue');"
        "INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, NULL)"
    )
    return connection


def rows(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query).fetchall()


def test_a_managed_table_is_created_and_changed(orders: Connection, unity: UnityServer) -> None:
    entry = unity.tables[KEY]
    assert (entry.table_type, entry.comment, entry.properties["team"]) == (
        "MANAGED",
        "all of them",
        "blue",
    )
    (field, _) = entry.columns["fields"]
    assert field["metadata"]["comment"] == "of the order"
    for name in ("orders", "sales.orders", "main.sales.orders"):
        assert rows(orders, f"SELECT count(*) FROM {name}") == [(3,)]
    orders.sql("UPDATE sales.orders SET v = 'u' WHERE id = 1")
    orders.sql(
        "MERGE INTO main.sales.orders o USING (SELECT 3 AS id UNION ALL SELECT 4) s "
        "ON o.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    orders.sql("DELETE FROM orders WHERE id = 2")
    with pytest.raises(InvalidInputError, match="DATA_REORGANIZATION"):
        orders.sql("OPTIMIZE orders")
    unity.allowed = ["DATA_REORGANIZATION"]
    orders.sql("OPTIMIZE orders")
    assert rows(orders, "SELECT * FROM orders ORDER BY id") == [(1, "u"), (4, None)]
    assert rows(orders, "SELECT count(*) FROM orders VERSION AS OF 1") == [(3,)]
    assert entry.latest == entry.published == 5


def test_what_is_altered_is_told(orders: Connection, unity: UnityServer) -> None:
    entry = unity.tables[KEY]
    orders.sql("ALTER TABLE orders SET TBLPROPERTIES ('team' = 'red', 'more' = 'x')")
    orders.sql("ALTER TABLE orders UNSET TBLPROPERTIES ('more')")
    assert entry.properties["team"] == "red"
    assert "more" not in entry.properties
    orders.sql("ALTER TABLE orders ADD COLUMN w INT COMMENT 'new'")
    assert [one["name"] for one in entry.columns["fields"]] == ["id", "v", "w"]
    orders.sql("COMMENT ON TABLE orders IS 'some of them'")
    assert entry.comment == "some of them"
    orders.sql("ALTER TABLE orders RENAME TO sales.requests")
    assert rows(orders, "SELECT count(*) FROM requests") == [(3,)]
    with pytest.raises(TableNotFoundError):
        orders.sql("SELECT * FROM orders")
    with pytest.raises(InvalidInputError, match="in the same schema"):
        orders.sql("ALTER TABLE requests RENAME TO other.requests")
    with pytest.raises(InvalidInputError, match="cannot change a table's location"):
        orders.sql("ALTER TABLE requests SET LOCATION '/elsewhere'")
    orders.sql("DROP TABLE requests")
    assert unity.tables == {}
    with pytest.raises(TableNotFoundError):
        orders.sql("DROP TABLE requests")
    orders.sql("DROP TABLE IF EXISTS requests")


def test_names_are_shown_and_used(orders: Connection) -> None:
    orders.sql("CREATE TABLE other.notes (id INT)")
    assert rows(orders, "SHOW CATALOGS") == [("main",)]
    assert rows(orders, "SHOW CATALOGS LIKE 'x*'") == []
    assert rows(orders, "SHOW SCHEMAS") == [("other",), ("sales",)]
    assert rows(orders, "SHOW DATABASES IN main LIKE 's*'") == [("sales",)]
    assert rows(orders, "SHOW TABLES") == [("main.sales", "orders", False)]
    assert rows(orders, "SHOW TABLES IN other") == [("main.other", "notes", False)]
    assert rows(orders, "SHOW TABLES FROM main.other LIKE 'n*|x'") == [
        ("main.other", "notes", False)
    ]
    orders.sql("USE SCHEMA other")
    assert rows(orders, "SELECT count(*) FROM notes") == [(0,)]
    with pytest.raises(TableNotFoundError):
        orders.sql("SELECT * FROM orders")
    orders.sql("USE main.sales")
    assert rows(orders, "SELECT count(*) FROM orders") == [(3,)]
    orders.sql("USE CATALOG main")
    assert rows(orders, "SELECT count(*) FROM other.notes") == [(0,)]
    orders.sql("USE sales")
    assert rows(orders, "SELECT count(*) FROM orders") == [(3,)]


def test_use_needs_a_catalog() -> None:
    with connect() as connection, pytest.raises(InvalidInputError, match="has no catalog"):
        connection.sql("USE sales")


def test_a_table_is_described(orders: Connection, unity: UnityServer) -> None:
    described = rows(orders, "DESCRIBE TABLE EXTENDED orders")
    assert described[:2] == [("id", "bigint", "of the order"), ("v", "string", None)]
    told = {name: text for name, text, _ in described}
    assert (told["Comment"], told["Version"]) == ("all of them", "1")
    assert told["Type"] == "MANAGED"
    (detail,) = rows(orders, "DESCRIBE DETAIL orders")
    assert unity.warehouse.removeprefix("file://") in detail[4]
    assert [one[0] for one in rows(orders, "DESCRIBE HISTORY orders LIMIT 1")] == [1]
    assert ("team", "blue") in rows(orders, "SHOW TBLPROPERTIES orders")
    (created,) = rows(orders, "SHOW CREATE TABLE orders")
    assert "LOCATION" not in created[0]  # of a managed table, its catalog chooses it


def test_an_external_table_and_rows_of_a_query(
    orders: Connection, unity: UnityServer, tmp_path: Path
) -> None:
    at = tmp_path / "outside"
    orders.sql(f"CREATE TABLE outside LOCATION '{at}' AS SELECT id FROM orders WHERE id > 1")
    entry = unity.tables["main", "sales", "outside"]
    assert entry.table_type == "EXTERNAL"
    orders.sql("INSERT INTO outside SELECT 9")
    orders.sql("ALTER TABLE outside ADD COLUMN v STRING")
    assert [one["name"] for one in entry.columns["fields"]] == ["id", "v"]
    assert rows(orders, "SELECT id FROM outside ORDER BY id") == [(2,), (3,), (9,)]
    orders.sql("CREATE TABLE copied AS SELECT * FROM orders")
    assert unity.tables["main", "sales", "copied"].table_type == "MANAGED"
    assert rows(orders, "SELECT count(*) FROM copied") == [(3,)]
    orders.sql("CREATE OR REPLACE TABLE copied AS SELECT 1 AS one")
    assert rows(orders, "SELECT * FROM copied") == [(1,)]
    with pytest.raises(TableExistsError):
        orders.sql("CREATE TABLE copied (id INT)")
    orders.sql("CREATE TABLE IF NOT EXISTS copied (id INT)")
    orders.sql("DROP TABLE outside")
    assert DeltaTable(at).count() == 3  # its files are not the catalog's


def test_rows_that_do_not_fit_leave_no_table(orders: Connection, unity: UnityServer) -> None:
    with pytest.raises(SchemaMismatchError):
        orders.sql("INSERT INTO orders SELECT 1, 'a', 'too many'")
    assert unity.tables[KEY].latest == 1
    with pytest.raises(InvalidInputError, match="requires 'v2'"):
        orders.sql("CREATE TABLE odd (a INT) TBLPROPERTIES ('delta.checkpointPolicy' = 'classic')")
    assert list(unity.tables) == [KEY]


@pytest.mark.parametrize("spelling", ["uc://", "uc://main", "url", "by name"])
def test_a_text_names_a_catalog(
    orders: Connection, unity: UnityServer, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    del orders
    monkeypatch.setenv("UNITY_CATALOG_URL", unity.url)
    monkeypatch.setenv("UNITY_CATALOG_TOKEN", unity.token)
    local = {"unity_allow_local_files": "true"}
    if spelling == "by name":
        with connect(storage_options=local) as connection:
            assert rows(connection, "SELECT count(*) FROM delta.`uc://main.sales.orders`") == [(3,)]
            connection.sql("INSERT INTO delta.`uc://main.sales.orders` VALUES (4, 'd')")
        assert unity.tables[KEY].latest == 2
        return
    text = unity.url if spelling == "url" else spelling
    within = "sales" if spelling == "uc://main" else "main.sales"
    with connect(catalog=text, schema=within, storage_options=local) as connection:
        assert rows(connection, "SELECT count(*) FROM orders") == [(3,)]


def test_tables_of_glue(s3: Emulator) -> None:
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    keys = {
        "endpoint_url": s3.endpoint,
        "region_name": "us-east-1",
        "aws_access_key_id": "testing",
        "aws_secret_access_key": "testing-secret",
    }
    client, database = boto3.client("glue", **keys), f"sales_{uuid.uuid4().hex[:8]}"
    place = {"Name": database, "LocationUri": f"{s3.url}/{database}"}
    client.create_database(DatabaseInput=place)

    def entry(name: str) -> dict[str, Any]:
        found: dict[str, Any] = client.get_table(DatabaseName=database, Name=name)["Table"]
        return found

    catalog = GlueCatalog(client_options=keys, storage_options=s3.options)
    with connect(catalog=catalog, schema=database) as connection:
        connection.execute_script(
            "CREATE TABLE orders (id BIGINT, v STRING) COMMENT 'all of them';"
            "INSERT INTO orders VALUES (1, 'a'), (2, 'b');"
            "UPDATE orders SET v = 'u' WHERE id = 1;"
            "ALTER TABLE orders ADD COLUMN w INT;"
            "ALTER TABLE orders SET TBLPROPERTIES ('team' = 'blue');"
            "COMMENT ON TABLE orders IS 'some of them';"
            "OPTIMIZE orders"
        )
        assert rows(connection, "SELECT * FROM orders ORDER BY id") == [
            (1, "u", None),
            (2, "b", None),
        ]
        found = entry("orders")
        assert [one["Name"] for one in found["StorageDescriptor"]["Columns"]] == ["id", "v", "w"]
        assert (found["Description"], found["Parameters"]["team"]) == ("some of them", "blue")
        at = f"{s3.url}/elsewhere"
        connection.sql(f"CREATE TABLE outside LOCATION '{at}' AS SELECT * FROM orders")
        assert entry("outside")["StorageDescriptor"]["Location"] == at
        assert (database,) in rows(connection, "SHOW SCHEMAS")
        assert rows(connection, "SHOW TABLES") == [
            (database, "orders", False),
            (database, "outside", False),
        ]
        with pytest.raises(InvalidInputError, match="rename"):
            connection.sql("ALTER TABLE orders RENAME TO others")
        connection.sql("DROP TABLE orders")
        assert rows(connection, "SHOW TABLES LIKE 'ord*'") == []
        told = {name: text for name, text, _ in rows(connection, "DESCRIBE EXTENDED outside")}
        assert told["Type"] == "EXTERNAL"
