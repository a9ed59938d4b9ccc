"""What every test can use, and the rules that hold for all of them."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.requirements import known_ids
from tests.support.tiers import MARKS, can_hold, mark_of_folder, marks_of

pytest_plugins = ["tests.support.emulators", "tests.support.reference"]
REQUIRE_ALL = os.environ.get("DELTALOG_REQUIRE_ALL", "") not in {"", "0"}

settings.register_profile(
    "long",
    deadline=None,  # two cores shared by two workers: a slow moment is no defect
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
# `make test-long` tries a property with 100 examples; the tiers, which run more often, with fewer.
settings.register_profile("deltalog", settings.get_profile("long"), max_examples=50)
settings.register_profile("quick", settings.get_profile("long"), max_examples=25)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deltalog"))

TESTS = Path(__file__).parent


def _tables(variable: str) -> Path:
    directory = os.environ.get(variable)
    if not directory:
        pytest.skip(f"{variable} does not name a directory of tables")
    path = Path(directory)
    if not (path / "manifest.json").is_file():
        pytest.fail(f"{variable}: there is no manifest.json in {path}")
    return path


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Directory of the tables that other projects ship."""
    return _tables("DELTALOG_CORPUS")


@pytest.fixture(scope="session")
def reference() -> Path:
    """Directory of the tables that Delta Spark wrote for this project."""
    return _tables("DELTALOG_REFERENCE")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files alone that have no test of this tier."""
    is_ours = collection_path.is_relative_to(TESTS)
    is_it = collection_path.is_dir() or collection_path.match("test_*.py")
    if is_ours and is_it and not can_hold(collection_path, config.getoption("-m")):
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests of Spark into their tiers; refuse requirement ids that no row has."""
    for item in items:
        if mark := mark_of_folder(item.path):
            item.add_marker(mark)
        least, most = marks_of(item.path)
        marks = {mark.name for mark in item.iter_markers()} & set(MARKS)
        if not least <= marks <= most:
            raise pytest.UsageError(f"{item.nodeid}: write its mark into its file: {marks}")
    ids = known_ids()
    wrong = [
        f"{item.nodeid}: {name!r}"
        for item in items
        for mark in item.iter_markers("protocol")
        for name in mark.args
        if name not in ids
    ]
    if wrong:
        listed = "\n  ".join(sorted(set(wrong)))
        raise pytest.UsageError(f"markers name rows that requirements.toml lacks:\n  {listed}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With DELTALOG_REQUIRE_ALL=1 a skipped test is a failed one."""
    report = yield
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and all is required: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for files that are skipped as a whole."""
    report = yield
    if REQUIRE_ALL and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped, and all is required"
    return report
