"""Schemas and catalogs that are made and dropped: in SQL and in Python, of each catalog."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from deltalog import connect, write_deltalake
from deltalog.catalogs import FileCatalog, GlueCatalog, UnityCatalog
from deltalog.catalogs.protocol import KeepsCatalogs, KeepsSchemas
from deltalog.errors import (
    CatalogError,
    InvalidInputError,
    TableNotFoundError,
    UnsafePathError,
)
from tests.catalogs.conftest import QUICK
from tests.support.unity_server import TOKEN, UnityServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.statements import Connection
    from tests.support.emulators import Emulator


@pytest.fixture
def connection(unity: UnityServer) -> Iterator[Connection]:
    catalog = UnityCatalog(unity.url, token=TOKEN, allows_local_files=True, http_options=QUICK)
    with connect(catalog=catalog, schema="main.sales") as found:
        yield found


@pytest.mark.parametrize("status", [409, 400, 500])
def test_schemas_of_a_unity_catalog(
    connection: Connection, unity: UnityServer, status: int
) -> None:
    unity.taken_status = status
    connection.sql("CREATE SCHEMA more COMMENT 'x' WITH DBPROPERTIES ('team' = 'blue')")
    assert unity.made["main", "more"] == {
        "name": "more",
        "catalog_name": "main",
        "comment": "x",
        "properties": {"team": "blue"},
    }
    with pytest.raises(CatalogError, match=r"create schema main\.more: it exists") as raised:
        connection.sql("CREATE DATABASE main.more")
    assert raised.value.status == 409
    connection.sql("CREATE NAMESPACE IF NOT EXISTS main.more")
    connection.sql("CREATE TABLE main.more.t (id BIGINT)")
    with pytest.raises(CatalogError, match=r"drop schema main\.more: the catalog answered 400"):
        connection.sql("DROP SCHEMA more RESTRICT")
    connection.sql("DROP SCHEMA more CASCADE")
    assert ("main", "more") not in unity.schemas
    with pytest.raises(CatalogError, match=r"drop schema main\.more"):
        connection.sql("DROP SCHEMA more")
    connection.sql("DROP SCHEMA IF EXISTS more")
    with pytest.raises(CatalogError, match="no such catalog"):
        connection.sql("CREATE SCHEMA nowhere.more")


def test_catalogs_of_a_unity_server(connection: Connection, unity: UnityServer) -> None:
    connection.sql("CREATE CATALOG lake COMMENT 'x' MANAGED LOCATION 's3://b/lake'")
    assert unity.made["lake",] == {"name": "lake", "comment": "x", "storage_root": "s3://b/lake"}
    with pytest.raises(CatalogError, match="create catalog lake: it exists"):
        connection.sql("CREATE CATALOG lake")
    connection.sql("CREATE CATALOG IF NOT EXISTS lake")
    connection.sql("CREATE SCHEMA lake.s")
    assert connection.execute("SHOW CATALOGS").fetchall() == [("lake",), ("main",)]
    unity.empty_catalogs.clear()
    with pytest.raises(CatalogError, match="drop catalog lake: the catalog answered 400"):
        connection.sql("DROP CATALOG lake")
    connection.sql("DROP CATALOG lake CASCADE")
    connection.sql("DROP CATALOG IF EXISTS lake")
    assert unity.catalogs == {"main"}


def test_the_same_in_python(unity: UnityServer) -> None:
    catalog = UnityCatalog(unity.url, token=TOKEN, catalog="main", http_options=QUICK)
    assert isinstance(catalog, KeepsSchemas)
    assert isinstance(catalog, KeepsCatalogs)
    catalog.create_schema(("more",), comment="x")
    assert ("more",) in catalog.list_schemas()
    catalog.drop_schema(("more",))
    catalog.create_catalog("lake")
    catalog.drop_catalog("lake", cascade=True)
    assert unity.catalogs == {"main"}


def test_what_is_missing_is_named(connection: Connection, unity: UnityServer) -> None:
    catalog = UnityCatalog(unity.url, token=TOKEN, allows_local_files=True, http_options=QUICK)
    for statement in ("SELECT * FROM nowhere.s.t", "DELETE FROM nowhere.s.t"):
        with pytest.raises(TableNotFoundError, match="there is no catalog nowhere"):
            connection.sql(statement)
    with pytest.raises(
        TableNotFoundError, match=r"there is no schema main\.s; the schemas are 'other', 'sales'$"
    ):
        connection.sql("UPDATE main.s.t SET a = 1")
    with pytest.raises(CatalogError, match=r"catalog 'nowhere'.*no such catalog"):
        connection.sql("CREATE TABLE nowhere.s.t (id INT)")
    with pytest.raises(TableNotFoundError, match="there is no catalog nowhere"):
        catalog.open(("nowhere", "s", "t"))
    with pytest.raises(TableNotFoundError, match=r"there is no schema main\.s"):
        catalog.open(("main", "s", "t"))
    with pytest.raises(TableNotFoundError, match=r"there is no table main\.sales\.t"):
        catalog.open(("main", "sales", "t"))
    unity.has_delta_api = False
    older = UnityCatalog(unity.url, token=TOKEN, allows_local_files=True, http_options=QUICK)
    with pytest.raises(TableNotFoundError, match="there is no catalog nowhere"):
        older.open(("nowhere", "s", "t"))


def test_schemas_of_a_directory(tmp_path: Path) -> None:
    root = tmp_path / "tables"
    with connect(catalog=FileCatalog(root), schema="s") as connection:
        connection.sql("CREATE SCHEMA IF NOT EXISTS s")
        connection.sql("CREATE SCHEMA IF NOT EXISTS s")
        with pytest.raises(CatalogError, match="it exists"):
            connection.sql("CREATE SCHEMA s")
        assert connection.execute("SHOW SCHEMAS").fetchall() == [("s",)]
        connection.sql("CREATE TABLE t (id INT)")
        with pytest.raises(InvalidInputError, match=r"it has tables, such as s\.t"):
            connection.sql("DROP SCHEMA s")
        (root / "s" / "notes.txt").write_text("kept")
        with pytest.raises(InvalidInputError, match=r"'notes.txt' in its folder .* is not a table"):
            connection.sql("DROP SCHEMA s CASCADE")
        (root / "s" / "notes.txt").unlink()
        connection.sql("DROP SCHEMA s CASCADE")
        assert list(root.iterdir()) == []
        with pytest.raises(CatalogError, match="it does not exist"):
            connection.sql("DROP SCHEMA s")
        connection.sql("DROP SCHEMA IF EXISTS s")
        for wrong in ("CREATE SCHEMA a COMMENT 'x'", "CREATE SCHEMA `..`", "CREATE CATALOG c"):
            with pytest.raises(InvalidInputError):
                connection.sql(wrong)


def test_a_schema_is_not_dropped_through_links(tmp_path: Path) -> None:
    root, outside = tmp_path / "tables", tmp_path / "outside"
    write_deltalake(outside / "t", pa.table({"id": [1]}))
    (root / "s").mkdir(parents=True)
    write_deltalake(root / "s" / "own", pa.table({"id": [1]}))
    (root / "linked").symlink_to(outside)
    (root / "s" / "t").symlink_to(outside / "t")
    catalog = FileCatalog(root)
    with pytest.raises((InvalidInputError, UnsafePathError, CatalogError)):
        catalog.drop_schema(("linked",), cascade=True)
    (root / "s" / "evil").mkdir()
    (root / "s" / "evil" / "_delta_log").symlink_to(outside / "t" / "_delta_log")
    with pytest.raises(UnsafePathError):
        catalog.drop_schema(("s",), cascade=True)
    assert (root / "s" / "own" / "_delta_log").is_dir()  # nothing at all is dropped
    (root / "s" / "evil" / "_delta_log").unlink()
    (root / "s" / "evil").rmdir()
    catalog.drop_schema(("s",), cascade=True)
    assert list((outside / "t").glob("*.parquet"))
    assert list((outside / "t" / "_delta_log").iterdir())
    assert (root / "s" / "t").is_symlink()  # which no listing shows


def test_databases_of_glue(s3: Emulator) -> None:
    pytest.importorskip("boto3", reason="boto3 is not installed")
    keys: dict[str, Any] = {
        "region_name": "us-east-1",
        "endpoint_url": s3.endpoint,
        "aws_access_key_id": s3.options["AWS_ACCESS_KEY_ID"],
        "aws_secret_access_key": s3.options["AWS_SECRET_ACCESS_KEY"],
    }
    catalog, name = GlueCatalog(client_options=keys, storage_options=s3.options), uuid.uuid4().hex
    with connect(catalog=catalog, schema=f"d{name}") as connection:
        connection.sql(f"CREATE SCHEMA d{name} COMMENT 'x' LOCATION '{s3.url}/{name}'")
        connection.sql(f"CREATE SCHEMA IF NOT EXISTS d{name}")
        with pytest.raises(CatalogError, match="it exists"):
            connection.sql(f"CREATE SCHEMA d{name}")
        connection.sql("CREATE TABLE t (id BIGINT)")
        with pytest.raises(InvalidInputError, match="it has tables"):
            connection.sql(f"DROP SCHEMA d{name}")
        connection.sql(f"DROP SCHEMA d{name} CASCADE")
        connection.sql(f"DROP SCHEMA IF EXISTS d{name}")
        with pytest.raises(CatalogError, match="it does not exist"):
            connection.sql(f"DROP SCHEMA d{name}")


@pytest.mark.parametrize("statement", ["CREATE SCHEMA s", "DROP SCHEMA s", "CREATE CATALOG c"])
def test_a_session_without_a_catalog_has_none(statement: str) -> None:
    with connect() as connection, pytest.raises(InvalidInputError, match="has no catalog"):
        connection.sql(statement)


@pytest.mark.parametrize(
    "wrong", ["CREATE SCHEMA", "CREATE SCHEMA a COMMENT 'x' COMMENT 'y'", "DROP SCHEMA a b"]
)
def test_other_forms_are_refused(connection: Connection, wrong: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot read the statement"):
        connection.sql(wrong)
