"""The commands of the command line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer

from deltalog import DeltaTable, __version__, write_deltalake
from deltalog._util.json import loads
from deltalog.cli import app, application
from tests.support.command_line import ROWS, lines, run


def test_show(table: str) -> None:
    shown = run("show", table)
    text = shown.stdout
    assert shown.stderr == f"deltalog head {table} shows rows\n"
    assert table in text
    assert " KiB" in text
    assert "decimal(9,2)" in text
    (facts,) = lines("show", f"{table}@v0")
    assert facts["version"] == 0
    assert [column["column"] for column in facts["schema"]] == ROWS.column_names


def test_history(table: str) -> None:
    assert [row["version"] for row in lines("history", table)] == [1, 0]
    assert [row["version"] for row in lines("history", table, "-n", 1)] == [1]
    told = run("history", table).stdout.splitlines()
    assert told[0].split() == ["version", "timestamp", "operation", "changed", "parameters"]
    assert re.search(r"  WRITE +1 row written +mode=Append$", told[1])


def test_files(table: str) -> None:
    assert [row["num_records"] for row in lines("files", table)] == [3, 1]
    assert [row["num_records"] for row in lines("files", table, "--where", "id > 1")] == [3]
    assert [row["num_records"] for row in lines("files", table, "-n", 1)] == [3]
    assert "part-" in run("files", table).stdout


def test_doctor(table: str) -> None:
    assert "at version 1: 2 info" in run("doctor", table).stdout
    assert "at version 0" in run("doctor", f"{table}@v0", "--samples", 1).stdout
    next(Path(table).glob("*.parquet")).unlink()
    found = lines("doctor", table, "--check", "paths", code=1)
    assert [row["check"] for row in found] == ["file-missing"]


def test_doctor_of_a_table_that_cannot_be_opened(table: str) -> None:
    (Path(table) / "_delta_log" / "00000000000000000000.json").unlink()
    assert "no version" in run("doctor", table, code=1).stdout


def test_optimize(table: str) -> None:
    (metrics,) = lines("optimize", table)
    assert metrics["numFilesRemoved"] == 2
    run("optimize", table, "--z-order", "id")
    (metrics,) = lines("optimize", table, "--purge")
    assert metrics["numFilesRemoved"] == 0
    assert "use one" in run("optimize", table, "--purge", "-z", "id", code=2).stderr
    assert run("optimize", table, "--purge").stdout.splitlines()[0] == "nothing to optimize"


def test_optimize_of_some_partitions(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    for number in (1, 2, 3):
        rows = {"m": [1, 2], "a": [number] * 2, "b": [number] * 2}
        write_deltalake(place, rows, partition_by=["m"], mode="append")
    (metrics,) = lines("optimize", place, "--where", "m = 1")
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (3, 1)
    (metrics,) = lines("optimize", place, "--where", "m = 1", "--purge")
    assert metrics["totalConsideredFiles"] == 1
    (metrics,) = lines("optimize", place, "--z-order", "b,a", "--where", "m = 2")
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (3, 1)
    assert DeltaTable(place).history(1)[0]["operationParameters"]["zOrderBy"] == '["b","a"]'


def test_optimize_tells_what_it_did(table: str) -> None:
    told = run("optimize", table).stdout
    assert re.match(r"2 files of [\d.]+ KiB rewritten as 1 file of [\d.]+ KiB\n", told)
    assert re.search(r"size of files removed +[\d.]+ KiB, [\d.]+ KiB each", told)
    assert not re.search(r"[{}]|[a-z][A-Z][a-z]| 0$", told, re.MULTILINE)


def test_vacuum(table: str) -> None:
    write_deltalake(table, ROWS, mode="overwrite")
    DeltaTable(table).alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    )
    assert len(lines("vacuum", table)) == len(lines("vacuum", table, "--dry-run")) == 2
    assert "2 files can be deleted: add --delete" in run("vacuum", table).stderr
    assert len(lines("vacuum", table, "--delete")) == 2
    assert lines("vacuum", table, "--full") == []
    assert "0 files deleted" in run("vacuum", table, "--delete").stderr
    assert run("vacuum", table).stderr == "no file can be deleted\n"


def test_vacuum_of_files_that_readers_may_need(table: str) -> None:
    write_deltalake(table, ROWS, mode="overwrite")
    few = ("vacuum", table, "--retention-hours", "0")
    for given in (few, (*few, "--delete")):
        assert "add --force" in run(*given, code=2).stderr
    assert len(lines(*few, "--force")) == 2
    assert len(lines(*few, "--force", "--delete")) == 2


def test_a_reader_that_stops_early_is_no_error(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    write_deltalake(uri, {"id": list(range(200_000))})
    command = f"{sys.executable} -m deltalog scan '{uri}' --csv | head -1; echo ${{PIPESTATUS[0]}}"
    told = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)  # noqa: S607  # our own command
    assert told.stdout == '"id"\n0\n'
    assert told.stderr == ""


FILES = {
    "a.csv": "id,name\n1,x\n2,\n",
    "a.json": '{"id": 1, "name": "x"}\n{"id": 2, "name": ""}\n',
    "a.NDJSON": '{"id": 1, "name": "x"}\n{"id": 2, "name": ""}\n',
}


@pytest.mark.parametrize("name", FILES)
def test_write(tmp_path: Path, name: str) -> None:
    file, uri = tmp_path / name, str(tmp_path / "table")
    file.write_text(FILES[name])
    assert lines("write", uri, str(file), "-p", "id") == [{"version": 0, "rows": 2}]
    assert "already exists" in run("write", uri, str(file), code=3).stderr
    assert lines("write", uri, str(file), "--mode", "append") == [{"version": 1, "rows": 2}]
    assert lines("scan", uri, "-w", "id = 1") == [{"id": 1, "name": "x"}] * 2
    assert DeltaTable(uri).metadata().partition_columns == ("id",)


def test_write_of_parquet_and_of_standard_input(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    pq.write_table(ROWS, tmp_path / "a.parquet")
    count = ROWS.num_rows
    assert lines("write", uri, str(tmp_path / "a.parquet")) == [{"version": 0, "rows": count}]
    for kind, content in (
        ("csv", FILES["a.csv"].encode()),
        ("json", FILES["a.json"].encode()),
        ("parquet", (tmp_path / "a.parquet").read_bytes()),
    ):
        command = [sys.executable, "-m", "deltalog", "write", str(tmp_path / kind), "-"]
        told = subprocess.run(
            [*command, "--from", kind], input=content, check=False
        )  # our own command
        assert told.returncode == 0
        assert DeltaTable(tmp_path / kind).count() == (count if kind == "parquet" else 2)


def test_write_of_what_is_no_such_file(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    (tmp_path / "a.parquet").write_text("no")
    for name, hint in (
        ("a.parquet", "as parquet"),
        ("b.csv", "b.csv': there is no such file"),
        ("a.txt", "--from csv"),
    ):
        assert hint in run("write", uri, str(tmp_path / name), code=2).stderr
    assert not Path(uri).exists()


def test_convert(tmp_path: Path) -> None:
    for number in range(2):
        directory = tmp_path / "table" / f"p={number}"
        directory.mkdir(parents=True)
        pq.write_table(ROWS, directory / "a.parquet")
    assert lines("convert", str(tmp_path / "table")) == [{"version": 0, "files": 2}]
    assert DeltaTable(tmp_path / "table").count() == 2 * ROWS.num_rows
    run("convert", str(tmp_path / "table"), code=3)


def test_restore(table: str) -> None:
    sizes = [add["size_bytes"] for add in DeltaTable(table).get_add_actions().to_pylist()]
    removed = sum(sizes) - DeltaTable(table, version=0).get_add_actions()["size_bytes"][0].as_py()
    (metrics,) = lines("restore", table, 0)
    assert metrics == {
        "version": 2,
        "numRestoredFiles": 0,
        "numRemovedFiles": 1,
        "numMissingFiles": 0,
        "restoredBytes": 0,
        "removedBytes": removed,
    }
    assert DeltaTable(table).count() == 3
    assert run("restore", table, 1).stdout.startswith("restored as version 3: 1 file restored\n")
    assert run("restore", table, 1).stdout == "restored as version 4: nothing changed\n"


def test_restore_of_a_version_that_lost_files(table: str) -> None:
    write_deltalake(table, ROWS.slice(0, 1), mode="overwrite")
    Path(DeltaTable(table, version=1).file_uris()[1]).unlink()
    assert "--ignore-missing-files restores" in run("restore", table, 1, code=3).stderr
    told = run("restore", table, 1, "--ignore-missing-files").stdout
    assert "1 file restored, 1 file removed" in told
    assert "missing files" in told


def test_checkpoint(table: str) -> None:
    assert run("checkpoint", table).stderr == "checkpoint of version 1 written\n"
    assert lines("checkpoint", table) == [{"version": 1}]
    assert (Path(table) / "_delta_log" / "_last_checkpoint").exists()


def test_changed_properties(table: str) -> None:
    changes = ["--set", "a=1", "--set", "b=2"]
    assert run("properties", table, *changes).stderr == "2 properties set as version 2\n"
    told = run("properties", table, "--set", "c=3", "--unset", "a").stderr
    assert told == "1 property set, 1 property removed as version 4\n"
    assert run("properties", table, "--unset", "c", "--json").stderr == ""
    assert run("properties", table).stderr == ""


def test_properties(table: str) -> None:
    assert lines("properties", table) == []
    found = lines("properties", table, "--set", "delta.appendOnly=true", "--set", "mine=a=b")
    assert found == [
        {"property": "delta.appendOnly", "value": "true"},
        {"property": "mine", "value": "a=b"},
    ]
    assert "mine" not in run("properties", table, "--unset", "mine").stdout


def test_errors_are_one_message(table: str) -> None:
    found = run("scan", table, "--where", "nope = 1", code=2)
    assert found.stderr.startswith("error: ")
    assert "nope" in found.stderr
    assert "Traceback" not in found.stderr
    assert run("show", f"{table}-none", code=3).stderr.startswith("error: ")
    assert run("restore", table, 9, code=3).stdout == ""


def test_storage_options(table: str) -> None:
    assert "expected key=value" in run("show", table, "-o", "nonsense", code=2).stderr
    run("show", table, "-o", "auto_mkdir=false")


@pytest.mark.parametrize("given", ["--version", "--json"])
def test_the_version_stands_before_commands_only(given: str) -> None:
    if given == "--version":
        assert run("--version").stdout == f"deltalog {__version__}\n"
    else:
        run("--json", code=2)


def test_forms_have_short_names(table: str) -> None:
    assert run("history", table, "--json").stdout == run("history", table, "-f", "json").stdout
    assert run("scan", table, "--csv").stdout == run("scan", table, "-f", "csv").stdout
    assert run("scan", table, "--csv", "-f", "csv").stdout.startswith('"id"')
    assert "csv, json" in run("scan", table, "--csv", "-f", "json", code=2).stderr
    assert "json, csv" in run("scan", table, "--csv", "--json", code=2).stderr
    assert "--json" not in run("share", "--help").stdout


@pytest.mark.parametrize(
    "command",
    [
        ("show",), ("history",), ("files",), ("schema",), ("scan",), ("head",), ("count",),
        ("explain",), ("cdf", "0"), ("diff", "0"), ("doctor",), ("optimize",), ("vacuum",),
        ("restore", "0"), ("properties", "--set", "a=b"), ("sql", "SELECT 1 AS n"),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_every_command_prints_a_table_unless_told_otherwise(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    uri = str(tmp_path / "table")
    write_deltalake(uri, ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    name, *rest = command
    given = [name, *rest] if name == "sql" else [name, uri, *rest]
    text = run(*given).stdout
    assert not text.startswith(("{", '"'))
    for line in run(*given, "--json").stdout.splitlines():
        assert isinstance(loads(line.encode(), "a line"), dict)
    run(*given, "--csv")


def test_help_names_every_command() -> None:
    text = run("--help").stdout
    commands = """show history files schema scan head count explain cdf diff doctor optimize vacuum
        restore branch branches publish checkpoint properties sql write convert simulate share
        completion"""
    assert all(name in text for name in commands.split())


def test_help_groups_the_commands() -> None:
    groups = application._GROUPS.values()  # each command is in one
    found = [name for names in groups for name in names]
    expected = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    assert sorted(found) == sorted(expected)
    for name in expected - {"share"}:
        assert "list[" not in run(name, "--help").stdout


def test_it_runs_as_a_module(table: str) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "deltalog", "history", table, "--format", "json"],
        capture_output=True,
        check=True,
    )
    assert found.stdout.count(b"\n") == 2


def test_without_typer_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; from deltalog.__main__ import main; main()"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert found.returncode == 1
    assert b"pip install 'deltalog[cli]'" in found.stderr


def test_branches(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    write_deltalake(uri, ROWS)
    assert lines("branch", uri, "nightly", "--expires-days", "3") == [
        {"branch": "nightly", "table": f"{uri}@nightly", "version": 0}
    ]
    DeltaTable(f"{uri}@nightly").delete("id = 1")
    (found,) = lines("branches", uri)
    assert (found["name"], found["baseVersion"], found["state"]) == ("nightly", 0, "open")
    assert (
        "2 rows do not match"
        in run("publish", f"{uri}@nightly", "--check", "id < 0", code=1).stderr
    )
    assert "it is main" in run("publish", uri, code=2).stderr
    assert lines("publish", f"{uri}@nightly", "--check", "id > 0") == [
        {"version": 1, "wasPublished": False}
    ]
    assert run("count", uri).stdout.strip() == "2"
    assert run("branch", uri, "n1").stdout == f"{uri}@n1 created at version 1\n"
    DeltaTable(f"{uri}@n1").delete("id = 2")
    assert run("publish", f"{uri}@n1").stdout == "n1 published as version 2\n"
    run("branch", uri, "nightly")
    assert "branch nightly deleted" in run("branch", uri, "nightly", "--drop").stderr
    assert lines("branches", uri) == []
    assert "no branches" in run("branch", uri, "nightly", "--drop", code=3).stderr
