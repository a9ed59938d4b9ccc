"""`CatalogTransactions`: what is staged, refused, reported and left behind.

Deaths and races at every call are in `tests/stateful/test_catalog_transactions.py`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from deltalog import (
    CatalogTransactions,
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Transaction,
    write_deltalake,
)
from deltalog.catalogs import CatalogTable, FileCatalog, Name, NamedTable
from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    StorageError,
    TableNotFoundError,
    TransactionIncompleteError,
)
from deltalog.log.context import TableContext
from deltalog.operations.alter import SetTableName
from deltalog.operations.delete import Delete
from deltalog.storage.store import Store
from deltalog.table.catalog_transaction import PartState
from deltalog.testing.stores import FaultyStore, Harm, InjectedFault
from tests.support.catalog_transactions import (
    AFTER,
    BEFORE,
    NAMES,
    Fate,
    Machine,
    Place,
    PlaceCatalog,
    change,
    transactions,
)
from tests.support.facade import rows
from tests.support.logs import DictStore

ROW = [{"id": 9, "v": 9}]


@pytest.fixture
def place() -> Place:
    return Place.new()


def test_tables_are_committed_in_the_order_in_which_they_were_named(place: Place) -> None:
    with transactions(place).begin() as tx:
        for name in ("s.c", "s.a"):
            tx.table(name)
        tx.table("s.a").append(ROW)
        tx.table(("s", "c")).append(ROW)
        assert tx.table("`s`.`c`") is tx.table("s.c")
    assert list(tx.versions.items()) == [("s.c", 1), ("s.a", 1)]
    assert place.versions() == [1, 0, 1]
    assert place.journals.files == {}


def test_the_journal_stands_while_commits_are_made(place: Place) -> None:
    seen: list[list[PartState]] = []
    calls = Machine()
    change(place.copy(), calls)
    for at in range(1, calls.calls + 1):
        other = place.copy()
        machine = Machine(at, Fate.MEETS, partial(look, other, seen))
        change(other, machine)
    done, left = PartState.COMMITTED, PartState.OPEN
    for count in range(1, 4):
        assert [done] * count + [left] * (3 - count) in seen
    assert [left] * 3 in seen


def look(place: Place, seen: list[list[PartState]]) -> None:
    seen += [[part.state for part in report.parts] for report in transactions(place).unfinished()]


def test_operations_do_not_see_each_other(place: Place) -> None:
    with transactions(place).begin() as tx:
        staged = tx.table("s.a")
        staged.append(ROW)
        assert staged.do(Delete.where(None), dry_run=True)["num_deleted_rows"] == 4
        assert staged.snapshot.version == 0
    assert len(place.rows()["s.a"]) == 5


def test_one_table_needs_no_journal(place: Place) -> None:
    catalog = PlaceCatalog(place)
    journals = FaultyStore(DictStore(), InjectedFault(harm=Harm.CRASH))
    with CatalogTransactions(catalog, journals).begin() as tx:
        tx.table("s.a").append(ROW)
        tx.table("s.b")
    assert place.versions() == [1, 0, 0]
    assert journals.calls == []
    with CatalogTransactions(catalog, journals).begin():
        pass


def test_an_exception_in_the_block_leaves_all_as_it_was(place: Place) -> None:
    files = place.data_files()

    def fail() -> None:
        with transactions(place).begin() as tx:
            tx.table("s.a").append(ROW)
            tx.table("s.c").update({"v": "0"})
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert place.rows() == BEFORE
    assert place.data_files() == files
    assert place.journals.files == {}


def test_an_operation_that_fails_fails_the_transaction(place: Place) -> None:
    place.table("s.c").alter.add_constraint({"small": "v < 10"})
    files = place.data_files()

    def swallow() -> None:
        with transactions(place).begin() as tx:
            tx.table("s.a").append(ROW)
            with pytest.raises(ConstraintViolationError):
                tx.table("s.c").append([{"id": 1, "v": 11}])

    with pytest.raises(InvalidInputError, match="its WRITE failed"):
        swallow()
    assert place.rows() == BEFORE
    assert place.data_files() == files


def test_what_is_asked_for_in_a_wrong_way_is_refused(place: Place) -> None:
    begun = transactions(place).begin()
    with pytest.raises(InvalidInputError, match="can be used only in its block"):
        begun.table("s.a")
    with begun as tx:
        with pytest.raises(TableNotFoundError, match=r"s\.missing"):
            tx.table("s.missing")
        with pytest.raises(InvalidInputError, match=r"cannot stage .* of s\.a in a transaction"):
            tx.table("s.a").do(SetTableName("x"))
        with pytest.raises(InvalidInputError, match="expected the name of a table"):
            tx.table("s..a")
    with pytest.raises(InvalidInputError, match="cannot begin a transaction twice"), begun:
        pass
    place.tables["s", "other"] = place.tables["s", "a"]
    with transactions(place).begin() as tx:
        tx.table("s.a").append(ROW)
        with pytest.raises(InvalidInputError, match=r"the same table as s\.a in this transaction"):
            tx.table("s.other")
    assert place.versions() == [1, 0, 0]


def test_properties_are_those_of_every_commit(place: Place) -> None:
    options = CommitProperties(
        custom_metadata={"job": "nightly"}, app_transactions=[Transaction("nightly", 3)]
    )
    hooks = PostCommitHookProperties(write_checksum=False)
    with transactions(place).begin(options, hooks) as tx:
        tx.table("s.a").append(ROW)
        tx.table("s.b").append(ROW)
    for name in NAMES[:2]:
        table = place.table(name)
        assert table.history()[0]["job"] == "nightly"
        assert table.transaction_version("nightly") == 3
        assert table.transaction_version(f"deltalog-transaction-{tx.transaction_id}") == 1
        assert (
            "_delta_log/00000000000000000001.crc" not in place.tables[tuple(name.split("."))].files
        )

    def repeat() -> None:
        with transactions(place).begin(options) as tx:
            tx.table("s.a").append(ROW)
            tx.table("s.b").append(ROW)

    with pytest.raises(InvalidInputError, match="transactions of nightly are already recorded"):
        repeat()
    assert place.versions() == [1, 1, 0]


class Bare:
    """A catalog of somebody else, which has no place for files."""

    def __init__(self, catalog: FileCatalog) -> None:
        self._catalog = catalog

    def find(self, name: Name) -> CatalogTable | None:
        return self._catalog.find(name)

    def open(self, name: Name) -> TableContext:
        return self._catalog.open(name)


def test_other_catalogs_need_a_folder_for_journals(place: Place, tmp_path: Path) -> None:
    bare = Bare(PlaceCatalog(place))
    with pytest.raises(InvalidInputError, match="pass a directory as journals="):
        CatalogTransactions(bare)  # type: ignore[arg-type]  # enough of a catalog for this
    found = CatalogTransactions(bare, tmp_path / "journals")  # type: ignore[arg-type]
    assert found.unfinished() == []
    with found.begin() as tx:
        tx.table("s.a").append(ROW)
        tx.table("s.b").append(ROW)
    assert place.versions() == [1, 1, 0]


def test_a_directory_keeps_its_journals_beside_the_schemas(place: Place, tmp_path: Path) -> None:
    died(place)
    for folder, store in (
        ("_transactions", place.journals),
        *(("/".join(name), store) for name, store in place.tables.items()),
    ):
        for path, data in store.files.items():
            file = tmp_path / folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    catalog = FileCatalog(tmp_path)
    assert catalog.list_schemas() == [("s",)]
    (report,) = CatalogTransactions(catalog).recover()
    assert report.is_complete
    for name in NAMES:
        table = DeltaTable(NamedTable(catalog=catalog, name=tuple(name.split("."))))
        assert rows(table) == AFTER[name]
    assert list((tmp_path / "_transactions").iterdir()) == []


def journal_fault(harm: Harm, **options: object) -> FaultyStore:
    return FaultyStore(DictStore(), InjectedFault(harm=harm, verb="put_if_absent", **options))  # type: ignore[arg-type]


def staged(place: Place, journals: Store) -> None:
    with CatalogTransactions(PlaceCatalog(place), journals).begin() as tx:
        tx.table("s.a").append(ROW)
        tx.table("s.b").append(ROW)


@pytest.mark.parametrize("harm", [Harm.REFUSE, Harm.LOSE_RESPONSE])
def test_a_journal_is_written_again_if_the_store_fails(place: Place, harm: Harm) -> None:
    staged(place, journal_fault(harm))
    assert place.versions() == [1, 1, 0]


def test_a_journal_of_which_nobody_knows_stops_the_transaction(place: Place) -> None:
    files = place.data_files()
    with pytest.raises(TransactionIncompleteError, match="unknown whether its journal") as raised:
        staged(place, journal_fault(Harm.REFUSE, times=9))
    assert raised.value.left == ("s.a", "s.b")
    assert raised.value.committed == ()
    assert place.versions() == [0, 0, 0]
    assert len(place.data_files() - files) == 2  # it may still be completed


class LocalFolder(DictStore):
    """A local folder, on a disk that fails the first time."""

    is_written = False
    failures = 1

    def native_path(self, path: str) -> str:
        return f"/journals/{path}"

    def put_if_absent(self, path: str, data: bytes) -> None:
        if self.failures and self.is_written:
            super().put_if_absent(path, data)
        if self.failures:
            self.failures -= 1
            raise StorageError("the disk failed")
        super().put_if_absent(path, data)


def test_a_local_journal_that_is_not_there_leaves_all_as_it_was(place: Place) -> None:
    files = place.data_files()
    with pytest.raises(StorageError, match="the disk failed"):
        staged(place, LocalFolder())
    assert place.versions() == [0, 0, 0]
    assert place.data_files() == files


def test_a_local_journal_that_is_there_after_all_is_one(place: Place) -> None:
    journals = LocalFolder()
    journals.is_written = True
    staged(place, journals)
    assert place.versions() == [1, 1, 0]
    assert journals.files == {}


def test_reports_name_what_is_damaged(place: Place) -> None:
    name = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
    place.journals.files[f"{name}.json"] = b"{"
    found = transactions(place)
    for reports in (found.unfinished(), found.recover(), found.recover(name)):
        (report,) = reports
        assert report.transaction_id == name
        assert not report.is_complete
        assert re.search(rf"journal {name}\.json", report.problem)
    found.forget(name)
    assert found.unfinished() == []
    assert found.recover(name) == []


def died(place: Place) -> None:
    """The machine of a transaction dies after the first commit."""
    for at in range(1, 200):
        tried = place.copy()
        with suppress(DeltaError):
            change(tried, Machine(at, Fate.DIES_AFTER))
        if tried.versions() == [1, 0, 0]:
            place.tables, place.journals = tried.tables, tried.journals
            return
    raise AssertionError


def test_tables_that_are_gone_or_others_are_named(place: Place) -> None:
    died(place)
    kept = place.tables.pop(("s", "b"))
    (report,) = transactions(place).recover()
    assert [part.state for part in report.parts][1:] == [PartState.IMPOSSIBLE, PartState.OPEN]
    assert report.parts[1].reason.startswith("there is no table s.b")
    place.tables["s", "b"] = DictStore(root="memory://new")
    write_deltalake(place.tables["s", "b"], ROW)
    (report,) = transactions(place).recover()
    assert report.parts[1].reason == "another table now has this name"
    place.tables["s", "b"] = kept
    (report,) = transactions(place).recover()
    assert report.is_complete
    assert place.rows() == AFTER


def test_a_store_that_fails_leaves_a_part_open(place: Place) -> None:
    died(place)
    machine = Machine(at=4)  # after the listing, and the size and the content of the journal
    (report,) = transactions(place, machine).recover()
    assert machine.is_dead
    assert [part.state for part in report.parts] == [PartState.OPEN] * 3
    assert "the machine is dead" in report.parts[0].reason
    assert transactions(place).recover()[0].is_complete


def test_what_is_older_than_files_are_kept_is_not_committed(place: Place) -> None:
    died(place)
    (path,) = place.journals.files
    data = place.journals.files[path]
    place.journals.files[path] = re.sub(rb'"createdTime":\d+', b'"createdTime":1000', data, count=1)
    (report,) = transactions(place).recover()
    assert report.parts[1].state is PartState.IMPOSSIBLE
    assert "older than the table's retention" in report.parts[1].reason
    assert place.versions() == [1, 0, 0]


def test_catalogs_open_a_door_to_transactions(tmp_path: Path) -> None:
    catalog = FileCatalog(tmp_path)
    for name in ("a", "b"):
        write_deltalake(NamedTable(catalog=catalog, name=("s", name)), ROW)
    properties = CommitProperties(custom_metadata={"by": "test"})
    with catalog.transaction(commit_properties=properties) as tx:
        tx.table("s.a").append(ROW)
        tx.table("s.b").delete("id = 9")
    assert [DeltaTable(tmp_path / "s" / name).count() for name in ("a", "b")] == [2, 0]
    assert DeltaTable(tmp_path / "s" / "b").history(1)[0]["by"] == "test"
    elsewhere = tmp_path / "journals"
    with catalog.transaction(elsewhere) as tx:
        tx.table("s.a").append(ROW)
    assert DeltaTable(tmp_path / "s" / "a").count() == 3
