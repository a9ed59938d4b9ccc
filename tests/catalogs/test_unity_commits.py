"""Commits that a Unity Catalog decides on, when servers and writers fail."""

from __future__ import annotations

import logging
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import (
    CatalogTransactions,
    DeltaTable,
    Field,
    PrimitiveType,
    StructType,
    write_deltalake,
)
from deltalog.catalogs.unity import UnityCatalog
from deltalog.errors import (
    CatalogAccessError,
    CatalogError,
    CatalogUnavailableError,
    CommitFailedError,
    CommitOutcomeUnknownError,
    InvalidInputError,
    MalformedLogError,
    TableExistsError,
    TableNotFoundError,
    TransactionIncompleteError,
    UnsafePathError,
)
from deltalog.log.context import TableContext
from deltalog.log.names import commit_path
from deltalog.testing.stores import FaultyStore, Harm, InjectedFault
from tests.support.catalogs import create
from tests.support.unity_server import TOKEN, Entry, Mishap, UnityServer

SCHEMA = StructType((Field("id", PrimitiveType("long")),))
ORDERS = ("sales", "orders")
UNKNOWN = "CommitStateUnknownException"
MISHAPS = (
    Mishap(is_lost=True),
    Mishap(status=500, kind=UNKNOWN),
    Mishap(status=500, kind=UNKNOWN, is_done=True),
    Mishap(status=503, is_done=True),
    Mishap(status=429, kind="TooManyRequestsException", headers={"Retry-After": "0"}),
)
RACE = os.environ.get("DELTALOG_CATALOG_RACE", "16x3")


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)})


def _open(catalog: UnityCatalog) -> DeltaTable:
    return DeltaTable.from_context(catalog.open(ORDERS))


def _ids(catalog: UnityCatalog) -> list[int]:
    found: list[Any] = _open(catalog).to_pyarrow_table().column("id").to_pylist()
    return sorted(found)


@pytest.fixture
def entry(catalog: UnityCatalog, unity: UnityServer) -> Entry:
    """A managed table with one row."""
    create(catalog, ORDERS, SCHEMA)
    write_deltalake(_open(catalog), _rows(1), mode="append")
    return unity.tables["main", "sales", "orders"]


def _unpublish(entry: Entry, version: int) -> Path:
    """As if the writer had died after its commit was ratified: nothing is published."""
    root = Path(entry.location.removeprefix("file://"))
    published = root / commit_path(version)
    published.unlink()
    (staged,) = (root / "_delta_log" / "_staged_commits").glob(f"{version:020}.*.json")
    entry.commits[version] = {
        "version": version,
        "timestamp": 1,
        "file-name": staged.name,
        "file-size": staged.stat().st_size,
        "file-modification-timestamp": 1,
    }
    entry.published = version - 1
    return published


@pytest.mark.parametrize("status", [429, 503, 500])
def test_a_busy_server_is_asked_again(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry, status: int
) -> None:
    kind = "TooManyRequestsException" if status == 429 else "InternalServerErrorException"
    busy = Mishap(status=status, kind=kind, headers={"Retry-After": "0"})
    for operation in ("loadTable", "updateTable", "getTableCredentials"):
        unity.mishaps[operation].extend([busy, busy])
    write_deltalake(_open(catalog), _rows(2), mode="append")
    assert (_ids(catalog), entry.latest) == ([1, 2], 2)


@pytest.mark.protocol("D-27")
def test_an_answer_is_lost_and_the_commit_is_made_once(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry
) -> None:
    table = _open(catalog)
    unity.mishaps["updateTable"].append(Mishap(is_lost=True))
    write_deltalake(table, _rows(2), mode="append")
    assert (_ids(catalog), entry.latest, table.version()) == ([1, 2], 2, 2)


