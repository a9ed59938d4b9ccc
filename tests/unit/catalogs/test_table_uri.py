"""Where callers say that a table is."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deltalog import DeltaTable, connect, write_deltalake
from deltalog.catalogs import FileCatalog, GlueCatalog, NamedTable
from deltalog.catalogs import table_uri as locations
from deltalog.errors import InvalidInputError, ObjectNotFoundError, TableNotFoundError
from deltalog.storage import open_store
from tests.support.logs import DictStore


def test_a_location_names_a_version_unless_a_table_is_called_so(tmp_path: Path) -> None:
    named = f"{tmp_path}/t@v7"
    store, at = locations.open_table_store(named, None, None)
    assert (store.root, at) == (f"{tmp_path}/t", 7)
    open_store(named).put("_delta_log/x", b"")
    store, at = locations.open_table_store(named, None, None)
    assert (store.root, at) == (named, None)
    given = DictStore()
    assert locations.open_table_store(given, None, None) == (given, None)
    options: Any = "a=b"
    with pytest.raises(InvalidInputError, match="found a str"):
        locations.open_table_store(named, options, None)


def test_a_version_is_given_once() -> None:
    assert locations.one_version("/t", None, None) is None
    assert locations.one_version("/t", 0, None) == 0
    assert locations.one_version("/t", None, 0) == 0
    with pytest.raises(InvalidInputError, match="open /t at 'latest': its location already names"):
        locations.one_version("/t", "latest", 0)


def test_a_clone_is_not_put_below_its_table() -> None:
    locations.check_elsewhere("/b", "/b", "/a")
    locations.check_elsewhere("/aa", "/aa", "/a")
    locations.check_elsewhere(DictStore(), "/a", "/a")  # whose roots say nothing
    for root in ("/a", "/a/b", "/a/"):
        with pytest.raises(InvalidInputError, match="outside of the table"):
            locations.check_elsewhere(root, root, "/a")


def test_errors_name_the_table_once() -> None:
    with pytest.raises(ObjectNotFoundError) as caught, locations.naming("/t"):
        raise ObjectNotFoundError("it is gone")
    assert caught.value.__notes__ == ["while opening /t"]
    with pytest.raises(ObjectNotFoundError) as known, locations.naming("/t"):
        raise ObjectNotFoundError("/t is gone")
    assert not hasattr(known.value, "__notes__")


@pytest.mark.parametrize("options", [[1], "a=b", {1: 2}], ids=str)
@pytest.mark.parametrize("entry", ["connect", "FileCatalog", "DeltaTable", "write_deltalake"])
def test_options_of_another_type_are_refused(tmp_path: Path, entry: str, options: Any) -> None:
    calls: dict[str, Any] = {
        "connect": partial(connect, storage_options=options),
        "FileCatalog": partial(FileCatalog, tmp_path, options),
        "DeltaTable": partial(DeltaTable, tmp_path, storage_options=options),
        "write_deltalake": partial(write_deltalake, tmp_path, {"id": [1]}, storage_options=options),
    }
    with pytest.raises(InvalidInputError, match="cannot use storage_options: expected"):
        calls[entry]()


def test_a_missing_name_lists_those_that_exist(tmp_path: Path) -> None:
    catalog = FileCatalog(tmp_path)
    write_deltalake(tmp_path / "sales" / "orders", {"id": [1]})
    for name, words in (
        (("sales", "order"), "the tables are 'orders', did you mean 'orders'"),
        (("sale", "orders"), "there is no schema sale; the schemas are 'sales'"),
    ):
        with pytest.raises(TableNotFoundError, match=re.escape(words)) as missing:
            DeltaTable(NamedTable(catalog=catalog, name=name))
        assert str(missing.value).count("did you mean") <= 1


def test_a_catalog_that_may_not_be_listed_does_not_hide_the_error(tmp_path: Path) -> None:
    class Closed(FileCatalog):
        """A catalog whose tables this user may open, but not list."""

        def list_schemas(self, catalog: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
            raise PermissionError(catalog)

    with pytest.raises(TableNotFoundError, match=r"there is no table s\.t below"):
        DeltaTable(NamedTable(catalog=Closed(tmp_path), name=("s", "t")))


def test_a_misspelled_kind_of_catalog_is_no_directory() -> None:
    with pytest.raises(InvalidInputError, match="no such directory; did you mean 'glue'"):
        connect(catalog="glu")


def test_an_option_of_a_client_is_no_argument_of_its_catalog() -> None:
    for name, words in (("regin", "client_options={'region_name'"), ("profile", "AWS_PROFILE")):
        options: Any = {name: "x"}
        with pytest.raises(TypeError, match=words):
            GlueCatalog(**options)


def test_wrong_calls_of_catalogs_say_what_to_write(tmp_path: Path) -> None:
    catalog: Any = FileCatalog(tmp_path)
    calls: dict[str, Any] = {
        "cannot use '' as the directory of a catalog": lambda: FileCatalog(""),
        "found the class FileCatalog; pass an object": lambda: connect(catalog=FileCatalog),  # type: ignore[arg-type]
        "expected a catalog, such as FileCatalog": lambda: NamedTable(
            catalog=FileCatalog,  # type: ignore[arg-type]
            name=("s", "t"),
        ),
        "schema=… for one within it": lambda: connect(database="x"),  # type: ignore[call-arg]
        "has no items: use list_tables": lambda: catalog["s"],
        "has no items: use list_tables(schema)": lambda: list(catalog),
        "has no length": lambda: len(catalog),
        "there is no DESCRIBE SCHEMA": lambda: connect(catalog=catalog).sql("DESCRIBE SCHEMA s"),
    }
    for words, call in calls.items():
        with pytest.raises((InvalidInputError, TypeError), match=re.escape(words)):
            call()
