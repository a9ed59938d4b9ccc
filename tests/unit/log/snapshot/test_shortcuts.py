"""Compacted logs and checkpoints that are damaged, or were cut: the commits are read instead."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq  # cuts a checkpoint as nothing of ours would write it
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog._util.json import dumps, loads
from deltalog.errors import CheckpointUnreadableError, MalformedLogError
from deltalog.log.names import (
    checkpoint_name,
    checksum_name,
    commit_path,
    compaction_name,
    log_path,
)
from deltalog.log.snapshot import load_snapshot
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from deltalog.transaction.properties import CommitProperties, PostCommitHookProperties, Transaction
from tests.support.logs import DictStore

Damage = Callable[[bytes], bytes]
LAST = 6
COMPACTED = log_path(compaction_name(1, 5))


def row(number: int) -> pa.Table:
    return pa.table({"a": pa.array([number], pa.int64())})


def rows(store: DictStore, version: int | None = None) -> list[int]:
    found: list[Any] = DeltaTable(store, version=version).to_pyarrow_table()["a"].to_pylist()
    return sorted(found)


def table(*, checksums: bool = True) -> DictStore:
    """Seven versions: rows 0 to 4 in files of their own, row 1 deleted, a property, row 6."""
    store = DictStore()
    hooks = PostCommitHookProperties(write_checksum=checksums)
    for number in range(5):
        properties = CommitProperties(app_transactions=[Transaction("app", number)])
        write_deltalake(
            store,
            row(number),
            mode="append",
            commit_properties=properties,
            post_commithook_properties=hooks,
        )
    held = DeltaTable(store)
    held.delete("a = 1", post_commithook_properties=hooks)
    write_deltalake(store, row(6), mode="append", post_commithook_properties=hooks)
    assert held.version() == LAST - 1
    return store


LEFT = [0, 2, 3, 4, 6]


def lines(count: int) -> Damage:
    return lambda data: b"".join(data.splitlines(keepends=True)[:count])


def _swapped(data: bytes) -> bytes:
    return data.replace(b'{"add"', b'{"remove"')


def _other_metadata(data: bytes) -> bytes:
    change = {"metaData": {"id": "x", "format": {"provider": "parquet"}, "schemaString": "{}"}}
    return dumps(change) + b"\n" + data


DAMAGES: dict[str, Damage] = {
    "gzip": gzip.compress,
    "garbage": lambda _: b"\x00\xff\x00 no JSON",
    "HTML": lambda _: b"<html>503</html>\n",
    "in a line": lambda data: data[: len(data) - 20],
    "a number": lambda data: data + b"17\n",
    "an add without a path": lambda data: data + b'{"add":{"size":1}}\n',
    "a list": lambda _: b"[]\n",
    "not UTF-8": lambda data: data.replace(b"app", b"\xff\xfe\xfd"),
    "other metadata": _other_metadata,
}
CUTS: dict[str, Damage] = {
    "the last files": lambda data: lines(len(data.splitlines()) - 2)(data),
    "all but the first": lines(1),
    "every line": lambda _: b"\n",
    "wrong actions": _swapped,
}


def test_the_compaction_is_used() -> None:
    store = table()
    DeltaTable(store).compact_logs(1, 5)
    snapshot = DeltaTable(store).snapshot
    assert [file.info.path for file in snapshot.segment.used_compactions] == [COMPACTED]
    assert rows(store) == LEFT
    assert snapshot.segment.used_compactions


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("automatic", [True, False])
def test_no_checkpoint_is_made_of_a_cut_compaction(cut: str, automatic: bool) -> None:
    store = table()
    DeltaTable(store).compact_logs(1, 5)
    store.put(COMPACTED, CUTS[cut](store.read(COMPACTED)))
    held = DeltaTable(store)
    left = LEFT
    if automatic:
        held.alter.set_table_properties({"delta.checkpointInterval": "1"})
        write_deltalake(store, row(8), mode="append")
        left = [*LEFT, 8]
    else:
        held.create_checkpoint()
    assert rows(store) == left
    assert DeltaTable(store).snapshot.segment.checkpoint is not None


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_compaction_is_left_out(
    damage: str, checksums: bool, caplog: pytest.LogCaptureFixture
) -> None:
    store = table(checksums=checksums or damage == "other metadata")
    DeltaTable(store).compact_logs(1, 5)
    store.files[COMPACTED] = DAMAGES[damage](store.files[COMPACTED])
    assert DeltaTable(store).metadata().partition_columns == ()
    with caplog.at_level(logging.WARNING):
        assert rows(store) == LEFT
    assert "reading memory://table from other files" in caplog.text
    held = DeltaTable(store)
    write_deltalake(store, row(7), mode="append")
    held.update_incremental()
    assert set(held.to_pyarrow_table()["a"].to_pylist()) == {*LEFT, 7}
    held.delete("a = 2")
    held.create_checkpoint()
    assert rows(store) == [0, 3, 4, 6, 7]
    assert rows(store, 5) == [0, 2, 3, 4]


@pytest.mark.parametrize("cut", CUTS)
def test_a_compaction_that_was_cut_at_the_end_of_a_line_is_found_out(
    cut: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = table()
    DeltaTable(store).compact_logs(1, 5)
    store.files[COMPACTED] = CUTS[cut](store.files[COMPACTED])
    with caplog.at_level(logging.WARNING):
        assert rows(store) == LEFT
    assert compaction_name(1, 5) in caplog.text
    assert DeltaTable(store).snapshot.num_files == len(LEFT)
    held = DeltaTable(store)
    write_deltalake(store, row(7), mode="append")
    held.update_incremental()
    assert held.count() == len(LEFT) + 1
    held.create_checkpoint()
    assert rows(store) == [*LEFT, 7]


def test_a_compaction_of_other_versions_than_its_name_says() -> None:
    store = table()
    DeltaTable(store).compact_logs(1, 3)
    store.files[COMPACTED] = store.files.pop(log_path(compaction_name(1, 3)))
    assert rows(store) == LEFT


def test_a_compaction_that_lost_the_metadata_is_found_out_when_the_table_is_opened() -> None:
    store = table()
    DeltaTable(store).alter.set_table_properties({"delta.appendOnly": "true"})
    DeltaTable(store).compact_logs(1, LAST + 1)
    path = log_path(compaction_name(1, LAST + 1))
    kept = [line for line in store.files[path].splitlines(keepends=True) if b"metaData" not in line]
    assert len(kept) < len(store.files[path].splitlines())
    store.files[path] = b"".join(kept)
    assert DeltaTable(store).metadata().configuration == {"delta.appendOnly": "true"}


def test_a_damaged_commit_is_not_the_fault_of_a_compaction() -> None:
    store = table()
    DeltaTable(store).compact_logs(1, 5)
    store.files[commit_path(LAST)] += b"{"
    with pytest.raises(MalformedLogError) as caught:
        DeltaTable(store).to_pyarrow_table()
    assert f"version {LAST}" in str(caught.value)
    assert "0 to 5" in str(caught.value)


# Checkpoints.


def cut_rows(data: bytes) -> bytes:
    """A checkpoint without its last add, as whole as any."""
    whole = pq.read_table(BytesIO(data))
    adds = [row for row, add in enumerate(whole["add"].to_pylist()) if add is not None]
    left = whole.take([row for row in range(whole.num_rows) if row != adds[-1]])
    out = BytesIO()
    pq.write_table(left, out)
    return out.getvalue()


def checkpointed() -> tuple[DictStore, str]:
    store = table()
    load = load_snapshot(DeltaTable(store).snapshot.context, version=5)
    create_checkpoint(load)
    return store, log_path(checkpoint_name(5))


@pytest.mark.parametrize("version", [None, 5])
def test_a_checkpoint_that_lost_files_is_found_out(
    version: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    store, path = checkpointed()
    store.files[path] = cut_rows(store.files[path])
    expected = LEFT if version is None else LEFT[:-1]
    with caplog.at_level(logging.WARNING):
        assert rows(store, version) == expected
    assert checkpoint_name(5) in caplog.text


def test_a_checkpoint_that_lost_files_and_all_its_commits_is_an_error() -> None:
    store, path = checkpointed()
    store.files[path] = cut_rows(store.files[path])
    for number in range(4):
        del store.files[commit_path(number)]
    with pytest.raises(CheckpointUnreadableError, match="by its checksum"):
        DeltaTable(store).to_pyarrow_table()


def test_a_checkpoint_is_right_that_has_all_that_its_writer_has_noted() -> None:
    store, _ = checkpointed()
    path = log_path(checksum_name(LAST))
    store.files[path] = dumps({**loads(store.files[path]), "numFiles": 900})
    for number in range(4):
        del store.files[commit_path(number)]
    assert rows(store) == LEFT


def test_an_older_checkpoint_is_good_enough() -> None:
    store, path = checkpointed()
    create_checkpoint(load_snapshot(DeltaTable(store).snapshot.context, version=2))
    store.files[path] = cut_rows(store.files[path])
    for number in range(2):
        del store.files[commit_path(number)]
    assert rows(store) == LEFT


@pytest.mark.parametrize("compacts", [True, False])
def test_a_wrong_checksum_hides_nothing(compacts: bool, caplog: pytest.LogCaptureFixture) -> None:
    store, _ = checkpointed()
    if compacts:
        store.files.pop(log_path(checkpoint_name(5)))
        DeltaTable(store).compact_logs(1, 5)
        DeltaTable(store).compact_logs(0, 3)
    path = log_path(checksum_name(LAST))
    store.files[path] = dumps({**loads(store.files[path]), "numFiles": 900})
    with caplog.at_level(logging.WARNING):
        assert rows(store) == LEFT
    # A checksum that is torn, or none, says nothing.
    for data in (b"", b"{", None):
        store.files[path] = data or b""
        if data is None:
            del store.files[path]
        caplog.clear()
        assert rows(store) == LEFT
        assert not caplog.records


@pytest.mark.parametrize("cut", ["a line", "in a line", "the sidecars", "all"])
def test_a_top_level_file_of_a_v2_checkpoint_that_was_cut(cut: str) -> None:
    store = DictStore()
    DeltaTable.create(store, row(0).schema, configuration={"delta.checkpointPolicy": "v2"})
    for number in range(3):
        write_deltalake(store, row(number), mode="append")
    DeltaTable(store).create_checkpoint()
    (path,) = [path for path in store.files if ".checkpoint." in path]
    assert path.endswith(".json")
    data = store.files[path]
    kept = data.splitlines(keepends=True)
    store.files[path] = {
        "a line": b"".join(kept[:-1]),
        "in a line": data[: len(data) - 5],
        "the sidecars": b"".join(line for line in kept if b'"sidecar"' not in line),
        "all": kept[0],
    }[cut]
    whole = dict(store.files)
    for number in range(3):
        del store.files[commit_path(number)]
    with pytest.raises(MalformedLogError):  # nothing is left to read instead
        rows(store)
    store.files = whole
    assert rows(store) == [0, 1, 2]
    write_deltalake(store, row(3), mode="append")
    assert rows(store) == [0, 1, 2, 3]


@pytest.mark.parametrize("damage", ["missing", "cut", "garbage"])
def test_a_sidecar_or_a_part_of_no_use(damage: str) -> None:
    for policy in ("v2", "classic"):
        store = DictStore()
        DeltaTable.create(store, row(0).schema, configuration={"delta.checkpointPolicy": policy})
        for number in range(3):
            write_deltalake(store, row(number), mode="append")
        create_checkpoint(DeltaTable(store).snapshot, part_rows=1)
        kind = "_sidecars/" if policy == "v2" else ".checkpoint.0000000002."
        (path, *_) = [path for path in store.files if kind in path]
        data = store.files.pop(path)
        if damage != "missing":
            store.files[path] = data[:-30] if damage == "cut" else b"PAR1 garbage PAR1"
        assert rows(store) == [0, 1, 2]