@pytest.mark.protocol("D-27")
def test_all_answers_are_lost_and_the_commit_is_found(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry
) -> None:
    table = _open(catalog)
    unity.mishaps["updateTable"].extend([Mishap(is_lost=True)] * 4)
    write_deltalake(table, _rows(2), mode="append")
    assert (_ids(catalog), entry.latest) == ([1, 2], 2)


@pytest.mark.protocol("D-27")
@pytest.mark.parametrize("is_done", [False, True])
def test_the_server_does_not_know_what_became_of_a_commit(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry, is_done: bool
) -> None:
    unknown = Mishap(status=500, kind="CommitStateUnknownException", is_done=is_done)
    unity.mishaps["updateTable"].append(unknown)
    before = unity.asked.count("updateTable")
    table = _open(catalog)
    write_deltalake(table, _rows(2), mode="append")
    assert (_ids(catalog), entry.latest, table.version()) == ([1, 2], 2, 2)
    # Asked once, looked; asked again and told what is published if it was not there.
    assert unity.asked.count("updateTable") - before == (1 if is_done else 3)


def test_an_unknown_outcome_is_said_to_be_one(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry
) -> None:
    table = _open(catalog)
    unknown = Mishap(status=500, kind="CommitStateUnknownException")
    unity.mishaps["updateTable"].extend([unknown] * 4)
    with pytest.raises(CommitOutcomeUnknownError, match="may or may not have been committed"):
        write_deltalake(table, _rows(2), mode="append")
    assert entry.latest == 1


@pytest.mark.protocol("B-56", "D-27")
def test_of_two_writers_both_get_in(catalog: UnityCatalog, entry: Entry) -> None:
    one, other = _open(catalog), _open(catalog)
    write_deltalake(one, _rows(2), mode="append")
    write_deltalake(other, _rows(3), mode="append")
    assert (_ids(catalog), other.version(), entry.latest) == ([1, 2, 3], 3, 3)


@pytest.mark.protocol("D-34")
def test_of_two_that_conflict_the_later_is_evaluated_anew(
    catalog: UnityCatalog, entry: Entry
) -> None:
    one, other = _open(catalog), _open(catalog)
    one.update({"id": "id + 10"})
    other.delete("id = 11")
    assert (_ids(catalog), entry.latest) == ([], 3)


def test_what_a_dead_writer_left_is_read_and_published(catalog: UnityCatalog, entry: Entry) -> None:
    published = _unpublish(entry, 1)
    assert _ids(catalog) == [1]
    write_deltalake(_open(catalog), _rows(2), mode="append")
    assert published.is_file()
    assert (entry.published, entry.commits, _ids(catalog)) == (2, {}, [1, 2])


def _set_back(entry: Entry, version: int) -> Path:
    """As if the catalog had been restored from a backup: it knows nothing after a version."""
    entry.latest = entry.published = version
    entry.commits = {number: one for number, one in entry.commits.items() if number <= version}
    entry.names = {number: name for number, name in entry.names.items() if number <= version}
    return Path(entry.location.removeprefix("file://"))


def _tree(root: Path) -> dict[str, bytes]:
    log = [path for path in (root / "_delta_log").glob("*") if path.is_file()]
    return {path.name: path.read_bytes() for path in log}


@pytest.mark.parametrize("lost", [1, 2])
def test_a_catalog_that_was_set_back_takes_no_commit(
    catalog: UnityCatalog, entry: Entry, lost: int
) -> None:
    for number in range(2, 4):
        write_deltalake(_open(catalog), _rows(number), mode="append")
    root = _set_back(entry, 3 - lost)
    before = _tree(root)
    for act in (
        lambda: write_deltalake(_open(catalog), _rows(9), mode="append"),
        lambda: _open(catalog).delete("id = 1"),
    ):
        with pytest.raises(CommitFailedError, match=rf"version {4 - lost} of .* rolled back"):
            act()
    assert (entry.latest, entry.commits, _tree(root)) == (3 - lost, {}, before)
    assert _ids(catalog) == list(range(1, 4 - lost))
    # Somebody decides which commits count.
    for version in range(4 - lost, 4):
        for name in (commit_path(version), commit_path(version).replace(".json", ".crc")):
            (root / name).unlink(missing_ok=True)
    write_deltalake(_open(catalog), _rows(9), mode="append")
    assert _ids(catalog) == [*range(1, 4 - lost), 9]


