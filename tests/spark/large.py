"""Tables whose state is in a checkpoint, for tests of what tasks do with it."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from deltalog.checkpoints.writer import CheckpointLayout
from deltalog.snapshot import load_snapshot
from deltalog.upkeep import create_checkpoint
from tests.property.test_checkpoint_laws import LAYOUTS, commits, tables, without_feature
from tests.support import logs
from tests.support.logs import DictStore

SMALL_SHARES = 10_000
"""Bytes of a checkpoint by which one of a few files has some shares."""


@st.composite
def checkpointed(draw: st.DrawFn, layout: tuple[CheckpointLayout, int | None]) -> DictStore:
    """A log of random files with a checkpoint of a layout, and perhaps a commit after it."""
    first, columns, partitions = draw(tables())
    if layout == LAYOUTS["parts"]:
        first[0] = without_feature(first[0], "v2Checkpoint")
    store = DictStore()
    logs.commit(store, 0, *first, *draw(commits(columns, partitions)))
    logs.commit(store, 1, *draw(commits(columns, partitions)))
    create_checkpoint(load_snapshot(store), layout=layout[0], part_rows=layout[1])
    if draw(st.booleans()):
        logs.commit(store, 2, *draw(commits(columns, partitions)))
    return store


def put_on_disk(store: DictStore, directory: Path) -> Path:
    """The files of a store where other processes see them."""
    for path, data in store.files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(data)
    return directory
