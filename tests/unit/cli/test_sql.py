"""`deltalog sql`: statements from an argument, a file, standard input and a prompt."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from deltalog import DeltaTable
from deltalog.cli import app
from tests.support.command_line import lines, run

pty = pytest.importorskip("pty")


def _named(table: str) -> tuple[str, str]:
    return "--table", f"t={table}"


def test_a_statement_is_no_catalog() -> None:
    told = run("sql", "-c", "SELECT 1", code=2).stderr
    assert "'SELECT 1': it is a statement; give it without an option" in told


def test_an_argument_is_run(table: str) -> None:
    assert lines("sql", *_named(table), "SELECT id, name FROM t WHERE id > 1 ORDER BY id") == [
        {"id": 2, "name": "b,c"},
        {"id": 3, "name": None},
    ]


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("table", ["n  s", "2  a,b"]),
        ("json", ['{"n":2,"s":"a,b"}']),
        ("csv", ['"n","s"', '2,"a,b"']),
    ],
)
def test_rows_have_a_form(form: str, shown: list[str]) -> None:
    found = run("sql", "SELECT 2 AS n, 'a,b' AS s", "--format", form)
    assert found.stdout.splitlines() == shown


def test_rows_may_be_arrow() -> None:
    found = CliRunner().invoke(app, ["sql", "SELECT 2 AS n", "--format", "arrow"])
    assert pa.ipc.open_stream(found.stdout_bytes).read_all().to_pylist() == [{"n": 2}]


def test_a_change_tells_what_it_did(table: str) -> None:
    found = run("sql", *_named(table), "DELETE FROM t WHERE id = 1")
    assert found.stdout.splitlines()[0] == "2 rows deleted"
    assert " 0" not in found.stdout
    assert lines("sql", *_named(table), "DELETE FROM t WHERE id = 1") == [{"num_affected_rows": 0}]
    found = run("sql", *_named(table), "DELETE FROM t WHERE id = 1")
    assert found.stdout.splitlines()[0] == "nothing changed"
    found = run("sql", *_named(table), "ALTER TABLE t ADD COLUMN x INT")
    assert (found.stdout, found.stderr.strip()) == ("", "done")


def test_results_of_several_statements_are_apart() -> None:
    found = run("sql", "SELECT 1 AS a; SELECT 2 AS b")
    assert found.stdout.splitlines() == ["a", "1", "", "b", "2"]


def test_a_file_is_run(table: str, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("-- é\nINSERT INTO t (id) VALUES (9); SELECT max(id) AS n FROM t;", "utf-8")
    assert lines("sql", *_named(table), "--file", script)[-1] == {"n": 9}


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_standard_input_is_run(table: str, arguments: tuple[str, ...]) -> None:
    command = ["sql", *_named(table), *arguments, "--format", "csv"]
    found = CliRunner().invoke(app, command, input="SELECT count(*) AS n FROM t;\nSELECT 1 AS m;")
    assert (found.exit_code, found.stdout.splitlines()) == (0, ['"n"', "4", '"m"', "1"])


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("SELEC 1",), 2, "at line 1, character 1: expected SELECT"),
        (("SELECT * FROM missing",), 3, "cannot find the table missing"),
        (("SELECT 1 / 0",), 2, "division by zero"),
        (("SELECT 1", "--table", "t"), 2, "--table: expected name=location, found 't'"),
        (("SELECT 1", "--table", "=x"), 2, "--table: expected name=location"),
        (("SELECT 1", "--file", "{script}"), 2, "give one of them"),
        (("--file", "/no/such/file"), 2, "does not exist"),
        (("-f", "report.sql"), 2, "--file FILE (-i) runs the statements of a file"),
        (("report.sql",), 2, "--file report.sql runs the statements of a file"),
    ],
)
def test_problems_have_exit_codes(
    tmp_path: Path, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    script = tmp_path / "script.sql"
    script.write_text("SELECT 1", "utf-8")
    found = run("sql", *(one.format(script=script) for one in arguments), code=code)
    assert problem in " ".join(found.stderr.split())


def test_a_script_is_checked_before_it_runs(table: str) -> None:
    run("sql", *_named(table), "DELETE FROM t; SELEC 1", code=2)
    assert DeltaTable(table).count() == 4


def test_nothing_is_no_problem() -> None:
    assert run("sql", " ; -- nothing").stdout == ""


class Terminal:
    """A prompt in a terminal of its own.

    Args:
        home: where the history is kept.
        arguments: of the command.
    """

    def __init__(self, home: Path, *arguments: str) -> None:
        self._end, child = pty.openpty()
        environment = {**os.environ, "HOME": str(home), "TERM": "dumb", "NO_COLOR": "1"}
        command = [sys.executable, "-m", "deltalog", "sql", *arguments]
        # A shell starts jobs in the background with SIGINT ignored, which processes inherit.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.process = subprocess.Popen(
            command, stdin=child, stdout=child, stderr=child, env=environment, close_fds=True,
            start_new_session=True,
        )  # fmt: skip
        signal.signal(signal.SIGINT, before)
        os.close(child)

    def read_until(self, text: str) -> str:
        """What is shown up to a text."""
        shown, last = "", time.monotonic() + 60
        while text not in shown:
            assert time.monotonic() < last, shown
            if select.select([self._end], [], [], 1)[0]:
                shown += os.read(self._end, 4096).decode()
        return shown

    def interrupt_until(self, text: str) -> None:
        """Press Ctrl-C until a text is shown: one that comes before the wait for input is lost."""
        shown, last = "", time.monotonic() + 60
        while text not in shown:
            assert time.monotonic() < last, shown
            os.killpg(self.process.pid, signal.SIGINT)
            while select.select([self._end], [], [], 2)[0]:
                shown += os.read(self._end, 4096).decode()

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self._end, text.encode())

    def close(self) -> None:
        """End the process if it is still there."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._end)


