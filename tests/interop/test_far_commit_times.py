"""Commits of times that Python does not have, and bounds of ranges that lie there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError, VersionNotFoundError

FAR, NEVER = 253_402_300_800_000, 2**63 - 1  # the year 10000; none of any timestamp


def table_of(path: Path, time_ms: int) -> str:
    """A table whose version 1 says a time, and whose file does."""
    uri = str(path / "t")
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableInCommitTimestamps": "true"}
    write_deltalake(uri, pa.table({"id": [1]}), configuration=properties)
    write_deltalake(uri, pa.table({"id": [2]}), mode="append")
    log = Path(uri, "_delta_log")
    for checksum in (*log.glob("*.crc"), *log.glob(".*.crc")):
        checksum.unlink()
    commit = log / f"{1:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"] |= {"inCommitTimestamp": time_ms, "readVersion": 2**70}
        if "add" in line:
            line["add"]["modificationTime"] = time_ms
    commit.write_text("\n".join(map(json.dumps, lines)))
    return uri


def micros(rows: pa.Table, name: str) -> list[Any]:
    found: Any = rows.column(name)
    values: list[Any] = found.cast(pa.int64()).to_pylist()
    return values


@pytest.mark.parametrize(("time_ms", "expected"), [(FAR, FAR * 1000), (NEVER, None)])
def test_a_commit_of_a_far_time_is_read(tmp_path: Path, time_ms: int, expected: int | None) -> None:
    table = DeltaTable(table_of(tmp_path, time_ms))
    changes = pa.table(table.load_cdf(starting_version=1).read_all())
    assert changes["id"].to_pylist() == [2]
    assert micros(changes, "_commit_timestamp") == [expected]
    rows = deltalog.sql("SELECT * FROM table_changes('t', 1)", t=table).to_arrow()
    assert micros(rows, "_commit_timestamp") == [expected]
    history = deltalog.sql("DESCRIBE HISTORY t LIMIT 1", t=table).to_arrow()
    assert micros(history, "timestamp") == [expected]
    assert history["readVersion"].to_pylist() == [None]
    modified = "_metadata.file_modification_time"
    files = table.scan(["id", modified], "id = 2").to_table()
    assert micros(files, modified) == [expected]
    for start in (None, 1):
        steps = list(table.follow(start, changes=True).available())
        followed = pa.concat_tables(pa.table(step.to_table()) for step in steps)
        assert micros(followed, "_commit_timestamp")[-1] == expected


# Python has these texts' clocks, but not the moments in UTC.
@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
def test_bounds_at_the_ends_of_time(tmp_path: Path, moment: str) -> None:
    uri = table_of(tmp_path, 1)
    with pytest.raises(VersionNotFoundError):
        DeltaTable(uri).load_as_version(moment)
    ends_first = (InvalidInputError, VersionNotFoundError)
    with pytest.raises(ends_first, match=r"\+10000-01-01T11|0000-12-31T12"):
        DeltaTable(uri).load_cdf(starting_timestamp=moment, ending_timestamp="0001-01-01")
