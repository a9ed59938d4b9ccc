"""Delta Spark, the reference, as an object that takes SQL.

`make reference` puts PySpark and Delta's jars under `.cache/reference`; the tests' own environment
has neither. One process is started per session of pytest and worker. Without a JVM or Maven the
tests are skipped, and fail under DELTALOG_REQUIRE_ALL=1.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

HOME = Path(__file__).parents[2] / ".cache" / "reference"


class ReferenceError(Exception):  # noqa: A001  # the reference's error, not Python's
    """A statement that the reference refused."""

    def __init__(self, *, statement: str, name: str, condition: str | None, message: str) -> None:
        self.name, self.condition, self.message = name, condition, message
        causes = [line for line in message.splitlines() if line.startswith("Caused by: ")]
        told = "\n".join([message.partition("\n\tat ")[0], *causes])
        super().__init__(f"{statement}\n{name} {condition}: {told[:2000]}")


class Spark:
    """A Spark session with Delta in a process of its own."""

    def __init__(self, scratch: Path) -> None:
        self._log = (scratch / "spark.log").open("w+", encoding="utf-8")
        driver = Path(__file__).with_name("reference_driver.py")
        python = HOME / "venv" / "bin" / "python"
        self._process = subprocess.Popen(
            [str(python), "-W", "ignore", str(driver), str(HOME / "jars"), str(scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            cwd=scratch,
            # A session of Spark Connect in this process tells of itself to all its children.
            env={name: text for name, text in os.environ.items() if not name.startswith("SPARK_")},
        )
        self.version: str = self._receive()["spark"]

    def run(self, *statements: str) -> None:
        """Run statements one after the other."""
        for statement in statements:
            self.query(statement)

    def tell(self, path: Path, *statements: str) -> None:
        """Run statements in which `T` stands for a table."""
        self.run(*(re.sub(r"\bT\b", f"delta.`{path}`", statement) for statement in statements))

    def query(self, statement: str) -> pa.Table:
        """The rows of one statement."""
        return self.queries([statement])[0]

    def follow(self, source: Path, target: Path, checkpoint: Path, **options: str) -> None:
        """Let a stream take what is new in one table to another."""
        stream = {"source": str(source), "target": str(target), "checkpoint": str(checkpoint)}
        self.queries([{**stream, "options": options}])

    def queries(self, statements: Sequence[str | Mapping[str, Any]]) -> list[pa.Table]:
        """The rows of statements that do not depend on each other."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(list(statements)) + "\n")
        self._process.stdin.flush()
        return [
            _table(statement, reply)
            for statement, reply in zip(statements, self._receive(), strict=True)
        ]

    def make_iceberg(
        self,
        path: Path,
        schema: Mapping[str, Any],
        steps: Sequence[Sequence[Any]],
        *,
        spec: Sequence[Mapping[str, Any]] = (),
        properties: Mapping[str, str],
    ) -> None:
        """Let Iceberg's own library make a table; `reference_iceberg` has the steps."""
        story = {
            "iceberg_story": str(path),
            "schema": schema,
            "spec": {"spec-id": 0, "fields": list(spec)},
            "properties": properties,
            "steps": steps,
        }
        self.queries([story])

    def iceberg(self, path: Path, snapshot: int | None = None) -> pa.Table:
        """The rows of an Iceberg table, by Iceberg's own library: now or of a snapshot."""
        return self.queries([{"iceberg": str(path), "snapshot": snapshot}])[0]

    def read(self, path: Path, version: int | None = None, *, columns: str = "*") -> pa.Table:
        """The rows of a table, now or at a version."""
        return self.query(select(path, version, columns=columns))

    def versions(
        self, path: Path, versions: Sequence[int], *, columns: str = "*"
    ) -> dict[int, pa.Table]:
        """The rows of a table at many versions."""
        statements = [select(path, version, columns=columns) for version in versions]
        return dict(zip(versions, self.queries(statements), strict=True))

    def changes(self, path: Path, start: int, end: int | None = None) -> pa.Table:
        """The change feed."""
        until = "" if end is None else f", {end}"
        call = f"table_changes_by_path('{path}', {start}{until})"
        return self.query(f"SELECT * FROM {call}")  # noqa: S608

    def history(self, path: Path) -> list[dict[str, Any]]:
        """The commits, newest first; maps as dictionaries."""
        rows = self.query(f"DESCRIBE HISTORY delta.`{path}`").to_pylist()
        for row in rows:
            for name in ("operationParameters", "operationMetrics"):
                row[name] = dict(row[name] or [])
        return rows

    def detail(self, path: Path) -> dict[str, Any]:
        """`DESCRIBE DETAIL`; maps as dictionaries."""
        row: dict[str, Any] = self.query(f"DESCRIBE DETAIL delta.`{path}`").to_pylist()[0]
        row["properties"] = dict(row["properties"] or [])
        return row

    def stop(self) -> None:
        """End the process by ending its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:  # its own children end with it
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise AssertionError(f"the reference has ended:\n{self._log.read()[-4000:]}")
        return json.loads(line)


def select(path: Path, version: int | None = None, *, columns: str = "*") -> str:
    """A statement that reads a table."""
    at = "" if version is None else f" VERSION AS OF {version}"
    return f"SELECT {columns} FROM delta.`{path}`{at}"  # noqa: S608


def _table(statement: str | Mapping[str, Any], reply: Mapping[str, Any]) -> pa.Table:
    if "error" in reply:
        raise ReferenceError(
            statement=str(statement),
            name=reply["error"],
            condition=reply["condition"],
            message=reply["message"],
        )
    with pa.ipc.open_stream(base64.b64decode(reply["rows"])) as stream:
        return stream.read_all()


def _prepare() -> None:
    """Have the reference's environment, or say why not."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"the reference needs {program}")
    if not (HOME / ".ready").exists():
        pytest.skip("the reference is not set up: run `make reference`")


@pytest.fixture(scope="session")
def delta_spark() -> Iterator[Spark]:
    """The reference, started once: of all tests, as this module is a plugin of theirs."""
    _prepare()
    with spark_process() as session:
        yield session


@contextmanager
def spark_process() -> Iterator[Spark]:
    """The reference, until the block ends."""
    # Not under pytest's directory: a table's path must hold no letters that SQL would quote.
    with tempfile.TemporaryDirectory(prefix="reference-", ignore_cleanup_errors=True) as scratch:
        session = Spark(Path(scratch))
        yield session
        session.stop()
