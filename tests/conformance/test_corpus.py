"""Every table of other writers gives what its manifest expects, by the checkers' own judgement."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.corpora import Entry, load_entries

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.filterwarnings(
        "ignore:unclosed file:ResourceWarning"
    ),  # the checkers leave some open
]
ADAPTER = Path(__file__).with_name("adapter.py")


def _checker(directory: Path) -> ModuleType:
    """The directory's own `check.py`: what counts as right is not ours to decide."""
    name = f"check_{directory.name}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, directory / "check.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _run(directory: Path, table: str, out: Path) -> list[dict[str, str]]:
    arguments = sys.argv
    sys.argv = ["check.py", str(ADAPTER), "--only", f"^{re.escape(table)}$", "--json", str(out)]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            _checker(directory).main()
    finally:
        sys.argv = arguments
    cases: list[dict[str, str]] = json.loads(out.read_text("utf-8"))
    return cases


def _check(entry: Entry, out: Path) -> None:
    cases = _run(entry.root, entry.id, out)
    assert cases
    assert [case for case in cases if case["result"] not in {"pass", "optional"}] == []
    # The checkers let an error of another kind pass; our codes are meant to be theirs.
    other_kinds = [case for case in cases if case["why"].startswith("kind ")]
    assert [case for case in other_kinds if not _may_differ(entry, case)] == []


def _may_differ(entry: Entry, case: dict[str, str]) -> bool:
    """Where the expected kind does not bind."""
    expected = entry.expected(case["case"])
    # The manifest files log files that are gone under missing data files.
    log_is_gone = expected.get("engine_error") == "DELTA_LOG_FILE_NOT_FOUND"
    # The manifest blames a hole for versions before it, too. They can be opened; this one has no
    # schema.
    is_before_hole = entry.id == "delta-golden/versions-not-contiguous" and case["case"] == "v0"
    return bool(expected.get("optional") or is_before_hole) or (
        log_is_gone and case["why"].startswith("kind checkpoint-missing")
    )


@pytest.mark.parametrize("entry", load_entries("DELTALOG_CORPUS"), ids=str)
def test_corpus_table(entry: Entry, tmp_path: Path) -> None:
    _check(entry, tmp_path / "cases.json")


@pytest.mark.parametrize("entry", load_entries("DELTALOG_REFERENCE"), ids=str)
def test_reference_table(entry: Entry, tmp_path: Path) -> None:
    _check(entry, tmp_path / "cases.json")
