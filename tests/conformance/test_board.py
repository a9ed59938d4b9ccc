"""The program that scores readers, on the tables of other writers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from deltalog.testing.conformance import digest
from deltalog.testing.conformance.__main__ import main
from tests.support.corpora import Entry, load_entries

pytestmark = pytest.mark.corpus


def _shipped() -> list[tuple[Entry, dict[str, Any]]]:
    return [
        (entry, expected)
        for entry in load_entries("DELTALOG_CORPUS")
        for expected in entry.facts["expected"]["versions"].values()
        if "expected_files" in expected
    ]


def test_digests_are_those_of_the_rows_that_writers_ship() -> None:
    """The corpus's own program reads the rows and gives the digest; none of that is ours."""
    for entry, expected in _shipped():
        spec = importlib.util.spec_from_file_location("corpus_digest", entry.root / "digest.py")
        assert spec is not None
        assert spec.loader is not None
        theirs = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(theirs)
        rows = theirs.read_parquet_dir(str(entry.root / expected["expected_files"]))
        assert digest(rows) == theirs.digest(rows), entry.id


def test_the_board_of_one_writer_is_perfect(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(corpus), "--writer", "dat", "--writer", "gen-duckdb"]) == 0
    assert " wrong" not in capsys.readouterr().out
