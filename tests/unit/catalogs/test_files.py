"""A directory of tables as a catalog."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, PrimitiveType, StructType, write_deltalake
from deltalog.catalogs import FileCatalog, NamedTable, TableCatalog, TableType
from deltalog.errors import InvalidInputError, StorageError, TableExistsError, TableNotFoundError
from tests.support.catalogs import create
from tests.support.emulators import Emulator

ROWS = pa.table({"id": [1, 2, 3]})
SCHEMA = StructType((Field("id", PrimitiveType("long")),))


@pytest.fixture
def catalog(tmp_path: Path) -> FileCatalog:
    return FileCatalog(tmp_path / "tables")


def test_it_is_a_table_catalog(catalog: FileCatalog) -> None:
    assert isinstance(catalog, TableCatalog)
    with pytest.raises(InvalidInputError, match="there is no such directory"):
        catalog.list_schemas()
    assert catalog.find(("sales", "orders")) is None
    with pytest.raises(TableNotFoundError, match=r"sales\.orders"):
        catalog.open(("sales", "orders"))


def test_a_table_is_created_listed_and_opened(catalog: FileCatalog, tmp_path: Path) -> None:
    made = create(catalog, ("sales", "orders"), SCHEMA, {"team": "blue"})
    assert (made.table_type, made.properties, made.columns) == (
        TableType.MANAGED,
        {"team": "blue"},
        SCHEMA,
    )
    (tmp_path / "tables" / "sales" / "no table").mkdir()
    table = DeltaTable.from_context(catalog.open(("sales", "orders")))
    write_deltalake(table, ROWS, mode="append")
    assert catalog.list_schemas() == [("sales",)]
    assert catalog.list_schemas(("other",)) == []
    assert catalog.list_tables(("sales",)) == [("sales", "orders")]
    found = catalog.find(("sales", "orders"))
    assert found is not None
    assert DeltaTable(found.location).to_pyarrow_table().num_rows == 3
    with pytest.raises(TableExistsError, match=r"sales\.orders"):
        catalog.stage(("sales", "orders"))


@pytest.mark.parametrize(
    "part", ["..", ".", "", "a/b", "a\\b", "C:", ".hidden", "_delta_log", "a\x00", "a\n", " a"]
)
def test_names_stay_in_the_directory(catalog: FileCatalog, part: str) -> None:
    for name in ((part, "t"), ("s", part)):
        with pytest.raises(InvalidInputError):
            catalog.find(name)
        with pytest.raises(InvalidInputError):
            catalog.stage(name)
    with pytest.raises(InvalidInputError):
        catalog.list_tables((part,))


@pytest.mark.parametrize("name", [(), ("t",), ("a", "b", "c")])
def test_names_have_two_parts(catalog: FileCatalog, name: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError, match="2 names"):
        catalog.find(name)


def test_dropping_deletes_only_when_asked(catalog: FileCatalog, tmp_path: Path) -> None:
    create(catalog, ("sales", "orders"), SCHEMA)
    create(catalog, ("sales", "kept"), SCHEMA)
    table = DeltaTable.from_context(catalog.open(("sales", "orders")))
    write_deltalake(table, ROWS, mode="append")
    with pytest.raises(InvalidInputError, match="purge=True"):
        catalog.drop(("sales", "orders"))
    assert table.to_pyarrow_table().num_rows == 3
    catalog.drop(("sales", "orders"), purge=True)
    assert not (tmp_path / "tables" / "sales" / "orders").exists()
    assert catalog.list_tables(("sales",)) == [("sales", "kept")]
    with pytest.raises(TableNotFoundError):
        catalog.drop(("sales", "orders"), purge=True)


def test_a_table_is_renamed_where_the_store_can(catalog: FileCatalog) -> None:
    create(catalog, ("sales", "old"), SCHEMA)
    create(catalog, ("sales", "taken"), SCHEMA)
    with pytest.raises(TableExistsError):
        catalog.rename(("sales", "old"), ("sales", "taken"))
    catalog.rename(("sales", "old"), ("archive", "new"))
    assert catalog.list_tables(("sales",)) == [("sales", "taken")]
    assert catalog.list_tables(("archive",)) == [("archive", "new")]


def test_files_are_not_replaced_by_a_rename(catalog: FileCatalog, tmp_path: Path) -> None:
    create(catalog, ("sales", "old"), SCHEMA)
    target = tmp_path / "tables" / "sales" / "new"
    target.mkdir()
    (target / "mine.txt").write_text("kept")
    with pytest.raises(StorageError, match="cannot rename"):
        catalog.rename(("sales", "old"), ("sales", "new"))
    assert (target / "mine.txt").read_text() == "kept"
    assert catalog.find(("sales", "old")) is not None


def test_what_a_directory_cannot_do_is_refused_by_name(catalog: FileCatalog) -> None:
    create(catalog, ("s", "t"), SCHEMA)
    with pytest.raises(InvalidInputError, match="location"):
        catalog.stage(("s", "u"), "/elsewhere")
    with pytest.raises(InvalidInputError, match="relocate"):
        catalog.relocate(("s", "t"), "/elsewhere")


def test_in_another_process_it_is_the_same(catalog: FileCatalog) -> None:
    create(catalog, ("s", "t"), SCHEMA)
    assert pickle.loads(pickle.dumps(catalog)).list_tables(("s",)) == [("s", "t")]


def test_on_an_object_store(s3: Emulator) -> None:
    catalog = FileCatalog(s3.url, s3.options)
    create(catalog, ("sales", "orders"), SCHEMA)
    write_deltalake(DeltaTable.from_context(catalog.open(("sales", "orders"))), ROWS, mode="append")
    assert catalog.list_schemas() == [("sales",)]
    assert catalog.list_tables(("sales",)) == [("sales", "orders")]
    with pytest.raises(InvalidInputError, match="cannot rename a folder"):
        catalog.rename(("sales", "orders"), ("sales", "new"))
    catalog.drop(("sales", "orders"), purge=True)
    assert catalog.list_tables(("sales",)) == []


def test_the_usual_functions_take_a_table_of_any_catalog(catalog: FileCatalog) -> None:
    orders = NamedTable(catalog=catalog, name=("sales", "orders"))
    assert not DeltaTable.is_deltatable(orders)
    with pytest.raises(TableNotFoundError):
        DeltaTable(orders)
    write_deltalake(orders, ROWS, configuration={"team": "blue"})
    write_deltalake(orders, ROWS, mode="append")
    table = DeltaTable(orders, default_timezone="Europe/Berlin")
    assert (table.version(), table.snapshot.context.time_zone) == (1, "Europe/Berlin")
    assert DeltaTable(NamedTable(catalog=catalog, name=orders.name, at=0)).version() == 0
    empty = NamedTable(catalog=catalog, name=("sales", "empty"))
    assert DeltaTable.create(empty, SCHEMA, cluster_by=["id"]).version() == 0
    assert DeltaTable.is_deltatable(empty)
    assert catalog.list_tables(("sales",)) == [("sales", "empty"), ("sales", "orders")]
    with pytest.raises(TableExistsError):
        write_deltalake(orders, ROWS)
    with pytest.raises(InvalidInputError, match="pass them to its catalog"):
        DeltaTable(orders, storage_options={})
