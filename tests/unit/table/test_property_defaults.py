"""What a table does that says nothing of how it is to be treated, and what if it says."""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import CommitProperties, DeltaTable, Transaction, table_defaults, write_deltalake
from deltalog._util.json import loads
from deltalog.errors import InvalidInputError
from tests.support.facade import actions, fresh_rows, last, make, store_of
from tests.support.logs import DictStore

ROWS = [{"id": 1, "p": "a"}, {"id": 2, "p": "b"}]


def made(**properties: str) -> DeltaTable:
    return make(ROWS, configuration={f"delta.{key}": text for key, text in properties.items()})


def paths(table: DeltaTable, part: str) -> list[str]:
    return sorted(path for path in store_of(table).files if part in path)


def added(table: DeltaTable) -> dict[str, Any]:
    (found,) = [action["add"] for action in actions(table, 0) if "add" in action]
    return found  # type: ignore[no-any-return]


def checkpoint_of(table: DeltaTable) -> pa.Table:
    table.create_checkpoint()
    (path,) = paths(table, ".checkpoint.")
    return pq.read_table(io.BytesIO(store_of(table).files[path]))


@pytest.mark.protocol(
    "B4-delta.columnMapping.mode",
    "B4-delta.enableInCommitTimestamps",
    "B4-delta.enableChangeDataFeed",
    "B4-delta.appendOnly",
)
def test_a_table_is_made_without_features() -> None:
    table = made()
    assert table.protocol().min_reader_version == 1
    assert table.protocol().min_writer_version == 2
    assert not table.protocol().reader_features
    assert not table.protocol().writer_features
    assert dict(table.metadata().configuration) == {}
    assert all(not field.metadata for field in table.schema())


@pytest.mark.protocol("B4-delta.enableInCommitTimestamps")
@pytest.mark.parametrize(
    ("key", "feature"),
    [
        ("enableInCommitTimestamps", "inCommitTimestamp"),
        ("enableDeletionVectors", "deletionVectors"),
        ("enableRowTracking", "rowTracking"),
        ("enableTypeWidening", "typeWidening"),
    ],
)
def test_a_switch_brings_its_feature(key: str, feature: str) -> None:
    assert feature in (made(**{key: "true"}).protocol().writer_features or ())
    assert made(**{key: "false"}).protocol().min_writer_version == 2


@pytest.mark.protocol("B4-delta.enableInCommitTimestamps")
def test_newer_features_do_nothing_unasked() -> None:
    table = made()
    table.delete("id = 1")
    assert "inCommitTimestamp" not in last(table)
    for action in actions(table, 0) + actions(table):
        assert not {"deletionVector", "baseRowId"} & action.get("add", {}).keys()
        assert "domainMetadata" not in action


@pytest.mark.protocol("B4-delta.columnMapping.mode")
def test_columns_go_by_their_names() -> None:
    table = made()
    found = pq.read_schema(io.BytesIO(store_of(table).files[added(table)["path"]]))
    assert found.names == ["id", "p"]
    table.alter.set_table_properties({"delta.columnMapping.mode": "name"})
    table.alter.rename_column("p", "q")
    assert fresh_rows(table, "q") == ["a", "b"]


@pytest.mark.protocol("B4-delta.appendOnly", "B4-delta.enableChangeDataFeed", "CDC-02", "DF-06")
@pytest.mark.parametrize(("feed", "has_changes"), [(None, False), ("false", False), ("true", True)])
def test_rows_may_change_and_who_asks_for_them_gets_change_files(
    feed: str | None, *, has_changes: bool
) -> None:
    table = made(**({} if feed is None else {"enableChangeDataFeed": feed}))
    table.update({"p": "'x'"}, predicate="id = 1")
    table.merge([{"id": 2}], "source.id = target.id").when_matched_delete().execute()
    assert fresh_rows(table) == [(1, "x")]
    kinds = [kind for version in (1, 2) for action in actions(table, version) for kind in action]
    assert ("cdc" in kinds) is has_changes
    assert bool(paths(table, "_change_data/")) is has_changes


@pytest.mark.protocol("CDC-03")
def test_the_feed_brings_its_feature_and_does_nothing_without() -> None:
    """Somebody wrote the property, and left the feature out."""
    table = made(enableDeletionVectors="true")
    assert "changeDataFeed" not in (table.protocol().writer_features or ())
    store = store_of(table)
    first = f"_delta_log/{0:020d}.json"
    store.files[first] = store.files[first].replace(
        b'"delta.enableDeletionVectors":"true"',
        b'"delta.enableDeletionVectors":"true","delta.enableChangeDataFeed":"true"',
    )
    stated = DeltaTable(store)
    assert stated.metadata().configuration["delta.enableChangeDataFeed"] == "true"
    stated.update({"p": "'x'"}, predicate="id = 1")
    assert not [action for action in actions(stated) if "cdc" in action]
    stated.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    assert "changeDataFeed" in (stated.protocol().writer_features or ())
    stated.update({"p": "'y'"}, predicate="id = 1")
    assert [action for action in actions(stated) if "cdc" in action]


