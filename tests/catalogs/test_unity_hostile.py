"""A Unity Catalog that is not to be trusted, and names that are more than names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, PrimitiveType, StructType, connect, write_deltalake
from deltalog.catalogs.unity import UnityCatalog
from deltalog.catalogs.unity.client import path_of
from deltalog.errors import (
    CatalogError,
    DeltaError,
    InvalidInputError,
    LogGapError,
    TableNotFoundError,
    UnsafePathError,
)
from deltalog.storage.http import AnswerLimits, HttpOptions, Retry
from tests.catalogs.conftest import QUICK
from tests.support.catalogs import create
from tests.support.openapi import specification
from tests.support.unity_server import Entry, Mishap, UnityServer

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = StructType((Field("id", PrimitiveType("long")),))
ORDERS = ("sales", "orders")
ROWS = pa.table({"id": [1]})
DIGITS = "\u0660" * 19 + "\u0661"  # another script's


@pytest.fixture
def entry(catalog: UnityCatalog, unity: UnityServer) -> Entry:
    """A managed table with one row."""
    create(catalog, ORDERS, SCHEMA)
    write_deltalake(DeltaTable.from_context(catalog.open(ORDERS)), ROWS, mode="append")
    return unity.tables["main", "sales", "orders"]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[UnityServer]:
    """Another server, which must get nothing."""
    other = UnityServer(specification(), f"file://{tmp_path}/other")
    yield other
    other.close()
    assert other.asked == []


ODD_NAMES = ["a/b", "a.b", "a%2Fb", "a%b", "a?b=c", "a#b", "a b", "ä", "a'b", 'a"b', "a`b", "a\\b"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_stays_one_part_of_a_path(
    catalog: UnityCatalog, unity: UnityServer, name: str
) -> None:
    created = create(catalog, ("sales", name), SCHEMA)
    assert created.name == ("sales", name)
    assert [key[2] for key in unity.tables] == [name]
    assert catalog.find(("sales", name)) is not None
    assert DeltaTable.from_context(catalog.open(("sales", name))).version() == 0
    quoted = name.replace("`", "``")
    with connect(catalog=catalog, schema="sales") as connection:
        assert connection.execute(f"SELECT * FROM `{quoted}`").fetchall() == []  # noqa: S608
    catalog.drop(("sales", name))
    assert unity.tables == {}


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_leads_to_no_other_request(
    catalog: UnityCatalog, unity: UnityServer, name: str
) -> None:
    for full in (("sales", name), (name, "orders")):
        for ask in (catalog.find, catalog.open, catalog.drop, catalog.stage):
            with pytest.raises(InvalidInputError, match="cannot use"):
                ask(full)
    assert "loadTable" not in unity.asked
    with pytest.raises(InvalidInputError, match="cannot use"):
        path_of("/x/{name}", name=name)


@pytest.mark.parametrize("name", ["a.b", "orders.x", "."])
def test_the_older_api_has_no_names_with_dots(
    unity: UnityServer, catalog: UnityCatalog, name: str
) -> None:
    unity.has_delta_api = False
    with pytest.raises(InvalidInputError, match="names with a dot are not possible"):
        catalog.find(("sales", name))
    assert "getTable" not in unity.asked


@pytest.mark.parametrize("operation", ["loadTable", "updateTable", "getTableCredentials"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_takes_the_token_elsewhere(
    entry: Entry,
    catalog: UnityCatalog,
    unity: UnityServer,
    elsewhere: UnityServer,
    operation: str,
    status: int,
) -> None:
    del entry
    table = DeltaTable.from_context(catalog.open(ORDERS))
    away = Mishap(raw=b"", status=status, headers={"Location": f"{elsewhere.url}/x"})
    unity.mishaps[operation].extend([away] * 8)
    asks: dict[str, Any] = {
        "loadTable": lambda: catalog.open(ORDERS),
        "updateTable": lambda: write_deltalake(table, ROWS, mode="append"),
        "getTableCredentials": lambda: catalog._api.lend_for_table(
            ("main", *ORDERS), entry_id(unity), "s3://bucket/x"
        ),
    }
    with pytest.raises(DeltaError, match=r"credentials are not sent|redirect") as caught:
        asks[operation]()
    assert unity.token not in str(caught.value)


def entry_id(unity: UnityServer) -> str:
    return unity.tables["main", "sales", "orders"].table_id


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("version", -1),
        ("version", 1 << 70),
        ("version", True),
        ("version", "1"),
        ("file-size", -1),
        ("file-name", "%2e%2e%2f00000000000000000001.json"),
        ("file-name", "00000000000000000001.123e4567-e89b-12d3-a456-426614174000.json\n"),
        ("file-name", f"{DIGITS}.123e4567-e89b-12d3-a456-426614174000.json"),
        ("file-name", None),
    ],
)
@pytest.mark.usefixtures("entry")
def test_a_commit_that_is_none_is_refused(
    catalog: UnityCatalog, unity: UnityServer, member: str, value: Any
) -> None:
    commit = {
        "version": 1,
        "timestamp": 1,
        "file-name": "00000000000000000001.123e4567-e89b-12d3-a456-426614174000.json",
        "file-size": 1,
        "file-modification-timestamp": 1,
        member: value,
    }
    unity.mishaps["loadTable"].append(_answer(unity, commits=[commit]))
    with pytest.raises(CatalogError, match="malformed answer"):
        catalog.open(ORDERS)


@pytest.mark.usefixtures("entry")
def test_a_commit_that_is_listed_twice_is_refused(
    catalog: UnityCatalog, unity: UnityServer
) -> None:
    commit = {
        "version": 1,
        "timestamp": 1,
        "file-name": "00000000000000000001.123e4567-e89b-12d3-a456-426614174000.json",
        "file-size": 1,
        "file-modification-timestamp": 1,
    }
    unity.mishaps["loadTable"].append(_answer(unity, commits=[commit, commit]))
    with pytest.raises(CatalogError, match="malformed answer"):
        catalog.open(ORDERS)


@pytest.mark.usefixtures("entry")
def test_a_latest_version_that_does_not_exist_is_an_error(
    catalog: UnityCatalog, unity: UnityServer
) -> None:
    unity.mishaps["loadTable"].extend([_answer(unity, **{"latest-table-version": 7})] * 8)
    with pytest.raises(LogGapError, match="expected version 7, the latest"):
        DeltaTable.from_context(catalog.open(ORDERS))


@pytest.mark.usefixtures("entry")
def test_an_older_latest_version_hides_what_was_ratified_after_it(
    catalog: UnityCatalog, unity: UnityServer
) -> None:
    unity.mishaps["loadTable"].extend([_answer(unity, **{"latest-table-version": 0})] * 2)
    assert DeltaTable.from_context(catalog.open(ORDERS)).version() == 0


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc",
        "s3://other-bucket/../x",
        "S3://bucket/a\x00b",
        "s3://bucket/%2e%2e/x\n",
        "https://169.254.169.254/latest/meta-data",
        "hdfs://host/x\tb",
        "\\\\host\\share",
    ],
)
def test_a_staged_place_is_checked_too(
    catalog: UnityCatalog, unity: UnityServer, location: str
) -> None:
    careful = UnityCatalog(unity.url, token=unity.token, catalog="main", http_options=QUICK)
    answer = {
        "table-id": "123e4567-e89b-12d3-a456-426614174000",
        "table-type": "MANAGED",
        "location": location,
        "storage-credentials": [],
        "required-protocol": {},
        "required-properties": {},
    }
    unity.mishaps["createStagingTable"].append(_raw(answer))
    with pytest.raises(UnsafePathError):
        careful.stage(("sales", "new"))
    assert catalog.find(("sales", "new")) is None


def test_what_is_lent_names_no_other_server(catalog: UnityCatalog, unity: UnityServer) -> None:
    lent = {
        "prefix": "s3://bucket/t",
        "operation": "READ",
        "config": {
            "s3.access-key-id": "key",
            "s3.endpoint": "http://elsewhere",
            "endpoint_url": "http://elsewhere",
            "aws_endpoint_url": "http://elsewhere",
            "client_kwargs": "{}",
        },
    }
    unity.mishaps["getTableCredentials"].append(_raw({"storage-credentials": [lent]}))
    (found,) = catalog._api.lend_for_table(("main", *ORDERS), "id", "s3://bucket/t")
    assert found.options == {"aws_access_key_id": "key"}


@pytest.mark.usefixtures("entry")
def test_an_answer_of_any_request_has_an_end(unity: UnityServer) -> None:
    limits = AnswerLimits(message_bytes=20_000)
    careful = UnityCatalog(
        unity.url,
        token=unity.token,
        catalog="main",
        allows_local_files=True,
        http_options=HttpOptions(retry=Retry(attempts=1), limits=limits),
    )
    padding = {"comment-of-nobody": "x" * 30_000}
    unity.mishaps["loadTable"].append(_answer(unity, **padding))
    with pytest.raises(CatalogError, match="longer than 20000 bytes"):
        careful.open(ORDERS)


def test_pages_without_end_are_left(catalog: UnityCatalog, unity: UnityServer) -> None:
    page = _raw({"tables": [{"name": "a"}], "next_page_token": "again"})
    unity.mishaps["listTables"].extend([page] * 5)
    with pytest.raises(CatalogError, match="do not end"):
        catalog.list_tables(("sales",))


def test_another_table_behind_a_name_takes_no_commit(
    entry: Entry, catalog: UnityCatalog, unity: UnityServer
) -> None:
    table = DeltaTable.from_context(catalog.open(ORDERS))
    entry.table_id = "123e4567-e89b-12d3-a456-426614174000"
    with pytest.raises(TableNotFoundError):
        write_deltalake(table, ROWS, mode="append")
    assert unity.tables["main", "sales", "orders"].latest == 1


def _answer(unity: UnityServer, **more: Any) -> Mishap:
    """The answer to `loadTable`, with other members."""
    shown = unity._shown(unity.tables["main", "sales", "orders"])
    return _raw({**shown, **more})


def _raw(value: Any) -> Mishap:
    return Mishap(raw=json.dumps(value).encode())


def test_a_commit_that_nobody_ratified_is_not_read(
    entry: Entry, catalog: UnityCatalog, unity: UnityServer
) -> None:
    unity.keeps_published = True
    write_deltalake(DeltaTable.from_context(catalog.open(ORDERS)), ROWS, mode="append")
    assert list(entry.commits) == [2]
    # Somebody writes past the catalog: over a version of it, and a version that it does not have.
    log = Path(entry.location.removeprefix("file://")) / "_delta_log"
    (log / f"{2:020}.json").write_text('{"commitInfo": {"operation": "FORGED"}}')
    (log / f"{3:020}.json").write_text('{"commitInfo": {"operation": "FORGED"}}')
    table = DeltaTable.from_context(catalog.open(ORDERS))
    assert (table.version(), table.count()) == (2, 2)
    assert [commit["operation"] for commit in table.history(1)] == ["WRITE"]
