"""The law of pieces: all of them together are the version, whoever looks at them and however.

Any log, whatever the layout of its checkpoint; what Spark's tasks do with a piece is done here
without Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.data.scan.prune import Pruned, prune
from deltalog.errors import MalformedLogError
from deltalog.expressions import as_expression, resolve_predicate
from deltalog.log import names
from deltalog.log.checkpoints.rows import stats_leaves
from deltalog.log.checkpoints.writer import CheckpointLayout, part_places
from deltalog.log.context import utc_context
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.log.snapshot.splits import CutSnapshot, cut_snapshot, holds_more_files
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.stats.schema import schema_of_leaves
from deltalog.spark.engine.checkpoint import paths_at
from deltalog.spark.reading.state import PruneSpec, prune_piece, united
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from tests.property.test_checkpoint_laws import LAYOUTS, commits, tables, without_feature
from tests.property.test_replay_laws import Model, histories
from tests.support import logs
from tests.support.examples import examples
from tests.support.logs import DictStore

pruning = import_module("deltalog.data.scan.prune")  # the room has a function of that name

WHERE = (
    "k > 0",
    "k = 5 OR s = 'x'",
    "d = DATE'2024-02-29'",
    "t < TIMESTAMP'2024-02-29 01:02:03Z'",
    "n < 0 AND k IS NULL",
    "s IS NULL",
    "f = double('NaN')",
    "NOT b",
    "st.x > 1",
    "d IS NULL AND k > 1",
)


@st.composite
def checkpointed(draw: st.DrawFn, layout: tuple[CheckpointLayout, int | None]) -> DictStore:
    """A log of random files with a checkpoint of a layout, and perhaps a commit after it."""
    first, columns, partitions = draw(tables())
    if layout == LAYOUTS["parts"]:
        first[0] = without_feature(first[0], "v2Checkpoint")
    store = DictStore()
    logs.commit(store, 0, *first, *draw(commits(columns, partitions)))
    logs.commit(store, 1, *draw(commits(columns, partitions)))
    create_checkpoint(load_snapshot(utc_context(store)), layout=layout[0], part_rows=layout[1])
    if draw(st.booleans()):
        logs.commit(store, 2, *draw(commits(columns, partitions)))
    return store


def cut(snapshot: Snapshot, share_bytes: int) -> CutSnapshot:
    """The pieces as another process gets them."""
    found = snapshot.read_log(lambda state: cut_snapshot(snapshot, state, share_bytes=share_bytes))
    copy: CutSnapshot = pickle.loads(pickle.dumps(found))
    return copy


def texts(tables: Iterable[pa.Table]) -> list[str]:
    return sorted(repr(row) for table in tables for row in table.to_pylist())


def live_rows(pruned: Pruned) -> int | str | None:
    """How many rows are left, or what of the statistics cannot be."""
    try:
        return pruned.num_live_rows()
    except MalformedLogError as error:
        return str(error)


@given(history=histories(), share_bytes=st.sampled_from([4000, 1 << 20]))
@settings(max_examples=examples(60))
def test_all_pieces_are_the_version(
    history: tuple[DictStore, list[Model]], share_bytes: int
) -> None:
    store, models = history
    for version in {0, len(models) - 1}:
        whole = load_snapshot(utc_context(store), version=version)
        found = cut(load_snapshot(utc_context(store), version=version), share_bytes)
        pieces = [found.piece(number) for number in range(found.num_pieces)]
        small = [one for n in range(found.num_pieces) for one in found.small_pieces(n)]
        assert texts(one.files() for one in pieces) == texts([whole.files()])
        assert texts(one.files() for one in small) == texts([whole.files()])
        assert texts(one.tombstones() for one in pieces) == texts([whole.tombstones()])


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@given(data=st.data())
@settings(max_examples=examples(25))
def test_pieces_prune_as_the_whole_does(
    layout: tuple[CheckpointLayout, int | None], data: st.DataObject
) -> None:
    store = data.draw(checkpointed(layout))
    whole = load_snapshot(utc_context(store))
    schema = whole.configuration.schema
    predicate = resolve_predicate(as_expression(data.draw(st.sampled_from(WHERE)), schema), schema)
    want = prune(whole, predicate)
    members = tuple(FILE_SCHEMA.names)
    found = cut(load_snapshot(utc_context(store)), data.draw(st.sampled_from([4000, 1 << 20])))
    spec = PruneSpec(cut=found, predicate=predicate, names=members, most_rows=None)
    answers = [prune_piece(spec, number) for number in range(found.num_pieces)]
    got = united(whole, answers)
    assert texts([got.files(members)]) == texts([want.files(members)])
    assert sorted(map(str, got.num_records())) == sorted(map(str, want.num_records()))
    assert got.explain() == want.explain()
    assert (got.is_exact, live_rows(got)) == (want.is_exact, live_rows(want))
    counted = [prune_piece(replace(spec, most_rows=0), n) for n in range(found.num_pieces)]
    assert [one.num_left for one in counted] == [one.num_left for one in answers]
    assert [one.left_bytes for one in counted] == [one.left_bytes for one in answers]
    assert all((one.files is None) == (one.num_left > 0) for one in counted)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@given(data=st.data())
@settings(max_examples=examples(24))
def test_a_large_table_is_pruned_as_a_small_one(
    layout: tuple[CheckpointLayout, int | None], data: st.DataObject
) -> None:
    store = data.draw(checkpointed(layout))
    whole = load_snapshot(utc_context(store))
    schema = whole.configuration.schema
    predicate = resolve_predicate(as_expression(data.draw(st.sampled_from(WHERE)), schema), schema)
    want = prune(whole, predicate)
    snapshot = load_snapshot(utc_context(store))
    members = FILE_SCHEMA.names
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pruning, "_LARGE_BYTES", 0)
        patch.setattr(pruning, "_HELD_BYTES", data.draw(st.sampled_from([0, 1 << 20])))
        for _ in range(2):  # the second time with what is cached
            got = prune(snapshot, predicate)
            assert got.files(members).equals(want.files(members))
            assert got.num_records().to_pylist() == want.num_records().to_pylist()
            assert live_rows(got) == live_rows(want)
            if want.num_records():  # of no file, every row matches
                assert got.is_exact == want.is_exact
            assert got.explain()[0] == want.explain()[0]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@given(data=st.data())
@settings(max_examples=examples(20))
def test_statistics_of_pieces_are_those_of_the_whole(
    layout: tuple[CheckpointLayout, int | None], data: st.DataObject
) -> None:
    store = data.draw(checkpointed(layout))
    whole = load_snapshot(utc_context(store))
    leaves = schema_of_leaves(stats_leaves(whole.configuration))
    found = cut(load_snapshot(utc_context(store)), 4000)
    small = [one for n in range(found.num_pieces) for one in found.small_pieces(n)]
    assert texts(one.stats(leaves) for one in small) == texts([whole.stats(leaves)])


@given(
    paths=st.lists(st.text("ab\u00e9\u20ac\U0001f600/", min_size=1, max_size=3), max_size=60),
    parts=st.integers(1, 6),
    cuts=st.integers(1, 4),
)
def test_places_among_all_paths(paths: list[str], parts: int, cuts: int) -> None:
    """Both of paths that a piece has once and of those that many have."""
    adds = [logs.add(path, deletionVector=logs.vector(str(n))) for n, path in enumerate(paths)]
    store = logs.table_of([])
    state = [logs.PROTOCOL, logs.metadata()]
    logs.multi_part_checkpoint(
        store, 0, [[*state, *adds[::cuts]], *(adds[n::cuts] for n in range(1, cuts))]
    )
    whole = load_snapshot(utc_context(store))
    found = cut(whole, 4000)
    places = part_places(len(paths), parts)
    got = paths_at(
        lambda look: [look(number) for number in range(found.num_pieces)],
        found,
        places,
        len(paths),
        samples=3,
    )
    if paths:
        assert got == [sorted(paths)[place] for place in places]


def test_how_many_files_there_are_is_known_without_reading_them() -> None:
    adds = [logs.add(f"{n:032x}.parquet") for n in range(50)]
    store = logs.table_of([])
    logs.v2_checkpoint(store, 0, [logs.PROTOCOL, logs.metadata(), *adds], sidecars=2)
    snapshot = load_snapshot(utc_context(store))
    assert holds_more_files(snapshot, 49)
    assert not holds_more_files(snapshot, 50)
    assert not holds_more_files(snapshot, 1 << 40)
    assert not snapshot.read_log(lambda state: state.holds_columns)


@pytest.mark.parametrize("kind", ["piece", "checkpoint"])
def test_a_piece_is_not_sent_as_the_whole(kind: str) -> None:
    store = logs.table_of([logs.add("a")])
    logs.classic_checkpoint(store, 0, [logs.PROTOCOL, logs.metadata(), logs.add("a")])
    piece: Any = cut(load_snapshot(utc_context(store)), 4000).piece(0)
    with pytest.raises(TypeError, match=r"cannot pickle a piece|is not picklable"):
        pickle.dumps(piece if kind == "piece" else piece._state.checkpoint)


@pytest.mark.parametrize("share_bytes", [1000, 1 << 20])
def test_row_groups_are_shared_out(share_bytes: int) -> None:
    """Also where they hold other actions, or both kinds."""
    adds = [logs.add(f"{n}") for n in range(10)]
    removes = [logs.remove(f"r{n}") for n in range(10)]
    store = logs.table_of([], [logs.remove("3"), logs.add("r4")])
    rows = [logs.PROTOCOL, *adds[:5], *removes, logs.metadata(), *adds[5:]]
    path = names.log_path(names.checkpoint_name(0))
    store.put(path, logs.checkpoint_parquet(rows, row_group_rows=4))
    whole = load_snapshot(utc_context(store))
    found = cut(whole, share_bytes)
    small = [list(found.small_pieces(number)) for number in range(found.num_pieces)]
    assert texts(one.files() for group in small for one in group) == texts([whole.files()])
    pieces = [found.piece(number) for number in range(found.num_pieces)]
    assert texts(one.tombstones() for one in pieces) == texts([whole.tombstones()])
    assert max(one.num_files for group in small for one in group) <= 4
    assert (sum(bool(one.num_files) for one in pieces) > 2) == (share_bytes == 1000)
