"""Tables of other writers, copied and appended to by deltalog, are read back by the reference."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import UnsupportedFeatureError
from deltalog.protocol.features.support import writer_blockers
from tests.support.corpora import Entry, readable_entries
from tests.support.reference import ReferenceError, Spark  # noqa: A004  # the reference's own error
from tests.support.reference_rows import ours, rows_of
from tests.support.reference_scenarios import FULL

# Few enough for every run, spread over the writers.
ENTRIES = readable_entries() if FULL else readable_entries()[7::40]
# Of this one the reference shows rows that its log has removed, unless its compacted logs are taken
# away; the manifest, made by another reader, knows better.
MISREAD = {"delta-kernel-rs/compacted-log-files-table"}
# Spark pads CHAR values when it reads them, whatever the file holds.
PADDED = {"spark-reference/defaults-char-varchar"}


@pytest.mark.protocol("UPG-01", "OV-06", "B-62")
@pytest.mark.corpus
@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_the_reference_reads_what_was_appended(entry: Entry, spark: Spark, tmp_path: Path) -> None:
    copy = tmp_path / "table"
    shutil.copytree(entry.path, copy)
    table = DeltaTable(copy)
    rows = _some_rows(table)
    if writer_blockers(table.protocol()):
        with pytest.raises(UnsupportedFeatureError):
            write_deltalake(copy, rows, mode="append")
        return
    version = table.version()
    write_deltalake(copy, rows, mode="append")
    try:
        theirs = rows_of(spark.read(copy))
    except ReferenceError:
        # It must fail as well on what was there before.
        with pytest.raises(ReferenceError):
            spark.read(copy, version)
        return
    assert DeltaTable(copy).version() > version
    if entry.id in MISREAD:
        assert rows_of(spark.read(copy, version)) != ours(copy, version)
        return
    if entry.id in PADDED:
        theirs = [re.sub(r"(\('c', '[^' ]*) +'", r"\1'", row) for row in theirs]
    assert ours(copy) == theirs


def _some_rows(table: DeltaTable) -> pa.Table:
    """Three rows of the table, without what nobody may give."""
    given = [
        field.name
        for field in table.schema()
        if "delta.identity.start" not in (field.metadata or {})
    ]
    return table.scan(columns=given, limit=3).to_table()
