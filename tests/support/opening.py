"""Logs with a checkpoint, and with hints."""

from __future__ import annotations

from deltalog.log.names import LAST_CHECKPOINT_PATH
from deltalog.log.snapshot import Snapshot
from tests.support import logs
from tests.support.logs import DictStore

STATE = [logs.PROTOCOL, logs.metadata(), logs.add("a"), logs.add("b")]


def paths(snapshot: Snapshot) -> set[str]:
    return {str(path) for path in snapshot.files(["path"])["path"].to_pylist()}


def with_hint(store: DictStore, text: str) -> DictStore:
    store.put(LAST_CHECKPOINT_PATH, text.encode())
    return store


def checkpointed(commits: int = 12, at: int = 10) -> DictStore:
    """`commits` commits that add one file each, a checkpoint and its hint."""
    store = logs.table_of(*[[logs.add(f"f{version}")] for version in range(commits)])
    state = [logs.PROTOCOL, logs.metadata(), *[logs.add(f"f{n}") for n in range(at + 1)]]
    logs.classic_checkpoint(store, at, state)
    return with_hint(store, f'{{"version":{at},"size":{len(state)}}}')
