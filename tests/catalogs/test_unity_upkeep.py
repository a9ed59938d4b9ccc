"""Upkeep of tables whose commits a Unity Catalog decides on: what it allows, and what stays."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, PrimitiveType, StructType, write_deltalake
from deltalog._util.clock import now_ms
from deltalog.catalogs.unity import UnityCatalog
from deltalog.errors import InvalidInputError
from deltalog.log.names import commit_path
from deltalog.transaction.maintenance.cleanup import cleanup_metadata
from tests.catalogs.conftest import QUICK
from tests.support.catalogs import create
from tests.support.unity_server import Entry, Mishap, UnityServer

pytestmark = pytest.mark.slow("servers are started for each case")

SCHEMA = StructType((Field("id", PrimitiveType("long")),))
ORDERS = ("sales", "orders")
ALL = ["DATA_REORGANIZATION", "DATA_CLEANUP", "METADATA_CLEANUP"]
LOSER = "123e4567-e89b-12d3-a456-426614174000"
LATER_MS = 5 * 86_400_000


def _open(catalog: UnityCatalog) -> DeltaTable:
    return DeltaTable.from_context(catalog.open(ORDERS))


def _append(catalog: UnityCatalog, *ids: int) -> None:
    write_deltalake(_open(catalog), pa.table({"id": list(ids)}), mode="append")


@pytest.fixture
def entry(catalog: UnityCatalog, unity: UnityServer) -> Entry:
    """A managed table of four versions, each of a file."""
    create(catalog, ORDERS, SCHEMA)
    for number in range(1, 4):
        _append(catalog, number)
    return unity.tables["main", "sales", "orders"]


def _ids(catalog: UnityCatalog) -> list[int]:
    found: list[Any] = _open(catalog).to_pyarrow_table()["id"].to_pylist()
    return sorted(found)


def _staged(entry: Entry) -> list[int]:
    folder = Path(entry.location.removeprefix("file://")) / "_delta_log" / "_staged_commits"
    return sorted(int(path.name.partition(".")[0]) for path in folder.iterdir())


def _stage(entry: Entry, version: int) -> None:
    """What a writer leaves that is not ratified, or not yet."""
    folder = Path(entry.location.removeprefix("file://")) / "_delta_log" / "_staged_commits"
    (folder / f"{version:020}.{LOSER}.json").write_text("{}")


OPERATIONS: dict[str, Callable[[DeltaTable], Any]] = {
    "compact": lambda table: table.optimize.compact(),
    "z-order": lambda table: table.optimize.z_order(["id"]),
    "purge": lambda table: table.optimize.purge(),
    "vacuum": lambda table: table.vacuum(),
    "cleanup": lambda table: cleanup_metadata(table.snapshot),
}


@pytest.mark.parametrize("allowed", [None, [], ["SOMETHING_NEW"]])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_not_allowed_is_refused(
    catalog: UnityCatalog,
    unity: UnityServer,
    entry: Entry,
    operation: str,
    allowed: list[str] | None,
) -> None:
    unity.allowed = allowed
    with pytest.raises(InvalidInputError, match=r"does not allow clients to run [A-Z_]+"):
        OPERATIONS[operation](_open(catalog))
    assert entry.latest == 3


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_allowed_is_done(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry, operation: str
) -> None:
    unity.allowed = ALL
    OPERATIONS[operation](_open(catalog))
    assert entry.latest == (4 if operation in {"compact", "z-order"} else 3)


def test_whoever_is_in_charge_may_allow_it_where_the_server_says_nothing(
    unity: UnityServer, entry: Entry
) -> None:
    own = UnityCatalog(
        unity.url,
        token=unity.token,
        catalog="main",
        allows_local_files=True,
        http_options=QUICK,
        maintenance=["DATA_REORGANIZATION"],
    )
    _open(own).optimize.compact()
    assert entry.latest == 4
    unity.allowed = []  # a server that says something is right
    with pytest.raises(InvalidInputError, match="DATA_REORGANIZATION"):
        _open(own).optimize.compact()
    with pytest.raises(InvalidInputError, match="expected some of DATA_REORGANIZATION"):
        UnityCatalog(unity.url, token=unity.token, maintenance=["OPTIMIZE"])


@pytest.mark.parametrize("is_allowed", [False, True])
def test_after_commits_only_what_is_allowed_is_done(
    catalog: UnityCatalog,
    unity: UnityServer,
    entry: Entry,
    caplog: pytest.LogCaptureFixture,
    *,
    is_allowed: bool,
) -> None:
    unity.allowed = ALL if is_allowed else None
    wanted = {"delta.checkpointInterval": "1", "delta.autoOptimize.autoCompact": "true"}
    _open(catalog).alter.set_table_properties(wanted)
    with caplog.at_level(logging.WARNING):
        for number in range(60):
            _append(catalog, number)
    assert caplog.text == ""
    assert (entry.latest > 64) is is_allowed  # a compaction is a version of its own
    names = [file.name for file in _open(catalog).snapshot.store.list_from("_delta_log", "")]
    assert any(".checkpoint." in name for name in names)  # needs no permission


def test_old_commits_that_are_published_go(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry
) -> None:
    unity.allowed = ALL
    _open(catalog).create_checkpoint()
    _stage(entry, 2)  # lost, and can never be ratified
    # Ratified, and not published: the writer's next request is refused, and its file is lost.
    unity.mishaps["updateTable"].extend([Mishap(), Mishap(status=400, kind="BadRequestException")])
    _append(catalog, 4)
    (Path(entry.location.removeprefix("file://")) / commit_path(4)).unlink()
    _stage(entry, 5)  # of a writer that is about to propose it
    table = _open(catalog)
    assert (table.version(), _staged(entry)) == (4, [1, 2, 2, 3, 4, 5])
    deleted = cleanup_metadata(table.snapshot, retention_ms=0, at_ms=now_ms() + LATER_MS)
    assert commit_path(0) in deleted
    assert commit_path(3) not in deleted
    assert _staged(entry) == [4, 5]
    assert _ids(catalog) == [1, 2, 3, 4]
    _append(catalog, 5)
    assert _ids(catalog) == [1, 2, 3, 4, 5]


def test_those_that_the_catalog_still_lists_stay(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry
) -> None:
    unity.allowed, unity.keeps_published = ALL, True
    for number in (4, 5):
        _append(catalog, number)
    assert sorted(entry.commits) == [4, 5]
    table = _open(catalog)
    table.create_checkpoint()
    cleanup_metadata(table.snapshot, retention_ms=0, at_ms=now_ms() + LATER_MS)
    assert _staged(entry) == [4, 5]
    assert _open(catalog).count() == 5


def test_a_creation_that_fails_leaves_no_table(catalog: UnityCatalog, unity: UnityServer) -> None:
    refused = Mishap(status=400, kind="BadRequestException")
    unity.mishaps["createTable"].append(refused)
    with pytest.raises(Exception, match="answered 400"):
        create(catalog, ORDERS, SCHEMA)
    assert unity.tables == {}
    assert len(unity.staged) == 1  # the server's to forget, and its files to delete
    create(catalog, ORDERS, SCHEMA)
    assert _open(catalog).version() == 0
