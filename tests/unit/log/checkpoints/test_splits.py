from __future__ import annotations

import pickle

import pytest

from deltalog.log import names
from deltalog.log.checkpoints.reader import Checkpoint
from deltalog.log.listing import list_log
from deltalog.log.segment import build_segment
from deltalog.log.snapshot.splits import PartialCheckpoint, RowGroupRange, split_checkpoint
from tests.support import logs
from tests.support.logs import DictStore

ACTIONS = [
    logs.PROTOCOL,
    logs.metadata(),
    *[logs.add(f"f{number:03d}") for number in range(100)],
    *[logs.remove(f"r{number}") for number in range(10)],
]


def checkpoint_of(store: DictStore) -> Checkpoint:
    files = build_segment(list_log(store)).checkpoint
    assert files is not None
    return Checkpoint(store, files)


def one_file(row_group_rows: int) -> tuple[DictStore, Checkpoint]:
    store = DictStore()
    data = logs.checkpoint_parquet(ACTIONS, row_group_rows=row_group_rows)
    store.put(names.log_path(names.checkpoint_name(3)), data)
    return store, checkpoint_of(store)


def test_a_large_file_is_cut_and_every_row_is_in_one_split() -> None:
    store, checkpoint = one_file(row_group_rows=16)
    (info,) = checkpoint.data_files
    splits = split_checkpoint(checkpoint, info.size_bytes // 3)
    assert [part.number for (part,) in splits] == list(range(len(splits)))
    assert len(splits) in {3, 4}
    adds, removes = [], []
    for split in splits:
        part = PartialCheckpoint(store, checkpoint.files, split)
        adds += part.columns("add", ["path"]).column("path").to_pylist()
        removes += part.columns("remove", ["path"]).column("path").to_pylist()
    assert adds == [f"f{number:03d}" for number in range(100)]
    assert removes == [f"r{number}" for number in range(10)]


def test_small_files_share_a_split() -> None:
    store = DictStore()
    logs.v2_checkpoint(store, 3, ACTIONS, sidecars=2)
    checkpoint = checkpoint_of(store)
    assert len(checkpoint.data_files) == 2
    (split,) = split_checkpoint(checkpoint, 1 << 30)
    assert split == tuple(RowGroupRange(file=info) for info in checkpoint.data_files)


def test_small_files_fill_a_split_up_to_its_size() -> None:
    store = DictStore()
    logs.v2_checkpoint(store, 3, ACTIONS, sidecars=5)
    checkpoint = checkpoint_of(store)
    sizes = [info.size_bytes for info in checkpoint.data_files]
    splits = split_checkpoint(checkpoint, 2 * max(sizes))
    assert [len(split) for split in splits] == [2, 2, 1]
    files = [part.file for split in splits for part in split]
    assert files == list(checkpoint.data_files)
    assert [len(split) for split in split_checkpoint(checkpoint, sum(sizes))] == [5]


def test_the_adds_of_one_row_group_at_a_time() -> None:
    store, checkpoint = one_file(row_group_rows=40)
    (split,) = split_checkpoint(checkpoint, 1 << 30)
    groups = list(PartialCheckpoint(store, checkpoint.files, split).row_groups())
    sizes = [group.columns("add", ["path"]).num_rows for group in groups]
    assert sizes == [38, 40, 22]  # two rows of the first row group are protocol and metadata
    assert all(group.columns("remove", ["path"]).num_rows == 0 for group in groups)


def test_a_split_is_not_pickled_as_the_whole() -> None:
    store, checkpoint = one_file(row_group_rows=1000)
    (split,) = split_checkpoint(checkpoint, 1 << 30)
    with pytest.raises(TypeError, match="send its split"):
        pickle.dumps(PartialCheckpoint(store, checkpoint.files, split))
