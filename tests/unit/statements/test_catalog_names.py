"""Statements over tables of catalogs, by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deltalog import DeltaTable, connect
from deltalog.catalogs import FileCatalog
from deltalog.errors import (
    CatalogError,
    InvalidInputError,
    TableExistsError,
    TableNotFoundError,
)

if TYPE_CHECKING:
    from pathlib import Path

    from deltalog.statements import Connection


@pytest.fixture
def catalog(tmp_path: Path) -> FileCatalog:
    (tmp_path / "lake" / "sales").mkdir(parents=True)
    return FileCatalog(tmp_path / "lake")


@pytest.fixture
def connection(catalog: FileCatalog) -> Connection:
    found = connect(catalog=catalog, schema="sales")
    found.execute_script(
        "CREATE TABLE orders (id BIGINT, v STRING) USING DELTA;"
        "INSERT INTO orders VALUES (1, 'a'), (2, 'b')"
    )
    return found


def rows(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


@pytest.mark.parametrize("name", ["orders", "sales.orders", "SALES.orders", "`sales`.`orders`"])
def test_a_short_name_begins_with_the_default_schema(connection: Connection, name: str) -> None:
    if name.startswith("SALES"):
        with pytest.raises(TableNotFoundError):  # folders have their case
            rows(connection, f"SELECT id FROM {name}")
        return
    assert rows(connection, f"SELECT id FROM {name} ORDER BY id") == [(1,), (2,)]


def test_a_table_is_made_where_the_catalog_says(connection: Connection, tmp_path: Path) -> None:
    connection.sql("CREATE TABLE copy USING DELTA AS SELECT * FROM orders WHERE id = 2")
    assert DeltaTable(tmp_path / "lake" / "sales" / "copy").count() == 1
    with pytest.raises(TableExistsError):
        connection.sql("CREATE TABLE copy (id BIGINT)")
    connection.sql("CREATE TABLE IF NOT EXISTS copy (other INT)")
    assert rows(connection, "SELECT * FROM copy") == [(2, "b")]


def test_statements_change_tables_of_a_catalog(connection: Connection) -> None:
    connection.execute_script(
        "UPDATE orders SET v = 'c' WHERE id = 1;"
        "MERGE INTO sales.orders o USING (SELECT 2 AS id UNION ALL SELECT 3) s ON o.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id);"
        "ALTER TABLE orders ADD COLUMN extra INT"
    )
    assert rows(connection, "SELECT * FROM orders ORDER BY id") == [(1, "c", None), (3, None, None)]
    assert rows(connection, "SELECT count(*) FROM orders@v1") == [(2,)]


def test_another_session_sees_what_was_committed(
    connection: Connection, catalog: FileCatalog
) -> None:
    other = connect(catalog={"lake": catalog})
    assert rows(other, "SELECT count(*) FROM lake.sales.orders") == [(2,)]
    connection.sql("INSERT INTO orders VALUES (3, 'c')")
    assert rows(other, "SELECT count(*) FROM lake.sales.orders") == [(3,)]


def test_tables_are_listed_renamed_cloned_and_dropped(
    connection: Connection, tmp_path: Path
) -> None:
    connection.sql("CREATE TABLE twin SHALLOW CLONE orders")
    connection.sql("ALTER TABLE twin RENAME TO sales.other")
    assert rows(connection, "SHOW TABLES") == [
        ("sales", "orders", False), ("sales", "other", False),
    ]  # fmt: skip
    assert rows(connection, "SELECT count(*) FROM other") == [(2,)]
    connection.sql("DROP TABLE other")
    assert not (tmp_path / "lake" / "sales" / "other").exists()  # the catalog's own
    with pytest.raises(TableNotFoundError, match="other"):
        connection.sql("DROP TABLE other")
    connection.sql("DROP TABLE IF EXISTS other")


def test_registered_names_come_before_those_of_catalogs(
    connection: Connection,
) -> None:
    connection.register("orders", [{"id": 7}])
    assert rows(connection, "SELECT * FROM orders") == [(7,)]
    assert rows(connection, "SELECT count(*) FROM sales.orders") == [(2,)]


@pytest.mark.parametrize(
    "name", ["`..`.t", "`.hidden`.t", "`a/b`.t", "sales.`../orders`", "a.b.c", "sales.``"]
)
def test_names_do_not_leave_the_catalog(connection: Connection, name: str) -> None:
    with pytest.raises((InvalidInputError, TableNotFoundError)):
        connection.sql(f"SELECT * FROM {name}")
    with pytest.raises(InvalidInputError):
        connection.sql(f"CREATE TABLE {name} (a INT)")


@pytest.mark.parametrize("catalog", [3, {"a": 3}, ["lake"], {"a": None}, "uc://a/b"])
def test_what_is_no_catalog_is_refused(catalog: object) -> None:
    with pytest.raises(InvalidInputError, match="catalog"):
        connect(catalog=catalog)  # type: ignore[arg-type]  # on purpose


def test_a_directory_is_a_catalog(connection: Connection, tmp_path: Path) -> None:
    assert rows(connection, "SELECT count(*) FROM orders") == [(2,)]
    with connect(catalog=str(tmp_path / "lake"), schema="sales") as by_text:
        assert rows(by_text, "SELECT count(*) FROM orders") == [(2,)]
    with connect(catalog={"a": str(tmp_path / "lake")}) as aliased:
        assert rows(aliased, "SELECT count(*) FROM a.sales.orders") == [(2,)]
        assert rows(aliased, "SHOW CATALOGS") == [("a",)]
        assert rows(aliased, "SHOW SCHEMAS IN a") == [("sales",)]
        assert rows(aliased, "SHOW SCHEMAS") == []
        aliased.sql("USE CATALOG a")
        assert rows(aliased, "SHOW SCHEMAS") == [("sales",)]
        assert rows(aliased, "SELECT count(*) FROM sales.orders") == [(2,)]
        aliased.sql("USE sales")
        assert rows(aliased, "SHOW TABLES") == [("a.sales", "orders", False)]


def test_tables_are_not_listed_without_a_schema(connection: Connection, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    assert rows(connection, "SHOW TABLES") == [("sales", "orders", False)]
    with pytest.raises(InvalidInputError, match=r"SHOW TABLES IN schema.*the schemas are sales"):
        connect(catalog=lake).sql("SHOW TABLES")
    with pytest.raises(InvalidInputError, match=r"IN catalog\.schema.*the catalogs are a, b"):
        connect(catalog={"b": lake, "a": lake}).sql("SHOW TABLES")
    with connect({"t": [{"id": 1}]}, catalog=lake) as mixed:
        assert rows(mixed, "SHOW TABLES") == [("", "t", True)]


def test_a_schema_that_does_not_exist_is_not_used(connection: Connection) -> None:
    for statement in ("USE nodb", "USE SCHEMA nodb"):
        with pytest.raises(CatalogError, match=r"no schema nodb in .*: found sales; CREATE SCHEMA"):
            connection.sql(statement)
    with pytest.raises(InvalidInputError, match="a directory of tables has only schemas"):
        connection.sql("USE CATALOG nope")
    assert rows(connection, "SELECT count(*) FROM orders") == [(2,)]  # as before
    connection.execute_script("CREATE SCHEMA nodb; USE nodb; CREATE TABLE t (id INT)")
    assert rows(connection, "SELECT count(*) FROM nodb.t") == [(0,)]


def test_a_schema_is_not_created_by_its_first_table(connection: Connection, tmp_path: Path) -> None:
    for statement, attempt in {
        "CREATE TABLE saels.t (id INT)": r"create the table saels\.t",
        "CREATE TABLE saels.t AS SELECT 1 AS id": r"create the table saels\.t",
        "CREATE TABLE saels.t SHALLOW CLONE orders": r"create the table saels\.t",
        "ALTER TABLE orders RENAME TO saels.t": r"rename orders to saels\.t",
    }.items():
        problem = rf"cannot {attempt}: there is no schema saels in .*; CREATE SCHEMA saels makes"
        with pytest.raises(CatalogError, match=problem):
            connection.sql(statement)
    assert [one.name for one in (tmp_path / "lake").iterdir()] == ["sales"]
    with connect(catalog={"a": str(tmp_path / "new")}) as aliased:
        with pytest.raises(CatalogError, match=r"found none; CREATE SCHEMA a\.s makes it"):
            aliased.sql("CREATE TABLE a.s.t (id INT)")
        aliased.execute_script("CREATE SCHEMA a.s; CREATE TABLE a.s.t (id INT)")
    with connect(catalog="memory://lake", schema="s") as stored:  # it has no empty folders
        stored.sql("CREATE TABLE t (id INT)")
        assert rows(stored, "SHOW SCHEMAS") == [("s",)]


def test_a_name_of_the_session_is_not_dropped(connection: Connection, tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "lake" / "sales" / "orders")
    connection.register("named", table).register("data", [{"id": 1}])
    for clause in ("", "IF EXISTS "):
        with pytest.raises(
            InvalidInputError, match=r"for this session only, of the table .*orders"
        ):
            connection.sql(f"DROP TABLE {clause}named")
        with pytest.raises(InvalidInputError, match="a name of rows for this session only"):
            connection.sql(f"DROP TABLE {clause}data")
    assert rows(connection, "SELECT count(*) FROM named") == [(2,)]
