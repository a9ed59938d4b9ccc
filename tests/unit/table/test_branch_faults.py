"""Branches whose requests fail, that others race with, and whose files are not what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from deltalog import CommitProperties, DeltaTable, Field, Transaction, write_deltalake
from deltalog._util.json import dumps, loads
from deltalog.catalogs.protocol import FollowedCommitter
from deltalog.errors import (
    BranchClosedError,
    BranchExistsError,
    BranchNotFoundError,
    CheckpointMissingError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    ConcurrentTransactionError,
    DataFileMissingError,
    DeltaError,
    InvalidInputError,
    MalformedLogError,
    MetadataChangedError,
    StorageError,
    UnsafePathError,
    VersionNotFoundError,
)
from deltalog.log.branches import BranchState, find_branch, on_named_branch, set_state
from deltalog.log.context import utc_context
from deltalog.log.names import commit_path
from deltalog.storage import open_store
from deltalog.testing import CountingStore, FaultyStore, Harm, InjectedFault, InMemoryCatalog
from deltalog.transaction import CatalogCommitter
from tests.support.logs import DictStore
from tests.support.transactions import table as managed_table

RECORD = "_delta_log/_branches/n.json"
VECTORS = {"delta.enableDeletionVectors": "true", "delta.enableRowLevelConcurrency": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
ALL_FILES: dict[str, Any] = {"retention_hours": 0, "enforce_retention_duration": False}


def rows_of(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(ids, pa.int64())})


def make(store: Any, *ids: int, **configuration: str) -> DeltaTable:
    write_deltalake(store, rows_of(*(ids or range(10))), configuration=configuration)
    return DeltaTable(store)


def ids_of(table: Any) -> list[int]:
    found = table if isinstance(table, DeltaTable) else DeltaTable(table)
    ids: list[Any] = found.to_pyarrow_table(columns=["id"])["id"].to_pylist()
    return sorted(ids)


def operations_of(store: Any) -> list[str]:
    return [str(entry["operation"]) for entry in DeltaTable(store).history()]


def opened(table: DeltaTable, name: str = "n") -> DeltaTable:
    return DeltaTable.from_context(on_named_branch(table.snapshot.context, name))


# --- Requests that fail


def _drafted(configuration: dict[str, str]) -> tuple[DictStore, FaultyStore, DeltaTable]:
    inner = DictStore()
    make(inner, **configuration)
    store = FaultyStore(inner)
    draft = DeltaTable(store).branch("n")
    write_deltalake(draft, rows_of(100), mode="append")
    draft.delete("id = 1")
    return inner, store, draft


_MANY: Final = pytest.mark.slow("a publish for each request of a publish")


@pytest.mark.parametrize(
    ("harm", "configuration"),
    [
        pytest.param(harm, configuration, id=f"{harm.name}-{name}", marks=[] if quick else _MANY)
        for harm in (Harm.CRASH, Harm.REFUSE, Harm.LOSE_RESPONSE)
        for name, configuration, quick in (
            ("plain", {}, False),
            ("vectors", VECTORS, False),
            ("feed", FEED, harm is Harm.CRASH),
        )
    ],
)
def test_a_publish_that_fails_at_any_request_is_made_once(
    harm: Harm, configuration: dict[str, str]
) -> None:
    wanted = [0, *range(2, 10), 100]
    call, failed = 0, True
    while failed:
        call += 1
        inner, store, draft = _drafted(configuration)
        store.faults.append(InjectedFault(call=call, harm=harm))
        try:
            draft.publish(["id >= 0"])
            failed = store.faults[0].seen >= call  # what it did not need
        except DeltaError:
            assert ids_of(inner) in ([*range(10)], wanted)
        store.crashed = False
        store.faults.clear()
        assert draft.publish().version == 1, call
        assert ids_of(inner) == wanted
        assert operations_of(inner).count("PUBLISH BRANCH") == 1, call
        assert DeltaTable(inner).branches() == []
    assert call > 10


def test_a_branch_whose_creation_fails_at_any_request_can_be_created_again() -> None:
    call, failed = 0, True
    while failed:
        call += 1
        inner = DictStore()
        make(inner)
        store = FaultyStore(inner)
        table = DeltaTable(store)
        store.faults.append(InjectedFault(call=call, harm=Harm.CRASH))
        try:
            table.branch("n")
            failed = store.faults[0].seen >= call
        except DeltaError:
            pass
        store.crashed = False
        store.faults.clear()
        draft = table.branch("n", exist_ok=True)
        draft.delete("id = 1")
        assert draft.publish().version == 1
        table.vacuum(dry_run=False, **ALL_FILES)
        assert [path for path in inner.files if "_branches" in path] == []
    assert call > 5


def test_a_branch_stays_closed_if_nobody_knows_whether_it_is_published() -> None:
    _, store, draft = _drafted({})
    store.faults += [
        InjectedFault(verb="put_if_absent", path="_delta_log/0", harm=Harm.LOSE_RESPONSE),
        InjectedFault(verb="read", path=commit_path(1), times=99),
        InjectedFault(verb="read_many", path=commit_path(1), times=99),
    ]
    with pytest.raises((CommitOutcomeUnknownError, StorageError)):
        draft.publish()
    store.faults.clear()
    with pytest.raises(BranchClosedError, match=r"run publish\(\) again"):
        draft.delete("id = 2")
    assert draft.publish().was_published


def test_an_interrupted_publish_leaves_the_branch_closed_and_is_repeated() -> None:
    inner = DictStore()
    draft = make(inner).branch("n")
    draft.delete("id = 1")

    def interrupted(_: DeltaTable) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        draft.publish([interrupted])
    with pytest.raises(BranchClosedError):
        draft.delete("id = 2")
    assert draft.publish().version == 1


# --- Others that race


class RacingStore(DictStore):
    """A store in which others act right before the commit of a version of main."""

    act: Callable[[], object] | None = None

    def put_if_absent(self, path: str, data: bytes) -> None:
        act = self.act
        if act is not None and path.startswith("_delta_log/0"):
            self.act = None
            act()
        super().put_if_absent(path, data)


Change = Callable[[DeltaTable], object]
CHANGES: dict[str, Change] = {
    "append": lambda table: write_deltalake(table, rows_of(50), mode="append"),
    "delete 1": lambda table: table.delete("id = 1"),
    "delete 2": lambda table: table.delete("id = 2"),
    "delete 7": lambda table: table.delete("id = 7"),
    "update 7": lambda table: table.update({"v": "-1"}, predicate="id = 7"),
    "upsert": lambda table: table.upsert(rows_of(7, 60), "id"),
    "compact": lambda table: table.optimize.compact(),
    "vacuum": lambda table: table.vacuum(dry_run=False, full=True, **ALL_FILES),
    "checkpoint": lambda table: table.create_checkpoint(),
    "clean up": lambda table: table.cleanup_metadata(),
    "restore": lambda table: table.restore(0),
    "column": lambda table: table.alter.add_columns([Field("w", "long")]),
    "property": lambda table: table.alter.set_table_properties({"delta.appendOnly": "false"}),
}
# What main does right before the commit of the publish → whether the publish succeeds, for a branch
# that appends, and one that deletes the row 1; without and with row-level concurrency.
OUTCOMES: dict[str, tuple[bool, bool, bool]] = {
    "append": (True, True, True),
    "delete 1": (True, False, False),
    "delete 2": (True, False, True),
    "delete 7": (True, True, True),
    "update 7": (True, True, True),
    "upsert": (True, True, True),
    "compact": (True, False, False),
    "vacuum": (True, True, True),
    "checkpoint": (True, True, True),
    "clean up": (True, True, True),
    "restore": (True, True, True),
    "column": (False, False, False),
    "property": (False, False, False),
}


def _race(change: str, on_branch: Change, configuration: dict[str, str]) -> tuple[bool, Any]:
    store = RacingStore()
    write_deltalake(store, rows_of(*range(5)), configuration=configuration)
    write_deltalake(store, rows_of(*range(5, 10)), mode="append")
    table = DeltaTable(store)
    draft = table.branch("n")
    on_branch(draft)
    store.act = lambda: CHANGES[change](DeltaTable(store))
    before = None
    try:
        draft.publish()
    except CommitConflictError:
        before = [branch.name for branch in DeltaTable(store).branches()]
        assert before == ["n"]
        opened(DeltaTable(store)).delete("id = 3")  # the branch is open again
    return before is None, store


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["appends", "deletes", "deletes with vectors"])
def test_main_changes_right_before_the_publish(change: str, kind: str) -> None:
    place = ["appends", "deletes", "deletes with vectors"].index(kind)
    configuration = VECTORS if place == 2 else {}
    on_branch: Change = CHANGES["delete 1"]
    if place == 0:

        def on_branch(table: DeltaTable) -> None:
            write_deltalake(table, rows_of(100), mode="append")

    succeeds, store = _race(change, on_branch, configuration)
    after = {"append": {50}, "upsert": {60}}.get(change, set())
    gone = {"delete 1": {1}, "delete 2": {2}, "delete 7": {7}, "restore": {5, 6, 7, 8, 9}}.get(
        change, set()
    )
    expected = ({*range(10)} | after) - gone
    if succeeds:
        expected = expected | {100} if place == 0 else expected - {1}
    assert (succeeds, ids_of(store)) == (OUTCOMES[change][place], sorted(expected))


def test_two_publishes_at_the_same_time_make_one_version() -> None:
    store = RacingStore()
    draft = make(store).branch("n")
    draft.delete("id = 1")
    other = opened(DeltaTable(store))
    outcomes: list[Any] = []
    store.act = lambda: outcomes.append(other.publish())
    outcomes.append(draft.publish())
    assert [(one.version, one.was_published) for one in outcomes] == [(1, False), (1, True)]
    assert operations_of(store).count("PUBLISH BRANCH") == 1
    assert DeltaTable(store).branches() == []


def test_rows_that_come_between_two_publishes_are_not_lost_silently() -> None:
    """A publish that fails opens the branch, while another one succeeds."""
    store = RacingStore()
    draft = make(store).branch("n")
    draft.delete("id = 1")

    def others() -> None:
        branch = find_branch(store, "n")
        assert branch is not None
        set_state(store, branch, BranchState.OPEN)  # as a publish that fails does
        write_deltalake(opened(DeltaTable(store)), rows_of(100), mode="append")

    store.act = others
    with pytest.raises(BranchClosedError, match="without its later version"):
        draft.publish()
    assert ids_of(store) == [0, *range(2, 10)]
    assert 100 in ids_of(opened(DeltaTable(store)))  # where they can be read
    with pytest.raises(BranchClosedError, match="without its later version"):
        draft.publish()
    DeltaTable(store).drop_branch("n")
    assert DeltaTable(store).branches() == []


def test_a_writer_that_is_late_is_published_or_fails() -> None:
    store = RacingStore()
    table = make(store)
    draft, late = table.branch("n"), None
    late = opened(table)
    draft.delete("id = 1")
    late.delete("id = 2")  # it has the version before
    assert draft.publish().version == 1
    assert ids_of(store) == [0, *range(3, 10)]
    with pytest.raises(BranchNotFoundError, match="published or discarded"):
        late.delete("id = 3")


def test_a_discard_while_a_publish_runs() -> None:
    store = RacingStore()
    draft = make(store).branch("n")
    draft.delete("id = 1")
    store.act = lambda: DeltaTable(store).drop_branch("n")
    assert draft.publish().version == 1
    assert DeltaTable(store).branches() == []


def test_many_commits_of_main_are_one_attempt(tmp_path: Path) -> None:
    inner = open_store(tmp_path)
    table = make(inner)
    draft = table.branch("n")
    write_deltalake(draft, rows_of(100), mode="append")
    for number in range(25):
        write_deltalake(inner, rows_of(200 + number), mode="append")
    assert draft.publish().version == 26


# --- What a branch keeps


def test_a_check_cannot_commit_to_the_branch() -> None:
    store = DictStore()
    draft = make(store).branch("n")
    draft.delete("id = 1")

    def writes(found: DeltaTable) -> None:
        found.delete("id = 2")

    with pytest.raises((BranchClosedError, InvalidInputError)):
        draft.publish([writes])
    assert draft.publish().version == 1
    assert ids_of(store) == [0, *range(2, 10)]


def test_an_application_that_main_has_recorded_is_not_published_again() -> None:
    store = DictStore()
    table = make(store)
    once = CommitProperties(app_transactions=[Transaction("job", 7)])
    first, second = table.branch("first"), table.branch("second")
    for draft in (first, second):
        write_deltalake(draft, rows_of(100), mode="append")
    first.publish(commit_properties=once)
    with pytest.raises(ConcurrentTransactionError):
        second.publish(commit_properties=once)
    assert ids_of(store) == [*range(10), 100]
    assert [branch.name for branch in table.branches()] == ["second"]


def test_identity_columns() -> None:
    store = DictStore()
    fields = [Field("id", "long"), Field("n", "long", metadata={
        "delta.identity.start": 1, "delta.identity.step": 1,
        "delta.identity.allowExplicitInsert": False,
    })]  # fmt: skip
    table = DeltaTable.create(store, fields)
    only = pa.table({"id": pa.array([1, 2], pa.int64())})
    write_deltalake(store, only, mode="append")
    draft, other = table.branch("n"), table.branch("other")
    for one in (draft, other):
        write_deltalake(one, only, mode="append")
    draft.publish()
    write_deltalake(store, only, mode="append")
    numbers = DeltaTable(store).to_pyarrow_table()["n"].to_pylist()
    assert len(set(numbers)) == len(numbers) == 6
    with pytest.raises(MetadataChangedError):
        other.publish()


@pytest.mark.parametrize("on_main", [True, False])
def test_in_commit_timestamps(on_main: bool) -> None:
    store = DictStore()
    given = {"delta.enableInCommitTimestamps": "true"}
    table = make(store, **(given if on_main else {}))
    draft = table.branch("n")
    if not on_main:
        draft.alter.set_table_properties(given)
    draft.delete("id = 1")
    write_deltalake(store, rows_of(50), mode="append")
    draft.publish()
    draft_times = [entry["timestamp"] for entry in DeltaTable(store).history()]
    assert draft_times == sorted(draft_times, reverse=True)
    configuration = DeltaTable(store).metadata().configuration
    if not on_main:
        assert configuration["delta.inCommitTimestampEnablementVersion"] == "2"
    found = loads(store.files[commit_path(2)].split(b"\n")[0], "commit")
    assert "inCommitTimestamp" in found["commitInfo"]
    write_deltalake(store, rows_of(51), mode="append")
    assert ids_of(store) == [0, *range(2, 10), 50, 51]


@pytest.mark.parametrize("extra", [{}, {"delta.enableRowTracking": "true"}])
def test_the_feed_of_a_publish_is_the_difference(extra: dict[str, str]) -> None:
    store = DictStore()
    make(store, **FEED, **extra)
    draft = DeltaTable(store).branch("n")
    write_deltalake(draft, rows_of(100, 101), mode="append")
    draft.delete("id IN (1, 100)")
    draft.update({"v": "-1"}, predicate="id = 2")
    draft.optimize.compact()
    version = draft.publish().version
    feed = pa.table(DeltaTable(store).load_cdf(version, version).read_all()).to_pylist()
    old: list[tuple[int, int]] = []
    new: list[tuple[int, int]] = []
    for row in feed:
        side = old if row["_change_type"] in {"delete", "update_preimage"} else new
        side.append((row["id"], row["v"]))
    assert sorted(old) == [(1, 1), (2, 2)]
    assert sorted(new) == [(2, -1), (101, 101)]


def test_a_wider_type_is_published_with_the_feed() -> None:
    store = DictStore()
    data = pa.table({"id": pa.array(range(10), pa.int64()), "w": pa.array(range(10), pa.int32())})
    given = {**FEED, "delta.enableTypeWidening": "true"}
    write_deltalake(store, data, configuration=given)
    draft = DeltaTable(store).branch("n")
    draft.alter.set_column_type("w", "long")
    draft.delete("id = 1")
    version = draft.publish().version
    feed = pa.table(DeltaTable(store).load_cdf(version, version).read_all()).to_pylist()
    assert [(row["id"], row["w"], row["_change_type"]) for row in feed] == [(1, 1, "delete")]


def test_another_type_cannot_be_published_to_the_feed() -> None:
    store = DictStore()
    make(store, **FEED)
    draft = DeltaTable(store).branch("n")
    data = pa.table({"id": ["a"], "v": pa.array([1], pa.int64())})
    write_deltalake(draft, data, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(InvalidInputError, match="changed the type of id"):
        draft.publish()
    assert DeltaTable(store).version() == 0


def test_a_branch_cannot_enable_row_tracking() -> None:
    draft = make(DictStore()).branch("n")
    draft.alter.set_table_properties({"delta.enableRowTracking": "true"})
    with pytest.raises(InvalidInputError, match="row tracking"):
        draft.publish()


def test_a_name_that_means_another_column_on_the_branch_conflicts() -> None:
    store = DictStore()
    make(store, **{"delta.columnMapping.mode": "name"})
    draft = DeltaTable(store).branch("n")
    draft.alter.rename_column("v", "old")
    draft.alter.add_columns([Field("v", "long")])
    draft.delete("v = 12345")  # no row of main, by the name that `v` has there
    draft.delete("old = 1")
    write_deltalake(store, rows_of(12_345), mode="append")
    with pytest.raises(CommitConflictError):
        draft.publish()


def test_a_new_schema_replaces_the_table() -> None:
    store = DictStore()
    make(store)
    draft = DeltaTable(store).branch("n")
    other = pa.table({"x": ["a", "b"]})
    write_deltalake(draft, other, mode="overwrite", schema_mode="overwrite")
    draft.publish()
    assert DeltaTable(store).to_pyarrow_table().to_pydict() == {"x": ["a", "b"]}


def test_long_conditions_count_as_the_whole_table() -> None:
    store = DictStore()
    make(store)
    draft = DeltaTable(store).branch("n")
    draft.delete(f"id IN ({', '.join(map(str, range(10**6, 10**6 + 20_000)))}) OR id = 1")
    commit = store.files[next(path for path in store.files if path.endswith("01.json"))]
    reads = loads(commit.split(b"\n")[0], "commit")["commitInfo"]["deltalog.reads"]
    assert (reads["predicates"], reads["wholeTable"]) == ([], True)
    write_deltalake(store, rows_of(50), mode="append")
    with pytest.raises(CommitConflictError):
        draft.publish()


# --- What vacuum and clean-up do


def test_a_light_vacuum_finds_later_what_a_branch_has_kept(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("n")
    table.delete("true")
    table.vacuum(dry_run=False, **ALL_FILES)
    assert len(ids_of(opened(table))) == 10
    draft.discard()
    table.vacuum(dry_run=False, **ALL_FILES)
    assert list((tmp_path / "t").glob("*.parquet")) == []


def test_a_branch_outlives_the_log_of_main(tmp_path: Path) -> None:
    table = make(tmp_path / "t", **{"delta.logRetentionDuration": "interval 0 seconds"})
    draft = table.branch("n")
    draft.delete("id = 1")
    for number in range(3):
        write_deltalake(tmp_path / "t", rows_of(50 + number), mode="append")
    table.update_incremental()
    table.create_checkpoint()
    for path in (tmp_path / "t" / "_delta_log").glob("0*"):
        if int(path.name[:20]) < 3:
            path.unlink()  # as a clean-up does a day later
    assert len(ids_of(draft)) == 9
    with pytest.raises(VersionNotFoundError, match="at which it starts"):
        draft.publish()
    draft.delete("id = 2")  # it is open
    with pytest.raises((VersionNotFoundError, CheckpointMissingError)):
        table.branch("other", version=0)


def test_an_expired_branch_is_not_published_and_a_closed_one_does_not_expire() -> None:
    store = DictStore()
    table = make(store)
    draft = table.branch("n")
    draft.delete("id = 1")
    _changed(store, expirationTime=1)
    expired = opened(table)
    with pytest.raises(InvalidInputError, match="it has expired"):
        expired.publish()
    _changed(store, state="closed")
    table.vacuum(dry_run=False, full=True, **ALL_FILES)
    assert [one.name for one in table.branches()] == ["n"]
    assert len(ids_of(expired)) == 9
    _changed(store, state="open")
    table.vacuum(dry_run=False, full=True, **ALL_FILES)
    assert table.branches() == []


def test_files_that_another_vacuum_deletes_while_the_checks_run(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    known = {path.name for path in (tmp_path / "t").glob("*.parquet")}
    draft = table.branch("n")
    write_deltalake(draft, rows_of(100), mode="append")

    def vacuumed(_: DeltaTable) -> None:
        for path in (tmp_path / "t").glob("*.parquet"):
            if path.name not in known:
                path.unlink()

    with pytest.raises(DataFileMissingError, match="does not know branches"):
        draft.publish([vacuumed])
    assert len(ids_of(table)) == 10


# --- What is only of main


@pytest.mark.parametrize(
    "act",
    [
        lambda table: table.vacuum(),
        lambda table: table.generate(),
        lambda table: table.sync_iceberg(),
        lambda table: table.branch("other"),
    ],
    ids=["vacuum", "manifests", "Iceberg", "branch"],
)
def test_what_a_branch_refuses(act: Change) -> None:
    draft = make(DictStore()).branch("n")
    with pytest.raises(InvalidInputError, match="the branch 'n'"):
        act(draft)


@pytest.mark.parametrize("act", ["publish", "discard"])
def test_what_main_refuses(act: str) -> None:
    with pytest.raises(InvalidInputError, match="it is main, not a branch"):
        getattr(make(DictStore()), act)()


def test_a_clone_of_a_branch_is_a_table(tmp_path: Path) -> None:
    draft = make(tmp_path / "t").branch("n")
    draft.delete("id = 1")
    clone = draft.clone(tmp_path / "clone", shallow=False)
    assert ids_of(clone) == [0, *range(2, 10)]
    with pytest.raises(InvalidInputError, match="outside of the table"):
        draft.clone(tmp_path / "t", replace=True)


def test_tables_of_a_catalog_have_no_branches() -> None:
    given = {"delta.enableInCommitTimestamps": "true"}
    store = managed_table(features=("catalogManaged", "inCommitTimestamp"), configuration=given)
    catalog = InMemoryCatalog()
    catalog.register(store.root, 0)
    committer = CatalogCommitter(catalog)
    context = replace(utc_context(store), committer=committer).with_newest_log_tail()
    with pytest.raises(InvalidInputError, match="a catalog decides"):
        DeltaTable.from_context(context).branch("n")


def test_a_catalog_hears_of_the_publish_only() -> None:
    store = DictStore()
    make(store)
    sent: list[int] = []

    class Teller:
        """Counts the commits."""

        def tell(self, _: Any, commit: Any) -> None:
            sent.append(commit.version)

    context = replace(utc_context(store), committer=FollowedCommitter(Teller()))
    draft = DeltaTable.from_context(context).branch("n")
    draft.alter.add_columns([Field("w", "long")])
    assert sent == []
    draft.publish()
    assert sent == [1]


# --- Records and logs that are not trusted


def _changed(store: DictStore, **members: Any) -> None:
    record = loads(store.files[RECORD], "record")
    store.files[RECORD] = dumps({**record, **members})


@pytest.mark.parametrize(
    "members",
    [
        {"id": "../../x"},
        {"id": "0" * 31},
        {"format": 2},
        {"state": "other"},
        {"baseVersion": -1},
        {"baseVersion": 2**63 - 1},
        {"baseVersion": "0"},
        {"tableId": None},
        {"padding": "x" * 100_000},
    ],
    ids=str,
)
def test_a_record_that_is_wrong_is_refused(members: dict[str, Any]) -> None:
    store = DictStore()
    table = make(store)
    draft = table.branch("n")
    _changed(store, **members)
    for act in (
        lambda: opened(table),
        table.branches,
        lambda: draft.delete("id = 1"),
        draft.publish,
        lambda: table.vacuum(dry_run=False, full=True, **ALL_FILES),
        lambda: table.branch("n", exist_ok=True),
    ):
        with pytest.raises(MalformedLogError):
            act()
    assert len(ids_of(store)) == 10


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 10_000])
def test_a_record_that_is_no_record_is_refused(content: bytes) -> None:
    store = DictStore()
    table = make(store)
    table.branch("n")
    store.files[RECORD] = content
    with pytest.raises(MalformedLogError):
        opened(table)


@pytest.mark.parametrize(
    "members", [{"baseVersion": 1}, {"baseVersion": 99}, {"tableId": "another"}], ids=str
)
def test_a_branch_that_starts_elsewhere_is_not_published(members: dict[str, Any]) -> None:
    store = DictStore()
    table = make(store)
    draft = table.branch("n")
    draft.delete("id = 1")
    draft.delete("id = 2")
    write_deltalake(store, rows_of(50), mode="append")
    _changed(store, **members)
    draft = opened(table)
    with pytest.raises((MalformedLogError, VersionNotFoundError), match="cannot publish"):
        draft.publish()
    assert ids_of(store) == [*range(10), 50]


def test_a_branch_of_a_table_that_was_replaced_is_not_published() -> None:
    store = DictStore()
    draft = make(store).branch("n")
    write_deltalake(draft, rows_of(100), mode="append")
    for path in [path for path in store.files if path.startswith("_delta_log/0")]:
        del store.files[path]
    make(store, 1, 2)
    with pytest.raises(MalformedLogError, match="the table was replaced"):
        draft.publish()
    assert ids_of(store) == [1, 2]


@pytest.mark.parametrize(
    "path",
    ["../other/x.parquet", "file:///etc/passwd", "s3://bucket/x.parquet", "a/%2e%2e/%2e%2e/x"],
)
def test_a_branch_cannot_add_files_of_elsewhere(tmp_path: Path, path: str) -> None:
    table = make(tmp_path / "t")
    draft = table.branch("n")
    write_deltalake(draft, rows_of(100), mode="append")
    (record,) = (tmp_path / "t" / "_delta_log" / "_branches").glob("*/*01.json")
    lines = [loads(line, "line") for line in record.read_bytes().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = path
    record.write_bytes(b"\n".join(map(dumps, lines)))
    with pytest.raises((UnsafePathError, MalformedLogError)):
        opened(DeltaTable(tmp_path / "t")).publish()
    assert DeltaTable(tmp_path / "t").version() == 0


def test_unknown_names_and_files_beside_records_are_ignored() -> None:
    store = DictStore()
    table = make(store)
    for name in ("v3.json", "main.json", "a b.json", ".hidden.json", "x.txt", "y/z.json"):
        store.files[f"_delta_log/_branches/{name}"] = b"?"
    assert table.branches() == []
    table.vacuum(dry_run=False, full=True, **ALL_FILES)
    assert ids_of(store) == [*range(10)]


@pytest.mark.parametrize("name", ["../n", "a/b", "v1", "main", "n.json"])
def test_a_name_is_checked_before_it_is_looked_for(name: str) -> None:
    store = CountingStore(DictStore())
    table = make(store)
    store.reset()
    with pytest.raises(InvalidInputError, match="as the name of a branch"):
        table.branch(name, exist_ok=True)
    with pytest.raises(InvalidInputError, match="as the name of a branch"):
        table.drop_branch(name)
    assert store.calls == []


def test_a_branch_whose_log_is_gone_can_be_dropped() -> None:
    store = DictStore()
    table = make(store)
    table.branch("n")
    for path in [
        path for path in store.files if path.startswith("_delta_log/_branches/") and path != RECORD
    ]:
        del store.files[path]
    with pytest.raises(DeltaError) as caught:
        table.vacuum(dry_run=False, full=True, **ALL_FILES)
    assert "drop_branch()" in "".join(caught.value.__notes__)
    table.drop_branch("n")
    table.vacuum(dry_run=False, full=True, **ALL_FILES)
    with pytest.raises(BranchNotFoundError):
        table.drop_branch("n")


def test_a_location_with_a_sign_is_no_table_if_there_is_no_branch(tmp_path: Path) -> None:
    make(tmp_path / "t")
    assert not DeltaTable.is_deltatable(f"{tmp_path / 't'}@other")
    DeltaTable(tmp_path / "t").branch("n")
    assert DeltaTable.is_deltatable(f"{tmp_path / 't'}@n")
    with pytest.raises(BranchExistsError):
        DeltaTable(tmp_path / "t").branch("n")
    assert open_store(tmp_path / "t").root == DeltaTable(tmp_path / "t").table_uri


def test_the_doctor_knows_branches() -> None:
    store = DictStore()
    table = make(store)
    draft = table.branch("n")
    write_deltalake(draft, rows_of(100), mode="append")
    assert not table.doctor().of("orphans") + table.doctor().of("branch")
    assert not draft.doctor().of("orphans")
    store.files[RECORD] = b"{"
    (finding,) = table.doctor().of("branch")
    assert "n.json" in finding.message
