"""Processes that append to one table as fast as they can, and what they did.

Run as a module it is one of these processes.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from deltalog import DeltaTable, Field, Schema
from deltalog._util.json import dumps, loads
from deltalog.data.write import WriteSpec
from deltalog.data.write.files import write_files
from deltalog.log.context import utc_context
from deltalog.log.names import commit_path
from deltalog.log.snapshot import load_snapshot
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.table_change.change import new_table
from deltalog.storage import Store, open_store
from deltalog.transaction import PendingTransaction, commit, stage_and_commit

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """What a race showed.

    Args:
        versions: of the table, without version 0.
        rows: how often each row is in the table.
        retries: attempts that lost, of all processes together.
        most_retries: of one commit.
        seconds: from the first process's start to the last one's end.
        failures: what processes said that ended badly.
    """

    versions: int
    rows: Counter[int]
    retries: int
    most_retries: int
    seconds: float
    failures: list[str]


def race(url: str, options: Mapping[str, str], *, processes: int, appends: int) -> Race:
    """Make a table and let processes append to it, one row a commit."""
    store = open_store(url, dict(options))
    commit(
        PendingTransaction(
            utc_context(store), None, operation="CREATE TABLE", configuration=_configuration()
        )
    )
    started = time.monotonic()
    racers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.racing", url, dumps(dict(options)).decode(),
             str(number), str(appends)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(processes)
    ]  # fmt: skip
    retries: list[int] = []
    failures: list[str] = []
    for racer in racers:
        said, complaint = racer.communicate()
        if racer.returncode:
            failures.append(complaint[-2000:])
        else:
            retries += loads(said.splitlines()[-1])
    seconds = time.monotonic() - started
    rows = DeltaTable(url, storage_options=dict(options)).to_pyarrow_table().column("id")
    return Race(
        versions=_versions(store),
        rows=Counter(int(row) for row in rows.to_pylist() if row is not None),
        retries=sum(retries),
        most_retries=max(retries, default=0),
        seconds=seconds,
        failures=failures,
    )


def _configuration() -> TableConfiguration:
    return new_table(Schema([Field("id", "long")]), created_time_ms=0)


def _versions(store: Store) -> int:
    """How many commits there are after the first; none may be missing."""
    version = load_snapshot(utc_context(store)).version
    for number in range(version + 1):
        store.stat(commit_path(number))
    return version


def append(store: Store, ids: range) -> list[int]:
    """One commit for each id; how often each lost."""
    retries = []
    snapshot = load_snapshot(utc_context(store))
    for row in ids:

        def stage(pending: PendingTransaction, row: int = row) -> None:
            spec = WriteSpec(store=store, configuration=pending.configuration, time_zone="UTC")
            pending.add_files(write_files(spec, pa.table({"id": [row]})))

        committed = stage_and_commit(snapshot.refresh, stage, operation="WRITE").committed
        snapshot = committed.snapshot
        retries.append(committed.num_retries)
    return retries


if __name__ == "__main__":
    url, options, number, appends = sys.argv[1:]
    first = int(number) * int(appends)
    found = append(open_store(url, loads(options)), range(first, first + int(appends)))
    sys.stdout.write(f"{dumps(found).decode()}\n")
