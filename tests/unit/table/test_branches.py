"""Branches: what main shows, what is published, and when nothing is."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import (
    AuditFailedError,
    BranchClosedError,
    BranchExistsError,
    BranchNotFoundError,
    CommitConflictError,
    DataFileMissingError,
    InvalidInputError,
    MalformedLogError,
    MetadataChangedError,
)
from deltalog.log.branches import BranchState, branch_of, on_main, set_state
from deltalog.testing.stores import CountingStore

NUM_ROWS = 1_000
VECTORS = {"delta.enableDeletionVectors": "true", "delta.enableRowLevelConcurrency": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}


def rows_of(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([float(i) for i in ids])})


def make(path: Path, **configuration: str) -> DeltaTable:
    write_deltalake(path, rows_of(*range(NUM_ROWS)), configuration=configuration)
    return DeltaTable(path)


def ids_of(table: DeltaTable | Path) -> list[int]:
    found = table if isinstance(table, DeltaTable) else DeltaTable(table)
    ids: list[Any] = found.to_pyarrow_table(columns=["id"])["id"].to_pylist()
    return sorted(ids)


@pytest.fixture(params=["plain", "vectors", "feed", "row ids", "mapped", "v2"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> DeltaTable:
    given: dict[str, dict[str, str]] = {
        "plain": {},
        "vectors": VECTORS,
        "feed": FEED,
        "row ids": ROW_IDS,
        "mapped": {"delta.columnMapping.mode": "name"},
        "v2": {"delta.checkpointPolicy": "v2"},
    }
    return make(tmp_path / "t", **given[request.param])


def change(draft: DeltaTable) -> list[int]:
    """Change rows in every way; the ids that the branch has afterwards."""
    write_deltalake(draft, rows_of(NUM_ROWS, NUM_ROWS + 1), mode="append")
    draft.update_incremental()
    draft.delete(f"id = 1 OR id = {NUM_ROWS}")
    draft.update({"v": "-1.0"}, predicate="id = 2")
    draft.merge(
        rows_of(3, 5_000), "t.id = s.id", source_alias="s", target_alias="t"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    draft.optimize.compact()
    return sorted({*range(NUM_ROWS)} - {1} | {NUM_ROWS + 1, 5_000})


def test_main_is_unchanged_until_one_commit_has_everything(table: DeltaTable) -> None:
    path = Path(table.table_uri)
    draft = table.branch("nightly")
    wanted = change(draft)
    assert ids_of(draft) == wanted
    assert ids_of(path) == [*range(NUM_ROWS)]
    assert DeltaTable(path).version() == 0
    found = draft.publish()
    assert (found.version, found.was_published) == (1, False)
    main = DeltaTable(path)
    assert ids_of(main) == wanted
    assert main.to_pyarrow_table(filters=[("id", "=", 2)])["v"].to_pylist() == [-1.0]
    assert main.history(1)[0]["operation"] == "PUBLISH BRANCH"
    assert main.branches() == []
    write_deltalake(path, rows_of(7_000), mode="append")
    assert ids_of(path) == [*wanted, 7_000]


def test_a_second_publish_finds_the_first(table: DeltaTable) -> None:
    draft = table.branch("nightly")
    draft.delete("id = 1")
    assert draft.publish().version == 1
    again = draft.publish()
    assert (again.version, again.was_published) == (1, True)
    assert DeltaTable(table.table_uri).version() == 1


def test_an_append_is_blind(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("nightly")
    write_deltalake(draft, rows_of(5_000), mode="append")
    table.delete("id = 1")
    assert draft.publish().version == 2
    assert DeltaTable(tmp_path / "t").history(1)[0]["isBlindAppend"] is True
    assert ids_of(tmp_path / "t") == sorted({*range(NUM_ROWS), 5_000} - {1})


def test_other_rows_of_one_file_do_not_conflict(tmp_path: Path) -> None:
    table = make(tmp_path / "t", **VECTORS)
    draft = table.branch("nightly")
    draft.delete("id = 1")
    table.delete("id = 2")
    draft.publish()
    assert ids_of(tmp_path / "t") == [0, *range(3, NUM_ROWS)]


@pytest.mark.parametrize("configuration", [{}, VECTORS])
def test_the_same_row_conflicts_and_the_branch_remains(
    tmp_path: Path, configuration: dict[str, str]
) -> None:
    table = make(tmp_path / "t", **configuration)
    draft = table.branch("nightly")
    draft.delete("id = 1")
    table.update({"v": "5.0"}, predicate="id = 1")
    with pytest.raises(CommitConflictError, match="create a new branch"):
        draft.publish()
    assert [branch.name for branch in table.branches()] == ["nightly"]
    assert ids_of(tmp_path / "t") == [*range(NUM_ROWS)]
    draft = DeltaTable(f"{tmp_path / 't'}@nightly")
    draft.delete("id = 3")  # it accepts commits again
    assert 3 not in ids_of(draft)


def test_rows_that_the_branch_should_have_read_conflict(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("nightly")
    draft.delete("id >= 500")
    write_deltalake(table, rows_of(5_000), mode="append")
    with pytest.raises(CommitConflictError, match="should have read"):
        draft.publish()
    other = table.branch("other")
    other.delete("id < 10")
    write_deltalake(table, rows_of(6_000), mode="append")
    other.publish()
    assert ids_of(tmp_path / "t") == [*range(10, NUM_ROWS), 5_000, 6_000]


def test_two_changes_of_the_metadata_conflict(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("nightly")
    draft.alter.add_columns([deltalog.Field("w", "long", nullable=True)])
    table.alter.set_table_properties({"delta.appendOnly": "false"})
    with pytest.raises(MetadataChangedError):
        draft.publish()


def test_a_new_column_is_published_with_its_rows(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("nightly")
    rows = rows_of(5_000).append_column("w", pa.array([7]))
    write_deltalake(draft, rows, mode="append", schema_mode="merge")
    draft.publish()
    found = DeltaTable(tmp_path / "t").to_pyarrow_table(filters=[("id", "=", 5_000)])
    assert found["w"].to_pylist() == [7]


def test_the_change_feed_has_net_changes(tmp_path: Path) -> None:
    table = make(tmp_path / "t", **FEED)
    draft = table.branch("nightly")
    change(draft)
    version = draft.publish().version
    feed = pa.table(DeltaTable(tmp_path / "t").load_cdf(version, version).read_all())
    found: dict[str, list[int]] = {}
    for row in feed.to_pylist():
        found.setdefault(row["_change_type"], []).append(row["id"])
    assert {kind: sorted(ids) for kind, ids in found.items()} == {
        "delete": [1, 2],
        "insert": [2, NUM_ROWS + 1, 5_000],
    }


def test_row_ids_stay_and_are_unique(tmp_path: Path) -> None:
    table = make(tmp_path / "t", **ROW_IDS)
    columns = ["id", "_metadata.row_id"]
    before = dict(zip(*(table.scan(columns).to_table()[n].to_pylist() for n in columns)))  # noqa: B905
    draft = table.branch("nightly")
    change(draft)
    draft.publish()
    write_deltalake(tmp_path / "t", rows_of(9_000), mode="append")
    rows = DeltaTable(tmp_path / "t").scan(columns).to_table()
    after = dict(zip(*(rows[name].to_pylist() for name in columns)))  # noqa: B905
    assert len(set(after.values())) == len(after)
    assert all(after[number] == before[number] for number in before if number != 1)


def test_copied_rows_of_the_branch_conflict_with_new_row_ids(tmp_path: Path) -> None:
    table = make(tmp_path / "t", **ROW_IDS)
    draft = table.branch("nightly")
    for number in (5_000, 6_000):
        write_deltalake(draft, rows_of(number), mode="append")
        draft.update_incremental()
    draft.optimize.compact()
    write_deltalake(table, rows_of(7_000), mode="append")
    with pytest.raises(CommitConflictError):
        draft.publish()


def test_application_transactions_are_published(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("nightly")
    properties = deltalog.CommitProperties(app_transactions=[deltalog.Transaction("app", 4)])
    write_deltalake(draft, rows_of(5_000), mode="append", commit_properties=properties)
    draft.publish()
    assert DeltaTable(tmp_path / "t").transaction_version("app") == 4


# --- Names and addresses


@pytest.mark.parametrize("name", ["", "a b", "v3", "main", "../x", "a" * 101, "1", "ä"])
def test_names_that_are_not_valid(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="as the name of a branch"):
        make(tmp_path / "t").branch(name)


def test_a_branch_has_an_address(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("nightly")
    draft.delete("id = 1")
    assert draft.table_uri == f"{tmp_path / 't'}@nightly"
    opened = DeltaTable(draft.table_uri)
    assert ids_of(opened) == ids_of(draft)
    assert ids_of(pickle.loads(pickle.dumps(opened))) == ids_of(draft)
    write_deltalake(draft.table_uri, rows_of(5_000), mode="append")
    assert ids_of(DeltaTable(draft.table_uri))[-1] == 5_000
    with pytest.raises(BranchNotFoundError, match="the table has the branches 'nightly'"):
        DeltaTable(f"{tmp_path / 't'}@other")


def test_a_new_table_may_have_such_a_name(tmp_path: Path) -> None:
    write_deltalake(f"{tmp_path}/me@home", rows_of(1))
    assert ids_of(DeltaTable(f"{tmp_path}/me@home")) == [1]


def test_a_branch_exists_once(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    first = table.branch("nightly")
    first.delete("id = 1")
    with pytest.raises(BranchExistsError, match="exist_ok=True"):
        table.branch("nightly")
    assert table.branch("nightly", exist_ok=True).version() == 1
    with pytest.raises(InvalidInputError, match="create it from main"):
        first.branch("other")


def test_a_branch_of_an_old_version(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.delete("id = 1")
    draft = table.branch("old", version=0)
    assert len(ids_of(draft)) == NUM_ROWS
    write_deltalake(draft, rows_of(5_000), mode="append")
    draft.publish()
    assert ids_of(tmp_path / "t") == sorted({*range(NUM_ROWS), 5_000} - {1})


def test_time_travel_begins_at_the_base(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.delete("id = 1")
    draft = table.branch("nightly")
    draft.delete("id = 2")
    draft.load_as_version(1)
    assert ids_of(draft) == [0, *range(2, NUM_ROWS)]
    assert [entry["operation"] for entry in DeltaTable(draft.table_uri).history()] == [
        "DELETE",
        "DELETE",
    ]


# --- Checks


def test_a_failing_check_publishes_nothing(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("nightly")
    write_deltalake(draft, rows_of(5_000), mode="append")

    def is_small(found: DeltaTable) -> str | None:
        return None if found.count() < 100 else "too many rows"

    with pytest.raises(AuditFailedError) as caught:
        draft.publish(["id < 5000", "v >= 0", is_small])
    assert caught.value.failures == (
        "id < 5000: 1 row does not match, such as [{'id': 5000, 'v': 5000.0}]",
        "is_small: too many rows",
    )
    assert DeltaTable(tmp_path / "t").version() == 0
    assert draft.publish(["v >= 0", lambda found: found.count() > 100]).version == 1


def test_an_audit_does_all_of_it(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    audit = table.audit(["id >= 0"])
    assert repr(audit) == f"{table!r}.audit(), used as `with table.audit([…]) as draft:`"
    with audit as draft:
        draft.delete("id = 1")
        assert ids_of(tmp_path / "t") == [*range(NUM_ROWS)]
    assert table.version() == 1
    assert ids_of(table) == [0, *range(2, NUM_ROWS)]

    def interrupted() -> None:
        with table.audit() as draft:
            draft.delete("id = 2")
            raise ZeroDivisionError  # what a pipeline may do

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert (table.version(), table.branches()) == (1, [])
    with pytest.raises(AuditFailedError), table.audit(["id < 10"], name="kept"):
        pass
    assert [branch.name for branch in table.branches()] == ["kept"]


# --- Ends, and what others do to it


def test_a_closed_branch_accepts_no_commits(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("nightly")
    branch = branch_of(draft.snapshot.store)
    assert branch is not None
    set_state(on_main(draft.snapshot.context).store, branch, BranchState.CLOSED)
    with pytest.raises(BranchClosedError, match="run publish"):
        draft.delete("id = 1")
    draft.publish()  # what an interrupted publish leaves
    draft = table.branch("nightly")
    late = DeltaTable(draft.table_uri)
    draft.discard()
    with pytest.raises(BranchNotFoundError, match="published or discarded"):
        late.delete("id = 1")
    assert table.branches() == []


def test_a_later_branch_of_the_same_name_is_another_one(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    first = table.branch("nightly")
    first.discard()
    table.branch("nightly")
    with pytest.raises(BranchNotFoundError):
        first.delete("id = 1")
    assert ids_of(DeltaTable(f"{tmp_path / 't'}@nightly")) == [*range(NUM_ROWS)]


def test_vacuum_keeps_the_files_of_branches(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("nightly")
    write_deltalake(draft, rows_of(5_000), mode="append")
    table.delete("true")
    options: dict[str, Any] = {"retention_hours": 0, "enforce_retention_duration": False}
    table.vacuum(dry_run=False, full=True, **options)
    table.vacuum(dry_run=False, **options)
    assert ids_of(DeltaTable(draft.table_uri)) == [*range(NUM_ROWS), 5_000]
    with pytest.raises(InvalidInputError, match="vacuum main"):
        DeltaTable(draft.table_uri).vacuum()
    DeltaTable(draft.table_uri).discard()
    table.vacuum(dry_run=False, full=True, **options)
    assert not list((tmp_path / "t").glob("*.parquet"))
    assert not list((tmp_path / "t" / "_delta_log" / "_branches").rglob("*.json"))


def test_an_expired_branch_is_vacuumed(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("nightly", expires_after=timedelta(milliseconds=1))
    write_deltalake(draft, rows_of(5_000), mode="append")
    options: dict[str, Any] = {"retention_hours": 0, "enforce_retention_duration": False}
    table.vacuum(dry_run=False, full=True, **options)
    assert table.branches() == []
    assert ids_of(tmp_path / "t") == [*range(NUM_ROWS)]


def test_files_that_another_vacuum_has_deleted(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("nightly")
    write_deltalake(draft, rows_of(5_000), mode="append")
    draft.update_incremental()
    known = set(table.file_uris())
    for uri in draft.file_uris():
        if uri not in known:
            Path(uri.removeprefix("file://")).unlink()
    with pytest.raises(DataFileMissingError, match="does not know branches"):
        draft.publish()
    assert DeltaTable(tmp_path / "t").version() == 0


def test_a_record_is_not_trusted(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.branch("nightly")
    (record,) = (tmp_path / "t" / "_delta_log" / "_branches").glob("*.json")
    text = record.read_text("utf-8")
    identity = text.split('"id":"')[1][:32]
    record.write_text(text.replace(identity, "../../../elsewhere"), "utf-8")
    with pytest.raises(MalformedLogError, match="nightly"):
        DeltaTable(f"{tmp_path / 't'}@nightly")
    with pytest.raises(MalformedLogError):  # it would delete files of the branch
        table.vacuum(full=True)


def test_a_commit_reads_the_record_once(tmp_path: Path) -> None:
    make(tmp_path / "t").branch("nightly")
    store = CountingStore(DeltaTable(tmp_path / "t").snapshot.store)
    table = DeltaTable(store).branch("nightly", exist_ok=True)
    store.reset()
    write_deltalake(table, rows_of(8_000), mode="append")
    record = ("_delta_log/_branches/nightly.json",)
    assert [call.verb for call in store.calls if call.paths == record] == ["read"]


def test_concurrent_commits_to_one_branch(tmp_path: Path) -> None:
    table = make(tmp_path / "t", **VECTORS)
    draft = table.branch("nightly")
    other = DeltaTable(draft.table_uri)
    draft.delete("id = 1")
    other.delete("id = 2")
    draft.publish()
    assert ids_of(tmp_path / "t") == [0, *range(3, NUM_ROWS)]


def test_main_has_removed_a_file_that_the_branch_removes(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("nightly")
    draft.delete("true")
    table.delete("true")
    with pytest.raises(CommitConflictError):
        draft.publish()
