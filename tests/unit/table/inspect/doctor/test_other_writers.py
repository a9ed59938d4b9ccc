"""The doctor finds nothing wrong with what the reference writes, but for what was broken."""

from __future__ import annotations

import pytest

from deltalog.log.context import utc_context
from deltalog.storage import open_store
from deltalog.table.inspect.doctor import CHECKS, Severity, examine
from tests.support.corpora import Entry, load_entries

# Broken on purpose, or a part of something that lies elsewhere: which check finds it.
BROKEN = {
    "spark-reference/clone-shallow-dv": "file-missing",
    "spark-reference/cp-last-checkpoint-ahead": "last-checkpoint",
    "spark-reference/cp-last-checkpoint-corrupt": "last-checkpoint",
    "spark-reference/cp-last-checkpoint-missing": "last-checkpoint",
    "spark-reference/cp-last-checkpoint-stale-v2": "last-checkpoint",
    "spark-reference/cp-multi-part-incomplete": "checkpoint-incomplete",
    "spark-reference/crc-wrong": "checksum",
}
ENTRIES = [entry for entry in load_entries("DELTALOG_REFERENCE") if entry.has_rows]


@pytest.mark.corpus
@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_tables_of_the_reference(entry: Entry) -> None:
    report = examine(utc_context(open_store(str(entry.path))), num_samples=2)
    found = {
        finding.check
        for finding in report.findings
        if finding.severity is not Severity.INFO and finding.check != "access"
    }
    assert report.checks == CHECKS
    if entry.id in BROKEN:
        assert BROKEN[entry.id] in found
    else:
        assert found == set()
