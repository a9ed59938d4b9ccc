"""One mutant at a time, in a copy of the source, against the tests that are about its module.

Each run is a fork of a process that has the libraries loaded, but nothing of deltalog: so a mutant
costs what its tests cost. The module's own test file comes first; what passes there meets the other
tests that name the module, and those of its package.
"""

from __future__ import annotations

import importlib
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final

import hypothesis
import pytest

from tests.mutation.operators import Mutant

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = Path("src/deltalog")
LOADED_ONCE: Final = (
    "fsspec.implementations.local",
    "fsspec.implementations.memory",
    "orjson",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pyroaring",
    "sqlglot",
)
SECOND_LINE: Final = ("unit", "property", "conformance", "stateful", "sharing")
TEST_SECONDS: Final = 60  # one test that takes longer hangs
FIRST_LINE_SECONDS: Final = 240
MOST_BYTES: Final = 8 << 30


class Outcome(StrEnum):
    """What the tests said."""

    KILLED = "killed"
    TIMEOUT = "timeout"  # a test never ended, which tells as much
    SURVIVED = "survived"


class _Watch:
    """Notes which test file is at work, and ends the process if one test never ends."""

    def __init__(self, note: Path) -> None:
        self._note = note
        signal.setitimer(signal.ITIMER_REAL, TEST_SECONDS)  # for what is imported

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot even be imported."""
        if report.failed:
            self._note.write_text(report.nodeid.partition("::")[0], "utf-8")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note the file, and begin to count anew."""
        self._note.write_text(nodeid.partition("::")[0], "utf-8")
        signal.setitimer(signal.ITIMER_REAL, TEST_SECONDS)


class MutatedTree:
    """A copy of the source, of which at most one line is changed at a time."""

    def __init__(self, directory: Path, *, second_line_seconds: float) -> None:
        self._source = directory / "src"
        self._second_line_seconds = second_line_seconds
        self._note = directory / "file at work"
        self._sound: dict[str, bool] = {}
        shutil.copytree(ROOT / "src", self._source, ignore=shutil.ignore_patterns("__pycache__"))
        for name in LOADED_ONCE:
            importlib.import_module(name)
        os.environ["PYTHONPATH"] = str(self._source)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.environ["HYPOTHESIS_PROFILE"] = "mutants"

    def read(self, module: str) -> bytes:
        """Return the source of a module as it is."""
        return (ROOT / PACKAGE / module).read_bytes()

    def outcome(self, mutant: Mutant) -> Outcome:
        """Run the tests that are about a mutant's module, until one fails."""
        for files, seconds in self._lines(mutant.module):
            with self._changed(mutant):
                outcome = self._run(files, seconds)
            if outcome is not Outcome.SURVIVED and self._is_sound(self._note.read_text("utf-8")):
                return outcome
        return Outcome.SURVIVED

    def _is_sound(self, file: str) -> bool:
        """Tell whether a test file passes without a mutant; otherwise it would kill every one."""
        if file and file not in self._sound:
            self._sound[file] = self._run([ROOT / file], FIRST_LINE_SECONDS) is Outcome.SURVIVED
            if not self._sound[file]:
                print(f"{file} fails without any mutant, so it tells nothing", flush=True)
        return self._sound.get(file, True)

    @contextmanager
    def _changed(self, mutant: Mutant) -> Iterator[None]:
        path = self._source.parent / PACKAGE / mutant.module
        original = path.read_bytes()
        path.write_bytes(mutant.applied_to(original))
        try:
            yield
        finally:
            path.write_bytes(original)

    def _lines(self, module: str) -> Iterator[tuple[Sequence[Path], float]]:
        own = own_test(module)
        if own.is_file():
            yield [own], FIRST_LINE_SECONDS
        if self._second_line_seconds:
            others = [path for path in related_tests(module) if path != own]
            yield others, self._second_line_seconds

    def _run(self, files: Sequence[Path], seconds: float) -> Outcome:
        self._note.write_text("", "utf-8")
        child = os.fork()
        if child == 0:
            self._test(files)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                _end_group(child)
                if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
                    return Outcome.TIMEOUT
                return Outcome.KILLED if status else Outcome.SURVIVED
            time.sleep(0.02)
        _end_group(child)
        os.kill(child, signal.SIGKILL)  # it may not lead its group yet
        os.waitpid(child, 0)
        return Outcome.SURVIVED  # as far as there was time

    def _test(self, files: Sequence[Path]) -> None:
        """Run tests in this process, and end it with their result."""
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        with Path(os.devnull).open("w") as nowhere:
            if "DELTALOG_MUTANTS_SHOW" not in os.environ:
                os.dup2(nowhere.fileno(), 1)
                os.dup2(nowhere.fileno(), 2)
        sys.path.insert(0, str(self._source))
        hypothesis.settings.register_profile(
            "mutants",
            deadline=None,
            derandomize=True,
            database=None,
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],  # a failure is enough
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        )
        arguments = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain"]
        try:
            code = pytest.main([*arguments, *map(str, files)], plugins=[_Watch(self._note)])
        except BaseException:  # noqa: BLE001 - whatever it is, the tests did not pass
            os._exit(1)
        os._exit(0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code)


def own_test(module: str) -> Path:
    """Return where the tests of a module are, if it has some of its own."""
    path = Path(module)
    tests = ROOT / "tests"
    if path.parts[0] == "sharing":
        return tests / "sharing" / ("test_" + "_".join([*path.parts[1:-1], path.name]))
    return tests / "unit" / path.parent / f"test_{path.name}"


def related_tests(module: str) -> list[Path]:
    """Return the tests that name a module, those beside its own, of its package, and of tables."""
    path = Path(module).with_suffix("")
    dotted = ".".join(["deltalog", *path.parts])
    package = f"deltalog.{path.parts[0]}"
    beside = own_test(module).parent
    ranked = []
    for kind in SECOND_LINE:
        for file in sorted((ROOT / "tests" / kind).rglob("test_*.py")):
            text = file.read_text("utf-8")
            ranks = (
                dotted in text,
                file.parent == beside and path.name.split("_")[0] in file.stem,
                file.parent == beside,
                kind != "unit" and package in text,
                file.parent.name == "table",
            )
            if any(ranks):
                is_long = kind in {"property", "stateful"}
                ranked.append((is_long, ranks.index(True), file.stat().st_size, file))
    return [file for *_, file in sorted(ranked)]


def _end_group(group: int) -> None:
    """End what a run has started and left."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
