"""Servers that have only the older API, or leave out a part of the Delta API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, PrimitiveType, StructType, write_deltalake
from deltalog.catalogs import TableType
from deltalog.catalogs.unity import UnityCatalog
from deltalog.catalogs.unity.older import _column_infos
from deltalog.errors import CatalogUnavailableError, InvalidInputError, TableExistsError
from deltalog.log.names import commit_path
from deltalog.schema import ArrayType
from tests.support.catalogs import create
from tests.support.emulators import Emulator
from tests.support.openapi import specification
from tests.support.unity_server import ENDPOINTS, Mishap, UnityServer

ORDERS = ("sales", "orders")
ROWS = pa.table({"id": [1, 2, 3]})
SCHEMA = StructType(
    (
        Field("id", PrimitiveType("long"), metadata={"comment": "of the order"}),
        Field("price", PrimitiveType("decimal(10,2)")),
        Field("tags", ArrayType(PrimitiveType("integer"))),
    )
)


def _ids(catalog: UnityCatalog) -> list[int]:
    table = DeltaTable.from_context(catalog.open(ORDERS))
    found: list[Any] = table.to_pyarrow_table(columns=["id"]).column("id").to_pylist()
    return sorted(found)


@pytest.fixture
def older(unity: UnityServer) -> UnityServer:
    unity.has_delta_api = False
    return unity


def test_an_external_table(older: UnityServer, catalog: UnityCatalog, tmp_path: Path) -> None:
    location = f"file://{tmp_path}/mine"
    made = create(catalog, ORDERS, SCHEMA, {"team": "blue"}, location=location)
    assert (made.name, made.table_type, made.columns) == (ORDERS, TableType.EXTERNAL, SCHEMA)
    assert made.properties["team"] == "blue"
    write_deltalake(DeltaTable.from_context(catalog.open(ORDERS)), ROWS, mode="append")
    assert _ids(catalog) == [1, 2, 3]
    assert catalog.list_tables(("sales",)) == [ORDERS]
    assert "generateTemporaryTableCredentials" not in older.asked  # files of this machine
    with pytest.raises(TableExistsError):
        catalog.stage(ORDERS, location)
    with pytest.raises(InvalidInputError, match="does not support it"):
        catalog.rename(ORDERS, ("sales", "new"))
    with pytest.raises(InvalidInputError, match="older API"):
        catalog.synchronize(ORDERS, DeltaTable(tmp_path / "mine").snapshot)
    catalog.drop(ORDERS)
    assert catalog.find(ORDERS) is None


def test_a_lost_answer_of_a_creation(
    older: UnityServer, catalog: UnityCatalog, tmp_path: Path
) -> None:
    older.mishaps["createTable"].append(Mishap(is_lost=True))
    create(catalog, ORDERS, SCHEMA, location=f"file://{tmp_path}/mine")
    staged = catalog.stage(("sales", "other"), f"file://{tmp_path}/mine")
    snapshot = DeltaTable(tmp_path / "mine").snapshot
    create(catalog, ("sales", "other"), SCHEMA, location=f"file://{tmp_path}/second")
    with pytest.raises(TableExistsError, match="another table"):
        catalog.register(staged, snapshot)


def test_a_managed_table_needs_the_delta_api(older: UnityServer, catalog: UnityCatalog) -> None:
    del older
    with pytest.raises(InvalidInputError, match="create managed table"):
        create(catalog, ORDERS, SCHEMA)


@pytest.mark.protocol("B-56", "B-43")
def test_commits_go_through_the_older_coordinator(
    unity: UnityServer, catalog: UnityCatalog
) -> None:
    create(catalog, ORDERS, SCHEMA, {"delta.columnMapping.mode": "none"})
    unity.has_delta_api = False
    older = UnityCatalog(unity.url, token=unity.token, catalog="main", allows_local_files=True)
    entry = unity.tables["main", "sales", "orders"]
    one, other = (DeltaTable.from_context(older.open(ORDERS)) for _ in range(2))
    write_deltalake(one, ROWS, mode="append")
    unity.mishaps["commit"].append(Mishap(is_lost=True))
    write_deltalake(other, ROWS, mode="append")
    assert (_ids(older), entry.latest, entry.published) == ([1, 1, 2, 2, 3, 3], 2, 2)
    one.alter.set_table_properties({"team": "red"}, raise_if_not_exists=False)
    assert entry.properties["team"] == "red"
    assert entry.published == 3
    root = Path(entry.location.removeprefix("file://"))
    assert (root / commit_path(3)).is_file()


def test_a_full_coordinator_is_emptied_first(unity: UnityServer, catalog: UnityCatalog) -> None:
    create(catalog, ORDERS, SCHEMA)
    unity.has_delta_api = False
    older = UnityCatalog(unity.url, token=unity.token, catalog="main", allows_local_files=True)
    table = DeltaTable.from_context(older.open(ORDERS))
    # The first writer cannot say what it published.
    unity.mishaps["commit"].extend([Mishap(), Mishap(status=400)])
    write_deltalake(table, ROWS, mode="append")
    entry = unity.tables["main", "sales", "orders"]
    assert entry.published == 0
    unity.most_unpublished = 1
    write_deltalake(table, ROWS, mode="append")
    assert (_ids(older), entry.published) == ([1, 1, 2, 2, 3, 3], 2)


def test_credentials_of_the_older_api(s3: Emulator) -> None:
    server = UnityServer(specification(), s3.url)
    server.has_delta_api = False
    server.lend = lambda location: [
        (location, {"s3.access-key-id": "LENT", "s3.secret-access-key": "lent-secret"})
    ]
    options = {name: text for name, text in s3.options.items() if "KEY" not in name}
    catalog = UnityCatalog(server.url, token=server.token, catalog="main", storage_options=options)
    create(catalog, ORDERS, SCHEMA, location=f"{s3.url}/mine")
    write_deltalake(DeltaTable.from_context(catalog.open(ORDERS)), ROWS, mode="append")
    assert _ids(catalog) == [1, 2, 3]
    assert "generateTemporaryPathCredentials" in server.asked
    assert "generateTemporaryTableCredentials" in server.asked
    server.close()
    assert server.violations == []


def test_what_a_server_leaves_out_is_refused_by_name(
    unity: UnityServer, catalog: UnityCatalog
) -> None:
    unity.endpoints = [one for one in ENDPOINTS if "staging" not in one and "rename" not in one]
    with pytest.raises(InvalidInputError, match="create managed table"):
        catalog.stage(ORDERS)
    with pytest.raises(InvalidInputError, match="rename"):
        catalog.rename(ORDERS, ("sales", "new"))


def test_a_server_that_fails_is_not_taken_for_an_older_one(
    unity: UnityServer, catalog: UnityCatalog
) -> None:
    unity.mishaps["getConfig"].extend([Mishap(status=503)] * 4)
    with pytest.raises(CatalogUnavailableError):
        catalog.find(ORDERS)
    assert catalog.find(ORDERS) is None
    assert unity.asked.count("getConfig") == 5


def test_columns_in_the_older_apis_words() -> None:
    from deltalog.protocol.table_change.change import new_table

    metadata = new_table(SCHEMA, partition_columns=["id"], created_time_ms=1).metadata
    found = [
        {key: text for key, text in column.items() if key != "type_json"}
        for column in _column_infos(SCHEMA, metadata)
    ]
    assert found == [
        {
            "name": "id",
            "type_text": "bigint",
            "type_name": "LONG",
            "position": 0,
            "nullable": True,
            "comment": "of the order",
            "partition_index": 0,
        },
        {
            "name": "price",
            "type_text": "decimal(10,2)",
            "type_name": "DECIMAL",
            "position": 1,
            "nullable": True,
            "type_precision": 10,
            "type_scale": 2,
        },
        {
            "name": "tags",
            "type_text": "array<int>",
            "type_name": "ARRAY",
            "position": 2,
            "nullable": True,
        },
    ]
