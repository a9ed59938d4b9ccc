"""Tables of a Unity Catalog: found, created, read, written, renamed, dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, PrimitiveType, StructType, write_deltalake
from deltalog.catalogs import TableCatalog, TableType
from deltalog.catalogs.unity import UnityCatalog
from deltalog.errors import (
    CatalogManagedError,
    InvalidInputError,
    TableExistsError,
    TableNotFoundError,
)
from deltalog.log.names import STAGED_DIRECTORY, commit_path
from deltalog.schema import ArrayType, MapType
from tests.support.catalogs import create, first_version
from tests.support.unity_server import UnityServer

LONG = PrimitiveType("long")
SCHEMA = StructType(
    (
        Field("id", LONG, metadata={"comment": "of the order"}),
        Field("tags", ArrayType(PrimitiveType("string"))),
        Field("map", MapType(PrimitiveType("string"), StructType((Field("x", LONG),)))),
    )
)
ORDERS = ("sales", "orders")
ROWS = pa.table({"id": [1, 2, 3]})


def _open(catalog: UnityCatalog, name: tuple[str, ...] = ORDERS) -> DeltaTable:
    return DeltaTable.from_context(catalog.open(name))


def _ids(table: DeltaTable) -> list[int]:
    found: list[Any] = table.to_pyarrow_table(columns=["id"]).column("id").to_pylist()
    return sorted(found)


@pytest.mark.protocol("B-56", "B-43")
def test_a_managed_table_is_created_written_and_read(
    catalog: UnityCatalog, unity: UnityServer
) -> None:
    made = create(catalog, ORDERS, SCHEMA, {"team": "blue"}, description="all of them")
    assert (made.name, made.table_type) == (ORDERS, TableType.MANAGED)
    entry = unity.tables["main", "sales", "orders"]
    assert made.table_id == entry.table_id
    assert entry.comment == "all of them"
    assert entry.properties["team"] == "blue"
    # What the catalog suggests is done where the creator says nothing.
    assert entry.properties["delta.columnMapping.mode"] == "name"
    assert "catalogManaged" in entry.protocol["reader-features"]

    table = _open(catalog)
    write_deltalake(table, ROWS, mode="append")
    write_deltalake(table, ROWS, mode="append")
    assert (table.version(), entry.latest) == (2, 2)
    assert _ids(_open(catalog)) == [1, 1, 2, 2, 3, 3]
    table.delete("id = 2")
    assert _ids(_open(catalog)) == [1, 1, 3, 3]
    assert [one["operation"] for one in table.history()] == [
        "DELETE",
        "WRITE",
        "WRITE",
        "CREATE TABLE",
    ]


def test_commits_are_staged_ratified_and_published(
    catalog: UnityCatalog, unity: UnityServer
) -> None:
    create(catalog, ORDERS, SCHEMA)
    table = _open(catalog)
    write_deltalake(table, ROWS, mode="append")
    store = table.snapshot.store
    [staged] = list(store.list_from(STAGED_DIRECTORY, ""))
    assert store.read(staged.path) == store.read(commit_path(1))
    entry = unity.tables["main", "sales", "orders"]
    assert (entry.published, entry.commits) == (1, {})
    assert entry.names == {1: staged.name}


def test_by_its_path_alone_a_managed_table_is_not_read(
    catalog: UnityCatalog, unity: UnityServer
) -> None:
    create(catalog, ORDERS, SCHEMA)
    location = unity.tables["main", "sales", "orders"].location
    with pytest.raises(CatalogManagedError, match="catalog"):
        DeltaTable(location).to_pyarrow_table()


def test_schema_properties_and_clustering_stay_in_step(
    catalog: UnityCatalog, unity: UnityServer
) -> None:
    create(catalog, ORDERS, SCHEMA, {"team": "blue", "gone": "1"})
    entry = unity.tables["main", "sales", "orders"]
    table = _open(catalog)
    table.alter.set_table_properties({"team": "red"}, raise_if_not_exists=False)
    table.alter.unset_table_properties(["gone"])
    table.alter.add_columns([Field("price", PrimitiveType("double"))])
    table.alter.set_table_description("new")
    table.alter.set_clustering_columns(["id"])
    assert (entry.properties["team"], "gone" in entry.properties) == ("red", False)
    assert [one["name"] for one in entry.columns["fields"]] == ["id", "tags", "map", "price"]
    assert entry.comment == "new"
    assert "clustering" in entry.protocol["writer-features"]
    [[physical]] = entry.domains["delta.clustering"]["clusteringColumns"]
    assert physical == entry.columns["fields"][0]["metadata"]["delta.columnMapping.physicalName"]
    found = catalog.find(ORDERS)
    assert found is not None
    assert found.columns == table.schema()
    assert entry.last_changed == table.version()
    table.alter.set_clustering_columns(None)


def test_an_external_table_is_created_and_stays_in_step(
    catalog: UnityCatalog, unity: UnityServer, tmp_path: Path
) -> None:
    location = f"file://{tmp_path}/mine"
    made = create(catalog, ORDERS, SCHEMA, location=location, partition_by=["id"])
    assert made.table_type is TableType.EXTERNAL
    entry = unity.tables["main", "sales", "orders"]
    assert (entry.location, entry.partition_columns) == (location, ["id"])
    table = _open(catalog)
    write_deltalake(table, ROWS, mode="append")
    assert entry.last_changed == 0  # rows alone are no change of the entry
    table.alter.set_table_properties({"team": "red"}, raise_if_not_exists=False)
    assert (entry.properties["team"], entry.last_changed) == ("red", 2)
    assert _ids(DeltaTable(tmp_path / "mine")) == [1, 2, 3]


def test_an_external_table_is_synchronized_afterwards(
    catalog: UnityCatalog, unity: UnityServer, tmp_path: Path
) -> None:
    create(catalog, ORDERS, SCHEMA, location=f"file://{tmp_path}/mine")
    entry = unity.tables["main", "sales", "orders"]
    entry.properties["owner"] = "the catalog's"
    # Somebody who does not know the catalog changes the table.
    direct = DeltaTable(tmp_path / "mine")
    direct.alter.set_table_properties({"team": "red"}, raise_if_not_exists=False)
    direct.alter.add_columns([Field("price", PrimitiveType("double"))])
    assert "team" not in entry.properties
    catalog.synchronize(ORDERS, direct.snapshot)
    assert (entry.properties["team"], entry.properties["owner"]) == ("red", "the catalog's")
    assert entry.columns["fields"][-1]["name"] == "price"
    assert entry.last_changed == 2


def test_an_existing_table_is_registered(catalog: UnityCatalog, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "mine", ROWS)
    write_deltalake(tmp_path / "mine", ROWS, mode="append")
    staged = catalog.stage(ORDERS, f"file://{tmp_path}/mine")
    catalog.register(staged, DeltaTable.from_context(staged.context).snapshot)
    assert _ids(_open(catalog)) == [1, 1, 2, 2, 3, 3]


def test_catalogs_schemas_and_tables_are_listed(catalog: UnityCatalog, unity: UnityServer) -> None:
    assert isinstance(catalog, TableCatalog)
    for name in "abcde":
        create(catalog, ("sales", name), SCHEMA)
    assert catalog.list_schemas() == [("other",), ("sales",)]
    assert catalog.list_tables(("sales",)) == [("sales", name) for name in "abcde"]
    assert catalog.list_tables(("other",)) == []
    whole = UnityCatalog(unity.url, token=unity.token, allows_local_files=True)
    assert whole.list_catalogs() == ["main"]
    assert whole.list_schemas(("main",)) == [("main", "other"), ("main", "sales")]
    assert whole.list_tables(("main", "sales"))[0] == ("main", "sales", "a")
    assert whole.find(("main", "sales", "a")) is not None
    assert whole.find(("nowhere", "sales", "a")) is None
    with pytest.raises(InvalidInputError, match="3 names"):
        whole.find(("sales", "a"))


def test_what_is_not_there(catalog: UnityCatalog) -> None:
    assert catalog.find(ORDERS) is None
    assert catalog.find(("nowhere", "orders")) is None
    with pytest.raises(TableNotFoundError, match=r"sales\.orders"):
        catalog.open(ORDERS)
    with pytest.raises(TableNotFoundError, match=r"sales\.orders"):
        catalog.drop(ORDERS)
    with pytest.raises(TableNotFoundError, match=r"sales\.orders"):
        catalog.rename(ORDERS, ("sales", "new"))


def test_a_table_is_renamed_and_dropped(catalog: UnityCatalog) -> None:
    create(catalog, ORDERS, SCHEMA)
    create(catalog, ("sales", "taken"), SCHEMA)
    with pytest.raises(TableExistsError):
        catalog.rename(ORDERS, ("sales", "taken"))
    with pytest.raises(InvalidInputError, match="in the same schema"):
        catalog.rename(ORDERS, ("other", "orders"))
    catalog.rename(ORDERS, ("sales", "größe & co"))
    assert catalog.find(ORDERS) is None
    write_deltalake(_open(catalog, ("sales", "größe & co")), ROWS, mode="append")
    catalog.drop(("sales", "taken"), purge=True)  # managed: the server deletes its files
    assert catalog.find(("sales", "taken")) is None
    with pytest.raises(InvalidInputError, match="relocate"):
        catalog.relocate(("sales", "größe & co"), "s3://b/x")


def test_a_name_is_taken_once(catalog: UnityCatalog) -> None:
    create(catalog, ORDERS, SCHEMA)
    with pytest.raises(TableExistsError, match=r"sales\.orders"):
        catalog.stage(ORDERS)


def test_two_creators_meet(catalog: UnityCatalog) -> None:
    late = catalog.stage(ORDERS)
    create(catalog, ORDERS, SCHEMA)
    snapshot = first_version(late, SCHEMA)
    with pytest.raises(TableExistsError, match="another table"):
        catalog.register(late, snapshot)


def test_what_contradicts_the_catalog_is_refused(catalog: UnityCatalog) -> None:
    with pytest.raises(InvalidInputError, match="its catalog requires 'v2'"):
        create(catalog, ORDERS, SCHEMA, {"delta.checkpointPolicy": "classic"})
    made = create(catalog, ORDERS, SCHEMA, {"delta.columnMapping.mode": "none"})
    assert made.properties["delta.columnMapping.mode"] == "none"


def test_commits_are_reported(catalog: UnityCatalog, unity: UnityServer) -> None:
    create(catalog, ORDERS, SCHEMA)
    write_deltalake(_open(catalog), ROWS, mode="append")
    report = unity.reports.get(timeout=60)  # nobody else waits for it
    assert (report["num-files-added"], report["num-rows-inserted"]) == (1, 3)
    assert report["num-bytes-added"] > 0


def test_tables_of_other_formats_are_found_and_not_opened(
    catalog: UnityCatalog, unity: UnityServer
) -> None:
    create(catalog, ORDERS, SCHEMA)
    unity.tables["main", "sales", "orders"].provider = "PARQUET"
    found = catalog.find(ORDERS)
    assert found is not None
    assert found.provider == "parquet"
    assert catalog.list_tables(("sales",)) == [ORDERS]
    with pytest.raises(InvalidInputError, match="parquet, not Delta"):
        catalog.open(ORDERS)


def test_row_ids_alone_are_no_change_of_an_external_table(
    catalog: UnityCatalog, unity: UnityServer, tmp_path: Path
) -> None:
    rows = {"delta.enableRowTracking": "true"}
    create(catalog, ORDERS, SCHEMA, rows, location=f"file://{tmp_path}/mine")
    write_deltalake(_open(catalog), ROWS, mode="append")
    assert unity.asked.count("updateTable") == 0


def test_the_high_water_mark_of_row_ids_goes_along(
    catalog: UnityCatalog, unity: UnityServer
) -> None:
    create(catalog, ORDERS, SCHEMA)
    write_deltalake(_open(catalog), ROWS, mode="append")
    entry = unity.tables["main", "sales", "orders"]
    assert entry.domains["delta.rowTracking"] == {"rowIdHighWaterMark": 2}
