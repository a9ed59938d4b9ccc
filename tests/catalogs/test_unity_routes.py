# ruff: noqa: S608  # names and locations of tables are in the statements
"""Credentials where a server announces a route that it does not have, or lends none."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from deltalog import connect, write_deltalake
from deltalog.catalogs import UnityCatalog
from deltalog.errors import CatalogAccessError, CatalogError
from tests.catalogs.conftest import QUICK
from tests.support.emulators import Emulator
from tests.support.lent_keys import Issuer
from tests.support.openapi import specification
from tests.support.unity_server import Mishap, UnityServer

ROUTES = {
    "getTemporaryPathCredentials": "generateTemporaryPathCredentials",
    "getTableCredentials": "generateTemporaryTableCredentials",
}


@pytest.fixture
def server(s3: Emulator) -> Iterator[UnityServer]:
    server = UnityServer(specification(), s3.url)
    yield server
    server.close()
    assert server.violations == []


@pytest.fixture
def issuer(s3: Emulator, server: UnityServer) -> Iterator[Issuer]:
    issuer = Issuer(s3)
    server.lend = issuer.lend
    yield issuer
    issuer.close()


def place_only(s3: Emulator) -> dict[str, str]:
    """Options that say where the store is, and no key."""
    return {name: text for name, text in s3.options.items() if "KEY" not in name and name != "s3"}


def catalog_of(server: UnityServer, options: dict[str, Any]) -> UnityCatalog:
    return UnityCatalog(server.url, token=server.token, storage_options=options, http_options=QUICK)


def test_the_older_route_serves_where_the_new_one_is_not_there(
    server: UnityServer, issuer: Issuer, s3: Emulator
) -> None:
    server.lacks.update(ROUTES)
    catalog = catalog_of(server, place_only(s3))
    with connect(catalog=catalog, schema="main.sales") as connection:
        for name in ("a", "b"):
            connection.sql(f"CREATE TABLE {name} (id BIGINT) LOCATION '{s3.url}/{name}'")
            connection.sql(f"INSERT INTO {name} VALUES (1)")
        assert connection.sql("SELECT * FROM a").to_pylist() == [{"id": 1}]
    assert issuer.seen
    for older in ROUTES.values():
        assert older in server.asked


def test_a_place_that_the_older_route_refuses_too(server: UnityServer, s3: Emulator) -> None:
    server.lacks.update(ROUTES)
    server.mishaps["generateTemporaryPathCredentials"].extend([Mishap(status=403)] * 9)
    with (
        connect(catalog=catalog_of(server, place_only(s3)), schema="main.sales") as connection,
        pytest.raises(CatalogAccessError, match="get credentials for a new table"),
    ):
        connection.sql(f"CREATE TABLE t (id BIGINT) LOCATION '{s3.url}/t'")
    assert not server.tables


@pytest.mark.parametrize("status", [400, 403, 404])
def test_keys_of_the_caller_serve_where_the_catalog_lends_none(
    server: UnityServer, s3: Emulator, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    for name in (*ROUTES, *ROUTES.values()):
        server.mishaps[name].extend([Mishap(status=status)] * 99)
    catalog = catalog_of(server, dict(s3.options))
    with (
        caplog.at_level(logging.WARNING),
        connect(catalog=catalog, schema="main.sales") as connection,
    ):
        connection.sql(f"CREATE TABLE t (id BIGINT) LOCATION '{s3.url}/own'")
        connection.sql("INSERT INTO t VALUES (1)")
        assert connection.sql("SELECT * FROM t").to_pylist() == [{"id": 1}]
    assert "the storage options are used" in caplog.text


def test_a_table_that_is_there_is_registered_with_keys_of_the_caller(
    server: UnityServer, s3: Emulator
) -> None:
    for name in (*ROUTES, *ROUTES.values()):
        server.mishaps[name].extend([Mishap(status=403)] * 99)
    write_deltalake(f"{s3.url}/there", pa.table({"id": [1]}), storage_options=s3.options)
    with connect(catalog=catalog_of(server, dict(s3.options)), schema="main.sales") as connection:
        connection.sql(f"CREATE TABLE IF NOT EXISTS t LOCATION '{s3.url}/there'")
        assert connection.sql("SELECT * FROM t").to_pylist() == [{"id": 1}]
    assert server.tables["main", "sales", "t"].location == f"{s3.url}/there"


def test_no_table_of_that_name_is_told_as_such(server: UnityServer, s3: Emulator) -> None:
    """A 404 that names the table is no missing route."""
    api = catalog_of(server, place_only(s3))._api
    with pytest.raises(CatalogError) as raised:
        api.lend_for_table(("main", "sales", "gone"), "1", s3.url)
    assert raised.value.status == 404
    assert "generateTemporaryTableCredentials" not in server.asked
