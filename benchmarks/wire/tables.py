"""The tables for the measurements over the network, built in the directory of the server."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.tables import (
    BUILDERS,
    MAP,
    PROTOCOL,
    ROWS_SCHEMA,
    add_action,
    add_file,
    batches,
    metadata_action,
    write_checkpoint,
    write_commit,
)
from benchmarks.wire.operations import WireSize
from benchmarks.workloads import SIZES

_CHECKPOINT_VERSION = 10
_LAST_VERSION = 20
_GROUP_ROWS = 1_000_000


def build(name: str, directory: Path, size: WireSize) -> Path:
    """Return the path of a table; build it unless it is complete."""
    path = directory / f"{name}-{zlib.crc32(f'1 {size}'.encode()):08x}"
    if not (path / "finished").exists():
        shutil.rmtree(path, ignore_errors=True)
        (path / "_delta_log").mkdir(parents=True)
        _BUILDERS[name](path, size)
        (path / "finished").touch()
    return path


def copied(path: Path, name: str) -> Path:
    """Copy a table with hard links: the server never changes existing files."""
    target = path.parent / name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(path, target, copy_function=os.link)
    return target


def _build_logged(path: Path, size: WireSize) -> None:
    """Build small files in the order of ids, in 21 commits, with a checkpoint of the first 11."""
    metadata = metadata_action(ROWS_SCHEMA, [])
    rows = replace(SIZES["smallest"], rows=size.files * size.file_rows, row_files=size.files)
    adds = [add_file(path, number, table) for number, table in enumerate(batches(rows))]
    versions = _LAST_VERSION + 1
    for version in range(versions):
        first, end = (size.files * number // versions for number in (version, version + 1))
        actions: list[dict[str, object]] = [{"add": add} for add in adds[first:end]]
        start: list[dict[str, object]] = [PROTOCOL, {"metaData": metadata}]
        write_commit(path, version, [*(start if version == 0 else []), *actions])
        if version == _CHECKPOINT_VERSION:
            files = pa.Table.from_pylist([{**add, "partitionValues": None} for add in adds[:end]])
            none = pa.array([[] for _ in adds[:end]], MAP)
            at = files.column_names.index("partitionValues")
            files = files.set_column(at, "partitionValues", none)
            write_checkpoint(path, version, {"add": files}, metadata)


def _build_many(path: Path, size: WireSize) -> None:
    """Build a checkpoint with many add actions, and ten commits; the data files do not exist."""
    BUILDERS["checkpointed"](path, replace(SIZES["smallest"], files=size.log_files))
    for version in range(_CHECKPOINT_VERSION + 1, _LAST_VERSION + 1):
        index = size.log_files + version - _CHECKPOINT_VERSION - 1
        write_commit(path, version, [{"add": add_action(index)}])


def _build_large(path: Path, size: WireSize) -> None:
    """Build large files with the columns of the small ones, in one commit."""
    generator = np.random.default_rng(7)
    names = pa.array([f"name-{number}" for number in range(5_000)])
    actions: list[dict[str, object]] = [PROTOCOL, {"metaData": metadata_action(ROWS_SCHEMA, [])}]
    rows = size.large_file_rows
    for number in range(size.large_files):
        ids = np.arange(number * rows, (number + 1) * rows)
        times = 1_600_000_000_000_000 + ids * 1_000 + generator.integers(0, 1_000, rows)
        table = pa.table(
            {
                "id": pa.array(ids),
                "amount": pa.array(generator.normal(size=rows)),
                "quantity": pa.array(generator.integers(0, 1_000, rows, dtype=np.int32)),
                "name": names.take(generator.integers(0, 5_000, rows)),
                "at": pa.array(times, pa.timestamp("us", "UTC")),
            }
        )
        actions.append({"add": add_file(path, number, table, group_rows=_GROUP_ROWS)})
    write_commit(path, 0, actions)


def _build_removed(path: Path, size: WireSize) -> None:
    """Build a table that was overwritten repeatedly, with old files for vacuum."""
    BUILDERS["tombstones"](path, replace(SIZES["smallest"], tombstones=size.removed_files))


_BUILDERS: dict[str, Callable[[Path, WireSize], None]] = {
    "logged": _build_logged,
    "many": _build_many,
    "large": _build_large,
    "removed": _build_removed,
}