@pytest.mark.parametrize("is_same", [True, False])
def test_a_published_commit_is_compared_with_the_ratified_one(
    catalog: UnityCatalog, entry: Entry, is_same: bool
) -> None:
    published = _unpublish(entry, 1)
    root = Path(entry.location.removeprefix("file://"))
    (staged,) = (root / "_delta_log" / "_staged_commits").glob(f"{1:020}.*.json")
    data = staged.read_bytes()
    # Another writer may leave a line end out; another transaction is another commit.
    other = data.rstrip(b"\n") if is_same else data.replace(b'"txnId":"', b'"txnId":"0')
    published.write_bytes(other)
    if is_same:
        write_deltalake(_open(catalog), _rows(2), mode="append")
        assert (entry.published, _ids(catalog)) == (2, [1, 2])
        return
    with pytest.raises(CommitOutcomeUnknownError, match="cannot publish version 1 of"):
        write_deltalake(_open(catalog), _rows(2), mode="append")
    with pytest.raises(MalformedLogError, match="cannot publish version 1 of"):
        catalog.publish(ORDERS)
    # What was ratified is not forgotten, and its files are kept.
    assert sorted(entry.commits) == [1, 2]
    assert _ids(catalog) == [1, 2]
    assert published.read_bytes() == other


def test_commits_are_published_on_request(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry
) -> None:
    published = _unpublish(entry, 1)
    assert catalog.publish(ORDERS) == 1
    assert published.is_file()
    assert entry.published == 1
    create(catalog, ("sales", "mine"), SCHEMA, location=f"{unity.warehouse}/mine")
    with pytest.raises(InvalidInputError, match="does not ratify them"):
        catalog.publish(("sales", "mine"))


def test_a_full_catalog_is_emptied_first(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry
) -> None:
    _unpublish(entry, 1)
    table = _open(catalog)
    unity.most_unpublished = 1
    write_deltalake(table, _rows(2), mode="append")
    assert (_ids(catalog), entry.published) == ([1, 2], 2)


def test_a_catalog_that_stays_full_is_an_error_with_its_name(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry
) -> None:
    table = _open(catalog)
    unity.most_unpublished = 0
    with pytest.raises(CatalogUnavailableError, match="ResourceExhaustedException"):
        write_deltalake(table, _rows(2), mode="append")
    assert (entry.latest, _ids(catalog)) == (1, [1])


def test_a_server_that_forgets_late_is_no_trouble(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry
) -> None:
    unity.keeps_published = True
    for number in range(2, 6):
        write_deltalake(_open(catalog), _rows(number), mode="append")
    assert sorted(entry.commits) == [2, 3, 4, 5]
    assert _ids(catalog) == [1, 2, 3, 4, 5]
    assert _open(catalog).version() == 5


