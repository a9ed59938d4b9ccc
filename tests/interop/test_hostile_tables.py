"""Tables whose names, comments, values and times want to steer who looks at them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog._util.escaping import printable_lines
from tests.support.command_line import run

CLEAR = "\x1b[2J\x1b]0;pwn\x07\x9b2J\u202e\u2066\x85"
NAME = f"id{CLEAR}\nWARNING"


@pytest.fixture
def hostile(tmp_path: Path) -> DeltaTable:
    """A table with controls wherever a writer may put a text."""
    path = str(tmp_path / "t")
    rows = pa.table({NAME: [CLEAR, "b"], "p": [f"x{CLEAR}", "y"], "s": [{CLEAR: 1}, {CLEAR: 2}]})
    write_deltalake(
        path,
        rows,
        partition_by=["p"],
        name=CLEAR,
        description=CLEAR,
        configuration={
            "delta.columnMapping.mode": "name",
            "delta.enableChangeDataFeed": "true",
            CLEAR: CLEAR,
        },
        commit_properties=deltalog.CommitProperties(custom_metadata={CLEAR: CLEAR}),
    )
    table = DeltaTable(path)
    deltalog.sql(f"ALTER TABLE t ALTER COLUMN p COMMENT '{CLEAR}'", t=table)
    write_deltalake(path, rows, mode="append")
    return DeltaTable(path)


def steers(text: str) -> list[str]:
    """The characters of a text that are not visible, but for line ends and tabs."""
    return [one for one in text if printable_lines(one) != one]


def shown(table: DeltaTable) -> Iterator[tuple[str, Any]]:
    """All that can be printed of a table."""
    scan = table.scan(predicate="p = 'y'")
    yield from {
        "table": table,
        "schema": table.schema(),
        "type": table.schema().fields[2].type,
        "field": table.schema().fields[0],
        "describe": table.describe(),
        "detail": table.detail(),
        "history": table.history(),
        "doctor": table.doctor(),
        "scan": scan,
        "explain": scan.explain(),
        "diff": table.diff(0),
        "metadata": table.metadata(),
        "protocol": table.protocol(),
        "snapshot": table.snapshot,
        "properties": table.snapshot.configuration.properties,
        "dataset": table.to_pyarrow_dataset(),
        "changes": table.load_cdf(0),
        "alter": table.alter,
        "optimize": table.optimize,
    }.items()
    for statement in (
        "SELECT * FROM t", "SELECT p FROM t", "SHOW CREATE TABLE t", "DESCRIBE t",
        "DESCRIBE EXTENDED t", "DESCRIBE DETAIL t", "DESCRIBE HISTORY t", "SHOW COLUMNS IN t",
        "SHOW TBLPROPERTIES t", "SHOW PARTITIONS t", "EXPLAIN SELECT * FROM t WHERE p = 'y'",
        "SELECT p FROM t LIMIT 1",
    ):  # fmt: skip
        yield statement, deltalog.sql(statement, t=table)


def test_nothing_that_is_printed_steers(hostile: DeltaTable) -> None:
    for what, value in shown(hostile):
        looked_at = [str(value), repr(value)]
        if hasattr(value, "_repr_html_"):
            looked_at.append(value._repr_html_())
        assert not [text for text in looked_at if steers(text)], what
    # A line end in a name makes no line.
    for value in (hostile.schema(), hostile.describe(), deltalog.sql("SELECT * FROM t", t=hostile)):
        assert not any(line.startswith("WARNING") for line in str(value).splitlines())


def test_errors_steer_nothing(hostile: DeltaTable) -> None:
    for ask in (
        lambda: hostile.scan(predicate=f"`nothing{CLEAR}` = 1"),
        lambda: hostile.scan(columns=[f"x{CLEAR}"]),
        lambda: write_deltalake(hostile, pa.table({CLEAR: [1]}), mode="append"),
        lambda: deltalog.sql(f"SELECT `{CLEAR}` FROM t", t=hostile),  # noqa: S608
        lambda: DeltaTable(f"/nowhere/{CLEAR}"),
    ):
        with pytest.raises(deltalog.errors.DeltaError) as caught:
            ask()
        assert not steers(str(caught.value))


COMMANDS = [
    ["schema"], ["scan"], ["head"], ["explain", "--where", "p = 'y'"], ["cdf", "0"],
    ["diff", "0"], ["show"], ["history"], ["files"], ["doctor"], ["properties"],
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one[0])
@pytest.mark.parametrize("form", ["table", "json"])
def test_no_command_steers(hostile: DeltaTable, command: list[str], form: str) -> None:
    name, *rest = command
    found = run(name, hostile.table_uri, *rest, "-f", form)
    assert not steers(found.output)
    if form == "json":
        for line in found.stdout.splitlines():
            json.loads(line)


def test_json_and_csv_hold_the_values(hostile: DeltaTable) -> None:
    query = f"SELECT p FROM delta.`{hostile.table_uri}` ORDER BY p DESC LIMIT 1"  # noqa: S608
    answer = run("sql", query, "-f", "json").stdout
    assert json.loads(answer)["p"] == "y"
    rows = [
        json.loads(line)
        for line in run("scan", hostile.table_uri, "-f", "json").stdout.splitlines()
    ]
    assert {row["p"] for row in rows} == {f"x{CLEAR}", "y"}
    # CSV in a file or a pipe is data: its values are as they are.
    assert f"x{CLEAR}" in run("scan", hostile.table_uri, "-f", "csv").stdout


@pytest.mark.skipif(sys.platform == "win32", reason="terminals are files there")
def test_csv_at_a_terminal_steers_nothing(hostile: DeltaTable) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "deltalog", "scan", hostile.table_uri, "-f", "csv"]
    ran = subprocess.Popen(command, stdout=theirs)
    os.close(theirs)
    found = b""
    with contextlib.suppress(OSError):  # the terminal is closed
        while data := os.read(ours, 65536):
            found += data
    os.close(ours)
    assert ran.wait() == 0
    assert not steers(found.decode().replace("\r\n", "\n"))
    assert rb"x\x1b[2J" in found


@pytest.mark.parametrize("time_ms", [2**63 - 1, -(2**63), 10**15, -(10**15), 253_402_300_800_000])
def test_commits_of_far_times_are_shown(tmp_path: Path, time_ms: int) -> None:
    path = tmp_path / "t"
    write_deltalake(str(path), pa.table({"id": [1]}))
    commit = path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["timestamp"] = time_ms
            line["commitInfo"]["inCommitTimestamp"] = time_ms
        if "metaData" in line:
            line["metaData"]["createdTime"] = time_ms
            line["metaData"]["configuration"] = {"delta.enableInCommitTimestamps": "true"}
        if "protocol" in line:
            line["protocol"] = {
                "minReaderVersion": 1,
                "minWriterVersion": 7,
                "writerFeatures": ["inCommitTimestamp"],
            }
    commit.write_text("\n".join(map(json.dumps, lines)) + "\n")
    for crc in (path / "_delta_log").glob("*.crc"):
        crc.unlink()
    table = DeltaTable(str(path))
    for value in (table, table.history(), table.detail(), table.describe(), table.doctor()):
        assert str(value)
        assert repr(value)
        shown: Any = value
        assert shown._repr_html_()
    assert table.history()[0]["timestamp"] == time_ms
    assert len(table.history().to_pandas()) == 1
    for statement in ("DESCRIBE HISTORY t", "DESCRIBE DETAIL t", "DESCRIBE EXTENDED t"):
        found = deltalog.sql(statement, t=table)
        assert str(found)
        assert found._repr_html_()
    for command in ("history", "show", "doctor", "files"):
        for form in ("table", "json", "csv"):
            assert run(command, str(path), "-f", form).stdout or command == "doctor"
