"""Logs where other processes see them, for tests of what tasks do with a checkpoint."""

from __future__ import annotations

from pathlib import Path

from tests.support.logs import DictStore

SMALL_SHARES = 10_000
"""Bytes of a checkpoint by which one of a few files has some shares."""


def put_on_disk(store: DictStore, directory: Path) -> Path:
    """The files of a store in a directory."""
    for path, data in store.files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(data)
    return directory
