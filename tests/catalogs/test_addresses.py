"""Tables by `uc://catalog.schema.table`."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog import (
    DeltaTable,
    Field,
    PrimitiveType,
    StructType,
    convert_to_deltalake,
    write_deltalake,
)
from deltalog.catalogs.addresses import _parts
from deltalog.errors import InvalidInputError, TableExistsError, TableNotFoundError
from tests.support.unity_server import UnityServer

ORDERS = "uc://main.sales.orders"
LOCAL = {"unity_allow_local_files": "true"}
ROWS = pa.table({"id": [1, 2, 3]})
SCHEMA = StructType((Field("id", PrimitiveType("long")),))


@pytest.fixture
def server(unity: UnityServer, monkeypatch: pytest.MonkeyPatch) -> UnityServer:
    """A server that the environment names."""
    monkeypatch.setenv("DATABRICKS_HOST", unity.url)
    monkeypatch.setenv("DATABRICKS_TOKEN", unity.token)
    return unity


def test_a_table_is_made_written_and_read_by_its_name(server: UnityServer) -> None:
    assert not DeltaTable.is_deltatable(ORDERS, LOCAL)
    with pytest.raises(TableNotFoundError, match=r"main\.sales\.orders"):
        DeltaTable(ORDERS, storage_options=LOCAL)
    write_deltalake(ORDERS, ROWS, storage_options=LOCAL, configuration={"team": "blue"})
    write_deltalake(ORDERS, ROWS, storage_options=LOCAL, mode="append")
    table = DeltaTable(ORDERS, storage_options=LOCAL, default_timezone="Europe/Berlin")
    assert (table.version(), table.to_pyarrow_table().num_rows) == (1, 6)
    assert table.snapshot.context.time_zone == "Europe/Berlin"
    assert table.metadata().configuration["team"] == "blue"
    table.delete("id = 1")
    assert DeltaTable(ORDERS, storage_options=LOCAL).to_pyarrow_table().num_rows == 4
    assert DeltaTable(f"{ORDERS}@v1", storage_options=LOCAL).to_pyarrow_table().num_rows == 6
    assert DeltaTable.is_deltatable(ORDERS, LOCAL)
    with pytest.raises(TableExistsError):
        write_deltalake(ORDERS, ROWS, storage_options=LOCAL)
    assert server.tables["main", "sales", "orders"].latest == 2


def test_an_empty_table_is_created_by_its_name(server: UnityServer) -> None:
    table = DeltaTable.create(ORDERS, SCHEMA, storage_options=LOCAL, cluster_by=["id"])
    entry = server.tables["main", "sales", "orders"]
    assert "delta.clustering" in entry.domains
    write_deltalake(table, ROWS, mode="append")
    assert entry.latest == 1
    with pytest.raises(TableExistsError):
        DeltaTable.create(ORDERS, SCHEMA, storage_options=LOCAL)
    assert DeltaTable.create(ORDERS, SCHEMA, "ignore", storage_options=LOCAL).version() == 1
    again = DeltaTable.create(ORDERS, SCHEMA, "overwrite", storage_options=LOCAL)
    assert (again.version(), again.to_pyarrow_table().num_rows, entry.latest) == (2, 0, 2)


def test_a_catalog_may_be_named_by_options(unity: UnityServer) -> None:
    options = {**LOCAL, "unity_workspace_url": unity.url, "databricks_token": unity.token}
    write_deltalake(ORDERS, ROWS, storage_options=options)
    assert DeltaTable(ORDERS, storage_options=options).to_pyarrow_table().num_rows == 3


def test_without_a_catalog_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABRICKS_HOST", "UNITY_CATALOG_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidInputError, match="UNITY_CATALOG_URL or DATABRICKS_HOST"):
        DeltaTable(ORDERS)


@pytest.mark.parametrize(
    "text", ["", "a", "a.b", "a.b.c.d", "a..c", "a.b.", ".a.b", "a/b.c.d", "a.b.`c", "a.b.`c`d"]
)
def test_a_name_has_three_parts(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"uc://catalog\.schema\.table"):
        _parts(text, f"uc://{text}")


def test_parts_may_be_quoted() -> None:
    assert _parts("a.`b.c`.`d``e`", "") == ("a", "b.c", "d`e")


def test_where_a_location_is_needed_a_name_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected a location"):
        convert_to_deltalake(ORDERS)
    with pytest.raises(InvalidInputError, match="in a file system"):
        DeltaTable(ORDERS, filesystem=object())
    with pytest.raises(InvalidInputError, match="callable"):
        DeltaTable(ORDERS, storage_options=dict)
