"""A version in pieces that are read apart."""

from __future__ import annotations

import pickle

import pytest

from deltalog.log.context import utc_context
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.log.snapshot.splits import CutSnapshot, cut_snapshot, holds_more_files
from tests.support import logs
from tests.support.opening import checkpointed, paths


def cut(snapshot: Snapshot) -> CutSnapshot:
    return snapshot.read_log(lambda state: cut_snapshot(snapshot, state))


def latest(store: logs.DictStore) -> Snapshot:
    return load_snapshot(utc_context(store))


def test_without_a_checkpoint_there_is_one_piece() -> None:
    found = cut(latest(logs.table_of([logs.add("a")], [logs.add("b"), logs.remove("a")])))
    assert found.num_pieces == 1
    assert paths(found.piece(0)) == {"b"}
    assert found.piece(0).tombstones(["path"]).column("path").to_pylist() == ["a"]
    assert [paths(piece) for piece in found.small_pieces(0)] == [{"b"}]


def test_an_empty_table_has_an_empty_piece() -> None:
    found = cut(latest(logs.table_of([])))
    assert found.num_pieces == 1
    assert paths(found.piece(0)) == set()


def test_the_last_piece_has_what_is_newer() -> None:
    store = checkpointed(commits=11, at=9)
    logs.commit(store, 11, logs.remove("f3"), logs.add("f0", size=7))
    found = cut(latest(store))
    assert found.num_pieces == 2
    assert paths(found.piece(0)) == {"f1", "f2", "f4", "f5", "f6", "f7", "f8", "f9"}
    assert paths(found.piece(1)) == {"f10", "f0"}
    small = [path for piece in found.small_pieces(0) for path in paths(piece)]
    assert sorted(small) == ["f1", "f2", "f4", "f5", "f6", "f7", "f8", "f9"]


def test_a_piece_is_of_its_version() -> None:
    whole = latest(checkpointed())
    piece = cut(whole).piece(0)
    assert (piece.version, piece.protocol, piece.metadata) == (
        whole.version, whole.protocol, whole.metadata,
    )  # fmt: skip
    assert piece.configuration is whole.configuration


def test_a_cut_travels_and_a_piece_does_not() -> None:
    found = cut(latest(checkpointed()))
    there: CutSnapshot = pickle.loads(pickle.dumps(found))
    for number in range(found.num_pieces):
        assert paths(there.piece(number)) == paths(found.piece(number))
    with pytest.raises(TypeError, match="send the CutSnapshot"):
        pickle.dumps(found.piece(0))


def test_how_many_files_a_checkpoint_holds() -> None:
    assert not holds_more_files(latest(logs.table_of([logs.add("a")])), 0)
    snapshot = latest(checkpointed(commits=12, at=10))
    assert [holds_more_files(snapshot, count) for count in (0, 10, 11, 1 << 40)] == [
        True, True, False, False,
    ]  # fmt: skip
