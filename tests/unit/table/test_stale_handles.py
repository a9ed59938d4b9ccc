"""Writing through a table that was opened before its directory was removed, or made anew."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake, write_files
from deltalog.errors import (
    CommitConflictError,
    DataFileMissingError,
    DeltaError,
    TableNotFoundError,
    VersionNotFoundError,
)
from deltalog.storage.fsspec_store import open_store
from deltalog.storage.store import Store
from deltalog.testing import CountingStore
from deltalog.transaction.properties import CommitProperties, Transaction
from tests.support.logs import DictStore

Act = Callable[[DeltaTable], Any]


def row(number: int) -> pa.Table:
    return pa.table({"a": pa.array([number], pa.int64())})


def _optimize(table: DeltaTable) -> None:
    table.optimize.compact()


def _appender(table: DeltaTable) -> None:
    with table.appender() as appender:
        answer = appender.append(row(7))
    answer.result()


def _transaction(table: DeltaTable) -> None:
    with table.transaction() as transaction:
        transaction.append(row(7))


def _merge(table: DeltaTable) -> None:
    merge = table.merge(row(1), "t.a = s.a", source_alias="s", target_alias="t")
    merge.when_matched_delete().execute()


def _recorded(table: DeltaTable) -> None:
    """Its application has written the version that is held, and so not the one that is there."""
    options = CommitProperties(app_transactions=[Transaction("app", 1)])
    write_deltalake(table, row(7), mode="append", commit_properties=options)


def _one_shot(table: DeltaTable) -> None:
    reader = pa.RecordBatchReader.from_batches(row(7).schema, row(7).to_batches())
    write_deltalake(table, reader, mode="append")


WRITES: dict[str, Act] = {
    "append": lambda table: write_deltalake(table, row(7), mode="append"),
    "append once": _one_shot,
    "recorded append": _recorded,
    "overwrite": lambda table: write_deltalake(table, row(7), mode="overwrite"),
    "overwrite where": lambda table: write_deltalake(
        table, row(1), mode="overwrite", predicate="a = 1"
    ),
    "delete": lambda table: table.delete("a = 1"),
    "delete all": lambda table: table.delete(),
    "dry run": lambda table: table.delete("a = 1", dry_run=True),
    "update": lambda table: table.update({"a": "a + 1"}),
    "merge": _merge,
    "commit": lambda table: table.commit(write_files(table, row(7))),
    "appender": _appender,
    "transaction": _transaction,
    "optimize": _optimize,
    "restore": lambda table: table.restore(0),
    "repair": lambda table: table.repair(),
    "vacuum": lambda table: table.vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True
    ),
    "properties": lambda table: table.alter.set_table_properties({"delta.appendOnly": "true"}),
    "checkpoint": lambda table: table.create_checkpoint(),
    "compact logs": lambda table: table.compact_logs(0, 1),
    "clean up": lambda table: table.cleanup_metadata(),
    "manifests": lambda table: table.generate(),
}


def tree(root: Path) -> dict[str, bytes]:
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def made(place: Any, versions: int, first: int = 0) -> DeltaTable:
    options = CommitProperties(app_transactions=[Transaction("app", 1)]) if first == 0 else None
    for number in range(first, first + versions):
        write_deltalake(place, row(number), mode="append", commit_properties=options)
        options = None
    return DeltaTable(place)


def held(table: DeltaTable, way: str) -> DeltaTable:
    """The table as its holder got it: opened, after a commit of its own, or of another process."""
    if way == "own":
        write_deltalake(table, row(50), mode="append")
    return pickle.loads(pickle.dumps(table)) if way == "pickled" else table


@pytest.mark.slow("every operation, on every way to make a table anew")
@pytest.mark.parametrize(
    ("way", "versions"), [("opened", 1), ("opened", 3), ("own", 4), ("own", 7), ("pickled", 2)]
)
@pytest.mark.parametrize("act", WRITES)
def test_nothing_is_written_to_a_table_that_was_made_anew(
    tmp_path: Path, act: str, versions: int, way: str
) -> None:
    place = tmp_path / "t"
    old = held(made(place, 3), way)
    shutil.rmtree(place)
    made(place, versions, first=100)
    before = tree(place)
    with pytest.raises(TableNotFoundError, match="open the table again"):
        WRITES[act](old)
    after = tree(place)
    kept = {name: data for name, data in after.items() if name in before}
    assert kept == before
    assert not [name for name in after.keys() - before.keys() if name.startswith("_delta_log")]
    assert DeltaTable(place).count() == versions
    with pytest.raises(TableNotFoundError, match="was replaced by a table with id"):
        old.update_incremental()
    # Who asks for what is there now gets it.
    old.update_incremental(same_table=False)
    write_deltalake(old, row(8), mode="append")
    assert (DeltaTable(place).version(), DeltaTable(place).count()) == (versions, versions + 1)


@pytest.mark.parametrize("act", WRITES)
def test_a_table_that_is_gone_is_not_begun_in_the_middle(tmp_path: Path, act: str) -> None:
    place = tmp_path / "t"
    old = held(made(place, 2), "own")
    shutil.rmtree(place)
    with pytest.raises(TableNotFoundError):
        WRITES[act](old)
    assert not (place / "_delta_log").exists()
    with pytest.raises(TableNotFoundError):
        old.update_incremental()
    assert DeltaTable.is_deltatable(place) is False
    assert made(place, 1).count() == 1


def _emptied(kind: str) -> Store:
    return open_store("memory://stale") if kind == "memory" else CountingStore(DictStore())


def _clear(store: Store) -> None:
    store.delete_many([file.path for file in store.list_all("")])


@pytest.mark.parametrize(("kind", "way"), [("memory", "own"), ("requests", "opened")])
@pytest.mark.parametrize("act", [name for name in WRITES if name != "manifests"])
def test_other_stores_are_asked_for_the_version(kind: str, act: str, way: str) -> None:
    store = _emptied(kind)
    _clear(store)
    old = held(made(store, 2), way)
    _clear(store)
    made(store, 1, first=100)
    with pytest.raises(TableNotFoundError, match="open the table again"):
        WRITES[act](old)
    assert DeltaTable(store).scan().to_table()["a"].to_pylist() == [100]


@pytest.mark.parametrize("act", ["append", "append once", "delete", "overwrite", "restore"])
@pytest.mark.parametrize("kind", ["memory", "requests"])
def test_a_table_that_was_set_back_goes_on_from_what_it_has(kind: str, act: str) -> None:
    store = _emptied(kind)
    _clear(store)
    old = made(store, 4)
    last = f"_delta_log/{3:020}"
    store.delete_many([f"{last}.json", f"{last}.crc"])  # of a backup without the last commit
    WRITES[act](old)
    table = DeltaTable(store)
    assert table.version() == 3
    expected = {"append": 4, "append once": 4, "delete": 2, "overwrite": 1, "restore": 1}
    assert table.count() == expected[act]


def test_a_checkpoint_of_a_version_that_was_taken_back_is_refused(tmp_path: Path) -> None:
    old = made(tmp_path, 4)
    (tmp_path / "_delta_log" / f"{3:020}.json").unlink()
    with pytest.raises(VersionNotFoundError, match="latest version is 2"):
        old.create_checkpoint()
    assert not list((tmp_path / "_delta_log").glob("*checkpoint*"))


def test_a_version_that_was_cleaned_up_is_no_base(tmp_path: Path) -> None:
    """Its next version is free, too: a commit there would be acknowledged below a checkpoint."""
    old = made(tmp_path, 2)
    new = made(tmp_path, 4, first=10)
    new.create_checkpoint()
    for version in range(4):
        for suffix in ("json", "crc"):
            (tmp_path / "_delta_log" / f"{version:020}.{suffix}").unlink()
    write_deltalake(old, row(7), mode="append")
    assert (old.version(), DeltaTable(tmp_path).version()) == (6, 6)
    assert DeltaTable(tmp_path).count() == 7


def test_a_replaced_table_of_the_same_log_is_written_to(tmp_path: Path) -> None:
    """CREATE OR REPLACE may give a table another id, in the log that it has."""
    old = made(tmp_path, 2)
    log = tmp_path / "_delta_log"
    text = (log / f"{0:020}.json").read_text()
    lines = [line for line in text.splitlines() if line.startswith('{"metaData"')]
    other = lines[0].replace(old.metadata().id, "b0f4d4a2-7f4f-4f0f-9d57-0e4cf2a7f111")
    (log / f"{2:020}.json").write_text(other + "\n")
    old.delete("a = 0")
    assert (DeltaTable(tmp_path).version(), DeltaTable(tmp_path).count()) == (3, 1)


def test_a_transaction_notices_that_its_table_is_made_anew_meanwhile(tmp_path: Path) -> None:
    for store in (tmp_path / "t", CountingStore(DictStore())):
        transaction = made(store, 3).transaction()
        transaction._begin()
        transaction.append(row(7))
        _clear(open_store(store))
        made(store, 1, first=100)
        with pytest.raises(TableNotFoundError, match="open the table again"):
            transaction.__exit__(None, None, None)
        assert DeltaTable(store).scan().to_table()["a"].to_pylist() == [100]


def test_a_transaction_notices_that_its_version_was_taken_back(tmp_path: Path) -> None:
    transaction = made(tmp_path, 3).transaction()
    transaction._begin()
    transaction.append(row(7))
    (tmp_path / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(CommitConflictError, match="rolled back"):
        transaction.__exit__(None, None, None)
    assert DeltaTable(tmp_path).count() == 2


def test_the_look_takes_no_time_of_an_append() -> None:
    """It is a request of a few bytes, sent while rows are written; a fresh table needs none."""
    store = CountingStore(DictStore())
    made(store, 2)
    store.reset()
    write_deltalake(store, row(7), mode="append")
    assert store.counts == {"read": 1, "list_from": 1, "read_many": 1, "put_if_absent": 3}
    table = DeltaTable(store)
    store.reset()
    write_deltalake(table, row(7), mode="append")
    looks = [call for call in store.calls if call.verb == "read_ranges"]
    assert [call.paths for call in looks] == [(f"_delta_log/{2:020}.json",)]
    assert looks[0].size_bytes <= 2048
    assert store.counts.get("stat", 0) == 0


@pytest.mark.parametrize("versions", [1, 3, 5])
@pytest.mark.parametrize(
    "read",
    [
        lambda table: table.history(),
        lambda table: table.history(1),
        lambda table: table.load_cdf(starting_version=0).read_all(),
        lambda table: table.load_cdf(starting_version=0, ending_version=0).read_all(),
    ],
)
def test_commits_of_another_table_are_not_read_as_its_own(
    tmp_path: Path, versions: int, read: Act
) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    place = tmp_path / "t"
    DeltaTable.create(place, row(0).schema, configuration=feed)
    old = made(place, 2)
    assert read(old) is not None
    shutil.rmtree(place)
    with pytest.raises(VersionNotFoundError):
        read(old)
    DeltaTable.create(place, row(0).schema, configuration=feed)
    made(place, versions - 1, first=1_000_000)
    with pytest.raises(VersionNotFoundError, match="open the table again"):
        read(old)
    with pytest.raises(DeltaError):
        old.to_pyarrow_table()
    old.update_incremental(same_table=False)
    assert read(old) is not None


@pytest.mark.parametrize("way", ["gone", "anew", "set back"])
@pytest.mark.parametrize("shallow", [True, False])
def test_what_is_not_there_any_more_is_not_cloned(tmp_path: Path, way: str, shallow: bool) -> None:
    place, clone = tmp_path / "t", tmp_path / "clone"
    made(place, 3)
    shutil.copytree(place, tmp_path / "backup")
    old = made(place, 2, first=3)
    shutil.rmtree(place)
    if way == "anew":
        made(place, 7, first=100)
    elif way == "set back":
        shutil.copytree(tmp_path / "backup", place)
    expected = VersionNotFoundError if way == "set back" else TableNotFoundError
    with pytest.raises(expected):
        old.clone(str(clone), shallow=shallow)
    assert not DeltaTable.is_deltatable(clone)


def test_a_version_whose_commit_was_cleaned_up_is_cloned(tmp_path: Path) -> None:
    place = tmp_path / "t"
    old = made(place, 3)
    write_deltalake(place, row(9), mode="append")
    DeltaTable(place).create_checkpoint()
    for version in range(3):
        (place / "_delta_log" / f"{version:020}.json").unlink()
    assert old.clone(str(tmp_path / "clone"), shallow=True).count() == 3


def test_files_that_are_gone_are_not_committed(tmp_path: Path) -> None:
    place = tmp_path / "t"
    table = made(place, 2)
    shutil.copytree(place, tmp_path / "backup")
    written = write_files(table, row(7))
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "backup", place)
    with pytest.raises(DataFileMissingError, match="write the rows again"):
        table.commit(written)
    assert DeltaTable(place).to_pyarrow_table().num_rows == 2
    table.commit(write_files(table, row(7)))
    assert DeltaTable(place).to_pyarrow_table().num_rows == 3


def test_versions_of_two_tables_are_not_compared(tmp_path: Path) -> None:
    place = tmp_path / "t"
    old = made(place, 3)
    assert sum(batch.num_rows for batch in old.diff(0).to_batches()) == 2
    shutil.rmtree(place)
    made(place, 2, first=100)
    with pytest.raises(VersionNotFoundError, match="was replaced in between"):
        old.diff(0)


@pytest.mark.parametrize("way", ["table", "spec"])
def test_files_of_a_table_that_is_gone_are_not_written(tmp_path: Path, way: str) -> None:
    place = tmp_path / "t"
    table = made(place, 2)
    spec = table.write_spec()
    shutil.rmtree(place)
    with pytest.raises(TableNotFoundError, match="deleted in the meantime"):
        write_files(table if way == "table" else spec, row(7))
    assert not place.exists()
