"""The commands that read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, Schema, write_deltalake
from tests.support.command_line import ROWS, lines, run


def test_the_schema_is_a_tree(table: str) -> None:
    assert run("schema", table).stdout.splitlines() == [
        "├─ id: long",
        "├─ name: string",
        "├─ at: timestamp",
        "├─ day: date",
        "├─ price: decimal(9,2)",
        "├─ raw: binary",
        "└─ part: struct",
        "   ├─ x: double",
        "   └─ y: array<long>",
    ]
    found = lines("schema", f"{table}@v0")
    assert [row["column"] for row in found][-3:] == ["part", "part.x", "part.y"]
    assert found[0] == {"column": "id", "type": "long", "nullable": True, "comment": None}


def test_names_and_comments_cannot_steer_the_terminal(tmp_path: Path) -> None:
    hostile = Field("a", "long", metadata={"comment": "\x1b]0;owned\x07 \u202egnp"})
    uri = str(tmp_path / "hostile")
    DeltaTable.create(uri, Schema([hostile]), description="\x1b[2J")
    for text in (run("schema", uri).stdout, run("show", uri).stdout):
        assert "\x1b" not in text
        assert "\\x1b" in text
    assert "\\u202egnp" in run("schema", uri).stdout


def test_head_shows_a_few_rows(table: str) -> None:
    assert [row["id"] for row in lines("head", table, "-n", 2)] == [1, 2]
    assert lines("head", table, "--columns", "name,id", "--where", "id = 3") == [
        {"name": None, "id": 3}
    ]
    assert run("head", table, "-n", 0, "-c", "id").stdout.split() == ["id"]


def test_a_comma_may_be_part_of_a_name(tmp_path: Path) -> None:
    uri = str(tmp_path / "commas")
    mapped = {"delta.columnMapping.mode": "name"}
    DeltaTable.create(uri, Schema([Field("a,b", "long"), Field("a", "long")]), configuration=mapped)
    write_deltalake(uri, [{"a,b": 1, "a": 2}], mode="append")
    assert lines("scan", uri, "-c", "a,b") == [{"a,b": 1}]
    assert lines("scan", uri, "-c", "a", "-c", "a,b") == [{"a": 2, "a,b": 1}]


@pytest.mark.parametrize(
    ("where", "rows"), [((), 4), (("--where", "id = 1"), 2), (("--where", "id > 7"), 0)]
)
def test_count(table: str, where: tuple[str, ...], rows: int) -> None:
    assert run("count", table, *where).stdout == f"{rows}\n"
    assert lines("count", table, *where) == [{"rows": rows}]
    assert lines("count", f"{table}@v0") == [{"rows": 3}]


def test_explain_says_what_a_condition_would_read(table: str) -> None:
    text = run("explain", table, "--where", "id > 1", "-c", "name").stdout
    assert "files: 2 in the table, 1 to read" in text
    assert "columns: name" in text
    (facts,) = lines("explain", table, "--where", "id > 1")
    read = (
        DeltaTable(table)
        .get_add_actions()
        .filter(
            [count == 3 for count in DeltaTable(table).get_add_actions()["num_records"].to_pylist()]
        )
    )
    assert facts.pop("reasons")
    assert facts == {
        "version": 1,
        "files": 2,
        "files_to_read": 1,
        "bytes_to_read": read["size_bytes"][0].as_py(),
        "pruned_by_partition_values": 0,
        "pruned_by_statistics": 1,
    }


def test_cdf_shows_changed_rows(tmp_path: Path) -> None:
    uri = str(tmp_path / "feed")
    write_deltalake(uri, ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(uri).delete("id = 2")
    chosen = ("-c", "id,_change_type,_commit_version")
    first = [(1, "insert", 0), (2, "insert", 0), (3, "insert", 0)]
    deleted = [(2, "delete", 1)]

    def feed(*arguments: object) -> list[tuple[object, ...]]:
        return [tuple(row.values()) for row in lines("cdf", uri, *arguments, *chosen)]

    assert feed(0) == first + deleted
    assert feed() == first + deleted
    assert feed(0, 0) == first
    assert feed(1, 1, "--where", "id = 2") == deleted
    assert feed(0, "-n", 2) == first[:2]
    assert feed(0, "-n", 0) == []
    assert feed("2020-01-01") == first + deleted
    assert "delete" in run("cdf", uri, 1, *chosen).stdout


def test_a_table_without_a_feed_has_no_changes_to_show(table: str) -> None:
    assert "delta.enableChangeDataFeed" in run("cdf", table, 0, code=3).stderr


def test_diff(table: str) -> None:
    DeltaTable(table).delete("id = 2")
    assert "1 added, 1 removed, 0 changed" in run("diff", table, 0).stdout
    (answer,) = lines("diff", table, 0, 2)
    assert answer["rows"] == {"added": 1, "removed": 1, "changed": 0}
    rows = lines("diff", table, 1, 2, "--rows")
    assert [(row["id"], row["_change_type"]) for row in rows] == [(2, "delete")]
    assert lines("diff", table, 0, 2, "--rows", "--key", "id")[0]["id"] in {1, 2}


@pytest.mark.parametrize("command", [("scan",), ("cdf",)])
def test_more_rows_than_are_shown_are_mentioned(command: tuple[str, ...], tmp_path: Path) -> None:
    uri = str(tmp_path / "many")
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(uri, pa.table({"id": list(range(50))}), configuration=feed)
    asked = (*command, uri, *(("0",) if command == ("cdf",) else ()))
    assert run(*asked).stderr == ""
    write_deltalake(uri, pa.table({"id": [50]}), mode="append")
    found = run(*asked)
    assert len(found.stdout.splitlines()) == 51
    assert found.stderr.startswith("the first 50 rows; --limit shows more")
    assert len(run(*asked, "--limit", "51").stdout.splitlines()) == 52
    assert len(lines(*asked)) == 51