@pytest.mark.protocol("B4-delta.dataSkippingNumIndexedCols")
def test_thirty_two_columns_and_thirty_two_characters_have_statistics() -> None:
    row = {f"c{number}": "x" * 100 for number in range(40)}

    def stats(**properties: str) -> dict[str, Any]:
        keyed = {f"delta.{key}": text for key, text in properties.items()}
        table = make([row], configuration=keyed)
        return loads(added(table)["stats"], "")  # type: ignore[no-any-return]

    assert len(stats()["minValues"]) == 32
    assert set(stats()["minValues"].values()) == {"x" * 32}
    assert len(stats(dataSkippingNumIndexedCols="3")["minValues"]) == 3
    assert list(stats(dataSkippingStatsColumns="c39")["minValues"]) == ["c39"]
    assert set(stats(dataSkippingStringPrefixLength="5")["minValues"].values()) == {"xxxxx"}


@pytest.mark.protocol("B4-delta.isolationLevel")
def test_commits_are_serializable() -> None:
    table = made()
    table.delete("id = 1")
    assert last(table)["isolationLevel"] == "Serializable"


@pytest.mark.protocol("B4-delta.randomizeFilePrefixes")
def test_files_lie_in_the_root() -> None:
    assert "/" not in added(made())["path"]
    assert len(added(made(randomizeFilePrefixes="true"))["path"].partition("/")[0]) == 2


@pytest.mark.protocol("B4-delta.checkpointPolicy", "B4-delta.checkpoint.writeStatsAsJson")
def test_checkpoints_are_classic_and_have_both_statistics() -> None:
    table = made()
    fields = {field.name for field in checkpoint_of(table).schema.field("add").type}
    assert paths(table, ".checkpoint.") == [f"_delta_log/{0:020d}.checkpoint.parquet"]
    assert {"stats", "stats_parsed"} <= fields
    plain = made(
        **{"checkpoint.writeStatsAsJson": "false", "checkpoint.writeStatsAsStruct": "false"}
    )
    fields = {field.name for field in checkpoint_of(plain).schema.field("add").type}
    assert not {"stats", "stats_parsed"} & fields
    modern = made(checkpointPolicy="v2")
    modern.create_checkpoint()
    assert paths(modern, "_sidecars/")


@pytest.mark.protocol("B4-delta.setTransactionRetentionDuration")
@pytest.mark.parametrize(
    ("properties", "left"), [({}, 1), ({"setTransactionRetentionDuration": "0 seconds"}, None)]
)
def test_steps_of_applications_are_never_forgotten(
    properties: Mapping[str, str], left: int | None
) -> None:
    table = made(**properties)
    step = CommitProperties(app_transactions=[Transaction("app", 1, last_updated=1)])
    write_deltalake(table, ROWS, mode="append", commit_properties=step)
    table.create_checkpoint()
    table.cleanup_metadata()
    assert DeltaTable(store_of(table)).transaction_version("app") == left


@pytest.mark.protocol("B4-delta.enableExpiredLogCleanup")
@pytest.mark.parametrize(
    ("properties", "stays"), [({}, False), ({"enableExpiredLogCleanup": "false"}, True)]
)
def test_expired_log_files_go_with_a_checkpoint(
    properties: Mapping[str, str], *, stays: bool
) -> None:
    """The files of the store are as old as can be."""
    table = made(checkpointInterval="2", **properties)
    for _ in range(2):
        write_deltalake(table, ROWS, mode="append")
    assert paths(table, ".checkpoint.")
    assert (f"_delta_log/{0:020d}.json" in store_of(table).files) is stays


def test_names_with_spaces_are_mapped_where_that_is_the_default() -> None:
    store = DictStore()
    with table_defaults({"delta.columnMapping.mode": "name"}):
        write_deltalake(store, [{"high price": 1}])
    write_deltalake(store, [{"high price": 2}], mode="append")
    found = DeltaTable(store).to_pyarrow_table(filters='"high price" > 1')
    assert found.to_pylist() == [{"high price": 2}]


def test_defaults_without_a_block_are_reported() -> None:
    with pytest.warns(RuntimeWarning, match=r"table_defaults\(…\) was never used"):
        table_defaults({"delta.appendOnly": "true"})
    assert not DeltaTable.create(DictStore(), "id long").properties.append_only

    @table_defaults({"delta.appendOnly": "true"})
    def created() -> DeltaTable:
        return DeltaTable.create(DictStore(), "id long")

    assert created().properties.append_only
    assert created().properties.append_only
    assert not DeltaTable.create(DictStore(), "id long").properties.append_only


def test_an_audit_without_a_block_is_reported() -> None:
    table = make([{"id": 1}])
    with pytest.warns(RuntimeWarning, match=r"audit\(…\) was never used"):
        table.audit(["id > 1"])
    with table.audit(["id > 0"]) as draft:
        write_deltalake(draft, [{"id": 2}], mode="append")
    assert table.count() == 2
    with pytest.raises(KeyError, match="there is no key 'x': there are no keys"):
        table.domain_metadata()["x"]
    tail: Any = 5
    with pytest.raises(InvalidInputError, match="log_tail=5: expected a LogTail"):
        DeltaTable(store_of(table), log_tail=tail)


def test_blocks_of_one_object_may_overlap_in_threads() -> None:
    """Each thread leaves its own block, whatever the order."""
    defaults = table_defaults({"delta.appendOnly": "true"})
    entered, left = threading.Event(), threading.Event()

    def other() -> bool:
        with defaults:
            entered.set()
            assert left.wait(60)
            return made().properties.append_only

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(other)
        with defaults:
            assert entered.wait(60)
        left.set()
        assert found.result(60)
    assert not made().properties.append_only