@pytest.fixture
def terminal(table: str, tmp_path: Path) -> Iterator[Terminal]:
    """A prompt over the table `t`, with a home of its own."""
    made = Terminal(tmp_path, *_named(table))
    yield made
    made.close()


def test_a_prompt_runs_statements_until_it_is_told_to_end(
    terminal: Terminal, tmp_path: Path
) -> None:
    terminal.read_until("deltalog> ")
    terminal.type("SELECT count(*) AS rows\n")
    terminal.read_until("     ...> ")
    terminal.type("FROM t;\n")
    assert "rows\r\n4" in terminal.read_until("deltalog> ")
    terminal.type("SELEC 1;\n")
    assert "error: cannot read the statement" in terminal.read_until("deltalog> ")
    terminal.type("SELECT 1 AS a; SELECT 2 AS b;\n")
    assert "b" in terminal.read_until("deltalog> ")
    terminal.type("\n")
    terminal.read_until("deltalog> ")
    terminal.type("half a statement\n")
    terminal.read_until("     ...> ")
    terminal.interrupt_until("deltalog> ")
    terminal.type("\\q\n")
    assert terminal.process.wait(60) == 0
    history = tmp_path / ".deltalog_history"
    if history.exists():  # where Python has readline
        assert "SELECT count(*) AS rows" in history.read_text("utf-8")
        assert history.stat().st_mode & 0o077 == 0


def test_a_prompt_ends_at_the_end_of_what_is_typed(terminal: Terminal) -> None:
    terminal.read_until("deltalog> ")
    terminal.type("\x04")
    assert terminal.process.wait(60) == 0


def test_tables_are_found_in_a_catalog(table: str, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    given = ("--catalog", lake, "--schema", "sales")
    missing = run("sql", *given, *_named(table), "CREATE TABLE orders AS SELECT * FROM t", code=3)
    assert "CREATE SCHEMA sales makes it" in missing.stderr
    run(
        "sql", *given, *_named(table), "CREATE SCHEMA sales; CREATE TABLE orders AS SELECT * FROM t"
    )
    assert lines("sql", *given, "SELECT count(*) AS n FROM orders") == [{"n": 4}]
    assert lines("sql", "--catalog", lake, "SHOW SCHEMAS; SHOW TABLES IN sales") == [
        {"namespace": "sales"},
        {"namespace": "sales", "tableName": "orders", "isTemporary": False},
    ]
    found = run("sql", "--schema", "sales", "SELECT 1", code=2)
    assert "--catalog" in found.stderr


def test_a_file_may_be_standard_input() -> None:
    found = CliRunner().invoke(
        app, ["sql", "--file", "-", "--json"], "SELECT 1 AS a; SELECT 2 AS b"
    )
    assert (found.exit_code, found.stdout.splitlines()) == (0, ['{"a":1}', '{"b":2}'])


_REPORT = """-- a report
SELECT count(*) AS n FROM t;

/* the others */
SELECT id
FROM t
WHERE nope = 1;
"""


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (_REPORT, "f.sql, line 5, statement 2 of 2: cannot run 'SELECT id"),
        ("SELECT 1;\nSELECT id\nFORM t;", "line 2, statement 2 of 2: cannot read"),
        ("SELECT 1;\nSELECT id\nFORM t;", "at line 3, character 6: expected the end"),
        ("SELECT 1; SELECT 2 x y", "at line 1, character 22: expected the end"),
        ("SELECT 1;\nSELECT 'x", "f.sql: cannot read the statement"),
        ("-- nothing", "f.sql has no statements"),
    ],
)
def test_an_error_names_the_line_of_the_file(
    table: str, tmp_path: Path, script: str, told: str
) -> None:
    file = tmp_path / "f.sql"
    file.write_text(script)
    code = 0 if "has no statements" in told else 2
    assert told in run("sql", *_named(table), "--file", str(file), code=code).stderr


def test_an_error_names_the_statement_of_standard_input(table: str) -> None:
    found = CliRunner().invoke(app, ["sql", *_named(table), "-"], input="SELECT 1;\n\nSELECT x")
    assert "standard input, line 3, statement 2 of 2: cannot run 'SELECT x'" in found.stderr


def test_an_error_of_one_argument_has_no_place() -> None:
    assert run("sql", "SELECT x", code=2).stderr.startswith("error: cannot run 'SELECT x'")
    told = run("sql", "SELECT 1; SELECT x", code=2).stderr
    assert "the statements, line 1, statement 2 of 2: cannot run 'SELECT x'" in told


def test_a_directory_is_no_file_of_statements(tmp_path: Path) -> None:
    told = run("sql", "--file", str(tmp_path), code=2).stderr
    assert "it is a directory; --file expects a file with statements" in told


def test_a_second_argument_is_told_how_to_write_statements() -> None:
    told = run("sql", "SELECT 1", "SELECT 2", code=2).stderr
    assert "statements are one argument in quotes, separated by semicolons" in told


def test_directories_and_files_are_told_apart(table: str, tmp_path: Path) -> None:
    told = run("write", table, str(tmp_path), code=2).stderr
    assert "it is a directory; deltalog convert makes a table" in " ".join(told.split())
    file = tmp_path / "rows.csv"
    file.write_text("id\n1\n")
    told = run("convert", str(file), code=2).stderr
    assert "it is a file; pass the directory that contains it" in " ".join(told.split())


def test_an_empty_standard_input_is_an_error(table: str) -> None:
    found = CliRunner().invoke(app, ["sql", *_named(table)], input="")
    assert found.exit_code == 2
    assert "standard input is empty: give a statement, as in deltalog sql" in found.stderr