def test_a_commit_stands_although_it_cannot_be_published(
    catalog: UnityCatalog,
    unity: UnityServer,
    entry: Entry,
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = _open(catalog)
    refused = Mishap(status=400, kind="BadRequestException")
    unity.mishaps["updateTable"].extend([Mishap(), refused])
    with caplog.at_level(logging.WARNING):
        write_deltalake(table, _rows(2), mode="append")
    assert "they remain valid" in caplog.text
    assert (table.version(), entry.latest, entry.published) == (2, 2, 1)
    write_deltalake(table, _rows(3), mode="append")
    assert (_ids(catalog), entry.published) == ([1, 2, 3], 3)


def test_a_refused_commit_is_certainly_not_made(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry
) -> None:
    table = _open(catalog)
    unity.mishaps["updateTable"].append(Mishap(status=400, kind="BadRequestException"))
    with pytest.raises(CatalogError, match="answered 400") as caught:
        write_deltalake(table, _rows(2), mode="append")
    assert not isinstance(caught.value, CommitFailedError)
    assert entry.latest == 1


def test_a_token_that_may_only_read(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry
) -> None:
    table = _open(catalog)
    denied = Mishap(status=403, kind="PermissionDeniedException")
    unity.mishaps["updateTable"].append(denied)
    unity.is_read_only = True
    with pytest.raises(CatalogAccessError, match="answered 403"):
        write_deltalake(table, _rows(2), mode="append")
    assert (entry.latest, _ids(catalog)) == (1, [1])


def test_another_table_of_the_same_name_is_left_alone(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry
) -> None:
    table = _open(catalog)
    catalog.drop(ORDERS)
    create(catalog, ORDERS, SCHEMA)
    with pytest.raises(TableNotFoundError, match="another table has its name"):
        write_deltalake(table, _rows(2), mode="append")
    assert unity.tables["main", "sales", "orders"].latest == 0
    assert entry.latest == 1


def test_a_table_is_dropped_while_it_is_written(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry
) -> None:
    table = _open(catalog)
    dropped = Mishap(before=unity.tables.clear)
    unity.mishaps["updateTable"].append(dropped)
    with pytest.raises(TableNotFoundError, match="no such table any more"):
        write_deltalake(table, _rows(2), mode="append")
    assert entry.latest == 1


@pytest.mark.parametrize("operation", ["createTable", "renameTable"])
def test_a_lost_answer_of_other_requests(
    catalog: UnityCatalog, unity: UnityServer, operation: str
) -> None:
    if operation == "renameTable":
        create(catalog, ("sales", "old"), SCHEMA)
    unity.mishaps[operation].append(Mishap(is_lost=True))
    if operation == "renameTable":
        catalog.rename(("sales", "old"), ORDERS)
    else:
        create(catalog, ORDERS, SCHEMA)
    assert catalog.list_tables(("sales",)) == [ORDERS]


def test_a_staged_table_takes_version_0_alone(catalog: UnityCatalog) -> None:
    staged = catalog.stage(ORDERS)
    assert staged.context.committer is not None
    with pytest.raises(InvalidInputError, match="not registered yet"):
        staged.context.committer.commit(staged.context.store, 1, b"{}")


@pytest.mark.parametrize(
    "name",
    [
        "../../../elsewhere/00000000000000000001.json",
        "00000000000000000001.json",
        "00000000000000000002.123e4567-e89b-12d3-a456-426614174000.json",
        "00000000000000000001.123e4567-e89b-12d3-a456-426614174000.json/../x",
        "x",
        "",
    ],
)
def test_a_commit_is_read_from_its_directory_alone(
    catalog: UnityCatalog, entry: Entry, name: str
) -> None:
    _unpublish(entry, 1)
    entry.commits[1]["file-name"] = name
    with pytest.raises(CatalogError, match="staged commit"):
        catalog.open(ORDERS)


@pytest.mark.parametrize("versions", [(1, 3), (2, 3)])
def test_commits_with_gaps_are_refused(
    catalog: UnityCatalog, entry: Entry, versions: tuple[int, int]
) -> None:
    _unpublish(entry, 1)
    held = entry.commits.pop(1)
    for version in versions:
        name = f"{version:020}.123e4567-e89b-12d3-a456-426614174000.json"
        entry.commits[version] = {**held, "version": version, "file-name": name}
    entry.latest = 4 if versions == (2, 3) else 3
    with pytest.raises(CatalogError, match="malformed answer"):
        catalog.open(ORDERS)


def test_a_location_does_not_change_under_an_open_table(
    catalog: UnityCatalog, entry: Entry, tmp_path: Path
) -> None:
    table = _open(catalog)
    entry.location = f"file://{tmp_path}/elsewhere"
    table.update_incremental()
    assert table.to_pyarrow_table().num_rows == 1
    assert not (tmp_path / "elsewhere").exists()


def test_local_files_need_the_callers_word(unity: UnityServer, entry: Entry) -> None:
    del entry
    careful = UnityCatalog(unity.url, token=unity.token, catalog="main")
    with pytest.raises(UnsafePathError, match="allows_local_files=True"):
        careful.open(ORDERS)
    with pytest.raises(UnsafePathError, match="allows_local_files=True"):
        careful.stage(("sales", "new"))


@pytest.mark.slow("processes race")
@pytest.mark.parametrize("harm", [0.0, 0.3], ids=["well", "with mishaps"])
def test_writers_race_and_lose_nothing(
    catalog: UnityCatalog, unity: UnityServer, entry: Entry, harm: float
) -> None:
    """DELTALOG_CATALOG_RACE=16x50 makes it long."""
    writers, commits = map(int, RACE.split("x"))
    chance = random.Random(7)
    unity.mishaps["updateTable"].extend(
        chance.choice(MISHAPS) if chance.random() < harm else Mishap()
        for _ in range(3 * writers * commits)
    )
    start = threading.Barrier(writers)

    def write(writer: int) -> None:
        table = _open(catalog)
        start.wait()
        for number in range(commits):
            write_deltalake(table, _rows(1000 * (writer + 1) + number), mode="append")

    with ThreadPoolExecutor(writers) as pool:
        for done in [pool.submit(write, number) for number in range(writers)]:
            done.result()
    wanted = [1000 * (one + 1) + number for one in range(writers) for number in range(commits)]
    assert _ids(catalog) == sorted([1, *wanted])
    assert entry.latest == 1 + writers * commits
    table = _open(catalog)
    assert len(table.history()) == table.version() + 1


def test_a_second_creation_of_a_name_fails(catalog: UnityCatalog, entry: Entry) -> None:
    del entry
    with pytest.raises(TableExistsError):
        create(catalog, ORDERS, SCHEMA)


class CutOff(UnityCatalog):
    """A catalog as somebody sees it who loses one of the stores before a commit of it."""

    lost: tuple[str, ...] = ()

    def open(self, name: tuple[str, ...]) -> TableContext:
        context = super().open(name)
        if name != self.lost:
            return context
        fault = InjectedFault(harm=Harm.CRASH, verb="put_if_absent", path="_staged_commits")
        return replace(context, store=FaultyStore(context.store, fault))


@pytest.mark.parametrize("lost", [(), ORDERS, ("sales", "items")])
def test_several_managed_tables_are_committed_and_recovered(
    catalog: UnityCatalog, unity: UnityServer, tmp_path: Path, lost: tuple[str, ...]
) -> None:
    names = (ORDERS, ("sales", "items"))
    for name in names:
        create(catalog, name, SCHEMA)
        write_deltalake(DeltaTable.from_context(catalog.open(name)), _rows(1, 2), mode="append")
    writer = CutOff(unity.url, token=TOKEN, catalog="main", allows_local_files=True)
    writer.lost = lost
    tx = CatalogTransactions(writer, tmp_path / "journals").begin()
    with pytest.raises(TransactionIncompleteError) if lost else nullcontext() as raised, tx:
        tx.table("sales.orders").append(_rows(3))
        tx.table("sales.items").delete("id = 1")
    if raised is not None:
        assert raised.value.left[0] == ".".join(lost)
    reports = CatalogTransactions(catalog, tmp_path / "journals").recover()
    assert [report.is_complete for report in reports] == [True] * bool(lost)
    found: list[list[Any]] = [
        DeltaTable.from_context(catalog.open(name)).to_pyarrow_table()["id"].to_pylist()
        for name in names
    ]
    assert [sorted(ids) for ids in found] == [[1, 2, 3], [2]]
    assert [unity.tables["main", *name].latest for name in names] == [2, 2]
